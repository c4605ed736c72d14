"""The LLM function of TrustUQA (Appendix F): a function that no engine has is worked out by the
model from its values, and the answer says which data it was shown.
"""

from __future__ import annotations

import json
from typing import Any, Final

from condgraph.ask.prompt import Prompts, block
from condgraph.engine.errors import ModelError, shortened
from condgraph.engine.outside import FunctionCall
from condgraph.models.base import ChatModel
from condgraph.overview.words import quoted

#: Values of an argument that are shown, characters of each, and values that are taken back.
MOST_VALUES: Final = 100
_LONGEST: Final = 200
_MOST_GIVEN: Final = 1_000


class Functions:
    """A model as a function from outside; what it is shown is added to `shown`."""

    def __init__(self, model: ChatModel, prompts: Prompts, mark: str, question: str, seed: int, shown: list[str]) -> None:
        self._model, self._prompts, self._mark = model, prompts, mark
        self._question, self._seed, self._shown = question, seed, shown

    def __call__(self, call: FunctionCall) -> Any:
        """The values that the model gives. Raises `ModelError` where they are no JSON list."""
        lines = []
        for number, argument in enumerate(call.arguments, start=1):
            values = ", ".join(quoted(text, _LONGEST) for text in argument.texts[:MOST_VALUES])
            more = f" and {len(argument.texts) - MOST_VALUES} more" if len(argument.texts) > MOST_VALUES else ""
            lines.append(f"{quoted(argument.name or f'argument {number}')}: [{values}]{more}")
        lines += [f"{quoted(name)}: {quoted(text, _LONGEST)}" for name, text in call.options.items()]
        values = "\n".join(lines)
        self._shown.append(f"{call.name}: {values}")
        prompt = self._prompts.fill(
            "function", mark=self._mark, question=" ".join(self._question.split()), step=quoted(call.words, _LONGEST),
            function=quoted(call.name), values=block(self._mark, values.replace(self._mark, "")),
        )  # fmt: skip
        found = self._model.chat([{"role": "user", "content": prompt}], max_tokens=300, seed=self._seed)
        return _listed(found[0].text if found else "", call.name)


def _listed(text: str, name: str) -> list[Any]:
    """The texts and numbers of a JSON list; one text or number is a list of it."""
    inside = text[text.find("[") : text.rfind("]") + 1] if "[" in text else text
    try:
        given = json.loads(inside)
    except (ValueError, RecursionError):
        raise ModelError(f"the model gave no JSON list for the function {name!r}: {shortened(text, 80)!r}") from None
    values = given if isinstance(given, list) else [given]
    kept = [one for one in values if isinstance(one, (str, int, float)) and not isinstance(one, bool)]
    if len(kept) != len(values) or len(kept) > _MOST_GIVEN:
        raise ModelError(f"the model gave more than texts and numbers for the function {name!r}")
    return kept
