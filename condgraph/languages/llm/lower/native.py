"""Lowers the native functions of LLM queries: set functions, aggregates, comparisons, conditionals, arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from typing import Literal as Literal_

from condgraph.engine import algebra as alg
from condgraph.engine.errors import OptionError, PlanError, UnknownNameError, nearest
from condgraph.engine.external import remembering, takes_call
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Kind, Time, Value, collapse, fold
from condgraph.languages.literals import is_time_function
from condgraph.languages.llm.lower.context import NUMBERS, TEXTS, Lowering, Result, Rule, as_values, given
from condgraph.languages.llm.lower.literals import literal_tests, operator_of, read_quantity, read_times
from condgraph.languages.llm.syntax.tokens import AN_OUTPUT
from condgraph.languages.llm.syntax.tree import Application, Comparison, Foreign, Items, Literal, OutputRef

# -- sets --------------------------------------------------------------------------------------------
# Set functions and `keep` work on entities if any operand has entities, else on values.


def operands_of(lowering: Lowering, call: Application) -> list[Result]:
    """Lower each operand and each item of a list; lists without items give one empty set."""
    result: list[Result] = []
    for operand in call.operands:
        if isinstance(operand, Items):
            result.extend(lowering.evaluate(item) for item in operand.items)
        else:
            result.append(lowering.evaluate(operand))
    return result or [Result(alg.Constants(()), kinds=TEXTS, span=call.span)]


def lower_set(lowering: Lowering, call: Application) -> Result:
    """Lower union, intersection or difference, over entities if any operand has them, else over values.

    A single list holds the sets; next to other operands a list is a set itself.
    """
    several = len(call.operands) > 1
    results = [lowering.evaluate(operand) for operand in call.operands] if several else operands_of(lowering, call)
    if len(results) == 1 and call.function != "set_union":
        lowering.context.warn(f"{call.function} of one set is that set")
    first = next((item for item in results if item.is_entities), None)
    if first is not None:
        return _entity_set(lowering, call.function, results, first)
    typed_model = next((item for item in results if item.literal is None), None)
    parts = [bag_like(lowering, item, typed_model) for item in results]
    model = typed_model or results[0]
    led = tuple(dict.fromkeys(name for item in results for name in item.led))
    if call.function == "set_union":
        return model.of(alg.Distinct(alg.Concat(tuple(parts))) if len(parts) > 1 else alg.Distinct(parts[0]), led=led)
    result = parts[0]
    for part in parts[1:]:
        test: alg.Condition = alg.Equals(part)
        result = alg.FilterValues(result, alg.Not(test) if call.function == "set_difference" else test)
    return model.of(alg.Distinct(result), led=results[0].led if call.function == "set_difference" else led)


def _entity_set(lowering: Lowering, function: str, results: list[Result], model: Result) -> Result:
    table, sources = model.table, model.sources
    parts: list[alg.Entities] = []
    for member in results:
        if member.literal is not None:
            parts.append(_literal_members(lowering, member.literal, model))
        else:
            parts.append(lowering.entities(member, table, sources))
    if function == "set_union":
        node = alg.union(*parts)
    elif function == "set_intersection":
        node = alg.intersect(*parts)
    else:
        node = parts[0]
        for part in parts[1:]:
            node = alg.Minus(node, part)
    with_column = [result for result in results if result.column is not None]
    column = with_column[0].column if with_column else None
    led = (
        results[0].led if function == "set_difference" else tuple(dict.fromkeys(name for result in results for name in result.led))
    )
    # The sets that are subtracted tell nothing about the remaining rows.
    remaining = results[:1] if function == "set_difference" else results
    return model.of(node, column=column, led=led, empty=any(item.empty and item.column == column for item in remaining))


def _literal_members(lowering: Lowering, literal: Literal, model: Result) -> alg.Entities:
    """Return the rows with this cell, or the entities of this name."""
    if model.table is not None:
        return lowering.context.rows_with(literal, model.table)
    return alg.ByName(lowering.context.named(literal, "entity", None))


def bag_like(lowering: Lowering, result: Result, model: Result | None) -> alg.Values:
    """Return a result as values; a literal takes the type of the model's values."""
    if result.literal is None:
        return as_values(result)
    text = collapse(result.literal.text)
    values: list[Value] = []
    kinds = model.kinds if model is not None else {}
    if model is not None and model.column is not None and model.table is not None:
        column = lowering.context.linker.column((model.column,), model.table)
        values.extend(lowering.context.same(text, column, f"value of {model.column!r}", literal_tests("=", text, kinds)))
    for test in literal_tests("=", text, kinds).conditions:
        if isinstance(test, alg.Compare):
            values.append(test.value)
    return given(*dict.fromkeys(values or [text]))


