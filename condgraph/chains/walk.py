"""A chain as it grows, and the verification of texts as chains (DoG, section 2.2), without a tokenizer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

import numpy as np

from condgraph.chains.place import ChainGraph, Numbers
from condgraph.chains.text import TripleText, named, triple_text, triples_in
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, UnknownNameError, nearest, shortened
from condgraph.engine.facts import Entity
from condgraph.engine.records import Evidence
from condgraph.engine.values import Value

# -- chains ------------------------------------------------------------------------------------------
# A `Walk` is immutable: the next triple gives a new one, so that beams share their common part.


#: Default for the most triples of a chain.
MAX_STEPS = 4


@dataclass(frozen=True)
class Triple:
    """A triple of a chain: its parts as written, and its statements.

    There are several statements if they differ only in what is not written.
    """

    head: str
    relation: str
    tail: str
    statements: tuple[int, ...]
    place: ChainGraph = field(repr=False, compare=False)

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """The statements with their sources."""
        return tuple(map(self.place.evidence, self.statements))

    @property
    def ends(self) -> tuple[Entity, Entity | Value]:
        """Subject and object, as entities or a value."""
        return self.evidence[0].subject, self.evidence[0].object

    def __str__(self) -> str:
        return triple_text(self.head, self.relation, self.tail)


def triple_of(place: ChainGraph, statements: Sequence[int]) -> Triple:
    """Return the triple of statements that share one text."""
    first = statements[0]
    relation = place.relation(int(place.relations(np.array([first]))[0]))
    return Triple(place.head(place.ends(first)[0]), named(relation), place.tail(first), tuple(statements), place)


@dataclass(frozen=True, eq=False)
class Walk:
    """The triples so far, and the entities that the next triple has to touch: `visited`, beginning with those of the question."""

    place: ChainGraph
    visited: tuple[int, ...]
    triples: tuple[Triple, ...] = ()
    max_steps: int = MAX_STEPS
    repeat: bool = True

    @classmethod
    def of(cls, place: ChainGraph, query: Iterable[str | Entity], max_steps: int, repeat: bool) -> Walk:
        """Begin a chain at entities, given by name, id or record;

        raises `UnknownNameError`. Without entities, nothing may follow.
        """
        if max_steps < 1:
            raise OptionError(f"max_steps is the most triples of a chain, at least 1, not {max_steps}")
        if isinstance(query, (str, Entity)):
            query = [query]
        start: dict[int, None] = {}
        for item in query:
            start.update(dict.fromkeys(place.find(item.id, by_id=True) if isinstance(item, Entity) else place.find(item)))
        return cls(place, tuple(start), max_steps=max_steps, repeat=repeat)

    @property
    def full(self) -> bool:
        """Whether the chain has the most triples it may have."""
        return len(self.triples) >= self.max_steps

    @cached_property
    def used(self) -> frozenset[int]:
        """The statements that may not be used again."""
        return frozenset() if self.repeat else frozenset(statement for triple in self.triples for statement in triple.statements)

    def commit(self, triple: Triple) -> Walk:
        """Return the chain with another triple, whose ends are then visited (Eq. 1)."""
        ends = dict.fromkeys(self.visited)
        for statement in triple.statements:
            ends.update(dict.fromkeys(end for end in self.place.ends(statement) if end >= 0))
        fresh = [end for end in ends if end not in self.visited]
        self.place.reach(fresh)
        return replace(self, visited=(*self.visited, *fresh), triples=(*self.triples, triple))

    @cached_property
    def statements(self) -> Numbers:
        """Every statement that may be the next triple, sorted; none for a full chain."""
        if self.full or not self.visited:
            return np.empty(0, np.int64)
        parts = [side for item in self.visited for side in (self.place.outgoing(item), self.place.incoming(item))]
        result = np.unique(np.concatenate(parts))
        return result[~np.isin(result, list(self.used))] if self.used else result

    def following(self) -> Iterator[Triple]:
        """Yield every triple that may come next, each text once; a text of two different triples is not allowed."""
        groups: dict[tuple[int, int, str], list[int]] = {}
        place, result = self.place, self.statements
        for item, head, kind in zip(
            result.tolist(), place.subjects(result).tolist(), place.relations(result).tolist(), strict=True
        ):  # fmt: skip
            groups.setdefault((head, kind, place.tail(item)), []).append(item)
        texts: dict[str, Triple | None] = {}
        for statements in groups.values():
            if len({place.same(statement) for statement in statements}) == 1:
                triple = triple_of(place, statements)
                text = str(triple)
                texts[text] = None if text in texts else triple
        yield from (triple for triple in texts.values() if triple is not None)

    @property
    def text(self) -> str:
        """The triples as text, one on each line."""
        return "\n".join(map(str, self.triples))


# -- verification of texts -------------------------------------------------------------------------
# Verifies any text: the triples in it, and whether they are a well-formed chain (DoG, section 2.2). It
# reads the text and the statements around visited entities, without tokens or tries.


#: Most triples of a text that are verified.
MAX_TRIPLES: Final = 1000
Why = Literal["", "malformed", "unknown", "absent", "unconnected", "ambiguous", "repeated", "too long", "no triple"]


@dataclass(frozen=True, slots=True)
class CheckedTriple:
    """One triple of a text: its position, and its triple in the graph, or why it is no step of the chain."""

    text: str
    span: tuple[int, int]
    triple: Triple | None = None
    why: Why = ""
    reason: str = ""

    def __bool__(self) -> bool:
        return self.triple is not None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verifying a text as a chain.

    It is true if the text has a triple, and each is a step of a well-formed chain.
    """

    steps: tuple[CheckedTriple, ...]
    query: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.steps) and all(self.steps)

    @property
    def wrong(self) -> CheckedTriple | None:
        """The first triple that is not a step."""
        return next((step for step in self.steps if not step), None)

    @property
    def triples(self) -> tuple[Triple, ...]:
        """The triples that are steps."""
        return tuple(step.triple for step in self.steps if step.triple is not None)

    @property
    def why(self) -> Why:
        """Why the text is no well-formed chain; empty if it is one."""
        return "no triple" if not self.steps else self.wrong.why if self.wrong is not None else ""

    def __str__(self) -> str:
        if not self.steps:
            return "the text has no triple"
        wrong = self.wrong
        if wrong is None:
            return f"a well-formed chain of {len(self.steps)} triple{'s' if len(self.steps) > 1 else ''}"
        return f"triple {self.steps.index(wrong) + 1}, {shortened(wrong.text, 200)}: {wrong.reason}"


