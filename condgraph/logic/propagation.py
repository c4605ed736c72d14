"""Propagation over a query computation tree (QTO): forward from the leaves to the scores of the root (Eq. 7 to 10), and
backward from an answer to the entity of every variable (Eq. 12 to 14).
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
# The score of every node as the value of a variable (T* of QTO, section 3.2), as a default and exceptions.
#
# The complement of a small set contains almost all nodes; with a default it takes as little memory.
# Scores are float64 throughout: in float32 the union of two 0.9999 is 1.


Ids = NDArray[np.int64]
Scores = NDArray[np.float64]
_NO_IDS: Final = np.empty(0, np.int64)
_NO_SCORES: Final = np.empty(0, np.float64)


@dataclass(frozen=True, slots=True)
class Vector:
    """Scores in [0, 1]: `values[i]` for the node `ids[i]` (ascending, distinct), `default` for all other nodes."""

    default: float
    ids: Ids
    values: Scores

    def at(self, ids: Ids) -> Scores:
        """Return the scores of some nodes, in any order."""
        scores = np.full(len(ids), self.default)
        if len(self.ids):
            place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
            listed = self.ids[place] == ids
            scores[listed] = self.values[place[listed]]
        return scores

    def one(self, node: int) -> float:
        place = int(np.searchsorted(self.ids, node))
        return float(self.values[place]) if place < len(self.ids) and self.ids[place] == node else self.default

    def pruned(self, least: float) -> Vector:
        """Return the vector without scores of 0 and scores below `least`. Its default must be 0."""
        keep = self.values >= least if least > 0 else self.values > 0
        return self if keep.all() else Vector(0.0, self.ids[keep], self.values[keep])

    def complement(self, alpha: float) -> Vector:
        """Return 1 - min(1, alpha * v), and 0 where v is 1 (QTO, section 4.1: the negation scale)."""
        return Vector(1.0 - scaled(self.default, alpha), self.ids, 1.0 - scaled_all(self.values, alpha))


def scaled(score: float, alpha: float) -> float:
    """Return a negated score on the negation scale; a score of 1 stays 1."""
    return 1.0 if score >= 1.0 else min(1.0, alpha * score)


def scaled_all(scores: Scores, alpha: float) -> Scores:
    """Return `scaled` of each score."""
    return np.where(scores >= 1.0, 1.0, np.minimum(1.0, alpha * scores))


NOTHING: Final = Vector(0.0, _NO_IDS, _NO_SCORES)
EVERYTHING: Final = Vector(1.0, _NO_IDS, _NO_SCORES)


def certain(ids: Ids) -> Vector:
    """Return score 1 for the given nodes (ascending), 0 for all others."""
    return Vector(0.0, ids.astype(np.int64), np.ones(len(ids)))


def product(vectors: Sequence[Vector]) -> Vector:
    """Return the intersection under the product t-norm (Eq. 5), computed at the nodes of the smallest vector with
    default 0.
    """
    sparse = [vector for vector in vectors if vector.default == 0.0]
    if sparse:
        ids = min(sparse, key=lambda vector: len(vector.ids)).ids
        values = np.ones(len(ids))
        # Multiply in the given order, whichever is the smallest, so that rounding never varies.
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
    """Return the union, 1 - (1 - a)(1 - b)... (Eq. 6)."""
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
# The rows of the neural adjacency matrix of each relation (M of QTO, section 3.2): the nodes that a
# relation reaches from a node, with scores.
#
# A score is 1 if the graph has the edge, and less otherwise. `Adjacency` has the edges of the graph
# alone, so answers are the exact symbolic ones; `condgraph.logic.predicted` adds the edges that a
# link prediction model predicts. Only nodes that have a row take memory.


#: A relation, and whether to follow it from object to subject.
Key = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a relation: the row of `heads[i]` is `ids` and `values` in `[offsets[i], offsets[i + 1])`.

    `heads` ascend, and so do the ids of a row; a row may be empty. `values` are float32 or float64.
    """

    heads: Ids
    offsets: Ids
    ids: NDArray[Any]
    values: NDArray[Any]

    def counts(self) -> Ids:
        """Return the length of each row."""
        return np.diff(self.offsets)

    def places(self, heads: Ids) -> tuple[Ids, Ids]:
        """Return the positions in `heads` (ascending) of those that have a row here, and the numbers of their rows."""
        if not len(self.heads):
            return _NO_IDS, _NO_IDS
        at = np.minimum(np.searchsorted(self.heads, heads), len(self.heads) - 1)
        present = np.flatnonzero(self.heads[at] == heads)
        return present, at[present]

    def take(self, heads: Ids) -> Rows:
        """Return the rows of those `heads` (ascending) that have one."""
        present, rows = self.places(heads)
        begin, end = self.offsets[rows], self.offsets[rows + 1]
        entries = ranges(begin, end)
        offsets = np.concatenate([[0], np.cumsum(end - begin)])
        return Rows(heads[present], offsets, self.ids[entries], self.values[entries])


