"""The API against a real server: every operation, each reply checked against the OpenAPI document;
deadlines, scratch graphs, questions in words.
"""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest

from tests.endpoint.test_serve import command
from tests.studio.conftest import Client
from tests.support.chat_server import Say, serving
from tests.support.pace import quick_enough
from tests.support.serving import ask

pytestmark = pytest.mark.service

HIGH = "FindAll() FilterNum(height, 7000 m, >) Relate(country, forward) QueryName()"
PROGRAMS = {
    "kopl": (HIGH, ["India", "Nepal"]),
    "llm_query": ("Query1: \"get_information(relation='capital', head_entity='Nepal')\"", ["Kathmandu"]),
    "logic": ('?x : capital("Nepal", ?x)', ["Kathmandu"]),
    "pattern": ("(UNKNOWN capital 1) <-[capital]- (Nepal)", ["Kathmandu"]),
    "sparql": (
        "SELECT ?n { ?m <height>/<pred:value> ?h ; <pred:name> ?n FILTER(?h > 8100) } ORDER BY ?n",
        ["Dhaulagiri I", "Manaslu"],
    ),
}


class Judge:
    """Whether documents are what the OpenAPI document says."""

    def __init__(self, client: Client) -> None:
        self.document = client.get("openapi.json")
        self.store = {"components": self.document["components"]}

    def check(self, name: str, found: Any) -> None:
        schema = {"$ref": f"#/components/schemas/{name}", **self.store}
        jsonschema.Draft202012Validator(schema).validate(found)


@pytest.fixture(scope="module")
def judge(served: Client) -> Judge:
    return Judge(served)


def test_the_document_describes_what_is_there(served: Client, judge: Judge) -> None:
    for path, methods in judge.document["paths"].items():
        for method, operation in methods.items():
            for name in [operation["operationId"], operation["summary"]]:
                assert name
            place = path.replace("{graph}", "0" * 32)
            status = ask(
                served.url, method.upper(), place, headers={"Content-Type": "text/plain"}, body=b"x" if method == "post" else None
            ).status
            # Every path is known: what is missing is a field, a media type or the graph.
            assert status in (200, 400, 404, 415), (path, status)
    schemas = json.dumps(judge.document)
    for name in judge.document["components"]["schemas"]:
        jsonschema.Draft202012Validator.check_schema(judge.document["components"]["schemas"][name])
    for reference in {part.partition('"')[0] for part in schemas.split('"#/components/schemas/')[1:]}:
        assert reference in judge.document["components"]["schemas"]


