"""Transcripts of a model's calls, which can be recorded and replayed without the model.

A transcript is a file of JSON lines, one for each call. A line has the key (a hash of the canonical
request), the request, the completions or the error, the token counts made before the call, and the
model's name. It contains no API key, header or address, but everything from the graph that is in the
prompts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Final, Unpack

from condgraph.engine.errors import ModelError, TranscriptError
from condgraph.models.chat import ChatModel, ChatOptions, ChatRequest, Completion, Completions, Message, ModelAround, Usage

_FINISHES: Final = ("stop", "length", "refusal")


def canonical(request: ChatRequest) -> dict[str, Any]:
    """Return the canonical form of a request, without its timeout."""
    return {
        "messages": [{"role": message["role"], "content": message["content"]} for message in request.messages],
        "schema": request.schema,
        "grammar": request.grammar,
        "n": request.n,
        "max_tokens": request.max_tokens,
        "temperature": float(request.temperature),
        "seed": request.seed,
        # Left out if empty, as in transcripts of earlier versions.
        **({"stop": list(request.stop)} if request.stop else {}),
    }


def key_of(request: Mapping[str, Any]) -> str:
    """Return the hash of a canonical request: 32 hexadecimal digits."""
    text = json.dumps(request, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:32]


class Recording(ModelAround):
    """A model whose calls are added to a transcript.

    With `reuse=True`, requests that are in the transcript already are answered from it, and only new
    ones reach the model.
    """

    def __init__(self, model: ChatModel, path: str | Path, *, reuse: bool = False) -> None:
        super().__init__(model)
        self.path = Path(path)
        self._lock = Lock()
        self._counts: dict[str, int] = {}
        self._replay = Replaying(path, model=model.name) if reuse and self.path.exists() else None

    def __repr__(self) -> str:
        return f"Recording({self._model!r}, {str(self.path)!r})"

    def count(self, text: str) -> int | None:
        """Return the model's token count, which is recorded with the next call."""
        result = self._model.count(text)
        if result is not None:
            with self._lock:
                self._counts[_digest(text)] = result
        return result

    def chat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Completions:
        """Return the model's completions, or raise its `ModelError`. Both are recorded."""
        request = canonical(ChatRequest(messages, **options))
        if self._replay is not None and (known := self._replay.known(request)) is not None:
            return known
        try:
            result = self._model.chat(messages, **options)
        except ModelError as error:
            self._write(request, {"error": {"message": error.message, "hint": error.hint}})
            raise
        completions = [{"text": item.text, "finish": item.finish} for item in result]
        usage = {"prompt_tokens": result.usage.prompt_tokens, "completion_tokens": result.usage.completion_tokens}
        self._write(request, {"completions": completions, "usage": usage, "answered_by": result.model, "requests": result.requests})
        return result

    def _write(self, request: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        with self._lock:
            counts, self._counts = self._counts, {}
            line = {"key": key_of(request), "model": self.name, "accepts": sorted(self.accepts), "request": request, **reply}
            if counts:
                line["counts"] = counts
            # UTF-8 cannot encode unpaired surrogates, but JSON can escape them.
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=True) + "\n")


class Replaying:
    """A model that replays the calls of a transcript, without a real model or a network.

    If a request was made several times, its replies come in order and then start again. A request
    that is not in the transcript raises `TranscriptError`. `model` selects one of several models in a
    transcript.
    """

    def __init__(self, path: str | Path, *, model: str | None = None) -> None:
        self.path = Path(path)
        self._lock = Lock()
        self._replies: dict[str, list[Mapping[str, Any]]] = {}
        self._positions: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._read(model)

    def __repr__(self) -> str:
        return f"Replaying({str(self.path)!r})"

    @property
    def name(self) -> str:
        """The name of the recorded model."""
        return self._name

    @property
    def accepts(self) -> frozenset[str]:
        """The constraints that the recorded model supported."""
        return self._accepts

    def count(self, text: str) -> int | None:
        """Return the recorded token count, or None for another text."""
        return self._counts.get(_digest(text))

    def chat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Completions:
        """Return the recorded completions, or raise the recorded `ModelError`."""
        request = canonical(ChatRequest(messages, **options))
        result = self.known(request)
        if result is None:
            last = repr(messages[-1]["content"][-200:]) if messages else "nothing"
            raise TranscriptError(
                f"{self.path.name} holds {len(self._replies)} requests, and not this one ({key_of(request)}), which ends in {last}",
                hint="the graph, the demonstrations, the prompts, the options or the version differ: record again",
            )
        return result

    def known(self, request: Mapping[str, Any]) -> Completions | None:
        """Return the recorded completions of a canonical request, or None if it is not in the transcript."""
        key = key_of(request)
        with self._lock:
            replies = self._replies.get(key)
            if replies is None:
                return None
            index = self._positions.get(key, 0)
            self._positions[key] = (index + 1) % len(replies)
        return _completions(replies[index])

    def _read(self, model: str | None) -> None:
        models: dict[str, frozenset[str]] = {}
        try:
            with self.path.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        result = _line(line, f"{self.path.name}, line {number}")
                        if model is None or result["model"] == model:
                            models.setdefault(result["model"], frozenset(result["accepts"]))
                            self._replies.setdefault(result["key"], []).append(result)
                            self._counts.update(result.get("counts", {}))
        except OSError as error:
            raise TranscriptError(f"the transcript {self.path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise TranscriptError(f"the transcript {self.path.name} is not UTF-8 text") from error
        if len(models) > 1:
            raise TranscriptError(
                f"{self.path.name} holds calls of {len(models)} models: {', '.join(sorted(models))}",
                hint="Replaying(path, model=...) chooses one",
                candidates=sorted(models),
            )
        self._name, self._accepts = next(iter(models.items()), (model or "a model that was never asked", frozenset()))


def _line(line: str, where: str) -> Mapping[str, Any]:
    """Parse and validate a line of a transcript."""
    try:
        result = json.loads(line)
        if key_of(result["request"]) != result["key"]:
            raise TranscriptError(f"{where}: the key is not the hash of the request", hint="was the request changed by hand?")
        if not isinstance(result["model"], str) or not all(isinstance(item, str) for item in result["accepts"]):
            raise TypeError("the model is not text")
        if not all(isinstance(count, int) for count in result.get("counts", {}).values()):
            raise TypeError("a count is not a number")
        if "error" in result:
            str(result["error"]["message"])
        else:
            _completions(result)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise TranscriptError(f"{where} is not a call of a model: {type(error).__name__} {error}") from error
    return dict(result)


def _completions(line: Mapping[str, Any]) -> Completions:
    """Return the completions of a line, or raise its `ModelError`."""
    error = line.get("error")
    if error is not None:
        raise ModelError(str(error["message"]), hint=error.get("hint"))
    usage = line["usage"]
    items = [Completion(item["text"], item["finish"]) for item in line["completions"]]
    if not all(isinstance(item["text"], str) and item["finish"] in _FINISHES for item in line["completions"]):
        raise TypeError("a completion is not text")
    return Completions(
        tuple(items),
        Usage(usage["prompt_tokens"], usage["completion_tokens"]),
        line.get("answered_by", ""),
        line.get("requests", 1),
    )


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
