"""The tokens of a Cypher text, in time linear in its length; what versions of a server may read
differently is refused.

A server decodes `\\uXXXX` before it looks for tokens, so that an escape may be a quote, or part of
a word (seen on 5.26 and 2026.x, in Cypher 5 and 25). A text with escapes is therefore read as it
stands and as it is decoded, and an escape may stand within quotes alone.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from typing import Final, NoReturn

from condgraph.engine.errors import ReadOnlyError

WORD, NAME, STRING, NUMBER, MARK = "word", "name", "string", "number", "mark"
# `/*/` begins a comment; what reads the words before a query on 5.26 loses its way there, so that
# it is refused.
#: What a server takes for space. Other invisible characters are parts of names to some versions.
_SPACE: Final = "\\t-\\r\\x1c-\\x20\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
_TOKEN: Final = re.compile(
    rf"""(?P<space>[{_SPACE}]++|//[^\n\r]*+|/\*(?!/).*?\*/)
    |(?P<word>[^\W\d]\w*+)
    |(?P<string>'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")
    |(?P<name>`[^`]*+(?:``[^`]*+)*+`)
    |(?P<number>(?:0[xX][0-9a-fA-F_]++|0[oO][0-7_]++|[0-9][0-9_]*+(?:\.[0-9][0-9_]*+)?(?:[eE][+-]?[0-9]++)?)[fFdD]?)
    |(?P<open>/\*|['"`])
    |(?P<mark>[-()\[\]{{}}<>=+*/%^.,:;|&!?~$])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:\\|u([0-9a-fA-F]{4}))")
_ANY_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
#: What an error shows of a word, and says about it.
_LONG: Final = 200
_OPEN: Final = {"'": "a string", '"': "a string", "`": "a name in backticks", "/*": "a comment"}


class Tokens:
    """What a text consists of, without space and comments: `kinds`, `values` and `starts`, side by
    side.

    The value of a word is in small letters, that of a name in backticks is what it names, that of a
    string is empty.
    """

    def __init__(self, text: str, shifts: list[int] | None = None) -> None:
        """`shifts` are the places of decoded escapes, so that errors say where in the text as it
        was written.
        """
        self._text, self._shifts = text, shifts or []
        self.kinds: list[str] = []
        self.values: list[str] = []
        self.starts: list[int] = []
        behind = 0
        for found in _TOKEN.finditer(text):
            kind, start = found.lastgroup, found.start()
            if kind == "space":
                continue
            value = found[0]
            if kind == WORD:
                value = value.upper().casefold()
                if behind == start and start and self.kinds[-1] in (NUMBER, NAME):
                    self.refuse(start, f"{found[0]!r} follows {text[self.starts[-1] : start]!r} without a space")
            elif kind == NAME:
                value = value[1:-1].replace("``", "`")
            elif kind == STRING:
                if behind == start and start and self.kinds[-1] in (WORD, NAME):
                    # In Cypher 25 s'...{expression}...' computes what stands in the braces.
                    self.refuse(start, f"a string right after {text[self.starts[-1] : start]!r}", hint="write a space before it")
                value = ""
            elif kind == "open":
                self.refuse(start, f"{_OPEN[value]} begins here and does not end")
            elif text.startswith("\\u", start):
                self.refuse(start, "a '\\u' escape outside of quotes")
            elif kind == "other":
                self.refuse(start, f"the character U+{ord(value):04X} outside of quotes")
            elif value == "$" and behind == start and start and self.kinds[-1] in (WORD, NAME, NUMBER):
                self.refuse(start, "'$' within a word", hint="write a space before it")
            self.kinds.append(str(kind))
            self.values.append(value)
            self.starts.append(start)
            behind = found.end()

    def mark(self, at: int) -> str:
        """The mark at a place, or nothing."""
        return self.values[at] if 0 <= at < len(self.kinds) and self.kinds[at] == MARK else ""

    def word(self, at: int) -> str:
        """The word at a place, or nothing."""
        return self.values[at] if 0 <= at < len(self.kinds) and self.kinds[at] == WORD else ""

    def written(self, at: int) -> str:
        """The word at a place with its capital letters."""
        found = _TOKEN.match(self._text, self.starts[at])
        return found[0] if found else ""

    def named(self, at: int) -> bool:
        """Whether a word or a name in backticks stands at a place."""
        return 0 <= at < len(self.kinds) and self.kinds[at] in (WORD, NAME)

    def refuse(self, start: int, what: str, *, hint: str | None = None) -> NoReturn:
        """Raise the error, with its place in the text as it was written."""
        what = what if len(what) <= _LONG else f"{what[:_LONG]}..."
        start += 5 * bisect_left(self._shifts, start)
        raise ReadOnlyError(f"the query may do more than read: {what}", span=(start, start + 1), hint=hint)


def readings(text: str) -> list[Tokens]:
    """The text as it stands and, where it has escapes, as it may be decoded; raises `ReadOnlyError`
    for what cannot be read.
    """
    if not text.isascii():
        for at, letter in enumerate(text):
            if "\ud800" <= letter <= "\udfff":
                raise ReadOnlyError("the query has half a character in it", span=(at, at + 1))
        # Marks over letters are parts of words.
        text = "".join("_" if unicodedata.category(letter) in ("Mn", "Mc") else letter for letter in text)
    found = [Tokens(text)]
    if "\\u" in text:
        _only_in_quotes(text, found[0])
        found += [Tokens(*_decoded(text, _ESCAPE)), Tokens(*_decoded(text, _ANY_ESCAPE))]
    return found


def _only_in_quotes(text: str, tokens: Tokens) -> None:
    """Refuse an escape in a word, a comment or between tokens: no person needs one there."""
    # In order, so that one pass is enough.
    quoted = [found.span() for found in _TOKEN.finditer(text) if found.lastgroup in (STRING, NAME)]
    at = 0
    for escape in re.finditer(r"\\u", text):
        while at < len(quoted) and quoted[at][1] <= escape.start():
            at += 1
        if at == len(quoted) or quoted[at][0] > escape.start():
            tokens.refuse(escape.start(), "a '\\u' escape outside of quotes")


def _decoded(text: str, escapes: re.Pattern[str]) -> tuple[str, list[int]]:
    parts, shifts, behind, length = [], [], 0, 0
    for found in escapes.finditer(text):
        if not found[1]:
            continue
        parts += [text[behind : found.start()], chr(int(found[1], 16))]
        length += found.start() - behind + 1
        behind = found.end()
        shifts.append(length - 1)
    parts.append(text[behind:])
    return "".join(parts), shifts