def test_looking(served: Client, judge: Judge) -> None:
    about = served.get("about")
    judge.check("About", about)
    assert about["counts"]["rows"] == 31
    assert about["languages"] == ["kopl", "llm_query", "logic", "pattern", "sparql", "cypher"]
    assert {one["name"] for one in about["functions"]["kopl"]} >= {"Find", "SelectAmong"}
    schema = served.get("schema")
    judge.check("Schema", schema)
    assert next(one for one in schema["predicates"] if one["name"] == "height")["attributes"] == 31
    narrow = served.get("schema", predicate="height")
    assert [one["name"] for one in narrow["predicates"]] == ["height"]
    names = served.get("names", text="anna", kinds=["entity"])
    judge.check("Names", names)
    assert names["names"] == [{"name": "Annapurna I", "kind": "entity", "about": ""}]
    assert {one["kind"] for one in served.get("names", text="head", kinds=["predicate"])["names"]} == {"predicate"}
    named = served.get("names", text="anna", ids="true")
    judge.check("Names", named)
    assert [(one["id"], one["iri"]) for one in named["names"]] == [("mountains/Annapurna I", "mountains/Annapurna_I")]
    assert len(served.get("names", limit=5)["names"]) == 5
    page = served.get("entity", id="Nepal")
    judge.check("EntityPage", page)
    assert page["total"] == 3
    assert {one["subject"]["name"] for one in page["pointing"]} == {"Annapurna I", "Dhaulagiri I", "Manaslu"}
    assert page["pointing"][0]["sources"] == [{"name": "mountains", "row": 3}]
    assert [one["object"]["name"] for one in page["concepts"]] == ["country"]
    assert page["more"] is page["more_pointing"] is False
    cut = served.get("entity", name="Nepal", limit=1)
    assert (len(cut["facts"]), cut["total"], cut["more"]) == (1, 3, True)
    page = served.post("entity", id="Nepal", each=2)
    judge.check("EntityPage", page)
    counted = [(one["predicate"], one["backward"], one["count"]) for one in page["groups"]]
    assert counted == [("capital", False, 1), ("continent", False, 1), ("driving side", False, 1), ("country", True, 3)]
    assert (len(page["facts"]), len(page["pointing"]), page["more"], page["more_pointing"]) == (3, 2, False, True)
    rest = served.get("entity", id="Nepal", predicate="country", backward="true", offset=2, limit=5)
    assert (rest["facts"], rest["more"], rest["groups"]) == ([], True, page["groups"])
    assert [one["subject"]["name"] for one in page["pointing"] + rest["pointing"]] == ["Annapurna I", "Dhaulagiri I", "Manaslu"]
    country = served.get("entity", id="country")
    assert country["total_members"] == len(country["members"]) > 5
    line = served.get("timeline", subject="Germany", predicate="head of government")
    judge.check("Timeline", line)
    names = [one["fact"]["object"]["name"] for one in line["statements"]]
    assert names[:2] == ["Konrad Adenauer", "Ludwig Erhard"]
    assert line["total"] == len(names)
    assert (line["statements"][0]["least"], line["gaps"][0]["text"]) == (4748, "1963/1963")
    last = served.post("timeline", subject="Germany", before="Helmut Kohl", certain=True)
    assert [one["fact"]["object"]["name"] for one in last["statements"]] == ["Helmut Schmidt"]
    assert len(served.get("timeline", subject="Germany", limit=2)["statements"]) == 2
    for fields in ({}, {"subject": "Germny"}, {"subject": "Germany", "before": "soon"}, {"subject": "Germany", "certain": "true"}):
        judge.check("Error", served.get("timeline", **fields))
    missing = served.get("entity", name="Nepall")
    judge.check("Error", missing)
    assert missing["error"]["candidates"][0] == "Nepal"


@pytest.mark.parametrize("language", PROGRAMS)
@pytest.mark.parametrize("named", [True, False])
def test_programs(served: Client, judge: Judge, language: str, named: bool) -> None:
    program, texts = PROGRAMS[language]
    if language == "sparql" and not named:
        pytest.skip("SPARQL is named")
    found = served.post("query", program=program, **({"language": language} if named else {}))
    judge.check("Answer", found)
    assert found["language"] == language
    if language == "pattern":
        assert found["columns"] == ["Nepal", "UNKNOWN capital 1", "distance"]
        assert [one.get("id") for one in found["rows"][0]] == ["Nepal", "Kathmandu", None]
        assert found["rows"][0][2]["number"] == 0.0
    else:
        assert [row[0]["text"] for row in found["rows"]] == texts
    if language != "sparql":
        assert found["evidence"]["facts"][0]["sources"][0]["name"] in ("mountains", "countries")
        assert found["evidence"]["total"] == len(found["evidence"]["facts"])
        assert found["trace"]
    if language in ("kopl", "llm_query", "logic"):
        assert "MATCH" in found["compiled"]["cypher"]
        assert "SELECT" in found["compiled"]["sparql"]
        # The query that is told gives the same.
        again = served.post("query", program=found["compiled"]["sparql"], language="sparql")
        assert again["total"] == len(texts)


def test_what_is_cut_is_told(served: Client) -> None:
    found = served.post("query", program="FindAll() QueryName()", limit=3, facts=2)
    assert (len(found["rows"]), found["total"]) == (3, 156)
    assert any("153 more" in one["text"] for one in found["warnings"])
    assert len(found["evidence"]["named"]) <= 3
    table = served.post("query", program="SELECT ?s { ?s ?p ?o }", language="sparql", limit=4)
    assert len(table["rows"]) == 4
    assert table["warnings"]


