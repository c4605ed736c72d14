"""Propagation over a query computation tree (QTO): forward from the leaves to the scores of the root (Eq. 7 to 10), and backward
from an answer to the assignment of every variable (Eq. 12 to 14).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra import AllEntities
from condgraph.engine.bounds import changed, check, different
from condgraph.engine.errors import UnknownNameError, nearest
from condgraph.engine.execute.facts import every
from condgraph.engine.execute.run import Run
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.snapshot import Snapshot, ranges
from condgraph.languages.logic.lower import other_use
from condgraph.languages.logic.tree import (
    Anchor,
    Anything,
    Complement,
    Intersection,
    OfType,
    Projection,
    Tree,
    Union,
    bounded,
    walk,
)

# -- vector ------------------------------------------------------------------------------------------
# How true it is of every node of a graph that it is the value of a variable (T* of QTO, section
# 3.2), as a default and the exceptions to it.
#
# A complement of a set of few is a set of almost all; with a default it takes as little room. Scores
# are float64 throughout: in float32 the union of two 0.9999 is 1.


Ids = NDArray[np.int64]
Scores = NDArray[np.float64]
_NO_IDS: Final = np.empty(0, np.int64)
_NO_SCORES: Final = np.empty(0, np.float64)


@dataclass(frozen=True, slots=True)
class Vector:
    """Scores in [0, 1]: `values[i]` of the node `ids[i]` (sorted, each once), `default` of all
    others.
    """

    default: float
    ids: Ids
    values: Scores

    def at(self, ids: Ids) -> Scores:
        """The scores of some nodes, in any order."""
        found = np.full(len(ids), self.default)
        if len(self.ids):
            place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
            known = self.ids[place] == ids
            found[known] = self.values[place[known]]
        return found

    def one(self, node: int) -> float:
        """The score of one node."""
        place = int(np.searchsorted(self.ids, node))
        return float(self.values[place]) if place < len(self.ids) and self.ids[place] == node else self.default

    def pruned(self, least: float) -> Vector:
        """Without exceptions below `least`, and without those of score 0; only of a vector whose
        default is 0.
        """
        kept = self.values >= least if least > 0 else self.values > 0
        return self if kept.all() else Vector(0.0, self.ids[kept], self.values[kept])

    def complement(self, alpha: float) -> Vector:
        """1 - min(1, alpha * v), and 0 where v is 1 (QTO, section 4.1: the negation scale)."""
        return Vector(1.0 - scaled(self.default, alpha), self.ids, 1.0 - scaled_all(self.values, alpha))


def scaled(score: float, alpha: float) -> float:
    """A negated score on the negation scale; what is certain stays so."""
    return 1.0 if score >= 1.0 else min(1.0, alpha * score)


def scaled_all(scores: Scores, alpha: float) -> Scores:
    """The same of many."""
    return np.where(scores >= 1.0, 1.0, np.minimum(1.0, alpha * scores))


NOTHING: Final = Vector(0.0, _NO_IDS, _NO_SCORES)
EVERYTHING: Final = Vector(1.0, _NO_IDS, _NO_SCORES)


def certain(ids: Ids) -> Vector:
    """Score 1 for sorted nodes, 0 for all others."""
    return Vector(0.0, ids.astype(np.int64), np.ones(len(ids)))


def product(vectors: Sequence[Vector]) -> Vector:
    """The intersection under the product t-norm (Eq. 5), by the sparsest vector that is 0 outside."""
    sparse = [vector for vector in vectors if vector.default == 0.0]
    if sparse:
        ids = min(sparse, key=lambda vector: len(vector.ids)).ids
        values = np.ones(len(ids))
        # In one order whichever is the sparsest, so that rounding is always the same.
        for vector in vectors:
            values *= vector.values if vector.ids is ids else vector.at(ids)
        return Vector(0.0, ids, values).pruned(0.0)
    ids, default = _all_ids(vectors), 1.0
    values = np.ones(len(ids))
    for vector in vectors:
        default *= vector.default
        values *= vector.at(ids)
    return Vector(default, ids, values)


def either(vectors: Sequence[Vector]) -> Vector:
    """The union, 1 - (1 - a)(1 - b)... (Eq. 6)."""
    ids, default = _all_ids(vectors), 1.0
    values = np.ones(len(ids))
    for vector in vectors:
        default *= 1.0 - vector.default
        values *= 1.0 - vector.at(ids)
    return Vector(1.0 - default, ids, 1.0 - values)


def _all_ids(vectors: Sequence[Vector]) -> Ids:
    parts = [vector.ids for vector in vectors]
    return parts[0] if len(parts) == 1 else different(np.concatenate(parts))


# -- matrix ------------------------------------------------------------------------------------------
# The rows of the neural adjacency matrix of each relation (M of QTO, section 3.2): what a relation
# leads to from a node, with a score each.
#
# A score is 1 where the graph has the edge and less otherwise. `Adjacency` has the edges of the graph
# alone, so that answers are the exact symbolic ones; `condgraph.logic.predicted` adds those that a
# link prediction model predicts. Only nodes that have a row take room.


#: A relation, and whether it is followed from object to subject.
Key = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a relation: that of `heads[i]` is `ids` and `values` in `[offsets[i], offsets[i +
    1])`.

    `heads` are sorted, and so are the ids of a row; a row may be empty. `values` are float32 or
    float64.
    """

    heads: Ids
    offsets: Ids
    ids: NDArray[Any]
    values: NDArray[Any]

    def counts(self) -> Ids:
        """The length of each row."""
        return np.diff(self.offsets)

    def places(self, heads: Ids) -> tuple[Ids, Ids]:
        """Which of some heads (sorted) have a row here: their places among these, and the rows."""
        if not len(self.heads):
            return _NO_IDS, _NO_IDS
        at = np.minimum(np.searchsorted(self.heads, heads), len(self.heads) - 1)
        known = np.flatnonzero(self.heads[at] == heads)
        return known, at[known]

    def take(self, heads: Ids) -> Rows:
        """The rows of these heads (sorted) that are here."""
        known, rows = self.places(heads)
        begin, end = self.offsets[rows], self.offsets[rows + 1]
        entries = ranges(begin, end)
        offsets = np.concatenate([[0], np.cumsum(end - begin)])
        return Rows(heads[known], offsets, self.ids[entries], self.values[entries])


