"""What loads and changes a graph: `load`, `add`, `index`, `abandon`, `delete`, and `unload` of
`changing`.

Each builds the next generation from the one that is there, and switches to it once it is whole.
Graphs on servers have a `_build` of their own (`remote`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Never

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


#: The parameters of `load` that are no options of a format.
_OF_LOADS: Final = frozenset(("self", "source", "format", "name", "on_error", "progress", "wait", "replace", "append", "unknown"))


class GraphLoading(Changes, GraphBase):
    """What `Graph` has of loading."""

    def load(
        self,
        /,
        source: Any,
        *,
        format: str | None = None,
        name: str | None = None,
        on_error: OnError = "raise",
        progress: Progress | None = None,
        wait: float = 0.0,
        replace: bool = False,
        append: bool = False,
        key: str | None = None,
        name_column: str | None = None,
        refs: str | Sequence[str] | None = None,
        join: Mapping[str, Any] | Literal[False] | None = None,
        types: Mapping[str, str] | str | None = None,
        missing: str | Sequence[str] | None = None,
        decimal: str | None = None,
        day_first: bool | None = None,
        seasons: bool | None = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        dialect: str | None = None,
        header: bool | None = None,
        comment: str | None = None,
        skip: int | None = None,
        longest_cell: int | None = None,
        sheets: str | Sequence[str] | None = None,
        split: bool | None = None,
        tables: str | Sequence[str] | None = None,
        primary: Mapping[str, str | Sequence[str]] | None = None,
        name_columns: Mapping[str, str] | None = None,
        relations: Mapping[str, str] | Sequence[str] | None = None,
        declaration: str | os.PathLike[str] | Literal[False] | None = None,
        keys: Mapping[str, Any] | Literal[False] | None = None,
        columns: str | Sequence[str] | None = None,
        objects: str | None = None,
        names: str | os.PathLike[str] | Mapping[str, str] | None = None,
        relation_names: str | os.PathLike[str] | Mapping[str, str] | None = None,
        id_prefix: str | None = None,
        instance_of: str | Sequence[str] | None = None,
        subclass_of: str | Sequence[str] | None = None,
        concepts: bool | None = None,
        syntax: str | None = None,
        base: str | None = None,
        labels: str | Sequence[str] | None = None,
        language: str | None = None,
        collapse: str | None = None,
        collapse_to: str | Sequence[str] | None = None,
        array_delimiter: str | None = None,
        edge_ids: bool | None = None,
        **unknown: Never,
    ) -> LoadReport:
        """Load a file, a folder, a zip archive, a glob pattern, an http(s) address, a list of these, or
        a dataframe; all of it or nothing.

        A source that is there already adds nothing; one that has its name and another origin or
        content is a `SourceError`, unless `replace` or `append` is set. An option that the format of
        a source does not have is an `OptionError` that names the nearest one.

        Of every source:

        - `format`: what to read it as; recognised from its content by default
        - `name`: what it is called; the file's stem by default, a name of its own for a dataframe
        - `on_error`: "raise", or "skip" to leave bad records out and report them
        - `progress`: is called with the location, the records read, and the fraction read
        - `wait`: how many seconds to wait for another process that is writing
        - `replace`: put it in the place of the source of its name
        - `append`: add it to the source of its name
        - `encoding`: of texts; UTF-8, or what a byte order mark says, or found by its bytes

        Of tables (CSV, JSON, Parquet, dataframes):

        - `key`: the column that identifies the rows: its cells are their ids and names
        - `name_column`: the column that names the rows
        - `refs`: columns whose cells are names of entities rather than values
        - `join`: columns that refer to rows of other sources: `{"country": "countries.country"}`
        - `types`: how columns are read: `{column: "text"}`, "number", "time" or "auto"
        - `missing`: further texts that stand for a missing cell
        - `decimal`: what is before decimals, "," or "."
        - `day_first`: whether 03/05/2010 is the third of May
        - `seasons`: whether 2004-05 is the years 2004 and 2005 rather than May 2004
        - `delimiter`: the character between fields; for triples "" is any run of white space
        - `dialect`: the way of quoting: "excel", "backslash" or "plain"
        - `header`: whether the first record names the columns
        - `comment`: what lines of comment begin with
        - `skip`: lines above the header, which are left out
        - `longest_cell`: characters that a cell may have

        Of several tables with keys between them (folders, workbooks, databases), besides:

        - `tables`: the tables or views of a database to load
        - `sheets`: the sheets of a workbook to load
        - `split`: whether blank columns divide a sheet into tables
        - `primary`: columns that identify the rows of a table: `{"orders": "orderID"}`
        - `name_columns`: columns that name the rows: `{"products": "productName"}`
        - `relations`: tables whose rows are relations with qualifiers: `["order-details"]`
        - `declaration`: the file that states all this (`condgraph.toml`); False: none
        - `keys`: the same as `join`

        Of triples, temporal facts and Wikidata:

        - `columns`: what the columns are, in the file's order: "head, tail, relation"
        - `objects`: tails are "entities", "values" or "auto"
        - `names`: file of id and name, or a mapping, for entities; of RDF "iri" or "local"
        - `relation_names`: file of id and name, or a mapping, for relations
        - `id_prefix`: text before every entity id, so that ids of several sources do not collide
        - `instance_of`: relations that say that a subject is an instance of its object
        - `subclass_of`: relations that say that a subject lies under its object
        - `concepts`: whether these also declare concepts

        Of RDF and property graphs:

        - `syntax`: "turtle", "trig", "ntriples", "nquads", "rdfxml", "n3" or "jsonld"
        - `base`: the absolute IRI that relative ones start from
        - `labels`: predicates that give names, best first
        - `language`: language of the labels that are preferred as names
        - `collapse`: which nodes that hold a fact together become statements with qualifiers
        - `collapse_to`: predicates that lead from such a node to the object of its statement
        - `array_delimiter`: what is between the elements of a list in a property graph
        - `edge_ids`: whether ids of relationships are kept, as qualifiers
        """
        given = locals()
        options = {option: value for option, value in given.items() if option not in _OF_LOADS and value is not None}
        return self._load(
            source, options | unknown, format=format, name=name, on_error=on_error, progress=progress, wait=wait, replace=replace,
            append=append,
        )  # fmt: skip

    def _load(
        self,
        source: Any,
        options: dict[str, Any],
        *,
        format: str | None,
        name: str | None,
        on_error: OnError,
        progress: Progress | None,
        wait: float,
        replace: bool,
        append: bool,
    ) -> LoadReport:
        from condgraph.loaders.fetch import fetched, is_elsewhere, told_by_address
        from condgraph.loaders.recognise import known_by, recognise

        if is_elsewhere(source):
            with fetched(source, progress, pages=format is not None) as files:
                loaded = self._load(
                    files, options, format=format, name=name, on_error=on_error, progress=progress, wait=wait, replace=replace,
                    append=append,
                )  # fmt: skip
                return told_by_address(loaded, files)

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
