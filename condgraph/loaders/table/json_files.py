"""JSON files as tables: one object a line, or a document that is a list of objects or one object.

A document of columns, or of rows below a header, is the table that it is, with a warning, and so is
GeoJSON: a feature is a row, its properties are columns, and its geometry further columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from condgraph.engine.errors import LoadError, numbered
from condgraph.engine.facts import Item
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.files import file_errors, open_text, path_of, raw_position, regular
from condgraph.loaders.table.flat import Repeated, flatten, json_text
from condgraph.loaders.table.objects import BadRecord, Digits
from condgraph.loaders.table.records import Record, bad_of, read_records

#: Characters of a document, which is read whole.
MOST_CHARACTERS: Final = 256 << 20


def read_jsonl(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """A file with one JSON object a line as facts."""
    path = path_of(source)
    encoding = options.get("encoding")
    decoder = _decoder()

    def records(report: Reading | None) -> Iterator[tuple[Record, float]]:
        size = max(1, path.stat().st_size)
        number = 0
        with open_text(path, encoding, errors="surrogateescape", newline="\n") as stream, file_errors(path):
            for line_number, line in enumerate(stream, 1):
                text = line.strip()
                if not text:
                    continue
                number += 1
                bad = bad_of(report, number)
                try:
                    record = _object(_parse(decoder, text))
                    flat = flatten(_feature(record) if _is_feature(record) else record, bad)
                except BadRecord as error:
                    bad(BadRecord(f"{error.message} (line {line_number})", error.field))
                    continue
                yield (number, flat), min(1.0, raw_position(stream) / size)

    with file_errors(path):
        regular(path).open("rb").close()
    yield from read_records(records, reading, options)


def read_json(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """A JSON document as facts: the objects of its list, or the one object it is."""
    path = path_of(source)
    with open_text(path, options.get("encoding"), errors="surrogateescape") as stream, file_errors(path):
        text = stream.read(MOST_CHARACTERS + 1)
    if len(text) > MOST_CHARACTERS:
        raise LoadError(
            f"a JSON document is read whole, and may have {MOST_CHARACTERS >> 20} MiB",
            file=str(path),
            hint="JSON lines, one object a line, have no such bound",
        )
    try:
        document = _decoder().decode(text.strip())
    except json.JSONDecodeError as error:
        raise LoadError(f"this is not JSON: {error.msg} (column {error.colno})", file=str(path), row=error.lineno) from None
    except RecursionError:
        raise LoadError("the document is nested too deeply", file=str(path)) from None
    del text
    listed = _listed(document, reading)

    def records(report: Reading | None) -> Iterator[tuple[Record, float]]:
        for number, one in enumerate(listed, 1):
            bad = bad_of(report, number)
            try:
                record = _object(one)
                yield (number, flatten(_feature(record) if _is_feature(record) else record, bad)), number / len(listed)
            except BadRecord as error:
                bad(error)

    yield from read_records(records, reading, options)


def _listed(document: Any, reading: Reading) -> Sequence[Any]:
    """The records of a document."""
    if isinstance(document, dict) and document.get("type") == "FeatureCollection" and isinstance(document.get("features"), list):
        others = [key for key in document if key not in ("type", "features")]
        if others:
            reading.warn(f"what the collection says beside its features is left out: {', '.join(map(repr, others[:10]))}")
        return cast("list[Any]", document["features"])
    rows = _rows_of(document)
    if rows is None:
        return document if isinstance(document, list) else [document]
    what = "rows below a header" if isinstance(document, list) or "columns" in document else "columns"
    reading.warn(f"the document holds {what}, and is read as {numbered(len(rows), 'row', 'rows')}")
    return rows


def _rows_of(document: Any) -> list[dict[str, Any]] | None:
    """The rows of a document that is a table otherwise than as a list of objects; None where it is
    none.
    """
    if isinstance(document, list):
        return _below(document[0], document[1:]) if document else None
    if not isinstance(document, dict) or isinstance(document, Repeated):
        return None
    if set(document) in ({"columns", "data"}, {"columns", "data", "index"}):
        return _below(document["columns"], document["data"])
    columns = list(document.values())
    if len(columns) > 1 and all(isinstance(one, list) and one and len(one) == len(columns[0]) for one in columns):
        if not any(isinstance(cell, (dict, list)) for one in columns for cell in one):
            return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]
    elif len(columns) > 1 and all(isinstance(one, dict) and one and one.keys() == columns[0].keys() for one in columns):
        # As pandas writes columns: by the numbers of their rows.
        numbers = list(columns[0])
        if numbers == list(map(str, range(len(numbers)))):
            return [{key: one[number] for key, one in document.items()} for number in numbers]
    return None


def _below(header: Any, rows: Any) -> list[dict[str, Any]] | None:
    """The rows below a header; None where they are none."""
    if not isinstance(header, list) or not isinstance(rows, list) or not rows:
        return None
    if not all(isinstance(one, str) and not isinstance(one, Digits) for one in header) or len(set(header)) < len(header):
        return None
    if not all(isinstance(row, list) and len(row) == len(header) for row in rows):
        return None
    return [dict(zip(header, row, strict=True)) for row in rows]


def _is_feature(record: Mapping[str, Any]) -> bool:
    """Whether a record is a feature of GeoJSON."""
    return record.get("type") == "Feature" and "properties" in record and "geometry" in record


def _feature(feature: dict[str, Any]) -> dict[str, Any]:
    """A feature as a record: its properties, and where it is. Points have a longitude and a latitude;
    the coordinates of anything else are lists of lists.
    """
    properties, geometry = feature["properties"], feature["geometry"]
    record: dict[str, Any] = {}
    for key, value in feature.items():
        if key not in ("type", "properties", "geometry"):
            # A box is four numbers, whose order matters.
            taken = isinstance(properties, dict) and key in properties
            record[f"feature {key}" if taken else key] = json_text(value) if key == "bbox" else value
    record |= properties if isinstance(properties, dict) else {}
    if isinstance(geometry, dict):
        at = geometry.get("coordinates")
        if geometry.get("type") == "Point" and isinstance(at, list) and len(at) in (2, 3):
            geometry = {"type": "Point", **dict(zip(("longitude", "latitude", "altitude"), at, strict=False))}
        record["geometry"] = geometry
    return record


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_unique, parse_int=Digits, parse_float=Digits, parse_constant=float)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        repeated = Repeated(record)
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                repeated.key = key
                break
            seen.add(key)
        return repeated
    return record


def _parse(decoder: json.JSONDecoder, text: str) -> Any:
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        raise BadRecord(f"this is not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise BadRecord("records stand too deep inside each other") from None


def _object(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise BadRecord("a record is a JSON object, not another value")
    return record
