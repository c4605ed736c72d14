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
        """As of `Statements`."""
        compiler = PlanCompiler(self._graph.name, self._graph.schema, [], EDGES)
        types, along, row = self._along(compiler, catalogue, end, predicates, "n", "r", "m")
        found = list[list[Any]]()
        for start, keys in _starts(catalogue, nodes, end):
            text = f"{start} MATCH {along} RETURN collect({row})"
            found += self._asked(text, {**compiler.parameters, "nodes": keys}, tally)[0]
        tally.rows += len(found)
        return _edges(catalogue, types, found, statements=statements)

    def edges_on(
        self, catalogue: Catalogue, nodes: Numbers, end: End, predicates: Sequence[int], few: int | None,
        then: tuple[End, tuple[int, ...]] | None, *, statements: bool, tally: Tally,
    ) -> tuple[Edges, Edges, bool] | None:  # fmt: skip
        """As of `Statements`."""
        starts = _starts(catalogue, nodes, end)
        if len(starts) != 1 or not catalogue.sorts_alike:
            return None
        compiler = PlanCompiler(self._graph.name, self._graph.schema, [], EDGES)
        types, along, row = self._along(compiler, catalogue, end, predicates, "n", "r", "m")
        ((start, keys),) = starts
        text = f"{start} MATCH {along} AND (m.id IS NOT NULL OR m.kind = 'text') WITH m, collect({row}) AS rows"
        if few is not None:
            text += f" ORDER BY m.kind = 'text', CASE WHEN m.kind = 'text' THEN m.text ELSE m.id END LIMIT {few + 1}"
        more, onward = "[]", dict[str, int]()
        if then is not None:
            onward, along, row = self._along(compiler, catalogue, *then, "m", "q", "o")
            more = f"COLLECT {{ MATCH {along} RETURN {row} }}"
        found = self._asked(f"{text} RETURN collect([rows, {more}])", {**compiler.parameters, "nodes": keys}, tally)[0]
        rows, others = ([row for part in found for row in part[at]] for at in (0, 1))
        tally.rows += len(rows) + len(others)
        edges, further = (
            _edges(catalogue, kinds, some, statements=statements) for kinds, some in ((types, rows), (onward, others))
        )
        return edges, further, few is None or len(found) <= few

    def _asked(self, text: str, parameters: dict[str, Any], tally: Tally) -> list[Any]:
        check()
        ((*row,),) = self._graph.connection.values(text, parameters)
        tally.queries += 1
        tally.joins.append((text, parameters))
        return row

    def _along(
        self, compiler: PlanCompiler, catalogue: Catalogue, end: End, predicates: Sequence[int], near: str, r: str, far: str
    ) -> tuple[dict[str, int], str, str]:
        """The types of edges, a pattern of those of some predicates from a node at one end, and what a row has of each."""
        last = len(catalogue.predicates)
        types = {EDGES.type_of(catalogue.predicates[number]): number for number in predicates if number != last}
        if last in predicates:
            types[EDGES.member] = last
        tests = [EDGES.is_edge(r)]
        if self._period is not None:
            low, high = (compiler.parameter(bound) for bound in (self._period.interval.start, self._period.interval.end))
            tests.append(span_condition(compiler, self._period.relation, EDGES.validity(r), low, high))
        listed = ":" + "|".join(map(quote, types)) if len(types) <= _TYPES else ""
        subject, thing = (near, far) if end == "subject" else (far, near)
        row = f"[type({r}), {r}.sid, {subject}.id, {thing}.id, CASE WHEN {thing}.kind = 'text' THEN {thing}.text END]"
        return types, f"({subject})-[{r}{listed}]->({thing}) WHERE {' AND '.join(tests)}", row


def _starts(catalogue: Catalogue, nodes: Numbers | None, end: End) -> list[tuple[str, list[str]]]:
    """The clauses that bind nodes (None: any) as `n`, with their keys, a query each."""
    if nodes is None:
        return [(f"MATCH {EDGES.in_graph('n')}", [])]
    every = nodes.tolist()
    handles = [EDGES.handle(catalogue.key(number)) for number in every if not catalogue.is_text(number)]
    starts = [(f"UNWIND $nodes AS node MATCH {EDGES.at('n', 'node')}", handles)]
    if end == "object":
        texts = [EDGES.key(catalogue.key(number)) for number in every if catalogue.is_text(number)]
        starts.append((f"UNWIND $nodes AS node MATCH {EDGES.value('n')} WHERE {EDGES.is_named('n', '= node')}", texts))
    return [(start, keys[at : at + _NODES]) for start, keys in starts for at in range(0, len(keys), _NODES)]


def _edges(catalogue: Catalogue, types: dict[str, int], rows: list[list[Any]], *, statements: bool) -> Edges:
    found = [
        (
            catalogue.identified(subject),
            types[kind],
            catalogue.identified(thing) if words is None else catalogue.text(words),
            (sid or 0) if statements else 0,
        )
        for kind, sid, subject, thing, words in rows
        if kind in types and (thing is not None or words is not None)
    ]
    edges = np.array(found, np.int64).reshape(-1, 4)
    kept: Edges = edges[(edges[:, :3] >= 0).all(axis=1)]
    return kept
