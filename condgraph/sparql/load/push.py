"""Writing a graph to a remote RDF store in batches: idempotent, resumable, never read half done.

A graph is its triples in the named graph BASE (`layout`). While it is loaded its own node says so
(`pred:loading`, the hash of what is being loaded, and whose load it is) and has no `pred:load`,
which every query of a reader asks for; once everything is there the node has `pred:load`, and
`pred:schema` for those who lower programs. Triples are a set and no node is blank, so that writing
one twice changes nothing: a load that was ended, begun again, goes on behind the last batch that is
marked (`pred:loaded`), or, where it added to a graph that was there, sends everything again.

A load that adds to a graph first writes what it will add, and what it will take away, into two
named graphs beside it (`BASE.added/`, `BASE.removed/`), and touches the graph itself once both are
whole (`pred:staged`): until then nothing has changed, and from then on it is known how the load is
taken back (`abandon`).
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from condgraph.engine.bounds import LEAST
from condgraph.engine.changes import Change, OvertakenError
from condgraph.engine.errors import DeadlineError, LoadError, ParseError, StoreBusyError, StoreDamagedError, StoreError
from condgraph.engine.facts import Source
from condgraph.engine.identity import content_digest
from condgraph.engine.owner import NOBODY, Owner
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.overview.survey import described, packed, survey
from condgraph.sparql.client import Endpoint
from condgraph.sparql.dialect import TOO_LARGE, Dialect, cut
from condgraph.sparql.layout import LAYOUT, GraphIris, encode, string
from condgraph.sparql.load.write import counts, triples

# -- what a store can keep ---------------------------------------------------------------------------
# What a store would not keep as it is, looked for before anything is written: IRIs that are too
# long for it.


def check_loadable(snapshot: Snapshot, names: GraphIris, dialect: Dialect) -> None:
    """Raise `LoadError` where the store would cut a name. Texts may have any length: long ones are
    named by their hash.
    """
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
    for what, found, path in parts:
        room = longest - len((names.base + path).encode())
        for name in found:
            # A character takes twelve bytes at most.
            if len(name) * 12 > room and (size := len(encode(name).encode())) > room:
                shown = repr(name if len(name) <= 40 else name[:39] + "…")
                raise LoadError(
                    f"the {what} {shown} takes {size:,} bytes in an IRI, of which {dialect.name} keeps {room:,}",
                    hint="a shorter one, or a store that keeps long IRIs",
                )


# -- batches -----------------------------------------------------------------------------------------


#: Characters of one literal of the schema; it stands in as many as it takes.
_PIECE: Final = 30_000
#: Raised when the triples or the schema of an older version would be read wrongly: the same content
#: is written anew then.
FORMAT: Final = 4
_STATE: Final = ("load", "loading", "loaded", "staged", "what", "schema", "counts", "layout", "label")
#: What the graph's node says of its content.
_CONTENT: Final = ("load", "schema", "survey", "counts", "layout", "label")
#: What it says of a load that is under way.
_UNDER_WAY: Final = ("loaded", "staged", "what", "loading")

#: Triples that are removed at once where all of them take a server too long.
_AT_ONCE: Final = 10_000

#: Hears how many triples are written so far.
OnProgress = Callable[[int], None]


def load_id(snapshot: Snapshot, change: str = "") -> str:
    """A name for the load of this content, with what else it does: the same gives the same name.
    That of all that a graph holds names its content.
    """
    digest = blake2b(content_digest(snapshot).encode(), digest_size=12)
    digest.update(f"{LAYOUT} {FORMAT} {change}".encode("utf-8", "surrogatepass"))
    digest.update(json.dumps(snapshot.counts, sort_keys=True).encode())
    return digest.hexdigest()


def state(endpoint: Endpoint, base: str, patience: float | None = None) -> dict[str, list[str]]:
    """What the graph's node says of loads: `load`, or `loading` (see `Mark`) and `loaded`; nothing
    where there is no graph.

    The server has `patience` seconds to say it, at most as many as the endpoint gives it.
    """
    wanted = " ".join(f"<pred:{name}>" for name in _STATE)
    text = f"SELECT ?p ?o WHERE {{ <{base}> ?p ?o . VALUES ?p {{ {wanted} }} }}"
    found: dict[str, list[str]] = {}
    enough = endpoint.patience if patience is None else min(patience, endpoint.patience)
    rows: Any = endpoint.query(text, graphs=(base,), patience=enough)
    for row in rows:
        found.setdefault(row["p"].value.removeprefix("pred:"), []).append(row["o"].value)
    return found


class Mark(NamedTuple):
    """A load that is under way, or was ended: its name, whose it is (`Owner`), and whether the
    graph had content before.
    """

    load: str
    owner: str
    adds: bool

    @property
    def text(self) -> str:
        """As it stands in the store."""
        return f"{self.load} {self.owner} {'adds' if self.adds else 'new'}"

    @property
    def gone(self) -> bool:
        """Whether its writer has ended. A writer on another machine is taken to be at work."""
        return self.owner == NOBODY or Owner.gone(self.owner, 0.0)


def marks(found: dict[str, list[str]]) -> list[Mark]:
    """The loads that a graph's node names; those that an earlier version began are nobody's."""
    parts = [text.split(" ") for text in found.get("loading", ())]
    return [Mark(load, rest[0] if rest else NOBODY, rest[1:] != ["new"]) for load, *rest in parts]


def claim(endpoint: Endpoint, base: str, mark: Mark, seen: dict[str, list[str]]) -> None:
    """Become the writer of a graph whose node said `seen`; raises `StoreBusyError` where another
    has begun as well.

    A store has no transactions over several requests: a loader marks the graph, looks whether it is
    alone, and steps back if not.
    """
    before = set(marks(seen))
    _insert(endpoint, base, [_marked(base, mark)])
    now = state(endpoint, base)
    alone = set(marks(now)) - {mark} == before
    # What a load that was ended had left is this one's now; else everything stays as it was.
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
    on_progress: OnProgress = lambda written: None,
) -> None:
    """Make the graph hold `snapshot`, whose content includes that of `previous`, which the store
    holds.

    The caller has claimed the graph (`claim`). `load` names the load, `what` its sources; `begun`
    is the state of one of this name that was ended. Everything is sent again then, but for the
    batches that are marked where the load was into an empty graph.
    """
    node = f"<{base}>"
    if begun is None:
        _forget(endpoint, base, ("loaded", "staged", "what"))
        _insert(endpoint, base, [f"{node} <pred:what> {string(name)}" for name in what])
    about: list[str] = []

    def lines(of: Snapshot) -> Iterator[str]:
        for line in triples(of, base, graph=graph):
            if not line.startswith(f"{node} "):
                yield line
            elif of is snapshot:
                about.append(line)

    known: set[str] = set()
    if previous is not None:
        known.update(lines(previous))
        new = set(lines(snapshot))
        if begun is None:
            _stage(endpoint, base, load, new - known, known - new)
    _forget(endpoint, base, _CONTENT)
    if previous is not None:
        for batch in cut(sorted(known - new), endpoint.dialect.update_batch):
            endpoint.update(f"DELETE DATA {{ GRAPH <{base}> {{ {_joined(batch)} }} }}")
    if begun is not None:
        # Nobody knows what a load that was ended left: everything is sent.
        known.clear()
    about.clear()
    marks = [] if begun is None or previous is not None else [mark.split(" ") for mark in begun.get("loaded", ())]
    size = endpoint.dialect.update_batch if endpoint.store_url is None else endpoint.dialect.store_batch
    # Batches of another size are other batches.
    done = max((int(number) for name, number, *of in marks if name == load and of == [str(size)]), default=-1)
    written = 0
    for number, batch in enumerate(cut((line for line in lines(snapshot) if line not in known), size)):
        if number > done:
            _insert(endpoint, base, [*batch, f"{node} <pred:loaded> {string(f'{load} {number} {size}')}"])
        written += len(batch)
        on_progress(written)
    schema = json.dumps(described(snapshot), ensure_ascii=False)
    _insert(endpoint, base, about)
    content = load_id(snapshot)
    _finish(endpoint, base, content, {"schema": schema, "survey": packed(survey(snapshot), content)})


def _finish(endpoint: Endpoint, base: str, load: str, texts: Mapping[str, str]) -> None:
    """Write what is kept of a graph that is there as a whole, and mark the graph as loaded: by the
    name of its content, since a load may come again after others.
    """
    node = f"<{base}>"
    for name, text in texts.items():
        for number, begin in enumerate(range(0, len(text), _PIECE)):
            _insert(endpoint, base, [f"{node} <pred:{name}> {string(f'{number:06d} {text[begin : begin + _PIECE]}')}"])
    # Until here others see that a load is under way: its mark goes last, and in one step. What is
    # noted of the load says nothing then.
    endpoint.update(
        f"DELETE {{ GRAPH <{base}> {{ {node} <pred:loading> ?mark }} }} "
        f"INSERT {{ GRAPH <{base}> {{ {node} <pred:load> {string(load)} }} }} "
        f"WHERE {{ GRAPH <{base}> {{ {node} <pred:loading> ?mark }} }}"
    )
    _forget(endpoint, base, _UNDER_WAY[:-1])
    _clear(endpoint, base)


def is_staged(begun: dict[str, list[str]]) -> bool:
    """Whether a load that was ended had written down all that it would do, and may have done some
    of it.
    """
    return any(mark.load in begun.get("staged", ()) for mark in marks(begun))


def abandon(endpoint: Endpoint, base: str, begun: dict[str, list[str]]) -> bool:
    """Take back a load that was ended; whether anything is left of the graph."""
    if not any(mark.adds for mark in marks(begun)):
        remove(endpoint, base)
        return False
    take_back(endpoint, base, begun)
    _forget(endpoint, base, _UNDER_WAY[-1:])
    return True


def take_back(endpoint: Endpoint, base: str, begun: dict[str, list[str]]) -> None:
    """Take back what a load that was ended did to a graph that had content, but for its mark."""
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
    _forget(endpoint, base, _UNDER_WAY[:-1])
    _clear(endpoint, base)


def remove(endpoint: Endpoint, base: str) -> None:
    """Remove a graph's triples, whose subjects are all under BASE. Where others stand in the same
    named graph, these stay.

    One request where the server's own limit of time suffices for it; else so many at once. Whoever
    comes meanwhile, or after that was ended, finds a load into an empty graph that is under way, or
    was ended, and never a graph of which a part is gone.
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
        _forget(endpoint, base, (*_CONTENT, *_UNDER_WAY[:-1]))
        # What the graph's own node says goes last.
        ours = f"FILTER(STRSTARTS(STR(?s), {string(base)}) && ?s != <{base}>)"
        _each(endpoint, base, f"DELETE {{ GRAPH <{base}> {{ ?s ?p ?o }} }}", _AT_ONCE, ours)
        endpoint.update(f"DELETE WHERE {{ GRAPH <{base}> {{ <{base}> ?p ?o }} }}")
    finally:
        owner.release()


