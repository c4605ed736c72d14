"""LLM queries for servers that take a JSON schema: the last query as a tree, in which each call holds
those that it takes; and from a tree back to numbered lines.

`{"program": {"count": {"set": {"get_information": {"relation": "country", "head_entity": null,
"tail_entity": {"is": "=", "value": "Italy"}}}}}}` is

    Query1: "get_information(relation='country', tail_entity='Italy')"
    Query2: "count(set='output_of_query1')"

A tree refers to no number, so that nothing can refer to a query that is not there. What stands in
it twice is one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from condgraph.engine.errors import ParseError, shortened
from condgraph.grammars.forms import regex
from condgraph.grammars.llm_query import (
    ALL_OPERATORS,
    OF_ROWS,
    OF_VALUES,
    ONE,
    SAME_OPERATORS,
    TWO,
    WITH_ENTITY,
    WITH_NUMBER,
    Made,
)
from condgraph.grammars.llm_texts import writable, written
from condgraph.grammars.vocabulary import Vocabulary
from condgraph.languages.llm.functions import FUNCTIONS

#: What a model is told that writes programs as trees.
TOLD: Final = (
    "The program is written as JSON: the last call, which holds the calls whose results it takes in place of output_of_query1 and "
    'so on; conditions are {"is": ">", "value": ...}, a qualifier is {"key": ..., "value": ...}, and what is not given is null. '
    'Such as: {"program": {"count": {"set": {"get_information": {"relation": "country", "head_entity": null, "tail_entity": '
    '{"is": "=", "value": "Italy"}}}}}}; where nothing answers, {"program": null}.'
)
#: Calls within calls of the deepest tree that is read, and lines of the longest program.
_DEEPEST: Final = 100
_LINES: Final = 200
#: Texts that are values: no digit stands behind a y, so that none is an output of a query.
_LETTER: Final = r"(?:[^{first}\x7f-\xa0\\yY]|[yY][^\x00-\x1f\x7f-\xa0\\0-9_])"
_TEXT: Final = _LETTER.replace("{first}", r"\x00-\x20") + _LETTER.replace("{first}", r"\x00-\x1f") + "{0,99}"
_NULL: Final = {"type": "null"}
#: The operators of a condition, by how many there are.
_OPERATORS: Final = {1: {"enum": ["="]}, 2: {"$ref": "#/$defs/same"}, 6: {"$ref": "#/$defs/operator"}}
_RESULT: Final = {"$ref": "#/$defs/result"}
_WORDS: Final = ("yes", "no", "equal")
_SUMS: Final = ("sum", "mean", "max", "min")


def schema(names: Vocabulary, *, none: bool = False) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of programs over these names; with `none`, null is one. Raises
    `OptionError` where none can be written.
    """
    # A tree has texts as they are; they are put in quotes as it is read.
    made = _Schema(Made.of(names, str))
    nothing = [_NULL] if none else []
    program = {"anyOf": [_RESULT, *made.tables(), *nothing]}
    return {**_object({"program": program}), "$defs": made.definitions}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}


