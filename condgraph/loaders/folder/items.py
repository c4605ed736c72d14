"""Converts rows of several tables with keys to items: ids, references and values, by chunk and column.

A table becomes a concept with its name, and each row an entity: `products/1` by its primary key
(`order-details/10248+11` with two columns), or by the row's number if the table has no key. The row is
named by its name column, else by its id. A column is a predicate named by its header; the objects of a
reference are the rows that it points to. A reference of several columns is named after all of them
("order + line"), and the columns themselves are kept, too. A row of a table of relations is one
statement between the rows that its first two references point to, with its other columns as
qualifiers.

Unless they are small, tables are read twice, and once more if others refer to a column that is not
their key. Memory is bounded except for the keys.

A table that was loaded alone, with `refs=` or `join=`, leaves entities in the place of rows. When the
folder (workbook, database) with these rows is loaded, the rows take over the ids of these entities, as
rows of a single table do (`table.joins`). Rows that are still missing are reported.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, repeat
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np

from condgraph.engine.bounds import check
from condgraph.engine.errors import LoadError, OptionError, shortened
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
    """The problems of a chunk, collected column by column."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int, bool, str, int, str | None]] = []

    def add(self, at: int, rank: int, message: str, number: int, field: str | None, *, bad: bool = False) -> None:
        """Add a problem of the row at an index in the chunk; for one row, the lowest rank is reported first."""
        self._found.append((at, rank, bad, message, number, field))

    def tell(self, tab: Tab) -> None:
        """Report the problems in the order of rows; raises for bad ones if the reading does."""
        for _, _, bad, message, number, field in sorted(self._found, key=lambda item: item[:2]):
            (tab.reading.bad if bad else tab.reading.warn)(message, row=number, field=field)


#: How many looked-up keys of a reference are cached if memory is bounded.
_MAX_LOOKED_UP: Final = 1 << 16


class ReferredRows(dict[str, str | tuple[str, ...]]):
    """A cache of the rows that keys of a reference point to: one id, or a tuple of several or none."""

    def __init__(self, tabs: Tabs, reference: Reference, files: SpilledFiles | None) -> None:
        self.tabs, self.reference = tabs, reference
        self._bounded = files is not None
        #: The keys without a row.
        self.unmatched = seen_by(files)

    def of(self, keys: Sequence[str | None]) -> list[str | tuple[str, ...] | None]:
        """Return the rows of some keys; None for a missing key."""
        new_keys = [key for key in dict.fromkeys(keys) if key is not None and key not in self]
        if self._bounded and len(self) + len(new_keys) > _MAX_LOOKED_UP:
            self.clear()
            new_keys = [key for key in dict.fromkeys(keys) if key is not None]
        if new_keys:
            spelled = list(map(self.reference.spelled, new_keys))
            rows_by_target = [self.tabs[target].rows_of(key, spelled) for target, key in self.reference.targets]
            for text, *rows in zip(new_keys, *rows_by_target, strict=True):
                matches = tuple(dict.fromkeys(row for row in rows if row is not None))
                self[text] = matches[0] if len(matches) == 1 else matches
            unmatched = [key for key in new_keys if self[key] == ()]
            self.unmatched.firsts(unmatched, range(len(unmatched)))
        return [None if key is None else self[key] for key in keys]

    def at_once(self, keys: Sequence[str | None]) -> list[str] | None:
        """Return the rows of many keys at once, or None if the keys must be looked up one by one."""
        (target, key), *more_targets = self.reference.targets
        tab = self.tabs[target]
        if more_targets or self.reference.pointed or tab.taken or key != tab.columns.primary:
            return None
        if not tab.columns.values[key].holds_all(keys):
            return None
        return list(map(add, repeat(f"{target}/"), cast("Sequence[str]", keys)))

    def message(self, text: str) -> str:
        """Return the message for a key without a row."""
        return f"{text!r} is not a key of " + " or ".join(repr(target) for target, _ in self.reference.targets)


