"""An answer that a store gave by a query of its own. What else it tells is asked of the store when
it is first looked at, and worked out in process by the engine's own code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from condgraph.engine.answer import Answer
from condgraph.engine.bounds import kept, within
from condgraph.engine.check import known_ids
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.execute.evidence import trace_back

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node
    from condgraph.engine.execute import Run
    from condgraph.engine.lowered import Lowered
    from condgraph.engine.store import QueryStore, Request


class StoredAnswer(Answer):
    """The answer to one program, from a store that is no snapshot.

    The statements that it rests on are one further query, for evidence, checks, and what only the
    client works out.
    """

    def __init__(self, store: QueryStore, request: Request, lowered: Lowered) -> None:
        nothing: Any = None
        super().__init__(
            nothing, lowered.plan, program=request.program, language=request.language, steps=lowered.steps,
            warnings=lowered.warnings, limit=request.limit,
        )  # fmt: skip
        self._store, self._notes = store, lowered.notes

    @kept
    def _witness(self) -> Run:
        """The plan run in process on the statements it rests on."""
        return self._store.witness(self.plan)

    @kept
    def _local(self) -> Answer:
        """The answer from these."""
        return self.replayed(self._witness)

    def ready(self, timeout: float | None = None) -> None:
        """Fetch the statements that the answer rests on, within so many seconds."""
        with within(timeout):
            self._witness  # noqa: B018 - it is kept

    @kept
    def evidence(self) -> EvidenceList:
        """What the answer rests on: one further query, and one for what was looked through."""
        return EvidenceList(trace_back(self._witness, self.plan), self.plan, self._counted)

    def _counted(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        return self.recounted(nodes, timeout)

    def recounted(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        """How many statements, or entities, each operator gives on the store."""
        with within(timeout):
            return self._store.counted(nodes, known_ids(self._witness))
