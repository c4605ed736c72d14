"""The parts of the command line by themselves: options, answers as text, errors as messages and
exit codes.
"""

from __future__ import annotations

import csv
import io
import json
import socket
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.cli.arguments import LoginOptions, loader_options, opened, parameters, program_text
from condgraph.cli.exits import Exit, code_of, guard, message_of
from condgraph.cli.query import write_answers, write_matches
from condgraph.cli.render import json_value, printable, write_answer, write_table
from condgraph.engine import errors
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import UNKNOWN, Quantity, Time
from tests.support.pace import quick_enough


@pytest.fixture(scope="module")
def graph() -> condgraph.Graph:
    """Two mountains, one of them with a height, and values that are hard to print."""
    graph = condgraph.open("memory:")
    graph.add(
        [
            Entity("m/4", "Nanda Devi"),
            Entity("m/5", "Trisul"),
            Entity("m/6", "Trisul"),
            Statement("m/5", "height", Quantity(7120, "m"), (("as of", Time.year(1999)),), row=5),
            Statement("m/5", "note", 'white, with a "trident"'),
            Statement("m/5", "note", "\x1b[2J"),
            Statement("m/5", "seen from", Ref("m/4")),
        ],
        source="mountains",
    )
    return graph


def test_a_place_that_is_empty_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that is not set makes no store of the folder one stands in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    ran = CliRunner().invoke(app, ["load", "", "a.csv"])
    assert (ran.exit_code, ran.stderr.splitlines()[0]) == (2, "error[option]: the place of a graph is empty")
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]
    with pytest.raises(errors.OptionError, match="the place of a graph is empty"):
        condgraph.open("")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }", "SPARQL"),
        ("# films\nPREFIX f: <http://f/> CONSTRUCT { f:a f:b f:c } {}", "SPARQL"),
        ("describe <http://f/a>", "SPARQL"),
        ("select name from films where year > 1990", "SQL"),
    ],
)
def test_languages_of_other_tools_are_told(graph: condgraph.Graph, text: str, language: str) -> None:
    with pytest.raises(errors.ParseError, match=f"this is {language}") as told:
        graph.query(text)
    assert "graph." in str(told.value.hint)


@pytest.mark.parametrize("text", ["SelectAmong(height, largest)", "Describe the films {of} 1990", "call me", "Match"])
def test_words_alone_are_no_language(graph: condgraph.Graph, text: str) -> None:
    with pytest.raises(errors.CondgraphError) as told:
        graph.query(text)
    assert "this is" not in str(told.value)


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        ([], {}),
        (["key=mountain"], {"key": "mountain"}),
        (["id-prefix=a=b"], {"id_prefix": "a=b"}),
        (['refs=["country"]', "header=false"], {"refs": ["country"], "header": False}),
        (["missing=x", "missing=y", "missing=z"], {"missing": ["x", "y", "z"]}),
        (["delimiter=|", "id_prefix=12"], {"delimiter": "|", "id_prefix": "12"}),
        (['id_prefix="true"'], {"id_prefix": "true"}),
    ],
)
def test_options_are_read(texts: list[str], options: dict[str, Any]) -> None:
    assert loader_options(texts) == options


@pytest.mark.parametrize("text", ["key", "=x", 'refs=["country"', "format=csv", "on-error=skip", "replace=true"])
def test_a_wrong_option_is_wrong_usage(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        loader_options([text])


def test_parameters_are_texts_as_they_stand() -> None:
    texts = ["country=Nepal", "$least=8000 m", "x=a=b", "empty=", 'quoted="Nepal"', "list=[1]"]
    found = {"country": "Nepal", "least": "8000 m", "x": "a=b", "empty": "", "quoted": '"Nepal"', "list": "[1]"}
    assert parameters(texts) == found
    for wrong in (["country"], ["=Nepal"], ["$=Nepal"], ["a=1", "a=1"], ["a=1", "$a=2"]):
        with pytest.raises(typer.BadParameter):
            parameters(wrong)


def test_a_program_comes_from_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "program.kopl"
    file.write_bytes(b"\xef\xbb\xbfFindAll() Count()")
    assert program_text(None, file) == "FindAll() Count()"
    assert program_text("Find(a)", None) == "Find(a)"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("Find(é)".encode()), encoding="ascii"))
    assert program_text("-", None) == "Find(é)"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Find(\xff)")))
    with pytest.raises(typer.BadParameter, match="byte 5"):
        program_text(None, None)
    with pytest.raises(typer.BadParameter, match="not both"):
        program_text("Find(a)", file)
    file.write_bytes(b"Find(\xff)")
    with pytest.raises(typer.BadParameter, match="byte 5"):
        program_text(None, file)


