"""A whole load: checks, the graph's present content, what is written and the resulting content; single changes; and taking
back an unfinished load.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

import numpy as np

from condgraph.cypher.labels import Labelling, begun_otherwise, first, further, is_wanted
from condgraph.cypher.layout import schema as layout
from condgraph.cypher.load.batches import ENTITY_PROPERTIES, REMOVALS, RENAMED, TEXTS, Batch
from condgraph.cypher.load.lock import EDGES, LOCKED, ChangedError, Loading, busy_error, delete, make, remove, terms
from condgraph.cypher.load.pull import graph_sources, pull
from condgraph.cypher.load.write import RemovalBatches, RowMaker, earlier_content_id, write_snapshot
from condgraph.edits import RemoteEdit, joined, named_in
from condgraph.engine import errors
from condgraph.engine.bounds import MIN_TIMEOUT, waiting
from condgraph.engine.changes import Change, OnWritten, OvertakenError
from condgraph.engine.facts import EntityKind, Statement
from condgraph.engine.identity import content_digest
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Quantity
from condgraph.overview.adjusted import CHANGED, GraphSummary
from condgraph.overview.survey import packed, survey, unpacked

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection, Transaction


# -- What a server would refuse ----------------------------------------------------------------------
# Checks for what a server would refuse in the middle of a load, done before anything is written.
#
# Texts, ids, names of entities and of predicates may have any length: long ones are indexed by their hash
# (`cypher.layout.schema`). Names of graphs, sources and units are indexed unchanged, and a server never
# frees a relationship type.


#: All types that the database ever had; for users without that right, the types in use.
_TYPES: Final = (
    "CALL db.stats.retrieve('TOKENS') YIELD data UNWIND data.relationshipTypes AS name RETURN name",
    "CALL db.relationshipTypes() YIELD relationshipType RETURN relationshipType AS name",
)
_FORMAT: Final = "SHOW DATABASES YIELD name, store WHERE name = $name RETURN store"


def check_graph(name: str) -> str:
    """Return the name of a graph; raises `OptionError` if a server cannot store it."""
    if not name:
        raise errors.OptionError("the name of a graph is empty")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise errors.OptionError(f"the name of a graph is text, not {name!r}") from None
    if size > layout.MAX_NAME:
        raise errors.OptionError(f"the name of a graph has at most {layout.MAX_NAME:,} bytes on Neo4j, not {size:,}")
    return name


def check_loadable(snapshot: Snapshot, connection: Connection) -> None:
    """Raise `LoadError` if a server would refuse a part of the snapshot."""
    get = snapshot.arrays.get
    _check(
        "source",
        (snapshot.source_of(i).name for i in range(len(get("src.name")))),
        layout.MAX_SOURCE,
        "name= gives it another name",
    )
    units = np.unique(np.concatenate([get("att.unit"), get("q.unit")]))
    _check("unit", (snapshot.texts[number] for number in units[units >= 0].tolist()), layout.MAX_NAME, "is it a unit?")
    _check_predicates([snapshot.predicate_name(i) for i in range(snapshot.predicate_count)], connection)


def _check_predicates(predicates: Sequence[str], connection: Connection) -> None:
    engine = connection.engine
    for name in predicates:
        if (why := engine.odd_type(layout.type_of(name))) is not None:
            raise errors.LoadError(f"the predicate {_short(name)} {why}, which {engine.name} takes in no relationship type")
    _check_types({layout.type_of(name) for name in predicates}, connection)


def _check(what: str, names: Iterable[str], longest: int, hint: str) -> None:
    for name in names:
        size = len(name.encode())
        if size > longest:
            raise errors.LoadError(
                f"the {what} {_short(name)} has {size:,} bytes; Neo4j's indexes leave room for {longest:,}", hint=hint
            )


def _short(name: str) -> str:
    return repr(name if len(name) <= 40 else name[:39] + "…")


def _check_types(wanted: set[str], connection: Connection) -> None:
    engine = connection.engine
    if not engine.types_like_labels:
        wanted = set(map(engine.stored_type, wanted))
        labels = {row["label"] for row in connection.ask("CALL db.labels() YIELD label RETURN label", {})}
        if shared := sorted(wanted & labels):
            raise errors.LoadError(
                f"the predicate {_short(shared[0])} is called as a label of the database is, which {engine.name} does not take",
                hint="load into another database",
            )
    if engine.most_types is None:
        return
    known: set[str] = set()
    for text in _TYPES:
        try:
            known = {row["name"] for row in connection.ask(text, {})}
            break
        except errors.StoreError:
            continue
    fresh = len(wanted - known)
    if len(known) + fresh > engine.most_types and not _roomy(connection):
        raise errors.LoadError(
            f"the database has {len(known):,} relationship types already, and {fresh:,} predicates would be new ones; "
            f"Neo4j's Community Edition takes {engine.most_types:,} in all, and gives none back",
            hint="load into another database or server, or a table with its columns as rows",
        )


def _roomy(connection: Connection) -> bool:
    """Tell whether the storage format of the database allows more types."""
    try:
        rows = connection.ask("CALL db.info() YIELD name RETURN name", {})
        formats = connection.ask(_FORMAT, {"name": rows[0]["name"]})
    except errors.StoreError:
        return False
    return bool(formats) and str(formats[0]["store"]).startswith("block")


# -- Loads -------------------------------------------------------------------------------------------


#: Seconds for which a reader relies on the state of the graph's node it has read.
LEASE: Final = 1.0
#: Seconds between two looks at whether another loader is done.
_PAUSE: Final = 0.25
#: The survey is long, so only its presence for the current content is returned here.
_READ_STATE: Final = (
    f"MATCH (g:{layout.GRAPH} {{name: $graph}}) "
    "RETURN g {.*, survey: coalesce(g.survey STARTS WITH g.content, false)} AS about, timestamp() AS now"
)
#: Graphs of the previous layout, with plain labels. A node that only looks like one is excluded: every
#: load of that layout created its constraint first.
_OLDER: Final = (
    "MATCH (g:Graph {name: $graph}) WHERE g.format = 3 AND g.content IS NOT NULL "
    "AND g.counts STARTS WITH '{' AND g.schema STARTS WITH '{' RETURN g.name LIMIT 1"
)
_OLDER_CONSTRAINT: Final = (
    "SHOW CONSTRAINTS YIELD name, labelsOrTypes, properties "
    "WHERE name = 'condgraph_graph' AND labelsOrTypes = ['Graph'] AND properties = ['name'] RETURN name"
)
_SURVEYED: Final = f"MATCH (g:{layout.GRAPH} {{name: $graph, content: $content}}) SET g.survey = $survey"

Counts = dict[str, int]
NO_CHANGE: Final = Change()


def push(
    connection: Connection,
    graph: str,
    snapshot: Snapshot,
    *,
    wait: float,
    on_progress: OnWritten,
    change: Change = NO_CHANGE,
    labels: bool | None = None,
    on_remark: Callable[[str], None] = lambda remark: None,
) -> tuple[Counts, Counts]:
    """Write a snapshot into a graph, remove what `change` removes; return the counts before and after.

    Waits up to `wait` seconds for other writers, then raises `StoreBusyError`. `labels` tells whether entities carry their
    concepts as labels (`labelling`); `on_remark` is called with concepts that cannot be labels, and why.
    """
    with waiting(wait):
        check_loadable(snapshot, connection)
    load = _Load(connection, graph, snapshot, change, labels)
    until = time.monotonic() + wait
    with Loading(connection, graph) as loading:
        state = _begin(loading, load, until, held=bool(wait))
        about, counts_before, labelling = state.about, state.held, state.labelling
        if state.there:
            return counts_before, counts_before
        previous, attempt = None, ""
        if "content" in about:
            if about.get("complete"):
                # Readers may rely on an earlier look for this long.
                time.sleep(LEASE * 1.2)
            # This also holds for an interrupted load: each statement that it wrote is there with all its
            # parts.
            if about.get("removing"):
                loading.end_removing()
                return counts_before, counts_before
            previous, attempt = pull(connection, graph), f"{uuid4().hex} "
            snapshot, notes = joined(change, edit_records(connection, graph), previous, snapshot)
            for note in notes:
                on_remark(note)
            labelling = further(connection, about, previous, snapshot, wanted=state.wanted)
            if labelling.every:
                loading.label(labelling.every)
        for remark in (*begun_otherwise(asked=labels, wanted=state.wanted), *labelling.remarks):
            on_remark(remark)
        write_snapshot(
            snapshot, loading, connection, previous=previous, on_progress=on_progress, attempt=attempt, labelling=labelling
        )
        if not state.complete:
            layout.make_indexes(connection)
        end = loading.remove if change.without and previous is not None else loading.finish
        end(content_digest(snapshot), snapshot, labelling.stated(snapshot))
    return counts_before, dict(snapshot.counts)


class _Load(NamedTuple):
    """What is to be loaded, and where."""

    connection: Connection
    graph: str
    snapshot: Snapshot
    change: Change
    labels: bool | None


class _LoadState(NamedTuple):
    """A load that has begun.

    `about` is the state of the graph's node and `held` its counts; `there` tells that the content is loaded already, `wanted`
    and `labelling` whether entities carry labels, and which; `complete`, whether the indexes exist.
    """

    about: dict[str, Any]
    held: Counts
    there: bool = False
    wanted: bool = False
    labelling: Labelling = Labelling()
    complete: bool = True


def _begin(loading: Loading, asked: _Load, until: float, *, held: bool) -> _LoadState:
    """Begin a load once no other one runs, until a time of the monotonic clock; then raises `StoreBusyError`.

    `held` tells whether to wait at all.
    """
    connection, graph, snapshot, change, labels = asked
    adds, what = _load_identity(snapshot, change)
    complete: bool | None = None
    while True:
        about = _wait_for_others(connection, graph, adds, what, until, held=held)
        if not about:
            check_layout(connection, graph)
        counts: Counts = json.loads(about["counts"]) if about.get("counts") else {}
        if about.get("content") == adds and about.get("complete") and labels in (None, "labels" in about):
            _add_survey(connection, graph, about, snapshot)
            return _LoadState(about, counts, there=True)
        # Checked before anything is written: a load that fails for its sources leaves the graph as it
        # was.
        if not about.get("removing"):
            change.check(graph_sources(connection, graph), snapshot)
        if complete is None:
            complete = layout.prepare(connection)
        wanted, labelling = is_wanted(connection, about, labels), Labelling()
        if wanted and "content" not in about:
            labelling = first(connection, about, snapshot)
        try:
            loading.begin(adds, what, seen=about, labelling=labelling.after)
            return _LoadState(about, counts, False, wanted, labelling, complete)
        except ChangedError:
            # Another load was faster and is done: read the graph again.
            continue
        except errors.StoreBusyError:
            if time.monotonic() >= until:
                raise


def _load_identity(snapshot: Snapshot, change: Change) -> tuple[str, list[str]]:
    """Return the identity of a load, equal for the same content and change, and the sources involved."""
    adds = content_digest(snapshot)
    if change:
        adds += " " + blake2b(change.name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    named = [snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name")))]
    return adds, list(dict.fromkeys((*named, *change.without)))


def _add_survey(connection: Connection, graph: str, about: dict[str, Any], snapshot: Snapshot) -> None:
    """Add the survey to a content that was written by a version without surveys."""
    if not about.get("survey"):
        content = about["content"]
        connection.write(_SURVEYED, {"graph": graph, "content": content, "survey": packed(survey(snapshot), content)})


def look(connection: Connection, graph: str, patience: float | None = None) -> tuple[dict[str, Any], int]:
    """Read the graph's node (empty if there is none) and the server's clock in milliseconds.

    The server has `patience` seconds to answer, at most the timeout of the connection.
    """
    rows = connection.ask(_READ_STATE, {"graph": graph}, patience=patience)
    return (rows[0]["about"], rows[0]["now"]) if rows else ({}, 0)


def is_older(connection: Connection, graph: str) -> bool:
    """Tell whether the graph exists in the previous layout."""
    return bool(connection.ask(_OLDER_CONSTRAINT, {}) and connection.ask(_OLDER, {"graph": graph}))


def check_layout(connection: Connection, graph: str) -> None:
    """Raise `StoreVersionError` if the graph exists in the previous layout."""
    if is_older(connection, graph):
        raise errors.StoreVersionError(
            f"graph {graph!r} at {connection.place} has the layout of an earlier version",
            hint="load its sources again under another name, or export it with the version that wrote it and load the export",
        )


def _wait_for_others(connection: Connection, graph: str, load: str, what: list[str], until: float, *, held: bool) -> dict[str, Any]:
    """Return the state of the graph once nobody writes it; raises `StoreBusyError` after `until`.

    With `held`, a server that does not answer does not exceed this time either.
    """
    while True:
        about, now = look(connection, graph, max(until - time.monotonic(), MIN_TIMEOUT) if held else None)
        busy = busy_error(graph, about, now, load, what)
        if busy is None:
            return about
        remaining = until - time.monotonic()
        if remaining <= 0:
            raise busy
        time.sleep(min(_PAUSE, remaining))


# -- Single changes ------------------------------------------------------------------------------------
# A change is one transaction: it takes the write lock on the graph's node, checks that the graph is the
# one the change was made for, and writes the differences, the record of the change, and the node's
# statement of its content.
#
# Readers rely on what they read of the node for a while (`LEASE`), which loads wait for. In a graph with
# changes (`edited` on its node) they read it each time; so only the first change of a graph waits.


_RECORDS: Final = f"MATCH (e:{layout.EDIT} {{graph: $graph}}) RETURN e.record ORDER BY e.number"
_STATED: Final = (
    f"MATCH (g:{layout.GRAPH} {{name: $graph}}) WHERE g.complete AND g.declares "
    "RETURN g.content AS content, g.counts AS counts, g.schema AS schema, g.survey AS survey"
)
_LAST_RECORD: Final = f"MATCH (e:{layout.EDIT} {{graph: $graph}}) RETURN e.number AS number ORDER BY e.number DESC LIMIT 1"
_RECORDED: Final = f"MATCH (e:{layout.EDIT} {{graph: $graph, number: $number}}) RETURN e.record AS record"
_EDITED: Final = f"MATCH (g:{layout.GRAPH} {{name: $graph}}) SET g.edited = true"
_CHANGED: Final = (
    f"CREATE (:{layout.EDIT} {{graph: $graph, number: $number, record: $record}}) WITH * MATCH (g:{layout.GRAPH} {{name: $graph}}) "
    "SET g.content = $content, g.counts = $counts, g.schema = $schema, g.survey = $survey, g.labels = $labels, "
    "g.declares = true REMOVE g.beat"
)


def edit_records(connection: Connection, graph: str) -> list[str]:
    """Return the records of the single changes of a graph, in order."""
    return [record for (record,) in connection.stream(_RECORDS, {"graph": graph})]


def last_edit(connection: Connection, graph: str) -> int:
    """Return the number of the last single change; 0 if there is none."""
    rows = connection.ask(_LAST_RECORD, {"graph": graph})
    return int(rows[0]["number"]) if rows else 0


def stated(connection: Connection, graph: str) -> GraphSummary | None:
    """Return what the graph's node states about its content; None if the graph is incomplete or the node lacks a part."""
    for row in connection.rows(_STATED, {"graph": graph}):
        survey = unpacked(row["survey"] or "", row["content"])
        if survey is not None:
            return GraphSummary(row["content"], json.loads(row["counts"]), json.loads(row["schema"]), survey)
    return None


