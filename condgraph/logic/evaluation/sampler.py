"""Samples logical queries with known answers, by the edges that are hidden from the graph; reads and writes them."""

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
# The fewest missing edges that an answer needs, as its cost: an edge of the graph costs 0, a missing
# one 1.
#
# Most hard answers of queries with several edges need only one missing edge. Entities that are no
# answers have infinite cost, so the costs also determine the answers.


Costs = NDArray[np.float32]


class Complete:
    """A graph with its missing edges: `held` are triples in the numbers of `edges`."""

    def __init__(self, snapshot: Snapshot, edges: Edges, held: Edges | None = None) -> None:
        self.snapshot, self.edges = snapshot, edges
        self.size = len(edges.entities)
        self.relations = edges.relation_numbers
        triples = edges.triples if held is None else np.concatenate([edges.triples, held.triples])
        price = np.zeros(len(triples), np.float32)
        price[len(edges.triples) :] = 1
        # An edge that is both in the graph and held out is not missing.
        order = np.lexsort((price, triples[:, 2], triples[:, 0], triples[:, 1]))
        triples, price = triples[order], price[order]
        first = np.append(True, (triples[1:] != triples[:-1]).any(axis=1)) if len(triples) else np.empty(0, bool)
        self.triples, self.price = triples[first], price[first]
        self._begin = np.searchsorted(self.triples[:, 1], np.arange(len(edges.relations) + 1))

    def of(self, relation: str, inverse: bool) -> tuple[Ints, Ints, Costs]:
        """Return the edges of a relation: heads, tails and prices (1 if missing, else 0)."""
        number = self.relations.get(relation)
        begin, end = (0, 0) if number is None else (self._begin[number], self._begin[number + 1])
        triples = self.triples[begin:end]
        return triples[:, 2 if inverse else 0], triples[:, 0 if inverse else 2], self.price[begin:end]

    def has(self, relation: str, subject: int, other: int) -> bool:
        """Whether there is an edge, missing or not."""
        heads, tails, _ = self.of(relation, False)
        low, high = np.searchsorted(heads, [subject, subject + 1])
        return bool((tails[low:high] == other).any())

    def costs(self, tree: Tree) -> dict[int, Costs]:
        """Return the costs of every entity at every node of a tree, by the identity of the node."""
        costs: dict[int, Costs] = {}
        self._cost(tree, costs)
        return costs

    def answers(self, tree: Tree) -> Ints:
        """Return the answers in the complete graph, ascending."""
        return np.flatnonzero(np.isfinite(self.costs(tree)[id(tree)]))

    def _cost(self, node: Tree, found: dict[int, Costs]) -> Costs:
        check()
        costs = found[id(node)] = self._compute(node, found)
        return costs

    def _compute(self, node: Tree, found: dict[int, Costs]) -> Costs:
        if isinstance(node, Projection):
            source_costs = self._cost(node.of, found)
            return self._anti(node, source_costs) if node.anti else self._projected(node, source_costs)
        if isinstance(node, Complement):
            inner = self._cost(node.part, found)
            negated: Costs = np.where(np.isfinite(inner), np.float32(np.inf), np.float32(0))
            return negated
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
        costs = np.full(self.size, np.inf, np.float32)
        reached = np.isfinite(below[heads])
        np.minimum.at(costs, tails[reached], below[heads[reached]] + price[reached])
        return costs

    def _anti(self, node: Projection, below: Costs) -> Costs:
        """Return the cost of the cheapest source that has no edge to each entity."""
        heads, tails, _ = self.of(node.relation, node.inverse)
        costs = np.full(self.size, np.inf, np.float32)
        for level in np.unique(below[np.isfinite(below)])[::-1]:
            sources = below == level
            linked = np.bincount(tails[sources[heads]], minlength=self.size)
            costs[linked < np.count_nonzero(sources)] = level
        return costs


# -- queries -----------------------------------------------------------------------------------------
# Queries with known answers, each with its structure, as a file of JSON lines:
#
#     {"type": "2p", "query": ["Oscar", ["winner", "born"]], "easy": ["E1"], "hard": ["E7", "E9"]}
#
# `query` is BetaE's nested form, with ids of entities and names of relations (`^` before one that is
# followed from object to subject); numbers become texts. Easy answers follow from the graph, hard ones
# need an edge that it lacks.


