"""A graph in a directory: generations, locks, names, damage."""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import condgraph
from condgraph.engine.bounds import Budget, bounded_by
from condgraph.engine.errors import (
    CondgraphError,
    DeadlineError,
    FormatError,
    LoadError,
    OptionError,
    ReadOnlyError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreMissingError,
    StoreVersionError,
)
from condgraph.engine.facts import Entity, Member, Ref, Statement
from condgraph.engine.snapshot import container
from condgraph.engine.snapshot.build import fewer_collections
from condgraph.engine.snapshot.directory import graph_directory, graph_names, read_generation, writing
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph
from tests.support import graphs
from tests.support.canonical import contents, contents_of
from tests.support.graphs import Dice
from tests.support.lanes import by_lane, examples

FACTS: list[Any] = [
    Statement("Ann", "height", Quantity(1.75, "metre")),
    Statement("Ann", "born", Time.year(1960), (("source", Ref("register")),)),
    Statement("Ann", "knows", Ref("Bob")),
    Member("Ann", "human"),
]


def make(place: Path, items: list[Any] = FACTS, **options: Any) -> Graph:
    """A graph in a directory, with these items."""
    graph = condgraph.open(place, **options)
    graph.add(items)
    return graph


def folder_of(place: Path) -> Path:
    """The directory of the default graph."""
    return graph_directory(place, "default")


def columns_of(place: Path) -> Path:
    """The columns of its only generation."""
    (found,) = folder_of(place).glob("g*/columns")
    return found


# -- generations -----------------------------------------------------------------------------------


def test_a_reader_keeps_its_generation(tmp_path: Path) -> None:
    """What was opened stays as it is while others write, also after its files are gone; `refresh`
    turns to the current one.
    """
    make(tmp_path)
    reader = condgraph.open(tmp_path, read_only=True)
    answer = reader.kopl("Find(Ann) QueryAttr(height)")
    for n in range(3):
        condgraph.open(tmp_path).add([Statement("Ann", "height", Quantity(n, "metre"))])
        assert reader.kopl("Find(Ann) QueryAttr(height)").texts == ["1.75 metre"]
    assert answer.texts == ["1.75 metre"]
    assert answer.evidence[0].subject.name == "Ann"
    assert contents_of(reader) == contents(FACTS)
    assert len(list(folder_of(tmp_path).glob("g*"))) == 1
    reader.refresh()
    assert reader.kopl("Find(Ann) QueryAttr(height)").texts == ["0 metre", "1 metre", "1.75 metre", "2 metre"]
    # What is current is not opened again, but for a graph that was removed and has a generation of the same name.
    opened = reader.current
    reader.refresh()
    assert reader.current is opened
    writer = condgraph.open(tmp_path)
    names = []
    for metres in (8, 9):
        writer.delete()
        writer.add([Statement("Ann", "height", Quantity(metres, "metre"))])
        reader.refresh()
        names.append(reader.current.about["generation"])
        assert reader.kopl("Find(Ann) QueryAttr(height)").texts == [f"{metres} metre"]
    assert names[0] == names[1]


def test_writers_take_turns(tmp_path: Path) -> None:
    """A second writer is told, or waits; what another process wrote is there before something is
    added to it.
    """
    one, two = condgraph.open(tmp_path), condgraph.open(tmp_path)
    with writing(folder_of(tmp_path)):
        with pytest.raises(StoreBusyError):
            two.add(FACTS)
        with pytest.raises(StoreBusyError):
            two.add(FACTS, wait=0.1)
    one.add(FACTS[:2])
    two.add(FACTS[2:])
    assert contents_of(two) == contents(FACTS)


