"""Compile a plan into one SQL query: for its answer, for what the client finishes it from, or for the sizes of steps.

The queries of a graph's own tables are here, those of existing tables in `sql.native_plan`. `SUPPORT` tells how each operator is
run. If the client finishes a plan, the query returns the statements and sets that it starts from, or the evidence of the plan,
as records (`sql.tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeGuard

import numpy as np
from sqlglot import exp

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node, postorder
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.execute.run import Run
from condgraph.engine.execute.searched import countable
from condgraph.engine.execute.sets import FactSet, Numbers
from condgraph.engine.execute.witness_plan import Unit, WitnessRun, shown, units
from condgraph.engine.facts import Source
from condgraph.engine.passes import rewrite
from condgraph.engine.row_shapes import is_plain
from condgraph.engine.snapshot.readback import further_sources
from condgraph.engine.store import EndPart
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import Kind
from condgraph.sql.compiler import Compiler, beyond, ordered_bounds, reach_of, states_bound
from condgraph.sql.conditions import condition, supports
from condgraph.sql.rows import plain, plain_facts
from condgraph.sql.tables import BELOW, CELL, ENDS, ENTITY_RECORDS, FACT_RECORDS, NUMBERED, TAKEN, Graph, Row
from condgraph.sql.terms import NULL, Query, cast, coalesce, column, known, literal, name, named, one_of, select, together, within

# -- Support -----------------------------------------------------------------------------------------


_BAG: Final = "lowered: a bag is worked out from the statements that carry it"
_TABLE: Final = "lowered: a table is worked out from the rows of its groups"
_ROWS: Final = "lowered: the statements of matches are fetched, and joined by the client"
_TEST: Final = "supported (lowered: tests with the values of another step)"
#: How each operator and test is run; a test compares the table with the algebra. "lowered" ones are
#: finished by the client, on statements that the one query returns.
SUPPORT: Final[dict[type[Node] | type[Condition], str]] = {
    **dict.fromkeys(
        (
            *(alg.AllEntities, alg.ById, alg.ByName, alg.Members, alg.Union, alg.Intersect, alg.Minus, alg.Neighbour),
            *(alg.Reached, alg.SameName, alg.ArgExtreme, alg.Scan, alg.During, alg.OtherEnd, alg.Exists),
            *(alg.Compare, alg.AnyOf, alg.AllOf, alg.Among, alg.Not),
        ),
        "supported",
    ),
    **dict.fromkeys((alg.Where, alg.WhereQualifier, alg.WhereValidity), _TEST),
    **dict.fromkeys((alg.SubjectsOf, alg.Referents), "supported of objects and names, else lowered"),
    **dict.fromkeys((alg.Equals, alg.Versus, alg.DuringAny), "lowered: the values of another step decide"),
    alg.Names: "supported at the end of a program, and of `SubjectsOf` and `Referents`, else lowered",
    **dict.fromkeys(
        (alg.Objects, alg.Qualifiers, alg.Distinct), "supported at the end of a program, each value once, else lowered"
    ),
    alg.AnySatisfies: "supported of objects and qualifiers, else lowered",
    alg.Count: "supported of entities, else lowered: texts are counted as they are shown",
    **dict.fromkeys(
        (
            *(alg.Validity, alg.Predicates, alg.QualifierKeys, alg.RowNumbers, alg.FilterValues),
            *(alg.Concat, alg.Constants, alg.Extreme, alg.Mode, alg.Nth, alg.Clip, alg.Bound, alg.Shown),
            alg.Choose,
        ),
        _BAG,
    ),
    **dict.fromkeys((alg.Sum, alg.Mean, alg.Deviation, alg.Median), "lowered: exactly rounded, which no engine's are"),
    **dict.fromkeys((alg.Group, alg.Having, alg.Order, alg.Limit), _TABLE),
    alg.GroupRows: "supported of the number of all rows of one set, else lowered",
    alg.Apply: "lowered: native functions are Python",
    alg.External: "lowered: the function is the client's",
    **dict.fromkeys(
        (
            *(alg.Pattern, alg.Path, alg.EntityRows, alg.Rows, alg.Join, alg.LeftJoin, alg.SemiJoin, alg.AntiJoin, alg.MarkJoin),
            *(alg.MinusRows, alg.UnionAll, alg.Filter, alg.WhereRows, alg.BoundRows, alg.Extend, alg.Unwind, alg.Project),
            *(alg.DistinctRows, alg.OrderRows, alg.SliceRows, alg.EntitiesOf, alg.FactsOf),
        ),
        _ROWS,
    ),
}
#: Operators that read the graph: if the client had to run one, the query returns the evidence of the plan
#: instead.
_READING: Final[tuple[type[Node], ...]] = (
    *(alg.Scan, alg.ArgExtreme, alg.Neighbour, alg.Members, alg.Referents, alg.SameName, alg.AllEntities),
    alg.Solutions,
)


#: The rows of a query: entities, values (a cell, then the entity that it is), a count, a truth value, or
#: records from which the client continues.
Shape: TypeAlias = Literal["entities", "values", "count", "counted rows", "truth", "gathered", "witness"]


Text: TypeAlias = Query | str


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query, and the shape of its rows.

    For values, `columns` are the parts of cells (`CELL`, and an entity's id, name, kind and row); for gathered rows,
    and counted rows, `leaves` are the operators with these results; for a witness, `fetched` lists what was fetched.
    """

    query: Text
    shape: Shape
    columns: tuple[str, ...] = ()
    leaves: tuple[Node, ...] = ()
    fetched: tuple[Unit, ...] = ()


