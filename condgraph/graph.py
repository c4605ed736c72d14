"""The public API of a graph: open, load, ask, look, export."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Lock
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final, Literal, cast

from condgraph.ask.methods import AskMethods
from condgraph.chains.methods import ChainMethods
from condgraph.changing import Changes, check_kind, emptied, knowing_terms, orphaned, planned, scope_of, unclear
from condgraph.claims.methods import Claims
from condgraph.engine.addresses import shown
from condgraph.engine.answer import Answer
from condgraph.engine.bounds import check, check_bounds, within
from condgraph.engine.changes import Change
from condgraph.engine.errors import LoadError, OptionError, ReadOnlyError, StoreMissingError, nearest
from condgraph.engine.facts import Item, Source
from condgraph.engine.html import page, table
from condgraph.engine.origins import API
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.declared import rows_of_several
from condgraph.engine.snapshot.directory import graph_directory, graph_names, remove_graph, write_generation, writing
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.workers import Once
from condgraph.grammars.methods import Grammars
from condgraph.languages.registry import answer, explain
from condgraph.languages.registry import checked_on_unknown as _checked
from condgraph.languages.table.methods import TableMethods
from condgraph.links.methods import LinkMethods
from condgraph.loaders.base import OnError, Progress, Reading
from condgraph.logic.evaluation.methods import EvaluationMethods
from condgraph.logic.methods import LogicMethods
from condgraph.prepared import Preparing
from condgraph.reports import COUNTED, SEE_SCHEMA, LoadReport, Status, report
from condgraph.snapshot_store import SnapshotStore
from condgraph.sparql.methods import RdfMethods
from condgraph.vectors.carry import carry_over

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node
    from condgraph.engine.check import KnownIds
    from condgraph.engine.store import Store
    from condgraph.overview.schema import GraphSchema
    from condgraph.overview.survey import Survey
    from condgraph.patterns.matches import Matches
    from condgraph.questions.generate import Questions
    from condgraph.sparql.embedded import EmbeddedStore
    from condgraph.sparql.text.table import Table
    from condgraph.vectors.encoder import Encoder
    from condgraph.vectors.stored import IndexReport

OnUnknown = Literal["error", "empty"]
#: What answers: the snapshot in process, or SPARQL on an RDF store; by default the first, and for a
#: graph on a server that server.
Engine = Literal["snapshot", "sparql"]
ENGINES: Final = ("snapshot", "sparql")


class Graph(
    AskMethods,
    ChainMethods,
    Changes,
    Claims,
    EvaluationMethods,
    Grammars,
    LinkMethods,
    LogicMethods,
    Preparing,
    RdfMethods,
    TableMethods,
):
    """One graph: in a directory (kept, memory-mapped), or in memory. Use it from any thread; loads
    take turns.

    A `timeout` (seconds) is of the whole call: it is answered, or raises `DeadlineError`, by then.
    What an answer is asked for later (evidence, trace, warnings) has the same timeout again.
    """

    #: The timeout of calls that are given none; servers have it as an option.
    timeout: float | None = None

    def __init__(self, place: str | os.PathLike[str] = "memory:", *, graph: str = "default", read_only: bool = False) -> None:
        self.place, self.name, self.read_only = os.fspath(place), graph, read_only
        self._lock, self._rdf_lock = Lock(), Lock()
        self._closed = False
        self._snapshot: Snapshot | None = None
        self._rdf: tuple[Snapshot, Once[EmbeddedStore]] | None = None
        self._directory: Path | None = None
        if self.place != "memory:":
            if "://" in self.place:
                raise OptionError(f"{shown(self.place)!r} is no directory", hint="condgraph.open takes addresses of servers")
            self._directory = graph_directory(Path(self.place), graph)
            self._snapshot = Snapshot.open(self._directory)

    @classmethod
    def of(cls, snapshot: Snapshot, graph: str = "default") -> Graph:
        """A graph in memory over a snapshot that is there already."""
        found = cls("memory:", graph=graph)
        found._snapshot = snapshot
        return found

    # -- opening and closing -----------------------------------------------------------------------

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the snapshot; answers that were given stay good."""
        self._snapshot, self._rdf, self._closed = None, None, True

    def refresh(self) -> None:
        """Turn to the current generation, which another process may have written."""
        if self._directory is not None:
            self._snapshot = Snapshot.open(self._directory)

    def snapshot(self) -> Graph:
        """The graph as it is now, in process: later loads do not change it. A graph on a server is
        pulled whole.
        """
        return Graph.of(self.current, self.name)

    @property
    def current(self) -> Snapshot:
        """The open generation; raises `StoreMissingError` where nothing was loaded yet."""
        found = self._snapshot
        if found is None:
            if self._closed:
                raise StoreMissingError("the graph was closed", hint="open it again")
            if self._directory is None:
                raise StoreMissingError("the graph is empty", hint="load something first")
            others = graph_names(Path(self.place))
            hint = f"the graphs here are {', '.join(others)}" if others else "load something first"
            raise StoreMissingError(
                f"there is no graph {self.name!r} in {self.place}", candidates=nearest(self.name, others), hint=hint
            )
        return found

    def __repr__(self) -> str:
        return f"<Graph {self.name!r} in {self.place}>"

    # -- loading -----------------------------------------------------------------------------------

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
        """Load a file, a folder, a glob pattern, an http(s) address, a list of these, or a
        dataframe; all of it or nothing.

        The format is recognised (`format` overrules), and `options` are those of the loader. `name`
        is what the source is called (the file's stem otherwise; a frame gets a name of its own). A
        source that is there already adds nothing; one that has its name and another origin or
        content is a `SourceError`, unless `replace` puts it in the place of that, or `append` adds
        it to that. `on_error="skip"` leaves bad records out and reports them.
        `wait` is how many seconds to wait for another process that is writing.
        """
        from condgraph.loaders.fetch import fetched, has_address, told_by_address
        from condgraph.loaders.fingerprint import known_by
        from condgraph.loaders.recognise import recognise

        if has_address(source):
            same: dict[str, Any] = {"format": format, "name": name, "on_error": on_error, "progress": progress, "wait": wait}
            with fetched(source, progress, pages=format is not None) as files:
                return told_by_address(Graph.load(self, files, replace=replace, append=append, **same, **options), files)

        if on_error not in ("raise", "skip"):
            raise OptionError(f"on_error is 'raise' or 'skip', not {on_error!r}")
        if name == "":
            raise OptionError("the name of a source is empty")
        found = recognise(source, format, name=name, encoding=options.get("encoding"), options=options)
        for one in found:
            one.format.check_options(options)
        seen = self._sources(wait)
        given = known_by(found, options, seen, named=name is not None)
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

    def _sources(self, wait: float = 0.0) -> tuple[Source, ...]:
        """The sources that the graph has; none where nothing was loaded yet."""
        snapshot = self._snapshot
        return () if snapshot is None else tuple(map(snapshot.source_of, range(len(snapshot.schema.sources))))

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
    ) -> Answer:
        """Answer a KoPL program: text, the data set's JSON list, or the serialisation of its
        baselines.

        `timeout` is in seconds; `limit` the most values to give (the answer warns of the rest);
        `on_unknown="empty"` lets unknown names mean nothing. `engine="sparql"` answers with one
        SPARQL query on the graph's embedded RDF store instead.
        """
        return self._ask(program, "kopl", engine, timeout, cancelled, limit, {"on_unknown": _checked(on_unknown)})

    def query(
        self,
        program: Any,
        *,
        language: str | None = None,
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
        engine: Engine | None = None,
        **options: Any,
    ) -> Answer:
        """Answer a program in any language; it is recognised from the text, `language` overrules.
        `engine` as for `kopl`.
        """
        options["on_unknown"] = _checked(on_unknown)
        return self._ask(program, language, engine, timeout, cancelled, limit, options)

    def _ask(
        self,
        program: Any,
        language: str | None,
        engine: str | None,
        timeout: float | None,
        cancelled: Event | None,
        limit: int | None,
        options: dict[str, Any],
    ) -> Answer:
        if timeout is None:
            timeout = self.timeout
        if timeout is None and cancelled is None:
            return answer(self._store_of(engine), program, language, limit, options)
        with within(timeout, cancelled):
            return answer(self._store_of(engine), program, language, limit, options).keep_to(timeout)

    def _store_of(self, engine: str | None) -> Store:
        """What answers, and raises `OptionError` for what is no engine of this graph."""
        if engine is None or _checked_engine(engine) == "snapshot":
            return SnapshotStore(self.current)
        return self.rdf()

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
        with within(self.timeout if timeout is None else timeout, cancelled):
            return self._sparql(text, dialect=dialect, limit=limit, on_unknown=_checked(on_unknown))

    def _sparql(self, text: str, **options: Any) -> Table:
        return self.rdf().text(text, **options)

    def rdf(self, base: str | None = None) -> EmbeddedStore:
        """The embedded RDF store of the graph as it is now: built on first use, kept beside the
        generation it was built from. One whose names begin with a `base` of one's own is built
        anew each time, in memory.
        """
        # Oxigraph and all that needs it are imported for those who ask it.
        from condgraph.sparql.embedded import BUILDERS, EmbeddedStore
        from condgraph.sparql.layout import checked_base

        snapshot = self.current
        if base is not None:
            return EmbeddedStore(snapshot, self.name, base=checked_base(base))
        with self._rdf_lock:
            if self._rdf is None or self._rdf[0] is not snapshot:
                self._rdf = snapshot, Once(BUILDERS, lambda: EmbeddedStore(snapshot, self.name, self._directory))
            store = self._rdf[1]
        return store.get()

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
        RDF store for the edges.
        """
        check_bounds(timeout, limit, what="solutions to show")
        timeout = self.timeout if timeout is None else timeout
        with within(timeout, cancelled):
            found = self._store_of(engine).match(
                pattern, exact=exact, encoder=encoder, limit=limit, k=k, group_by=group_by, distinct_from=distinct_from,
                injective=injective, free=free, induced=induced, directed=directed, k_nodes=k_nodes,
                k_relations=k_relations, k_types=k_types, fast=fast, stretch=stretch, leave_out=leave_out,
            )  # fmt: skip
        return cast("Matches", found).keep_to(timeout)

    def explain(
        self,
        program: Any,
        *,
        language: str | None = None,
        on_unknown: OnUnknown = "error",
        engine: Engine | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> str:
        """The plan of a program as text, without running it; on a server, and with
        `engine="sparql"`, the query that it becomes.
        """
        with within(self.timeout if timeout is None else timeout):
            return explain(self._store_of(engine), program, language, {"on_unknown": _checked(on_unknown), **options})

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

    # -- looking -----------------------------------------------------------------------------------

    def status(self, *, verify: bool = False, timeout: float | None = None) -> Status:
        """What the graph holds; `verify` reads every byte and raises `StoreDamagedError` where one
        has changed.
        """
        with within(self.timeout if timeout is None else timeout):
            return self._status(verify)

    def _status(self, verify: bool) -> Status:
        snapshot = self.current
        if verify:
            snapshot.arrays.verify()
        others = () if self._directory is None else tuple(graph_names(Path(self.place)))
        generation = str(snapshot.about.get("generation", ""))
        return Status(
            self.place, self.name, generation, dict(snapshot.counts), self._sources(), snapshot.arrays.size, verify, others
        )

    def schema(
        self,
        *,
        source: str | None = None,
        concept: str | None = None,
        predicate: str | None = None,
        timeout: float | None = None,
    ) -> GraphSchema:
        """What can be asked about: sources, concepts, predicates with what stands on both sides,
        units, with counts and examples; the same on every store. `timeout` is in seconds.

        `source`, `concept` and `predicate` keep what has to do with the one of that name; numbers
        stay those of the whole graph. Raises `UnknownNameError`, with the nearest names, for a name
        that the graph does not have, and `StoreMissingError` where nothing was loaded.
        """
        from condgraph.overview.describe import describe

        with within(self.timeout if timeout is None else timeout):
            check()
            return describe(self._survey(), source=source, concept=concept, predicate=predicate)

    def _survey(self) -> Survey:
        from condgraph.overview.survey import survey

        return survey(self.current)

    def _repr_html_(self) -> str:
        """Where the graph is, for notebooks; what it holds, of one that is open in process. No
        server is asked for that.
        """
        snapshot = self._snapshot
        counts = [] if snapshot is None else [(name, f"{snapshot.counts.get(name, 0):,}") for name in COUNTED]
        return page(repr(self), [table("", ("holds", "how many"), counts)] if counts else (), [SEE_SCHEMA])

    def export(self, path: str | os.PathLike[str] | IO[str], *, to: str = "jsonl", base: str | None = None) -> int:
        """Write everything the graph holds, in a form that loads to an equal graph; returns how
        many lines or triples.

        `to` is "jsonl", RDF as "turtle" or "nquads", or "neo4j-import": a folder with the files and
        the command of Neo4j's import tool. "rdf" writes plain triples as N-Quads: those that RDF was
        loaded from, by their own IRIs, and what else there is under `base`; what they cannot say is
        a warning. A file is complete or not there: it is written beside
        its place and renamed.
        """
        from condgraph.exporting import export

        return export(self.current, self.name, path, to, base)


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
    """Whole numbers of a graph have a size; those of quantities have none."""
    try:
        yield
    except OverflowError as error:
        raise LoadError(
            "a row number has more than 31 bits, or a bound of a time more than 63", hint="numbers of that size can be quantities"
        ) from error


def _own_rdf(triples: Iterable[Any], base: str) -> Iterator[Item]:
    from condgraph.sparql.load.pull import read_file

    return read_file(triples, base)


def _checked_engine(engine: str) -> str:
    if engine not in ENGINES:
        raise OptionError(f"engine is 'snapshot' or 'sparql', not {engine!r}", candidates=nearest(engine, ENGINES))
    return engine
