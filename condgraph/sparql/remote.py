"""A graph in a remote RDF store: load, ask with one query, look, and pull it into process."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from condgraph.engine.bounds import LEAST, cached, current, within
from condgraph.engine.errors import (
    OptionError,
    ReadOnlyError,
    StoreBusyError,
    StoreError,
    StoreMissingError,
    StoreVersionError,
    nearest,
)
from condgraph.engine.facts import Source
from condgraph.engine.origins import check_sources
from condgraph.engine.owner import Owner
from condgraph.engine.pieces import watched
from condgraph.engine.schema import AROUND, MOST_COMPARED, beginnings
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.readback import items
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.workers import shared
from condgraph.sparql.client import PATIENCE, Endpoint, Method
from condgraph.sparql.compile.group import Target
from condgraph.sparql.dialect import OXIGRAPH, VIRTUOSO, cut
from condgraph.sparql.layout import LAYOUT, GraphIris, base_iri, checked_base, string
from condgraph.sparql.load.limits import check_loadable
from condgraph.sparql.load.pull import EVERYTHING, pull, sources
from condgraph.sparql.load.remote import Mark, abandon, claim, is_staged, load_id, marks, remove, schema_of, state, write_snapshot
from condgraph.sparql.load.write import counts
from condgraph.sparql.store import RdfStore
from condgraph.sparql.text.lists import rewrite
from condgraph.sparql.text.query import run
from condgraph.sparql.text.survey import makes_triples
from condgraph.sparql.text.table import Table

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution

    from condgraph.engine.answer import Answer
    from condgraph.engine.store import Request
    from condgraph.patterns.matches import Matches
    from condgraph.sparql.patterns.match import SparqlPatterns
    from condgraph.sparql.patterns.vectors import CachedVectors
    from condgraph.vectors.encoder import Encoder
    from condgraph.vectors.graph_vectors import OnProgress
    from condgraph.vectors.stored import IndexReport

T = TypeVar("T")
#: Names of entities that are remembered, with whether they are there.
_MOST_NAMES = 100_000
#: Seconds after which a loader looks again whether another one is done.
_AGAIN = 0.1, 0.5


class SparqlStore(RdfStore):
    """One graph of an RDF store. `place` is the endpoint's address; `base` the IRI of the graph and
    of its names.
    """

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
        timeout: float | None = None,
        patience: float = PATIENCE,
    ) -> None:
        if not graph:
            raise OptionError("the name of a graph is empty")
        self.name, self.read_only = graph, read_only
        self.base = base_iri(graph) if base is None else checked_base(base)
        self.endpoint = Endpoint(
            place, update=update, store=store, user=user, password=password, method=method, read_only=read_only, timeout=timeout,
            patience=patience,
        )  # fmt: skip
        self.place = self.endpoint.query_url
        # An address for updates of its own says how to write; else the store's kind does.
        self._update_given = self.endpoint.update_url != self.endpoint.query_url
        self._schema: StoredSchema | None = None
        self._load = ""
        self._counts: dict[str, int] = {}
        self._pulled: dict[str, Any] = {}
        # By load, of which there is one at a time.
        self._patterns: dict[str, Any] = {}
        #: Seconds that a look at the whole graph may take, where the call does not say.
        self._long = 10 * self.endpoint.patience

    def __enter__(self) -> SparqlStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Nothing to let go of: there is no connection between queries, and threads whose callers
        went on were cut off.
        """

    @property
    def timeout(self) -> float | None:
        """Seconds of a call without a deadline of its own."""
        return self.endpoint.timeout

    def __repr__(self) -> str:
        return f"<SparqlStore {self.name!r} at {self.place}>"

    # -- the graph's node --------------------------------------------------------------------------

    def about(self) -> dict[str, list[str]]:
        """What the graph's node says; raises where there is none, or a load is not finished."""
        found = state(self.endpoint, self.base)
        if "loading" in found:
            busy = next((mark for mark in marks(found) if not mark.gone), None)
            raise self._unfinished(found) if busy is None else self._busy(busy)
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
                self._schema = _LookupSchema(json.loads(schema_of(found)), self)
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

    # -- asking ------------------------------------------------------------------------------------

    @property
    def target(self) -> Target:
        """What compiling knows of the graph."""
        return Target(GraphIris(self.base), self.schema, self._counts)

    def select(self, text: str) -> list[QuerySolution]:
        """The rows of a SELECT over the graph that this reader knows: a load that began since is an
        error, or is seen whole.
        """
        found: list[QuerySolution] = list(watched(self._run(self._guarded(text))))
        if not found or (len(found) == 1 and _nothing(found[0])):
            self._check_load()
        return found

    def ask(self, text: str) -> bool:
        """The answer of an ASK over the graph."""
        found = bool(self._run(self._guarded(text)))
        if not found:
            self._check_load()
        return found

    def _run(self, text: str) -> Any:
        return self.endpoint.query(text, graphs=(self.base,))

    def _guarded(self, text: str) -> str:
        """The query, which gives nothing where the graph is not the one whose schema it was written
        for.
        """
        mark = f'<{self.base}> <pred:load> "{self._load}" . '
        return text.replace("{ ", "{ " + mark, 1)

    def _check_load(self) -> None:
        """After an answer with nothing in it: was that the guard?"""
        if self.about()["load"] != [self._load]:
            self._schema = None
            raise _LoadedAnewError(f"graph {self.name!r} was loaded anew")

    def answer(self, request: Request) -> Answer:
        """Answer a program with one SPARQL query."""
        return self.steady(lambda: RdfStore.answer(self._lowering(request.language), request))

    def explain(self, request: Request) -> str:
        """The SPARQL of a program, without running it."""
        return RdfStore.explain(self._lowering(request.language), request)

    def _lowering(self, language: str) -> RdfStore:
        """This store as lowering needs it: names in LLM queries are resolved among all of the
        graph, which is pulled once.
        """
        return self if language == "kopl" else _Linked(self)

    def steady(self, ask: Callable[[], T]) -> T:
        """What `ask` gives, of one state of the graph: asked again where it was loaded anew
        meanwhile.
        """
        for _ in range(2):
            with suppress(_LoadedAnewError):
                return ask()
        return ask()

    def match(self, pattern: Any, *, exact: bool, **options: Any) -> Matches:
        """The subgraphs that are nearest to a pattern, as a snapshot of the graph gives them."""
        if not exact:
            raise OptionError("an RDF store has no approximate index", hint="ask with exact=True")
        return self.steady(lambda: self._patterns_now().match(pattern, **options))

    def index(self, encoder: Encoder, on_progress: OnProgress | None) -> IndexReport:
        """Keep the vectors of the graph's names on this machine; only what is new is encoded."""
        return self.steady(lambda: self._patterns_now().index(self._vectors, encoder, on_progress))

    def _patterns_now(self) -> SparqlPatterns:
        """Patterns on the graph as it is now."""
        from condgraph.sparql.patterns.match import SparqlPatterns

        schema = self.schema
        if self._load not in self._patterns:
            self._patterns.clear()
        # A thread that goes on without the call has a bound of its own.
        bound = self._long if current() else None

        def make() -> SparqlPatterns:
            with within(bound):
                return SparqlPatterns(self, schema, self._vectors, self.endpoint.dialect)

        found: SparqlPatterns = shared(self._patterns, self._load, make)
        return found

    @cached
    def _vectors(self) -> CachedVectors:
        from condgraph.sparql.patterns.vectors import CachedVectors

        return CachedVectors(self.place, self.base)

    def named(self, names: Iterable[str]) -> set[str]:
        """Those of the names that an entity or concept has."""
        found: set[str] = set()
        for some in cut(names, self.endpoint.dialect.list_length):
            # One name is found by its index; Virtuoso is slow on long VALUES.
            wanted = string(some[0]) if len(some) == 1 else f"?n FILTER(?n IN ({', '.join(map(string, some))}))"
            text = f"SELECT DISTINCT ?n WHERE {{ ?e <pred:name> {wanted} }}"
            rows = list(self._run(text.replace("DISTINCT ?n", "?e") + " LIMIT 1" if len(some) == 1 else text))
            found.update(some if len(some) == 1 and rows else (row["n"].value for row in rows))
        return found

    def all_names(self, around: Sequence[str]) -> list[str]:
        """The names of all entities, concepts and rows; in a large graph those that stand around
        some texts.
        """
        every = "SELECT DISTINCT ?n WHERE { ?e <pred:name> ?n"
        if sum(self._counts.get(kind, 0) for kind in ("entities", "concepts", "rows")) <= MOST_COMPARED:
            texts = [f"{every} }}"]
        else:
            sides = ((">=", "STR(?n)"), ("<", "DESC(STR(?n))"))
            texts = [
                f"{every} FILTER(STR(?n) {side} {string(one)}) }} ORDER BY {order} LIMIT {AROUND}"
                for one in around
                for side, order in sides
            ]
        return list(dict.fromkeys(row["n"].value for text in texts for row in self.select(text)))

    def text(self, text: str, *, dialect: str = "standard", limit: int | None = None, on_unknown: str = "error") -> Table:
        """Run a query that people wrote, read-only; its results as a table (`sparql.text.query`)."""
        there = self.endpoint.dialect

        def runs(one: str) -> Any:
            if there is OXIGRAPH:
                one = rewrite(one)
            return self.endpoint.triples(one, graphs=(self.base,)) if makes_triples(one) else self._run(one)

        target = self.target
        table = run(
            text, runs, target.names, target.schema, dialect=dialect, limit=limit, on_unknown=on_unknown, federated=True,
            list_length=there.list_length, values=there is not VIRTUOSO,
        )  # fmt: skip
        if makes_triples(text) and there is VIRTUOSO:
            table.warnings.append("Virtuoso does not say where it cut triples (its ResultSetMaxRows)")
        return table

    # -- loading -----------------------------------------------------------------------------------

    def push(self, snapshot: Snapshot, *, wait: float = 0.0) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot as this graph, beside what the graph holds already; gives what it held,
        and holds now.

        The same content again changes nothing. `wait` is for how many seconds to wait for another
        loader; then, or where a load was ended, raises `StoreBusyError`.
        """
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        until, owner = time.monotonic() + wait, Owner()
        try:
            return self._pushed(snapshot, wait, until, owner.name)
        finally:
            owner.release()

    def _pushed(self, snapshot: Snapshot, wait: float, until: float, owner: str) -> tuple[dict[str, int], dict[str, int]]:
        while True:
            try:
                # A caller who says how long to wait waits no longer than that for a silent server.
                return self._push(snapshot, owner, max(until - time.monotonic(), LEAST) if wait else None)
            except StoreBusyError:
                left = until - time.monotonic()
                if left <= 0:
                    raise
                # Loaders that met step back, and come again at different times.
                time.sleep(min(left, random.uniform(*_AGAIN)))

    def _push(self, snapshot: Snapshot, owner: str, patience: float | None) -> tuple[dict[str, int], dict[str, int]]:
        load, what = load_id(snapshot), [snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name")))]
        found = state(self.endpoint, self.base, patience)
        if self.endpoint.store_url is None and not self._update_given:
            self.endpoint.store_url = self.endpoint.dialect.store_url(self.place)
        begun = marks(found)
        check_loadable(snapshot, GraphIris(self.base), self.endpoint.dialect)
        busy = next((mark for mark in begun if not mark.gone), None)
        if busy is not None:
            raise self._busy(busy)
        if any(mark.load != load for mark in begun):
            raise self._unfinished(found, what)
        if not begun and found.get("load") == [load]:
            held: dict[str, int] = json.loads(found["counts"][0])
            return held, held
        adds = any(mark.adds for mark in begun) if begun else "load" in found
        if adds and not begun:
            # Before anything is written: a load that fails for its sources leaves the graph as it
            # was.
            check_sources(self.sources(), snapshot)
        claim(self.endpoint, self.base, Mark(load, owner, adds), found)
        # A load that had changed nothing yet left nothing to go on with.
        on = bool(begun) and (is_staged(found) or not adds)
        previous = None
        if adds:
            previous = self._pull(lenient=on)
            builder = Builder(previous)
            builder.add(items(snapshot))
            snapshot = Snapshot.of(*lay_out(builder))
        write_snapshot(
            self.endpoint,
            snapshot,
            self.base,
            graph=self.name,
            load=load,
            what=what,
            previous=previous,
            begun=found if on else None,
        )
        self._schema = None
        return {} if previous is None else counts(previous), counts(snapshot)

    def _busy(self, mark: Mark) -> StoreBusyError:
        return StoreBusyError(
            f"graph {self.name!r} is being loaded by {Owner.place(mark.owner)}", hint="wait= waits for it; or stop that process"
        )

    def _unfinished(self, begun: dict[str, list[str]], what: list[str] | None = None) -> StoreBusyError:
        """What to say of a load that was ended, or is another process's; `what` are the sources
        that were to be loaded now.
        """
        sources = sorted(begun.get("what", ()))
        named = f"a load of {', '.join(map(repr, sources[:5]))}" if sources else "another load"
        more, hint = "", "load the same again, which goes on where that stopped, "
        if what and sources == sorted(what):
            more, hint = ", and what it was read from has changed since", "load it as it was, "
        hint += "or abandon it with graph.abandon() or `condgraph abandon`"
        return StoreBusyError(f"{named} into graph {self.name!r} is not finished{more}", hint=hint)

    def abandon(self) -> bool:
        """Take back a load that was not finished: the graph holds what it held before. Whether
        there was one.

        Raises `StoreBusyError` while the process that loads is there. A process on another machine
        may still be there: stop it first.
        """
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        begun = state(self.endpoint, self.base)
        self._schema = None
        if "loading" not in begun:
            return False
        busy = next((mark for mark in marks(begun) if not mark.gone and Owner.here(mark.owner)), None)
        if busy is not None:
            raise self._busy(busy)
        if abandon(self.endpoint, self.base, begun):
            # Compared with the counts that the graph had.
            self.snapshot()
        return True

    def delete(self) -> bool:
        """Remove the graph from the store, and nothing else; whether there was one."""
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        found = bool(state(self.endpoint, self.base))
        remove(self.endpoint, self.base)
        self._schema = None
        return found

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
        """The graph pulled into process, kept for as long as it is the same: for those who look
        names up in it.
        """
        load = self.about()["load"][0]
        if load not in self._pulled:
            self._pulled.clear()
        found: Snapshot = shared(self._pulled, load, self.snapshot)
        return found

    def _rows(self, text: str) -> Any:
        return self._run(text)

    def _pull(self, *, lenient: bool = False) -> Snapshot:
        triples = self.endpoint.triples(EVERYTHING, graphs=(self.base,), whole=True)
        return pull(triples, self._rows, self.base, lenient=lenient)


class _LoadedAnewError(StoreBusyError):
    """The graph is another one than it was when its schema was read."""


class _LookupSchema(StoredSchema):
    """A stored schema that looks names of entities up where the graph is, each once."""

    def __init__(self, found: dict[str, Any], store: SparqlStore) -> None:
        super().__init__(found)
        self._store = store
        self._names: dict[str, bool] = {}

    def has_entity(self, name: str) -> bool:
        """Some entity or concept has exactly this name: one small query for a name that was not
        asked for before.
        """
        found = self._names.get(name)
        if found is None:
            if len(self._names) > _MOST_NAMES:
                self._names.clear()
            found = self._names[name] = bool(self._store.named((name,)))
        return found

    def has_id(self, ident: str) -> bool:
        """Some entity has this id."""
        return self._store.ask(f"ASK {{ {self._store.target.names.entity(ident)} <pred:name> ?name }}")

    def nearest_entities(self, name: str, *, most: int = 5) -> list[str]:
        """Entity names most like `name`, as `engine.schema.Schema` gives them."""
        return nearest(name, self._store.all_names(beginnings(name)), most=most)


class _Linked(RdfStore):
    """A store whose schema is that of the whole graph, pulled into process."""

    def __init__(self, store: SparqlStore) -> None:
        self._store = store

    def select(self, text: str) -> list[QuerySolution]:
        """The rows of a SELECT over the graph."""
        return self._store.select(text)

    def ask(self, text: str) -> bool:
        """The answer of an ASK over the graph."""
        return self._store.ask(text)

    @cached
    def target(self) -> Target:
        """What compiling knows of the graph."""
        target = self._store.target
        return Target(target.names, self._store.linked().schema, target.counts)


def _nothing(row: QuerySolution) -> bool:
    """Whether the only row of an answer is a count of nothing."""
    terms = [term for term in row if term is not None]
    return not terms or (len(terms) == 1 and getattr(terms[0], "value", "") == "0")
