"""Where a graph is stored, with the means to read and change it: a folder or memory here, servers in `remote`.

`Graph` reads and changes graphs through these classes.
"""

from __future__ import annotations

import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from itertools import dropwhile, takewhile
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
    first_settings,
    graph_directory,
    graph_names,
    is_current,
    log_size,
    read_log,
    remove_graph,
    versions,
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

#: The engines that can run a program: the snapshot in process, or SPARQL on an embedded RDF store. The default is the
#: first, and for a graph on a server that server.
ENGINES: Final = ("snapshot", "sparql")

#: Reads sources into a builder.
Read: TypeAlias = Callable[[Builder], None]
#: Makes a change with a number, given the content of the graph.
Make: TypeAlias = Callable[[GraphContent, int], Edit]
#: The number of waiting changes at which a writer merges them into the columns.
MAX_WAITING: Final = 1_000
#: The number of queries after a change that are answered on a partial merge, before all columns are merged.
QUERIES_OF_A_PART: Final = 16
#: Returns what a load does to the existing sources.
Planned: TypeAlias = Callable[[tuple[Source, ...]], Change]


class Storage(ABC):
    """One graph in its place, with the operations to read, change and delete it."""

    #: The default timeout of calls, in seconds; an option of servers.
    timeout: float | None = None
    #: The directory of a graph in a folder, else None.
    directory: Path | None = None
    #: Whether this graph is the result of applying a preference to another one.
    preferring = False
    #: The open generation; None before the first load, and for a graph on a server.
    snapshot: Snapshot | None = None

    def __init__(self, place: str, graph: str, read_only: bool) -> None:
        self.place, self.graph, self.read_only = place, graph, read_only
        self._lock, self._rdf_lock, self._merging = Lock(), Lock(), Lock()
        self._rdf: tuple[Snapshot, SharedTask[EmbeddedStore]] | None = None
        #: The settings of an empty graph or of a graph on a server.
        self._settings: dict[str, Any] = {}

    @property
    def settings(self) -> Mapping[str, Any]:
        """The user's settings for the graph: predicates with one value at a time (`single_valued`) and the rule for
        versions (`keep`).
        """
        return self._settings

    def configure(self, wait: float = 0.0, **changes: Any) -> None:
        """Change settings. Those of a graph on a server last as long as this object."""
        self._settings = {**self._settings, **changes}

    def check_writable(self, wait: float = 0.0) -> None:
        """Raise `ReadOnlyError` if the graph must not be changed, and `OptionError` if `wait`, the time to wait for
        other writers, is not a number of seconds.
        """
        if self.read_only:
            raise errors.ReadOnlyError.at(self.place)
        if not (is_number(wait) and wait >= 0):
            raise errors.OptionError(f"wait is in seconds, 0 or more, not {wait!r}")

    # -- reading -----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def current(self) -> Snapshot:
        """The columns of the current graph."""

    @abstractmethod
    def whole(self) -> Snapshot:
        """Return the complete current graph in process, pulled from a server if necessary."""

    def copied(self) -> Snapshot:
        """Return the complete current graph in process. It is pulled from a server only if it has changed."""
        return self.current

    @abstractmethod
    def close(self) -> None:
        """Release the open snapshot or connection."""

    @abstractmethod
    def refresh(self) -> None:
        """Read the current state of the graph, which another process may have changed."""

    @abstractmethod
    def sources(self, wait: float = 0.0) -> tuple[Source, ...]:
        """Return the sources of the graph; none before the first load."""

    @abstractmethod
    def status(self, verify: bool) -> Status:
        """Return the counts and sources of the graph; `verify` reads every byte."""

    @abstractmethod
    def survey(self) -> Survey:
        """Return the counts for a schema of the graph."""

    @abstractmethod
    def store(self, engine: str | None) -> Store:
        """Return the store that runs programs with an engine. Raises `OptionError` for an unknown engine."""

    def renewed(self, kind: str) -> bool:
        """Return whether the graph has changed since names of a kind were looked up, so that an unknown name may
        exist now.
        """
        return False

    def rdf(self, base: str | None) -> EmbeddedStore:
        """Return the embedded RDF store of the current graph."""
        # Imported late: Oxigraph is needed for this alone.
        from condgraph.sparql.embedded import BUILDERS, EmbeddedStore
        from condgraph.sparql.layout import checked_base

        snapshot = preferred(self.current)
        if base is not None:
            return EmbeddedStore(snapshot, self.graph, base=checked_base(base))
        # The result of applying preferences is not stored.
        directory = self.directory if snapshot is self.snapshot else None
        with self._rdf_lock:
            if self._rdf is None or self._rdf[0] is not snapshot:
                self._rdf = snapshot, SharedTask(BUILDERS, lambda: EmbeddedStore(snapshot, self.graph, directory))
            store = self._rdf[1]
        return store.get()

    def sparql(self, text: str, **options: Any) -> Table:
        """Return the solutions of a SPARQL query written by a user."""
        return self.rdf(None).text(text, **options)

    # -- changing ----------------------------------------------------------------------------------

    @abstractmethod
    def known(self, changes: bool) -> Snapshot | None:
        """Return the content of the graph for loaders whose sources refer to it. It is called during a load;
        `changes` is whether the load changes existing sources.
        """

    @abstractmethod
    def build(self, read: Read | None, wait: float, plan: Planned | None = None, progress: Progress | None = None) -> Built:
        """Build the next generation from the current one, without the sources that `plan` empties and with the items
        that `read` adds, and switch to it. `wait` is how many seconds to wait for another writer.
        """

    @abstractmethod
    def change(
        self, plan: Planned, read: Read | None, wait: float, names: Sequence[str], progress: Progress | None = None
    ) -> Built:
        """Build the next generation with a change of existing sources, those in `names`. Parameters are as for
        `build`.
        """

    def edit(self, make: Make, wait: float) -> tuple[Edit, list[str]]:
        """Make and store a single change, and return it with its warnings. `wait` is in seconds."""
        raise errors.UnsupportedError(
            self.place,
            ["single changes"],
            hint="graph.add([...], source=..., replace=True) replaces a source; a folder takes single changes",
        )

    def edits(self) -> list[Edit]:
        """Return all single changes of the graph, in order."""
        return []

    def compact(self, wait: float) -> int:
        """Merge the waiting changes into the columns, and return their number."""
        return 0

    @abstractmethod
    def abandon(self) -> bool:
        """Undo an interrupted load. Returns whether there was one."""

    @abstractmethod
    def delete(self) -> bool:
        """Delete the graph and nothing else in its place. Returns whether there was a graph."""

    @abstractmethod
    def index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        """Encode names and store their vectors with the graph."""


