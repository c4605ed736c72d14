"""Where a graph is stored: a folder or memory here, a server in `remote`. `Graph` reads and changes
it through these objects.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.edits import EDITS, Edit, EditedContent, Edits, GraphContent, is_quick
from condgraph.engine import errors
from condgraph.engine.addresses import shown
from condgraph.engine.bounds import SharedTask, is_number
from condgraph.engine.changes import Change, untimely
from condgraph.engine.facts import Source
from condgraph.engine.snapshot.build import Builder, rows_of_several
from condgraph.engine.snapshot.directory import (
    append_record,
    graph_directory,
    graph_names,
    is_current,
    log_size,
    read_log,
    remove_graph,
    write_generation,
    write_settings,
    writing,
)
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.merged import whole
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.loaders.base import Progress
from condgraph.reports import Built, Status
from condgraph.snapshot_store import SnapshotStore
from condgraph.vectors.carry import carry_over

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node
    from condgraph.engine.store import Store
    from condgraph.overview.survey import Survey
    from condgraph.questions.translations import Compilers
    from condgraph.sparql.embedded import EmbeddedStore
    from condgraph.sparql.text.table import Table
    from condgraph.spilling import SpillingBuilder
    from condgraph.vectors.encoders import Encoder
    from condgraph.vectors.stored import IndexReport
    from condgraph.versions import AsOf, Version

#: What answers: the snapshot in process, or SPARQL on an RDF store; by default the first, and for a
#: graph on a server that server.
ENGINES: Final = ("snapshot", "sparql")

#: Reads sources into a builder.
Read: TypeAlias = Callable[[Builder], None]
#: Makes a change of what a graph holds, with a number.
Make: TypeAlias = Callable[[GraphContent, int], Edit]
#: Changes that wait to be merged with the columns, after which a writer merges them.
MOST_WAITING: Final = 1_000
#: Queries after a change that are answered before columns are merged as a whole.
QUERIES_OF_A_PART: Final = 16
#: What a load does to the sources that are there.
Planned: TypeAlias = Callable[[tuple[Source, ...]], Change]


class Storage(ABC):
    """One graph where it is stored: read, changed and removed there."""

    #: The timeout of calls that are given none; servers have it as an option.
    timeout: float | None = None
    #: The folder of a graph that is in one.
    directory: Path | None = None
    #: Whether this is what a preference leaves of another.
    preferring = False
    #: The generation that is open in process; None before the first load, and on a server.
    snapshot: Snapshot | None = None

    def __init__(self, place: str, graph: str, read_only: bool) -> None:
        self.place, self.graph, self.read_only = place, graph, read_only
        self._lock, self._rdf_lock, self._merging = Lock(), Lock(), Lock()
        self._rdf: tuple[Snapshot, SharedTask[EmbeddedStore]] | None = None
        #: Settings of a graph that nothing was loaded into yet, or that is on a server.
        self._settings: dict[str, Any] = {}

    @property
    def settings(self) -> Mapping[str, Any]:
        """What a user decided about the graph: predicates with one value at a time (`single_valued`), the versions that
        stay (`keep`).
        """
        return self._settings

    def configure(self, wait: float = 0.0, **changes: Any) -> None:
        """Change settings; those of a graph on a server last as long as this object."""
        self._settings = {**self._settings, **changes}

    def check_writable(self, wait: float = 0.0) -> None:
        """Raise `ReadOnlyError` where the graph is not to be changed, and `OptionError` for a `wait` for other writers that
        is no number of seconds.
        """
        if self.read_only:
            raise errors.ReadOnlyError.at(self.place)
        if not (is_number(wait) and wait >= 0):
            raise errors.OptionError(f"wait is in seconds, 0 or more, not {wait!r}")

    # -- reading -----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def current(self) -> Snapshot:
        """The columns of the graph as they are now."""

    @abstractmethod
    def whole(self) -> Snapshot:
        """The whole graph as it is now, in process; pulled from a server."""

    def copied(self) -> Snapshot:
        """The same, pulled from a server only when it has changed."""
        return self.current

    @abstractmethod
    def close(self) -> None:
        """Let go of what is open."""

    @abstractmethod
    def refresh(self) -> None:
        """Turn to what the graph holds now, which another process may have changed."""

    @abstractmethod
    def sources(self, wait: float = 0.0) -> tuple[Source, ...]:
        """The sources that the graph has; none where nothing was loaded yet."""

    @abstractmethod
    def status(self, verify: bool) -> Status:
        """What the graph holds; `verify` reads every byte."""

    @abstractmethod
    def survey(self) -> Survey:
        """What the graph holds, counted."""

    @abstractmethod
    def store(self, engine: str | None) -> Store:
        """What answers programs; raises `OptionError` for what is no engine of this graph."""

    def renewed(self, kind: str) -> bool:
        """Whether the graph has changed since names of a kind were looked up, so that one that is
        not known may be known now.
        """
        return False

    def rdf(self, base: str | None) -> EmbeddedStore:
        """The embedded RDF store of the graph as it is now."""
        # Oxigraph and all that needs it are imported for those who ask it.
        from condgraph.sparql.embedded import BUILDERS, EmbeddedStore
        from condgraph.sparql.layout import checked_base

        snapshot = preferred(self.current)
        if base is not None:
            return EmbeddedStore(snapshot, self.graph, base=checked_base(base))
        # What preferences leave is not stored.
        directory = self.directory if snapshot is self.snapshot else None
        with self._rdf_lock:
            if self._rdf is None or self._rdf[0] is not snapshot:
                self._rdf = snapshot, SharedTask(BUILDERS, lambda: EmbeddedStore(snapshot, self.graph, directory))
            store = self._rdf[1]
        return store.get()

    def sparql(self, text: str, **options: Any) -> Table:
        """The solutions of a SPARQL query that a person wrote."""
        return self.rdf(None).text(text, **options)

    # -- changing ----------------------------------------------------------------------------------

    @abstractmethod
    def known(self, changes: bool) -> Snapshot | None:
        """What the graph holds, for loaders whose sources refer to it; called within a load.
        `changes`: the load changes sources that are there.
        """

    @abstractmethod
    def build(self, read: Read | None, wait: float, plan: Planned | None = None, progress: Progress | None = None) -> Built:
        """Build the next generation from the current one, without what `plan` takes away, and with
        what `read` adds; and switch to it. `wait` is how many seconds to wait for another writer.
        """

    @abstractmethod
    def change(
        self, plan: Planned, read: Read | None, wait: float, names: Sequence[str], progress: Progress | None = None
    ) -> Built:
        """`build` with a change of what is there; `names` are the sources that it is about."""

    def edit(self, make: Make, wait: float) -> tuple[Edit, list[str]]:
        """Make a single change, and store it; what it warns of. `wait` is in seconds."""
        raise errors.UnsupportedError(
            self.place,
            ["single changes"],
            hint="graph.add([...], source=..., replace=True) replaces a source; a folder takes single changes",
        )

    def edits(self) -> list[Edit]:
        """All single changes of the graph, in order."""
        return []

    def compact(self, wait: float) -> int:
        """Merge the changes that wait with the columns; how many there were."""
        return 0

    @abstractmethod
    def abandon(self) -> bool:
        """Take back a load that was ended half way; whether there was one."""

    @abstractmethod
    def delete(self) -> bool:
        """Remove the graph, and nothing that is not its own; whether there was one."""

    @abstractmethod
    def index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        """Encode names and store their vectors with the graph."""


class LocalStorage(Storage):
    """A graph in a folder, memory-mapped, or in memory: the columns of a generation, and the single
    changes since then, which are merged with them when somebody reads.
    """

    def __init__(self, place: str, graph: str, read_only: bool, as_of: AsOf | None = None) -> None:
        super().__init__(place, graph, read_only)
        self._closed = False
        #: The open generation and the changes that wait, replaced together: whoever reads holds no lock.
        self._state: tuple[Snapshot | None, Edits] = (None, Edits())
        #: Where the changes end in the log, and how many there were.
        self._end, self._count = 0, 0
        #: The last state that was merged, and what it gave.
        self._merged: _Merged | None = None
        #: The last snapshot that was queried, its store, and the state of which all further queries ask it.
        self._queried: tuple[Snapshot, Store, object] | None = None
        #: Of a graph in memory, all changes.
        self._all: list[Edit] = []
        self._torn = 0
        #: The earlier version that is open, which stays as it is.
        self.version: Version | None = None
        if as_of is not None:
            self._open_version(as_of)
            return
        if place != "memory:":
            if "://" in place:
                raise errors.OptionError(f"{shown(place)!r} is no directory", hint="condgraph.open takes addresses of servers")
            self.directory = graph_directory(Path(place), graph)
            self._open()

    @property
    def snapshot(self) -> Snapshot | None:
        """The open generation with the changes since then."""
        merged = self._merge()
        return None if merged is None else merged.whole

    @snapshot.setter
    def snapshot(self, snapshot: Snapshot | None) -> None:
        self._state, self._merged, self._queried = (snapshot, Edits()), None, None

    def _merge(self) -> _Merged | None:
        """The open generation with the changes since then, in both forms."""
        state = self._state
        base, waiting = state
        merged = self._merged
        if merged is None or merged.state is not state:
            if base is None and not waiting.count:
                return None
            with self._merging:
                merged = self._merged
                if merged is None or merged.state is not state:
                    partly = merge(base, waiting) if waiting.count or base is None else base
                    merged = self._merged = _Merged(state, partly)
        return merged

    @property
    def _base(self) -> Snapshot | None:
        return self._state[0]

    @property
    def _waiting(self) -> Edits:
        return self._state[1]

    def _open(self) -> None:
        """Open the current generation, and the changes since then."""
        assert self.directory is not None
        for attempt in range(2):
            base = Snapshot.open(self.directory)
            begin, merged = (0, 0) if base is None else base.about.get("edits", (0, 0))
            try:
                tail = read_log(self.directory, begin)
            except errors.StoreDamagedError:
                # The graph may have been removed and loaded again in between.
                if attempt or base is None or is_current(self.directory, base.about):
                    raise
                continue
            break
        self._state, self._merged = (base, Edits.of(map(Edit.read, tail.records))), None
        self._end, self._torn = tail.end, tail.torn
        self._count = merged + self._waiting.count

    def _open_version(self, as_of: AsOf) -> None:
        from condgraph.versions import version_as_of

        if self.place == "memory:" or "://" in self.place:
            raise no_versions(self.place)
        self.read_only = True
        directory = graph_directory(Path(self.place), self.graph)
        self.version = version_as_of(directory, as_of)
        try:
            self.snapshot = Snapshot.open(directory, None if self.version.current else self.version.id)
        except errors.StoreDamagedError:
            # A writer may have removed it in between: then this says so.
            version_as_of(directory, self.version.id)
            raise
        if self.version.current:
            self.directory = directory

    def check_writable(self, wait: float = 0.0) -> None:
        """The same; a version is not changed."""
        if self.version is not None:
            raise errors.ReadOnlyError(
                f"version {self.version.id} of {self.place} is not changed", hint="open the graph without as_of"
            )
        super().check_writable(wait)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Those of the open generation."""
        return self._settings if self._base is None else self._base.about.get("settings", {})

    def configure(self, wait: float = 0.0, **changes: Any) -> None:
        """Change settings, which are stored with the graph; before the first load, with that."""
        self.check_writable()
        with self._lock:
            if self.snapshot is None:
                self._settings = {**self._settings, **changes}
                return
            with self._writing(wait):
                settings = {name: value for name, value in {**self.settings, **changes}.items() if value}
                if self.directory is not None:
                    write_settings(self.directory, settings)
                assert self._base is not None
                self._state = carry_over(self._base, self._base.with_settings(settings)), self._waiting

    @property
    def current(self) -> Snapshot:
        """The open generation; raises `StoreMissingError` where nothing was loaded yet."""
        snapshot = self.snapshot
        if snapshot is None:
            if self._closed:
                raise errors.StoreMissingError("the graph was closed", hint="open it again")
            if self.directory is None:
                raise errors.StoreMissingError("the graph is empty", hint="load something first")
            others = graph_names(Path(self.place))
            hint = f"the graphs here are {', '.join(others)}" if others else "load something first"
            raise errors.StoreMissingError(
                f"there is no graph {self.graph!r} in {self.place}", candidates=errors.nearest(self.graph, others), hint=hint
            )
        return snapshot

    def whole(self) -> Snapshot:
        """The open generation."""
        return self.current

    def close(self) -> None:
        """Let go of the snapshot; answers that were given stay good."""
        self.snapshot, self._rdf, self._closed = None, None, True

    def refresh(self) -> None:
        """Turn to the current generation, and the changes since then."""
        if self.directory is None or self.version is not None:
            return
        with self._lock:
            if self._base is None or not is_current(self.directory, self._base.about):
                self._open()
            elif log_size(self.directory) != self._end + self._torn:
                self._catch_up()

    def _catch_up(self) -> None:
        """Take the changes of others since the last one that is known."""
        assert self.directory is not None
        tail = read_log(self.directory, self._end)
        self._torn = tail.torn
        if tail.records:
            waiting = self._waiting.followed_by(map(Edit.read, tail.records))
            self._state, self._end = (self._base, waiting), tail.end
            self._count += len(tail.records)

    def sources(self, wait: float = 0.0) -> tuple[Source, ...]:
        """The sources of the open generation."""
        snapshot = self.snapshot
        return () if snapshot is None else tuple(map(snapshot.source_of, range(len(snapshot.schema.sources))))

    def status(self, verify: bool) -> Status:
        """What the open generation holds."""
        snapshot = self.current
        if verify:
            snapshot.arrays.verify()
        others = () if self.directory is None else tuple(graph_names(Path(self.place)))
        generation = str(snapshot.about.get("generation", ""))
        notes = []
        if self._waiting:
            count = self._waiting.count
            notes.append(f"{errors.numbered(count, 'single change waits', 'single changes wait')} to be merged")
        notes += self._damage()
        if self._torn:
            notes.append(f"{self._torn} bytes of a change that was not finished are ignored; nobody was told that it was made")
        return Status(
            self.place, self.graph, generation, dict(snapshot.counts), self.sources(), snapshot.arrays.size, verify, others,
            tuple(notes),
        )  # fmt: skip

    def _damage(self) -> list[str]:
        """What to say of earlier versions that cannot be read."""
        if self.directory is None or not self.settings.get("keep"):
            return []
        from condgraph.versions import damage_of

        return damage_of(self.directory)

    def survey(self) -> Survey:
        """Counted from the columns."""
        from condgraph.overview.survey import survey

        return survey(self.current)

    def store(self, engine: str | None) -> Store:
        """The snapshot in process, or its embedded RDF store."""
        if engine is not None:
            return local_store(self, engine)
        queried = self._queried
        if queried is not None and queried[2] is self._state:
            return queried[1]
        merged = self._merge()
        snapshot = self.current if merged is None else merged.for_a_query()
        settled = merged.state if merged is not None and merged.settled else None
        store = queried[1] if queried is not None and queried[0] is snapshot else self._of(snapshot)
        self._queried = snapshot, store, settled
        return store

    def _of(self, snapshot: Snapshot) -> Store:
        store = SnapshotStore(preferred(snapshot))
        # No query of a whole graph leaves out what a preference decides against.
        if store.snapshot is snapshot and not self.preferring:
            snapshot.translate = Translations(self.graph)
        return store

    def known(self, changes: bool) -> Snapshot | None:
        """The open generation."""
        return self.snapshot

    def build(self, read: Read | None, wait: float, plan: Planned | None = None, progress: Progress | None = None) -> Built:
        """Write the next generation, and open it."""
        with self._lock, self._writing(wait):
            return self._built(read, plan, None)

    def build_spilling(self, read: Read, wait: float, plan: Planned, memory: int) -> Built:
        """The same in so many bytes of memory; raises `UnsupportedError` where that cannot be."""
        if self.directory is None:
            raise errors.UnsupportedError(self.place, ["memory="], hint="load into a folder, which the graph is then opened from")
        from condgraph.spilling import spilled

        with self._lock, self._writing(wait), spilled(self.directory, memory) as builder:
            if self.edits():
                raise errors.UnsupportedError(
                    self.place, ["memory= where a graph has single changes"], hint="load without memory=, or into another graph"
                )
            if self._base is not None:
                builder.seed(self._base)
            return self._built(read, plan, builder)

    def _built(self, read: Read | None, plan: Planned | None, spilling: SpillingBuilder | None) -> Built:
        earlier = self.snapshot
        before = {} if earlier is None else dict(earlier.counts)
        changed = Change() if plan is None else plan(self.sources())
        check_edits_stay(changed)
        edits = Edits.of(self.edits())
        builder: Builder = self._waiting.builder(self._base, changed.without) if spilling is None else spilling
        seeded = builder.statements
        if read is not None:
            filled(builder, read)
        read_statements = builder.statements - seeded
        gone = [builder.sources[number].name for number in sorted(builder.emptied)] if read is not None else []
        columns: Mapping[str, Any]
        notes: list[str] = []
        with _in_bounds():
            if spilling is None:
                columns, counts, notes = edits.settled(builder, earlier)
            else:
                columns, counts = spilling.lay_out()
        warnings = [*notes, *changed.warnings, *replaced_by_nothing(gone), *self._undeclared(changed), *builder.warnings]
        fresh = frozenset(builder.declared)
        begun = {builder.source_numbers[name] for name in builder.begun if name in builder.source_numbers}
        further = self._further(builder)
        warnings += self._damage()
        single_valued = list(builder.single_valued)
        builder = Builder()  # what was read leaves memory
        self._replace(columns, counts, further)
        self._settings = {}
        warnings += [*rows_of_several(self.current, fresh), *untimely(self.current, begun)]
        warnings += [
            f"no statement has the predicate {name!r}, which is declared as having one value at a time"
            for name in single_valued
            if self.current.predicate(name) < 0
        ]
        return Built(before, counts, read_statements, warnings)

    def _further(self, builder: Builder) -> dict[str, Any]:
        """What is stored with a generation next to its columns: settings, when each source was last loaded, and what this
        load changed.
        """
        now = time.time()
        settings = dict(self._settings if self.snapshot is None else self.settings)
        if builder.single_valued:
            settings["single_valued"] = {**settings.get("single_valued", {}), **builder.single_valued}
        before: Mapping[str, float] = {} if self.snapshot is None else self.snapshot.about.get("loads", {})
        known = {source.name for source in self.sources()}
        names = [source.name for source in builder.sources]
        # Tables of a folder are sources of their own, and an export brings its own.
        begun = tuple(f"{name}/" for name in builder.begun)
        loaded = [name for name in names if name not in known or name in builder.begun or name.startswith(begun)]
        loads = {name: now if name in loaded else before[name] for name in names if name in loaded or name in before}
        removed = sorted(known - set(names))
        further = {"loads": loads, "change": {"loaded": loaded, "removed": removed}, "written": now}
        return further | ({"settings": settings} if settings else {})

    def change(
        self, plan: Planned, read: Read | None, wait: float, names: Sequence[str], progress: Progress | None = None
    ) -> Built:
        """As `build`."""
        if read is None:
            # A source that is not there is an error before the folder of a new graph is made.
            plan(self.sources(wait))
        return self.build(read, wait, plan)

    def _replace(self, columns: Mapping[str, Any], counts: dict[str, int], further: dict[str, Any]) -> None:
        """Write columns that contain all changes as the next generation, and turn to it."""
        if self.directory is None:
            self.snapshot = carry_over(self._base, Snapshot.of(columns, counts, further))
        else:
            write_generation(
                self.directory, columns, {"graph": self.graph, "counts": counts, **further, "edits": (self._end, self._count)}
            )
            self._open()

    def edit(self, make: Make, wait: float) -> tuple[Edit, list[str]]:
        """Append a change to the log. One of names, memberships or subclasses is merged at once, and so
        are all when many wait.
        """
        with self._lock, self._writing(wait):
            warnings = []
            if self._torn:
                warnings.append(f"a change that was not finished was removed: {self._torn} bytes, which nobody was told of")
            edit = make(EditedContent(self._base, self._waiting), self._count + 1)
            if self.directory is not None:
                self._end = append_record(self.directory, edit.record(), self._end)
                self._torn = 0
            else:
                self._all.append(edit)
            waiting = self._waiting.followed_by([edit])
            self._state = self._base, waiting
            self._count += 1
            if self._base is None or waiting.count >= MOST_WAITING or not is_quick(edit):
                self._compact()
            return edit, warnings

    def edits(self) -> list[Edit]:
        """All changes; of a folder as the log has them now."""
        if self.directory is None:
            return list(self._all)
        return [Edit.read(record) for record in read_log(self.directory).records]

    def compact(self, wait: float) -> int:
        """Write the next generation with the changes that wait."""
        with self._lock, self._writing(wait):
            count = self._waiting.count
            if count:
                self._compact()
            return count

    def _compact(self) -> None:
        builder = self._waiting.builder(self._base)
        with _in_bounds():
            columns, counts = lay_out(builder)
        self._replace(columns, counts, self._further(builder))

    def abandon(self) -> bool:
        """A folder, and memory, hold all of a load or nothing of it."""
        return False

    def delete(self) -> bool:
        """Remove the files that condgraph wrote, by their names."""
        with self._lock:
            there = self.snapshot is not None
            if self.directory is not None:
                there = remove_graph(self.directory)
            self.snapshot = self._rdf = None
            self._all, self._end, self._torn, self._count = [], 0, 0, 0
            return there

    def index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        """Store the vectors with the open generation."""
        from condgraph.vectors.encoders import encoder_of
        from condgraph.vectors.stored import make_vectors

        self.check_writable()
        return make_vectors(self.current, encoder_of(encoder), approximate=faiss, on_progress=progress)[1]

    def _undeclared(self, change: Change) -> list[str]:
        """Warns where an earlier version did not store which source declared an entity."""
        if self.snapshot is None or not change.without:
            return []
        from condgraph.engine.snapshot.build import UNKNOWN, declared

        count = int((declared(self.snapshot).src == UNKNOWN).sum())
        if not count:
            return []
        what = errors.numbered(count, "entity", "entities")
        return [f"nobody knows which source declared {what}, as an earlier version loaded them: they stay, with their names"]

    @contextmanager
    def _writing(self, wait: float) -> Iterator[None]:
        self.check_writable()
        if self.directory is None:
            yield
            return
        with writing(self.directory, wait=wait):
            if self._base is None or not is_current(self.directory, self._base.about):
                self._open()
            else:
                self._catch_up()
            yield


