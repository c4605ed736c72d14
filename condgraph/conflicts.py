"""Find conflicts in a graph on any store (`Graph.conflicts`), and declare predicates with one value at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from condgraph.engine.store import QueriedGraph, plan_answer
from condgraph.storage import LocalStorage, Storage

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


class StoredGraph(QueriedGraph, Protocol):
    """A graph with the storage of its declarations."""

    _storage: Storage


def conflicts(
    graph: StoredGraph,
    predicates: Sequence[str],
    *,
    certain: bool,
    by_name: bool,
    propose: bool,
    limit: int | None,
    offset: int,
    timeout: float | None,
) -> Conflicts:
    """Implement `Graph.conflicts`. In process it works on the columns; for a graph on a server, the statements of the
    predicates are fetched.
    """
    if offset < 0 or (limit is not None and limit < 0):
        raise OptionError("limit and offset are numbers from 0")
    if propose and predicates:
        raise OptionError("propose looks for predicates itself", hint="leave out the names, or propose=True")
    storage = graph._storage
    declared = declared_in({"settings": storage.settings})
    with within(graph.timeout if timeout is None else timeout):
        snapshot = storage.current if isinstance(storage, LocalStorage) else None
        proposed = []
        if propose:
            if snapshot is None:
                hint = "graph.snapshot().conflicts(propose=True) pulls the graph"
                raise UnsupportedError(storage.place, ["propose"], hint=hint)
            proposed = [proposal for proposal in proposals(snapshot) if proposal.predicate not in declared]
        names = sorted({*predicates} if predicates else {proposal.predicate for proposal in proposed} if propose else declared)
        if not names and not propose:
            raise OptionError(
                "no predicate is declared as having one value at a time",
                hint="graph.declare(single_valued=['capital']) declares one, conflicts('capital') looks at it, "
                "conflicts(propose=True) looks for some",
            )
        all_predicates = predicates_of(graph)
        missing = [name for name in names if name not in all_predicates]
        if missing and predicates:
            raise UnknownNameError("predicate", missing[0], candidates=nearest(missing[0], all_predicates))
        warnings = tuple(f"no statement has the predicate {name!r}" for name in missing)
        names = [name for name in names if name in all_predicates]
        if snapshot is None and names:
            answer = plan_answer(graph._store_of(None), alg.Objects(alg.Scan(None, tuple(names))))
            snapshot = answer.evidence.trail.run.snapshot

        def each_conflict() -> Iterator[Conflict]:
            for name in names:
                assert snapshot is not None
                prefer = declared.get(name)
                for first, second, sure in pairs(snapshot, of_predicate(snapshot, name), by_name=by_name):
                    if sure or not certain:
                        yield conflict(snapshot, first, second, sure, prefer)

        page = list(islice(each_conflict(), offset, None if limit is None else offset + limit + 1))
        has_more = limit is not None and len(page) > limit
        return Conflicts(tuple(page[:limit]), tuple(names), has_more, tuple(proposed), warnings)


def predicates_of(graph: StoredGraph) -> frozenset[str]:
    """Return the names of all predicates of statements."""
    schema = graph._store_of(None).naming_schema
    return frozenset((*schema.relations, *schema.attributes))


def declare(graph: StoredGraph, value: Any, prefer: Any, *, remove: bool, wait: float) -> dict[str, Preference | None]:
    """Implement `Graph.declare`."""
    storage = graph._storage
    storage.check_writable(wait)
    declarations = single_valued(value, Preference.of(prefer))
    before = declared_in({"settings": storage.settings})
    if remove:
        for name in declarations:
            if name not in before:
                raise UnknownNameError("declared predicate", name, candidates=nearest(name, before))
        after = {name: preferred for name, preferred in before.items() if name not in declarations}
    else:
        if not isinstance(storage, LocalStorage) and any(declarations.values()):
            raise UnsupportedError(
                storage.place, ["preferences that are declared"], hint="name the preference in a query: query(..., prefer='latest')"
            )
        if not isinstance(storage, LocalStorage) or storage.snapshot is not None:
            all_predicates = predicates_of(graph)
            for name in declarations:
                if name not in all_predicates:
                    raise UnknownNameError("predicate", name, candidates=nearest(name, all_predicates))
        for preferred in declarations.values():
            check_sources(storage, preferred)
        after = before | declarations
    storage.configure(
        wait, single_valued={name: None if preferred is None else preferred.stored for name, preferred in after.items()}
    )
    return after


def check_sources(storage: Storage, prefer: Preference | None) -> None:
    """Raise `OptionError` if a preference contains a source that the graph does not have."""
    names = [source.name for source in storage.sources()] if prefer is not None and prefer.sources else []
    for name in prefer.sources if names and prefer is not None else ():
        if name not in names:
            raise OptionError(f"there is no source {name!r} to prefer", candidates=nearest(name, names))


def preferring(storage: Storage, prefer: Any) -> Snapshot:
    """Return the snapshot of a graph with other preferences.

    `prefer` is one for all declared predicates, or a mapping with one for each predicate. A graph on a server is
    pulled once for each of its states.
    """
    declared = declared_in({"settings": storage.settings})
    wanted: dict[str, Preference | None] = {}
    if isinstance(prefer, Mapping):
        wanted = single_valued(prefer)
    elif (preference := Preference.of(prefer)) is not None:
        wanted = dict.fromkeys(declared, preference)
    if not wanted or not all(wanted.values()):
        raise OptionError(
            "prefer needs predicates that are declared as having one value at a time",
            hint="graph.declare(single_valued=['capital']), or name them: prefer={'capital': 'latest'}",
        )
    snapshot = storage.copied()
    for name, preference in wanted.items():
        if name not in declared and snapshot.predicate(name) < 0:
            all_predicates = [*snapshot.schema.relations, *snapshot.schema.attributes]
            raise UnknownNameError("predicate", name, candidates=nearest(name, all_predicates))
        check_sources(storage, preference)
    after = {
        name: None if stored_preference is None else stored_preference.stored
        for name, stored_preference in (declared | wanted).items()
    }
    views: dict[str, Snapshot] = snapshot.schema.kept.setdefault("preferring", {})
    key = repr(after)
    if key not in views:
        if len(views) >= 4:
            views.clear()
        views[key] = snapshot.with_settings({**storage.settings, "single_valued": after})
    return views[key]
