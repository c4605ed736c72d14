"""Logical queries for servers that take a JSON schema: queries as trees of sets, and from a tree back
to a query.

`{"query": {"step": {"of": {"entity": "Nepal"}, "relation": "capital", "direction": "forward"}}}` is
`?x : capital("Nepal", ?x)`. A set is what a relation leads to from a set or an entity, the members
of a type, what two sets share, what one of two has, or what one has and the other has not. So each
tree says what its answers are, and its variables form a tree.
"""

from __future__ import annotations

import json
from itertools import count
from typing import Any, Final

from condgraph.engine.errors import OptionError, ParseError, shortened
from condgraph.grammars.vocabulary import Vocabulary
from condgraph.languages.logic.formula import And, Atom, Constant, Exists, Formula, Not, Or, Query, Typed, Variable

#: What a model is told that writes queries as trees.
TOLD: Final = (
    'The query is written as JSON, as sets within sets: {"entity": ...} (only where a step begins), {"type": ...}, '
    '{"step": {"of": ..., "relation": ..., "direction": "forward"}} ("forward" leads from subject to object), '
    '{"both": {"of": ..., "with": ...}}, {"either": {"of": ..., "with": ...}}, {"without": {"of": ..., "with": ...}}. '
    'Such as: {"query": {"step": {"of": {"entity": "Nepal"}, "relation": "capital", "direction": "forward"}}}; where nothing '
    'answers, {"query": null}.'
)
_DIRECTIONS: Final = ("forward", "backward")
_JOINS: Final = ("both", "either", "without")
#: Sets within sets of the deepest tree that is read.
_DEEPEST: Final = 50


def schema(names: Vocabulary, *, none: bool = False) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of queries over these names; with `none`, null is one. Raises
    `OptionError` where none can be written.
    """
    sets: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    some = {"$ref": "#/$defs/set"}
    begin = some
    if names.relations:
        if names.entities:
            definitions["name"] = {"enum": list(names.entities)}
            definitions["start"] = {"anyOf": [_object({"entity": {"$ref": "#/$defs/name"}}), some]}
            begin = {"$ref": "#/$defs/start"}
        definitions["relation"] = {"enum": list(names.relations)}
        leads = {"of": begin, "relation": {"$ref": "#/$defs/relation"}, "direction": {"enum": list(_DIRECTIONS)}}
        sets.append(_object({"step": _object(leads)}))
    if names.concepts:
        definitions["concept"] = {"enum": list(names.concepts)}
        sets.append(_object({"type": {"$ref": "#/$defs/concept"}}))
    if not names.concepts and not (names.relations and names.entities):
        raise OptionError("the graph has no names that a logical query could hold", hint="name them with entities=, or load some")
    sets += [_object({join: _object({"of": some, "with": some})}) for join in _JOINS]
    definitions["set"] = {"anyOf": sets}
    return {**_object({"query": {"anyOf": [some, {"type": "null"}]} if none else some}), "$defs": definitions}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def program(text: str) -> str:
    """The query of a tree, as text, empty for null; raises `ParseError` for what is no tree."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        raise ParseError("the query is not well-formed JSON") from None
    if not isinstance(tree, dict) or "query" not in tree:
        raise ParseError('a query as a tree is an object with "query"')
    if tree["query"] is None:
        return ""
    answer = Variable("x")
    return str(Query(answer, _Reader().formula(tree["query"], answer, 0)))


class _Reader:
    """Reads one tree; its variables are numbered."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def formula(self, tree: Any, of: Variable, depth: int) -> Formula:
        """What a set says of a variable."""
        kind, given = next(iter(tree.items())) if isinstance(tree, dict) and len(tree) == 1 else ("", None)
        if depth > _DEEPEST:
            raise ParseError("the query is nested too deeply")
        if kind == "type" and isinstance(given, str):
            return Typed(given, of)
        if kind == "step" and isinstance(given, dict):
            return self._step(given, of, depth)
        if kind in _JOINS and isinstance(given, dict):
            one, two = (self.formula(given.get(name), of, depth + 1) for name in ("of", "with"))
            return Or((one, two)) if kind == "either" else And((one, two if kind == "both" else Not(two)))
        raise ParseError(f"a set is expected, not {shortened(repr(tree), 100)}")

    def _step(self, given: dict[str, Any], of: Variable, depth: int) -> Formula:
        relation, direction, begin = given.get("relation"), given.get("direction"), given.get("of")
        if not isinstance(relation, str) or direction not in _DIRECTIONS:
            raise ParseError('a step has a "relation", and a "direction": "forward" or "backward"')
        if isinstance(begin, dict) and isinstance(name := begin.get("entity"), str) and len(begin) == 1:
            return _atom(relation, Constant(name), of, direction)
        below = Variable(f"v{next(self._numbers)}")
        return Exists((below,), And((self.formula(begin, below, depth + 1), _atom(relation, below, of, direction))))


def _atom(relation: str, of: Variable | Constant, to: Variable, direction: str) -> Atom:
    return Atom(relation, of, to) if direction == "forward" else Atom(relation, to, of)
