"""Single changes of statements: what they do, what survives loads, crashes and full disks, and that merging
them gives the graph that is built from the same statements.
"""

from __future__ import annotations

import getpass
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from bisect import bisect_left

import numpy as np
import pytest

import condgraph
from condgraph import Entity, Member, Quantity, Ref, Statement, Time
from condgraph.edits import Edit, Edits, key_of, normal
from condgraph.engine.errors import (
    LiteralError,
    OptionError,
    ReadOnlyError,
    SourceError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    UnknownNameError,
)
from condgraph.engine.snapshot.directory import graph_directory, writing
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.merged import PartialArray
from condgraph.engine.snapshot.readback import items, statements
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.storage import QUERIES_OF_A_PART
from tests.support import commands

BERN = Statement("Bern", "population", Quantity(134000))


@pytest.fixture(params=["memory", "folder"])
def graph(request, tmp_path):
    graph = condgraph.open("memory:" if request.param == "memory" else tmp_path / "store")
    graph.add([BERN, Statement("Bern", "country", Ref("Switzerland")), Statement("Rome", "population", Quantity(2_800_000))])
    return graph


def population(graph):
    return sorted(graph.kopl("Find(Bern) QueryAttr(population)").texts)


def test_adding_retracting_and_correcting(graph):
    report = graph.add("Bern", "population", 134591, {"point in time": "2020"}, by="anna", note="census")
    assert (report.number, report.by, report.kind) == (1, "anna", "add")
    assert population(graph) == ["134000", "134591"]
    evidence = [one for one in graph.kopl("Find(Bern) QueryAttr(population)").evidence if one.sources[0][0].name == "edits"]
    assert evidence[0].sources[0][1] == 1
    graph.retract(BERN)
    assert population(graph) == ["134591"]
    graph.correct(evidence[0], object=134592)
    assert population(graph) == ["134592"]
    assert [edit.kind for edit in graph.edits()] == ["add", "retract", "correct"]
    assert graph.edits()[0].note == "census"
    assert graph.compact() == 3
    assert graph.compact() == 0
    assert population(graph) == ["134592"]


def test_a_retracted_statement_stays_hidden_and_comes_back_changed(graph):
    graph.retract(BERN)
    report = graph.add([BERN], source="other")
    assert any("stays hidden" in warning for warning in report.warnings)
    assert population(graph) == []
    report = graph.add([Statement("Bern", "population", Quantity(135000))], source="third")
    assert any("comes back changed" in warning and "135000" in warning for warning in report.warnings)
    graph.add(BERN)
    assert population(graph) == ["134000", "135000"]


def test_memberships_and_names(graph):
    graph.add(Member("Bern", "city"))
    assert graph.kopl("FindAll() FilterConcept(city) QueryName()").texts == ["Bern"]
    graph.correct(Entity("Rome", "Rome"), name="Roma")
    assert graph.kopl("Find(Roma) QueryAttr(population)").texts == ["2800000"]
    graph.retract(Member("Bern", "city"))
    with pytest.raises(UnknownNameError):
        graph.kopl("FindAll() FilterConcept(city) QueryName()")


def test_wrong_changes_are_typed_errors(graph):
    with pytest.raises(UnknownNameError, match="134000"):
        graph.retract(Statement("Bern", "population", Quantity(134001)))
    with pytest.raises(LiteralError, match="quantity"):
        graph.add("Bern", "population", "many")
    with pytest.raises(LiteralError, match="is not a value"):
        graph.add("Bern", "population", None)
    with pytest.raises(UnknownNameError, match="Switzerland"):
        graph.add("Bern", "country", "Swizerland")
    with pytest.raises(SourceError, match="already"):
        graph.add("Bern", "population", 134000)
    with pytest.raises(SourceError, match="already"):
        graph.correct(BERN, object=134000)
    with pytest.raises(LiteralError):
        graph.add("Bern", "population", Quantity(float("nan")))
    with pytest.raises(OptionError):
        graph.add("Bern", "population")
    with pytest.raises(LiteralError, match="ends in 1980, before it starts in 1990"):
        graph.add("Bern", "population", 5, {"start time": Time.year(1990), "end time": Time.year(1980)})
    for wait in (-1, float("nan"), "soon", True):
        with pytest.raises(OptionError, match="wait is in seconds"):
            graph.add("Bern", "population", 5, wait=wait)
    assert population(graph) == ["134000"]
    assert graph.edits() == []
    report = graph.add("Bern", "populaton", 5)
    assert any("near: population" in warning for warning in report.warnings)


def test_readers_and_read_only(tmp_path):
    writer = condgraph.open(tmp_path)
    writer.add([BERN])
    reader = condgraph.open(tmp_path, read_only=True)
    writer.retract(BERN)
    assert population(reader) == ["134000"]
    reader.refresh()
    assert reader.status().counts["attributes"] == 0
    with pytest.raises(ReadOnlyError):
        reader.add("Bern", "population", 1)
    with writing(graph_directory(tmp_path, "default")), pytest.raises(StoreBusyError):
        writer.add("Bern", "population", 2, wait=0.0)


