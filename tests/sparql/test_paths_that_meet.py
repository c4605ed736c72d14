"""Paths that meet: a store that orders joins without statistics may go along one path and back along
the other, through all that hangs on a hub. So all but one of them are sub-selects.
"""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

import condgraph
from condgraph.engine.facts import Ref, Statement
from condgraph.graph import Graph
from condgraph.languages.registry import request
from condgraph.sparql.compile.plan import compile_plan
from condgraph.sparql.dialect import FUSEKI, OXIGRAPH, STANDARD, VIRTUOSO
from tests.support.pace import quick_enough

BY_GENRE = 'Find("drama") Relate("genre", "backward")'
SAME_YEAR = 'Find("film 1") Relate("year", "forward") Relate("year", "backward")'
SAME_GENRE = 'Find("film 2") Relate("genre", "forward") Relate("genre", "backward")'
#: Each program, and how many of its paths are sub-selects.
PROGRAMS = {
    f"{BY_GENRE} {SAME_YEAR} And() Count()": 1,
    f"{SAME_YEAR} {BY_GENRE} And() Count()": 1,
    f"{SAME_YEAR} {SAME_GENRE} And() Count()": 1,
    f'Find("1990") Relate("year", "backward") {BY_GENRE} And() Count()': 0,
    f"{SAME_YEAR} Count()": 0,
}


@pytest.fixture(scope="module")
def hub() -> Graph:
    """4,000 films of one genre and two years."""
    graph = condgraph.open("memory:")
    graph.add(
        Statement(f"film {number}", key, Ref(value))
        for number in range(4_000)
        for key, value in (("year", f"{1990 + number % 2}"), ("genre", "drama" if number % 1_000 else "crime"))
    )
    return graph


@pytest.mark.parametrize("program", PROGRAMS)
def test_all_but_one_are_sub_selects(hub: Graph, program: str) -> None:
    plan = request(program, "kopl", None, {}).lowered(hub.current.schema).plan
    target = hub.rdf().target
    for dialect in (STANDARD, OXIGRAPH, FUSEKI, VIRTUOSO):
        text = compile_plan(plan, replace(target, dialect=dialect)).text
        assert text.count("{ SELECT DISTINCT") == (0 if dialect is VIRTUOSO else PROGRAMS[program]), text


def test_a_hub_is_gone_through_once(hub: Graph) -> None:
    """Joined in one order this is 8,000,000 rows."""
    begin = time.process_time()
    for program in PROGRAMS:
        assert hub.query(program, engine="sparql").values == hub.query(program).values, program
    assert quick_enough(time.process_time() - begin, 4)
