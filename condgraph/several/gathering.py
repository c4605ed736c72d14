"""What a plan needs of several stores: it is cut into the largest parts that one store has all of, each part is one query
there, and the pieces are put together as one small graph, on which the engine runs the whole plan.

Sets that lead from one store to another are bound by their ids, where these are few. Names are those of the first store that
has one, so that names in a program are looked up in all stores, and entities that one store gave in the others.
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

#: The most ids that a part is bound by: where there are more, it is asked without them, and joined in process.
MOST_BOUND: Final = 2_000
#: Ids that a store is asked for at once.
_CHUNK: Final = 2_000
#: The most entities whose names are compared among the stores where all names of a predicate are needed.
_MOST_NAMED: Final = 20_000
DECLARE: Final = "`same` of condgraph.open declares what is one"
#: What stands for ids in the text of a part, where nothing is run.
_UNKNOWN: Final = ("the ids that the parts above find",)
_ENTITY: Final = (Kind.ENTITY, NO_UNIT)


class Stores:
    """The members with what is known of all of them, for one state of their schemas."""

    def __init__(self, members: Sequence[Member], schemas: Sequence[StoredSchema], schema: StoredSchema, renamed: Renamed) -> None:
        self.members, self.schemas, self.schema, self.renamed = members, schemas, schema, renamed
        self.all = frozenset(range(len(members)))
        #: The stores that have a source, by its name.
        self.having = {name: " or ".join(members[at].name for at in sorted(self.of_source(name))) for name in schema.sources}
        self.with_concepts = frozenset(at for at, one in enumerate(schemas) if one.concepts)

    # -- where statements are ----------------------------------------------------------------------

    def of_predicates(self, names: Iterable[str] | None, source: str | None = None) -> frozenset[int]:
        """The members that have statements of some predicates, of a source."""
        found = self.all if names is None else frozenset(
            at for at in self.all for name in names if self.schemas[at].has_relation(name) or self.schemas[at].has_attribute(name)
        )  # fmt: skip
        return found if source is None else found & self.of_source(source)

    def of_source(self, source: str) -> frozenset[int]:
        """The members that have a source."""
        return frozenset(at for at in self.all if self.local_source(at, source) is not None)

    def local_source(self, member: int, source: str) -> str | None:
        """What a member calls a source; None where it has none."""
        for local in self.schemas[member].sources:
            if self.renamed.get((member, local), local) == source:
                return local
        return None

    def local(self, node: Node, member: int) -> Node:
        """A plan by the names of a member: its own sources, and the predicates that it has."""
        schema = self.schemas[member]

        def own(part: Node) -> Node:
            source = getattr(part, "source", None)
            if isinstance(part, alg.Scan | alg.AllEntities) and source is not None:
                part = replace(part, source=self.local_source(member, source))
            if isinstance(part, alg.Scan) and part.predicates is not None and len(part.predicates) > 1:
                there = tuple(name for name in part.predicates if schema.has_relation(name) or schema.has_attribute(name))
                part = replace(part, predicates=there)
            return part

        return rewrite(node, own)

    def reads(self, node: Node) -> frozenset[int]:
        """The members of whose statements, memberships or entities an operator reads itself."""
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
        """Whether a test may compare names of entities, which more than one store says."""
        condition: Condition = cast("Any", node).condition
        if not _of_constants(condition):
            return True
        if not any(isinstance(part, alg.Compare) and isinstance(part.value, str) for part in _tests(condition)):
            return False
        kinds = kinds_tested(node, self.schema)
        return kinds is None or _ENTITY in kinds

    def comparable(self, node: Node) -> bool:
        """Whether a test leaves nothing out that it cannot compare."""
        condition: Condition = cast("Any", node).condition
        wanted, kinds = compared_kinds(condition), kinds_tested(node, self.schema)
        return not wanted or (kinds is not None and all_comparable(kinds, wanted))

    def home(self, node: Node, known: dict[Hashable, frozenset[int]]) -> frozenset[int]:
        """The members that an operator and all below it read; all of them where it is by names."""
        key = mark(node)
        if key not in known:
            found = self.reads(node)
            if isinstance(node, alg.Minus) and any(isinstance(part, alg.AllEntities) for part in postorder(node.right)):
                # Which kind an entity is of, other stores say as well.
                found = self.all
            for child in node.inputs():
                if not bounded(node, child):
                    found |= self.home(child, known)
            known[key] = found
        return known[key]


#: What sources of a member are called, where another member has another one of that name.
Renamed = dict[tuple[int, str], str]


def bounded(taker: Node, child: Node) -> bool:
    """Whether every entity is taken by an operator that other parts narrow, so that it needs none of itself."""
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
    """Whether a test compares with nothing that another step gives, but for sets of entities."""
    return not any(isinstance(part, alg.Equals | alg.Versus) for part in _tests(condition))


def _beyond(order: Sequence[Node]) -> set[int]:
    """The operators (by identity) that no part of rows is made of: their rows are worked out in process."""
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
    """What plans need, gathered. Without `running` nothing is asked, and `asked` has what would be."""

    def __init__(self, stores: Stores, *, running: bool = True) -> None:
        self.stores, self._running = stores, running
        n = len(stores.members)
        #: What members gave, as items.
        self._items: list[list[Any]] = [[] for _ in range(n)]
        self._pending: list[list[Node]] = [[] for _ in range(n)]
        #: The ids that each member was asked for, or gave.
        self._looked: list[set[str]] = [set() for _ in range(n)]
        #: What each member itself says of entities.
        self.said: list[dict[str, Entity]] = [{} for _ in range(n)]
        #: The rows of tables that were looked up alone.
        self._rows: list[set[str]] = [set() for _ in range(n)]
        #: The concepts right below each concept.
        self._below: dict[str, set[str]] = {}
        self._done: set[Hashable] = set()
        self._homes: dict[Hashable, frozenset[int]] = {}
        self._merged: Snapshot | None = None
        self._names: set[str] = set()
        #: Neighbours of rows, which the stores give by id.
        self._given: dict[Hashable, set[str]] = {}
        #: What is to be known of what was gathered, and where nothing came of it.
        self.notes: list[str] = []
        self.apart: list[str] = []
        #: Each part with the member that it was asked of.
        self.asked: list[tuple[Member, Node]] = []

    # -- asking ------------------------------------------------------------------------------------

    def _ask(self, member: int, node: Node) -> None:
        self._pending[member].append(self.stores.local(node, member))

    def _flush(self) -> None:
        """Ask what waits: one query of each member."""
        for at, waiting in enumerate(self._pending):
            if not waiting:
                continue
            check()
            self._pending[at] = []
            if self._running and all(isinstance(node, alg.ByName | alg.ById) for node in waiting):
                self._look_up(at, waiting)
                continue
            bags = [_bag(node) for node in dict.fromkeys(waiting)]
            plan = waiting[0] if len(bags) == 1 else alg.Concat(tuple(bags))
            self.asked.append((self.stores.members[at], plan))
            if self._running:
                found, entities = self.stores.members[at].piece(plan)
                self._items[at] += found
                self._merged = None
                for entity in entities:
                    self.said[at].setdefault(entity.id, entity)
                self._looked[at].update(self.said[at])
                for item in found:
                    if isinstance(item, Sourced) and isinstance(item.item, Subclass):
                        self._below.setdefault(item.item.parent, set()).add(item.item.concept)

    def _look_up(self, at: int, nodes: Sequence[Node]) -> None:
        """Take the entities of some names and ids; rows of tables with the sources that they are of."""
        names = dict.fromkeys(name for node in nodes if isinstance(node, alg.ByName) for name in node.names)
        idents = dict.fromkeys(ident for node in nodes if isinstance(node, alg.ById) for ident in node.ids)
        member = self.stores.members[at]
        entities = member.look_up(tuple(names), tuple(idents))
        rows = tuple(entity.id for entity in entities if entity.kind is EntityKind.ROW)
        self._items[at] += [entity for entity in entities if entity.kind is not EntityKind.ROW]
        self.said[at].update((entity.id, entity) for entity in entities)
        self._looked[at].update(self.said[at])
        self._rows[at].update(rows)
        self._merged = None

    def _fetch_rows(self) -> None:
        """Ask for the rows that were only looked up, where they are needed as parts of the graph."""
        for at, rows in enumerate(self._rows):
            if rows:
                found, _ = self.stores.members[at].piece(alg.ById(tuple(sorted(rows))))
                self._items[at] += found
                self._rows[at] = set()

    def _settle(self) -> None:
        """Ask what waits, and all members for the entities that one of them gave."""
        while True:
            self._flush()
            every = set().union(*self.said)
            lacking = [sorted(every - looked) for looked in self._looked]
            if not any(lacking) or not self._running:
                return
            for at, idents in enumerate(lacking):
                self._look(at, idents)

    def merged(self) -> Snapshot:
        """All pieces as one graph, in which entities have the names that all members give them."""
        self._settle()
        if self._merged is None:
            self._fetch_rows()
            renamed = self.stores.renamed
            every = (item for at, some in enumerate(self._items) for item in by_name(some, at, renamed))
            self._merged = built(every, {"stores": self.stores.having})
        return self._merged

    def named(self, names: Sequence[str]) -> tuple[str, ...]:
        """The ids of the entities that have some names: those of the first member that has one for them."""
        self._settle()
        wanted = set(names)
        some = {ident for said in self.said for ident, entity in said.items() if entity.name in wanted}
        return tuple(sorted(ident for ident in some if named(ident, self.said) in wanted))

    def _look(self, member: int, idents: Sequence[str]) -> None:
        """Ask a member for entities of these ids."""
        self._looked[member].update(idents)
        for start in range(0, len(idents), _CHUNK):
            self._ask(member, alg.ById(tuple(idents[start : start + _CHUNK])))

    def called(self, plan: alg.Entities) -> list[str]:
        """The names of the entities that a plan gives in the stores, each by itself. Of very many those that each says."""
        for at, member in enumerate(self.stores.members):
            entities = member.entities(self.stores.local(plan, at))
            self.said[at].update((entity.id, entity) for entity in entities)
            self._looked[at].update(self.said[at])
        every = set().union(*self.said)
        if len(every) <= _MOST_NAMED:
            self._settle()
        return sorted({named(ident, self.said) for ident in every})

    def look_up(self, nodes: Iterable[Node]) -> None:
        """Ask every member for the entities that operators name."""
        listed = list(nodes)
        names = dict.fromkeys(name for node in listed if isinstance(node, alg.ByName) for name in node.names)
        self._named([name for name in names if name not in self._names])
        idents = dict.fromkeys(ident for node in listed if isinstance(node, alg.ById) for ident in node.ids)
        for at, looked in enumerate(self._looked):
            self._look(at, [ident for ident in idents if ident not in looked])

    def _named(self, names: Sequence[str]) -> None:
        self._names.update(names)
        for start in range(0, len(names), _CHUNK):
            for at in self.stores.all:
                self._ask(at, alg.ByName(tuple(names[start : start + _CHUNK])))

    # -- running -----------------------------------------------------------------------------------

    def run(self, plan: Node) -> Run:
        """A plan run on what was gathered."""
        run = Run(self.merged())
        if self._given:
            for node in postorder(plan):
                if mark(node) in self._given:
                    found = [run.snapshot.identified(ident) for ident in self._given[mark(node)]]
                    run.results[id(node)] = np.unique(np.array(found, np.int32))
        run.execute(plan)
        return run

    def idents(self, node: Node) -> tuple[str, ...]:
        """The ids of the entities that an operator gives, on what was gathered."""
        self._settle()
        if not self._running:
            return _UNKNOWN
        if isinstance(node, alg.ByName):
            return self.named(node.names)
        if isinstance(node, alg.ById):
            return node.ids
        run = self.run(node)
        found: Any = run.results[id(node)]
        return tuple(map(run.snapshot.ident, found.tolist()))

    def resolved(self, node: Node) -> Node:
        """A plan whose names are ids: stores may call an entity otherwise."""
        if not self._running or not any(isinstance(part, alg.ByName) for part in postorder(node)):
            return node
        return rewrite(node, lambda part: alg.ById(self.named(part.names)) if isinstance(part, alg.ByName) else part)

    # -- gathering ---------------------------------------------------------------------------------

    def gather(self, plan: Node) -> Gathering:
        """Ask for all that a plan needs."""
        nodes = postorder(plan)
        self.look_up(nodes)
        if any(isinstance(node, Solutions) for node in nodes):
            for unit in (*units(plan, _beyond(nodes)), *shown(plan, self.stores.schema)):
                if isinstance(unit.compiled, alg.Facts):
                    for facts in plain_facts(unit.compiled):
                        self._part(facts)
                    continue
                assert isinstance(unit.compiled, alg.Entities)
                of = plain(unit.compiled)
                self._part(of)
                if unit.concepts is not None:
                    concepts = plain(unit.concepts)
                    self._part(concepts)
                    self._members(concepts, None if isinstance(of, alg.AllEntities) else of)
        elif isinstance(plan, alg.Names):
            self._get(plan.entities)
        else:
            self._get(plan)
        return self

    def _part(self, node: Node) -> None:
        self.look_up(postorder(node))
        self._get(node)

    def _get(self, node: Node) -> None:
        """Ask for what an operator and all below it need."""
        key = mark(node)
        if key in self._done:
            return
        self._done.add(key)
        home = self.stores.home(node, self._homes)
        if len(home) == 1 and not isinstance(node, alg.Scalar) and _reading(node):
            (member,) = home
            self._ask(member, self.resolved(node))
        elif isinstance(node, alg.Facts):
            self._facts(node)
        elif isinstance(node, alg.Members):
            self._get(node.concepts)
            self._members(node.concepts, None)
        elif isinstance(node, alg.ArgExtreme):
            self._facts(alg.Scan(node.of, (node.key,), family="attribute"))
        elif isinstance(node, alg.AllEntities):
            for member in self.stores.reads(node):
                self._ask(member, node)
                if node.source is not None:
                    self._ask(member, alg.Scan(None, None, source=node.source))
        elif isinstance(node, alg.Neighbour):
            self._neighbours(node)
        else:
            self._inputs(node)
            if isinstance(node, alg.SameName) and self._running:
                self._called(alg.Names(node.of))
            elif isinstance(node, alg.Referents) and self._running:
                self._called(node.values)

    def _inputs(self, node: Node) -> None:
        large = self._large(node)
        for child in node.inputs():
            if child is not large and not bounded(node, child):
                self._get(child)
        if large is not None:
            others = tuple(part for part in cast("alg.Intersect", node).parts if part is not large)
            self._members(large.concepts, others[0] if len(others) == 1 else alg.Intersect(others))

    def _large(self, node: Node) -> alg.Members | None:
        """Of sets that are intersected the members of large concepts, which the other sets narrow."""
        if not isinstance(node, alg.Intersect):
            return None
        found = [part for part in node.parts if isinstance(part, alg.Members)]
        others = [part for part in node.parts if not isinstance(part, alg.Members | alg.AllEntities)]
        return found[0] if len(found) == 1 and others else None

    def _called(self, values: alg.Values) -> None:
        """Ask for the entities that values are the names of."""
        bag: Bag = self.run(values).results[id(values)]
        self._named(sorted({text for text in bag.texts() if text not in self._names}))

    def _neighbours(self, node: alg.Neighbour) -> None:
        self._get(node.of)
        idents, given = self.idents(node.of), set[str]()
        for at in self.stores.all:
            bound = alg.Neighbour(alg.ById(idents), node.distance)
            if self._running and self.stores.schemas[at].tables:
                given |= {entity.id for entity in self.stores.members[at].entities(bound)}
                self._ask(at, alg.ById(idents))
        for at in self.stores.all:
            self._look(at, sorted(given))
        self._given[mark(node)] = given

    def _members(self, concepts: alg.Entities, of: alg.Entities | None) -> None:
        """Ask for the memberships of entities (None: of all) under concepts: a concept may lie under another one by the word
        of one store, and have its members in another one.
        """
        within: alg.Entities | None = None
        if of is not None:
            self._get(of)
            some = self.idents(of)
            within = alg.ById(some) if len(some) <= MOST_BOUND else None
        fresh = set(self.idents(concepts))
        known, asked = set(fresh), set(fresh)
        while fresh:
            sets: alg.Entities = alg.Members(alg.ById(tuple(sorted(fresh))))
            for member in self.stores.with_concepts:
                self._ask(member, sets if within is None else alg.Intersect((sets, within)))
            self._settle()
            below = set().union(*(self._below.get(concept, ()) for concept in known))
            while not below <= known:
                fresh |= below - known
                known |= below
                below = set().union(*(self._below.get(concept, ()) for concept in known))
            fresh -= asked
            asked |= fresh

    def _facts(self, node: alg.Facts) -> None:
        """Ask for statements, with all tests that their stores can make."""
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
        anchored, late = scan.of, False
        bound: alg.Entities | None = None
        if anchored is not None and not (isinstance(anchored, alg.AllEntities) and anchored.source is None):
            late = isinstance(anchored, alg.Members) and self._count(anchored) > MOST_BOUND
            if not late:
                self._get(anchored)
                idents = self.idents(anchored)
                bound = alg.ById(idents) if len(idents) <= MOST_BOUND else None
        facts: alg.Facts = replace(scan, of=bound)
        for test in reversed(tests):
            facts = passing(self._bound_test(test), facts)
        if isinstance(bound, alg.ById) and self._running:
            self._ask_known(members, facts, bound)
        else:
            for member in members:
                self._ask(member, facts)
        if late:
            assert isinstance(anchored, alg.Members)
            self._get(anchored.concepts)
            ends = alg.Reached(alg.OtherEnd(facts, scan.anchor))
            self._members(anchored.concepts, ends if self._running else None)

    def _ask_known(self, members: Iterable[int], facts: alg.Facts, bound: alg.ById) -> None:
        """Ask for the statements of entities, each store for those that it knows."""
        lacking = []
        for member in sorted(members):
            known = tuple(ident for ident in bound.ids if ident in self.said[member])
            if known:
                there = alg.ById(known)
                self._ask(member, _replaced(facts, bound, there))
            else:
                lacking.append(repr(self.stores.members[member].name))
        if bound.ids and lacking and len(lacking) == len(set(members)):
            count = numbered(len(bound.ids), "entity that leads", "entities that lead")
            self.apart.append(f"{' and '.join(lacking)} knows none of the {count} there from other stores; {DECLARE}")

    def check_names(self, plan: Node) -> None:
        """Note entities of one name in the program that may be one, and are not declared as one."""
        for name in sorted({name for node in postorder(plan) if isinstance(node, alg.ByName) for name in node.names}):
            homes = {ident: {at for at, said in enumerate(self.said) if ident in said} for ident in self.named((name,))}
            for first, second in pairwise(sorted(homes, key=lambda ident: sorted(homes[ident]))):
                if homes[first].isdisjoint(homes[second]):
                    places = [f"{one!r} in {self.stores.members[min(homes[one])].name!r}" for one in (first, second)]
                    self.notes.append(f"{name!r} is {places[0]} and {places[1]}, two entities; {DECLARE}")

    def _pushed(self, test: alg.Facts) -> bool:
        """Whether stores can make a test as the engine does: it compares no names, and leaves nothing out with a warning."""
        if test.facets.tests == "nothing":
            return all(isinstance(child, alg.Facts) for child in test.inputs())
        return not self.stores.by_names(test) and self.stores.comparable(test)

    def _bound_test(self, test: Any) -> Any:
        """A test with the ids of sets that it names."""
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
        """About how many members concepts have, by the schemas."""
        names = [name for part in postorder(node.concepts) if isinstance(part, alg.ByName) for name in part.names]
        return sum(self.stores.schema.members.get(name, 0) for name in names)


def named(ident: str, said: Sequence[Mapping[str, Entity]]) -> str:
    """What an entity is called: the first name that is given to it, and no name is its id."""
    return next((mine[ident].name for mine in said if ident in mine and mine[ident].name != ident), ident)


def _replaced(plan: alg.Facts, old: Node, new: Node) -> Node:
    return rewrite(plan, lambda part: new if part is old else part)


def _reading(node: Node) -> bool:
    """Whether a part is one that a store is asked for by itself: statements, or entities by what is said of them."""
    return isinstance(node, alg.Facts | alg.Entities) and not isinstance(node, alg.ById | alg.ByName)


def _bag(node: Node) -> alg.Values:
    """What a part gives as values, so that a plan can hold several parts."""
    if isinstance(node, alg.Facts):
        return alg.Objects(node)
    return alg.Names(node) if isinstance(node, alg.Entities) else cast("alg.Values", node)


def by_name(found: Iterable[Any], member: int, renamed: Renamed) -> Iterator[Any]:
    """Items with the names that the sources of a member have among those of all members."""
    if not any(at == member for at, _ in renamed):
        yield from found
        return
    for item in found:
        if isinstance(item, Source):
            yield replace(item, name=renamed.get((member, item.name), item.name))
        elif isinstance(item, Sourced):
            yield replace(item, sources=tuple((renamed.get((member, name), name), row) for name, row in item.sources))
        else:
            yield item
