"""Claims of FactKG's five kinds over statements of Wikidata, half of them false, with the patterns
that they were made from.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

import condgraph
from condgraph.graph import Graph
from tests.support.claim_kinds import KINDS, Lines, claims
from tests.support.lanes import by_lane, shared_graph

pytestmark = pytest.mark.data
NUMBER = by_lane(40, 100, 1000)


@pytest.fixture(scope="module")
def path(data: Path) -> Path:
    return data / "wd50k" / "derived_labelled_statements.tsv"


@pytest.fixture(scope="module")
def graph(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return shared_graph(tmp_path_factory, path)


@pytest.fixture(scope="module")
def lines(path: Path) -> Lines:
    return Lines(path)


def test_open_world(graph: Graph, lines: Lines) -> None:
    found: Counter[tuple[str, bool, str]] = Counter()
    for one in claims(lines, NUMBER, seed=16):
        verdict = graph.verify(list(one.triples))
        found[one.kind, one.true, verdict.status] += 1
        # Never wrong: what is said is so.
        assert verdict.status in ("not enough facts", "supported" if one.true else "refuted"), (one, verdict.text)
        # What is stated is supported, and a denial of it refuted.
        if one.true and one.kind != "negation":
            assert verdict.status == "supported", (one, verdict.text)
        if one.kind == "negation" and not one.true:
            assert verdict.status == "refuted", (one, verdict.text)
        # One triple that is not stated is excluded by the rule that stands in the reference.
        if one.kind in ("one hop", "negation") and (one.kind == "one hop") is not one.true:
            assert (verdict.status != "not enough facts") is lines.excludes(one.decides), (one, verdict.text)
    assert all(sum(found[kind, true, status] for status in ("supported", "refuted", "not enough facts")) == NUMBER // 2
               for kind in KINDS for true in (True, False))  # fmt: skip


def test_closed_world(graph: Graph, lines: Lines) -> None:
    """As FactKG has it: what is not there is false."""
    for one in claims(lines, NUMBER, seed=61):
        verdict = graph.verify(list(one.triples), closed=True)
        assert verdict.status == ("supported" if one.true else "refuted"), (one, verdict.text)


def test_statements_that_are_missing(path: Path, tmp_path: Path) -> None:
    """True statements that the graph does not have are hardly ever refuted, and never supported."""
    rng = random.Random(5)
    rows = path.read_text(encoding="utf-8").splitlines()
    out = set(rng.sample(range(len(rows)), len(rows) // 10))
    kept = tmp_path / "kept.tsv"
    kept.write_text("".join(row + "\n" for number, row in enumerate(rows) if number not in out), encoding="utf-8")
    graph = condgraph.open()
    graph.load(kept)
    names = Lines(path)
    there = {tuple(row.split("\t")[i] for i in (0, 3, 4)) for number, row in enumerate(rows) if number not in out}
    asked: Counter[str] = Counter()
    for number in sorted(out)[:: by_lane(20, 12, 1)]:
        subject, name, _, predicate, thing, label, *_ = rows[number].split("\t")
        if (subject, predicate, thing) not in there and {subject, thing} <= names.plain and predicate != "instance of":
            asked[graph.verify([(name, predicate, label)]).status] += 1
    assert asked["supported"] == 0
    assert asked["refuted"] <= 0.005 * asked.total(), asked
