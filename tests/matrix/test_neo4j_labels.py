"""Entities on Neo4j carry their direct concepts as labels: after every change, and for Neo4j Browser."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.engine.errors import OptionError, ReadOnlyError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement, Subclass
from condgraph.remote_neo4j import Neo4jGraph
from tests.support.labelled import carried, concepts
from tests.support.world import ODD, contents, world

pytestmark = pytest.mark.xdist_group("neo4j")

#: Concepts whose names need quoting, that two have, that cannot be labels, and a concept in one.
ITEMS: list[Item] = [
    *(Entity(name, name, EntityKind.CONCEPT) for name in ("person", ODD, "CondgraphEntity", "two\nlines")),
    Entity("other person", "person", EntityKind.CONCEPT),
    Subclass("person", "being"),
    *(Member("a", name) for name in ("person", "other person", ODD, "CondgraphEntity", "two\nlines")),
    Member("b", "other person"),
    Member("person", ODD),
    Statement("a", "knows", Ref("b"), (("since", "long"),)),
]


@pytest.fixture
def remote(neo4j_uri: str) -> Iterator[Neo4jGraph]:
    with condgraph.open(neo4j_uri, graph="labels", labels=True) as graph:
        assert isinstance(graph, Neo4jGraph)
        graph.delete()
        yield graph
        graph.delete()


def test_entities_carry_their_direct_concepts(remote: Neo4jGraph) -> None:
    report = remote.add(ITEMS, source="s")
    assert carried(remote) == {"a": {"person", ODD}, "b": {"person"}}
    (warning,) = report.warnings
    assert warning.startswith("the concepts 'CondgraphEntity', 'two\\nlines' are no label")
    labels = "MATCH (c:CondgraphConcept {graph: 'labels', id: 'person'}) RETURN labels(c) AS labels"
    assert remote.cypher(labels) == [{"labels": ["CondgraphEntity", "CondgraphConcept"]}]
    local = condgraph.open()
    local.add(ITEMS, source="s")
    assert contents(remote.snapshot()) == contents(local)
    for program in ("FindAll() FilterConcept(person) QueryName()", "FindAll() FilterConcept(being) Count()"):
        assert remote.kopl(program).texts == local.kopl(program).texts


def test_labels_follow_every_change(remote: Neo4jGraph) -> None:
    def check(expected: dict[str, set[str]]) -> None:
        assert carried(remote) == expected == concepts(remote.snapshot())

    remote.add([Member("a", "person"), Member("b", "person"), Statement("a", "p", "x")], source="one")
    # A concept that the graph did not have, and a further one of an entity that it had.
    remote.add([Member("a", "king"), Member("c", "person")], source="two")
    check({"a": {"person", "king"}, "b": {"person"}, "c": {"person"}})
    # What somebody else wrote on an entity stays.
    remote.store.connection.write("MATCH (e:CondgraphEntity {graph: 'labels', id: 'b'}) SET e:Favourite", {})
    remote.add([Member("b", "queen"), Statement("a", "p", "x")], source="two", replace=True)
    assert "Favourite" in str(remote.cypher("MATCH (e:CondgraphEntity {id: 'b'}) RETURN labels(e) AS l"))
    remote.store.connection.write("MATCH (e:CondgraphEntity {graph: 'labels', id: 'b'}) REMOVE e:Favourite", {})
    check({"a": {"person"}, "b": {"person", "queen"}})
    # A concept is renamed.
    remote.add([Entity("person", "human being", EntityKind.CONCEPT)], source="three")
    check({"a": {"human being"}, "b": {"human being", "queen"}})
    remote.unload("one")
    check({"b": {"queen"}})
    assert "human being" not in remote.store.carried()
    remote.delete()
    assert not remote.store.connection.read("MATCH (n:queen) RETURN n", {})


@pytest.mark.slow
def test_labels_are_given_and_taken_later(neo4j_uri: str, remote: Neo4jGraph) -> None:
    local = world()
    with condgraph.open(neo4j_uri, graph="labels", labels=False) as plain:
        plain.push(local)
        assert carried(plain) == {}
        assert plain.store.carried() is None
    with condgraph.open(neo4j_uri, graph="labels") as later:
        # What was decided stays.
        later.add([Member("b2", "person")], source="more")
        assert carried(later) == {}
        assert later.label() == []
        expected = concepts(later.snapshot())
        assert carried(later) == expected == {"a": {"human"}, "b": {"person"}, "b2": {"person"}}
        later.add([Member("b2", "human")], source="still more")
        assert carried(later)["b2"] == {"person", "human"}
        later.label(False)
        assert carried(later) == {}
        assert later.kopl("FindAll() FilterConcept(human) QueryName()").texts == ["Ann", "Bo"]
    with condgraph.open(neo4j_uri, graph="labels", read_only=True) as reader, pytest.raises(ReadOnlyError):
        reader.label()
    # The same content once more is no load, unless labels are asked for.
    remote.push(remote.snapshot())
    assert carried(remote) == concepts(remote.snapshot())


def test_an_option_of_others_is_refused(tmp_path: Path) -> None:
    for place in (str(tmp_path), "sparql+http://localhost:1/x"):
        with pytest.raises(OptionError, match="labels is about a Neo4j database"):
            condgraph.open(place, labels=True)
    with pytest.raises(OptionError, match="labels is for a graph of condgraph's own"):
        condgraph.open("bolt://localhost:1", labels=True, layout="native")


# -- files for Browser -----------------------------------------------------------------------------


def test_files_for_browser(remote: Neo4jGraph, neo4j_uri: str, tmp_path: Path) -> None:
    remote.add(ITEMS, source="s")
    folder = tmp_path / "browser"
    command = ["browser", "-d", neo4j_uri, "--graph", "labels", "-o", str(folder)]
    ran = CliRunner().invoke(app, command)
    warning = f"warning: {ODD!r} has the colour of all entities: Browser's styles cannot name a label with a backslash\n"
    assert (ran.exit_code, ran.stderr) == (0, warning), ran.stderr
    rules: dict[str, Any] = json.loads((folder / "condgraph.grass").read_text("utf-8"))
    assert not [rule for rule in rules if "odd" in rule]
    assert rules["node.person"]["color"] != rules["node.CondgraphEntity"]["color"]
    assert int(rules["node.CondgraphQualifier"]["diameter"][:-2]) < int(rules["node.CondgraphEntity"]["diameter"][:-2])
    texts = [path.read_text("utf-8") for path in sorted(folder.glob("*.cypher"))]
    assert len(texts) > 5
    with zipfile.ZipFile(folder / "queries.zip") as archive:
        assert [archive.read(name).decode() for name in archive.namelist()] == texts
    for text in texts:
        assert text.startswith("// ")
        assert remote.cypher(text), text
    assert CliRunner().invoke(app, command).exit_code == 2
    assert CliRunner().invoke(app, [*command, "--force"]).exit_code == 0
    remote.label(False)
    ran = CliRunner().invoke(app, [*command, "--force"])
    assert "warning: entities carry no labels of concepts" in ran.stderr
    for path in folder.glob("*.cypher"):
        assert remote.cypher(path.read_text("utf-8")), path