def write_edit(connection: Connection, graph: str, change: RemoteEdit, about: dict[str, Any]) -> tuple[str, list[str]]:
    """Write one single change of a graph whose node is `about`; return the new content's name and remarks on labels.

    Raises `OvertakenError` if the graph has changed since, `StoreBusyError` if it is being loaded.
    """
    if not about.get("edited"):
        if not layout.prepare(connection):
            layout.make_indexes(connection)
        connection.write(_EDITED, {"graph": graph})
        time.sleep(LEASE * 1.2)
    if change.stated is None:
        check_loadable(change.after, connection)
        labelling = further(connection, about, change.before, change.after, wanted="labels" in about)
        content = content_digest(change.after)
        node = terms(content, change.after, labelling.stated(change.after))
    else:
        # No entity changes its labels, and a new one has none.
        labelling, content = Labelling(), change.stated.content
        node = {
            "content": content, "counts": json.dumps(change.stated.counts), "schema": json.dumps(change.stated.schema),
            "survey": packed(change.stated.survey, content), "labels": about.get("labels"),
        }  # fmt: skip
    batches = [*RowMaker(change.after, change.before, labelling).batches(), *RemovalBatches(change.before, change.after).batches()]
    if change.stated is not None:
        batches = list(_adapted(batches, change, change.stated))
        check_names(change, connection)
    parameters = {"graph": graph, "number": change.number, "record": change.record, **node}

    def work(transaction: Transaction) -> errors.StoreBusyError | None:
        rows = transaction.run(LOCKED, {"graph": graph}).rows
        now_about = rows[0]["about"]
        previous_record = transaction.run(_RECORDED, {"graph": graph, "number": change.number}).rows
        if previous_record and previous_record[0]["record"] == change.record:
            # The response to a commit was lost, and this is its second run.
            return None
        busy = busy_error(graph, now_about, rows[0]["now"], "", ())
        if busy is None and (previous_record or now_about.get("content") != change.content or not now_about.get("complete")):
            busy = OvertakenError(f"graph {graph!r} was changed by somebody else meanwhile", hint="make the change again")
        if busy is not None:
            transaction.rollback()
            return busy
        for batch in batches:
            make(transaction, graph, batch, REMOVALS.get(batch.kind) or TEXTS[batch.kind], None, connection.engine)
        transaction.run(_CHANGED, parameters)
        return None

    busy = connection.transaction(work)
    if busy is not None:
        raise busy
    return content, list(labelling.remarks)