#: An operator with its number in a query for several.
Numbered: TypeAlias = Sequence[tuple[int, Node]]
Bag: TypeAlias = alg.Objects | alg.Qualifiers
#: The columns of a query for values.
VALUE: Final = (*CELL, "id", "name", "at", "row")


class Plans(Protocol):
    """The queries of one layout. Operators are native (`native`); one query sees one state of the graph."""

    @property
    def schema(self) -> StoredSchema:
        """The schema of the graph."""
        ...

    def entities(self, node: alg.Entities) -> Text:
        """Return the query for the id, name, kind and row of each entity."""
        ...

    def count(self, node: alg.Entities) -> Text:
        """Return the query for the number of entities."""
        ...

    def some(self, facts: alg.Facts) -> Text:
        """Return a query with a row if there is a statement."""
        ...

    def some_value(self, bag: Bag, test: Condition) -> Text:
        """Return a query with a row if a test holds for some value."""
        ...

    def values(self, bag: Bag) -> tuple[Text, tuple[str, ...]]:
        """Return the query for the distinct values, and the columns (`VALUE`) that it has."""
        ...

    def cells(self, facts: alg.Facts) -> Text:
        """Return the query for the distinct objects:

        the predicate, whether it is an entity, its cell (`CELL`), and its raw text.
        """
        ...

    def gathered(self, parts: Numbered, members: Sequence[tuple[Node, Node]] = (), most: int | None = None) -> Text:
        """Return the query for the results of numbered operators, as records, and the memberships of entities under concepts.

        With `most`, only that many statements of each operator, and one other entity for each name of an entity, if
        there is one.
        """
        ...

    def records(self, rows: Sequence[Row], sources: Sequence[Source]) -> Records:
        """Return the result of a query for records."""
        ...

    def counts(self, parts: Numbered) -> Text:
        """Return the query for the number of statements, or entities, of each operator: rows of a number and a size."""
        ...

    def sizes(self, parts: Numbered, most: int) -> Text:
        """Return the query for the sizes of operators and the first names of entities.

        Its rows have a number, and a size or a name.
        """
        ...

    def tallies(self, parts: Numbered) -> Text:
        """Return the query for the values of each bag by type and unit: rows of a number, a type, a unit and a count."""
        ...

    def names_near(self, text: str, most: int, *, below: bool) -> Text:
        """Return the query for the first names at or after a text, or the last before it."""
        ...


def native(node: Node) -> bool:
    """Tell whether an operator and everything below it are SQL."""
    return isinstance(node, alg.Entities | alg.Facts) and not beyond(postorder(node))


def compile_plan(plan: Node, plans: Plans) -> Compiled:
    """Compile a plan."""
    missing = sorted({type(node).__name__ for node in postorder(plan) if type(node) not in SUPPORT})
    if missing:
        raise UnsupportedError("SQL", missing, hint="graph.snapshot() is the same graph in process")
    try:
        return _compiled(plan, plans)
    except RecursionError:
        raise UnsupportedError("SQL", ["so many steps of a program within each other"]) from None