NO_ROWS: Final = Rows(_NO_IDS, np.zeros(1, np.int64), _NO_IDS, np.empty(0))


class Matrix(Protocol):
    """The rows of all relations of one graph. Nodes are the numbers of its snapshot, from 0 to `size`."""

    @property
    def size(self) -> int:
        """The number of nodes."""
        ...

    @property
    def observed_only(self) -> bool:
        """Whether all edges are in the graph."""
        ...

    def rows(self, key: Key, heads: Ids, least: float = 0.0) -> Rows:
        """Return the rows of some heads (ascending). Entries below `least` and empty rows may be missing."""
        ...

    def whole(self, key: Key) -> Rows | None:
        """Return all rows of a relation, or None if that would need computation."""
        ...

    def every_row(self, key: Key, least: float = 0.0) -> Rows:
        """Return all rows of a relation, computed if necessary."""
        ...


class Adjacency:
    """The edges of a snapshot, each with score 1. The rows of a relation are sorted on first use."""

    observed_only: Final = True

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.size = snapshot, snapshot.entities
        self._rows: dict[Key, Rows] = {}

    def whole(self, key: Key) -> Rows:
        rows = self._rows.get(key)
        if rows is None:
            rows = self._rows[key] = self._compute(key)
        return rows

    def every_row(self, key: Key, least: float = 0.0) -> Rows:
        return self.whole(key)

    def rows(self, key: Key, heads: Ids, least: float = 0.0) -> Rows:
        return self.whole(key).take(heads)

    def has(self, key: Key, head: int, tail: int) -> bool:
        """Whether the graph has an edge."""
        rows = self.whole(key)
        present, places = rows.places(np.array([head]))
        if not len(present):
            return False
        row = rows.ids[rows.offsets[places[0]] : rows.offsets[places[0] + 1]]
        at = int(np.searchsorted(row, tail))
        return at < len(row) and int(row[at]) == tail

    def statements(self, key: Key, head: int, tail: int) -> list[int]:
        """Return the numbers of the statements of an edge: several if they differ in qualifiers."""
        subject, object_ = (tail, head) if key[1] else (head, tail)
        statements: list[int] = []
        for low, high in self.snapshot.runs((key[0],), True, False):
            outgoing = self.snapshot.outgoing(subject, low, high)
            statements.extend(outgoing[self.snapshot.relation_object[outgoing] == object_].tolist())
        return statements

    def _compute(self, key: Key) -> Rows:
        runs = self.snapshot.runs((key[0],), True, False)
        if not runs:
            return NO_ROWS
        subjects = np.concatenate([self.snapshot.relation_subject[low:high] for low, high in runs]).astype(np.int64)
        objects = np.concatenate([self.snapshot.relation_object[low:high] for low, high in runs]).astype(np.int64)
        heads, tails = (objects, subjects) if key[1] else (subjects, objects)
        # Statements that differ only in qualifiers are one edge.
        pairs = different(heads * self.size + tails)
        check()
        heads, tails = pairs // self.size, pairs % self.size
        first = np.flatnonzero(changed(heads))
        return Rows(
            heads[first], np.append(first, len(heads)).astype(np.int64), tails.astype(np.int32), np.ones(len(tails), np.float32)
        )


_CACHE_KEY: Final = "logic.adjacency"