def check_names(change: RemoteEdit, connection: Connection) -> None:
    """Raise `LoadError` if a server would refuse a part of what a change adds."""
    parts = [part for part in change.edit.added if isinstance(part, Statement)]
    units = [value.unit for part in parts for _, value in (("", part.object), *part.qualifiers) if isinstance(value, Quantity)]
    _check("unit", units, layout.MAX_NAME, "is it a unit?")
    names = {name for part in parts for name in named_in(part)}
    known = {change.before.predicate_name(number) for number in range(change.before.predicate_count)}
    if fresh := sorted(names - known):
        _check_predicates(fresh, connection)


def _adapted(batches: Iterable[Batch], change: RemoteEdit, stated: GraphSummary) -> Iterator[Batch]:
    """Adapt the batches of a part of a graph to the whole: only new sources, and counts of predicates as in the whole graph."""
    known = {change.before.source_of(number).name for number in range(len(change.before.schema.sources))}
    names = {name for part in (*change.edit.added, *change.edit.removed) if isinstance(part, Statement) for name in named_in(part)}
    for batch in batches:
        rows = batch.rows
        if batch.kind == "sources":
            rows = [row for row in rows if row[0] not in known]
        elif batch.kind == "predicates":
            rows = [[row[0], *stated.statements(row[0]), stated.qualifiers(row[0]), row[4]] for row in rows if row[0] in names]
        if rows:
            yield replace(batch, rows=rows)


