"""The public API of a graph, as one class.

`storage` says where a graph is and how it is changed there, `loading` what a load does; `Graph`
has the calls. Those about one subject (questions in words, chains, links) are in the package of that
subject.
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

#: Options of queries that have none, most of them.
_KOPL, _CYPHER = QueryOptions("kopl"), QueryOptions("cypher")
#: What answers (`storage.ENGINES`).
Engine = Literal["snapshot", "sparql"]
#: The parameters of `load` that are no options of a format.
_OF_LOADS: Final = frozenset(
    ("self", "source", "format", "name", "on_error", "progress", "wait", "replace", "append", "memory", "unknown")
)


class Graph:
    """One graph: in a directory (stored, memory-mapped), or in memory. Use it from any thread; loads
    take turns.

    A `timeout` (seconds) is of the whole call: it is answered, or raises `DeadlineError`, by then.
    What an answer is asked for later (evidence, trace, warnings) has the same timeout again.
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
        """A graph in memory over a snapshot that is there already."""
        found = cls("memory:", graph=graph)
        found._storage.snapshot = snapshot
        return found

    # -- opening and closing -----------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the snapshot, or of the connection; answers that were given stay good."""
        self._storage.close()

    def refresh(self) -> None:
        """Turn to what the graph holds now, which another process may have changed."""
        self._storage.refresh()

    def snapshot(self) -> Graph:
        """The graph as it is now, in process: later loads do not change it. A graph on a server is
        pulled whole.
        """
        return Graph.of(self._storage.whole(), self.name)

    def __repr__(self) -> str:
        return f"<Graph {self.name!r} in {self.place}>"

    def _repr_html_(self) -> str:
        """Where the graph is, for notebooks; what it holds, of one that is open in process. No
        server is asked for that.
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
        - `memory`: load in about so much memory, "2 GiB" say, by files next to the graph (`condgraph[duckdb]`)
        - `single_valued`: predicates that have one value at a time (`declare`), with their preferences
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
        - `times`: columns that say when rows hold, "[valid_from, valid_to)", or "]" with the end included;
          of several tables `{"prices": "[valid_from, valid_to)"}`; of graphs the qualifiers that say when statements hold,
          for all or by predicate, `{"capital": "[since, until)", "*": "observed"}`, or a file with a section `[times]`

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
        - `infer`: axioms whose consequences are statements too, as "owl:inverseOf"
        - `collapse`: which nodes that hold a fact together become statements with qualifiers
        - `collapse_to`: predicates that lead from such a node to the object of its statement
        - `statements`: what else stands for statements, whose own properties are qualifiers: "graph", paths "IRI / IRI"
        - `array_delimiter`: what is between the elements of a list in a property graph
        - `edge_ids`: whether ids of relationships are kept, as qualifiers
        """
        given = locals()
        options = {option: value for option, value in given.items() if option not in _OF_LOADS and value is not None}
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
        """Add items (`engine.facts`) from Python; all of them or nothing. They are added to what
        came from Python under this name before; `replace` puts them in the place of that source.

        With a predicate and an object, one statement: `graph.add("Bern", "population", 134591, {"point
        in time": "2020"})`; and with a single `Statement`, `Member`, `Subclass` or `Entity` that. Such a
        change is of the source `edits`, which survives loads. Entities are named by their id or name. A
        text is read as the type of the predicate, where it has one; a value of another type is a
        `LiteralError` without `new_type`. `by` is who makes the change (by default the user of the
        system), `wait` how many seconds to wait for other writers (10).
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
        """Take one statement away, whatever sources state it: it stays hidden when these are loaded
        again, and a load that states it with a change warns of it. What is added as the same statement
        later is shown. `statement` is a `Statement`, evidence of an answer, a `Member` or `Subclass`, or a
        tuple of subject, predicate, object and perhaps qualifiers, each as an answer shows it.

        Raises `UnknownNameError`, with the nearest statements, for one that is not there, and
        `AmbiguousNameError` for a tuple that several statements fit.
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
        """Replace one statement by another, in one change: what is given of its parts is new. Of an
        `Entity(id, name)`, or of an entity's id or name, the `name`. The rest is as for `add` and `retract`.
        """
        from condgraph.editing import correct

        given = {"subject": subject, "predicate": predicate, "object": object, "qualifiers": qualifiers, "name": name}
        changes = {part: value for part, value in given.items() if value is not MISSING}
        return correct(self._storage, statement, changes, by, note, new_type, wait)

    def edits(self) -> list[Edit]:
        """All single changes of the graph, in order: number, kind, who, when, what was added and removed."""
        return self._storage.edits()

    def compact(self, *, wait: float = WAIT) -> int:
        """Merge the single changes since the last load with the columns; how many there were. Loads do
        so as well, and every 1,000th change.
        """
        self._storage.check_writable(wait)
        return self._storage.compact(wait)

    def unload(self, *sources: str, wait: float = 0.0) -> UnloadReport:
        """Take sources away, all of them or none: what only they state goes, what another source
        states as well stays, and so do entities that others mention.

        The name of a folder of tables stands for its tables. Raises `SourceError`, with the nearest
        names, for a source that is not there. `wait` is how many seconds to wait for another
        process that is writing.
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
        """Declare predicates as having one value at a time, and return all that are declared. `conflicts`
        then lists what contradicts each other, and answers warn where they rest on such a statement.

        `prefer` decides which of two statements that certainly contradict each other counts in answers:
        "rank" (the qualifier `rank`), "latest" or "earliest" (by start or point in time), or a list of
        sources, best first. Without it both count. A mapping has a preference, or None, for each
        predicate; `remove` takes declarations back. In a folder they are stored with the graph, on a
        server they last as long as this object, without preferences. Raises `UnknownNameError` for a
        predicate that the graph does not have.
        """
        from condgraph.conflicts import declare

        return declare(self, single_valued, prefer, remove=remove, wait=wait)

    def keep_versions(self, keep: Keep, *, wait: float = 0.0) -> None:
        """Store earlier versions of a graph in a folder: a number of them with the current one, or for how long each
        stays after another took its place ("30 days", a `timedelta`). None stores the current one alone, as by default,
        and removes the others. Each version is a complete file of columns.
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
        """Encode the names of nodes and predicates, and keep their vectors with the graph; later
        loads encode only what is new.

        `encoder` is `"lexical"`, a folder with a model of sentence-transformers, its name on the
        hub, `"openai:MODEL"`, or an object with `id`, `dimension` and `encode`. It takes the place
        of an encoder that was there before. `faiss` makes an approximate index as well. `progress`
        hears how many texts are encoded, of how many.
        """
        return self._storage.index(encoder, faiss, progress)

    def abandon(self) -> bool:
        """Take back a load that was ended half way: the graph holds again what it held before.
        Whether there was one.

        Only a server can be left in the middle of a load: a folder, and memory, hold all of a load
        or nothing of it.
        """
        self._storage.check_writable()
        return self._storage.abandon()

    def delete(self) -> bool:
        """Remove the graph, and nothing that is not its own; whether there was one. Other graphs of
        the store stay.

        Of a folder the files that condgraph wrote are removed, by their names. Snapshots and
        answers that were given stay good.
        """
        self._storage.check_writable()
        return self._storage.delete()

    # -- asking ------------------------------------------------------------------------------------

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
        """Answer a KoPL program: text, the data set's JSON list, or the serialisation of its
        baselines.

        `timeout` is in seconds; `limit` the most values to give (the answer warns of the rest);
        `on_unknown="empty"` lets unknown names mean nothing; "nearest" reads an unknown predicate as
        the nearest, and the answer is `doubtful`. `engine="sparql"` answers with one SPARQL query on
        the graph's embedded RDF store instead.

        With `at="1984"`, or `between=("1980", "1990")`, a statement counts if it may hold then, by its
        start and end; with `certain=True` if both are stated and it holds in all of that time. One
        without times always counts. Raises `OptionError` for what is no time.

        `as_of` asks an earlier version of a graph in a folder, as `Graph.as_of` does. `prefer` resolves
        the conflicts of all declared predicates ("rank", "latest", "earliest", or sources, best first),
        in place of the preferences that were declared (`declare`); a mapping of predicates to preferences
        names the predicates itself. A graph on a server is pulled for it, and answered in process.
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
        """Answer a program in any language; it is recognised from the text, `language` overrules.
        `table` is a clause, or a `graph.table()`, over the rows that the program gives; `engine` and
        the others are as for `kopl`, `options` what only the language takes.
        """
        return self._ask(
            program,
            QueryOptions(
                language, engine, timeout, limit, cancelled, on_unknown, table,
                further=options, at=at, between=between, certain=certain, as_of=as_of, prefer=prefer,
            ),
        )  # fmt: skip

    def _view(self, options: QueryOptions) -> Graph:
        """The graph that options ask: a version of it, or what a preference leaves of it. They are taken out of the
        options.
        """
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
            return self._asked(program, options)
        return traced(self, options.language, program, lambda: self._asked(program, options))

    def _asked(self, program: Any, options: QueryOptions) -> Answer:
        timeout = self.timeout if options.timeout is None else options.timeout
        if options.as_of is not None or options.prefer is not None:
            with within(timeout, options.cancelled):
                return self._view(options)._asked(program, options)
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
        """What answers, and raises `OptionError` for what is no engine of this graph."""
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
        """Run a SPARQL 1.1 query, read-only, over the graph's RDF face; its solutions as a table of
        typed values.

        Relative IRIs are names of the graph: `<height>` is its predicate. `dialect="kqapro"` takes
        queries as KQA Pro published them. `timeout` is in seconds; `limit` the most rows.
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
        """Answer a Cypher query that reads (openCypher 9 and the core of GQL): rows of the columns that it
        returns, with evidence. `docs/reference/cypher.md` says how the graph looks as a property graph.

        `parameters` are the values of `$name`; `timeout` is in seconds, `limit` the most rows;
        `on_unknown="empty"` lets labels, types and properties that the graph does not have mean nothing. `at`,
        `between` and `certain` are as for `kopl`. On Neo4j the server runs the query (`Neo4jGraph.cypher`).
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
        """The embedded RDF store of the graph as it is now: built on first use, stored next to
        the generation it was built from. One whose names begin with another `base` is built
        anew each time, in memory.
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
        """The k subgraphs that are most similar to a pattern (SimGRAG), exactly, by graph semantic
        distance.

        `pattern` is triples of texts, `[("UNKNOWN film 1", "directed by", "Clint Eastwood")]`, or
        one of its text forms. `k=None` is all at the best distance; `group_by` names unknown nodes,
        each value of which is given once. `distinct_from` keeps unknown nodes from being given
        entities. No statement is used twice, and nodes may be the same; `injective` keeps nodes
        apart (Definition 1), `free` lets statements be used again. An edge that runs against the
        pattern costs 0.05; `directed=True` forbids it, `directed=False` makes it free. An `induced`
        subgraph has no edge
        between nodes that the pattern does not join; with `directed` also none against the
        pattern's own. `k_nodes`, `k_relations` and `k_types` limit the candidates, `fast=True` to
        the paper's numbers; the answer is approximate then. With `stretch` an edge
        may stand for a path of two (0.25 more); with `leave_out`, where nothing is near, a named
        edge may be left out. With a `timeout` (seconds), the best so
        far is given and marked as such. With `exact=False` candidates come from the approximate
        index (`index(..., faiss=True)`), which may miss some. `engine="sparql"` asks the embedded
        RDF store for the edges. `at`, `between`, `certain`, `as_of`
        and `prefer` are as for `kopl`.
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
                    given = options if period is None else {**options, "period": period}
                    store = self._view(view)._store_of(engine)
                    return cast("Matches", store.match(pattern, exact=exact, encoder=encoder, limit=limit, **given))
            except DeadlineError:
                # Before the search began, or after it in the last look at the graph's state.
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
        """The plan of a program as text, without running it; on a server, and with
        `engine="sparql"`, the query that it becomes.
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
        """How many statements, or entities, each operator gives in this graph, for `Answer.check`;
        `timeout` is in seconds.
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
        """Up to n questions about the graph, with programs, answers, choices and words, one after
        the other (KQA Pro, section 4); `warnings` of what is given says why there are fewer.

        The same seed gives the same questions. `kinds` and `hops` are those that are wanted, or the
        share of each; by default the data set's. `qualifiers` is the share of facts with qualifiers
        among those asked about, 0 to 1. `llm`, from text to text, paraphrases; `queries=False`
        leaves SPARQL and Cypher out. A graph on a server is pulled first.
        """
        from condgraph.questions.generate import Questions

        snapshot = self.snapshot().current
        return Questions(
            snapshot, n, seed=seed, kinds=kinds, hops=hops, qualifiers=qualifiers, llm=llm, queries=queries, graph=self.name
        )

    def at(self, at: TimeLike | None = None, *, between: Sequence[TimeLike | None] | None = None, certain: bool = False) -> GraphAt:
        """The graph as of a time, as a view with the same methods: `graph.at("1984").query(...)`. `at`,
        `between` and `certain` are as for `kopl`; the view follows later loads. `.snapshot()` has the
        statements of that time as a graph in process.
        """
        period = QueryOptions(at=at, between=between, certain=certain).period
        if period is None:
            raise OptionError("at needs a time", hint="graph.at('1984'), or graph.at(between=('1980', '1990'))")
        return GraphAt(self, period)

    def difference(self, first: TimeLike, second: TimeLike, *, certain: bool = False, timeout: float | None = None) -> Difference:
        """What changed between two times: the statements that may hold at the first and not at the second
        (`gone`), and the other way round (`new`). With `certain` those that hold for certain in all of
        the one time and not in the other.
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
        """The statements of a subject, a predicate or an object (all that are given) in the order of their times:
        `before` and `after` one of them, `gaps`, `overlaps`, Allen's relations and how long each lasts. Entities are given
        by name, id or record. On a server the statements are fetched by one query. Raises `UnknownNameError`.
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
        """The pairs of statements that cannot hold together: one subject, different values of a predicate that has one
        value at a time, and times that overlap. With `certain` only those of which values and times leave no doubt. With
        `by_name` subjects of one name are one, such as rows of two tables.

        Looked at are the `predicates` named, or those that were declared (`declare`), or with `propose` those that have
        one value at a time for nearly all of their subjects. At most `limit` after `offset`, in a fixed order. On a
        server the statements of the predicates are fetched. Raises `OptionError` where nothing is declared or named.
        """
        from condgraph.conflicts import conflicts

        return conflicts(
            self, predicates, certain=certain, by_name=by_name, propose=propose, limit=limit, offset=offset, timeout=timeout
        )

    def versions(self) -> list[Version]:
        """The versions of a graph in a folder that are stored, the current one last (`keep_versions`). Warns of those
        whose manifest is damaged.
        """
        from condgraph.versions import damage_of, versions_in

        if self._storage.directory is None:
            raise no_versions(self.place)
        for damage in damage_of(self._storage.directory):
            warnings.warn(damage, stacklevel=2)
        return versions_in(self._storage.directory)

    def as_of(self, as_of: AsOf) -> Graph:
        """The graph as it was known at a time (a date: at its end; UTC), or as the version of an id, read-only. Raises
        `StoreMissingError`, with the nearest version, where that is not stored.
        """
        return Graph(self.place, graph=self.name, as_of=as_of)

    def table(self, program: Any = "FindAll()") -> TableQuery:
        """Group, sum up, order and cut the rows that a program gives, as one query with it:
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
        """Read a program with parameters (`$name`), in any language, once, to run it with other values
        each time.

            films = graph.prepare("Find($person) Relate(directed_by, backward) QueryName()")
            films(person="Clint Eastwood").texts

        A parameter is a name or a value and never syntax, whatever it holds. Of patterns, whole
        names are parameters; in logical queries `?x` stays a variable, `$x` is a parameter.
        `options` are those of the language, as for `query`. Raises as the language does for a text
        that is none, and `ParseError` for a parameter where the language has an operator, a
        direction or a choice.
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

    # -- by subject: each is in the package of its subject -----------------------------------------

    ask = words.ask
    asking = words.asking
    chat = words.chat
    excerpt = words.excerpt

    @property
    def demos(self) -> Demos:
        """The demonstrations of the graph: questions with programs that `ask` shows to models. Those
        of a folder are stored with it; those of other graphs last as long as this object, or are
        stored in a file: `demos.keep_in(path)`.
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

    # -- looking -----------------------------------------------------------------------------------

    def status(self, *, verify: bool = False, timeout: float | None = None) -> Status:
        """What the graph holds; `verify` reads every byte and raises `StoreDamagedError` where one
        has changed.
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
        """What can be asked about: sources, concepts, predicates with what is on both sides,
        units, with counts and examples; the same on every store. `timeout` is in seconds.

        `source`, `concept` and `predicate` keep what has to do with the one of that name; numbers
        stay those of the whole graph. Raises `UnknownNameError`, with the nearest names, for a name
        that the graph does not have, and `StoreMissingError` where nothing was loaded.
        """
        from condgraph.overview.schema import describe

        with within(self.timeout if timeout is None else timeout):
            check()
            return describe(self._survey(), source=source, concept=concept, predicate=predicate)

    def _survey(self) -> Survey:
        return self._storage.survey()

    def export(self, path: str | os.PathLike[str] | IO[str], *, to: str = "jsonl", base: str | None = None) -> int:
        """Write everything the graph holds, in a form that loads to an equal graph; returns how
        many lines, triples or statements.

        `to` is "jsonl", RDF as "turtle" or "nquads", "parquet": a folder with the tables of a SQL store
        as files, for Spark and DuckDB, or "neo4j-import": a folder with the files and the command of
        Neo4j's import tool. "rdf" writes plain triples as N-Quads: those that RDF was loaded from, by
        their own IRIs, and what else there is under `base`; what they cannot state is a warning.
        "rdf12" is the same with qualifiers as reifiers of RDF 1.2 (`rdf:reifies` and triple terms). A
        file, and a folder of Parquet, is complete or not there: it is written next to its place and
        renamed. A folder that is there is replaced if it is such an export; another is an `OptionError`.
        """
        from condgraph.exporting import export

        return export(self._storage.whole(), self.name, path, to, base)

    def to_rdflib(self, *, base: str | None = None, dataset: bool = False) -> Any:
        """The graph as an `rdflib.Graph`: the triples that RDF was loaded from, by their own IRIs, and
        what else there is under `base`; with `dataset` an `rdflib.Dataset` that has the named graphs
        too. Statements about statements are reified, since rdflib has no triple terms.

        What RDF cannot state is a Python warning. Raises `MissingExtraError` where rdflib is not
        installed (`pip install 'condgraph[rdflib]'`), `OptionError` for what is no base.
        """
        from condgraph.sparql.rdflib_graph import to_rdflib

        return to_rdflib(self._storage.whole(), self.name, base, dataset=dataset)

    @property
    def current(self) -> Snapshot:
        """The open generation; raises `StoreMissingError` where nothing was loaded yet."""
        return self._storage.current

    @property
    def _directory(self) -> Path | None:
        return self._storage.directory


# -- As of a time ------------------------------------------------------------------------------------


class GraphAt(Graph):
    """A graph as of a time. Programs are answered where the graph is stored, with the statements that hold then.
    Other methods use `snapshot()`, which a graph on a server has to be asked for.
    """

    def __init__(self, graph: Graph, period: Period) -> None:
        self._use(graph._storage)
        self.timeout = graph.timeout
        self.graph, self.period = graph, period

    def __repr__(self) -> str:
        return f"<Graph {self.name!r} in {self.place} at {self.period}>"

    def close(self) -> None:
        """Nothing to do: the graph itself stays open."""

    def at(self, at: Any = None, *, between: Any = None, certain: bool = False) -> GraphAt:
        """The same graph as of another time."""
        return self.graph.at(at, between=between, certain=certain)

    def snapshot(self) -> Graph:
        """The statements that hold in the period, with all entities, as a graph in process. A graph on a server is
        pulled whole.
        """
        from condgraph.engine.execute.validity import cut

        return Graph.of(cut(self.graph._storage.whole(), self.period), self.name)

    def as_of(self, as_of: AsOf) -> GraphAt:
        """The same time in an earlier version of the graph."""
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
        """As `Graph.cypher`, on every store: the query goes through the algebra."""
        return Graph.cypher(self, text, parameters, **options)

    def logic_stored(self, query: Any, *branches: Any, **options: Any) -> Never:
        """Refused: the predicted edges that a server stores are of no time."""
        raise UnsupportedError(
            f"a graph as of a time ({self.place})",
            ["the predicted edges that are stored next to it"],
            hint="give the model: graph.at(...).logic(query, model=...)",
        )

    def counted(self, nodes: Any, known: Any, timeout: float | None = None) -> list[int]:
        """As `Graph.counted`: plans of answers name the time themselves."""
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


#: What takes a time itself, what is worked out from the statements of the time in process, and what changes a graph.
_TIMED: Final = ("chain", "explain", "logic", "match", "prepare", "reason", "verify_chain")
_IN_PROCESS: Final = (
    "answer_sets", "ask", "chat", "conflicts", "evaluate_logic", "excerpt", "export", "generate", "grammar", "learn_rules",
    "mix_links", "rdf", "sample_queries", "schema", "sparql", "status", "timeline", "to_rdflib", "train_links", "verify",
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
