"""What a server that speaks OpenAI's chat completions sends: one JSON object, or a stream of events
with pieces of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from condgraph.engine.errors import shortened
from condgraph.models.base import Completion, Completions, Finish, Usage

#: Bytes of a reply that are read: more is no completion.
MOST_BYTES: Final = 16 << 20
#: Why a completion ended, by the words of servers; other words are an end like any other.
_FINISHES: Final[Mapping[str, Finish]] = {"length": "length", "max_tokens": "length", "content_filter": "refusal"}


class BrokenReplyError(Exception):
    """What came is no completion: it may be better when asked again."""


def completions(body: bytes, streamed: bool, requests: int = 1) -> Completions:
    """The completions that a body holds, each as it came. Raises `BrokenReplyError`."""
    found = _joined(_events(body)) if streamed else _object(body)
    choices = found.get("choices")
    if not isinstance(choices, list) or not choices:
        raise BrokenReplyError(f"no completions came: {_said(found, body)}")
    usage = found.get("usage")
    model = found.get("model")
    return Completions(
        tuple(_completion(choice) for choice in choices),
        _usage(usage) if isinstance(usage, Mapping) else Usage(),
        model if isinstance(model, str) else "",
        requests,
    )


def _said(found: Mapping[str, Any], body: bytes) -> str:
    error = found.get("error")
    if isinstance(error, Mapping):
        error = error.get("message")
    return shortened(error if isinstance(error, str) else body[:400].decode("utf-8", "replace"), 200)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        start = body[:100].decode("utf-8", "replace")
        raise BrokenReplyError(f"what came is no JSON: {start!r} ({error})") from None
    if not isinstance(found, dict):
        raise BrokenReplyError(f"what came is no object of JSON: {shortened(repr(found), 100)}")
    return found


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
        raise BrokenReplyError(f"the content of a message is no text but {type(text).__name__}")
    finish = choice.get("finish_reason")
    return Completion(text or "", _FINISHES.get(finish, "stop") if isinstance(finish, str) else "stop")


def _usage(usage: Mapping[str, Any]) -> Usage:
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return Usage(_number(prompt), _number(completion))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


# -- streams -----------------------------------------------------------------------------------------


def _events(body: bytes) -> Iterable[Mapping[str, Any]]:
    """The events of a stream, in order. Raises `BrokenReplyError` where it has no end."""
    for line in body.splitlines():
        name, _, data = line.partition(b":")
        if name.strip() != b"data":
            continue
        data = data.strip()
        if data == b"[DONE]":
            return
        yield _object(data)


def _joined(events: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The object whose pieces are given. Raises `BrokenReplyError` where a completion has no end."""
    texts: dict[int, list[str]] = {}
    refusals: dict[int, list[str]] = {}
    finishes: dict[int, str] = {}
    usage: Any = None
    model: Any = None
    for event in events:
        if "error" in event:
            raise BrokenReplyError(f"the stream ended in an error: {_said(event, b'')}")
        usage, model = event.get("usage") or usage, event.get("model") or model
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, Mapping):
                continue
            at = _number(choice.get("index")) or 0
            delta = choice.get("delta")
            delta = delta if isinstance(delta, Mapping) else {}
            for kept, piece in ((texts, delta.get("content")), (refusals, delta.get("refusal"))):
                parts = kept.setdefault(at, [])
                if isinstance(piece, str):
                    parts.append(piece)
            if isinstance(finish := choice.get("finish_reason"), str):
                finishes[at] = finish
    unfinished = [at for at in texts if at not in finishes]
    if unfinished:
        begun = "".join(texts[unfinished[0]])
        raise BrokenReplyError(f"the stream stopped after {len(begun)} characters, before its completion ended")
    return {
        "choices": [
            {"message": {"content": "".join(texts[at]), "refusal": "".join(refusals[at])}, "finish_reason": finishes[at]}
            for at in sorted(texts)
        ],
        "usage": usage,
        "model": model,
    }
