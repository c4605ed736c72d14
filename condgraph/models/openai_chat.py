"""Models behind OpenAI's chat completions API: OpenAI, vLLM, Ollama, llama.cpp and others."""

from __future__ import annotations

import json
import logging
import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, Unpack
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from condgraph.engine.addresses import parse
from condgraph.engine.errors import MissingExtraError, ModelError, OptionError, shortened
from condgraph.models.chat import ChatOptions, ChatRequest, Completion, Completions, Finish, Message, Tell, Usage, Wait, listener

# -- servers ---------------------------------------------------------------------------------------
# The address and key of a server with OpenAI's API, for chat completions and embeddings.


@dataclass(frozen=True, slots=True)
class OpenAIServer:
    """A server and the library that calls it. The `repr` shows neither the key nor a password."""

    #: The `openai` module.
    library: Any = field(repr=False)
    #: The address with its login, as the library expects it; None for OpenAI itself.
    address: str | None = field(repr=False)
    #: The address without a login.
    place: str
    key: str = field(repr=False)

    def client(self, **options: Any) -> Any:
        """Create a client of the library with the given options. Nothing is sent yet."""
        return self.library.OpenAI(api_key=self.key, base_url=self.address, **options)


def openai_server(base_url: str | None, api_key: str | None) -> OpenAIServer:
    """Return the server for an address and a key.

    They default to `OPENAI_BASE_URL` and `OPENAI_API_KEY`, and then to OpenAI itself, which needs a
    key. Raises `OptionError`, which never shows a key or password, and `MissingExtraError` without
    the library.
    """
    try:
        import openai
    except ImportError:
        raise MissingExtraError("the openai library", "openai") from None
    base_url, place = base_url or os.environ.get("OPENAI_BASE_URL") or None, ""
    if base_url is not None:
        address = parse(base_url, ("http", "https"), example="http://localhost:11434/v1", paths=True)
        base_url, place = address.whole, address.plain
    key = api_key or os.environ.get("OPENAI_API_KEY")
    if not key:
        if base_url is None:
            raise OptionError("there is no key for OpenAI's API", hint="set OPENAI_API_KEY, or OPENAI_BASE_URL for another server")
        # Local servers often need no key, but the library requires one.
        key = "none"
    return OpenAIServer(openai, base_url, place, key)


# -- errors ----------------------------------------------------------------------------------------
# Errors of servers: which parameter a server does not support, whether and when to retry, and hints.


#: Parameters that a server may refuse, and another name for one of them.
_OPTIONAL: Final = ("response_format", "grammar", "max_tokens", "temperature", "seed", "n", "stop", "stream_options")
OTHER_NAMES: Final = {"max_tokens": "max_completion_tokens"}
SECRET: Final = re.compile(r"\b(sk-|Bearer\s+)[\w*.-]+")
#: Messages about a token limit that is too high, and about a parameter that needs another name.
_TOO_MUCH: Final = re.compile(
    r"max_(completion_)?tokens\b.{0,40}\b(too large|at (least|most)|less than|exceed|must be)", re.IGNORECASE
)
_OTHER_NAME: Final = re.compile(r"unsupported|not supported|instead", re.IGNORECASE)


def refused(error: Any, body: Mapping[str, Any]) -> str | None:
    """Return the request parameter that a server does not support, or None for another error."""
    problem = error.body if isinstance(error.body, Mapping) else {}
    parameter, message = problem.get("param"), str(problem.get("message") or error.message)
    if _TOO_MUCH.search(message) and not _OTHER_NAME.search(message):
        # The server supports the parameter, but not this value.
        return None
    sent = [name for name in (*_OPTIONAL, *OTHER_NAMES.values()) if name in body]
    for name in sent:
        if isinstance(parameter, str) and parameter.split(".")[0].split("[")[0] == name:
            return name
    for name in sent:
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", message):
            return name
    for name, words in (("response_format", r"json.?schema|structured"), ("n", r"\bone completion\b")):
        if name in sent and re.search(words, message, re.IGNORECASE):
            return name
    return None


def told(error: Any) -> str:
    """Return the server's message about a request that it refused."""
    body = error.body
    message = body.get("message") if isinstance(body, Mapping) else body
    return str(message or error.message)


def cause(error: Exception) -> str:
    """Return the message of an error together with its cause."""
    cause = error.__cause__
    return f"{error} ({cause})" if cause is not None and str(cause) else str(error)


def may_answer_later(error: Any) -> bool:
    """Return whether the same request may succeed later."""
    status: int = error.status_code
    return (status in (408, 409, 429) and str(error.code) != "insufficient_quota") or status >= 500


