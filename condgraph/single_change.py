"""A single change of a graph on a server, made of the part of the graph that it is about: entities that it names, and
statements of its subjects and predicates. Nothing else of the graph is read.

What the part holds before and after the change differs as the whole graph does. For that, what is in use elsewhere in
the graph has a statement of its own in the part, which the graph does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from condgraph.edits import EDITS, Edit, Edits, Part, Removed, Use, find, ids_of, is_quick, key_of, named_in, normal
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import Kind, Value
from condgraph.overview.adjusted import Several, Stated
from condgraph.storage import laid_out, merge

#: Entities that only a declaration names: with more of them the first change is made of the whole graph.
MOST_UNUSED: Final = 10_000


class PartStore(Protocol):
    """One graph on a server, of which parts are read."""

    def sources(self) -> Sequence[Source]:
        """The sources in the order they were loaded, read now."""
        ...

    def called(self, text: str) -> list[Entity]:
        """The entities that have a text as their id or name."""
        ...

    def some_names(self, most: int) -> list[str]:
        """The names of all entities; none where there are more than `most`."""
        ...

    def entities_about(self, ids: Sequence[str], sources: Sequence[str]) -> list[Item]:
        """Entities by their ids, as their sources declare them, with the concepts that they are stated to be in; `sources`
        are the names of all sources, in order.
        """
        ...

    def statements_about(self, subject: str, predicate: str) -> list[Sourced]:
        """The statements of a subject and a predicate."""
        ...

    def some_about(self, subject: str) -> list[Statement]:
        """Statements of a subject: up to 100."""
        ...

    def uses(self, ident: str, without: Removed) -> Iterable[Use]:
        """A use of an entity in statements, also in their qualifiers, but for those `without`; and one as a concept, or as
        what lies under another: as far as there are any.
        """
        ...

    def value_used(self, value: Value, without: Removed) -> bool:
        """Whether other statements have a value that the store keeps once for all of them."""
        ...

    def unused(self, most: int) -> list[str]:
        """The ids of entities that are called as their ids, and that nothing but a declaration mentions as what they are."""
        ...

    def has_several(self, name: str, qualifier: bool, subjects: Sequence[str], without: Removed) -> bool:
        """Whether some entity, but for some `subjects`, has several values of an attribute; or some statement, but for
        those `without`, of a qualifier.
        """
        ...


class ServerKnown:
    """`Known` of a graph on a server; what was read is read once."""

    def __init__(self, store: PartStore, stated: Stated) -> None:
        self._store, self._stated, self._schema = store, stated, StoredSchema(stated.schema)
        self._sources: Sequence[Source] | None = None
        self._called: dict[str, list[Entity]] = {}
        self._about: dict[tuple[str, str], list[Sourced]] = {}

    def sources(self) -> Sequence[Source]:
        """The sources, in order."""
        if self._sources is None:
            self._sources = self._store.sources()
        return self._sources

    def _entities(self, text: str) -> list[Entity]:
        result = self._called.get(text)
        if result is None:
            result = self._called[text] = self._store.called(text)
        return result

    def entity(self, ident: str) -> Entity | None:
        """The entity of an id; None where there is none."""
        return next((entity for entity in self._entities(ident) if entity.id == ident), None)

    def name_of(self, ident: str) -> str | None:
        """What an entity is called."""
        entity = self.entity(ident)
        return None if entity is None else entity.name

    def named(self, name: str) -> list[str]:
        """The ids of the entities of a name."""
        return sorted(entity.id for entity in self._entities(name) if entity.name == name)

    def names(self, most: int) -> Iterable[str]:
        """The names of all entities of a small graph."""
        return self._store.some_names(most) if self._stated.counts.get("entities", 0) <= most else ()

    def predicates(self) -> Sequence[str] | None:
        """All predicates, and keys of qualifiers."""
        return sorted({*self._schema.predicates, *self._schema.qualifiers})

    def kinds(self, predicate: str) -> set[Kind]:
        """The types of a predicate's objects."""
        values = {kind for kind, _ in self._schema.attribute_kinds(predicate)}
        return values | ({Kind.ENTITY} if self._schema.has_relation(predicate) else set())

    def key_kinds(self, key: str) -> set[Kind]:
        """The types of a qualifier's values."""
        return {kind for kind, _ in self._schema.qualifier_kinds(key)}

    def entities(self, ids: Sequence[str]) -> list[Item]:
        """Entities by their ids, with the concepts that they are stated to be in."""
        return self._store.entities_about(ids, [source.name for source in self.sources()])

    def sourced(self, subject: str, predicate: str) -> list[Sourced]:
        """The statements of a subject and a predicate, with their sources."""
        result = self._about.get((subject, predicate))
        if result is None:
            result = self._store.statements_about(subject, predicate)
            self._about[subject, predicate] = result
        return result

    def about(self, subject: str, predicate: str) -> list[Statement]:
        """The statements of a subject and a predicate, each once."""
        return list({key_of(one): one for one in map(normal, _statements(self.sourced(subject, predicate)))}.values())

    def some_about(self, subject: str) -> list[Statement]:
        """Statements of a subject."""
        return self._store.some_about(subject)

    def states(self, part: Part) -> bool:
        """Whether the graph has a part now."""
        if isinstance(part, Statement):
            key = key_of(part)
            return any(key_of(statement) == key for statement in self.about(part.subject, part.predicate))
        if isinstance(part, Entity):
            return self.name_of(part.id) == part.name
        links = _links(self.entities([part.entity if isinstance(part, Member) else part.concept]))
        return key_of(part) in set(map(key_of, links))


