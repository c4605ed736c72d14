"""Native functions of LLM queries: comparisons, conditionals, arithmetic, parts of times and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from condgraph.engine.algebra import Apply, Choose, Concat, Count, Entities, Operator, Scalar, Values
from condgraph.engine.errors import PlanError
from condgraph.engine.values import Kind, Time, Value, collapse
from condgraph.languages.llm.binding import operator_of
from condgraph.languages.llm.bound import Application
from condgraph.languages.llm.lower.literals import read_times
from condgraph.languages.llm.lower.quantities import read_quantity
from condgraph.languages.llm.lower.results import NUMBERS, TEXTS, Result, given
from condgraph.languages.llm.lower.sets import operands_of
from condgraph.languages.llm.syntax.tree import Items, Literal
from condgraph.vectors.encoders import fold

if TYPE_CHECKING:
    from condgraph.languages.llm.lower.query import Lowering


def apply(name: str, arguments: Sequence[Values | Scalar], **options: str) -> Apply:
    """A native function with its options in a fixed order."""
    return Apply(name, tuple(arguments), tuple(sorted(options.items())))


def _options(call: Application) -> dict[str, str]:
    found = {name: value.text for name, value in call.options.items() if isinstance(value, Literal)}
    if len(found) < len(call.options):
        raise PlanError(f"the options of {call.function} are texts", span=call.span)
    return found


def lower_compare(lowering: Lowering, call: Application) -> Result:
    """Which of two wins, or the result of arithmetic between them."""
    operands = operands_of(lowering, call) if len(call.operands) == 1 else _each(lowering, call)
    if len(operands) != 2:
        raise PlanError(f"compare takes two operands, not {len(operands)}", span=call.span)
    left, right = operands
    options = _options(call)
    word = options.get("operator")
    operator = operator_of(Literal(word, span=call.span)) if word is not None else ">"
    if operator == "-":
        return Result(apply("difference", [lowering.as_bag(left), lowering.as_bag(right)], absolute="false"), kinds=NUMBERS)
    if operator not in ("=", "!=", "<", ">", "<=", ">="):
        name = {"+": "add", "*": "multiply", "/": "divide"}[operator]
        return Result(apply(name, [lowering.as_bag(left), lowering.as_bag(right)]), kinds=NUMBERS)
    if options.get("of") == "count" or (left.is_entities and right.is_entities):
        left, right = _counted(lowering, left), _counted(lowering, right)
    return comparison(lowering, left, right, operator, bare=False)  # type: ignore[arg-type]


def _counted(lowering: Lowering, result: Result) -> Result:
    """How many members a set has; a number stays."""
    if result.is_scalar or result.literal is not None:
        return result
    lowering.context.remark("sets are compared by how many members they have")
    of = result.node if isinstance(result.node, Entities) else lowering.as_bag(result)
    return result.of(Count(of), kinds=NUMBERS, table=None)


def comparison(lowering: Lowering, left: Result, right: Result, operator: Operator, *, bare: bool) -> Result:
    """Which of two wins, a word for it, or whether it holds: as the target type asks.

    The winner is named by the constant that led to it. A bare comparison is a truth value unless a
    name is asked for; one with a constant on one side always is.
    """
    sides = [lowering.as_bag(left), lowering.as_bag(right)]
    target = fold(lowering.context.target_type or "")
    words = _word_pair(target)
    if words is not None:
        return Result(apply("compare", sides, mode="words", words=words, operator=operator), kinds=TEXTS)
    names = [_winner(lowering, one, other) for one, other in ((left, right), (right, left))]
    truth = asks_truth(target) or operator in ("=", "!=") or (left.literal is None) != (right.literal is None)
    if truth or (bare and (not target or names[0] is None or names[1] is None)):
        return Result(apply("relation", sides, operator=operator), kinds=TEXTS)
    led = [name if name is not None else side for name, side in zip(names, sides, strict=True)]
    return Result(apply("compare", [*sides, *led], operator=operator), kinds=TEXTS)


_PAIRS: Final = ("more/less", "above/below", "before/after", "higher/lower", "longer/shorter", "earlier/later", "greater/less")


def _word_pair(target: str) -> str | None:
    """The two words a target type asks for: "more or less", "above/below"; None for others."""
    if "comparison" in target:
        return "more/less"
    found = set("".join(c if c.isalnum() else " " for c in target).split())
    for pair in _PAIRS:
        if set(pair.split("/")) <= found:
            # Ranks count down, and what is before or earlier is smaller.
            return pair
    return None


def asks_truth(target: str | None) -> bool:
    """Whether a target type asks for yes or no."""
    found = set("".join(c if c.isalnum() else " " for c in (target or "").casefold()).split())
    return bool(found & {"yes", "no", "boolean", "bool", "true", "false"})


def _winner(lowering: Lowering, one: Result, other: Result) -> Values | None:
    """What names a side: the constants that led to it and not to the other."""
    if one.literal is not None:
        return given(collapse(one.literal.text))
    own = [name for name in one.led if name not in other.led] or list(one.led)
    return given(*own[-1:]) if own else None


def lower_equal(lowering: Lowering, call: Application) -> Result:
    """Whether values are equal, are among others, are there."""
    return Result(apply(call.function, [lowering.as_bag(one) for one in _each(lowering, call)]), kinds=TEXTS)


def _each(lowering: Lowering, call: Application) -> list[Result]:
    """Operands one by one; a list is one operand."""
    found: list[Result] = []
    for operand in call.operands:
        if isinstance(operand, Items):
            results = [lowering.evaluate(item) for item in operand.items]
            found.append(Result(Concat(tuple(lowering.as_bag(one) for one in results)), led=results[0].led if results else ()))
        else:
            found.append(lowering.evaluate(operand))
    return found


def lower_conditional(lowering: Lowering, call: Application) -> Result:
    """One of two branches by a test."""
    if len(call.operands) == 1:
        return lowering.evaluate(call.operands[0])
    branches = [lowering.evaluate(operand) for operand in call.operands[1:]]
    test = lowering.truth(call.operands[0])
    led = tuple(dict.fromkeys(name for one in branches for name in one.led))
    model = branches[0]
    same = all(one.table == model.table and one.carried and not one.is_entities for one in branches)
    bags = [lowering.as_bag(one) for one in branches] or [given("yes")]
    node = Choose(test, bags[0], bags[1] if len(bags) > 1 else given())
    if same and branches:
        return Result(node, model.table, model.sources, model.column, model.kinds, led, carried=True)
    return Result(node, kinds=model.kinds if branches else TEXTS, led=led)


def lower_native(lowering: Lowering, call: Application) -> Result:
    """A function of numbers or texts."""
    arguments = [lowering.as_bag(one) for one in _each(lowering, call)]
    options = _options(call)
    kinds = TEXTS if call.function == "split" else NUMBERS
    return Result(apply(call.function, arguments, **options), kinds=kinds)


def lower_part(lowering: Lowering, call: Application) -> Result:
    """extract_year and the like keep what led to the value."""
    result = lowering.column_values(lowering.evaluate(call.operands[0]), call.function)
    kinds = {(Kind.TIME, "1"): 1} if call.function == "extract_year" else NUMBERS
    return Result(apply(call.function, [lowering.as_bag(result)]), kinds=kinds, led=result.led)


def literal_value(text: str) -> Value:
    """A literal of an expression as the value it reads as: a number, a time, else text."""
    quantity = read_quantity(text)
    if quantity is not None:
        return quantity
    times: list[Time] = read_times(text)
    return times[0] if times else collapse(text)
