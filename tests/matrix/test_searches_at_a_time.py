"""Patterns, chains and scored logical queries as of a time: on servers what they are in process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph import Entity, Graph, Ref, Statement
from condgraph.chains.methods import place_of
from condgraph.engine.errors import OptionError, UnsupportedError
from condgraph.engine.values import UNKNOWN, Time
from condgraph.languages.pattern.pattern import Pattern
from condgraph.vectors.encoders import LexicalEncoder
from tests.chains.tokenizers_made import made
from tests.matrix.test_match_neo4j import others, shown, sure
from tests.search.worlds import TieEncoder, a_graph, a_pattern, an_ask
from tests.support.chain_sequences import sequences
from tests.support.lanes import by_lane
from tests.support.logic import names, random_graph, random_model
from tests.support.stores import asked_of, empty_graph, marked
from tests.support.true_at import cut_by_hand

ENCODER = TieEncoder()
#: What a search of a period on a server refuses.
REFUSED = ("k_nodes", "k_relations", "k_types", "fast", "leave_out")


def with_times(items: Any, dice: random.Random) -> list[Any]:
    """The items, most statements with times of every form."""
    result = []
    for item in items:
        if isinstance(item, Statement) and dice.random() < 0.8:
            first, last = sorted((dice.randint(1980, 1999), dice.randint(1980, 1999)))
            stated = dice.choice(
                (
                    [("start time", Time.year(first)), ("end time", Time.year(last))],
                    [("start time", Time.year(first))],
                    [("end time", Time.year(last))],
                    [("point in time", Time.year(first))],
                    [("start time", UNKNOWN), ("end time", Time.year(last))],
                    [("start time", Time.year(first)), ("end time", UNKNOWN)],
                )
            )
            item = Statement(item.subject, item.predicate, item.object, (*item.qualifiers, *stated))
        result.append(item)
    return result


def timed(seed: int) -> tuple[random.Random, Graph]:
    dice = random.Random(seed)
    graph = condgraph.open()
    graph.add(with_times(a_graph(dice), dice))
    return dice, graph


def compare_patterns(local: Graph, dice: random.Random, ask: Any, seed: int, rounds: int = 4) -> int:
    """Random patterns as of random times, against the graph that a loop cut at that time."""
    compared = 0
    for _ in range(rounds):
        time, certain = Time.year(dice.randint(1978, 2001)), dice.random() < 0.3
        cut = cut_by_hand(local, time, certain)
        pattern = Pattern.of(a_pattern(dice))
        asked = {name: value for name, value in an_ask(dice, pattern, others(local)).items() if name not in REFUSED}
        here = cut.match(pattern, encoder=ENCODER, **asked)
        for there in (local.match(pattern, encoder=ENCODER, at=time, certain=certain, **asked), ask(
            pattern, encoder=ENCODER, at=time, certain=certain, **asked
        )):  # fmt: skip
            about = f"seed {seed}: {pattern} {asked} at {time}, certain={certain}"
            assert there.hits.totals.tolist() == here.hits.totals.tolist(), about
            assert shown(there) == shown(here), about
            assert (there.texts, there.complete, there.exact, sure(there.warnings)) == (
                here.texts, here.complete, here.exact, sure(here.warnings),
            ), about  # fmt: skip
        compared += 1
    return compared


def test_patterns_on_the_embedded_store() -> None:
    for seed in range(by_lane(3, 20, 200)):
        dice, local = timed(seed)
        compare_patterns(local, dice, lambda *given, graph=local, **options: graph.match(*given, engine="sparql", **options), seed)


@pytest.fixture(scope="module", params=["duckdb", *marked("neo4j", "oxigraph", nightly=("virtuoso",))])
def remote(request: pytest.FixtureRequest) -> Iterator[Any]:
    with empty_graph(request, "searches_at") as graph:
        yield graph


@pytest.mark.slow
def test_patterns_on_servers(remote: Any) -> None:
    compared = 0
    seeds = asked_of(remote, range(by_lane(2, 10, 100)), 2)
    for seed in seeds:
        dice, local = timed(seed)
        remote.delete()
        remote.push(local)
        compared += compare_patterns(local, dice, remote.match, seed)
    assert compared >= 4 * len(seeds)


def test_chains_on_servers(remote: Any) -> None:
    """The same texts are chains of the time, and the constraint allows the same."""
    _, local = timed(6)
    remote.delete()
    remote.push(local)
    place, tokenizer, verdicts = place_of(local), made("WordPiece"), []
    for number in random.Random(5).sample(range(local.current.statements), min(8, local.current.statements)):
        head = place.entity(place.ends(number)[0])
        relation = place.relation(int(place.relations(np.array([number]))[0]))
        text = f"< {place.head(place.ends(number)[0])} -> {relation} -> {place.tail(number)} >"
        for year, certain in ((1984, False), (1990, True)):
            here, there = (graph.verify_chain(text, [head], at=year, certain=certain) for graph in (local, remote))
            assert (bool(here), here.why) == (bool(there), there.why), text
            verdicts.append(bool(here))
    for year, certain in ((1984, False), (1990, True)):
        chains = [graph.at(year, certain=certain).chain([head], tokenizer, max_steps=1) for graph in (local, remote)]
        assert sequences(chains[0], 500) == sequences(chains[1], 500)
    assert set(verdicts) == {True, False}


def test_scored_logic_on_servers(remote: Any) -> None:
    """Observed answers, predicted ones with their scores, and those by rules."""
    dice = random.Random(2)
    _, edges = random_graph(dice, 24, 3, 90)
    local = condgraph.open()
    local.add(
        with_times(
            [*(Entity(f"e{i:03d}", f"e{i:03d}") for i in range(24)), *(
                Statement(f"e{h:03d}", names(3)[r], Ref(f"e{t:03d}")) for h, r, t in edges
            )],
            dice,
        )
    )  # fmt: skip
    remote.delete()
    remote.push(local)
    queries = ['?x : r0("e001", ?x)', '?x : exists ?v. r0("e001", ?v) and r1(?v, ?x)', '?x : r0("e001", ?x) and not r1("e002", ?x)']
    model, compared = random_model(3, 24, 3), 0
    for year, certain in ((1984, False), (1991, True), (1996, False)):
        cut = cut_by_hand(local, Time.year(year), certain)
        holding = {str(one) for one in cut.query("MATCH (a)-[r]->(b) RETURN a").evidence}
        for query in queries:
            for options in ({}, {"model": model}):
                expected = [(one.entity.id, one.score, one.observed) for one in cut.logic(query, k=None, **options)]
                for graph in (local, remote):
                    got = graph.logic(query, k=None, at=year, certain=certain, **options)
                    assert [(one.entity.id, one.score, one.observed) for one in got] == expected, (query, year, graph.place)
                    assert {str(one) for one in got.evidence} <= holding
                    compared += len(got)
    assert compared > 50
    here, there = (graph.at(1984).logic(queries[1], predict=True) for graph in (local, remote))
    assert {one.entity.id for one in here if one.observed} == {one.entity.id for one in there if one.observed}
    with pytest.raises(UnsupportedError, match="predicted edges that are stored"):
        remote.at(1984).logic_stored(queries[0])
    with pytest.raises(OptionError, match="is not a time"):
        remote.logic(queries[0], at="soon")


def test_what_a_search_of_a_time_refuses(remote: Any) -> None:
    _, local = timed(1)
    remote.delete()
    remote.push(local)
    with pytest.raises(UnsupportedError, match=r"k_nodes=.*snapshot"):
        remote.match([("a", "b", "UNKNOWN c")], at="1984", k_nodes=2)
    for graph in (local, remote):
        with pytest.raises(OptionError, match="approximate index"):
            graph.match([("a", "b", "UNKNOWN c")], at="1984", exact=False)


def test_vectors_of_the_graph_serve_every_time() -> None:
    """A graph with an index is searched by its encoder at a time, too, and no name is encoded again."""
    _, local = timed(4)

    class Hashed:
        id, dimension, encoded = "hashed", 64, 0

        def encode(self, texts: Any) -> Any:
            self.encoded += len(texts)
            return LexicalEncoder(64).encode(texts)

    encoder = Hashed()
    local.index(encoder)
    name = local.current.name(0)
    before = encoder.encoded
    found = local.match([(name, "UNKNOWN r", "UNKNOWN x")], at="1990")
    assert found.encoder == "hashed"
    assert encoder.encoded - before <= 3
    cut = cut_by_hand(local, Time.year(1990), False)
    assert found.texts == cut.match([(name, "UNKNOWN r", "UNKNOWN x")], encoder=Hashed()).texts
