"""condgraph's own export: JSON lines that hold a graph without loss, including sources.

The first line is
`{"condgraph": 1, "graph": name, "sources": [{"name", "location", "format", "content"}]}`. Every
other line is one record:

    {"source": name, "location": text, "format": text, "content": text}
    {"entity": id, "name": text, "kind": "entity" | "concept" | "row", "row": n}
    {"member": id, "of": concept, "row": n}
    {"subclass": concept, "of": parent, "row": n}
    {"s": id, "p": predicate, "o": value, "q": [[key, value], ...], "raw": text, "row": n}

All but the first kind may have `"src": [[source name, row], ...]` with their sources; empty parts are
omitted. A value is a text, or

    {"ref": id}                                   an entity
    {"n": number, "u": unit}                      a quantity; the number is a string if it is a decimal
    {"t": ISO text, "precision": "day"}           a time; "start" and "end" in seconds if the text is not exact
    {"unknown": true}                             a value that exists and is not known
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from condgraph.engine import facts as model
from condgraph.engine.errors import FormatError, LoadError
from condgraph.engine.values import FORMS, MAX_DIGITS, NO_UNIT, UNKNOWN, FormedText, Precision, Quantity, Time, Value
from condgraph.loaders.base import JSON_SIGN, NO_FILE, Format, Options, Reading
from condgraph.loaders.files import ENCODING_HELP, blocks, path_of

__all__ = ["ARGUMENTS", "FORMAT", "MARK", "NEO4J", "PARQUET", "VERSION", "decode_value", "encode", "encode_value", "write"]


# -- writing -----------------------------------------------------------------------------------------


#: The version of exports that is written, and the newest that can be read.
VERSION: Final = 1


def header(graph: str, sources: Iterable[model.Source]) -> str:
    """Return the first line of an export, without its line end."""
    listed = [_source_record("name", source) for source in sources]
    return _dump({"condgraph": VERSION, "graph": graph, "sources": listed})


def _source_record(key: str, source: model.Source) -> dict[str, Any]:
    record = {key: source.name, "location": source.location, "format": source.format}
    optional = {"content": source.content, "terms": source.terms}
    return {**record, **{part: text for part, text in optional.items() if text}}


def encode(item: model.Item) -> str:
    """Return the line of an item, without its line end.

    A `Batch`, `Rows` or `Members` gives one line for each statement, row or membership. Raises
    `LoadError` for a number that is not finite, which JSON cannot hold.
    """
    if isinstance(item, model.MANY):
        return "\n".join(map(encode, one_by_one(item)))
    if isinstance(item, model.Source):
        return _dump(_source_record("source", item))
    if isinstance(item, model.Sourced):
        return _dump({**_record(item.item), "src": [list(source) for source in item.sources]})
    return _dump(_record(item))


def write(items: Iterable[model.Item], stream: IO[str], *, graph: str = "") -> int:
    """Write an export, and return the number of its lines.

    Sources at the start of the items go into the header; the other items follow.
    """
    remaining = iter(items)
    sources: list[model.Source] = []
    first: model.Item | None = None
    for item in remaining:
        if not isinstance(item, model.Source):
            first = item
            break
        sources.append(item)
    stream.write(header(graph, sources) + "\n")
    lines = 1
    for item in chain(() if first is None else (first,), remaining):
        if isinstance(item, model.MANY) and not len(item):
            continue
        if isinstance(item, model.Sourced) and isinstance(item.item, model.Entity) and item.item.kind is not model.EntityKind.ROW:
            # A single source declares every entity, so it is not repeated.
            is_declared = len(sources) == 1 and item.sources == ((sources[0].name, item.item.row),)
            item = item.item if is_declared else item
        stream.write(encode(item) + "\n")
        lines += len(item) if isinstance(item, model.MANY) else 1
    return lines


def one_by_one(items: model.Many) -> Iterator[model.Item]:
    """Yield the items of a batch one by one."""
    single: Iterable[model.Entity | model.Member | model.Statement] = (
        statements_of(items)
        if isinstance(items, model.Batch)
        else items.entities()
        if isinstance(items, model.Rows)
        else items.one_by_one()
    )
    for item in single:
        yield model.Sourced(item, ((items.source, item.row),)) if items.source else item


def statements_of(batch: model.Batch) -> Iterator[model.Statement]:
    """Yield the statements of a batch one by one."""
    objects = list(_objects(batch.objects))
    for at, subject in enumerate(batch.subjects):
        pairs = []
        for key, column in batch.qualifiers:
            value = column[at]
            if value is not None:
                pairs.append((key, value))
        predicate = batch.predicates if isinstance(batch.predicates, str) else batch.predicates[at]
        yield model.Statement(
            subject,
            predicate,
            objects[at],
            tuple(pairs),
            int(batch.rows[at]),
            None if batch.raws is None else batch.raws[at],
        )


def _objects(column: model.Column) -> Iterator[model.Ref | Value]:
    if isinstance(column, model.Ids):
        yield from map(model.Ref, column.ids)
    elif isinstance(column, model.Texts):
        yield from column.texts
    elif isinstance(column, model.Numbers):
        for number in column.numbers.tolist():
            yield Quantity(number, column.unit)
    elif isinstance(column, model.Times):
        for start, end, precision in zip(column.starts.tolist(), column.ends.tolist(), column.precisions.tolist(), strict=True):
            yield Time(start, end, Precision(precision))
    else:
        yield from column.values


def _record(item: model.Entity | model.Member | model.Subclass | model.Statement) -> dict[str, Any]:
    if isinstance(item, model.Statement):
        record: dict[str, Any] = {"s": item.subject, "p": item.predicate, "o": encode_value(item.object)}
        if item.qualifiers:
            record["q"] = [[key, encode_value(value)] for key, value in item.qualifiers]
        if item.raw is not None:
            record["raw"] = item.raw
    elif isinstance(item, model.Entity):
        record = {"entity": item.id, "name": item.name}
        if item.kind is not model.EntityKind.ENTITY:
            record["kind"] = model.EntityKind(item.kind).name.lower()
    elif isinstance(item, model.Member):
        record = {"member": item.entity, "of": item.concept}
    else:
        record = {"subclass": item.concept, "of": item.parent}
    if item.row:
        record["row"] = int(item.row)
    return record


def encode_value(value: model.Ref | Value) -> Any:
    """Return a value as JSON, as the module describes; raises `LoadError` for a number that is not finite."""
    if isinstance(value, FormedText):
        return {value.form: str(value)}
    if isinstance(value, str):
        return value
    if isinstance(value, model.Ref):
        return {"ref": value.id}
    if isinstance(value, Quantity):
        number = value.number
        # `math.isfinite` converts integers to floats, and fails for large ones.
        if not (isinstance(number, int) or (number.is_finite() if isinstance(number, Decimal) else math.isfinite(number))):
            raise LoadError(f"{number} is not a finite number, and cannot be exported")
        record: dict[str, Any] = {"n": str(number) if isinstance(number, Decimal) else number}
        if value.unit != NO_UNIT:
            record["u"] = value.unit
        return record
    if isinstance(value, Time):
        text = str(value)
        record = {"t": text, "precision": Precision(value.precision).name.lower()}
        try:
            exact = Time.parse(text) == value
        except ValueError:
            exact = False
        return record if exact else {**record, "start": value.start, "end": value.end}
    return {"unknown": True}


# One encoder for all lines, since `json.dumps` with options creates one for each call.
_dump: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


# -- reading -----------------------------------------------------------------------------------------


_KINDS: Final = {kind.name.lower(): kind for kind in model.EntityKind}
_PRECISIONS: Final = {precision.name.lower(): precision for precision in Precision}
_SURROGATE: Final = re.compile("[\ud800-\udfff]").search
_TOO_LARGE: Final = 10**MAX_DIGITS


class _Wrong(Exception):
    """An invalid record, with the reason."""


def _read(source: Any, reading: Reading, options: Options) -> Iterator[model.Item]:
    path = path_of(source)
    begun = False
    for first, lines in blocks(path, reading, options.get("encoding")):
        for row, line in enumerate(lines, first):
            if not line or line.isspace():
                continue
            try:
                record = _parse(line)
                if not begun:
                    sources = tuple(_sources(record, path))
                    begun = True
                    yield from sources
                else:
                    item = _item(record)
                    # Earlier versions have no source for an entity that is not a row of a table.
                    if isinstance(item, model.Entity) and item.kind is not model.EntityKind.ROW and sources:
                        item = model.Sourced(item, ((sources[0].name, item.row),) if len(sources) == 1 else ())
                    yield item
            except _Wrong as wrong:
                if not begun:
                    raise FormatError(f"an export begins with a line {{'condgraph': {VERSION}}}; {wrong}", file=str(path)) from None
                reading.bad(str(wrong), row=row)
    if not begun:
        raise FormatError("an export begins with a line of its own, and this file has no lines", file=str(path))


def _parse(line: str) -> dict[str, Any]:
    try:
        record = _DECODE(line)
    except RecursionError:
        raise _Wrong("the JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise _Wrong(f"this is not JSON: {error.msg} (column {error.colno})") from None
    except ValueError as error:
        raise _Wrong(f"this is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise _Wrong("a record is a JSON object")
    return record


def _constant(text: str) -> NoReturn:
    raise _Wrong(f"{text} is not a JSON number")


def _pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(found)
    if len(record) != len(found):
        raise _Wrong("a key appears twice in one object")
    return record


# One decoder for all lines, since `json.loads` with hooks creates one for each call.
_DECODE: Final = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=_pairs).decode


def _sources(record: dict[str, Any], path: Path) -> Iterator[model.Source]:
    version = record.get("condgraph")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _Wrong("this one has no version")
    if version > VERSION:
        raise LoadError(f"the export is of version {version}; versions up to {VERSION} can be read", file=str(path), row=1)
    sources = record.get("sources", [])
    if not isinstance(sources, list) or not all(isinstance(source, dict) for source in sources):
        raise _Wrong("its sources are not a list of objects")
    for source in sources:
        yield _declared(source, "name")


def _declared(record: dict[str, Any], key: str) -> model.Source:
    _only(record, {key, "location", "format", "content", "terms"})
    return model.Source(_id(record, key), *(_text(record, part, "") for part in ("location", "format", "content", "terms")))


def _item(record: dict[str, Any]) -> model.Item:
    item: model.Entity | model.Member | model.Subclass | model.Statement
    if "source" in record:
        return _declared(record, "source")
    row = _row(record.get("row", 0))
    if "s" in record:
        _only(record, {"s", "p", "o", "q", "raw", "row", "src"})
        raw = record.get("raw")
        item = model.Statement(
            _id(record, "s"),
            _id(record, "p"),
            decode_value(record.get("o")),
            tuple(_qualifier(pair) for pair in _list(record, "q")),
            row,
            None if raw is None else _text(record, "raw"),
        )
    elif "entity" in record:
        _only(record, {"entity", "name", "kind", "row", "src"})
        kind = record.get("kind", "entity")
        if not isinstance(kind, str) or kind not in _KINDS:
            raise _Wrong(f"unknown kind of entity {kind!r}")
        ident = _id(record, "entity")
        item = model.Entity(ident, _text(record, "name", ident), _KINDS[kind], row)
    elif "member" in record:
        _only(record, {"member", "of", "row", "src"})
        item = model.Member(_id(record, "member"), _id(record, "of"), row)
    elif "subclass" in record:
        _only(record, {"subclass", "of", "row", "src"})
        item = model.Subclass(_id(record, "subclass"), _id(record, "of"), row)
    else:
        raise _Wrong("a record has one of 's', 'entity', 'member', 'subclass' and 'source'")
    if "src" not in record:
        return item
    return model.Sourced(item, tuple(_source(pair) for pair in _list(record, "src")))


def read_record(record: dict[str, Any]) -> model.Item:
    """Return the item of a parsed line; raises `ValueError` for an invalid record."""
    try:
        return _item(record)
    except _Wrong as wrong:
        raise ValueError(str(wrong)) from None


def decode_value(value: Any) -> model.Ref | Value:
    """Return the value that `encode_value` wrote; raises `_Wrong`, which the reader reports with the row."""
    if isinstance(value, str):
        return _sound(value)
    if not isinstance(value, dict):
        raise _Wrong(f"{value!r} is not a value")
    if "ref" in value:
        _only(value, {"ref"})
        return model.Ref(_id(value, "ref"))
    if "n" in value:
        _only(value, {"n", "u"})
        return Quantity(_number(value["n"]), _text(value, "u", NO_UNIT))
    if "t" in value:
        _only(value, {"t", "precision", "start", "end"})
        return _time(value)
    if value == {"unknown": True}:
        return UNKNOWN
    if len(value) == 1 and (form := FORMS.get(next(iter(value)))) is not None:
        text = _text(value, form.of.form)
        result = form.read(text)
        if result is None:
            raise _Wrong(f"{text!r} is no {form.of.form}")
        return result
    raise _Wrong(f"{value!r} is not a value")


def _number(number: Any) -> int | float | Decimal:
    if isinstance(number, str):
        try:
            exact = Decimal(number)
        except InvalidOperation:
            raise _Wrong(f"{number!r} is not a number") from None
        if exact.is_finite():
            if abs(exact.adjusted()) >= MAX_DIGITS:
                raise _Wrong(f"a number has more than {MAX_DIGITS} digits")
            return exact
    elif isinstance(number, float):
        if math.isfinite(number):
            return number
    elif isinstance(number, int) and not isinstance(number, bool):
        if abs(number) >= _TOO_LARGE:
            raise _Wrong(f"a number has more than {MAX_DIGITS} digits")
        return number
    raise _Wrong(f"{number!r} is not a finite number")


def _time(value: dict[str, Any]) -> Time:
    text, precision = _text(value, "t"), value.get("precision")
    if precision is not None and (not isinstance(precision, str) or precision not in _PRECISIONS):
        raise _Wrong(f"unknown precision {precision!r}")
    if "start" in value or "end" in value:
        start, end = value.get("start"), value.get("end")
        bounds = [
            item for item in (start, end) if isinstance(item, int) and not isinstance(item, bool) and -(2**63) <= item < 2**63
        ]
        if len(bounds) != 2 or bounds[0] >= bounds[1] or precision is None:
            raise _Wrong(f"a time with bounds has 'start' before 'end', in seconds, and 'precision', not {value!r}")
        return Time(bounds[0], bounds[1], _PRECISIONS[precision])
    try:
        time = Time.parse(text)
    except ValueError as error:
        raise _Wrong(str(error)) from None
    if precision is not None and time.precision is not _PRECISIONS[precision]:
        raise _Wrong(f"{text!r} is not of the precision {precision}")
    return time


def _qualifier(pair: Any) -> tuple[str, model.Ref | Value]:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or not pair[0]:
        raise _Wrong(f"a qualifier is a key and a value, not {pair!r}")
    return _sound(pair[0]), decode_value(pair[1])


def _source(pair: Any) -> tuple[str, int]:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or not pair[0]:
        raise _Wrong(f"a source is a name and a row, not {pair!r}")
    return _sound(pair[0]), _row(pair[1])


def _row(row: Any) -> int:
    if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < 2**31:
        raise _Wrong(f"a row is a whole number from 0, not {row!r}")
    return row


def _list(record: dict[str, Any], key: str) -> Sequence[Any]:
    result = record.get(key, [])
    if not isinstance(result, list):
        raise _Wrong(f"{key!r} is a list")
    return result


def _text(record: dict[str, Any], key: str, default: str | None = None) -> str:
    value = record.get(key, default)
    if not isinstance(value, str):
        raise _Wrong(f"{key!r} is text, not {value!r}")
    return _sound(value)


def _id(record: dict[str, Any], key: str) -> str:
    result = _text(record, key)
    if not result:
        raise _Wrong(f"{key!r} is empty")
    return result


def _sound(text: str) -> str:
    if not text.isascii() and _SURROGATE(text):
        raise _Wrong("an unpaired surrogate is not text")
    return text


def _only(record: dict[str, Any], known: set[str]) -> None:
    if not record.keys() <= known:
        raise _Wrong(f"{next(key for key in record if key not in known)!r} is not part of such a record")


def _sniff(path: Path, head: bytes) -> int:
    return 100 if re.match(rb'(?:\xef\xbb\xbf)?\s*\{\s*"condgraph"\s*:\s*\d', head) else 0


FORMAT: Final = Format(
    name="condgraph",
    about="condgraph's own export: JSON lines with entities, memberships, statements, and their sources",
    read=_read,
    options={"encoding": ENCODING_HELP},
    sniff=_sniff,
    sign=JSON_SIGN,
)


# -- folders -----------------------------------------------------------------------------------------


#: The file that marks a folder as an export in Parquet, and the one of an export for Neo4j's import tool.
MARK: Final = "_condgraph.json"
ARGUMENTS: Final = "import.args"


def _folder(name: str, about: str, *marks: str) -> Format:
    def read(source: Any, reading: Reading, options: Options) -> Iterator[model.Item]:
        path = path_of(source)
        if name not in reading.own_folders or not sniff(path, b""):
            raise FormatError(
                f"this is not a folder of an export {about.partition(':')[0]}: it has no file {marks[0]}", file=str(path)
            )
        yield from reading.own_folders[name](path, reading)

    def sniff(path: Path, head: bytes) -> int:
        return 100 if all((path / mark).is_file() for mark in marks) else 0

    return Format(name, f"condgraph's own export {about}", read, sniff=sniff, sign=NO_FILE)


PARQUET: Final = _folder("condgraph-parquet", "in Parquet: a folder with the tables of a graph", MARK)
NEO4J: Final = _folder("neo4j-import", "for Neo4j's import tool: a folder of CSV files", ARGUMENTS, "graph-header.csv")
