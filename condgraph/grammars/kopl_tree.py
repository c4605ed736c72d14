"""KoPL for servers that take a JSON schema: programs as trees, in which each function holds the sets
that it takes, so that the schema alone keeps them well formed; and from a tree back to a program.

`{"Relate": {"of": {"Find": {"name": "Nepal"}}, "relation": "capital", "direction": "forward"}}` is
`Find("Nepal") Relate("capital", "forward")`. The function is the key, so that whoever reads under the
schema knows by it which of all calls stands there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from condgraph.engine.errors import ParseError, shortened
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


def schema(names: Vocabulary, *, none: bool = False) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of programs over these names; with `none`, null is one."""
    literals = literals_of(names)
    patterns = {one: regex({**literals, "root": literals[one]}) for one in ("amount", "years", "days")}
    patterns |= {"number": patterns["amount"], "year": patterns["years"], "date": patterns["days"]}
    patterns["moment"] = f"(?:{patterns['years']}|{patterns['days']})"
    patterns["number-or-moment"] = f"(?:{patterns['amount']}|{patterns['days']})"
    made = _Schema(names, patterns)
    definitions: dict[str, Any] = {
        "facts": {"anyOf": made.calls(_FACTS)},
        "set": {"anyOf": [*made.calls(_SETS), {"$ref": "#/$defs/facts"}]},
        "values": {"anyOf": made.calls(_VALUES)},
    }
    definitions |= made.enums
    others = [one for one in FUNCTIONS if one not in (*_SETS, *_FACTS, *_VALUES)]
    definitions = {name: one for name, one in definitions.items() if one.get("anyOf", True)}
    answers = made.calls(others if "values" in definitions else [one for one in others if not one.startswith("Verify")])
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


class _Schema:
    """Makes the schemas of calls; `enums` are the lists of names that they refer to."""

    def __init__(self, names: Vocabulary, patterns: Mapping[str, str]) -> None:
        self._names, self._patterns = names, patterns
        self.enums: dict[str, Any] = {}
        for role, of in (("name", names.entities), ("concept", names.concepts), ("relation", names.relations)):
            self._enum(role, of)
        for role, keys in (("key", names.keys), ("qkey", names.qualifiers)):
            self._enum(role, keys)
            for kind in ("text", "quantity", "time"):
                others = {"entity"} if kind == "text" else set()
                self._enum(f"{role}-{kind}", [name for name, kinds in keys.items() if kinds & ({kind} | others)])
            pairs: dict[str, list[str]] = {}
            for name, kinds in keys.items():
                pairs.setdefault(literal_of(kinds), []).append(name)
            for literal, those in pairs.items():
                self._enum(f"{role}-of-{literal}", those)

    def _enum(self, rule: str, names: Iterable[str]) -> None:
        if found := list(names):
            self.enums[rule] = {"enum": found}

    def calls(self, functions: Iterable[str]) -> list[dict[str, Any]]:
        """The schemas of these functions, those left out for which a name is missing."""
        return [one for function in functions for one in self._call(function) if one]

    def _call(self, function: str) -> list[dict[str, Any]]:
        signature = FUNCTIONS[function]
        kind = next((kind for ending, kind in TYPES.items() if function.endswith(ending)), "")
        literal = (
            function[-4:].lower() if function.endswith(("Year", "Date")) else {"text": "text", "quantity": "number"}.get(kind, "")
        )
        sort = "values" if function.startswith("Verify") else "facts" if function.startswith("QFilter") else "set"
        sets: dict[str, Any] = {name: {"$ref": f"#/$defs/{sort}"} for name in ("of", "with")[: signature.inputs]}
        roles = list(signature.texts)
        if function not in ("QueryAttrQualifier", "QueryAttrUnderCondition"):
            texts = {
                role: self._text(role, f"{role}-{kind}" if kind and role in ("key", "qkey") else role, literal) for role in roles
            }
            return [self._object(function, {**sets, **texts})]
        deciding = "key" if function == "QueryAttrQualifier" else "qkey"
        found = []
        for rule in self.enums:
            if rule.startswith(f"{deciding}-of-"):
                literal = rule.removeprefix(f"{deciding}-of-")
                texts = {role: self._text(role, rule if role == deciding else role, literal) for role in roles}
                found.append(self._object(function, {**sets, **texts}))
        return found

    def _text(self, role: str, rule: str, literal: str) -> dict[str, Any] | None:
        if role in CLOSED:
            return {"enum": list(CLOSED[role])}
        if role in ("value", "qvalue"):
            pattern = r"\S[^\x00-\x1f]{0,199}" if literal == "text" else self._patterns[literal]
            return {"type": "string", "pattern": f"^{pattern}$"}
        return {"$ref": f"#/$defs/{rule}"} if rule in self.enums else None

    def _object(self, function: str, properties: dict[str, Any]) -> dict[str, Any]:
        if None in properties.values():
            return {}
        taken = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
        return {"type": "object", "properties": {function: taken}, "required": [function], "additionalProperties": False}


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
