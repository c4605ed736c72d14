"""How loading, opening and querying grow with the size of a graph: synthetic triples, clean columns and untidy
tables.

    python benchmarks/scale.py [--sizes 1 3 10] [--kinds triples columns untidy] [--folder DIR] [--out DIR]

Sizes are millions of statements. Each graph is generated, loaded through `condgraph.open(DIR).load(FILE)` in its own
process (so that the peak of memory is its own), opened again and queried. The data is drawn from a fixed seed and
means nothing: only growth is measured. DIR is a temporary folder by default; ten million statements take 1 GB there.
"""

from __future__ import annotations

import argparse
import calendar
import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from machine import markdown, median, peak, write

SEED = 20260917
KINDS = ("triples", "columns", "untidy")
RELATIONS, COLUMNS = 50, 10


# -- the data --------------------------------------------------------------------------------------


def triples(size: int, path: Path) -> None:
    """Tab-separated triples: five a subject, 50 relations, objects of very different frequency."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    draw = np.random.default_rng(SEED)
    entities = max(size // 5, 10)
    names = pa.array([f"entity {number}" for number in range(entities)])
    relations = pa.array([f"relation {number}" for number in range(RELATIONS)])
    # A power of a uniform draw: few objects stand in very many triples.
    objects = (entities * draw.random(size) ** 3).astype(np.int64)
    table = pa.table(
        {
            "head": names.take(pa.array(draw.integers(0, entities, size))),
            "relation": relations.take(pa.array(draw.integers(0, RELATIONS, size))),
            "tail": names.take(pa.array(objects)),
        }
    )
    options = arrow_csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    arrow_csv.write_csv(table, path, options)


def columns(size: int, path: Path) -> None:
    """A Parquet table of ten typed columns: texts, whole numbers, floats and days."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    draw = np.random.default_rng(SEED)
    rows = size // COLUMNS
    words = pa.array([f"word {number}" for number in range(5000)])
    days = draw.integers(-20_000, 20_000, (2, rows)).astype("int32")
    table = pa.table(
        {
            "name": pa.array([f"row name {number}" for number in range(rows)]),
            "class": words.take(pa.array(draw.integers(0, 20, rows))),
            "word": words.take(pa.array(draw.integers(0, 5000, rows))),
            "count": draw.integers(0, 1000, rows),
            "number": draw.integers(0, 10**9, rows),
            "height": np.round(draw.normal(170, 10, rows), 1),
            "share": draw.random(rows),
            "latitude": np.round(draw.uniform(-90, 90, rows), 5),
            "begun": pa.array(days[0], pa.date32()),
            "ended": pa.array(days[1], pa.date32()),
        }
    )
    parquet.write_table(table, path)


