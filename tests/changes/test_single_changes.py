"""Single changes in folders and on servers: random ones next to a plain model, made by processes that are killed; several
writers; loads in between; and what is refused.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import condgraph
from condgraph import Entity, Member, Quantity, Ref, Statement, Subclass, Time
from condgraph.edits import Edits
from condgraph.engine.errors import ReadOnlyError, SourceError, StoreBusyError, UnknownNameError, UnsupportedError
from condgraph.engine.identity import content_digest
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.overview.survey import described, survey
from tests.support.changing import exported
from tests.support.lanes import by_lane
from tests.support.postgres import postgres
from tests.support.single_changes import run
from tests.support.stores import marked

BERN = Statement("Bern", "population", Quantity(134000))
SWISS = [BERN, Statement("Bern", "country", Ref("Switzerland")), Member("Bern", "city"), Entity("Rome", "Rome")]
STORES = [*marked("neo4j", "oxigraph", "duckdb", nightly=("fuseki", "postgres"))]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a store, and the options of a graph there that is empty."""
    options = {"graph": "single changes"}
    if request.param == "duckdb":
        yield f"duckdb:///{tmp_path}/graphs.duckdb", options
        return
    if request.param == "postgres":
        with postgres(tmp_path) as address:
            yield address, options
        return
    if request.param == "neo4j":
        place = request.getfixturevalue("neo4j_uri")
    else:
        server = request.getfixturevalue(f"{request.param}_server")
        place, options["update"] = f"sparql+{server.query}", server.update
    with condgraph.open(place, **options) as graph:
        graph.delete()
        yield place, options
        graph.delete()


def population(graph: Any) -> list[str]:
    return sorted(graph.kopl("Find(Bern) QueryAttr(population)").texts)


@pytest.mark.parametrize("seed", range(by_lane(1, 20, 20)))
def test_random_changes_in_a_folder_that_is_killed(tmp_path: Any, seed: int) -> None:
    done = run(str(tmp_path), {}, seed=seed, acts=by_lane(40, 500, 500), kills=0.1, more=("compact", "declare"))
    assert done["add"]
    assert done["retract"]
    assert done["killed"]


@pytest.mark.slow
def test_random_changes_on_a_server_whose_writer_is_killed(store: tuple[str, dict[str, str]]) -> None:
    place, options = store
    done = run(place, options, seed=5, acts=by_lane(5, 500, 500), kills=by_lane(0.4, 0.04, 0.04), within=0.3)
    assert done["killed"]


def test_changes_on_a_server_are_those_of_a_folder(store: tuple[str, dict[str, str]], tmp_path: Any) -> None:
    place, options = store
    folder = condgraph.open(tmp_path / "folder")
    with condgraph.open(place, **options) as there:
        for graph in (there, folder):
            graph.add(SWISS)
            report = graph.add("Bern", "population", 134591, {"point in time": "2020"}, by="anna", note="census")
            assert (report.number, report.by) == (1, "anna")
            graph.retract(BERN)
            graph.correct(Entity("Rome", "Rome"), name="Roma")
            graph.retract(Member("Bern", "city"))
            graph.add(Member("Roma", "town"))
            with pytest.raises(UnknownNameError, match="134591"):
                graph.retract(BERN)
        assert exported(there) == exported(folder)
        assert [(edit.number, edit.kind, edit.by, edit.added, edit.removed) for edit in there.edits()] == [
            (edit.number, edit.kind, edit.by, edit.added, edit.removed) for edit in folder.edits()
        ]
        assert there.schema().text() == folder.schema().text()
        for graph in (there, folder):
            report = graph.add([BERN, Member("Bern", "city"), Statement("Bern", "population", Quantity(7))], source="other")
            assert sum("stays hidden" in warning for warning in report.warnings) == 1
            assert any("comes back changed" in warning for warning in report.warnings)
            with pytest.raises(SourceError, match="not taken away together"):
                graph.unload("edits")
        assert exported(there) == exported(folder)
        assert population(there) == population(folder) == ["134591", "7"]
        evidence = next(one for one in there.kopl("Find(Bern) QueryAttr(population)").evidence if one.sources[0][0].name == "edits")
        assert evidence.sources[0][1] == 1
        for graph in (there, folder):
            graph.unload("other")
            assert graph.compact() in (0, 5)
        assert exported(there) == exported(folder)
    with condgraph.open(place, **options, read_only=True) as reader, pytest.raises(ReadOnlyError):
        reader.retract(Statement("Bern", "country", Ref("Switzerland")))


