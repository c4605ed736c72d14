"""A model that is held to what the entities of the question have: over HTTP, by a server that writes whatever
its constraint lets it; on every store; and what is said where it cannot be held.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.engine.errors import OptionError
from condgraph.engine.facts import Ref, Statement
from condgraph.graph import Graph
from condgraph.models.adapters import model_of
from tests.ask.asking import Scripted, countries
from tests.ask.test_held import Held
from tests.ask.test_on_servers import STORES, opened, shown
from tests.support.chat_server import Say, serving
from tests.support.gbnf import Gbnf
from tests.support.lanes import by_lane
from tests.support.schemas import Schemas
from tests.support.stores import server_of

QUESTION = "What is the capital of Nepal?"
#: Nepal has no mountains that it is in, and no head of government is of a mountain.
LESS = 'Find("Nepal") Relate("country", "forward") QueryName()'
MORE = 'Find("Nepal") Relate("capital", "forward") QueryName()'
TREES = [
    {"program": {"QueryName": {"of": {"Relate": {"of": {"Find": {"name": "Nepal"}}, "relation": one, "direction": "forward"}}}}}
    for one in ("country", "capital")
]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return countries()


def _about(found: Any) -> str:
    return str(next(one.about for one in found.steps if one.name == "look"))


@pytest.mark.parametrize(
    ("accepts", "replies"), [(("gbnf", "json-schema"), (LESS, MORE)), (("json-schema",), tuple(map(json.dumps, TREES)))]
)
def test_only_what_an_entity_has(graph: Graph, accepts: tuple[str, ...], replies: tuple[str, ...]) -> None:
    free = graph.ask(QUESTION, Held(accepts, *replies), via="kopl", retries=0)
    assert (free.status, free.program) == ("empty", LESS)
    held = graph.ask(QUESTION, Held(accepts, *replies), aware=True, retries=0)
    assert (held.status, held.texts, held.program) == ("answered", ["Kathmandu"], MORE)
    assert f"held to a grammar ({accepts[0]}) that knows what an entity has" in _about(held)
    assert "kopl, since what entities have is asked for" in _about(held)
    assert not held.warnings
    # It may say that nothing answers, as ever.
    none = "NONE" if "gbnf" in accepts else '{"program": null}'
    assert graph.ask("Who sings in Nepal?", Held(accepts, none), aware=True).status == "abstained"


def test_what_does_not_know_says_so(graph: Graph) -> None:
    found = graph.ask(QUESTION, Scripted(MORE), aware=True)
    assert found.texts == ["Kathmandu"]
    assert any("aware= has no effect" in one for one in found.warnings)
    for via in ("query", "pattern"):
        with pytest.raises(OptionError, match="programs in KoPL"):
            graph.ask(QUESTION, Scripted(MORE), via=via, aware=True)  # type: ignore[arg-type]


def test_a_schema_that_would_list_too_much_is_the_one_without() -> None:
    wide = condgraph.open()
    wide.add([Statement("Nepal", f"relation {number}", Ref("x")) for number in range(600)])
    reply = {"Relate": {"of": {"Find": {"name": "Nepal"}}, "relation": "relation 7", "direction": "forward"}}
    model = Held(("json-schema",), json.dumps({"program": {"QueryName": {"of": reply}}}))
    found = wide.ask("What is relation 7 of Nepal?", model, aware=True)
    assert found.texts == ["x"]
    assert model.asked[0][2] is not None
    assert "held to a grammar (json-schema)" in _about(found)
    assert "that knows" not in _about(found)
    assert any("does not know what entities have: a schema with it would list" in one for one in found.warnings)


@pytest.mark.service
@pytest.mark.parametrize("llama", [True, False], ids=["gbnf", "json-schema"])
def test_whatever_is_written_is_of_what_there_is(graph: Graph, llama: bool) -> None:
    """Over HTTP: random programs under the constraint of each request run, and ask for what is there."""
    rng, faults = random.Random(10), []

    def write(request: dict[str, Any]) -> Say:
        if ("grammar" in request) != llama or ("response_format" in request) == llama:
            faults.append(sorted(request))
            return Say(["NONE"])
        if llama:
            return Say([Gbnf(request["grammar"]).derive(rng)])
        form = request["response_format"]["json_schema"]
        assert form["strict"] is True
        return Say([json.dumps(Schemas(form["schema"], deep=3).derive(rng), ensure_ascii=False)])

    with serving(write) as server:
        server.llama = llama
        model = model_of(f"openai:tiny@{server.url}")
        programs = []
        for number in range(by_lane(60, 300, 3000)):
            question = (QUESTION, "How high is Manaslu?", "Who led India when Nepal's capital was Kathmandu?")[number % 3]
            found = graph.ask(question, model, aware=True, retries=0)
            assert all(one.stage in (None, "running") or not one.program for one in found.attempts), found.attempts
            programs += [one.program for one in found.attempts if one.program]
        assert server.requests
        assert not faults
        assert len(programs) > 20
    asked = {found.groups() for one in programs for found in _OF_NEPAL.finditer(one)}
    assert asked
    assert asked <= _nepal(graph)


_OF_NEPAL = re.compile(r'Find\("Nepal"\) Relate\("([^"]*)", "(\w+)"\)')


def _nepal(graph: Graph) -> set[tuple[str, str]]:
    """What gives something for Nepal, tried one by one."""
    found = set()
    for one in graph.schema().predicates:
        for way in ("forward", "backward"):
            try:
                if graph.kopl(f"Find(Nepal) Relate({one.name}, {way})").values:
                    found.add((one.name, way))
            except condgraph.CondgraphError:
                continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("server", STORES)
def test_it_is_the_same_on_servers(graph: Graph, server: str, request: pytest.FixtureRequest) -> None:
    with opened(server_of(request, server), "asked-aware") as remote:
        remote.delete()
        remote.push(graph)  # type: ignore[attr-defined]
        for accepts, replies in ((("gbnf",), (LESS, MORE)), (("json-schema",), tuple(map(json.dumps, TREES)))):
            mine, theirs = Held(accepts, *replies), Held(accepts, *replies)
            here, there = (
                one.ask(QUESTION, model, aware=True, retries=0)
                for one, model in ((graph, mine), (remote, theirs))
            )  # fmt: skip
            assert shown(there) == shown(here)
            assert there.program == MORE
            assert theirs.asked[0][1:] == mine.asked[0][1:]
            assert "that knows what an entity has" in _about(there)
        remote.delete()


@pytest.mark.service
def test_in_a_shell(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option of `condgraph ask` reaches the server as a grammar that knows."""
    place = tmp_path / "store"
    with condgraph.open(place) as made:
        made.add([Statement("Nepal", "capital", Ref("Kathmandu")), Statement("Everest", "country", Ref("Nepal"))])
    grammars = []

    def write(request: dict[str, Any]) -> Say:
        grammars.append(Gbnf(request["grammar"]))
        return Say([next(one for one in (LESS, MORE) if grammars[-1].accepts(one))])

    with serving(write) as server:
        server.llama = True
        words = ["ask", QUESTION, "-d", str(place), "--llm", f"openai:tiny@{server.url}", "--steps"]
        free = CliRunner().invoke(app, [*words, "--via", "kopl", "--retries", "0"])
        assert "Kathmandu" not in free.stdout
        held = CliRunner().invoke(app, [*words, "--aware"])
    assert held.exit_code == 0
    assert held.stdout.startswith("Kathmandu [1]")
    assert "that knows what an entity has" in held.stderr
