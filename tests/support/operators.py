"""One plan for every operator and condition of the algebra, over a small graph with data for each.

`tests/engine/test_every_operator.py` fails for a new operator until it has an example here.
"""

from __future__ import annotations

import sys
from dataclasses import is_dataclass
from typing import Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node
from condgraph.engine.algebra import grouped as ex
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Sourced, Statement
from condgraph.engine.values import Quantity, Time
from tests.support.world import items

#: The three consecutive rows of a table: id, amount, number.
ROWS: Final = [("r1", 10, 1), ("r2", 20, 2), ("r3", 20, 3)]


def graph() -> list[Item]:
    """Return the items of `world` and of a table."""
    result: list[Item] = [*items()]
    for row_id, amount, row in ROWS:
        result.append(Sourced(Entity(row_id, f"sales, row {row}", EntityKind.ROW, row), (("sales", row),)))
        result.append(Sourced(Statement(row_id, "amount", Quantity(amount)), (("sales", row),)))
        result.append(Sourced(Statement(row_id, "who", Ref("a" if row < 3 else "b")), (("sales", row),)))
    result.append(Member("b2", "human"))
    return result


def _sizes(name: str, arguments: list[list[str]], options: dict[str, str]) -> list[str]:
    return [f"{len(texts)} {name}" for texts in arguments]


ANN: Final = alg.ByName(("Ann",))
BO: Final = alg.ByName(("Bo",))
ALL: Final = alg.AllEntities()
HUMANS: Final = alg.Members(alg.ById(("human",)))
PEOPLE: Final = alg.Members(alg.ById(("person",)))
KNOWS: Final = alg.Scan(ANN, ("knows",), "subject", "object", "relation")
HEIGHTS: Final = alg.Scan(ALL, ("height",), family="attribute")
BORN: Final = alg.Scan(ALL, ("born",), family="attribute")
TALL: Final = alg.Objects(HEIGHTS)
AMOUNTS: Final = alg.Objects(alg.Scan(ALL, ("amount",), family="attribute"))
TABLE: Final = alg.AllEntities((EntityKind.ROW,), "sales")
TWENTY: Final = alg.Reached(alg.Where(alg.Scan(TABLE, ("amount",)), alg.Compare("=", Quantity(20))))
OVER: Final = alg.Compare(">", Quantity(1.8, "metre"))

WHO: Final = alg.Scan(TABLE, ("who",), "subject", "object", "relation")
AMOUNT: Final = alg.Scan(TABLE, ("amount",), family="attribute")
_WHO, _AMOUNT = ex.ValuePath("who", (0,), 0), ex.ValuePath("amount", (1,), 1)
GROUPED: Final = alg.Group(
    TABLE,
    (WHO, AMOUNT),
    (alg.Objects(WHO), alg.Objects(AMOUNT)),
    (ex.Key("who", _WHO),),
    (ex.Measure("sum", "sum", _AMOUNT), ex.Measure("best", "top", _AMOUNT, 1), ex.Measure("count()", "count")),
    ex.CellTest(ex.Computed("*", (_AMOUNT, ex.GivenValue(Quantity(2)))), ">", (Quantity(1),)),
    1,
)