def _compiled(plan: Node, plans: Plans) -> Compiled:
    inner: Node = plan.entities if isinstance(plan, alg.Names) else alg.Reached(plan) if isinstance(plan, alg.Facts) else plan
    if isinstance(inner, alg.Entities) and native(inner):
        return Compiled(plans.entities(inner), "entities")
    if isinstance(plan, alg.Count) and isinstance(plan.of, alg.Entities) and native(plan.of):
        return Compiled(plans.count(plan.of), "count")
    if isinstance(plan, alg.Exists) and native(plan.facts):
        return Compiled(plans.some(plan.facts), "truth")
    if isinstance(plan, alg.AnySatisfies) and supports(plan.condition) and all(map(native, plan.condition.inputs())):
        bag = plan.values.values if isinstance(plan.values, alg.Distinct) else plan.values
        if _has_cells(bag):
            return Compiled(plans.some_value(bag, plan.condition), "truth")
    with_raw = isinstance(plan, alg.Distinct) and isinstance(plan.values, alg.Objects) and plans.schema.raw
    if isinstance(plan, alg.Distinct) and not with_raw and _has_cells(plan.values):
        query, columns = plans.values(plan.values)
        return Compiled(query, "values", columns)
    if (group := _counting(plan)) is not None:
        return Compiled(plans.count(group[1]), "counted rows", leaves=(group[0],))
    leaves: list[Node] = []
    if gathers(plan, leaves, set()):
        return Compiled(plans.gathered(list(enumerate(leaves))), "gathered", leaves=tuple(leaves))
    return compile_witness(plan, plans)


def _counting(plan: Node) -> tuple[alg.GroupRows, alg.Entities] | None:
    """Return the operator that counts all rows of a plan, and the set of these rows, if nothing else of them is needed;

    else None.
    """
    node = plan
    while isinstance(node, alg.Project) or (isinstance(node, alg.Extend) and is_plain(node.expression)):
        node = node.of
    if not isinstance(node, alg.GroupRows) or node.keys or not isinstance(node.of, alg.EntityRows):
        return None
    counts = all(item.function == "count" and item.of in (None, node.of.variable) for item in node.aggregates)
    return (node, node.of.entities) if counts and native(node.of.entities) else None


def finish_counted(plan: Node, group: alg.GroupRows, count: int) -> Run:
    """Run a plan, given the number of rows that a group of all rows counts."""
    rows = alg.Rows(tuple(item.name for item in group.aggregates), ((count,) * len(group.aggregates),))
    replaced = rewrite(plan, lambda part: rows if part is group else part)
    run = Run(Graph({}, ()).snapshot())
    run.execute(replaced, postorder(replaced))
    run.results[id(plan)] = run.results[id(replaced)]
    return run


def _has_cells(values: Node) -> TypeGuard[Bag]:
    if isinstance(values, alg.Qualifiers) and values.key is None:
        return False
    return isinstance(values, alg.Objects | alg.Qualifiers) and native(values.facts)


def gathers(node: Node, leaves: list[Node], seen: set[int]) -> bool:
    """Collect the largest parts that are SQL; return False if an operator above them reads the graph."""
    if id(node) in seen:
        return True
    seen.add(id(node))
    if native(node):
        leaves.append(node)
        return True
    return not isinstance(node, _READING) and all(gathers(child, leaves, seen) for child in node.inputs())


def compile_witness(plan: Node, plans: Plans) -> Compiled:
    """Compile the query for the evidence of a plan."""
    return compile_units(wanted(plan, plans.schema), plans)


def compile_units(fetched: tuple[Unit, ...], plans: Plans) -> Compiled:
    """Compile the query for statements and sets that no rows bind."""
    members = [(unit.compiled, unit.concepts) for unit in fetched if unit.concepts is not None]
    query = plans.gathered([(number, unit.compiled) for number, unit in enumerate(fetched)], members)
    return Compiled(query, "witness", fetched=fetched)


def wanted(plan: Node, schema: StoredSchema) -> tuple[Unit, ...]:
    """Return what has to be fetched for a plan without rows."""
    result: list[Unit] = []
    for unit in (*units(plan, beyond(postorder(plan))), *shown(plan, schema)):
        if isinstance(unit.compiled, alg.Facts):
            result += map(Unit, plain_facts(unit.compiled))
        else:
            assert isinstance(unit.compiled, alg.Entities)
            concepts = None if unit.concepts is None else plain(unit.concepts)
            result.append(replace(unit, compiled=plain(unit.compiled), concepts=concepts))
    return tuple(dict.fromkeys(result))


