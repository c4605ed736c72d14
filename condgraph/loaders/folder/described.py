"""What a folder says itself of its tables: a Frictionless data package (`datapackage.json`), CSVW
metadata, or the files of a GTFS feed (`gtfs`).

Each becomes `Described`: which files are tables, how their text is written, and what their columns
are. `declared` turns that into the same `Declared` that options and `condgraph.toml` give. These
overrule it, and names of columns are still looked at where it says nothing. What it says and is not
read is one warning. Nothing is fetched, and nothing outside the folder is opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from condgraph.engine.errors import LoadError, shortened
from condgraph.engine.values import collapse
from condgraph.loaders.base import Reading
from condgraph.loaders.files import file_errors, head_text, open_bytes, read_head, stem_of, suffix_of
from condgraph.loaders.folder.declared import Declared, Headers, Join

#: What a data package is called.
PACKAGE: Final = "datapackage.json"
#: Bytes that such a file may have, and how many tables it may name.
_MOST_BYTES: Final = 1 << 24
_MOST_TABLES: Final = 10_000
_CSVW: Final = re.compile(r'"https?://www\.w3\.org/ns/csvw(?:\.jsonld)?"').search
_TABLES: Final = (".csv", ".tsv", ".tab", ".psv", ".txt", ".parquet", ".pq")
#: Types of both vocabularies, as condgraph reads them; all others are found out.
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
    """A column as it is described: its name there, further names that a header may have, its type
    (None: found out), and texts that stand for a missing cell (None: those of every table).
    """

    name: str
    titles: tuple[str, ...] = ()
    type: str | None = None
    missing: tuple[str, ...] | None = None
    day_first: bool | None = None
    decimal: str | None = None


@dataclass(slots=True)
class DescribedTable:
    """A table as it is described: where it lies (None: its `rows` are in the description), options
    of its text, its columns, its key, and (columns, table, columns there) of its references.
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
        """What the columns are called where the file has no header."""
        return [(one.titles or (one.name,))[0] for one in self.columns]

    def headers_of(self, headers: Sequence[str]) -> dict[str, str]:
        """The columns of the file by their names in the description: by header, or by position where
        it describes as many as there are.
        """
        found: dict[str, str] = {}
        for at, one in enumerate(self.columns):
            named = next((text for name in (one.name, *one.titles) if (text := collapse(name)) in headers), None)
            if named is None and len(self.columns) == len(headers):
                named = headers[at]
            if named is not None:
                found[one.name] = named
        return found


