"""What a source is: every format by name, and which loader a file, folder, pattern or Python object
goes to.

Content decides, not the extension: each format scores the first 64 KiB of a file (`Format.sniff`)
and the best one reads it. Where two score the same, the source is not read and the error asks for
`format=`. A folder of tables with keys between them is one source, any other folder is its files,
each by its own content; files about the data (README, LICENSE, archives) are left out, with a
warning.

A source that is loaded again is known by a fingerprint of its data and of the options it is read
with: files by their bytes, folders by those of all their files, frames by their columns, other
objects by what they print. Two fingerprints that differ may still stand for equal data (a column of
another width, say); two that are equal do not stand for two.
"""

from __future__ import annotations

import glob
import json
import os
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
from condgraph.loaders.addresses import Fetched, is_database, refuse, shown_place
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.database import server, sqlite
from condgraph.loaders.database.server import DatabaseUrl
from condgraph.loaders.files import HEAD_BYTES, head_lines, head_text, heads_in, is_document, read_head, regular, stem_of, suffix_of
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

#: How files begin that hold no data for a graph, or that a program has to unpack.
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
)
_NAMES: Final = {"\t": "tabs", "": "white space"}
#: Lines that are looked at.
_MOST: Final = 200


def why_not(path: Path, head: bytes) -> str:
    """What a file with this head was tried as, and why it is none of these, as one text."""
    known = next((what for magic, what in _MAGIC if head.startswith(magic)), None)
    if known is None and is_page(head):
        known = "a page of HTML, as servers send in place of data"
    if known is not None:
        return f"it looks like {known}"
    text = head_text(head, damaged=True)
    if text is None:
        zero = head.find(0)
        what = f"it has the byte 0x00 at {zero + 1}" if zero >= 0 else "most of its bytes are no UTF-8"
        return f"it is no text: {what} (encoding= names another encoding)"
    reasons = []
    if head_text(head) is None:
        reasons.append(_bad_byte(head))
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        reasons.append(_as_json(text, len(head) >= HEAD_BYTES))
    reasons.append(_as_table(text, len(head) < HEAD_BYTES))
    reasons.append(_as_facts(head_lines(text.encode(), _MOST)))
    return "; ".join(reasons)


def _bad_byte(head: bytes) -> str:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        return f"byte 0x{head[error.start]:02x} in line {line} is no UTF-8 (encoding= names another encoding)"
    return "it is no UTF-8 (encoding= names another encoding)"


def _as_json(text: str, cut: bool) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if cut:
            return "as JSON, its first 64 KiB hold no object or list of objects"
        return f"as JSON, line {error.lineno} is wrong ({error.msg})"
    except RecursionError:
        return "as JSON, it is nested too deeply"
    return "as JSON, it is no object, no list of objects and no list of rows with a header"


def _as_table(text: str, complete: bool) -> str:
    """The mark that comes nearest to a table, and the first records that do not fit."""
    best: tuple[float, str] | None = None
    for mark in ",;\t|":
        rows = rows_of(text, Layout(mark, "excel"), complete) if mark in text else None
        if not rows or max(map(len, rows)) < 2:
            continue
        usual, times = Counter(map(len, rows)).most_common(1)[0]
        share = times / len(rows) if usual > 1 else 0.0
        if best is None or share > best[0]:
            widths = [len(row) for row in rows]
            other = next((at for at, width in enumerate(widths) if width != widths[0]), None)
            between = _NAMES.get(mark, repr(mark))
            what = f"as a table with {between} between fields, record 1 has {_fields(widths[0])}"
            if other is not None:
                what += f" and record {other + 1} has {_fields(widths[other])}"
            elif len(rows) == 1:
                what += " and there is no other"
            else:
                what += f" as all {len(rows)} have, and nothing shows that it is a header"
            best = share, what
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


