"""Check answers against their own evidence: replay, comparison of two stores, and evidence that was tampered with."""

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
    """Counts of checked programs by kind, and those whose check failed."""

    counts: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[Any, str]] = field(default_factory=list)

    def ask_all(self, graph: Graph, programs: Iterable[Any], **options: Any) -> Tally:
        """Run programs, and check each answer."""
        for program in programs:
            try:
                answer = graph.query(program, **options)
            except CondgraphError:
                self.counts["error"] += 1
                continue
            self.check(answer, program)
        return self

    def check(self, answer: Answer, program: Any) -> None:
        """Check one answer; an answer that rests on there being no more facts must list what was searched."""
        checked = answer.check()
        is_monotone = monotone(answer.plan) and not nothing(answer.evidence.trail.run.results[id(answer.plan)])
        self.counts["monotone" if is_monotone else "other"] += 1
        if not checked or (is_monotone and not checked.monotone) or checked.monotone == bool(checked.searched):
            self.failed.append((program, str(checked)))

    def report(self) -> str:
        """Return the failed checks, for a message."""
        return "\n".join(f"{program}\n   {failure}" for program, failure in self.failed[:5])


def all_said(answer: Answer, found: Checked) -> tuple[Any, ...]:
    """Return everything that a check and the evidence contain, independent of order."""
    evidence = answer.evidence
    return found, Counter(map(shown, evidence)), evidence.entities, evidence.searched


def differences(here: Graph, there: Graph, programs: Iterable[Any], **options: Any) -> list[Any]:
    """Return the programs that two equal graphs do not prove in the same way; each is run on both graphs and checked in
    full.
    """
    result = []
    for program in programs:
        try:
            answer_here = here.query(program, **options)
        except CondgraphError:
            continue
        answer_there = there.query(program, **options)
        checked_here, checked_there = answer_here.check(full=True), answer_there.check(full=True)
        if not checked_here or not checked_there or all_said(answer_here, checked_here) != all_said(answer_there, checked_there):
            result.append((program, str(checked_here), str(checked_there)))
    return result


def tampered(answer: Answer) -> tuple[int, int, int]:
    """Leave out each statement of the evidence in turn, and replace each in turn; return how many omissions and how
    many replacements the check misses, and the number of statements.

    An omission that it misses is redundant: the remaining statements prove the answer.
    """
    facts = list(answer.evidence)
    missed = sum(bool(answer.check(facts[:i] + facts[i + 1 :])) for i in range(len(facts)))
    unseen = sum(bool(answer.check([*facts[:i], _other(facts[i]), *facts[i + 1 :]])) for i in range(len(facts)))
    return missed, unseen, len(facts)


def _other(fact: Evidence) -> Evidence:
    return replace(fact, subject=replace(fact.subject, id=f"{fact.subject.id} too", name=f"{fact.subject.name} too"))