def _links(items: Iterable[Item]) -> Iterator[Member | Subclass]:
    for one in items:
        item = one.item if isinstance(one, Sourced) else one
        if isinstance(item, (Member, Subclass)):
            yield item


class Parts(NamedTuple):
    """What a change is about, before and after it; and whether there are several values of something elsewhere."""

    before: Snapshot
    after: Snapshot
    several: Several


def parts_of(store: PartStore, stated: Stated, known: ServerKnown, edit: Edit) -> Parts | None:
    """What a change is about; None for a change that has to be made of the whole graph: of a name, a membership or a
    subclass, or one of a graph that says too little of itself.
    """
    if not is_quick(edit) or not stated.adjustable or not known.sources():
        return None
    return _Parting(store, stated, known, edit).result()


class _Parting:
    def __init__(self, store: PartStore, stated: Stated, known: ServerKnown, edit: Edit) -> None:
        self._store, self._stated, self._known, self._edit = store, stated, known, edit
        self._changed = [part for part in (*edit.added, *edit.removed) if isinstance(part, Statement)]
        self._names = {name for part in self._changed for name in named_in(part)}
        self._ids = {ident for part in (*edit.added, *edit.removed) for ident in ids_of(part)}
        #: The predicate, and an entity, of statements that the graph does not have.
        self._other = "\x00"
        while self._other in self._ids | self._names:
            self._other += "\x00"

    def result(self) -> Parts | None:
        store, edit = self._store, self._edit
        removed = [part for part in edit.removed if isinstance(part, Statement)]
        gone = Removed(tuple(removed), tuple(statement_ids(_snapshot(removed)).tolist()))
        unused = store.unused(MOST_UNUSED + 1) if self._is_first() else []
        if len(unused) > MOST_UNUSED:
            return None
        entities = self._known.entities(sorted({*self._ids, *unused}))
        pairs = sorted({(part.subject, part.predicate) for part in self._changed})
        statements = [one for subject, predicate in pairs for one in self._known.sourced(subject, predicate)]
        items = [*self._known.sources(), *entities, *statements, *self._entities_in_use(gone)]
        items += self._names_in_use(statements)
        items += [
            self._stated_elsewhere(Statement(self._other, self._other, value))
            for value in dict.fromkeys(value for part in removed for value in _values(part))
            if store.value_used(value, gone)
        ]
        before = _snapshot(items)
        if any(find(before, part) < 0 for part in removed):
            return None
        subjects = sorted({part.subject for part in self._changed})
        return Parts(
            before, merge(before, Edits.of([edit])), lambda name, qualifier: store.has_several(name, qualifier, subjects, gone)
        )

    def _is_first(self) -> bool:
        """Whether this is the first change of a graph of one source, which until now declares all that it mentions."""
        sources = self._known.sources()
        return len(sources) == 1 and sources[0].name != EDITS

    def _entities_in_use(self, gone: Removed) -> Iterator[Item]:
        """A statement or membership for each entity that others mention."""
        for ident in sorted(self._ids):
            entity = self._known.entity(ident)
            # Others are declared, and stay.
            if entity is not None and entity.name == ident and entity.kind is not EntityKind.ROW:
                for use in self._store.uses(ident, gone):
                    part = Member(self._other, ident) if use.concept else Statement(ident, self._other, Ref(self._other))
                    yield Sourced(part, ((use.source, 0),))

    def _names_in_use(self, statements: Iterable[Sourced]) -> Iterator[Item]:
        """A statement for each predicate and key that others have."""
        counts = dict.fromkeys(self._names, 0)
        for statement in {key_of(one): one for one in map(normal, _statements(statements))}.values():
            for name in named_in(statement):
                counts[name] = counts.get(name, 0) + 1
        for name in sorted(self._names):
            if sum(self._stated.statements(name)) + self._stated.qualifiers(name) > counts[name]:
                yield self._stated_elsewhere(Statement(self._other, self._other, Ref(self._other), ((name, Ref(self._other)),)))

    def _stated_elsewhere(self, statement: Statement) -> Sourced:
        return Sourced(statement, ((self._known.sources()[0].name, 0),))


def _values(statement: Statement) -> list[Value]:
    every = (statement.object, *(value for _, value in statement.qualifiers))
    return [value for value in every if not isinstance(value, Ref)]


def _statements(items: Iterable[Sourced]) -> Iterator[Statement]:
    return (one.item for one in items if isinstance(one.item, Statement))


def _snapshot(items: Iterable[Item]) -> Snapshot:
    builder = Builder()
    builder.begin(Source(""))
    builder.add(items)
    return laid_out(builder)
