"""An answer that a store gave by a query of its own. What else it tells is asked of the store when
it is first looked at, and worked out in process by the engine's own code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.alternatives import followed, following, instead
from condgraph.engine.answer import Answer
from condgraph.engine.bounds import check, kept, within
from condgraph.engine.check import known_ids
from condgraph.engine.errors import DeadlineError
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.execute.evidence import trace_back
from condgraph.engine.row_texts import labels_of_table, labels_plan
from condgraph.engine.store import plan_answer, plan_texts

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node
    from condgraph.engine.execute import Run
    from condgraph.engine.execute.grid import Grid
    from condgraph.engine.lowered import Lowered
    from condgraph.engine.store import QueryStore, Request

#: Seconds in which an empty answer finds out what emptied it, at most half of them for what there is
#: instead; and no more than a quarter of its own timeout.
MOST_EXPLAINING: Final = 30.0


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

    def evidence_of(self, row: int) -> EvidenceList:
        """What one row of a table rests on."""
        return self._evidence_of(self._witness, row)

    def _grid(self) -> Grid:
        return self._local._grid()

    def _labels(self, source: str, column: str, names: Sequence[str]) -> Mapping[str, str]:
        """What rows are shown as: one further query."""
        plan = labels_plan(column, names)
        grid = plan_answer(self._store, plan)._grid()
        return labels_of_table(grid.values(), grid.cell_texts(), names)

    def _counted(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        return self.recounted(nodes, timeout)

    def _emptied(self, values: list[Any]) -> list[str]:
        """Within a part of the time that the answer has: the store is asked for it."""
        try:
            with within(self._explaining):
                return super()._emptied(values)
        except DeadlineError:
            check()
            return [f"what left the answer without values could not be found out within {self._explaining:.3g} s"]

    @property
    def _explaining(self) -> float:
        return MOST_EXPLAINING if self._timeout is None else min(MOST_EXPLAINING, self._timeout / 4)

    def _instead(self) -> str:
        """What the entities have that a predicate was followed from: one query for which they are,
        and some for their predicates.
        """
        nodes = [node for scan in following(self.plan) for node in (scan, *scan.inputs())]
        if not nodes:
            return ""
        try:
            # It is a help, that costs a few more queries.
            with within(self._explaining / 2):
                sizes = {id(node): size for node, size in zip(nodes, self._sizes(nodes), strict=True)}
                scan = followed(self.plan, lambda node: sizes[id(node)])
                return "" if scan is None else f"; {instead(scan, self._asked)}"
        except DeadlineError:
            check()
            return ""

    def _sizes(self, nodes: Sequence[Node]) -> list[int]:
        """How many results operators of the plan have; of those that the client works out, here."""
        found = self._store.sizes(nodes)
        return [len(self._witness.outcome(node)) if size is None else size[0] for node, size in zip(nodes, found, strict=True)]  # type: ignore[arg-type]

    def _asked(self, plan: Node) -> Sequence[str]:
        """The texts of another plan on the same store."""
        return plan_texts(self._store, plan)

    def recounted(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        """How many statements, or entities, each operator gives on the store."""
        with within(timeout):
            return self._store.counted(nodes, known_ids(self._witness))
