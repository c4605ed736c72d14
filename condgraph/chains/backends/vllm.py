"""vLLM's server: the triples that may follow as one regular expression, factored by common prefixes.

The expression is sent as `structured_outputs`. Servers before 0.12 silently ignore that, and accept `guided_regex`: if
the output does not match the expression, it is sent once more in that form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from condgraph.chains.backends.base import Free, Prompt, Proposal, Score, Server, mentioned, regex_of
from condgraph.chains.chain import Chain
from condgraph.chains.walk import Walk
from condgraph.engine.errors import ModelError, OptionError

#: Forms in which an expression is sent: for present servers, and for those before 0.12.
_FORMS: Final[tuple[Callable[[str], dict[str, Any]], ...]] = (
    lambda expression: {"structured_outputs": {"regex": expression}},
    lambda expression: {"guided_regex": expression},
)
#: Most triples of one expression.
MAX_IN_EXPRESSION: Final = 20_000


class Vllm:
    """A model on vLLM's OpenAI-compatible server; `place` is its address, up to and including `/v1`."""

    def __init__(self, place: str, model: str, *, key: str | None = None) -> None:
        self._server, self._model = Server(place, key), model
        self.name = "vLLM, a regular expression"
        self._forms = _FORMS

    @property
    def model(self) -> str:
        """The server's name of the model."""
        return self._model

    def told(self, n: int, wanted: Score) -> Score | None:
        """Return "raw": probabilities are among all tokens."""
        return "raw"

    def chain(self, walk: Walk) -> Chain | None:
        """Return None: texts are constrained, not tokens."""
        return None

    def triples(self, prompt: Prompt, walk: Walk, n: int, score: Score | None) -> list[Proposal]:
        """Return up to n triples that may follow."""
        by_text = {str(triple): triple for triple in walk.following()}
        if not by_text:
            return []
        if len(by_text) > MAX_IN_EXPRESSION:
            raise OptionError(
                f"{len(by_text)} triples may follow, and an expression has at most {MAX_IN_EXPRESSION}",
                hint="reason over a part of the graph: subgraph=",
            )
        body = {
            "model": self._model, "prompt": prompt.text, "n": n, "max_tokens": 4 * max(map(len, by_text)), "logprobs": 1,
            "temperature": 0.0 if n == 1 else 1.0, "seed": 1,
        }  # fmt: skip
        best: dict[str, Proposal] = {}
        for choice in self._constrained(body, regex_of(by_text), lambda text: text.strip() in by_text):
            text = str(choice.get("text", "")).strip()
            logs = (choice.get("logprobs") or {}).get("token_logprobs") or []
            total = float(sum(logs)) if logs and None not in logs else None
            best.setdefault(text, Proposal(by_text[text], total, len(logs)))
        return sorted(best.values(), key=lambda item: -(item.score or 0.0))

    def free(self, prompt: Prompt, most: int) -> Free:
        """Return free text, which ends before the opening of a triple."""
        body = {"model": self._model, "prompt": prompt.text, "max_tokens": most, "temperature": 0.0, "stop": ["<", "\n\n"]}
        choices = self._server.post("/completions", body).get("choices") or [{}]
        return Free(str(choices[0].get("text", "")), choices[0].get("stop_reason") == "<")

    def choose(self, prompt: Prompt, options: Sequence[str]) -> int | None:
        """Return the index of the text that the model continues with."""
        if not options:
            return None
        body = {
            "model": self._model, "prompt": prompt.text, "max_tokens": 4 * max(map(len, options)), "temperature": 0.0,
        }  # fmt: skip
        offered = {option.strip() for option in options}
        choices = self._constrained(body, regex_of(f" {option}" for option in options), lambda text: text.strip() in offered)
        return mentioned(str(choices[0].get("text", "")), options) if choices else None

    def _constrained(self, body: Mapping[str, Any], expression: str, follows: Callable[[str], bool]) -> list[Mapping[str, Any]]:
        """Return the choices of a request under an expression; raises `ModelError` if they do not match it."""
        for option in self._forms:
            choices: list[Mapping[str, Any]] = list(
                self._server.post("/completions", {**body, **option(expression)}).get("choices") or ()
            )
            if all(follows(str(choice.get("text", ""))) for choice in choices):
                if choices:
                    self._forms = (option,)
                return choices
        raise ModelError(
            "the server wrote what its expression does not allow", hint="it may take neither structured_outputs nor guided_regex"
        )
