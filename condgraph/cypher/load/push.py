"""A load as a whole: who may write, what the graph holds already, what is written, and what it
holds then.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from condgraph.cypher.layout.indexes import make_indexes, prepare
from condgraph.cypher.layout.schema import GRAPH
from condgraph.cypher.load.labelling import Labelling, begun_otherwise, first, further, is_wanted
from condgraph.cypher.load.limits import check_loadable
from condgraph.cypher.load.lock import ChangedError, Loading, busy_error
from condgraph.cypher.load.pull import graph_sources, pull
from condgraph.cypher.load.write import OnProgress, content_id, write_snapshot
from condgraph.engine.bounds import LEAST, waiting
from condgraph.engine.changes import Change
from condgraph.engine.errors import StoreBusyError, StoreVersionError
from condgraph.overview.survey import packed, survey

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Seconds for which a reader trusts what it last read of the graph's node.
LEASE: Final = 1.0
#: Seconds after which a loader looks again whether another one is done.
_AGAIN: Final = 0.25
#: The survey is long, and read by those who ask for it: others hear whether there is one of this
#: content.
_LOOK: Final = (
    f"MATCH (g:{GRAPH} {{name: $graph}}) "
    "RETURN g {.*, survey: coalesce(g.survey STARTS WITH g.content, false)} AS about, timestamp() AS now"
)
#: Graphs of the layout before this one, with plain labels. A node that only looks like one is none: every load of that
#: layout made its constraint first.
_OLDER: Final = (
    "MATCH (g:Graph {name: $graph}) WHERE g.format = 3 AND g.content IS NOT NULL "
    "AND g.counts STARTS WITH '{' AND g.schema STARTS WITH '{' RETURN g.name LIMIT 1"
)
_OLDER_CONSTRAINT: Final = (
    "SHOW CONSTRAINTS YIELD name, labelsOrTypes, properties "
    "WHERE name = 'condgraph_graph' AND labelsOrTypes = ['Graph'] AND properties = ['name'] RETURN name"
)
_SURVEYED: Final = f"MATCH (g:{GRAPH} {{name: $graph, content: $content}}) SET g.survey = $survey"

Counts = dict[str, int]
NOTHING: Final = Change()


def push(
    connection: Connection,
    graph: str,
    snapshot: Snapshot,
    *,
    wait: float,
    on_progress: OnProgress,
    change: Change = NOTHING,
    labels: bool | None = None,
    on_remark: Callable[[str], None] = lambda remark: None,
) -> tuple[Counts, Counts]:
    """Write a snapshot beside what a graph holds, but for what `change` takes away; what it held, and
    holds now.

    `wait` is how many seconds to wait for other writers, one after the other; then raises
    `StoreBusyError`. `labels` says whether entities carry their concepts as labels (`labelling`);
    `on_remark` hears which do not become labels, and why.
    """
    with waiting(wait):
        check_loadable(snapshot, connection)
    asked = _Load(connection, graph, snapshot, change, labels)
    until = time.monotonic() + wait
    with Loading(connection, graph) as loading:
        begun = _begin(loading, asked, until, held=bool(wait))
        about, held, labelling = begun.about, begun.held, begun.labelling
        if begun.there:
            return held, held
        previous, attempt = None, ""
        if "content" in about:
            if about.get("complete"):
                # Readers who looked before hold on to what they saw for so long.
                time.sleep(LEASE * 1.2)
            # Also of a load that was ended: what it wrote is there, each statement with all that
            # belongs to it.
            if about.get("removing"):
                loading.end_removing()
                return held, held
            previous, attempt = pull(connection, graph), f"{uuid4().hex} "
            snapshot = change.joined(previous, snapshot)
            labelling = further(connection, about, previous, snapshot, wanted=begun.wanted)
            if labelling.every:
                loading.label(labelling.every)
        for remark in (*begun_otherwise(asked=labels, wanted=begun.wanted), *labelling.remarks):
            on_remark(remark)
        write_snapshot(
            snapshot, loading, connection, previous=previous, on_progress=on_progress, attempt=attempt, labelling=labelling
        )
        if not begun.complete:
            make_indexes(connection)
        end = loading.remove if change.without and previous is not None else loading.finish
        end(content_id(snapshot), snapshot, labelling.stated(snapshot))
    return held, dict(snapshot.counts)


class _Load(NamedTuple):
    """What is to be loaded, and where."""

    connection: Connection
    graph: str
    snapshot: Snapshot
    change: Change
    labels: bool | None


class _Begun(NamedTuple):
    """A load that has begun: what the graph's node said, what the graph held, and whether that is
    what is asked for; whether entities carry labels, and which; whether the indexes are there.
    """

    about: dict[str, Any]
    held: Counts
    there: bool = False
    wanted: bool = False
    labelling: Labelling = Labelling()
    complete: bool = True


def _begin(loading: Loading, asked: _Load, until: float, *, held: bool) -> _Begun:
    """Begin a load once no other one is on, until then (a time of the monotonic clock); raises
    `StoreBusyError` after it. `held` says whether to wait at all.
    """
    connection, graph, snapshot, change, labels = asked
    adds, what = _asked(snapshot, change)
    complete: bool | None = None
    while True:
        about = _wait_for_others(connection, graph, adds, what, until, held=held)
        if not about:
            check_layout(connection, graph)
        counts: Counts = json.loads(about["counts"]) if about.get("counts") else {}
        if about.get("content") == adds and about.get("complete") and labels in (None, "labels" in about):
            _add_survey(connection, graph, about, snapshot)
            return _Begun(about, counts, there=True)
        # Before anything is written: a load that fails for its sources leaves the graph as it was.
        if not about.get("removing"):
            change.check(graph_sources(connection, graph), snapshot)
        if complete is None:
            complete = prepare(connection)
        wanted, labelling = is_wanted(connection, about, labels), Labelling()
        if wanted and "content" not in about:
            labelling = first(connection, about, snapshot)
        try:
            loading.begin(adds, what, seen=about, labelling=labelling.after)
            return _Begun(about, counts, False, wanted, labelling, complete)
        except ChangedError:
            # Others were quicker, and are done: the graph is looked at again, not given up.
            continue
        except StoreBusyError:
            if time.monotonic() >= until:
                raise


def _asked(snapshot: Snapshot, change: Change) -> tuple[str, list[str]]:
    """What a load is known by, which is the same for the same content and change, and the sources that
    it has to do with.
    """
    adds = content_id(snapshot)
    if change:
        adds += " " + blake2b(change.name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    named = [snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name")))]
    return adds, list(dict.fromkeys((*named, *change.without)))


def _add_survey(connection: Connection, graph: str, about: dict[str, Any], snapshot: Snapshot) -> None:
    """Keep the survey of a content that an earlier version wrote, which keeps none."""
    if not about.get("survey"):
        content = about["content"]
        connection.write(_SURVEYED, {"graph": graph, "content": content, "survey": packed(survey(snapshot), content)})


def look(connection: Connection, graph: str, patience: float | None = None) -> tuple[dict[str, Any], int]:
    """What the graph's node says, empty where there is none; and the server's clock, in
    milliseconds.

    The server has `patience` seconds to say it, at most as many as the connection gives it.
    """
    rows = connection.ask(_LOOK, {"graph": graph}, patience=patience)
    return (rows[0]["about"], rows[0]["now"]) if rows else ({}, 0)


def is_older(connection: Connection, graph: str) -> bool:
    """Whether the graph is there in the layout before this one."""
    return bool(connection.ask(_OLDER_CONSTRAINT, {}) and connection.ask(_OLDER, {"graph": graph}))


def check_layout(connection: Connection, graph: str) -> None:
    """Raise `StoreVersionError` where the graph is there in the layout before this one."""
    if is_older(connection, graph):
        raise StoreVersionError(
            f"graph {graph!r} at {connection.place} has the layout of an earlier version",
            hint="load its sources again under another name, or export it with the version that wrote it and load the export",
        )


def _wait_for_others(connection: Connection, graph: str, load: str, what: list[str], until: float, *, held: bool) -> dict[str, Any]:
    """The state of the graph once nobody writes it; raises `StoreBusyError` when the time is over.

    Where the time is `held`, a server that says nothing holds nobody for longer.
    """
    while True:
        about, now = look(connection, graph, max(until - time.monotonic(), LEAST) if held else None)
        busy = busy_error(graph, about, now, load, what)
        if busy is None:
            return about
        left = until - time.monotonic()
        if left <= 0:
            raise busy
        time.sleep(min(_AGAIN, left))
