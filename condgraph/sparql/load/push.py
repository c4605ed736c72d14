"""A load into a remote RDF store as a whole: who may write, what the graph holds already, what is
written, and what it holds then; and what to say where a load cannot begin.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import Final

from condgraph.engine.bounds import LEAST
from condgraph.engine.changes import Change, OvertakenError
from condgraph.engine.errors import StoreBusyError
from condgraph.engine.facts import Source
from condgraph.engine.owner import Owner
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.sparql.client import Endpoint
from condgraph.sparql.layout import GraphIris
from condgraph.sparql.load.limits import check_loadable
from condgraph.sparql.load.remote import Mark, claim, load_id, marks, state, take_back, write_snapshot
from condgraph.sparql.load.write import counts

Counts = dict[str, int]
NOTHING: Final = Change()
#: Seconds after which a loader looks again whether another one is done.
_AGAIN = 0.1, 0.5


class Loader:
    """Loads into one graph. `sources` gives those that the graph has, `pull` the graph itself
    (leniently, where a load of it was ended).
    """

    def __init__(
        self, endpoint: Endpoint, graph: str, base: str, sources: Callable[[], tuple[Source, ...]], pull: Callable[[bool], Snapshot]
    ) -> None:
        self._endpoint, self._graph, self._base = endpoint, graph, base
        self._sources, self._pull = sources, pull

    def push(self, snapshot: Snapshot, *, wait: float, by_update: bool, change: Change | None = None) -> tuple[Counts, Counts]:
        """Write a snapshot beside what the graph holds, but for what `change` takes away; what it
        held, and holds now.

        `wait` is how many seconds to wait for another loader; then, or where a load was ended,
        raises `StoreBusyError`. `by_update` leaves the Graph Store Protocol out, where its address
        is not given.
        """
        until, owner = time.monotonic() + wait, Owner()
        try:
            return self._in_turn(snapshot, wait, until, owner.name, by_update, NOTHING if change is None else change)
        finally:
            owner.release()

    def _in_turn(
        self, snapshot: Snapshot, wait: float, until: float, owner: str, by_update: bool, change: Change
    ) -> tuple[Counts, Counts]:
        while True:
            try:
                # A caller who says how long to wait waits no longer than that for a silent server.
                patience = max(until - time.monotonic(), LEAST) if wait else None
                return self._push(snapshot, owner, patience, by_update, change)
            except OvertakenError:
                raise
            except StoreBusyError:
                left = until - time.monotonic()
                if left <= 0:
                    raise
                # Loaders that met step back, and come again at different times.
                time.sleep(min(left, random.uniform(*_AGAIN)))

    def _push(
        self, snapshot: Snapshot, owner: str, patience: float | None, by_update: bool, change: Change
    ) -> tuple[Counts, Counts]:
        endpoint, base = self._endpoint, self._base
        load = load_id(snapshot, change.name)
        named = [snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name")))]
        what = list(dict.fromkeys((*named, *change.without)))
        found = state(endpoint, base, patience)
        if endpoint.store_url is None and not by_update:
            endpoint.store_url = endpoint.dialect.store_url(endpoint.query_url)
        begun = marks(found)
        check_loadable(snapshot, GraphIris(base), endpoint.dialect)
        other = next((mark for mark in begun if not mark.gone), None)
        if other is not None:
            raise busy(self._graph, other)
        if any(mark.load != load for mark in begun):
            raise unfinished(self._graph, found, what)
        if not begun and found.get("load") == [load]:
            held: Counts = json.loads(found["counts"][0])
            return held, held
        adds = any(mark.adds for mark in begun) if begun else "load" in found
        if adds and not begun:
            # Before anything is written: a load that fails for its sources leaves the graph as it
            # was.
            change.check(self._sources(), snapshot)
        claim(endpoint, base, Mark(load, owner, adds), found)
        previous = None
        if adds:
            if begun:
                # What a load that was ended did of this is taken back, and all of it done again.
                take_back(endpoint, base, found)
            previous = self._pull(False)
            snapshot = change.joined(previous, snapshot)
        write_snapshot(
            endpoint, snapshot, base, graph=self._graph, load=load, what=what, previous=previous,
            begun=found if begun and not adds else None,
        )  # fmt: skip
        return {} if previous is None else counts(previous), counts(snapshot)


def busy(graph: str, mark: Mark) -> StoreBusyError:
    """What to say of a load that somebody is at."""
    return StoreBusyError(
        f"graph {graph!r} is being loaded by {Owner.place(mark.owner)}", hint="wait= waits for it; or stop that process"
    )


def unfinished(graph: str, begun: dict[str, list[str]], what: list[str] | None = None) -> StoreBusyError:
    """What to say of a load that was ended, or is another process's; `what` are the sources that
    were to be loaded now.
    """
    sources = sorted(begun.get("what", ()))
    named = f"a load of {', '.join(map(repr, sources[:5]))}" if sources else "another load"
    more, hint = "", "load the same again, which goes on where that stopped, "
    if what and sources == sorted(what):
        more, hint = ", and what it was read from has changed since", "load it as it was, "
    hint += "or abandon it with graph.abandon() or `condgraph abandon`"
    return StoreBusyError(f"{named} into graph {graph!r} is not finished{more}", hint=hint)
