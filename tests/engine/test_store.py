"""The one way from a text to an answer: whatever is asked of a graph goes through its store, and a
store gets a program with a plan that the passes have seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from condgraph.engine.algebra import Node, postorder
from condgraph.engine.answer import Answer
from condgraph.engine.bounds import current
from condgraph.engine.errors import OptionError, PlanError
from condgraph.engine.lowered import Lowered
from condgraph.engine.store import Request, Store
from condgraph.graph import Graph
from condgraph.languages.registry import answer, lower, request
from condgraph.snapshot_store import SnapshotStore
from tests.support.world import PROGRAMS, QUERIES, world

PROGRAM = "Find(Ann) Relate(knows, forward) QueryName()"
LLM = "Query1: \"get_information(relation='knows', head_entity='Ann')\""
PATTERN = [("Ann", "knows", "UNKNOWN 1")]


class Recording:
    """A store of one's own: it hands on, and remembers what it was asked within which deadline."""

    def __init__(self, store: SnapshotStore) -> None:
        self.store = store
        self.asked: list[tuple[str, Any, bool]] = []

    def _note(self, what: str, about: Any) -> None:
        budget = current()
        self.asked.append((what, about, budget is not None and budget.until is not None))

    def answer(self, request: Request) -> Answer:
        self._note("answer", (request.language, request.limit, request.options))
        return self.store.answer(request)

    def explain(self, request: Request) -> str:
        self._note("explain", request.language)
        return self.store.explain(request)

    def match(self, pattern: Any, *, exact: bool, **options: Any) -> Answer:
        self._note("match", exact)
        return self.store.match(pattern, exact=exact, **options)

    def counted(self, nodes: Sequence[Node], known: Any) -> list[int]:
        self._note("counted", len(nodes))
        return self.store.counted(nodes, known)


class OwnGraph(Graph):
    """A graph over such a store."""

    asked: Recording

    def _store_of(self, engine: str | None) -> Store:
        return self.asked


@pytest.fixture
def graph() -> OwnGraph:
    small = world()
    found = OwnGraph.of(small.current)
    assert isinstance(found, OwnGraph)
    found.asked = Recording(SnapshotStore(small.current))
    return found


def test_everything_goes_through_the_store(graph: OwnGraph) -> None:
    here = world()
    assert graph.kopl(PROGRAM).texts == here.kopl(PROGRAM).texts
    assert graph.query(LLM, limit=1, timeout=60).texts == here.query(LLM, limit=1).texts
    assert graph.explain(PROGRAM, timeout=60) == here.explain(PROGRAM)
    assert graph.match(PATTERN).texts == here.match(PATTERN).texts
    assert graph.query(PATTERN).texts == here.query(PATTERN).texts
    checked = here.kopl("FindAll() FilterConcept(person) Count()", on_unknown="empty").check(graph=graph)
    assert checked.ok
    assert checked.verified
    assert [one for one in graph.asked.asked if one[0] != "counted"] == [
        ("answer", ("kopl", None, {}), False),
        ("answer", ("llm_query", 1, {}), True),
        ("explain", "kopl", True),
        ("match", True, False),
        ("answer", ("pattern", None, {}), False),
    ]
    assert any(one[0] == "counted" for one in graph.asked.asked)


def test_bounds_are_checked_before_a_store_is_asked(graph: OwnGraph) -> None:
    for wrong in ({"timeout": 0.0}, {"limit": -1}, {"on_unknown": "maybe"}):
        with pytest.raises(OptionError):
            graph.kopl(PROGRAM, **wrong)  # type: ignore[arg-type]
    assert not graph.asked.asked


@pytest.mark.parametrize("program", [*PROGRAMS, *QUERIES])
def test_a_plan_is_whole_when_a_store_gets_it(program: Any) -> None:
    schema = world().current.schema
    asked = request(program, None, None, {"on_unknown": "empty"})
    lowered = asked.lowered(schema)
    assert type(lowered) is Lowered
    assert lowered.order is not None
    places = {id(node): place for place, node in enumerate(lowered.order)}
    assert places.keys() == {id(node) for node in postorder(lowered.plan)}
    assert all(places[id(part)] < places[id(node)] for node in lowered.order for part in node.inputs())
    assert asked.lowered(schema).plan == lowered.plan
    assert lower(schema, program, asked.language, {"on_unknown": "empty"}).plan == lowered.plan


def test_what_a_language_refuses_is_reported_by_every_way() -> None:
    small = world()
    store = SnapshotStore(small.current)
    with pytest.raises(OptionError, match="there is no language 'cobol'"):
        answer(store, PROGRAM, "cobol", None, {})
    with pytest.raises(OptionError, match="kopl takes no option 'source'"):
        answer(store, PROGRAM, None, None, {"source": "x"})
    with pytest.raises(PlanError, match="a pattern has no plan"):
        small.query(PATTERN, engine="sparql")
