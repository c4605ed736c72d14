"""A load as a whole: what a server would refuse, what the graph holds already, what is written and what it holds
then; single changes; and an unfinished load taken back.
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
from condgraph.engine.bounds import LEAST, waiting
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
# What a server would refuse in the middle of a load, looked for before anything is written.
#
# Texts, ids, names of entities and of predicates may have any length: long ones are indexed by their
# hash (`cypher.layout.schema`). Names of graphs, sources and units stand in indexes as they are, and
# a server never gives back a relationship type.


#: Every type that the database ever had; for users who may not ask that, the types in use.
_TYPES: Final = (
    "CALL db.stats.retrieve('TOKENS') YIELD data UNWIND data.relationshipTypes AS name RETURN name",
    "CALL db.relationshipTypes() YIELD relationshipType RETURN relationshipType AS name",
)
_FORMAT: Final = "SHOW DATABASES YIELD name, store WHERE name = $name RETURN store"


def check_graph(name: str) -> str:
    """The name of a graph; raises `OptionError` where a server cannot keep it."""
    if not name:
        raise errors.OptionError("the name of a graph is empty")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise errors.OptionError(f"the name of a graph is text, not {name!r}") from None
    if size > layout.LONGEST_NAME:
        raise errors.OptionError(f"the name of a graph has at most {layout.LONGEST_NAME:,} bytes on Neo4j, not {size:,}")
    return name


def check_loadable(snapshot: Snapshot, connection: Connection) -> None:
    """Raise `LoadError` where a server would refuse a part of the snapshot."""
    get = snapshot.arrays.get
    _check(
        "source",
        (snapshot.source_of(i).name for i in range(len(get("src.name")))),
        layout.LONGEST_SOURCE,
        "name= gives it another name",
    )
    units = np.unique(np.concatenate([get("att.unit"), get("q.unit")]))
    _check("unit", (snapshot.texts[number] for number in units[units >= 0].tolist()), layout.LONGEST_NAME, "is it a unit?")
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
    """Whether the database is kept in a format that takes more types."""
    try:
        rows = connection.ask("CALL db.info() YIELD name RETURN name", {})
        result = connection.ask(_FORMAT, {"name": rows[0]["name"]})
    except errors.StoreError:
        return False
    return bool(result) and str(result[0]["store"]).startswith("block")


# -- Loads -------------------------------------------------------------------------------------------


#: Seconds for which a reader trusts what it last read of the graph's node.
LEASE: Final = 1.0
#: Seconds after which a loader looks again whether another one is done.
_PAUSE: Final = 0.25
#: The survey is long, and read by those who ask for it: others hear whether there is one of this
#: content.
_LOOK: Final = (
    f"MATCH (g:{layout.GRAPH} {{name: $graph}}) "
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
_SURVEYED: Final = f"MATCH (g:{layout.GRAPH} {{name: $graph, content: $content}}) SET g.survey = $survey"

Counts = dict[str, int]
NOTHING: Final = Change()


def push(
    connection: Connection,
    graph: str,
    snapshot: Snapshot,
    *,
    wait: float,
    on_progress: OnWritten,
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
            snapshot, notes = joined(change, edit_records(connection, graph), previous, snapshot)
            for note in notes:
                on_remark(note)
            labelling = further(connection, about, previous, snapshot, wanted=begun.wanted)
            if labelling.every:
                loading.label(labelling.every)
        for remark in (*begun_otherwise(asked=labels, wanted=begun.wanted), *labelling.remarks):
            on_remark(remark)
        write_snapshot(
            snapshot, loading, connection, previous=previous, on_progress=on_progress, attempt=attempt, labelling=labelling
        )
        if not begun.complete:
            layout.make_indexes(connection)
        end = loading.remove if change.without and previous is not None else loading.finish
        end(content_digest(snapshot), snapshot, labelling.stated(snapshot))
    return held, dict(snapshot.counts)


class _Load(NamedTuple):
    """What is to be loaded, and where."""

    connection: Connection
    graph: str
    snapshot: Snapshot
    change: Change
    labels: bool | None


class _LoadState(NamedTuple):
    """A load that has begun: the state of the graph's node, what the graph held, and whether that is
    what is asked for; whether entities carry labels, and which; whether the indexes are there.
    """

    about: dict[str, Any]
    held: Counts
    there: bool = False
    wanted: bool = False
    labelling: Labelling = Labelling()
    complete: bool = True


def _begin(loading: Loading, asked: _Load, until: float, *, held: bool) -> _LoadState:
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
            return _LoadState(about, counts, there=True)
        # Before anything is written: a load that fails for its sources leaves the graph as it was.
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
            # Others were quicker, and are done: the graph is looked at again, not given up.
            continue
        except errors.StoreBusyError:
            if time.monotonic() >= until:
                raise


def _asked(snapshot: Snapshot, change: Change) -> tuple[str, list[str]]:
    """What a load is known by, which is the same for the same content and change, and the sources that
    it has to do with.
    """
    adds = content_digest(snapshot)
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
        raise errors.StoreVersionError(
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
        time.sleep(min(_PAUSE, left))


# -- Single changes ------------------------------------------------------------------------------------
# A change is one transaction: it takes the write lock on the graph's node, looks whether the graph is what the
# change was made for, and writes what differs, the record of the change, and what the node says of its content.
#
# Readers trust what they read of the node for a while (`LEASE`), which loads wait for. Of a graph that has changes
# (`edited` of its node) they look each time; so the first change of a graph waits, and no other one.


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
    """The records of the single changes of a graph, in order."""
    return [record for (record,) in connection.stream(_RECORDS, {"graph": graph})]


def last_edit(connection: Connection, graph: str) -> int:
    """The number of the last single change; 0 where there is none."""
    rows = connection.ask(_LAST_RECORD, {"graph": graph})
    return int(rows[0]["number"]) if rows else 0


def stated(connection: Connection, graph: str) -> GraphSummary | None:
    """What the graph's node states of its content; None where it says too little, or the graph is not there as a whole."""
    for row in connection.rows(_STATED, {"graph": graph}):
        survey = unpacked(row["survey"] or "", row["content"])
        if survey is not None:
            return GraphSummary(row["content"], json.loads(row["counts"]), json.loads(row["schema"]), survey)
    return None


