"""Loading clean tables: processor seconds of 200,000 rows of five columns (an id, a text, a whole
number, a decimal, a day), and of a folder of three such tables of which two have a reference in the
place of the text or the id (420,000 rows): what a row costs there beside one of the single table,
and how many times as much another revision takes; and the bytes of the store of the single table.

    python benchmarks/tables.py [--rows 200000] [--times 3] [--before DIR] [--out DIR]

DIR of `--before` is a checkout of the other revision. Loads take turns, each in a process of its own
that has loaded a small table before; the least of each counts.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

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


def seconds(checkout: Path, small: Path, table: Path) -> float:
    """Processor seconds of one load by the code of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(small), str(table)],
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
    for one in (result, sizes_of):
        print(markdown(one))
    write("tables", [result, sizes_of], given.out)


if __name__ == "__main__":
    main()
