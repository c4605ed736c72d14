"""Logical queries on sparse rows compared with the same algorithm on dense matrices, in one process and thread, by
structure, on FB15k-237 with 364 entries in each row of each relation. Time is CPU time.

    CONDGRAPH_DATA=... OMP_NUM_THREADS=1 python benchmarks/logic_dense.py --queries 5

The dense way is the published one: a relation is stored sparse, made dense in column blocks for each projection,
multiplied by the scores of the frontier, and its largest entries are taken. The answers of both are compared. Scores
are random, since the time does not depend on them.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from pathlib import Path

import numpy as np

import condgraph
from condgraph.languages.logic import tree as trees
from condgraph.languages.logic.convert import tree_of
from condgraph.languages.logic.structures import STRUCTURES, named
from condgraph.logic.ask import ranked
from condgraph.logic.propagation import Forward, Rows, adjacency

ENTRIES = 364


class RandomRows:
    """The edges of a graph, and random predictions beside them, 364 entries a row."""

    observed_only = False

    def __init__(self, graph: condgraph.Graph, relations: list[str]) -> None:
        self.size = graph.current.entities
        self.own = adjacency(graph.current)
        self.kept: dict[tuple[str, bool], Rows] = {}
        rng = np.random.default_rng(7)
        for name in relations:
            columns = np.argsort(rng.random((self.size, 2 * ENTRIES), np.float32), axis=1)[:, :ENTRIES]
            columns = np.sort(
                columns * (self.size // (2 * ENTRIES)) + rng.integers(0, self.size // (2 * ENTRIES), columns.shape), axis=1
            )
            values = (0.001 + 0.998 * rng.random(columns.size) ** 6).astype(np.float32)
            own = self.own.whole((name, False))
            heads = np.repeat(own.heads, own.counts())
            every = np.concatenate(
                [np.repeat(np.arange(self.size), ENTRIES) * self.size + columns.ravel(), heads * self.size + own.ids]
            )
            scores = np.concatenate([values, np.ones(len(heads), np.float32)])
            order = np.lexsort((-scores, every))
            every, scores = every[order], scores[order]
            first = np.concatenate([[True], every[1:] != every[:-1]])
            every, scores = every[first], scores[first]
            offsets = np.searchsorted(every, np.arange(self.size + 1) * self.size)
            self.kept[name, False] = Rows(np.arange(self.size), offsets, (every % self.size).astype(np.int32), scores)

    def whole(self, key: tuple[str, bool]) -> Rows:
        return self.kept[key]

    def every_row(self, key: tuple[str, bool], least: float = 0.0) -> Rows:
        return self.kept[key]

    def rows(self, key: tuple[str, bool], heads: np.ndarray, least: float = 0.0) -> Rows:
        return self.kept[key].take(heads)


def dense(node: trees.Tree, matrix: RandomRows, graph: condgraph.Graph, blocks: int = 10) -> np.ndarray:
    """T* of every node, with each relation made dense for each projection."""
    n = matrix.size
    match node:
        case trees.Anchor():
            found = np.zeros(n, np.float32)
            found[graph.current.identified(node.name)] = 1.0
            return found
        case trees.Projection():
            below, rows = dense(node.of, matrix, graph, blocks), matrix.whole((node.relation, node.inverse))
            heads, found = np.repeat(rows.heads, rows.counts()), np.zeros(n, np.float32)
            near = np.flatnonzero(below)
            width = -(-n // blocks)
            for begin in range(0, n, width):
                end = min(begin + width, n)
                inside = (rows.ids >= begin) & (rows.ids < end)
                block = np.zeros((n, end - begin), np.float32)
                block[heads[inside], rows.ids[inside] - begin] = rows.values[inside]
                found[begin:end] = (block[near] * below[near, None]).max(axis=0) if len(near) else 0.0
            return found
        case trees.Intersection():
            return np.prod([dense(part, matrix, graph, blocks) for part in node.parts], axis=0)
        case trees.Union():
            return 1 - np.prod([1 - dense(part, matrix, graph, blocks) for part in node.parts], axis=0)
        case trees.Complement():
            return 1 - dense(node.part, matrix, graph, blocks)
    raise AssertionError(node)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=STRUCTURES, default=list(STRUCTURES))
    options = parser.parse_args()
    graph = condgraph.open()
    graph.load(Path(os.environ["CONDGRAPH_DATA"]) / "data/fb15k237/train.txt", format="triples")
    relations = sorted(graph.current.schema.relations, key=lambda name: -len(adjacency(graph.current).whole((name, False)).ids))[:6]
    matrix, dice = RandomRows(graph, relations), random.Random(3)
    print("structure  dense ms  all scores ms  ratio  best 10 ms  ratio")
    for name in options.only:
        lengths, shape = STRUCTURES[name]
        slow, every, best = [], [], []
        for _ in range(options.queries):
            branches: list = []
            for length in lengths:
                path = [dice.choice(relations) for _ in range(length)]
                first = matrix.own.whole((path[0], False))
                branches.append([graph.current.ident(int(dice.choice(first.heads.tolist()))), *path])
            if isinstance(shape, tuple) and shape[0] == "p":
                branches.append(dice.choice(relations))
            tree = tree_of(named(name, branches))
            begin = time.process_time()
            wanted = dense(tree, matrix, graph)
            slow.append(time.process_time() - begin)
            begin = time.process_time()
            found = Forward(graph.current, matrix).run(tree)
            every.append(time.process_time() - begin)
            begin = time.process_time()
            ten = ranked(tree, graph.current, matrix, k=10)
            best.append(time.process_time() - begin)
            np.testing.assert_allclose(found.at(np.arange(matrix.size)), wanted, atol=2e-6)
            np.testing.assert_allclose(ten.scores, np.sort(wanted)[::-1][: len(ten.scores)], atol=2e-6) if "n" not in name else None
        a, b, c = (1000 * statistics.median(times) for times in (slow, every, best))
        print(f"{name:9}  {a:8.1f}  {b:13.2f}  {a / b:5.0f}  {c:10.2f}  {a / c:5.0f}", flush=True)


if __name__ == "__main__":
    main()