OPERATORS: Final[tuple[Node, ...]] = (
    ALL,
    alg.ById(("a", "b2")),
    BO,
    PEOPLE,
    alg.Union((ANN, HUMANS)),
    alg.Intersect((PEOPLE, BO)),
    alg.Minus(alg.ById(("a", "b")), alg.Reached(KNOWS)),
    alg.Neighbour(alg.ById(("r3",)), -1),
    alg.Reached(KNOWS),
    alg.SubjectsOf(TALL),
    alg.Referents(alg.Constants(("Bo", "Ann"))),
    alg.SameName(alg.ById(("b",))),
    alg.ArgExtreme(ALL, "height", "largest"),
    KNOWS,
    alg.Where(HEIGHTS, OVER),
    alg.WhereQualifier(KNOWS, "since", alg.Compare("=", Time.year(1999))),
    alg.During(HEIGHTS, "from", Time.year(1980)),
    alg.DuringAny(HEIGHTS, "from", alg.Objects(BORN)),
    alg.WhereValidity(HEIGHTS, "start", alg.Compare(">", Time.year(1980))),
    alg.OtherEnd(KNOWS, "subject"),
    TALL,
    alg.Qualifiers(KNOWS, None),
    alg.Validity(HEIGHTS, "start"),
    alg.Predicates(alg.Scan(ANN, None)),
    alg.QualifierKeys(KNOWS),
    alg.Names(PEOPLE),
    alg.RowNumbers(TWENTY),
    alg.FilterValues(TALL, OVER),
    alg.Distinct(AMOUNTS),
    alg.Concat((AMOUNTS, TALL)),
    alg.Extreme(AMOUNTS, "smallest"),
    alg.Mode(AMOUNTS, "largest"),
    alg.Nth(AMOUNTS, 0, "ascending"),
    alg.Clip(alg.Constants((Time.parse("1979/1981"),)), ">", alg.Objects(BORN)),
    alg.Bound(alg.Objects(BORN), "end"),
    alg.Choose(alg.Exists(alg.Scan(BO, ("through",))), AMOUNTS, TALL),
    alg.Shown(alg.Objects(alg.Scan(TWENTY, ("amount",))), TWENTY),
    alg.Constants(("red", Quantity(3))),
    alg.Apply("add", (alg.Constants((Quantity(1),)), alg.Count(alg.Reached(KNOWS)))),
    alg.External("values", _sizes, (AMOUNTS,), about=(KNOWS,)),
    alg.Count(PEOPLE),
    alg.Sum(AMOUNTS),
    alg.Mean(AMOUNTS),
    alg.Median(AMOUNTS),
    alg.Deviation(AMOUNTS),
    alg.AnySatisfies(TALL, OVER),
    alg.Exists(KNOWS),
    GROUPED,
    alg.Having(GROUPED, ex.NotTest(ex.CellTest(3, "=", (Quantity(2),)))),
    alg.Order(GROUPED, (ex.OrderBy(1, descending=True), ex.OrderBy(0))),
    alg.Limit(alg.Order(GROUPED, (ex.OrderBy(1),)), 1, 1, ties=True),
)

CONDITIONS: Final[tuple[Condition, ...]] = (
    OVER,
    alg.AnyOf((OVER, alg.Compare("=", Quantity(1.7, "metre")))),
    alg.AllOf((OVER, alg.Compare("<", Quantity(2, "metre")))),
    alg.Among(BO),
    alg.Equals(alg.Constants((Quantity(1.7, "metre"),))),
    alg.Versus("<", alg.Constants((Quantity(1.8, "metre"),))),
    alg.Not(OVER),
)


def asked(condition: Condition) -> Node:
    """Return a plan that tests statements with the condition."""
    statements = alg.Scan(None, ("knows",), reach="object") if isinstance(condition, alg.Among) else HEIGHTS
    return alg.Where(statements, condition)


def of_algebra(sort: type) -> set[type]:
    """Return all operators of a sort (or all conditions): its subclasses in the algebra."""
    result, waiting = set[type](), [sort]
    while waiting:
        subclasses = waiting.pop().__subclasses__()
        waiting.extend(subclasses)
        # A dataclass with slots is a second class of the same name; its module has that one.
        result.update(getattr(sys.modules[kind.__module__], kind.__name__) for kind in subclasses if _in_algebra(kind))
    return result


def _in_algebra(kind: type) -> bool:
    # Sorts, the base classes of operators, are no dataclasses. Operators over rows have tests of their own (`test_solutions`).
    return (
        kind.__module__.startswith("condgraph.") and kind.__module__ != "condgraph.engine.algebra.solutions" and is_dataclass(kind)
    )
