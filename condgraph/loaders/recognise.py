"""Recognition of sources: all formats by name, and the loader for a file, folder, pattern or object.

Content decides, not the extension: each format scores the first 64 KiB of a file (`Format.sniff`),
and the best one reads it. If two have the same score, the source is not read, and the error asks for
`format=`. A folder of tables with keys between them is one source. Any other folder is its files,
each recognised by its content; files about the data (README, LICENSE, archives) are skipped with a
warning.

A source that is loaded again is recognised by a fingerprint of its data and its options: files by
their bytes, folders by all their files, frames by their columns, other objects by their printed form.
Different fingerprints may still mean equal data (a column of another width, say), but equal ones never
mean different data.
"""

from __future__ import annotations

import glob
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, Final, get_args

from condgraph.engine.errors import FormatError, LoadError, nearest, pyarrow_or_error, shortened
from condgraph.engine.facts import Item, Source
from condgraph.engine.origins import PARTS
from condgraph.loaders import export, feather, kqapro, property_graph, spreadsheet
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.database import server, sqlite
from condgraph.loaders.database.server import DatabaseUrl
from condgraph.loaders.files import (
    HEAD_BYTES,
    Fetched,
    head_lines,
    head_text,
    heads_in,
    is_database,
    is_document,
    read_head,
    refuse,
    regular,
    shown_place,
    stem_of,
    suffix_of,
)
from condgraph.loaders.folder import load as folder
from condgraph.loaders.folder.declared import described, is_description
from condgraph.loaders.folder.load import TableFiles
from condgraph.loaders.property_graph import GraphFiles
from condgraph.loaders.rdf import load as rdf
from condgraph.loaders.statements import wikidata
from condgraph.loaders.statements.facts import MARKS, QUINTUPLES, TRIPLES, split
from condgraph.loaders.table.arrow import DATAFRAME, PARQUET, arrow_errors, is_frame
from condgraph.loaders.table.records import JSON, JSONL
from condgraph.loaders.table.text import CSV, TSV, Layout, is_page, rows_of

#: First bytes of files that hold no data for a graph, or have to be unpacked first.
_MAGIC: Final = (
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (b"PK\x03\x04", "a zip archive, which only its own path loads, or a damaged one"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"BZh", "packed with bzip2"),
    (b"\xfd7zXZ\x00", "packed with xz"),
    (b"\x28\xb5\x2f\xfd", "packed with zstandard"),
    (b"ARROW1", "an Arrow file, which pyarrow opens as a table"),
    (b"\x93NUMPY", "an array of NumPy"),
    (b"\x80\x04\x95", "a pickle of Python"),
    (b"Obj\x01", "an Avro file"),
    (b"ORC", "an ORC file, which pyarrow.orc opens as a table"),
    (b"<?xml", "XML, of which RDF/XML alone is read: convert it to CSV or JSON"),
)
_NAMES: Final = {"\t": "tabs", "": "white space"}
#: How many lines are examined.
_MAX_LINES: Final = 200


#: Signs of files that readers of tables and facts would take for their own.
_OTHERS: Final = (
    (
        re.compile(
            rb"(?:\xef\xbb\xbf|\s|--[^\n]*\n|/\*.*?\*/;?)*+(?:PRAGMA \w+ *=|BEGIN TRANSACTION;|CREATE TABLE |INSERT INTO )",
            re.I | re.S,
        ).match,
        "statements of SQL: run them in a database (sqlite3 new.db < file), and load or open that",
    ),
    (
        re.compile(rb"[^<]{0,3}(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<(?:graphml|gexf)\b", re.S).match,
        "GraphML or GEXF: networkx reads it, and a list of its edges as (head, relation, tail) can be loaded",
    ),
    (
        re.compile(
            rb"(?:\xef\xbb\xbf)?\s*+\[?\s*+\{\s*+(?:\"id\"\s*+:\s*+\"[^\"]{0,60}\"\s*+,\s*+)?"
            rb"\"type\"\s*+:\s*+\"(?:node\"\s*+,\s*+\"id\"|relationship\"\s*+,\s*+\"(?:id|label|start)\")\s*+:"
        ).match,
        "an export of Neo4j as JSON: export it as CSV (apoc.export.csv.all), or open the database: condgraph.open('bolt://...')",
    ),
    (re.compile(rb".{257}ustar", re.S).match, "a tar archive: extract it and load the folder, or make it a zip archive"),
)


