"""Link prediction models in the published setting on a GPU, and logical queries with them, computed densely.

    python benchmarks/logic_gpu.py draw NAME DIR QUERIES [--n 500]
    python benchmarks/logic_gpu.py ask NAME DIR QUERIES OUT [--rules RULES.npz] [--staged FILE] ...

DIR has train.txt, valid.txt and test.txt (NELL995 of BetaE: only the relations with even numbers, since the odd ones
are their inverses). `draw` draws queries as BetaE does, over the training edges (by validation edges) and over both
(by test edges), and queries that need only missing edges (+H). `ask` trains ComplEx with N3 and relation prediction
(Chen 2021) with a step that is captured once as a CUDA graph, and answers the queries: each projection scores its
heads against all entities at once, which gives the numbers of `Graph.logic` with the same `epsilon` and no `cap`. All
queries run on the training edges.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import condgraph
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.languages.logic.structures import STRUCTURES
from condgraph.languages.logic.tree import Anchor, Complement, Intersection, Projection, Tree, Union
from condgraph.links.edges import Edges
from condgraph.links.rule_model import Rules
from condgraph.logic.evaluation.sampler import LogicCase, read_cases, read_triples, sample, write_cases

KINDS = [kind for kind in STRUCTURES if kind not in ("4p", "5p")]
HARD = ("2p", "3p", "2i", "3i")
POSITIVE = ("1p", "2p", "3p", "2i", "3i", "pi", "ip", "2u", "up")
NEGATIVE = ("2in", "3in", "inp", "pin", "pni")
WEIGHTS = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0)
MAX_SCORE, MIN_MODEL, MIN_RULES = 1 - 1e-4, 1e-7, 1e-3
BEGIN = time.perf_counter()
#: Files of the queries of one kind, drawn by different seeds.
PARTS = 4


def told(*what: Any) -> None:
    print(f"{time.perf_counter() - BEGIN:7.1f}", *what, flush=True)


# -- data ------------------------------------------------------------------------------------------


def parts_of(name: str, folder: Path) -> tuple[Edges, list[Any], list[Any], list[Any]]:
    """The training edges, and the triples of all three parts whose entities these have."""
    paired = "nell" in name
    parts = [
        [one for one in read_triples(folder / f"{part}.txt") if not paired or int(one[1]) % 2 == 0]
        for part in ("train", "valid", "test")
    ]
    edges = Edges.of(parts[0])
    known, relations = edges.entity_numbers, edges.relation_numbers
    held = [[one for one in part if one[0] in known and one[2] in known and one[1] in relations] for part in parts[1:]]
    return edges, parts[0], *held  # type: ignore[return-value]


def snapshot_of(triples: Sequence[tuple[str, str, str]]) -> Any:
    graph = condgraph.open()
    graph.add(Entity(one, one) for one in sorted({one for head, _, tail in triples for one in (head, tail)}))
    graph.add(Statement(head, relation, Ref(tail)) for head, relation, tail in triples)
    return graph.snapshot().current


_SNAPSHOTS: dict[str, tuple[Any, Any]] = {}


def _drawn(task: tuple[str, str, str, int, int, int, str]) -> str:
    split, kind, needed, n, most, seed, out = task
    snapshot, held = _SNAPSHOTS[split]
    found = sample(snapshot, held, n, kinds=[kind], seed=seed, most=most, needed=needed)  # type: ignore[arg-type]
    write_cases(found.cases, out)
    return f"{out} {len(found.cases)}"


def draw(given: argparse.Namespace) -> None:
    """Draw all queries, shared out to processes."""
    _, train, valid, test = parts_of(given.name, given.folder)
    given.queries.mkdir(parents=True, exist_ok=True)
    # The published queries of NELL995 have at most 80 hard answers.
    most = 80 if "nell" in given.name else 100
    _SNAPSHOTS["valid"] = snapshot_of(train), valid
    _SNAPSHOTS["test"] = snapshot_of(train + valid), test
    tasks = []
    for split, n in (("valid", given.n // 2), ("test", given.n)):
        for part in range(PARTS):
            for needed, kind in [("all", kind) for kind in HARD] + [("any", kind) for kind in KINDS]:
                many = 5000 if kind == "1p" and given.n >= 200 else n
                out = str(given.queries / f"{split}.{needed}.{kind}.{part}.jsonl")
                tasks.append((split, kind, needed, -(-many // PARTS), most, 10 * part + (split == "test"), out))
    # What takes long first, and test queries, and all kinds before more of each.
    tasks.sort(key=lambda task: (task[6].split(".")[-2], task[0] != "test"))
    with multiprocessing.get_context("fork").Pool(given.processes) as pool:
        for line in pool.imap_unordered(_drawn, tasks, chunksize=1):
            told("drawn", given.name, line)
    (given.queries / "done").write_text("")


# -- rules in other processes ----------------------------------------------------------------------

_RULES: list[Rules] = []
_FROM: list[Any] = []


def _ruled(task: tuple[int, list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    key, heads = task
    if not _RULES:
        _RULES.append(Rules.load(_FROM[0], _FROM[1]))
    rules = _RULES[0]
    m = len(rules.relations)
    offsets, ids, values = rules.rows(np.array(heads, np.int64), key % m, inverse=key >= m)
    return offsets, ids.astype(np.int32), values


# -- training --------------------------------------------------------------------------------------


def trained(torch: Any, edges: Edges, options: dict[str, Any], device: str, look: Any, until: float) -> tuple[Any, Any, list[Any]]:
    """ComplEx with N3 and relation prediction: each edge, in both directions, against all entities; Adagrad. Returns
    both tables and the ranking at each look.
    """
    n, m, k = len(edges.entities), len(edges.relations), options["rank"]
    batch, rate, n3, weight = options["batch"], options["rate"], options["n3"], options["predict_relation"]
    h, r, t = (torch.from_numpy(np.ascontiguousarray(column)).to(device) for column in edges.triples.T)
    both = torch.stack([torch.cat([h, t]), torch.cat([r, r + m]), torch.cat([t, h])])
    made = torch.Generator(device=device).manual_seed(options["seed"])
    tables = [torch.randn(rows, 2 * k, device=device, generator=made) * 1e-3 for rows in (n, 2 * m)]
    moved = [torch.zeros_like(table) for table in tables]
    e, w = tables
    size = min(batch, both.shape[1])
    now = torch.zeros(3, size, dtype=torch.int64, device=device)
    total = torch.zeros((), device=device)
    places = torch.arange(size, device=device)

    def halves(x: Any) -> Any:
        return x[:, :k], x[:, k:]

    def step() -> None:
        hi, ri, ti = now[0], now[1], now[2]
        head, relation, tail = e[hi], w[ri], e[ti]
        (a, b), (c, d), (u, v) = halves(head), halves(relation), halves(tail)
        asked = torch.cat([a * c - b * d, a * d + b * c], 1)
        scores = asked @ e.T
        right = scores[places, ti]
        top = scores.amax(1, keepdim=True)
        scores.sub_(top).exp_()
        sums = scores.sum(1, keepdim=True)
        total.add_((sums.log() + top).sum() - right.sum())
        scores.mul_(1 / (sums * size))
        scores[places, ti] -= 1 / size
        d_asked, d_e = scores @ e, scores.T @ asked
        x, y = halves(d_asked)
        d_head = torch.cat([x * c + y * d, y * c - x * d], 1)
        d_relation = torch.cat([x * a + y * b, y * a - x * b], 1)
        d_tail = (3 * n3 / size) * tail * torch.cat([(u * u + v * v).sqrt()] * 2, 1)
        d_head += (3 * n3 / size) * head * torch.cat([(a * a + b * b).sqrt()] * 2, 1)
        d_relation += (3 * n3 / size) * relation * torch.cat([(c * c + d * d).sqrt()] * 2, 1)
        if weight:
            pair = torch.cat([a * u + b * v, a * v - b * u], 1)
            of = torch.softmax(pair @ w.T, 1)
            of[places, ri] -= 1
            of.mul_(weight / size)
            x, y = halves(of @ w)
            d_w = of.T @ pair
            d_head += torch.cat([x * u + y * v, x * v - y * u], 1)
            d_tail += torch.cat([x * a - y * b, x * b + y * a], 1)
        else:
            d_w = torch.zeros_like(w)
        d_e.index_add_(0, hi, d_head).index_add_(0, ti, d_tail)
        d_w.index_add_(0, ri, d_relation)
        for table, sum_, gradient in ((e, moved[0], d_e), (w, moved[1], d_w)):
            sum_.addcmul_(gradient, gradient)
            table.addcdiv_(gradient, sum_.sqrt().add_(1e-10), value=-rate)

    run = step
    if device == "cuda":
        kept = [table.clone() for table in (*tables, *moved)]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        for table, old in zip((*tables, *moved), kept, strict=True):
            table.copy_(old)
        del kept
        run = graph.replay
    figures = []
    for epoch in range(1, options["epochs"] + 1):
        total.zero_()
        order = torch.randperm(both.shape[1], device=device, generator=made)
        for begin in range(0, both.shape[1] - size + 1, size):
            now.copy_(both[:, order[begin : begin + size]])
            run()
        late = time.perf_counter() - BEGIN > until
        if epoch % options["every"] == 0 or epoch in (1, options["epochs"]) or late:
            figures.append(
                {
                    "epoch": epoch,
                    "loss": float(total) / both.shape[1],
                    "mrr": look(e, w),
                    "at": round(time.perf_counter() - BEGIN, 1),
                }
            )
            told("epoch", figures[-1])
        if late:
            break
    return e, w, figures


# -- scores ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class How:
    """How edges are scored and joined. `norm`: a softmax over all entities, or over those that the graph lacks
    ("missing"); `price` multiplies scores of predicted edges, which `odds` takes as odds, so that none is cut off at 1;
    `rules` is the weight of the rules, "each" that of each relation; `ruled` the values of a variable that rules are
    asked for; `values` the most values of a variable.
    """

    epsilon: float = 2e-4
    norm: str = "all"
    price: float = 1.0
    odds: bool = False
    rules: Any = 0.0
    join: str = "max"
    observed: str = "one"
    scores: str = "softmax"
    values: int = 2048
    ruled: int = 12
    alpha: float = 1.0


class Answering:
    """Scores of all entities for queries without anti-projections, many queries of one shape at a time."""

    def __init__(self, torch: Any, edges: Edges, device: str, pool: Any) -> None:
        self.torch, self.edges, self.device, self.pool = torch, edges, device, pool
        self.n, self.m = len(edges.entities), len(edges.relations)
        self.known = self.looked_up(edges.triples)
        self.e: Any = None
        self.w: Any = None
        self.kept: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self.weights = torch.zeros(2 * self.m, device=device)
        self.slots = -1

    def looked_up(self, triples: np.ndarray) -> tuple[Any, Any, Any]:
        """The tails of each (key, head), key being a relation, or an inverse after them."""
        h, r, t = triples.T
        key = np.concatenate([r, r + self.m]) * self.n + np.concatenate([h, t])
        pairs = np.unique(key * self.n + np.concatenate([t, h]))
        keys, begin = np.unique(pairs // self.n, return_index=True)
        there = [self.torch.from_numpy(one).to(self.device) for one in (keys, np.append(begin, len(pairs)), pairs % self.n)]
        return there[0], there[1], there[2]

    def tails(self, known: tuple[Any, Any, Any], keys: Any, heads: Any) -> tuple[Any, Any, Any]:
        """Of each question: the row and the entity of each of its tails, and how many there are."""
        torch = self.torch
        names, offsets, items = known
        wanted = keys * self.n + heads
        at = torch.searchsorted(names, wanted).clamp(max=len(names) - 1)
        there = names[at] == wanted
        begin = torch.where(there, offsets[at], 0)
        count = torch.where(there, offsets[at + 1], 0) - begin
        row = torch.repeat_interleave(torch.arange(len(keys), device=self.device), count)
        inner = torch.arange(len(row), device=self.device) - torch.repeat_interleave(count.cumsum(0) - count, count)
        return row, items[begin[row] + inner], count

    def raw(self, keys: Any, heads: Any) -> Any:
        torch = self.torch
        half = self.e.shape[1] // 2
        head, relation = self.e[heads], self.w[keys]
        a, b, c, d = head[:, :half], head[:, half:], relation[:, :half], relation[:, half:]
        return torch.cat([a * c - b * d, a * d + b * c], 1) @ self.e.T

    def fetch(self, wanted: list[tuple[int, int]]) -> None:
        """Have rows of rules worked out by the other processes."""
        new = sorted(set(wanted) - self.kept.keys())
        if not new or self.pool is None:
            return
        tasks: list[tuple[int, list[int]]] = []
        for key, head in new:
            if tasks and tasks[-1][0] == key and len(tasks[-1][1]) < 32:
                tasks[-1][1].append(head)
            else:
                tasks.append((key, [head]))
        for (key, heads), (offsets, ids, values) in zip(tasks, self.pool.imap(_ruled, tasks, chunksize=2), strict=True):
            for place, head in enumerate(heads):
                low, high = offsets[place], offsets[place + 1]
                self.kept[key, head] = ids[low:high], values[low:high]

    def rules(self, keys: Any, heads: Any) -> tuple[Any, Any]:
        """Scores of rules, MIN_RULES where there is none; and which rows were fetched."""
        torch = self.torch
        rows = [self.kept.get(pair) for pair in zip(keys.tolist(), heads.tolist(), strict=True)]
        there = torch.tensor([row is not None for row in rows], device=self.device)
        dense = torch.full((len(rows), self.n), MIN_RULES, device=self.device)
        parts = [(place, row) for place, row in enumerate(rows) if row is not None and len(row[0])]
        if parts:
            ids = torch.from_numpy(np.concatenate([row[0] for _, row in parts]).astype(np.int64)).to(self.device)
            values = torch.from_numpy(np.concatenate([row[1] for _, row in parts])).to(self.device)
            at = np.repeat([place for place, _ in parts], [len(row[0]) for _, row in parts])
            dense[torch.from_numpy(at).to(self.device), ids] = values.clamp(min=MIN_RULES)
        return dense, there

    def rows(self, keys: Any, heads: Any, how: How) -> Any:
        """The scores of all entities for each question."""
        torch = self.torch
        raw = self.raw(keys, heads)
        row, item, count = self.tails(self.known, keys, heads)
        if how.scores == "sigmoid":
            scores = torch.sigmoid(raw)
        elif how.scores == "range":
            low, high = raw.amin(1, keepdim=True), raw.amax(1, keepdim=True)
            scores = ((raw - low) / (high - low)).clamp(max=MAX_SCORE)
        else:
            if how.norm == "missing":
                raw[row, item] = -torch.inf
            logs = raw - torch.logsumexp(raw, 1, keepdim=True) + count.clamp(min=1).log()[:, None]
            if how.rules:
                weight = self.weights[keys][:, None] if how.rules == "each" else torch.full_like(logs[:, :1], how.rules)
                ruled, there = self.rules(keys, heads)
                weight = weight * there[:, None]
                logs = (1 - weight) * logs.clamp(min=float(np.log(MIN_MODEL))) + weight * ruled.log()
            scores = (logs + float(np.log(how.price))).exp()
            scores = (scores / (1 + scores) if how.odds else scores).clamp(max=MAX_SCORE)
            scores[scores < how.epsilon] = 0
        if how.observed == "one":
            scores[row, item] = 1
        elif how.observed == "none":
            scores[row, item] = 0
        return scores

    def of(self, trees: Sequence[Tree], how: How) -> Any:
        """The scores of all entities for queries of one shape, shape (queries, entities)."""
        torch = self.torch
        first = trees[0]
        if isinstance(first, Projection):
            assert not any(tree.anti for tree in trees)  # type: ignore[attr-defined]
            keys = [self.edges.relation_numbers[tree.relation] + self.m * tree.inverse for tree in trees]  # type: ignore[attr-defined]
            below = [tree.of for tree in trees]  # type: ignore[attr-defined]
            if isinstance(first.of, Anchor):
                heads = [self.edges.entity_numbers[one.name] for one in below]
                if how.rules:
                    self.fetch(list(zip(keys, heads, strict=True)))
                every = torch.tensor([keys, heads], device=self.device)
                return torch.cat([self.rows(*every[:, at : at + 256], how) for at in range(0, len(keys), 256)]).double()
            vectors = self.of(below, how)
            result = torch.empty_like(vectors)
            best = []
            for vector in vectors:
                many = min(how.values, int((vector > 0).sum()))
                best.append(torch.topk(vector, many) if many else None)
            if how.rules:
                self.fetch(
                    [
                        (key, head)
                        for key, one in zip(keys, best, strict=True)
                        if one is not None
                        for head in one.indices[: how.ruled].tolist()
                    ]
                )
            for place, (key, one) in enumerate(zip(keys, best, strict=True)):
                joined = torch.zeros(self.n, dtype=torch.float64, device=self.device)
                for begin in range(0, 0 if one is None else len(one.indices), 1024):
                    some, values = one.indices[begin : begin + 1024], one.values[begin : begin + 1024]
                    if begin and how.rules:
                        rows = self.rows(torch.full_like(some, key), some, replace(how, rules=0.0))
                    else:
                        rows = self.rows(torch.full_like(some, key), some, how)
                    weighted = rows.mul_(values[:, None].float())
                    joined = torch.maximum(joined, weighted.amax(0).double()) if how.join == "max" else joined + weighted.sum(0)
                result[place] = joined
            return result
        if isinstance(first, Intersection):
            parts = [self.of([tree.parts[at] for tree in trees], how) for at in range(len(first.parts))]  # type: ignore[attr-defined]
            return torch.stack(parts).prod(0)
        if isinstance(first, Union):
            parts = [self.of([tree.parts[at] for tree in trees], how) for at in range(len(first.parts))]  # type: ignore[attr-defined]
            return 1 - torch.stack([1 - part for part in parts]).prod(0)
        assert isinstance(first, Complement)
        inner = self.of([tree.part for tree in trees], how)  # type: ignore[attr-defined]
        return torch.where(inner >= 1, 0.0, 1 - (how.alpha * inner).clamp(max=1))

    def ranks(self, cases: Sequence[LogicCase], how: How) -> list[float]:
        """The mean reciprocal rank of the hard answers of each query."""
        result = [0.0] * len(cases)
        shapes: dict[str, list[int]] = {}
        trees = [case.tree() for case in cases]
        for at, tree in enumerate(trees):
            shapes.setdefault(_shape(tree), []).append(at)
        for group in shapes.values():
            for begin in range(0, len(group), 250):
                part = group[begin : begin + 250]
                for at, scores in zip(part, self.of([trees[at] for at in part], how), strict=True):
                    result[at] = self.reciprocal(scores, cases[at])
        return result

    def reciprocal(self, scores: Any, case: LogicCase) -> float:
        hard, easy = (
            self.torch.tensor([self.edges.entity_numbers[one] for one in part], dtype=self.torch.int64, device=self.device)
            for part in (case.hard, case.easy)
        )
        mine = scores[hard]
        scores = scores.clone()
        scores[hard] = scores[easy] = -1.0
        greater = (scores[None] > mine[:, None]).sum(1)
        equal = (scores[None] == mine[:, None]).sum(1)
        return float((1 / (1 + greater + equal / 2)).mean())


def _shape(tree: Tree) -> str:
    if isinstance(tree, Projection):
        return f"p({_shape(tree.of)})"
    if isinstance(tree, (Intersection, Union)):
        return f"{type(tree).__name__}({','.join(map(_shape, tree.parts))})"
    return f"n({_shape(tree.part)})" if isinstance(tree, Complement) else "a"


# -- links -----------------------------------------------------------------------------------------


class Ranked:
    """Filtered reciprocal ranks of edges from both ends."""

    def __init__(self, answering: Answering, every: np.ndarray) -> None:
        self.answering, self.every = answering, answering.looked_up(every)

    def sides(self, triples: np.ndarray) -> tuple[Any, Any, Any]:
        torch, m = self.answering.torch, self.answering.m
        h, r, t = (torch.from_numpy(np.ascontiguousarray(column)).to(self.answering.device) for column in triples.T)
        return torch.cat([r, r + m]), torch.cat([h, t]), torch.cat([t, h])

    def of(self, triples: np.ndarray, score: Any) -> Any:
        """By `score` of (keys, heads), which gives one matrix or several: shape (edges * 2, matrices)."""
        torch = self.answering.torch
        keys, heads, tails = self.sides(triples)
        order = torch.argsort(keys * self.answering.n + heads)
        keys, heads, tails = keys[order], heads[order], tails[order]
        found = []
        for begin in range(0, len(keys), 512):
            part = slice(begin, begin + 512)
            row, item, _ = self.answering.tails(self.every, keys[part], heads[part])
            columns = []
            for scores in score(keys[part], heads[part]):
                mine = scores.gather(1, tails[part, None])
                scores[row, item] = -torch.inf
                columns.append(1 / (1 + (scores > mine).sum(1) + (scores == mine).sum(1) / 2))
            found.append(torch.stack(columns, 1))
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=order.device)
        return torch.cat(found)[back]


def figures_of(reciprocal: Any) -> dict[str, float]:
    ranks = 1 / reciprocal
    return {
        "mrr": float(reciprocal.mean()),
        "hits1": float((ranks <= 1).float().mean()),
        "hits10": float((ranks <= 10).float().mean()),
        "ranks": len(ranks),
    }


# -- all of it -------------------------------------------------------------------------------------


def cases_of(given: argparse.Namespace, split: str, needed: str, kinds: Sequence[str], most: int) -> dict[str, list[LogicCase]]:
    found = {}
    for kind in kinds:
        files = sorted(given.queries.glob(f"{split}.{needed}.{kind}.*.jsonl"))
        cases = {repr(case.query): case for file in files for case in read_cases(file)}
        found[kind] = list(cases.values())[:most]
    return found


def ask(given: argparse.Namespace) -> None:
    edges, _, valid, test = parts_of(given.name, given.folder)
    # Before CUDA is there; the file of rules may come later.
    _FROM[:] = [given.rules, edges]
    pool = multiprocessing.get_context("fork").Pool(given.processes) if given.rules else None
    told("begun", len(edges.triples))
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    results: dict[str, Any] = {"name": given.name, "options": json.loads(given.options), "seconds": {}}
    given.out.mkdir(parents=True, exist_ok=True)

    def keep() -> None:
        (given.out / f"{given.name}.json").write_text(json.dumps(results, indent=1), "utf-8")

    answering = Answering(torch, edges, device, pool)
    held = [edges.numbered(part).triples for part in (valid, test)]
    ranked = Ranked(answering, np.concatenate([edges.triples, *held]))
    some = held[0][np.random.default_rng(1).permutation(len(held[0]))[:2000]]

    def look(e: Any, w: Any) -> float:
        answering.e, answering.w = e, w
        return float(ranked.of(some, lambda keys, heads: [answering.raw(keys, heads)]).mean())

    begin = time.perf_counter()
    e, w, results["epochs"] = trained(torch, edges, results["options"], device, look, given.train_until)
    results["seconds"]["training"] = round(time.perf_counter() - begin, 1)
    answering.e, answering.w = e, w
    torch.backends.cuda.matmul.allow_tf32 = False
    results["test"] = figures_of(ranked.of(held[1], lambda keys, heads: [answering.raw(keys, heads)])[:, 0])
    told("test", results["test"])
    keep()
    if given.home:
        home(torch, answering, ranked, held[1], given.out / given.name, results)
        keep()
    torch.backends.cuda.matmul.allow_tf32 = True
    while not (given.queries / "done").exists() and time.perf_counter() - BEGIN < given.wait_until:
        time.sleep(0.5)
    told("queries are there")
    conformal(torch, answering, given, results, How(epsilon=0.0))
    keep()

    def prepare() -> bool:
        while given.rules and not given.rules.exists() and time.perf_counter() - BEGIN < given.rules_until:
            time.sleep(0.5)
        if pool is None or not given.rules.exists():
            return False
        mixed(torch, answering, ranked, held, results)
        keep()
        conformal(torch, answering, given, results, How(epsilon=0.0, rules="each"))
        keep()
        return True

    logic(answering, given, results, keep, prepare)
    told("done")


def home(torch: Any, answering: Answering, ranked: Ranked, test: np.ndarray, out: Path, results: dict[str, Any]) -> None:
    """Write the vectors as whole numbers of 8 bits with a scale each, and rank by them."""
    e, w = answering.e, answering.w
    rounded = []
    for table in (e, w):
        scale = table.abs().amax(1, keepdim=True) / 127
        rounded.append(((table / scale).round().clamp(-127, 127).to(torch.int8), scale))
    answering.e, answering.w = (whole.float() * scale for whole, scale in rounded)
    results["test of rounded vectors"] = figures_of(ranked.of(test, lambda keys, heads: [answering.raw(keys, heads)])[:, 0])
    told("rounded", results["test of rounded vectors"])
    answering.e, answering.w = e, w
    size = -(-len(e) // 2)
    for part in (0, 1):
        (whole, scale), (relations, theirs) = rounded
        arrays = {
            "entities": whole[part * size : (part + 1) * size].cpu().numpy(),
            "scale": scale[part * size : (part + 1) * size].cpu().numpy(),
        }
        if part:
            arrays |= {"relations": relations.cpu().numpy(), "relation_scale": theirs.cpu().numpy()}
        np.savez(f"{out}.{part}.npz", **arrays)


def mixed(torch: Any, answering: Answering, ranked: Ranked, held: list[np.ndarray], results: dict[str, Any]) -> None:
    """The weight of rules for each relation and direction by validation edges; test edges by it."""
    begin = time.perf_counter()
    m = answering.m
    rng = np.random.default_rng(0)
    keys = np.concatenate([held[0][:, 1], held[0][:, 1] + m])
    heads = np.concatenate([held[0][:, 0], held[0][:, 2]])
    tails = np.concatenate([held[0][:, 2], held[0][:, 0]])
    order = rng.permutation(len(keys))
    order = order[np.argsort(keys[order], kind="stable")]
    starts = np.searchsorted(keys[order], np.arange(2 * m))
    order = order[np.arange(len(order)) - starts[keys[order]] < 60]
    chosen = keys[order]
    some = np.stack(
        [np.where(chosen < m, heads[order], tails[order]), chosen % m, np.where(chosen < m, tails[order], heads[order])], 1
    )
    told("weights by", len(some), "edges; test edges", len(held[1]))
    test_keys, test_heads, _ = ranked.sides(held[1])
    answering.fetch(list(zip(chosen.tolist(), heads[order].tolist(), strict=True)))
    told("validation rows of rules")
    answering.fetch(list(zip(test_keys.tolist(), test_heads.tolist(), strict=True)))
    told("test rows of rules", len(answering.kept))
    results["seconds"]["rows of rules"] = round(time.perf_counter() - begin, 1)

    def every(keys: Any, heads: Any) -> Any:
        known = answering.raw(keys, heads)
        _, _, count = answering.tails(answering.known, keys, heads)
        logs = (known - torch.logsumexp(known, 1, keepdim=True) + count.clamp(min=1).log()[:, None]).clamp(
            max=float(np.log(MAX_SCORE))
        )
        ruled, _ = answering.rules(keys, heads)
        for weight in WEIGHTS:
            if weight == 0.0:
                yield logs.clone()
            elif weight == 1.0:
                yield torch.where(ruled <= MIN_RULES, 0.0, ruled)
            else:
                yield (1 - weight) * logs.clamp(min=float(np.log(MIN_MODEL))) + weight * ruled.log()

    both = ranked.of(some, every)
    # Each validation edge was drawn for one of its directions.
    mine = torch.from_numpy(chosen >= m).to(answering.device)
    half = len(some)
    found = torch.where(mine[:, None], both[half:], both[:half]).double()
    key = torch.from_numpy(chosen).to(answering.device)
    totals = torch.zeros(2 * m, len(WEIGHTS), dtype=torch.float64, device=answering.device).index_add_(0, key, found)
    best = (totals + 5 * found.mean(0)).argmax(1)
    answering.weights = torch.tensor(WEIGHTS, device=answering.device)[best]
    tested = ranked.of(held[1], every)
    results["test by weight of rules"] = {str(weight): figures_of(tested[:, at]) for at, weight in enumerate(WEIGHTS)}
    results["test mixed"] = figures_of(tested.gather(1, best[test_keys][:, None])[:, 0])
    results["weights"] = torch.bincount(best, minlength=len(WEIGHTS)).tolist()
    for name in ("test by weight of rules", "test mixed", "weights"):
        told(name, results[name])


def conformal(torch: Any, answering: Answering, given: argparse.Namespace, results: dict[str, Any], how: How) -> None:
    """Thresholds by one missing answer of each validation query, and what they keep of the test queries."""
    rng = np.random.default_rng(3)
    found = results.setdefault("sets", {}).setdefault(str(how.rules), {})

    def looked(cases: list[LogicCase]) -> Any:
        for begin in range(0, len(cases), 200):
            part = cases[begin : begin + 200]
            for case, scores in zip(part, answering.of([one.tree() for one in part], how), strict=True):
                hard = torch.tensor([answering.edges.entity_numbers[one] for one in case.hard], device=answering.device)
                yield case, scores, hard

    for kind in ("1p", "2i", "3i"):
        valid, test = (cases_of(given, split, "any", [kind], 5000)[kind] for split in ("valid", "test"))
        if not valid or not test:
            continue
        least = np.sort([float(scores[hard[int(rng.integers(len(hard)))]]) for _, scores, hard in looked(valid)])
        for share in (0.5, 0.8, 0.9, 0.95):
            at = int(np.floor(round((len(least) + 1) * (1 - share), 9)))
            found[f"{kind} {share}"] = {
                "threshold": float(least[at - 1]) if at else 0.0,
                "kept": [],
                "sizes": [],
                "calibrated": len(least),
            }
        for _, scores, hard in looked(test):
            predicted = scores[scores < 1]
            for share in (0.5, 0.8, 0.9, 0.95):
                row = found[f"{kind} {share}"]
                row["kept"].append((scores[hard] >= row["threshold"]).float().mean())
                row["sizes"].append((predicted >= row["threshold"]).sum())
        for share in (0.5, 0.8, 0.9, 0.95):
            row = found[f"{kind} {share}"]
            kept, sizes = torch.stack(row["kept"]).cpu().numpy(), torch.stack(row["sizes"]).cpu().numpy()
            row |= {
                "kept": float(kept.mean()),
                "error": float(kept.std() / len(kept) ** 0.5),
                "sizes": np.percentile(sizes, [25, 50, 75]).tolist(),
                "counted": len(kept),
            }
            told("set", how.rules, kind, share, row)


def logic(answering: Answering, given: argparse.Namespace, results: dict[str, Any], keep: Any, prepare: Any) -> None:
    """Choose settings on validation queries, and answer the test queries by them."""
    found = results.setdefault("logic", [])

    def asked(title: str, of: str, cases: dict[str, list[LogicCase]], how: How) -> dict[str, float]:
        begin = time.perf_counter()
        figures, errors = {}, {}
        for kind, part in cases.items():
            if not part or time.perf_counter() - BEGIN > given.until:
                continue
            ranks = np.array(answering.ranks(part, how))
            figures[kind], errors[kind] = 100 * float(ranks.mean()), 100 * float(ranks.std() / len(ranks) ** 0.5)
        means = {
            name: round(float(np.mean([figures[kind] for kind in kinds])), 2)
            for name, kinds in (("avg_p", POSITIVE), ("avg_n", NEGATIVE), ("avg_hard", HARD))
            if all(kind in figures for kind in kinds)
        }
        found.append(
            {
                "title": title,
                "of": of,
                "how": asdict(how),
                "mrr": figures,
                "error": errors,
                "queries": {kind: len(part) for kind, part in cases.items()},
                **means,
                "seconds": round(time.perf_counter() - begin, 1),
            }
        )
        told(title, of, means, {kind: round(value, 1) for kind, value in figures.items()}, found[-1]["seconds"], "s")
        keep()
        return figures

    def mean(figures: dict[str, float]) -> float:
        return float(np.mean(list(figures.values()))) if figures else 0.0

    few, many = given.tuned, given.asked
    valid = cases_of(given, "valid", "any", POSITIVE, few)
    negated = cases_of(given, "valid", "any", NEGATIVE, few)
    hard = cases_of(given, "valid", "all", HARD, few)
    tested = cases_of(given, "test", "any", KINDS, many)
    hardest = cases_of(given, "test", "all", HARD, many)
    quick = {kind: valid[kind] for kind in ("2i", "3i", "2p", "pi", "ip")}

    staged: dict[str, list[LogicCase]] = {kind: [] for kind in KINDS}
    for case in read_cases(given.staged, paired=True) if given.staged else ():
        staged[case.kind].append(case)

    # Methods of the literature first.
    qto = How()
    asked("QTO", "valid", quick, qto)
    asked("QTO", "valid hard", hard, qto)
    alphas = {alpha: mean(asked(f"QTO alpha {alpha}", "valid", negated, replace(qto, alpha=alpha))) for alpha in (1.0, 3.0, 6.0)}
    asked("QTO", "test", tested, replace(qto, alpha=max(alphas, key=alphas.__getitem__)))
    asked("QTO", "test hard", hardest, qto)
    asked("QTO", "staged", staged, qto)
    for title, observed in (("CQD", "model"), ("CQD-Hybrid", "one")):
        best: dict[str, tuple[float, How]] = {}
        for scores in ("sigmoid", "range"):
            for values in (8, 64):
                how = How(0.0, observed=observed, scores=scores, values=values)
                for kind, value in asked(f"{title} {scores} {values}", "valid hard", hard, how).items():
                    best[kind] = max(best.get(kind, (-1.0, how)), (value, how), key=lambda one: one[0])
        for kind, (_, how) in best.items():
            asked(title, "test hard", {kind: hardest[kind]}, how)
    # Ours: the price of a missing edge, what scores are normalised by, and rules.
    tried: dict[How, tuple[float, float]] = {}

    def tune(how: How) -> None:
        if how not in tried and time.perf_counter() - BEGIN < given.tune_until:
            tried[how] = mean(asked("ours", "valid", quick, how)), mean(asked("ours", "valid hard", hard, how))

    settings = (("all", False, 1.0), ("all", True, 5.0), ("all", True, 30.0), ("missing", True, 1.0), ("missing", True, 5.0))
    for weight in (0.0, "each", 0.5, 0.3):
        if weight == "each" and not (given.rules and prepare()):
            break
        for norm, odds, price in settings:
            tune(How(norm=norm, odds=odds, price=price, rules=weight))
    for title, worth in (("validation queries", (1, 0)), ("both", (1, 1)), ("hard validation queries", (0, 1))):
        how = max(tried, key=lambda one, worth=worth: float(np.dot(tried[one], worth)), default=qto)
        told("by", title, how, tried.get(how))
        asked(f"ours, by {title}", "test hard", hardest, how)
        if worth[0]:
            asked(f"ours, by {title}", "test", tested, how)
            asked(f"ours, by {title}", "staged", staged, how)
    told("ends")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("draw", "ask"))
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--rules", type=Path)
    parser.add_argument("--staged", type=Path)
    parser.add_argument("--options", default="{}", help="of training, as JSON")
    parser.add_argument("--home", action="store_true", help="write rounded vectors")
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--tuned", type=int, default=100)
    parser.add_argument("--asked", type=int, default=500)
    parser.add_argument("--train-until", type=float, default=150)
    parser.add_argument("--tune-until", type=float, default=300)
    parser.add_argument("--wait-until", type=float, default=150)
    parser.add_argument("--rules-until", type=float, default=300)
    parser.add_argument("--until", type=float, default=500)
    given = parser.parse_args()
    draw(given) if given.what == "draw" else ask(given)


if __name__ == "__main__":
    main()
