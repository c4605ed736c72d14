"""Patterns on Neo4j: what the client keeps of a graph for them, and which terms a search goes by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.answer import pasted
from condgraph.cypher.layout.edges import EDGES
from condgraph.cypher.patterns.candidates import CandidateSearch
from condgraph.cypher.patterns.content import Neo4jContent
from condgraph.cypher.patterns.vectors import fetch, index_of, indexed_content, make_index
from condgraph.engine.bounds import shared
from condgraph.engine.errors import OptionError
from condgraph.engine.period import Period
from condgraph.engine.schema import Kinds
from condgraph.engine.values import Kind
from condgraph.patterns.matches import Matches
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.match import NamedCatalogue, match_remote
from condgraph.patterns.remote.terms import CatalogueTerms
from condgraph.vectors.encoders import Encoder, LexicalEncoder, encoder_of
from condgraph.vectors.stored import IndexReport, matching

if TYPE_CHECKING:
    from condgraph.cypher.store import Neo4jStore

_ENTITIES: Final = f"MATCH {EDGES.in_graph('e')} RETURN {EDGES.id('e')} AS id, {EDGES.name('e')} AS name, {EDGES.kind('e')} AS kind"
_TEXTS: Final = (
    f"MATCH {EDGES.value('v')} WHERE v.graph = $graph AND {EDGES.is_text('v')} RETURN DISTINCT {EDGES.text('v')} AS text"
)
_MEMBERSHIP: Final = (
    f"MATCH {EDGES.concept('c')} WHERE {EDGES.entity('c')[1]} "
    f"AND EXISTS {{ MATCH (c)<-[m:{EDGES.member}]-() WHERE {EDGES.is_stated('m')} }} "
    f"RETURN {EDGES.id('c')} AS id LIMIT 1"
)
_MEMBERS: Final = (
    f"UNWIND $ids AS id MATCH {EDGES.at('c', 'id')}<-[:{EDGES.member}]-{EDGES.entity('e')[0]} WHERE {EDGES.is_no_concept('e')} "
    f"RETURN DISTINCT {EDGES.id('e')} AS id"
)


class ContentCache:
    """What the client knows of one content of a graph: its catalogue, and terms by encoder."""

    def __init__(
        self, store: Neo4jStore, content: str, catalogue: Catalogue, attributes: tuple[str, ...], valued: frozenset[str]
    ) -> None:
        """`attributes` are the predicates with text values, `valued` the types of relationships
        that lead to values.
        """
        self.content, self.catalogue = content, catalogue
        self.terms: dict[tuple[str, int], CatalogueTerms] = {}
        orders = {ident: order for ident in catalogue.ids if (order := EDGES.text_order(ident)) != ident}
        long = {EDGES.key(text): text for text in catalogue.texts if EDGES.key(text) != text}
        self.place = Neo4jContent(store, attributes, valued, orders, long)


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
        """The subgraphs that are nearest to a pattern, as a snapshot of the graph (of a period) gives them.

        With `exact=False` the candidates of names come from the server's vector index, and the
        answer is marked approximate.
        """
        return self._store.steady(lambda: self._match(program, encoder, limit, exact, period, options))

    def index(self, encoder: Encoder | str, on_progress: Callable[[int, int], None] | None) -> IndexReport:
        """Keep the vectors of the graph on the server, and make its vector index."""
        kept = self.kept()
        kept.terms.clear()
        self._near.clear()
        return make_index(self._store.connection, self._store.name, kept.content, kept.catalogue, encoder, on_progress)

    def _match(
        self,
        program: Any,
        encoder: Encoder | str | None,
        limit: int | None,
        exact: bool,
        period: Period | None,
        options: dict[str, Any],
    ) -> Matches:
        if not exact:
            near = self._near_to(encoder)
            return near.match(program, limit=limit, **options)
        kept = self.kept()
        terms = self._terms(kept, encoder)
        names = NamedCatalogue(kept.catalogue, lambda concepts: self._members(kept, concepts))
        found, tally = match_remote(
            kept.place.at(period), names, kept.catalogue, terms, program, limit=limit, period=period, **options
        )
        found.cypher_queries, found.pasted = tuple(tally.joins), pasted
        return found

    # -- what the client knows ---------------------------------------------------------------------

    def kept(self) -> ContentCache:
        """The catalogue of the graph as it is now; fetched again where its content has changed."""
        content = self._store.content
        if content not in self._kept:
            self._kept.clear()
        found: ContentCache = shared(self._kept, content, lambda: self._fetch(content))
        return found

    def _fetch(self, content: str) -> ContentCache:
        entities = [(row["id"], row["name"], row["kind"]) for row in self._read(_ENTITIES)]
        texts = [row["text"] for row in self._read(_TEXTS)]
        attributes, predicates, valued = self._predicates()
        catalogue = Catalogue(entities, texts, predicates, memberships=bool(self._read(_MEMBERSHIP)), values=self._values())
        return ContentCache(self._store, content, catalogue, attributes, valued)

    def _predicates(self) -> tuple[tuple[str, ...], dict[str, bool], frozenset[str]]:
        """The predicates with text values, all with whether they have edges, and the types of
        relationships to values.
        """
        schema = self._store.schema
        attributes = tuple(name for name in schema.attributes if any(kind is Kind.TEXT for kind, _ in schema.attribute_kinds(name)))
        used = {*schema.relations, *attributes}
        predicates = {name: name in used for name in {*schema.relations, *schema.attributes, *schema.qualifiers}}
        return attributes, predicates, frozenset(map(EDGES.type_of, schema.attributes))

    def _values(self) -> dict[str, Kinds]:
        schema = self._store.schema
        return {name: schema.attribute_kinds(name) for name in schema.attributes}

    def _encoder(self, encoder: Encoder | str | None) -> tuple[Encoder, bool]:
        """The encoder to ask with, and whether the server has its vectors; raises
        `EncoderMismatchError`, naming both.
        """
        about = index_of(self._store.connection, self._store.name)
        if about is None or (encoder is not None and isinstance(encoder_of(encoder), LexicalEncoder)):
            asked = encoder_of("lexical" if encoder is None else encoder)
            return asked, about is not None and (about.id, about.dimension) == (asked.id, asked.dimension)
        if encoder is None and not about.spec:
            raise OptionError(f"the index was made by an encoder of the caller's own, {about}", hint="give it as encoder=")
        return matching(about, encoder_of(about.spec if encoder is None else encoder)), True

    def _terms(self, kept: ContentCache, encoder: Encoder | str | None) -> CatalogueTerms:
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

    def _near_to(self, encoder: Encoder | str | None) -> CandidateSearch:
        """What is asked of the server's index; raises `OptionError` where there is none by this
        encoder.
        """
        asked, content = ("", 0) if encoder is None else _identity(encoder), self._store.content
        found = self._near.get(asked)
        if found is None or found.content != content:
            one, held = self._encoder(encoder)
            if not held:
                raise OptionError(
                    f"graph {self._store.name!r} has no vector index by {one.id!r} on the server",
                    hint="make it with graph.index(...), or `condgraph index`, or ask with exact=True",
                )
            attributes, predicates, valued = self._predicates()
            place = Neo4jContent(self._store, attributes, valued, {}, {})
            current = indexed_content(self._store.connection, self._store.name) == content
            found = self._near[asked] = CandidateSearch(
                self._store, place, content, one, predicates,
                memberships=bool(self._read(_MEMBERSHIP)), texts=bool(attributes), current=current, values=self._values(),
            )  # fmt: skip
        return found

    def _members(self, kept: ContentCache, concepts: tuple[int, ...]) -> NDArray[np.int32]:
        rows = self._read(_MEMBERS, ids=[EDGES.handle(kept.catalogue.ids[number]) for number in concepts])
        return np.unique(np.array([kept.catalogue.identified(row["id"]) for row in rows], np.int32))

    def _read(self, text: str, **parameters: Any) -> list[dict[str, Any]]:
        return self._store.connection.read(text, {**EDGES.parameters(self._store.name), **parameters})


def _identity(encoder: Encoder | str) -> tuple[str, int]:
    """The key under which the terms of an encoder are kept; an encoder given by name is not made
    for it.
    """
    return (encoder, -1) if isinstance(encoder, str) else (encoder.id, encoder.dimension)