def why_not(path: Path, head: bytes) -> str:
    """Return the reasons why a file with this head is of no known format, as one text."""
    described = next((reason for sign, reason in _OTHERS if sign(head)), None)
    described = described or next((reason for magic, reason in _MAGIC if head.startswith(magic)), None)
    if described is None and is_page(head):
        described = "a page of HTML, as servers send in place of data"
    if described is not None:
        return f"it looks like {described}"
    text = head_text(head, damaged=True)
    if text is None:
        zero = head.find(0)
        reason = f"it has the byte 0x00 at {zero + 1}" if zero >= 0 else "most of its bytes are not UTF-8"
        return f"it is not text: {reason} (encoding= names another encoding)"
    reasons = []
    if head_text(head) is None:
        reasons.append(_bad_byte(head))
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        reasons.append(_as_json(text, len(head) >= HEAD_BYTES))
    reasons.append(_as_table(text, len(head) < HEAD_BYTES))
    reasons.append(_as_facts(head_lines(text.encode(), _MAX_LINES)))
    return "; ".join(reasons)


def _bad_byte(head: bytes) -> str:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        return f"byte 0x{head[error.start]:02x} in line {line} is not UTF-8 (encoding= names another encoding)"
    return "it is not UTF-8 (encoding= names another encoding)"


def _as_json(text: str, cut: bool) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if cut:
            return "as JSON, its first 64 KiB hold no object or list of objects"
        return f"as JSON, line {error.lineno} is wrong ({error.msg})"
    except RecursionError:
        return "as JSON, it is nested too deeply"
    return "as JSON, it is not an object, a list of objects or a list of rows with a header"


def _as_table(text: str, complete: bool) -> str:
    """Return the closest reading as a table, and the first record that does not fit."""
    best: tuple[float, str] | None = None
    for mark in ",;\t|":
        rows = rows_of(text, Layout(mark, "excel"), complete) if mark in text else None
        if not rows or max(map(len, rows)) < 2:
            continue
        usual, frequency = Counter(map(len, rows)).most_common(1)[0]
        share = frequency / len(rows) if usual > 1 else 0.0
        if best is None or share > best[0]:
            widths = [len(row) for row in rows]
            different = next((at for at, width in enumerate(widths) if width != widths[0]), None)
            separator = _NAMES.get(mark, repr(mark))
            reason = f"as a table with {separator} between fields, record 1 has {_fields(widths[0])}"
            if different is not None:
                reason += f" and record {different + 1} has {_fields(widths[different])}"
            elif len(rows) == 1:
                reason += " and there is no other"
            else:
                reason += f" as all {len(rows)} have, and nothing shows that it is a header"
            best = share, reason
    if best is not None:
        return best[1]
    unclosed = next((at for at, line in enumerate(text.splitlines(), 1) if line.count('"') % 2), None)
    if unclosed is not None and text.count('"') % 2:
        return f"as a table, a quote in line {unclosed} or below is not closed (dialect='plain' reads quotes as text)"
    return "as a table, no line has two fields"


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _as_facts(lines: list[str]) -> str:
    best, name = 0, ""
    for mark in MARKS:
        fitting = sum(len(split(line, mark)) in (3, 4, 5) for line in lines)
        if fitting > best:
            best, name = fitting, _NAMES.get(mark, repr(mark))
    if not best:
        return "as facts, no line has three fields"
    first = shortened(lines[0], 60)
    return f"as facts, {best} of {len(lines)} lines have three to five fields with {name} between them; the first line is {first!r}"


