"""Queries of each structure, drawn from a graph and the edges that it misses, with their easy and
hard answers (as BetaE draws them): the constants of a query are found backwards from an answer, so
that there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from condgraph.engine.bounds import check
from condgraph.engine.errors import LinkModelError, OptionError, UnknownNameError, nearest
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.languages.logic.structures import NEGATION, STRUCTURES, UNION
from condgraph.links.edges import Edges
from condgraph.logic.evaluation.missing import Complete
from condgraph.logic.evaluation.queries import LogicCase

#: Draws for each query that is wanted, until the sampler gives up.
TRIES: Final = 200


@dataclass(frozen=True, slots=True)
class Sampled:
    """Queries, and what there were too few of."""

    cases: tuple[LogicCase, ...]
    warnings: tuple[str, ...]


def sample(
    snapshot: Snapshot,
    held: Iterable[tuple[str, str, str]],
    n: int = 50,
    *,
    kinds: Sequence[str] | None = None,
    seed: int = 0,
    most: int = 100,
) -> Sampled:
    """Up to `n` different queries of each structure, each with 1 to `most` hard answers.

    `held` are the edges that the graph misses, as triples of (id, predicate, id). The same seed
    gives the same queries. Raises `UnknownNameError` for a structure that there is not.
    """
    if n < 1 or most < 1:
        raise OptionError(f"n and most are at least 1, not {n} and {most}")
    wanted = [kind for kind in STRUCTURES if kind not in ("4p", "5p")] if kinds is None else list(kinds)
    for kind in wanted:
        if kind not in STRUCTURES:
            raise UnknownNameError("query structure", kind, candidates=nearest(kind, STRUCTURES))
    edges = Edges.of_snapshot(snapshot)
    missing = edges.numbered(held)
    if not len(missing.triples):
        raise LinkModelError("there are no held-out edges, without which no answer is hard")
    sampler = _Sampler(snapshot, edges, missing, most)
    found: list[LogicCase] = []
    warnings: list[str] = []
    for kind in wanted:
        rng = np.random.default_rng([seed, list(STRUCTURES).index(kind)])
        drawn = list(sampler.draw(kind, n, rng))
        if len(drawn) < n:
            warnings.append(f"only {len(drawn)} of {n} queries of {kind} were found in {n * TRIES} draws")
        found += drawn
    return Sampled(tuple(found), tuple(warnings))


class _Sampler:
    def __init__(self, snapshot: Snapshot, edges: Edges, missing: Edges, most: int) -> None:
        self.edges, self.most = edges, most
        self.whole = Complete(snapshot, edges, missing)
        self.own = Complete(snapshot, edges)
        self.kinds = snapshot.entity_kind
        triples = self.whole.triples
        # Each edge leads to both of its ends: by the relation to its tail, by the inverse to its head.
        self.into = np.concatenate([triples[:, 2], triples[:, 0]])
        self.start = np.concatenate([triples[:, 0], triples[:, 2]])
        relations = len(edges.relations)
        self.by = np.concatenate([triples[:, 1], triples[:, 1] + relations])
        order = np.argsort(self.into, kind="stable")
        self.into, self.start, self.by = self.into[order], self.start[order], self.by[order]
        self.begin = np.searchsorted(self.into, np.arange(len(edges.entities) + 1))
        #: Where a hard answer may be: what a missing edge touches.
        self.ends = np.unique(missing.triples[:, [0, 2]])
        self.names = [*edges.relations, *(f"^{name}" for name in edges.relations)]

    def draw(self, kind: str, n: int, rng: np.random.Generator) -> Iterator[LogicCase]:
        """Up to n different queries of a structure."""
        seen: set[str] = set()
        for _ in range(n * TRIES):
            if len(seen) == n:
                return
            check()
            lengths, shape = STRUCTURES[kind]
            # Half of the draws end beside a missing edge, the others anywhere.
            root = int(rng.choice(self.ends)) if rng.random() < 0.5 else int(rng.choice(self.into))
            query = self._query(shape, lengths, root, rng)
            if query is None or repr(query) in seen or _repeats(query):
                continue
            case = self._case(kind, query)
            if case is not None:
                seen.add(repr(query))
                yield case

    def _query(self, shape: Any, lengths: Sequence[int], root: int, rng: np.random.Generator) -> Any:
        """The nested form of a structure with `root` among its answers, before anything is negated."""
        if isinstance(shape, int):
            return self._path(lengths[shape], root, rng)
        if shape[0] == "n":
            found = self._query(shape[1], lengths, root, rng)
            return None if found is None else [found[0], [*found[1], NEGATION]]
        if shape[0] == "p":
            step = self._step(root, rng)
            if step is None:
                return None
            below = self._query(shape[1], lengths, step[0], rng)
            return None if below is None else [below, [self.names[step[1]]]]
        parts: list[Any] = []
        for part in shape[1:]:
            # What is negated, or joined by `or`, need not hold of this answer.
            away = isinstance(part, tuple) and part[0] == "n"
            if shape[0] == "u":
                away = len(parts) > 0
            found = self._query(part, lengths, self._beside(root, rng) if away else root, rng)
            if found is None:
                return None
            parts.append(found)
        return [*parts, [UNION]] if shape[0] == "u" else parts

    def _beside(self, root: int, rng: np.random.Generator) -> int:
        """An entity that some edge reaches as it does `root`; often another one."""
        step = self._step(root, rng)
        if step is None:
            return root
        name = self.names[step[1]]
        heads, tails, _ = self.whole.of(
            name.removeprefix("^") if step[1] >= len(self.edges.relations) else name, step[1] >= len(self.edges.relations)
        )
        others = tails[heads == step[0]]
        return int(rng.choice(others)) if len(others) else root

    def _path(self, length: int, root: int, rng: np.random.Generator) -> Any:
        relations: list[str] = []
        for _ in range(length):
            step = self._step(root, rng)
            if step is None:
                return None
            root = step[0]
            relations.insert(0, self.names[step[1]])
        return [self.edges.entities[root], relations]

    def _step(self, root: int, rng: np.random.Generator) -> tuple[int, int] | None:
        begin, end = self.begin[root], self.begin[root + 1]
        if begin == end:
            return None
        # By relation first, so that a hub's commonest relation is not all there is.
        relations = np.unique(self.by[begin:end])
        relation = rng.choice(relations)
        at = rng.choice(np.flatnonzero(self.by[begin:end] == relation)) + begin
        return int(self.start[at]), int(relation)

    def _case(self, kind: str, query: Any) -> LogicCase | None:
        case = LogicCase(kind, query, (), ())
        tree = case.tree()
        answers, easy = self.whole.answers(tree), self.own.answers(tree)
        hard = np.setdiff1d(answers, easy)
        if not 0 < len(hard) <= self.most:
            return None
        if NEGATION in _marks(query) and len(answers) > 10 * self.most:
            return None
        names = self.edges.entities
        return LogicCase(kind, query, tuple(names[one] for one in easy.tolist()), tuple(names[one] for one in hard.tolist()))


def _marks(query: Any) -> set[int]:
    if isinstance(query, list):
        return set().union(*map(_marks, query)) if query else set()
    return {query} if isinstance(query, int) else set()


def _repeats(query: Any) -> bool:
    """Whether a query says the same twice: two equal branches, or an edge followed there and back."""
    if not isinstance(query, list):
        return False
    parts = [repr(part) for part in query if isinstance(part, list)]
    if len(set(parts)) < len(parts):
        return True
    if query and all(isinstance(one, str) for one in query):
        return any(left.removeprefix("^") == right.removeprefix("^") and left != right for left, right in pairwise(query))
    return any(map(_repeats, query))