# -- Taking a load back ------------------------------------------------------------------------------
# Takes back an unfinished load: the graph gets its earlier content, or is deleted if it had none.
#
# Records that the load added have its stamp, and earlier states of changed ones were recorded (`write`).
# The graph's node still states the earlier content, with which the result is compared before readers see
# it.


_NOTED: Final = (
    f"MATCH (u:{layout.FORMER}) WHERE u.graph = $graph AND u.load = $stamp AND u.at IS NOT NULL AND u.of = $of "
    f"WITH u LIMIT {EDGES} "
)
_PLACES: Final = "SET x.sources = u.sources, x.rows = u.rows DELETE u"


def _match_by(x: str, label: str, key: str, noted: str = "") -> str:
    # No map in the pattern: some servers do not allow one that refers to earlier variables.
    return f"MATCH ({x}:{label}) WHERE {x}.graph = $graph AND {x}.{key} = u.{noted or key} "


def _set(*names: str) -> str:
    return f"SET {', '.join(f'x.{name} = u.{name}' for name in names)} "


_MATCH_SUBJECT: Final = _match_by("a", layout.ENTITY, "handle", "subject")
#: Restores recorded states, by kind.
_RESTORE: Final = {
    "source": f"{_match_by('x', layout.SOURCE, 'name')}{_set('number', 'location', 'format', 'content')} DELETE u",
    "predicate": f"{_match_by('x', layout.PREDICATE, 'key')}{_set('relations', 'attributes', 'qualifiers')} DELETE u",
    "entity": f"{_match_by('x', layout.ENTITY, 'handle')}{_set(*ENTITY_PROPERTIES[1:-1])} "
    + "".join(
        f"FOREACH (_ IN CASE WHEN u.kind = {int(kind)} THEN [] ELSE [1] END | REMOVE x:{label}) "
        for kind, label in ((EntityKind.CONCEPT, layout.CONCEPT), (EntityKind.ROW, layout.ROW))
    )
    + "".join(
        f"FOREACH (_ IN CASE WHEN u.kind = {int(kind)} THEN [1] ELSE [] END | SET x:{label}) "
        for kind, label in ((EntityKind.CONCEPT, layout.CONCEPT), (EntityKind.ROW, layout.ROW))
    )
    + f"DELETE u {RENAMED.format(entity='x')}",
    "labels": f"{_match_by('x', layout.ENTITY, 'handle')}REMOVE x:$([l IN labels(x) WHERE l IN $labels]) "
    "SET x:$(u.labels) DELETE u",
    "relation": _MATCH_SUBJECT + f"MATCH (a)-[x]->(:{layout.ENTITY}) WHERE x.sid = u.sid AND type(x) = u.type {_PLACES}",
    "attribute": _MATCH_SUBJECT + f"MATCH (a)-[f]->(x:{layout.VALUE}) WHERE f.sid = u.sid AND type(f) = u.type "
    f"SET x.raw = u.raw, x.raws = u.raws, x.name = u.name {_PLACES}",
    "member": _MATCH_SUBJECT
    + f"{_match_by('b', layout.ENTITY, 'handle', 'object')}MATCH (a)-[x]->(b) WHERE x.sid IS NULL AND type(x) = u.type {_PLACES}",
}


