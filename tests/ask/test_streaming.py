"""Steps and texts of a question while they come: through the client for HTTP, from callables, on the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.aio import AsyncGraph
from condgraph.ask.records import Asked, AskStep, AskText
from condgraph.cli.app import app
from condgraph.engine.errors import CancelledError
from condgraph.graph import Graph
from condgraph.models.openai_chat import OpenAIModel
from tests.ask.asking import Scripted, countries
from tests.support.chat_server import Raw, Say, Server, events, serving
from tests.support.samples import load_samples

QUESTION = "What is the capital of Nepal?"
CAPITAL = "Find(Nepal) Relate(capital, forward) QueryName()"
WORDS = "Its capital is Kathmandu [1]. Its capital is Lima [1]. Kathmandu is a capital city. [1]"
KEPT = ["Its capital is Kathmandu [1].", "Kathmandu is a capital city. [1]"]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return countries()


@pytest.fixture
def model_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setattr("condgraph.models.openai_chat._FIRST", 0.01)
    with serving() as found:
        yield found


def texts(heard: list[AskText], step: str) -> str:
    """What counts of the pieces of the first sample."""
    result = ""
    for piece in heard:
        if piece.step == step and piece.sample == 0:
            result = ("" if piece.begins else result) + piece.text
    return result


@pytest.mark.service
def test_pieces_come_through_the_client(graph: Graph, model_server: Server) -> None:
    """A program piece by piece; of the words only the sentences that hold, each whole."""
    model_server.script = [Say([CAPITAL]), Say([WORDS])]
    found = list(graph.asking(QUESTION, OpenAIModel("small", base_url=model_server.url), via="kopl", verbalise=True))
    outcome = found.pop()
    assert isinstance(outcome, Asked)
    assert [one.name for one in found if isinstance(one, AskStep)] == [one.name for one in outcome.steps]
    heard = [one for one in found if isinstance(one, AskText)]
    assert (len(heard) > len(CAPITAL), texts(heard, "write")) == (True, CAPITAL)
    assert [one.text for one in heard if one.step == "say"] == KEPT
    assert outcome.text == " ".join(KEPT)
    assert all(request["stream"] for request in model_server.requests)
    # A piece comes before the step that it is of.
    assert found.index(heard[0]) < next(at for at, one in enumerate(found) if isinstance(one, AskStep) and one.name == "write")
    # Without a listener nothing is streamed, and the outcome is the same.
    model_server.script = [Say([CAPITAL]), Say([WORDS])]
    model_server.requests.clear()
    again = graph.ask(QUESTION, OpenAIModel("small", base_url=model_server.url), via="kopl", verbalise=True)
    assert (again.text, again.texts) == (outcome.text, outcome.texts)
    assert not any("stream" in request for request in model_server.requests)


@pytest.mark.service
def test_a_stream_that_breaks_begins_again(graph: Graph, model_server: Server) -> None:
    """What came before is void: the first piece of the second reply says so."""
    broken = Raw(b"".join(events(Say(["Find(Ind"]), {"model": "small"}, done=False)), "text/event-stream")
    model_server.script = [broken, Say([CAPITAL])]
    heard: list[AskText] = []
    found = graph.ask(QUESTION, OpenAIModel("small", base_url=model_server.url), via="kopl", on_text=heard.append)
    assert found.texts == ["Kathmandu"]
    assert "".join(one.text for one in heard) == "Find(Ind" + CAPITAL
    assert [one.begins for one in heard].count(True) == 2
    assert texts(heard, "write") == CAPITAL


@pytest.mark.service
def test_servers_that_do_not_stream_and_several_samples(graph: Graph, model_server: Server) -> None:
    model_server.script = [Raw(json.dumps({"choices": [{"message": {"content": CAPITAL}}]}).encode())]
    heard: list[AskText] = []
    model = OpenAIModel("small", base_url=model_server.url)
    graph.ask(QUESTION, model, via="kopl", on_text=heard.append)
    assert heard == [AskText("write", CAPITAL, 0, True)]
    # Two at once, and a third by a request of its own.
    model_server.script = [Say([CAPITAL, CAPITAL]), Say(["Find(India)"])]
    heard.clear()
    found = graph.ask(QUESTION, model, via="kopl", samples=3, on_text=heard.append)
    said = {number: "".join(one.text for one in heard if one.sample == number) for number in range(3)}
    assert said == {0: CAPITAL, 1: CAPITAL, 2: "Find(India)"}
    assert found.texts == ["Kathmandu"]


@pytest.mark.service
def test_the_page_of_prompts_is_what_a_server_is_sent(graph: Graph, model_server: Server) -> None:
    """The script that prints the page has no server; `tests/test_docs.py` compares the page with the script."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "prompts.md").read_text("utf-8")
    model = OpenAIModel("small", base_url=model_server.url)
    for question, via in (
        (QUESTION, "kopl"),
        ("How high is Annapurna I?", "query"),
        ("Which mountain in Nepal was climbed first?", "cypher"),
    ):
        model_server.requests.clear()
        graph.ask(question, model, via=via, retries=0, demos=2, excerpt_tokens=400)  # type: ignore[arg-type]
        sent = [f"[{one['role']}]\n{one['content']}" for one in model_server.requests[0]["messages"]]
        assert "```text\n" + "\n\n".join(sent) + "\n```\n" in page


