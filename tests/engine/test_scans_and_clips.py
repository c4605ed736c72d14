"""Scans of every shape against plain loops over the statements, and times cut by every operator."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any, Final

import pytest

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import OPERATORS, Node
from condgraph.engine.answer import Answer
from condgraph.engine.check import built
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.execute.conditions import decide
from condgraph.engine.execute.run import Run
from condgraph.engine.facts import Ref, Sourced, Statement
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Quantity, Time, text_of
from tests.support.operators import graph

#: The statements, each once, with the sources they have.
STATEMENTS: Final = list(
    {
        repr(bare): (bare, {name for name, _ in item.sources} if isinstance(item, Sourced) else set())
        for item in graph()
        for bare in [item.item if isinstance(item, Sourced) else item]
        if isinstance(bare, Statement)
    }.values()
)
#: From one entity, from few, from more than are looked up one by one.
OF: Final = [None, ("a",), ("a", "b"), ("a", "b", "b2", "x", "r1", "r2", "r3", "human", "person", "other")]
PREDICATES: Final = [None, ("knows",), ("knows", "through"), ("height",), ("height", "knows", "amount", "who"), ("nothing",)]
SHAPES: Final = list(
    product(
        OF, PREDICATES, [("subject", "subject"), ("subject", "object"), ("object", "subject")], ["any", "relation", "attribute"]
    )
)


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return built(graph())


def run(plan: Node, snapshot: Snapshot) -> Answer:
    execution = Run(snapshot)
    execution.execute(plan)
    return Answer(execution, plan)


def fits(one: Statement, sources: set[str], scan: alg.Scan, of: tuple[str, ...] | None) -> bool:
    relation = isinstance(one.object, Ref)
    anchor = one.subject if scan.anchor == "subject" else one.object.id if isinstance(one.object, Ref) else None
    return (
        (scan.predicates is None or one.predicate in scan.predicates)
        and (scan.family == "any" or relation == (scan.family == "relation"))
        and (of is None or anchor in of)
        and (anchor is not None or of is None)
        and (scan.source is None or scan.source in sources)
    )


@pytest.mark.parametrize("source", [None, "sales", "other"])
def test_scans(snapshot: Snapshot, source: str | None) -> None:
    seen = 0
    for of, predicates, (anchor, reach), family in SHAPES:
        if (anchor == "object" and family != "relation") or (reach == "object" and family == "attribute"):
            # Values are no entities to begin at, or to ask for alone; front ends ask for relations
            # then.
            continue
        of_node = None if of is None else alg.ById(of)
        scan = alg.Scan(of_node, predicates, anchor, reach, family, source)  # type: ignore[arg-type]
        wanted = [(one, sources) for one, sources in STATEMENTS if fits(one, sources, scan, of)]
        found: Any = run(scan, snapshot).run.results[id(scan)]
        facts = list(EvidenceList.of(snapshot, found.all().tolist(), []))
        assert sorted((fact.subject.id, fact.predicate) for fact in facts) == sorted(
            (one.subject, one.predicate) for one, _ in wanted
        )
        assert len(found) == len(wanted)
        ends = {one.subject if reach == "subject" else getattr(one.object, "id", None) for one, _ in wanted}
        assert {entity.id for entity in run(alg.Reached(scan), snapshot).entities} == ends - {None}
        seen += bool(wanted)
    assert seen > 5


@pytest.mark.parametrize("entities", [1, 50])
def test_a_literal_that_no_float_is_compares_exactly(entities: int) -> None:
    """Where all numbers of the graph are floats: one by one, and as a column."""
    whole = built(Statement(f"e{i}", "size", Quantity(0.1, "metre")) for i in range(entities))
    scan = alg.Scan(None if entities > 1 else alg.ById(("e0",)), ("size",))
    above, below = (Quantity(Decimal(text), "metre") for text in ("0.10000000000000000000001", "0.09999999999999999999999"))
    same = Quantity(Decimal("0.1"), "metre")
    for literal, holding in ((above, {"<", "<=", "!="}), (below, {">", ">=", "!="}), (same, {"=", "<=", ">="})):
        found = {
            one for one in OPERATORS if run(alg.Count(alg.Reached(alg.Where(scan, alg.Compare(one, literal)))), whole).values != [0]
        }
        assert found == holding
        # As it is asked of one statement after the other.
        cells = whole.ordered("att")
        one_by_one = {one for one in OPERATORS if decide(Run(whole), alg.Compare(one, literal))(cells, 0)}
        assert one_by_one == holding


def test_a_statement_in_two_rows_of_a_source_is_one(snapshot: Snapshot) -> None:
    twice = alg.Objects(alg.Scan(None, ("count",), source="world"))
    assert run(twice, snapshot).texts == ["3"]
    assert run(alg.Sum(twice), snapshot).texts == ["3"]


BEGIN, END, YEAR = Time.parse("1979/1981"), Time.year(1985), Time.year(1980)
LIMITS: Final = (Time.year(1980), Time.year(1983))


def clipped(operator: Any, *limits: Time, values: tuple[Time, ...] = (BEGIN, END, YEAR)) -> list[str]:
    plan = alg.Clip(alg.Constants(values), operator, alg.Constants(limits))
    return sorted(map(text_of, run(plan, built(graph())).values))


def test_every_operator_cuts_times() -> None:
    found = {operator: (clipped(operator, LIMITS[0]), clipped(operator, *LIMITS)) for operator in OPERATORS}
    assert found == {
        # Within the limit, or one of them.
        "=": (["1980", "1980"], ["1980", "1980"]),
        # Disjoint from it, or from all of them.
        "!=": (["1985"], ["1985"]),
        # Before its start; of several, of the last.
        "<": (["1979"], ["1979/1981", "1980"]),
        "<=": (["1979/1980", "1980"], ["1979/1981", "1980"]),
        # After its end; of several, of the first.
        ">": (["1981", "1985"], ["1981", "1985"]),
        ">=": (["1980", "1980/1981", "1985"], ["1980", "1980/1981", "1985"]),
    }


def test_nothing_is_cut_by_nothing() -> None:
    assert clipped("<") == []
    assert clipped("=", Time.year(1990)) == []
    assert clipped("<", Time.year(1979)) == []
    assert clipped(">", Time.year(1985)) == []
