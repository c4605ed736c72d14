"""Deadlines in process: between two looks at the clock no operator, function, search or look at an
answer takes long.

Graphs that are made to take long: a predicate with very many objects of every kind, hubs, parallel
edges, names that nearly meet. What is measured is the processor's time between two looks, so that a
busy machine changes nothing.
"""

from __future__ import annotations

import gc
import random
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import expressions
from condgraph.engine.algebra import grouped as ex
from condgraph.engine.answer import Answer
from condgraph.engine.bounds import (
    CHUNK,
    Budget,
    SharedTask,
    Workers,
    bounded_by,
    check,
    kept,
    pieces,
    places_in_order,
    shared,
    watched,
    within,
)
from condgraph.engine.errors import CancelledError, DeadlineError, OptionError, ParseError, PlanError
from condgraph.engine.execute import solutions as _solutions  # noqa: F401  # for its operators
from condgraph.engine.execute.run import Run
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement, Subclass
from condgraph.engine.functions import FUNCTIONS
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph
from tests.support.lanes import by_lane, sample
from tests.support.pace import quick_enough

#: Seconds of the processor that a look at the clock may be late. Without pieces each of these takes
#: two to a hundred times that.
LATE = 0.2
MANY = by_lane(20_000, 100_000, 100_000)


class Meter(Budget):
    """A deadline that never comes, which measures how long nobody looks at it."""

    __slots__ = ("last", "looks", "most", "where")

    def __init__(self) -> None:
        super().__init__(time.monotonic() + 1e6, ())
        self.most, self.where, self.last, self.looks = 0.0, "", time.thread_time(), 0

    def check(self) -> None:
        gap = time.thread_time() - self.last
        self.looks += 1
        if gap > self.most:
            frames = traceback.extract_stack(limit=8)[:-2]
            self.most, self.where = gap, " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
        self.last = time.thread_time()


def lateness(call: Callable[[], object]) -> Meter:
    """How late a deadline could be seen in a call."""
    gc.collect()
    gc.disable()
    meter = Meter()
    try:
        with bounded_by(meter):
            call()
        meter.check()
    finally:
        gc.enable()
    return meter


@pytest.fixture(scope="module")
def ugly() -> Iterator[Graph]:
    """Very many objects of one predicate: numbers, texts, times, and both; a hub; memberships;
    qualifiers and validity.
    """
    draw = random.Random(5)
    items: list[Any] = [
        Entity("thing", "thing", EntityKind.CONCEPT),
        Entity("all", "all", EntityKind.CONCEPT),
        Subclass("thing", "all"),
    ]
    for i in range(MANY):
        one = f"entity number {i}"
        since = (("start time", Time.year(1900 + i % 100)), ("end time", Time.year(2000 + i % 10)), ("by", Ref("hub")))
        items.append(Statement(one, "size", Quantity(draw.random() * 1e6), since))
        items.append(Statement(one, "note", f"note {draw.randrange(10**9)} of {i}"))
        items.append(Statement(one, "mixed", Quantity(i) if i % 2 else f"text {i % 77}"))
        items.append(Statement(one, "day", Time.day(1900 + i % 90, 1 + i % 12, 1 + i % 28)))
        items.append(Statement(one, "at", Ref("hub")))
        items.append(Member(one, "thing"))
    graph = condgraph.open("memory:")
    graph.add(items)
    del items
    # What other tests left is not looked through before each call here.
    gc.collect()
    gc.freeze()
    yield graph
    gc.unfreeze()


def facts(name: str | None, **options: Any) -> alg.Scan:
    given: dict[str, Any] = {"family": "attribute", "anchor": "subject", "reach": "subject", "source": None} | options
    return alg.Scan(given.pop("of", None), None if name is None else (name,), **given)


def objects(name: str) -> alg.Objects:
    return alg.Objects(facts(name))


EVERY = alg.AllEntities((EntityKind.ENTITY, EntityKind.CONCEPT), None)
MIX = alg.Concat((objects("size"), objects("note"), objects("day"), objects("mixed")))
SOME = alg.Constants((Quantity(1), "text 1", Time.year(1950)))
AT = facts("at", family="relation")


