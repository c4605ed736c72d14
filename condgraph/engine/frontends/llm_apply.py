"""The other functions of LLM queries lowered: sets, aggregates, rows, choice, and the native functions that `Apply` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from typing import Literal as Literal_

from condgraph.engine.algebra import (
    Apply,
    Bound,
    Choose,
    Clip,
    Compare,
    Concat,
    Count,
    Direction,
    Distinct,
    Entities,
    Equals,
    Every,
    External,
    Extreme,
    Given,
    Holders,
    Keep,
    Mean,
    Minus,
    Mode,
    Neighbour,
    Not,
    Nth,
    Objects,
    Operator,
    Referents,
    RowNumbers,
    Scalar,
    Scan,
    Sum,
    Test,
    Validity,
    Values,
    Versus,
    any_of,
    intersect,
    union,
)
from condgraph.engine.errors import OptionError, PlanError, nearest
from condgraph.engine.facts import EntityKind
from condgraph.engine.frontends.llm_binding import Application, Foreign, operator_of
from condgraph.engine.frontends.llm_literals import read_quantity, read_times, tests_for
from condgraph.engine.frontends.llm_results import NUMBERS, TEXTS, Result, as_values, given
from condgraph.engine.frontends.llm_tree import Comparison, Items, Literal
from condgraph.engine.linking.encoder import fold
from condgraph.engine.values import Kind, Time, Value, collapse

if TYPE_CHECKING:
    from condgraph.engine.frontends.llm_query import Lowering

Rule = Callable[["Lowering", Application], Result]


def lower_application(lowering: Lowering, call: Application) -> Result:
    """The operator of a bound call."""
    rule = _RULES.get(call.function)
    if rule is None:
        raise PlanError(f"{call.function} has no meaning here", span=call.span)
    result = rule(lowering, call)
    return result.of(result.node, span=call.span)


def lower_foreign(lowering: Lowering, call: Foreign) -> Result:
    """A function that is not native: the one from outside, or an error with the nearest names."""
    function = lowering.context.llm_function
    names: tuple[str, ...] = ()
    if isinstance(function, Mapping):
        names = tuple(function)
        function = {fold(name): one for name, one in function.items()}.get(fold(call.call.name))
    if function is None:
        error = call.error()
        error.candidates = tuple(dict.fromkeys((*nearest(call.call.name, names), *error.candidates)))
        error.hint = "llm_function= answers such functions with a language model"
        raise error
    if not callable(function):
        raise OptionError("llm_function is a callable of a name, the texts of each argument, and options; or maps names to such")
    arguments = tuple(lowering.as_bag(lowering.evaluate(argument.value)) for argument in call.call.arguments)
    options = tuple((f"argument {at}", argument.name) for at, argument in enumerate(call.call.arguments, 1) if argument.name)
    return Result(External(call.call.name, function, arguments, options), kinds=TEXTS)


def apply(name: str, arguments: Sequence[Values | Scalar], **options: str) -> Apply:
    """A native function with its options in a fixed order."""
    return Apply(name, tuple(arguments), tuple(sorted(options.items())))


# -- sets -----------------------------------------------------------------------------------------------------------------


def _operands(lowering: Lowering, call: Application) -> list[Result]:
    found: list[Result] = []
    for operand in call.operands:
        if isinstance(operand, Items):
            found.extend(lowering.evaluate(item) for item in operand.items)
        else:
            found.append(lowering.evaluate(operand))
    return found


def _set(lowering: Lowering, call: Application) -> Result:
    """Union, intersection, difference over entities where any operand has them, else over values."""
    results = _operands(lowering, call)
    if len(results) == 1 and call.function != "set_union":
        lowering.context.warn(f"{call.function} of one set is that set")
    first = next((one for one in results if one.is_entities), None)
    if first is not None:
        return _entity_set(lowering, call.function, results, first)
    whole = next((one for one in results if one.literal is None), None)
    parts = [_bag_like(lowering, one, whole) for one in results]
    model = whole or results[0]
    led = tuple(dict.fromkeys(name for one in results for name in one.led))
    if call.function == "set_union":
        return model.of(Distinct(Concat(tuple(parts))) if len(parts) > 1 else Distinct(parts[0]), led=led)
    found = parts[0]
    for part in parts[1:]:
        test: Test = Equals(part)
        found = Keep(found, Not(test) if call.function == "set_difference" else test)
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
    led = results[0].led if function == "set_difference" else tuple(dict.fromkeys(name for one in results for name in one.led))
    return model.of(node, column=same[0].column if same else None, led=led)


def _literal_members(lowering: Lowering, literal: Literal, model: Result) -> Entities:
    """A literal as a set of entities: the rows with such a cell, or the entities of the name."""
    from condgraph.engine.algebra import Named

    if model.table is not None:
        return lowering.context.rows_with(literal, model.table)
    return Named(lowering.context.named(literal, "entity", None))


def _bag_like(lowering: Lowering, result: Result, model: Result | None) -> Values:
    """A literal among values as a value of their type."""
    if result.literal is None:
        return as_values(result)
    text = collapse(result.literal.text)
    values: list[Value] = []
    kinds = model.kinds if model is not None else {}
    if model is not None and model.column is not None and model.table is not None:
        column = lowering.context.linker.column((model.column,), model.table)
        for same in column.folded.get(fold(text), ()):
            values.extend(column.cells[same])
    for test in tests_for("=", text, kinds).tests:
        if isinstance(test, Compare):
            values.append(test.value)
    return given(*dict.fromkeys(values or [text]))


def _negation(lowering: Lowering, call: Application) -> Result:
    result = lowering.evaluate(call.operands[0])
    if result.literal is not None:
        raise PlanError("set_negation takes the output of a query", span=call.span)
    if result.is_entities:
        assert isinstance(result.node, Entities)
        return result.of(Minus(_universe(lowering, result), result.node))
    if result.column is None or result.is_scalar:
        raise PlanError("set_negation takes a set", span=call.span, hint="it gives what is not in the set: rows, entities, values")
    everything = Objects(Scan(None, (result.column,), source=result.table))
    return result.of(Distinct(Keep(everything, Not(Equals(as_values(result))))))


def _universe(lowering: Lowering, result: Result) -> Entities:
    if result.table is not None:
        return lowering.context.rows(result.table)
    several = len(lowering.context.schema.sources) > 1
    parts: list[Entities] = [Every((EntityKind.ENTITY,), source) for source in result.sources if several]
    return union(*parts) if parts else Every((EntityKind.ENTITY,))


def _keep(lowering: Lowering, call: Application) -> Result:
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
        node: Values = Clip(values, condition.op, limits) if times else Keep(values, Versus(condition.op, limits))
        return result.of(node, validity=None)
    text = right.literal.text
    if times and (read := read_times(text)):
        return result.of(Clip(values, condition.op, Given(tuple(read))), validity=None)
    if result.column is not None and result.carried and result.kinds:
        column = lowering.context.linker.column((result.column,), result.table)
        if len(column):
            test = lowering.context.test(condition.op, right.literal, column, f"value of {result.column!r}")
            return result.of(Keep(values, test), validity=None)
    tests = tests_for(condition.op, text, result.kinds or NUMBERS).tests
    return result.of(Keep(values, any_of(tests or [Compare(condition.op, collapse(text))])), validity=None)


# -- aggregates -----------------------------------------------------------------------------------------------------------


def _count(lowering: Lowering, call: Application) -> Result:
    result = lowering.evaluate(call.operands[0])
    if "distinct" in call.options and result.is_rows:
        result = lowering.column_values(result, "count")
    if isinstance(result.node, Entities):
        return Result(Count(result.node), kinds=NUMBERS, led=result.led)
    return Result(Count(lowering.as_bag(result)), kinds=NUMBERS, led=result.led)


def _bag_of_all(lowering: Lowering, call: Application) -> Result:
    """The operands side by side, rows as their column."""
    results = [lowering.column_values(one, call.function) for one in _operands(lowering, call)]
    if len(results) == 1:
        return results[0]
    model = next((one for one in results if one.literal is None), results[0])
    parts = tuple(_bag_like(lowering, one, model) if one.literal is not None else as_values(one) for one in results)
    led = tuple(dict.fromkeys(name for one in results for name in one.led))
    carried = all(one.carried for one in results)
    return Result(Concat(parts), model.table, model.sources, model.column, model.kinds, led, carried=carried)


def _number(kind: type[Sum] | type[Mean]) -> Rule:
    def rule(lowering: Lowering, call: Application) -> Result:
        result = _bag_of_all(lowering, call)
        return Result(kind(as_values(result)), kinds=NUMBERS, led=result.led, column=result.column)

    return rule


def _extreme(direction: Direction) -> Rule:
    def rule(lowering: Lowering, call: Application) -> Result:
        result = _bag_of_all(lowering, call)
        return result.of(Extreme(_bounded(result, direction), direction), validity=None)

    return rule


def _bounded(result: Result, direction: Direction) -> Values:
    """Times by the end that decides: the earliest start, the latest end."""
    part: Literal_["start", "end"] = "start" if direction == "smallest" else "end"
    if result.validity is not None:
        return Validity(result.validity, part)
    values = as_values(result)
    if isinstance(values, (Clip, Concat)) and any(kind is Kind.TIME for kind, _ in result.kinds) and result.table is None:
        return Bound(values, part)
    return values


def _mode(direction: Direction) -> Rule:
    def rule(lowering: Lowering, call: Application) -> Result:
        result = lowering.column_values(lowering.evaluate(call.operands[0]), call.function)
        return result.of(Distinct(Mode(as_values(result), direction)), validity=None)

    return rule


def _argument(direction: Direction) -> Rule:
    def rule(lowering: Lowering, call: Application) -> Result:
        result = lowering.column_values(lowering.evaluate(call.operands[0]), call.function)
        if not result.carried:
            hint = "max gives the value itself"
            raise PlanError(f"{call.function} takes values that rows or entities have", span=call.span, hint=hint)
        return result.of(Holders(Extreme(_bounded(result, direction), direction)), validity=None)

    return rule


# -- rows and places ------------------------------------------------------------------------------------------------------


def _neighbour(distance: int) -> Rule:
    def rule(lowering: Lowering, call: Application) -> Result:
        result = lowering.evaluate(call.operands[0])
        table = result.table or lowering.context.table_scope or lowering.context.scope
        if table is None or not lowering.context.is_table(table):
            raise PlanError(f"{call.function} takes table rows, and these are none", span=call.span)
        return result.of(Neighbour(lowering.entities(result, table, ()), distance), table=table, validity=None)

    return rule


def _row_number(lowering: Lowering, call: Application) -> Result:
    result = lowering.evaluate(call.operands[0])
    if result.table is None:
        raise PlanError("row_number takes table rows, and these are none", span=call.span)
    rows = lowering.entities(result, result.table, ())
    return Result(RowNumbers(rows), result.table, result.sources, None, NUMBERS, result.led, carried=True)


def _place(place: int) -> Rule:
    return lambda lowering, call: nth(lowering, lowering.evaluate(call.operands[0]), place)


def nth(lowering: Lowering, result: Result, place: int) -> Result:
    """The member at a place: rows and their values in the order of the table, sorted ones as they were sorted."""
    if isinstance(result.node, Entities):
        if result.table is not None:
            return result.of(Holders(Nth(RowNumbers(result.node), place, "ascending")))
        from condgraph.engine.algebra import Names

        return result.of(Referents(Nth(Names(result.node), place, "ascending")))
    order = result.order or "row"
    return result.of(Nth(lowering.as_bag(result), place, order), validity=None)  # type: ignore[arg-type]


def _sort(lowering: Lowering, call: Application) -> Result:
    result = lowering.column_values(lowering.evaluate(call.operands[0]), "sort")
    word = call.options.get("order")
    text = word.text.casefold() if isinstance(word, Literal) else "ascending"
    order = "descending" if text.startswith(("desc", "high", "larg", "false")) else "ascending"
    lowering.context.remark("an answer has its own order; sort decides only what first, last and [n] mean")
    return result.of(result.node, order=order)


def _nth_highest(lowering: Lowering, call: Application) -> Result:
    result = lowering.column_values(lowering.evaluate(call.operands[0]), call.function)
    word = call.options.get("n")
    number = read_quantity(word.text) if isinstance(word, Literal) else None
    if number is None or not isinstance(number.number, int) or number.number < 1:
        raise PlanError("nth_highest needs n, a whole number from 1", span=call.span)
    return result.of(Nth(as_values(result), number.number - 1, "descending"), validity=None)


def _unique(lowering: Lowering, call: Application) -> Result:
    result = lowering.evaluate(call.operands[0])
    return result if result.is_entities else result.of(Distinct(lowering.as_bag(result)))


# -- native functions -----------------------------------------------------------------------------------------------------


def _options(call: Application) -> dict[str, str]:
    found = {name: value.text for name, value in call.options.items() if isinstance(value, Literal)}
    if len(found) < len(call.options):
        raise PlanError(f"the options of {call.function} are texts", span=call.span)
    return found


def _compare(lowering: Lowering, call: Application) -> Result:
    operands = _operands(lowering, call) if len(call.operands) == 1 else _each(lowering, call)
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

    The winner is named by the constant that led to it. A bare comparison is a truth value unless a name is asked for; one with a
    constant on one side always is.
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


def _equal(lowering: Lowering, call: Application) -> Result:
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


def _conditional(lowering: Lowering, call: Application) -> Result:
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


def _native(lowering: Lowering, call: Application) -> Result:
    arguments = [lowering.as_bag(one) for one in _each(lowering, call)]
    options = _options(call)
    kinds = TEXTS if call.function == "split" else NUMBERS
    return Result(apply(call.function, arguments, **options), kinds=kinds)


def _times(lowering: Lowering, call: Application) -> Result:
    """extract_year and the like keep what led to the value."""
    result = lowering.column_values(lowering.evaluate(call.operands[0]), call.function)
    kinds = {(Kind.TIME, "1"): 1} if call.function == "extract_year" else NUMBERS
    return Result(apply(call.function, [lowering.as_bag(result)]), kinds=kinds, led=result.led)


_RULES: Final[dict[str, Rule]] = {
    "set_union": _set,
    "set_intersection": _set,
    "set_difference": _set,
    "set_negation": _negation,
    "keep": _keep,
    "count": _count,
    "sum": _number(Sum),
    "mean": _number(Mean),
    "max": _extreme("largest"),
    "min": _extreme("smallest"),
    "most": _mode("largest"),
    "least": _mode("smallest"),
    "argmax": _argument("largest"),
    "argmin": _argument("smallest"),
    "previous_row": _neighbour(-1),
    "next_row": _neighbour(1),
    "row_number": _row_number,
    "first": _place(0),
    "last": _place(-1),
    "sort": _sort,
    "unique": _unique,
    "nth_highest": _nth_highest,
    "compare": _compare,
    "equal": _equal,
    "is_in": _equal,
    "is_empty": _equal,
    "exists": _equal,
    "if": _conditional,
    "difference": _native,
    "duration": _native,
    "add": _native,
    "multiply": _native,
    "divide": _native,
    "percentage": _native,
    "abs": _native,
    "round": _native,
    "extract_year": _times,
    "extract_month": _times,
    "extract_day": _times,
    "extract_number": _times,
    "split": _native,
    "length": _native,
}


def literal_value(text: str) -> Value:
    """A literal of an expression as the value it reads as: a number, a time, else text."""
    quantity = read_quantity(text)
    if quantity is not None:
        return quantity
    times: list[Time] = read_times(text)
    return times[0] if times else collapse(text)