class RowIds:
    """The ids of the rows of a table, by their keys."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self._seen = seen_by(tab.reading.spill)

    def of(self, chunk: Chunk, problems: Problems) -> tuple[tuple[str, ...], list[int] | None]:
        """Return the ids of the rows of a chunk, and their indices (None for all).

        A row whose key is missing or repeated is bad.
        """
        ids, good_rows = self._own(chunk, problems)
        taken = self.tab.taken
        return (tuple([taken.get(ident, ident) for ident in ids]) if taken else ids), good_rows

    def _own(self, chunk: Chunk, problems: Problems) -> tuple[tuple[str, ...], list[int] | None]:
        """Return the same from the rows' own keys, ignoring ids that other sources use."""
        tab, key = self.tab, self.tab.columns.primary
        if key is None:
            return tuple([f"{tab.name}/{number}" for number in chunk.numbers]), None
        keys = tab.keys(key, chunk)
        if tab.columns.unique(key):
            return tuple(map(add, repeat(f"{tab.name}/"), cast("list[str]", keys))), None
        present = [(text, number) for text, number in zip(keys, chunk.numbers, strict=True) if text is not None]
        firsts = iter(self._seen.firsts([text for text, _ in present], [number for _, number in present]))
        header = " + ".join(tab.names[column] for column in key)
        idents: list[str] = []
        good_rows: list[int] = []
        for at, (text, number) in enumerate(zip(keys, chunk.numbers, strict=True)):
            if text is None:
                problems.add(at, 0, "the row has no key", number, header, bad=True)
            elif (first := next(firsts)) != number:
                problems.add(at, 0, f"the key {text!r} is already in row {first}", number, header, bad=True)
            else:
                idents.append(f"{tab.name}/{text}")
                good_rows.append(at)
        return tuple(idents), None if len(good_rows) == len(keys) else good_rows


class GoodRows:
    """The good rows of a chunk: their indices in it, numbers, and columns."""

    def __init__(self, chunk: Chunk, kept: list[int] | None) -> None:
        self.chunk, self._kept = chunk, kept
        self.places: Sequence[int] = range(len(chunk.numbers)) if kept is None else kept
        self.numbers = chunk.numbers if kept is None else [chunk.numbers[at] for at in kept]
        self.rows: NDArray[np.int32] = np.asarray(self.numbers, np.int32)

    def column(self, at: int) -> Sequence[str]:
        """Return the cells of a column."""
        column = self.chunk.columns[at]
        return column if self._kept is None else [column[item] for item in self._kept]

    def keys(self, tab: Tab, key: tuple[int, ...]) -> list[str | None]:
        """Return the keys in some columns."""
        keys = tab.keys(key, self.chunk)
        return keys if self._kept is None else [keys[item] for item in self._kept]


