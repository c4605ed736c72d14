"""SPARQL over HTTP compared with Oxigraph's own server: twenty usual queries of one graph, sent to `condgraph serve`
and to `oxigraph serve` over the same quads, in turns.

    python benchmarks/over_http.py [--people 20000] [--rounds 15] [--in-default] [--out DIR]

Oxigraph's server (`oxigraph` on PyPI) gets the triples in a named graph, and each query with the graph's IRI as
`default-graph-uri`. With `--in-default` it gets them in its default graph, as the endpoint has them, and plain
queries. Results are JSON, and both return the same number of rows. The least wall time of each query counts, from the
request to the last byte, over one open connection; the figure is the geometric mean of the ratios.
"""

from __future__ import annotations

import argparse
import datetime
import http.client
import json
import math
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

from endpoint import people
from machine import machine, markdown, write
from watched import watched

import condgraph

NAME = "<pred:name>"
#: The usual queries: look-ups, joins, filters, counts, long results, paths, ASK.
QUERIES = {
    "one by name": f'SELECT ?p {{ ?p {NAME} "Person 77" }}',
    "all of one": f'SELECT ?r ?o {{ ?p {NAME} "Person 77" ; ?r ?o }}',
    "who points here": f'SELECT ?s ?r {{ ?p {NAME} "Person 77" . ?s ?r ?p }} LIMIT 200',
    "known by name": f'SELECT ?n {{ ?p {NAME} "Person 77" ; <knows>/{NAME} ?n }}',
    "two hops": f'SELECT ?n {{ ?p {NAME} "Person 77" ; <knows>/<knows>/{NAME} ?n }}',
    "three hops, counted": f'SELECT (COUNT(*) AS ?n) {{ ?p {NAME} "Person 77" ; <knows>/<knows>/<knows> ?o }}',
    "is there one": f'ASK {{ ?p {NAME} "Person 77" ; <knows> ?o }}',
    "no such name": f'SELECT ?p {{ ?p {NAME} "Nobody" }}',
    "first hundred": f"SELECT ?p ?n {{ ?p {NAME} ?n }} LIMIT 100",
    "first thousand": f"SELECT ?p ?n {{ ?p {NAME} ?n }} LIMIT 1000",
    "five thousand": f"SELECT ?p ?n {{ ?p {NAME} ?n }} LIMIT 5000",
    "count of all": "SELECT (COUNT(*) AS ?n) { ?a <knows> ?b }",
    "most known": "SELECT ?b (COUNT(?a) AS ?n) { ?a <knows> ?b } GROUP BY ?b ORDER BY DESC(?n) ?b LIMIT 10",
    "part of a name": f'SELECT ?p ?n {{ ?p {NAME} ?n FILTER(CONTAINS(?n, "son 123")) }}',
    "heights above": "SELECT ?p ?v { ?p <height>/<pred:value> ?v FILTER(?v > 2.0) }",
    "optional": f"SELECT ?n ?h {{ ?p {NAME} ?n OPTIONAL {{ ?p <height>/<pred:value> ?h }} }} LIMIT 300",
    "union": f'SELECT ?o {{ ?p {NAME} "Person 77" {{ ?p <knows> ?o }} UNION {{ ?o <knows> ?p }} }}',
    "not exists": f"SELECT ?n {{ ?p {NAME} ?n FILTER NOT EXISTS {{ ?x <knows> ?p }} }} LIMIT 100",
    "in order": f"SELECT ?n {{ ?p {NAME} ?n }} ORDER BY ?n LIMIT 50",
    "predicates": "SELECT DISTINCT ?r { ?s ?r ?o } LIMIT 20",
}