def test_another_process_is_waited_for(tmp_path: Path) -> None:
    """The lock holds between processes, and goes with the one that had it."""
    program = (
        "import sys; from pathlib import Path; from condgraph.engine.snapshot.directory import writing\n"
        "with writing(Path(sys.argv[1])): print('held', flush=True); sys.stdin.readline()"
    )
    command = [sys.executable, "-c", program, str(folder_of(tmp_path))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        graph = condgraph.open(tmp_path)
        with pytest.raises(StoreBusyError, match="another process"):
            graph.add(FACTS)
        holder.kill()
        graph.add(FACTS, wait=30)
    assert contents_of(graph) == contents(FACTS)


def test_all_or_nothing(tmp_path: Path) -> None:
    """A source that fails in its middle changes nothing."""
    graph = make(tmp_path)

    def items() -> Any:
        yield Statement("Ann", "height", Quantity(2, "metre"))
        raise ValueError("the source is gone")

    with pytest.raises(ValueError, match="gone"):
        graph.add(items())
    assert contents_of(graph) == contents(FACTS)
    assert contents_of(condgraph.open(tmp_path)) == contents(FACTS)
    graph.add([Statement("Bob", "height", Quantity(2, "metre"))])
    assert graph.kopl("FindAll() QueryAttr(height)").texts == ["1.75 metre", "2 metre"]


# -- opening ---------------------------------------------------------------------------------------


def test_read_only(tmp_path: Path) -> None:
    """Nothing is written, not even a directory."""
    make(tmp_path / "store")
    graph = condgraph.open(tmp_path / "store", read_only=True)
    with pytest.raises(ReadOnlyError):
        graph.add(FACTS)
    with pytest.raises(ReadOnlyError):
        graph.load([{"a": 1}])
    missing = condgraph.open(tmp_path / "nowhere", read_only=True)
    with pytest.raises(StoreMissingError):
        missing.kopl("FindAll() Count()")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("place", ["memory:", "store"])
def test_empty(place: str, tmp_path: Path) -> None:
    """Nothing loaded is an error that says so; a graph of nothing answers."""
    graph = condgraph.open(place if place == "memory:" else tmp_path / place)
    with pytest.raises(StoreMissingError, match="load something"):
        graph.kopl("FindAll() Count()")
    # The evidence of no statements is a graph, too, and whoever loads it is told how.
    nothing = make(tmp_path / "other").kopl("FindAll() FilterNum(height, 9 metre, >)").evidence.items()
    assert nothing == []
    for items in (nothing, FACTS):
        with pytest.raises(FormatError, match=r"graph\.add\(items\)"):
            graph.load(items)
    graph.add(nothing)
    assert graph.kopl("FindAll() Count()").texts == ["0"]
    answer = graph.kopl("FindAll() QueryName()")
    assert (answer.values, answer.texts, list(answer.evidence), answer.entities) == ([], [], [], [])
    assert graph.kopl("Find(x) QueryAttr(y)", on_unknown="empty").texts == []
    assert graph.status(verify=True).statements == 0
    path = tmp_path / "empty.jsonl"
    graph.export(path)
    again = condgraph.open("memory:")
    again.load(path)
    assert contents_of(again) == contents([])
    graph.add(FACTS)
    assert contents_of(graph) == contents(FACTS)


ODD = (
    "..",
    ".",
    "a/b",
    "/etc",
    " ",
    "a b",
    "übergröße",
    "图",
    "a%2Fb",
    "CON",
    "manifest.json",
    "lock",
    "\n",
    "a\x00b",
    "~",
    "-x",
    "g000001",
)


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_odd_names(name: str, tmp_path: Path) -> None:
    """Any name is a name, and stays within the store."""
    store = tmp_path / "deep" / "store"
    make(store, graph=name)
    make(store, [Statement("x", "y", "z")], graph="other")
    assert contents_of(condgraph.open(store, graph=name)) == contents(FACTS)
    assert sorted(graph_names(store)) == sorted([name, "other"])
    assert os.listdir(tmp_path) == ["deep"]
    assert os.listdir(tmp_path / "deep") == ["store"]


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=30))
def test_any_name(tmp_path: Path, name: str) -> None:
    """Any text is a name, or refused by type; different names are different directories."""
    try:
        folder = graph_directory(tmp_path, name)
    except CondgraphError:
        assert not name or any("\ud800" <= c <= "\udfff" for c in name) or len(name) > 20
        return
    assert folder.parent == tmp_path
    condgraph.open(tmp_path, graph=name).add([])
    assert name in graph_names(tmp_path)


@pytest.mark.parametrize("name", ["", "\ud800", "x" * 1000, "图" * 100])
def test_names_that_cannot_be(name: str, tmp_path: Path) -> None:
    """Too long for a directory, or no text at all."""
    with pytest.raises(OptionError):
        condgraph.open(tmp_path, graph=name)


def test_places_that_cannot_be(tmp_path: Path) -> None:
    """A file is no directory."""
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(StoreError):
        condgraph.open(path).add(FACTS)
    with pytest.raises(CondgraphError):
        condgraph.open("ftp://example.org/graph")


def test_names_that_are_not_there(tmp_path: Path) -> None:
    """The graphs that are there are named."""
    make(tmp_path, graph="films")
    with pytest.raises(StoreMissingError) as caught:
        condgraph.open(tmp_path, graph="film").kopl("FindAll() Count()")
    assert caught.value.candidates == ("films",)


# -- damage ----------------------------------------------------------------------------------------


def test_missing_columns(tmp_path: Path) -> None:
    """The file or its directory is gone."""
    make(tmp_path)
    columns_of(tmp_path).unlink()
    with pytest.raises(StoreDamagedError, match="missing"):
        condgraph.open(tmp_path)
    shutil.rmtree(next(folder_of(tmp_path).glob("g*")))
    with pytest.raises(StoreDamagedError, match="missing"):
        condgraph.open(tmp_path)


