"""Transformers models in this process: a logits processor for `generate`, with a state for every prefix, so that beams may be
reordered; and the model as a backend for Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from condgraph.chains.backends.base import Free, Prompt, Proposal, Score, best_triples
from condgraph.chains.chain import Chain
from condgraph.chains.text import OPEN
from condgraph.chains.tokens import Coder, coder_of
from condgraph.chains.walk import Walk
from condgraph.engine.bounds import check
from condgraph.engine.errors import ChainError, MissingExtraError, OptionError

#: Prefixes whose states are cached.
_MAX_STATES: Final = 20_000


class ChainProcessor:
    """A `LogitsProcessor` that only leaves the tokens that a chain allows.

    Pass it to `model.generate(logits_processor=[...])` with greedy search, beams or sampling. `prompt` is the number of
    tokens before the chain, `end` the id that ends the text. With `free`, there may be free text before, between and
    after triples, except tokens that would begin a triple unnoticed; otherwise one triple follows the other. For a beam
    with probability zero (sampled beams may end with one), `chain(ids)` is None: it is no chain. A state from which
    nothing may follow allows only `end`.
    """

    def __init__(self, chain: Chain, *, prompt: int, end: int, free: bool = False) -> None:
        self._prompt, self._end, self._free = prompt, end, free
        self._coder = chain.coder
        start = chain.copy()
        #: By the ids after the prompt: the chain, and whether it is inside a triple.
        self._states: dict[tuple[int, ...], tuple[Chain, bool] | None] = {(): (start, not free)}

    def chain(self, ids: Sequence[int]) -> Chain | None:
        """Return the chain of the ids after the prompt; None if they are none."""
        result = self._state(tuple(map(int, ids)))
        return None if result is None else result[0]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return scores of shape (rows, vocabulary), with minus infinity for tokens that are not allowed."""
        import torch

        result = torch.full_like(scores, -float("inf"))
        for row, ids in enumerate(input_ids[:, self._prompt :].tolist()):
            check()
            state = self._state(tuple(ids))
            if state is None:
                result[row, self._end] = 0.0
                continue
            chain, inside = state
            if inside:
                allowed = chain.next()
                if not chain.ids and (chain.triples or not allowed):
                    # Between triples the text may end; if nothing may follow, it has to.
                    allowed = [*allowed, self._end]
                indices = torch.tensor(allowed, dtype=torch.long, device=scores.device)
                result[row, indices] = scores[row, indices]
            else:
                banned = [*self._coder.banned.tolist(), *self._coder.tokens.special - {self._end}]
                if chain.done:
                    banned += self._coder.begins.tolist()
                result[row] = scores[row]
                result[row, torch.tensor(banned, dtype=torch.long, device=scores.device)] = -float("inf")
        return result

    def _state(self, ids: tuple[int, ...]) -> tuple[Chain, bool] | None:
        if ids in self._states:
            return self._states[ids]
        before = self._state_of(ids)
        result = None if before is None else self._advanced(before, ids[-1])
        if len(self._states) >= _MAX_STATES:
            first = self._states[()]
            self._states.clear()
            self._states[()] = first
        self._states[ids] = result
        return result

    def _state_of(self, ids: tuple[int, ...]) -> tuple[Chain, bool] | None:
        """Return the state of all ids but the last, from the longest cached prefix."""
        length = len(ids) - 1
        while ids[:length] not in self._states:
            length -= 1
        result = self._states[ids[:length]]
        for token in ids[length:-1]:
            if result is None:
                return None
            result = self._advanced(result, token)
        return result

    def _advanced(self, state: tuple[Chain, bool], token: int) -> tuple[Chain, bool] | None:
        if token == self._end:
            return None
        chain, inside = state[0].copy(), state[1]
        if inside:
            try:
                chain.advance(token)
            except ChainError:
                # Sampling fills beams of probability zero with any token: such a beam stays at zero.
                return None
            if chain.complete:
                chain.commit()
                inside = not self._free
        elif token in self._coder.begins and not chain.done:
            chain.opened((token,))
            inside = True
        return chain, inside


class Transformers:
    """A causal transformers model and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        try:
            import torch
        except ImportError:
            raise MissingExtraError("torch", "local-llm") from None
        self._torch, self._model, self._tokenizer = torch, model, tokenizer
        self._coder: Coder = coder_of(tokenizer)
        self.name = "transformers, masks"
        #: Number of runs of the model.
        self.calls = 0

    @property
    def model(self) -> str:
        """The model's name in its configuration."""
        config = getattr(self._model, "config", None)
        return str(getattr(config, "name_or_path", "") or type(self._model).__name__)

    def told(self, n: int, wanted: Score) -> Score | None:
        """Return the score that is wanted, as both are available."""
        return wanted

    def chain(self, walk: Walk) -> Chain:
        """Return the constraint for the model's tokenizer."""
        return Chain(walk, self._coder)

    def triples(self, prompt: Prompt, walk: Walk, n: int, score: Score | None) -> list[Proposal]:
        """Return the n best triples that may follow, by token-level beam search."""
        before = self._ids(prompt.text)
        if score is None:
            raise OptionError("a score is 'masked' or 'raw'")

        def scorer(ids: Sequence[int], start: int, allowed: Sequence[int]) -> tuple[Sequence[float], Sequence[float]]:
            logs = self._logs([*before, *ids], len(ids) - start + 1)
            forced_logs = [float(row[token]) for row, token in zip(logs, ids[start:], strict=False)]
            return forced_logs, logs[-1].take(np.array(allowed, np.int64)).tolist() if len(allowed) else []

        return best_triples(self.chain(walk), scorer, n, score)

    def _ids(self, text: str) -> list[int]:
        result: list[int] = list(self._tokenizer(text)["input_ids"])
        return result

    def _logs(self, ids: Sequence[int], last: int) -> Any:
        """Return the logarithms of the next-token probabilities at the last positions, (last, tokens)."""
        torch = self._torch
        self.calls += 1
        with torch.no_grad():
            inputs = torch.tensor([list(ids)], dtype=torch.long, device=self._model.device)
            logits = self._model(inputs).logits[0, -last:].double()
        return torch.log_softmax(logits, -1).cpu().numpy()

    def free(self, prompt: Prompt, most: int) -> Free:
        """Return free text by greedy search, which ends before the opening of a triple."""
        ids = self._ids(prompt.text)
        result: list[int] = []
        special, banned = self._coder.tokens.special, set(self._coder.banned.tolist())
        begins = set(self._coder.begins.tolist())
        for _ in range(most):
            check()
            logs = self._logs([*ids, *result], 1)[0]
            logs[[item for item in banned if item < len(logs)]] = -np.inf
            token = int(logs.argmax())
            if token in begins:
                return Free(self._tokenizer.decode(result), True)
            if token in special:
                break
            result.append(token)
            if self._tokenizer.decode(result).endswith("\n\n"):
                break
        return Free(self._tokenizer.decode(result).replace(OPEN, ""), False)

    def choose(self, prompt: Prompt, options: Sequence[str]) -> int | None:
        """Return the index of the most probable text after the prompt, by the mean over its tokens."""
        before, ranks = self._ids(prompt.text), []
        for index, option in enumerate(options):
            check()
            ids = list(self._coder.encode(" " + option)) or [0]
            logs = self._logs([*before, *ids], len(ids) + 1)
            ranks.append((float(np.mean([row[token] for row, token in zip(logs, ids, strict=False)])), -index))
        return -max(ranks)[1] if ranks else None