def adjacency(snapshot: Snapshot) -> Adjacency:
    """Return the adjacency of a snapshot, cached as long as the snapshot is open."""
    cached = snapshot.schema.kept.get(_CACHE_KEY)
    if cached is None:
        cached = snapshot.schema.kept[_CACHE_KEY] = Adjacency(snapshot)
    assert isinstance(cached, Adjacency)
    return cached


# -- kernels -----------------------------------------------------------------------------------------
# One projection (QTO, Eq. 7 to 10): from the scores of a variable to the scores of the nodes that a
# relation reaches.
#
# The fastest method depends on the frontier, the nodes with a score: one row is used unchanged; few
# rows are sorted; many rows are gathered, with `np.maximum.at`; and the whole relation is used if the
# frontier has a third of its heads or more, since then nothing needs gathering.


#: The number of entries below which sorting is faster than a table of all nodes.
MIN_TABLE: Final = 4_096
#: The number of heads whose rows are gathered at once.
CHUNK: Final = 4_096
#: The number of entries whose products are computed at once.
IN_CACHE: Final = 65_536


def project(matrix: Matrix, key: Key, frontier: Vector, least: float = 0.0, candidates: Ids | None = None) -> Vector:
    """Return max over e of T(e) * M[e, x] for every x (Eq. 7), or only for `candidates` (ascending) if given. Results
    below `least` are left out; the others are exact.
    """
    if frontier.default > 0.0:
        return _from_everything(matrix, key, frontier, least, candidates)
    heads, scores = frontier.ids, frontier.values
    if least > 0.0:
        high = scores >= least
        if not high.all():
            heads, scores = heads[high], scores[high]
    if not len(heads):
        return NOTHING
    # The quotient may have been rounded up.
    needed = SLACK * least / float(scores.max()) if least > 0.0 else 0.0
    if len(heads) == 1:
        result = _scaled_row(matrix.rows(key, heads, needed), float(scores[0]))
    else:
        every_row = matrix.whole(key)
        if every_row is not None and 3 * len(heads) >= len(every_row.heads):
            result = _full_product(every_row, Vector(0.0, heads, scores), matrix.size)
        else:
            result = _gathered(matrix, key, heads, scores, needed)
    return _pruned(result, least, candidates)


def _pruned(found: Vector, least: float, candidates: Ids | None) -> Vector:
    if candidates is not None:
        found = Vector(0.0, candidates, found.at(candidates))
    return found.pruned(least)


def _scaled_row(rows: Rows, score: float) -> Vector:
    return Vector(0.0, rows.ids.astype(np.int64), rows.values.astype(np.float64) * score)


def _full_product(rows: Rows, frontier: Vector, size: int) -> Vector:
    weights = frontier.at(rows.heads)
    if len(rows.ids) < MIN_TABLE:
        return _largest_sorted(rows.ids, np.repeat(weights, rows.counts()) * rows.values)
    table = np.zeros(size)
    _into(table, rows, weights)
    return _from_table(table)


def _into(table: Scores, rows: Rows, weights: Scores) -> None:
    """Raise a table to the products of rows with the weights of their heads. Only some rows at a time, so that the
    products stay in the processor's cache.
    """
    offsets, counts = rows.offsets, rows.counts()
    begin, heads = 0, len(rows.heads)
    while begin < heads:
        end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + IN_CACHE, "right")) - 1)
        low, high = int(offsets[begin]), int(offsets[end])
        products = np.repeat(weights[begin:end], counts[begin:end])
        products *= rows.values[low:high]
        # With indices narrower than its own, NumPy loses more time than the conversion takes.
        np.maximum.at(table, rows.ids[low:high].astype(np.intp, copy=False), products)
        begin = end


def _gathered(matrix: Matrix, key: Key, heads: Ids, scores: Scores, needed: float) -> Vector:
    table: Scores | None = None
    for begin in range(0, len(heads), CHUNK):
        check()
        batch, batch_scores = heads[begin : begin + CHUNK], scores[begin : begin + CHUNK]
        rows = matrix.rows(key, batch, needed)
        if len(rows.heads) != len(batch):
            batch_scores = batch_scores[np.searchsorted(batch, rows.heads)]
        if len(heads) <= CHUNK and len(rows.ids) < MIN_TABLE:
            return _largest_sorted(rows.ids, np.repeat(batch_scores, rows.counts()) * rows.values)
        if table is None:
            table = np.zeros(matrix.size)
        _into(table, rows, batch_scores)
    assert table is not None
    return _from_table(table)


