"""What an endpoint serves and within which bounds: the backend that answers its queries, and the
limits of each.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from condgraph.endpoint.protocol import MOST_BYTES
from condgraph.sparql.workers.pool import Head, Query


class Answers(Protocol):
    """Results of a query as a backend gives them: what they are, and their serialised parts.
    `close` ends the query.
    """

    head: Head

    @property
    def cut(self) -> bool:
        """Whether the limit cut them; known behind the last part."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def close(self) -> None:
        """End the query."""


class Backend(Protocol):
    """What an endpoint answers from. Another store plugs in by being one."""

    @property
    def base(self) -> str | None:
        """What relative IRIs of queries are relative to; None for the address of the endpoint."""

    @property
    def prefixes(self) -> Mapping[str, str]:
        """Prefixes for Turtle, and for the first query of the page."""

    @property
    def graphs(self) -> tuple[str, ...]:
        """The named graphs."""

    @property
    def default(self) -> Sequence[str] | None:
        """The named graphs whose union is the default graph; None where that is all of them."""

    @property
    def predeclared(self) -> Mapping[str, str]:
        """Prefixes that queries need not declare."""

    @property
    def examples(self) -> Sequence[tuple[str, str]]:
        """Queries that the page offers: what each is about, and its text."""

    @property
    def about(self) -> str:
        """The query that the page asks about an IRI, which stands in it as `{iri}`."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of every answer."""

    async def query(self, query: Query, timeout: float) -> Answers:
        """Run a query; raises what is wrong with it as a `CondgraphError`."""

    def status(self) -> Mapping[str, Any]:
        """What /health says beside that the server runs."""

    def close(self) -> None:
        """Let go of everything."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of every query: seconds, and solutions or triples (None for any number).

    Whole graphs have `data_timeout` seconds. A body has `body` bytes at most; `streams` results may
    be on their way while their queries run (those of more than 4 MiB).
    """

    timeout: float = 30.0
    rows: int | None = 10_000
    data_timeout: float = 600.0
    body: int = MOST_BYTES
    streams: int = 8
