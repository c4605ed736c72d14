"""KoPL programs with parameters: `Find($person) Relate(directed_by, backward) QueryName()`.

Where a text form has a name without quotes, `$person` is a parameter, and `"$person"` is the name
`$person`. In the JSON form every input is in quotes: `"$person"` is a parameter, `"$$person"` the
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from condgraph.engine.errors import ParseError
from condgraph.languages.kopl.syntax import parse, read_with_care
from condgraph.languages.kopl.table import CLOSED, FUNCTIONS, Linked, Program, Step, link
from condgraph.languages.parameters import GivenText, Hole, hole, hole_or_text, in_order

#: What a text is in the words of an error.
_WORDS: Final = {"op": "an operator", "direction": "a direction", "between": "a choice", "among": "a choice"}


class KoplTemplate:
    """The linked steps of a program. Reading one raises as `parse`, and `ParseError` for a
    parameter in the place of an operator, a direction or a choice, which are syntax.
    """

    language: ClassVar[str] = "kopl"

    def __init__(self, program: Program) -> None:
        self._steps, self._warnings = _read(program)
        names: list[str] = []
        others: set[str] = set()
        for at, step in enumerate(self._steps):
            for text, role in zip(step.texts, FUNCTIONS[step.function].texts, strict=True):
                if not isinstance(text, Hole):
                    continue
                if role in CLOSED:
                    raise ParseError(
                        f"step {at}, {step.function}: ${text} stands for {_WORDS[role]}, and a parameter is a name or a value",
                        hint=f"write one of {' '.join(CLOSED[role])}",
                    )
                names.append(text)
                if role != "name":
                    others.add(str(text))
        self.parameters = in_order(names)
        self.entities = frozenset(self.parameters) - others

    def bind(self, values: Mapping[str, GivenText]) -> Linked:
        """The steps with these values."""
        steps = []
        for step in self._steps:
            texts = tuple([values[text] if type(text) is Hole else text for text in step.texts])
            steps.append(Step(step.function, texts, step.dependencies))
        return Linked(steps, self._warnings)


def _read(program: Program) -> tuple[list[Step], list[str]]:
    if isinstance(program, str) and not program.strip().startswith("["):
        return _text(program), []
    steps, warnings = parse(program)
    return [Step(step.function, tuple(map(hole_or_text, step.texts)), step.dependencies) for step in steps], warnings


def _text(program: str) -> list[Step]:
    steps, places = read_with_care(program, _no_doubt)
    result: list[Step] = []
    for step, place in zip(steps, places, strict=True):
        # A name in quotes has them there.
        texts = [hole(program[low:high]) or text for text, (low, high) in zip(step.texts, place.texts, strict=True)]
        result.append(Step(step.function, tuple(texts)))
    return link(result, places)


def _no_doubt(role: str, text: str) -> bool:
    """A program that runs on any content of a graph is not read by the names of one."""
    raise ParseError(
        f"{text!r}: there are more commas than arguments",
        hint="in a program with parameters a name with a comma is in double quotes",
    )
