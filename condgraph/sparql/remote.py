"""A graph in a remote RDF store: load, ask with one query, look, and pull it into process."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from condgraph.engine.errors import (
    OptionError,
    ReadOnlyError,
    StoreBusyError,
    StoreError,
    StoreMissingError,
    StoreVersionError,
)
from condgraph.engine.facts import Source
from condgraph.engine.languages import detect, lower
from condgraph.engine.passes import optimise
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.readback import items
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import StoredSchema
from condgraph.sparql.answer import Place, answer
from condgraph.sparql.client import Endpoint, Method
from condgraph.sparql.compile_group import Target
from condgraph.sparql.compile_plan import compile_plan
from condgraph.sparql.dialect import VIRTUOSO, cut
from condgraph.sparql.layout import LAYOUT, Names, base_iri, checked_base, string
from condgraph.sparql.load import load_id, schema_of, state, write_snapshot
from condgraph.sparql.protocol_text import makes_triples
from condgraph.sparql.pull import EVERYTHING, pull, sources
from condgraph.sparql.query_text import run
from condgraph.sparql.table import Table
from condgraph.sparql.write import counts

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution

    from condgraph.engine.answer import Answer
    from condgraph.engine.linking.encoder import Encoder
    from condgraph.engine.linking.graph_vectors import Told
    from condgraph.engine.linking.kept_vectors import IndexReport
    from condgraph.engine.search.result import Matches
    from condgraph.sparql.match import SparqlPatterns
    from condgraph.sparql.match_vectors import CachedVectors

T = TypeVar("T")
#: Names of entities whose being there is remembered.
_MOST_NAMES = 100_000
#: Seconds after which a loader looks again whether another one is done.
_AGAIN = 0.1, 0.5


class SparqlStore:
    """One graph of an RDF store. `place` is the endpoint's address; `base` the IRI of the graph and of its names."""

    def __init__(
        self,
        place: str,
        *,
        graph: str = "default",
        read_only: bool = False,
        update: str | None = None,
        store: str | None = None,
        base: str | None = None,
        user: str | None = None,
        password: str | None = None,
        method: Method = "auto",
    ) -> None:
        if not graph:
            raise OptionError("the name of a graph is empty")
        self.name, self.read_only = graph, read_only
        self.base = base_iri(graph) if base is None else checked_base(base)
        self.endpoint = Endpoint(
            place, update=update, store=store, user=user, password=password, method=method, read_only=read_only
        )
        self.place = self.endpoint.query_url
        # An address for updates of its own says how to write; else the store's kind does.
        self._update_given = self.endpoint.update_url != self.endpoint.query_url
        self._schema: StoredSchema | None = None
        self._load = ""
        self._counts: dict[str, int] = {}
        self._pulled: tuple[str, Snapshot] | None = None
        self._patterns: tuple[str, SparqlPatterns] | None = None

    def __enter__(self) -> SparqlStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Nothing to let go of: there is no connection between queries, and threads that wait end by themselves."""

    def __repr__(self) -> str:
        return f"<SparqlStore {self.name!r} at {self.place}>"

    # -- the graph's node -------------------------------------------------------------------------------------------------

    def about(self) -> dict[str, list[str]]:
        """What the graph's node says; raises where there is none, or a load is not finished."""
        found = state(self.endpoint, self.base)
        if "loading" in found:
            raise StoreBusyError(
                f"graph {self.name!r} is being loaded, or its load was ended", hint="the same load again goes on where it stopped"
            )
        if "load" not in found or "schema" not in found:
            raise StoreMissingError(f"there is no graph {self.name!r} at {self.place}", hint="load something first")
        if found.get("layout") != [str(LAYOUT)]:
            raise StoreVersionError(f"graph {self.name!r} has layout {found.get('layout')}, this version reads {LAYOUT}")
        return found

    @property
    def schema(self) -> StoredSchema:
        """What lowering knows; read once, and again after a load."""
        if self._schema is None:
            found = self.about()
            self._load, self._counts = found["load"][0], json.loads(found["counts"][0])
            try:
                self._schema = _Schema(json.loads(schema_of(found)), self)
            except KeyError as error:
                raise StoreVersionError(
                    f"the schema of graph {self.name!r} has no {error}: another version wrote it", hint="load the graph again"
                ) from None
        return self._schema

    def refresh(self) -> None:
        """Forget the schema, which another process may have changed."""
        self._schema = None

    def exists(self) -> bool:
        """Whether the graph is there, and its load is finished."""
        found = state(self.endpoint, self.base)
        return "load" in found and "loading" not in found

    def counts(self) -> dict[str, int]:
        """What the graph holds."""
        found: dict[str, int] = json.loads(self.about()["counts"][0])
        return found

    def sources(self) -> tuple[Source, ...]:
        """The sources of the graph, by name."""
        return tuple(sorted(sources(self._rows), key=lambda source: source.name))

    # -- asking -----------------------------------------------------------------------------------------------------------

    @property
    def target(self) -> Target:
        """What compiling knows of the graph."""
        schema: Any = self.schema
        return Target(Names(self.base), schema, self._counts)

    def select(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> list[QuerySolution]:
        """The rows of a SELECT over the graph that this reader knows: a load that began since is an error, or is seen whole."""
        found: list[QuerySolution] = list(self._run(self._guarded(text), timeout, cancelled))
        if not found or (len(found) == 1 and _nothing(found[0])):
            self._check_load()
        return found

    def ask(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> bool:
        """The answer of an ASK over the graph."""
        found = bool(self._run(self._guarded(text), timeout, cancelled))
        if not found:
            self._check_load()
        return found

    def _run(self, text: str, timeout: float | None, cancelled: Event | None) -> Any:
        return self.endpoint.query(text, graphs=(self.base,), timeout=timeout, cancelled=cancelled)

    def _guarded(self, text: str) -> str:
        """The query, which gives nothing where the graph is not the one whose schema it was written for."""
        mark = f'<{self.base}> <pred:load> "{self._load}" . '
        return text.replace("{ ", "{ " + mark, 1)

    def _check_load(self) -> None:
        """After an answer with nothing in it: was that the guard?"""
        if self.about()["load"] != [self._load]:
            self._schema = None
            raise _LoadedAnewError(f"graph {self.name!r} was loaded anew")

    def query(
        self,
        program: Any,
        *,
        language: str | None = None,
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: str = "error",
        cancelled: Event | None = None,
        **options: Any,
    ) -> Answer:
        """Answer a program in any language with one SPARQL query; `timeout` in seconds is that of the query."""
        for attempt in range(3):
            try:
                with self.endpoint.within(timeout):
                    return self._query(program, language, timeout, limit, on_unknown, cancelled, options)
            except _LoadedAnewError:
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def match(self, program: Any, **options: Any) -> Matches:
        """The subgraphs that are nearest to a pattern, as a snapshot of the graph gives them."""
        return self._on_patterns(lambda patterns: patterns.match(program, **options))

    def index(self, encoder: Encoder, told: Told | None) -> IndexReport:
        """Keep the vectors of the graph's names on this machine; only what is new is encoded."""
        return self._on_patterns(lambda patterns: patterns.index(self._vectors, encoder, told))

    def _on_patterns(self, ask: Callable[[SparqlPatterns], T]) -> T:
        """What `ask` gives, of one state of the graph."""
        from condgraph.sparql.match import SparqlPatterns

        for attempt in range(3):
            try:
                schema: Any = self.schema
                if self._patterns is None or self._patterns[0] != self._load:
                    self._patterns = self._load, SparqlPatterns(self, schema, self._vectors, self.endpoint.dialect)
                return ask(self._patterns[1])
            except _LoadedAnewError:
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")

    @cached_property
    def _vectors(self) -> CachedVectors:
        from condgraph.sparql.match_vectors import CachedVectors

        return CachedVectors(self.place, self.base)

    def _query(
        self,
        program: Any,
        language: str | None,
        timeout: float | None,
        limit: int | None,
        on_unknown: str,
        cancelled: Event | None,
        options: dict[str, Any],
    ) -> Answer:
        language = language or detect(program)
        return answer(
            self._lowering(language),
            program,
            language,
            timeout=timeout,
            limit=limit,
            cancelled=cancelled,
            on_unknown=on_unknown,
            **options,
        )

    def _lowering(self, language: str) -> Place:
        """This store as lowering needs it: names in LLM queries are resolved among all of the graph, which is pulled once."""
        return self if language == "kopl" else _Linked(self)

    def named(self, names: Iterable[str]) -> set[str]:
        """Those of the names that an entity or concept has."""
        found: set[str] = set()
        for some in cut(names, self.endpoint.dialect.list_length):
            # One name is found by its index; Virtuoso is slow on long VALUES.
            wanted = string(some[0]) if len(some) == 1 else f"?n FILTER(?n IN ({', '.join(map(string, some))}))"
            text = f"SELECT DISTINCT ?n WHERE {{ ?e <pred:name> {wanted} }}"
            rows = list(self._run(text.replace("DISTINCT ?n", "?e") + " LIMIT 1" if len(some) == 1 else text, None, None))
            found.update(some if len(some) == 1 and rows else (row["n"].value for row in rows))
        return found

    def text(
        self,
        text: str,
        *,
        dialect: str = "standard",
        timeout: float | None = None,
        limit: int | None = None,
        cancelled: Event | None = None,
        on_unknown: str = "error",
    ) -> Table:
        """Run a query that people wrote, read-only; its results as a table (`query_text`)."""

        def runs(one: str) -> Any:
            if makes_triples(one):
                return self.endpoint.triples(one, graphs=(self.base,), timeout=timeout)
            return self._run(one, timeout, cancelled)

        target, length = self.target, self.endpoint.dialect.list_length
        table = run(
            text,
            runs,
            target.names,
            target.schema,
            dialect=dialect,
            limit=limit,
            on_unknown=on_unknown,
            federated=True,
            list_length=length,
        )
        if makes_triples(text) and self.endpoint.dialect is VIRTUOSO:
            table.warnings.append("Virtuoso does not say where it cut triples (its ResultSetMaxRows)")
        return table

    def explain(self, program: Any, *, language: str | None = None, on_unknown: str = "error", **options: Any) -> str:
        """The SPARQL of a program, without running it."""
        language = language or detect(program)
        place = self._lowering(language)
        schema: Any = place.target.schema
        lowered = lower(schema, program, language, {"on_unknown": on_unknown, **options})
        return compile_plan(optimise(lowered.plan)[0], place.target).text

    # -- loading ----------------------------------------------------------------------------------------------------------

    def push(self, snapshot: Snapshot, *, wait: float = 0.0) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot as this graph, beside what the graph holds already; gives what it held, and holds now.

        The same content again changes nothing. `wait` is for how many seconds to wait for another loader; then, or where a load
        was ended, raises `StoreBusyError`.
        """
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        until = time.monotonic() + wait
        while True:
            try:
                return self._push(snapshot)
            except StoreBusyError:
                left = until - time.monotonic()
                if left <= 0:
                    raise
                # Loaders that met step back, and come again at different times.
                time.sleep(min(left, random.uniform(*_AGAIN)))

    def _push(self, snapshot: Snapshot) -> tuple[dict[str, int], dict[str, int]]:
        load = load_id(snapshot)
        found = state(self.endpoint, self.base)
        if self.endpoint.store_url is None and not self._update_given:
            self.endpoint.store_url = self.endpoint.dialect.store_url(self.place)
        begun = found if "loading" in found else None
        if begun is not None and begun["loading"] != [load]:
            raise StoreBusyError(
                f"another load of graph {self.name!r} is not finished", hint="finish it with the same sources, or delete the graph"
            )
        previous = None
        if "load" in found or (begun is not None and begun.get("over") != [""]):
            if begun is None and found["load"] == [load]:
                held: dict[str, int] = json.loads(found["counts"][0])
                return held, held
            previous = self._pull(lenient=begun is not None)
            builder = Builder(previous)
            builder.add(items(snapshot))
            snapshot = Snapshot.of(*lay_out(builder))
        write_snapshot(
            self.endpoint,
            snapshot,
            self.base,
            graph=self.name,
            load=load,
            over=found.get("load"),
            previous=previous,
            begun=begun,
        )
        self._schema = None
        return {} if previous is None else counts(previous), counts(snapshot)

    def delete(self) -> None:
        """Remove the graph from the store."""
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        self.endpoint.update(f"CLEAR SILENT GRAPH <{self.base}>")
        self._schema = None

    def snapshot(self) -> Snapshot:
        """The whole graph pulled into process, with its sources."""
        written = json.loads(self.about()["counts"][0])
        found = self._pull()
        if counts(found) != written:
            raise StoreError(
                f"{self.place} gave not all of graph {self.name!r}", hint="a limit of the server (ResultSetMaxRows of Virtuoso)?"
            )
        return found

    def linked(self) -> Snapshot:
        """The graph pulled into process, kept for as long as it is the same: for those who look names up in it."""
        load = self.about()["load"][0]
        if self._pulled is None or self._pulled[0] != load:
            self._pulled = load, self.snapshot()
        return self._pulled[1]

    def _rows(self, text: str) -> Any:
        return self._run(text, None, None)

    def _pull(self, *, lenient: bool = False) -> Snapshot:
        triples = self.endpoint.triples(EVERYTHING, graphs=(self.base,))
        return pull(triples, self._rows, self.base, lenient=lenient)


class _LoadedAnewError(StoreBusyError):
    """The graph is another one than it was when its schema was read."""


class _Schema(StoredSchema):
    """A stored schema that looks names of entities up where the graph is, each once."""

    def __init__(self, found: dict[str, Any], store: SparqlStore) -> None:
        super().__init__(found)
        self._store = store
        self._names: dict[str, bool] = {}

    def has_entity(self, name: str) -> bool:
        """Some entity or concept has exactly this name: one small query for a name that was not asked for before."""
        found = self._names.get(name)
        if found is None:
            if len(self._names) > _MOST_NAMES:
                self._names.clear()
            found = self._names[name] = bool(self._store.named((name,)))
        return found


class _Linked:
    """A store whose schema is that of the whole graph, pulled into process."""

    def __init__(self, store: SparqlStore) -> None:
        self._store = store
        self.select, self.ask = store.select, store.ask

    @cached_property
    def target(self) -> Target:
        """What compiling knows of the graph."""
        target = self._store.target
        return Target(target.names, self._store.linked().schema, target.counts)


def _nothing(row: QuerySolution) -> bool:
    """Whether the only row of an answer is a count of nothing."""
    terms = [term for term in row if term is not None]
    return not terms or (len(terms) == 1 and getattr(terms[0], "value", "") == "0")
