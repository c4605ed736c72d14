"""Predicted edges kept in a store beside a graph, and fuzzy queries answered there by one query.

They are marked and never part of the graph: in an RDF store they stand in a named graph of their
own, in Neo4j as relationships of a type of their own. No other query sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from condgraph.cypher.layout.schema import ENTITY, index_key
from condgraph.cypher.load.delete import BATCH, pages
from condgraph.cypher.store import Neo4jStore
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, ReadOnlyError
from condgraph.engine.facts import Entity
from condgraph.languages.logic.tree import Tree
from condgraph.logic.matrix import Matrix, adjacency
from condgraph.logic.store_text import PREDICTED, CypherText, SparqlText
from condgraph.sparql.layout import GraphIris, predicted_graph
from condgraph.sparql.literals import double

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Nodes whose rows are worked out together, and edges that a request writes.
NODES_AT_ONCE, EDGES_AT_ONCE = 1_024, 2_000
#: Hears how many edges there will be, before any is written; gives whether they are to be.
OnCount = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class StoredScore:
    """An answer of a fuzzy query on a store: `observed` says that the graph alone gives it."""

    entity: Entity
    score: float
    observed: bool


class Edges(Protocol):
    """Where predicted edges are kept."""

    def write(self, rows: Sequence[tuple[str, str, str, float]]) -> None:
        """Write edges: (head, relation, tail, score), by id and name."""

    def clear(self) -> None:
        """Remove all of them."""

    def ask(self, tree: Tree, alpha: float) -> tuple[str, list[StoredScore]]:
        """The text of a query, and its answers in no order."""
        ...


def edges_of(store: Any, graph: str) -> Edges:
    """The place for predicted edges in a store; raises `OptionError` for a graph in process."""
    if isinstance(store, Neo4jStore):
        return _Neo4jEdges(store)
    if hasattr(store, "endpoint"):
        return _RdfEdges(store)
    raise OptionError("predicted edges are kept beside graphs on servers", hint="in process, give the model: model=...")


def predicted_rows(snapshot: Snapshot, matrix: Matrix, relations: Sequence[str]) -> Iterator[tuple[str, str, str, float]]:
    """The predicted edges of some relations: those that the graph does not have."""
    observed = adjacency(snapshot)
    for relation in relations:
        for begin in range(0, matrix.size, NODES_AT_ONCE):
            check()
            heads = np.arange(begin, min(begin + NODES_AT_ONCE, matrix.size))
            rows, own = matrix.rows((relation, False), heads), observed.rows((relation, False), heads)
            places = np.repeat(rows.heads, rows.counts())
            known = np.isin(places * matrix.size + rows.ids, np.repeat(own.heads, own.counts()) * matrix.size + own.ids)
            for at in np.flatnonzero(~known).tolist():
                yield snapshot.ident(int(places[at])), relation, snapshot.ident(int(rows.ids[at])), float(rows.values[at])


def write(edges: Edges, rows: Sequence[tuple[str, str, str, float]]) -> None:
    """Take the place of the predicted edges that were there."""
    edges.clear()
    for begin in range(0, len(rows), EDGES_AT_ONCE):
        check()
        edges.write(rows[begin : begin + EDGES_AT_ONCE])


class _RdfEdges:
    """In the named graph `BASE.predicted/`: a node for each edge, named by what it says."""

    def __init__(self, store: Any) -> None:
        self.store, self.iris = store, GraphIris(store.base)
        self.graph = f"<{predicted_graph(store.base)}>"

    def write(self, rows: Sequence[tuple[str, str, str, float]]) -> None:
        """Write edges."""
        self._check()
        lines = [self._triples(*row) for row in rows]
        self.store.endpoint.update(f"INSERT DATA {{ GRAPH {self.graph} {{ {' '.join(lines)} }} }}")

    def _triples(self, head: str, relation: str, tail: str, score: float) -> str:
        name = blake2b("\0".join((head, relation, tail)).encode(), digest_size=12).hexdigest()
        ends = f"<pred:fact_h> {self.iris.entity(head)} ; <pred:fact_r> {self.iris.predicate(relation)} ; "
        iris, edge = self.iris, f"<{predicted_graph(self.store.base)}{name}>"
        return f"{edge} {ends}<pred:fact_t> {iris.entity(tail)} ; <pred:score> {double(score)} ."

    def clear(self) -> None:
        """Remove the named graph."""
        self._check()
        self.store.endpoint.update(f"DROP SILENT GRAPH {self.graph}")

    def _check(self) -> None:
        if self.store.read_only:
            raise ReadOnlyError.at(self.store.place)

    def ask(self, tree: Tree, alpha: float) -> tuple[str, list[StoredScore]]:
        """One SELECT."""
        from condgraph.sparql.layout import decode

        text = SparqlText(self.store.base, alpha).query(tree)
        found = []
        for row in self.store.endpoint.query(text):
            ident = decode(row["x"].value.removeprefix(self.store.base))
            name = ident if row["name"] is None else row["name"].value
            found.append(StoredScore(Entity(ident, name), float(row["s"].value), float(row["o"].value) >= 1.0))
        return text, found


class _Neo4jEdges:
    """As relationships of a type of their own, with `predicate` and `score`."""

    def __init__(self, store: Neo4jStore) -> None:
        self.store = store

    def write(self, rows: Sequence[tuple[str, str, str, float]]) -> None:
        """Write edges."""
        self._check()
        text = (
            f"UNWIND $rows AS row MATCH (a:{ENTITY} {{graph: $graph, handle: row[0]}}) "
            f"MATCH (b:{ENTITY} {{graph: $graph, handle: row[2]}}) "
            f"CREATE (a)-[:{PREDICTED} {{predicate: row[1], score: row[3]}}]->(b)"
        )
        given = [[index_key(head), relation, index_key(tail), score] for head, relation, tail, score in rows]
        self.store.connection.write(text, {"graph": self.store.name, "rows": given})

    def clear(self) -> None:
        """Remove them, from all entities of the graph."""
        self._check()
        node = f"(:{ENTITY} {{graph: $graph, handle: key}})"
        text = f"UNWIND $keys AS key MATCH {node}-[r:{PREDICTED}]->() WITH r LIMIT {BATCH} DELETE r"
        for keys in pages(self.store.connection, self.store.name, ENTITY, "handle"):
            while self.store.connection.write(text, {"graph": self.store.name, "keys": keys}).deleted:
                pass

    def _check(self) -> None:
        if self.store.read_only:
            raise ReadOnlyError.at(self.store.place)

    def ask(self, tree: Tree, alpha: float) -> tuple[str, list[StoredScore]]:
        """One query."""
        made = CypherText(self.store.name, alpha)
        text = made.query(tree)
        rows = self.store.connection.read(text, made.parameters)
        return text, [StoredScore(Entity(row["id"], row["name"]), row["s"], row["o"] >= 1.0) for row in rows]
