"""Matches patterns on Neo4j, with the catalogue and terms of each graph cached in the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.answer import pasted
from condgraph.cypher.layout.edges import EDGES
from condgraph.cypher.patterns.candidates import CandidateSearch
from condgraph.cypher.patterns.edges import Neo4jStatements
from condgraph.cypher.patterns.vectors import fetch, index_of, indexed_content, make_index
from condgraph.engine.bounds import shared
from condgraph.engine.errors import OptionError
from condgraph.engine.period import Period
from condgraph.patterns.matches import Matches
from condgraph.patterns.remote.match import NamedCatalogue, match_remote
from condgraph.patterns.remote.planned import edged_predicates
from condgraph.patterns.remote.terms import CatalogueTerms
from condgraph.vectors.encoders import Encoder, LexicalEncoder, encoder_of
from condgraph.vectors.stored import IndexReport, matching

if TYPE_CHECKING:
    from condgraph.cypher.store import Neo4jStore

_MEMBERSHIP: Final = (
    f"MATCH {EDGES.concept('c')} WHERE {EDGES.entity('c')[1]} "
    f"AND EXISTS {{ MATCH (c)<-[m:{EDGES.member}]-() WHERE {EDGES.is_stated('m')} }} "
    f"RETURN {EDGES.id('c')} AS id LIMIT 1"
)


class ContentCache:
    """What is cached for one content of a graph: its catalogue, and terms by encoder."""

    def __init__(self, store: Neo4jStore, content: str) -> None:
        self.content, self.place = content, Neo4jStatements(store)
        self.catalogue = self.place.catalogue_now()
        self.terms: dict[tuple[str, int], CatalogueTerms] = {}


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
        return self._store.steady(lambda: self._match(program, encoder, limit, exact, period, options))

    def index(self, encoder: Encoder | str, on_progress: Callable[[int, int], None] | None) -> IndexReport:
        """Store the vectors of the graph on the server, and create its vector index."""
        cache = self.kept()
        cache.terms.clear()
        self._near.clear()
        return make_index(self._store.connection, self._store.name, cache.content, cache.catalogue, encoder, on_progress)

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
        cache = self.kept()
        terms = self._terms(cache, encoder)
        names = NamedCatalogue(cache.catalogue, lambda types: cache.place.of_types(cache.catalogue, types))
        matches, tally = match_remote(
            cache.place.at(period), names, cache.catalogue, terms, program, limit=limit, period=period, **options
        )
        matches.cypher_queries, matches.pasted = tuple(tally.joins), pasted
        return matches

    # -- what the client knows ---------------------------------------------------------------------

    def kept(self) -> ContentCache:
        """Return the cache for the present content of the graph, built anew if the content has changed."""
        content = self._store.content
        if content not in self._kept:
            self._kept.clear()
        cache: ContentCache = shared(self._kept, content, lambda: ContentCache(self._store, content))
        return cache

    def _encoder(self, encoder: Encoder | str | None) -> tuple[Encoder, bool]:
        """Return the encoder to use, and whether the server has its vectors; raises `EncoderMismatchError` naming both."""
        about = index_of(self._store.connection, self._store.name)
        if about is None or (encoder is not None and isinstance(encoder_of(encoder), LexicalEncoder)):
            chosen = encoder_of("lexical" if encoder is None else encoder)
            return chosen, about is not None and (about.id, about.dimension) == (chosen.id, chosen.dimension)
        if encoder is None and not about.spec:
            raise OptionError(f"the index was made by an encoder of the caller's own, {about}", hint="give it as encoder=")
        return matching(about, encoder_of(about.spec if encoder is None else encoder)), True

    def _terms(self, kept: ContentCache, encoder: Encoder | str | None) -> CatalogueTerms:
        key = ("", 0) if encoder is None else _identity(encoder)
        terms = kept.terms.get(key)
        if terms is None:
            chosen, stored = self._encoder(encoder)
            terms = kept.terms.get((chosen.id, chosen.dimension))
            if terms is None and isinstance(chosen, LexicalEncoder):
                terms = CatalogueTerms.lexical(kept.catalogue, chosen)
            elif terms is None:
                known = fetch(self._store.connection, self._store.name, chosen.dimension) if stored else {}
                terms = CatalogueTerms.dense(kept.catalogue, chosen, known)
            kept.terms[key] = kept.terms[chosen.id, chosen.dimension] = terms
        return terms

    def _near_to(self, encoder: Encoder | str | None) -> CandidateSearch:
        """Return the search in the server's index; raises `OptionError` if it has none by this encoder."""
        key, content = ("", 0) if encoder is None else _identity(encoder), self._store.content
        search = self._near.get(key)
        if search is None or search.content != content:
            chosen, stored = self._encoder(encoder)
            if not stored:
                raise OptionError(
                    f"graph {self._store.name!r} has no vector index by {chosen.id!r} on the server",
                    hint="make it with graph.index(...), or `condgraph index`, or ask with exact=True",
                )
            current = indexed_content(self._store.connection, self._store.name) == content
            memberships = bool(self._store.connection.values(_MEMBERSHIP, EDGES.parameters(self._store.name)))
            search = self._near[key] = CandidateSearch(
                self._store, content, chosen, edged_predicates(self._store.schema), memberships=memberships, current=current
            )
        return search


def _identity(encoder: Encoder | str) -> tuple[str, int]:
    """Return the cache key of an encoder; one given by name is not loaded for it."""
    return (encoder, -1) if isinstance(encoder, str) else (encoder.id, encoder.dimension)
