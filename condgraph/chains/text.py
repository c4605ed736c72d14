"""The text of a triple, and reading triples from any text.

    < Jaws -> directed by -> Steven Spielberg >
    < Nepal -> population -> 26494504 [point in time: 2011] >

Each entity and value has one text, and no two share one. A name that could be misread is quoted as JSON, with
structural characters escaped. An entity with a shared or quoted name is followed by ` #` and its id. A text value is
always quoted; another quoted value begins with `=`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from condgraph.engine.values import Value, text_of

OPEN: Final = "<"
ARROW: Final = " ->"
CLOSE: Final = " >"
#: Longest text of a triple that is read.
MAX_LENGTH: Final = 20_000
#: Structural characters, quotes, and what a tokenizer may drop or split off.
_ODD: Final = re.compile(r"""[<>\[\]"\\\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ud800-\udfff]| {2}| #|^[= #]| $|^$""")
_ESCAPED: Final = re.compile(r"[<>\[\]\x7f-\xa0\u2028\u2029\ufeff\ud800-\udfff]")


def plain(text: str) -> bool:
    """Tell whether a name is written without quotes."""
    if _ODD.search(text) is not None:
        return False
    # Tokenizers with compatibility normalisation read these as structural characters.
    return text.isascii() or _ODD.search(unicodedata.normalize("NFKC", text)) is None


def quoted(text: str) -> str:
    """Return a text as JSON, with structural characters escaped."""
    result = _ESCAPED.sub(_escape, json.dumps(text, ensure_ascii=False))
    if not result.isascii() and _ODD.search(unicodedata.normalize("NFKC", text)):
        result = _ESCAPED.sub(_escape, json.dumps(text))
    # Some tokenizers merge runs of spaces.
    return result.replace("  ", " \\u0020")


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def named(text: str) -> str:
    """Return the text of a relation, or of a qualifier's key."""
    return text if plain(text) else quoted(text)


def entity_text(name: str, ident: str, alone: bool) -> str:
    """Return the text of an entity; `alone`: no other entity has its name."""
    if alone and plain(name):
        return name
    return f"{named(name)} #{named(ident)}"


def value_text(value: Value) -> str:
    """Return the text of a value."""
    if isinstance(value, str):
        return quoted(value)
    text = text_of(value)
    return text if plain(text) else "=" + quoted(text)


def qualified(tail: str, qualifiers: list[tuple[str, str]]) -> str:
    """Return the text after the second arrow: the tail, and its qualifiers in brackets."""
    return tail + "".join(f" [{keyed(key)}: {text}]" for key, text in sorted(qualifiers))


def keyed(key: str) -> str:
    """Return the text of a qualifier's key, which a colon ends."""
    return quoted(key) if ":" in key else named(key)


def triple_text(head: str, relation: str, tail: str) -> str:
    """Return the text of a whole triple from the texts of its parts."""
    return f"{OPEN} {head}{ARROW} {relation}{ARROW} {tail}{CLOSE}"


@dataclass(frozen=True, slots=True)
class TripleText:
    """A triple in a text: its parts as written, its qualifiers, and its position.

    If it cannot be read, the parts are empty, and `problem` is the reason.
    """

    head: str
    relation: str
    tail: str
    qualifiers: tuple[tuple[str, str], ...]
    span: tuple[int, int]
    problem: str = ""


#: Quotes, escapes and the opening of a triple.
_SIGN: Final = re.compile(r'[\\"<]')
#: What ends a part, or begins quotes in it.
_STOP: Final = re.compile(r'["\[\]>]|->')
_KEY_STOP: Final = re.compile(r'[":\[\]>]|->')
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


def triples_in(text: str) -> Iterator[TripleText]:
    """Yield the triples of a text in order, in linear time.

    A `<` with an arrow on the same line begins a triple; a malformed one is returned with its `problem`. A `<` without
    an arrow is prose.
    """
    position, size = 0, len(text)
    while position < size:
        begin = text.find(OPEN, position)
        if begin < 0:
            return
        line = text.find("\n", begin, begin + MAX_LENGTH)
        end = min(size, begin + MAX_LENGTH) if line < 0 else line
        # The next `<` ends the piece, so that nothing is read twice.
        following = _next_open(text, begin + 1, end)
        piece = text[begin:following]
        result, used = _parse_triple(piece, begin)
        if result is not None:
            yield result
        position = begin + max(used, 1)


def _next_open(text: str, at: int, end: int) -> int:
    """Return the position of the next `<` outside quotes, at most `end`."""
    inside = False
    while (match := _SIGN.search(text, at, end)) is not None:
        at, sign = match.end(), match[0]
        if sign == OPEN and not inside:
            return at - 1
        if sign == '"' and (inside or text[at - 2] in " =#"):
            inside = not inside
        elif sign == "\\" and inside:
            at += 1
    return end


def _parse_triple(piece: str, begin: int) -> tuple[TripleText | None, int]:
    """Read the triple at the beginning of a piece of text; return it and its length."""
    parts: list[str] = []
    position = 1
    for _ in range(2):
        part, end = _parse_part(piece, position)
        if not piece.startswith("->", end):
            return _ill(piece, begin, "has no ' -> ' where one belongs")
        parts.append(part)
        position = end + 2
    tail, position = _parse_part(piece, position)
    qualifiers: list[tuple[str, str]] = []
    while piece.startswith("[", position):
        key, end = _parse_part(piece, position + 1, key=True)
        if not piece.startswith(":", end):
            return _ill(piece, begin, "has a bracket without ': '")
        value, end = _parse_part(piece, end + 1)
        if not piece.startswith("]", end):
            return _ill(piece, begin, "has a bracket that does not end")
        qualifiers.append((key, value))
        position = end + 1
        while piece.startswith(" ", position):
            position += 1
    if piece.startswith("->", position):
        return _ill(piece, begin, "has more than two arrows")
    if not piece.startswith(">", position):
        return _ill(piece, begin, "does not end with ' >'")
    if not all((*parts, tail)):
        return _ill(piece, begin, "has an empty part")
    return TripleText(parts[0], parts[1], tail, tuple(sorted(qualifiers)), (begin, begin + position + 1)), position + 1


def _parse_part(piece: str, at: int, *, key: bool = False) -> tuple[str, int]:
    """Read a name or value from a position; return it and where the following text begins."""
    start, part_start = at, at
    stop = _KEY_STOP if key else _STOP
    while (match := stop.search(piece, at)) is not None:
        if match[0] != '"':
            return piece[start : match.start()].strip(" "), match.start()
        # Quotes begin a part, or follow a sign that marks what they quote.
        if piece[part_start : match.start()].strip(" ") in ("", "=") or piece[match.start() - 1] == "#":
            closed = _QUOTED.match(piece, match.start())
            at = part_start = len(piece) if closed is None else closed.end()
        else:
            at, part_start = match.end(), start
    return piece[start:].strip(" "), len(piece)


def _ill(piece: str, begin: int, problem: str) -> tuple[TripleText | None, int]:
    if "->" not in piece:
        return None, len(piece)
    return TripleText("", "", "", (), (begin, begin + len(piece.rstrip())), problem), len(piece)
