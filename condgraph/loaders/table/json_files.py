"""JSON files as tables: one object a line, or a document that is a list of objects or one object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from condgraph.engine.errors import LoadError
from condgraph.engine.facts import Item
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.files import file_errors, open_text, path_of, raw_position
from condgraph.loaders.table.flat import Repeated, flatten
from condgraph.loaders.table.objects import BadRecord, Digits
from condgraph.loaders.table.records import Record, read_records

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
                try:
                    flat = flatten(_object(_parse(decoder, text)))
                except BadRecord as error:
                    if report is not None:
                        report.bad(f"{error.message} (line {line_number})", row=number, field=error.field)
                    continue
                yield (number, flat), min(1.0, raw_position(stream) / size)

    with file_errors(path):
        path.open("rb").close()
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
    listed = document if isinstance(document, list) else [document]

    def records(report: Reading | None) -> Iterator[tuple[Record, float]]:
        for number, one in enumerate(listed, 1):
            try:
                yield (number, flatten(_object(one))), number / len(listed)
            except BadRecord as error:
                if report is not None:
                    report.bad(error.message, row=number, field=error.field)

    yield from read_records(records, reading, options)


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
