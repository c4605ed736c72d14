"""Horn rules over the edges of a graph, and how they are learned (AnyBURL, Meilicke 2019; SAFRAN, Ott 2021).

cyclic    r(X, Y) <- s1(X, A), s2(A, B), s3(B, Y)    one to three steps, each a relation or its inverse
constant  r(X, c) <- s(X, d)  and  r(X, c) <- s(X, A)    and the same for the subject

A body holds for all entities that its steps reach, as when the algebra runs it, but never by the edge
that it predicts: the confidence of a rule does not count an edge that predicts itself. Confidences are
smoothed: right / (predicted + 5).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, check, different
from condgraph.engine.errors import LinkModelError, OptionError
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.links.edges import Edges, Ints

#: Wrong predictions that are added to those of every rule (AnyBURL's Laplace smoothing).
UNSEEN: Final = 5
#: The most neighbours of an end of a sampled edge through which paths are searched.
_NEIGHBOURS: Final = 100
_BLOOM: Final = 1 << 24


class Paths:
    """The edges of a graph as steps: step 2r follows the relation r forward, 2r + 1 its inverse."""

    def __init__(self, edges: Edges) -> None:
        self.n, self.relations = len(edges.entities), len(edges.relations)
        self.steps = 2 * self.relations
        head, relation, tail = (edges.triples[:, at] for at in range(3))
        node, other = np.concatenate([head, tail]), np.concatenate([tail, head])
        step = np.concatenate([2 * relation, 2 * relation + 1])
        if self.steps**3 * max(self.n, 1) >= 2**62 or self.n**2 * self.steps >= 2**62:
            raise LinkModelError(f"{self.n:,} entities and {self.relations:,} relations are more than rules can be learned for")
        order = np.argsort((step * self.n + node) * self.n + other)
        self.head = node[order].astype(np.int32)
        self.tail = other[order].astype(np.int32)
        self.step_at = np.searchsorted(step[order], np.arange(self.steps + 1))
        pairs = node * self.n + other
        order = np.argsort(pairs * self.steps + step)
        #: All edges sorted by their two ends, and the offset of each node's edges.
        self.pairs, self.pair_steps = pairs[order], step[order].astype(np.int32)
        self.pair_others = other[order].astype(np.int32)
        self.node_at = np.searchsorted(node[order], np.arange(self.n + 1))
        self._bloom = np.zeros(_BLOOM, bool)
        self._bloom[self._hashed(self.pairs)] = True
        self._heads: dict[int, tuple[Ints, Ints]] = {}

    @staticmethod
    def _hashed(pairs: Ints) -> Ints:
        return ((pairs.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)).astype(np.int64)

    def heads(self, step: int) -> Ints:
        """Return the entities with an edge by a step, ascending."""
        return self._of(step)[0]

    def _of(self, step: int) -> tuple[Ints, Ints]:
        result = self._heads.get(step)
        if result is None:
            low, high = int(self.step_at[step]), int(self.step_at[step + 1])
            nodes = self.head[low:high]
            first = np.flatnonzero(changed(nodes))
            result = self._heads[step] = nodes[first].astype(np.int64), np.append(first + low, high)
        return result

    def follow(self, step: int, nodes: Ints) -> tuple[Ints, Ints]:
        """Follow a step from each node; return the number of ends of each, and the ends."""
        heads, offsets = self._of(step)
        if not len(heads):
            return np.zeros(len(nodes), np.int64), np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(heads, nodes), len(heads) - 1)
        present = heads[at] == nodes
        begin, end = np.where(present, offsets[at], 0), np.where(present, offsets[at + 1], 0)
        return end - begin, self.tail[ranges(begin, end)].astype(np.int64)

    def around(self, nodes: Ints, most: int, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
        """Return the edges of each node, sampled to at most `most` per node: the position of the node, the step, and
        the end.
        """
        begin, end = self.node_at[nodes], self.node_at[nodes + 1]
        counts = end - begin
        sample_sizes = np.minimum(counts, most)
        place = np.repeat(np.arange(len(nodes)), sample_sizes)
        inner = ranges(np.zeros_like(sample_sizes), sample_sizes)
        large = counts[place] > most
        # The edges of a hub are drawn with repetition; duplicates are removed later.
        inner[large] = (rng.random(int(large.sum())) * counts[place[large]]).astype(np.int64)
        rows = begin[place] + inner
        return place, self.pair_steps[rows].astype(np.int64), self.pair_others[rows].astype(np.int64)

    def between(self, a: Ints, b: Ints) -> tuple[Ints, Ints]:
        """Return the steps from each `a` to its `b`: the position of the pair, and the step."""
        key = a * self.n + b
        near = np.flatnonzero(self._bloom[self._hashed(key)])
        key = key[near]
        order = np.argsort(key)
        key, near = key[order], near[order]
        begin, end = np.searchsorted(self.pairs, key), np.searchsorted(self.pairs, key, side="right")
        return np.repeat(near, end - begin), self.pair_steps[ranges(begin, end)].astype(np.int64)


def joined(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return the positions of all pairs of equal keys in two arrays."""
    order = np.argsort(right)
    ordered = right[order]
    begin, end = np.searchsorted(ordered, left), np.searchsorted(ordered, left, side="right")
    return np.repeat(np.arange(len(left)), end - begin), order[ranges(begin, end)]


