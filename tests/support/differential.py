"""One program on two equal graphs: are the results the same?

Everything that a user gets is compared: values with their types and as printed, texts and entities, or the complete
error. Warnings and evidence are compared only on request, since a server then needs further queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from condgraph import CondgraphError, Graph
from condgraph.engine.answer import Evidence


@dataclass(frozen=True)
class Outcome:
    """The result of a program: `values` (as printed), `texts` and `entities` of the answer, or the `error`."""

    values: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    entities: tuple[Any, ...] = ()
    error: str = ""
    warnings: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.error:
            return self.error
        counts = f"{len(self.values)} values, {len(self.texts)} texts, {len(self.entities)} entities"
        return f"{counts}: {list(self.values)[:8]} {list(self.texts)[:8]} {list(self.entities[:8])} {self.warnings}"


def outcome(graph: Graph, program: Any, *, warnings: bool = False, evidence: bool = False, **options: Any) -> Outcome:
    """Return the result of a program: the answer, or the error with its position, nearest names and hint."""
    try:
        answer = graph.query(program, **options)
        return Outcome(
            tuple(map(repr, answer.values)),
            tuple(answer.texts),
            tuple(map(repr, answer.entities)),
            warnings=tuple(sorted(set(answer.warnings))) if warnings else (),
            evidence=tuple(map(shown, answer.evidence)) if evidence else (),
        )
    except CondgraphError as error:
        return Outcome(error=full_message(error))


def full_message(error: CondgraphError) -> str:
    """Return all parts of an error as one text."""
    # Only the store in process knows which attribute has a text.
    hint = None if error.hint is not None and error.hint.startswith("it is a value of ") else error.hint
    parts = [f"{type(error).__name__}[{error.code}]", error.message, error.span, error.candidates, hint]
    return " | ".join(str(part) for part in parts if part)


def shown(evidence: Evidence) -> str:
    """Return evidence as text: ids, qualifiers as a set, all places."""

    def value_text(value: Any) -> str:
        return f"{value.id}={value.name}" if hasattr(value, "id") else repr(value)

    qualifiers = sorted(f"{key}: {value_text(value)}" for key, value in evidence.qualifiers)
    places = sorted((source.name, source.location, row) for source, row in evidence.sources)
    return f"{value_text(evidence.subject)} | {evidence.predicate} | {value_text(evidence.object)} | {qualifiers} | {places}"


@dataclass
class Comparison:
    """The results of programs on two graphs: how many were equal, which differed, which typed errors both gave."""

    here: Graph
    there: Graph
    equal: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    different: list[tuple[Any, Outcome, Outcome]] = field(default_factory=list)

    def ask(self, program: Any, **options: Any) -> bool:
        """Run a program on both graphs; return whether the results are the same."""
        here, there = outcome(self.here, program, **options), outcome(self.there, program, **options)
        if here == there:
            self.equal += 1
            if here.error:
                self.errors[here.error.partition("[")[0]] += 1
            return True
        self.different.append((program, here, there))
        return False

    def ask_all(self, programs: Iterable[Any], **options: Any) -> Comparison:
        for program in programs:
            self.ask(program, **options)
        return self

    def report(self, most: int = 5) -> str:
        """Return the differences, for a message."""
        lines = [f"{self.equal} equal ({dict(self.errors)}), {len(self.different)} different"]
        for program, here, there in self.different[:most]:
            lines.append(f"{program}\n   here:  {here}\n   there: {there}")
        return "\n".join(lines)
