"""Tests of values as SQL, on the columns of a statement's object or of a qualifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition
from condgraph.engine.algebra.tables import ConditionTable, by_type
from condgraph.engine.errors import PlanError
from condgraph.engine.values import OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Kind, Quantity, Time, as_float, tie_break
from condgraph.sql.terms import both, case, coalesce, column, double, either, known, literal, one_of

#: Returns the query of a set of entities.
Set = Callable[[alg.Entities], exp.Query]

_COMPARED: Final[dict[str, type[exp.Binary]]] = {
    "=": exp.EQ, "!=": exp.NEQ, "<": exp.LT, ">": exp.GT, "<=": exp.LTE, ">=": exp.GTE,
}  # fmt: skip


def compared(operator: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return _COMPARED[operator](this=left, expression=right)


class Tests:
    """Shared state of the tests in one query: whether all numbers of the graph are exact as floats, and its sets."""

    def __init__(self, exact: bool, entities: Set) -> None:
        self.exact, self.entities = exact, entities


def supports(test: Condition) -> bool:
    """Tell whether a test is SQL: tests with values of another step are not."""
    return _BY_TYPE.get(type(test)) is not None and all(map(supports, test.parts()))


def condition(tests: Tests, test: Condition, table: str) -> exp.Expr:
    """Return a test of the value in the columns of a table."""
    result: exp.Expr = _BY_TYPE[type(test)](tests, test, table)
    return result


def _compare(tests: Tests, test: alg.Compare, table: str) -> exp.Expr:
    value, kind = test.value, column("kind", table)
    if isinstance(value, Time):
        return both([_is(kind, Kind.TIME), time_test(test.operator, value, table)])
    if isinstance(value, Quantity):
        number, exact = as_float(value)
        unit = exp.EQ(this=column("unit", table), expression=literal(value.unit))
        number_column, constant = column("number", table), double(number)
        if exact and tests.exact:
            return both([_is(kind, Kind.QUANTITY), unit, compared(test.operator, number_column, constant)])
        tie = coalesce(column("tie", table), literal("1"))
        return both(
            [_is(kind, Kind.QUANTITY), unit, exactly(test.operator, number_column, tie, constant, literal(tie_break(value.number)))]
        )
    if not isinstance(value, str):
        raise PlanError("an unknown value cannot be compared")
    text = compared(test.operator, column("text", table), literal(value))
    return both([one_of(kind, [int(Kind.TEXT), int(Kind.ENTITY)]), text])


def _is(kind: exp.Expr, wanted: Kind) -> exp.Expr:
    return exp.EQ(this=kind, expression=literal(int(wanted)))


def exactly(operator: str, own: exp.Expr, tie: exp.Expr, number: exp.Expr, order: exp.Expr) -> exp.Expr:
    """Compare numbers as they were written: where two are the same float, `order` breaks the tie."""
    same = exp.EQ(this=own, expression=number)
    if operator == "=":
        return both([same, exp.EQ(this=tie, expression=order)])
    strict = "!=" if operator == "!=" else operator[0]
    return either([compared(strict, own, number), both([same, compared(operator, tie, order)])])


def time_test(operator: str, value: Time, table: str) -> exp.Expr:
    """Compare intervals: `=` is within, `!=` is disjoint, `<` ends before, `>` begins after."""
    first, last = column("start", table), column("stop", table)
    low, high = literal(value.start), literal(value.end)
    if operator == "=":
        return both([compared(">=", first, low), compared("<=", last, high)])
    if operator == "!=":
        return either([compared("<=", last, low), compared(">=", first, high)])
    return {
        "<": compared("<=", last, low),
        ">": compared(">=", first, high),
        "<=": compared("<=", last, high),
        ">=": compared(">=", first, low),
    }[operator]


def _any_of(tests: Tests, test: alg.AnyOf, table: str) -> exp.Expr:
    return either(condition(tests, part, table) for part in test.conditions)


def _all_of(tests: Tests, test: alg.AllOf, table: str) -> exp.Expr:
    return both(condition(tests, part, table) for part in test.conditions)


def _not(tests: Tests, test: alg.Not, table: str) -> exp.Expr:
    return exp.not_(coalesce(condition(tests, test.condition, table), exp.false()))


def _among(tests: Tests, test: alg.Among, table: str) -> exp.Expr:
    own = exp.In(this=column("o", table), query=exp.Subquery(this=tests.entities(test.entities)))
    return both([_is(column("kind", table), Kind.ENTITY), own])


#: Compile functions by test; None where the client computes it.
CONDITIONS: Final[ConditionTable[Tests, [str], exp.Expr]] = {
    "Compare": _compare,
    "AnyOf": _any_of,
    "AllOf": _all_of,
    "Among": _among,
    "Equals": None,
    "Versus": None,
    "Not": _not,
}
_BY_TYPE: Final[dict[type, Any]] = dict(by_type(CONDITIONS))


def span_test(relation: alg.Span, since: exp.Expr, until: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    """Relate the validity of a statement to an interval, both in seconds; an unknown bound is taken at its least favourable."""
    no_start = exp.EQ(this=since, expression=literal(UNKNOWN_START))
    no_end = exp.EQ(this=until, expression=literal(UNKNOWN_END))
    first, last = literal(OPEN_START), literal(OPEN_END)
    if relation in ("may", "must"):
        # A statement without a validity holds at any time.
        holds = [compared("<", since, high), compared(">", until, low)]
        if relation == "must":
            holds = [compared(">", since, first), compared("<", until, literal(UNKNOWN_END))]
            holds += [compared("<=", since, low), compared(">=", until, high)]
        return either([exp.not_(known(since)), both(holds)])
    earliest_start = case([(no_start, first)], since)
    latest_end = case([(no_end, last)], until)
    if relation == "overlaps":
        has_start, has_end = exp.not_(no_start), exp.not_(no_end)
        test = either(
            [
                both([has_start, compared(">=", since, low), compared("<", since, high)]),
                both([has_end, compared(">", until, low), compared("<=", until, high)]),
                both([has_start, has_end, compared("<", since, high), compared(">", until, low)]),
            ]
        )
    elif relation == "contains":
        latest_start = case([(exp.not_(no_start), since), (exp.not_(no_end), until)], last)
        earliest_end = case([(exp.not_(no_end), until), (exp.not_(no_start), since)], first)
        test = both([compared("<=", latest_start, low), compared(">=", earliest_end, high)])
    else:
        test = {
            "disjoint": either([compared("<=", latest_end, low), compared(">=", earliest_start, high)]),
            "within": both([compared(">=", earliest_start, low), compared("<=", latest_end, high)]),
            "before": compared("<=", latest_end, low),
            "after": compared(">=", earliest_start, high),
            "until": compared("<=", latest_end, high),
            "from": compared(">=", earliest_start, low),
        }[relation]
    return both([known(since), test])
