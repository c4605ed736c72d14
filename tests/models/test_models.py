"""Callables and LangChain as models, budgets, transcripts, and what is read out of replies."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from condgraph.engine.bounds import within
from condgraph.engine.errors import BudgetError, DeadlineError, ModelError, OptionError, TranscriptError
from condgraph.models.adapters import model_of
from condgraph.models.chat import (
    Budget,
    ChatModel,
    Completion,
    Completions,
    Counted,
    Message,
    Metered,
    Usage,
    counted,
    counted_prompt,
    estimate,
)
from condgraph.models.transcript import Recording, Replaying
from tests.support.pace import quick_enough

ASKED = [{"role": "user", "content": "one two three"}]


class Words:
    """A callable with a tokenizer: a word is a token."""

    def __init__(self) -> None:
        self.asked: list[list[dict[str, str]]] = []

    def __call__(self, messages: list[dict[str, str]]) -> str:
        self.asked.append(messages)
        return f"{messages[-1]['content'].split()[0]} {len(self.asked)}"

    def count(self, text: str) -> int:
        return len(text.split())


# -- callables -----------------------------------------------------------------------------------


def test_a_callable_is_asked_for_each_completion() -> None:
    words = Words()
    model = model_of(words)
    assert isinstance(model, ChatModel)
    assert model_of(model) is model
    assert [one.text for one in model.chat(ASKED, n=2)] == ["one 1", "one 2"]
    assert words.asked == [ASKED, ASKED]
    assert (model.count("a b"), model.accepts, model.name) == (2, frozenset(), "Words")
    assert model_of(lambda messages: "x").count("a b") is None


def test_a_callable_may_be_async() -> None:
    async def answer(messages: list[dict[str, str]]) -> str:
        return messages[0]["content"].upper()

    assert model_of(answer).chat(ASKED)[0].text == "ONE TWO THREE"


def test_what_a_callable_raises_is_an_error_of_the_model() -> None:
    def fails(messages: Any) -> str:
        raise KeyError("no such thing")

    with pytest.raises(ModelError, match=r"fails raised KeyError: 'no such thing'") as caught:
        model_of(fails).chat(ASKED)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ModelError, match="gave NoneType, not a text"):
        model_of(lambda messages: None).chat(ASKED)


def test_a_callable_that_sleeps_does_not_hold_its_caller() -> None:
    def sleeps(messages: Any) -> str:
        time.sleep(3)
        return "late"

    started = time.monotonic()
    with pytest.raises(ModelError, match=r"within 0\.1 s"):
        model_of(sleeps).chat(ASKED, timeout=0.1)
    with pytest.raises(DeadlineError), within(0.1):
        model_of(sleeps).chat(ASKED)
    assert quick_enough(time.monotonic() - started, 2)


# -- LangChain -----------------------------------------------------------------------------------


def test_langchain_models_answer() -> None:
    model = model_of(FakeListChatModel(responses=["a", "b", "c"]))
    assert isinstance(model, ChatModel)
    assert [one.text for one in model.chat(ASKED, n=2, max_tokens=5, seed=3)] == ["a", "b"]
    assert (model.name, model.accepts, model.count("a")) == ("langchain:FakeListChatModel", frozenset(), None)
    cut = AIMessage(
        content=[{"type": "text", "text": "half "}, "done"],
        response_metadata={"finish_reason": "length"},
        usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    )
    refused = AIMessage(content="", additional_kwargs={"refusal": "No."})
    model = model_of(GenericFakeChatModel(messages=iter([cut, refused])))
    found = model.chat(ASKED)
    assert (list(found), found.usage) == ([Completion("half done", "length")], Usage(3, 2))
    assert list(model.chat(ASKED)) == [Completion("No.", "refusal")]
    with pytest.raises(ModelError, match="raised"):
        model.chat(ASKED)


class Structured(FakeListChatModel):
    """One that can be held to a schema, as integrations are: its tools' arguments are the reply."""

    temperature: float | None = None
    max_tokens: int | None = None
    seen: list[Any] = []  # noqa: RUF012 - a field of pydantic, copied for each object

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **options: Any) -> Any:
        def reply(messages: Any) -> Any:
            self.seen.append((schema, self.temperature, self.max_tokens))
            raw = AIMessage(content="", tool_calls=[{"name": "reply", "args": {"a": "ü"}, "id": "1"}])
            return {"raw": raw, "parsed": {"a": "ü"}, "parsing_error": None}

        return RunnableLambda(reply)


