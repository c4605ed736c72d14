"""The witness of a plan: the statements and sets that a store returns so that the plan can be run again in process.

A store that answers plans elsewhere fetches the units of a plan, builds a small snapshot of them, and runs the plan
there: this completes operators that need the client's code, and gives the evidence of an answer and the warnings of
its aggregates, equal to those in process because the code is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, Solutions, passed, passing, postorder
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.algebra.solutions import Place
from condgraph.engine.execute.run import Outcome, Run
from condgraph.engine.execute.sets import Numbers
from condgraph.engine.facts import EntityKind, Ref
from condgraph.engine.row_shapes import shapes_of
from condgraph.engine.snapshot.snapshot import Snapshot

#: All entities and concepts.
_ALL: Final = alg.AllEntities((EntityKind.ENTITY, EntityKind.CONCEPT, EntityKind.ROW))


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit to fetch: facts, or a set of entities, which is the result of the operators `known`.

    `compiled` is what the store runs, which filters less than the operator of the plan if that needs the client. For
    members, `concepts` gives the concepts whose memberships are fetched as well. `named` is an operator that finds
    entities by names which only the client knows: the store may then fetch less than `compiled`.
    """

    compiled: Node
    known: tuple[Node, ...] = ()
    concepts: alg.Entities | None = None
    named: Node | None = None


def units(plan: Node, beyond: set[int]) -> list[Unit]:
    """Return the units to fetch for a plan; `beyond` are the operators (by identity) that the store cannot run."""
    order = postorder(plan)
    takers: dict[int, list[Node]] = {}
    for node in order:
        for child in node.inputs():
            takers.setdefault(id(child), []).append(node)
    result: list[Unit] = []
    for node in order:
        taken_by = takers.get(id(node), [])
        if isinstance(node, alg.FactsOf | alg.EntitiesOf):
            continue
        if isinstance(node, alg.Facts) and taken_by and all(isinstance(taker, alg.Pattern | alg.Path) for taker in taken_by):
            # These come with the matches of the pattern, or the steps of the path.
            continue
        if isinstance(node, alg.Facts):
            through = [taker for taker in taken_by if isinstance(taker, alg.Facts) and passed(taker) is node]
            if len(through) < len(taken_by) or node is plan:
                result.append(Unit(_relaxed(node, beyond)))
        elif isinstance(node, alg.ArgExtreme):
            result.append(Unit(_relaxed(alg.Scan(node.of, (node.key,), family="attribute"), beyond)))
        elif isinstance(node, alg.Members):
            result.extend(_members(node, taken_by, beyond))
        elif isinstance(node, Solutions):
            continue
        elif node.facets.reads == "entities" and not isinstance(node, alg.AllEntities):
            if id(node) not in beyond:
                result.append(Unit(node, (node,)))
                result.extend(_skipped_units(node) if isinstance(node, alg.Neighbour) else ())
            elif isinstance(node, alg.Neighbour):
                result.extend(map(Unit, _rows(node)))
            elif not (taken_by and all(isinstance(taker, (alg.Scan, alg.Where)) for taker in taken_by)):
                # Ends of statements come with the statements; other entities must be fetched.
                result.append(Unit(_ALL, named=node))
        elif isinstance(node, alg.AllEntities) and not (taken_by and all(_bounds(taker, node) for taker in taken_by)):
            result.append(Unit(node, (node,)))
            if node.source is not None and node.kinds != (EntityKind.ROW,):
                # The statements of the source determine which entities belong to it.
                result.append(Unit(alg.Scan(None, None, source=node.source)))
    if any(isinstance(node, Solutions) for node in order):
        result.extend(_Rows(order, beyond).units())
    return result


class KnownReadings(Protocol):
    """The part of a schema that tells how the values of keys are read."""

    def shows(self, sort: str, keys: Collection[str] | None) -> list[list[Any]]:
        """Return the statements that show it, as subject, predicate and value (`Schema.shows`)."""