class _Merged:
    """A generation with changes: as a snapshot of which little is made for the first queries, and as a `whole`, which takes
    time once.
    """

    def __init__(self, state: tuple[Snapshot | None, Edits], partly: Snapshot) -> None:
        self.state, self._partly = state, partly
        # Without changes it is whole.
        self._queries = QUERIES_OF_A_PART if partly is state[0] else 0

    @cached_property
    def whole(self) -> Snapshot:
        """The snapshot with each column whole."""
        return self._partly if self._partly is self.state[0] else whole(self._partly)

    @property
    def settled(self) -> bool:
        """Whether all further queries ask the whole."""
        return self._queries > QUERIES_OF_A_PART

    def for_a_query(self) -> Snapshot:
        """The snapshot that one more query is to ask."""
        self._queries += 1
        return self.whole if self.settled else self._partly


def merge(base: Snapshot | None, waiting: Edits) -> Snapshot:
    """A generation with the changes since then, in memory; merged with its columns where that is
    possible, else built again.
    """
    with _in_bounds():
        quick = waiting.quickly_merged(base)
        if quick is not None:
            return quick
        return Snapshot.of(*lay_out(waiting.builder(base)))


class Translations:
    """Plans of a graph of this name as the queries that ask the same of a server it is pushed to."""

    def __init__(self, graph: str) -> None:
        self._graph = graph
        self._compilers: Compilers | None = None

    def __call__(self, snapshot: Snapshot, plan: Node, language: str) -> str:
        """A plan in "cypher", "sparql" or "sql". Raises `UnsupportedError`."""
        from condgraph.questions.translations import Compilers

        compilers = self._compilers = self._compilers or Compilers(snapshot, self._graph)
        if language == "cypher":
            from condgraph.cypher.answer import pasted

            return pasted(*compilers.cypher(plan))
        return compilers.sparql(plan) if language == "sparql" else compilers.sql(plan)