#: Every format, by its name for `format=`.
FORMATS: Final[dict[str, Format]] = {
    item.name: item
    for item in (
        CSV,
        TSV,
        JSONL,
        JSON,
        PARQUET,
        DATAFRAME,
        feather.FORMAT,
        kqapro.FORMAT,
        TRIPLES,
        QUINTUPLES,
        wikidata.FORMAT,
        rdf.FORMAT,
        folder.FORMAT,
        property_graph.FORMAT,
        spreadsheet.FORMAT,
        sqlite.FORMAT,
        *server.FORMATS,
        export.FORMAT,
        export.PARQUET,
        export.NEO4J,
    )
}


@dataclass(frozen=True, slots=True)
class Recognised:
    """A source and its loader: `format.read(data, Reading(source), options)`."""

    format: Format
    source: Source
    data: Any


#: Options that only apply to several tables with keys between them.
_OF_FOLDERS: Final = frozenset(folder.FORMAT.options) - frozenset(CSV.options) | {"join"}
#: A hint for users who load items of a graph or of evidence, or an empty list.
_ADD: Final = "graph.add(items) adds statements and entities, such as answer.evidence.items()"


def recognise(
    source: Any, format: str | None = None, *, name: str | None = None, encoding: object = None, options: Options | None = None
) -> list[Recognised]:
    """Return what to load and how: one entry for each file, folder of tables, or object.

    `source` is a path, a glob pattern, a Python object that a format claims, or a list of these.
    `format` overrides recognition; `name` is the name of the source (`name/stem` for several);
    `encoding` is that of texts. With `options` about keys between tables, a folder of tables is one source
    whatever the names of their columns. Raises `FormatError` with the formats that were tried, and
    `LoadError` for a path that does not exist.
    """
    forced = None if format is None else format_called(format)
    pairs: list[tuple[Format, Any]] = []
    skipped: list[Path] = []
    keyed = any(option in _OF_FOLDERS and value is not None and value is not False for option, value in (options or {}).items())
    with heads_in(encoding):
        for item in _listed(source, forced):
            if keyed and forced is None and isinstance(item, Path) and item.is_dir() and folder.files_of(item):
                pairs.append((folder.FORMAT, item))
            elif isinstance(item, Path):
                pairs += _paths(item, forced, skipped)
            else:
                pairs.append((forced or _claimed(item), item))
    if not pairs:
        raise FormatError("there is nothing to load", file=str(source) if isinstance(source, (str, os.PathLike)) else None)
    _no_repeats(pairs)
    pairs = _together(pairs)
    places = {str(item.path): item.location for item in _each(source) if isinstance(item, Fetched)}
    if forced is None:
        with heads_in(encoding):
            # A folder of one table counts if the table refers to itself.
            least = 1 if isinstance(source, (str, os.PathLike)) and os.path.isdir(source) else 2
            pairs = _referring(pairs, options or {}, places, least)
    names = sources_of([data for _, data in pairs])
    if name is not None:
        names = [name] if len(names) == 1 else [f"{name}/{item}" for item in names]
    recognised = [
        Recognised(form, Source(source_name, location_of(data, places), form.name), data)
        for (form, data), source_name in zip(pairs, names, strict=True)
    ]
    if places:
        recognised = [replace(item, format=_located(item.format, places)) for item in recognised]
    if skipped:
        first = recognised[0]
        names_skipped = ", ".join(path.name for path in skipped[:10]) + (", ..." if len(skipped) > 10 else "")
        warning = f"files that are not data are left out: {names_skipped}"
        recognised[0] = replace(first, format=_with_warning(first.format, warning, file=str(skipped[0].parent)))
    return recognised


def location_of(data: Any, places: Mapping[str, str] | None = None) -> str:
    """Return the location of a source: a path, an address without its password, or "" for an object.

    `places` has the addresses of fetched files.
    """
    if isinstance(data, server.DatabaseUrl):
        return data.location
    if isinstance(data, GraphFiles | TableFiles):
        return shown_place(str(data.paths[0]), places or {}).rpartition("/")[0] or "."
    return shown_place(str(data), places or {}) if isinstance(data, Path) else ""


