"""What a source is: every format by name, and which loader a file, folder, pattern or Python object
goes to.

Content decides, not the extension: each format scores the first 64 KiB of a file (`Format.sniff`)
and the best one reads it. Where two score the same, the source is not read and the error asks for
`format=`. A folder of tables with keys between them is one source, any other folder is its files,
each by its own content; files about the data (README, LICENSE, archives) are left out, with a
warning.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args

from condgraph.engine.errors import FormatError, LoadError, nearest
from condgraph.engine.facts import Item, Source
from condgraph.loaders import export, kqapro
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.database import server, sqlite
from condgraph.loaders.documents import is_document
from condgraph.loaders.fetch import Fetched, refuse, shown_place
from condgraph.loaders.files import heads_in, read_head, regular, stem_of, suffix_of
from condgraph.loaders.folder import load as folder
from condgraph.loaders.folder.described import described, is_description
from condgraph.loaders.folder.load import TableFiles
from condgraph.loaders.property_graph import load as property_graph
from condgraph.loaders.property_graph.files import GraphFiles
from condgraph.loaders.rdf import load as rdf
from condgraph.loaders.spreadsheet import load as spreadsheet
from condgraph.loaders.statements import quintuples, triples, wikidata
from condgraph.loaders.table.arrow import DATAFRAME, PARQUET
from condgraph.loaders.table.records import JSON, JSONL
from condgraph.loaders.table.text import CSV, TSV
from condgraph.loaders.unrecognised import why_not

#: Every format, by the name that `format=` takes.
FORMATS: Final[dict[str, Format]] = {
    one.name: one
    for one in (
        CSV,
        TSV,
        JSONL,
        JSON,
        PARQUET,
        DATAFRAME,
        kqapro.FORMAT,
        triples.FORMAT,
        quintuples.FORMAT,
        wikidata.FORMAT,
        rdf.FORMAT,
        folder.FORMAT,
        property_graph.FORMAT,
        spreadsheet.FORMAT,
        sqlite.FORMAT,
        *server.FORMATS,
        export.FORMAT,
    )
}


@dataclass(frozen=True, slots=True)
class Recognised:
    """A source and the loader it goes to: `format.read(data, Reading(source), options)`."""

    format: Format
    source: Source
    data: Any


#: Options that only several tables with keys between them have a use for.
_OF_FOLDERS: Final = frozenset(folder.FORMAT.options) - frozenset(CSV.options) | {"join"}
#: What somebody may have meant who loads the items of a graph, or of evidence, also none of them.
_ADD: Final = "graph.add(items) adds statements and entities, such as answer.evidence.items()"


def recognise(
    source: Any, format: str | None = None, *, name: str | None = None, encoding: object = None, options: Options | None = None
) -> list[Recognised]:
    """What to load, and how: one entry a file, folder of tables, or object.

    `source` is a path, a glob pattern, a Python object that a format claims, or a list of these;
    `format` overrules what the content says; `name` is what the source is called (`name/stem` for
    several); `encoding` is that of texts; with `options` about keys between tables, a folder of
    tables is one source whatever their columns are called. Raises `FormatError`, naming what was looked at and the
    formats there are, and `LoadError` for a path that does not exist.
    """
    wanted = None if format is None else _named(format)
    found: list[tuple[Format, Any]] = []
    left_out: list[Path] = []
    keyed = any(option in _OF_FOLDERS and value is not None and value is not False for option, value in (options or {}).items())
    with heads_in(encoding):
        for one in _listed(source, wanted):
            if keyed and wanted is None and isinstance(one, Path) and one.is_dir() and folder.files_of(one):
                found.append((folder.FORMAT, one))
            elif isinstance(one, Path):
                found += _paths(one, wanted, left_out)
            else:
                found.append((wanted or _claimed(one), one))
    if not found:
        raise FormatError("there is nothing to load", file=str(source) if isinstance(source, (str, os.PathLike)) else None)
    _no_repeats(found)
    found = _together(found)
    places = {str(one.path): one.location for one in _each(source) if isinstance(one, Fetched)}
    if wanted is None:
        with heads_in(encoding):
            found = _referring(found, options or {}, places)
    names = sources_of([data for _, data in found])
    if name is not None:
        names = [name] if len(names) == 1 else [f"{name}/{one}" for one in names]
    recognised = [
        Recognised(form, Source(called, location_of(data, places), form.name), data)
        for (form, data), called in zip(found, names, strict=True)
    ]
    if places:
        recognised = [replace(one, format=_located(one.format, places)) for one in recognised]
    if left_out:
        first = recognised[0]
        listed = ", ".join(path.name for path in left_out[:10]) + (", ..." if len(left_out) > 10 else "")
        said = f"files that are no data are left out: {listed}"
        recognised[0] = replace(first, format=_with_warning(first.format, said, file=str(left_out[0].parent)))
    return recognised


def location_of(data: Any, places: Mapping[str, str] | None = None) -> str:
    """Where a source is: a path, or an address without its password, which is in `places` for a
    file that was fetched; "" for an object.
    """
    if isinstance(data, server.DatabaseUrl):
        return data.location
    if isinstance(data, GraphFiles | TableFiles):
        return shown_place(str(data.paths[0]), places or {}).rpartition("/")[0] or "."
    return shown_place(str(data), places or {}) if isinstance(data, Path) else ""


def sources_of(sources: Sequence[Any]) -> list[str]:
    """What sources are called: a file's name without folder and extension, with as many folders
    before it as tell equal ones apart.

    Files that only differ in their extension keep it. Objects are called like their type.

    >>> sources_of([Path("csv/204-csv/57.csv"), Path("csv/204-csv/58.csv"), Path("csv/203-csv/57.csv")])
    ['204-csv/57', '58', '203-csv/57']
    """
    parts: list[list[str]] = []
    for one in sources:
        if isinstance(one, (str, os.PathLike)):
            path = Path(one)
            stem = stem_of(path) if path.name else stem_of(path.resolve())
            parts.append([stem, *reversed([part for part in path.parts[:-1] if part not in (path.anchor, ".")])])
        elif isinstance(one, (server.DatabaseUrl, GraphFiles, TableFiles)):
            parts.append([one.called])
        else:
            parts.append([type(one).__name__.casefold()])
    depths = [1] * len(parts)
    while True:
        names = ["/".join(reversed(part[:depth])) for part, depth in zip(parts, depths, strict=True)]
        groups: dict[str, list[int]] = {}
        for at, called in enumerate(names):
            groups.setdefault(called, []).append(at)
        clashing = [group for group in groups.values() if len(group) > 1]
        deeper = [at for group in clashing for at in group if depths[at] < len(parts[at])]
        if not clashing:
            return names
        if not deeper:
            break
        for at in deeper:
            depths[at] += 1
    for group in clashing:
        for count, at in enumerate(group, 1):
            one = sources[at]
            called = Path(one).name if isinstance(one, (str, os.PathLike)) else f"{parts[at][0]} {count}"
            parts[at], depths[at] = [called], 1
    names = ["/".join(reversed(part[:depth])) for part, depth in zip(parts, depths, strict=True)]
    # Whatever still clashes is numbered, so that names are different in any case.
    used: set[str] = set()
    for at, called in enumerate(names):
        fresh, count = called, 1
        while fresh in used:
            count += 1
            fresh = f"{called} ({count})"
        used.add(fresh)
        names[at] = fresh
    return names


def _named(format: str) -> Format:
    found = FORMATS.get(str(format))
    if found is None:
        raise FormatError(
            f"there is no format {format!r}",
            candidates=nearest(str(format), FORMATS),
            hint="formats: " + ", ".join(sorted(FORMATS)),
        )
    return found


def _listed(source: Any, wanted: Format | None) -> Iterator[Any]:
    """The sources of a list, patterns opened, paths as `Path`."""
    if isinstance(source, (str, os.PathLike)):
        yield from _opened(source)
    elif isinstance(source, (list, tuple, set, frozenset)) and not _is_claimed(source, wanted):
        if not source:
            raise FormatError("the list of sources is empty", hint=_ADD)
        if isinstance(source, (set, frozenset)):
            source = sorted(source, key=str)
        for one in source:
            yield from _listed(one, wanted)
    else:
        yield source


def _each(source: Any) -> Iterable[Any]:
    return source if isinstance(source, list) else (source,)


def _is_claimed(source: Any, wanted: Format | None) -> bool:
    return any(form.claims(source) for form in ([wanted] if wanted is not None else FORMATS.values()))


def _opened(source: str | os.PathLike[str]) -> Iterator[Any]:
    """A path, the files that a pattern stands for, or what an address is of."""
    text = os.fspath(source)
    if server.is_url(text):
        yield server.DatabaseUrl(text)
        return
    refuse(text)
    path = Path(text)
    try:
        there = path.exists()
    except (OSError, ValueError) as error:
        raise LoadError(f"this cannot be a path ({error})", file=repr(text)[:200]) from None
    if there:
        yield path
        return
    if glob.has_magic(text):
        found = sorted(glob.glob(text, recursive=True))
        files = [one for one in found if os.path.isfile(one)]
        if not found:
            raise LoadError("no file matches this pattern", file=text)
        yield from map(Path, files or found)
        return
    raise LoadError("there is no such file or folder", file=text, candidates=_neighbours(path))


def _neighbours(path: Path) -> list[str]:
    try:
        names = [one.name for one in path.parent.iterdir()]
    except OSError:
        return []
    return [str(path.parent / one) for one in nearest(path.name, names)]


def _paths(path: Path, wanted: Format | None, left_out: list[Path]) -> Iterator[tuple[Format, Path]]:
    """A file, or what a folder is: itself, or its files."""
    if not regular(path).is_dir():
        yield wanted or _sniffed(path), path
        return
    for whole in (property_graph.FORMAT, folder.FORMAT, PARQUET):
        if wanted is whole is not PARQUET or (wanted in (None, whole) and whole.sniff(path, b"") > 0):
            yield whole, path
            return
    strange: list[Path] = []
    found: list[tuple[Format, Path]] = []
    for one in sorted(path.iterdir()):
        if one.is_dir():
            if not one.name.startswith("."):
                found += _paths(one, wanted, left_out)
        elif is_document(one):
            left_out.append(one)
        elif wanted is not None:
            found.append((wanted, regular(one)))
        else:
            scores = _scores(one)
            if scores:
                found.append((_best(one, scores), one))
            else:
                strange.append(one)
    if strange:
        more = f" and {len(strange) - 5} more" if len(strange) > 5 else ""
        first = strange[0]
        why = why_not(first, read_head(first)) if first.stat().st_size else "the file is empty"
        raise FormatError(
            f"the folder holds files of no known format: {', '.join(one.name for one in strange[:5])}{more} ({first.name}: {why})",
            file=str(path),
            hint=f"a pattern ('{path.name}/*.csv') or a list of paths says which files to load",
        )
    yield from found


def _scores(path: Path) -> list[tuple[int, str]]:
    """Formats that could read a file, the likeliest first."""
    head = read_head(path)
    scores = [(form.sniff(path, head), one) for one, form in FORMATS.items()]
    return sorted((pair for pair in scores if pair[0] > 0), key=lambda pair: (-pair[0], pair[1]))


def _sniffed(path: Path) -> Format:
    scores = _scores(path)
    if scores:
        return _best(path, scores)
    raise FormatError(
        f"the format is not recognised: {why_not(path, read_head(path))}"
        if path.stat().st_size
        else "the file is empty, so its format cannot be recognised",
        file=str(path),
        hint="format= is one of " + ", ".join(sorted(FORMATS)),
    )


def _best(path: Path, scores: list[tuple[int, str]]) -> Format:
    tied = [one for score, one in scores if score == scores[0][0]]
    if len(tied) > 1:
        raise FormatError(
            "this could be " + " or ".join(tied),
            file=str(path),
            candidates=tied,
            hint="format= says which",
        )
    return FORMATS[tied[0]]


def _claimed(source: Any) -> Format:
    claiming = [form for form in FORMATS.values() if form.claims(source)]
    if len(claiming) == 1:
        return claiming[0]
    if claiming:
        raise FormatError(
            "this object could be " + " or ".join(form.name for form in claiming),
            candidates=[form.name for form in claiming],
            hint="format= says which",
        )
    raise FormatError(
        f"no format reads an object of type {type(source).__name__}",
        hint=_ADD
        if isinstance(source, get_args(Item))
        else "a path, a pattern, a dataframe, or a list of these; formats: " + ", ".join(sorted(FORMATS)),
    )


def _together(found: list[tuple[Format, Any]]) -> list[tuple[Format, Any]]:
    """Files of nodes and of relationships that are loaded together as one graph; files of tables beside
    a file that describes them are part of what it is.
    """
    descriptions = [data for form, data in found if form is folder.FORMAT and isinstance(data, Path) and data.is_file()]
    descriptions = [path for path in descriptions if is_description(path, read_head(path))]
    parts = {table.path for data in descriptions if (said := described(data)) is not None for table in said.tables}
    found = [pair for pair in found if not isinstance(pair[1], Path) or pair[1] not in parts]
    files = [data for form, data in found if form is property_graph.FORMAT and isinstance(data, Path) and not data.is_dir()]
    if len(files) < 2:
        return found
    whole = property_graph.FORMAT, GraphFiles(tuple(files))
    return [whole, *((form, data) for form, data in found if data not in files)]


def _referring(found: list[tuple[Format, Any]], options: Options, places: Mapping[str, str]) -> list[tuple[Format, Any]]:
    """Tables whose cells refer to each other are loaded together as one source, as a folder of tables
    is; all of those that are named in `options` about keys between tables.
    """
    files = [data for form, data in found if form in (CSV, TSV, PARQUET) and isinstance(data, Path)]
    files = [path for path in files if suffix_of(path) in (*folder.SUFFIXES, *folder.PARQUET)]
    given = {option: value for option, value in options.items() if value is not None}
    if len(files) < 2 or given.get("join") is False or not given.keys() <= folder.FORMAT.options.keys():
        return found
    joined, questions = (files, []) if _names_tables(given, files) else folder.referring(files, given)
    # Of tables that are loaded together the loader asks itself.
    for path, column, said in reversed(questions):
        at = next(number for number, (_, data) in enumerate(found) if data == path)
        if path not in joined:
            found[at] = _with_warning(found[at][0], said, column or None), path
    if not joined:
        return found
    parent = joined[0].resolve().parent
    called = places[str(joined[0])].rpartition("/")[0].rpartition("/")[2] if str(joined[0]) in places else parent.name
    whole: Any = TableFiles(tuple(joined), called or "tables")
    if not places and len(joined) == len(files) == len(found) and joined == folder.files_of(joined[0].parent):
        whole = joined[0].parent
    at = next(number for number, (_, data) in enumerate(found) if data in joined)
    rest = [pair for pair in found if not (isinstance(pair[1], Path) and pair[1] in joined)]
    return [*rest[:at], (folder.FORMAT, whole), *rest[at:]]


def _names_tables(options: Options, files: Sequence[Path]) -> bool:
    """Whether options are about keys between these tables."""
    stems = [stem_of(path) for path in files]
    joins = [one for option in ("join", "keys") if isinstance(options.get(option), Mapping) for one in options[option]]
    about = any(str(one).startswith(f"{stem}.") for one in joins for stem in stems)
    return about or any(option in _OF_FOLDERS - {"join"} for option in options)


def _no_repeats(found: Iterable[tuple[Format, Any]]) -> None:
    seen: set[Path] = set()
    for _, data in found:
        if isinstance(data, Path):
            if data in seen:
                raise FormatError("this file is listed twice", file=str(data))
            seen.add(data)


def _located(form: Format, places: Mapping[str, str]) -> Format:
    """The same format, whose sources are where files were fetched from."""

    def read(data: Any, reading: Reading, options: Options) -> Iterator[Item]:
        for item in form.read(data, reading, options):
            yield replace(item, location=shown_place(item.location, places)) if isinstance(item, Source) else item

    return replace(form, read=read)


def _with_warning(form: Format, said: str, column: str | None = None, file: str | None = None) -> Format:
    """The same format, whose reading begins with a warning."""

    def read(data: Any, reading: Reading, options: Options) -> Iterator[Item]:
        reading.warn(said, field=column, file=file)
        yield from form.read(data, reading, options)

    return replace(form, read=read)