NO_ROWS: Final = Rows(_NO_IDS, np.zeros(1, np.int64), _NO_IDS, np.empty(0))


class Matrix(Protocol):
    """The rows of all relations of one graph; nodes are numbers of its snapshot, 0 to `size`."""

    @property
    def size(self) -> int:
        """How many nodes there are."""
        ...

    @property
    def observed_only(self) -> bool:
        """Whether all that it has is in the graph."""
        ...

    def rows(self, key: Key, heads: Ids, least: float = 0.0) -> Rows:
        """The rows of some heads (sorted); entries below `least` may be missing, as may empty rows."""
        ...

    def whole(self, key: Key) -> Rows | None:
        """All rows of a relation, where they are at hand; None where they are not."""
        ...

    def every_row(self, key: Key, least: float = 0.0) -> Rows:
        """All rows of a relation, whatever it takes."""
        ...


class Adjacency:
    """The edges of a snapshot: a score is 1 or 0. A relation is put in order when it is first asked
    for.
    """

    observed_only: Final = True

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.size = snapshot, snapshot.entities
        self._rows: dict[Key, Rows] = {}

    def whole(self, key: Key) -> Rows:
        """All rows of a relation."""
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = self._made(key)
        return found

    def every_row(self, key: Key, least: float = 0.0) -> Rows:
        """All rows of a relation."""
        return self.whole(key)

    def rows(self, key: Key, heads: Ids, least: float = 0.0) -> Rows:
        """The rows of some heads."""
        return self.whole(key).take(heads)

    def has(self, key: Key, head: int, tail: int) -> bool:
        """Whether the graph has an edge."""
        rows = self.whole(key)
        known, places = rows.places(np.array([head]))
        if not len(known):
            return False
        row = rows.ids[rows.offsets[places[0]] : rows.offsets[places[0] + 1]]
        at = int(np.searchsorted(row, tail))
        return at < len(row) and int(row[at]) == tail

    def statements(self, key: Key, head: int, tail: int) -> list[int]:
        """The statements that say an edge, by number: more than one where they differ in qualifiers."""
        subject, object_ = (tail, head) if key[1] else (head, tail)
        found: list[int] = []
        for low, high in self.snapshot.runs((key[0],), True, False):
            out = self.snapshot.outgoing(subject, low, high)
            found.extend(out[self.snapshot.relation_object[out] == object_].tolist())
        return found

    def _made(self, key: Key) -> Rows:
        runs = self.snapshot.runs((key[0],), True, False)
        if not runs:
            return NO_ROWS
        subjects = np.concatenate([self.snapshot.relation_subject[low:high] for low, high in runs]).astype(np.int64)
        objects = np.concatenate([self.snapshot.relation_object[low:high] for low, high in runs]).astype(np.int64)
        heads, tails = (objects, subjects) if key[1] else (subjects, objects)
        # Statements that differ in qualifiers alone are one edge.
        pairs = different(heads * self.size + tails)
        check()
        heads, tails = pairs // self.size, pairs % self.size
        first = np.flatnonzero(changed(heads))
        return Rows(
            heads[first], np.append(first, len(heads)).astype(np.int64), tails.astype(np.int32), np.ones(len(tails), np.float32)
        )