def sources_of(sources: Sequence[Any]) -> list[str]:
    """Return the names of sources: a file's name without extension, with as many folders as needed.

    Folders are added until names differ. Files that differ only in their extension keep it. Objects are
    named after their type.

    >>> sources_of([Path("csv/204-csv/57.csv"), Path("csv/204-csv/58.csv"), Path("csv/203-csv/57.csv")])
    ['204-csv/57', '58', '203-csv/57']
    """
    parts: list[list[str]] = []
    for item in sources:
        if isinstance(item, (str, os.PathLike)):
            path = Path(item)
            stem = stem_of(path) if path.name else stem_of(path.resolve())
            parts.append([stem, *reversed([part for part in path.parts[:-1] if part not in (path.anchor, ".")])])
        elif isinstance(item, (server.DatabaseUrl, GraphFiles, TableFiles)):
            parts.append([item.called])
        else:
            parts.append([type(item).__name__.casefold()])
    depths = [1] * len(parts)
    while True:
        names = ["/".join(reversed(part[:depth])) for part, depth in zip(parts, depths, strict=True)]
        groups: dict[str, list[int]] = {}
        for at, name in enumerate(names):
            groups.setdefault(name, []).append(at)
        clashing = [group for group in groups.values() if len(group) > 1]
        extendable = [at for group in clashing for at in group if depths[at] < len(parts[at])]
        if not clashing:
            return names
        if not extendable:
            break
        for at in extendable:
            depths[at] += 1
    for group in clashing:
        for count, at in enumerate(group, 1):
            item = sources[at]
            name = Path(item).name if isinstance(item, (str, os.PathLike)) else f"{parts[at][0]} {count}"
            parts[at], depths[at] = [name], 1
    names = ["/".join(reversed(part[:depth])) for part, depth in zip(parts, depths, strict=True)]
    # Names that still clash are numbered.
    used: set[str] = set()
    for at, name in enumerate(names):
        fresh, count = name, 1
        while fresh in used:
            count += 1
            fresh = f"{name} ({count})"
        used.add(fresh)
        names[at] = fresh
    return names


def format_called(format: str) -> Format:
    """Return the format of a name; raises `FormatError` with the nearest names."""
    result = FORMATS.get(str(format))
    if result is None:
        raise FormatError(
            f"there is no format {format!r}",
            candidates=nearest(str(format), FORMATS),
            hint="formats: " + ", ".join(sorted(FORMATS)),
        )
    return result


def _listed(source: Any, wanted: Format | None) -> Iterator[Any]:
    """Yield the sources in a list, with patterns expanded and paths as `Path`."""
    if isinstance(source, (str, os.PathLike)):
        yield from _opened(source)
    elif isinstance(source, (list, tuple, set, frozenset)) and not _is_claimed(source, wanted):
        if not source:
            raise FormatError("the list of sources is empty", hint=_ADD)
        if isinstance(source, (set, frozenset)):
            source = sorted(source, key=str)
        for item in source:
            yield from _listed(item, wanted)
    else:
        yield source


def _each(source: Any) -> Iterable[Any]:
    return source if isinstance(source, list) else (source,)


def _is_claimed(source: Any, wanted: Format | None) -> bool:
    return any(form.claims(source) for form in ([wanted] if wanted is not None else FORMATS.values()))


def _opened(source: str | os.PathLike[str]) -> Iterator[Any]:
    """Yield a path, the files that match a pattern, or the database of an address."""
    text = os.fspath(source)
    if is_database(text):
        yield server.DatabaseUrl(text)
        return
    refuse(text)
    path = Path(text)
    try:
        exists = path.exists()
    except (OSError, ValueError) as error:
        raise LoadError(f"this cannot be a path ({error})", file=repr(text)[:200]) from None
    if exists:
        yield path
        return
    if glob.has_magic(text):
        paths = sorted(glob.glob(text, recursive=True))
        files = [item for item in paths if os.path.isfile(item)]
        if not paths:
            raise LoadError("no file matches this pattern", file=text)
        yield from map(Path, files or paths)
        return
    if path.is_symlink():
        raise LoadError(f"this is a link to {os.readlink(path)}, and there is no such file or folder", file=text)
    raise LoadError("there is no such file or folder", file=text, candidates=_neighbours(path))