def grouped(of: str, function: Any) -> alg.Group:
    """The entities by their notes, summed up by a measure of another attribute."""
    keys, measured = facts("note", of=EVERY), facts(of, of=EVERY)
    ways = ex.ValuePath("note", (0,), 0), ex.ValuePath(of, (1,), 1)
    measures = (ex.Measure("of", function, ways[1], 2), ex.Measure("count()", "count"))
    return alg.Group(EVERY, (keys, measured), (alg.Objects(keys), alg.Objects(measured)), (ex.Key("note", ways[0]),), measures)


GROUPS = grouped("mixed", "min")
E, V, S = map(alg.Variable, ("entity", "value", "statement"))
SIZES = alg.Pattern((alg.StatementPattern(E, ("size",), V, statement=S),))
MIXES = alg.Pattern((alg.StatementPattern(E, ("mixed",), V),))
DAYS = alg.Pattern((alg.StatementPattern(E, ("day",), alg.Variable("day")),))
HUB = alg.StatementPattern(E, ("at",), alg.Variable("hub"))
IS_TEXT = expressions.TextTest(
    "contains", expressions.Call("toString", (expressions.Variable("value"),)), expressions.Constant("7")
)
PLANS: dict[type, list[alg.Node]] = {
    alg.AllEntities: [EVERY],
    alg.ById: [alg.ById(tuple(f"entity number {i}" for i in range(1000)))],
    alg.ByName: [alg.ByName(tuple(f"entity number {i}" for i in range(1000)))],
    alg.Members: [alg.Members(alg.ByName(("all",)))],
    alg.Union: [alg.Union((alg.Reached(facts("size")), alg.Reached(facts("note"))))],
    alg.Intersect: [alg.Intersect((alg.Reached(facts("size")), alg.Reached(facts("note"))))],
    alg.Minus: [alg.Minus(EVERY, alg.Reached(facts("size")))],
    alg.Neighbour: [alg.Neighbour(EVERY, 1)],
    alg.Reached: [alg.Reached(facts(None, family="any"))],
    alg.SubjectsOf: [alg.SubjectsOf(MIX)],
    alg.Referents: [alg.Referents(MIX), alg.Referents(alg.Names(EVERY))],
    alg.SameName: [alg.SameName(EVERY)],
    alg.ArgExtreme: [alg.ArgExtreme(EVERY, "size", "largest"), alg.ArgExtreme(EVERY, "mixed", "smallest")],
    alg.Scan: [facts(None, family="any")],
    alg.Where: [
        alg.Where(facts("mixed"), alg.Not(alg.Compare("=", "text 1"))),
        alg.Where(facts("note"), alg.Equals(objects("mixed"))),
        alg.Where(facts("size"), alg.Versus("<", SOME)),
        alg.Where(facts("at", family="relation"), alg.Among(EVERY)),
    ],
    alg.WhereQualifier: [alg.WhereQualifier(facts("size"), "by", alg.Compare("=", "hub"))],
    alg.During: [alg.During(facts("size"), "overlaps", Time.year(1950))],
    alg.DuringAny: [alg.DuringAny(facts("size"), "overlaps", objects("day"))],
    alg.WhereValidity: [alg.WhereValidity(facts("size"), "start", alg.Compare(">", Time.year(1950)))],
    alg.OtherEnd: [alg.OtherEnd(AT, "object")],
    alg.Objects: [objects("mixed"), alg.Objects(AT)],
    alg.Qualifiers: [alg.Qualifiers(facts("size"), None)],
    alg.Validity: [alg.Validity(facts("size"), "interval"), alg.Validity(facts("size"), "start")],
    alg.Predicates: [alg.Predicates(facts(None, family="any"))],
    alg.QualifierKeys: [alg.QualifierKeys(facts("size"))],
    alg.Names: [alg.Names(EVERY)],
    alg.RowNumbers: [alg.RowNumbers(EVERY)],
    alg.FilterValues: [alg.FilterValues(MIX, alg.Compare(">", "n")), alg.FilterValues(MIX, alg.Equals(MIX))],
    alg.Distinct: [alg.Distinct(MIX)],
    alg.Concat: [MIX],
    alg.Constants: [alg.Constants(tuple(f"value {i}" for i in range(10_000)))],
    alg.Nth: [alg.Nth(MIX, 3, "row"), alg.Nth(MIX, 3, "descending")],
    alg.Clip: [alg.Clip(objects("day"), "!=", objects("day")), alg.Clip(objects("day"), ">", SOME)],
    alg.Bound: [alg.Bound(alg.Validity(facts("size"), "interval"), "start")],
    alg.Shown: [alg.Shown(MIX, EVERY)],
    alg.Apply: [],  # below, of every function
    alg.Choose: [alg.Choose(MIX, MIX, SOME)],
    alg.External: [alg.External("ask", lambda name, texts, options: ["one"], (MIX,), ())],
    alg.Extreme: [alg.Extreme(MIX, "largest"), alg.Extreme(objects("note"), "largest")],
    alg.Mode: [alg.Mode(MIX, "largest")],
    alg.Count: [alg.Count(MIX)],
    alg.Sum: [alg.Sum(MIX)],
    alg.Mean: [alg.Mean(objects("size"))],
    alg.Median: [alg.Median(objects("size")), alg.Median(MIX)],
    alg.Deviation: [alg.Deviation(objects("size")), alg.Deviation(MIX)],
    alg.AnySatisfies: [alg.AnySatisfies(MIX, alg.Compare(">", "n"))],
    alg.Exists: [alg.Exists(facts("size"))],
    alg.Group: [GROUPS, replace(grouped("size", "top"), keys=())],
    alg.Having: [alg.Having(GROUPS, ex.CellTest(0, ">", ("text 1", Quantity(3))))],
    alg.Order: [alg.Order(GROUPS, (ex.OrderBy(1), ex.OrderBy(0, descending=True)))],
    alg.Limit: [alg.Limit(GROUPS, 5, ties=True)],
    alg.Pattern: [
        SIZES,
        alg.Pattern((HUB, alg.StatementPattern(E, ("note",), V)), (alg.MembershipPattern(E, alg.ByName(("all",))),)),
    ],
    alg.Path: [alg.Path(None, E, (alg.Hop(("at",)), alg.Hop(("at",), "backward")), alg.ById(("entity number 1",)), 1, 1)],
    alg.EntityRows: [alg.EntityRows("entity", EVERY)],
    alg.Rows: [alg.Rows(("entity", "value"), tuple((Ref(f"entity number {i}"), f"text {i}") for i in range(2_000)))],
    alg.Join: [alg.Join(MIXES, DAYS)],
    alg.LeftJoin: [alg.LeftJoin(SIZES, DAYS)],
    alg.SemiJoin: [alg.SemiJoin(SIZES, DAYS)],
    alg.AntiJoin: [alg.AntiJoin(SIZES, MIXES)],
    alg.MarkJoin: [alg.MarkJoin(SIZES, DAYS, "dated")],
    alg.MinusRows: [alg.MinusRows(SIZES, MIXES)],
    alg.UnionAll: [alg.UnionAll((SIZES, MIXES, DAYS))],
    alg.Filter: [alg.Filter(MIXES, IS_TEXT)],
    alg.WhereRows: [alg.WhereRows(MIXES, "value", alg.Compare(">", "text 5"))],
    alg.BoundRows: [alg.BoundRows(SIZES, ("entity", "value"))],
    alg.Extend: [alg.Extend(MIXES, "seven", IS_TEXT)],
    alg.Unwind: [alg.Unwind(MIXES, "item", expressions.ListOf((expressions.Variable("value"), expressions.Constant(1))))],
    alg.Project: [alg.Project(MIXES, (("one", "value"), ("none", "nothing")))],
    alg.DistinctRows: [alg.DistinctRows(alg.Project(MIXES, (("value", "value"),)))],
    alg.GroupRows: [
        alg.GroupRows(MIXES, ("value",), (alg.RowAggregate("n", "count"), alg.RowAggregate("all", "list", "entity"))),
    ],
    alg.OrderRows: [alg.OrderRows(MIXES, (alg.RowOrder("value", descending=True),))],
    alg.SliceRows: [alg.SliceRows(MIXES, 5, 10)],
    alg.EntitiesOf: [alg.EntitiesOf(SIZES, "entity")],
    alg.FactsOf: [alg.FactsOf(SIZES, "statement")],
}