def untidy(size: int, path: Path) -> None:
    """A CSV table of ten columns of cells as people write them: separators, currencies, units,
    dates in words, footnotes, gaps.
    """
    import random

    dice = random.Random(SEED)
    months = [name for name in calendar.month_name if name]
    gaps = ("", "n/a", "-", "—")

    def row(number: int) -> list[str]:
        year, month, day = dice.randrange(1900, 2020), dice.choice(months), dice.randrange(1, 29)
        cells = [
            f"Name {number}",
            f"{dice.randrange(10**7):,}",
            f"${dice.randrange(10**6) / 100:,.2f}",
            f"{dice.randrange(150, 210)} cm",
            f"{month} {day}, {year}",
            f"{year}",
            f"{dice.randrange(1000) / 10}%",
            f"{dice.randrange(9)}:{dice.randrange(60):02d}:{dice.randrange(60):02d}",
            f"{dice.choice(months)} word {dice.randrange(2000)}",
            f"{dice.randrange(1, 400)}[{dice.randrange(1, 9)}]",
        ]
        if dice.random() < 0.1:
            cells[dice.randrange(1, COLUMNS)] = dice.choice(gaps)
        return cells

    header = ["Name", "Population", "Price", "Height", "Date", "Year", "Share", "Time", "Note", "Rank"]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(map(row, range(size // COLUMNS)))


MAKE = {"triples": (triples, "triples.tsv"), "columns": (columns, "columns.parquet"), "untidy": (untidy, "untidy.csv")}
#: Questions by kind: what they are called, and their program; {i} is another number each time.
QUESTIONS = {
    "triples": (
        ("one hop", 'Find("entity {i}") Relate("relation {r}", "forward") QueryName()'),
        ("two hops", 'Find("entity {i}") Relate("relation {r}", "backward") Relate("relation 7", "forward") Count()'),
        (
            "set and set",
            'Find("entity {r}") Relate("relation 1", "backward") Find("entity {s}") Relate("relation 2", "backward") And() Count()',
        ),
    ),
    "columns": (
        ("find, attribute", 'FindAll() FilterStr("name", "row name {i}") QueryAttr("height")'),
        ("range, count", 'FindAll() FilterNum("number", "{n}", "<") Count()'),
        ("class, largest", 'FindAll() FilterStr("class", "word {r}") SelectAmong("share", "largest")'),
    ),
    "untidy": (
        ("find, attribute", 'FindAll() FilterStr("Name", "Name {i}") QueryAttr("Rank")'),
        ("range, count", 'FindAll() FilterYear("Year", "{y}", "=") Count()'),
        ("set, largest", 'FindAll() FilterYear("Year", "{y}", "=") SelectAmong("Population", "largest")'),
    ),
}


# -- one graph, in a process of its own ------------------------------------------------------------


def load(file: Path, store: Path) -> dict[str, Any]:
    """Load a file; seconds, statements, and the peak of memory."""
    import condgraph
    import condgraph.loaders.recognise

    before = peak()
    begin, used = time.perf_counter(), time.process_time()
    report = condgraph.open(store).load(file)
    seconds, used = time.perf_counter() - begin, time.process_time() - used
    return {"seconds": seconds, "cpu": used, "statements": report.statements, "peak": peak(), "before": before}


def ask(kind: str, size: int, store: Path) -> dict[str, Any]:
    """Open and ask: milliseconds of opening (the first, and the median), of each question (median),
    and the memory then.
    """
    import random

    import condgraph

    openings = []
    for _ in range(20):
        begin = time.perf_counter()
        graph = condgraph.open(store)
        openings.append(time.perf_counter() - begin)
    dice = random.Random(SEED)
    found: dict[str, float] = {}
    for name, pattern in QUESTIONS[kind]:
        times = []
        for _ in range(60):
            program = pattern.format(
                i=dice.randrange(max(size // 10, 1)),
                r=dice.randrange(20),
                s=dice.randrange(20, 40),
                n=dice.randrange(10**6),
                y=dice.randrange(1900, 2020),
            )
            begin = time.perf_counter()
            graph.kopl(program, on_unknown="empty").texts  # noqa: B018 - the property does the work
            times.append(time.perf_counter() - begin)
        found[name] = median(times[10:]) * 1e3
    return {"first": openings[0] * 1e3, "open": median(openings) * 1e3, "questions": found, "peak": peak()}


def in_process(*words: str) -> dict[str, Any]:
    """Run this script for one step; what it printed."""
    done = subprocess.run([sys.executable, __file__, "--step", *words], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def step(words: list[str]) -> None:
    """What a process of its own does."""
    if words[0] == "load":
        print(json.dumps(load(Path(words[1]), Path(words[2]))))
    else:
        print(json.dumps(ask(words[1], int(words[2]), Path(words[3]))))


# -- all of it -------------------------------------------------------------------------------------


def measure(kind: str, millions: float, folder: Path) -> tuple[list[Any], dict[str, float]]:
    """One row of the table of loading, and the milliseconds of each question."""
    size = int(millions * 1e6)
    make, name = MAKE[kind]
    place = folder / f"{kind}-{millions:g}"
    place.mkdir(parents=True, exist_ok=True)
    file, store = place / name, place / "store"
    print(f"{kind}, {millions:g} million: making the data", file=sys.stderr)
    make(size, file)
    loaded = in_process("load", str(file), str(store))
    asked = in_process("ask", kind, str(size), str(store))
    stored = sum(path.stat().st_size for path in store.rglob("*") if path.is_file()) / 1e6
    row = [
        kind,
        loaded["statements"],
        loaded["seconds"],
        loaded["cpu"],
        round(loaded["statements"] / loaded["seconds"]),
        loaded["peak"] / 1e3,
        stored / 1e3,
        asked["first"],
        asked["open"],
    ]
    print(f"  {loaded['seconds']:.1f} s, {row[4]:,} statements/s, {row[5]:.2f} GB; {asked['questions']}", file=sys.stderr)
    file.unlink()
    return row, asked["questions"]


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("--sizes", type=float, nargs="+", default=[1, 3, 10], metavar="MILLIONS")
    arguments.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    arguments.add_argument("--folder", type=Path, metavar="DIR")
    arguments.add_argument("--out", type=Path, metavar="DIR")
    arguments.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.step:
        step(given.step)
        return
    rows, questions = [], []
    with tempfile.TemporaryDirectory() as temporary:
        for kind in given.kinds:
            times: dict[float, dict[str, float]] = {}
            for millions in given.sizes:
                row, times[millions] = measure(kind, millions, given.folder or Path(temporary))
                rows.append(row)
            for name, pattern in QUESTIONS[kind]:
                questions.append([kind, name, *(times[size][name] for size in given.sizes), f"`{pattern}`"])
    results = [
        {
            "title": "Scale: loading and opening",
            "columns": [
                "source",
                "statements",
                "load, s",
                "CPU, s",
                "statements/s",
                "peak, GB",
                "store, GB",
                "first open, ms",
                "open, ms",
            ],
            "rows": rows,
            "notes": [
                "A load reads the file, builds the store, writes it and syncs it. The peak is the memory of that process.",
                "CPU is the time that the process had a core.",
            ],
        },
        {
            "title": "Scale: asking",
            "columns": ["source", "question", *(f"{size:g} M, ms" for size in given.sizes), "program"],
            "rows": questions,
            "notes": ["The median of 50 queries, from text to texts, after ten that do not count. Letters stand for numbers."],
        },
    ]
    for result in results:
        result["command"] = "python benchmarks/scale.py"
        print(markdown(result))
    print(write("scale", results, given.out), file=sys.stderr)


if __name__ == "__main__":
    main()
