"""The command line against real stores: what goes to which stream, exit codes, formats, signals."""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from rich.text import Text
from typer.testing import CliRunner, Result

import condgraph
from condgraph.cli.app import app
from condgraph.cli.evaluate import evaluate
from condgraph.engine.snapshot.directory import graph_directory, writing
from condgraph.loaders.recognise import FORMATS
from condgraph.samples import FOLDER
from tests.support import commands
from tests.support.samples import load_samples

ABOVE_7500 = "FindAll() FilterNum(height, 7500 m, >) QueryName()"
ABOVE_6700 = "FindAll() FilterNum(height, 6700 m, >) QueryName()"
NAMES = ["Annapurna I", "Dhaulagiri I", "Manaslu", "Nanda Devi"]
COMMANDS = ["demo", "load", "query", "sparql", "cypher", "explain", "status", "schema", "export", "delete", "abandon"]
COMMANDS += ["formats", "guess", "map", "mcp", "unload"]


def call(*arguments: str | Path, text: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)


def ok(*arguments: str | Path, text: str | None = None) -> str:
    result = call(*arguments, text=text)
    assert result.exit_code == 0, result.output
    return result.stdout


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "condgraph", *map(str, arguments)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of all the sample data."""
    store = tmp_path_factory.mktemp("cli") / "world"
    with condgraph.open(store) as graph:
        load_samples(graph)
    return store


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_exit_codes_mean(name: str) -> None:
    assert "4 the deadline" in " ".join(ok(name, "--help").split())


def test_help_shows_every_word() -> None:
    """What stands in brackets is no markup: rich would leave it out."""
    lost = []
    for verb in [*app.registered_commands, *evaluate.registered_commands]:
        assert verb.callback is not None
        told = [inspect.getdoc(verb.callback) or ""]
        for parameter in inspect.signature(verb.callback, eval_str=True).parameters.values():
            told += [getattr(one, "help", None) or "" for one in get_args(parameter.annotation)[1:]]
        lost += [(verb.callback.__name__, text) for text in told if Text.from_markup(text).plain != text]
    assert lost == []


def test_the_module_is_the_command() -> None:
    ran = subprocess.run(command("--version"), capture_output=True, text=True, check=True)
    assert ran.stdout == f"condgraph {condgraph.__version__}\n"


def test_load_then_ask(tmp_path: Path) -> None:
    options = ["-O", "key=mountain", "-O", 'refs=["country"]', "--as", "csv", "--name", "peaks"]
    loaded = call("load", tmp_path / "store", FOLDER / "mountains.csv", *options)
    assert loaded.exit_code == 0, loaded.output
    assert "peaks" in loaded.stdout
    assert loaded.stderr == ""
    assert json.loads(ok("query", "-d", tmp_path / "store", ABOVE_7500, "--format", "json"))["answers"] == NAMES


def test_several_sources_in_one_load(tmp_path: Path) -> None:
    ok("load", tmp_path / "store", FOLDER / "countries.json", FOLDER / "governments.tsv")
    program = "Find(Asia) Relate(continent, backward) Relate(head of government, forward) Count()"
    assert ok("query", "-d", tmp_path / "store", program) == "11\n"


def test_every_format_holds_the_same_answers(world: Path) -> None:
    document = json.loads(ok("query", "-d", world, ABOVE_7500, "--format", "json"))
    assert document["answers"] == NAMES
    assert document["warnings"] == []
    rows = list(csv.reader(io.StringIO(ok("query", "-d", world, ABOVE_7500, "--format", "csv"))))
    assert rows == [["name", "id"], *([name, f"mountains/{name}"] for name in NAMES)]
    assert ok("query", "-d", world, ABOVE_7500).splitlines() == NAMES


def test_arrow_goes_to_standard_output_as_bytes(world: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    ran = subprocess.run(command("query", "-d", world, ABOVE_7500, "--format", "arrow"), capture_output=True, check=True)
    table = pa.ipc.open_stream(ran.stdout).read_all()
    assert table.num_rows == 4
    assert any(column.to_pylist() == NAMES for column in table.columns)


def test_an_answer_is_checked(world: Path) -> None:
    program = "FindAll() FilterNum(height, 7100 m, >=) FilterNum(height, 7150 m, <) QueryName()"
    assert ok("query", "-d", world, program, "--check").endswith(
        "\ncheck:\n  proved: the answer follows from its 1 statement of evidence alone\n"
    )
    counted = ["query", "-d", world, "FindAll() FilterNum(height, 8000 m, >) Count()", "--check", "--evidence"]
    table = ok(*counted)
    assert "\nlooked through:\n  31 statements of height, forward from all entities\n" in table
    assert "\n  counted again: 31 statements of height, forward from all entities\n" in table
    document = json.loads(ok(*counted, "--format", "json"))
    (searched,) = document["searched"]
    assert (searched["what"], searched["names"], searched["number"]) == ("statements", ["height"], 31)
    assert (document["check"]["ok"], document["check"]["monotone"], document["check"]["verified"]) == (True, False, True)


def test_evidence_and_trace_are_shown(world: Path) -> None:
    program = "Find(Trisul) QueryAttr(height)"
    table = ok("query", "-d", world, program, "--evidence", "--trace")
    assert table.startswith("7,120 m\n\ntrace:\n")
    assert table.endswith("\nevidence:\n  Trisul | height | 7120 m  [mountains, row 5]\n")
    document = json.loads(ok("query", "-d", world, program, "--evidence", "--trace", "--format", "json"))
    assert document["values"] == [{"number": 7120, "unit": "m"}]
    assert [fact["predicate"] for fact in document["evidence"]] == ["height"]
    assert [step["function"] for step in document["trace"]] == ["Find", "QueryAttr"]


def test_a_program_comes_from_a_file_or_standard_input(world: Path, tmp_path: Path) -> None:
    file = tmp_path / "program.kopl"
    file.write_text("Find(Nepal) Relate(capital, forward)\nQueryName()\n", encoding="utf-8")
    assert ok("query", "-d", world, "-f", file) == "Kathmandu\n"
    assert ok("query", "-d", world, text=file.read_text(encoding="utf-8")) == "Kathmandu\n"
    assert ok("query", "-d", world, "-", text=file.read_text(encoding="utf-8")) == "Kathmandu\n"


def test_the_store_may_come_from_the_environment(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDGRAPH_STORE", str(world))
    assert ok("query", "Find(Nepal) Relate(capital, forward) QueryName()") == "Kathmandu\n"


def test_limit_is_kept_and_reported(world: Path) -> None:
    result = call("query", "-d", world, ABOVE_7500, "--limit", "2", "--format", "json")
    assert json.loads(result.stdout)["answers"] == NAMES[:2]
    assert "warning" in result.stderr


def test_show_prints_the_plan_only(world: Path) -> None:
    plan = ok("query", "-d", world, "--show", ABOVE_7500)
    assert "height" in plan
    assert "Dhaulagiri" not in plan
    assert ok("explain", "-d", world, ABOVE_7500) == plan


def test_an_unknown_name_lists_the_nearest(world: Path) -> None:
    result = call("query", "-d", world, "Find(Toubkal) QueryAttr(hight)")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "error[unknown-name]: unknown attribute 'hight'" in result.stderr
    assert "nearest: 'height'" in result.stderr
    empty = call("query", "-d", world, "--on-unknown", "empty", "Find(Toubkal) QueryAttr(hight)")
    assert empty.exit_code == 0
    assert empty.stdout == ""
    assert "hight" in empty.stderr


def test_a_program_that_cannot_be_read_shows_the_place(world: Path) -> None:
    result = call("query", "-d", world, "Find(Nepal) Relate(capital", "--language", "kopl")
    assert result.exit_code == 1
    assert "error[parse]" in result.stderr
    assert "^" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "Find(a)"],
        ["query", "-d", "STORE", "Find(a)", "--format", "xml"],
        ["query", "-d", "STORE", "Find(a)", "--limit", "0"],
        ["query", "-d", "STORE", "Find(a)", "-f", "missing.kopl"],
        ["query", "-d", "STORE", "Find(a)", "--language", "klingon"],
        ["load", "NEW", "SAMPLE", "-O", "delimiter"],
        ["load", "NEW", "SAMPLE", "-O", "delimeter=;", "--as", "csv"],
        ["load", "NEW"],
        ["frobnicate"],
    ],
)
def test_wrong_usage_is_2(arguments: list[str], world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONDGRAPH_STORE", raising=False)
    places = {"STORE": str(world), "NEW": str(tmp_path / "new"), "SAMPLE": str(FOLDER / "mountains.csv")}
    result = call(*(places.get(argument, argument) for argument in arguments))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""


def test_a_missing_store_is_3(tmp_path: Path) -> None:
    for arguments in (["query", "FindAll() Count()"], ["status"], ["export"], ["explain", "FindAll() Count()"]):
        result = call(*arguments, "-d", tmp_path / "nowhere")
        assert result.exit_code == 3, result.output
        assert "error[store-missing]" in result.stderr


def test_a_damaged_store_is_found(world: Path, tmp_path: Path) -> None:
    ok("load", tmp_path / "store", FOLDER / "governments.tsv")
    assert ok("status", "-d", tmp_path / "store", "--verify")
    file = max((path for path in (tmp_path / "store").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    content[-1] ^= 255
    file.chmod(0o644)
    file.write_bytes(content)
    result = call("status", "-d", tmp_path / "store", "--verify")
    assert result.exit_code == 3, result.output
    assert "error[store-damaged]" in result.stderr


def test_a_store_that_is_being_written_is_busy(tmp_path: Path) -> None:
    with writing(graph_directory(tmp_path / "store", "default")):
        ran = commands.run("load", tmp_path / "store", FOLDER / "governments.tsv")
    assert ran.returncode == 3, ran.stderr
    assert "error[store-busy]" in ran.stderr


def test_a_deadline_is_4(world: Path) -> None:
    result = call("query", "-d", world, ABOVE_7500, "--timeout", "0.000000001")
    assert result.exit_code == 4, result.output
    assert "error[deadline]" in result.stderr


def test_schema_in_every_form(world: Path) -> None:
    whole = ok("schema", "-d", world)
    assert whole.startswith("357 statements")
    assert "more" not in whole
    assert "and 13 more predicates" in ok("schema", "-d", world, "--limit", "1")
    assert ok("schema", "-d", world, "--limit", "0") == whole
    document = json.loads(ok("schema", "-d", world, "--format", "json", "--predicate", "height"))
    assert [one["name"] for one in document["predicates"]] == ["height"]
    text = ok("schema", "-d", world, "--format", "text", "--tokens", "300")
    assert text.splitlines()[-1].startswith("and ")
    assert len(text) < len(ok("schema", "-d", world, "--format", "text"))
    assert ok("schema", "-d", world, "--format", "text", "--tokens", "0") == "\n"
    assert "condgraph schema" in ok("status", "-d", world)


def test_schema_errors(world: Path, tmp_path: Path) -> None:
    wrong = call("schema", "-d", world, "--concept", "contry")
    assert (wrong.exit_code, wrong.stdout) == (1, "")
    assert "nearest: 'country'" in wrong.stderr
    assert call("schema", "-d", tmp_path / "none").exit_code == 3
    assert call("schema", "-d", world, "--timeout", "1e-9").exit_code == 4
    assert call("schema", "-d", world, "--tokens", "-1").exit_code == 2


def test_schema_keeps_terminals_from_names(tmp_path: Path) -> None:
    from tests.support.odd_names import items

    with condgraph.open(tmp_path / "odd") as graph:
        graph.add(items())
    for form in ("table", "text"):
        written = ok("schema", "-d", tmp_path / "odd", "--format", form)
        assert not set(written) & set("\x1b\x7f\x85\x0b\r\u2028\u202e")
        assert max(map(len, written.splitlines())) < 2_000


def test_status_counts(world: Path) -> None:
    assert "mountains" in ok("status", "-d", world)
    document = json.loads(ok("status", "-d", world, "--format", "json"))
    assert document["graph"] == "default"
    assert document["counts"]["concepts"] == 10
    assert [source["name"] for source in document["sources"]] == ["mountains", "countries", "governments"]


def test_an_export_is_read_back_exactly(world: Path, tmp_path: Path) -> None:
    file = tmp_path / "world.jsonl"
    assert ok("export", "-d", world, "-o", file) == ""
    assert ok("export", "-d", world) == file.read_text(encoding="utf-8")
    ok("load", tmp_path / "again", file)
    assert ok("export", "-d", tmp_path / "again").splitlines()[1:] == file.read_text(encoding="utf-8").splitlines()[1:]


def test_formats_and_their_options() -> None:
    every = dict(line.split(maxsplit=1) for line in ok("formats").splitlines())
    assert list(every) == list(FORMATS)
    assert every["parquet"] == "a table in a Parquet file"
    assert [line.split()[0] for line in ok("formats", "rdf").splitlines()] == list(FORMATS["rdf"].options)
    unknown = call("formats", "parquett")
    assert unknown.exit_code == 1
    assert "nearest: 'parquet'" in unknown.stderr


def test_a_hyphen_for_the_output_is_standard_output(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "people.csv").write_text("id,name\n1,Ann\n")
    assert "[tables.people]" in ok("guess", folder, "-o", "-")
    assert ok("export", "-d", world, "-o", "-") == ok("export", "-d", world)
    assert ok("generate", "-d", world, "-n", "1", "-o", "-").count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["shop"]


def test_a_bad_record_stops_a_load_or_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "ragged.csv"
    file.write_text("name,height\nTrisul,7120\nEiger,3967,m\nToubkal,4167\n", encoding="utf-8")
    stopped = call("load", tmp_path / "store", file, "--as", "csv")
    assert stopped.exit_code == 1
    assert "ragged.csv" in stopped.stderr
    assert "row 3" in stopped.stderr or "row 2" in stopped.stderr
    assert call("query", "-d", tmp_path / "store", "FindAll() Count()").exit_code == 3
    kept = call("load", tmp_path / "store", file, "--as", "csv", "--on-error", "skip")
    assert kept.exit_code == 0, kept.output
    assert "left out" in kept.stderr
    assert ok("query", "-d", tmp_path / "store", "FindAll() Count()") == "2\n"


def test_a_missing_source_is_an_error_of_the_data(tmp_path: Path) -> None:
    result = call("load", tmp_path / "store", tmp_path / "missing.csv")
    assert result.exit_code == 1
    assert "missing.csv" in result.stderr


def test_graphs_of_a_store_are_apart(tmp_path: Path) -> None:
    ok("load", tmp_path / "store", FOLDER / "governments.tsv", "--graph", "terms")
    ok("load", tmp_path / "store", FOLDER / "countries.json", "--graph", "world")
    assert (
        ok("query", "-d", tmp_path / "store", "--graph", "world", "Find(Nepal) Relate(capital, forward) QueryName()")
        == "Kathmandu\n"
    )
    result = call("query", "-d", tmp_path / "store", "--graph", "terms", "Find(India) Relate(capital, forward) QueryName()")
    assert result.exit_code == 1
    assert call("status", "-d", tmp_path / "store", "--graph", "neither").exit_code == 3


def test_a_reader_that_leaves_is_no_error(world: Path) -> None:
    with subprocess.Popen(command("export", "-d", world), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == 141


@pytest.mark.parametrize("arguments", [["query", ABOVE_6700, "--format", "csv"], ["query", ABOVE_6700], ["export"]])
def test_output_is_utf_8_in_every_locale(world: Path, arguments: list[str]) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ran = subprocess.run(command(*arguments, "-d", world), capture_output=True, env=environment, check=True)
    assert "Huascarán" in ran.stdout.decode("utf-8")


def test_a_full_or_closed_output_is_an_error(world: Path) -> None:
    query = shlex.join(command("query", "-d", world, ABOVE_6700))
    places = {">&-": "error[file]: standard output is closed"}
    if Path("/dev/full").exists():
        places[">/dev/full"] = "error[file]: No space left on device"
    for place, said in places.items():
        ran = subprocess.run(f"{query} {place}", shell=True, stderr=subprocess.PIPE, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (1, said + "\n")


def test_an_interrupt_is_reported_in_a_word(world: Path) -> None:
    # Standard input stays open, so the command waits for its program.
    with subprocess.Popen(
        command("query", "-d", world, "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: waits_for_input(process.pid))
        process.send_signal(signal.SIGINT)
        written, complained = process.communicate(timeout=20)
    assert process.returncode == 130
    assert (written, complained) == ("", "interrupted\n")


def waits_for_input(process: int) -> bool:
    place = Path(f"/proc/{process}/wchan")
    if not place.exists():
        pytest.skip("this system does not say what a process waits for")
    return "pipe" in place.read_text(encoding="utf-8")


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_for_terminals(tmp_path: Path, quiet: bool) -> None:
    file = tmp_path / "many.tsv"
    file.write_text("".join(f"a{number}\tr\tb{number}\n" for number in range(50_000)), encoding="utf-8")
    ours, theirs = pty.openpty()
    arguments = command("load", tmp_path / "store", file, *(["-q"] if quiet else []))
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(theirs)
        seen = b""
        # Linux ends the reading of a terminal that nobody holds with an error.
        try:
            while part := os.read(ours, 65536):
                seen += part
        except OSError:
            pass
        assert process.stdout is not None
        assert b"many" in process.stdout.read()
    os.close(ours)
    assert process.returncode == 0, seen
    assert (b"records" in seen) is not quiet


def test_arrow_is_not_written_to_a_terminal(world: Path) -> None:
    ours, theirs = pty.openpty()
    ran = subprocess.run(
        command("query", "-d", world, ABOVE_7500, "--format", "arrow"),
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(theirs)
    os.close(ours)
    assert ran.returncode == 2
    assert "arrow is binary" in ran.stderr


def test_the_demo_answers_and_shows_why() -> None:
    written = ok("demo")
    for answer in (*NAMES, "United Kingdom", "Edward Heath", "Harold Wilson", "Indira Gandhi", "John Turner"):
        assert f"  = {answer}\n" in written
    assert written.count("    because ") >= 10
    assert "warning" not in written


def test_the_demo_keeps_its_files(tmp_path: Path) -> None:
    written = ok("demo", "--keep", tmp_path / "kept")
    assert "condgraph query -d" in written
    assert json.loads(ok("query", "-d", tmp_path / "kept" / "store", ABOVE_7500, "--format", "json"))["answers"] == NAMES
    (tmp_path / "kept" / "mountains.csv").write_text("mine", encoding="utf-8")
    again = call("demo", "--keep", tmp_path / "kept")
    assert again.exit_code == 1
    assert "mountains.csv" in again.stderr


def test_sparql_over_the_graph(world: Path) -> None:
    heights = "?m <pred:name> ?n ; <height> ?v . ?v <pred:value> ?h ; <pred:unit> ?unit"
    query = f"SELECT ?n ?unit WHERE {{ {heights} FILTER(?h > 8000) }} ORDER BY ?n"
    assert [row["n"] for row in json.loads(ok("sparql", "-d", world, "--format", "json", query))] == NAMES[:3]
    assert ok("sparql", "-d", world, "--format", "csv", query).splitlines()[:2] == ["n,unit", "Annapurna I,m"]
    assert "Manaslu" in ok("sparql", "-d", world, "-f", _file(world, query))
    assert ok("sparql", "-d", world, "--format", "csv", "ASK { ?m <height> ?v }") == "truth\nyes\n"
    refused = call("sparql", "-d", world, "DELETE WHERE { ?s ?p ?o }")
    assert refused.exit_code == 3
    assert "error[read-only]" in refused.stderr


def _file(world: Path, query: str) -> Path:
    path = world.parent / "query.rq"
    path.write_text(query, encoding="utf-8")
    return path


def test_the_rdf_store_answers_a_program_too(world: Path) -> None:
    assert ok("query", "-d", world, "--engine", "sparql", ABOVE_7500) == ok("query", "-d", world, ABOVE_7500)
    assert ok("query", "-d", world, "--engine", "sparql", "--show", ABOVE_7500).startswith("SELECT")


def test_what_only_servers_take_is_refused_for_folders(world: Path) -> None:
    logged = call("query", "-d", world, "-u", "neo4j", ABOVE_7500)
    assert logged.exit_code == 2
    assert "a folder takes no option 'user'" in logged.stderr


def test_a_file_of_settings_names_the_store(world: Path, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"CONDGRAPH_STORE={world}\n", encoding="utf-8")
    plain = {name: value for name, value in os.environ.items() if name not in ("CONDGRAPH_STORE", "NEO4J_URI", "NEO4J_URL")}
    plain["PYTHONPATH"] = str(Path(condgraph.__file__).parents[1])

    def run(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command("query", ABOVE_7500), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    found = run(plain)
    assert (found.returncode, found.stdout.split("\n")[:-1]) == (0, NAMES)
    # The environment goes before the file.
    assert run({**plain, "CONDGRAPH_STORE": str(tmp_path / "nothing")}).returncode == 3


def test_values_of_parameters(world: Path) -> None:
    program = "Find($country) Relate($what, forward) QueryName()"
    given = ("--param", "what=capital", "--param", "country=Nepal")
    assert ok("query", "-d", world, program, *given) == "Kathmandu\n"
    assert "ByName('Nepal')" in ok("query", "-d", world, program, *given, "--show")
    assert ok("explain", "-d", world, program, *given) == ok("query", "-d", world, program, *given, "--show")
    table = ("--table", "group by country show count()", "--format", "csv")
    grouped = ok("query", "-d", world, "FindAll() FilterNum(height, $least, >)", "--param", "least=8100 m", *table)
    assert grouped == "country,count()\nNepal,2\n"
    assert ok("query", "-d", world, program, "--param", "what=capital", "--param", "country=x", "--on-unknown", "empty") == ""
    hostile = call("query", "-d", world, program, "--param", "what=capital", "--param", "country=Nepal) Count() Find(India")
    assert (hostile.exit_code, hostile.stdout) == (1, "")
    missing = call("query", "-d", world, program, "--param", "what=capital")
    assert missing.exit_code == 2
    assert "no value is given for country" in missing.stderr
    unknown = call("query", "-d", world, program, "--param", "what=capital", "--param", "contry=Nepal")
    assert unknown.exit_code == 2
    assert "nearest: 'country'" in unknown.stderr
