"""What becomes of each operator and each test on Neo4j, as one table.

`supported` runs in the query. `lowered` needs code of the client: the one query then fetches the statements that the plan rests on,
as far as the server can narrow them, and the same code as in process finishes it. A test holds the table against the algebra.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, Test, postorder


class Support(NamedTuple):
    """What becomes of an operator, and why where it does not run in the query."""

    how: Literal["supported", "lowered"]
    why: str = ""


_YES: Final = Support("supported")
#: Every operator and test of the algebra.
SUPPORT: Final[dict[type[Node] | type[Test], Support]] = {
    **dict.fromkeys(
        (
            *(alg.Every, alg.Known, alg.Named, alg.Members, alg.Union, alg.Intersect, alg.Minus, alg.Neighbour, alg.Reached),
            *(alg.Holders, alg.Referents, alg.Namesakes, alg.Best),
            *(alg.Scan, alg.Where, alg.WhereQualifier, alg.During, alg.DuringAny, alg.WhereValidity, alg.Turn),
            *(alg.Objects, alg.Qualifiers, alg.Validity, alg.Predicates, alg.QualifierKeys, alg.Names, alg.RowNumbers),
            *(alg.Keep, alg.Distinct, alg.Concat, alg.Extreme, alg.Nth, alg.Clip, alg.Bound, alg.Shown, alg.Given),
            *(alg.Some, alg.Exists),
            *(alg.Compare, alg.AnyOf, alg.AllOf, alg.Among, alg.Equals, alg.Versus, alg.Not),
        ),
        _YES,
    ),
    alg.Count: Support("supported", "of times that were cut, whose texts the client makes, it is lowered"),
    alg.Mode: Support("supported", "of times that were cut, whose texts the client makes, it is lowered"),
    alg.Choose: Support("supported", "where the test is a function of the client, it is lowered"),
    alg.Sum: Support("lowered", "sums are exactly rounded, and a server's depend on the order of rows"),
    alg.Mean: Support("lowered", "means are exactly rounded, and a server's depend on the order of rows"),
    alg.Apply: Support("lowered", "native functions are Python"),
    alg.External: Support("lowered", "a function from outside is called by the client"),
}
_CUT: Final = (alg.Clip, alg.Bound)
_HANDS_ON: Final = (alg.Keep, alg.Distinct, alg.Concat, alg.Extreme, alg.Nth, alg.Choose, alg.Shown, *_CUT)


def lowered(plan: Node) -> set[int]:
    """The operators (by identity) that the query cannot give: those that are lowered, and all that take one of them."""
    found: set[int] = set()
    textless: set[int] = set()
    for node in postorder(plan):
        inputs = [id(child) for child in node.inputs()]
        if isinstance(node, _CUT) or (isinstance(node, _HANDS_ON) and not textless.isdisjoint(inputs)):
            textless.add(id(node))
        by_text = isinstance(node, (alg.Count, alg.Mode)) and not textless.isdisjoint(inputs)
        if SUPPORT[type(node)].how == "lowered" or by_text or not found.isdisjoint(inputs):
            found.add(id(node))
    return found
