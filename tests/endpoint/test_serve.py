"""`condgraph serve` as a user starts it, and the tools that others have: curl, SPARQLWrapper,
rdflib.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError

import pytest

import condgraph
from condgraph.engine.errors import CancelledError, DeadlineError
from condgraph.engine.facts import Entity, Statement
from condgraph.engine.values import Quantity
from tests.support.samples import load_samples
from tests.support.servers import watched
from tests.support.serving import ask

BASE = "http://condgraph.example/default/"
ANNAPURNA = (
    f"SELECT DISTINCT ?continent {{ ?m <pred:name> 'Annapurna I' ; <{BASE}country>/<{BASE}continent>/<pred:name> ?continent }}"
)


@contextmanager
def command(*arguments: str, start: Sequence[str] = ("-m", "condgraph")) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A running `condgraph serve`, and its address; its first `line` is kept. `start` is how Python starts condgraph."""
    serve = [sys.executable, *start, "serve", "--port", "0", *arguments]
    process = subprocess.Popen(
        watched(serve),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.match(r"(http://\S+?)/ serves", line)
        assert found, line + process.communicate()[1]
        process.line = line  # type: ignore[attr-defined]
        yield found[1], process
    finally:
        process.terminate()
        process.communicate(timeout=20)


def open_generations(pid: int, store: Path) -> set[str]:
    """The generations of a store that a process has open or mapped, or one that it started."""
    found, todo = "", [pid]
    while todo:
        place = Path(f"/proc/{todo.pop()}")
        with suppress(OSError):  # it ended meanwhile
            found += place.joinpath("maps").read_text()
            todo += [int(child) for path in place.glob("task/*/children") for child in path.read_text().split()]
            for path in place.glob("fd/*"):
                with suppress(OSError):
                    found += f"{path.readlink()}\n"
    return set(re.findall(rf"{store}/default/(g\d+)/", found))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "world"
    with condgraph.open(folder) as graph:
        load_samples(graph)
    return folder


@pytest.fixture(scope="module")
def served(world: Path) -> Iterator[str]:
    with command("-d", str(world), "--timeout", "10") as (url, _):
        yield url


def test_curl(served: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")

    def curl(*arguments: str) -> str:
        return subprocess.run(["curl", "-sS", *arguments], capture_output=True, text=True, check=True, timeout=20).stdout

    assert "Asia" in curl("-H", "Accept: text/csv", "--data-urlencode", f"query={ANNAPURNA}", f"{served}/sparql")
    assert "Asia" in curl("-G", "-H", "Accept: text/csv", "--data-urlencode", f"query={ANNAPURNA}", f"{served}/sparql")
    assert "sd:Service" in curl(f"{served}/sparql")
    assert "HTTP/1.1 200" in curl("-I", f"{served}/data?default")
    direct = ("-H", "Content-Type: application/sparql-query", "-H", "Accept: application/n-triples")
    assert "pred:Graph" in curl("--data-binary", f"DESCRIBE <{BASE}>", *direct, f"{served}/sparql")


def test_sparqlwrapper(served: str) -> None:
    wrapper = pytest.importorskip("SPARQLWrapper")
    client = wrapper.SPARQLWrapper(f"{served}/sparql")
    for method in (wrapper.GET, wrapper.POST):
        client.setMethod(method)
        client.setQuery(ANNAPURNA)
        client.setReturnFormat(wrapper.JSON)
        assert client.queryAndConvert()["results"]["bindings"] == [{"continent": {"type": "literal", "value": "Asia"}}]
        client.setReturnFormat(wrapper.XML)
        assert "Asia" in client.queryAndConvert().toxml()
        for form in (wrapper.CSV, wrapper.TSV):
            client.setReturnFormat(form)
            assert b"Asia" in client.queryAndConvert()
        client.setQuery("ASK { ?s <pred:name> 'Annapurna I' }")
        client.setReturnFormat(wrapper.JSON)
        assert client.queryAndConvert()["boolean"] is True
        client.setQuery("CONSTRUCT { ?s <pred:name> ?o } WHERE { ?s <pred:name> ?o }")
        for form in (wrapper.TURTLE, wrapper.RDFXML, wrapper.JSONLD):
            client.setReturnFormat(form)
            found = client.queryAndConvert()
            if isinstance(found, bytes):
                assert b"Annapurna I" in found
            else:
                assert len(found) > 100
    client.setMethod(wrapper.POST)
    client.setRequestMethod(wrapper.POSTDIRECTLY)
    client.setReturnFormat(wrapper.JSON)
    client.setQuery(ANNAPURNA)
    assert client.queryAndConvert()["results"]["bindings"]
    client.setQuery("SELECT nothing")
    with pytest.raises(wrapper.SPARQLExceptions.QueryBadFormed, match="line 1"):
        client.query()
    # Of other statuses it shows the status line alone, as urllib does.
    client.setQuery("SELECT * { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }")
    with pytest.raises(HTTPError, match="HTTP Error 403: SERVICE is refused"):
        client.query()


def test_rdflib(served: str) -> None:
    from rdflib import Graph, Literal, URIRef
    from rdflib.plugins.stores.sparqlstore import SPARQLStore

    for method in ("GET", "POST", "POST_FORM"):
        graph = Graph(SPARQLStore(f"{served}/sparql", method=method))
        (row,) = graph.query(ANNAPURNA)
        assert str(row[0]) == "Asia"
        name = URIRef("pred:name")
        (mountain,) = graph.subjects(name, Literal("Annapurna I"))
        assert (mountain, name, Literal("Annapurna I")) in graph
        assert len(list(graph.triples((mountain, None, None)))) > 2
        assert len(graph.query("CONSTRUCT { ?s <pred:name> ?o } WHERE { ?s <pred:name> ?o }").graph or ()) > 100
        assert bool(graph.query("ASK { ?s <pred:name> 'Annapurna I' }").askAnswer)
    assert len(Graph().parse(f"{served}/data?default", format="turtle")) > 1000


def test_what_programs_need_to_know(served: str, world: Path) -> None:
    # Relative IRIs are names of the graph, so that KQA Pro's queries run as they are.
    reply = ask(served, headers={"Accept": "text/csv"}, query="SELECT ?n { ?m <height> ?h . ?m <pred:name> ?n } LIMIT 3")
    assert reply.body.count(b"\n") == 4
    # The graph is a named graph as well as the default graph.
    count = "SELECT (COUNT(*) AS ?n) { %s }"
    plain = ask(served, headers={"Accept": "text/csv"}, query=count % "?s ?p ?o").text
    assert plain == ask(served, headers={"Accept": "text/csv"}, query=count % f"GRAPH <{BASE}> {{ ?s ?p ?o }}").text
    with condgraph.open(world, read_only=True) as graph:
        assert plain.split()[1] == str(len(graph.rdf().store))


@pytest.mark.service
def test_a_graph_that_is_loaded_anew_is_served_anew(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with condgraph.open(store) as graph:
        graph.add([Entity("a", "Ann"), Statement("a", "height", Quantity(1.7, "Asia"))])
    with command("-d", str(store)) as (url, process):
        for number in range(2):
            query = f"ASK {{ ?s <pred:name> 'Bo {number}' }}"
            assert json.loads(ask(url, query=query).body)["boolean"] is False
            # The store for queries that name graphs, and processes of the API, have files open, too.
            assert ask(url, query=f"ASK {{ GRAPH <{BASE}> {{ ?s ?p ?o }} }}").status == 200
            assert ask(url, path="/api/v1/about").status == 200
            with condgraph.open(store) as graph:
                graph.add([Entity(f"b{number}", f"Bo {number}")])
            until = time.monotonic() + 15
            while not json.loads(ask(url, query=query).body)["boolean"]:
                assert time.monotonic() < until
                time.sleep(0.1)
        # Those that were replaced are let go of, so that their files leave the disk.
        while (generations := open_generations(process.pid, store)) != {"g000003"}:
            assert time.monotonic() < until, generations
            time.sleep(0.1)


#: Starts condgraph as if every graph were a large one, whose RDF another process builds by this text.
_LARGE = "import condgraph.cli.serve as one; one._MANY = 0; one._BUILD = {}; from condgraph.cli import main; main()"


@pytest.mark.service
def test_a_large_graph_is_served_before_its_rdf_is_there(world: Path, tmp_path: Path) -> None:
    folder = tmp_path / "world"
    shutil.copytree(world, folder)
    for stores in folder.glob("default/g*/*rdf*"):
        shutil.rmtree(stores)
    with command("-d", str(folder), start=("-c", _LARGE.format("'import time; time.sleep(100)'"))) as (url, process):
        waits = ask(url, query="ASK {}")
        assert waits.status == 503
        assert waits.headers["retry-after"] == "5"
        assert "is being prepared" in waits.text
        assert "is being prepared" in json.loads(ask(url, path="/health").text)["preparing"]
        assert ask(url, path="/api/v1/about").status == 200
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        assert time.monotonic() - begin < 15
    # The process may build it, or fail: then the server does.
    for build in ("one._BUILD", "'raise SystemExit(1)'"):
        with command("-d", str(folder), start=("-c", _LARGE.format(build))) as (url, _):
            until = time.monotonic() + 60
            while (found := ask(url, query=ANNAPURNA, headers={"Accept": "text/csv"})).status == 503 and time.monotonic() < until:
                time.sleep(0.2)
            assert "Asia" in found.text
            assert "preparing" not in json.loads(ask(url, path="/health").text)


@pytest.mark.service
def test_stopping(world: Path) -> None:
    with command("-d", str(world), "--timeout", "8", "--grace", "20") as (url, process):
        slow = "SELECT (COUNT(*) AS ?n) { ?a <pred:name> ?b . ?c <pred:name> ?d . ?e <pred:name> ?f FILTER(?b = ?f) }"
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(ask(url, query=slow).status))
        thread.start()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        output = process.communicate(timeout=30)
        thread.join()
        # It ended by itself or at its deadline, and was told so.
        assert found[0] in (200, 503)
        assert process.returncode == 0, output
        assert '"GET /sparql"' in output[1]
        assert "Traceback" not in output[1]


@pytest.mark.service
def test_wrong_usage(world: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        ran = subprocess.run(
            [sys.executable, "-m", "condgraph", "serve", *arguments], capture_output=True, text=True, check=False, timeout=60
        )
        return ran.returncode, ran.stderr

    code, said = run("-d", str(tmp_path / "nothing"))
    assert (code, "store-missing" in said) == (3, True)
    with command("-d", str(world)) as (url, _):
        code, said = run("-d", str(world), "--port", url.rpartition(":")[2])
        assert (code, "cannot listen" in said) == (2, True)


@pytest.mark.parametrize("place", ["memory:", "disk"])
def test_programs_on_the_embedded_store_have_deadlines(place: str, tmp_path: Path) -> None:
    with condgraph.open(place if place == "memory:" else tmp_path / "store") as graph:
        load_samples(graph)
        program = "FindAll() FilterNum(height, 7000 m, >) QueryName()"
        bounded = graph.kopl(program, engine="sparql", timeout=20)
        assert bounded.texts == graph.kopl(program).texts
        endless = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(?a = ?i) }"
        with pytest.raises(DeadlineError):
            graph.rdf().select(endless, timeout=0.3)
        cancelled = threading.Event()
        threading.Timer(0.2, cancelled.set).start()
        with pytest.raises(CancelledError):
            graph.rdf().select(endless, cancelled=cancelled)
        assert graph.rdf().ask("ASK { ?s <pred:name> 'Annapurna I' }", timeout=10)