@pytest.mark.parametrize("left", [0, 1, 63, 0.5, -1])
def test_truncated_columns(left: float, tmp_path: Path) -> None:
    """A file that is shorter than it should be does not open."""
    make(tmp_path)
    path = columns_of(tmp_path)
    size = path.stat().st_size
    os.truncate(path, int(size * left) if 0 < left < 1 else int(left) if left >= 0 else size - 1)
    with pytest.raises(StoreDamagedError, match="bytes"):
        condgraph.open(tmp_path)


def test_longer_columns(tmp_path: Path) -> None:
    """Bytes behind the last array are found when the bytes are looked at."""
    make(tmp_path)
    with columns_of(tmp_path).open("ab") as file:
        file.write(b"x")
    with pytest.raises(StoreDamagedError):
        condgraph.open(tmp_path).status(verify=True)


def test_missing_manifest(tmp_path: Path) -> None:
    """A generation without a manifest is damage, not an empty store."""
    make(tmp_path)
    (folder_of(tmp_path) / "manifest.json").unlink()
    with pytest.raises(StoreDamagedError, match="missing"):
        condgraph.open(tmp_path)


def test_altered_manifest(tmp_path: Path) -> None:
    """Any byte that is different, missing or added is found when the graph is opened."""
    make(tmp_path)
    path = folder_of(tmp_path) / "manifest.json"
    good = path.read_bytes()
    rng = random.Random(7)
    bad: list[bytes] = [b"", b"\n", b"{}", good[:-1], good + b" ", good.replace(b"\n", b"", 1), good[10:]]
    for at in [*range(30), *(rng.randrange(len(good)) for _ in range(200))]:
        bad.append(good[:at] + bytes([good[at] ^ 1 << rng.randrange(8)]) + good[at + 1 :])
        bad.append(good[:at])
    for body in bad:
        path.write_bytes(body)
        with pytest.raises((StoreDamagedError, StoreVersionError)):
            condgraph.open(tmp_path)
    path.write_bytes(good)
    assert contents_of(condgraph.open(tmp_path)) == contents(FACTS)


def test_flipped_bits(tmp_path: Path) -> None:
    """`status(verify=True)` finds one flipped bit wherever it is, also between the arrays."""
    items = graphs.graph(Dice(3))
    make(tmp_path, items)
    path = columns_of(tmp_path)
    good = path.read_bytes()
    rng = random.Random(11)
    for at in [0, len(good) - 1, *(rng.randrange(len(good)) for _ in range(150))]:
        path.write_bytes(good[:at] + bytes([good[at] ^ 1 << rng.randrange(8)]) + good[at + 1 :])
        with pytest.raises(StoreDamagedError):
            condgraph.open(tmp_path).status(verify=True)
    path.write_bytes(good)
    assert condgraph.open(tmp_path).status(verify=True).verified


QUESTIONS = (
    "FindAll() QueryName()",
    "FindAll() FilterConcept(human) QueryName()",
    "Find(Ann) QueryAttr(height)",
    "Find(Ann) Relate(knows, forward) QueryName()",
    "Find(Bob) Relate(knows, backward) QFilterYear(since, 1999, >) QueryName()",
    "FindAll() FilterNum(height, 1 metre, >) Count()",
    "FindAll() SelectAmong(height, largest)",
    "?x : exists ?v. knows(?x, ?v)",
)


def answered(place: Path) -> list[Any]:
    """The answers, the evidence and the trace of the questions, and all that the graph holds."""
    with condgraph.open(place, read_only=True) as graph:
        answers = [graph.query(question) for question in QUESTIONS]
        found = [(answer.texts, list(map(str, answer.evidence)), list(map(str, answer.trace))) for answer in answers]
        return [*found, contents_of(graph)]