#: Every format, by the name that `format=` takes.
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
    wanted = None if format is None else format_called(format)
    pairs: list[tuple[Format, Any]] = []
    left_out: list[Path] = []
    keyed = any(option in _OF_FOLDERS and value is not None and value is not False for option, value in (options or {}).items())
    with heads_in(encoding):
        for item in _listed(source, wanted):
            if keyed and wanted is None and isinstance(item, Path) and item.is_dir() and folder.files_of(item):
                pairs.append((folder.FORMAT, item))
            elif isinstance(item, Path):
                pairs += _paths(item, wanted, left_out)
            else:
                pairs.append((wanted or _claimed(item), item))
    if not pairs:
        raise FormatError("there is nothing to load", file=str(source) if isinstance(source, (str, os.PathLike)) else None)
    _no_repeats(pairs)
    pairs = _together(pairs)
    places = {str(item.path): item.location for item in _each(source) if isinstance(item, Fetched)}
    if wanted is None:
        with heads_in(encoding):
            # A folder of one table is one too, where that refers to itself.
            least = 1 if isinstance(source, (str, os.PathLike)) and os.path.isdir(source) else 2
            pairs = _referring(pairs, options or {}, places, least)
    names = sources_of([data for _, data in pairs])
    if name is not None:
        names = [name] if len(names) == 1 else [f"{name}/{item}" for item in names]
    recognised = [
        Recognised(form, Source(called, location_of(data, places), form.name), data)
        for (form, data), called in zip(pairs, names, strict=True)
    ]
    if places:
        recognised = [replace(item, format=_located(item.format, places)) for item in recognised]
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
            item = sources[at]
            called = Path(item).name if isinstance(item, (str, os.PathLike)) else f"{parts[at][0]} {count}"
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


def format_called(format: str) -> Format:
    """A format by its name. Raises `FormatError` with the nearest."""
    result = FORMATS.get(str(format))
    if result is None:
        raise FormatError(
            f"there is no format {format!r}",
            candidates=nearest(str(format), FORMATS),
            hint="formats: " + ", ".join(sorted(FORMATS)),
        )
    return result


def _listed(source: Any, wanted: Format | None) -> Iterator[Any]:
    """The sources of a list, patterns opened, paths as `Path`."""
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
    """A path, the files that a pattern stands for, or what an address is of."""
    text = os.fspath(source)
    if is_database(text):
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
        paths = sorted(glob.glob(text, recursive=True))
        files = [item for item in paths if os.path.isfile(item)]
        if not paths:
            raise LoadError("no file matches this pattern", file=text)
        yield from map(Path, files or paths)
        return
    raise LoadError("there is no such file or folder", file=text, candidates=_neighbours(path))


def _neighbours(path: Path) -> list[str]:
    try:
        names = [item.name for item in path.parent.iterdir()]
    except OSError:
        return []
    return [str(path.parent / item) for item in nearest(path.name, names)]


def _paths(path: Path, wanted: Format | None, left_out: list[Path]) -> Iterator[tuple[Format, Path]]:
    """A file, or what a folder is: itself, or its files."""
    if not regular(path).is_dir():
        yield wanted or _sniffed(path), path
        return
    for whole in (export.PARQUET, property_graph.FORMAT, folder.FORMAT, PARQUET):
        if wanted is whole is not PARQUET or (wanted in (None, whole) and whole.sniff(path, b"") > 0):
            yield whole, path
            return
    strange: list[Path] = []
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
                strange.append(item)
    if strange:
        more = f" and {len(strange) - 5} more" if len(strange) > 5 else ""
        names, first = ", ".join(file.name for file in strange[:5]), strange[0]
        why = why_not(first, read_head(first)) if first.stat().st_size else "the file is empty"
        raise FormatError(
            f"the folder holds files of no known format: {names}{more} ({first.name}: {why})",
            file=str(path),
            hint=f"a pattern ('{path.name}/*.csv') or a list of paths says which files to load",
        )
    yield from pairs


def asked_about(path: Path, head: bytes) -> list[Format]:
    """The formats that a file with this head may be of, by their signs and suffixes."""
    suffix = suffix_of(path)
    # Text of 16 or 32 bits has no sign of its own.
    wide = head[:1] in (b"\xff", b"\xfe", b"\0")
    return [form for form in FORMATS.values() if wide or form.sign is None or suffix in form.suffixes or form.sign(head)]


def _scores(path: Path) -> list[tuple[int, str]]:
    """Formats that could read a file, the likeliest first."""
    head = read_head(path)
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
    """Files of nodes and of relationships that are loaded together as one graph; files of tables beside
    a file that describes them are part of what it is.
    """
    descriptions = [data for form, data in pairs if form is folder.FORMAT and isinstance(data, Path) and data.is_file()]
    descriptions = [path for path in descriptions if is_description(path, read_head(path))]
    parts = {table.path for data in descriptions if (said := described(data)) is not None for table in said.tables}
    pairs = [pair for pair in pairs if not isinstance(pair[1], Path) or pair[1] not in parts]
    files = [data for form, data in pairs if form is property_graph.FORMAT and isinstance(data, Path) and not data.is_dir()]
    if len(files) < 2:
        return pairs
    whole = property_graph.FORMAT, GraphFiles(tuple(files))
    return [whole, *((form, data) for form, data in pairs if data not in files)]


