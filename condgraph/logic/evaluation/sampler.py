"""Logical queries with known answers: the queries, the links that are hidden from the graph, and their sampling."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.engine.errors import LinkModelError, LoadError, OptionError, UnknownNameError, nearest
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.languages.logic.convert import tree_of
from condgraph.languages.logic.structures import NEGATION, STRUCTURES, UNION, nested
from condgraph.languages.logic.tree import Anchor, Complement, Intersection, OfType, Projection, Tree, Union
from condgraph.links.edges import Edges, Ints

# -- missing -----------------------------------------------------------------------------------------
# The fewest missing edges that an answer rests on: queries by the cost of their answers, where an
# edge of the graph costs 0 and one that it misses costs 1.
#
# Most hard answers of queries with several edges need one of them only. The cost of an answer that
# does not hold is infinite, so that costs also say what the answers are.


Costs = NDArray[np.float32]


class Complete:
    """A graph with the edges that it misses: `held` are triples in the numbers of `edges`."""

    def __init__(self, snapshot: Snapshot, edges: Edges, held: Edges | None = None) -> None:
        self.snapshot, self.edges = snapshot, edges
        self.size = len(edges.entities)
        self.relations = edges.relation_numbers
        triples = edges.triples if held is None else np.concatenate([edges.triples, held.triples])
        price = np.zeros(len(triples), np.float32)
        price[len(edges.triples) :] = 1
        # An edge that the graph has is not missing.
        order = np.lexsort((price, triples[:, 2], triples[:, 0], triples[:, 1]))
        triples, price = triples[order], price[order]
        first = np.append(True, (triples[1:] != triples[:-1]).any(axis=1)) if len(triples) else np.empty(0, bool)
        self.triples, self.price = triples[first], price[first]
        self._begin = np.searchsorted(self.triples[:, 1], np.arange(len(edges.relations) + 1))

    def of(self, relation: str, inverse: bool) -> tuple[Ints, Ints, Costs]:
        """From where, to where, and at what price the edges of a relation lead."""
        number = self.relations.get(relation)
        begin, end = (0, 0) if number is None else (self._begin[number], self._begin[number + 1])
        part = self.triples[begin:end]
        return part[:, 2 if inverse else 0], part[:, 0 if inverse else 2], self.price[begin:end]

    def has(self, relation: str, subject: int, other: int) -> bool:
        """Whether there is an edge, missing or not."""
        heads, tails, _ = self.of(relation, False)
        low, high = np.searchsorted(heads, [subject, subject + 1])
        return bool((tails[low:high] == other).any())

    def costs(self, tree: Tree) -> dict[int, Costs]:
        """The costs of every entity at every node of a tree, by the identity of the node."""
        found: dict[int, Costs] = {}
        self._cost(tree, found)
        return found

    def answers(self, tree: Tree) -> Ints:
        """The entities that hold, ascending."""
        return np.flatnonzero(np.isfinite(self.costs(tree)[id(tree)]))

    def _cost(self, node: Tree, found: dict[int, Costs]) -> Costs:
        check()
        made = found[id(node)] = self._made(node, found)
        return made

    def _made(self, node: Tree, found: dict[int, Costs]) -> Costs:
        if isinstance(node, Projection):
            below = self._cost(node.of, found)
            return self._anti(node, below) if node.anti else self._projected(node, below)
        if isinstance(node, Complement):
            inner = self._cost(node.part, found)
            without: Costs = np.where(np.isfinite(inner), np.float32(np.inf), np.float32(0))
            return without
        if isinstance(node, Intersection):
            total: Costs = np.sum([self._cost(part, found) for part in node.parts], axis=0, dtype=np.float32)
            return total
        if isinstance(node, Union):
            least: Costs = np.min([self._cost(part, found) for part in node.parts], axis=0)
            return least
        costs = np.full(self.size, np.inf, np.float32)
        if isinstance(node, Anchor):
            numbers = [self.snapshot.identified(node.name)] if node.is_id else self.snapshot.named(node.name).tolist()
            costs[[number for number in numbers if number >= 0]] = 0
        elif isinstance(node, OfType):
            costs[self.snapshot.members(self.snapshot.concepts_named(node.concept))] = 0
        else:
            costs[:] = 0
        return costs

    def _projected(self, node: Projection, below: Costs) -> Costs:
        heads, tails, price = self.of(node.relation, node.inverse)
        found = np.full(self.size, np.inf, np.float32)
        reached = np.isfinite(below[heads])
        np.minimum.at(found, tails[reached], below[heads[reached]] + price[reached])
        return found

    def _anti(self, node: Projection, below: Costs) -> Costs:
        """The cheapest source that has no edge there, by levels of cost."""
        heads, tails, _ = self.of(node.relation, node.inverse)
        found = np.full(self.size, np.inf, np.float32)
        for level in np.unique(below[np.isfinite(below)])[::-1]:
            sources = below == level
            joined = np.bincount(tails[sources[heads]], minlength=self.size)
            found[joined < np.count_nonzero(sources)] = level
        return found


# -- queries -----------------------------------------------------------------------------------------
# Queries whose answers are known, of a structure each, as a file of JSON lines:
#
#     {"type": "2p", "query": ["Oscar", ["winner", "born"]], "easy": ["E1"], "hard": ["E7", "E9"]}
#
# `query` is BetaE's nested form, with ids of entities and names of relations (`^` before one that is
# followed from object to subject); numbers are taken as texts. Easy answers follow from the graph
# that is asked, hard ones need an edge that it misses.


#: A line of a file is at most so long, and holds at most so many parts of a query.
LONGEST_LINE: Final = 1 << 24
_DEEPEST: Final = 40


@dataclass(frozen=True, slots=True)
class LogicCase:
    """A query and its answers, as ids. `kind` is the name of its structure."""

    kind: str
    query: Any
    easy: tuple[str, ...]
    hard: tuple[str, ...]

    def tree(self) -> Tree:
        """Its query computation tree; constants are ids."""
        return by_id(tree_of(nested(self.query)))


def by_id(tree: Tree) -> Tree:
    """The same tree with constants that are ids of entities."""
    if isinstance(tree, Anchor):
        return Anchor(tree.name, True, tree.span)
    if isinstance(tree, Projection):
        return Projection(tree.relation, by_id(tree.of), tree.inverse, tree.anti, tree.variable, tree.span)
    if isinstance(tree, Intersection):
        return Intersection(tuple(map(by_id, tree.parts)))
    if isinstance(tree, Union):
        return Union(tuple(map(by_id, tree.parts)))
    return Complement(by_id(tree.part)) if isinstance(tree, Complement) else tree


def read_cases(path: str | os.PathLike[str], *, paired: bool = False) -> Iterator[LogicCase]:
    """The queries of a file. `paired`: relations are BetaE's numbers, 2k for a relation and 2k + 1
    for its inverse, and the graph has the even ones alone.

    Raises `LoadError` for a line that is none.
    """
    name = os.fspath(path)
    for row, line in _lines(path, encoding="utf-8"):
        if line.strip():
            yield _case(line, name, row, paired)


def read_triples(path: str | os.PathLike[str]) -> Iterator[tuple[str, str, str]]:
    """The lines of a file of three columns with tabs: id, predicate, id. Raises `LoadError` for
    another line.
    """
    name = os.fspath(path)
    for row, line in _lines(path, encoding="utf-8-sig", newline=""):
        cells = line.rstrip("\r\n").split("\t")
        if cells == [""]:
            continue
        if len(cells) != 3 or not all(cells):
            raise LoadError(f"{len(cells)} columns with tabs, not 3 that are filled: id, predicate, id", file=name, row=row)
        yield cells[0], cells[1], cells[2]


def _lines(path: str | os.PathLike[str], encoding: str, newline: str | None = None) -> Iterator[tuple[int, str]]:
    """The lines of a file, which is somebody's, with their numbers. Raises `LoadError` for bytes
    that are no UTF-8.
    """
    row = 0
    with Path(path).open(encoding=encoding, newline=newline) as file:
        try:
            while line := file.readline(LONGEST_LINE):
                row += 1
                yield row, line
        except UnicodeDecodeError as error:
            raise LoadError(f"no UTF-8: {error.reason}", file=os.fspath(path), row=row + 1) from None


def write_cases(cases: Iterable[LogicCase], path: str | os.PathLike[str]) -> int:
    """Write queries to a file; how many."""
    number = 0
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for case in cases:
            found = {"type": case.kind, "query": case.query, "easy": list(case.easy), "hard": list(case.hard)}
            file.write(json.dumps(found, ensure_ascii=False) + "\n")
            number += 1
    return number


def _case(line: str, name: str, row: int, paired: bool) -> LogicCase:
    if len(line) >= LONGEST_LINE:
        raise LoadError(f"a line has more than {LONGEST_LINE:,} characters", file=name, row=row)
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"no JSON: {error}", file=name, row=row) from None
    if not isinstance(found, dict) or not {"type", "query", "easy", "hard"} <= found.keys():
        raise LoadError("a query is an object with type, query, easy and hard", file=name, row=row)
    if not isinstance(found["type"], str):
        raise LoadError("the type of a query is a text", file=name, row=row, field="type")
    answers = [_ids(found[which], name, row, which) for which in ("easy", "hard")]
    kind = found["type"].removesuffix("-DNF")
    return LogicCase(kind, _texts(found["query"], name, row, paired, 0), *answers)


def _ids(found: Any, name: str, row: int, field: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(one, (str, int)) for one in found):
        raise LoadError("answers are a list of ids", file=name, row=row, field=field)
    return tuple(str(one) for one in found)


def _texts(part: Any, name: str, row: int, paired: bool, depth: int) -> Any:
    """The nested form with texts in place of numbers, but for the marks of negation and union."""
    if depth > _DEEPEST:
        raise LoadError(f"a query is nested more than {_DEEPEST} deep", file=name, row=row, field="query")
    if isinstance(part, str):
        return part
    if isinstance(part, int):
        return str(part)
    if not isinstance(part, list) or not part:
        raise LoadError(f"a query is made of lists, not of {part!r}", file=name, row=row, field="query")
    if all(isinstance(one, (str, int)) for one in part) and depth:
        return [_relation(one, paired) for one in part]
    return [_texts(one, name, row, paired, depth + 1) for one in part]


def _relation(one: str | int, paired: bool) -> str | int:
    if isinstance(one, int) and one in (NEGATION, UNION):
        return one
    if paired and str(one).isdecimal():
        number = int(one)
        return f"^{number - 1}" if number % 2 else str(number)
    return str(one)


# -- sampler -----------------------------------------------------------------------------------------


#: Draws for each query that is wanted, until the sampler gives up.
TRIES: Final = 200
#: How queries are drawn: as BetaE draws them, or by held-out edges.
By: TypeAlias = Literal["pair", "edge"]
#: How many missing edges a hard answer needs: one or more, or as many as answers of its structure can need.
Needed: TypeAlias = Literal["any", "all"]


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
    by: By = "pair",
    needed: Needed = "any",
) -> Sampled:
    """Up to `n` different queries of each structure, each with 1 to `most` hard answers.

    `held` are the edges that the graph misses, as triples of (id, predicate, id). The same seed
    gives the same queries.

    `by` is "pair" for queries as BetaE draws them (Ren 2020, appendix): one-hop queries are distinct
    pairs of an entity and a relation with a held-out edge; the others begin at an entity that any edge
    reaches, each as likely, and go back along a relation, then an edge, each as likely, in every part,
    also of a union and of what is negated; a query with a negation has 1 to `most` answers that hold
    only as long as the edges are missing. With "edge" half of the queries, one-hop ones too, end at a
    held-out edge, so that entities with many of them are asked for more often, and have more answers.

    With `needed="all"` (the +H sets of Gregucci 2025) the answers that count as hard need every edge of
    the query that a path to them has to be a missing one: walks follow held-out edges alone, and all other
    answers of the complete graph stand among the easy ones, which ranks leave out.

    Raises `UnknownNameError` for a structure that there is not.
    """
    if n < 1 or most < 1:
        raise OptionError(f"n and most are at least 1, not {n} and {most}")
    if by not in get_args(By):
        raise OptionError(f"queries are drawn by 'pair' or by 'edge', not by {by!r}")
    if needed not in get_args(Needed):
        raise OptionError(f"hard answers need 'any' or 'all' edges to be missing, not {needed!r}")
    wanted = [kind for kind in STRUCTURES if kind not in ("4p", "5p")] if kinds is None else list(kinds)
    for kind in wanted:
        if kind not in STRUCTURES:
            raise UnknownNameError("query structure", kind, candidates=nearest(kind, STRUCTURES))
    edges = Edges.of_snapshot(snapshot)
    missing = edges.numbered(held)
    if not len(missing.triples):
        raise LinkModelError("there are no held-out edges, without which no answer is hard")
    sampler = _Sampler(snapshot, edges, missing, most, by, needed)
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
    def __init__(self, snapshot: Snapshot, edges: Edges, missing: Edges, most: int, by: By, needed: Needed) -> None:
        self.edges, self.most, self.pairs, self.every = edges, most, by == "pair", needed == "all"
        self.whole = Complete(snapshot, edges, missing)
        if not self.whole.price.any():
            raise LinkModelError("the graph has every held-out edge, so that no answer is hard")
        self.own = Complete(snapshot, edges)
        self.kinds = snapshot.entity_kind
        triples = self.whole.triples[self.whole.price > 0] if self.every else self.whole.triples
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
        #: Where any answer may be, and the one-hop queries with a hard one.
        self.reached = np.unique(self.into)
        heads, lost, tails = missing.triples.T
        self.one_hop = np.unique(np.stack([np.append(heads, tails), np.append(lost, lost + relations)], axis=1), axis=0)
        self.names = [*edges.relations, *(f"^{name}" for name in edges.relations)]

    def draw(self, kind: str, n: int, rng: np.random.Generator) -> Iterator[LogicCase]:
        """Up to n different queries of a structure."""
        seen: set[str] = set()
        for _ in range(n * TRIES):
            if len(seen) == n:
                return
            check()
            lengths, shape = STRUCTURES[kind]
            if self.pairs and kind == "1p":
                start, relation = rng.choice(self.one_hop)
                query: Any = [self.edges.entities[start], [self.names[relation]]]
            elif self.pairs:
                query = self._query(shape, lengths, int(rng.choice(self.reached)), rng)
            else:
                # Half of the draws end at a missing edge, the others anywhere.
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
            # BetaE draws every part from the same answer; by edges, what is negated, or joined by `or`,
            # need not hold of it.
            away = not self.pairs and (bool(parts) if shape[0] == "u" else isinstance(part, tuple) and part[0] == "n")
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
        costs = self.whole.costs(tree)[id(tree)]
        answers, easy = np.flatnonzero(np.isfinite(costs)), self.own.answers(tree)
        hard = np.setdiff1d(answers, easy)
        if self.every:
            hard = hard[costs[hard] == dearest(tree)]
        if not 0 < len(hard) <= self.most:
            return None
        if NEGATION in _marks(query):
            lost = len(easy) - len(np.intersect1d(answers, easy))
            if not 0 < lost <= self.most if self.pairs else len(answers) > 10 * self.most:
                return None
        if self.every:
            easy = np.setdiff1d(np.union1d(easy, answers), hard)
        names = self.edges.entities
        return LogicCase(kind, query, tuple(names[one] for one in easy.tolist()), tuple(names[one] for one in hard.tolist()))


def dearest(tree: Tree) -> int:
    """The most missing edges that an answer can need: of a union those of its cheapest part, and none for
    what is negated.
    """
    if isinstance(tree, Projection):
        return dearest(tree.of) + (not tree.anti)
    if isinstance(tree, Intersection):
        return sum(map(dearest, tree.parts))
    return min(map(dearest, tree.parts)) if isinstance(tree, Union) else 0


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
