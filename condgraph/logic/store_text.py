"""A fuzzy query as one text of a store: SPARQL over the graph and a named graph of predicted edges
beside it, Cypher over relationships beside those of the graph.

Every node of the tree gives rows of a node `x`, its score `s`, and `o`, which is 1 where the graph
alone gives it. A projection keeps the largest product. Intersections, unions and negated branches
are one union of branches, in which each binds the scores of the others to 0, and a sum over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from condgraph.cypher.layout.given import GIVEN, give
from condgraph.cypher.layout.quote import quote
from condgraph.cypher.layout.schema import CONCEPT, ENTITY, index_key, type_of
from condgraph.engine.errors import UnsupportedError
from condgraph.languages.logic.tree import Anchor, Anything, Complement, Intersection, OfType, Projection, Tree, Union
from condgraph.sparql.layout import GraphIris, predicted_graph
from condgraph.sparql.literals import string

#: The type of predicted relationships in Neo4j.
PREDICTED: Final = "CONDGRAPH_PREDICTED"


def combined(tree: Intersection | Union, alpha: float, target: str, s: str, o: str, minimum: str) -> tuple[list[Tree], str, str]:
    """The branches of a node, and how their scores (`s` and `o` with a number behind) are joined;
    raises `UnsupportedError` where a negated branch stands alone.
    """
    parts = [part.part if isinstance(part, Complement) else part for part in tree.parts]
    both = isinstance(tree, Intersection)
    negated = [isinstance(part, Complement) for part in tree.parts]
    if any(isinstance(part, Anything) for part in parts) or (all(negated) if both else any(negated)):
        raise UnsupportedError(target, ["a negated branch with nothing beside it"], hint="leave `stored` out, and give the model")
    found = []
    for name in (s, o):
        terms = []
        for i, minus in enumerate(negated):
            scale = minimum.format(f"{name}{i}", repr(float(alpha))) if name == s else f"{name}{i}"
            terms.append(f"(1.0 - {scale})" if minus else f"{name}{i}" if both else f"(1.0 - {name}{i})")
        joined = " * ".join(terms)
        found.append(joined if both else f"(1.0 - {joined})")
    return parts, found[0], found[1]


def _unsupported(target: str, tree: Tree) -> UnsupportedError:
    what = {Anything: "a variable that nothing is said of", Complement: "a negated branch with nothing beside it"}
    return UnsupportedError(
        target, [what.get(type(tree), "an `exists` joined by a negated atom")], hint="leave `stored` out, and give the model"
    )


class SparqlText:
    """The SPARQL of a tree."""

    def __init__(self, base: str, alpha: float) -> None:
        self.iris, self.alpha = GraphIris(base), alpha
        self.predicted = f"<{predicted_graph(base)}>"

    def query(self, tree: Tree) -> str:
        """One SELECT of `?id`-less rows: the node `?x`, `?name`, `?s` and `?o`."""
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
    """The Cypher of a tree; names travel as parameters, relations as quoted types."""

    def __init__(self, graph: str, alpha: float) -> None:
        self.alpha = alpha
        self.parameters: dict[str, Any] = {"graph": graph}

    def query(self, tree: Tree) -> str:
        """One query of rows: `id`, `name`, `s` and `o`."""
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
