"""LLM queries (TrustUQA, section 3, Table 1) lowered to the algebra;
`docs/reference/llm-queries.md` says what they mean.

`lower` parses a program, and makes one plan of the last query and those that it needs.
`search` lowers get_information by the table of 32 cases, `functions` says what lowers the others,
`context` has names and warnings. A query that is not needed is not lowered; its errors are
warnings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from condgraph.engine import algebra as alg
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, PlanError
from condgraph.engine.external import CallContext, LlmFunction
from condgraph.engine.lowered import Lowered
from condgraph.engine.schema import Schema
from condgraph.engine.values import NO_UNIT, Kind, collapse
from condgraph.languages.llm.binding import bind
from condgraph.languages.llm.functions import FUNCTIONS
from condgraph.languages.llm.lower import native
from condgraph.languages.llm.lower.context import NUMBERS, TEXTS, Context, Lowering, Result, as_values
from condgraph.languages.llm.lower.joins import joined_rows
from condgraph.languages.llm.lower.search import lower_search
from condgraph.languages.llm.lower.tables import on_table
from condgraph.languages.llm.syntax import tree as syntax
from condgraph.languages.llm.syntax.parse import parse
from condgraph.names.vocabulary import Vocabulary, resolve
from condgraph.names.words import OnUnknown

_INFIX: Final = {"+": "add", "-": "difference", "*": "multiply", "/": "divide", "%": "remainder", "and": "and", "or": "or"}


def lower(
    program: str | syntax.Program,
    schema: Schema,
    *,
    on_unknown: OnUnknown = "error",
    source: str | None = None,
    llm_function: LlmFunction | Mapping[str, LlmFunction] | None = None,
    question: str | None = None,
) -> Lowered:
    """Read a program (or take it as it was read) and lower it.

    `source` scopes the whole program to one source.
    `llm_function(name, texts of each argument, options)`, or one that takes a `FunctionCall`,
    answers functions that are not native; it may be a mapping from their names to such callables.
    `question` is what the program answers, for them. `on_unknown="empty"` lets unknown names mean
    nothing, with a warning; "nearest" reads an unknown predicate as the most similar one, which the
    answer reports as a substitution (the setting of the paper). Raises `ParseError`, `UnknownNameError` with the nearest names,
    `AmbiguousNameError` for a name of several tables, `LiteralError`, and `PlanError` for what has
    no meaning.
    """
    if not isinstance(program, str | syntax.Program):
        raise OptionError(f"an LLM query is a text, not {type(program).__name__}")
    tree = parse(program) if isinstance(program, str) else program
    if question is not None and not isinstance(question, str):
        raise OptionError(f"a question is a text, not {type(question).__name__}")
    context = Context(
        schema, on_unknown=on_unknown, source=source, llm_function=llm_function, target_type=tree.target_type, question=question
    )
    lowering = ProgramLowering(context, tree)
    for notice in tree.notices:
        context.warnings.append(str(notice))
    used = set(tree.used)
    unused = [query.label for at, query in enumerate(tree.queries) if at not in used and query.error is None]
    if unused:
        context.warnings.append(f"the answer does not need query {', '.join(unused)}, which is not run")
    for position in tree.used:
        lowering.query(position)
    return lowering.finish()


class ProgramLowering(Lowering):
    """A program being lowered. `results` has the result of each query, by position."""

    def __init__(self, context: Context, program: syntax.Program) -> None:
        self.context, self.program = context, program
        self.results: dict[int, Result] = {}
        self.steps: list[tuple[str, alg.Node]] = []
        self.notes: dict[int, str] = {}
        self.descending: alg.Node | None = None
        self.asked = CallContext()

    # -- queries and expressions -------------------------------------------------------------------

    def query(self, position: int) -> None:
        """Lower one query, after those it needs."""
        check()
        query = self.program.queries[position]
        assert query.expression is not None
        self.context.remarks = []
        self.asked = CallContext(self.context.question, f"Query{query.label}", query.step, self.context.target_type or "")
        result = self.evaluate(query.expression)
        if result.literal is not None:
            result = result.of(alg.Constants((native.literal_value(result.literal.text),)), led=(collapse(result.literal.text),))
        self.results[position] = result
        self.steps.append((f"Query{query.label}", result.node))
        if self.context.remarks:
            self.notes[id(result.node)] = "; ".join(self.context.remarks)

    def evaluate(self, expression: syntax.Expression) -> Result:
        """The result of an expression."""
        if isinstance(expression, syntax.OutputRef):
            return self.results[expression.position]
        if isinstance(expression, syntax.Literal):
            text = collapse(expression.text)
            return Result(alg.Constants((text,)), kinds=TEXTS, led=(text,), literal=expression, span=expression.span)
        if isinstance(expression, syntax.Call):
            check()
            bound = bind(expression)
            if isinstance(bound, syntax.Search):
                return lower_search(self, bound)
            if not isinstance(bound, syntax.Application):
                return native.lower_foreign(self, bound)
            native.complain_of_outputs(self, bound)
            return self._applied(bound)
        if isinstance(expression, syntax.Comparison):
            left, right = self.evaluate(expression.left), self.evaluate(expression.right)
            return native.comparison(self, left, right, expression.op, bare=True)
        if isinstance(expression, syntax.Item):
            return native.nth(self, self.evaluate(expression.of), expression.index)
        if isinstance(expression, syntax.Items):
            return self._applied(syntax.Application("set_union", expression.items, {}, expression.span))
        if isinstance(expression, syntax.Not):
            return Result(native.apply("not", [self.truth(expression.of)]), kinds=TEXTS)
        if isinstance(expression, syntax.Ternary):
            return self._applied(
                syntax.Application("if", (expression.condition, expression.then, expression.otherwise), {}, expression.span)
            )
        return self._infix(expression)

    def _infix(self, expression: syntax.Infix) -> Result:
        if expression.op in ("and", "or"):
            return Result(
                native.apply(_INFIX[expression.op], [self.truth(expression.left), self.truth(expression.right)]), kinds=TEXTS
            )
        left, right = self.as_bag(self.evaluate(expression.left)), self.as_bag(self.evaluate(expression.right))
        if expression.op == "in":
            return Result(native.apply("is_in", [left, right]), kinds=TEXTS)
        signed = {"absolute": "false"} if expression.op == "-" else {}
        return Result(native.apply(_INFIX[expression.op], [left, right], **signed), kinds=NUMBERS)

    def _applied(self, call: syntax.Application) -> Result:
        """The operator of a call of a native function."""
        rule = on_table(self, call) or FUNCTIONS[call.function].lower
        assert rule is not None, "get_information is lowered by its cases"
        result = rule(self, call)
        return result.of(result.node, span=call.span)

    def truth(self, expression: syntax.Expression) -> alg.Values | alg.Scalar:
        """See `Lowering`."""
        if isinstance(expression, syntax.Comparison):
            sides = [self.as_bag(self.evaluate(side)) for side in (expression.left, expression.right)]
            return native.apply("relation", sides, operator=expression.op)
        result = self.evaluate(expression)
        if isinstance(result.node, alg.Scalar):
            return result.node
        return self.as_bag(result)

    # -- coercions ---------------------------------------------------------------------------------

    def as_bag(self, result: Result) -> alg.Values:
        """See `Lowering`."""
        if result.literal is not None:
            return alg.Constants((native.literal_value(result.literal.text),))
        if isinstance(result.node, alg.Entities):
            return as_values(self.shown(result) if result.table is not None else self.column_values(result, ""))
        return as_values(result)

    def column_values(self, result: Result, function: str) -> Result:
        """See `Lowering`."""
        if not isinstance(result.node, alg.Entities):
            return result
        if result.table is None and result.facts is not None:
            return result.of(alg.Objects(result.facts), kinds={(Kind.ENTITY, NO_UNIT): 1}, carried=True)
        if result.table is None:
            return result.of(alg.Names(result.node), kinds=TEXTS, carried=True)
        if result.column is None:
            return self.shown(result)
        self.context.warn(f"{function} of rows takes their values of {result.column!r}")
        return self._column(result, result.column)

    def _column(self, result: Result, column: str) -> Result:
        assert isinstance(result.node, alg.Entities)
        values = alg.Objects(alg.Scan(result.node, (column,)))
        kinds = self.context.linker.column((column,), result.table).kinds
        return result.of(values, column=column, kinds=kinds, carried=True)

    def shown(self, result: Result) -> Result:
        """See `Lowering`."""
        assert result.table is not None
        column = self.shown_column(result)
        if column is None:
            raise PlanError("these rows have no column to show", span=result.span)
        return self._column(result, column)

    def shown_column(self, result: Result) -> str | None:
        """See `Lowering`."""
        target = self.context.target_type
        names = [name for several in self.context.linker.predicates(result.table).values() for name in several]
        if target is not None and names:
            nearest = [match.name for match in resolve(target, Vocabulary(names)).matches]
            if nearest:
                return result.column if result.column in nearest else nearest[0]
        return result.column or (names[0] if names else None)

    def asked_column(self, result: Result) -> str | None:
        """The column that the target type names, where a program ends with a choice among values of
        another column.
        """
        target = self.context.target_type
        if result.table is None or not result.carried or target is None or not isinstance(result.node, (alg.Choose, alg.Extreme)):
            return None
        if isinstance(result.node, alg.Extreme) and not isinstance(result.node.values, alg.Concat):
            return None
        results = self.context.find_predicates(target, result.table)
        return results[0] if len(results) == 1 and results[0] != result.column else None

    def entities(self, result: Result, table: str | None, sources: Sequence[str]) -> alg.Entities:
        """See `Lowering`."""
        node = result.node
        if result.literal is not None:
            if table is not None:
                return self.context.rows_with(result.literal, table)
            return alg.ByName(self.context.named(result.literal, "entity", None))
        if isinstance(node, alg.Table):
            as_values(result)
        if table is not None:
            return self._rows(result, table)
        if isinstance(node, alg.Entities):
            if result.table is not None and result.table not in sources:
                self.context.remark(f"rows of {result.table!r} meet entities by the name in their shown column")
                return alg.Referents(as_values(self.shown(result)))
            if result.sources and sources and not set(result.sources) & set(sources):
                self.context.remark(f"entities of {', '.join(result.sources)} meet those of {', '.join(sources)} by name")
                return alg.SameName(node)
            return node
        values = as_values(result)
        if result.table is not None:
            self.context.remark(f"values of {result.table!r} meet entities by name")
        elif result.sources and sources and not set(result.sources) & set(sources):
            self.context.remark(f"entities of {', '.join(result.sources)} meet those of {', '.join(sources)} by name")
            return alg.SameName(alg.Referents(values))
        return alg.Referents(values)

    def _rows(self, result: Result, table: str) -> alg.Entities:
        node = result.node
        if result.table == table:
            if isinstance(node, alg.Entities):
                return node
            if result.carried:
                return alg.SubjectsOf(as_values(result))
        joined = joined_rows(self, result, table)
        if joined is not None:
            return joined
        values = self.as_bag(result)
        self.context.warn(f"values that no row of {table!r} carries mean its rows with such a cell")
        facts: alg.Facts = alg.Where(alg.Scan(None, None, source=table), alg.Equals(values))
        return alg.Reached(facts)

    # -- the end -----------------------------------------------------------------------------------

    def finish(self) -> Lowered:
        """The plan of the last query; rows show a column, and remain with the answer."""
        result = self.results[self.program.used[-1]]
        plan: alg.Node = result.node
        if plan is self.descending:
            self.context.warn("an answer has its own order, which is ascending; order_by gives a table in the order asked for")
        if isinstance(plan, alg.Entities) and native.asks_truth(self.context.target_type):
            self.context.warn("the target type asks for yes or no: whether there is anything")
            plan = native.apply("exists", [alg.Names(plan)])
        elif isinstance(plan, alg.Entities) and result.empty and self.shown_column(result) == result.column:
            # By the column that they have no value of there would be nothing to see.
            self.context.warn("the answer is table rows; it shows the column that tells most of them")
        elif isinstance(plan, alg.Entities) and result.table is not None:
            shown = self.shown(result)
            self.context.warn(f"the answer is table rows; it shows their values of {shown.column!r}")
            plan = alg.Shown(as_values(shown), plan)
        elif (other := self.asked_column(result)) is not None:
            rows = alg.SubjectsOf(as_values(result))
            self.context.warn(f"the target type asks for {other!r}: the answer shows it for the rows of these values")
            plan = alg.Shown(alg.Objects(alg.Scan(rows, (other,))), rows)
        elif isinstance(plan, alg.Apply) and plan.function == "identity":
            plan = plan.arguments[0]
        if self.context.remarks and id(result.node) not in self.notes:
            self.notes[id(result.node)] = "; ".join(self.context.remarks)
        return Lowered(plan, self.steps, self.context.warnings, self.notes)
