"""Patterns on Neo4j: what the client keeps of a graph for them, and which terms a search goes by."""

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
    """What the client knows of one content of a graph: its catalogue, and terms by encoder."""

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
        names = NamedCatalogue(kept.catalogue, lambda types: kept.place.of_types(kept.catalogue, types))
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
        found: ContentCache = shared(self._kept, content, lambda: ContentCache(self._store, content))
        return found

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
            current = indexed_content(self._store.connection, self._store.name) == content
            memberships = bool(self._store.connection.values(_MEMBERSHIP, EDGES.parameters(self._store.name)))
            found = self._near[asked] = CandidateSearch(
                self._store, content, one, edged_predicates(self._store.schema), memberships=memberships, current=current
            )
        return found


def _identity(encoder: Encoder | str) -> tuple[str, int]:
    """The key under which the terms of an encoder are kept; an encoder given by name is not made
    for it.
    """
    return (encoder, -1) if isinstance(encoder, str) else (encoder.id, encoder.dimension)
