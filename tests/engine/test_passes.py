"""What each pass makes of a plan, as text before and after (`golden/pass-NAME.txt`), and that
neither a pass nor all of them change what any operator gives.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Final

import pytest

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Entities, Facts, Node, Values, postorder
from condgraph.engine.algebra.expressions import Call, Variable
from condgraph.engine.answer import Answer
from condgraph.engine.check import built, shown
from condgraph.engine.describe import tree
from condgraph.engine.execute.run import Run
from condgraph.engine.facts import EntityKind
from condgraph.engine.passes import PASSES, chain, mark, optimise, rewrite
from condgraph.engine.values import Quantity, Time
from tests.support import golden
from tests.support.operators import CONDITIONS, OPERATORS, asked, graph

GOLDEN: Final = Path(__file__).parent / "golden"
ALL, ANN, HUMAN, PERSON = alg.AllEntities(), alg.ById(("a",)), alg.Members(alg.ById(("human",))), alg.Members(alg.ById(("person",)))
TALL: Final = alg.Where(alg.Scan(ALL, ("height",)), alg.Compare(">", Quantity(1.8, "metre")))


def films(name: str = "Ann") -> alg.Reached:
    """A part that is equal to the next one, and another object."""
    return alg.Reached(alg.Scan(alg.ByName((name,)), ("knows",), "subject", "object", "relation"))


def named(of: alg.Solutions, variable: str = "name") -> alg.Solutions:
    """Rows with the name of what `n` is bound to."""
    return alg.solutions.Extend(of, variable, Call("name", (Variable("n"),)))


CASES: Final[dict[str, dict[str, Node]]] = {
    "late": {
        "what no order depends on": alg.solutions.SliceRows(named(alg.solutions.EntityRows("n", ALL)), 1, 2),
        "before and after what the order depends on": alg.solutions.SliceRows(
            alg.solutions.OrderRows(
                named(named(named(alg.solutions.EntityRows("n", ALL), "a"), "b"), "c"), (alg.solutions.RowOrder("b", True),)
            ),
            0,
            2,
        ),
        "rows that are all wanted stay": named(alg.solutions.EntityRows("n", ALL)),
    },
    "flatten": {
        "an intersection within an intersection": alg.Intersect((alg.Intersect((ANN, HUMAN)), PERSON)),
        "on the right, and three deep": alg.Intersect((PERSON, alg.Intersect((HUMAN, alg.Intersect((ANN, films())))))),
        "a part that stands twice": alg.Intersect((HUMAN, alg.Intersect((ANN, HUMAN)))),
        "every entity beside members": alg.Intersect((ALL, HUMAN)),
        "every entity beside members within": alg.Intersect((ALL, alg.Intersect((HUMAN, ANN)))),
        "every entity beside what may be a concept stays": alg.Intersect((ALL, ANN)),
        "every entity of a source stays": alg.Intersect((alg.AllEntities(source="world"), HUMAN)),
        "every row stays": alg.Intersect((alg.AllEntities((EntityKind.ROW,)), HUMAN)),
        "a union within stays": alg.Intersect((alg.Union((ANN, HUMAN)), PERSON)),
        "below other operators": alg.Count(alg.Minus(alg.Intersect((alg.Intersect((ANN, HUMAN)), PERSON)), ANN)),
        "within a condition": alg.Where(alg.Scan(ALL, ("knows",)), alg.Among(alg.Intersect((ALL, HUMAN)))),
        "within conditions": alg.Where(
            alg.Scan(ALL, ("knows",)), alg.AnyOf((alg.Not(alg.Among(alg.Intersect((ALL, HUMAN)))), alg.Compare("=", "Bo")))
        ),
    },
    "common_subplans": {
        "equal parts of an intersection": alg.Intersect((films(), films())),
        "parts that differ in a name": alg.Union((films(), films("Bo"))),
        "equal leaves below other operators": alg.Minus(films(), alg.SameName(alg.ByName(("Ann",)))),
        "equal scans of every entity": alg.Concat(
            (alg.Objects(alg.Scan(ALL, ("height",))), alg.Objects(alg.Scan(alg.AllEntities(), ("height",))))
        ),
        "scans that differ in a direction": alg.Union(
            (
                alg.Reached(alg.Scan(alg.ByName(("Ann",)), ("knows",), "subject", "object")),
                alg.Reached(alg.Scan(alg.ByName(("Ann",)), ("knows",), "object", "subject")),
            )
        ),
        "within a condition": alg.Where(alg.Scan(films(), ("knows",), reach="object"), alg.Among(films())),
        "within conditions": alg.Where(
            alg.Scan(films(), ("knows",), reach="object"), alg.AllOf((alg.Not(alg.Among(films())), alg.Compare("!=", "Bo")))
        ),
        "equal conditions": alg.Union((alg.Reached(TALL), alg.Reached(copy.deepcopy(TALL)))),
        "conditions that differ in a number": alg.Union(
            (alg.Reached(TALL), alg.Reached(alg.Where(alg.Scan(ALL, ("height",)), alg.Compare(">", Quantity(1.9, "metre")))))
        ),
        "constants of another type": alg.Concat((alg.Constants(("1999",)), alg.Constants((Time.year(1999),)))),
        "what is shared stays shared": alg.Union((one := films(), alg.Intersect((one, HUMAN)))),
    },
}
PLANS: Final[dict[str, Node]] = {
    **{type(node).__name__: node for node in OPERATORS},
    **{f"condition {type(condition).__name__}": asked(condition) for condition in CONDITIONS},
}


def passes() -> dict[str, tuple[object, object]]:
    """The passes by their names."""
    return {one[1].__name__: one for one in PASSES}


def answer(plan: Node, order: list[Node] | None = None) -> Answer:
    run = Run(built(graph()))
    run.execute(plan, order)
    return Answer(run, plan)


def test_every_pass_has_its_cases() -> None:
    assert set(CASES) == set(passes())
    # No file is left of a pass that has gone.
    assert {path.stem.removeprefix("pass-") for path in GOLDEN.glob("pass-*.txt")} <= set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_plans_before_and_after(name: str) -> None:
    applies, apply = passes()[name]
    sections = {}
    for what, plan in CASES[name].items():
        after = apply(plan)  # type: ignore[operator]
        # A pass that is left out has nothing to do.
        looked = bool(applies(postorder(plan)))  # type: ignore[operator]
        assert looked or after == plan, what
        assert apply(after) is after or tree(apply(after)) == tree(after), what  # type: ignore[operator]
        assert shown(answer(after)) == shown(answer(plan)), what
        same = "the same plan" if tree(after) == tree(plan) else tree(after)
        sections[what] = f"{tree(plan)}\n--\n{same}"
    golden.check(GOLDEN / f"pass-{name}.txt", sections)


def twice(plan: Node) -> Node:
    """A plan with two equal parts that are two objects."""
    other = copy.deepcopy(plan)
    if isinstance(plan, Facts):
        return alg.Union((alg.Reached(plan), alg.Reached(other)))  # type: ignore[arg-type]
    if isinstance(plan, Entities):
        return alg.Union((plan, other))  # type: ignore[arg-type]
    if isinstance(plan, Values):
        return alg.Concat((plan, other))  # type: ignore[arg-type]
    return alg.Apply("equal", (plan, other))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PLANS)
def test_every_operator_is_rebuilt_and_shared(name: str) -> None:
    plan = PLANS[name]
    assert rewrite(plan, lambda node: node) is plan
    # Every operator below is another object, so that this one is made anew of them.
    fresh = rewrite(plan, copy.copy)
    assert fresh is not plan
    assert fresh == plan
    assert tree(fresh) == tree(plan)
    assert mark(plan) == mark(rewrite(plan, lambda node: node))
    if isinstance(plan, alg.Table):
        # No operator takes two tables.
        optimised, order = optimise(fresh)
        assert shown(answer(optimised, order)) == shown(answer(plan))
        return
    double = twice(plan)
    _, share = PASSES[-1]
    shared = share(double)
    assert shared.inputs()[0] is shared.inputs()[1]
    optimised, order = optimise(double)
    assert order[-1] is optimised
    assert shown(answer(optimised, order)) == shown(answer(double))


def test_plans_without_branches_are_left_alone() -> None:
    plan = alg.Count(films())
    assert chain(plan) == postorder(plan)
    assert optimise(plan) == (plan, postorder(plan))
    assert chain(alg.Union((films(), ANN))) is None
