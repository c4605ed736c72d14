"""Cypher through the algebra on stores as in process: the same rows, and evidence that proves them."""

from __future__ import annotations

from typing import Any

import condgraph
from tests.frontends.test_cypher import ROWS, films, plain
from tests.support.lanes import by_lane
from tests.support.stores import asked_of


def test_rows_are_those_in_process(opener: Any) -> None:
    here = condgraph.open()
    here.add(films())
    with opener("cypher") as there:
        there.store.delete()
        there.push(here)
        for number, (text, rows) in enumerate(asked_of(there, ROWS[:: by_lane(3, 1, 1)], 2)):
            answer = there.query(text)
            assert [plain(row if isinstance(row, tuple) else (row,)) for row in answer.values] == rows, text
            if number % 4 == 0:
                assert answer.check(full=True), text
        there.store.delete()
