"""The distance of a pattern's relation from every predicate of a graph: by an encoder, and by the tables of everyday
phrases and words (`patterns.words`, `patterns.families`).

Predicates are few, so their vectors are computed at first use. Both sides are compared as words (`vectors.spelling`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final

import numpy as np

from condgraph.patterns.families import FITS, Names
from condgraph.patterns.graph import Costs
from condgraph.patterns.words import words_for
from condgraph.vectors.encoders import Encoder, LexicalEncoder, encode, relations_of, spelled
from condgraph.vectors.nearest import DenseVectors, SparseVectors, Vectors

#: The most relations with cached terms, and texts with cached vectors.
_KEPT: Final = 4096


class Relations:
    """The terms of relations for the predicates `names`, in their order. Results are cached.

    `encoder` returns the encoder; it is called at the first relation.
    """

    def __init__(self, names: Sequence[str], encoder: Callable[[], Encoder]) -> None:
        self._names, self._encoder = names, encoder
        self._lock = Lock()
        self._vectors: Vectors | None = None
        self._fits: Names | None = None
        self._queries: dict[str, Any] = {}
        self._found: dict[str, Costs] = {}

    def prepare(self, relations: Sequence[str]) -> None:
        """Encode relations and their everyday words in one batch."""
        words = [word for relation in relations for word in (spelled(relation), *words_for(relation))]
        new_words = [word for word in dict.fromkeys(words) if word not in self._queries]
        if new_words:
            if len(self._queries) > _KEPT:
                self._queries = {}
            vectors = encode(relations_of(self._encoder()), new_words)
            self._queries = self._queries | dict(zip(new_words, vectors, strict=True))

    def every(self, relation: str) -> Costs:
        """Return one term per predicate, in millionths: the least of the relation's own distance and of the distances
        of its everyday words, each with the word's cost added; reduced by as much as its words fit the predicate.
        """
        terms = self._found.get(relation)
        if terms is None:
            if len(self._found) > _KEPT:
                self._found = {}
            terms = self._distances(spelled(relation))
            for word, cost in words_for(relation).items():
                terms = np.minimum(terms, self._distances(word) + cost)
            share = 1000 - np.array(self._words().fits(relation), np.int64)
            terms = self._found[relation] = np.minimum(terms, FITS + terms * share // 1000)
        return terms

    def _words(self) -> Names:
        if self._fits is None:
            self._fits = Names(self._names)
        return self._fits

    def _distances(self, word: str) -> Costs:
        vectors = self._of_names()
        query = self._queries.get(word)
        if query is None:
            self.prepare([word])
            query = self._queries[word]
        return vectors.distances(query)

    def _of_names(self) -> Vectors:
        with self._lock:
            if self._vectors is None:
                names = [spelled(name) for name in self._names]
                encoder = relations_of(self._encoder())
                if isinstance(encoder, LexicalEncoder):
                    self._vectors = SparseVectors(encoder.sparse(names))
                else:
                    self._vectors = DenseVectors(encode(encoder, names))
            return self._vectors