def keys_read(plan: Node) -> set[str] | None:
    """Return the attributes and qualifiers that expressions of a plan read (None: any)."""
    parts = [part for node in postorder(plan) for expression in _expressions(node) for part in ex.walk(expression)]
    if any(isinstance(part, ex.Index) or (isinstance(part, ex.Call) and part.name in _WHOLE_ENTITY) for part in parts):
        return None
    return {part.key for part in parts if isinstance(part, ex.Property)}


def shown(plan: Node, schema: KnownReadings) -> list[Unit]:
    """Return the statements that show how expressions read the numbers and texts of other statements, according to a
    schema: their reading does not follow from the rows alone.
    """
    keys, result = keys_read(plan), list[Unit]()
    for sort in ("attributes", "qualifiers"):
        triples = schema.shows(sort, keys) if keys is None or keys else []
        if triples:
            subjects, predicates = (tuple(sorted({place[at] for place in triples})) for at in (0, 1))
            result.append(Unit(alg.Scan(alg.ById(subjects), predicates)))
    return result


def _members(node: alg.Members, taken_by: list[Node], beyond: set[int]) -> Iterator[Unit]:
    if id(node) in beyond:
        # Only the client will know the concepts, so fetch all memberships.
        yield Unit(alg.AllEntities((EntityKind.ENTITY, EntityKind.ROW)), concepts=alg.AllEntities((EntityKind.CONCEPT,)))
        return
    intersections = [taker for taker in taken_by if isinstance(taker, alg.Intersect)]
    compiled: Node = intersections[0] if len(intersections) == len(taken_by) == 1 and id(intersections[0]) not in beyond else node
    yield Unit(compiled, (node,), node.concepts)


def _skipped_units(node: alg.Neighbour) -> Iterator[Unit]:
    """Yield the rows in between, which are evidence: without them another row would be the next one."""
    step = 1 if node.distance > 0 else -1
    return (Unit(replace(node, distance=distance)) for distance in range(step, node.distance, step))


def _rows(node: alg.Neighbour) -> list[alg.AllEntities]:
    """Return the rows of the sources in which a neighbour is looked for."""
    sources = {part.source for part in postorder(node) if isinstance(part, (alg.Scan, alg.AllEntities)) and part.source}
    return [alg.AllEntities((EntityKind.ROW,), source) for source in sorted(sources)] or [alg.AllEntities((EntityKind.ROW,))]


def _bounds(taker: Node, every: alg.AllEntities) -> bool:
    """Return whether an operator uses only those of all entities that statements or other sets lead to."""
    if isinstance(taker, alg.Intersect):
        return any(part is not every and not isinstance(part, alg.AllEntities) for part in taker.parts)
    if isinstance(taker, Solutions):
        return isinstance(taker, alg.Pattern)
    return isinstance(taker, alg.Scan) or (isinstance(taker, alg.Minus) and taker.right is every)


def _relaxed(facts: alg.Facts, beyond: set[int]) -> alg.Facts:
    """Return facts without the filters that need the client."""
    if beyond.isdisjoint(map(id, postorder(facts))):
        return facts
    if isinstance(facts, alg.Scan):
        return replace(facts, of=None)
    of = passed(facts)
    if of is None:
        # Statements of rows come with the patterns that bind them.
        return alg.Scan(alg.ById(()), ())
    inner = _relaxed(of, beyond)
    others = [child for child in facts.inputs() if child is not of]
    if any(not beyond.isdisjoint(map(id, postorder(child))) for child in others):
        return inner
    return passing(facts, inner)


# -- Rows --------------------------------------------------------------------------------------------
# For a pattern, the units are the statements and memberships of its matches; if other rows are joined with it, only of the matches
# that are compatible with these. If the store cannot match a pattern, each of its parts is fetched separately.


#: The longest path for which only the steps reachable from its end are fetched, instead of all steps it may follow.
_MAX_STEPS: Final = 3
#: Functions that read all statements of an entity.
_WHOLE_ENTITY: Final = frozenset(("keys", "properties"))
#: Operators whose rows are those of their input, with more or fewer variables or rows; input and output share a context.
_THROUGH: Final = (alg.Filter, alg.WhereRows, alg.BoundRows, alg.Extend, alg.Unwind, alg.DistinctRows, alg.OrderRows)


