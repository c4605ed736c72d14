"""Property graphs as CSV: exports of Neo4j (APOC), files of its import tool, files of Neptune and
Gremlin (`headers`).

A node becomes an entity with the id `source/id` (`source/space/id`), named by its property `name`,
`title` or `label`, or one that ends so; its labels are concepts, its properties statements. A
relationship becomes a statement with its properties as qualifiers; several equal ones are one, with
a warning. Properties are typed over all files, as the columns of a table; lists are several
statements. Only an empty cell is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from condgraph.engine.bounds import check
from condgraph.engine.errors import LoadError, OptionError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Sourced, Statement
from condgraph.engine.values import Value, collapse
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.documents import is_document
from condgraph.loaders.files import ENCODING_HELP, head_text, path_of, read_head, stem_of, suffix_of
from condgraph.loaders.property_graph.files import DELIMITERS, GraphFile, GraphFiles, base_of, files_of, header_of, opened
from condgraph.loaders.property_graph.headers import Column, kind_of
from condgraph.loaders.property_graph.model import is_model, refuse_models
from condgraph.loaders.table.column_types import Cell, Declared, Profile
from condgraph.loaders.table.dialect import sample_rows
from condgraph.loaders.table.joins import plain
from condgraph.loaders.table.rows import truth_option

_NONE: Final = frozenset(("",))
_SUFFIXES: Final = (".csv", ".tsv", ".txt", "")


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    refuse_models(source.paths if isinstance(source, GraphFiles) else [path_of(source)])
    array = options.get("array_delimiter", ";")
    if not isinstance(array, str) or not array:
        raise OptionError("array_delimiter= is a text")
    keep = truth_option(options, "edge_ids") or False
    files = opened(files_of(source), reading, options)
    lists = _Lists(array)
    profiles: dict[tuple[bool, str], Profile] = {}
    for done, file in enumerate(files):
        _survey(file, profiles, lists)
        reading.advance(0, (done + 1) / len(files) / 2)
    if not any(file.kind in ("nodes", "both") for file in files):
        raise LoadError(
            "there are relationships and no nodes",
            file=reading.source.location,
            hint="load the files of nodes with them, as a folder or a list",
        )
    typed = _Typed(files, profiles, lists)
    graph = _Graph(reading.source.name, typed, lists, keep)
    for part in ("nodes", "edges"):
        for file in files:
            yield file.source
            if part == "nodes" and file.kind != "edges":
                yield from graph.nodes(file)
            elif part == "edges" and file.kind != "nodes":
                yield from graph.edges(file)
    for file in files:
        reading.skipped += file.reading.skipped
        reading.warned += file.reading.warned
    reading.advance(graph.count, 1.0)


class _Lists:
    """How cells that are lists are taken apart."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        #: Properties that no header says are lists, and whose cells all are, as JSON.
        self.json: dict[tuple[bool, str], bool] = {}

    def of(self, cell: str, column: Column, edge: bool) -> Sequence[str]:
        """The elements of a cell; one where it is no list, none where it is empty."""
        if not cell.strip():
            return ()
        if column.array:
            return [part for part in cell.split(self.delimiter) if part.strip()]
        if self.json.get((edge, column.name)):
            return [one if isinstance(one, str) else json.dumps(one) for one in json.loads(cell)]
        return (cell,)

    def look(self, cells: Sequence[str], column: Column, edge: bool) -> None:
        """Find out whether the cells of a column are lists in JSON."""
        key = edge, column.name
        if column.array or column.role != "property" or self.json.get(key) is False:
            return
        for cell in cells:
            if cell.strip():
                self.json[key] = _is_list(cell)
                if not self.json[key]:
                    return


def _is_list(cell: str) -> bool:
    if cell[:1] != "[" or cell[-1:] != "]":
        return False
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, list) and not any(isinstance(one, (list, dict)) for one in found)


def _edge_rows(file: GraphFile, columns: Sequence[Sequence[str]], size: int) -> Sequence[bool]:
    """Which rows are relationships."""
    if file.kind != "both":
        return [file.kind == "edges"] * size
    return [bool(cell.strip()) for cell in columns[file.at("start")[0]]]


