"""What the rows of several tables with keys between them become: ids, references, values, a chunk at a
time and column by column.

A table gives a concept called like it, and each row an entity of it: `products/1` by its primary
key (`order-details/10248+11` where that has two columns), or by the row's number where the table
has none. It is named by its name column, else by its id. A column is a predicate called by its
header, as it stands; a reference's objects are the rows it points to. A reference of several
columns is called by all of them ("order + line"), and these stay beside it. A row of a table of
relations is one statement between the rows that its first two references point to, and its other
columns are qualifiers.

Tables are read twice, and once more where others refer to a column that is not their key, unless
they are small; memory is bounded whatever their size, but for the keys.

Rows of several tables that other sources referred to before they came.

A table that was loaded alone, with `refs=` or `join=`, leaves entities where rows are to be. When
the folder (workbook, database) with these rows comes, the rows are those entities: they take over
the ids, as rows of a single table do (`table.targets`). What is still missing is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, repeat
from operator import add
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np

from condgraph.engine.bounds import check
from condgraph.engine.errors import LoadError, shortened
from condgraph.engine.facts import Batch, Entity, EntityKind, Ids, Item, Members, Ref, Rows, Sourced, Statement, Texts
from condgraph.engine.values import Value, collapse
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.folder.declared import Declared, of_file, of_options
from condgraph.loaders.folder.guess import join_by_cells, join_text, questions, worth_a_look
from condgraph.loaders.folder.keys import Reference, find_keys, may_be_keys
from condgraph.loaders.folder.tab import Tab
from condgraph.loaders.table.column_types import Cell
from condgraph.loaders.table.fields import Fields
from condgraph.loaders.table.joins import GraphTables, Seen, SpilledSeen, SpilledValues, Values, near_keys, parts, seen_by
from condgraph.loaders.table.rows import column_of, read_whole
from condgraph.loaders.table.text import Chunk
from condgraph.loaders.validity import with_times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from condgraph.engine.snapshot.spill import SpilledFiles


Tabs: TypeAlias = Mapping[str, Tab]
Columns: TypeAlias = Sequence[Sequence[str]]


class Problems:
    """The problems of a chunk, found column by column."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int, bool, str, int, str | None]] = []

    def add(self, at: int, rank: int, message: str, number: int, field: str | None, *, bad: bool = False) -> None:
        """Something about the row at a place of the chunk; of one row the lowest rank is told first."""
        self._found.append((at, rank, bad, message, number, field))

    def tell(self, tab: Tab) -> None:
        """Tell them, row by row; raises what is bad where that is wanted."""
        for _, _, bad, message, number, field in sorted(self._found, key=lambda item: item[:2]):
            (tab.reading.bad if bad else tab.reading.warn)(message, row=number, field=field)


#: Keys of a reference whose rows stay looked up where memory is bounded.
_MOST_LOOKED_UP: Final = 1 << 16


class ReferredRows(dict[str, str | tuple[str, ...]]):
    """The rows that keys of a reference stand for, looked up once each: one id, or several, or none."""

    def __init__(self, tabs: Tabs, reference: Reference, files: SpilledFiles | None) -> None:
        self.tabs, self.reference = tabs, reference
        self._bounded = files is not None
        #: The keys that stand for none.
        self.lost = seen_by(files)

    def of(self, keys: Sequence[str | None]) -> list[str | tuple[str, ...] | None]:
        """The rows of some keys; None where the key is missing."""
        lacking = [key for key in dict.fromkeys(keys) if key is not None and key not in self]
        if self._bounded and len(self) + len(lacking) > _MOST_LOOKED_UP:
            self.clear()
            lacking = [key for key in dict.fromkeys(keys) if key is not None]
        if lacking:
            spelled = list(map(self.reference.spelled, lacking))
            found = [self.tabs[target].rows_of(key, spelled) for target, key in self.reference.targets]
            for text, *rows in zip(lacking, *found, strict=True):
                some = tuple(dict.fromkeys(row for row in rows if row is not None))
                self[text] = some[0] if len(some) == 1 else some
            none = [key for key in lacking if self[key] == ()]
            self.lost.firsts(none, range(len(none)))
        return [None if key is None else self[key] for key in keys]

    def at_once(self, keys: Sequence[str | None]) -> list[str] | None:
        """The rows that many keys stand for, each one; None where they have to be looked up one by
        one.
        """
        (target, key), *others = self.reference.targets
        tab = self.tabs[target]
        if others or self.reference.pointed or tab.taken or key != tab.columns.primary:
            return None
        if not tab.columns.values[key].holds_all(keys):
            return None
        return list(map(add, repeat(f"{target}/"), cast("Sequence[str]", keys)))

    def said(self, text: str) -> str:
        """What there is to say of a key that is none."""
        return f"{text!r} is no key of " + " or ".join(repr(target) for target, _ in self.reference.targets)


