"""What the graph says of a name, asked in KoPL, so that every store answers: who is called so, the
statements from an entity or to it, and whether a predicate has one value.

What is asked once is kept for the call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from condgraph.claims.values import folded
from condgraph.engine.algebra import Reached, Scan
from condgraph.engine.bounds import check
from condgraph.engine.errors import LONGEST_NAME, UnknownNameError, nearest
from condgraph.engine.evidence import Evidence
from condgraph.engine.facts import Entity, EntityKind

if TYPE_CHECKING:
    from condgraph.claims.asking import Asking

#: The predicate of memberships.
INSTANCE_OF: Final = "instance of"
#: A predicate of fewer subjects tells too little of whether it has one value.
LEAST_SUBJECTS: Final = 30
#: Of so many statements at most one may be more than a subject's first: 1 in 100.
MOST_DOUBLED: Final = 100

#: The most concepts of one entity that are looked at.
_MOST_CONCEPTS: Final = 20

Direction = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class Named:
    """What a name of a claim is in the graph: entities, or none with the nearest names."""

    entities: tuple[Entity, ...]
    candidates: tuple[str, ...] = ()


class Facts:
    """What one call has asked of a graph. `single` says of predicates, by the caller's word, whether
    they have one value (True) or several.
    """

    def __init__(self, graph: Asking, single: dict[str, bool]) -> None:
        self._graph, self._single = graph, single
        self._kinds: dict[str, tuple[bool, bool]] = {
            name: (relations > 0, values > 0) for name, relations, values, *_ in graph._survey()["predicates"]
        }
        self._folded: dict[str, list[str]] = {}
        for name in self._kinds:
            self._folded.setdefault(folded(name), []).append(name)
        #: How many queries were asked.
        self.queries = 0
        self.named = lru_cache(maxsize=None)(self._named)
        self.statements = lru_cache(maxsize=None)(self._statements)
        self.single = lru_cache(maxsize=None)(self._has_one)

    @property
    def predicates(self) -> list[str]:
        """The names of all predicates."""
        return list(self._kinds)

    # -- names -------------------------------------------------------------------------------------

    def predicate(self, text: str) -> str | None:
        """The predicate that a claim calls so: of that name, or the only one but for case."""
        if text in self._kinds:
            return text
        found = self._folded.get(folded(text), [])
        if len(found) == 1:
            return found[0]
        return INSTANCE_OF if not found and folded(text) == INSTANCE_OF else None

    def has_values(self, predicate: str) -> bool:
        """Whether some statement of a predicate has a value, and no entity, as its object."""
        return self._kinds.get(predicate, (False, False))[1]

    def nearest_predicates(self, text: str) -> tuple[str, ...]:
        """The names of predicates most like a text."""
        return tuple(nearest(text, self._kinds))

    def _named(self, text: str) -> Named:
        if len(text) > LONGEST_NAME:
            return Named(())
        try:
            return Named(self._find(text))
        except UnknownNameError as error:
            alike = [name for name in error.candidates if folded(name) == folded(text)]
            if len(alike) == 1:
                return Named(self._find(alike[0]))
            return Named((), tuple(error.candidates))

    def _find(self, name: str) -> tuple[Entity, ...]:
        return tuple(self._ask(_program(("Find", [name]))).entities)

    # -- statements --------------------------------------------------------------------------------

    def _statements(self, entity: Entity, predicate: str, direction: Direction) -> tuple[Evidence, ...]:
        """The statements of a predicate from an entity (forward) or to it (backward)."""
        relation, attribute = self._kinds.get(predicate, (False, False))
        found: list[Evidence] = []
        if relation:
            found += self._evidence(("Find", [entity.name]), ("Relate", [predicate, direction]))
        if attribute and direction == "forward":
            found += self._evidence(("Find", [entity.name]), ("QueryAttr", [predicate]))
        return tuple(one for one in found if _end(one, direction) == entity.id and one.kind == "statement")

    def having(self, value: str, predicate: str) -> tuple[Evidence, ...]:
        """The statements of an attribute whose value is a text."""
        if not self.has_values(predicate):
            return ()
        return tuple(self._evidence(("FindAll", []), ("FilterStr", [predicate, value])))

    def between(self, one: Entity, two: Entity) -> tuple[Evidence, ...]:
        """The statements of any predicate from one entity to another."""
        found = self._evidence(("Find", [one.name]), ("Find", [two.name]), ("QueryRelation", []))
        return tuple(
            fact for fact in found if fact.subject.id == one.id and isinstance(fact.object, Entity) and fact.object.id == two.id
        )

    def membership(self, entity: Entity, concept: Entity) -> tuple[Evidence, ...]:
        """The steps by which an entity is an instance of a concept; none where it is not."""
        if concept.kind is not EntityKind.CONCEPT:
            return ()
        found = self._evidence(("Find", [entity.name]), ("FilterConcept", [concept.name]))
        member = [one for one in found if one.kind == "membership" and one.subject.id == entity.id]
        above = {one.object.id for one in found if isinstance(one.object, Entity)}
        return (*member, *(one for one in found if one.kind == "subclass")) if member and concept.id in above else ()

    def concepts(self, entity: Entity) -> tuple[Evidence, ...]:
        """The memberships of an entity in concepts, as they were stated: edges of a pattern, since no
        program gives concepts.
        """
        check()
        self.queries += 1
        found = self._graph.match([(entity.name, INSTANCE_OF, "UNKNOWN 1")], k=_MOST_CONCEPTS)
        edges = (edge.statement for solution in found.solutions for edge in solution.edges)
        return distinct(one for one in edges if one.kind == "membership" and one.subject.id == entity.id)

    def members(self, concept: Entity) -> tuple[Evidence, ...]:
        """The memberships in a concept, and the steps to it from those below."""
        if concept.kind is not EntityKind.CONCEPT:
            return ()
        return tuple(self._evidence(("FindAll", []), ("FilterConcept", [concept.name])))

    # -- how many values ---------------------------------------------------------------------------

    def _has_one(self, predicate: str, direction: Direction) -> bool:
        """Whether a subject has one object of a predicate (forward), or an object one subject.

        By the caller's word (forward), or where nearly every subject of the graph has: at least
        `LEAST_SUBJECTS` of them, and at most 1 in `MOST_DOUBLED` statements more than subjects.
        """
        if direction == "forward" and predicate in self._single:
            return self._single[predicate]
        if predicate not in self._kinds:
            return False
        family: Any = "relation" if direction == "backward" else "any"
        scan = Scan(None, (predicate,), "subject", "subject" if direction == "forward" else "object", family)
        self.queries += 1
        statements, ends = self._graph.counted([scan, Reached(scan)], lambda node: ())
        return ends >= LEAST_SUBJECTS and (statements - ends) * MOST_DOUBLED <= statements

    # -- asking ------------------------------------------------------------------------------------

    def _evidence(self, *steps: tuple[str, list[str]]) -> list[Evidence]:
        return list(self._ask(_program(*steps)).evidence)

    def _ask(self, program: list[dict[str, Any]]) -> Any:
        check()
        self.queries += 1
        return self._graph.kopl(program)


def _end(fact: Evidence, direction: Direction) -> str:
    if direction == "forward":
        return fact.subject.id
    return fact.object.id if isinstance(fact.object, Entity) else ""


def _program(*steps: tuple[str, list[str]]) -> list[dict[str, Any]]:
    """A program in the data set's JSON form, which takes names as they are; each step takes those
    before it that nobody took.
    """
    program: list[dict[str, Any]] = []
    free: list[int] = []
    for number, (function, inputs) in enumerate(steps):
        taken = [] if function in ("Find", "FindAll") else [*free]
        free = [*free, number] if not taken else [number]
        program.append({"function": function, "inputs": inputs, "dependencies": taken})
    return program


def distinct(facts: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Statements, each once, in their order."""
    return tuple({repr(one): one for one in facts}.values())