def verify(
    place: ChainGraph, text: str, query: Iterable[str | Entity], *, max_steps: int | None = None, repeat: bool = True
) -> Verdict:
    """Verify a text as a chain.

    Each triple is a step if it is in the graph and touches an entity of `query`, or of an earlier step; those after a
    wrong one are verified against the correct steps. A triple may omit qualifiers; those that it has must be the
    statement's. `max_steps` is the most triples; without `repeat`, none may occur twice. Raises `UnknownNameError` for
    an entity of the query.
    """
    query = [query] if isinstance(query, (str, Entity)) else list(query)
    walk = Walk.of(place, query, max_steps or MAX_TRIPLES, repeat)
    steps: list[CheckedTriple] = []
    warnings: list[str] = []
    for written in triples_in(text):
        check()
        if len(steps) >= MAX_TRIPLES:
            warnings.append(f"only the first {MAX_TRIPLES} triples are judged")
            break
        result = _step(walk, written, text[slice(*written.span)])
        steps.append(result)
        if result.triple is not None:
            walk = walk.commit(result.triple)
    names = tuple(item.name if isinstance(item, Entity) else item for item in query)
    return Verdict(tuple(steps), names, (*warnings, *dict.fromkeys(place.warnings)))


def _step(walk: Walk, written: TripleText, text: str) -> CheckedTriple:
    if written.problem:
        return CheckedTriple(text, written.span, None, "malformed", f"it {written.problem}")
    if walk.full:
        return CheckedTriple(text, written.span, None, "too long", f"the chain may have {walk.max_steps} triples")
    place = walk.place
    relation = unquoted(written.relation)
    around = [side for item in walk.visited for side in (place.outgoing(item), place.incoming(item))]
    near = np.unique(np.concatenate(around)) if around else np.empty(0, np.int64)
    matches = [
        item
        for item, kind in zip(near.tolist(), place.relations(near).tolist(), strict=True)
        if place.relation(kind) == relation and is_it(place, item, written)
    ]
    unused = [item for item in matches if item not in walk.used]
    if matches and not unused:
        return CheckedTriple(text, written.span, None, "repeated", "it was used before")
    if len({place.same(item) for item in unused}) > 1:
        return CheckedTriple(text, written.span, None, "ambiguous", "several triples of the graph have this text")
    if unused:
        return CheckedTriple(text, written.span, triple_of(place, unused))
    return CheckedTriple(text, written.span, None, *_reason(walk, written, relation))


