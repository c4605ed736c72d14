"""Lowers LLM queries (TrustUQA, section 3, Table 1) to the algebra; `docs/reference/llm-queries.md` defines them.

`lower` parses a program and makes one plan of the last query and those that it needs. `search` lowers
get_information by the table of 32 cases, `functions` has the rules of other functions, `context`
resolves names and collects warnings. Queries that are not needed are not lowered; their errors are
warnings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from condgraph.engine import algebra as alg
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, PlanError, UnknownNameError, nearest
from condgraph.engine.external import CallContext, LlmFunction
from condgraph.engine.lowered import Lowered
from condgraph.engine.schema import Schema
from condgraph.engine.values import NO_UNIT, Kind, collapse
from condgraph.languages.llm.functions import BY_NAME, FUNCTIONS, MANY, OPERATOR_OPTION, Function, near_functions
from condgraph.languages.llm.lower import native
from condgraph.languages.llm.lower.context import NUMBERS, TEXTS, Context, Lowering, Result, as_values
from condgraph.languages.llm.lower.joins import joined_rows
from condgraph.languages.llm.lower.literals import OPERATOR_WORDS, operator_of
from condgraph.languages.llm.lower.search import lower_search
from condgraph.languages.llm.lower.tables import on_table
from condgraph.languages.llm.syntax import tree
from condgraph.languages.llm.syntax import tree as syntax
from condgraph.languages.llm.syntax.parse import parse
from condgraph.names.vocabulary import Vocabulary, resolve
from condgraph.names.words import OnUnknown

# -- binding of get_information ----------------------------------------------------------------------
# Each argument is one of its parameters, at most once; only tail_entity and value take conditions.


_TESTED: Final = ("tail_entity", "value")
_NUMBERED: Final = re.compile(r"(head_entity|tail_entity|relation|key|value)\d+")


def bind_search(call: tree.Call) -> tree.Search:
    """Return the search that a call of get_information means.

    Raises `PlanError` for invalid arguments, and `UnknownNameError` for an unknown parameter.
    """
    parameters: dict[str, tree.Expression] = {}
    tests: dict[str, list[tree.ColumnCondition]] = {"tail_entity": [], "value": []}
    for argument in call.arguments:
        name = _parameter(argument)
        if _is_none(argument.value):
            continue
        _check_value(argument, name)
        if name in _TESTED:
            test = tree.ColumnCondition(argument.op, argument.value, argument.span)
            if test not in tests[name]:
                tests[name].append(test)
            continue
        if argument.op != "=":
            raise PlanError(
                f"the operator {argument.op!r} on {name}",
                span=argument.span,
                hint=f"{name} takes '=' only; tail_entity and value take = != > < >= <=",
            )
        if parameters.setdefault(name, argument.value) != argument.value:
            raise PlanError(
                f"{name} is given twice, with different values",
                span=argument.span,
                hint="write a query for each, then set_intersection or set_union",
            )
    for name, conditions in tests.items():
        _check_bounds(name, conditions)
    if not parameters.keys() - {"source"} and not any(tests.values()):
        raise PlanError(
            "get_information without any condition",
            span=call.span,
            hint=f"give at least one of {', '.join(tree.PARAMETERS.values())}",
        )
    return tree.Search(
        parameters.get("head_entity"),
        parameters.get("relation"),
        tuple(tests["tail_entity"]),
        parameters.get("key"),
        tuple(tests["value"]),
        parameters.get("source"),
        call.span,
    )


def _parameter(argument: tree.Argument) -> str:
    names = [*tree.PARAMETERS.values(), "source"]
    if argument.name is None:
        raise PlanError(
            "an argument of get_information without a name", span=argument.span, hint=f"write which one it is: {', '.join(names)}"
        )
    name = argument.name.casefold()
    if name in names:
        return name
    numbered = _NUMBERED.fullmatch(name)
    hint = f"several values for {numbered[1]} are the output of a query before, or a set_union" if numbered else None
    if hint is None:
        hint = f"the parameters are {', '.join(names)}; a time is key='time', value='2003'"
    raise UnknownNameError(
        "parameter of get_information", argument.name, candidates=nearest(name, names), span=argument.span, hint=hint
    )


def _check_value(argument: tree.Argument, name: str) -> None:
    value = argument.value
    if isinstance(value, (tree.Comparison, tree.Not)) or (
        isinstance(value, tree.Infix) and not isinstance(value.left, (tree.Item, tree.Infix))
    ):
        kind = "a comparison" if isinstance(value, (tree.Comparison, tree.Not)) else f"an expression with {value.op!r}"
        raise PlanError(
            f"{kind} as {name}", span=value.span, hint="put a text between quotes; put a calculation in a query of its own"
        )


def _check_bounds(name: str, tests: list[tree.ColumnCondition]) -> None:
    """Raise `PlanError` for two "=" on one object: both can hold only by accident, so two queries are meant."""
    equal = [test for test in tests if test.op == "="]
    if len(equal) > 1:
        raise PlanError(
            f"{name} is given twice, with different values",
            span=equal[1].span,
            hint="write a query for each, then set_intersection or set_union",
        )


def _is_none(value: tree.Expression) -> bool:
    """Whether a value is an unquoted None: a missing argument, as in the signature of get_information."""
    return isinstance(value, tree.Literal) and not value.quoted and value.text in ("None", "null")


# -- binding -----------------------------------------------------------------------------------------
# `bind` turns a `Call` into a `Search` (get_information), an `Application` of a native function with
# its operands in order and its options by name, or a `Foreign` call of a function that is not in
# `functions`: a configured language model can answer it.


#: `calculate(a=..., operator='-', b=...)` and similar ones have the function as an option.
_CALCULATORS: Final = frozenset({"calculate", "calculator", "calculation", "compute"})
_ARITHMETIC: Final = {"-": "difference", "+": "add", "*": "multiply", "/": "divide"}
_TEST_NAMES: Final = frozenset({"condition", "test", "compare1", "if"})
_THEN_NAMES: Final = frozenset({"then", "true", "true_value", "set_true", "value_if_true", "result1", "if_true"})
_ELSE_NAMES: Final = frozenset({"else", "false", "false_value", "set_false", "value_if_false", "result2", "if_false", "otherwise"})


def bind(call: tree.Call) -> tree.Bound:
    """Return a call with its function and arguments identified.

    Raises `PlanError` for invalid arguments, and `UnknownNameError` for an unknown parameter of
    get_information.
    """
    name = call.name.casefold()
    if name == "get_information":
        return bind_search(call)
    if name in _CALCULATORS:
        return _calculation(call)
    function = BY_NAME.get(name)
    # Models invent a `distance` of one set; the native one takes two points.
    if function is None or (function.name == "distance" and len(call.arguments) < 2):
        return tree.Foreign(call, near_functions(name))
    if function.name == "if":
        return _conditional(call, name)
    if function.name == "keep":
        return _keep(call)
    if function.name == "having":
        return _having(call)
    return _apply(function, call, name)


def _apply(function: Function, call: tree.Call, name: str) -> tree.Application:
    operands: list[tree.Expression] = []
    options: dict[str, tree.Expression] = {
        option: tree.Literal(text, span=call.span) for option, text in function.fixed.get(name, {}).items()
    }
    spellings = {spelling: option for option, synonyms in function.options.items() for spelling in synonyms}
    for argument in call.arguments:
        argument_name = None if argument.name is None else argument.name.casefold()
        # `compare(count=..., operator='>', value=...)`: an option's name may also be an operand's.
        option = None if argument_name is None else spellings.get(argument_name)
        if option is not None and (argument_name not in ("count", "number", "order") or len(operands) >= function.operands[0]):
            if argument.op != "=":
                raise PlanError(
                    f"the operator {argument.op!r} on {argument.name}", span=argument.span, hint=f"{argument.name} takes '=' only"
                )
            options[option] = _direction(argument) if option == "order" else argument.value
            continue
        if (
            argument_name in ("key", "relation", "condition", "group_by", "by", "exclude", "value")
            and function.operands == (1, 1)
            and operands
        ):
            raise PlanError(
                f"{call.name} takes no {argument.name}",
                span=argument.span,
                hint="write the condition as a query of its own, with get_information",
            )
        if argument.op != "=":
            raise PlanError(
                f"the operator {argument.op!r} on {argument.name}",
                span=argument.span,
                hint="keep(set='...', value>'...') takes a condition",
            )
        operands.append(argument.value)
    least, most = function.operands
    if function.name == "split" and len(operands) == 2:
        options["delimiter"] = operands.pop()
    if function.name == "compare" and len(operands) == 1 and isinstance(operands[0], (tree.Comparison, tree.Infix)):
        return tree.Application("if", (operands[0],), options, call.span)
    if function.name == "compare" and len(operands) == 1 and isinstance(operands[0], tree.Items):
        operands = list(operands[0].items)
    if not least <= len(operands) <= most:
        expected = f"{least}" if least == most else f"at least {least}" if most == MANY else f"{least} to {most}"
        raise PlanError(
            f"{call.name} takes {expected} operand{'' if expected == '1' else 's'}, not {len(operands)}",
            span=call.span,
            hint=f"{function.name}: {function.about}",
        )
    return tree.Application(function.name, tuple(operands), options, call.span)


def _direction(argument: tree.Argument) -> tree.Expression:
    """Return the order of a sort as "ascending" or "descending", also for `ascending=False`."""
    name = (argument.name or "").casefold()
    if name not in ("ascending", "descending"):
        return argument.value
    is_true = not (isinstance(argument.value, tree.Literal) and argument.value.text.casefold() in ("false", "0", "no"))
    return tree.Literal("ascending" if is_true == (name == "ascending") else "descending", span=argument.span)


def _keep(call: tree.Call) -> tree.Application:
    """Bind keep(set, value op x): the set is the operand, and each condition compares that set."""
    sets = [argument for argument in call.arguments if argument.name is None or argument.name.casefold().startswith("set")]
    conditions = [argument for argument in call.arguments if argument not in sets]
    unexpected = [
        argument for argument in conditions if argument.name is None or argument.name.casefold() not in ("value", "tail_entity")
    ]
    if len(sets) != 1 or not conditions or unexpected or sets[0].op != "=":
        where = unexpected[0].span if unexpected else call.span
        raise PlanError(
            "keep takes one set and conditions on its values", span=where, hint="keep(set='output_of_query1', value>'2000')"
        )
    tests = tuple(tree.Comparison(argument.op, sets[0].value, argument.value, argument.span) for argument in conditions)
    return tree.Application("keep", (sets[0].value, *tests), {}, call.span)


def _having(call: tree.Call) -> tree.Application:
    """Bind having(set, value > x) and having(set, condition='count > 5').

    The table is the operand, each comparison has it as its left side, and the column is an option.
    """
    operands: list[tree.Expression] = []
    options: dict[str, tree.Expression] = {}
    tests: list[tree.Expression] = []
    for argument in call.arguments:
        name = (argument.name or "").casefold()
        if name in ("condition", "having", "test"):
            tests.append(argument.value)
        elif argument.op != "=" or name in ("value", "tail_entity"):
            if name not in ("value", "tail_entity", "", "key"):
                options["key"] = tree.Literal(argument.name or "", span=argument.span)
            tests.append(tree.Comparison(argument.op, tree.Literal("", span=argument.span), argument.value, argument.span))
        elif name in ("key", "column", "by"):
            options["key"] = argument.value
        else:
            operands.append(argument.value)
    # having(output_of_query1, 'count > 5')
    if not tests and len(operands) == 2:
        tests.append(operands.pop())
    if len(operands) != 1 or not tests:
        hint = "having(set='output_of_query2', condition='count > 5')"
        raise PlanError("having takes one table and conditions on a column", span=call.span, hint=hint)
    return tree.Application("having", (operands[0], *tests), options, call.span)


def _conditional(call: tree.Call, name: str) -> tree.Application:
    """Bind if(test, a, b) in its many spellings; the operands are test, then, otherwise."""
    roles: dict[str, list[tree.Expression]] = {"test": [], "then": [], "else": []}
    positional: list[tree.Argument] = []
    operator: str | None = {"if_greater": ">", "if_less": "<"}.get(name)
    for argument in call.arguments:
        argument_name = (argument.name or "").casefold()
        if argument_name in OPERATOR_OPTION and isinstance(argument.value, tree.Literal):
            operator = operator_of(argument.value)
        elif argument_name in _THEN_NAMES:
            roles["then"].append(argument.value)
        elif argument_name in _ELSE_NAMES:
            roles["else"].append(argument.value)
        elif argument_name in _TEST_NAMES or (argument.name is not None and isinstance(argument.value, tree.Comparison)):
            roles["test"].append(argument.value)
        elif argument.op != "=":
            raise PlanError(
                f"{argument.name} has no meaning here",
                span=argument.span,
                hint="write which output is meant: if(output_of_query1 > 5, ...)",
            )
        else:
            positional.append(argument)
    values = [argument.value for argument in positional]
    if not roles["test"] and operator is not None and len(values) >= 2:
        roles["test"].append(tree.Comparison(_compare_op(operator, call), values[0], values[1], call.span))
        values = values[2:]
    for role in ("test", "then", "else"):
        if not roles[role] and values:
            roles[role].append(values.pop(0))
    if values or any(len(result) > 1 for result in roles.values()) or not roles["test"] or (roles["then"] and not roles["else"]):
        raise PlanError(f"{call.name} takes a test and two results", span=call.span, hint="if(output_of_query1 > 5, 'yes', 'no')")
    return tree.Application("if", tuple(result[0] for result in roles.values() if result), {}, call.span)


def _calculation(call: tree.Call) -> tree.Bound:
    """calculate(operator='-', a=..., b=...) is the function that its operator names."""
    named = [argument for argument in call.arguments if (argument.name or "").casefold() in OPERATOR_OPTION]
    rest = tuple(argument for argument in call.arguments if argument not in named)
    if len(named) == 1 and isinstance(named[0].value, tree.Literal):
        word = named[0].value.text.casefold().replace(" ", "_")
        op = OPERATOR_WORDS.get(word)
        if op in _ARITHMETIC:
            return _apply(FUNCTIONS[_ARITHMETIC[op]], tree.Call(call.name, rest, call.span), "subtract" if op == "-" else "")
        function = BY_NAME.get(word)
        if function is not None and function.name not in ("get_information", "keep", "if", "compare"):
            return _apply(function, tree.Call(call.name, rest, call.span), word)
        if op is not None:
            return _apply(FUNCTIONS["compare"], call, "compare")
    if len(call.arguments) == 1 and isinstance(call.arguments[0].value, tree.Infix):
        return tree.Application("if", (call.arguments[0].value,), {}, call.span)
    return tree.Foreign(call, ("difference", "add", "divide", "compare"))


def _compare_op(op: str, call: tree.Call) -> tree.CompareOp:
    if op in ("=", "!=", "<", ">", "<=", ">="):
        return cast(tree.CompareOp, op)
    raise PlanError(f"{op!r} compares nothing", span=call.span, hint="the operators are = != > < >= <=")


# -- programs ----------------------------------------------------------------------------------------


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
    """Parse a program, unless it is parsed already, and return its plan.

    `source` restricts the whole program to one source. `llm_function(name, texts of each argument,
    options)`, or one that takes a `FunctionCall`, answers functions that are not native; it may also be a
    mapping from names to such callables. `question` is what the program answers, for these functions.
    `on_unknown="empty"` lets unknown names match nothing, with a warning; "nearest" replaces an unknown
    predicate by the most similar one, which the answer reports as a substitution (the paper's setting).

    Raises `ParseError`, `UnknownNameError` with the nearest names, `AmbiguousNameError` for a name of
    several tables, `LiteralError`, and `PlanError` for a program without a meaning.
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
    """The lowering of a program; `results` has the result of each query by position."""

    def __init__(self, context: Context, program: syntax.Program) -> None:
        self.context, self.program = context, program
        self.results: dict[int, Result] = {}
        self.steps: list[tuple[str, alg.Node]] = []
        self.notes: dict[int, str] = {}
        self.descending: alg.Node | None = None
        self.asked = CallContext()

    # -- queries and expressions -------------------------------------------------------------------

    def query(self, position: int) -> None:
        """Lower one query, after those that it needs."""
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
        """Return the result of an expression."""
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
        """Lower a call of a native function."""
        rule = on_table(self, call) or FUNCTIONS[call.function].lower
        assert rule is not None, "get_information is lowered by its cases"
        result = rule(self, call)
        return result.of(result.node, span=call.span)

    def truth(self, expression: syntax.Expression) -> alg.Values | alg.Scalar:
        if isinstance(expression, syntax.Comparison):
            sides = [self.as_bag(self.evaluate(side)) for side in (expression.left, expression.right)]
            return native.apply("relation", sides, operator=expression.op)
        result = self.evaluate(expression)
        if isinstance(result.node, alg.Scalar):
            return result.node
        return self.as_bag(result)

    # -- coercions ---------------------------------------------------------------------------------

    def as_bag(self, result: Result) -> alg.Values:
        if result.literal is not None:
            return alg.Constants((native.literal_value(result.literal.text),))
        if isinstance(result.node, alg.Entities):
            return as_values(self.shown(result) if result.table is not None else self.column_values(result, ""))
        return as_values(result)

    def column_values(self, result: Result, function: str) -> Result:
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
        assert result.table is not None
        column = self.shown_column(result)
        if column is None:
            raise PlanError("these rows have no column to show", span=result.span)
        return self._column(result, column)

    def shown_column(self, result: Result) -> str | None:
        target = self.context.target_type
        names = [name for spellings in self.context.linker.predicates(result.table).values() for name in spellings]
        if target is not None and names:
            similar = [match.name for match in resolve(target, Vocabulary(names)).matches]
            if similar:
                return result.column if result.column in similar else similar[0]
        return result.column or (names[0] if names else None)

    def asked_column(self, result: Result) -> str | None:
        """Return the column that the target type names, if the program chooses among values of another column."""
        target = self.context.target_type
        if result.table is None or not result.carried or target is None or not isinstance(result.node, (alg.Choose, alg.Extreme)):
            return None
        if isinstance(result.node, alg.Extreme) and not isinstance(result.node.values, alg.Concat):
            return None
        columns = self.context.find_predicates(target, result.table)
        return columns[0] if len(columns) == 1 and columns[0] != result.column else None

    def entities(self, result: Result, table: str | None, sources: Sequence[str]) -> alg.Entities:
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
        """Return the plan of the last query; rows are shown by a column, and stay in the answer."""
        result = self.results[self.program.used[-1]]
        plan: alg.Node = result.node
        if plan is self.descending:
            self.context.warn("an answer has its own order, which is ascending; order_by gives a table in the requested order")
        if isinstance(plan, alg.Entities) and native.asks_truth(self.context.target_type):
            self.context.warn("the target type asks for yes or no: whether there is anything")
            plan = native.apply("exists", [alg.Names(plan)])
        elif isinstance(plan, alg.Entities) and result.empty and self.shown_column(result) == result.column:
            # The rows have no value in the column that would be shown.
            self.context.warn("the answer is table rows; it shows the column that tells most of them")
        elif isinstance(plan, alg.Entities) and result.table is not None:
            shown = self.shown(result)
            self.context.warn(f"the answer is table rows; it shows their values of {shown.column!r}")
            plan = alg.Shown(as_values(shown), plan)
        elif (target_column := self.asked_column(result)) is not None:
            rows = alg.SubjectsOf(as_values(result))
            self.context.warn(f"the target type asks for {target_column!r}: the answer shows it for the rows of these values")
            plan = alg.Shown(alg.Objects(alg.Scan(rows, (target_column,))), rows)
        elif isinstance(plan, alg.Apply) and plan.function == "identity":
            plan = plan.arguments[0]
        if self.context.remarks and id(result.node) not in self.notes:
            self.notes[id(result.node)] = "; ".join(self.context.remarks)
        return Lowered(plan, self.steps, self.context.warnings, self.notes)
