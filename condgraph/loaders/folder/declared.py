"""Declared joins and kinds of rows: in `condgraph.toml`, in options, or in descriptions that data sets bring.

Declarations come from the options of a load and from a declaration file: `condgraph.toml` in a
folder, or the file that `declaration=` names. Options take precedence over the file, and the file over
what a database declares itself.

    guess = false                                   # only what is declared here

    [tables.orders]
    key = "orderID"                                 # or ["order", "line"]
    name = "title"
    types = { zip = "text" }

    [tables.order-details]
    relation = "contains"                           # or true: named like the table

    [joins]
    "orders.shipVia" = "shippers.shipperID"         # or a list for several tables
    "parcels.(order, line)" = "lines.(order, line)"

    [single_valued]                                 # predicates with one value at a time, or a list of them
    capital = true                                  # or a preference: "latest", ["atlas", "notes"]

A folder may describe its tables in a Frictionless data package (`datapackage.json`), CSVW metadata,
or the files of a GTFS feed. Each becomes a `Described`: which files are tables, how their text is
written, and what their columns are. `declared` turns that into the same `Declared` that options and
`condgraph.toml` give. These take precedence, and names of columns are still examined where nothing is
declared. Parts of a description that are ignored give one warning. Nothing is fetched, and nothing
outside the folder is opened.

GTFS is a format of timetables of public transport: a folder of `.txt` tables whose names and keys are
specified. Its keys become the declaration of the folder. A service that only `calendar_dates` has, and
other things that rows share (the shape of a trip, a fare zone), become rows of separate tables:
`service`, `shape`, `zone`. Ids, names and codes are texts; dates are days.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

from condgraph.engine.conflicts import single_valued
from condgraph.engine.errors import CondgraphError, LoadError, OptionError, nearest, shortened
from condgraph.engine.row_times import RowTimes
from condgraph.engine.toml import read_toml
from condgraph.engine.values import collapse
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.files import file_errors, head_text, open_bytes, read_head, stem_of, suffix_of
from condgraph.loaders.table.column_types import DECLARED
from condgraph.loaders.table.rows import TABLE_OPTIONS
from condgraph.loaders.table.text import Chunk, TextTable, sample_rows

#: The name of a declaration file in a folder.
FILE: Final = "condgraph.toml"
#: The most bytes of a declaration file.
MAX_BYTES: Final = 1 << 20

#: The headers of tables, by name.
Headers: TypeAlias = Mapping[str, Sequence[str]]

#: Options of every format of several tables.
JOIN_OPTIONS: Final[Mapping[str, str]] = {
    "join": "columns that refer to rows of other tables: {'orders.shipVia': 'shippers.shipperID'}, a list for several; False: none",
    "keys": "the same as join=",
    "primary": "columns that identify the rows of a table: {'orders': 'orderID'}, a list for several columns",
    "name_columns": "columns that name the rows: {'products': 'productName'}",
    "relations": "tables whose rows are relations with qualifiers: ['order-details'], or {'order-details': 'contains'}",
    "declaration": "the declaration file with these options (default: condgraph.toml in the folder); False: none",
    "types": "how columns are read: {'orders.zip': 'text'}; types are text, number, time and auto",
    "missing": "further texts that mean a missing cell",
    "day_first": TABLE_OPTIONS["day_first"],
    "decimal": TABLE_OPTIONS["decimal"],
    "seasons": TABLE_OPTIONS["seasons"],
    "times": "columns that say when rows hold: {'prices': '[valid_from, valid_to)'}, ']' with the end included",
}
_TABLE_KEYS: Final = ("key", "name", "types", "relation", "type", "times")
_TOP_KEYS: Final = ("guess", "tables", "joins", "single_valued")


@dataclass(frozen=True, slots=True)
class Join:
    """Columns of a table, and the tables and columns (none: the key) that they refer to.

    `of_source` means that the source itself declares it. Databases may have foreign keys that lead to no
    key; their cells are then values, with a warning.
    """

    table: str
    columns: tuple[str, ...]
    targets: tuple[tuple[str, tuple[str, ...]], ...]
    of_source: bool = False

    def __str__(self) -> str:
        return f"the join of {self.table}.{' + '.join(self.columns)}"


@dataclass(slots=True)
class Declared:
    """Declarations about tables.

    `guess` tells whether names of columns are examined in addition, `guess_joins` whether they are for
    keys and references. An empty tuple in `keys` means that a table has no key. `types` are by table and
    column; a `relation` is its predicate, True (named like the table) or False; `type_columns` hold the
    predicate of each row.
    """

    where: Path | None = None
    guess: bool = True
    guess_joins: bool = True
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    types: dict[str, dict[str, str]] = field(default_factory=dict)
    relations: dict[str, bool | str] = field(default_factory=dict)
    type_columns: dict[str, str] = field(default_factory=dict)
    joins: list[Join] = field(default_factory=list)
    #: Texts that mean a missing cell, by table and column, instead of the general ones.
    missing: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    #: Options for the cells of a table: `day_first` and `decimal`.
    cells: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: The separator of cells that are lists, by table and column.
    separators: dict[str, dict[str, str]] = field(default_factory=dict)
    #: Predicates with one value at a time, with their preferences.
    single_valued: dict[str, Any] = field(default_factory=dict)
    #: The columns that say when the rows of a table hold.
    times: dict[str, RowTimes] = field(default_factory=dict)
    #: Tables whose source declares their keys; such a key is ignored, with a warning, if it is not unique.
    of_source: frozenset[str] = frozenset()

    def wrong(self, message: str, *, candidates: Sequence[str] = (), hint: str | None = None) -> CondgraphError:
        """Return the error for an invalid declaration, about the file or the options."""
        if self.where is not None:
            return LoadError(message, file=str(self.where), candidates=candidates, hint=hint)
        return OptionError(message, candidates=candidates, hint=hint)

    def over(self, below: Declared) -> Declared:
        """Return these declarations, completed by `below` for tables and columns that they do not mention."""
        own_joins = {(join.table, join.columns) for join in self.joins}
        return Declared(
            self.where or below.where,
            self.guess and below.guess,
            self.guess_joins and below.guess_joins,
            below.keys | self.keys,
            below.names | self.names,
            {table: below.types.get(table, {}) | self.types.get(table, {}) for table in (*below.types, *self.types)},
            below.relations | self.relations,
            below.type_columns | self.type_columns,
            [*self.joins, *(join for join in below.joins if (join.table, join.columns) not in own_joins)],
            below.missing | self.missing,
            below.cells | self.cells,
            below.separators | self.separators,
            below.single_valued | self.single_valued,
            below.times | self.times,
            below.of_source - self.keys.keys(),
        )


def of_options(options: Options, tables: Headers) -> Declared:
    """Return the declarations in options; raises `OptionError`."""
    declared = Declared()
    declared.keys = _columns_of(options.get("primary"), "primary", tables, declared)
    declared.names = {
        table: columns[0] for table, columns in _columns_of(options.get("name_columns"), "name_columns", tables, declared).items()
    }
    relations = options.get("relations")
    if relations is not None:
        if isinstance(relations, str) or not isinstance(relations, (Mapping, Iterable)):
            raise OptionError("relations= is a list of tables, or a mapping of tables to names of relations")
        for table in relations:
            known_table(str(table), "relations=", tables, declared)
        by_table = dict(relations) if isinstance(relations, Mapping) else dict.fromkeys(relations, True)
        declared.relations = {str(table): _relation(value, str(table), declared) for table, value in by_table.items()}
    times = options.get("times")
    if times is not None and not isinstance(times, Mapping):
        raise OptionError("times= is a mapping of tables to columns, as {'prices': '[valid_from, valid_to)'}")
    for table, text in (times or {}).items():
        known_table(str(table), "times=", tables, declared)
        declared.times[str(table)] = RowTimes.of(text, tables[str(table)])
    types = options.get("types")
    if types is not None:
        if not isinstance(types, Mapping):
            raise OptionError("types= is a mapping of columns to types, as {'orders.zip': 'text'}")
        for text, kind in types.items():
            table, columns = column(str(text), "types=", tables, declared)
            declared.types.setdefault(table, {})[columns[0]] = _type(kind, str(text), declared)
    for option in ("join", "keys"):
        joins = options.get(option)
        if joins is False:
            declared.guess_joins = False
        if joins is None or joins is False:
            continue
        if not isinstance(joins, Mapping):
            raise OptionError(
                f"{option}= is a mapping of columns to the keys they point to, as {{'orders.shipVia': 'shippers.shipperID'}}"
            )
        declared.joins += [_join(str(item), targets, f"{option}=", tables, declared) for item, targets in joins.items()]
    return declared


def of_file(path: Path, tables: Headers) -> Declared:
    """Return the declarations in a file; raises `LoadError` for an invalid one."""
    declared = Declared(path)
    content = _content(path)
    _only(content, _TOP_KEYS, "the file", declared)
    guess = content.get("guess", True)
    if not isinstance(guess, bool):
        raise declared.wrong("guess is true or false")
    declared.guess = declared.guess_joins = guess
    for table, section in _section(content, "tables", declared).items():
        known_table(table, "[tables]", tables, declared)
        if not isinstance(section, dict):
            raise declared.wrong(f"[tables.{table}] is not a section")
        _only(section, _TABLE_KEYS, f"[tables.{table}]", declared)
        if "key" in section:
            declared.keys |= _columns_of({table: section["key"]}, "key", tables, declared)
        if "name" in section:
            declared.names[table] = _columns_of({table: section["name"]}, "name", tables, declared)[table][0]
        if "relation" in section:
            declared.relations[table] = _relation(section["relation"], table, declared)
        if "type" in section:
            declared.type_columns[table] = _columns_of({table: section["type"]}, "type", tables, declared)[table][0]
        if "times" in section:
            try:
                declared.times[table] = RowTimes.of(section["times"], tables[table])
            except OptionError as error:
                raise declared.wrong(f"[tables.{table}]: {error.message}", candidates=error.candidates, hint=error.hint) from None
        types = section.get("types", {})
        if not isinstance(types, dict):
            raise declared.wrong(f"types of [tables.{table}] is a mapping of columns to types")
        for name, kind in types.items():
            column(f"{table}.{name}", "types", tables, declared)
            declared.types.setdefault(table, {})[name] = _type(kind, f"{table}.{name}", declared)
    declared.joins = [
        _join(item, targets, "[joins]", tables, declared) for item, targets in _section(content, "joins", declared).items()
    ]
    if content.get("single_valued"):
        try:
            declared.single_valued = single_valued(content["single_valued"])
        except OptionError as error:
            raise declared.wrong(error.message, candidates=error.candidates, hint=error.hint) from None
    return declared


def _content(path: Path) -> dict[str, Any]:
    with file_errors(path), path.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise LoadError(f"a declaration has at most {MAX_BYTES >> 20} MiB", file=str(path))
    try:
        return read_toml(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except ValueError as error:
        raise LoadError(f"the declaration is not TOML ({error})", file=str(path)) from None


def _section(content: Mapping[str, Any], name: str, declared: Declared) -> dict[str, Any]:
    result = content.get(name, {})
    if not isinstance(result, dict):
        raise declared.wrong(f"[{name}] is not a section")
    return result


def _only(content: Mapping[str, Any], known: Sequence[str], where: str, declared: Declared) -> None:
    for key in content:
        if key not in known:
            raise declared.wrong(f"{where} has no {key!r}", candidates=nearest(key, known), hint="it has: " + ", ".join(known))


def _relation(value: Any, table: str, declared: Declared) -> bool | str:
    if isinstance(value, bool) or (isinstance(value, str) and value.strip()):
        return value
    raise declared.wrong(f"the relation of {table!r} is true, false or its name, not {value!r}")


def _type(kind: Any, text: str, declared: Declared) -> str:
    if not isinstance(kind, str) or kind not in DECLARED:
        raise declared.wrong(
            f"unknown column type {kind!r} for {text}",
            candidates=nearest(str(kind), DECLARED),
            hint="types are: " + ", ".join(DECLARED),
        )
    return kind


def _columns_of(tables_option: Any, option: str, tables: Headers, declared: Declared) -> dict[str, tuple[str, ...]]:
    if tables_option is None:
        return {}
    if not isinstance(tables_option, Mapping):
        raise declared.wrong(f"{option}= is a mapping of tables to columns, as {{'orders': 'orderID'}}")
    result = {}
    for table, columns in tables_option.items():
        names = [columns] if isinstance(columns, str) else columns
        if (
            not isinstance(names, (list, tuple))
            or not all(isinstance(item, str) for item in names)
            or (not names and option != "key")
        ):
            raise declared.wrong(f"{option} of {table!r} is the name of a column, or a list of names")
        known_table(str(table), option, tables, declared)
        result[str(table)] = tuple(_known(str(table), item, option, tables, declared) for item in names)
    return result


def known_table(table: str, option: str, tables: Headers, declared: Declared) -> None:
    """Raise if a table does not exist."""
    if table not in tables:
        raise declared.wrong(f"{option} names the table {table!r}, which does not exist", candidates=nearest(table, tables))


def _known(table: str, column: str, option: str, tables: Headers, declared: Declared) -> str:
    if column not in tables[table]:
        raise declared.wrong(
            f"{option} names the column {column!r}, which {table!r} does not have",
            candidates=nearest(column, tables[table]),
            hint="columns are written as table.column",
        )
    return column


def _join(text: str, targets: Any, option: str, tables: Headers, declared: Declared) -> Join:
    target_columns = [targets] if isinstance(targets, str) else targets
    if (
        not isinstance(target_columns, (list, tuple))
        or not target_columns
        or not all(isinstance(item, str) for item in target_columns)
    ):
        raise declared.wrong(f"{option} joins {text} to a column, or to a list of columns of several tables")
    table, columns = column(text, option, tables, declared)
    return Join(
        table,
        columns,
        tuple((item, ()) if item in tables else column(item, option, tables, declared) for item in target_columns),
    )


_SEVERAL: Final[Callable[[str], Any]] = re.compile(r"(.+)\.\(([^()]*)\)", re.DOTALL).fullmatch


def column(text: str, option: str, tables: Headers, declared: Declared) -> tuple[str, tuple[str, ...]]:
    """Parse `orders.shipVia` or `lines.(order, line)`: the table and the columns, whose names may contain dots."""
    for at in (match.start() for match in re.finditer(r"\.", text[:10_000])):
        if text[:at] in tables and text[at + 1 :] in tables[text[:at]]:
            return text[:at], (text[at + 1 :],)
    tuple_form = _SEVERAL(text)
    if tuple_form:
        table = tuple_form[1]
        known_table(table, option, tables, declared)
        return table, tuple(_known(table, item.strip(), option, tables, declared) for item in tuple_form[2].split(","))
    table, _, name = text.partition(".")
    known_table(table, option, tables, declared)
    return table, (_known(table, name, option, tables, declared),)


#: The name of a data package.
PACKAGE: Final = "datapackage.json"
#: The most bytes of a description, and the most tables.
_MAX_BYTES: Final = 1 << 24
_MAX_TABLES: Final = 10_000
_CSVW: Final = re.compile(r'"https?://www\.w3\.org/ns/csvw(?:\.jsonld)?"').search
_TABLES: Final = (".csv", ".tsv", ".tab", ".psv", ".txt", ".parquet", ".pq")
#: Types of both vocabularies, as condgraph's types; others are inferred.
_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("string", "object", "array", "list", "geopoint", "geojson", "normalizedString", "token", "language"), "text"),
    **dict.fromkeys(("Name", "NMTOKEN", "anyURI", "xml", "html", "json", "hexBinary", "base64Binary", "binary"), "text"),
    **dict.fromkeys(("integer", "number", "decimal", "double", "float", "long", "int", "short", "byte"), "number"),
    **dict.fromkeys(("nonNegativeInteger", "positiveInteger", "unsignedInt", "unsignedLong", "unsignedShort"), "number"),
    **dict.fromkeys(("nonPositiveInteger", "negativeInteger", "unsignedByte"), "number"),
    **dict.fromkeys(("date", "datetime", "dateTime", "dateTimeStamp", "year", "yearmonth", "gYear", "gYearMonth"), "time"),
}


@dataclass(slots=True)
class DescribedColumn:
    """A described column: its name, other possible headers, and how its cells are read.

    `type` None means inferred, `missing` None the general texts for missing cells; `separator` is that of
    cells that are lists.
    """

    name: str
    titles: tuple[str, ...] = ()
    type: str | None = None
    missing: tuple[str, ...] | None = None
    day_first: bool | None = None
    decimal: str | None = None
    separator: str | None = None


@dataclass(slots=True)
class DescribedTable:
    """A described table: its file (None: its `rows` are in the description), options of its text, columns, and keys.

    `foreign` are its references: (columns, table, columns there).
    """

    name: str
    path: Path | None
    options: dict[str, Any] = field(default_factory=dict)
    columns: list[DescribedColumn] = field(default_factory=list)
    key: tuple[str, ...] = ()
    foreign: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The names of the columns if the file has no header."""
        return [(item.titles or (item.name,))[0] for item in self.columns]

    def headers_of(self, headers: Sequence[str]) -> dict[str, str]:
        """Return the file's headers by the described names: by header, or by position if the counts agree."""
        result: dict[str, str] = {}
        for at, item in enumerate(self.columns):
            header = next((text for name in (item.name, *item.titles) if (text := collapse(name)) in headers), None)
            if header is None and len(self.columns) == len(headers):
                header = headers[at]
            if header is not None:
                result[item.name] = header
        return result


