"""Questions by way of Cypher: what the model is shown, the first query of its reply, what it is told of a wrong one, and the
recorded queries of two models over Movies.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.ask.programs import METHODS, first_program
from condgraph.ask.prompt import beyond_kopl
from condgraph.ask.records import VIAS, Asked
from condgraph.cypher.connection import Connection
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.graph import Graph
from condgraph.overview.schema import cypher_name
from condgraph.remote_native import NativeGraph
from tests.ask.asking import Scripted, countries
from tests.support.asked_movies import questions, read_value
from tests.support.lanes import by_lane
from tests.support.movies import movies
from tests.support.native_databases import content, database
from tests.support.plain_rows import plain

CAPITAL = "MATCH (c:country {name: 'Nepal'})-[:capital]->(city) RETURN city.name"


@pytest.fixture(scope="module")
def graph() -> Graph:
    return countries()


def asked(graph: Graph, *replies: str, question: str = "What is the capital of Nepal?", **options: Any) -> tuple[Asked, Scripted]:
    model = Scripted(*replies)
    return graph.ask(question, model, **{"via": "cypher", **options}), model


def test_each_method_has_a_name_of_via() -> None:
    assert ("auto", *METHODS) == VIAS


def test_an_answer_with_its_evidence(graph: Graph) -> None:
    found, model = asked(graph, CAPITAL)
    assert (found.status, found.language, found.texts, found.program) == ("answered", "cypher", ["Kathmandu"], CAPITAL)
    assert found.citations[0].startswith("Nepal | capital | Kathmandu")
    assert '- ({name: "Nepal"}): -[:capital]->(:`capital city`)' in model.told
    assert "(:country)-[:`head of government` {`end time`: time, `start time`: time}]->()" in model.told
    assert '(:mountains {height: quantity in "m" (1345 to 8167)})' in model.told


def test_the_package_s_demonstrations_run(graph: Graph) -> None:
    shown = graph.demos.static("cypher", 9)
    assert [graph.query(item.demo.program, language="cypher").texts for item in shown] == [
        ["Kathmandu"],
        ["3"],
        ["Indira Gandhi", "Rajiv Gandhi"],
        ["Nepal"],
    ]


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        (f"Sure!\n```cypher\n{CAPITAL}\n```\nDone.", CAPITAL),
        (f"Cypher: {CAPITAL}", CAPITAL),
        (json.dumps({"cypher": CAPITAL}), CAPITAL),
        (f"`{CAPITAL}`", CAPITAL),
        (f"{CAPITAL}\nORDER BY city.name\n\nQuestion: Who?\nMATCH (n) RETURN n", f"{CAPITAL}\nORDER BY city.name"),
        (f"{CAPITAL}\n\nThis query finds the capital; it doesn't write.", CAPITAL),
        (f"{CAPITAL};\nMATCH (n) DETACH DELETE n", f"{CAPITAL};"),
    ],
)
def test_the_first_query_of_a_reply(graph: Graph, reply: str, program: str) -> None:
    found, _ = asked(graph, reply)
    assert (found.texts, found.program) == (["Kathmandu"], program)


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        (f"{CAPITAL} LIM", None),
        (f"{CAPITAL}\nLI", None),
        (f"{CAPITAL}\n", None),
        (f"{CAPITAL}\nQuestion: Wh", CAPITAL),
        (f"{CAPITAL}\n{CAPITAL} LIM", CAPITAL),
    ],
)
def test_a_query_that_was_cut_off_is_none(reply: str, program: str | None) -> None:
    written = first_program(reply, "cypher", cut=True)
    assert (written and written.program) == program


@pytest.mark.parametrize("text", ["MATCH (n) " * 9_000, "RETURN '" + "(" * 90_000, "\n".join(["MATCH (a)-->(b)"] * 5_000)])
def test_hostile_replies_end(graph: Graph, text: str) -> None:
    found, _ = asked(graph, text, retries=0)
    assert found.status == "failed"


@pytest.mark.parametrize(
    "text", ["MATCH (n) DETACH DELETE n", "CREATE (n:country)", "MATCH (n) SET n.x = 1 RETURN n", "CALL dbms.listConfig()"]
)
def test_what_writes_is_refused(graph: Graph, text: str) -> None:
    before = graph.status().counts
    found, _ = asked(graph, text, retries=0)
    assert (found.status, found.attempts[0].stage) == ("failed", "writing")
    assert graph.status().counts == before


#: A wrong query, and what the model is told of it.
FAULTS = [
    ("MATCH (c:Nation {name: 'Nepal'})-[:capital]->(x) RETURN x.name", "unknown label 'Nation'"),
    ("MATCH ({name: 'Nepal'})-[:capitol]->(x) RETURN x.name", 'Nearest names: "capital"'),
    ("MATCH (c {name: 'Nepal'}) RETURN c.capital", "It is written so: (:country)-[:capital]->(:`capital city`)"),
    ("MATCH ({name: 'India'})-->(p) RETURN p.`start time`", "It is a property of relationships: -[:`head of government`]->"),
    ("MATCH (m)-[:height]->(x) RETURN x", '(:mountains {height: quantity in "m" (1345 to 8167)})'),
    ("MATCH ({name: 'Nepal'})<-[:capital]-(x) RETURN x.name", "'capital' forward"),
    ("MATCH ({name: 'nepal'})-[:capital]->(x) RETURN count(x)", 'Nearest names: "Nepal"'),
    ("MATCH (m:mountains {range: 'Himalaia'}) RETURN max(m.height)", '"Himalayas"'),
    ("MATCH ({name: 'Nepal'}-[:capital]->(x) RETURN x.name", "It has 2 opening and 1 closing parentheses."),
    ("I think it is Kathmandu.", "There is no program in the reply. Write one query such as MATCH"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "told"), FAULTS)
def test_a_wrong_query_is_repaired(graph: Graph, wrong: str, told: str) -> None:
    found, model = asked(graph, wrong, CAPITAL)
    assert (found.status, found.texts, found.calls) == ("answered", ["Kathmandu"], 2)
    assert told in found.attempts[0].feedback
    assert "on_unknown" not in model.told


def test_counts_of_what_is_there_are_answers(graph: Graph) -> None:
    found, _ = asked(
        graph, "MATCH (m:mountains) WHERE m.height > 100000 RETURN count(m)", question="How many are higher than 100 km?"
    )
    assert (found.status, found.texts) == ("answered", ["0"])


def test_names_of_any_kind_are_written_as_cypher_reads_them() -> None:
    names = ["born", "head of government", "a`b", "back\\slash", 'quo"te', "naïve", "1st", "MATCH"]
    graph = condgraph.open()
    items: list[Any] = [Entity("c", "some kind", EntityKind.CONCEPT), Entity("a", "A"), Entity("b", "B"), Member("a", "c")]
    graph.add([*items, *(Statement("a", name, Ref("b")) for name in names)], source="odd")
    for name in names:
        assert graph.cypher(f"MATCH (:`some kind`)-[:{cypher_name(name)}]->(x) RETURN x.name").texts == ["B"]
        found, model = asked(
            graph, f"MATCH ({{name: 'A'}})-[:{cypher_name(name)}]->(x) RETURN x.name", question=f"What is the {name} of A?"
        )
        assert found.texts == ["B"]
        assert f"-[:{cypher_name(name)}]->" in model.told


def test_the_property_that_has_the_name_is_shown(data: Path) -> None:
    _, model = asked(movies(data), "NONE", question="Who acted with Keanu Reeves in The Matrix?")
    assert '- ({name: "Keanu Reeves"}) -[:ACTED_IN]-> ({title: "The Matrix"})' in model.told


# -- recorded queries of two models ----------------------------------------------------------------


def records(data: Path) -> list[dict[str, Any]]:
    with (data / "text2cypher_movies" / "questions.jsonl").open(encoding="utf-8") as lines:
        return list(map(json.loads, lines))


def rows(found: Asked) -> list[tuple[Any, ...]]:
    """The rows of an answer, with lists of lists in any order."""
    return [] if found.answer is None else [tuple(map(_cell, row)) for row in found.answer.values]


def _cell(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(sorted(map(_cell, value), key=str))
    value = plain(value)
    # The records have six places.
    return round(value, 6) if isinstance(value, float) else value


def agrees(given: list[tuple[Any, ...]], record: dict[str, Any], *, among: bool = False) -> bool:
    """Whether rows are what the two models' queries agree on, on a Neo4j of their own; with `among` whether they have it."""
    if record["rows"] is None:
        wanted, first = set(map(read_value, record["answer"])), {row[0] for row in given}
        return wanted <= first if among else wanted == first
    rest = Counter(tuple(_cell(read_value(cell)) for cell in row) for row in record["rows"])
    return rest <= Counter(given) if among else rest == Counter(given)