_KEPT: Final = "logic.adjacency"


def adjacency(snapshot: Snapshot) -> Adjacency:
    """The adjacency of a snapshot, kept as long as that is open."""
    found = snapshot.schema.kept.get(_KEPT)
    if found is None:
        found = snapshot.schema.kept[_KEPT] = Adjacency(snapshot)
    assert isinstance(found, Adjacency)
    return found


# -- kernels -----------------------------------------------------------------------------------------
# One projection (QTO, Eq. 7 to 10): from the scores of a variable to those of what a relation leads
# to.
#
# Which way is quickest depends on the frontier, the nodes that have a score: one row as it is; a few
# rows sorted; many rows gathered, and `np.maximum.at`; and the whole relation where the frontier
# holds a third of its heads, since that needs no gathering.


#: Entries up to which sorting is quicker than a table of all nodes, which is this much larger.
SORTED_BELOW: Final = 4_096
#: Heads whose rows are gathered at once.
AT_ONCE: Final = 4_096
#: Entries whose products are worked out at once.
IN_CACHE: Final = 65_536


def project(matrix: Matrix, key: Key, frontier: Vector, least: float = 0.0, candidates: Ids | None = None) -> Vector:
    """max over e of T(e) * M[e, x] for every x (Eq. 7), of `candidates` (sorted) alone where they are
    given; results below `least` are left out, which is exact for the others.
    """
    if frontier.default > 0.0:
        return _from_everything(matrix, key, frontier, least, candidates)
    heads, scores = frontier.ids, frontier.values
    if least > 0.0:
        near = scores >= least
        if not near.all():
            heads, scores = heads[near], scores[near]
    if not len(heads):
        return NOTHING
    # What was divided may be rounded up.
    needed = (1.0 - 1e-12) * least / float(scores.max()) if least > 0.0 else 0.0
    if len(heads) == 1:
        found = _one_row(matrix.rows(key, heads, needed), float(scores[0]))
    else:
        whole = matrix.whole(key)
        if whole is not None and 3 * len(heads) >= len(whole.heads):
            found = _whole(whole, Vector(0.0, heads, scores), matrix.size)
        else:
            found = _gathered(matrix, key, heads, scores, needed)
    return _kept(found, least, candidates)


def _kept(found: Vector, least: float, candidates: Ids | None) -> Vector:
    if candidates is not None:
        found = Vector(0.0, candidates, found.at(candidates))
    return found.pruned(least)


def _one_row(rows: Rows, score: float) -> Vector:
    return Vector(0.0, rows.ids.astype(np.int64), rows.values.astype(np.float64) * score)


def _whole(rows: Rows, frontier: Vector, size: int) -> Vector:
    weights = frontier.at(rows.heads)
    if len(rows.ids) < SORTED_BELOW:
        return _sorted_largest(rows.ids, np.repeat(weights, rows.counts()) * rows.values)
    table = np.zeros(size)
    _into(table, rows, weights)
    return _from_table(table)


