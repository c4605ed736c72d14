"""Questions from graphs: the time for a thousand, and the kinds of ten thousand, compared with KQA Pro's.

    python benchmarks/generate.py --data DIR [--number N] [--many N] [--out DIR]

DIR has `oracle/kb.json` and `data`. Each graph is loaded and queried in its own process; CPU seconds are counted from
`Graph.generate` to its last question. KQA Pro's figures are those in the text of its paper (section 4.4, appendix G);
the bars of its figure 3 have no numbers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from machine import markdown, peak, resident, write

#: The graphs: what each is called, and where it is.
GRAPHS = (
    ("Wikidata with qualifiers", "oracle/kb.json"),
    ("MetaQA", "data/metaqa/kb.txt"),
    ("wd50k", "data/wd50k/derived_labelled_statements.tsv"),
    ("wikidata12k", "data/wikidata12k/train.txt"),
    ("Northwind, 11 tables", "data/lpg_northwind/import"),
)
#: What the paper tells of KQA Pro, in percent or as a mean, by the names of `Distribution.rows`.
PAPER = {
    ("kind", "SelectAmong"): 4.6,
    ("kind", "Count"): 11.5,
    ("hops", "1"): 26.3,
    ("hops", "2 to 4"): 69.0,
    ("hops", "5 or more"): 4.7,
    ("category", "Multi-hop"): 73.7,
    ("answers", "different"): 21.0,
    ("mean", "words of a question"): 14.95,
    ("mean", "steps of a program"): 4.79,
    ("mean", "words of its SPARQL"): 35.52,
}
SEED = 1


def measured(place: Path, number: int) -> dict[str, Any]:
    """What one graph takes: seconds of the processor with and without queries of servers, memory."""
    import condgraph
    from condgraph.questions import Distribution

    graph = condgraph.open("memory:")
    graph.load(place)
    list(graph.generate(3))  # imports
    before, told = resident(), {}
    for name, queries in (("with", True), ("without", False)):
        begin = time.process_time()
        found = Distribution(graph.generate(number, seed=SEED, queries=queries))
        told[name] = time.process_time() - begin
    return {
        **told,
        "made": found.questions,
        "choices": 100 * found.ten_choices / found.questions,
        "verify": 100 * found.kinds["Verify"] / found.questions,
        "before": before,
        "peak": peak(),
    }


def made_of(place: Path, number: int) -> dict[str, Any]:
    """The distribution of many questions over one graph."""
    import condgraph
    from condgraph.questions import Distribution

    graph = condgraph.open("memory:")
    graph.load(place)
    found = Distribution(graph.generate(number, seed=SEED))
    return {"questions": found.questions, "rows": found.rows()}


def apart(what: str, place: Path, number: int) -> dict[str, Any]:
    """What a function of this file gives in a process of its own."""
    print(f"{what}: {place.name} ...", file=sys.stderr)
    call = [sys.executable, __file__, "--in-process", what, str(place), str(number)]
    found: dict[str, Any] = json.loads(subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return found


def speed(data: Path, number: int) -> dict[str, Any]:
    """The table of seconds."""
    rows = []
    for name, place in GRAPHS:
        one = apart("measured", data / place, number)
        rows.append([name, one["made"], one["with"], one["without"], one["choices"], one["verify"], one["before"], one["peak"]])
    columns = ["graph", "questions", "CPU s", "CPU s without SPARQL and Cypher", "ten choices, %", "yes or no, %", "MB before"]
    return {
        "title": "Questions from a graph",
        "columns": [*columns, "MB at the peak"],
        "rows": rows,
        "notes": [
            "CPU seconds after the load, asking each program and each LLM query included.",
            "Questions with the answer yes or no have no ten choices. MetaQA has 9 relations, so that the third of its questions "
            "that asks for a relation has 9 choices.",
            "The peak is that of the process, with the load.",
        ],
    }


def beside_paper(data: Path, number: int) -> dict[str, Any]:
    """The table of shares."""
    found = apart("made_of", data / GRAPHS[0][1], number)
    rows: list[list[Any]] = []
    middle = sum(amount for what, name, amount in found["rows"] if what == "hops" and name in ("2", "3", "4"))
    for what, name, amount in [*found["rows"], ("hops", "2 to 4", middle)]:
        rows.append([what, name, PAPER.get((what, name)), amount if what == "mean" else 100 * amount])
    order = list(dict.fromkeys(row[0] for row in rows))
    return {
        "title": "Questions from a graph, compared with KQA Pro",
        "columns": ["what", "of", "KQA Pro, % or mean", "condgraph, % or mean"],
        "rows": sorted(rows, key=lambda row: order.index(row[0])),
        "notes": [
            f"{found['questions']} questions over 14,304 entities of Wikidata, seed {SEED}; hops are counted as the paper counts "
            "them: relations, attributes, qualifiers and comparisons.",
            "The shares of different answers do not compare, since a larger set (117,970 questions) repeats more answers. KQA "
            "Pro's words are people's paraphrases, ours are template words, and its SPARQL queries another layout. Its shares of 1 "
            "and of 2 to 4 hops follow from those that the paper states.",
        ],
    }


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("--data", type=Path, metavar="DIR")
    arguments.add_argument("--number", type=int, default=1_000, help="questions that are timed")
    arguments.add_argument("--many", type=int, default=10_000, help="questions whose shares are counted")
    arguments.add_argument("--out", type=Path, metavar="DIR")
    arguments.add_argument("--in-process", nargs=3, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.in_process:
        what, place, number = given.in_process
        print(json.dumps({"measured": measured, "made_of": made_of}[what](Path(place), int(number))))
        return
    if given.data is None:
        arguments.error("--data names the folder of data")
    results = [speed(given.data, given.number), beside_paper(given.data, given.many)]
    for result in results:
        result["command"] = "python benchmarks/generate.py --data DIR"
        print(markdown(result))
    print(write("generate", results, given.out), file=sys.stderr)


if __name__ == "__main__":
    main()