def _from_table(table: Scores) -> Vector:
    ids = np.flatnonzero(table)
    return Vector(0.0, ids, table[ids])


def _largest_sorted(ids: Ids, products: Scores) -> Vector:
    if not len(ids):
        return NOTHING
    order = np.argsort(ids, kind="stable")
    ids, products = ids[order].astype(np.int64), products[order]
    first = np.flatnonzero(changed(ids))
    return Vector(0.0, ids[first], np.maximum.reduceat(products, first))


def _from_everything(matrix: Matrix, key: Key, frontier: Vector, least: float, candidates: Ids | None) -> Vector:
    """Project a frontier of almost all nodes, with all rows of the relation."""
    rows = matrix.every_row(key, least)
    return _pruned(_full_product(rows, frontier, matrix.size), least, candidates)


# -- anti-projection -------------------------------------------------------------------------------


def anti_project(matrix: Matrix, key: Key, frontier: Vector, alpha: float) -> Vector:
    """Return max over e of T(e) * (1 - M[e, x]) for every x (Eq. 9), with M on the negation scale.

    The best source, with score m, has no edge to almost all nodes: m is the default, and only nodes that it reaches can
    score less. The next source decides those among them that it does not reach, and so on, until none is open.
    """
    best: float | None = None
    open_ids = decided_ids = np.empty(0, np.int64)
    values: Scores = np.empty(0)
    for heads, scores in _by_score(frontier, matrix.size):
        rows = matrix.rows(key, np.sort(heads))
        places = dict(zip(rows.heads.tolist(), range(len(rows.heads)), strict=True))
        for head, score in zip(heads.tolist(), scores.tolist(), strict=True):
            row_number = places.get(head)
            begin, end = (0, 0) if row_number is None else (int(rows.offsets[row_number]), int(rows.offsets[row_number + 1]))
            row = Vector(0.0, rows.ids[begin:end].astype(np.int64), rows.values[begin:end].astype(np.float64))
            if best is None:
                best, open_ids, values = score, row.ids, np.zeros(len(row.ids))
                decided_ids = row.ids
            open_at = np.searchsorted(decided_ids, open_ids)
            # No later source has a higher score: values that reach this one are final.
            open_at = open_at[values[open_at] < score]
            open_ids = decided_ids[open_at]
            if not len(open_ids):
                return Vector(best, decided_ids, values)
            values[open_at] = np.maximum(values[open_at], score * (1.0 - scaled_all(row.at(open_ids), alpha)))
    return NOTHING if best is None else Vector(best, decided_ids, values)


def _by_score(frontier: Vector, size: int) -> Iterator[tuple[Ids, Scores]]:
    """Yield the nodes of a frontier by falling score, then by number, in batches of growing size."""
    above = frontier.values > frontier.default
    yield from _growing_slices(*_falling(frontier.ids[above], frontier.values[above]))
    if frontier.default > 0.0:
        unlisted = np.ones(size, bool)
        unlisted[frontier.ids] = False
        default_ids = np.flatnonzero(unlisted)
        yield from _growing_slices(default_ids, np.full(len(default_ids), frontier.default))
        below = ~above & (frontier.values > 0.0)
        yield from _growing_slices(*_falling(frontier.ids[below], frontier.values[below]))


def _falling(ids: Ids, values: Scores) -> tuple[Ids, Scores]:
    order = np.lexsort((ids, -values))
    return ids[order], values[order]


def _growing_slices(ids: Ids, values: Scores) -> Iterator[tuple[Ids, Scores]]:
    begin, length = 0, 1
    while begin < len(ids):
        check()
        yield ids[begin : begin + length], values[begin : begin + length]
        begin, length = begin + length, min(2 * length, 256)


# -- forward -----------------------------------------------------------------------------------------
# Forward propagation (QTO, section 3.2): the scores at every node of a query computation tree, from
# its leaves to its root.


#: Lowers a quotient, which may have been rounded up, so that it stays a valid bound.
SLACK: Final = 1.0 - 1e-12


