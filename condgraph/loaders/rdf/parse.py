"""Parses RDF files to quads with row numbers; detects the syntax, and reports errors with file and line.

pyoxigraph does the parsing. N-Triples and N-Quads are parsed in blocks of lines, so rows are lines,
and a bad line affects only itself; in the other syntaxes a row is the number of the triple.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from condgraph.engine.errors import FormatError, LoadError, OptionError, nearest
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.files import MAX_LINE, file_errors, head_text, open_bytes, path_of, read_head, suffix_of

if TYPE_CHECKING:
    import pyoxigraph

# -- Bounds ------------------------------------------------------------------------------------------
# The input of the RDF parser is bounded, since it runs in this process and could crash it.
#
# - **Entities of RDF/XML** may grow (`<!ENTITY b "&a;&a;">`, or a long one used a million times). Their
#   expansion is bounded, far above what the namespaces of OWL files need.
# - **Nested elements of RDF/XML** take the parser quadratic time.
# - **Nested triple terms** (`<<( s p <<( ...`) are freed recursively, on the stack.
# - **Terms of JSON-LD contexts** that build on each other are expanded by the parser.
#
# Everything is checked once, just before the parser reads it.


# -- RDF/XML and Turtle ------------------------------------------------------------------------------


#: The most bytes of all declared entities after expansion, and of an unfinished declaration.
MAX_DECLARED: Final = 1 << 20
#: Entities in a file may expand to so many bytes, plus so many for each byte of the file.
MAX_EXPANDED: Final = 64 << 20
MAX_GROWTH: Final = 30
#: The deepest nesting of elements in RDF/XML, and of triple terms.
MAX_ELEMENTS: Final = 1_000
MAX_TERMS: Final = 100

_REFERENCE: Final = re.compile(rb"&(?!#|amp;|lt;|gt;|quot;|apos;)")
#: Text to skip, followed by a tag, or by an unfinished tag.
_XML: Final = re.compile(
    rb"""(?:[^<]++ | <!--(?:[^-]++|-(?!->))*+--> | <!\[CDATA\[(?:[^\]]++|\](?!\]>))*+\]\]> | <\?(?:[^?]++|\?(?!>))*+\?>
        | <!(?!--|\[|doctype)[^<>]*+>? )*+
        (?: (?P<tag> <!doctype | </[^>]*+> | <(?![/!?])[^<>"']*+(?:"[^"]*+"|'[^']*+'|[^<>"']++)*+> ) | (?P<bad><) )?""",
    re.VERBOSE | re.IGNORECASE,
)
_TURTLE: Final = re.compile(
    rb"""(?:[^"'\#<>]++ | \#[^\n\r]*+[\n\r] | "{3}(?:"{0,2}+(?:[^"\\]|\\.))*+"{3} | '{3}(?:'{0,2}+(?:[^'\\]|\\.))*+'{3}
        | "(?!"")(?:[^"\\\n\r]++|\\.)*+" | '(?!'')(?:[^'\\\n\r]++|\\.)*+' | <(?!<)[^<>"{}|^`\x00-\x20]*+> )*+
        (?: (?P<tag> <<\(? | \)?>> ) | (?P<bad>["'\#<>]) )?""",
    re.VERBOSE | re.DOTALL,
)
#: Tokens of Turtle that are cut by the end of the text; other invalid text is skipped, as the parser does.
_CUT: Final = re.compile(
    rb"""\#[^\n\r]*+\Z | <[^<>"{}|^`\x00-\x20]*+\Z | "{1,2}\Z | '{1,2}\Z | (?:\"{3}|'{3}) | "(?:[^"\\\n\r]++|\\.)*+\\?\Z
        | '(?:[^'\\\n\r]++|\\.)*+\\?\Z""",
    re.VERBOSE | re.DOTALL,
).match


class Guarded:
    """A stream whose data is first checked by guards."""

    def __init__(self, stream: BinaryIO, *guards: Callable[[bytes], None]) -> None:
        self._stream, self._guards = stream, guards

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; raises `LoadError` if the parser must not read them."""
        data = self._stream.read(size)
        for guard in self._guards:
            guard(data)
        return data