@dataclass(slots=True)
class Described:
    """The description of a folder's tables in `file`; with `only`, other tables are not loaded."""

    file: Path
    tables: list[DescribedTable] = field(default_factory=list)
    only: bool = False
    #: Parts that are ignored: the places by kind.
    unread: dict[str, list[str]] = field(default_factory=dict)
    #: Other files that belong to the description.
    parts: set[Path] = field(default_factory=set)

    def leave(self, what: str, where: str) -> None:
        """Record an ignored part."""
        self.unread.setdefault(what, []).append(where)

    def warn(self, reading: Reading) -> None:
        """Warn of ignored parts, once for each kind."""
        for what, places in self.unread.items():
            more = f" and {len(places) - 2} more" if len(places) > 2 else ""
            reading.warn(f"{what}: {', '.join(map(repr, places[:2]))}{more}", file=str(self.file))

    def declared(self, headers: Headers) -> Declared:
        """Return the declarations for tables with these headers."""
        # A description with references is taken to have all of them.
        guess = not any(table.foreign for table in self.tables)
        result = Declared(guess_joins=guess, of_source=frozenset(table.name for table in self.tables))
        columns = {table.name: table.headers_of(headers[table.name]) for table in self.tables if table.name in headers}
        for item in self.tables:
            header_of = columns.get(item.name)
            if header_of is None:
                continue
            keys = {*item.key, *(name for columns_here, _, _ in item.foreign for name in columns_here)}
            for column in item.columns:
                header = header_of.get(column.name)
                if header is None:
                    self.leave("columns that the table does not have", f"{item.name}.{column.name}")
                    continue
                if column.type is not None:
                    result.types.setdefault(item.name, {})[header] = column.type
                if column.missing is not None:
                    result.missing.setdefault(item.name, {})[header] = column.missing
                if column.separator is not None and column.name in keys:
                    self.leave(
                        "lists in cells of keys and references are not read, and the cells are not split",
                        f"{item.name}.{column.name}",
                    )
                elif column.separator is not None:
                    result.separators.setdefault(item.name, {})[header] = column.separator
            for option in ("day_first", "decimal"):
                values = {value for column in item.columns if (value := getattr(column, option)) is not None}
                if len(values) == 1:
                    result.cells.setdefault(item.name, {})[option] = values.pop()
                elif values:
                    self.leave("dates or decimals written in two ways in one table are read by their cells", item.name)
            if item.key:
                key = self._named(item, item.key, header_of, headers)
                if key:
                    result.keys[item.name] = key
            for columns_here, table, columns_there in item.foreign:
                target = next((candidate for candidate in self.tables if candidate.name == table), None)
                if target is None or table not in columns:
                    self.leave("references to tables that are not loaded", f"{item.name}.{' + '.join(columns_here)}")
                    continue
                own_headers = self._named(item, columns_here, header_of, headers)
                target_headers = self._named(target, columns_there, columns[table], headers)
                if own_headers and (target_headers or not columns_there):
                    result.joins.append(Join(item.name, own_headers, ((table, target_headers),), of_source=True))
        return result

    def _named(self, table: DescribedTable, names: Sequence[str], known: Mapping[str, str], headers: Headers) -> tuple[str, ...]:
        """Return the headers of columns by their names; empty if one is missing."""
        named_headers = [known.get(name, name) for name in names]
        missing = [name for name in named_headers if name not in headers[table.name]]
        if missing:
            self.leave("keys of columns that the table does not have", f"{table.name}.{missing[0]}")
            return ()
        return tuple(named_headers)