def _into(table: Scores, rows: Rows, weights: Scores) -> None:
    """Raise a table to the products of rows with the weights of their heads; some rows at a time, so
    that what is in between stays in the processor's cache.
    """
    offsets, counts = rows.offsets, rows.counts()
    begin, heads = 0, len(rows.heads)
    while begin < heads:
        end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + IN_CACHE, "right")) - 1)
        low, high = int(offsets[begin]), int(offsets[end])
        products = np.repeat(weights[begin:end], counts[begin:end])
        products *= rows.values[low:high]
        # NumPy is slower by more than the conversion where places are narrower than its own.
        np.maximum.at(table, rows.ids[low:high].astype(np.intp, copy=False), products)
        begin = end


def _gathered(matrix: Matrix, key: Key, heads: Ids, scores: Scores, needed: float) -> Vector:
    table: Scores | None = None
    for begin in range(0, len(heads), AT_ONCE):
        check()
        some, theirs = heads[begin : begin + AT_ONCE], scores[begin : begin + AT_ONCE]
        rows = matrix.rows(key, some, needed)
        if len(rows.heads) != len(some):
            theirs = theirs[np.searchsorted(some, rows.heads)]
        if len(heads) <= AT_ONCE and len(rows.ids) < SORTED_BELOW:
            return _sorted_largest(rows.ids, np.repeat(theirs, rows.counts()) * rows.values)
        if table is None:
            table = np.zeros(matrix.size)
        _into(table, rows, theirs)
    assert table is not None
    return _from_table(table)


def _from_table(table: Scores) -> Vector:
    ids = np.flatnonzero(table)
    return Vector(0.0, ids, table[ids])


def _sorted_largest(ids: Ids, products: Scores) -> Vector:
    if not len(ids):
        return NOTHING
    order = np.argsort(ids, kind="stable")
    ids, products = ids[order].astype(np.int64), products[order]
    first = np.flatnonzero(changed(ids))
    return Vector(0.0, ids[first], np.maximum.reduceat(products, first))


def _from_everything(matrix: Matrix, key: Key, frontier: Vector, least: float, candidates: Ids | None) -> Vector:
    """From a frontier that is almost all nodes: all rows of the relation."""
    rows = matrix.every_row(key, least)
    return _kept(_whole(rows, frontier, matrix.size), least, candidates)


# -- anti-projection -------------------------------------------------------------------------------


def anti_project(matrix: Matrix, key: Key, frontier: Vector, alpha: float) -> Vector:
    """max over e of T(e) * (1 - M[e, x]) for every x (Eq. 9), M on the negation scale.

    The best source, of score m, has no edge to almost all nodes: m is the default, and only what it
    leads to can have less. Of that the next source decides what it has no edge to, and so on, until
    nothing is open.
    """
    best: float | None = None
    open_ids = decided_ids = np.empty(0, np.int64)
    values: Scores = np.empty(0)
    for heads, scores in _by_score(frontier, matrix.size):
        rows = matrix.rows(key, np.sort(heads))
        places = dict(zip(rows.heads.tolist(), range(len(rows.heads)), strict=True))
        for head, score in zip(heads.tolist(), scores.tolist(), strict=True):
            place = places.get(head)
            begin, end = (0, 0) if place is None else (int(rows.offsets[place]), int(rows.offsets[place + 1]))
            row = Vector(0.0, rows.ids[begin:end].astype(np.int64), rows.values[begin:end].astype(np.float64))
            if best is None:
                best, open_ids, values = score, row.ids, np.zeros(len(row.ids))
                decided_ids = row.ids
            at = np.searchsorted(decided_ids, open_ids)
            # No later source has a higher score than this one.
            at = at[values[at] < score]
            open_ids = decided_ids[at]
            if not len(open_ids):
                return Vector(best, decided_ids, values)
            values[at] = np.maximum(values[at], score * (1.0 - scaled_all(row.at(open_ids), alpha)))
    return NOTHING if best is None else Vector(best, decided_ids, values)


def _by_score(frontier: Vector, size: int) -> Iterator[tuple[Ids, Scores]]:
    """The nodes of a frontier by falling score (then by number), a few more each time."""
    above = frontier.values > frontier.default
    yield from _cut(*_falling(frontier.ids[above], frontier.values[above]))
    if frontier.default > 0.0:
        others = np.ones(size, bool)
        others[frontier.ids] = False
        rest = np.flatnonzero(others)
        yield from _cut(rest, np.full(len(rest), frontier.default))
        below = ~above & (frontier.values > 0.0)
        yield from _cut(*_falling(frontier.ids[below], frontier.values[below]))


