"""RDF files as quads: which syntax a file is in, its quads with the row each stands in, and errors
with file and line.

Parsing is pyoxigraph's. N-Triples and N-Quads are read a block of lines at a time, so that rows are
lines and a bad line costs only itself; in the other syntaxes a row is the running number of the
triple.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from condgraph.engine.errors import FormatError, LoadError, OptionError, nearest
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.files import LONGEST_LINE, file_errors, head_text, open_bytes, path_of, read_head, suffix_of
from condgraph.loaders.rdf.bounds import MOST_TERMS, checked_jsonld, guarded_turtle, guarded_xml, too_deep

if TYPE_CHECKING:
    import pyoxigraph

#: Syntaxes by the name `syntax=` takes, as attributes of `pyoxigraph.RdfFormat`. N-Triples are
#: N-Quads without graphs.
SYNTAXES: Final = {
    "turtle": "TURTLE",
    "trig": "TRIG",
    "ntriples": "N_QUADS",
    "nquads": "N_QUADS",
    "rdfxml": "RDF_XML",
    "n3": "N3",
    "jsonld": "JSON_LD",
}
EXTENSIONS: Final = {
    ".ttl": "turtle",
    ".turtle": "turtle",
    ".trig": "trig",
    ".nt": "ntriples",
    ".ntriples": "ntriples",
    ".nq": "nquads",
    ".nquads": "nquads",
    ".rdf": "rdfxml",
    ".rdfs": "rdfxml",
    ".owl": "rdfxml",
    ".n3": "n3",
    ".jsonld": "jsonld",
}
_LINES: Final = frozenset({"ntriples", "nquads"})
#: Syntaxes whose parser finds its way again after an error.
_RECOVERING: Final = frozenset({"turtle", "trig", "n3"})
_BLOCK_BYTES: Final = 4_000_000
#: Errors in a row, with nothing read between them, after which a file is given up.
_MOST_ERRORS: Final = 1000

_TERM: Final = r'(?:<[^<>"{}|^`\\\s]*>|_:\S+)'
_QUAD_LINE: Final = re.compile(
    rf"\s*{_TERM}\s+<[^<>\s]*>\s+(?:{_TERM}|\"(?:[^\"\\]|\\.)*\"(?:@[\w-]+|\^\^<[^<>\s]*>)?|<<\(.*\)>>)(?:\s+{_TERM})?\s*\.\s*(?:#.*)?"
).fullmatch
_STAR_BEGIN: Final = re.compile(r"\s*<<\s*<[^<>\s]*>\s+<[^<>\s]*>\s").match
_STAR_MIDDLE: Final = re.compile(r">>\s*<[^<>\s]*>\s").search
_STAR_END: Final = re.compile(r"\.\s*(?:#.*)?$").search
_DIRECTIVE: Final = re.compile(
    r"^[^\S\n]*+(?:@prefix\s|@base\s|(?:PREFIX\s+[\w.-]*:|BASE)\s*<|VERSION\s+\")", re.IGNORECASE | re.MULTILINE
).search


def _star_line(line: str) -> bool:
    """Whether a line is a triple about a quoted triple, `<< s p o >> p o .`; each part is looked
    for once.
    """
    begin = _STAR_BEGIN(line)
    middle = None if begin is None else _STAR_MIDDLE(line, begin.end())
    return middle is not None and _STAR_END(line, middle.end()) is not None


def open_source(source: Any) -> tuple[Callable[[], BinaryIO], Path | None]:
    """How to open a source afresh for each pass, and its path. An rdflib graph is read through its
    own N-Quads.
    """
    if not is_graph_object(source):
        path = path_of(source)
        return (lambda: open_bytes(path)), path
    import io

    form = "nquads" if getattr(source, "context_aware", False) else "nt"
    data = source.serialize(format=form, encoding="utf-8")
    return (lambda: io.BytesIO(data)), None


def is_graph_object(source: Any) -> bool:
    """Whether a Python object is an rdflib graph or data set; tells without importing rdflib."""
    return any(kind.__module__.startswith("rdflib.") and kind.__name__ == "Graph" for kind in type(source).__mro__)


def syntax_of(path: Path, head: bytes) -> tuple[str | None, int]:
    """The syntax of a file by its first bytes, else by its extension, and how sure that is (0 to
    100).
    """
    text = head_text(head)
    extension = EXTENSIONS.get(suffix_of(path))
    if text is None:
        return None, 0
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith("<") and (
        "<rdf:RDF" in start or ("22-rdf-syntax-ns#" in start and start.startswith(("<?xml", "<!DOCTYPE")))
    ):
        return "rdfxml", 95
    if start[:1] in ("{", "[") and re.search(r'"@(?:context|id|graph)"\s*:', start):
        return "jsonld", 90
    lines = [line for line in start.split("\n")[:200] if line.strip() and not line.lstrip().startswith("#")]
    if len(text) >= 60_000 and len(lines) > 1:
        lines.pop()
    if extension in (None, "ntriples") and any(_star_line(line) for line in lines):
        # N-Triples of RDF-star, which are Turtle of RDF 1.2.
        return "turtle", 95
    if lines and sum(_QUAD_LINE(line.rstrip("\r")) is not None for line in lines) >= 0.75 * len(lines):
        return ("ntriples" if extension == "ntriples" else "nquads"), 95
    if _DIRECTIVE(start):
        return (extension if extension in _RECOVERING else "trig"), 95
    return extension, 60 if extension is not None and start else 0


def quads(
    open_stream: Callable[[], BinaryIO], path: Path | None, reading: Reading, options: Options, *, aloud: bool
) -> Iterator[tuple[int, pyoxigraph.Quad]]:
    """The quads of a source, each with its row. Only the pass that is read `aloud` reports bad
    records and progress.

    Raises `LoadError` with file and line for a syntax error, or reports it as `bad` where the
    parser finds its way again.
    """
    import pyoxigraph

    syntax = _chosen(path, options)
    base = options.get("base")
    if base is not None and not isinstance(base, str):
        raise OptionError("base= is an absolute IRI")
    place = path or Path(reading.source.location or "graph")
    if syntax in _LINES:
        yield from _by_lines(open_stream, place, reading, aloud)
        return
    row = 0
    errors = 0
    size = max(1, place.stat().st_size) if place.exists() else 1
    with open_stream() as stream, file_errors(place):
        try:
            shown: Any = stream
            if syntax == "rdfxml":
                shown = guarded_xml(stream, str(place))
            elif syntax == "jsonld":
                shown = checked_jsonld(stream, str(place))
            elif syntax in _RECOVERING:
                shown = guarded_turtle(stream, str(place), open_stream)
            parser = pyoxigraph.parse(shown, getattr(pyoxigraph.RdfFormat, SYNTAXES[syntax]), base_iri=base)
        except ValueError as error:
            raise OptionError(f"base={base!r} is not an absolute IRI: {error}") from None
        while True:
            try:
                quad = next(parser)
            except StopIteration:
                break
            except MemoryError as error:
                raise LoadError(_too_long(error), file=str(place), hint=f"it follows triple {row:,}") from None
            except SyntaxError as error:
                errors += 1
                message = _said(error)
                if reading.on_error == "raise" or syntax not in _RECOVERING or errors > _MOST_ERRORS:
                    raise LoadError(message, file=str(place), row=error.lineno, hint=_hint(message)) from None
                if aloud:
                    reading.bad(
                        f"{message}; the text is left out from there to where the next triple is recognised", row=error.lineno
                    )
                continue
            errors = 0
            row += 1
            if aloud and row % 10_000 == 0:
                reading.advance(10_000, min(1.0, _position(stream) / size))
            yield row, quad
        if aloud:
            reading.advance(row % 10_000, 1.0)


def _chosen(path: Path | None, options: Options) -> str:
    chosen = options.get("syntax")
    if chosen is not None:
        if chosen not in SYNTAXES:
            near, known = nearest(str(chosen), SYNTAXES), ", ".join(SYNTAXES)
            raise OptionError(f"there is no RDF syntax {chosen!r}", candidates=near, hint=f"one of {known}")
        return str(chosen)
    if path is None:
        return "nquads"
    syntax, _ = syntax_of(path, read_head(path))
    if syntax is None:
        raise FormatError("this is no RDF syntax that is known", file=str(path), hint=f"syntax= is one of {', '.join(SYNTAXES)}")
    return syntax


def _by_lines(
    open_stream: Callable[[], BinaryIO], place: Path, reading: Reading, aloud: bool
) -> Iterator[tuple[int, pyoxigraph.Quad]]:
    import pyoxigraph

    form = pyoxigraph.RdfFormat.N_QUADS
    size = max(1, place.stat().st_size) if place.exists() else 1
    first = 1
    with open_stream() as stream, file_errors(place):
        while True:
            data = stream.read(_BLOCK_BYTES)
            if not data:
                return
            if not data.endswith(b"\n"):
                rest = stream.readline(LONGEST_LINE)
                if len(rest) >= LONGEST_LINE:
                    raise LoadError(f"a line has more than {LONGEST_LINE:,} bytes", file=str(place))
                data += rest
            lines = data.split(b"\n")
            if data.endswith(b"\n"):
                lines.pop()
            if data.count(b"<<") > MOST_TERMS:
                _refuse_deep(lines, first, place, reading, aloud)
                data = b"\n".join(lines) + b"\n"
            rows = [at for at, line in enumerate(lines, first) if line.strip() and not line.lstrip().startswith(b"#")]
            try:
                quads = list(pyoxigraph.parse(data, form))
            except (SyntaxError, MemoryError):
                quads = []
            if len(quads) == len(rows):
                yield from zip(rows, quads, strict=True)
            else:
                yield from _line_by_line(lines, first, place, reading, aloud)
            first += len(lines)
            if aloud:
                reading.advance(len(lines), min(1.0, _position(stream) / size))


def _refuse_deep(lines: list[bytes], first: int, place: Path, reading: Reading, aloud: bool) -> None:
    """Take lines out whose triple terms lie too deep within each other for the parser."""
    for at, line in enumerate(lines):
        if too_deep(line):
            lines[at] = b""
            said = f"triple terms lie more than {MOST_TERMS} deep within each other"
            if reading.on_error == "raise":
                raise LoadError(said, file=str(place), row=first + at)
            if aloud:
                reading.bad(said, row=first + at)


def _line_by_line(
    lines: list[bytes], first: int, place: Path, reading: Reading, aloud: bool
) -> Iterator[tuple[int, pyoxigraph.Quad]]:
    import pyoxigraph

    for row, line in enumerate(lines, first):
        try:
            quads = list(pyoxigraph.parse(line + b"\n", pyoxigraph.RdfFormat.N_QUADS))
        except (SyntaxError, MemoryError) as error:
            said = _too_long(error) if isinstance(error, MemoryError) else _said(error)
            if reading.on_error == "raise":
                raise LoadError(said, file=str(place), row=row, hint=_hint(said)) from None
            if aloud:
                reading.bad(said, row=row)
            continue
        yield from ((row, quad) for quad in quads)


def _position(stream: Any) -> int:
    raw = getattr(stream, "raw_file", stream)
    return int(raw.tell())


def _too_long(error: MemoryError) -> str:
    """What is wrong with a text for which the parser's buffer is too small; raises the error again where it is
    another one.
    """
    match = re.search(r"maximal size of (\d+)", str(error))
    if match is None:
        raise error
    return f"a literal, an IRI or a comment has more than {int(match[1]) >> 20} MiB, the most that the parser reads"


def _said(error: SyntaxError) -> str:
    """What the parser says, without the place, which errors have beside it."""
    text = re.sub(r"^Parser error [^:]*: ", "", error.msg or str(error))
    column = f" (column {error.offset})" if error.offset else ""
    return f"syntax error: {text}{column}"


def _hint(said: str) -> str | None:
    if "subject of a triple must be" in said:
        return 'syntax="turtle" reads RDF-star\'s << s p o >> as a subject'
    return (
        "base= gives the IRI that relative ones start from" if "No scheme found" in said or "relative IRI" in said.lower() else None
    )
