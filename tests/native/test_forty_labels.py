"""A database of others with forty labels, whose properties of one name are of several types, some with
an index: what is asked of all of it is said in texts that the server can plan, and gives what it
gives in process.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date
from typing import Any

import neo4j
import pytest

from condgraph.cypher.connection import Connection
from condgraph.cypher.native.introspect import look
from condgraph.graph import Graph
from condgraph.remote_native import NativeGraph, typed
from tests.support.differential import Comparison
from tests.support.lanes import by_lane
from tests.support.native_databases import database
from tests.support.neo4j_servers import shared_server

pytestmark = [pytest.mark.xdist_group("neo4j native"), pytest.mark.service]
LABELS = 40
#: A query in one line would take the server's planner a minute at ten times this.
MAX_QUERY = 30_000


def _value(dice: random.Random, key: int, label: int) -> Any:
    """A value of a property, of one type in most labels, of another in every seventh."""
    kind = (key + (label % 7 == 0)) % 6
    text = dice.choice(["red", "blue", " two  words ", "Ärger", "7", "2001-05-06", "thing 1 2"])
    return [
        *(dice.choice([3, 2.5, 10**16 + 1]), text, date(2000 + dice.randrange(9), 1 + dice.randrange(12), 3)),
        *([text, "red"], str(dice.randrange(30)), dice.random() < 0.5),
    ][kind]


def filled(driver: neo4j.Driver) -> None:
    """Eleven nodes a label, one in ten of them of another label as well; indexes of some; a few nodes
    without a label.
    """
    dice = random.Random(5)
    with driver.session() as session:
        for label in range(LABELS):
            rows = [
                {"name": f"thing {label} {number}"}
                | {f"p {key}": _value(dice, key, label) for key in range(label % 5, label % 5 + 9) if dice.random() < 0.8}
                for number in range(11)
            ]
            session.run(f"UNWIND $rows AS row CREATE (n:`L {label}`) SET n = row", rows=rows).consume()
            for every, key in ((2, "name"), (3, "p 1"), (4, "p 4")):
                if label % every == 0:
                    session.run(f"CREATE INDEX FOR (n:`L {label}`) ON (n.`{key}`)").consume()
        session.run("MATCH (n:`L 3`) WHERE n.name ENDS WITH '4' SET n:`L 8`").consume()
        session.run("UNWIND range(1, 3) AS i CREATE ({name: 'stray ' + i, `p 1`: 'red', `p 0`: i})").consume()
        for number in range(LABELS):
            session.run(
                f"MATCH (a:`L {number}`), (b:`L {(number + 1) % LABELS}`) WHERE right(a.name, 1) = right(b.name, 1) "
                f"CREATE (a)-[:`to {number % 13}` {{at: date('2001-02-03'), weight: 2}}]->(b)"
            ).consume()
        session.run("CALL db.awaitIndexes(60)").consume()


@pytest.fixture(scope="module", params=["lts", pytest.param("current", marks=pytest.mark.slow)])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Graph, NativeGraph]]:
    """On each version that is supported."""
    from neo4j_server import CURRENT, LTS

    uri = shared_server(LTS if request.param == "lts" else CURRENT, "emptied")["uri"]
    with database(uri) as driver:
        filled(driver)
        with NativeGraph(Connection(uri)) as there:
            yield there.snapshot(), there


@pytest.fixture
def asked(pair: tuple[Graph, NativeGraph], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the server is asked."""
    connection, texts = pair[1].store.connection, list[str]()
    for name in ("read", "ask"):
        ask = getattr(connection, name)
        monkeypatch.setattr(connection, name, lambda text, *given, ask=ask, **more: texts.append(text) or ask(text, *given, **more))
    return texts


def _get(**said: str) -> str:
    given = ", ".join(f"{name}='{value}'" for name, value in said.items() if name != "value")
    return f'Query1: "get_information({given}{", " if given and "value" in said else ""}{said.get("value", "")})"'


_PROGRAMS = [
    'Find("thing 3 4") Relate(to 3, forward) QueryName()',
    'Find("thing 8 4") QueryAttr(p 4)',
    'Find("stray 2") QueryAttr(p 0)',
    'FindAll() FilterConcept("L 3") QueryName()',
    'FindAll() FilterNum("p 0", 2, >) Count()',
    'FindAll() FilterStr("p 1", red) QueryName()',
    'FindAll() FilterStr("p 3", red) FilterConcept("L 8") Count()',
    'Find("thing 3 4") Find("thing 4 4") QueryRelation()',
    'Find("thing 3 4") Find("thing 4 4") QueryRelationQualifier(to 3, at)',
    'FindAll() FilterConcept("L 9") SelectAmong("p 6", largest)',
    _get(head_entity="thing 3 4"),
    _get(tail_entity="thing 4 4"),
    _get(tail_entity="red"),
    _get(tail_entity="nothing like this"),
    _get(head_entity="thing 3 4", tail_entity="thing 4 4"),
    _get(relation="to 3", tail_entity="thing 4 4"),
    _get(key="p 4", value="value>'20'"),
    _get(value="value>'2004'"),
    _get(value="value='red'"),
    'Find("nobody at all") QueryAttr(p 4)',
]


@pytest.mark.slow
def test_it_is_what_it_is_in_process(pair: tuple[Graph, NativeGraph], asked: list[str], request: pytest.FixtureRequest) -> None:
    lts = request.node.callspec.params["pair"] == "lts"
    found = Comparison(*pair).ask_all(_PROGRAMS[:: by_lane(6, 2, 1)] if lts else _PROGRAMS[1 :: by_lane(6, 6, 1)], evidence=True)
    assert not found.different, found.report()
    assert found.equal > 3
    assert max(map(len, asked)) < MAX_QUERY


@pytest.mark.slow
def test_texts_are_looked_for_by_one_query(pair: tuple[Graph, NativeGraph], asked: list[str]) -> None:
    """Those that an index has, those that have none, and what is read from lists and numbers."""
    names = pair[1].store.names()
    known = {
        text: names.has_text(text) for text in ("blue", "red", "two words", "Ärger", "thing 3 4", "L 3", "stray 1", "magenta", "")
    }
    assert [text for text, there in known.items() if not there] == ["magenta", ""]
    asked.clear()
    assert not names.has_text("magenta")
    assert len(asked) <= 3
    assert max(map(len, asked)) < MAX_QUERY


@pytest.mark.slow
def test_it_is_opened_by_few_texts(pair: tuple[Graph, NativeGraph], asked: list[str]) -> None:
    """A text for each label would be planned for each label."""
    look(pair[1].store.connection, typed)
    assert len(set(asked)) < 16
    assert max(map(len, asked)) < MAX_QUERY