class Pointer:
    """A reference of a table, from keys in its columns to rows; `rank` is its index among the references."""

    def __init__(self, tab: Tab, tabs: Tabs, reference: Reference, rank: int) -> None:
        self.tab, self.reference, self.rank = tab, reference, rank
        self.found = ReferredRows(tabs, reference, tab.reading.spill)
        self.header = " + ".join(tab.names[at] for at in reference.columns)

    def batches(self, ids: Sequence[str], rest: GoodRows, problems: Problems) -> Iterator[Batch]:
        """Yield the statements of the reference for some rows."""
        source = self.tab.source.name
        keys = rest.keys(self.tab, self.reference.columns)
        single_rows = self.found.at_once(keys)
        idents = self.found.of(keys) if single_rows is None else []
        if single_rows is None and set(map(type, idents)) == {str}:
            single_rows = cast("list[str]", idents)
        if single_rows is not None:
            if single_rows:
                yield Batch(ids, self.header, Ids(single_rows), cast("Sequence[int]", rest.rows), source=source)
            return
        references: list[tuple[str, str, int]] = []
        texts: list[tuple[str, str, int, str | None]] = []
        for at, (key, rows) in enumerate(zip(keys, idents, strict=True)):
            if key is None or rows is None:
                continue
            number = rest.numbers[at]
            references += [(ids[at], item, number) for item in ((rows,) if isinstance(rows, str) else rows)]
            if not isinstance(rows, str):
                self._tell(key, rows, rest.places[at], number, problems)
                if not rows and len(self.reference.columns) == 1:
                    cell = rest.column(self.reference.columns[0])[at]
                    texts.append((ids[at], key, number, None if key == cell else cell))
        if references:
            subjects, objects, numbers = zip(*references, strict=True)
            yield Batch(subjects, self.header, Ids(objects), numbers, source=source)
        if texts:
            subjects, values, numbers, raws = zip(*texts, strict=True)
            yield Batch(subjects, self.header, Texts(values), numbers, raws, source=source)

    def qualify(self, qualifiers: Sequence[list[tuple[str, Ref | Value]]], rest: GoodRows, problems: Problems) -> None:
        """Add the reference's rows to qualifiers."""
        keys = rest.keys(self.tab, self.reference.columns)
        for at, (key, rows) in enumerate(zip(keys, self.found.of(keys), strict=True)):
            if key is None or rows is None:
                continue
            if isinstance(rows, str):
                qualifiers[at].append((self.header, Ref(rows)))
                continue
            self._tell(key, rows, rest.places[at], rest.numbers[at], problems)
            qualifiers[at].extend((self.header, target) for target in (map(Ref, rows) if rows else (key,)))

    def end(self, key: str | None, result: str | tuple[str, ...] | None, at: int, number: int, problems: Problems) -> str | None:
        """Return the row at an end of a relation; None, with a bad row, if its key has no row or several."""
        if isinstance(result, str):
            return result
        message = "the key is missing" if key is None else self.found.message(key)
        if result:
            message = f"{key!r} is a key of several tables: {' and '.join(result)}"
        message += ", so that there is nothing to relate"
        problems.add(at, self.rank, message, number, self.header, bad=True)
        return None

    def finish(self) -> None:
        """Warn of unmatched keys that differ from existing ones only in case or leading zeros; call after all rows."""
        for target, key in self.reference.targets if self.found.unmatched else ():
            near = near_keys(map(self.reference.spelled, self.found.unmatched), self.found.tabs[target].known(key), target)
            if near:
                self.tab.reading.warn(near, field=self.header)

    def _tell(self, key: str, rows: Sequence[str], at: int, number: int, problems: Problems) -> None:
        """Report that a key has several rows or none."""
        if rows:
            message = f"{key!r} is a key of several tables, and refers to {' and '.join(rows)}"
        else:
            consequence = "the cell is kept as text" if len(self.reference.columns) == 1 else "the cells are kept"
            message = f"{self.found.message(key)}; {consequence}"
        problems.add(at, self.rank, message, number, self.header)


class CellValues:
    """Reads the columns of a table that are not references."""

    def __init__(self, tab: Tab, skipped: frozenset[int]) -> None:
        self.tab = tab
        self.types = {at: tab.table.decide(at, profile) for at, profile in enumerate(tab.profiles) if at not in skipped}
        self.types.update(
            (at, replace(self.types[at], lists=False, separator=mark)) for at, mark in tab.separators.items() if at in self.types
        )
        self._readers: dict[int, Callable[[str], Cell | None]] = {at: item.reader() for at, item in self.types.items()}
        #: By column, the first row whose cell does not fit the column's type, and the number of such cells.
        self._texts: dict[int, list[int]] = {}
        for at in tab.separators.keys() & skipped:
            tab.reading.warn("lists in cells of references are not read, and the cells are not split", field=tab.names[at])

    def batches(self, ids: Sequence[str], rest: GoodRows) -> Iterator[Batch]:
        """Yield the statements of some rows' cells."""
        for at in self.types:
            batch = self._whole(at, ids, rest)
            if batch is None:
                batch = self._batch(at, ids, rest)
            if len(batch):
                yield batch

    def _whole(self, at: int, ids: Sequence[str], rest: GoodRows) -> Batch | None:
        column = rest.column(at)
        result = read_whole(column, self.types[at]) if isinstance(column, Fields) else None
        if result is None:
            return None
        objects, raws, present = result
        rows = rest.rows
        if not present.all():
            ids, rows = list(compress(ids, present)), rows[present]
        return Batch(ids, self.tab.names[at], objects, cast("Sequence[int]", rows), raws, source=self.tab.source.name)

    def _batch(self, at: int, ids: Sequence[str], rest: GoodRows) -> Batch:
        column, numbers = rest.column(at), rest.numbers
        if self.types[at].holds_lists:
            places, column = self.types[at].elements(column)
            ids, numbers = [ids[place] for place in places], [numbers[place] for place in places]
        cells = self.read(at, column, numbers)
        if None in cells:
            present = [cell is not None for cell in cells]
            ids, numbers = list(compress(ids, present)), list(compress(numbers, present))
        values = [cell[0] for cell in cells if cell is not None]
        raws = [cell[1] for cell in cells if cell is not None]
        return Batch(ids, self.tab.names[at], column_of(values), numbers, raws, source=self.tab.source.name)

    def read(self, at: int, column: Sequence[str], numbers: Sequence[int]) -> list[Cell | None]:
        """Return the values of a column's cells, and count those that do not fit its type."""
        column_type = self.types[at]
        # The cache of a reader costs more than it saves if cells rarely repeat.
        read = column_type.read if len(set(column)) * 2 > len(column) else self._readers[at]
        cells = list(map(read, column))
        if column_type.kind not in ("text", "form"):
            texts = [number for number, cell in zip(numbers, cells, strict=True) if cell is not None and isinstance(cell[0], str)]
            if texts:
                self._texts.setdefault(at, [texts[0], 0])[1] += len(texts)
        return cells

    def qualifiers(self, rest: GoodRows) -> list[list[tuple[str, Ref | Value]]]:
        """Return the values of some rows as qualifiers, by header."""
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
        """Warn of cells that do not fit their column's type, in the order of rows."""
        for position, (first, count) in sorted(self._texts.items(), key=lambda item: (item[1][0], item[0])):
            kind = {"number": "numbers", "time": "times"}.get(self.types[position].kind, "clock times")
            stay = f"{count} cells stay" if count > 1 else "a cell stays"
            self.tab.reading.warn(f"{stay} text in a column of {kind}", row=first, field=self.tab.names[position])


