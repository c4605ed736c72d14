"""What asking knows of one state of a graph: its names with their words, prepared once and kept
with that state.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra import Constants
from condgraph.engine.bounds import cached
from condgraph.engine.lowered import Lowered
from condgraph.engine.store import Request
from condgraph.names.graph_names import Linker
from condgraph.names.vocabulary import DIMENSION, Vocabulary
from condgraph.names.words import STOP, others, stem, words_of
from condgraph.overview.describe import concept_schema, predicate_schema
from condgraph.overview.records import ConceptSchema, PredicateSchema
from condgraph.overview.survey import Survey
from condgraph.vectors.encoder import LexicalEncoder

if TYPE_CHECKING:
    from condgraph.engine.store import KnownSchema, Store

#: What a word counts that stands for another one, next to the word itself.
_OTHER: Final = 0.5
#: How much the likeness of letters counts, next to whole words.
_LETTERS: Final = 0.6
_ENCODER: Final = LexicalEncoder(DIMENSION)


@lru_cache(maxsize=64)
def _encoded(text: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The columns of a text's vector, and its values there; a question meets several vocabularies."""
    found = _ENCODER.sparse([text])
    return found.indices, found.data


class Names:
    """Names of one kind, and how well each fits the words of a question."""

    def __init__(self, names: Sequence[str], sizes: Sequence[int]) -> None:
        self.names, self.sizes = names, sizes
        self._places: dict[str, list[int]] = {}
        spread: Counter[str] = Counter()
        stems = [[stem(word) for word in words_of(name)] for name in names]
        for one in stems:
            spread.update(set(one))
        many = max(len(names), 1)
        self._weight = {word: math.log(1 + many / count) * (0.2 if word in STOP else 1.0) for word, count in spread.items()}
        self._total = np.array([sum(self._weight[word] for word in set(one)) or 1.0 for one in stems])
        for place, one in enumerate(stems):
            for word in set(one):
                self._places.setdefault(word, []).append(place)
        self._vocabulary = Vocabulary(list(names))

    @cached
    def _sizes_of_grams(self) -> NDArray[np.float64]:
        rows = self._vocabulary.encoder.sparse(self._vocabulary.names)
        return np.sqrt(np.maximum(np.diff(rows.indptr), 1))

    def scores(self, question: str) -> NDArray[np.float64]:
        """How well each name fits, from 0 to about 1.6: the share of its words that the question
        says (rare ones count more), and the share of its letters, in pieces of two to four.
        """
        found = np.zeros(len(self.names))
        if not len(self.names):
            return found
        said: dict[str, float] = {}
        for word in words_of(question):
            said[stem(word)] = 1.0
            for other in others(word):
                said.setdefault(stem(other), _OTHER)
        for word, worth in said.items():
            places = self._places.get(word)
            if places:
                found[places] += worth * self._weight[word]
        found /= self._total
        # The encoder's vectors have length one; what is wanted is the share of the name alone.
        indices, data = _encoded(question)
        starts, members, weights = self._vocabulary.prepare()
        hits = [slice(starts[column], starts[column + 1]) for column in indices]
        if not hits:
            return found
        at = np.concatenate([members[hit] for hit in hits])
        parts = np.concatenate([weights[hit] * weight for hit, weight in zip(hits, data, strict=True)])
        letters = np.bincount(at, weights=parts, minlength=len(self.names)) * math.sqrt(len(indices)) / self._sizes_of_grams
        return found + _LETTERS * np.minimum(letters, 1.0) ** 2


class Known:
    """The names of one state of a graph, for asking. Use `known_of`, which keeps it."""

    def __init__(self, schema: KnownSchema, survey: Survey) -> None:
        self.schema, self.survey = schema, survey
        self.linker: Linker = Linker.of(schema)  # type: ignore[arg-type]
        rows = survey["predicates"]
        self.places = {str(one[0]): place for place, one in enumerate(rows)}
        self.predicates = Names([one[0] for one in rows], [one[1] + one[2] for one in rows])
        self._concepts = [place for place, one in enumerate(survey["kinds"]) if one[0] == "concept"]
        kinds = survey["kinds"]
        self.concepts = Names([kinds[place][1] for place in self._concepts], [kinds[place][3] for place in self._concepts])
        #: Words of predicates, concepts and keys.
        self.words = frozenset(
            word for one in (*self.predicates.names, *self.concepts.names, *self.qualifiers.names) for word in words_of(one)
        )
        self.words -= STOP
        #: What stands around names, as it was looked up.
        self.around: dict[tuple[str, ...], dict[str, list[str]]] = {}
        self._of_source: dict[str, list[int]] = {}
        for place, one in enumerate(rows):
            for source, _ in one[5]:
                self._of_source.setdefault(source, []).append(place)

    @cached
    def qualifiers(self) -> Names:
        """The keys of qualifiers."""
        sizes: Counter[str] = Counter()
        for one in self.survey["predicates"]:
            for key, values in one[4]:
                sizes[key] += sum(value[2] for value in values)
        for key in getattr(self.schema, "qualifiers", ()):
            sizes.setdefault(key, 0)
        return Names(list(sizes), list(sizes.values()))

    @cached
    def sources(self) -> Names:
        """The sources by name."""
        return Names([one[0] for one in self.survey["sources"]], [one[2] for one in self.survey["sources"]])

    def rows_named(self, texts: Sequence[str]) -> frozenset[str]:
        """Those of the texts that name a row of a table; other names are in `linker.entities`."""
        if not texts or not self.linker.tables:
            return frozenset()
        missing = getattr(self.schema, "missing", None)
        if missing is not None:
            return frozenset(texts) - frozenset(missing(texts))
        return frozenset(text for text in texts if self.schema.has_entity(text))

    def of_kind(self, kind: str) -> list[int]:
        """The places of the predicates that are relations ("relation"), attributes ("attribute"), or of
        all; of the concepts for "concept".
        """
        if kind == "concept":
            return list(range(len(self.concepts.names)))
        column = {"relation": 1, "attribute": 2}.get(kind)
        rows = self.survey["predicates"]
        return [place for place, one in enumerate(rows) if column is None or one[column]]

    def of_source(self, source: str) -> list[int]:
        """The places of the predicates that stand in a source."""
        return self._of_source.get(source, [])

    def predicate(self, place: int) -> PredicateSchema:
        """What is known of a predicate."""
        return predicate_schema(self.survey, place)

    def concept(self, place: int) -> ConceptSchema:
        """What is known of a concept, by its place among `concepts`."""
        return concept_schema(self.survey["kinds"], self.survey["kinds"][self._concepts[place]])


def known_of(store: Store, survey: Survey) -> Known:
    """What is known of the state that a store has now, made once for each."""
    schema = schema_of(store)
    found: Any = schema.kept.get("ask")
    if found is None or found.survey is not survey:
        found = schema.kept["ask"] = Known(schema, survey)
    assert isinstance(found, Known)
    return found


def schema_of(store: Store) -> KnownSchema:
    """The schema that a store has programs lowered against, with the names of the graph."""
    seen: list[KnownSchema] = []

    def look(schema: KnownSchema, program: Any, language: str, options: dict[str, Any]) -> Lowered:
        seen.append(schema)
        plan = Constants(("",))
        return Lowered(plan, [("", plan)], order=[plan])

    store.explain(Request("", "llm_query", {}, None, look))
    return seen[-1]
