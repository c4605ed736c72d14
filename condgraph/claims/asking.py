"""What verification asks of a graph, which every store answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node
    from condgraph.engine.answer import Answer
    from condgraph.engine.check import KnownIds
    from condgraph.overview.schema import GraphSchema
    from condgraph.overview.survey import Survey
    from condgraph.patterns.matches import Matches


class Asking(Protocol):
    """A graph as verification sees it: `condgraph.Graph`."""

    timeout: float | None

    def kopl(self, program: Any) -> Answer:
        """`Graph.kopl`."""

    def match(self, pattern: Any, *, k: int | None = 3) -> Matches:
        """`Graph.match`."""

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """`Graph.counted`."""

    def schema(self) -> GraphSchema:
        """`Graph.schema`."""

    def _survey(self) -> Survey: ...