def test_langchain_models_are_held_to_a_schema_where_they_can_be() -> None:
    inner = Structured(responses=["text"], temperature=0.9)
    model = model_of(inner)
    assert model.accepts == {"json-schema"}
    found = model.chat(ASKED, schema={"type": "object"}, temperature=0.1, max_tokens=9)
    assert json.loads(found[0].text) == {"a": "ü"}
    assert inner.seen == [({"title": "reply", "description": "the reply", "type": "object"}, 0.1, 9)]
    assert inner.temperature == 0.9
    with pytest.raises(OptionError, match="langchain"):
        model_of("langchain:nobody:nothing")


# -- budgets -------------------------------------------------------------------------------------


class Slow:
    """A model that takes its time, and says what it costs."""

    name, accepts = "slow", frozenset[str]()

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.timeouts = seconds, list[float | None]()

    def chat(self, messages: Any, *, timeout: float | None = None, **options: Any) -> Completions:
        self.timeouts.append(timeout)
        time.sleep(self.seconds)
        return Completions((Completion("x"),), Usage(10, 5), "slow", 2)

    def count(self, text: str) -> int | None:
        return None


def test_calls_tokens_and_seconds_are_counted_and_held() -> None:
    model = Metered(Slow(), Budget(calls=2, seconds=None))
    model.chat(ASKED)
    model.chat(ASKED, timeout=3)
    with pytest.raises(BudgetError, match="2 calls are spent"):
        model.chat(ASKED)
    assert (model.spent.calls, model.spent.requests, model.spent.usage, model.spent.tokens) == (2, 4, Usage(20, 10), 30)
    inner = Slow(0.15)
    timed = Metered(inner, Budget(seconds=0.2, calls=None))
    timed.chat(ASKED)
    timed.chat(ASKED, timeout=0.01)
    with pytest.raises(BudgetError, match=r"0\.2 s are spent"):
        timed.chat(ASKED)
    assert inner.timeouts[0] == pytest.approx(0.2, abs=0.05)
    assert inner.timeouts[1] == 0.01
    assert timed.spent.seconds == pytest.approx(0.3, abs=0.1)
    tokens = Metered(Slow(), Budget(total_tokens=20))
    tokens.chat(ASKED)
    tokens.chat(ASKED)
    with pytest.raises(BudgetError, match="20 tokens are spent"):
        tokens.chat(ASKED)


