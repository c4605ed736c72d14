"""Rows that bind several variables: each operator by hand, its evidence, and what ends it."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from typing import Any

import pytest

import condgraph
from condgraph import Entity, EntityKind, Member, Ref, Statement, Subclass
from condgraph.engine.algebra import ByName, Compare, Solutions
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.algebra import solutions as alg
from condgraph.engine.answer import Answer
from condgraph.engine.bounds import within
from condgraph.engine.errors import DeadlineError, PlanError
from condgraph.engine.execute import rowset, solving
from condgraph.engine.execute.run import Run, count
from condgraph.engine.passes import optimise
from condgraph.engine.records import Evidence, PathTerm
from condgraph.engine.row_shapes import naming_products, product_in
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Quantity, Time

V = alg.Variable
X, Y, Z, VALUE = V("x"), V("y"), V("z"), V("v")

KNOWS = (("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), ("d", "a"), ("d", "d"), ("b", "a"))
SIZES: tuple[tuple[str, Any], ...] = (
    ("a", Quantity(5)),
    ("b", Quantity(5)),
    ("c", Quantity(7, "m")),
    ("d", "five"),
    ("d", Time.year(1960)),
)


@cache
def graph() -> Snapshot:
    """Parallel statements, loops, qualifiers that are entities, values of several types, concepts below others."""
    made = condgraph.open()
    made.add(
        [
            Entity("city", "city", EntityKind.CONCEPT),
            Entity("town", "town", EntityKind.CONCEPT),
            Subclass("town", "city"),
            *(Statement(one, "knows", Ref(other), (("since", Quantity(1990)),)) for one, other in KNOWS),
            Statement("a", "knows", Ref("b"), (("since", Quantity(3)), ("through", Ref("c")))),
            *(Statement(one, "size", value) for one, value in SIZES),
            *(Member(one, concept) for one, concept in (("a", "town"), ("b", "city"), ("d", "city"))),
        ]
    )
    return made.current


def answer(plan: Any) -> Answer:
    run = Run(graph())
    run.execute(plan)
    return Answer(run, plan)


def rows(plan: Any) -> list[str]:
    """The rows, each as its cells in one text."""
    return [" ".join(cells) for cells in answer(plan).cells]


def knows(one: Any = X, other: Any = Y, **more: Any) -> alg.StatementPattern:
    return alg.StatementPattern(one, ("knows",), other, **more)


def size(of: Any = Y, value: Any = VALUE, **more: Any) -> alg.StatementPattern:
    return alg.StatementPattern(of, ("size",), value, **more)


P = alg.Pattern((knows(),))
Q = alg.Pattern((size(),))
A = ByName(("a",))
HOP = (alg.Hop(("knows",)),)


# -- patterns --------------------------------------------------------------------------------------


def test_parallel_statements_are_rows_of_their_own() -> None:
    assert rows(P) == ["a b", "a b", "a d", "b a", "b c", "c a", "d a", "d d"]
    assert answer(P).columns == ("x", "y")


def test_a_triangle_has_each_choice_of_statements() -> None:
    triangle = alg.Pattern((knows(), knows(Y, Z), knows(Z, X)))
    assert rows(triangle) == ["a b c", "a b c", "a d d", "b c a", "b c a", "c a b", "c a b", "d a d", "d d a", "d d d"]
    apart = alg.Pattern((knows(), knows(Y, Z), knows(Z, X)), different=True)
    assert rows(apart) == [row for row in rows(triangle) if row != "d d d"]


def test_values_join_by_type_and_unit() -> None:
    pattern = alg.Pattern((size(X), size(Y)))
    assert rows(pattern) == ["a 5 a", "a 5 b", "b 5 a", "b 5 b", "c 7 m c", "d 1960 d", "d five d"]


def test_places_hold_sets_conditions_and_variables_of_predicates() -> None:
    assert rows(alg.Pattern((knows(A, Y),))) == ["b", "b", "d"]
    assert rows(alg.Pattern((knows(X, A),))) == ["b", "c", "d"]
    assert rows(alg.Pattern((size(X, None, condition=Compare("=", Quantity(5))),))) == ["a", "b"]
    assert rows(alg.Pattern((alg.StatementPattern(A, V("p"), Y),))) == ["knows b", "knows b", "knows d", "size 5"]
    assert rows(alg.Pattern((alg.StatementPattern(X, ("knows",), X),))) == ["d"]
    assert rows(alg.Pattern(())) == [""]


def test_qualifiers_bind_or_test() -> None:
    bound = knows(A, Y, qualifiers=(alg.QualifierPattern(V("k"), V("q")),))
    assert rows(alg.Pattern((bound,))) == ["b since 3", "b since 1990", "b through c", "d since 1990"]
    old = alg.QualifierPattern("since", None, Compare("<", Quantity(10)))
    assert rows(alg.Pattern((knows(qualifiers=(old,)),))) == ["a b"]
    through = alg.QualifierPattern("through", Z)
    assert rows(alg.Pattern((knows(qualifiers=(through,)), knows(Z, X)))) == ["a b c"]


def test_both_directions_and_memberships() -> None:
    either = alg.Pattern((knows(ByName(("d",)), Y, undirected=True),))
    assert rows(either) == ["a", "a", "d"]
    with pytest.raises(PlanError, match="no condition on its object"):
        knows(undirected=True, condition=Compare("=", "d"))
    assert rows(alg.Pattern((), (alg.MembershipPattern(X, ByName(("city",))),))) == ["a", "b", "d"]
    assert rows(alg.Pattern((), (alg.MembershipPattern(X, V("c")),))) == ["a city", "a town", "b city", "d city"]
    assert rows(alg.Pattern((), (alg.MembershipPattern(X, V("c"), direct=True),))) == ["a town", "b city", "d city"]
    assert rows(alg.Pattern((knows(),), (alg.MembershipPattern(Y, ByName(("town",))),))) == ["b a", "c a", "d a"]


def test_a_statement_is_a_term() -> None:
    value = answer(alg.Pattern((knows(A, ByName(("d",)), statement=V("s")),))).values[0][0]
    assert isinstance(value, Evidence)
    assert (value.subject.name, value.predicate, value.qualifiers) == ("a", "knows", (("since", Quantity(1990)),))


# -- paths -----------------------------------------------------------------------------------------


def test_reachability_ends_on_cycles() -> None:
    one_or_more = rows(alg.Path(None, X, HOP, Y))
    assert one_or_more == [f"{one} {other}" for one in "abcd" for other in "abcd"]
    none_or_more = rows(alg.Path(None, X, HOP, Y, 0))
    assert none_or_more == sorted([*one_or_more, "city city", "town town"])
    assert rows(alg.Path(None, ByName(("c",)), HOP, Y, 2, 2)) == ["b", "d"]


def test_trails_use_no_statement_twice() -> None:
    found = rows(alg.Path(None, A, HOP, Y, 1, 2, "trails", V("p"), V("n")))
    twice = ["b a - b 1", "b a - b 1", "c a - b - c 2", "c a - b - c 2"]
    assert found == ["a a - b - a 2", "a a - b - a 2", "a a - d - a 2", *twice, "d a - d 1", "d a - d - d 2"]
    # Eight statements end every trail.
    assert max(int(row.rpartition(" ")[2]) for row in rows(alg.Path(None, A, HOP, Y, 1, None, "trails", None, V("n")))) == 8


def test_shortest_paths() -> None:
    assert rows(alg.Path(None, A, HOP, Y, 1, None, "shortest", V("p"))) == ["b a - b", "c a - b - c", "d a - d"]
    each = rows(alg.Path(None, A, HOP, Y, 1, None, "all shortest", V("p")))
    assert each == ["b a - b", "b a - b", "c a - b - c", "c a - b - c", "d a - d"]
    path = answer(alg.Path(None, A, HOP, ByName(("c",)), 1, None, "shortest", V("p"))).values[0][0]
    assert isinstance(path, PathTerm)
    assert [entity.id for entity in path.entities] == ["a", "b", "c"]


def test_a_path_extends_rows() -> None:
    assert rows(alg.Path(P, Y, HOP, X, 1, 1)) == ["a b", "a b", "a d", "b a", "d a", "d d"]


# -- joins -----------------------------------------------------------------------------------------


def test_unbound_variables_are_compatible_with_all() -> None:
    given = alg.Rows(("x", "z"), ((Ref("a"), 1), (Ref("nobody"), None), (None, "t")))
    assert rows(given) == ["a 1", "nobody ", " t"]
    assert rows(alg.Join(alg.Pattern((knows(X, ByName(("d",))),)), given)) == ["a 1", "a t", "d t"]
    assert rows(alg.MinusRows(P, alg.Rows(("x", "z"), ((Ref("a"), 1), (None, None))))) == ["b a", "b c", "c a", "d a", "d d"]
    assert rows(alg.AntiJoin(P, alg.Rows(("w",), ((1,),)))) == []
    assert rows(alg.MinusRows(P, alg.Rows(("w",), ((1,),)))) == rows(P)


def test_left_joins_keep_rows_without_a_match() -> None:
    plan = alg.LeftJoin(P, Q, ex.Comparison("=", ex.Variable("v"), ex.Constant("five")))
    assert rows(plan) == ["a b ", "a b ", "a d five", "b a ", "b c ", "c a ", "d a ", "d d five"]


def test_rows_are_kept_or_marked_by_whether_others_exist() -> None:
    loops = alg.Pattern((knows(Y, Y),))
    assert rows(alg.SemiJoin(P, loops)) == ["a d", "d d"]
    assert rows(alg.AntiJoin(P, loops)) == ["a b", "a b", "b a", "b c", "c a", "d a"]
    assert rows(alg.MarkJoin(alg.Pattern((knows(A, Y),)), loops, "m")) == ["b no", "b no", "d yes"]


# -- one input -------------------------------------------------------------------------------------


def test_groups_sum_up() -> None:
    plan = alg.GroupRows(
        alg.LeftJoin(P, Q),
        ("x",),
        (
            alg.RowAggregate("n", "count"),
            alg.RowAggregate("d", "count", "y", distinct=True),
            alg.RowAggregate("ys", "list", "y", distinct=True),
            alg.RowAggregate("t", "text", "v", separator=","),
            alg.RowAggregate("s", "sum", "v"),
        ),
    )
    assert rows(plan) == ["a 4 2 [b, d] 5,5,1960,five 10", "b 2 2 [a, c] 5,7 m 5", "c 1 1 [a] 5 5", "d 3 2 [a, d] 5,1960,five 5"]
    none = alg.GroupRows(
        alg.Pattern((knows(ByName(("nobody",)), Y),)), (), (alg.RowAggregate("n", "count"), alg.RowAggregate("l", "list", "y"))
    )
    assert answer(none).values == [(0, ())]


def test_a_count_needs_no_column_but_what_joins() -> None:
    """Columns that nobody asks for are dropped while a pattern is matched, but not before all that meets there has."""
    through = alg.QualifierPattern("through", X)
    for pattern, wanted in (
        (alg.Pattern((knows(), knows(Y, Z), knows(Z, X))), 10),
        (alg.Pattern((size(X), knows(X, Y, qualifiers=(through,)))), 0),
        (alg.Pattern((size(Z), knows(Z, Y, qualifiers=(through,)))), 1),
        (alg.Pattern((size(Z), knows(Z, X, qualifiers=(through,)))), 0),
    ):
        assert len(rows(pattern)) == wanted
        assert answer(alg.GroupRows(pattern, (), (alg.RowAggregate("n", "count"),))).values == [(wanted,)]
    onward = rows(alg.LeftJoin(alg.EntityRows("x", A), alg.Pattern((knows(), knows(Y, Z)))))
    assert onward == ["a b a", "a b a", "a b c", "a b c", "a d a", "a d d"]


def test_a_value_that_nobody_asks_for_still_joins() -> None:
    """Two statements of one subject share a value, of which a count has no column."""
    made = condgraph.open()
    made.add([Statement("a", "p", "0"), Statement("a", "q", "1"), Statement("b", "p", "0"), Statement("b", "q", "0")])
    shared = alg.Pattern(tuple(alg.StatementPattern(X, (name,), VALUE, family="attribute") for name in "pq"))
    run = Run(made.current)
    run.execute(plan := alg.GroupRows(shared, (), (alg.RowAggregate("n", "count"),)))
    assert Answer(run, plan).values == [(1,)]


def matches(edges: list[tuple[str, str]], parts: list[tuple[str, str]], row: dict[str, str]) -> list[dict[str, str]]:
    """Every way to match the parts, one by one."""
    if not parts:
        return [row]
    (one, other), *rest = parts
    fits = [{**row, one: s, other: o} for s, o in edges if (one != other or s == o) and row.get(one, s) == s]
    return [more for found in fits if row.get(other, found[other]) == found[other] for more in matches(edges, rest, found)]


@pytest.mark.parametrize("few", [0, 4_096])
def test_counts_are_those_of_the_rows(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows that are only counted, equal ones are one row with its number; a loop over the statements counts each."""
    monkeypatch.setattr(solving, "_MIN_MERGED", few)
    rng = random.Random(few)
    shapes = (["xy", "yz", "zw", "wx"], ["xy", "yz", "xw", "wz"], ["xy", "zy", "xw", "zw"], ["xy", "yz", "zw"], ["xy", "xz", "xw"])
    for _ in range(40):
        made, number = condgraph.open(), rng.choice((3, 5, 8))
        edges = [(f"e{rng.randrange(number)}", f"e{rng.randrange(number)}") for _ in range(rng.choice((4, 14)))]
        made.add([Statement(one, "p", Ref(other), (("n", Quantity(at)),)) for at, (one, other) in enumerate(edges)])
        parts = [(one, other) for one, other in rng.choice(shapes)]
        parts += [(rng.choice("xyzw"), rng.choice("xyzwv")) for _ in range(rng.choice((0, 0, 1)))]
        names = sorted({name for part in parts for name in part})
        plan: Any = alg.Pattern(tuple(alg.StatementPattern(V(one), ("p",), V(other)) for one, other in parts))
        found = matches(edges, parts, {})
        if rng.random() < 0.6:
            one, other = rng.sample(names, 2)
            plan = alg.Filter(plan, ex.Comparison("<>", ex.Variable(one), ex.Variable(other)))
            found = [row for row in found if row[one] != row[other]]
        keys = tuple(rng.sample(names, rng.choice((0, 1, 2))))
        wanted = Counter(tuple(row[name] for name in keys) for row in found)
        aggregates = alg.RowAggregate("n", "count"), alg.RowAggregate("m", "count", rng.choice(names))
        run = Run(made.current)
        run.execute(plan := alg.GroupRows(plan, keys, aggregates))
        answered = Answer(run, plan)
        counts = {tuple(cell.name for cell in row[:-2]): row[-2:] for row in answered.values}
        assert counts == ({key: (n, n) for key, n in wanted.items()} or ({} if keys else {(): (0, 0)})), plan
        # The statements of rows that a filter leaves out are none of the evidence.
        used = {(str(row[one]), str(row[other])) for row in found for one, other in parts}
        assert {(one.subject.id, one.object.id) for one in answered.evidence} == used, plan
        assert answered.check()


