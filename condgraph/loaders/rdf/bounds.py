"""Bounds for what the RDF parser reads: it runs in this process, and too much would end the process.

- **Entities of RDF/XML** that grow (`<!ENTITY b "&a;&a;">`, or a long one named a million times).
  Their expansion is bounded, far above the names of namespaces that OWL files declare.
- **Nested elements of RDF/XML**, for which the parser's time grows with the square.
- **Nested triple terms** (`<<( s p <<( ...`), which the parser frees recursively, on the stack.
- **Terms of JSON-LD contexts** that are built on each other, which the parser writes out.

Everything is checked once, as the parser reads it and before the parser has it.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

from condgraph.engine.errors import LoadError

# -- RDF/XML and Turtle ------------------------------------------------------------------------------


#: Bytes that all declared entities may have when they are expanded, and one declaration before its end.
MOST_DECLARED: Final = 1 << 20
#: Bytes to which entities may expand in a file: a fixed number, and one for each byte of the file.
MOST_EXPANDED: Final = 64 << 20
MOST_GROWTH: Final = 30
#: Nested elements of RDF/XML, and nested triple terms.
MOST_ELEMENTS: Final = 1_000
MOST_TERMS: Final = 100

_REFERENCE: Final = re.compile(rb"&(?!#|amp;|lt;|gt;|quot;|apos;)")
#: Text to skip; then a tag that opens or closes, or one that has begun and not ended.
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
#: Tokens of Turtle that the end of the text cuts; anything else that is no token is skipped, as by the
#: parser.
_CUT: Final = re.compile(
    rb"""\#[^\n\r]*+\Z | <[^<>"{}|^`\x00-\x20]*+\Z | "{1,2}\Z | '{1,2}\Z | (?:\"{3}|'{3}) | "(?:[^"\\\n\r]++|\\.)*+\\?\Z
        | '(?:[^'\\\n\r]++|\\.)*+\\?\Z""",
    re.VERBOSE | re.DOTALL,
).match


class Guarded:
    """A stream whose data guards check first."""

    def __init__(self, stream: BinaryIO, *guards: Callable[[bytes], None]) -> None:
        self._stream, self._guards = stream, guards

    def read(self, size: int = -1) -> bytes:
        """The next bytes; raises `LoadError` for what the parser must not read."""
        data = self._stream.read(size)
        for guard in self._guards:
            guard(data)
        return data


class Entities:
    """Bounds the entities of an RDF/XML file and their expansion."""

    def __init__(self, place: str) -> None:
        self._place, self._held = place, b""
        self._longest = self._declared = self._read = self._asked = 0

    def __call__(self, data: bytes) -> None:
        """Check the next part of the file."""
        text, at = self._held + data, 0
        self._held = b""
        while (at := text.find(b"<!ENTITY", at)) >= 0:
            end = text.find(b"<", at + 1)
            parts = text[at : end if end >= 0 else len(text)].split(b'"', 2)
            if len(parts) < 3 and end < 0 and data:
                self._held = text[at:]
                if len(self._held) > MOST_DECLARED:
                    self._refuse(f"an entity is declared by more than {MOST_DECLARED:,} bytes")
                break
            if len(parts) == 3:
                self._declare(parts[1])
            at += len(b"<!ENTITY")
        else:
            self._held = text[-7:]
        self._read += len(data)
        if self._longest:
            self._asked += len(_REFERENCE.findall(data)) * self._longest
            if self._asked > MOST_EXPANDED + MOST_GROWTH * self._read:
                self._refuse("entities (<!ENTITY ...>) are named so often that the text would be many times as long as the file")

    def _declare(self, value: bytes) -> None:
        size = len(value) + len(_REFERENCE.findall(value)) * self._longest
        self._longest = max(self._longest, size)
        self._declared += size
        if self._declared > MOST_DECLARED:
            self._refuse(f"entities (<!ENTITY ...>) that name each other become more than {MOST_DECLARED:,} bytes")

    def _refuse(self, message: str) -> None:
        raise LoadError(message, file=self._place, hint="write out what the entities stand for")


class Nesting:
    """Bounds how deep the parts of a file are nested."""

    def __init__(self, place: str, tokens: re.Pattern[bytes], step: Callable[[bytes], int], most: int, what: str) -> None:
        self._place, self._tokens, self._step, self._most, self._what = place, tokens, step, most, what
        self._held, self._again, self.depth = b"", 0, 0

    def __call__(self, data: bytes) -> None:
        """Check the next part of the file."""
        text = self._held + data
        if len(text) < self._again and data:
            # A token that has begun is checked again when there is twice as much of it.
            self._held = text
            return
        at, end = 0, len(text)
        while at < end:
            match = self._tokens.match(text, at)
            if match is None:
                break
            if match["bad"] is not None:
                at = match.start("bad")
                if self._tokens is _XML or _CUT(text, at):
                    # Begun and not ended: more of it may come; at the end of the file the parser
                    # reports it.
                    break
                at += 1
                continue
            at = match.end()
            if match["tag"] is None:
                break
            if self.depth and match["tag"].startswith(b"<!"):
                # Its declarations contain what looks like tags.
                raise LoadError("a document type (<!DOCTYPE ...>) stands within the document", file=self._place)
            self.depth = max(0, self.depth + self._step(match["tag"]))
            if self.depth > self._most:
                raise LoadError(f"{self._what} lie more than {self._most:,} deep within each other", file=self._place)
        self._held, self._again = text[at:], 2 * (end - at)


def guarded_xml(stream: BinaryIO, place: str) -> Any:
    """RDF/XML whose entities and elements are bounded."""
    return Guarded(stream, Entities(place), Nesting(place, _XML, _element, MOST_ELEMENTS, "elements"))


def _element(tag: bytes) -> int:
    return -1 if tag.startswith(b"</") else 0 if tag.startswith(b"<!") or tag.endswith(b"/>") else 1


def _term(tag: bytes) -> int:
    return 1 if tag.startswith(b"<<") else -1


class Terms:
    """Counts what may open triple terms; where there are many, checks the file from its beginning."""

    def __init__(self, place: str, again: Callable[[], BinaryIO]) -> None:
        self._place, self._again, self._seen, self._last = place, again, 0, b""

    def __call__(self, data: bytes) -> None:
        """Check the next part of the file."""
        self._seen += (self._last[-1:] + data).count(b"<<")
        self._last = data
        if self._seen <= MOST_TERMS:
            return
        self._seen = -(1 << 62)
        nesting = Nesting(self._place, _TURTLE, _term, MOST_TERMS, "triple terms")
        with self._again() as stream:
            for part in _parts(stream):
                nesting(part)


def _parts(stream: BinaryIO) -> Iterator[bytes]:
    while part := stream.read(1 << 20):
        yield part
    yield b""


def guarded_turtle(stream: BinaryIO, place: str, again: Callable[[], BinaryIO]) -> Any:
    """Turtle, TriG or N3 whose triple terms are bounded; `again` opens the same file once more."""
    return Guarded(stream, Terms(place, again))


def too_deep(line: bytes) -> bool:
    """Whether a line of N-Triples or N-Quads nests more triple terms than the parser can read."""
    if line.count(b"<<") <= MOST_TERMS:
        return False
    nesting = Nesting("", _TURTLE, _term, MOST_TERMS, "triple terms")
    try:
        nesting(line)
        nesting(b"")
    except LoadError:
        return True
    return False


# -- JSON-LD -----------------------------------------------------------------------------------------
# A context may say `"a": "http://..."`, `"b": "a:..."`, `"c": "b:..."` and so on: a few megabytes of
# such terms are gigabytes when they are expanded, which the parser does at once. So a file is read here
# first, and too long terms are a `LoadError`.


#: Bytes of a file, characters that all terms of its contexts may have, and terms of all contexts
#: with the inherited ones.
MOST_JSONLD: Final = 512 << 20
MOST_CHARACTERS: Final = 64 << 20
MOST_CONTEXT_TERMS: Final = 100_000_000

_Sizes = dict[str, int]


class _Object(list[tuple[str, Any]]):
    """The pairs of an object, in which a key may occur twice."""


def checked_jsonld(stream: BinaryIO, place: str) -> BinaryIO:
    """The same bytes, whose contexts are bounded; raises `LoadError`."""
    data = stream.read(MOST_JSONLD + 1)
    if len(data) > MOST_JSONLD:
        raise LoadError(
            f"JSON-LD is read whole, and may have {MOST_JSONLD >> 20} MiB", file=place, hint="N-Quads have no such bound"
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
        """Check a value under the terms that are defined there, with the length of each."""
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
            if self._copied > MOST_CONTEXT_TERMS:
                raise LoadError(f"contexts within others have more than {MOST_CONTEXT_TERMS:,} terms together", file=self._place)
            if self._total > MOST_CHARACTERS:
                raise LoadError(
                    f"the terms of the contexts become more than {MOST_CHARACTERS >> 20} MiB of IRIs",
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
    """The length of the IRI of a term: its own text after the IRI of its prefix, through all prefixes."""
    chain: list[str] = []
    seen: set[str] = set()
    at: str | None = key
    while at is not None and at in written and at not in seen:
        if at in sizes and at not in known:
            break
        chain.append(at)
        seen.add(at)
        at = _on(written[at], at, written, known)
    below = 0 if at is None else sizes.get(at, known.get(at, 0))
    for item in reversed(chain):
        below = sizes[item] = len(written[item]) + below + vocabulary


def _on(text: str, key: str, written: dict[str, str], known: _Sizes) -> str | None:
    """The term that an IRI is built on: the whole text, or the part before its colon."""
    for item in (text, text.partition(":")[0]):
        if item != key and (item in written or item in known):
            return item
    return None
