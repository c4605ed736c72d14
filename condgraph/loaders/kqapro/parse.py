"""Reading the JSON of a `kb.json`, with numbers exact, and its mistakes with file and line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from condgraph.engine.errors import FormatError, LoadError
from condgraph.engine.values import parse_number
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.files import file_errors, open_text, path_of, uncollected


def parse(source: Any, reading: Reading, options: Options) -> tuple[dict[str, Any], dict[str, Any]]:
    """The concepts and entities of a file, or of a mapping that was read already."""
    if isinstance(source, Mapping):
        base: Any = source
        file = reading.source.location
    else:
        path = path_of(source)
        file = str(path)
        with open_text(path, options.get("encoding")) as stream, file_errors(path):
            text = stream.read()
        try:
            with uncollected():
                base = json.loads(text, parse_float=_float, parse_constant=_constant)
        except RecursionError:
            raise LoadError("the JSON is nested too deeply", file=file) from None
        except json.JSONDecodeError as error:
            raise LoadError(f"this is not JSON: {error.msg} (column {error.colno})", file=file, row=error.lineno) from None
        except ValueError as error:
            raise LoadError(f"this is not JSON: {error}", file=file) from None
        if isinstance(base, dict) and text.count('"name"') != sum(len(part) for part in base.values() if isinstance(part, dict)):
            _refuse_repeats(text, reading)
    if not isinstance(base, Mapping) or not ("concepts" in base or "entities" in base):
        raise FormatError("a kb.json is an object with 'concepts' and 'entities'", file=file)
    for key in base:
        if key not in ("concepts", "entities"):
            reading.warn("this part of a kb.json is not known, and is left out", field=str(key))
    parts = []
    for key in ("concepts", "entities"):
        part = base.get(key, {})
        if not isinstance(part, Mapping):
            raise FormatError(f"{key!r} is an object of records by id, not {kind_of(part)}", file=file)
        parts.append(dict(part))
    return parts[0], parts[1]


def _refuse_repeats(text: str, reading: Reading) -> None:
    """Report ids that stand twice in one part of the file: JSON readers keep the last such record
    and say nothing.

    Looking at every object's keys takes longer than all the rest, so it is done only where names
    and records differ in number.
    """

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(found)
        if len(record) != len(found):
            seen: set[str] = set()
            for key, _ in found:
                if key in seen:
                    reading.bad("this key stands twice in one object; only the last one counts", field=key)
                seen.add(key)
        return record

    json.loads(text, parse_float=_float, object_pairs_hook=pairs)


def _float(text: str) -> Any:
    """A JSON number with a fraction, exactly; one that is beyond every bound stays text, for the
    record that has it to report.
    """
    try:
        return parse_number(text)
    except ValueError:
        return text


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def kind_of(value: Any) -> str:
    """What a JSON value is, in words: "an object", "a list", ..."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
