"""Programs of all kinds, answered by Neo4j as in process: the 32 cases of get_information, tables,
samples of the data sets.

The samples are small graphs cut from the data sets, so that they load in a second;
`benchmarks/matrix.py` asks every program of the whole ones.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import condgraph
from condgraph.cypher.compile.plan import SUPPORT
from condgraph.cypher.compile.values import OPERATORS
from condgraph.cypher.layout.schema import GRAPH
from condgraph.engine import algebra
from condgraph.engine.algebra import Condition, Entities, Facts, Node, Scalar, Table, Values
from condgraph.remote_neo4j import Neo4jGraph
from tests.frontends.test_llm_query import EXPECTED, PEOPLE, get, program, work
from tests.matrix.conftest import Oracle
from tests.support.algebra import classes
from tests.support.differential import Comparison
from tests.support.lanes import by_lane, sample

pytestmark = pytest.mark.xdist_group("neo4j")


def test_every_operator_has_an_answer() -> None:
    """The table of support names exactly the operators and tests of the algebra, and what it says
    is so.
    """
    found = set(classes().values())
    assert set(SUPPORT) == found - {Node, Condition, Entities, Facts, Values, Scalar, Table, algebra.Solutions}
    for operator, support in SUPPORT.items():
        assert support.how == "supported" or support.why
        if issubclass(operator, (Entities, Facts, Values)):
            assert (operator.__name__ in OPERATORS) == (support.how == "supported"), operator


def benchmark(name: str) -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Pair:
    """A graph in process and the same one on the server, which is removed at the end."""

    def __init__(self, uri: str, name: str) -> None:
        self.here = condgraph.open()
        there = condgraph.open(uri, graph=name)
        assert isinstance(there, Neo4jGraph)
        self.there = there

    def __enter__(self) -> Pair:
        self.there.store.delete()
        return self

    def __exit__(self, *error: object) -> None:
        self.there.store.delete()
        self.there.close()

    def loaded(self) -> Comparison:
        """After loading the graph in process: the two to be compared."""
        self.there.push(self.here)
        return Comparison(self.here, self.there)


def equal(found: Comparison, programs: Iterable[Any], at_least: int, **options: Any) -> None:
    """Every program gives the same, and enough of them give an answer."""
    found.ask_all(programs, **options)
    assert not found.different, found.report()
    assert found.equal - sum(found.errors.values()) >= at_least, found.report()


# -- small graphs ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(neo4j_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Comparison]:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "people.csv").write_text(PEOPLE, "utf-8")
    (folder / "teams.csv").write_text("Team,City,Founded\nRed,Oslo,1950\nBlue,Rome,1960\n", "utf-8")
    with Pair(neo4j_uri, "one of everything") as pair:
        pair.here.add(list(work()), source="work")
        pair.here.load(folder / "people.csv")
        pair.here.load(folder / "teams.csv")
        yield pair.loaded()


@pytest.mark.parametrize("case", EXPECTED)
def test_every_case_of_get_information(world: Comparison, case: str) -> None:
    given = EXPECTED[case][1]
    assert world.ask(program(get(**given)), source="work"), world.report()
    assert world.there.query(program(get(**given)), source="work").texts == EXPECTED[case][0]


_NAME = "get_information(relation='Name', head_entity='output_of_query{}')".format
_POINTS = "get_information(relation='Points', head_entity='output_of_query{}')".format
_NUMBER = "get_information(relation='row_number', head_entity='output_of_query1')"
_JOINED = "get_information(relation='Joined', head_entity='output_of_query1')"
_RED_TEN = (get(R="Team", T="Red"), get(R="Points", T="10"))
_BOTH = (get(R="Name", T="Ann"), _POINTS(1), get(R="Name", T="Cid"), _POINTS(3))
_TWO = "value1='output_of_query2', value2='output_of_query4'"
ON_TABLES = [
    (get(R="Team", T="Red"), _NAME(1)),
    (get(R="Team", T="Red"), "count(set='output_of_query1')"),
    (get(R="row_number"),),
    (get(R="row_number", T="<=2"), _NAME(1)),
    (get(R="Name", T="Bob"), "next_row(set='output_of_query1')", _NAME(2)),
    (get(R="Name", T="Bob"), "previous_row(set='output_of_query1')", _NAME(2)),
    (get(R="Name", T="Dora Maar"), "next_row(set='output_of_query1')", _NAME(2)),
    (
        get(R="Team", T="Red"),
        _NUMBER,
        "max(set='output_of_query2')",
    ),
    (get(R="Points"), "sum(set='output_of_query1')"),
    (get(R="Points"), "mean(set='output_of_query1')"),
    (get(R="Points"), "count(set='output_of_query1')"),
    (get(R="Points"), "max(set='output_of_query1')", _NAME(2)),
    (get(R="Points", T="highest"), _NAME(1)),
    (get(R="Team", T="most"), _NAME(1)),
    (get(R="Joined", T="earliest"), _NAME(1)),
    (get(R="Weight", T=">72"), _NAME(1)),
    (get(R="Joined", T="2003"), _NAME(1)),
    (get(R="Joined", T="<May 2001"), _NAME(1)),
    (get(R="Note", T="n/a"), _NAME(1)),
    (get(R="Team", T="Red"),),
    (
        *_RED_TEN,
        "set_intersection(set1='output_of_query1', set2='output_of_query2')",
        _NAME(3),
    ),
    (*_RED_TEN, "set_union(set1='output_of_query1', set2='output_of_query2')", _NAME(3)),
    (*_RED_TEN, "set_difference(set1='output_of_query1', set2='output_of_query2')", _NAME(3)),
    (get(R="Team", T="Red"), "set_negation(set='output_of_query1')", _NAME(2)),
    (get(R="Points"), "set_difference(set1='output_of_query1', set2='10')"),
    (*_BOTH, f"compare({_TWO})"),
    (*_BOTH, f"compare({_TWO}, operator='less than')"),
    (*_BOTH, f"calculate_difference({_TWO})"),
    (*_BOTH, "if(output_of_query2 > output_of_query4, output_of_query1, output_of_query3)"),
    (*_BOTH, "output_of_query2 - output_of_query4"),
    (*_BOTH, f"difference({_TWO})", "get_information(relation='Points', tail_entity='output_of_query5')", _NAME(6)),
    (
        get(R="Name", T="Ann"),
        _JOINED,
        "extract_year(set='output_of_query2')",
    ),
    (get(R="Name"), "last(set='output_of_query1')"),
    (get(R="Name"), "first(set='output_of_query1')"),
    (get(R="Points"), "nth_highest(set='output_of_query1', n=2)"),
    (get(R="Points"), "most(set='output_of_query1')"),
    (get(R="Points"), "unique(set='output_of_query1')"),
    (get(R="Points"), "keep(set='output_of_query1', value>'5')", _NAME(2)),
    (get(R="Points"), "difference(a='output_of_query1', b='3')"),
]
IN_TIME = [
    (get(R="works at", T="Acme", K="time"), "min(set='output_of_query1')"),
    (get(R="works at", T="Acme", K="time"), "max(set='output_of_query1')"),
    (get(R="works at", T="Acme", K="time"), "keep(set='output_of_query1', value<'2003')"),
    (get(R="works at", T="Acme", K="time"), "keep(set='output_of_query1', value<'2003')", "max(set='output_of_query2')"),
    (get(R="works at", T="Acme", K="time"), "keep(set='output_of_query1', value='2004')"),
    (get(R="works at", T="Acme", K="time"), "keep(set='output_of_query1', value!='2004')"),
    *(
        (
            get(H="Bob", R="works at", T="Acme", K="time"),
            f"get_information(relation='works at', tail_entity='Acme', key='time', value{operator}'output_of_query1')",
        )
        for operator in ("=", "<", ">", "!=", "<=", ">=")
    ),
    (get(H="Ann", R="works at", K="time", V="latest"),),
    (get(H="Ann", R="works at", K="start time", V="first"),),
    (get(H="Ann", R="works at", K="time", V="soon"),),
    (get(R="works at", K="end time"), "count(set='output_of_query1')"),
    (get(R="works at", T="Acme"), "set_negation(set='output_of_query1')"),
    ("get_information(relation='age', tail_entity>'29', tail_entity<'31')",),
]


def test_tables_and_functions(world: Comparison) -> None:
    for queries, source in [(one, "people") for one in sample(ON_TABLES, 2)] + [(one, "work") for one in sample(IN_TIME, 2)]:
        world.ask(program(*queries), source=source)
    assert not world.different, world.report()
    assert sum(world.errors.values()) <= 2


def test_evidence_of_tables_and_times(world: Comparison) -> None:
    for queries, source in [(one, "people") for one in ON_TABLES[1 :: by_lane(6, 3, 3)]] + [
        (one, "work") for one in IN_TIME[1 :: by_lane(6, 3, 3)]
    ]:
        world.ask(program(*queries), source=source, evidence=True)
    assert not world.different, world.report()


def test_a_chain_through_sources(world: Comparison) -> None:
    first = "get_information(relation='Name', tail_entity='Ann', source='people')"
    second = "get_information(relation='Name', head_entity='output_of_query1', source='people')"
    third = "get_information(head_entity='output_of_query2', relation='works at', source='work')"
    fourth = "get_information(head_entity='output_of_query3', relation='city', source='work')"
    assert world.ask(program(first, second, third, fourth), evidence=True), world.report()
    assert world.there.query(program(first, second, third, fourth)).texts == ["Oslo", "Rome"]
    assert world.ask(program(get(R="Team", T="Red"))), world.report()


def test_one_query_a_program(world: Comparison) -> None:
    """Names are looked up once, and stay; then a program is one query, whatever it does."""
    assert isinstance(world.there, Neo4jGraph)
    connection = world.there.store.connection
    read, asked = connection.read, list[str]()

    def counting(text: str, *arguments: Any, **options: Any) -> list[dict[str, Any]]:
        # Now and then the store looks whether somebody has loaded something.
        if not text.startswith(f"MATCH (g:{GRAPH} "):
            asked.append(text)
        return read(text, *arguments, **options)

    connection.read = counting  # type: ignore[method-assign]
    try:
        for queries, source in [(queries, "people") for queries in ON_TABLES] + [(queries, "work") for queries in IN_TIME]:
            for repeat in range(2):
                asked.clear()
                try:
                    answer = world.there.query(program(*queries), source=source)
                except condgraph.CondgraphError:
                    break
                texts = answer.texts
                assert texts == world.here.query(program(*queries), source=source).texts
                assert repeat == 0 or len(asked) == 1, queries
    finally:
        connection.read = read  # type: ignore[method-assign]


def test_evidence_of_the_oracle_programs(oracle_pair: Oracle) -> None:
    found = Comparison(oracle_pair.here, oracle_pair.there).ask_all(oracle_pair.some(1), evidence=True)
    assert not found.different, found.report()


# -- samples of the data sets ----------------------------------------------------------------------


def test_movies(neo4j_uri: str, data: Path, tmp_path: Path) -> None:
    lines = (data / "metaqa" / "kb.txt").read_text("utf-8").splitlines()[:6000]
    (tmp_path / "kb.txt").write_text("\n".join(lines), "utf-8")
    known = {part for line in lines for part in line.split("|")[::2]}
    chosen = []
    for hops in (1, 2, 3):
        found = json.loads((data / "trustuqa_programs" / f"metaqa_{hops}hop.json").read_text("utf-8")).values()
        inside = [one for one in found if _literals(one) <= known]
        chosen += inside[:: max(1, len(inside) // by_lane(6, 15, 15))]
    with Pair(neo4j_uri, "movies") as pair:
        pair.here.load(tmp_path / "kb.txt", name="films")
        equal(pair.loaded(), chosen, by_lane(15, 40, 40))


def _literals(text: str) -> set[str]:
    """The names that a program speaks of."""
    return set(re.findall(r"(?:entity|set\d?)='((?!output_of_query)[^']*)'", text))


def test_questions_in_time(neo4j_uri: str, data: Path, tmp_path: Path) -> None:
    lines = (data / "cronquestions" / "derived_facts.tsv").read_text("utf-8").splitlines()
    (tmp_path / "facts.tsv").write_text("\n".join(lines[:2500]), "utf-8")
    known = {part for line in lines[:2500] for part in line.split("\t")[:3:2]}
    by_kind: dict[str, list[str]] = {}
    for question in benchmark("llm_query").temporal_questions(data):
        if {value for name, value in question.parts.items() if name in ("head", "tail", "tail2")} <= known:
            by_kind.setdefault(question.kind, []).append(question.program)
    chosen = [one for programs in by_kind.values() for one in programs[:: max(1, len(programs) // 2)][:2]]
    with Pair(neo4j_uri, "in time") as pair:
        pair.here.load(tmp_path / "facts.tsv")
        equal(pair.loaded(), chosen, 20)


@pytest.mark.slow
def test_wikidata_in_time(neo4j_uri: str, data: Path, tmp_path: Path) -> None:
    lines = (data / "wikidata12k" / "train.txt").read_text("utf-8").splitlines()[:2500]
    (tmp_path / "train.txt").write_text("\n".join(lines), "utf-8")
    chosen = []
    for number, line in enumerate(lines[::400]):
        head, relation, tail = line.split("\t")[:3]
        year = (1900, 1950, 1990, 2005)[number % 4]
        chosen += [
            program(get(R=relation, T=tail, K="time", V=str(year))),
            program(get(R=relation, T=tail, K="time", V=f"<{year}")),
            program(get(H=head, R=relation, K="start time")),
            program(get(R=relation, T=tail, K="end time"), "max(set='output_of_query1')"),
        ]
    with Pair(neo4j_uri, "wikidata") as pair:
        pair.here.load(tmp_path / "train.txt")
        equal(pair.loaded(), chosen, 20)


@pytest.mark.slow
def test_tables_of_one_graph(neo4j_uri: str, data: Path) -> None:
    questions = [one for one in benchmark("wtq").questions(data) if one.program is not None]
    tables = sorted({one.table for one in questions})[::130]
    folder = data / "wikitablequestions"
    with Pair(neo4j_uri, "tables") as pair:
        pair.here.load([folder / table for table in tables], format="csv")
        names = {Path(source.location): source.name for source in pair.here.status().sources}
        found = pair.loaded()
        for question in questions:
            if question.table in tables:
                found.ask(question.program, source=names[folder / question.table])
        assert not found.different, found.report()
        assert found.equal >= 20