def test_every_operator_is_here() -> None:
    assert set(PLANS) == set(Run.operators)


@pytest.mark.parametrize("kind", sample([kind for kind, plans in PLANS.items() if plans], 5), ids=lambda kind: kind.__name__)
def test_operators(ugly: Graph, kind: type) -> None:
    """Running one, and everything that its answer is asked for."""
    # What is imported when it is first used is no part of a call.
    pytest.importorskip("pyarrow").array(["a"])
    for plan in PLANS[kind]:
        run = Run(ugly.current)
        answer = Answer(run, plan)
        steps: dict[str, Callable[[], object]] = {
            "run": lambda run=run, plan=plan: run.execute(plan),
            "values": lambda answer=answer: (answer.values, answer.texts),
            "entities": lambda answer=answer: answer.entities,
            "evidence": lambda answer=answer: answer.evidence,
            "trace": lambda answer=answer: answer.trace,
            "explain": lambda answer=answer: answer.explain(),
        }
        if kind in (alg.Concat, alg.AllEntities, alg.Objects):
            steps["tables"] = lambda answer=answer: answer.to_arrow()
        for what, step in steps.items():
            meter = lateness(step)
            assert quick_enough(meter.most, LATE), f"{what} of {type(plan).__name__}: {meter.where}"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_native_functions(ugly: Graph, name: str) -> None:
    options = (("operator", "<"),) if name in ("relation", "compare") else ()
    # The names of the two that are compared are the third and the fourth.
    named = (objects("mixed"), objects("note")) if name == "compare" else ()
    for arguments in ((objects("mixed"), objects("note"), *named), (objects("size"), SOME, *named)):
        run = Run(ugly.current)
        meter = lateness(lambda run=run, arguments=arguments: run.execute(alg.Apply(name, arguments, options)))  # type: ignore[misc]
        assert quick_enough(meter.most, LATE), meter.where


