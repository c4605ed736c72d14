"""Writes a graph to a remote RDF store in batches: idempotent, resumable, and never visible half done.

A graph is its triples in the named graph BASE (`layout`). During a load, its own node says so (`pred:loading`, the hash of what
is loaded, and by whom) and lacks `pred:load`, which every query of a reader asks for; once everything is there, the node has
`pred:load`, and `pred:schema` for lowering programs. Triples are a set and no node is blank, so that writing one twice changes
nothing: an interrupted load that is started again continues after the last batch marked (`pred:loaded`), or, if it adds to an
existing graph, sends everything again.

A load that adds to a graph first writes what it will add, and what it will remove, into two named graphs (`BASE.added/`,
`BASE.removed/`), and changes the graph itself once both are complete (`pred:staged`): before that nothing has changed, and
after that it is known how to undo the load (`abandon`).
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from condgraph.edits import RemoteEdit, joined
from condgraph.engine.bounds import MIN_TIMEOUT
from condgraph.engine.changes import Change, OnWritten, OvertakenError
from condgraph.engine.errors import DeadlineError, LoadError, ParseError, StoreBusyError, StoreDamagedError, StoreError
from condgraph.engine.facts import Source
from condgraph.engine.identity import content_digest
from condgraph.engine.iris import encode
from condgraph.engine.owner import NOBODY, Owner
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.overview.adjusted import GraphSummary
from condgraph.overview.survey import described, packed, survey, unpacked
from condgraph.sparql.client import Endpoint
from condgraph.sparql.dialect import TOO_LARGE, Dialect, cut
from condgraph.sparql.layout import LAYOUT, GraphIris, string
from condgraph.sparql.load.write import counts, triples

# -- what a store can keep ---------------------------------------------------------------------------
# Checks for IRIs that are too long for a store, done before anything is written.


def check_loadable(snapshot: Snapshot, names: GraphIris, dialect: Dialect) -> None:
    """Raise `LoadError` if the store would cut a name. Texts may have any length: IRIs of long texts are hashes."""
    longest = dialect.longest_iri
    if longest is None:
        return
    sources = (snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name"))))
    predicates = (snapshot.predicate_name(i) for i in range(snapshot.predicate_count))
    ids = iter(snapshot.texts.take(snapshot.entity_id))
    parts: tuple[tuple[str, Iterable[str], str], ...] = (
        ("id", ids, ""),
        ("predicate", predicates, ""),
        ("source", sources, ".source/"),
    )
    for what, candidates, path in parts:
        room = longest - len((names.base + path).encode())
        for name in candidates:
            # A character takes at most twelve bytes.
            if len(name) * 12 > room and (size := len(encode(name).encode())) > room:
                shown = repr(name if len(name) <= 40 else name[:39] + "…")
                raise LoadError(
                    f"the {what} {shown} takes {size:,} bytes in an IRI, of which {dialect.name} keeps {room:,}",
                    hint="a shorter one, or a store that keeps long IRIs",
                )


# -- batches -----------------------------------------------------------------------------------------


#: Longest literal of the schema, in characters; the schema is written as several.
_MAX_LITERAL: Final = 30_000
#: Increased if triples or the schema of an older version would be misread; equal content is then written
#: anew.
FORMAT: Final = 4
_STATE: Final = ("load", "loading", "loaded", "staged", "what", "schema", "counts", "layout", "label", "turn")
#: Terms of the graph's node about its content.
_CONTENT: Final = ("load", "schema", "survey", "counts", "layout", "label")
#: Terms of the graph's node about a running load.
_LOAD_TERMS: Final = ("loaded", "staged", "what", "loading")

#: Triples that are removed at once, if removing all takes a server too long.
_MAX_REMOVED: Final = 10_000


def load_id(snapshot: Snapshot, change: str = "") -> str:
    """Return a name for a load, equal for equal content and change.

    The name of a load of all that a graph holds also names its content.
    """
    digest = blake2b(content_digest(snapshot).encode(), digest_size=12)
    digest.update(f"{LAYOUT} {FORMAT} {change}".encode("utf-8", "surrogatepass"))
    digest.update(json.dumps(snapshot.counts, sort_keys=True).encode())
    return digest.hexdigest()


def state(endpoint: Endpoint, base: str, patience: float | None = None) -> dict[str, list[str]]:
    """Return what the graph's node states about loads:

    `load`, or `loading` (see `Mark`) and `loaded`; empty if there is no graph.

    The server has `patience` seconds to answer, at most the timeout of the endpoint.
    """
    wanted = " ".join(f"<pred:{name}>" for name in _STATE)
    text = f"SELECT ?p ?o WHERE {{ <{base}> ?p ?o . VALUES ?p {{ {wanted} }} }}"
    terms: dict[str, list[str]] = {}
    allowed = endpoint.patience if patience is None else min(patience, endpoint.patience)
    rows: Any = endpoint.query(text, graphs=(base,), patience=allowed)
    for row in rows:
        terms.setdefault(row["p"].value.removeprefix("pred:"), []).append(row["o"].value)
    return terms


class Mark(NamedTuple):
    """A running or interrupted load: its name, its owner (`Owner`), and whether the graph had content before."""

    load: str
    owner: str
    adds: bool

    @property
    def text(self) -> str:
        """The mark as written in the store."""
        return f"{self.load} {self.owner} {'adds' if self.adds else 'new'}"

    @property
    def gone(self) -> bool:
        """Whether its writer has ended. A writer on another machine is assumed to run."""
        return self.owner == NOBODY or Owner.gone(self.owner, 0.0)


def marks(found: dict[str, list[str]]) -> list[Mark]:
    """Return the loads that a graph's node names; those begun by an earlier version have no owner."""
    parts = [text.split(" ") for text in found.get("loading", ())]
    return [Mark(load, fields[0] if fields else NOBODY, fields[1:] != ["new"]) for load, *fields in parts]


