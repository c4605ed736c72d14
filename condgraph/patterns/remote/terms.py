"""Terms of the distance for a graph on a server: from the vectors of all its names, or of its
predicates alone.
"""

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

#: Numbers that the terms of texts kept take together, and texts whose vectors, or relations whose
#: terms are kept.
_KEPT: Final = 50_000_000
_KEPT_TEXTS: Final = 4096


class PredicateTerms:
    """Terms of relations, from the vectors of a graph's predicates, which are encoded here: a graph has few of them.
    What is found is kept.
    """

    def __init__(self, catalogue: Catalogue, encoder: Encoder) -> None:
        self.encoder = encoder
        self._relations = Relations(catalogue.predicate_names, lambda: encoder)
        self._used, self._predicate_names = catalogue.used, catalogue.predicate_names
        self._predicates: dict[str, Costs] = {}
        self._vectors: dict[str, Any] = {}

    @property
    def id(self) -> str:
        """The encoder's id."""
        return self.encoder.id

    def prepare(self, texts: Sequence[str], relations: Sequence[str] = ()) -> None:
        """Encode texts together."""
        self._relations.prepare(relations)
        fresh = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if fresh:
            if len(self._vectors) > _KEPT_TEXTS:
                self._vectors.clear()
            self._vectors.update(zip(fresh, encode(self.encoder, fresh), strict=True))

    def vector(self, text: str) -> NDArray[np.float32]:
        """The vector of a text."""
        self.prepare([text])
        found: NDArray[np.float32] = self._vectors[text]
        return found

    def predicates(self, text: str) -> Costs:
        """One term a predicate."""
        found = self._predicates.get(text)
        if found is None:
            if len(self._predicates) > _KEPT_TEXTS:
                self._predicates.clear()
            found = self._predicates[text] = np.where(self._used, self.every(text), BARRED)
        return found

    def every(self, text: str) -> Costs:
        """One term a predicate, whatever its values are."""
        return self._relations.every(text)

    def passed_over(self, text: str) -> str | None:
        """The nearest name, where no edge has it."""
        return nearer_name(self.every(text), self._used, self._predicate_names)


class CatalogueTerms(PredicateTerms):
    """Terms from vectors of the names of a catalogue; every distinct name is looked at once, and
    what is found is kept.
    """

    def __init__(self, catalogue: Catalogue, encoder: Encoder, texts: Sequence[str], nodes: Vectors) -> None:
        """`texts` are those that `nodes` has the vectors of."""
        super().__init__(catalogue, encoder)
        place = {text: number for number, text in enumerate(texts)}
        self._nodes = nodes
        self._places = np.array([place[label] for label in catalogue.labels], np.int32)
        self._found: dict[str, Domain] = {}

    @classmethod
    def lexical(cls, catalogue: Catalogue, encoder: LexicalEncoder) -> CatalogueTerms:
        """The terms of the lexical encoder, whose vectors are made here: that is quicker than to
        fetch them.
        """
        texts = sorted(set(catalogue.labels))
        return cls(catalogue, encoder, texts, SparseVectors(encoder.sparse(texts)))

    @classmethod
    def dense(cls, catalogue: Catalogue, encoder: Encoder, known: dict[str, NDArray[np.float32]]) -> CatalogueTerms:
        """The terms of vectors that were fetched; what is missing among them is encoded."""
        texts = sorted(set(catalogue.labels))
        return cls(catalogue, encoder, texts, DenseVectors(_matrix(encoder, texts, known)))

    def nodes(self, text: str) -> Domain:
        """One term a node."""
        found = self._found.get(text)
        if found is None:
            if (len(self._found) + 1) * len(self._places) > _KEPT:
                self._found.clear()
            if isinstance(self._nodes, DenseVectors):
                found = LateDomain(self._nodes, self.vector(text), self._places)
            else:
                found = Domain(self._nodes.distances(self.vector(text)).take(self._places))
            self._found[text] = found
        return found


def exact_distances(encoder: Encoder, query: NDArray[np.float32], texts: Sequence[str], known: dict[str, Any]) -> Costs:
    """The terms of some texts, in millionths: from vectors that are known by text, or encoded here
    where one is not.
    """
    if isinstance(encoder, LexicalEncoder):
        return SparseVectors(encoder.sparse(texts)).distances(query)
    return DenseVectors(_matrix(encoder, texts, known)).distances(query)


def _matrix(encoder: Encoder, texts: Sequence[str], known: dict[str, Any]) -> NDArray[np.float32]:
    """The vectors of texts, a row each: known ones, and those of others, which are encoded here."""
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    whole = known | dict(zip(missing, encode(encoder, missing), strict=True)) if missing else known
    return np.array([whole[text] for text in texts], np.float32).reshape(len(texts), encoder.dimension)
