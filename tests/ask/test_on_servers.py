"""The same replies of a model give the same outcome on Neo4j, Virtuoso and Oxigraph's server. Real
servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.ask.records import Asked
from condgraph.graph import Graph
from condgraph.remote import RemoteGraph
from tests.ask.asking import Scripted, countries, springfields
from tests.support.stores import asked_of, marked, server_of

CAPITAL = "Find(Nepal) Relate(capital, forward) QueryName()"
PATTERN = '{"triples": [["Nepal", "capital", "UNKNOWN city 1"]], "answer": "UNKNOWN city 1"}'
LED = "Find(India) Relate(head of government, forward)"
HIGH = "FindAll() FilterNum(height, {} m, >) Relate(country, forward) QueryName()"


def query(*lines: str) -> str:
    """An LLM query of these lines."""
    return "\n".join(f'Query{number}: "{line}"' for number, line in enumerate(lines, start=1))


#: A question, the replies that the model gives to it, and how it is asked.
CASES: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
    ("What is the capital of Nepal?", (CAPITAL,), {}),
    ("What is the capital of Nepal?", (query("get_information(relation='capital', head_entity='Nepal')"),), {"via": "query"}),
    ("What is the capital of Nepal?", (PATTERN,), {"via": "pattern"}),
    ("How high is Manaslu?", (query("get_information(relation='height', head_entity='Manaslu')"),), {"source": "mountains"}),
    # A row of a table is named by its key.
    ("How high is Annapurna I?", ("Find(Annapurna I) QueryAttr(height)",), {}),
    ("Which countries have mountains above 7,500 m?", (HIGH.format(7500),), {}),
    ("Who led India in 1980?", (f"{LED} QFilterYear(start time, 1980, =) QueryName()",), {}),
    # Faults, each with what puts it right.
    ("What is the capital of Neppal?", ("Find(Neppal) Relate(capital, forward) QueryName()", CAPITAL), {}),
    ("What is Paris the capital of?", ("Find(Paris) Relate(capital, forward) QueryName()",), {}),
    (
        "What is Paris the capital of?",
        ("Find(Paris) Relate(capital, forward) QueryName()", "Find(Paris) Relate(capital, backward) QueryName()"),
        {},
    ),
    ("What is the capital of Nepal?", ("Find(Nepal) Relate(capitl, forward) QueryName()", CAPITAL), {}),
    ("Which mountain is high?", ("FindAll() FilterConcept(movie) QueryName()", HIGH.format(8000)), {}),
    ("Which countries?", ("FindAll() FilterNum(height, 7500 metrez, >) QueryName()", HIGH.format(7500)), {}),
    ("What is the capital of Nepal?", ("Find(Nepal) GetCapital()", f"```\n{CAPITAL}\n```"), {}),
    ("What is the capital of Nepal?", ("Find(Nepal Relate(capital, forward)", CAPITAL), {}),
    ("What is the capital of Nepal?", ("Find(Nepal) Relate(forward, capital) QueryName()", CAPITAL), {}),
    ("What is the capital of Nepal?", ("Find(Nepal) Relate(capital)", "Find(Nepal) QueryAttr(start time)", CAPITAL), {}),
    ("Which are high?", ("FindAll() FilterStr(height, 4167 m) QueryName()", HIGH.format(8000)), {}),
    (
        "How high is Manaslu?",
        (query("get_information(relation='height', head_entity='Manaslu')", "max(set='query1')"), query("get_height('Manaslu')")),
        {"via": "query", "retries": 1},
    ),
    (
        "Since when has India been led?",
        (query("get_information(relation='head of government', head_entity='India', key='begin')"),),
        {"via": "query", "retries": 0},
    ),
    (
        "What is the capital of Nepal?",
        ("MATCH ({name: 'Nepal'})<-[:capital]-(x) RETURN x.name", "MATCH ({name: 'Nepal'})-[:capital]->(x) RETURN x.name"),
        {"via": "cypher"},
    ),
    (
        "How many capitals has Nepal?",
        ("MATCH ({name: 'nepal'})-[:capital]->(x) RETURN count(x)", "MATCH (c:Nation)-[:capital]->(x) RETURN count(x)"),
        {"via": "cypher", "retries": 1},
    ),
    ("How high?", ("MATCH (m:mountains) WHERE m.height > 8100 RETURN m.name, m.height ORDER BY m.height",), {"via": "cypher"}),
    ("Who composed Qwzrtpl?", ("NONE",), {}),
    ("Say something.", ("I cannot tell.",), {"retries": 1}),
]  # fmt: skip


def shown(found: Asked) -> dict[str, Any]:
    """What has to be the same on every store."""
    attempts = [
        (one.program, one.language, one.stage, one.error, one.code, one.feedback, one.gave, one.choice) for one in found.attempts
    ]
    excerpt = found.excerpt
    return {
        "status": found.status, "answers": found.texts, "values": found.values, "said": found.text, "source": found.source,
        "citations": found.citations, "attempts": attempts, "choices": found.choices, "calls": found.calls,
        "mentions": None if excerpt is None else excerpt.mentions,
        "near": None if excerpt is None else excerpt.predicates,
        "failures": found.failures,
    }  # fmt: skip


def asked(graph: Graph, case: tuple[str, tuple[str, ...], dict[str, Any]]) -> dict[str, Any]:
    question, replies, options = case
    return shown(graph.ask(question, Scripted(*replies), **({"via": "kopl"} | options)))


@pytest.fixture(scope="module")
def here() -> Graph:
    return countries()


@pytest.fixture(scope="module")
def expected(here: Graph) -> list[dict[str, Any]]:
    found = [asked(here, case) for case in CASES]
    # The script is worth its name: it has every outcome that a graph of one meaning a name can have.
    assert {one["status"] for one in found} == {"answered", "empty", "abstained", "failed"}
    assert sum(bool(attempt[5]) for one in found for attempt in one["attempts"]) >= 8
    return found


def opened(server: Any, name: str) -> RemoteGraph:
    if isinstance(server, str):
        found = condgraph.open(server, graph=name)
    else:
        options = {} if server.name == "virtuoso" else {"update": server.update}
        found = condgraph.open(f"sparql+{server.query}", graph=name, **options)
    assert isinstance(found, RemoteGraph)
    return found


STORES = marked("oxigraph", nightly=("neo4j", "virtuoso"))


@pytest.fixture(params=STORES, scope="module")
def server(request: pytest.FixtureRequest) -> Any:
    return server_of(request, request.param)


@pytest.fixture(scope="module")
def there(server: Any, here: Graph) -> Iterator[RemoteGraph]:
    found = opened(server, "asked")
    found.delete()
    found.push(here)  # type: ignore[attr-defined]
    yield found
    found.delete()
    found.close()


@pytest.mark.slow
def test_the_same_replies_give_the_same_outcome(
    there: RemoteGraph, expected: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A server that plans its first queries may take longer than programs with other names are tried for.
    monkeypatch.setattr("condgraph.ask.programs._DRAFTS", 60.0)
    different = []
    for case, wanted in asked_of(there, list(zip(CASES, expected, strict=True)), 3):
        found = asked(there, case)
        different += [f"{case[1]} {key}:\n  {found[key]}\n  {wanted[key]}" for key in wanted if found[key] != wanted[key]]
    assert not different, "\n".join(different)


def test_names_with_several_meanings_are_the_same_choice(server: Any) -> None:
    local = springfields()
    question = "Which state is Springfield in?"
    cases: list[dict[str, Any]] = [{}, {"choose": {"Springfield": "s2"}}]
    with opened(server, "chosen") as remote:
        remote.delete()
        remote.push(local)  # type: ignore[attr-defined]
        for options in cases:
            found, wanted = (
                shown(graph.ask(question, Scripted("Find(Springfield) Relate(state, forward) QueryName()"), **options))
                for graph in (remote, local)
            )
            assert found == wanted
        remote.delete()


def test_demonstrations_of_a_graph_on_a_server_last_as_long_as_it_is_open(server: Any, there: RemoteGraph) -> None:
    there.demos.add("What is the capital of India?", "Find(India) Relate(capital, forward) QueryName()", ["New Delhi"])
    model = Scripted(CAPITAL)
    assert there.ask("What is the capital of Nepal?", model).texts == ["Kathmandu"]
    assert "Find(India)" in model.told
    with opened(server, "asked") as again:
        assert not len(again.demos)


def test_demonstrations_of_a_graph_on_a_server_are_kept_in_a_file(server: Any, there: RemoteGraph, tmp_path: Path) -> None:
    place = tmp_path / "demos.jsonl"
    program = "Find(India) Relate(capital, forward) QueryName()"
    with opened(server, "asked") as first:
        first.demos.keep_in(place)
        first.demos.add("What is the capital of India?", program, ["New Delhi"])
    with opened(server, "asked") as second:
        assert not len(second.demos)
        assert second.demos.keep_in(place) == 1
        model = Scripted(CAPITAL)
        assert second.ask("What is the capital of Nepal?", model).texts == ["Kathmandu"]
        assert program in model.told
