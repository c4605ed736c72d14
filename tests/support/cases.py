"""Random graphs with programs over them, wrong ones among them: what every store is asked and the
snapshot beside it.

A case comes from a number, so that it can be had again. One graph is asked many programs, since
loading is the most of what a server does for it. Of every three graphs one has everything KoPL can
ask for, one a table and facts in time, one what is ugly.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import condgraph
from condgraph import Graph
from condgraph.engine.facts import Entity, Sourced
from tests.support import graphs, llm_programs, programs, table_programs, ugly
from tests.support.differential import Outcome, outcome
from tests.support.graphs import Dice, Pick
from tests.support.lanes import by_lane

#: Programs asked of one graph.
PROGRAMS: Final = 50
#: Programs with a table beside them.
TABLES: Final = 20
#: Graphs a store is tried with: 400 programs where everything is asked for (100 where a server is slow), 2,100 in the whole run.
GRAPHS: Final = by_lane(4, 8, 42)


@dataclass(frozen=True)
class Case:
    """A graph, and programs with the options they are asked with."""

    number: int
    items: list[Any]
    asked: list[tuple[Any, dict[str, Any]]]

    @property
    def local(self) -> Graph:
        """The graph in memory."""
        found = condgraph.open()
        found.add(self.items)
        return found


def case(number: int) -> Case:
    """The case of a number."""
    dice = Dice(number)
    kind = _KINDS[number % len(_KINDS)]
    items, ask = kind(dice)
    asked = [(ask(), options(dice)) for _ in range(PROGRAMS)]
    for _ in range(TABLES):
        # Those that end on entities, which tables are made of, are about a half.
        program, table = table_programs.on_top(dice, ask(), _NAMES[kind])
        asked.append((program, options(dice) | table))
    return Case(number, items, asked)


def options(pick: Pick) -> dict[str, Any]:
    """How a program is asked."""
    found: dict[str, Any] = {}
    if pick.below(2):
        found["on_unknown"] = "empty"
    if pick.below(5) == 0:
        found["limit"] = 1 + pick.below(3)
    return found


def _plain(dice: Pick) -> tuple[list[Any], Callable[[], Any]]:
    return graphs.graph(dice), lambda: _form(dice, programs.program(dice))


def _tables(dice: Pick) -> tuple[list[Any], Callable[[], Any]]:
    items, tables = llm_programs.graph(dice)
    return items, lambda: llm_programs.program(dice, tables=tables)


def _ugly(dice: Pick) -> tuple[list[Any], Callable[[], Any]]:
    items, tables = ugly.graph(dice)
    found = [item.item if isinstance(item, Sourced) else item for item in items]
    # Most names are names of the graph, so that programs find something.
    names = [one.name for one in found if isinstance(one, Entity)] * 3 + list(ugly.NAMES[::3])
    words = replace(ugly.WORDS, names=names)
    asked = replace(ugly.VOCABULARY, heads=(ugly.VOCABULARY.heads[0], names))

    def ask() -> Any:
        if tables is True or dice.below(2):
            return llm_programs.program(dice, tables=tables, words=asked)
        return _form(dice, programs.program(dice, words=words))

    return items, ask


_KINDS: Final = (_plain, _ugly, _tables, _ugly)
#: What tables are made of, by the kind of graph.
_NAMES: Final = {
    _plain: table_programs.Names(programs.PLAIN.attributes, programs.PLAIN.relations, programs.PLAIN.qualifiers),
    _tables: table_programs.Names((*llm_programs.COLUMNS, "city", "age"), llm_programs.RELATIONS[:2], llm_programs.KEYS),
    _ugly: table_programs.Names(ugly.WORDS.attributes, ugly.WORDS.relations, ugly.WORDS.qualifiers),
}


def _form(dice: Pick, steps: Any) -> Any:
    """A program in one of its written forms: as a text its errors have a place."""
    return programs.as_text(steps) if dice.below(2) else programs.as_json(steps)


@dataclass(frozen=True)
class Difference:
    """A program that two stores answer otherwise."""

    case: int
    program: Any
    options: dict[str, Any]
    here: Outcome
    there: Outcome

    def __str__(self) -> str:
        return f"case {self.case}: {self.program!r} {self.options}\n   here:  {self.here}\n   there: {self.there}"


def differences(given: Case, here: Graph, there: Graph, *, warnings: bool = True, **more: Any) -> Iterator[Difference]:
    """The programs of a case that two graphs with its items answer otherwise; `more` options go to
    the second. One empty answer may be without its explanation there, where a busy server did not give
    it in time.
    """
    unexplained = 0
    for program, asked in given.asked:
        left, right = _said(here, program, warnings, asked), _said(there, program, warnings, asked | more)
        if any(warning.startswith(_UNFINISHED) for warning in right.warnings):
            unexplained += 1
            if unexplained == 1:
                left, right = _unexplained(left), _unexplained(right)
        if left != right or left.error.startswith(_CRASH):
            yield Difference(given.number, program, asked, left, right)


_CRASH: Final = "no typed error"
_UNFINISHED: Final = "what left the answer without values could not be found out within"


def _unexplained(outcome: Outcome) -> Outcome:
    """What a graph says, without why the answer is empty."""
    kept = [one for one in outcome.warnings if not one.startswith((_UNFINISHED, "the answer is empty"))]
    return replace(outcome, warnings=tuple(kept))


def _said(graph: Graph, program: Any, warnings: bool, asked: dict[str, Any]) -> Outcome:
    try:
        return outcome(graph, program, warnings=warnings, **asked)
    except Exception as error:  # noqa: BLE001 - whatever is no typed error is a finding
        at = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(error=f"{_CRASH}: {type(error).__name__}: {error} ({at.filename}:{at.lineno})")
