"""Verify a claim: query the graph about its names, apply the rules that support and refute it, and return the
verdict.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from condgraph.claims.claim import Claim, ClaimTriple, Reason, Status, Verdict
from condgraph.engine.algebra import Reached, Scan
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, UnknownNameError, nearest
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Entity, EntityKind
from condgraph.engine.records import Evidence
from condgraph.engine.units import conversions
from condgraph.engine.values import Quantity, Time, Unknown, Value, collapse, parse_quantity
from condgraph.names.words import Forms

if TYPE_CHECKING:
    from condgraph.claims.claim import Asking


# -- values ------------------------------------------------------------------------------------------
# Compare a value in a claim, which is a text, with a value in the graph: the same, another, or undecided.
#
# A time in the graph that lies within the claimed one (a day of the claimed year) is the same; a less exact one decides nothing.
# A number is the same if it is equal in the same unit, or equals the claimed one when rounded to the same number of decimals.
# Texts are compared without case and white space. A different text does not count as another value, since it may mean the same in
# other words.


Likeness = Literal["same", "other", "open"]


def folded(text: str) -> str:
    """Return a text without case and repeated white space, which do not distinguish names."""
    return collapse(text).casefold()


def likeness(claimed: str, value: Entity | Value) -> Likeness:
    """Return whether `claimed` is `value`."""
    if isinstance(value, Entity):
        return "same" if folded(claimed) == folded(value.name) else "open"
    if isinstance(value, Unknown):
        return "open"
    if isinstance(value, Time):
        return _time(claimed, value)
    if isinstance(value, Quantity):
        return _quantity(claimed, value)
    return "same" if folded(claimed) == folded(str(value)) else "open"


def _time(claimed: str, value: Time) -> Likeness:
    try:
        time = Time.parse(collapse(claimed))
    except ValueError:
        return "open"
    if time.start <= value.start and value.end <= time.end:
        return "same"
    return "other" if value.end <= time.start or time.end <= value.start else "open"


def _quantity(claimed: str, value: Quantity) -> Likeness:
    try:
        quantity = parse_quantity(collapse(claimed))
    except ValueError:
        return "open"
    if quantity.unit != value.unit:
        converted = conversions(value, [quantity.unit])
        if not converted:
            return "open"
        value = converted[0]
    with suppress(InvalidOperation, ValueError, OverflowError):
        stated, actual = Decimal(str(quantity.number)), Decimal(str(value.number))
        exponent = stated.as_tuple().exponent
        if stated == actual or (
            isinstance(exponent, int) and exponent <= 0 and actual.quantize(Decimal(1).scaleb(exponent)) == stated
        ):
            return "same"
        return "other"
    return "open"


# -- facts -------------------------------------------------------------------------------------------
# Queries about the names in a claim, in KoPL, so that every store can answer: the entities with a name, the statements from or to
# an entity, and whether a predicate has one value. Each query runs at most once per call.


#: The predicate of memberships.
INSTANCE_OF: Final = "instance of"
#: The minimum number of subjects of a predicate to conclude that it has one value.
MIN_SUBJECTS: Final = 30
#: At most one in this many statements may be a further one of its subject.
SINGLE_RATIO: Final = 100

#: The maximum number of concepts of an entity that are read.
_MAX_CONCEPTS: Final = 20

Direction = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class NameMatch:
    """The entities that a name in a claim refers to, or none, with the nearest names."""

    entities: tuple[Entity, ...]
    candidates: tuple[str, ...] = ()


class Facts:
    """The facts that one call has queried from a graph. `single` maps predicates to whether the caller declares them
    to have one value.
    """

    def __init__(self, graph: Asking, single: dict[str, bool]) -> None:
        self._graph, self._single = graph, single
        self._kinds: dict[str, tuple[bool, bool]] = {
            name: (relations > 0, values > 0) for name, relations, values, *_ in graph._survey()["predicates"]
        }
        self._forms = Forms(self._kinds)
        #: The number of queries.
        self.queries = 0
        self.named = lru_cache(maxsize=None)(self._match)
        self.statements = lru_cache(maxsize=None)(self._statements)
        self.single = lru_cache(maxsize=None)(self._is_single)

    @property
    def predicates(self) -> list[str]:
        """The names of all predicates."""
        return list(self._kinds)

    # -- names -------------------------------------------------------------------------------------

    def predicate(self, text: str) -> str | None:
        """Return the predicate for a name: the one with exactly that name, or the only one that differs in case,
        spacing, plural or tense; else None.
        """
        if text in self._kinds:
            return text
        matches = self._forms.same(text)
        if len(matches) == 1:
            return matches[0]
        return INSTANCE_OF if not matches and folded(text) == INSTANCE_OF else None

    def has_values(self, predicate: str) -> bool:
        """Return whether some statement of a predicate has a value as its object."""
        return self._kinds.get(predicate, (False, False))[1]

    def nearest_predicates(self, text: str) -> tuple[str, ...]:
        """Return the names of predicates most similar to a text."""
        return tuple(nearest(text, self._kinds))

    def _match(self, text: str) -> NameMatch:
        try:
            return NameMatch(self._find(text))
        except UnknownNameError as error:
            alike = [name for name in error.candidates if folded(name) == folded(text)]
            if len(alike) == 1:
                return NameMatch(self._find(alike[0]))
            return NameMatch((), tuple(error.candidates))

    def _find(self, name: str) -> tuple[Entity, ...]:
        return tuple(self._run(_program(("Find", [name]))).entities)

    # -- statements --------------------------------------------------------------------------------

    def _statements(self, entity: Entity, predicate: str, direction: Direction) -> tuple[Evidence, ...]:
        """Return the statements of a predicate from an entity (forward) or to it (backward)."""
        relation, attribute = self._kinds.get(predicate, (False, False))
        evidence: list[Evidence] = []
        if relation:
            evidence += self._evidence(("Find", [entity.name]), ("Relate", [predicate, direction]))
        if attribute and direction == "forward":
            evidence += self._evidence(("Find", [entity.name]), ("QueryAttr", [predicate]))
        return tuple(item for item in evidence if _end(item, direction) == entity.id and item.kind == "statement")

    def having(self, value: str, predicate: str) -> tuple[Evidence, ...]:
        """Return the statements of an attribute with a text as their value."""
        if not self.has_values(predicate):
            return ()
        return tuple(self._evidence(("FindAll", []), ("FilterStr", [predicate, value])))

    def between(self, first: Entity, second: Entity) -> tuple[Evidence, ...]:
        """Return the statements from one entity to another, with any predicate."""
        evidence = self._evidence(("Find", [first.name]), ("Find", [second.name]), ("QueryRelation", []))
        ends = first.id, second.id
        return tuple(fact for fact in evidence if isinstance(fact.object, Entity) and (fact.subject.id, fact.object.id) == ends)

    def membership(self, entity: Entity, concept: Entity) -> tuple[Evidence, ...]:
        """Return the statements by which an entity is an instance of a concept, or nothing if it is not."""
        if concept.kind is not EntityKind.CONCEPT:
            return ()
        evidence = self._evidence(("Find", [entity.name]), ("FilterConcept", [concept.name]))
        member = [item for item in evidence if item.kind == "membership" and item.subject.id == entity.id]
        concepts = {item.object.id for item in evidence if isinstance(item.object, Entity)}
        return (*member, *(item for item in evidence if item.kind == "subclass")) if member and concept.id in concepts else ()

    def concepts(self, entity: Entity) -> tuple[Evidence, ...]:
        """Return the stated memberships of an entity. They come from a pattern, since no KoPL program returns
        concepts.
        """
        check()
        self.queries += 1
        match = self._graph.match([(entity.name, INSTANCE_OF, "UNKNOWN 1")], k=_MAX_CONCEPTS)
        edges = (edge.statement for solution in match.solutions for edge in solution.edges)
        return distinct(edge for edge in edges if edge.kind == "membership" and edge.subject.id == entity.id)

    def members(self, concept: Entity) -> tuple[Evidence, ...]:
        """Return the memberships in a concept and the concepts below it, and the subclass statements between these."""
        if concept.kind is not EntityKind.CONCEPT:
            return ()
        return tuple(self._evidence(("FindAll", []), ("FilterConcept", [concept.name])))

    # -- numbers of values -------------------------------------------------------------------------

    def _is_single(self, predicate: str, direction: Direction) -> bool:
        """Return whether a predicate has one object for each subject (forward), or one subject for each object
        (backward).

        The caller may declare this (forward). Otherwise it holds if nearly every subject in the graph has one: there
        are at least `MIN_SUBJECTS` subjects, and at most 1 in `SINGLE_RATIO` statements is a further one of its
        subject.
        """
        if direction == "forward" and predicate in self._single:
            return self._single[predicate]
        if predicate not in self._kinds:
            return False
        family: Any = "relation" if direction == "backward" else "any"
        scan = Scan(None, (predicate,), "subject", "subject" if direction == "forward" else "object", family)
        self.queries += 1
        statements, ends = self._graph.counted([scan, Reached(scan)], lambda node: ())
        return ends >= MIN_SUBJECTS and (statements - ends) * SINGLE_RATIO <= statements

    # -- queries -----------------------------------------------------------------------------------

    def _evidence(self, *steps: tuple[str, list[str]]) -> list[Evidence]:
        return list(self._run(_program(*steps)).evidence)

    def _run(self, program: list[dict[str, Any]]) -> Any:
        check()
        self.queries += 1
        return self._graph.kopl(program)


def _end(fact: Evidence, direction: Direction) -> str:
    if direction == "forward":
        return fact.subject.id
    return fact.object.id if isinstance(fact.object, Entity) else ""


def _program(*steps: tuple[str, list[str]]) -> list[dict[str, Any]]:
    """Return a program in the JSON form of the KQA Pro data set, in which names need no quotes. Each step depends on
    the earlier steps that no other step depends on.
    """
    program: list[dict[str, Any]] = []
    free: list[int] = []
    for number, (function, inputs) in enumerate(steps):
        dependencies = [] if function in ("Find", "FindAll") else [*free]
        free = [*free, number] if not dependencies else [number]
        program.append({"function": function, "inputs": inputs, "dependencies": dependencies})
    return program


def distinct(facts: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return the distinct statements, in order."""
    return tuple({repr(fact): fact for fact in facts}.values())


