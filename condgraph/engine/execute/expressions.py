"""Evaluation of expressions over rows (`algebra.expressions`) in process: each is compiled once to a closure that
takes the terms of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from condgraph.engine import temporal
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.bounds import watched
from condgraph.engine.errors import PlanError
from condgraph.engine.execute.functions import (
    ARITHMETIC,
    FUNCTIONS,
    GRAPH_FUNCTIONS,
    NUMBERS,
    TEXT_TESTS,
    compare,
    equal,
    integer_of,
    no_operator,
)
from condgraph.engine.execute.terms import GraphTerms
from condgraph.engine.values import Quantity

#: A compiled expression: a function from the terms of a row to a value.
Evaluator: TypeAlias = Callable[[Sequence[Any]], Any]

#: The number of steps of loops over lists between two checks of the deadline.
_SOME: Final = 4096
#: The largest length of a list whose items are compared one by one.
_MAX_LINEAR: Final = 8


# -- Compilation -------------------------------------------------------------------------------------


class Compiler:
    """Compiles the expressions of one operator; `places` maps variables to positions in a row."""

    def __init__(self, places: Mapping[str, int], graph: GraphTerms) -> None:
        self._positions = dict(places)
        self._width = max(self._positions.values(), default=-1) + 1
        self._graph = graph

    def __call__(self, expression: ex.Expression) -> Evaluator:
        """Return the closure of an expression; raise `PlanError` if it is not an expression over a row."""
        build: Any = _BUILD.get(type(expression))
        if build is None:
            raise PlanError(f"{type(expression).__name__} is not an expression over one row")
        result: Evaluator = build(self, expression)
        return result

    def _variable(self, e: ex.Variable) -> Evaluator:
        place = self._positions.get(e.name)
        if place is None:
            return lambda row: None
        return lambda row: row[place]

    def _constant(self, e: ex.Constant) -> Evaluator:
        value = e.value
        return lambda row: value

    def _property(self, e: ex.Property) -> Evaluator:
        of, key, graph = self(e.of), e.key, self._graph.at(e.period)
        return lambda row: graph.value(of(row), key)

    def _has_concept(self, e: ex.HasConcept) -> Evaluator:
        of, names, graph = self(e.of), e.names, self._graph
        return lambda row: graph.has_concept(of(row), names)

    def _call(self, e: ex.Call) -> Evaluator:
        arguments = [self(argument) for argument in e.arguments]
        kind = e.name.partition(".")[0]
        if not arguments and (kind in temporal.MAKERS or e.name == "timestamp"):
            # The same moment for all rows.
            moment = self._graph.clock
            value = moment // 1_000_000 if e.name == "timestamp" else temporal.now(kind, moment)
            return lambda row: value
        if e.name in GRAPH_FUNCTIONS:
            function: Any = getattr(self._graph.at(e.period), GRAPH_FUNCTIONS[e.name])
        else:
            function = FUNCTIONS[e.name]
        nulls = ex.FUNCTIONS[e.name].nulls
        if len(arguments) == 1 and not nulls:
            (only,) = arguments

            def single(row: Sequence[Any]) -> Any:
                value = only(row)
                return None if value is None else function(value)

            return single

        def several(row: Sequence[Any]) -> Any:
            values = [argument(row) for argument in arguments]
            return None if not nulls and None in values else function(*values)

        return several

    def _and(self, e: ex.And) -> Evaluator:
        return self._decided(e.operands, "AND", by=False)

    def _or(self, e: ex.Or) -> Evaluator:
        return self._decided(e.operands, "OR", by=True)

    def _decided(self, parts: Sequence[ex.Expression], name: str, *, by: bool) -> Evaluator:
        """AND, decided by false, or OR, decided by true; later operands are then not evaluated."""
        operands = [self(part) for part in parts]

        def decided(row: Sequence[Any]) -> bool | None:
            result: bool | None = not by
            for operand in operands:
                value = operand(row)
                if value is by:
                    result = by
                    break
                if value is None:
                    result = None
                elif value is not (not by):
                    raise no_operator(name, value)
            return result

        return decided

    def _xor(self, e: ex.Xor) -> Evaluator:
        left, right = self(e.left), self(e.right)

        def one(row: Sequence[Any]) -> bool | None:
            a, b = left(row), right(row)
            for value in (a, b):
                if value is not None and type(value) is not bool:
                    raise no_operator("XOR", value)
            return None if a is None or b is None else a is not b

        return one

    def _not(self, e: ex.Not) -> Evaluator:
        of = self(e.of)

        def opposite(row: Sequence[Any]) -> bool | None:
            value = of(row)
            if value is not None and type(value) is not bool:
                raise no_operator("NOT", value)
            return None if value is None else not value

        return opposite

    def _is_null(self, e: ex.IsNull) -> Evaluator:
        of = self(e.of)
        return lambda row: of(row) is None

    def _comparison(self, e: ex.Comparison) -> Evaluator:
        left, right, operator = self(e.left), self(e.right), e.operator
        if operator == "=":
            return lambda row: equal(left(row), right(row))
        return lambda row: compare(operator, left(row), right(row))

    def _arithmetic(self, e: ex.Arithmetic) -> Evaluator:
        left, right, compute = self(e.left), self(e.right), ARITHMETIC[e.operator]

        def computed(row: Sequence[Any]) -> Any:
            a, b = left(row), right(row)
            return None if a is None or b is None else compute(a, b)

        return computed

    def _negative(self, e: ex.Negative) -> Evaluator:
        of = self(e.of)

        def negative(row: Sequence[Any]) -> Any:
            value = of(row)
            if value is None:
                return None
            if type(value) is Quantity:
                return Quantity(-value.number, value.unit)
            if type(value) in NUMBERS or type(value) is temporal.Duration:
                return -value
            raise no_operator("-", value)

        return negative

    def _text_test(self, e: ex.TextTest) -> Evaluator:
        left, right, holds = self(e.left), self(e.right), TEXT_TESTS[e.operator]

        def test(row: Sequence[Any]) -> bool | None:
            a, b = left(row), right(row)
            return holds(a, b) if type(a) is str and type(b) is str else None

        return test

    def _in(self, e: ex.In) -> Evaluator:
        item, items = self(e.item), self(e.items)
        known = e.items.value if isinstance(e.items, ex.Constant) and type(e.items.value) is list else []
        # Texts and numbers are looked up in a long list.
        texts, numbers = ({element for element in known if type(element) in kinds} for kinds in ({str}, NUMBERS))
        quick: dict[type, set[Any]] = {str: texts, **dict.fromkeys(NUMBERS, numbers)} if len(known) > _MAX_LINEAR else {}
        unindexed = [element for element in known if type(element) not in quick]

        def contains(row: Sequence[Any]) -> bool | None:
            value, elements = item(row), items(row)
            if elements is None:
                return None
            if (keys := quick.get(type(value))) is not None and value == value:
                if value in keys:
                    return True
                elements = unindexed
            if type(elements) is not list:
                raise no_operator("IN", elements)
            result: bool | None = False
            for candidate in elements:
                is_same = equal(value, candidate)
                if is_same:
                    return True
                if is_same is None:
                    result = None
            return result

        return contains

    def _list(self, e: ex.ListOf) -> Evaluator:
        items = [self(item) for item in e.items]
        return lambda row: [item(row) for item in items]

    def _map(self, e: ex.MapOf) -> Evaluator:
        items = [(key, self(value)) for key, value in e.items]
        return lambda row: {key: value(row) for key, value in items}

    def _index(self, e: ex.Index) -> Evaluator:
        of, index, graph = self(e.of), self(e.index), self._graph.at(e.period)

        def item(row: Sequence[Any]) -> Any:
            value, at = of(row), index(row)
            if value is None or at is None:
                return None
            if type(value) is list:
                if type(at) is not int:
                    raise no_operator("an index of a list", at)
                return value[at] if -len(value) <= at < len(value) else None
            if type(at) is not str:
                raise no_operator("[]", value, at)
            return graph.value(value, at)

        return item

    def _slice(self, e: ex.Slice) -> Evaluator:
        of = self(e.of)
        start = None if e.start is None else self(e.start)
        stop = None if e.stop is None else self(e.stop)

        def part(row: Sequence[Any]) -> Any:
            value = of(row)
            if value is None:
                return None
            if type(value) is not list:
                raise no_operator("a slice", value)
            first = 0 if start is None else start(row)
            last = len(value) if stop is None else stop(row)
            if first is None or last is None:
                return None
            return value[integer_of(first, "a slice") : integer_of(last, "a slice")]

        return part

    def _case(self, e: ex.Case) -> Evaluator:
        branches = [(self(condition), self(value)) for condition, value in e.branches]
        otherwise = self(e.otherwise)
        if e.operand is not None:
            operand = self(e.operand)

            def simple(row: Sequence[Any]) -> Any:
                value = operand(row)
                for condition, result in branches:
                    if equal(value, condition(row)):
                        return result(row)
                return otherwise(row)

            return simple

        def searched(row: Sequence[Any]) -> Any:
            for condition, result in branches:
                if condition(row) is True:
                    return result(row)
            return otherwise(row)

        return searched

    def _nested(self, *names: str) -> Compiler:
        """Return a compiler for expressions with further variables, after those of the row."""
        places = {name: self._width + at for at, name in enumerate(names)}
        return Compiler(self._positions | places, self._graph)

    def _padded(self, row: Sequence[Any], *items: Any) -> list[Any]:
        return [*row[: self._width], *[None] * (self._width - len(row)), *items]

    def _comprehension(self, e: ex.ListComprehension) -> Evaluator:
        items, inside = self(e.items), self._nested(e.variable)
        where = None if e.where is None else inside(e.where)
        result = None if e.result is None else inside(e.result)

        def values(row: Sequence[Any]) -> Any:
            sequence = _list_of(items(row))
            if sequence is None:
                return None
            results = []
            for item in watched(sequence, _SOME):
                inner = self._padded(row, item)
                if where is None or where(inner) is True:
                    results.append(item if result is None else result(inner))
            return results

        return values

    def _quantified(self, e: ex.Quantified) -> Evaluator:
        items, where, kind = self(e.items), self._nested(e.variable)(e.where), e.quantifier

        def holds(row: Sequence[Any]) -> bool | None:
            sequence = _list_of(items(row))
            if sequence is None:
                return None
            true = unknown = 0
            for item in watched(sequence, _SOME):
                value = where(self._padded(row, item))
                if value is True:
                    if kind == "any" or kind == "none":
                        return kind == "any"
                    true += 1
                elif value is None:
                    unknown += 1
                elif value is not False:
                    raise no_operator(f"{kind}()", value)
                elif kind == "all":
                    return False
            if kind == "single":
                return False if true > 1 else None if unknown else true == 1
            return None if unknown else kind != "any"

        return holds

    def _reduce(self, e: ex.Reduce) -> Evaluator:
        initial, items = self(e.initial), self(e.items)
        result = self._nested(e.accumulator, e.variable)(e.result)

        def last(row: Sequence[Any]) -> Any:
            sequence, value = _list_of(items(row)), initial(row)
            if sequence is None:
                return None
            for item in watched(sequence, _SOME):
                value = result(self._padded(row, value, item))
            return value

        return last


def _list_of(value: Any) -> list[Any] | None:
    if value is None or isinstance(value, list):
        return value
    raise no_operator("a list is needed, which this", value)


_BUILD: Final[dict[type, Callable[[Any, Any], Evaluator]]] = {
    ex.Variable: Compiler._variable,
    ex.Constant: Compiler._constant,
    ex.Property: Compiler._property,
    ex.HasConcept: Compiler._has_concept,
    ex.Call: Compiler._call,
    ex.And: Compiler._and,
    ex.Or: Compiler._or,
    ex.Xor: Compiler._xor,
    ex.Not: Compiler._not,
    ex.IsNull: Compiler._is_null,
    ex.Comparison: Compiler._comparison,
    ex.Arithmetic: Compiler._arithmetic,
    ex.Negative: Compiler._negative,
    ex.TextTest: Compiler._text_test,
    ex.In: Compiler._in,
    ex.ListOf: Compiler._list,
    ex.MapOf: Compiler._map,
    ex.Index: Compiler._index,
    ex.Slice: Compiler._slice,
    ex.Case: Compiler._case,
    ex.ListComprehension: Compiler._comprehension,
    ex.Quantified: Compiler._quantified,
    ex.Reduce: Compiler._reduce,
}
