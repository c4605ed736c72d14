"""The tables of a graph in a SQL database: how a graph is written, and how rows are read back as items.

Each graph has a schema of the database to itself.

    source(n, name, location, format, content, terms)
    entity(e, id, name, kind, source, row)                    numbered by name; `source` and `row` of table rows
    declared(e, source, name, kind, row)                      which source declares an entity, and as what
    membership(e, concept, source, row), subclass(concept, parent, source, row)     as stated
    member(concept, e)                                        closed under subclass, no concepts
    statement(f, s, predicate, o, CELL, raw, since, until)    `o` is the entity that is the object, `since` and `until` the validity
    qualifier(f, n, key, o, CELL)
    place(f, n, source, row, raw)                             where a statement comes from, the first one first
    about(format, content, counts, schema, survey)            one row
    edit(n, record)                                           the single changes

Three views combine what queries read of statements (`views`): two have the rows of some tables as records, each with the
name of its table; the third has the entities that a statement leads to.

CELL is kind, text, number, tie, exact, unit, start, stop, precision. `text` is a text, or the name of an entity, so that
the two can be compared; `number` is the nearest float. Where the number itself is different, `exact` is its text and `tie`
orders numbers with the same float. `unit` is a unit, or the form of a text; `start` and `stop` are seconds from 1970
(`engine.values.Time`). Texts are compared by their bytes, so all engines order them by code point.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from condgraph.engine.bounds import slices
from condgraph.engine.errors import StoreDamagedError, pyarrow_or_error
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot.build import Builder, declared
from condgraph.engine.snapshot.cells import PARTS
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.readback import further_sources, place_raws
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import NO_UNIT, UNKNOWN, Kind, Precision, Quantity, Time, Value, formed, parse_number, tie_break
from condgraph.overview.survey import described, packed, survey
from condgraph.sql.terms import NULL, Query, cast, column, known, literal, named, select, together

#: The prefix of the schema of a graph in its database.
PREFIX: Final = "condgraph "
#: Increased when tables of an earlier version would be read wrongly.
FORMAT: Final = 1

Type: TypeAlias = Literal["int", "bigint", "smallint", "double", "text"]
CELL: Final[dict[str, Type]] = {
    "kind": "smallint", "text": "text", "number": "double", "tie": "text", "exact": "text", "unit": "text",
    "start": "bigint", "stop": "bigint", "precision": "smallint",
}  # fmt: skip
TABLES: Final[dict[str, dict[str, Type]]] = {
    "source": {"n": "int", "name": "text", "location": "text", "format": "text", "content": "text", "terms": "text"},
    "entity": {"e": "int", "id": "text", "name": "text", "kind": "smallint", "source": "int", "row": "int"},
    "declared": {"e": "int", "source": "int", "name": "text", "kind": "smallint", "row": "int"},
    "membership": {"e": "int", "concept": "int", "source": "int", "row": "int"},
    "subclass": {"concept": "int", "parent": "int", "source": "int", "row": "int"},
    "member": {"concept": "int", "e": "int"},
    "statement": {
        "f": "int", "s": "int", "predicate": "text", "o": "int", **CELL, "raw": "text", "since": "bigint", "until": "bigint",
    },
    "qualifier": {"f": "int", "n": "int", "key": "text", "o": "int", **CELL},
    "place": {"f": "int", "n": "int", "source": "int", "row": "int", "raw": "text"},
    "about": {"format": "int", "content": "text", "counts": "text", "schema": "text", "survey": "text"},
}  # fmt: skip
#: The table of single changes (`edits`), which no query of a program reads.
EDITS: Final = "edit"
EDIT_COLUMNS: Final[dict[str, Type]] = {"n": "int", "record": "text"}
#: Indexed columns. Columns of text are looked up only by equality, since texts may be longer than an index allows.
INDEXES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("entity", ("e",)), ("entity", ("id",)), ("entity", ("name",)), ("member", ("concept", "e")), ("statement", ("f",)),
    ("statement", ("s",)), ("statement", ("o",)), ("statement", ("predicate",)), ("statement", ("number",)),
    ("statement", ("start",)), ("statement", ("text",)), ("qualifier", ("f",)), ("place", ("f",)),
)  # fmt: skip

Columns = dict[str, Sequence[Any]]


# -- Records -----------------------------------------------------------------------------------------
# Rows of several tables in one result: each begins with its table's name and has its columns in slots of their types.


#: The tables whose rows are records.
TAKEN: Final = ("entity", "membership", "subclass", "qualifier", "place", "statement")


class Layout:
    """The records of some tables: the types of their columns after the first, and the position of each table column
    among these.

    The first of them is the number of the statement or entity that a record is about.
    """

    def __init__(self, tables: dict[str, dict[str, Type]], order: Sequence[Type]) -> None:
        self.tables = tables
        widths = {kind: max(sum(of == kind for of in tables[table].values()) for table in TAKEN) for kind in order}
        self.types = tuple(kind for kind, width in widths.items() for _ in range(width))

    def slots(self, table: str) -> dict[str, int]:
        """Return the position in a record of each column of a table, not counting the record's first column."""
        used: Counter[Type] = Counter()
        result = {}
        for column_name, kind in self.tables[table].items():
            result[column_name] = self.types.index(kind) + used[kind]
            used[kind] += 1
        return result

    def of(self, table: str, relation: exp.Expr) -> exp.Select:
        """Return the rows of a table, read from a relation, as records."""
        cells = {position: column(column_name) for column_name, position in self.slots(table).items()}
        slots = [named(cells.get(position, cast(NULL.copy(), kind)), f"c{position}") for position, kind in enumerate(self.types)]
        return select(named(literal(table), "sort"), *slots).from_(relation, copy=False)