@pytest.mark.parametrize(
    "program",
    [
        "Find(entity number nothing)",
        "FindAll() Relate(att, forward) Count()",
        "Query1: \"get_information(relation='note', tail_entity='note 17 of something')\"",
        "Query1: \"get_information(relation='at', head_entity='entity nomber 17')\"",
        'Query1: "get_information(relation=\'sise\')"\nQuery2: "max(output_of_query1)"',
    ],
)
def test_names_that_nearly_meet(ugly: Graph, program: str) -> None:
    def ask() -> None:
        try:
            _ = ugly.query(program).values
        except PlanError:
            return

    meter = lateness(ask)
    assert quick_enough(meter.most, LATE), meter.where


# -- texts -----------------------------------------------------------------------------------------


def _lines(line: str, count: int) -> str:
    """An LLM query whose lines each name the one before."""
    begin = "Query1: \"get_information(relation='at')\"\n"
    return begin + "\n".join(f'Query{i}: "{line.format(before=i - 1, half=max(1, i // 2))}"' for i in range(2, count))


#: Texts that were read in a time that grew faster than they do, or without a look at the clock.
TEXTS: dict[str, str] = {
    "unions": "FindAll() " * 1000 + "Or() " * 999 + "Count()",
    "intersections": "FindAll() " + "FindAll() And() " * 999 + "Count()",
    "lines": _lines("get_information(relation='at', head_entity=output_of_query{before})", 2500),
    "sets": _lines("set_union(set1=output_of_query{before}, set2=output_of_query{half})", 2500),
    "a relation of many words": "(UNKNOWN 1) -[" + "a-" * 40_000 + "]-> (b)",
    "unions as a serialisation": "<func>".join(["FindAll"] * 1000 + ["Or"] * 999 + ["Count"]),
    "broken lines": "".join(f'Query{i}: "get_information(relation=\n' for i in range(4000)),
    "a list": 'Query1: "count([' + "'a', " * 8000 + "'a'])\"",
    "tuples": "(a, b, c)\n" * 20_000,
    "arrows": "(UNKNOWN 1) -[a]-> (b)\n" * 10_000,
    "an open bracket": "(UNKNOWN 1) -[" + "a-" * 40_000,
    "what is left of a bracket": "(UNKNOWN 1, a, " + "b (" * 40_000,
}


