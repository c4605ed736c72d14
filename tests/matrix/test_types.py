"""Values of every type on stores as in process: durations, times cut to a unit, and points."""

from __future__ import annotations

from typing import Any

import condgraph
from tests.engine import test_points as points
from tests.engine.test_durations import CLAUSES, RACES
from tests.support.differential import outcome


def test_durations(opener: Any) -> None:
    here = condgraph.open("memory:")
    here.load(RACES, name="t", key="race")
    with opener("durations") as there:
        there.store.delete()
        there.push(here)
        for clause, cells in CLAUSES:
            answer = there.query("FindAll()", table=clause)
            assert answer.cells == cells, clause
            assert answer.check(full=True)
        retrieval = "Query1: get_information(relation='net', tail_entity>'2:03:00')"
        for program in ("FindAll() FilterNum(rest, 40 minute, >)", retrieval):
            assert outcome(here, program) == outcome(there, program), program
            assert here.query(program).texts
        there.store.delete()


def test_points(opener: Any) -> None:
    here = condgraph.open("memory:")
    here.load([*points.PLACES, {"city": "None", "at": "", "lon": "", "lat": "", "mixed": "", "plain": ""}], name="t", key="city")
    with opener("points") as there:
        there.store.delete()
        there.push(here)
        _same_points(here, there)
        there.store.delete()
        # Loaded there.
        there.load(points.PLACES, name="t", key="city")
        _same_points(here, there)
        again = there.snapshot()
        assert [(part.name, part.values) for part in again.schema().predicates] == [
            (part.name, part.values) for part in there.schema().predicates
        ]
        _same_points(here, again)
        there.store.delete()


def _same_points(here: Any, there: Any) -> None:
    for clause, cells in points.CLAUSES:
        answer = there.query("FindAll()", table=clause)
        assert answer.cells == cells, clause
        assert answer.check(full=True)
    for program in points.PROGRAMS:
        assert outcome(here, program) == outcome(there, program), program
        mine, theirs = here.query(program), there.query(program)
        assert mine.texts == theirs.texts
        assert mine.texts
        assert mine.data() == theirs.data()
        assert list(map(type, mine.values)) == list(map(type, theirs.values))
        assert theirs.check(full=True)
    kinds = [{part.name: [value.type for value in part.values] for part in graph.schema().predicates} for graph in (here, there)]
    assert kinds[0] == kinds[1]
    assert kinds[0]["at"] == ["point"]
