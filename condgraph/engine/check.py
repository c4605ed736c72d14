"""Check an answer: its plan is run again on a graph made of its evidence alone, and must give the same answer.

The plan is run, not the program's text: names were resolved against the whole graph, and could mean other entities in
the small one. If an answer depends on there being no more, the evidence proves its positive part, and `searched`
lists what was searched; that is counted again on request.
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

#: The largest number of lines of a kind that a result prints.
_SHOWN: Final = 10
#: Returns the ids of a set of entities that the answer computed.
KnownIds = Callable[[alg.Entities], Sequence[str]]


class Counting(Protocol):
    """A graph that can count the results of operators."""

    def counted(self, nodes: Sequence[Node], known: KnownIds, timeout: float | None = None) -> list[int]:
        """Return the number of statements or entities of each operator; `known` returns the ids of sets that the
        store cannot compute.
        """


class Answered(Protocol):
    """The parts of an answer (`answer.Answer`) that a check uses."""

    @property
    def plan(self) -> Node:
        """The plan that was run."""

    @property
    def evidence(self) -> EvidenceList:
        """The evidence of the answer."""

    @property
    def values(self) -> list[Any]:
        """The typed values in the fixed order."""

    @property
    def plain_texts(self) -> list[str]:
        """The values as distinct strings, rows by name."""

    @property
    def entities(self) -> list[Entity]:
        """The entities of the answer."""

    @property
    def cut(self) -> int:
        """The number of values that a limit cut off."""

    def ready(self, timeout: float | None = None) -> None:
        """Fetch the data of the evidence."""

    def replayed(self, run: Run) -> Answered:
        """Return the same answer from another execution of its plan."""

    def recounted(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        """Count the results of each operator again, on the store that answered."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check; true if the answer holds.

    `missing` is what the answer has and the evidence does not give, after the first operator that lacks something;
    `differing` what it gives instead, or what is not evidence of this answer; `changed` what was counted again
    (`verified`) and has changed. `monotone`: the `statements` alone prove the answer; else it also depends on what
    was `searched`. `notes` are for the reader: values that a limit cut, statements that were missing and not needed.
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
        for label, messages in (("missing", self.missing), ("differs", self.differing), ("changed", self.changed)):
            lines.extend(f"{label}: {line}" for line in messages[:_SHOWN])
            lines.extend([f"{label}: and {len(messages) - _SHOWN} more"] if len(messages) > _SHOWN else [])
        again = "counted again" if self.verified else "looked through"
        lines.extend(f"{again}: {search}" for search in self.searched)
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def check(
    answer: Answered,
    evidence: Sequence[Evidence] | None = None,
    *,
    full: bool = False,
    graph: Counting | None = None,
    timeout: float | None = None,
) -> Checked:
    """Run the plan of an answer on its evidence, or on `evidence` instead, and compare; see `Answer.check`."""
    with within(timeout):
        return _check(answer, evidence, full, graph)


