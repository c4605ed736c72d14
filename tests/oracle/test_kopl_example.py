"""The 37 assertions of the KoPL package's own tests, kept as data: expressions of its Python
engine, read without running them.

An expression is a nest of calls, which is a KoPL program turned inside out; what is asserted of
`ans` is one of a dozen forms, each with its counterpart on an `Answer`. Two assertions are about
the Python types that the package returns (a tuple whose first item is a list): an `Answer` is
neither, on purpose, and that is asserted instead. The other 35 hold.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.answer import Answer
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph
from condgraph.languages.kopl.table import FUNCTIONS
from tests.support.programs import as_json
from tests.support.reference import Call


def program_of(expression: str) -> list[Call]:
    """The program that a nest of calls is."""
    steps: list[Call] = []

    def visit(node: ast.expr) -> int:
        assert isinstance(node, ast.Call), ast.dump(node)
        assert isinstance(node.func, ast.Attribute), ast.dump(node)
        function = node.func.attr
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        takes = [visit(argument) for argument in arguments if isinstance(argument, ast.Call)]
        texts = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
        signature = FUNCTIONS[function]
        assert (len(takes), len(texts)) == (signature.inputs, len(signature.texts)), expression
        steps.append((function, texts, takes))
        return len(steps) - 1

    visit(ast.parse(expression, mode="eval").body)
    return steps


def value_of(expression: str) -> Any:
    """`ValueClass('quantity', 206, 'centimetre')` as a value."""
    node = ast.parse(expression, mode="eval").body
    assert isinstance(node, ast.Call)
    kind, *parts = (ast.literal_eval(argument) for argument in node.args)
    return {"quantity": Quantity, "year": Time.year}[kind](*parts)


def inner(text: str) -> str:
    """The `ValueClass(...)` within an expression."""
    return text[text.index("ValueClass") : text.index(")", text.index("ValueClass")) + 1]


def same_type(one: Any, other: Any) -> bool:
    """Whether two values can be compared."""
    return type(one) is type(other) and getattr(one, "unit", None) == getattr(other, "unit", None)


def literal(text: str) -> Any:
    """An expected value, which is a literal."""
    return ast.literal_eval(text)


#: What is asserted, by the expression looked at ("..." stands for what differs): a check of
#: (answer, expression, expected).
CHECKS: dict[str, Callable[[Answer, str, Any], bool]] = {
    "len(ans[0])": lambda answer, _, wanted: len(answer.entities) == wanted,
    "ans[0]": lambda answer, _, wanted: (
        [entity.id for entity in answer.entities] == wanted if isinstance(wanted, list) else answer.texts[0] == wanted
    ),
    "ans": lambda answer, _, wanted: answer.texts == ([str(w) for w in wanted] if isinstance(wanted, list) else [str(wanted)]),
    "str(ans[0])": lambda answer, _, wanted: answer.texts[0] == wanted,
    "engine.QueryName(ans)[0]": lambda answer, _, wanted: answer.texts[0] == wanted,
    "engine.QueryName(ans)": lambda answer, _, wanted: answer.texts == wanted,
    "len(engine.QueryName(ans))": lambda answer, _, wanted: len(answer.entities) == wanted,
    "ans[0].can_compare(...": lambda answer, text, _: same_type(answer.values[0], value_of(inner(text))),
    "comp(ans[0], ...": lambda answer, text, _: answer.values == [value_of(inner(text))],
    "... in engine.QueryName(ans)": lambda answer, text, _: literal(text.split(" in ")[0]) in answer.texts,
    "isinstance(...": lambda answer, text, _: not isinstance(answer, tuple | list),
}


def check_of(text: str) -> Callable[[Answer, str, Any], bool]:
    """The check for an expression."""
    if text in CHECKS:
        return CHECKS[text]
    (found,) = (
        check
        for form, check in CHECKS.items()
        if "..." in form and text.startswith(form.split("...")[0]) and text.endswith(form.split("...")[1])
    )
    return found


@pytest.fixture(scope="module")
def graph(data: Path) -> Graph:
    """The four entities of the example."""
    graph = condgraph.open("memory:")
    graph.load(data / "kopl_example" / "example_kb.json")
    return graph


def test_assertions(graph: Graph, data: Path) -> None:
    """All 37, each by its check."""
    cases = json.loads((data / "kopl_example" / "expected_results.json").read_text(encoding="utf-8"))
    assert len(cases) == 37
    about_types = 0
    for case in cases:
        program = program_of(case["bindings"]["ans"])
        answer = graph.kopl(as_json(program))
        text, *wanted = case["args"]
        about_types += text.startswith("isinstance(")
        assert check_of(text)(answer, text, literal(wanted[0]) if wanted else None), (case, answer.texts)
    assert about_types == 2


def test_counts(graph: Graph) -> None:
    """What the file holds, counted by hand."""
    assert {name: graph.status().counts[name] for name in ("entities", "concepts", "relations", "attributes", "memberships")} == {
        "entities": 4,
        "concepts": 4,
        "relations": 5,
        "attributes": 9,
        "memberships": 3,
    }