def after_of(error: Any) -> float | None:
    """Return how many seconds to wait before a retry, if the server states it."""
    headers = error.response.headers
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            result = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if 0 <= result < 86_400:
            return result
    return None


def hint_of(error: Any) -> str | None:
    """Return a hint on how to solve the problem, if there is one."""
    status = error.status_code
    if status in (401, 403):
        return "is the key in OPENAI_API_KEY, or api_key=, one of this server?"
    if status == 404:
        return "is the model's name right, and does OPENAI_BASE_URL end as the server wants it (often /v1)?"
    if status in (400, 413) and re.search(r"context|too long|too large|exceed", told(error), re.IGNORECASE):
        return "the prompt is longer than the model takes: fewer prompt_tokens= in the budget"
    return "it is busy: wait, or ask for less at a time" if status == 429 else None


# -- replies ---------------------------------------------------------------------------------------
# A reply is one JSON object or a stream of events with pieces of it.


#: The size limit of a reply in bytes.
MAX_REPLY: Final = 16 << 20
#: The servers' words for why a completion ended. Any other word means "stop".
_FINISHES: Final[Mapping[str, Finish]] = {"length": "length", "max_tokens": "length", "content_filter": "refusal"}


class BrokenReplyError(Exception):
    """A reply without a usable completion. A retry may help."""


def completions(body: bytes, streamed: bool, requests: int = 1) -> Completions:
    """Return the completions in the body of a reply, unchanged. Raises `BrokenReplyError`."""
    result = _joined_reply(_events(body)) if streamed else _object(body)
    choices = result.get("choices")
    if not isinstance(choices, list) or not choices:
        raise BrokenReplyError(f"no completions came: {_error_text(result, body)}")
    usage = result.get("usage")
    model = result.get("model")
    return Completions(
        tuple(_completion(choice) for choice in choices),
        _usage(usage) if isinstance(usage, Mapping) else Usage(),
        model if isinstance(model, str) else "",
        requests,
    )


def _error_text(reply: Mapping[str, Any], body: bytes) -> str:
    error = reply.get("error")
    if isinstance(error, Mapping):
        error = error.get("message")
    return shortened(error if isinstance(error, str) else body[:400].decode("utf-8", "replace"), 200)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        result = json.loads(body)
    except (ValueError, RecursionError) as error:
        start = body[:100].decode("utf-8", "replace")
        raise BrokenReplyError(f"what came is not JSON: {start!r} ({error})") from None
    if not isinstance(result, dict):
        raise BrokenReplyError(f"what came is not an object of JSON: {shortened(repr(result), 100)}")
    return result


def _completion(choice: Any) -> Completion:
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        raise BrokenReplyError("a completion has no message")
    refusal, text = message.get("refusal"), message.get("content")
    if isinstance(refusal, str) and refusal:
        return Completion(refusal, "refusal")
    if isinstance(text, list):
        # Content in parts, as some servers send it.
        parts = [part.get("text") for part in text if isinstance(part, Mapping)]
        text = "".join(part for part in parts if isinstance(part, str))
    if text is not None and not isinstance(text, str):
        raise BrokenReplyError(f"the content of a message is not text but {type(text).__name__}")
    finish = choice.get("finish_reason")
    return Completion(text or "", _FINISHES.get(finish, "stop") if isinstance(finish, str) else "stop")


def _usage(usage: Mapping[str, Any]) -> Usage:
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return Usage(_number(prompt), _number(completion))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


# -- streams -----------------------------------------------------------------------------------------


def _events(body: bytes) -> Iterable[Mapping[str, Any]]:
    """Yield the events of a stream in order."""
    for line in body.splitlines():
        name, _, data = line.partition(b":")
        if name.strip() != b"data":
            continue
        data = data.strip()
        if data == b"[DONE]":
            return
        yield _object(data)


class StreamReader:
    """A reader that passes the texts of a stream to a listener as they arrive.

    `first` is the number of the stream's first completion.
    """

    def __init__(self, tell: Tell, first: int) -> None:
        self._listener, self._first = tell, first
        #: The parts of the incomplete last line, and the completions that have begun.
        self._line: list[bytes] = []
        self._started: set[int] = set()

    def read(self, part: bytes) -> None:
        """Read more bytes. Raises `BrokenReplyError` for an event that is not JSON."""
        complete, end, rest = part.rpartition(b"\n")
        if not end:
            self._line.append(part)
            return
        lines = b"".join([*self._line, complete])
        self._line = [rest]
        for event in _events(lines):
            choices = event.get("choices")
            for choice in choices if isinstance(choices, list) else ():
                delta = choice.get("delta") if isinstance(choice, Mapping) else None
                text = delta.get("content") if isinstance(delta, Mapping) else None
                if isinstance(text, str) and text:
                    number = self._first + (_number(choice.get("index")) or 0)
                    self._listener(number, text, number not in self._started)
                    self._started.add(number)