class Entities:
    """A guard that bounds the entities of an RDF/XML file and their expansion."""

    def __init__(self, place: str) -> None:
        self._place, self._pending = place, b""
        self._longest = self._declared = self._read = self._expanded = 0

    def __call__(self, data: bytes) -> None:
        """Check the next part of the file."""
        text, at = self._pending + data, 0
        self._pending = b""
        while (at := text.find(b"<!ENTITY", at)) >= 0:
            end = text.find(b"<", at + 1)
            parts = text[at : end if end >= 0 else len(text)].split(b'"', 2)
            if len(parts) < 3 and end < 0 and data:
                self._pending = text[at:]
                if len(self._pending) > MAX_DECLARED:
                    self._refuse(f"an entity is declared by more than {MAX_DECLARED:,} bytes")
                break
            if len(parts) == 3:
                self._declare(parts[1])
            at += len(b"<!ENTITY")
        else:
            self._pending = text[-7:]
        self._read += len(data)
        if self._longest:
            self._expanded += len(_REFERENCE.findall(data)) * self._longest
            if self._expanded > MAX_EXPANDED + MAX_GROWTH * self._read:
                self._refuse("entities (<!ENTITY ...>) are named so often that the text would be many times as long as the file")

    def _declare(self, value: bytes) -> None:
        size = len(value) + len(_REFERENCE.findall(value)) * self._longest
        self._longest = max(self._longest, size)
        self._declared += size
        if self._declared > MAX_DECLARED:
            self._refuse(f"entities (<!ENTITY ...>) that name each other become more than {MAX_DECLARED:,} bytes")

    def _refuse(self, message: str) -> None:
        raise LoadError(message, file=self._place, hint="write out the text of the entities")


class Nesting:
    """A guard that bounds the nesting of a file's parts."""

    def __init__(self, place: str, tokens: re.Pattern[bytes], step: Callable[[bytes], int], most: int, what: str) -> None:
        self._place, self._tokens, self._step, self._most, self._what = place, tokens, step, most, what
        self._pending, self._again, self.depth = b"", 0, 0

    def __call__(self, data: bytes) -> None:
        """Check the next part of the file."""
        text = self._pending + data
        if len(text) < self._again and data:
            # Check an unfinished token again only when there is twice as much of it.
            self._pending = text
            return
        at, end = 0, len(text)
        while at < end:
            match = self._tokens.match(text, at)
            if match is None:
                break
            if match["bad"] is not None:
                at = match.start("bad")
                if self._tokens is _XML or _CUT(text, at):
                    # An unfinished token; the rest may follow. At the end of the file the parser
                    # reports it.
                    break
                at += 1
                continue
            at = match.end()
            if match["tag"] is None:
                break
            if self.depth and match["tag"].startswith(b"<!"):
                # Its declarations would be mistaken for tags.
                raise LoadError("a document type (<!DOCTYPE ...>) appears within the document", file=self._place)
            self.depth = max(0, self.depth + self._step(match["tag"]))
            if self.depth > self._most:
                raise LoadError(f"{self._what} are nested more than {self._most:,} deep", file=self._place)
        self._pending, self._again = text[at:], 2 * (end - at)


def guarded_xml(stream: BinaryIO, place: str) -> Any:
    """Return a stream of RDF/XML with bounded entities and elements."""
    return Guarded(stream, Entities(place), Nesting(place, _XML, _element, MAX_ELEMENTS, "elements"))


def _element(tag: bytes) -> int:
    return -1 if tag.startswith(b"</") else 0 if tag.startswith(b"<!") or tag.endswith(b"/>") else 1


def _term(tag: bytes) -> int:
    return 1 if tag.startswith(b"<<") else -1


