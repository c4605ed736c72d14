"""Operators that rows bind, rewritten as plain sets and statements, to find the evidence of a plan over rows.

The client joins the rows of an answer. It fetches statements that may match; fetching too many does no harm. So each part of
a pattern is a scan of its own, narrowed by the other parts through the entities that they share (semi-joins, which make up
a full reducer of acyclic patterns: Bernstein and Chiu, 1981). Shared values and cycles narrow nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, Literal, TypeAlias

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, passed, passing, postorder
from condgraph.engine.facts import EntityKind
from condgraph.engine.passes import rewrite

#: The most alternatives of a joined pattern. Beyond this, the rows it is joined with do not narrow it.
_MAX_BRANCHES: Final = 32
_CONCEPTS: Final = alg.AllEntities((EntityKind.CONCEPT,))
_ALL: Final = alg.AllEntities((EntityKind.ENTITY, EntityKind.CONCEPT, EntityKind.ROW))

Role: TypeAlias = Literal["subject", "object", "qualifier", "member", "concept"]


@dataclass(frozen=True, slots=True)
class _Match:
    """One alternative of rows: its parts, the sets its variables belong to, and the variables its rows bind."""

    statements: tuple[alg.StatementPattern, ...] = ()
    memberships: tuple[alg.MembershipPattern, ...] = ()
    sets: tuple[tuple[str, alg.Entities], ...] = ()
    names: frozenset[str] = frozenset()

    def with_(self, other: _Match) -> _Match:
        """Return the match of both."""
        return _Match(
            self.statements + other.statements,
            self.memberships + other.memberships,
            self.sets + other.sets,
            self.names | other.names,
        )

    def renamed(self, names: tuple[tuple[str, str], ...], number: int) -> _Match:
        """Rename the variables; a variable that gets two new names narrows the first."""
        new_names: dict[str, str] = {}
        for new, old in names:
            new_names.setdefault(old, new)

        def rename(place: Any) -> Any:
            if not isinstance(place, alg.Variable):
                return place
            return alg.Variable(new_names.get(place.name, f" {number} {place.name}"))

        statements = tuple(
            replace(
                part, subject=rename(part.subject), predicate=rename(part.predicate), object=rename(part.object),
                statement=rename(part.statement),
                qualifiers=tuple(replace(item, key=rename(item.key), value=rename(item.value)) for item in part.qualifiers),
            )
            for part in self.statements
        )  # fmt: skip
        memberships = tuple(replace(part, member=rename(part.member), concept=rename(part.concept)) for part in self.memberships)
        sets = tuple((rename(alg.Variable(name)).name, entities) for name, entities in self.sets)
        return _Match(statements, memberships, sets, frozenset(new for new, old in names if old in self.names))


class _Reduced:
    """The parts of a match, each narrowed by the others."""

    def __init__(self, match: _Match) -> None:
        self._match = match
        self._bound: dict[str, list[tuple[int, Role]]] = {}
        #: Variables that are entities, whatever else they are bound to.
        self._certain = {name for name, _ in match.sets}
        for at, part in enumerate(match.statements):
            relation = part.undirected or part.family == "relation"
            self._bind(part.subject, at, "subject", certain=True)
            self._bind(part.object, at, "object", certain=relation)
            for item in part.qualifiers:
                self._bind(item.value, at, "qualifier", certain=False)
        for at, membership in enumerate(match.memberships, len(match.statements)):
            self._bind(membership.member, at, "member", certain=True)
            self._bind(membership.concept, at, "concept", certain=True)
        self._messages: dict[tuple[int, Role, str], alg.Entities | None] = {}

    def _bind(self, place: object, at: int, role: Role, *, certain: bool) -> None:
        if isinstance(place, alg.Variable):
            self._bound.setdefault(place.name, []).append((at, role))
            if certain:
                self._certain.add(place.name)

    def entities(self, name: str) -> alg.Entities:
        """Return the entities that a variable may be bound to."""
        if name not in self._match.names:
            return alg.Union(())
        return self._set(name, None) or _ALL

    def facts(self, name: str) -> list[alg.Facts]:
        """Return the statements that a variable may be bound to."""
        if name not in self._match.names:
            return []
        parts = [at for at, part in enumerate(self._match.statements) if part.statement == alg.Variable(name)]
        return [facts for _, facts in self._directed(parts[0], None)] if parts else [alg.Scan(None, None)]

    def _set(self, name: str, excluded: int | None) -> alg.Entities | None:
        """Return the entities that every part but one allows a variable to be, or None if no part narrows it."""
        sets = [plain(entities) for variable, entities in self._match.sets if variable == name]
        for at, role in self._bound.get(name, ()):
            if at != excluded and (message := self._message(at, role, name)) is not None:
                sets.append(message)
        return None if not sets else sets[0] if len(sets) == 1 else alg.Intersect(tuple(sets))

    def _message(self, at: int, role: Role, name: str) -> alg.Entities | None:
        """Return the entities that one part allows for a variable, narrowed by the parts beyond it."""
        key = at, role, name
        if key not in self._messages:
            # A part that is reached again, through a cycle, narrows nothing.
            self._messages[key] = None
            self._messages[key] = self._ends(at, role, name)
        return self._messages[key]

    def _ends(self, at: int, role: Role, name: str) -> alg.Entities | None:
        if role == "member" or role == "concept":
            membership = self._match.memberships[at - len(self._match.statements)]
            concepts = self._place(membership.concept, at, name) or _CONCEPTS
            return alg.Members(concepts) if role == "member" else None
        part = self._match.statements[at]
        if role == "qualifier":
            keys = [item.key for item in part.qualifiers if item.value == alg.Variable(name) and isinstance(item.key, str)]
            if not keys:
                return None
            sets: list[alg.Entities] = [alg.Referents(alg.Qualifiers(facts, keys[0])) for _, facts in self._directed(at, name)]
        else:
            ends: tuple[alg.End, ...] = ("subject", "object") if role == "subject" else ("object", "subject")
            sets = [alg.Reached(_turned(facts, ends[flipped])) for flipped, facts in self._directed(at, name)]
        return sets[0] if len(sets) == 1 else alg.Union(tuple(sets))

    def _place(self, place: object, at: int, excluded: str | None) -> alg.Entities | None:
        """Return what a place of a part is narrowed to, ignoring one variable."""
        if isinstance(place, alg.Variable):
            return self._set(place.name, at) if place.name != excluded and place.name in self._certain else None
        return plain(place) if isinstance(place, alg.Entities) else None

    def _directed(self, at: int, excluded: str | None) -> Iterator[tuple[int, alg.Facts]]:
        """Yield the statements of a part, narrowed by all but one variable. A part without direction is also yielded flipped."""
        part = self._match.statements[at]
        subject, object_ = self._place(part.subject, at, excluded), self._place(part.object, at, excluded)
        for flipped in range(1 + part.undirected):
            start, end = (object_, subject) if flipped else (subject, object_)
            for facts in _scans(part, start):
                if end is not None:
                    facts = alg.Where(facts, alg.Among(end))
                if part.condition is not None:
                    facts = alg.Where(facts, part.condition)
                for item in part.qualifiers:
                    value = self._place(item.value, at, excluded)
                    for test in (item.condition, None if value is None else alg.Among(value)):
                        if test is not None and isinstance(item.key, str):
                            facts = alg.WhereQualifier(facts, item.key, test)
                yield flipped, facts


def _turned(facts: alg.Facts, end: alg.End) -> alg.Facts:
    """Return the statements so that they reach an end."""
    if isinstance(facts, alg.Scan) and facts.anchor == "subject":
        family: alg.Family = "relation" if end == "object" and facts.family == "any" else facts.family
        return replace(facts, reach=end, family=family)
    return alg.OtherEnd(facts, end)


def _scans(part: alg.StatementPattern, subject: alg.Entities | None) -> Iterator[alg.Facts]:
    """Yield the statements of a part on its own."""
    predicates = part.predicate if isinstance(part.predicate, tuple) else None
    family: alg.Family = "relation" if part.undirected else part.family
    if part.among is None:
        yield alg.Scan(subject, predicates, family=family)
        return
    for facts in plain_facts(part.among):
        yield _narrowed(facts, subject, predicates)


def _narrowed(facts: alg.Facts, subject: alg.Entities | None, predicates: tuple[str, ...] | None) -> alg.Facts:
    """Narrow statements to some subjects and predicates, as far as a scan can."""
    operand = passed(facts)
    if operand is not None:
        return passing(facts, _narrowed(operand, subject, predicates))
    if not isinstance(facts, alg.Scan):
        return facts
    if predicates is not None:
        scanned = facts.predicates
        predicates = predicates if scanned is None else tuple(name for name in scanned if name in predicates)
        facts = replace(facts, predicates=predicates)
    if subject is None:
        return facts
    if facts.anchor == "subject":
        return replace(facts, of=subject if facts.of is None else alg.Intersect((subject, facts.of)))
    scan = alg.Scan(subject, facts.predicates, family="relation", source=facts.source)
    return scan if facts.of is None else alg.Where(scan, alg.Among(facts.of))


class _Names:
    """Numbers variables that a projection leaves out."""

    def __init__(self) -> None:
        self.last = 0

    def matches(self, node: Node, wanted: str) -> list[_Match]:
        """Return the alternatives of rows; `wanted` is the variable asked for."""
        if isinstance(node, alg.Pattern):
            return [_Match(node.statements, node.memberships, names=frozenset(node.variables))]
        if isinstance(node, alg.EntityRows):
            return [_Match(sets=((node.variable, node.entities),), names=frozenset((node.variable,)))]
        if isinstance(node, alg.UnionAll):
            return [match for part in node.parts for match in self.matches(part, wanted)]
        if isinstance(node, alg.Project):
            self.last += 1
            number, olds = self.last, [old for new, old in node.names if new == wanted]
            return [match.renamed(node.names, number) for match in self.matches(node.of, olds[0] if olds else wanted)]
        assert isinstance(node, alg.Join)
        left, right = self.matches(node.left, wanted), self.matches(node.right, wanted)
        if len(left) * len(right) > _MAX_BRANCHES:
            return right if any(wanted in match.names for match in right) else left
        return [first.with_(second) for first, second in product(left, right)]


def plain_facts(node: alg.Facts) -> list[alg.Facts]:
    """Return statements without rows, which together include all those of an operator."""
    if not isinstance(node, alg.FactsOf):
        return [_without_rows(node)]
    matches = _Names().matches(node.of, node.variable)
    return [facts for match in matches for facts in _Reduced(match).facts(node.variable)]


def plain(node: alg.Entities) -> alg.Entities:
    """Return a set without rows that includes all entities of an operator."""
    if not isinstance(node, alg.EntitiesOf):
        result: alg.Entities = _without_rows(node)
        return result
    sets = [_Reduced(match).entities(node.variable) for match in _Names().matches(node.of, node.variable)]
    return sets[0] if len(sets) == 1 else alg.Union(tuple(sets))


def _without_rows(node: Any) -> Any:
    if not any(isinstance(part, alg.EntitiesOf) for part in postorder(node)):
        return node
    return rewrite(node, lambda part: plain(part) if isinstance(part, alg.EntitiesOf) else part)


def tested(node: alg.Pattern) -> list[alg.Condition]:
    """Return the conditions of a pattern."""
    conditions = [part.condition for part in node.statements]
    return [
        test
        for test in [*conditions, *(item.condition for part in node.statements for item in part.qualifiers)]
        if test is not None
    ]
