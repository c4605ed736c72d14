"""Native functions, and functions from outside, over the values of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.engine.algebra import Apply, Choose, External, Scalar, Values
from condgraph.engine.comparisons import truth
from condgraph.engine.errors import InterruptedQueryError, PlanError, UnknownNameError, nearest
from condgraph.engine.execute.bags import Bag, Part
from condgraph.engine.execute.sets import EMPTY
from condgraph.engine.execute.shown_rows import function_call
from condgraph.engine.external import waited
from condgraph.engine.functions import FUNCTIONS
from condgraph.engine.operands import Inapplicable, Operand
from condgraph.engine.pieces import watched
from condgraph.engine.values import Quantity, Time, text_of
from condgraph.engine.workers import Workers

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

#: Texts of an argument that a remark shows.
_SHOWN = 5
#: Functions from outside may wait for a model somewhere else.
_WORKERS = Workers("condgraph-functions")


def apply(run: Run, node: Apply) -> Bag:
    """Run a native function; where it has no result, the answer says why."""
    function = FUNCTIONS.get(node.function)
    if function is None:
        raise UnknownNameError("native function", node.function, candidates=nearest(node.function, FUNCTIONS))
    arguments = [_operand(run, argument) for argument in node.arguments]
    try:
        found = function(arguments, dict(node.options))
    except Inapplicable as error:
        run.warn(str(error))
        found = []
    for argument in arguments:
        for remark in watched(argument.remarks):
            run.warn(remark)
    return given(run, found)


def choose(run: Run, node: Choose) -> Bag:
    """One of two bags by a test."""
    return run.values(node.then if truth(_operand(run, node.condition)) else node.otherwise)


def external(run: Run, node: External) -> Bag:
    """Call a function from outside; the answer says which, and what it was shown."""
    arguments = [_operand(run, argument) for argument in node.arguments]
    shown = "; ".join(", ".join(one.texts[:_SHOWN]) + (", ..." if len(one.texts) > _SHOWN else "") for one in arguments)
    warning = f"{node.name} is no native function: the configured function answered it and was shown {shown or 'nothing'}"
    given_to: tuple[Any, ...] = (node.name, [list(one.texts) for one in arguments], dict(node.options))
    if node.asked is not None:
        call = function_call(run, node, node.asked, arguments)
        warning += f", and {len(call.rows)} row{'' if len(call.rows) == 1 else 's'} with all columns" if call.rows else ""
        given_to = (call,)
    run.warn(warning)
    try:
        found = _WORKERS.run(lambda: list(waited(node.call(*given_to))))
    except InterruptedQueryError:
        raise
    except Exception as error:
        hint = "llm_function= takes a name, the texts of each argument and options, or one FunctionCall, and gives texts"
        raise PlanError(f"the function {node.name!r} from outside failed: {error}", hint=hint) from error
    return given(run, [_typed(value) for value in found])


def _typed(value: Any) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return Quantity(value) if number else value if isinstance(value, (bool, Quantity, Time)) else str(value)


def given(run: Run, values: list[Any]) -> Bag:
    """Values that nothing carries."""
    return Bag(run, [Part("given", np.arange(len(values)), EMPTY, tuple(values))])


def _operand(run: Run, node: Values | Scalar) -> Operand:
    found: Any = run.results[id(node)]
    if isinstance(found, Bag):
        values, texts = found.values_and_texts()
        return Operand(values, texts, [])
    return Operand([], [], []) if found is None else Operand([found], [text_of(found)], [])