def abandon(connection: Connection, graph: str, about: dict[str, Any]) -> None:
    """Take back the load of a graph whose node is `about`; raises `StoreBusyError` if its writer is still there."""
    if about["loading"] == layout.DELETED:
        delete(connection, graph)
        return
    with Loading(connection, graph) as loading:
        loading.begin(about["loading"], about.get("what") or (), seen=about)
        if about.get("removing"):
            # Everything is added, and some removals may be done: the load is finished instead.
            loading.end_removing()
            return
        if loading.stamp is None:
            delete(connection, graph)
            loading.load = ""
            return
        stamp = loading.stamp
        remove(connection, graph, stamp)
        for label, key in ((layout.PREDICATE, "key"), (layout.SOURCE, "name")):
            text = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} IS NOT NULL AND n.load = $stamp DETACH DELETE n"
            connection.write(text, {"graph": graph, "stamp": stamp})
        parameters = {"graph": graph, "stamp": stamp, "labels": about.get("labelling", [])}
        for kind, text in _RESTORE.items():
            while connection.write(_NOTED + text, {**parameters, "of": kind}).deleted:
                pass
        restored = pull(connection, graph)
        content = about["content"]
        # After a single change, the name of the content is not derived from the content itself.
        same = (
            json.loads(about["counts"]) == restored.counts
            if content.startswith(CHANGED)
            else content in (content_digest(restored), earlier_content_id(restored))
        )
        if not same:
            raise errors.StoreDamagedError(
                f"graph {graph!r} is not what it was before the load, although that was taken back",
                hint="delete the graph, and load it again",
            )
        loading.take_back()
