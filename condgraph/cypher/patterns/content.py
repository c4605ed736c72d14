"""A graph in Neo4j as patterns are searched on it: the joins as Cypher, and the statements of
solutions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.compile.plan import restore
from condgraph.cypher.compile.values import PlanCompiler
from condgraph.cypher.layout.base import GIVEN
from condgraph.cypher.layout.edges import EDGES
from condgraph.cypher.patterns.text import keys_of, render
from condgraph.cypher.patterns.values import Values, statements_of
from condgraph.engine.period import Period
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.joins import Parts
from condgraph.patterns.remote.parts import PartPlan, Tally
from condgraph.patterns.remote.solutions import Held

if TYPE_CHECKING:
    from condgraph.cypher.store import Neo4jStore


class Neo4jContent:
    """One content of a graph (`patterns.remote.match.PatternStore`,
    `patterns.remote.match.JoiningStore`).

    `attributes` are the predicates with text values, `valued` the types of relationships that lead
    to values. `orders` says what ids are ordered by, where the server would order them otherwise;
    `long` says which text a hash stands for.
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
        self._period: Period | None = None

    def at(self, period: Period | None) -> Neo4jContent:
        """The same, of the statements that hold in a period."""
        result = copy(self)
        result._period = period
        return result

    def parts(self, catalogue: Catalogue, tally: Tally) -> Parts:
        """The joins of a search, as Cypher queries."""
        return Parts(self, catalogue, tally)

    def rows(self, plan: PartPlan, catalogue: Catalogue, tally: Tally) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The solutions of a part: sums, and numbers of nodes."""
        text, parameters = render(plan, self._store.name, self._attributes, self._valued, self._orders, self._period)
        tally.queries += 1
        tally.joins.append((text, parameters))
        records = self._store.connection.values(text, parameters)
        # With a limit all rows come as one list: a record for each costs the driver four times what
        # the row costs.
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
        self, catalogue: Catalogue, ones: Sequence[int], others: Sequence[int], forward: bool, backward: bool
    ) -> Sequence[bool]:
        """Which pairs of nodes an edge joins."""
        wanted: list[tuple[int, int, int]] = []
        for place, (one, two) in enumerate(zip(ones, others, strict=True)):
            wanted += [(place, a, b) for a, b, way in ((one, two, forward), (two, one, backward)) if way]
        found = [False] * len(ones)
        start = f"UNWIND $pairs AS p MATCH {EDGES.at('a', 'p[1]')}"
        writer = Values(self._store.name, self._period)
        then = "".join(f" AND {test}" for test in writer.then("r"))
        text = f"{EDGES.is_text('v')} AND {EDGES.text_key('v')} = p[2]{then}"
        texts = {
            True: f"{start} MATCH {EDGES.at('b', 'p[2]')} "
            f"WITH p, a, b WHERE EXISTS {{ MATCH (a)-[r]->(b) WHERE {EDGES.is_edge('r')}{then} }} RETURN p[0] AS place",
            False: f"{start} WITH p, a WHERE EXISTS {{ MATCH (a)-[r]->{EDGES.value('v')} WHERE {text} }} RETURN p[0] AS place",
        }
        for to_entity, text in texts.items():
            pairs = [
                [place, EDGES.handle(catalogue.ids[a]), EDGES.key(catalogue.ids[b] if to_entity else catalogue.key(b))]
                for place, a, b in wanted
                if a < catalogue.entities and (b < catalogue.entities) is to_entity
            ]
            if pairs:
                for row in self._store.connection.read(
                    text, {**EDGES.parameters(self._store.name), **writer.parameters, "pairs": pairs}
                ):
                    found[row["place"]] = True
        return found

    def between(self, catalogue: Catalogue, pairs: Sequence[tuple[int, int]], values: Sequence[Held] = ()) -> Snapshot:
        """All statements and stated memberships between pairs of nodes, and statements of values,
        with qualifiers and sources: one query for each kind.
        """
        entities, texts = [], []
        for one, two in pairs:
            for a, b in {(one, two), (two, one)}:
                if a < catalogue.entities and b < catalogue.entities:
                    entities.append([EDGES.handle(catalogue.ids[a]), EDGES.handle(catalogue.ids[b])])
                elif a < catalogue.entities:
                    texts.append([EDGES.handle(catalogue.ids[a]), EDGES.key(catalogue.key(b))])
        compiler = PlanCompiler(self._store.name, self._store.schema, [], EDGES)
        relation = EDGES.statement(compiler, "f", "a", "b", "relation")
        attribute = EDGES.statement(compiler, "f", "a", "v", "attribute")
        start, end = f"UNWIND $pairs AS p MATCH {EDGES.at('a', 'p[0]')}", f"MATCH {EDGES.at('b', 'p[1]')}"
        writer = Values(self._store.name, self._period)
        then = "".join(f" AND {test}" for test in writer.then("f"))
        text = f"{EDGES.is_text('v')} AND {EDGES.text_key('v')} = p[1]{then}"
        met = {number for pair in pairs for number in pair} | {number for numbers, _ in values for number in numbers}
        ids = sorted({EDGES.handle(catalogue.ids[number]) for number in met if number < catalogue.entities})
        asked: list[tuple[list[Any], str]] = [
            (
                entities,
                f"{start} {end} MATCH (a)-[f]->(b) WHERE ({EDGES.is_statement('f')}){then} RETURN 0 AS unit, {relation} AS row",
            ),
            (
                texts,
                f"{start} MATCH (a)-[f]->{EDGES.value('v')} WHERE {text} RETURN 0 AS unit, {attribute} AS row",
            ),
            (
                entities if catalogue.used[-1] else [],
                f"{start} {end} MATCH (a)-[m:{EDGES.member}]->(b) WHERE {EDGES.is_stated('m')} "
                f"RETURN -1 AS unit, {EDGES.membership('m', 'a', 'b')} AS row",
            ),
            (
                ids,
                f"UNWIND $pairs AS id MATCH {EDGES.at('e', 'id')} RETURN 0 AS unit, {{e: {EDGES.described('e')}}} AS row",
            ),
        ]
        rows: list[dict[str, Any]] = []
        # Apart, since a text of all of them takes long to plan, and most patterns need one or two.
        for wanted, text in asked:
            if wanted:
                rows += self._store.connection.read(text, {**compiler.parameters, **writer.parameters, "pairs": wanted})
        # Two maps of one name would take each other's place.
        assert GIVEN not in compiler.parameters
        for numbers, plan in values:
            handles = [EDGES.handle(catalogue.ids[number]) for number in numbers]
            text, parameters = statements_of(plan, self._store.name, attribute, handles, self._period)
            rows += self._store.connection.read(text, {**compiler.parameters, **parameters})
        return restore(rows, self._store.sources())
