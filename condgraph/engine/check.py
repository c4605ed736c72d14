"""Checks an answer: its plan is run again on a graph made of its evidence alone, and must give the
same answer.

The plan is run, not the program's text: names were resolved against the whole graph, and mean the
same few entities here only by what they were resolved to. Where an answer rests on there being no
more, the evidence proves its positive part, and `searched` says what was looked through; that is
counted again on request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.bounds import watched, within
from condgraph.engine.describe import describe
from condgraph.engine.errors import CondgraphError, InterruptedQueryError, numbered
from condgraph.engine.evidence import EvidenceList, Searched, counted, items
from condgraph.engine.execute.run import Run
from condgraph.engine.execute.sets import Bag
from condgraph.engine.facts import Entity, Item, Source
from condgraph.engine.records import Evidence
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import collapse, text_of

#: The most lines of a kind that a result shows.
_SHOWN: Final = 10
#: The ids of a set of entities that the answer worked out.
KnownIds = Callable[[alg.Entities], Sequence[str]]


class Counting(Protocol):
    """A graph that counts what operators give."""

    def counted(self, nodes: Sequence[Node], known: KnownIds, timeout: float | None = None) -> list[int]:
        """How many statements, or entities, each operator gives; `known` has the ids of sets that
        the store cannot work out.
        """


class Answered(Protocol):
    """What a check takes of an answer (`answer.Answer`)."""

    @property
    def plan(self) -> Node:
        """What was run."""

    @property
    def evidence(self) -> EvidenceList:
        """What the answer rests on."""

    @property
    def values(self) -> list[Any]:
        """Typed values in the fixed order."""

    @property
    def plain_texts(self) -> list[str]:
        """The values as distinct strings, rows by their names."""

    @property
    def entities(self) -> list[Entity]:
        """The entities of the answer."""

    @property
    def cut(self) -> int:
        """How many values a limit left out."""

    def ready(self, timeout: float | None = None) -> None:
        """Have what the evidence is made of at hand."""

    def replayed(self, run: Run) -> Answered:
        """The same answer from another execution of its plan."""

    def recounted(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        """How many each operator gives, counted again on the store that answered."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of an answer found; true where the answer stands.

    `missing` is what the answer has and the evidence does not give, after the operator that lacks
    something first; `differing` what it gives instead, or what is no evidence of this answer;
    `changed` what was counted again (`verified`) and is not as it was. `monotone` says that the
    `statements` alone prove the answer; else it rests on what was `searched` as well. `notes` are
    what a reader should know: values that a limit cut, statements that were left out and not
    needed.
    """

    ok: bool
    monotone: bool
    statements: int
    missing: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    searched: tuple[Searched, ...] = ()
    verified: bool = False
    changed: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        count = f"{self.statements} statement{'' if self.statements == 1 else 's'}"
        if not self.ok:
            head = f"the evidence ({count}) does not give the answer"
        elif self.monotone:
            head = f"proved: the answer follows from its {count} of evidence alone"
        else:
            head = f"the answer follows from its {count} of evidence, if what was looked through holds no more"
        lines = [head]
        for label, found in (("missing", self.missing), ("differs", self.differing), ("changed", self.changed)):
            lines.extend(f"{label}: {line}" for line in found[:_SHOWN])
            lines.extend([f"{label}: and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else [])
        again = "counted again" if self.verified else "looked through"
        lines.extend(f"{again}: {one}" for one in self.searched)
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def check(
    answer: Answered,
    evidence: Sequence[Evidence] | None = None,
    *,
    full: bool = False,
    graph: Counting | None = None,
    timeout: float | None = None,
) -> Checked:
    """Run the plan of an answer on its evidence, or on `evidence` instead, and compare; see
    `Answer.check`.
    """
    with within(timeout):
        return _check(answer, evidence, full, graph)


def _check(answer: Answered, evidence: Sequence[Evidence] | None, full: bool, graph: Counting | None) -> Checked:
    answer.ready()
    own = answer.evidence
    given: Sequence[Evidence] = own if evidence is None else evidence
    missing, differing, notes = list[str](), list[str](), list[str]()
    if evidence is not None and evidence is not own:
        foreign, lacking = _apart(given, own)
        differing.extend(f"no evidence of this answer: {fact}" for fact in foreign)
        if lacking:
            notes.append(f"{lacking} of the {len(own)} statements of the answer's evidence are not among these")
    try:
        run = replay(answer, given, own)
    except InterruptedQueryError:
        raise
    except CondgraphError as error:
        missing.append(str(error))
    else:
        here, there = shown(answer), shown(answer.replayed(run))
        if here != there:
            lost, gained = _difference(here, there)
            missing.extend([*_lacking(own, run), *lost])
            differing.extend(gained)
    if (cut := answer.cut) > 0:
        values = numbered(cut, "more value of the answer is", "more values of the answer are")
        notes.append(f"{values} not shown; the evidence is that of all")
    if any(isinstance(node, alg.External) for node in own.trail.run.order):
        notes.append("what a function from outside gave is taken as it was given")
    searched, changed = own.search(), list[str]()
    if (full or graph is not None) and own.looks:
        counter = answer.recounted if graph is None else partial(_elsewhere, answer, graph)
        again = counted(own.looks, counter)
        changed = [f"{now}, not {then.number}" for then, now in zip(searched, again, strict=True) if now != then]
    return Checked(
        not (missing or differing or changed),
        own.monotone,
        len(given),
        tuple(missing),
        tuple(differing),
        searched,
        full or graph is not None,
        tuple(changed),
        tuple(notes),
    )


def _elsewhere(answer: Answered, graph: Counting, nodes: Sequence[Node], timeout: float | None) -> list[int]:
    return graph.counted(nodes, known_ids(answer.evidence.trail.run), timeout)


def known_ids(run: Run) -> KnownIds:
    """The ids of the sets of entities that an execution worked out."""

    def known(node: alg.Entities) -> list[str]:
        return run.snapshot.texts.take(run.snapshot.entity_id.take(run.entities(node)))

    return known


def built(found: Iterable[Item]) -> Snapshot:
    """A graph of items."""
    builder = Builder()
    builder.begin(Source(""))
    builder.add(watched(found))
    return Snapshot.of(*lay_out(builder))


def replay(answer: Answered, given: Sequence[Evidence], own: EvidenceList) -> Run:
    """The plan of an answer, run on a graph of the evidence alone."""
    first = own.trail.run
    run = Run(built(own.items() if given is own else items(given, (*own.entities, *own.rows), own.sources)))
    for node in first.order:
        if isinstance(node, alg.External):
            # Nobody is asked again.
            from condgraph.engine.execute.apply import given as values

            run.results[id(node)] = values(run, first.values(node).values())
    run.execute(answer.plan)
    return run


# -- comparing -------------------------------------------------------------------------------------


def shown(answer: Answered) -> tuple[list[Any], list[str], list[Any]]:
    """What a user gets: values with their types, texts, entities."""
    return (
        [(type(value).__name__, _plain(value)) for value in answer.values],
        # Which of several texts of one value is shown depends on the order of the statements.
        list(map(collapse, answer.plain_texts)),
        [_plain(entity) for entity in answer.entities],
    )


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        # A row of a table, or what a cell of it lists.
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return ("map", *((key, _plain(item)) for key, item in sorted(value.items())))
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return (value.id, value.name) if isinstance(value, Entity) else value


def _difference(here: tuple[list[Any], ...], there: tuple[list[Any], ...]) -> tuple[list[str], list[str]]:
    """What the one has and the other lacks, in words, both ways."""
    found: tuple[list[str], list[str]] = ([], [])
    for what, one, two in zip(("value", "text", "entity"), here, there, strict=True):
        # A text differs where its value does, unless only the raw text is another one.
        if what == "text" and (found[0] or found[1]):
            continue
        for into, left, right in ((found[0], one, two), (found[1], two, one)):
            into.extend(f"{what} {_words(part)}" for part in (Counter(left) - Counter(right)).elements())
    if not found[0] and not found[1]:
        found[1].append("the same values in another order")
    return found


def _words(part: Any) -> str:
    value = part[1] if isinstance(part, tuple) and len(part) == 2 else part
    if part == ():
        return "[]"
    if isinstance(part, tuple) and part[0] == "tuple":
        return " | ".join("" if one is None else _words(one) for one in value)
    if isinstance(part, tuple) and isinstance(value, str):
        return f"{value} ({part[0]})" if part[0] != "str" else value
    if isinstance(value, tuple):
        if len(value) == 2 and all(isinstance(item, str) for item in value):
            return f"{value[1]} ({value[0]})"
        return ", ".join("" if item is None else _words(item) for item in value)
    return value if isinstance(value, str) else text_of(value)


def _apart(given: Sequence[Evidence], own: Sequence[Evidence]) -> tuple[list[Evidence], int]:
    """What is no evidence of the answer, and how much of that is missing."""
    left = Counter(map(repr, own))
    foreign = []
    for fact in watched(given):
        if left[repr(fact)] > 0:
            left[repr(fact)] -= 1
        else:
            foreign.append(fact)
    return foreign, sum(left.values())


def _lacking(own: EvidenceList, run: Run) -> list[str]:
    """The first operator that does not give what the answer wants of it, and what it lacks."""
    first = own.trail.run
    for node in first.order:
        demand = own.trail.demands.get(id(node))
        found = run.results.get(id(node))
        if demand is None or found is None:
            continue
        lacking: list[str] = []
        if isinstance(node, alg.Entities):
            idents = first.snapshot.texts.take(first.snapshot.entity_id.take(demand.entities))
            there = set(run.snapshot.texts.take(run.snapshot.entity_id.take(found)))
            names = first.snapshot.texts.take(first.snapshot.entity_name.take(demand.entities))
            lacking = [f"{name} ({ident})" for name, ident in zip(names, idents, strict=True) if ident not in there]
        elif isinstance(node, alg.Facts):
            lacking = _lacking_facts(first, demand.statements, run, found.all())
        elif isinstance(found, Bag) and len(found) < len(first.values(node)) and not len(found):  # type: ignore[arg-type]
            lacking = ["every value"]
        if lacking:
            more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
            return [f"{describe(node)} does not give {', '.join(lacking[:_SHOWN])}{more}"]
    return []


def _lacking_facts(first: Run, wanted: Any, run: Run, found: Any) -> list[str]:
    """Statements that are wanted and not found, as text without their sources."""

    def texts(one: Run, numbers: Any) -> list[str]:
        whole = EvidenceList.of(one.snapshot, np.asarray(numbers).tolist(), [])
        return [str(fact).rpartition("  [")[0] for fact in whole]

    return list((Counter(texts(first, wanted)) - Counter(texts(run, found))).elements())