def lower_negation(lowering: Lowering, call: Application) -> Result:
    """Lower a complement: entities or rows of the same sources, or other values of the same column."""
    result = lowering.evaluate(call.operands[0])
    if result.literal is not None:
        raise PlanError("set_negation takes the output of a query", span=call.span)
    if result.is_entities:
        assert isinstance(result.node, alg.Entities)
        return result.of(alg.Minus(_universe(lowering, result), result.node))
    if result.column is None or result.is_scalar:
        raise PlanError("set_negation takes a set", span=call.span, hint="it gives what is not in the set: rows, entities, values")
    everything = alg.Objects(alg.Scan(None, (result.column,), source=result.table))
    return result.of(alg.Distinct(alg.FilterValues(everything, alg.Not(alg.Equals(as_values(result))))))


def _universe(lowering: Lowering, result: Result) -> alg.Entities:
    if result.table is not None:
        return lowering.context.rows(result.table)
    several = len(lowering.context.schema.sources) > 1
    parts: list[alg.Entities] = [alg.AllEntities((EntityKind.ENTITY,), source) for source in result.sources if several]
    return alg.union(*parts) if parts else alg.AllEntities((EntityKind.ENTITY,))


def lower_keep(lowering: Lowering, call: Application) -> Result:
    """Filter the values of a column by conditions."""
    result = lowering.column_values(lowering.evaluate(call.operands[0]), "keep")
    for condition in call.operands[1:]:
        assert isinstance(condition, Comparison)
        result = _filtered(lowering, result, condition)
    return result


def _filtered(lowering: Lowering, result: Result, condition: Comparison) -> Result:
    values = as_values(result)
    times = {kind for kind, _ in result.kinds} == {Kind.TIME}
    right = lowering.evaluate(condition.right)
    if right.literal is None:
        limits = lowering.as_bag(right)
        node: alg.Values = (
            alg.Clip(values, condition.op, limits) if times else alg.FilterValues(values, alg.Versus(condition.op, limits))
        )
        return result.of(node, validity=None)
    text = right.literal.text
    if times and (read := read_times(text)):
        return result.of(alg.Clip(values, condition.op, alg.Constants(tuple(read))), validity=None)
    if result.column is not None and result.carried and result.kinds:
        column = lowering.context.linker.column((result.column,), result.table)
        if len(column):
            test = lowering.context.condition(condition.op, right.literal, column, f"value of {result.column!r}")
            return result.of(alg.FilterValues(values, test), validity=None)
    tests = literal_tests(condition.op, text, result.kinds or NUMBERS).conditions
    return result.of(alg.FilterValues(values, alg.any_of(tests or [alg.Compare(condition.op, collapse(text))])), validity=None)


# -- comparisons, conditionals, arithmetic -----------------------------------------------------------


def apply(name: str, arguments: Sequence[alg.Values | alg.Scalar], **options: str) -> alg.Apply:
    """Return a native function with its options sorted."""
    return alg.Apply(name, tuple(arguments), tuple(sorted(options.items())))


def _options(call: Application) -> dict[str, str]:
    result = {name: value.text for name, value in call.options.items() if isinstance(value, Literal)}
    if len(result) < len(call.options):
        raise PlanError(f"the options of {call.function} are texts", span=call.span)
    return result