def test_a_torn_record_is_ignored_and_a_damaged_one_is_an_error(tmp_path):
    graph = condgraph.open(tmp_path)
    graph.add([BERN])
    graph.add("Bern", "population", 1)
    graph.add("Bern", "population", 2)
    log = graph_directory(tmp_path, "default") / "edits.log"
    whole = log.read_bytes()
    log.write_bytes(whole[:-3])
    again = condgraph.open(tmp_path)
    assert population(again) == ["1", "134000"]
    assert any("unfinished change" in note for note in again.status().notes)
    assert any("unfinished change" in warning for warning in again.add("Bern", "population", 3).warnings)
    assert population(condgraph.open(tmp_path)) == ["1", "134000", "3"]
    log.write_bytes(whole.replace(b'"n":1', b'"n":7'))
    with pytest.raises(StoreDamagedError):
        condgraph.open(tmp_path)


def test_a_full_disk_leaves_the_graph_as_it_was(tmp_path, monkeypatch):
    # Python would cut the bytecode of modules that are imported under the limit.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    graph = condgraph.open(tmp_path)
    graph.add([BERN])
    graph.add("Bern", "population", 1)
    log = graph_directory(tmp_path, "default") / "edits.log"
    before = log.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, hard))
        with pytest.raises(StoreError, match="cannot be written"):
            graph.add("Bern", "population", 2, note="a" * 1000)
        with pytest.raises(StoreError, match="cannot be written"):
            graph.load([{"a": f"text {number}"} for number in range(1000)], name="t")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    # Nothing is left of a generation that could not be written.
    assert len([*log.parent.glob("g*")]) == 1
    assert log.read_bytes() == before
    assert population(graph) == population(condgraph.open(tmp_path)) == ["1", "134000"]
    graph.add("Bern", "population", 2)
    assert population(graph) == ["1", "134000", "2"]


WRITER = """
import sys, condgraph
graph = condgraph.open(sys.argv[1])
for number in range(10**9):
    graph.add("Bern", "population", int(sys.argv[2]) + number, wait=60.0)
    print(int(sys.argv[2]) + number, flush=True)
"""


def test_killed_writers_lose_nothing_that_was_reported(tmp_path):
    graph = condgraph.open(tmp_path)
    graph.add([BERN])
    reported = {"134000"}
    for turn in range(2):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(10**6 * (2 * turn + i + 1))], stdout=subprocess.PIPE)
            for i in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            reported.add(writer.stdout.readline().decode().strip())
        time.sleep(0.3)
        for writer in writers:
            writer.kill()
            assert writer.stdout is not None
            reported |= {line.decode().strip() for line in writer.stdout if line.endswith(b"\n")}
            writer.wait()
            writer.stdout.close()
    graph.refresh()
    there = set(population(graph))
    assert reported <= there
    # Of each writer that was killed one more may be there, which was not reported.
    assert len(there) <= len(reported) + 4
    assert [edit.number for edit in graph.edits()] == list(range(1, len(there)))


# -- merging -----------------------------------------------------------------------------------------


#: Columns that are the same in both, number for number.
EXACT = (
    "rel.s", "rel.o", "rel.offsets", "att.s", "att.offsets", "out.offsets", "in.items", "val.start", "qkey.offsets", "grp.start",
    "qgrp.start", "sch.q.count", "sch.s.count", "ent.by_id", "con.items", "dec.e", "dec.src",
)  # fmt: skip


def a_value(dice, entities):
    kind = dice.random()
    if kind < 0.4:
        return Ref(dice.choice(entities))
    if kind < 0.55:
        return Quantity(dice.choice([1, 2, -3.5, 2**60 + 1, 7]), dice.choice(["1", "metre", "km"]))
    return Time.year(dice.randrange(1900, 1910)) if kind < 0.7 else dice.choice(["a", "b", "x y", "ünï", "A"])


def a_statement(dice, entities, predicates):
    keys = ["start time", "end time", "of", "k0", "k1"]
    pairs = tuple((dice.choice(keys), a_value(dice, entities)) for _ in range(dice.choice([0, 0, 0, 1, 2])))
    return normal(Statement(dice.choice(entities), dice.choice(predicates), a_value(dice, entities), pairs))