#: The most characters of a line, and the deepest nesting of a query.
MAX_LINE: Final = 1 << 24
_MAX_DEPTH: Final = 40


@dataclass(frozen=True, slots=True)
class LogicCase:
    """A query and its answers, by id. `kind` is the name of its structure."""

    kind: str
    query: Any
    easy: tuple[str, ...]
    hard: tuple[str, ...]

    def tree(self) -> Tree:
        """Return its query computation tree; constants are ids."""
        return by_id(tree_of(nested(self.query)))


def by_id(tree: Tree) -> Tree:
    """Return the tree with its constants as ids."""
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
    """Yield the queries of a file. With `paired`, relations are BetaE's numbers: 2k for a relation of the graph, and 2k
    + 1 for its inverse, which the graph does not have.

    Raises `LoadError` for a line that is not a query.
    """
    name = os.fspath(path)
    for row, line in _lines(path, encoding="utf-8"):
        if line.strip():
            yield _case(line, name, row, paired)


def read_triples(path: str | os.PathLike[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the lines of a file with three columns separated by tabs: id, predicate, id. Raises `LoadError` for other
    lines.
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
    """Yield the lines of a file with their numbers. Raises `LoadError` for bytes that are not UTF-8."""
    row = 0
    with Path(path).open(encoding=encoding, newline=newline) as file:
        try:
            while line := file.readline(MAX_LINE):
                row += 1
                yield row, line
        except UnicodeDecodeError as error:
            raise LoadError(f"no UTF-8: {error.reason}", file=os.fspath(path), row=row + 1) from None


def write_cases(cases: Iterable[LogicCase], path: str | os.PathLike[str]) -> int:
    """Write queries to a file, and return their number."""
    number = 0
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for case in cases:
            record = {"type": case.kind, "query": case.query, "easy": list(case.easy), "hard": list(case.hard)}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            number += 1
    return number


def _case(line: str, name: str, row: int, paired: bool) -> LogicCase:
    if len(line) >= MAX_LINE:
        raise LoadError(f"a line has more than {MAX_LINE:,} characters", file=name, row=row)
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"no JSON: {error}", file=name, row=row) from None
    if not isinstance(record, dict) or not {"type", "query", "easy", "hard"} <= record.keys():
        raise LoadError("a query is an object with type, query, easy and hard", file=name, row=row)
    if not isinstance(record["type"], str):
        raise LoadError("the type of a query is a text", file=name, row=row, field="type")
    answers = [_ids(record[field], name, row, field) for field in ("easy", "hard")]
    kind = record["type"].removesuffix("-DNF")
    return LogicCase(kind, _texts(record["query"], name, row, paired, 0), *answers)


def _ids(found: Any, name: str, row: int, field: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(ident, (str, int)) for ident in found):
        raise LoadError("answers are a list of ids", file=name, row=row, field=field)
    return tuple(str(ident) for ident in found)


def _texts(part: Any, name: str, row: int, paired: bool, depth: int) -> Any:
    """Return the nested form with numbers as texts, except for the marks of negation and union."""
    if depth > _MAX_DEPTH:
        raise LoadError(f"a query is nested more than {_MAX_DEPTH} deep", file=name, row=row, field="query")
    if isinstance(part, str):
        return part
    if isinstance(part, int):
        return str(part)
    if not isinstance(part, list) or not part:
        raise LoadError(f"a query is made of lists, not of {part!r}", file=name, row=row, field="query")
    if all(isinstance(item, (str, int)) for item in part) and depth:
        return [_relation(item, paired) for item in part]
    return [_texts(item, name, row, paired, depth + 1) for item in part]


def _relation(one: str | int, paired: bool) -> str | int:
    if isinstance(one, int) and one in (NEGATION, UNION):
        return one
    if paired and str(one).isdecimal():
        number = int(one)
        return f"^{number - 1}" if number % 2 else str(number)
    return str(one)


# -- sampler -----------------------------------------------------------------------------------------


#: The number of draws per requested query after which the sampler gives up.
TRIES: Final = 200
#: How queries are drawn: like BetaE's, or by held-out edges.
By: TypeAlias = Literal["pair", "edge"]
#: How many missing edges a hard answer needs: one or more, or the most that an answer of its structure can need.
Needed: TypeAlias = Literal["any", "all"]


@dataclass(frozen=True, slots=True)
class Sampled:
    """Sampled queries, and warnings for structures with too few."""

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
    """Sample up to `n` distinct queries of each structure, each with 1 to `most` hard answers.

    `held` are edges that the graph lacks, as triples of (id, predicate, id). The same seed gives the same queries.

    With `by="pair"` queries are drawn like BetaE's (Ren 2020, appendix). One-hop queries are distinct pairs of an
    entity and a relation with a held-out edge. The others start from their answer, a random entity with an edge, and
    go back along a random relation, then a random edge of it, in every part, including unions and negated parts; a query
    with a negation has 1 to `most` answers that hold only while the edges are missing. With `by="edge"` half of the
    queries, including one-hop ones, end at a held-out edge, so that entities with many of them occur more often, and
    queries have more answers.

    With `needed="all"` (the +H sets of Gregucci 2025) only those answers are hard for which every edge of the query
    that can be missing is missing: walks follow only held-out edges, and all other answers of the complete graph count
    as easy, which ranks leave out.

    Raises `UnknownNameError` for an unknown structure.
    """
    if n < 1 or most < 1:
        raise OptionError(f"n and most are at least 1, not {n} and {most}")
    if by not in get_args(By):
        raise OptionError(f"queries are drawn by 'pair' or by 'edge', not by {by!r}")
    if needed not in get_args(Needed):
        raise OptionError(f"hard answers need 'any' or 'all' edges to be missing, not {needed!r}")
    structures = [kind for kind in STRUCTURES if kind not in ("4p", "5p")] if kinds is None else list(kinds)
    for kind in structures:
        if kind not in STRUCTURES:
            raise UnknownNameError("query structure", kind, candidates=nearest(kind, STRUCTURES))
    edges = Edges.of_snapshot(snapshot)
    missing = edges.numbered(held)
    if not len(missing.triples):
        raise LinkModelError("there are no held-out edges, without which no answer is hard")
    sampler = _Sampler(snapshot, edges, missing, most, by, needed)
    cases: list[LogicCase] = []
    warnings: list[str] = []
    for kind in structures:
        rng = np.random.default_rng([seed, list(STRUCTURES).index(kind)])
        drawn = list(sampler.draw(kind, n, rng))
        if len(drawn) < n:
            warnings.append(f"only {len(drawn)} of {n} queries of {kind} were found in {n * TRIES} draws")
        cases += drawn
    return Sampled(tuple(cases), tuple(warnings))


class _Sampler:
    """Draws queries by walks back from their answers."""

    def __init__(self, snapshot: Snapshot, edges: Edges, missing: Edges, most: int, by: By, needed: Needed) -> None:
        self.edges, self.most, self.pairs, self.every = edges, most, by == "pair", needed == "all"
        self.complete = Complete(snapshot, edges, missing)
        if not self.complete.price.any():
            raise LinkModelError("the graph has every held-out edge, so that no answer is hard")
        self.observed = Complete(snapshot, edges)
        self.kinds = snapshot.entity_kind
        triples = self.complete.triples[self.complete.price > 0] if self.every else self.complete.triples
        # Each edge reaches both its ends: its tail by the relation, its head by the inverse.
        self.into = np.concatenate([triples[:, 2], triples[:, 0]])
        self.start = np.concatenate([triples[:, 0], triples[:, 2]])
        relations = len(edges.relations)
        self.by = np.concatenate([triples[:, 1], triples[:, 1] + relations])
        order = np.argsort(self.into, kind="stable")
        self.into, self.start, self.by = self.into[order], self.start[order], self.by[order]
        self.begin = np.searchsorted(self.into, np.arange(len(edges.entities) + 1))
        #: The entities that may be hard answers: those with a missing edge.
        self.ends = np.unique(missing.triples[:, [0, 2]])
        #: The entities that may be answers, and the one-hop queries with a hard answer.
        self.reached = np.unique(self.into)
        heads, missing_relations, tails = missing.triples.T
        self.one_hop = np.unique(
            np.stack([np.append(heads, tails), np.append(missing_relations, missing_relations + relations)], axis=1), axis=0
        )
        self.names = [*edges.relations, *(f"^{name}" for name in edges.relations)]

    def draw(self, kind: str, n: int, rng: np.random.Generator) -> Iterator[LogicCase]:
        """Yield up to n distinct queries of a structure."""
        texts: set[str] = set()
        for _ in range(n * TRIES):
            if len(texts) == n:
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
            if query is None or repr(query) in texts or _repeats(query):
                continue
            case = self._case(kind, query)
            if case is not None:
                texts.add(repr(query))
                yield case

    def _query(self, shape: Any, lengths: Sequence[int], root: int, rng: np.random.Generator) -> Any:
        """Return the nested form of a structure with `root` among its answers, before any negation."""
        if isinstance(shape, int):
            return self._path(lengths[shape], root, rng)
        if shape[0] == "n":
            branch = self._query(shape[1], lengths, root, rng)
            return None if branch is None else [branch[0], [*branch[1], NEGATION]]
        if shape[0] == "p":
            step = self._step(root, rng)
            if step is None:
                return None
            source = self._query(shape[1], lengths, step[0], rng)
            return None if source is None else [source, [self.names[step[1]]]]
        parts: list[Any] = []
        for part in shape[1:]:
            # BetaE draws every part from the same answer. With `by="edge"`, negated parts and further parts of a union start
            # from another entity.
            from_another = not self.pairs and (bool(parts) if shape[0] == "u" else isinstance(part, tuple) and part[0] == "n")
            branch = self._query(part, lengths, self._neighbour(root, rng) if from_another else root, rng)
            if branch is None:
                return None
            parts.append(branch)
        return [*parts, [UNION]] if shape[0] == "u" else parts

    def _neighbour(self, root: int, rng: np.random.Generator) -> int:
        """Return an entity that shares an edge with `root`: another tail of one of its relations, if there is one."""
        step = self._step(root, rng)
        if step is None:
            return root
        name = self.names[step[1]]
        heads, tails, _ = self.complete.of(
            name.removeprefix("^") if step[1] >= len(self.edges.relations) else name, step[1] >= len(self.edges.relations)
        )
        tails_there = tails[heads == step[0]]
        return int(rng.choice(tails_there)) if len(tails_there) else root

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
        # Draw the relation first, so that the most common relation of a hub does not dominate.
        relations = np.unique(self.by[begin:end])
        relation = rng.choice(relations)
        edge = rng.choice(np.flatnonzero(self.by[begin:end] == relation)) + begin
        return int(self.start[edge]), int(relation)

    def _case(self, kind: str, query: Any) -> LogicCase | None:
        case = LogicCase(kind, query, (), ())
        tree = case.tree()
        costs = self.complete.costs(tree)[id(tree)]
        answers, easy = np.flatnonzero(np.isfinite(costs)), self.observed.answers(tree)
        hard = np.setdiff1d(answers, easy)
        if self.every:
            hard = hard[costs[hard] == dearest(tree)]
        if not 0 < len(hard) <= self.most:
            return None
        if NEGATION in _marks(query):
            lost_answers = len(easy) - len(np.intersect1d(answers, easy))
            if not 0 < lost_answers <= self.most if self.pairs else len(answers) > 10 * self.most:
                return None
        if self.every:
            easy = np.setdiff1d(np.union1d(easy, answers), hard)
        names = self.edges.entities
        return LogicCase(
            kind, query, tuple(names[number] for number in easy.tolist()), tuple(names[number] for number in hard.tolist())
        )


def dearest(tree: Tree) -> int:
    """Return the most missing edges that an answer can need: in a union those of its cheapest part, under a negation
    none.
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
    """Whether a query has redundant parts: two equal branches, or an edge followed there and back."""
    if not isinstance(query, list):
        return False
    parts = [repr(part) for part in query if isinstance(part, list)]
    if len(set(parts)) < len(parts):
        return True
    if query and all(isinstance(name, str) for name in query):
        return any(
            step.removeprefix("^") == next_step.removeprefix("^") and step != next_step for step, next_step in pairwise(query)
        )
    return any(map(_repeats, query))
