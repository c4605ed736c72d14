"""Loading clean tables: CPU seconds of 200,000 rows of five columns (an id, a text, a whole number, a decimal, a
day), and of a folder of three such tables (420,000 rows), two of which have a reference instead of the text or the
id. It gives the cost of a row there compared with one of the single table, the ratio to another revision, the bytes
of the store of the single table, and, if kglite and pandas are installed, a table of 100,000 rows of seven columns
with a key compared with kglite.

    python benchmarks/tables.py [--rows 200000] [--times 3] [--before DIR] [--out DIR]

DIR of `--before` is a checkout of the other revision. Loads take turns, each in its own process that has loaded a
small table before; the least of each counts, for kglite the median of seven.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from machine import machine, markdown, write

SEED = 20261123
LOAD = """
import sys, time, condgraph
small, table = sys.argv[1:]
condgraph.open("memory:").load(small)
graph = condgraph.open("memory:")
begin = time.process_time()
graph.load(table)
print(time.process_time() - begin)
"""

#: The same with a key, and what kglite takes for the table: its days as texts, or read as days.
KEYED = LOAD.replace("(small)", '(small, key="key")').replace("(table)", '(table, key="key")')
KGLITE = """
import sys, time, kglite, pandas
def load(path):
    frame = pandas.read_csv(path, parse_dates=DAYS)
    kglite.KnowledgeGraph().add_nodes(frame, "Row", "key", "name")
small, table = sys.argv[1:]
load(small)
begin = time.process_time()
load(table)
print(time.process_time() - begin)
"""

STORE = """
import sys, condgraph
graph = condgraph.open(sys.argv[2])
graph.load(sys.argv[1])
print(graph.status().bytes)
"""


def write_table(path: Path, header: str, rows: int, first: Callable[[int], str]) -> Path:
    """A table of so many rows, drawn from a fixed seed; `first` gives the first two cells of a row."""
    draw = random.Random(SEED)
    begin = datetime.date(2000, 1, 1)
    with path.open("w") as stream:
        stream.write(f"{header},count,price,day\n")
        for row in range(rows):
            day = begin + datetime.timedelta(draw.randrange(8_000))
            price = draw.randrange(1_000_000) / 100
            stream.write(f"{first(row)},{draw.randrange(100_000)},{price:.2f},{day}\n")
    return path


def make(folder: Path, rows: int) -> tuple[Path, Path]:
    """A single table, and a folder of customers (a tenth as many), orders and lines of orders."""
    draw = random.Random(SEED + 1)
    tables = folder / "tables"
    tables.mkdir(parents=True)
    many = rows // 10
    write_table(tables / "customers.csv", "customerID,name", many, lambda row: f"C{row},customer {row}")
    write_table(tables / "orders.csv", "orderID,customerID", rows, lambda row: f"{10_000 + row},C{draw.randrange(many)}")
    write_table(
        tables / "lines.csv",
        "orderID,product",
        rows,
        lambda row: f"{10_000 + draw.randrange(rows)},product {draw.randrange(5_000)}",
    )
    single = write_table(folder / "table.csv", "id,text", rows, lambda row: f"item {row},text {draw.randrange(5_000)}")
    return single, tables


def write_keyed(path: Path, rows: int) -> Path:
    """A table with a key, two texts, two whole numbers, a decimal and a day."""
    draw = random.Random(SEED + 2)
    begin = datetime.date(2000, 1, 1)
    with path.open("w") as stream:
        stream.write("key,name,city,count,founded,price,day\n")
        for row in range(rows):
            day = begin + datetime.timedelta(draw.randrange(8_000))
            texts = f"K{row:06d},company {draw.randrange(1_000_000)},city {draw.randrange(3_000)}"
            numbers = f"{draw.randrange(50_000)},{draw.randrange(1900, 2020)},{draw.randrange(10_000_000) / 100}"
            stream.write(f"{texts},{numbers},{day}\n")
    return path


def beside_kglite(folder: Path, checkouts: dict[str, Path], times: int = 7) -> dict[str, Any]:
    """The table with a key in turns with kglite."""
    small, table = write_keyed(folder / "small.csv", 100), write_keyed(folder / "keyed.csv", 100_000)
    here = checkouts["this revision"]
    loads = {f"condgraph, {name}": (checkout, KEYED) for name, checkout in checkouts.items()}
    loads["kglite, days as texts"] = here, KGLITE.replace("DAYS", "False")
    loads["kglite, days"] = here, KGLITE.replace("DAYS", "['day']")
    taken: dict[str, list[float]] = {name: [] for name in loads}
    for _ in range(times):
        for name, (checkout, load) in loads.items():
            taken[name].append(seconds(checkout, small, table, load))
    medians = {name: statistics.median(of) for name, of in taken.items()}
    texts, days = list(medians.values())[-2:]
    return {
        "name": "keyed",
        "title": "Loading a table with a key compared with kglite",
        "columns": ["load", "processor, s", "least, s", "times kglite, days as texts", "times kglite, days"],
        "rows": [
            [name, round(of, 3), round(min(taken[name]), 3), round(of / texts, 2), round(of / days, 2)]
            for name, of in medians.items()
        ],
        "notes": [
            f"100,000 rows: a text key, two texts, two whole numbers, a decimal, a day; in memory, the median of {times} in turns.",
            f"kglite {importlib.metadata.version('kglite')} takes a frame of pandas {importlib.metadata.version('pandas')}, read "
            "from the same file; condgraph always reads days as days.",
        ],
    }


def seconds(checkout: Path, small: Path, table: Path, load: str = LOAD) -> float:
    """Processor seconds of one load by the code of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, "-c", load, str(small), str(table)],
        env=environment,
        cwd=small.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def stored(checkout: Path, table: Path) -> int:
    """Bytes of the store of a table, as the code of a checkout writes it."""
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [sys.executable, "-c", STORE, str(table), f"{place}/store"],
            env={**os.environ, "PYTHONPATH": str(checkout)},
            cwd=table.parent,
            capture_output=True,
            text=True,
            check=True,
        )
    return int(done.stdout)


