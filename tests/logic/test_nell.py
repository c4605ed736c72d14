"""The published test queries of NELL995 (BetaE), symbolic: every set of easy answers, and both
readings of pni.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.graph import Graph
from condgraph.languages.logic.convert import tree_of
from condgraph.languages.logic.structures import nested
from condgraph.languages.logic.tree import Complement, Intersection, Projection
from condgraph.logic.propagation import Forward, adjacency
from tests.support.lanes import sample
from tests.support.pace import quick_enough


@pytest.fixture(scope="module")
def queries(data: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data / "nell995_betae" / "queries_dev.jsonl").open()]


@pytest.fixture(scope="module")
def nell(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """The training and validation edges, by which easy answers are defined."""
    place = tmp_path_factory.mktemp("nell") / "edges.txt"
    place.write_text("".join((data / "nell995_betae" / f"{part}.txt").read_text() for part in ("train", "valid")))
    graph = condgraph.open()
    graph.load(place, format="triples")
    return graph


@pytest.mark.data
def test_every_published_query_has_its_easy_answers(queries: list[dict[str, Any]], nell: Graph) -> None:
    kinds: dict[str, int] = defaultdict(int)
    for query in queries:
        found = nell.query(query["query"])
        assert sorted(int(one.id) for one in found.entities) == sorted(query["easy"]), query
        kinds[query["type"]] += 1
    assert len(queries) == 2100
    assert set(kinds.values()) == {150}
    # The forward propagation on sparse rows gives the same.
    for query in sample(queries, 7):
        scores = Forward(nell.current, adjacency(nell.current)).run(tree_of(nested(query["query"])))
        assert set(scores.values.tolist()) <= {0.0, 1.0}
        ids = [int(nell.current.ident(node)) for node in scores.ids[scores.values == 1].tolist()]
        assert sorted(ids) == sorted(query["easy"])


@pytest.mark.data
def test_no_published_query_takes_long(queries: list[dict[str, Any]], nell: Graph) -> None:
    def seconds(query: Any) -> float:
        begin = time.thread_time()  # of this thread alone: others may have the processor in between
        _ = nell.query(query).values
        return time.thread_time() - begin

    taken = [min(seconds(one["query"]), seconds(one["query"])) for one in queries]
    assert quick_enough(statistics.median(taken), 0.0005)
    assert quick_enough(max(taken), 0.005)


@pytest.mark.data
def test_the_two_readings_of_pni_differ_on_105(queries: list[dict[str, Any]], nell: Graph) -> None:
    differ = 0
    for query in (one for one in queries if one["type"] == "pni"):
        tree = tree_of(nested(query["query"]))
        assert isinstance(tree, Intersection)
        negated, other = tree.parts
        assert isinstance(negated, Complement)
        assert isinstance(negated.part, Projection)
        part = negated.part
        anti = Intersection((Projection(part.relation, part.of, part.inverse, True, part.variable), other))
        found = Forward(nell.current, adjacency(nell.current)).run(anti)
        ids = [int(nell.current.ident(node)) for node in found.ids[found.values > 0].tolist()]
        differ += sorted(ids) != sorted(query["easy"])
    assert differ == 105
