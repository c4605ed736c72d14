"""The terms of the distance: how far a text of the pattern is from every node and predicate of a graph, in millionths.

`Terms` is the interface that a search uses; `TextTerms` implements it with vectors of a snapshot's names, and caches
its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.values import Kind
from condgraph.patterns.distance.domains import BARRED, Domain
from condgraph.patterns.distance.lazy import LateDomain
from condgraph.patterns.distance.relations import Relations
from condgraph.patterns.graph import Costs, text_nodes
from condgraph.patterns.result import INSTANCE_OF
from condgraph.vectors.encoders import Encoder
from condgraph.vectors.nearest import DenseVectors
from condgraph.vectors.stored import GraphVectors, vectors_of

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The most numbers in cached terms of texts, and the most cached relations.
_KEPT: Final = 50_000_000
_KEPT_RELATIONS: Final = 4096


class Terms(Protocol):
    """Distances of texts from the nodes and predicates of a graph (`patterns.graph`), in millionths."""

    @property
    def id(self) -> str:
        """The id of the encoder that the distances come from."""
        ...

    def nodes(self, text: str) -> Domain:
        """Return the nodes that a text may mean, with their terms; cached across searches if computing them takes long."""
        ...

    def predicates(self, text: str) -> Costs:
        """Return the terms of a text for all predicates, memberships last; `BARRED` for predicates without edges."""
        ...

    def every(self, text: str) -> Costs:
        """Return the same for all predicates, including those without edges, such as of numbers and times."""
        ...

    def passed_over(self, text: str) -> str | None:
        """Return the name without edges (of numbers, times or qualifiers) that is nearer to a relation than any with
        edges, or None.
        """
        ...


class TextTerms:
    """Terms from the vectors of a graph. Each distinct name is compared once, and results are cached."""

    def __init__(self, vectors: GraphVectors) -> None:
        snapshot = vectors.snapshot
        self.vectors = vectors
        positions: list[Any] = [vectors.entity_positions, vectors.positions_of(text_nodes(snapshot))]
        self._places = np.concatenate(positions).astype(np.int32)
        names = vectors.predicate_names
        self._edges = np.array([*range(snapshot.predicate_count), names.index(INSTANCE_OF)])
        self._used = used_predicates(snapshot)
        self._relations = Relations([names[number] for number in self._edges.tolist()], lambda: vectors.encoder)
        self._names = [names[number] for number in self._edges.tolist()]
        self._nodes: dict[str, Domain] = {}
        self._predicates: dict[str, Costs] = {}

    @classmethod
    def of(cls, snapshot: Snapshot, encoder: Encoder | str | None = None) -> TextTerms:
        """Return the terms of an open snapshot, by the vectors of its index or by an encoder (`vectors.stored`); cached
        with it.
        """
        vectors = vectors_of(snapshot, encoder)
        cache = snapshot.schema.kept
        name = f"search.terms {vectors.about}"
        terms = cache.get(name)
        if not isinstance(terms, TextTerms) or terms.vectors is not vectors:
            terms = cache[name] = cls(vectors)
        return terms

    @property
    def id(self) -> str:
        return self.vectors.about.id

    def prepare(self, texts: Sequence[str], relations: Sequence[str] = ()) -> None:
        """Encode texts in one batch, which saves calls to an encoder on a server."""
        self.vectors.vectors(texts)
        self._relations.prepare(relations)

    def nodes(self, text: str) -> Domain:
        """Return a domain with one term per node of the graph."""
        domain = self._nodes.get(text)
        if domain is None:
            while self._nodes and (len(self._nodes) + 1) * len(self._places) > _KEPT:
                self._nodes.pop(next(iter(self._nodes)), None)
            vectors = self.vectors.nodes
            if isinstance(vectors, DenseVectors):
                domain = LateDomain(vectors, self.vectors.vector(text), self._places)
            else:
                domain = Domain(self.vectors.node_distances(text).take(self._places))
            self._nodes[text] = domain
        return domain

    def predicates(self, text: str) -> Costs:
        """Return one term per predicate; names without edges, such as of qualifiers, are barred."""
        costs = self._predicates.get(text)
        if costs is None:
            while len(self._predicates) > _KEPT_RELATIONS:
                self._predicates.pop(next(iter(self._predicates)), None)
            costs = self._predicates[text] = np.where(self._used, self.every(text), BARRED)
        return costs

    def every(self, text: str) -> Costs:
        """Return one term per predicate, with or without edges."""
        return self._relations.every(text)

    def passed_over(self, text: str) -> str | None:
        """Return the nearest name, if no edge has it."""
        return nearer_name(self.every(text), self._used, self._names)


def nearer_name(terms: Costs, used: NDArray[np.bool_], names: Sequence[str]) -> str | None:
    """Return the nearest name without edges if it is nearer than every name with edges; ties by name."""
    least = int(terms[used].min(initial=BARRED))
    nearer = [(int(terms[at]), names[at]) for at in np.flatnonzero(~used & (terms < least)).tolist() if names[at] != INSTANCE_OF]
    return min(nearer)[1] if nearer else None


def used_predicates(snapshot: Snapshot) -> Any:
    """Return a mask of the predicates that have edges, memberships last. Numbers and times are not nodes."""
    get = snapshot.arrays.get
    used = np.zeros(snapshot.predicate_count + 1, bool)
    used[:-1] = np.diff(get("rel.offsets")) > 0
    kinds = get("att.kind")
    if len(kinds):
        texts = np.concatenate([[0], np.cumsum(kinds == Kind.TEXT)])
        used[:-1] |= np.diff(texts[get("att.offsets")]) > 0
    used[-1] = len(get("mem.e")) > 0
    return used