def test_values_have_their_types(served: Client) -> None:
    (row,) = served.post("query", program="Find(Manaslu) QueryAttr(height)")["rows"]
    assert row == [{"type": "quantity", "text": "8163 m", "number": 8163.0, "unit": "m"}] or row[0]["number"] == 8163.0
    (row,) = served.post("query", program="FindAll() Count()")["rows"]
    assert row[0]["number"] == 156
    times = served.post(
        "query",
        program="SELECT ?t { ?s <pred:start> ?t } LIMIT 1",
        language="sparql",
    )
    assert times["columns"] == ["t"]


def test_match(served: Client, judge: Judge) -> None:
    found = served.post(
        "match", pattern="(UNKNOWN mountain 1) -[cuntry]-> (Nepal)", k=2, options={"group_by": ["UNKNOWN mountain 1"]}
    )
    judge.check("Answer", found)
    assert len(found["rows"]) == 2
    assert found["rows"][0][0]["type"] == "entity"
    wrong = served.post("match", pattern="(a) -[b]-> (c)", options={"groupby": ["a"]})
    assert "group_by" in wrong["error"]["message"]
    # An encoder is a folder or an address: it is nothing to be asked for from outside.
    wrong = served.post("match", pattern="(a) -[b]-> (c)", options={"encoder": "openai:x@http://127.0.0.1:1/"})
    assert "no field 'options.encoder'" in wrong["error"]["message"]


def test_errors_say_where(served: Client, judge: Judge) -> None:
    for program, code, span in (
        ("FindAll() FilterNum(hight, 1 m, >) QueryName()", "unknown-name", [20, 25]),
        ("Find(Nepal) QueryName() )", "parse", None),
        ("Find(é😀) Relate(capitol, forward)", "unknown-name", None),
        ("nothing of any language", "parse", None),
    ):
        found = served.post("query", program=program)
        judge.check("Error", found)
        assert found["error"]["code"] == code
        if span is not None:
            assert found["error"]["span"] == span
            assert found["error"]["candidates"] == ["height"]
    # Characters, not code units, are counted.
    found = served.post("query", program="Find(Nepal) FilterStr(😀, x) Relate(capitol, forward)")
    begin, end = found["error"]["span"]
    assert "Find(Nepal) FilterStr(😀, x) Relate(capitol, forward)"[begin:end] in ("😀", "capitol")


def test_explain_and_trees(served: Client, judge: Judge) -> None:
    found = served.post("explain", program=HIGH)
    judge.check("Explained", found)
    assert "Scan('country', forward" in found["plan"]
    tree = served.post("tree", program=HIGH)
    judge.check("Tree", tree)
    assert [step["function"] for step in tree["steps"]] == ["FindAll", "FilterNum", "Relate", "QueryName"]
    sizes = [step["size"] for step in served.post("query", program=HIGH)["trace"]]
    for step, size in zip(tree["steps"], sizes, strict=True):
        assert served.post("query", program=step["program"])["total"] == size
        begin, end = step["span"]
        assert HIGH[begin:end].startswith(step["function"])
    both = "Find(NATO) Relate(member of, backward) Find(Europe) Relate(continent, backward) And() Count()"
    steps = served.post("tree", program=both)["steps"]
    assert steps[4]["inputs"] == [1, 3]
    assert served.post("query", program=steps[3]["program"])["total"] == served.post("query", program=both)["trace"][3]["size"]
    shared = json.dumps(
        [
            {"function": "Find", "dependencies": [], "inputs": ["Nepal"]},
            {"function": "Relate", "dependencies": [0], "inputs": ["capital", "forward"]},
            {"function": "Or", "dependencies": [0, 1], "inputs": []},
        ]
    )
    steps = served.post("tree", program=shared)["steps"]
    assert steps[2]["span"] is None
    assert {row[0]["text"] for row in served.post("query", program=steps[2]["program"])["rows"]} == {"Nepal", "Kathmandu"}
    program = f"Step1: capitals\n{PROGRAMS['llm_query'][0]}\nQuery2: \"count(set='output_of_query1')\""
    tree = served.post("tree", program=program)
    judge.check("Tree", tree)
    assert tree["steps"][1]["inputs"] == [0]
    begin, end = tree["steps"][0]["texts"][0]["span"]
    assert program[begin:end] == "'capital'"
    assert served.post("query", program=tree["steps"][0]["program"])["rows"][0][0]["text"] == "Kathmandu"
    assert served.post("tree", program="SELECT * { ?s ?p ?o }", language="sparql")["error"]["code"] == "plan"


