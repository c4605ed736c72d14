"""What is posted to the endpoint is looked at in linear time, beside its loop: others are answered
meanwhile.
"""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from condgraph.sparql.text.scan import survey
from tests.endpoint.test_serve import command, world
from tests.support.lanes import sample
from tests.support.pace import quick_enough

__all__ = ["world"]
#: Seconds within which `/health` answers.
SOON = 0.1
PIECES = ("1", "é", "_", "1.", "a-", "(", "<", '"', '\\"', "'", "a ", "?a ", "%41", "#\n", "&a=b")


@pytest.fixture(scope="module")
def served(world: Path) -> Iterator[str]:
    with command("-d", str(world), "--timeout", "10", "--quiet") as (url, _):
        yield url


def health(url: str) -> float:
    """Seconds that `/health` takes."""
    begin = time.perf_counter()
    with urllib.request.urlopen(f"{url}/health", timeout=30) as response:
        assert response.status == 200
        response.read()
    return time.perf_counter() - begin


def post(url: str, body: bytes, kind: str) -> tuple[int, str]:
    request = urllib.request.Request(f"{url}/sparql", body, {"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(
    ("piece", "kind"),
    [(piece, "application/sparql-query") for piece in PIECES]
    + [(piece, "application/x-www-form-urlencoded") for piece in sample(PIECES, 4)],
)
def test_health_answers_while_long_queries_are_posted(served: str, piece: str, kind: str) -> None:
    """A megabyte of anything: a status and a short text; `/health` is answered all the time."""
    body = ("SELECT * { ?s ?p " + piece * (1_000_000 // len(piece.encode())) + " }").encode()
    if "form" in kind:
        body = b"query=" + body
    # The machine is shared, and its processors may be busy: of eight tries one is enough, and
    # others' work, which may end between two of them, does not count.
    late, usual = [while_posted(served, body, kind)], 0.0
    while late[-1] >= max(SOON, 3 * usual) and len(late) < 8:
        time.sleep(len(late))
        usual = sorted(health(served) for _ in range(20))[18]
        late.append(while_posted(served, body, kind))
    assert quick_enough(min(late), max(SOON, 3 * usual)), (late, usual)


def while_posted(url: str, body: bytes, kind: str) -> float:
    """How late nine in ten answers of `/health` are while a query is posted."""
    answers: list[tuple[int, str]] = []
    sender = threading.Thread(target=lambda: answers.append(post(url, body, kind)))
    sender.start()
    waits = [health(url)]
    while sender.is_alive():
        waits.append(health(url))
        time.sleep(0.01)
    sender.join()
    status, said = answers[0]
    assert 200 <= status <= 503, (status, said[:200])
    assert len(said) < 5_000
    return sorted(waits)[len(waits) * 9 // 10]


def test_a_query_is_bounded(served: str) -> None:
    """413, with the number of characters."""
    status, said = post(served, b"ASK {}" + b" " * (1 << 20), "application/sparql-query")
    assert (status, "1,048,576 characters" in said) == (413, True)


#: Each calls another service, says Oxigraph, which needs no space behind a keyword.
SERVICES = (
    "SELECT * { SERVICE <http://h/> { ?s ?p ?o } }",
    "SELECT * { ?s ?p 1SERVICE<http://h/>{ ?s ?p ?o } }",
    "SELECT * { ?s ?p trueSERVICE<http://h/>{ ?s ?p ?o } }",
    "SELECT * { ?s ?p 1.SERVICE<http://h/>{ ?s ?p ?o } }",
    "PREFIX : <http://h/> SELECT * { SERVICE:b { ?s ?p ?o } }",
    "PREFIX : <http://h/> SELECT * { serviceSILENT:b{ ?s ?p ?o } }",
    "PREFIX : <http://h/> PREFIX SERVICE: <http://h/> SELECT * { SERVICE:b # {\n { ?s ?p ?o } }",
    "PREFIX : <http://h/> SELECT * { ?s ?p :.SERVICE:b { ?s ?p ?o } }",
    "SELECT * { ?s ?p '''a\\'''' . SERVICE<http://h/>{} }",
)
#: None of these does.
OTHERS = (
    "SELECT ?service { ?service <service> 'SERVICE <x> {}' } # SERVICE <x> {}",
    "PREFIX service: <http://h/> SELECT * { GRAPH service:g { ?s service:p service:o . ?s a service:C { } } }".replace(" { }", ""),
    "PREFIX service: <http://h/> DESCRIBE service:a { service:a ?p ?o }",
    'SELECT * { ?s ?p "x"@service ; a:service """ " SERVICE <x> {} """ }',
)


@pytest.mark.parametrize("text", SERVICES)
def test_services_are_seen(text: str, served: str) -> None:
    """However they are written, and none is called."""
    assert survey(text).service
    status, said = post(served, text.encode(), "application/sparql-query")
    assert (status, "SERVICE is refused" in said) == (403, True)


@pytest.mark.parametrize("text", OTHERS)
def test_names_are_no_services(text: str) -> None:
    assert not survey(text).service
