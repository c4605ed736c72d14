"""Lowers the functions of LLM queries that make tables: groups, having, order, limit.

Names of columns are resolved as everywhere in LLM queries: exactly, ignoring case, then the nearest
with a warning. A table may be the answer, or be filtered, ordered and limited further.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import grouped as ex
from condgraph.engine.algebra.operators import reached
from condgraph.engine.errors import ParseError, PlanError, UnknownNameError, nearest
from condgraph.engine.values import fold
from condgraph.languages.llm.lower.context import Lowering, Result, Rule, as_values
from condgraph.languages.llm.lower.literals import read_quantity
from condgraph.languages.llm.syntax.tree import Application, Comparison, Expression, Items, Literal, OutputRef
from condgraph.languages.parameters import GivenText
from condgraph.languages.table.clause import parse_part
from condgraph.languages.table.columns import Columns
from condgraph.languages.table.tree import SYNONYMS, Binary, Call, Path, Step, Text, title
from condgraph.languages.table.tree import Comparison as Compared
from condgraph.languages.table.tree import Expression as Cell
from condgraph.names.vocabulary import Vocabulary, resolve

#: Functions of sets that choose the best rows of a table.
_MAX_WORDS: Final = frozenset(("max", "argmax", "most"))
_MIN_WORDS: Final = frozenset(("min", "argmin", "least"))


def on_table(lowering: Lowering, call: Application) -> Rule | None:
    """Return the rule of a set function that is applied to a table, or None."""
    if len(call.operands) != 1 or not isinstance(call.operands[0], OutputRef):
        return None
    if not isinstance(lowering.evaluate(call.operands[0]).node, alg.Table):
        return None
    if call.function == "sort":
        return lower_order
    return _extremes if call.function in _MAX_WORDS | _MIN_WORDS else None


# -- making ----------------------------------------------------------------------------------------


def lower_group(lowering: Lowering, call: Application) -> Result:
    """Lower group_by(set, key, aggregate, of): one row for each group."""
    result = lowering.evaluate(call.operands[0])
    arguments = dict(zip(("key", "aggregate", "of"), call.operands[1:], strict=False)) | dict(call.options)
    rows = _rows(lowering, result, call)
    columns = Columns(rows, lowering.context.schema)
    keys = [_path(lowering, result, text) for text in _texts(arguments.get("key"))]
    if not keys and result.column is not None and not isinstance(result.node, alg.Entities):
        keys = [Path((Step(result.column),))]
    if not keys:
        raise PlanError(
            "group_by needs a key", span=call.span, hint="group_by(set='output_of_query1', key='country', aggregate='count')"
        )
    measured = [_path(lowering, result, text) for text in _texts(arguments.get("of"))]
    if not measured and result.column is not None and Path((Step(result.column),)) not in keys:
        measured = [Path((Step(result.column),))]
    measures: list[ex.Measure] = []
    for text in _texts(arguments.get("aggregate")) or ["count"]:
        measures += _measures(lowering, columns, result, text, measured, call)
    names = _each_name([*map(title, keys), *(measure.name for measure in measures)])
    group_keys = tuple([ex.Key(name, columns.expression(key)) for name, key in zip(names, keys, strict=False)])
    shown = tuple([replace(measure, name=name) for name, measure in zip(names[len(keys) :], measures, strict=True)])
    return Result(alg.Group(rows, tuple(columns.facts), tuple(columns.values), group_keys, shown), led=result.led, span=call.span)


def _measures(
    lowering: Lowering, columns: Columns, result: Result, text: str, of: list[Path], call: Application
) -> list[ex.Measure]:
    """Return the measures of an aggregate as models write it.

    That is a function of the columns named separately, or a call such as "sum(price)".
    """
    _no_parameter(text, "an aggregate", call)
    if "(" in text:
        try:
            results = parse_part(text, "show")
        except ParseError as error:
            raise PlanError(f"aggregate {text!r}: {error.message}", span=call.span, hint=error.hint) from None
        return [_aggregate(columns, _resolved(lowering, result, column.of)) for column in results]
    function = text.strip().casefold().replace(" ", "_")
    function = SYNONYMS.get(function, function)
    if function not in ex.FUNCTIONS:
        known = (*ex.FUNCTIONS, *SYNONYMS)
        hint = f"known: {', '.join(ex.FUNCTIONS)}"
        raise UnknownNameError("aggregate", text, candidates=nearest(function, known), span=call.span, hint=hint)
    number = _number(call, "n") if function in ("top", "bottom") else None
    if function == "count" or not of:
        return [_aggregate(columns, Call(function, None, number))]
    return [_aggregate(columns, Call(function, path, number)) for path in of]


def _aggregate(columns: Columns, of: Cell) -> ex.Measure:
    if not columns.is_sum(of):
        raise PlanError(f"{title(of)!r} sums no group up", hint=f"known: {', '.join(ex.FUNCTIONS)}")
    return replace(columns.measure(of), name=title(of))


def _resolved(lowering: Lowering, result: Result, of: Cell) -> Cell:
    """Return an expression with its columns resolved."""
    if isinstance(of, Path):
        return _path(lowering, result, ".".join(step.name for step in of.steps)) if of.steps and of.qualifier is None else of
    if isinstance(of, Call):
        return replace(of, of=None if of.of is None else _resolved(lowering, result, of.of))
    if isinstance(of, Binary):
        return replace(of, left=_resolved(lowering, result, of.left), right=_resolved(lowering, result, of.right))
    return of


def _rows(lowering: Lowering, result: Result, call: Application) -> alg.Entities:
    """Return the rows of a set, or the rows that carry its values."""
    node = result.node
    if isinstance(node, alg.Entities):
        return node
    if isinstance(node, alg.Facts):
        return reached(node)
    if isinstance(node, alg.Names):
        return node.entities
    if isinstance(node, alg.Table):
        as_values(result)
    if not result.carried:
        raise PlanError(f"{call.function} takes rows or entities, and these values are of none", span=call.span)
    lowering.context.remark(f"{call.function} takes the rows that have these values")
    return alg.SubjectsOf(as_values(result))


def _path(lowering: Lowering, result: Result, text: str) -> Path:
    """Return the path of a column as a model names it, perhaps with dots."""
    context = lowering.context
    if isinstance(text, GivenText) or context.find_predicates(text, result.table) or "." not in text:
        return Path((_step(lowering, text, result.table),))
    first, *further = text.split(".")
    return Path((_step(lowering, first, result.table), *(_step(lowering, part, None) for part in further)))


def _step(lowering: Lowering, text: str, source: str | None) -> Step:
    # A parameter's value is always a name, and so is the exact name of a column.
    is_name = isinstance(text, GivenText) or bool(lowering.context.find_predicates(text, source))
    backward = not is_name and text.strip().startswith("^")
    result = lowering.context.predicates(Literal(text.strip().lstrip("^") if backward else text), source, "column")
    if len(result) > 1:
        lowering.context.warn(f"column {text!r} may be {' or '.join(map(repr, result))}: the first is taken")
    return Step(result[0] if result else text, backward)


# -- tables of tables ------------------------------------------------------------------------------


def lower_having(lowering: Lowering, call: Application) -> Result:
    """Lower having(set, condition): filter the rows of a table."""
    result = lowering.evaluate(call.operands[0])
    if not isinstance(result.node, alg.Table):
        hint = "it comes after group_by; get_information(..., tail_entity>'5') tests rows"
        raise PlanError("having tests a table of groups, and this is none", span=call.span, hint=hint)
    group, table = _group(result.node), result.node
    columns = Columns(group.of, lowering.context.schema)
    for test in call.operands[1:]:
        table = alg.Having(table, columns.test(_test(group, test, call), lambda of: _column(lowering, group, title(of), call)))
    return result.of(table)


def _test(group: alg.Group, test: Expression, call: Application) -> Any:
    if isinstance(test, Comparison):
        if not isinstance(test.right, Literal):
            raise PlanError("having compares with a literal", span=call.span)
        key = next(iter(_texts(call.options.get("key"))), _column_names(group)[-1])
        return Compared(Path((Step(key),)), test.op, (Text(test.right.text),))
    if isinstance(test, Literal):
        _no_parameter(test.text, "a condition", call)
        try:
            return parse_part(test.text, "having")
        except ParseError as error:
            raise PlanError(f"condition {test.text!r}: {error.message}", span=call.span, hint=error.hint) from None
    raise PlanError("a condition is a text", span=call.span, hint="having(set='output_of_query2', condition='count > 5')")


def lower_order(lowering: Lowering, call: Application) -> Result:
    """Lower order_by(set, key, order); rows become a table."""
    key = call.options.get("key", call.operands[1] if len(call.operands) > 1 else None)
    return _ordered(lowering, call, key, descending=_descending(call))


def lower_limit(lowering: Lowering, call: Application) -> Result:
    """Lower limit(set, n): the first rows in the current order."""
    result = _as_table(lowering, call, [])
    number = _number(call, "n", 1)
    assert isinstance(result.node, alg.Table)
    return result.of(alg.Limit(result.node, number, _number(call, "offset", None, 0)))


def lower_top(lowering: Lowering, call: Application) -> Result:
    """Lower top(set, n, key) and bottom(set, n, key); rows without a key are not among them."""
    arguments = list(call.operands[1:])
    number = _number(call, "n", 1, 1)
    if "n" not in call.options and arguments:
        arguments.pop(0)
    key = call.options.get("key", arguments[0] if arguments else None)
    result = _ordered(lowering, call, key, descending=call.function == "top")
    assert isinstance(result.node, alg.Order)
    known = alg.Having(result.node.table, ex.CellTest(result.node.by[0].column, "known"))
    return result.of(alg.Limit(alg.Order(known, result.node.by), number))


def _extremes(lowering: Lowering, call: Application) -> Result:
    """Keep the rows of a table with the largest or smallest last column, including ties."""
    result = _ordered(lowering, call, None, descending=call.function in _MAX_WORDS)
    assert isinstance(result.node, alg.Table)
    return result.of(alg.Limit(result.node, 1, ties=True))


def _ordered(lowering: Lowering, call: Application, key: Expression | None, *, descending: bool) -> Result:
    key_names = _texts(key)
    result = _as_table(lowering, call, key_names)
    assert isinstance(result.node, alg.Table)
    group = _group(result.node)
    places = [_column(lowering, group, text, call) for text in key_names] or [len(_column_names(group)) - 1]
    return result.of(alg.Order(result.node, tuple([ex.OrderBy(place, descending) for place in places])))


def _as_table(lowering: Lowering, call: Application, wanted: list[str]) -> Result:
    """Return a table unchanged; rows become one with their shown, last used and wanted columns."""
    result = lowering.evaluate(call.operands[0])
    if isinstance(result.node, alg.Table):
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
    return Result(
        alg.Group(rows, tuple(columns.facts), tuple(columns.values), (), measures, each=True), led=result.led, span=call.span
    )


# -- parts -----------------------------------------------------------------------------------------


def _group(table: alg.Table) -> alg.Group:
    return next(node for node in reversed(alg.postorder(table)) if isinstance(node, alg.Group))


def _column_names(group: alg.Group) -> list[str]:
    return [*(key.name for key in group.keys), *(measure.name for measure in group.measures)]


def _column(lowering: Lowering, group: alg.Group, text: str, call: Application) -> int:
    """Return the index of a column: by name, ignoring case, by its aggregate function, else the nearest."""
    names = _column_names(group)
    if text in names:
        return names.index(text)
    folded_name = fold(text.removesuffix("()"))
    function = SYNONYMS.get(folded_name, folded_name)
    of_function = [at for at, item in enumerate(group.measures, len(group.keys)) if item.function == function]
    same_name = [at for at, name in enumerate(names) if fold(name) == folded_name]
    same_argument = [at for at, name in enumerate(names) if fold(name).split("(")[-1].rstrip(")").strip() == folded_name]
    for candidates in (same_name, of_function, same_argument):
        if len(candidates) == 1:
            return candidates[0]
    result = resolve(text, Vocabulary(names))
    if len(result.matches) != 1:
        raise UnknownNameError("column", text, candidates=names, span=call.span, hint=f"the columns are: {', '.join(names)}")
    lowering.context.near("column", text, result.matches)
    return names.index(result.matches[0].name)


def _texts(expression: Expression | None) -> list[str]:
    """Return the names in an argument: one, or several in a list."""
    if expression is None:
        return []
    if isinstance(expression, Items):
        return [text for item in expression.items for text in _texts(item)]
    if isinstance(expression, Literal):
        return [expression.text] if expression.text.strip() else []
    raise PlanError("a name belongs here, not the output of a query", span=expression.span)


def _no_parameter(text: str, what: str, call: Application) -> None:
    """Raise `ParseError` for a parameter in the place of words of the language."""
    if isinstance(text, GivenText):
        hint = "having(set='output_of_query2', count > $least)" if call.function == "having" else None
        raise ParseError(f"${text.parameter} stands for {what}, and a parameter is a name or a value", span=call.span, hint=hint)


def _number(call: Application, option: str, place: int | None = None, otherwise: int | None = None) -> int:
    """Return a whole number from an option or an operand."""
    argument = call.options.get(option)
    if argument is None and place is not None and len(call.operands) > place:
        argument = call.operands[place]
    result = read_quantity(argument.text) if isinstance(argument, Literal) else None
    if result is None and argument is None and otherwise is not None:
        return otherwise
    if result is None or not isinstance(result.number, int) or result.number < 0:
        raise PlanError(f"{call.function} needs {option}, a whole number", span=call.span, hint=f"{call.function}(set='...', n=3)")
    return result.number


def _descending(call: Application) -> bool:
    word = call.options.get("order")
    return isinstance(word, Literal) and word.text.casefold().startswith(("desc", "high", "larg"))


def _each_name(names: list[str]) -> list[str]:
    """Make the names of columns unique."""
    result: list[str] = []
    for name in names:
        number = 2
        fresh = name
        while fresh in result:
            fresh, number = f"{name} {number}", number + 1
        result.append(fresh)
    return result