@pytest.mark.parametrize("name", sample(list(TEXTS), 2))
def test_texts(ugly: Graph, name: str) -> None:
    """Reading, lowering and passes look at the clock; so do the trace and the evidence of the answer."""
    text = TEXTS[name]
    found: list[Any] = []

    def ask() -> None:
        with suppress(PlanError, ParseError):
            ugly.explain(text)
        with suppress(PlanError, ParseError):
            found.append(ugly.query(text))

    meter = lateness(ask)
    assert quick_enough(meter.most, LATE), meter.where
    for what in ("values", "trace", "evidence") if found else ():
        meter = lateness(lambda what=what: getattr(found[0], what))  # type: ignore[misc]
        assert quick_enough(meter.most, LATE), f"{what}: {meter.where}"


def test_a_line_that_is_read_too_late_is_no_error_of_the_line(ugly: Graph) -> None:
    with pytest.raises(DeadlineError):
        ugly.explain(TEXTS["lines"], timeout=1e-3)


def test_sets_of_many_parts_take_linear_work() -> None:
    parts = [alg.ByName((str(number),)) for number in range(16_000)]

    def spent(count: int) -> float:
        begin = time.thread_time()
        assert len(alg.union(*parts[:count], *parts[:count]).inputs()) == count
        return time.thread_time() - begin

    few, many = min(spent(4000) for _ in range(3)), min(spent(16_000) for _ in range(3))
    # Comparing each with each would take sixteen times as long, and seconds.
    assert many < 9 * few + 0.05
    nested = alg.union(alg.union(parts[0], parts[1]), alg.union(parts[1], parts[2]))
    assert list(map(id, nested.inputs())) == list(map(id, parts[:3]))


def test_a_check_keeps_to_the_timeout_of_its_answer(ugly: Graph) -> None:
    answer = ugly.kopl("FindAll() QueryName()", timeout=0.2)
    with pytest.raises(DeadlineError):
        answer.check()
    assert ugly.kopl("FindAll() Count()", timeout=60).check(timeout=60)


def test_logical_answers_without_a_bound(ugly: Graph) -> None:
    meter = lateness(lambda: ugly.logic("?x : exists ?v. at(?x, ?v)", k=None, explain=False))
    assert quick_enough(meter.most, LATE), meter.where
    assert meter.looks > MANY // CHUNK


# -- patterns --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hubs() -> Graph:
    """Two hubs of the same neighbours, parallel edges, and a long ring."""
    size = by_lane(6_000, 30_000, 30_000)
    items = [Statement(hub, "near", Ref(f"n{i}")) for i in range(size) for hub in ("hub a", "hub b")]
    items += [Statement(f"n{i}", "beside", Ref(f"n{(i * 7919) % size}")) for i in range(size)]
    items += [Statement("p", f"par {i % 3}", Ref("q"), (("number", Quantity(i)),)) for i in range(size)]
    graph = condgraph.open("memory:")
    graph.add(items)
    graph.match([("hub a", "near", "UNKNOWN 1")])
    return graph