def is_it(place: ChainGraph, statement: int, written: TripleText) -> bool:
    """Tell whether a statement matches a written triple, apart from its relation."""
    head, end = place.ends(statement)
    if not _denotes(written.head, place.entity(head), place.head(head)):
        return False
    tail, *bracketed = _split(place.tail(statement))
    if not (_denotes(written.tail, place.entity(end), tail) if end >= 0 else written.tail == tail):
        return False
    return all(f"{key}: {value}" in bracketed for key, value in written.qualifiers)


def _denotes(text: str, entity: Entity, written: str) -> bool:
    """Tell whether a text denotes an entity: as it is written, or by its name and id."""
    return text == written or text == f"{named(entity.name)} #{named(entity.id)}"


def _split(tail: str) -> list[str]:
    """Split a tail and its qualifiers; brackets occur nowhere else."""
    return [part.rstrip(" ").removesuffix("]") for part in tail.split("[")]


def unquoted(text: str) -> str:
    """Return the name of a written part, without quotes."""
    if text.startswith('"'):
        try:
            result = json.loads(text)
        except ValueError:
            return text
        return result if isinstance(result, str) else text
    return text


def _reason(walk: Walk, written: TripleText, relation: str) -> tuple[Why, str]:
    """Return why a triple is no step: which part is unknown to the graph, or that it touches no visited entity."""
    place = walk.place
    homonym: tuple[Why, str] | None = None
    for part in (written.head, written.tail):
        name = part.rsplit(" #", 1)[-1] if " #" in part else part
        try:
            entities = place.find(unquoted(name))
        except UnknownNameError as error:
            if part is written.head:
                near = f"; nearest: {', '.join(map(repr, error.candidates))}" if error.candidates else ""
                return "unknown", f"the graph has no entity {shortened(unquoted(name), 80)!r}{near}"
            continue
        known_relations: dict[str, None] = {}
        for entity in entities:
            statements = np.unique(np.concatenate([place.outgoing(entity), place.incoming(entity)]))
            kinds = [place.relation(kind) for kind in place.relations(statements).tolist()]
            known_relations |= dict.fromkeys(kinds)
            for item, kind in zip(statements.tolist(), kinds, strict=True):
                if kind == relation and is_it(place, item, written):
                    return "unconnected", "it is in the graph, and touches no entity of the question or of an earlier triple"
                if kind == relation and homonym is None:
                    homonym = _homonym(place, item, written)
        if part is written.head and relation not in known_relations:
            near_names = nearest(relation, known_relations)
            hint = f"; nearest: {', '.join(map(repr, near_names))}" if near_names else ""
            return "absent", f"{place.entity(entities[0]).name!r} has no relation {shortened(relation, 80)!r}{hint}"
    return homonym or ("absent", "the graph does not say it")


def _homonym(place: ChainGraph, statement: int, written: TripleText) -> tuple[Why, str] | None:
    """Return why a triple is no statement if it differs only by an ambiguous name, which the graph writes with an id.

    None if more is wrong.
    """
    head, end = place.ends(statement)
    tail = _split(place.tail(statement))[0]
    ends = [(written.head, head, place.head(head))]
    if written.tail != tail:
        ends.append((written.tail, end, tail))
    result = None
    for text, entity, full in ends:
        if entity >= 0 and _denotes(text, place.entity(entity), full):
            continue
        if entity < 0 or unquoted(text) != place.entity(entity).name:
            return None
        open_name = f"{shortened(unquoted(text), 80)!r} leaves open which entity it is"
        result = result or f"{open_name}; one of that name is written {shortened(full, 200)}"
    return None if result is None else ("ambiguous", result)