@dataclass(slots=True)
class Described:
    """What a folder says of its tables: `file` says it. `only`: tables that it does not name are not
    loaded.
    """

    file: Path
    tables: list[DescribedTable] = field(default_factory=list)
    only: bool = False
    #: What it says and is not read, by kind: where.
    unread: dict[str, list[str]] = field(default_factory=dict)
    #: Further files that it consists of.
    parts: set[Path] = field(default_factory=set)

    def leave(self, what: str, where: str) -> None:
        """Something that it says and that is not read."""
        self.unread.setdefault(what, []).append(where)

    def warn(self, reading: Reading) -> None:
        """Say what is not read, one warning a kind."""
        for what, places in self.unread.items():
            more = f" and {len(places) - 2} more" if len(places) > 2 else ""
            reading.warn(f"{what}: {', '.join(map(repr, places[:2]))}{more}", file=str(self.file))

    def declared(self, headers: Headers) -> Declared:
        """What it declares of tables with these headers."""
        # Who declares references declares all of them.
        guess = not any(one.foreign for one in self.tables)
        said = Declared(guess_joins=guess, of_source=frozenset(one.name for one in self.tables))
        columns = {one.name: one.headers_of(headers[one.name]) for one in self.tables if one.name in headers}
        for one in self.tables:
            known = columns.get(one.name)
            if known is None:
                continue
            for column in one.columns:
                header = known.get(column.name)
                if header is None:
                    self.leave("columns that the table does not have", f"{one.name}.{column.name}")
                    continue
                if column.type is not None:
                    said.types.setdefault(one.name, {})[header] = column.type
                if column.missing is not None:
                    said.missing.setdefault(one.name, {})[header] = column.missing
            for option in ("day_first", "decimal"):
                values = {value for column in one.columns if (value := getattr(column, option)) is not None}
                if len(values) == 1:
                    said.cells.setdefault(one.name, {})[option] = values.pop()
                elif values:
                    self.leave("dates or decimals written in two ways in one table are read by their cells", one.name)
            if one.key:
                key = self._named(one, one.key, known, headers)
                if key:
                    said.keys[one.name] = key
            for mine, table, theirs in one.foreign:
                target = next((other for other in self.tables if other.name == table), None)
                if target is None or table not in columns:
                    self.leave("references to tables that are not loaded", f"{one.name}.{' + '.join(mine)}")
                    continue
                here = self._named(one, mine, known, headers)
                there = self._named(target, theirs, columns[table], headers)
                if here and (there or not theirs):
                    said.joins.append(Join(one.name, here, ((table, there),), of_source=True))
        return said

    def _named(self, table: DescribedTable, names: Sequence[str], known: Mapping[str, str], headers: Headers) -> tuple[str, ...]:
        """The headers of columns by their names; none where one of them is not there."""
        found = [known.get(name, name) for name in names]
        missing = [name for name in found if name not in headers[table.name]]
        if missing:
            self.leave("keys of columns that the table does not have", f"{table.name}.{missing[0]}")
            return ()
        return tuple(found)


def described(place: Path) -> Described | None:
    """What a folder, or a file that describes one, says of tables; None where it says nothing. Raises
    `LoadError`.
    """
    if not place.is_dir():
        content = _content(place)
        found = _package(place, content) if "resources" in content else _csvw([(place, content)])
        found.only = True
        return found
    if (place / PACKAGE).is_file():
        return _package(place / PACKAGE, _content(place / PACKAGE))
    metadata = [one for one in sorted(place.iterdir()) if suffix_of(one) in (".json", ".jsonld") and one.is_file() and is_csvw(one)]
    if metadata:
        return _csvw([(one, _content(one)) for one in metadata])
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
    """Whether a file of a folder is CSVW metadata."""
    text = head_text(read_head(path))
    return text is not None and text.lstrip("\ufeff \t\r\n").startswith("{") and _CSVW(text) is not None


def _content(path: Path) -> dict[str, Any]:
    with open_bytes(path) as stream, file_errors(path):
        data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise LoadError(f"a description of tables has at most {_MOST_BYTES >> 20} MiB", file=str(path))
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
    """A file that a description names, below its own folder; None where it is anything else."""
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
    yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict))