PATTERNS: dict[str, tuple[Any, dict[str, Any]]] = {
    "star": ([("hub a", "near", "UNKNOWN 1")], {"k": None}),
    "hub and hub": ([("hub a", "near", "UNKNOWN 1"), ("hub b", "near", "UNKNOWN 1")], {"k": 5}),
    "path": ([("hub a", "near", "UNKNOWN 1"), ("UNKNOWN 1", "beside", "UNKNOWN 2"), ("hub b", "near", "UNKNOWN 2")], {"k": 5}),
    "parallel": ([("UNKNOWN 1", "par 0", "UNKNOWN 2"), ("UNKNOWN 1", "par 1", "UNKNOWN 2")], {"k": 1}),
    "parallel known": ([("p", "par 0", "q"), ("p", "par 1", "q"), ("p", "UNKNOWN r", "q")], {"k": 1}),
    "open": ([("UNKNOWN 1", "UNKNOWN r", "UNKNOWN 2"), ("UNKNOWN 2", "UNKNOWN s", "UNKNOWN 3")], {"k": 5}),
    "two parts": ([("hub a", "near", "UNKNOWN 1"), ("hub b", "near", "UNKNOWN 2")], {"k": 5}),
    "cycle": ([("UNKNOWN 1", "beside", "UNKNOWN 2"), ("UNKNOWN 2", "beside", "UNKNOWN 1")], {"k": 5}),
    "induced": ([("hub a", "near", "UNKNOWN 1"), ("UNKNOWN 1", "beside", "UNKNOWN 2")], {"k": 5, "induced": True}),
    "grouped": ([("hub a", "near", "UNKNOWN 1"), ("UNKNOWN 1", "beside", "UNKNOWN 2")], {"k": 5, "group_by": "UNKNOWN 2"}),
}


@pytest.mark.parametrize("name", sample(list(PATTERNS), 3))
def test_patterns(hubs: Graph, name: str) -> None:
    pattern, options = PATTERNS[name]
    found: list[Any] = []
    meter = lateness(lambda: found.append(hubs.match(pattern, **options)))
    assert quick_enough(meter.most, LATE), meter.where
    for what in ("values", "trace"):
        meter = lateness(lambda what=what: getattr(found[0], what))  # type: ignore[misc]
        assert quick_enough(meter.most, LATE), f"{what}: {meter.where}"


def test_parallel_edges_are_priced_as_before(hubs: Graph) -> None:
    """The cheapest statements alone, and all of them, give the same least sums."""
    import numpy as np

    from condgraph.patterns.distance import domains

    draw = np.random.default_rng(3)
    for edges in (1, 2, 3):
        sizes = draw.integers(1, 200, 40)
        starts = np.concatenate([[0], sizes.cumsum()[:-1]])
        prices = draw.integers(0, 50, (edges, int(sizes.sum())))
        prices[draw.random(prices.shape) < 0.2] = domains.BARRED
        few = domains.assignment(prices, starts)
        most, domains._PARALLEL = domains._PARALLEL, 10**9  # type: ignore[misc]
        try:
            assert np.array_equal(np.minimum(domains.assignment(prices, starts), domains.BARRED), np.minimum(few, domains.BARRED))
        finally:
            domains._PARALLEL = most  # type: ignore[misc]


# -- whole calls -----------------------------------------------------------------------------------


def test_calls_end_at_random_deadlines(ugly: Graph, hubs: Graph) -> None:
    """The time of the processor that a caller has used when a call comes back, at deadlines of all
    kinds.
    """
    draw, llm = random.Random(1), 'Query1: "get_information(relation=\'note\')"\nQuery2: "max(output_of_query1)"'
    ask: list[Callable[[float], Any]] = [
        lambda timeout: ugly.kopl("FindAll() QueryAttr(mixed)", timeout=timeout).values,
        lambda timeout: ugly.query(llm, timeout=timeout).values,
        lambda timeout: ugly.query(llm, timeout=timeout).evidence,
        lambda timeout: hubs.match(PATTERNS["open"][0], k=None, timeout=timeout).values,
    ]
    for turn in range(24):
        timeout = draw.uniform(0.01, 0.4)
        begin = time.thread_time()
        with suppress(DeadlineError):
            ask[turn % len(ask)](timeout)
        # Values are asked for later, and have the timeout again.
        assert quick_enough(time.thread_time() - begin, 2 * timeout + LATE)


