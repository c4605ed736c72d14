"""`Graph.match`: what it takes, what it gives, when it ends; and the command."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.engine.errors import CancelledError, OptionError, ParseError, PlanError, UnknownNameError
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement, Subclass
from condgraph.engine.values import Quantity
from condgraph.languages.pattern.pattern import Pattern
from condgraph.patterns.graph import SearchGraph, text_nodes
from tests.support.pace import quick_enough

FILMS = [
    Entity("film", "film", EntityKind.CONCEPT),
    Entity("western", "western film", EntityKind.CONCEPT),
    Entity("person", "person", EntityKind.CONCEPT),
    Subclass("western", "film"),
    Member("f1", "western"),
    Member("f2", "film"),
    Member("p1", "person"),
    Entity("f1", "Unforgiven"),
    Entity("f2", "Bird"),
    Entity("f3", "Mystic River"),
    Entity("p1", "Clint Eastwood"),
    Entity("p2", "Gene Hackman"),
    Statement("f1", "directed by", Ref("p1"), (("year", "1992"),), row=3),
    Statement("f2", "directed by", Ref("p1")),
    Statement("f3", "directed by", Ref("p1")),
    Statement("f1", "acted in by", Ref("p1")),
    Statement("f1", "acted in by", Ref("p2")),
    Statement("f1", "tagline", "It's a hell of a thing, killing a man"),
    Statement("f1", "length", Quantity(131, "minute")),
]


@pytest.fixture
def films() -> condgraph.Graph:
    graph = condgraph.open("memory:")
    graph.add(FILMS, source="films")
    return graph


def test_an_answer_has_all_there_is_to_know(films: condgraph.Graph) -> None:
    found = films.match([("Clint Eastwod", "directed", "UNKNOWN film 1")], k=2)
    assert found.texts == ["Unforgiven", "Bird"]
    assert [entity.id for entity in found.entities] == ["f1", "f2"]
    assert found.exact
    assert found.encoder == "lexical-1"
    best = found.solutions[0]
    assert best["film 1"] == best["UNKNOWN film 1"] == Entity("f1", "Unforgiven")
    assert [match.term is None for match in best.nodes] == [False, True]
    assert best.total == sum(match.term or 0 for match in best.nodes) + (best.edges[0].term or 0) + best.edges[0].against
    assert best.distance == best.total / 1e6
    edge = best.edges[0]
    assert edge.reversed
    assert edge.triple == ("Unforgiven", "directed by", "Clint Eastwood")
    assert edge.statement.qualifiers == (("year", "1992"),)
    assert [(source.name, row) for source, row in edge.statement.sources] == [("films", 3)]
    assert len(found.evidence) == 2
    assert found.data()[0]["UNKNOWN film 1"] == "Unforgiven"
    assert found.to_arrow().num_rows == 2
    assert "directed = Unforgiven | directed by | Clint Eastwood" in found.explain()
    assert [step.size for step in found.trace] == [1, 1, 1]
    assert found.verbalised() == (
        '{\n"graph [1]": [\n("Unforgiven", "directed by", "Clint Eastwood"),\n],\n'
        '"graph [2]": [\n("Bird", "directed by", "Clint Eastwood"),\n],\n}'
    )
    assert Pattern.of(found.verbalised().replace('"graph [1]"', '"triples"')).edges[0].relation == "directed by"


def test_direction(films: condgraph.Graph) -> None:
    pattern = [("Clint Eastwood", "directed by", "UNKNOWN 1")]
    assert films.match(pattern, k=None).texts == ["Unforgiven", "Bird", "Mystic River"]
    right = [("UNKNOWN 1", "directed by", "Clint Eastwood")]
    assert films.match(right, k=None, directed=True).solutions[0].total == 0
    best = films.match(pattern, k=1, directed=True).solutions
    assert not len(best) or best[0].total > 0


def test_texts_are_nodes_and_numbers_are_not(films: condgraph.Graph) -> None:
    found = films.match([("UNKNOWN 1", "tagline", "a hell of a thing")], k=1)
    assert found.texts == ["Unforgiven"]
    assert found.solutions[0].nodes[1].value == "It's a hell of a thing, killing a man"
    lengths = films.match([("UNKNOWN 1", "lengths", "UNKNOWN 2")], k=9)
    assert all("minute" not in match.text for one in lengths for match in one.nodes)
    what = "but its values are numbers, times or qualifiers, which are not nodes; a number or a time is asked with an operator, as "
    what += "= 1930 or > 5"
    assert lengths.warnings[0] == f"'length' is nearer to 'lengths' than any edge, {what}"
    assert lengths.doubtful
    assert films.match("(UNKNOWN 1) -[length]-> (> 5 minute)", k=None).solutions


def test_types(films: condgraph.Graph) -> None:
    pattern = [("UNKNOWN film 1", "directed by", "Clint Eastwood")]
    found = films.match(pattern, k=None)
    assert found.texts == ["Unforgiven", "Bird", "Mystic River"]
    assert any("k_types" in warning for warning in found.warnings)
    # Mystic River is said to be nothing; Unforgiven is a film by the closure.
    found = films.match(pattern, k=None, k_types=1)
    assert found.texts == ["Unforgiven", "Bird"]
    assert found.approximate
    assert not found.exact
    assert found.warnings == ["approximate: candidates are limited by k_types=1"]
    membership = films.match([("UNKNOWN 1", "instance of", "film")], k=None).solutions[0].edges[0]
    assert membership.statement.predicate == "instance of"
    assert membership.triple == ("Bird", "instance of", "film")
    untyped = condgraph.open("memory:")
    untyped.add([item for item in FILMS if isinstance(item, Statement)])
    assert "the graph has no types, so hints at them do nothing: 'film'" in untyped.match(pattern).warnings


def test_injective_and_distinct(films: condgraph.Graph) -> None:
    pattern = [("UNKNOWN 1", "directed by", "UNKNOWN 2"), ("UNKNOWN 3", "directed by", "UNKNOWN 2")]
    assert all(one["1"] != one["3"] for one in films.match(pattern, k=None, injective=True))
    assert any(one["1"] == one["3"] for one in films.match(pattern, k=None, free=True))
    for apart in ({"3": "Bird"}, {"UNKNOWN 3": [Ref("f2")]}, {"3": {Entity("f2", "Bird")}}, "Bird"):
        assert all(one["3"].id != "f2" for one in films.match(pattern, k=None, distinct_from=apart))  # type: ignore[union-attr]
    with pytest.raises(UnknownNameError, match="unknown entity 'Birt'; nearest: 'Bird'"):
        films.match(pattern, distinct_from="Birt")
    with pytest.raises(UnknownNameError, match="unknown entity 'f9'"):
        films.match(pattern, distinct_from=Ref("f9"))


def test_groups_have_counts(films: condgraph.Graph) -> None:
    pattern = [("UNKNOWN 1", "directed by", "UNKNOWN 2"), ("UNKNOWN 3", "directed by", "UNKNOWN 2")]
    found = films.match(pattern, k=None, group_by="1")
    assert found.texts == ["Unforgiven", "Bird", "Mystic River"]
    assert [one.count for one in found.solutions] == [2, 2, 2]
    both = films.match(pattern, k=None, group_by=["1", "2"])
    assert both.texts[0] == "Unforgiven, Clint Eastwood"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is how many"),
        ({"k": True}, "k is how many"),
        ({"k_nodes": 0}, "k_nodes is how many candidates"),
        ({"directed": 1}, "directed is True, False, or None"),
        ({"group_by": 3}, "group_by is the name of a node"),
        ({"distinct_from": 3}, "distinct_from is a name"),
        ({"timeout": 0}, "timeout is in seconds"),
        ({"limit": -1}, "limit is the most"),
    ],
)
def test_options_are_checked(films: condgraph.Graph, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        films.match([("a", "b", "UNKNOWN c 1")], **options)


def test_unknown_options_and_nodes(films: condgraph.Graph) -> None:
    with pytest.raises(OptionError, match="takes no option 'groupby'"):
        films.query([("a", "b", "UNKNOWN c 1")], groupby="c 1")
    with pytest.raises(PlanError, match="has no node 'd'"):
        films.match([("a", "b", "UNKNOWN c 1")], group_by="d")
    with pytest.raises(ParseError):
        films.match("(a) -[b]->")


def test_queries_know_patterns(films: condgraph.Graph) -> None:
    text = "(UNKNOWN film 1) -[directed by]-> (Clint Eastwood)"
    assert films.query(text).texts == films.query(text, language="pattern", k=3).texts == films.match(text).texts
    assert "film 1: unknown, of type 'film'" in films.explain(text)


def test_an_answer_to_a_pattern_is_no_table(films: condgraph.Graph) -> None:
    found = films.query("(UNKNOWN film 1) -[directed by]-> (Clint Eastwood)", limit=2)
    assert (found.columns, found.cells) == ((), [])
    assert len(found.values) + found.cut == 3
    assert films.query("(UNKNOWN film 1) -[directed by]-> (Clint Eastwood)").cut == 0
    with pytest.raises(PlanError, match="only the rows of a table"):
        found.evidence_of(0)


def crowd(size: int) -> condgraph.Graph:
    graph = condgraph.open("memory:")
    graph.add(Statement(f"a{i}", "knows", Ref(f"b{i * j % size}")) for i in range(size) for j in range(1, 30))
    return graph


def test_a_deadline_gives_the_best_so_far() -> None:
    graph = crowd(300)
    pattern = [(f"UNKNOWN {i}", "knows", f"UNKNOWN {i + 1}") for i in range(8)]
    graph.match(pattern[:1])
    begin = time.monotonic()
    found = graph.match(pattern, k=None, timeout=0.3)
    assert quick_enough(time.monotonic() - begin, 20)
    assert not found.complete
    assert not found.exact
    assert "the best found so far" in " ".join(found.warnings) or "nothing was found" in " ".join(found.warnings)
    assert all(len({node.text for node in one.nodes}) == 9 for one in list(found.solutions)[:3])


def test_a_search_can_be_cancelled() -> None:
    graph = crowd(300)
    pattern = [(f"UNKNOWN {i}", "knows", f"UNKNOWN {i + 1}") for i in range(8)]
    graph.match(pattern[:1])
    event = threading.Event()
    threading.Timer(0.3, event.set).start()
    with pytest.raises(CancelledError):
        graph.match(pattern, k=None, cancelled=event)


def test_asking_from_asyncio(films: condgraph.Graph) -> None:
    async def ask() -> list[str]:
        found = await condgraph.AsyncGraph(films).match([("UNKNOWN 1", "directed by", "Clint Eastwood")])
        return found.texts

    assert asyncio.run(ask()) == ["Unforgiven", "Bird", "Mystic River"]


def test_leaves_are_not_multiplied(extended: list[int]) -> None:
    """Three of a thousand neighbours each: a billion solutions, of which the first are given and
    few rows are made.
    """
    graph = condgraph.open("memory:")
    graph.add(Statement(f"film {i:04}", "genre", Ref("Drama")) for i in range(1000))
    pattern = [(f"UNKNOWN {i}", "genre", "Drama") for i in (1, 2, 3)]
    first = graph.match(pattern, k=3).solutions
    assert [[match.text for match in one.nodes] for one in first] == [
        ["film 0000", "Drama", "film 0001", f"film 000{i}"] for i in (2, 3, 4)
    ]
    assert sum(extended) < 2_000
    assert len(graph.match(pattern, k=None, group_by="2")) == 1000
    assert sum(extended) < 40_000


def test_arms_are_not_multiplied_for_the_first_solutions(extended: list[int]) -> None:
    """Two arms of two edges at a hub: four million solutions at one distance, and the ids say early
    which come first.
    """
    graph = condgraph.open("memory:")
    graph.add(Statement(f"film {i:04}", "genre", Ref("Drama")) for i in range(1000))
    graph.add(Statement(f"film {i:04}", "actor", Ref(f"actor {i + more:04}")) for i in range(1000) for more in (0, 1))
    pattern = [(f"UNKNOWN {i}", "genre", "Drama") for i in (1, 2)] + [(f"UNKNOWN {i}", "actor", f"UNKNOWN {i}{i}") for i in (1, 2)]
    found = graph.match(pattern, k=2).solutions
    assert [[match.text for match in one.nodes] for one in found] == [
        ["film 0000", "Drama", "film 0001", "actor 0000", "actor 0001"],
        ["film 0000", "Drama", "film 0001", "actor 0000", "actor 0002"],
    ]
    assert sum(extended) < 100_000


def test_the_adjacency_has_every_edge_from_both_ends(films: condgraph.Graph) -> None:
    snapshot = films.current
    graph = SearchGraph.of(snapshot)
    texts = snapshot.texts.take(text_nodes(snapshot))
    names = [*(snapshot.ident(i) for i in range(snapshot.entities)), *texts]
    edges = set()
    for node in range(graph.size):
        _, found, labels = graph.expand(np.array([node]))
        assert found.tolist() == sorted(found.tolist())
        for other, label in zip(found.tolist(), labels.tolist(), strict=True):
            if label < 2 * graph.predicates:
                edges.add((names[node], names[other], label >> 1) if label % 2 == 0 else (names[other], names[node], label >> 1))
                pair, labels_there = graph.between(np.array([node]), np.array([other]))
                assert label in labels_there
                assert len(pair) >= 1
    wanted = {(s.subject, s.object.id if isinstance(s.object, Ref) else s.object) for s in FILMS if isinstance(s, Statement)}
    wanted |= {(m.entity, m.concept) for m in FILMS if isinstance(m, Member)}
    assert {edge[:2] for edge in edges} == {pair for pair in wanted if not isinstance(pair[1], Quantity)}


def test_the_command(tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "films") as graph:
        graph.add(FILMS, source="films")
    run = CliRunner()

    def ask(*words: str) -> Any:
        return run.invoke(app, ["match", "-d", str(tmp_path / "films"), *words])

    done = ask("(UNKNOWN 1) -[directed by]-> (Clint Eastwood)", "--trace", "--evidence")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0].split() == ["distance", "1", "subgraph"]
    assert "0.000000  Unforgiven    Unforgiven | directed by | Clint Eastwood" in done.stdout
    assert "Unforgiven | directed by | Clint Eastwood (year: 1992)  [films, row 3]" in done.stdout
    document = json.loads(ask("(UNKNOWN 1) -[directed by]-> (Clint Eastwood)", "--best", "--format", "json").stdout)
    assert document["exact"]
    assert [len(one["edges"]) for one in document["solutions"]] == [1, 1, 1]
    assert document["solutions"][0]["nodes"][1]["distance"] == 0
    done = ask("(UNKNOWN 1) -[directed by]-> (UNKNOWN 2)", "--group-by", "2", "--format", "csv", "--distinct-from", "1=Unforgiven")
    assert done.stdout.splitlines()[1].startswith("0.000000,Bird,Clint Eastwood,")
    done = ask("(UNKNOWN 1) -[directed by]-> (Clint Eastwood)", "-k", "1", "--prompt")
    assert '("Unforgiven", "directed by", "Clint Eastwood"),' in done.stdout
    assert ask("(a) -[b]- (c)").exit_code == 1
    assert ask("(a) -[b]-> (c)", "--distinct-from", "a", "--distinct-from", "c=d").exit_code == 2
    asked = run.invoke(app, ["query", "-d", str(tmp_path / "films"), "(UNKNOWN 1) -[directed by]-> (Clint Eastwood)"])
    assert "Mystic River" in asked.stdout
