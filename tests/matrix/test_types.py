"""Values of every type on stores as in process: durations, and times cut to a unit."""

from __future__ import annotations

from typing import Any

import condgraph
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
