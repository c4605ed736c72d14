"""Random instances of JSON schemas in the form of our grammars (objects, choices, lists of values, texts by a pattern,
references), and random texts of regular expressions. No code is shared with the package.
"""

from __future__ import annotations

import random
import re._constants as kinds  # type: ignore[import-not-found]
import re._parser as patterns  # type: ignore[import-not-found]
from typing import Any

_ENDLESS = 10**6


class Schemas:
    """Instances of one schema. Below `deep` nested objects, the shortest alternative is taken."""

    def __init__(self, schema: dict[str, Any], *, deep: int = 7) -> None:
        self.schema, self.deep = schema, deep
        self.least = dict.fromkeys(schema.get("$defs", {}), _ENDLESS)
        changed = True
        while changed:
            changed = False
            for name, definition in schema.get("$defs", {}).items():
                if (cost := self._cost(definition)) < self.least[name]:
                    self.least[name], changed = cost, True

    def _cost(self, schema: dict[str, Any]) -> int:
        if "$ref" in schema:
            return self.least[schema["$ref"].removeprefix("#/$defs/")]
        if "anyOf" in schema:
            return min(map(self._cost, schema["anyOf"]), default=_ENDLESS)
        if schema.get("type") == "object":
            return min(_ENDLESS, 1 + max(map(self._cost, schema["properties"].values()), default=0))
        return self._cost(schema["items"]) if schema.get("type") == "array" else 0

    def derive(self, rng: random.Random, schema: dict[str, Any] | None = None, depth: int = 0) -> Any:
        """Return a random instance."""
        schema = self.schema if schema is None else schema
        if "$ref" in schema:
            return self.derive(rng, self.schema["$defs"][schema["$ref"].removeprefix("#/$defs/")], depth)
        if "anyOf" in schema:
            options = schema["anyOf"]
            if depth > self.deep:
                best = min(map(self._cost, options))
                options = [option for option in options if self._cost(option) == best]
            return self.derive(rng, rng.choice(options), depth)
        if "enum" in schema:
            return rng.choice(schema["enum"])
        if schema["type"] == "object":
            assert schema["additionalProperties"] is False
            assert set(schema["required"]) == set(schema["properties"])
            return {name: self.derive(rng, option, depth + 1) for name, option in schema["properties"].items()}
        if schema["type"] == "array":
            return [
                self.derive(rng, schema["items"], depth + 1) for _ in range(rng.randint(schema["minItems"], schema["maxItems"]))
            ]
        return None if schema["type"] == "null" else text_of(schema["pattern"], rng)


def text_of(pattern: str, rng: random.Random) -> str:
    """Return a random text that a regular expression matches completely."""
    return _written(rng, patterns.parse(pattern))


def alternatives(pattern: str) -> int:
    """Return the largest number of alternatives in one choice of a regular expression, as written."""
    return max(_widest(patterns.parse(pattern)), 1)


def _widest(parts: Any) -> int:
    widest = 0
    for kind, argument in parts:
        if kind is kinds.SUBPATTERN:
            widest = max(widest, _widest(argument[3]))
        elif kind is kinds.MAX_REPEAT:
            widest = max(widest, _widest(argument[2]))
        elif kind is kinds.BRANCH:
            widest = max(widest, len(argument[1]), *map(_widest, argument[1]))
        else:
            assert kind in (kinds.LITERAL, kinds.IN, kinds.NOT_LITERAL, kinds.AT), f"{kind} is not taken"
    return widest


def _written(rng: random.Random, parts: Any) -> str:
    return "".join(_part(rng, kind, of) for kind, of in parts)


def _part(rng: random.Random, kind: Any, of: Any) -> str:
    if kind is kinds.AT:
        return ""
    if kind is kinds.LITERAL:
        return chr(of)
    if kind is kinds.SUBPATTERN:
        return _written(rng, of[3])
    if kind is kinds.BRANCH:
        return _written(rng, rng.choice(of[1]))
    if kind is kinds.MAX_REPEAT:
        least, most, inner = of
        return "".join(_written(rng, inner) for _ in range(rng.randint(least, min(int(most), least + rng.choice((0, 1, 2, 6))))))
    if kind is kinds.NOT_LITERAL:
        of = [(kinds.NEGATE, None), (kinds.LITERAL, of)]
    assert kind in (kinds.IN, kinds.NOT_LITERAL), kind
    negated = of[0][0] is kinds.NEGATE
    while True:
        letter = rng.choice("abcXYyZ019 ,()'-\"\\:;|<>=é漢{}[]_output_of_query1\t\x7f`/")
        if of == [(kinds.CATEGORY, kinds.CATEGORY_NOT_SPACE)]:
            if not letter.isspace():
                return letter
            continue
        if not negated:
            low, high = next(((item, item) if kind is kinds.LITERAL else item) for kind, item in [rng.choice(of)])
            return chr(rng.randint(low, high))
        if not any(_within(item, letter) for item in of[1:]):
            return letter


def _within(part: Any, letter: str) -> bool:
    kind, of = part
    if kind is kinds.CATEGORY:
        assert of is kinds.CATEGORY_SPACE
        return letter.isspace()
    return bool(ord(letter) == of if kind is kinds.LITERAL else of[0] <= ord(letter) <= of[1])
