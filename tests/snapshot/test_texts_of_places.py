"""What each place wrote, through loads that join: every place of a statement keeps the first text that
stood there, and the digest of a graph tells any two contents apart, however they were loaded.
"""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.facts import Source, Sourced, Statement
from condgraph.engine.identity import content_digest
from condgraph.engine.stored_schema import describe_schema
from condgraph.engine.values import Quantity
from tests.support.lanes import by_lane

SOURCES = ("z", "a", "m")
#: A statement, a place and the text there.
Said = tuple[tuple[str, str, int], tuple[str, int], str | None]


def made(rng: random.Random, size: int) -> list[Said]:
    """Few statements, places and texts, so that they meet."""
    return [
        (
            (rng.choice("stu"), rng.choice("pq"), rng.randrange(3)),
            (rng.choice(SOURCES), rng.randrange(1, 5)),
            rng.choice((None, "I", "II", "III")),
        )
        for _ in range(size)
    ]


def kept(said: list[Said]) -> dict[Any, dict[tuple[str, int], str | None]]:
    """The first text of each place of each statement."""
    found: dict[Any, dict[tuple[str, int], str | None]] = {}
    for statement, place, text in said:
        found.setdefault(statement, {}).setdefault(place, text)
    return found


def loaded(batches: list[list[Said]]) -> Graph:
    """A graph of some loads."""
    graph = condgraph.open("memory:")
    graph.add([Source(name) for name in SOURCES])
    for batch in batches:
        graph.add([Sourced(Statement(s, p, Quantity(value), (), 0, text), (place,)) for (s, p, value), place, text in batch])
    return graph


def exported(graph: Graph) -> dict[Any, dict[tuple[str, int], str | None]]:
    """What an export says of each place."""
    out = io.StringIO()
    graph.export(out)
    found: dict[Any, dict[tuple[str, int], str | None]] = {}
    for line in map(json.loads, out.getvalue().splitlines()[1:]):
        for source, row in line["src"]:
            place = found.setdefault((line["s"], line["p"], line["o"]["n"]), {})
            assert (source, row) not in place, "a place twice"
            place[source, row] = line.get("raw")
    return found


@pytest.mark.parametrize("seed", range(by_lane(50, 150, 150)))
def test_each_place_keeps_its_first_text(seed: int) -> None:
    rng = random.Random(seed)
    said = made(rng, rng.randrange(1, 30))
    cuts = sorted(rng.randrange(len(said) + 1) for _ in range(rng.randrange(3)))
    batches = [said[i:j] for i, j in zip([0, *cuts], [*cuts, len(said)], strict=True)]
    graph = loaded([batch for batch in batches if batch])
    assert exported(graph) == kept(said)

    # The same again in another order: only the first text of each place is a matter of order.
    again = [(statement, place, text) for statement, places in kept(said).items() for place, text in places.items()]
    rng.shuffle(again)
    assert content_digest(loaded([again]).current) == content_digest(graph.current)


def test_digests_tell_contents_apart() -> None:
    """One text, place or value changed in a few statements: each content has a digest of its own."""
    rng = random.Random(7)
    found: dict[str, Any] = {}
    for _ in range(by_lane(15, 60, 60)):
        said = made(rng, 4)
        for number in range(len(said)):
            for other in ("IV", "V", None):
                changed = [*said[:number], (*said[number][:2], other), *said[number + 1 :]]
                what = kept(changed)
                digest = content_digest(loaded([changed]).current)
                assert found.setdefault(digest, what) == what
    assert len(found) > by_lane(75, 300, 300)


def test_digests_tell_sources_apart() -> None:
    """Name, location and format of each source, the first and the last."""
    said = [Sourced(Statement("s", "p", Quantity(1)), (("one", 1),))]

    def digest(*sources: Source) -> str:
        graph = condgraph.open("memory:")
        graph.add([*sources, *said])
        return content_digest(graph.current)

    one, last = Source("one", "1.csv", "csv"), Source("two", "2.csv", "csv")
    found = [
        digest(one, last),
        digest(Source("one", "3.csv", "csv"), last),
        digest(Source("one", "1.csv", "json"), last),
        digest(one, Source("two", "3.csv", "csv")),
        digest(one, Source("two", "2.csv", "json")),
        digest(one, Source("three", "2.csv", "csv")),
        digest(one),
    ]
    assert len(set(found)) == len(found)
    assert digest(one, last) == found[0]


@pytest.mark.parametrize("text", ["", " ", "!", "0", "one", "s", "zzz"])
def test_a_schema_knows_of_raw_texts(text: str) -> None:
    """Wherever the text stands among all, the first included."""
    for raw in (text, None):
        graph = condgraph.open("memory:")
        graph.add([Statement("s", "p", Quantity(1), (), 0, raw)])
        assert describe_schema(graph.current)["raw"] is (raw is not None)