def described(place: Path) -> Described | None:
    """Return the description of a folder's tables, or in a file; None if there is none. Raises `LoadError`."""
    if not place.is_dir():
        content = _description(place)
        result = _package(place, content) if "resources" in content else _csvw([(place, content)])
        result.only = True
        return result
    if (place / PACKAGE).is_file():
        return _package(place / PACKAGE, _description(place / PACKAGE))
    metadata = [
        item for item in sorted(place.iterdir()) if suffix_of(item) in (".json", ".jsonld") and item.is_file() and is_csvw(item)
    ]
    if metadata:
        return _csvw([(item, _description(item)) for item in metadata])
    return None


def is_description(path: Path, head: bytes) -> bool:
    """Whether a file is a data package or CSVW metadata."""
    if path.name == PACKAGE:
        return True
    text = (head_text(head) or "").lstrip("\ufeff \t\r\n")
    if not text.startswith("{"):
        return False
    return _CSVW(text) is not None or ('"resources"' in text and re.search(r'"[^"]*\bdata-?package\b[^"]*"', text) is not None)


def is_csvw(path: Path) -> bool:
    """Whether a file is CSVW metadata."""
    text = head_text(read_head(path))
    return text is not None and text.lstrip("\ufeff \t\r\n").startswith("{") and _CSVW(text) is not None


