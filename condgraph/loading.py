"""Load and unload sources: what to read, and what happens to sources that the graph already has.

A `Change` lists the sources to empty or to add to. A storage applies it as a whole (`storage.Storage.build`), so that
readers see the graph either before or after it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from condgraph.engine.addresses import shown
from condgraph.engine.changes import Change, named_here
from condgraph.engine.errors import OptionError, SourceError, UnsupportedError, numbered, requiring
from condgraph.engine.facts import Item, Source
from condgraph.engine.origins import ADDITION, API
from condgraph.loaders.base import OnError, Progress, Reading
from condgraph.reports import LoadReport, UnloadReport, report
from condgraph.spilling import SpillingBuilder, memory_bound
from condgraph.storage import LocalStorage, Storage

if TYPE_CHECKING:
    from condgraph.ask.demos import Demo
    from condgraph.engine.snapshot.build import Builder
    from condgraph.loaders.recognise import Recognised
    from condgraph.loaders.validity import StatementTimes

#: Formats that are read in parts, so that a load can run in bounded memory.
IN_PARTS: Final = frozenset(
    (
        "csv",
        "tsv",
        "jsonl-table",
        "parquet",
        "folder",
        "triples",
        "quintuples",
        "wikidata",
        "rdf",
        "condgraph",
        "condgraph-parquet",
        "neo4j-import",
    )
)
#: Formats whose sources have RDF terms (`Source.terms`).
_RDF: Final = ("rdf", "wikidata")


def load(
    storage: Storage,
    source: Any,
    options: dict[str, Any],
    demos: Callable[[], Iterable[Demo]],
    *,
    format: str | None,
    name: str | None,
    on_error: OnError,
    progress: Progress | None,
    wait: float,
    replace: bool,
    append: bool,
    memory: int | str | None = None,
) -> LoadReport:
    """Implement `Graph.load`. `options` are those of the formats, `demos` returns the demonstrations of the graph."""
    from condgraph.loaders.files import is_elsewhere
    from condgraph.loaders.recognise import known_by, recognise

    storage.check_writable(wait)
    bound = None if memory is None else memory_bound(memory)
    if is_elsewhere(source):
        from condgraph.loaders.fetch import fetched, told_by_address

        with fetched(source, progress, pages=format is not None) as files:
            loaded = load(
                storage, files, options, demos, format=format, name=name, on_error=on_error, progress=progress, wait=wait,
                replace=replace, append=append, memory=memory,
            )  # fmt: skip
            return told_by_address(loaded, files)
    if on_error not in ("raise", "skip"):
        raise OptionError(f"on_error is 'raise' or 'skip', not {on_error!r}")
    if name == "":
        raise OptionError("the name of a source is empty")
    options = dict(options)
    declared = _declared(options.pop("single_valued", None))
    recognised = recognise(source, format, name=name, encoding=options.get("encoding"), options=options)
    times = options.get("times")
    for item in recognised:
        # Every format accepts `times`: for tables they are times of rows, for others times of statements.
        of_format = options if "times" in item.format.options else {key: options[key] for key in options if key != "times"}
        item.format.check_options(of_format)
        if times is not None and "times" not in item.format.options:
            _statement_times(times)
    if bound is not None:
        check_in_parts(storage, recognised, replace=replace)
    known = storage.sources(wait)
    to_load = known_by(recognised, options, known, named=name is not None, changes=replace or append)
    begin = time.perf_counter()
    readings: list[Reading] = []
    ready, changed = planned(to_load, (), named=name is not None, replace=False, append=False)

    def plan(there: tuple[Source, ...]) -> Change:
        nonlocal ready, changed, known
        known = there
        ready, changed = planned(to_load, there, named=name is not None, replace=replace, append=append)
        return changed

    def read(builder: Builder) -> None:
        readings.clear()
        statement_times = None
        for item in ready:
            scope = scope_of(item.source, changed, known)
            reading = Reading(knowing_terms(item.source, changed, known), on_error, progress, own_rdf=_own_rdf, scope=scope)
            reading.own_folders = _OWN_FOLDERS
            reading.known, reading.gone = partial(storage.known, bool(changed)), changed.without
            reading.spill = builder.files if isinstance(builder, SpillingBuilder) else None
            readings.append(reading)
            builder.added_to(changed.more)
            builder.begin(item.source)
            items = item.format.read(item.data, reading, options)
            if times is not None and "times" not in item.format.options:
                statement_times = statement_times or _statement_times(times)
                items = statement_times.timed(items, reading)
            elif isinstance(times, str):
                from condgraph.engine.row_times import RowTimes
                from condgraph.loaders.validity import with_times

                items = with_times(items, {"": RowTimes.of(times)}, reading)
            builder.add(items)
            builder.single_valued |= _declared(reading.single_valued or None)
        builder.single_valued |= declared
        if statement_times is not None:
            statement_times.check()

    if bound is not None:
        assert isinstance(storage, LocalStorage)
        built = storage.build_spilling(read, wait, plan, bound)
    elif replace or append:
        check_kind(replace, append)
        built = storage.change(plan, read, wait, [item.source.name for item in to_load], progress)
        built = built._replace(warnings=[*built.warnings, *orphaned(storage, demos)])
    else:
        built = storage.build(read, wait, progress=progress)
    names, formats = tuple(item.source.name for item in to_load), tuple(item.format.name for item in to_load)
    return report(names, formats, built, readings, begin)


def check_in_parts(storage: Storage, sources: Iterable[Recognised], *, replace: bool) -> None:
    """Raise `UnsupportedError` for a load that cannot run in bounded memory."""
    if not isinstance(storage, LocalStorage):
        raise UnsupportedError(shown(storage.place), ["memory="], hint="load into a folder, and push that graph")
    unbounded = sorted({item.format.name for item in sources} - IN_PARTS)
    if unbounded:
        raise UnsupportedError(
            f"the {unbounded[0]} loader",
            ["memory=, since it reads sources whole"],
            hint=f"in parts are read: {', '.join(sorted(IN_PARTS))}",
        )  # fmt: skip
    if replace:
        raise UnsupportedError("a load in bounded memory", ["replace="], hint="unload the source, and load it again")


def _statement_times(value: Any) -> StatementTimes:
    from condgraph.loaders.validity import StatementTimes

    return StatementTimes.of(value)


def _declared(value: Any) -> dict[str, Any]:
    """Return predicates with one value at a time in the form of the settings. Raises `OptionError`."""
    if value is None:
        return {}
    from condgraph.engine.conflicts import single_valued

    return {name: None if prefer is None else prefer.stored for name, prefer in single_valued(value).items()}


def add(storage: Storage, items: Iterable[Item], source: str, wait: float, replace: bool) -> LoadReport:
    """Implement `Graph.add` for several items."""
    storage.check_writable(wait)
    if not source:
        raise OptionError("the name of a source is empty")
    begin = time.perf_counter()

    def read(builder: Builder) -> None:
        builder.begin(Source(source, "", API))
        builder.add(items)

    def plan(known: tuple[Source, ...]) -> Change:
        return Change(tuple(known_source.name for known_source in known if known_source.name == source))

    built = storage.change(plan, read, wait, [source]) if replace else storage.build(read, wait)
    return report((source,), (API,), built, [], begin)


def unload(storage: Storage, sources: tuple[str, ...], demos: Callable[[], Iterable[Demo]], wait: float) -> UnloadReport:
    """Implement `Graph.unload`."""
    storage.check_writable(wait)
    if not sources:
        raise OptionError("no source is named", hint="graph.status().sources are those that the graph has")
    begin = time.perf_counter()
    removed_sources: list[str] = []

    def plan(known: tuple[Source, ...]) -> Change:
        removed_sources[:] = dict.fromkeys(member for name in sources for member in named_here(name, known))
        return Change(tuple(removed_sources))

    built = storage.change(plan, None, wait, sources)
    removed = {name: count - built.after.get(name, 0) for name, count in built.before.items()}
    return UnloadReport(tuple(removed_sources), removed, (*built.warnings, *orphaned(storage, demos)), time.perf_counter() - begin)


def orphaned(storage: Storage, demos: Callable[[], Iterable[Demo]]) -> list[str]:
    """Return a warning if demonstrations have programs with names that a graph in process no longer has."""
    snapshot = storage.snapshot
    demonstrations = list(demos()) if snapshot is not None else []
    if snapshot is None or not demonstrations:
        return []
    sources = {snapshot.source_of(number).name for number in range(len(snapshot.schema.sources))}
    predicates = {snapshot.predicate_name(number) for number in range(snapshot.predicate_count)}
    count = sum(
        (demo.source is not None and demo.source not in sources)
        or any(name not in predicates and not len(snapshot.named(name)) for name in demo.names)
        for demo in demonstrations
    )
    return [f"{numbered(count, 'demonstration uses', 'demonstrations use')} names that are no longer in the graph"] if count else []


def _own_rdf(triples: Iterable[Any], base: str) -> Iterator[Item]:
    from condgraph.sparql.load.pull import read_file

    return read_file(triples, base)


def _own_parquet(folder: Path, reading: Reading) -> Iterator[Item]:
    with requiring("sqlglot", "sql"):
        from condgraph.sql.parquet import read_parquet
    return read_parquet(folder, reading)


def _own_import(folder: Path, reading: Reading) -> Iterator[Item]:
    from condgraph.cypher.load.bulk import read_import

    return read_import(folder, reading)


_OWN_FOLDERS: Final = {"condgraph-parquet": _own_parquet, "neo4j-import": _own_import}


# -- effects of a load on existing sources -----------------------------------------------------------


def check_kind(replace: bool, append: bool) -> None:
    """Raise `OptionError` if a load is both to replace a source and to add to it."""
    if replace and append:
        raise OptionError("a source is replaced, or added to: not both")


def planned(
    found: list[Recognised], known: tuple[Source, ...], *, named: bool, replace: bool, append: bool
) -> tuple[list[Recognised], Change]:
    """Return the items to load, and the change they make to existing sources.

    Raises `OptionError` for an item that cannot replace or extend a source.
    """
    check_kind(replace, append)
    if not (replace or append):
        return found, Change()
    verb = "replaces" if replace else "adds to"
    by_name = {source.name: source for source in known}
    emptied: list[str] = []
    extended: list[str] = []
    warnings: list[str] = []
    ready: list[Recognised] = []
    for item in found:
        name = item.source.name
        if item.format.name == "condgraph":
            raise OptionError(f"an export holds sources of its own, and {verb} none", hint="unload those sources, and load it")
        if not item.source.location and not named:
            raise OptionError(f"data that is not a file has no name by which it {verb} a source", hint="name= names the source")
        if replace:
            try:
                emptied += named_here(name, known)
            except SourceError as error:
                nearest_names = f" (near: {', '.join(error.candidates)})" if error.candidates else ""
                warnings.append(f"there was no source {name!r} to replace{nearest_names}")
            ready.append(item)
            continue
        if item.format.name == "folder":
            raise OptionError("a folder of tables adds to no source", hint="replace=True takes it in its state of today")
        before = by_name.get(name)
        if before is None:
            named_here(name, known)
            raise OptionError(f"{name!r} is a folder of tables, to which nothing is added", hint="name= names one of its tables")
        if item.source.content and item.source.content in before.content.split(ADDITION):
            warnings.append(f"source {name!r} holds this already: nothing is added to it")
            continue
        if item.format.name != before.format and (before.terms or item.format.name in _RDF):
            raise OptionError(
                f"{name!r} is of the format {before.format!r}, to which none of the format {item.format.name!r} is added: "
                "what RDF calls its terms holds for all of a source",
                hint="name= loads it as a source of its own",
            )
        if len(named_here(name, known)) > 1:
            raise OptionError(
                f"the lists of records in {name!r} are tables of their own, to which nothing is added",
                hint="replace=True takes the file in its state of today; name= loads it as another source",
            )
        extended.append(name)
        ready.append(_added(item, before))
    return ready, Change(tuple(dict.fromkeys(emptied)), tuple(extended), tuple(warnings))


def _added(one: Recognised, before: Source) -> Recognised:
    """Return an item that is added to the source `before`, with the source's record after the addition."""
    content = f"{before.content}{ADDITION}{one.source.content}" if before.content and one.source.content else ""
    return dataclasses.replace(one, source=dataclasses.replace(before, content=content))


def knowing_terms(source: Source, change: Change, known: Iterable[Source]) -> Source:
    """Return a source with its RDF terms if it is read again as a part of a source that was added to. Its own record
    does not have them.
    """
    for before in known:
        added = before.content.split(ADDITION)
        if before.name == source.name and source.name not in change.without and len(added) > 1 and source.content in added:
            return dataclasses.replace(source, terms=before.terms)
    return source


def scope_of(source: Source, change: Change, known: Iterable[Source]) -> str:
    """Return the prefix of ids that are unique only within a source.

    It is the source's name, and for an addition to a source also a part of its content's fingerprint, so that rows
    and blank nodes of both parts differ.
    """
    if source.name in change.without:
        return source.name
    part = source.content.rpartition(ADDITION)[2]
    added_contents = {
        fingerprint for before in known if before.name == source.name for fingerprint in before.content.split(ADDITION)[1:]
    }
    if source.name not in change.more and part not in added_contents:
        return source.name
    # By content, because additions may be loaded again in another order.
    part = part or uuid4().hex
    return f"{source.name}+{part[:8]}{part[-8:]}"
