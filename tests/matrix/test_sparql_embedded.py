"""The embedded RDF store gives the answers that the snapshot gives: on one of everything, on the
oracle, on random programs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Timer

import pytest
from hypothesis import given, settings

import condgraph
from condgraph.engine.errors import CancelledError, DeadlineError
from condgraph.engine.facts import Ref, Statement
from condgraph.graph import Graph
from tests.frontends.test_llm_query_data import benchmark
from tests.support.differential import Outcome, outcome
from tests.support.graphs import drawn
from tests.support.graphs import graph as a_graph
from tests.support.lanes import by_lane, examples
from tests.support.pace import quick_enough
from tests.support.programs import as_json, program
from tests.support.world import PROGRAMS, QUERIES, world


@pytest.fixture(scope="module")
def small() -> Graph:
    return world()


def both(graph: Graph, text: object, **options: object) -> tuple[Outcome, Outcome]:
    """What the snapshot and the RDF store say, errors with their messages."""
    here, there = (outcome(graph, text, engine=engine, **options) for engine in ("snapshot", "sparql"))
    return here, there


@pytest.mark.parametrize("text", [*PROGRAMS, *QUERIES])
def test_equal_answers(small: Graph, text: str) -> None:
    here, there = both(small, text)
    assert here == there, (here, there)
    assert not here.error


def test_a_program_of_given_values_alone_needs_nothing_of_the_graph(small: Graph) -> None:
    text = 'Query1: "360 > 3"\n## Target type: {boolean}'
    here, there = both(small, text)
    assert here == there, (here, there)
    assert there.texts == ("yes",)


@pytest.mark.parametrize("text", PROGRAMS)
def test_equal_traces_and_evidence(small: Graph, text: str) -> None:
    here, there = small.kopl(text), small.kopl(text, engine="sparql")
    steps = ("Find", "FindAll", "Relate", "And", "Or", "FilterConcept", "FilterNum", "FilterYear", "QueryName")
    sizes = [[(step.function, step.size) for step in one.trace if step.function in steps] for one in (here, there)]
    assert sizes[0] == sizes[1]
    assert list(map(str, there.evidence)) == list(map(str, here.evidence))
    assert there.evidence_by_step == here.evidence_by_step
    assert {place for places in here.evidence_by_step for place in places} == set(range(len(here.evidence)))
    assert there.warnings == here.warnings
    assert there.sparql == here.sparql
    assert there.sparql in there.explain()


def test_oracle_programs(data: Path, tmp_path: Path) -> None:
    """Some programs of the small oracle; with CONDGRAPH_ALL=1 half of them, and some of those
    of the large one, which the whole run asks in full.
    """
    folder = data.parent / "oracle"
    small, large = by_lane((20, 0), (2, 20), (1, 1))
    for kb, name, step in (("kb_small.json", "programs_small", small), ("kb.json", "programs_dev", large)):
        if not step:
            continue
        graph = condgraph.open(tmp_path / name)
        graph.load(folder / kb)
        lines = (folder / f"{name}.jsonl").read_text("utf-8").splitlines()
        programs = [json.loads(line) for line in lines][::step]
        different = []
        for one in programs:
            here, there = both(graph, one["program"])
            if here != there:
                different.append(one["id"])
        assert different == []


@settings(max_examples=examples(60))
@given(drawn(lambda pick: (a_graph(pick), [program(pick) for _ in range(8)])))
def test_random_programs_over_random_graphs(case: tuple[list, list]) -> None:
    items, programs = case
    graph = condgraph.open()
    graph.add(items, source="random")
    for i, steps in enumerate(programs):
        on_unknown = "empty" if i % 2 else "error"
        here, there = both(graph, as_json(steps), on_unknown=on_unknown)
        assert here == there, (as_json(steps), here, there)


def test_programs_over_tables(data: Path) -> None:
    """LLM queries as models wrote them, each on its table; every one of them in the whole run."""
    wtq = benchmark("wtq")
    asked = [question for question in wtq.questions(data, "training") if question.program is not None]
    different = []
    for question in asked[:: by_lane(80, 8, 1)]:
        graph = condgraph.open()
        graph.load(data / "wikitablequestions" / question.table)
        here, there = both(graph, question.program, language="llm_query")
        if here != there:
            different.append(question.id)
    assert different == []


def test_the_store_is_kept_with_its_generation(tmp_path: Path) -> None:
    graph = condgraph.open(tmp_path)
    graph.add([Statement("a", "p", "one")], source="s")
    assert graph.kopl("Find(a) QueryAttr(p)", engine="sparql").texts == ["one"]
    folder = graph.rdf().folder
    assert folder is not None
    assert folder.is_dir()
    again = condgraph.open(tmp_path, read_only=True)
    assert again.rdf().folder == folder
    graph.add([Statement("a", "p", "two")], source="s")
    assert graph.kopl("Find(a) QueryAttr(p)", engine="sparql").texts == ["one", "two"]
    # A reader keeps the generation that it opened; what is no longer current is gone from the disk.
    assert again.kopl("Find(a) QueryAttr(p)", engine="sparql").texts == ["one"]
    assert not folder.exists()


def test_a_directory_that_cannot_be_written_has_its_store_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = condgraph.open(tmp_path)
    graph.add([Statement("a", "p", "one")], source="s")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert graph.rdf().folder is None
    assert graph.kopl("Find(a) QueryAttr(p)", engine="sparql").texts == ["one"]


def big(size: int = 60) -> Graph:
    """A graph of which a query of six hops through everything takes long."""
    graph = condgraph.open()
    graph.add([Statement(f"e{i}", "to", Ref(f"e{j}")) for i in range(size) for j in range(size) if (i * j) % 3], source="big")
    return graph


#: No file of more than 20 kB can be written, as on a full disk.
FULL = """
import resource, sys, condgraph
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
graph = condgraph.open(sys.argv[1], read_only=True)
for query in ("SELECT (COUNT(*) AS ?n) { ?s <pred:name> ?o }", "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s <pred:name> ?o } }"):
    print(*(graph.sparql(query, timeout=timeout).rows[0][0] for timeout in (None, 30.0)))