#: The layout of a graph's own tables, which identify entities and statements by numbers.
NUMBERED: Final = Layout(TABLES, ("int", "bigint", "smallint", "double", "text"))


#: The views of records: of statements and of entities, with the number of the statement or entity in `c0`; and the view of the
#: entities that a statement leads to.
FACT_RECORDS, ENTITY_RECORDS, ENDS = "fact_records", "entity_records", "fact_end"
#: The name of the table of the closed subclass relation, where there is one.
BELOW: Final = "below"


def views(stored: Callable[[str], exp.Expr]) -> Iterator[tuple[str, Query]]:
    """Yield the views of a graph's schema; `stored` returns each table."""
    yield FACT_RECORDS, together([NUMBERED.of(table, stored(table)) for table in ("statement", "qualifier", "place")])
    yield ENTITY_RECORDS, NUMBERED.of("entity", stored("entity"))
    leads = [("statement", "s"), ("statement", "o"), ("qualifier", "o")]
    ends = [
        select(column("f"), named(column(end), "e")).from_(stored(table), copy=False).where(known(column(end)), copy=False)
        for table, end in leads
    ]
    yield ENDS, together(ends)


# -- Writing -----------------------------------------------------------------------------------------


def columns(snapshot: Snapshot, content: str, most: int = sys.maxsize) -> Iterator[tuple[str, Columns]]:
    """Yield the columns of each table, for a graph with this content.

    They come in pieces of at most `most` rows (places: of at most `most` statements); each table yields at least one piece.
    """
    get, texts = snapshot.arrays.get, snapshot.texts
    sources = [snapshot.source_of(number) for number in range(len(get("src.name")))]
    yield (
        "source",
        {
            "n": range(len(sources)),
            **{part: [getattr(source, part) for source in sources] for part in ("name", "location", "format", "content", "terms")},
        },
    )
    for part in _parts(snapshot.entities, most):
        places, rows = get("ent.source")[part], get("ent.row")[part]
        size = part.stop - part.start
        yield (
            "entity",
            {
                "e": range(part.start, part.stop),
                "id": texts.take(snapshot.entity_id[part]),
                "name": texts.take(snapshot.entity_name[part]),
                "kind": snapshot.entity_kind[part].tolist(),
                "source": _numbers(places) if len(places) else [None] * size,
                "row": _numbers(rows) if len(places) else [None] * size,
            },
        )
    declarations = declared(snapshot)
    for part in _parts(len(declarations.e), most):
        chunk = declarations.take(np.arange(part.start, part.stop))
        text_numbers = np.where(chunk.name < 0, snapshot.entity_id.take(chunk.e), chunk.name)
        kinds, rows_of_chunk = chunk.kind.tolist(), chunk.row.tolist()
        yield (
            "declared",
            {
                "e": chunk.e.tolist(),
                "source": _numbers(chunk.src),
                "name": texts.take(text_numbers),
                "kind": kinds,
                "row": rows_of_chunk,
            },
        )
    for table, prefix, first, second in (("membership", "mem", "e", "c"), ("subclass", "sub", "c", "p")):
        names, ends = list(TABLES[table]), [get(f"{prefix}.{name}") for name in (first, second, "src", "row")]
        for part in _parts(len(ends[0]), most):
            yield table, dict(zip(names, (end[part].tolist() for end in ends), strict=True))
    offsets = get("con.offsets")
    for part in _parts(len(get("con.items")), most):
        concepts = get("con.entity")[np.searchsorted(offsets, np.arange(part.start, part.stop), side="right") - 1]
        yield "member", {"concept": concepts.tolist(), "e": get("con.items")[part].tolist()}
    for part in _parts(snapshot.statements, most):
        yield "statement", _statements(snapshot, part)
    keys = {number: snapshot.predicate_name(number) for number in np.unique(get("q.key")).tolist()}
    for part in _parts(len(get("q.owner")), most):
        yield (
            "qualifier",
            {
                "f": get("q.owner")[part].tolist(),
                "n": range(part.start, part.stop),
                "key": [keys[number] for number in get("q.key")[part].tolist()],
                **_cells(snapshot, "q", part),
            },
        )
    for part in _parts(snapshot.statements, most):
        yield "place", _places(snapshot, part)
    about = FORMAT, content, json.dumps(snapshot.counts), json.dumps(described(snapshot)), packed(survey(snapshot), content)
    yield "about", dict(zip(TABLES["about"], ([part] for part in about), strict=True))


