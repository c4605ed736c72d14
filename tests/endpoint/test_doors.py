"""One guard for all doors of a server: whatever is asked for, under a name that others point here, from
a web page of others, or from beyond the machine without a token, gets no word of the graph.
"""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import condgraph
from condgraph.engine.facts import Entity, Statement
from tests.endpoint.test_serve import command
from tests.support.serving import Reply, ask

pytestmark = pytest.mark.service

TOKEN = "a-token-of-the-doors-0123456789"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
QUERY = "/sparql?query=ASK%7B%3Fs%20%3Fp%20%3Fo%7D"
#: Every door, with what opens it; the secret of the graph is behind those that need a token.
DOORS: list[tuple[str, str, dict[str, str], bytes | None]] = [
    ("GET", QUERY, {}, None),
    ("HEAD", QUERY, {}, None),
    ("GET", "/sparql", {"Accept": "text/turtle"}, None),
    ("GET", "/sparql/", {"Accept": "text/html"}, None),
    ("POST", "/sparql", FORM, b"query=SELECT%20*%7B%3Fs%20%3Fp%20%3Fo%7D"),
    ("POST", "/sparql", {"Content-Type": "application/sparql-query"}, b"SELECT * { ?s ?p ?o }"),
    ("GET", "/data?default", {}, None),
    ("GET", "/data", {}, None),
    ("GET", "/description", {}, None),
    ("GET", "/default/Secret", {"Accept": "text/turtle"}, None),
    ("GET", "/default/Secret", {"Accept": "text/html"}, None),
    ("GET", "/api/v1/about", {}, None),
    ("GET", "/api/v1/names?text=Sec", {}, None),
    ("GET", "/api/v1/openapi.json", {}, None),
    ("GET", "/api/v1/nothing", {}, None),
    ("POST", "/api/v1/query", JSON, b'{"program": "FindAll() QueryName()"}'),
    ("POST", "/api/v1/graphs?name=x.csv", {"Content-Type": "application/octet-stream"}, b"a,b\n1,2\n"),
    ("DELETE", "/api/v1/graphs/x", {}, None),
]
#: Pages, their files, and whether the server runs: they hold nothing of the graph.
PUBLIC = ["/", "/health", "/studio", "/studio/", "/studio/static/main.js", "/static/page.js"]
ALL = [*DOORS, *(("GET", path, dict[str, str](), None) for path in PUBLIC)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doors") / "store"
    with condgraph.open(folder) as graph:
        graph.add([Entity("Secret", "Secret"), Statement("Secret", "Hidden", "Hidden")], source="Hidden")
    return folder


def knock(url: str, door: tuple[str, str, dict[str, str], bytes | None], **more: str) -> Reply:
    method, path, headers, body = door
    given = {name.replace("_", "-"): value for name, value in more.items()}
    return ask(url, method, path, headers={**headers, **given}, body=body)


def is_shut(reply: Reply, status: int = 403) -> None:
    assert reply.status == status
    assert b"Secret" not in reply.body
    assert b"Hidden" not in reply.body
    assert "access-control-allow-origin" not in reply.headers


def test_on_the_own_machine(place: Path) -> None:
    with command("-d", str(place), "--rate", "0", "--workers", "1") as (url, _):
        here = urlsplit(url).netloc
        for door in ALL:
            assert knock(url, door).status in (200, 303, 307, 404), door
            # A name that its owner points here; the page that it is of is then no other one.
            is_shut(knock(url, door, Host="evil.example:80"))
            is_shut(knock(url, door, Host="evil.example:80", Origin="http://evil.example:80"))
            # Pages of others: a request of a script, of another port of this machine, of a file, and what a page embeds.
            for origin in ("https://evil.example", f"http://{urlsplit(url).hostname}:1", "null"):
                is_shut(knock(url, door, Origin=origin))
            is_shut(knock(url, door, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors", Sec_Fetch_Dest="script"))
            preflight = ask(
                url, "OPTIONS", door[1], headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
            )
            is_shut(preflight)
            # Whoever reads an answer in a browser runs nothing of it, and no other page shows it.
            if door[1] not in PUBLIC:
                reply = knock(url, door, Origin=f"http://{here}")
                assert reply.headers["x-content-type-options"] == "nosniff"
                assert reply.headers["cross-origin-resource-policy"] == "same-origin"
                assert "frame-ancestors" in reply.headers["content-security-policy"]
        assert json.loads(knock(url, ("GET", "/api/v1/about", {}, None), Origin="null").body)["error"]["code"] == "forbidden"


def test_pages_that_are_allowed(place: Path) -> None:
    app, base = "https://app.example", "http://data.example/films/"
    options = ("--cors", app, "--allow-host", "other.example", "--base", base, "--rate", "0", "--workers", "1")
    with command("-d", str(place), *options) as (url, _):
        for host in ("other.example", "data.example:8000"):
            assert knock(url, DOORS[0], Host=host).status == 200
        for door in DOORS:
            reply = knock(url, door, Origin=app)
            assert reply.status in (200, 303, 404), door
            assert reply.headers["access-control-allow-origin"] == app
            assert "Origin" in reply.headers["vary"]
            is_shut(knock(url, door, Origin="https://app.example.evil"))
            asked = {"Origin": app, "Access-Control-Request-Method": door[0], "Access-Control-Request-Headers": "authorization"}
            preflight = ask(url, "OPTIONS", door[1], headers=asked)
            assert preflight.status == 204
            assert preflight.headers["access-control-allow-origin"] == app
            assert door[0] in preflight.headers["access-control-allow-methods"]
            assert "Authorization" in preflight.headers["access-control-allow-headers"]
            assert "access-control-allow-credentials" not in preflight.headers
        # Answers are kept apart from those of other pages.
        assert "Origin" in knock(url, DOORS[0]).headers["vary"]
        failed = knock(url, ("GET", "/sparql?query=ASK", {}, None), Origin=app)
        assert (failed.status, failed.headers["access-control-allow-origin"]) == (400, app)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_beyond_the_machine_without_tokens(place: Path, host: str) -> None:
    try:
        with command("-d", str(place), "--host", host, "--workers", "1", "--cors", "*") as (url, process):
            where = f"http://127.0.0.1:{urlsplit(url).port}"
            for door in ALL:
                reply = knock(where, door)
                is_shut(reply)
                assert door[0] == "HEAD" or "--token-file FILE" in reply.text
            process.terminate()
            said = process.communicate(timeout=20)
            assert "--token-file FILE" in said[1]
    except AssertionError as error:
        if host == "::" and "cannot listen" in str(error):
            pytest.skip("the machine has no IPv6")
        raise


def test_tokens_at_every_door(place: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ann:{TOKEN}\n")
    options = ("--host", "0.0.0.0", "--token-file", str(tokens), "--rate", "5", "--workers", "1")
    with command("-d", str(place), *options) as (url, _):
        where = f"http://127.0.0.1:{urlsplit(url).port}"
        # Wrong tokens behind one address keep none of those who have a right one waiting, nor those who are asked for theirs.
        wrong = [knock(where, DOORS[n % 2 * 12], Authorization=f"Bearer {TOKEN}{n}").status for n in range(40)]
        assert set(wrong) == {401, 429}
        for door in DOORS:
            reply = knock(where, door)
            is_shut(reply, 401)
            assert reply.headers["www-authenticate"].startswith("Bearer" if "/api/" in door[1] else "Basic")
        is_shut(knock(where, ("GET", f"/api/v1/about?token={TOKEN}", {}, None)), 401)
        for door in DOORS[:12]:
            assert knock(where, door, **BEARER).status in (200, 303), door
            assert knock(where, door, Authorization=f"Basic {b64encode(f'ann:{TOKEN}'.encode()).decode()}").status in (200, 303)
        assert knock(where, DOORS[12], **BEARER).status == 200
        # A token is no leave for pages of others: browsers send passwords by themselves.
        is_shut(knock(where, DOORS[0], Origin="https://evil.example", **BEARER))
        for path in PUBLIC:
            reply = ask(where, path=path)
            assert reply.status in (200, 307), path
            assert b"Hidden" not in reply.body
        assert json.loads(ask(where, path="/health").body) == {"status": "ok"}