"""


@pytest.mark.parametrize("temporary", [True, False])
def test_a_full_disk_costs_the_copy_on_disk_alone(tmp_path: Path, temporary: bool) -> None:
    place = tmp_path / "store"
    with condgraph.open(place) as graph:
        graph.load([{"name": f"town {i}"} for i in range(1000)], name="towns", key="name")
        names = graph.snapshot().sparql("SELECT (COUNT(*) AS ?n) { ?s <pred:name> ?o }").rows[0][0]
    assert names == 1000
    # Python would cut the bytecode of modules that are imported under the limit, for everybody who shares it.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | ({} if temporary else {"TMPDIR": str(tmp_path / "nowhere")})
    ran = subprocess.run([sys.executable, "-c", FULL, str(place)], capture_output=True, text=True, timeout=60, env=environment)
    assert ran.stdout.split() == [str(names)] * 4, ran.stderr
    # What it costs is told, in a line for each store.
    assert ran.stderr.count("the RDF store is kept in memory") == 2
    assert "Traceback" not in ran.stderr


def test_a_generation_that_a_load_replaced_is_asked_all_the_same(tmp_path: Path) -> None:
    place = tmp_path / "store"
    with condgraph.open(place) as graph:
        graph.load([{"name": "Ann", "height": 2}], name="people", key="name")
        old = condgraph.open(place, read_only=True)
        half = condgraph.open(place, read_only=True)
        half.rdf()  # its store is open, and its folder goes before a process has opened it
        graph.load([{"name": "Bo", "height": 3}], name="more", key="name")
        count = "SELECT (COUNT(*) AS ?n) { %s }"
        for one in (half, old):
            for where in ("?s <height> ?o", "GRAPH ?g { ?s <height> ?o }"):
                assert [one.sparql(count % where, timeout=timeout).rows[0][0] for timeout in (30.0, None)] == [1, 1]
            assert one.kopl("FindAll() QueryName()", engine="sparql").texts == ["Ann"]
            assert one.kopl("Find(Ann) QueryAttr(height)").texts == ["2"]
            one.refresh()
            assert one.sparql(count % "?s <height> ?o", timeout=30.0).rows[0][0] == 2


def test_a_query_is_ended_at_its_deadline() -> None:
    graph = big()
    program = "FindAll() " + "Relate(to, forward) " * 6 + "Count()"
    graph.kopl("Find(e1) Count()", engine="sparql", timeout=60)
    begin = time.monotonic()
    with pytest.raises(DeadlineError):
        graph.kopl(program, engine="sparql", timeout=0.5)
    assert quick_enough(time.monotonic() - begin, 5)
    assert graph.kopl("Find(e1) Relate(to, forward) Count()", engine="sparql", timeout=60).texts == ["40"]


def test_a_query_is_ended_by_its_caller() -> None:
    graph = big()
    cancelled = Event()
    Timer(0.5, cancelled.set).start()
    with pytest.raises(CancelledError):
        graph.kopl("FindAll() " + "Relate(to, forward) " * 6 + "Count()", engine="sparql", cancelled=cancelled)