def _neighbours(path: Path) -> list[str]:
    try:
        names = [item.name for item in path.parent.iterdir()]
    except OSError:
        return []
    return [str(path.parent / item) for item in nearest(path.name, names)]


def _paths(path: Path, wanted: Format | None, left_out: list[Path]) -> Iterator[tuple[Format, Path]]:
    """Yield a file, or a folder as one source or as its files."""
    if not regular(path).is_dir():
        yield wanted or _sniffed(path), path
        return
    for folder_format in (export.PARQUET, export.NEO4J, property_graph.FORMAT, folder.FORMAT, PARQUET):
        if wanted is folder_format is not PARQUET or (wanted in (None, folder_format) and folder_format.sniff(path, b"") > 0):
            yield folder_format, path
            return
    unknown: list[Path] = []
    pairs: list[tuple[Format, Path]] = []
    for item in sorted(path.iterdir()):
        if item.is_dir():
            if not item.name.startswith("."):
                pairs += _paths(item, wanted, left_out)
        elif is_document(item):
            left_out.append(item)
        elif wanted is not None:
            pairs.append((wanted, regular(item)))
        else:
            scores = _scores(item)
            if scores:
                pairs.append((_best(item, scores), item))
            else:
                unknown.append(item)
    if unknown:
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        names, first = ", ".join(file.name for file in unknown[:5]), unknown[0]
        why = why_not(first, read_head(first)) if first.stat().st_size else "the file is empty"
        raise FormatError(
            f"the folder holds files of no known format: {names}{more} ({first.name}: {why})",
            file=str(path),
            hint=f"a pattern ('{path.name}/*.csv') or a list of paths says which files to load",
        )
    yield from pairs


def asked_about(path: Path, head: bytes) -> list[Format]:
    """Return the formats that a file with this head may have, by their signs and suffixes."""
    suffix = suffix_of(path)
    # Signs do not match text in UTF-16 or UTF-32.
    wide = head[:1] in (b"\xff", b"\xfe", b"\0")
    return [form for form in FORMATS.values() if wide or form.sign is None or suffix in form.suffixes or form.sign(head)]


def _scores(path: Path) -> list[tuple[int, str]]:
    """Return the formats that could read a file, the likeliest first."""
    head = read_head(path)
    if any(sign(head) for sign, _ in _OTHERS):
        return []
    scores = [(form.sniff(path, head), form.name) for form in asked_about(path, head)]
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
    tied = [item for score, item in scores if score == scores[0][0]]
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


def _together(pairs: list[tuple[Format, Any]]) -> list[tuple[Format, Any]]:
    """Join files that are one source.

    Files of nodes and relationships become one property graph; a file that describes tables takes the
    place of the tables that it names.
    """
    descriptions = [data for form, data in pairs if form is folder.FORMAT and isinstance(data, Path) and data.is_file()]
    descriptions = [path for path in descriptions if is_description(path, read_head(path))]
    described_tables = {
        table.path for data in descriptions if (description := described(data)) is not None for table in description.tables
    }
    pairs = [pair for pair in pairs if not isinstance(pair[1], Path) or pair[1] not in described_tables]
    files = [data for form, data in pairs if form is property_graph.FORMAT and isinstance(data, Path) and not data.is_dir()]
    if len(files) < 2:
        return pairs
    joined = property_graph.FORMAT, GraphFiles(tuple(files))
    return [joined, *((form, data) for form, data in pairs if data not in files)]