class RowIds:
    """The ids of the rows of a table, by their keys."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self._seen = seen_by(tab.reading.spill)

    def of(self, chunk: Chunk, problems: Problems) -> tuple[tuple[str, ...], list[int] | None]:
        """The ids of the rows of a chunk, and their places there (None: all); a row whose key is
        missing or repeated is bad.
        """
        ids, kept = self._own(chunk, problems)
        taken = self.tab.taken
        return (tuple([taken.get(ident, ident) for ident in ids]) if taken else ids), kept

    def _own(self, chunk: Chunk, problems: Problems) -> tuple[tuple[str, ...], list[int] | None]:
        """The same, of rows that nothing referred to before."""
        tab, key = self.tab, self.tab.columns.primary
        if key is None:
            return tuple([f"{tab.name}/{number}" for number in chunk.numbers]), None
        keys = tab.keys(key, chunk)
        if tab.columns.unique(key):
            return tuple(map(add, repeat(f"{tab.name}/"), cast("list[str]", keys))), None
        there = [(text, number) for text, number in zip(keys, chunk.numbers, strict=True) if text is not None]
        firsts = iter(self._seen.firsts([text for text, _ in there], [number for _, number in there]))
        header = " + ".join(tab.names[column] for column in key)
        idents: list[str] = []
        kept: list[int] = []
        for at, (text, number) in enumerate(zip(keys, chunk.numbers, strict=True)):
            if text is None:
                problems.add(at, 0, "the row has no key", number, header, bad=True)
            elif (first := next(firsts)) != number:
                problems.add(at, 0, f"the key {text!r} stands in row {first} already", number, header, bad=True)
            else:
                idents.append(f"{tab.name}/{text}")
                kept.append(at)
        return tuple(idents), None if len(kept) == len(keys) else kept


class GoodRows:
    """The rows of a chunk that are read, without those that are bad: their places in it, their
    numbers, their columns.
    """

    def __init__(self, chunk: Chunk, kept: list[int] | None) -> None:
        self.chunk, self._kept = chunk, kept
        self.places: Sequence[int] = range(len(chunk.numbers)) if kept is None else kept
        self.numbers = chunk.numbers if kept is None else [chunk.numbers[at] for at in kept]
        self.rows: NDArray[np.int32] = np.asarray(self.numbers, np.int32)

    def column(self, at: int) -> Sequence[str]:
        """The cells of a column."""
        column = self.chunk.columns[at]
        return column if self._kept is None else [column[item] for item in self._kept]

    def keys(self, tab: Tab, key: tuple[int, ...]) -> list[str | None]:
        """The keys in some columns."""
        keys = tab.keys(key, self.chunk)
        return keys if self._kept is None else [keys[item] for item in self._kept]


class Pointer:
    """A reference of a table: from keys in its columns to rows of others. `rank` is its place among
    the references of a row.
    """

    def __init__(self, tab: Tab, tabs: Tabs, reference: Reference, rank: int) -> None:
        self.tab, self.reference, self.rank = tab, reference, rank
        self.found = ReferredRows(tabs, reference, tab.reading.spill)
        self.header = " + ".join(tab.names[at] for at in reference.columns)

    def batches(self, ids: Sequence[str], rest: GoodRows, problems: Problems) -> Iterator[Batch]:
        """What the reference says of some rows."""
        source = self.tab.source.name
        keys = rest.keys(self.tab, self.reference.columns)
        every = self.found.at_once(keys)
        idents = self.found.of(keys) if every is None else []
        if every is None and set(map(type, idents)) == {str}:
            every = cast("list[str]", idents)
        if every is not None:
            if every:
                yield Batch(ids, self.header, Ids(every), cast("Sequence[int]", rest.rows), source=source)
            return
        things: list[tuple[str, str, int]] = []
        texts: list[tuple[str, str, int, str | None]] = []
        for at, (key, rows) in enumerate(zip(keys, idents, strict=True)):
            if key is None or rows is None:
                continue
            number = rest.numbers[at]
            things += [(ids[at], item, number) for item in ((rows,) if isinstance(rows, str) else rows)]
            if not isinstance(rows, str):
                self._tell(key, rows, rest.places[at], number, problems)
                if not rows and len(self.reference.columns) == 1:
                    cell = rest.column(self.reference.columns[0])[at]
                    texts.append((ids[at], key, number, None if key == cell else cell))
        if things:
            subjects, objects, numbers = zip(*things, strict=True)
            yield Batch(subjects, self.header, Ids(objects), numbers, source=source)
        if texts:
            subjects, values, numbers, raws = zip(*texts, strict=True)
            yield Batch(subjects, self.header, Texts(values), numbers, raws, source=source)

    def qualify(self, qualifiers: Sequence[list[tuple[str, Ref | Value]]], rest: GoodRows, problems: Problems) -> None:
        """Add what the reference says of some rows to their qualifiers."""
        keys = rest.keys(self.tab, self.reference.columns)
        for at, (key, rows) in enumerate(zip(keys, self.found.of(keys), strict=True)):
            if key is None or rows is None:
                continue
            if isinstance(rows, str):
                qualifiers[at].append((self.header, Ref(rows)))
                continue
            self._tell(key, rows, rest.places[at], rest.numbers[at], problems)
            qualifiers[at].extend((self.header, thing) for thing in (map(Ref, rows) if rows else (key,)))

    def end(self, key: str | None, result: str | tuple[str, ...] | None, at: int, number: int, problems: Problems) -> str | None:
        """The row at an end of a relation, of those that its key stands for; None where there is none, or several, which is bad."""
        if isinstance(result, str):
            return result
        said = "the key is missing" if key is None else self.found.said(key)
        if result:
            said = f"{key!r} is a key of several tables: {' and '.join(result)}"
        said += ", so that there is nothing to relate"
        problems.add(at, self.rank, said, number, self.header, bad=True)
        return None

    def finish(self) -> None:
        """Say which keys that are none would be some but for case or leading zeros; after all rows."""
        for target, key in self.reference.targets if self.found.lost else ():
            near = near_keys(map(self.reference.spelled, self.found.lost), self.found.tabs[target].known(key), target)
            if near:
                self.tab.reading.warn(near, field=self.header)

    def _tell(self, key: str, rows: Sequence[str], at: int, number: int, problems: Problems) -> None:
        """Say that a key stands for several rows, or for none."""
        if rows:
            message = f"{key!r} is a key of several tables, and stands for {' and '.join(rows)}"
        else:
            kept = "the cell is kept as text" if len(self.reference.columns) == 1 else "the cells are kept"
            message = f"{self.found.said(key)}; {kept}"
        problems.add(at, self.rank, message, number, self.header)


class CellValues:
    """How the columns of a table that are no references are read."""

    def __init__(self, tab: Tab, skipped: frozenset[int]) -> None:
        self.tab = tab
        self.types = {at: tab.table.decide(at, profile) for at, profile in enumerate(tab.profiles) if at not in skipped}
        self.types.update(
            (at, replace(self.types[at], lists=False, separator=mark)) for at, mark in tab.separators.items() if at in self.types
        )
        self._readers: dict[int, Callable[[str], Cell | None]] = {at: item.reader() for at, item in self.types.items()}
        #: Of columns the first row whose cell is not what the column is, and how many there are.
        self._texts: dict[int, list[int]] = {}
        for at in tab.separators.keys() & skipped:
            tab.reading.warn("lists in cells of references are not read, and the cells stay whole", field=tab.names[at])

    def batches(self, ids: Sequence[str], rest: GoodRows) -> Iterator[Batch]:
        """What the cells say of some rows."""
        for at in self.types:
            batch = self._whole(at, ids, rest)
            if batch is None:
                batch = self._batch(at, ids, rest)
            if len(batch):
                yield batch

    def _whole(self, at: int, ids: Sequence[str], rest: GoodRows) -> Batch | None:
        column = rest.column(at)
        whole = read_whole(column, self.types[at]) if isinstance(column, Fields) else None
        if whole is None:
            return None
        objects, raws, there = whole
        rows = rest.rows
        if not there.all():
            ids, rows = list(compress(ids, there)), rows[there]
        return Batch(ids, self.tab.names[at], objects, cast("Sequence[int]", rows), raws, source=self.tab.source.name)

    def _batch(self, at: int, ids: Sequence[str], rest: GoodRows) -> Batch:
        column, numbers = rest.column(at), rest.numbers
        if self.types[at].holds_lists:
            places, column = self.types[at].elements(column)
            ids, numbers = [ids[place] for place in places], [numbers[place] for place in places]
        cells = self.read(at, column, numbers)
        if None in cells:
            there = [cell is not None for cell in cells]
            ids, numbers = list(compress(ids, there)), list(compress(numbers, there))
        values = [cell[0] for cell in cells if cell is not None]
        raws = [cell[1] for cell in cells if cell is not None]
        return Batch(ids, self.tab.names[at], column_of(values), numbers, raws, source=self.tab.source.name)

    def read(self, at: int, column: Sequence[str], numbers: Sequence[int]) -> list[Cell | None]:
        """The cells of a column one by one; which of them are not what the column is, is remembered."""
        chosen = self.types[at]
        # The memory of a reader costs more than it saves where cells rarely come again.
        read = chosen.read if len(set(column)) * 2 > len(column) else self._readers[at]
        cells = list(map(read, column))
        if chosen.kind not in ("text", "form"):
            texts = [number for number, cell in zip(numbers, cells, strict=True) if cell is not None and isinstance(cell[0], str)]
            if texts:
                self._texts.setdefault(at, [texts[0], 0])[1] += len(texts)
        return cells

    def qualifiers(self, rest: GoodRows) -> list[list[tuple[str, Ref | Value]]]:
        """The values of some rows, by header, as qualifiers."""
        result: list[list[tuple[str, Ref | Value]]] = [[] for _ in rest.numbers]
        for at in self.types:
            header = self.tab.names[at]
            places, column = self.types[at].elements(rest.column(at))
            cells = self.read(at, column, [rest.numbers[place] for place in places])
            for item, cell in zip(places, cells, strict=True):
                if cell is not None:
                    result[item].append((header, cell[0]))
        return result

    def warn(self) -> None:
        """Say which cells are not what their columns are, in the order in which they stand."""
        for position, (first, count) in sorted(self._texts.items(), key=lambda item: (item[1][0], item[0])):
            kind = {"number": "numbers", "time": "times"}.get(self.types[position].kind, "clock times")
            stay = f"{count} cells stay" if count > 1 else "a cell stays"
            self.tab.reading.warn(f"{stay} text in a column of {kind}", row=first, field=self.tab.names[position])


#: Keys that one warning names.
_NAMED = 5


def meet(tabs: Tabs, reading: Reading) -> None:
    """Give rows the ids by which other sources refer to them; after keys were found, before any row
    is read.
    """
    first = GraphTables(reading.known, gone=reading.gone, files=reading.spill)
    if first.snapshot is None:
        return
    bare: dict[str, set[str]] = {}
    for tab in tabs.values():
        primary = tab.columns.primary
        if primary is None or tab.columns.joins:
            continue
        graph_tables = first.of(tab.source.name)
        taken, lost = _known(tab.columns.of(primary), first, graph_tables, tab.name)
        _lost(tab, lost)
        tab.taken = {f"{tab.name}/{key}": ident for key, ident in taken.items()}
        header = " + ".join(tab.names[at] for at in primary)
        referred = _among(tab.columns.of(primary), graph_tables.referred(header, tab.source.name))
        bare[tab.name] = {key for key, there in referred if there and key not in taken}
    claimed = Counter(key for found in bare.values() for key in found)
    for name, found in bare.items():
        several = {key for key in found if claimed[key] > 1}
        if several:
            said = f"other sources refer to {_some(several)}, which is a key of several tables here; join= says which is meant"
            tabs[name].reading.warn(said)
        tabs[name].taken.update((f"{name}/{key}", key) for key in found - several)


def _among(keys: Values | SpilledValues, texts: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Texts, with whether each is a key."""
    for part in parts(texts):
        yield from zip(part, keys.holds(part), strict=True)


