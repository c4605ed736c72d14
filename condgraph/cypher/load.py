"""Writing a snapshot to Neo4j over Bolt, in batches: idempotent, resumable, one writer at a time, a batch at a time.

A batch is one transaction, which also writes a `:Load` node that names the batch; a batch whose node is there already was written
before and is left out. So a load that was killed goes on where it stopped. The graph's node says who writes it (`owner`): every
batch makes sure that this is still so, and one who takes over from a writer that is gone can double nothing. What the server
says it made is compared with what a batch holds before it is committed. Readers see the graph once `Graph.complete` is true.

Two batches are under way at once: while the server commits one it runs the rows of the other. The write lock on the
graph's node, which makes the look at its owner safe, is taken last in a batch, so that it is held for the commit alone.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from hashlib import blake2b
from queue import Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from condgraph.cypher.layout import CONSTRAINTS, FORMAT, INDEX_NAMES, INDEXES
from condgraph.cypher.owner import Owner
from condgraph.cypher.rows import CELL, Batch, RowMaker, cell_properties
from condgraph.engine.errors import StoreBusyError, StoreError
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.collector import fewer_collections
from condgraph.engine.stored_schema import describe_schema

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection, Transaction
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Batches under way at once. More would wait for each other: about half of a batch's work is its commit.
WRITERS: Final = 2
#: Seconds between two signs of life of a writer that waits for indexes.
_BEAT: Final = 10.0
#: Called with how many records are written so far, and which part of all that is (None where it is not known).
Told = Callable[[int, float | None], None]
T = TypeVar("T")

_ENTITIES: Final = (
    # The hint keeps the plan that is right for a large graph, whatever the statistics say while the graph is empty.
    "UNWIND range(0, size($ids) - 1) AS i MATCH (e:Entity {graph: $graph, id: $ids[i]}) USING INDEX e:Entity(graph, id) "
    "WITH i, e ORDER BY i WITH collect(e) AS es UNWIND $rows AS r "
)
_PAIR: Final = _ENTITIES + "WITH es, es[r[0]] AS a, es[r[1]] AS b, r "
_QUALIFIERS: Final = (
    f"WITH es, o, q CREATE (o)-[:QUALIFIER]->(x:Qualifier {{graph: $graph, name: q[0], {cell_properties('q', 1)}, "
    f"id: q[{len(CELL) + 1}]}}) "
    f"WITH x, es[q[{len(CELL) + 2}]] AS e WHERE e IS NOT NULL CREATE (x)-[:IS]->(e)"
)
_RELATION: Final = (
    _PAIR + "CREATE (a)-[f:$(r[2]) {sid: r[3], sources: r[4], rows: r[5], since: r[6], until: r[7], span: r[8], valid: r[9]}]->(b) "
)
_ATTRIBUTE: Final = (
    _ENTITIES + "WITH es, es[r[0]] AS a, r CREATE (a)-[f:$(r[1]) {sid: r[2], since: r[5], until: r[6], span: r[7], valid: r[8]}]->"
    "(o:Value {graph: $graph, sid: r[2], sources: r[3], rows: r[4], predicate: r[9], name: r[10], raw: r[11], "
    f"{cell_properties('r', 12)}}}) "
)
_PROPERTIES: Final = ("id", "name", "key", "kind", "order", "ranks", "source", "row")
#: The text that writes each kind of batch. They are few, since the first run of a text costs the server its planning.
TEXTS: Final[dict[str, str]] = {
    "sources": "UNWIND $rows AS r MERGE (s:Source {graph: $graph, name: r[0]}) "
    "SET s.number = r[1], s.location = r[2], s.format = r[3]",
    "predicates": "UNWIND $rows AS r MERGE (p:Predicate {graph: $graph, name: r[0]}) "
    "SET p.relations = r[1], p.attributes = r[2], p.qualifiers = r[3]",
    "entities": "UNWIND $rows AS r CREATE (:Entity:$(r[8]) {graph: $graph, "
    f"{', '.join(f'{name}: r[{i}]' for i, name in enumerate(_PROPERTIES))}}})",
    "entities that changed": "UNWIND $rows AS r MATCH (e:Entity {graph: $graph, id: r[0]}) SET e:$(r[8]), "
    f"{', '.join(f'e.{name} = r[{i}]' for i, name in enumerate(_PROPERTIES) if i)}",
    "relations": _RELATION,
    "relations with qualifiers": _RELATION
    + "CREATE (a)<-[:SUBJECT]-(o:Statement {graph: $graph, sid: r[3], name: r[10]})-[:OBJECT]->(b) "
    + "WITH es, o, r UNWIND r[11] AS q "
    + _QUALIFIERS,
    "attributes": _ATTRIBUTE + f"WITH es, o, r UNWIND r[{12 + len(CELL)}] AS q " + _QUALIFIERS,
    "sources of relations": _PAIR + "MATCH (a)-[f:$(r[2])]->(b) WHERE f.sid = r[3] SET f.sources = r[4], f.rows = r[5]",
    "sources of attributes": _ENTITIES
    + "WITH es[r[0]] AS a, r MATCH (a)-[f:$(r[1])]->(v:Value) WHERE f.sid = r[2] SET v.sources = r[3], v.rows = r[4]",
    "members": _RELATION,
    "members that changed": _PAIR + "MATCH (a)-[m:$(r[2])]->(b) WHERE m.sid IS NULL SET m.sources = r[4], m.rows = r[5]",
}

_LOCKED: Final = "MERGE (g:Graph {name: $graph}) SET g.beat = coalesce(g.beat, 0) RETURN properties(g) AS about, timestamp() AS now"
_OWN: Final = (
    "MATCH (g:Graph {name: $graph}) SET g.format = $format, g.complete = false, g.loading = $load, g.owner = $owner, "
    "g.beat = timestamp()"
)
_STILL: Final = "MATCH (g:Graph {name: $graph, owner: $owner}) SET g.beat = timestamp() RETURN g.name AS name"
_ONCE: Final = (
    "MATCH (g:Graph {name: $graph, owner: $owner}) "
    "MERGE (l:Load {graph: $graph, batch: $batch}) ON CREATE SET l.records = $records RETURN l.batch AS batch"
)
_RELEASE: Final = "MATCH (g:Graph {name: $graph, owner: $owner}) REMOVE g.owner"
_DONE: Final = (
    "MATCH (g:Graph {name: $graph, owner: $owner}) SET g.complete = true, g.content = $content, g.counts = $counts, "
    "g.schema = $schema "
    "REMOVE g.owner, g.loading, g.beat"
)
_FORGET: Final = "MATCH (l:Load {graph: $graph}) WITH l LIMIT 10000 DELETE l"


def content_id(snapshot: Snapshot) -> str:
    """A name for the content of a snapshot: the same content gives the same name."""
    digest = blake2b(np.sort(statement_ids(snapshot)).tobytes(), digest_size=12)
    digest.update(json.dumps(snapshot.counts, sort_keys=True).encode())
    return digest.hexdigest()


class Loading:
    """The right to write one graph, from `begin` to `finish`; a context manager that gives it back."""

    def __init__(self, connection: Connection, graph: str) -> None:
        self._connection, self.graph = connection, graph
        self._owner = Owner()
        self.load = ""

    def __enter__(self) -> Loading:
        return self

    def __exit__(self, *exception: object) -> None:
        self._owner.release()
        if exception[0] is not None and self.load:
            # Where the server is gone as well, whoever comes next sees that this writer is.
            try:
                self._connection.write(_RELEASE, {"graph": self.graph, "owner": self._owner.name})
            except StoreError:
                return

    def begin(self, load: str, *, wait: float = 0.0, seen: dict[str, Any] | None = None) -> None:
        """Become the writer of the graph for `load`; raises `StoreBusyError` where it is another's after `wait` seconds.

        `seen` is what the graph's node said when the load was prepared: where its content is another now, somebody wrote between.
        """
        until = time.monotonic() + wait
        while (busy := self._connection.transaction(lambda transaction: self._begin(transaction, load, seen))) is not None:
            if time.monotonic() >= until:
                raise busy
            time.sleep(min(0.25, max(until - time.monotonic(), 0.0)))
        self.load = load

    def _begin(self, transaction: Transaction, load: str, seen: dict[str, Any] | None) -> StoreBusyError | None:
        # The write lock on the graph's node makes the look and the change one step.
        found = transaction.run(_LOCKED, {"graph": self.graph}).rows[0]
        about, now = found["about"], found["now"]
        busy = busy_error(self.graph, about, now, load)
        if (
            busy is None
            and seen is not None
            and (about.get("content"), about.get("loading")) != (seen.get("content"), seen.get("loading"))
        ):
            busy = StoreBusyError(f"graph {self.graph!r} was written by somebody else meanwhile", hint="load again")
        if busy is not None:
            transaction.rollback()
            return busy
        transaction.run(_OWN, {"graph": self.graph, "format": FORMAT, "load": load, "owner": self._owner.name})
        return None

    def write(self, batch: Batch, attempt: str = "") -> None:
        """Write one batch, unless it was written before."""
        name = f"{self.load} {attempt}{batch.name}"
        self._connection.transaction(lambda transaction: self._write(transaction, name, batch))

    def beat(self) -> None:
        """Tell others that this writer is there."""
        self._connection.transaction(self._still)

    def _still(self, transaction: Transaction) -> None:
        if not transaction.run(_STILL, {"graph": self.graph, "owner": self._owner.name}).rows:
            raise self._taken()

    def _taken(self) -> StoreBusyError:
        return StoreBusyError(f"graph {self.graph!r} was taken over by another process, or deleted")

    def _write(self, transaction: Transaction, name: str, batch: Batch) -> None:
        about = {"graph": self.graph, "owner": self._owner.name, "batch": name, "records": len(batch.rows)}
        once = transaction.run(_ONCE, about)
        if not once.rows:
            raise self._taken()
        if once.nodes:
            self._make(transaction, batch)
        # Last, since it locks the graph's node until this is committed.
        self._still(transaction)

    def _make(self, transaction: Transaction, batch: Batch) -> None:
        made = transaction.run(TEXTS[batch.kind], {"graph": self.graph, "ids": batch.ids, "rows": batch.rows})
        for what, wanted, got in (("nodes", batch.nodes, made.nodes), ("relationships", batch.edges, made.edges)):
            if wanted is not None and wanted != got:
                raise StoreError(
                    f"the server made {got} {what} of batch {batch.name!r}, which holds {wanted}", hint="delete the graph"
                )

    def finish(self, content: str, snapshot: Snapshot) -> None:
        """Say that the graph is complete, and forget how it was written."""
        about = {"counts": json.dumps(snapshot.counts), "schema": json.dumps(describe_schema(snapshot))}

        def done(transaction: Transaction) -> None:
            self._still(transaction)
            transaction.run(_DONE, {"graph": self.graph, "owner": self._owner.name, "content": content, **about})

        self._connection.transaction(done)
        while self._connection.write(_FORGET, {"graph": self.graph}).deleted:
            pass


def busy_error(graph: str, about: dict[str, Any], now: int, load: str) -> StoreBusyError | None:
    """Why a graph cannot be written for `load` now, from what its node says; None where it can."""
    since = max(now - about.get("beat", 0), 0) / 1000
    if about.get("owner") and not Owner.gone(about["owner"], since):
        return StoreBusyError(
            f"graph {graph!r} is being loaded by another process, which wrote last {since:.0f} s ago", hint="wait= waits for it"
        )
    if about.get("loading") not in (None, load):
        return StoreBusyError(
            f"another load of graph {graph!r} is not finished", hint="finish it with the same sources, or delete the graph"
        )
    return None


def prepare(connection: Connection) -> bool:
    """Make the constraints; whether the indexes are there as well, as they are after the first load of a database."""
    text = "SHOW INDEXES YIELD name, state WHERE name STARTS WITH 'condgraph_' AND state = 'ONLINE' RETURN name"
    if {row["name"] for row in connection.read(text, {})} >= INDEX_NAMES:
        return True
    connection.schema(*CONSTRAINTS)
    return False


def make_indexes(connection: Connection, beat: Callable[[], None]) -> None:
    """Make the indexes, and wait until they are filled; `beat` is called now and then meanwhile."""
    # In one transaction, for then the server fills them all in one pass over its nodes.
    connection.schema(*INDEXES)
    pause, beaten = 0.05, time.monotonic()
    text = "SHOW INDEXES YIELD name, state WHERE name STARTS WITH 'condgraph_' AND state <> 'ONLINE' RETURN name, state"
    while waiting := connection.read(text, {}):
        failed = [row["name"] for row in waiting if row["state"] == "FAILED"]
        if failed:
            raise StoreError(f"the server could not make the indexes {', '.join(failed)}", hint="its log says why")
        if time.monotonic() - beaten > _BEAT:
            beat()
            beaten = time.monotonic()
        time.sleep(pause)
        pause = min(pause * 2, 0.5)


def write_snapshot(
    snapshot: Snapshot, loading: Loading, connection: Connection, *, previous: Snapshot | None, told: Told, attempt: str = ""
) -> None:
    """Write what `snapshot` has and `previous`, which the server holds already, has not."""
    maker, written, named = RowMaker(snapshot, previous), 0, False
    under_way: deque[tuple[Future[None], int]] = deque()

    def settle(most: int) -> None:
        """Wait until at most so many batches are under way."""
        nonlocal written
        while len(under_way) > most:
            future, records = under_way.popleft()
            future.result()
            written += records
            told(written, None if maker.total is None else written / maker.total)

    try:
        with fewer_collections():
            for batch in ahead(maker.batches()):
                if batch.ids and not named:
                    # The entities have to be there before they are named.
                    settle(0)
                    named = True
                settle(WRITERS - 1)
                under_way.append((connection.submit(partial(loading.write, batch, attempt)), len(batch.rows)))
            settle(0)
    finally:
        # Of a load that failed nothing goes on behind the caller's back.
        wait(future for future, _ in under_way)


def ahead(batches: Iterator[T]) -> Iterator[T]:
    """The same batches, made in a thread while the one before is written; at most two wait."""
    queue: Queue[tuple[T | None, BaseException | None]] = Queue(2)
    stopped = Event()

    def put(item: tuple[T | None, BaseException | None]) -> None:
        while not stopped.is_set():
            try:
                queue.put(item, timeout=0.2)
                return
            except Full:
                continue

    def make() -> None:
        try:
            for batch in batches:
                put((batch, None))
                if stopped.is_set():
                    return
            put((None, None))
        except BaseException as error:  # noqa: BLE001 - raised again where the batches are taken
            put((None, error))

    thread = Thread(target=make, name="condgraph-neo4j-rows", daemon=True)
    thread.start()
    try:
        while True:
            batch, error = queue.get()
            if error is not None:
                raise error
            if batch is None:
                return
            yield batch
    finally:
        stopped.set()
        thread.join()