def _falling(ids: Ids, values: Scores) -> tuple[Ids, Scores]:
    order = np.lexsort((ids, -values))
    return ids[order], values[order]


def _cut(ids: Ids, values: Scores) -> Iterator[tuple[Ids, Scores]]:
    begin, length = 0, 1
    while begin < len(ids):
        check()
        yield ids[begin : begin + length], values[begin : begin + length]
        begin, length = begin + length, min(2 * length, 256)


# -- forward -----------------------------------------------------------------------------------------
# The forward propagation (QTO, section 3.2): the scores of every node of a query computation tree,
# from its leaves to its root.


#: A bound that was divided may be rounded up.
SLACK: Final = 1.0 - 1e-12


def checked_names(tree: Tree, snapshot: Snapshot) -> None:
    """Raise `UnknownNameError` for a name of the query that the graph does not have."""
    schema = snapshot.schema
    for node in walk(tree):
        if isinstance(node, Projection) and not schema.has_relation(node.relation):
            raise UnknownNameError(
                "relation", node.relation, candidates=nearest(node.relation, schema.relations), span=node.span,
                hint=other_use(schema, node.relation, "relation"),
            )  # fmt: skip
        if isinstance(node, OfType) and schema.table_called(node.concept) is None and not schema.has_concept(node.concept):
            known = (*schema.concepts, *schema.tables)
            raise UnknownNameError(
                "concept", node.concept, candidates=nearest(node.concept, known), span=node.span,
                hint=other_use(schema, node.concept, "concept"),
            )  # fmt: skip
        if isinstance(node, Anchor) and not len(anchored(node, snapshot)):
            if node.is_id:
                raise UnknownNameError("id", node.name, span=node.span)
            hint = f"it is an id: <{node.name}>" if schema.has_id(node.name) else None
            raise UnknownNameError("entity", node.name, candidates=schema.nearest_entities(node.name), span=node.span, hint=hint)


def anchored(node: Anchor, snapshot: Snapshot) -> Ids:
    """The nodes of a constant, sorted: all of a name."""
    if node.is_id:
        number = snapshot.identified(node.name)
        return np.array([number] if number >= 0 else [], np.int64)
    return snapshot.named(node.name).astype(np.int64)


def typed(node: OfType, snapshot: Snapshot) -> Ids:
    """The members of a concept, or the rows of a table, sorted."""
    table = snapshot.schema.table_called(node.concept)
    if table is not None:
        return every(Run(snapshot), AllEntities((EntityKind.ROW,), table, own=True)).astype(np.int64)
    return snapshot.members(snapshot.concepts_named(node.concept)).astype(np.int64)


class Forward:
    """One propagation. `vectors` has the scores of each node of the tree, by its identity.

    `alpha` is the negation scale. Scores below `least` are left out where that cannot change any
    answer of at least that score: along projections and intersections, since a product is no larger
    than its parts, and not under `not` and `or`.
    """

    def __init__(self, snapshot: Snapshot, matrix: Matrix, *, alpha: float = 1.0, least: float = 0.0) -> None:
        self.snapshot, self.matrix, self.alpha, self.least = snapshot, matrix, alpha, least
        self.vectors: dict[int, Vector] = {}

    def run(self, tree: Tree, candidates: Ids | None = None) -> Vector:
        """The scores of the root; right for `candidates` (sorted) alone, where they are given."""
        return self._of(tree, self.least, candidates)

    def _of(self, node: Tree, least: float, candidates: Ids | None) -> Vector:
        check()
        found = self.vectors[id(node)] = self._made(node, least, candidates)
        return found

    def _made(self, node: Tree, least: float, candidates: Ids | None) -> Vector:
        if isinstance(node, Anchor):
            return certain(anchored(node, self.snapshot))
        if isinstance(node, Anything):
            return EVERYTHING
        if isinstance(node, OfType):
            return certain(typed(node, self.snapshot))
        if isinstance(node, Projection):
            key = node.relation, node.inverse
            if node.anti:
                # The best source counts, so that what is pruned below it does not.
                return anti_project(self.matrix, key, self._of(node.of, least, None), self.alpha)
            return project(self.matrix, key, self._of(node.of, least, None), least, candidates)
        if isinstance(node, Complement):
            return self._of(node.part, 0.0, candidates).complement(self.alpha)
        if isinstance(node, Union):
            found = either([self._of(part, 0.0, candidates) for part in node.parts])
            return found.pruned(least) if found.default == 0.0 else found
        return self._intersection(node, least, candidates)

    def _intersection(self, node: Intersection, least: float, candidates: Ids | None) -> Vector:
        """The cheapest branch first; all others at its values alone, negated ones among them."""
        parts = sorted(node.parts, key=_cost)
        vectors: list[Vector] = []
        needed = least
        for part in parts:
            vector = self._of(part, needed, candidates)
            vectors.append(vector)
            if vector.default == 0.0:
                ids = vector.ids if candidates is None else np.intersect1d(candidates, vector.ids, assume_unique=True)
                candidates = ids
                if least > 0.0 and vector.values.any():
                    needed = max(needed, SLACK * least / float(vector.values.max()))
        found = product(vectors)
        return found.pruned(least) if found.default == 0.0 and least > 0.0 else found