# -- rules -------------------------------------------------------------------------------------------
# What supports or refutes a claim, or leaves it open. The graph may lack statements (open world), so what it does not state is
# not false.
#
# - Supported: some choice of the unknown nodes makes every triple stated, and every denied triple excluded.
# - Refuted: every choice has a triple that is excluded, or a denied one that is stated. All choices are known only if a predicate
#   has one value, or is closed.
# - A triple is excluded if its predicate has one value and the graph states another one; or if the caller declares the predicate
#   closed, and the graph does not state the triple.
#
# Another value is a number or a time that differs, or an entity with a different id and name that no statement connects with the
# claimed one (one may be part of the other). A statement with a time excludes nothing: at another time the value may have differed.


#: The maximum number of choices of the unknown nodes in one reading of a claim.
MAX_CHOICES: Final = 20_000
_TIMES: Final = frozenset((START_TIME, END_TIME, POINT_IN_TIME))

#: Maps nodes of a claim by number to entities or values; a known node that is not an entity of the graph maps to its text.
Binding: TypeAlias = Mapping[int, Entity | Value]
Reasons: TypeAlias = tuple[Reason, ...]


@dataclass(slots=True)
class _ChoiceBudget:
    """The number of choices that may still be examined."""

    choices: int = MAX_CHOICES

    def one(self) -> bool:
        check()
        self.choices -= 1
        return self.choices >= 0


