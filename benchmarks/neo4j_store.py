"""Neo4j as a store, on a real server: loads over Bolt, the import tool, deleting a graph, and many clients at once.

    python benchmarks/neo4j_store.py --data DIR [--millions 1 3] [--seconds 60] [--clients 32] [--memory 4g]

DIR holds `oracle/`. Every load goes into an empty server that has just started: the oracle's graph, and mixed graphs
of that many million statements (half relations, a third of them with a qualifier; texts, quantities and times),
created here. A load over Bolt is timed from the call to its return, with indexes; the import tool from the first file
written until the graph has answered, with the start of the server and the indexes. Each is compared with a minimal
program for the same nodes and relationships: rows sent by the driver in their own transactions, and files read by the
tool, without sources, captions, validity, order, or the means to interrupt and resume a load. About 25 minutes with 1
and 3 million on two cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tools")]

import neo4j_server  # noqa: E402
import numpy as np  # noqa: E402
from neo4j import GraphDatabase  # noqa: E402

import condgraph  # noqa: E402
from benchmarks import machine  # noqa: E402
from condgraph.cypher.layout.schema import CONSTRAINTS, ENTITY, INDEXES, QUALIFIER, STATEMENT, VALUE  # noqa: E402
from condgraph.cypher.load.batches import CELL  # noqa: E402
from condgraph.cypher.load.write import RowMaker, ahead  # noqa: E402
from condgraph.engine.facts import Batch, Entity, EntityKind, Ids, Item, Member, Numbers, Texts, Times  # noqa: E402
from condgraph.engine.values import Time  # noqa: E402
from condgraph.graph import Graph  # noqa: E402
from condgraph.remote_neo4j import Neo4jGraph  # noqa: E402
from tests.support.clients import run_clients  # noqa: E402

#: Memory of the import tool, and of the server that is started on what it wrote.
_IMPORTING = "1g"
#: Statements that are made together.
_TOGETHER = 50_000


def mixed(statements: int) -> Iterator[Item]:
    """So many statements of every kind, always the same."""
    random = np.random.default_rng(7)
    entities = max(statements // 12, 10)
    names = [f"Q{i}" for i in range(entities)]
    years = [Time.year(1900 + i) for i in range(120)]
    yield from (Entity(f"C{i}", f"concept {i}", EntityKind.CONCEPT) for i in range(50))
    yield from (Entity(name, f"entity {i}") for i, name in enumerate(names))
    yield from (Member(name, f"C{i % 50}") for i, name in enumerate(names))
    for start in range(0, statements, _TOGETHER):
        size = min(_TOGETHER, statements - start)
        subjects = [names[i] for i in random.integers(0, entities, size)]
        rows = np.arange(start, start + size)
        kind = start // _TOGETHER % 6
        predicate = [f"predicate {kind} {i}" for i in random.integers(0, 20, size)]
        if kind < 3:
            objects = Ids([names[int(i)] for i in entities * random.random(size) ** 2])
            qualifiers = [("point in time", [years[i] for i in random.integers(0, 120, size)])] if kind == 2 else []
            yield Batch(subjects, predicate, objects, rows, qualifiers=qualifiers)
        elif kind == 3:
            yield Batch(subjects, predicate, Texts([f"text number {i}" for i in rows.tolist()]), rows)
        elif kind == 4:
            yield Batch(subjects, predicate, Numbers(np.round(random.random(size) * 1e4, 2), "metre"), rows)
        else:
            at = [years[i] for i in random.integers(0, 120, size)]
            bounds = [np.array([getattr(one, part) for one in at], np.int64) for part in ("start", "end")]
            yield Batch(subjects, predicate, Times(*bounds, np.array([int(one.precision) for one in at], np.int8)), rows)


def over_bolt(local: Graph, version: str, memory: str) -> tuple[float, float]:
    """Seconds of a load into an empty, cold server, and of taking the graph away again."""
    with neo4j_server.Neo4jServer(version, memory=memory) as server, condgraph.open(server.uri) as remote:
        assert isinstance(remote, Neo4jGraph)
        begin = time.perf_counter()
        remote.push(local)
        loaded = time.perf_counter()
        assert remote.status().counts == local.status().counts
        gone = time.perf_counter()
        remote.store.delete()
        return loaded - begin, time.perf_counter() - gone


_PAIR = (
    f"UNWIND $rows AS r MATCH (a:{ENTITY} {{graph: $graph, handle: $ids[r[0]]}}) "
    f"MATCH (b:{ENTITY} {{graph: $graph, handle: $ids[r[1]]}}) "
    "CREATE (a)-[:$(r[2]) {sid: r[3]}]->(b) "
)
_VALUE = "text: {0}[{1} + 1], key: {0}[{1} + 2], number: {0}[{1} + 3], unit: {0}[{1} + 5], start: {0}[{1} + 6], end: {0}[{1} + 7]"
_QUALIFY = f"AS q CREATE (o)-[:QUALIFIER]->(:{QUALIFIER} {{graph: $graph, name: q[0], {_VALUE.format('q', 1)}}})"
#: The least that has to be written of each kind of batch, in the driver's own transactions.
_BARE = {
    "entities": f"UNWIND $rows AS r CREATE (:{ENTITY} {{graph: $graph, handle: r[0], name: r[1], key: r[2], kind: r[3]}})",
    "relations": _PAIR,
    "members": _PAIR,
    "relations with qualifiers": _PAIR
    + f"CREATE (a)<-[:SUBJECT]-(o:{STATEMENT} {{graph: $graph, sid: r[3]}})-[:OBJECT]->(b) WITH o, r UNWIND r[11] "
    + _QUALIFY,
    "attributes": f"UNWIND $rows AS r MATCH (a:{ENTITY} {{graph: $graph, handle: $ids[r[0]]}}) "
    f"CREATE (a)-[:$(r[1]) {{sid: r[2]}}]->(o:{VALUE} {{graph: $graph, predicate: r[9], {_VALUE.format('r', 12)}}}) "
    f"WITH o, r UNWIND r[{12 + len(CELL)}] {_QUALIFY}",
}


def bare_over_bolt(local: Graph, version: str, memory: str) -> float:
    """Seconds of the same nodes and relationships, sent by a plain program."""
    with (
        neo4j_server.Neo4jServer(version, memory=memory) as server,
        GraphDatabase.driver(server.uri) as driver,
        driver.session() as session,
    ):
        begin = time.perf_counter()
        for one in CONSTRAINTS:
            session.run(one.text).consume()
        for batch in ahead(RowMaker(local.current).batches()):
            if batch.kind in _BARE:
                session.run(_BARE[batch.kind], graph="default", ids=batch.ids, rows=batch.rows).consume()
        with session.begin_transaction() as transaction:
            for one in INDEXES:
                transaction.run(one.text).consume()
        session.run("CALL db.awaitIndexes(600)").consume()
        return time.perf_counter() - begin


def bare_import(local: Graph, version: str, memory: str) -> float:
    """Seconds of the import tool alone on the same nodes and relationships, of which it is told to
    leave most columns out.
    """
    wanted = {"graph", "handle", "name", "key", "kind", "sid", "predicate", "number", "start"}
    with tempfile.TemporaryDirectory(prefix="condgraph-import-") as folder:
        server = neo4j_server.Neo4jServer(version, memory=memory)
        try:
            local.export(folder, to="neo4j-import")
            for header in Path(folder).glob("*-header.csv"):
                columns = [one.split(":", 1) for one in header.read_text("utf-8").strip().split(",")]
                kept = [f"{name}:{kind if not name or name in wanted else 'IGNORE'}" for name, kind in columns]
                header.write_text(",".join(kept) + "\n", "utf-8")
            begin = time.perf_counter()
            server.admin(*Path(folder, "import.args").read_text("utf-8").splitlines(), folder=Path(folder))
            return time.perf_counter() - begin
        finally:
            server.stop()
            server.remove()


def by_import(local: Graph, version: str, memory: str) -> dict[str, float]:
    """Seconds of each part of an import."""
    with tempfile.TemporaryDirectory(prefix="condgraph-import-") as folder:
        server = neo4j_server.Neo4jServer(version, memory=memory)
        try:
            marks = [time.perf_counter()]
            local.export(folder, to="neo4j-import")
            marks.append(time.perf_counter())
            server.admin(*Path(folder, "import.args").read_text("utf-8").splitlines(), folder=Path(folder))
            marks.append(time.perf_counter())
            server.start()
            marks.append(time.perf_counter())
            with condgraph.open(server.uri) as remote:
                counts = remote.status().counts
                marks.append(time.perf_counter())
                assert counts == local.status().counts
        finally:
            server.stop()
            server.remove()
    parts = dict(zip(("files", "import", "start", "indexes"), np.diff(marks).tolist(), strict=True))
    return parts | {"all": marks[-1] - marks[0]}


def clients(data: Path, version: str, memory: str, count: int, seconds: float) -> dict[str, Any]:
    """Many clients for some time over the small oracle graph."""
    local = condgraph.open()
    local.load(data / "oracle" / "kb_small.json")
    with (data / "oracle" / "programs_small.jsonl").open(encoding="utf-8") as lines:
        programs = [json.loads(line)["program"] for line in lines][::20]
    expected = [local.kopl(program).texts for program in programs]
    with neo4j_server.Neo4jServer(version, memory=memory) as server:
        with condgraph.open(server.uri) as remote:
            assert isinstance(remote, Neo4jGraph)
            remote.push(local)
        before = machine.resident(str(server.pid))
        found = run_clients(server.uri, "default", programs, expected, count, seconds)
        return {"report": found, "memory": (before, machine.resident(str(server.pid)))}


def main() -> None:
    """Measure, print, and write `benchmarks/out/neo4j_store.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--millions", type=float, nargs="*", default=[1.0, 3.0])
    parser.add_argument("--version", default=neo4j_server.LTS)
    parser.add_argument("--memory", default="4g")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    rows: list[list[Any]] = []
    oracle = condgraph.open()
    oracle.load(options.data / "oracle" / "kb.json")
    graphs = [("the oracle's graph", lambda: oracle)] + [
        (f"{millions:g} million, mixed", lambda millions=millions: _made(int(millions * 1e6))) for millions in options.millions
    ]
    for name, make in graphs:
        local = make()
        statements = local.status().statements
        seconds, gone = over_bolt(local, options.version, options.memory)
        bare = bare_over_bolt(local, options.version, options.memory)
        told = f"{seconds / bare:.2f} times the {bare:.1f} s of a plain program; taken away in {gone:.0f} s"
        rows.append(["over Bolt, cold", name, statements, round(seconds, 1), round(statements / seconds), told])
        print(rows[-1], flush=True)
        parts = by_import(local, options.version, _IMPORTING)
        told = ", ".join(f"{part} {value:.0f} s" for part, value in parts.items() if part != "all")
        told += f"; the tool alone with the fewest columns {bare_import(local, options.version, _IMPORTING):.0f} s"
        rows.append(["import tool", name, statements, round(parts["all"], 1), round(statements / parts["all"]), told])
        print(rows[-1], flush=True)
    met = clients(options.data, options.version, options.memory, options.clients, options.seconds)
    report = met["report"]
    result = {
        "title": "Neo4j: loading, and many clients",
        "command": "python benchmarks/neo4j_store.py --data DIR",
        "columns": ["how", "graph", "statements", "seconds", "statements a second", "parts"],
        "rows": rows,
        "notes": [
            f"Neo4j {options.version}; each load into an empty server that has just started, with indexes and constraints.",
            f"The server has {options.memory} of heap for loads over Bolt, and {_IMPORTING} for the import tool and after it.",
            f"{options.clients} clients for {options.seconds:.0f} s: {report.answers:,} answers, {len(report.errors)} errors, "
            f"{len(report.wrong)} wrong; median {machine.median(report.seconds) * 1e3:.1f} ms, p95 "
            f"{machine.percentile(report.seconds, 0.95) * 1e3:.1f} ms; the server's connections before and after "
            f"{report.connections[0]} and {report.connections[1]}, "
            f"its memory {met['memory'][0]:.0f} and {met['memory'][1]:.0f} MB.",
        ],
    }
    print(machine.markdown(result))
    machine.write("neo4j_store", [result])


def _made(statements: int) -> Graph:
    local = condgraph.open()
    local.add(mixed(statements), source="mixed")
    return local


if __name__ == "__main__":
    main()
