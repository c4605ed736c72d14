"""An existing database, whose tables condgraph did not write, as a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.errors import StoreError, UnsupportedError
from condgraph.engine.facts import EntityKind, Source
from condgraph.engine.row_times import TIMES
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import LookForShown, StoredSchema
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time, Value, text_of
from condgraph.overview.survey import EXAMPLES, Ends, Survey, cut
from condgraph.sql.catalogue import TOO_LONG, Bound, Column, Reference, Table, call, ends_of
from condgraph.sql.connections import Engine
from condgraph.sql.names import SqlNames
from condgraph.sql.native import Cell, NativeTables, look_at_cells, shortfalls
from condgraph.sql.native_plan import NativePlans
from condgraph.sql.plan import Plans
from condgraph.sql.store import SqlStore
from condgraph.sql.tables import CELL, Row, value_of
from condgraph.sql.terms import NULL, Query, both, cast, column, double, known, literal, named, one_of, select, together

if TYPE_CHECKING:
    from condgraph.patterns.remote.planned import PlannedPatterns

# -- The survey --------------------------------------------------------------------------------------

# The survey of an existing database (`overview.survey`), counted in the database by three queries that read all rows; and the
# values by which others of a column are read.


Read = Callable[[exp.Query], list[Row]]


@dataclass(slots=True)
class _Part:
    """Statements of one predicate, or qualifiers of one key, of a table, with the concepts of their subjects and objects."""

    table: Table
    predicate: str
    subjects: str
    query: Query
    key: str | None = None
    objects: str | None = None


@dataclass(slots=True)
class _Span:
    """Values of a type: their number, and the first and last of numbers and times."""

    count: int = 0
    values: list[Value] = field(default_factory=list)

    def listed(self, kind: Kind) -> list[Any]:
        """Return the span in a survey's format."""
        first = min(self.values, key=_rank, default=None)
        last = max(self.values, key=_rank, default=None)
        span: list[Any] = ["", "", None, None]
        if isinstance(first, Time) and isinstance(last, Time):
            span = [str(first), str(last), first.start, last.end]
        elif first is not None and last is not None:
            span = [text_of(first), text_of(last), None, None]
        return [kind.name.lower(), NO_UNIT, self.count, *span]


def _rank(value: Value) -> Any:
    return value.start if isinstance(value, Time) else value.number if isinstance(value, Quantity) else value


def _parts(tables: NativeTables) -> Iterator[_Part]:
    for table in tables.tables.values():
        for part in tables.parts(table, None):
            _, subject, name, cell = tables.statement(part)
            start, end = tables.ends(part)
            query = _query(tables, table, cell).select(named(subject, "s"), named(name, "name"), copy=False)
            target = end.target if isinstance(end, Reference) else None
            yield _Part(table, part.predicate, table.name if start is None else start.target, query, objects=target)
            condition = cell.present
            for key, item in tables.qualifiers(table):
                query = _query(tables, table, tables.cell(table, item)).where(condition.copy(), copy=False)
                yield _Part(table, part.predicate, table.name if start is None else start.target, query, key)


def _query(tables: NativeTables, table: Table, cell: Cell) -> exp.Select:
    cells = {"o": cell.end, **{key: cell.parts.get(key, NULL) for key in CELL}}
    columns = [named(cast(value.copy(), CELL.get(key, "text")), key) for key, value in cells.items()]
    return select(*columns).from_(tables.rows(table), copy=False).where(cell.present, copy=False)


def _derived(query: Query) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("part", quoted=True)))