class Judge:
    """Judges one reading of a claim: `start` maps its known nodes to entities or texts.

    `closed` lists the predicates with all their statements in the graph; True means every predicate.
    """

    def __init__(self, claim: Claim, facts: Facts, closed: Collection[str] | bool, start: Binding) -> None:
        self._claim, self._facts, self._closed = claim, facts, closed
        self.start: Binding = dict(start)
        self._stated = [triple for triple in claim.triples if not triple.denied]
        self._denied = [triple for triple in claim.triples if triple.denied]
        self._budget = _ChoiceBudget()
        predicates = {triple.relation: facts.predicate(triple.relation) for triple in claim.triples if triple.relation is not None}
        self._names: dict[str, str] = {text: name for text, name in predicates.items() if name is not None}

    @property
    def cut(self) -> bool:
        """Whether there were more choices than can be examined."""
        return self._budget.choices < 0

    # -- supported ---------------------------------------------------------------------------------

    def supported(self) -> Reasons | None:
        """Return the reasons why the claim is true, or None if the graph does not state it."""
        for binding, reasons in self._choices(self.start, self._stated):
            denials = [self._excluded_all(triple, binding) for triple in self._denied]
            denied = [denial for denial in denials if denial is not None]
            if len(denied) == len(denials):
                return (*reasons, *(reason for denial in denied for reason in denial))
        return None

    def _choices(self, binding: Binding, triples: list[ClaimTriple]) -> Iterator[tuple[Binding, Reasons]]:
        """Yield the choices of unknown nodes for which all triples are stated, with their statements."""
        if not triples:
            yield binding, ()
            return
        triple = min(triples, key=lambda item: self._effort(item, binding))
        other_triples = [item for item in triples if item is not triple]
        for extended, reason in self._matches(triple, binding):
            if not self._budget.one():
                return
            for complete, reasons in self._choices(extended, other_triples):
                yield complete, (reason, *reasons)

    def _effort(self, triple: ClaimTriple, binding: Binding) -> int:
        """Return a sort key of triples: those with both nodes bound first, memberships without a bound node last."""
        free = (triple.head not in binding) + (triple.tail not in binding)
        return free + (3 if free and self._name(triple) in (None, INSTANCE_OF) else 0)

    def _matches(self, triple: ClaimTriple, binding: Binding) -> Iterator[tuple[Binding, Reason]]:
        """Yield the statements that a triple matches, each with the resulting binding."""
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
        for fact in self._statements(head, tail, name):
            ends = {triple.head: fact.subject, triple.tail: fact.object}
            if triple.head == triple.tail and fact.subject != fact.object:
                continue
            yield {**ends, **binding}, Reason(triple, "stated", (fact,))

    def _memberships(self, triple: ClaimTriple, binding: Binding) -> Iterator[tuple[Binding, Reason]]:
        head, tail = binding.get(triple.head), binding.get(triple.tail)
        if isinstance(tail, Entity):
            for fact in self._facts.members(tail):
                if fact.kind == "membership":
                    yield {**binding, triple.head: fact.subject}, Reason(triple, "stated", (fact,))
        elif isinstance(head, Entity):
            for fact in self._facts.concepts(head):
                yield {**binding, triple.tail: fact.object}, Reason(triple, "stated", (fact,))

    def _statements(self, head: Entity | Value | None, tail: Entity | Value | None, name: str) -> tuple[Evidence, ...]:
        if isinstance(head, Entity):
            return self._facts.statements(head, name, "forward")
        if isinstance(tail, Entity):
            return self._facts.statements(tail, name, "backward")
        return self._facts.having(tail, name) if isinstance(tail, str) else ()

    def stated(self, triple: ClaimTriple, binding: Binding) -> tuple[Evidence, ...]:
        """Return the statements of a triple with both nodes bound."""
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
        return tuple(fact for fact in facts if self._is_same(fact.object, triple.tail, tail))

    def _is_same(self, there: Entity | Value, node: int, bound: Entity | Value) -> bool:
        if isinstance(there, Entity) or isinstance(bound, Entity):
            same_entity = isinstance(there, Entity) and isinstance(bound, Entity) and there.id == bound.id
            # The name of an entity may also be a text value.
            return same_entity or (
                not isinstance(there, Entity) and self._is_known(node) and likeness(self._text(node), there) == "same"
            )
        return likeness(self._text(node), there) == "same" if self._is_known(node) else there == bound

    # -- refuted -----------------------------------------------------------------------------------

    def refuted(self) -> Reasons | None:
        """Return the reasons why the claim cannot be true, or None if the graph does not rule it out."""
        return self._refuted(self.start)

    def _refuted(self, binding: Binding) -> Reasons | None:
        if not self._budget.one():
            return None
        for triple in self._stated:
            if triple.head in binding and triple.tail in binding and (reason := self.excluded(triple, binding)) is not None:
                return (reason,)
        for triple in self._denied:
            if (reason := self._denied_stated(triple, binding)) is not None:
                return (reason,)
        for triple in self._stated:
            choices = self._all_choices(triple, binding)
            if choices is None:
                continue
            reasons: list[Reason] = []
            for extended, reason in choices:
                later_reasons = self._refuted(extended)
                if later_reasons is None:
                    break
                reasons += (reason, *later_reasons)
            else:
                return tuple(reasons) if reasons else (Reason(triple, "closed", ()),)
        return None

    def _all_choices(self, triple: ClaimTriple, binding: Binding) -> list[tuple[Binding, Reason]] | None:
        """Return all bindings of the one free node of a triple, or None if the graph may lack some."""
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
            # The predicate has one value, and the graph states it, so there is no other.
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
        # The claim denies that there is a match, so that the first one refutes it.
        match = next(self._matches(triple, binding), None)
        return None if match is None else Reason(triple, "denied", match[1].facts)

    def _alone(self, triple: ClaimTriple, binding: Binding) -> bool:
        """Return whether the free nodes of a denied triple occur in no other triple, so that the claim denies that
        any such node exists.
        """
        free = {node for node in (triple.head, triple.tail) if node not in binding}
        other_triples = [item for item in self._claim.triples if item is not triple]
        return not any(item.head in free or item.tail in free for item in other_triples)

    # -- excluded ----------------------------------------------------------------------------------

    def _excluded_all(self, triple: ClaimTriple, binding: Binding) -> Reasons | None:
        """Return the reasons why a denied triple is false."""
        if triple.head in binding and triple.tail in binding:
            reason = self.excluded(triple, binding)
            return None if reason is None else (reason,)
        name = self._name(triple)
        bound = binding.get(triple.head, binding.get(triple.tail))
        if name is None or not isinstance(bound, Entity) or not self._is_closed(name) or not self._alone(triple, binding):
            return None
        return (Reason(triple, "closed", ()),) if next(self._matches(triple, binding), None) is None else None

    def excluded(self, triple: ClaimTriple, binding: Binding) -> Reason | None:
        """Return the reason why a triple with both nodes bound is false, or None if it is or may be true."""
        head, tail, name = binding[triple.head], binding[triple.tail], self._name(triple)
        if name is None or not isinstance(head, Entity) or self.stated(triple, binding):
            return None
        if name != INSTANCE_OF:
            if self._facts.single(name, "forward"):
                stated_facts = self._facts.statements(head, name, "forward")
                all_differ = all(self._is_other(fact.object, triple.tail, tail) for fact in stated_facts)
                if stated_facts and all_differ and not any(map(_timed, stated_facts)):
                    return Reason(triple, "one value", stated_facts)
            if isinstance(tail, Entity) and self._facts.single(name, "backward"):
                stated_facts = self._facts.statements(tail, name, "backward")
                all_differ = all(self._are_distinct(fact.subject, head) for fact in stated_facts)
                if stated_facts and all_differ and not any(map(_timed, stated_facts)):
                    return Reason(triple, "one subject", stated_facts)
        if self._is_closed(name) and (isinstance(tail, Entity) or self._facts.has_values(name)):
            return Reason(triple, "closed", ())
        return None

    def _is_other(self, there: Entity | Value, node: int, bound: Entity | Value) -> bool:
        if isinstance(there, Entity):
            return isinstance(bound, Entity) and self._are_distinct(there, bound)
        return self._is_known(node) and likeness(self._text(node), there) == "other"

    def _are_distinct(self, first: Entity, second: Entity) -> bool:
        """Return whether two entities are certainly different, and neither is part of the other."""
        if first.id == second.id or folded(first.name) == folded(second.name):
            return False
        if self._facts.between(first, second) or self._facts.between(second, first):
            return False
        return not self._facts.membership(first, second) and not self._facts.membership(second, first)

    def _is_closed(self, name: str) -> bool:
        return self._closed if isinstance(self._closed, bool) else name in self._closed

    # -- names -------------------------------------------------------------------------------------

    def _name(self, triple: ClaimTriple) -> str | None:
        return None if triple.relation is None else self._names.get(triple.relation)

    def _is_known(self, node: int) -> bool:
        return self._claim.nodes[node].known

    def _text(self, node: int) -> str:
        return self._claim.nodes[node].text