class Terms:
    """A guard that counts possible triple terms; if there are many, it checks the file from its start."""

    def __init__(self, place: str, again: Callable[[], BinaryIO]) -> None:
        self._place, self._again, self._seen, self._last = place, again, 0, b""

    def __call__(self, data: bytes) -> None:
        """Check the next part of the file."""
        self._seen += (self._last[-1:] + data).count(b"<<")
        self._last = data
        if self._seen <= MAX_TERMS:
            return
        self._seen = -(1 << 62)
        nesting = Nesting(self._place, _TURTLE, _term, MAX_TERMS, "triple terms")
        with self._again() as stream:
            for part in _parts(stream):
                nesting(part)


def _parts(stream: BinaryIO) -> Iterator[bytes]:
    while part := stream.read(1 << 20):
        yield part
    yield b""


def guarded_turtle(stream: BinaryIO, place: str, again: Callable[[], BinaryIO]) -> Any:
    """Return a stream of Turtle, TriG or N3 with bounded triple terms; `again` reopens the file."""
    return Guarded(stream, Terms(place, again))


def too_deep(line: bytes) -> bool:
    """Whether a line of N-Triples or N-Quads nests too many triple terms for the parser."""
    if line.count(b"<<") <= MAX_TERMS:
        return False
    nesting = Nesting("", _TURTLE, _term, MAX_TERMS, "triple terms")
    try:
        nesting(line)
        nesting(b"")
    except LoadError:
        return True
    return False


# -- JSON-LD -----------------------------------------------------------------------------------------
# A context may define `"a": "http://..."`, `"b": "a:..."`, `"c": "b:..."` and so on: a few megabytes of
# such terms expand to gigabytes, which the parser does at once. So the file is checked here first, and
# terms that are too long raise `LoadError`.


#: The most bytes of a file, characters of all terms of its contexts, and terms of all contexts
#: including inherited ones.
MAX_JSONLD: Final = 512 << 20
MAX_CHARACTERS: Final = 64 << 20
MAX_CONTEXT_TERMS: Final = 100_000_000

_Sizes = dict[str, int]


class _Object(list[tuple[str, Any]]):
    """The pairs of an object, with repeated keys."""


def checked_jsonld(stream: BinaryIO, place: str) -> BinaryIO:
    """Return the bytes after checking their contexts; raises `LoadError`."""
    data = stream.read(MAX_JSONLD + 1)
    if len(data) > MAX_JSONLD:
        raise LoadError(
            f"JSON-LD is read whole, and may have {MAX_JSONLD >> 20} MiB", file=place, hint="N-Quads have no such limit"
        )
    try:
        _Contexts(place).look(json.loads(data, object_pairs_hook=_Object, parse_int=str, parse_float=str), {})
    except json.JSONDecodeError as error:
        raise LoadError(f"syntax error: {error.msg} (column {error.colno})", file=place, row=error.lineno) from None
    except UnicodeDecodeError:
        raise LoadError("syntax error: this is not UTF-8", file=place) from None
    except RecursionError:
        raise LoadError("the source is nested too deeply", file=place) from None
    return io.BytesIO(data)


class _Contexts:
    def __init__(self, place: str) -> None:
        self._place, self._total, self._copied = place, 0, 0

    def look(self, value: Any, known: _Sizes) -> None:
        """Check a value, given the lengths of the terms that are defined there."""
        if isinstance(value, _Object):
            for key, context in value:
                if key == "@context":
                    known = self._within(context, known)
            for key, inner in value:
                if key != "@context":
                    self.look(inner, known)
        elif isinstance(value, list):
            for inner in value:
                self.look(inner, known)

    def _within(self, context: Any, known: _Sizes) -> _Sizes:
        if isinstance(context, _Object):
            written = {key: _iri(value) or key for key, value in context}
            sizes = dict(known)
            vocabulary = max((len(text) for key, text in written.items() if key in ("@vocab", "@base")), default=0)
            for key in written:
                _size(key, written, known, sizes, vocabulary)
            self._total += sum(sizes[key] for key in written)
            self._copied += len(sizes)
            if self._copied > MAX_CONTEXT_TERMS:
                raise LoadError(f"contexts within others have more than {MAX_CONTEXT_TERMS:,} terms together", file=self._place)
            if self._total > MAX_CHARACTERS:
                raise LoadError(
                    f"the terms of the contexts become more than {MAX_CHARACTERS >> 20} MiB of IRIs",
                    file=self._place,
                    hint="terms are built on each other; write their IRIs out",
                )
            for _, value in context:
                self.look(value, sizes)
            return sizes
        if isinstance(context, list):
            for item in context:
                known = self._within(item, known)
        return known


