"""Queries that name graphs, and those that do not, over an embedded store that has its triples in
the default graph: answers are those of Oxigraph over the same quads in their named graphs.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import pyoxigraph as ox
import pytest

import condgraph
from condgraph.endpoint.backend import OxigraphBackend
from condgraph.engine.bounds import within
from condgraph.engine.errors import CondgraphError, DeadlineError, ParseError
from condgraph.engine.facts import Statement
from condgraph.engine.iris import PREFIXES
from condgraph.sparql.embedded import EmbeddedStore
from condgraph.sparql.load.write import quads
from condgraph.sparql.plain import has_terms, labels, plain
from condgraph.sparql.text.scan import names_graphs
from condgraph.sparql.workers.pool import Query, WorkerPool
from tests.support.lanes import by_lane

X = "http://x.org/a#"
TABLE = "city,country,people\n" + "".join(f"c{i},k{i % 3},{100 * i}\n" for i in range(12))
#: Without blank nodes: these have other names in each store.
FOREIGN = f"""
@prefix : <{X}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:g {{ :a :p :b . :b :p :c . :c :p :a . :a a :K . :a rdfs:label "A" }} :h {{ :a :p :b . :b :q "1" . :c :q "2"@en }}
:a :p :d . :d rdfs:label "D" . :d a :K .
"""
QUERIES = by_lane(60, 1500, 6000)


@dataclass
class Beside:
    """A graph as its embedded store has it, and the same quads with their graphs in Oxigraph."""

    store: EmbeddedStore
    backend: OxigraphBackend
    judge: WorkerPool
    local: Any

    def answer(self, query: Query) -> Any:
        """What the endpoint's backend gives."""

        async def ask() -> bytes:
            results = await self.backend.query(query, 20)
            try:
                return b"".join([part async for part in results])
            finally:
                results.close()

        return _said(query, lambda: self._loop.run_until_complete(ask()))

    def expected(self, query: Query) -> Any:
        """What Oxigraph gives for the same data set."""
        told = query.default_graphs is not None or query.named_graphs is not None
        # As the backend has always done: without a data set, the default graph is that of the graph.
        if not told and not query.graph and not query.dataset and " FROM " not in query.text:
            query = replace(query, default_graphs=self.store.defaults)
        return _said(query, lambda: self.judge.query(replace(query, prefixes=PREFIXES), timeout=20).read())

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()


def _said(query: Query, read: Any) -> Any:
    try:
        found: bytes = read()
    except ParseError:
        return "no SPARQL"
    except CondgraphError as error:
        return type(error).__name__
    if found.startswith(b"{"):
        return _rows(ox.parse_query_results(found, ox.QueryResultsFormat.JSON))
    return sorted(found.splitlines())


def _rows(results: Any) -> Any:
    if isinstance(results, ox.QueryBoolean):
        return bool(results)
    names = [variable.value for variable in results.variables]
    return names, Counter(tuple(str(row[name]) for name in names) for row in results)