@pytest.mark.parametrize("seed", range(30))
def test_merging_changes_gives_the_graph_that_is_built(seed):
    dice = random.Random(seed)
    entities = [f"e{i}" for i in range(dice.choice([3, 8, 20]))]
    predicates = [f"p{i}" for i in range(4)]
    graph = condgraph.open()
    for source in range(dice.choice([1, 1, 2, 3])):
        added = [a_statement(dice, entities, predicates) for _ in range(dice.choice([3, 30]))]
        named = [Entity(one, dice.choice([one, "Name", "Zed"])) for one in dice.sample(entities, 2)]
        graph.add([*added, *named, Member(dice.choice(entities), "concept", 1)], source=f"s{source}")
    base, waiting = graph.current, Edits()
    every = [normal(one) for one, _ in statements(base, np.arange(base.statements, dtype=np.int32))]
    for number in range(1, 10):
        there = [one for one in every if key_of(one) not in waiting.removed]
        there += [part for part, _ in waiting.added.values() if isinstance(part, Statement)]
        if there and dice.random() < 0.5:
            edit = Edit(number, "retract", "x", "t", (), (dice.choice(there),))
        else:
            one = a_statement(dice, [*entities, f"n{dice.randrange(4)}"], [*predicates, f"q{dice.randrange(2)}"])
            if waiting.states(base, one):
                continue
            edit = Edit(number, "add", "x", "t", (one,))
        waiting.apply(Edit.read(edit.record()))
        built = Snapshot.of(*lay_out(waiting.builder(base)))
        merged = waiting.quickly_merged(base)
        assert merged is not None
        assert sorted(map(repr, items(merged))) == sorted(map(repr, items(built)))
        assert merged.counts == built.counts
        for name in built.arrays.names:
            # Equal relations with other qualifiers come in no fixed order.
            if not name.startswith("pool.") and name not in ("att.raw", "prov.raw"):
                assert len(merged.arrays.get(name)) == len(built.arrays.get(name)), name
        for name in EXACT:
            assert merged.arrays.get(name).tolist() == built.arrays.get(name).tolist(), name
        for name, maker in merged.arrays._makers.items():
            if maker.some is not None:
                column = merged.arrays.get(name)
                places = np.array(dice.sample(range(maker.length), maker.length // 2), np.int64)
                assert maker.length == len(column), name
                assert maker.some(places).tolist() == column[places].tolist(), name


def test_a_column_of_which_a_part_is_made_is_that_column():
    column = np.arange(1000, dtype=np.int32) * 3
    made = []
    partly = PartialArray(column.take, lambda: made.append(True) or column, len(column))
    for few in (lambda one: one[7], lambda one: one[-2], lambda one: one[10:20], lambda one: one[3:9:2], lambda one: one[1:][5:9],
                lambda one: one.take(np.array([4, 2])), lambda one: one[[4, -1]], lambda one: one.view(np.float32)[3:4],
                lambda one: one.dtype, len, lambda one: one.nbytes):  # fmt: skip
        assert np.array_equal(few(partly), few(column))
    assert type(partly.data[7]) is int
    assert bisect_left(partly.data, 9, 0, 8) == 3
    assert not made
    for much in (lambda one: one + 1, lambda one: 2 * one[1:], lambda one: one[one > 30], lambda one: np.isin(one, [6]), list,
                 lambda one: one.searchsorted(30), lambda one: one[::-1], lambda one: np.concatenate([one[2:], one]),
                 lambda one: one.take(np.arange(500)), lambda one: one[np.zeros(1000, bool)],
                 lambda one: one.data.tolist()):  # fmt: skip
        assert np.array_equal(much(partly), much(column))
    with pytest.raises(IndexError):
        partly[1000]


def test_a_query_after_a_change_makes_no_column(tmp_path):
    """Queries after a change cost little, and many of them as little as without one."""
    graph = condgraph.open(tmp_path)
    count = 20_000
    graph.add([Statement(f"e{n}", "next", Ref(f"e{n * 7 % count}")) for n in range(count)])
    plain = [graph.kopl(f"Find(e{n}) Relate(next, forward) QueryName()").texts for n in range(40)]
    graph.add("e0", "next", "e5")
    graph.retract(("e3", "next", "e21"))
    plain[0], plain[3] = ["e0", "e5"], []
    for n in range(40):
        assert sorted(graph.kopl(f"Find(e{n}) Relate(next, forward) QueryName()").texts) == plain[n]
        # A query looks at the snapshot more than once while its names are new.
        if n < QUERIES_OF_A_PART // 2 or n >= QUERIES_OF_A_PART:
            assert ("out.items" in graph._storage._merged._partly.arrays._arrays) == (n >= QUERIES_OF_A_PART), n


def test_readers_in_other_threads_see_the_last_change(tmp_path):
    """A reader that merges while a change is written must not leave what it merged for those after it."""
    graph = condgraph.open(tmp_path / "store")
    graph.add([Statement(f"x{i}", "knows", Ref(f"y{i}")) for i in range(2000)], source="many")
    program = "Find(Ann) Relate(knows, forward)"
    graph.add("Ann", "knows", Ref("b"))
    over, seen = threading.Event(), []

    def read():
        while not over.is_set():
            seen.append(len(graph.kopl(program).texts))

    readers = [threading.Thread(target=read) for _ in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for reader in readers:
            reader.start()
        for i in range(18):
            graph.add("Ann", "knows", Ref(f"b{i}"))
            if i % 3 == 2:
                time.sleep(0.1)
                assert len(graph.kopl(program).texts) == i + 2
    finally:
        over.set()
        for reader in readers:
            reader.join()
        sys.setswitchinterval(interval)
    assert len(seen) > 10


def test_the_command_line(tmp_path):
    store = str(tmp_path / "store")
    condgraph.open(store).add([BERN, Statement("Bern", "population", Quantity(134000), (("by", "census"),))])

    def change(*words):
        ran = commands.run(words[0], "-d", store, *words[1:])
        return ran.returncode, ran.stdout + ran.stderr

    code, text = change("retract", "Bern", "population", "134000")
    assert (code, "2 statements are meant" in text, "by: census" in text) == (1, True, True)
    code, text = change("retract", "Bern", "population", "134000", "-Q", "by=census", "--by", "anna")
    assert (code, "- Bern | population | 134000 (by: census)" in text) == (0, True)
    code, text = change("retract", "Bern", "population", "134001")
    assert (code, "error[unknown-name]" in text, "nearest: 'Bern | population | 134000'" in text) == (1, True, True)
    code, text = change("correct", "Bern", "population", "134000", "--object", "134,000.5 x y")
    assert (code, "error[literal]" in text) == (1, True)
    assert change("correct", "Bern", "population", "134000", "--object", "134591")[0] == 0
    assert change("correct", "Bern", "--name", "Berne")[0] == 0
    code, text = change("add", "Berne", "area", "51")
    assert (code, "is added as a text, and not as a number" in text) == (0, True)
    assert change("add", "Berne", "instance of", "city")[0] == 0
    assert change("retract", "Berne", "instance of", "city")[0] == 0
    assert change("add", "Berne", "population", "1", "-Q", "by")[0] == 2
    code, text = change("edits")
    kinds = ["correct", "correct", "add", "add", "retract"]
    wanted = ["1 retract by anna", *(f"{n} {kind} by {getpass.getuser()}" for n, kind in enumerate(kinds, 2))]
    assert [line.split(" at ")[0] for line in text.splitlines()] == wanted
    with writing(graph_directory(tmp_path / "store", "default")):
        code, text = change("retract", "Berne", "area", "51", "--wait", "0")
        assert (code, "error[store-busy]" in text) == (3, True)
    assert change("compact")[1].strip() == "no single change waits"


def test_a_tuple_names_a_statement_as_an_answer_shows_it(graph):
    graph.add([Statement("Bern", "twin", Ref("Rome"), (("since", Time.year(1990)),))], source="more")
    graph.correct("Rome", name="Roma")
    with pytest.raises(UnknownNameError):
        graph.retract(("Bern", "twin", "Roma", {"since": "1991"}))
    graph.retract(("Bern", "twin", "Roma", {"since": "1990"}))
    graph.retract(("Bern", "population", 134000))
    with pytest.raises(OptionError, match="subject, predicate, object"):
        graph.retract(("Bern", "population"))
    assert graph.kopl("Find(Bern) QueryAttr(population)").texts == []


#: Times as people write them, and the statement that is added, or what is said of it.
WRITTEN_TIMES = [
    ({"start time": "49 BC", "end time": "44 BC"}, "(start time: -48, end time: -43)"),
    ({"start time": 54, "end time": "3 May 1068"}, "(start time: 54, end time: 1068-05-03)"),
    ({"point in time": "1984-05-03T10:00+02:00"}, "(point in time: 1984-05-03T08:00:00)"),
    ({"start time": "long ago"}, "the qualifier 'start time', 'long ago', is not a time: it does not say when the statement holds"),
    ({"start time": "44 BC", "end time": "49 BC"}, "the statement would hold at no time: it ends in -48, before it starts in -43"),
]


@pytest.mark.parametrize(("qualifiers", "said"), WRITTEN_TIMES)
def test_times_of_a_first_statement_that_has_any(qualifiers, said):
    graph = condgraph.open()
    if "at no time" in said:
        with pytest.raises(LiteralError, match=re.escape(said)):
            graph.add("Rome", "ruled by", Ref("Caesar"), qualifiers)
        return
    assert said in str(graph.add("Rome", "ruled by", Ref("Caesar"), qualifiers))
    held = "Find(Rome) Relate(ruled by, forward) QueryName()"
    assert graph.query(held, at="1500").texts == (["Caesar"] if "not a time" in said else [])
    graph.retract(("Rome", "ruled by", "Caesar", qualifiers))
    assert graph.status().statements == 0