def lower_compare(lowering: Lowering, call: Application) -> Result:
    """Lower a comparison, or the arithmetic that its operator means."""
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
        left, right = _size_of(lowering, left), _size_of(lowering, right)
    return comparison(lowering, left, right, operator, bare=False)  # type: ignore[arg-type]


def _size_of(lowering: Lowering, result: Result) -> Result:
    """Replace a set by its size; a number stays."""
    if result.is_scalar or result.literal is not None:
        return result
    lowering.context.remark("sets are compared by how many members they have")
    members = result.node if isinstance(result.node, alg.Entities) else lowering.as_bag(result)
    return result.of(alg.Count(members), kinds=NUMBERS, table=None)


def comparison(lowering: Lowering, left: Result, right: Result, operator: alg.Operator, *, bare: bool) -> Result:
    """Return the winner of a comparison, a word for it, or its truth, as the target type requires.

    The winner is named by the constant that led to it. A bare comparison is a truth value unless the
    target type asks for a name; one with a constant on one side always is.
    """
    sides = [lowering.as_bag(left), lowering.as_bag(right)]
    target = fold(lowering.context.target_type or "")
    words = _word_pair(target)
    if words is not None:
        return Result(apply("compare", sides, mode="words", words=words, operator=operator), kinds=TEXTS)
    names = [_winner(lowering, item, other) for item, other in ((left, right), (right, left))]
    truth = asks_truth(target) or operator in ("=", "!=") or (left.literal is None) != (right.literal is None)
    if truth or (bare and (not target or names[0] is None or names[1] is None)):
        return Result(apply("relation", sides, operator=operator), kinds=TEXTS)
    side_names = [name if name is not None else side for name, side in zip(names, sides, strict=True)]
    return Result(apply("compare", [*sides, *side_names], operator=operator), kinds=TEXTS)


_PAIRS: Final = ("more/less", "above/below", "before/after", "higher/lower", "longer/shorter", "earlier/later", "greater/less")


def _word_pair(target: str) -> str | None:
    """Return the pair of words that a target type asks for, as "more/less", or None."""
    if "comparison" in target:
        return "more/less"
    words = set("".join(c if c.isalnum() else " " for c in target).split())
    for pair in _PAIRS:
        if set(pair.split("/")) <= words:
            # "Before" and "earlier" mean the smaller value.
            return pair
    return None


def asks_truth(target: str | None) -> bool:
    """Whether a target type asks for yes or no."""
    words = set("".join(c if c.isalnum() else " " for c in (target or "").casefold()).split())
    return bool(words & {"yes", "no", "boolean", "bool", "true", "false"})


def _winner(lowering: Lowering, one: Result, other: Result) -> alg.Values | None:
    """Return the name of a side: the last constant that led to it and not to the other side."""
    if one.literal is not None:
        return given(collapse(one.literal.text))
    names = [name for name in one.led if name not in other.led] or list(one.led)
    return given(*names[-1:]) if names else None


def lower_equal(lowering: Lowering, call: Application) -> Result:
    """Lower tests of equality, membership and existence."""
    return Result(apply(call.function, [lowering.as_bag(item) for item in _each(lowering, call)]), kinds=TEXTS)


def _each(lowering: Lowering, call: Application) -> list[Result]:
    """Lower each operand; a list is one operand."""
    result: list[Result] = []
    for operand in call.operands:
        if isinstance(operand, Items):
            results = [lowering.evaluate(item) for item in operand.items]
            result.append(
                Result(alg.Concat(tuple(lowering.as_bag(member) for member in results)), led=results[0].led if results else ())
            )
        else:
            result.append(lowering.evaluate(operand))
    return result


