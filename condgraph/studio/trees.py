"""The tree of a program's steps: the inputs of each step, its place in the text, and the part of the
program that ends with it, so that its result can be queried.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from condgraph.engine.errors import CondgraphError, PlanError
from condgraph.languages.kopl.table import CLOSED, FUNCTIONS, Step, link
from condgraph.languages.registry import detect
from condgraph.studio.completion import schema_of

if TYPE_CHECKING:
    from condgraph.graph import Graph
    from condgraph.languages.kopl.table import Knows


def tree_of(graph: Graph, program: str, language: str | None) -> dict[str, Any]:
    """Return the steps of a KoPL program or an LLM query, in order.

    Raises `ParseError` if the program is malformed, and `PlanError` if its language has no steps.
    """
    language = language or detect(program)
    if language == "kopl":
        return {"language": language, "steps": _kopl(graph, program)}
    if language == "llm_query":
        return {"language": language, "steps": _llm(program)}
    raise PlanError(f"a program of the language {language!r} is not drawn as a tree", hint="KoPL and LLM queries are")


def _kopl(graph: Graph, program: str) -> list[dict[str, Any]]:
    from condgraph.languages.kopl.syntax import parse, places

    knows = _knows(graph, program)
    steps, _ = parse(program, knows)
    spans = places(program, knows)
    result = []
    for number, step in enumerate(steps):
        roles = FUNCTIONS[step.function].texts
        span = spans[number] if spans else None
        places_of_texts = [None] * len(roles) if span is None else map(list, span.texts)
        texts = [
            {"role": role, "text": text, "span": place, "choices": list(CLOSED.get(role, ()))}
            for role, text, place in zip(roles, step.texts, places_of_texts, strict=True)
        ]
        result.append(
            {
                "label": str(number + 1),
                "function": step.function,
                "about": "",
                "texts": texts,
                "inputs": list(step.dependencies),
                "span": None if span is None else list(span.call),
                "program": _kopl_until(steps, number),
            }
        )
    return result


def _knows(graph: Graph, program: str) -> Knows | None:
    """Return which names exist, to resolve commas inside names."""
    from condgraph.languages.kopl.lower import Lowering

    with suppress(CondgraphError):
        knows: Knows = Lowering(schema_of(graph), "error", program).knows
        return knows
    return None


def _needed(inputs: list[tuple[int, ...]], last: int) -> list[int]:
    waiting, result = [last], set[int]()
    while waiting:
        number = waiting.pop()
        if number not in result:
            result.add(number)
            waiting.extend(inputs[number])
    return sorted(result)


def _kopl_until(steps: list[Step], last: int) -> str:
    """Return the steps that one step needs, as text if possible, else as JSON.

    In the JSON of the data set, each step lists its inputs, so the order of the steps is free.
    """
    needed = _needed([step.dependencies for step in steps], last)
    position = {number: place for place, number in enumerate(needed)}
    inputs_of = [tuple(position[dependency] for dependency in steps[number].dependencies) for number in needed]
    plain = [Step(steps[number].function, steps[number].texts) for number in needed]
    # In text, the inputs of a step follow from its position alone.
    if [item.dependencies for item in _linked(plain)] != inputs_of:
        listed = [
            {"function": item.function, "inputs": list(item.texts), "dependencies": list(inputs)}
            for item, inputs in zip(plain, inputs_of, strict=True)
        ]
        return json.dumps(listed, ensure_ascii=False)
    calls = (steps[number] for number in needed)
    return " ".join(f"{call.function}({', '.join(json.dumps(text, ensure_ascii=False) for text in call.texts)})" for call in calls)


def _linked(steps: list[Step]) -> list[Step]:
    try:
        return link(steps)
    except CondgraphError:
        return steps


def _llm(program: str) -> list[dict[str, Any]]:
    from condgraph.languages.llm.syntax.parse import parse
    from condgraph.languages.llm.syntax.tree import Call, Literal, OutputRef, references

    parsed = parse(program)
    inputs = [
        () if query.expression is None else tuple(dict.fromkeys(reference.position for reference in references(query.expression)))
        for query in parsed.queries
    ]
    result = []
    for number, query in enumerate(parsed.queries):
        texts, function = [], ""
        expression = query.expression
        if isinstance(expression, Call):
            function = expression.name
            for argument in expression.arguments:
                value = argument.value
                if isinstance(value, Literal):
                    role = (argument.name or "") + ("" if argument.op == "=" else argument.op)
                    texts.append({"role": role, "text": value.text, "span": list(value.span), "choices": []})
                elif not isinstance(value, OutputRef):
                    texts.append(
                        {"role": argument.name or "", "text": program[slice(*value.span)], "span": list(value.span), "choices": []}
                    )
        elif expression is not None:
            function = program[slice(*expression.span)]
        needed = _needed([*inputs], number)
        result.append(
            {
                "label": f"Query{query.label}",
                "function": function,
                "about": query.step if query.error is None else query.error.message,
                "texts": texts,
                "inputs": list(inputs[number]),
                "span": list(query.span),
                "program": "\n".join(program[slice(*parsed.queries[item].span)] for item in needed),
            }
        )
    return result