def counted(nodes: Sequence[Node], known: Any) -> list[Node]:
    """Return the operators to count for some operators, given what the client knows of their inputs."""
    return [countable(node, lambda one: not native(one), known) for node in nodes]


# -- A graph's own tables ----------------------------------------------------------------------------


class OwnPlans:
    """The queries of a graph in its own tables, in the schema `place` of a database."""

    def __init__(self, place: str, schema: StoredSchema, close_subclasses: Callable[[str], None] | None = None) -> None:
        self._in, self.schema, self._close = place, schema, close_subclasses

    def _compiler(self, *plans: Node) -> Compiler:
        return Compiler(self._in, self.schema, plans)

    def entities(self, node: alg.Entities) -> Query:
        """See `Plans.entities`."""
        compiler = self._compiler(node)
        tested = within(column("e"), compiler.members(node))
        columns = [column(name) for name in ("id", "name", "kind", "row")]
        return compiler.whole(select(*columns).from_(compiler.stored("entity"), copy=False).where(tested, copy=False))

    def count(self, node: alg.Entities) -> Query:
        """See `Plans.count`."""
        compiler = self._compiler(node)
        part = compiler.bound(compiler.entities(node))
        return compiler.whole(select(exp.Count(this=exp.Star())).from_(part, copy=False))

    def some(self, facts: alg.Facts) -> Query:
        """See `Plans.some`."""
        compiler = self._compiler(facts)
        query, _ = compiler.statements(facts)
        return compiler.whole(query.select(literal(1), append=False, copy=False).limit(1, copy=False))

    def some_value(self, bag: Bag, test: Condition) -> Query:
        """See `Plans.some_value`."""
        compiler = self._compiler(bag)
        cells = _cells(compiler, bag)
        holds = condition(compiler.tests, test, cells)
        return compiler.whole(
            select(literal(1)).from_(compiler.bound(cells), copy=False).where(holds, copy=False).limit(1, copy=False)
        )

    def values(self, bag: Bag) -> tuple[Query, tuple[str, ...]]:
        """See `Plans.values`."""
        compiler = self._compiler(bag)
        columns = [*(column(key, "v") for key in CELL), *(column(key, "e") for key in ("id", "name", "kind", "row"))]
        query = select(*columns, distinct=True).from_(compiler.bound(_cells(compiler, bag), "v"), copy=False)
        same = exp.EQ(this=column("o", "v"), expression=column("e", "e"))
        query.append("joins", exp.Join(this=compiler.stored("entity", "e"), side="LEFT", on=same))
        return compiler.whole(query), VALUE

    def cells(self, facts: alg.Facts) -> Query:
        """See `Plans.cells`."""
        compiler = self._compiler(facts)
        columns = [column("predicate"), named(known(column("o")), "is_entity"), *(column(name) for name in (*CELL, "raw"))]
        return compiler.whole(select(*columns, distinct=True).from_(compiler.bound(compiler.facts(facts)), copy=False))

    def gathered(self, parts: Numbered, members: Sequence[tuple[Node, Node]] = (), most: int | None = None) -> Query:
        """See `Plans.gathered`."""
        compiler = self._compiler(*(node for _, node in parts))
        stated, recursive_parts = list[Query](), list[Query]()
        if members and self._close is not None:
            self._close(self._in)
        for entities, concepts in members:
            assert isinstance(entities, alg.Entities)
            assert isinstance(concepts, alg.Entities)
            _memberships(compiler, entities, concepts, stated, recursive_parts, recursive=self._close is None)
        return gathering(compiler, parts, stated, recursive_parts, most=most)

    def ends(self, parts: Sequence[EndPart]) -> Query:
        """Return the query for the ends of statements between entities and texts, and of stated memberships.

        Its rows are those of `patterns.remote.planned.EndRow`, with the numbers of entities and statements.
        """
        compiler, branches = self._compiler(*(part for part in parts if isinstance(part, alg.Facts))), list[Query]()
        for part in parts:
            if isinstance(part, alg.Facts):
                query, table = compiler.statements(part)
                query = query.where(one_of(column("kind", table), [int(Kind.TEXT), int(Kind.ENTITY)]), copy=False)
                names = ("s", "predicate", "o", "text", "f")
                branches.append(query.select(*(column(name, table) for name in names), append=False, copy=False))
                continue
            sets = (("e", part.member), ("concept", part.concept))
            tests = [within(column(end), compiler.members(node)) for end, node in sets if isinstance(node, alg.Entities)]
            query = select(column("e"), cast(NULL.copy(), "text"), column("concept"), cast(NULL.copy(), "text"), literal(0))
            branches.append(query.from_(compiler.stored("membership"), copy=False).where(*tests, copy=False))
        return compiler.whole(together(branches))

    def records(self, rows: Sequence[Row], sources: Sequence[Source]) -> Records:
        """See `Plans.records`."""
        listed: dict[str, dict[Row, None]] = {table: {} for table in TAKEN}
        results: dict[int, set[Any]] = {}
        orders = {table: [at + 1 for at in NUMBERED.slots(table).values()] for table in TAKEN}
        for row in rows:
            if row[0] == _HIT:
                unit, f, e = row[1:4]
                results.setdefault(int(unit), set()).add(e if f is None else f)
            else:
                listed[row[0]][tuple([row[at] for at in orders[row[0]]])] = None
        return Records(listed, results, sources, numbered=True)

    def counts(self, parts: Numbered) -> Query:
        """See `Plans.counts`."""
        compiler = self._compiler()
        return compiler.whole(together([_number_of(compiler, number, node) for number, node in parts]))

    def sizes(self, parts: Numbered, most: int) -> Query:
        """See `Plans.sizes`."""
        compiler, branches = self._compiler(), list[Query]()
        for number, node in parts:
            branches.append(_number_of(compiler, number, node).select(cast(NULL.copy(), "text"), copy=False))
            if not isinstance(node, alg.Entities):
                continue
            first = (
                select(column("name"))
                .from_(compiler.stored("entity"), copy=False)
                .where(within(column("e"), compiler.set_of(node)), copy=False)
                .order_by(column("name"), column("id"), copy=False)
                .limit(most, copy=False)
            )
            few = exp.Subquery(this=first, alias=exp.TableAlias(this=name("few")))
            branches.append(select(literal(number), cast(NULL.copy(), "bigint"), column("name")).from_(few, copy=False))
        return compiler.whole(together(branches))

    def tallies(self, parts: Numbered) -> Query:
        """See `Plans.tallies`."""
        compiler, branches = self._compiler(), list[Query]()
        for number, bag in parts:
            assert isinstance(bag, alg.Objects | alg.Qualifiers | alg.Validity)
            facts = compiler.facts(bag.facts)
            query = select().from_(compiler.bound(facts, "x"), copy=False)
            if not isinstance(bag, alg.Objects):
                query = select().from_(compiler.stored("qualifier", "x"), copy=False)
                owners = select(column("f")).from_(compiler.bound(facts), copy=False)
                if isinstance(bag, alg.Qualifiers):
                    test: exp.Expr = exp.EQ(this=column("key", "x"), expression=literal(bag.key))
                else:
                    owners = owners.where(ordered_bounds(facts), copy=False)
                    is_time = exp.EQ(this=column("kind", "x"), expression=literal(int(Kind.TIME)))
                    test = exp.and_(states_bound("end" if bag.part == "end" else "start", "x"), is_time)
                query = query.where(test, within(column("f", "x"), owners), copy=False)
            unit = coalesce(column("unit", "x"), literal(""))
            query = query.select(literal(number), column("kind", "x"), unit, exp.Count(this=exp.Star()), copy=False)
            branches.append(query.group_by(column("kind", "x"), column("unit", "x"), copy=False))
        return compiler.whole(together(branches))

    def names_near(self, text: str, most: int, *, below: bool) -> Query:
        """See `Plans.names_near`."""
        side = (exp.LT if below else exp.GTE)(this=column("name"), expression=literal(text))
        query = select(column("name"), distinct=True).from_(self._compiler().stored("entity"), copy=False).where(side, copy=False)
        return query.order_by(exp.Ordered(this=column("name"), desc=below), copy=False).limit(most, copy=False)


