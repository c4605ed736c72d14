"""Random graphs with programs over them, including wrong ones, to compare every store with the snapshot.

A case is determined by its number, so it can be repeated. Each graph gets many programs, since loading takes a server
the most time. Of every four graphs, one has everything that KoPL can ask for, one has a table and facts in time, and
two have untidy data.
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

#: Programs for one graph.
PROGRAMS: Final = 50
#: Further programs for it, with a table clause.
TABLES: Final = 20
#: The number of graphs for a store: in the gate, in the nightly run, and with whole data sets.
GRAPHS: Final = by_lane(4, 8, 42)


@dataclass(frozen=True)
class Case:
    """A graph, and programs with their options."""

    number: int
    items: list[Any]
    asked: list[tuple[Any, dict[str, Any]]]

    @property
    def local(self) -> Graph:
        """The graph in memory."""
        graph = condgraph.open()
        graph.add(self.items)
        return graph


def case(number: int) -> Case:
    """Return the case with a number."""
    dice = Dice(number)
    kind = _KINDS[number % len(_KINDS)]
    items, ask = kind(dice)
    asked = [(ask(), options(dice)) for _ in range(PROGRAMS)]
    for _ in range(TABLES):
        # About half of the programs end on entities, which tables need.
        program, table = table_programs.on_top(dice, ask(), _NAMES[kind])
        asked.append((program, options(dice) | table))
    return Case(number, items, asked)


def options(pick: Pick) -> dict[str, Any]:
    """Return random options of a query."""
    result: dict[str, Any] = {}
    if pick.below(2):
        result["on_unknown"] = "empty"
    if pick.below(5) == 0:
        result["limit"] = 1 + pick.below(3)
    return result


def _plain(dice: Pick) -> tuple[list[Any], Callable[[], Any]]:
    return graphs.graph(dice), lambda: _form(dice, programs.program(dice))


def _tables(dice: Pick) -> tuple[list[Any], Callable[[], Any]]:
    items, tables = llm_programs.graph(dice)
    return items, lambda: llm_programs.program(dice, tables=tables)


def _ugly(dice: Pick) -> tuple[list[Any], Callable[[], Any]]:
    items, tables = ugly.graph(dice)
    stated = [item.item if isinstance(item, Sourced) else item for item in items]
    # Most names are from the graph, so that programs find something.
    names = [item.name for item in stated if isinstance(item, Entity)] * 3 + list(ugly.NAMES[::3])
    words = replace(ugly.WORDS, names=names)
    vocabulary = replace(ugly.VOCABULARY, heads=(ugly.VOCABULARY.heads[0], names))

    def ask() -> Any:
        if tables is True or dice.below(2):
            return llm_programs.program(dice, tables=tables, words=vocabulary)
        return _form(dice, programs.program(dice, words=words))

    return items, ask


_KINDS: Final = (_plain, _ugly, _tables, _ugly)
#: The names for table clauses, by kind of graph.
_NAMES: Final = {
    _plain: table_programs.Names(programs.PLAIN.attributes, programs.PLAIN.relations, programs.PLAIN.qualifiers),
    _tables: table_programs.Names((*llm_programs.COLUMNS, "city", "age"), llm_programs.RELATIONS[:2], llm_programs.KEYS),
    _ugly: table_programs.Names(ugly.WORDS.attributes, ugly.WORDS.relations, ugly.WORDS.qualifiers),
}


def _form(dice: Pick, steps: Any) -> Any:
    """Write a program as text, where errors have a position, or as JSON."""
    return programs.as_text(steps) if dice.below(2) else programs.as_json(steps)


@dataclass(frozen=True)
class Difference:
    """A program with different outcomes on two stores."""

    case: int
    program: Any
    options: dict[str, Any]
    here: Outcome
    there: Outcome

    def __str__(self) -> str:
        return f"case {self.case}: {self.program!r} {self.options}\n   here:  {self.here}\n   there: {self.there}"


def differences(given: Case, here: Graph, there: Graph, *, warnings: bool = True, **more: Any) -> Iterator[Difference]:
    """Yield the programs of a case with different outcomes on two graphs that hold its items; `more` options go to the
    second. One empty answer there may lack its explanation, which a busy server may not give in time.
    """
    unexplained = 0
    for program, asked in given.asked:
        left, right = _said(here, program, warnings, asked), _said(there, program, warnings, asked | more)
        if any(_UNFINISHED in warning for warning in right.warnings):
            unexplained += 1
            if unexplained == 1:
                left, right = _unexplained(left), _unexplained(right)
        if left != right or left.error.startswith(_CRASH):
            yield Difference(given.number, program, asked, left, right)


_CRASH: Final = "no typed error"
_UNFINISHED: Final = "the time for explaining was over"


def _unexplained(outcome: Outcome) -> Outcome:
    """Drop the explanation of an empty answer from an outcome."""
    warnings = [
        warning for warning in outcome.warnings if not warning.startswith("the answer is empty") and _UNFINISHED not in warning
    ]
    return replace(outcome, warnings=tuple(warnings))


def _said(graph: Graph, program: Any, warnings: bool, asked: dict[str, Any]) -> Outcome:
    try:
        return outcome(graph, program, warnings=warnings, **asked)
    except Exception as error:  # noqa: BLE001 - whatever is no typed error is a finding
        at = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(error=f"{_CRASH}: {type(error).__name__}: {error} ({at.filename}:{at.lineno})")