def checked_names(tree: Tree, snapshot: Snapshot) -> None:
    """Raise `UnknownNameError` for a name in the query that the graph does not have."""
    schema = snapshot.schema
    for node in walk(tree):
        if isinstance(node, Projection) and not schema.has_relation(node.relation):
            raise UnknownNameError(
                "relation", node.relation, candidates=nearest(node.relation, schema.relations), span=node.span,
                hint=other_use(schema, node.relation, "relation"),
            )  # fmt: skip
        if isinstance(node, OfType) and schema.table_called(node.concept) is None and not schema.has_concept(node.concept):
            names = (*schema.concepts, *schema.tables)
            raise UnknownNameError(
                "concept", node.concept, candidates=nearest(node.concept, names), span=node.span,
                hint=other_use(schema, node.concept, "concept"),
            )  # fmt: skip
        if isinstance(node, Anchor) and not len(anchored(node, snapshot)):
            if node.is_id:
                raise UnknownNameError("id", node.name, span=node.span)
            hint = f"it is an id: <{node.name}>" if schema.has_id(node.name) else None
            raise UnknownNameError("entity", node.name, candidates=schema.nearest_entities(node.name), span=node.span, hint=hint)


def anchored(node: Anchor, snapshot: Snapshot) -> Ids:
    """Return the nodes of a constant, ascending: all entities of a name, or the entity of an id."""
    if node.is_id:
        number = snapshot.identified(node.name)
        return np.array([number] if number >= 0 else [], np.int64)
    return snapshot.named(node.name).astype(np.int64)


def typed(node: OfType, snapshot: Snapshot) -> Ids:
    """Return the members of a concept, or the rows of a table, ascending."""
    table = snapshot.schema.table_called(node.concept)
    if table is not None:
        return every(Run(snapshot), AllEntities((EntityKind.ROW,), table, own=True)).astype(np.int64)
    return snapshot.members(snapshot.concepts_named(node.concept)).astype(np.int64)


class Forward:
    """One forward propagation. `vectors` has the scores at each node of the tree, by the node's identity.

    `alpha` is the negation scale. Scores below `least` are left out where that cannot change an answer of at least that
    score: along projections and intersections, since a product is no larger than its factors, but not under `not` and
    `or`.
    """

    def __init__(self, snapshot: Snapshot, matrix: Matrix, *, alpha: float = 1.0, least: float = 0.0) -> None:
        self.snapshot, self.matrix, self.alpha, self.least = snapshot, matrix, alpha, least
        self.vectors: dict[int, Vector] = {}

    def run(self, tree: Tree, candidates: Ids | None = None) -> Vector:
        """Return the scores of the root. If `candidates` (ascending) are given, only their scores are right."""
        return self._of(tree, self.least, candidates)

    def _of(self, node: Tree, least: float, candidates: Ids | None) -> Vector:
        check()
        vector = self.vectors[id(node)] = self._compute(node, least, candidates)
        return vector

    def _compute(self, node: Tree, least: float, candidates: Ids | None) -> Vector:
        if isinstance(node, Anchor):
            return certain(anchored(node, self.snapshot))
        if isinstance(node, Anything):
            return EVERYTHING
        if isinstance(node, OfType):
            return certain(typed(node, self.snapshot))
        if isinstance(node, Projection):
            key = node.relation, node.inverse
            if node.anti:
                # The best source decides, and pruning removes only lower ones.
                return anti_project(self.matrix, key, self._of(node.of, least, None), self.alpha)
            return project(self.matrix, key, self._of(node.of, least, None), least, candidates)
        if isinstance(node, Complement):
            return self._of(node.part, 0.0, candidates).complement(self.alpha)
        if isinstance(node, Union):
            union = either([self._of(part, 0.0, candidates) for part in node.parts])
            return union.pruned(least) if union.default == 0.0 else union
        return self._intersection(node, least, candidates)

    def _intersection(self, node: Intersection, least: float, candidates: Ids | None) -> Vector:
        """Evaluate the cheapest branch first, and all others, including negated ones, only at its nodes."""
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
        result = product(vectors)
        return result.pruned(least) if result.default == 0.0 and least > 0.0 else result