def lower_conditional(lowering: Lowering, call: Application) -> Result:
    """Lower a conditional."""
    if len(call.operands) == 1:
        return lowering.evaluate(call.operands[0])
    branches = [lowering.evaluate(operand) for operand in call.operands[1:]]
    test = lowering.truth(call.operands[0])
    led = tuple(dict.fromkeys(name for branch in branches for name in branch.led))
    model = branches[0]
    same = all(branch.table == model.table and branch.carried and not branch.is_entities for branch in branches)
    bags = [lowering.as_bag(branch) for branch in branches] or [given("yes")]
    node = alg.Choose(test, bags[0], bags[1] if len(bags) > 1 else given())
    if same and branches:
        return Result(node, model.table, model.sources, model.column, model.kinds, led, carried=True)
    return Result(node, kinds=model.kinds if branches else TEXTS, led=led)


def lower_native(lowering: Lowering, call: Application) -> Result:
    """Lower a function of numbers or texts."""
    arguments = [lowering.as_bag(item) for item in _each(lowering, call)]
    options = _options(call)
    kinds = TEXTS if call.function == "split" else NUMBERS
    return Result(apply(call.function, arguments, **options), kinds=kinds)


def lower_part(lowering: Lowering, call: Application) -> Result:
    """Lower extract_year and the like; the result keeps the constants that led to the value."""
    result = lowering.column_values(lowering.evaluate(call.operands[0]), call.function)
    kinds = {(Kind.TIME, "1"): 1} if call.function == "extract_year" else NUMBERS
    return Result(apply(call.function, [lowering.as_bag(result)]), kinds=kinds, led=result.led)


def literal_value(text: str) -> Value:
    """Return a literal of an expression as a value: a number, a time, or else text."""
    quantity = read_quantity(text)
    if quantity is not None:
        return quantity
    times: list[Time] = read_times(text)
    return times[0] if times else collapse(text)


# -- aggregates, positions, external functions -------------------------------------------------------


#: Functions that take a text together with a result.
_COMPARING: Final = frozenset(("equal", "is_in", "compare", "set_difference", "keep", "if"))


def complain_of_outputs(lowering: Lowering, call: Application) -> None:
    """Raise `UnknownNameError` for a text that means an output ('query1') in the place of a result.

    As a plain text it would become the answer. In functions that also take a result, it may be a value
    to compare with.
    """
    if any(isinstance(operand, OutputRef) for operand in call.operands) and call.function in _COMPARING:
        return
    for item in call.operands:
        if not isinstance(item, Literal) or (match := AN_OUTPUT.fullmatch(item.text.strip())) is None:
            continue
        if any(query.label == match[1] for query in lowering.program.queries) and not lowering.context.schema.has_entity(
            collapse(item.text)
        ):
            raise UnknownNameError(
                "output", item.text, candidates=[f"output_of_query{match[1]}"], span=item.span,
                hint=f"write output_of_query{match[1]}",
            )  # fmt: skip


def lower_foreign(lowering: Lowering, call: Foreign) -> Result:
    """Lower a call of an external function; raises an error with the nearest names if there is none."""
    function: Any = lowering.context.llm_function
    names: tuple[str, ...] = ()
    if isinstance(function, Mapping):
        names = tuple(function)
        function = {fold(name): item for name, item in function.items()}.get(fold(call.call.name))
    if function is None:
        error = call.error()
        error.candidates = tuple(dict.fromkeys((*nearest(call.call.name, names), *error.candidates)))
        error.hint = "llm_function= answers such functions with a language model"
        if is_time_function(call.call.name):
            supported = "of times there are extract_year, extract_month, extract_day, difference and duration"
            error.hint = f"{supported}; {error.hint}"
        raise error
    if not callable(function):
        accepted = "a callable of a name, the texts of each argument, and options, or of one FunctionCall"
        raise OptionError(f"llm_function is {accepted}; or maps names to such")
    results = [lowering.evaluate(argument.value) for argument in call.call.arguments]
    arguments = tuple(map(lowering.as_bag, results))
    options = tuple((f"argument {at}", argument.name) for at, argument in enumerate(call.call.arguments, 1) if argument.name)
    if not takes_call(function):
        return Result(alg.External(call.call.name, remembering(function), arguments, options), kinds=TEXTS)
    about = tuple(related_facts for pair in zip(results, arguments, strict=True) if (related_facts := _about(*pair)) is not None)
    return Result(alg.External(call.call.name, remembering(function), arguments, options, about, lowering.asked), kinds=TEXTS)