def test_more_rows_are_counted_than_worked_out() -> None:
    made = condgraph.open()
    made.add([Statement(f"{one}", "r", Ref(f"{other}")) for one in range(20) for other in range(20)])
    names = [V(f"v{at}") for at in range(16)]

    def counted(length: int) -> Any:
        parts = tuple(alg.StatementPattern(names[at], ("r",), names[at + 1]) for at in range(length))
        run = Run(made.current)
        run.execute(plan := alg.GroupRows(alg.Pattern(parts), (), (alg.RowAggregate("n", "count"),)))
        return Answer(run, plan).values

    assert counted(12) == [(20**13,)]
    # More than 2 ** 62: an error, and no other number.
    with pytest.raises(PlanError, match="more than 4,611,686,018,427,387,904 rows"):
        counted(15)


def test_order_and_slices_are_the_same_everywhere() -> None:
    ordered = alg.OrderRows(alg.LeftJoin(P, Q), (alg.RowOrder("v", descending=True),))
    assert rows(ordered)[:3] == ["a d five", "d d five", "a d 1960"]
    assert rows(alg.SliceRows(alg.Project(ordered, (("x", "x"),)), 1, 2)) == ["d", "a"]
    assert rows(alg.SliceRows(P, 3, 2)) == ["b a", "b c"]
    missing = alg.LeftJoin(alg.EntityRows("y", ByName(("a", "city"))), Q)
    assert rows(alg.OrderRows(missing, (alg.RowOrder("v"),))) == ["a 5", "city "]
    assert rows(alg.OrderRows(missing, (alg.RowOrder("v", first=True),))) == ["city ", "a 5"]