def test_a_prompt_that_is_too_long_is_not_sent() -> None:
    words = Words()
    model = Metered(model_of(words), Budget(prompt_tokens=100))
    model.chat([{"role": "user", "content": "a " * 60}])
    with pytest.raises(BudgetError, match=r"a prompt of 130 tokens is more than the budget's 100"):
        model.chat([{"role": "user", "content": "a " * 100}])
    assert (len(words.asked), model.spent.calls) == (1, 1)
    with pytest.raises(BudgetError, match="at most"):
        Metered(Slow(), Budget(prompt_tokens=100)).chat([{"role": "user", "content": "word " * 100}])
    assert counted(model, "a b c") == Counted(3, True)
    assert counted(Slow(), "a b c") == Counted(3, False)
    assert counted_prompt(Slow(), ASKED).exact is False
    for wrong in ({"calls": 0}, {"seconds": -1}, {"prompt_tokens": True}, {"total_tokens": "9"}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            Budget(**wrong)  # type: ignore[arg-type]


def test_a_call_that_fails_counts() -> None:
    def fails(messages: Any) -> str:
        raise ValueError

    model = Metered(model_of(fails), Budget(calls=1))
    with pytest.raises(ModelError):
        model.chat(ASKED)
    with pytest.raises(BudgetError, match="1 call is spent"):
        model.chat(ASKED)


# -- transcripts -----------------------------------------------------------------------------------


def test_a_transcript_replays_every_call(tmp_path: Path) -> None:
    path, replies = tmp_path / "calls.jsonl", iter(["a", "b", None, "ü\ud800\n"])
    odd = [{"role": "user", "content": "half of a pair \ud800, \x00 and 日本"}]

    def answers(messages: Any) -> Any:
        return next(replies)

    model = Recording(model_of(answers), path)
    asks: list[tuple[list[dict[str, str]], dict[str, Any]]] = [
        (ASKED, {"seed": 1}),
        (ASKED, {"seed": 1}),
        (ASKED, {"seed": 2}),
        (odd, {"schema": {"b": 1, "a": [None]}, "max_tokens": 5}),
    ]

    def outcome(model: ChatModel, messages: list[dict[str, str]], options: dict[str, Any]) -> Any:
        try:
            return model.chat(messages, **options)
        except ModelError as error:
            return str(error)

    made = [outcome(model, *ask) for ask in asks]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 4
    replayed = model_of(f"replay:{path}")
    assert isinstance(replayed, Replaying)
    assert isinstance(replayed, ChatModel)
    assert [outcome(replayed, *ask) for ask in asks] == made
    # Once more from the first, as a run that is made again asks.
    assert [outcome(replayed, *ask) for ask in asks] == made
    assert replayed.name == "answers"
    with pytest.raises(TranscriptError, match=r"calls.jsonl holds 3 requests, and not this one .*three") as caught:
        replayed.chat(ASKED, seed=1, temperature=0.1)
    assert "record again" in str(caught.value.hint)


def test_a_transcript_keeps_counts_and_what_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    model = Recording(model_of(Words()), path)
    assert [model.count(text) for text in ("a b", "a b c", "a b")] == [2, 3, 2]
    model.chat(ASKED)
    replayed = Replaying(path)
    assert [replayed.count(text) for text in ("a b", "a b c", "another")] == [2, 3, None]
    assert replayed.accepts == frozenset()


def test_a_transcript_is_a_cache_where_it_is_asked_to_be(tmp_path: Path) -> None:
    path, words = tmp_path / "calls.jsonl", Words()
    for _ in range(3):
        model = Recording(model_of(words), path, reuse=True)
        assert model.chat(ASKED)[0].text == "one 1"
    assert len(words.asked) == 1
    Recording(model_of(words), path).chat(ASKED)
    assert len(words.asked) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line[: len(line) // 2],
        lambda line: "[]",
        lambda line: "{}",
        lambda line: json.dumps({**json.loads(line), "key": "0" * 32}),
        lambda line: json.dumps({**json.loads(line), "completions": [{"text": 7, "finish": "stop"}]}),
        lambda line: json.dumps({**json.loads(line), "completions": [{"text": "a", "finish": "odd"}]}),
        lambda line: json.dumps({**json.loads(line), "model": None}),
        lambda line: json.dumps({**json.loads(line), "counts": {"a": "b"}}),
        lambda line: json.dumps({**json.loads(line), "counts": ["b"]}),
        lambda line: json.dumps({**json.loads(line), "error": "text"}),
        lambda line: "[" * 100_000,
        lambda line: line + "\n" + json.dumps({**json.loads(line), "model": "another"}),
    ],
)
def test_a_damaged_transcript_is_an_error(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "calls.jsonl"
    Recording(model_of(Words()), path).chat(ASKED)
    path.write_text(change(path.read_text(encoding="utf-8").strip()), encoding="utf-8")
    with pytest.raises(TranscriptError):
        Replaying(path)


def test_a_transcript_that_is_not_there(tmp_path: Path) -> None:
    for missing in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(TranscriptError, match="cannot be read"):
            model_of(f"replay:{missing}")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TranscriptError, match="UTF-8"):
        Replaying(tmp_path / "bytes")
    (tmp_path / "empty").touch()
    with pytest.raises(TranscriptError):
        Replaying(tmp_path / "empty").chat(ASKED)


@pytest.mark.slow
def test_a_megabyte_of_nonsense_is_estimated_in_no_time() -> None:
    for piece in ("```\n", "~~~a\n", "`", "{", "[", "<think>", '{"a":[', " ", "\n", "``` x y\n", "é\u2028"):
        started = time.monotonic()
        text = piece * (1_000_000 // len(piece))
        assert estimate(text) > 0
        assert quick_enough(time.monotonic() - started, 5)


def _messages() -> Iterator[list[Message]]:
    yield []
    yield ASKED


def test_prompts_are_counted_with_what_stands_around_them() -> None:
    sizes = [counted_prompt(Slow(), messages).tokens for messages in _messages()]
    assert sizes[0] < sizes[1]