def _iri(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return (
        next((item for key, item in value if key == "@id" and isinstance(item, str)), None) if isinstance(value, _Object) else None
    )


def _size(key: str, written: dict[str, str], known: _Sizes, sizes: _Sizes, vocabulary: int) -> None:
    """Compute the length of a term's IRI, through all its prefixes."""
    chain: list[str] = []
    visited: set[str] = set()
    at: str | None = key
    while at is not None and at in written and at not in visited:
        if at in sizes and at not in known:
            break
        chain.append(at)
        visited.add(at)
        at = _on(written[at], at, written, known)
    length = 0 if at is None else sizes.get(at, known.get(at, 0))
    for item in reversed(chain):
        length = sizes[item] = len(written[item]) + length + vocabulary


def _on(text: str, key: str, written: dict[str, str], known: _Sizes) -> str | None:
    """Return the term that an IRI builds on: the whole text, or the part before its colon."""
    for item in (text, text.partition(":")[0]):
        if item != key and (item in written or item in known):
            return item
    return None


# -- Files as quads ----------------------------------------------------------------------------------


#: The values of `syntax=`, with the attributes of `pyoxigraph.RdfFormat`. N-Triples are N-Quads
#: without graphs.
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
#: Syntaxes whose parser recovers after an error.
_RECOVERING: Final = frozenset({"turtle", "trig", "n3"})
_BLOCK_BYTES: Final = 4_000_000
#: After so many consecutive errors, reading stops.
_MAX_ERRORS: Final = 1000

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
    """Whether a line is a triple about a quoted triple, `<< s p o >> p o .`; takes linear time."""
    begin = _STAR_BEGIN(line)
    middle = None if begin is None else _STAR_MIDDLE(line, begin.end())
    return middle is not None and _STAR_END(line, middle.end()) is not None


def open_source(source: Any) -> tuple[Callable[[], BinaryIO], Path | None]:
    """Return a function that opens a source for each pass, and its path or None.

    An rdflib graph is read through its own N-Quads.
    """
    if not is_graph_object(source):
        path = path_of(source)
        return (lambda: open_bytes(path)), path
    import io

    form = "nquads" if getattr(source, "context_aware", False) else "nt"
    data = source.serialize(format=form, encoding="utf-8")
    return (lambda: io.BytesIO(data)), None


def is_graph_object(source: Any) -> bool:
    """Whether a Python object is an rdflib graph or data set, without importing rdflib."""
    return any(kind.__module__.startswith("rdflib.") and kind.__name__ == "Graph" for kind in type(source).__mro__)


def syntax_of(path: Path, head: bytes) -> tuple[str | None, int]:
    """Return the syntax of a file by its first bytes, or else by its extension, with a certainty of 0 to 100."""
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
        # N-Triples of RDF-star, which are valid Turtle in RDF 1.2.
        return "turtle", 95
    if lines and sum(_QUAD_LINE(line.rstrip("\r")) is not None for line in lines) >= 0.75 * len(lines):
        return ("ntriples" if extension == "ntriples" else "nquads"), 95
    if _DIRECTIVE(start):
        return (extension if extension in _RECOVERING else "trig"), 95
    return extension, 60 if extension is not None and start else 0


def quads(
    open_stream: Callable[[], BinaryIO], path: Path | None, reading: Reading, options: Options, *, aloud: bool
) -> Iterator[tuple[int, pyoxigraph.Quad]]:
    """Yield the quads of a source with their rows; only the pass with `aloud` reports problems and progress.

    Raises `LoadError` with file and line for a syntax error, or reports it as `bad` if the parser
    recovers.
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
            guarded: Any = stream
            if syntax == "rdfxml":
                guarded = guarded_xml(stream, str(place))
            elif syntax == "jsonld":
                guarded = checked_jsonld(stream, str(place))
            elif syntax in _RECOVERING:
                guarded = guarded_turtle(stream, str(place), open_stream)
            parser = pyoxigraph.parse(guarded, getattr(pyoxigraph.RdfFormat, SYNTAXES[syntax]), base_iri=base)
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
                message = _message(error)
                if reading.on_error == "raise" or syntax not in _RECOVERING or errors > _MAX_ERRORS:
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
            raise OptionError(f"unknown RDF syntax {chosen!r}", candidates=near, hint=f"one of {known}")
        return str(chosen)
    if path is None:
        return "nquads"
    syntax, _ = syntax_of(path, read_head(path))
    if syntax is None:
        raise FormatError("the RDF syntax is not recognised", file=str(path), hint=f"syntax= is one of {', '.join(SYNTAXES)}")
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
                end_of_line = stream.readline(MAX_LINE)
                if len(end_of_line) >= MAX_LINE:
                    raise LoadError(f"a line has more than {MAX_LINE:,} bytes", file=str(place))
                data += end_of_line
            lines = data.split(b"\n")
            if data.endswith(b"\n"):
                lines.pop()
            if data.count(b"<<") > MAX_TERMS:
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
    """Blank out lines whose triple terms are nested too deeply for the parser."""
    for at, line in enumerate(lines):
        if too_deep(line):
            lines[at] = b""
            message = f"triple terms are nested more than {MAX_TERMS} deep"
            if reading.on_error == "raise":
                raise LoadError(message, file=str(place), row=first + at)
            if aloud:
                reading.bad(message, row=first + at)


def _line_by_line(
    lines: list[bytes], first: int, place: Path, reading: Reading, aloud: bool
) -> Iterator[tuple[int, pyoxigraph.Quad]]:
    import pyoxigraph

    for row, line in enumerate(lines, first):
        try:
            quads = list(pyoxigraph.parse(line + b"\n", pyoxigraph.RdfFormat.N_QUADS))
        except (SyntaxError, MemoryError) as error:
            message = _too_long(error) if isinstance(error, MemoryError) else _message(error)
            if reading.on_error == "raise":
                raise LoadError(message, file=str(place), row=row, hint=_hint(message)) from None
            if aloud:
                reading.bad(message, row=row)
            continue
        yield from ((row, quad) for quad in quads)


def _position(stream: Any) -> int:
    raw = getattr(stream, "raw_file", stream)
    return int(raw.tell())


def _too_long(error: MemoryError) -> str:
    """Return the message for an error of the parser's buffer; raises other errors again."""
    match = re.search(r"maximal size of (\d+)", str(error))
    if match is None:
        raise error
    return f"a literal, an IRI or a comment has more than {int(match[1]) >> 20} MiB, the most that the parser reads"


def _message(error: SyntaxError) -> str:
    """Return the parser's message without the position, which the error has separately."""
    text = re.sub(r"^Parser error [^:]*: ", "", error.msg or str(error))
    column = f" (column {error.offset})" if error.offset else ""
    return f"syntax error: {text}{column}"


def _hint(text: str) -> str | None:
    if "subject of a triple must be" in text:
        return 'syntax="turtle" reads RDF-star\'s << s p o >> as a subject'
    return (
        "base= gives the IRI that relative ones start from" if "No scheme found" in text or "relative IRI" in text.lower() else None
    )