def test_expressions_filter_extend_and_unwind() -> None:
    same = ex.Comparison("=", ex.Variable("x"), ex.Variable("y"))
    assert rows(alg.Filter(P, same)) == ["d d"]
    assert rows(alg.Extend(alg.Filter(P, ex.Not(same)), "z", ex.Variable("y")))[0] == "a b b"
    assert rows(alg.Unwind(alg.Pattern(()), "i", ex.ListOf((ex.Constant(7), ex.Constant("b"))), "at")) == ["7 0", "b 1"]
    assert rows(alg.WhereRows(Q, "v", Compare(">", Quantity(3)))) == ["a 5", "b 5"]
    assert rows(alg.DistinctRows(alg.Project(P, (("z", "x"),)))) == ["a", "b", "c", "d"]
    assert rows(alg.UnionAll((alg.Project(P, (("y", "x"),)), Q)))[:3] == ["a 5", "a ", "a "]


def test_bridges_lead_back_to_sets() -> None:
    assert answer(alg.EntitiesOf(Q, "y")).texts == ["a", "b", "c", "d"]
    assert len(answer(alg.FactsOf(alg.Pattern((size(X, None, statement=V("s")),)), "s")).evidence) == 5
    among = alg.FactsOf(alg.Pattern((knows(A, Y, statement=V("s")),)), "s")
    assert rows(alg.Pattern((knows(among=among),))) == ["a b", "a b", "a d"]


