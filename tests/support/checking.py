"""Answers held against their own evidence: the replay, the same on two stores, and evidence that
was tampered with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from condgraph import Answer, CondgraphError, Graph
from condgraph.engine.algebra import monotone
from condgraph.engine.check import Checked
from condgraph.engine.execute.searched import nothing
from condgraph.engine.records import Evidence
from tests.support.differential import shown


@dataclass
class Tally:
    """Programs whose answers were checked: how many by kind, and those that did not stand."""

    counts: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[Any, str]] = field(default_factory=list)

    def ask_all(self, graph: Graph, programs: Iterable[Any], **options: Any) -> Tally:
        """Ask many, and check each answer."""
        for program in programs:
            try:
                answer = graph.query(program, **options)
            except CondgraphError:
                self.counts["error"] += 1
                continue
            self.check(answer, program)
        return self

    def check(self, answer: Answer, program: Any) -> None:
        """Check one answer; what rests on there being no more has to say what was looked through."""
        found = answer.check()
        known = monotone(answer.plan) and not nothing(answer.evidence.trail.run.results[id(answer.plan)])
        self.counts["monotone" if known else "other"] += 1
        if not found or (known and not found.monotone) or found.monotone == bool(found.searched):
            self.failed.append((program, str(found)))

    def report(self) -> str:
        """What did not stand, for a message."""
        return "\n".join(f"{program}\n   {found}" for program, found in self.failed[:5])


def all_said(answer: Answer, found: Checked) -> tuple[Any, ...]:
    """All that a check and the evidence say, in an order of its own."""
    evidence = answer.evidence
    return found, Counter(map(shown, evidence)), evidence.entities, evidence.searched


def differences(here: Graph, there: Graph, programs: Iterable[Any], **options: Any) -> list[Any]:
    """The programs that two graphs, which hold the same, do not prove in the same way; counted
    again where they were asked.
    """
    found = []
    for program in programs:
        try:
            one = here.query(program, **options)
        except CondgraphError:
            continue
        two = there.query(program, **options)
        first, second = one.check(full=True), two.check(full=True)
        if not first or not second or all_said(one, first) != all_said(two, second):
            found.append((program, str(first), str(second)))
    return found


def tampered(answer: Answer) -> tuple[int, int, int]:
    """Each statement of the evidence taken out, and put another way: how many of the first the
    check misses, of the second, of all.

    What it misses when it is taken out is redundant: the rest proves the answer.
    """
    own = list(answer.evidence)
    missed = sum(bool(answer.check(own[:at] + own[at + 1 :])) for at in range(len(own)))
    unseen = sum(bool(answer.check([*own[:at], _other(own[at]), *own[at + 1 :]])) for at in range(len(own)))
    return missed, unseen, len(own)


def _other(fact: Evidence) -> Evidence:
    return replace(fact, subject=replace(fact.subject, id=f"{fact.subject.id} too", name=f"{fact.subject.name} too"))