def _check(answer: Answered, evidence: Sequence[Evidence] | None, full: bool, graph: Counting | None) -> Checked:
    answer.ready()
    own = answer.evidence
    records: Sequence[Evidence] = own if evidence is None else evidence
    missing, differing, notes = list[str](), list[str](), list[str]()
    if evidence is not None and evidence is not own:
        foreign, lacking = _differences(records, own)
        differing.extend(f"no evidence of this answer: {fact}" for fact in foreign)
        if lacking:
            notes.append(f"{lacking} of the {len(own)} statements of the answer's evidence are not among these")
    try:
        run = replay(answer, records, own)
    except InterruptedQueryError:
        raise
    except CondgraphError as error:
        missing.append(str(error))
    else:
        expected, actual = shown(answer), shown(answer.replayed(run))
        if expected != actual:
            lost_items, gained = _difference(expected, actual)
            missing.extend([*_lacking(own, run), *lost_items])
            differing.extend(gained)
    if (cut := answer.cut) > 0:
        values = numbered(cut, "more value of the answer is", "more values of the answer are")
        notes.append(f"{values} not shown; the evidence is that of all")
    if any(isinstance(node, alg.External) for node in own.trail.run.order):
        notes.append("results of external functions are taken as they are")
    searched, changed = own.search(), list[str]()
    if (full or graph is not None) and own.looks:
        counter = answer.recounted if graph is None else partial(_elsewhere, answer, graph)
        recounts = counted(own.looks, counter)
        changed = [
            f"{new_count}, not {old_count.number}"
            for old_count, new_count in zip(searched, recounts, strict=True)
            if new_count != old_count
        ]
    return Checked(
        not (missing or differing or changed),
        own.monotone,
        len(records),
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
    """Return a function for the ids of the sets of entities that an execution computed."""

    def known(node: alg.Entities) -> list[str]:
        return run.snapshot.texts.take(run.snapshot.entity_id.take(run.entities(node)))

    return known


def built(found: Iterable[Item]) -> Snapshot:
    """Build a graph from items."""
    builder = Builder()
    builder.begin(Source(""))
    builder.add(watched(found))
    return Snapshot.of(*lay_out(builder))


def replay(answer: Answered, given: Sequence[Evidence], own: EvidenceList) -> Run:
    """Run the plan of an answer on a graph of the evidence alone."""
    first = own.trail.run
    run = Run(built(own.items() if given is own else items(given, (*own.entities, *own.rows), own.sources)))
    for node in first.order:
        if isinstance(node, alg.External):
            # External functions are not called again.
            run.results[id(node)] = Bag.given(run, first.values(node).values())
    run.execute(answer.plan)
    return run


# -- comparing -------------------------------------------------------------------------------------


def shown(answer: Answered) -> tuple[list[Any], list[str], list[Any]]:
    """Return what a user sees: values with their types, texts, entities."""
    return (
        [(type(value).__name__, _comparable(value)) for value in answer.values],
        # Which of several texts of a value is displayed depends on the order of statements.
        list(map(collapse, answer.plain_texts)),
        [_comparable(entity) for entity in answer.entities],
    )


def _comparable(value: Any) -> Any:
    if isinstance(value, tuple):
        # A row of a table, or what a cell of it lists.
        return tuple(map(_comparable, value))
    if isinstance(value, dict):
        return ("map", *((key, _comparable(item)) for key, item in sorted(value.items())))
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    return (value.id, value.name) if isinstance(value, Entity) else value


def _difference(here: tuple[list[Any], ...], there: tuple[list[Any], ...]) -> tuple[list[str], list[str]]:
    """Return what each side has and the other lacks, in words."""
    differences: tuple[list[str], list[str]] = ([], [])
    for noun, left_items, right_items in zip(("value", "text", "entity"), here, there, strict=True):
        # A text differs where its value does, unless only the raw text is another one.
        if noun == "text" and (differences[0] or differences[1]):
            continue
        for target, left, right in ((differences[0], left_items, right_items), (differences[1], right_items, left_items)):
            target.extend(f"{noun} {_words(part)}" for part in (Counter(left) - Counter(right)).elements())
    if not differences[0] and not differences[1]:
        differences[1].append("the same values in another order")
    return differences


def _words(part: Any) -> str:
    value = part[1] if isinstance(part, tuple) and len(part) == 2 else part
    if part == ():
        return "[]"
    if isinstance(part, tuple) and part[0] == "tuple":
        return " | ".join("" if item is None else _words(item) for item in value)
    if isinstance(part, tuple) and isinstance(value, str):
        return f"{value} ({part[0]})" if part[0] != "str" else value
    if isinstance(value, tuple):
        if len(value) == 2 and all(isinstance(item, str) for item in value):
            return f"{value[1]} ({value[0]})"
        return ", ".join("" if item is None else _words(item) for item in value)
    return value if isinstance(value, str) else text_of(value)


def _differences(given: Sequence[Evidence], own: Sequence[Evidence]) -> tuple[list[Evidence], int]:
    """Return the records that are not evidence of the answer, and the number of its evidence that is missing."""
    remaining = Counter(map(repr, own))
    foreign = []
    for fact in watched(given):
        if remaining[repr(fact)] > 0:
            remaining[repr(fact)] -= 1
        else:
            foreign.append(fact)
    return foreign, sum(remaining.values())


def _lacking(own: EvidenceList, run: Run) -> list[str]:
    """Return the first operator that lacks part of what is wanted of it, and what it lacks."""
    first = own.trail.run
    for node in first.order:
        demand = own.trail.demands.get(id(node))
        result = run.results.get(id(node))
        if demand is None or result is None:
            continue
        lacking: list[str] = []
        if isinstance(node, alg.Entities):
            ids = first.snapshot.texts.take(first.snapshot.entity_id.take(demand.entities))
            present = set(run.snapshot.texts.take(run.snapshot.entity_id.take(result)))
            names = first.snapshot.texts.take(first.snapshot.entity_name.take(demand.entities))
            lacking = [f"{name} ({ident})" for name, ident in zip(names, ids, strict=True) if ident not in present]
        elif isinstance(node, alg.Facts):
            lacking = _lacking_facts(first, demand.statements, run, result.all())
        elif isinstance(result, Bag) and len(result) < len(first.values(node)) and not len(result):  # type: ignore[arg-type]
            lacking = ["every value"]
        if lacking:
            more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
            return [f"{describe(node)} does not give {', '.join(lacking[:_SHOWN])}{more}"]
    return []


def _lacking_facts(first: Run, wanted: Any, run: Run, found: Any) -> list[str]:
    """Return statements that are wanted and missing, as text without their sources."""

    def texts(one: Run, numbers: Any) -> list[str]:
        evidence = EvidenceList.of(one.snapshot, np.asarray(numbers).tolist(), [])
        return [str(fact).rpartition("  [")[0] for fact in evidence]

    return list((Counter(texts(first, wanted)) - Counter(texts(run, found))).elements())
