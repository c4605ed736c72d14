"""The grammar of KoPL, as text and as trees for servers that accept a JSON schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from condgraph.engine.errors import OptionError, ParseError, shortened
from condgraph.grammars.parts import (
    DIGIT,
    Alt,
    Chars,
    Part,
    Ref,
    Repeat,
    Rules,
    Seq,
    Text,
    alt,
    maybe,
    object_schema,
    reached,
    regex,
    seq,
    single,
    tree_in,
    trie,
)
from condgraph.grammars.vocabulary import Has, Vocabulary
from condgraph.languages.kopl.table import CLOSED, FUNCTIONS

# -- programs as text ------------------------------------------------------------------------------
# Programs are written with every text as a JSON string: `Find("Nepal") Relate("capital", "forward")`. A
# set is a beginning and steps that continue it; `And`, `Or` and `Except` combine it with a further set,
# which is one level deeper. A function whose text has a type (FilterNum, the value of a qualifier) takes
# the names that have values of this type.


#: Defaults for the depth of nested sets, and for consecutive steps.
DEPTH: Final = 2
STEPS: Final = 6
#: Longest text that is a value, in characters.
MAX_TEXT: Final = 200
#: The type of value that a function with this ending compares, and the rule of its literals.
_COMPARED: Final = {"Str": ("text", "text"), "Num": ("quantity", "number"), "Year": ("time", "year"), "Date": ("time", "date")}


def quoted(text: str) -> str:
    """Return a text as a JSON string with letters unescaped, as in a program."""
    return json.dumps(text, ensure_ascii=False)


def rules(names: Vocabulary, *, depth: int = DEPTH, steps: int = STEPS, has: Mapping[str, Has] | None = None) -> Rules:
    """Return the rules of KoPL over some names. Raises `OptionError` if no program can be written.

    `has` gives the predicates of each entity, if only these may follow `Find(e)`.
    """
    result = {**literals_of(names), **_name_rules(names)}
    calls = {function: part for function in FUNCTIONS if (part := _call(function, result)) is not None}
    if "Find" not in calls and not names.relations and not names.keys:
        raise OptionError("the graph has no names that a program could hold", hint="load something first")
    qualifier_filters = [Seq((Text(" "), calls[call])) for call in calls if call.startswith("QFilter")]
    narrowed: list[Part] = [Repeat(Alt(tuple(qualifier_filters)), 0, 2)] if qualifier_filters else []
    result["facts"] = alt(*_filters(calls), *_some(calls, "Relate"))
    step = [Seq((Text(" "), Ref("facts"), *narrowed))]
    step += [Seq((Text(" "), item)) for item in _some(calls, "FilterConcept")]
    result["step"] = alt(*step)
    bare: Part | None = calls["Find"] if "Find" in calls and has is not None else None
    beginnings = _some(calls, "FindAll") if bare is not None else _some(calls, "Find", "FindAll")
    entity_programs: list[Part] = []
    if has is not None and bare is not None:
        led_sets, entity_programs = _entity_sets(names, result, has, narrowed, _some(calls, "FilterConcept"))
        if led_sets:
            result["led"] = alt(*led_sets)
        result["bare"] = bare
    result["begin"] = alt(*beginnings)
    for level in range(depth + 1):
        join = [Seq((Text(" "), Ref(f"set-{level - 1}"), alt(" And()", " Or()", " Except()")))] if level else []
        continuation = alt(Ref("step"), *join)
        sets: list[Part] = [Seq((Ref("begin"), Repeat(continuation, 0, steps)))]
        if "led" in result and steps:
            sets.append(Seq((Ref("led"), Repeat(continuation, 0, steps - 1))))
        if bare is not None and join and steps:
            sets.append(Seq((Ref("bare"), *join, Repeat(continuation, 0, steps - 1))))
        result[f"more-{level}"] = alt(*sets)
        # An entity alone is a set, too, which another one may follow.
        result[f"set-{level}"] = alt(Ref(f"more-{level}"), *([Ref("bare")] if bare is not None else []))
    if values := _values(calls):
        result["values"] = values
    two_set_calls = _some(calls, "QueryRelation", "SelectBetween")
    if relation := _some(calls, "QueryRelationQualifier"):
        two_set_calls.append(Seq((*relation, maybe(alt(*_verifies(calls))))))
    second = Seq((Ref(f"set-{depth}"), Text(" "), alt(*two_set_calls)))
    ends = [*_some(calls, *_ENDS), *([_verified(Ref("values"), calls)] if values else [])]
    one_set = Seq((Ref(f"more-{depth}"), Text(" "), alt(*ends)))
    result["root"] = alt(one_set, Seq((Ref(f"set-{depth}"), Text(" "), second)), *entity_programs)
    return reached(result)


#: Calls that end a program after one set, apart from its values.
_ENDS: Final = ("QueryName", "What", "Count", "SelectAmong")


def _filters(calls: Mapping[str, Part]) -> list[Part]:
    return [calls[call] for call in calls if call.startswith("Filter") and call != "FilterConcept"]


def _verifies(calls: Mapping[str, Part]) -> list[Part]:
    return [Seq((Text(" "), calls[call])) for call in calls if call.startswith("Verify")]


def _values(calls: Mapping[str, Part]) -> Part | None:
    values = _some(calls, "QueryAttr", "QueryAttrUnderCondition", "QueryAttrQualifier")
    return alt(*values) if values else None


def _verified(values: Part, calls: Mapping[str, Part]) -> Part:
    return Seq((values, maybe(alt(*_verifies(calls)))))


def _entity_sets(
    names: Vocabulary, rules: dict[str, Part], has: Mapping[str, Has], narrowed: list[Part], concepts: list[Part]
) -> tuple[list[Part], list[Part]]:
    """Return, for each entity, sets that continue with its predicates, and whole programs that query them.

    The rules of its attributes are added to `rules`.
    """
    led: list[Part] = []
    programs: list[Part] = []
    for number, (name, predicates) in enumerate(has.items()):
        find = seq("Find(", quoted(name), ")")
        key_rules = {
            rule: part
            for rule, part in _name_rules(replace(names, keys=_among(names.keys, predicates["value"]))).items()
            if "key" in rule
        }
        key_rules = {rule: part for rule, part in key_rules.items() if not rule.startswith("qkey")}
        other_rules = {rule: part for rule, part in rules.items() if not rule.startswith("key")}
        calls = {
            item: part for item in FUNCTIONS if (part := _call(item, {**other_rules, **key_rules}, f"-of-{number}")) is not None
        }
        rules |= {f"{rule}-of-{number}": part for rule, part in key_rules.items()}
        relations = [
            (direction, [item for item in predicates[direction] if item in names.relations]) for direction in CLOSED["direction"]
        ]
        facts = [
            seq("Relate(", trie(map(quoted, relation_names)), f", {quoted(direction)})")
            for direction, relation_names in relations
            if relation_names
        ]
        facts += _filters(calls)
        continuations: list[Part] = [Seq((Text(" "), alt(*facts), *narrowed))] if facts else []
        continuations += [Seq((Text(" "), concept)) for concept in concepts]
        if continuations:
            led.append(Seq((find, alt(*continuations))))
        ends = _some(calls, *_ENDS)
        if (values := _values(calls)) is not None:
            ends.append(_verified(values, calls))
        programs.append(Seq((find, Text(" "), alt(*ends))))
    return led, programs


def _among(keys: Mapping[str, frozenset[str]], those: Iterable[str]) -> dict[str, frozenset[str]]:
    return {key: keys[key] for key in those if key in keys}


def _some(calls: Mapping[str, Part], *functions: str) -> list[Part]:
    return [calls[function] for function in functions if function in calls]


def _compared(function: str) -> tuple[str, str]:
    return next((types for ending, types in _COMPARED.items() if function.endswith(ending)), ("", ""))


def _call(function: str, rules: Mapping[str, Part], of: str = "") -> Part | None:
    """Return a call of a function with all of its possible texts; None if a name for one is missing.

    The rules of attributes have the suffix `of`.
    """
    texts = FUNCTIONS[function].texts
    kind, literal = _compared(function)
    parts: list[Part | str] = [f"{function}("]
    for number, role in enumerate(texts):
        parts += [", "] if number else []
        if role in CLOSED:
            parts.append(alt(*(quoted(word) for word in CLOSED[role])))
        elif role in ("value", "qvalue") and function.endswith(("Qualifier", "Condition")):
            # Key and value are one choice, made with the key.
            continue
        elif role in ("value", "qvalue"):
            parts.append(Ref(literal))
        else:
            paired = role if not kind or role not in ("key", "qkey") else f"{role}-{kind}"
            if function == "QueryAttrQualifier" and role == "key":
                paired = "key-value"
            elif function == "QueryAttrUnderCondition" and role == "qkey":
                paired = "qkey-value"
            if paired not in rules:
                return None
            parts.append(Ref(paired))
    if function == "QueryAttrQualifier":
        parts = [f"{function}(", Ref("key-value"), ", ", Ref("qkey")]
    elif function == "QueryAttrUnderCondition":
        parts = [f"{function}(", Ref("key"), ", ", Ref("qkey-value")]
    if any(isinstance(part, Ref) and part.name not in rules for part in parts):
        return None
    parts = [Ref(part.name + of) if isinstance(part, Ref) and part.name.startswith("key") else part for part in parts]
    return seq(*parts, ")")


# -- names -----------------------------------------------------------------------------------------


def _name_rules(names: Vocabulary) -> dict[str, Part]:
    result: dict[str, Part] = {}
    _add(result, "name", names.entities)
    _add(result, "concept", (*names.concepts, *names.tables))
    _add(result, "relation", names.relations)
    for role, of in (("key", names.keys), ("qkey", names.qualifiers)):
        choices = []
        for rule, those in _by_types(role, of).items():
            name, decided, literal = rule.partition("-of-")
            if decided:
                choices.append(Seq((trie(map(quoted, those)), Text(", "), Ref(literal))))
            else:
                _add(result, name, those)
        if choices:
            result[f"{role}-value"] = alt(*choices)
    return result


def literal_of(kinds: frozenset[str]) -> str:
    """Return the rule of literals that can be compared with values of all these types."""
    if not kinds - {"unknown"} or kinds & {"text", "entity"}:
        return "text"
    if kinds >= {"quantity", "time"}:
        return "number-or-moment"
    return "number" if "quantity" in kinds else "moment"


def _add(rules: dict[str, Part], rule: str, names: Iterable[str]) -> None:
    texts = [quoted(name) for name in names]
    if texts:
        rules[rule] = trie(texts)


# -- literals --------------------------------------------------------------------------------------


def literals_of(names: Vocabulary) -> dict[str, Part]:
    """Return the rules of texts, numbers and times; all but `amount`, `years` and `days` include quotes."""
    digits = Repeat(DIGIT, 1, 15)
    amount = seq(maybe(Text("-")), digits, maybe(seq(".", Repeat(DIGIT, 1, 12))))
    unit = [maybe(seq(" ", trie(quoted(item)[1:-1] for item in names.units)))] if names.units else []
    unescaped = Chars((('"', '"'), ("\\", "\\"), ("\x00", "\x1f")), negated=True)
    letter = Chars((('"', '"'), ("\\", "\\"), ("\x00", " ")), negated=True)
    escape = seq("\\", Chars((('"', '"'), ("\\", "\\"))))
    long_months, short_months = [f"{month:02d}" for month in (1, 3, 5, 7, 8, 10, 12)], ["04", "06", "09", "11"]
    upto28 = alt(seq("0", Chars((("1", "9"),))), seq("1", DIGIT), seq("2", Chars((("0", "8"),))))
    day = alt(
        seq(trie(long_months), "-", alt(Ref("upto28"), "29", "30", "31")),
        seq(trie(short_months), "-", alt(Ref("upto28"), "29", "30")),
        seq("02-", Ref("upto28")),
    )
    leap_numbers = trie(f"{number:02d}" for number in range(4, 100, 4))
    # 29 February, in years of four digits that have it.
    leap = seq(alt(seq(Repeat(DIGIT, 2, 2), leap_numbers), seq(leap_numbers, "00")), "-02-29")
    return {
        "upto28": upto28,
        "four": Repeat(DIGIT, 4, 4),
        "text": seq('"', alt(letter, escape), Repeat(alt(unescaped, escape), 0, MAX_TEXT - 1), '"'),
        "amount": seq(amount, *unit),
        "number": seq('"', Ref("amount"), '"'),
        "years": alt(seq(maybe(Text("-")), Ref("four")), seq(Chars((("1", "9"),)), Repeat(DIGIT, 0, 2))),
        "year": seq('"', Ref("years"), '"'),
        "days": alt(seq(maybe(Text("-")), Ref("four"), "-", day), leap),
        "date": seq('"', Ref("days"), '"'),
        "moment": seq('"', alt(Ref("years"), Ref("days")), '"'),
        "number-or-moment": seq('"', alt(Ref("amount"), Ref("days")), '"'),
    }


# -- programs as trees -----------------------------------------------------------------------------
# KoPL for servers that accept a JSON schema: programs are trees, in which each function contains the sets
# that it takes, so that the schema alone ensures they are well formed; and programs from such trees.
#
# `{"Relate": {"of": {"Find": {"name": "Nepal"}}, "relation": "capital", "direction": "forward"}}` is
# `Find("Nepal") Relate("capital", "forward")`. The function is the key, which tells a reader under the
# schema at once which call it is.


#: Inputs and results of functions, by the sorts in `languages.kopl.lower`.
_SETS: Final = ("Find", "FindAll", "FilterConcept", "And", "Or", "Except")
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
#: Instructions for a model that writes programs as trees.
INSTRUCTIONS: Final = (
    'The program is written as JSON, in which each function holds as "of" (and "with") the sets that it takes, and its texts by '
    'name: {"program": {"QueryName": {"of": {"Relate": {"of": {"Find": {"name": "Nepal"}}, "relation": "capital", '
    '"direction": "forward"}}}}}; where nothing answers, {"program": null}.'
)
#: Most nested calls of a tree that is read.
_MAX_DEPTH: Final = 100


def schema(names: Vocabulary, *, none: bool = False, has: Mapping[str, Has] | None = None) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of programs over some names; with `none`, null is one.

    `has` gives the predicates of each entity, if only these may be applied to `Find(e)`.
    """
    literals = literals_of(names)
    patterns = {item: regex({**literals, "root": literals[item]}) for item in ("amount", "years", "days")}
    patterns |= {"number": patterns["amount"], "year": patterns["years"], "date": patterns["days"]}
    patterns["moment"] = f"(?:{patterns['years']}|{patterns['days']})"
    patterns["number-or-moment"] = f"(?:{patterns['amount']}|{patterns['days']})"
    calls = _Schema(names, patterns, has or {})
    definitions: dict[str, Any] = {"facts": {"anyOf": calls.calls(_FACTS)}}
    if calls.has:
        # Calls on a set that may be an entity alone are built for the entity itself.
        non_entity_sets = [item for item in _SETS if item != "Find"]
        definitions["more"] = {"anyOf": [*calls.calls(non_entity_sets), {"$ref": "#/$defs/facts"}]}
        definitions["set"] = {"anyOf": [*calls.calls(("Find",)), {"$ref": "#/$defs/more"}]}
    else:
        definitions["set"] = {"anyOf": [*calls.calls(_SETS), {"$ref": "#/$defs/facts"}]}
    definitions["values"] = {"anyOf": calls.calls(_VALUES)}
    ends = [item for item in FUNCTIONS if item not in (*_SETS, *_FACTS, *_VALUES)]
    answers = calls.calls(ends if definitions["values"]["anyOf"] else [end for end in ends if not end.startswith("Verify")])
    definitions = {name: item for name, item in {**definitions, **calls.enums}.items() if item.get("anyOf", True)}
    values = [{"$ref": "#/$defs/values"}] if "values" in definitions else []
    null_schema: list[dict[str, Any]] = [{"type": "null"}] if none else []
    # Servers require an object at the top.
    return {**object_schema({"program": {"anyOf": [*answers, *values, *null_schema]}}), "$defs": definitions}


