"""vLLM's server: the triples that may follow as one regular expression, factored by its beginnings.

The expression is sent as `structured_outputs`. Servers before 0.12 leave that aside without a word,
and take `guided_regex`: where what comes does not follow the expression, it is sent so, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from condgraph.chains.backends.base import Free, Prompt, Proposal, Score, Server, mentioned, regex_of
from condgraph.chains.chain import Chain
from condgraph.chains.walk import Walk
from condgraph.engine.errors import ModelError, OptionError

#: How an expression is sent: as servers take it now, and as those before 0.12 did.
_WAYS: Final[tuple[Callable[[str], dict[str, Any]], ...]] = (
    lambda expression: {"structured_outputs": {"regex": expression}},
    lambda expression: {"guided_regex": expression},
)
#: The most triples of one expression.
MOST_IN_EXPRESSION: Final = 20_000


class Vllm:
    """A model behind vLLM's OpenAI-compatible server. `place` is its address, up to and with `/v1`."""

    def __init__(self, place: str, model: str, *, key: str | None = None) -> None:
        self._server, self._model = Server(place, key), model
        self.name = "vLLM, a regular expression"
        self._ways = _WAYS

    @property
    def model(self) -> str:
        """What the server calls it."""
        return self._model

    def told(self, n: int, wanted: Score) -> Score | None:
        """Probabilities among all tokens."""
        return "raw"

    def chain(self, walk: Walk) -> Chain | None:
        """Texts are constrained, not tokens."""
        return None

    def triples(self, prompt: Prompt, walk: Walk, n: int, score: Score | None) -> list[Proposal]:
        """Up to n triples that may follow."""
        result = {str(triple): triple for triple in walk.following()}
        if not result:
            return []
        if len(result) > MOST_IN_EXPRESSION:
            raise OptionError(
                f"{len(result)} triples may follow, and an expression has at most {MOST_IN_EXPRESSION}",
                hint="reason over a part of the graph: subgraph=",
            )
        body = {
            "model": self._model, "prompt": prompt.text, "n": n, "max_tokens": 4 * max(map(len, result)), "logprobs": 1,
            "temperature": 0.0 if n == 1 else 1.0, "seed": 1,
        }  # fmt: skip
        best: dict[str, Proposal] = {}
        for choice in self._held(body, regex_of(result), lambda text: text.strip() in result):
            text = str(choice.get("text", "")).strip()
            logs = (choice.get("logprobs") or {}).get("token_logprobs") or []
            total = float(sum(logs)) if logs and None not in logs else None
            best.setdefault(text, Proposal(result[text], total, len(logs)))
        return sorted(best.values(), key=lambda item: -(item.score or 0.0))

    def free(self, prompt: Prompt, most: int) -> Free:
        """Free text; a sign that begins a triple ends it."""
        body = {"model": self._model, "prompt": prompt.text, "max_tokens": most, "temperature": 0.0, "stop": ["<", "\n\n"]}
        choices = self._server.post("/completions", body).get("choices") or [{}]
        return Free(str(choices[0].get("text", "")), choices[0].get("stop_reason") == "<")

    def choose(self, prompt: Prompt, options: Sequence[str]) -> int | None:
        """Which of some texts it goes on with."""
        if not options:
            return None
        body = {
            "model": self._model, "prompt": prompt.text, "max_tokens": 4 * max(map(len, options)), "temperature": 0.0,
        }  # fmt: skip
        offered = {option.strip() for option in options}
        choices = self._held(body, regex_of(f" {option}" for option in options), lambda text: text.strip() in offered)
        return mentioned(str(choices[0].get("text", "")), options) if choices else None

    def _held(self, body: Mapping[str, Any], expression: str, follows: Callable[[str], bool]) -> list[Mapping[str, Any]]:
        """The choices of a request under an expression; raises `ModelError` where they do not follow it."""
        for option in self._ways:
            choices: list[Mapping[str, Any]] = list(
                self._server.post("/completions", {**body, **option(expression)}).get("choices") or ()
            )
            if all(follows(str(choice.get("text", ""))) for choice in choices):
                if choices:
                    self._ways = (option,)
                return choices
        raise ModelError(
            "the server wrote what its expression does not allow", hint="it may take neither structured_outputs nor guided_regex"
        )
