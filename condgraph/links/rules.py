"""Horn rules as a model of links, learned on the columns of a graph (AnyBURL, Meilicke 2019; SAFRAN, Ott 2021).

cyclic    r(X, Y) <- s1(X, A), s2(A, B), s3(B, Y)    of one to three steps, each a relation or its inverse
constant  r(X, c) <- s(X, d)  and  r(X, c) <- s(X, A)    and the same of the subject

A body holds for all entities that its steps lead to, as the algebra runs it, and never by the edge
that it predicts: the confidence of a rule leaves out what an edge says of itself. It is smoothed:
right / (predicted + 5).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check, different
from condgraph.engine.errors import LinkModelError, OptionError
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.links.edges import Edges, Ints

#: Predictions that are added to those of a rule, none of them right (AnyBURL's Laplace smoothing).
UNSEEN: Final = 5
#: Most neighbours of an end of a sampled edge that paths are looked for through.
_NEIGHBOURS: Final = 100
_BLOOM: Final = 1 << 24


class Paths:
    """Edges as steps: step 2r is the relation r forward, 2r + 1 its inverse."""

    def __init__(self, edges: Edges) -> None:
        self.n, self.relations = len(edges.entities), len(edges.relations)
        self.steps = 2 * self.relations
        head, relation, tail = (edges.triples[:, at] for at in range(3))
        node, step, other = (
            np.concatenate([head, tail]),
            np.concatenate([2 * relation, 2 * relation + 1]),
            np.concatenate([tail, head]),
        )
        if self.steps**3 * max(self.n, 1) >= 2**62 or self.n**2 * self.steps >= 2**62:
            raise LinkModelError(f"{self.n:,} entities and {self.relations:,} relations are more than rules can be learned for")
        order = np.argsort((step * self.n + node) * self.n + other)
        self.head = node[order].astype(np.int32)
        self.tail = other[order].astype(np.int32)
        self.step_at = np.searchsorted(step[order], np.arange(self.steps + 1))
        pairs = node * self.n + other
        order = np.argsort(pairs * self.steps + step)
        #: All edges by their two ends, and where those of a node begin.
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
        """The entities with an edge by a step, ascending."""
        return self._of(step)[0]

    def _of(self, step: int) -> tuple[Ints, Ints]:
        result = self._heads.get(step)
        if result is None:
            low, high = int(self.step_at[step]), int(self.step_at[step + 1])
            nodes = self.head[low:high]
            first = np.flatnonzero(np.append(True, nodes[1:] != nodes[:-1])) if high > low else np.empty(0, np.int64)
            result = self._heads[step] = nodes[first].astype(np.int64), np.append(first + low, high)
        return result

    def follow(self, step: int, nodes: Ints) -> tuple[Ints, Ints]:
        """Where a step leads from each node: how many ends, and the ends."""
        heads, offsets = self._of(step)
        if not len(heads):
            return np.zeros(len(nodes), np.int64), np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(heads, nodes), len(heads) - 1)
        there = heads[at] == nodes
        begin, end = np.where(there, offsets[at], 0), np.where(there, offsets[at + 1], 0)
        return end - begin, self.tail[ranges(begin, end)].astype(np.int64)

    def around(self, nodes: Ints, most: int, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
        """The edges of each node, at most so many of each, sampled: the place of the node, step, end."""
        begin, end = self.node_at[nodes], self.node_at[nodes + 1]
        counts = end - begin
        few = np.minimum(counts, most)
        place = np.repeat(np.arange(len(nodes)), few)
        inner = ranges(np.zeros_like(few), few)
        large = counts[place] > most
        # Of a hub, edges at random: repeated ones count once later.
        inner[large] = (rng.random(int(large.sum())) * counts[place[large]]).astype(np.int64)
        rows = begin[place] + inner
        return place, self.pair_steps[rows].astype(np.int64), self.pair_others[rows].astype(np.int64)

    def between(self, a: Ints, b: Ints) -> tuple[Ints, Ints]:
        """The steps from each a to its b: the place of the pair, and the step."""
        key = a * self.n + b
        near = np.flatnonzero(self._bloom[self._hashed(key)])
        key = key[near]
        order = np.argsort(key)
        key, near = key[order], near[order]
        begin, end = np.searchsorted(self.pairs, key), np.searchsorted(self.pairs, key, side="right")
        return np.repeat(near, end - begin), self.pair_steps[ranges(begin, end)].astype(np.int64)


def joined(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """The places of all equal keys in two arrays."""
    order = np.argsort(right)
    ordered = right[order]
    begin, end = np.searchsorted(ordered, left), np.searchsorted(ordered, left, side="right")
    return np.repeat(np.arange(len(left)), end - begin), order[ranges(begin, end)]


def closings(paths: Paths, triples: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The paths of at most three steps from the head to the tail of each edge of one relation, without
    that edge: codes of paths, each with how many edges it closes. Paths of hubs are sampled.
    """
    m = paths.steps
    base = m + 1
    x, r, y = triples[:, 0], int(triples[0, 1]), triples[:, 2]
    li, ls, la = paths.around(x, _NEIGHBOURS, rng)
    ri, rs, rb = paths.around(y, _NEIGHBOURS, rng)
    own = (ls == 2 * r) & (la == y[li])
    li, ls, la = li[~own], ls[~own], la[~own]
    # A step from y to b is walked from b to y.
    own = (rs == 2 * r + 1) & (rb == x[ri])
    ri, rs, rb = ri[~own], rs[~own] ^ 1, rb[~own]
    room = base**3
    found = []
    at = np.flatnonzero(la == y[li])
    found.append(li[at] * room + (ls[at] + 1))
    middle = (la != y[li]) & (la != x[li])
    li, ls, la = li[middle], ls[middle], la[middle]
    middle = (rb != y[ri]) & (rb != x[ri])
    ri, rs, rb = ri[middle], rs[middle], rb[middle]
    lkey, rkey = li * paths.n + la, ri * paths.n + rb
    i, j = joined(lkey, rkey)
    found.append(li[i] * room + (ls[i] + 1) * base + rs[j] + 1)
    lnode, rnode = different(lkey), different(rkey)
    i, j = joined(lnode // paths.n, rnode // paths.n)
    a, b = lnode[i] % paths.n, rnode[j] % paths.n
    place, step = paths.between(a, b)
    keep = a[place] != b[place]
    place, step = place[keep], step[keep]
    # Each (a, b) by all steps to a and from b.
    p, q = joined(lnode[i[place]], lkey)
    step, right = step[p], rnode[j[place]][p]
    first = ls[q]
    p, q2 = joined(right, rkey)
    found.append(li[q[p]] * room + ((first[p] + 1) * base + step[p] + 1) * base + rs[q2] + 1)
    codes = different(np.concatenate(found)) % room
    codes.sort()
    if not len(codes):
        return codes, codes
    begin = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    return codes[begin], np.diff(np.append(begin, len(codes)))


def steps_of(code: int, base: int) -> tuple[int, ...]:
    """The steps of a path's code."""
    result: list[int] = []
    while code:
        code, step = divmod(code, base)
        result.append(step - 1)
    return tuple(reversed(result))


@dataclass(frozen=True, slots=True)
class Learning:
    """How to learn: `seconds` of processor time at most, rules of at least `support` right
    predictions and a confidence of at least `confidence`, `body` predictions that a confidence is
    measured on (of all where there are fewer). Raises `OptionError`.
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
    """Rules r(X, Y) <- path: of each the relation, the code of the path, how many of its measured
    predictions are right, and how many there are; by relation, then by falling confidence.
    """

    relation: Ints
    code: Ints
    right: Ints
    predicted: Ints

    @property
    def confidence(self) -> NDArray[np.float32]:
        """Of each."""
        return (self.right / (self.predicted + UNSEEN)).astype(np.float32)

    def ordered(self, most: int, support: int, confidence: float) -> Cyclic:
        """The best so many of each relation."""
        value = self.right / (self.predicted + UNSEEN)
        good = np.flatnonzero((self.right >= support) & (value >= confidence))
        order = good[np.lexsort((self.code[good], -self.right[good], -value[good], self.relation[good]))]
        counts = np.bincount(self.relation[order], minlength=1) if len(order) else np.zeros(1, np.int64)
        place = ranges(np.zeros_like(counts), counts)
        order = order[place < most]
        return Cyclic(self.relation[order], self.code[order], self.right[order], self.predicted[order])


def learn_cyclic(
    paths: Paths, edges: Edges, options: Learning, rng: np.random.Generator, until: float, middle: float
) -> tuple[Cyclic, float]:
    """Sample paths until `middle`, measure them until `until` (processor time, as `time.process_time`)."""
    found: dict[int, tuple[Ints, Ints]] = {}
    triples = edges.triples[rng.permutation(len(edges.triples))]
    triples = triples[np.argsort(triples[:, 1], kind="stable")]
    offsets = np.searchsorted(triples[:, 1], np.arange(paths.relations + 1))
    size, begin = 32, 0
    left = [r for r in range(paths.relations) if offsets[r + 1] > offsets[r]]
    while left and time.process_time() < middle:
        for r in list(left):
            check()
            low = int(offsets[r]) + begin
            part = triples[low : min(low + size, int(offsets[r + 1]))]
            if not len(part) or time.process_time() >= middle:
                left.remove(r)
                continue
            codes, counts = closings(paths, part, rng)
            if r in found:
                codes, counts = summed(np.concatenate([found[r][0], codes]), np.concatenate([found[r][1], counts]))
            found[r] = codes, counts
        begin += size
        size = begin
    base = paths.steps + 1
    relation = np.concatenate([np.full(len(found[r][0]), r) for r in found] or [np.empty(0, np.int64)])
    code = np.concatenate([found[r][0] for r in found] or [np.empty(0, np.int64)])
    count = np.concatenate([found[r][1] for r in found] or [np.empty(0, np.int64)])
    edges_of = offsets[relation + 1] - offsets[relation]
    share = count / np.minimum(edges_of, max(begin, 1))
    good = np.flatnonzero(count >= np.minimum(options.support, edges_of))
    good = good[np.lexsort((code[good], -share[good], relation[good]))]
    counts = np.bincount(relation[good], minlength=1)
    good = good[ranges(np.zeros_like(counts), counts) < 3 * options.per_relation]
    return measured(paths, edges, relation[good], code[good], share[good], base, options, rng, until)


def summed(keys: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Counts of equal keys added, keys ascending."""
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    if not len(keys):
        return keys, counts
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[first], np.add.reduceat(counts, first)


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
    """The confidences of rules, path by path, those of paths that closed the most edges first. One
    look at the predictions of a path serves all relations but those that it has itself.
    """
    out: list[tuple[int, int, int, int]] = []
    order = np.lexsort((relation, code))
    relation, code, share = relation[order], code[order], share[order]
    if not len(code):
        none = np.empty(0, np.int64)
        return Cyclic(none, none, none, none), 1.0
    first = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
    ends = np.append(first[1:], len(code))
    weight = np.maximum.reduceat(share, first)
    prefix = np.where(code[first] >= base**2, code[first] // base, code[first])
    # Paths of a prefix are next to each other; prefixes by their best path.
    names, inverse = np.unique(prefix, return_inverse=True)
    best = np.zeros(len(names))
    np.maximum.at(best, inverse, weight)
    starts: dict[int, Ints] = {}
    known: dict[int, Ints] = {}
    shared: tuple[int, int, Ints, Ints, int] | None = None
    done = 0.0
    for at in np.lexsort((code[first], inverse, -best[inverse])).tolist():
        check()
        if time.process_time() >= until:
            break
        done += 1
        name = int(code[first[at]])
        steps = steps_of(name, base)
        wanted = relation[first[at] : ends[at]]
        own = np.isin(wanted, [step >> 1 for step in steps])
        begin = starts.get(steps[0])
        if begin is None:
            begin = starts[steps[0]] = rng.permutation(paths.heads(steps[0]))
        if not own.all():
            some = min(len(begin), 32)
            while True:
                last = (int(prefix[at]), some)
                if len(steps) == 3 and shared is not None and shared[:2] == last:
                    i, node, cut = shared[2:]
                else:
                    i, node, cut = np.arange(some), begin[:some], some
                    for step in steps[:2] if len(steps) == 3 else steps[:-1]:
                        i, node, cut = _stepped(paths, step, i, node, cut, options.body)
                    if len(steps) == 3:
                        shared = (*last, i, node, cut)
                i, node, cut = _stepped(paths, steps[-1], i, node, cut, options.body)
                good = node != begin[i]
                total = int(good.sum())
                if cut == len(begin) or cut < some or 2 * total >= options.body:
                    break
                some = min(len(begin), some * 8)
            _, taken = paths.between(begin[i[good]], node[good])
            rights = np.bincount(taken >> 1, weights=(taken & 1) == 0, minlength=paths.relations)
            out.extend((r, name, int(rights[r]), total) for r in wanted[~own].tolist())
        for r in wanted[own].tolist():
            if r not in known:
                rows = edges.triples[edges.triples[:, 1] == r]
                known[r] = np.sort(rows[:, 0] * paths.n + rows[:, 2])
            out.append((r, name, *_without_itself(paths, steps, r, begin, known[r], options.body)))
    result = np.array(out, np.int64).reshape(-1, 4)
    done = done / len(first)
    return Cyclic(*result.T).ordered(options.per_relation, options.support, options.confidence), done


def _stepped(paths: Paths, step: int, i: Ints, node: Ints, cut: int, most: int) -> tuple[Ints, Ints, int]:
    """Where a step leads, each (start, end) once, of the first so many starts that have about `most` ends."""
    counts, ends = paths.follow(step, node)
    upto = np.cumsum(counts)
    if len(upto) and upto[-1] > 2 * most:
        cut = max(1, int(i[np.searchsorted(upto, 2 * most)]))
        here = int(np.searchsorted(i, cut))
        i, counts = i[:here], counts[:here]
        ends = ends[: int(upto[here - 1]) if here else 0]
    key = different(np.repeat(i, counts) * paths.n + ends)
    return key // paths.n, key % paths.n, cut


def _without_itself(paths: Paths, steps: tuple[int, ...], r: int, begin: Ints, known: Ints, body: int) -> tuple[int, int]:
    """Right and all predictions of a rule whose body has its own relation: assignments in which the
    body takes the predicted edge do not count.
    """
    some = min(len(begin), 8)
    while True:
        nodes = [begin[:some]]
        for at, step in enumerate(steps):
            counts, ends = paths.follow(step, nodes[-1])
            nodes = [np.repeat(column, counts) for column in nodes]
            nodes.append(ends)
            if len(ends) > 5 * body and some > 1 and at < len(steps) - 1:
                break
        else:
            x, y = nodes[0], nodes[-1]
            good = x != y
            for at, step in enumerate(steps):
                if step == 2 * r:
                    good &= (nodes[at] != x) | (nodes[at + 1] != y)
                elif step == 2 * r + 1:
                    good &= (nodes[at] != y) | (nodes[at + 1] != x)
            key = different(x[good] * paths.n + y[good])
            if some == len(begin) or len(key) >= body or len(good) > 2 * body:
                at_ = np.minimum(np.searchsorted(known, key), len(known) - 1)
                return int((known[at_] == key).sum()), len(key)
            some = min(len(begin), some * 4)
            continue
        some = max(1, some // 4)
        begin = begin[:some]


class Features:
    """What constant rules ask of an entity: feature g < len(keys) is one edge (step, constant), and
    len(keys) + s any edge by the step s. Entities of a feature are in the order of `paths`.
    """

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        step = np.repeat(np.arange(paths.steps), np.diff(paths.step_at))
        group = step * paths.n + paths.head
        begin = np.flatnonzero(np.append(True, group[1:] != group[:-1])) if len(group) else np.empty(0, np.int64)
        #: Of each feature the step (of the entity), the constant, and where its entities begin.
        self.step, self.constant = (step[begin] ^ 1), paths.head[begin].astype(np.int64)
        self.at = np.append(begin, len(group))
        self.size = len(begin)
        self.counts = np.concatenate([np.diff(self.at), [len(paths.heads(s)) for s in range(paths.steps)]])
        number = np.repeat(np.arange(self.size, dtype=np.int32), np.diff(self.at))
        order = np.argsort(paths.tail, kind="stable")
        self.of_entity = number[order]
        self.entity_at = np.searchsorted(paths.tail[order], np.arange(paths.n + 1))

    def entities(self, feature: int) -> Ints:
        """The entities that have a feature."""
        if feature >= self.size:
            return self.paths.heads(feature - self.size)
        return self.paths.tail[self.at[feature] : self.at[feature + 1]].astype(np.int64)

    def having(self, nodes: Ints) -> tuple[Ints, Ints]:
        """The features of each node: the place of the node, and the feature."""
        begin, end = self.entity_at[nodes], self.entity_at[nodes + 1]
        place = np.repeat(np.arange(len(nodes)), end - begin)
        feature = self.of_entity[ranges(begin, end)].astype(np.int64)
        # Any edge by a step: once for each node and step.
        any_ = different(place * self.paths.steps + self.step[feature])
        return np.concatenate([place, any_ // self.paths.steps]), np.concatenate([feature, self.size + any_ % self.paths.steps])


@dataclass(frozen=True, slots=True)
class Constant:
    """Rules that end in a constant: the feature `target` follows from the feature `body`."""

    target: NDArray[Any]
    body: NDArray[Any]
    right: NDArray[Any]
    predicted: NDArray[Any]

    @property
    def confidence(self) -> NDArray[np.float32]:
        """Of each."""
        result: NDArray[np.float32] = (self.right / (self.predicted + UNSEEN)).astype(np.float32)
        return result


def learn_constant(features: Features, options: Learning, rng: np.random.Generator, until: float) -> tuple[Constant, float]:
    """All rules between two features, counted exactly; targets in random order until the time is up."""
    parts: list[tuple[Ints, Ints, Ints, Ints]] = []
    counts = features.counts
    targets = np.flatnonzero(counts[: features.size] >= options.support)
    targets = rng.permutation(targets)
    width = len(counts)
    per_entity = np.diff(features.entity_at)
    # Work of a target: features of its entities.
    load = np.add.reduceat(per_entity[features.paths.tail], features.at[:-1]) if features.size else np.empty(0, np.int64)
    many = np.cumsum(load[targets])
    begin = 0
    frequent = counts >= options.support
    while begin < len(targets):
        check()
        if time.process_time() >= until:
            break
        end = max(begin + 1, int(np.searchsorted(many, (many[begin - 1] if begin else 0) + 1_000_000)))
        some = np.sort(targets[begin:end])
        begin = end
        low, high = features.at[some], features.at[some + 1]
        nodes = features.paths.tail[ranges(low, high)].astype(np.int64)
        place, feature = features.having(nodes)
        keep = frequent[feature]
        place, feature = place[keep], feature[keep]
        which = np.repeat(np.arange(len(some)), high - low)
        key = which[place] * width + feature
        key.sort()
        if not len(key):
            continue
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        right = np.diff(np.append(first, len(key)))
        first, right = first[right >= options.support], right[right >= options.support]
        target, body = some[key[first] // width], key[first] % width
        # A feature says nothing of itself, nor an edge of there being one.
        keep = (target != body) & (body != features.size + features.step[target])
        target, body, right = target[keep], body[keep], right[keep]
        predicted = counts[body]
        value = right / (predicted + UNSEEN)
        keep = value >= options.confidence
        target, body, right, predicted, value = target[keep], body[keep], right[keep], predicted[keep], value[keep]
        order = np.lexsort((body, -value, target))
        lengths = np.bincount(np.searchsorted(some, target), minlength=len(some))
        order = order[ranges(np.zeros_like(lengths), lengths) < options.per_target]
        parts.append((target[order], body[order], right[order], predicted[order]))
    parts.append(_same_step(features, options))
    done = begin / len(targets) if len(targets) else 1.0
    return Constant(*(np.concatenate(columns).astype(np.int32) for columns in zip(*parts, strict=True))), done


def _same_step(features: Features, options: Learning) -> tuple[Ints, Ints, Ints, Ints]:
    """Rules r(X, c) <- r(X, A) where A is another: what entities of several r have most."""
    paths = features.paths
    target = np.arange(features.size)
    step = features.step
    # How many edges by its step the entity at the other end of each edge has.
    number = np.repeat(target, np.diff(features.at))
    many = np.zeros(len(number), np.int64)
    for s in range(paths.steps):
        low, high = int(paths.step_at[s ^ 1]), int(paths.step_at[(s ^ 1) + 1])
        many[low:high] = np.bincount(paths.head[paths.step_at[s] : paths.step_at[s + 1]], minlength=paths.n)[paths.tail[low:high]]
    right = np.bincount(number, weights=many >= 2, minlength=features.size).astype(np.int64)
    alone = np.bincount(number, weights=many == 1, minlength=features.size).astype(np.int64)
    predicted = features.counts[features.size + step] - alone
    keep = (right >= options.support) & (right / (predicted + UNSEEN) >= options.confidence)
    return target[keep], features.size + step[keep], right[keep], predicted[keep]
