"""Queries whose answers need only missing edges (the +H sets of Gregucci 2025): QTO compared with CQD, and with sums
over all values of a variable, with and without rules.

    python benchmarks/logic_missing.py DIR MODEL.npz RULES.npz [--queries 60] [--out FILE]

DIR has train.txt, valid.txt and test.txt: head, relation, tail, with tabs; the model and the rules were learned from
train.txt. Test queries are drawn over the training and validation edges, and run on the training edges alone. A
method with settings gets those that suit the validation queries of each structure best. Only the best values of a
variable are used (in QTO too).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import condgraph
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.languages.logic.tree import Anchor, Intersection, Projection, Tree
from condgraph.links.edges import Edges
from condgraph.links.embeddings import Embeddings
from condgraph.links.ranks import rank_among
from condgraph.links.rule_model import Rules
from condgraph.logic.evaluation.sampler import LogicCase, read_triples

KINDS = ("2p", "3p", "2i", "3i")
#: Scores of predicted edges are below 1, and of rules not below this.
MAX_SCORE, MIN_RULES = 1 - 1e-4, 1e-3
Key = tuple[int, bool]


@dataclass(frozen=True)
class Setting:
    """How edges are scored and joined. `join`: the best or the sum over the `values` that a variable has;
    `observed`: edges of the graph score 1, like others ("model"), or are left out ("none").
    """

    join: str = "max"
    observed: str = "one"
    scores: str = "softmax"
    rules: float = 0.0
    values: int = 64


#: Methods, and the settings of each that validation queries choose from.
METHODS = {
    "QTO": [Setting()],
    "CQD": [Setting("max", "model", scores, 0.0, values) for scores in ("sigmoid", "range") for values in (8, 64)],
    "CQD-Hybrid": [Setting("max", "one", scores, 0.0, values) for scores in ("sigmoid", "range") for values in (8, 64)],
    "sums": [Setting("sum")],
    "no observed edge, best": [Setting("max", "none")],
    "no observed edge, sums": [Setting("sum", "none")],
    "no observed edge, sums, rules": [Setting("sum", "none", rules=0.5, values=16)],
    "sums, rules": [Setting("sum", rules=0.5, values=16)],
}


class Scorer:
    """Scores of the entities of a graph for queries without negation, by a setting."""

    def __init__(self, edges: Edges, model: Embeddings, rules: Rules) -> None:
        self.edges, self.model, self.rules = edges, model, rules
        self._raw: dict[tuple[Key, int], Any] = {}
        self._ruled: dict[tuple[Key, int], Any] = {}

    def of(self, tree: Tree, how: Setting) -> np.ndarray:
        """The scores of all entities."""
        if isinstance(tree, Anchor):
            scores = np.zeros(len(self.edges.entities))
            scores[self.edges.entity_numbers[tree.name]] = 1.0
            return scores
        if isinstance(tree, Projection):
            below = self.of(tree.of, how)
            heads = np.argsort(-below, kind="stable")[: how.values]
            heads = heads[below[heads] > 0]
            rows = self._rows((self.edges.relation_numbers[tree.relation], tree.inverse), heads, how)
            weighted = rows * below[heads, None]
            joined: np.ndarray = weighted.sum(axis=0) if how.join == "sum" else weighted.max(axis=0)
            return joined
        assert isinstance(tree, Intersection)
        product: np.ndarray = np.prod([self.of(part, how) for part in tree.parts], axis=0)
        return product

    def _rows(self, key: Key, heads: np.ndarray, how: Setting) -> np.ndarray:
        raw = self._kept(self._raw, self.model, key, heads)
        offsets, items = self.edges.ends(key[1]).of(heads, key[0])
        row = np.arange(len(heads)).repeat(np.diff(offsets))
        if how.scores == "sigmoid":
            scores = 1 / (1 + np.exp(-raw))
        elif how.scores == "range":
            low, high = raw.min(axis=1, keepdims=True), raw.max(axis=1, keepdims=True)
            scores = np.minimum((raw - low) / (high - low), MAX_SCORE)
        else:
            if how.observed == "none":
                raw[row, items] = -np.inf
            powers = np.exp(raw - raw.max(axis=1, keepdims=True))
            counts = np.maximum(np.diff(offsets), 1)
            scores = np.minimum(powers * (counts / powers.sum(axis=1))[:, None], MAX_SCORE)
        if how.rules:
            ruled = np.maximum(self._kept(self._ruled, self.rules, key, heads), MIN_RULES)
            scores = np.maximum(scores, 1e-7) ** (1 - how.rules) * ruled**how.rules
        if how.observed != "model":
            scores[row, items] = float(how.observed == "one")
        return scores

    def _kept(self, kept: dict[tuple[Key, int], Any], model: Any, key: Key, heads: np.ndarray) -> np.ndarray:
        """Rows of scores of a model, asked once."""
        new = np.array([head for head in heads.tolist() if (key, head) not in kept], np.int64)
        if len(new):
            rows = model.score_tails(new, key[0], inverse=key[1])
            kept.update({(key, head): row for head, row in zip(new.tolist(), rows, strict=True)})
        return np.array([kept[key, head] for head in heads.tolist()], np.float64).reshape(len(heads), -1)


def graph_of(edges: Sequence[tuple[str, str, str]]) -> condgraph.Graph:
    """A graph of edges, with ids as names."""
    graph = condgraph.open()
    graph.add(Entity(one, one) for one in sorted({one for head, _, tail in edges for one in (head, tail)}))
    graph.add(Statement(head, relation, Ref(tail)) for head, relation, tail in edges)
    return graph


def reciprocal(edges: Edges, case: LogicCase, scores: np.ndarray) -> float:
    """The mean reciprocal rank of the hard answers of a query."""
    hard, easy = (np.array([edges.entity_numbers[one] for one in part], np.int64) for part in (case.hard, case.easy))
    return float(np.mean(1 / rank_among(scores, hard, easy)))


def mrr(edges: Edges, cases: Iterable[LogicCase], scored: Any) -> dict[str, float]:
    """By structure, in percent."""
    found: dict[str, list[float]] = {}
    for case in cases:
        found.setdefault(case.kind, []).append(reciprocal(edges, case, scored(case.tree())))
    return {kind: 100 * float(np.mean(parts)) for kind, parts in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("rules", type=Path)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--validation", type=int, default=30)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    train, valid, test = (list(read_triples(given.folder / f"{part}.txt")) for part in ("train", "valid", "test"))
    edges = Edges.of(train)
    known, whole = graph_of(train), graph_of(train + valid)
    tuned = known.sample_queries(valid, given.validation, kinds=KINDS, seed=5, needed="all").cases
    cases = whole.sample_queries(test, given.queries, kinds=KINDS, seed=11, needed="all").cases
    model = Embeddings.load(given.model)
    scorer = Scorer(edges, model, Rules.load(given.rules, edges))
    rows: list[dict[str, Any]] = []

    def told(title: str, figures: dict[str, float], chosen: Any, begin: float) -> None:
        rows.append({"method": title, "mrr": figures, "chosen": chosen, "seconds": round(time.process_time() - begin, 1)})
        print(f"{title:34}", "  ".join(f"{kind} {figures[kind]:.1f}" for kind in KINDS), f"{rows[-1]['seconds']} s", flush=True)

    for title, settings in METHODS.items():
        begin = time.process_time()
        chosen: dict[str, tuple[float, Setting]] = {}
        for how in settings if len(settings) > 1 else ():
            for kind, value in mrr(edges, tuned, lambda tree, how=how: scorer.of(tree, how)).items():
                chosen[kind] = max(chosen.get(kind, (-1.0, how)), (value, how), key=lambda one: one[0])
        best = {kind: chosen[kind][1] if kind in chosen else settings[0] for kind in KINDS}
        figures: dict[str, float] = {}
        for kind in KINDS:
            asked = [case for case in cases if case.kind == kind]
            figures |= mrr(edges, asked, lambda tree, how=best[kind]: scorer.of(tree, how))
        told(title, figures, {kind: asdict(how) for kind, how in best.items()}, begin)
        if given.out:
            given.out.write_text(json.dumps(rows, indent=1), "utf-8")


if __name__ == "__main__":
    main()
