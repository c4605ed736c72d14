"""A graph in Neo4j as patterns are searched on it: the joins as Cypher, and the statements of solutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.compiler import Compiler, FactRows
from condgraph.cypher.layout import index_key
from condgraph.cypher.match_parts import is_edge
from condgraph.cypher.match_text import keys_of, render
from condgraph.cypher.paths import described
from condgraph.cypher.witness import record, restore
from condgraph.engine.search.catalogue import Catalogue
from condgraph.engine.search.problem import Clock
from condgraph.engine.search.remote import PartPlan, Tally
from condgraph.engine.search.remote_match import Parts
from condgraph.engine.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from condgraph.cypher.store import Neo4jStore


class Place:
    """One content of a graph (`remote_match.PatternStore`, `remote_match.JoiningStore`).

    `attributes` are the predicates with text values, `valued` the types of relationships that lead to values. `orders` says for
    ids that the server would put in another order what they are ordered by, `long` which text a hash stands for.
    """

    def __init__(
        self,
        store: Neo4jStore,
        attributes: Sequence[str],
        valued: frozenset[str],
        orders: Mapping[str, str],
        long: Mapping[str, str],
    ) -> None:
        self._store, self._attributes, self._valued, self._orders, self._long = store, attributes, valued, orders, long

    def parts(self, catalogue: Catalogue, clock: Clock, tally: Tally) -> Parts:
        """The joins of a search, as Cypher queries."""
        return Parts(self, catalogue, clock, tally)

    def rows(
        self, plan: PartPlan, catalogue: Catalogue, tally: Tally, timeout: float | None, cancelled: Event | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The solutions of a part: sums, and numbers of nodes."""
        text, parameters = render(plan, self._store.name, self._attributes, self._valued, self._orders)
        tally.queries += 1
        tally.texts.append(text)
        records = self._store.connection.values(text, parameters, timeout=timeout, cancelled=cancelled)
        # With a limit all rows come as one list: a record for each costs the driver four times what the row costs.
        found = [record[0] for record in records] if plan.limit is None else records[0][0]
        totals = np.array([row[0] for row in found], np.int64)
        if not found:
            return totals, np.empty((0, len(plan.nodes)), np.int32)
        columns = []
        for node, place in zip(plan.nodes, keys_of(plan, self._orders), strict=True):
            if plan.sorts[node] == "entity":
                columns.append([catalogue.identified(row[place]) for row in found])
            else:
                columns.append([catalogue.text(self._long.get(row[place], row[place])) for row in found])
        return totals, np.array(columns, np.int32).T

    def joined(
        self, catalogue: Catalogue, ones: Sequence[int], others: Sequence[int], forward: bool, backward: bool,
        timeout: float | None, cancelled: Event | None,
    ) -> Sequence[bool]:  # fmt: skip
        """Which pairs of nodes an edge joins."""
        wanted: list[tuple[int, int, int]] = []
        for place, (one, two) in enumerate(zip(ones, others, strict=True)):
            wanted += [(place, a, b) for a, b, way in ((one, two, forward), (two, one, backward)) if way]
        found = [False] * len(ones)
        edge = is_edge("r")
        texts = {
            True: f"UNWIND $pairs AS p MATCH (a:Entity {{graph: $graph, id: p[1]}}) MATCH (b:Entity {{graph: $graph, id: p[2]}}) "
            f"WITH p, a, b WHERE EXISTS {{ MATCH (a)-[r]->(b) WHERE {edge} }} RETURN p[0] AS place",
            False: "UNWIND $pairs AS p MATCH (a:Entity {graph: $graph, id: p[1]}) WITH p, a "
            "WHERE EXISTS { MATCH (a)-[]->(v:Value) WHERE v.kind = 'text' AND v.key = p[2] } RETURN p[0] AS place",
        }
        for to_entity, text in texts.items():
            pairs = [
                [place, catalogue.ids[a], catalogue.ids[b] if to_entity else index_key(catalogue.key(b))]
                for place, a, b in wanted
                if a < catalogue.entities and (b < catalogue.entities) is to_entity
            ]
            if pairs:
                for row in self._store.connection.read(
                    text, {"graph": self._store.name, "pairs": pairs}, timeout=timeout, cancelled=cancelled
                ):
                    found[row["place"]] = True
        return found

    def between(self, catalogue: Catalogue, pairs: Sequence[tuple[int, int]]) -> Snapshot:
        """All statements and stated memberships between pairs of nodes, with qualifiers and sources: one query for each kind."""
        entities, texts = [], []
        for one, two in pairs:
            for a, b in {(one, two), (two, one)}:
                if a < catalogue.entities and b < catalogue.entities:
                    entities.append([catalogue.ids[a], catalogue.ids[b]])
                elif a < catalogue.entities:
                    texts.append([catalogue.ids[a], index_key(catalogue.key(b))])
        compiler = Compiler(self._store.name, self._store.schema, [])
        relation = record(compiler, FactRows([], None, [], "f", "a", "b", "relation", "subject"))
        attribute = record(compiler, FactRows([], None, [], "f", "a", "v", "attribute", "subject"))
        start = "MATCH (a:Entity {graph: $graph, id: p[0]})"
        end = "MATCH (b:Entity {graph: $graph, id: p[1]})"
        places = "sources: m.sources, rows: m.rows"
        ids = sorted({catalogue.ids[number] for pair in pairs for number in pair if number < catalogue.entities})
        asked: list[tuple[list[Any], str]] = [
            (
                entities,
                f"UNWIND $pairs AS p {start} {end} MATCH (a)-[f]->(b) WHERE f.sid IS NOT NULL RETURN 0 AS unit, {relation} AS row",
            ),
            (
                texts,
                f"UNWIND $pairs AS p {start} MATCH (a)-[f]->(v:Value) WHERE v.kind = 'text' AND v.key = p[1] "
                f"RETURN 0 AS unit, {attribute} AS row",
            ),
            (
                entities if catalogue.used[-1] else [],
                f"UNWIND $pairs AS p {start} {end} MATCH (a)-[m:MEMBER_OF]->(b) WHERE size(m.sources) > 0 "
                f"RETURN -1 AS unit, {{m: {{a: {described('a')}, b: {described('b')}, {places}}}}} AS row",
            ),
            (
                ids,
                f"UNWIND $pairs AS id MATCH (e:Entity {{graph: $graph, id: id}}) RETURN 0 AS unit, {{e: {described('e')}}} AS row",
            ),
        ]
        rows: list[dict[str, Any]] = []
        # Apart, since a text of all of them takes long to plan, and most patterns need one or two.
        for wanted, text in asked:
            if wanted:
                rows += self._store.connection.read(text, {**compiler.parameters, "pairs": wanted})
        return restore(rows, self._store.sources())
