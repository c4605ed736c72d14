"""Markdown tables: the row of dashes and the outer pipes are no data, and text around is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

import condgraph
from condgraph.engine.errors import FormatError
from condgraph.graph import Graph
from condgraph.loaders.table.text import markdown_cells, markdown_header
from condgraph.reports import LoadReport

PEAKS = "| name | height | since |\n|------|-------:|:-----:|\n| K2 | 8611 | 1954 |\n| Everest | 8,849 | 1953 |\n"


def loaded(path: Path, text: str, **options: object) -> tuple[Graph, LoadReport]:
    path.write_text(text, encoding="utf-8")
    graph = condgraph.open("memory:")
    return graph, graph.load(path, **options)  # type: ignore[arg-type]


def said(report: LoadReport) -> list[str]:
    return [one.message for one in report.problems]


@pytest.mark.parametrize("name", ["peaks.md", "peaks.txt", "peaks.csv", "peaks"])
@pytest.mark.parametrize("text", [PEAKS, PEAKS.replace("\n", "\r\n"), "\ufeff" + PEAKS, PEAKS.replace("| ", "|").rstrip()])
def test_dashes_and_outer_pipes_are_no_data(tmp_path: Path, name: str, text: str) -> None:
    graph, report = loaded(tmp_path / name, text)
    assert report.formats == ("csv",)
    assert graph.kopl("FindAll() FilterNum(height, 8800, >) QueryAttr(name)").texts == ["Everest"]
    assert graph.kopl("FindAll() FilterYear(since, 1954, =) QueryAttr(name)").texts == ["K2"]
    assert report.statements == 6
    assert said(report) == ["the file is read as a Markdown table (dialect= overrules)"]


def test_text_above_and_below_is_left_out_with_a_warning(tmp_path: Path) -> None:
    text = f"# Peaks, high\n\nSome words | with a pipe.\n\n{PEAKS}\nMore words.\n\n| other | table |\n|---|---|\n| 1 | 2 |\n"
    graph, report = loaded(tmp_path / "a.md", text)
    assert graph.kopl("FindAll() QueryAttr(height)").texts == ["8611", "8,849"]
    assert said(report)[1:] == [
        "2 lines above the header are left out: # Peaks, high; Some words | with a pipe. (skip= says how many lines are)",
        "4 lines below the table are left out: More words.; | other | table |; |---|---|",
    ]


def test_rows_without_outer_pipes_and_with_escaped_ones(tmp_path: Path) -> None:
    graph, report = loaded(tmp_path / "a.md", "a | b | c\n--- | --- | ---\nx \\| y | 1 |\n| | 2 | z |\nw | 3\n")
    assert graph.kopl("FindAll() QueryAttr(a)").texts == ["w", "x | y"]
    assert graph.kopl("FindAll() FilterNum(b, 2, =) QueryAttr(c)").texts == ["z"]
    assert any("2 records have fewer than the 3 fields" in one for one in said(report))


def test_what_is_no_markdown_table_is_read_as_before(tmp_path: Path) -> None:
    report = loaded(tmp_path / "a.psv", "a|b\nx|--\n--|-\ny|1\n")[1]
    assert not any("Markdown" in one for one in said(report))
    report = loaded(tmp_path / "b.csv", PEAKS, dialect="plain", delimiter="|")[1]
    assert not any("Markdown" in one for one in said(report))
    with pytest.raises(FormatError):
        loaded(tmp_path / "c.md", "# Title\n\nJust words | here.\n")
    assert markdown_header(f"words\n{PEAKS}", Path("a.md")) is None
    assert markdown_header(f"words\n\n{PEAKS}", Path("a.csv")) is None


def test_a_folder_and_long_lines(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "peaks.csv").write_text(PEAKS)
    (tmp_path / "f" / "condgraph.toml").write_text('[tables.peaks]\nkey = "name"\n')
    graph = condgraph.open("memory:")
    graph.load(tmp_path / "f")
    assert graph.kopl("Find(K2) QueryAttr(height)").texts == ["8611"]
    assert len(markdown_cells("| " + "a | " * 200_000)) == 200_000
    assert markdown_header("| a |\n" + "|-" * 200_000 + "\n", Path("a.md")) is None
