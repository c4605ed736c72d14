"""The words of a table clause. One pass over the text; every character is in one token."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from condgraph.engine.errors import ParseError

#: Characters that a clause may have.
LONGEST: Final = 20_000
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
    |(?P<name>"[^"]*"|`[^`]*`)
    |(?P<text>'(?:[^']|'')*')
    |(?P<date>[+-]?\d{4}-\d\d(?:-\d\d(?:T\d\d:\d\d(?::\d\d)?)?)?(?![\w-]))
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w))
    |(?P<word>[^\W\d]\w*|[$€£¥₹%°]\w*)
    |(?P<sign><=|>=|!=|<>|==|[-+*/(),.^@=<>])""",
    re.VERBOSE,
)
#: Words that end a name.
RESERVED: Final = frozenset(
    (
        *("group", "by", "show", "select", "where", "having", "order", "limit", "offset", "with", "ties", "and", "or", "not"),
        *("as", "asc", "desc", "ascending", "descending", "is", "in", "missing", "known", "null", "distinct"),
    )
)


class Token(NamedTuple):
    """A token: its kind ("name", "text", "date", "number", "word", "sign", "end"), what it says, and
    where it stands.
    """

    kind: str
    text: str
    start: int
    end: int

    def reserved(self) -> str:
        """The reserved word that it is, in small letters; "" for others."""
        found = self.text.casefold()
        return found if self.kind == "word" and found in RESERVED else ""


def tokens_of(text: str) -> list[Token]:
    """The tokens of a clause; raises `ParseError` for a character that has no place in one."""
    if len(text) > LONGEST:
        raise ParseError(f"a table clause of {len(text):,} characters is too long", hint=f"at most {LONGEST:,}")
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            quote = text[at] in "\"'`"
            hint = "a quoted text ends with the sign it begins with" if quote else "a name with other signs is put in double quotes"
            raise ParseError(f"{text[at]!r} has no meaning in a table clause", span=(at, at + 1), hint=hint)
        kind, said = str(match.lastgroup), match[0]
        if kind == "name":
            said = said[1:-1]
        elif kind == "text":
            said = said[1:-1].replace("''", "'")
        if kind != "space":
            found.append(Token(kind, said, at, match.end()))
        at = match.end()
    found.append(Token("end", "", len(text), len(text)))
    return found
