"""Gathers what a plan needs from several stores.

The plan is cut into the largest parts for which one store has everything; each part is one query there, and the results form
one small graph, on which the engine runs the whole plan.

Sets that lead from one store to another are bound by their ids, if these are few. An entity has the name that the first store
gives it; so names in a program are looked up in all stores, and entities of one store in the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node, Solutions, passed, passing, postorder
from condgraph.engine.bounds import check
from condgraph.engine.errors import numbered
from condgraph.engine.execute import Run
from condgraph.engine.execute.conditions import compared_kinds
from condgraph.engine.execute.sets import Bag
from condgraph.engine.execute.witness_plan import shown, units
from condgraph.engine.facts import Entity, EntityKind, Source, Sourced, Subclass
from condgraph.engine.kinds import all_comparable, kinds_tested
from condgraph.engine.passes import mark, rewrite
from condgraph.engine.row_shapes import shape_of
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import NO_UNIT, Kind
from condgraph.several.member import Member, built
from condgraph.sql.rows import plain, plain_facts

if TYPE_CHECKING:
    from condgraph.engine.row_shapes import RowShape

#: Most ids that bind a part; with more, the part is queried without them, and joined in process.
MAX_BOUND: Final = 2_000
#: Ids in one query to a store.
_CHUNK: Final = 2_000
#: Most entities whose names are compared among the stores where all names of a predicate are needed.
_MAX_NAMED: Final = 20_000
DECLARE: Final = "`same` of condgraph.open declares what is one"
#: Stands for ids in the text of a part, if nothing is run.
_UNKNOWN: Final = ("the ids that the parts above find",)
_ENTITY: Final = (Kind.ENTITY, NO_UNIT)


class Stores:
    """The members with their joint schema, for one state of their schemas."""

    def __init__(self, members: Sequence[Member], schemas: Sequence[StoredSchema], schema: StoredSchema, renamed: Renamed) -> None:
        self.members, self.schemas, self.schema, self.renamed = members, schemas, schema, renamed
        self.all = frozenset(range(len(members)))
        #: For each source, the stores that have it, as text.
        self.having = {name: " or ".join(members[at].name for at in sorted(self.of_source(name))) for name in schema.sources}
        self.with_concepts = frozenset(at for at, one in enumerate(schemas) if one.concepts)

    # -- where statements are ----------------------------------------------------------------------

    def of_predicates(self, names: Iterable[str] | None, source: str | None = None) -> frozenset[int]:
        """Return the members that have statements of some predicates, from a source if given."""
        members_of = self.all if names is None else frozenset(
            at for at in self.all for name in names if self.schemas[at].has_relation(name) or self.schemas[at].has_attribute(name)
        )  # fmt: skip
        return members_of if source is None else members_of & self.of_source(source)

    def of_source(self, source: str) -> frozenset[int]:
        """Return the members that have a source."""
        return frozenset(number for number in self.all if self.local_source(number, source) is not None)

    def local_source(self, member: int, source: str) -> str | None:
        """Return a member's own name of a source; None if it has none."""
        for local in self.schemas[member].sources:
            if self.renamed.get((member, local), local) == source:
                return local
        return None

    def local(self, node: Node, member: int) -> Node:
        """Translate a plan for a member: its own source names, and only predicates that it has."""
        schema = self.schemas[member]

        def translate(part: Node) -> Node:
            source = getattr(part, "source", None)
            if isinstance(part, alg.Scan | alg.AllEntities) and source is not None:
                part = replace(part, source=self.local_source(member, source))
            if isinstance(part, alg.Scan) and part.predicates is not None and len(part.predicates) > 1:
                present = tuple(name for name in part.predicates if schema.has_relation(name) or schema.has_attribute(name))
                part = replace(part, predicates=present)
            return part

        return rewrite(node, translate)

    def reads(self, node: Node) -> frozenset[int]:
        """Return the members whose statements, memberships or entities an operator reads itself."""
        if isinstance(node, alg.Scan):
            return self.of_predicates(node.predicates, node.source)
        if isinstance(node, alg.Members):
            return self.with_concepts
        if isinstance(node, alg.ArgExtreme):
            return self.of_predicates((node.key,))
        if isinstance(node, alg.AllEntities) and node.source is not None:
            return self.of_source(node.source)
        if isinstance(node, alg.AllEntities | alg.Neighbour | alg.SameName | alg.Referents | alg.Names | Solutions):
            return self.all
        if node.facets.tests != "nothing" and (self.by_names(node) or not self.comparable(node)):
            return self.all
        return frozenset()

    def by_names(self, node: Node) -> bool:
        """Tell whether a test may compare names of entities, which several stores may state."""
        condition: Condition = cast("Any", node).condition
        if not _of_constants(condition):
            return True
        if not any(isinstance(part, alg.Compare) and isinstance(part.value, str) for part in _tests(condition)):
            return False
        kinds = kinds_tested(node, self.schema)
        return kinds is None or _ENTITY in kinds

    def comparable(self, node: Node) -> bool:
        """Tell whether a test can compare all values it may meet."""
        condition: Condition = cast("Any", node).condition
        wanted, kinds = compared_kinds(condition), kinds_tested(node, self.schema)
        return not wanted or (kinds is not None and all_comparable(kinds, wanted))

    def home(self, node: Node, known: dict[Hashable, frozenset[int]]) -> frozenset[int]:
        """Return the members that an operator and all below it read; all members if it depends on names."""
        key = mark(node)
        if key not in known:
            members_read = self.reads(node)
            if isinstance(node, alg.Minus) and any(isinstance(part, alg.AllEntities) for part in postorder(node.right)):
                # Other stores may state the kind of an entity as well.
                members_read = self.all
            for child in node.inputs():
                if not bounded(node, child):
                    members_read |= self.home(child, known)
            known[key] = members_read
        return known[key]


