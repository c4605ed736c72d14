"""Movies read over Bolt, and the same database exported as files in three forms and loaded from these:
one graph, and one set of answers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import neo4j

import condgraph
from condgraph.graph import Graph
from tests.loaders.test_property_graph import Edge, Node, as_apoc, as_import, as_neptune
from tests.support.native_databases import database
from tests.support.northwind import statements

PROGRAMS = [
    "Find(Tom Hanks) Relate(ACTED_IN, forward) {filter}(released, 2000, >) QueryName()",
    "FindAll() FilterConcept(Person) {filter}(born, 1950, <) QueryName()",
    "Find(Keanu Reeves) Find(The Matrix) QueryRelationQualifier(ACTED_IN, roles)",
    "FindAll() FilterConcept(Movie) SelectAmong(released, smallest)",
    "Find(Cloud Atlas) Relate(REVIEWED, backward) QueryName()",
    "Find(Cloud Atlas) Relate(ACTED_IN, backward) Relate(ACTED_IN, forward) QueryName()",
    "Find(The Matrix) QueryAttr(tagline)",
    "FindAll() FilterConcept(Movie) Count()",
]
CLAUSES = [
    "group by released show count() order by count() desc, released",
    "show name, count(^ACTED_IN) as n order by n desc, name limit 10",
]


def exported(driver: neo4j.Driver) -> tuple[list[Node], list[Edge]]:
    """The nodes and relationships that the database has, as a program reads them."""
    with driver.session(default_access_mode="READ") as session:
        nodes = [
            (f"n{row['id'].rpartition(':')[2]}", row["labels"][0], dict(row["values"]))
            for row in session.run("MATCH (n) RETURN elementId(n) AS id, labels(n) AS labels, properties(n) AS values")
        ]
        edges = [
            (f"n{row['a'].rpartition(':')[2]}", row["type"], f"n{row['b'].rpartition(':')[2]}", dict(row["values"]))
            for row in session.run(
                "MATCH (a)-[r]->(b) RETURN elementId(a) AS a, elementId(b) AS b, type(r) AS type, properties(r) AS values"
            )
        ]
    return nodes, edges


def contents(graph: Graph) -> Counter[str]:
    """What a graph says, entities by their names, which are different here, without what an export
    alone has: the ids of nodes as a property. A whole number under a header that speaks of time is a
    year in a file, whose columns may have no types, and a number in the database, which has them.
    """
    lines = [json.loads(line) for line in statements(graph)]
    names = {one["entity"]: one["name"] for one in lines if "entity" in one}
    assert len(set(names.values())) == len(names)

    def named(found: re.Match[str]) -> str:
        text = json.loads(found[0])
        return json.dumps(names.get(text, text))

    found: Counter[str] = Counter()
    for one in lines:
        one.pop("row", None)
        if isinstance(one.get("o"), dict) and one["o"].get("precision") == "year":
            one["o"] = {"n": int(one["o"]["t"])}
        if "entity" not in one and one.get("p") != "nodeId":
            found[re.sub(r'"(?:[^"\\]|\\.)*"', named, json.dumps(one, sort_keys=True))] += 1
    return found


def test_one_graph(emptied_neo4j_uri: str, data: Path, tmp_path: Path) -> None:
    with database(emptied_neo4j_uri, "movies") as driver, condgraph.open(emptied_neo4j_uri) as there:
        nodes, edges = exported(driver)
        assert (len(nodes), len(edges)) == (171, 253)
        pulled = there.snapshot()
        wanted = contents(pulled)
        files: dict[str, Any] = {
            "import": as_import(tmp_path / "import", nodes, edges),
            "neptune": as_neptune(tmp_path / "neptune", nodes, edges),
            "apoc": as_apoc(tmp_path / "apoc.csv", nodes, edges),
        }
        for form, source in files.items():
            graph = condgraph.open("memory:")
            assert graph.load(source).formats == ("property-graph",)
            found = contents(graph)
            assert found == wanted, (form, list((wanted - found).items())[:5], list((found - wanted).items())[:5])
            for program in PROGRAMS:
                # Columns of an export by APOC have no types, so that years are times there.
                words = ("FilterYear" if form == "apoc" else "FilterNum", "FilterNum")
                texts = [program.format(filter=word) for word in words]
                answers = [one.kopl(text) for one, text in zip((graph, there), texts, strict=True)]
                assert (answers[0].values, answers[0].texts) == (answers[1].values, answers[1].texts), (form, program)
                assert answers[0].values, program
            for clause in CLAUSES:
                tables = [one.query("FindAll() FilterConcept(Movie)", table=clause).cells for one in (graph, there)]
                assert tables[0] == tables[1], (form, clause)