def _parts(length: int, most: int) -> Iterable[slice]:
    """Split a range into slices, at least one."""
    return slices(length, min(most, length)) if length else (slice(0, 0),)


def as_arrow(kinds: Mapping[str, Type], values: Columns) -> Any:
    """Return columns as an Arrow table; raise `MissingExtraError` without pyarrow."""
    pa = pyarrow_or_error()
    types = {"int": pa.int32(), "bigint": pa.int64(), "smallint": pa.int16(), "double": pa.float64(), "text": pa.large_string()}
    lists = (column if isinstance(column, list) else list(column) for column in (values[name] for name in kinds))
    return pa.table([pa.array(column, types[kind]) for column, kind in zip(lists, kinds.values(), strict=True)], list(kinds))


def row_count(snapshot: Snapshot) -> int:
    """Return how many rows `columns` yields, in all tables."""
    arrays = ("src.name", "mem.src", "sub.src", "con.items", "q.owner", "prov.stmt")
    rows = sum(len(snapshot.arrays.get(name)) for name in arrays)
    # Each statement is a row, and its place is another.
    return rows + snapshot.entities + len(declared(snapshot).e) + 2 * snapshot.statements + 1


def _numbers(numbers: NDArray[Any]) -> list[int | None]:
    return [None if number < 0 else number for number in numbers.tolist()]


