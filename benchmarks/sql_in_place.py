"""Programs over existing tables in DuckDB, compared with SQL written by hand for them.

    python benchmarks/sql_in_place.py [--rows 100000] [--times 15] [--out DIR]

CPU milliseconds of one program to its texts, and of the SQL to its rows, the median of runs in turns; each run has
its own name or number. The answers of both are compared.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb

import condgraph

sys.path.insert(0, str(Path(__file__).parent))
from machine import machine, markdown, write
from sums import taken

#: Programs and the SQL for them, with a place for a number that is another one in each run.
QUERIES = {
    "names of a filter": (
        "FindAll() FilterConcept(customer) FilterStr(city, c{0}) QueryName()",
        "select distinct name from customer where city = 'c{0}'",
    ),
    "count of a filter by a number": (
        "FindAll() FilterConcept(purchase) FilterNum(amount, {0}, >) Count()",
        "select count(*) from purchase where amount > {0}",
    ),
    "count of a filter by a date": (
        'FindAll() FilterConcept(purchase) FilterDate(placed, "2024-03-{1:02}", <) Count()',
        "select count(*) from purchase where placed < date '2024-03-{1:02}'",
    ),
    "one hop from a name": (
        "Find(n{0}) Relate(buyer, backward) QueryAttr(amount)",
        "select distinct amount from purchase join customer on buyer = customer.id where name = 'n{0}'",
    ),
    "two hops with a filter": (
        "FindAll() FilterConcept(customer) FilterStr(city, c{0}) Relate(buyer, backward) FilterNum(amount, 200, >) Count()",
        "select count(*) from purchase join customer on buyer = customer.id where city = 'c{0}' and amount > 200",
    ),
    "over a table of relations with a qualifier": (
        "Find(n{0}) Relate(rated, forward) QFilterNum(stars, 3, >) QueryName()",
        "select distinct product.name from rates join customer on who = customer.id join product on what = product.id"
        " where customer.name = 'n{0}' and stars > 3",
    ),
    "the largest": (
        "FindAll() FilterConcept(customer) FilterStr(city, c{0}) SelectAmong(age, largest)",
        "with own as (select * from customer where city = 'c{0}') select name from own where age = (select max(age) from own)",
    ),
    "either of two": (
        "FindAll() FilterConcept(customer) FilterStr(city, c{0}) FindAll() FilterConcept(customer) FilterNum(age, 90, >) Or()"
        " Count()",
        "select count(*) from customer where city = 'c{0}' or age > 90",
    ),
}


def make(path: Path, rows: int) -> None:
    """Customers, products, purchases and ratings: a tenth as many customers as purchases."""
    with duckdb.connect(str(path)) as database:
        database.execute("create table customer (id integer primary key, name varchar, city varchar, age integer)")
        database.execute(f"insert into customer select i, 'n' || i, 'c' || (i % 100), 18 + i % 80 from range({rows // 10}) t(i)")
        database.execute("create table product (id integer primary key, name varchar)")
        database.execute("insert into product select i, 'p' || i from range(1000) t(i)")
        database.execute(
            "create table purchase (id integer primary key, buyer integer references customer, amount decimal(10, 2), placed date)"
        )
        database.execute(
            f"insert into purchase select i, (i * 7) % {rows // 10}, (i % 1000) / 4, date '2024-01-01' + (i % 366)::integer"
            f" from range({rows}) t(i)"
        )
        database.execute("create table rates (who integer references customer, what integer references product, stars integer)")
        database.execute(f"insert into rates select (i * 3) % {rows // 10}, i % 1000, 1 + i % 5 from range({rows // 2}) t(i)")


def main() -> None:
    """Measure, print, and store the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path, mapping = Path(folder) / "shop.duckdb", Path(folder) / "condgraph.toml"
        make(path, given.rows)
        mapping.write_text('[tables.rates]\nrelation = "rated"\n')
        graph = condgraph.open(f"duckdb:///{path}", mapping=mapping)
        database = duckdb.connect(str(path), read_only=True)
        for name, (program, sql) in QUERIES.items():

            def calls(run: int, program: str = program, sql: str = sql) -> tuple[Callable[[], list[str]], Callable[[], list[str]]]:
                values = run * 7 % 97, 1 + run % 28
                return (
                    lambda: graph.kopl(program.format(*values)).texts,
                    lambda: [str(row[0]) for row in database.execute(sql.format(*values)).fetchall()],
                )

            ask, fetch = calls(1)
            if len(ask()) != len(fetch()) or (len(ask()) == 1 and ask() != fetch()):
                raise SystemExit(f"{name}: the answers differ: {ask()[:3]} {fetch()[:3]}")
            pairs = [tuple(map(taken, calls(run))) for run in range(2, given.times + 2)]
            ours, theirs = (1000 * statistics.median(pair[side] for pair in pairs) for side in (0, 1))
            rows.append([name, round(ours, 2), round(theirs, 2), round(ours / theirs, 1)])
        graph.close()
    rows.append(
        [
            "median",
            *(round(statistics.median(row[at] for row in rows), 2) for at in (1, 2)),
            round(statistics.median(row[3] for row in rows), 1),
        ]
    )
    result = {
        "name": "sql_in_place",
        "title": "Existing tables in DuckDB",
        "command": f"python benchmarks/sql_in_place.py --rows {given.rows}",
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "columns": ["program", "condgraph, ms", "SQL by hand, ms", "ratio"],
        "rows": rows,
        "notes": [
            f"{given.rows:,} purchases of a tenth as many customers; DuckDB {duckdb.__version__}. CPU time, the median of "
            f"{given.times} runs in turns with different values; texts of queries are cached by their shape.",
        ],
    }
    print(markdown(result))
    write("sql_in_place", [result], given.out)


if __name__ == "__main__":
    main()
