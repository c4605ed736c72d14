"""KoPL programs as JSON: the data set's lists of steps, with the numbers of the steps that each
depends on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from condgraph.engine.errors import ParseError
from condgraph.languages.kopl.careful import check_arity
from condgraph.languages.kopl.table import FUNCTIONS, MOST_STEPS, SHAPES, Step, link, signature


def _plain(program: Sequence[Any]) -> list[Step] | None:
    """The steps of a program as JSON gives it and the data set has it, linked in post-fix order;
    None where that takes a look.
    """
    steps: list[Step] = []
    stack: list[int] = []
    new, shapes = tuple.__new__, SHAPES
    for at, record in enumerate(program):
        if type(record) is not dict:
            return None
        function, texts, given = record.get("function"), record.get("inputs"), record.get("dependencies")
        if type(function) is not str or type(texts) is not list or type(given) is not list or function not in shapes:
            return None
        inputs, arity = shapes[function]
        if len(texts) != arity or len(given) != inputs or len(stack) < inputs:
            return None
        for text in texts:
            if type(text) is not str:
                return None
        if inputs:
            taken = stack[-inputs:]
            if given != taken or True in map(_is_truth, given):
                return None
            del stack[-inputs:]
        stack.append(at)
        steps.append(new(Step, (function, tuple(texts), tuple(given))))
    return steps if len(stack) == 1 else None


def _is_truth(number: Any) -> bool:
    # A truth value is no step number, and equals one.
    return type(number) is not int


def from_json(program: Any) -> tuple[list[Step], list[str]]:
    """The linked steps of a program, and warnings; raises `ParseError`."""
    if not isinstance(program, Sequence) or isinstance(program, (str, bytes)) or not program:
        raise ParseError("a KoPL program in JSON is a list of steps", hint='a step is {"function": ..., "inputs": [...]}')
    if len(program) > MOST_STEPS:
        raise ParseError(f"the program has more than {MOST_STEPS} steps")
    if type(program) is list and (plain := _plain(program)) is not None:
        return plain, []
    steps: list[Step] = []
    given: list[tuple[int, ...] | None] = []
    for i, record in enumerate(program):
        # What JSON gives is looked at by exact type first: the abstract types cost ten times as
        # much.
        if not (type(record) is dict or isinstance(record, Mapping)) or not isinstance(record.get("function"), str):
            raise ParseError(f"step {i} has no function", hint='a step is {"function": ..., "inputs": [...]}')
        function = record["function"]
        found = FUNCTIONS.get(function) or signature(function)
        texts = record.get("inputs", ())
        if not _is_list(texts, str):
            raise ParseError(f"step {i}, {function}: inputs are a list of texts")
        if len(texts) != len(found.texts):
            check_arity(function, found.texts, texts, None, f"step {i}, {function},")
        dependencies = record.get("dependencies")
        if dependencies is not None and not _is_list(dependencies, int):
            raise ParseError(f"step {i}, {function}: dependencies are a list of step numbers")
        given.append(None if dependencies is None or (found.inputs and not dependencies) else tuple(dependencies))
        steps.append(Step(function, tuple(texts)))
    if all(dependencies is None for dependencies in given):
        return link(steps), []
    try:
        inferred = link(steps)
    except ParseError:
        if any(dependencies is None for dependencies in given):
            raise
        inferred = steps
    if [step.dependencies for step in inferred] == given:
        return inferred, []
    linked: list[Step] = []
    warnings: list[str] = []
    for i, (step, wanted) in enumerate(zip(inferred, given, strict=True)):
        if wanted is None or wanted == step.dependencies:
            linked.append(step)
            continue
        needs = FUNCTIONS[step.function].inputs
        if len(wanted) != needs or not all(0 <= d < i for d in wanted):
            raise ParseError(f"step {i}, {step.function}: takes the results of {needs} earlier steps, and names {list(wanted)}")
        warnings.append(f"step {i}, {step.function}: its dependencies {list(wanted)} are not those of the order; they are followed")
        linked.append(Step(step.function, step.texts, wanted))
    used = {d for step in linked for d in step.dependencies}
    for i in range(len(linked) - 1):
        if i not in used:
            raise ParseError(f"the result of step {i}, {linked[i].function}, is not used")
    return linked, warnings


def _is_list(found: Any, kind: type) -> bool:
    if type(found) is not list and (not isinstance(found, Sequence) or isinstance(found, str)):
        return False
    # A truth value is no step number.
    return all(type(one) is kind or (isinstance(one, kind) and not isinstance(one, bool)) for one in found)
