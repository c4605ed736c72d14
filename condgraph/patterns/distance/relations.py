"""How far a relation of a pattern is from every predicate of a graph: by an encoder, and by the
tables of everyday phrases and words (`patterns.words`, `patterns.families`).

Predicates are few, so their vectors are made when they are first asked for. Both sides are compared
as words (`vectors.spelling`).
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

#: Relations whose terms are kept, and texts whose vectors are.
_KEPT: Final = 4096


class Relations:
    """The terms of relations for predicates, by `names` in their order; what is found is kept.

    `encoder` gives the encoder when the first relation is asked for.
    """

    def __init__(self, names: Sequence[str], encoder: Callable[[], Encoder]) -> None:
        self._names, self._encoder = names, encoder
        self._lock = Lock()
        self._vectors: Vectors | None = None
        self._fits: Names | None = None
        self._queries: dict[str, Any] = {}
        self._found: dict[str, Costs] = {}

    def prepare(self, relations: Sequence[str]) -> None:
        """Encode relations, and the words that they stand for, together."""
        wanted = [word for relation in relations for word in (spelled(relation), *words_for(relation))]
        fresh = [word for word in dict.fromkeys(wanted) if word not in self._queries]
        if fresh:
            if len(self._queries) > _KEPT:
                self._queries = {}
            found = encode(relations_of(self._encoder()), fresh)
            self._queries = self._queries | dict(zip(fresh, found, strict=True))

    def every(self, relation: str) -> Costs:
        """One term a predicate, in millionths: the least of the relation's own distance, and of the
        distances of words for it with what these add; and that much less by as much as its words
        fit the predicate.
        """
        found = self._found.get(relation)
        if found is None:
            if len(self._found) > _KEPT:
                self._found = {}
            found = self._distances(spelled(relation))
            for word, cost in words_for(relation).items():
                found = np.minimum(found, self._distances(word) + cost)
            left = 1000 - np.array(self._words().fits(relation), np.int64)
            found = self._found[relation] = np.minimum(found, FITS + found * left // 1000)
        return found

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
