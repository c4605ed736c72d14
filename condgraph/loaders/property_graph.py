"""Loader of property graphs as CSV: exports of Neo4j (APOC), files of its import tool, Neptune, Gremlin.

A node becomes an entity with the id `source/id` (`source/space/id`), named by its property `name`,
`title` or `label`, or one with such an ending; its labels are concepts, its properties statements. A
relationship becomes a statement with its properties as qualifiers; equal ones become one, with a
warning. Properties are typed over all files, like the columns of a table; lists are several
statements. Only an empty cell is missing.

The headers, in the three notations:

- **Neo4j's import tool**: `personId:ID(Person)`, `name`, `born:int`, `:LABEL` for nodes,
  `:START_ID(Person)`, `:END_ID`, `:TYPE`, `roles:string[]` for relationships.
- **Neptune, Gremlin**: `~id`, `~label`, `name:String`, and `~id`, `~from`, `~to`, `~label`.
- **APOC** (`apoc.export.csv`): `_id`, `_labels`, properties, `_start`, `_end`, `_type`, nodes and
  relationships in one file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from condgraph.engine.bounds import check
from condgraph.engine.errors import FormatError, LoadError, OptionError, shortened
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement
from condgraph.engine.values import Value, collapse
from condgraph.loaders.base import Format, Options, Reading, option_bool
from condgraph.loaders.files import ENCODING_HELP, head_text, is_document, path_of, read_head, stem_of, suffix_of
from condgraph.loaders.table.column_types import Cell, ColumnType, Declared, Profile
from condgraph.loaders.table.joins import plain
from condgraph.loaders.table.text import TextTable, sample_rows

#: The roles of columns with special names.
_ROLES: Final = {
    ":id": "id", ":label": "label", ":start_id": "start", ":end_id": "end", ":type": "type", ":ignore": "ignore",
    "~id": "id", "~label": "label", "~from": "start", "~to": "end",
    "_id": "id", "_labels": "label", "_start": "start", "_end": "end", "_type": "type",
}  # fmt: skip
_NEO4J: Final = re.compile(
    r"(?P<name>[^:]*):(?P<role>ID|LABEL|START_ID|END_ID|TYPE|IGNORE)(?:\((?P<space>[^()]*)\))?(?:\{[^{}]*\})?", re.IGNORECASE
)
_TYPED: Final = re.compile(
    r"(?P<name>.+):(?P<type>[A-Za-z]+)(?:\((?P<single>single|set)\))?(?:\{[^{}]*\})?(?P<array>\[\])?(?:\{[^{}]*\})?", re.IGNORECASE
)
#: How cells of a declared type are read; the types of others are inferred.
_TYPES: Final[dict[str, Declared]] = {
    **dict.fromkeys(("int", "integer", "long", "short", "byte", "float", "double", "number"), "number"),
    **dict.fromkeys(("string", "char", "boolean", "bool", "point", "vector"), "text"),
    **dict.fromkeys(("date", "datetime", "localdatetime", "zoneddatetime"), "time"),
    **dict.fromkeys(("time", "localtime", "zonedtime", "duration"), "auto"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its role, its property's name, the type of its cells, whether they are lists, and the id space.

    The role is "property" for a column without a special name.
    """

    role: str
    name: str = ""
    declared: Declared = "auto"
    array: bool = False
    space: str = ""


def column_of(header: str) -> Column:
    """Parse a header."""
    header = collapse(header)
    role = _ROLES.get(header.casefold())
    if role is not None:
        return Column(role)
    special = _NEO4J.fullmatch(header)
    if special:
        return Column(_ROLES[f":{special['role'].casefold()}"], special["name"].strip(), space=special["space"] or "")
    typed = _TYPED.fullmatch(header)
    if typed and typed["type"].casefold() in _TYPES:
        array = bool(typed["array"] or typed["single"] == "set")
        return Column("property", typed["name"].strip(), _TYPES[typed["type"].casefold()], array)
    return Column("property", header)