@pytest.mark.parametrize("blocks", [False, True], ids=["whole arrays", "blocks of texts"])
def test_flipped_bits_give_no_wrong_answer(blocks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One flipped bit of a store that opens: each question has its right answer, or the error that
    says that the store is damaged.
    """
    if blocks:
        monkeypatch.setattr(container, "LONG", 64)
        monkeypatch.setattr(container, "BLOCK", 100)
    people: list[Any] = []
    for number in range(40):
        since = (("since", Time.year(1980 + number)),)
        people.append(Statement(f"p{number}", "height", Quantity(1 + number / 100, "metre")))
        people.append(Statement(f"p{number}", "knows", Ref("Bob" if number % 3 else "Ann"), since))
    make(tmp_path, [*FACTS, *people])
    right = answered(tmp_path)
    path = columns_of(tmp_path)
    good = path.read_bytes()
    counts = Counter[str]()
    rng = random.Random(17)
    for _ in range(by_lane(60, 1000, 5000)):
        at = rng.randrange(len(good))
        path.write_bytes(good[:at] + bytes([good[at] ^ 1 << rng.randrange(8)]) + good[at + 1 :])
        try:
            assert answered(tmp_path) == right
            counts["answered rightly"] += 1
        except StoreDamagedError:
            counts["refused"] += 1
    print(dict(counts))
    assert counts["refused"] > counts["answered rightly"]


def test_blocks_of_texts_are_checked_when_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of other blocks are read, however many blocks a text lies in; those of a damaged one are
    not.
    """
    monkeypatch.setattr(container, "LONG", 64)
    monkeypatch.setattr(container, "BLOCK", 100)
    names = [f"{number:03} {'x' * (350 if number == 25 else 20)}" for number in range(50)]
    make(tmp_path, [Entity(name, name) for name in names])
    path = columns_of(tmp_path)
    good = path.read_bytes()
    at = good.index(b"025") + 170
    path.write_bytes(good[:at] + b"y" + good[at + 1 :])
    with condgraph.open(tmp_path) as graph:
        texts = graph.current.texts
        # The empty text is the first.
        assert texts.find(names[3]) == 4
        for number in (0, 24, 49, *range(10)):
            assert texts[number + 1] == names[number]
        assert texts.take(np.arange(1, 21)) == names[:20]
        reads = (
            lambda: texts[26],
            lambda: texts.take(np.arange(50)),
            lambda: texts.take(np.array([26])),
            lambda: texts.find(names[25]),
        )
        for read in reads:
            with pytest.raises(StoreDamagedError, match=r"pool\.bytes"):
                read()
        with pytest.raises(StoreDamagedError, match=r"pool\.bytes"):
            graph.status(verify=True)
    path.write_bytes(good)
    with condgraph.open(tmp_path) as graph:
        assert [graph.current.texts[number] for number in range(51)] == ["", *names]
        assert graph.status(verify=True).verified


def test_a_check_that_a_deadline_ends_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "_CHUNK", 8)
    make(tmp_path, [Statement(f"p{number}", "knows", Ref(f"p{number * 7 % 100}")) for number in range(100)])

    class Looks(Budget):
        left_to_do = 3

        def check(self) -> None:
            self.left_to_do -= 1
            if not self.left_to_do:
                raise DeadlineError("now")

    with condgraph.open(tmp_path) as graph:
        _, arrays = read_generation(folder_of(tmp_path)) or ({}, graph.current.arrays)
        tries = 0
        while True:
            tries += 1
            with suppress(DeadlineError), bounded_by(Looks(None, ())):
                found = arrays.get("rel.s").tolist()
                break
        assert tries > 10
        assert found == graph.current.arrays.get("rel.s").tolist()


@pytest.mark.parametrize("version", [0, 1, 99])
def test_other_versions(version: int, tmp_path: Path) -> None:
    """A graph of another version says which it is and what to do."""
    make(tmp_path)
    path = folder_of(tmp_path) / "manifest.json"
    head, _, body = path.read_bytes().partition(b"\n")
    name, _, checksum = head.split(b" ")
    assert int(checksum, 16) == zlib.crc32(body)
    path.write_bytes(b"%s %d %s\n%s" % (name, version, checksum, body))
    with pytest.raises(StoreVersionError, match=str(version)):
        condgraph.open(tmp_path)


def test_the_manifest_is_for_people(tmp_path: Path) -> None:
    """What it holds can be read with any tool."""
    make(tmp_path)
    _, _, body = (folder_of(tmp_path) / "manifest.json").read_bytes().partition(b"\n")
    manifest = json.loads(body)
    assert manifest["graph"] == "default"
    assert manifest["counts"]["attributes"] == 2


def test_the_collector_is_as_it_was_after_a_load() -> None:
    before, seen = gc.get_threshold(), []

    def things() -> Iterator[Entity]:
        seen.append(gc.get_threshold())
        with fewer_collections():
            yield Entity("a", "Ann")
        seen.append(gc.get_threshold())
        raise LoadError("enough")

    with pytest.raises(LoadError, match="enough"):
        condgraph.open().add(things())
    assert seen[0] == seen[1] != before
    assert gc.get_threshold() == before


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(StoreError, match="cannot be written"):
        condgraph.open("store").load([{"a": 1}], name="t")


def test_cached_look_ups_hold_their_snapshot_while_they_run_alone() -> None:
    """A look-up of a snapshot that nothing else holds works, and its cache does not keep the snapshot alive."""

    def snapshot() -> Snapshot:
        graph = condgraph.open()
        graph.add([Statement("Nepal", "capital", Ref("Kathmandu"))])
        current = graph.current
        del graph
        gc.collect()
        return current

    # In an assertion, pytest holds each part of it.
    found = snapshot().named("Nepal")
    assert len(found) == 1
    held = snapshot()
    assert held.named("Nepal") is held.named("Nepal")
    freed = ref(held)
    gc.disable()
    try:
        del held
        assert freed() is None
    finally:
        gc.enable()