def local_store(storage: Storage, engine: str | None) -> Store:
    """What answers in process."""
    if engine is not None and engine not in ENGINES:
        raise errors.OptionError(f"engine is 'snapshot' or 'sparql', not {engine!r}", candidates=errors.nearest(engine, ENGINES))
    return storage.rdf(None) if engine == "sparql" else SnapshotStore(preferred(storage.current))


def no_versions(place: str) -> errors.UnsupportedError:
    """The error of a graph that has no earlier versions."""
    return errors.UnsupportedError(
        shown(place), ["as_of"],
        hint="versions are stored with graphs in folders: load the sources into one, with graph.keep_versions(10), or "
        "graph.export(...) the graph before each load",
    )  # fmt: skip


def preferred(snapshot: Snapshot) -> Snapshot:
    """What programs are asked on: a snapshot without the statements that declared preferences decide against."""
    if not snapshot.about.get("settings", {}).get("single_valued"):
        return snapshot
    from condgraph.engine.conflicts import declared_in, resolved

    declared = declared_in(snapshot.about)
    return resolved(snapshot, declared).snapshot if any(declared.values()) else snapshot


def check_edits_stay(change: Change) -> None:
    """Raise `SourceError` for a load that takes the source of single changes away."""
    if EDITS in change.without:
        raise errors.SourceError(
            "single changes are not taken away together", hint="retract what was added; add what was retracted"
        )


def replaced_by_nothing(names: Sequence[str]) -> list[str]:
    """Warnings of sources that were replaced by nothing."""
    return [f"there is nothing in what replaces source {name!r}: the graph has no such source now" for name in names]


def filled(builder: Builder, read: Read) -> None:
    """Have everything read into a builder."""
    try:
        with _in_bounds():
            read(builder)
            builder.finish()
    except RecursionError:
        raise errors.LoadError("the source is nested too deeply") from None


def laid_out(builder: Builder) -> Snapshot:
    """What was read as a snapshot in memory."""
    with _in_bounds():
        return Snapshot.of(*lay_out(builder))


@contextmanager
def _in_bounds() -> Iterator[None]:
    """Whole numbers of a graph have a size; those of quantities have none. Memory has one as well."""
    try:
        yield
    except MemoryError:
        raise errors.LoadError("there is not enough memory for what the source holds") from None
    except OverflowError as error:
        raise errors.LoadError(
            "a row number has more than 31 bits, or a bound of a time more than 63", hint="numbers of that size can be quantities"
        ) from error