def test_files(served: Client) -> None:
    reply = served.send("query", json.dumps({"program": HIGH, "format": "csv"}).encode())
    assert (reply.media_type, reply.text) == ("text/csv", "answer,answer id\nIndia,India\nNepal,Nepal\n")
    assert "attachment" in reply.headers["content-disposition"]
    for program, language, column in ((HIGH, "kopl", "text"), (PROGRAMS["sparql"][0], "sparql", "n")):
        reply = served.send("query", json.dumps({"program": program, "language": language, "format": "arrow"}).encode())
        table = pa.ipc.open_stream(io.BytesIO(reply.body)).read_all()
        assert (table.num_rows, column in table.column_names) == (2, True)


def test_a_deadline_ends_a_call_whatever_it_does(served: Client) -> None:
    products = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?a = ?l) }"
    begin = time.monotonic()
    found = served.post("query", program=products, language="sparql", timeout=0.5)
    assert found["error"]["code"] == "deadline"
    assert quick_enough(time.monotonic() - begin, 4)
    # The next call finds a process.
    assert served.post("query", program=HIGH)["total"] == 2


def test_a_scratch_graph(served: Client, judge: Judge) -> None:
    status, report = served.drop(b"city,people,since\nOslo,700000,1048\nBergen,290000,1070\n", name="cities.csv", key="city")
    assert status == 200, report
    judge.check("Loaded", report)
    assert report["formats"] == ["csv"]
    graph = report["graph"]
    found = served.post("query", program="FindAll() FilterNum(people, 500000, >) QueryName()", graph=graph)
    assert [row[0]["text"] for row in found["rows"]] == ["Oslo"]
    assert found["evidence"]["facts"][0]["sources"] == [{"name": "cities.csv", "row": 1}]
    assert served.get("about", graph=graph)["counts"]["rows"] == 2
    # Another file beside it; the graph that is served has neither.
    assert served.drop(b"town,country\nHamar,Norway\n", name="more.csv", graph=graph, refs=["country"])[0] == 200
    assert served.get("names", text="Norw", graph=graph)["names"][0]["name"] == "Norway"
    assert served.get("entity", name="Hamar")["error"]["code"] == "unknown-name"
    assert (
        served.post("query", program="SELECT ?n { ?e <pred:name> ?n } ORDER BY ?n LIMIT 1", language="sparql", graph=graph)["total"]
        == 1
    )
    assert ask(served.url, "DELETE", f"/api/v1/graphs/{graph}").status == 204
    assert served.get("about", graph=graph)["error"]["code"] == "missing"


def test_tables_of_a_scratch_graph_are_joined(served: Client, judge: Judge) -> None:
    stations = "station,stop\n" + "".join(f"S{i:02},Stop {i}\n" for i in range(12))
    trips = "trip,start\n" + "".join(f"T{i},S{i % 12:02}\n" for i in range(30))
    lines = "line,first\n" + "".join(f"L{i},S{i:02}\n" for i in range(12))
    words = "word,first\nfoo,S01\nbar,S02\n"
    for order in ((("trips", trips), ("stations", stations)), (("stations", stations), ("trips", trips))):
        graph = ""
        for name, text in (("words", words), *order, ("lines", lines)):
            status, report = served.drop(text.encode(), name=f"{name}.csv", **({"graph": graph} if graph else {}))
            assert status == 200, report
            judge.check("Loaded", report)
            graph = report["graph"]
        assert [one.partition(":")[0] for one in sorted(report["joins"])] == [
            "lines.first = stations.station",
            "trips.start = stations.station",
        ]
        # What is only likely is asked about, and every row is there once.
        assert any("keys of 'stations'" in one and one.startswith("words.csv, field 'first'") for one in report["problems"])
        assert not any("/tmp" in one for one in report["problems"])
        assert served.get("about", graph=graph)["counts"]["rows"] == 2 + 12 + 30 + 12
        found = served.post("query", program="FindAll() FilterConcept(trips) Relate(start, forward) Count()", graph=graph)
        assert [row[0]["text"] for row in found["rows"]] == ["12"]


