"""Passwords: whatever is wrong with an address, no message, representation, log or traceback holds
what may be one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.engine.addresses import is_misplaced_login, parse, shown
from condgraph.engine.errors import CondgraphError, MissingExtraError, OptionError, StoreMissingError
from condgraph.loaders.database.server import DatabaseUrl
from condgraph.sparql.client import wrapper_class
from condgraph.vectors.encoders import encoder_of
from tests.support.lanes import sample

#: What may not be seen anywhere; each password below has it in it.
SECRET = "s3cr3t"
VARIABLES = ("NEO4J_URI", "NEO4J_URL", "NEO4J_USERNAME", "NEO4J_USER", "NEO4J_PASSWORD", "NEO4J_DATABASE", "CONDGRAPH_STORE")
PASSWORDS = (
    *(
        f"{SECRET}{mark}{SECRET}"
        for mark in ("", "#1", "/", "?", "[", "]", "@", ":", "%", "%zz", " ", "\\", "\n", "é", "#", "//", "://", "?@")
    ),
    *(f"{mark}{SECRET}" for mark in ("12/", "7687/", "#", "/", "?", "[", "[::1]")),
)
#: `@` is where the login stands.
ADDRESSES = (
    *("bolt://@127.0.0.1:9", "neo4j://@127.0.0.1:9/movies", "bolt+s://@127.0.0.1:9", "neo4j+ssc://@[::1]:9", "BOLT://@127.0.0.1:9"),
    *(
        "bolt://@127.0.0.1:port",
        "bolt://@127.0.0.1:99999",
        "bolt://@127.0.0.1:9:9",
        "bolt://@",
        "bolt://@:9",
        "bolt://@127.0.0.1:9#x",
    ),
    *("http://@127.0.0.1:9", "https://@127.0.0.1:9", "blot://@127.0.0.1:9", "neo4js://@127.0.0.1:9", "://@127.0.0.1:9", "x y://@h"),
    *("bolt:/@127.0.0.1:9", "bolt:@127.0.0.1:9", "@127.0.0.1:9", "bolt//@127.0.0.1:9", "bolt;//@127.0.0.1:9"),
    *("sparql+http://@127.0.0.1:9/sparql", "sparql+https://@127.0.0.1:9/sparql?a=b", "sparql+http://@127.0.0.1:port/sparql"),
    *("sparql+http://@127.0.0.1:99999/", "sparql+htp://@127.0.0.1:9/sparql", "sparql://@127.0.0.1:9/sparql", "sparql+http://@"),
)
PLACES = [address.replace("@", f"neo4j:{password}@", 1) for address in ADDRESSES for password in PASSWORDS]
#: No `@` at all: the port may be a password.
PLACES += [f"{scheme}://neo4j:{SECRET}{end}" for scheme in ("bolt", "sparql+http", "blot") for end in ("", "#1", "/x", "?x", "[")]


@pytest.fixture(autouse=True)
def no_login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No server is named by the environment, and folders that are made by mistake lie elsewhere."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def all_said(call: Callable[[], object]) -> list[str]:
    """All that is said of an error, with what it was raised from and what was handled; of a result,
    how it is shown.
    """
    try:
        found = call()
    except CondgraphError as error:
        texts, seen = ["".join(traceback.format_exception(error))], error
        one: BaseException | None = seen
        while one is not None:
            # What is handled is no less kept for not being shown.
            texts += [str(one), repr(one), repr(one.args), repr(getattr(one, "hint", "")), repr(getattr(one, "candidates", ""))]
            one = one.__cause__ or one.__context__
        return texts
    return [str(found), repr(found)]


def status(place: str) -> object:
    """Open, and ask for what cannot be there."""
    with condgraph.open(place) as graph:
        texts = [repr(graph), str(graph.place)]
        texts += all_said(lambda: graph.status())
        texts += [repr(getattr(graph, "store", None)), repr(getattr(getattr(graph, "store", None), "endpoint", None))]
        return texts


def leaks(places: list[str], ask: Callable[[str], object]) -> list[tuple[str, list[str]]]:
    """The places of which something is told that may not be."""
    found = []
    for place in places:
        texts = all_said(lambda place=place: ask(place))  # type: ignore[misc]
        if any(SECRET in text for text in texts):
            found.append((place, texts))
    return found


def test_opening(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    with caplog.at_level(logging.DEBUG):
        assert not leaks(sample(PLACES, 7), status)
    assert SECRET not in caplog.text
    assert not any(SECRET in stream for stream in capfd.readouterr())
    assert not any(SECRET in name for name in os.listdir())


def test_opening_for_asyncio() -> None:
    async def ask(place: str) -> object:
        graph = await condgraph.open_async(place)
        try:
            return [repr(graph), repr(graph.graph), *[repr(await graph.status())]]
        finally:
            graph.close()

    assert not leaks(PLACES[:: len(PASSWORDS) // 5], lambda place: asyncio.run(ask(place)))


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(place: str) -> object:
        if "\0" in place:
            return None
        monkeypatch.setenv("NEO4J_URI", place)
        return status("neo4j://")

    assert not leaks(sample(PLACES, 7), ask)


def test_loading_makes_no_folder() -> None:
    def load(place: str) -> object:
        with condgraph.open(place) as graph:
            return graph.load([{"a": "b"}], name="table")

    assert not leaks(sample([place for place in PLACES if "127.0.0.1" not in place or "bolt" not in place], 7), load)
    assert not any(SECRET in name for name in os.listdir())


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_addresses_of_databases(scheme: str) -> None:
    """What may be shown of them, and what is raised where they cannot be read; nobody is asked."""
    hosts = ("127.0.0.1:9/db", "127.0.0.1:port/db", "[::1]:9/db", "127.0.0.1/db?password=x", "", "h", "h:99999/db")
    places = [f"{scheme}://me:{password}@{host}" for host in hosts for password in PASSWORDS]
    for tell in (repr, lambda place: place.location, lambda place: place.called):
        assert not leaks(places, lambda place, tell=tell: tell(DatabaseUrl(place)))  # type: ignore[misc]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a.duckdb").write_bytes(b"\0" * 8 + b"DUCK" + b"\0" * 8)
    (tmp_path / "a.csv").write_text("a,b\n")
    for name, hint in (("a.duckdb", r"condgraph.open\('duckdb:////.*a.duckdb'\)"), ("a.csv", "load.. reads files")):
        with pytest.raises(StoreMissingError, match=f"is a file, and a graph is a folder; {hint}"):
            condgraph.open(tmp_path / name)


@pytest.mark.parametrize("password", ["a#1", "a/b", "a?b", "a[b", "a@b", "a:b", "a b", "a%23"])
def test_passwords_of_databases_that_nobody_escaped(password: str) -> None:
    login = DatabaseUrl(f"mysql://me:{password}@[::1]:3306/my db?ssl=true").login()
    assert (login.user, login.password, login.host, login.port, login.name) == ("me", unquote(password), "::1", 3306, "my db")
    assert login.options == {"ssl": "true"}


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "ftp"])
def test_addresses_of_files_that_are_not_read(scheme: str) -> None:
    hosts = ("127.0.0.1:9/db", "127.0.0.1/db?x=y", "h")
    places = [f"{scheme}://me:{password}@{host}" for host in hosts for password in PASSWORDS if password != f"{SECRET}\\{SECRET}"]
    assert not leaks(places, lambda place: condgraph.open("memory:").load(place))


@pytest.mark.parametrize("option", ["update", "store"])
def test_addresses_beside_the_endpoint(option: str) -> None:
    places = [f"http://u:{password}@127.0.0.1:{port}/x" for password in PASSWORDS for port in ("9", "port", "")]
    assert not leaks(places, lambda place: repr(condgraph.open("sparql+http://127.0.0.1:9/sparql", **{option: place}).status()))


def test_addresses_of_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)

    def ask(place: str) -> object:
        monkeypatch.setenv("OPENAI_BASE_URL", place)
        encoder = encoder_of("openai:a-model")
        return [repr(encoder), encoder.place]  # type: ignore[attr-defined]

    places = [f"http://u:{password}@127.0.0.1:{port}/v1" for password in PASSWORDS for port in ("9", "port")]
    assert not leaks(sample(places, 3), ask)


COMMANDS = (
    ["status", "-d", "@"],
    ["load", "@", "table.csv"],
    ["query", "-d", "@", "FindAll() Count()"],
    ["cypher", "-d", "@", "RETURN 1"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_the_command_line(command: list[str]) -> None:
    Path("table.csv").write_text("a,b\nc,d\n")
    found = []
    for place in sample(PLACES[:: 5 if command[0] == "status" else 23], 3):
        result = CliRunner().invoke(app, [place if part == "@" else part for part in command])
        unknown = result.exception is not None and not isinstance(result.exception, SystemExit)
        if SECRET in result.output or SECRET in result.stderr or unknown:
            found.append((place, result.output, result.exception))
    assert not found
    assert not any(SECRET in name for name in os.listdir())


@pytest.mark.parametrize(
    "place", ["bolt://neo4j:s3cr3t#1@127.0.0.1:port", "blot://neo4j:s3cr3t@127.0.0.1", "http://neo4j:s3cr3t[@h"]
)
def test_the_file_of_variables(place: str) -> None:
    Path(".env").write_text(f"NEO4J_URI='{place}'\nNEO4J_PASSWORD={SECRET}\n")
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    command = [sys.executable, "-m", "condgraph", "status"]
    said = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert said.returncode == 2
    assert "error[option]" in said.stderr
    assert SECRET not in said.stdout + said.stderr


def test_an_error_of_ours_shows_no_variables() -> None:
    """What nobody foresaw is a plain traceback: the values of variables are not in it."""
    code = (
        "import condgraph\n"
        "def broken(place, **options):\n    secret = place\n    raise RuntimeError('unforeseen')\n"
        "condgraph.open = broken\n"
        "from condgraph.cli.app import run\n"
        f"import sys; sys.argv = ['condgraph', 'status', '-d', 'bolt://neo4j:{SECRET}@h', '-p', '{SECRET}']\n"
        "run()\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "unforeseen" in said.stderr
    assert SECRET not in said.stdout + said.stderr


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("blot://u:s3cr3t@h", r"'blot://' is not a kind of address.*nearest: .*'bolt://'"),
        ("http://u:s3cr3t@h:7474", "'http://' is not a kind of address.*neo4j://localhost:7687 for Neo4j"),
        ("sparql+htp://u:s3cr3t@h", r"nearest: 'sparql\+http://'"),
        ("bolt://u:s3cr3t@h:port", "the port of 'bolt://h:...' is not a number"),
        ("bolt://u:s3cr3t@h:70000", "the port of 'bolt://h:70000' is not a number up to 65535"),
        ("bolt://u:s3cr3t@", "names no server"),
        ("u:s3cr3t@h:7687", "'h:7687' is an address without its scheme"),
        ("sparql+http://u:12/s3cr3t@h", "write # as %23"),
        ("duckdb:shops/a.duckdb", "slashes after duckdb:.*duckdb:///shops/a.duckdb; a folder begins with ./"),
        ("Bolt:/h:7687", "Bolt://h:7687"),
    ],
)
def test_what_is_said(place: str, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        condgraph.open(place)


@pytest.mark.parametrize("password", ["a#1", "a/b", "a?b", "a[b", "a@b", "a:b", "ab"])
def test_passwords_that_nobody_escaped_are_understood(password: str) -> None:
    found = parse(f"bolt://neo4j:{password}@host:7687/movies", ["bolt"], example="")
    assert (found.user, found.password, found.host, found.port, found.path) == ("neo4j", password, "host", 7687, "/movies")
    assert found.plain == "bolt://host:7687/movies"


def test_parts_of_addresses() -> None:
    assert parse("bolt://a%40b:c%23d@[::1]:7687", ["bolt"], example="")[:5] == ("bolt", "a@b", "c#d", "[::1]", 7687)
    assert parse("http://h/p?q=a@b", ["http"], example="", paths=True).plain == "http://h/p?q=a@b"
    assert parse("http://u:p@h/p@q", ["http"], example="", paths=True)[1:6] == ("u", "p", "h", None, "/p@q")
    assert shown("bolt://u:p@h:7687/x?y#z") == "bolt://h:7687"
    assert not any(map(is_misplaced_login, ("memory:", "folder", "/data/10:30@home", "./a:b@c", "a@b", "C:\\a@b")))


@pytest.mark.parametrize(
    ("place", "missing", "extra"),
    [("bolt://127.0.0.1:9", "neo4j", "neo4j"), ("sparql+http://127.0.0.1:9", "SPARQLWrapper", "sparql")],
)
def test_what_is_not_installed(place: str, missing: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper_class.cache_clear()
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=rf"condgraph\[{extra}\]"):
        condgraph.open(place).status()
