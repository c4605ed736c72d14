"""Operators over rows in the words of a query: the clause, condition or pattern as written. (`describe` has the
notation of plans.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, solutions
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.errors import shortened
from condgraph.engine.values import Quantity, Time, text_of

_MAX_LENGTH: Final = 300
#: Expressions that get parentheses within others.
_COMPOUND: Final = (ex.And, ex.Or, ex.Xor, ex.Not, ex.IsNull, ex.Comparison, ex.Arithmetic, ex.TextTest, ex.In)
#: The start and number of the slice into which a MATCH with an unknown label or type is lowered.
_NO_ROWS: Final = (0, 0)


def clause(node: Node, step: str) -> str | None:
    """Return the clause, condition or pattern of an operator over rows, within a step of the query; None for other
    operators, and for operators that lose no rows.

    >>> clause(alg.SliceRows(alg.Pattern(()), 10, 5), "RETURN"), clause(alg.ByName(("Nepal",)), "MATCH")
    ('SKIP 10 LIMIT 5', None)
    """
    if isinstance(node, solutions.Filter):
        return shortened(f"WHERE {expression(node.test)}", _MAX_LENGTH)
    if isinstance(node, solutions.SliceRows):
        if (node.start, node.number) == _NO_ROWS and step.endswith("MATCH"):
            return "a label or relationship type that the graph does not have"
        return " ".join(
            [*([f"SKIP {node.start}"] if node.start else []), *([] if node.number is None else [f"LIMIT {node.number}"])]
        )
    if isinstance(node, solutions.Unwind):
        if isinstance(node.expression, ex.Slice) and not variable(node.variable):
            return "SKIP or LIMIT of a subquery"
        if not variable(node.variable):
            return "the rows of the procedure"
        return shortened(f"UNWIND {expression(node.expression)} AS {variable(node.variable)}", _MAX_LENGTH)
    if isinstance(node, solutions.Pattern):
        parts = [*map(_pattern_text, node.statements), *map(_pattern_text, node.memberships)]
        return shortened(f"the pattern {', '.join(parts)}", _MAX_LENGTH)
    if isinstance(node, solutions.Path):
        return shortened(f"the path {_path(node)}", _MAX_LENGTH)
    if isinstance(node, solutions.EntityRows):
        return f"the nodes {_end(alg.Variable(node.variable))}"
    if isinstance(node, solutions.Join | solutions.SemiJoin):
        return "the rows before, joined with the pattern or subquery"
    if isinstance(node, solutions.Project):
        return shortened(f"the columns {', '.join(quoted(variable(new) or '_') for new, _ in node.names)}", _MAX_LENGTH)
    return None


def lost(node: Node, before: Sequence[int]) -> str | None:
    """Return why an operator over rows returned nothing, given the numbers of rows of its inputs; None for other
    operators.
    """
    if isinstance(node, solutions.Pattern):
        return "no nodes and relationships match all of it at once"
    if isinstance(node, solutions.Path):
        return "no path matches it"
    if not isinstance(node, alg.Solutions) or not before:
        return None
    rows = f"{before[0]:,} row{'' if before[0] == 1 else 's'}"
    if isinstance(node, solutions.Filter):
        return f"none of {rows} satisfies it"
    if isinstance(node, solutions.SliceRows):
        if (node.start, node.number) == _NO_ROWS:
            return "no row is left"
        return f"there {'is' if before[0] == 1 else 'are'} only {rows}"
    if isinstance(node, solutions.Unwind):
        if not variable(node.variable):
            return "no row is left"
        return "the list is empty or null" + ("" if before[0] == 1 else f" in all of {rows}")
    if isinstance(node, solutions.Join | solutions.SemiJoin):
        shared = [name for column in node.left.variables if column in node.right.variables and (name := variable(column))]
        same = f" with the same {', '.join(shared)}" if shared else " that match"
        return f"{' and '.join(f'{size:,}' for size in before)} rows have none{same}"
    return f"none of {rows} remains"


# -- patterns --------------------------------------------------------------------------------------


def variable(name: str) -> str:
    """Return the query's variable for a variable of the plan; "" if the query has none."""
    return name[1:].rpartition("#")[0] if name.startswith(" ") else name


def _end(place: Any, label: str = "") -> str:
    name = variable(place.name) if isinstance(place, alg.Variable) else ""
    return f"({quoted(name) if name else ''}{label})"


def _types(predicates: Any) -> str:
    return ":" + "|".join(map(quoted, predicates)) if isinstance(predicates, tuple) else ""


def _pattern_text(part: solutions.StatementPattern | solutions.MembershipPattern) -> str:
    if isinstance(part, solutions.MembershipPattern):
        concepts = part.concept
        named = isinstance(concepts, alg.ByName)
        return _end(part.member, ":" + "|".join(map(quoted, concepts.names)) if named else ":%")  # type: ignore[union-attr]
    arrow = "-" if part.undirected else "->"
    name = variable(part.statement.name) if part.statement is not None else ""
    return f"{_end(part.subject)}-[{quoted(name) if name else ''}{_types(part.predicate)}]{arrow}{_end(part.object)}"


