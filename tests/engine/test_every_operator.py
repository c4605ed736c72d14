"""Evidence, witness and warnings, held to the algebra: every operator and condition has a plan
here, and what each gives, rests on and warns of stands in `golden/operators.txt`.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node, monotone, postorder
from condgraph.engine.answer import Answer
from condgraph.engine.check import built, shown
from condgraph.engine.describe import describe_test, tree
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.execute.evidence import EvidenceTrail
from condgraph.engine.execute.run import Run
from condgraph.engine.execute.sets import FactSet, Numbers, distinct
from condgraph.engine.execute.witness_plan import WitnessRun, units
from condgraph.engine.external import CallContext, FunctionCall
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Sourced, Statement, Subclass
from condgraph.engine.snapshot.snapshot import Snapshot
from tests.support import golden
from tests.support.operators import CONDITIONS, OPERATORS, asked, graph, of_algebra

PLANS: Final[dict[str, Node]] = {
    **{type(node).__name__: node for node in OPERATORS},
    **{f"condition {type(condition).__name__}": asked(condition) for condition in CONDITIONS},
}


@cache
def whole() -> Snapshot:
    return built(graph())


def answered(plan: Node, snapshot: Snapshot) -> Answer:
    run = Run(snapshot)
    run.execute(plan)
    return Answer(run, plan)


def test_every_operator_has_a_plan() -> None:
    assert {type(node) for node in OPERATORS} == of_algebra(Node)
    assert {type(condition) for condition in CONDITIONS} == of_algebra(Condition)
    assert len(PLANS) == len(OPERATORS) + len(CONDITIONS)


@pytest.mark.parametrize("name", PLANS)
def test_inputs_are_all_operators_in_the_fields(name: str) -> None:
    """They are found by annotations, of which one that is written in another way would be missed."""

    def held(part: Any) -> list[Node]:
        if isinstance(part, tuple):
            return [node for one in part for node in held(one)]
        return [part] if isinstance(part, Node) else inside(part) if is_dataclass(part) else []

    def inside(record: Any) -> list[Node]:
        return [node for field in fields(record) for node in held(getattr(record, field.name))]

    for node in postorder(PLANS[name]):
        assert list(map(id, node.inputs())) == list(map(id, inside(node))), type(node)


def test_what_each_gives_rests_on_and_warns_of() -> None:
    sections = {}
    for name, plan in PLANS.items():
        answer = answered(plan, whole())
        evidence = answer.evidence
        about = [
            tree(plan),
            *([f"asks {describe_test(plan.condition)}"] if isinstance(plan, alg.Where) else []),
            *(f"gives {text[:60]}" for text in answer.texts),
            *(f"fact {fact}"[:160] for fact in _facts(answer)),
            *(f"rests on {line[:160]}" for line in map(str, evidence)),
            *(f"rests on the entity {one}"[:160] for one in evidence.entities),
            *(f"rests on the row {one}" for one in evidence.rows),
            *(f"looked through {one}" for one in evidence.searched),
            f"monotone: {'yes' if evidence.monotone else 'no'}",
            *(f"warns: {line}" for line in answer.warnings),
        ]
        sections[name] = "\n".join(about)
    golden.check(Path(__file__).parent / "golden" / "operators.txt", sections)


def _facts(answer: Answer) -> list[str]:
    """The statements that a set of facts holds."""
    found: Any = answer.run.results[id(answer.plan)]
    if not isinstance(found, FactSet):
        return []
    return list(map(str, EvidenceList.of(answer.run.snapshot, found.all().tolist(), [])))


@pytest.mark.parametrize("name", PLANS)
def test_evidence_gives_the_answer_again(name: str) -> None:
    answer = answered(PLANS[name], whole())
    found = answer.check(full=True)
    assert found, found
    assert found.monotone or not monotone(PLANS[name])
    # Something was asked, or all was written in the plan.
    assert len(answer.evidence) or answer.evidence.entities or not any(isinstance(n, alg.Entities) for n in answer.run.order)


@pytest.mark.parametrize(("rows", "shown_rows"), [(("r1",), "1 row"), (("r1", "r2"), "2 rows")])
def test_a_function_from_outside_says_what_it_was_shown(rows: tuple[str, ...], shown_rows: str) -> None:
    seen: list[FunctionCall] = []

    def call(given: FunctionCall) -> list[str]:
        seen.append(given)
        return ["found"]

    amounts = alg.Objects(alg.Scan(alg.ById(rows), ("amount",)))
    answer = answered(alg.External("guess", call, (amounts,), asked=CallContext("How many?")), whole())
    assert answer.texts == ["found"]
    assert [row.id for row in seen[0].rows] == list(rows)
    assert answer.warnings[0].endswith(f", and {shown_rows} with all columns")


@cache
def smaller() -> list[Snapshot]:
    """The graph without one statement, membership or row, for each of them."""
    items = graph()
    return [built(items[:at] + items[at + 1 :]) for at, item in enumerate(items) if _counts(_bare(item))]


def _counts(item: Item) -> bool:
    return isinstance(item, Statement | Member) or (isinstance(item, Entity) and item.kind is EntityKind.ROW)


def _bare(item: Item) -> Item:
    return item.item if isinstance(item, Sourced) else item


def results(plan: Node, snapshot: Snapshot) -> set[Any]:
    """What a plan gives, as texts that mean the same in another graph; of truth values the yes."""
    answer = answered(plan, snapshot)
    found: Any = answer.run.results[id(plan)]
    if isinstance(found, FactSet):
        return {text.rpartition("  [")[0] for text in _facts(answer)}
    if isinstance(plan, alg.Entities):
        return {entity.id for entity in answer.entities}
    return {repr(value) for value in answer.values if value is not False}


@pytest.mark.parametrize("name", [name for name, plan in PLANS.items() if monotone(plan)])
def test_more_statements_can_only_give_more(name: str) -> None:
    everything = results(PLANS[name], whole())
    for snapshot in smaller():
        assert results(PLANS[name], snapshot) <= everything


@pytest.mark.parametrize("name", [name for name, plan in PLANS.items() if not monotone(plan)])
def test_what_needs_a_whole_can_give_less_of_more(name: str) -> None:
    """The facet says no more than there is: a statement more does take something away."""
    everything = results(PLANS[name], whole())
    assert any(not results(PLANS[name], snapshot) <= everything for snapshot in smaller())


@pytest.mark.parametrize("name", PLANS)
def test_what_a_store_is_asked_for_gives_the_answer(name: str) -> None:
    """The plan, run again on what its units fetch: the same answer, evidence and warnings."""
    plan, snapshot = PLANS[name], whole()
    statements, entities = list[Numbers](), list[Numbers]()
    known: dict[int, Numbers] = {}
    for unit in units(plan, set()):
        run = Run(snapshot)
        found: Any = run.execute(unit.compiled)
        if isinstance(found, FactSet):
            statements.append(found.all())
            continue
        entities.append(found)
        known.update({id(node): found for node in unit.known})
    none = np.array([], np.int32)
    trail = EvidenceTrail(
        Run(snapshot),
        statements=distinct(np.concatenate([none, *statements]).astype(np.int32), snapshot.statements),
        entities=distinct(np.concatenate([none, *entities]).astype(np.int32), snapshot.entities),
    )
    fetched = EvidenceList(trail)
    # Concepts and memberships come beside the members; all of them do here.
    links = [item for item in graph() if isinstance(item, Member | Subclass)]
    named = [item for item in graph() if isinstance(_bare(item), Entity)]
    ends = {end for link in links for end in (getattr(link, "entity", ""), link.concept, getattr(link, "parent", ""))}
    here = built([*fetched.items(), *links, *(item for item in named if _bare(item).id in ends)])
    sets = {node: _moved(found, snapshot, here) for node, found in known.items()}
    again = WitnessRun(here, sets)
    again.execute(plan)
    there, answer = answered(plan, snapshot), Answer(again, plan)
    assert shown(answer) == shown(there)
    assert sorted(map(str, answer.evidence)) == sorted(map(str, there.evidence))


def _moved(found: Numbers, there: Snapshot, here: Snapshot) -> Numbers:
    """A set of entities of one graph in another one."""
    idents = there.texts.take(there.entity_id.take(found))
    return np.sort(np.array([here.identified(ident) for ident in idents], np.int32))
