"""Records that a server refuses, and loads that cannot be finished: nothing is written, or it is
taken back, and always said.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.cypher.load import batches
from condgraph.cypher.load import lock as loading
from condgraph.cypher.load import write as load
from condgraph.cypher.load.batches import Batch
from condgraph.cypher.load.push import check_loadable
from condgraph.cypher.servers import NEO4J
from condgraph.engine.errors import LoadError, OptionError, StoreBusyError, StoreMissingError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Sourced, Statement, Subclass
from condgraph.engine.values import Quantity, Time
from condgraph.remote_neo4j import Neo4jGraph
from tests.support.lanes import by_lane, sample
from tests.support.world import contents, world

pytestmark = pytest.mark.xdist_group("neo4j")
LONG = 9_000


@pytest.fixture
def remote(each_neo4j_uri: str) -> Iterator[Neo4jGraph]:
    with condgraph.open(each_neo4j_uri, graph="unfinished", labels=True) as found:
        assert isinstance(found, Neo4jGraph)
        found.delete()
        yield found
        found.delete()


def long_items() -> list[Item]:
    """Everything that may be as long as one likes, and what is odd about texts."""
    ident, other = "i" * LONG, "ï" * LONG
    return [
        Entity(ident, "n" * LONG),
        Entity(other, "short"),
        Entity("k" * LONG, "c" * LONG, EntityKind.CONCEPT),
        Entity("", "empty"),
        Entity("nul\0", "nul\0name"),
        Member(ident, "k" * LONG),
        Subclass("k" * LONG, "above"),
        Statement(ident, "p" * LONG, Ref(other), (("q" * LONG, "t" * LONG), ("by", Ref(ident)))),
        Statement(ident, "p" * LONG, Quantity(10**400, "metre"), (("q" * LONG, Time.year(1999)),)),
        Statement(ident, "P" * 70_000, "t" * LONG, raw="r" * LONG),
        Statement(other, "", Ref("nul\0"), (("", "x"),)),
        Statement(other, "", "nul\0 text"),
        Statement("nul\0", "size", Quantity(2**70)),
    ]


@pytest.mark.slow
def test_long_and_odd_texts_work(remote: Neo4jGraph) -> None:
    local = condgraph.open()
    local.add(long_items(), source="s" * 1_500)
    remote.push(local)
    assert contents(remote.snapshot()) == contents(local)
    long = "n" * LONG
    programs = (
        f"Find({long}) Relate({'p' * LONG}, forward) QueryName()",
        f"Find({long}) QueryAttr({'p' * LONG})",
        f"Find(short) Relate({'p' * LONG}, backward) QueryName()",
        f"FindAll() FilterConcept({'c' * LONG}) QueryName()",
        f"FindAll() FilterStr({'P' * 70_000}, {'t' * LONG}) QueryName()",
        f"Find({long}) Find(short) QueryRelation()",
        "FindAll() QueryName()",
    )
    for program in sample(programs, 2):
        answer, expected = remote.kopl(program), local.kopl(program)
        assert answer.texts == expected.texts, program[:80]
        assert {str(fact) for fact in answer.evidence} == {str(fact) for fact in expected.evidence}, program[:80]
    pattern = [(long, "p" * LONG, "UNKNOWN thing")]
    assert remote.match(pattern, k=2).texts == local.match(pattern, k=2).texts
    more = [Statement("i" * LONG, "p" * LONG, Ref("more")), Entity("i" * LONG, "renamed")]
    for graph in (local, remote):
        graph.add(more, source="more")
    assert contents(remote.snapshot()) == contents(local)
    assert remote.delete()
    assert remote.store.connection.read("MATCH (n {graph: 'unfinished'}) RETURN count(n) AS n", {}) == [{"n": 0}]


@pytest.mark.parametrize(
    ("items", "source", "message"),
    [
        ([Statement("a", "nul\0", Ref("b"))], "s", "holds the character NUL"),
        ([Statement("a", "p", Quantity(1, "u" * LONG))], "s", "the unit 'uuu.* has 9,000 bytes"),
        ([Statement("a", "p", "x", (("q", Quantity(1, "ü" * 600)),))], "s", "has 1,200 bytes"),
        ([Statement("a", "p", "x")], "s" * LONG, "the source 'sss.* has 9,000 bytes"),
    ],
)
def test_what_cannot_be_written_is_an_error_before_anything_is(
    remote: Neo4jGraph, items: list[Item], source: str, message: str
) -> None:
    with pytest.raises(LoadError, match=message):
        remote.add(items, source=source)
    with pytest.raises(StoreMissingError):
        remote.status()
    remote.push(world())
    with pytest.raises(LoadError, match=message):
        remote.add(items, source=source)
    assert contents(remote.snapshot()) == contents(world())


def test_graphs_whose_name_cannot_be_kept() -> None:
    for name, message in (("g" * LONG, "at most 1,000 bytes"), ("", "is empty"), ("a\ud800", "is text")):
        with pytest.raises(OptionError, match=message):
            condgraph.open("bolt://127.0.0.1:9", graph=name)


@pytest.mark.parametrize(
    "item",
    [
        Statement("a\ud800", "p", Ref("b")),
        Statement("a", "p", Quantity(1, "\udfff")),
        Statement("a", "p", Time(2**70, 2**71, Time.year(1).precision)),
        Sourced(Entity("r", "r", EntityKind.ROW, 2**70), (("s", 2**70),)),
        Sourced(Statement("a", "p", "x"), (("s", 2**70),)),
    ],
)
def test_what_no_graph_can_hold_is_a_typed_error(item: Item) -> None:
    graph = condgraph.open()
    graph.add([Statement("a", "p", "x")])
    with pytest.raises(LoadError):
        graph.add([item])
    assert graph.kopl("FindAll() Count()").texts == ["1"]


class Full:
    """A connection to a database that has had nearly all the relationship types that it can have."""

    engine = NEO4J

    def __init__(self, store: str) -> None:
        self.store = store

    def ask(self, text: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        if "TOKENS" in text:
            return [{"name": f"type {i}"} for i in range(65_530)]
        return [{"name": "neo4j"}] if "db.info" in text else [{"store": self.store}]


def test_more_predicates_than_a_database_has_types() -> None:
    graph = condgraph.open()
    graph.add([Statement("a", f"predicate {i}", "x") for i in range(6)])
    with pytest.raises(LoadError, match="has 65,530 relationship types already, and 6 predicates would be new"):
        check_loadable(graph.current, Full("record-aligned-1.1"))  # type: ignore[arg-type]
    check_loadable(graph.current, Full("block-block-1.1"))  # type: ignore[arg-type]
    known = condgraph.open()
    known.add([Statement("a", f"type {i}", "x") for i in range(6)])
    check_loadable(known.current, Full("record-aligned-1.1"))  # type: ignore[arg-type]


def test_the_types_of_a_database_are_read(each_neo4j_uri: str) -> None:
    with condgraph.open(each_neo4j_uri, graph="types") as found:
        assert isinstance(found, Neo4jGraph)
        found.add([Statement("a", "a type of its own", "x")])
        from condgraph.cypher.load.push import _TYPES

        for text in _TYPES:
            assert {"name": "a type of its own"} in found.store.connection.read(text, {})
        found.delete()


# -- taking a load back ----------------------------------------------------------------------------

MORE: list[Item] = [
    Statement("a", "knows", Ref("c"), (("since", Time.year(2001)), ("through", Ref("d")))),
    Statement("a", "knows", Ref("b2")),
    Statement("a", "height", Quantity(1.7, "metre"), (("point in time", Time.day(2001, 2, 3)),)),
    Statement("a", "new", "text", (("since", Time.year(2002)),)),
    Statement("x", "knows", Ref("a")),
    Entity("b", "Bob, renamed"),
    Entity("x", "now a concept", EntityKind.CONCEPT),
    Member("b2", "human"),
    Member("a", "person"),
    Member("c", "alien"),
    Subclass("person", "being"),
]
DUMP = (
    "MATCH (n {graph: $graph}) WHERE NOT n:CondgraphLoad RETURN labels(n) AS labels, properties(n) AS properties",
    "MATCH (a {graph: $graph})-[r]->(b) "
    "RETURN type(r) AS type, properties(r) AS properties, properties(a) AS a, properties(b) AS b",
)


def dump(remote: Neo4jGraph) -> list[list[str]]:
    """Every node and relationship of the graph."""

    def flat(value: Any) -> str:
        if isinstance(value, dict):
            return repr(sorted((key, flat(one)) for key, one in value.items()))
        return repr(sorted(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else value)

    return [sorted(map(flat, remote.store.connection.read(text, {"graph": remote.name}))) for text in DUMP]


def ended(remote: Neo4jGraph, monkeypatch: pytest.MonkeyPatch, after: int, act: Callable[[], object]) -> bool:
    """Whether an act was ended after so many batches."""
    write, written = loading.Loading.write, []

    def counted(self: loading.Loading, batch: Batch, attempt: str = "") -> None:
        if len(written) >= after:
            raise KeyboardInterrupt
        written.append(batch.name)
        write(self, batch, attempt)

    with monkeypatch.context() as patched:
        patched.setattr(loading.Loading, "write", counted)
        patched.setattr(load, "WRITERS", 1)
        patched.setattr(batches, "BATCH", 2)
        patched.setattr(batches, "FIRST_BATCH", 2)
        try:
            act()
        except KeyboardInterrupt:
            return True
    return False


@pytest.mark.parametrize("again", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_load_that_added_to_a_graph_is_taken_back(remote: Neo4jGraph, monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    """After any number of batches, every node and relationship is what it was; also where the load
    was begun twice.
    """
    local = world()
    remote.push(local)
    before, after = dump(remote), 1
    while ended(remote, monkeypatch, after, lambda: remote.add(MORE, source="more")):
        if again:
            assert ended(remote, monkeypatch, 1, lambda: remote.add(MORE, source="more"))
        with pytest.raises(StoreBusyError, match=r"a load of 'more' into graph 'unfinished' is not finished.*abandon"):
            remote.kopl("FindAll() Count()")
        with pytest.raises(StoreBusyError, match="a load of 'more'"):
            remote.add([Statement("z", "p", "z")], source="something else")
        assert remote.abandon()
        assert dump(remote) == before
        assert remote.kopl("FindAll() Count()").texts == local.kopl("FindAll() Count()").texts
        assert not remote.abandon()
        after += by_lane(8, 4, 4)
    assert after > 20
    local.add(MORE, source="more")
    assert contents(remote.snapshot()) == contents(local)


def test_a_first_load_is_taken_back(remote: Neo4jGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(remote, monkeypatch, 5, lambda: remote.push(world()))
    assert remote.abandon()
    with pytest.raises(StoreMissingError):
        remote.status()
    assert dump(remote) == [[], []]
    remote.push(world())


def test_a_load_whose_source_has_changed_says_so(remote: Neo4jGraph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "peaks.csv"
    file.write_text("peak,height\nA,1\nB,2\n")
    assert ended(remote, monkeypatch, 2, lambda: remote.load(file, key="peak"))
    file.write_text("peak,height\nA,1\nB,3\n")
    with pytest.raises(StoreBusyError, match=r"a load of 'peaks' .*what it was read from has changed since.*abandon"):
        remote.load(file, key="peak")
    assert remote.abandon()
    assert remote.load(file, key="peak").entities == 2


def test_nobody_takes_back_a_load_that_is_under_way(remote: Neo4jGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.push(world())
    reached, go_on = threading.Event(), threading.Event()
    write = loading.Loading.write

    def held(self: loading.Loading, batch: Batch, attempt: str = "") -> None:
        reached.set()
        assert go_on.wait(60)
        write(self, batch, attempt)

    monkeypatch.setattr(loading.Loading, "write", held)
    thread = threading.Thread(target=lambda: remote.add(MORE, source="more"))
    thread.start()
    assert reached.wait(60)
    with pytest.raises(StoreBusyError, match="by another process"):
        remote.store.abandon()
    go_on.set()
    thread.join()
    assert not remote.abandon()


def test_a_killed_process_is_taken_back(remote: Neo4jGraph, each_neo4j_uri: str) -> None:
    remote.push(world())
    before = dump(remote)
    script = f"""
        import condgraph, os, time
        from condgraph.cypher.load import batches, lock
        from tests.matrix.test_unfinished import MORE
        batches.FIRST = batches.BATCH = 2
        write = lock.Loading.write
        def slow(self, batch, attempt=""):
            write(self, batch, attempt)
            os.write(1, b"written\\n")  # at once: several threads write
            time.sleep(0.3)
        lock.Loading.write = slow
        condgraph.open({each_neo4j_uri!r}, graph="unfinished").add(MORE, source="more")
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(6):
        assert process.stdout.readline() == "written\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert remote.abandon()
    assert dump(remote) == before


def test_local_graphs_have_nothing_to_take_back(tmp_path: Path) -> None:
    for graph in (condgraph.open(), condgraph.open(tmp_path / "store"), Graph()):
        graph.add([Statement("a", "p", "x")])
        assert not graph.abandon()
        assert graph.kopl("FindAll() Count()").texts == ["1"]
