"""Writing a graph to a remote RDF store in batches: idempotent, resumable, never read half done.

A graph is its triples in the named graph BASE (`layout`). While it is loaded its own node says so (`pred:loading`, the hash of what
is being loaded) and has no `pred:load`, which every query of a reader asks for; once everything is there the node has `pred:load`,
and `pred:schema` for those who lower programs. Triples are a set and no node is blank, so that writing one twice changes nothing: a
load that was ended, begun again, goes on behind the last batch that is marked (`pred:loaded`), or, where it added to a graph that
was there, sends everything again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.errors import ParseError, StoreBusyError, StoreError
from condgraph.engine.identity import statement_ids
from condgraph.engine.stored_schema import describe_schema
from condgraph.sparql.dialect import TOO_LARGE, cut
from condgraph.sparql.layout import LAYOUT, string
from condgraph.sparql.write import triples

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.sparql.client import Endpoint

#: Characters of one literal of the schema; it stands in as many as it takes.
_PIECE: Final = 30_000
#: Raised when the triples or the schema of an older version would be read wrongly: the same content is written anew then.
FORMAT: Final = 2
_STATE: Final = ("load", "loading", "over", "loaded", "schema", "counts", "layout", "label")

#: Hears how many triples are written so far.
Told = Callable[[int], None]


def load_id(snapshot: Snapshot) -> str:
    """A name for the load of this content: the same content gives the same name."""
    digest = blake2b(np.sort(statement_ids(snapshot)).tobytes(), digest_size=12)
    digest.update(f"{LAYOUT} {FORMAT} ".encode())
    digest.update(json.dumps(snapshot.counts, sort_keys=True).encode())
    return digest.hexdigest()


def state(endpoint: Endpoint, base: str) -> dict[str, list[str]]:
    """What the graph's node says of loads: `load`, or `loading`, `over` and `loaded`; nothing where there is no graph."""
    wanted = " ".join(f"<pred:{name}>" for name in _STATE)
    text = f"SELECT ?p ?o WHERE {{ <{base}> ?p ?o . VALUES ?p {{ {wanted} }} }}"
    found: dict[str, list[str]] = {}
    rows: Any = endpoint.query(text, graphs=(base,))
    for row in rows:
        found.setdefault(row["p"].value.removeprefix("pred:"), []).append(row["o"].value)
    return found


def write_snapshot(
    endpoint: Endpoint,
    snapshot: Snapshot,
    base: str,
    *,
    graph: str,
    load: str,
    over: list[str] | None = None,
    previous: Snapshot | None = None,
    begun: dict[str, list[str]] | None = None,
    told: Told = lambda written: None,
) -> None:
    """Make the graph hold `snapshot`, whose content includes that of `previous`, which the store holds.

    `load` names the load, `over` the one that `previous` was read of; `begun` is the state of one of this name that was ended.
    Everything is sent again then, but for the batches that are marked where the load was into an empty graph.
    """
    node = f"<{base}>"
    if begun is None:
        _forget(endpoint, base, ("loaded",))
        mark = f"{node} <pred:loading> {string(load)}"
        _insert(endpoint, base, [mark, f"{node} <pred:over> {string('' if previous is None else 'something')}"])
        now = state(endpoint, base)
        if now.get("loading") != [load] or now.get("load") != over:
            # Another loader has begun as well, or was done between: what was read of the graph may be old.
            endpoint.update(f"DELETE DATA {{ GRAPH <{base}> {{ {mark} }} }}")
            raise StoreBusyError(f"another load of graph {graph!r} has begun", hint="load again when it is finished")
    _forget(endpoint, base, ("load", "schema", "counts", "layout", "label"))
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
        for batch in cut(sorted(known.difference(lines(snapshot))), endpoint.dialect.update_batch):
            endpoint.update(f"DELETE DATA {{ GRAPH <{base}> {{ {_joined(batch)} }} }}")
    if begun is not None:
        # Of a load that was ended nobody knows what is there: everything is sent.
        known.clear()
    about.clear()
    marks = [] if begun is None or previous is not None else [mark.split(" ") for mark in begun.get("loaded", ())]
    done = max((int(number) for name, number in marks if name == load), default=-1)
    size = endpoint.dialect.update_batch if endpoint.store_url is None else endpoint.dialect.store_batch
    written = 0
    for number, batch in enumerate(cut((line for line in lines(snapshot) if line not in known), size)):
        if number > done:
            _insert(endpoint, base, [*batch, f"{node} <pred:loaded> {string(f'{load} {number}')}"])
        written += len(batch)
        told(written)
    schema = json.dumps(describe_schema(snapshot), ensure_ascii=False)
    pieces = [schema[i : i + _PIECE] for i in range(0, len(schema), _PIECE)]
    _insert(endpoint, base, about)
    for number, piece in enumerate(pieces):
        _insert(endpoint, base, [f"{node} <pred:schema> {string(f'{number:06d} {piece}')}"])
    # Whoever looks in between is told of the load: its mark goes last.
    _insert(endpoint, base, [f"{node} <pred:load> {string(load)}"])
    _forget(endpoint, base, ("loaded", "over", "loading"))


def schema_of(found: dict[str, list[str]]) -> str:
    """The schema from the literals it stands in."""
    return "".join(piece[7:] for piece in sorted(found["schema"]))


def _forget(endpoint: Endpoint, base: str, names: Iterable[str]) -> None:
    for name in names:
        endpoint.update(f"DELETE WHERE {{ GRAPH <{base}> {{ <{base}> <pred:{name}> ?o }} }}")


def _insert(endpoint: Endpoint, base: str, lines: Iterable[str]) -> None:
    """Add triples; where the server finds a request too large it is sent in halves."""
    batch = list(lines)
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
