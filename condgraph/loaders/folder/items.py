"""Several tables with keys between them as facts: rows become entities or relations, references
relations.

A table gives a concept called like it, and each row an entity of it: `products/1` by its primary
key (`order-details/10248+11` where that has two columns), or by the row's number where the table
has none. It is named by its name column, else by its id. A column is a predicate called by its
header, as it stands; a reference's objects are the rows it points to. A reference of several
columns is called by all of them ("order + line"), and these stay beside it. A row of a table of
relations is one statement between the rows that its first two references point to, and its other
columns are qualifiers.

Tables are read twice, and once more where others refer to a column that is not their key, unless
they are small; memory is bounded whatever their size, but for the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from condgraph.engine.bounds import check
from condgraph.engine.errors import LoadError
from condgraph.engine.facts import Entity, EntityKind, Item, Members, Ref, Rows, Sourced, Statement
from condgraph.engine.values import collapse
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.folder.declared import Declared, of_file, of_options
from condgraph.loaders.folder.guess import join_by_cells, join_text, questions, worth_a_look
from condgraph.loaders.folder.keys import find_keys, may_be_keys
from condgraph.loaders.folder.referred import meet
from condgraph.loaders.folder.rows import Pointer, Problems, Rest, RowIds, Tabs, Values
from condgraph.loaders.folder.tab import Tab
from condgraph.loaders.table.text import Chunk

#: Cells of a source that stay in memory between two passes.
_CELLS_IN_MEMORY: Final = 3_000_000


def by_name(tabs: Sequence[Tab]) -> dict[str, Tab]:
    """Tables by their names; raises `LoadError` where two have one."""
    found: dict[str, Tab] = {}
    for tab in tabs:
        if tab.name in found:
            raise LoadError(f"two tables are called {tab.name!r}", file=tab.location)
        found[tab.name] = tab
    return found


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
    room = _CELLS_IN_MEMORY
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
        join_text(tab, tabs, one)
        for tab in tabs.values()
        for one in tab.columns.foreign
        if (tab.name, tuple(tab.names[at] for at in one.columns)) not in told
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
        if tab.columns.relation and sum(len(one.columns) == 1 for one in tab.columns.foreign) < 2:
            raise declared.wrong(
                f"rows of {tab.name!r} cannot be relations: it refers to rows of others with less than two columns"
            )
        for one in tab.columns.foreign:
            for target, key in one.targets:
                tabs[target].index(key)
                if tabs[target].columns.joins:
                    raise declared.wrong(f"{tab.name!r} refers to rows of {target!r}, which are relations")


def _guess(tabs: Tabs, declared: Declared) -> None:
    """Join columns whose cells say so, and ask of those that only may refer to rows."""
    for table, at, said in questions(tabs, join_by_cells(tabs, declared)[1]):
        tabs[table].reading.warn(said, field=tabs[table].names[at])


def read_tables(tabs: Tabs, declared: Declared, reading: Reading, options: Options) -> Iterator[Item]:
    """All tables as items, each as a source of its own (`source/table`)."""
    surveyed(tabs, declared, reading, options)
    meet(tabs, reading)
    for done, tab in enumerate(tabs.values()):
        yield tab.source
        yield from _relations(tab, tabs) if tab.columns.joins else _rows(tab, tabs)
        reading.skipped += tab.reading.skipped
        reading.warned += tab.reading.warned
        reading.advance(tab.columns.rows, 0.5 + (done + 1) / len(tabs) / 2)


def _rows(tab: Tab, tabs: Tabs) -> Iterator[Item]:
    """The second pass over a table of rows."""
    single = sorted((one for one in tab.columns.foreign if len(one.columns) == 1), key=lambda one: one.columns)
    several = [one for one in tab.columns.foreign if len(one.columns) > 1]
    # Of two references in one column the last counts.
    references = [*{one.columns: one for one in single}.values(), *several]
    pointers = [Pointer(tab, tabs, one, rank) for rank, one in enumerate(references, 1)]
    values = Values(tab, frozenset(one.columns[0] for one in single))
    concept, source = tab.name, tab.source.name
    yield Sourced(Entity(concept, concept, EntityKind.CONCEPT), ((source, 0),))
    ids_of = RowIds(tab)
    for chunk in _chunks(tab):
        problems = Problems()
        ids, kept = ids_of.of(chunk, problems)
        rest = Rest(chunk, kept)
        batches = [batch for one in pointers for batch in one.batches(ids, rest, problems)]
        problems.tell(tab)
        yield Rows(ids, _names(tab, ids, rest), rest.numbers, source)
        yield Members(ids, concept, rest.numbers, source)
        yield from batches
        yield from values.batches(ids, rest)
    values.warn()


def _names(tab: Tab, ids: Sequence[str], rest: Rest) -> Sequence[str]:
    if tab.name_column is None:
        return ids
    return [name or one for name, one in zip(rest.keys(tab, (tab.name_column,)), ids, strict=True)]


def _chunks(tab: Tab) -> Iterator[Chunk]:
    for chunk in tab.again():
        check()
        yield chunk
    tab.forget()


def _relations(tab: Tab, tabs: Tabs) -> Iterator[Item]:
    """The second pass over a table of relations: one statement a row, from the first reference to
    the second.
    """
    single = sorted((one for one in tab.columns.foreign if len(one.columns) == 1), key=lambda one: one.columns)
    pointers = [Pointer(tab, tabs, one, rank) for rank, one in enumerate(single, 1)]
    for one in tab.columns.foreign:
        if len(one.columns) > 1:
            header = " + ".join(tab.names[at] for at in one.columns)
            tab.reading.warn("rows that are relations have no reference of several columns; its columns are values", field=header)
    skipped = frozenset(one.columns[0] for one in single) | ({tab.type_column} if tab.type_column is not None else frozenset())
    values = Values(tab, skipped)
    seen: dict[int, int] = {}
    for chunk in _chunks(tab):
        yield from _related(tab, chunk, pointers, values, seen)
    values.warn()


def _related(tab: Tab, chunk: Chunk, pointers: Sequence[Pointer], values: Values, seen: dict[int, int]) -> Iterator[Item]:
    """The statements of some rows that are relations."""
    problems = Problems()
    kept, predicates, ends = _ends(tab, chunk, pointers[:2], problems)
    rest = Rest(chunk, kept)
    further = values.qualifiers(rest)
    for one in pointers[2:]:
        one.qualify(further, rest, problems)
    statements = []
    rows = zip(ends, predicates, further, rest.places, rest.numbers, strict=True)
    for (first, second), predicate, qualifiers, place, number in rows:
        statement = Statement(first, predicate, Ref(second), tuple(qualifiers), number)
        same = hash((statement.subject, predicate, statement.object, statement.qualifiers))
        before = seen.setdefault(same, number)
        if before != number:
            said = f"the row says what row {before} says; equal statements are one"
            problems.add(place, len(pointers) + 1, said, number, None)
        statements.append(statement)
    problems.tell(tab)
    where = tab.source.name
    yield from (Sourced(one, ((where, one.row),)) for one in statements)


def _ends(
    tab: Tab, chunk: Chunk, pointers: Sequence[Pointer], problems: Problems
) -> tuple[list[int], list[str], list[tuple[str, str]]]:
    """Of the rows that say which relation they are, and between what: their places in the chunk,
    the relations, and the two ends. The others are bad.
    """
    every = Rest(chunk, None)
    said = [tab.predicate] * len(every.numbers) if tab.type_column is None else every.keys(tab, (tab.type_column,))
    keys = [every.keys(tab, one.reference.columns) for one in pointers]
    kept: list[int] = []
    predicates: list[str] = []
    ends: list[tuple[str, str]] = []
    for at, (predicate, number) in enumerate(zip(said, every.numbers, strict=True)):
        if predicate is None:
            header = tab.names[tab.type_column or 0]
            problems.add(at, 0, "the row does not say which relation it is", number, header, bad=True)
            continue
        first, second = (one.end(of[at], at, number, problems) for one, of in zip(pointers, keys, strict=True))
        if first is not None and second is not None:
            kept.append(at)
            predicates.append(predicate)
            ends.append((first, second))
    return kept, predicates, ends