def _referring(
    found: list[tuple[Format, Any]], options: Options, places: Mapping[str, str], least: int
) -> list[tuple[Format, Any]]:
    """Tables whose cells refer to each other are loaded together as one source, as a folder of tables
    is; all of those that are named in `options` about keys between tables. Of fewer than `least` none are.
    """
    files = [data for form, data in found if form in (CSV, TSV, PARQUET) and isinstance(data, Path)]
    files = [path for path in files if suffix_of(path) in (*folder.SUFFIXES, *folder.PARQUET)]
    given = {option: value for option, value in options.items() if value is not None}
    if len(files) < least or given.get("join") is False or not given.keys() <= folder.FORMAT.options.keys():
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


def known_by(
    recognised: Iterable[Recognised], options: Mapping[str, Any], known: Iterable[Source], *, named: bool, changes: bool = False
) -> list[Recognised]:
    """What is to be loaded, each source with its fingerprint.

    Unless it was `named` by its caller, an object that is no file gets a name that no source of the
    graph has (`known`), or that of the source with the very same content. So do several files that
    are one source, and are called like their folder, but for a load that `changes` what is there.
    """
    taken = {source.name: source for source in known}
    # Several tables in one place are sources of their own, with the fingerprint of the whole.
    places = {name.rpartition("/")[0]: source for name, source in taken.items() if "/" in name}
    fingerprinted: list[Recognised] = []
    for item in recognised:
        source = replace(item.source, content=_content(item, options))
        own = isinstance(item.data, (Path, DatabaseUrl, GraphFiles)) or (changes and isinstance(item.data, TableFiles))
        if not named and not own:
            source = replace(source, name=_free(source, places | taken if isinstance(item.data, TableFiles) else taken))
        taken[source.name] = source
        fingerprinted.append(replace(item, source=source))
    return fingerprinted


def _free(source: Source, taken: Mapping[str, Source]) -> str:
    name, count = source.name, 1
    while name in taken and taken[name].content != source.content:
        count += 1
        name = f"{source.name} {count}"
    return name


def _content(one: Recognised, options: Mapping[str, Any]) -> str:
    """The fingerprint of a source: of its data, and of how it is read; empty where its data can be
    read only once.
    """
    if isinstance(one.data, DatabaseUrl):
        data = one.data.content(options)
    elif isinstance(one.data, GraphFiles | TableFiles):
        data = "".join(map(_of_path, one.data.paths))
    else:
        # A file that describes tables stands for those beside it.
        described = one.format.name == folder.FORMAT.name and isinstance(one.data, Path) and one.data.is_file()
        data = _of_path(one.data.parent if described else one.data) if isinstance(one.data, Path) else _of_object(one.data)
    if not data:
        return ""
    given = {name: value for name, value in options.items() if value is not None}
    how = json.dumps([one.format.name, given], sort_keys=True, default=str)
    return data + PARTS + blake2b(how.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


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
                # A pipe gives its bytes once, to the loader.
                return ""
    except OSError:
        # The loader says what is wrong with it.
        return ""
    return digest.hexdigest()


def _of_object(data: Any) -> str:
    digest = blake2b(digest_size=12)
    if type(data).__name__ in ("RecordBatchReader", "LazyFrame") or hasattr(data, "__next__"):
        # Reading it here would leave nothing for the loader, or compute it twice.
        return ""
    if is_frame(data):
        with arrow_errors(""):
            _frame(data, digest)
    else:
        pieces: Any = data
        if not isinstance(data, (Mapping, Sequence)):
            # A graph of RDF has no order of its own.
            pieces = sorted(map(str, data)) if hasattr(data, "__iter__") else [repr(data)]
        for piece in pieces.items() if isinstance(pieces, Mapping) else pieces:
            digest.update(repr(piece).encode("utf-8", "surrogatepass"))
            digest.update(b"\0")
    return digest.hexdigest()


def _frame(frame: Any, digest: blake2b) -> None:
    """The columns of a frame: their names, types and values."""
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
            # Columns that only Python objects hold.
            listed = column.to_numpy() if hasattr(column, "to_numpy") else column
            digest.update(repr(listed.tolist() if hasattr(listed, "tolist") else list(listed)).encode("utf-8", "surrogatepass"))
