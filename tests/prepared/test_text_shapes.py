"""KoPL texts that differ in the name of their first Find are answered by one plan, as if each were planned by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import condgraph
from condgraph import CondgraphError, Graph, Ref, Statement
from condgraph.snapshot_store import QuickAnswer
from tests.support.lanes import shared_graph
from tests.support.prepared import kopl_taken_out, said
from tests.support.world import PROGRAMS, world

TEXTS = [program for program in PROGRAMS if program.startswith(("Find(A", "Find(B"))]
NAMES = [
    "Ann",
    "Bo",
    "person",
    "nobody",
    "a",
    "Ann ",
    " Ann",
    "Ann  B",
    "",
    "$name",
    '"Ann"',
    "Ann, Bo",
    "(Ann",
    "Ann)",
    "\0",
    '" Ann"',
    '"Ann, Bo"',
    '"Ann)"',
    '"$name"',
    '"A\\u006en"',
    '""',
]


def renamed(program: str, name: str) -> str:
    """The text with another name in its first Find."""
    return f"Find({name}){program.partition(')')[2]}"


@pytest.mark.parametrize("program", TEXTS)
def test_any_name_in_any_order(program: str) -> None:
    graph = world()
    fresh = {name: said(world(), renamed(program, name), None, more=True) for name in NAMES}
    for _ in range(4):  # planned with its name, with an open plan, and as a path
        for name, wanted in fresh.items():
            assert said(graph, renamed(program, name), None, more=True) == wanted, name


def test_the_plan_is_used_and_follows_the_graph() -> None:
    graph = condgraph.open()
    graph.load([{"name": "A", "next": "B"}, {"name": "B", "next": "C"}], name="line", key="name")
    program = "Find({}) QueryAttr(next)"
    answers = [graph.kopl(program.format(name)) for name in "ABAB"]
    assert [answer.texts for answer in answers] == [["B"], ["C"], ["B"], ["C"]]
    assert [isinstance(answer, QuickAnswer) for answer in answers] == [False, True, True, True]
    assert answers[3].program == program.format("B")
    assert not answers[3].parameters
    graph.load([{"name": "A", "next": "D"}, {"name": "E", "next": "F"}], name="line", key="name", replace=True)
    assert graph.kopl(program.format("A")).texts == ["D"]
    with pytest.raises(CondgraphError, match="'B'"):
        graph.kopl(program.format("B"))
    assert graph.kopl(program.format("B"), on_unknown="empty").texts == []


def test_limits_and_deadlines_are_those_of_the_call() -> None:
    graph: Graph = condgraph.open()
    graph.load([{"name": f"r{n}", "of": "A"} for n in range(50)], name="rows", key="name", refs="of")
    graph.load([{"name": "A"}, {"name": "B"}], name="tops", key="name")
    program = "Find(A) Relate(of, backward) QueryName()"
    for _ in range(6):
        assert len(graph.kopl(program).texts) == 50
    limited = graph.kopl(program, limit=3)
    assert len(limited.texts) == 3
    assert limited.warnings
    assert len(graph.kopl(program, timeout=5).texts) == 50


def test_oracle_programs(oracle: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    graph = shared_graph(tmp_path_factory, oracle / "kb_small.json")
    records = [json.loads(line)["program"] for line in (oracle / "programs_small.jsonl").read_text("utf-8").splitlines()]
    begun = [steps for steps in records if steps[0]["function"] == "Find"]
    names = [steps[0]["inputs"][0] for steps in begun]
    for at, (_, *steps) in enumerate(begun[::9]):
        rest = " ".join(f"{step['function']}({', '.join(map(quoted, step['inputs']))})" for step in steps)
        for name in (*names[at : at + 3], names[at]):
            plain, _, _ = kopl_taken_out(f"Find({quoted(name)}) {rest}")
            assert said(graph, f"Find({name}) {rest}", None, spans=False) == said(graph, plain, None, spans=False), (name, rest)


def quoted(text: str) -> str:
    """A text as KoPL has it in quotes."""
    return json.dumps(text, ensure_ascii=False)


def test_entities_of_answers_to_a_repeated_text() -> None:
    """The first answer is planned, later ones may come from the text's shape: both have their entities."""
    graph = condgraph.open()
    graph.add([Statement("Ann", "knows", Ref("Bob")), Statement("Ann", "knows", Ref("Cem"))])
    for program in ('Find("Ann")', "Find(Ann)", 'Find("Ann") Relate(knows, forward)', "Find(Ann) Relate(knows, forward) Count()"):
        first, *later = [graph.kopl(program).entities for _ in range(4)]
        assert later == [first] * 3
        assert [entity.name for entity in first] == ([] if "Count" in program else graph.kopl(program).texts)
