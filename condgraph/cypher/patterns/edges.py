"""Reads the edges of patterns on Neo4j as rows of their ends, a tenth of the size of whole statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

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
    """The statements of one state of a graph."""

    @property
    def _graph(self) -> Neo4jStore:
        return cast("Neo4jStore", self._store)

    def edges(
        self, catalogue: Catalogue, nodes: Numbers | None, end: End, predicates: Sequence[int], *, statements: bool, tally: Tally
    ) -> Edges:
        """See `Statements.edges`."""
        compiler = PlanCompiler(self._graph.name, self._graph.schema, [], EDGES)
        types, along, row = self._along(compiler, catalogue, end, predicates, "n", "r", "m")
        rows = list[list[Any]]()
        for start, keys in _starts(catalogue, nodes, end):
            text = f"{start} MATCH {along} RETURN collect({row})"
            rows += self._asked(text, {**compiler.parameters, "nodes": keys}, tally)[0]
        tally.rows += len(rows)
        return _edges(catalogue, types, rows, statements=statements)

    def edges_on(
        self, catalogue: Catalogue, nodes: Numbers, end: End, predicates: Sequence[int], few: int | None,
        then: tuple[End, tuple[int, ...]] | None, *, statements: bool, tally: Tally,
    ) -> tuple[Edges, Edges, bool] | None:  # fmt: skip
        """See `Statements.edges_on`."""
        starts = _starts(catalogue, nodes, end)
        if len(starts) != 1 or not catalogue.sorts_alike:
            return None
        compiler = PlanCompiler(self._graph.name, self._graph.schema, [], EDGES)
        types, along, row = self._along(compiler, catalogue, end, predicates, "n", "r", "m")
        ((start, keys),) = starts
        text = f"{start} MATCH {along} AND (m.id IS NOT NULL OR m.kind = 'text') WITH m, collect({row}) AS rows"
        if few is not None:
            text += f" ORDER BY m.kind = 'text', CASE WHEN m.kind = 'text' THEN m.text ELSE m.id END LIMIT {few + 1}"
        onward_rows, onward = "[]", dict[str, int]()
        if then is not None:
            onward, along, row = self._along(compiler, catalogue, *then, "m", "q", "o")
            onward_rows = f"COLLECT {{ MATCH {along} RETURN {row} }}"
        groups = self._asked(f"{text} RETURN collect([rows, {onward_rows}])", {**compiler.parameters, "nodes": keys}, tally)[0]
        rows, next_rows = ([row for group in groups for row in group[at]] for at in (0, 1))
        tally.rows += len(rows) + len(next_rows)
        edges, next_edges = (
            _edges(catalogue, types_of_rows, edge_rows, statements=statements)
            for types_of_rows, edge_rows in ((types, rows), (onward, next_rows))
        )
        return edges, next_edges, few is None or len(groups) <= few

    def _asked(self, text: str, parameters: dict[str, Any], tally: Tally) -> list[Any]:
        check()
        ((*row,),) = self._graph.connection.values(text, parameters)
        tally.queries += 1
        tally.joins.append((text, parameters))
        return row

    def _along(
        self, compiler: PlanCompiler, catalogue: Catalogue, end: End, predicates: Sequence[int], near: str, r: str, far: str
    ) -> tuple[dict[str, int], str, str]:
        """Return edge types with predicate numbers, a MATCH pattern of the edges from a node at one end, and the
        columns of a row.
        """
        last = len(catalogue.predicates)
        types = {EDGES.type_of(catalogue.predicates[number]): number for number in predicates if number != last}
        if last in predicates:
            types[EDGES.member] = last
        tests = [EDGES.is_edge(r)]
        if self._period is not None:
            low, high = (compiler.parameter(bound) for bound in (self._period.interval.start, self._period.interval.end))
            tests.append(span_condition(compiler, self._period.relation, EDGES.validity(r), low, high))
        type_list = ":" + "|".join(map(quote, types)) if len(types) <= _TYPES else ""
        subject, target = (near, far) if end == "subject" else (far, near)
        row = f"[type({r}), {r}.sid, {subject}.id, {target}.id, CASE WHEN {target}.kind = 'text' THEN {target}.text END]"
        return types, f"({subject})-[{r}{type_list}]->({target}) WHERE {' AND '.join(tests)}", row


def _starts(catalogue: Catalogue, nodes: Numbers | None, end: End) -> list[tuple[str, list[str]]]:
    """Return clauses that bind nodes (None: any) as `n`, each with the keys of its parameter, one per query."""
    if nodes is None:
        return [(f"MATCH {EDGES.in_graph('n')}", [])]
    numbers = nodes.tolist()
    handles = [EDGES.handle(catalogue.key(number)) for number in numbers if not catalogue.is_text(number)]
    starts = [(f"UNWIND $nodes AS node MATCH {EDGES.at('n', 'node')}", handles)]
    if end == "object":
        texts = [EDGES.key(catalogue.key(number)) for number in numbers if catalogue.is_text(number)]
        starts.append((f"UNWIND $nodes AS node MATCH {EDGES.value('n')} WHERE {EDGES.is_named('n', '= node')}", texts))
    return [(start, keys[offset : offset + _NODES]) for start, keys in starts for offset in range(0, len(keys), _NODES)]


def _edges(catalogue: Catalogue, types: dict[str, int], rows: list[list[Any]], *, statements: bool) -> Edges:
    known = [
        (
            catalogue.identified(subject),
            types[kind],
            catalogue.identified(target) if text is None else catalogue.text(text),
            (sid or 0) if statements else 0,
        )
        for kind, sid, subject, target, text in rows
        if kind in types and (target is not None or text is not None)
    ]
    edges = np.array(known, np.int64).reshape(-1, 4)
    result: Edges = edges[(edges[:, :3] >= 0).all(axis=1)]
    return result
