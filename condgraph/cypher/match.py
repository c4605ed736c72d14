"""Patterns on Neo4j: what the client keeps of a graph for them, the joins as Cypher, and the statements of solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.compiler import Compiler, FactRows
from condgraph.cypher.layout import index_key, text_order, type_of
from condgraph.cypher.match_parts import is_edge
from condgraph.cypher.match_text import keys_of, render
from condgraph.cypher.paths import described
from condgraph.cypher.vectors import LEXICAL, fetch, index_name, index_of, make_index, nearest
from condgraph.cypher.witness import _record, restore
from condgraph.engine.errors import OptionError
from condgraph.engine.linking.encoder import Encoder, LexicalEncoder
from condgraph.engine.linking.encoders import encoder_of
from condgraph.engine.linking.graph_vectors import matching
from condgraph.engine.linking.kept_vectors import IndexReport
from condgraph.engine.search.distances import Terms
from condgraph.engine.search.join import Clock
from condgraph.engine.search.near_terms import CANDIDATES, NearTerms
from condgraph.engine.search.remote import Catalogue, PartPlan, Tally
from condgraph.engine.search.remote_match import CatalogueTerms, NamedCatalogue, Parts, match_remote
from condgraph.engine.search.result import Matches
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.cypher.store import Neo4jStore

_ENTITIES: Final = "MATCH (e:Entity {graph: $graph}) RETURN e.id AS id, e.name AS name, e.kind AS kind"
_TEXTS: Final = "MATCH (v:Value) WHERE v.graph = $graph AND v.kind = 'text' RETURN DISTINCT v.text AS text"
_MEMBERSHIP: Final = (
    "MATCH (c:Concept) WHERE c.graph = $graph AND EXISTS { MATCH (c)<-[m:MEMBER_OF]-() WHERE size(m.sources) > 0 } "
    "RETURN c.id AS id LIMIT 1"
)
_MEMBERS: Final = (
    "UNWIND $ids AS id MATCH (c:Entity {graph: $graph, id: id})<-[:MEMBER_OF]-(e:Entity) WHERE e.kind <> 1 "
    "RETURN DISTINCT e.id AS id"
)


class Kept:
    """What the client knows of one content of a graph: its catalogue, and terms by encoder."""

    def __init__(self, content: str, catalogue: Catalogue, attributes: tuple[str, ...], valued: frozenset[str]) -> None:
        """`attributes` are the predicates with text values, `valued` the types of relationships that lead to values."""
        self.content, self.catalogue, self.attributes, self.valued = content, catalogue, attributes, valued
        self.terms: dict[tuple[str, int], CatalogueTerms] = {}
        #: Ids that the server would put in another order than code points do, and what they are ordered by.
        self.orders = {ident: order for ident in catalogue.ids if (order := text_order(ident)) != ident}
        self.long = {index_key(text): text for text in catalogue.texts if index_key(text) != text}


class Neo4jPatterns:
    """Patterns on one graph of a Neo4j database."""

    def __init__(self, store: Neo4jStore) -> None:
        self._store = store
        self._kept: Kept | None = None

    def match(
        self,
        program: Any,
        *,
        encoder: Encoder | str | None = None,
        timeout: float | None = None,
        limit: int | None = None,
        cancelled: Event | None = None,
        exact: bool = True,
        **options: Any,
    ) -> Matches:
        """The subgraphs that are nearest to a pattern, as a snapshot of the graph gives them.

        With `exact=False` the candidates of names come from the server's vector index, and the answer is marked approximate.
        """
        return self._store.steady(lambda: self._match(program, encoder, timeout, limit, cancelled, exact, options))

    def index(self, encoder: Encoder | str, told: Callable[[int, int], None] | None) -> IndexReport:
        """Keep the vectors of the graph on the server, and make its vector index."""
        kept = self.kept()
        kept.terms.clear()
        return make_index(self._store.connection, self._store.name, kept.content, kept.catalogue, encoder, told)

    def _match(
        self,
        program: Any,
        encoder: Encoder | str | None,
        timeout: float | None,
        limit: int | None,
        cancelled: Event | None,
        exact: bool,
        options: dict[str, Any],
    ) -> Matches:
        kept = self.kept()
        terms: Terms = self._terms(kept, encoder)
        index = ""
        if not exact:
            terms, index = self._near(kept, encoder, options.get("k_nodes"), timeout, cancelled)
        names = NamedCatalogue(kept.catalogue, lambda concepts: self._members(kept, concepts))
        found, tally = match_remote(
            self, names, kept.catalogue, terms, program, timeout=timeout, limit=limit, cancelled=cancelled, index=index, **options
        )
        found.cypher = "\n;\n".join(dict.fromkeys(tally.texts))
        return found

    # -- what the client knows ----------------------------------------------------------------------------------------------

    def kept(self) -> Kept:
        """The catalogue of the graph as it is now; fetched again where its content has changed."""
        content, kept = self._store.content, self._kept
        if kept is None or kept.content != content:
            kept = self._kept = self._fetch(content)
        return kept

    def _fetch(self, content: str) -> Kept:
        schema = self._store.schema
        entities = [(row["id"], row["name"], row["kind"]) for row in self._read(_ENTITIES)]
        texts = [row["text"] for row in self._read(_TEXTS)]
        attributes = tuple(name for name in schema.attributes if any(kind is Kind.TEXT for kind, _ in schema.attribute_kinds(name)))
        used = {*schema.relations, *attributes}
        predicates = {name: name in used for name in {*schema.relations, *schema.attributes, *schema.qualifiers}}
        catalogue = Catalogue(entities, texts, predicates, memberships=bool(self._read(_MEMBERSHIP)))
        return Kept(content, catalogue, attributes, frozenset(map(type_of, schema.attributes)))

    def _encoder(self, encoder: Encoder | str | None) -> tuple[Encoder, bool]:
        """The encoder to ask with, and whether the server has its vectors; raises `EncoderMismatchError`, naming both."""
        about = index_of(self._store.connection, self._store.name)
        if about is None or (encoder is not None and isinstance(encoder_of(encoder), LexicalEncoder)):
            asked = encoder_of("lexical" if encoder is None else encoder)
            return asked, about is not None and (about.id, about.dimension) == (asked.id, asked.dimension)
        if encoder is None and not about.spec:
            raise OptionError(f"the index was made by an encoder of the caller's own, {about}", hint="give it as encoder=")
        return matching(about, encoder_of(about.spec if encoder is None else encoder)), True

    def _terms(self, kept: Kept, encoder: Encoder | str | None) -> CatalogueTerms:
        asked = ("", 0) if encoder is None else _identity(encoder)
        found = kept.terms.get(asked)
        if found is None:
            one, held = self._encoder(encoder)
            found = kept.terms.get((one.id, one.dimension))
            if found is None and isinstance(one, LexicalEncoder):
                found = CatalogueTerms.lexical(kept.catalogue, one)
            elif found is None:
                known = fetch(self._store.connection, self._store.name, one.dimension) if held else {}
                found = CatalogueTerms.dense(kept.catalogue, one, known)
            kept.terms[asked] = kept.terms[one.id, one.dimension] = found
        return found

    def _near(
        self, kept: Kept, encoder: Encoder | str | None, k: int | None, timeout: float | None, cancelled: Event | None
    ) -> tuple[NearTerms, str]:
        """Terms of the candidates that the server's index finds, and the index by name."""
        one, held = self._encoder(encoder)
        if not held:
            raise OptionError(
                f"graph {self._store.name!r} has no vector index by {one.id!r} on the server",
                hint="make it with graph.index(...), or `condgraph index`, or ask with exact=True",
            )
        exact, catalogue = self._terms(kept, encoder), kept.catalogue
        finder = LexicalEncoder(min(one.dimension, LEXICAL)) if isinstance(one, LexicalEncoder) else None

        def candidates(text: str) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
            vector = exact.vector(text) if finder is None else finder.encode([text])[0]
            names = nearest(self._store.connection, self._store.name, vector, k or CANDIDATES, timeout=timeout, cancelled=cancelled)
            nodes = np.unique(np.array([number for name in names for number in catalogue.named(name)], np.int32))
            return nodes, exact.distances(text, nodes)

        return NearTerms(exact.id, candidates, exact.predicates, exact.passed_over), f"{index_name(self._store.name)} of Neo4j"

    def _members(self, kept: Kept, concepts: tuple[int, ...]) -> NDArray[np.int32]:
        rows = self._read(_MEMBERS, ids=[kept.catalogue.ids[number] for number in concepts])
        return np.unique(np.array([kept.catalogue.identified(row["id"]) for row in rows], np.int32))

    def _read(self, text: str, **parameters: Any) -> list[dict[str, Any]]:
        return self._store.connection.read(text, {"graph": self._store.name, **parameters})

    def parts(self, catalogue: Catalogue, clock: Clock, tally: Tally) -> Parts:
        """The joins of a search, as Cypher queries."""
        return Parts(self, catalogue, clock, tally)

    # -- what the server does -----------------------------------------------------------------------------------------------

    def rows(
        self, plan: PartPlan, catalogue: Catalogue, tally: Tally, timeout: float | None, cancelled: Event | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The solutions of a part: sums, and numbers of nodes."""
        kept = self._kept
        assert kept is not None
        text, parameters = render(plan, self._store.name, kept.attributes, kept.valued, kept.orders)
        tally.queries += 1
        tally.texts.append(text)
        records = self._store.connection.values(text, parameters, timeout=timeout, cancelled=cancelled)
        # With a limit all rows come as one list: a record for each costs the driver four times what the row costs.
        found = [record[0] for record in records] if plan.limit is None else records[0][0]
        totals = np.array([row[0] for row in found], np.int64)
        if not found:
            return totals, np.empty((0, len(plan.nodes)), np.int32)
        columns = []
        for node, place in zip(plan.nodes, keys_of(plan, kept.orders), strict=True):
            if plan.sorts[node] == "entity":
                columns.append([catalogue.identified(row[place]) for row in found])
            else:
                columns.append([catalogue.text(kept.long.get(row[place], row[place])) for row in found])
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
        relation = _record(compiler, FactRows([], None, [], "f", "a", "b", "relation", "subject"))
        attribute = _record(compiler, FactRows([], None, [], "f", "a", "v", "attribute", "subject"))
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


def _identity(encoder: Encoder | str) -> tuple[str, int]:
    """What the terms of an encoder are kept by; one that is named is not made for it."""
    return (encoder, -1) if isinstance(encoder, str) else (encoder.id, encoder.dimension)