class _Rows:
    """The units of one plan over rows."""

    def __init__(self, order: Sequence[Node], beyond: set[int]) -> None:
        self._order, self._beyond = order, beyond
        #: The rows that an operator's rows are joined with, by its identity; None if it has several consumers.
        self._context: dict[int, list[Solutions] | None] = {}
        self._names = 0
        self._supersets: dict[int, Node | None] = {}

    def units(self) -> Iterator[Unit]:
        for node in reversed(self._order):
            if isinstance(node, Solutions):
                self._contexts(node)
        for node in self._order:
            if isinstance(node, alg.Pattern):
                yield from self._pattern(node)
            elif isinstance(node, alg.Path):
                yield from self._path(node)
            elif isinstance(node, alg.Rows):
                idents = {term.id for row in node.rows for term in row if isinstance(term, Ref)}
                if idents:
                    yield Unit(alg.ById(tuple(sorted(idents))))
            for expression in _expressions(node):
                yield from self._expression(expression, _input(node))

    # -- context -----------------------------------------------------------------------------------

    def _record(self, node: Node, rows: list[Solutions]) -> None:
        """Record what the rows of an operator are joined with, unless it has several consumers."""
        if isinstance(node, Solutions):
            known = [item for row in rows if (item := self._rows_of(row)) is not None]
            self._context[id(node)] = None if id(node) in self._context else known

    def _contexts(self, node: Solutions) -> None:
        own = self._context.get(id(node)) or []
        if isinstance(node, alg.Join):
            small = [node.right] if isinstance(node.right, alg.EntityRows | alg.Rows) else []
            self._record(node.left, [*own, *small])
            self._record(node.right, [*own, node.left])
        elif isinstance(node, alg.LeftJoin | alg.SemiJoin | alg.AntiJoin | alg.MarkJoin | alg.MinusRows):
            # Missing right rows matter, too, so the right side is searched for all left rows.
            new_names = set(node.right.variables) - set(node.left.variables)
            shared = any(not new_names.isdisjoint(item.variables) for item in own)
            self._record(node.left, [] if shared else own)
            self._record(node.right, [] if isinstance(node, alg.MinusRows) else [node.left])
        elif isinstance(node, _THROUGH):
            added_names = set(node.variables) - set(node.of.variables)
            self._record(node.of, [item for item in own if added_names.isdisjoint(item.variables)])
        elif isinstance(node, alg.UnionAll):
            for part in node.parts:
                self._record(part, own)
        else:
            for below in node.inputs():
                self._record(below, [])

    # -- supersets ---------------------------------------------------------------------------------
    # For rows that the store cannot compute, a superset is fetched: rows without the filters, orders and expressions of the
    # client, or with fewer variables, which are compatible with more.

    def _rows_of(self, node: Solutions) -> Solutions | None:
        """Return rows that the store can compute and that contain those of an operator, restricted to their
        variables; None if there are none of use.
        """
        superset = self._superset(node)
        return superset if isinstance(superset, Solutions) else None

    def _superset(self, node: Node) -> Node | None:
        if id(node) not in self._beyond:
            return node
        if id(node) not in self._supersets:
            wider = self._wider(node)
            if isinstance(wider, Solutions) and id(wider) not in shapes_of(wider):
                wider = None
            self._supersets[id(node)] = wider
        return self._supersets[id(node)]

    def _wider(self, node: Node) -> Node | None:
        if isinstance(node, (*_THROUGH, alg.SliceRows)):
            return self._superset(node.of)
        if isinstance(node, alg.LeftJoin | alg.SemiJoin | alg.AntiJoin | alg.MarkJoin | alg.MinusRows):
            return self._superset(node.left)
        if isinstance(node, alg.Join):
            left, right = self._rows_of(node.left), self._rows_of(node.right)
            return right if left is None else left if right is None else _narrowed(left, right)
        if isinstance(node, alg.UnionAll):
            parts = [part for input_ in node.parts if (part := self._rows_of(input_)) is not None]
            return alg.UnionAll(tuple(parts)) if len(parts) == len(node.parts) else None
        if isinstance(node, alg.Project | alg.GroupRows):
            of = self._rows_of(node.of)
            names = node.names if isinstance(node, alg.Project) else tuple((name, name) for name in node.keys)
            known = tuple(pair for pair in names if of is not None and pair[1] in of.variables)
            return alg.Project(of, known) if of is not None and known else None
        if isinstance(node, alg.Path):
            return None if node.of is None else self._superset(node.of)
        if isinstance(node, alg.EntityRows):
            entities = self._end(node.entities)
            return alg.EntityRows(node.variable, entities) if isinstance(entities, alg.Entities) else None
        if isinstance(node, alg.EntitiesOf):
            of = self._rows_of(node.of)
            return alg.EntitiesOf(of, node.variable) if of is not None and node.variable in of.variables else None
        if isinstance(node, alg.FactsOf):
            of = self._rows_of(node.of)
            return replace(node, of=of) if of is not None and node.variable in of.variables else None
        if isinstance(node, alg.Scan):
            return replace(node, of=None if node.of is None else self._end(node.of))
        return self._wider_pattern(node) if isinstance(node, alg.Pattern) else None

    def _end(self, place: Any) -> Any:
        """Return an end of a pattern, or a set, without what the client computes."""
        return self._superset(place) if isinstance(place, Node) else place

    def _test(self, condition: alg.Condition | None) -> alg.Condition | None:
        known = condition is None or all(id(node) not in self._beyond for node in condition.inputs())
        return condition if known else None

    def _wider_pattern(self, node: alg.Pattern) -> alg.Pattern:
        statements = tuple(
            replace(
                part,
                subject=self._end(part.subject),
                object=self._end(part.object),
                condition=self._test(part.condition),
                qualifiers=tuple(
                    replace(item, value=self._end(item.value), condition=self._test(item.condition)) for item in part.qualifiers
                ),
                among=self._end(part.among),
            )
            for part in node.statements
        )
        memberships = tuple(
            replace(part, member=self._end(part.member), concept=self._end(part.concept)) for part in node.memberships
        )
        return replace(node, statements=statements, memberships=memberships)

    # -- patterns ----------------------------------------------------------------------------------

    def _variable(self) -> alg.Variable:
        # A name that no program can contain.
        self._names += 1
        return alg.Variable(f" fetched {self._names}")

    def _pattern(self, node: alg.Pattern) -> Iterator[Unit]:
        superset = self._rows_of(node)
        if not isinstance(superset, alg.Pattern):
            for statement in node.statements:
                yield from self._matches(alg.Pattern((_alone(statement, self._beyond),)), [])
            for membership in node.memberships:
                yield from self._matches(alg.Pattern((), (_alone_member(membership, self._beyond),)), [])
            return
        yield from self._matches(superset, self._context.get(id(node)) or [])

    def _matches(self, node: alg.Pattern, context: list[Solutions]) -> Iterator[Unit]:
        """Yield the units of the matches of a pattern."""
        statements = tuple(part if part.statement else replace(part, statement=self._variable()) for part in node.statements)
        memberships, sets = [], list[Solutions]()
        for part in node.memberships:
            ends: list[alg.Variable] = []
            for place in (part.member, part.concept):
                if isinstance(place, alg.Variable):
                    ends.append(place)
                    continue
                ends.append(self._variable())
                if place is not None:
                    sets.append(alg.EntityRows(ends[-1].name, place))
            memberships.append(replace(part, member=ends[0], concept=ends[1]))
        joined: Solutions = replace(node, statements=statements, memberships=tuple(memberships))
        for rows in (*sets, *context):
            joined = _narrowed(rows, joined)
        for statement in statements:
            assert statement.statement is not None
            yield Unit(alg.FactsOf(joined, statement.statement.name))
        for membership in memberships:
            assert isinstance(membership.member, alg.Variable)
            assert isinstance(membership.concept, alg.Variable)
            concepts = alg.EntitiesOf(joined, membership.concept.name)
            yield Unit(concepts)
            yield Unit(alg.EntitiesOf(joined, membership.member.name), concepts=concepts)

    def _path(self, node: alg.Path) -> Iterator[Unit]:
        """Yield the relations that the steps may follow, and the entities that paths of no steps start from."""
        if node.hops:
            named = [hop.predicates for hop in node.hops]
            predicates = None if None in named else tuple(sorted({name for names in named for name in names or ()}))
            steps = node.among or alg.Scan(None, predicates, "subject", "object", "relation")
            yield from self._reachable_steps(node, steps) or [Unit(steps)]
        if node.least == 0:
            of = None if node.of is None else self._rows_of(node.of)
            for place in (node.subject, node.object):
                if isinstance(place, alg.Variable) and of is not None and place.name in of.variables:
                    yield Unit(alg.EntitiesOf(of, place.name))
                    return
            if not any(isinstance(place, alg.Entities) for place in (node.subject, node.object)):
                yield Unit(_ALL)

    def _reachable_steps(self, node: alg.Path, steps: alg.Facts) -> list[Unit]:
        """Return the steps of a short path from an end that the store knows; an empty list for other paths."""
        uses_rows = any(isinstance(one, alg.FactsOf | alg.OtherEnd) for one in postorder(steps))
        if node.most is None or node.most > _MAX_STEPS or uses_rows:
            return []
        of = None if node.of is None else self._rows_of(node.of)
        for place, along in ((node.subject, True), (node.object, False)):
            if isinstance(place, alg.Variable):
                start: Any = alg.EntitiesOf(of, place.name) if of is not None and place.name in of.variables else None
            else:
                start = self._end(place)
            if start is None:
                continue
            directions = {hop.direction for hop in node.hops}
            forward = {one != ("backward" if along else "forward") for one in directions if one != "either"}
            result = list[Unit]()
            for _ in range(node.most):
                scans = [
                    _from(steps, start, is_forward) for is_forward in ((True, False) if "either" in directions else sorted(forward))
                ]
                result += map(Unit, scans)
                start = alg.Union(tuple(map(alg.Reached, scans))) if len(scans) > 1 else alg.Reached(scans[0])
            return result
        return []

    # -- expressions -------------------------------------------------------------------------------

    def _expression(self, expression: Any, of: Solutions | None) -> Iterator[Unit]:
        """Yield what an expression reads from the graph, for the entities that rows bind."""
        for part in ex.walk(expression):
            if isinstance(part, ex.Property):
                yield from self._attributes(part.of, (part.key,), of)
            elif isinstance(part, ex.Index):
                yield from self._attributes(part.of, None, of)
            elif isinstance(part, ex.Call) and part.name in _WHOLE_ENTITY:
                yield from self._attributes(part.arguments[0], None, of)
            elif isinstance(part, ex.HasConcept):
                yield Unit(alg.ByName(part.names))
                yield from self._concepts(part.of, of)
            elif isinstance(part, ex.Call) and part.name == "labels":
                yield from self._concepts(part.arguments[0], of)

    @staticmethod
    def _is_entity(of: ex.Expression, rows: Solutions | None) -> bool:
        """Return whether an expression may return an entity; qualifiers of statements come with them."""
        if rows is None or not isinstance(of, ex.Variable):
            return True
        shape = shapes_of(rows).get(id(rows), {}).get(of.name)
        return shape is None or shape.sort in ("entity", "any")

    def _attributes(self, of: ex.Expression, keys: tuple[str, ...] | None, rows: Solutions | None) -> Iterator[Unit]:
        if not self._is_entity(of, rows):
            return
        known = None if rows is None else self._rows_of(rows)
        if known is None or not isinstance(of, ex.Variable) or of.name not in known.variables:
            yield Unit(alg.Scan(None, keys))
            return
        statement = self._variable()
        pattern = alg.Pattern((alg.StatementPattern(alg.Variable(of.name), keys, statement=statement),))
        yield Unit(alg.FactsOf(_narrowed(known, pattern), statement.name))

    def _concepts(self, of: ex.Expression, rows: Solutions | None) -> Iterator[Unit]:
        if not self._is_entity(of, rows):
            return
        known, concept, member = None if rows is None else self._rows_of(rows), self._variable(), self._variable()
        if known is not None and isinstance(of, ex.Variable) and of.name in known.variables:
            member = alg.Variable(of.name)
        else:
            known = None
        places: Solutions = alg.Pattern((), (alg.MembershipPattern(member, concept),))
        if known is not None:
            places = _narrowed(known, places)
        concepts = alg.EntitiesOf(places, concept.name)
        yield Unit(concepts)
        yield Unit(alg.EntitiesOf(places, member.name), concepts=concepts)


