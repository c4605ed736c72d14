"""A backend over a Neo4j database that condgraph did not write, without a copy of it: each query is
one query of Cypher there (`condgraph.live`), or is refused with the reason.

What the database gave is written by the same processes that answer queries of other graphs, as the
rows of a VALUES: so formats, limits and deadlines are theirs, and so is the judgement of what is
SPARQL, which they read before the database is asked.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import UnsupportedError
from condgraph.live.answer import Live, Solutions
from condgraph.live.compiled import MOST
from condgraph.sparql.layout import PRED
from condgraph.sparql.text.scan import PREFIXES
from condgraph.sparql.workers.pool import AsyncResults, Query, WorkerPool

#: Seconds that a query may be read for, without anything to ask.
_READING: Final = 5.0
#: A query about one IRI.
_DESCRIBE: Final = re.compile(r"\s*+DESCRIBE\s*+<([^<>\s]*+)>\s*+", re.IGNORECASE)


class LiveBackend:
    """Answers from the database itself. Options are those of `WorkerPool`."""

    def __init__(self, live: Live, **options: Any) -> None:
        self._live, self.base = live, live.names.base
        self.prefixes, self.predeclared = {"pred": PRED}, dict(PREFIXES)
        self.graphs: tuple[str, ...] = (self.base,)
        self.default = (self.base,)
        self.examples, self.about = examples(live), "DESCRIBE <{iri}>"
        # A store with nothing in it: what it is asked says all that it gives.
        self._pool = WorkerPool([], **options)

    @property
    def headers(self) -> Mapping[str, str]:
        """Answers are of now."""
        return {"X-Condgraph-Live": "asked", "X-Condgraph-Read": datetime.now(UTC).isoformat(timespec="milliseconds")}

    async def query(self, query: Query, timeout: float) -> AsyncResults:
        """Ask the database; raises what is wrong with a query, and status 501 for one that is not
        answered live.
        """
        until = time.monotonic() + timeout
        if query.graph is not None or query.dataset:
            raise ProtocolError(501, "whole graphs are not given live: serve a replica (without --live)")
        if any(set(graphs or ()) - {self.base} for graphs in (query.default_graphs, query.named_graphs)):
            raise ProtocolError(404, f"there is one graph, {self.base}")
        empty = replace(query, prefixes=self.predeclared, default_graphs=None, named_graphs=None)
        read = await self._pool.query_async(replace(empty, limit=1), timeout=min(timeout, _READING))
        read.close()
        most = MOST if query.limit is None else query.limit + 1
        if (about := _DESCRIBE.fullmatch(query.text)) is not None:
            left = max(0.001, until - time.monotonic())
            try:
                triples = await asyncio.to_thread(self._live.describe, about[1], most=most, timeout=left)
            except UnsupportedError as error:
                raise ProtocolError(501, str(error)) from None
            said = replace(empty, text=f"CONSTRUCT {{\n{triples}}} WHERE {{}}", prefixes=None)
            return await self._pool.query_async(said, timeout=max(0.001, until - time.monotonic()))
        try:
            found = await asyncio.to_thread(self._live.ask, query.text, most=most, timeout=max(0.001, until - time.monotonic()))
        except UnsupportedError as error:
            raise ProtocolError(501, str(error)) from None
        if query.limit is None and isinstance(found, Solutions) and found.more:
            raise ProtocolError(501, f"more than {MOST:,} rows are not given live; LIMIT says how many are wanted")
        said = replace(empty, text=written(found), prefixes=None)
        return await self._pool.query_async(said, timeout=max(0.001, until - time.monotonic()))

    def status(self) -> Mapping[str, Any]:
        """How many processes there are."""
        return {"graphs": list(self.graphs), "processes": len(self._pool.pids()), "live": True}

    def close(self) -> None:
        """End all processes."""
        self._pool.close()


def written(found: Solutions | bool) -> str:
    """A query over nothing that gives these results.

    >>> written(True)
    'ASK { FILTER(true) }'
    >>> written(Solutions(("name",), (('"Nepal"',), (None,))))
    'SELECT ?name { VALUES (?name) { ("Nepal") (UNDEF) } }'
    """
    if isinstance(found, bool):
        return f"ASK {{ FILTER({'true' if found else 'false'}) }}"
    names = " ".join(f"?{name}" for name in found.names)
    rows = " ".join(f"({' '.join('UNDEF' if term is None else term for term in row)})" for row in found.rows)
    return f"SELECT {names} {{ VALUES ({names}) {{ {rows} }} }}"


def examples(live: Live) -> tuple[tuple[str, str], ...]:
    """Queries that the page offers."""
    vocabulary, names = live.vocabulary, live.names
    found = [("the concepts, with how many members each has",
              "SELECT ?concept (COUNT(?x) AS ?members) {\n  ?x <pred:instance_of>/<pred:name> ?concept\n}\n"
              "GROUP BY ?concept ORDER BY DESC(?members)")]  # fmt: skip
    largest = sorted(vocabulary.mapping.relationships, key=lambda one: -one.count)[:2]
    for one in largest:
        text = f"SELECT ?a ?b {{\n  ?x {names.predicate(one.predicate)} ?y ; <pred:name> ?a .\n  ?y <pred:name> ?b\n}} LIMIT 20"
        found.append((f"what {one.predicate} leads to", text))
    return tuple(found)