def kind_of(headers: Sequence[str]) -> str:
    """Return what a file with these headers holds: "nodes", "edges", "both" (APOC), or "" for neither."""
    roles = {column.role for column in map(column_of, headers)}
    apoc = {"_id", "_start", "_end"} <= {collapse(header).casefold() for header in headers}
    if apoc:
        return "both"
    if {"start", "end"} <= roles:
        return "edges"
    neptune_edge = any(header.startswith("~") for header in headers) and bool(roles & {"start", "end"})
    # A column named just _id may be the id of anything.
    marked = any(header.startswith("~") or ":" in header for header in map(collapse, headers) if column_of(header).role == "id")
    return "nodes" if "id" in roles and marked and not neptune_edge else ""


#: Keys of models of Neo4j's importer, in its different versions.
_PARTS: Final = re.compile(r'"(?:graphModel|mappingModel|graphSchemaRepresentation|graphMappingRepresentation)"\s*:')


def is_model(head: bytes) -> bool:
    """Whether a file with this head is a model of Neo4j's importer."""
    text = head_text(head)
    return text is not None and text.lstrip()[:1] == "{" and '"dataModel"' in text and _PARTS.search(text) is not None


def refuse_models(paths: Iterable[Path]) -> None:
    """Raise `FormatError` for the first file that is a model of Neo4j's importer, with what to load instead."""
    for path in paths:
        if path.is_file() and is_model(read_head(path)):
            raise FormatError(
                "this is a model of Neo4j's importer: it maps CSV files to nodes, and has no data",
                file=str(path),
                hint="load the folder of these CSV files without it (join= says what refers to what; condgraph guess writes "
                "that down), or open the database that it was imported into: condgraph.open('bolt://...')",
            )


#: The possible delimiters of columns.
DELIMITERS: Final = ",;\t|"
_HEADER: Final = re.compile(r"[-_ .]?headers?$", re.IGNORECASE)


@dataclass(frozen=True)
class GraphFiles:
    """Several files that are one property graph."""

    paths: tuple[Path, ...]

    @property
    def called(self) -> str:
        """The name of the source: that of the folder of its files."""
        return self.paths[0].resolve().parent.name or "graph"


class GraphFile:
    """One file: its columns, and the reading that collects its problems."""

    def __init__(self, path: Path, header: Sequence[str] | None, reading: Reading, options: Options, alone: bool) -> None:
        self.path = path
        stem = stem_of(path)
        self.source = (
            reading.source
            if alone
            else Source(f"{reading.source.name}/{stem}", str(path), "property-graph", reading.source.content)
        )
        self.reading = Reading(replace(self.source, location=str(path)), reading.on_error, None, reading.problems)
        text_options = {name: options[name] for name in ("delimiter", "encoding") if name in options}
        self.text = TextTable.open(path, self.reading, {**text_options, "header": header is None}, DELIMITERS)
        self.headers = list(self.text.headers if header is None else header)
        if header is not None and len(self.headers) != len(self.text.headers):
            raise LoadError(f"the file has {len(self.text.headers)} columns, and its header {len(self.headers)}", file=str(path))
        self.columns = [column_of(header) for header in self.headers]
        for at, column in enumerate(self.columns, 1):
            if column.role == "property" and not column.name:
                # A predicate needs a name; this one is as in tables.
                self.columns[at - 1] = replace(column, name=f"column {at}")
                self.reading.warn(f"column {at} has no header and is named 'column {at}'", field=f"column {at}")
        self.kind = kind_of(self.headers)

    def at(self, role: str) -> list[int]:
        """Return the indices of the columns with a role."""
        return [at for at, column in enumerate(self.columns) if column.role == role]