def _from(steps: Any, start: alg.Entities, forward: bool) -> alg.Facts:
    """Return the steps of a path that begin at some entities."""
    before = passed(steps)
    if before is not None:
        return passing(steps, _from(before, start, forward))
    anchor, reach = ("subject", "object") if forward else ("object", "subject")
    return replace(steps, of=start, anchor=anchor, reach=reach)  # type: ignore[no-any-return]


def _narrowed(rows: Solutions, whole: Solutions) -> Solutions:
    """Return the matches that are compatible with some rows; all of them if a store cannot join the two."""
    joined = alg.Join(rows, whole)
    return joined if id(joined) in shapes_of(joined) else whole


P = TypeVar("P")


def _computable(place: P, beyond: set[int]) -> P | None:
    """Return a set in a pattern, if the store can compute it."""
    return None if isinstance(place, Node) and not beyond.isdisjoint(map(id, postorder(place))) else place


def _alone(part: alg.StatementPattern, beyond: set[int]) -> alg.StatementPattern:
    """Return a part of a pattern without what the store cannot match, and without its variables."""
    known = part.condition is None or not any(not beyond.isdisjoint(map(id, postorder(node))) for node in part.condition.inputs())
    return alg.StatementPattern(
        _unnamed(_computable(part.subject, beyond)),
        part.predicate if isinstance(part.predicate, tuple) else None,
        _unnamed(_computable(part.object, beyond)),
        part.condition if known else None,
        family=part.family,
        undirected=part.undirected,
        among=_computable(part.among, beyond),
    )