def claim(endpoint: Endpoint, base: str, mark: Mark, seen: dict[str, list[str]]) -> None:
    """Become the writer of a graph whose node stated `seen`; raises `StoreBusyError` if another load has begun as well.

    A store has no transactions over several requests: a loader marks the graph, checks that it is alone, and withdraws if not.
    """
    before = set(marks(seen))
    _insert(endpoint, base, [_marked(base, mark)])
    running, now = _writers(endpoint, base, state(endpoint, base))
    alone = set(marks(now)) - {mark} == before and not running
    # This mark replaces those of interrupted loads; otherwise everything stays as it was.
    for other in before if alone and now.get("load") == seen.get("load") else {mark}:
        endpoint.update(f"DELETE DATA {{ GRAPH <{base}> {{ {_marked(base, other)} }} }}")
    if not alone or now.get("load") != seen.get("load"):
        raise StoreBusyError("another load has begun", hint="load again when it is finished, or wait= for it")


def _marked(base: str, mark: Mark) -> str:
    return f"<{base}> <pred:loading> {string(mark.text)}"


def write_snapshot(
    endpoint: Endpoint,
    snapshot: Snapshot,
    base: str,
    *,
    graph: str,
    load: str,
    what: Sequence[str] = (),
    previous: Snapshot | None = None,
    begun: dict[str, list[str]] | None = None,
    on_progress: OnWritten,
) -> None:
    """Make the graph hold `snapshot`, whose content includes that of `previous`, the store's present content.

    The caller has claimed the graph (`claim`). `load` names the load, `what` its sources; `begun` is the state of an
    interrupted load of this name. Everything is then sent again, except for batches that are marked as loaded into an
    empty graph.
    """
    node = f"<{base}>"
    if begun is None:
        _forget(endpoint, base, ("loaded", "staged", "what"))
        _insert(endpoint, base, [f"{node} <pred:what> {string(name)}" for name in what])
    graph_lines: list[str] = []

    def lines(of: Snapshot) -> Iterator[str]:
        for line in triples(of, base, graph=graph):
            if not line.startswith(f"{node} "):
                yield line
            elif of is snapshot:
                graph_lines.append(line)

    known: set[str] = set()
    if previous is not None:
        known.update(lines(previous))
        new = set(lines(snapshot))
        if begun is None:
            _stage(endpoint, base, load, new - known, known - new)
    _forget(endpoint, base, _CONTENT)
    if previous is not None:
        for batch in cut(sorted(known - new), endpoint.dialect.update_batch):
            endpoint.update(f"DELETE DATA {{ GRAPH <{base}> {{ {_triples(batch)} }} }}")
    if begun is not None:
        # An interrupted load may have left anything: everything is sent.
        known.clear()
    graph_lines.clear()
    marks = [] if begun is None or previous is not None else [mark.split(" ") for mark in begun.get("loaded", ())]
    size = endpoint.dialect.update_batch if endpoint.store_url is None else endpoint.dialect.store_batch
    # Batches of another size have other content.
    last_done = max((int(number) for name, number, *of in marks if name == load and of == [str(size)]), default=-1)
    written, total = 0, None if previous is None else len(new - known)
    for number, batch in enumerate(cut((line for line in lines(snapshot) if line not in known), size)):
        if number > last_done:
            _insert(endpoint, base, [*batch, f"{node} <pred:loaded> {string(f'{load} {number} {size}')}"])
        written += len(batch)
        on_progress(written, None if total is None else written / total)
    schema = json.dumps(described(snapshot), ensure_ascii=False)
    _insert(endpoint, base, graph_lines)
    content = load_id(snapshot)
    _finish(endpoint, base, content, {"schema": schema, "survey": packed(survey(snapshot), content)})