def test_the_embedded_rdf_store(ugly: Graph) -> None:
    """Building it takes long, and so does a query; both are somewhere else."""
    for _ in range(3):
        begin, used = time.monotonic(), time.thread_time()
        with pytest.raises(DeadlineError):
            ugly.sparql("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", timeout=0.3)
        assert quick_enough(time.thread_time() - used, 0.3 + LATE)
        assert quick_enough(time.monotonic() - begin, 10)


def test_functions_from_outside(ugly: Graph) -> None:
    """One that waits for something holds nobody."""
    released = Event()

    def asked(name: str, texts: list[list[str]], options: dict[str, str]) -> list[str]:
        released.wait(20)
        return ["late"]

    begin = time.monotonic()
    with pytest.raises(DeadlineError):
        ugly.query(
            'Query1: "get_information(relation=\'at\')"\nQuery2: "riddle(output_of_query1)"', llm_function=asked, timeout=0.5
        )
    assert quick_enough(time.monotonic() - begin, 10)
    released.set()


def test_what_takes_long_once_is_there_for_later_calls() -> None:
    """Callers that never wait long enough: what they need is made meanwhile."""
    made: list[int] = []

    def make() -> str:
        time.sleep(0.4)
        made.append(1)
        return "made"

    among: dict[str, Any] = {}
    for _ in range(3):
        with pytest.raises(DeadlineError), within(0.05):
            shared(among, "it", make)
    time.sleep(0.6)
    with within(0.05):
        assert shared(among, "it", make) == "made"
    assert made == [1]
    assert among == {"it": "made"}


def test_what_fails_in_the_making_fails_for_all_and_is_made_again() -> None:
    turns: list[int] = []

    def make() -> str:
        turns.append(1)
        if len(turns) == 1:
            raise ValueError("the first time")
        return "made"

    once = SharedTask(Workers("test"), make)
    with pytest.raises(ValueError, match="first"):
        once.get()
    assert once.get() == once.get() == "made"


def test_inner_deadlines() -> None:
    """A part of a call can have less time than the call, never more; whoever cancels the call
    cancels the part.
    """
    cancelled = Event()
    with within(0.05, cancelled), within(60):
        time.sleep(0.06)
        with pytest.raises(DeadlineError):
            check()
    with within(60, cancelled):
        with within(0.01):
            time.sleep(0.02)
            with pytest.raises(DeadlineError):
                check()
        check()
        cancelled.set()
        with within(60, Event()), pytest.raises(CancelledError):
            check()
    check()


def test_properties_of_many_objects_do_not_wait_for_each_other() -> None:
    class Slow:
        _timeout = None

        @kept
        def found(self) -> float:
            time.sleep(0.3)
            return time.monotonic()

    begin = time.monotonic()
    threads = [Thread(target=lambda: Slow().found) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert quick_enough(time.monotonic() - begin, 2)


# -- pieces ----------------------------------------------------------------------------------------


@pytest.fixture
def bounded() -> Iterator[None]:
    with within(600):
        yield


@pytest.mark.usefixtures("bounded")
def test_pieces_give_what_the_whole_gives() -> None:
    draw = random.Random(2)
    size = 5 * CHUNK + 17
    values = [draw.randrange(1000) for _ in range(size)]
    assert [one for piece in pieces(values) for one in piece] == list(watched(values)) == values
    for reverse in (False, True):
        for key in (values.__getitem__, lambda place: (values[place] % 7, str(place)), lambda place: 0):
            assert places_in_order(size, key, reverse=reverse) == sorted(range(size), key=key, reverse=reverse)


@pytest.mark.parametrize("wrong", [{"limit": 1.5}, {"limit": "a"}, {"limit": True}, {"timeout": "a"}, {"timeout": True}])
def test_bounds_of_another_type_are_refused_at_once(wrong: dict[str, Any]) -> None:
    graph = condgraph.open()
    graph.add([Entity("a", "A")])
    with pytest.raises(OptionError, match=r"^(limit|timeout) is "):
        graph.kopl("FindAll() QueryName()", **wrong)
    assert graph.kopl("FindAll() QueryName()", limit=np.int64(1), timeout=np.float32(9)).texts == ["A"]  # type: ignore[arg-type]
