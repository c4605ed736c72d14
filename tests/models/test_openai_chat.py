"""Models behind OpenAI's chat completions, against a server that speaks it and fails as it is told."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Iterator
from threading import Event, Timer
from typing import Any

import pytest

from condgraph.engine.bounds import within
from condgraph.engine.errors import CancelledError, DeadlineError, ModelError, OptionError
from condgraph.models.adapters import model_of
from condgraph.models.chat import ChatModel, Usage
from condgraph.models.openai_chat import OpenAIModel
from tests.support.chat_server import KEY, Raw, Say, Server, Status, events, last_message, serving
from tests.support.pace import quick_enough

ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say fine."}]
BUSY = Status(429, "slow down")
BROKEN = Status(500, "out of order")
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.fixture
def chat_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    # Waits that tests have no time for.
    monkeypatch.setattr("condgraph.models.openai_chat._FIRST", 0.01)
    with serving() as found:
        monkeypatch.setenv("OPENAI_BASE_URL", found.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield found


def texts(model: ChatModel, **options: Any) -> list[str]:
    return [one.text for one in model.chat(ASKED, **options)]


def test_a_request_says_what_was_asked_for_and_nothing_else(chat_server: Server) -> None:
    model = model_of("openai:small")
    assert isinstance(model, ChatModel)
    found = model.chat(ASKED, max_tokens=7, temperature=0.5, seed=3, schema=SCHEMA)
    assert [(one.text, one.finish) for one in found] == [("fine", "stop")]
    assert (found.usage, found.model, found.requests) == (Usage(10, 2), "small", 1)
    assert chat_server.requests == [
        {
            "model": "small",
            "messages": ASKED,
            "max_tokens": 7,
            "temperature": 0.5,
            "seed": 3,
            "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}},
        }
    ]
    assert chat_server.keys == {f"Bearer {KEY}"}
    loose = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}}}}
    model.chat(ASKED, schema=loose)
    assert chat_server.requests[-1]["response_format"]["json_schema"]["strict"] is False


def test_a_base_url_in_the_name(chat_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    model = model_of(f"openai:@cf/small@{chat_server.url}")
    assert texts(model) == ["fine"]
    assert chat_server.requests[0]["model"] == "@cf/small"


@pytest.mark.parametrize("stream", [False, True])
def test_busy_and_broken_servers_are_asked_again(chat_server: Server, stream: bool) -> None:
    chat_server.script = [BUSY, BROKEN, Status(503, "overloaded")]
    model = OpenAIModel("small", stream=stream)
    found = model.chat(ASKED)
    assert (found[0].text, found.requests, len(chat_server.requests)) == ("fine", 4, 4)
    chat_server.script = [BROKEN] * 9
    with pytest.raises(ModelError, match="asked 3 times: 500: out of order"):
        OpenAIModel("small", retries=2, stream=stream).chat(ASKED)
    assert len(chat_server.requests) == 7


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (Status(401, f"Incorrect API key provided: {KEY}. Also sk-a-s****789."), "401"),
        (Status(403, "not yours"), "403: not yours"),
        (Status(404, "no model small"), "404: no model small"),
        (Status(400, "messages: too many"), "400: messages"),
        (Status(429, "You exceeded your current quota", code="insufficient_quota"), "quota"),
        (Status(400, "maximum context length is 4096 tokens, the messages have 5000"), "context length"),
        (Status(400, "max_tokens is too large: 9. It must be at most 4", param="max_tokens"), "too large"),
    ],
)
def test_what_asking_again_does_not_help_is_an_error_at_once(chat_server: Server, status: Status, message: str) -> None:
    chat_server.script = [status]
    with pytest.raises(ModelError, match=message):
        model_of("openai:small").chat(ASKED, max_tokens=9)
    assert len(chat_server.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_key_is_nowhere_to_be_seen(chat_server: Server, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="condgraph")
    chat_server.default = Status(401, f"Incorrect API key provided: {KEY}. You sent Bearer {KEY}, as in sk-a-s****789.")
    model = OpenAIModel("small", base_url=chat_server.url.replace("http://", "http://me:hidden-word@"), stream=stream)
    with pytest.raises(ModelError) as caught:
        model.chat(ASKED)
    chat_server.default = Status(500, f"it broke with {KEY}")
    with pytest.raises(ModelError) as broken:
        model.chat(ASKED)
    errors = (caught.value, broken.value)
    seen = [repr(model), model.name, model.place, caplog.text, *(str(one) + repr(one) + str(one.hint) for one in errors)]
    seen += ["".join(traceback.format_exception(one)) for one in errors]
    for text in seen:
        assert KEY not in text
        assert "hidden-word" not in text
        assert "a-s****789" not in text


def test_a_whole_call_ends_in_its_time(chat_server: Server) -> None:
    chat_server.default = Raw(b"{", cut=5, still=2.0)
    model = OpenAIModel("small")
    for bound in ({"timeout": 0.3}, {}):
        started = time.monotonic()
        with pytest.raises(ModelError, match=r"within 0.3 s|in time") as caught:
            (model if bound else OpenAIModel("small", timeout=0.3)).chat(ASKED, **bound)
        assert "timeout" in str(caught.value.hint)
        assert quick_enough(time.monotonic() - started, 1.5)
    started = time.monotonic()
    with pytest.raises(DeadlineError), within(0.3):
        model.chat(ASKED)
    cancelled = Event()
    Timer(0.3, cancelled.set).start()
    with pytest.raises(CancelledError), within(None, cancelled):
        model.chat(ASKED)
    assert quick_enough(time.monotonic() - started, 3)


def test_a_reply_that_trickles_ends_in_time_too(chat_server: Server) -> None:
    chat_server.default = Raw(b" " * 400, trickle=0.05)
    started = time.monotonic()
    with pytest.raises(ModelError):
        OpenAIModel("small").chat(ASKED, timeout=0.5)
    assert quick_enough(time.monotonic() - started, 2)


def test_a_server_that_wants_a_long_wait_is_not_waited_for(chat_server: Server) -> None:
    chat_server.default = Status(429, "tomorrow", headers={"Retry-After": "80000"})
    started = time.monotonic()
    with pytest.raises(ModelError, match="429: tomorrow"):
        OpenAIModel("small").chat(ASKED, timeout=5)
    assert quick_enough(time.monotonic() - started, 2)
    assert len(chat_server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Raw(b'{"choices": [{"message": {"conte', cut=40),
        Raw(b'{"choices": [{"message": {"conte'),
        Raw(b""),
        Raw(b"null"),
        Raw(b"<html>no</html>", "text/html"),
        Raw(b"[" * 100_000),
        Raw(b'{"choices": []}'),
        Raw(b'{"choices": [{"index": 0}]}'),
        Raw(b'{"choices": [{"message": {"content": 7}}]}'),
        Raw(b'{"error": {"message": "inside", "code": 500}}'),
        Raw(b"\xff\xfe" * 1000),
        Raw(b"".join(events(Say(["fine"]), {"model": "small"}, done=False)), "text/event-stream"),
        Raw(b"".join(events(Say(["fine"]), {"model": "small"}, done=False)), "text/event-stream", cut=9),
        Raw(b'data: {"error": {"message": "inside"}}\n\n', "text/event-stream"),
        Raw(b"data: {{{\n\n" * 50_000, "text/event-stream"),
        Raw(b"", "text/event-stream"),
    ],
    ids=lambda raw: f"{raw.body[:30]!r} {raw.cut}",
)
def test_what_is_no_completion_is_asked_again(chat_server: Server, reply: Raw) -> None:
    chat_server.script = [reply]
    found = OpenAIModel("small").chat(ASKED)
    assert (found[0].text, found.requests) == ("fine", 2)
    chat_server.script = [reply] * 2
    with pytest.raises(ModelError, match="returned no completion, asked 2 times"):
        OpenAIModel("small", retries=1).chat(ASKED)
    assert not chat_server.script


@pytest.mark.parametrize("stream", [False, True])
def test_cut_and_refused_completions_are_said_to_be(chat_server: Server, stream: bool) -> None:
    model = OpenAIModel("small", stream=stream)
    chat_server.script = [Say(["```"], finish="length"), Say(["no"], finish="content_filter"), Say([""])]
    assert [(one.text, one.finish) for _ in range(3) for one in model.chat(ASKED)] == [
        ("```", "length"),
        ("no", "refusal"),
        ("", "stop"),
    ]
    if not stream:
        chat_server.script = [Say([""], refusal="I will not.")]
        assert [(one.text, one.finish) for one in model.chat(ASKED)] == [("I will not.", "refusal")]


@pytest.mark.parametrize("stream", [False, True])
def test_a_stream_of_several_completions(chat_server: Server, stream: bool) -> None:
    chat_server.default = Say(["one", "two\nlines", "drei ü"])
    found = OpenAIModel("small", stream=stream).chat(ASKED, n=3)
    assert [one.text for one in found] == ["one", "two\nlines", "drei ü"]
    assert (found.usage, found.requests, found.model) == (Usage(10, 2), 1, "small")


def test_fewer_completions_than_were_asked_for_are_asked_for_once_more(chat_server: Server) -> None:
    chat_server.default = lambda request: Say([f"seed {request['seed']}"])
    model = model_of("openai:small")
    assert texts(model, n=3, seed=5) == ["seed 5", "seed 6", "seed 7"]
    assert [request.get("n") for request in chat_server.requests] == [3, None, None]
    assert texts(model, n=2, seed=0) == ["seed 0", "seed 1"]
    assert [request.get("n") for request in chat_server.requests[3:]] == [None, None]


def test_more_completions_than_were_asked_for_are_cut(chat_server: Server) -> None:
    chat_server.default = Say(["a", "b", "c"])
    assert texts(model_of("openai:small"), n=2) == ["a", "b"]
    assert len(chat_server.requests) == 1


def test_what_came_is_not_lost_for_what_did_not(chat_server: Server) -> None:
    chat_server.script = [Say(["a", "b"]), Status(403, "enough")]
    found = model_of("openai:small").chat(ASKED, n=4)
    assert [one.text for one in found] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "message", "options"),
    [
        ("n", "Field 'n': Value must be between 1 <= value <= 1, but got 2", {"n": 2}),
        ("n", "Only one completion choice is allowed", {"n": 2}),
        ("seed", "Unknown parameter: 'seed'", {"seed": 1}),
        ("temperature", "Unsupported value: 'temperature' does not support 0.0", {}),
        ("response_format", "json_schema is not supported here", {"schema": SCHEMA}),
        (
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
            {"max_tokens": 5},
        ),
    ],
)
def test_what_a_server_refuses_is_left_out_from_then_on(
    chat_server: Server, name: str, message: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    chat_server.refuses = {name: message}
    model = model_of("openai:small")
    wanted = ["fine"] * options.get("n", 1)
    assert texts(model, **options) == wanted
    assert f"does not take {name}" in caplog.text
    assert name in chat_server.requests[0]
    assert texts(model, **options) == wanted
    assert all(name not in request for request in chat_server.requests[1:])
    if name == "max_tokens":
        assert chat_server.requests[1]["max_completion_tokens"] == 5
    assert ("json-schema" in model.accepts) is (name != "response_format")


def test_tokens_and_grammars_of_servers(chat_server: Server) -> None:
    text = "four words are here"
    assert model_of("openai:small").count(text) is None
    assert model_of("openai:small").accepts == {"json-schema", "stop"}
    model_of("openai:small").chat(ASKED, grammar='root ::= "a"')
    assert "grammar" not in chat_server.requests[-1]
    chat_server.llama = True
    for field in ("content", "prompt"):
        chat_server.tokenize, chat_server.asked = field, []
        model = model_of("openai:small")
        assert [model.count(text), model.count(""), model.count(text)] == [4, 0, 4]
        assert chat_server.asked.count("/tokenize") == (2 if field == "content" else 3)
    assert model.accepts == {"json-schema", "gbnf", "stop"}
    model.chat(ASKED, grammar='root ::= "a"')
    assert chat_server.requests[-1]["grammar"] == 'root ::= "a"'


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(OptionError, match="no key"):
        model_of("openai:small")
    model = OpenAIModel("small", base_url="http://127.0.0.1:9/v1", retries=1)
    with pytest.raises(ModelError, match="asked 2 times") as caught:
        model.chat(ASKED, timeout=10)
    assert "running" in str(caught.value.hint)
    for wrong in ("small", "openai:", "opnai:small", ":", "", "langchain:", 7, OpenAIModel):
        with pytest.raises(OptionError):
            model_of(wrong)


def test_echoes_say_what_they_were_sent(chat_server: Server) -> None:
    chat_server.default = lambda request: Say([last_message(request)[::-1]])
    odd = '\x00\u2028 \U0001f600 ñ "quoted" \\ \n'
    assert model_of("openai:small").chat([{"role": "user", "content": odd}])[0].text == odd[::-1]
    # Halves of pairs that stand alone are not UTF-8 text; together they are.
    model_of("openai:small").chat([{"role": "user", "content": "a\ud83d b\ud83d\ude00"}])
    assert last_message(chat_server.requests[-1]) == "a\ufffd b\U0001f600"