def _joined_reply(events: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Build the reply object from the pieces. Raises `BrokenReplyError` if a completion has no end."""
    texts: dict[int, list[str]] = {}
    refusals: dict[int, list[str]] = {}
    finishes: dict[int, str] = {}
    usage: Any = None
    model: Any = None
    for event in events:
        if "error" in event:
            raise BrokenReplyError(f"the stream ended in an error: {_error_text(event, b'')}")
        usage, model = event.get("usage") or usage, event.get("model") or model
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, Mapping):
                continue
            index = _number(choice.get("index")) or 0
            delta = choice.get("delta")
            delta = delta if isinstance(delta, Mapping) else {}
            for pieces, piece in ((texts, delta.get("content")), (refusals, delta.get("refusal"))):
                parts = pieces.setdefault(index, [])
                if isinstance(piece, str):
                    parts.append(piece)
            if isinstance(finish := choice.get("finish_reason"), str):
                finishes[index] = finish
    unfinished = [index for index in texts if index not in finishes]
    if unfinished:
        begun = "".join(texts[unfinished[0]])
        raise BrokenReplyError(f"the stream stopped after {len(begun)} characters, before its completion ended")
    return {
        "choices": [
            {"message": {"content": "".join(texts[index]), "refusal": "".join(refusals[index])}, "finish_reason": finishes[index]}
            for index in sorted(texts)
        ],
        "usage": usage,
        "model": model,
    }


# -- tokenizers ------------------------------------------------------------------------------------
# The tokenizer of a model behind a server: the server's `/tokenize` (llama.cpp, vLLM), or
# `tiktoken` for OpenAI's models.


#: The time limit in seconds for a count by a server, and for `tiktoken`, which may download its tables.
_SECONDS: Final = 10.0
_OPENAI: Final = "api.openai.com"
#: The most counts in the cache, and the most characters of a text in it.
_MAX_CACHED: Final = 4096
_MAX_CACHED_TEXT: Final = 4000
#: The size limit of a server's answer in bytes.
_MAX_ANSWER: Final = 32 << 20


class Tokenizer:
    """Counts tokens for one model. If there is not a tokenizer, this is remembered."""

    def __init__(self, model: str, base_url: str, key: str) -> None:
        address = urlsplit(base_url)
        self._model, self._key = model, key
        self._openai = address.hostname == _OPENAI
        path = address.path.rstrip("/")
        self._root = address._replace(path=path.removesuffix("/v1"), query="", fragment="").geturl().rstrip("/")
        self._lock = Lock()
        #: The field from which the server reads the text; "" if it has no tokenizer.
        self._field: str | None = None
        self._encoding: Any = None
        self._is_llama: bool | None = None
        self._counts: OrderedDict[str, int] = OrderedDict()

    def llama(self) -> bool:
        """Return whether the server is llama.cpp's, which supports grammars."""
        if self._is_llama is None:
            result = None if self._openai else self._request("/props", None)
            self._is_llama = isinstance(result, dict) and "default_generation_settings" in result
        return self._is_llama

    def count(self, text: str) -> int | None:
        """Count the tokens of a text, or return None without a tokenizer."""
        with self._lock:
            if (known := self._counts.get(text)) is not None:
                self._counts.move_to_end(text)
                return known
        result = self._by_tiktoken(text) if self._openai else self._by_server(text)
        if result is not None and len(text) <= _MAX_CACHED_TEXT:
            with self._lock:
                self._counts[text] = result
                if len(self._counts) > _MAX_CACHED:
                    self._counts.popitem(last=False)
        return result

    def _by_server(self, text: str) -> int | None:
        if self._field == "":
            return None
        for name in ("content", "prompt") if self._field is None else (self._field,):
            result = self._request("/tokenize", {"model": self._model, name: text})
            tokens = result.get("tokens") if isinstance(result, dict) else None
            # A server that reads another field returns no tokens.
            if isinstance(tokens, list) and (tokens or not text):
                self._field = name if text else self._field
                return len(tokens)
        if text and self._field is None:
            self._field = ""
        return None

    def _request(self, path: str, body: Any) -> Any:
        """Return the server's JSON answer, or None if there is none."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(self._root + path, data, {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"})

        def fetch() -> Any:
            with urlopen(request, timeout=_SECONDS) as response:
                return json.loads(response.read(_MAX_ANSWER))

        try:
            return Wait(_SECONDS).until_done(fetch, self._root)
        except (HTTPError, URLError, OSError, ValueError, RecursionError, ModelError):
            return None

    def _by_tiktoken(self, text: str) -> int | None:
        if self._encoding is None:
            self._encoding = _tiktoken(self._model)
        return None if self._encoding is False else len(self._encoding.encode(text, disallowed_special=()))


def _tiktoken(model: str) -> Any:
    """Return the encoding of a model, or False if there is none."""
    try:
        import tiktoken
    except ImportError:
        return False
    try:
        return Wait(_SECONDS).until_done(lambda: tiktoken.encoding_for_model(model), "tiktoken")
    except (ModelError, KeyError, OSError, ValueError):
        # The model is unknown, or its tables cannot be downloaded.
        return False


# -- the model -------------------------------------------------------------------------------------
# If the server is busy or fails (429, 5xx, no connection), the reply is broken or the stream stops,
# the request is retried within the time of the call, after waits that double. A parameter that the
# server refuses (a schema, a seed, several completions at once) is logged and left out from then on.
# No message or `repr` contains the key.


#: The default time limit of a call in seconds, and the default number of retries.
TIMEOUT: Final = 120.0
RETRIES: Final = 3
#: The seconds before the first retry, and the longest pause between two retries.
_FIRST, _MAX_PAUSE = 0.25, 8.0
#: How many seconds an attempt without a deadline waits for the next byte.
_SILENCE: Final = 600.0
_log = logging.getLogger(__name__)


class OpenAIModel:
    """A model on a server with OpenAI's chat completions API. Nothing is sent before the first use.

    `max_tokens` limits the tokens of a completion, whatever a call requests, because a small model
    may otherwise never stop. `extra` is sent with every request: a `grammar` for llama.cpp, a
    `stop`, or anything else that a server supports beyond OpenAI's API. `stream=True` requests
    completions piece by piece, since some servers close silent connections. Calls inside
    `chat.heard_by` are always streamed. `timeout` is the time for a whole call with its retries, in
    seconds.
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
        """`openai:` and the model's name on the server."""
        return f"openai:{self.model}"

    @property
    def accepts(self) -> frozenset[str]:
        """`"json-schema"` and `"stop"` unless the server refused them, and `"gbnf"` for a llama.cpp server.

        The kind of server is detected once. Empty if `extra` contains a constraint.
        """
        if self._extra.keys() & {"grammar", "response_format"}:
            return frozenset()
        result = set() if "response_format" in self._refused else {"json-schema"}
        if "stop" not in self._refused and "stop" not in self._extra:
            result.add("stop")
        if "grammar" not in self._refused and self._tokenizer.llama():
            result.add("gbnf")
        return frozenset(result)

    def count(self, text: str) -> int | None:
        """Count the tokens with the server's `/tokenize`, or with `tiktoken` for OpenAI's own models.

        Returns None if neither is available.
        """
        return self._tokenizer.count(text)

    def chat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Completions:
        """Return `n` completions; see `ChatModel.chat`.

        If the server returns fewer, the rest are requested separately, with seeds that count up. Raises
        `ModelError` if there is no completion within `timeout` seconds (by default the model's).
        """
        request = ChatRequest(messages, **options)
        if request.n < 1:
            raise OptionError(f"at least one completion is needed, not {request.n}")
        body: dict[str, Any] = (
            {"stream": True, "stream_options": {"include_usage": True}} if self._stream or listener() is not None else {}
        )
        body |= {
            "messages": [{"role": message["role"], "content": _sendable(message["content"])} for message in messages],
            "temperature": float(request.temperature),
        }
        limits = [limit for limit in (self._most, request.max_tokens) if limit is not None]
        if limits:
            body["max_tokens"] = min(limits)
        if (schema := request.schema) is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": schema, "strict": _strict(schema)},
            }
        if request.grammar is not None and "gbnf" in self.accepts:
            body["grammar"] = request.grammar
        if request.stop and "stop" in self.accepts:
            body["stop"] = list(request.stop)
        wait = Wait(self._timeout if request.timeout is None else request.timeout)
        return wait.until_done(lambda: self._all(body, request.n, request.seed, wait), self._model_name)

    # -- one call ----------------------------------------------------------------------------------

    @property
    def _model_name(self) -> str:
        return f"{self.model} at {self.place}"

    def _all(self, body: dict[str, Any], n: int, seed: int | None, wait: Wait) -> Completions:
        items: list[Completion] = []
        usage: Usage | None = None
        requests, model = 0, ""
        while len(items) < n:
            request = dict(body)
            if seed is not None:
                request["seed"] = seed + len(items)
            if n - len(items) > 1:
                request["n"] = n - len(items)
            try:
                result = self._complete(request, wait, len(items))
            except ModelError as error:
                if not items:
                    raise
                # Keep the completions that have arrived.
                _log.warning("%d of %d completions came: %s", len(items), n, error.message)
                break
            if len(result) < request.get("n", 1):
                # The server silently returns one at a time, so do not ask it for several again.
                self._refuse("n", "it returned fewer completions than requested")
            items += result.items
            usage = result.usage if usage is None else usage + result.usage
            requests, model = requests + result.requests, result.model or model
        return Completions(tuple(items[:n]), usage or Usage(), model, requests)

    def _complete(self, body: dict[str, Any], wait: Wait, first: int) -> Completions:
        """Return the completions of a request, with retries. `first` is the number of the first completion."""
        tries, attempts, pause = 0, 0, _FIRST
        while True:
            fitting = self._accepted(body)
            attempts += 1
            try:
                return completions(*self._send(fitting, wait, first), attempts)
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
                # The HTTP library failed in the middle of a reply. The error's name depends on the version.
                if not type(error).__module__.startswith("http"):
                    raise
                problem, hint, after = self._clean(f"the reply was cut: {type(error).__name__} {error}"), None, None
            if wait.over():
                raise wait.late(self._model_name)
            left = wait.left()
            pause = max(pause, after or 0.0)
            if tries >= self._retries or (left is not None and pause >= left):
                repeated = f", asked {attempts} times" if attempts > 1 else ""
                raise ModelError(f"{self._model_name} returned no completion{repeated}: {problem}", hint=hint)
            _log.info("%s is asked again in %.2f s: %s", self._model_name, pause, problem)
            wait.sleep(pause)
            tries, pause = tries + 1, min(pause * 2, _MAX_PAUSE)

    def _send(self, body: dict[str, Any], wait: Wait, first: int) -> tuple[bytes, bool]:
        """Send a request and return the body of the reply, and whether it is a stream.

        Raises the library's errors and `BrokenReplyError`.
        """
        body = dict(body)
        extra = dict(self._extra)
        if "grammar" in body:
            extra["grammar"] = body.pop("grammar")
        create = self._client.chat.completions.with_streaming_response.create
        with create(model=self.model, **body, extra_body=extra or None, timeout=wait.left() or _SILENCE) as response:
            parts: list[bytes] = []
            size = 0
            streamed = "event-stream" in response.headers.get("content-type", "")
            tell = listener() if streamed else None
            reader = None if tell is None else StreamReader(tell, first)
            for part in response.iter_bytes():
                parts.append(part)
                if reader is not None:
                    reader.read(part)
                size += len(part)
                if size > MAX_REPLY:
                    raise BrokenReplyError(f"the reply has more than {MAX_REPLY >> 20} MiB")
                if wait.over():
                    raise BrokenReplyError("the reply did not end in time")
            return b"".join(parts), streamed

    # -- refused parameters ------------------------------------------------------------------------

    def _accepted(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request without the parameters that the server refused."""
        result = dict(body)
        for name in self._refused & set(result):
            value = result.pop(name)
            other = OTHER_NAMES.get(name)
            if other is not None and other not in self._refused:
                result[other] = value
        return result

    def _refuse(self, name: str, why: str) -> None:
        with self._lock:
            if name in self._refused:
                return
            self._refused.add(name)
        _log.warning("%s does not take %s, which is left out from now on: %s", self._model_name, name, why)

    def _clean(self, text: str) -> str:
        """Remove the key from a message, even if the server repeats only part of it."""
        if len(self._key) > 4:
            text = text.replace(self._key, "[key]")
        return shortened(SECRET.sub("[key]", text), 500)


def _sendable(text: str) -> str:
    """Return a text that can be sent: unpaired surrogates, which UTF-8 cannot encode, are replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _strict(schema: Any) -> bool:
    """Return whether a schema fits OpenAI's strict mode: every object lists its properties, all required."""
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" or "properties" in schema:
            properties = schema.get("properties") or {}
            if schema.get("additionalProperties") is not False or set(schema.get("required") or ()) != set(properties):
                return False
        return all(_strict(part) for part in schema.values())
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return all(_strict(part) for part in schema)
    return True