def _survey(file: GraphFile, profiles: dict[tuple[bool, str], Profile], lists: _Lists) -> None:
    """The first pass over a file: what properties look like."""
    for chunk, _ in file.text.chunks(file.reading, file.headers):
        check()
        edges = _edge_rows(file, chunk.columns, len(chunk.numbers))
        for column, cells in zip(file.columns, chunk.columns, strict=True):
            if column.role != "property":
                continue
            for edge in (False, True):
                mine = [cell for cell, one in zip(cells, edges, strict=True) if one is edge]
                lists.look(mine, column, edge)
                parts = [part for cell in mine for part in lists.of(cell, column, edge)]
                profiles.setdefault((edge, column.name), Profile(_NONE)).add(parts)


class _Typed:
    """How the properties of nodes and relationships are read, by their types over all files."""

    def __init__(self, files: Sequence[GraphFile], profiles: dict[tuple[bool, str], Profile], lists: _Lists) -> None:
        declared: dict[str, set[Declared]] = {}
        for file in files:
            for column in file.columns:
                if column.role == "property":
                    declared.setdefault(column.name, set()).add(column.declared)
        self.readers: dict[tuple[bool, str], Callable[[str], Cell | None]] = {}
        for (edge, name), profile in profiles.items():
            kinds = declared[name]
            chosen = profile.decide(name, next(iter(kinds)) if len(kinds) == 1 else "auto")
            self.readers[edge, name] = chosen.reader()

    def of(self, text: str, edge: bool, name: str) -> Cell | None:
        """The value of a property."""
        return self.readers[edge, name](text)


class _Graph:
    """The graph while its files are read: its nodes, and what relationships there were."""

    def __init__(self, source: str, typed: _Typed, lists: _Lists, keep: bool) -> None:
        self.source = source
        self.typed = typed
        self.lists = lists
        self.keep = keep
        self.known: dict[str, tuple[str, int]] = {}
        self.seen: set[int] = set()
        self.count = 0

    def ident(self, cell: str, space: str) -> str:
        """The id of a node."""
        key = collapse(cell)
        return f"{self.source}/{space}/{key}" if space else f"{self.source}/{key}"

    def labels(self, cell: str) -> list[str]:
        """The labels of a cell: `Person;Actor`, `:Person:Actor`."""
        text = cell.strip()
        parts = text[1:].split(":") if text.startswith(":") else text.split(self.lists.delimiter)
        return [label for part in parts if (label := collapse(part))]

    def nodes(self, file: GraphFile) -> Iterator[Item]:
        """The nodes of a file."""
        (at, *more), labels = file.at("id"), file.at("label")
        if more:
            raise LoadError("the header has several columns of ids", file=str(file.path))
        properties = [(one, column) for one, column in enumerate(file.columns) if column.role == "property"]
        names = sorted((rank, one) for one, column in properties if (rank := _rank(column.name)) is not None)
        own = file.columns[at]
        for chunk, _ in file.text.chunks(None, file.headers):
            check()
            columns = chunk.columns
            edges = _edge_rows(file, columns, len(chunk.numbers))
            self.count += len(chunk.numbers)
            for row, (number, edge) in enumerate(zip(chunk.numbers, edges, strict=True)):
                if edge:
                    continue
                cell = columns[at][row]
                if not cell.strip():
                    file.reading.bad("the node has no id", row=number, field=file.headers[at])
                    continue
                ident = self.ident(cell, own.space)
                where = ((file.source.name, number),)
                first = self.known.setdefault(ident, where[0])
                if first != where[0]:
                    said = f"the id {collapse(cell)!r} stands in row {first[1]} of {first[0]!r} already"
                    file.reading.bad(said, row=number, field=file.headers[at])
                    continue
                name = next((text for _, one in names if (text := collapse(columns[one][row]))), "")
                yield Sourced(Entity(ident, name or ident, EntityKind.ENTITY, number), where)
                for one in labels:
                    for label in self.labels(columns[one][row]):
                        yield Sourced(Member(ident, label, number), where)
                if own.name:
                    yield Sourced(Statement(ident, own.name, collapse(cell), (), number), where)
                for one, column in properties:
                    for value, raw in self._values(columns[one][row], column, False):
                        yield Sourced(Statement(ident, column.name, value, (), number, raw), where)

    def _values(self, cell: str, column: Column, edge: bool) -> Iterator[tuple[Value, str | None]]:
        for part in self.lists.of(cell, column, edge):
            found = self.typed.of(part, edge, column.name)
            if found is not None:
                yield found

    def edges(self, file: GraphFile) -> Iterator[Item]:
        """The relationships of a file."""
        starts, ends, types = file.at("start"), file.at("end"), file.at("type") or file.at("label")
        if len(starts) != 1 or len(ends) != 1:
            raise LoadError("the header has several columns of ends", file=str(file.path))
        start, end = starts[0], ends[0]
        properties = [(one, column) for one, column in enumerate(file.columns) if column.role == "property"]
        idents = file.at("id") if file.kind == "edges" else []
        if idents and not self.keep:
            file.reading.warn(
                "ids of relationships are not kept (edge_ids=true keeps them as qualifiers)", field=file.headers[idents[0]]
            )
        for chunk, _ in file.text.chunks(None, file.headers):
            check()
            columns = chunk.columns
            rows = _edge_rows(file, columns, len(chunk.numbers))
            self.count += len(chunk.numbers)
            for row, (number, edge) in enumerate(zip(chunk.numbers, rows, strict=True)):
                if not edge:
                    continue
                predicate = next((text for one in types if (text := collapse(columns[one][row]))), "")
                if not predicate:
                    file.reading.bad("the relationship has no type", row=number, field=file.headers[types[0]] if types else None)
                    continue
                found = [self.ident(columns[one][row], file.columns[one].space) for one in (start, end)]
                absent = next((one for one, ident in zip((start, end), found, strict=True) if ident not in self.known), None)
                if absent is not None:
                    file.reading.bad(f"there is no node {collapse(columns[absent][row])!r}", row=number, field=file.headers[absent])
                    continue
                qualifiers: list[tuple[str, Ref | Value]] = [
                    (column.name, value) for one, column in properties for value, _ in self._values(columns[one][row], column, True)
                ]
                if idents and self.keep and columns[idents[0]][row].strip():
                    qualifiers.append(("id", collapse(columns[idents[0]][row])))
                statement = Statement(found[0], predicate, Ref(found[1]), tuple(qualifiers), number)
                same = hash((found[0], predicate, found[1], statement.qualifiers))
                if same in self.seen:
                    file.reading.warn("the relationship says what another says; equal statements are one", row=number)
                self.seen.add(same)
                yield Sourced(statement, ((file.source.name, number),))