@pytest.fixture(scope="module", params=["a table", "RDF with graphs of its own", "the same in memory"])
def beside(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    folder = tmp_path_factory.mktemp("naming")
    (folder / "cities.csv").write_text(TABLE, encoding="utf-8")
    (folder / "graphs.trig").write_text(FOREIGN, encoding="utf-8")
    with condgraph.open(folder / "store") as graph:
        graph.load(folder / "cities.csv", key="city")
        if request.param != "a table":
            graph.load(folder / "graphs.trig")
        store = graph.rdf()
        there = _judged(store, folder / "judge")
        options: dict[str, Any] = {"base": store.base, "predeclared": PREFIXES, "workers": 1}
        options["held"] = 100_000 if request.param == "the same in memory" else 0
        with (
            WorkerPool(folder / "judge", workers=1) as judge,
            OxigraphBackend(store.source, naming=store.naming, graphs=store.graphs, default=store.defaults, **options) as backend,
        ):
            yield Beside(store, backend, judge, there)


def _judged(store: EmbeddedStore, folder: Path) -> Any:
    """The quads with their named graphs, in a store of Oxigraph."""
    snapshot, base = store.snapshot, store.base
    end = f" <{base}> .\n"
    lines = [*quads(snapshot, base), *(one + end for one in labels(snapshot, base))]
    if has_terms(snapshot):
        lines += plain(snapshot, base, end)
    there = ox.Store(str(folder))
    there.load("".join(lines), ox.RdfFormat.N_QUADS)
    there.flush()
    del there
    return ox.Store.read_only(str(folder))


class Maker:
    """Random queries over the vocabulary of the two graphs."""

    def __init__(self, base: str, dice: random.Random) -> None:
        self.base, self.dice = base, dice
        self.graphs = [
            f"<{base}>",
            f"<{base}.rdf/>",
            f"<{X}g>",
            f"<{X}h>",
            "<http://nowhere.example/>",
            "<>",
            "me:",
            "?g",
            "?g",
            "$g",
        ]

    def one(self, *of: str) -> str:
        """One of several."""
        return self.dice.choice(of)

    def term(self) -> str:
        """A variable, or something that there is."""
        return self.one("?a", "?b", "?c", "?a", "?b", "<c1>", f"<{X}a>", f"<{X}b>", "?g")

    def triple(self) -> str:
        """A triple pattern."""
        predicate = self.one(
            "<country>", "<pred:name>", "rdfs:label", f"<{X}p>", f"<{X}p>", "a", "?p", f"<{X}p>*", f"^<{X}p>", f"<{X}p>/<{X}q>",
            "(<pred:source>|rdfs:label)", f"<{X}p>+", "!(rdf:type|rdfs:label)", "<pred:fact_h>/<country>?",
        )  # fmt: skip
        return f"{self.term()} {predicate} {self.one('?o', '?b', '?c', self.term())} . "

    def named(self, inside: str) -> str:
        """A group in a named graph, with the keyword as people write it, and as only parsers read it."""
        graph = self.one(*self.graphs)
        # A name may follow at once, and a comment may stand between.
        between = self.one(" ", " ", " ", "\n\t", "#}\n", "")
        return f"{self.one('GRAPH', 'GRAPH', 'graph', 'Graph')}{between}{graph}{self.one(' ', '')}{{ {inside}}} "

    def group(self, depth: int) -> str:
        """The patterns of a group."""
        parts = []
        for _ in range(self.dice.randint(1, 3)):
            kind = self.dice.random()
            if depth == 0 or kind < 0.4:
                parts.append(self.triple())
                continue
            inside = self.group(depth - 1)
            parts.append(
                self.one(
                    self.named(inside),
                    self.named(inside),
                    f"OPTIONAL {{ {inside}}} ",
                    f"MINUS {{ {inside}}} ",
                    f"{{ {inside}}} UNION {{ {self.named(self.triple())}}} ",
                    f"FILTER {self.one('', 'NOT ')}EXISTS {{ {inside}}} ",
                    f"FILTER EXISTS {{ {self.named(inside)}}} ",
                    f"{{ SELECT {self.one('DISTINCT ', '')}{self.one('?a', '?a ?b', '*')} {{ {inside}}} LIMIT 40 }} ",
                    f"{{ SELECT ?a (COUNT(*) AS ?n{depth}) {{ {inside}}} GROUP BY ?a }} ",
                    f"VALUES ?g {{ <{self.base}> <{X}g> }} ",
                    f"FILTER(?{self.one('a', 'g')} {self.one('=', '!=')} {self.one(*self.graphs[:4])}) ",
                    "?a <pred:none> true" + self.named(inside),  # the keyword behind a token, without a space
                )
            )
        return "".join(parts)

    def query(self) -> Query:
        """A query, with a data set or without."""
        dice, head = self.dice, f"PREFIX me: <{self.base}> PREFIX graph: <{X}> "
        depth = self.dice.randint(0, 3)
        inside = self.group(depth)
        sources = ""
        if dice.random() < 0.2:
            iris = [graph for graph in self.graphs[:6] if graph != "<>"]
            sources = "".join(f"FROM {self.one('', 'NAMED ')}{self.one(*iris)} " for _ in range(dice.randint(1, 3)))
        told: dict[str, Any] = {}
        names = [graph[1:-1] for graph in self.graphs[:5]]
        for name in ("default_graphs", "named_graphs"):
            if dice.random() < 0.15:
                told[name] = dice.sample(names, dice.randint(0, 3))
        form = self.one("SELECT * ", "SELECT * ", "SELECT DISTINCT ?a ?g ", "SELECT (COUNT(*) AS ?n) ", "ASK ", "MAKE", "DESCRIBE ")
        if form == "MAKE":
            text = f"{head}CONSTRUCT {{ ?a <{X}r> ?b . ?a graph:g ?g }} {sources} WHERE {{ {inside}}}"
        elif form == "DESCRIBE ":
            text = f"{head}DESCRIBE {self.one('?a', f'<{X}a>', '<c1>')} {sources} WHERE {{ {inside}}}"
        else:
            text = f"{head}{form}{sources}{{ {inside}}}"
        return Query(text, triples="ntriples", base=self.base, **told)


def test_random_queries(beside: Beside) -> None:
    dice = random.Random(22)
    maker = Maker(beside.store.base, dice)
    answered: Counter[str] = Counter()
    for _ in range(QUERIES):
        query = maker.query()
        expected, found = beside.expected(query), beside.answer(query)
        if expected == "DeadlineError" or found == "DeadlineError":
            continue
        assert found == expected, query
        told = query.default_graphs is not None or query.named_graphs is not None
        kind = "GRAPH" if names_graphs(query.text) else "FROM" if " FROM " in query.text else "data set" if told else "none"
        answered[kind] += 1
        answered["with results"] += isinstance(expected, list | tuple | bool) and bool(
            expected[1] if isinstance(expected, tuple) else expected
        )
        answered["no SPARQL"] += expected == "no SPARQL"
    assert sum(answered[kind] for kind in ("GRAPH", "FROM", "data set", "none")) > 0.95 * QUERIES
    assert all(answered[kind] > QUERIES / 60 for kind in ("GRAPH", "FROM", "data set", "none")), answered
    assert answered["with results"] > QUERIES / 6, answered
    assert answered["no SPARQL"] < QUERIES / 3, answered


def test_the_same_in_process(beside: Beside) -> None:
    maker = Maker(beside.store.base, random.Random(23))
    graphs = [ox.NamedNode(iri) for iri in beside.store.defaults]
    compared = 0
    for _ in range(QUERIES // 2):
        text = maker.query().text
        if "SELECT" not in text.partition("{")[0] or " FROM " in text:
            continue
        head = "".join(f"PREFIX {name}: <{iri}> " for name, iri in PREFIXES.items())
        text = f"BASE <{beside.store.base}> {head}{text}"
        try:
            expected = _rows(beside.local.query(text, default_graph=graphs))
        except SyntaxError:
            with pytest.raises(SyntaxError):
                beside.store._query(text, plainly=True)
            continue
        assert _rows(beside.store._query(text, plainly=True)) == expected, text
        compared += 1
    assert compared > QUERIES / 8


@pytest.mark.parametrize("form", ["trig", "nquads"])
def test_whole_graphs_keep_their_names(beside: Beside, form: Any) -> None:
    found, wanted = (ask(Query("", dataset=True, triples=form)) for ask in (_bytes(beside, beside.backend), _bytes(beside, None)))
    read = {"trig": ox.RdfFormat.TRIG, "nquads": ox.RdfFormat.N_QUADS}[form]
    assert ox.Dataset(ox.parse(found, read)) == ox.Dataset(ox.parse(wanted, read))
    for graph in (*beside.store.graphs, "http://nowhere.example/"):
        query = Query("", graph=graph, triples="ntriples")
        assert beside.answer(query) == beside.expected(query)


def _bytes(beside: Beside, backend: OxigraphBackend | None) -> Any:
    if backend is None:
        return lambda query: beside.judge.query(query).read()

    async def ask(query: Query) -> bytes:
        return b"".join([part async for part in await backend.query(query, 20)])

    return lambda query: beside._loop.run_until_complete(ask(query))


@pytest.mark.parametrize("on_disk", [True, False])
def test_the_store_with_the_named_graph_comes_with_the_first_query_that_needs_it(tmp_path: Path, on_disk: bool) -> None:
    asked = "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s <pred:name> ?o } } GROUP BY ?g"
    graph = condgraph.open(tmp_path / "store") if on_disk else condgraph.open()
    (tmp_path / "cities.csv").write_text(TABLE, encoding="utf-8")
    graph.load(tmp_path / "cities.csv", key="city")

    def folders() -> list[str]:
        return sorted(one.name for one in tmp_path.rglob("rdf2?"))

    def counted(store: EmbeddedStore) -> list[tuple[str, int]]:
        return [(row["g"].value, int(row["n"].value)) for row in store._query(asked)]

    before = graph.rdf()
    assert before.ask("ASK { ?s <pred:name> 'c1' }")
    assert folders() == (["rdf22"] if on_disk else [])
    assert len(graph.sparql(asked).rows) == 1
    assert folders() == (["rdf21", "rdf22"] if on_disk else [])
    with within(60):  # in another process
        assert counted(before) == [(before.base, before.snapshot.entities)]
    # A generation that is gone goes on in those who have it open, which build the second one in memory.
    graph.add([Statement("a", "p", "x")], source="s")
    later = graph.rdf()
    graph.add([Statement("a", "p", "y")], source="s")
    graph.rdf()
    assert folders() == (["rdf22"] if on_disk else [])
    for store in (before, later):
        assert counted(store) == [(before.base, store.snapshot.entities)]


def test_a_deadline_holds_while_the_second_store_is_built(beside: Beside) -> None:
    building, go_on = Event(), Event()

    def naming() -> Any:
        building.set()
        assert go_on.wait(30)
        return beside.store.naming()

    options: dict[str, Any] = {"base": beside.store.base, "predeclared": PREFIXES, "workers": 1}
    query = Query(f"ASK {{ GRAPH <{beside.store.base}> {{ ?s ?p ?o }} }}")
    with OxigraphBackend(beside.store.source, naming=naming, default=beside.store.defaults, **options) as backend:

        async def ask(query: Query, timeout: float) -> bytes:
            return b"".join([part async for part in await backend.query(query, timeout)])

        run = beside._loop.run_until_complete
        with pytest.raises(DeadlineError, match="for queries that name graphs was not built in"):
            run(ask(query, 0.2))
        assert building.is_set()
        # Others are answered meanwhile, and those who wait when it is there.
        assert b"true" in run(ask(Query("ASK { ?s ?p ?o }"), 20))
        go_on.set()
        assert b"true" in run(ask(query, 20))
        assert backend.status()["processes"] >= 2