def _statements(snapshot: Snapshot, part: slice) -> Columns:
    get, texts = snapshot.arrays.get, snapshot.texts
    numbers = np.arange(part.start, part.stop, dtype=np.int32)
    first, split, size = snapshot.relations, snapshot.split(numbers), len(numbers)
    predicates = snapshot.predicates(numbers).tolist()
    names = {number: snapshot.predicate_name(number) for number in set(predicates)}
    own_attributes = slice(max(part.start - first, 0), max(part.stop - first, 0))
    relations = _relations(snapshot, slice(part.start, part.start + split))
    attributes = _cells(snapshot, "att", own_attributes)
    raws = get("att.raw")[own_attributes].tolist() if len(get("att.raw")) else [-1] * (size - split)
    since: list[int | None] = [None] * size
    until = list(since)
    valid = slice(*np.searchsorted(get("val.stmt"), [part.start, part.stop]).tolist())
    for f, start, stop in zip(*(get(f"val.{name}")[valid].tolist() for name in ("stmt", "start", "end")), strict=True):
        since[f - part.start], until[f - part.start] = start, stop
    return {
        "f": range(part.start, part.stop),
        "s": snapshot.subjects(numbers).tolist(),
        "predicate": [names[number] for number in predicates],
        **{name: [*relations[name], *attributes[name]] for name in relations},
        "raw": [None] * split + [None if raw < 0 else texts[raw] for raw in raws],
        "since": since,
        "until": until,
    }


def _relations(snapshot: Snapshot, part: slice) -> dict[str, list[Any]]:
    """Return the objects of relations, and the parts of their cells."""
    entities = snapshot.relation_object[part]
    names = snapshot.texts.take(snapshot.entity_name.take(entities))
    filled = {"o": entities.tolist(), "kind": [int(Kind.ENTITY)] * len(entities), "text": names}
    empty: list[Any] = [None] * len(entities)
    return {name: filled.get(name, empty) for name in ("o", *CELL)}


def _cells(snapshot: Snapshot, family: str, part: slice) -> dict[str, list[Any]]:
    """Return the object and the parts of each cell."""
    get, texts = snapshot.arrays.get, snapshot.texts
    parts = {name: get(f"{family}.{name}")[part] for name, _ in PARTS}
    floats = parts["a"].view(np.float64).tolist()
    units: dict[int, str | None] = {-1: NO_UNIT}
    cells: list[tuple[Any, ...]] = []
    empty = (None,) * 5
    for x, kind, a, b, ref, unit, precision in zip(floats, *(parts[part].tolist() for part, _ in PARTS), strict=True):
        if kind == Kind.TEXT:
            cells.append((None, kind, texts[ref], None, None, None, texts[unit] if unit >= 0 else None, None, None, None))
        elif kind == Kind.QUANTITY:
            if unit not in units:
                units[unit] = texts[unit]
            exact = None if ref < 0 else texts[ref]
            tie = None if exact is None else tie_break(parse_number(exact))
            cells.append((None, kind, None, x, None if tie == "1" else tie, exact, units[unit], None, None, None))
        elif kind == Kind.TIME:
            cells.append((None, kind, *empty, a, b, precision))
        elif kind == Kind.ENTITY:
            cells.append((ref, kind, snapshot.name(ref), *empty, None, None))
        else:
            cells.append((None, kind, *empty, None, None, None))
    transposed = zip(*cells, strict=True) if cells else ([] for _ in range(len(CELL) + 1))
    return {name: list(column) for name, column in zip(("o", *CELL), transposed, strict=True)}


def _places(snapshot: Snapshot, part: slice) -> Columns:
    numbers = np.arange(part.start, part.stop, dtype=np.int32)
    further, raws = further_sources(snapshot, numbers), place_raws(snapshot, numbers)
    rows: list[tuple[int, int, int, int, str | None]] = []
    first_places = zip(numbers.tolist(), snapshot.source.take(numbers).tolist(), snapshot.row.take(numbers).tolist(), strict=True)
    for position, (f, source, row) in enumerate(first_places):
        raw_texts = raws.get(f)
        for n, (source_number, row_number) in enumerate(((source, row), *further.get(position, ()))):
            rows.append((f, n, source_number, row_number, None if raw_texts is None else raw_texts[n]))
    transposed: Iterable[Any] = zip(*rows, strict=True) if rows else ([] for _ in TABLES["place"])
    return {name: list(column) for name, column in zip(TABLES["place"], transposed, strict=True)}


# -- Reading -----------------------------------------------------------------------------------------


#: Kinds of rows, in the order in which they are read.
Sort: TypeAlias = Literal["entity", "declared", "membership", "subclass", "qualifier", "place", "statement"]
Row = tuple[Any, ...]


