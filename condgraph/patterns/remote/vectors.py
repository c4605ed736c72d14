"""Where the terms of patterns on stores come from that keep no vectors: names are encoded here, and their vectors kept on
this machine (`vectors.stored.VectorCache`).
"""

from __future__ import annotations

import time

from condgraph.engine.errors import OptionError
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.terms import CatalogueTerms
from condgraph.vectors.encoders import Encoder, LexicalEncoder, encoder_of
from condgraph.vectors.nearest import DenseVectors
from condgraph.vectors.stored import IndexReport, OnProgress, VectorCache, matching


class CachedVectors:
    """The vectors of a graph in a store elsewhere, kept on this machine."""

    def __init__(self, store: str, graph: str) -> None:
        self._cache = VectorCache(store, graph)

    def terms(self, catalogue: Catalogue, encoder: Encoder | str | None) -> CatalogueTerms:
        """Terms by an encoder, by that of the index made here, or by the lexical one."""
        about = self._cache.index
        asked = None if encoder is None else encoder_of(encoder)
        if about is not None and not isinstance(asked, LexicalEncoder):
            if asked is None and not about.spec:
                raise OptionError(f"the index was made by an encoder of the caller's own, {about}", hint="give it as encoder=")
            asked = matching(about, encoder_of(about.spec) if asked is None else asked)
        if asked is None:
            asked = encoder_of("lexical")
        if isinstance(asked, LexicalEncoder):
            return CatalogueTerms.lexical(catalogue, asked)
        return self._dense(catalogue, asked, None)[0]

    def index(self, catalogue: Catalogue, encoder: Encoder, on_progress: OnProgress | None) -> IndexReport:
        """Encode what is new, keep it here, and have patterns go by it."""
        begin = time.perf_counter()
        nodes, predicates = len(set(catalogue.labels)), len(catalogue.predicate_names)
        fresh = nodes + predicates
        if isinstance(encoder, LexicalEncoder):
            if on_progress is not None:
                on_progress(fresh, fresh)
        else:
            _, fresh = self._dense(catalogue, encoder, on_progress)
        try:
            self._cache.choose(encoder)
        except OSError as error:
            raise OptionError(
                f"the index cannot be kept in {self._cache.folder}: {error.strerror}", hint="CONDGRAPH_CACHE names another folder"
            ) from error
        return IndexReport(encoder.id, encoder.dimension, nodes, predicates, fresh, None, time.perf_counter() - begin)

    def _dense(self, catalogue: Catalogue, encoder: Encoder, on_progress: OnProgress | None) -> tuple[CatalogueTerms, int]:
        texts = sorted(set(catalogue.labels))
        whole = list(dict.fromkeys([*texts, *catalogue.predicate_names]))
        matrix, fresh = self._cache.vectors(encoder, whole, on_progress)
        return CatalogueTerms(catalogue, encoder, texts, DenseVectors(matrix[: len(texts)])), fresh
