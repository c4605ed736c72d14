"""Random Cypher asked of kglite and of condgraph over the same graph: which forms kglite takes, and where it differs.

    python benchmarks/cypher_kglite.py [--queries 1000]

Needs `kglite` (PyPI). Rows of nodes, relationships and paths are left out: kglite has values of its own for them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import kglite

from condgraph.cypher.servers import NEO4J
from condgraph.engine.errors import CondgraphError
from tests.support.random_cypher import KEY, Maker, PropertyGraph, agree, common, ugly


def loaded(graph: PropertyGraph) -> Any:
    """The graph in kglite, written by its own Cypher."""
    result = kglite.KnowledgeGraph()
    # It takes no property that the first node of a label had not; null is one.
    names = {name for _, properties in graph.nodes.values() for name in properties}
    for key, (labels, properties) in graph.nodes.items():
        listed, given = _listed(dict.fromkeys(sorted(names)) | properties | {KEY: key})
        result.cypher(f"CREATE (n{''.join(f':{NEO4J.quote(label)}' for label in labels)} {listed})", params=given)
    edge_names = {name for *_, properties in graph.relationships for name in properties}
    for start, type_, end, properties in graph.relationships:
        listed, given = _listed(dict.fromkeys(sorted(edge_names)) | properties)
        ends = "MATCH (a), (b) WHERE a.key = $a AND b.key = $b"
        result.cypher(f"{ends} CREATE (a)-[:{NEO4J.quote(type_)} {listed}]->(b)", params=given | {"a": start, "b": end})
    return result


def _listed(properties: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    names = {f"p{number}": name for number, name in enumerate(properties)}
    listed = ", ".join(f"{NEO4J.quote(name)}: ${given}" for given, name in names.items())
    return f"{{{listed}}}", {given: properties[name] for given, name in names.items()}


def main() -> None:
    """Compare, and print the counts with the first differences of each form."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1000)
    queries = parser.parse_args().queries
    graph = ugly()
    here, there = graph.in_memory(), loaded(graph)
    for what in ("MATCH (n) RETURN count(n) AS n", "MATCH ()-[r]->() RETURN count(r) AS n"):
        print(what, here.cypher(what).values, [list(row.values()) for row in there.cypher(what)])
    counts: Counter[str] = Counter()
    forms: Counter[str] = Counter()
    for seed in range(queries):
        query = Maker(graph, seed).query()
        try:
            answer = here.cypher(query.text, query.parameters, timeout=60, on_unknown="empty")
            ours = [[common(value) for value in (row if isinstance(row, tuple) else (row,))] for row in answer.values]
        except CondgraphError:
            counts["refused here"] += 1
            continue
        if any(word in repr(ours) for word in ("('node'", "('rel'", "('path'")):
            counts["nodes, relationships, paths: left out"] += 1
            continue
        try:
            theirs = [[common(value) for value in row.values()] for row in there.cypher(query.text, params=query.parameters)]
        except Exception as error:  # noqa: BLE001 - whatever another engine raises is a refusal
            counts["refused by kglite"] += 1
            forms[f"refused: {re.sub(r' at line.*?: | at position.*', ': ', str(error))[:70]}"] += 1
            continue
        same = agree(query, ours, theirs)
        counts["equal" if same else "different"] += 1
        if not same:
            form = " ".join(sorted(query.forms)[:3])
            forms[f"different: {form}"] += 1
            if counts["different"] <= 12:
                print(f"{seed}: {query.text} {query.parameters}\n   here:   {str(ours)[:200]}\n   kglite: {str(theirs)[:200]}")
    print(dict(counts))
    for form, count in forms.most_common(25):
        print(f"{count:5} {form}")


if __name__ == "__main__":
    main()
