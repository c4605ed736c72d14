"""Base of the Cypher compiler: variables, parameters, rows of each sort, shared parts of a plan, estimates of sizes, and
the order of joins that follows from the estimates.
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
# Estimates how many rows an operator gives, from the counts of the schema.
#
# The server's planner knows how many nodes a label has, but not that a concept has 26 members or that a
# predicate leads from one object to 2,000 subjects; the schema does. An estimate only chooses among
# equivalent queries, so a bad one costs time alone.


#: Assumed rows of an input of unknown size, and of all entities.
_SOME: Final = 100.0
_EVERY: Final = 1e6
#: Assumed share of statements that pass an equality test, a `<` or `>` test, a test on a qualifier, and a
#: test on the validity.
_EQUAL: Final = 0.02
_RANGE: Final = 0.4
_QUALIFIER: Final = 0.1
_TIME: Final = 0.3
#: Relations per subject and per object of a predicate, where the schema does not count them.
_DEGREES: Final = (4.0, 40.0)


class Estimates:
    """Estimated sizes of operators, each computed once."""

    def __init__(self, schema: StoredSchema) -> None:
        self._schema = schema
        self._rows: dict[int, float] = {}
        self._alive: list[Node] = []

    def rows(self, node: Node) -> float:
        """Estimate the number of entities, facts or values that an operator gives."""
        result = self._rows.get(id(node))
        if result is None:
            result = self._rows[id(node)] = _BY_TYPE[type(node)](self, node)
            # Keep a reference, so that no other operator gets the same `id`.
            self._alive.append(node)
        return result

    def statements(self, node: alg.Scan) -> float:
        """Count the statements of the predicates of a scan, wherever it starts."""
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
        """Count the members of concepts given by name; infinite for other operators."""
        if not isinstance(node, alg.Members) or not isinstance(node.concepts, alg.ByName):
            return float("inf")
        return float(sum(self._schema.members.get(name, 0) for name in node.concepts.names))

    def degree(self, node: alg.Scan) -> float:
        """Estimate the statements that a scan finds for each entity it starts from."""
        schema, names, each = self._schema, node.predicates or (), 0.0
        outward = node.anchor == "subject"
        if node.family != "attribute" or not outward:
            each += sum(schema.degrees.get(name, _DEGREES)[0 if outward else 1] for name in names if schema.has_relation(name))
        if outward and node.family != "relation":
            each += sum(schema.has_attribute(name) for name in names)
        return each


def _first_input(estimates: Estimates, node: Node) -> float:
    """As many rows as the first input."""
    inputs = node.inputs()
    return estimates.rows(inputs[0]) if inputs else _SOME


def _unknown_size(estimates: Estimates, node: Node) -> float:
    return _SOME


def _single_row(estimates: Estimates, node: Node) -> float:
    return 1.0


def _smallest_input(estimates: Estimates, node: Node) -> float:
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
        # The number of its statements that come from one source is unknown.
        statements = min(statements, _SOME)
    if node.of is None:
        return statements
    if node.predicates is None:
        return min(estimates.rows(node.of) * 20.0, _EVERY)
    return min(estimates.rows(node.of) * estimates.degree(node), statements)


def _where_rows(estimates: Estimates, node: alg.Where) -> float:
    test = node.condition
    passing = min(1.0, estimates.rows(test.entities) / 100.0) if isinstance(test, alg.Among) else share(test)
    return estimates.rows(node.facts) * passing


def _qualified_rows(estimates: Estimates, node: alg.WhereQualifier | alg.WhereValidity) -> float:
    return estimates.rows(node.facts) * _QUALIFIER


def _during(estimates: Estimates, node: alg.During | alg.DuringAny) -> float:
    return estimates.rows(node.facts) * _TIME


_ENTITIES: Final[EntityTable[Estimates, [], float]] = {
    "AllEntities": _all,
    "ById": lambda estimates, node: float(len(node.ids)),
    "ByName": lambda estimates, node: float(len(node.names)),
    "Members": _members,
    "Union": _sum,
    "Intersect": _smallest_input,
    "Minus": _first_input,
    "Neighbour": _first_input,
    "Reached": _first_input,
    "SubjectsOf": _first_input,
    "Referents": _first_input,
    "SameName": _first_input,
    "ArgExtreme": _single_row,
}
_FACTS: Final[FactTable[Estimates, [], float]] = {
    "Scan": _scan,
    "Where": _where_rows,
    "WhereQualifier": _qualified_rows,
    "During": _during,
    "DuringAny": _during,
    "WhereValidity": _qualified_rows,
    "OtherEnd": _first_input,
}
_VALUES: Final[ValueTable[Estimates, [], float]] = {
    "Objects": _first_input,
    "Qualifiers": _first_input,
    "Validity": _first_input,
    "Predicates": _first_input,
    "QualifierKeys": _first_input,
    "Names": _first_input,
    "RowNumbers": _first_input,
    "FilterValues": _first_input,
    "Distinct": _first_input,
    "Concat": _sum,
    "Extreme": _single_row,
    "Mode": _first_input,
    "Nth": _single_row,
    "Clip": _first_input,
    "Bound": _first_input,
    "Choose": _first_input,
    "Shown": _first_input,
    "Constants": _first_input,
    "Apply": _first_input,
    "External": _first_input,
}
_SCALARS: Final[ScalarTable[Estimates, [], float]] = {
    "Count": _first_input,
    "Sum": _first_input,
    "Mean": _first_input,
    "Median": _first_input,
    "Deviation": _first_input,
    "AnySatisfies": _first_input,
    "Exists": _first_input,
}
_BY_TYPE: Final = {
    **by_type(_ENTITIES), **by_type(_FACTS), **by_type(_VALUES), **by_type(_SCALARS),
    **dict.fromkeys((alg.EntitiesOf, alg.FactsOf), _unknown_size),
}  # fmt: skip


def share(test: Condition) -> float:
    """Estimate the share of values that pass a test."""
    return _SHARES[type(test)](None, test)


def _compared(_: None, test: alg.Compare) -> float:
    if test.operator == "=":
        # More statements match a year than an exact day.
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
# An intersection begins at its smallest part, and scans of the other parts start from there.
#
# Where one part scans a whole attribute and another is a small set, it is cheaper to look only at the statements of the set's
# members: `Intersect(A, Reached(Where(Scan(None, p), t)))` becomes `Reached(Where(Scan(A, p), t))`. In process, this is decided
# once the sizes are known. A server does what the query says, so here estimates decide.


#: Cost of going from an entity to its statements, relative to going from an indexed value to its entity.
OUTWARD: Final = 2.5


def arrange(plan: Node, schema: StoredSchema) -> Node:
    """Rewrite a plan so that whole scans start from small sets instead."""
    order = postorder(plan)
    if not any(isinstance(node, alg.Intersect) for node in order):
        return plan
    uses = Counter(id(child) for node in order for child in node.inputs())
    # A part that other operators also take is computed in any case, and is left alone.
    shared = {id(node) for node in order if uses[id(node)] > 1}
    estimates = Estimates(schema)

    def rule(node: Node) -> Node:
        return _in_order(node, estimates, shared, schema) if isinstance(node, alg.Intersect) else node

    return rewrite(plan, rule)


def _in_order(node: alg.Intersect, estimates: Estimates, several: set[int], schema: StoredSchema) -> alg.Entities:
    parts = sorted((part for part in node.parts if not isinstance(part, alg.AllEntities)), key=estimates.rows)
    remaining: list[alg.Entities] = [part for part in node.parts if isinstance(part, alg.AllEntities)]
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
            remaining.append(part)
    if not changed:
        return node
    return alg.Intersect((start, *remaining)) if remaining else start


def _selective(part: alg.Entities, start: alg.Entities, estimates: Estimates) -> bool:
    """Tell whether an index gives the part faster than looking at the statements of all members of `start`."""
    return estimates.rows(part) < estimates.rows(start)


def whole_scan(part: Node, several: set[int]) -> alg.Scan | None:
    """Return the scan of all subjects that, filtered, gives the set `part`; None where the set is made otherwise."""
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
    """Tell whether the kinds in `of` exclude any anchor of a scan.

    The anchors of a scan are never concepts unless the schema has concepts as subjects.
    """
    concepts = (schema.concept_subjects and scan.family != "attribute") or (schema.concept_attributes and scan.family != "relation")
    return scan.anchor != "subject" or concepts or of.kinds != alg.ENTITY_KINDS


def _from(part: alg.Entities, start: alg.Entities, schema: StoredSchema) -> alg.Entities:
    """Start the scan of a set at `start` instead; where subjects have several kinds, the kinds are still tested."""
    assert isinstance(part, alg.Reached)

    def restart(facts: alg.Facts) -> alg.Facts:
        if isinstance(facts, alg.Scan):
            test_kinds = isinstance(facts.of, alg.AllEntities) and kinds_matter(facts, facts.of, schema)
            return replace(facts, of=alg.Intersect((start, facts.of)) if test_kinds and facts.of is not None else start)
        inner = alg.passed(facts)
        assert inner is not None
        return alg.passing(facts, restart(inner))

    return replace(part, facts=restart(part.facts))


# -- The compiler ------------------------------------------------------------------------------------
# An operator becomes clauses that leave rows: one for each entity, fact or value. An input that another
# operator needs as a whole (a set for lookups, a bag to compare with, a part with two consumers) is first
# bound as a list; the rest of the query is then one `CALL` that imports these lists, so that no clause
# has to pass them on.


@dataclass(slots=True)
class Rows:
    """Clauses that leave one row for each entity of a set, bound to `variable`."""

    clauses: list[str]
    variable: str


@dataclass(frozen=True, slots=True)
class ConceptMembership:
    """Membership in a concept: as a condition on an entity, or as clauses that give all members, for a join.

    A condition follows an entity's edges, which costs about ten times as much as reading a member from the concept's side.
    """

    condition: str
    clauses: list[str]
    hint: str
    members: float
    #: Names of the concepts.
    names: tuple[str, ...] = ()

    def joins(self, rows: float) -> bool:
        """Tell whether joining with all members is likely to cost less than testing `rows` entities."""
        return bool(self.clauses) and rows * 8 > self.members


@dataclass(slots=True)
class FactRows:
    """Clauses, then one MATCH of `pattern` under `conditions`, which leave a row for each fact.

    Where `pattern` is None, the clauses have bound the fact already. `fact` identifies the statement; `subject` and `thing`
    are its ends. `thing` is a value in the family "attribute", an entity in "relation", either in "any". `cell` is the object
    as a value, which the conditions test.
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
    #: Conditions that read all values and their properties from an index; used where no test is answered
    #: by an index.
    whole: list[str] = field(default_factory=list)
    #: The planner hint (`USING …`) that names the index.
    hint: str = ""
    #: The concept that the anchors are members of.
    within: ConceptMembership | None = None
    #: Estimated number of facts.
    rows: float = 1.0
    #: Clauses after the MATCH, which bind what a pattern cannot.
    after: list[str] = field(default_factory=list)
    #: Builds one clause from several queries, in place of the pattern.
    joined: Callable[[Collection[str] | None, list[str]], str] | None = None

    @property
    def reached(self) -> str:
        return self.subject if self.reach == "subject" else self.thing

    @property
    def value(self) -> str | None:
        """The object, where it may be a value; else None."""
        return None if self.family == "relation" else self.thing

    @property
    def referred(self) -> str | None:
        """The object, where it may be an entity; else None."""
        return None if self.family == "attribute" else self.thing

    def narrow(self, share: float, hint: str | None) -> None:
        """Prepare for a test on the objects that a share of the facts passes.

        `hint` names the index that answers the test; None if there is none.
        """
        self.rows *= share
        if hint is not None and self.whole:
            self.whole, self.hint = [], hint

    def render(self) -> list[str]:
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

    `cell` is the value; `holder` the entity that carries it (a subject, or the entity with this name); `ref` the entity that
    the value is; `place` an expression for the position of its carrier in the source. None where there is none; `holder` and
    `ref` may be null in a row.
    """

    clauses: list[str]
    cell: Cell
    holder: str | None = None
    ref: str | None = None
    place: str | None = None

    def packed(self) -> str:
        """One row as a map, for `collect`."""
        return f"{{c: {self.cell.whole}, h: {self.holder or 'null'}, r: {self.ref or 'null'}, n: {self.place or '0'}}}"


class Compiler:
    """Compiles one plan. Parameters are numbered in order, so that equal plans give equal texts."""

    #: Compile functions by operator type; set by `PlanCompiler`, which imports the functions of all sorts.
    of_entities: ClassVar[Mapping[type[Node | alg.Condition], Callable[[Compiler, Any], Rows]]]
    of_facts: ClassVar[Mapping[type[Node | alg.Condition], Callable[[Compiler, Any], FactRows]]]
    of_values: ClassVar[Mapping[type[Node | alg.Condition], Callable[[Compiler, Any], ValueRows]]]

    def __init__(self, graph: str, schema: StoredSchema, roots: Sequence[Node], layout: Layout) -> None:
        self.layout = layout
        self.parameters: dict[str, Any] = dict(layout.parameters(graph))
        self.estimates = Estimates(schema)
        #: Whether numbers are compared as written; sources whose statements all come from their own rows.
        self.inexact, self.tabular, self.schema = schema.inexact, schema.tabular, schema
        order = nodes_of(roots)
        #: Whether some operator tests which entity the value of a qualifier is.
        self.refers = any(
            isinstance(node, alg.Referents) or (node.facets.tests == "values" and asks_which(condition_of(node))) for node in order
        )
        #: Clauses that bind lists, in order.
        self.lets: list[str] = []
        self._name_count = self._parameter_count = 0
        self._let_names: list[str] = []
        self._shared = _shared(roots, order)
        self._bound_entities: dict[int, str] = {}
        self._bound_facts: dict[int, tuple[str, alg.Family, alg.End]] = {}
        self._bound_values: dict[int, tuple[str, ValueRows]] = {}
        self._sets: dict[int, str] = {}
        self._alive: list[Node] = []
        #: Share of a scan's statements that pass its tests, where known at compile time.
        self.shares: dict[int, float] = {}

    def name(self, prefix: str) -> str:
        """Return a fresh variable."""
        self._name_count += 1
        return f"{prefix}{self._name_count}"

    def parameter(self, value: Any) -> str:
        """Add a parameter with a value and return its reference."""
        self._parameter_count += 1
        return self.layout.typed(give(self.parameters, f"p{self._parameter_count}", value), value)

    def is_shared(self, node: Node) -> bool:
        """Tell whether several operators take a node, so that it is bound once."""
        return id(node) in self._shared

    def constant(self, value: int) -> str:
        """Return a parameter that holds a bound of times, reused for each mention.

        Not every 64-bit integer can be written as a literal in Cypher.
        """
        return give(self.parameters, _BOUNDS[value], value)

    # -- parts that are bound once -----------------------------------------------------------------

    def call(self, body: str, *more: str) -> str:
        """Wrap a body in a subquery that imports the lists it uses."""
        used = [name for name in (*self._let_names, *more) if re.search(rf"\b{name}\b", body)]
        return f"CALL ({', '.join(used)}) {{\n{body}\n}}"

    def let(self, clauses: list[str], expression: str, prefix: str = "s") -> str:
        """Bind an aggregate over the rows of some clauses, and return its variable."""
        name = self.name(prefix)
        self.lets.append(self.call("\n".join([*clauses, f"RETURN {expression} AS {name}"])))
        self._let_names.append(name)
        return name

    def whole(self, branches: list[list[str]], names: Sequence[str], ending: str | None = None) -> str:
        """Build the text of a query:

        bound lists first, then branches that return columns `names`, then the clauses in `ending`.
        """
        body = "\nUNION ALL\n".join("\n".join(clauses) for clauses in branches)
        if self.lets or ending is not None:
            body = "\n".join([*self.lets, self.call(body), ending or "RETURN " + ", ".join(names)])
        return self.layout.written(body)

    def set_of(self, node: alg.Entities) -> str:
        """Return a list of a set of entities, for lookups."""
        result = self._sets.get(id(node))
        if result is None:
            rows = self.entities(node)
            result = self._sets[id(node)] = self.let(rows.clauses, f"collect({rows.variable})")
            self._alive.append(node)
        return result

    def give(self, node: alg.Entities, expression: str) -> None:
        """Let a set be a list that the clauses around its use have bound."""
        self._shared.add(id(node))
        self._bound_entities[id(node)] = expression

    # -- the three sorts ---------------------------------------------------------------------------

    def entities(self, node: Node) -> Rows:
        """Return the rows of a set of entities, each once."""
        if id(node) not in self._shared:
            return self.of_entities[type(node)](self, node)
        known = self._bound_entities.get(id(node))
        if known is None:
            rows = self.of_entities[type(node)](self, node)
            known = self._bound_entities[id(node)] = self.let(rows.clauses, f"collect({rows.variable})")
        e = self.name("e")
        return Rows([f"UNWIND {known} AS {e}"], e)

    def facts(self, node: Node) -> FactRows:
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
        if id(node) not in self._shared:
            return self.of_values[type(node)](self, node)
        known = self._bound_values.get(id(node))
        if known is None:
            rows = self.of_values[type(node)](self, node)
            known = self._bound_values[id(node)] = self.let(rows.clauses, f"collect({rows.packed()})"), rows
        return self.unpacked([], *known)

    def unpacked(self, clauses: list[str], name: str, like: ValueRows) -> ValueRows:
        """Return the rows of a list of packed values."""
        x, c, h, r, n = (self.name(prefix) for prefix in ("x", "c", "h", "r", "n"))
        clauses = [*clauses, f"UNWIND {name} AS {x}", f"WITH {x}.c AS {c}, {x}.h AS {h}, {x}.r AS {r}, {x}.n AS {n}"]
        return ValueRows(clauses, Bound(c), h if like.holder else None, r if like.ref else None, n if like.place else None)

    def one_of(self, names: tuple[str, ...]) -> str:
        """Return a test of an index key against names."""
        return self.layout.one_of(self, names)

    def cell_of(self, value: Value | bool | int | float) -> dict[str, Any]:
        """Return a value of a program as a map of cell fields."""
        if isinstance(value, bool):
            value = text_of(value)
        elif isinstance(value, (int, float)):
            value = Quantity(value)
        return self.layout.given(value)


_BOUNDS: Final = {OPEN_START: "openStart", OPEN_END: "openEnd", UNKNOWN_START: "unknownStart", UNKNOWN_END: "unknownEnd"}
#: Operators that are cheap enough to repeat.
_CHEAP = (alg.ByName, alg.ById, alg.AllEntities, alg.Constants)


def nodes_of(roots: Sequence[Node]) -> list[Node]:
    """Return all operators of some plans once, inputs first."""
    return list({id(node): node for root in roots for node in postorder(root)}.values())


def _shared(roots: Sequence[Node], order: list[Node]) -> set[int]:
    """Find the operators (by `id`) that are used more than once.

    A scan is repeated instead, so that indexes answer its tests; each repetition uses its input again.
    """
    uses = Counter(map(id, roots))
    for node in reversed(order):
        for child in node.inputs():
            uses[id(child)] += uses[id(node)] if isinstance(node, alg.Scan) else 1
    return {id(node) for node in order if uses[id(node)] > 1 and not isinstance(node, (*_CHEAP, alg.Scan, alg.Scalar))}


def asks_which(test: alg.Condition) -> bool:
    """Tell whether a test depends on which entity a value is."""
    return isinstance(test, alg.Among) or any(map(asks_which, test.parts()))