def _edits_by(directory: Path, ident: str, moment: float) -> Edits:
    """Return the single changes after a version that were made by a moment, while it was the current one."""
    if math.isinf(moment):
        return Edits()
    stored = list(dropwhile(lambda manifest: manifest["generation"] != ident, versions(directory)))
    (begin, merged), *after = [manifest.get("edits", (0, 0)) for manifest in stored]
    # The next version includes the changes up to its own count.
    most = after[0][1] - merged if after else None
    edits = map(Edit.read, read_log(directory, begin).records[:most])
    return Edits.of(takewhile(lambda edit: datetime.fromisoformat(edit.at).timestamp() <= moment, edits))


class LocalStorage(Storage):
    """A graph in a folder, memory-mapped, or in memory.

    It consists of the columns of a generation and the single changes since then, which are merged when the graph is
    read.
    """

    def __init__(self, place: str, graph: str, read_only: bool, as_of: AsOf | None = None) -> None:
        super().__init__(place, graph, read_only)
        self._closed = False
        #: The open generation and the waiting changes, always replaced together, so that readers need no lock.
        self._state: tuple[Snapshot | None, Edits] = (None, Edits())
        #: The position in the log after the last known change, and the number of changes up to there.
        self._end, self._count = 0, 0
        #: The last state that was merged, with the result.
        self._merged: _Merged | None = None
        #: The last queried snapshot, its store, and the state whose further queries all use it (None: undecided).
        self._queried: tuple[Snapshot, Store, object] | None = None
        #: All changes of a graph in memory.
        self._all: list[Edit] = []
        self._torn = 0
        #: The earlier version that is open, which never changes.
        self.version: Version | None = None
        if as_of is not None:
            self._open_version(as_of)
            return
        if place != "memory:":
            if "://" in place:
                raise errors.OptionError(f"{shown(place)!r} is not a directory", hint="condgraph.open takes addresses of servers")
            self.directory = graph_directory(Path(place), graph)
            self._open()

    @property
    def snapshot(self) -> Snapshot | None:
        """The open generation with the changes since then, or None before the first load."""
        merged = self._merge()
        return None if merged is None else merged.whole

    @snapshot.setter
    def snapshot(self, snapshot: Snapshot | None) -> None:
        self._state, self._merged, self._queried = (snapshot, Edits()), None, None

    def _merge(self) -> _Merged | None:
        """Merge the open generation with the changes since then, unless that is done."""
        state = self._state
        base, waiting = state
        merged = self._merged
        if merged is None or merged.state is not state:
            if base is None and not waiting.count:
                return None
            with self._merging:
                merged = self._merged
                if merged is None or merged.state is not state:
                    partial = merge(base, waiting) if waiting.count or base is None else base
                    merged = self._merged = _Merged(state, partial)
        return merged

    @property
    def _base(self) -> Snapshot | None:
        return self._state[0]

    @property
    def _waiting(self) -> Edits:
        return self._state[1]

    def _open(self) -> None:
        """Open the current generation and read the changes since then."""
        assert self.directory is not None
        for attempt in range(2):
            base = Snapshot.open(self.directory)
            if base is None:
                self._settings = {**first_settings(self.directory), **self._settings}
            begin, merged = (0, 0) if base is None else base.about.get("edits", (0, 0))
            try:
                tail = read_log(self.directory, begin)
            except errors.StoreDamagedError:
                # The graph may have been deleted and loaded again in the meantime.
                if attempt or base is None or is_current(self.directory, base.about):
                    raise
                continue
            break
        self._state, self._merged = (base, Edits.of(map(Edit.read, tail.records))), None
        self._end, self._torn = tail.end, tail.torn
        self._count = merged + self._waiting.count

    def _open_version(self, as_of: AsOf) -> None:
        from condgraph.versions import moment_of, version_as_of

        if self.place == "memory:" or "://" in self.place:
            raise no_versions(self.place)
        self.read_only = True
        directory = graph_directory(Path(self.place), self.graph)
        self.version = version_as_of(directory, as_of)
        try:
            base = Snapshot.open(directory, None if self.version.current else self.version.id)
            self._state = base, _edits_by(directory, self.version.id, moment_of(as_of))
        except errors.StoreDamagedError:
            # A writer may have removed the version in the meantime; then this raises the fitting error.
            version_as_of(directory, self.version.id)
            raise
        if self.version.current:
            self.directory = directory

    def check_writable(self, wait: float = 0.0) -> None:
        """Raise `ReadOnlyError` if the graph is read-only or an earlier version is open, and `OptionError` for an
        invalid `wait`.
        """
        if self.version is not None:
            raise errors.ReadOnlyError(
                f"version {self.version.id} of {self.place} is not changed", hint="open the graph without as_of"
            )
        super().check_writable(wait)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the open generation."""
        return self._settings if self._base is None else self._base.about.get("settings", {})

    def configure(self, wait: float = 0.0, **changes: Any) -> None:
        """Change settings, which are stored with the graph, also before the first load."""
        self.check_writable()
        with self._lock:
            if self.snapshot is None:
                self._settings = {**self._settings, **changes}
                if self.directory is not None:
                    with self._writing(wait):
                        write_settings(self.directory, self._settings)
                return
            with self._writing(wait):
                settings = {name: value for name, value in {**self.settings, **changes}.items() if value}
                if self.directory is not None:
                    write_settings(self.directory, settings)
                assert self._base is not None
                self._state = carry_over(self._base, self._base.with_settings(settings)), self._waiting

    @property
    def current(self) -> Snapshot:
        """The open generation. Raises `StoreMissingError` if nothing was loaded yet."""
        snapshot = self.snapshot
        if snapshot is None:
            if self._closed:
                raise errors.StoreMissingError("the graph was closed", hint="open it again")
            if self.directory is None:
                raise errors.StoreMissingError("the graph is empty", hint="load something first")
            graphs = graph_names(Path(self.place))
            hint = f"the graphs here are {', '.join(graphs)}" if graphs else "load something first"
            raise errors.StoreMissingError(
                f"there is no graph {self.graph!r} in {self.place}", candidates=errors.nearest(self.graph, graphs), hint=hint
            )
        return snapshot

    def whole(self) -> Snapshot:
        return self.current

    def close(self) -> None:
        """Release the snapshot. Answers remain valid."""
        self.snapshot, self._rdf, self._closed = None, None, True

    def refresh(self) -> None:
        """Open the current generation if there is a new one, and read new changes."""
        if self.directory is None or self.version is not None:
            return
        with self._lock:
            if self._base is None or not is_current(self.directory, self._base.about):
                self._open()
            elif log_size(self.directory) != self._end + self._torn:
                self._catch_up()

    def _catch_up(self) -> None:
        """Read the changes that other processes made since the last known one."""
        assert self.directory is not None
        tail = read_log(self.directory, self._end)
        self._torn = tail.torn
        if tail.records:
            waiting = self._waiting.followed_by(map(Edit.read, tail.records))
            self._state, self._end = (self._base, waiting), tail.end
            self._count += len(tail.records)

    def sources(self, wait: float = 0.0) -> tuple[Source, ...]:
        snapshot = self.snapshot
        return () if snapshot is None else tuple(map(snapshot.source_of, range(len(snapshot.schema.sources))))

    def status(self, verify: bool) -> Status:
        """Return the counts and sources of the open generation; `verify` reads every byte."""
        snapshot = self.current
        if verify:
            snapshot.arrays.verify()
        graphs = () if self.directory is None else tuple(graph_names(Path(self.place)))
        generation = str(snapshot.about.get("generation", ""))
        notes = []
        if self._waiting:
            count = self._waiting.count
            notes.append(f"{errors.numbered(count, 'single change waits', 'single changes wait')} to be merged")
        notes += self._damage()
        if self._torn:
            notes.append(f"{self._torn} bytes of an unfinished change are ignored; no call had reported it as done")
        return Status(
            self.place, self.graph, generation, dict(snapshot.counts), self.sources(), snapshot.arrays.size, verify, graphs,
            tuple(notes),
        )  # fmt: skip

    def _damage(self) -> list[str]:
        """Return warnings about earlier versions that cannot be read."""
        if self.directory is None or not self.settings.get("keep"):
            return []
        from condgraph.versions import damage_of

        return damage_of(self.directory)

    def survey(self) -> Survey:
        from condgraph.overview.survey import survey

        return survey(self.current)

    def store(self, engine: str | None) -> Store:
        """Return the snapshot in process, or its embedded RDF store."""
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
        # With preferences there is no translation: on another store, the query would also find the statements that they exclude.
        if store.snapshot is snapshot and not self.preferring:
            snapshot.translate = Translations(self.graph)
        return store

    def known(self, changes: bool) -> Snapshot | None:
        return self.snapshot

    def build(self, read: Read | None, wait: float, plan: Planned | None = None, progress: Progress | None = None) -> Built:
        """Write the next generation and open it."""
        with self._lock, self._writing(wait):
            return self._built(read, plan, None)

    def build_spilling(self, read: Read, wait: float, plan: Planned, memory: int) -> Built:
        """Write the next generation with at most `memory` bytes of memory, and open it. Raises `UnsupportedError` if
        that is impossible.
        """
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
        emptied = [builder.sources[number].name for number in sorted(builder.emptied)] if read is not None else []
        columns: Mapping[str, Any]
        notes: list[str] = []
        with _in_bounds():
            if spilling is None:
                columns, counts, notes = edits.settled(builder, earlier)
            else:
                columns, counts = spilling.lay_out()
        warnings = [*notes, *changed.warnings, *replaced_by_nothing(emptied), *self._undeclared(changed), *builder.warnings]
        new_declarations = frozenset(builder.declared)
        loaded_sources = {builder.source_numbers[name] for name in builder.begun if name in builder.source_numbers}
        metadata = self._further(builder)
        warnings += self._damage()
        single_valued = list(builder.single_valued)
        builder = Builder()  # frees the memory of the items
        self._replace(columns, counts, metadata)
        self._settings = {}
        warnings += [*rows_of_several(self.current, new_declarations), *untimely(self.current, loaded_sources)]
        warnings += [
            f"no statement has the predicate {name!r}, which is declared as having one value at a time"
            for name in single_valued
            if self.current.predicate(name) < 0
        ]
        return Built(before, counts, read_statements, warnings)

    def _further(self, builder: Builder) -> dict[str, Any]:
        """Return the metadata of a generation: settings, the time of the last load of each source, and what this load
        changed.
        """
        now = time.time()
        settings = dict(self._settings if self.snapshot is None else self.settings)
        if builder.single_valued:
            settings["single_valued"] = {**settings.get("single_valued", {}), **builder.single_valued}
        before: Mapping[str, float] = {} if self.snapshot is None else self.snapshot.about.get("loads", {})
        known_sources = {source.name for source in self.sources()}
        names = [source.name for source in builder.sources]
        # Each table of a folder is a source, and an export contains sources.
        table_prefixes = tuple(f"{name}/" for name in builder.begun)
        loaded = [name for name in names if name not in known_sources or name in builder.begun or name.startswith(table_prefixes)]
        loads = {name: now if name in loaded else before[name] for name in names if name in loaded or name in before}
        removed = sorted(known_sources - set(names))
        metadata = {"loads": loads, "change": {"loaded": loaded, "removed": removed}, "written": now}
        return metadata | ({"settings": settings} if settings else {})

    def change(
        self, plan: Planned, read: Read | None, wait: float, names: Sequence[str], progress: Progress | None = None
    ) -> Built:
        if read is None:
            # An unknown source must raise before the directory of a new graph is created.
            plan(self.sources(wait))
        return self.build(read, wait, plan)

    def _replace(self, columns: Mapping[str, Any], counts: dict[str, int], further: dict[str, Any]) -> None:
        """Write columns that contain all changes as the next generation, and open it."""
        if self.directory is None:
            self.snapshot = carry_over(self._base, Snapshot.of(columns, counts, further))
        else:
            write_generation(
                self.directory, columns, {"graph": self.graph, "counts": counts, **further, "edits": (self._end, self._count)}
            )
            self._open()

    def edit(self, make: Make, wait: float) -> tuple[Edit, list[str]]:
        """Append a change to the log. The waiting changes are merged at once if the change is about names,
        memberships or subclasses, or if many changes wait.
        """
        with self._lock, self._writing(wait):
            warnings = []
            if self._torn:
                warnings.append(f"an unfinished change was removed: {self._torn} bytes, which no call had reported as done")
            edit = make(EditedContent(self._base, self._waiting), self._count + 1)
            if self.directory is not None:
                self._end = append_record(self.directory, edit.record(), self._end)
                self._torn = 0
            else:
                self._all.append(edit)
            waiting = self._waiting.followed_by([edit])
            self._state = self._base, waiting
            self._count += 1
            if self._base is None or waiting.count >= MAX_WAITING or not is_quick(edit):
                self._compact()
            return edit, warnings

    def edits(self) -> list[Edit]:
        """Return all changes; those of a graph in a folder are read from the log."""
        if self.directory is None:
            return list(self._all)
        return [Edit.read(record) for record in read_log(self.directory).records]

    def compact(self, wait: float) -> int:
        """Write the next generation with the waiting changes merged, and return their number."""
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
        """Return False: a load in a folder or in memory takes effect completely or not at all."""
        return False

    def delete(self) -> bool:
        """Delete the files written by condgraph, by their names."""
        with self._lock:
            existed = self.snapshot is not None
            if self.directory is not None:
                existed = remove_graph(self.directory)
            self.snapshot = self._rdf = None
            self._all, self._end, self._torn, self._count = [], 0, 0, 0
            return existed

    def index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        from condgraph.vectors.encoders import encoder_of
        from condgraph.vectors.stored import make_vectors

        self.check_writable()
        return make_vectors(self.current, encoder_of(encoder), approximate=faiss, on_progress=progress)[1]

    def _undeclared(self, change: Change) -> list[str]:
        """Warn about entities whose declaring source is unknown, because an earlier release of condgraph did not
        store it.
        """
        if self.snapshot is None or not change.without:
            return []
        from condgraph.engine.snapshot.build import UNKNOWN, declared

        count = int((declared(self.snapshot).src == UNKNOWN).sum())
        if not count:
            return []
        what = errors.numbered(count, "entity keeps its name", "entities keep their names")
        return [f"{what}: an earlier version loaded the graph, and did not record which source declared them"]

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
    """A generation with changes: for the first queries as a snapshot that is partly merged, which is fast to make,
    and later as a `whole`, which takes time once.
    """

    def __init__(self, state: tuple[Snapshot | None, Edits], partly: Snapshot) -> None:
        self.state, self._partly = state, partly
        # Without changes nothing remains to be merged.
        self._queries = QUERIES_OF_A_PART if partly is state[0] else 0

    @cached_property
    def whole(self) -> Snapshot:
        """The snapshot with all columns merged."""
        return self._partly if self._partly is self.state[0] else whole(self._partly)

    @property
    def settled(self) -> bool:
        """Whether all further queries use the whole snapshot."""
        return self._queries > QUERIES_OF_A_PART

    def for_a_query(self) -> Snapshot:
        """Count a query, and return the snapshot that it should use."""
        self._queries += 1
        return self.whole if self.settled else self._partly


def merge(base: Snapshot | None, waiting: Edits) -> Snapshot:
    """Merge the waiting changes into a generation, in memory: into its columns if possible, else by building them
    again.
    """
    with _in_bounds():
        merged = waiting.quickly_merged(base)
        if merged is not None:
            return merged
        return Snapshot.of(*lay_out(waiting.builder(base)))


class Translations:
    """Translates plans of a graph into queries for a server that the graph is pushed to under this name."""

    def __init__(self, graph: str) -> None:
        self._graph = graph
        self._compilers: Compilers | None = None

    def __call__(self, snapshot: Snapshot, plan: Node, language: str) -> str:
        """Return a plan as a query in "cypher", "sparql" or "sql". Raises `UnsupportedError`."""
        from condgraph.questions.translations import Compilers

        compilers = self._compilers = self._compilers or Compilers(snapshot, self._graph)
        if language == "cypher":
            from condgraph.cypher.answer import pasted

            return pasted(*compilers.cypher(plan))
        return compilers.sparql(plan) if language == "sparql" else compilers.sql(plan)


def local_store(storage: Storage, engine: str | None) -> Store:
    """Return the store that runs programs in process with an engine. Raises `OptionError` for an unknown engine."""
    if engine is not None and engine not in ENGINES:
        raise errors.OptionError(f"engine is 'snapshot' or 'sparql', not {engine!r}", candidates=errors.nearest(engine, ENGINES))
    return storage.rdf(None) if engine == "sparql" else SnapshotStore(preferred(storage.current))


def no_versions(place: str) -> errors.UnsupportedError:
    """Return the error for a graph that has no earlier versions."""
    return errors.UnsupportedError(
        shown(place), ["as_of"],
        hint="versions are stored with graphs in folders: load the sources into one, with graph.keep_versions(10), or "
        "graph.export(...) the graph before each load",
    )  # fmt: skip


def preferred(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot that programs query: without the statements that the declared preferences decide against."""
    if not snapshot.about.get("settings", {}).get("single_valued"):
        return snapshot
    from condgraph.engine.conflicts import declared_in, resolved

    declared = declared_in(snapshot.about)
    return resolved(snapshot, declared).snapshot if any(declared.values()) else snapshot


