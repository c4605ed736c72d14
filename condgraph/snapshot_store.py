"""A snapshot as a store (`engine.store`): plans are run, and patterns searched for, in process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from condgraph.engine.answer import Answer
from condgraph.engine.describe import tree
from condgraph.engine.errors import OptionError
from condgraph.engine.execute import Run
from condgraph.engine.execute.run import count
from condgraph.engine.execute.validity import cut
from condgraph.engine.store import Request
from condgraph.languages.pattern.pattern import Pattern, shown
from condgraph.languages.registry import PATTERN, lower
from condgraph.open_plan import quick_answer

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node
    from condgraph.engine.check import KnownIds
    from condgraph.engine.period import Period
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.patterns.distance.near_terms import NearTerms
    from condgraph.patterns.matches import Matches
    from condgraph.vectors.encoders import Encoder


class SnapshotStore:
    """One generation of a graph, in this process."""

    __slots__ = ("snapshot",)

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def answer(self, request: Request) -> Answer:
        """The answer to a program; a pattern is searched for, since it has no plan."""
        if request.language == PATTERN:
            # Names in a pattern need not exist.
            options = {name: value for name, value in request.options.items() if name != "on_unknown"}
            return self.match(request.program, limit=request.limit, **options)
        quick = None
        # Whoever lowers otherwise means another plan, or looks at it.
        if request.limit is None and request.lower is lower:
            whole = partial(self._plainly, request)
            quick = quick_answer(self.snapshot, request.program, request.language, request.options, whole)
        return self._plainly(request) if quick is None else quick

    def quick_answer(self, program: Any, language: str) -> Answer | None:
        """The answer to a program without options by a plan that is ready; None where there is none."""

        def whole() -> Answer:
            return self._plainly(Request(program, language, {}, None, lower))

        return quick_answer(self.snapshot, program, language, {}, whole, ready=True)

    def _plainly(self, request: Request) -> Answer:
        snapshot = self.snapshot
        lowered = request.lowered(snapshot.schema)
        plan, run = lowered.plan, Run(snapshot)
        run.execute(plan, lowered.order)
        run.notes.update(lowered.notes)
        return Answer(
            run, plan, program=request.program, language=request.language, steps=lowered.steps, warnings=lowered.warnings,
            limit=request.limit,
        )  # fmt: skip

    def explain(self, request: Request) -> str:
        """The plan of a program, or the triples of a pattern."""
        if request.language == PATTERN:
            return shown(Pattern.of(request.program))
        lowered = request.lowered(self.snapshot.schema)
        return "\n".join([tree(lowered.plan), *(f"warning: {warning}" for warning in lowered.warnings)])

    def match(self, pattern: Any, *, exact: bool = True, period: Period | None = None, **options: Any) -> Matches:
        """The subgraphs nearest to a pattern. With `exact=False` candidates come from the graph's
        approximate index.
        """
        from condgraph.patterns.match import match

        if period is not None:
            from condgraph.vectors.stored import within_vectors

            part = cut(self.snapshot, period)
            within_vectors(self.snapshot, part)
            return match(part, pattern, **options)
        if exact:
            return match(self.snapshot, pattern, **options)
        terms, index = _near(self.snapshot, options["encoder"], options["k_nodes"])
        return match(self.snapshot, pattern, terms=terms, index=index, **options)

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """How many statements, or entities, each operator gives."""
        return count(self.snapshot, nodes)


def _near(snapshot: Snapshot, encoder: Encoder | str | None, k: int | None) -> tuple[NearTerms, str]:
    """Terms of the candidates that an approximate index finds, and the index by name."""
    from condgraph.patterns.distance.near_terms import CANDIDATES, near_terms
    from condgraph.patterns.distance.terms import TextTerms
    from condgraph.vectors.stored import vectors_of

    vectors = vectors_of(snapshot, encoder)
    if vectors.approximate is None:
        raise OptionError(
            f"the graph has no approximate index by {vectors.about.id!r}",
            hint="make one with graph.index(encoder, faiss=True), or ask with exact=True",
        )
    return near_terms(vectors, TextTerms.of(snapshot, encoder), k or CANDIDATES), vectors.approximate.name
