"""The tools of agents as plain calls: what they give, their bounds, and their errors."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.agents.toolbox import MAX_CHARACTERS, MAX_RESULTS, MAX_TEXT, Toolbox, failure, plain
from condgraph.engine.errors import CancelledError, DeadlineError, OptionError, ParseError, StoreMissingError, UnknownNameError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import UNKNOWN, Quantity, Time
from condgraph.samples import FOLDER
from tests.support.world import ODD, QUOTES, world


@pytest.fixture(scope="module")
def tools() -> Toolbox:
    graph = condgraph.open()
    graph.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
    graph.load(FOLDER / "countries.json")
    graph.load(FOLDER / "governments.tsv")
    return Toolbox(graph)


def test_every_record_is_json(tools: Toolbox) -> None:
    found = tools.query("FindAll() FilterNum(height, 8000 m, >) QueryName()", facts=2)
    record = json.loads(json.dumps(plain(found)))
    assert record["texts"] == ["Annapurna I", "Dhaulagiri I", "Manaslu"]
    assert record["answers"][0]["type"] == "entity"
    assert record["total"] == 3
    assert len(record["facts"]) == 2
    assert record["facts_total"] == 3
    fact = record["facts"][0]
    assert (fact["subject"], fact["predicate"]) == ("Annapurna I", "height")
    assert fact["sources"][0].startswith("mountains, row ")


def test_tables(tools: Toolbox) -> None:
    program, clause = (
        "FindAll() FilterNum(height, $least, >)",
        "group by country show count(), max(height) as top order by top desc",
    )
    found = tools.query(program, table=clause, parameters={"least": "7500 m"}, facts=1)
    own = tools.graph.query("FindAll() FilterNum(height, 7500 m, >)", table=clause)
    assert found.answers == own.data()
    assert found.texts == own.texts
    assert (found.total, len(found.facts), found.facts_total) == (len(own), 1, len(own.evidence))
    rests = tools.evidence("FindAll() FilterNum(height, 7500 m, >)", table=clause, limit=1000)
    assert rests.total == len(own.evidence)
    assert {one.predicate for one in rests.facts} == {"country", "height"}
    with pytest.raises(UnknownNameError, match="contry"):
        tools.query(program, table="group by contry", parameters={"least": "1 m"})
    with pytest.raises(OptionError, match="table has"):
        tools.query("FindAll()", table="show " * MAX_CHARACTERS)
    with pytest.raises(OptionError, match="no option 'table'"):
        tools.query("(UNKNOWN capital 1) <-[capital]- (Nepal)", table="show count()")


def test_cells_that_list_values_are_cut(tools: Toolbox) -> None:
    listed = "show values(self) as all, count()"
    (row,) = tools.query("FindAll() FilterNum(height, 5000 m, >)", table=listed, limit=3).answers
    assert len(row["all"]) == 4
    assert row["all"][3] == f"... and {row['count()'] - 3} more"
    (whole,) = tools.query("FindAll() FilterNum(height, 5000 m, >)", table=listed, limit=MAX_RESULTS).answers
    assert len(whole["all"]) == whole["count()"]
    assert whole["all"][:3] == row["all"][:3]


def test_a_pattern_as_a_program(tools: Toolbox) -> None:
    program, given = "(UNKNOWN capital 1) <-[capital]- ($country)", {"country": "Nepal"}
    found = tools.query(program, parameters=given, limit=1)
    assert found.language == "pattern"
    assert found.texts == ["Kathmandu"]
    assert found.total == len(tools.graph.prepare(program)(country="Nepal"))
    assert found.facts[0].subject == "Nepal"
    json.dumps(plain(found))
    assert tools.evidence(program, parameters=given).facts[0] == found.facts[0]


def test_names(tools: Toolbox) -> None:
    found = tools.find("Nepal")
    assert [one["name"] for one in found.entities] == ["Nepal"]
    assert "capital" in found.relations_from
    assert "country" in found.relations_to
    assert found.nearest == []
    missing = tools.find("Nepall")
    assert missing.entities == []
    assert missing.nearest[0] == "Nepal"
    relation = tools.find("capital")
    assert "relation" in relation.is_a
    assert tools.find("hight").nearest[0] == "height"
    assert tools.find("height").is_a == ["attribute"]


def test_names_that_need_quotes() -> None:
    tools = Toolbox(world())
    found = tools.find(QUOTES)
    assert [one["id"] for one in found.entities] == ["x"]
    assert ODD in found.relations_to
    assert {one["id"] for one in tools.find("Bo").entities} == {"b", "b2"}
    # A value of 15,000 characters is marked as cut.
    note = tools.query("Find($who) QueryAttr(note)", parameters={"who": QUOTES}, facts=9)
    assert all(len(text) < MAX_TEXT + 100 for text in note.texts)
    assert "characters ..." in "".join(note.texts)
    assert all(len(fact.text) < MAX_TEXT + 100 for fact in note.facts)
    assert tools.evidence("Find($who) QueryAttr(note)", parameters={"who": QUOTES}).total == 2


def test_pages_of_evidence(tools: Toolbox) -> None:
    program = "FindAll() FilterConcept(country) Relate(capital, forward) QueryName()"
    whole = tools.evidence(program, limit=MAX_RESULTS)
    assert whole.total == len(whole.facts) > 3
    pages = [tools.evidence(program, limit=2, offset=at).facts for at in range(0, whole.total + 2, 2)]
    assert [fact for page in pages for fact in page] == whole.facts
    assert tools.query(program, limit=1).total == len(whole.texts)
    assert len(tools.query(program, limit=1).texts) == 1
    assert any("limit 1" in warning for warning in tools.query(program, limit=1).warnings)


def test_patterns(tools: Toolbox) -> None:
    found = tools.match("(UNKNOWN city 1) <-[capitol]- (Nepall)", k=1)
    assert found.subgraphs[0].nodes == {"city 1": "Kathmandu"}
    assert found.subgraphs[0].distance > 0
    assert json.dumps(plain(found))


def test_schema(tools: Toolbox) -> None:
    whole = tools.schema()
    assert "capital" in whole.text
    assert whole.counts["statements"] > 100 if "statements" in whole.counts else whole.counts
    assert len(tools.schema(tokens=50).text) < len(whole.text)
    with pytest.raises(UnknownNameError) as error:
        tools.schema(predicate="capitol")
    assert failure(error.value)["error"]["nearest"][0] == "capital"


def test_errors_put_a_program_right(tools: Toolbox) -> None:
    with pytest.raises(UnknownNameError) as error:
        tools.query("Find(Nepal) Relate(capitol, forward) QueryName()")
    said = failure(error.value)["error"]
    assert said["code"] == "unknown-name"
    assert said["kind"] == "relation"
    program = "Find(Nepal) Relate(capitol, forward) QueryName()"
    low, high = said["at"]
    assert tools.query(program[:low] + said["nearest"][0] + program[high:]).texts == ["Kathmandu"]
    json.dumps(said)


def test_bounds(tools: Toolbox) -> None:
    for call in (
        lambda: tools.query("FindAll() Count()", limit=0),
        lambda: tools.query("FindAll() Count()", limit=MAX_RESULTS + 1),
        lambda: tools.query("FindAll() Count()", facts=-1),
        lambda: tools.evidence("FindAll() Count()", offset=-1),
        lambda: tools.query("Find(" + "x" * MAX_CHARACTERS + ")"),
        lambda: tools.find("x" * (MAX_CHARACTERS + 1)),
        lambda: tools.match("(a) -[b]-> (c)", k=0),
        lambda: tools.schema(tokens=0),
        lambda: tools.ask("Who?"),
    ):
        with pytest.raises(OptionError):
            call()
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(CancelledError):
        tools.query("FindAll() Count()", cancelled=cancelled)
    late = Toolbox(tools.graph, timeout=1e-9)
    for call in (
        lambda: late.query("FindAll() Count()"),
        late.schema,
        lambda: late.find("Nepal"),
        lambda: late.evidence("FindAll() Count()"),
    ):
        with pytest.raises(DeadlineError):
            call()
    with pytest.raises(ParseError):
        tools.query("what is this")


def test_values_of_every_kind() -> None:
    graph = condgraph.open()
    graph.add(
        [
            Entity("e", "E"),
            Statement("e", "v", Quantity(10**40, "kg")),
            Statement("e", "v", Time.year(-43)),
            Statement("e", "v", UNKNOWN),
            Statement("e", "v", "text"),
            Statement("e", "knows", Ref("e"), (("since", Time.parse("1999/2003")),)),
        ]
    )
    tools = Toolbox(graph)
    found = json.loads(json.dumps(plain(tools.query("Find(E) QueryAttr(v)", facts=9))))
    assert {one["type"] for one in found["answers"]} == {"quantity", "time", "unknown", "text"}
    fact = tools.evidence("Find(E) Relate(knows, forward) QueryName()").facts[0]
    assert fact.qualifiers == {"since": "1999/2003"}


def test_a_store_that_is_loaded_anew(tmp_path: Path) -> None:
    first = condgraph.open(tmp_path / "store")
    first.add([Entity("a", "Ann")], source="one")
    tools = Toolbox(condgraph.open(tmp_path / "store", read_only=True), follow=True)
    still = Toolbox(condgraph.open(tmp_path / "store", read_only=True))
    assert tools.query("FindAll() Count()").texts == ["1"]
    first.add([Entity("b", "Bo")], source="two")
    assert tools.query("FindAll() Count()").texts == ["2"]
    assert still.query("FindAll() Count()").texts == ["1"]
    with pytest.raises(StoreMissingError):
        Toolbox(condgraph.open()).query("FindAll() Count()")


def test_asking_in_words(tools: Toolbox) -> None:
    def model(messages: Any) -> str:
        return "Find(Nepal) Relate(capital, forward) QueryName()"

    found = Toolbox(tools.graph, llm=model).ask("What is the capital of Nepal?")
    assert found["status"] == "answered"
    assert [one["text"] for one in found["answers"]] == ["Kathmandu"]
    json.dumps(found)
