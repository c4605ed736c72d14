"""Predicted edges stored next to a graph on a server, and fuzzy queries over both, each answered by one query of the
store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from condgraph.cypher.layout.base import GIVEN, give
from condgraph.cypher.layout.schema import CONCEPT, ENTITY, index_key, quote, type_of
from condgraph.cypher.load.lock import EDGES, pages
from condgraph.cypher.store import Neo4jStore
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, ReadOnlyError, UnsupportedError
from condgraph.engine.facts import Entity
from condgraph.engine.stored_schema import StoredSchema
from condgraph.languages.logic.tree import Anchor, Anything, Complement, Intersection, OfType, Projection, Tree, Union
from condgraph.logic.propagation import Matrix, adjacency
from condgraph.sparql.layout import GraphIris, double, predicted_graph, string

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- store text --------------------------------------------------------------------------------------
# A fuzzy query as one text: SPARQL over the graph and a named graph of predicted edges, or Cypher over
# relationships of the graph and predicted ones.
#
# Every node of the tree yields rows of a node `x`, its score `s`, and `o`, which is 1 if the graph alone
# gives it. A projection keeps the largest product. Intersections, unions and negated branches are one
# UNION of the branches, in which each binds the scores of the others to 0, grouped by `x`.


#: The type of predicted relationships in Neo4j.
PREDICTED: Final = "CONDGRAPH_PREDICTED"
_HINT: Final = "graph.logic(query, model=...) answers it"


def combined(tree: Intersection | Union, alpha: float, target: str, s: str, o: str, minimum: str) -> tuple[list[Tree], str, str]:
    """Return the branches of a node, and the expressions that join their scores: `s` and `o`, followed by the number of
    the branch. Raises `UnsupportedError` for a negated branch with no positive one next to it.
    """
    parts = [part.part if isinstance(part, Complement) else part for part in tree.parts]
    is_product = isinstance(tree, Intersection)
    negated = [isinstance(part, Complement) for part in tree.parts]
    if any(isinstance(part, Anything) for part in parts) or (all(negated) if is_product else any(negated)):
        raise UnsupportedError(target, ["a negated branch with no positive branch next to it"], hint=_HINT)
    expressions = []
    for name in (s, o):
        terms = []
        for i, is_negated in enumerate(negated):
            scale = minimum.format(f"{name}{i}", repr(float(alpha))) if name == s else f"{name}{i}"
            terms.append(f"(1.0 - {scale})" if is_negated else f"{name}{i}" if is_product else f"(1.0 - {name}{i})")
        joined = " * ".join(terms)
        expressions.append(joined if is_product else f"(1.0 - {joined})")
    return parts, expressions[0], expressions[1]


def _unsupported(target: str, tree: Tree) -> UnsupportedError:
    names = {Anything: "a variable without an atom", Complement: "a negated branch with no positive branch next to it"}
    return UnsupportedError(target, [names.get(type(tree), "an `exists` joined by a negated atom")], hint=_HINT)


class SparqlText:
    """Writes a tree as SPARQL."""

    def __init__(self, base: str, alpha: float) -> None:
        self.iris, self.alpha = GraphIris(base), alpha
        self.predicted = f"<{predicted_graph(base)}>"

    def query(self, tree: Tree) -> str:
        """Return one SELECT with the columns `?x` (the node), `?name`, `?s` and `?o`."""
        inner = self._rows(tree)
        return (
            f"SELECT ?x ?name ?s ?o WHERE {{ {{ {inner} }} "
            f"OPTIONAL {{ GRAPH {self.iris.graph} {{ ?x <pred:name> ?name }} }} FILTER(?s > 0) }} ORDER BY DESC(?o) DESC(?s)"
        )

    def _rows(self, tree: Tree) -> str:
        graph = self.iris.graph
        if isinstance(tree, Anchor):
            if tree.is_id:
                return f"SELECT ?x ?s ?o WHERE {{ VALUES (?x ?s ?o) {{ ({self.iris.entity(tree.name)} 1e0 1e0) }} }}"
            name = f"GRAPH {graph} {{ ?x <pred:name> {string(tree.name)} }}"
            return f"SELECT DISTINCT ?x (1e0 AS ?s) (1e0 AS ?o) WHERE {{ {name} }}"
        if isinstance(tree, OfType):
            member = f"GRAPH {graph} {{ ?x <pred:instance_of> ?concept . ?concept <pred:name> {string(tree.concept)} }}"
            return f"SELECT DISTINCT ?x (1e0 AS ?s) (1e0 AS ?o) WHERE {{ {member} }}"
        if isinstance(tree, Projection) and not tree.anti and not isinstance(tree.of, Anything):
            relation = self.iris.predicate(tree.relation)
            head, tail = ("?x", "?c") if tree.inverse else ("?c", "?x")
            edges = (
                f"{{ GRAPH {graph} {{ {head} {relation} {tail} }} BIND(1e0 AS ?m) BIND(1e0 AS ?w) }} UNION "
                f"{{ GRAPH {self.predicted} {{ ?e <pred:fact_h> {head} ; <pred:fact_r> {relation} ; <pred:fact_t> {tail} ; "
                "<pred:score> ?m } BIND(0e0 AS ?w) }"
            )
            below = f"{{ SELECT (?x AS ?c) (?s AS ?t) (?o AS ?u) WHERE {{ {{ {self._rows(tree.of)} }} }} }}"
            return f"SELECT ?x (MAX(?t * ?m) AS ?s) (MAX(?u * ?w) AS ?o) WHERE {{ {below} {edges} }} GROUP BY ?x"
        if isinstance(tree, (Intersection, Union)):
            smallest = "IF({0} >= 1.0, 1e0, IF({1} * {0} > 1.0, 1e0, {1} * {0}))"
            parts, s, o = combined(tree, self.alpha, "SPARQL", "?s", "?o", smallest)
            branches = [self._branch(part, i, len(parts)) for i, part in enumerate(parts)]
            sums = " ".join(f"(MAX(?a{i}) AS ?s{i}) (MAX(?b{i}) AS ?o{i})" for i in range(len(parts)))
            grouped = f"SELECT ?x {sums} WHERE {{ {' UNION '.join(branches)} }} GROUP BY ?x"
            return f"SELECT ?x ?s ?o WHERE {{ {{ {grouped} }} BIND({s} AS ?s) BIND({o} AS ?o) FILTER(?s > 0) }}"
        raise _unsupported("SPARQL", tree)

    def _branch(self, part: Tree, place: int, count: int) -> str:
        own = f"{{ SELECT ?x (?s AS ?a{place}) (?o AS ?b{place}) WHERE {{ {{ {self._rows(part)} }} }} }}"
        zeros = " ".join(f"BIND(0e0 AS ?a{i}) BIND(0e0 AS ?b{i})" for i in range(count) if i != place)
        return f"{{ {own} {zeros} }}"


class CypherText:
    """Writes a tree as Cypher; names are parameters, relations quoted types."""

    def __init__(self, graph: str, alpha: float) -> None:
        self.alpha = alpha
        self.parameters: dict[str, Any] = {"graph": graph}

    def query(self, tree: Tree) -> str:
        """Return one query with the columns `id`, `name`, `s` and `o`."""
        return f"{self._rows(tree)} WITH x, s, o WHERE s > 0 RETURN x.id AS id, x.name AS name, s, o ORDER BY o DESC, s DESC"

    def _given(self, value: str) -> str:
        return give(self.parameters, f"p{len(self.parameters.get(GIVEN, ())) + 1}", value)

    def _rows(self, tree: Tree) -> str:
        if isinstance(tree, Anchor):
            key = "handle" if tree.is_id else "key"
            return f"MATCH (x:{ENTITY} {{graph: $graph, {key}: {self._given(index_key(tree.name))}}}) WITH x, 1.0 AS s, 1.0 AS o"
        if isinstance(tree, OfType):
            concept = f"(:{CONCEPT} {{graph: $graph, key: {self._given(index_key(tree.concept))}}})"
            return f"MATCH (x:{ENTITY})-[:MEMBER_OF]->{concept} WITH DISTINCT x, 1.0 AS s, 1.0 AS o"
        if isinstance(tree, Projection) and not tree.anti and not isinstance(tree.of, Anything):
            kind = type_of(tree.relation)
            left, right = ("<-", "-") if tree.inverse else ("-", "->")
            predicate = self._given(tree.relation)
            return (
                f"{self._rows(tree.of)} WITH x AS c, s AS t, o AS u "
                f"MATCH (c){left}[r:{quote(kind)}|{PREDICTED}]{right}(x:{ENTITY}) "
                f"WHERE r.sid IS NOT NULL OR r.predicate = {predicate} "
                "WITH x, max(t * coalesce(r.score, 1.0)) AS s, max(CASE WHEN r.sid IS NULL THEN 0.0 ELSE u END) AS o"
            )
        if isinstance(tree, (Intersection, Union)):
            smallest = "(CASE WHEN {0} >= 1.0 OR {1} * {0} > 1.0 THEN 1.0 ELSE {1} * {0} END)"
            parts, s, o = combined(tree, self.alpha, "Cypher", "s", "o", smallest)
            branches = [f"{self._rows(part)} RETURN {self._bound(i, len(parts))}" for i, part in enumerate(parts)]
            sums = ", ".join(f"max(s{i}) AS s{i}, max(o{i}) AS o{i}" for i in range(len(parts)))
            return f"CALL {{ {' UNION ALL '.join(branches)} }} WITH x, {sums} WITH x, {s} AS s, {o} AS o WHERE s > 0"
        raise _unsupported("Cypher", tree)

    @staticmethod
    def _bound(place: int, count: int) -> str:
        pairs: Sequence[str] = [f"s AS s{i}, o AS o{i}" if i == place else f"0.0 AS s{i}, 0.0 AS o{i}" for i in range(count)]
        return f"x, {', '.join(pairs)}"


# -- store edges -------------------------------------------------------------------------------------
# Predicted edges are never part of the graph: in an RDF store they are in a named graph of their own,
# in Neo4j they are relationships of a type of their own. No other query reads them.


#: The number of nodes whose rows are computed together, and of edges in one write.
NODES_AT_ONCE, EDGES_AT_ONCE = 1_024, 2_000


@dataclass(frozen=True, slots=True)
class StoredScore:
    """An answer of a fuzzy query on a store; `observed` if the graph alone gives it."""

    entity: Entity
    score: float
    observed: bool


class Edges(Protocol):
    """The predicted edges of a graph in a store."""

    @property
    def schema(self) -> StoredSchema:
        """The schema of the graph."""
        ...

    def write(self, rows: Sequence[tuple[str, str, str, float]]) -> None:
        """Write edges: (head, relation, tail, score), with entities by id and relations by name."""

    def clear(self) -> None:
        """Remove all predicted edges."""

    def ask(self, tree: Tree, alpha: float) -> tuple[str, list[StoredScore]]:
        """Return the text of the query for a tree, and its answers in no order."""
        ...


def edges_of(store: Any, graph: str) -> Edges:
    """Return the predicted edges of a graph in a store; raises `OptionError` for a graph in process."""
    if isinstance(store, Neo4jStore):
        if not (engine := store.connection.engine).scored:
            raise UnsupportedError(engine.name, ["predicted edges"], hint="graph.snapshot() is the same graph in process")
        return _Neo4jEdges(store)
    if hasattr(store, "endpoint"):
        return _RdfEdges(store)
    raise OptionError("predicted edges are kept beside graphs on servers", hint="in process, give the model: model=...")


def predicted_rows(snapshot: Snapshot, matrix: Matrix, relations: Sequence[str]) -> Iterator[tuple[str, str, str, float]]:
    """Yield the predicted edges of some relations, without those that the graph has."""
    observed = adjacency(snapshot)
    for relation in relations:
        for begin in range(0, matrix.size, NODES_AT_ONCE):
            check()
            heads = np.arange(begin, min(begin + NODES_AT_ONCE, matrix.size))
            rows, observed_rows = matrix.rows((relation, False), heads), observed.rows((relation, False), heads)
            row_heads = np.repeat(rows.heads, rows.counts())
            is_observed = np.isin(
                row_heads * matrix.size + rows.ids,
                np.repeat(observed_rows.heads, observed_rows.counts()) * matrix.size + observed_rows.ids,
            )
            for at in np.flatnonzero(~is_observed).tolist():
                yield snapshot.ident(int(row_heads[at])), relation, snapshot.ident(int(rows.ids[at])), float(rows.values[at])


def write(edges: Edges, rows: Sequence[tuple[str, str, str, float]]) -> None:
    """Replace all predicted edges."""
    edges.clear()
    for begin in range(0, len(rows), EDGES_AT_ONCE):
        check()
        edges.write(rows[begin : begin + EDGES_AT_ONCE])


class _RdfEdges:
    """Predicted edges in the named graph `BASE.predicted/`: a node per edge, named by a hash of its ends and relation."""

    def __init__(self, store: Any) -> None:
        self.store, self.iris = store, GraphIris(store.base)
        self.graph = f"<{predicted_graph(store.base)}>"

    @property
    def schema(self) -> StoredSchema:
        schema: StoredSchema = self.store.target.schema
        return schema

    def write(self, rows: Sequence[tuple[str, str, str, float]]) -> None:
        self._check()
        lines = [self._triples(*row) for row in rows]
        self.store.endpoint.update(f"INSERT DATA {{ GRAPH {self.graph} {{ {' '.join(lines)} }} }}")

    def _triples(self, head: str, relation: str, tail: str, score: float) -> str:
        name = blake2b("\0".join((head, relation, tail)).encode(), digest_size=12).hexdigest()
        ends = f"<pred:fact_h> {self.iris.entity(head)} ; <pred:fact_r> {self.iris.predicate(relation)} ; "
        iris, edge = self.iris, f"<{predicted_graph(self.store.base)}{name}>"
        return f"{edge} {ends}<pred:fact_t> {iris.entity(tail)} ; <pred:score> {double(score)} ."

    def clear(self) -> None:
        self._check()
        self.store.endpoint.update(f"DROP SILENT GRAPH {self.graph}")

    def _check(self) -> None:
        if self.store.read_only:
            raise ReadOnlyError.at(self.store.place)

    def ask(self, tree: Tree, alpha: float) -> tuple[str, list[StoredScore]]:
        from condgraph.engine.iris import decode

        text = SparqlText(self.store.base, alpha).query(tree)
        answers = []
        for row in self.store.endpoint.query(text):
            ident = decode(row["x"].value.removeprefix(self.store.base))
            name = ident if row["name"] is None else row["name"].value
            answers.append(StoredScore(Entity(ident, name), float(row["s"].value), float(row["o"].value) >= 1.0))
        return text, answers


class _Neo4jEdges:
    """Predicted edges as relationships of a type of their own, with `predicate` and `score`."""

    def __init__(self, store: Neo4jStore) -> None:
        self.store = store

    @property
    def schema(self) -> StoredSchema:
        return self.store.schema

    def write(self, rows: Sequence[tuple[str, str, str, float]]) -> None:
        self._check()
        text = (
            f"UNWIND $rows AS row MATCH (a:{ENTITY} {{graph: $graph, handle: row[0]}}) "
            f"MATCH (b:{ENTITY} {{graph: $graph, handle: row[2]}}) "
            f"CREATE (a)-[:{PREDICTED} {{predicate: row[1], score: row[3]}}]->(b)"
        )
        parameters = [[index_key(head), relation, index_key(tail), score] for head, relation, tail, score in rows]
        self.store.connection.write(text, {"graph": self.store.name, "rows": parameters})

    def clear(self) -> None:
        """Remove them, at most `EDGES` per transaction."""
        self._check()
        node = f"(:{ENTITY} {{graph: $graph, handle: key}})"
        text = f"UNWIND $keys AS key MATCH {node}-[r:{PREDICTED}]->() WITH r LIMIT {EDGES} DELETE r"
        for keys in pages(self.store.connection, self.store.name, ENTITY, "handle"):
            while self.store.connection.write(text, {"graph": self.store.name, "keys": keys}).deleted:
                pass

    def _check(self) -> None:
        if self.store.read_only:
            raise ReadOnlyError.at(self.store.place)

    def ask(self, tree: Tree, alpha: float) -> tuple[str, list[StoredScore]]:
        cypher = CypherText(self.store.name, alpha)
        text = cypher.query(tree)
        rows = self.store.connection.read(text, cypher.parameters)
        return text, [StoredScore(Entity(row["id"], row["name"]), row["s"], row["o"] >= 1.0) for row in rows]