def write_edit(connection: Connection, graph: str, change: RemoteEdit, about: dict[str, Any]) -> tuple[str, list[str]]:
    """Write one single change of a graph whose node says `about`; the content then, and remarks on labels.

    Raises `OvertakenError` where the graph is another than before the change, `StoreBusyError` where somebody loads it.
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
        batches = list(_of_part(batches, change, change.stated))
        check_names(change, connection)
    given = {"graph": graph, "number": change.number, "record": change.record, **node}

    def work(transaction: Transaction) -> errors.StoreBusyError | None:
        rows = transaction.run(LOCKED, {"graph": graph}).rows
        now_about = rows[0]["about"]
        recorded = transaction.run(_RECORDED, {"graph": graph, "number": change.number}).rows
        if recorded and recorded[0]["record"] == change.record:
            # The answer to a commit was lost, and this is its second run.
            return None
        busy = busy_error(graph, now_about, rows[0]["now"], "", ())
        if busy is None and (recorded or now_about.get("content") != change.content or not now_about.get("complete")):
            busy = OvertakenError(f"graph {graph!r} was changed by somebody else meanwhile", hint="make the change again")
        if busy is not None:
            transaction.rollback()
            return busy
        for batch in batches:
            make(transaction, graph, batch, REMOVALS.get(batch.kind) or TEXTS[batch.kind], None, connection.engine)
        transaction.run(_CHANGED, given)
        return None

    busy = connection.transaction(work)
    if busy is not None:
        raise busy
    return content, list(labelling.remarks)


def check_names(change: RemoteEdit, connection: Connection) -> None:
    """Raise `LoadError` where a server would refuse a part of what a change adds."""
    parts = [part for part in change.edit.added if isinstance(part, Statement)]
    units = [value.unit for part in parts for _, value in (("", part.object), *part.qualifiers) if isinstance(value, Quantity)]
    _check("unit", units, layout.LONGEST_NAME, "is it a unit?")
    names = {name for part in parts for name in named_in(part)}
    known = {change.before.predicate_name(number) for number in range(change.before.predicate_count)}
    if fresh := sorted(names - known):
        _check_predicates(fresh, connection)


def _of_part(batches: Iterable[Batch], change: RemoteEdit, stated: GraphSummary) -> Iterator[Batch]:
    """The batches of a part of a graph, with what the whole graph states: sources that are new, and counts of predicates."""
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
# Taking back a load that was not finished: the graph holds again what it held before, or is gone
# where it held nothing.
#
# What the load added has its stamp, and what it changed was noted before (`write`); the graph's node
# still says what its content was, so that what is left is compared with that before readers see it.


_NOTED: Final = (
    f"MATCH (u:{layout.FORMER}) WHERE u.graph = $graph AND u.load = $stamp AND u.at IS NOT NULL AND u.of = $of "
    f"WITH u LIMIT {EDGES} "
)
_PLACES: Final = "SET x.sources = u.sources, x.rows = u.rows DELETE u"


def _looked_up(x: str, label: str, key: str, noted: str = "") -> str:
    # No map in the pattern: some servers take none that names what was matched before.
    return f"MATCH ({x}:{label}) WHERE {x}.graph = $graph AND {x}.{key} = u.{noted or key} "


def _set(*names: str) -> str:
    return f"SET {', '.join(f'x.{name} = u.{name}' for name in names)} "


_FOUND: Final = _looked_up("a", layout.ENTITY, "handle", "subject")
#: How what was noted is put back, by what it is of.
_RESTORE: Final = {
    "source": f"{_looked_up('x', layout.SOURCE, 'name')}{_set('number', 'location', 'format', 'content')} DELETE u",
    "predicate": f"{_looked_up('x', layout.PREDICATE, 'key')}{_set('relations', 'attributes', 'qualifiers')} DELETE u",
    "entity": f"{_looked_up('x', layout.ENTITY, 'handle')}{_set(*ENTITY_PROPERTIES[1:-1])} "
    + "".join(
        f"FOREACH (_ IN CASE WHEN u.kind = {int(kind)} THEN [] ELSE [1] END | REMOVE x:{label}) "
        for kind, label in ((EntityKind.CONCEPT, layout.CONCEPT), (EntityKind.ROW, layout.ROW))
    )
    + "".join(
        f"FOREACH (_ IN CASE WHEN u.kind = {int(kind)} THEN [1] ELSE [] END | SET x:{label}) "
        for kind, label in ((EntityKind.CONCEPT, layout.CONCEPT), (EntityKind.ROW, layout.ROW))
    )
    + f"DELETE u {RENAMED.format(entity='x')}",
    "labels": f"{_looked_up('x', layout.ENTITY, 'handle')}REMOVE x:$([l IN labels(x) WHERE l IN $labels]) "
    "SET x:$(u.labels) DELETE u",
    "relation": _FOUND + f"MATCH (a)-[x]->(:{layout.ENTITY}) WHERE x.sid = u.sid AND type(x) = u.type {_PLACES}",
    "attribute": _FOUND + f"MATCH (a)-[f]->(x:{layout.VALUE}) WHERE f.sid = u.sid AND type(f) = u.type "
    f"SET x.raw = u.raw, x.raws = u.raws, x.name = u.name {_PLACES}",
    "member": _FOUND
    + f"{_looked_up('b', layout.ENTITY, 'handle', 'object')}MATCH (a)-[x]->(b) WHERE x.sid IS NULL AND type(x) = u.type {_PLACES}",
}


def abandon(connection: Connection, graph: str, about: dict[str, Any]) -> None:
    """Take back the load of a graph whose node says `about`; raises `StoreBusyError` while its
    writer is there.
    """
    if about["loading"] == layout.DELETED:
        delete(connection, graph)
        return
    with Loading(connection, graph) as loading:
        loading.begin(about["loading"], about.get("what") or (), seen=about)
        if about.get("removing"):
            # All that it adds is there, and some of what it takes away may be gone: it is ended.
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
        given = {"graph": graph, "stamp": stamp, "labels": about.get("labelling", [])}
        for of, text in _RESTORE.items():
            while connection.write(_NOTED + text, {**given, "of": of}).deleted:
                pass
        result = pull(connection, graph)
        content = about["content"]
        # A change names the content by the one before.
        same = (
            json.loads(about["counts"]) == result.counts
            if content.startswith(CHANGED)
            else content in (content_digest(result), earlier_content_id(result))
        )
        if not same:
            raise errors.StoreDamagedError(
                f"graph {graph!r} is not what it was before the load, although that was taken back",
                hint="delete the graph, and load it again",
            )
        loading.take_back()