#: Parts of a stored schema that queries are only planned by, or that stay as they are where nothing needs them any more.
ESTIMATES = {"hubs", "degrees", "telling", "temporal", "raw"}


def of_schema(snapshot: Snapshot, stored: dict[str, Any] | None = None) -> dict[str, Any]:
    """The schema of a snapshot, or one that is stored, without estimates."""
    result = json.loads(json.dumps(described(snapshot) if stored is None else stored))
    for sort, keys in result["shown"].items():
        # Of places the first by value counts, and only where values are read by it.
        firsts = {name: [sorted(places or (), key=lambda p: (p[2], p[0]))[:1] if some else [] for some, places in known]
                  for name, known in keys.items()}  # fmt: skip
        result["shown"][sort] = {name: found for name, found in firsts.items() if any(found)}
    result["qualifiers"] = {name: sorted(kinds) for name, kinds in result["qualifiers"].items()}
    return {name: part for name, part in result.items() if name not in ESTIMATES}


def of_survey(counted: dict[str, Any]) -> dict[str, Any]:
    """A survey without its examples, and without the first and last values, which a change may leave open."""
    kinds = [[*row[:4], row[5]] for row in counted["kinds"]]
    predicates = [[*row[:3], [value[:3] for value in row[3]], len(row[4]), row[5]] for row in counted["predicates"]]
    ends = [[part.tolist() for part in counted[side]] for side in ("subjects", "objects")]
    return {"counts": counted["counts"], "sources": counted["sources"], "kinds": kinds, "predicates": predicates, "ends": ends}


@pytest.mark.slow
def test_a_change_of_a_part_is_one_of_the_whole_graph(store: tuple[str, dict[str, str]]) -> None:
    """Also what the graph states of itself, and without pulling it."""
    place, options = store
    many = [
        *SWISS, Entity("lonely", "lonely"), Subclass("city", "place"), Member("Basel", "city"), Entity("Zug", "Zug (city)"),
        Statement("Bern", "population", Quantity(51, "km"), (("start time", Time.year(2001)), ("of", Ref("Zug")))),
        Statement("Basel", "population", Quantity(171_000)), Statement("Basel", "near", Ref("Bern"), (("of", "a b"), ("of", "c"))),
    ]  # fmt: skip
    steps: list[Callable[[Any], Any]] = [
        lambda graph: graph.add("lonely", "near", Ref("Basel"), {"of": Ref("new")}),
        lambda graph: graph.retract(Statement("Basel", "near", Ref("Bern"), (("of", "a b"), ("of", "c")))),
        lambda graph: graph.correct(many[-3], subject=Ref("Zug"), object=Quantity(7), qualifiers={"end time": Time.year(2004)}),
        lambda graph: graph.add("Bern", "population", 134_001, {"of": Ref("Zug")}),
        lambda graph: graph.retract(Statement("lonely", "near", Ref("Basel"), (("of", Ref("new")),))),
        lambda graph: graph.retract(Statement("Bern", "country", Ref("Switzerland"))),
        lambda graph: graph.add("city", "says", 'it\'s \\ "ü"', new_type=True),
        lambda graph: graph.add("Bern", "says", "true"),
        lambda graph: graph.add("Zug", "population", 7.5),
        lambda graph: graph.add("Basel", "population", 2.5, {"note": "false"}, new_type=True),
        lambda graph: graph.retract(Statement("Zug", "population", Quantity(7.5))),
        lambda graph: graph.retract(BERN),
    ]
    with condgraph.open(place, **options) as graph:
        graph.add(many)
        server = graph._storage.server
        before = server.snapshot()
        for step in steps:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(server, "snapshot", lambda: pytest.fail("the graph was pulled"))
                step(graph)
            after, stated = server.snapshot(), server.stated()
            wanted = Snapshot.of(*lay_out(Edits.of(graph.edits()[-1:]).builder(before)))
            assert content_digest(after) == content_digest(wanted)
            assert {name: stated.counts[name] for name in after.counts} == after.counts
            assert of_survey(stated.survey) == of_survey(survey(after))
            assert of_schema(after, stated.schema) == of_schema(after)
            before = after


