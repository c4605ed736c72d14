"""Statements that cannot hold together, against a loop over all pairs; and answers that rest on one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.agents.toolbox import Toolbox
from condgraph.agents.toolbox import calls as agent_calls
from condgraph.cli.app import app
from condgraph.engine.conflicts import compared
from condgraph.engine.errors import CondgraphError, OptionError, ReadOnlyError, UnknownNameError, UnsupportedError
from condgraph.engine.facts import Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.studio import calls
from condgraph.studio.spec import Match, Query, read_fields
from tests.support.contradictions import by_hand, listed, random_statements, with_planted
from tests.support.lanes import by_lane
from tests.support.stores import empty_graph, marked

CAPITAL = "Find(Nepal) Relate(capital, forward) QueryName()"


@pytest.fixture
def graph() -> condgraph.Graph:
    result = condgraph.Graph()
    year = Time.year
    result.add([Statement("Nepal", "capital", Ref("Kathmandu"), (("rank", "deprecated"),))], source="atlas")
    result.add([Statement("Nepal", "capital", Ref("Pokhara"), (("rank", "preferred"),))], source="notes")
    terms = (("A", 1980, 1984), ("B", 1984, 1990), ("C", 1982, 1986))
    result.add(
        [Statement("Nepal", "head", Ref(n), (("start time", year(a)), ("end time", year(b)))) for n, a, b in terms], source="terms"
    )
    return result


@pytest.mark.parametrize("seed", range(by_lane(6, 200, 2000)))
def test_random_statements_against_all_pairs(seed: int) -> None:
    graph = condgraph.Graph()
    graph.add(random_statements(200, seed))
    expected = by_hand(graph, {"p"})
    assert len(expected) > 50
    assert listed(graph, "p") == expected
    assert listed(graph, "p", certain=True) == {one for one in expected if one[1]}


def test_planted_conflicts_are_found_and_no_others() -> None:
    count = by_lane(100, 1000, 1000)
    statements, planted = with_planted(count, seed=4)
    graph = condgraph.Graph()
    graph.add(statements)
    expected = by_hand(graph, {"p"})
    assert {pair for pair, certain in expected if certain} == planted
    assert len(planted) == count
    assert listed(graph, "p") == expected
    assert listed(graph, "p", certain=True) == {(pair, True) for pair in planted}


def test_pages_make_up_the_whole(graph: condgraph.Graph) -> None:
    graph.add(random_statements(300, 1))
    every = [str(one) for one in graph.conflicts("head", "p", limit=None)]
    paged, more = list[str](), True
    while more:
        page = graph.conflicts("head", "p", limit=by_lane(29, 7, 7), offset=len(paged))
        paged += map(str, page)
        more = page.more
    assert paged == every


def test_terms_that_follow_each_other_are_no_conflict(graph: condgraph.Graph) -> None:
    pairs = {tuple(sorted(side.object.name for side in one.statements)) for one in graph.conflicts("head")}  # type: ignore[union-attr]
    assert pairs == {("A", "C"), ("B", "C")}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Quantity(198, "centimetre"), Quantity(1.98, "metre"), "same"),
        (Quantity(1.98, "metre"), Quantity(1.97, "metre"), "different"),
        (Quantity(1.98, "metre"), Quantity(198), "unclear"),
        (Time.year(1984), Time.day(1984, 5, 1), "same"),
        (Time.year(1984), Time.year(1985), "different"),
        (Quantity(1984), Time.day(1984, 5, 1), "same"),
        ("1984-05-01", Time.year(1984), "same"),
        ("12 metre", Quantity(12, "metre"), "same"),
        ("tall", Quantity(12, "metre"), "unclear"),
        (condgraph.Entity("Q1", "Berlin"), "Berlin", "same"),
        (condgraph.Entity("Q1", "Berlin"), condgraph.Entity("Q2", "Berlin"), "same"),
        (condgraph.Entity("Q1", "Berlin"), "Bonn", "different"),
        (condgraph.UNKNOWN, "Bonn", "same"),
    ],
)
def test_values_are_compared_by_what_they_mean(a: Any, b: Any, expected: str) -> None:
    assert compared(a, b) == compared(b, a) == expected


def test_answers_name_the_other_side_of_declared_predicates_alone(graph: condgraph.Graph) -> None:
    program = "Find(Pokhara) Relate(capital, backward) QueryName()"
    assert not graph.kopl(program).warnings
    graph.declare("capital")
    (warning,) = graph.kopl(program).warnings
    assert "Kathmandu" in warning
    assert "rests on Nepal | capital | Pokhara" in warning
    (both,) = graph.kopl(CAPITAL).warnings
    assert "as well" in both
    assert not graph.kopl("Find(A) Relate(head, backward) QueryName()").warnings
    graph.declare("capital", remove=True)
    assert not graph.kopl(program).warnings


@pytest.mark.parametrize(
    ("prefer", "expected"), [(["atlas", "notes"], "Kathmandu"), (["notes"], "Pokhara"), ("rank", "Pokhara"), ("latest", None)]
)
@pytest.mark.parametrize("engine", [None, "sparql"])
def test_preferences_resolve_conflicts(graph: condgraph.Graph, prefer: Any, expected: str | None, engine: Any) -> None:
    graph.declare(["capital"])
    asked = graph.query(CAPITAL, prefer=prefer, engine=engine)
    graph.declare(["capital"], prefer=prefer)
    for answer in (asked, graph.query(CAPITAL, engine=engine), graph.prepare(CAPITAL, engine=engine)()):
        assert answer.texts == (["Kathmandu", "Pokhara"] if expected is None else [expected])
        assert answer.check(full=True)
    if engine is None and expected is not None:
        assert any("is preferred" in warning for warning in asked.warnings)
        lost = "Kathmandu" if expected == "Pokhara" else "Pokhara"
        assert any("not counted" in one for one in graph.kopl(f"Find({lost}) Relate(capital, backward) QueryName()").warnings)
    # What is stored is not changed.
    assert len(graph.conflicts("capital")) == 1


def test_a_prepared_program_follows_a_declaration(graph: condgraph.Graph) -> None:
    prepared = graph.prepare("Find($x) Relate(capital, forward) QueryName()")
    for _ in range(5):
        assert prepared(x="Nepal").texts == ["Kathmandu", "Pokhara"]
    graph.declare("capital", prefer=["atlas"])
    assert prepared(x="Nepal").texts == ["Kathmandu"]


def test_predicates_are_proposed(graph: condgraph.Graph) -> None:
    values = [Statement(f"s{n}", "born", Time.year(1900 + n)) for n in range(100)]
    several = [Statement(f"s{n}", "friend", Ref(f"s{(n + k) % 100}")) for n in range(100) for k in (1, 2)]
    graph.add([*values, *several, Statement("s5", "born", Time.year(1999))])
    found = graph.conflicts(propose=True)
    assert [one.predicate for one in found.proposed] == ["born"]
    assert found.proposed[0].share == 0.99
    assert len(found) == 1


def test_declarations_are_stored_with_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "capitals.csv"
    file.write_text("country,capital\nNepal,Kathmandu\nNepal,Pokhara\nPeru,Lima\n")
    graph = condgraph.open(tmp_path / "store")
    graph.load(file, key="country", single_valued=["capital"], on_error="skip")
    graph.load([{"a": "1", "b": "2"}], name="other", single_valued={"b": "latest"})
    reader = condgraph.open(tmp_path / "store", read_only=True)
    assert [*reader.declare.__self__._storage.settings["single_valued"]] == ["capital", "b"]  # type: ignore[attr-defined]
    with pytest.raises(ReadOnlyError):
        reader.declare("b")
    graph.declare("b", remove=True)
    reader.refresh()
    assert reader.conflicts().predicates == ("capital",)
    assert graph.load([{"a": "1"}], name="third", single_valued="absent").warnings


def test_a_declaration_file_declares_predicates(tmp_path: Path) -> None:
    (tmp_path / "countries.csv").write_text("id,capital\nNepal,Kathmandu\n")
    (tmp_path / "towns.csv").write_text("id,country\nLima,Nepal\n")
    (tmp_path / "condgraph.toml").write_text('[single_valued]\ncapital = true\ncountry = ["towns"]\n')
    graph = condgraph.Graph()
    graph.load(tmp_path)
    assert graph.conflicts().predicates == ("capital", "country")
    (tmp_path / "condgraph.toml").write_text('single_valued = "capital"\n[joins]\n')
    condgraph.Graph().load(tmp_path)
    (tmp_path / "condgraph.toml").write_text('[single_valued]\ncapital = "newest"\n')
    with pytest.raises(CondgraphError, match="newest"):
        condgraph.Graph().load(tmp_path)


@pytest.fixture(params=["duckdb", *marked("neo4j", "oxigraph")])
def stored(request: pytest.FixtureRequest) -> Iterator[Any]:
    with empty_graph(request, "conflicts") as found:
        yield found


def test_servers_list_the_same(stored: Any) -> None:
    local = condgraph.Graph()
    local.add(random_statements(120, 3))
    graph = stored
    graph.add(random_statements(120, 3))
    assert listed(graph, "p") == listed(local, "p")
    assert [str(one) for one in graph.conflicts("p", limit=5)] == [str(one) for one in local.conflicts("p", limit=5)]
    with pytest.raises(UnknownNameError):
        graph.conflicts("q")
    for call in (
        lambda: graph.declare("p", prefer="rank"),
        lambda: graph.conflicts(propose=True),
        lambda: graph.versions(),
        lambda: graph.query("Find(s1) QueryAttr(p)", as_of="2020"),
    ):
        with pytest.raises(UnsupportedError, match=r"graph|folders|query"):
            call()


def test_answers_of_servers_name_the_other_side(stored: Any) -> None:
    local = condgraph.Graph()
    for graph in (local, stored):
        graph.add(random_statements(120, 3))
        assert not graph.query("Find(s1) QueryAttr(p)").warnings
        graph.declare("p")
    programs = [f"Find(s{number}) QueryAttr(p)" for number in range(6)]
    programs += ["FindAll() FilterNum(p, 2, >) QueryName()", "Find(o1) Relate(p, backward) QueryName()"]
    warned = 0
    for program in programs:
        expected = sorted(local.query(program, on_unknown="empty").warnings)
        assert sorted(stored.query(program, on_unknown="empty").warnings) == expected, program
        warned += sum("the answer rests on" in warning for warning in expected)
    assert warned > 5
    stored.declare("p", remove=True)
    assert not stored.query(programs[0]).warnings


@pytest.mark.parametrize(
    "prefer", ["latest", *(pytest.param(one, marks=pytest.mark.slow) for one in ({"p": ["b", "a"]}, {"p": "earliest"}))], ids=str
)
def test_preferences_resolve_conflicts_of_servers(stored: Any, prefer: Any) -> None:
    local = condgraph.Graph()
    for graph in (local, stored):
        for source, seed in (("a", 3), ("b", 4)):
            graph.add(random_statements(120, seed), source=source)
        graph.declare("p")
    changed = 0
    for number in range(10):
        program = f"Find(s{number}) QueryAttr(p)"
        here, there = (graph.query(program, on_unknown="empty", prefer=prefer) for graph in (local, stored))
        assert (there.texts, sorted(there.warnings)) == (here.texts, sorted(here.warnings))
        assert there.check(full=True)
        changed += here.texts != local.query(program, on_unknown="empty").texts
    assert changed
    prepared = stored.prepare("Find($x) QueryAttr(p)", prefer=prefer)
    assert prepared(x="s1").texts == local.query("Find(s1) QueryAttr(p)", prefer=prefer).texts
    # What is added on the server later counts.
    for graph in (local, stored):
        graph.add([Statement("s1", "p", Quantity(99))], source="a")
    assert prepared(x="s1").texts == local.query("Find(s1) QueryAttr(p)", prefer=prefer).texts


def test_a_preference_names_its_predicates(graph: condgraph.Graph) -> None:
    assert graph.query(CAPITAL, prefer={"capital": ["notes"]}).texts == ["Pokhara"]
    assert graph.query(CAPITAL).texts == ["Kathmandu", "Pokhara"]
    pattern = [("Nepal", "capital", "UNKNOWN city 1")]
    assert graph.match(pattern, k=None, prefer={"capital": ["notes"]}).texts == ["Pokhara"]
    assert graph.match(pattern, k=None).texts == ["Kathmandu", "Pokhara"]
    with pytest.raises(UnknownNameError) as unknown:
        graph.query(CAPITAL, prefer={"capitol": "latest"})
    assert unknown.value.candidates == ("capital",)
    for wrong in ({}, {"capital": "newest"}, {"capital": ["nobody"]}, {"capital": None}, {"capital": 3}):
        with pytest.raises(OptionError):
            graph.query(CAPITAL, prefer=wrong)


def test_a_prepared_program_with_a_preference_follows_its_graph(graph: condgraph.Graph) -> None:
    graph.add([Statement("Lima", "part of", Ref("Peru"))], source="third")
    prepared = graph.prepare("Find($x) Relate(capital, forward) QueryName()", prefer={"capital": ["third", "notes"]})
    assert prepared(x="Nepal").texts == ["Pokhara"]
    graph.add([Statement("Nepal", "capital", Ref("Lalitpur"))], source="third")
    assert prepared(x="Nepal").texts == ["Lalitpur"]


def test_the_http_api_asks_with_a_preference_and_of_a_version(tmp_path: Path) -> None:
    graph = condgraph.open(tmp_path / "store")
    graph.keep_versions(5)
    graph.add([Statement("Nepal", "capital", Ref("Kathmandu"))], source="atlas")
    graph.add([Statement("Nepal", "capital", Ref("Pokhara"))], source="notes")

    def texts(call: Any, fields: dict[str, Any], model: Any) -> list[str]:
        document = call(graph, read_fields(fields, model))
        return sorted(row[-1]["text"] for row in document["rows"])

    assert texts(calls.query, {"program": CAPITAL}, Query) == ["Kathmandu", "Pokhara"]
    assert texts(calls.query, {"program": CAPITAL, "prefer": {"capital": ["notes"]}}, Query) == ["Pokhara"]
    assert texts(calls.query, {"program": CAPITAL, "as_of": "g000001"}, Query) == ["Kathmandu"]
    pattern = {"pattern": "(Nepal) -[capital]-> (UNKNOWN city 1)", "k": 2}
    exact = {}
    for fields in ({}, {"prefer": {"capital": ["notes"]}}, {"as_of": "g000001"}):
        rows = calls.match(graph, read_fields(pattern | fields, Match))["rows"]
        exact[str(fields)] = sum(row[-1]["number"] == 0 for row in rows)
    assert [*exact.values()] == [2, 1, 1]


def test_agents_ask_with_a_preference_and_of_a_version(tmp_path: Path) -> None:
    graph = condgraph.open(tmp_path / "store")
    graph.keep_versions(5)
    graph.add([Statement("Nepal", "capital", Ref("Kathmandu"))], source="atlas")
    graph.add([Statement("Nepal", "capital", Ref("Pokhara"))], source="notes")
    tools = Toolbox(graph)
    assert tools.query(CAPITAL, prefer={"capital": ["notes"]}).texts == ["Pokhara"]
    assert tools.query(CAPITAL, as_of="g000001").texts == ["Kathmandu"]
    functions = {function.__name__: function for function in agent_calls(tools)}
    assert functions["query"](CAPITAL, prefer={"capital": "notes"})["texts"] == ["Pokhara"]
    assert functions["evidence"](CAPITAL, as_of="g000001")["total"] == 1
    assert functions["query"](CAPITAL, as_of="g000009")["error"]
    pattern = "(Nepal) -[capital]-> (UNKNOWN city 1)"
    for view, expected in (({}, 2), ({"prefer": {"capital": ["notes"]}}, 1), ({"as_of": "g000001"}, 1)):
        assert sum(not subgraph.distance for subgraph in tools.match(pattern, **view).subgraphs) == expected


def test_the_command_line_asks_with_a_preference_of_a_predicate(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    with condgraph.open(store) as graph:
        graph.add([Statement("Nepal", "capital", Ref("Kathmandu"))], source="atlas")
        graph.add([Statement("Nepal", "capital", Ref("Pokhara"))], source="notes")
    run = CliRunner().invoke(app, ["query", "-d", store, CAPITAL, "--prefer", "capital=notes", "--prefer", "capital=atlas"])
    assert run.stdout == "Pokhara\n"
    pattern = "(Nepal) -[capital]-> (UNKNOWN city 1)"
    run = CliRunner().invoke(app, ["match", "-d", store, "--best", "--prefer", "capital=notes", "--format", "json", pattern])
    assert json.loads(run.stdout)["answers"] == ["Pokhara"]
    assert CliRunner().invoke(app, ["query", "-d", store, CAPITAL, "--prefer", "capital=a", "--prefer", "b"]).exit_code == 2


def test_bad_input_is_a_typed_error(graph: condgraph.Graph) -> None:
    with pytest.raises(OptionError, match="no predicate is declared"):
        graph.conflicts()
    with pytest.raises(UnknownNameError) as unknown:
        graph.conflicts("capitol")
    assert unknown.value.candidates == ("capital",)
    for prefer in ("newest", 5, [], [3], ["nobody"]):
        with pytest.raises(OptionError):
            graph.declare("capital", prefer=prefer)
    with pytest.raises(OptionError):
        graph.query(CAPITAL, prefer="rank")
    for value in ([], {}, 5, [""]):
        with pytest.raises(OptionError):
            graph.declare(value)
    with pytest.raises(ReadOnlyError):
        graph.at("1984").declare("capital")


def test_the_command_lists_conflicts(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    with condgraph.open(store) as graph:
        graph.add([Statement("Nepal", "capital", Ref("Kathmandu"))], source="atlas")
        graph.add([Statement("Nepal", "capital", Ref("Pokhara"))], source="notes")
    run = CliRunner().invoke(app, ["conflicts", "-d", store, "capital", "--declare", "--prefer", "atlas"])
    assert run.exit_code == 0, run.output
    assert "contradicts Nepal | capital | Pokhara  [notes]" in run.stdout
    assert "preferred is Nepal | capital | Kathmandu" in run.stdout
    run = CliRunner().invoke(app, ["conflicts", "-d", store, "--format", "json"])
    (record,) = json.loads(run.stdout)
    assert record["statements"][0]["preferred"]
    run = CliRunner().invoke(app, ["query", "-d", store, CAPITAL, "--prefer", "notes"])
    assert run.stdout == "Pokhara\n"


def test_the_limit_of_counted_conflicts_is_of_all_predicates_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condgraph.engine.conflicts._MAX_COUNTED", 4)
    graph = condgraph.Graph()
    graph.add([Statement("Nepal", name, Quantity(number)) for name in ("area", "height") for number in range(4)])
    graph.declare(["area", "height"])
    warnings = graph.cypher("MATCH (n {name: 'Nepal'}) RETURN n.area, n.height").warnings
    assert "only 4 conflicts of these subjects were examined; graph.conflicts() lists all" in warnings
    counted = sum("the answer rests on" in warning for warning in warnings)
    assert counted == 3, warnings
