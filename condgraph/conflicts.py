"""Conflicts of a graph, wherever it is stored (`Graph.conflicts`), and what is declared about its predicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from condgraph.engine import algebra as alg
from condgraph.engine.bounds import within
from condgraph.engine.conflicts import (
    Conflict,
    Conflicts,
    Preference,
    conflict,
    declared_in,
    of_predicate,
    pairs,
    proposals,
    single_valued,
)
from condgraph.engine.errors import OptionError, UnknownNameError, UnsupportedError, nearest
from condgraph.engine.store import Store, plan_answer
from condgraph.storage import LocalStorage, Storage

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


class Asked(Protocol):
    """What is needed of a graph."""

    timeout: float | None
    _storage: Storage

    def _store_of(self, engine: str | None) -> Store: ...


def conflicts(
    graph: Asked,
    predicates: Sequence[str],
    *,
    certain: bool,
    by_name: bool,
    propose: bool,
    limit: int | None,
    offset: int,
    timeout: float | None,
) -> Conflicts:
    """`Graph.conflicts`: in process on the columns, on a server on the statements of the predicates, which are fetched."""
    if offset < 0 or (limit is not None and limit < 0):
        raise OptionError("limit and offset are numbers from 0")
    if propose and predicates:
        raise OptionError("propose looks for predicates itself", hint="leave out the names, or propose=True")
    storage = graph._storage
    declared = declared_in({"settings": storage.settings})
    with within(graph.timeout if timeout is None else timeout):
        snapshot = storage.current if isinstance(storage, LocalStorage) else None
        found = []
        if propose:
            if snapshot is None:
                hint = "graph.snapshot().conflicts(propose=True) pulls the graph"
                raise UnsupportedError(storage.place, ["propose"], hint=hint)
            found = [one for one in proposals(snapshot) if one.predicate not in declared]
        names = sorted({*predicates} if predicates else {one.predicate for one in found} if propose else declared)
        if not names and not propose:
            raise OptionError(
                "no predicate is declared as having one value at a time",
                hint="graph.declare(single_valued=['capital']) declares one, conflicts('capital') looks at it, "
                "conflicts(propose=True) looks for some",
            )
        known = predicates_of(graph)
        missing = [name for name in names if name not in known]
        if missing and predicates:
            raise UnknownNameError("predicate", missing[0], candidates=nearest(missing[0], known))
        warnings = tuple(f"no statement has the predicate {name!r}" for name in missing)
        names = [name for name in names if name in known]
        if snapshot is None and names:
            answer = plan_answer(graph._store_of(None), alg.Objects(alg.Scan(None, tuple(names))))
            snapshot = answer.evidence.trail.run.snapshot

        def listed() -> Iterator[Conflict]:
            for name in names:
                assert snapshot is not None
                prefer = declared.get(name)
                for first, second, sure in pairs(snapshot, of_predicate(snapshot, name), by_name=by_name):
                    if sure or not certain:
                        yield conflict(snapshot, first, second, sure, prefer)

        page = list(islice(listed(), offset, None if limit is None else offset + limit + 1))
        more = limit is not None and len(page) > limit
        return Conflicts(tuple(page[:limit]), tuple(names), more, tuple(found), warnings)


def predicates_of(graph: Asked) -> frozenset[str]:
    """The names of all predicates of statements."""
    store: Any = graph._store_of(None)
    schema = store.snapshot.schema if isinstance(graph._storage, LocalStorage) else store.naming_schema
    return frozenset((*schema.relations, *schema.attributes))


def declare(graph: Asked, value: Any, prefer: Any, *, remove: bool, wait: float) -> dict[str, Preference | None]:
    """`Graph.declare`."""
    storage = graph._storage
    storage.check_writable()
    fresh = single_valued(value, Preference.of(prefer))
    before = declared_in({"settings": storage.settings})
    if remove:
        for name in fresh:
            if name not in before:
                raise UnknownNameError("declared predicate", name, candidates=nearest(name, before))
        after = {name: one for name, one in before.items() if name not in fresh}
    else:
        if not isinstance(storage, LocalStorage) and any(fresh.values()):
            raise _unsupported(storage)
        if not isinstance(storage, LocalStorage) or storage.snapshot is not None:
            known = predicates_of(graph)
            for name in fresh:
                if name not in known:
                    raise UnknownNameError("predicate", name, candidates=nearest(name, known))
        for one in fresh.values():
            check_sources(storage, one)
        after = before | fresh
    storage.configure(wait, single_valued={name: None if one is None else one.stored for name, one in after.items()})
    return after


def check_sources(storage: Storage, prefer: Preference | None) -> None:
    """Raise `OptionError` for a preference of a source that the graph does not have."""
    names = [source.name for source in storage.sources()] if prefer is not None and prefer.sources else []
    for name in prefer.sources if names and prefer is not None else ():
        if name not in names:
            raise OptionError(f"there is no source {name!r} to prefer", candidates=nearest(name, names))


def preferring(storage: Storage, prefer: Any) -> Snapshot:
    """The snapshot of a graph with another preference for all predicates that are declared."""
    wanted = Preference.of(prefer)
    if not isinstance(storage, LocalStorage):
        raise _unsupported(storage)
    snapshot = storage.current
    declared = declared_in(snapshot.about)
    if not declared or wanted is None:
        raise OptionError(
            "prefer needs predicates that are declared as having one value at a time",
            hint="graph.declare(single_valued=['capital'])",
        )
    check_sources(storage, wanted)
    known: dict[Preference, Snapshot] = snapshot.schema.kept.setdefault("preferring", {})
    if wanted not in known:
        if len(known) >= 4:
            known.clear()
        settings = {**storage.settings, "single_valued": dict.fromkeys(declared, wanted.stored)}
        known[wanted] = snapshot.with_settings(settings)
    return known[wanted]


def _unsupported(storage: Storage) -> UnsupportedError:
    return UnsupportedError(
        storage.place, ["prefer"], hint="ask the graph in process: graph.snapshot(), then declare(...) and query(..., prefer=...)"
    )
