"""Terms of the distance for a graph on a server, from vectors of all its names or of its predicates alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.patterns.distance.domains import BARRED, Domain
from condgraph.patterns.distance.lazy import LateDomain
from condgraph.patterns.distance.relations import Relations
from condgraph.patterns.distance.terms import nearer_name
from condgraph.patterns.graph import Costs
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.vectors.encoders import Encoder, LexicalEncoder, encode
from condgraph.vectors.nearest import DenseVectors, SparseVectors, Vectors

#: Limits of the caches: numbers in the cached terms of texts; and texts with cached vectors, or relations with cached terms.
_KEPT: Final = 50_000_000
_KEPT_TEXTS: Final = 4096


class PredicateTerms:
    """Terms of relations, from vectors of the graph's predicates, which are few and encoded here. Results are cached."""

    def __init__(self, catalogue: Catalogue, encoder: Encoder) -> None:
        self.encoder = encoder
        self._relations = Relations(catalogue.predicate_names, lambda: encoder)
        self._used, self._predicate_names = catalogue.used, catalogue.predicate_names
        self._predicates: dict[str, Costs] = {}
        self._vectors: dict[str, Any] = {}

    @property
    def id(self) -> str:
        return self.encoder.id

    def prepare(self, texts: Sequence[str], relations: Sequence[str] = ()) -> None:
        """Encode texts and relations in one batch each."""
        self._relations.prepare(relations)
        new_texts = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new_texts:
            if len(self._vectors) > _KEPT_TEXTS:
                self._vectors.clear()
            self._vectors.update(zip(new_texts, encode(self.encoder, new_texts), strict=True))

    def vector(self, text: str) -> NDArray[np.float32]:
        self.prepare([text])
        vector: NDArray[np.float32] = self._vectors[text]
        return vector

    def predicates(self, text: str) -> Costs:
        """Return one term per predicate; `BARRED` for predicates without edges."""
        costs = self._predicates.get(text)
        if costs is None:
            if len(self._predicates) > _KEPT_TEXTS:
                self._predicates.clear()
            costs = self._predicates[text] = np.where(self._used, self.every(text), BARRED)
        return costs

    def every(self, text: str) -> Costs:
        """Return one term per predicate, with or without edges."""
        return self._relations.every(text)

    def passed_over(self, text: str) -> str | None:
        """Return the nearest predicate if no edge has it."""
        return nearer_name(self.every(text), self._used, self._predicate_names)


class CatalogueTerms(PredicateTerms):
    """Terms from vectors of a catalogue's names. Each distinct name is compared once, and results are cached."""

    def __init__(self, catalogue: Catalogue, encoder: Encoder, texts: Sequence[str], nodes: Vectors) -> None:
        """`texts` are those with a vector in `nodes`, in its order."""
        super().__init__(catalogue, encoder)
        positions = {text: number for number, text in enumerate(texts)}
        self._nodes = nodes
        self._places = np.array([positions[label] for label in catalogue.labels], np.int32)
        self._found: dict[str, Domain] = {}

    @classmethod
    def lexical(cls, catalogue: Catalogue, encoder: LexicalEncoder) -> CatalogueTerms:
        """Return terms by the lexical encoder. Its vectors are computed here, which is quicker than fetching them."""
        texts = sorted(set(catalogue.labels))
        return cls(catalogue, encoder, texts, SparseVectors(encoder.sparse(texts)))

    @classmethod
    def dense(cls, catalogue: Catalogue, encoder: Encoder, known: dict[str, NDArray[np.float32]]) -> CatalogueTerms:
        """Return terms from fetched vectors; texts without one are encoded."""
        texts = sorted(set(catalogue.labels))
        return cls(catalogue, encoder, texts, DenseVectors(_matrix(encoder, texts, known)))

    def nodes(self, text: str) -> Domain:
        """Return a domain with one term per node."""
        domain = self._found.get(text)
        if domain is None:
            if (len(self._found) + 1) * len(self._places) > _KEPT:
                self._found.clear()
            if isinstance(self._nodes, DenseVectors):
                domain = LateDomain(self._nodes, self.vector(text), self._places)
            else:
                domain = Domain(self._nodes.distances(self.vector(text)).take(self._places))
            self._found[text] = domain
        return domain


def exact_distances(encoder: Encoder, query: NDArray[np.float32], texts: Sequence[str], known: dict[str, Any]) -> Costs:
    """Return the terms of some texts, in millionths. Texts without a vector in `known` are encoded here."""
    if isinstance(encoder, LexicalEncoder):
        return SparseVectors(encoder.sparse(texts)).distances(query)
    return DenseVectors(_matrix(encoder, texts, known)).distances(query)


def _matrix(encoder: Encoder, texts: Sequence[str], known: dict[str, Any]) -> NDArray[np.float32]:
    """Return the vectors of texts, one row each. Texts without a vector in `known` are encoded here."""
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    vectors = known | dict(zip(missing, encode(encoder, missing), strict=True)) if missing else known
    return np.array([vectors[text] for text in texts], np.float32).reshape(len(texts), encoder.dimension)
