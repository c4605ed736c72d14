"""Reads the edges of patterns on Neo4j as rows of their ends, a tenth of the size of whole statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.cypher.compile.conditions import span_condition
from condgraph.cypher.compile.values import PlanCompiler
from condgraph.cypher.layout.edges import EDGES
from condgraph.cypher.layout.schema import quote
from condgraph.engine.bounds import check
from condgraph.patterns.graph import Numbers
from condgraph.patterns.remote.catalogue import Catalogue, Tally
from condgraph.patterns.remote.planned import Edges, End, Statements

if TYPE_CHECKING:
    from condgraph.cypher.store import Neo4jStore

#: Most types that a query lists; if there are more, all edges are read.
_TYPES: Final = 48
#: Most nodes that a query names.
_NODES: Final = 5_000


class Neo4jStatements(Statements):
    """The statements of one content of a graph."""

    def __init__(self, store: Neo4jStore) -> None:
        super().__init__(store)
        self._graph = store

    def edges(
        self, catalogue: Catalogue, nodes: Numbers | None, end: End, predicates: Sequence[int], *, statements: bool, tally: Tally
    ) -> Edges:
        """See `Statements.edges`."""
        last = len(catalogue.predicates)
        types = {EDGES.type_of(catalogue.predicates[number]): number for number in predicates if number != last}
        if last in predicates:
            types[EDGES.member] = last
        compiler = PlanCompiler(self._graph.name, self._graph.schema, [], EDGES)
        tests = [EDGES.is_edge("r")]
        if self._period is not None:
            low, high = (compiler.parameter(bound) for bound in (self._period.interval.start, self._period.interval.end))
            tests.append(span_condition(compiler, self._period.relation, EDGES.validity("r"), low, high))
        types_listed = ":" + "|".join(map(quote, types)) if len(types) <= _TYPES else ""
        near, far, entries = ("n", "m", list[tuple[int, int, int, int]]()) if end == "subject" else ("m", "n", [])
        along = f"({near})-[r{types_listed}]->({far}) WHERE {' AND '.join(tests)}"
        returned = f"RETURN collect([type(r), r.sid, {near}.id, {far}.id, CASE WHEN {far}.kind = 'text' THEN {far}.text END])"
        starts: list[tuple[str, list[str]]] = []
        if nodes is None:
            starts.append((f"MATCH {EDGES.in_graph('n')}", []))
        else:
            numbers = nodes.tolist()
            handles = [EDGES.handle(catalogue.key(number)) for number in numbers if not catalogue.is_text(number)]
            starts.append((f"UNWIND $nodes AS node MATCH {EDGES.at('n', 'node')}", handles))
            if end == "object":
                keys = [EDGES.key(catalogue.key(number)) for number in numbers if catalogue.is_text(number)]
                starts.append((f"UNWIND $nodes AS node MATCH {EDGES.value('n')} WHERE {EDGES.is_named('n', '= node')}", keys))
        for start, keys in starts:
            for offset in range(0, len(keys) if nodes is not None else 1, _NODES):
                check()
                parameters: dict[str, Any] = {**compiler.parameters, "nodes": keys[offset : offset + _NODES]}
                query_text = f"{start} MATCH {along} {returned}"
                ((rows,),) = self._graph.connection.values(query_text, parameters)
                tally.queries, tally.rows = tally.queries + 1, tally.rows + len(rows)
                tally.joins.append((query_text, parameters))
                for kind, sid, subject, thing, text_value in rows:
                    if kind in types and (thing is not None or text_value is not None):
                        object_ = catalogue.identified(thing) if text_value is None else catalogue.text(text_value)
                        entries.append((catalogue.identified(subject), types[kind], object_, sid or 0))
        edges = np.array(entries, np.int64).reshape(-1, 4)
        if not statements:
            edges[:, 3] = 0
        complete: Edges = edges[(edges[:, :3] >= 0).all(axis=1)]
        return complete