def test_callables_give_pieces(graph: Graph) -> None:
    def model(messages: object) -> Iterator[str]:
        yield from ("Find(Nepal) ", "Relate(capital, forward) ", "QueryName()")

    heard: list[AskText] = []
    found = graph.ask(QUESTION, model, via="kopl", on_text=heard.append)
    assert found.texts == ["Kathmandu"]
    assert [(one.text, one.begins) for one in heard][1:] == [("Relate(capital, forward) ", False), ("QueryName()", False)]
    assert graph.ask(QUESTION, model, via="kopl").texts == ["Kathmandu"]
    with pytest.raises(ZeroDivisionError):
        graph.ask(QUESTION, Scripted(CAPITAL), via="kopl", on_text=lambda _: 1 / 0)


def test_whoever_stops_ends_the_question(graph: Graph) -> None:
    from threading import Event

    ended = Event()
    steps = graph.asking(QUESTION, Scripted(CAPITAL), via="kopl", cancelled=ended)
    assert isinstance(next(steps), AskStep)
    steps.close()  # type: ignore[attr-defined]
    assert ended.is_set()
    with pytest.raises(CancelledError):
        list(graph.asking(QUESTION, Scripted(CAPITAL), via="kopl", cancelled=ended))


def test_conversations_and_asyncio(graph: Graph) -> None:
    chat = graph.chat(Scripted(CAPITAL, "Find(Nepal) Relate(continent, forward) QueryName()"), via="kopl")
    *_, first = chat.asking(QUESTION)
    *before, second = chat.asking("And its continent?")
    assert chat.turns == (first, second)
    assert any(isinstance(one, AskText) for one in before)

    async def main() -> list[AskStep | AskText | Asked]:
        return [one async for one in AsyncGraph(graph).asking(QUESTION, Scripted(CAPITAL), via="kopl")]

    *rest, last = asyncio.run(main())
    assert isinstance(last, Asked)
    assert texts([one for one in rest if isinstance(one, AskText)], "write") == CAPITAL


def test_the_command_line_streams(tmp_path: Path) -> None:
    """On standard error, without what steers a terminal; the answer is as ever."""
    with condgraph.open(tmp_path / "store") as graph:
        load_samples(graph)
        options = {"via": "kopl", "retries": 0, "transcript": tmp_path / "calls.jsonl"}
        graph.ask(QUESTION, Scripted(CAPITAL + "\n\x1b[2J"), **options)  # type: ignore[arg-type]
    words = ["-d", tmp_path / "store", "--llm", f"replay:{tmp_path / 'calls.jsonl'}", "--via", "kopl", "--stream"]
    found = CliRunner().invoke(app, ["ask", QUESTION, *map(str, words)])
    assert (found.exit_code, found.stdout.splitlines()[0]) == (0, "Kathmandu [1]")
    assert f"{CAPITAL}\n\\x1b[2J\nwrite (" in found.stderr
