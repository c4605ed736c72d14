"""What becomes of each operator and each test on Neo4j, as one table.

`supported` runs in the query. `lowered` needs code of the client: the one query then fetches the
statements that the plan rests on, as far as the server can narrow them, and the same code as in
process finishes it. `last` runs in the query where it ends the plan, and is lowered elsewhere. A
test holds the table against the algebra.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node, postorder


class Support(NamedTuple):
    """What becomes of an operator, and why where it does not run in the query."""

    how: Literal["supported", "lowered", "last"]
    why: str = ""


_YES: Final = Support("supported")
#: Every operator and test of the algebra.
SUPPORT: Final[dict[type[Node] | type[Condition], Support]] = {
    **dict.fromkeys(
        (
            *(alg.AllEntities, alg.ById, alg.ByName, alg.Members, alg.Union, alg.Intersect, alg.Minus, alg.Neighbour, alg.Reached),
            *(alg.SubjectsOf, alg.Referents, alg.SameName, alg.ArgExtreme),
            *(alg.Scan, alg.Where, alg.WhereQualifier, alg.During, alg.DuringAny, alg.WhereValidity, alg.OtherEnd),
            *(alg.Objects, alg.Qualifiers, alg.Validity, alg.Predicates, alg.QualifierKeys, alg.Names, alg.RowNumbers),
            *(alg.FilterValues, alg.Distinct, alg.Concat, alg.Extreme, alg.Nth, alg.Clip, alg.Bound, alg.Shown, alg.Constants),
            *(alg.AnySatisfies, alg.Exists),
            *(alg.Compare, alg.AnyOf, alg.AllOf, alg.Among, alg.Equals, alg.Versus, alg.Not),
        ),
        _YES,
    ),
    alg.Count: Support("supported", "of times that were cut, whose texts the client makes, it is lowered"),
    alg.Mode: Support("supported", "of times that were cut, whose texts the client makes, it is lowered"),
    alg.Choose: Support("supported", "where the test is a function of the client, it is lowered"),
    alg.Sum: Support("lowered", "sums are exactly rounded, and a server's depend on the order of rows"),
    alg.Mean: Support("lowered", "means are exactly rounded, and a server's depend on the order of rows"),
    alg.Median: Support("last", "the query gives the middle one or two, whose mean the client rounds exactly"),
    **dict.fromkeys(
        (alg.Group, alg.Having, alg.Order, alg.Limit),
        Support("lowered", "sums are exactly rounded, and in each group the most frequent unit counts"),
    ),
    alg.Apply: Support("lowered", "native functions are Python"),
    alg.External: Support("lowered", "a function from outside is called by the client"),
}


def lowered(plan: Node, *, ends: bool = True) -> set[int]:
    """The operators (by identity) that the query cannot give: those that are lowered, and all that
    take one of them. `ends` is whether the query ends with the plan.
    """
    found: set[int] = set()
    textless: set[int] = set()
    for node in postorder(plan):
        inputs = [id(child) for child in node.inputs()]
        carries = isinstance(node, alg.Values) and node.facets.carries
        if carries and (node.facets.alters or not textless.isdisjoint(inputs)):
            textless.add(id(node))
        by_text = isinstance(node, (alg.Count, alg.Mode, alg.Median)) and not textless.isdisjoint(inputs)
        how = SUPPORT[type(node)].how
        if how == "lowered" or (how == "last" and not (ends and node is plan)) or by_text or not found.isdisjoint(inputs):
            found.add(id(node))
    return found