def _alone_member(part: alg.MembershipPattern, beyond: set[int]) -> alg.MembershipPattern:
    return replace(part, member=_unnamed(_computable(part.member, beyond)), concept=_unnamed(_computable(part.concept, beyond)))


def _unnamed(place: Place) -> Place:
    return None if isinstance(place, alg.Variable) else place


def _input(node: Node) -> Solutions | None:
    """Return the rows that the expressions of an operator are evaluated on."""
    if isinstance(node, alg.LeftJoin):
        return alg.Join(node.left, node.right)
    first = next(iter(node.inputs()), None)
    return first if isinstance(first, Solutions) else None


def _expressions(node: Node) -> Iterator[Any]:
    if isinstance(node, alg.Filter):
        yield node.test
    elif isinstance(node, alg.Extend | alg.Unwind):
        yield node.expression
    elif isinstance(node, alg.LeftJoin) and node.condition is not None:
        yield node.condition


# -- Running -----------------------------------------------------------------------------------------


class WitnessRun(Run):
    """An execution on a fetched snapshot, in which the sets that the store returned are known, by operator."""

    __slots__ = ("_beyond",)

    def __init__(self, snapshot: Snapshot, known: Mapping[int, Numbers], beyond: Collection[int] = ()) -> None:
        super().__init__(snapshot)
        self.results.update(known)
        self._beyond = beyond

    def execute(self, plan: Node, order: list[Node] | None = None) -> Outcome:
        """Run a plan. Only values that the client computes (`beyond`) are counted as ignored; the store counts the
        rest, which is not all here.
        """
        known = set(self.results)
        outcome = super().execute(plan, order)
        self.left_out.clear()
        for node in self.order:
            if isinstance(node, alg.FilterValues | alg.AnySatisfies) and id(node.values) in self._beyond:
                self.warn_incomparable(self.values(node.values).cells(), node.condition)
            elif isinstance(node, Solutions) and id(node) in self._beyond and node.facets.tests == "values":
                self._warn_of_rows(node)
            elif node.facets.warns != alg.NEVER and id(node) in known:
                # Run again for its warnings about its inputs, which are here.
                self.listen(node)
        return outcome

    def _warn_of_rows(self, node: Any) -> None:
        from condgraph.engine.execute.rowset import value_cells

        self.warn_incomparable(value_cells(self.scope, self.rows(node.of).column(node.variable))[1], node.condition)