def _rank(name: str) -> int | None:
    """How well a property names its node, 0 the best."""
    column = plain(name)
    if column in ("name", "title", "label"):
        return ("name", "title", "label").index(column)
    return 3 if column.endswith(("name", "title")) else None


def _sniff(path: Path, head: bytes) -> int:
    """A file, or a folder of files, whose headers say nodes and relationships."""
    if path.is_dir():
        files = [one for one in path.iterdir() if not is_document(one)]
        if not files or not all(one.is_file() and suffix_of(one) in _SUFFIXES for one in files):
            return 0
        headers = {one: header_of(one) if head_text(read_head(one)) is not None else [] for one in files}
        kinds = {one: kind_of(rows[0]) if rows else "" for one, rows in headers.items()}
        if not any(kind in ("nodes", "both") for kind in kinds.values()):
            return 0
        own = [base_of(one) for one, rows in headers.items() if kinds[one] and len(rows) == 1]
        return 96 if all(kinds[one] or any(stem_of(one).startswith(base) for base in own) for one in files) else 0
    if head_text(head) is None:
        return 0
    if is_model(head):
        return 97
    rows = sample_rows(head, DELIMITERS)[1]
    return 95 if rows and kind_of(rows[0]) else 0


FORMAT: Final = Format(
    "property-graph",
    "a property graph as CSV: files of Neo4j's import tool or of APOC, of Neptune and Gremlin",
    _read,
    {
        "array_delimiter": "what stands between the elements of a list (default: ;)",
        "edge_ids": "whether ids of relationships are kept, as qualifiers (default: false)",
        "delimiter": "the character between fields (default: found out)",
        "encoding": ENCODING_HELP,
    },
    _sniff,
    lambda source: isinstance(source, GraphFiles),
)
