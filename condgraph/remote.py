"""Graphs on servers: they are built in process, written to the store, queried there, and can be pulled back.

The other modules `remote_*` contain what differs between kinds of servers.
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

# -- single changes ----------------------------------------------------------------------------------

# A single change of a graph on a server is computed from the part of the graph that it affects: the entities that it
# mentions, and the statements with its subjects and predicates. Nothing else of the graph is read.
#
# The difference between the part before and after the change must be that of the whole graph. For this, the part contains an
# artificial statement for everything that is also used elsewhere in the graph.


#: The largest number of entities that are only declared and never mentioned. With more, the first change of a graph is
#: computed from the whole graph.
MAX_UNUSED: Final = 10_000


class PartStore(Protocol):
    """Reads parts of one graph on a server."""

    def sources(self) -> Sequence[Source]:
        """Read the sources, in the order of their loads."""
        ...

    def called(self, text: str) -> list[Entity]:
        """Return the entities with a text as their id or name."""
        ...

    def some_names(self, most: int) -> list[str]:
        """Return the names of all entities, or nothing if there are more than `most`."""
        ...

    def entities_about(self, ids: Sequence[str], sources: Sequence[str]) -> list[Item]:
        """Return entities by their ids, as their sources declare them, with the concepts they are stated to belong
        to. `sources` are the names of all sources, in order.
        """
        ...

    def statements_about(self, subject: str, predicate: str) -> list[Sourced]:
        """Return the statements with a subject and a predicate."""
        ...

    def some_about(self, subject: str) -> list[Statement]:
        """Return up to 100 statements with a subject."""
        ...

    def uses(self, ident: str, without: Removed) -> Iterable[SourceUse]:
        """Return at most two uses of an entity: one in statements or their qualifiers, except those in `without`, and
        one as a concept or as the child of another concept.
        """
        ...

    def value_used(self, value: Value, without: Removed) -> bool:
        """Return whether other statements have a value that the store shares between statements."""
        ...

    def unused(self, most: int) -> list[str]:
        """Return the ids of entities whose name is their id, and that are declared but mentioned nowhere else."""
        ...

    def has_several(self, name: str, qualifier: bool, subjects: Sequence[str], without: Removed) -> bool:
        """Return whether any entity except `subjects` has several values of an attribute; or, for a `qualifier`,
        whether any statement except those in `without` has several values of it.
        """
        ...


class ServerKnown:
    """The `GraphContent` of a graph on a server. Everything is read at most once."""

    def __init__(self, store: PartStore, stated: GraphSummary) -> None:
        self._store, self._stated, self._schema = store, stated, StoredSchema(stated.schema)
        self._sources: Sequence[Source] | None = None
        self._called: dict[str, list[Entity]] = {}
        self._about: dict[tuple[str, str], list[Sourced]] = {}

    def sources(self) -> Sequence[Source]:
        if self._sources is None:
            self._sources = self._store.sources()
        return self._sources

    def _entities(self, text: str) -> list[Entity]:
        result = self._called.get(text)
        if result is None:
            result = self._called[text] = self._store.called(text)
        return result

    def entity(self, ident: str) -> Entity | None:
        return next((entity for entity in self._entities(ident) if entity.id == ident), None)

    def name_of(self, ident: str) -> str | None:
        entity = self.entity(ident)
        return None if entity is None else entity.name

    def named(self, name: str) -> list[str]:
        return sorted(entity.id for entity in self._entities(name) if entity.name == name)

    def names(self, most: int) -> Iterable[str]:
        return self._store.some_names(most) if self._stated.counts.get("entities", 0) <= most else ()

    def predicates(self) -> Sequence[str] | None:
        return sorted({*self._schema.predicates, *self._schema.qualifiers})

    def kinds(self, predicate: str) -> set[Kind]:
        values = {kind for kind, _ in self._schema.attribute_kinds(predicate)}
        return values | ({Kind.ENTITY} if self._schema.has_relation(predicate) else set())

    def key_kinds(self, key: str) -> set[Kind]:
        return {kind for kind, _ in self._schema.qualifier_kinds(key)}

    def entities(self, ids: Sequence[str]) -> list[Item]:
        """Return entities by their ids, with the concepts they are stated to belong to."""
        return self._store.entities_about(ids, [source.name for source in self.sources()])

    def sourced(self, subject: str, predicate: str) -> list[Sourced]:
        """Return the statements with a subject and a predicate, with their sources."""
        result = self._about.get((subject, predicate))
        if result is None:
            result = self._store.statements_about(subject, predicate)
            self._about[subject, predicate] = result
        return result

    def about(self, subject: str, predicate: str) -> list[Statement]:
        """Return the distinct statements with a subject and a predicate."""
        return list(
            {key_of(statement): statement for statement in map(normal, _statements(self.sourced(subject, predicate)))}.values()
        )

    def some_about(self, subject: str) -> list[Statement]:
        return self._store.some_about(subject)

    def states(self, part: Part) -> bool:
        if isinstance(part, Statement):
            key = key_of(part)
            return any(key_of(statement) == key for statement in self.about(part.subject, part.predicate))
        if isinstance(part, Entity):
            return self.name_of(part.id) == part.name
        links = _links(self.entities([part.entity if isinstance(part, Member) else part.concept]))
        return key_of(part) in set(map(key_of, links))


def _links(items: Iterable[Item]) -> Iterator[Member | Subclass]:
    for item in items:
        part = item.item if isinstance(item, Sourced) else item
        if isinstance(part, (Member, Subclass)):
            yield part


class Parts(NamedTuple):
    """The part of a graph that a change affects, before and after it, and a function for whether predicates have
    several values elsewhere.
    """

    before: Snapshot
    after: Snapshot
    several: Several


def parts_of(store: PartStore, stated: GraphSummary, known: ServerKnown, edit: Edit) -> Parts | None:
    """Return the part of a graph that a change affects.

    Returns None for a change that must be computed from the whole graph: of a name, a membership or a subclass, or in
    a graph without a sufficient summary.
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
        #: The predicate and entity of artificial statements, a name that the change does not contain.
        self._other = "\x00"
        while self._other in self._ids | self._names:
            self._other += "\x00"

    def result(self) -> Parts | None:
        store, edit = self._store, self._edit
        removed = [part for part in edit.removed if isinstance(part, Statement)]
        excluded = Removed(tuple(removed), tuple(statement_ids(_snapshot(removed)).tolist()))
        unused = store.unused(MAX_UNUSED + 1) if self._is_first_change() else []
        if len(unused) > MAX_UNUSED:
            return None
        entities = self._known.entities(sorted({*self._ids, *unused}))
        pairs = sorted({(part.subject, part.predicate) for part in self._changed})
        statements = [statement for subject, predicate in pairs for statement in self._known.sourced(subject, predicate)]
        items = [*self._known.sources(), *entities, *statements, *self._entities_in_use(excluded)]
        items += self._names_in_use(statements)
        items += [
            self._stated_elsewhere(Statement(self._other, self._other, value))
            for value in dict.fromkeys(value for part in removed for value in _values(part))
            if store.value_used(value, excluded)
        ]
        before = _snapshot(items)
        if any(find(before, part) < 0 for part in removed):
            return None
        subjects = sorted({part.subject for part in self._changed})
        return Parts(
            before, merge(before, Edits.of([edit])), lambda name, qualifier: store.has_several(name, qualifier, subjects, excluded)
        )

    def _is_first_change(self) -> bool:
        """Return whether this is the first change of a graph with one source. Until then that source declares
        everything it mentions.
        """
        sources = self._known.sources()
        return len(sources) == 1 and sources[0].name != EDITS

    def _entities_in_use(self, gone: Removed) -> Iterator[Item]:
        """Yield an artificial statement or membership for each entity that is also mentioned elsewhere."""
        for ident in sorted(self._ids):
            entity = self._known.entity(ident)
            # Other entities are declared, so that they stay in any case.
            if entity is not None and entity.name == ident and entity.kind is not EntityKind.ROW:
                for use in self._store.uses(ident, gone):
                    part = Member(self._other, ident) if use.concept else Statement(ident, self._other, Ref(self._other))
                    yield Sourced(part, ((use.source, 0),))

    def _names_in_use(self, statements: Iterable[Sourced]) -> Iterator[Item]:
        """Yield an artificial statement for each predicate and key that is also used elsewhere."""
        counts = dict.fromkeys(self._names, 0)
        for statement in {key_of(stated): stated for stated in map(normal, _statements(statements))}.values():
            for name in named_in(statement):
                counts[name] = counts.get(name, 0) + 1
        for name in sorted(self._names):
            if sum(self._stated.statements(name)) + self._stated.qualifiers(name) > counts[name]:
                yield self._stated_elsewhere(Statement(self._other, self._other, Ref(self._other), ((name, Ref(self._other)),)))

    def _stated_elsewhere(self, statement: Statement) -> Sourced:
        return Sourced(statement, ((self._known.sources()[0].name, 0),))


