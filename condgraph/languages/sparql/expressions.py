"""Expressions of SPARQL over rows. An error of SPARQL is null here, and both go through "and", "or" and
"not" in the same way. A number of a value is a double, as its node says it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from condgraph.engine import temporal
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.errors import LiteralError
from condgraph.engine.iris import XSD
from condgraph.languages.sparql.patterns import NODES, Names, Sort, an
from condgraph.languages.sparql.syntax import Aggregate, Call, Exists, Expression, Iri, Lit, Var, beyond

_NUMBERS: Final = frozenset(("number", "number or 0", "integer", "literal"))
_COMPARED: Final[dict[str, ex.ComparisonOperator]] = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TESTS: Final[dict[str, ex.TextOperator]] = {"CONTAINS": "contains", "STRSTARTS": "starts with", "STRENDS": "ends with"}
_PARTS: Final = {"YEAR": "year", "MONTH": "month", "DAY": "day"}
_PLAIN: Final = re.compile(r"(\^?)((?:[^.\[\]{}()*+?|\\^$]|\\[.\[\]{}()*+?|\\^$/-])*+)(\$?)").fullmatch
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d").fullmatch


class Typed(NamedTuple):
    """An expression over rows, and what it gives."""

    value: ex.Expression
    sort: Sort


class Expressions:
    """Lowers expressions in the scope of some variables. `known` has aggregates and EXISTS that are
    variables of the rows.
    """

    def __init__(self, names: Names, scope: Mapping[str, Sort], known: Mapping[Expression, Typed]) -> None:
        self._names, self._scope, self._known = names, scope, known

    def condition(self, expression: Expression) -> ex.Expression:
        """A filter: what is no truth value is taken as one, as SPARQL does."""
        found = self.typed(expression)
        if found.sort == "boolean":
            return found.value
        if found.sort in NODES:
            raise beyond(f"a filter that is {an(found.sort)}", "compare it with something")
        if found.sort == "text":
            return ex.Comparison("<>", found.value, ex.Constant(""))
        raise beyond(f"a filter that is {an(found.sort)}", "compare it with something")

    def typed(self, expression: Expression) -> Typed:
        """Any expression."""
        if expression in self._known:
            return self._known[expression]
        if isinstance(expression, Var):
            sort = self._scope.get(expression.name)
            if sort is None:
                # An error wherever it is looked at.
                self._names.warn(f"?{expression.name} is bound by nothing here, so that what is computed from it has no value")
                return Typed(ex.NULL, "literal")
            return Typed(ex.Variable(expression.name), sort)
        if isinstance(expression, Lit):
            return constant(expression)
        if isinstance(expression, Iri):
            raise beyond(f"<{expression.iri}> in an expression", "= and != compare it with a variable")
        if isinstance(expression, Aggregate | Exists):
            raise beyond("an aggregate or EXISTS here")
        return self._call(expression)

    # -- functions ---------------------------------------------------------------------------------

    def _call(self, call: Call) -> Typed:
        name, arguments = call.name, call.arguments
        if name in ("&&", "||", "!"):
            parts = tuple(self.condition(one) for one in arguments)
            return Typed(ex.Not(parts[0]) if name == "!" else ex.And(parts) if name == "&&" else ex.Or(parts), "boolean")
        if name in _COMPARED:
            return Typed(self._compared(name, *arguments), "boolean")
        if name == "SAMETERM":
            return Typed(self._compared("=", *arguments), "boolean")
        if name == "IN":
            tests = tuple(self._compared("=", arguments[0], one) for one in arguments[1:])
            return Typed(ex.Or(tests) if tests else ex.Constant(False), "boolean")
        if name == "BOUND":
            if not isinstance(arguments[0], Var):
                raise beyond("BOUND of something else than a variable")
            sort = self._scope.get(arguments[0].name)
            of_value = sort in ("value", "node")
            if of_value and mark_of(arguments[0].name) not in self._scope:
                raise beyond(f"BOUND of ?{arguments[0].name}, which a SELECT within the query, a group or VALUES gives")
            found = ex.Variable(mark_of(arguments[0].name) if of_value else arguments[0].name)
            return Typed(ex.Constant(False) if sort is None else ex.Not(ex.IsNull(found)), "boolean")
        if name == "REGEX":
            return self._regex(*arguments)
        if name in ("IF", "COALESCE"):
            return self._chosen(name, arguments)
        typed = [self.typed(one) for one in arguments]
        if name in ("+", "-", "*", "/"):
            return self._arithmetic(name, *typed)
        if name in _PARTS:
            if typed[0].sort != "date":
                raise beyond(f"{name} of {an(typed[0].sort)}", "<pred:date> of a time is a date")
            return Typed(ex.Property(typed[0].value, _PARTS[name]), "integer")
        if name in ("ABS", "CEIL", "FLOOR", "ROUND"):
            whole = typed[0].sort == "integer"
            value = typed[0].value if whole else _number(typed[0])
            if name == "ROUND":
                # Halves go up (section 17.4.4.2).
                value = ex.Call("floor", (ex.Arithmetic("+", value, ex.Constant(0.5)),))
            else:
                value = ex.Call(name.lower(), (value,))
            return Typed(value, typed[0].sort if whole else "number")
        return self._of_texts(name, typed)

    def _of_texts(self, name: str, typed: list[Typed]) -> Typed:
        if name in _TESTS:
            return Typed(ex.TextTest(_TESTS[name], _text(typed[0]), _text(typed[1])), "boolean")
        if name == "STR":
            return Typed(_text(typed[0]), "text")
        if name == "STRLEN":
            return Typed(ex.Call("size", (_text(typed[0]),)), "integer")
        if name in ("LCASE", "UCASE"):
            return Typed(ex.Call("tolower" if name == "LCASE" else "toupper", (_text(typed[0]),)), "text")
        if name == "CONCAT":
            value: ex.Expression = ex.Constant("")
            for one in typed:
                value = ex.Arithmetic("+", value, _text(one))
            return Typed(value, "text")
        starts = typed[1].value
        if not isinstance(starts, ex.Constant) or type(starts.value) is not int or starts.value < 1:
            raise beyond("SUBSTR from a place that is no whole number from 1")
        lengths = tuple(one.value for one in typed[2:])
        return Typed(ex.Call("substring", (_text(typed[0]), ex.Constant(starts.value - 1), *lengths)), "text")

    def _chosen(self, name: str, arguments: tuple[Expression, ...]) -> Typed:
        typed = [self.typed(one) for one in (arguments[1:] if name == "IF" else arguments)]
        sort = typed[0].sort
        for one in typed[1:]:
            if one.sort != sort:
                raise beyond(f"{name} of {an(sort)} and {an(one.sort)}")
        if name == "COALESCE":
            return Typed(ex.Call("coalesce", tuple(one.value for one in typed)), sort)
        test = self.condition(arguments[0])
        # Where the test is an error, so is the whole.
        return Typed(ex.Case(((test, typed[0].value), (ex.Not(test), typed[1].value))), sort)

    @staticmethod
    def _arithmetic(name: str, left: Typed, right: Typed) -> Typed:
        operator: ex.ArithmeticOperator = name  # type: ignore[assignment]
        if left.sort == right.sort == "integer":
            if name == "/":
                raise beyond("division of whole numbers, which gives a decimal")
            return Typed(ex.Arithmetic(operator, left.value, right.value), "integer")
        return Typed(ex.Arithmetic(operator, _number(left), _number(right)), "number")

    # -- comparisons -------------------------------------------------------------------------------

    def _compared(self, name: str, left: Expression, right: Expression) -> ex.Expression:
        operator = _COMPARED[name]
        if isinstance(left, Iri):
            left, right = right, left
        if isinstance(right, Iri):
            if operator not in ("=", "<>"):
                raise beyond("the order of IRIs")
            equal = self._is_iri(self.typed(left), right)
            return equal if operator == "=" else ex.Not(equal)
        one, two = self.typed(left), self.typed(right)
        if one.sort in NODES or two.sort in NODES or "predicate" in (one.sort, two.sort):
            return self._nodes(operator, one, two)
        if (one.sort in _NUMBERS and two.sort in _NUMBERS) or one.sort == two.sort or "literal" in (one.sort, two.sort):
            return ex.Comparison(operator, one.value, two.value)
        raise beyond(f"a comparison of {an(one.sort)} with {an(two.sort)}")

    @staticmethod
    def _nodes(operator: ex.ComparisonOperator, one: Typed, two: Typed) -> ex.Expression:
        if operator not in ("=", "<>"):
            raise beyond("the order of IRIs")
        if one.sort != two.sort or one.sort in ("value", "node"):
            raise beyond(f"a comparison of {an(one.sort)} with {an(two.sort)}", "<pred:value> leads to numbers and texts")
        return ex.Comparison(operator, one.value, two.value)

    def _is_iri(self, left: Typed, right: Iri) -> ex.Expression:
        if left.sort == "entity":
            return ex.Comparison("=", ex.Call("elementid", (left.value,)), ex.Constant(self._names.ident(right.iri)))
        if left.sort == "predicate":
            return ex.Comparison("=", left.value, ex.Constant(self._names.predicate(right.iri)))
        raise beyond(f"a comparison of {an(left.sort)} with an IRI")

    def _regex(self, text: Expression, pattern: Expression, flags: Expression | None = None) -> Typed:
        found = _PLAIN(pattern.text) if isinstance(pattern, Lit) and pattern.datatype == f"{XSD}string" else None
        if found is None or (flags is not None and not (isinstance(flags, Lit) and flags.text in ("", "i"))):
            raise beyond("REGEX with more than plain characters, ^, $ and the flag i", "CONTAINS and STRSTARTS say most of it")
        begins, body, ends = found.groups()
        body, value = re.sub(r"\\(.)", r"\1", body), _text(self.typed(text))
        if isinstance(flags, Lit) and flags.text:
            body, value = body.lower(), ex.Call("tolower", (value,))
        if begins and ends:
            return Typed(ex.Comparison("=", value, ex.Constant(body)), "boolean")
        operator: ex.TextOperator = "starts with" if begins else "ends with" if ends else "contains"
        return Typed(ex.TextTest(operator, value, ex.Constant(body)), "boolean")


def mark_of(name: str) -> str:
    """The variable that says whether the node of a value is bound to another one."""
    return f" bound {name}"


def constant(found: Lit) -> Typed:
    """A literal."""
    kind = found.datatype.removeprefix(XSD)
    if found.language:
        raise beyond(f"a text with a language (@{found.language})", "texts of a graph have none")
    try:
        if kind == "string":
            return Typed(ex.Constant(found.text), "text")
        if kind == "boolean" and found.text in ("true", "1", "false", "0"):
            return Typed(ex.Constant(found.text in ("true", "1")), "boolean")
        if kind == "date" and _DAY(found.text):
            return Typed(ex.Constant(temporal.date(found.text)), "date")
        if kind == "integer":
            return Typed(ex.Constant(int(found.text)), "integer")
        if kind in ("decimal", "double", "float") and math.isfinite(float(found.text)):
            return Typed(ex.Constant(float(found.text)), "number")
    except (ValueError, LiteralError):
        pass
    raise beyond(f"the literal {found.text!r} of <{found.datatype}>")


def _text(typed: Typed) -> ex.Expression:
    """An expression as a text; null where it is none."""
    if typed.sort == "text":
        return typed.value
    if typed.sort != "literal":
        raise beyond(f"{an(typed.sort)} where a text stands", "<pred:value> and <pred:name> lead to texts")
    return ex.Case(((ex.TextTest("contains", typed.value, ex.Constant("")), typed.value),))


def _number(typed: Typed) -> ex.Expression:
    """An expression as a double; null where it is no number."""
    if typed.sort not in _NUMBERS:
        raise beyond(f"{an(typed.sort)} where a number stands", "<pred:value> leads to numbers")
    if isinstance(typed.value, ex.Constant) and typed.value.value is not None:
        return ex.Constant(float(typed.value.value))
    if typed.sort == "literal":
        return ex.Case(
            ((ex.IsNull(ex.Comparison("<=", typed.value, ex.Constant(0))), ex.NULL),), ex.Call("tofloat", (typed.value,))
        )
    return ex.Call("tofloat", (typed.value,))
