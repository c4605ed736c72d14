"""Functions from outside: with texts alone, or with the question, the step, the rows and their
columns; sync and async.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph import FunctionCall
from condgraph.engine.errors import OptionError, PlanError
from condgraph.engine.external import takes_call, waited
from condgraph.engine.facts import Ref, Statement
from condgraph.graph import Graph
from tests.frontends.test_llm_query import program

PEOPLE = "name,team,points\nAnn,Red,10\nBob,Blue,7\nCid,Red,\n"
PROGRAM = """\
## Target type: {name}
Step1: Find the rows of the red team
Query1: "get_information(relation='team', tail_entity='Red')"
Step2: Who of them is the oldest?
Query2: "oldest(set='output_of_query1', than='5 years')"
"""


@pytest.fixture
def people(tmp_path: Path) -> Graph:
    (tmp_path / "people.csv").write_text(PEOPLE, "utf-8")
    found = condgraph.open()
    found.load(tmp_path / "people.csv")
    return found


def check(call: FunctionCall) -> None:
    assert (call.name, call.question, call.step) == ("oldest", "Who of the reds is the oldest?", "Query2")
    assert call.words == "Who of them is the oldest?"
    assert call.target_type == "name"
    assert call.options == {"argument 1": "set", "argument 2": "than"}
    rows, other = call.arguments
    assert (rows.name, other.name, other.texts, other.carriers, other.rows) == ("set", "than", ("5 years",), (None,), ())
    assert sorted(rows.texts) == ["Ann", "Cid"]
    by_name = {row.cells["name"][0]: row for row in rows.rows}
    ann, cid = by_name["Ann"], by_name["Cid"]
    assert (ann.id, ann.source, ann.number) == ("people/1", "people", 1)
    assert ann.cells == {"name": ("Ann",), "team": ("Red",), "points": ("10",)}
    assert (cid.number, cid.cells) == (3, {"name": ("Cid",), "team": ("Red",)})
    assert [row.cells["name"][0] for row in rows.carriers if row is not None] == list(rows.texts)
    assert sorted(row.id for row in call.rows) == ["people/1", "people/3"]


@pytest.mark.parametrize("engine", ["snapshot", "sparql"])
def test_a_hook_gets_the_whole_call(people: Graph, engine: Any) -> None:
    calls: list[FunctionCall] = []

    def hook(call: FunctionCall) -> list[str]:
        calls.append(call)
        return [max(call.rows, key=lambda row: len(row.cells)).name]

    answer = people.query(PROGRAM, llm_function=hook, question="Who of the reds is the oldest?", engine=engine)
    assert answer.texts == ["people row 1"]
    warning = next(warning for warning in answer.warnings if "not a native function" in warning)
    assert "given Ann, Cid; 5 years, and 2 rows with all columns" in warning
    assert {str(one).partition("  [")[0] for one in answer.evidence} >= {
        "people row 1 | points | 10",
        "people row 3 | team | Red",
    }
    assert "people row 2 | points | 7" not in str(list(map(str, answer.evidence)))
    # Looking at warnings and evidence asks no language model again.
    assert len(calls) == 1
    check(calls[0])


def test_a_hook_of_texts_stays_what_it_was(people: Graph) -> None:
    seen: list[Any] = []

    def hook(name: str, arguments: list[list[str]], options: dict[str, str]) -> list[str]:
        seen.append((name, [sorted(one) for one in arguments], options))
        return ["Ann"]

    for engine in ("snapshot", "sparql"):
        answer = people.query(PROGRAM, llm_function={"oldest": hook}, engine=engine)
        assert answer.texts == ["Ann"]
        assert not any("with all columns" in warning for warning in answer.warnings)
    assert seen == [("oldest", [["Ann", "Cid"], ["5 years"]], {"argument 1": "set", "argument 2": "than"})] * 2


def test_entities_of_a_graph_are_shown_with_what_is_said_of_them() -> None:
    graph = condgraph.open()
    graph.add(
        [Statement(who, "likes", Ref(what)) for who, what in (("Ann", "Tea"), ("Bob", "Tea"), ("Cid", "Rum"))]
        + [Statement("Tea", "made of", "leaves")],
        source="s",
    )
    calls: list[FunctionCall] = []

    def hook(call: FunctionCall) -> list[str]:
        calls.append(call)
        return ["x"]

    for likes in ("get_information(relation='likes')", "get_information(relation='likes', tail_entity='Tea')"):
        graph.query(program(likes, "guess(set='output_of_query1')"), llm_function=hook)
    first, second = (call.arguments[0] for call in calls)
    assert sorted(first.texts) == ["Rum", "Tea", "Tea"]
    assert sorted((text, row.name) for text, row in zip(first.texts, first.carriers, strict=True) if row is not None) == [
        ("Rum", "Cid"),
        ("Tea", "Ann"),
        ("Tea", "Bob"),
    ]
    assert [(row.name, row.source, row.number, row.cells) for row in second.rows] == [
        ("Ann", "", 0, {"likes": ("Tea",)}),
        ("Bob", "", 0, {"likes": ("Tea",)}),
    ]


def test_async_hooks(people: Graph) -> None:
    async def hook(call: FunctionCall) -> list[str]:
        await asyncio.sleep(0)
        return [str(len(call.rows))]

    async def of_texts(name: str, arguments: list[list[str]], options: dict[str, str]) -> list[str]:
        await asyncio.sleep(0)
        return [name]

    # Called from a thread without a loop, and from one with a running loop.
    assert people.query(PROGRAM, llm_function=hook).texts == ["2"]
    assert people.query(PROGRAM, llm_function=of_texts).texts == ["oldest"]

    async def inside() -> list[str]:
        return people.query(PROGRAM, llm_function=hook).texts

    assert asyncio.run(inside()) == ["2"]
    with pytest.raises(ZeroDivisionError):
        waited(_failing())


async def _failing() -> list[str]:
    await asyncio.sleep(0)
    return [1 / 0]  # type: ignore[list-item]


def test_async_hooks_run_on_the_loop_of_the_caller(people: Graph) -> None:
    async def whole() -> None:
        mine = asyncio.get_running_loop()
        loops: list[Any] = []

        async def hook(call: FunctionCall) -> list[str]:
            loops.append(asyncio.get_running_loop())
            await asyncio.sleep(0)
            return [str(len(call.rows))]

        graph = condgraph.AsyncGraph(people)
        assert (await graph.query(PROGRAM, llm_function=hook)).texts == ["2"]
        assert (await graph.query(PROGRAM, llm_function={"oldest": hook}, engine="sparql")).texts == ["2"]
        assert loops == [mine, mine]
        sync = await graph.query(PROGRAM, llm_function=lambda call: [call.step])
        assert sync.texts == ["Query2"]

        async def slow(call: FunctionCall) -> list[str]:
            await asyncio.sleep(60)
            return []

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(graph.query(PROGRAM, llm_function=slow), 0.5)

    asyncio.run(whole())


def test_which_form_a_hook_takes() -> None:
    class Model:
        def __call__(self, call: FunctionCall, temperature: float = 0.0) -> list[str]:
            return []

    assert takes_call(lambda call: [])
    assert takes_call(Model())
    assert not takes_call(lambda name, arguments, options: [])
    assert not takes_call(lambda *arguments: [])
    assert not takes_call(lambda name, arguments, options=None: [])


def test_what_goes_wrong_is_reported(people: Graph) -> None:
    with pytest.raises(PlanError, match="the function 'oldest' from outside failed: ValueError: no key"):
        people.query(PROGRAM, llm_function=_refusing)
    with pytest.raises(OptionError, match="a question is a text"):
        people.query(PROGRAM, llm_function=_refusing, question=5)


def _refusing(call: FunctionCall) -> list[str]:
    raise ValueError("no key")
