"""True at a time: programs as of a time, against the graph that a loop cut at that time."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.agents.toolbox import Toolbox
from condgraph.cli.app import app
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import OptionError, ReadOnlyError, UnsupportedError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import UNKNOWN, Precision, Quantity, Time
from condgraph.studio import calls
from condgraph.studio.spec import Explain, Query, read_fields
from tests.ask.asking import Scripted
from tests.support.lanes import by_lane
from tests.support.samples import load_samples
from tests.support.stores import asked_of, empty_graph, marked
from tests.support.timed_programs import GRAPHS, Embedded, Maker, loaded
from tests.support.true_at import counts, disagreements, shown

HEADS = "Find(Germany) Relate(head, forward) QueryName()"


def stated(subject: str, predicate: str, thing: Any, *qualifiers: tuple[str, Any]) -> Statement:
    return Statement(subject, predicate, thing, qualifiers)


@pytest.fixture(scope="module")
def graph() -> condgraph.Graph:
    """Every form of validity: both ends, one, none, unknown, a point, several, and ends in the wrong order."""
    year, start, end, point = Time.year, "start time", "end time", "point in time"
    result = condgraph.Graph()
    result.add(
        [
            *(Entity(name, name) for name in ("Germany", "Kohl", "Schröder", "Merkel", "Bonn", "Berlin", "Anna", "Ben")),
            stated("Germany", "head", Ref("Kohl"), (start, Time.day(1982, 10, 1)), (end, Time.day(1998, 10, 27))),
            stated("Germany", "head", Ref("Schröder"), (start, Time.day(1998, 10, 27)), (end, UNKNOWN)),
            stated("Germany", "head", Ref("Merkel"), (start, year(2005))),
            stated("Germany", "capital", Ref("Bonn"), (end, year(1990))),
            stated("Germany", "capital", Ref("Berlin"), (start, year(1990)), (start, year(1991))),
            stated("Germany", "population", Quantity(78), (point, year(1984))),
            stated("Germany", "population", Quantity(82), (point, year(2000))),
            stated("Germany", "area", Quantity(357)),
            stated("Bonn", "near", Ref("Anna"), (start, UNKNOWN), (end, UNKNOWN)),
            stated("Anna", "near", Ref("Ben"), (start, year(1995)), (end, year(1980))),
            stated("Kohl", "height", Quantity(193, "cm"), (start, year(1950))),
            stated("Merkel", "height", Quantity(165, "cm"), (start, year(1970))),
            stated("Kohl", "height", Quantity(120, "cm"), (end, year(1940))),
        ]
    )
    return result


PROGRAMS = [
    HEADS,
    "FindAll() QueryName()",
    "FindAll() FilterNum(height, 130 cm, >) QueryName()",
    "Find(Kohl) Find(Merkel) SelectBetween(height, greater)",
    "Find(Kohl) Find(Merkel) SelectBetween(height, less)",
    "FindAll() SelectAmong(height, smallest)",
    "Find(Germany) QueryAttr(population)",
    "Find(Germany) Relate(capital, forward) Count()",
    "Find(Germany) Relate(head, forward) QFilterYear(start time, 1990, >) QueryName()",
    "Find(Berlin) Relate(capital, backward) QueryName()",
    "Query1: \"get_information(relation='head', head_entity='Germany')\"",
    "Query1: \"get_information(relation='head', head_entity='Germany', key='start time')\"",
    'Query1: "get_information(relation=\'height\')"\nQuery2: "max(output_of_query1)"',
    '?x : head("Germany", ?x) or capital("Germany", ?x)',
    '?x : near("Anna", ?x) and not near(?x, "Anna")',
    "MATCH (a)-[r]->(b) RETURN a.name, type(r), b.name",
    "MATCH (a {name: 'Kohl'}) RETURN a.height, keys(a), properties(a), a['height']",
    "MATCH (a {name: 'Germany'}) OPTIONAL MATCH (a)-[:head]->(b) WHERE b.height > 170 RETURN count(b), collect(b.height)",
    "MATCH (a)-[:head|capital|near*1..3]->(b) RETURN a.name, b.name",
    "MATCH p = (a {name: 'Germany'})-[*1..3]-(b) RETURN length(p), b.name",
    "MATCH p = shortestPath((a {name: 'Germany'})-[*]->(b {name: 'Ben'})) RETURN [n IN nodes(p) | n.name]",
    "MATCH (a) WHERE EXISTS { (a)-[:near]->() } AND NOT (a)-[:capital]->() RETURN a.name",
    "MATCH (a)-[:near]-(b) RETURN DISTINCT a.name, b.name",
]
TIMES = [
    Time.year(1930), Time.year(1984), Time.day(1998, 10, 27), Time.month(1990, 12), Time.year(2020),
    Time(Time.year(1980).start, Time.year(1999).end, Precision.SPAN),
]  # fmt: skip


@pytest.mark.parametrize("certain", [False, True])
def test_every_language(graph: condgraph.Graph, certain: bool) -> None:
    count, wrong = disagreements(graph, PROGRAMS, [(time, certain) for time in TIMES])
    assert not wrong, wrong[0]
    assert count == len(PROGRAMS) * len(TIMES)


def test_what_holds(graph: condgraph.Graph) -> None:
    assert graph.query(HEADS, at="1984").texts == ["Kohl"]
    assert graph.query(HEADS, at=1998).texts == ["Kohl", "Schröder"]
    # An unknown end may be any time later; an end that is not stated, too.
    assert graph.query(HEADS, at=date(2010, 1, 1)).texts == ["Merkel", "Schröder"]
    assert graph.query(HEADS, at="2010", certain=True).texts == []
    assert graph.query(HEADS, between=("1983", "1990"), certain=True).texts == ["Kohl"]
    assert graph.query(HEADS, between=(None, "1981")).texts == []
    assert graph.query(HEADS, between=("2006", None)).texts == ["Merkel", "Schröder"]
    assert graph.kopl("Find(Germany) QueryAttr(population)", at="1984").values == [Quantity(78)]
    assert graph.kopl("Find(Germany) QueryAttr(area)", at="1200", certain=True).values == [Quantity(357)]
    table = "group by head show count()"
    assert len(graph.query("Find(Germany)", table=table, at="1984").values) == 1


def test_evidence_and_steps_are_of_the_time(graph: condgraph.Graph) -> None:
    for program in PROGRAMS:
        answer = graph.query(program, at="1998-10-27")
        assert answer.check().ok, program
        for one in answer.evidence:
            held = Statement(one.subject.id, one.predicate, "", tuple(one.qualifiers))  # type: ignore[arg-type]
            assert one.kind != "statement" or counts(held, Time.day(1998, 10, 27), False)
    steps = graph.query(HEADS, at="1984").trace
    assert [step.size for step in steps][-1] == 1
    assert "During('may', 1984)" in graph.explain(HEADS, at="1984")


def test_plans_are_kept_apart(graph: condgraph.Graph) -> None:
    heads = "Find($name) Relate(head, forward) QueryName()"
    then, now = graph.prepare(heads, at="1984"), graph.prepare(heads)
    for _ in range(6):
        assert graph.query(HEADS, at="1984").texts == then(name="Germany").texts == ["Kohl"]
        assert graph.query(HEADS).texts == now(name="Germany").texts == ["Kohl", "Merkel", "Schröder"]
        assert graph.query(HEADS, at="2020").texts == ["Merkel", "Schröder"]


def test_view(graph: condgraph.Graph) -> None:
    view = graph.at("1984")
    assert view.query(HEADS).texts == view.kopl(HEADS).texts == view.prepare(HEADS)().texts == ["Kohl"]
    assert view.table("Find(Germany) Relate(head, forward)").show("count()").ask().texts == ["1"]
    assert view.cypher("MATCH (:_ {name: 'Germany'})-[:head]->(b) RETURN b.name", on_unknown="empty").texts == []
    assert view.cypher("MATCH ({name: 'Germany'})-[:head]->(b) RETURN b.name").texts == ["Kohl"]
    assert view.snapshot().query(HEADS).texts == ["Kohl"]
    assert "Kohl" in view.match([("Germany", "head", "UNKNOWN x")], k=1).texts
    assert view.logic('?x : head("Germany", ?x)').texts == ["Kohl"]
    assert view.at("2020").query(HEADS).texts == ["Merkel", "Schröder"]
    assert sum(one.statements for one in view.schema().predicates) < sum(one.statements for one in graph.schema().predicates)
    with pytest.raises(ReadOnlyError, match="load"):
        view.load("x.csv")
    with pytest.raises(OptionError, match="already"):
        view.query(HEADS, at="1990")


def test_the_steps_of_a_question_are_of_the_time(graph: condgraph.Graph) -> None:
    view = graph.at("1984")
    outcome = list(view.asking("Who was head of Germany?", Scripted(HEADS), via="kopl"))[-1]
    assert outcome.answer.texts == ["Kohl"]
    # What is not of a time has none: demonstrations, versions, and the times that are named to it.
    plain = {name for name in dir(condgraph.Graph) if not name.startswith("_") and name not in vars(type(view))}
    assert plain == {"current", "demos", "difference", "edits", "kopl", "of", "query", "refresh", "table", "versions"}


def test_difference(graph: condgraph.Graph) -> None:
    changed = graph.difference("1984", "2000")
    assert [str(one.object) for one in changed.gone if one.predicate == "population"] == ["78"]
    assert {one.object.name for one in changed.new if one.predicate in ("head", "capital")} == {"Schröder", "Berlin"}
    assert {one.object.name for one in changed.gone if one.predicate in ("head", "capital")} == {"Kohl", "Bonn"}
    assert str(changed).startswith("from 1984 to 2000: ")
    for certain in (False, True):
        for first, second in ((1984, 2000), (2000, 1984), (1930, 1985)):
            times = Time.year(first), Time.year(second)
            changed = graph.difference(*times, certain=certain)
            held = [
                (one, *(counts(Statement("", "", "", tuple(one.qualifiers)), time, certain) for time in times))  # type: ignore[arg-type]
                for one in graph.query("MATCH (a)-[r]->(b) RETURN a").evidence
            ]
            relations = {str(one) for one in changed.gone if not isinstance(one.object, (Quantity, Time, str))}
            assert relations == {str(one) for one, then, now in held if then and not now}
    same = graph.difference("1984", "1984")
    assert (same.gone, same.new, same.warnings) == ((), (), ())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": "soon"}, "at='soon' is not a time; a time is a year"),
        ({"at": ""}, "is not a time"),
        ({"at": 19.5}, "at=19.5 is not a time"),
        ({"at": True}, "is not a time"),
        ({"at": "9" * 5_000}, "is not a time"),
        ({"at": "03/04/1984"}, "may be 1984-03-04 or 1984-04-03"),
        ({"at": "18 July 64"}, "at='18 July 64' has a year of two digits"),
        ({"between": ("1990", "1980")}, r"ends before it starts: 1990 is after 1980.*between=\('1980', '1990'\)"),
        ({"between": ("1990",)}, "two times"),
        *(({"between": wrong}, "two times") for wrong in ("1990", 1990, b"19", {"1980", "1990"}, {1980: "", 1990: ""})),
        ({"between": (None, None)}, "no time"),
        ({"between": ("1980", "soon")}, "between='soon' is not a time"),
        ({"at": "1984", "between": ("1980", "1990")}, "two ways"),
        ({"certain": True}, "certain=True needs a time"),
    ],
)
def test_what_is_no_time(graph: condgraph.Graph, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        graph.query(HEADS, **options)


def test_a_graph_without_times() -> None:
    bare = condgraph.Graph()
    bare.add([Entity("a", "a"), Entity("b", "b"), stated("a", "r", Ref("b"))])
    answer = bare.query("Find(a) Relate(r, forward) QueryName()", at="1984")
    assert answer.texts == ["b"]
    assert any("no statement of the graph has a time" in warning for warning in answer.warnings)
    (warning,) = bare.difference("1984", "1990").warnings
    assert "no statement of the graph has a time, so that all of them count at 1984 and 1990" in warning


def test_tools_commands_and_http(graph: condgraph.Graph, tmp_path: Path) -> None:
    """The same options everywhere; what takes none refuses them."""
    tools = Toolbox(graph)
    assert tools.query(HEADS, at="1984").texts == ["Kohl"]
    assert tools.evidence(HEADS, between=["2006", "2010"]).total == 2
    fields = read_fields({"program": HEADS, "at": "2010", "certain": True}, Query)
    found = calls.query(graph, fields)
    assert isinstance(found, dict)
    assert found["total"] == 0, sorted(found)
    assert "During('may', 1984)" in calls.explain(graph, read_fields({"program": HEADS, "at": "1984"}, Explain))["plan"]
    with pytest.raises(OptionError, match="sparql takes no option 'at'"):
        calls.query(graph, read_fields({"program": "SELECT * {}", "language": "sparql", "at": "1984"}, Query))
    with pytest.raises(ProtocolError, match="between"):
        read_fields({"program": HEADS, "between": ["1984"]}, Query)
    graph.export(tmp_path / "graph.jsonl")
    with condgraph.open(tmp_path / "store") as stored:
        stored.load(tmp_path / "graph.jsonl")
    place = ["-d", str(tmp_path / "store")]
    assert run_command("query", *place, "--at", "1984", HEADS) == "Kohl\n"
    assert run_command("query", *place, "--between", "1983", "1990", "--certain", HEADS) == "Kohl\n"
    assert "During('must', 1983/1990)" in run_command("explain", *place, "--between", "1983", "1990", "--certain", HEADS)
    query = '?x : head("Germany", ?x)'
    assert "Kohl" in run_command("logic", *place, "--at", "1984", query)
    assert "Kohl" not in run_command("logic", *place, "--at", "2006", "--certain", query)
    assert run_command("query", *place, "--at", "soon", HEADS, code=2).startswith("error[option]: at='soon' is not a time")


def run_command(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def test_period_is_no_option_of_a_language(graph: condgraph.Graph) -> None:
    with pytest.raises(OptionError, match="takes no option 'period'"):
        graph.query(HEADS, period="1984")


@pytest.fixture(scope="module", params=["duckdb", *marked("neo4j", "oxigraph", nightly=("virtuoso",))])
def stored(request: pytest.FixtureRequest, graph: condgraph.Graph) -> Iterator[Any]:
    """The same graph on a server."""
    with empty_graph(request, "true_at") as found:
        found.push(graph)
        yield found


def test_stores(graph: condgraph.Graph, stored: Any) -> None:
    """Every language gives the same there, with the evidence of the time, and so do the embedded store and the view."""
    times = [(TIMES[at], certain) for at, certain in ((1, False), (2, True), (4, False), (5, True))]
    times = asked_of(stored, times[: by_lane(2, 4, 4)], 2)
    count, wrong = disagreements(graph, PROGRAMS, times, [stored])
    assert not wrong, wrong[0]
    assert count >= 2 * len(times) * len(PROGRAMS)
    for program in PROGRAMS[:: by_lane(4, 1, 1)]:
        there, here = stored.query(program, at="1984"), graph.query(program, at="1984")
        assert sorted(map(str, there.evidence)) == sorted(map(str, here.evidence)), program
        assert there.check().ok
    view = stored.at("1984")
    assert view.query(HEADS).texts == ["Kohl"]
    assert "1984" in repr(view)
    assert view.snapshot().query(HEADS).texts == ["Kohl"]
    for first, second, certain in (("1984", "2000", False), ("1984", "2000", True)):
        here, there = (one.difference(first, second, certain=certain) for one in (graph, stored))
        assert (set(map(str, here.gone)), set(map(str, here.new))) == (set(map(str, there.gone)), set(map(str, there.new)))
    assert view.logic('?x : head("Germany", ?x)').texts == ["Kohl"]
    assert (
        view.match([("Germany", "head", "UNKNOWN x")], k=1).texts
        == graph.match([("Germany", "head", "UNKNOWN x")], k=1, at=1984).texts
    )
    # A relation of which nothing holds then is empty, and not unknown.
    empty = [one.logic('?x : head("Germany", ?x)', at="1930") for one in (graph, stored)]
    assert [one.texts for one in empty] == [[], []]
    assert empty[0].warnings == empty[1].warnings
    with pytest.raises(UnsupportedError, match=r"graph\.at\(\.\.\.\)\.snapshot\(\)"):
        view.schema()


def test_embedded_store(graph: condgraph.Graph) -> None:
    for program in PROGRAMS:
        assert shown(graph.query(program, at="1998-10-27", engine="sparql")) == shown(graph.query(program, at="1998-10-27")), (
            program
        )


def test_stores_test_the_times_of_the_statements_of_a_pattern_alone(graph: condgraph.Graph) -> None:
    """Not those of all statements, in a query of their own within that of the pattern."""
    pattern = 'MATCH (a {name: "Germany"})-[r]->(b) RETURN b.name'
    texts = [graph.explain(pattern, engine="sparql", **at) for at in ({}, {"at": "1984"})]
    assert texts[1].count("FILTER NOT EXISTS") == 1
    assert texts[0].count("SELECT") == texts[1].count("SELECT")


@pytest.mark.data
@pytest.mark.parametrize(("program", "base", "years"), [("programs_small", "kb_small", (1800, 2020))])
def test_the_oracle(program: str, base: str, years: tuple[int, int], oracle: Path) -> None:
    graph = condgraph.Graph()
    graph.load(oracle / f"{base}.json")
    with (oracle / f"{program}.jsonl").open(encoding="utf-8") as lines:
        asked = [json.loads(line)["program"] for line in lines]
    chosen = random.Random(7)
    times = [(Time.year(chosen.randint(*years)), chosen.random() < 0.4) for _ in range(by_lane(2, 4, 10))]
    count, wrong = disagreements(graph, asked, times, each=by_lane(40, 200, 1_000))
    assert not wrong, wrong[0]
    assert count >= 80


def test_random_programs() -> None:
    """Programs made of the sample data's own statements, in process and in the embedded RDF store."""
    graph = condgraph.Graph()
    load_samples(graph)
    maker, tally = Maker(graph.current, 5), Counter[str]()
    for _ in range(by_lane(3, 20, 200)):
        asked = [maker.program() for _ in range(25)]
        count, wrong = disagreements(graph, asked, [maker.time()], [Embedded(graph)], lenient=True, tally=tally)
        assert not wrong, wrong[0]
        assert count == 50
    assert tally["something"] > tally["error"]
    assert tally["something"] > 20


@pytest.mark.parametrize("name", GRAPHS)
def test_random_programs_on_data(name: str, oracle: Path) -> None:
    """A sample of what `benchmarks/true_at.py` runs whole, on three stores."""
    graph = loaded(name, oracle.parent, by_lane(3_000, 20_000, None))
    maker, tally = Maker(graph.current, 5), Counter[str]()
    for _ in range(by_lane(4, 8, 20)):
        asked = [maker.program() for _ in range(by_lane(15, 50, 170))]
        _, wrong = disagreements(graph, asked, [maker.time()], lenient=True, tally=tally)
        assert not wrong, wrong[0]
    assert tally["something"] > 5
