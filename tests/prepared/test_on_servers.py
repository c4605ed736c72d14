"""Prepared programs on servers: the same answers as in process, whatever is given; on Neo4j one text
of the query for all values.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from tests.prepared.test_prepared import DIRECTED, HOSTILE, film_items
from tests.support.prepared import said
from tests.support.sparql_servers import fresh_virtuoso

PROGRAMS: list[tuple[Any, dict[str, Any]]] = [
    (DIRECTED, {}),
    ("FindAll() FilterStr(motto, $person) QueryName()", {}),
    ("Find($person) Relate($relation, backward) FilterConcept($concept) Count()", {"relation": "starred", "concept": "film"}),
    ("Find($person) QueryAttr(height)", {}),
    ("Query1: \"get_information(relation='directed_by', tail_entity=$person)\"", {}),
    ("?f : directed_by(?f, $person) and not starred(?f, $person)", {}),
    ("(UNKNOWN film 9) -[directed_by]-> ($person)", {}),
]


def compared(remote: Graph, local: Graph) -> None:
    for program, others in PROGRAMS:
        texts = set()
        for name in ["Ann", *HOSTILE, "Nobody"]:
            if "UNKNOWN" in program and (name != " ".join(name.split()) or name == "\0"):
                continue
            values = {"person": name, **others}
            here, there = said(local, program, values, spans=False), said(remote, program, values, spans=False)
            assert there == here, (program, name)
            if isinstance(there, list) and "UNKNOWN" not in program:
                answer = remote.prepare(program).run(values)
                texts.add(re.sub(r"(?m)^:param.*(?:\n|$)", "", answer.cypher) if answer.cypher else "")
        assert len(texts) <= 1, texts
    # The same prepared program again after a load.
    prepared = remote.prepare(DIRECTED)
    assert prepared(person="Ann").texts == ["Film 0"]
    assert {str(one) for one in prepared(person="Ann").evidence}


def test_neo4j(neo4j_uri: str) -> None:
    local = condgraph.open()
    local.add(film_items(), source="films")
    with condgraph.open(neo4j_uri, graph="prepared") as remote:
        remote.delete()
        remote.add(film_items(), source="films")
        compared(remote, local)
        prepared = remote.prepare(DIRECTED)
        assert prepared(person="Ann").texts == ["Film 0"]
        text = "Find(Ann) Relate(directed_by, backward) Count()"
        assert remote.kopl(text).values == [1]
        remote.add([condgraph.Statement("new", "directed_by", condgraph.Ref("p0"))], source="more")
        assert prepared(person="Ann").texts == ["Film 0", "new"]
        assert remote.kopl(text).values == [2]
        remote.delete()


@pytest.mark.service
@pytest.mark.parametrize("store", ["oxigraph", pytest.param("virtuoso", marks=pytest.mark.slow)])
def test_rdf(store: str, request: pytest.FixtureRequest) -> None:
    local = condgraph.open()
    local.add(film_items(), source="films")
    if store == "oxigraph":
        server = request.getfixturevalue("oxigraph_server")
        with condgraph.open(f"sparql+{server.query}", graph="prepared", update=server.update) as remote:
            remote.delete()
            remote.add(film_items(), source="films")
            compared(remote, local)
            remote.delete()
        return
    with fresh_virtuoso() as server, condgraph.open(f"sparql+{server.query}", graph="prepared") as remote:
        remote.push(local)  # type: ignore[attr-defined]
        compared(remote, local)