def facts_of(reasons: Reasons) -> tuple[Evidence, ...]:
    """Return the distinct statements of reasons."""
    return distinct(fact for reason in reasons for fact in reason.facts)


def _timed(fact: Evidence) -> bool:
    return any(key in _TIMES for key, _ in fact.qualifiers)


# -- from a claim to its verdict ---------------------------------------------------------------------


#: The maximum number of readings of a claim with ambiguous names.
MAX_READINGS: Final = 256
#: The predicates with all their statements in the graph, or True for every predicate.
Closed: TypeAlias = Collection[str] | bool


def verify(graph: Asking, claim: Claim, closed: Closed, single: Mapping[str, bool], nearest: int) -> Verdict:
    """Return the verdict on a claim; the options are those of `Graph.verify`."""
    begin = time.perf_counter()
    facts = Facts(graph, dict(single))
    _check_names(facts, closed, single)
    notes: list[str] = list(unknown(claim, facts))
    status, reasons = _decided(claim, facts, closed, notes)
    if status == "not enough facts":
        decided = {id(reason.triple) for reason in reasons}
        reasons = (*(Reason(triple, "open", ()) for triple in claim.triples if id(triple) not in decided), *reasons)
        notes += reversed_notes(claim, facts)
    similar = tuple(graph.match(_pattern(claim), k=nearest).solutions) if nearest and _pattern(claim) else ()
    return Verdict(
        status, claim, reasons, facts_of(reasons), tuple(dict.fromkeys(notes)), similar, facts.queries, time.perf_counter() - begin
    )


