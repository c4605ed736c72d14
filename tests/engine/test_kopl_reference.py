"""The engine against an interpreter of its own kind (`support.reference`): random graphs, random
programs, every physical path.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import condgraph
from condgraph.engine.algebra import Node
from condgraph.engine.answer import Answer
from condgraph.engine.errors import CondgraphError
from condgraph.engine.execute import Run
from condgraph.engine.execute import sets as physical
from condgraph.engine.passes import optimise
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.languages.kopl.lower import lower
from condgraph.languages.kopl.table import FUNCTIONS
from tests.support import graphs, programs, reference
from tests.support.graphs import Dice, drawn
from tests.support.lanes import by_lane, examples, sample
from tests.support.reference import Call

#: Concepts that stand beside a graph, without and with facts: what is looked up and what is scanned
#: depends on their number.
PADDING = {"bare": [], "wide": graphs.padding(9000, facts=False), "deep": graphs.padding(3000, facts=True)}


def snapshot_of(items: list[Any]) -> Snapshot:
    """A graph of these items."""
    graph = condgraph.open("memory:")
    graph.add(items)
    return graph.current


def engine(snapshot: Snapshot, program: Sequence[Call], *, lenient: bool) -> tuple[Any, list[str]]:
    """Texts (or the name of the error) and warnings of the plan as lowered; asserts that the
    optimised one gives the same.
    """
    on_unknown = "empty" if lenient else "error"
    graph = condgraph.open("memory:")
    graph._storage.snapshot = snapshot
    written = programs.as_json(program)
    try:
        answer = graph.kopl(written, on_unknown=on_unknown)
    except CondgraphError as error:
        return type(error).__name__, []
    lowered = lower(written, snapshot.schema, on_unknown=on_unknown)
    if lowered.order is not None:
        assert_settled(lowered.plan, lowered.order)
    run = Run(snapshot)
    run.execute(lowered.plan)
    plain = Answer(run, lowered.plan, steps=lowered.steps, warnings=lowered.warnings)
    assert (plain.texts, len(plain.values)) == (answer.texts, len(answer.values)), programs.as_text(program)
    # A part that stands twice is run once, and warns once.
    assert {_COUNTS("n", w) for w in plain.warnings} == {_COUNTS("n", w) for w in answer.warnings}, programs.as_text(program)
    return plain.texts, sorted(plain.warnings)


def assert_settled(plan: Node, order: list[Node]) -> None:
    """What lowering says needs no pass is left alone by them, and `order` has each of its operators
    once, inputs first.
    """
    optimised, wanted = optimise(plan)
    assert optimised is plan
    assert sorted(map(id, order)) == sorted(map(id, wanted))
    places = {id(node): at for at, node in enumerate(order)}
    assert all(places[id(before)] < places[id(node)] for node in order for before in node.inputs())


# A pass may have made one step of two, of which either is named.
_COUNTS = re.compile(r"\d+ values?|(?<=is empty: )\w+(?= returned nothing)").sub
_LEFT_OUT = re.compile(r"(\d+) values? \(.*\) cannot be compared").match


def check(model: reference.Model, snapshot: Snapshot, program: Sequence[Call], *, lenient: bool) -> int:
    """Assert that both agree: on the answer and on what could not be compared, or on the refusal.
    Gives how much could not be.
    """
    found, warnings = engine(snapshot, program, lenient=lenient)
    if any(" is read as " in warning for warning in warnings):
        # The model's names are exact: another case or plural of a name is none of its business.
        return 0
    wanted, left_out = reference.answer_and_left_out(model, program, lenient=lenient)
    if isinstance(wanted, set):
        assert found in wanted, programs.as_text(program)
        return 0
    assert found == wanted, programs.as_text(program)
    reported = sum(int(one[1]) for warning in warnings if (one := _LEFT_OUT(warning)))
    assert reported == left_out, (programs.as_text(program), warnings)
    return left_out


@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large],
)
@given(drawn(graphs.graph), st.lists(drawn(programs.program), min_size=1, max_size=4), st.booleans())
def test_shrinking(items: list[Any], asked: list[list[Call]], lenient: bool) -> None:
    """Few examples, made by Hypothesis: what fails here is shrunk."""
    model, snapshot = reference.Model(items), snapshot_of(items)
    for program in asked:
        check(model, snapshot, program, lenient=lenient)


@pytest.mark.parametrize("few", sample([0, 8, 10**9], 2))
@pytest.mark.parametrize("padding", PADDING)
def test_every_path(padding: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many examples from seeds, on graphs small and large beside what is asked, with every
    threshold of the lookups.
    """
    monkeypatch.setattr(physical, "MAX_SINGLE", few)
    left_out = 0
    for seed in range(by_lane(6, 60, 60) if padding == "bare" else by_lane(1, 12, 12)):
        dice = Dice(seed)
        items = graphs.graph(dice)
        model, snapshot = reference.Model([*items, *PADDING[padding]]), snapshot_of([*items, *PADDING[padding]])
        for number in range(25):
            left_out += check(model, snapshot, programs.program(dice), lenient=number % 3 > 0)
    assert left_out > by_lane(5, 100, 100)


def test_all_functions_are_asked() -> None:
    """The generator leaves no function out, and most programs mean something."""
    asked = [programs.program(Dice(seed)) for seed in range(1500)]
    # "What" is another name of "QueryName", which has an example of its own in the documentation.
    assert {function for program in asked for function, _, _ in program} == set(FUNCTIONS) - {"What"}


def test_the_comparison_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter whose `<` is `<=` on times is found out."""
    compare = reference.compare_times
    monkeypatch.setattr(reference, "compare_times", lambda operator, *rest: compare("<=" if operator == "<" else operator, *rest))

    def all_agree() -> None:
        for seed in range(200):
            dice = Dice(seed)
            items = graphs.graph(dice)
            model, snapshot = reference.Model(items), snapshot_of(items)
            for _ in range(25):
                check(model, snapshot, programs.program(dice), lenient=True)

    with pytest.raises(AssertionError):
        all_agree()


WRITTEN = {
    "json": programs.as_json,
    "json without dependencies": lambda program: programs.as_json(program, dependencies=False),
    "text": programs.as_text,
    "serialised": programs.as_serialised,
}


@pytest.mark.parametrize("form", WRITTEN)
def test_written_forms(form: str) -> None:
    """Every written form of a program means the same."""
    compared = 0
    for seed in range(12):
        dice = Dice(5000 + seed)
        items = graphs.graph(dice)
        graph = condgraph.open("memory:")
        graph.add(items)
        for _ in range(20):
            program = programs.program(dice, wrong=False)
            written: Any = WRITTEN[form](program)
            if written == "FindAll":
                continue  # nothing tells that this is the serialised form
            wanted = reference.answer(reference.Model(items), program, lenient=True)
            if isinstance(wanted, set):
                with pytest.raises(CondgraphError) as caught:
                    graph.kopl(written, on_unknown="empty")
                assert type(caught.value).__name__ in wanted
                continue
            assert graph.kopl(written, on_unknown="empty").texts == wanted, written
            compared += 1
    assert compared > 200