# -- evidence and bounds ---------------------------------------------------------------------------

PLANS: list[Any] = [
    P,
    alg.Pattern((knows(), knows(Y, Z), knows(Z, X))),
    alg.Pattern((knows(), knows(Y, Z)), different=True),
    alg.Pattern((knows(),), (alg.MembershipPattern(X, V("c")),)),
    alg.Pattern((knows(A, Y, qualifiers=(alg.QualifierPattern("since", V("q")),)),)),
    alg.Join(P, Q),
    alg.LeftJoin(P, Q),
    alg.SemiJoin(P, alg.Pattern((knows(Y, Y),))),
    alg.AntiJoin(P, alg.Pattern((size(Y, None, condition=Compare("=", Quantity(5))),))),
    alg.MinusRows(P, alg.Pattern((size(Y, None, condition=Compare("=", Quantity(5))),))),
    alg.MarkJoin(P, alg.Pattern((knows(Y, Y),)), "m"),
    alg.UnionAll((P, Q)),
    alg.Filter(Q, ex.Comparison(">", ex.Variable("v"), ex.Constant(3))),
    alg.Filter(alg.Project(P, (("x", "x"),)), ex.Not(ex.IsNull(ex.Property(ex.Variable("x"), "size")))),
    alg.Extend(P, "s", ex.Property(ex.Variable("x"), "size")),
    alg.WhereRows(Q, "v", Compare("=", Quantity(5))),
    alg.BoundRows(alg.LeftJoin(P, Q), ("v",)),
    alg.Unwind(P, "i", ex.ListOf((ex.Variable("x"), ex.Variable("y")))),
    alg.DistinctRows(alg.Project(P, (("x", "x"),))),
    alg.GroupRows(P, ("x",), (alg.RowAggregate("n", "count"),)),
    alg.OrderRows(P, (alg.RowOrder("y"),)),
    alg.SliceRows(P, 1, 2),
    alg.Rows(("x",), ((Ref("a"),),)),
    alg.EntityRows("x", A),
    alg.EntitiesOf(P, "y"),
    alg.FactsOf(alg.Pattern((size(X, None, statement=V("s")),)), "s"),
    alg.Path(None, A, HOP, Y),
    alg.Path(None, X, HOP, Y, 0),
    alg.Path(None, A, HOP, Y, 1, 3, "trails", V("p")),
    alg.Path(None, X, HOP, Y, 1, None, "shortest", V("p")),
]