#: How many keys a warning names.
_NAMED = 5


def meet(tabs: Tabs, reading: Reading) -> None:
    """Give rows the ids by which other sources already refer to them.

    Must run after keys are found and before rows are read.
    """
    first = GraphTables(reading.known, gone=reading.gone, files=reading.spill)
    if first.snapshot is None:
        return
    bare_keys: dict[str, set[str]] = {}
    for tab in tabs.values():
        primary = tab.columns.primary
        if primary is None or tab.columns.joins:
            continue
        graph_tables = first.of(tab.source.name)
        known_ids, lost = _known(tab.columns.of(primary), first, graph_tables, tab.name)
        _lost(tab, lost)
        tab.taken = {f"{tab.name}/{key}": ident for key, ident in known_ids.items()}
        header = " + ".join(tab.names[at] for at in primary)
        referred = _among(tab.columns.of(primary), graph_tables.referred(header, tab.source.name))
        bare_keys[tab.name] = {key for key, exists in referred if exists and key not in known_ids}
    claimed = Counter(key for keys in bare_keys.values() for key in keys)
    for name, keys in bare_keys.items():
        ambiguous = {key for key in keys if claimed[key] > 1}
        if ambiguous:
            message = f"other sources refer to {_some(ambiguous)}, a key of several tables here; join= selects one"
            tabs[name].reading.warn(message)
        tabs[name].taken.update((f"{name}/{key}", key) for key in keys - ambiguous)