def _literals(base: str, name: str, text: str, first: str = "") -> list[str]:
    """Split a text into triples of the graph's node: literals of limited length, each with its number."""
    pieces = (text[begin : begin + _MAX_LITERAL] for begin in range(0, len(text), _MAX_LITERAL))
    return [f"<{base}> <pred:{name}> {string(f'{first}{number:06d} {piece}')}" for number, piece in enumerate(pieces)]


def _finish(endpoint: Endpoint, base: str, load: str, texts: Mapping[str, str]) -> None:
    """Write the texts of a complete graph, and mark the graph as loaded, with the name of its content.

    The same load may be repeated later, after others.
    """
    node = f"<{base}>"
    for name, text in texts.items():
        for piece in _literals(base, name, text):
            _insert(endpoint, base, [piece])
    # Until here readers see a running load: its mark is replaced last, in one step. After that, the other
    # notes of the load are meaningless.
    endpoint.update(
        f"DELETE {{ GRAPH <{base}> {{ {node} <pred:loading> ?mark }} }} "
        f"INSERT {{ GRAPH <{base}> {{ {node} <pred:load> {string(load)} }} }} "
        f"WHERE {{ GRAPH <{base}> {{ {node} <pred:loading> ?mark }} }}"
    )
    _forget(endpoint, base, _LOAD_TERMS[:-1])
    _clear(endpoint, base)


def is_staged(begun: dict[str, list[str]]) -> bool:
    """Tell whether an interrupted load had staged all of its changes, and may have made some of them."""
    return any(mark.load in begun.get("staged", ()) for mark in marks(begun))


def abandon(endpoint: Endpoint, base: str, begun: dict[str, list[str]]) -> bool:
    """Undo an interrupted load; return whether anything is left of the graph."""
    if not any(mark.adds for mark in marks(begun)):
        remove(endpoint, base)
        return False
    take_back(endpoint, base, begun)
    _forget(endpoint, base, _LOAD_TERMS[-1:])
    return True


def take_back(endpoint: Endpoint, base: str, begun: dict[str, list[str]]) -> None:
    """Undo the changes of an interrupted load to a graph that had content, except for its mark."""
    staged = is_staged(begun)
    if not staged and "load" not in begun:
        raise StoreDamagedError(
            "an earlier version began this load, and did not note what it changed", hint="load the same again, or delete the graph"
        )
    if staged:
        _forget(endpoint, base, _CONTENT)
        most = endpoint.dialect.update_batch
        _each(endpoint, f"{base}.added/", f"DELETE {{ GRAPH <{base}> {{ ?s ?p ?o }} GRAPH <{base}.added/> {{ ?s ?p ?o }} }}", most)
        put_back = f"DELETE {{ GRAPH <{base}.removed/> {{ ?s ?p ?o }} }} INSERT {{ GRAPH <{base}> {{ ?s ?p ?o }} }}"
        _each(endpoint, f"{base}.removed/", put_back, most)
    _forget(endpoint, base, _LOAD_TERMS[:-1])
    _clear(endpoint, base)


