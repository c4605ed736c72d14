"""The cost of printing an empty answer with its explanation: programs of the oracle that rules broke, in process or
on a server, and whether the cause and the repair are named.

    CONDGRAPH_DATA=/data python -m benchmarks.why_not --programs 1000
    CONDGRAPH_DATA=/data python -m benchmarks.why_not --programs 200 --at bolt://127.0.0.1:7687
    CONDGRAPH_DATA=/data python -m benchmarks.why_not --removed 100 --at duckdb:////tmp/graphs.duckdb
    CONDGRAPH_DATA=/data python -m benchmarks.why_not --at sparql+http://127.0.0.1:7878/query --update http://127.0.0.1:7878/update

The programs are chosen first; then each is run, its answer is read (its own time) and printed. The server gets two
graphs, which are deleted at the end. With `--removed`, each statement is removed and added again, and the explanation
of a result that is lost is requested.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import condgraph
from condgraph.loaders.base import Reading
from condgraph.loaders.recognise import recognise
from tests.support.broken_programs import RULES, cut_entities, empty_programs, judged, removed_statements

NAMES = ("why_not_whole", "why_not_cut")


def counted(graphs: list[Any]) -> list[str]:
    """A list to which each query that graphs on a server send from now on is added."""
    sent: list[str] = []

    def noting(call: Any) -> Any:
        def noted(text: str, *more: Any, **options: Any) -> Any:
            sent.append(text)
            return call(text, *more, **options)

        return noted

    for graph in graphs:
        client = next(filter(None, (getattr(graph.store, name, None) for name in ("connection", "endpoint", "engine"))))
        for name in ("read", "ask", "query"):
            if hasattr(client, name):
                setattr(client, name, noting(getattr(client, name)))
    return sent


def statements(oracle: Path) -> list[Any]:
    """What the oracle's small graph is made of."""
    (found,) = recognise(oracle / "kb_small.json")
    return list(found.format.read(found.data, Reading(found.source), {}))


def graphs(oracle: Path) -> list[Any]:
    """The oracle's small graph, and the one whose joins are cut, in process."""
    items = statements(oracle)
    result = [condgraph.open(), condgraph.open()]
    for graph, some in zip(result, (items, cut_entities(items)), strict=True):
        graph.add(some)
    return result


def delete(graphs: list[Any]) -> None:
    """Delete the graphs on a server."""
    for graph in graphs:
        graph.store.delete()


def main() -> None:
    """Run it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--programs", type=int, default=1_000)
    options.add_argument("--at", help="the address of a server; without it in process")
    options.add_argument("--update", help="the address for updates of an RDF store, where it is another one")
    options.add_argument("--seed", type=int, default=5)
    options.add_argument("--removed", type=int, default=0, help="how many statements are removed, in place of programs broken")
    options.add_argument("--rounds", type=int, default=1, help="how often each is asked and explained: the least time counts")
    given = options.parse_args()
    oracle = Path(os.environ["CONDGRAPH_DATA"]) / "oracle"
    records = [json.loads(line)["program"] for line in (oracle / "programs_small.jsonl").read_text().splitlines()]
    here = graphs(oracle)
    there: list[Any] = here
    if given.at:
        more = {"update": given.update} if given.update else {}
        there = [condgraph.open(given.at, graph=name, **more) for name in NAMES[: 1 if given.removed else 2]]
        for graph, local in zip(there, here, strict=False):
            graph.push(local)
    if given.removed:
        removed = removed_statements(records, given.removed, given.seed, statements(oracle), here[0], there[0])
        print("\n".join([*removed.wrong, str(removed)]))
        delete(there if given.at else [])
        return
    sent = counted(there) if given.at else []
    cases = empty_programs(records, given.programs, given.seed, *here)
    # The first explanation looks up names for all that follow.
    judged(cases[: len(RULES)], here[0], *there)
    result = judged(cases, here[0], *there, sent=lambda: len(sent), rounds=given.rounds)
    print("\n".join([*result.wrong, str(result)]))
    for rule in RULES:
        times = sorted(late / own for case, (own, late, _) in zip(cases, result.times, strict=True) if case.rule == rule)
        queries = sorted(number for case, (*_, number) in zip(cases, result.times, strict=True) if case.rule == rule)
        print(f"{rule}: {times[len(times) // 2]:.2f} times, three of four below {times[len(times) * 3 // 4]:.2f}; queries", end=" ")
        print(f"{queries[len(queries) // 2]}, at most {queries[-1]}")
    delete(there if given.at else [])


if __name__ == "__main__":
    main()