def _cost(node: Tree) -> tuple[bool, int]:
    """Branches that name their values go first, short ones before long ones."""
    return not bounded(node), sum(isinstance(one, Projection) for one in walk(node))


# -- derivation --------------------------------------------------------------------------------------
# The backward propagation (QTO, Eq. 12 to 14): which nodes the variables are for an answer, on
# every branch, and what each edge counts.


Kind = Literal["constant", "anything", "type", "relation", "and", "or", "not"]
_KINDS: Final[dict[type[Tree], Kind]] = {
    Anchor: "constant",
    Anything: "anything",
    OfType: "type",
    Intersection: "and",
    Union: "or",
    Complement: "not",
}
NO_EDGE: Final = "no such edge"


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge that counts for an answer, between nodes by number.

    `score` is how true it is, 1 where the graph has it (`observed`), as `statements` by number. Of
    a `negated` edge, `factor` is what is left: 1 - min(1, alpha * score).
    """

    subject: int
    relation: str
    object: int
    score: float
    factor: float
    observed: bool
    statements: tuple[int, ...] = ()
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a node of the tree came to its score: the entity that it is (`node`, None where there is
    none), and how its parts did.

    `variable` is its name in the query. `reason` says why a score is what it is where no entity
    does. `alpha` is the negation scale.
    """

    kind: Kind
    node: int | None
    score: float
    variable: str | None = None
    parts: tuple[Derivation, ...] = ()
    edge: Edge | None = None
    reason: str = ""
    alpha: float = 1.0

    def multiplied(self) -> float:
        """The score worked out again, from the edges alone."""
        if self.kind == "relation":
            return 0.0 if self.edge is None else self.parts[0].multiplied() * self.edge.factor
        if self.kind == "and":
            return float(np.prod([part.multiplied() for part in self.parts]))
        if self.kind == "or":
            return 1.0 - float(np.prod([1.0 - part.multiplied() for part in self.parts]))
        if self.kind == "not":
            if self.edge is not None:
                return self.edge.factor
            return 1.0 - scaled(self.parts[0].multiplied(), self.alpha) if self.parts else 1.0
        return self.score

    def walk(self) -> Iterator[Derivation]:
        """This and all below, the answer first."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def edges(self) -> list[Edge]:
        """All edges, the answer's first."""
        return [one.edge for one in self.walk() if one.edge is not None]