def _referring(
    found: list[tuple[Format, Any]], options: Options, places: Mapping[str, str], least: int
) -> list[tuple[Format, Any]]:
    """Join tables whose cells refer to each other into one source, as a folder of tables is.

    `options` about keys may name the tables. Fewer than `least` tables are not joined.
    """
    files = [data for form, data in found if form in (CSV, TSV, PARQUET) and isinstance(data, Path)]
    files = [path for path in files if suffix_of(path) in (*folder.SUFFIXES, *folder.PARQUET)]
    set_options = {option: value for option, value in options.items() if value is not None}
    if len(files) < least or set_options.get("join") is False or not set_options.keys() <= folder.FORMAT.options.keys():
        return found
    joined, questions = (files, []) if _names_tables(set_options, files) else folder.referring(files, set_options)
    # For tables that are loaded together, the loader itself reports these questions.
    for path, column, warning in reversed(questions):
        at = next(number for number, (_, data) in enumerate(found) if data == path)
        if path not in joined:
            found[at] = _with_warning(found[at][0], warning, column or None), path
    if not joined:
        return found
    parent = joined[0].resolve().parent
    folder_name = places[str(joined[0])].rpartition("/")[0].rpartition("/")[2] if str(joined[0]) in places else parent.name
    joined_source: Any = TableFiles(tuple(joined), folder_name or "tables")
    if not places and len(joined) == len(files) == len(found) and joined == folder.files_of(joined[0].parent):
        joined_source = joined[0].parent
    at = next(number for number, (_, data) in enumerate(found) if data in joined)
    remaining = [pair for pair in found if not (isinstance(pair[1], Path) and pair[1] in joined)]
    return [*remaining[:at], (folder.FORMAT, joined_source), *remaining[at:]]


def _names_tables(options: Options, files: Sequence[Path]) -> bool:
    """Whether options are about keys between these tables."""
    stems = [stem_of(path) for path in files]
    joins = [item for option in ("join", "keys") if isinstance(options.get(option), Mapping) for item in options[option]]
    about = any(str(join).startswith(f"{stem}.") for join in joins for stem in stems)
    return about or any(option in _OF_FOLDERS - {"join"} for option in options)


def _no_repeats(found: Iterable[tuple[Format, Any]]) -> None:
    seen: set[Path] = set()
    for _, data in found:
        if isinstance(data, Path):
            if data in seen:
                raise FormatError("this file is listed twice", file=str(data))
            seen.add(data)


def _located(form: Format, places: Mapping[str, str]) -> Format:
    """Return the format, with its sources located where files were fetched from."""

    def read(data: Any, reading: Reading, options: Options) -> Iterator[Item]:
        for item in form.read(data, reading, options):
            yield replace(item, location=shown_place(item.location, places)) if isinstance(item, Source) else item

    return replace(form, read=read)


def _with_warning(form: Format, said: str, column: str | None = None, file: str | None = None) -> Format:
    """Return the format, with a warning at the start of each reading."""

    def read(data: Any, reading: Reading, options: Options) -> Iterator[Item]:
        reading.warn(said, field=column, file=file)
        yield from form.read(data, reading, options)

    return replace(form, read=read)


def known_by(
    recognised: Iterable[Recognised], options: Mapping[str, Any], known: Iterable[Source], *, named: bool, changes: bool = False
) -> list[Recognised]:
    """Return what to load, with a fingerprint for each source.

    Unless the caller `named` it, an object that is not a file gets a name that no source of the graph
    (`known`) has, or that of the source with the same content. The same holds for several files that are
    one source named after their folder, except for a load that `changes` the present content.
    """
    by_name = {source.name: source for source in known}
    # Several tables of one folder are separate sources, with the fingerprint of the whole folder.
    places = {name.rpartition("/")[0]: source for name, source in by_name.items() if "/" in name}
    fingerprinted: list[Recognised] = []
    for item in recognised:
        source = replace(item.source, content=_content(item, options))
        has_own_name = isinstance(item.data, (Path, DatabaseUrl, GraphFiles)) or (changes and isinstance(item.data, TableFiles))
        if not named and not has_own_name:
            source = replace(source, name=_free(source, places | by_name if isinstance(item.data, TableFiles) else by_name))
        by_name[source.name] = source
        fingerprinted.append(replace(item, source=source))
    return fingerprinted


