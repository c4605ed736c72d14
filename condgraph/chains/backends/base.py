"""The interface of models for Algorithm 1, the search for the best triples, and calls of model servers."""

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


#: The probability whose logarithm a score is: among the allowed tokens (Eq. 2), or among all tokens.
Score = Literal["masked", "raw"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: the task with examples, the question with its context, and the text written so far."""

    system: str
    user: str
    written: str = ""

    @property
    def text(self) -> str:
        """The whole prompt, for models that continue a text."""
        return f"{self.system}\n\n{self.user}\n{self.written}"

    def and_then(self, text: str) -> Prompt:
        """Return the prompt with more written text."""
        return Prompt(self.system, self.user, self.written + text)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The prompt as messages, for chat models."""
        user = self.user + (f"\n\nSo far:\n{self.written.strip()}" if self.written.strip() else "")
        return [{"role": "system", "content": self.system}, {"role": "user", "content": user}]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A triple that a model wrote, with the sum of the logarithms of its `tokens` probabilities;

    None if the server reports none.
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
    """A model that can be restricted to a chain. Calls raise `ModelError` if the model fails."""

    @property
    def name(self) -> str:
        """The description of the constraint, for answers."""

    @property
    def model(self) -> str:
        """The name of the model."""

    def told(self, n: int, wanted: Score) -> Score | None:
        """Return the kind of score of n beams, if `wanted` is requested; None if the server reports none."""

    def chain(self, walk: Walk) -> Chain | None:
        """Return the constraint for this model's tokenizer; None if it is not available here."""

    def triples(self, prompt: Prompt, walk: Walk, n: int, score: Score | None) -> list[Proposal]:
        """Return up to n different triples that may follow, best first; none if the model wants no more, or nothing may follow."""

    def free(self, prompt: Prompt, most: int) -> Free:
        """Return free text of up to `most` tokens, without a triple in it."""

    def choose(self, prompt: Prompt, options: Sequence[str]) -> int | None:
        """Return the index of the text that the model continues with; None if it is none of them."""


# -- choosing ----------------------------------------------------------------------------------------
# Reads from a model's text which of some options it chose.


def mentioned(text: str, options: Sequence[str]) -> int | None:
    """Return the index of the option that a text names, or None.

    An exact match wins, then the option mentioned last, and the longest one ending there.
    """
    wanted = text.strip().strip(".*\"' ").casefold()
    for index, option in enumerate(options):
        if option.casefold() == wanted:
            return index
    best: tuple[int, int, int] | None = None
    for index, option in enumerate(options):
        if not option.strip():
            continue
        matches = list(re.finditer(r"(?<!\w)" + re.escape(option.casefold()) + r"(?!\w)", text.casefold()))
        if matches:
            rank = (matches[-1].end(), len(option), -index)
            best = rank if best is None else max(best, rank)
    return None if best is None else -best[2]


# -- http --------------------------------------------------------------------------------------------
# Calls of a model server: JSON to JSON, within the deadline of the call.


#: Timeout in seconds of calls without a deadline.
DEFAULT_TIMEOUT: Final = 600.0
#: Longest response that is read, in bytes.
MAX_RESPONSE: Final = 64_000_000


class Server:
    """A model server; `place` is its address: `http://HOST:PORT`, or with a path."""

    def __init__(self, place: str, key: str | None = None) -> None:
        parts = urlsplit(place)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OptionError(f"{shortened(place, 80)!r} is not the address of a server", hint="http://such as http://HOST:PORT")
        self._parts, self._key = parts, key
        self.place = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return the response; raises `ModelError` with the server's message, and `DeadlineError`."""
        check()
        within = left()
        wait = DEFAULT_TIMEOUT if within is None else max(within, 0.01)
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        assert self._parts.hostname is not None
        connection = kind(self._parts.hostname, self._parts.port, timeout=wait)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        try:
            connection.request("POST", self._parts.path.rstrip("/") + path, json.dumps(body).encode(), headers)
            reply = connection.getresponse()
            data = reply.read(MAX_RESPONSE)
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
            raise ModelError(f"the model's server at {self.place} returned no JSON") from None
        if not isinstance(result, dict):
            raise ModelError(f"the model's server at {self.place} returned JSON that is not an object")
        return result


# -- search for the best triples ---------------------------------------------------------------------
# The search for the best triples that may follow by a model's probabilities, token by token.


#: Called with token ids after a prompt, an index among them, and the tokens that may follow; returns the
#: logarithms of the probability of each id from that index on, and of each token that may follow. For
#: masked scores, the first list may be empty, and the second may be relative to the allowed tokens.
Scorer = Callable[[Sequence[int], int, Sequence[int]], tuple[Sequence[float], Sequence[float]]]
_MIN_SCORE: Final = -1e30


@dataclass(slots=True)
class _Beam:
    chain: Chain
    score: float
    done: bool = False


def best_triples(chain: Chain, scorer: Scorer, n: int, score: Score, *, width: int | None = None) -> list[Proposal]:
    """Return the n best triples that may follow, by token-level beam search with `width` beams (by default n).

    Each step keeps the beams with the largest sums of logarithms. With masked scores, tokens without an alternative
    need no call: their probability among the allowed tokens is one.
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
    """Extend a beam by each token that may follow its forced ones."""
    chain, start = beam.chain, len(beam.chain.ids)
    while len(tokens := chain.next()) == 1:
        chain.advance(tokens[0])
    if not tokens and not chain.complete:
        # A dead end: nothing may follow.
        return []
    if chain.complete and score == "masked":
        return [_Beam(chain, beam.score, True)]
    forced_logs, following = scorer(chain.ids, start, tokens)
    base = beam.score + (sum(forced_logs) if score == "raw" else 0.0)
    if chain.complete:
        return [_Beam(chain, base, True)]
    logs = np.maximum(np.array(following, np.float64), _MIN_SCORE)
    if score == "masked":
        top = float(logs.max())
        logs = logs - (top + float(np.log(np.exp(logs - top).sum())))
    result = []
    for token, log in zip(tokens, logs.tolist(), strict=True):
        branch = chain.copy()
        branch.advance(token)
        result.append(_Beam(branch, base + log, branch.complete))
    return result


# -- alternatives as grammars ------------------------------------------------------------------------
# Alternatives as a grammar, factored by common prefixes: as flat alternatives, ten thousand take seconds
# to the first token, and some servers refuse more than 2,000.


def gbnf_of_parts(parts: Parts) -> str:
    """Return token sequences as GBNF with token ids: exactly these sequences are accepted.

    The continuations shared by several heads are one rule.
    """
    written = _Tokens()
    rules: list[str] = []
    uses = Counter(end for _, end in parts.heads)
    continuation: dict[int, str] = {}
    for end, count in uses.items():
        rule = _trie(parts.ends[end], [""] * len(parts.ends[end]), written.of, rules)
        if count > 1 and " " in rule:
            rules.append(f"e{end} ::= {rule}")
            rule = f"e{end}"
        continuation[end] = rule
    heads = [head for head, _ in parts.heads]
    root = _trie(heads, [continuation[end] for _, end in parts.heads], written.of, rules)
    return "\n".join([f"root ::= {root}", *rules]) + "\n"


def gbnf_of_texts(texts: Iterable[str]) -> str:
    """Return texts as GBNF."""
    return gbnf({"root": trie(texts)})


def regex_of(texts: Iterable[str]) -> str:
    """Return texts as one regular expression."""
    return regex({"root": trie(texts)})


class _Tokens(dict[int, str]):
    """Token ids as written in GBNF, each formatted once."""

    def __missing__(self, ident: int) -> str:
        result = self[ident] = f"<[{ident}]>"
        return result

    def of(self, ids: Sequence[int]) -> str:
        """Return several ids in sequence."""
        return " ".join([self[item] for item in ids])


def _trie(sequences: Sequence[Ids], behind: Sequence[str], write: Callable[[Ids], str], rules: list[str]) -> str:
    """Return sorted sequences, each followed by a text, as one alternative; adds a rule for each point where they branch.

    In one pass: the prefix shared with the previous sequence tells which branch points end, the one shared with the
    next sequence where a new one begins.
    """
    if not sequences:
        raise ValueError("a grammar of nothing")
    depths: list[int] = [0]
    alternatives: list[list[str]] = [[]]

    def up(depth: int, sequence: Ids) -> None:
        """Close the branch points deeper than `depth`: each becomes a rule, and a part of the one above."""
        while depths[-1] > depth:
            low = depths.pop()
            name = f"r{len(rules)}"
            rules.append(f"{name} ::= {' | '.join(alternatives.pop())}")
            if depths[-1] < depth:
                depths.append(depth)
                alternatives.append([])
            alternatives[-1].append(f"{write(sequence[depths[-1] : low])} {name}")

    last = len(sequences) - 1
    for index, sequence in enumerate(sequences):
        following = _shared(sequence, sequences[index + 1]) if index < last else 0
        if following > depths[-1]:
            depths.append(following)
            alternatives.append([])
        own, suffix = sequence[depths[-1] :], behind[index]
        text = write(own) if own else suffix or '""'
        alternatives[-1].append(f"{text} {suffix}" if own and suffix else text)
        if depths[-1] > following:
            up(following, sequence)
    result = alternatives[0]
    if len(result) > 1:
        name = f"r{len(rules)}"
        rules.append(f"{name} ::= {' | '.join(result)}")
        return name
    return result[0]


def _shared(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences."""
    result = 0
    for item, counterpart in zip(first, second, strict=False):
        if item != counterpart:
            break
        result += 1
    return result


def enum_schema(field: str, values: Sequence[str]) -> dict[str, object]:
    """Return a JSON schema for one field with one of some values, and nothing else."""
    return object_schema({field: {"type": "string", "enum": list(values)}})


def enum_value(text: str, field: str, values: Iterable[str]) -> str | None:
    """Return the value of the field in a model's JSON; None if it is none of the values."""
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return None
    value = result.get(field) if isinstance(result, dict) else None
    return value if isinstance(value, str) and value in set(values) else None
