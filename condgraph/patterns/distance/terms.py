"""The terms of the distance: how far a text of the pattern is from every node and every predicate
of a graph, in millionths.

`Terms` is what a search asks; `TextTerms` answers from vectors of a snapshot's names, and keeps
what it has worked out.
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

#: Numbers that the terms of texts kept take together, and relations kept.
_KEPT: Final = 50_000_000
_KEPT_RELATIONS: Final = 4096


class Terms(Protocol):
    """Distances of texts from the nodes and predicates of a graph (`patterns.graph`), in
    millionths.
    """

    @property
    def id(self) -> str:
        """What the distances come from: the id of an encoder."""
        ...

    def nodes(self, text: str) -> Domain:
        """The nodes that a text may mean, with their terms; kept from one search to the next where
        that takes long.
        """
        ...

    def predicates(self, text: str) -> Costs:
        """The terms of a text for all predicates, the one of memberships last; `BARRED` for one
        that it cannot be.
        """
        ...

    def every(self, text: str) -> Costs:
        """The same with what has no edges, as predicates of numbers and times."""
        ...

    def passed_over(self, text: str) -> str | None:
        """The name that is nearer to a relation than any edge's, where there is one: of numbers, of
        times, of qualifiers.
        """
        ...


class TextTerms:
    """Terms from the vectors of a graph. Every distinct name is looked at once, whatever it names,
    and what is found is kept.
    """

    def __init__(self, vectors: GraphVectors) -> None:
        snapshot = vectors.snapshot
        self.vectors = vectors
        places: list[Any] = [vectors.entity_positions, vectors.positions_of(text_nodes(snapshot))]
        self._places = np.concatenate(places).astype(np.int32)
        names = vectors.predicate_names
        self._edges = np.array([*range(snapshot.predicate_count), names.index(INSTANCE_OF)])
        self._used = used_predicates(snapshot)
        self._relations = Relations([names[number] for number in self._edges.tolist()], lambda: vectors.encoder)
        self._names = [names[number] for number in self._edges.tolist()]
        self._nodes: dict[str, Domain] = {}
        self._predicates: dict[str, Costs] = {}

    @classmethod
    def of(cls, snapshot: Snapshot, encoder: Encoder | str | None = None) -> TextTerms:
        """The terms of an open snapshot: by the vectors of its index, or by an encoder
        (`vectors.stored`); kept with it.
        """
        vectors = vectors_of(snapshot, encoder)
        kept = snapshot.schema.kept
        name = f"search.terms {vectors.about}"
        found = kept.get(name)
        if not isinstance(found, TextTerms) or found.vectors is not vectors:
            found = kept[name] = cls(vectors)
        return found

    @property
    def id(self) -> str:
        """The encoder's id."""
        return self.vectors.about.id

    def prepare(self, texts: Sequence[str], relations: Sequence[str] = ()) -> None:
        """Have texts encoded together, which saves an encoder on a server some calls."""
        self.vectors.vectors(texts)
        self._relations.prepare(relations)

    def nodes(self, text: str) -> Domain:
        """One term a node of the graph."""
        found = self._nodes.get(text)
        if found is None:
            while self._nodes and (len(self._nodes) + 1) * len(self._places) > _KEPT:
                self._nodes.pop(next(iter(self._nodes)), None)
            vectors = self.vectors.nodes
            if isinstance(vectors, DenseVectors):
                found = LateDomain(vectors, self.vectors.vector(text), self._places)
            else:
                found = Domain(self.vectors.node_distances(text).take(self._places))
            self._nodes[text] = found
        return found

    def predicates(self, text: str) -> Costs:
        """One term a predicate; names that no edge has, as of qualifiers, are barred."""
        found = self._predicates.get(text)
        if found is None:
            while len(self._predicates) > _KEPT_RELATIONS:
                self._predicates.pop(next(iter(self._predicates)), None)
            found = self._predicates[text] = np.where(self._used, self.every(text), BARRED)
        return found

    def every(self, text: str) -> Costs:
        """One term a predicate, whatever its values are."""
        return self._relations.every(text)

    def passed_over(self, text: str) -> str | None:
        """The nearest name, where no edge has it."""
        return nearer_name(self.every(text), self._used, self._names)


def nearer_name(terms: Costs, used: NDArray[np.bool_], names: Sequence[str]) -> str | None:
    """Of names that no edge has, the nearest, where it is nearer than all that edges have; ties by
    name.
    """
    least = int(terms[used].min(initial=BARRED))
    found = [(int(terms[at]), names[at]) for at in np.flatnonzero(~used & (terms < least)).tolist() if names[at] != INSTANCE_OF]
    return min(found)[1] if found else None


def used_predicates(snapshot: Snapshot) -> Any:
    """Which predicates have edges: one truth value each, that of memberships last. Numbers and
    times are no nodes.
    """
    get = snapshot.arrays.get
    used = np.zeros(snapshot.predicate_count + 1, bool)
    used[:-1] = np.diff(get("rel.offsets")) > 0
    kinds = get("att.kind")
    if len(kinds):
        texts = np.concatenate([[0], np.cumsum(kinds == Kind.TEXT)])
        used[:-1] |= np.diff(texts[get("att.offsets")]) > 0
    used[-1] = len(get("mem.e")) > 0
    return used
