"""What compiling a plan shares: variables, parameters, rows of the sorts, and parts of a plan that are bound once;
estimates of sizes, and the order of joins that follows from them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from condgraph.cypher.layout.base import Bound, Cell, Layout, give
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node, postorder
from condgraph.engine.algebra.tables import ConditionTable, EntityTable, FactTable, ScalarTable, ValueTable, by_type
from condgraph.engine.kinds import condition_of
from condgraph.engine.passes import rewrite
from condgraph.engine.values import OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Quantity, Time, Value, text_of

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema


# -- Estimates ---------------------------------------------------------------------------------------
# How many rows an operator is likely to give, from what the schema counts.
#
# The server's planner knows how many nodes a label has, and not that a concept has 26 members or that
# a predicate leads to 2,000 subjects from one object; the schema does. An estimate only chooses among
# texts that mean the same, so a bad one costs time alone.


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
        result = self._rows.get(id(node))
        if result is None:
            result = self._rows[id(node)] = _BY_TYPE[type(node)](self, node)
            # Held on to, so that no other operator gets its identity.
            self._kept.append(node)
        return result

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


def _few(estimates: Estimates, node: Node) -> float:
    return _SOME


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
    "Deviation": _first,
    "AnySatisfies": _first,
    "Exists": _first,
}
_BY_TYPE: Final = {
    **by_type(_ENTITIES), **by_type(_FACTS), **by_type(_VALUES), **by_type(_SCALARS),
    **dict.fromkeys((alg.EntitiesOf, alg.FactsOf), _few),
}  # fmt: skip


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


# -- Order of joins ----------------------------------------------------------------------------------
# Where an intersection begins: at its smallest part, with the scans of the others made from there.
#
# A scan that looks at a whole attribute and a set that is small meet more cheaply when the statements
# of the set's members alone are looked at: `Intersect(A, Reached(Where(Scan(None, p), t)))` is
# `Reached(Where(Scan(A, p), t))`. In process this is decided when sizes are known. A server does what
# the text says, so it is decided here, by estimates.


#: What it costs to go from an entity to its statements, as a multiple of going from a value in an
#: index to its entity.
OUTWARD: Final = 2.5


def arrange(plan: Node, schema: StoredSchema) -> Node:
    """The same plan with whole scans begun at small sets."""
    order = postorder(plan)
    if not any(isinstance(node, alg.Intersect) for node in order):
        return plan
    taken = Counter(id(child) for node in order for child in node.inputs())
    # What others take as well is there anyway, and stays what it is.
    several = {id(node) for node in order if taken[id(node)] > 1}
    estimates = Estimates(schema)

    def rule(node: Node) -> Node:
        return _begun(node, estimates, several, schema) if isinstance(node, alg.Intersect) else node

    return rewrite(plan, rule)


def _begun(node: alg.Intersect, estimates: Estimates, several: set[int], schema: StoredSchema) -> alg.Entities:
    parts = sorted((part for part in node.parts if not isinstance(part, alg.AllEntities)), key=estimates.rows)
    rest: list[alg.Entities] = [part for part in node.parts if isinstance(part, alg.AllEntities)]
    if len(parts) < 2:
        return node
    start, changed = parts[0], False
    for part in parts[1:]:
        scan = None if id(part) in several else whole_scan(part, several)
        if (
            scan is not None
            and estimates.rows(start) * OUTWARD < estimates.statements(scan)
            and not _selective(part, start, estimates)
        ):
            start, changed = _from(part, start, schema), True
        else:
            rest.append(part)
    if not changed:
        return node
    return alg.Intersect((start, *rest)) if rest else start


def _selective(part: alg.Entities, start: alg.Entities, estimates: Estimates) -> bool:
    """Whether an index gives the part with less work than it takes to look at the statements of
    every member of the start.
    """
    return estimates.rows(part) < estimates.rows(start)


def whole_scan(part: Node, several: set[int]) -> alg.Scan | None:
    """The scan of any subject, under nothing but filters, whose subjects are the set; None where
    the set is something else.
    """
    if not isinstance(part, alg.Reached) or id(part.facts) in several:
        return None
    facts = part.facts
    while facts.facets.filters and id(facts) not in several and (inner := alg.passed(facts)) is not None:
        facts = inner
    if not isinstance(facts, alg.Scan) or facts.predicates is None or facts.source is not None:
        return None
    if (facts.anchor, facts.reach) != ("subject", "subject"):
        return None
    return facts if facts.of is None or (isinstance(facts.of, alg.AllEntities) and facts.of.source is None) else None


def kinds_matter(scan: alg.Scan, of: alg.AllEntities, schema: StoredSchema) -> bool:
    """Whether kinds leave out any anchor of a scan: all but concepts do not, where concepts are no
    subjects.
    """
    concepts = (schema.concept_subjects and scan.family != "attribute") or (schema.concept_attributes and scan.family != "relation")
    return scan.anchor != "subject" or concepts or of.kinds != alg.ENTITY_KINDS


def _from(part: alg.Entities, start: alg.Entities, schema: StoredSchema) -> alg.Entities:
    """The set with its scan begun at another set; it still asks for its kinds of subjects, where
    there are others.
    """
    assert isinstance(part, alg.Reached)

    def begun(facts: alg.Facts) -> alg.Facts:
        if isinstance(facts, alg.Scan):
            asks = isinstance(facts.of, alg.AllEntities) and kinds_matter(facts, facts.of, schema)
            return replace(facts, of=alg.Intersect((start, facts.of)) if asks and facts.of is not None else start)
        inner = alg.passed(facts)
        assert inner is not None
        return alg.passing(facts, begun(inner))

    return replace(part, facts=begun(part.facts))


# -- The compiler ------------------------------------------------------------------------------------
# An operator becomes clauses that leave rows: of an entity, of a fact, of a value. What another
# operator needs as a whole (a set to be looked up in, a bag to compare with, a part with two
# consumers) is bound once in front of everything, as a list; the rest of the query is then one
# `CALL` that imports these lists, so that no clause has to hand them on.


@dataclass(slots=True)
class Rows:
    """Clauses that leave one row for each entity of a set, bound to `variable`."""

    clauses: list[str]
    variable: str


@dataclass(frozen=True, slots=True)
class ConceptMembership:
    """Membership in a concept of many, as a condition on an entity, or as clauses that give all
    members, to be joined with.

    A condition goes through an entity's edges, which costs about ten times as much as reading a
    member from the concept's side.
    """

    condition: str
    clauses: list[str]
    hint: str
    members: float
    #: The names of the concepts.
    names: tuple[str, ...] = ()

    def joins(self, rows: float) -> bool:
        """Whether to join with all members is likely to cost less than to look at so many entities."""
        return bool(self.clauses) and rows * 8 > self.members


@dataclass(slots=True)
class FactRows:
    """Clauses, then one MATCH of `pattern` under `conditions` (None: bound already): a row for each
    fact.

    `fact` holds what identifies the statement, `subject` and `thing` its ends; `thing` is a
    value in the family "attribute", an entity in "relation", either in "any". `cell` is the object
    as a value, which tests in the conditions read as well.
    """

    clauses: list[str]
    pattern: str | None
    conditions: list[str]
    fact: str
    subject: str
    thing: str
    family: alg.Family
    reach: alg.End
    cell: Cell
    #: Conditions by which an index gives all values, and its properties; asked where no test is one
    #: that an index answers.
    whole: list[str] = field(default_factory=list)
    #: What says which index to take.
    hint: str = ""
    #: Members of a concept that the anchors lie in.
    within: ConceptMembership | None = None
    #: How many there are likely to be.
    rows: float = 1.0
    #: Clauses after the MATCH, that bind what a pattern cannot.
    after: list[str] = field(default_factory=list)
    #: Makes one clause of several queries that bind what the pattern would.
    joined: Callable[[Collection[str] | None, list[str]], str] | None = None

    @property
    def reached(self) -> str:
        """The entity that was reached."""
        return self.subject if self.reach == "subject" else self.thing

    @property
    def value(self) -> str | None:
        """The object, where it may be a value."""
        return None if self.family == "relation" else self.thing

    @property
    def referred(self) -> str | None:
        """The object, where it may be an entity."""
        return None if self.family == "attribute" else self.thing

    def narrow(self, share: float, hint: str | None) -> None:
        """Make ready for a test on the objects that leaves a part; `hint` says the index that
        answers it, None for none.
        """
        self.rows *= share
        if hint is not None and self.whole:
            self.whole, self.hint = [], hint

    def render(self) -> list[str]:
        """All clauses."""
        clauses, hint, conditions = self.clauses, self.hint, [*self.conditions, *self.whole]
        if self.within is not None:
            if self.within.joins(self.rows):
                clauses, hint = [*clauses, *self.within.clauses], hint + self.within.hint
            else:
                conditions.append(self.within.condition)
        if self.joined is not None:
            labels = None if self.within is None else self.within.names
            return [*clauses, self.joined(labels, conditions), *self.after]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if self.pattern is not None:
            return [*clauses, f"MATCH {self.pattern}{hint}{where}", *self.after]
        return [*clauses, f"WITH *{where}"] if where else clauses


@dataclass(slots=True)
class ValueRows:
    """Clauses that leave one row for each value of a bag.

    `cell` is the value; `holder` the entity that carries it (a subject, or the entity whose name it
    is), `ref` the entity that the value is, `place` an expression for the position of its carrier in
    its source. None where there is none; `holder` and `ref` may be null.
    """

    clauses: list[str]
    cell: Cell
    holder: str | None = None
    ref: str | None = None
    place: str | None = None

    def packed(self) -> str:
        """One row as a map, to be collected."""
        return f"{{c: {self.cell.whole}, h: {self.holder or 'null'}, r: {self.ref or 'null'}, n: {self.place or '0'}}}"


class Compiler:
    """Compiles one plan. Parameters are numbered in the order they come, so that equal plans give
    equal texts.
    """

    #: What becomes of each operator; `PlanCompiler` fills them, which needs the functions of all.
    of_entities: ClassVar[Mapping[type[Node | alg.Condition], Callable[[Compiler, Any], Rows]]]
    of_facts: ClassVar[Mapping[type[Node | alg.Condition], Callable[[Compiler, Any], FactRows]]]
    of_values: ClassVar[Mapping[type[Node | alg.Condition], Callable[[Compiler, Any], ValueRows]]]

    def __init__(self, graph: str, schema: StoredSchema, roots: Sequence[Node], layout: Layout) -> None:
        self.layout = layout
        self.parameters: dict[str, Any] = dict(layout.parameters(graph))
        self.estimates = Estimates(schema)
        #: Whether numbers are compared as they were written; which sources have statements of their
        #: own rows alone.
        self.inexact, self.tabular, self.schema = schema.inexact, schema.tabular, schema
        order = nodes_of(roots)
        #: Whether some operator asks which entity a qualifier's value is.
        self.refers = any(
            isinstance(node, alg.Referents) or (node.facets.tests == "values" and asks_which(condition_of(node))) for node in order
        )
        #: Clauses that bind lists, in order.
        self.lets: list[str] = []
        self._names = self._given = 0
        self._let_names: list[str] = []
        self._shared = _shared(roots, order)
        self._bound_entities: dict[int, str] = {}
        self._bound_facts: dict[int, tuple[str, alg.Family, alg.End]] = {}
        self._bound_values: dict[int, tuple[str, ValueRows]] = {}
        self._sets: dict[int, str] = {}
        self._kept: list[Node] = []
        #: The part of the statements of a scan that the tests on it leave, where that is known when
        #: it is compiled.
        self.shares: dict[int, float] = {}

    def name(self, prefix: str) -> str:
        """A fresh variable."""
        self._names += 1
        return f"{prefix}{self._names}"

    def parameter(self, value: Any) -> str:
        """A parameter holding a value."""
        self._given += 1
        return self.layout.typed(give(self.parameters, f"p{self._given}", value), value)

    def is_shared(self, node: Node) -> bool:
        """Whether several operators take it, so that it is bound once."""
        return id(node) in self._shared

    def constant(self, value: int) -> str:
        """A parameter holding a bound of times, the same one each time: not every integer can be
        written as a literal.
        """
        return give(self.parameters, _BOUNDS[value], value)

    # -- parts that are bound once -----------------------------------------------------------------

    def call(self, body: str, *more: str) -> str:
        """A subquery over a body, with the lists it uses imported."""
        used = [name for name in (*self._let_names, *more) if re.search(rf"\b{name}\b", body)]
        return f"CALL ({', '.join(used)}) {{\n{body}\n}}"

    def let(self, clauses: list[str], expression: str, prefix: str = "s") -> str:
        """Bind what an expression aggregates from the rows of some clauses; the variable."""
        name = self.name(prefix)
        self.lets.append(self.call("\n".join([*clauses, f"RETURN {expression} AS {name}"])))
        self._let_names.append(name)
        return name

    def whole(self, branches: list[list[str]], names: Sequence[str], ending: str | None = None) -> str:
        """The text of a query: lists first, then its branches, which return columns of these names; `ending` are clauses that go
        on from these.
        """
        body = "\nUNION ALL\n".join("\n".join(clauses) for clauses in branches)
        if self.lets or ending is not None:
            body = "\n".join([*self.lets, self.call(body), ending or "RETURN " + ", ".join(names)])
        return self.layout.written(body)

    def set_of(self, node: alg.Entities) -> str:
        """A set of entities as a list, to be looked up in."""
        result = self._sets.get(id(node))
        if result is None:
            rows = self.entities(node)
            result = self._sets[id(node)] = self.let(rows.clauses, f"collect({rows.variable})")
            self._kept.append(node)
        return result

    # -- the three sorts ---------------------------------------------------------------------------

    def entities(self, node: Node) -> Rows:
        """Rows of a set of entities, each once."""
        if id(node) not in self._shared:
            return self.of_entities[type(node)](self, node)
        known = self._bound_entities.get(id(node))
        if known is None:
            rows = self.of_entities[type(node)](self, node)
            known = self._bound_entities[id(node)] = self.let(rows.clauses, f"collect({rows.variable})")
        e = self.name("e")
        return Rows([f"UNWIND {known} AS {e}"], e)

    def facts(self, node: Node) -> FactRows:
        """Rows of facts."""
        if id(node) not in self._shared:
            return self.of_facts[type(node)](self, node)
        known = self._bound_facts.get(id(node))
        if known is None:
            rows = self.of_facts[type(node)](self, node)
            name = self.let(rows.render(), f"collect([{rows.fact}, {rows.subject}, {rows.thing}])")
            known = self._bound_facts[id(node)] = name, rows.family, rows.reach
        name, family, reach = known
        x, f, s, o = (self.name(prefix) for prefix in "xfso")
        clauses = [f"UNWIND {name} AS {x}", f"WITH {x}[0] AS {f}, {x}[1] AS {s}, {x}[2] AS {o}"]
        return FactRows(clauses, None, [], f, s, o, family, reach, self.layout.object(o, family))

    def values(self, node: Node) -> ValueRows:
        """Rows of values."""
        if id(node) not in self._shared:
            return self.of_values[type(node)](self, node)
        known = self._bound_values.get(id(node))
        if known is None:
            rows = self.of_values[type(node)](self, node)
            known = self._bound_values[id(node)] = self.let(rows.clauses, f"collect({rows.packed()})"), rows
        return self.unpacked([], *known)

    def unpacked(self, clauses: list[str], name: str, like: ValueRows) -> ValueRows:
        """Rows of a list of packed values."""
        x, c, h, r, n = (self.name(prefix) for prefix in ("x", "c", "h", "r", "n"))
        clauses = [*clauses, f"UNWIND {name} AS {x}", f"WITH {x}.c AS {c}, {x}.h AS {h}, {x}.r AS {r}, {x}.n AS {n}"]
        return ValueRows(clauses, Bound(c), h if like.holder else None, r if like.ref else None, n if like.place else None)

    def one_of(self, names: tuple[str, ...]) -> str:
        """A test of an index key against names."""
        return self.layout.one_of(self, names)

    def cell_of(self, value: Value | bool | int | float) -> dict[str, Any]:
        """A value of a program as a map of the fields of a cell."""
        if isinstance(value, bool):
            value = text_of(value)
        elif isinstance(value, (int, float)):
            value = Quantity(value)
        return self.layout.given(value)


_BOUNDS: Final = {OPEN_START: "openStart", OPEN_END: "openEnd", UNKNOWN_START: "unknownStart", UNKNOWN_END: "unknownEnd"}
#: Operators that cost nothing to say twice.
_CHEAP = (alg.ByName, alg.ById, alg.AllEntities, alg.Constants)


def nodes_of(roots: Sequence[Node]) -> list[Node]:
    """All operators of some plans once, inputs first."""
    return list({id(node): node for root in roots for node in postorder(root)}.values())


def _shared(roots: Sequence[Node], order: list[Node]) -> set[int]:
    """Operators that are taken more than once. A scan is repeated, so that the tests on it are
    answered by indexes; what it starts from is then taken as often.
    """
    taken = Counter(map(id, roots))
    for node in reversed(order):
        for child in node.inputs():
            taken[id(child)] += taken[id(node)] if isinstance(node, alg.Scan) else 1
    return {id(node) for node in order if taken[id(node)] > 1 and not isinstance(node, (*_CHEAP, alg.Scan, alg.Scalar))}


def asks_which(test: alg.Condition) -> bool:
    """Whether a test looks at which entity a value is."""
    return isinstance(test, alg.Among) or any(map(asks_which, test.parts()))