def _about(result: Result, bag: alg.Values) -> alg.Facts | None:
    """Return the facts of the rows that carry an argument, or None."""
    if isinstance(bag, alg.Objects):
        carriers: alg.Entities = alg.Reached(alg.OtherEnd(bag.facts, "subject"))
    elif isinstance(bag, alg.Names):
        carriers = bag.entities
    elif result.is_entities or result.carried:
        carriers = alg.SubjectsOf(bag)
    else:
        return None
    return alg.Scan(carriers, None, "subject", "subject", "any", result.table)


# -- aggregates ------------------------------------------------------------------------------------


def count(lowering: Lowering, call: Application) -> Result:
    """Lower a count of members, or of distinct values."""
    result = lowering.evaluate(call.operands[0])
    if "distinct" in call.options and result.is_rows:
        result = lowering.column_values(result, "count")
    if isinstance(result.node, alg.Entities):
        return Result(alg.Count(result.node), kinds=NUMBERS, led=result.led)
    return Result(alg.Count(lowering.as_bag(result)), kinds=NUMBERS, led=result.led)


def _bag_of_all(lowering: Lowering, call: Application) -> Result:
    """Concatenate the operands as values; rows give their column."""
    results = [lowering.column_values(item, call.function) for item in operands_of(lowering, call)]
    if len(results) == 1:
        return results[0]
    model = next((result for result in results if result.literal is None), results[0])
    parts = tuple(bag_like(lowering, result, model) if result.literal is not None else as_values(result) for result in results)
    led = tuple(dict.fromkeys(name for result in results for name in result.led))
    carried = all(result.carried for result in results)
    return Result(alg.Concat(parts), model.table, model.sources, model.column, model.kinds, led, carried=carried)


def total(kind: type[alg.Sum | alg.Mean | alg.Median | alg.Deviation]) -> Rule:
    """Return the rule of an aggregate of numbers."""

    def rule(lowering: Lowering, call: Application) -> Result:
        result = _bag_of_all(lowering, call)
        return Result(kind(as_values(result)), kinds=NUMBERS, led=result.led, column=result.column)

    return rule


def extreme(direction: alg.Direction) -> Rule:
    """Return the rule of the largest or smallest value."""

    def rule(lowering: Lowering, call: Application) -> Result:
        result = _bag_of_all(lowering, call)
        return result.of(alg.Extreme(_bounded(result, direction), direction), validity=None)

    return rule


def _bounded(result: Result, direction: alg.Direction) -> alg.Values:
    """Return values with times replaced by the deciding end: the earliest start, or the latest end."""
    part: Literal_["start", "end"] = "start" if direction == "smallest" else "end"
    if result.validity is not None:
        return alg.Validity(result.validity, part)
    values = as_values(result)
    if isinstance(values, (alg.Clip, alg.Concat)) and any(kind is Kind.TIME for kind, _ in result.kinds) and result.table is None:
        return alg.Bound(values, part)
    return values


def most_frequent(direction: alg.Direction) -> Rule:
    """Return the rule of the most or least frequent values."""

    def rule(lowering: Lowering, call: Application) -> Result:
        result = lowering.column_values(lowering.evaluate(call.operands[0]), call.function)
        return result.of(alg.Distinct(alg.Mode(as_values(result), direction)), validity=None)

    return rule


def carriers(direction: alg.Direction) -> Rule:
    """Return the rule of the rows or entities with the largest or smallest value."""

    def rule(lowering: Lowering, call: Application) -> Result:
        result = lowering.column_values(lowering.evaluate(call.operands[0]), call.function)
        if not result.carried:
            hint = "max gives the value itself"
            raise PlanError(f"{call.function} takes values that rows or entities have", span=call.span, hint=hint)
        return result.of(alg.SubjectsOf(alg.Extreme(_bounded(result, direction), direction)), validity=None)

    return rule