def _spans(read: Read, tables: NativeTables, parts: Sequence[_Part]) -> Iterator[tuple[_Part, Kind, int, list[Value]]]:
    """Yield the number of cells of each part and type, with the least and the greatest value."""
    queries: list[Query] = []
    for at, part in enumerate(parts):
        # After its first character, a tie orders all numbers.
        order = exp.DPipe(this=call("SUBSTR", column("tie"), literal(2)), expression=literal(" "))
        exact = tables.cells.by_bytes(exp.DPipe(this=order, expression=column("exact")))
        floats = exp.Case(ifs=[exp.If(this=exp.Is(this=column("exact"), expression=NULL.copy()), true=column("number"))])
        spans = {"number": floats, "exact": exact, "start": column("start"), "stop": column("stop")}
        cells = []
        for name, value in spans.items():
            for aggregate in _EXTREMES:
                cells.append(named(aggregate(this=value.copy()), f"{name} {aggregate.key}"))
        # Rows of a relation without qualifiers are one statement if they have the same ends.
        is_bare = part.table.relation is not None and part.key is None and len(part.table.columns) == 2
        ends = exp.Distinct(expressions=[exp.Tuple(expressions=[column("s"), column("o")])])
        counted = named(exp.Count(this=ends if is_bare else exp.Star()), "count")
        columns = (named(literal(at), "at"), column("kind"), column("precision"), counted, *cells)
        query = select(*columns).from_(_derived(part.query), copy=False)
        queries.append(query.group_by(column("kind"), column("precision"), copy=False))
    for at, number, precision, count, *bounds in read(together(queries)) if queries else ():
        kind = Kind(number)
        sides = [bounds[offset::2] for offset in (0, 1)] if kind in (Kind.QUANTITY, Kind.TIME) else []
        values = [
            value_of((kind, None, number, None, exact, NO_UNIT, start, stop, precision))
            for amount, digits, start, stop in sides
            for number, exact in (
                ((amount, None), (None, digits and digits.partition(" ")[2])) if kind == Kind.QUANTITY else ((None, None),)
            )
            if kind == Kind.TIME or number is not None or exact is not None
        ]
        yield parts[at], kind, count, values


_EXTREMES = (exp.Min, exp.Max)


def _first(query: Query, at: int, *columns: exp.Expr) -> Query:
    """Return a query of some rows of a query."""
    rows = select(named(literal(at), "at"), *columns).from_(_derived(query), copy=False).limit(EXAMPLES, copy=False)
    return select(exp.Star()).from_(_derived(rows), copy=False)


def _examples(read: Read, parts: Sequence[_Part]) -> dict[str, list[list[str]]]:
    """Return some statements of each predicate, as the subject's name and the object's text."""
    columns = [column(name) for name in ("name", "o", *CELL)]
    rows = read(together([_first(part.query, at, *columns) for at, part in enumerate(parts)])) if parts else []
    result: dict[str, list[list[str]]] = {}
    for at, subject, target, *cell in sorted(rows, key=lambda row: row[0]):
        text = cell[1] if target is not None else text_of(value_of(cell))
        example, shown = [cut(subject), cut(text)], result.setdefault(parts[at].predicate, [])
        if example not in shown and len(shown) < EXAMPLES:
            shown.append(example)
    return result


