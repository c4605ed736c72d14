"""Matches patterns on Neo4j, with the catalogue and terms of each graph cached in the client, or with candidates from Neo4j's
vector index: then the data fetched does not grow with the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.cypher.layout import vectors
from condgraph.cypher.layout.schema import CONCEPT, CONDGRAPH, ENTITY, VALUE, index_key
from condgraph.cypher.patterns.vectors import LEXICAL, fetch, index_of, indexed_content, make_index
from condgraph.engine.bounds import shared
from condgraph.engine.errors import OptionError
from condgraph.engine.period import Period
from condgraph.languages.pattern.pattern import Condition
from condgraph.patterns.distance.domains import Domain
from condgraph.patterns.distance.near_terms import CANDIDATES, NearTerms
from condgraph.patterns.distance.terms import Terms
from condgraph.patterns.graph import Costs, Numbers
from condgraph.patterns.matches import Matches
from condgraph.patterns.remote.catalogue import Catalogue, Tally
from condgraph.patterns.remote.match import match_remote
from condgraph.patterns.remote.near_catalogue import NearCatalogue
from condgraph.patterns.remote.planned import PlannedPatterns, Statements, edged_predicates, key_of
from condgraph.patterns.remote.terms import CatalogueTerms, PredicateTerms, exact_distances
from condgraph.vectors.encoders import Encoder, LexicalEncoder, encoder_of
from condgraph.vectors.stored import IndexReport, OnProgress, matching

if TYPE_CHECKING:
    from condgraph.cypher.store import Neo4jStore


#: Factor by which more names are requested than candidates wanted, since the index ranks by coarser
#: distances.
_WIDER: Final = 2
#: Numbers of nearest names among which types are looked for, in turn.
_TYPES: Final = (256, 4096, 65_536)
#: Most names from which an error message suggests similar ones.
_SOME: Final = 1 << 16
_ITSELF: Final = vectors.of_kind("node", "'node'", "= $key")
#: The names near a vector, and the text itself, which an index may miss.
_NEAR: Final = (
    f"CALL () {{ CALL db.index.vector.queryNodes($name, $k, $vector) YIELD node RETURN node UNION {_ITSELF} RETURN node }} "
)
#: The text itself alone, for a text whose vector is zero.
_SAME: Final = f"{_ITSELF} "
_KEY: Final = vectors.key("node")
_NODE_COLUMNS: Final = f"{vectors.text('node')}, {_KEY}, {vectors.packed('node')}"
_ABOUT: Final = f"{CONDGRAPH.id('e')}, {CONDGRAPH.name('e')}, {CONDGRAPH.kind('e')}"
_ENTITIES: Final = f"MATCH {CONDGRAPH.entity('e')[0]} WHERE"
_CONCEPTS: Final = f"MATCH (c:{CONCEPT}) WHERE"
_TEXTS: Final = f"MATCH (v:{VALUE}) WHERE"
_NODES: Final = (
    f"WITH node, COLLECT {{ {_ENTITIES} {CONDGRAPH.named('e', f'= {_KEY}')} RETURN [{_ABOUT}] }} AS here, "
    f"EXISTS {{ {_TEXTS} v.graph = $graph AND v.key = {_KEY} AND v.kind = 'text' }} AS text RETURN {_NODE_COLUMNS}, here, text"
)
_TYPES_NEAR: Final = f"{_CONCEPTS} {CONDGRAPH.named('c', f'= {_KEY}')} RETURN {_NODE_COLUMNS}, {CONDGRAPH.id('c')}"
_ANY_CONCEPT: Final = f"{_CONCEPTS} {CONDGRAPH.named('c', 'IS NOT NULL')} RETURN {CONDGRAPH.id('c')} LIMIT 1"
_NAMED: Final = f"{_ENTITIES} {CONDGRAPH.named('e', '= $key')} RETURN {_ABOUT}"
_TEXT: Final = f"{_TEXTS} v.graph = $graph AND v.key = $key AND v.kind = 'text' RETURN v.text LIMIT 1"
_ENTITY: Final = f"UNWIND $ids AS id MATCH (e:{ENTITY} {{graph: $graph, handle: id}}) RETURN {_ABOUT}"
_NAMES: Final = f"{_ENTITIES} {CONDGRAPH.named('e', 'IS NOT NULL')} RETURN {CONDGRAPH.name('e')} LIMIT $most"


class CandidateSearch:
    """The predicates of one content of a graph, with their vectors, for searches in an index by one encoder."""

    def __init__(
        self, store: Neo4jStore, content: str, encoder: Encoder, predicates: Mapping[str, bool], *, memberships: bool, current: bool
    ) -> None:
        """`current` tells that the index was built from this content."""
        self.content, self.encoder = content, encoder
        self._store, self._place, self._predicates = store, Statements(store, store), predicates
        self._memberships, self._current = memberships, current
        self._values = {name: store.schema.attribute_kinds(name) for name in store.schema.attributes}
        self._terms = PredicateTerms(self._catalogue(Tally()), encoder)
        self.has_types = bool(store.connection.values(_ANY_CONCEPT, {"graph": store.name}))

    def _catalogue(self, tally: Tally) -> NearCatalogue:
        def reading(ids: Sequence[str]) -> dict[str, tuple[str, int]]:
            return {entity_id: (name, kind) for entity_id, name, kind in self.ask(tally, _ENTITY, ids=list(map(index_key, ids)))}

        return NearCatalogue(self._predicates, reading, memberships=self._memberships, values=self._values)

    def ask(self, tally: Tally, text: str, **parameters: Any) -> list[list[Any]]:
        """Return the rows of a query, and count them."""
        rows = self._store.connection.values(text, {"graph": self._store.name, **parameters})
        tally.queries, tally.rows = tally.queries + 1, tally.rows + len(rows)
        return rows

    def match(self, program: Any, *, limit: int | None, **options: Any) -> Matches:
        """Match a pattern against the candidates that the index finds."""
        tally = Tally()
        k, catalogue = options.get("k_nodes"), self._catalogue(tally)
        width = CANDIDATES if not isinstance(k, int) else max(_WIDER * k, CANDIDATES)
        search = _Search(self, catalogue, tally, width)
        warnings, name = list[str](), vectors.index_name(self._store.name)
        if not self._current:
            warnings.append(
                f"{vectors.index_name(self._store.name)} is of an earlier state of the graph: names since are not in it"
            )
        exact = self._terms
        terms = NearTerms(exact.id, search.candidates, exact.predicates, exact.passed_over, exact.prepare, exact.every)
        return match_remote(
            self._place, catalogue, terms, program, names=search, limit=limit,
            index=f"{name} of Neo4j", tally=tally, noted=warnings, **options,
        )  # fmt: skip

    def near(self, search: _Search, text: str, query: str, k: int) -> tuple[list[list[Any]], Costs]:
        """Return the rows of `query` for the k names near a text, and their exact distances.

        A row begins with the text, the key and the vector of a name.
        """
        vector = self._terms.vector(text)
        finder = LexicalEncoder(min(self.encoder.dimension, LEXICAL)) if isinstance(self.encoder, LexicalEncoder) else None
        query_vector = vector if finder is None else finder.encode([text])[0]
        parameters = {"name": vectors.index_name(self._store.name), "k": k, "vector": query_vector.tolist(), "key": index_key(text)}
        rows = self.ask(search.tally, (_NEAR if query_vector.any() else _SAME) + query, **parameters)
        size = 4 * self.encoder.dimension
        vector_of = {row[0]: np.frombuffer(row[2], "<f4") for row in rows if row[2] is not None and len(row[2]) == size}
        return rows, exact_distances(self.encoder, vector, [row[0] for row in rows], vector_of)


class _Search:
    """One search: looks up names for pricing (`patterns.priced.NamedNodes`), and candidates among the nodes read so far."""

    def __init__(self, near: CandidateSearch, catalogue: NearCatalogue, tally: Tally, wanted: int) -> None:
        self._near, self._catalogue, self.tally, self._wanted = near, catalogue, tally, wanted
        self.holding = catalogue.holding
        self.graph, self.predicate_names, self.has_types = catalogue.graph, catalogue.predicate_names, near.has_types

    def candidates(self, text: str) -> tuple[Numbers, Costs]:
        """Return the nodes whose names are near a text, ascending, with their distances."""
        rows, distances = self._near.near(self, text, _NODES, self._wanted)
        distance_of: dict[int, int] = {}
        for (name, _, _, entities, is_text), distance in zip(rows, distances.tolist(), strict=True):
            self._catalogue.learn(map(tuple, entities))
            distance_of.update((self._catalogue.identified(ident), distance) for ident, _, _ in entities)
            if is_text:
                distance_of[self._catalogue.text(name)] = distance
        numbers = sorted(distance_of)
        return np.array(numbers, np.int32), np.array([distance_of[number] for number in numbers], np.int64)

    def of_types(self, hint: str, k: int, terms: Terms, warnings: list[str]) -> Domain:
        """Return the domain of the k types nearest to a hint; the server knows their members."""
        domain = Domain()
        for width in _TYPES:
            rows, distances = self._near.near(self, hint, _TYPES_NEAR, max(width, _WIDER * k))
            if len(rows) >= k:
                break
        if not rows:
            warnings.append(f"no type is among the {_TYPES[-1]:,} names nearest to {hint!r}: the hint does nothing")
            return domain
        ranked = sorted((distance, row[3]) for row, distance in zip(rows, distances.tolist(), strict=True))
        domain.types = tuple(ident for _, ident in ranked[:k])
        return domain

    def identified(self, ident: str) -> int:
        """Return the node of an entity's id, or -1."""
        rows = self._near.ask(self.tally, _ENTITY, ids=[index_key(ident)])
        self._catalogue.learn(map(tuple, rows))
        return self._catalogue.identified(ident) if rows else -1

    def named(self, name: str) -> list[int]:
        """Return all nodes with a name, texts included."""
        rows = self._near.ask(self.tally, _NAMED, key=index_key(name))
        self._catalogue.learn(map(tuple, rows))
        nodes = [self._catalogue.identified(row[0]) for row in rows]
        if self._near.ask(self.tally, _TEXT, key=index_key(name)):
            nodes.append(self._catalogue.text(name))
        return nodes

    def holders(self, condition: Condition) -> None:
        """Return None: the server looks for values itself."""

    def some_names(self) -> Sequence[str]:
        """Return names of entities, for a message."""
        return [row[0] for row in self._near.ask(self.tally, _NAMES, most=_SOME)]