def _number_of(compiler: Compiler, number: int, node: Node) -> exp.Select:
    """Return a row with a number, and the count of an operator's statements or entities."""
    assert isinstance(node, alg.Facts | alg.Entities)
    part = compiler.facts(node) if isinstance(node, alg.Facts) else compiler.entities(node)
    return select(literal(number), exp.Count(this=exp.Star())).from_(compiler.bound(part), copy=False)


def _cells(compiler: Compiler, bag: Bag) -> str:
    """Return the part with a cell for each value of a bag, and the entity that it is as `o`."""
    facts = compiler.facts(bag.facts)
    return facts if isinstance(bag, alg.Objects) else compiler.qualifiers(facts, str(bag.key))


# -- Records -----------------------------------------------------------------------------------------
# One query for the results of some operators, and for the table rows that these need.


#: Marks rows that state the result of an operator: its number, and a statement or an entity.
_HIT: Final = "hit"


def gathering(
    compiler: Compiler,
    parts: Sequence[tuple[int, Node]],
    stated: Sequence[Query] = (),
    more: Sequence[Query] = (),
    *,
    most: int | None = None,
) -> Query:
    """Return the query for the results of numbered operators, with the statements and entities in them.

    `stated` are further sets of entities, `more` rows of tables. With `most`, only that many statements of each
    operator, and one other entity for each name of an entity, if there is one.
    """
    hits, kind = list[Query](), NUMBERED.types[0]
    for number, node in parts:
        assert isinstance(node, alg.Facts | alg.Entities)
        bound = compiler.facts(node) if isinstance(node, alg.Facts) else compiler.entities(node)
        if most is not None and isinstance(node, alg.Facts):
            first = select(column("f")).from_(compiler.bound(bound), copy=False)
            bound = compiler.let("first", first.order_by(column("f"), copy=False).limit(most, copy=False))
        part = compiler.bound(bound)
        cells = [column("f"), NULL.copy()] if isinstance(node, alg.Facts) else [NULL.copy(), column("e")]
        hits.append(_hit(kind, literal(number), *cells).from_(part, copy=False))
    if not hits:
        hits.append(
            _hit(kind, NULL.copy(), NULL.copy(), NULL.copy())
            .from_(compiler.stored("about"), copy=False)
            .where(exp.false(), copy=False)
        )
    hit = compiler.let("hits", together(hits))

    def facts() -> Query:
        return select(column("f")).from_(compiler.bound(hit), copy=False)

    ends = [
        select(column("e")).from_(compiler.bound(hit), copy=False),
        select(column("e")).from_(compiler.stored(ENDS), copy=False).where(within(column("f"), facts()), copy=False),
        *stated,
    ]
    if most is not None:
        ends += _namesakes(compiler, compiler.let("ends", together(ends)))
    own = [named(literal(_HIT), "sort"), column("unit"), column("f"), column("e"), *(NULL.copy() for _ in NUMBERED.types[3:])]
    branches: list[Query] = [
        compiler.records(FACT_RECORDS).where(within(column("c0"), facts()), copy=False),
        compiler.records(ENTITY_RECORDS).where(within(column("c0"), together(ends)), copy=False),
        *more,
        select(*own).from_(compiler.bound(hit), copy=False),
    ]
    query = branches[0]
    for branch in branches[1:]:
        # The first one determines the types.
        query = exp.Union(this=query, expression=branch, distinct=False)
    return compiler.whole(query)


