"""From a claim to its verdict: what its names mean in the graph, and the judgement of every reading."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from itertools import islice, product
from typing import TYPE_CHECKING, Final, TypeAlias

from condgraph.claims.claim import Claim, ClaimTriple
from condgraph.claims.facts import INSTANCE_OF, Facts
from condgraph.claims.judge import Binding, Judge, Reasons, facts_of
from condgraph.claims.verdict import Reason, Status, Verdict
from condgraph.engine.errors import OptionError
from condgraph.engine.facts import Entity
from condgraph.engine.values import Value

if TYPE_CHECKING:
    from condgraph.claims.asking import Asking

#: The most readings of a claim whose names several entities have.
MOST_READINGS: Final = 256
#: Which predicates the graph has whole: these, or all of them.
Closed: TypeAlias = Collection[str] | bool


def verify(graph: Asking, claim: Claim, closed: Closed, single: Mapping[str, bool], nearest: int) -> Verdict:
    """The verdict on a claim by the rules of `judge`; options as for `Graph.verify`."""
    begin = time.perf_counter()
    facts = Facts(graph, dict(single))
    _check_names(facts, closed, single)
    notes: list[str] = list(unknown(claim, facts))
    status, reasons = _decided(claim, facts, closed, notes)
    if status == "not enough facts":
        reasons = tuple(Reason(triple, "open", ()) for triple in claim.triples if _is_open(triple, reasons)) + reasons
        notes += reversed_notes(claim, facts)
    similar = tuple(graph.match(_pattern(claim), k=nearest).solutions) if nearest and _pattern(claim) else ()
    return Verdict(
        status, claim, reasons, facts_of(reasons), tuple(dict.fromkeys(notes)), similar, facts.queries, time.perf_counter() - begin
    )


def _decided(claim: Claim, facts: Facts, closed: Closed, notes: list[str]) -> tuple[Status, Reasons]:
    """What every reading says: supported if one is, refuted if all are."""
    judges = []
    for start in islice(_readings(claim, facts), MOST_READINGS + 1):
        judge = Judge(claim, facts, closed, start)
        reasons = judge.supported()
        if reasons is not None:
            return "supported", _in_order(claim, reasons)
        judges.append(judge)
    if len(judges) > MOST_READINGS:
        notes.append(f"the names of the claim have more than {MOST_READINGS} readings")
        return "not enough facts", ()
    against: list[Reason] = []
    for judge in judges:
        found = judge.refuted()
        if found is None:
            if judge.cut:
                notes.append("there are more choices of the unknown nodes than are looked at")
            return "not enough facts", _partly(claim, judges)
        against += found
    return "refuted", tuple(dict.fromkeys(against))


def _readings(claim: Claim, facts: Facts) -> Iterator[Binding]:
    """Every way in which the names of known nodes can be meant: as one of the entities of the name,
    or as a text where there is none.
    """
    known = [number for number, node in enumerate(claim.nodes) if node.known]
    choices: list[tuple[Entity | Value, ...]] = []
    for number in known:
        text = claim.nodes[number].text
        choices.append(facts.named(text).entities or (text,))
    for chosen in product(*choices):
        yield dict(zip(known, chosen, strict=True))


def _partly(claim: Claim, judges: list[Judge]) -> Reasons:
    """Triples of known nodes that are stated in the first reading, though the claim is open."""
    judge = judges[0]
    found = []
    for triple in claim.triples:
        bound = all(node in judge.start for node in (triple.head, triple.tail))
        if not triple.denied and bound and (stated := judge.stated(triple, judge.start)):
            found.append(Reason(triple, "stated", stated))
    return tuple(found)


def _is_open(triple: ClaimTriple, reasons: Reasons) -> bool:
    return all(reason.triple is not triple for reason in reasons)


def _in_order(claim: Claim, reasons: Reasons) -> Reasons:
    return tuple(sorted(reasons, key=lambda reason: claim.triples.index(reason.triple)))


# -- what was not found ----------------------------------------------------------------------------


def unknown(claim: Claim, facts: Facts) -> Iterator[str]:
    """What of a claim the graph does not know, with the nearest names, and what was taken for what."""
    for triple in claim.triples:
        if triple.relation is None:
            continue
        name = facts.predicate(triple.relation)
        if name is None:
            yield f"the graph has no predicate {triple.relation!r}" + _near(facts.nearest_predicates(triple.relation))
        elif name != triple.relation:
            yield f"{triple.relation!r} is taken for the predicate {name!r}"
    values = {triple.tail for triple in claim.triples if _takes_values(triple, facts)}
    for number, node in enumerate(claim.nodes):
        if not node.known:
            if node.hint and not node.hint.strip().isdigit():
                yield f'the hint of "{node.text}" is not checked; a triple with {INSTANCE_OF!r} claims it'
            continue
        found = facts.named(node.text)
        if not found.entities and number not in values:
            yield f"the graph has nothing called {node.text!r}" + _near(found.candidates)
        elif len(found.entities) > 1:
            yield f"{len(found.entities)} entities are called {node.text!r}: supported if for one of them, refuted if for all"
        elif found.entities and found.entities[0].name != node.text:
            yield f"{node.text!r} is taken for {found.entities[0].name!r}"


def reversed_notes(claim: Claim, facts: Facts) -> Iterator[str]:
    """Triples that the graph states the other way round."""
    for triple in claim.triples:
        name = None if triple.relation is None else facts.predicate(triple.relation)
        if name is None or triple.head == triple.tail or not (claim.nodes[triple.head].known and claim.nodes[triple.tail].known):
            continue
        heads = {one.id for one in facts.named(claim.nodes[triple.head].text).entities}
        for tail in facts.named(claim.nodes[triple.tail].text).entities:
            for fact in facts.statements(tail, name, "forward"):
                if isinstance(fact.object, Entity) and fact.object.id in heads:
                    yield f'the graph states the other way round: "{fact.subject.name} | {name} | {fact.object.name}"'


def _takes_values(triple: ClaimTriple, facts: Facts) -> bool:
    name = None if triple.relation is None else facts.predicate(triple.relation)
    return name is not None and facts.has_values(name)


def _near(candidates: tuple[str, ...]) -> str:
    return f" (nearest: {', '.join(map(repr, candidates))})" if candidates else ""


def _check_names(facts: Facts, closed: Closed, single: Mapping[str, bool]) -> None:
    given = [*single, *(() if isinstance(closed, bool) else closed)]
    for name in given:
        if name != INSTANCE_OF and name not in facts.predicates:
            raise OptionError(f"the graph has no predicate {name!r}", candidates=facts.nearest_predicates(name))


def _pattern(claim: Claim) -> list[tuple[str, str, str]]:
    """What a claim does not deny, as a pattern."""
    nodes = claim.nodes
    return [
        (nodes[one.head].text, one.relation or "UNKNOWN relation", nodes[one.tail].text) for one in claim.triples if not one.denied
    ]