def _values(statement: Statement) -> list[Value]:
    values = (statement.object, *(value for _, value in statement.qualifiers))
    return [value for value in values if not isinstance(value, Ref)]


def _statements(items: Iterable[Sourced]) -> Iterator[Statement]:
    return (sourced.item for sourced in items if isinstance(sourced.item, Statement))


def _snapshot(items: Iterable[Item]) -> Snapshot:
    builder = Builder()
    builder.begin(Source(""))
    builder.add(items)
    return laid_out(builder)


# -- graphs on servers -------------------------------------------------------------------------------


#: The largest number of statements of a graph on a server that is pulled to find rows which a loaded table may refer to.
MAX_PULLED: Final = 100_000
#: The interval in seconds for checking whether another load has finished.
_POLL: Final = 0.25


class ServerStore(Store, Protocol):
    """One graph in a database: queried there, and managed from here."""

    place: str
    #: The predicates that are declared to have one value at a time.
    declared: tuple[str, ...]

    @property
    def timeout(self) -> float | None:
        """The default timeout of calls, in seconds."""
        ...

    def close(self) -> None:
        """Close the connection."""

    def refresh(self) -> None:
        """Discard the cached schema."""

    def exists(self) -> bool:
        """Return whether the graph exists."""
        ...

    def counts(self) -> dict[str, int]:
        """Return the counts of the graph."""
        ...

    def sources(self) -> tuple[Source, ...]:
        """Return the sources of the graph."""
        ...

    def survey(self) -> Survey:
        """Return the counts for a schema, as of the last load."""
        ...

    def snapshot(self) -> Snapshot:
        """Pull the whole graph."""
        ...

    def left(self) -> Snapshot | None:
        """Return what an interrupted load left in the graph, or None."""
        ...

    def under_way(self) -> tuple[list[str], bool] | None:
        """Return the sources of an unfinished load and whether its writer is gone, or None if there is no such load."""
        ...

    def abandon(self) -> bool:
        """Undo an unfinished load. Returns whether there was one."""
        ...

    def delete(self) -> bool:
        """Delete the graph and nothing else. Returns whether there was a graph."""
        ...