def _members(read: Read, tables: NativeTables) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Return how many rows each table has, and some of their names."""
    row_tables = [table for table in tables.tables.values() if table.relation is None]
    count = named(exp.Count(this=exp.Star()), "count")
    count_queries: list[Query] = [
        select(named(literal(number), "at"), count.copy()).from_(_derived(tables.entities(table)), copy=False)
        for number, table in enumerate(row_tables)
    ]
    examples = [_first(tables.entities(table), number, column("name")) for number, table in enumerate(row_tables)]
    sizes = {row_tables[number].name: size for number, size in (read(together(count_queries)) if row_tables else ())}
    names: dict[str, list[str]] = {table.name: [] for table in row_tables}
    for number, name in read(together(examples)) if row_tables else ():
        if cut(name) not in names[row_tables[number].name]:
            names[row_tables[number].name].append(cut(name))
    return sizes, names


def survey_of(read: Read, tables: NativeTables, form: str) -> Survey:
    """Return the survey of the tables of a database of format `form`; `read` returns the rows of a query."""
    parts = list(_parts(tables))
    sizes, members = _members(read, tables)
    values: dict[tuple[str, str | None, Kind], _Span] = {}
    relations, attributes, qualifiers = Counter[str](), Counter[str](), 0
    of_sources: dict[str, Counter[str]] = {}
    ends: tuple[dict[str, Counter[str]], dict[str, Counter[str]]] = ({}, {})
    sources = dict(zip(tables.tables, tables.sources, strict=True))
    for part, kind, count, extremes in _spans(read, tables, parts):
        if part.objects is None:
            span = values.setdefault((part.predicate, part.key, kind), _Span())
            span.count += count
            span.values += extremes
        if part.key is not None:
            qualifiers += count
            continue
        (attributes if part.objects is None else relations)[part.predicate] += count
        of_sources.setdefault(part.predicate, Counter())[sources[part.table.name]] += count
        for concept, kinds in zip((part.subjects, part.objects), ends, strict=True):
            if concept is not None:
                kinds.setdefault(part.predicate, Counter())[concept] += count
    examples = _examples(read, [part for part in parts if part.key is None])
    concepts = sorted(sizes)
    positions = {concept: number for number, concept in enumerate(concepts)}
    kinds_listed: list[list[Any]] = [["concept", item, item, sizes[item], members[item], []] for item in concepts]
    kinds_listed += sorted(["table", source, "", sizes.get(table, 0), [], []] for table, source in sources.items())
    kinds_listed += [["concepts", "", "", len(concepts), [], []], ["entities", "", "", 0, [], []]]
    predicates = sorted(relations.keys() | attributes.keys())
    described = [
        [
            *(predicate, relations[predicate], attributes[predicate], _listed(values, predicate, None), _keys(values, predicate)),
            *(_by_count(of_sources[predicate]), examples.get(predicate, [])),
        ]
        for predicate in predicates
    ]
    totals = Counter(dict.fromkeys(tables.sources, 0))
    for counts in of_sources.values():
        totals.update(counts)
    rows = sum(sizes.values())
    return {
        "counts": {
            "entities": rows, "concepts": len(concepts), "rows": rows,
            "relations": relations.total(), "attributes": attributes.total(), "qualifiers": qualifiers,
        },
        "sources": [[source, form, count] for source, count in _by_count(totals)],
        "kinds": kinds_listed,
        "predicates": described,
        "subjects": _ends(predicates, ends[0], positions),
        "objects": _ends(predicates, ends[1], positions),
    }  # fmt: skip


def _by_count(counts: Counter[str]) -> list[list[Any]]:
    return [[name, count] for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def _listed(values: dict[tuple[str, str | None, Kind], _Span], predicate: str, key: str | None) -> list[list[Any]]:
    spans = [span.listed(kind) for (name, qualifier, kind), span in values.items() if (name, qualifier) == (predicate, key)]
    return sorted(spans, key=lambda span: (-span[2], span[0]))


def _keys(values: dict[tuple[str, str | None, Kind], _Span], predicate: str) -> list[list[Any]]:
    keys = dict.fromkeys(key for name, key, _ in values if name == predicate and key is not None)
    described = [[key, _listed(values, predicate, key)] for key in keys]
    return sorted(described, key=lambda item: (-sum(value[2] for value in item[1]), item[0]))


def _ends(predicates: Iterable[str], counts: dict[str, Counter[str]], positions: dict[str, int]) -> Ends:
    starts, kinds, sizes = [0], list[int](), list[int]()
    for predicate in predicates:
        for count, kind in sorted((-count, positions[concept]) for concept, count in counts.get(predicate, {}).items()):
            kinds.append(kind)
            sizes.append(-count)
        starts.append(len(kinds))
    return Ends(*(np.array(part, np.int64) for part in (starts, kinds, sizes)))


# -- How values are read -----------------------------------------------------------------------------


def shown_by(read: Read, tables: NativeTables, key: str, qualifier: bool) -> list[list[Any]]:
    """Return the values by which others of an attribute or qualifier are read. See `Schema.shows` and `snapshot.readings`.

    This takes up to four queries for numbers and two for texts; none if the column types show that each value is read alone.
    """
    of_key = []
    for table in tables.tables.values():
        for part in tables.parts(table, None):
            items = [item for name, item in tables.qualifiers(table) if name == key] if qualifier else [part.item]
            if qualifier or part.predicate == key:
                of_key += [(part, item) for item in items if isinstance(item, Column) and not isinstance(item, Bound)]
    queries = []
    for part, item in of_key:
        _, subject, name, object_cell = tables.statement(part)
        cells = {"predicate": literal(part.predicate), "s": subject, "name": name}
        query = _query(tables, part.table, tables.cell(part.table, item)).where(object_cell.present.copy(), copy=False)
        queries.append(query.select(*(named(value, alias) for alias, value in cells.items()), copy=False))

    def first(test: exp.Expr, value: exp.Expr) -> list[Row]:
        places = [column("predicate"), tables.cells.by_bytes(column("name")), tables.cells.by_bytes(column("s"))]
        query = select(column("s"), column("predicate"), value).from_(_derived(together(queries)), copy=False)
        return read(query.where(test, copy=False).order_by(value.copy(), *places, copy=False).limit(1, copy=False))

    def some(test: exp.Expr) -> bool:
        query = select(literal(1)).from_(_derived(together(queries)), copy=False).where(test, copy=False)
        return bool(read(query.limit(1, copy=False)))

    result: list[Row] = []
    number, text = column("number"), column("text")
    is_number, is_text = (exp.EQ(this=column("kind"), expression=literal(int(kind))) for kind in (Kind.QUANTITY, Kind.TEXT))
    if any(item.kind is Kind.QUANTITY and not item.whole for _, item in of_key):
        is_fraction: exp.Expr = exp.NEQ(this=number.copy(), expression=exp.Floor(this=number.copy()))
        shown = first(both([is_number, is_fraction]), number)
        if not shown and not some(known(column("exact"))):
            is_fraction = exp.GTE(this=exp.Abs(this=number.copy()), expression=double(2.0**63))
            shown = first(both([is_number.copy(), is_fraction]), number)
        if shown and some(both([is_number.copy(), exp.not_(exp.Paren(this=is_fraction.copy()))])):
            result += shown
    if any(item.kind is Kind.TEXT or tables.is_finite(item, "t") is not None for _, item in of_key):
        truth = one_of(text, ("true", "false"))
        if some(both([is_text, truth])):
            result += first(both([is_text.copy(), exp.not_(truth.copy())]), tables.cells.by_bytes(text.copy()))
    return [list(row) for row in result]


# -- The store ---------------------------------------------------------------------------------------


def schema_of(tables: NativeTables, look: LookForShown) -> StoredSchema:
    """Return the schema of the tables that lowering uses. Counts of values are counts of rows."""
    relations: dict[str, int] = {}
    attributes: dict[str, dict[Kind, int]] = {}
    qualifiers: dict[str, dict[Kind, int]] = {}
    on: dict[str, dict[str, dict[Kind, int]]] = {}
    predicates: dict[str, list[int]] = {}

    def _count(keys: list[tuple[str, Kind]], predicates: list[str], rows: int) -> None:
        """Count qualifiers of statements."""
        for key, kind in keys:
            counts = [
                qualifiers.setdefault(key, {}),
                *(on.setdefault(key, {}).setdefault(predicate, {}) for predicate in predicates),
            ]
            for kinds in counts:
                kinds[kind] = kinds.get(kind, 0) + max(1, rows)

    for number, table in enumerate(tables.tables.values()):
        if table.relation is None:
            names = [" + ".join(item.columns) for item in table.references]
            for item in table.values:
                counts = attributes.setdefault(item.predicate, {})
                for kind in item.kinds:
                    counts[kind] = counts.get(kind, 0) + max(1, table.rows)
            names += [item.predicate for item in table.values]
        else:
            names = [table.relation]
            further = [(item.predicate, kind) for item in table.values for kind in item.kinds]
            further += [(item.columns[0], Kind.ENTITY) for item in ends_of(table)[2:]]
            _count(further, [table.relation], table.rows)
        _count([(key, item.kind) for key, item in table.bounds], names, table.rows)
        for predicate in names if table.relation is not None else names[: len(table.references)]:
            relations[predicate] = relations.get(predicate, 0) + table.rows
        for predicate in names:
            numbers = predicates.setdefault(predicate, [])
            if number not in numbers:
                numbers.append(number)
    rows = [table for table in tables.tables.values() if table.relation is None]
    source = dict(zip(tables.tables, tables.sources, strict=True))

    def kinds(by_kind: dict[Kind, int]) -> list[list[Any]]:
        return [[int(kind), NO_UNIT, count] for kind, count in sorted(by_kind.items())]

    return StoredSchema(
        {
            "relations": sorted(relations),
            "attributes": {key: kinds(by_kind) for key, by_kind in sorted(attributes.items())},
            "qualifiers": {key: kinds(by_kind) for key, by_kind in sorted(qualifiers.items())},
            "on": {key: {of: kinds(by_kind) for of, by_kind in owners.items()} for key, owners in on.items()},
            "concepts": sorted(table.name for table in rows),
            "sources": tables.sources,
            "predicates": dict(sorted(predicates.items())),
            "tables": [source[table.name] for table in rows],
            "tabular": [
                source[table.name] for table in rows if all(item.target == table.name for item in table.references)
            ],
            "keyed": [source[table.name] for table in rows if table.key],
            "temporal": any(table.times is not None for table in tables.tables.values()),
            "inexact": any(item.inexact for table in tables.tables.values() for item in table.columns),
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


class NativeSqlStore(SqlStore):
    """An existing database as one graph that is only read."""

    def __init__(self, engine: Engine, tables: NativeTables, *, timeout: float | None, notes: Sequence[str] = ()) -> None:
        super().__init__(engine, graph="default", read_only=True, timeout=timeout)
        self.native = tables
        for table in tables.tables.values():
            times = [item.predicate for item in table.columns if table.relation is not None and item.predicate in TIMES]
            if times:
                raise UnsupportedError(
                    "SQL",
                    [f"{times[0]!r} as a qualifier of {table.name!r}"],
                    hint="a view calls it otherwise, and `times` in a mapping file declares it",
                )
        #: Remarks on the database: what is left out, and why.
        self.notes = (*notes, *self._look(), *shortfalls(engine, tables))

    def _look(self) -> list[str]:
        notes = list(look_at_cells(self.engine, self.native))
        self._schema = schema_of(self.native, self._shows)
        self._plans = NativePlans(self.native, self._schema, self.engine)
        return notes

    def _names(self, schema: StoredSchema) -> SqlNames:
        return SqlNames(self.engine.read, self._plans)

    @property
    def plans(self) -> Plans:
        """The queries of these tables."""
        return self._plans

    def refresh(self) -> None:
        """Count again what the tables hold."""
        super().refresh()
        self._look()

    def exists(self) -> bool:
        """Return True: the database exists."""
        return True

    def content(self) -> str:
        """Return a constant: others may change the tables at any time, so the content has no name."""
        return "theirs"

    @property
    def schema(self) -> StoredSchema:
        """The schema that lowering uses, read when the database was opened."""
        return self._schema

    @property
    def known_sources(self) -> tuple[Source, ...]:
        """A source for each table."""
        return tuple(Source(item, self.place, self.engine.scheme) for item in self.native.sources)

    def steady(self, ask: Any) -> Any:
        """Return what `ask` gives: each query sees one state of the database."""
        return ask()

    def _patterns(self) -> PlannedPatterns:
        from condgraph.patterns.remote.planned import planned

        return planned(self, self.place, self.name, changing=True)

    def check_plan(self, plan: Node) -> None:
        """Raise `UnsupportedError` for operators on the order or number of rows, which a database's rows do not have."""
        unsupported = sorted({type(node).__name__ for node in postorder(plan) if isinstance(node, alg.Neighbour | alg.RowNumbers)})
        if unsupported:
            raise UnsupportedError("SQL", unsupported, hint="rows of a database have no order; graph.snapshot() numbers them")

    def counts(self) -> dict[str, int]:
        """Return the counts of what the tables hold, by the database's own estimates."""
        tables = self.native.tables.values()
        rows = sum(table.rows for table in tables if table.relation is None)
        concepts = sum(table.relation is None for table in tables)
        relations = sum(self._schema.sizes.values())
        attributes = sum(table.rows * len(table.values) for table in tables if table.relation is None)
        qualifiers = sum(table.rows * (len(table.columns) - 2) for table in tables if table.relation is not None)
        qualifiers += sum(table.rows * len(table.bounds) * len(self.native.parts(table, None)) for table in tables)
        return {
            "entities": rows, "concepts": concepts, "rows": rows, "relations": relations, "attributes": attributes,
            "qualifiers": qualifiers, "predicates": len(self._schema.predicates), "sources": len(self.native.sources),
        }  # fmt: skip

    def survey(self) -> Survey:
        """Return the survey of the tables, counted at the first call and again after `refresh`, since an open file is
        not written to.
        """
        result: Survey | None = self._schema.kept.get("survey")
        if result is None:
            result = self._schema.kept["survey"] = survey_of(self.engine.read, self.native, self.engine.scheme)
        return result

    def _shows(self, key: str, qualifier: bool) -> list[list[Any]]:
        try:
            return shown_by(self.engine.read, self.native, key, qualifier)
        except StoreError as error:
            if TOO_LONG not in error.message:
                raise
            # Some row has a number that cannot be read, which is not an error for a query that does not ask for it.
            return []

    def _pulled(self, read: Any) -> Snapshot:
        rows, concepts = alg.AllEntities((EntityKind.ROW,)), alg.AllEntities((EntityKind.CONCEPT,))
        query = self._plans.gathered([(0, alg.Scan(None, None))], [(rows, concepts)])
        return self._plans.records(read(query), self.known_sources).snapshot
