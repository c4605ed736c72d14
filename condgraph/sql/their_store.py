"""A database whose tables somebody else made, as a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Source
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import NO_UNIT, Kind
from condgraph.overview.survey import Survey
from condgraph.sql.catalogue import ends_of
from condgraph.sql.engines import Engine
from condgraph.sql.names import SqlNames
from condgraph.sql.plan import Compiled, counted
from condgraph.sql.store import SqlStore
from condgraph.sql.tables import NAMED, Graph, Row
from condgraph.sql.terms import column, is_text, select
from condgraph.sql.their_plan import TheirPlans
from condgraph.sql.their_survey import survey_of
from condgraph.sql.theirs import TheirTables, shortfalls

if TYPE_CHECKING:
    from condgraph.engine.check import KnownIds

#: Qualifiers that say when a statement holds, which tables of relations cannot have here.
_TIMES: Final = (START_TIME, END_TIME, POINT_IN_TIME)


def schema_of(tables: TheirTables) -> StoredSchema:
    """What lowering knows of the tables. Numbers of values are those of rows."""
    relations: dict[str, int] = {}
    attributes: dict[str, dict[Kind, int]] = {}
    qualifiers: dict[str, dict[Kind, int]] = {}
    on: dict[str, dict[str, dict[Kind, int]]] = {}
    predicates: dict[str, list[int]] = {}
    for number, table in enumerate(tables.tables.values()):
        if table.relation is None:
            names = [" + ".join(item.columns) for item in table.references]
            for item in table.values:
                counted = attributes.setdefault(item.predicate, {})
                counted[item.kind] = counted.get(item.kind, 0) + max(1, table.rows)
            names += [item.predicate for item in table.values]
        else:
            names = [table.relation]
            further = [(item.predicate, item.kind) for item in table.values]
            further += [(item.columns[0], Kind.ENTITY) for item in ends_of(table)[2:]]
            for key, kind in further:
                for counted in (qualifiers.setdefault(key, {}), on.setdefault(key, {}).setdefault(table.relation, {})):
                    counted[kind] = counted.get(kind, 0) + max(1, table.rows)
        for predicate in names if table.relation is not None else names[: len(table.references)]:
            relations[predicate] = relations.get(predicate, 0) + table.rows
        for predicate in names:
            listed = predicates.setdefault(predicate, [])
            if number not in listed:
                listed.append(number)
    rows = [table for table in tables.tables.values() if table.relation is None]
    source = dict(zip(tables.tables, tables.sources, strict=True))

    def kinds(found: dict[Kind, int]) -> list[list[Any]]:
        return [[int(kind), NO_UNIT, count] for kind, count in sorted(found.items())]

    return StoredSchema(
        {
            "relations": sorted(relations),
            "attributes": {key: kinds(found) for key, found in sorted(attributes.items())},
            "qualifiers": {key: kinds(found) for key, found in sorted(qualifiers.items())},
            "on": {key: {of: kinds(found) for of, found in owners.items()} for key, owners in on.items()},
            "concepts": sorted(table.name for table in rows),
            "sources": tables.sources,
            "predicates": dict(sorted(predicates.items())),
            "tables": [source[table.name] for table in rows],
            "tabular": [
                source[table.name] for table in rows if all(item.target == table.name for item in table.references)
            ],
            "keyed": [source[table.name] for table in rows if table.key],
            "temporal": False,
            "inexact": any(item.sort == "long" for table in tables.tables.values() for item in table.columns),
            "raw": False,
            "concept_subjects": False,
            "concept_attributes": False,
            "concept_members": False,
            "sizes": relations,
            "members": {table.name: table.rows for table in rows},
            "single": [table.name for table in rows],
            "several": {"attributes": [], "qualifiers": []},
        }
    )  # fmt: skip


class TheirNames(SqlNames):
    """The names of rows and tables, looked up in the tables that may have them."""

    def __init__(
        self, read: Callable[[exp.Expr | str], list[Row]], tables: TheirTables, schema: StoredSchema, plans: TheirPlans
    ) -> None:
        super().__init__(read, tables, schema)
        self._plans = plans

    def _rows(self, node: alg.ById | alg.ByName) -> list[Row] | None:
        query = self._plans.entities(node)
        return None if query is None else self._read(query)

    def has_name(self, name: str) -> bool:
        """Some row or concept has exactly this name."""
        rows = self._rows(alg.ByName((name,))) if is_text(name) else []
        return super().has_name(name) if rows is None else bool(rows)

    def name_of(self, ident: str) -> str | None:
        """The name of the row or concept that has this id; None where none has."""
        rows = self._rows(alg.ById((ident,))) if is_text(ident) else []
        return super().name_of(ident) if rows is None else next((name for _, name, *_ in rows), None)

    def without(self, names: Sequence[str]) -> list[str]:
        """Those of the names that no row or concept has: one query."""
        rows = self._rows(alg.ByName(tuple(filter(is_text, names))))
        if rows is None:
            return super().without(names)
        there = {name for _, name, *_ in rows}
        return [name for name in names if name not in there]


class TheirStore(SqlStore):
    """A database whose tables somebody else made, as one graph that is only read."""

    shape = NAMED

    def __init__(self, engine: Engine, tables: TheirTables, *, timeout: float | None, notes: Sequence[str] = ()) -> None:
        super().__init__(engine, graph="default", read_only=True, timeout=timeout)
        self.theirs = self.relations = tables
        self._plans = TheirPlans(tables, engine.text)
        for table in tables.tables.values():
            times = [item.predicate for item in table.columns if table.relation is not None and item.predicate in _TIMES]
            if times:
                raise UnsupportedError("SQL", [f"{times[0]!r} as a qualifier of {table.name!r}"], hint="load the database instead")
        self._schema = schema_of(tables)
        #: What is to be known of what is there: what is left out, and why.
        self.notes = (*notes, *shortfalls(engine, tables))

    def _names(self, schema: StoredSchema) -> SqlNames:
        return TheirNames(self.engine.read, self.theirs, schema, self._plans)

    def refresh(self) -> None:
        """Count again what the tables hold."""
        super().refresh()
        self._schema.kept.pop("survey", None)

    def exists(self) -> bool:
        """It is there."""
        return True

    def content(self) -> str:
        """Nobody knows when others change the tables: it has no name."""
        return "theirs"

    def _all(self, table: str, *names: str) -> exp.Select:
        columns = (column(item) for item in names or NAMED.tables[table])
        return select(*columns).from_(self.theirs.relation(table, table, None), copy=False)

    @property
    def schema(self) -> StoredSchema:
        """What lowering knows, read when the database was opened."""
        return self._schema

    @property
    def known_sources(self) -> tuple[Source, ...]:
        """A source for each table."""
        return tuple(Source(item, self.place, self.engine.scheme) for item in self.theirs.sources)

    def steady(self, ask: Any) -> Any:
        """What `ask` gives: each query sees one state of the database."""
        return ask()

    def compiled(self, plan: Node) -> Compiled:
        """The query of a plan."""
        return self._plans.compiled(plan) or super().compiled(plan)

    def compiled_witness(self, plan: Node) -> Compiled:
        """The query of all that a plan rests on."""
        return self._plans.witness(plan) or super().compiled_witness(plan)

    def compiled_counts(self, nodes: Sequence[Node], known: KnownIds) -> exp.Query | str:
        """The query for how many statements, or entities, each operator gives."""
        return self._plans.counts(counted(nodes, known)) or super().compiled_counts(nodes, known)

    def compiled_sizes(self, nodes: Sequence[Node]) -> exp.Query | str | None:
        """The query for how many entities each operator gives, and the first names; None where no operator is SQL."""
        return self._plans.sizes(nodes) or super().compiled_sizes(nodes)

    def check_plan(self, plan: Node) -> None:
        """Raise for what rows of a database do not have: an order, and numbers."""
        wrong = sorted({type(node).__name__ for node in postorder(plan) if isinstance(node, alg.Neighbour | alg.RowNumbers)})
        if wrong:
            raise UnsupportedError("SQL", wrong, hint="rows of a database have no order; graph.snapshot() numbers them")

    def counts(self) -> dict[str, int]:
        """What the tables hold, by the database's own estimates."""
        tables = self.theirs.tables.values()
        rows = sum(table.rows for table in tables if table.relation is None)
        concepts = sum(table.relation is None for table in tables)
        relations = sum(self._schema.sizes.values())
        attributes = sum(table.rows * len(table.values) for table in tables if table.relation is None)
        qualifiers = sum(table.rows * (len(table.columns) - 2) for table in tables if table.relation is not None)
        return {
            "entities": rows, "concepts": concepts, "rows": rows, "relations": relations, "attributes": attributes,
            "qualifiers": qualifiers, "predicates": len(self._schema.predicates), "sources": len(self.theirs.sources),
        }  # fmt: skip

    def survey(self) -> Survey:
        """What the tables hold, counted at the first call, and after `refresh`: a file is not written while it is open."""
        result: Survey | None = self._schema.kept.get("survey")
        if result is None:
            result = self._schema.kept["survey"] = survey_of(self.engine.read, self.theirs, self.engine.scheme)
        return result

    def _pulled(self, read: Any) -> Snapshot:
        tables = ("entity", "membership", "statement", "qualifier", "place")
        rows = {table: read(self._all(table)) for table in tables}
        return Graph(rows, self.known_sources).snapshot()