def test_a_change_opens_a_file_of_duckdb_once(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from condgraph.sql import connections

    place, opened, opens = f"duckdb:///{tmp_path}/graphs.duckdb", list[bool](), connections._File._opened
    with condgraph.open(place) as graph:
        graph.add(SWISS)
    monkeypatch.setattr(
        connections._File, "_opened", lambda file, *, read_only: (opened.append(read_only), opens(file, read_only=read_only))[1]
    )
    with condgraph.open(place) as graph:
        opened.clear()
        graph.retract(BERN)
        graph.add("Bern", "population", 1)
        assert opened == [False, False]
        with pytest.raises(UnknownNameError):
            graph.retract(BERN)
        assert population(graph) == ["1"]
    with condgraph.open(place, read_only=True) as graph, pytest.raises(ReadOnlyError):
        graph.add("Bern", "population", 2)
    assert opened.count(False) == 3


def test_a_first_value_that_is_retracted_leaves_no_wrong_span(tmp_path: Any) -> None:
    years = {"Bern": 1191, "Basel": 1300, "Zug": 1400}
    facts = [Statement(city, "founded", Time.year(year)) for city, year in years.items()]
    others = [Statement("Rome", "sacked", Time.year(410)), Statement("Rome", "height", Quantity(21))]
    graphs = [condgraph.open(f"duckdb:///{tmp_path}/graphs.duckdb", graph="spans"), condgraph.open(tmp_path / "folder")]
    for graph in graphs:
        graph.add([*facts, *others])
        assert "times from 0410-01-01 to 1400-12-31" in str(graph.schema())
        graph.retract(facts[-1])
    server, folder = (str(graph.schema()) for graph in graphs)
    assert "times from 0410-01-01 to 1300-12-31" in folder
    assert "times from" not in server
    assert "time 2;" in server
    for graph in graphs:
        graph.close()


def test_writers_on_a_server_take_turns(store: tuple[str, dict[str, str]]) -> None:
    place, options = store
    with condgraph.open(place, **options) as first:
        first.add(SWISS)
        errors: list[BaseException] = []

        def write(who: int) -> None:
            try:
                with condgraph.open(place, **options) as graph:
                    for number in range(3):
                        graph.add("Bern", "population", 10 * who + number, by=str(who), wait=120.0)
            except BaseException as error:  # noqa: BLE001 - raised below
                errors.append(error)

        writers = [threading.Thread(target=write, args=(who,)) for who in (1, 2, 3)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        if errors:
            raise errors[0]
        first.refresh()
        wanted = sorted(["134000", *(str(10 * who + number) for who in (1, 2, 3) for number in range(3))])
        assert population(first) == wanted
        assert [edit.number for edit in first.edits()] == list(range(1, 10))


def test_a_writer_of_triples_waits_for_the_turn_of_another(oxigraph_server: Any) -> None:
    place, options = f"sparql+{oxigraph_server.query}", {"graph": "single changes", "update": oxigraph_server.update}
    with (
        condgraph.open(place, **options) as graph,
        subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as other,
    ):
        graph.delete()
        graph.add(SWISS)
        store = graph.store
        here = socket.gethostname()

        def turn(owner: str) -> str:
            return f'DATA {{ GRAPH <{store.base}> {{ <{store.base}> <pred:turn> "{owner}" }} }}'

        running = f"{here}/{other.pid}/0"
        store.endpoint.update(f"INSERT {turn(running)}")
        with pytest.raises(StoreBusyError, match=f"changed by process {other.pid} on"):
            graph.add("Bern", "population", 1, wait=0.0)
        with pytest.raises(StoreBusyError):
            graph.add([Statement("Rome", "country", Ref("Switzerland"))], source="again")
        assert population(graph) == ["134000"]
        other.communicate()
        # It has ended, so that its turn is over.
        graph.add("Bern", "population", 1, wait=0.0)
        elsewhere = "elsewhere/1/0"
        store.endpoint.update(f"INSERT {turn(elsewhere)}")
        with pytest.raises(StoreBusyError, match="process 1 on elsewhere"):
            graph.add("Bern", "population", 2, wait=0.0)
        graph.abandon()
        graph.add("Bern", "population", 2, wait=0.0)
        assert population(graph) == ["1", "134000", "2"]
        assert not store.endpoint.query("ASK { ?s <pred:turn> ?o }", graphs=(store.base,))
        graph.delete()


def test_a_first_change_makes_the_graph(store: tuple[str, dict[str, str]]) -> None:
    place, options = store
    with condgraph.open(place, **options) as graph:
        graph.add("Bern", "population", 1)
        assert population(graph) == ["1"]
        assert [source.name for source in graph.status().sources] == ["edits"]
        graph.delete()
        graph.add(SWISS)
        assert graph.edits() == []


def test_a_load_that_is_not_finished_is_no_graph_to_change(neo4j_uri: str) -> None:
    with condgraph.open(neo4j_uri, graph="single changes") as graph:
        graph.delete()
        graph.add(SWISS)
        connection = graph.store.connection
        connection.write("MATCH (g:CondgraphGraph {name: 'single changes'}) SET g.loading = 'x', g.complete = false", {})
        with pytest.raises(StoreBusyError, match="not finished"):
            graph.retract(BERN, wait=0.0)
        connection.write("MATCH (g:CondgraphGraph {name: 'single changes'}) SET g.complete = true REMOVE g.loading", {})
        graph.retract(BERN)
        graph.delete()


def test_tables_of_others_are_not_changed(tmp_path: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "theirs.duckdb")) as connection:
        connection.execute("CREATE TABLE city (name VARCHAR PRIMARY KEY, population INT)")
        connection.execute("INSERT INTO city VALUES ('Bern', 134000)")
    with condgraph.open(f"duckdb:///{tmp_path}/theirs.duckdb", layout="native") as graph, pytest.raises(ReadOnlyError):
        graph.add("Bern", "population", 1)


def test_nodes_and_triples_of_others_are_not_changed(neo4j_uri: str, oxigraph_server: Any) -> None:
    base = "http://example.org/single-changes/"
    triple = f"<{base}Bern> <{base}population> 134000"
    with condgraph.open(neo4j_uri, graph="single changes") as mine:
        write = mine.store.connection.write
        write("CREATE (:SingleChangesCity {name: 'Bern', population: 134000})", {})
        try:
            with condgraph.open(neo4j_uri, layout="native") as graph, pytest.raises(ReadOnlyError):
                graph.add("Bern", "population", 1)
        finally:
            write("MATCH (n:SingleChangesCity) DELETE n", {})
    with condgraph.open(f"sparql+{oxigraph_server.query}", update=oxigraph_server.update) as mine:
        mine.store.endpoint.update(f"INSERT DATA {{ {triple} }}")
        try:
            with condgraph.open(f"sparql+{oxigraph_server.query}", layout="native") as graph, pytest.raises(ReadOnlyError):
                graph.add("Bern", "population", 1)
        finally:
            mine.store.endpoint.update(f"DELETE DATA {{ {triple} }}")


@pytest.mark.slow
def test_virtuoso_makes_no_change_at_once(virtuoso_server: Any) -> None:
    with condgraph.open(f"sparql+{virtuoso_server.query}", graph="single", update=virtuoso_server.update) as graph:
        graph.add(SWISS)
        with pytest.raises(UnsupportedError, match="row by row"):
            graph.add("Bern", "population", 1)
        graph.delete()