def remove(endpoint: Endpoint, base: str) -> None:
    """Remove a graph's triples, whose subjects are all under BASE. Other triples in the same named graph stay.

    One request if it meets the server's own time limit; otherwise batches. Readers in between, and after an interruption, see a
    load into an empty graph that is running or was interrupted, never a part of the graph.
    """
    _clear(endpoint, base)
    foreign = f"?s ?p ?o FILTER(!STRSTARTS(STR(?s), {string(base)}))"
    at_once = f"CLEAR SILENT GRAPH <{base}>"
    if endpoint.query(f"ASK {{ {foreign} }}", graphs=(base,)):
        ours = f"?s ?p ?o FILTER(STRSTARTS(STR(?s), {string(base)}))"
        at_once = f"DELETE {{ GRAPH <{base}> {{ ?s ?p ?o }} }} WHERE {{ GRAPH <{base}> {{ {ours} }} }}"
    try:
        endpoint.update(at_once)
    except DeadlineError:
        _remove_some_at_once(endpoint, base)


def _remove_some_at_once(endpoint: Endpoint, base: str) -> None:
    owner = Owner()
    try:
        _insert(endpoint, base, [_marked(base, Mark("removed", owner.name, adds=False))])
        _forget(endpoint, base, (*_CONTENT, *_LOAD_TERMS[:-1]))
        # The triples of the graph's own node are removed last.
        ours = f"FILTER(STRSTARTS(STR(?s), {string(base)}) && ?s != <{base}>)"
        _each(endpoint, base, f"DELETE {{ GRAPH <{base}> {{ ?s ?p ?o }} }}", _MAX_REMOVED, ours)
        endpoint.update(f"DELETE WHERE {{ GRAPH <{base}> {{ <{base}> ?p ?o }} }}")
    finally:
        owner.release()


def _stage(endpoint: Endpoint, base: str, load: str, added: set[str], removed: set[str]) -> None:
    """Write what a load will change before it changes anything, including terms of the graph's node about its content."""
    _clear(endpoint, base)
    for name, lines in (("added", added), ("removed", removed)):
        for batch in cut(sorted(lines), endpoint.dialect.update_batch):
            _insert(endpoint, f"{base}.{name}/", batch)
    for name in _CONTENT:
        endpoint.update(
            f"INSERT {{ GRAPH <{base}.removed/> {{ <{base}> <pred:{name}> ?o }} }} "
            f"WHERE {{ GRAPH <{base}> {{ <{base}> <pred:{name}> ?o }} }}"
        )
    _insert(endpoint, base, [f"<{base}> <pred:staged> {string(load)}"])


def _each(endpoint: Endpoint, graph: str, change: str, most: int, which: str = "") -> None:
    """Repeat an update that removes at most `most` triples of a named graph until none are left; `which` is a filter."""
    pattern = f"?s ?p ?o {which}".rstrip()
    while endpoint.query(f"ASK {{ {pattern} }}", graphs=(graph,)):
        endpoint.update(f"{change} WHERE {{ {{ SELECT ?s ?p ?o WHERE {{ GRAPH <{graph}> {{ {pattern} }} }} LIMIT {most} }} }}")


def _clear(endpoint: Endpoint, base: str) -> None:
    for name in ("added", "removed"):
        endpoint.update(f"CLEAR SILENT GRAPH <{base}.{name}/>")


def in_pieces(pieces: Iterable[str]) -> str:
    """Join a text from its literals, which begin with their numbers."""
    return "".join(piece[7:] for piece in sorted(pieces))


def _forget(endpoint: Endpoint, base: str, names: Iterable[str]) -> None:
    for name in names:
        endpoint.update(f"DELETE WHERE {{ GRAPH <{base}> {{ <{base}> <pred:{name}> ?o }} }}")