class Asked:
    """A server over one connection."""

    def __init__(self, url: str, graph: str | None) -> None:
        where = urllib.parse.urlsplit(url)
        assert where.hostname
        self.connection = http.client.HTTPConnection(where.hostname, where.port)
        self.path, self.graph = where.path, graph

    def ask(self, text: str) -> tuple[float, bytes]:
        """Seconds of one query, and what it gives."""
        said = [("query", text)] + ([("default-graph-uri", self.graph)] if self.graph else [])
        body = urllib.parse.urlencode(said)
        head = {"Accept": "application/sparql-results+json", "Content-Type": "application/x-www-form-urlencoded"}
        begin = time.perf_counter()
        self.connection.request("POST", self.path, body, head)
        answer = self.connection.getresponse()
        found = answer.read()
        seconds = time.perf_counter() - begin
        if answer.status != 200:
            raise SystemExit(f"{self.path}: {answer.status} {found[:300]!r} of {text}")
        return seconds, found


def size(found: bytes) -> int:
    """How many rows a result has; of an ASK, what it says."""
    said = json.loads(found)
    return int(said["boolean"]) if "boolean" in said else len(said["results"]["bindings"])


def main() -> None:
    """Load, serve both, ask in turns, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--in-default", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    from oxigraph_server import OxigraphServer
    from pyoxigraph import DefaultGraph, RdfFormat

    with tempfile.TemporaryDirectory() as folder, OxigraphServer() as theirs:
        store = Path(folder) / "store"
        with condgraph.open(store) as graph:
            graph.add(people(given.people))
            embedded = graph.rdf()
            base = None if given.in_default else embedded.base
            data = embedded.store.dump(format=RdfFormat.N_TRIPLES, from_graph=DefaultGraph())
            assert data is not None
            # Oxigraph's server knows of no base.
            whole = {f"<{name}>": embedded.target.names.predicate(name) for name in ("knows", "height")}
        where = f"{theirs.store}?{urllib.parse.urlencode({'graph': base}) if base else 'default'}"
        request = urllib.request.Request(where, data, {"Content-Type": "application/n-triples"}, method="POST")
        urllib.request.urlopen(request, timeout=600).close()
        command = watched([sys.executable, "-m", "condgraph", "serve", "-d", str(store), "--port", "0"])
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            try:
                assert server.stdout is not None
                url = server.stdout.readline().split("/ serves")[0]
                result = measure(Asked(f"{url}/sparql", None), Asked(theirs.query, base), whole, given.rounds)
            finally:
                server.send_signal(signal.SIGTERM)
    result |= {
        "command": f"python benchmarks/over_http.py --people {given.people}{' --in-default' if given.in_default else ''}",
        "date": datetime.date.today().isoformat(),
    }
    print(markdown(result))
    write("over_http", [result], given.out)


def measure(ours: Asked, theirs: Asked, whole: dict[str, str], rounds: int) -> dict[str, object]:
    """All queries of both, in turns."""
    rows: list[list[object]] = []
    logs = 0.0
    for name, text in QUERIES.items():
        for short, iri in whole.items():
            text = text.replace(short, iri)
        sizes = [size(one.ask(text)[1]) for one in (ours, theirs)]
        if sizes[0] != sizes[1]:
            raise SystemExit(f"{name}: {sizes[0]} rows here, {sizes[1]} there")
        taken: list[list[float]] = [[], []]
        for _ in range(rounds):
            for at, one in enumerate((ours, theirs)):
                taken[at].append(one.ask(text)[0])
        mine, other = (min(all_of) for all_of in taken)
        logs += math.log(mine / other)
        rows.append([name, sizes[0], round(1e3 * mine, 2), round(1e3 * other, 2), round(mine / other, 2)])
    mean = math.exp(logs / len(QUERIES))
    return {
        "name": "over_http",
        "title": "SPARQL over HTTP compared with Oxigraph's server",
        "machine": machine(),
        "columns": ["query", "rows", "condgraph, ms", "Oxigraph, ms", "times"],
        "rows": rows,
        "notes": [f"Geometric mean: {mean:.2f} times."],
    }


if __name__ == "__main__":
    main()
