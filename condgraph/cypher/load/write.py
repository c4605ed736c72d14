"""Writing a snapshot to Neo4j over Bolt, in batches: idempotent, resumable, one writer at a time, a
batch at a time.

A batch is one transaction, which also writes a `Load` node that names the batch; a batch whose node
is there already was written before and is left out. So a load that was killed goes on where it
stopped. What the server says it made is compared with what a batch holds before it is committed.
Readers see the graph once its node says that it is complete.

Where the graph had content before, every record that a load adds has its stamp (`write`), and what
it changes is noted before, in a `Former` node: so a load that cannot be finished can be taken back
(`abandon`).

Two batches are under way at once: while the server commits one it runs the rows of the other.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from hashlib import blake2b
from itertools import chain
from queue import Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from condgraph.cypher.load.batch import Batch
from condgraph.cypher.load.gone import Gone
from condgraph.cypher.load.labelling import Labelling
from condgraph.cypher.load.rows import RowMaker
from condgraph.engine.identity import content_digest, statement_ids
from condgraph.engine.snapshot.collector import fewer_collections

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.cypher.load.lock import Loading
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Batches under way at once. More would wait for each other: about half of a batch's work is its
#: commit.
WRITERS: Final = 2
#: Called with how many records are written so far, and which part of all that is (None where it is
#: not known).
OnProgress = Callable[[int, float | None], None]
T = TypeVar("T")


def content_id(snapshot: Snapshot) -> str:
    """A name for the content of a snapshot: the same content gives the same name."""
    return content_digest(snapshot)


def earlier_content_id(snapshot: Snapshot) -> str:
    """The same as earlier versions had it, who looked at statements and counts alone."""
    digest = blake2b(np.sort(statement_ids(snapshot)).tobytes(), digest_size=12)
    digest.update(json.dumps(snapshot.counts, sort_keys=True).encode())
    return digest.hexdigest()


def write_snapshot(
    snapshot: Snapshot,
    loading: Loading,
    connection: Connection,
    *,
    previous: Snapshot | None,
    on_progress: OnProgress,
    attempt: str = "",
    labelling: Labelling | None = None,
) -> None:
    """Write what `snapshot` has and `previous`, which the server holds already, has not; and mark
    what it has not.
    """
    maker, written, named = RowMaker(snapshot, previous, labelling), 0, False
    gone: Iterator[Batch] = iter(()) if previous is None else Gone(previous, snapshot).batches()
    under_way: deque[tuple[Future[None], int]] = deque()

    def settle(most: int) -> None:
        """Wait until at most so many batches are under way."""
        nonlocal written
        while len(under_way) > most:
            future, records = under_way.popleft()
            future.result()
            written += records
            on_progress(written, None if maker.total is None else written / maker.total)

    try:
        with fewer_collections():
            for batch in ahead(chain(maker.batches(), gone)):
                if batch.ids and not named:
                    # The entities have to be there before they are named.
                    settle(0)
                    named = True
                settle(WRITERS - 1)
                under_way.append((connection.submit(partial(loading.write, batch, attempt)), len(batch.rows)))
            settle(0)
    finally:
        # Nothing of a failed load goes on behind the caller's back.
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