def _stage(endpoint: Endpoint, base: str, load: str, added: set[str], removed: set[str]) -> None:
    """Write down what a load will do, before it does any of it; also what the graph's node says of
    its content.
    """
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
    """Make a change, which takes triples from a named graph, with those triples there (`which` is a
    filter), at most so many at once, until none are left.
    """
    some = f"?s ?p ?o {which}".rstrip()
    while endpoint.query(f"ASK {{ {some} }}", graphs=(graph,)):
        endpoint.update(f"{change} WHERE {{ {{ SELECT ?s ?p ?o WHERE {{ GRAPH <{graph}> {{ {some} }} }} LIMIT {most} }} }}")


def _clear(endpoint: Endpoint, base: str) -> None:
    for name in ("added", "removed"):
        endpoint.update(f"CLEAR SILENT GRAPH <{base}.{name}/>")


def in_pieces(pieces: Iterable[str]) -> str:
    """A text from the literals that it stands in, which say their places."""
    return "".join(piece[7:] for piece in sorted(pieces))


def _forget(endpoint: Endpoint, base: str, names: Iterable[str]) -> None:
    for name in names:
        endpoint.update(f"DELETE WHERE {{ GRAPH <{base}> {{ <{base}> <pred:{name}> ?o }} }}")


def _insert(endpoint: Endpoint, base: str, lines: Iterable[str]) -> None:
    """Add triples; where the server finds a request too large it is sent in halves."""
    batch = list(lines)
    if not batch:
        return
    try:
        if endpoint.store_url is None or len(batch) < 10:
            endpoint.update(f"INSERT DATA {{ GRAPH <{base}> {{ {_joined(batch)} }} }}")
        else:
            endpoint.add(_joined(batch).encode(), base)
    except (ParseError, StoreError) as error:
        if len(batch) < 100 or not any(mark in error.message for mark in TOO_LARGE):
            raise
        middle = len(batch) // 2
        _insert(endpoint, base, batch[:middle])
        _insert(endpoint, base, batch[middle:])


def _joined(lines: list[str]) -> str:
    return " .\n".join(lines) + " .\n"


# -- a load as a whole -------------------------------------------------------------------------------


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
