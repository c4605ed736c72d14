"""Changes of the sources of a graph: what a load replaces or adds to, and `unload`.

A `Change` says which sources; every store makes it as a whole (`Graph._build`), so that readers see
the graph before it or after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from condgraph.engine.changes import Change, named_here
from condgraph.engine.errors import OptionError, SourceError, numbered
from condgraph.engine.facts import Source
from condgraph.engine.origins import ALSO

if TYPE_CHECKING:
    from condgraph.engine.snapshot.build import Builder
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.loaders.recognise import Recognised
    from condgraph.reports import UnloadReport


#: Formats that say what RDF calls the terms of a source.
_RDF: Final = ("rdf", "wikidata")


def check_kind(replace: bool, append: bool) -> None:
    """Raise `OptionError` where a load is to do both."""
    if replace and append:
        raise OptionError("a source is replaced, or added to: not both")


def planned(
    found: list[Recognised], known: tuple[Source, ...], *, named: bool, replace: bool, append: bool
) -> tuple[list[Recognised], Change]:
    """What is to be loaded, and what that does to the sources that are there."""
    check_kind(replace, append)
    if not (replace or append):
        return found, Change()
    verb = "replaces" if replace else "adds to"
    by_name = {one.name: one for one in known}
    without: list[str] = []
    more: list[str] = []
    warnings: list[str] = []
    ready: list[Recognised] = []
    for one in found:
        name = one.source.name
        if one.format.name == "condgraph":
            raise OptionError(f"an export holds sources of its own, and {verb} none", hint="unload those sources, and load it")
        if not one.source.location and not named:
            raise OptionError(f"data that is no file has no name, by which it {verb} a source", hint="name= says the source")
        if replace:
            try:
                without += named_here(name, known)
            except SourceError as error:
                near = f" (near: {', '.join(error.candidates)})" if error.candidates else ""
                warnings.append(f"there was no source {name!r} to replace{near}")
            ready.append(one)
            continue
        if one.format.name == "folder":
            raise OptionError("a folder of tables adds to no source", hint="replace=True takes it in its state of today")
        before = by_name.get(name)
        if before is None:
            named_here(name, known)
            raise OptionError(f"{name!r} is a folder of tables, to which nothing is added", hint="name= says one of its tables")
        if one.source.content and one.source.content in before.content.split(ALSO):
            warnings.append(f"source {name!r} holds this already: nothing is added to it")
            continue
        if one.format.name != before.format and (before.terms or one.format.name in _RDF):
            raise OptionError(
                f"{name!r} is of the format {before.format!r}, to which none of the format {one.format.name!r} is added: "
                "what RDF calls its terms is said of all of a source",
                hint="name= loads it beside that, as a source of its own name",
            )
        if len(named_here(name, known)) > 1:
            raise OptionError(
                f"the lists of records in {name!r} are tables of their own, to which nothing is added",
                hint="replace=True takes the file in its state of today; name= loads it as another source",
            )
        more.append(name)
        ready.append(_added(one, before))
    return ready, Change(tuple(dict.fromkeys(without)), tuple(more), tuple(warnings))


def _added(one: Recognised, before: Source) -> Recognised:
    """What is added to a source, under what the source is known by then."""
    content = f"{before.content}{ALSO}{one.source.content}" if before.content and one.source.content else ""
    return replace(one, source=replace(before, content=content))


def knowing_terms(source: Source, change: Change, known: Iterable[Source]) -> Source:
    """A source with what RDF calls its terms, where it is one of those that were added to each
    other: it is read again as it was read then.
    """
    for before in known:
        added = before.content.split(ALSO)
        if before.name == source.name and source.name not in change.without and len(added) > 1 and source.content in added:
            return replace(source, terms=before.terms)
    return source


def scope_of(source: Source, change: Change, known: Iterable[Source]) -> str:
    """What ids that only hold within a source begin with: its name, or where it is added to one, or
    was, that and something of its content, so that its rows and blank nodes are not the other's.
    """
    if source.name in change.without:
        return source.name
    part = source.content.rpartition(ALSO)[2]
    added = {one for before in known if before.name == source.name for one in before.content.split(ALSO)[1:]}
    if source.name not in change.more and part not in added:
        return source.name
    # The content tells additions apart, in whatever order they come.
    part = part or uuid4().hex
    return f"{source.name}+{part[:8]}{part[-8:]}"


def emptied(builder: Builder) -> list[str]:
    """What to say of sources that were replaced by nothing."""
    return nothing_of(builder.sources[number].name for number in sorted(builder.emptied))


def nothing_of(names: Iterable[str]) -> list[str]:
    """What to say of sources that are not there any more."""
    return [f"there is nothing in what replaces source {name!r}: the graph has no such source now" for name in names]


def unclear(snapshot: Snapshot | None, change: Change) -> list[str]:
    """What to say where an earlier version did not keep who declared what."""
    if snapshot is None or not change.without:
        return []
    from condgraph.engine.snapshot.declared import UNKNOWN, declared

    count = int((declared(snapshot).src == UNKNOWN).sum())
    if not count:
        return []
    what = numbered(count, "entity", "entities")
    return [f"nobody knows which source declared {what}, as an earlier version loaded them: they stay, with their names"]


def orphaned(graph: Any) -> list[str]:
    """What to say of demonstrations whose programs name what a graph in process has no more."""
    snapshot: Snapshot | None = graph._snapshot
    demos = list(graph.demos) if snapshot is not None else []
    if snapshot is None or not demos:
        return []
    sources = {snapshot.source_of(number).name for number in range(len(snapshot.schema.sources))}
    predicates = {snapshot.predicate_name(number) for number in range(snapshot.predicate_count)}
    count = sum(
        (one.source is not None and one.source not in sources)
        or any(name not in predicates and not len(snapshot.named(name)) for name in one.names)
        for one in demos
    )
    return [f"{numbered(count, 'demonstration names', 'demonstrations name')} what the graph has no more"] if count else []


class Changes:
    """`unload`, for a graph on any store."""

    def unload(self, *sources: str, wait: float = 0.0) -> UnloadReport:
        """Take sources away, all of them or none: what only they say goes, what another source says
        as well stays, and so do entities that others mention.

        The name of a folder of tables stands for its tables. Raises `SourceError`, with the nearest
        names, for a source that is not there. `wait` is how many seconds to wait for another
        process that is writing.
        """
        from condgraph.reports import UnloadReport

        if not sources:
            raise OptionError("no source is named", hint="graph.status().sources are those that the graph has")
        begin = time.perf_counter()
        gone: list[str] = []

        def change(known: tuple[Source, ...]) -> Change:
            gone[:] = dict.fromkeys(one for name in sources for one in named_here(name, known))
            return Change(tuple(gone))

        before, after, _, warnings = self._change(change, None, wait, sources)
        removed = {name: count - after.get(name, 0) for name, count in before.items()}
        return UnloadReport(tuple(gone), removed, (*warnings, *orphaned(self)), time.perf_counter() - begin)

    _change: Callable[..., tuple[dict[str, int], dict[str, int], int, list[str]]]
