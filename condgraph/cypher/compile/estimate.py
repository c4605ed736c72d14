"""How many rows an operator is likely to give, from what the schema counts. The compiler chooses
between texts by it.

The server's planner knows how many nodes a label has, and not that a concept has 26 members or that
a predicate leads to 2,000 subjects from one object; the schema does. An estimate only chooses among
texts that mean the same, so a bad one costs time alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node
from condgraph.engine.algebra.tables import ConditionTable, EntityTable, FactTable, ScalarTable, ValueTable, by_type
from condgraph.engine.values import Time

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema

#: Rows of something unknown, and of every entity.
_SOME: Final = 100.0
_EVERY: Final = 1e6
#: The part of statements that a test of equality leaves, one of more or less, one on a qualifier,
#: one on the validity.
_EQUAL: Final = 0.02
_RANGE: Final = 0.4
_QUALIFIER: Final = 0.1
_TIME: Final = 0.3
#: How many relations the subject of one has, and the object, where the schema does not say.
_DEGREES: Final = (4.0, 40.0)


class Estimates:
    """Estimates of the operators of some plans, each made once."""

    def __init__(self, schema: StoredSchema) -> None:
        self._schema = schema
        self._rows: dict[int, float] = {}
        self._kept: list[Node] = []

    def rows(self, node: Node) -> float:
        """How many entities, facts or values an operator gives."""
        found = self._rows.get(id(node))
        if found is None:
            found = self._rows[id(node)] = _BY_TYPE[type(node)](self, node)
            # Held on to, so that no other operator gets its identity.
            self._kept.append(node)
        return found

    def statements(self, node: alg.Scan) -> float:
        """How many statements there are of the predicates of a scan, whatever it starts from."""
        if node.predicates is None:
            return _EVERY
        schema, total = self._schema, 0
        for name in node.predicates:
            if node.family != "relation" and node.anchor == "subject":
                total += sum(schema.attribute_kinds(name).values())
            if node.family != "attribute":
                total += schema.sizes.get(name, 0)
        return float(total)

    def members(self, node: Node) -> float:
        """How many entities the concepts of some names hold; infinite where the concepts have no
        names here.
        """
        if not isinstance(node, alg.Members) or not isinstance(node.concepts, alg.ByName):
            return float("inf")
        return float(sum(self._schema.members.get(name, 0) for name in node.concepts.names))

    def degree(self, node: alg.Scan) -> float:
        """How many statements one of the entities has that a scan of some predicates starts from."""
        schema, names, each = self._schema, node.predicates or (), 0.0
        outward = node.anchor == "subject"
        if node.family != "attribute" or not outward:
            each += sum(schema.degrees.get(name, _DEGREES)[0 if outward else 1] for name in names if schema.has_relation(name))
        if outward and node.family != "relation":
            each += sum(schema.has_attribute(name) for name in names)
        return each


def _first(estimates: Estimates, node: Node) -> float:
    """As many as what it takes, or takes first."""
    inputs = node.inputs()
    return estimates.rows(inputs[0]) if inputs else _SOME


def _one(estimates: Estimates, node: Node) -> float:
    return 1.0


def _least(estimates: Estimates, node: Node) -> float:
    return min(map(estimates.rows, node.inputs()))


def _sum(estimates: Estimates, node: Node) -> float:
    return sum(map(estimates.rows, node.inputs()))


def _all(estimates: Estimates, node: alg.AllEntities) -> float:
    return _EVERY if node.source is None else _SOME


def _members(estimates: Estimates, node: alg.Members) -> float:
    return min(estimates.members(node), _EVERY)


def _scan(estimates: Estimates, node: alg.Scan) -> float:
    statements = estimates.statements(node)
    if node.source is not None:
        # How many of them a source has is not known.
        statements = min(statements, _SOME)
    if node.of is None:
        return statements
    if node.predicates is None:
        return min(estimates.rows(node.of) * 20.0, _EVERY)
    return min(estimates.rows(node.of) * estimates.degree(node), statements)


def _where(estimates: Estimates, node: alg.Where) -> float:
    test = node.condition
    kept = min(1.0, estimates.rows(test.entities) / 100.0) if isinstance(test, alg.Among) else share(test)
    return estimates.rows(node.facts) * kept


def _where_qualifier(estimates: Estimates, node: alg.WhereQualifier | alg.WhereValidity) -> float:
    return estimates.rows(node.facts) * _QUALIFIER


def _during(estimates: Estimates, node: alg.During | alg.DuringAny) -> float:
    return estimates.rows(node.facts) * _TIME


_ENTITIES: Final[EntityTable[Estimates, [], float]] = {
    "AllEntities": _all,
    "ById": lambda estimates, node: float(len(node.ids)),
    "ByName": lambda estimates, node: float(len(node.names)),
    "Members": _members,
    "Union": _sum,
    "Intersect": _least,
    "Minus": _first,
    "Neighbour": _first,
    "Reached": _first,
    "SubjectsOf": _first,
    "Referents": _first,
    "SameName": _first,
    "ArgExtreme": _one,
}
_FACTS: Final[FactTable[Estimates, [], float]] = {
    "Scan": _scan,
    "Where": _where,
    "WhereQualifier": _where_qualifier,
    "During": _during,
    "DuringAny": _during,
    "WhereValidity": _where_qualifier,
    "OtherEnd": _first,
}
_VALUES: Final[ValueTable[Estimates, [], float]] = {
    "Objects": _first,
    "Qualifiers": _first,
    "Validity": _first,
    "Predicates": _first,
    "QualifierKeys": _first,
    "Names": _first,
    "RowNumbers": _first,
    "FilterValues": _first,
    "Distinct": _first,
    "Concat": _sum,
    "Extreme": _one,
    "Mode": _first,
    "Nth": _one,
    "Clip": _first,
    "Bound": _first,
    "Choose": _first,
    "Shown": _first,
    "Constants": _first,
    "Apply": _first,
    "External": _first,
}
_SCALARS: Final[ScalarTable[Estimates, [], float]] = {
    "Count": _first,
    "Sum": _first,
    "Mean": _first,
    "Median": _first,
    "AnySatisfies": _first,
    "Exists": _first,
}
_BY_TYPE: Final = {**by_type(_ENTITIES), **by_type(_FACTS), **by_type(_VALUES), **by_type(_SCALARS)}


def share(test: Condition) -> float:
    """The part of values that a test leaves."""
    return _SHARES[type(test)](None, test)


def _compared(_: None, test: alg.Compare) -> float:
    if test.operator == "=":
        # A year is a wider net than a day.
        return _EQUAL if isinstance(test.value, Time) else _EQUAL / 4
    return 1.0 if test.operator == "!=" else _RANGE


def _any_of(_: None, test: alg.AnyOf) -> float:
    return min(1.0, sum(map(share, test.conditions)))


def _all_of(_: None, test: alg.AllOf) -> float:
    return min(map(share, test.conditions), default=1.0)


def _some(_: None, test: Condition) -> float:
    return _RANGE


_CONDITIONS: Final[ConditionTable[None, [], float]] = {
    "Compare": _compared,
    "AnyOf": _any_of,
    "AllOf": _all_of,
    "Among": _some,
    "Equals": _some,
    "Versus": _some,
    "Not": _some,
}
_SHARES: Final = by_type(_CONDITIONS)
