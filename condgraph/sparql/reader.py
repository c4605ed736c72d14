"""Reading a graph in a remote RDF store: what its node says, queries of one state of it, names, and
the whole of it pulled into process.

Others may load the graph meanwhile. So a query says which load it was written for, and gives
nothing of another (`_guarded`); what was asked is then asked again (`steady`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from condgraph.engine.errors import StoreBusyError, StoreError, StoreMissingError, StoreVersionError
from condgraph.engine.facts import Source
from condgraph.engine.pieces import watched
from condgraph.engine.schema import AROUND, MOST_COMPARED
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.workers import shared
from condgraph.overview.survey import Survey, stored_survey
from condgraph.sparql.client import Endpoint
from condgraph.sparql.compile.group import Target
from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import LAYOUT, GraphIris
from condgraph.sparql.literals import string
from condgraph.sparql.load.pull import EVERYTHING, pull, sources
from condgraph.sparql.load.push import busy, unfinished
from condgraph.sparql.load.remote import in_pieces, marks, schema_of, state
from condgraph.sparql.load.write import counts
from condgraph.sparql.lookup import LookupSchema
from condgraph.sparql.store import RdfStore

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution

T = TypeVar("T")


class RemoteReader(RdfStore):
    """One graph of an RDF store, read through its endpoint; `base` is the IRI of the graph."""

    def __init__(self, endpoint: Endpoint, graph: str, base: str) -> None:
        self.endpoint, self.name, self.base = endpoint, graph, base
        self.place = endpoint.query_url
        self._schema: StoredSchema | None = None
        self._load = ""
        self._counts: dict[str, int] = {}
        self._pulled: dict[str, Any] = {}

    # -- the graph's node --------------------------------------------------------------------------

    def about(self) -> dict[str, list[str]]:
        """What the graph's node says; raises where there is none, or a load is not finished."""
        found = state(self.endpoint, self.base)
        if "loading" in found:
            other = next((mark for mark in marks(found) if not mark.gone), None)
            raise unfinished(self.name, found) if other is None else busy(self.name, other)
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
                self._schema = LookupSchema(json.loads(schema_of(found)), self)
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

    def survey(self) -> Survey:
        """What the graph holds, as it was counted when it was loaded; read once for each load."""

        def ask() -> Survey:
            kept = self.schema.kept
            if "survey" not in kept:
                rows = self.select(f"SELECT ?o WHERE {{ <{self.base}> <pred:survey> ?o }}")
                kept["survey"] = stored_survey(in_pieces(row["o"].value for row in rows), self._load, self.schema, self._counts)
            found: Survey = kept["survey"]
            # Of a graph that was loaded anew since, another is told.
            self._check_load()
            return found

        return self.steady(ask)

    def sources(self) -> tuple[Source, ...]:
        """The sources of the graph, by name."""
        return tuple(sorted(sources(self._rows), key=lambda source: source.name))

    # -- queries -----------------------------------------------------------------------------------

    @property
    def target(self) -> Target:
        """What compiling knows of the graph."""
        return Target(GraphIris(self.base), self.schema, self._counts, dialect=self.endpoint.dialect)

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

    def steady(self, ask: Callable[[], T]) -> T:
        """What `ask` gives, of one state of the graph: asked again where it was loaded anew
        meanwhile.
        """
        for _ in range(2):
            with suppress(_LoadedAnewError):
                return ask()
        return ask()

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

    # -- all of it ---------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The whole graph pulled into process, with its sources."""
        written = json.loads(self.about()["counts"][0])
        found = self._pull()
        if counts(found) != written:
            raise StoreError(
                f"{self.place} gave not all of graph {self.name!r}", hint="a limit of the server (ResultSetMaxRows of Virtuoso)?"
            )
        return found

    def left(self) -> Snapshot | None:
        """What a load that was ended half way left in the graph; None where that added to nothing."""
        return self._pull(lenient=True) if any(mark.adds for mark in marks(state(self.endpoint, self.base))) else None

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

    def _pull(self, lenient: bool = False) -> Snapshot:
        triples = self.endpoint.triples(EVERYTHING, graphs=(self.base,), whole=True)
        return pull(triples, self._rows, self.base, lenient=lenient)


class _LoadedAnewError(StoreBusyError):
    """The graph is another one than it was when its schema was read."""


def _nothing(row: QuerySolution) -> bool:
    """Whether the only row of an answer is a count of nothing."""
    terms = [term for term in row if term is not None]
    return not terms or (len(terms) == 1 and getattr(terms[0], "value", "") == "0")
