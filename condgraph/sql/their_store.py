"""A database whose tables somebody else made, as a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.errors import StoreError, UnsupportedError
from condgraph.engine.facts import EntityKind, Source
from condgraph.engine.row_times import TIMES
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import LookForShown, StoredSchema
from condgraph.engine.values import NO_UNIT, Kind
from condgraph.overview.survey import Survey
from condgraph.sql.catalogue import TOO_LONG, ends_of
from condgraph.sql.connections import Engine
from condgraph.sql.names import SqlNames
from condgraph.sql.plan import Plans
from condgraph.sql.store import SqlStore
from condgraph.sql.their_plan import TheirPlans
from condgraph.sql.their_survey import shown_by, survey_of
from condgraph.sql.theirs import TheirTables, shortfalls


def schema_of(tables: TheirTables, look: LookForShown) -> StoredSchema:
    """What lowering knows of the tables. Numbers of values are those of rows."""
    relations: dict[str, int] = {}
    attributes: dict[str, dict[Kind, int]] = {}
    qualifiers: dict[str, dict[Kind, int]] = {}
    on: dict[str, dict[str, dict[Kind, int]]] = {}
    predicates: dict[str, list[int]] = {}

    def _count(keys: list[tuple[str, Kind]], of: list[str], rows: int) -> None:
        """Qualifiers of statements."""
        for key, kind in keys:
            counted = [qualifiers.setdefault(key, {}), *(on.setdefault(key, {}).setdefault(predicate, {}) for predicate in of)]
            for kinds in counted:
                kinds[kind] = kinds.get(kind, 0) + max(1, rows)

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
            _count(further, [table.relation], table.rows)
        _count([(key, item.kind) for key, item in table.bounds], names, table.rows)
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
            "temporal": any(table.times is not None for table in tables.tables.values()),
            "inexact": any(item.sort == "long" for table in tables.tables.values() for item in table.columns),
            "raw": False,
            "concept_subjects": False,
            "concept_attributes": False,
            "concept_members": False,
            "sizes": relations,
            "members": {table.name: table.rows for table in rows},
            "single": [table.name for table in rows],
            "several": {"attributes": [], "qualifiers": []},
        },
        look,
    )  # fmt: skip


class TheirStore(SqlStore):
    """A database whose tables somebody else made, as one graph that is only read."""

    def __init__(self, engine: Engine, tables: TheirTables, *, timeout: float | None, notes: Sequence[str] = ()) -> None:
        super().__init__(engine, graph="default", read_only=True, timeout=timeout)
        self.theirs = tables
        for table in tables.tables.values():
            times = [item.predicate for item in table.columns if table.relation is not None and item.predicate in TIMES]
            if times:
                raise UnsupportedError(
                    "SQL",
                    [f"{times[0]!r} as a qualifier of {table.name!r}"],
                    hint="a view calls it otherwise, and `times` in a mapping file declares it",
                )
        self._schema = schema_of(tables, self._shows)
        self._plans = TheirPlans(tables, self._schema, engine.text)
        #: What is to be known of what is there: what is left out, and why.
        self.notes = (*notes, *shortfalls(engine, tables))

    def _names(self, schema: StoredSchema) -> SqlNames:
        return SqlNames(self.engine.read, self._plans)

    @property
    def plans(self) -> Plans:
        """The queries of these tables."""
        return self._plans

    def refresh(self) -> None:
        """Count again what the tables hold."""
        super().refresh()
        self._schema.kept.clear()

    def exists(self) -> bool:
        """It is there."""
        return True

    def content(self) -> str:
        """Nobody knows when others change the tables: it has no name."""
        return "theirs"

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
        qualifiers += sum(table.rows * len(table.bounds) * len(self.theirs.parts(table, None)) for table in tables)
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

    def _shows(self, key: str, qualifier: bool) -> list[list[Any]]:
        try:
            return shown_by(self.engine.read, self.theirs, key, qualifier)
        except StoreError as error:
            if TOO_LONG not in error.message:
                raise
            # Some row has a number that cannot be read, which is no error of a query that does not ask for it.
            return []

    def _pulled(self, read: Any) -> Snapshot:
        every, concepts = alg.AllEntities((EntityKind.ROW,)), alg.AllEntities((EntityKind.CONCEPT,))
        query = self._plans.gathered([(0, alg.Scan(None, None))], [(every, concepts)])
        return self._plans.records(read(query), self.known_sources).snapshot
