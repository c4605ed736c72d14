"""The exclusive right to write a graph on a server, and the deletion of graphs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.layout.schema import (
    DELETED,
    EDIT,
    ENTITY,
    FORMAT,
    FORMER,
    GRAPH,
    LOAD,
    PREDICATE,
    QUALIFIER,
    SOURCE,
    STATEMENT,
    VALUE,
)
from condgraph.cypher.load.batches import TEXTS, Batch, texts_of
from condgraph.cypher.servers import Engine
from condgraph.engine.errors import InterruptedQueryError, StoreBusyError, StoreError
from condgraph.engine.owner import Owner
from condgraph.overview.survey import described, packed, survey

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection, Transaction
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- Deletion ----------------------------------------------------------------------------------------
# Deletes a graph in batches: relationships before entities, so that no batch is as large as a hub.
#
# Every query starts at nodes of the graph, by labels that only condgraph has: other data is not read.


#: Nodes that are processed together.
_PAGE: Final = 2_000
#: Values deleted in one transaction, with their qualifiers.
_VALUES: Final = 5_000
#: Relationships deleted in one transaction.
EDGES: Final = 20_000
#: Deletes a node with its qualifiers.
_WITH_QUALIFIERS: Final = f"OPTIONAL MATCH (n)-[:QUALIFIER]->(q:{QUALIFIER}) DETACH DELETE q, n"


def delete(connection: Connection, graph: str) -> None:
    """Delete a graph. An interrupted deletion is finished by the next one; until then the graph is incomplete."""
    connection.write(
        f"MATCH (g:{GRAPH} {{name: $graph}}) SET g.complete = false, g.loading = $deleted REMOVE g.owner, g.what",
        {"graph": graph, "deleted": DELETED},
    )
    remove(connection, graph)
    for label, key in ((PREDICATE, "key"), (SOURCE, "name"), (EDIT, "number"), (LOAD, "batch"), (FORMER, "at")):
        text = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} IS NOT NULL WITH n LIMIT {EDGES} DETACH DELETE n"
        while connection.write(text, {"graph": graph}).deleted:
            pass
    connection.write(f"MATCH (g:{GRAPH} {{name: $graph}}) DELETE g", {"graph": graph})


def remove_gone(connection: Connection, graph: str, stamp: int | None) -> None:
    """Remove what a load marked as gone."""
    remove(connection, graph, stamp, mark="gone")
    for label, key in ((PREDICATE, "key"), (SOURCE, "name")):
        text = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} IS NOT NULL AND n.gone = $stamp DETACH DELETE n"
        connection.write(text, {"graph": graph, "stamp": stamp})


def remove(connection: Connection, graph: str, stamp: int | None = None, *, mark: str = "load") -> None:
    """Remove the entities and statements of a graph: all, or those that a load added, or marked."""

    def only(name: str) -> str:
        return "" if stamp is None else f"WHERE {name}.{mark} = $stamp "

    parameters = {"graph": graph, "stamp": stamp}
    # No index leads to values, so they are deleted before their subjects.
    values = (
        f"UNWIND $keys AS key MATCH (:{ENTITY} {{graph: $graph, handle: key}})-->(n:{VALUE}) {only('n')}"
        f"WITH n LIMIT {_VALUES} {_WITH_QUALIFIERS}"
    )
    edges = f"UNWIND $keys AS key MATCH (:{ENTITY} {{graph: $graph, handle: key}})-[r]->() {only('r')}WITH r LIMIT {EDGES} DELETE r"
    for keys in pages(connection, graph, ENTITY, "handle"):
        for text in (values, edges):
            while connection.write(text, {**parameters, "keys": keys}).deleted:
                pass
    statements = f"UNWIND $keys AS key MATCH (n:{STATEMENT} {{graph: $graph, sid: key}}) {only('n')}{_WITH_QUALIFIERS}"
    for keys in pages(connection, graph, STATEMENT, "sid"):
        connection.write(statements, {**parameters, "keys": keys})
    nodes = f"UNWIND $keys AS key MATCH (n:{ENTITY} {{graph: $graph, handle: key}}) {only('n')}DETACH DELETE n"
    for keys in pages(connection, graph, ENTITY, "handle"):
        connection.write(nodes, {**parameters, "keys": keys})


def pages(connection: Connection, graph: str, label: str, key: str) -> Iterator[list[Any]]:
    """Yield the keys of nodes with a label in pages, in the order of the index, so that no page is searched twice."""
    first = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} IS NOT NULL RETURN n.{key} AS key ORDER BY key LIMIT {_PAGE}"
    following = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} > $after RETURN n.{key} AS key ORDER BY key LIMIT {_PAGE}"
    keys = [row["key"] for row in connection.read(first, {"graph": graph})]
    while keys:
        yield keys
        keys = [row["key"] for row in connection.read(following, {"graph": graph, "after": keys[-1]})]


# -- One writer at a time ----------------------------------------------------------------------------
# The graph's node names its writer (`owner`), what is loaded (`loading`, a hash; `what`, the sources) and
# the time of the writer's last heartbeat (`beat`). Every batch checks that this still holds, so that
# after a takeover nothing is written twice. The write lock on the node, which makes this check safe, is
# taken last in a batch, so that it is held only during the commit.


#: Seconds between two heartbeats of a writer.
_BEAT: Final = 10.0
#: Seconds in which a failed writer tries to tell the server that it is gone.
_RELEASING: Final = 5.0
#: The advice about an interrupted load.
ABANDON: Final = "or abandon it with graph.abandon() or `condgraph abandon`"

#: Takes the write lock on the graph's node.
LOCKED: Final = (
    f"MERGE (g:{GRAPH} {{name: $graph}}) SET g.beat = coalesce(g.beat, 0) RETURN g {{.*, survey: null}} AS about, "
    "timestamp() AS now"
)
_TAKE: Final = (
    f"MATCH (g:{GRAPH} {{name: $graph}}) SET g.format = $format, g.complete = false, g.loading = $load, g.owner = $owner, "
    "g.what = $what, g.load = $stamp, g.labelling = coalesce($labelling, g.labelling), g.beat = timestamp()"
)
_LABELLING: Final = f"MATCH (g:{GRAPH} {{name: $graph, owner: $owner}}) SET g.labelling = $labelling"
_HEARTBEAT: Final = f"MATCH (g:{GRAPH} {{name: $graph, owner: $owner}}) SET g.beat = timestamp() RETURN g.name AS name"
_RECORD_BATCH: Final = (
    f"MATCH (g:{GRAPH} {{name: $graph, owner: $owner}}) "
    f"MERGE (l:{LOAD} {{graph: $graph, batch: $batch}}) ON CREATE SET l.records = $records RETURN l.batch AS batch"
)
_RELEASE: Final = f"MATCH (g:{GRAPH} {{name: $graph, owner: $owner}}) REMOVE g.owner"
_COMPLETE: Final = (
    f"MATCH (g:{GRAPH} {{name: $graph, owner: $owner}}) SET g.complete = true, g.content = $content, g.counts = $counts, "
    "g.schema = $schema, g.survey = $survey, g.labels = $labels, g.declares = true "
    "REMOVE g.owner, g.loading, g.what, g.beat, g.labelling"
)
#: From here on, a load that removes something is finished by the next writer, not taken back.
_REMOVING: Final = (
    f"MATCH (g:{GRAPH} {{name: $graph, owner: $owner}}) SET g.removing = $stamp, g.content = $content, g.counts = $counts, "
    "g.schema = $schema, g.survey = $survey, g.labels = $labels, g.declares = true"
)
_REMOVED: Final = (
    f"MATCH (g:{GRAPH} {{name: $graph, owner: $owner}}) SET g.complete = true "
    "REMOVE g.owner, g.loading, g.what, g.beat, g.labelling, g.removing"
)
_ROLL_BACK: Final = (
    f"MATCH (g:{GRAPH} {{name: $graph, owner: $owner}}) SET g.complete = true "
    "REMOVE g.owner, g.loading, g.what, g.beat, g.labelling"
)
_FORGET: Final = tuple(
    f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} IS NOT NULL WITH n LIMIT 10000 DELETE n"
    for label, key in ((LOAD, "batch"), (FORMER, "at"))
)


class ChangedError(StoreBusyError):
    """The graph has changed since the load was prepared, and has to be read again."""


class Loading:
    """The right to write one graph, from `begin` to `finish` or `take_back`; a context manager that releases it."""

    def __init__(self, connection: Connection, graph: str) -> None:
        self._connection, self.graph = connection, graph
        self._owner = Owner()
        self._ended = Event()
        self.load = ""
        #: Marks the records of this load, if the graph had content before.
        self.stamp: int | None = None

    def __enter__(self) -> Loading:
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._owner.release()
        if exception[0] is not None and self.load:
            # If the server is gone as well, the next writer notices that this one is gone.
            with suppress(StoreError, InterruptedQueryError):
                self._connection.write(_RELEASE, {"graph": self.graph, "owner": self._owner.name}, patience=_RELEASING)

    def begin(
        self, load: str, what: Sequence[str] = (), *, seen: dict[str, Any] | None = None, labelling: Sequence[str] | None = None
    ) -> None:
        """Become the writer of the graph for `load` with the sources `what`.

        Raises `StoreBusyError` if another writer has it. `seen` is the state of the graph's node when the load was
        prepared: if its content has changed since, raises `ChangedError`. `labelling` are the labels that entities of a
        new graph get.
        """
        labels = None if labelling is None else list(labelling)
        busy = self._connection.transaction(lambda transaction: self._begin(transaction, load, list(what), seen, labels))
        if busy is not None:
            raise busy
        self.load = load
        Thread(target=self._live, name="condgraph-neo4j-beat", daemon=True).start()

    def _begin(
        self, transaction: Transaction, load: str, what: list[str], seen: dict[str, Any] | None, labelling: list[str] | None
    ) -> StoreBusyError | None:
        # The write lock on the graph's node makes the check and the change atomic.
        row = transaction.run(LOCKED, {"graph": self.graph}).rows[0]
        about, now = row["about"], row["now"]
        if about.get("owner") == self._owner.name and about.get("loading") == load:
            # The response to a commit was lost, and this is its second run.
            return None
        busy = busy_error(self.graph, about, now, load, what)
        if busy is None and seen is not None and _state(about) != _state(seen):
            busy = ChangedError(f"graph {self.graph!r} was written by somebody else meanwhile", hint="load again")
        if busy is not None:
            transaction.rollback()
            return busy
        before = about.get("load", 0)
        self.stamp = None if "content" not in about else before if about.get("loading") == load else before + 1
        own = {"graph": self.graph, "format": FORMAT, "load": load, "owner": self._owner.name, "what": what, "stamp": self.stamp}
        transaction.run(_TAKE, {**own, "labelling": labelling})
        return None

    def _live(self) -> None:
        """Send heartbeats."""
        while not self._ended.wait(_BEAT):
            try:
                self._connection.transaction(self._beat)
            except StoreError:
                # The next batch will run into the same error.
                continue

    def label(self, labels: Sequence[str]) -> None:
        """Record the labels that entities may get during this load, before any is written."""

        def state(transaction: Transaction) -> None:
            self._beat(transaction)
            transaction.run(_LABELLING, {"graph": self.graph, "owner": self._owner.name, "labelling": list(labels)})

        self._connection.transaction(state)

    def write(self, batch: Batch, attempt: str = "") -> None:
        """Write one batch, unless it was written before."""
        name = f"{self.load} {attempt}{batch.name}"
        self._connection.transaction(lambda transaction: self._write(transaction, name, batch))

    def _beat(self, transaction: Transaction) -> None:
        if not transaction.run(_HEARTBEAT, {"graph": self.graph, "owner": self._owner.name}).rows:
            raise self._taken_over()

    def _taken_over(self) -> StoreBusyError:
        return StoreBusyError(f"graph {self.graph!r} was taken over by another process, or deleted")

    def _write(self, transaction: Transaction, name: str, batch: Batch) -> None:
        about = {"graph": self.graph, "owner": self._owner.name, "batch": name, "records": len(batch.rows)}
        once = transaction.run(_RECORD_BATCH, about)
        if not once.rows:
            raise self._taken_over()
        if once.nodes:
            make(transaction, self.graph, batch, TEXTS[batch.kind], self.stamp, self._connection.engine)
        # Last, since it locks the graph's node until the commit.
        self._beat(transaction)

    def finish(self, content: str, snapshot: Snapshot, labels: str | None = None) -> None:
        """Mark the graph as complete, record the labels of entities (`Labelling.stated`), and clear the records of the load."""
        self._end(_COMPLETE, terms(content, snapshot, labels))

    def remove(self, content: str, snapshot: Snapshot, labels: str | None = None) -> None:
        """Record the new content of the graph, remove what is marked as gone, and mark the graph as complete."""
        parameters = {"stamp": self.stamp, **terms(content, snapshot, labels)}

        def start(transaction: Transaction) -> None:
            self._beat(transaction)
            transaction.run(_REMOVING, {"graph": self.graph, "owner": self._owner.name, **parameters})

        self._connection.transaction(start)
        self.end_removing()

    def end_removing(self) -> None:
        """Remove what is marked as gone, by this load or by an interrupted one."""
        remove_gone(self._connection, self.graph, self.stamp)
        self._end(_REMOVED, {})

    def take_back(self) -> None:
        """Mark the graph as it was before the load, and clear the records of the load."""
        self._end(_ROLL_BACK, {})

    def _end(self, text: str, about: dict[str, Any]) -> None:
        def end(transaction: Transaction) -> None:
            self._beat(transaction)
            # The records of this load are cleared before others can load: a second load would take them
            # for its own.
            transaction.run(text, {"graph": self.graph, "owner": self._owner.name, **about})

        self._ended.set()
        self._connection.transaction(end)
        self.load = ""
        forget(self._connection, self.graph)


def terms(content: str, snapshot: Snapshot, labels: str | None) -> dict[str, str | None]:
    """Return what a graph's node states about its content."""
    return {
        "content": content, "counts": json.dumps(snapshot.counts), "schema": json.dumps(described(snapshot)),
        "survey": packed(survey(snapshot), content), "labels": labels,
    }  # fmt: skip


