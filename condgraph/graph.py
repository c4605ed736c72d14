"""The public API: the class `Graph`, and `GraphAt` for a graph as of a time.

Most methods call another module: `storage` stores and changes a graph, `loading` does loads, and each subject
(questions in words, chains, links) has its methods in its own package.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final, Literal, Never, Self, cast, overload

from condgraph.ask import methods as words
from condgraph.chains import methods as chains
from condgraph.claims import methods as claims
from condgraph.edits import MISSING, WAIT, Edit
from condgraph.engine.answer import Answer
from condgraph.engine.bounds import check, check_bounds, within
from condgraph.engine.errors import DeadlineError, OptionError, ReadOnlyError, UnknownNameError, UnsupportedError
from condgraph.engine.facts import Entity, Item, Member, Ref, Statement, Subclass
from condgraph.engine.html import page, table
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.tracing import collected, traced
from condgraph.grammars import methods as grammars
from condgraph.languages.registry import PATTERN, answer
from condgraph.links import methods as links
from condgraph.loaders.base import OnError, Progress
from condgraph.loading import add, load, unload
from condgraph.logic import methods as logical
from condgraph.logic.evaluation import methods as evaluation
from condgraph.names.words import OnUnknown
from condgraph.prepared import PreparedProgram, explained, prepare
from condgraph.query_options import QueryOptions
from condgraph.reports import COUNTED, SEE_SCHEMA, EditReport, LoadReport, Status, UnloadReport
from condgraph.snapshot_store import SnapshotStore
from condgraph.storage import LocalStorage, Storage, no_versions

if TYPE_CHECKING:
    from condgraph.ask.demos import Demos
    from condgraph.difference import Difference
    from condgraph.engine.algebra import Node
    from condgraph.engine.check import KnownIds
    from condgraph.engine.conflicts import Conflicts, Prefer, Preference
    from condgraph.engine.period import Period, TimeLike
    from condgraph.engine.store import Store
    from condgraph.languages.table.builder import TableQuery
    from condgraph.overview.schema import GraphSchema
    from condgraph.overview.survey import Survey
    from condgraph.patterns.matches import Matches
    from condgraph.questions.generate import Questions
    from condgraph.sparql.embedded import EmbeddedStore
    from condgraph.sparql.text.table import Table
    from condgraph.timeline import Timeline
    from condgraph.vectors.encoders import Encoder
    from condgraph.vectors.stored import IndexReport
    from condgraph.versions import AsOf, Keep, Version

#: The options of a query that sets none. Most queries share these two records.
_KOPL, _CYPHER = QueryOptions("kopl"), QueryOptions("cypher")
#: The engines that can run a program (`storage.ENGINES`).
Engine = Literal["snapshot", "sparql"]
#: The parameters of `load` that are not options of a format.
_OF_LOADS: Final = frozenset(
    ("self", "source", "format", "name", "on_error", "progress", "wait", "replace", "append", "memory", "unknown")
)


class Graph:
    """A graph in a directory (stored and memory-mapped) or in memory; `condgraph.open` opens one in any place.
    Methods may be called from any thread; loads run one after the other.

    `place`, `name`, `read_only` and `timeout` are its options. A `timeout` (in seconds) bounds a whole call, which
    raises `DeadlineError` if it has no result by then. Parts of an answer that are computed later (evidence, trace,
    warnings) have the same timeout again.
    """

    _demos: Demos | None = None

    def __init__(
        self,
        place: str | os.PathLike[str] = "memory:",
        *,
        graph: str = "default",
        read_only: bool = False,
        as_of: AsOf | None = None,
    ) -> None:
        self._use(LocalStorage(os.fspath(place), graph, read_only, as_of))

    def _use(self, storage: Storage) -> None:
        self._storage = storage
        self.place, self.name, self.read_only, self.timeout = storage.place, storage.graph, storage.read_only, storage.timeout

    @classmethod
    def of(cls, snapshot: Snapshot, graph: str = "default") -> Graph:
        """Return a graph in memory over an existing snapshot."""
        opened = cls("memory:", graph=graph)
        opened._storage.snapshot = snapshot
        return opened

    # -- opening and closing -----------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release the snapshot, or close the connection to a server. Answers remain valid."""
        self._storage.close()

    def refresh(self) -> None:
        """Read the current state of the graph, which another process may have changed."""
        self._storage.refresh()

    def snapshot(self) -> Graph:
        """Return the current state of the graph as a graph in process that later loads do not change. A graph on a
        server is pulled completely.
        """
        return Graph.of(self._storage.whole(), self.name)

    def __repr__(self) -> str:
        return f"<Graph {self.name!r} in {self.place}>"

    def _repr_html_(self) -> str:
        """Show in notebooks where the graph is, and its counts if it is open in process. No request is sent to a
        server.
        """
        snapshot = self._storage.snapshot
        counts = [] if snapshot is None else [(name, f"{snapshot.counts.get(name, 0):,}") for name in COUNTED]
        return page(repr(self), [table("", ("holds", "how many"), counts)] if counts else (), [SEE_SCHEMA])

    # -- loading -----------------------------------------------------------------------------------

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
        memory: int | str | None = None,
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
        times: str | os.PathLike[str] | Mapping[str, str] | None = None,
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
        infer: str | Sequence[str] | None = None,
        collapse: str | None = None,
        collapse_to: str | Sequence[str] | None = None,
        statements: str | Sequence[str] | None = None,
        array_delimiter: str | None = None,
        edge_ids: bool | None = None,
        single_valued: str | Sequence[str] | Mapping[str, Any] | None = None,
        **unknown: Never,
    ) -> LoadReport:
        """Load a file, a folder, a zip archive, a glob pattern, an http(s) address, a dataframe, or a list of these.
        Either everything is loaded or nothing.

        Loading the same source again changes nothing. Raises `SourceError` if a source of the same name with another
        origin or content is in the graph, unless `replace` or `append` is set, and `OptionError`, with the nearest
        name, for an option that the format of a source does not have.

        For every source:

        - `format`: the format; by default it is recognised from the content
        - `name`: the name of the source; by default the file's stem, and a new name for a dataframe
        - `on_error`: "raise", or "skip" to leave out bad records and report them
        - `progress`: a function that is called with the location, the number of records read, and the fraction read
        - `wait`: how many seconds to wait for another process that is writing
        - `replace`: replace the source of the same name
        - `append`: add to the source of the same name
        - `memory`: the approximate limit on memory, such as "2 GiB"; uses files next to the graph (`condgraph[duckdb]`)
        - `single_valued`: predicates that have one value at a time (`declare`), with their preferences
        - `encoding`: of texts; by default UTF-8, or as a byte order mark or the bytes themselves indicate

        For tables (CSV, JSON, Parquet, dataframes):

        - `key`: the column that identifies the rows; its cells are their ids and names
        - `name_column`: the column that names the rows
        - `refs`: columns whose cells are names of entities rather than values
        - `join`: columns that refer to rows of other sources: `{"country": "countries.country"}`
        - `types`: the types of columns: `{column: "text"}`, "number", "time" or "auto"
        - `missing`: more texts that mark a missing cell
        - `decimal`: the decimal separator, "," or "."
        - `day_first`: whether 03/05/2010 is the third of May
        - `seasons`: whether 2004-05 is the years 2004 and 2005 rather than May 2004
        - `delimiter`: the character between fields; for triples "" is any run of white space
        - `dialect`: the quoting style: "excel", "backslash" or "plain"
        - `header`: whether the first record names the columns
        - `comment`: the beginning of comment lines
        - `skip`: the number of lines to skip above the header
        - `longest_cell`: the maximum number of characters in a cell
        - `times`: the columns with the time at which rows hold, "[valid_from, valid_to)", or "]" if the end is included;
          for several tables `{"prices": "[valid_from, valid_to)"}`; for graphs the qualifiers with the time at which statements
          hold, for all or by predicate, `{"capital": "[since, until)", "*": "observed"}`, or a file with a section `[times]`

        In addition, for several tables with keys between them (folders, workbooks, databases):

        - `tables`: the tables or views of a database to load
        - `sheets`: the sheets of a workbook to load
        - `split`: whether blank columns divide a sheet into tables
        - `primary`: columns that identify the rows of a table: `{"orders": "orderID"}`
        - `name_columns`: columns that name the rows: `{"products": "productName"}`
        - `relations`: tables whose rows are relations with qualifiers: `["order-details"]`
        - `declaration`: the file that describes the tables (`condgraph.toml`), or False to ignore one
        - `keys`: the same as `join`

        For triples, temporal facts and Wikidata:

        - `columns`: the meaning of the columns, in the file's order: "head, tail, relation"
        - `objects`: whether tails are "entities", "values" or "auto"
        - `names`: names of entities, as a file of ids and names, or a mapping; for RDF "iri" or "local"
        - `relation_names`: names of relations, as a file of ids and names, or a mapping
        - `id_prefix`: a prefix of every entity id, so that ids of several sources do not collide
        - `instance_of`: relations from an instance to its concept
        - `subclass_of`: relations from a concept to a broader one
        - `concepts`: whether these relations also declare concepts

        For RDF and property graphs:

        - `syntax`: "turtle", "trig", "ntriples", "nquads", "rdfxml", "n3" or "jsonld"
        - `base`: the absolute IRI that relative IRIs are resolved against
        - `labels`: predicates of names, best first
        - `language`: the preferred language of labels as names
        - `infer`: axioms whose consequences become statements, such as "owl:inverseOf"
        - `collapse`: which nodes that together represent a fact become statements with qualifiers
        - `collapse_to`: predicates from such a node to the object of its statement
        - `statements`: other nodes that represent statements, whose properties are qualifiers: "graph", paths "IRI / IRI"
        - `array_delimiter`: the separator between the elements of a list in a property graph
        - `edge_ids`: whether to keep ids of relationships, as qualifiers
        """
        arguments = locals()
        options = {option: value for option, value in arguments.items() if option not in _OF_LOADS and value is not None}
        return load(
            self._storage, source, options | unknown, lambda: self.demos, format=format, name=name, on_error=on_error,
            progress=progress, wait=wait, replace=replace, append=append, memory=memory,
        )  # fmt: skip

    @overload
    def add(
        self, items: Iterable[Item], *, source: str = "api", wait: float | None = None, replace: bool = False
    ) -> LoadReport: ...
    @overload
    def add(
        self,
        items: Any,
        predicate: str | None = None,
        object: Any = MISSING,
        qualifiers: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None,
        *,
        by: str | None = None,
        note: str = "",
        new_type: bool = False,
        wait: float | None = None,
    ) -> EditReport: ...
    def add(
        self,
        items: Any,
        predicate: str | None = None,
        object: Any = MISSING,
        qualifiers: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None,
        *,
        source: str = "api",
        wait: float | None = None,
        replace: bool = False,
        by: str | None = None,
        note: str = "",
        new_type: bool = False,
    ) -> LoadReport | EditReport:
        """Add items (`engine.facts`) or a single statement. Either all items are added or none.

        Items are added to the source named `source`, or with `replace` replace its content, and a `LoadReport` is
        returned.

        A single statement has a predicate and an object: `graph.add("Bern", "population", 134591, {"point in time":
        "2020"})`. A single `Statement`, `Member`, `Subclass` or `Entity` is added in the same way. Such a change
        belongs to the source `edits`, which survives loads, and an `EditReport` is returned. Entities are given by id
        or name. A text is read as a value of the predicate's type, if it has one. `by` is the author of the change,
        by default the user of the system, and `note` a remark.

        `wait` is how many seconds to wait for other writers, by default 0 for items and 10 for a single change.
        Raises `LiteralError` for a value of another type than the predicate's, unless `new_type` is set, and
        `SourceError` if the graph states the same already.
        """
        if predicate is None and not isinstance(items, (str, Statement, Member, Subclass, Entity)):
            if object is not MISSING or qualifiers is not None or by is not None or note or new_type:
                raise OptionError("`by`, `note` and `new_type` are of single changes", hint="graph.add(subject, predicate, object)")
            return add(self._storage, items, source, wait or 0.0, replace)
        if replace or source != "api":
            raise OptionError("a single change is of the source 'edits'", hint="give a list of statements for another source")
        if isinstance(items, Statement) and predicate is None:
            items, predicate, object, qualifiers = Ref(items.subject), items.predicate, items.object, items.qualifiers
        elif predicate is None and isinstance(items, str):
            raise OptionError("a statement has a subject, a predicate and an object", hint="graph.add(subject, predicate, object)")
        if predicate is not None and object is MISSING:
            raise OptionError("the statement has no object", hint="graph.add(subject, predicate, object)")
        from condgraph.editing import add as add_one

        return add_one(self._storage, items, predicate, object, qualifiers, by, note, new_type, WAIT if wait is None else wait)

    def retract(self, statement: Any, *, by: str | None = None, note: str = "", wait: float = WAIT) -> EditReport:
        """Remove one statement, whichever sources state it, and record this as a single change.

        The statement stays hidden when its sources are loaded again; a load that states it with a change warns about
        it. The same statement is visible again once it is added later. `statement` is a `Statement`, evidence of an
        answer, a `Member` or `Subclass`, or a tuple of subject, predicate, object and perhaps qualifiers, each as
        shown in answers.

        Raises `UnknownNameError`, with the nearest statements, if there is no such statement, and
        `AmbiguousNameError` if a tuple matches several.
        """
        from condgraph.editing import retract

        return retract(self._storage, statement, by, note, wait)

    def correct(
        self,
        statement: Any,
        *,
        subject: Any = MISSING,
        predicate: Any = MISSING,
        object: Any = MISSING,
        qualifiers: Any = MISSING,
        name: Any = MISSING,
        by: str | None = None,
        note: str = "",
        new_type: bool = False,
        wait: float = WAIT,
    ) -> EditReport:
        """Replace one statement by another, as a single change. Only the given parts change: `subject`, `predicate`,
        `object` or `qualifiers`.

        To rename an entity, pass an `Entity(id, name)`, its id or its name as `statement`, and the new `name`.
        Statements, the other options and errors are as for `add` and `retract`.
        """
        from condgraph.editing import correct

        values = {"subject": subject, "predicate": predicate, "object": object, "qualifiers": qualifiers, "name": name}
        changes = {part: value for part, value in values.items() if value is not MISSING}
        return correct(self._storage, statement, changes, by, note, new_type, wait)

    def edits(self) -> list[Edit]:
        """Return all single changes of the graph, in order: number, kind, author, time, what was added and removed."""
        return self._storage.edits()

    def compact(self, *, wait: float = WAIT) -> int:
        """Merge the single changes since the last load into the columns, and return their number. Every load does
        this too, and so does every 1,000th change.
        """
        self._storage.check_writable(wait)
        return self._storage.compact(wait)

    def unload(self, *sources: str, wait: float = 0.0) -> UnloadReport:
        """Remove sources, either all of them or none. Statements that another source states as well stay, and so do
        entities that other statements mention.

        The name of a folder of tables means all of its tables. Raises `SourceError`, with the nearest names, for an
        unknown source. `wait` is how many seconds to wait for another process that is writing.
        """
        return unload(self._storage, sources, lambda: self.demos, wait)

    def declare(
        self,
        single_valued: str | Iterable[str] | Mapping[str, Any],
        *,
        prefer: Prefer | None = None,
        remove: bool = False,
        wait: float = 0.0,
    ) -> Mapping[str, Preference | None]:
        """Declare that predicates have one value at a time, and return all declarations. `conflicts` then lists
        contradicting statements, and answers that rest on one have a warning.

        `prefer` decides which of two statements that certainly contradict each other counts in answers: "rank" (the
        qualifier `rank`), "latest" or "earliest" (by start or point in time), or a list of sources, best first.
        Without it both count. A mapping gives a preference, or None, for each predicate. `remove` removes
        declarations. They are stored with a graph in a folder; for a graph on a server they last as long as this
        object and have no preferences. Raises `UnknownNameError` for a predicate that the graph does not have.
        """
        from condgraph.conflicts import declare

        return declare(self, single_valued, prefer, remove=remove, wait=wait)

    def keep_versions(self, keep: Keep, *, wait: float = 0.0) -> None:
        """Set which earlier versions of a graph in a folder are stored: a number of versions including the current
        one, or the time for which each is stored after it was replaced ("30 days", or a `timedelta`).

        None, the default of a graph, stores only the current version and removes the others. Each version is a
        complete set of columns.
        """
        from condgraph.versions import keep_rule

        self._storage.check_writable(wait)
        if self._storage.directory is None:
            raise no_versions(self.place)
        self._storage.configure(wait, keep=keep_rule(keep))

    def index(
        self,
        encoder: str | os.PathLike[str] | Encoder = "lexical",
        *,
        faiss: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexReport:
        """Encode the names of nodes and predicates, and store the vectors with the graph. Later loads encode only new
        names.

        `encoder` is `"lexical"`, a folder with a model of sentence-transformers, its name on the hub,
        `"openai:MODEL"`, or an object with `id`, `dimension` and `encode`. It replaces the previous encoder. `faiss`
        builds an approximate index as well. `progress` is called with the number of encoded texts and the total.
        """
        return self._storage.index(encoder, faiss, progress)

    def abandon(self) -> bool:
        """Undo a load that was interrupted, which restores the earlier state of the graph. Returns whether there was
        such a load.

        Only a graph on a server can be left in the middle of a load. In a folder or in memory, a load takes effect
        completely or not at all.
        """
        self._storage.check_writable()
        return self._storage.abandon()

    def delete(self) -> bool:
        """Delete the graph, but no other graph or file in the same place. Returns whether there was a graph.

        In a folder, only the files written by condgraph are deleted, by their names. Existing snapshots and answers
        remain valid.
        """
        self._storage.check_writable()
        return self._storage.delete()

    # -- querying ----------------------------------------------------------------------------------

    def kopl(
        self,
        program: Any,
        *,
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
        engine: Engine | None = None,
        at: TimeLike | None = None,
        between: Sequence[TimeLike | None] | None = None,
        certain: bool = False,
        as_of: AsOf | None = None,
        prefer: Prefer | None = None,
    ) -> Answer:
        """Answer a KoPL program: a text, the JSON list of the KQA Pro data set, or the serialisation of its
        baselines.

        `timeout` is in seconds, `limit` the maximum number of values shown; the answer warns if there are more.
        `cancelled` is an event that ends the query when it is set. `on_unknown="empty"` lets unknown names match
        nothing; "nearest" replaces an unknown predicate by the nearest one, and marks the answer as `doubtful`.
        `engine="sparql"` runs one SPARQL query on the graph's embedded RDF store instead.

        With `at="1984"` or `between=("1980", "1990")`, a statement counts if it may hold at that time, by its start
        and end; with `certain=True`, only if both are stated and it holds throughout. A statement without times
        always counts.

        `as_of` queries an earlier version of a graph in a folder (`Graph.as_of`). `prefer` resolves the conflicts of
        all declared predicates ("rank", "latest", "earliest", or sources, best first), in place of the preferences
        set by `declare`; a mapping gives a preference for each predicate. With `prefer`, a graph on a server is
        pulled and answered in process.

        Raises `ParseError` for a malformed program, `PlanError` for one that has no meaning in this graph
        (`UnknownNameError`, with the nearest names, for an unknown name), `OptionError` for an invalid option,
        `StoreMissingError` if nothing was loaded, and `DeadlineError` or `CancelledError` if the query was ended.
        """
        plain = engine is None and timeout is None and limit is None and cancelled is None and on_unknown == "error"
        if plain and at is None and between is None and certain is False and as_of is None and prefer is None:
            return self._ask(program, _KOPL)
        return self._ask(
            program,
            QueryOptions(
                "kopl", engine, timeout, limit, cancelled, on_unknown,
                at=at, between=between, certain=certain, as_of=as_of, prefer=prefer,
            ),
        )  # fmt: skip

    def query(
        self,
        /,
        program: Any,
        *,
        language: str | None = None,
        table: Any = None,
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
        engine: Engine | None = None,
        at: TimeLike | None = None,
        between: Sequence[TimeLike | None] | None = None,
        certain: bool = False,
        as_of: AsOf | None = None,
        prefer: Prefer | None = None,
        **options: Any,
    ) -> Answer:
        """Answer a program in any language. The language is recognised from the text unless `language` is given.

        `table` is a clause, or a `graph.table()`, that is applied to the rows of the program. `options` are those of
        the language. All other options, and the errors, are as for `kopl`.
        """
        return self._ask(
            program,
            QueryOptions(
                language, engine, timeout, limit, cancelled, on_unknown, table,
                further=options, at=at, between=between, certain=certain, as_of=as_of, prefer=prefer,
            ),
        )  # fmt: skip

    def _view(self, options: QueryOptions) -> Graph:
        """Return the graph that the options `as_of` and `prefer` select, and clear both in the options."""
        as_of, prefer = options.as_of, options.prefer
        options.as_of = options.prefer = None
        graph = self if as_of is None else self.as_of(as_of)
        if prefer is None:
            return graph
        from condgraph.conflicts import preferring

        view = Graph.of(preferring(graph._storage, prefer), self.name)
        view.timeout, view._storage.preferring = self.timeout, True
        return view

    def _ask(self, program: Any, options: QueryOptions) -> Answer:
        if not collected():
            return self._run(program, options)
        return traced(self, options.language, program, lambda: self._run(program, options))

    def _run(self, program: Any, options: QueryOptions) -> Answer:
        timeout = self.timeout if options.timeout is None else options.timeout
        if options.as_of is not None or options.prefer is not None:
            with within(timeout, options.cancelled):
                return self._view(options)._run(program, options)
        if timeout is None and options.cancelled is None:
            if options is _CYPHER or options is _KOPL:
                store = self._store_of(None)
                quick = store.quick_answer(program, options.language or "") if type(store) is SnapshotStore else None
                if quick is not None:
                    return quick
            return self._answer(program, options)
        with within(timeout, options.cancelled):
            return self._answer(program, options).keep_to(timeout)

    def _answer(self, program: Any, options: QueryOptions) -> Answer:
        try:
            return answer(self._store_of(options.engine), program, options.language, options.limit, options.of_language())
        except UnknownNameError as error:
            if not self._storage.renewed(error.kind):
                raise
            return answer(self._store_of(options.engine), program, options.language, options.limit, options.of_language())

    def _store_of(self, engine: str | None) -> Store:
        """Return the store that runs programs with an engine. Raises `OptionError` for an unknown engine."""
        return self._storage.store(engine)

    def sparql(
        self,
        text: str,
        *,
        dialect: str = "standard",
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
    ) -> Table:
        """Run a SPARQL 1.1 query, read-only, over the graph as RDF. Returns a table of typed values: the solutions of
        a SELECT, the triples of a CONSTRUCT, or the answer to an ASK.

        Relative IRIs are names in the graph: `<height>` is its predicate "height". `dialect="kqapro"` accepts queries
        in the form of the KQA Pro data set. `timeout` is in seconds, `limit` the maximum number of rows. Raises
        `ParseError` for a malformed query.
        """

        def ask() -> Table:
            with within(self.timeout if timeout is None else timeout, cancelled):
                options = QueryOptions(limit=limit, on_unknown=on_unknown)
                return self._storage.sparql(text, dialect=dialect, limit=options.limit, on_unknown=options.on_unknown)

        return traced(self, "sparql", text, ask)

    def cypher(
        self,
        text: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
        at: TimeLike | None = None,
        between: Sequence[TimeLike | None] | None = None,
        certain: bool = False,
        as_of: AsOf | None = None,
        prefer: Prefer | None = None,
    ) -> Answer:
        """Answer a Cypher query that only reads (openCypher 9 and the core of GQL). The answer has the rows of the
        returned columns, with evidence. `docs/reference/cypher.md` describes the graph as a property graph.

        `parameters` are the values of `$name`. `timeout` is in seconds, `limit` the maximum number of rows.
        `on_unknown="empty"` lets labels, types and properties that the graph does not have match nothing. The options
        from `at` on are as for `kopl`. On Neo4j the server runs the query (`Neo4jGraph.cypher`).
        """
        plain = not parameters and timeout is None and limit is None and cancelled is None and on_unknown == "error"
        if plain and at is None and between is None and certain is False and as_of is None and prefer is None:
            return self._ask(text, _CYPHER)
        further = {"parameters": parameters} if parameters else None
        return self._ask(
            text,
            QueryOptions(
                "cypher", None, timeout, limit, cancelled, on_unknown,
                further=further, at=at, between=between, certain=certain, as_of=as_of, prefer=prefer,
            ),
        )  # fmt: skip

    def rdf(self, base: str | None = None) -> EmbeddedStore:
        """Return the embedded RDF store of the graph's current state.

        It is built on first use and stored next to the generation it was built from. With another `base` for the IRIs
        of names, it is built in memory at each call.
        """
        return self._storage.rdf(base)

    def match(
        self,
        pattern: Any,
        *,
        k: int | None = 3,
        group_by: str | Sequence[str] | None = None,
        distinct_from: Any = None,
        injective: bool = False,
        free: bool = False,
        induced: bool = False,
        directed: bool | None = None,
        k_nodes: int | None = None,
        k_relations: int | None = None,
        k_types: int | None = None,
        fast: bool = False,
        stretch: bool = False,
        leave_out: bool = False,
        encoder: Encoder | str | None = None,
        timeout: float | None = None,
        limit: int | None = None,
        cancelled: Event | None = None,
        exact: bool = True,
        engine: Engine | None = None,
        at: TimeLike | None = None,
        between: Sequence[TimeLike | None] | None = None,
        certain: bool = False,
        as_of: AsOf | None = None,
        prefer: Prefer | None = None,
    ) -> Matches:
        """Return the k subgraphs that are most similar to a pattern, by graph semantic distance (SimGRAG). The search
        is exact by default.

        `pattern` is a list of triples of texts, `[("UNKNOWN film 1", "directed by", "Clint Eastwood")]`, or one of
        its text forms. The options:

        - `k`: how many subgraphs, or groups; None: all at the best distance, at most 100,000
        - `group_by`: the node or nodes whose entities or texts are each returned once
        - `distinct_from`: entities that unknown nodes must not be
        - `injective`: whether different nodes must match different entities (Definition 1)
        - `free`: whether a statement may be used more than once
        - `directed`: an edge against the pattern's direction costs 0.05; True forbids it, False makes it free
        - `induced`: forbids edges between nodes of the subgraph that the pattern does not join; with `directed` also edges
          against the direction of the pattern's edges
        - `k_nodes`, `k_relations`: the number of candidates of each known node and relation, the nearest; the result is
          approximate
        - `k_types`: restricts unknown nodes to the members of this many types, those nearest to the node's hint
        - `fast`: whether these three default to 16, as in the paper
        - `stretch`: whether an edge may match a path of two statements, for 0.25
        - `leave_out`: whether one named edge may be dropped, for 1, if the best distance is 1 or more
        - `encoder`: the encoder of texts; by default that of the graph's index, else a lexical one
        - `exact`: False takes candidates from the approximate index (`index(..., faiss=True)`), which may miss some
        - `timeout`: in seconds; after it the best matches so far are returned, marked as incomplete
        - `limit`: the maximum number of solutions to show
        - `engine`: "sparql" reads the edges from the embedded RDF store

        `at`, `between`, `certain`, `as_of` and `prefer` are as for `kopl`.
        """
        check_bounds(timeout, limit, what="solutions to show")
        timeout = self.timeout if timeout is None else timeout
        view = QueryOptions(at=at, between=between, certain=certain, as_of=as_of, prefer=prefer)
        period = view.period
        if period is not None and not exact:
            raise OptionError("the approximate index is of all statements, whenever they hold", hint="leave exact=False out")
        options: dict[str, Any] = {
            "k": k, "group_by": group_by, "distinct_from": distinct_from, "injective": injective, "free": free,
            "induced": induced, "directed": directed, "k_nodes": k_nodes, "k_relations": k_relations, "k_types": k_types,
            "fast": fast, "stretch": stretch, "leave_out": leave_out,
        }  # fmt: skip

        def search() -> Matches:
            begin = time.perf_counter()
            try:
                with within(timeout, cancelled):
                    search_options = options if period is None else {**options, "period": period}
                    store = self._view(view)._store_of(engine)
                    return cast("Matches", store.match(pattern, exact=exact, encoder=encoder, limit=limit, **search_options))
            except DeadlineError:
                # The deadline passed before the search began, or after it, when the state of the graph was read.
                from condgraph.patterns.match import unsearched

                return unsearched(pattern, limit, time.perf_counter() - begin, options)

        return traced(self, PATTERN, pattern, search).keep_to(timeout)

    def explain(
        self,
        /,
        program: Any,
        *,
        language: str | None = None,
        table: Any = None,
        on_unknown: OnUnknown = "error",
        engine: Engine | None = None,
        timeout: float | None = None,
        at: TimeLike | None = None,
        between: Sequence[TimeLike | None] | None = None,
        certain: bool = False,
        as_of: AsOf | None = None,
        prefer: Prefer | None = None,
        **options: Any,
    ) -> str:
        """Return the plan of a program as text, without running it. On a server, or with `engine="sparql"`, return
        the query that it is compiled to.
        """
        return explained(
            self,
            program,
            QueryOptions(
                language, engine, timeout, on_unknown=on_unknown, table=table,
                further=options, at=at, between=between, certain=certain, as_of=as_of, prefer=prefer,
            ),
        )  # fmt: skip

    def counted(self, nodes: Sequence[Node], known: KnownIds, timeout: float | None = None) -> list[int]:
        """Return how many statements or entities each operator yields in this graph, for `Answer.check`. `timeout` is
        in seconds.
        """
        with within(timeout):
            return self._store_of(None).counted(nodes, known)

    def generate(
        self,
        n: int,
        *,
        seed: int = 0,
        kinds: Collection[str] | Mapping[str, float] | None = None,
        hops: int | Collection[int] | Mapping[int, float] | None = None,
        qualifiers: float | None = None,
        llm: Callable[[str], str] | None = None,
        queries: bool = True,
    ) -> Questions:
        """Generate up to n questions about the graph, each with program, answer, choices and wording (KQA Pro,
        section 4). They are generated one at a time; `warnings` of the result explain why there are fewer than n.

        The same seed gives the same questions. `kinds` and `hops` are the wanted kinds and numbers of hops, or a
        mapping to the share of each; by default the shares of the data set. `qualifiers` is the share of facts with
        qualifiers among those in questions, from 0 to 1. `llm`, a function from text to text, paraphrases the
        questions. `queries=False` leaves out SPARQL and Cypher. A graph on a server is pulled first.
        """
        from condgraph.questions.generate import Questions

        snapshot = self.snapshot().current
        return Questions(
            snapshot, n, seed=seed, kinds=kinds, hops=hops, qualifiers=qualifiers, llm=llm, queries=queries, graph=self.name
        )

    def at(self, at: TimeLike | None = None, *, between: Sequence[TimeLike | None] | None = None, certain: bool = False) -> GraphAt:
        """Return a view of the graph as of a time, with the same methods: `graph.at("1984").query(...)`.

        `at`, `between` and `certain` are as for `kopl`. Later loads show in the view. Its `snapshot()` returns the
        statements of that time as a graph in process.
        """
        period = QueryOptions(at=at, between=between, certain=certain).period
        if period is None:
            raise OptionError("at needs a time", hint="graph.at('1984'), or graph.at(between=('1980', '1990'))")
        return GraphAt(self, period)

    def difference(self, first: TimeLike, second: TimeLike, *, certain: bool = False, timeout: float | None = None) -> Difference:
        """Return what changed between two times: `gone` has the statements that may hold at the first time and not at
        the second, `new` the opposite. With `certain`, a statement counts for a time only if it certainly holds
        throughout it.
        """
        from condgraph.difference import difference

        return difference(self, first, second, certain, timeout)

    def timeline(
        self,
        subject: str | Entity | None = None,
        predicate: str | None = None,
        object: str | Entity | None = None,
        *,
        timeout: float | None = None,
    ) -> Timeline:
        """Return the statements with the given subject, predicate and object in the order of their times. At least
        one of the three is given; entities by name, id or record.

        The timeline has methods for the statements before and after another one, gaps, overlaps, Allen's relations
        and durations. On a server the statements are fetched by one query. Raises `UnknownNameError` for an unknown
        name.
        """
        from condgraph.timeline import timeline

        return timeline(self, subject, predicate, object, timeout)

    def conflicts(
        self,
        *predicates: str,
        certain: bool = False,
        by_name: bool = False,
        propose: bool = False,
        limit: int | None = 1000,
        offset: int = 0,
        timeout: float | None = None,
    ) -> Conflicts:
        """Return the pairs of statements that cannot hold together: the same subject, different values of a predicate
        that has one value at a time, and overlapping times.

        With `certain`, only pairs whose values and times leave no doubt. With `by_name`, subjects of the same name
        count as one, such as rows of two tables. The search covers `predicates` if given, else the declared ones
        (`declare`), or, with `propose`, those that have one value at a time for nearly all subjects. It returns at
        most `limit` pairs from `offset` on, in a fixed order. On a server the statements of the predicates are
        fetched. Raises `OptionError` if no predicate is declared or given.
        """
        from condgraph.conflicts import conflicts

        return conflicts(
            self, predicates, certain=certain, by_name=by_name, propose=propose, limit=limit, offset=offset, timeout=timeout
        )

    def versions(self) -> list[Version]:
        """Return the stored versions of a graph in a folder, the current one last (`keep_versions`). Warns about
        versions with a damaged manifest.
        """
        from condgraph.versions import damage_of, versions_in

        if self._storage.directory is None:
            raise no_versions(self.place)
        for damage in damage_of(self._storage.directory):
            warnings.warn(damage, stacklevel=2)
        return versions_in(self._storage.directory)

    def as_of(self, as_of: AsOf) -> Graph:
        """Return an earlier version of the graph, read-only.

        `as_of` is a version's id, or a time at which the version was the current one (UTC; a date means its end).
        Raises `StoreMissingError`, with the nearest version, if that version is not stored.
        """
        return Graph(self.place, graph=self.name, as_of=as_of)

    def table(self, program: Any = "FindAll()") -> TableQuery:
        """Return a builder to group, aggregate, sort and limit the rows of a program, as one query with it:
        `graph.table("FindAll() FilterConcept(order)").group("country").show("count()").ask()`.
        """
        from condgraph.languages.table.builder import TableQuery
        from condgraph.languages.table.tree import Clause

        return TableQuery(program, Clause(), self.query, self.explain)

    def prepare(
        self,
        program: Any,
        *,
        language: str | None = None,
        table: Any = None,
        engine: Engine | None = None,
        at: TimeLike | None = None,
        between: Sequence[TimeLike | None] | None = None,
        certain: bool = False,
        as_of: AsOf | None = None,
        prefer: Prefer | None = None,
        **options: Any,
    ) -> PreparedProgram:
        """Parse a program with parameters (`$name`), in any language, to run it many times with different values.

            films = graph.prepare("Find($person) Relate(directed_by, backward) QueryName()")
            films(person="Clint Eastwood").texts

        A parameter is a name or a value and never syntax, whatever it contains. In patterns, only whole names can be
        parameters; in logical queries `?x` is a variable and `$x` a parameter. `options` are those of the language;
        the other options are as for `query`. Raises the language's errors for an invalid program, and `ParseError`
        for a parameter in place of an operator, a direction or a choice.
        """
        on_unknown = options.pop("on_unknown", "error")
        return prepare(
            self,
            program,
            QueryOptions(
                language, engine, on_unknown=on_unknown, table=table,
                further=options, at=at, between=between, certain=certain, as_of=as_of, prefer=prefer,
            ),
        )  # fmt: skip

    # -- methods from the package of each subject --------------------------------------------------

    ask = words.ask
    asking = words.asking
    chat = words.chat
    excerpt = words.excerpt

    @property
    def demos(self) -> Demos:
        """The demonstrations of the graph: questions with programs that `ask` shows to models.

        They are stored with a graph in a folder. For other graphs they last as long as this object, unless
        `demos.keep_in(path)` stores them in a file.
        """
        if self._demos is None:
            from condgraph.ask.demos import Demos
            from condgraph.engine.snapshot.directory import DEMONSTRATIONS

            folder = self._storage.directory
            self._demos = Demos(self, None if folder is None else folder / DEMONSTRATIONS)
        return self._demos

    chain = chains.chain
    verify_chain = chains.verify_chain
    reason = chains.reason

    verify = claims.verify
    grammar = grammars.grammar

    logic = logical.logic
    logic_stored = logical.logic_stored
    write_predictions = logical.write_predictions
    remove_predictions = logical.remove_predictions

    train_links = links.train_links
    learn_rules = links.learn_rules
    mix_links = links.mix_links
    keep_rows = links.keep_rows
    sample_queries = evaluation.sample_queries
    evaluate_logic = evaluation.evaluate_logic
    answer_sets = evaluation.answer_sets

    # -- inspecting and exporting ------------------------------------------------------------------

    def status(self, *, verify: bool = False, timeout: float | None = None) -> Status:
        """Return the counts, sources and size of the graph. `verify` reads every byte and raises `StoreDamagedError`
        if one has changed. `timeout` is in seconds.
        """
        with within(self.timeout if timeout is None else timeout):
            return self._storage.status(verify)

    def schema(
        self,
        *,
        source: str | None = None,
        concept: str | None = None,
        predicate: str | None = None,
        timeout: float | None = None,
    ) -> GraphSchema:
        """Return the schema: sources, concepts, predicates with the types of both ends, and units, with counts and
        examples. It is the same on every store. `timeout` is in seconds.

        `source`, `concept` and `predicate` restrict it to what is related to the one of that name; counts remain
        those of the whole graph. Raises `UnknownNameError`, with the nearest names, for an unknown name, and
        `StoreMissingError` if nothing was loaded.
        """
        from condgraph.overview.schema import describe

        with within(self.timeout if timeout is None else timeout):
            check()
            return describe(self._survey(), source=source, concept=concept, predicate=predicate)

    def _survey(self) -> Survey:
        return self._storage.survey()

    def export(self, path: str | os.PathLike[str] | IO[str], *, to: str = "jsonl", base: str | None = None) -> int:
        """Write the whole graph to a file or a folder, and return the number of lines, triples or statements. `path`
        may also be an open text file.

        `to` is one of:

        - "jsonl": lines of JSON that load to an equal graph
        - "turtle", "nquads": RDF that loads to an equal graph
        - "parquet": a folder with the tables of a SQL store as files, for Spark and DuckDB
        - "neo4j-import": a folder with the files and the command of Neo4j's import tool
        - "rdf": plain triples as N-Quads. Triples that were loaded from RDF have their original IRIs, others have IRIs under
          `base`. Warns about what triples cannot state.
        - "rdf12": the same, with qualifiers as reifiers of RDF 1.2 (`rdf:reifies` and triple terms)

        A file or a folder of Parquet is either complete or absent: it is written next to the target and then renamed.
        An existing folder is replaced if it is such an export. Raises `OptionError` for any other existing folder,
        for an unknown format, and for a file that cannot be written.
        """
        from condgraph.exporting import export

        return export(self._storage.whole(), self.name, path, to, base)

    def to_rdflib(self, *, base: str | None = None, dataset: bool = False) -> Any:
        """Return the graph as an `rdflib.Graph`, or with `dataset` as an `rdflib.Dataset` with the named graphs.

        Triples that were loaded from RDF have their original IRIs, others have IRIs under `base`. Statements about
        statements are reified, since rdflib has no triple terms. Issues a Python warning for what RDF cannot state.
        Raises `MissingExtraError` if rdflib is not installed (`pip install 'condgraph[rdflib]'`), and `OptionError`
        for an invalid `base`.
        """
        from condgraph.sparql.rdflib_graph import to_rdflib

        return to_rdflib(self._storage.whole(), self.name, base, dataset=dataset)

    @property
    def current(self) -> Snapshot:
        """The open generation. Raises `StoreMissingError` if nothing was loaded yet."""
        return self._storage.current

    @property
    def _directory(self) -> Path | None:
        return self._storage.directory


# -- a graph as of a time ----------------------------------------------------------------------------


class GraphAt(Graph):
    """A view of a graph as of a time (`Graph.at`). The graph's store runs programs, on the statements that hold then.
    Other methods work on `snapshot()`, which must be called explicitly for a graph on a server.
    """

    def __init__(self, graph: Graph, period: Period) -> None:
        self._use(graph._storage)
        self.timeout = graph.timeout
        self.graph, self.period = graph, period

    def __repr__(self) -> str:
        return f"<Graph {self.name!r} in {self.place} at {self.period}>"

    def close(self) -> None:
        """Do nothing: the underlying graph stays open."""

    def at(self, at: Any = None, *, between: Any = None, certain: bool = False) -> GraphAt:
        """Return a view of the same graph as of another time."""
        return self.graph.at(at, between=between, certain=certain)

    def snapshot(self) -> Graph:
        """Return the statements that hold in the period, with all entities, as a graph in process. A graph on a
        server is pulled completely.
        """
        from condgraph.engine.execute.validity import cut

        return Graph.of(cut(self.graph._storage.whole(), self.period), self.name)

    def as_of(self, as_of: AsOf) -> GraphAt:
        """Return an earlier version of the graph as of the same time."""
        return GraphAt(self.graph.as_of(as_of), self.period)

    def _view(self, options: QueryOptions) -> Graph:
        return GraphAt(self.graph._view(options), self.period)

    def _placed(self, options: QueryOptions) -> QueryOptions:
        if options.period is not None:
            raise OptionError(
                f"this graph is of {self.period} already", hint="name another time on the graph itself: graph.query(..., at=...)"
            )
        return replace(options, at=self.period)

    def _ask(self, program: Any, options: QueryOptions) -> Answer:
        return self.graph._ask(program, self._placed(options))

    def cypher(self, text: str, parameters: Any = None, **options: Any) -> Answer:
        """Answer a Cypher query as `Graph.cypher` does, on every store: the query is lowered to a plan rather than
        sent to Neo4j.
        """
        return Graph.cypher(self, text, parameters, **options)

    def logic_stored(self, query: Any, *branches: Any, **options: Any) -> Never:
        """Raise `UnsupportedError`: the predicted edges stored on a server have no times."""
        raise UnsupportedError(
            f"a graph as of a time ({self.place})",
            ["the predicted edges that are stored next to it"],
            hint="give the model: graph.at(...).logic(query, model=...)",
        )

    def counted(self, nodes: Any, known: Any, timeout: float | None = None) -> list[int]:
        """Return the same as `Graph.counted`, since the plans of answers contain the time already."""
        return self.graph.counted(nodes, known, timeout)

    def _with_period(self, options: dict[str, Any]) -> dict[str, Any]:
        if any(options.get(name) for name in ("at", "between", "certain")):
            raise OptionError(f"this graph is of {self.period} already", hint="name another time on the graph itself")
        return {**options, "at": self.period}


def _with_time(name: str) -> Callable[..., Any]:
    @wraps(getattr(Graph, name))
    def call(self: GraphAt, *arguments: Any, **options: Any) -> Any:
        return getattr(self.graph, name)(*arguments, **self._with_period(options))

    return call


def _through_snapshot(name: str) -> Callable[..., Any]:
    method = getattr(Graph, name)

    @wraps(method)
    def call(self: GraphAt, *arguments: Any, **options: Any) -> Any:
        if not isinstance(self._storage, LocalStorage):
            raise UnsupportedError(
                f"a graph on a server as of a time ({self.place})",
                [name],
                hint=f"ask the statements of that time in process: graph.at(...).snapshot().{name}(...)",
            )
        return getattr(self.snapshot(), name)(*arguments, **options)

    return call


def _refused(name: str) -> Callable[..., Any]:
    @wraps(getattr(Graph, name))
    def call(self: GraphAt, *arguments: Any, **options: Any) -> Any:
        raise ReadOnlyError(f"a graph as of a time is not changed by {name}", hint=f"change the graph itself: graph.{name}(...)")

    return call


#: The methods of `Graph` with a parameter for the time; those that work on a snapshot in process; those that change a graph.
_TIMED: Final = ("chain", "explain", "logic", "match", "prepare", "reason", "verify_chain")
_IN_PROCESS: Final = (
    "answer_sets", "ask", "asking", "chat", "conflicts", "evaluate_logic", "excerpt", "export", "generate", "grammar",
    "learn_rules", "mix_links", "rdf", "sample_queries", "schema", "sparql", "status", "timeline", "to_rdflib",
    "train_links", "verify",
)  # fmt: skip
_CHANGES: Final = (
    "abandon", "add", "compact", "correct", "declare", "delete", "index", "keep_rows", "keep_versions", "load",
    "remove_predictions", "retract", "unload", "write_predictions",
)  # fmt: skip
for _name in _TIMED:
    setattr(GraphAt, _name, _with_time(_name))
for _name in _IN_PROCESS:
    setattr(GraphAt, _name, _through_snapshot(_name))
for _name in _CHANGES:
    setattr(GraphAt, _name, _refused(_name))
