"""How many rows an operator is likely to give, from what the schema counts: what the compiler
chooses between texts by.

The server's planner knows how many nodes a label has, and not that a concept has 26 members or that
a predicate leads to 2,000 subjects from one object; the schema does. An estimate only chooses among
texts that mean the same, so a bad one costs time alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node
from condgraph.engine.values import Time

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema

#: Of what nothing is known, and of every entity.
_SOME: Final = 100.0
_EVERY: Final = 1e6
#: The part of statements that a test of equality leaves, one of more or less, one on a qualifier,
#: one on the validity.
_EQUAL: Final = 0.02
_RANGE: Final = 0.4
_QUALIFIER: Final = 0.1
_TIME: Final = 0.3


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
            found = self._rows[id(node)] = self._estimate(node)
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

    def _estimate(self, node: Node) -> float:
        if isinstance(node, alg.ByName):
            return float(len(node.names))
        if isinstance(node, alg.ById):
            return float(len(node.ids))
        if isinstance(node, alg.AllEntities):
            return _EVERY if node.source is None else _SOME
        if isinstance(node, alg.Members):
            return min(self.members(node), _EVERY)
        if isinstance(node, alg.Scan):
            return self._scan(node)
        if isinstance(node, alg.Where):
            kept = share(node.condition) if not isinstance(node.condition, alg.Among) else self._met(node)
            return self.rows(node.facts) * kept
        if isinstance(node, alg.WhereQualifier | alg.WhereValidity):
            return self.rows(node.facts) * _QUALIFIER
        if isinstance(node, alg.During | alg.DuringAny):
            return self.rows(node.facts) * _TIME
        if isinstance(node, alg.ArgExtreme | alg.Nth | alg.Extreme):
            return 1.0
        inputs = [self.rows(child) for child in node.inputs()]
        if isinstance(node, alg.Intersect):
            return min(inputs)
        if isinstance(node, alg.Union | alg.Concat):
            return sum(inputs)
        return inputs[0] if inputs else _SOME

    def _scan(self, node: alg.Scan) -> float:
        # How many of them a source has is not known.
        statements = self.statements(node) if node.source is None else min(self.statements(node), _SOME)
        if node.of is None:
            return statements
        if node.predicates is None:
            return min(self.rows(node.of) * 20.0, _EVERY)
        outward = node.anchor == "subject"
        degrees = [self._schema.degrees.get(name, (4.0, 40.0)) for name in node.predicates if self._schema.has_relation(name)]
        each = sum(degree[0 if outward else 1] for degree in degrees) if node.family != "attribute" or not outward else 0.0
        if outward and node.family != "relation":
            each += sum(self._schema.has_attribute(name) for name in node.predicates)
        return min(self.rows(node.of) * each, statements)

    def _met(self, node: alg.Where) -> float:
        """The part of facts whose object is among some entities."""
        assert isinstance(node.condition, alg.Among)
        return min(1.0, self.rows(node.condition.entities) / 100.0)


def share(test: Condition) -> float:
    """The part of values that a test leaves."""
    if isinstance(test, alg.Compare):
        if test.operator == "=":
            # A year is a wider net than a day.
            return _EQUAL if isinstance(test.value, Time) else _EQUAL / 4
        return 1.0 if test.operator == "!=" else _RANGE
    if isinstance(test, alg.AnyOf):
        return min(1.0, sum(map(share, test.conditions)))
    if isinstance(test, alg.AllOf):
        return min(map(share, test.conditions), default=1.0)
    return _RANGE
