"""Groups, sums and wide tables over the rows of one CSV, compared with DuckDB with one thread over the same file,
already loaded.

    python benchmarks/sums.py [--rows 100000] [--times 5] [--out DIR]

CPU seconds of one query to its answer (the last row: to an Arrow table), the median of runs in turns. Each query
first runs once. The answers of both are compared.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import itertools
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import condgraph

sys.path.insert(0, str(Path(__file__).parent))
from machine import machine, markdown, write

SEED = 20261126
PROGRAM = "FindAll() FilterConcept(sales)"
#: What is asked, as a clause and as SQL; the answers have the same columns.
QUERIES = {
    "count and mean of groups": (
        "group by city show count(), mean(price) as mean order by city",
        "select city, count(*), avg(price) as mean from sales group by city order by city",
    ),
    "sum of a product in groups": (
        "group by city show sum(quantity * price) as total order by city",
        "select city, sum(quantity * price) as total from sales group by city order by city",
    ),
    "sum": ("show sum(price)", "select sum(price) from sales"),
    "median and largest of groups, filtered": (
        "where quantity > 10 group by product show median(price) as middle, max(quantity) as most order by product",
        "select product, median(price) as middle, max(quantity) as most from sales where quantity > 10 group by product order by 1",
    ),
    "distinct values in groups": (
        "group by city show count(distinct product) as products order by city",
        "select city, count(distinct product) as products from sales group by city order by city",
    ),
    "groups of days": (
        "group by day show count() order by day",
        "select day, count(*) from sales group by day order by day",
    ),
    "first five in order": (
        "show self, price order by price desc, self limit 5",
        "select sale, price from sales order by price desc, sale limit 5",
    ),
}
WIDE = ("show city, quantity, price", "select city, quantity, price from sales")


def write_sales(path: Path, rows: int) -> None:
    """Sales of 1,000 products in 200 cities, drawn from a fixed seed."""
    draw = random.Random(SEED)
    begin = datetime.date(2024, 1, 1)
    with path.open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["sale", "city", "product", "quantity", "price", "day"])
        for row in range(rows):
            day = begin + datetime.timedelta(draw.randrange(366))
            price = f"{draw.randrange(100, 100_000) / 100:.2f}"
            table.writerow(
                [f"s{row:07}", f"City {draw.randrange(200)}", f"P{draw.randrange(1000)}", draw.randrange(1, 50), price, day]
            )


def taken(call: Callable[[], Any]) -> float:
    """Processor seconds of a call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def same(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> bool:
    """Whether the rows are the same, numbers as nearly as sums of floats are."""
    pairs = zip(itertools.chain(*ours), itertools.chain(*theirs), strict=True)
    return list(map(len, ours)) == list(map(len, theirs)) and all(_equal(*pair) for pair in pairs)


def _equal(ours: Any, theirs: Any) -> bool:
    number = getattr(ours, "number", ours)
    if isinstance(number, int | float):
        return math.isclose(number, theirs, rel_tol=1e-9)
    return str(getattr(ours, "name", ours)) == str(theirs)


def main() -> None:
    """Measure, print, and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    graph, database = condgraph.open("memory:"), duckdb.connect(config={"threads": 1})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sales.csv"
        write_sales(path, given.rows)
        graph.load(path, key="sale", name="sales")
        database.execute(f"create table sales as select * from read_csv('{path}')")
    rows = []
    calls: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {}
    for name, (clause, sql) in QUERIES.items():
        ask = lambda clause=clause: graph.query(PROGRAM, table=clause).values  # noqa: E731
        fetch = lambda sql=sql: database.execute(sql).fetchall()  # noqa: E731
        if not same(ask(), fetch()):
            raise SystemExit(f"{name}: the answers differ")
        calls[name] = ask, fetch
    calls["three columns of all rows, to Arrow"] = (
        lambda: graph.query(PROGRAM, table=WIDE[0]).to_arrow(),
        lambda: database.execute(WIDE[1]).to_arrow_table(),
    )
    for name, (ask, fetch) in calls.items():
        ask(), fetch()
        pairs = [(taken(ask), taken(fetch)) for _ in range(given.times)]
        ours, theirs = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        rows.append([name, round(1000 * ours, 1), round(1000 * theirs, 1), round(ours / theirs, 1)])
    result = {
        "name": "sums",
        "title": "Tables: groups and sums in process",
        "command": f"python benchmarks/sums.py --rows {given.rows}",
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "columns": ["query", "condgraph, ms", "DuckDB, ms", "times DuckDB"],
        "rows": rows,
        "notes": [
            f"{given.rows:,} rows of six columns; DuckDB {duckdb.__version__} with one thread. CPU time of one query, the "
            "median of several in turns; both engines have loaded the table.",
            "condgraph's sums and means are exact, DuckDB's are sums of floats.",
        ],
    }
    print(markdown(result))
    write("sums", [result], given.out)


if __name__ == "__main__":
    main()
