"""Facts as graph patterns: scans, tests on objects, on qualifiers and on validity.

A fact is the direct triple `<subject> <predicate> <object>` where that is enough, and its statement
node where something hangs on it: qualifiers, validity, a source. A qualifier's triple looks like
the triple of a fact whose subject is a statement, so an entity that nothing else makes an entity is
`loose`, and gets a name before it is given on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.algebra.tables import FactTable, by_type
from condgraph.engine.errors import UnknownNameError, nearest
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, EntityKind
from condgraph.engine.schema import Kinds
from condgraph.engine.values import UNKNOWN_END, UNKNOWN_START, Kind
from condgraph.sparql.compile.conditions import during_filter, test_patterns
from condgraph.sparql.compile.group import FactTerms, Group, Objects, Target, Wanted
from condgraph.sparql.layout import TYPE, VALUE
from condgraph.sparql.literals import integer


class FactPatterns(ABC):
    """The half of the compiler that says facts. Variables are numbered as they come, so that equal
    plans are equal texts.
    """

    def __init__(self, target: Target) -> None:
        self.target, self.iris, self.schema, self.counts = target, target.names, target.schema, target.counts
        #: Whether the client leaves out predicates of the vocabulary.
        self.client_filters = False
        self._variables = 0

    def variable(self, prefix: str) -> str:
        """A fresh variable."""
        self._variables += 1
        return f"?{prefix}{self._variables}"

    @staticmethod
    def group() -> Group:
        """A group without patterns."""
        return Group()

    @abstractmethod
    def entities(self, node: Node, e: str, out: Group) -> bool:
        """Patterns that bind `e` to each entity of a set, some more than once; whether `e` is still
        loose.
        """

    def settle(self, e: str, out: Group) -> None:
        """Make sure that a loose variable is an entity: statements have no names."""
        out.append(f"{e} <pred:name> {self.variable('n')} .")

    def source(self, name: str) -> str:
        """The node of a source; an unknown one is an error."""
        if name not in self.schema.sources:
            raise UnknownNameError("source", name, candidates=nearest(name, self.schema.sources))
        return self.iris.source(name)

    # -- facts -------------------------------------------------------------------------------------

    def facts(self, node: Node, out: Group, *, whole: bool = False, reached: str | None = None) -> FactTerms:
        """Patterns of facts. `whole` binds the statement; `reached` is the variable that the
        reached end is to have.
        """
        subject, thing = (reached, None) if reach_of(node) == "subject" else (None, reached)
        return self.bound(node, out, Wanted(whole, subject, thing))

    def bound(self, node: Node, out: Group, wanted: Wanted) -> FactTerms:
        """The facts, and their statement bound where it is wanted."""
        rows = self.wanted(node, out, wanted)
        out.extend(rows.bind)
        rows.bind.clear()
        return rows

    def wanted(self, node: Node, out: Group, wanted: Wanted) -> FactTerms:
        """The same, for operators that hand on what is asked of them."""
        return _BY_TYPE[type(node)](self, node, out, wanted)

    def scan(self, node: alg.Scan, out: Group, wanted: Wanted) -> FactTerms:
        """The statements of a scan."""
        subject = wanted.subject or self.variable("e")
        thing = wanted.object or self.variable("e" if node.family == "relation" else "v")
        target = subject if node.reach == "subject" else thing
        anchor = subject if node.anchor == "subject" else thing
        # Statements that are fetched whole have all objects, also those that lead nowhere.
        objects = self._objects(node, fetched=wanted.whole and wanted.object is None)
        of = node.of
        whole = wanted.whole or node.source is not None or (node.predicates is None and (of is None or self._all(of)))
        loose = True
        if of is not None and not self._skip(of, node):
            loose = self.entities(of, anchor, out)
        if wanted.among is not None:
            self.entities(wanted.among, thing, out)
        statement, predicate = None, self._predicate(node, out)
        if whole:
            statement = self.variable("f")
            if not predicate.startswith("?"):
                # The direct triple says nothing new, and is where most stores begin.
                out.append(f"{subject} {predicate} {thing} .")
            if not self._every_object_fits(node, objects):
                out.append(self._of_sort(thing, objects))
            rows = FactTerms(subject, predicate, thing, statement, target, objects)
            rows.bind.append(f"{statement} <pred:fact_h> {subject} . {statement} <pred:fact_r> {predicate} .")
            rows.bind.append(f"{statement} <pred:fact_t> {thing} .")
            if node.source is not None:
                rows.bind.append(f"{statement} <pred:source> {self.source(node.source)} .")
            return rows
        out.append(f"{subject} {predicate} {thing} .")
        # Any predicate: a store that does not go on from the union begins at the other end.
        out.apart |= node.predicates is None
        if node.predicates is None and not self.client_filters:
            out.append(f'FILTER(STRSTARTS(STR({predicate}), "{self.iris.base}"))')
        if not self._every_object_fits(node, objects):
            out.append(self._of_sort(thing, objects))
        # The subject may be a statement, where the predicate is a qualifier key as well.
        doubtful = (loose or node.anchor == "object") and self._may_be_key(node)
        if doubtful and node.reach == "object":
            self.settle(subject, out)
            doubtful = False
        return FactTerms(subject, predicate, thing, None, target, objects, loose=doubtful)

    def _objects(self, node: alg.Scan, *, fetched: bool = False) -> Objects:
        """What the objects are: what the scan asks for, or what the predicate is known to have."""
        if node.family == "relation" or node.anchor == "object" or (node.reach == "object" and not fetched):
            return "entity"
        if node.family == "attribute":
            return "value"
        if node.predicates is not None:
            relation = any(map(self.schema.has_relation, node.predicates))
            attribute = any(map(self.schema.has_attribute, node.predicates))
            if relation != attribute:
                return "entity" if relation else "value"
        return "any"

    def _every_object_fits(self, node: alg.Scan, objects: Objects) -> bool:
        """Whether the predicates have objects of no other sort."""
        if objects == "any":
            return True
        if node.predicates is None:
            return False
        other = self.schema.has_attribute if objects == "entity" else self.schema.has_relation
        return not any(map(other, node.predicates))

    def _of_sort(self, thing: str, objects: Objects) -> str:
        sign = "!" if objects == "entity" else ""
        return f' FILTER({sign}STRSTARTS(STR({thing}), "{self.iris.base}{VALUE}"))'

    def _may_be_key(self, node: alg.Scan) -> bool:
        """Whether a triple of these predicates may be a qualifier of a statement."""
        return node.predicates is None or any(self.schema.qualifier_kinds(name) for name in node.predicates)

    def _predicate(self, node: alg.Scan, out: Group) -> str:
        if node.predicates is not None and len(node.predicates) == 1:
            return self.iris.predicate(node.predicates[0])
        p = self.variable("p")
        if node.predicates is not None:
            out.append(f"VALUES {p} {{ {' '.join(map(self.iris.predicate, node.predicates))} }}")
        return p

    @staticmethod
    def _all(of: Node) -> bool:
        """Whether a set is all entities."""
        return (
            isinstance(of, alg.AllEntities) and of.source is None and EntityKind.ENTITY in of.kinds and EntityKind.ROW in of.kinds
        )

    def _skip(self, of: Node, node: alg.Scan) -> bool:
        """Whether every anchor of the scan is one of all entities, so that nothing has to be asked."""
        if not self._all(of):
            return False
        counted = ["concept_objects"] if node.anchor == "object" else ["concept_subjects", "concept_attributes"]
        if node.family != "any" and node.anchor == "subject":
            counted = ["concept_subjects" if node.family == "relation" else "concept_attributes"]
        return not any(self.counts.get(name, 1) for name in counted)

    def where(self, node: alg.Where, out: Group, wanted: Wanted) -> FactTerms:
        """Facts whose object satisfies the test."""
        if isinstance(node.condition, alg.Among):
            thing = wanted.object or self.variable("e")
            if wanted.among is not None:
                self.entities(node.condition.entities, thing, out)
                rows = self.wanted(node.facts, out, replace(wanted, object=thing))
            else:
                rows = self.wanted(node.facts, out, replace(wanted, object=thing, among=node.condition.entities))
            if (sort := self._of_sort(rows.object, "entity")) in out:
                out.remove(sort)
            rows.objects = "entity"
            return rows
        rows = self.wanted(node.facts, out, wanted)
        out.extend(test_patterns(self, node.condition, rows.object, rows.objects, self.kinds(node.facts)))
        return rows

    def kinds(self, node: Node) -> Kinds | None:
        """The types and units that the objects of facts may have; None where it is not known."""
        while isinstance(node, alg.Facts) and (inner := alg.passed(node)) is not None:
            node = inner
        if not isinstance(node, alg.Scan) or node.predicates is None:
            return None
        found: dict[tuple[Kind, str], int] = {}
        for name in node.predicates:
            found.update(self.schema.attribute_kinds(name))
        return found

    def where_qualifier(self, node: alg.WhereQualifier, out: Group, wanted: Wanted) -> FactTerms:
        """Facts of which some qualifier satisfies the test."""
        rows = self.bound(node.facts, out, replace(wanted, whole=True))
        q = self.variable("q")
        kinds = self.schema.qualifier_kinds(node.key)
        out.append(f"{rows.statement} {self.iris.predicate(node.key)} {q} .")
        if isinstance(node.condition, alg.Among):
            self.entities(node.condition.entities, q, out)
            return rows
        entity = any(kind is Kind.ENTITY for kind, _ in kinds)
        value = any(kind is not Kind.ENTITY for kind, _ in kinds)
        objects: Objects = "any" if entity == value else "entity" if entity else "value"
        out.extend(test_patterns(self, node.condition, q, objects, kinds))
        return rows

    def during(self, node: alg.During, out: Group, wanted: Wanted) -> FactTerms:
        """Facts whose validity stands in the relation to an interval."""
        rows = self.bound(node.facts, out, replace(wanted, whole=True))
        a, b = self.variable("a"), self.variable("b")
        out.append(f"{rows.statement} <pred:valid_start> {a} . {rows.statement} <pred:valid_end> {b} .")
        out.append(f"FILTER({during_filter(node.relation, a, b, integer(node.interval.start), integer(node.interval.end))})")
        return rows

    def where_validity(self, node: alg.WhereValidity, out: Group, wanted: Wanted) -> FactTerms:
        """Facts whose start or end, as its qualifiers have it, satisfies the test; a point in time
        is both.
        """
        rows = self.bound(node.facts, out, replace(wanted, whole=True))
        q, p, a, b = (self.variable(prefix) for prefix in "qpab")
        keys = [self.iris.predicate(name) for name in (START_TIME if node.part == "start" else END_TIME, POINT_IN_TIME)]
        out.append(f"VALUES {p} {{ {' '.join(keys)} }} {rows.statement} {p} {q} . {q} {TYPE} <pred:Time> .")
        out.append(f"{rows.statement} <pred:valid_start> {a} . {rows.statement} <pred:valid_end> {b} .")
        # Bounds in the wrong order are unknown, whatever the qualifiers say.
        out.append(f"FILTER({a} != {integer(UNKNOWN_START)} || {b} != {integer(UNKNOWN_END)})")
        out.extend(test_patterns(self, node.condition, q, "value", {(Kind.TIME, "1"): 1}))
        return rows

    def turn(self, node: alg.OtherEnd, out: Group, wanted: Wanted) -> FactTerms:
        """The same statements, with the other end reached; attributes have no entity at their
        object.
        """
        rows = self.wanted(node.facts, out, wanted)
        if node.reach == "object" and rows.objects != "entity":
            out.append(self._of_sort(rows.object, "entity"))
            rows.objects = "entity"
        if rows.loose and node.reach == "object":
            self.settle(rows.subject, out)
            rows.loose = False
        rows.reached = rows.subject if node.reach == "subject" else rows.object
        return rows


def reach_of(node: Node) -> alg.End:
    """The end that facts reach."""
    while not isinstance(node, (alg.Scan, alg.OtherEnd)):
        node = node.inputs()[0]
    return node.reach


#: What becomes of each operator; `None` where the client works it out (`support`).
FACTS: Final[FactTable[FactPatterns, [Group, Wanted], FactTerms]] = {
    "Scan": FactPatterns.scan,
    "Where": FactPatterns.where,
    "WhereQualifier": FactPatterns.where_qualifier,
    "During": FactPatterns.during,
    "DuringAny": None,
    "WhereValidity": FactPatterns.where_validity,
    "OtherEnd": FactPatterns.turn,
}
_BY_TYPE: Final = by_type(FACTS)