def _decided(claim: Claim, facts: Facts, closed: Closed, notes: list[str]) -> tuple[Status, Reasons]:
    """Return the status and reasons over all readings: supported if one reading is, refuted if all are."""
    judges = []
    for start in islice(_readings(claim, facts), MAX_READINGS + 1):
        judge = Judge(claim, facts, closed, start)
        reasons = judge.supported()
        if reasons is not None:
            return "supported", tuple(sorted(reasons, key=lambda reason: claim.triples.index(reason.triple)))
        judges.append(judge)
    if len(judges) > MAX_READINGS:
        notes.append(f"the names of the claim have more than {MAX_READINGS} readings")
        return "not enough facts", ()
    denials_of_all: list[Reason] = []
    for judge in judges:
        reasons_against = judge.refuted()
        if reasons_against is None:
            if judge.cut:
                notes.append("there are more choices of the unknown nodes than are looked at")
            return "not enough facts", _partly(claim, judges)
        denials_of_all += reasons_against
    return "refuted", tuple(dict.fromkeys(denials_of_all))


def _readings(claim: Claim, facts: Facts) -> Iterator[Binding]:
    """Yield every reading of the known nodes: each as one of the entities with its name, or as a text if there is
    none.
    """
    known_nodes = [number for number, node in enumerate(claim.nodes) if node.known]
    choices: list[tuple[Entity | Value, ...]] = []
    for number in known_nodes:
        text = claim.nodes[number].text
        choices.append(facts.named(text).entities or (text,))
    for ends in product(*choices):
        yield dict(zip(known_nodes, ends, strict=True))


