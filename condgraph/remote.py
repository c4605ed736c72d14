"""Graphs on servers: they are built in process, written to the store, and read back as a whole.

`remote_neo4j`, `remote_native` and `remote_sparql` have what is different for each kind of server.
"""

from __future__ import annotations

import random
import time
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

from condgraph.edits import (
    EDITS,
    Edit,
    EditedContent,
    Edits,
    Part,
    RemoteEdit,
    Removed,
    SourceUse,
    find,
    ids_of,
    is_quick,
    key_of,
    named_in,
    normal,
)
from condgraph.engine.bounds import waiting
from condgraph.engine.changes import Change, OnWritten, OvertakenError, untimely
from condgraph.engine.errors import OptionError, StoreBusyError, UnsupportedError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import Store
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import Kind, Value
from condgraph.graph import Graph
from condgraph.loaders.base import Progress
from condgraph.overview.adjusted import GraphSummary, Several
from condgraph.overview.survey import Survey
from condgraph.reports import Built, Status
from condgraph.storage import Make, Planned, Read, Storage, check_edits_stay, filled, laid_out, merge, replaced_by_nothing

# -- Single changes ----------------------------------------------------------------------------------

# A single change of a graph on a server, made of the part of the graph that it is about: entities that it names, and
# statements of its subjects and predicates. Nothing else of the graph is read.
#
# What the part holds before and after the change differs as the whole graph does. For that, what is in use elsewhere in
# the graph has a statement of its own in the part, which the graph does not have.


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

    def uses(self, ident: str, without: Removed) -> Iterable[SourceUse]:
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

    def __init__(self, store: PartStore, stated: GraphSummary) -> None:
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


def parts_of(store: PartStore, stated: GraphSummary, known: ServerKnown, edit: Edit) -> Parts | None:
    """What a change is about; None for a change that has to be made of the whole graph: of a name, a membership or a
    subclass, or one of a graph that says too little of itself.
    """
    if not is_quick(edit) or not stated.adjustable or not known.sources():
        return None
    return _Parting(store, stated, known, edit).result()


class _Parting:
    def __init__(self, store: PartStore, stated: GraphSummary, known: ServerKnown, edit: Edit) -> None:
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


# -- Graphs on servers -------------------------------------------------------------------------------


#: Statements of a graph on a server that is pulled where a table may refer to its rows.
MOST_LOOKED_AT: Final = 100_000
#: Seconds after which it is looked again whether a load is finished.
_AGAIN: Final = 0.25


class ServerStore(Store, Protocol):
    """One graph in a database: queried there, and managed from here."""

    place: str
    #: The predicates that are declared as having one value at a time.
    declared: tuple[str, ...]

    @property
    def timeout(self) -> float | None:
        """Seconds that a call has which is given none."""
        ...

    def close(self) -> None:
        """Let go of the connection."""

    def refresh(self) -> None:
        """Forget what is known of the schema."""

    def exists(self) -> bool:
        """Whether the graph is there."""
        ...

    def counts(self) -> dict[str, int]:
        """What the graph holds."""
        ...

    def sources(self) -> tuple[Source, ...]:
        """The sources of the graph."""
        ...

    def survey(self) -> Survey:
        """What the graph holds, counted when it was loaded."""
        ...

    def snapshot(self) -> Snapshot:
        """The whole graph."""
        ...

    def left(self) -> Snapshot | None:
        """What a load that was ended half way left in the graph; None where that is nothing."""
        ...

    def under_way(self) -> tuple[list[str], bool] | None:
        """The sources of a load that is not finished, and whether its writer is gone; None where
        there is none.
        """
        ...

    def abandon(self) -> bool:
        """Take back a load that was not finished; whether there was one."""
        ...

    def delete(self) -> bool:
        """Remove the graph, and nothing else; whether there was one."""
        ...


