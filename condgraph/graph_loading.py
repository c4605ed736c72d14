"""What loads and changes a graph: `load`, `add`, `index`, `abandon`, `delete`, and `unload` of
`changing`.

Each builds the next generation from the one that is there, and switches to it once it is whole.
Graphs on servers have a `_build` of their own (`remote`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from condgraph.changing import Changes, check_kind, emptied, knowing_terms, orphaned, planned, scope_of, unclear
from condgraph.engine.changes import Change
from condgraph.engine.errors import LoadError, OptionError, ReadOnlyError
from condgraph.engine.facts import Item, Source
from condgraph.engine.origins import API
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.declared import rows_of_several
from condgraph.engine.snapshot.directory import remove_graph, write_generation, writing
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.graph_base import GraphBase
from condgraph.loaders.base import OnError, Progress, Reading
from condgraph.reports import LoadReport, report
from condgraph.vectors.carry import carry_over

if TYPE_CHECKING:
    from condgraph.vectors.encoders import Encoder
    from condgraph.vectors.stored import IndexReport


class GraphLoading(Changes, GraphBase):
    """What `Graph` has of loading."""

    def load(
        self,
        source: Any,
        *,
        format: str | None = None,
        name: str | None = None,
        on_error: OnError = "raise",
        progress: Progress | None = None,
        wait: float = 0.0,
        replace: bool = False,
        append: bool = False,
        **options: Any,
    ) -> LoadReport:
        """Load a file, a folder, a zip archive, a glob pattern, an http(s) address, a list of these, or
        a dataframe; all of it or nothing.

        The format is recognised (`format` overrules), and `options` are those of the loader. `name`
        is what the source is called (the file's stem otherwise; a frame gets a name of its own). A
        source that is there already adds nothing; one that has its name and another origin or
        content is a `SourceError`, unless `replace` puts it in the place of that, or `append` adds
        it to that. `on_error="skip"` leaves bad records out and reports them.
        `wait` is how many seconds to wait for another process that is writing.
        """
        from condgraph.loaders.fetch import fetched, is_elsewhere, told_by_address
        from condgraph.loaders.fingerprint import known_by
        from condgraph.loaders.recognise import recognise

        if is_elsewhere(source):
            same: dict[str, Any] = {"format": format, "name": name, "on_error": on_error, "progress": progress, "wait": wait}
            with fetched(source, progress, pages=format is not None) as files:
                return told_by_address(GraphLoading.load(self, files, replace=replace, append=append, **same, **options), files)

        if on_error not in ("raise", "skip"):
            raise OptionError(f"on_error is 'raise' or 'skip', not {on_error!r}")
        if name == "":
            raise OptionError("the name of a source is empty")
        found = recognise(source, format, name=name, encoding=options.get("encoding"), options=options)
        for one in found:
            one.format.check_options(options)
        seen = self._sources(wait)
        given = known_by(found, options, seen, named=name is not None, changes=replace or append)
        begin = time.perf_counter()
        readings: list[Reading] = []
        found, changed = planned(given, (), named=name is not None, replace=False, append=False)

        def change(known: tuple[Source, ...]) -> Change:
            nonlocal found, changed, seen
            seen = known
            found, changed = planned(given, known, named=name is not None, replace=replace, append=append)
            return changed

        def read(builder: Builder) -> None:
            readings.clear()
            for one in found:
                scope = scope_of(one.source, changed, seen)
                reading = Reading(knowing_terms(one.source, changed, seen), on_error, progress, own_rdf=_own_rdf, scope=scope)
                reading.known, reading.gone = partial(self._known, bool(changed)), changed.without
                readings.append(reading)
                builder.added_to(changed.more)
                builder.begin(one.source)
                builder.add(one.format.read(one.data, reading, options))

        if replace or append:
            check_kind(replace, append)
            before, after, statements, warnings = self._change(change, read, wait, [one.source.name for one in given])
            warnings = [*warnings, *orphaned(self)]
        else:
            before, after, statements, warnings = self._build(read, wait)
        names, formats = tuple(one.source.name for one in given), tuple(one.format.name for one in given)
        return report(names, formats, before, after, statements, warnings, readings, begin)

    def add(self, items: Iterable[Item], *, source: str = "api", wait: float = 0.0, replace: bool = False) -> LoadReport:
        """Add items (`engine.facts`) from Python; all of them or nothing. They are added to what
        came from Python under this name before; `replace` puts them in the place of that source.
        """
        if not source:
            raise OptionError("the name of a source is empty")
        begin = time.perf_counter()

        def read(builder: Builder) -> None:
            builder.begin(Source(source, "", API))
            builder.add(items)

        def change(known: tuple[Source, ...]) -> Change:
            return Change(tuple(one.name for one in known if one.name == source))

        if replace:
            before, after, statements, warnings = self._change(change, read, wait, [source])
        else:
            before, after, statements, warnings = self._build(read, wait)
        return report((source,), (API,), before, after, statements, warnings, [], begin)

    def index(
        self,
        encoder: str | os.PathLike[str] | Encoder = "lexical",
        *,
        faiss: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexReport:
        """Encode the names of nodes and predicates, and keep their vectors with the graph; later
        loads encode only what is new.

        `encoder` is `"lexical"`, a folder with a model of sentence-transformers, its name on the
        hub, `"openai:MODEL"`, or an object with `id`, `dimension` and `encode`. It takes the place
        of an encoder that was there before. `faiss` makes an approximate index as well. `progress`
        hears how many texts are encoded, of how many.
        """
        return self._index(encoder, faiss, progress)

    def _index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        from condgraph.vectors.encoders import encoder_of
        from condgraph.vectors.stored import make_vectors

        if self.read_only:
            raise ReadOnlyError.at(self.place)
        return make_vectors(self.current, encoder_of(encoder), approximate=faiss, on_progress=progress)[1]

    def _known(self, changes: bool) -> Snapshot | None:
        """What the graph holds, for loaders whose sources refer to it; called within a load.
        `changes`: the load changes sources that are there.
        """
        return self._snapshot

    def abandon(self) -> bool:
        """Take back a load that was ended half way: the graph holds again what it held before.
        Whether there was one.

        Only a server can be left in the middle of a load: a folder, and memory, hold all of a load
        or nothing of it.
        """
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        return False

    def delete(self) -> bool:
        """Remove the graph, and nothing that is not its own; whether there was one. Other graphs of
        the store stay.

        Of a folder the files that condgraph wrote are removed, by their names. Snapshots and
        answers that were given stay good.
        """
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        with self._lock:
            found = self._snapshot is not None
            if self._directory is not None:
                found = remove_graph(self._directory)
            self._snapshot = self._rdf = None
            return found

    def _build(
        self, read: Any, wait: float, change: Callable[[tuple[Source, ...]], Change] | None = None
    ) -> tuple[dict[str, int], dict[str, int], int, list[str]]:
        """Build the next generation from the current one, without what `change` takes away, and
        with what `read` adds; and switch to it.
        """
        with self._lock, self._writing(wait):
            before = {} if self._snapshot is None else dict(self._snapshot.counts)
            changed = Change() if change is None else change(self._sources())
            builder = Builder(self._snapshot, changed.without)
            seeded = builder.statements
            if read is not None:
                filled(builder, read)
            read_statements = builder.statements - seeded
            empty = emptied(builder) if read is not None else []
            with _in_bounds():
                columns, counts = lay_out(builder)
            warnings = [*changed.warnings, *empty, *unclear(self._snapshot, changed), *builder.warnings]
            fresh = frozenset(builder.declared)
            del builder
            if self._directory is None:
                self._snapshot = carry_over(self._snapshot, Snapshot.of(columns, counts))
            else:
                write_generation(self._directory, columns, {"graph": self.name, "counts": counts})
                self._snapshot = Snapshot.open(self._directory)
            warnings += rows_of_several(self.current, fresh)
        return before, counts, read_statements, warnings

    def _change(
        self, change: Callable[[tuple[Source, ...]], Change], read: Any, wait: float, names: Sequence[str]
    ) -> tuple[dict[str, int], dict[str, int], int, list[str]]:
        """`_build` with a change of what is there; `names` are the sources that it is about."""
        if read is None:
            # Before a place is made for what is not there.
            change(self._sources(wait))
        return self._build(read, wait, change)

    @contextmanager
    def _writing(self, wait: float) -> Iterator[None]:
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        if self._directory is None:
            yield
            return
        with writing(self._directory, wait=wait):
            self._snapshot = Snapshot.open(self._directory)
            yield


def filled(builder: Builder, read: Callable[[Builder], None]) -> None:
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


def _own_rdf(triples: Iterable[Any], base: str) -> Iterator[Item]:
    from condgraph.sparql.load.pull import read_file

    return read_file(triples, base)
