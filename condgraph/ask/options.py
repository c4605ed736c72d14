"""What may be said of how a question is asked, checked once."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from condgraph.ask.records import VIAS, AskStep
from condgraph.engine.errors import OptionError, nearest
from condgraph.models.budget import Budget

#: Demonstrations in a prompt, and samples of one question.
MOST_DEMOS: Final = 8
MOST_SAMPLES: Final = 50


@dataclass(frozen=True, slots=True)
class AskOptions:
    """As the parameters of `Graph.ask`."""

    via: str = "auto"
    demos: int | None = None
    budget: Budget = field(default_factory=Budget)
    samples: int = 1
    retries: int = 3
    source: str | None = None
    verbalise: bool = False
    function: bool = False
    seed: int = 0
    temperature: float | None = None
    limit: int | None = None
    excerpt_tokens: int = 1200
    cells: bool = True
    untrusted: Collection[str] = ()
    choose: Mapping[str, str] = field(default_factory=dict)
    prompts: str | os.PathLike[str] | None = None
    on_step: Callable[[AskStep], Any] | None = None
    aware: bool = False
    same_question: bool = False

    def __post_init__(self) -> None:
        if self.via not in VIAS:
            raise OptionError(f"via is one of {', '.join(VIAS)}, not {self.via!r}", candidates=nearest(str(self.via), VIAS))
        if self.aware and self.via not in ("auto", "kopl"):
            raise OptionError(
                f"aware= is an option of programs in KoPL, and via is {self.via!r}", hint='via="kopl" or "auto", or aware=False'
            )
        for name, least, most in (("samples", 1, MOST_SAMPLES), ("retries", 0, 20), ("excerpt_tokens", 0, 10**6)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise OptionError(f"{name} is a whole number from {least} to {most:,}, not {value!r}")
        if self.demos is not None and (type(self.demos) is not int or self.demos < 0):
            raise OptionError(f"demos is how many demonstrations are shown, 0 or more, not {self.demos!r}")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise OptionError(f"temperature is from 0 to 2, not {self.temperature!r}")
        if isinstance(self.untrusted, str):
            raise OptionError("untrusted is a list of names of sources")

    @property
    def heat(self) -> float:
        """The temperature: 0 for one sample, so that it is the likeliest program; 0.7 for several,
        so that they differ.
        """
        return self.temperature if self.temperature is not None else 0.0 if self.samples == 1 else 0.7