# -- patterns on Neo4j -----------------------------------------------------------------------------


_MEMBERSHIP: Final = (
    f"MATCH (c:{CONCEPT}) WHERE {CONDGRAPH.entity('c')[1]} "
    f"AND EXISTS {{ MATCH (c)<-[m:MEMBER_OF]-() WHERE size(m.sources) > 0 }} "
    f"RETURN {CONDGRAPH.id('c')} AS id LIMIT 1"
)


class ServerVectors:
    """The vectors of a graph's names on the server. See `patterns.remote.vectors.NameVectors`."""

    def __init__(self, store: Neo4jStore, content: str) -> None:
        self._connection, self._graph, self._content = store.connection, store.name, content

    def encoder(self, encoder: Encoder | str | None) -> tuple[Encoder, bool]:
        """Return the encoder to use, and whether the server has its vectors; raises `EncoderMismatchError` naming both."""
        index = index_of(self._connection, self._graph)
        if index is None or (encoder is not None and isinstance(encoder_of(encoder), LexicalEncoder)):
            chosen = encoder_of("lexical" if encoder is None else encoder)
            return chosen, index is not None and (index.id, index.dimension) == (chosen.id, chosen.dimension)
        if encoder is None and not index.spec:
            raise OptionError(f"the index was made by an encoder of the caller's own, {index}", hint="give it as encoder=")
        return matching(index, encoder_of(index.spec if encoder is None else encoder)), True

    def terms(self, catalogue: Catalogue, encoder: Encoder | str | None) -> CatalogueTerms:
        """See `NameVectors`."""
        chosen, stored = self.encoder(encoder)
        if isinstance(chosen, LexicalEncoder):
            return CatalogueTerms.lexical(catalogue, chosen)
        vector_of = fetch(self._connection, self._graph, chosen.dimension) if stored else {}
        return CatalogueTerms.dense(catalogue, chosen, vector_of)

    def index(self, catalogue: Catalogue, encoder: Encoder | str, on_progress: OnProgress | None) -> IndexReport:
        """See `NameVectors`."""
        return make_index(self._connection, self._graph, self._content, catalogue, encoder, on_progress)


