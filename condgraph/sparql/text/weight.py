"""Whether a query is too much for a parser that runs in this process.

Oxigraph parses, plans and frees a query one part within the other, on the stack: some hundred
groups within each other, or some thousand patterns in a row, end the process. Such queries run in a
process of their own, which may end.
"""

from __future__ import annotations

import re
from typing import Final

from condgraph.engine.errors import ParseError

#: Brackets within each other, and parts in a row, that a query in this process may have.
MOST_DEPTH: Final = 50
MOST_PARTS: Final = 600
#: Objects of one predicate; and characters of a list that is looked at more closely.
MOST_ITEMS: Final = 2_000
_LONG_LIST: Final = 4_000
#: Characters of an IRI of a query: a prefix of a megabyte is a megabyte wherever it stands.
LONGEST_IRI: Final = 65_536

_OPENING, _CLOSING = "([{", ")]}"
#: Parts: brackets, signs of arithmetic and logic, ends of patterns. What stands in strings, IRIs,
#: names and comments is none.
_PARTS: Final = re.compile(
    r"""(?: [^"'\#<?$@:\w\\(){}\[\].;,!|&+*/^=>-]++ | \#[^\n\r]*+ | <[^<>"{}|^`\\\x00-\x20]*+>
        | "{3}(?:"{0,2}+(?:[^"\\]|\\.))*+(?:"{3})?+ | '{3}(?:'{0,2}+(?:[^'\\]|\\.))*+(?:'{3})?+
        | "(?:[^"\\\n\r]|\\.)*+"?+ | '(?:[^'\\\n\r]|\\.)*+'?+ | [?$@]?\w++(?:[.-]\w++)*+
        | :(?:[\w:%]++|\\.)?+(?:[.-]?[\w:%]++|\\.)*+
        | [?$@\\,=>] )*+
        (?P<part>.)?""",
    re.VERBOSE | re.DOTALL,
)
#: Terms with a comma behind each but the last, as `IN` has them; other long lists are collections,
#: each a part of the one before.
_LISTED: Final = re.compile(
    r"""(?:\s*+(?:[^\s,"'<>()]++|<[^<>\s]*+>|"(?:[^"\\\n\r]|\\.)*+"|'(?:[^'\\\n\r]|\\.)*+')++\s*+(?:,|\Z))*+\s*+\Z""", re.VERBOSE
).match
_IRIS: Final = re.compile(rf'<[^<>"{{}}|^`\\\x00-\x20]{{{LONGEST_IRI}}}').search


def is_heavy(text: str) -> bool:
    """Whether a query has so many parts, or so many within each other, that it does not run in this
    process.

    Raises `ParseError` for an IRI of more than `LONGEST_IRI` characters.
    """
    if len(text) > LONGEST_IRI and (found := _IRIS(text)) is not None:
        raise ParseError(f"an IRI may have {LONGEST_IRI:,} characters", span=found.span())
    if len(text) <= _LONG_LIST and sum(map(text.count, "([{.;!|&+*/^-<")) <= MOST_DEPTH:
        return False
    depth = parts = at = 0
    last = ""
    while (found := _PARTS.match(text, at)) is not None and (part := found["part"]) is not None:
        begin, at = at, found.end()
        if at - begin > _LONG_LIST:
            listed = last == "(" and _LISTED(text[begin : at - 1]) is not None
            if not listed and (last == "(" or text.count(",", begin, at) > MOST_ITEMS):
                return True
        last = part
        parts += 1
        depth += (part in _OPENING) - (part in _CLOSING)
        if parts > MOST_PARTS or depth > MOST_DEPTH:
            return True
    return False