class Graph:
    """Rows of the tables of a graph, or of a part of it, as items. `sources` are those of the whole graph."""

    def __init__(self, rows: dict[str, list[Row]], sources: Sequence[Source]) -> None:
        self._rows, self._sources = rows, sources
        self._ids = {row[0]: row[1] for row in rows.get("entity", ())}

    @property
    def ids(self) -> dict[int, str]:
        """The ids of the entities by their numbers."""
        return self._ids

    def snapshot(self) -> Snapshot:
        """Return the items as a graph of their own."""
        builder = Builder()
        builder.begin(Source(""))
        try:
            builder.add(self.items())
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise StoreDamagedError(f"rows of the graph's tables do not fit together: {error!r}", hint="load it again") from None
        builder.finish()
        return Snapshot.of(*lay_out(builder))

    def _place(self, number: int, row: int) -> tuple[str, int]:
        return self._sources[number].name, row

    def items(self) -> Iterator[Item]:
        """Yield all items, sources first."""
        rows, ids = self._rows, self._ids
        yield from self._sources
        if "declared" in rows:
            for e, source, name, kind, row in rows["declared"]:
                entity = Entity(ids[e], name, EntityKind(kind), max(row, 0))
                yield Sourced(entity, () if source is None else (self._place(source, entity.row),))
        else:
            for _, entity_id, name, kind, source, row in rows.get("entity", ()):
                entity = Entity(entity_id, name, EntityKind(kind), max(row or 0, 0))
                yield entity if source is None else Sourced(entity, (self._place(source, entity.row),))
        for e, concept, source, row in rows.get("membership", ()):
            yield Sourced(Member(ids[e], ids[concept], row), (self._place(source, row),))
        for concept, parent, source, row in rows.get("subclass", ()):
            yield Sourced(Subclass(ids[concept], ids[parent], row), (self._place(source, row),))
        yield from (statement for _, statement in self.statements())

    def statements(self) -> Iterator[tuple[int, Sourced]]:
        """Yield the statements with their numbers."""
        qualifiers: dict[int, list[tuple[str, Ref | Value]]] = {}
        for f, _, key, o, *cell in sorted(self._rows.get("qualifier", ()), key=lambda row: (row[0], row[1])):
            qualifiers.setdefault(f, []).append((key, self._value(o, cell)))
        places: dict[int, list[tuple[tuple[str, int], str | None]]] = {}
        for f, _, source, row, raw in sorted(self._rows.get("place", ()), key=lambda row: (row[0], row[1])):
            places.setdefault(f, []).append((self._place(source, row), raw))
        for f, s, predicate, o, *values in self._rows.get("statement", ()):
            cell, raw = values[: len(CELL)], values[len(CELL)]
            stated = places[f]
            statement = Statement(
                self._ids[s], predicate, self._value(o, cell), tuple(qualifiers.get(f, ())), row=stated[0][0][1], raw=raw
            )
            if all(raw_text is None for _, raw_text in stated):
                yield f, Sourced(statement, tuple(place for place, _ in stated))
                continue
            # A statement that sources write in different ways is yielded once for each way.
            for raw_text in dict.fromkeys(raw_text for _, raw_text in stated):
                same_text = tuple(place for place, text in stated if text == raw_text)
                yield f, Sourced(replace(statement, raw=raw_text), same_text)

    def _value(self, o: int | None, cell: Sequence[Any]) -> Ref | Value:
        return value_of(cell) if o is None else Ref(self._ids[o])


def value_of(cell: Sequence[Any]) -> Value:
    """Return the value in the columns of a cell, which must not be an entity."""
    kind, text, number, _, exact, unit, start, stop, precision = cell
    if kind == Kind.TEXT:
        return text if unit is None else formed(text, unit)
    if kind == Kind.QUANTITY:
        if exact is not None:
            return Quantity(parse_number(exact), unit)
        return Quantity(int(number) if number.is_integer() else number, unit)
    return Time(start, stop, Precision(precision)) if kind == Kind.TIME else UNKNOWN