def test_every_operator_is_among_the_plans() -> None:
    from condgraph.engine.algebra.tables import SolutionTable

    assert {type(plan).__name__ for plan in PLANS} | {"Project"} == set(SolutionTable.__annotations__)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: type(plan).__name__)
def test_evidence_proves_the_rows(plan: Any) -> None:
    found = answer(plan)
    assert found.values
    checked = found.check()
    assert checked, str(checked)
    assert optimise(plan)[0] == plan
    assert found.trace
    assert found.explain()
    assert len(found.to_arrow()) == len(found.values)
    if isinstance(plan, Solutions):
        assert len(found.evidence_of(0)) <= len(found.evidence)


def test_a_row_has_evidence_of_its_own() -> None:
    (one,) = answer(P).evidence_of(3)
    assert (one.subject.name, one.object) == ("b", condgraph.Entity("a", "a"))


def test_a_product_names_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowset, "MAX_ROWS", 50)
    with pytest.raises(PlanError, match=r"8 rows of x, y with 8 rows of z, w, which share no variable"):
        answer(alg.Pattern((knows(), knows(Z, V("w")))))
    with pytest.raises(PlanError, match="share no variable"):
        answer(alg.Join(P, alg.Pattern((knows(Z, V("w")),))))
    apart = alg.Pattern((knows(Z, V(" 1")), knows()))
    with pytest.raises(PlanError, match="8 rows of z with 8 rows of x, y, which"):
        answer(apart)
    # On servers it ends at the deadline, which names them as well.
    with pytest.raises(DeadlineError, match="z and x, y share no variable"), naming_products(alg.DistinctRows(apart)):
        raise DeadlineError("too long")
    assert product_in(alg.Pattern((knows(), knows(Z, V("y"))))) is None


