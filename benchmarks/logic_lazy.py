"""Logical queries with a link prediction model whose rows are computed when a query needs them: the time for the ten
best answers of NELL995's published queries, and the memory.

    CONDGRAPH_DATA=... OMP_NUM_THREADS=1 python benchmarks/logic_lazy.py MODEL.npz --kind 3p

Every query starts with no rows cached. Time is CPU time. Most queries have ten answers in the graph itself, which
need no prediction; with `--predicted`, ten more answers are requested than the graph has, so that these must be
predicted. `--repeat N` repeats the vectors of the model N times, scaled so that scores stay the same: the cost of a
model of N times the rank.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import time
from pathlib import Path

import numpy as np

import condgraph
from condgraph.links.embeddings import Embeddings
from condgraph.logic.ask import ranked
from condgraph.logic.evaluation.sampler import read_cases, read_triples
from condgraph.logic.predicted import Predicted
from condgraph.logic.propagation import adjacency


def repeated(model: Embeddings, times: int) -> Embeddings:
    """The same scores from vectors of `times` the length."""
    if times == 1:
        return model
    scale = np.float32(times ** (-1 / 3))

    def longer(vectors: np.ndarray) -> np.ndarray:
        half = vectors.shape[1] // 2
        return scale * np.concatenate([np.tile(vectors[:, :half], times), np.tile(vectors[:, half:], times)], axis=1)

    assert model.inverse_vectors is not None
    vectors = (longer(one) for one in (model.entity_vectors, model.relation_vectors, model.inverse_vectors))
    return Embeddings("complex", model.entities, model.relations, *vectors)


def nell(folder: Path) -> condgraph.Graph:
    """The training edges; the data set has each with its inverse, of the next number."""
    from condgraph.engine.facts import Entity, Ref, Statement

    edges = [(h, r, t) for h, r, t in read_triples(folder / "train.txt") if int(r) % 2 == 0]
    graph = condgraph.open()
    graph.add(Entity(one, one) for one in sorted({one for h, _, t in edges for one in (h, t)}))
    graph.add(Statement(h, r, Ref(t)) for h, r, t in edges)
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--kind", default="3p")
    parser.add_argument("--queries", type=int, default=24)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--predicted", action="store_true")
    options = parser.parse_args()
    folder = Path(os.environ["CONDGRAPH_DATA"]) / "data/nell995_betae"
    snapshot, model = nell(folder).current, repeated(Embeddings.load(options.model), options.repeat)
    cases = [case for case in read_cases(folder / "queries_dev.jsonl", paired=True) if case.kind == options.kind]
    random.Random(1).shuffle(cases)
    spent, rows = [], []
    for case in cases[: options.queries]:
        tree = case.tree()
        k = 10 + (len(ranked(tree, snapshot, adjacency(snapshot), k=None).ids) if options.predicted else 0)
        matrix = Predicted(adjacency(snapshot), model)
        begin = time.process_time()
        ranked(tree, snapshot, matrix, k=k)
        spent.append(1000 * (time.process_time() - begin))
        rows.append(sum(map(len, matrix._cache.values())))
    times = f"median {statistics.median(spent):.0f} ms, 90 % {np.quantile(spent, 0.9):.0f}, most {max(spent):.0f}"
    asked = f"rows asked of the model: median {statistics.median(rows):.0f}, most {max(rows)}"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{options.kind}, rank {model.dimension // 2}, {len(spent)} queries: {times}; {asked}; {memory} MB")


if __name__ == "__main__":
    main()