# -- rows and places -------------------------------------------------------------------------------


def neighbour(distance: int) -> Rule:
    """Return the rule of the row at a distance, in the same table."""

    def rule(lowering: Lowering, call: Application) -> Result:
        result = lowering.evaluate(call.operands[0])
        table = result.table or lowering.context.table_scope or lowering.context.scope
        if table is None or not lowering.context.is_table(table):
            raise PlanError(f"{call.function} takes table rows, and these are not", span=call.span)
        return result.of(alg.Neighbour(lowering.entities(result, table, ()), distance), table=table, validity=None)

    return rule


def row_number(lowering: Lowering, call: Application) -> Result:
    """Lower the positions of rows in their table, from 1."""
    result = lowering.evaluate(call.operands[0])
    if result.table is None:
        raise PlanError("row_number takes table rows, and these are not", span=call.span)
    rows = lowering.entities(result, result.table, ())
    return Result(alg.RowNumbers(rows), result.table, result.sources, None, NUMBERS, result.led, carried=True)


def position(place: int) -> Rule:
    """Return the rule of the member at a position in order."""
    return lambda lowering, call: nth(lowering, lowering.evaluate(call.operands[0]), place)


def nth(lowering: Lowering, result: Result, place: int) -> Result:
    """Return the member at a position: rows in table order, sorted values in their order."""
    if isinstance(result.node, alg.Entities):
        if result.table is not None:
            return result.of(alg.SubjectsOf(alg.Nth(alg.RowNumbers(result.node), place, "ascending")), empty=result.empty)
        return result.of(alg.Referents(alg.Nth(alg.Names(result.node), place, "ascending")))
    order = result.order or "row"
    if order != "row":
        _warn_mixed(lowering, result, "sort")
    return result.of(alg.Nth(lowering.as_bag(result), place, order), validity=None)  # type: ignore[arg-type]


def _warn_mixed(lowering: Lowering, result: Result, what: str) -> None:
    """Warn if values of incomparable types or units are ordered, since positions mean little then."""
    kinds = {(Kind.TEXT if kind is Kind.ENTITY else kind, unit) for kind, unit in result.kinds if kind is not Kind.UNKNOWN}
    if len(kinds) > 1:
        lowering.context.warn(
            f"{what}: the values are of {len(kinds)} types or units, which do not compare: numbers stand unit by unit, "
            "then times, texts last"
        )


def sort(lowering: Lowering, call: Application) -> Result:
    """Record the order that first, last and [n] use."""
    result = lowering.column_values(lowering.evaluate(call.operands[0]), "sort")
    word = call.options.get("order")
    text = word.text.casefold() if isinstance(word, Literal) else "ascending"
    order = "descending" if text.startswith(("desc", "high", "larg", "false")) else "ascending"
    lowering.context.remark("an answer has its own order; sort decides only what first, last and [n] mean")
    if order == "descending":
        lowering.descending = result.node
    return result.of(result.node, order=order)


def nth_highest(lowering: Lowering, call: Application) -> Result:
    """Lower the n-th largest value."""
    result = lowering.column_values(lowering.evaluate(call.operands[0]), call.function)
    word = call.options.get("n")
    number = read_quantity(word.text) if isinstance(word, Literal) else None
    if number is None or not isinstance(number.number, int) or number.number < 1:
        raise PlanError("nth_highest needs n, a whole number from 1", span=call.span)
    if number.number == 1:
        return result.of(alg.Extreme(_bounded(result, "largest"), "largest"), validity=None)
    _warn_mixed(lowering, result, "nth_highest")
    return result.of(alg.Nth(as_values(result), number.number - 1, "descending"), validity=None)


def unique(lowering: Lowering, call: Application) -> Result:
    """Lower distinct members."""
    result = lowering.evaluate(call.operands[0])
    return result if result.is_entities else result.of(alg.Distinct(lowering.as_bag(result)))
