"""Files at http addresses: fetched within bounds, told by their address without its login. A server
in a thread answers each path as the path says.
"""

from __future__ import annotations

import gzip
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

import condgraph
from condgraph.engine.bounds import within
from condgraph.engine.errors import CancelledError, DeadlineError, FormatError, LoadError
from condgraph.loaders import fetch
from tests.support.pace import quick_enough

PEAKS = b"name,height\nEverest,8849 m\nK2,8611 m\n"


class _Answers(BaseHTTPRequestHandler):
    server: Any

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        path, _, query = self.path.partition("?")
        what = path.split("/")[1]
        if what == "to":
            self.send_response(302)
            self.send_header("Location", query)
            self.end_headers()
        elif what == "private" and self.headers.get("Authorization") is None:
            self.send_error(401)
        elif what == "missing":
            self.send_error(404)
        elif what == "drip":
            self.send_response(200)
            self.end_headers()
            self._drip(b"name,height\n" + b"a,1\n" * 1000)
        elif what == "drip-headers":
            self._drip(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000)
        else:
            body = {"bad": PEAKS + b"x,y,z,u,v\n", "packed": gzip.compress(PEAKS), "empty": b""}.get(what, PEAKS)
            body = body * 100 if what in ("large", "unsaid") else body
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8" if what == "page" else "text/csv")
            if what == "odd":
                self.send_header("Content-Encoding", "br")
            if what != "unsaid":
                self.send_header("Content-Length", str(len(body) + 9 * (what == "short")))
            self.end_headers()
            self.wfile.write(body)

    def _drip(self, data: bytes) -> None:
        for at in range(len(data)):
            try:
                self.wfile.write(data[at : at + 1])
                self.wfile.flush()
            except OSError:
                return
            if self.server.ended.wait(0.02):
                return

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server:
    """A server on a free port of this machine, and what it was asked: paths and logins."""

    def __init__(self) -> None:
        made: Any = cast("Any", ThreadingHTTPServer(("127.0.0.1", 0), _Answers))
        made.daemon_threads, made.seen, made.ended = True, [], threading.Event()
        self._server = made
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.place = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.place}"

    @property
    def seen(self) -> list[tuple[str, str | None]]:
        return list(self._server.seen)

    def stop(self) -> None:
        self._server.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = Server()
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture
def graph() -> Iterator[Any]:
    with condgraph.open("memory:") as opened:
        yield opened


def test_an_address_is_a_source(server: Server, graph: Any, tmp_path: Path) -> None:
    address = f"{server.url}/data/peaks.csv"
    report = graph.load(address, key="name")
    assert (report.sources, report.formats, report.statements) == (("peaks",), ("csv",), 4)
    assert [one.location for one in graph.status().sources] == [address]
    assert graph.kopl("FindAll() FilterNum(height, 8700 m, >) QueryName()").texts == ["Everest"]
    assert not any(graph.load(address, key="name").added.values())
    assert list(tmp_path.iterdir()) == [], "what was fetched is gone"


def test_addresses_paths_and_objects_stand_in_one_list(server: Server, graph: Any, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_bytes(PEAKS)
    report = graph.load([f"{server.url}/a/x.csv", f"{server.url}/b/x.csv", f"{server.url}/b/x.csv?v=2", tmp_path / "own.csv"])
    assert len(set(report.sources)) == 4
    place = server.place.replace(":", "_")
    assert report.sources == ("a/x", f"1/{place}/b/x", f"2/{place}/b/x", "own")


def test_packed_and_nameless_files_are_read(server: Server, graph: Any) -> None:
    assert graph.load(f"{server.url}/packed/peaks.csv.gz").sources == ("peaks",)
    assert graph.load(f"{server.url}/unsaid").statements > 0
    assert graph.load(server.url, name="root").sources == ("root",)
    assert graph.load(f"{server.url}/bücher und mehr.csv").sources == ("bücher und mehr",)


def test_the_login_goes_to_its_server_and_nowhere_else(server: Server, graph: Any) -> None:
    other = Server()
    try:
        login = f"http://me:s%2Fecret@{server.place}"
        with pytest.raises(LoadError, match=r"401.*user:password@") as refused:
            graph.load(f"{server.url}/private/peaks.csv")
        assert "secret" not in str(refused.value)
        graph.load(f"{login}/private/peaks.csv?key=K3Y#part")
        graph.load(f"{login}/to/own.csv?/private/own.csv")
        graph.load(f"{login}/to/other.csv?{other.url}/data/other.csv")
        assert server.seen[1] == ("/private/peaks.csv?key=K3Y", "Basic bWU6cy9lY3JldA==")
        assert server.seen[3] == ("/private/own.csv", "Basic bWU6cy9lY3JldA==")
        assert other.seen == [("/data/other.csv", None)]
        assert graph.status().sources[0].location == f"{server.url}/private/peaks.csv?..."
        with pytest.raises(LoadError) as error:
            graph.load(f"{login}/missing/peaks.csv?key=K3Y")
        said = f"{error.value} {error.value.file} {error.value.__cause__} {error.value.__context__}"
        assert "404" in said
        assert not any(part in said for part in ("ecret", "K3Y", "me:"))
        with pytest.raises(LoadError) as error:
            graph.load("http://me:pass/word@host/x")
        assert "pass" not in str(error.value).replace("password", "")
    finally:
        other.stop()


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://host/x", "data:text/csv,a", "gopher://me:secret@host/", "//a:b/"])
def test_other_schemes_are_not_followed(server: Server, graph: Any, to: str) -> None:
    with pytest.raises(LoadError) as error:
        graph.load(f"{server.url}/to/x.csv?{to}")
    assert "secret" not in str(error.value)
    assert len(server.seen) == 1
    assert graph._storage.snapshot is None


def test_redirects_end_and_never_lose_encryption(server: Server, graph: Any) -> None:
    with pytest.raises(LoadError, match="too often"):
        graph.load(f"{server.url}/to/x.csv?/to/x.csv?/to/x.csv")
    follow = fetch._Redirects(urlsplit("https://a/x"), "Basic x")
    request = urllib.request.Request("https://a/x")
    with pytest.raises(LoadError, match="http://, which is not followed"):
        follow.redirect_request(request, None, 302, "", {}, "http://a/x")
    again: Any = follow.redirect_request(request, None, 302, "", {}, "https://a/y")
    away: Any = follow.redirect_request(request, None, 302, "", {}, "https://a:444/y")
    assert (again.get_header("Authorization"), away.get_header("Authorization")) == ("Basic x", None)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("missing/x.csv", "404"),
        ("short/x.csv", "37 of 46 bytes|ended after"),
        ("page/x.csv", "an HTML page"),
        ("odd/x.csv", "compresses the file as 'br'"),
        ("bad/x.csv", "row 3"),
    ],
)
def test_what_goes_wrong_names_the_address(server: Server, graph: Any, path: str, says: str) -> None:
    with pytest.raises(LoadError, match=says) as error:
        graph.load(f"{server.url}/{path}")
    assert error.value.file == f"{server.url}/{path}"
    assert str(error.value).startswith(f"{server.url}/{path}")
    assert graph._storage.snapshot is None


