"""Vectors for patterns on stores that hold none: names are encoded here and their vectors cached on disk
(`vectors.stored.VectorCache`).
"""

from __future__ import annotations

import time
from typing import Protocol

from condgraph.engine.errors import OptionError
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.terms import CatalogueTerms
from condgraph.vectors.encoders import Encoder, LexicalEncoder, encoder_of
from condgraph.vectors.nearest import DenseVectors
from condgraph.vectors.stored import IndexReport, OnProgress, VectorCache, matching


class NameVectors(Protocol):
    """The vectors of a graph's names."""

    def terms(self, catalogue: Catalogue, encoder: Encoder | str | None) -> CatalogueTerms:
        """Return terms by the given encoder, else by the one of the index, else by the lexical one."""
        ...

    def index(self, catalogue: Catalogue, encoder: Encoder, on_progress: OnProgress | None) -> IndexReport:
        """Encode names that have no vector, store the vectors, and use this encoder for patterns from now on."""
        ...


class CachedVectors:
    """The vectors of a graph in a store, cached on this machine."""

    def __init__(self, store: str, graph: str) -> None:
        self._cache = VectorCache(store, graph)

    def terms(self, catalogue: Catalogue, encoder: Encoder | str | None) -> CatalogueTerms:
        """See `NameVectors`."""
        index = self._cache.index
        chosen = None if encoder is None else encoder_of(encoder)
        if index is not None and not isinstance(chosen, LexicalEncoder):
            if chosen is None and not index.spec:
                raise OptionError(f"the index was made by an encoder of the caller's own, {index}", hint="give it as encoder=")
            chosen = matching(index, encoder_of(index.spec) if chosen is None else chosen)
        if chosen is None:
            chosen = encoder_of("lexical")
        if isinstance(chosen, LexicalEncoder):
            return CatalogueTerms.lexical(catalogue, chosen)
        return self._dense(catalogue, chosen, None)[0]

    def index(self, catalogue: Catalogue, encoder: Encoder, on_progress: OnProgress | None) -> IndexReport:
        """See `NameVectors`."""
        begin = time.perf_counter()
        nodes, predicates = len(set(catalogue.labels)), len(catalogue.predicate_names)
        encoded = nodes + predicates
        if isinstance(encoder, LexicalEncoder):
            if on_progress is not None:
                on_progress(encoded, encoded)
        else:
            _, encoded = self._dense(catalogue, encoder, on_progress)
        try:
            self._cache.choose(encoder)
        except OSError as error:
            raise OptionError(
                f"the index cannot be stored in {self._cache.folder}: {error.strerror}", hint="CONDGRAPH_CACHE names another folder"
            ) from error
        return IndexReport(encoder.id, encoder.dimension, nodes, predicates, encoded, None, time.perf_counter() - begin)

    def _dense(self, catalogue: Catalogue, encoder: Encoder, on_progress: OnProgress | None) -> tuple[CatalogueTerms, int]:
        texts = sorted(set(catalogue.labels))
        names = list(dict.fromkeys([*texts, *catalogue.predicate_names]))
        matrix, encoded = self._cache.vectors(encoder, names, on_progress)
        return CatalogueTerms(catalogue, encoder, texts, DenseVectors(matrix[: len(texts)])), encoded