def check_edits_stay(change: Change) -> None:
    """Raise `SourceError` for a load that removes the source of single changes."""
    if EDITS in change.without:
        raise errors.SourceError(
            "single changes are not taken away together", hint="retract what was added; add what was retracted"
        )


def replaced_by_nothing(names: Sequence[str]) -> list[str]:
    """Return a warning for each source whose replacement is empty."""
    return [f"the replacement of source {name!r} is empty: the graph no longer has this source" for name in names]


def filled(builder: Builder, read: Read) -> None:
    """Read everything into a builder. Raises `LoadError` if a source is nested too deeply, or exceeds memory or a
    size limit.
    """
    try:
        with _in_bounds():
            read(builder)
            builder.finish()
    except RecursionError:
        raise errors.LoadError("the source is nested too deeply") from None


def laid_out(builder: Builder) -> Snapshot:
    """Return the content of a builder as a snapshot in memory."""
    with _in_bounds():
        return Snapshot.of(*lay_out(builder))


@contextmanager
def _in_bounds() -> Iterator[None]:
    """Raise `LoadError` when memory is exhausted, or a row number or a bound of a time is too large for its column."""
    try:
        yield
    except MemoryError:
        raise errors.LoadError("there is not enough memory for what the source holds") from None
    except OverflowError as error:
        raise errors.LoadError(
            "a row number has more than 31 bits, or a bound of a time more than 63", hint="numbers of that size can be quantities"
        ) from error