def _free(source: Source, taken: Mapping[str, Source]) -> str:
    name, count = source.name, 1
    while name in taken and taken[name].content != source.content:
        count += 1
        name = f"{source.name} {count}"
    return name


def _content(one: Recognised, options: Mapping[str, Any]) -> str:
    """Return the fingerprint of a source's data and options; empty if its data can be read only once."""
    if isinstance(one.data, DatabaseUrl):
        data = one.data.content(options)
    elif isinstance(one.data, GraphFiles | TableFiles):
        data = "".join(map(_of_path, one.data.paths))
    else:
        # A file that describes tables stands for all files of its folder.
        is_description_file = one.format.name == folder.FORMAT.name and isinstance(one.data, Path) and one.data.is_file()
        data = (
            _of_path(one.data.parent if is_description_file else one.data) if isinstance(one.data, Path) else _of_object(one.data)
        )
    if not data:
        return ""
    set_options = {name: value for name, value in options.items() if value is not None}
    format_options = json.dumps([one.format.name, set_options], sort_keys=True, default=str)
    return data + PARTS + blake2b(format_options.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _of_path(path: Path) -> str:
    digest = blake2b(digest_size=12)
    try:
        for item in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if path.is_dir():
                digest.update(f"\0{item.relative_to(path)}\0".encode("utf-8", "surrogateescape"))
            mode = item.stat().st_mode
            if stat.S_ISREG(mode):
                with item.open("rb") as stream:
                    digest.update(file_digest(stream, lambda: blake2b(digest_size=12)).digest())
            elif not stat.S_ISDIR(mode):
                # A pipe can be read only once, by the loader.
                return ""
    except OSError:
        # The loader reports the error.
        return ""
    return digest.hexdigest()


def _of_object(data: Any) -> str:
    digest = blake2b(digest_size=12)
    if type(data).__name__ in ("RecordBatchReader", "LazyFrame") or hasattr(data, "__next__"):
        # It can be read only once, or would be computed twice.
        return ""
    if is_frame(data):
        with arrow_errors(""):
            _frame(data, digest)
    else:
        pieces: Any = data
        if not isinstance(data, (Mapping, Sequence)):
            # A graph of RDF has no fixed order.
            pieces = sorted(map(str, data)) if hasattr(data, "__iter__") else [repr(data)]
        for piece in pieces.items() if isinstance(pieces, Mapping) else pieces:
            digest.update(repr(piece).encode("utf-8", "surrogatepass"))
            digest.update(b"\0")
    return digest.hexdigest()


def _frame(frame: Any, digest: blake2b) -> None:
    """Add the names, types and values of a frame's columns to a digest."""
    pa = pyarrow_or_error()
    if type(frame).__module__.partition(".")[0] == "pandas":
        digest.update(repr((list(frame.columns), frame.index.names)).encode("utf-8", "surrogatepass"))
        columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
        columns += [frame.index.get_level_values(at) for at in range(frame.index.nlevels)]
    else:
        table = pa.table(frame) if not isinstance(frame, pa.RecordBatch) else pa.Table.from_batches([frame])
        digest.update(repr(table.column_names).encode("utf-8", "surrogatepass"))
        columns = list(table.columns)
    for column in columns:
        try:
            array = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([pa.array(column, from_pandas=True)])
            values = pa.table({"": array.combine_chunks()})
            digest.update(str(array.type).encode())
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, values.schema) as writer:
                writer.write_table(values)
            digest.update(sink.getvalue())
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            # Columns of Python objects that Arrow cannot hold.
            objects = column.to_numpy() if hasattr(column, "to_numpy") else column
            digest.update(repr(objects.tolist() if hasattr(objects, "tolist") else list(objects)).encode("utf-8", "surrogatepass"))