def opened(paths: Sequence[Path], reading: Reading, options: Options) -> list[GraphFile]:
    """Open the files; their headers may be in separate files."""
    headers = {path: header_of(path) for path in paths}
    header_rows = {base_of(path): rows[0] for path, rows in headers.items() if len(rows) == 1 and kind_of(rows[0])}
    files = []
    for path, rows in headers.items():
        if rows and kind_of(rows[0]):
            if len(rows) > 1 or _HEADER.search(stem_of(path)) is None:
                files.append(GraphFile(path, None, reading, options, len(paths) == 1))
            continue
        stem = stem_of(path)
        base = max((item for item in header_rows if stem.startswith(item)), key=len, default=None)
        if base is None:
            raise FormatError(
                "the header declares neither nodes nor relationships",
                file=str(path),
                hint="columns are :ID, ~id or _id and the like",
            )
        files.append(GraphFile(path, header_rows[base], reading, options, False))
    return files


def header_of(path: Path) -> Sequence[Sequence[str]]:
    """Return the first two records of a file."""
    return sample_rows(read_head(path), DELIMITERS)[1][:2]


def base_of(path: Path) -> str:
    """Return a file's name without a suffix for headers: "films" for films-header.csv."""
    return _HEADER.sub("", stem_of(path))


def files_of(source: Any) -> list[Path]:
    """Return the files of a source; raises `FormatError` for a folder without any."""
    if isinstance(source, GraphFiles):
        return list(source.paths)
    path = path_of(source)
    if not path.is_dir():
        return [path]
    result = [item for item in sorted(path.iterdir()) if item.is_file() and not is_document(item)]
    if not result:
        raise FormatError("the folder has no CSV files", file=str(path))
    return result


