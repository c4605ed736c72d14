"""The parts of the command line by themselves: options, answers as text, errors as messages and exit codes."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from condgraph.cli.exits import Exit, code_of, guard, message_of
from condgraph.cli.options import loader_options, program_text
from condgraph.cli.render import Format, json_value, printable, write_answer
from condgraph.engine import errors
from condgraph.engine.values import UNKNOWN, Quantity, Time


@dataclass
class Named:
    id: str
    name: str


@dataclass
class Step:
    operator: str
    size: int
    sample: list[str]
    seconds: float


@dataclass
class Fact:
    subject: str
    predicate: str
    object: Any
    qualifiers: list[tuple[str, Any]]
    sources: list[str]

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"


@dataclass
class Reply:
    texts: list[str]
    values: list[Any] = field(default_factory=list)
    entities: list[Named] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    trace: list[Step] = field(default_factory=list)
    evidence: list[Fact] = field(default_factory=list)


BOTH = Reply(
    ["Nanda Devi", "Trisul"],
    ["Nanda Devi", "Trisul"],
    [Named("m/4", "Nanda Devi"), Named("m/5", "Trisul")],
    ["one value has no unit"],
    [Step("Find", 2, ["Nanda Devi"], 0.0015)],
    [Fact("Trisul", "height", Quantity(7120, "m"), [("as of", Time.year(1999))], ["mountains"])],
)


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


@pytest.mark.parametrize("text", ["key", "=x", 'refs=["country"', "format=csv", "on-error=skip"])
def test_a_wrong_option_is_wrong_usage(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        loader_options([text])


def test_a_program_comes_from_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "program.kopl"
    file.write_bytes(b"\xef\xbb\xbfFindAll() Count()")
    assert program_text(None, file) == "FindAll() Count()"
    assert program_text("Find(a)", None) == "Find(a)"
    monkeypatch.setattr("sys.stdin", io.StringIO("Find(b)"))
    assert program_text("-", None) == "Find(b)"
    with pytest.raises(typer.BadParameter, match="not both"):
        program_text("Find(a)", file)
    file.write_bytes(b"Find(\xff)")
    with pytest.raises(typer.BadParameter, match="byte 5"):
        program_text(None, file)


def test_a_table_names_ids_only_where_they_say_more(capsys: pytest.CaptureFixture[str]) -> None:
    write_answer(BOTH, Format.TABLE)
    written = capsys.readouterr()
    assert written.out == "name        id\nNanda Devi  m/4\nTrisul      m/5\n"
    assert written.err == "warning: one value has no unit\n"
    write_answer(Reply(["a", "b"], ["a", "b"], [Named("a", "a"), Named("b", "b")]), Format.TABLE)
    assert capsys.readouterr().out == "a\nb\n"


def test_json_holds_values_without_loss(capsys: pytest.CaptureFixture[str]) -> None:
    write_answer(BOTH, Format.JSON, evidence=True, trace=True)
    document = json.loads(capsys.readouterr().out)
    assert document["answers"] == ["Nanda Devi", "Trisul"]
    assert document["entities"][1] == {"id": "m/5", "name": "Trisul"}
    assert document["trace"] == [{"operator": "Find", "rows": 2, "milliseconds": 1.5, "sample": ["Nanda Devi"]}]
    assert document["evidence"][0]["object"] == {"number": 7120, "unit": "m"}
    assert document["evidence"][0]["qualifiers"] == [["as of", {"time": "1999", "precision": "year"}]]
    assert json_value(Quantity(Decimal("0.10000000000000000001"))) == {"number": "0.10000000000000000001", "unit": "1"}
    assert json_value([UNKNOWN, True]) == [{"unknown": True}, True]


def test_csv_leaves_the_rest_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    write_answer(Reply(['a "b"', "c,d"], evidence=BOTH.evidence), Format.CSV, evidence=True)
    written = capsys.readouterr()
    assert list(csv.reader(io.StringIO(written.out))) == [["value"], ['a "b"'], ["c,d"]]
    assert "Trisul height 7120 m" in written.err


@given(st.text())
def test_nothing_that_is_printed_steers_a_terminal(text: str) -> None:
    shown = printable(text)
    assert not any(ord(letter) < 32 and letter != "\t" for letter in shown)
    assert "\x7f" not in shown
    if not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in text):
        assert shown == text


def every_error(kind: type[errors.CondgraphError]) -> list[type[errors.CondgraphError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in every_error(child))]


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