def _partly(claim: Claim, judges: list[Judge]) -> Reasons:
    """Return the triples of known nodes that are stated in the first reading of an open claim."""
    judge = judges[0]
    reasons = []
    for triple in claim.triples:
        bound = all(node in judge.start for node in (triple.head, triple.tail))
        if not triple.denied and bound and (stated := judge.stated(triple, judge.start)):
            reasons.append(Reason(triple, "stated", stated))
    return tuple(reasons)


# -- names that the graph does not have --------------------------------------------------------------


def unknown(claim: Claim, facts: Facts) -> Iterator[str]:
    """Yield notes on the names of a claim that the graph does not have, with the nearest names, and on how names were
    interpreted.
    """
    for triple in claim.triples:
        if triple.relation is None:
            continue
        name = facts.predicate(triple.relation)
        if name is None:
            yield f"the graph has no predicate {triple.relation!r}" + _nearest_text(facts.nearest_predicates(triple.relation))
        elif name != triple.relation:
            yield f"{triple.relation!r} is taken for the predicate {name!r}"
    values = {triple.tail for triple in claim.triples if _takes_values(triple, facts)}
    for number, node in enumerate(claim.nodes):
        if not node.known:
            if node.hint and not node.hint.strip().isdigit():
                yield f'the hint of "{node.text}" is not checked; a triple with {INSTANCE_OF!r} claims it'
            continue
        named = facts.named(node.text)
        if not named.entities and number not in values:
            yield f"the graph has nothing called {node.text!r}" + _nearest_text(named.candidates)
        elif len(named.entities) > 1:
            yield f"{len(named.entities)} entities are called {node.text!r}: supported if for one of them, refuted if for all"
        elif named.entities and named.entities[0].name != node.text:
            yield f"{node.text!r} is taken for {named.entities[0].name!r}"


