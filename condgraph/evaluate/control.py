"""The control: no model, but the program of the nearest demonstration, with its things swapped for
those of the question. What a model adds is what it is better than this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from condgraph.ask.known import Known, known_of
from condgraph.ask.mentions import Mention, masked, mentions
from condgraph.engine.errors import CondgraphError, InterruptedQueryError

if TYPE_CHECKING:
    from condgraph.graph import Graph

#: Demonstrations that are looked at until one has things that can be swapped.
_LOOKED_AT = 8
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Control:
    """Answers questions by the demonstrations of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def answer(self, question: str, source: str | None = None) -> tuple[list[str] | None, str]:
        """The texts of the answer, None where there is none, and the program that was run. The
        question's own demonstration, if it has one, is not looked at.
        """
        known = known_of(self._graph._store_of(None), self._graph._survey())
        found = mentions(question, known)
        for similar in self._graph.demos.similar(masked(question, found), _LOOKED_AT, without=" ".join(question.split())):
            demo = similar.demo
            program = swapped(demo.program, demo.question, _things(demo.question, known), question, found)
            if program is None:
                continue
            where = source if source is not None else demo.source
            options: dict[str, Any] = {} if where is None or demo.language != "query" else {"source": where}
            try:
                return self._graph.query(program, **options).texts, program
            except InterruptedQueryError:
                raise
            except CondgraphError:
                return None, program
        return None, ""


def _things(question: str, known: Known) -> list[Mention]:
    return mentions(question, known)


def swapped(program: str, old: str, old_things: Sequence[Mention], new: str, new_things: Sequence[Mention]) -> str | None:
    """The program of one question with the things and numbers of another in place of its own, in
    their order; None where they are not as many, or none of them stands in the program.
    """
    if len(old_things) != len(new_things):
        return None
    swaps: dict[str, str] = {}
    for before, after in zip(old_things, new_things, strict=True):
        name = after.names[0] if after.names else after.text
        for text in (*before.names, before.text):
            swaps.setdefault(text.casefold(), name)
    numbers = _outside(old, old_things), _outside(new, new_things)
    if len(numbers[0]) == len(numbers[1]):
        for before_number, after_number in zip(*numbers, strict=True):
            swaps.setdefault(before_number, after_number)
    if not swaps:
        # The two ask the same of nothing in particular.
        return program
    found = 0

    def swap(match: re.Match[str]) -> str:
        nonlocal found
        found += 1
        name = swaps[match[0].casefold()]
        quote = program[match.start() - 1 : match.start()]
        return name.replace("\\", "\\\\").replace(quote, "\\" + quote) if quote in ("'", '"') else name

    texts = sorted(swaps, key=len, reverse=True)
    result = re.sub(rf"(?<!\w)(?:{'|'.join(map(re.escape, texts))})(?!\w)", swap, program, flags=re.IGNORECASE)
    return result if found else None


def _outside(question: str, things: Sequence[Mention]) -> list[str]:
    """The numbers of a question that are no part of the things it names."""
    return [found[0] for found in _NUMBER.finditer(question) if not any(one.start <= found.start() < one.end for one in things)]
