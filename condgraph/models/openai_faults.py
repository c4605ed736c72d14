"""What servers of chat completions refuse, and in which words: the parameter that they do not take,
whether and when they may be asked again, what may help.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

#: Parameters that a server may refuse, and what they are left out or called then.
_OPTIONAL: Final = ("response_format", "grammar", "max_tokens", "temperature", "seed", "n", "stream_options")
OTHER_NAMES: Final = {"max_tokens": "max_completion_tokens"}
SECRET: Final = re.compile(r"\b(sk-|Bearer\s+)[\w*.-]+")
#: A limit of tokens that the model cannot give, and one that it wants by another name.
_TOO_MUCH: Final = re.compile(
    r"max_(completion_)?tokens\b.{0,40}\b(too large|at (least|most)|less than|exceed|must be)", re.IGNORECASE
)
_OTHER_NAME: Final = re.compile(r"unsupported|not supported|instead", re.IGNORECASE)


def refused(error: Any, body: Mapping[str, Any]) -> str | None:
    """The parameter of a request that a server says it does not take; None where it is another
    thing.
    """
    problem = error.body if isinstance(error.body, Mapping) else {}
    named, message = problem.get("param"), str(problem.get("message") or error.message)
    if _TOO_MUCH.search(message) and not _OTHER_NAME.search(message):
        # It takes the parameter, and not what it says.
        return None
    here = [name for name in (*_OPTIONAL, *OTHER_NAMES.values()) if name in body]
    for name in here:
        if isinstance(named, str) and named.split(".")[0].split("[")[0] == name:
            return name
    for name in here:
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", message):
            return name
    for name, words in (("response_format", r"json.?schema|structured"), ("n", r"\bone completion\b")):
        if name in here and re.search(words, message, re.IGNORECASE):
            return name
    return None


def told(error: Any) -> str:
    """What a server said of a request that it refused."""
    body = error.body
    told = body.get("message") if isinstance(body, Mapping) else body
    return str(told or error.message)


def cause(error: Exception) -> str:
    """An error, and what it came from."""
    cause = error.__cause__
    return f"{error} ({cause})" if cause is not None and str(cause) else str(error)


def may_answer_later(error: Any) -> bool:
    """Whether the same request may be answered later."""
    status: int = error.status_code
    return (status in (408, 409, 429) and str(error.code) != "insufficient_quota") or status >= 500


def after_of(error: Any) -> float | None:
    """Seconds after which the server wants to be asked again, where it says so in seconds."""
    headers = error.response.headers
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            found = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if 0 <= found < 86_400:
            return found
    return None


def hint_of(error: Any) -> str | None:
    """What may help."""
    status = error.status_code
    if status in (401, 403):
        return "OPENAI_API_KEY says the key"
    if status == 404:
        return "is the model's name right, and does OPENAI_BASE_URL end as the server wants it (often /v1)?"
    if status in (400, 413) and re.search(r"context|too long|too large|exceed", told(error), re.IGNORECASE):
        return "the prompt is longer than the model takes: fewer prompt_tokens= in the budget"
    return "it is busy: wait, or ask for less at a time" if status == 429 else None
