"""A graph in a remote RDF store: queries, patterns, loading and deletion.

Other processes may load the graph meanwhile. So a query names the load it was written for, and returns nothing for another one
(`_guarded`); it is then run again (`steady`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from condgraph.engine import algebra as alg
from condgraph.engine import errors
from condgraph.engine.bounds import cached, current, shared, watched, within
from condgraph.engine.facts import Source
from condgraph.engine.owner import Owner
from condgraph.engine.schema import MAX_COMPARED, NEARBY, beginnings, ids_of_key, offered
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import held, holding
from condgraph.engine.stored_schema import StoredSchema
from condgraph.overview.survey import Survey, stored_survey
from condgraph.sparql.client import PATIENCE, Endpoint, Method
from condgraph.sparql.compile.conditions import Target
from condgraph.sparql.dialect import OXIGRAPH, cut
from condgraph.sparql.layout import LAYOUT, GraphIris, base_iri, checked_base, predicted_graph, string
from condgraph.sparql.load import push
from condgraph.sparql.load.pull import EVERYTHING, SparqlParts, pull, sources
from condgraph.sparql.load.write import counts
from condgraph.sparql.store import RdfStore
from condgraph.sparql.text.lists import rewrite
from condgraph.sparql.text.query import run
from condgraph.sparql.text.scan import makes_triples
from condgraph.sparql.text.table import Table

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution

    from condgraph.edits import RemoteEdit
    from condgraph.engine.answer import Answer
    from condgraph.engine.changes import Change, OnWritten
    from condgraph.engine.store import KnownSchema, Request
    from condgraph.overview.adjusted import GraphSummary
    from condgraph.patterns.matches import Matches
    from condgraph.patterns.remote.planned import PlannedPatterns
    from condgraph.vectors.encoders import Encoder
    from condgraph.vectors.stored import IndexReport, OnProgress


# -- names and schema --------------------------------------------------------------------------------
# Schemas for lowering on a remote RDF store: the stored schema with names looked up one by one, or the
# schema of the whole graph, pulled into process.


#: Names of entities for which it is cached whether they exist.
_MAX_NAMES: Final = 100_000


class LookupSchema(StoredSchema):
    """A stored schema that looks up names of entities in the store, each once."""

    def __init__(self, found: dict[str, Any], graph: SparqlStore) -> None:
        super().__init__(found)
        self._graph = graph
        self._names: dict[str, bool] = {}
        self._every_name: list[str] | None = None
        self.names_repeat = True

    def has_entity(self, name: str) -> bool:
        """Tell whether an entity or concept has exactly this name: one small query for each new name."""
        exists = self._names.get(name)
        if exists is None:
            if len(self._names) > _MAX_NAMES:
                self._names.clear()
            exists = self._names[name] = bool(self._graph.named((name,)))
        return exists

    def keyed(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the rows (id and name) that have a text as their key."""
        matches = []
        for ident in ids_of_key(key, self.keyed_tables):
            rows = self._graph.select(f"SELECT ?name WHERE {{ {self._graph.target.names.entity(ident)} <pred:name> ?name }}")
            matches += [(ident, row["name"].value) for row in rows]
        return tuple(matches)

    def has_id(self, ident: str) -> bool:
        """Tell whether an entity has this id."""
        return self._graph.ask(f"ASK {{ {self._graph.target.names.entity(ident)} <pred:name> ?name }}")

    def has_text(self, text: str) -> bool:
        """Tell whether an entity has this name or id, or an attribute this text."""
        values = alg.Where(alg.Scan(None, None, family="attribute"), alg.Compare("=", text))
        return self.has_entity(text) or self.has_id(text) or self._graph.counted([values], lambda _: [])[0] > 0

    def every_name(self) -> list[str]:
        """Return the names of all entities, concepts and rows at the first call; none for a large graph."""
        if self._every_name is None:
            self._every_name = self._graph.all_names(())
        return self._every_name

    def nearest_entities(self, name: str, *, most: int = 5) -> list[str]:
        """Return entity names most like `name`, as `engine.schema.Schema` does."""
        graph = self._graph
        rows = graph.select(f"SELECT ?name WHERE {{ {graph.target.names.entity(name)} <pred:name> ?name }}")
        return offered(name, [row["name"].value for row in rows], graph.all_names(beginnings(name)), most)


