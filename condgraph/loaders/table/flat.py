"""One record as the cells of a row: records inside it flattened, lists of records apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from condgraph.loaders.table.objects import BadRecord, broken

#: How deep records and lists may stand inside each other.
_DEEPEST: Final = 20


@dataclass(slots=True)
class Flat:
    """A record: its values by key, a list of them for each, and by key the records of its lists."""

    values: dict[str, list[Any]] = field(default_factory=dict)
    below: dict[str, list[Flat]] = field(default_factory=dict)


class Repeated(dict[str, Any]):
    """A record that has a key, `key`, more than once."""

    key = ""


def flatten(record: Mapping[Any, Any]) -> Flat:
    """The values of a record by key, those of records inside with keys joined by points; raises
    `BadRecord`.
    """
    flat = Flat()
    _flatten_into(flat, record, "", 0)
    return flat


def _flatten_into(flat: Flat, record: Mapping[Any, Any], prefix: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise BadRecord("records stand too deep inside each other", prefix)
    if isinstance(record, Repeated):
        raise BadRecord(f"the key {record.key!r} stands more than once", record.key)
    for key, value in record.items():
        if not isinstance(key, str):
            key = str(key)
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            _flatten_into(flat, value, f"{name}.", depth + 1)
            continue
        if name in flat.values or name in flat.below:
            raise BadRecord(f"the key {name!r} stands more than once", name)
        if broken(name):
            raise BadRecord("a key holds bytes or characters that are not text", None)
        if not isinstance(value, (list, tuple)):
            values = [value]
        elif any(isinstance(one, Mapping) for one in value):
            flat.below[name] = [_below(one, name, depth + 1) for one in value if one is not None]
            continue
        elif any(isinstance(one, (list, tuple)) for one in value):
            raise BadRecord("a list of lists is no cell", name)
        else:
            values = list(value)
        flat.values[name] = values
        if any(isinstance(one, str) and broken(one) for one in values):
            raise BadRecord("the text holds bytes or characters that are not text in the encoding", name)


def _below(record: Any, name: str, depth: int) -> Flat:
    if not isinstance(record, Mapping):
        raise BadRecord("a list holds records beside other values", name)
    flat = Flat()
    try:
        _flatten_into(flat, record, "", depth)
    except BadRecord as error:
        raise BadRecord(error.message, f"{name}.{error.field}" if error.field else name) from None
    return flat