def _cost(node: Tree) -> tuple[bool, int]:
    """Order branches: those that list their nodes before others, then by the number of projections."""
    return not bounded(node), sum(isinstance(inner, Projection) for inner in walk(node))


# -- derivation --------------------------------------------------------------------------------------
# Backward propagation (QTO, Eq. 12 to 14): the node of every variable for an answer, on every branch,
# and the factor of each edge.


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
    """An edge that an answer rests on, between nodes by number.

    `score` is its score, 1 if the graph has the edge (`observed`), with `statements` by number. `factor` is what the
    edge multiplies the answer's score by: `score`, or if the edge is `negated` 1 - min(1, alpha * score), which is 0
    for an observed edge.
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
    """How a node of the tree came to its score: its entity (`node`, None if there is none) and the derivations of its
    `parts`.

    `variable` is the name of its variable in the query. `reason` explains the score where no entity does. `alpha` is
    the negation scale.
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
        """Return the score, computed again from the edges alone."""
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
        """Yield this derivation and all in it, the answer first."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def edges(self) -> list[Edge]:
        """Return all edges, those next to the answer first."""
        return [step.edge for step in self.walk() if step.edge is not None]


class Backward:
    """Derives the answers of a forward propagation."""

    def __init__(self, forward: Forward) -> None:
        self.forward, self.matrix = forward, forward.matrix
        self.observed = adjacency(forward.snapshot)

    def derive(self, node: Tree, value: int, variable: str | None = None) -> Derivation:
        """Return the best derivation of `value` at `node` of the tree. Of equally good ones an edge of the graph wins,
        then the first entity.
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
        """Return the entity at the other end of the best edge (Eq. 13), and the score of that edge."""
        frontier, key = self.forward.vectors[id(node.of)], (node.relation, node.inverse)
        rows = self.matrix.every_row(key) if frontier.default > 0.0 else self.matrix.rows(key, frontier.ids)
        entries = np.flatnonzero(rows.ids == value)
        heads = rows.heads[np.searchsorted(rows.offsets, entries, side="right") - 1]
        weights = rows.values[entries].astype(np.float64)
        products = frontier.at(heads) * weights
        tied = np.flatnonzero(products == products.max())
        best = tied[np.lexsort((heads[tied], -weights[tied]))[0]]
        return int(heads[best]), float(weights[best])

    def _anti_source(self, node: Projection, value: int) -> tuple[int, float]:
        """Return the entity whose missing edge counts most (Eq. 14), and the score of that edge."""
        frontier, key = self.forward.vectors[id(node.of)], (node.relation, node.inverse)
        heads = np.arange(self.matrix.size) if frontier.default > 0.0 else frontier.ids
        rows = self.matrix.rows(key, heads)
        entries = np.flatnonzero(rows.ids == value)
        weights = np.zeros(len(heads))
        linked = rows.heads[np.searchsorted(rows.offsets, entries, side="right") - 1]
        weights[np.searchsorted(heads, linked)] = rows.values[entries]
        products = frontier.at(heads) * (1.0 - scaled_all(weights, self.forward.alpha))
        best = int(np.argmax(products))
        return int(heads[best]), float(weights[best])

    def _complement(self, node: Complement, value: int, score: float, variable: str | None) -> Derivation:
        """Derive a negation: a single atom with a constant as an edge with its score, anything else by the best
        derivation of the negated part.
        """
        part, alpha = node.part, self.forward.alpha
        inner = self.forward.vectors[id(part)].one(value)
        if isinstance(part, Projection) and isinstance(part.of, Anchor) and not part.anti:
            source = self._source(part, value) if inner > 0.0 else (int(self.forward.vectors[id(part.of)].ids[0]), 0.0)
            edge = self._edge(part, *_of(source, value), True)
            return Derivation("not", value, score, variable, (), edge, NO_EDGE if inner <= 0.0 else "", alpha)
        if inner <= 0.0:
            reason = f"not of type {part.concept}" if isinstance(part, OfType) else "nothing in the graph or the model says it"
            return Derivation("not", value, score, variable, (), None, reason, alpha)
        return Derivation("not", value, score, variable, (self.derive(part, value, variable),), None, "", alpha)


def _of(below: tuple[int, float], value: int) -> tuple[int, int, float]:
    return below[0], value, below[1]
