"""One record as the cells of a row: records inside it flattened, lists of records apart, lists of
lists as their JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from condgraph.loaders.table.objects import BadRecord, Digits, broken

#: How deep records and lists may stand inside each other.
_DEEPEST: Final = 20

#: Hears of a record of a list that cannot be read, and may raise; the others of the list are read.
Bad: TypeAlias = Callable[[BadRecord], None]


@dataclass(slots=True)
class Flat:
    """A record: its values by key, a list of them for each, and by key the records of its lists;
    `json` are keys whose values are JSON texts.
    """

    values: dict[str, list[Any]] = field(default_factory=dict)
    below: dict[str, list[Flat]] = field(default_factory=dict)
    json: tuple[str, ...] = ()


class Repeated(dict[str, Any]):
    """A record that has a key, `key`, more than once."""

    key = ""


def flatten(record: Mapping[Any, Any], bad: Bad | None = None) -> Flat:
    """The values of a record by key, those of records inside with keys joined by points; raises
    `BadRecord`. Records of lists that are bad go to `bad`, if there is one, and are left out.
    """
    flat = Flat()
    _flatten_into(flat, record, "", 0, bad)
    return flat


def _flatten_into(flat: Flat, record: Mapping[Any, Any], prefix: str, depth: int, bad: Bad | None) -> None:
    if depth > _DEEPEST:
        raise BadRecord("records stand too deep inside each other", prefix)
    if isinstance(record, Repeated):
        raise BadRecord(f"the key {record.key!r} stands more than once", record.key)
    for key, value in record.items():
        if not isinstance(key, str):
            key = str(key)
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            _flatten_into(flat, value, f"{name}.", depth + 1, bad)
            continue
        if name in flat.values or name in flat.below:
            raise BadRecord(f"the key {name!r} stands more than once", name)
        if broken(name):
            raise BadRecord("a key holds bytes or characters that are not text", None)
        if not isinstance(value, (list, tuple)):
            values = [value]
        else:
            values = list(value)
            if any(isinstance(one, Mapping) for one in values):
                flat.below[name] = _records(name, values, depth + 1, bad)
                values = [one for one in values if one is not None and not isinstance(one, Mapping)]
                if not values:
                    continue
            if any(isinstance(one, (list, tuple)) for one in values):
                if name in flat.below:
                    values = [json_text(one) if isinstance(one, (list, tuple)) else one for one in values]
                else:
                    values = [json_text(value)]
                flat.json = (*flat.json, name)
        flat.values[name] = values
        if any(isinstance(one, str) and broken(one) for one in values):
            raise BadRecord("the text holds bytes or characters that are not text in the encoding", name)


def _records(name: str, values: list[Any], depth: int, bad: Bad | None) -> list[Flat]:
    """The records of a list, without those that are bad."""

    def named(error: BadRecord) -> None:
        error = BadRecord(error.message, f"{name}.{error.field}" if error.field else name)
        if bad is None:
            raise error from None
        bad(error)

    found = []
    for record in values:
        if isinstance(record, Mapping):
            flat = Flat()
            try:
                _flatten_into(flat, record, "", depth, None if bad is None else named)
            except BadRecord as error:
                named(error)
                continue
            found.append(flat)
    return found


def json_text(value: Any) -> str:
    """A value as JSON; numbers as their file has them.

    >>> json_text([[Digits("8.50"), None], {"a": "b"}])
    '[[8.50, null], {"a": "b"}]'
    """
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(str(key), ensure_ascii=False)}: {json_text(one)}" for key, one in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)
