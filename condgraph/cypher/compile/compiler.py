"""What compiling shares: variables, parameters, rows of the sorts, and parts of a plan that are
bound once.

An operator is said by clauses that leave rows: of an entity, of a fact, of a value. What another
operator needs as a whole (a set to be looked up in, a bag to compare with, a part with two
consumers) is bound once in front of everything, as a list; the rest of the query then stands in one
`CALL` that imports these lists, so that no clause has to hand them on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from condgraph.cypher.compile.estimate import Estimates
from condgraph.cypher.layout.base import Layout
from condgraph.cypher.layout.cells import Bound, Cell
from condgraph.cypher.layout.parameters import give
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.kinds import condition_of
from condgraph.engine.values import OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Quantity, Value, text_of

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema


@dataclass(slots=True)
class Rows:
    """Clauses that leave one row for each entity of a set, bound to `variable`."""

    clauses: list[str]
    variable: str


@dataclass(frozen=True, slots=True)
class Within:
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

    `fact` holds what tells the statement from others, `subject` and `thing` its ends; `thing` is a
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
    within: Within | None = None
    #: How many there are likely to be.
    rows: float = 1.0
    #: Clauses behind the MATCH, that bind what a pattern cannot.
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
    is), `ref` the entity that the value is, `place` an expression for where its carrier stands in
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

    #: What becomes of each operator, which `compile.operators` says.
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

    def whole(self, branches: list[list[str]], names: Sequence[str]) -> str:
        """The text of a query: lists first, then its branches, which return columns of these names."""
        body = "\nUNION ALL\n".join("\n".join(clauses) for clauses in branches)
        if not self.lets:
            return body
        return "\n".join([*self.lets, self.call(body), "RETURN " + ", ".join(names)])

    def set_of(self, node: alg.Entities) -> str:
        """A set of entities as a list, to be looked up in."""
        found = self._sets.get(id(node))
        if found is None:
            rows = self.entities(node)
            found = self._sets[id(node)] = self.let(rows.clauses, f"collect({rows.variable})")
            self._kept.append(node)
        return found

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
    """Operators that are taken more than once. A scan is said again, so that the tests on it are
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