def _among(keys: Values | SpilledValues, texts: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield texts, each with whether it is a key."""
    for part in parts(texts):
        yield from zip(part, keys.holds(part), strict=True)


def _known(
    keys: Values | SpilledValues, first: GraphTables, graph_tables: GraphTables, name: str
) -> tuple[dict[str, str], set[str]]:
    """Return the ids by which rows are already known, and the known keys that no row has."""
    taken: dict[str, str] = {}
    lost: set[str] = set()
    for part in parts(graph_tables.former):
        for key, ident, exists in zip(part, graph_tables.former.ids(part), keys.holds(part), strict=True):
            if exists and ident is not None:
                taken[key] = ident
            else:
                lost.add(key)
    for prefix, wanted in ((name, first.of(name).wanted()), (graph_tables.own, graph_tables.wanted())):
        for key, exists in _among(keys, wanted):
            if exists:
                taken.setdefault(key, f"{prefix}/{key}")
            else:
                lost.add(key)
    return taken, lost


def _lost(tab: Tab, lost: set[str]) -> None:
    """Warn of rows that other sources refer to, but the table does not have."""
    if lost:
        tab.reading.warn(f"other sources refer to rows of {tab.source.name!r} that are missing: {_some(lost)}")


def _some(keys: set[str]) -> str:
    named = ", ".join(repr(shortened(key, 60)) for key in sorted(keys)[:_NAMED])
    return named + (f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")


#: The most cells of a source that stay in memory between two passes.
_CELLS_IN_MEMORY: Final = 3_000_000


def by_name(tabs: Sequence[Tab]) -> dict[str, Tab]:
    """Return tables by name; raises `LoadError` if two have the same."""
    result: dict[str, Tab] = {}
    for tab in tabs:
        if tab.name in result:
            raise LoadError(f"two tables are called {tab.name!r}", file=tab.location)
        result[tab.name] = tab
    return result


def declared_of(tabs: Tabs, options: Options, below: Declared | None = None) -> Declared:
    """Return the declarations of options, of the declaration file, and of the source itself (`below`)."""
    headers = {name: tab.names for name, tab in tabs.items()}
    declared = of_options(options, headers)
    path = options.get("declaration")
    if path:
        if not isinstance(path, str | os.PathLike):
            raise OptionError(f"declaration= is the path of a file, or False, not {shortened(repr(path), 100)}")
        declared = declared.over(of_file(Path(path), headers))
    declared = declared if below is None else declared.over(below)
    if options.get("join") is False:
        declared.joins = []
    return declared


def surveyed(tabs: Tabs, declared: Declared, reading: Reading, options: Options) -> None:
    """Do the first pass over all tables: types, keys, references, names."""
    key_candidates = may_be_keys({name: tab.names for name, tab in tabs.items()}, declared)
    for tab in tabs.values():
        tab.begin(options, declared)
    if declared.guess_joins:
        for name, keys in worth_a_look(tabs).items():
            key_candidates[name] |= keys
    room = _CELLS_IN_MEMORY if reading.spill is None else 0
    for done, tab in enumerate(tabs.values()):
        room -= tab.survey(key_candidates[tab.name], room)
        reading.advance(0, (done + 1) / len(tabs) / 2)
    for table, column, message in find_keys({name: tab.columns for name, tab in tabs.items()}, declared):
        tabs[table].reading.warn(message, field=column)
    if declared.guess_joins:
        _guess(tabs, declared)
    # Report joins that are not declared, or that only the source declares.
    declared_joins = {(join.table, join.columns) for join in declared.joins if not join.of_source}
    reading.joins += [
        join_text(tab, tabs, item)
        for tab in tabs.values()
        for item in tab.columns.foreign
        if (tab.name, tuple(tab.names[at] for at in item.columns)) not in declared_joins
    ]
    for tab in tabs.values():
        name_column = declared.names.get(tab.name)
        tab.name_column = tab.names.index(name_column) if name_column is not None else tab.find_name() if declared.guess else None
        relation = declared.relations.get(tab.name)
        type_column = declared.type_columns.get(tab.name)
        tab.type_column = None if type_column is None else tab.names.index(type_column)
        if isinstance(relation, str):
            tab.predicate = collapse(relation)
        elif tab.columns.joins and type_column is None:
            tab.type_column = tab.columns.constant
        if tab.columns.relation and sum(len(item.columns) == 1 for item in tab.columns.foreign) < 2:
            raise declared.wrong(f"rows of {tab.name!r} cannot be relations: fewer than two of its columns refer to other tables")
        for item in tab.columns.foreign:
            for target, key in item.targets:
                tabs[target].index(key)
                if tabs[target].columns.joins:
                    raise declared.wrong(f"{tab.name!r} refers to rows of {target!r}, which are relations")


def _guess(tabs: Tabs, declared: Declared) -> None:
    """Join columns whose cells prove a reference, and report questions about others."""
    for table, at, said in questions(tabs, join_by_cells(tabs, declared)[1]):
        tabs[table].reading.warn(said, field=tabs[table].names[at])


def read_tables(tabs: Tabs, declared: Declared, reading: Reading, options: Options) -> Iterator[Item]:
    """Yield the items of all tables; each table is a separate source (`source/table`)."""
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
    """Do the second pass over a table of rows."""
    of_one_column = sorted((item for item in tab.columns.foreign if len(item.columns) == 1), key=lambda item: item.columns)
    of_several_columns = [item for item in tab.columns.foreign if len(item.columns) > 1]
    # If a column has two references, the last one counts.
    references = [*{item.columns: item for item in of_one_column}.values(), *of_several_columns]
    pointers = [Pointer(tab, tabs, reference, rank) for rank, reference in enumerate(references, 1)]
    values = CellValues(tab, frozenset(item.columns[0] for item in of_one_column))
    concept, source = tab.name, tab.source.name
    yield Sourced(Entity(concept, concept, EntityKind.CONCEPT), ((source, 0),))
    ids_of = RowIds(tab)
    for chunk in _chunks(tab):
        problems = Problems()
        ids, good_rows = ids_of.of(chunk, problems)
        rows = GoodRows(chunk, good_rows)
        batches = [batch for pointer in pointers for batch in pointer.batches(ids, rows, problems)]
        problems.tell(tab)
        yield Rows(ids, _names(tab, ids, rows), rows.numbers, source)
        yield Members(ids, concept, rows.numbers, source)
        yield from batches
        yield from values.batches(ids, rows)
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
    """Do the second pass over a table of relations: one statement for each row, between its first two references."""
    of_one_column = sorted((item for item in tab.columns.foreign if len(item.columns) == 1), key=lambda item: item.columns)
    pointers = [Pointer(tab, tabs, reference, rank) for rank, reference in enumerate(of_one_column, 1)]
    for reference in tab.columns.foreign:
        if len(reference.columns) > 1:
            header = " + ".join(tab.names[at] for at in reference.columns)
            tab.reading.warn("a relation cannot have a reference of several columns; its columns are values", field=header)
    skipped = frozenset(item.columns[0] for item in of_one_column) | (
        {tab.type_column} if tab.type_column is not None else frozenset()
    )
    values = CellValues(tab, skipped)
    seen = seen_by(tab.reading.spill)
    for chunk in _chunks(tab):
        yield from _related(tab, chunk, pointers, values, seen)
    values.warn()
    for pointer in pointers:
        pointer.finish()


def _related(tab: Tab, chunk: Chunk, pointers: Sequence[Pointer], values: CellValues, seen: Seen | SpilledSeen) -> Iterator[Item]:
    """Yield the statements of rows that are relations."""
    problems = Problems()
    good_rows, predicates, ends = _ends(tab, chunk, pointers[:2], problems)
    rows = GoodRows(chunk, good_rows)
    qualifier_lists = values.qualifiers(rows)
    for pointer in pointers[2:]:
        pointer.qualify(qualifier_lists, rows, problems)
    statements = []
    for (first, second), predicate, qualifiers, number in zip(ends, predicates, qualifier_lists, rows.numbers, strict=True):
        statements.append(Statement(first, predicate, Ref(second), tuple(qualifiers), number))
    hashes = [str(hash((built.subject, built.predicate, built.object, built.qualifiers))) for built in statements]
    for place, number, first_row in zip(rows.places, rows.numbers, seen.firsts(hashes, rows.numbers), strict=True):
        if first_row != number:
            message = f"the row repeats row {first_row}; equal statements count once"
            problems.add(place, len(pointers) + 1, message, number, None)
    problems.tell(tab)
    source = tab.source.name
    yield from (Sourced(statement, ((source, statement.row),)) for statement in statements)


def _ends(
    tab: Tab, chunk: Chunk, pointers: Sequence[Pointer], problems: Problems
) -> tuple[list[int], list[str], list[tuple[str, str]]]:
    """Return the good rows of relations: their indices in the chunk, the relations, and their two ends.

    Rows without a relation or an end are bad.
    """
    all_rows = GoodRows(chunk, None)
    relation_names = [tab.predicate] * len(all_rows.numbers) if tab.type_column is None else all_rows.keys(tab, (tab.type_column,))
    keys = [all_rows.keys(tab, pointer.reference.columns) for pointer in pointers]
    keys = [
        [key if predicate is not None else None for key, predicate in zip(key_column, relation_names, strict=True)]
        for key_column in keys
    ]
    rows_by_key = [pointer.found.of(key_column) for pointer, key_column in zip(pointers, keys, strict=True)]
    good_rows: list[int] = []
    predicates: list[str] = []
    ends: list[tuple[str, str]] = []
    for at, (predicate, number) in enumerate(zip(relation_names, all_rows.numbers, strict=True)):
        if predicate is None:
            header = tab.names[tab.type_column or 0]
            problems.add(at, 0, "the row does not name its relation", number, header, bad=True)
            continue
        ends_of = zip(pointers, keys, rows_by_key, strict=True)
        first, second = (item.end(key_column[at], row_column[at], at, number, problems) for item, key_column, row_column in ends_of)
        if first is not None and second is not None:
            good_rows.append(at)
            predicates.append(predicate)
            ends.append((first, second))
    return good_rows, predicates, ends