def _description(path: Path) -> dict[str, Any]:
    with open_bytes(path) as stream, file_errors(path):
        data = stream.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise LoadError(f"a description of tables has at most {_MAX_BYTES >> 20} MiB", file=str(path))
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise LoadError(f"this is not JSON: {error.msg} (column {error.colno})", file=str(path), row=error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise LoadError(f"this is not JSON ({shortened(str(error), 100)})", file=str(path)) from None
    if not isinstance(content, dict):
        raise LoadError("a description of tables is a JSON object", file=str(path))
    return content


def _inside(file: Path, name: object) -> Path | None:
    """Return a file that a description names, if it is below the description's folder; else None."""
    if not isinstance(name, str) or not name or "\\" in name or "\0" in name or ":" in name.partition("/")[0]:
        return None
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts:
        return None
    path = file.parent / parts
    try:
        return path if path.resolve().is_relative_to(file.parent.resolve()) else None
    except (OSError, RuntimeError):
        return None


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict))


def _texts(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    return tuple(text for item in listed if isinstance(text := item.get("value") if isinstance(item, dict) else item, str))


def _referred(file: Path, schema: Any, found: Described, where: str) -> dict[str, Any]:
    """Return a schema, which may be in a separate file."""
    if not isinstance(schema, str):
        return schema if isinstance(schema, dict) else {}
    path = _inside(file, schema)
    if path is None or not path.is_file():
        found.leave("schemas that are not in the folder are not read", where)
        return {}
    found.parts.add(path)
    return _description(path)


def _text_options(
    dialect: Mapping[str, Any], encoding: Any, found: Described, where: str, words: Mapping[str, str]
) -> dict[str, Any]:
    """Return options of a text from a dialect; `words` are the vocabulary's names."""
    options: dict[str, Any] = {}
    delimiter, comment = dialect.get("delimiter"), dialect.get(words["comment"])
    if isinstance(delimiter, str) and len(delimiter) == 1:
        options["delimiter"] = delimiter
    if isinstance(comment, str) and comment.strip():
        options["comment"] = comment
    if dialect.get("header") is False:
        options["header"] = False
    quote, escape = dialect.get("quoteChar", '"'), dialect.get("escapeChar")
    if quote in ("", None):
        options["dialect"] = "plain"
    elif escape == "\\" and quote == '"':
        options["dialect"] = "backslash"
    if quote not in ('"', "", None):
        found.leave(f'fields in quotes other than " are not read as such ({quote!r})', where)
    if isinstance(encoding, str) and encoding.casefold() not in ("utf-8", "utf8"):
        options["encoding"] = encoding
    return options


def _package(file: Path, content: Mapping[str, Any]) -> Described:
    """Parse a Frictionless data package, version 1 or 2."""
    result = Described(file)
    resources = list(_dicts(content.get("resources", [])))[:_MAX_TABLES]
    for at, resource in enumerate(resources, 1):
        name = resource.get("name")
        paths = resource.get("path", resource.get("url"))
        files = paths if isinstance(paths, list) else [paths]
        name = name if isinstance(name, str) and name.strip() else None
        where = name or (str(files[0]) if files[0] is not None else f"resource {at}")
        schema = _referred(file, resource.get("schema"), result, where)
        if "data" in resource and paths is None:
            if isinstance(resource["data"], list):
                result.tables.append(_with_schema(DescribedTable(where, None, rows=resource["data"]), schema, result))
            else:
                result.leave("resources whose data are not a list of rows are left out", where)
            continue
        if len(files) > 1:
            result.leave("the files of one resource are tables of their own", where)
        for item in files:
            path = _inside(file, item)
            if path is None:
                result.leave("resources outside the folder are left out", where)
                continue
            form = str(resource.get("format", "")).casefold()
            if (
                suffix_of(path) not in _TABLES
                and form not in ("csv", "tsv", "parquet")
                and "tabular" not in str(resource.get("profile"))
            ):
                result.leave("resources that are not tables are left out", where)
                continue
            dialect = _referred(file, resource.get("dialect"), result, where)
            options = _text_options(dialect, resource.get("encoding"), result, where, {"comment": "commentChar"})
            rows = dialect.get("headerRows")
            if isinstance(rows, list) and rows and all(isinstance(row, int) for row in rows):
                options["skip"] = rows[0] - 1
            table_name = stem_of(path) if len(files) > 1 or name is None else name
            result.tables.append(_with_schema(DescribedTable(table_name, path, options), schema, result))
    return result


def _with_schema(table: DescribedTable, schema: Mapping[str, Any], found: Described) -> DescribedTable:
    """Complete a table by a Table Schema."""
    missing = _texts(schema["missingValues"]) if isinstance(schema.get("missingValues"), list) else None
    for _dict in _dicts(schema.get("fields", [])):
        name = _dict.get("name")
        if not isinstance(name, str) or not name.strip():
            continue
        missing_texts = _texts(_dict["missingValues"]) if isinstance(_dict.get("missingValues"), list) else missing
        kind, form = _dict.get("type"), _dict.get("format")
        where = f"{table.name}.{name}"
        column = DescribedColumn(name, (), _TYPES.get(kind) if isinstance(kind, str) else None, missing_texts)
        if column.type == "time" and isinstance(form, str):
            column.day_first = _day_first(form)
        column.decimal = _decimal(_dict, where, found)
        if kind == "list":
            mark, item = _dict.get("delimiter", ","), _dict.get("itemType", "string")
            column.separator = mark if isinstance(mark, str) and mark else ","
            column.type = _TYPES.get(item) if isinstance(item, str) else None
        table.columns.append(column)
    table.key = _texts(schema.get("primaryKey", []))
    for foreign in _dicts(schema.get("foreignKeys", [])):
        reference = foreign.get("reference")
        reference = reference if isinstance(reference, dict) else {}
        target = reference.get("resource") or reference.get("package") or table.name
        columns_here, columns_there = _texts(foreign.get("fields", [])), _texts(reference.get("fields", []))
        if columns_here and isinstance(target, str):
            table.foreign.append((columns_here, table.name if target in ("self", "") else target, columns_there))
    return table


def _decimal(properties: Mapping[str, Any], where: str, found: Described) -> str | None:
    """Return the decimal mark of a column, if its description has one."""
    decimal, group = properties.get("decimalChar"), properties.get("groupChar", "")
    if decimal not in (None, ".", ",") or group not in (None, "", ".", ",", " ", "'", "\xa0"):
        found.leave("numbers with other marks than commas and points are read by their cells", where)
        return None
    # If points separate thousands, a comma separates decimals.
    return decimal or {".": ",", ",": "."}.get(group)


def _day_first(form: str) -> bool | None:
    """Return whether a date format has the day before the month; None if neither order applies.

    >>> _day_first("%d/%m/%Y"), _day_first("MM/dd/yyyy"), _day_first("yyyy-MM-dd"), _day_first("default")
    (True, False, None, None)
    """
    order = re.findall(r"%[dmbBYy]|d+|M+|y+", form)
    places = [{"d": "d", "m": "m", "b": "m", "M": "m"}.get(item.lstrip("%")[0], "y") for item in order]
    if places.count("d") != 1 or places.count("m") != 1 or places[0] == "y":
        return None
    return places.index("d") < places.index("m")


def _csvw(files: Iterable[tuple[Path, Mapping[str, Any]]]) -> Described:
    """Parse CSVW metadata: a table, or a group of tables, in one or several files."""
    metadata = list(files)
    result = Described(metadata[0][0])
    schemas: dict[str, str] = {}
    by_url: dict[Path, str] = {}
    waiting: list[tuple[DescribedTable, Path, dict[str, Any]]] = []
    for file, content in metadata:
        base = next((_dict["@base"] for _dict in _dicts(content.get("@context", [])) if isinstance(_dict.get("@base"), str)), "")
        base_file = _inside(file, base.rstrip("/") + "/x") if base else file
        base_file = file if base_file is None else base_file
        for item in [*_dicts(content["tables"])][:_MAX_TABLES] if "tables" in content else [content]:
            path = _inside(base_file, item.get("url"))
            where = str(item.get("url", "a table"))
            if path is None:
                result.leave("tables outside the folder are left out", where)
                continue
            schema = _referred(base_file, item.get("tableSchema", content.get("tableSchema")), result, where)
            dialect = {
                **_referred(base_file, content.get("dialect"), result, where),
                **_referred(base_file, item.get("dialect"), result, where),
            }
            options = _text_options(dialect, dialect.get("encoding"), result, where, {"comment": "commentPrefix"})
            rows, skipped_rows = dialect.get("headerRowCount"), dialect.get("skipRows")
            if rows == 0:
                options["header"] = False
            if isinstance(skipped_rows, int) and skipped_rows > 0:
                options["skip"] = skipped_rows
            table = DescribedTable(stem_of(path), path, options)
            _csvw_columns(table, [schema, item, content], schema, result)
            by_url[path] = table.name
            for ident in (schema.get("@id"), item.get("tableSchema")):
                if isinstance(ident, str):
                    schemas[ident] = table.name
            result.tables.append(table)
            waiting.append((table, base_file, schema))
    for table, base_file, schema in waiting:
        for _dict in _dicts(schema.get("foreignKeys", [])):
            reference = _dict.get("reference")
            reference = reference if isinstance(reference, dict) else {}
            place = _inside(base_file, reference.get("resource"))
            target = by_url.get(place) if place is not None else schemas.get(str(reference.get("schemaReference")))
            columns_here, columns_there = _texts(_dict.get("columnReference", [])), _texts(reference.get("columnReference", []))
            if columns_here:
                table.foreign.append((columns_here, target or str(reference.get("resource")), columns_there))
    return result


def _csvw_columns(table: DescribedTable, levels: Sequence[Mapping[str, Any]], schema: Mapping[str, Any], found: Described) -> None:
    """Add the columns of a table; missing properties are inherited from the levels above."""
    for at, item in enumerate(_dicts(schema.get("columns", [])), 1):
        if item.get("virtual") is True:
            continue
        titles = item.get("titles", [])
        if isinstance(titles, dict):
            titles = [text for value in titles.values() for text in (value if isinstance(value, list) else [value])]
        titles = _texts(titles)
        name = item.get("name")
        name = name if isinstance(name, str) and name.strip() else titles[0] if titles else f"_col.{at}"
        where = f"{table.name}.{name}"
        inherited = {
            key: next((level[key] for level in (item, *levels) if key in level), None) for key in ("null", "datatype", "separator")
        }
        kind = inherited["datatype"]
        base, form = (kind.get("base", "string"), kind.get("format")) if isinstance(kind, dict) else (kind, None)
        column = DescribedColumn(name, titles, _TYPES.get(base) if isinstance(base, str) else None)
        if inherited["null"] is not None:
            column.missing = ("", *_texts(inherited["null"]))
        if isinstance(form, dict):
            column.decimal = _decimal(form, where, found)
        elif isinstance(form, str) and column.type == "time":
            column.day_first = _day_first(form)
        separator = inherited["separator"]
        if isinstance(separator, str) and separator:
            column.separator = separator
        elif separator is not None:
            found.leave("separators of lists in cells that are not texts are not read, and the cells are not split", where)
        table.columns.append(column)
    table.key = _texts(schema.get("primaryKey", []))


#: The key columns of tables.
KEYS: Final[Mapping[str, str]] = {
    "agency": "agency_id",
    "stops": "stop_id",
    "routes": "route_id",
    "trips": "trip_id",
    "calendar": "service_id",
    "fare_attributes": "fare_id",
    "levels": "level_id",
    "pathways": "pathway_id",
    "areas": "area_id",
    "networks": "network_id",
    "attributions": "attribution_id",
    "booking_rules": "booking_rule_id",
    "location_groups": "location_group_id",
    "fare_media": "fare_media_id",
    "rider_categories": "rider_category_id",
}
#: Tables of the specification without a key of one column.
_OTHERS: Final = frozenset(
    (
        *("stop_times", "calendar_dates", "shapes", "frequencies", "transfers", "translations", "feed_info", "timeframes"),
        *("fare_rules", "fare_products", "fare_leg_rules", "fare_leg_join_rules", "fare_transfer_rules"),
        *("stop_areas", "route_networks", "location_group_stops"),
    )
)
#: Core tables of a feed, and a column that each must have.
_CORE: Final[Mapping[str, str]] = {"stops": "stop_id", "routes": "route_id", "trips": "trip_id", "stop_times": "trip_id"}
#: Columns whose values are shared by rows, and become rows of a separate table.
_GROUPS: Final[Mapping[str, str]] = {"service_id": "service", "shape_id": "shape", "zone_id": "zone"}
_GROUP_ALIASES: Final = {
    **{column: column for column in _GROUPS},
    **dict.fromkeys(("origin_id", "destination_id", "contains_id"), "zone_id"),
}
#: Columns that refer to a key under another name.
_REFERENCES: Final[Mapping[str, str]] = {
    "parent_station": "stop_id",
    "from_stop_id": "stop_id",
    "to_stop_id": "stop_id",
    "from_trip_id": "trip_id",
    "to_trip_id": "trip_id",
    "from_route_id": "route_id",
    "to_route_id": "route_id",
    "from_area_id": "area_id",
    "to_area_id": "area_id",
    "pickup_booking_rule_id": "booking_rule_id",
    "drop_off_booking_rule_id": "booking_rule_id",
}
_DATES: Final = frozenset(("date", "start_date", "end_date", "feed_start_date", "feed_end_date"))
_TEXTS: Final = ("_id", "_name", "_code", "_desc", "_headsign", "_color", "_phone", "parent_station")


def gtfs_files(folder: Path) -> dict[str, Path]:
    """Return the tables of a feed by name; empty if the folder is no feed."""
    named: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        stem = stem_of(path).casefold()
        if suffix_of(path) in (".txt", ".csv") and path.is_file() and (stem in KEYS or stem in _OTHERS):
            named.setdefault(stem, path)
    core = [table for table, column in _CORE.items() if table in named and column in _header(named[table])]
    return named if len(core) > 1 else {}


def _header(path: Path) -> list[str]:
    rows = sample_rows(read_head(path), ",;\t|")[1]
    return [cell.strip() for cell in rows[0]] if rows else []


@dataclass(slots=True)
class GroupCells:
    """The distinct cells of a column of several tables, without existing keys; the column is the only header."""

    headers: list[str]
    tables: list[tuple[TextTable, int]]
    keys: list[tuple[TextTable, int]]

    def chunks(self, report: Reading | None, names: Sequence[str]) -> Iterator[tuple[Chunk, float]]:
        """Yield the rows, all at once."""
        texts: dict[str, None] = {}
        for table, at in self.tables:
            for chunk, _ in table.chunks(None, table.headers):
                texts.update(dict.fromkeys(cell.strip() for cell in set(chunk.columns[at])))
        known = {
            cell.strip() for table, at in self.keys for chunk, _ in table.chunks(None, table.headers) for cell in chunk.columns[at]
        }
        cells = [cell for cell in texts if cell and cell not in known]
        if cells:
            yield Chunk(range(1, len(cells) + 1), [cells]), 1.0


def gtfs_groups(files: Mapping[str, Path], opens: Callable[[Path], TextTable]) -> dict[str, GroupCells]:
    """Return the tables of values that rows share."""
    places: dict[str, list[tuple[str, int]]] = {}
    for name, path in files.items():
        for at, header in enumerate(_header(path)):
            if header in _GROUP_ALIASES:
                places.setdefault(_GROUP_ALIASES[header], []).append((name, at))
    result = {}
    for column, tables in places.items():
        group, keyed = _GROUPS[column], [(name, at) for name, at in tables if KEYS.get(name) == column]
        references = [(name, at) for name, at in tables if (name, at) not in keyed]
        # A column in a single table joins nothing.
        if group in files or len(references) < (2 if not keyed else 1):
            continue
        cells = GroupCells(
            [column], [(opens(files[name]), at) for name, at in references], [(opens(files[name]), at) for name, at in keyed]
        )
        if next(cells.chunks(None, cells.headers), None) is not None:
            result[group] = cells
    return result


def gtfs_declared(headers: Headers) -> Declared:
    """Return the keys, references and types of the tables of a feed."""
    declared = Declared(guess_joins=False, of_source=frozenset(headers))
    declared.keys = {table: (column,) for table, column in KEYS.items() if column in headers.get(table, ())}
    declared.keys |= {group: (column,) for column, group in _GROUPS.items() if group in headers}
    targets: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for table, (column,) in declared.keys.items():
        targets.setdefault(column, []).append((table, (column,)))
    for table, names in headers.items():
        for name in names:
            column = _REFERENCES.get(name, _GROUP_ALIASES.get(name, name))
            reached = targets.get(column, [])
            if reached and declared.keys.get(table) != (name,):
                declared.joins.append(Join(table, (name,), tuple(reached), of_source=True))
            kind = "time" if name in _DATES else "text" if name.endswith(_TEXTS) else None
            if kind is not None:
                declared.types.setdefault(table, {})[name] = kind
    return declared