_LIMITED = re.compile(r"\bLIMIT\s+\d+", re.IGNORECASE)


@pytest.mark.parametrize("model", ["opus", "gpt4"])
def test_recorded_queries_are_answered_as_on_neo4j(data: Path, model: str) -> None:
    """All are, but for rows that LIMIT takes among equals, and for names that the graph does not have (refused, null on
    Neo4j).
    """
    graph, outcomes = movies(data), Counter[str]()
    for record in records(data)[:: by_lane(6, 2, 1)]:
        text, question = record[model], record["question"]
        found, _ = asked(graph, text, question=question, retries=0, demos=0)
        if agrees(rows(found), record):
            outcomes["right"] += 1
        elif found.answer is None:
            outcomes["refused"] += 1
            assert found.attempts[0].code == "unknown-name", (text, found)
        else:
            outcomes["equals"] += 1
            every, _ = asked(graph, _LIMITED.sub("", text), question=question, retries=0, demos=0)
            assert _LIMITED.search(text), (text, found)
            assert agrees(rows(every), record, among=True), (text, found)
    print(model, dict(outcomes))
    assert outcomes["right"] + outcomes["equals"] >= 0.9 * outcomes.total()


@pytest.mark.reads_data
@pytest.mark.xdist_group("neo4j native")
def test_a_database_of_others_answers_itself(emptied_neo4j_uri: str) -> None:
    """Read-only, of the names that it has, and with evidence."""
    acted = "MATCH (p:Person)-[:ACTED_IN]->(m:Movie {title: 'The Matrix'}) RETURN p.name AS who, p.born ORDER BY p.born LIMIT 2"
    with database(emptied_neo4j_uri, "movies") as driver, NativeGraph(Connection(emptied_neo4j_uri)) as graph:
        before = content(driver)
        for refused in ("MATCH (n) DETACH DELETE n", "CREATE (n:Movie)", "MATCH (m:Film) RETURN m.title"):
            found, _ = asked(graph, refused, retries=0)
            assert (found.status, found.answer) == ("failed", None)
        question = "Who acted in The Matrix?"
        found, model = asked(graph, acted.replace("The Matrix", "The Matrx"), acted, question=question)
        assert 'Nearest names: "The Matrix"' in found.attempts[0].feedback
        assert (found.status, found.texts) == ("answered", ["Laurence Fishburne | 1961", "Hugo Weaving | 1960"][::-1])
        assert found.answer is not None
        assert found.answer.columns[0] == "who"
        assert found.answer.evidence
        assert '({title: "The Matrix"}): <-[:ACTED_IN]-(:Person)' in model.told
        assert content(driver) == before


# -- which language --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "via"),
    [
        ("Which person directed the most movies?", "cypher"),
        ("What is the average rating of each movie?", "cypher"),
        ("Which taglines start with 'The'?", "cypher"),
        ("Who directed Cloud Atlas?", "kopl"),
        ("When was Tom Hanks born?", "kopl"),
    ],
)
def test_auto_says_why_it_takes_a_language(data: Path, question: str, via: str) -> None:
    model = Scripted("NONE")
    found = movies(data).ask(question, model, demos=0)
    assert found.reason.startswith(f"{via}, since statements of the graph have qualifiers")
    assert found.data()["reason"] == found.reason
    assert ("one Cypher query" in model.told) == (via == "cypher")
    assert not movies(data).ask(question, model, demos=0, via="kopl").reason


def test_auto_takes_cypher_where_kopl_does_not_do(data: Path) -> None:
    """Questions with a program of ours in KoPL alone, and those that need a table clause or a pattern."""
    kopl = [one.text for one in questions() if one.language == "kopl" and one.table is None]
    others = [one.text for one in questions() if one.text not in kopl]
    assert not [text for text in kopl if beyond_kopl(text)]
    assert sum(beyond_kopl(text) is not None for text in others) >= 0.6 * len(others)
