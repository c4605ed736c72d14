"""First answers on a Wikibase that condgraph did not write, compared with SPARQL as a user of Wikidata writes it by
hand.

    python benchmarks/sparql_in_place.py --data FOLDER [--times 15] [--triples 10000000] [--out DIR]

FOLDER is what CONDGRAPH_DATA names. Oxigraph's server has the oracle's small graph in Wikidata's shape, or the whole
one with renamed copies until there are that many triples; the queries are those of the tests. Milliseconds of this
process and of the server together, the median of runs in turns: a program to its texts, with nothing cached except
what the survey of the endpoint found, and the query by hand to its rows, by the same client. The answers of both are
compared.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tools"), str(ROOT)]

import pyoxigraph  # noqa: E402
from machine import markdown, write  # noqa: E402
from oxigraph_server import OxigraphServer  # noqa: E402

import condgraph  # noqa: E402
from condgraph.sparql.native.look import Look  # noqa: E402
from tests.support.wikibase_dump import PREFIXES, WD, Dump  # noqa: E402


def costs(call: Callable[[], Any], server: int) -> tuple[float, float, float]:
    """Milliseconds of a call: of the processor in this process and in the server, in this one alone, and by the clock."""
    # The clock of another process (clock_getcpuclockid(3)), whose threads may have ended.
    there = ~server << 3 | 2
    before, own, clock = time.clock_gettime(there), time.process_time(), time.perf_counter()
    call()
    clock, own = time.perf_counter() - clock, time.process_time() - own
    return 1000 * (own + time.clock_gettime(there) - before), 1000 * own, 1000 * clock


def copied(lines: Sequence[str], triples: int) -> Iterator[bytes]:
    """A dump and copies with nodes and names of their own, until there are so many triples; properties and units are shared."""
    text = "".join(line for line in lines if not line.startswith(f"<{WD}P")).encode()
    yield "".join(lines).encode()
    for number in range(2, 1 + -(-triples // len(lines))):
        other = re.sub(rb"(/entity/)(Q(?!199>|9\d{7}>)|statement/)", rb"\1c%d\2" % number, text)
        yield re.sub(rb'"@(\w\w) \.', rb' (%d)"@\1 .' % number, other)


def filled(server: OxigraphServer, parts: Iterator[bytes]) -> int:
    """Put N-Triples where a server will look for them when it starts; how many there are."""
    store = pyoxigraph.Store(server.home / "data")
    for part in parts:
        store.bulk_load(input=part, format=pyoxigraph.RdfFormat.N_TRIPLES)
    store.flush()
    return len(store)


def main() -> None:
    """Measure, print, and store the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--triples", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    oracle = given.data / "oracle"
    dump = Dump(json.loads((oracle / ("kb.json" if given.triples else "kb_small.json")).read_text()))
    lines = [f"{line}\n" for line in dump.lines()]
    records = {one["id"]: one for one in map(json.loads, (oracle / "programs_small.jsonl").read_text().splitlines())}
    by_hand = tomllib.loads((ROOT / "tests" / "support" / "wikidata_by_hand.toml").read_text())
    known = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in PREFIXES.items())
    rows: list[list[Any]] = []
    server = OxigraphServer(limit=300)
    triples = filled(server, copied(lines, given.triples or len(lines)))
    with server, condgraph.open(f"sparql+{server.query}", layout="native") as graph:
        store: Any = graph.store
        clock = time.perf_counter()
        look = Look(store.endpoint, {})
        mapping = look.mapping()
        seconds = time.perf_counter() - clock
        store._mapping = mapping
        for ident, about in by_hand.items():
            query = known + re.sub(r"\{(\w[^{}?\n]*)\}", lambda match: dump.number(match[1]), about["query"])
            program = records[ident]["program"]

            def ours(program: Any = program) -> list[str]:
                # Nothing of the program is known.
                store.schema.kept.pop("plans", None)
                for kept in (store.schema._names, store._written, store._units):
                    kept.clear()
                return sorted(set(graph.kopl(program).texts))

            def theirs(query: str = query) -> list[str]:
                return sorted({row["a"].value for row in store.endpoint.query(query)})

            if ours() != theirs():
                raise SystemExit(f"{ident}: the answers differ: {ours()[:3]} {theirs()[:3]}")
            if not theirs():
                continue
            runs = [[costs(call, server.pid or 0) for call in (ours, theirs)] for _ in range(given.times)]
            (all1, own1, clock1), (all2, own2, clock2) = (
                [statistics.median(values) for values in zip(*side, strict=True)] for side in zip(*runs, strict=True)
            )
            rows.append([ident, *(round(one, 2) for one in (all1, own1, all2, own2)), all1 / all2, clock1 / clock2])
    rows.append(["median", *(statistics.median(row[at] for row in rows) for at in range(1, 7))])
    result = {
        "title": "An existing Wikibase on Oxigraph's server",
        "command": "python benchmarks/sparql_in_place.py --data $CONDGRAPH_DATA"
        + (f" --triples {given.triples}" if given.triples else ""),
        "columns": ["program", "condgraph, ms", "of these own", "by hand, ms", "of these own", "ratio", "by the clock"],
        "rows": [[*row[:5], *(round(one, 1) for one in row[5:])] for row in rows],
        "notes": [
            f"The oracle's {'whole graph with copies' if given.triples else 'small graph'} in Wikidata's shape; "
            f"the median of {given.times} runs in turns.",
            f"{triples:,} triples; the survey took {look.queries} queries and {seconds:.1f} s; it found {len(mapping.predicates)} "
            f"predicates, {len(mapping.qualifiers)} of qualifiers and {len(mapping.concepts):,} classes"
            + ("" if mapping.whole else ", by samples"),
            "'Own' is this process: for a program all but the server's work, for a query by hand the request and its rows.",
        ],
    }
    print(markdown(result))
    write("sparql_in_place", [result], given.out)


if __name__ == "__main__":
    main()
