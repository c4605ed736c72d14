"""Several stores as one store (`engine.store`): a plan for which one store has everything is sent there, others are gathered
(`several.gathering`) and run in process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, Solutions, postorder
from condgraph.engine.answer import Answer
from condgraph.engine.bounds import kept, timed
from condgraph.engine.describe import describe, tree
from condgraph.engine.errors import OptionError, ReadOnlyError, UnsupportedError
from condgraph.engine.execute import Run
from condgraph.engine.facts import Entity, EntityKind, Source
from condgraph.engine.lowered import Step
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_answer import StoredAnswer
from condgraph.engine.stored_schema import StoredSchema
from condgraph.languages.pattern.pattern import Pattern, shown
from condgraph.languages.registry import PATTERN
from condgraph.names.linking import LinkingSchema
from condgraph.overview.survey import Survey, survey
from condgraph.several.gathering import Gathering, Stores, by_name, named
from condgraph.several.member import Member, as_entities, built
from condgraph.several.schema import Same, SeveralNames, SeveralSchema, disagreements, matched, renamed_sources, union

if TYPE_CHECKING:
    from condgraph.engine.check import KnownIds
    from condgraph.engine.execute.witness_plan import Unit
    from condgraph.engine.lowered import Lowered
    from condgraph.engine.store import Request, Size
    from condgraph.patterns.matches import Matches

TARGET: Final = "several stores"


@dataclass(frozen=True, slots=True)
class StoreVersion:
    """A store behind an answer: its name, its place, and the version of its content (None if unknown)."""

    name: str
    place: str
    version: str | None


class SeveralAnswer(StoredAnswer):
    """The answer to one program over several stores.

    `stores` lists them in order; `whole` is the one that gave the complete answer, None if parts of several were combined.
    """

    _store: SeveralStore

    def __init__(
        self,
        store: SeveralStore,
        request: Request,
        lowered: Lowered,
        stores: tuple[StoreVersion, ...],
        given: MemberAnswer | Run,
        apart: Sequence[str],
    ) -> None:
        super().__init__(store, request, lowered)
        self.stores, self._apart = stores, apart
        self._member_answer = given if isinstance(given, MemberAnswer) else None
        self.whole = None if self._member_answer is None else self._member_answer.member.name
        if isinstance(given, Run):
            given.notes.update(lowered.notes)
            self.run = given
        else:
            answer = given.answer
            self._query = partial(getattr, answer)  # type: ignore[method-assign]

    def _compute(self) -> tuple[list[Any], list[str]]:
        if self._member_answer is None:
            return super()._compute()
        values, texts = self._member_answer.answer._outcome()
        if self._limit is not None:
            self._omitted = max(len(values) - self._limit, 0)
        return values[: self._limit], texts[: self._limit]

    @kept
    def entities(self) -> list[Entity]:
        """The entities of the answer, in order."""
        return super().entities if self._member_answer is None else self._member_answer.answer.entities[: self._limit]

    @property
    def _telling(self) -> Mapping[str, str]:
        return self._store.naming_schema.telling

    @kept
    def _witness(self) -> Run:
        return self._store.witness(self.plan) if self._member_answer is not None else self.run

    def _grid(self) -> Any:
        return Answer._grid(self) if self._member_answer is None else super()._grid()

    @kept
    def trace(self) -> list[Step]:
        """The results of each step of the program; the stores are queried for those not at hand."""
        steps = self._steps or [(type(self.plan).__name__, self.plan)]
        known = {} if self._member_answer is not None else self.run.results
        result = []
        for function, node in steps:
            if node is self.plan and self._member_answer is not None:
                size = len(self._outcome()[0]) + self._omitted, tuple(self._outcome()[1][:3])
            elif id(node) in known and node is self.plan:
                size = self._size(node)
            else:
                size = self._size_in(self._store.gathered(node), node)
            result.append(Step(function, describe(node), *size, self._notes.get(id(node), "")))
        return result

    def _noticed(self) -> list[str]:
        if self._member_answer is not None:
            return self._member_answer.answer._noticed()
        return [*self.run.all_warnings(), *([] if self._outcome()[0] else dict.fromkeys(self._apart))]

    @timed
    def explain(self) -> str:
        """Return the program, its plan, the query of each store, and the results of each step."""
        steps = [str(step) for step in self.trace]
        warnings = [f"warning: {warning}" for warning in self.warnings]
        parts = [self.program, tree(self.plan), self._store.parts_of(self.plan), "\n".join([*steps, *warnings])]
        return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class MemberAnswer:
    """The answer of a member that has everything for a plan."""

    member: Member
    answer: Answer


@dataclass(slots=True)
class _State:
    """The state derived from the members, valid while their schemas stay the same."""

    schemas: tuple[StoredSchema, ...]
    stores: Stores
    naming: LinkingSchema
    sources: tuple[Source, ...]
    #: What each member states about all concepts of any member; None if there are very many.
    concepts: list[dict[str, Entity]] | None


class SeveralStore:
    """Several stores that are queried as one graph. If several name an entity, the first name counts."""

    declared: tuple[str, ...] = ()
    timeout: float | None = None

    def __init__(self, members: Sequence[Member], same: Same | None = None) -> None:
        self.members, self._same = tuple(members), same or {}
        self.place = ", ".join(f"{member.name}: {member.place}" for member in self.members)
        self._cached_state: _State | None = None
        self._unmatched: list[str] = []

    def __repr__(self) -> str:
        return f"<SeveralStore {self.place}>"

    def _state(self) -> _State:
        schemas, state = tuple(member.schema for member in self.members), self._cached_state
        if state is None or any(schema is not known_schema for schema, known_schema in zip(schemas, state.schemas, strict=True)):
            self._unmatched = matched(self.members, schemas, self._same)
            renamed, sources = renamed_sources(self.members)
            concepts = self._concepts(schemas)
            concept_names = None if concepts is None else {named(ident, concepts) for ident in set().union(*concepts)}
            stores = Stores(self.members, schemas, union(schemas, renamed, sources, concept_names), renamed)
            naming = SeveralSchema(stores.schema, SeveralNames(stores, lambda: Gathering(stores)))
            state = self._cached_state = _State(schemas, stores, naming, sources, concepts)
        return state

    @property
    def naming_schema(self) -> LinkingSchema:
        """The schema of all stores, as lowering uses it."""
        return self._state().naming

    linking_schema = naming_schema

    @property
    def notes(self) -> tuple[str, ...]:
        """What the stores disagree on."""
        schemas = self._state().schemas
        return (*self._unmatched, *disagreements(self.members, schemas))

    def versions(self) -> tuple[StoreVersion, ...]:
        """Return the stores with their present versions."""
        return tuple(StoreVersion(one.name, one.place, one.version()) for one in self.members)

    # -- asking ------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Answer:
        """Answer a program."""
        if request.language == PATTERN:
            options = {name: value for name, value in request.options.items() if name != "on_unknown"}
            return self.match(request.program, limit=request.limit, **options)
        versions = self.versions()
        lowered = request.lowered(self.naming_schema)
        gathering = Gathering(self._state().stores)
        result: MemberAnswer | Run | None = self._single_answer(lowered.plan, gathering)
        if result is None:
            result = gathering.gather(lowered.plan).run(lowered.plan)
            gathering.check_names(lowered.plan)
            result.warnings += gathering.notes
        return SeveralAnswer(self, request, lowered, versions, result, gathering.apart)

    def _single_answer(self, plan: Node, gathering: Gathering) -> MemberAnswer | None:
        """Return the answer of the one store that has everything for a plan; None if there is none, or the stores disagree.

        It has no limit, as other names in other stores could change which results come first.
        """
        number = self._single_member(plan, gathering.stores)
        if number is None:
            return None
        nodes = postorder(plan)
        gathering.look_up(nodes)
        bound = gathering.resolved(plan)
        mentioned = {ident for node in postorder(bound) if isinstance(node, alg.ById) for ident in node.ids}
        if not mentioned <= gathering.said[number].keys():
            return None
        member = self.members[number]
        answer = member.answer(bound)
        answer_entities = as_entities([*answer.entities, *answer.values])
        if not member.same.keys().isdisjoint(answer_entities):
            return None
        for other_number, other_member in enumerate(self.members):
            lacking = [ident for ident in answer_entities if ident not in gathering.said[other_number]]
            if other_number == number or not lacking:
                continue
            for entity in other_member.look_up((), lacking):
                gathering.said[other_number][entity.id] = entity
        for said in gathering.said:
            if any(not _agree(said[ident], entity) for ident, entity in answer_entities.items() if ident in said):
                return None
        return MemberAnswer(member, answer)

    def _single_member(self, plan: Node, stores: Stores) -> int | None:
        """Return the number of the one member whose own answer, except for names of entities, is that of all members; or None."""
        nodes = postorder(plan)
        if any(isinstance(node, Solutions | alg.Table | alg.External) for node in nodes):
            return None
        root: Any = plan.entities if isinstance(plan, alg.Names) else plan
        known: dict[Any, frozenset[int]] = {}
        home = stores.home(root, known)
        for node in nodes:
            has_test = node.facets.tests != "nothing"
            if has_test and stores.by_names(node):
                return None
            if has_test and not stores.comparable(node):
                # If values cannot be compared, all stores with the tested statements are read, so that
                # the warning is complete.
                home = home if len(home) == 1 else stores.home(node.inputs()[0], known) | home
            if isinstance(node, alg.Count) and not isinstance(node.of, alg.Entities):
                return None
            if isinstance(node, alg.Apply | alg.Shown | alg.Nth | alg.RowNumbers | alg.Mode | alg.Extreme):
                return None
        if len(home) != 1:
            return None
        (number,) = home
        if any(isinstance(node, alg.AllEntities) for node in nodes) and not self._has_all_concepts(number):
            return None
        return number

    def _has_all_concepts(self, at: int) -> bool:
        """Tell whether all concepts of other stores are concepts in this one, too."""
        state = self._state()
        if state.concepts is None:
            return False
        own_entities = state.concepts[at]
        concept_ids = {ident for said in state.concepts for ident, one in said.items() if one.kind is EntityKind.CONCEPT}
        return all(own_entities[ident].kind is EntityKind.CONCEPT for ident in concept_ids if ident in own_entities)

    def _concepts(self, schemas: Sequence[StoredSchema]) -> list[dict[str, Entity]] | None:
        """Return what each member states about all concepts of any member; None if there are very many."""
        if sum(len(schema.concepts) for schema in schemas) > _MAX_CONCEPTS:
            return None
        every = alg.AllEntities((EntityKind.CONCEPT,))
        said = [
            as_entities(member.entities(every)) if schema.concepts else {}
            for member, schema in zip(self.members, schemas, strict=True)
        ]
        idents = set().union(*said)
        for member, own_entities in zip(self.members, said, strict=True):
            lacking = tuple(sorted(idents - own_entities.keys()))
            own_entities.update(as_entities(member.entities(alg.ById(lacking))) if lacking else {})
        return said

    def explain(self, request: Request) -> str:
        """Return the parts of a program with their stores and queries, without running them."""
        if request.language == PATTERN:
            return shown(Pattern.of(request.program))
        return self.parts_of(request.lowered(self.naming_schema).plan)

    def parts_of(self, plan: Node) -> str:
        """Return the parts of a plan with their stores and the query of each."""
        stores = self._state().stores
        number = self._single_member(plan, stores)
        if number is not None:
            parts = [(self.members[number], plan)]
        else:
            gathering = Gathering(stores, running=False).gather(plan)
            gathering.merged()
            parts = gathering.asked
        return "\n\n".join(f"-- {member.name}: {member.place}\n{member.text(part)}" for member, part in parts)

    def gathered(self, plan: Node) -> Run:
        """Run a plan on all that it needs from the stores."""
        return Gathering(self._state().stores).gather(plan).run(plan)

    def witness(self, plan: Node) -> Run:
        """Run a plan in process on its evidence."""
        return self.gathered(plan)

    def gather(self, units: Sequence[Unit]) -> Snapshot:
        """Fetch the statements, sets and memberships of some units."""
        stores = self._state().stores
        return built(
            item for number, member in enumerate(self.members) for item in by_name(member.gather(units), number, stores.renamed)
        )

    def match(self, pattern: Any, *, exact: bool = True, **options: Any) -> Matches:
        """Match a pattern: plans fetch the statements that the search reaches."""
        if not exact:
            raise OptionError("several stores have no approximate index", hint="ask with exact=True")
        from condgraph.patterns.remote.planned import planned

        return planned(self, self.place, "several").match(pattern, **options)

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """Count the statements, or entities, of each operator."""
        return [len(self.gathered(node).results[id(node)]) for node in nodes]

    def sizes(self, nodes: Sequence[Node], most: int = 3, *, statements: bool = False) -> list[Size | None]:
        """Return the number of results of each operator, and the first names."""
        return [Answer._size_in(self.gathered(node), node, most) for node in nodes]

    # -- what there is -----------------------------------------------------------------------------

    @property
    def schema(self) -> StoredSchema:
        """The schema of all stores."""
        return self._state().stores.schema

    def steady(self, ask: Any) -> Any:
        """Run `ask`; every store is queried in its state at the time."""
        return ask()

    def exists(self) -> bool:
        """Return True: a member that does not exist cannot be opened."""
        return True

    def counts(self) -> dict[str, int]:
        """Return the counts of all stores together; what several of them have is counted several times."""
        result: dict[str, int] = {}
        for member in self.members:
            for name, count in member.counts().items():
                result[name] = result.get(name, 0) + count
        return result

    def sources(self) -> tuple[Source, ...]:
        """Return the sources of all stores."""
        return self._state().sources

    def snapshot(self) -> Snapshot:
        """Read all stores into process, as one snapshot."""
        renamed = self._state().stores.renamed
        return built(item for number, member in enumerate(self.members) for item in by_name(member.whole(), number, renamed))

    def survey(self) -> Survey:
        """Return the survey of all stores together, counted in process."""
        size = sum(self.counts().get(name, 0) for name in ("relations", "attributes"))
        if size > _MAX_SURVEYED:
            hint = "schema() of each store alone needs no copy"
            raise UnsupportedError(TARGET, [f"the summary of {size:,} statements"], hint=hint)
        return survey(self.snapshot())

    def refresh(self) -> None:
        """Discard what is cached about the stores."""
        self._cached_state = None
        for member in self.members:
            member.forget()

    def close(self) -> None:
        """Do nothing: each graph closes its own store."""

    def left(self) -> None:
        """Return None: this store is never loaded."""

    def under_way(self) -> None:
        """Return None: this store is never loaded."""

    def abandon(self) -> bool:
        """Return False: this store is never loaded."""
        return False

    def delete(self) -> bool:
        """Raise `ReadOnlyError`."""
        raise ReadOnlyError.at(self.place)


_MAX_SURVEYED: Final = 250_000
#: Most concepts whose names are compared when the stores are first queried.
_MAX_CONCEPTS: Final = 20_000


def _agree(first: Entity, second: Entity) -> bool:
    """Tell whether two stores give an entity the same kind and name, unless one only has its id as name."""
    named = first.name == second.name or first.id in (first.name, second.name)
    return named and first.name == second.name and first.kind == second.kind
