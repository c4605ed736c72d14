"""Lowering of functions over the results of earlier lines, and of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
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
    Group,
    Having,
    Limit,
    Mean,
    Median,
    Mode,
    Names,
    Neighbour,
    Nth,
    Objects,
    Order,
    OtherEnd,
    Reached,
    Referents,
    RowNumbers,
    Scan,
    SubjectsOf,
    Sum,
    Table,
    Validity,
    Values,
    postorder,
)
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.algebra.constructors import reached
from condgraph.engine.errors import OptionError, ParseError, PlanError, UnknownNameError, nearest
from condgraph.engine.external import remembering, takes_call
from condgraph.engine.values import Kind, collapse
from condgraph.languages.literals import is_time_function
from condgraph.languages.llm.bound import Application, Foreign
from condgraph.languages.llm.lower.native import lower_compare, lower_conditional, lower_equal, lower_native, lower_part
from condgraph.languages.llm.lower.quantities import read_quantity
from condgraph.languages.llm.lower.results import NUMBERS, TEXTS, Result, as_values
from condgraph.languages.llm.lower.sets import bag_like, lower_keep, lower_negation, lower_set, operands_of
from condgraph.languages.llm.syntax.tokens import AN_OUTPUT
from condgraph.languages.llm.syntax.tree import Comparison, Expression, Items, Literal, OutputRef
from condgraph.languages.parameters import Given
from condgraph.languages.table.clause import parse_part
from condgraph.languages.table.columns import Columns
from condgraph.languages.table.tree import SYNONYMS, Binary, Call, Path, Step, Text
from condgraph.languages.table.tree import Comparison as Compared
from condgraph.languages.table.tree import Expression as Cell
from condgraph.languages.table.words import title
from condgraph.names.vocabulary import Vocabulary, resolve
from condgraph.vectors.encoders import fold

if TYPE_CHECKING:
    from condgraph.languages.llm.lower.query import Lowering


# -- tables ------------------------------------------------------------------------------------------
# Functions of LLM queries that make tables: groups, tests of them, their order, a part of them.
#
# Names of columns are looked up as everywhere in LLM queries: exactly, without case, then the
# nearest, with a warning. A table is the end of a program, or is tested, ordered and cut further.


Rule = Callable[["Lowering", Application], Result]
#: Functions that take a set, as what they mean of a table.
_LARGEST: Final = frozenset(("max", "argmax", "most"))
_SMALLEST: Final = frozenset(("min", "argmin", "least"))


def on_table(lowering: Lowering, call: Application) -> Rule | None:
    """What a function of sets means where it is given a table; None for everything else."""
    if len(call.operands) != 1 or not isinstance(call.operands[0], OutputRef):
        return None
    if not isinstance(lowering.evaluate(call.operands[0]).node, Table):
        return None
    if call.function == "sort":
        return lower_order
    return _best if call.function in _LARGEST | _SMALLEST else None


# -- making ----------------------------------------------------------------------------------------


def lower_group(lowering: Lowering, call: Application) -> Result:
    """group_by(set, key, aggregate, of): one row a group."""
    result = lowering.evaluate(call.operands[0])
    given = dict(zip(("key", "aggregate", "of"), call.operands[1:], strict=False)) | dict(call.options)
    rows = _rows(lowering, result, call)
    columns = Columns(rows, lowering.context.schema)
    keys = [_path(lowering, result, text) for text in _texts(given.get("key"))]
    if not keys and result.column is not None and not isinstance(result.node, Entities):
        keys = [Path((Step(result.column),))]
    if not keys:
        raise PlanError(
            "group_by needs a key", span=call.span, hint="group_by(set='output_of_query1', key='country', aggregate='count')"
        )
    of = [_path(lowering, result, text) for text in _texts(given.get("of"))]
    if not of and result.column is not None and Path((Step(result.column),)) not in keys:
        of = [Path((Step(result.column),))]
    measures: list[ex.Measure] = []
    for text in _texts(given.get("aggregate")) or ["count"]:
        measures += _measures(lowering, columns, result, text, of, call)
    names = _each_name([*map(title, keys), *(measure.name for measure in measures)])
    by = tuple([ex.Key(name, columns.expression(key)) for name, key in zip(names, keys, strict=False)])
    shown = tuple([replace(measure, name=name) for name, measure in zip(names[len(keys) :], measures, strict=True)])
    return Result(Group(rows, tuple(columns.facts), tuple(columns.values), by, shown), led=result.led, span=call.span)


def _measures(
    lowering: Lowering, columns: Columns, result: Result, text: str, of: list[Path], call: Application
) -> list[ex.Measure]:
    """What a model writes for an aggregate: a function, of the columns that are named beside it, or
    in parentheses.
    """
    _no_parameter(text, "an aggregate", call)
    if "(" in text:
        try:
            found = parse_part(text, "show")
        except ParseError as error:
            raise PlanError(f"aggregate {text!r}: {error.message}", span=call.span, hint=error.hint) from None
        return [_named(columns, _looked_up(lowering, result, column.of)) for column in found]
    function = text.strip().casefold().replace(" ", "_")
    function = SYNONYMS.get(function, function)
    if function not in ex.FUNCTIONS:
        known = (*ex.FUNCTIONS, *SYNONYMS)
        hint = f"known: {', '.join(ex.FUNCTIONS)}"
        raise UnknownNameError("aggregate", text, candidates=nearest(function, known), span=call.span, hint=hint)
    number = _number(call, "n") if function in ("top", "bottom") else None
    if function == "count" or not of:
        return [_named(columns, Call(function, None, number))]
    return [_named(columns, Call(function, path, number)) for path in of]


def _named(columns: Columns, of: Cell) -> ex.Measure:
    if not columns.is_sum(of):
        raise PlanError(f"{title(of)!r} sums no group up", hint=f"known: {', '.join(ex.FUNCTIONS)}")
    return replace(columns.measure(of), name=title(of))


def _looked_up(lowering: Lowering, result: Result, of: Cell) -> Cell:
    """An expression with the names of its paths looked up."""
    if isinstance(of, Path):
        return _path(lowering, result, ".".join(step.name for step in of.steps)) if of.steps and of.qualifier is None else of
    if isinstance(of, Call):
        return replace(of, of=None if of.of is None else _looked_up(lowering, result, of.of))
    if isinstance(of, Binary):
        return replace(of, left=_looked_up(lowering, result, of.left), right=_looked_up(lowering, result, of.right))
    return of


def _rows(lowering: Lowering, result: Result, call: Application) -> Entities:
    """The rows of a set: itself, or what carries its values."""
    node = result.node
    if isinstance(node, Entities):
        return node
    if isinstance(node, Facts):
        return reached(node)
    if isinstance(node, Names):
        return node.entities
    if isinstance(node, Table):
        as_values(result)
    if not result.carried:
        raise PlanError(f"{call.function} takes rows or entities, and these values are of none", span=call.span)
    lowering.context.remark(f"{call.function} takes the rows that have these values")
    return SubjectsOf(as_values(result))


def _path(lowering: Lowering, result: Result, text: str) -> Path:
    """A column as a model names it, or several with dots between."""
    context = lowering.context
    if isinstance(text, Given) or context.find_predicates(text, result.table) or "." not in text:
        return Path((_step(lowering, text, result.table),))
    first, *others = text.split(".")
    return Path((_step(lowering, first, result.table), *(_step(lowering, one, None) for one in others)))


def _step(lowering: Lowering, text: str, source: str | None) -> Step:
    # What is given for a parameter is a name, and so is what a column is called.
    is_name = isinstance(text, Given) or bool(lowering.context.find_predicates(text, source))
    backward = not is_name and text.strip().startswith("^")
    found = lowering.context.predicates(Literal(text.strip().lstrip("^") if backward else text), source, "column")
    if len(found) > 1:
        lowering.context.warn(f"column {text!r} may be {' or '.join(map(repr, found))}: the first is taken")
    return Step(found[0] if found else text, backward)


# -- tables of tables ------------------------------------------------------------------------------


def lower_having(lowering: Lowering, call: Application) -> Result:
    """having(set, condition): the rows that it holds of."""
    result = lowering.evaluate(call.operands[0])
    if not isinstance(result.node, Table):
        hint = "it comes after group_by; get_information(..., tail_entity>'5') tests rows"
        raise PlanError("having tests a table of groups, and this is none", span=call.span, hint=hint)
    group, table = _group(result.node), result.node
    columns = Columns(group.of, lowering.context.schema)
    for test in call.operands[1:]:
        table = Having(table, columns.test(_test(group, test, call), lambda of: _column(lowering, group, title(of), call)))
    return result.of(table)


def _test(group: Group, test: Expression, call: Application) -> Any:
    if isinstance(test, Comparison):
        if not isinstance(test.right, Literal):
            raise PlanError("having compares with a literal", span=call.span)
        key = next(iter(_texts(call.options.get("key"))), _names(group)[-1])
        return Compared(Path((Step(key),)), test.op, (Text(test.right.text),))
    if isinstance(test, Literal):
        _no_parameter(test.text, "a condition", call)
        try:
            return parse_part(test.text, "having")
        except ParseError as error:
            raise PlanError(f"condition {test.text!r}: {error.message}", span=call.span, hint=error.hint) from None
    raise PlanError("a condition is a text", span=call.span, hint="having(set='output_of_query2', condition='count > 5')")


def lower_order(lowering: Lowering, call: Application) -> Result:
    """order_by(set, key, order): a table in order; rows become one."""
    key = call.options.get("key", call.operands[1] if len(call.operands) > 1 else None)
    return _ordered(lowering, call, key, descending=_descending(call))


def lower_limit(lowering: Lowering, call: Application) -> Result:
    """limit(set, n): so many rows, in the order they stand in."""
    result = _as_table(lowering, call, [])
    number = _number(call, "n", 1)
    assert isinstance(result.node, Table)
    return result.of(Limit(result.node, number, _number(call, "offset", None, 0)))


def lower_top(lowering: Lowering, call: Application) -> Result:
    """top(set, n, key), bottom(set, n, key): the largest or smallest in order."""
    others = list(call.operands[1:])
    number = _number(call, "n", 1, 1)
    if "n" not in call.options and others:
        others.pop(0)
    key = call.options.get("key", others[0] if others else None)
    result = _ordered(lowering, call, key, descending=call.function == "top")
    assert isinstance(result.node, Table)
    return result.of(Limit(result.node, number))


def _best(lowering: Lowering, call: Application) -> Result:
    """The rows of a table with the largest or smallest last column, all ties."""
    result = _ordered(lowering, call, None, descending=call.function in _LARGEST)
    assert isinstance(result.node, Table)
    return result.of(Limit(result.node, 1, ties=True))


def _ordered(lowering: Lowering, call: Application, key: Expression | None, *, descending: bool) -> Result:
    wanted = _texts(key)
    result = _as_table(lowering, call, wanted)
    assert isinstance(result.node, Table)
    group = _group(result.node)
    places = [_column(lowering, group, text, call) for text in wanted] or [len(_names(group)) - 1]
    return result.of(Order(result.node, tuple([ex.By(place, descending) for place in places])))


def _as_table(lowering: Lowering, call: Application, wanted: list[str]) -> Result:
    """A table as it is; rows as one with their column used last, and those wanted."""
    result = lowering.evaluate(call.operands[0])
    if isinstance(result.node, Table):
        return result
    rows = _rows(lowering, result, call)
    columns = Columns(rows, lowering.context.schema)
    paths = [_path(lowering, result, text) for text in wanted]
    if not paths and (result.column is not None or result.table is not None):
        column = result.column or lowering.shown_column(result)
        paths = [] if column is None else [Path((Step(column),))]
    cells: list[tuple[str, ex.Expression]] = []
    if result.table is None:
        cells.append(("self", columns.expression(Path(()))))
    else:
        shown = lowering.shown_column(result)
        paths = [*([Path((Step(shown),))] if shown is not None else []), *paths]
    cells += [(title(path), columns.expression(path)) for path in dict.fromkeys(paths)]
    measures = tuple([ex.Measure(name, "values", of) for name, of in cells])
    return Result(Group(rows, tuple(columns.facts), tuple(columns.values), (), measures, each=True), led=result.led, span=call.span)


# -- parts -----------------------------------------------------------------------------------------


def _group(table: Table) -> Group:
    return next(node for node in reversed(postorder(table)) if isinstance(node, Group))


def _names(group: Group) -> list[str]:
    return [*(key.name for key in group.keys), *(measure.name for measure in group.measures)]


def _column(lowering: Lowering, group: Group, text: str, call: Application) -> int:
    """The place of a column: by its name, without case, by the function of its measure, else the
    nearest.
    """
    names = _names(group)
    if text in names:
        return names.index(text)
    wanted = fold(text.removesuffix("()"))
    function = SYNONYMS.get(wanted, wanted)
    of_function = [at for at, one in enumerate(group.measures, len(group.keys)) if one.function == function]
    same = [at for at, name in enumerate(names) if fold(name) == wanted]
    inside = [at for at, name in enumerate(names) if fold(name).split("(")[-1].rstrip(")").strip() == wanted]
    for fits in (same, of_function, inside):
        if len(fits) == 1:
            return fits[0]
    found = resolve(text, Vocabulary(names))
    if len(found.matches) != 1:
        raise UnknownNameError("column", text, candidates=names, span=call.span, hint=f"the columns are: {', '.join(names)}")
    lowering.context.near("column", text, found.matches)
    return names.index(found.matches[0].name)


def _texts(expression: Expression | None) -> list[str]:
    """The names that an argument has: one, or several in a list."""
    if expression is None:
        return []
    if isinstance(expression, Items):
        return [text for item in expression.items for text in _texts(item)]
    if isinstance(expression, Literal):
        return [expression.text] if expression.text.strip() else []
    raise PlanError("a name belongs here, not the output of a query", span=expression.span)


def _no_parameter(text: str, what: str, call: Application) -> None:
    """Raises `ParseError` for what is given for a parameter, where words of the language belong."""
    if isinstance(text, Given):
        hint = "having(set='output_of_query2', count > $least)" if call.function == "having" else None
        raise ParseError(f"${text.parameter} stands for {what}, and a parameter is a name or a value", span=call.span, hint=hint)


def _number(call: Application, option: str, place: int | None = None, otherwise: int | None = None) -> int:
    """A whole number from an option, or from an operand."""
    given = call.options.get(option)
    if given is None and place is not None and len(call.operands) > place:
        given = call.operands[place]
    found = read_quantity(given.text) if isinstance(given, Literal) else None
    if found is None and given is None and otherwise is not None:
        return otherwise
    if found is None or not isinstance(found.number, int) or found.number < 0:
        raise PlanError(f"{call.function} needs {option}, a whole number", span=call.span, hint=f"{call.function}(set='...', n=3)")
    return found.number


def _descending(call: Application) -> bool:
    word = call.options.get("order")
    return isinstance(word, Literal) and word.text.casefold().startswith(("desc", "high", "larg"))


def _each_name(names: list[str]) -> list[str]:
    """Names of columns that are all different."""
    found: list[str] = []
    for name in names:
        number = 2
        fresh = name
        while fresh in found:
            fresh, number = f"{name} {number}", number + 1
        found.append(fresh)
    return found


# -- apply -------------------------------------------------------------------------------------------


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


def _of_numbers(kind: type[Sum] | type[Mean] | type[Median]) -> Rule:
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
    "sum": _of_numbers(Sum),
    "mean": _of_numbers(Mean),
    "median": _of_numbers(Median),
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
