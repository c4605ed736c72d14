"""What a thread does with the driver while its caller waits for it: a session that can be cut off,
and a writing transaction.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import neo4j


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a text gave: its rows, and how many nodes and relationships it made or deleted."""

    rows: list[dict[str, Any]]
    nodes: int
    edges: int
    deleted: int


class Transaction:
    """A writing transaction; `Connection.transaction` commits it."""

    def __init__(self, transaction: neo4j.Transaction) -> None:
        self._transaction = transaction

    def run(self, text: str, parameters: dict[str, Any]) -> Outcome:
        """Run a text to its end."""
        result = self._transaction.run(text, parameters)
        rows = [record.data() for record in result]
        counters = result.consume().counters
        deleted = counters.nodes_deleted + counters.relationships_deleted
        return Outcome(rows, counters.nodes_created, counters.relationships_created, deleted)

    def rollback(self) -> None:
        """Undo everything."""
        self._transaction.rollback()


class Line:
    """The session of a thread that waits for the server, to be cut off by somebody else."""

    __slots__ = ("over", "session")

    def __init__(self) -> None:
        self.session: neo4j.Session | None = None
        self.over = False

    def cut(self) -> None:
        """Close the connection of the session, if it has one: a thread that reads from it gets an
        error at once. A session that is not connected yet ends by the driver's own bounds.
        """
        self.over = True
        # The driver has no public way to do this; without it the thread ends when the server says
        # something.
        connection = getattr(self.session, "_connection", None)
        kill = getattr(connection, "kill", None)
        if kill is not None:
            with suppress(Exception):
                kill()
