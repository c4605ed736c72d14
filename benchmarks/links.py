"""Link prediction models: how well small graphs are learned, and how well logical queries are answered.

    python benchmarks/links.py --triples NAME=DIR ... [--figures TITLE=FILE ... [--paper]] [--out DIR]

DIR has train.txt, valid.txt and test.txt: head, relation, tail, with tabs. FILE is the output of `condgraph evaluate
logic --format json`. Time is CPU time, of one thread if OPENBLAS_NUM_THREADS is 1.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from machine import machine

from condgraph.links.edges import Edges
from condgraph.links.ranks import rank_edges
from condgraph.links.train import TrainOptions, train
from condgraph.logic.evaluation.sampler import read_triples

#: Of QTO, Table 1, NELL995, MRR in percent.
PAPER = {
    "avg_p": 32.9, "avg_ood": 24.0, "avg_n": 12.9, "1p": 60.7, "2p": 24.1, "3p": 21.6, "2i": 42.5, "3i": 50.6, "pi": 31.3,
    "ip": 26.5, "2u": 20.4, "up": 17.9, "2in": 13.8, "3in": 17.9, "inp": 16.9, "pin": 9.9, "pni": 5.9,
}  # fmt: skip


def trained(name: str, folder: Path) -> list[Any]:
    """A row of the table: one graph, learned and tested."""
    edges = Edges.of(read_triples(folder / "train.txt"))
    valid, test = (edges.numbered(read_triples(folder / f"{part}.txt")) for part in ("valid", "test"))
    begin = time.process_time()
    found = train(edges, TrainOptions(rank=200, batch=50, n3=0.01, epochs=100, patience=5), valid=valid)
    spent = time.process_time() - begin
    tested = rank_edges(found.model, test, [edges, valid, test])
    return [
        name,
        len(edges.triples),
        found.epochs,
        round(spent, 1),
        round(tested.mrr, 4),
        round(tested.hits1, 3),
        round(tested.hits10, 3),
    ]


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", nargs="*", default=[])
    parser.add_argument("--figures", nargs="*", default=[])
    parser.add_argument("--paper", action="store_true", help="beside Table 1 of QTO, NELL995")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out")
    given = parser.parse_args()
    results: list[dict[str, Any]] = []
    if given.triples:
        rows = [trained(*(name, Path(folder))) for name, _, folder in (one.partition("=") for one in given.triples)]
        results.append(
            {
                "name": "links",
                "title": "Models of links: small graphs",
                "command": "python benchmarks/links.py --triples NAME=DIR ...",
                "columns": ["graph", "edges", "epochs", "processor, s", "test MRR", "Hits@1", "Hits@10"],
                "rows": rows,
                "notes": [
                    "ComplEx with N3, rank 200, all entities as rivals; filtered ranks from both ends, ties share their mean."
                ],
            }
        )
    for title, _, path in (one.partition("=") for one in given.figures):
        figures = json.loads(Path(path).read_text("utf-8"))
        about = ", ".join(f"{name} {value}" for name, value in figures["options"].items() if value is not None)
        results.append(
            {
                "name": "links",
                "title": title,
                "command": "condgraph evaluate logic -d STORE --held FILE -m MODEL --queries FILE --format json",
                "columns": [
                    "structure",
                    "queries",
                    "MRR, %",
                    "Hits@1, %",
                    "Hits@10, %",
                    "MRR by missing links, % (answers)",
                    "explained @1, @10, all, %",
                    "error of cardinality, %",
                    *(["QTO, MRR, %"] if given.paper else []),
                ],
                "rows": [_row(one, paper=given.paper) for one in figures["structures"]],
                "notes": [f"Options: {about}.", *figures.get("notes", ()), *figures.get("warnings", ())],
            }
        )
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "links.json").write_text(json.dumps({"machine": machine(), "results": results}, indent=1), "utf-8")


def _row(one: dict[str, Any], *, paper: bool) -> list[Any]:
    missing = "; ".join(f"{number}: {100 * part['mrr']:.1f} ({part['answers']})" for number, part in one["by_missing"].items())
    shares = [round(100 * one[name], 1) for name in ("mrr", "hits1", "hits10")]
    right = one["explained"]
    explained = ", ".join(f"{100 * right[name]:.0f}" for name in ("@1", "@10", "all")) if right else ""
    wrong = "" if one["mape"] is None else round(100 * one["mape"])
    theirs = [PAPER.get(one["structure"], "")] if paper else []
    return [one["structure"], one["queries"] or "", *shares, missing, explained, wrong, *theirs]


if __name__ == "__main__":
    main()