def _known(
    keys: Values | SpilledValues, first: GraphTables, graph_tables: GraphTables, name: str
) -> tuple[dict[str, str], set[str]]:
    """The ids by which rows with some keys are known already, and the keys that are known and that no row has."""
    taken: dict[str, str] = {}
    lost: set[str] = set()
    for part in parts(graph_tables.former):
        for key, ident, there in zip(part, graph_tables.former.ids(part), keys.holds(part), strict=True):
            if there and ident is not None:
                taken[key] = ident
            else:
                lost.add(key)
    for prefix, wanted in ((name, first.of(name).wanted()), (graph_tables.own, graph_tables.wanted())):
        for key, there in _among(keys, wanted):
            if there:
                taken.setdefault(key, f"{prefix}/{key}")
            else:
                lost.add(key)
    return taken, lost


def _lost(tab: Tab, lost: set[str]) -> None:
    """Say which rows of a table others refer to that it has not."""
    if lost:
        tab.reading.warn(f"other sources refer to rows of {tab.source.name!r} that it has not: {_some(lost)}")


def _some(keys: set[str]) -> str:
    named = ", ".join(repr(shortened(key, 60)) for key in sorted(keys)[:_NAMED])
    return named + (f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")


#: Cells of a source that stay in memory between two passes.
_CELLS_IN_MEMORY: Final = 3_000_000


def by_name(tabs: Sequence[Tab]) -> dict[str, Tab]:
    """Tables by their names; raises `LoadError` where two have one."""
    result: dict[str, Tab] = {}
    for tab in tabs:
        if tab.name in result:
            raise LoadError(f"two tables are called {tab.name!r}", file=tab.location)
        result[tab.name] = tab
    return result


def declared_of(tabs: Tabs, options: Options, below: Declared | None = None) -> Declared:
    """What options, the declaration file and (`below`) the source itself say of the tables."""
    headers = {name: tab.names for name, tab in tabs.items()}
    said = of_options(options, headers)
    path = options.get("declaration")
    if path:
        said = said.over(of_file(path, headers))
    said = said if below is None else said.over(below)
    if options.get("join") is False:
        said.joins = []
    return said


def surveyed(tabs: Tabs, declared: Declared, reading: Reading, options: Options) -> None:
    """The first pass over all tables: types, keys, references, names."""
    wanted = may_be_keys({name: tab.names for name, tab in tabs.items()}, declared)
    for tab in tabs.values():
        tab.begin(options, declared)
    if declared.guess_joins:
        for name, keys in worth_a_look(tabs).items():
            wanted[name] |= keys
    room = _CELLS_IN_MEMORY if reading.spill is None else 0
    for done, tab in enumerate(tabs.values()):
        room -= tab.survey(wanted[tab.name], room)
        reading.advance(0, (done + 1) / len(tabs) / 2)
    for table, column, what in find_keys({name: tab.columns for name, tab in tabs.items()}, declared):
        tabs[table].reading.warn(what, field=column)
    if declared.guess_joins:
        _guess(tabs, declared)
    # What nobody said, or the data say themselves.
    told = {(join.table, join.columns) for join in declared.joins if not join.of_source}
    reading.joins += [
        join_text(tab, tabs, item)
        for tab in tabs.values()
        for item in tab.columns.foreign
        if (tab.name, tuple(tab.names[at] for at in item.columns)) not in told
    ]
    for tab in tabs.values():
        named = declared.names.get(tab.name)
        tab.name_column = tab.names.index(named) if named is not None else tab.find_name() if declared.guess else None
        relation = declared.relations.get(tab.name)
        said = declared.type_columns.get(tab.name)
        tab.type_column = None if said is None else tab.names.index(said)
        if isinstance(relation, str):
            tab.predicate = collapse(relation)
        elif tab.columns.joins and said is None:
            tab.type_column = tab.columns.constant
        if tab.columns.relation and sum(len(item.columns) == 1 for item in tab.columns.foreign) < 2:
            raise declared.wrong(
                f"rows of {tab.name!r} cannot be relations: it refers to rows of others with less than two columns"
            )
        for item in tab.columns.foreign:
            for target, key in item.targets:
                tabs[target].index(key)
                if tabs[target].columns.joins:
                    raise declared.wrong(f"{tab.name!r} refers to rows of {target!r}, which are relations")


def _guess(tabs: Tabs, declared: Declared) -> None:
    """Join columns whose cells say so, and ask of those that only may refer to rows."""
    for table, at, said in questions(tabs, join_by_cells(tabs, declared)[1]):
        tabs[table].reading.warn(said, field=tabs[table].names[at])


def read_tables(tabs: Tabs, declared: Declared, reading: Reading, options: Options) -> Iterator[Item]:
    """All tables as items, each as a source of its own (`source/table`)."""
    reading.single_valued |= declared.single_valued
    surveyed(tabs, declared, reading, options)
    meet(tabs, reading)
    for done, tab in enumerate(tabs.values()):
        yield tab.source
        items = _relations(tab, tabs) if tab.columns.joins else _rows(tab, tabs)
        times = declared.times.get(tab.name)
        yield from items if times is None else with_times(items, {tab.source.name: times}, tab.reading)
        reading.skipped += tab.reading.skipped
        reading.warned += tab.reading.warned
        reading.advance(tab.columns.rows, 0.5 + (done + 1) / len(tabs) / 2)


def _rows(tab: Tab, tabs: Tabs) -> Iterator[Item]:
    """The second pass over a table of rows."""
    single = sorted((item for item in tab.columns.foreign if len(item.columns) == 1), key=lambda item: item.columns)
    several = [item for item in tab.columns.foreign if len(item.columns) > 1]
    # Of two references in one column the last counts.
    references = [*{item.columns: item for item in single}.values(), *several]
    pointers = [Pointer(tab, tabs, reference, rank) for rank, reference in enumerate(references, 1)]
    values = CellValues(tab, frozenset(item.columns[0] for item in single))
    concept, source = tab.name, tab.source.name
    yield Sourced(Entity(concept, concept, EntityKind.CONCEPT), ((source, 0),))
    ids_of = RowIds(tab)
    for chunk in _chunks(tab):
        problems = Problems()
        ids, kept = ids_of.of(chunk, problems)
        rest = GoodRows(chunk, kept)
        batches = [batch for pointer in pointers for batch in pointer.batches(ids, rest, problems)]
        problems.tell(tab)
        yield Rows(ids, _names(tab, ids, rest), rest.numbers, source)
        yield Members(ids, concept, rest.numbers, source)
        yield from batches
        yield from values.batches(ids, rest)
    values.warn()
    for pointer in pointers:
        pointer.finish()


def _names(tab: Tab, ids: Sequence[str], rest: GoodRows) -> Sequence[str]:
    if tab.name_column is None:
        return ids
    return [name or item for name, item in zip(rest.keys(tab, (tab.name_column,)), ids, strict=True)]


def _chunks(tab: Tab) -> Iterator[Chunk]:
    for chunk in tab.again():
        check()
        yield chunk
    tab.forget()


def _relations(tab: Tab, tabs: Tabs) -> Iterator[Item]:
    """The second pass over a table of relations: one statement a row, from the first reference to
    the second.
    """
    single = sorted((item for item in tab.columns.foreign if len(item.columns) == 1), key=lambda item: item.columns)
    pointers = [Pointer(tab, tabs, reference, rank) for rank, reference in enumerate(single, 1)]
    for reference in tab.columns.foreign:
        if len(reference.columns) > 1:
            header = " + ".join(tab.names[at] for at in reference.columns)
            tab.reading.warn("rows that are relations have no reference of several columns; its columns are values", field=header)
    skipped = frozenset(item.columns[0] for item in single) | ({tab.type_column} if tab.type_column is not None else frozenset())
    values = CellValues(tab, skipped)
    seen = seen_by(tab.reading.spill)
    for chunk in _chunks(tab):
        yield from _related(tab, chunk, pointers, values, seen)
    values.warn()
    for pointer in pointers:
        pointer.finish()


def _related(tab: Tab, chunk: Chunk, pointers: Sequence[Pointer], values: CellValues, seen: Seen | SpilledSeen) -> Iterator[Item]:
    """The statements of some rows that are relations."""
    problems = Problems()
    kept, predicates, ends = _ends(tab, chunk, pointers[:2], problems)
    rest = GoodRows(chunk, kept)
    further = values.qualifiers(rest)
    for pointer in pointers[2:]:
        pointer.qualify(further, rest, problems)
    statements = []
    for (first, second), predicate, qualifiers, number in zip(ends, predicates, further, rest.numbers, strict=True):
        statements.append(Statement(first, predicate, Ref(second), tuple(qualifiers), number))
    same = [str(hash((one.subject, one.predicate, one.object, one.qualifiers))) for one in statements]
    for place, number, before in zip(rest.places, rest.numbers, seen.firsts(same, rest.numbers), strict=True):
        if before != number:
            said = f"the row says what row {before} says; equal statements are one"
            problems.add(place, len(pointers) + 1, said, number, None)
    problems.tell(tab)
    where = tab.source.name
    yield from (Sourced(statement, ((where, statement.row),)) for statement in statements)


def _ends(
    tab: Tab, chunk: Chunk, pointers: Sequence[Pointer], problems: Problems
) -> tuple[list[int], list[str], list[tuple[str, str]]]:
    """Of the rows that say which relation they are, and between what: their places in the chunk,
    the relations, and the two ends. The others are bad.
    """
    every = GoodRows(chunk, None)
    said = [tab.predicate] * len(every.numbers) if tab.type_column is None else every.keys(tab, (tab.type_column,))
    keys = [every.keys(tab, pointer.reference.columns) for pointer in pointers]
    keys = [[key if predicate is not None else None for key, predicate in zip(of, said, strict=True)] for of in keys]
    stand_for = [pointer.found.of(of) for pointer, of in zip(pointers, keys, strict=True)]
    kept: list[int] = []
    predicates: list[str] = []
    ends: list[tuple[str, str]] = []
    for at, (predicate, number) in enumerate(zip(said, every.numbers, strict=True)):
        if predicate is None:
            header = tab.names[tab.type_column or 0]
            problems.add(at, 0, "the row does not say which relation it is", number, header, bad=True)
            continue
        ends_of = zip(pointers, keys, stand_for, strict=True)
        first, second = (item.end(of[at], found[at], at, number, problems) for item, of, found in ends_of)
        if first is not None and second is not None:
            kept.append(at)
            predicates.append(predicate)
            ends.append((first, second))
    return kept, predicates, ends
