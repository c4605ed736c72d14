"""Expressions of SPARQL in Cypher, where both mean the same: of every operand it is known what it is
(`Sort`), so that neither tests a type when it runs. An error of SPARQL is null in Cypher, and both
go through "and", "or" and "not" in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Literal, TypeAlias

from condgraph.engine.iris import XSD
from condgraph.languages.sparql.syntax import Aggregate, Call, Exists, Expression, Iri, Lit, Var, beyond
from condgraph.live.vocabulary import Vocabulary

#: What an expression is: a node or concept (an IRI), the node of a value of a kind, or a literal.
Sort: TypeAlias = Literal[
    "node", "concept", "value:text", "value:number", "value:boolean", "value:day", "text", "number", "integer", "date", "boolean"
]
NUMERIC: Final = ("number", "integer")
_COMPARED: Final = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TEXTS: Final = {"CONTAINS": "CONTAINS", "STRSTARTS": "STARTS WITH", "STRENDS": "ENDS WITH"}
_KNOWN: Final = frozenset((*_TEXTS, "+", "-", "*", "YEAR", "STR", "LCASE", "UCASE"))
_PLAIN: Final = re.compile(r"(\^?)((?:[^.\[\]{}()*+?|\\^$]|\\[.\[\]{}()*+?|\\^$/-])*)(\$?)").fullmatch
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d").fullmatch
#: The largest whole number below which every one is a double.
_WHOLE: Final = 2**53


@dataclass(frozen=True, slots=True)
class Bound:
    """A variable that is bound: what it is, as which expression, and whether it is in every row."""

    sort: Sort
    text: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Made:
    """An expression in Cypher. `certain`: it is never null."""

    text: str
    sort: Sort
    certain: bool


class Expressions:
    """Says expressions in the scope of some variables. `parameter` keeps a value, `ids` says the id of
    a node; `known` are aggregates and EXISTS that clauses before have bound.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        parameter: Callable[[Any], str],
        ids: Callable[[str], str],
        scope: Mapping[Var, Bound],
        known: Mapping[Expression, Made],
    ) -> None:
        self._vocabulary, self._parameter, self._ids, self._scope, self._known = vocabulary, parameter, ids, scope, known

    def condition(self, expression: Expression) -> str:
        """A filter."""
        made = self.made(expression)
        if made.sort != "boolean":
            raise beyond("a filter that is no comparison", "compare it with something")
        return made.text

    def made(self, expression: Expression) -> Made:
        """Any expression."""
        if expression in self._known:
            return self._known[expression]
        if isinstance(expression, Var):
            bound = self._scope.get(expression)
            if bound is None:
                raise beyond(f"?{expression.name}, which nothing binds here")
            return Made(bound.text, bound.sort, bound.certain)
        if isinstance(expression, Lit):
            return self.constant(expression)
        if isinstance(expression, Iri):
            raise beyond(f"<{expression.iri}> in an expression", "= and != compare it with a variable")
        if isinstance(expression, Aggregate | Exists):
            raise beyond("an aggregate or EXISTS here")
        return self._called(expression)

    def constant(self, found: Lit) -> Made:
        """A literal."""
        kind = found.datatype.removeprefix(XSD)
        if found.language:
            raise beyond(f"a text with a language (@{found.language})", "texts of the database have none")
        if kind == "string":
            return Made(self._parameter(found.text), "text", True)
        if kind == "boolean":
            return Made("true" if found.text in ("true", "1") else "false", "boolean", True)
        if kind == "date" and _DAY(found.text):
            try:
                return Made(self._parameter(date.fromisoformat(found.text)), "date", True)
            except ValueError:
                raise beyond(f"the date {found.text!r}") from None
        if kind in ("integer", "decimal", "double"):
            number = float(found.text)
            if kind == "integer" and abs(number) > _WHOLE:
                raise beyond(f"the number {found.text}, which is no double")
            return Made(self._parameter(number), "number", True)
        raise beyond(f"a literal of <{found.datatype}>")

    def _called(self, call: Call) -> Made:
        name, arguments = call.name, call.arguments
        if name in ("&&", "||", "!"):
            parts = [self.condition(one) for one in arguments]
            text = f"NOT ({parts[0]})" if name == "!" else f"({parts[0]}) {'AND' if name == '&&' else 'OR'} ({parts[1]})"
            return Made(text, "boolean", False)
        if name in _COMPARED:
            return self._compared(name, *arguments)
        if name == "IN":
            tests = [self._compared("=", arguments[0], one).text for one in arguments[1:]]
            return Made(" OR ".join(f"({test})" for test in tests) or "false", "boolean", False)
        if name == "BOUND":
            if not isinstance(arguments[0], Var):
                raise beyond("BOUND of something else than a variable")
            return Made(f"{self.made(arguments[0]).text} IS NOT NULL", "boolean", True)
        if name == "REGEX":
            return self._regex(*arguments)
        if name not in _KNOWN:
            raise beyond(f"{'division' if name == '/' else f'the function {name}'}, live", "the replica (without --live) has it")
        made = [self.made(one) for one in arguments]
        certain = all(one.certain for one in made)
        if name in ("+", "-", "*"):
            # What is worked out has a number of the database in it, too, and so is a double.
            if any(one.sort != "number" for one in made) or not any(isinstance(one, Var | Call) for one in arguments):
                raise beyond(f"{name} of what is no number of the database")
            return Made(f"({made[0].text} {name} {made[1].text})", "number", certain)
        if name == "YEAR":
            if made[0].sort != "date":
                raise beyond("YEAR of what is no date")
            return Made(f"{made[0].text}.year", "integer", certain)
        if any(one.sort != "text" for one in made):
            raise beyond(f"{name} of what is no text", "<pred:value> and <pred:name> lead to texts")
        if name in _TEXTS:
            return Made(f"{made[0].text} {_TEXTS[name]} {made[1].text}", "boolean", certain)
        if name == "STR":
            return made[0]
        return Made(f"{'toLower' if name == 'LCASE' else 'toUpper'}({made[0].text})", "text", certain)

    def _compared(self, name: str, left: Expression, right: Expression) -> Made:
        if isinstance(left, Iri):
            left, right = right, left
            if name not in ("=", "!="):
                raise beyond("the order of IRIs")
        if isinstance(right, Iri):
            return Made(f" {_COMPARED[name]} ".join(self._identities(self.made(left), right)), "boolean", False)
        one, two = self.made(left), self.made(right)
        text = f"{one.text} {_COMPARED[name]} {two.text}"
        if one.sort in NUMERIC and two.sort in NUMERIC:
            return Made(text, "boolean", False)
        if one.sort != two.sort:
            raise beyond(f"a comparison of {_called(one.sort)} with {_called(two.sort)}")
        if name not in ("=", "!=") and one.sort != "date":
            raise beyond(f"the order of {_called(one.sort)}s in a filter")
        return Made(text, "boolean", False)

    def _identities(self, left: Made, right: Iri) -> tuple[str, str]:
        if left.sort == "node":
            return self._ids(left.text), self._parameter(self._vocabulary.entity(right))
        if left.sort == "concept":
            return left.text, self._parameter(self._vocabulary.label(right))
        raise beyond(f"a comparison of {_called(left.sort)} with an IRI")

    def _regex(self, text: Expression, pattern: Expression, flags: Expression | None = None) -> Made:
        made = self.made(text)
        if flags is not None:
            raise beyond("REGEX with flags, live", "LCASE of the text says the same as the flag i")
        found = _PLAIN(pattern.text) if isinstance(pattern, Lit) and pattern.datatype == f"{XSD}string" else None
        if made.sort != "text" or found is None:
            raise beyond("REGEX with more than plain characters, ^ and $", "CONTAINS and STRSTARTS say most of it")
        begins, body, ends = found.groups()
        word = self._parameter(re.sub(r"\\(.)", r"\1", body))
        sign = "=" if begins and ends else "STARTS WITH" if begins else "ENDS WITH" if ends else "CONTAINS"
        return Made(f"{made.text} {sign} {word}", "boolean", made.certain)


def _called(sort: Sort) -> str:
    """A sort in words."""
    return {"node": "an entity", "concept": "a concept", "integer": "a whole number"}.get(
        sort, "a value" if sort.startswith("value:") else f"a {sort}"
    )
