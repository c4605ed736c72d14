"""Exports of condgraph's as RDF are read in one reading; what only ends like one is read as ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import LoadError, OptionError
from condgraph.engine.facts import Entity, Member, Ref, Statement
from condgraph.engine.snapshot.readback import items
from condgraph.engine.values import Quantity, Time
from condgraph.loaders.rdf import load


def graph_of(name: str) -> condgraph.Graph:
    graph = condgraph.open(graph=name)
    graph.add(
        [
            Entity("a", "Ada é"),
            Member("a", "person"),
            Statement("a", "knows", Ref("b"), (("point in time", Time.year(1840)),), 3),
            Statement("a", "height", Quantity(160, "cm"), (), 4, "160cm"),
        ],
        source=f"of {name}",
    )
    return graph


def content(graph: condgraph.Graph) -> list[Any]:
    return sorted(map(repr, items(graph.current)))


@pytest.fixture
def surveyed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A row for each triple that is surveyed."""
    rows: list[int] = []
    see = load.Survey.see

    def seen(self: Any, row: int, quad: Any) -> None:
        rows.append(row)
        see(self, row, quad)

    monkeypatch.setattr(load.Survey, "see", seen)
    return rows


@pytest.mark.parametrize("to", ["nquads", "turtle"])
def test_an_export_is_read_once(to: str, tmp_path: Path, surveyed: list[int]) -> None:
    graph, again = graph_of("one"), condgraph.open(graph="one")
    path = tmp_path / f"one.{'nq' if to == 'nquads' else 'ttl'}"
    graph.export(path, to=to)
    again.load(path)
    assert not surveyed
    assert content(again) == content(graph)


def test_two_exports_in_one_file_are_both_read(tmp_path: Path, surveyed: list[int]) -> None:
    for name in ("one", "two"):
        graph_of(name).export(tmp_path / f"{name}.nq", to="nquads")
    both = tmp_path / "both.nq"
    both.write_text((tmp_path / "one.nq").read_text("utf-8") + (tmp_path / "two.nq").read_text("utf-8"), "utf-8")
    graph = condgraph.open()
    graph.load(both)
    assert surveyed
    assert {source.name for source in graph.status().sources} == {"of one", "of two"}


def test_what_only_ends_like_an_export_is_read_as_other_rdf(tmp_path: Path, surveyed: list[int]) -> None:
    # The mark stands in a text that goes over lines, which Turtle has and N-Quads has not.
    path = tmp_path / "text.ttl"
    path.write_text('<http://x.org/a> <http://x.org/says> """\n<http://x.org/> <pred:layout> 2 .\n""" .\n', "utf-8")
    graph = condgraph.open()
    graph.load(path, names="local")
    assert surveyed
    assert graph.kopl("Find(a) QueryAttr(says)").texts == ["\n<http://x.org/> <pred:layout> 2 .\n"]


def test_options_are_looked_at_all_the_same(tmp_path: Path) -> None:
    graph_of("one").export(tmp_path / "one.nq", to="nquads")
    with pytest.raises(OptionError, match="collapse_to="):
        condgraph.open().load(tmp_path / "one.nq", collapse_to="rdf:value")


def test_a_broken_line_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "one.nq"
    graph_of("one").export(path, to="nquads")
    lines = path.read_text("utf-8").splitlines()
    lines[4] = "<http://x.org/a> nonsense ."
    path.write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(LoadError, match="row 5"):
        condgraph.open().load(path)
    report = condgraph.open().load(path, on_error="skip")
    assert len(report.problems) == 1