def test_a_table_has_ids_where_names_repeat(graph: condgraph.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    write_answer(graph.kopl("FindAll() QueryName()"), "table")
    assert capsys.readouterr().out == "name        id\nNanda Devi  m/4\nTrisul      m/5\nTrisul      m/6\n"
    write_answer(graph.kopl("Find(Nanda Devi) QueryName()"), "table")
    assert capsys.readouterr().out == "Nanda Devi\n"


def test_warnings_go_to_standard_error(graph: condgraph.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    write_answer(graph.kopl("FindAll() QueryName()", limit=1), "json")
    written = capsys.readouterr()
    assert json.loads(written.out)["answers"] == ["Nanda Devi"]
    assert written.err.startswith("warning: 2 more values")


def test_json_holds_values_without_loss(graph: condgraph.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    write_answer(graph.kopl("Find(Trisul) QueryAttr(height)"), "json", evidence=True, trace=True)
    document = json.loads(capsys.readouterr().out)
    assert document["answers"] == ["7120 m"]
    assert document["values"] == [{"number": 7120, "unit": "m"}]
    assert [step["function"] for step in document["trace"]] == ["Find", "QueryAttr"]
    assert document["trace"][0]["size"] == 2
    (fact,) = document["evidence"]
    assert fact["subject"] == {"id": "m/5", "name": "Trisul"}
    assert fact["qualifiers"] == [["as of", {"time": "1999", "precision": "year"}]]
    assert fact["sources"] == [{"source": "mountains", "row": 5}]
    assert json_value(Quantity(Decimal("0.10000000000000000001"))) == {"number": "0.10000000000000000001", "unit": "1"}
    assert json_value(UNKNOWN) == {"unknown": True}
    with pytest.raises(TypeError, match="complex"):
        json_value(1j)


def test_entities_among_values_keep_their_ids(capsys: pytest.CaptureFixture[str]) -> None:
    """Two towns of one name and the same word as a text are three rows, and not one."""
    graph = condgraph.open()
    towns = [Entity("p1", "Paris"), Entity("p2", "Paris")]
    graph.add([*towns, *(Statement("a", "saw", what) for what in (Ref("p1"), Ref("p2"), "Paris", Quantity(3)))])
    answer = graph.query("Query1: \"get_information(relation='saw', head_entity='a')\"")
    write_answer(answer, "csv")
    assert capsys.readouterr().out == "value,id\n3,\nParis,\nParis,p1\nParis,p2\n"
    write_answer(answer, "table")
    assert capsys.readouterr().out.splitlines()[1:] == ["3", "Paris", "Paris  p1", "Paris  p2"]


def test_answers_of_logic_keep_their_ids(capsys: pytest.CaptureFixture[str]) -> None:
    graph = condgraph.open()
    graph.add([Entity("p1", "Paris"), Entity("p2", "Paris"), Entity("b", "Bern")])
    graph.add([Statement(one, "in", Ref(where)) for one, where in (("p1", "EU"), ("p2", "EU"), ("b", "CH"))])
    write_answers(graph.logic('?x : in(?x, "EU")'), "csv")
    assert capsys.readouterr().out == "answer,score,known by,id\nParis,1,observed,p1\nParis,1,observed,p2\n"
    write_answers(graph.logic('?x : in(?x, "EU")'), "table")
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == ["id", "p1", "p2"]
    write_answers(graph.logic('?x : in(?x, "CH")'), "table")
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["answer", "score", "known", "by"],
        ["Bern", "1", "observed"],
    ]


def test_subgraphs_keep_the_ids_of_entities(capsys: pytest.CaptureFixture[str]) -> None:
    graph = condgraph.open()
    graph.add([Entity("p1", "Paris"), Entity("p2", "Paris"), Entity("b", "Bern"), Entity("eu", "EU"), Entity("ch", "CH")])
    graph.add([Statement(one, "in", Ref(where)) for one, where in (("p1", "eu"), ("p2", "eu"), ("b", "ch"))])
    write_matches(graph.match("(UNKNOWN town) -[in]-> (UNKNOWN place)", k=None), "csv")
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows[0] == ["distance", "town", "place", "subgraph", "town id", "place id"]
    assert sorted(row[1:3] + row[4:] for row in rows[1:]) == [
        ["Bern", "CH", "b", "ch"], ["Paris", "EU", "p1", "eu"], ["Paris", "EU", "p2", "eu"],
    ]  # fmt: skip
    # A table has the ids that tell two of one name apart, and no others.
    write_matches(graph.match("(UNKNOWN town) -[in]-> (UNKNOWN place)", k=None), "table")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["distance", "town", "place", "subgraph", "town", "id"]
    assert {line.split()[-1] for line in lines[1:]} == {"p1", "p2", "b"}
    write_matches(graph.match("(UNKNOWN town) -[in]-> (CH)", k=None), "table")
    assert capsys.readouterr().out.splitlines()[0].split() == ["distance", "town", "subgraph"]
    # Texts have none.
    graph.add([Statement("b", "motto", "none")])
    write_matches(graph.match("(Bern) -[motto]-> (UNKNOWN words)", k=1), "csv")
    assert [row.split(",")[-1] for row in capsys.readouterr().out.splitlines()] == ["words id", ""]


def test_csv_leaves_the_rest_to_standard_error(graph: condgraph.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    write_answer(graph.kopl("Find(Trisul) QueryAttr(note)"), "csv", evidence=True, trace=True)
    written = capsys.readouterr()
    assert list(csv.reader(io.StringIO(written.out))) == [["value"], ["\x1b[2J"], ['white, with a "trident"']]
    assert "Trisul | note | " in written.err
    assert "QueryAttr" in written.err
    assert "\x1b" not in written.err


@pytest.mark.parametrize(
    ("program", "columns"),
    [("Find(Trisul) FilterStr(note, none) QueryName()", "name,id\n"), ("Find(Nanda Devi) QueryAttr(height)", "value\n")],
)
def test_an_empty_answer_has_its_columns(
    program: str, columns: str, graph: condgraph.Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    write_answer(graph.kopl(program), "csv")
    written = capsys.readouterr()
    assert written.out == columns
    assert "the answer is empty" in written.err


def test_a_table_does_not_steer_the_terminal(graph: condgraph.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    write_answer(graph.kopl("Find(Trisul) QueryAttr(note)"), "table", evidence=True, trace=True)
    written = capsys.readouterr().out
    assert written.startswith("\\x1b[2J\n")
    assert "\x1b" not in written


def test_columns_are_aligned_by_what_a_terminal_shows(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(("step", "results", "sample"), [("富士山", "3", "x"), ("a", "1200", "")])
    assert capsys.readouterr().out == "step    results  sample\n富士山        3  x\na          1200\n"


@given(st.text())
def test_nothing_that_is_printed_steers_a_terminal(text: str) -> None:
    shown = printable(text)
    assert not any(ord(letter) < 32 and letter != "\t" for letter in shown)
    assert "\x7f" not in shown
    if not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in text):
        assert shown == text


def every_error(kind: type[errors.CondgraphError]) -> list[type[errors.CondgraphError]]:
    below = [found for child in kind.__subclasses__() for found in every_error(child)]
    # Those of other modules are private to them, and never leave them.
    return [kind, *(found for found in below if found.__module__ == errors.__name__)]


def test_every_error_has_an_exit_code() -> None:
    codes = {kind.__name__: code_of(kind.__new__(kind)) for kind in every_error(errors.CondgraphError)}
    assert codes.pop("DeadlineError") == Exit.DEADLINE
    assert codes.pop("CancelledError") == Exit.INTERRUPTED
    assert codes.pop("OptionError") == Exit.USAGE
    stores = {name for name in codes if name.startswith("Store")} | {"ReadOnlyError"}
    assert {name for name, code in codes.items() if code == Exit.STORE} == stores
    assert {code for name, code in codes.items() if name not in stores} == {Exit.ERROR}


def test_a_message_shows_the_place_and_the_nearest() -> None:
    error = errors.UnknownNameError("relation", "capitol", candidates=["capital"], span=(19, 26), hint="names are exact")
    assert message_of(error, "Find(Nepal)\nRelate(capitol, forward)").splitlines() == [
        "error[unknown-name]: unknown relation 'capitol'",
        "  at character 20, line 2",
        "  | Relate(capitol, forward)",
        "           ^^^^^^^",
        "  nearest: 'capital'",
        "  hint: names are exact",
    ]
    assert message_of(error).splitlines()[0] == "error[unknown-name]: unknown relation 'capitol' (at character 20)"


@given(st.text(), st.integers(0, 300), st.integers(0, 300))
def test_a_place_is_shown_in_any_text(program: str, start: int, end: int) -> None:
    lines = message_of(errors.ParseError("bad", span=(start, end)), program).split("\n")
    assert lines[0] == "error[parse]: bad"
    assert lines[-1].strip("\t ^") == ""
    assert "^" in lines[-1]


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (errors.StoreMissingError("no graph here"), 3, "error[store-missing]: no graph here"),
        (errors.DeadlineError("1 s passed"), 4, "error[deadline]: 1 s passed"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (FileNotFoundError(2, "No such file or directory", "x.csv"), 1, "error[file]: x.csv: No such file or directory"),
    ],
)
def test_errors_become_codes(raised: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as left, guard():
        raise raised
    assert left.value.exit_code == code
    assert capsys.readouterr().err.strip() == said


def test_a_mistake_of_the_package_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), guard():
        raise ZeroDivisionError


@pytest.mark.service
def test_a_graph_is_opened_within_the_deadline_of_the_command() -> None:
    """A server that accepts connections and is silent; a connection by itself waits 30 s for it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = time.monotonic()
        with opened(f"bolt://127.0.0.1:{silent.getsockname()[1]}", LoginOptions(), timeout=0.1) as graph:
            assert quick_enough(time.monotonic() - begin, 10)
            with pytest.raises(errors.DeadlineError):
                graph.kopl("What()", timeout=0.1)
