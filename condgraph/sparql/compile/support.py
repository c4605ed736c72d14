"""What SPARQL makes of each operator: the table that a test holds against the algebra.

"supported" operators are patterns of the query wherever they stand. "lowered" ones are finished by
the client, in the engine's own code, on what the query gathers (`gather`); those with a reason in
brackets are patterns where that does not apply.
"""

from __future__ import annotations

from typing import Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node

_BAG: Final = "lowered: a bag is worked out from the statements that carry it"
_TABLE: Final = "lowered: a table is worked out from the rows of its groups"
ANSWERS: Final[dict[type[Node], str]] = {
    alg.AllEntities: "supported",
    alg.ById: "supported",
    alg.ByName: "supported",
    alg.Members: "supported",
    alg.Union: "supported",
    alg.Intersect: "supported",
    alg.Minus: "supported",
    alg.Neighbour: "supported",
    alg.Reached: "supported",
    alg.SameName: "supported",
    alg.ArgExtreme: "supported",
    alg.Scan: "supported",
    alg.Where: "supported (lowered: tests with the values of another step)",
    alg.WhereQualifier: "supported (lowered: tests with the values of another step)",
    alg.WhereValidity: "supported (lowered: tests with the values of another step)",
    alg.During: "supported",
    alg.OtherEnd: "supported",
    alg.DuringAny: "lowered: the times of another step decide",
    alg.SubjectsOf: "lowered: from a bag to the subjects of its carriers",
    alg.Referents: "lowered: from a bag to entities, also by their names",
    alg.Names: "supported at the end of a program, else lowered",
    alg.Objects: "supported at the end of a program, each value once, else lowered",
    alg.Qualifiers: "supported at the end of a program, each value once, else lowered",
    alg.Predicates: "supported at the end of a program, each value once, else lowered",
    alg.Distinct: "supported at the end of a program, else lowered",
    alg.Count: "supported of entities, else lowered: texts are counted as they are shown",
    alg.AnySatisfies: "supported",
    alg.Exists: "supported",
    alg.Validity: _BAG,
    alg.QualifierKeys: _BAG,
    alg.RowNumbers: _BAG,
    alg.FilterValues: _BAG,
    alg.Concat: _BAG,
    alg.Constants: _BAG,
    alg.Nth: _BAG,
    alg.Clip: _BAG,
    alg.Bound: _BAG,
    alg.Shown: _BAG,
    alg.Extreme: _BAG,
    alg.Mode: _BAG,
    alg.Sum: "lowered: sums are exactly rounded, which no store's are",
    alg.Mean: "lowered: means are exactly rounded, which no store's are",
    alg.Median: "lowered: SPARQL has no place in an order, and its means are not exactly rounded",
    alg.Group: "lowered: sums are exactly rounded, and in each group the most frequent unit counts",
    alg.Having: _TABLE,
    alg.Order: _TABLE,
    alg.Limit: _TABLE,
    alg.Apply: "lowered: the engine's native functions",
    alg.Choose: "lowered: one of two bags",
    alg.External: "lowered: the function is the client's",
}