def main() -> None:
    """Measure, print, and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    checkouts = {"this revision": Path(__file__).parent.parent}
    if given.before is not None:
        checkouts["the revision before"] = given.before.resolve()
    with tempfile.TemporaryDirectory() as folder:
        small, large = make(Path(folder) / "small", 100), make(Path(folder) / "large", given.rows)
        taken: dict[tuple[str, str], list[float]] = {}
        for _ in range(given.times):
            for name, checkout in checkouts.items():
                for what, before, source in zip(("a table", "a folder"), small, large, strict=True):
                    taken.setdefault((name, what), []).append(seconds(checkout, before, source))
        size = large[0].stat().st_size
        beside = [beside_kglite(Path(folder), checkouts)] if all(map(importlib.util.find_spec, ("kglite", "pandas"))) else []
        stores = [(name, stored(checkout, large[0])) for name, checkout in checkouts.items()]
    least = {key: min(all_of) for key, all_of in taken.items()}
    sizes = {"a table": given.rows, "a folder": given.rows * 2 + given.rows // 10}
    rows = []
    for (name, what), one in least.items():
        a_row, single = one / sizes[what], least[name, "a table"] / sizes["a table"]
        times = one / least["this revision", what]
        rows.append([name, what, sizes[what], round(one, 2), round(1e6 * a_row, 2), round(a_row / single, 2), round(times, 2)])
    result = {
        "name": "tables",
        "title": "Loading clean tables",
        "command": f"python benchmarks/tables.py --rows {given.rows}" + (" --before DIR" if given.before else ""),
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "columns": ["revision", "what", "rows", "processor, s", "a row, µs", "times a row of a table", "times this revision"],
        "rows": rows,
    }
    sizes_of = {key: result[key] for key in ("command", "date", "machine")} | {
        "name": "store",
        "title": "The store of a clean table",
        "columns": ["revision", "table, MB", "store, MB", "times the table"],
        "rows": [[name, round(size / 1e6, 2), round(of / 1e6, 2), round(of / size, 2)] for name, of in stores],
    }
    results = [result, sizes_of, *({key: result[key] for key in ("command", "date", "machine")} | one for one in beside)]
    for one in results:
        print(markdown(one))
    write("tables", results, given.out)


if __name__ == "__main__":
    main()
