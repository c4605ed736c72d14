"""The triples of a graph pattern, as Python or JSON data has them, and where they stand in a text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from condgraph.engine.errors import ParseError
from condgraph.languages.pattern.values import written

Span = tuple[int, int] | None
#: Names of the three parts in JSON objects.
KEYS: Final = (("head", "subject", "h"), ("relation", "predicate", "r"), ("tail", "object", "t"))


def triples_of(data: Any) -> list[tuple[str, str, str]]:
    """The triples of Python or JSON data; raises `ParseError` that says which one is none."""
    if isinstance(data, Mapping):
        if "triples" not in data:
            known = ", ".join(map(repr, data)) or "nothing"
            raise ParseError(f"a pattern as an object has its triples under 'triples', here is {known}")
        data = data["triples"]
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise ParseError(f"a pattern is a list of triples, not {data!r}")
    triples = list(data)
    if len(triples) == 3 and all(isinstance(part, str) for part in triples):
        raise ParseError("a pattern is a list of triples, and this is one triple", hint="put it in a list")
    return [_triple(triple, number) for number, triple in enumerate(triples, 1)]


def _triple(triple: Any, number: int) -> tuple[str, str, str]:
    if isinstance(triple, Mapping):
        parts = []
        for keys in KEYS:
            found = [triple[key] for key in keys if key in triple]
            if not found:
                raise ParseError(f"triple {number} has no {keys[0]!r}: {json.dumps(triple, ensure_ascii=False, default=str)}")
            parts.append(found[0])
    elif isinstance(triple, Sequence) and not isinstance(triple, str):
        parts = list(triple)
    else:
        raise ParseError(f"triple {number} is no triple: {triple!r}")
    if len(parts) != 3:
        raise ParseError(f"triple {number} has {len(parts)} parts, not head, relation and tail: {triple!r}")
    for place in (0, 2):
        # Numbers, years and dates are values, not names.
        parts[place] = written(parts[place]) or parts[place]
    for part in parts:
        if not isinstance(part, str):
            raise ParseError(f"triple {number} holds {part!r}, which is no text, number or time", hint="a relation is a text")
    return parts[0], parts[1], parts[2]
