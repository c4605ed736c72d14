"""What Algorithm 1 needs of a model: triples that may follow, free text, and a choice; and how servers of models are called."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlsplit

from condgraph.chains.chain import Chain
from condgraph.chains.walk import Triple, Walk
from condgraph.engine.bounds import check, left
from condgraph.engine.errors import ModelError, OptionError, shortened

# -- base --------------------------------------------------------------------------------------------


#: What a triple's score is the logarithm of: the probability among what was allowed (Eq. 2), or
#: among all tokens.
Score = Literal["masked", "raw"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is told: what it is to do with examples, the question with its context, and what
    was written so far.
    """

    system: str
    user: str
    written: str = ""

    @property
    def text(self) -> str:
        """All of it, for models that go on with a text."""
        return f"{self.system}\n\n{self.user}\n{self.written}"

    def and_then(self, text: str) -> Prompt:
        """The same with more that was written."""
        return Prompt(self.system, self.user, self.written + text)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The same for models of conversations."""
        user = self.user + (f"\n\nSo far:\n{self.written.strip()}" if self.written.strip() else "")
        return [{"role": "system", "content": self.system}, {"role": "user", "content": user}]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A triple that a model wrote, and the sum of the logarithms of its tokens' probabilities; None
    where the server tells none. `tokens` is how many there are.
    """

    triple: Triple
    score: float | None
    tokens: int


@dataclass(frozen=True, slots=True)
class Free:
    """Free text of a model, and whether it wants another triple."""

    text: str
    goes_on: bool


class Backend(Protocol):
    """A model that can be kept to a chain. Calls raise `ModelError` where the model fails."""

    @property
    def name(self) -> str:
        """What answers say of how the model was kept to the graph."""

    @property
    def model(self) -> str:
        """What the model is called."""

    def told(self, n: int, wanted: Score) -> Score | None:
        """Which score n beams have, where that one is wanted; None where the server tells none."""

    def chain(self, walk: Walk) -> Chain | None:
        """The constraint by this model's tokenizer; None where it has none here."""

    def triples(self, prompt: Prompt, walk: Walk, n: int, score: Score | None) -> list[Proposal]:
        """Up to n different triples that may follow, best first. None where the model wants no
        more, or nothing may follow.
        """

    def free(self, prompt: Prompt, most: int) -> Free:
        """Free text of up to `most` tokens, without a triple in it."""

    def choose(self, prompt: Prompt, options: Sequence[str]) -> int | None:
        """Which of some texts the model goes on with; None where it says none of them."""


# -- choosing ----------------------------------------------------------------------------------------
# Which of some texts a model went on with, read from what it wrote.


def mentioned(text: str, options: Sequence[str]) -> int | None:
    """The option that a text names: the one that it is, else the one whose mention comes last, the
    longest of those that end there. None where it names none.
    """
    wanted = text.strip().strip(".*\"' ").casefold()
    for at, option in enumerate(options):
        if option.casefold() == wanted:
            return at
    best: tuple[int, int, int] | None = None
    for at, option in enumerate(options):
        if not option.strip():
            continue
        found = list(re.finditer(r"(?<!\w)" + re.escape(option.casefold()) + r"(?!\w)", text.casefold()))
        if found:
            mine = (found[-1].end(), len(option), -at)
            best = mine if best is None else max(best, mine)
    return None if best is None else -best[2]


# -- http --------------------------------------------------------------------------------------------
# Calls of a model's server: JSON to JSON, within the deadline of the call.


#: Seconds a call may take that has no deadline.
LONGEST: Final = 600.0
#: The longest answer that is read, in bytes.
MOST: Final = 64_000_000


class Server:
    """A server of a model. `place` is its address: `http://HOST:PORT`, or with a path."""

    def __init__(self, place: str, key: str | None = None) -> None:
        parts = urlsplit(place)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OptionError(f"{shortened(place, 80)!r} is no address of a server", hint="http://HOST:PORT is one")
        self._parts, self._key = parts, key
        self.place = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a call; raises `ModelError` with what the server said, and `DeadlineError`."""
        check()
        within = left()
        wait = LONGEST if within is None else max(within, 0.01)
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        assert self._parts.hostname is not None
        connection = kind(self._parts.hostname, self._parts.port, timeout=wait)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        try:
            connection.request("POST", self._parts.path.rstrip("/") + path, json.dumps(body).encode(), headers)
            reply = connection.getresponse()
            data = reply.read(MOST)
        except (OSError, socket.timeout, http.client.HTTPException) as error:  # noqa: UP041 - older sockets raise their own
            check()
            raise ModelError(f"the model's server at {self.place} did not answer: {error}") from None
        finally:
            connection.close()
        if reply.status != 200:
            raise ModelError(f"the model's server at {self.place} answered {reply.status}: {data[:500].decode('utf-8', 'replace')}")
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            raise ModelError(f"the model's server at {self.place} gave no JSON") from None
        if not isinstance(found, dict):
            raise ModelError(f"the model's server at {self.place} gave no object")
        return found
