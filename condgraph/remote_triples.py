"""RDF stores whose triples condgraph did not write. They are asked where they are, and nothing is ever
written there.
"""

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
    """Triples as a graph, by the rules of the loader of RDF and the names of a mapping."""
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
    """A mapping whose declared times are qualifiers of their own. Raises `OptionError` for what is no interval, and for a
    predicate or a qualifier that the endpoint does not have.
    """
    if not mapping.times:
        return mapping
    predicates, keys = ([one.name for one in several] for several in (mapping.predicates, mapping.qualifiers))
    for predicate, columns in StatementTimes.of(mapping.times).columns().items():
        wanted = [("predicate", name, predicates) for name in (predicate,) if name != OTHERS]
        for what, name, known in (*wanted, *(("qualifier", column, keys) for column in columns)):
            if mapping.whole and name not in known:
                raise errors.OptionError(
                    f"`times` of the mapping file names the {what} {name!r}, which no statement has",
                    candidates=errors.nearest(name, known),
                )
    kinds = {(Kind.TIME, NO_UNIT): 1}
    fresh = tuple(Predicate(f"{OWN}{key}", key, 0, kinds) for key in (START_TIME, END_TIME, POINT_IN_TIME) if key not in keys)
    return replace(mapping, qualifiers=(*mapping.qualifiers, *fresh))


class TriplesStorage(ServerStorage):
    """The triples of an endpoint."""

    server: NativeRdfStore

    def check_writable(self, wait: float = 0.0) -> None:
        """Nothing is written."""
        raise errors.ReadOnlyError(f"{self.place} has triples that condgraph did not write, and only reads", hint=_WRITES)

    def write(self, *_: Any) -> Any:
        """Nothing is written."""
        self.check_writable()

    def index(self, *_: Any) -> Any:
        """Nothing is kept of others' triples."""
        raise errors.UnsupportedError("triples that condgraph did not write", ["an index"], hint="graph.snapshot() copies them")

    def store(self, engine: str | None) -> Store:
        """What answers at the endpoint; `engine="snapshot"` answers on a copy."""
        if engine in (None, "sparql"):
            return cast("Store", self.server)
        if engine != "snapshot":
            raise errors.OptionError(f"triples of others have the engines 'sparql' and 'snapshot', not {engine!r}")
        return SnapshotStore(self.server.snapshot())

    def sparql(self, text: str, **options: Any) -> Table:
        """The solutions of a query over the triples, by their own IRIs."""
        raise errors.OptionError("graph.sparql is for graphs of condgraph's own", hint="any SPARQL client asks this endpoint")

    def status(self, verify: bool) -> Status:
        """What the endpoint is taken to hold."""
        if verify:
            raise errors.OptionError("a graph on a server has no checksums here")
        mapping = self.server.mapping
        return Status(
            *(self.place, self.graph, f"not written by condgraph, {mapping.shape}", self.server.counts(), self.server.sources(), 0),
            notes=mapping.notes,
        )

    def survey(self) -> Survey:
        """What the endpoint is taken to hold."""
        return self.server.survey()


class TriplesGraph(RemoteGraph):
    """The triples of a SPARQL endpoint that condgraph did not prepare. `mapping` is the place of a
    mapping file.
    """

    _storage: TriplesStorage

    def __init__(self, endpoint: Endpoint, *, mapping: str | os.PathLike[str] | None = None) -> None:
        def look(fresh: bool) -> Mapping:
            return timed(looked(endpoint, mapping, fresh=fresh))

        server = NativeRdfStore(endpoint, look, built)
        if mapping is not None:
            # A file that is wrong is an error now.
            look(False)
        super().__init__(TriplesStorage(cast("Any", server), graph="sparql", read_only=True))

    def __repr__(self) -> str:
        return f"<TriplesGraph at {self.place}>"

    @property
    def store(self) -> NativeRdfStore:
        """What answers at the endpoint."""
        return self._storage.server

    @property
    def mapping(self) -> Mapping:
        """What the endpoint is taken for."""
        return self.store.mapping

    def mapping_file(self, *, timeout: float | None = None) -> str:
        """What the endpoint is taken for as the text of a mapping file."""
        with within(self.timeout if timeout is None else timeout):
            return written(self.mapping, self.place)


def triples(place: str, *, mapping: str | os.PathLike[str] | None = None, **options: Any) -> TriplesGraph:
    """The triples at an address. Raises `OptionError` for an option that is for graphs of condgraph's."""
    wrong = next((name for name in options if name not in OPTIONS), None)
    if wrong is not None:
        raise errors.OptionError(
            f"triples that condgraph did not write take no option {wrong!r}", hint=f"they take: {', '.join(OPTIONS)}"
        )
    address = place[7:] if place[:7].lower() == "sparql+" else place
    return TriplesGraph(Endpoint(address, read_only=True, **options), mapping=mapping)


#: Seconds in which an endpoint says whether a graph of condgraph's is there.
_PROBE: Final = 5.0
_OURS: Final = "ASK { { ?g <pred:load> ?l } UNION { GRAPH ?n { ?g <pred:load> ?l } } UNION { GRAPH ?n { ?g <pred:loading> ?l } } }"
_ANY: Final = "ASK { ?s ?p ?o }"


def existing_triples(place: str, **options: Any) -> TriplesGraph | None:
    """The triples at an address where condgraph wrote no graph: two small queries. None where it did, where there is
    nothing, and where the endpoint does not tell in time: that is an error of the first question.
    """
    if any(name not in OPTIONS for name in options):
        return None
    found = triples(place, **options)
    endpoint = found.store.endpoint
    try:
        with within(min(_PROBE, endpoint.timeout or _PROBE, endpoint.patience)):
            if not endpoint.query(_OURS) and endpoint.query(_ANY):
                return found
    except (errors.StoreError, errors.ParseError, errors.DeadlineError):
        check()
    return None