#: New names of a member's sources that share their name with a source of another member.
Renamed = dict[tuple[int, str], str]


def bounded(taker: Node, child: Node) -> bool:
    """Tell whether other parts restrict a set of all entities, so that nothing has to be fetched for it."""
    if not isinstance(child, alg.AllEntities) or child.source is not None:
        return False
    if isinstance(taker, alg.Intersect):
        return any(not isinstance(part, alg.AllEntities) for part in taker.parts)
    return isinstance(taker, alg.Scan)


def _tests(condition: Condition) -> Iterator[Condition]:
    yield condition
    for part in condition.parts():
        yield from _tests(part)


def _of_constants(condition: Condition) -> bool:
    """Tell whether a test compares only with constants or sets of entities, not with values of another step."""
    return not any(isinstance(part, alg.Equals | alg.Versus) for part in _tests(condition))


def _beyond(order: Sequence[Node]) -> set[int]:
    """Return the operators (by `id`) that no part of rows consists of: their rows are computed in process."""
    result: set[int] = set()
    shapes: dict[int, RowShape] = {}
    for node in order:
        plainly = isinstance(node, alg.SubjectsOf | alg.Referents) and isinstance(node.values, alg.Objects | alg.Names)
        inputs = [below for bag in node.inputs() for below in bag.inputs()] if plainly else node.inputs()
        if isinstance(node, alg.SubjectsOf | alg.Referents):
            native = plainly
        elif isinstance(node, alg.Where | alg.WhereQualifier | alg.WhereValidity):
            native = _of_constants(node.condition)
        elif isinstance(node, alg.Pattern):
            tests = [part.condition for part in node.statements]
            tests += [item.condition for part in node.statements for item in part.qualifiers]
            native = all(test is None or _of_constants(test) for test in tests)
        elif isinstance(node, Solutions):
            native = isinstance(node, alg.EntityRows | alg.Join)
        else:
            native = isinstance(node, alg.Entities | alg.Facts)
            native = native and not isinstance(node, alg.EntitiesOf | alg.FactsOf | alg.DuringAny)
        if not native or any(id(child) in result for child in inputs):
            result.add(id(node))
        elif isinstance(node, Solutions):
            shape = shape_of(node, shapes)
            if shape is None:
                result.add(id(node))
            else:
                shapes[id(node)] = shape
    return result


