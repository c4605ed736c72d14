"""Set functions of LLM queries and what keeps members by a condition: over entities where any
operand has them, else values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condgraph.engine.algebra import (
    AllEntities,
    Clip,
    Compare,
    Concat,
    Condition,
    Constants,
    Distinct,
    Entities,
    Equals,
    FilterValues,
    Minus,
    Not,
    Objects,
    Scan,
    Values,
    Versus,
    any_of,
    intersect,
    union,
)
from condgraph.engine.errors import PlanError
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Kind, Value, collapse
from condgraph.languages.llm.bound import Application
from condgraph.languages.llm.lower.literals import literal_tests, read_times
from condgraph.languages.llm.lower.results import NUMBERS, TEXTS, Result, as_values, given
from condgraph.languages.llm.syntax.tree import Comparison, Items, Literal

if TYPE_CHECKING:
    from condgraph.languages.llm.lower.query import Lowering


def operands_of(lowering: Lowering, call: Application) -> list[Result]:
    """Operands one by one, the items of a list each; lists without items are one empty set."""
    found: list[Result] = []
    for operand in call.operands:
        if isinstance(operand, Items):
            found.extend(lowering.evaluate(item) for item in operand.items)
        else:
            found.append(lowering.evaluate(operand))
    return found or [Result(Constants(()), kinds=TEXTS, span=call.span)]


def lower_set(lowering: Lowering, call: Application) -> Result:
    """Union, intersection, difference over entities where any operand has them, else over values.

    A list alone holds the sets; beside other operands it is a set itself.
    """
    several = len(call.operands) > 1
    results = [lowering.evaluate(one) for one in call.operands] if several else operands_of(lowering, call)
    if len(results) == 1 and call.function != "set_union":
        lowering.context.warn(f"{call.function} of one set is that set")
    first = next((one for one in results if one.is_entities), None)
    if first is not None:
        return _entity_set(lowering, call.function, results, first)
    whole = next((one for one in results if one.literal is None), None)
    parts = [bag_like(lowering, one, whole) for one in results]
    model = whole or results[0]
    led = tuple(dict.fromkeys(name for one in results for name in one.led))
    if call.function == "set_union":
        return model.of(Distinct(Concat(tuple(parts))) if len(parts) > 1 else Distinct(parts[0]), led=led)
    found = parts[0]
    for part in parts[1:]:
        test: Condition = Equals(part)
        found = FilterValues(found, Not(test) if call.function == "set_difference" else test)
    return model.of(Distinct(found), led=results[0].led if call.function == "set_difference" else led)


def _entity_set(lowering: Lowering, function: str, results: list[Result], model: Result) -> Result:
    table, sources = model.table, model.sources
    parts: list[Entities] = []
    for one in results:
        if one.literal is not None:
            parts.append(_literal_members(lowering, one.literal, model))
        else:
            parts.append(lowering.entities(one, table, sources))
    if function == "set_union":
        node = union(*parts)
    elif function == "set_intersection":
        node = intersect(*parts)
    else:
        node = parts[0]
        for part in parts[1:]:
            node = Minus(node, part)
    same = [one for one in results if one.column is not None]
    column = same[0].column if same else None
    led = results[0].led if function == "set_difference" else tuple(dict.fromkeys(name for one in results for name in one.led))
    # What is taken away says nothing of the rows that are left.
    left = results[:1] if function == "set_difference" else results
    return model.of(node, column=column, led=led, empty=any(one.empty and one.column == column for one in left))


def _literal_members(lowering: Lowering, literal: Literal, model: Result) -> Entities:
    """A literal as a set of entities: the rows with such a cell, or the entities of the name."""
    from condgraph.engine.algebra import ByName

    if model.table is not None:
        return lowering.context.rows_with(literal, model.table)
    return ByName(lowering.context.named(literal, "entity", None))


def bag_like(lowering: Lowering, result: Result, model: Result | None) -> Values:
    """A literal among values as a value of their type."""
    if result.literal is None:
        return as_values(result)
    text = collapse(result.literal.text)
    values: list[Value] = []
    kinds = model.kinds if model is not None else {}
    if model is not None and model.column is not None and model.table is not None:
        column = lowering.context.linker.column((model.column,), model.table)
        values.extend(lowering.context.same(text, column, f"value of {model.column!r}", literal_tests("=", text, kinds)))
    for test in literal_tests("=", text, kinds).conditions:
        if isinstance(test, Compare):
            values.append(test.value)
    return given(*dict.fromkeys(values or [text]))


def lower_negation(lowering: Lowering, call: Application) -> Result:
    """What is not in a set: entities or rows of its sources, or other values of its column."""
    result = lowering.evaluate(call.operands[0])
    if result.literal is not None:
        raise PlanError("set_negation takes the output of a query", span=call.span)
    if result.is_entities:
        assert isinstance(result.node, Entities)
        return result.of(Minus(_universe(lowering, result), result.node))
    if result.column is None or result.is_scalar:
        raise PlanError("set_negation takes a set", span=call.span, hint="it gives what is not in the set: rows, entities, values")
    everything = Objects(Scan(None, (result.column,), source=result.table))
    return result.of(Distinct(FilterValues(everything, Not(Equals(as_values(result))))))


def _universe(lowering: Lowering, result: Result) -> Entities:
    if result.table is not None:
        return lowering.context.rows(result.table)
    several = len(lowering.context.schema.sources) > 1
    parts: list[Entities] = [AllEntities((EntityKind.ENTITY,), source) for source in result.sources if several]
    return union(*parts) if parts else AllEntities((EntityKind.ENTITY,))


def lower_keep(lowering: Lowering, call: Application) -> Result:
    """The values of a column that satisfy conditions."""
    result = lowering.column_values(lowering.evaluate(call.operands[0]), "keep")
    for condition in call.operands[1:]:
        assert isinstance(condition, Comparison)
        result = _kept(lowering, result, condition)
    return result


def _kept(lowering: Lowering, result: Result, condition: Comparison) -> Result:
    values = as_values(result)
    times = {kind for kind, _ in result.kinds} == {Kind.TIME}
    right = lowering.evaluate(condition.right)
    if right.literal is None:
        limits = lowering.as_bag(right)
        node: Values = Clip(values, condition.op, limits) if times else FilterValues(values, Versus(condition.op, limits))
        return result.of(node, validity=None)
    text = right.literal.text
    if times and (read := read_times(text)):
        return result.of(Clip(values, condition.op, Constants(tuple(read))), validity=None)
    if result.column is not None and result.carried and result.kinds:
        column = lowering.context.linker.column((result.column,), result.table)
        if len(column):
            test = lowering.context.condition(condition.op, right.literal, column, f"value of {result.column!r}")
            return result.of(FilterValues(values, test), validity=None)
    tests = literal_tests(condition.op, text, result.kinds or NUMBERS).conditions
    return result.of(FilterValues(values, any_of(tests or [Compare(condition.op, collapse(text))])), validity=None)
