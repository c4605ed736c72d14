"""Taking graphs away: what condgraph wrote goes, whatever else a person keeps there stays, and the
command asks first.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.engine.errors import ReadOnlyError, StoreBusyError, StoreMissingError
from condgraph.engine.facts import Ref, Statement
from condgraph.engine.snapshot.directory import writing
from condgraph.samples import FOLDER

FOREIGN = (
    "mine.txt", "g000001/notes.txt", "g000007/columns.bak", "vectors/mine.arrays", "manifest.json.bak", "g000002/rdf2/mine.sst",
    "default/g000003/columns",
)  # fmt: skip


def store(place: Path) -> condgraph.Graph:
    """A graph with all that is kept beside one."""
    graph = condgraph.open(place)
    for _ in range(2):
        graph.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
    graph.index()
    assert len(graph.sparql("SELECT ?s { ?s ?p ?o } LIMIT 1").values) == 1
    return graph


def files(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if not path.is_dir()}


def test_nothing_is_left_of_a_graph(tmp_path: Path) -> None:
    graph = store(tmp_path / "store")
    other = condgraph.open(tmp_path / "store", graph="other")
    other.add([Statement("a", "p", Ref("b"))])
    kept, answer = graph.snapshot(), graph.kopl("FindAll() Count()")
    assert graph.delete()
    assert not graph.delete()
    assert not (tmp_path / "store" / "default").exists()
    with pytest.raises(StoreMissingError):
        graph.kopl("FindAll() Count()")
    # What was given stays good, and so do other graphs; a load makes a new one.
    assert kept.kopl("FindAll() Count()").texts == answer.texts
    assert other.kopl("FindAll() Count()").texts == ["2"]
    graph.add([Statement("a", "p", Ref("b"))])
    assert graph.kopl("FindAll() Count()").texts == ["2"]
    assert condgraph.open(tmp_path / "store").status().others == ("default", "other")


def test_files_of_others_stay(tmp_path: Path) -> None:
    place = tmp_path / "default"
    graph = store(tmp_path)
    for name in FOREIGN:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("mine")
    (place / "link").symlink_to("mine.txt")
    # Also when the generation before is cleaned away.
    graph.add([Statement("a", "p", Ref("b"))])
    assert {*FOREIGN, "link"} <= files(place)
    assert graph.delete()
    assert files(place) == {*FOREIGN, "link"}
    with pytest.raises(StoreMissingError):
        condgraph.open(tmp_path).status()
    graph.load(FOLDER / "mountains.csv", key="mountain")
    assert graph.delete()
    assert files(place) == {*FOREIGN, "link"}


def test_in_memory_and_read_only(tmp_path: Path) -> None:
    graph = condgraph.open()
    assert not graph.delete()
    graph.add([Statement("a", "p", Ref("b"))])
    assert graph.delete()
    with pytest.raises(StoreMissingError):
        graph.kopl("FindAll() Count()")
    condgraph.open(tmp_path).add([Statement("a", "p", Ref("b"))])
    for act in ("delete", "abandon"):
        with pytest.raises(ReadOnlyError):
            getattr(condgraph.open(tmp_path, read_only=True), act)()
    with writing(tmp_path / "default"), pytest.raises(StoreBusyError):
        condgraph.open(tmp_path).delete()
    assert not condgraph.open(tmp_path / "nothing").delete()
    assert not (tmp_path / "nothing").exists()


def call(*arguments: str | Path) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return found.exit_code, found.output


def test_the_command_asks(tmp_path: Path) -> None:
    store(tmp_path)
    code, said = call("delete", "-d", tmp_path)
    assert code == 2
    assert "--yes" in said
    for typed, code, left in (("n\n", 1, True), ("y\n", 0, False)):
        outer, inner = pty.openpty()
        command = [sys.executable, "-m", "condgraph", "delete", "-d", str(tmp_path)]
        process = subprocess.Popen(command, stdin=inner, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        os.write(outer, typed.encode())
        said = process.communicate(timeout=60)[0]
        os.close(outer)
        os.close(inner)
        assert process.returncode == code, said
        assert "Delete graph 'default' (55 entities, 149 statements)" in said
        assert (tmp_path / "default").exists() is left
    assert call("delete", "-d", tmp_path, "--yes")[0] == 3
    condgraph.open(tmp_path).add([Statement("a", "p", Ref("b"))])
    assert call("abandon", "-d", tmp_path, "--yes") == (0, "no load is unfinished\n")
    assert call("abandon", "-d", tmp_path)[0] == 2
    assert call("delete", "-d", tmp_path, "-y") == (0, "graph 'default' is deleted\n")
