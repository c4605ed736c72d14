"""The rules: what supports a claim, what refutes it, and what leaves it open.

The graph may lack statements (open world), so what it does not state is not false.

- Supported: some choice of its unknown nodes makes every triple stated, and every denied triple
  excluded.
- Refuted: every choice has a triple that is excluded, or a denied one that is stated. The choices
  are known only where a predicate has one value, or is closed.
- A triple is excluded if its predicate has one value and the graph states another one; or if it is
  closed by the caller's word and the graph does not state it.

Values are another one only by their type: numbers and times that differ, entities that are two in
the graph, have two names, and are joined by no statement (one may lie within the other). A
statement with a time of its own excludes nothing: at another time it may have been otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from condgraph.claims.claim import Claim, ClaimTriple
from condgraph.claims.facts import INSTANCE_OF, Direction, Facts, distinct
from condgraph.claims.values import folded, likeness
from condgraph.claims.verdict import Reason
from condgraph.engine.bounds import check
from condgraph.engine.evidence import Evidence
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Entity
from condgraph.engine.values import Value

#: The most choices of the unknown nodes that are looked at in one reading of a claim.
MOST_CHOICES: Final = 20_000
_TIMES: Final = frozenset((START_TIME, END_TIME, POINT_IN_TIME))

#: What nodes of a claim are, by number; a text where a known node is none of the graph's entities.
Binding: TypeAlias = Mapping[int, Entity | Value]
Reasons: TypeAlias = tuple[Reason, ...]


@dataclass(slots=True)
class _Left:
    """How many choices may still be looked at."""

    choices: int = MOST_CHOICES

    def one(self) -> bool:
        check()
        self.choices -= 1
        return self.choices >= 0


class Judge:
    """Judges one reading of a claim: known nodes are the entities, or the texts, that `start` says.

    `closed` says which predicates the graph has whole.
    """

    def __init__(self, claim: Claim, facts: Facts, closed: Collection[str] | bool, start: Binding) -> None:
        self._claim, self._facts, self._closed = claim, facts, closed
        self.start: Binding = dict(start)
        self._stated = [triple for triple in claim.triples if not triple.denied]
        self._denied = [triple for triple in claim.triples if triple.denied]
        self._left = _Left()
        predicates = {one.relation: facts.predicate(one.relation) for one in claim.triples if one.relation is not None}
        self._names: dict[str, str] = {text: name for text, name in predicates.items() if name is not None}

    @property
    def cut(self) -> bool:
        """Whether there were more choices than are looked at."""
        return self._left.choices < 0

    # -- supported ---------------------------------------------------------------------------------

    def supported(self) -> Reasons | None:
        """Why the claim is so; None where the graph does not say that."""
        for binding, reasons in self._choices(self.start, self._stated):
            denials = [self._excluded_all(triple, binding) for triple in self._denied]
            found = [one for one in denials if one is not None]
            if len(found) == len(denials):
                return (*reasons, *(reason for one in found for reason in one))
        return None

    def _choices(self, binding: Binding, triples: list[ClaimTriple]) -> Iterator[tuple[Binding, Reasons]]:
        """The choices of unknown nodes under which all triples are stated, with their statements."""
        if not triples:
            yield binding, ()
            return
        triple = min(triples, key=lambda one: self._effort(one, binding))
        rest = [one for one in triples if one is not triple]
        for extended, reason in self._matches(triple, binding):
            if not self._left.one():
                return
            for whole, reasons in self._choices(extended, rest):
                yield whole, (reason, *reasons)

    def _effort(self, triple: ClaimTriple, binding: Binding) -> int:
        """Triples with both nodes first, memberships of anybody last."""
        free = (triple.head not in binding) + (triple.tail not in binding)
        return free + (3 if free and self._name(triple) in (None, INSTANCE_OF) else 0)

    def _matches(self, triple: ClaimTriple, binding: Binding) -> Iterator[tuple[Binding, Reason]]:
        """The statements that a triple can be, each with what its unknown nodes are then."""
        head, tail = binding.get(triple.head), binding.get(triple.tail)
        if triple.head in binding and triple.tail in binding:
            stated = self.stated(triple, binding)
            if stated:
                yield binding, Reason(triple, "stated", stated)
            return
        name = self._name(triple)
        if name is None:
            return
        if name == INSTANCE_OF:
            yield from self._memberships(triple, binding)
            return
        for fact in self._around(head, tail, name):
            found = {triple.head: fact.subject, triple.tail: fact.object}
            if triple.head == triple.tail and fact.subject != fact.object:
                continue
            yield {**found, **binding}, Reason(triple, "stated", (fact,))

    def _memberships(self, triple: ClaimTriple, binding: Binding) -> Iterator[tuple[Binding, Reason]]:
        head, tail = binding.get(triple.head), binding.get(triple.tail)
        if isinstance(tail, Entity):
            for fact in self._facts.members(tail):
                if fact.kind == "membership":
                    yield {**binding, triple.head: fact.subject}, Reason(triple, "stated", (fact,))
        elif isinstance(head, Entity):
            for fact in self._facts.concepts(head):
                yield {**binding, triple.tail: fact.object}, Reason(triple, "stated", (fact,))

    def _around(self, head: Entity | Value | None, tail: Entity | Value | None, name: str) -> tuple[Evidence, ...]:
        if isinstance(head, Entity):
            return self._facts.statements(head, name, "forward")
        if isinstance(tail, Entity):
            return self._facts.statements(tail, name, "backward")
        return self._facts.having(tail, name) if isinstance(tail, str) else ()

    def stated(self, triple: ClaimTriple, binding: Binding) -> tuple[Evidence, ...]:
        """The statements that say a triple whose nodes are both bound; none where nothing does."""
        head, tail = binding[triple.head], binding[triple.tail]
        if not isinstance(head, Entity):
            return ()
        if triple.relation is None:
            return self._facts.between(head, tail) if isinstance(tail, Entity) else ()
        name = self._name(triple)
        if name is None:
            return ()
        if name == INSTANCE_OF:
            return self._facts.membership(head, tail) if isinstance(tail, Entity) else ()
        facts = self._facts.statements(head, name, "forward")
        return tuple(fact for fact in facts if self._same(fact.object, triple.tail, tail))

    def _same(self, there: Entity | Value, node: int, bound: Entity | Value) -> bool:
        if isinstance(there, Entity) or isinstance(bound, Entity):
            same = isinstance(there, Entity) and isinstance(bound, Entity) and there.id == bound.id
            # A known name that an entity has may stand as a text as well.
            return same or (not isinstance(there, Entity) and self._known(node) and likeness(self._text(node), there) == "same")
        return likeness(self._text(node), there) == "same" if self._known(node) else there == bound

    # -- refuted -----------------------------------------------------------------------------------

    def refuted(self) -> Reasons | None:
        """Why the claim cannot be so; None where it can, for all that the graph says."""
        return self._refuted(self.start)

    def _refuted(self, binding: Binding) -> Reasons | None:
        if not self._left.one():
            return None
        for triple in self._stated:
            if triple.head in binding and triple.tail in binding and (reason := self.excluded(triple, binding)) is not None:
                return (reason,)
        for triple in self._denied:
            reason = self._denied_stated(triple, binding)
            if reason is not None:
                return (reason,)
        for triple in self._stated:
            found = self._all_choices(triple, binding)
            if found is None:
                continue
            reasons: list[Reason] = []
            for extended, reason in found:
                further = self._refuted(extended)
                if further is None:
                    break
                reasons += (reason, *further)
            else:
                return tuple(reasons) if reasons else (Reason(triple, "closed", ()),)
        return None

    def _all_choices(self, triple: ClaimTriple, binding: Binding) -> list[tuple[Binding, Reason]] | None:
        """What the one free node of a triple can be, where the graph is known to have it all; None
        where it is not.
        """
        free = [node for node in (triple.head, triple.tail) if node not in binding]
        name = self._name(triple)
        if len(free) != 1 or name is None or name == INSTANCE_OF:
            return None
        forward = free[0] == triple.tail
        bound = binding[triple.head if forward else triple.tail]
        if not isinstance(bound, Entity):
            return None
        direction: Direction = "forward" if forward else "backward"
        if not self._is_closed(name):
            # One value, and here it is: no other can come to light.
            if not self._facts.single(name, direction):
                return None
            facts = self._facts.statements(bound, name, direction)
            ends = {str(fact.object if forward else fact.subject.id) for fact in facts}
            if len(ends) != 1 or any(map(_timed, facts)):
                return None
        return list(self._matches(triple, binding))

    def _denied_stated(self, triple: ClaimTriple, binding: Binding) -> Reason | None:
        if triple.head in binding and triple.tail in binding:
            stated = self.stated(triple, binding)
            return Reason(triple, "denied", stated) if stated else None
        if not self._alone(triple, binding):
            return None
        # Nobody is what the claim says; the first who is refutes it.
        found = next(self._matches(triple, binding), None)
        return None if found is None else Reason(triple, "denied", found[1].facts)

    def _alone(self, triple: ClaimTriple, binding: Binding) -> bool:
        """Whether the free nodes of a denied triple stand in it alone, so that it denies there is
        any.
        """
        free = {node for node in (triple.head, triple.tail) if node not in binding}
        others = [one for one in self._claim.triples if one is not triple]
        return not any(one.head in free or one.tail in free for one in others)

    # -- excluded ----------------------------------------------------------------------------------

    def _excluded_all(self, triple: ClaimTriple, binding: Binding) -> Reasons | None:
        """Why a denied triple is not so."""
        if triple.head in binding and triple.tail in binding:
            reason = self.excluded(triple, binding)
            return None if reason is None else (reason,)
        name = self._name(triple)
        bound = binding.get(triple.head, binding.get(triple.tail))
        if name is None or not isinstance(bound, Entity) or not self._is_closed(name) or not self._alone(triple, binding):
            return None
        return (Reason(triple, "closed", ()),) if next(self._matches(triple, binding), None) is None else None

    def excluded(self, triple: ClaimTriple, binding: Binding) -> Reason | None:
        """Why a triple whose nodes are both bound is not so; None where it is, or may be."""
        head, tail, name = binding[triple.head], binding[triple.tail], self._name(triple)
        if name is None or not isinstance(head, Entity) or self.stated(triple, binding):
            return None
        if name != INSTANCE_OF:
            if self._facts.single(name, "forward"):
                others = self._facts.statements(head, name, "forward")
                apart = all(self._other(fact.object, triple.tail, tail) for fact in others)
                if others and apart and not any(map(_timed, others)):
                    return Reason(triple, "one value", others)
            if isinstance(tail, Entity) and self._facts.single(name, "backward"):
                others = self._facts.statements(tail, name, "backward")
                if others and not any(map(_timed, others)) and all(self._apart(fact.subject, head) for fact in others):
                    return Reason(triple, "one subject", others)
        if self._is_closed(name) and self._grounded(tail, name):
            return Reason(triple, "closed", ())
        return None

    def _other(self, there: Entity | Value, node: int, bound: Entity | Value) -> bool:
        if isinstance(there, Entity):
            return isinstance(bound, Entity) and self._apart(there, bound)
        return self._known(node) and likeness(self._text(node), there) == "other"

    def _apart(self, one: Entity, two: Entity) -> bool:
        """Whether two entities are surely two, neither of them part of the other."""
        if one.id == two.id or folded(one.name) == folded(two.name):
            return False
        if self._facts.between(one, two) or self._facts.between(two, one):
            return False
        return not self._facts.membership(one, two) and not self._facts.membership(two, one)

    def _grounded(self, tail: Entity | Value, name: str) -> bool:
        return isinstance(tail, Entity) or self._facts.has_values(name)

    def _is_closed(self, name: str) -> bool:
        return self._closed if isinstance(self._closed, bool) else name in self._closed

    # -- names -------------------------------------------------------------------------------------

    def _name(self, triple: ClaimTriple) -> str | None:
        return None if triple.relation is None else self._names.get(triple.relation)

    def _known(self, node: int) -> bool:
        return self._claim.nodes[node].known

    def _text(self, node: int) -> str:
        return self._claim.nodes[node].text


def facts_of(reasons: Reasons) -> tuple[Evidence, ...]:
    """The statements of reasons, each once."""
    return distinct(fact for reason in reasons for fact in reason.facts)


def _timed(fact: Evidence) -> bool:
    return any(key in _TIMES for key, _ in fact.qualifiers)
