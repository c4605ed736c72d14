"""Joins of several variables: triangles, diamonds, cycles of four and stars over three graphs, compared with other
engines.

    python benchmarks/joins.py --data DIR [--times 3] [--limit 60] [--engines condgraph,duckdb] [--out DIR]

DIR has `metaqa`, `codex_m` and `wd50k`. Each shape is counted as a plan of condgraph, as SQL by DuckDB with one
thread, and as Cypher by kglite and ladybug if they can be imported, from statements that are loaded. The counts are
compared; the time is CPU time, the median of runs in turns. A run that takes longer than `--limit` seconds is not
repeated, and one that does not finish in that time is left out.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.metadata
import importlib.util
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
from machine import machine, markdown, write

Fact = tuple[str, str, str]
#: Ends of edges, and the predicate of each (None: any).
Edges = tuple[tuple[str, str | None, str], ...]


class Shape(NamedTuple):
    """A pattern: its edges, entities that its variables are, and variables that differ."""

    edges: Edges
    fixed: dict[str, str]
    differ: tuple[tuple[str, str], ...] = ()


def facts_of(data: Path) -> dict[str, list[Fact]]:
    """The statements of each graph, each once."""
    found: dict[str, list[Fact]] = {}
    with (data / "metaqa" / "kb.txt").open(encoding="utf-8") as lines:
        parts = [line.rstrip("\n").split("|") for line in lines]
    found["MetaQA"] = [(s, p, o) for s, p, o in parts]
    codex: list[Fact] = []
    for name in ("train", "valid", "test"):
        with (data / "codex_m" / f"{name}.txt").open(encoding="utf-8") as lines:
            codex.extend((s, p, o) for s, p, o in (line.split() for line in lines))
    found["CoDEx-M"] = codex
    with (data / "wd50k" / "derived_labelled_statements.tsv").open(encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    found["wd50k"] = [(row[0], row[2], row[4]) for row in rows]
    return {name: sorted(set(facts)) for name, facts in found.items()}


def shapes(facts: list[Fact]) -> dict[str, Shape]:
    """The shapes asked of a graph: the predicates of stars are its most frequent ones."""
    subjects: dict[str, set[str]] = {}
    for s, p, _ in facts:
        subjects.setdefault(p, set()).add(s)
    first = max(subjects, key=lambda p: (len(subjects[p]), p))
    shared = {p: len(subjects[first] & of) for p, of in subjects.items() if p != first}
    second, third = sorted(shared, key=lambda p: (-shared[p], p))[:2]
    hub = Counter(o for _, p, o in facts if p == first).most_common(1)[0][0]
    return {
        "triangle": Shape((("a", None, "b"), ("b", None, "c"), ("c", None, "a")), {}),
        "cycle of 4": Shape((("a", None, "b"), ("b", None, "c"), ("c", None, "d"), ("d", None, "a")), {}),
        "triangle, both ways to one": Shape((("a", None, "b"), ("a", None, "c"), ("b", None, "c")), {}),
        "diamond": Shape((("a", None, "b"), ("b", None, "c"), ("a", None, "d"), ("d", None, "c")), {}, (("b", "d"),)),
        "two with two in common": Shape(
            (("a", second, "b"), ("a", third, "c"), ("d", second, "b"), ("d", third, "c")), {}, (("a", "d"),)
        ),
        "star of 2, one end fixed": Shape((("a", first, "b"), ("a", second, "c")), {"b": hub}),
        "star of 3": Shape((("a", first, "b"), ("a", second, "c"), ("a", third, "d")), {}),
        "star of 3, one end fixed": Shape((("a", first, "b"), ("a", second, "c"), ("a", third, "d")), {"b": hub}),
    }


Ask = Callable[[Shape], int]


def condgraph_ask(facts: list[Fact]) -> Ask:
    import condgraph
    from condgraph import Ref, Statement
    from condgraph.engine.algebra import ById
    from condgraph.engine.algebra import expressions as ex
    from condgraph.engine.algebra import solutions as alg
    from condgraph.engine.execute.run import Run

    graph = condgraph.open("memory:")
    graph.add([Statement(s, p, Ref(o)) for s, p, o in facts])
    snapshot = graph.current

    def ask(shape: Shape) -> int:
        place = lambda name: ById((shape.fixed[name],)) if name in shape.fixed else alg.Variable(name)  # noqa: E731
        parts = [
            alg.StatementPattern(place(s), None if p is None else (p,), place(o), family="relation") for s, p, o in shape.edges
        ]
        plan: Any = alg.Pattern(tuple(parts))
        for one, other in shape.differ:
            plan = alg.Filter(plan, ex.Comparison("<>", ex.Variable(one), ex.Variable(other)))
        run = Run(snapshot)
        rows: Any = run.execute(alg.GroupRows(plan, (), (alg.RowAggregate("n", "count"),)))
        return int(run.scope.terms[int(rows.columns["n"].numbers[0])])

    return ask


def duckdb_ask(facts: list[Fact]) -> Ask:
    duckdb, pandas = importlib.import_module("duckdb"), importlib.import_module("pandas")
    base = duckdb.connect(config={"threads": 1})
    number = {name: at for at, name in enumerate(sorted({name for fact in facts for name in fact}))}
    frame = pandas.DataFrame([[number[name] for name in fact] for fact in facts], columns=["s", "p", "o"])  # noqa: F841
    base.execute("CREATE TABLE facts AS SELECT * FROM frame ORDER BY p, s, o")

    def ask(shape: Shape) -> int:
        at: dict[str, str] = {}
        tests = []
        for place, (s, p, o) in enumerate(shape.edges):
            if p is not None:
                tests.append(f"f{place}.p = {number[p]}")
            for name, column in ((s, "s"), (o, "o")):
                term = f"f{place}.{column}"
                if name in at:
                    tests.append(f"{at[name]} = {term}")
                else:
                    at[name] = term
        tests += [f"{at[name]} = {number[entity]}" for name, entity in shape.fixed.items()]
        tests += [f"{at[one]} <> {at[other]}" for one, other in shape.differ]
        tables = ", ".join(f"facts f{place}" for place in range(len(shape.edges)))
        (count,) = base.execute(f"SELECT count(*) FROM {tables} WHERE {' AND '.join(tests)}").fetchone()
        return int(count)

    return ask


def cypher_of(shape: Shape, edge: Callable[[str | None, int], str], label: str, fixed: Callable[[str, str], str], join: str) -> str:
    """A shape in Cypher. Each edge is a clause of its own, so that two may be one relationship."""
    parts = [f"(v{s}{label}){edge(p, place)}(v{o}{label})" for place, (s, p, o) in enumerate(shape.edges)]
    tests = [fixed(f"v{name}", entity) for name, entity in shape.fixed.items()]
    tests += [f"v{one} <> v{other}" for one, other in shape.differ]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    return "MATCH " + join.join(parts) + where + " RETURN count(*) AS n"


def kglite_ask(facts: list[Fact]) -> Ask:
    kglite, pandas = importlib.import_module("kglite"), importlib.import_module("pandas")
    graph = kglite.KnowledgeGraph()
    number = {name: at for at, name in enumerate(sorted({name for s, _, o in facts for name in (s, o)}))}
    graph.add_nodes(pandas.DataFrame({"id": list(number.values()), "name": list(number)}), "Node", "id", "name")
    predicates = {p: f"P{at}" for at, p in enumerate(sorted({p for _, p, _ in facts}))}
    for predicate, name in predicates.items():
        pairs = [(number[s], number[o]) for s, p, o in facts if p == predicate]
        graph.add_connections(pandas.DataFrame(pairs, columns=["s", "o"]), name, "Node", "s", "Node", "o")

    def ask(shape: Shape) -> int:
        edge = lambda p, place: "-->" if p is None else f"-[:{predicates[p]}]->"  # noqa: E731
        text = cypher_of(shape, edge, ":Node", lambda name, entity: f"{name}.id = {number[entity]}", " MATCH ")
        return int(next(iter(graph.cypher(text)))["n"])

    return ask


def ladybug_ask(facts: list[Fact]) -> Ask:
    ladybug, pandas = importlib.import_module("ladybug"), importlib.import_module("pandas")
    folder = tempfile.mkdtemp()
    connection = ladybug.Connection(ladybug.Database(f"{folder}/db"), num_threads=1)
    number = {name: at for at, name in enumerate(sorted({name for fact in facts for name in fact}))}
    pandas.DataFrame({"id": sorted({number[name] for s, _, o in facts for name in (s, o)})}).to_csv(f"{folder}/n.csv", index=False)
    edges = pandas.DataFrame([(number[s], number[o], number[p]) for s, p, o in facts], columns=["s", "o", "p"])
    edges.to_csv(f"{folder}/e.csv", index=False)
    connection.execute("CREATE NODE TABLE N(id INT64, PRIMARY KEY(id))")
    connection.execute("CREATE REL TABLE E(FROM N TO N, p INT64)")
    connection.execute(f"COPY N FROM '{folder}/n.csv' (header=true)")
    connection.execute(f"COPY E FROM '{folder}/e.csv' (header=true)")

    def ask(shape: Shape) -> int:
        edge = lambda p, place: "-[:E]->" if p is None else f"-[:E {{p: {number[p]}}}]->"  # noqa: E731
        text = cypher_of(shape, edge, ":N", lambda name, entity: f"{name}.id = {number[entity]}", " MATCH ")
        return int(connection.execute(text).get_next()[0])

    return ask


ENGINES = {"condgraph": condgraph_ask, "duckdb": duckdb_ask, "kglite": kglite_ask, "ladybug": ladybug_ask}


def _serve(engine: str, facts: list[Fact], pipe: Any) -> None:
    ask = ENGINES[engine](facts)
    pipe.send("ready")
    while True:
        shape = pipe.recv()
        if shape is None:
            return
        begin = time.process_time()
        try:
            count = ask(shape)
        except Exception as error:  # noqa: BLE001 - what an engine does not do is a cell of the table
            pipe.send((None, f"{type(error).__name__}: {str(error)[:80]}"))
        else:
            pipe.send((time.process_time() - begin, count))


class Engine:
    """An engine in a process of its own, which is ended where it takes too long."""

    def __init__(self, name: str, facts: list[Fact]) -> None:
        self.name, self.facts = name, facts
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(self.name, self.facts, there), daemon=True)
        self.process.start()
        assert self.pipe.recv() == "ready"

    def ask(self, shape: Shape, limit: float) -> tuple[float | None, Any]:
        """Seconds and the count; None and why not."""
        self.pipe.send(shape)
        if self.pipe.poll(limit):
            found: tuple[float | None, Any] = self.pipe.recv()
            return found
        self.process.kill()
        self.process.join()
        self._start()
        return None, f"> {limit:g} s"

    def close(self) -> None:
        """End the process."""
        self.pipe.send(None)
        self.process.join()


def measure(facts: list[Fact], engines: Iterable[str], times: int, limit: float) -> list[list[Any]]:
    """A row for each shape: its count, and the milliseconds of each engine."""
    asked = [Engine(name, facts) for name in engines]
    rows = []
    for name, shape in shapes(facts).items():
        taken: dict[str, list[float]] = {engine.name: [] for engine in asked}
        failed: dict[str, str] = {}
        counts: dict[str, int] = {}
        for turn in range(times + 1):
            for engine in asked:
                if engine.name in failed or (turn > 1 and max(taken[engine.name], default=0) > limit / 6):
                    continue
                seconds, count = engine.ask(shape, limit)
                if seconds is None:
                    failed[engine.name] = count
                    continue
                counts[engine.name] = count
                if turn or seconds > limit / 6:
                    taken[engine.name].append(seconds)
        if len({counts[engine] for engine in ("condgraph", "duckdb") if engine in counts}) > 1:
            raise SystemExit(f"{name}: the engines count {counts}")
        agreed = counts.get("duckdb", counts.get("condgraph"))
        failed |= {engine: f"counts {count:,}" for engine, count in counts.items() if agreed is not None and count != agreed}
        cells = [failed.get(one.name) or round(1000 * statistics.median(taken[one.name]), 1) for one in asked]
        rows.append([name, agreed, *cells])
        print(rows[-1], flush=True)
    for engine in asked:
        engine.close()
    return rows


def main() -> None:
    """Measure, print, and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--engines", default=",".join(ENGINES), help="of these, separated by commas, those that can be imported")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    engines = [name for name in given.engines.split(",") if name == "condgraph" or importlib.util.find_spec(name)]
    rows = []
    for name, facts in facts_of(given.data).items():
        rows += [[name, *row] for row in measure(facts, engines, given.times, given.limit)]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in engines if name != "condgraph")
    result = {
        "name": "joins",
        "title": "Joins of several variables in process",
        "command": f"python benchmarks/joins.py --data DATA --engines {','.join(engines)}",
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "columns": ["graph", "shape", "rows", *(f"{name}, ms" for name in engines)],
        "rows": rows,
        "notes": [
            f"{versions}. CPU time of counting the rows of a shape, the median of several runs in turns, each engine in a "
            "process of its own that has loaded the statements; DuckDB and Ladybug with one thread.",
            "condgraph counts rows that the rest of the pattern does not tell apart as one row with its number. A cell with `>` "
            "was stopped; `counts` marks another number of rows than condgraph and DuckDB count.",
            "Stars take the most frequent predicates, and the fixed end is the most frequent object; the other shapes take any "
            "predicate. Variables may be the same entity, except the two in the middle of a diamond and the two that have two in "
            "common.",
        ],
    }
    print(markdown(result))
    write("joins", [result], given.out)


if __name__ == "__main__":
    main()
