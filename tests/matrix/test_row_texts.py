"""Rows without keys are shown on stores as in process: by one further query, when texts are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.engine.test_row_texts import graph_of
from tests.support.differential import outcome

#: Programs with their table clauses.
ASKED = [
    ("FindAll() SelectAmong(height, largest)", None),
    ("FindAll() FilterNum(height, 3500 m, >) QueryName()", None),
    ("FindAll() FilterNum(height, 3500 m, <)", None),
    ("FindAll() FilterNum(height, 3500 m, >) Count()", None),
    ("FindAll() SelectAmong(height, smallest)", None),
    ("FindAll()", "group by country show top(2, height)"),
    ("FindAll()", "show self, height order by height desc limit 3"),
    ("FindAll()", "group by self show count()"),
    ("Find(peaks row 3) QueryAttr(peak)", None),
]


def compare(here: Any, there: Any) -> None:
    for program, clause in ASKED:
        options = {} if clause is None else {"table": clause}
        found = [outcome(graph, program, **options) for graph in (here, there)]
        assert found[0] == found[1], (program, clause)
        if clause is not None:
            assert here.query(program, table=clause).cells == there.query(program, table=clause).cells
        answers = [graph.query(program, **options) for graph in (here, there)]
        assert answers[0].data() == answers[1].data()
        assert answers[1].check(full=True)


def test_on_servers(opener: Any, tmp_path: Path) -> None:
    here = graph_of(tmp_path)
    with opener("texts of rows") as there:
        there.store.delete()
        there.push(here)
        compare(here, there)
        assert there.kopl("FindAll() SelectAmong(height, largest)").texts == ["K2"]
        there.store.delete()
        # Loaded there, the column is found there.
        there.load(tmp_path / "peaks.csv")
        assert there.kopl("FindAll() SelectAmong(height, largest)").texts == ["K2"]
        (tmp_path / "peaks.csv").write_text("no,top,height\n1,Everest,8849 m\n2,K2,8611 m\n")
        there.load(tmp_path / "peaks.csv", replace=True)
        assert there.kopl("FindAll() SelectAmong(height, largest)").texts == ["Everest"]
        there.store.delete()


def test_embedded_rdf(tmp_path: Path) -> None:
    here = graph_of(tmp_path)
    for program, clause in ASKED:
        options = {} if clause is None else {"table": clause}
        found = [outcome(here, program, engine=engine, **options) for engine in ("snapshot", "sparql")]
        assert found[0] == found[1], (program, clause)
