"""Models behind OpenAI's chat completions: OpenAI's own, vLLM, Ollama, llama.cpp and the like.

Where the server is comes from the argument, else from `OPENAI_BASE_URL`; the key from
`OPENAI_API_KEY`. A busy or failing server (429, 5xx, no connection), a reply that is no completion
and a stream that stops are asked again, after waits that double, within the time of the call. What
a server refuses of a request (a schema, a seed, several completions at once) is left out from then
on, and said to the log. A key never stands in a message or a `repr`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Final

from condgraph.engine.errors import ModelError, OptionError, shortened
from condgraph.models.base import Completion, Completions, Message, Usage
from condgraph.models.openai_faults import OTHER_NAMES, SECRET, after_of, cause, hint_of, may_answer_later, refused, told
from condgraph.models.openai_reply import MOST_BYTES, BrokenReplyError, completions
from condgraph.models.openai_server import openai_server
from condgraph.models.server_tokens import Tokenizer
from condgraph.models.waiting import Wait

#: Seconds that a call may take where it says nothing, and how often a request is sent again.
TIMEOUT: Final = 120.0
RETRIES: Final = 3
#: Seconds before the first retry, and the most between two.
_FIRST, _LONGEST = 0.25, 8.0
#: Seconds between two bytes that an attempt without a deadline waits.
_SILENCE: Final = 600.0
_log = logging.getLogger(__name__)


class OpenAIModel:
    """A model at a server that speaks OpenAI's chat completions. Nothing is sent before it is used.

    `max_tokens` is the most tokens of a completion, whatever a call asks for: a small model that
    finds no end takes long otherwise. `extra` is sent with every request as it is: a `grammar` for
    llama.cpp, a `stop`, what a server takes beyond OpenAI's API. `stream=True` has completions sent
    piece by piece: some servers hold their connection only so.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        max_tokens: int | None = None,
        stream: bool = False,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        if not model:
            raise OptionError("the name of a model is missing", hint="such as `openai:gpt-4o-mini`")
        if retries < 0 or not timeout > 0:
            raise OptionError(f"retries is 0 or more and timeout more than 0 seconds, not {retries} and {timeout}")
        server = openai_server(base_url, api_key)
        self.model, self._key, self._timeout, self._retries, self._stream = model, server.key, timeout, retries, stream
        self._openai, self._most, self._extra = server.library, max_tokens, dict(extra or {})
        self._client = server.client(max_retries=0)
        self.place = server.place or str(self._client.base_url)
        self._tokenizer = Tokenizer(model, str(self._client.base_url), server.key)
        self._lock = Lock()
        self._refused: set[str] = set()

    def __repr__(self) -> str:
        return f"OpenAIModel({self.model!r}, base_url={self.place!r})"

    @property
    def name(self) -> str:
        """`openai:` and the model's name at the server."""
        return f"openai:{self.model}"

    @property
    def accepts(self) -> frozenset[str]:
        """`"json-schema"`, unless the server refused it; `"gbnf"` of a server of llama.cpp, which is
        asked once whether it is one. Nothing where every request has a constraint of its own
        (`extra=`).
        """
        if self._extra.keys() & {"grammar", "response_format"}:
            return frozenset()
        found = set() if "response_format" in self._refused else {"json-schema"}
        if "grammar" not in self._refused and self._tokenizer.llama():
            found.add("gbnf")
        return frozenset(found)

    def count(self, text: str) -> int | None:
        """Tokens of a text: of a server with `/tokenize` what it says, for OpenAI's own models
        `tiktoken`, where it is installed; else None.
        """
        return self._tokenizer.count(text)

    def chat(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        grammar: str | None = None,
        n: int = 1,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
        timeout: float | None = None,
    ) -> Completions:
        """`n` completions; see `ChatModel.chat`. A server that gives fewer at a time is asked for
        the others, with seeds that count up; more than `n` are cut. Raises `ModelError` where none
        comes in `timeout` seconds (that of the model, where none is given).
        """
        if n < 1:
            raise OptionError(f"at least one completion is asked for, not {n}")
        body: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if self._stream else {}
        body |= {
            "messages": [{"role": message["role"], "content": _whole(message["content"])} for message in messages],
            "temperature": float(temperature),
        }
        if self._most is not None:
            max_tokens = self._most if max_tokens is None else min(max_tokens, self._most)
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        if schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": schema, "strict": _strict(schema)},
            }
        if grammar is not None and "gbnf" in self.accepts:
            body["grammar"] = grammar
        wait = Wait(self._timeout if timeout is None else timeout)
        return wait.until_done(lambda: self._all(body, n, seed, wait), self._who)

    # -- one call ----------------------------------------------------------------------------------

    @property
    def _who(self) -> str:
        return f"{self.model} at {self.place}"

    def _all(self, body: dict[str, Any], n: int, seed: int | None, wait: Wait) -> Completions:
        items: list[Completion] = []
        usage: Usage | None = None
        requests, model = 0, ""
        while len(items) < n:
            asked = dict(body)
            if seed is not None:
                asked["seed"] = seed + len(items)
            if n - len(items) > 1:
                asked["n"] = n - len(items)
            try:
                found = self._one(asked, wait)
            except ModelError as error:
                if not items:
                    raise
                # What came is not lost for what did not.
                _log.warning("%d of %d completions came: %s", len(items), n, error.message)
                break
            if len(found) < asked.get("n", 1):
                # It gives one at a time, and says nothing of it: it is not asked for several again.
                self._refuse("n", "it gave fewer completions than it was asked for")
            items += found.items
            usage = found.usage if usage is None else usage + found.usage
            requests, model = requests + found.requests, found.model or model
        return Completions(tuple(items[:n]), usage or Usage(), model, requests)

    def _one(self, body: dict[str, Any], wait: Wait) -> Completions:
        """The completions of a request that is sent until it is answered."""
        tries, sent, pause = 0, 0, _FIRST
        while True:
            fitting = self._fitting(body)
            sent += 1
            try:
                return completions(*self._sent(fitting, wait), sent)
            except BrokenReplyError as error:
                problem, hint, after = self._clean(str(error)), None, None
            except self._openai.APIStatusError as error:
                problem = self._clean(f"{error.status_code}: {told(error)}")
                if error.status_code in (400, 422) and (name := refused(error, fitting)) is not None:
                    self._refuse(name, problem)
                    continue
                hint, after = hint_of(error), after_of(error)
                if not may_answer_later(error):
                    tries = self._retries
            except self._openai.APITimeoutError:
                problem, hint, after = "nothing came in time", "a longer timeout= may help, or fewer tokens", None
            except self._openai.OpenAIError as error:
                problem, hint, after = self._clean(cause(error)), "is the server running, and OPENAI_BASE_URL right?", None
            except Exception as error:
                # Of the library for HTTP, in the middle of a reply; its name depends on the version.
                if not type(error).__module__.startswith("http"):
                    raise
                problem, hint, after = self._clean(f"the reply was cut: {type(error).__name__} {error}"), None, None
            if wait.over():
                raise wait.late(self._who)
            rest = wait.left()
            pause = max(pause, after or 0.0)
            if tries >= self._retries or (rest is not None and pause >= rest):
                many = f", asked {sent} times" if sent > 1 else ""
                raise ModelError(f"{self._who} gave no completion{many}: {problem}", hint=hint)
            _log.info("%s is asked again in %.2f s: %s", self._who, pause, problem)
            wait.sleep(pause)
            tries, pause = tries + 1, min(pause * 2, _LONGEST)

    def _sent(self, body: dict[str, Any], wait: Wait) -> tuple[bytes, bool]:
        """The body of the reply to a request, and whether it is a stream. Raises what the library
        raises, and `BrokenReplyError`.
        """
        body = dict(body)
        extra = dict(self._extra)
        if "grammar" in body:
            extra["grammar"] = body.pop("grammar")
        create = self._client.chat.completions.with_streaming_response.create
        with create(model=self.model, **body, extra_body=extra or None, timeout=wait.left() or _SILENCE) as response:
            parts: list[bytes] = []
            size = 0
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > MOST_BYTES:
                    raise BrokenReplyError(f"the reply has more than {MOST_BYTES >> 20} MiB")
                if wait.over():
                    raise BrokenReplyError("the reply did not end in time")
            return b"".join(parts), "event-stream" in response.headers.get("content-type", "")

    # -- what a server refuses ---------------------------------------------------------------------

    def _fitting(self, body: dict[str, Any]) -> dict[str, Any]:
        """A request without what the server refused."""
        found = dict(body)
        for name in self._refused & set(found):
            value = found.pop(name)
            other = OTHER_NAMES.get(name)
            if other is not None and other not in self._refused:
                found[other] = value
        return found

    def _refuse(self, name: str, why: str) -> None:
        with self._lock:
            if name in self._refused:
                return
            self._refused.add(name)
        _log.warning("%s does not take %s, which is left out from now on: %s", self._who, name, why)

    def _clean(self, text: str) -> str:
        """A message without the key, also where a server repeats part of it."""
        if len(self._key) > 4:
            text = text.replace(self._key, "[key]")
        return shortened(SECRET.sub("[key]", text), 500)


def _whole(text: str) -> str:
    """A text that can be sent: halves of surrogate pairs that stand alone are no text of UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _strict(schema: Any) -> bool:
    """Whether a schema is in the part that OpenAI's strict mode takes: every object says all of its
    properties, and all are required.
    """
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" or "properties" in schema:
            properties = schema.get("properties") or {}
            if schema.get("additionalProperties") is not False or set(schema.get("required") or ()) != set(properties):
                return False
        return all(_strict(part) for part in schema.values())
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return all(_strict(part) for part in schema)
    return True
