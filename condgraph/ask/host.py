"""What asking needs of a graph: `Graph` has it, on every store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from condgraph.ask.records import Asked
    from condgraph.engine.answer import Answer
    from condgraph.engine.store import Store
    from condgraph.overview.survey import Survey


class Host(Protocol):
    """A graph that is asked in words."""

    place: str
    read_only: bool
    timeout: float | None
    _directory: Path | None

    @property
    def demos(self) -> Any:
        """Its demonstrations (`ask.demos.Demos`)."""
        ...

    def ask(self, question: str, llm: Any, **options: Any) -> Asked:
        """As `Graph.ask`."""
        ...

    def query(self, program: Any, *, language: str | None = None, **options: Any) -> Answer:
        """As `Graph.query`."""
        ...

    def match(
        self,
        pattern: Any,
        *,
        k: int | None = 3,
        group_by: Any = None,
        stretch: bool = False,
        leave_out: bool = False,
        limit: int | None = None,
    ) -> Answer:
        """As `Graph.match`."""
        ...

    def _store_of(self, engine: str | None) -> Store: ...

    def _survey(self) -> Survey: ...