def _call(function: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    return _object({function: _object(properties)})


class _Schema:
    """Makes the definitions, as `llm_query` makes rules."""

    def __init__(self, made: Made) -> None:
        self.made, self.names = made, made.names
        self._listed: dict[tuple[str, ...], int] = {}
        self.definitions: dict[str, Any] = {
            "operator": {"enum": list(ALL_OPERATORS)},
            "same": {"enum": list(SAME_OPERATORS)},
            "extreme": {"enum": ["highest", "lowest"]},
            "extreme-time": {"enum": ["earliest", "latest"]},
        }
        entities = [name for name in self.names.entities if writable(name)]
        if entities:
            self.definitions["entity"] = {"enum": entities}
        for number, members in enumerate(made.groups.values()):
            self.definitions[f"relation-{number}"] = {"enum": list(members)}
        searches = [self._search(number) for number in range(len(made.groups))]
        if entities and made.anywhere:
            entity = {"$ref": "#/$defs/entity"}
            searches.append(_call("get_information", {"head_entity": entity, "tail_entity": {"anyOf": [entity, _NULL]}}))
            searches.append(_call("get_information", {"head_entity": _RESULT, "tail_entity": {"anyOf": [entity, _NULL]}}))
            if made.times:
                key = _object({"key": self._names(made.times), "value": _NULL})
                searches.append(_call("get_information", {"head_entity": {"anyOf": [entity, _RESULT]}, "qualifier": key}))
            searches.append(_call("get_information", {"head_entity": _NULL, "tail_entity": entity}))
        self.definitions["number"] = {"type": "string", "pattern": f"^{self._pattern('plain-number')}$"}
        self.definitions["result"] = {"anyOf": [*searches, *self._functions()]}

    def _pattern(self, rule: str) -> str:
        return regex({**self.made.found, "root": self.made.found[rule]})

    def _ends(self) -> dict[str, Any]:
        entity = [{"$ref": "#/$defs/entity"}] if "entity" in self.definitions else []
        return {"anyOf": [*entity, _RESULT, _NULL]}

    def _literal(self, rule: str) -> dict[str, Any]:
        if rule not in self.definitions:
            pattern = _TEXT if rule == "text" else self._pattern(rule)
            self.definitions[rule] = {"type": "string", "pattern": f"^{pattern}$"}
        return {"$ref": f"#/$defs/{rule}"}

    # -- get_information ---------------------------------------------------------------------------

    def _search(self, number: int, *, head: bool = True, tail: bool = True, key: bool = True, rows: bool = False) -> dict[str, Any]:
        name = f"search-{number}{'' if head else '-of-rows'}{'' if tail else '-of-values'}{'' if key else '-alone'}"
        name += "-in-a-table" if rows else ""
        if name not in self.definitions:
            given = self._given(number, head=head, tail=tail, rows=rows)
            if key and (keys := list(self.made.groups)[number].keys):
                given["qualifier"] = {"anyOf": [*self._keys(keys), _NULL]}
            self.definitions[name] = _call("get_information", given)
        return {"$ref": f"#/$defs/{name}"}

    def _given(self, number: int, *, head: bool, tail: bool, rows: bool = False) -> dict[str, Any]:
        group = list(self.made.groups)[number]
        given: dict[str, Any] = {"relation": {"$ref": f"#/$defs/relation-{number}"}}
        given["head_entity"] = self._ends() if head else _NULL
        given["tail_entity"] = {"anyOf": [*(self._conditions(number) if tail else []), _NULL]}
        if sources := [one for one in group.scopes(rows=rows) if writable(one)]:
            given["source"] = self._names(sources)
        return given

    def _names(self, names: Sequence[str]) -> dict[str, Any]:
        """Some names, listed once."""
        rule = f"names-{self._listed.setdefault(tuple(names), len(self._listed))}"
        self.definitions[rule] = {"enum": list(names)}
        return {"$ref": f"#/$defs/{rule}"}

    def _conditions(self, number: int) -> list[dict[str, Any]]:
        group = list(self.made.groups)[number]
        found = []
        same: list[dict[str, Any]] = [{"$ref": "#/$defs/entity"}] if group.things and "entity" in self.definitions else []
        if group.objects and group.objects != "text":
            found.append(_condition(ALL_OPERATORS, [self._literal(group.objects), _RESULT]))
            found.append(_condition(("=",), [{"$ref": f"#/$defs/{'extreme-time' if group.objects == 'moment' else 'extreme'}"}]))
        else:
            same += [*([self._literal("text")] if group.objects else []), _RESULT]
        return [*found, *([_condition(SAME_OPERATORS, same)] if same else [])]

    def _keys(self, keys: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
        of: dict[str, list[str]] = {}
        for key, literal in keys:
            of.setdefault(literal, []).append(key)
        found = []
        for literal, those in of.items():
            operators = SAME_OPERATORS if literal == "text" else ALL_OPERATORS
            values = [_condition(operators, [self._literal(literal), _RESULT])]
            values += [_condition(("=",), [{"$ref": "#/$defs/extreme-time"}])] if literal == "when" else []
            found.append(_object({"key": self._names(those), "value": {"anyOf": [*values, _NULL]}}))
        return found

    # -- functions ---------------------------------------------------------------------------------

    def _functions(self) -> list[dict[str, Any]]:
        number, entity = {"$ref": "#/$defs/number"}, {"$ref": "#/$defs/entity"}
        operators = _OPERATORS[len(ALL_OPERATORS)]
        found = [_call(one, {"set": _RESULT}) for one in ONE]
        for two in TWO:
            others = [_RESULT, *([number] if two in WITH_NUMBER else [])]
            others += [entity] if two in WITH_ENTITY and "entity" in self.definitions else []
            given: dict[str, Any] = {"set1": _RESULT, "set2": {"anyOf": others}}
            found.append(_call(two, given))
        found.append(_call("compare", {"set1": _RESULT, "set2": _RESULT, "operator": operators}))
        found += [
            _call(one, {"set1": _RESULT, "set2": _RESULT, "unit": {"enum": ["years", "months", "days"]}})
            for one in ("difference", "duration")
        ]
        found.append(_call("keep", {"set": _RESULT, "value": _condition(ALL_OPERATORS, [_RESULT])}))
        found += self._kept()
        found.append(_call("sort", {"set": _RESULT, "order": {"enum": ["ascending", "descending"]}}))
        found.append(_call("round", {"set": _RESULT, "digits": {"enum": list("0123456789")}}))
        side = {"anyOf": [_RESULT, {"enum": list(_WORDS)}]}
        test = {"left": _RESULT, "is": operators, "right": {"anyOf": [_RESULT, number]}}
        found.append(_call("if", {**test, "then": side, "else": side}))
        groups = list(self.made.groups)
        self.definitions["subjects"] = {"anyOf": [self._search(at, head=False, key=False) for at in range(len(groups))]}
        found.append(_call("set_negation", {"set": {"$ref": "#/$defs/subjects"}}))
        if rows := [self._search(at, head=False, key=False, rows=True) for at, group in enumerate(groups) if group.tables]:
            self.definitions["rows"] = {"anyOf": rows}
            found += [_call(one, {"set": {"$ref": "#/$defs/rows"}}) for one in OF_ROWS]
        compared = [at for at, group in enumerate(groups) if group.objects not in ("", "text")]
        if compared:
            self.definitions["values"] = {"anyOf": [self._search(at, tail=False, key=False) for at in compared]}
            values = {"$ref": "#/$defs/values"}
            found += [_call(one, {"set": values}) for one in OF_VALUES]
            found.append(_call("nth_highest", {"set": values, "n": {"$ref": "#/$defs/few"}}))
        self.definitions["few"] = {"type": "string", "pattern": "^[1-9][0-9]?$"}
        return found

    def _kept(self) -> list[dict[str, Any]]:
        """Values, and times of facts, that satisfy a condition."""
        found = []
        for at, group in enumerate(self.made.groups):
            if group.objects:
                operators = SAME_OPERATORS if group.objects == "text" else ALL_OPERATORS
                test = _condition(operators, [self._literal(group.objects)])
                found.append(_call("keep", {"set": self._search(at, tail=False, key=False), "value": test}))
            if times := [key for key, literal in group.keys if literal == "when"]:
                key = _object({"key": self._names(times), "value": _NULL})
                search = _call("get_information", {**self._given(at, head=True, tail=False), "qualifier": key})
                found.append(_call("keep", {"set": search, "value": _condition(ALL_OPERATORS, [self._literal("when")])}))
        return found

    def tables(self) -> list[dict[str, Any]]:
        """Tables of groups, which end a program."""
        found = []
        for numbers in self.made.tables().values():
            rows = {"anyOf": [self._search(at, head=False, key=False) for at in numbers]}
            key = {"anyOf": [{"$ref": f"#/$defs/relation-{at}"} for at in numbers]}
            found.append(_call("group_by", {"set": rows, "key": key, "aggregate": {"enum": ["count"]}}))
            found.append(_call("order_by", {"set": rows, "key": key}))
            if numeric := self.made.summed(numbers):
                of = {"anyOf": [{"$ref": f"#/$defs/relation-{at}"} for at in numeric]}
                found.append(_call("group_by", {"set": rows, "key": key, "aggregate": {"enum": list(_SUMS)}, "of": of}))
                few = {"$ref": "#/$defs/few"}
                found += [_call(one, {"set": rows, "key": of, "n": few}) for one in ("top", "bottom")]
        return found


def _condition(operators: Sequence[str], values: list[dict[str, Any]]) -> dict[str, Any]:
    return _object({"is": _OPERATORS[len(operators)], "value": values[0] if len(values) == 1 else {"anyOf": values}})


# -- back to text ----------------------------------------------------------------------------------


def program(text: str) -> str:
    """The program of a tree, as numbered lines, empty for null; raises `ParseError` for what is no
    tree.
    """
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        raise ParseError("the program is not well-formed JSON") from None
    if not isinstance(tree, dict) or "program" not in tree:
        raise ParseError('a program as a tree is an object with "program"')
    if tree["program"] is None:
        return ""
    lines = _Lines()
    lines.line(tree["program"], 0)
    return "\n".join(f'Query{number}: "{call}"' for call, number in lines.numbers.items())


class _Lines:
    """The lines of a tree, each call once, those before it first."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def line(self, tree: Any, depth: int) -> str:
        """The name of what a call gives."""
        function, given = next(iter(tree.items())) if isinstance(tree, dict) and len(tree) == 1 else ("", None)
        if function not in FUNCTIONS or not isinstance(given, dict):
            raise ParseError(f"a call of a function is expected, not {shortened(repr(tree), 100)}")
        if depth > _DEEPEST or len(self.numbers) >= _LINES:
            raise ParseError("the program is too long, or nested too deeply")
        if function == "if":
            call = self._test(given, depth)
        else:
            call = f"{function}({', '.join(part for name, value in given.items() for part in self._argument(name, value, depth))})"
        return f"output_of_query{self.numbers.setdefault(call, len(self.numbers) + 1)}"

    def _text(self, value: Any, depth: int) -> str:
        if not isinstance(value, str):
            return self.line(value, depth + 1)
        if not writable(value):
            raise ParseError(f"{shortened(repr(value), 100)} is no text that stands in quotes")
        return written(value)

    def _argument(self, name: str, value: Any, depth: int) -> list[str]:
        """An argument as it is written; none for null."""
        if value is None:
            return []
        if name == "qualifier" and isinstance(value, dict):
            return [part for one in ("key", "value") for part in self._argument(one, value.get(one), depth)]
        if isinstance(value, dict) and value.keys() == {"is", "value"}:
            if value["is"] not in ALL_OPERATORS:
                raise ParseError(f"a condition has one of {' '.join(ALL_OPERATORS)}, not {shortened(repr(value['is']), 100)}")
            return [f"{name}{value['is']}'{self._text(value['value'], depth)}'"]
        return [f"{name}='{self._text(value, depth)}'"]

    def _test(self, given: Mapping[str, Any], depth: int) -> str:
        operator, right = given.get("is"), given.get("right")
        if operator not in ALL_OPERATORS:
            raise ParseError("if compares by an operator")
        left = self._text(given.get("left"), depth)
        sides = [f"'{self._text(given.get(name), depth)}'" for name in ("then", "else")]
        return f"if({left} {operator} {self._text(right, depth)}, {', '.join(sides)})"
