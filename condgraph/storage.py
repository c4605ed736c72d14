"""Where a graph is stored: a folder or memory here, a server in `remote`. `Graph` reads and changes
it through these objects.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.engine.addresses import shown
from condgraph.engine.changes import Change
from condgraph.engine.errors import (
    LoadError,
    OptionError,
    ReadOnlyError,
    StoreDamagedError,
    StoreMissingError,
    UnsupportedError,
    nearest,
    numbered,
)
from condgraph.engine.facts import Source
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.declared import rows_of_several
from condgraph.engine.snapshot.directory import (
    graph_directory,
    graph_names,
    is_current,
    remove_graph,
    write_generation,
    write_settings,
    writing,
)
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.workers import Once
from condgraph.loaders.base import Progress
from condgraph.reports import Built, Status
from condgraph.snapshot_store import SnapshotStore
from condgraph.vectors.carry import carry_over

if TYPE_CHECKING:
    from condgraph.engine.store import Store
    from condgraph.overview.survey import Survey
    from condgraph.sparql.embedded import EmbeddedStore
    from condgraph.sparql.text.table import Table
    from condgraph.vectors.encoders import Encoder
    from condgraph.vectors.stored import IndexReport
    from condgraph.versions import AsOf, Version

#: What answers: the snapshot in process, or SPARQL on an RDF store; by default the first, and for a
#: graph on a server that server.
ENGINES: Final = ("snapshot", "sparql")

#: Reads sources into a builder.
Read: TypeAlias = Callable[[Builder], None]
#: What a load does to the sources that are there.
Planned: TypeAlias = Callable[[tuple[Source, ...]], Change]


class Storage(ABC):
    """One graph where it is stored: read, changed and removed there."""

    #: The timeout of calls that are given none; servers have it as an option.
    timeout: float | None = None
    #: The folder of a graph that is in one.
    directory: Path | None = None
    #: The generation that is open in process; None before the first load, and on a server.
    snapshot: Snapshot | None = None

    def __init__(self, place: str, graph: str, read_only: bool) -> None:
        self.place, self.graph, self.read_only = place, graph, read_only
        self._lock, self._rdf_lock = Lock(), Lock()
        self._rdf: tuple[Snapshot, Once[EmbeddedStore]] | None = None
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

    def check_writable(self) -> None:
        """Raise `ReadOnlyError` where the graph is not to be changed."""
        if self.read_only:
            raise ReadOnlyError.at(self.place)

    # -- reading -----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def current(self) -> Snapshot:
        """The columns of the graph as they are now."""

    @abstractmethod
    def whole(self) -> Snapshot:
        """The whole graph as it is now, in process; pulled from a server."""

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
                self._rdf = snapshot, Once(BUILDERS, lambda: EmbeddedStore(snapshot, self.graph, directory))
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
    """A graph in a folder, memory-mapped, or in memory."""

    def __init__(self, place: str, graph: str, read_only: bool, as_of: AsOf | None = None) -> None:
        super().__init__(place, graph, read_only)
        self._closed = False
        #: The earlier version that is open, which stays as it is.
        self.version: Version | None = None
        if as_of is not None:
            self._open_version(as_of)
            return
        if place != "memory:":
            if "://" in place:
                raise OptionError(f"{shown(place)!r} is no directory", hint="condgraph.open takes addresses of servers")
            self.directory = graph_directory(Path(place), graph)
            self.snapshot = Snapshot.open(self.directory)

    def _open_version(self, as_of: AsOf) -> None:
        from condgraph.versions import version_as_of

        if self.place == "memory:" or "://" in self.place:
            raise no_versions(self.place)
        self.read_only = True
        directory = graph_directory(Path(self.place), self.graph)
        self.version = version_as_of(directory, as_of)
        try:
            self.snapshot = Snapshot.open(directory, None if self.version.current else self.version.id)
        except StoreDamagedError:
            # A writer may have removed it in between: then this says so.
            version_as_of(directory, self.version.id)
            raise
        if self.version.current:
            self.directory = directory

    def check_writable(self) -> None:
        """Raise `ReadOnlyError` where the graph is not to be changed."""
        if self.version is not None:
            raise ReadOnlyError(f"version {self.version.id} of {self.place} is not changed", hint="open the graph without as_of")
        super().check_writable()

    @property
    def settings(self) -> Mapping[str, Any]:
        """Those of the open generation."""
        return self._settings if self.snapshot is None else self.snapshot.about.get("settings", {})

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
                self.snapshot = carry_over(self.snapshot, self.snapshot.with_settings(settings))

    @property
    def current(self) -> Snapshot:
        """The open generation; raises `StoreMissingError` where nothing was loaded yet."""
        snapshot = self.snapshot
        if snapshot is None:
            if self._closed:
                raise StoreMissingError("the graph was closed", hint="open it again")
            if self.directory is None:
                raise StoreMissingError("the graph is empty", hint="load something first")
            others = graph_names(Path(self.place))
            hint = f"the graphs here are {', '.join(others)}" if others else "load something first"
            raise StoreMissingError(
                f"there is no graph {self.graph!r} in {self.place}", candidates=nearest(self.graph, others), hint=hint
            )
        return snapshot

    def whole(self) -> Snapshot:
        """The open generation."""
        return self.current

    def close(self) -> None:
        """Let go of the snapshot; answers that were given stay good."""
        self.snapshot, self._rdf, self._closed = None, None, True

    def refresh(self) -> None:
        """Turn to the current generation."""
        if (
            self.directory is None
            or self.version is not None
            or (self.snapshot is not None and is_current(self.directory, self.snapshot.about))
        ):
            return
        self.snapshot = Snapshot.open(self.directory)

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
        return Status(
            self.place, self.graph, generation, dict(snapshot.counts), self.sources(), snapshot.arrays.size, verify, others
        )

    def survey(self) -> Survey:
        """Counted from the columns."""
        from condgraph.overview.survey import survey

        return survey(self.current)

    def store(self, engine: str | None) -> Store:
        """The snapshot in process, or its embedded RDF store."""
        return local_store(self, engine)

    def known(self, changes: bool) -> Snapshot | None:
        """The open generation."""
        return self.snapshot

    def build(self, read: Read | None, wait: float, plan: Planned | None = None, progress: Progress | None = None) -> Built:
        """Write the next generation, and open it."""
        with self._lock, self._writing(wait):
            before = {} if self.snapshot is None else dict(self.snapshot.counts)
            changed = Change() if plan is None else plan(self.sources())
            builder = Builder(self.snapshot, changed.without)
            seeded = builder.statements
            if read is not None:
                filled(builder, read)
            read_statements = builder.statements - seeded
            gone = [builder.sources[number].name for number in sorted(builder.emptied)] if read is not None else []
            with _in_bounds():
                columns, counts = lay_out(builder)
            warnings = [*changed.warnings, *replaced_by_nothing(gone), *self._undeclared(changed), *builder.warnings]
            fresh = frozenset(builder.declared)
            further = self._further(builder)
            single_valued = list(builder.single_valued)
            del builder
            if self.directory is None:
                self.snapshot = carry_over(self.snapshot, Snapshot.of(columns, counts, further))
            else:
                write_generation(self.directory, columns, {"graph": self.graph, "counts": counts, **further})
                self.snapshot = Snapshot.open(self.directory)
            self._settings = {}
            warnings += rows_of_several(self.current, fresh)
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
        from condgraph.engine.snapshot.declared import UNKNOWN, declared

        count = int((declared(self.snapshot).src == UNKNOWN).sum())
        if not count:
            return []
        what = numbered(count, "entity", "entities")
        return [f"nobody knows which source declared {what}, as an earlier version loaded them: they stay, with their names"]

    @contextmanager
    def _writing(self, wait: float) -> Iterator[None]:
        self.check_writable()
        if self.directory is None:
            yield
            return
        with writing(self.directory, wait=wait):
            self.snapshot = Snapshot.open(self.directory)
            yield


def local_store(storage: Storage, engine: str | None) -> Store:
    """What answers in process."""
    if engine is not None and engine not in ENGINES:
        raise OptionError(f"engine is 'snapshot' or 'sparql', not {engine!r}", candidates=nearest(engine, ENGINES))
    return storage.rdf(None) if engine == "sparql" else SnapshotStore(preferred(storage.current))


def no_versions(place: str) -> UnsupportedError:
    """The error of a graph that has no earlier versions."""
    return UnsupportedError(
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
        raise LoadError("the source is nested too deeply") from None


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
        raise LoadError("there is not enough memory for what the source holds") from None
    except OverflowError as error:
        raise LoadError(
            "a row number has more than 31 bits, or a bound of a time more than 63", hint="numbers of that size can be quantities"
        ) from error