def _by_types(role: str, keys: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    """Return the names of attributes or qualifiers for each rule, by the types of their values.

    Rules with `-of-` list the names whose types together determine the kind of literal.
    """
    result = {role: list(keys)}
    for kind in ("text", "quantity", "time"):
        further_kinds = {"entity"} if kind == "text" else set()
        result[f"{role}-{kind}"] = [name for name, kinds in keys.items() if kinds & ({kind} | further_kinds)]
    for name, kinds in keys.items():
        result.setdefault(f"{role}-of-{literal_of(kinds)}", []).append(name)
    return result


class _Schema:
    """Builds the schemas of calls; `enums` are the lists of names that they refer to."""

    def __init__(self, names: Vocabulary, patterns: Mapping[str, str], has: Mapping[str, Has]) -> None:
        self._names, self._patterns, self.has = names, patterns, has
        self.enums: dict[str, Any] = {}
        self._numbers: dict[tuple[str, ...], int] = {}
        rules: dict[str, Sequence[str]] = {
            "name": names.entities,
            "concept": (*names.concepts, *names.tables),
            "relation": names.relations,
        }
        self._rules = {**rules, **_by_types("key", names.keys), **_by_types("qkey", names.qualifiers)}
        self.enums = {rule: {"enum": list(listed_names)} for rule, listed_names in self._rules.items() if listed_names}

    def calls(self, functions: Iterable[str]) -> list[dict[str, Any]]:
        """Return the schemas of some functions, without those for which a name is missing."""
        return [item for function in functions for item in self._call(function)]

    def _call(self, function: str) -> list[dict[str, Any]]:
        sort = "values" if function.startswith("Verify") else "facts" if function.startswith("QFilter") else "set"
        signature = FUNCTIONS[function]
        needs_predicates = signature.inputs == 1 and sort == "set" and not {"key", "relation"}.isdisjoint(signature.texts)
        if self.has and needs_predicates:
            sort = "more"
        sets: dict[str, Any] = {name: {"$ref": f"#/$defs/{sort}"} for name in ("of", "with")[: signature.inputs]}
        result = [object_schema({function: object_schema({**sets, **texts})}) for texts in self._texts(function, self._rules)]
        return [*result, *self._entity_calls(function)] if self.has and needs_predicates else result

    def _entity_calls(self, function: str) -> list[dict[str, Any]]:
        """Return the calls of a function on single entities, restricted to their predicates.

        Entities with the same predicates are combined.
        """
        groups: dict[str, tuple[dict[str, Any], list[str]]] = {}
        other_rules = {rule: listed_names for rule, listed_names in self._rules.items() if rule.partition("-")[0] != "key"}
        for name, predicates in self.has.items():
            keys = {key: self._names.keys[key] for key in predicates["value"] if key in self._names.keys}
            choices: list[tuple[dict[str, Sequence[str]], dict[str, Any]]] = [({**other_rules, **_by_types("key", keys)}, {})]
            if function == "Relate":
                choices = [
                    (
                        {"relation": [item for item in predicates[direction] if item in self._names.relations]},
                        {"direction": {"enum": [direction]}},
                    )
                    for direction in CLOSED["direction"]
                ]
            for rules, fixed in choices:
                for texts in self._texts(function, rules):
                    groups.setdefault(json.dumps({**texts, **fixed}), ({**texts, **fixed}, []))[1].append(name)
        return [
            object_schema(
                {function: object_schema({"of": object_schema({"Find": object_schema({"name": self._listed(names)})}), **texts})}
            )
            for texts, names in groups.values()
        ]

    def _texts(self, function: str, rules: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
        """Return the possible texts of a function, given the names of each rule; nothing if a needed rule has none."""
        kind, literal = _compared(function)
        deciding = {"QueryAttrQualifier": "key", "QueryAttrUnderCondition": "qkey"}.get(function)
        choices = [(literal, {role: f"{role}-{kind}" if kind and role in ("key", "qkey") else role for role in ("key", "qkey")})]
        if deciding is not None:
            # Key and value are one choice: the types of the key's values determine the value.
            prefix = f"{deciding}-of-"
            choices = [
                (rule.removeprefix(prefix), {"key": "key", "qkey": "qkey", deciding: rule})
                for rule in rules
                if rule.startswith(prefix)
            ]
        result = [
            {role: self._text(role, rules.get(lists.get(role, role), ()), literal) for role in FUNCTIONS[function].texts}
            for literal, lists in choices
        ]
        return [item for item in result if None not in item.values()]

    def _text(self, role: str, names: Sequence[str], literal: str) -> dict[str, Any] | None:
        if role in CLOSED:
            return {"enum": list(CLOSED[role])}
        if role in ("value", "qvalue"):
            pattern = r"\S[^\x00-\x1f]{0,199}" if literal == "text" else self._patterns[literal]
            return {"type": "string", "pattern": f"^{pattern}$"}
        return self._listed(names) if names else None

    def _listed(self, names: Sequence[str]) -> dict[str, Any]:
        """Return a reference to a list of names, which is defined once."""
        for rule, known_names in self._rules.items():
            if known_names is names:
                return {"$ref": f"#/$defs/{rule}"}
        rule = f"names-{self._numbers.setdefault(tuple(names), len(self._numbers))}"
        self.enums[rule] = {"enum": list(names)}
        return {"$ref": f"#/$defs/{rule}"}


def program(text: str) -> str:
    """Return the program of a tree as text, empty for null; raises `ParseError` for other texts."""
    tree = tree_in(text, "program")
    return "" if tree is None else " ".join(_steps(tree, 0))


def _steps(tree: Any, depth: int) -> list[str]:
    function, arguments = single(tree)
    if function not in FUNCTIONS or not isinstance(arguments, dict):
        raise ParseError(f"a call of a function is expected, not {shortened(repr(tree), 100)}")
    if depth > _MAX_DEPTH:
        raise ParseError("the program is nested too deeply")
    signature = FUNCTIONS[function]
    steps = [step for name in ("of", "with")[: signature.inputs] for step in _steps(arguments.get(name), depth + 1)]
    texts = [text for role in signature.texts if isinstance(text := arguments.get(role), str)]
    if len(texts) < len(signature.texts):
        raise ParseError(f"{function} takes texts: {', '.join(signature.texts)}")
    return [*steps, f"{function}({', '.join(map(quoted, texts))})"]