def _texts(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    return tuple(text for one in listed if isinstance(text := one.get("value") if isinstance(one, dict) else one, str))


def _referred(file: Path, schema: Any, found: Described, where: str) -> dict[str, Any]:
    """A schema, which may be in a file of its own."""
    if not isinstance(schema, str):
        return schema if isinstance(schema, dict) else {}
    path = _inside(file, schema)
    if path is None or not path.is_file():
        found.leave("schemas that are not in the folder are not read", where)
        return {}
    found.parts.add(path)
    return _content(path)


def _text_options(
    dialect: Mapping[str, Any], encoding: Any, found: Described, where: str, words: Mapping[str, str]
) -> dict[str, Any]:
    """Options of a text from a dialect; `words` are what the vocabulary calls them."""
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
    """A Frictionless data package, version 1 or 2."""
    found = Described(file)
    resources = list(_dicts(content.get("resources", [])))[:_MOST_TABLES]
    for at, resource in enumerate(resources, 1):
        name = resource.get("name")
        paths = resource.get("path", resource.get("url"))
        listed = paths if isinstance(paths, list) else [paths]
        name = name if isinstance(name, str) and name.strip() else None
        where = name or (str(listed[0]) if listed[0] is not None else f"resource {at}")
        schema = _referred(file, resource.get("schema"), found, where)
        if "data" in resource and paths is None:
            if isinstance(resource["data"], list):
                found.tables.append(_with_schema(DescribedTable(where, None, rows=resource["data"]), schema, found))
            else:
                found.leave("resources whose data are no list of rows are left out", where)
            continue
        if len(listed) > 1:
            found.leave("the files of one resource are tables of their own", where)
        for one in listed:
            path = _inside(file, one)
            if path is None:
                found.leave("resources outside the folder are left out", where)
                continue
            form = str(resource.get("format", "")).casefold()
            if (
                suffix_of(path) not in _TABLES
                and form not in ("csv", "tsv", "parquet")
                and "tabular" not in str(resource.get("profile"))
            ):
                found.leave("resources that are no tables are left out", where)
                continue
            dialect = _referred(file, resource.get("dialect"), found, where)
            options = _text_options(dialect, resource.get("encoding"), found, where, {"comment": "commentChar"})
            rows = dialect.get("headerRows")
            if isinstance(rows, list) and rows and all(isinstance(row, int) for row in rows):
                options["skip"] = rows[0] - 1
            called = stem_of(path) if len(listed) > 1 or name is None else name
            found.tables.append(_with_schema(DescribedTable(called, path, options), schema, found))
    return found


def _with_schema(table: DescribedTable, schema: Mapping[str, Any], found: Described) -> DescribedTable:
    """A table with what a Table Schema says."""
    missing = _texts(schema["missingValues"]) if isinstance(schema.get("missingValues"), list) else None
    for one in _dicts(schema.get("fields", [])):
        name = one.get("name")
        if not isinstance(name, str) or not name.strip():
            continue
        own = _texts(one["missingValues"]) if isinstance(one.get("missingValues"), list) else missing
        kind, form = one.get("type"), one.get("format")
        where = f"{table.name}.{name}"
        column = DescribedColumn(name, (), _TYPES.get(kind) if isinstance(kind, str) else None, own)
        if column.type == "time" and isinstance(form, str):
            column.day_first = _day_first(form)
        column.decimal = _decimal(one, where, found)
        table.columns.append(column)
    table.key = _texts(schema.get("primaryKey", []))
    for one in _dicts(schema.get("foreignKeys", [])):
        reference = one.get("reference")
        reference = reference if isinstance(reference, dict) else {}
        target = reference.get("resource") or reference.get("package") or table.name
        mine, theirs = _texts(one.get("fields", [])), _texts(reference.get("fields", []))
        if mine and isinstance(target, str):
            table.foreign.append((mine, table.name if target in ("self", "") else target, theirs))
    return table


def _decimal(said: Mapping[str, Any], where: str, found: Described) -> str | None:
    """What stands before the decimals of a column, where its description says so."""
    decimal, group = said.get("decimalChar"), said.get("groupChar", "")
    if decimal not in (None, ".", ",") or group not in (None, "", ".", ",", " ", "'", "\xa0"):
        found.leave("numbers with other marks than commas and points are read by their cells", where)
        return None
    # Points between thousands leave the comma to decimals.
    return decimal or {".": ",", ",": "."}.get(group)


def _day_first(form: str) -> bool | None:
    """Whether a format of dates has the day before the month; None where it has the year first, or no
    order that matters.

    >>> _day_first("%d/%m/%Y"), _day_first("MM/dd/yyyy"), _day_first("yyyy-MM-dd"), _day_first("default")
    (True, False, None, None)
    """
    order = re.findall(r"%[dmbBYy]|d+|M+|y+", form)
    places = [{"d": "d", "m": "m", "b": "m", "M": "m"}.get(one.lstrip("%")[0], "y") for one in order]
    if places.count("d") != 1 or places.count("m") != 1 or places[0] == "y":
        return None
    return places.index("d") < places.index("m")


def _csvw(files: Iterable[tuple[Path, Mapping[str, Any]]]) -> Described:
    """CSVW metadata: a table, or a group of tables, in one file or in several."""
    listed = list(files)
    found = Described(listed[0][0])
    schemas: dict[str, str] = {}
    by_url: dict[Path, str] = {}
    waiting: list[tuple[DescribedTable, Path, dict[str, Any]]] = []
    for file, content in listed:
        base = next((one["@base"] for one in _dicts(content.get("@context", [])) if isinstance(one.get("@base"), str)), "")
        beside = _inside(file, base.rstrip("/") + "/x") if base else file
        beside = file if beside is None else beside
        for one in [*_dicts(content["tables"])][:_MOST_TABLES] if "tables" in content else [content]:
            path = _inside(beside, one.get("url"))
            where = str(one.get("url", "a table"))
            if path is None:
                found.leave("tables outside the folder are left out", where)
                continue
            schema = _referred(beside, one.get("tableSchema", content.get("tableSchema")), found, where)
            dialect = {
                **_referred(beside, content.get("dialect"), found, where),
                **_referred(beside, one.get("dialect"), found, where),
            }
            options = _text_options(dialect, dialect.get("encoding"), found, where, {"comment": "commentPrefix"})
            rows, above = dialect.get("headerRowCount"), dialect.get("skipRows")
            if rows == 0:
                options["header"] = False
            if isinstance(above, int) and above > 0:
                options["skip"] = above
            table = DescribedTable(stem_of(path), path, options)
            _csvw_columns(table, [schema, one, content], schema, found)
            by_url[path] = table.name
            for ident in (schema.get("@id"), one.get("tableSchema")):
                if isinstance(ident, str):
                    schemas[ident] = table.name
            found.tables.append(table)
            waiting.append((table, beside, schema))
    for table, beside, schema in waiting:
        for one in _dicts(schema.get("foreignKeys", [])):
            reference = one.get("reference")
            reference = reference if isinstance(reference, dict) else {}
            place = _inside(beside, reference.get("resource"))
            target = by_url.get(place) if place is not None else schemas.get(str(reference.get("schemaReference")))
            mine, theirs = _texts(one.get("columnReference", [])), _texts(reference.get("columnReference", []))
            if mine:
                table.foreign.append((mine, target or str(reference.get("resource")), theirs))
    return found


def _csvw_columns(table: DescribedTable, levels: Sequence[Mapping[str, Any]], schema: Mapping[str, Any], found: Described) -> None:
    """The columns of a table; what they lack is looked for at the levels above."""
    for at, one in enumerate(_dicts(schema.get("columns", [])), 1):
        if one.get("virtual") is True:
            continue
        titles = one.get("titles", [])
        if isinstance(titles, dict):
            titles = [text for value in titles.values() for text in (value if isinstance(value, list) else [value])]
        titles = _texts(titles)
        name = one.get("name")
        name = name if isinstance(name, str) and name.strip() else titles[0] if titles else f"_col.{at}"
        where = f"{table.name}.{name}"
        given = {
            key: next((level[key] for level in (one, *levels) if key in level), None) for key in ("null", "datatype", "separator")
        }
        kind = given["datatype"]
        base, form = (kind.get("base", "string"), kind.get("format")) if isinstance(kind, dict) else (kind, None)
        column = DescribedColumn(name, titles, _TYPES.get(base) if isinstance(base, str) else None)
        if given["null"] is not None:
            column.missing = ("", *_texts(given["null"]))
        if isinstance(form, dict):
            column.decimal = _decimal(form, where, found)
        elif isinstance(form, str) and column.type == "time":
            column.day_first = _day_first(form)
        if given["separator"] is not None:
            found.leave("separators of lists in cells are not read, and the cells stay whole", where)
        table.columns.append(column)
    table.key = _texts(schema.get("primaryKey", []))