def test_errors_of_recognition_and_problems_name_the_address(server: Server, graph: Any, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="empty") as error:
        graph.load(f"{server.url}/empty/x.csv")
    assert f"{server.url}/empty/x.csv" in str(error.value)
    assert str(tmp_path) not in str(error.value)
    report = graph.load(f"{server.url}/bad/x.csv", on_error="skip")
    assert [one.file for one in report.problems] == [f"{server.url}/bad/x.csv"]
    assert graph.load(f"{server.url}/page/y.csv", format="csv").statements == 4


@pytest.mark.parametrize("what", ["large", "unsaid"])
def test_size_is_bounded(server: Server, graph: Any, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(fetch, "MAX_BYTES", 1_000)
    with pytest.raises(LoadError, match="more than"):
        graph.load(f"{server.url}/{what}/x.csv")
    assert graph.load(f"{server.url}/data/x.csv").statements == 4


@pytest.mark.parametrize("what", ["drip", "drip-headers"])
def test_time_is_bounded_however_slowly_bytes_come(
    server: Server, graph: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str
) -> None:
    begin = time.monotonic()
    with pytest.raises(DeadlineError), within(0.3):
        graph.load(f"{server.url}/{what}/x.csv")
    cancelled = threading.Event()
    threading.Timer(0.3, cancelled.set).start()
    with pytest.raises(CancelledError), within(None, cancelled):
        graph.load(f"{server.url}/{what}/x.csv")
    monkeypatch.setattr(fetch, "MAX_SECONDS", 0.3)
    with pytest.raises(LoadError, match="seconds to fetch"):
        graph.load(f"{server.url}/{what}/x.csv")
    assert quick_enough(time.monotonic() - begin, 10)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("az://bucket/x.csv", "generate-sas"),
        ("gs://bucket/x.csv", "sign-url"),
        ("file:///etc/passwd", "without file://"),
        ("ftp://host/x.csv", "download the file"),
        ("http://", "not an address"),
        ("http://host:port/x", "not an address"),
        ("http://" + "a" * 100_000, "at most"),
        ("http://" + "ü" * 70 + "/x", "name of its server is invalid"),
        ("http://127.0.0.1:1/x", "refused"),
    ],
)
def test_what_is_no_address_of_a_file_is_an_error_that_names_the_way(graph: Any, address: str, says: str) -> None:
    for source in (address, [address]):
        with pytest.raises(LoadError, match=says):
            graph.load(source)


def test_folders_of_an_address_stay_within_their_own(tmp_path: Path) -> None:
    for text in (
        "http://h/../../../x.csv",
        "http://h/%2e%2e/%2fetc%2fx",
        "http://h/" + "d/" * 500 + "x" * 5_000 + ".csv",
        "http://h/a\0b",
    ):
        found = fetch._path(urlsplit(text), tmp_path)
        assert tmp_path in found.resolve().parents
        found.write_bytes(b"")
    assert fetch._path(urlsplit("http://h/x.csv/y.csv"), tmp_path).parent.is_dir()
