"""Tokens, rates, hosts and fields, without a server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from condgraph.endpoint.guard import Guard, Rates, Tokens, hosts_of, is_loopback, origins_of
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import OptionError
from condgraph.engine.facts import Entity
from condgraph.engine.values import Quantity, Time
from condgraph.studio.answers import as_csv, cell, warned
from condgraph.studio.api import ScratchGraphs
from condgraph.studio.spec import GetNames, Match, Query, from_address, read_fields

TOKEN = "correct-horse-battery-staple"
LOCAL = {"host": "localhost:7878"}


def refused(guard: Guard, client: str = "127.0.0.1", method: str = "GET", **headers: str) -> int:
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        guard.enter(method, headers)
        guard.admit(client, guard.known(client, headers.get("authorization")))
    except ProtocolError as error:
        return 0 if TOKEN in error.message else error.status
    return 200


def test_tokens() -> None:
    guard = Guard(Tokens({"ann": TOKEN}), loopback=False)
    assert guard.known("10.0.0.1", f"Bearer {TOKEN}") == "ann"
    for wrong in (
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        "Basic ????",
        "Bearer \udcff",
        "Bearer é",
    ):
        assert refused(guard, authorization=wrong) == 401
    assert refused(guard) == 401
    # SPARQL's clients know passwords only.
    assert guard.known("10.0.0.1", "Basic YW5uOmNvcnJlY3QtaG9yc2UtYmF0dGVyeS1zdGFwbGU=") == "ann"


def test_files_of_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# users\n\nann: {TOKEN}\nbob:{TOKEN[::-1]}\n")
    assert Tokens.read(file).user(TOKEN[::-1]) == "bob"
    for text in ("", "ann", "ann:short", f"ann:{TOKEN} x", f"ann:{TOKEN}\nann:{TOKEN}y", f"ann:{TOKEN}é", f":{TOKEN}"):
        file.write_text(text)
        with pytest.raises(OptionError) as raised:
            Tokens.read(file)
        assert TOKEN not in str(raised.value)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(OptionError):
        Tokens.read(file)


def test_hosts_and_origins() -> None:
    guard = Guard(origins=origins_of(["https://app.example", "http://[::1]:3000/"]), hosts=hosts_of(["data.example", "::2"]))
    for host in (
        "localhost",
        "LOCALHOST:1",
        "localhost.",
        "127.0.0.1:7878",
        "[::1]:7878",
        "127.8.9.1",
        "Data.Example:80",
        "[::2]:7878",
    ):
        assert refused(guard, host=host) == 200, host
    # A name of others that points here.
    for host in (
        "evil.example", "localhost.evil.example:80", "", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0", "localhost, evil.example",
        "evil.example:localhost", "localhost@evil.example", "[evil.example]", "2130706433", "sub.data.example", "data.example.evil",
        "[::1", "[::1]evil.example", "localhost:", "localhost:1:2", "localhost:80x", "local host", "localhost\\", "[localhost]",
    ):  # fmt: skip
        assert refused(guard, host=host) == 403, host
    assert refused(guard, **LOCAL, origin="http://localhost:7878") == 200
    assert refused(guard, **LOCAL, origin="https://app.example") == 200
    assert refused(guard, **LOCAL, origin="http://[::1]:3000") == 200
    for origin in (
        "http://localhost:80",
        "http://localhost",
        "https://evil.example",
        "null",
        "http://[",
        "https://app.example.evil",
        "",
    ):
        assert refused(guard, **LOCAL, origin=origin) == 403, origin
    # What a page of others embeds names no origin; a link that is followed shows what it asks to nobody but its reader.
    link = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    for site in ("cross-site", "same-site"):
        assert refused(guard, **LOCAL, sec_fetch_site=site, sec_fetch_mode="no-cors", sec_fetch_dest="image") == 403
        assert refused(guard, **LOCAL, sec_fetch_site=site, **{**link, "sec_fetch_dest": "iframe"}) == 403
        assert refused(guard, "127.0.0.1", "POST", **LOCAL, sec_fetch_site=site, **link) == 403
        assert refused(guard, **LOCAL, sec_fetch_site=site, **link) == 200
    for site in ("none", "same-origin"):
        assert refused(guard, **LOCAL, sec_fetch_site=site, sec_fetch_mode="cors", sec_fetch_dest="empty") == 200
    assert refused(Guard(origins=origins_of(["*"])), **LOCAL, origin="https://evil.example") == 200
    # Beyond the machine nothing is served without a token; with one, any name will do.
    assert refused(Guard(loopback=False), **LOCAL) == 403
    beyond = Guard(Tokens({"ann": TOKEN}), loopback=False)
    assert refused(beyond, host="data.example", authorization=f"Bearer {TOKEN}") == 200
    assert refused(beyond, host="data.example", authorization=f"Bearer {TOKEN}", origin="https://evil.example") == 403
    assert is_loopback("::ffff:127.0.0.1")
    assert not is_loopback("::")
    for wrong in (
        "app.example", "file:///x", "https://a.example/path", "null", "https://", "http://[", "https://a@b.example", "https://a.example?x",
        "https://a.example:port", "https://*.example/x", "**",
    ):  # fmt: skip
        with pytest.raises(OptionError):
            origins_of([wrong])
    for wrong in ("", "a.example:80", "https://a.example", "*", "a b"):
        with pytest.raises(OptionError):
            hosts_of([wrong])


def test_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    guard = Guard(Tokens(), Rates(10, 20))
    assert [refused(guard, **LOCAL) for _ in range(21)] == [200] * 20 + [429]
    assert refused(guard, client="127.0.0.2", **LOCAL) == 200
    now[0] += 0.2
    assert [refused(guard, **LOCAL) for _ in range(3)] == [200, 200, 429]
    # Who guesses tokens waits soon, and keeps nobody else behind the same address from asking.
    guard = Guard(Tokens({"ann": TOKEN, "bob": TOKEN[::-1]}), Rates(10, 40), loopback=False)
    assert [refused(guard, authorization="Bearer x") for _ in range(5)] == [401, 401, 401, 429, 429]
    assert refused(guard, authorization=f"Bearer {TOKEN}") == 200
    # A client that sends its token when it is asked for one is asked for it.
    assert [refused(guard) for _ in range(3)] == [401] * 3
    assert [refused(guard, authorization=f"Bearer {TOKEN}") for _ in range(41)] == [200] * 39 + [429] * 2
    assert refused(guard, authorization=f"Bearer {TOKEN[::-1]}") == 200
    assert len(Rates(10, 20)._left) == 0
    many = Rates(10, 20)
    for number in range(20_000):
        many.take(str(number))
    assert len(many._left) == 10_000


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"program": 1},
        {"program": "x" * (2 << 20)},
        {"program": "x", "limit": 0},
        {"program": "x", "limit": True},
        {"program": "x", "limit": 1e9},
        {"program": "x", "timeout": float("nan")},
        {"program": "x", "timeout": float("inf")},
        {"program": "x", "timeout": -1},
        {"program": "x", "language": "python"},
        {"program": "x", "on_unknown": ["error"]},
        {"program": "x", "place": "/etc"},
        {"program": "x", "encoder": "/model"},
        {"program": "x", "as_of": 5},
        {"program": "x", "as_of": "x" * 101},
        {"program": "x", "prefer": []},
        {"program": "x", "prefer": {}},
        {"program": "x", "prefer": {"a": 1}},
        {"program": "x", "prefer": {"a": {"b": "c"}}},
        {"program": "x", "prefer": ["s"] * 101},
        {"program": "x", "prefer": {str(number): "rank" for number in range(101)}},
        {"program": "x", "prefer": {"a": ["x" * 10_001]}},
    ],
)
def test_fields_that_are_wrong(given: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as raised:
        read_fields(given, Query)
    assert raised.value.status == 400
    assert len(raised.value.message) < 2_100


def test_fields() -> None:
    read = read_fields({"program": "x", "limit": 5, "engine": None}, Query)
    assert read == {
        "program": "x", "limit": 5, "facts": 200, "format": "json", "compiled": True, "on_unknown": "error", "certain": False,
    }  # fmt: skip
    assert read_fields({"pattern": "p", "options": {"directed": False}}, Match)["options"] == {"directed": False}
    view = {"at": "1984", "certain": True, "as_of": "g000001", "prefer": {"capital": ["atlas", "notes"]}}
    for fields, model in (({"program": "x"}, Query), ({"pattern": "p"}, Match)):
        given = read_fields(fields | view, model)
        assert {name: given[name] for name in view} == view
    for prefer in ("latest", ["atlas", "notes"], {"capital": "rank"}):
        assert read_fields({"program": "x", "prefer": prefer}, Query)["prefer"] == prefer
    with pytest.raises(ProtocolError, match="nearest: 'program'"):
        read_fields({"programm": "x"}, Query)
    assert from_address(b"text=a%20b&kinds=entity&kinds=concept&limit=7", GetNames) == {
        "text": "a b", "kinds": ["entity", "concept"], "limit": 7,
    }  # fmt: skip
    for wrong in (b"text=%ff", b"text=a&text=b", b"&".join(b"a%d=1" % i for i in range(200))):
        with pytest.raises(ProtocolError):
            from_address(wrong, GetNames)


def test_cells() -> None:
    assert cell(None) is None
    assert cell(True) == {"type": "truth", "text": "yes", "truth": True}
    huge = cell(Quantity(10**400, "m"))
    assert huge is not None
    assert huge["number"] is None
    assert huge["text"].startswith("1")
    time_ = cell(Time.parse("-0044"))
    assert time_ is not None
    assert (time_["precision"], time_["start"][:5]) == ("year", "-0044")
    assert cell(Entity("e", "E")) == {"type": "entity", "text": "E", "id": "e", "name": "E", "kind": "entity"}
    assert cell(object())["type"] == "other"  # type: ignore[index]


def test_csv_runs_nothing() -> None:
    rows = [[{"type": "text", "text": text}] for text in ("=1+1", "@x", "-x", "fine", 'a"b', "two\nlines")]
    rows += [[{"type": "quantity", "text": "-5 m", "number": -5.0, "unit": "m"}], [None]]
    written = as_csv({"columns": ["=a"], "rows": rows}).decode()
    assert written == '\'=a\n\'=1+1\n\'@x\n\'-x\nfine\n"a""b"\n"two\nlines"\n-5 m\n""\n'


def test_warnings_have_places() -> None:
    assert warned(["a (at character 12)", "b"]) == [{"text": "a (at character 12)", "span": [11, 12]}, {"text": "b", "span": None}]


def test_scratch_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = ScratchGraphs()
    try:
        name = graphs.make("ann")
        one = graphs.find(name)
        named = {"../../etc/passwd": "passwd", "..": "file", "C:\\x\\y.csv": "y.csv", "a\0b\n.csv": "a_b_.csv", ".env": "env"}
        for given, kept in named.items():
            path = one.file(given)
            assert path.name == kept
            assert path.resolve().is_relative_to(one.folder.resolve())
        for wrong in ("", "../" + name, name.upper() + "x", "0" * 32, name + "\n"):
            with pytest.raises(ProtocolError):
                graphs.find(wrong)
        # A client's oldest goes for its ninth.
        others = [graphs.make("bob") for _ in range(9)]
        assert not (one.folder.parent / others[0]).exists()
        assert graphs.find(name) is one
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 4000)
        with pytest.raises(ProtocolError):
            graphs.find(name)
        assert not one.folder.exists()
    finally:
        graphs.close()
    assert not one.folder.parent.exists()
