"""Rows without keys are shown by the column that tells most, wherever an answer shows them; names,
ids, values and evidence stay.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.graph import Graph

PEAKS = (
    "no,country,peak,note,height\n1,CH,Eiger,steep,3967 m\n2,CH,Monch,steep,4110 m\n3,PK,K2,far,8611 m\n"
    "4,IT,Etna,hot,3357 m\n5,IT,Etna,hot,2500 m\n6,IT,,,1000 m\n"
)


def graph_of(path: Path, text: str = PEAKS, **options: Any) -> Graph:
    (path / "peaks.csv").write_text(text, encoding="utf-8")
    graph = condgraph.open("memory:")
    graph.load(path / "peaks.csv", **options)
    return graph


def test_superlatives_show_what_tells_most(tmp_path: Path) -> None:
    graph = graph_of(tmp_path)
    answer = graph.kopl("FindAll() SelectAmong(height, largest)")
    assert (answer.texts, answer.values, str(answer)) == (["K2"], ["peaks row 3"], "K2")
    assert answer.data() == [{"text": "K2", "type": "entity", "id": "peaks/3", "name": "peaks row 3"}]
    assert answer.check(full=True)
    named = graph.kopl("FindAll() FilterNum(height, 3500 m, >) QueryName()")
    assert (named.texts, named.values) == (["Eiger", "Monch", "K2"], ["peaks row 1", "peaks row 2", "peaks row 3"])
    assert [entity.id for entity in named.entities] == ["peaks/1", "peaks/2", "peaks/3"]
    # Programs still know rows by their names alone.
    assert graph.kopl("Find(peaks row 3) QueryAttr(peak)").texts == ["K2"]
    with pytest.raises(condgraph.CondgraphError, match="unknown entity 'K2'"):
        graph.kopl("Find(K2)")


def test_rows_that_would_read_the_same_have_their_names(tmp_path: Path) -> None:
    graph = graph_of(tmp_path)
    assert graph.kopl("FindAll() FilterNum(height, 3500 m, <)").texts == ["Etna (peaks row 4)", "Etna (peaks row 5)", "peaks row 6"]
    assert graph.kopl("FindAll() FilterNum(height, 3000 m, <)").texts == ["Etna", "peaks row 6"]


def test_cells_of_tables(tmp_path: Path) -> None:
    graph = graph_of(tmp_path)
    answer = graph.query("FindAll()", table="group by country show top(2, height)")
    assert answer.cells == [("CH", "Monch; Eiger"), ("IT", "Etna (peaks row 4); Etna (peaks row 5)"), ("PK", "K2")]
    assert answer.texts == [" | ".join(row) for row in answer.cells]
    assert answer.values[2][1].id == "peaks/3"
    assert answer.check(full=True)
    rows = graph.query("FindAll()", table="show self, height order by height desc limit 2")
    assert rows.cells == [("K2", "8611 m"), ("Monch", "4110 m")]


def test_a_prepared_program_shows_the_same(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, refs=["country"])
    ask = graph.prepare("Find($country) Relate(country, backward)")
    assert (ask(country="PK").texts, ask(country="PK").values) == (["K2"], ["peaks row 3"])
    assert ask(country="CH").texts == ["Eiger", "Monch"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # The most different texts.
        ("a,b,v\nx,p,1\nx,q,2\ny,r,3\n", "r"),
        # The first of equals.
        ("a,b,v\nx,p,1\ny,q,2\nz,r,3\n", "z"),
        # What is called like a name, before a code that is more different.
        ("code,full name,v\nxx,Ann,1\nyy,Ann,2\nzz,Bob,3\n", "Bob"),
        # Long texts tell less than they say, and kinds that come again say which kind alone.
        ("about,v,kind\n" + "".join(f"{'word ' * 40}{i},{i},{'ab'[i > 2]}\n" for i in range(1, 6)), "peaks row 5"),
        # Numbers are no names.
        ("a,v\n1,1\n2,2\n3,3\n", "peaks row 3"),
        # Half of the rows have one.
        ("a,v\n,1\n,2\nz,3\n", "peaks row 3"),
        ("said,v\nA row 2,1\nB row 1,2\nC row row 1,3\n", "C row row 1"),
    ],
)
def test_which_column(text: str, shown: str, tmp_path: Path) -> None:
    graph = graph_of(tmp_path, text, format="csv")
    assert graph.kopl("FindAll() SelectAmong(v, largest)").texts == [shown]
    kept = condgraph.open(tmp_path / "store")
    kept.load(tmp_path / "peaks.csv", format="csv")
    assert kept.kopl("FindAll() SelectAmong(v, largest)").texts == [shown]


def test_rows_with_keys_or_names_are_called_by_these(tmp_path: Path) -> None:
    asked = "FindAll() SelectAmong(height, largest)"
    assert graph_of(tmp_path, key="no").kopl(asked).texts == ["3"]
    assert graph_of(tmp_path, name_column="country").kopl(asked).texts == ["PK"]


def test_texts_that_only_look_like_rows_stay(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, "a,v\npeaks row 2,1\nB,2\nC,3\n")
    assert graph.kopl("FindAll() FilterNum(v, 1, =) QueryAttr(a)").texts == ["peaks row 2"]
    assert graph.kopl("FindAll() FilterNum(v, 2, =)").texts == ["B"]


def test_lists_of_rows_in_json(tmp_path: Path) -> None:
    (tmp_path / "orders.json").write_text('[{"no": 7, "items": [{"sku": "pen", "n": 3}, {"sku": "ink", "n": 8}]}]')
    graph = condgraph.open("memory:")
    graph.load(tmp_path / "orders.json", key="no")
    answer = graph.kopl("FindAll() FilterNum(n, 5, >)")
    assert (answer.texts, answer.values) == (["ink"], ["orders/items row 2"])
