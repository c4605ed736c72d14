"""The graph as pattern search sees it: nodes, and for each node its neighbours with how they are reached.

Nodes 0..E-1 are the entities, concepts and rows of a snapshot, by its numbers; from E on they are the distinct texts that
attributes have as values, by code point. Edges are relations, attributes with a text value, and memberships as they were stated
(predicate `instance of`); other values are no nodes. An entry of the adjacency is a neighbour and a label. The label tells
predicate and direction, so that looking it up in an array of weights gives the price of an edge:

    2 p          the node is the subject of a statement with predicate p
    2 p + 1      it is the object
    2 P + p      subject and object: a loop, once
    3 P          no edge (numbers and times; the other end of a loop)

P counts the predicates of the snapshot and one more, the last, for memberships.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import cached, different, shared
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.engine.values import Kind
from condgraph.patterns.result import INSTANCE_OF

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

Numbers: TypeAlias = NDArray[np.int32]
Costs: TypeAlias = NDArray[np.int64]


class SearchGraph:
    """The neighbours of all nodes: entry i of node n is `neighbours[offsets[n] + i]`, with `labels[offsets[n] + i]`.

    The entries of a node are sorted by neighbour, so that those of a pair are found by bisection. `rank` orders nodes whose
    distances tie: entities by id, then texts, by code point.
    """

    def __init__(
        self, offsets: NDArray[np.int64], neighbours: Numbers, labels: NDArray[Any], predicates: int, entities: int, rank: Numbers
    ) -> None:
        self.offsets, self.neighbours, self.labels, self.rank = offsets, neighbours, labels, rank
        #: The number of nodes, of entities among them, and of predicates including the one for memberships.
        self.size, self.entities, self.predicates = len(offsets) - 1, entities, predicates

    @classmethod
    def of(cls, snapshot: Snapshot) -> SearchGraph:
        """Return the adjacency of a snapshot, built at the first call and kept with the snapshot."""
        graph = shared(snapshot.schema.kept, "search.graph", lambda: _adjacency(snapshot))
        assert isinstance(graph, SearchGraph)
        return graph

    def degrees(self, nodes: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many entries each of these nodes has."""
        degrees: NDArray[np.int64] = self.offsets[1:].take(nodes) - self.offsets.take(nodes)
        return degrees

    def expand(self, nodes: NDArray[Any]) -> tuple[NDArray[np.int64], Numbers, NDArray[Any]]:
        """Return all entries of these nodes, one after the other: position in `nodes`, neighbour, label."""
        if len(nodes) == 1:
            begin, end = self.offsets[nodes[0]], self.offsets[nodes[0] + 1]
            return np.zeros(end - begin, np.int64), self.neighbours[begin:end], self.labels[begin:end]
        begin, end = self.offsets.take(nodes), self.offsets[1:].take(nodes)
        at = ranges(begin, end)
        return np.arange(len(nodes), dtype=np.int64).repeat(end - begin), self.neighbours.take(at), self.labels.take(at)

    def between(self, ones: NDArray[Any], others: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the entries from each node of `ones` to the node of `others` next to it: position of the pair, and label."""
        begin = self._bisect(ones, others)
        end = self._bisect(ones, others + 1)
        return np.arange(len(ones), dtype=np.int64).repeat(end - begin), self.labels.take(ranges(begin, end))

    def _bisect(self, nodes: NDArray[Any], neighbours: NDArray[Any]) -> NDArray[np.int64]:
        """Return for each node the place of its first entry whose neighbour is not smaller, by parallel bisection."""
        low, high = self.offsets.take(nodes), self.offsets[1:].take(nodes)
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high) >> 1
            # If nothing is left to halve, the middle may be one too far, where it does not count.
            less = (self.neighbours.take(middle, mode="clip") < neighbours) & (low < high)
            low = np.where(less, middle + 1, low)
            high = np.where(less, high, middle)
        return low

    @cached
    def loops(self) -> tuple[Numbers, NDArray[Any]]:
        """Return the loops of the graph: node and label of each, by node."""
        at = np.flatnonzero((self.labels >= 2 * self.predicates) & (self.labels < 3 * self.predicates))
        nodes = np.searchsorted(self.offsets, at, side="right") - 1
        return nodes.astype(np.int32), self.labels[at].astype(np.int64)


def text_nodes(snapshot: Snapshot) -> Numbers:
    """Return the texts that are nodes, as numbers in the pool: node E + i is the i-th of them."""
    cache = snapshot.schema.kept
    texts = cache.get("search.texts")
    if texts is None:
        kinds = snapshot.arrays.get("att.kind")
        refs = snapshot.arrays.get("att.ref")[kinds == Kind.TEXT] if len(kinds) else np.empty(0, np.int32)
        texts = cache["search.texts"] = different(refs).astype(np.int32)
    assert isinstance(texts, np.ndarray)
    return texts


def predicate_names(snapshot: Snapshot) -> list[str]:
    """Return the names of all predicates in the order of their numbers, with that of memberships last."""
    return [*(snapshot.predicate_name(number) for number in range(snapshot.predicate_count)), INSTANCE_OF]


def concepts(snapshot: Snapshot) -> Numbers:
    """Return the numbers of all concepts."""
    cache = snapshot.schema.kept
    numbers = cache.get("search.concepts")
    if numbers is None:
        numbers = cache["search.concepts"] = np.flatnonzero(snapshot.entity_kind == EntityKind.CONCEPT).astype(np.int32)
    assert isinstance(numbers, np.ndarray)
    return numbers


def _adjacency(snapshot: Snapshot) -> SearchGraph:
    """Put the families of edges side by side, node by node, then sort the entries of each node."""
    get, entities, relations = snapshot.arrays.get, snapshot.entities, snapshot.relations
    predicates = snapshot.predicate_count + 1
    none = 3 * predicates
    kind: Any = np.int32 if none > np.iinfo(np.int16).max else np.int16
    texts = text_nodes(snapshot)
    size = entities + len(texts)
    predicate = np.repeat(np.arange(predicates - 1), np.diff(get("rel.offsets"))).astype(kind)
    out_label, target = predicate * kind(2), snapshot.relation_object
    in_label = out_label + kind(1)
    loops = snapshot.relation_subject == target
    if loops.any():
        out_label[loops] = 2 * predicates + predicate[loops]
        in_label[loops] = none
    attributes = np.flatnonzero(get("att.kind") == Kind.TEXT) if len(get("att.kind")) else np.empty(0, np.int64)
    if snapshot.statements > relations:
        owners = np.repeat(np.arange(predicates - 1), np.diff(get("att.offsets"))).astype(kind) * kind(2)
        values = np.zeros(len(owners), np.int32)
        values[attributes] = entities + texts.searchsorted(get("att.ref")[attributes])
        label = np.full(len(owners), none, kind)
        label[attributes] = owners[attributes]
        out_label, target = np.concatenate([out_label, label]), np.concatenate([target, values])
    out, back = snapshot.out_items, snapshot.in_items
    families: list[tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]] = [
        (_widened(get("out.offsets"), size), target.take(out), out_label.take(out)),
        (_widened(get("in.offsets"), size), snapshot.relation_subject.take(back), in_label.take(back)),
    ]
    if len(attributes):
        of = values[attributes]
        order = np.argsort(of, kind="stable")
        subjects = snapshot.attribute_subject[attributes[order]]
        families.append((_counted(of, size), subjects, owners[attributes[order]] + kind(1)))
    # A membership stated by several sources is a single edge.
    pairs = different(get("mem.e").astype(np.int64) << 32 | get("mem.c"))
    if len(pairs):
        members, of = (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)
        label = np.full(len(pairs), 2 * (predicates - 1), kind)
        loop = members == of
        label[loop] = 2 * predicates + predicates - 1
        families.append((_counted(members, size), of, label))
        order = np.argsort(of, kind="stable")
        families.append((_counted(of, size), members[order], np.where(loop[order], none, 2 * predicates - 1).astype(kind)))
    offsets = np.sum([family[0] for family in families], axis=0)
    neighbours, labels = np.empty(int(offsets[-1]), np.int32), np.empty(int(offsets[-1]), kind)
    for number, (begin, nodes, marks) in enumerate(families):
        # After the entries of earlier families at the node, before those of later ones.
        shift = np.zeros(size, np.int64)
        for other, (starts, _, _) in enumerate(families):
            if other != number:
                shift += starts[1:] if other < number else starts[:-1]
        place = np.arange(len(nodes)) + shift.repeat(np.diff(begin))
        neighbours[place], labels[place] = nodes, marks
    neighbours, labels = ascending(offsets, neighbours, labels)
    rank = np.empty(size, np.int32)
    rank[get("ent.by_id")] = np.arange(entities, dtype=np.int32)
    rank[entities:] = np.arange(entities, size, dtype=np.int32)
    return SearchGraph(offsets, neighbours, labels, predicates, entities, rank)


def ascending(offsets: NDArray[np.int64], neighbours: Numbers, labels: NDArray[Any]) -> tuple[Numbers, NDArray[Any]]:
    """Return the entries of every node in the order of their neighbours."""
    owners = np.arange(len(offsets) - 1).repeat(np.diff(offsets))
    order = np.argsort(owners << 32 | neighbours, kind="stable")
    return neighbours[order], labels[order]


def _widened(offsets: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return offsets of entities as offsets of all nodes."""
    return np.concatenate([offsets, np.full(size + 1 - len(offsets), offsets[-1] if len(offsets) else 0, np.int64)])


def _counted(owners: NDArray[Any], size: int) -> NDArray[np.int64]:
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=size), out=offsets[1:])
    return offsets