class EditedStore(ServerStore, Protocol):
    """One graph that condgraph wrote, which takes single changes."""

    @property
    def remarks(self) -> list[str]:
        """What the last write warns of."""
        ...

    def push(
        self, snapshot: Snapshot, *, wait: float, change: Change = ..., on_progress: OnWritten = ...
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot, as `ServerStorage.write` does."""
        ...

    @property
    def parts(self) -> PartStore:
        """Parts of the graph."""
        ...

    def content_now(self) -> str:
        """The name of what the graph holds, read now; raises where there is no graph, or it is being loaded."""
        ...

    def stated(self) -> GraphSummary | None:
        """What the graph states of its content, read now; None where an earlier version wrote it."""
        ...

    def totals(self, snapshot: Snapshot) -> dict[str, int]:
        """What the graph would state as its counts if it held a snapshot."""
        ...

    def edit_records(self) -> list[str]:
        """The records of the single changes (`edits.Edit.record`), in order."""
        ...

    def last_edit(self) -> int:
        """The number of the last single change; 0 where there is none."""
        ...

    def write_edit(self, change: RemoteEdit, wait: float) -> str:
        """Write a single change, all of it or nothing; the name of what the graph holds then.

        Raises `OvertakenError` where the graph does not have the content that the change was made for, `StoreBusyError`
        where somebody writes it for longer than `wait` seconds.
        """
        ...


class ServerStorage(Storage):
    """A graph on a server. `server` is where it is and what answers there; a class for each kind of
    server says how it is written.
    """

    server: ServerStore

    def __init__(self, server: ServerStore, *, graph: str, read_only: bool) -> None:
        super().__init__(server.place, graph, read_only)
        self.server, self.timeout = server, server.timeout
        #: Of the load that is at work: until when it waits for others, and the sources that it saw.
        self._until = 0.0
        self._seen: frozenset[tuple[str, str]] | None = None
        #: What it pulled of the graph to look at, once it has.
        self._pulled: tuple[Snapshot | None] | None = None
        #: The graph in process, with the name of its content.
        self._copy: tuple[str, Snapshot] | None = None

    @abstractmethod
    def write(
        self, snapshot: Snapshot, wait: float, change: Change, progress: Progress | None
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot next to what the graph holds, but for what `change` takes away; what it
        held, and holds now, as the load itself knows it: others may load before and after. `wait`
        is how long for another writer, in seconds.
        """

    # -- reading -----------------------------------------------------------------------------------

    @property
    def current(self) -> Snapshot:
        """Columns of the graph in process."""
        raise UnsupportedError(self.place, ["columns in process"], hint="graph.snapshot() pulls the graph")

    def whole(self) -> Snapshot:
        """The whole graph, pulled."""
        return self.server.snapshot()

    def content(self) -> str | None:
        """A name for what the graph holds now; None where the server has none."""
        return None

    def copied(self) -> Snapshot:
        """The whole graph in process, pulled again when it changes on the server; always where nobody knows that."""
        content, copy = self.content(), self._copy
        if copy is not None and content is not None and copy[0] == content:
            return copy[1]
        snapshot = self.whole()
        # A load in between may have given another state than the name is of.
        self._copy = (content, snapshot) if content is not None and self.content() == content else None
        return snapshot

    def configure(self, wait: float = 0.0, **changes: Any) -> None:
        """Change settings, which last as long as this object; what answers knows which predicates are declared."""
        super().configure(wait, **changes)
        self.server.declared = tuple(self.settings.get("single_valued", ()))

    def close(self) -> None:
        """Let go of the connection."""
        self._copy = None
        self.server.close()

    def refresh(self) -> None:
        """Forget what is known of the schema, which another process may have changed."""
        self.server.refresh()

    def sources(self, wait: float = 0.0) -> tuple[Source, ...]:
        """The sources of the graph."""
        with waiting(wait):
            return self.server.sources() if self.server.exists() else ()

    def status(self, verify: bool) -> Status:
        """What the graph holds; bytes are the server's own affair."""
        if verify:
            raise OptionError("a graph on a server has no checksums here")
        return Status(self.place, self.graph, "server", self.server.counts(), self.server.sources(), 0)

    def survey(self) -> Survey:
        """What the graph holds, counted when it was loaded."""
        return self.server.survey()

    # -- changing ----------------------------------------------------------------------------------

    def known(self, changes: bool) -> Snapshot | None:
        """What the graph holds; None where it is large, and the load changes nothing of it."""
        # Pulled once: all tables of a load are read for the same graph.
        if self._pulled is None:
            self._pulled = (self._look(changes),)
        return self._pulled[0]

    def _look(self, changes: bool) -> Snapshot | None:
        while True:
            self._wait_for_others()
            try:
                return self._looked_at(changes)
            except StoreBusyError:
                # Another load began just now.
                if time.monotonic() >= self._until:
                    raise
                time.sleep(_AGAIN)

    def _looked_at(self, changes: bool) -> Snapshot | None:
        begun = self.server.under_way()
        if begun is not None:
            # Its writer is gone: this load goes on where that stopped, or is refused.
            return self.server.left() if begun[1] else self.server.snapshot()
        seen = frozenset((one.name, one.content) for one in self.sources())
        # A large graph is not pulled to look at its keys: `join=` needs nothing of it. A change
        # pulls it anyway, and rows keep the ids that others refer to.
        there = self.server.exists()
        size = sum(self.server.counts().get(one, 0) for one in ("relations", "attributes")) if there else 0
        if size > MOST_LOOKED_AT and not changes:
            return None
        self._seen = seen
        return self.server.snapshot() if there else None

    def _wait_for_others(self) -> None:
        """Wait until nobody who is there writes the graph, at most as long as this load may."""
        while (found := self.server.under_way()) is not None and not found[1] and time.monotonic() < self._until:
            time.sleep(_AGAIN)

    def build(self, read: Read | None, wait: float, plan: Planned | None = None, progress: Progress | None = None) -> Built:
        """Build what is added in process, and write it."""
        with self._lock:
            self._until = time.monotonic() + wait
            while True:
                try:
                    return self._built(read, max(self._until - time.monotonic(), 0.0), plan, progress)
                except OvertakenError:
                    # What rows refer to may be another row now: they are read again.
                    if time.monotonic() >= self._until:
                        raise

    def _built(self, read: Read | None, wait: float, plan: Planned | None, progress: Progress | None) -> Built:
        """One try of `build`."""
        changed = Change() if plan is None else plan(self.sources(wait))
        check_edits_stay(changed)
        builder = Builder()
        self._seen = None
        try:
            if read is not None:
                filled(builder, read)
        finally:
            self._pulled = None
        snapshot = laid_out(builder)
        before, after = self.write(snapshot, wait, replace(changed, seen=self._seen), progress)
        names = {source.name for source in builder.sources}
        gone = [name for name in changed.without if name not in names] if read is not None else []
        warnings = [*changed.warnings, *replaced_by_nothing(gone), *builder.warnings, *untimely(snapshot), *self.remarks()]
        return Built(before, after, builder.statements, warnings)

    def remarks(self) -> list[str]:
        """What the last write on the server warns of."""
        return []

    def change(
        self, plan: Planned, read: Read | None, wait: float, names: Sequence[str], progress: Progress | None = None
    ) -> Built:
        """What is there is changed once it is there as a whole: a load of the same sources that was
        ended is taken back, that of others is waited for.
        """
        until = time.monotonic() + wait
        with waiting(wait):
            while (found := self.server.under_way()) is not None:
                begun, gone = found
                if gone and all(one in names or one.startswith(tuple(f"{name}/" for name in names)) for one in begun):
                    self.abandon()
                elif time.monotonic() >= until:
                    self.server.counts()
                    break
                else:
                    time.sleep(_AGAIN)
        return self.build(read, wait, plan, progress)

    def abandon(self) -> bool:
        """Take back a load that was not finished."""
        with self._lock:
            return self.server.abandon()

    def delete(self) -> bool:
        """Remove the graph from the server, and nothing else."""
        with self._lock:
            return self.server.delete()


class EditedStorage(ServerStorage):
    """A graph on a server that condgraph wrote, and that takes single changes: each is made of the part of the graph that
    it is about (`condgraph.remote`), or of the whole graph, which is pulled for it.
    """

    server: EditedStore

    def __init__(self, server: EditedStore, *, graph: str, read_only: bool) -> None:
        super().__init__(server, graph=graph, read_only=read_only)
        #: What the graph stated after the last change that was made here.
        self._stated: GraphSummary | None = None

    def write(
        self, snapshot: Snapshot, wait: float, change: Change, progress: Progress | None
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot; `progress` is called with the graph's address."""

        def on_progress(written: int, part: float | None) -> None:
            if progress is not None:
                progress(self.place, written, part)

        return self.server.push(snapshot, wait=wait, change=change, on_progress=on_progress)

    def remarks(self) -> list[str]:
        """What the last write warns of."""
        return list(self.server.remarks)

    def edit(self, make: Make, wait: float) -> tuple[Edit, list[str]]:
        """Make a single change of what the graph holds now, and write it at once on the server."""
        self.check_editable()
        until = time.monotonic() + wait
        with self._lock, self.changing(wait):
            if not self.server.exists() and self.server.under_way() is None:
                # A graph of nothing, which has a node to write on.
                self.write(laid_out(Builder()), wait, Change(), None)
            while True:
                try:
                    return self._edited(make, max(until - time.monotonic(), 0.0))
                except StoreBusyError:
                    if time.monotonic() >= until:
                        raise
                    time.sleep(random.uniform(_AGAIN / 10, _AGAIN))

    def _edited(self, make: Make, wait: float) -> tuple[Edit, list[str]]:
        """One try of `edit`."""
        server = self.server
        content, number, edit = server.content_now(), server.last_edit() + 1, None
        stated, self._stated = self._stated, None
        if stated is None or stated.content != content:
            stated = server.stated()
        if stated is not None and stated.content == content:
            store = server.parts
            known = ServerKnown(store, stated)
            edit = make(known, number)
            parts = parts_of(store, stated, known, edit)
            now = None if parts is None else stated.after(edit.record(), parts.before, parts.after, server.totals, parts.several)
            if parts is not None and now is not None:
                server.write_edit(RemoteEdit(edit, content, parts.before, parts.after, now), wait)
                self._stated = now
                return edit, self.remarks()
        whole = server.snapshot()
        if server.content_now() != content:
            raise OvertakenError(f"graph {self.graph!r} was changed by somebody else meanwhile")
        if edit is None:
            edit = make(EditedContent(whole, Edits()), number)
        server.write_edit(RemoteEdit(edit, content, whole, merge(whole, Edits.of([edit]))), wait)
        return edit, self.remarks()

    def changing(self, wait: float) -> AbstractContextManager[None]:
        """What is held while a change is made, for which others are waited for so many seconds."""
        return nullcontext()

    def check_editable(self) -> None:
        """Raise `UnsupportedError` where the server cannot make a change all at once."""

    def edits(self) -> list[Edit]:
        """All single changes, in order."""
        return [Edit.read(record.encode()) for record in self.server.edit_records()]


class RemoteGraph(Graph):
    """A graph on a server, with the API of local ones."""

    _storage: ServerStorage

    def __init__(self, storage: ServerStorage) -> None:
        self._use(storage)

    @property
    def store(self) -> ServerStore:
        """What answers on the server."""
        return self._storage.server


class EditedGraph(RemoteGraph):
    """A graph on a server that condgraph writes."""

    _storage: EditedStorage

    def push(self, graph: Graph, *, wait: float = 0.0, progress: Progress | None = None) -> None:
        """Write a local graph as this one, next to what it holds; the same content twice changes
        nothing. `wait` as for `load`.

        `progress` is called, as in `load`, with the address, the records written so far (relations, rows
        or triples, as the store has them), and which part of all that is (None where it is not known).
        """
        self._storage.check_writable(wait)
        self._storage.write(graph.current, wait, Change(), progress)
        for remark in self._storage.remarks():
            warnings.warn(remark, stacklevel=2)
