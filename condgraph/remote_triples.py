"""Existing triples in RDF stores, which condgraph did not write: queried in place and never changed."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from condgraph.engine import errors
from condgraph.engine.bounds import check, within
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Source
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import NO_UNIT, Kind
from condgraph.loaders.base import Reading
from condgraph.loaders.rdf.load import items_of
from condgraph.loaders.validity import OTHERS, StatementTimes
from condgraph.overview.survey import Survey
from condgraph.remote import RemoteGraph, ServerStorage
from condgraph.reports import Status
from condgraph.snapshot_store import SnapshotStore
from condgraph.sparql.client import Endpoint
from condgraph.sparql.native.look import looked
from condgraph.sparql.native.mapping import OWN, Mapping, Predicate, written
from condgraph.sparql.native.store import SOURCE, NativeRdfStore
from condgraph.sparql.text.table import Table

if TYPE_CHECKING:
    from condgraph.engine.store import Store

_WRITES: Final = 'layout="condgraph" opens, or makes, a graph of condgraph\'s own in the same store'
#: The options of a connection.
OPTIONS: Final = ("user", "password", "method", "timeout", "patience")


def built(mapping: Mapping, place: str, triples: list[Any], nodes: list[Any], concepts: list[str]) -> Snapshot:
    """Build a graph from triples, by the rules of the RDF loader and the names of a mapping."""
    source = Source(SOURCE, place, "sparql", terms=mapping.terms({triple.predicate.value for triple in triples}).dumps())
    options: dict[str, Any] = {"language": mapping.languages[0], "names": mapping.names}
    if mapping.given_labels is not None:
        options["labels"] = list(mapping.given_labels)
    if mapping.declared:
        options["statements"] = mapping.declared
    if mapping.infer:
        options["infer"] = list(mapping.infer)
    builder = Builder()
    builder.begin(source)
    reading = Reading(source)
    items = items_of(triples, reading, options, nodes, concepts, mapping.axioms)
    builder.add(StatementTimes.of(mapping.times).timed(items, reading) if mapping.times else items)
    return Snapshot.of(*lay_out(builder))


def timed(mapping: Mapping) -> Mapping:
    """Return a mapping whose declared times are separate qualifiers.

    Raises `OptionError` if a declared time is not an interval, or names a predicate or qualifier that the endpoint
    does not have.
    """
    if not mapping.times:
        return mapping
    predicates, keys = ([named.name for named in entries] for entries in (mapping.predicates, mapping.qualifiers))
    for predicate, columns in StatementTimes.of(mapping.times).columns().items():
        roles = [("predicate", name, predicates) for name in (predicate,) if name != OTHERS]
        for role, name, known_names in (*roles, *(("qualifier", column, keys) for column in columns)):
            if mapping.whole and name not in known_names:
                raise errors.OptionError(
                    f"`times` of the mapping file names the {role} {name!r}, which no statement has",
                    candidates=errors.nearest(name, known_names),
                )
    kinds = {(Kind.TIME, NO_UNIT): 1}
    time_qualifiers = tuple(
        Predicate(f"{OWN}{key}", key, 0, kinds) for key in (START_TIME, END_TIME, POINT_IN_TIME) if key not in keys
    )
    return replace(mapping, qualifiers=(*mapping.qualifiers, *time_qualifiers))


class TriplesStorage(ServerStorage):
    """The triples of a SPARQL endpoint, read-only."""

    server: NativeRdfStore

    def check_writable(self, wait: float = 0.0) -> None:
        raise errors.ReadOnlyError(f"{self.place} has triples that condgraph did not write, and only reads", hint=_WRITES)

    def write(self, *_: Any) -> Any:
        self.check_writable()

    def index(self, *_: Any) -> Any:
        """Raise `UnsupportedError`: no vectors are stored for existing triples."""
        raise errors.UnsupportedError("triples that condgraph did not write", ["an index"], hint="graph.snapshot() copies them")

    def store(self, engine: str | None) -> Store:
        """Return the store at the endpoint, or with `engine="snapshot"` one in process, on a copy."""
        if engine in (None, "sparql"):
            return cast("Store", self.server)
        if engine != "snapshot":
            raise errors.OptionError(f"existing triple stores have the engines 'sparql' and 'snapshot', not {engine!r}")
        return SnapshotStore(self.server.snapshot())

    def sparql(self, text: str, **options: Any) -> Table:
        """Raise `OptionError`: any SPARQL client can query the endpoint itself."""
        raise errors.OptionError("graph.sparql is for graphs of condgraph's own", hint="any SPARQL client asks this endpoint")

    def status(self, verify: bool) -> Status:
        """Return the counts and sources that the triples have as a graph. Raises `OptionError` for `verify`."""
        if verify:
            raise errors.OptionError("a graph on a server has no checksums here")
        mapping = self.server.mapping
        return Status(
            *(self.place, self.graph, f"not written by condgraph, {mapping.shape}", self.server.counts(), self.server.sources(), 0),
            notes=mapping.notes,
        )

    def survey(self) -> Survey:
        """Return the counts for a schema of the triples."""
        return self.server.survey()


class TriplesGraph(RemoteGraph):
    """The existing triples of a SPARQL endpoint. `mapping` is the path of a mapping file."""

    _storage: TriplesStorage

    def __init__(self, endpoint: Endpoint, *, mapping: str | os.PathLike[str] | None = None) -> None:
        def look(fresh: bool) -> Mapping:
            return timed(looked(endpoint, mapping, fresh=fresh))

        server = NativeRdfStore(endpoint, look, built)
        if mapping is not None:
            # Raises now if the file is invalid.
            look(False)
        super().__init__(TriplesStorage(cast("Any", server), graph="sparql", read_only=True))

    def __repr__(self) -> str:
        return f"<TriplesGraph at {self.place}>"

    @property
    def store(self) -> NativeRdfStore:
        """The store that queries the endpoint."""
        return self._storage.server

    @property
    def mapping(self) -> Mapping:
        """The interpretation of the triples as a graph."""
        return self.store.mapping

    def mapping_file(self, *, timeout: float | None = None) -> str:
        """Return the interpretation of the triples as the text of a mapping file."""
        with within(self.timeout if timeout is None else timeout):
            return written(self.mapping, self.place)


def triples(place: str, *, mapping: str | os.PathLike[str] | None = None, **options: Any) -> TriplesGraph:
    """Open the triples at an address. Raises `OptionError` for an option that only applies to graphs of condgraph."""
    unknown_option = next((name for name in options if name not in OPTIONS), None)
    if unknown_option is not None:
        raise errors.OptionError(
            f"triples that condgraph did not write take no option {unknown_option!r}", hint=f"they take: {', '.join(OPTIONS)}"
        )
    address = place[7:] if place[:7].lower() == "sparql+" else place
    return TriplesGraph(Endpoint(address, read_only=True, **options), mapping=mapping)


#: The seconds within which an endpoint must answer whether it has a graph of condgraph.
_PROBE: Final = 5.0
_OURS: Final = "ASK { { ?g <pred:load> ?l } UNION { GRAPH ?n { ?g <pred:load> ?l } } UNION { GRAPH ?n { ?g <pred:loading> ?l } } }"
_ANY: Final = "ASK { ?s ?p ?o }"


def existing_triples(place: str, **options: Any) -> TriplesGraph | None:
    """Open the triples at an address if condgraph wrote no graph there, which takes two small queries. Returns None
    if it did, if there are no triples, or if the endpoint does not answer in time; in the last case the first query
    of the graph fails.
    """
    if any(name not in OPTIONS for name in options):
        return None
    graph = triples(place, **options)
    endpoint = graph.store.endpoint
    try:
        with within(min(_PROBE, endpoint.timeout or _PROBE, endpoint.patience)):
            if not endpoint.query(_OURS) and endpoint.query(_ANY):
                return graph
    except (errors.StoreError, errors.ParseError, errors.DeadlineError):
        check()
    return None
