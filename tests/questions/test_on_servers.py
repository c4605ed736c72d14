"""Generated questions on servers: the program gives the recorded answer there, and so do the recorded
Cypher and SPARQL, as whoever takes the file runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import condgraph
from condgraph import Graph
from condgraph.cypher.answer import Neo4jAnswer
from condgraph.cypher.compile.plan import compile_plan
from condgraph.engine.store import Request
from condgraph.engine.stored_schema import StoredSchema, describe_schema
from condgraph.languages.registry import request
from condgraph.questions import Question
from condgraph.questions.translations import Compilers
from condgraph.remote_neo4j import Neo4jGraph
from condgraph.remote_sparql import SparqlGraph
from condgraph.samples import FOLDER
from condgraph.sparql.compile.conditions import Target
from condgraph.sparql.store import RdfStore
from tests.matrix.test_sparql_remote import opened
from tests.questions.test_ugly import UGLY
from tests.support.lanes import WHOLE, by_lane
from tests.support.sparql_servers import fresh_virtuoso
from tests.support.stores import marked, opener_of
from tests.support.untidy_graphs import UNTIDY

#: Graphs that a test makes itself, by their names.
MADE: dict[str, Callable[[], list[Any]]] = {
    **{name: lambda name=name: UNTIDY[name](2) for name in UNTIDY},  # type: ignore[misc]
    **{name: UGLY[name] for name in ("names", "predicates", "times_far_out", "units", "mixed_values")},
}
#: Data sets: the stores on which CI asks a few questions of each, and how many the whole run asks on
#: every one. A load takes longer than its questions; CI asks other programs of the same data elsewhere.
DATA: dict[str, tuple[tuple[str, ...], int]] = {
    "oracle/kb.json": (("virtuoso",), 10_000),
    "data/metaqa/kb.txt": (("oxigraph",), 1_000),
    "data/wd50k/derived_labelled_statements.tsv": ((), 1_000),
    "data/wikidata12k/train.txt": (("neo4j",), 1_000),
    "data/lpg_northwind/import": (("neo4j", "virtuoso", "oxigraph"), 1_000),
}
STORES = marked("neo4j", "oxigraph", nightly=("virtuoso",))
#: Those that are asked in this run.
ASKED = [
    pytest.param(*store.values, place, marks=store.marks)
    for place, (stores, _) in DATA.items()
    for store in STORES
    if WHOLE or store.values[0] in stores
]


class Recorded(RdfStore):
    """A server that is asked what was recorded, without it: its rows are read as those of an embedded
    store.
    """

    def __init__(self, graph: Graph, there: SparqlGraph) -> None:
        self._compilers, self._there = Compilers(graph.current, there.name), there
        self.texts: list[str] = []

    @property
    def target(self) -> Target:
        """What compiling knew when the question was made."""
        return self._compilers._target

    def select(self, text: str) -> Any:
        """The solutions that the server gives."""
        self.texts.append(text)
        return self._there.store.select(text)

    def ask(self, text: str) -> bool:
        """What the server says."""
        self.texts.append(text)
        return self._there.store.ask(text)


def of_sparql(here: Graph, there: SparqlGraph, question: Question, asked: Request) -> list[str]:
    """What the recorded SPARQL gives."""
    store = Recorded(here, there)
    found = store.answer(asked).texts
    assert store.texts[0] == question.sparql, question
    return found


def of_cypher(here: Graph, there: Neo4jGraph, question: Question, asked: Request) -> list[str]:
    """What the recorded Cypher gives, run as text of people is: it only reads."""
    schema = StoredSchema(describe_schema(here.current))
    lowered = asked.lowered(here.current.schema)
    compiled = compile_plan(lowered.plan, there.name, schema)
    assert (compiled.text, compiled.parameters) == (question.cypher, question.parameters), question
    rows = there.cypher(question.cypher, question.parameters)
    return Neo4jAnswer(there.store, asked, lowered, compiled, list(rows)).texts


def wrong(here: Graph, there: Any, questions: list[Question]) -> Iterator[tuple[Question, str, Any]]:
    """What a server says otherwise than was recorded."""
    of: Any = of_cypher if isinstance(there, Neo4jGraph) else of_sparql
    for question in questions:
        program: Any = question.program or question.llm_query
        asked = request(program, question.language, None, {"on_unknown": "error"})
        recorded = question.cypher if of is of_cypher else question.sparql
        assert recorded is not None, question
        for what, ask in (
            ("program", lambda: there.query(program, language=question.language).texts),  # noqa: B023
            ("recorded", lambda: of(here, there, question, asked)),  # noqa: B023
        ):
            found = said(ask)
            if found != [question.answer]:
                yield question, what, found


def said(ask: Callable[[], Any]) -> Any:
    """What is given, or the error."""
    try:
        return ask()
    except condgraph.CondgraphError as error:
        return f"{type(error).__name__}: {error}"


def report(found: list[tuple[Question, str, Any]]) -> str:
    """The first differences."""
    lines = [f"{what} of {one.kopl or one.llm_query}\n   {one.answer!r}, not {str(given)[:400]}" for one, what, given in found[:6]]
    return "\n".join([f"{len(found)} differences", *lines])


class Opener(NamedTuple):
    """What opens a graph of a name on a store, and what is to be done there after a load."""

    open: Callable[[str], Any]
    settle: Callable[[], Any] = lambda: None


@pytest.fixture(params=STORES)
def opener(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """A store.

    Each test has a Virtuoso of its own, which is restarted after the load, as the page on RDF stores
    says: it orders joins by samples that it keeps of whatever stood there before, and then waits a
    minute for what takes 0.1 s.
    """
    if request.param == "virtuoso":
        with fresh_virtuoso() as server:
            yield Opener(lambda name: opened(server, name), server.restart)
    else:
        yield Opener(opener_of(request, request.param))


def differences(opener: Opener, graphs: Sequence[Graph], number: int, seed: int) -> list[tuple[Question, str, Any]]:
    """What a store says otherwise of questions over graphs, of so many over each."""
    found = []
    with ExitStack() as stack:
        there = [stack.enter_context(opener.open(f"questions asked there {at}")) for at in range(len(graphs))]
        for here, remote in zip(graphs, there, strict=True):
            remote.delete()
            remote.push(here)
        opener.settle()
        for here, remote in zip(graphs, there, strict=True):
            here.name = remote.name
            found += wrong(here, remote, list(here.generate(number, seed=seed)))
            remote.delete()
    return found


def test_graphs_that_somebody_has(opener: Opener) -> None:
    """All of them on one server: a Virtuoso for each would take longer to start than to ask."""
    graphs = []
    for made in MADE.values():
        graphs.append(condgraph.open("memory:"))
        graphs[-1].add(made())
    found = differences(opener, graphs, by_lane(2, 8, 200), seed=17)
    assert not found, report(found)


def test_samples(opener: Opener) -> None:
    here = condgraph.open("memory:")
    here.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
    here.load(FOLDER / "countries.json")
    here.load(FOLDER / "governments.tsv")
    found = differences(opener, [here], by_lane(8, 24, 500), seed=3)
    assert not found, report(found)


@pytest.mark.data
@pytest.mark.parametrize(("opener", "place"), ASKED, indirect=["opener"])
def test_data_sets(opener: Opener, place: str, shared: Path) -> None:
    here = condgraph.open("memory:")
    here.load(shared / place)
    found = differences(opener, [here], by_lane(0, 8, DATA[place][1]), seed=23)
    assert not found, report(found)


@pytest.mark.data
@pytest.mark.skipif(not WHOLE, reason="CONDGRAPH_ALL=whole is not set, which tests what takes an hour")
@pytest.mark.parametrize("part", range(10))
def test_tables_of_wikipedia(part: int, opener: Opener, data: Path) -> None:
    """A hundred tables, ten questions each; ten tables share a server."""
    tables = sorted((data / "wikitablequestions" / "csv").rglob("*.csv"))
    found = []
    for path in tables[:: len(tables) // 100][part:100:10]:
        here = condgraph.open("memory:")
        here.load(path)
        found += differences(opener, [here], 10, seed=29)
    assert not found, report(found)
