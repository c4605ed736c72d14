"""Operators that give entities or statements as SQL; each is a common table expression, named after the operator.

A set of entities has the column `e`. Statements have the columns of the table `statement`; the plan tells which of
their ends was reached (`reach_of`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.algebra.tables import EntityTable, FactTable, by_type
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME
from condgraph.engine.row_shapes import RowShape, shape_of
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import NO_UNIT, UNKNOWN_END, UNKNOWN_START, Kind
from condgraph.sql.conditions import Tests, condition, span_test, supports
from condgraph.sql.rows import tested
from condgraph.sql.terms import (
    FALSE,
    Query,
    both,
    case,
    coalesce,
    column,
    either,
    known,
    literal,
    name,
    named,
    one_of,
    select,
    table_of,
    together,
    within,
)

_STAR: Final = exp.Star()
#: Most nested queries: printing, and engines, accept no more.
_MAX_DEPTH: Final = 6


def reach_of(node: Node) -> alg.End:
    """Return the end that the statements of an operator reach."""
    while not isinstance(node, alg.Scan | alg.OtherEnd):
        (node,) = [child for child in node.inputs() if isinstance(child, alg.Facts)][:1]
    return node.reach


class Compiler:
    """Builder of one query on a graph whose tables are in the schema `place` of the database.

    An operator in `plans` that only one other takes is written in place; the others are bound to names.
    """

    def __init__(self, place: str, schema: StoredSchema, plans: Sequence[Node] = ()) -> None:
        self.place, self.schema = place, schema
        self.tests = Tests(not schema.inexact, self.members)
        self._uses = _count_uses(plans)
        self._depth = 0
        self._parts: list[tuple[str, Query]] = []
        self._names: dict[int, str] = {}
        self._nodes: list[Node] = []
        self.recursive = False

    # -- parts -------------------------------------------------------------------------------------

    def stored(self, table: str, alias: str | None = None) -> exp.Expr:
        """Return a table of the graph."""
        return table_of(table, self.place, alias)

    def bound(self, part: str, alias: str | None = None) -> exp.Table:
        """Return a bound part of this query."""
        return table_of(part, alias=alias)

    def let(self, prefix: str, query: Query) -> str:
        """Bind a query to a name of its own, and return the name."""
        bound = f"{prefix}_{len(self._parts) + 1}"
        self._parts.append((bound, query))
        return bound

    def let_recursive(self, bound: str, query: Query) -> None:
        """Bind a query that refers to itself by its name."""
        self._parts.append((bound, query))
        self.recursive = True

    def whole(self, query: Query) -> Query:
        """Return a query with the parts that it uses."""
        if self._parts:
            ctes = [exp.CTE(this=part, alias=exp.TableAlias(this=name(bound))) for bound, part in self._parts]
            query.set("with_", exp.With(expressions=ctes, recursive=self.recursive))
        return query

    # -- operators ---------------------------------------------------------------------------------

    def entities(self, node: alg.Entities) -> str:
        """Return the part with the distinct entities of an operator."""
        return self._part_of(node, _ENTITIES)

    def facts(self, node: alg.Facts) -> str:
        """Return the part with the distinct statements of an operator."""
        return self._part_of(node, _FACTS)

    def _part_of(self, node: Node, table: dict[type, Any]) -> str:
        if id(node) not in self._names:
            depth, self._depth = self._depth, 0
            query = table[type(node)](self, node)
            self._depth = depth
            self._names[id(node)] = self.let(type(node).__name__.lower(), query)
            # Keep a reference, so that no other operator gets the same `id`.
            self._nodes.append(node)
        return self._names[id(node)]

    def _inlined(self, node: Node, table: dict[type, Any]) -> exp.Query | None:
        """Return the query of an operator if only one other takes it; else None."""
        if self._uses[id(node)] != 1 or id(node) in self._names or self._depth >= _MAX_DEPTH:
            return None
        self._depth += 1
        query: exp.Query = table[type(node)](self, node)
        self._depth -= 1
        return query

    def set_of(self, node: alg.Entities) -> exp.Select:
        """Return a query of the entities in a set, to which tests can be added."""
        return select(column("e")).from_(self.bound(self.entities(node)), copy=False)

    def members(self, node: alg.Entities) -> Query:
        """Return the query of a set, for membership tests."""
        query = self._inlined(node, _ENTITIES)
        if isinstance(query, exp.Select):
            query.set("distinct", None)
        return self.set_of(node) if query is None else query

    def statements(self, node: alg.Facts) -> tuple[exp.Select, str]:
        """Return a query of an operator's statements, to which tests can be added, and the name of the table with their
        columns.
        """
        query = self._inlined(node, _FACTS)
        if query is None:
            part = self.facts(node)
            return self.all_of(part), part
        assert isinstance(query, exp.Select)
        return query, query.args["from_"].this.alias_or_name

    def qualifiers(self, facts: str, key: str) -> str:
        """Return the part with the qualifiers of a key on the statements of a part."""
        owners = select(column("f")).from_(self.bound(facts), copy=False)
        of_key = exp.EQ(this=column("key"), expression=literal(key))
        qualifiers = select(_STAR.copy()).from_(self.stored("qualifier"), copy=False)
        return self.let("qualifiers", qualifiers.where(of_key, within(column("f"), owners), copy=False))

    def records(self, view: str) -> exp.Select:
        """Return all rows of a view of records."""
        return select(_STAR.copy()).from_(self.stored(view), copy=False)

    def source(self, name: str) -> Query:
        """Return a query for the number of a source."""
        return (
            select(column("n"))
            .from_(self.stored("source"), copy=False)
            .where(exp.EQ(this=column("name"), expression=literal(name)), copy=False)
        )

    def all_of(self, table: str) -> exp.Select:
        """Return all rows of a part."""
        return select(_STAR.copy()).from_(self.bound(table), copy=False)


def _count_uses(plans: Sequence[Node]) -> Counter[int]:
    """Count the uses of each operator in some plans, by `id`; a plan itself counts as one more."""
    nodes = {id(node): node for plan in plans for node in postorder(plan)}
    return Counter(map(id, [*plans, *(child for node in nodes.values() for child in node.inputs())]))


# -- Entities --------------------------------------------------------------------------------------


def _every(compiler: Compiler, node: alg.AllEntities) -> Query:
    """All entities of some kinds; with a source, its own rows, or these and the ends of its statements."""
    query = (
        select(column("e"))
        .from_(compiler.stored("entity"), copy=False)
        .where(one_of(column("kind"), [int(kind) for kind in node.kinds]), copy=False)
    )
    if node.source is None:
        return query
    own = within(column("source"), compiler.source(node.source))
    if node.own:
        return query.where(own, copy=False)
    placed = (
        select(column("f"))
        .from_(compiler.stored("place"), copy=False)
        .where(within(column("source"), compiler.source(node.source)), copy=False)
    )
    in_source = compiler.let(
        "in_source",
        select(column("s"), column("o"))
        .from_(compiler.stored("statement"), copy=False)
        .where(within(column("f"), placed), copy=False),
    )
    ends = together(
        [select(column(end)).from_(compiler.bound(in_source), copy=False).where(known(column(end)), copy=False) for end in "so"]
    )
    return query.where(either([own, within(column("e"), ends)]), copy=False)


def _known(compiler: Compiler, node: alg.ById) -> Query:
    return select(column("e")).from_(compiler.stored("entity"), copy=False).where(one_of(column("id"), node.ids), copy=False)


def _named(compiler: Compiler, node: alg.ByName) -> Query:
    return select(column("e")).from_(compiler.stored("entity"), copy=False).where(one_of(column("name"), node.names), copy=False)


def _members(compiler: Compiler, node: alg.Members) -> Query:
    concepts = within(column("concept"), compiler.members(node.concepts))
    return select(column("e"), distinct=True).from_(compiler.stored("member"), copy=False).where(concepts, copy=False)


def _union(compiler: Compiler, node: alg.Union) -> Query:
    return together([compiler.set_of(part) for part in node.parts], distinct=True) if node.parts else _nothing(compiler)


def _nothing(compiler: Compiler) -> Query:
    return select(column("e")).from_(compiler.stored("entity"), copy=False).where(FALSE.copy(), copy=False)


def _intersect(compiler: Compiler, node: alg.Intersect) -> Query:
    first, *remaining = node.parts
    return compiler.set_of(first).where(*(within(column("e"), compiler.members(part)) for part in remaining), copy=False)


def _minus(compiler: Compiler, node: alg.Minus) -> Query:
    without = exp.not_(within(column("e"), compiler.members(node.right)))
    return compiler.set_of(node.left).where(without, copy=False)


def _neighbour(compiler: Compiler, node: alg.Neighbour) -> Query:
    order = exp.Order(expressions=[exp.Ordered(this=column(key)) for key in ("row", "e")])
    place = exp.Window(this=exp.RowNumber(), partition_by=[column("source")], order=order)
    rows = compiler.let(
        "rows",
        select(column("e"), column("source"), named(place, "at"))
        .from_(compiler.stored("entity"), copy=False)
        .where(known(column("source")), copy=False),
    )
    position = exp.Add(this=column("at", "a"), expression=literal(node.distance))
    is_neighbour = both(
        [
            exp.EQ(this=column("source", "a"), expression=column("source", "b")),
            exp.EQ(this=column("at", "b"), expression=position),
            within(column("e", "a"), compiler.members(node.of)),
        ]
    )
    pair = select(column("e", "b"), distinct=True).from_(compiler.bound(rows, "a"), copy=False)
    return pair.join(compiler.bound(rows, "b"), on=is_neighbour, copy=False)


def _reached(compiler: Compiler, node: alg.Reached) -> Query:
    end = "s" if reach_of(node.facts) == "subject" else "o"
    ends, _ = compiler.statements(node.facts)
    ends.select(named(column(end), "e"), append=False, copy=False).distinct(copy=False)
    return ends if end == "s" else ends.where(known(column("o")), copy=False)


def _holders(compiler: Compiler, node: alg.SubjectsOf) -> Query:
    values = node.values
    if isinstance(values, alg.Names):
        return compiler.set_of(values.entities)
    assert isinstance(values, alg.Objects)
    return select(named(column("s"), "e"), distinct=True).from_(compiler.bound(compiler.facts(values.facts)), copy=False)


def _referents(compiler: Compiler, node: alg.Referents) -> Query:
    values = node.values
    if isinstance(values, alg.Names):
        return compiler.set_of(values.entities)
    assert isinstance(values, alg.Objects | alg.Qualifiers)
    cells = compiler.facts(values.facts)
    if isinstance(values, alg.Qualifiers):
        cells = compiler.qualifiers(cells, str(values.key))
    own = select(named(column("o"), "e")).from_(compiler.bound(cells), copy=False).where(known(column("o")), copy=False)
    texts = (
        select(column("text"))
        .from_(compiler.bound(cells), copy=False)
        .where(exp.EQ(this=column("kind"), expression=literal(0)), copy=False)
    )
    by_name = select(column("e")).from_(compiler.stored("entity"), copy=False).where(within(column("name"), texts), copy=False)
    return together([own, by_name], distinct=True)


def _namesakes(compiler: Compiler, node: alg.SameName) -> Query:
    names = (
        select(column("name"))
        .from_(compiler.stored("entity"), copy=False)
        .where(within(column("e"), compiler.members(node.of)), copy=False)
    )
    return select(column("e")).from_(compiler.stored("entity"), copy=False).where(within(column("name"), names), copy=False)


def _best(compiler: Compiler, node: alg.ArgExtreme) -> Query:
    """The entities with the best value of a key, including ties.

    The most frequent type and unit competes; in a tie, times win, then the unit first by name.
    """
    tested = [int(Kind.QUANTITY), int(Kind.TIME)]
    scan = alg.Scan(node.of, (node.key,), family="attribute")
    values = compiler.let("values", compiler.all_of(compiler.facts(scan)).where(one_of(column("kind"), tested), copy=False))
    unit = coalesce(column("unit"), literal(""))
    word = case([(exp.EQ(this=column("unit"), expression=literal(NO_UNIT)), literal(""))], unit)
    competing = compiler.let(
        "competing",
        select(column("kind"), named(unit, "unit"))
        .from_(compiler.bound(values), copy=False)
        .group_by(column("kind"), column("unit"), copy=False)
        .order_by(
            exp.Ordered(this=exp.Count(this=exp.Star()), desc=True),
            exp.Ordered(this=column("kind"), desc=True),
            exp.Ordered(this=word, desc=False),
            copy=False,
        )
        .limit(1, copy=False),
    )
    down = node.direction == "largest"
    keys = [column("number", "v"), coalesce(column("tie", "v"), literal("1")), column("stop" if down else "start", "v")]
    order = exp.Order(expressions=[exp.Ordered(this=key, desc=down, nulls_first=False) for key in keys])
    ranked = compiler.let(
        "ranked",
        select(column("s", "v"), named(exp.Window(this=exp.Anonymous(this="RANK"), order=order), "rank"))
        .from_(compiler.bound(values, "v"), copy=False)
        .join(
            compiler.bound(competing, "m"),
            on=both(
                [
                    exp.EQ(this=column("kind", "v"), expression=column("kind", "m")),
                    exp.EQ(this=coalesce(column("unit", "v"), literal("")), expression=column("unit", "m")),
                ]
            ),
            copy=False,
        ),
    )
    first = exp.EQ(this=column("rank"), expression=literal(1))
    return select(named(column("s"), "e"), distinct=True).from_(compiler.bound(ranked), copy=False).where(first, copy=False)


# -- Statements ------------------------------------------------------------------------------------


def _kinds_matter(node: alg.Scan, of: alg.AllEntities, schema: StoredSchema) -> bool:
    """Tell whether the kinds in `of` exclude any anchor of a scan.

    The anchors of a scan are never concepts unless the schema has concepts as subjects.
    """
    concepts = (schema.concept_subjects and node.family != "attribute") or (schema.concept_attributes and node.family != "relation")
    return node.anchor != "subject" or concepts or of.kinds != alg.ENTITY_KINDS


def _scan(compiler: Compiler, node: alg.Scan) -> Query:
    relations = node.family != "attribute"
    attributes = node.family != "relation" and node.anchor == "subject" and (node.family == "any" or node.reach == "subject")
    query = select(_STAR.copy()).from_(compiler.stored("statement"), copy=False)
    if node.predicates == () or not (relations or attributes):
        return query.where(FALSE.copy(), copy=False)
    tests: list[exp.Expr] = []
    if node.predicates is not None:
        tests.append(one_of(column("predicate"), node.predicates))
    if not (relations and attributes):
        sort = exp.EQ if relations else exp.NEQ
        tests.append(sort(this=column("kind"), expression=literal(int(Kind.ENTITY))))
    of = node.of
    every = isinstance(of, alg.AllEntities) and of.source is None and not _kinds_matter(node, of, compiler.schema)
    if of is not None and not every:
        tests.append(within(column("s" if node.anchor == "subject" else "o"), compiler.members(of)))
    if node.source is not None:
        placed = (
            select(column("f"))
            .from_(compiler.stored("place"), copy=False)
            .where(within(column("source"), compiler.source(node.source)), copy=False)
        )
        tests.append(within(column("f"), placed))
    return query.where(*tests, copy=False)


def _where(compiler: Compiler, node: alg.Where) -> Query:
    query, table = compiler.statements(node.facts)
    return query.where(condition(compiler.tests, node.condition, table), copy=False)


def _owners(compiler: Compiler, *tests: exp.Expr) -> exp.Expr:
    """Return a test that a statement has a qualifier that passes tests on the columns of `q`."""
    owners = select(column("f", "q")).from_(compiler.stored("qualifier", "q"), copy=False).where(*tests, copy=False)
    return within(column("f"), owners)


def _where_qualifier(compiler: Compiler, node: alg.WhereQualifier) -> Query:
    query, _ = compiler.statements(node.facts)
    key = exp.EQ(this=column("key", "q"), expression=literal(node.key))
    return query.where(_owners(compiler, key, condition(compiler.tests, node.condition, "q")), copy=False)


#: The qualifiers that state the start, and the end, of a fact; a point in time states both.
BOUND_KEYS: Final = {"start": (START_TIME, POINT_IN_TIME), "end": (END_TIME, POINT_IN_TIME)}


def states_bound(part: str, table: str) -> exp.Expr:
    """Return a test that a qualifier states the start (or end) of a fact; a point in time states both."""
    return one_of(column("key", table), BOUND_KEYS[part])


def ordered_bounds(table: str) -> exp.Expr:
    """Return a test that the bounds of a validity are in the right order:

    otherwise both are unknown, whatever the qualifiers are.
    """
    return exp.not_(
        both(
            [
                exp.EQ(this=column("since", table), expression=literal(UNKNOWN_START)),
                exp.EQ(this=column("until", table), expression=literal(UNKNOWN_END)),
            ]
        )
    )


def _where_validity(compiler: Compiler, node: alg.WhereValidity) -> Query:
    time = exp.EQ(this=column("kind", "q"), expression=literal(int(Kind.TIME)))
    test = condition(compiler.tests, node.condition, "q")
    query, table = compiler.statements(node.facts)
    owners = _owners(compiler, states_bound(node.part, "q"), time, test)
    return query.where(owners, ordered_bounds(table), copy=False)


def _during(compiler: Compiler, node: alg.During) -> Query:
    query, table = compiler.statements(node.facts)
    validity, interval = (column(name, table) for name in ("since", "until")), (node.interval.start, node.interval.end)
    return query.where(span_test(node.relation, *validity, *map(literal, interval)), copy=False)


def _turn(compiler: Compiler, node: alg.OtherEnd) -> Query:
    query, _ = compiler.statements(node.facts)
    return query.where(known(column("o")), copy=False) if node.reach == "object" else query


#: Compile functions by operator; None where the client computes it.
ENTITIES: Final[EntityTable[Compiler, [], Query]] = {
    "AllEntities": _every,
    "ById": _known,
    "ByName": _named,
    "Members": _members,
    "Union": _union,
    "Intersect": _intersect,
    "Minus": _minus,
    "Neighbour": _neighbour,
    "Reached": _reached,
    "SubjectsOf": _holders,
    "Referents": _referents,
    "SameName": _namesakes,
    "ArgExtreme": _best,
}
FACTS: Final[FactTable[Compiler, [], Query]] = {
    "Scan": _scan,
    "Where": _where,
    "WhereQualifier": _where_qualifier,
    "During": _during,
    "DuringAny": None,
    "WhereValidity": _where_validity,
    "OtherEnd": _turn,
}
_ENTITIES: Final[dict[type, Any]] = dict(by_type(ENTITIES))
_FACTS: Final[dict[type, Any]] = dict(by_type(FACTS))


def is_native(node: Node) -> bool:
    """Tell whether an operator, given its inputs, is SQL."""
    if isinstance(node, alg.SubjectsOf | alg.Referents):
        # The objects of statements, and names, are no bags that the client computes.
        return isinstance(node.values, alg.Objects | alg.Names)
    if isinstance(node, alg.Where | alg.WhereQualifier | alg.WhereValidity):
        return supports(node.condition)
    if isinstance(node, alg.Pattern):
        return all(map(supports, tested(node)))
    rows = isinstance(node, alg.EntityRows | alg.Join)
    return rows or _ENTITIES.get(type(node)) is not None or _FACTS.get(type(node)) is not None


def beyond(order: Sequence[Node]) -> set[int]:
    """Return the operators of a plan (by `id`; inputs first) that are not SQL, or depend on one that is none."""
    result: set[int] = set()
    shapes: dict[int, RowShape] = {}
    for node in order:
        # These do not need the bag itself, only its statements or entities.
        bags = node.inputs() if isinstance(node, alg.SubjectsOf | alg.Referents) and is_native(node) else ()
        inputs = [child for bag in bags for child in bag.inputs()] if bags else node.inputs()
        if not is_native(node) or any(id(child) in result for child in inputs):
            result.add(id(node))
        elif isinstance(node, alg.Solutions):
            if (shape := shape_of(node, shapes)) is None:
                result.add(id(node))
            else:
                shapes[id(node)] = shape
    return result