class Backward:
    """Derivations of the answers of a propagation."""

    def __init__(self, forward: Forward) -> None:
        self.forward, self.matrix = forward, forward.matrix
        self.observed = adjacency(forward.snapshot)

    def derive(self, node: Tree, value: int, variable: str | None = None) -> Derivation:
        """How `node` of the tree is `value`; the best way, and of equals the one by edges of the
        graph, then by the first entity.
        """
        check()
        score = self.forward.vectors[id(node)].one(value)
        if isinstance(node, Projection):
            return self._projection(node, value, score, variable)
        if isinstance(node, Complement):
            return self._complement(node, value, score, variable)
        parts: tuple[Derivation, ...] = ()
        if isinstance(node, (Intersection, Union)):
            parts = tuple(self.derive(part, value, variable) for part in node.parts)
        reason = f"not of type {node.concept}" if isinstance(node, OfType) and not score else ""
        reason = f"of type {node.concept}" if isinstance(node, OfType) and score else reason
        return Derivation(_KINDS[type(node)], value, score, variable, parts, None, reason, self.forward.alpha)

    def _projection(self, node: Projection, value: int, score: float, variable: str | None) -> Derivation:
        if score <= 0.0:
            return Derivation("relation", value, 0.0, variable, (), None, f"no {node.relation} leads there")
        below, weight = (self._anti_source if node.anti else self._source)(node, value)
        part = self.derive(node.of, below, node.variable)
        edge = self._edge(node, below, value, weight, node.anti)
        reason = NO_EDGE if node.anti and weight <= 0.0 else ""
        return Derivation("relation", value, score, variable, (part,), edge, reason, self.forward.alpha)

    def _edge(self, node: Projection, below: int, value: int, weight: float, negated: bool) -> Edge:
        subject, object_ = (value, below) if node.inverse else (below, value)
        key = node.relation, node.inverse
        statements = tuple(self.observed.statements(key, below, value))
        factor = 1.0 - scaled(weight, self.forward.alpha) if negated else weight
        return Edge(subject, node.relation, object_, weight, factor, bool(statements), statements, negated)

    def _source(self, node: Projection, value: int) -> tuple[int, float]:
        """The entity that an edge comes from (Eq. 13), and the score of the edge."""
        frontier, key = self.forward.vectors[id(node.of)], (node.relation, node.inverse)
        rows = self.matrix.every_row(key) if frontier.default > 0.0 else self.matrix.rows(key, frontier.ids)
        entries = np.flatnonzero(rows.ids == value)
        heads = rows.heads[np.searchsorted(rows.offsets, entries, side="right") - 1]
        weights = rows.values[entries].astype(np.float64)
        products = frontier.at(heads) * weights
        best = np.flatnonzero(products == products.max())
        first = best[np.lexsort((heads[best], -weights[best]))[0]]
        return int(heads[first]), float(weights[first])

    def _anti_source(self, node: Projection, value: int) -> tuple[int, float]:
        """The entity that an edge does not come from (Eq. 14), and the score of that edge."""
        frontier, key = self.forward.vectors[id(node.of)], (node.relation, node.inverse)
        heads = np.arange(self.matrix.size) if frontier.default > 0.0 else frontier.ids
        rows = self.matrix.rows(key, heads)
        entries = np.flatnonzero(rows.ids == value)
        weights = np.zeros(len(heads))
        there = rows.heads[np.searchsorted(rows.offsets, entries, side="right") - 1]
        weights[np.searchsorted(heads, there)] = rows.values[entries]
        products = frontier.at(heads) * (1.0 - scaled_all(weights, self.forward.alpha))
        first = int(np.argmax(products))
        return int(heads[first]), float(weights[first])

    def _complement(self, node: Complement, value: int, score: float, variable: str | None) -> Derivation:
        """Of one negated atom with a constant the edge, scored; of more than that the best way in
        which it would hold.
        """
        part, alpha = node.part, self.forward.alpha
        inner = self.forward.vectors[id(part)].one(value)
        if isinstance(part, Projection) and isinstance(part.of, Anchor) and not part.anti:
            below = self._source(part, value) if inner > 0.0 else (int(self.forward.vectors[id(part.of)].ids[0]), 0.0)
            edge = self._edge(part, *_of(below, value), True)
            return Derivation("not", value, score, variable, (), edge, NO_EDGE if inner <= 0.0 else "", alpha)
        if inner <= 0.0:
            reason = f"not of type {part.concept}" if isinstance(part, OfType) else "nothing in the graph or the model says it"
            return Derivation("not", value, score, variable, (), None, reason, alpha)
        return Derivation("not", value, score, variable, (self.derive(part, value, variable),), None, "", alpha)


def _of(below: tuple[int, float], value: int) -> tuple[int, int, float]:
    return below[0], value, below[1]
