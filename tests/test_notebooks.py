"""The notebooks of the documentation, executed by a kernel of their own: they give what they show, and their
pictures show something.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import condgraph
from condgraph.engine.errors import CondgraphError, MissingExtraError
from condgraph.progress import bar

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """Each notebook by its name: as the documentation has it, and as it is executed here."""
    if not os.environ.get("CONDGRAPH_SERVICES"):
        pytest.importorskip("nbclient")
        pytest.importorskip("ipykernel")
    import nbformat

    books = {}
    for path in NOTEBOOKS:
        shown, book = (nbformat.read(path, as_version=4) for _ in range(2))
        nbformat.validate(book)
        execute(book, str(tmp_path_factory.mktemp(path.stem)))
        books[path.stem] = shown, book
    return books


def execute(book: Any, folder: str) -> None:
    """Execute a notebook in a folder."""
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    environment = {name: value for name, value in os.environ.items() if name != "CONDGRAPH_LLM"}
    # Sockets of the file system: no port that another process could take first.
    kernel = AsyncKernelManager(transport="ipc", ip=f"{folder}/kernel", connection_file=f"{folder}/kernel.json")
    NotebookClient(book, km=kernel, timeout=300, resources={"metadata": {"path": folder}}).execute(env=environment)


def texts(book: Any) -> list[list[str]]:
    """What each cell prints or returns, as text. A slow kernel sends one line in two parts."""
    results = []
    for cell in book.cells:
        lines, streams = list[str](), False
        for output in cell.get("outputs", ()):
            if output.output_type == "stream" and output.name == "stdout":
                lines[-1:] = [lines[-1] + output.text] if streams else [*lines[-1:], output.text]
            elif output.output_type == "error":
                lines += output.traceback
            elif output.output_type != "stream":
                lines.append(output.data["text/plain"])
            streams = output.output_type == "stream" and output.name == "stdout"
        results.append(lines)
    return results


def pictures(book: Any) -> list[str]:
    """The drawings of a notebook as SVG."""
    data = [output.data for cell in book.cells for output in cell.get("outputs", ()) if "data" in output]
    return [
        *(one["image/svg+xml"] for one in data if "image/svg+xml" in one),
        *(svg for one in data for svg in re.findall(r"<svg .*?</svg>", one.get("text/html", ""), re.DOTALL)),
    ]


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["a-csv-pair", "a-graph-with-time", "ask-with-a-model"]


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS])
def test_a_notebook_gives_what_it_shows(name: str, executed: dict[str, tuple[Any, Any]]) -> None:
    shown, book = executed[name]
    assert texts(book) == texts(shown)


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS])
def test_the_pictures_of_a_notebook_show_names(name: str, executed: dict[str, tuple[Any, Any]]) -> None:
    shown, book = executed[name]
    assert pictures(book)
    assert len(pictures(book)) == len(pictures(shown))
    for svg in pictures(book):
        root = ElementTree.fromstring(svg)
        tag = root.tag.removesuffix("svg")
        assert len(root.findall(f".//{tag}rect")) >= 2
        assert root.findall(f".//{tag}path")
        assert all("".join(text.itertext()).strip() for text in root.iter(f"{tag}text"))


PROGRESS = r"""
import condgraph
from condgraph.progress import bar

with open("<steps>.tsv", "w") as file:
    file.writelines(f"s{number}\tnext\ts{number + 1}\n" for number in range(20_000))
graph = condgraph.open("memory:")
with bar() as progress:
    graph.load("<steps>.tsv", progress=progress)
"""


def test_a_notebook_shows_progress_and_errors_in_a_line(tmp_path: Path) -> None:
    from nbformat.v4 import new_code_cell, new_notebook

    wrong = new_code_cell('graph.kopl("Find(s1) Relate(nextt, forward) QueryName()")', metadata={"tags": ["raises-exception"]})
    book = new_notebook(cells=[new_code_cell(PROGRESS), wrong])
    execute(book, str(tmp_path))
    (shown,), (error,) = (cell.outputs for cell in book.cells)
    assert re.fullmatch(r"<progress .*></progress> &lt;steps&gt;\.tsv: [\d,]+ records, \d+ s", shown.data["text/html"])
    assert [line for line in error.traceback if line][1:] == [
        "UnknownNameError: unknown relation 'nextt' (at character 17); nearest: 'next'"
    ]


def test_without_anywidget_an_answer_is_drawn_and_the_explorer_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "condgraph.notebook", raising=False)
    graph = condgraph.open("memory:")
    graph.load([{"name": "Bern", "people": 134_591}], name="towns", key="name")
    assert "<svg" in graph.kopl("Find(Bern) QueryAttr(people)").evidence._repr_html_()
    with pytest.raises(MissingExtraError) as raised:
        importlib.import_module("condgraph.notebook")
    assert str(raised.value.hint) == "pip install 'condgraph[notebook]'"


def test_nobody_is_shown_progress_who_sees_none(capsys: pytest.CaptureFixture[str]) -> None:
    with bar() as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")


def test_a_bar_on_a_terminal_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    for calls in ([("a\nb.csv", 1_000, 0.5)], [(5, 10)], [(3, 0.25, None)]):
        with bar() as progress:
            assert progress is not None
            for call in calls:
                progress(*call)
        shown = capsys.readouterr().err
        assert shown.count("\n") == 0
        assert shown.endswith("\r\x1b[K")
        assert any(text in shown for text in ("[##########          ] a�b.csv: 1,000 records", "5 of 10", "epoch 3: loss 0.2500"))


def test_an_error_is_shown_without_the_frames_of_the_package() -> None:
    graph = condgraph.open("memory:")
    graph.load([{"name": "Bern", "people": 134_591}], name="towns", key="name")
    try:
        graph.kopl("Find(Bern) QueryAttr(peple)")
    except CondgraphError as error:
        lines = error._render_traceback_()
    assert lines[0].endswith(': graph.kopl("Find(Bern) QueryAttr(peple)")')
    assert lines[1:] == ["", "UnknownNameError: unknown attribute 'peple' (at character 22); nearest: 'people'"]
    assert CondgraphError("never raised", hint="a hint")._render_traceback_() == ["CondgraphError: never raised; a hint"]
    kinds: list[type[CondgraphError]] = [CondgraphError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    # Also of those that are built-in errors too, whose class might come first.
    assert len(kinds) > 30
    assert {kind._render_traceback_ for kind in kinds} == {CondgraphError._render_traceback_}