def _namesakes(compiler: Compiler, ends: str) -> list[Query]:
    """Return the first and the last entity for each name in a set: one of them is another entity, if there is one."""
    result: list[Query] = []
    for aggregate in (exp.Min, exp.Max):
        names = select(column("name")).from_(compiler.stored("entity"), copy=False)
        names = names.where(within(column("e"), compiler.all_of(ends)), copy=False)
        sets = select(named(aggregate(this=column("e")), "e")).from_(compiler.stored("entity"), copy=False)
        result.append(sets.where(within(column("name"), names), copy=False).group_by(column("name"), copy=False))
    return result


def _hit(kind: str, unit: exp.Expr, f: exp.Expr, e: exp.Expr) -> exp.Select:
    return select(*(named(cast(cell, kind), key) for key, cell in (("unit", unit), ("f", f), ("e", e))))


def _memberships(
    compiler: Compiler, members: alg.Entities, concepts: alg.Entities, stated: list[Query], more: list[Query], *, recursive: bool
) -> None:
    """Add the stated memberships that put entities under concepts, and the subclasses in between."""
    below = f"below_{len(more) + 1}"
    start = compiler.set_of(concepts)
    step = select(named(column("concept", "c"), "e")).from_(compiler.stored("subclass" if recursive else BELOW, "c"), copy=False)
    if recursive:
        above = exp.EQ(this=column("parent", "c"), expression=column("e", "b"))
        step = step.join(compiler.bound(below, "b"), on=above, copy=False)
        compiler.let_recursive(below, exp.Union(this=start, expression=step, distinct=True))
    else:
        step = step.where(within(column("parent", "c"), compiler.set_of(concepts)), copy=False)
        below = compiler.let("below", exp.Union(this=start, expression=step, distinct=True))
    under = select(column("e")).from_(compiler.bound(below), copy=False)
    stated.append(under.copy())
    belongs = exp.and_(within(column("concept"), under.copy()), within(column("e"), compiler.set_of(members)))
    more.append(NUMBERED.of("membership", compiler.stored("membership")).where(belongs, copy=False))
    stated.append(select(column("e")).from_(compiler.stored("membership"), copy=False).where(belongs.copy(), copy=False))
    more.append(NUMBERED.of("subclass", compiler.stored("subclass")).where(within(column("parent"), under.copy()), copy=False))


