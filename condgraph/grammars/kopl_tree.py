"""KoPL for servers that take a JSON schema: programs as trees, in which each function holds the sets
that it takes, so that the schema alone keeps them well formed; and from a tree back to a program.

`{"Relate": {"of": {"Find": {"name": "Nepal"}}, "relation": "capital", "direction": "forward"}}` is
`Find("Nepal") Relate("capital", "forward")`. The function is the key, so that whoever reads under the
schema knows by it which of all calls stands there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from condgraph.engine.errors import ParseError, shortened
from condgraph.grammars.aware import Has
from condgraph.grammars.forms import regex
from condgraph.grammars.kopl import TYPES, literal_of, literals_of, quoted
from condgraph.grammars.vocabulary import Vocabulary
from condgraph.languages.kopl.table import CLOSED, FUNCTIONS

#: What a function takes, and what it gives, by the sorts of `languages.kopl.lower`.
_SETS: Final = ("Find", "FindAll", "FilterConcept", "And", "Or")
_FACTS: Final = (
    "Relate",
    "FilterStr",
    "FilterNum",
    "FilterYear",
    "FilterDate",
    "QFilterStr",
    "QFilterNum",
    "QFilterYear",
    "QFilterDate",
)
_VALUES: Final = ("QueryAttr", "QueryAttrUnderCondition", "QueryAttrQualifier", "QueryRelationQualifier")
#: What a model is told that writes programs as trees.
TOLD: Final = (
    'The program is written as JSON, in which each function holds as "of" (and "with") the sets that it takes, and its texts by '
    'name: {"program": {"QueryName": {"of": {"Relate": {"of": {"Find": {"name": "Nepal"}}, "relation": "capital", '
    '"direction": "forward"}}}}}; where nothing answers, {"program": null}.'
)
#: Calls within calls of the deepest tree that is read.
_DEEPEST: Final = 100


def schema(names: Vocabulary, *, none: bool = False, has: Mapping[str, Has] | None = None) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of programs over these names; with `none`, null is one. `has` says what
    each entity has, where of `Find(e)` only that may be taken.
    """
    literals = literals_of(names)
    patterns = {one: regex({**literals, "root": literals[one]}) for one in ("amount", "years", "days")}
    patterns |= {"number": patterns["amount"], "year": patterns["years"], "date": patterns["days"]}
    patterns["moment"] = f"(?:{patterns['years']}|{patterns['days']})"
    patterns["number-or-moment"] = f"(?:{patterns['amount']}|{patterns['days']})"
    made = _Schema(names, patterns, has or {})
    definitions: dict[str, Any] = {"facts": {"anyOf": made.calls(_FACTS)}}
    if made.has:
        # What is asked of a set that may be an entity alone is asked of the entity by itself.
        others = [one for one in _SETS if one != "Find"]
        definitions["more"] = {"anyOf": [*made.calls(others), {"$ref": "#/$defs/facts"}]}
        definitions["set"] = {"anyOf": [*made.calls(("Find",)), {"$ref": "#/$defs/more"}]}
    else:
        definitions["set"] = {"anyOf": [*made.calls(_SETS), {"$ref": "#/$defs/facts"}]}
    definitions["values"] = {"anyOf": made.calls(_VALUES)}
    ends = [one for one in FUNCTIONS if one not in (*_SETS, *_FACTS, *_VALUES)]
    answers = made.calls(ends if definitions["values"]["anyOf"] else [one for one in ends if not one.startswith("Verify")])
    definitions = {name: one for name, one in {**definitions, **made.enums}.items() if one.get("anyOf", True)}
    values = [{"$ref": "#/$defs/values"}] if "values" in definitions else []
    nothing: list[dict[str, Any]] = [{"type": "null"}] if none else []
    # Servers want an object at the top.
    return {
        "type": "object",
        "properties": {"program": {"anyOf": [*answers, *values, *nothing]}},
        "required": ["program"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _by_types(role: str, keys: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    """The names of attributes or qualifiers that each rule lists, by the types of their values."""
    found = {role: list(keys)}
    for kind in ("text", "quantity", "time"):
        others = {"entity"} if kind == "text" else set()
        found[f"{role}-{kind}"] = [name for name, kinds in keys.items() if kinds & ({kind} | others)]
    for name, kinds in keys.items():
        found.setdefault(f"{role}-of-{literal_of(kinds)}", []).append(name)
    return found


class _Schema:
    """Makes the schemas of calls; `enums` are the lists of names that they refer to."""

    def __init__(self, names: Vocabulary, patterns: Mapping[str, str], has: Mapping[str, Has]) -> None:
        self._names, self._patterns, self.has = names, patterns, has
        self.enums: dict[str, Any] = {}
        self._numbers: dict[tuple[str, ...], int] = {}
        rules: dict[str, Sequence[str]] = {"name": names.entities, "concept": names.concepts, "relation": names.relations}
        self._rules = {**rules, **_by_types("key", names.keys), **_by_types("qkey", names.qualifiers)}
        self.enums = {rule: {"enum": list(those)} for rule, those in self._rules.items() if those}

    def calls(self, functions: Iterable[str]) -> list[dict[str, Any]]:
        """The schemas of these functions, those left out for which a name is missing."""
        return [one for function in functions for one in self._call(function)]

    def _call(self, function: str) -> list[dict[str, Any]]:
        sort = "values" if function.startswith("Verify") else "facts" if function.startswith("QFilter") else "set"
        signature = FUNCTIONS[function]
        asks = signature.inputs == 1 and sort == "set" and not {"key", "relation"}.isdisjoint(signature.texts)
        if self.has and asks:
            sort = "more"
        sets: dict[str, Any] = {name: {"$ref": f"#/$defs/{sort}"} for name in ("of", "with")[: signature.inputs]}
        found = [_object({function: _object({**sets, **texts})}) for texts in self._texts(function, self._rules)]
        return [*found, *self._own(function)] if self.has and asks else found

    def _own(self, function: str) -> list[dict[str, Any]]:
        """The calls of a function that asks single entities for what they have; those that have the same are
        taken together.
        """
        groups: dict[str, tuple[dict[str, Any], list[str]]] = {}
        general = {rule: those for rule, those in self._rules.items() if rule.partition("-")[0] != "key"}
        for name, its in self.has.items():
            keys = {key: self._names.keys[key] for key in its["value"] if key in self._names.keys}
            ways: list[tuple[dict[str, Sequence[str]], dict[str, Any]]] = [({**general, **_by_types("key", keys)}, {})]
            if function == "Relate":
                ways = [
                    ({"relation": [one for one in its[way] if one in self._names.relations]}, {"direction": {"enum": [way]}})
                    for way in CLOSED["direction"]
                ]
            for rules, told in ways:
                for texts in self._texts(function, rules):
                    groups.setdefault(json.dumps({**texts, **told}), ({**texts, **told}, []))[1].append(name)
        return [
            _object({function: _object({"of": _object({"Find": _object({"name": self._listed(names)})}), **texts})})
            for texts, names in groups.values()
        ]

    def _texts(self, function: str, rules: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
        """What the texts of a function can be, where each of these rules lists names; nothing where one that
        is needed lists none.
        """
        kind = next((kind for ending, kind in TYPES.items() if function.endswith(ending)), "")
        literal = (
            function[-4:].lower() if function.endswith(("Year", "Date")) else {"text": "text", "quantity": "number"}.get(kind, "")
        )
        deciding = {"QueryAttrQualifier": "key", "QueryAttrUnderCondition": "qkey"}.get(function)
        ways = [(literal, {role: f"{role}-{kind}" if kind and role in ("key", "qkey") else role for role in ("key", "qkey")})]
        if deciding is not None:
            # Key and value are one choice: the types of the key's values say what the value may be.
            begin = f"{deciding}-of-"
            ways = [
                (rule.removeprefix(begin), {"key": "key", "qkey": "qkey", deciding: rule})
                for rule in rules
                if rule.startswith(begin)
            ]
        found = [
            {role: self._text(role, rules.get(lists.get(role, role), ()), literal) for role in FUNCTIONS[function].texts}
            for literal, lists in ways
        ]
        return [one for one in found if None not in one.values()]

    def _text(self, role: str, names: Sequence[str], literal: str) -> dict[str, Any] | None:
        if role in CLOSED:
            return {"enum": list(CLOSED[role])}
        if role in ("value", "qvalue"):
            pattern = r"\S[^\x00-\x1f]{0,199}" if literal == "text" else self._patterns[literal]
            return {"type": "string", "pattern": f"^{pattern}$"}
        return self._listed(names) if names else None

    def _listed(self, names: Sequence[str]) -> dict[str, Any]:
        """A list of names, which stands once."""
        for rule, those in self._rules.items():
            if those is names:
                return {"$ref": f"#/$defs/{rule}"}
        rule = f"names-{self._numbers.setdefault(tuple(names), len(self._numbers))}"
        self.enums[rule] = {"enum": list(names)}
        return {"$ref": f"#/$defs/{rule}"}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}


def program(text: str) -> str:
    """The program of a tree, as text, empty for null; raises `ParseError` for what is no tree."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        raise ParseError("the program is not well-formed JSON") from None
    if not isinstance(tree, dict) or "program" not in tree:
        raise ParseError('a program as a tree is an object with "program"')
    return "" if tree["program"] is None else " ".join(_steps(tree["program"], 0))


def _steps(tree: Any, depth: int) -> list[str]:
    function, given = next(iter(tree.items())) if isinstance(tree, dict) and len(tree) == 1 else ("", None)
    if function not in FUNCTIONS or not isinstance(given, dict):
        raise ParseError(f"a call of a function is expected, not {shortened(repr(tree), 100)}")
    if depth > _DEEPEST:
        raise ParseError("the program is nested too deeply")
    signature = FUNCTIONS[function]
    steps = [step for name in ("of", "with")[: signature.inputs] for step in _steps(given.get(name), depth + 1)]
    texts = [text for role in signature.texts if isinstance(text := given.get(role), str)]
    if len(texts) < len(signature.texts):
        raise ParseError(f"{function} takes texts: {', '.join(signature.texts)}")
    return [*steps, f"{function}({', '.join(map(quoted, texts))})"]