class ContentPatterns(PlannedPatterns):
    """Patterns on one content of a graph."""

    def __init__(self, store: Neo4jStore, content: str) -> None:
        super().__init__(store, ServerVectors(store, content), store)
        self.counts = store.counts()


class Neo4jPatterns:
    """Patterns on one graph of a Neo4j database."""

    def __init__(self, store: Neo4jStore) -> None:
        self._store = store
        self._kept: dict[str, Any] = {}
        self._near: dict[tuple[str, int], CandidateSearch] = {}

    def match(
        self,
        program: Any,
        *,
        encoder: Encoder | str | None = None,
        limit: int | None = None,
        exact: bool = True,
        period: Period | None = None,
        **options: Any,
    ) -> Matches:
        """Match a pattern; the result equals that on a snapshot of the graph (in a period).

        With `exact=False`, candidates by name come from the server's vector index, and the answer is marked approximate.
        """

        def ask() -> Matches:
            if exact:
                return self._now().match(program, encoder=encoder, limit=limit, period=period, **options)
            return self._near_to(encoder).match(program, limit=limit, **options)

        return self._store.steady(ask)

    def index(self, encoder: Encoder, on_progress: OnProgress | None) -> IndexReport:
        """Store the vectors of the graph on the server, and create its vector index."""
        self._near.clear()
        return self._now().index(encoder, on_progress)

    def _now(self) -> ContentPatterns:
        """Return the patterns on the present content of the graph, made anew if the content has changed."""
        content = self._store.content
        if content not in self._kept:
            self._kept.clear()
        patterns: ContentPatterns = shared(self._kept, content, lambda: ContentPatterns(self._store, content))
        return patterns

    def _near_to(self, encoder: Encoder | str | None) -> CandidateSearch:
        """Return the search in the server's index; raises `OptionError` if it has none by this encoder."""
        key, content = key_of(encoder), self._store.content
        search = self._near.get(key)
        if search is None or search.content != content:
            chosen, stored = ServerVectors(self._store, content).encoder(encoder)
            if not stored:
                raise OptionError(
                    f"graph {self._store.name!r} has no vector index by {chosen.id!r} on the server",
                    hint="make it with graph.index(...), or `condgraph index`, or ask with exact=True",
                )
            current = indexed_content(self._store.connection, self._store.name) == content
            memberships = bool(self._store.connection.values(_MEMBERSHIP, CONDGRAPH.parameters(self._store.name)))
            search = self._near[key] = CandidateSearch(
                self._store, content, chosen, edged_predicates(self._store.schema), memberships=memberships, current=current
            )
        return search