def test_trails_end_at_their_deadline() -> None:
    made = condgraph.open()
    made.add([Statement(f"{one}", "r", Ref(f"{other}")) for one in range(12) for other in range(12)])
    run = Run(made.current)
    with pytest.raises(DeadlineError), within(0.3):
        run.execute(alg.Path(None, ByName(("0",)), (alg.Hop(None),), Y, 1, None, "trails"))


def test_operators_are_counted_by_themselves() -> None:
    graph = condgraph.open()
    graph.add([*(Statement(f"e{i}", "size", Quantity(i)) for i in range(200)), Statement("e1", "knows", Ref("e2"))])
    sizes = alg.Pattern((alg.StatementPattern(alg.Variable("e"), ("size",), alg.Variable("size")),))
    known = alg.Pattern((alg.StatementPattern(alg.Variable("e"), ("knows",), alg.Variable("friend")),))
    assert count(graph.current, [alg.Join(known, sizes), sizes, known]) == [1, 200, 1]


def test_rows_are_joined_column_by_column_within_the_deadline() -> None:
    scope = Run(graph()).scope
    rows = rowset.RowSet(scope, 2, {"x": rowset.Terms.unbound(2)})
    assert rowset.concatenated([rows, rows], ["x"], scope).size == 4
    with pytest.raises(DeadlineError), within(1e-9):
        rowset.concatenated([rows, rows], ["x"], scope)