def closings(paths: Paths, triples: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the paths of at most three steps from the head to the tail of each edge, without that edge itself: the
    codes of paths, and how many edges each closes. All edges have one relation. The edges of hubs are sampled.
    """
    m = paths.steps
    base = m + 1
    x, r, y = triples[:, 0], int(triples[0, 1]), triples[:, 2]
    li, ls, la = paths.around(x, _NEIGHBOURS, rng)
    ri, rs, rb = paths.around(y, _NEIGHBOURS, rng)
    own = (ls == 2 * r) & (la == y[li])
    li, ls, la = li[~own], ls[~own], la[~own]
    # Invert the step from y to b, since paths end at y.
    own = (rs == 2 * r + 1) & (rb == x[ri])
    ri, rs, rb = ri[~own], rs[~own] ^ 1, rb[~own]
    room = base**3
    coded = []
    at = np.flatnonzero(la == y[li])
    coded.append(li[at] * room + (ls[at] + 1))
    middle = (la != y[li]) & (la != x[li])
    li, ls, la = li[middle], ls[middle], la[middle]
    middle = (rb != y[ri]) & (rb != x[ri])
    ri, rs, rb = ri[middle], rs[middle], rb[middle]
    lkey, rkey = li * paths.n + la, ri * paths.n + rb
    i, j = joined(lkey, rkey)
    coded.append(li[i] * room + (ls[i] + 1) * base + rs[j] + 1)
    lnode, rnode = different(lkey), different(rkey)
    i, j = joined(lnode // paths.n, rnode // paths.n)
    a, b = lnode[i] % paths.n, rnode[j] % paths.n
    pair, step = paths.between(a, b)
    keep = a[pair] != b[pair]
    pair, step = pair[keep], step[keep]
    # Combine each (a, b) with all steps to a and all steps from b.
    p, q = joined(lnode[i[pair]], lkey)
    step, right = step[p], rnode[j[pair]][p]
    first = ls[q]
    p, q2 = joined(right, rkey)
    coded.append(li[q[p]] * room + ((first[p] + 1) * base + step[p] + 1) * base + rs[q2] + 1)
    return np.unique(different(np.concatenate(coded)) % room, return_counts=True)


def steps_of(code: int, base: int) -> tuple[int, ...]:
    """Return the steps of a path's code."""
    steps: list[int] = []
    while code:
        code, step = divmod(code, base)
        steps.append(step - 1)
    return tuple(reversed(steps))


@dataclass(frozen=True, slots=True)
class Learning:
    """Options of learning: at most `seconds` of processor time; rules with at least `support` right predictions and a
    confidence of at least `confidence`, which is measured on up to `body` predictions; at most `per_relation` cyclic
    rules for each relation, and `per_target` rules for each constant target. `validation` is the share of held-out
    edges. Raises `OptionError` for invalid values.
    """

    seconds: float = 60.0
    support: int = 2
    confidence: float = 0.01
    body: int = 2000
    per_target: int = 100
    per_relation: int = 1000
    validation: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.seconds < float("inf"):
            raise OptionError(f"seconds is more than 0, not {self.seconds}")
        for name in ("support", "body", "per_target", "per_relation"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} is at least 1, not {getattr(self, name)}")
        if not 0 < self.confidence <= 1:
            raise OptionError(f"confidence is more than 0 and at most 1, not {self.confidence}")
        if not 0 <= self.validation < 1:
            raise OptionError(f"validation is the share of edges that are held out, less than 1, not {self.validation}")


@dataclass(frozen=True, slots=True)
class Cyclic:
    """Rules r(X, Y) <- path as columns: the relation, the code of the path, the number of right predictions and of all
    measured ones. Sorted by relation, then by falling confidence.
    """

    relation: Ints
    code: Ints
    right: Ints
    predicted: Ints

    @property
    def confidence(self) -> NDArray[np.float32]:
        """The confidence of each rule."""
        return (self.right / (self.predicted + UNSEEN)).astype(np.float32)

    def ordered(self, most: int, support: int, confidence: float) -> Cyclic:
        """Return the `most` best rules of each relation that reach `support` and `confidence`."""
        confidences = self.right / (self.predicted + UNSEEN)
        valid = np.flatnonzero((self.right >= support) & (confidences >= confidence))
        order = valid[np.lexsort((self.code[valid], -self.right[valid], -confidences[valid], self.relation[valid]))]
        counts = np.bincount(self.relation[order], minlength=1) if len(order) else np.zeros(1, np.int64)
        place = ranges(np.zeros_like(counts), counts)
        order = order[place < most]
        return Cyclic(self.relation[order], self.code[order], self.right[order], self.predicted[order])


def learn_cyclic(
    paths: Paths, edges: Edges, options: Learning, rng: np.random.Generator, until: float, middle: float
) -> tuple[Cyclic, float]:
    """Sample paths until `middle`, then measure them until `until` (processor times, as of `time.process_time`).
    Returns the rules, and the share of paths that were measured.
    """
    sampled: dict[int, tuple[Ints, Ints]] = {}
    triples = edges.triples[rng.permutation(len(edges.triples))]
    triples = triples[np.argsort(triples[:, 1], kind="stable")]
    offsets = np.searchsorted(triples[:, 1], np.arange(paths.relations + 1))
    size, begin = 32, 0
    open_relations = [r for r in range(paths.relations) if offsets[r + 1] > offsets[r]]
    while open_relations and time.process_time() < middle:
        for r in list(open_relations):
            check()
            low = int(offsets[r]) + begin
            batch = triples[low : min(low + size, int(offsets[r + 1]))]
            if not len(batch) or time.process_time() >= middle:
                open_relations.remove(r)
                continue
            codes, counts = closings(paths, batch, rng)
            if r in sampled:
                codes, counts = summed(np.concatenate([sampled[r][0], codes]), np.concatenate([sampled[r][1], counts]))
            sampled[r] = codes, counts
        begin += size
        size = begin
    base = paths.steps + 1
    relation = np.concatenate([np.full(len(sampled[r][0]), r) for r in sampled] or [np.empty(0, np.int64)])
    code = np.concatenate([sampled[r][0] for r in sampled] or [np.empty(0, np.int64)])
    count = np.concatenate([sampled[r][1] for r in sampled] or [np.empty(0, np.int64)])
    edges_of = offsets[relation + 1] - offsets[relation]
    closed_share = count / np.minimum(edges_of, max(begin, 1))
    frequent = np.flatnonzero(count >= np.minimum(options.support, edges_of))
    frequent = frequent[np.lexsort((code[frequent], -closed_share[frequent], relation[frequent]))]
    counts = np.bincount(relation[frequent], minlength=1)
    frequent = frequent[ranges(np.zeros_like(counts), counts) < 3 * options.per_relation]
    return measured(paths, edges, relation[frequent], code[frequent], closed_share[frequent], base, options, rng, until)


def summed(keys: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Add the counts of equal keys; return the keys, ascending, and the sums."""
    order = np.argsort(keys, kind="stable")
    first = np.flatnonzero(changed(keys[order]))
    return keys[order][first], np.add.reduceat(counts[order], first)


def measured(
    paths: Paths,
    edges: Edges,
    relation: Ints,
    code: Ints,
    share: NDArray[np.float64],
    base: int,
    options: Learning,
    rng: np.random.Generator,
    until: float,
) -> tuple[Cyclic, float]:
    """Measure the confidences of rules path by path, starting with the paths that close the most edges. The predictions
    of a path are computed once for all relations, except for those that occur in the path. Returns the rules, and the
    share of paths that were measured.
    """
    rows: list[tuple[int, int, int, int]] = []
    order = np.lexsort((relation, code))
    relation, code, share = relation[order], code[order], share[order]
    if not len(code):
        none = np.empty(0, np.int64)
        return Cyclic(none, none, none, none), 1.0
    first = np.flatnonzero(changed(code))
    ends = np.append(first[1:], len(code))
    weight = np.maximum.reduceat(share, first)
    prefix = np.where(code[first] >= base**2, code[first] // base, code[first])
    # Paths with one prefix stay together; prefixes are ordered by their best path.
    prefixes, inverse = np.unique(prefix, return_inverse=True)
    best_weight = np.zeros(len(prefixes))
    np.maximum.at(best_weight, inverse, weight)
    starts: dict[int, Ints] = {}
    known_pairs: dict[int, Ints] = {}
    shared: tuple[int, int, Ints, Ints, int] | None = None
    done = 0.0
    for at in np.lexsort((code[first], inverse, -best_weight[inverse])).tolist():
        check()
        if time.process_time() >= until:
            break
        done += 1
        path_code = int(code[first[at]])
        steps = steps_of(path_code, base)
        targets = relation[first[at] : ends[at]]
        occurs_in_path = np.isin(targets, [step >> 1 for step in steps])
        begin = starts.get(steps[0])
        if begin is None:
            begin = starts[steps[0]] = rng.permutation(paths.heads(steps[0]))
        if not occurs_in_path.all():
            starts_tried = min(len(begin), 32)
            while True:
                last = (int(prefix[at]), starts_tried)
                if len(steps) == 3 and shared is not None and shared[:2] == last:
                    i, node, cut = shared[2:]
                else:
                    i, node, cut = np.arange(starts_tried), begin[:starts_tried], starts_tried
                    for step in steps[:2] if len(steps) == 3 else steps[:-1]:
                        i, node, cut = _stepped(paths, step, i, node, cut, options.body)
                    if len(steps) == 3:
                        shared = (*last, i, node, cut)
                i, node, cut = _stepped(paths, steps[-1], i, node, cut, options.body)
                no_loop = node != begin[i]
                total = int(no_loop.sum())
                if cut == len(begin) or cut < starts_tried or 2 * total >= options.body:
                    break
                starts_tried = min(len(begin), starts_tried * 8)
            _, target_steps = paths.between(begin[i[no_loop]], node[no_loop])
            right_counts = np.bincount(target_steps >> 1, weights=(target_steps & 1) == 0, minlength=paths.relations)
            rows.extend((r, path_code, int(right_counts[r]), total) for r in targets[~occurs_in_path].tolist())
        for r in targets[occurs_in_path].tolist():
            if r not in known_pairs:
                relation_triples = edges.triples[edges.triples[:, 1] == r]
                known_pairs[r] = np.sort(relation_triples[:, 0] * paths.n + relation_triples[:, 2])
            rows.append((r, path_code, *_counts_without_self(paths, steps, r, begin, known_pairs[r], options.body)))
    columns = np.array(rows, np.int64).reshape(-1, 4)
    done = done / len(first)
    return Cyclic(*columns.T).ordered(options.per_relation, options.support, options.confidence), done


def _stepped(paths: Paths, step: int, i: Ints, node: Ints, cut: int, most: int) -> tuple[Ints, Ints, int]:
    """Follow a step; each (start, end) counts once. If there are far more than `most` ends, only the first starts are
    kept, as many as have about twice `most`. Returns the start and the end of each, and the number of starts kept.
    """
    counts, ends = paths.follow(step, node)
    upto = np.cumsum(counts)
    if len(upto) and upto[-1] > 2 * most:
        cut = max(1, int(i[np.searchsorted(upto, 2 * most)]))
        end = int(np.searchsorted(i, cut))
        i, counts = i[:end], counts[:end]
        ends = ends[: int(upto[end - 1]) if end else 0]
    key = different(np.repeat(i, counts) * paths.n + ends)
    return key // paths.n, key % paths.n, cut


def _counts_without_self(paths: Paths, steps: tuple[int, ...], r: int, begin: Ints, known: Ints, body: int) -> tuple[int, int]:
    """Count the right and all predictions of a rule whose body has its own relation. Assignments in which the body uses
    the predicted edge do not count.
    """
    starts_tried = min(len(begin), 8)
    while True:
        nodes = [begin[:starts_tried]]
        for at, step in enumerate(steps):
            counts, ends = paths.follow(step, nodes[-1])
            nodes = [np.repeat(column, counts) for column in nodes]
            nodes.append(ends)
            if len(ends) > 5 * body and starts_tried > 1 and at < len(steps) - 1:
                break
        else:
            x, y = nodes[0], nodes[-1]
            valid = x != y
            for at, step in enumerate(steps):
                if step == 2 * r:
                    valid &= (nodes[at] != x) | (nodes[at + 1] != y)
                elif step == 2 * r + 1:
                    valid &= (nodes[at] != y) | (nodes[at + 1] != x)
            key = different(x[valid] * paths.n + y[valid])
            if starts_tried == len(begin) or len(key) >= body or len(valid) > 2 * body:
                known_at = np.minimum(np.searchsorted(known, key), len(known) - 1)
                return int((known[known_at] == key).sum()), len(key)
            starts_tried = min(len(begin), starts_tried * 4)
            continue
        starts_tried = max(1, starts_tried // 4)
        begin = begin[:starts_tried]


class Features:
    """The conditions of rules with constants: feature g < `size` is one edge (step, constant), feature `size` + s any
    edge by the step s. The entities of a feature are in the order of `paths`.
    """

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        step = np.repeat(np.arange(paths.steps), np.diff(paths.step_at))
        group = step * paths.n + paths.head
        begin = np.flatnonzero(changed(group))
        #: The step (from the entity) and the constant of each feature, and the offset of its entities.
        self.step, self.constant = (step[begin] ^ 1), paths.head[begin].astype(np.int64)
        self.at = np.append(begin, len(group))
        self.size = len(begin)
        self.counts = np.concatenate([np.diff(self.at), [len(paths.heads(s)) for s in range(paths.steps)]])
        number = np.repeat(np.arange(self.size, dtype=np.int32), np.diff(self.at))
        order = np.argsort(paths.tail, kind="stable")
        self.of_entity = number[order]
        self.entity_at = np.searchsorted(paths.tail[order], np.arange(paths.n + 1))

    def entities(self, feature: int) -> Ints:
        """Return the entities that have a feature."""
        if feature >= self.size:
            return self.paths.heads(feature - self.size)
        return self.paths.tail[self.at[feature] : self.at[feature + 1]].astype(np.int64)

    def having(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the features of each node: the position of the node, and the feature."""
        begin, end = self.entity_at[nodes], self.entity_at[nodes + 1]
        place = np.repeat(np.arange(len(nodes)), end - begin)
        feature = self.of_entity[ranges(begin, end)].astype(np.int64)
        # "Any edge by a step" counts once for each node and step.
        any_ = different(place * self.paths.steps + self.step[feature])
        return np.concatenate([place, any_ // self.paths.steps]), np.concatenate([feature, self.size + any_ % self.paths.steps])


@dataclass(frozen=True, slots=True)
class Constant:
    """Rules with constants as columns: the feature `target` follows from the feature `body`."""

    target: NDArray[Any]
    body: NDArray[Any]
    right: NDArray[Any]
    predicted: NDArray[Any]

    @property
    def confidence(self) -> NDArray[np.float32]:
        """The confidence of each rule."""
        result: NDArray[np.float32] = (self.right / (self.predicted + UNSEEN)).astype(np.float32)
        return result


def learn_constant(features: Features, options: Learning, rng: np.random.Generator, until: float) -> tuple[Constant, float]:
    """Count all rules between two features exactly, with targets in random order, until the time is up. Returns the
    rules, and the share of targets that were counted.
    """
    parts: list[tuple[Ints, Ints, Ints, Ints]] = []
    counts = features.counts
    targets = np.flatnonzero(counts[: features.size] >= options.support)
    targets = rng.permutation(targets)
    width = len(counts)
    per_entity = np.diff(features.entity_at)
    # The work for a target: the number of features of its entities.
    load = np.add.reduceat(per_entity[features.paths.tail], features.at[:-1]) if features.size else np.empty(0, np.int64)
    load_so_far = np.cumsum(load[targets])
    begin = 0
    frequent = counts >= options.support
    while begin < len(targets):
        check()
        if time.process_time() >= until:
            break
        end = max(begin + 1, int(np.searchsorted(load_so_far, (load_so_far[begin - 1] if begin else 0) + 1_000_000)))
        batch = np.sort(targets[begin:end])
        begin = end
        low, high = features.at[batch], features.at[batch + 1]
        nodes = features.paths.tail[ranges(low, high)].astype(np.int64)
        place, feature = features.having(nodes)
        keep = frequent[feature]
        place, feature = place[keep], feature[keep]
        target_of_node = np.repeat(np.arange(len(batch)), high - low)
        key = target_of_node[place] * width + feature
        key.sort()
        if not len(key):
            continue
        first = np.flatnonzero(changed(key))
        right = np.diff(np.append(first, len(key)))
        first, right = first[right >= options.support], right[right >= options.support]
        target, body = batch[key[first] // width], key[first] % width
        # A feature does not predict itself, nor does an edge predict that there is one.
        keep = (target != body) & (body != features.size + features.step[target])
        target, body, right = target[keep], body[keep], right[keep]
        predicted = counts[body]
        confidence = right / (predicted + UNSEEN)
        keep = confidence >= options.confidence
        target, body, right, predicted, confidence = target[keep], body[keep], right[keep], predicted[keep], confidence[keep]
        order = np.lexsort((body, -confidence, target))
        lengths = np.bincount(np.searchsorted(batch, target), minlength=len(batch))
        order = order[ranges(np.zeros_like(lengths), lengths) < options.per_target]
        parts.append((target[order], body[order], right[order], predicted[order]))
    parts.append(_constant_rules(features, options))
    share = begin / len(targets) if len(targets) else 1.0
    return Constant(*(np.concatenate(columns).astype(np.int32) for columns in zip(*parts, strict=True))), share


def _constant_rules(features: Features, options: Learning) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the rules r(X, c) <- r(X, A) with A other than c: the most common values of entities with several r."""
    paths = features.paths
    target = np.arange(features.size)
    step = features.step
    # For each edge, the number of edges by its step that the entity at the other end has.
    number = np.repeat(target, np.diff(features.at))
    degree_at_end = np.zeros(len(number), np.int64)
    for s in range(paths.steps):
        low, high = int(paths.step_at[s ^ 1]), int(paths.step_at[(s ^ 1) + 1])
        degrees = np.bincount(paths.head[paths.step_at[s] : paths.step_at[s + 1]], minlength=paths.n)
        degree_at_end[low:high] = degrees[paths.tail[low:high]]
    right = np.bincount(number, weights=degree_at_end >= 2, minlength=features.size).astype(np.int64)
    single = np.bincount(number, weights=degree_at_end == 1, minlength=features.size).astype(np.int64)
    predicted = features.counts[features.size + step] - single
    keep = (right >= options.support) & (right / (predicted + UNSEEN) >= options.confidence)
    return target[keep], features.size + step[keep], right[keep], predicted[keep]