def make(transaction: Transaction, graph: str, batch: Batch, text: str, stamp: int | None, engine: Engine) -> None:
    """Write a batch; raises `StoreError` if the server created another number of records."""
    nodes = edges = 0
    for query, ids, rows in texts_of(batch, text, engine):
        counts = transaction.run(query, {"graph": graph, "ids": ids, "rows": rows, "stamp": stamp})
        nodes, edges = nodes + counts.nodes, edges + counts.edges
    for what, wanted, created in (("nodes", batch.nodes, nodes), ("relationships", batch.edges, edges)):
        if wanted is not None and wanted != created:
            raise StoreError(
                f"the server made {created} {what} of batch {batch.name!r}, which holds {wanted}", hint=f"load again, {ABANDON}"
            )


def forget(connection: Connection, graph: str) -> None:
    """Delete the records of a load."""
    for text in _FORGET:
        while connection.write(text, {"graph": graph}).deleted:
            pass


def _state(about: dict[str, Any]) -> tuple[Any, ...]:
    return about.get("content"), about.get("loading"), about.get("load")


def busy_error(graph: str, about: dict[str, Any], now: int, load: str, what: Sequence[str] = ()) -> StoreBusyError | None:
    """Return the reason why a graph cannot be written for `load` now, from its node; None if it can."""
    since = max(now - about.get("beat", 0), 0) / 1000
    if about.get("owner") and not Owner.gone(about["owner"], since):
        return StoreBusyError(
            f"graph {graph!r} is being loaded by another process, which wrote last {since:.0f} s ago", hint="wait= waits for it"
        )
    return None if about.get("loading") in (None, load) else unfinished(graph, about, what)


def unfinished(graph: str, about: dict[str, Any], what: Sequence[str] | None = None) -> StoreBusyError:
    """Return the error for a graph whose load or deletion was interrupted; `what` are the sources to load now."""
    if about.get("loading") == DELETED:
        return StoreBusyError(f"graph {graph!r} was not deleted to the end", hint="delete it again: `condgraph delete`")
    begun_sources = list(about.get("what") or ())
    named = (
        "another load"
        if not begun_sources
        else f"a load of {', '.join(map(repr, begun_sources[:5]))}{' and more' if len(begun_sources) > 5 else ''}"
    )
    again = "load the same again, which goes on where that stopped"
    if what and begun_sources == list(what):
        return StoreBusyError(
            f"{named} into graph {graph!r} is not finished, and what it was read from has changed since",
            hint=f"load it as it was, {ABANDON}",
        )
    return StoreBusyError(f"{named} into graph {graph!r} is not finished", hint=f"{again}, {ABANDON}")
