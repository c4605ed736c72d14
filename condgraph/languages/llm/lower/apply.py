"""The other functions of LLM queries lowered: sets, aggregates, rows, choice, and the native
functions that `Apply` runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from typing import Literal as Literal_

from condgraph.engine.algebra import (
    Bound,
    Clip,
    Concat,
    Count,
    Direction,
    Distinct,
    Entities,
    External,
    Extreme,
    Facts,
    Mean,
    Median,
    Mode,
    Names,
    Neighbour,
    Nth,
    Objects,
    OtherEnd,
    Reached,
    Referents,
    RowNumbers,
    Scan,
    SubjectsOf,
    Sum,
    Validity,
    Values,
)
from condgraph.engine.errors import OptionError, PlanError, UnknownNameError, nearest
from condgraph.engine.outside import remembering, takes_call
from condgraph.engine.values import Kind, collapse
from condgraph.languages.literals import is_time_function
from condgraph.languages.llm.bound import Application, Foreign
from condgraph.languages.llm.lower.native import lower_compare, lower_conditional, lower_equal, lower_native, lower_part
from condgraph.languages.llm.lower.quantities import read_quantity
from condgraph.languages.llm.lower.results import NUMBERS, TEXTS, Result, as_values
from condgraph.languages.llm.lower.sets import bag_like, lower_keep, lower_negation, lower_set, operands_of
from condgraph.languages.llm.lower.tables import lower_group, lower_having, lower_limit, lower_order, lower_top, on_table
from condgraph.languages.llm.syntax.tokens import AN_OUTPUT
from condgraph.languages.llm.syntax.tree import Literal, OutputRef
from condgraph.vectors.encoder import fold

if TYPE_CHECKING:
    from condgraph.languages.llm.lower.query import Lowering

Rule = Callable[["Lowering", Application], Result]
#: Functions that take a text beside a result.
_COMPARING: Final = frozenset(("equal", "is_in", "compare", "set_difference", "keep", "if"))


def lower_application(lowering: Lowering, call: Application) -> Result:
    """The operator of a bound call."""
    rule = on_table(lowering, call) or _RULES.get(call.function)
    if rule is None:
        raise PlanError(f"{call.function} has no meaning here", span=call.span)
    result = rule(lowering, call)
    return result.of(result.node, span=call.span)


def complain_of_outputs(lowering: Lowering, call: Application) -> None:
    """Complain of a text in the place of a result that names none but means one ('query1'): as a text it
    would be the answer. Beside a result it may be a value that it is compared with.
    """
    if any(isinstance(one, OutputRef) for one in call.operands) and call.function in _COMPARING:
        return
    for one in call.operands:
        if not isinstance(one, Literal) or (found := AN_OUTPUT.fullmatch(one.text.strip())) is None:
            continue
        if any(query.label == found[1] for query in lowering.program.queries) and not lowering.context.schema.has_entity(
            collapse(one.text)
        ):
            raise UnknownNameError(
                "output", one.text, candidates=[f"output_of_query{found[1]}"], span=one.span,
                hint=f"write output_of_query{found[1]}",
            )  # fmt: skip


def lower_foreign(lowering: Lowering, call: Foreign) -> Result:
    """A function that is not native: the one from outside, or an error with the nearest names."""
    function: Any = lowering.context.llm_function
    names: tuple[str, ...] = ()
    if isinstance(function, Mapping):
        names = tuple(function)
        function = {fold(name): one for name, one in function.items()}.get(fold(call.call.name))
    if function is None:
        error = call.error()
        error.candidates = tuple(dict.fromkeys((*nearest(call.call.name, names), *error.candidates)))
        error.hint = "llm_function= answers such functions with a language model"
        if is_time_function(call.call.name):
            there = "of times there are extract_year, extract_month, extract_day, difference and duration"
            error.hint = f"{there}; {error.hint}"
        raise error
    if not callable(function):
        known = "a callable of a name, the texts of each argument, and options, or of one FunctionCall"
        raise OptionError(f"llm_function is {known}; or maps names to such")
    results = [lowering.evaluate(argument.value) for argument in call.call.arguments]
    arguments = tuple(map(lowering.as_bag, results))
    options = tuple((f"argument {at}", argument.name) for at, argument in enumerate(call.call.arguments, 1) if argument.name)
    if not takes_call(function):
        return Result(External(call.call.name, remembering(function), arguments, options), kinds=TEXTS)
    about = tuple(facts for pair in zip(results, arguments, strict=True) if (facts := _about(*pair)) is not None)
    return Result(External(call.call.name, remembering(function), arguments, options, about, lowering.asked), kinds=TEXTS)


def _about(result: Result, bag: Values) -> Facts | None:
    """The facts of the rows that carry an argument; None where nothing does."""
    if isinstance(bag, Objects):
        carriers: Entities = Reached(OtherEnd(bag.facts, "subject"))
    elif isinstance(bag, Names):
        carriers = bag.entities
    elif result.is_entities or result.carried:
        carriers = SubjectsOf(bag)
    else:
        return None
    return Scan(carriers, None, "subject", "subject", "any", result.table)


# -- aggregates ------------------------------------------------------------------------------------


def _count(lowering: Lowering, call: Application) -> Result:
    result = lowering.evaluate(call.operands[0])
    if "distinct" in call.options and result.is_rows:
        result = lowering.column_values(result, "count")
    if isinstance(result.node, Entities):
        return Result(Count(result.node), kinds=NUMBERS, led=result.led)
    return Result(Count(lowering.as_bag(result)), kinds=NUMBERS, led=result.led)


def _bag_of_all(lowering: Lowering, call: Application) -> Result:
    """The operands side by side, rows as their column."""
    results = [lowering.column_values(one, call.function) for one in operands_of(lowering, call)]
    if len(results) == 1:
        return results[0]
    model = next((one for one in results if one.literal is None), results[0])
    parts = tuple(bag_like(lowering, one, model) if one.literal is not None else as_values(one) for one in results)
    led = tuple(dict.fromkeys(name for one in results for name in one.led))
    carried = all(one.carried for one in results)
    return Result(Concat(parts), model.table, model.sources, model.column, model.kinds, led, carried=carried)


def _number(kind: type[Sum] | type[Mean] | type[Median]) -> Rule:
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
        return result.of(SubjectsOf(Extreme(_bounded(result, direction), direction)), validity=None)

    return rule


# -- rows and places -------------------------------------------------------------------------------


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
    """The member at a place: rows and their values in the order of the table, sorted ones as they
    were sorted.
    """
    if isinstance(result.node, Entities):
        if result.table is not None:
            return result.of(SubjectsOf(Nth(RowNumbers(result.node), place, "ascending")), empty=result.empty)
        return result.of(Referents(Nth(Names(result.node), place, "ascending")))
    order = result.order or "row"
    if order != "row":
        _warn_mixed(lowering, result, "sort")
    return result.of(Nth(lowering.as_bag(result), place, order), validity=None)  # type: ignore[arg-type]


def _warn_mixed(lowering: Lowering, result: Result, what: str) -> None:
    """Say where values are put in an order that do not compare: the place of one says little then."""
    kinds = {(Kind.TEXT if kind is Kind.ENTITY else kind, unit) for kind, unit in result.kinds if kind is not Kind.UNKNOWN}
    if len(kinds) > 1:
        lowering.context.warn(
            f"{what}: the values are of {len(kinds)} types or units, which do not compare: numbers stand unit by unit, "
            "times behind them, texts last"
        )


def _sort(lowering: Lowering, call: Application) -> Result:
    result = lowering.column_values(lowering.evaluate(call.operands[0]), "sort")
    word = call.options.get("order")
    text = word.text.casefold() if isinstance(word, Literal) else "ascending"
    order = "descending" if text.startswith(("desc", "high", "larg", "false")) else "ascending"
    lowering.context.remark("an answer has its own order; sort decides only what first, last and [n] mean")
    if order == "descending":
        lowering.descending = result.node
    return result.of(result.node, order=order)


def _nth_highest(lowering: Lowering, call: Application) -> Result:
    result = lowering.column_values(lowering.evaluate(call.operands[0]), call.function)
    word = call.options.get("n")
    number = read_quantity(word.text) if isinstance(word, Literal) else None
    if number is None or not isinstance(number.number, int) or number.number < 1:
        raise PlanError("nth_highest needs n, a whole number from 1", span=call.span)
    if number.number == 1:
        return result.of(Extreme(_bounded(result, "largest"), "largest"), validity=None)
    _warn_mixed(lowering, result, "nth_highest")
    return result.of(Nth(as_values(result), number.number - 1, "descending"), validity=None)


def _unique(lowering: Lowering, call: Application) -> Result:
    result = lowering.evaluate(call.operands[0])
    return result if result.is_entities else result.of(Distinct(lowering.as_bag(result)))


_RULES: Final[dict[str, Rule]] = {
    "set_union": lower_set,
    "set_intersection": lower_set,
    "set_difference": lower_set,
    "set_negation": lower_negation,
    "keep": lower_keep,
    "count": _count,
    "sum": _number(Sum),
    "mean": _number(Mean),
    "median": _number(Median),
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
    "group_by": lower_group,
    "having": lower_having,
    "order_by": lower_order,
    "limit": lower_limit,
    "top": lower_top,
    "bottom": lower_top,
    "nth_highest": _nth_highest,
    "compare": lower_compare,
    "equal": lower_equal,
    "is_in": lower_equal,
    "is_empty": lower_equal,
    "exists": lower_equal,
    "if": lower_conditional,
    "difference": lower_native,
    "duration": lower_native,
    "add": lower_native,
    "multiply": lower_native,
    "divide": lower_native,
    "percentage": lower_native,
    "abs": lower_native,
    "round": lower_native,
    "extract_year": lower_part,
    "extract_month": lower_part,
    "extract_day": lower_part,
    "extract_number": lower_part,
    "split": lower_native,
    "length": lower_native,
}
