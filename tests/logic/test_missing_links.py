"""The fewest missing edges of an answer, against the enumeration of every assignment; and sampled
queries, whose answers are counted in the same plain way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph.engine.errors import LinkModelError, LoadError, OptionError, UnknownNameError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.languages.logic.structures import NEGATION
from condgraph.links.edges import Edges
from condgraph.logic.evaluation.sampler import By, Complete, LogicCase, read_cases, read_triples, write_cases

Triple = tuple[str, str, str]
SIZE = 9
NAMES = [f"n{number}" for number in range(SIZE)]
KINDS = ["1p", "2p", "3p", "2i", "3i", "pi", "ip", "2u", "up", "2in", "3in", "inp", "pin", "pni"]


def drawn(seed: int) -> tuple[list[Triple], list[Triple]]:
    """A small random graph, and edges that it misses."""
    rng = np.random.default_rng(seed)
    every = [(h, f"r{r}", t) for h in NAMES for r in range(2) for t in NAMES]
    picks = [every[at] for at in rng.permutation(len(every))[:34]]
    return picks[:24], picks[24:]


def opened(triples: list[Triple]) -> condgraph.Graph:
    graph = condgraph.open("memory:")
    graph.add([*(Entity(name, name) for name in NAMES), *(Statement(h, r, Ref(t)) for h, r, t in triples)])
    return graph


def plain(query: Any, price: Callable[[str, str, str], float]) -> dict[str, float]:
    """The cost of each entity as the answer of a nested query, by trying every assignment."""
    if isinstance(query[0], str):
        found = {name: 0.0 if name == query[0] else math.inf for name in NAMES}
        return along(found, query[1], price)
    if len(query) == 2 and all(isinstance(one, (str, int)) for one in query[1]):
        return along(plain(query[0], price), query[1], price)
    union = query[-1] == [-1]
    parts = [plain(part, price) for part in (query[:-1] if union else query)]
    return {name: (min if union else sum)(part[name] for part in parts) for name in NAMES}


def along(found: dict[str, float], path: list[Any], price: Callable[[str, str, str], float]) -> dict[str, float]:
    for one in path:
        if one == -2:
            found = {name: 0.0 if math.isinf(cost) else math.inf for name, cost in found.items()}
            continue
        new = dict.fromkeys(NAMES, math.inf)
        for source, target in itertools.product(NAMES, NAMES):
            edge = (target, one[1:], source) if one.startswith("^") else (source, one, target)
            new[target] = min(new[target], found[source] + price(*edge))
        found = new
    return found


def prices(own: list[Triple], missing: list[Triple]) -> Callable[[str, str, str], float]:
    return lambda h, r, t: 0.0 if (h, r, t) in own else 1.0 if (h, r, t) in missing else math.inf


@pytest.mark.parametrize("by", ["pair", "edge"])
@pytest.mark.parametrize("seed", range(4))
def test_costs_and_sampled_answers_are_those_of_every_assignment(seed: int, by: By) -> None:
    own, missing = drawn(seed)
    graph = opened(own)
    edges = Edges.of_snapshot(graph.current)
    complete = Complete(graph.current, edges, edges.numbered(missing))
    found = graph.sample_queries(missing, 4, seed=seed, by=by)
    assert len({case.kind for case in found.cases}) > 10
    for case in found.cases:
        tree = case.tree()
        costs = complete.costs(tree)[id(tree)]
        wanted = plain(case.query, prices(own, missing))
        assert {name: float(costs[edges.entity_numbers[name]]) for name in NAMES} == wanted, case.query
        now = {name for name, cost in plain(case.query, prices(own, [])).items() if not math.isinf(cost)}
        assert set(case.easy) == now
        assert set(case.hard) == {name for name, cost in wanted.items() if not math.isinf(cost)} - now
        assert case.hard
        if by == "pair" and NEGATION in relations_of(case.query):
            assert now & {name for name, cost in wanted.items() if math.isinf(cost)}, case.query
        if by == "pair" and case.kind in ("2u", "2in"):
            # BetaE draws both parts from one answer, also of a union and of what is negated.
            parts = [plain([name, steps[:1]], prices(own, missing)) for name, steps in case.query[:2]]
            assert any(math.isfinite(parts[0][name] + parts[1][name]) for name in NAMES), case.query


def test_hard_answers_that_need_every_edge() -> None:
    kinds = ["1p", "2p", "3p", "2i", "3i", "pi", "ip"]
    count = 0
    for seed in range(4):
        own, missing = drawn(seed)
        for case in opened(own).sample_queries(missing, 4, seed=seed, kinds=kinds, needed="all").cases:
            steps = [item for item in relations_of(case.query) if item not in NAMES]
            wanted = plain(case.query, prices(own, missing))
            assert set(case.hard) == {name for name, cost in wanted.items() if cost == len(steps)}, case.query
            assert set(case.easy) == {name for name, cost in wanted.items() if cost < len(steps)}
            assert case.hard
            count += len(steps) > 1
    assert count > 20


def relations_of(query: Any) -> list[Any]:
    """All that is in a query, in one list."""
    return [item for part in query for item in (relations_of(part) if isinstance(part, list) else [part])]


def test_one_hop_queries_are_pairs_each_as_likely() -> None:
    """An entity with many held-out edges of a relation is asked for once, as BetaE does."""
    missing = [("hub", "r", f"n{i}") for i in range(30)] + [(f"m{i}", "r", f"o{i}") for i in range(5)]
    own = [(name, "other", "end") for edge in missing for name in (edge[0], edge[2])]
    own = [*dict.fromkeys(own), ("end", "r", "end")]
    graph = opened(own)
    cases = graph.sample_queries(missing, 100, kinds=["1p"]).cases
    assert len(cases) == len({(h, r) for h, r, _ in missing} | {(t, r) for _, r, t in missing})
    assert sorted(len(case.hard) for case in cases) == [1] * 40 + [30]
    drawn_first = [graph.sample_queries(missing, 1, kinds=["1p"], seed=seed).cases[0].query[0] for seed in range(60)]
    assert drawn_first.count("hub") < 10
    by_edge = [graph.sample_queries(missing, 1, kinds=["1p"], seed=seed, by="edge").cases[0].query[0] for seed in range(60)]
    assert by_edge.count("hub") > 10


def test_samples_are_the_same_again_and_differ_by_seed() -> None:
    own, missing = drawn(1)
    graph = opened(own)
    first = graph.sample_queries(missing, 3, seed=4)
    assert first == graph.sample_queries(missing, 3, seed=4)
    assert first.cases != graph.sample_queries(missing, 3, seed=5).cases
    alone = graph.sample_queries(missing, 3, seed=4, kinds=["2in"]).cases
    assert [case for case in first.cases if case.kind == "2in"] == list(alone)
    assert {case.kind for case in graph.sample_queries(missing, 2, kinds=["4p", "5p"]).cases} == {"4p", "5p"}


def test_what_cannot_be_sampled_is_said() -> None:
    own, missing = drawn(2)
    graph = opened(own)
    with pytest.raises(UnknownNameError, match="unknown query structure '2pi'"):
        graph.sample_queries(missing, kinds=["2pi"])
    with pytest.raises(LinkModelError, match="no held-out edges"):
        graph.sample_queries([])
    with pytest.raises(LinkModelError, match="no entity 'zz'"):
        graph.sample_queries([("zz", "r0", "n1")])
    with pytest.raises(OptionError):
        graph.sample_queries(missing, 0)
    with pytest.raises(OptionError, match="by 'pair' or by 'edge', not by 'query'"):
        graph.sample_queries(missing, by="query")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="'any' or 'all' edges to be missing, not 'both'"):
        graph.sample_queries(missing, needed="both")  # type: ignore[arg-type]
    with pytest.raises(LinkModelError, match="the graph has every held-out edge"):
        graph.sample_queries(own, 4)
    warned = graph.sample_queries(missing[:1], 4, kinds=["1p"])
    assert "only 2 of 4 queries of 1p" in warned.warnings[0]
    assert len(warned.cases) == 2


def test_queries_are_written_and_read(tmp_path: Any) -> None:
    own, missing = drawn(3)
    cases = list(opened(own).sample_queries(missing, 3).cases)
    assert write_cases(cases, tmp_path / "q.jsonl") == len(cases)
    assert list(read_cases(tmp_path / "q.jsonl")) == cases


def test_published_numbers_are_read_as_pairs(tmp_path: Any) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(
        '{"type":"up-DNF","query":[[3,[7]],[12,[4]],[-1]],"easy":[1],"hard":[2]}\n\n'
        '{"type":"2in","query":[[3,[7]],[12,[5,-2]]],"easy":[],"hard":[9]}\n'
    )
    first, second = read_cases(path, paired=True)
    assert (first.kind, first.query, first.easy, first.hard) == ("up", [["3", ["^6"]], ["12", ["4"]], [-1]], ("1",), ("2",))
    assert second.query == [["3", ["^6"]], ["12", ["^4", -2]]]
    assert next(iter(read_cases(path))).query == [["3", ["7"]], ["12", ["4"]], [-1]]


_NO = '"easy":[],"hard":[]}'
BAD = [
    "{",
    "7",
    "[]",
    '{"type": "1p"}',
    '{"type":1,"query":[],' + _NO,
    '{"type":"1p","query":["a",["r"]],"easy":"a","hard":[]}',
    '{"type":"1p","query":["a",[{"r":1}]],' + _NO,
    "[" * 200_000,
    '{"type":"1p","query":' + "[" * 90 + "]" * 90 + "," + _NO,
    "\0" * (1 << 20),
]


@pytest.mark.parametrize("text", BAD)
def test_lines_that_are_no_queries_are_errors(text: str, tmp_path: Any) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"type":"1p","query":["a",["r"]],"easy":[],"hard":["b"]}\n' + text)
    with pytest.raises(LoadError, match="row 2"):
        list(read_cases(path))


def test_bytes_that_are_no_text_are_errors(tmp_path: Any) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(b'{"type":"1p","query":["a",["r"]],"easy":[],"hard":["b"]}\n\x85')
    with pytest.raises(LoadError, match="no UTF-8"):
        list(read_cases(path))


def test_lines_that_are_no_triples_are_errors(tmp_path: Any) -> None:
    path = tmp_path / "held.tsv"
    path.write_bytes("\ufeffa\tr\tä\r\n\nb\tr\tc".encode())
    assert list(read_triples(path)) == [("a", "r", "ä"), ("b", "r", "c")]
    for content in (b"a\tr\tb\na\tr\n", b"a\tr\tb\na\t\tb", b"a\tr\tb\n\xff\t\t", b"a\tr\tb\n" + b"\t" * (1 << 20)):
        path.write_bytes(content)
        with pytest.raises(LoadError):
            list(read_triples(path))


def test_a_case_names_entities_by_id() -> None:
    graph = condgraph.open("memory:")
    graph.add([Entity("Q1", "same"), Entity("Q2", "same"), Statement("Q1", "r", Ref("Q2"))])
    case = LogicCase("1p", ["Q1", ["r"]], ("Q2",), ())
    assert graph.evaluate_logic([case]).cases[0].answers == 1
    with pytest.raises(UnknownNameError, match="unknown entity 'same'"):
        graph.evaluate_logic([LogicCase("1p", ["same", ["r"]], (), ())])
