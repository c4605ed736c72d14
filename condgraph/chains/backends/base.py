"""What Algorithm 1 needs of a model, the search for the best triples, and calls of models' servers."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlsplit

import numpy as np

from condgraph.chains.chain import Chain, Parts
from condgraph.chains.tokens import Ids
from condgraph.chains.walk import Triple, Walk, triple_of
from condgraph.engine.bounds import check, left
from condgraph.engine.errors import ModelError, OptionError, shortened
from condgraph.grammars.parts import gbnf, object_schema, regex, trie

# -- models ------------------------------------------------------------------------------------------


# -- base --------------------------------------------------------------------------------------------


#: What a triple's score is the logarithm of: the probability among what was allowed (Eq. 2), or
#: among all tokens.
Score = Literal["masked", "raw"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: the task with examples, the question with its context, and what
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
    where the server gives none. `tokens` is their number.
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
        """Which score n beams have, where that one is wanted; None where the server gives none."""

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
        result = list(re.finditer(r"(?<!\w)" + re.escape(option.casefold()) + r"(?!\w)", text.casefold()))
        if result:
            mine = (result[-1].end(), len(option), -at)
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
        """The answer to a call; raises `ModelError` with the server's message, and `DeadlineError`."""
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
            result = json.loads(data)
        except (ValueError, RecursionError):
            raise ModelError(f"the model's server at {self.place} gave no JSON") from None
        if not isinstance(result, dict):
            raise ModelError(f"the model's server at {self.place} gave no object")
        return result


# -- search for the best triples ---------------------------------------------------------------------
# The triples that may follow as whole token sequences, and the search for the best of them by a
# model's probabilities, token by token.


#: Asked with token ids behind a prompt, a place among them, and the tokens that may follow: gives
#: the logarithms of the probability of each id from that place on, and of each that may follow.
#: Where only masked scores are asked for, the first may be empty, and the others may be among
#: themselves.
Scorer = Callable[[Sequence[int], int, Sequence[int]], tuple[Sequence[float], Sequence[float]]]
_LEAST: Final = -1e30


@dataclass(slots=True)
class _Beam:
    chain: Chain
    score: float
    done: bool = False


def best_triples(chain: Chain, scorer: Scorer, n: int, score: Score, *, width: int | None = None) -> list[Proposal]:
    """The n best triples that may follow, by token-level beam search of `width` beams (n by
    default): each step keeps the beams of the largest sums of logarithms.

    Tokens without an alternative cost no call where the score is masked: their probability among
    what is allowed is one.
    """
    beams = [_Beam(chain.copy(), 0.0)]
    width = max(width or n, 1)
    while any(not beam.done for beam in beams):
        check()
        grown: list[_Beam] = []
        for beam in beams:
            if beam.done:
                grown.append(beam)
                continue
            grown += _grown(beam, scorer, score)
        grown.sort(key=lambda beam: (-beam.score, beam.chain.ids))
        beams = grown[:width]
    return [
        Proposal(triple_of(beam.chain.walk.place, beam.chain.found), beam.score, len(beam.chain.ids)) for beam in beams[:n]
    ]  # fmt: skip


def _grown(beam: _Beam, scorer: Scorer, score: Score) -> list[_Beam]:
    """A beam with each token that may follow its forced ones."""
    chain, start = beam.chain, len(beam.chain.ids)
    while len(only := chain.next()) == 1:
        chain.advance(only[0])
    if not only and not chain.complete:
        # A dead end: nothing may follow.
        return []
    if chain.complete and score == "masked":
        return [_Beam(chain, beam.score, True)]
    behind, following = scorer(chain.ids, start, only)
    base = beam.score + (sum(behind) if score == "raw" else 0.0)
    if chain.complete:
        return [_Beam(chain, base, True)]
    logs = np.maximum(np.array(following, np.float64), _LEAST)
    if score == "masked":
        top = float(logs.max())
        logs = logs - (top + float(np.log(np.exp(logs - top).sum())))
    result = []
    for token, log in zip(only, logs.tolist(), strict=True):
        branch = chain.copy()
        branch.advance(token)
        result.append(_Beam(branch, base + log, branch.complete))
    return result


