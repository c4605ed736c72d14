"""Random Cypher on condgraph, kglite, Ladybug and Neo4j, over the same data: which forms the engines accept, and
where they differ from Neo4j.

    python benchmarks/cypher_engines.py --data DIR [--uri bolt://...] [--queries 3000] [--out FILE]

DIR holds `data/`. The queries are those of `tests/native/test_random_cypher.py`, over Movies, Northwind and a graph
of ugly names. Needs `kglite` and `ladybug` (PyPI); `tools/neo4j_server.py` starts a Neo4j if no address is given.
Rows with nodes, relationships and paths are left out, because each engine has its own values for them. Ladybug has
one label for a node and one type for a property, so that the graph of ugly names cannot be loaded into it. `--out`
gets every difference as a line of JSON.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import kglite
import ladybug
import neo4j
import neo4j_server

from condgraph.cypher.servers import NEO4J
from tests.support import native_databases
from tests.support.random_cypher import KEY, Maker, PropertyGraph, Query, agree, common, read, ugly

Rows = list[list[Any]]
Ask = Callable[[Query], Rows]
GRAPHS = ("movies", "northwind", "ugly")
_TIMEOUT = 20


class UnsuitedError(Exception):
    """An engine cannot hold a graph as it is."""


def condgraph_of(graph: PropertyGraph) -> Ask:
    """The graph in process."""
    made = graph.in_memory()

    def ask(query: Query) -> Rows:
        values = made.cypher(query.text, query.parameters, timeout=60, on_unknown="empty").values
        return [list(row) if isinstance(row, tuple) else [row] for row in values]

    return ask


def kglite_of(graph: PropertyGraph) -> Ask:
    """The graph in kglite, written by its own Cypher."""
    made = kglite.KnowledgeGraph()
    # It takes no property that the first node of a label had not; null is one.
    names = {name for _, properties in graph.nodes.values() for name in properties}
    for key, (labels, properties) in graph.nodes.items():
        listed, given = _listed(dict.fromkeys(sorted(names)) | properties | {KEY: key})
        made.cypher(f"CREATE (n{_labels(labels)} {listed})", params=given)
    edge_names = {name for *_, properties in graph.relationships for name in properties}
    for start, type_, end, properties in graph.relationships:
        listed, given = _listed(dict.fromkeys(sorted(edge_names)) | properties)
        ends = "MATCH (a), (b) WHERE a.key = $a AND b.key = $b"
        if all(len(graph.nodes[key][0]) == 1 for key in (start, end)):
            ends = f"MATCH (a{_labels(graph.nodes[start][0])} {{key: $a}}), (b{_labels(graph.nodes[end][0])} {{key: $b}})"
        made.cypher(f"{ends} CREATE (a)-[:{NEO4J.quote(type_)} {listed}]->(b)", params=given | {"a": start, "b": end})
    return lambda query: [
        list(row.values()) for row in made.cypher(query.text, params=query.parameters, timeout_ms=_TIMEOUT * 1000)
    ]


def ladybug_of(graph: PropertyGraph) -> Ask:
    """The graph in Ladybug: a table for each label and each type of relationship."""
    connection = ladybug.Connection(ladybug.Database(":memory:"))
    tables: dict[str, list[dict[str, Any]]] = {}
    for labels, properties in graph.nodes.values():
        if len(labels) != 1:
            raise UnsuitedError(f"a node has {len(labels)} labels")
        tables.setdefault(labels[0], []).append(properties)
    for label, rows in tables.items():
        listed = ", ".join(f"{NEO4J.quote(name)} {kind}" for name, kind in _types(rows).items() if name != KEY)
        connection.execute(f"CREATE NODE TABLE {NEO4J.quote(label)}({KEY} STRING, {listed}, PRIMARY KEY({KEY}))")
    edges: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for start, type_, end, properties in graph.relationships:
        edges.setdefault(type_, []).append((start, end, properties))
    for type_, some in edges.items():
        pairs = sorted({(graph.nodes[start][0][0], graph.nodes[end][0][0]) for start, end, _ in some})
        parts = [f"FROM {NEO4J.quote(a)} TO {NEO4J.quote(b)}" for a, b in pairs]
        parts += [f"{NEO4J.quote(name)} {kind}" for name, kind in _types([properties for *_, properties in some]).items()]
        connection.execute(f"CREATE REL TABLE {NEO4J.quote(type_)}({', '.join(parts)})")
    for key, (labels, properties) in graph.nodes.items():
        listed, given = _listed(properties | {KEY: key})
        connection.execute(f"CREATE (n{_labels(labels)} {listed})", given)
    for start, type_, end, properties in graph.relationships:
        listed, given = _listed(properties)
        ends = f"MATCH (a{_labels(graph.nodes[start][0])} {{key: $a}}), (b{_labels(graph.nodes[end][0])} {{key: $b}})"
        connection.execute(f"{ends} CREATE (a)-[:{NEO4J.quote(type_)} {listed}]->(b)", given | {"a": start, "b": end})
    connection.set_query_timeout(_TIMEOUT * 1000)

    def plain(value: Any) -> Any:
        # A sum of integers is a decimal number.
        return int(value) if isinstance(value, Decimal) and value == int(value) else value

    return lambda query: [list(map(plain, row)) for row in connection.execute(query.text, query.parameters).get_all()]


ENGINES: dict[str, Callable[[PropertyGraph], Ask]] = {"condgraph": condgraph_of, "kglite": kglite_of, "ladybug": ladybug_of}


def _types(rows: list[dict[str, Any]]) -> dict[str, str]:
    """The properties of a table with their types."""
    names = {bool: "BOOL", int: "INT64", float: "DOUBLE", str: "STRING", datetime.date: "DATE", list: "STRING[]"}
    found: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            found.setdefault(name, set()).add(names[type(value)])
    if mixed := [name for name, kinds in found.items() if len(kinds) > 1 and kinds != {"INT64", "DOUBLE"}]:
        raise UnsuitedError(f"{mixed[0]!r} has values of several types")
    return {name: "DOUBLE" if len(kinds) > 1 else next(iter(kinds)) for name, kinds in found.items()}


def _labels(labels: tuple[str, ...]) -> str:
    return "".join(f":{NEO4J.quote(label)}" for label in labels)


def _listed(properties: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    names = {f"p{number}": name for number, name in enumerate(properties)}
    listed = ", ".join(f"{NEO4J.quote(name)}: ${given}" for given, name in names.items())
    return f"{{{listed}}}", {given: properties[name] for given, name in names.items()}


def compared(name: str, driver: neo4j.Driver, queries: int) -> tuple[dict[str, Counter[str]], list[dict[str, Any]]]:
    """For each engine how many queries came out how, and the differences."""
    with driver.session() as session:
        if name == "ugly":
            graph = ugly()
            graph.write(session)
        else:
            native_databases.DATABASES[name](driver)
            graph = read(session)
    counts: dict[str, Counter[str]] = {engine: Counter() for engine in ENGINES}
    asks: dict[str, Ask] = {}
    for engine, make in ENGINES.items():
        try:
            asks[engine] = make(graph)
        except UnsuitedError as error:
            print(f"{engine} cannot hold {name}: {error}")
    differences: list[dict[str, Any]] = []
    with driver.session(default_access_mode="READ") as session:
        keys = dict(session.run(f"MATCH (n) RETURN elementId(n), n.{KEY}").values())
        for seed in range(queries):
            query = Maker(graph, seed).query()
            try:
                wanted = [[common(value, keys) for value in row] for row in session.run(query.text, query.parameters).values()]
            except neo4j.exceptions.Neo4jError:
                for engine in asks:
                    counts[engine]["an error on Neo4j"] += 1
                continue
            valued = not any(word in repr(wanted) for word in ("('node'", "('rel'", "('path'"))
            for engine, ask in asks.items():
                if not valued:
                    counts[engine]["left out"] += 1
                    continue
                try:
                    rows = [[common(value) for value in row] for row in ask(query)]
                except Exception as error:  # noqa: BLE001 - whatever an engine raises is a refusal
                    counts[engine]["refused"] += 1
                    counts[engine]["  " + re.sub(r"\s+", " ", str(error))[:60]] += 1
                    continue
                same = agree(query, wanted, rows)
                counts[engine]["equal" if same else "different"] += 1
                if not same:
                    row = {"engine": engine, "graph": name, "seed": seed, "query": query.text, "parameters": query.parameters}
                    differences.append(row | {"neo4j": wanted, "rows": rows})
    return counts, differences


def main() -> None:
    """Compare, and print the counts with the most frequent refusals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--uri")
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--graphs", nargs="*", default=GRAPHS, choices=GRAPHS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ["CONDGRAPH_DATA"] = str(options.data)
    found: list[dict[str, Any]] = []
    with ExitStack() as stack:
        uri = options.uri or stack.enter_context(neo4j_server.Neo4jServer(short=True)).uri
        for name in options.graphs:
            with native_databases.database(uri) as driver:
                counts, differences = compared(name, driver, options.queries)
            found += differences
            for engine, outcomes in counts.items():
                print(
                    f"{name}, {engine}: " + ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items()) if what[0] != " "),
                    flush=True,
                )
                for what, n in Counter({what: n for what, n in outcomes.items() if what[0] == " "}).most_common(8):
                    print(f"{n:8}{what}")
    if options.out:
        options.out.write_text("".join(json.dumps(one, ensure_ascii=False, default=str) + "\n" for one in found), encoding="utf-8")


if __name__ == "__main__":
    main()
