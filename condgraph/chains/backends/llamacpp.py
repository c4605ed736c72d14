"""llama.cpp's server: one beam by a grammar of token ids, with one call for each triple; several beams by calls for single
tokens, with biases that only allow what may follow.

Most tokens of a triple have no alternative, and need no call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from condgraph.chains.backends import base
from condgraph.chains.chain import Chain, Parts, parts
from condgraph.chains.tokens import Coder
from condgraph.chains.walk import Walk, triple_of
from condgraph.engine.errors import ModelError

#: Most triples of one grammar; if more may follow, masks are used.
MAX_IN_GRAMMAR: Final = 20_000
#: A bias that excludes all other tokens.
_BIAS: Final = 1000.0
#: Texts that are encoded by one call.
_TOGETHER: Final = 2000


class LlamaTokens:
    """The tokenizer of a server, called for many texts at a time."""

    def __init__(self, server: base.Server) -> None:
        self._server = server
        # An id that no text produces, used to separate texts.
        result = server.post("/tokenize", {"content": "<|endoftext|>", "add_special": False, "parse_special": True})["tokens"]
        self._separator = int(result[0]) if len(result) == 1 else 0

    def encode_many(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """Return the token ids of texts."""
        result: list[Sequence[int]] = []
        for start in range(0, len(texts), _TOGETHER):
            part = texts[start : start + _TOGETHER]
            content: list[str | int] = []
            for text in part:
                content += [text, self._separator]
            body = {"content": content, "add_special": False, "parse_special": False}
            ids = self._server.post("/tokenize", body)["tokens"]
            ids_of_text: list[int] = []
            several: list[Sequence[int]] = []
            for ident in ids:
                if ident == self._separator:
                    several.append(ids_of_text)
                    ids_of_text = []
                else:
                    ids_of_text.append(int(ident))
            if len(several) != len(part):
                raise ModelError(f"the server gave tokens of {len(several)} texts for {len(part)}")
            result += several
        return result

    def pieces(self) -> Mapping[int, str]:
        """Return nothing, as a server does not report texts of ids: a grammar constrains free text instead."""
        return {}

    @property
    def special(self) -> frozenset[int]:
        """The id that separates texts."""
        return frozenset((self._separator,))


class LlamaCpp:
    """A model on llama.cpp's server (or one that `xllamacpp` runs in this process).

    `place` is its address. With `grammar=False`, masks are used even for one beam.
    """

    def __init__(self, place: str, *, grammar: bool = True, key: str | None = None) -> None:
        self._server = base.Server(place, key)
        self._grammar = grammar
        self._coder = Coder(LlamaTokens(self._server))
        self._model = ""
        self.name = "llama.cpp"
        #: Number of calls.
        self.calls = 0

    @property
    def model(self) -> str:
        """The file name of the model, known after the first response."""
        return self._model

    def told(self, n: int, wanted: base.Score) -> base.Score | None:
        """Return "raw" for a grammar, which gives probabilities among all tokens; "masked" for masks."""
        return "raw" if n == 1 and self._grammar else "masked"

    def chain(self, walk: Walk) -> Chain:
        """Return the constraint for the server's tokenizer."""
        return Chain(walk, self._coder)

    def triples(self, prompt: base.Prompt, walk: Walk, n: int, score: base.Score | None) -> list[base.Proposal]:
        """Return up to n triples that may follow."""
        chain = self.chain(walk)
        if chain.done:
            return []
        if n == 1 and self._grammar and (result := parts(chain, MAX_IN_GRAMMAR)):
            self.name = "llama.cpp, a grammar of token ids"
            return self._by_grammar(prompt, chain, result)
        self.name = "llama.cpp, masks"
        before = list(self._server.post("/tokenize", {"content": prompt.text, "add_special": True})["tokens"])

        def scorer(ids: Sequence[int], start: int, allowed: Sequence[int]) -> tuple[Sequence[float], Sequence[float]]:
            logs = self._log_probabilities([*before, *ids], allowed)
            return (), [logs.get(item, -700.0) for item in allowed]

        return base.best_triples(chain, scorer, n, "masked")

    def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self.calls += 1
        result = self._server.post("/completion", {"cache_prompt": True, **body})
        self._model = str(result.get("model", "")).rsplit("/", 1)[-1] or self._model
        return result

    def _by_grammar(self, prompt: base.Prompt, chain: Chain, grammar: Parts) -> list[base.Proposal]:
        body = {
            "prompt": prompt.text, "grammar": base.gbnf_of_parts(grammar), "n_predict": grammar.longest + 1,
            "temperature": 0.0, "return_tokens": True, "n_probs": 1, "samplers": ["temperature"],
        }  # fmt: skip
        answered = self._post(body)
        written = chain.copy()
        used = 0
        for token in answered.get("tokens", ()):
            if written.complete:
                break
            written.advance(token)
            used += 1
        if not written.complete:
            raise ModelError("the server stopped before a triple was complete", hint="its context may be too short for the prompt")
        probabilities = answered.get("completion_probabilities") or []
        logs = [probability.get("logprob") for probability in probabilities[:used]]
        total = None if len(logs) < used or None in logs else float(sum(logs))
        return [base.Proposal(triple_of(written.walk.place, written.found), total, used)]

    def _log_probabilities(self, ids: Sequence[int], allowed: Sequence[int]) -> dict[int, float]:
        """Return the logarithm of the probability of each allowed token, relative to them."""
        body = {
            "prompt": list(ids), "n_predict": 1, "temperature": 1.0, "samplers": ["temperature"], "seed": 1,
            "logit_bias": [[item, _BIAS] for item in allowed], "n_probs": len(allowed), "post_sampling_probs": True,
        }  # fmt: skip
        result = self._post(body).get("completion_probabilities") or [{}]
        return {int(item["id"]): float(np.log(max(item["prob"], 1e-300))) for item in result[0].get("top_probs", ())}

    def free(self, prompt: base.Prompt, most: int) -> base.Free:
        """Return free text, which ends before the opening of a triple."""
        body = {"prompt": prompt.text, "n_predict": most, "temperature": 0.0, "stop": ["<", "\n\n"], "samplers": ["temperature"]}
        result = self._post(body)
        return base.Free(str(result.get("content", "")), result.get("stopping_word") == "<")

    def choose(self, prompt: base.Prompt, options: Sequence[str]) -> int | None:
        """Return the index of the text that the model continues with, by a grammar of the texts."""
        if not options:
            return None
        longest = max(len(option.encode()) for option in options)
        body = {
            "prompt": prompt.text, "grammar": base.gbnf_of_texts(f" {option}\n" for option in options), "n_predict": longest + 2,
            "temperature": 0.0, "samplers": ["temperature"],
        }  # fmt: skip
        return base.mentioned(str(self._post(body).get("content", "")), options)