_NONE: Final = frozenset(("",))
_SUFFIXES: Final = (".csv", ".tsv", ".txt", "")


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    refuse_models(source.paths if isinstance(source, GraphFiles) else [path_of(source)])
    array = options.get("array_delimiter", ";")
    if not isinstance(array, str) or not array:
        raise OptionError("array_delimiter= is a text")
    edge_ids = option_bool(options, "edge_ids") or False
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
    graph = _Graph(reading.source.name, typed, lists, edge_ids)
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
    """Splits cells that are lists."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        #: Whether the cells of a property are all lists in JSON, although no header declares it.
        self.json: dict[tuple[bool, str], bool] = {}

    def of(self, cell: str, column: Column, edge: bool) -> Sequence[str]:
        """Return the elements of a cell: one if it is no list, none if it is empty."""
        if not cell.strip():
            return ()
        if column.array:
            return [part for part in cell.split(self.delimiter) if part.strip()]
        if self.json.get((edge, column.name)):
            return [element if isinstance(element, str) else json.dumps(element) for element in json.loads(cell)]
        return (cell,)

    def look(self, cells: Sequence[str], column: Column, edge: bool) -> None:
        """Determine whether the cells of a column are lists in JSON."""
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
        value = json.loads(cell)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, list) and not any(isinstance(item, (list, dict)) for item in value)


def _edge_rows(file: GraphFile, columns: Sequence[Sequence[str]], size: int) -> Sequence[bool]:
    """Return for each row whether it is a relationship."""
    if file.kind != "both":
        return [file.kind == "edges"] * size
    return [bool(cell.strip()) for cell in columns[file.at("start")[0]]]


def _survey(file: GraphFile, profiles: dict[tuple[bool, str], Profile], lists: _Lists) -> None:
    """Profile the properties of a file, in a first pass."""
    for chunk, _ in file.text.chunks(file.reading, file.headers):
        check()
        edges = _edge_rows(file, chunk.columns, len(chunk.numbers))
        for column, cells in zip(file.columns, chunk.columns, strict=True):
            if column.role != "property":
                continue
            for edge in (False, True):
                own_cells = [cell for cell, is_edge in zip(cells, edges, strict=True) if is_edge is edge]
                lists.look(own_cells, column, edge)
                elements = [part for cell in own_cells for part in lists.of(cell, column, edge)]
                profiles.setdefault((edge, column.name), Profile(_NONE)).add(elements)


class _Typed:
    """Reads the properties of nodes and relationships, with types inferred over all files."""

    def __init__(self, files: Sequence[GraphFile], profiles: dict[tuple[bool, str], Profile], lists: _Lists) -> None:
        declared: dict[str, set[Declared]] = {}
        first: dict[str, GraphFile] = {}
        for file in files:
            for column in file.columns:
                if column.role == "property":
                    declared.setdefault(column.name, set()).add(column.declared)
                    first.setdefault(column.name, file)
        self._lists = lists
        self._types: dict[tuple[bool, str], ColumnType] = {}
        self._readers: dict[tuple[bool, str], Callable[[str], Cell | None]] = {}
        for (edge, name), profile in profiles.items():
            kinds = declared[name]
            # A number that is none (NaN) is no missing one here.
            chosen = replace(profile.decide(name, next(iter(kinds)) if len(kinds) == 1 else "auto"), missing=_NONE)
            self._types[edge, name], self._readers[edge, name] = chosen, chosen.reader()
            for note in chosen.notes():
                # The options that a note names are those of tables.
                message = f"{note.partition('; ')[0]}; a type in the header, as in {name}:string, decides"
                first[name].reading.warn(message, field=name)

    def values(self, cell: str, column: Column, edge: bool, file: GraphFile, row: int) -> Iterator[tuple[Value, str | None]]:
        """Yield the values of a property in a cell, each with its raw text if that differs."""
        for part in self._lists.of(cell, column, edge):
            read = self._readers[edge, column.name](part)
            if read is not None:
                kind = self._types[edge, column.name].kind
                if isinstance(read[0], str) and kind in ("number", "time", "clock"):
                    kinds = "numbers" if kind == "number" else "times"
                    file.reading.warn(f"{shortened(read[0], 60)!r} stays text among {kinds}", row=row, field=column.name)
                yield read


class _Graph:
    """The state of reading a graph: its nodes, and the relationships so far."""

    def __init__(self, source: str, typed: _Typed, lists: _Lists, keep: bool) -> None:
        self.source = source
        self.typed = typed
        self.lists = lists
        self.keep = keep
        self.known: dict[str, tuple[str, int]] = {}
        self.seen: set[int] = set()
        self.count = 0

    def ident(self, cell: str, space: str) -> str:
        key = collapse(cell)
        return f"{self.source}/{space}/{key}" if space else f"{self.source}/{key}"

    def labels(self, cell: str) -> list[str]:
        """Return the labels in a cell: `Person;Actor`, `:Person:Actor`."""
        text = cell.strip()
        parts = text[1:].split(":") if text.startswith(":") else text.split(self.lists.delimiter)
        return [label for part in parts if (label := collapse(part))]

    def _rows(self, file: GraphFile, *, edges: bool) -> Iterator[tuple[Sequence[Sequence[str]], int, int]]:
        """Yield the nodes or relationships of a file: columns, index in them, and row number."""
        for chunk, _ in file.text.chunks(None, file.headers):
            check()
            self.count += len(chunk.numbers)
            are_edges = _edge_rows(file, chunk.columns, len(chunk.numbers))
            for row, (number, edge) in enumerate(zip(chunk.numbers, are_edges, strict=True)):
                if edge is edges:
                    yield chunk.columns, row, number

    def nodes(self, file: GraphFile) -> Iterator[Item]:
        """Yield the nodes of a file."""
        (at, *more), labels = file.at("id"), file.at("label")
        if more:
            raise LoadError("the header has several columns of ids", file=str(file.path))
        properties = [(place, column) for place, column in enumerate(file.columns) if column.role == "property"]
        names = sorted((rank, place) for place, column in properties if (rank := _rank(column.name)) is not None)
        id_column = file.columns[at]
        for columns, row, number in self._rows(file, edges=False):
            cell = columns[at][row]
            if not cell.strip():
                file.reading.bad("the node has no id", row=number, field=file.headers[at])
                continue
            ident = self.ident(cell, id_column.space)
            sources = ((file.source.name, number),)
            first_row = self.known.setdefault(ident, sources[0])
            if first_row != sources[0]:
                message = f"the id {collapse(cell)!r} is already in row {first_row[1]} of {first_row[0]!r}"
                file.reading.bad(message, row=number, field=file.headers[at])
                continue
            name = next((text for _, place in names if (text := collapse(columns[place][row]))), "")
            yield Sourced(Entity(ident, name or ident, EntityKind.ENTITY, number), sources)
            for place in labels:
                for label in self.labels(columns[place][row]):
                    yield Sourced(Member(ident, label, number), sources)
            if id_column.name:
                yield Sourced(Statement(ident, id_column.name, collapse(cell), (), number), sources)
            for place, column in properties:
                for value, raw in self.typed.values(columns[place][row], column, False, file, number):
                    yield Sourced(Statement(ident, column.name, value, (), number, raw), sources)

    def edges(self, file: GraphFile) -> Iterator[Item]:
        """Yield the relationships of a file."""
        starts, ends, types = file.at("start"), file.at("end"), file.at("type") or file.at("label")
        if len(starts) != 1 or len(ends) != 1:
            raise LoadError("the header has several columns of ends", file=str(file.path))
        start, end = starts[0], ends[0]
        properties = [(place, column) for place, column in enumerate(file.columns) if column.role == "property"]
        idents = file.at("id") if file.kind == "edges" else []
        if idents and not self.keep:
            file.reading.warn(
                "ids of relationships are not kept (edge_ids=true keeps them as qualifiers)", field=file.headers[idents[0]]
            )
        for columns, row, number in self._rows(file, edges=True):
            predicate = next((text for item in types if (text := collapse(columns[item][row]))), "")
            if not predicate:
                file.reading.bad("the relationship has no type", row=number, field=file.headers[types[0]] if types else None)
                continue
            end_ids = [self.ident(columns[item][row], file.columns[item].space) for item in (start, end)]
            missing = next((place for place, ident in zip((start, end), end_ids, strict=True) if ident not in self.known), None)
            if missing is not None:
                file.reading.bad(f"there is no node {collapse(columns[missing][row])!r}", row=number, field=file.headers[missing])
                continue
            qualifiers: list[tuple[str, Ref | Value]] = [
                (column.name, value)
                for place, column in properties
                for value, _ in self.typed.values(columns[place][row], column, True, file, number)
            ]
            if idents and self.keep and columns[idents[0]][row].strip():
                qualifiers.append(("id", collapse(columns[idents[0]][row])))
            statement = Statement(end_ids[0], predicate, Ref(end_ids[1]), tuple(qualifiers), number)
            key = hash((end_ids[0], predicate, end_ids[1], statement.qualifiers))
            if key in self.seen:
                file.reading.warn("the relationship repeats another; equal statements count once", row=number)
            self.seen.add(key)
            yield Sourced(statement, ((file.source.name, number),))


def _rank(name: str) -> int | None:
    """Return how well a property names its node: 0 is best, None is not a name."""
    column = plain(name)
    if column in ("name", "title", "label"):
        return ("name", "title", "label").index(column)
    return 3 if column.endswith(("name", "title")) else None


def _sniff(path: Path, head: bytes) -> int:
    """Score a file, or a folder of files, by headers of nodes and relationships."""
    if path.is_dir():
        files = [item for item in path.iterdir() if not is_document(item)]
        if not files or not all(file.is_file() and suffix_of(file) in _SUFFIXES for file in files):
            return 0
        headers = {file: header_of(file) if head_text(read_head(file)) is not None else [] for file in files}
        kinds = {place: kind_of(rows[0]) if rows else "" for place, rows in headers.items()}
        if not any(kind in ("nodes", "both") for kind in kinds.values()):
            return 0
        header_bases = [base_of(place) for place, rows in headers.items() if kinds[place] and len(rows) == 1]
        return 96 if all(kinds[file] or any(stem_of(file).startswith(base) for base in header_bases) for file in files) else 0
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
        "array_delimiter": "the separator of the elements of a list (default: ;)",
        "edge_ids": "whether ids of relationships are kept, as qualifiers (default: false)",
        "delimiter": "the character between fields (default: detected)",
        "encoding": ENCODING_HELP,
    },
    _sniff,
    lambda source: isinstance(source, GraphFiles),
    sign=re.compile(rb"[:~_]").search,
)