class EditedStore(ServerStore, Protocol):
    """One graph written by condgraph that accepts single changes."""

    @property
    def remarks(self) -> list[str]:
        """The warnings of the last write."""
        ...

    def push(
        self, snapshot: Snapshot, *, wait: float, change: Change = ..., on_progress: OnWritten = ...
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot, as `ServerStorage.write` does."""
        ...

    @property
    def parts(self) -> PartStore:
        """A reader for parts of the graph."""
        ...

    def content_now(self) -> str:
        """Read the name of the graph's content. Raises `StoreError` if there is no graph, or if it is being loaded."""
        ...

    def stated(self) -> GraphSummary | None:
        """Read the stored summary of the graph's content; None if an earlier release of condgraph wrote the graph."""
        ...

    def totals(self, snapshot: Snapshot) -> dict[str, int]:
        """Return the counts that the summary would contain for a snapshot."""
        ...

    def edit_records(self) -> list[str]:
        """Return the records of the single changes (`edits.Edit.record`), in order."""
        ...

    def last_edit(self) -> int:
        """Return the number of the last single change, or 0."""
        ...

    def write_edit(self, change: RemoteEdit, wait: float) -> str:
        """Write a single change, either completely or not at all, and return the name of the new content.

        Raises `OvertakenError` if the graph no longer has the content that the change was computed for, and
        `StoreBusyError` if another process writes it for longer than `wait` seconds.
        """
        ...


class ServerStorage(Storage):
    """A graph on a server. `server` queries and manages it; a subclass for each kind of server writes it."""

    server: ServerStore

    def __init__(self, server: ServerStore, *, graph: str, read_only: bool) -> None:
        super().__init__(server.place, graph, read_only)
        self.server, self.timeout = server, server.timeout
        #: The running load's deadline for waiting for other writers, and the sources that it saw.
        self._until = 0.0
        self._known_sources: frozenset[tuple[str, str]] | None = None
        #: The graph as the running load pulled it for its loaders, in a tuple; None before that.
        self._pulled: tuple[Snapshot | None] | None = None
        #: The graph in process, with the name of its content.
        self._copy: tuple[str, Snapshot] | None = None

    @abstractmethod
    def write(
        self, snapshot: Snapshot, wait: float, change: Change, progress: Progress | None
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot into the graph, and empty or extend the sources in `change`. Returns the counts before and
        after this load, without the effects of other loads. `wait` is how many seconds to wait for another writer.
        """

    # -- reading -----------------------------------------------------------------------------------

    @property
    def current(self) -> Snapshot:
        """Raises `UnsupportedError`: a graph on a server has no columns in process."""
        raise UnsupportedError(self.place, ["columns in process"], hint="graph.snapshot() pulls the graph")

    def whole(self) -> Snapshot:
        return self.server.snapshot()

    def content(self) -> str | None:
        """Return a name for the current content of the graph, or None if the server has none."""
        return None

    def copied(self) -> Snapshot:
        """Return the whole graph in process. It is pulled again if it has changed on the server, or if the content
        has no name.
        """
        content, copy = self.content(), self._copy
        if copy is not None and content is not None and copy[0] == content:
            return copy[1]
        snapshot = self.whole()
        # If a load ran during the pull, the name may be that of another state.
        self._copy = (content, snapshot) if content is not None and self.content() == content else None
        return snapshot

    def configure(self, wait: float = 0.0, **changes: Any) -> None:
        """Change settings, which last as long as this object. The server's store learns which predicates are
        declared.
        """
        super().configure(wait, **changes)
        self.server.declared = tuple(self.settings.get("single_valued", ()))

    def close(self) -> None:
        self._copy = None
        self.server.close()

    def refresh(self) -> None:
        """Discard the cached schema, which another process may have changed."""
        self.server.refresh()

    def sources(self, wait: float = 0.0) -> tuple[Source, ...]:
        """Return the sources of the graph; none if it does not exist."""
        with waiting(wait):
            return self.server.sources() if self.server.exists() else ()

    def status(self, verify: bool) -> Status:
        """Return the counts and sources of the graph, with 0 for its bytes. Raises `OptionError` for `verify`."""
        if verify:
            raise OptionError("a graph on a server has no checksums here")
        return Status(self.place, self.graph, "server", self.server.counts(), self.server.sources(), 0)

    def survey(self) -> Survey:
        return self.server.survey()

    # -- changing ----------------------------------------------------------------------------------

    def known(self, changes: bool) -> Snapshot | None:
        """Return the content of the graph for loaders, or None if it is large and the load does not change it."""
        # Pulled once, so that all tables of a load see the same graph.
        if self._pulled is None:
            self._pulled = (self._read_state(changes),)
        return self._pulled[0]

    def _read_state(self, changes: bool) -> Snapshot | None:
        while True:
            self._wait_for_others()
            try:
                return self._snapshot_at(changes)
            except StoreBusyError:
                # Another load has just begun.
                if time.monotonic() >= self._until:
                    raise
                time.sleep(_POLL)

    def _snapshot_at(self, changes: bool) -> Snapshot | None:
        unfinished = self.server.under_way()
        if unfinished is not None:
            # The other writer is gone: this load resumes that one, or is refused.
            return self.server.left() if unfinished[1] else self.server.snapshot()
        contents = frozenset((source.name, source.content) for source in self.sources())
        # A large graph is not pulled to look up keys in it: `join=` works without it. A load with a change pulls it in any
        # case, and rows must keep the ids that other statements refer to.
        exists = self.server.exists()
        size = sum(self.server.counts().get(family, 0) for family in ("relations", "attributes")) if exists else 0
        if size > MAX_PULLED and not changes:
            return None
        self._known_sources = contents
        return self.server.snapshot() if exists else None

    def _wait_for_others(self) -> None:
        """Wait while a running writer loads the graph, at most until this load's deadline."""
        while (load := self.server.under_way()) is not None and not load[1] and time.monotonic() < self._until:
            time.sleep(_POLL)

    def build(self, read: Read | None, wait: float, plan: Planned | None = None, progress: Progress | None = None) -> Built:
        """Build the added items in process, and write them."""
        with self._lock:
            self._until = time.monotonic() + wait
            while True:
                try:
                    return self._built(read, max(self._until - time.monotonic(), 0.0), plan, progress)
                except OvertakenError:
                    # References may now mean other rows, so the sources are read again.
                    if time.monotonic() >= self._until:
                        raise

    def _built(self, read: Read | None, wait: float, plan: Planned | None, progress: Progress | None) -> Built:
        """Try to build and write once."""
        changed = Change() if plan is None else plan(self.sources(wait))
        check_edits_stay(changed)
        builder = Builder()
        self._known_sources = None
        try:
            if read is not None:
                filled(builder, read)
        finally:
            self._pulled = None
        snapshot = laid_out(builder)
        before, after = self.write(snapshot, wait, replace(changed, seen=self._known_sources), progress)
        names = {source.name for source in builder.sources}
        emptied = [name for name in changed.without if name not in names] if read is not None else []
        warnings = [*changed.warnings, *replaced_by_nothing(emptied), *builder.warnings, *untimely(snapshot), *self.remarks()]
        return Built(before, after, builder.statements, warnings)

    def remarks(self) -> list[str]:
        """Return the server's warnings about the last write."""
        return []

    def change(
        self, plan: Planned, read: Read | None, wait: float, names: Sequence[str], progress: Progress | None = None
    ) -> Built:
        """Build a change of existing sources, once no unfinished load is in the way: an interrupted load of the same
        sources is undone, a load of other sources is waited for.
        """
        until = time.monotonic() + wait
        with waiting(wait):
            while (load := self.server.under_way()) is not None:
                loaded_sources, writer_is_gone = load
                if writer_is_gone and all(
                    source in names or source.startswith(tuple(f"{name}/" for name in names)) for source in loaded_sources
                ):
                    self.abandon()
                elif time.monotonic() >= until:
                    self.server.counts()
                    break
                else:
                    time.sleep(_POLL)
        return self.build(read, wait, plan, progress)

    def abandon(self) -> bool:
        with self._lock:
            return self.server.abandon()

    def delete(self) -> bool:
        with self._lock:
            return self.server.delete()


class EditedStorage(ServerStorage):
    """A graph on a server that condgraph wrote and that accepts single changes. Each change is computed from the part
    of the graph that it affects, or from the whole graph, which is then pulled.
    """

    server: EditedStore

    def __init__(self, server: EditedStore, *, graph: str, read_only: bool) -> None:
        super().__init__(server, graph=graph, read_only=read_only)
        #: The summary of the graph after the last change made by this object.
        self._stated: GraphSummary | None = None

    def write(
        self, snapshot: Snapshot, wait: float, change: Change, progress: Progress | None
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot. `progress` is called with the graph's address."""

        def on_progress(written: int, part: float | None) -> None:
            if progress is not None:
                progress(self.place, written, part)

        return self.server.push(snapshot, wait=wait, change=change, on_progress=on_progress)

    def remarks(self) -> list[str]:
        return list(self.server.remarks)

    def edit(self, make: Make, wait: float) -> tuple[Edit, list[str]]:
        """Make a single change of the current graph, and write it to the server at once."""
        self.check_editable()
        until = time.monotonic() + wait
        with self._lock, self.changing(wait):
            if not self.server.exists() and self.server.under_way() is None:
                # Create an empty graph, so that there is something to attach the change to.
                self.write(laid_out(Builder()), wait, Change(), None)
            while True:
                try:
                    return self._edited(make, max(until - time.monotonic(), 0.0))
                except StoreBusyError:
                    if time.monotonic() >= until:
                        raise
                    time.sleep(random.uniform(_POLL / 10, _POLL))

    def _edited(self, make: Make, wait: float) -> tuple[Edit, list[str]]:
        """Try to make a change once."""
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
            summary = (
                None if parts is None else stated.after(edit.record(), parts.before, parts.after, server.totals, parts.several)
            )
            if parts is not None and summary is not None:
                server.write_edit(RemoteEdit(edit, content, parts.before, parts.after, summary), wait)
                self._stated = summary
                return edit, self.remarks()
        snapshot = server.snapshot()
        if server.content_now() != content:
            raise OvertakenError(f"graph {self.graph!r} was changed by somebody else meanwhile")
        if edit is None:
            edit = make(EditedContent(snapshot, Edits()), number)
        server.write_edit(RemoteEdit(edit, content, snapshot, merge(snapshot, Edits.of([edit]))), wait)
        return edit, self.remarks()

    def changing(self, wait: float) -> AbstractContextManager[None]:
        """Return a context manager that is held during a change. `wait` is how many seconds to wait for other
        writers.
        """
        return nullcontext()

    def check_editable(self) -> None:
        """Raise `UnsupportedError` if the server cannot make a change atomically."""

    def edits(self) -> list[Edit]:
        return [Edit.read(record.encode()) for record in self.server.edit_records()]


class RemoteGraph(Graph):
    """A graph on a server, with the methods of a local graph."""

    _storage: ServerStorage

    def __init__(self, storage: ServerStorage) -> None:
        self._use(storage)

    @property
    def store(self) -> ServerStore:
        """The store that queries the server."""
        return self._storage.server


class EditedGraph(RemoteGraph):
    """A graph on a server that condgraph writes."""

    _storage: EditedStorage

    def push(self, graph: Graph, *, wait: float = 0.0, progress: Progress | None = None) -> None:
        """Write a local graph into this one, next to its content. Pushing the same content twice changes nothing.
        `wait` is how many seconds to wait for another writer.

        `progress` is called with the address, the number of records written (relations, rows or triples, depending on
        the store), and the fraction written, or None if that is unknown.
        """
        self._storage.check_writable(wait)
        self._storage.write(graph.current, wait, Change(), progress)
        for remark in self._storage.remarks():
            warnings.warn(remark, stacklevel=2)