# -- alternatives as grammars ------------------------------------------------------------------------
# Alternatives as a grammar, always factored by their beginnings: as flat alternatives ten thousand
# of them take seconds to a first token, and some servers refuse more than 2,000.


def gbnf_of_parts(parts: Parts) -> str:
    """Token sequences as GBNF with token ids: what is accepted has exactly these tokens. What follows
    several heads is one rule.
    """
    written = _Tokens()
    rules: list[str] = []
    uses = Counter(end for _, end in parts.heads)
    behind: dict[int, str] = {}
    for end, many in uses.items():
        followed = _trie(parts.ends[end], [""] * len(parts.ends[end]), written.of, rules)
        if many > 1 and " " in followed:
            rules.append(f"e{end} ::= {followed}")
            followed = f"e{end}"
        behind[end] = followed
    heads = [head for head, _ in parts.heads]
    root = _trie(heads, [behind[end] for _, end in parts.heads], written.of, rules)
    return "\n".join([f"root ::= {root}", *rules]) + "\n"


def gbnf_of_texts(texts: Iterable[str]) -> str:
    """Texts as GBNF."""
    return gbnf({"root": trie(texts)})


def regex_of(texts: Iterable[str]) -> str:
    """Texts as one regular expression."""
    return regex({"root": trie(texts)})


class _Tokens(dict[int, str]):
    """Token ids as they are written, each put together once."""

    def __missing__(self, ident: int) -> str:
        result = self[ident] = f"<[{ident}]>"
        return result

    def of(self, ids: Sequence[int]) -> str:
        """Several in sequence."""
        return " ".join([self[item] for item in ids])


def _trie(sequences: Sequence[Ids], behind: Sequence[str], write: Callable[[Ids], str], rules: list[str]) -> str:
    """Sorted sequences, each followed by something, as one alternative; a rule is added for each
    place where they part. In one pass: what a sequence shares with the one before says which places
    are left behind, what it shares with the next where it begins.
    """
    if not sequences:
        raise ValueError("a grammar of nothing")
    depths: list[int] = [0]
    alternatives: list[list[str]] = [[]]

    def up(depth: int, sequence: Ids) -> None:
        """Leave the places that lie deeper: each becomes a rule, and a part of the one above."""
        while depths[-1] > depth:
            low = depths.pop()
            name = f"r{len(rules)}"
            rules.append(f"{name} ::= {' | '.join(alternatives.pop())}")
            if depths[-1] < depth:
                depths.append(depth)
                alternatives.append([])
            alternatives[-1].append(f"{write(sequence[depths[-1] : low])} {name}")

    last = len(sequences) - 1
    for at, sequence in enumerate(sequences):
        following = _shared(sequence, sequences[at + 1]) if at < last else 0
        if following > depths[-1]:
            depths.append(following)
            alternatives.append([])
        own, then = sequence[depths[-1] :], behind[at]
        text = write(own) if own else then or '""'
        alternatives[-1].append(f"{text} {then}" if own and then else text)
        if depths[-1] > following:
            up(following, sequence)
    result = alternatives[0]
    if len(result) > 1:
        name = f"r{len(rules)}"
        rules.append(f"{name} ::= {' | '.join(result)}")
        return name
    return result[0]


def _shared(first: Sequence[object], second: Sequence[object]) -> int:
    """The length of the common beginning of two sequences."""
    result = 0
    for mine, other in zip(first, second, strict=False):
        if mine != other:
            break
        result += 1
    return result


def enum_schema(field: str, values: Sequence[str]) -> dict[str, object]:
    """A JSON schema of one field with one of some values, and nothing else."""
    return object_schema({field: {"type": "string", "enum": list(values)}})


def enum_value(text: str, field: str, values: Iterable[str]) -> str | None:
    """The value of the field in a model's JSON; None where it is none of the values."""
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return None
    value = result.get(field) if isinstance(result, dict) else None
    return value if isinstance(value, str) and value in set(values) else None