def _path(node: solutions.Path) -> str:
    directions = {hop.direction for hop in node.hops}
    types = [name for hop in node.hops for name in hop.predicates or ()]
    before = "<-" if directions == {"backward"} else "-"
    after = "->" if directions == {"forward"} else "-"
    length = f"*{node.least}..{'' if node.most is None else node.most}"
    named = _types(tuple(dict.fromkeys(types))) if types else ""
    return f"{_end(node.subject)}{before}[{named}{length}]{after}{_end(node.object)}"


# -- expressions -----------------------------------------------------------------------------------


def quoted(name: str) -> str:
    """Return a name as it is written in a query.

    >>> quoted("born"), quoted("start time")
    ('born', '`start time`')
    """
    return name if name.isidentifier() else "`" + name.replace("`", "``") + "`"


def _inner(e: ex.Expression) -> str:
    return f"({expression(e)})" if isinstance(e, _COMPOUND) else expression(e)


def _listed(items: Sequence[ex.Expression]) -> str:
    return ", ".join(map(expression, items))


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join([*map(_value, value[:3]), *(['...'] if len(value) > 3 else [])])}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{quoted(key)}: {_value(item)}' for key, item in value.items())}}}"
    if isinstance(value, str):
        return repr(shortened(str(value), 60))
    return text_of(value) if isinstance(value, Quantity | Time) else str(value)


def expression(e: ex.Expression) -> str:
    """Return an expression as it is written in a query; results of patterns and subqueries are "{ ... }".

    >>> expression(ex.Comparison(">", ex.Property(ex.Variable("r"), "start time"), ex.Constant(2000)))
    'r.`start time` > 2000'
    """
    if isinstance(e, ex.Variable):
        name = variable(e.name)
        return quoted(name) if name else "{ ... }"
    if isinstance(e, ex.Constant):
        return _value(e.value)
    if isinstance(e, ex.Property):
        return f"{_inner(e.of)}.{quoted(e.key)}"
    if isinstance(e, ex.HasConcept):
        return f"{_inner(e.of)}:{'|'.join(map(quoted, e.names))}"
    if isinstance(e, ex.Call):
        if e.name == "coalesce" and isinstance(e.arguments[0], ex.Variable) and not variable(e.arguments[0].name):
            # A count.
            return expression(e.arguments[0])
        if e.name == "listed":
            return expression(e.arguments[0])
        return f"{_inner(e.arguments[0])}.name" if e.name == "name" and e.arguments else f"{e.name}({_listed(e.arguments)})"
    if isinstance(e, ex.And | ex.Or):
        return f" {'AND' if isinstance(e, ex.And) else 'OR'} ".join(map(_inner, e.operands))
    if isinstance(e, ex.Xor | ex.Comparison | ex.Arithmetic | ex.TextTest):
        operator = "XOR" if isinstance(e, ex.Xor) else "=~" if e.operator == "matches" else e.operator.upper()
        return f"{_inner(e.left)} {operator} {_inner(e.right)}"
    if isinstance(e, ex.Not) and isinstance(e.of, ex.IsNull):
        return f"{_inner(e.of.of)} IS NOT NULL"
    if isinstance(e, ex.Not | ex.IsNull | ex.Negative):
        operand = _inner(e.of)
        return f"NOT {operand}" if isinstance(e, ex.Not) else f"{operand} IS NULL" if isinstance(e, ex.IsNull) else f"-{operand}"
    if isinstance(e, ex.In):
        return f"{_inner(e.item)} IN {_inner(e.items)}"
    if isinstance(e, ex.ListOf):
        return f"[{_listed(e.items)}]"
    if isinstance(e, ex.MapOf):
        return f"{{{', '.join(f'{quoted(key)}: {expression(value)}' for key, value in e.items)}}}"
    if isinstance(e, ex.Index):
        return f"{_inner(e.of)}[{expression(e.index)}]"
    if isinstance(e, ex.Slice):
        bounds = ["" if bound is None else expression(bound) for bound in (e.start, e.stop)]
        return f"{_inner(e.of)}[{'..'.join(bounds)}]"
    return _binding(e)


def _binding(e: ex.Expression) -> str:
    """Return CASE and expressions that bind a variable as text."""
    if isinstance(e, ex.Case):
        when = [f"WHEN {expression(test)} THEN {expression(result)}" for test, result in e.branches]
        operand = [] if e.operand is None else [expression(e.operand)]
        return " ".join(["CASE", *operand, *when, f"ELSE {expression(e.otherwise)}", "END"])
    if isinstance(e, ex.ListComprehension | ex.Quantified):
        where = "" if e.where is None else f" WHERE {expression(e.where)}"
        items = f"{variable(e.variable) or '_'} IN {expression(e.items)}{where}"
        if isinstance(e, ex.Quantified):
            return f"{e.quantifier}({items})"
        return f"[{items}{'' if e.result is None else f' | {expression(e.result)}'}]"
    if isinstance(e, ex.Reduce):
        first = f"{variable(e.accumulator) or '_'} = {expression(e.initial)}"
        return f"reduce({first}, {variable(e.variable) or '_'} IN {expression(e.items)} | {expression(e.result)})"
    return "..."