class LinkedStore(RdfStore):
    """A store whose schema is that of the whole graph, pulled into process."""

    def __init__(self, graph: SparqlStore) -> None:
        self._graph, self.declared = graph, graph.declared

    def select(self, text: str) -> list[QuerySolution]:
        return self._graph.select(text)

    def ask(self, text: str) -> bool:
        return self._graph.ask(text)

    def steady(self, ask: Callable[[], T]) -> T:
        """Run `ask` on one state of the graph."""
        return self._graph.steady(ask)

    @cached
    def target(self) -> Target:
        """The graph, as the compiler uses it."""
        target = self._graph.target
        return replace(target, schema=self._graph.linked().schema)


# -- reading -----------------------------------------------------------------------------------------


T = TypeVar("T")


class _LoadedAnewError(errors.StoreBusyError):
    """The graph was loaded again after its schema was read."""


def _is_empty(row: QuerySolution) -> bool:
    """Tell whether the only row of a result is a count of 0, or empty."""
    terms = [term for term in row if term is not None]
    return not terms or (len(terms) == 1 and getattr(terms[0], "value", "") == "0")


# -- the store ---------------------------------------------------------------------------------------


class SparqlStore(RdfStore):
    """One graph of an RDF store.

    `place` is the endpoint's address; `base` the IRI of the graph, and the prefix of its names.
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
            raise errors.OptionError("the name of a graph is empty")
        base = base_iri(graph) if base is None else checked_base(base)
        endpoint = Endpoint(
            place, update=update, store=store, user=user, password=password, method=method, read_only=read_only, timeout=timeout,
            patience=patience,
        )  # fmt: skip
        self.endpoint, self.name, self.base, self.read_only = endpoint, graph, base, read_only
        self.place = endpoint.query_url
        self._schema: StoredSchema | None = None
        self._load = ""
        self._counts: dict[str, int] = {}
        self._pulled: dict[str, Any] = {}
        # A separate address for updates decides how to write; without one, the kind of store does.
        self._has_update_url = endpoint.update_url != endpoint.query_url
        self._loader = push.Loader(endpoint, graph, base, self.sources, self._pull)
        # By load; only the last one is cached.
        self._patterns: dict[str, Any] = {}
        #: Seconds that reading the whole graph may take, if the call has no timeout.
        self._long = 10 * endpoint.patience

    def __enter__(self) -> SparqlStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: there is no connection between queries, and threads without a caller were cut off."""

    @property
    def timeout(self) -> float | None:
        """The default deadline of calls, in seconds."""
        return self.endpoint.timeout

    def __repr__(self) -> str:
        return f"<SparqlStore {self.name!r} at {self.place}>"

    # -- the graph's node --------------------------------------------------------------------------

    def about(self) -> dict[str, list[str]]:
        """Return the terms of the graph's node; raises if there is none, or a load is unfinished."""
        terms = push.state(self.endpoint, self.base)
        if "loading" in terms:
            other = next((mark for mark in push.marks(terms) if not mark.gone), None)
            raise push.unfinished(self.name, terms) if other is None else push.busy(self.name, other)
        if "load" not in terms or "schema" not in terms:
            hint = 'load something first; layout="native" queries existing triples as they are'
            raise errors.StoreMissingError(f"there is no graph {self.name!r} at {self.place}", hint=hint)
        if len(terms["load"]) > 1:
            raise errors.StoreDamagedError(f"two writers changed graph {self.name!r} at once", hint="delete it, and load it again")
        if terms.get("layout") != [str(LAYOUT)]:
            raise errors.StoreVersionError(f"graph {self.name!r} has layout {terms.get('layout')}, this version reads {LAYOUT}")
        return terms

    @property
    def schema(self) -> StoredSchema:
        """The schema for lowering; read once, and again after a load."""
        if self._schema is None:
            terms = self.about()
            self._load, self._counts = terms["load"][0], json.loads(terms["counts"][0])
            try:
                self._schema = LookupSchema(json.loads(push.in_pieces(terms["schema"])), self)
            except KeyError as error:
                raise errors.StoreVersionError(
                    f"the schema of graph {self.name!r} has no {error}: another version wrote it", hint="load the graph again"
                ) from None
        return self._schema

    def refresh(self) -> None:
        """Discard the schema, which another process may have changed."""
        self._schema = None

    def exists(self) -> bool:
        """Tell whether the graph exists and its load is finished."""
        terms = push.state(self.endpoint, self.base)
        return "load" in terms and "loading" not in terms

    def counts(self) -> dict[str, int]:
        """Return the counts of the graph."""
        counted: dict[str, int] = json.loads(self.about()["counts"][0])
        return counted

    def survey(self) -> Survey:
        """Return the survey of the graph, computed by the load; read once for each load."""

        def ask() -> Survey:
            cache = self.schema.kept
            if "survey" not in cache:
                rows = self.select(f"SELECT ?o WHERE {{ <{self.base}> <pred:survey> ?o }}")
                cache["survey"] = stored_survey(
                    push.in_pieces(row["o"].value for row in rows), self._load, self.schema, self._counts
                )
            result: Survey = cache["survey"]
            # If the graph was loaded again, it has another survey.
            self._check_load()
            return result

        return self.steady(ask)

    def sources(self) -> tuple[Source, ...]:
        """Return the sources of the graph, by name."""
        return tuple(sorted(sources(self._run), key=lambda source: source.name))

    # -- queries -----------------------------------------------------------------------------------

    @property
    def target(self) -> Target:
        """The graph, as the compiler uses it."""
        return Target(GraphIris(self.base), self.schema, self._counts, dialect=self.endpoint.dialect)

    def select(self, text: str) -> list[QuerySolution]:
        """Return the rows of a SELECT over the graph whose schema is cached.

        A load that began since is an error, or is seen in full.
        """
        rows: list[QuerySolution] = list(watched(self._run(self._guarded(text))))
        if not rows or (len(rows) == 1 and _is_empty(rows[0])):
            self._check_load()
        return rows

    def ask(self, text: str) -> bool:
        """Return the answer of an ASK over the graph."""
        answer = bool(self._run(self._guarded(text)))
        if not answer:
            self._check_load()
        return answer

    def _run(self, text: str) -> Any:
        return self.endpoint.query(text, graphs=(self.base,))

    def _guarded(self, text: str) -> str:
        """Add a condition to a query: it has no results if the schema is of another load."""
        mark = f'<{self.base}> <pred:load> "{self._load}" . '
        return text.replace("{ ", "{ " + mark, 1)

    def _check_load(self) -> None:
        """Raise an error if an answer is empty and the graph was loaded again (`_guarded`); within `steady` once, at its end."""
        doubts = held(self)
        if doubts is not None:
            doubts.append(self._load)
        elif self.about()["load"] != [self._load]:
            self._schema = None
            raise _LoadedAnewError(f"graph {self.name!r} was loaded anew")

    def steady(self, ask: Callable[[], T]) -> T:
        """Run `ask` on one state of the graph; it is repeated if the graph was loaded again meanwhile."""
        if held(self) is not None:
            return ask()

        def attempt() -> T:
            doubts: list[str] = []
            try:
                with holding(self) as doubts:
                    return ask()
            finally:
                # An empty or strange result may be due to a load in between.
                if doubts:
                    self._check_load()

        for _ in range(2):
            with suppress(_LoadedAnewError):
                return attempt()
        return attempt()

    def named(self, names: Iterable[str]) -> set[str]:
        """Return those of the names that an entity or concept has."""
        existing: set[str] = set()
        for batch in cut(names, self.endpoint.dialect.list_length):
            # One name is found by its index; Virtuoso is slow on long VALUES.
            wanted = string(batch[0]) if len(batch) == 1 else f"?n FILTER(?n IN ({', '.join(map(string, batch))}))"
            text = f"SELECT DISTINCT ?n WHERE {{ ?e <pred:name> {wanted} }}"
            rows = list(self._run(text.replace("DISTINCT ?n", "?e") + " LIMIT 1" if len(batch) == 1 else text))
            existing.update(batch if len(batch) == 1 and rows else (row["n"].value for row in rows))
        return existing

    def all_names(self, around: Sequence[str]) -> list[str]:
        """Return the names of all entities, concepts and rows; in a large graph, only those that sort next to some texts."""
        if sum(self._counts.get(kind, 0) for kind in ("entities", "concepts", "rows")) <= MAX_COMPARED:
            return [row["n"].value for row in self.select("SELECT ?n WHERE { ?e <pred:name> ?n }")]
        sides = ((">=", "STR(?n)"), ("<", "DESC(STR(?n))"))
        texts = [
            f"SELECT DISTINCT ?n WHERE {{ ?e <pred:name> ?n FILTER(STR(?n) {side} {string(at)}) }} ORDER BY {order} LIMIT {NEARBY}"
            for at in around
            for side, order in sides
        ]
        return list(dict.fromkeys(row["n"].value for text in texts for row in self.select(text)))

    # -- all of it ---------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Read the whole graph into process, with its sources."""

        def ask() -> Snapshot:
            before = self.about()
            pulled = self._pull()
            if self.about()["load"] != before["load"]:
                raise _LoadedAnewError(f"graph {self.name!r} was changed while it was read")
            if counts(pulled) != json.loads(before["counts"][0]):
                raise errors.StoreError(
                    f"{self.place} gave not all of graph {self.name!r}",
                    hint="a limit of the server (ResultSetMaxRows of Virtuoso)?",
                )
            return pulled

        return self.steady(ask)

    def left(self) -> Snapshot | None:
        """Return what an interrupted load left in a graph that had content; None if there is no such load."""
        return self._pull(lenient=True) if any(mark.adds for mark in push.marks(push.state(self.endpoint, self.base))) else None

    def linked(self) -> Snapshot:
        """Return the graph pulled into process to look up names, cached until it changes."""
        load = self.about()["load"][0]
        if load not in self._pulled:
            self._pulled.clear()
        snapshot: Snapshot = shared(self._pulled, load, self.snapshot)
        return snapshot

    @property
    def linking_schema(self) -> KnownSchema:
        """The schema of the whole graph, pulled into process."""
        return self.linked().schema

    def _pull(self, lenient: bool = False) -> Snapshot:
        triples = self.endpoint.triples(EVERYTHING, graphs=(self.base,), whole=True)
        return pull(triples, self._run, self.base, lenient=lenient)

    # -- asking ------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Answer:
        """Answer a program with one SPARQL query."""
        return self.steady(lambda: RdfStore.answer(self._lowering(request.language), request))

    def explain(self, request: Request) -> str:
        """Return the SPARQL of a program, without running it."""
        return RdfStore.explain(self._lowering(request.language), request)

    def _lowering(self, language: str) -> RdfStore:
        """Return the store for lowering: names in LLM queries are resolved in the whole graph, which is pulled once."""
        return self if language == "kopl" else LinkedStore(self)

    def match(self, pattern: Any, *, exact: bool, **options: Any) -> Matches:
        """Match a pattern; the result equals that on a snapshot of the graph."""
        if not exact:
            raise errors.OptionError("an RDF store has no approximate index", hint="ask with exact=True")
        return self.steady(lambda: self._patterns_now().match(pattern, **options))

    def index(self, encoder: Encoder, on_progress: OnProgress | None) -> IndexReport:
        """Store the vectors of the graph's names on this machine; only new names are encoded."""
        return self.steady(lambda: self._patterns_now().index(encoder, on_progress))

    def _patterns_now(self) -> PlannedPatterns:
        """Return the patterns on the present graph."""
        from condgraph.patterns.remote.planned import PlannedPatterns
        from condgraph.patterns.remote.vectors import CachedVectors

        self.schema  # noqa: B018 - it is read before, since the thread may outlive the call
        if self._load not in self._patterns:
            self._patterns.clear()
        # The thread may outlive the call, and has a deadline of its own.
        bound = self._long if current() else None

        def make() -> PlannedPatterns:
            with within(bound):
                return PlannedPatterns(self, CachedVectors(self.place, self.base), self)

        patterns: PlannedPatterns = shared(self._patterns, self._load, make)
        return patterns

    def text(self, text: str, *, dialect: str = "standard", limit: int | None = None, on_unknown: str = "error") -> Table:
        """Run a user's query, read-only; return its results as a table (`sparql.text.query`)."""
        own_dialect = self.endpoint.dialect

        def runs(one: str) -> Any:
            if own_dialect is OXIGRAPH:
                one = rewrite(one)
            return self.endpoint.triples(one, graphs=(self.base,)) if makes_triples(one) else self._run(one)

        target = self.target
        table = run(
            text, runs, target.names, target.schema, dialect=dialect, limit=limit, on_unknown=on_unknown, federated=True,
            list_length=own_dialect.list_length, values=own_dialect.long_values,
        )  # fmt: skip
        if makes_triples(text) and not own_dialect.says_cut_triples:
            table.warnings.append("Virtuoso does not say where it cut triples (its ResultSetMaxRows)")
        return table

    # -- loading -----------------------------------------------------------------------------------

    def push(
        self,
        snapshot: Snapshot,
        *,
        wait: float = 0.0,
        change: Change | None = None,
        on_progress: OnWritten = lambda written, part: None,
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Add a snapshot to what the graph holds, remove what `change` removes; return the counts before and after.

        Loading the same content again changes nothing. `wait` is how many seconds to wait for another loader; after
        that, or if a load was interrupted, raises `StoreBusyError`. `on_progress` is called with the number of triples
        written so far.
        """
        if self.read_only:
            raise errors.ReadOnlyError.at(self.place)
        counts_before_after = self._loader.push(
            snapshot, wait=wait, by_update=self._has_update_url, change=change, on_progress=on_progress
        )
        self._schema = None
        return counts_before_after

    @property
    def remarks(self) -> list[str]:
        """The remarks of the last load on single changes."""
        return self._loader.remarks

    def content_now(self) -> str:
        """Return the name of the present content, read now."""
        return self.about()["load"][0]

    def stated(self) -> GraphSummary | None:
        """Return what the graph's node states about its content, read now."""
        return push.stated(self.endpoint, self.base)

    def totals(self, snapshot: Snapshot) -> dict[str, int]:
        """Return the counts that the graph's node would state for a snapshot."""
        return counts(snapshot)

    @property
    def parts(self) -> SparqlParts:
        """The parts of the graph, for single changes."""
        return SparqlParts(self._run, self.base)

    def edit_records(self) -> list[str]:
        """Return the records of the single changes, in order."""
        return push.edit_records(self.endpoint, self.base)

    def last_edit(self) -> int:
        """Return the number of the last single change; 0 if there is none."""
        rows = list(self._run(f"SELECT (MAX(SUBSTR(STR(?o), 1, 9)) AS ?n) WHERE {{ <{self.base}> <pred:edit> ?o }}"))
        return int(rows[0]["n"].value) if rows and rows[0]["n"] is not None else 0

    def write_edit(self, change: RemoteEdit, wait: float) -> str:
        """Write one single change, in one request; return the name of the new content."""
        if self.read_only:
            raise errors.ReadOnlyError.at(self.place)
        try:
            return push.write_edit(self.endpoint, self.base, self.name, change)
        finally:
            self._schema = None

    def under_way(self) -> tuple[list[str], bool] | None:
        """Return the sources of an unfinished load, and whether its writer is gone."""
        terms = push.state(self.endpoint, self.base)
        loads = push.marks(terms)
        return (terms.get("what", []), all(mark.gone for mark in loads)) if loads else None

    def abandon(self) -> bool:
        """Undo an unfinished load, and return whether there was one: the graph gets its earlier content.

        Raises `StoreBusyError` while the loading process runs. A process on another machine may still run: stop it first.
        """
        if self.read_only:
            raise errors.ReadOnlyError.at(self.place)
        terms = push.state(self.endpoint, self.base)
        self._schema = None
        push.forget_turns(
            self.endpoint, self.base, [name for name in terms.get("turn", ()) if Owner.gone(name, 0.0) or not Owner.here(name)]
        )
        if "loading" not in terms:
            return False
        other = next((mark for mark in push.marks(terms) if not mark.gone and Owner.here(mark.owner)), None)
        if other is not None:
            raise push.busy(self.name, other)
        if push.abandon(self.endpoint, self.base, terms):
            # Compares the counts with those before the load.
            self.snapshot()
        return True

    def delete(self) -> bool:
        """Delete this graph alone from the store; return whether there was one."""
        if self.read_only:
            raise errors.ReadOnlyError.at(self.place)
        existed = bool(push.state(self.endpoint, self.base))
        self.endpoint.update(f"DROP SILENT GRAPH <{predicted_graph(self.base)}>")
        push.remove(self.endpoint, self.base)
        self._schema = None
        return existed