def reversed_notes(claim: Claim, facts: Facts) -> Iterator[str]:
    """Yield notes on triples that the graph states in the other direction."""
    for triple in claim.triples:
        name = None if triple.relation is None else facts.predicate(triple.relation)
        if name is None or triple.head == triple.tail or not (claim.nodes[triple.head].known and claim.nodes[triple.tail].known):
            continue
        heads = {entity.id for entity in facts.named(claim.nodes[triple.head].text).entities}
        for tail in facts.named(claim.nodes[triple.tail].text).entities:
            for fact in facts.statements(tail, name, "forward"):
                if isinstance(fact.object, Entity) and fact.object.id in heads:
                    yield f'the graph states the other way round: "{fact.subject.name} | {name} | {fact.object.name}"'


def _takes_values(triple: ClaimTriple, facts: Facts) -> bool:
    name = None if triple.relation is None else facts.predicate(triple.relation)
    return name is not None and facts.has_values(name)


def _nearest_text(candidates: tuple[str, ...]) -> str:
    return f" (nearest: {', '.join(map(repr, candidates))})" if candidates else ""


def _check_names(facts: Facts, closed: Closed, single: Mapping[str, bool]) -> None:
    names = [*single, *(() if isinstance(closed, bool) else closed)]
    for name in names:
        if name != INSTANCE_OF and name not in facts.predicates:
            raise OptionError(f"the graph has no predicate {name!r}", candidates=facts.nearest_predicates(name))


def _pattern(claim: Claim) -> list[tuple[str, str, str]]:
    """Return the triples that a claim does not deny, as a pattern."""
    nodes = claim.nodes
    return [
        (nodes[triple.head].text, triple.relation or "UNKNOWN relation", nodes[triple.tail].text)
        for triple in claim.triples
        if not triple.denied
    ]