class Records:
    """The rows of a query for records, by table (`TAKEN`), and the results of each part, by ids of the database.

    Statements are `numbered` if they have numbers in the order of the whole graph.
    """

    def __init__(
        self, rows: dict[str, dict[Row, None]], results: dict[int, set[Any]], sources: Sequence[Source], *, numbered: bool
    ) -> None:
        self.results = results
        listed = {table: list(facts) for table, facts in rows.items()}
        # In the order of the whole graph, which a snapshot has as well.
        listed["statement"].sort(key=lambda row: row[0])
        graph = Graph(listed, sources)
        self.snapshot = graph.snapshot()
        self._ids = graph.ids
        self._numbered: Callable[[], dict[Any, int]] = lambda: (
            {row[0]: number for number, row in enumerate(listed["statement"])} if numbered else _numbers(listed, sources)
        )

    @cached_property
    def _facts(self) -> dict[Any, int]:
        return self._numbered()

    def entities(self, unit: int) -> Numbers:
        """Return the entities of a part, by their numbers in the snapshot."""
        numbers = [self.snapshot.identified(self._ids[e]) for e in self.results.get(unit, ())]
        return np.unique(np.array(numbers, np.int32))

    def facts(self, unit: int) -> Numbers:
        """Return the statements of a part, by their numbers in the snapshot, which has the same order."""
        return np.unique(np.array([self._facts[f] for f in self.results.get(unit, ())], np.int32))

    def run(self, plan: Node, leaves: Sequence[Node]) -> Run:
        """Run a plan on the results of its leaves."""
        run, snapshot = Run(self.snapshot), self.snapshot
        bounds = [(0, snapshot.relations), (snapshot.relations, snapshot.statements)]
        for unit, leaf in enumerate(leaves):
            if isinstance(leaf, alg.Facts):
                runs = [bound for bound in bounds if bound[0] < bound[1]]
                run.results[id(leaf)] = FactSet(run, reach_of(leaf), numbers=self.facts(unit), runs=runs)
            else:
                run.results[id(leaf)] = self.entities(unit)
        run.execute(plan, postorder(plan, run.results))
        return run

    def witness(self, plan: Node, fetched: Sequence[Unit]) -> WitnessRun:
        """Run a plan on its evidence."""
        known = {id(node): self.entities(number) for number, unit in enumerate(fetched) for node in unit.known}
        run = WitnessRun(self.snapshot, known, beyond(postorder(plan)))
        run.execute(plan)
        return run


def _numbers(listed: dict[str, list[Row]], sources: Sequence[Source]) -> dict[str, int]:
    """Return the numbers of statements in the snapshot of some rows, by their ids in a database without such numbers.

    They are found by building the same snapshot with numbered places.
    """
    place = {row[0]: at for at, row in enumerate(listed["statement"])}
    numbered_places = [(f, n, source, place[f], raw) for f, n, source, _, raw in listed["place"]]
    snapshot = Graph({**listed, "place": numbered_places}, sources).snapshot()
    facts, result = list(place), {}
    numbers = np.arange(snapshot.statements, dtype=np.int32)
    for number, row in enumerate(snapshot.row.take(numbers).tolist()):
        result[facts[row]] = number
    for number, further in further_sources(snapshot, numbers).items():
        result |= {facts[row]: number for _, row in further}
    return result