def _insert(endpoint: Endpoint, base: str, lines: Iterable[str]) -> None:
    """Add triples; if the server finds a request too large, it is sent in halves."""
    batch = list(lines)
    if not batch:
        return
    try:
        if endpoint.store_url is None or len(batch) < 10:
            endpoint.update(f"INSERT DATA {{ GRAPH <{base}> {{ {_triples(batch)} }} }}")
        else:
            endpoint.add(_triples(batch).encode(), base)
    except (ParseError, StoreError) as error:
        if len(batch) < 100 or not any(mark in error.message for mark in TOO_LARGE):
            raise
        middle = len(batch) // 2
        _insert(endpoint, base, batch[:middle])
        _insert(endpoint, base, batch[middle:])


def _triples(lines: list[str]) -> str:
    return " .\n".join(lines) + " .\n"


# -- a load as a whole -------------------------------------------------------------------------------


Counts = dict[str, int]
NO_CHANGE: Final = Change()
#: Range of seconds after which a loader checks again whether another one is done.
_POLL = 0.1, 0.5


class Loader:
    """Loads into one graph.

    `sources` returns the graph's sources, `pull` the graph itself (leniently, for an interrupted load).
    """

    def __init__(
        self, endpoint: Endpoint, graph: str, base: str, sources: Callable[[], tuple[Source, ...]], pull: Callable[[bool], Snapshot]
    ) -> None:
        self._endpoint, self._graph, self._base = endpoint, graph, base
        self._sources, self._pull = sources, pull
        #: Remarks of the last load on single changes.
        self.remarks: list[str] = []

    def push(
        self, snapshot: Snapshot, *, wait: float, by_update: bool, change: Change | None = None, on_progress: OnWritten
    ) -> tuple[Counts, Counts]:
        """Add a snapshot to what the graph holds, remove what `change` removes; return the counts before and after.

        `wait` is how many seconds to wait for another loader; after that, or if a load was interrupted, raises
        `StoreBusyError`. With `by_update`, the Graph Store Protocol is only used if its address is configured.
        """
        until, owner = time.monotonic() + wait, Owner()
        try:
            return self._in_turn(snapshot, wait, until, owner.name, by_update, NO_CHANGE if change is None else change, on_progress)
        finally:
            owner.release()

    def _in_turn(
        self, snapshot: Snapshot, wait: float, until: float, owner: str, by_update: bool, change: Change, on_progress: OnWritten
    ) -> tuple[Counts, Counts]:
        while True:
            try:
                # With a `wait`, a silent server takes no longer than that.
                patience = max(until - time.monotonic(), MIN_TIMEOUT) if wait else None
                return self._push(snapshot, owner, patience, by_update, change, on_progress)
            except OvertakenError:
                raise
            except StoreBusyError:
                remaining = until - time.monotonic()
                if remaining <= 0:
                    raise
                # Loaders that collided withdraw, and retry at different times.
                time.sleep(min(remaining, random.uniform(*_POLL)))

    def _push(
        self, snapshot: Snapshot, owner: str, patience: float | None, by_update: bool, change: Change, on_progress: OnWritten
    ) -> tuple[Counts, Counts]:
        endpoint, base = self._endpoint, self._base
        self.remarks = []
        load = load_id(snapshot, change.name)
        source_names = [snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name")))]
        what = list(dict.fromkeys((*source_names, *change.without)))
        stated = state(endpoint, base, patience)
        if endpoint.store_url is None and not by_update:
            endpoint.store_url = endpoint.dialect.store_url(endpoint.query_url)
        interrupted = marks(stated)
        check_loadable(snapshot, GraphIris(base), endpoint.dialect)
        other = next((mark for mark in interrupted if not mark.gone), None)
        if other is not None:
            raise busy(self._graph, other)
        if any(mark.load != load for mark in interrupted):
            raise unfinished(self._graph, stated, what)
        if not interrupted and stated.get("load") == [load]:
            counts_before: Counts = json.loads(stated["counts"][0])
            return counts_before, counts_before
        adds = any(mark.adds for mark in interrupted) if interrupted else "load" in stated
        if adds and not interrupted:
            # Checked before anything is written: a load with a problem in its sources leaves the graph as
            # it was.
            change.check(self._sources(), snapshot)
        claim(endpoint, base, Mark(load, owner, adds), stated)
        previous = None
        if adds:
            if interrupted:
                # The changes of the interrupted load are undone, and all are made again.
                take_back(endpoint, base, stated)
            previous = self._pull(False)
            snapshot, self.remarks = joined(change, edit_records(endpoint, base), previous, snapshot)
        write_snapshot(
            endpoint, snapshot, base, graph=self._graph, load=load, what=what, previous=previous,
            begun=stated if interrupted and not adds else None, on_progress=on_progress,
        )  # fmt: skip
        return {} if previous is None else counts(previous), counts(snapshot)


# -- single changes ----------------------------------------------------------------------------------
# A change is one update request, which does nothing if the graph is not the one the change was made for.
# Its record is a text of the graph's node (`pred:edit`), in pieces that begin with the number of the
# change.
#
# That condition is not enough for two writers: a server may evaluate both requests on the same state
# (Oxigraph does, and both then change the graph). So a writer first takes a turn (`pred:turn`), as a
# loader claims the graph.

#: Seconds within which a server ends the request of a killed writer.
_GRACE: Final = 0.2


def edit_records(endpoint: Endpoint, base: str) -> list[str]:
    """Return the records of the single changes of a graph, in order."""
    pieces: dict[str, list[str]] = {}
    rows: Any = endpoint.query(f"SELECT ?o WHERE {{ <{base}> <pred:edit> ?o }}", graphs=(base,))
    for row in rows:
        number, _, piece = row["o"].value.partition(" ")
        pieces.setdefault(number, []).append(piece)
    return [in_pieces(pieces[number]) for number in sorted(pieces)]


@contextmanager
def _turn(endpoint: Endpoint, base: str, graph: str, content: str) -> Iterator[str]:
    """Become the only writer of a graph with the content of this name; yield the triple of the turn, which the request removes.

    Raises `OvertakenError` if the content has changed, `StoreBusyError` if another process writes.
    """
    owner = Owner()
    turn = f"<{base}> <pred:turn> {string(owner.name)}"
    try:
        _insert(endpoint, base, [turn])
        running, now = _writers(endpoint, base, state(endpoint, base))
        competitors = [name for name in running if name != owner.name]
        _check_unloaded(graph, now)
        if competitors:
            raise StoreBusyError(
                f"graph {graph!r} is being changed by {Owner.place(competitors[0])}",
                hint="wait= waits for it; or stop that process, and then `condgraph abandon`",
            )
        if now.get("load") != [content]:
            raise _overtaken(graph)
        yield turn
    except BaseException:
        # If it cannot be removed now, it counts as that of a writer that has ended.
        with suppress(StoreError, DeadlineError):
            endpoint.update(f"DELETE DATA {{ GRAPH <{base}> {{ {turn} }} }}")
        raise
    finally:
        owner.release()


def _writers(endpoint: Endpoint, base: str, now: dict[str, list[str]]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the writers of single changes with a turn, and the state of the graph.

    Turns of writers that have ended are removed first, and the state is read again.
    """
    ended = [name for name in now.get("turn", ()) if Owner.gone(name, 0.0)]
    if ended:
        forget_turns(endpoint, base, ended)
        # The server may still run the request of a killed writer.
        time.sleep(_GRACE)
        now = state(endpoint, base)
    return now.get("turn", []), now


def forget_turns(endpoint: Endpoint, base: str, owners: Iterable[str]) -> None:
    """Remove the turns of writers that have ended."""
    for name in owners:
        endpoint.update(f"DELETE DATA {{ GRAPH <{base}> {{ <{base}> <pred:turn> {string(name)} }} }}")


def stated(endpoint: Endpoint, base: str) -> GraphSummary | None:
    """Return what the graph's node states about its content; None if the graph is incomplete or the node lacks a part."""
    terms: dict[str, list[str]] = {}
    text = f"SELECT ?p ?o WHERE {{ <{base}> ?p ?o FILTER(?p != <pred:edit>) }}"
    rows: Any = endpoint.query(text, graphs=(base,))
    for row in rows:
        terms.setdefault(row["p"].value.removeprefix("pred:"), []).append(row["o"].value)
    if "loading" in terms or any(name not in terms for name in ("load", "declares", "counts", "schema", "survey")):
        return None
    content = terms["load"][0]
    survey_of = unpacked(in_pieces(terms["survey"]), content)
    if survey_of is None:
        return None
    return GraphSummary(content, json.loads(terms["counts"][0]), json.loads(in_pieces(terms["schema"])), survey_of)


def write_edit(endpoint: Endpoint, base: str, graph: str, change: RemoteEdit) -> str:
    """Write one single change; return the name of the new content.

    Raises `OvertakenError` if the graph has changed since, `StoreBusyError` if another process loads or changes it.
    """
    check_loadable(change.after, GraphIris(base), endpoint.dialect)
    node, summary = f"<{base}>", change.stated
    if summary is not None:
        # Whether quantities have sort keys is decided for the whole graph.
        change.before.inexact = change.after.inexact = summary.counts["inexact"] > 0
    before, after = (
        {line for line in triples(of, base, graph=graph) if not line.startswith(f"{node} ")} for of in (change.before, change.after)
    )
    content = load_id(change.after) if summary is None else summary.content
    number = f"{change.number:09d} "
    record = _literals(base, "edit", change.record, number)
    if summary is None:
        summary = GraphSummary(content, counts(change.after), described(change.after), survey(change.after))
    graph_lines = [
        f"{node} <pred:load> {string(content)}",
        f"{node} <pred:counts> {string(json.dumps(summary.counts, sort_keys=True))}",
        *_literals(base, "schema", json.dumps(summary.schema, ensure_ascii=False)),
        *_literals(base, "survey", packed(summary.survey, content)),
    ]
    terms = ", ".join(f"<pred:{name}>" for name in ("load", "counts", "schema", "survey"))
    with _turn(endpoint, base, graph, change.content) as turn:
        text = (
            f"DELETE {{ GRAPH <{base}> {{ {_triples([*sorted(before - after), f'{node} ?p ?o', turn])} }} }} "
            f"INSERT {{ GRAPH <{base}> {{ {_triples([*sorted(after - before), *graph_lines, *record])} }} }} "
            f"WHERE {{ GRAPH <{base}> {{ {turn} . {node} <pred:load> {string(change.content)} . "
            f"{node} ?p ?o FILTER(?p IN ({terms})) "
            f"FILTER NOT EXISTS {{ {node} <pred:loading> ?mark }} "
            f"FILTER NOT EXISTS {{ {node} <pred:edit> ?edit FILTER(STRSTARTS(STR(?edit), {string(number)})) }} }} }}"
        )
        try:
            endpoint.update(text)
        except (StoreError, DeadlineError):
            # Only the response may have been lost.
            if not _recorded(endpoint, base, record):
                raise
        if not _recorded(endpoint, base, record):
            _check_unloaded(graph, state(endpoint, base))
            raise _overtaken(graph)
    return content


def _check_unloaded(graph: str, now: dict[str, list[str]]) -> None:
    """Raise `StoreBusyError` if a load of the graph is unfinished."""
    if "loading" in now:
        other = next((mark for mark in marks(now) if not mark.gone), None)
        raise unfinished(graph, now) if other is None else busy(graph, other)


def _overtaken(graph: str) -> OvertakenError:
    return OvertakenError(f"graph {graph!r} was changed by somebody else meanwhile", hint="make the change again")


def _recorded(endpoint: Endpoint, base: str, record: list[str]) -> bool:
    return bool(endpoint.query(f"ASK {{ {record[0]} }}", graphs=(base,)))


def busy(graph: str, mark: Mark) -> StoreBusyError:
    """Return the error for a graph that another process loads."""
    return StoreBusyError(
        f"graph {graph!r} is being loaded by {Owner.place(mark.owner)}", hint="wait= waits for it; or stop that process"
    )


def unfinished(graph: str, begun: dict[str, list[str]], what: list[str] | None = None) -> StoreBusyError:
    """Return the error for a graph whose load was interrupted; `what` are the sources to load now."""
    sources = sorted(begun.get("what", ()))
    named = f"a load of {', '.join(map(repr, sources[:5]))}" if sources else "another load"
    more, hint = "", "load the same again, which goes on where that stopped, "
    if what and sources == sorted(what):
        more, hint = ", and what it was read from has changed since", "load it as it was, "
    hint += "or abandon it with graph.abandon() or `condgraph abandon`"
    return StoreBusyError(f"{named} into graph {graph!r} is not finished{more}", hint=hint)