class Gathering:
    """Gathers what plans need. If not `running`, nothing is queried; `asked` then lists the parts."""

    def __init__(self, stores: Stores, *, running: bool = True) -> None:
        self.stores, self._running = stores, running
        n = len(stores.members)
        #: Results of the members, as items.
        self._items: list[list[Any]] = [[] for _ in range(n)]
        self._pending: list[list[Node]] = [[] for _ in range(n)]
        #: Ids that were looked up in each member, or returned by it.
        self._looked_up: list[set[str]] = [set() for _ in range(n)]
        #: The entities as each member itself describes them.
        self.said: list[dict[str, Entity]] = [{} for _ in range(n)]
        #: Ids of table rows of which only the entity was looked up.
        self._rows: list[set[str]] = [set() for _ in range(n)]
        #: The direct subconcepts of each concept.
        self._subconcepts: dict[str, set[str]] = {}
        self._done: set[Hashable] = set()
        self._homes: dict[Hashable, frozenset[int]] = {}
        self._merged: Snapshot | None = None
        self._names: set[str] = set()
        #: Neighbours of rows, which the stores return by id.
        self._fetched: dict[Hashable, set[str]] = {}
        #: Notes about the gathered data, and reasons for an empty answer.
        self.notes: list[str] = []
        self.apart: list[str] = []
        #: Each part with the member that it was sent to.
        self.asked: list[tuple[Member, Node]] = []

    # -- asking ------------------------------------------------------------------------------------

    def _queue(self, member: int, node: Node) -> None:
        self._pending[member].append(self.stores.local(node, member))

    def _flush(self) -> None:
        """Send what is pending: one query to each member."""
        for number, waiting in enumerate(self._pending):
            if not waiting:
                continue
            check()
            self._pending[number] = []
            if self._running and all(isinstance(node, alg.ByName | alg.ById) for node in waiting):
                self._look_up(number, waiting)
                continue
            bags = [_bag(node) for node in dict.fromkeys(waiting)]
            plan = waiting[0] if len(bags) == 1 else alg.Concat(tuple(bags))
            self.asked.append((self.stores.members[number], plan))
            if self._running:
                member_items, entities = self.stores.members[number].piece(plan)
                self._items[number] += member_items
                self._merged = None
                for entity in entities:
                    self.said[number].setdefault(entity.id, entity)
                self._looked_up[number].update(self.said[number])
                for item in member_items:
                    if isinstance(item, Sourced) and isinstance(item.item, Subclass):
                        self._subconcepts.setdefault(item.item.parent, set()).add(item.item.concept)

    def _look_up(self, at: int, nodes: Sequence[Node]) -> None:
        """Look up entities by name and id; for rows of tables only the entity, without its part of the graph."""
        names = dict.fromkeys(name for node in nodes if isinstance(node, alg.ByName) for name in node.names)
        idents = dict.fromkeys(ident for node in nodes if isinstance(node, alg.ById) for ident in node.ids)
        member = self.stores.members[at]
        entities = member.look_up(tuple(names), tuple(idents))
        rows = tuple(entity.id for entity in entities if entity.kind is EntityKind.ROW)
        self._items[at] += [entity for entity in entities if entity.kind is not EntityKind.ROW]
        self.said[at].update((entity.id, entity) for entity in entities)
        self._looked_up[at].update(self.said[at])
        self._rows[at].update(rows)
        self._merged = None

    def _fetch_rows(self) -> None:
        """Fetch the rows that were only looked up, if they are needed as parts of the graph."""
        for number, rows in enumerate(self._rows):
            if rows:
                row_items, _ = self.stores.members[number].piece(alg.ById(tuple(sorted(rows))))
                self._items[number] += row_items
                self._rows[number] = set()

    def _settle(self) -> None:
        """Send what is pending, and look up the entities of each member in all others."""
        while True:
            self._flush()
            all_ids = set().union(*self.said)
            lacking = [sorted(all_ids - looked) for looked in self._looked_up]
            if not any(lacking) or not self._running:
                return
            for number, idents in enumerate(lacking):
                self._look_up_ids(number, idents)

    def merged(self) -> Snapshot:
        """Return all results as one graph, in which entities have the names chosen from all members."""
        self._settle()
        if self._merged is None:
            self._fetch_rows()
            renamed = self.stores.renamed
            renamed_items = (
                item for number, member_items in enumerate(self._items) for item in by_name(member_items, number, renamed)
            )
            self._merged = built(renamed_items, {"stores": self.stores.having})
        return self._merged

    def named(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of the entities that have some names, as chosen from all members."""
        self._settle()
        wanted = set(names)
        candidates = {ident for said in self.said for ident, entity in said.items() if entity.name in wanted}
        return tuple(sorted(ident for ident in candidates if named(ident, self.said) in wanted))

    def _look_up_ids(self, member: int, idents: Sequence[str]) -> None:
        """Look up entities by id in a member."""
        self._looked_up[member].update(idents)
        for start in range(0, len(idents), _CHUNK):
            self._queue(member, alg.ById(tuple(idents[start : start + _CHUNK])))

    def called(self, plan: alg.Entities) -> list[str]:
        """Return the names of the entities that a plan gives in each store; with very many, those chosen so far."""
        for number, member in enumerate(self.stores.members):
            entities = member.entities(self.stores.local(plan, number))
            self.said[number].update((entity.id, entity) for entity in entities)
            self._looked_up[number].update(self.said[number])
        all_ids = set().union(*self.said)
        if len(all_ids) <= _MAX_NAMED:
            self._settle()
        return sorted({named(ident, self.said) for ident in all_ids})

    def look_up(self, nodes: Iterable[Node]) -> None:
        """Look up the entities that operators name, in every member."""
        listed = list(nodes)
        names = dict.fromkeys(name for node in listed if isinstance(node, alg.ByName) for name in node.names)
        self._fetch_names([name for name in names if name not in self._names])
        idents = dict.fromkeys(ident for node in listed if isinstance(node, alg.ById) for ident in node.ids)
        for number, looked in enumerate(self._looked_up):
            self._look_up_ids(number, [ident for ident in idents if ident not in looked])

    def _fetch_names(self, names: Sequence[str]) -> None:
        self._names.update(names)
        for start in range(0, len(names), _CHUNK):
            for at in self.stores.all:
                self._queue(at, alg.ByName(tuple(names[start : start + _CHUNK])))

    # -- running -----------------------------------------------------------------------------------

    def run(self, plan: Node) -> Run:
        """Run a plan on what was gathered."""
        run = Run(self.merged())
        if self._fetched:
            for node in postorder(plan):
                if mark(node) in self._fetched:
                    numbers = [run.snapshot.identified(ident) for ident in self._fetched[mark(node)]]
                    run.results[id(node)] = np.unique(np.array(numbers, np.int32))
        run.execute(plan)
        return run

    def idents(self, node: Node) -> tuple[str, ...]:
        """Return the ids of the entities that an operator gives, on what was gathered."""
        self._settle()
        if not self._running:
            return _UNKNOWN
        if isinstance(node, alg.ByName):
            return self.named(node.names)
        if isinstance(node, alg.ById):
            return node.ids
        run = self.run(node)
        numbers: Any = run.results[id(node)]
        return tuple(map(run.snapshot.ident, numbers.tolist()))

    def resolved(self, node: Node) -> Node:
        """Replace names by ids in a plan, since stores may name an entity differently."""
        if not self._running or not any(isinstance(part, alg.ByName) for part in postorder(node)):
            return node
        return rewrite(node, lambda part: alg.ById(self.named(part.names)) if isinstance(part, alg.ByName) else part)

    # -- gathering ---------------------------------------------------------------------------------

    def gather(self, plan: Node) -> Gathering:
        """Fetch all that a plan needs."""
        nodes = postorder(plan)
        self.look_up(nodes)
        if any(isinstance(node, Solutions) for node in nodes):
            for unit in (*units(plan, _beyond(nodes)), *shown(plan, self.stores.schema)):
                if isinstance(unit.compiled, alg.Facts):
                    for facts in plain_facts(unit.compiled):
                        self._fetch(facts)
                    continue
                assert isinstance(unit.compiled, alg.Entities)
                members_of = plain(unit.compiled)
                self._fetch(members_of)
                if unit.concepts is not None:
                    concepts = plain(unit.concepts)
                    self._fetch(concepts)
                    self._members(concepts, None if isinstance(members_of, alg.AllEntities) else members_of)
        elif isinstance(plan, alg.Names):
            self._get(plan.entities)
        else:
            self._get(plan)
        return self

    def _fetch(self, node: Node) -> None:
        self.look_up(postorder(node))
        self._get(node)

    def _get(self, node: Node) -> None:
        """Fetch what an operator and all below it need."""
        key = mark(node)
        if key in self._done:
            return
        self._done.add(key)
        home = self.stores.home(node, self._homes)
        if len(home) == 1 and not isinstance(node, alg.Scalar) and _reading(node):
            (member,) = home
            self._queue(member, self.resolved(node))
        elif isinstance(node, alg.Facts):
            self._facts(node)
        elif isinstance(node, alg.Members):
            self._get(node.concepts)
            self._members(node.concepts, None)
        elif isinstance(node, alg.ArgExtreme):
            self._facts(alg.Scan(node.of, (node.key,), family="attribute"))
        elif isinstance(node, alg.AllEntities):
            for member in self.stores.reads(node):
                self._queue(member, node)
                if node.source is not None:
                    self._queue(member, alg.Scan(None, None, source=node.source))
        elif isinstance(node, alg.Neighbour):
            self._neighbours(node)
        else:
            self._inputs(node)
            if isinstance(node, alg.SameName) and self._running:
                self._fetch_named(alg.Names(node.of))
            elif isinstance(node, alg.Referents) and self._running:
                self._fetch_named(node.values)

    def _inputs(self, node: Node) -> None:
        large = self._large(node)
        for child in node.inputs():
            if child is not large and not bounded(node, child):
                self._get(child)
        if large is not None:
            narrowing = tuple(part for part in cast("alg.Intersect", node).parts if part is not large)
            self._members(large.concepts, narrowing[0] if len(narrowing) == 1 else alg.Intersect(narrowing))

    def _large(self, node: Node) -> alg.Members | None:
        """Return the members of a large concept in an intersection, if its other sets restrict them."""
        if not isinstance(node, alg.Intersect):
            return None
        member_sets = [part for part in node.parts if isinstance(part, alg.Members)]
        restricting = [part for part in node.parts if not isinstance(part, alg.Members | alg.AllEntities)]
        return member_sets[0] if len(member_sets) == 1 and restricting else None

    def _fetch_named(self, values: alg.Values) -> None:
        """Fetch the entities that have values as their names."""
        bag: Bag = self.run(values).results[id(values)]
        self._fetch_names(sorted({text for text in bag.texts() if text not in self._names}))

    def _neighbours(self, node: alg.Neighbour) -> None:
        self._get(node.of)
        idents, neighbours = self.idents(node.of), set[str]()
        for number in self.stores.all:
            bound = alg.Neighbour(alg.ById(idents), node.distance)
            if self._running and self.stores.schemas[number].tables:
                neighbours |= {entity.id for entity in self.stores.members[number].entities(bound)}
                self._queue(number, alg.ById(idents))
        for number in self.stores.all:
            self._look_up_ids(number, sorted(neighbours))
        self._fetched[mark(node)] = neighbours

    def _members(self, concepts: alg.Entities, of: alg.Entities | None) -> None:
        """Fetch the memberships of entities (None: of all) under concepts.

        One store may put a concept under another one, and another store have its members.
        """
        members_limit: alg.Entities | None = None
        if of is not None:
            self._get(of)
            ids = self.idents(of)
            members_limit = alg.ById(ids) if len(ids) <= MAX_BOUND else None
        new_concepts = set(self.idents(concepts))
        all_concepts, queried = set(new_concepts), set(new_concepts)
        while new_concepts:
            sets: alg.Entities = alg.Members(alg.ById(tuple(sorted(new_concepts))))
            for member in self.stores.with_concepts:
                self._queue(member, sets if members_limit is None else alg.Intersect((sets, members_limit)))
            self._settle()
            below = set().union(*(self._subconcepts.get(concept, ()) for concept in all_concepts))
            while not below <= all_concepts:
                new_concepts |= below - all_concepts
                all_concepts |= below
                below = set().union(*(self._subconcepts.get(concept, ()) for concept in all_concepts))
            new_concepts -= queried
            queried |= new_concepts

    def _facts(self, node: alg.Facts) -> None:
        """Fetch statements, with all tests that their stores can apply."""
        chain_of: list[alg.Facts] = [node]
        while (of := passed(chain_of[-1])) is not None:
            chain_of.append(of)
        scan = chain_of.pop()
        tests: list[alg.Facts] = []
        for test in chain_of:
            for child in test.inputs():
                if not isinstance(child, alg.Facts):
                    self._get(child)
            if self._pushed(test):
                tests.append(test)
        if not isinstance(scan, alg.Scan):
            self._inputs(scan)
            return
        members = self.stores.reads(scan)
        anchored, members_later = scan.of, False
        bound: alg.Entities | None = None
        if anchored is not None and not (isinstance(anchored, alg.AllEntities) and anchored.source is None):
            members_later = isinstance(anchored, alg.Members) and self._count(anchored) > MAX_BOUND
            if not members_later:
                self._get(anchored)
                idents = self.idents(anchored)
                bound = alg.ById(idents) if len(idents) <= MAX_BOUND else None
        facts: alg.Facts = replace(scan, of=bound)
        for test in reversed(tests):
            facts = passing(self._bound_test(test), facts)
        if isinstance(bound, alg.ById) and self._running:
            self._queue_known(members, facts, bound)
        else:
            for member in members:
                self._queue(member, facts)
        if members_later:
            assert isinstance(anchored, alg.Members)
            self._get(anchored.concepts)
            ends = alg.Reached(alg.OtherEnd(facts, scan.anchor))
            self._members(anchored.concepts, ends if self._running else None)

    def _queue_known(self, members: Iterable[int], facts: alg.Facts, bound: alg.ById) -> None:
        """Fetch the statements of entities, from each store for those it knows."""
        lacking = []
        for member in sorted(members):
            known = tuple(ident for ident in bound.ids if ident in self.said[member])
            if known:
                known_ids = alg.ById(known)
                self._queue(member, _replaced(facts, bound, known_ids))
            else:
                lacking.append(repr(self.stores.members[member].name))
        if bound.ids and lacking and len(lacking) == len(set(members)):
            count = numbered(len(bound.ids), "entity that leads", "entities that lead")
            self.apart.append(f"{' and '.join(lacking)} knows none of the {count} there from other stores; {DECLARE}")

    def check_names(self, plan: Node) -> None:
        """Note entities that share a name used in the program and may be the same, without being declared so."""
        for name in sorted({name for node in postorder(plan) if isinstance(node, alg.ByName) for name in node.names}):
            homes = {ident: {number for number, said in enumerate(self.said) if ident in said} for ident in self.named((name,))}
            for first, second in pairwise(sorted(homes, key=lambda ident: sorted(homes[ident]))):
                if homes[first].isdisjoint(homes[second]):
                    places = [f"{one!r} in {self.stores.members[min(homes[one])].name!r}" for one in (first, second)]
                    self.notes.append(f"{name!r} is {places[0]} and {places[1]}, two entities; {DECLARE}")

    def _pushed(self, test: alg.Facts) -> bool:
        """Tell whether stores can apply a test as the engine does: it compares no names, and all values can be compared."""
        if test.facets.tests == "nothing":
            return all(isinstance(child, alg.Facts) for child in test.inputs())
        return not self.stores.by_names(test) and self.stores.comparable(test)

    def _bound_test(self, test: Any) -> Any:
        """Return a test with sets replaced by their ids."""
        if not any(isinstance(part, alg.Among) for part in _tests(getattr(test, "condition", alg.AllOf(())))):
            return test
        return replace(test, condition=self._bound_condition(test.condition))

    def _bound_condition(self, condition: Any) -> Any:
        if isinstance(condition, alg.Among):
            return alg.Among(alg.ById(self.idents(condition.entities)))
        if isinstance(condition, alg.AnyOf | alg.AllOf):
            return replace(condition, conditions=tuple(map(self._bound_condition, condition.conditions)))
        if isinstance(condition, alg.Not):
            return replace(condition, condition=self._bound_condition(condition.condition))
        return condition

    def _count(self, node: alg.Members) -> int:
        """Estimate the members of concepts by the schemas."""
        names = [name for part in postorder(node.concepts) if isinstance(part, alg.ByName) for name in part.names]
        return sum(self.stores.schema.members.get(name, 0) for name in names)


def named(ident: str, said: Sequence[Mapping[str, Entity]]) -> str:
    """Return the name of an entity: the first one that differs from its id."""
    return next((entities[ident].name for entities in said if ident in entities and entities[ident].name != ident), ident)


def _replaced(plan: alg.Facts, old: Node, new: Node) -> Node:
    return rewrite(plan, lambda part: new if part is old else part)


def _reading(node: Node) -> bool:
    """Tell whether a store can be asked for a part on its own: statements, or entities by what is stated about them."""
    return isinstance(node, alg.Facts | alg.Entities) and not isinstance(node, alg.ById | alg.ByName)


def _bag(node: Node) -> alg.Values:
    """Turn a part into values, so that one plan can hold several parts."""
    if isinstance(node, alg.Facts):
        return alg.Objects(node)
    return alg.Names(node) if isinstance(node, alg.Entities) else cast("alg.Values", node)


def by_name(found: Iterable[Any], member: int, renamed: Renamed) -> Iterator[Any]:
    """Yield items with the sources of a member renamed."""
    if not any(number == member for number, _ in renamed):
        yield from found
        return
    for item in found:
        if isinstance(item, Source):
            yield replace(item, name=renamed.get((member, item.name), item.name))
        elif isinstance(item, Sourced):
            yield replace(item, sources=tuple((renamed.get((member, name), name), row) for name, row in item.sources))
        else:
            yield item
