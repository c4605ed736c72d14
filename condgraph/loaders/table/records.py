"""Tables of records: JSON, and lists of dictionaries.

A record is a row, its keys are columns, in the order in which they first occur; a record may lack
some. A record inside a record is flattened ("a.b"), a list of plain values gives one statement for
each, a list of lists is its JSON text. The records of a list become rows of a further table, `source/key` (`source/key/key` where
lists stand in lists), which refer to the row that holds them by a predicate called like its table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from condgraph.engine.bounds import check
from condgraph.engine.errors import FormatError, LoadError, numbered
from condgraph.engine.facts import Batch, Entity, Item, Ref, Sourced, Statement
from condgraph.engine.values import Value, collapse, text_of
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.export.write import statements_of
from condgraph.loaders.table.batches import column_of
from condgraph.loaders.table.cells import Profile
from condgraph.loaders.table.flat import Bad, Flat, flatten
from condgraph.loaders.table.objects import ROWS_A_CHUNK, BadRecord, Field, printed
from condgraph.loaders.table.options import CELL_OPTIONS, TableOptions, texts_option
from condgraph.loaders.table.rows import Table, column_names

_RECORDS_IN_MEMORY: Final = 50_000
#: Tables that the lists of a source may become.
_MOST_TABLES: Final = 1_000


#: A record with its 1-based number.
Record: TypeAlias = tuple[int, Flat]
#: Gives the records again, with the fraction of the source read; bad ones are reported to the
#: reading, if there is one.
OpenRecords: TypeAlias = Callable[[Reading | None], Iterator[tuple[Record, float]]]


class _Rows:
    """The records of one table: its columns, and the tables of its lists.

    `path` is the way to it, "" for that of the source itself.
    """

    def __init__(self, reading: Reading, path: str, missing: frozenset[str]) -> None:
        self.reading, self.path, self._missing = reading, path, missing
        self.fields: dict[str, Field] = {}
        self.below: dict[str, _Rows] = {}
        self.number = 0
        #: Records whose value of a key is kept as JSON, by key.
        self.json: dict[str, int] = {}
        #: What rows refer by to the row that holds them.
        self.holder = ""
        self.table: Table

    def look(self, flat: Flat, tables: dict[str, _Rows]) -> None:
        """Look at a record in the first pass; `tables` has all tables by their paths."""
        for key, values in flat.values.items():
            column = self.fields.get(key)
            if column is None:
                column = self.fields[key] = Field(Profile(self._missing))
            column.look(values)
        for key in flat.json:
            self.json[key] = self.json.get(key, 0) + 1
        for key, records in flat.below.items():
            rows = self.below.get(key)
            if rows is None:
                rows = self.below[key] = self._further(key, tables)
            for record in records:
                rows.look(record, tables)

    def _further(self, key: str, tables: dict[str, _Rows]) -> _Rows:
        top = tables[""].reading
        stem = f"{self.path}/{collapse(key) or 'list'}" if self.path else collapse(key) or "list"
        path, count = stem, 1
        while path in tables:
            count += 1
            path = f"{stem} ({count})"
        if count > 1:
            top.warn(f"two lists would be the table {stem!r}; one of them is {path!r}", field=key)
        if len(tables) > _MOST_TABLES:
            raise LoadError(
                f"lists of records stand at more than {_MOST_TABLES:,} places",
                file=top.source.location,
                hint="keys that are data are better the values of one key",
            )
        source = replace(top.source, name=f"{top.source.name}/{path}")
        reading = Reading(source, top.on_error, None, top.problems, known=top.known, scope=f"{top.within}/{path}")
        rows = tables[path] = _Rows(reading, path, self._missing)
        rows.holder = self.reading.source.name.rpartition("/")[2]
        return rows

    def settle(self, options: TableOptions) -> None:
        """Decide what the columns are."""
        names = column_names([*self.fields, self.holder] if self.path else list(self.fields), self.reading)
        self.holder = names.pop() if self.path else ""
        self.table = Table(self.reading, options, names)
        for column in self.fields.values():
            column.flush()
        self.table.look_for_commas({at: column.profile for at, column in enumerate(self.fields.values())})
        for at, column in enumerate(self.fields.values()):
            column.settle(self.table, at)
        for key, count in self.json.items():
            lists = numbered(count, "list of lists is", "lists of lists are")
            self.reading.warn(f"{lists} kept as JSON text", field=key)
        for key in self.below:
            if any(name == key or name.startswith(f"{key}.") for name in self.fields) and self._has(key):
                self.reading.warn(
                    "this is a list of records in some rows, which are rows of a further table, and something else in others",
                    field=key,
                )

    def _has(self, key: str) -> bool:
        return any(column.there for name, column in self.fields.items() if name == key or name.startswith(f"{key}."))

    def items(self, chunk: Sequence[tuple[int, Flat, str]]) -> Iterator[Item]:
        """The items of some rows, each with its number and the id of the row that holds it, and of
        what is in their lists.
        """
        keys, table = list(self.fields), self.table
        entities, kept = table.rows(
            [number for number, _, _ in chunk],
            None if table.key is None else [_first(flat, keys[table.key]) for _, flat, _ in chunk],
            None if table.name_column is None else [_first(flat, keys[table.name_column]) for _, flat, _ in chunk],
        )
        rows = list(chunk) if kept is None else [chunk[at] for at in kept]
        own = self._own(entities, rows)
        yield from own if not self.path else self._sourced(own)
        for key, below in self.below.items():
            prefix = f"{below.reading.within}/"
            further: list[tuple[int, Flat, str]] = []
            for entity, (_, flat, _) in zip(entities, rows, strict=True):
                if table.key is not None and entity.id.startswith(prefix):
                    raise LoadError(
                        f"the key of this row is an id of rows of {key!r}", file=self.reading.source.location, row=entity.row
                    )
                for record in flat.below.get(key, ()):
                    below.number += 1
                    further.append((below.number, record, entity.id))
            for start in range(0, len(further), ROWS_A_CHUNK):
                check()
                yield from below.items(further[start : start + ROWS_A_CHUNK])

    def _own(self, entities: Sequence[Entity], rows: Sequence[tuple[int, Flat, str]]) -> Iterator[Item]:
        yield from entities
        if self.path:
            for entity, (number, _, holder) in zip(entities, rows, strict=True):
                yield Statement(entity.id, self.holder, Ref(holder), (), number)
        for at, (key, column) in enumerate(self.fields.items()):
            batch = self._column(
                at, column, [(entity, flat.values.get(key, ())) for entity, (_, flat, _) in zip(entities, rows, strict=True)]
            )
            if batch is not None:
                yield batch

    def _column(self, at: int, column: Field, cells: Sequence[tuple[Entity, Sequence[Any]]]) -> Batch | None:
        table = self.table
        subjects: list[str] = []
        rows: list[int] = []
        values: list[Value] = []
        raws: list[str | None] = []
        for entity, several in cells:
            for value in several if not column.chosen.lists else column.elements(several):
                try:
                    cell = column.cell(value)
                except BadRecord as error:
                    table.reading.bad(error.message, row=entity.row, field=table.names[at])
                    continue
                if cell is not None:
                    subjects.append(entity.id)
                    rows.append(entity.row)
                    values.append(cell[0])
                    raws.append(cell[1])
        if column.infinite:
            infinite = numbered(column.infinite, "infinite number stays", "infinite numbers stay")
            table.reading.warn(f"{infinite} text", field=table.names[at])
            column.infinite = 0
        if not values:
            return None
        table.check(at, values, rows)
        some = raws if any(raw is not None for raw in raws) else None
        if at in table.refs:
            return Batch(subjects, table.names[at], table.ids_of(at, [text_of(value) for value in values], rows), rows, some)
        if table.declared(at) == "text":
            values = [text_of(value) for value in values]
        return Batch(subjects, table.names[at], column_of(values), rows, some)

    def _sourced(self, items: Iterator[Item]) -> Iterator[Item]:
        """Items of a table that is not the source itself."""
        source = self.reading.source.name
        for item in items:
            if isinstance(item, Batch):
                for one in statements_of(item):
                    yield Sourced(one, ((source, one.row),))
            elif isinstance(item, (Entity, Statement)):
                yield Sourced(item, ((source, item.row),))


def read_records(open_records: OpenRecords, reading: Reading, options: Options) -> Iterator[Item]:
    """Records as facts; they are read twice where there are many. Raises `LoadError` where there is
    no record.
    """
    missing = TableOptions.of(options).missing
    top = _Rows(reading, "", missing)
    tables = {"": top}
    memory: list[tuple[Record, float]] | None = []
    for found, (record, fraction) in enumerate(open_records(reading), 1):
        top.look(record[1], tables)
        if memory is not None:
            memory.append((record, fraction))
            if found > _RECORDS_IN_MEMORY:
                memory = None
        if found % ROWS_A_CHUNK == 0:
            reading.advance(0, fraction / 2)
    if not top.fields and not top.below:
        raise LoadError("there is no record with a field", file=reading.source.location)
    given = _options_of(tables, options)
    for path, rows in tables.items():
        rows.settle(TableOptions.of(given[path]))
        if path:
            yield rows.reading.source
    chunk: list[tuple[int, Flat, str]] = []
    fraction = 0.0
    for (number, flat), fraction in memory if memory is not None else open_records(None):
        chunk.append((number, flat, ""))
        if len(chunk) >= ROWS_A_CHUNK:
            yield from top.items(chunk)
            reading.advance(len(chunk), 0.5 + fraction / 2)
            chunk = []
    yield from top.items(chunk)
    for path, rows in tables.items():
        rows.table.finish()
        if path:
            reading.skipped += rows.reading.skipped
            reading.warned += rows.reading.warned
    reading.advance(len(chunk), 1.0)


def _options_of(tables: Mapping[str, _Rows], options: Options) -> dict[str, dict[str, Any]]:
    """The options of each table. Those about columns of further tables ("items.price") are theirs;
    what is of no table is left with the source's own, which says so.
    """
    given = {path: {key: options[key] for key in CELL_OPTIONS if key in options} for path in tables}
    given[""].update({key: options[key] for key in ("key", "name_column") if key in options})
    owners: dict[str, list[tuple[str, str]]] = {}
    for path, rows in tables.items():
        for column in rows.fields:
            owners.setdefault(collapse(f"{path}.{column}" if path else column), []).append((path, column))
    for option in ("types", "refs", "join"):
        said = options.get(option)
        if isinstance(said, str) and option == "types":
            for one in given.values():
                one[option] = said
        elif isinstance(said, Mapping):
            for name, value in said.items():
                for path, column in owners.get(collapse(str(name)), [("", name)]):
                    given[path].setdefault(option, {})[column] = value
        elif said is not None and not (option == "join" and said is False):
            for name in texts_option(options, option):
                for path, column in owners.get(collapse(name), [("", name)]):
                    given[path].setdefault(option, []).append(column)
    return given


def _first(flat: Flat, key: str) -> str | None:
    return next((text for value in flat.values.get(key, ()) if (text := printed(value))), None)


def bad_of(report: Reading | None, number: int) -> Bad:
    """Reports what is bad in a record, or in the records of its lists, if somebody listens."""

    def bad(error: BadRecord) -> None:
        if report is not None:
            report.bad(error.message, row=number, field=error.field)

    return bad


def read_dicts(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """A list of dictionaries as facts."""
    if not is_records(source):
        raise FormatError(f"an object of type {type(source).__name__} is not a list of dictionaries", file=reading.source.location)

    def records(report: Reading | None) -> Iterator[tuple[Record, float]]:
        for number, record in enumerate(source, 1):
            bad = bad_of(report, number)
            try:
                if not isinstance(record, Mapping):
                    raise BadRecord(f"a record is a dictionary, not {type(record).__name__}")
                yield (number, flatten(record, bad)), number / len(source)
            except BadRecord as error:
                bad(error)

    yield from read_records(records, reading, options)


def is_records(source: Any) -> bool:
    """Whether an object is a list of dictionaries, by its first element."""
    return isinstance(source, (list, tuple)) and bool(source) and isinstance(source[0], Mapping)