def test_files_that_cannot_be_loaded(served: Client) -> None:
    for data, name, message in (
        (b"", "nothing.csv", "empty"),
        (bytes(range(256)) * 50, "noise.bin", ""),
        (b'{"entities": [', "kb.json", ""),
        (b"a,b\n1,2\n", "t.csv", "key"),
    ):
        status, found = served.drop(data, name=name, **({"key": "nowhere"} if name == "t.csv" else {}))
        assert status == 400, found
        assert message in found["error"]["message"]
        assert "/tmp" not in json.dumps(found)


def test_questions_in_words(samples_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    say = Say(["Query1: \"get_information(relation='capital', head_entity='Nepal')\""])
    with serving(say) as model:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret-of-the-tests-0123456789")
        with command("-d", str(samples_store), "--llm", f"openai:small@{model.url}", "--rate", "0") as (url, _):
            client = Client(url)
            assert client.get("about")["model"] == "openai:small"
            reply = client.send("ask", json.dumps({"question": "What is the capital of Nepal?", "via": "query"}).encode())
            assert reply.media_type == "application/x-ndjson"
            lines = [json.loads(line) for line in reply.text.splitlines()]
            judge = Judge(client)
            for line in lines:
                judge.check("Line", line)
            outcome = lines[-1]["outcome"]
            judge.check("Answer", {**outcome["answer"], "seconds": 0.0})
            assert outcome["status"] == "answered"
            assert outcome["answer"]["rows"][0][0]["text"] == "Kathmandu"
            assert [line["step"]["name"] for line in lines[:-1]][:3] == ["look", "excerpt", "write"]
            # With the texts of the model, in as many lines as it gives pieces.
            asked = {"question": "What is the capital of Nepal?", "via": "query", "texts": True}
            lines = [json.loads(line) for line in client.send("ask", json.dumps(asked).encode()).text.splitlines()]
            for line in lines:
                judge.check("Line", line)
            pieces = [line["text"] for line in lines if "text" in line]
            assert ("".join(one["text"] for one in pieces), pieces[0]["begins"]) == (say.texts[0], True)
            assert len(pieces) == len(say.texts[0])
            assert "sk-a-secret" not in reply.text
            # A conversation: the client sends the turns before, whose programs are run again.
            first = {"question": outcome["question"], "program": outcome["program"], "language": outcome["language"]}
            before = [first | {"program": "ANSWER1", "parts": [first]}]
            reply = client.send("ask", json.dumps({"question": "And its continent?", "via": "query", "before": before}).encode())
            lines = [json.loads(line) for line in reply.text.splitlines()]
            judge.check("Line", lines[-1])
            assert lines[-1]["outcome"]["references"] == [
                {"text": "its", "names": ["Nepal"], "of": "the question 'What is the capital of Nepal?'"}
            ]
            assert outcome["confidence"] > 0.5
            reply = client.send("ask", json.dumps({"question": "And its?", "before": [first | {"language": ""}]}).encode())
            assert "has a program and no language" in json.loads(reply.text)["error"]["message"]


def test_words_without_a_model(served: Client) -> None:
    assert served.get("about")["model"] is None
    assert "--llm" in served.post("ask", question="Who?")["error"]["message"]


def test_a_graph_that_is_loaded_again(tmp_path: Path) -> None:
    import condgraph

    with condgraph.open(tmp_path / "store") as graph:
        (tmp_path / "a.csv").write_text("town,country\nHamar,Norway\n")
        graph.load(tmp_path / "a.csv", refs=["country"])
        with command("-d", str(tmp_path / "store")) as (url, _):
            client = Client(url)
            before = client.get("about")["counts"]["entities"]
            (tmp_path / "b.csv").write_text("town,country\nLyon,France\n")
            graph.load(tmp_path / "b.csv", refs=["country"])
            until = time.monotonic() + 30
            while client.get("about")["counts"]["entities"] == before and time.monotonic() < until:
                time.sleep(0.3)
            assert client.post("query", program="Find(France) Relate(country, backward) Count()")["total"] == 1
