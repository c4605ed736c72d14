"""TOML files that may be foreign: what `tomllib` reads, in time that
is linear in the size.

The parser of the standard library takes the square of the parts of a dotted key (`a.a.a = 1`), and
gives plain errors for numbers of thousands of digits and for brackets without end.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

#: Parts that a key may have.
MOST_PARTS: Final = 64
#: Strings and comments whole, so that points in them are no parts of keys; a part of a key with the
#: point behind it; anything else.
_PIECE: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:""")?+|\'\'\'(?:[^\']|\'(?!\'\'))*+(?:\'\'\')?+|#[^\n]*+'
    r'|(?P<part>(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\')[ \t]*+\.[ \t]*+)'
    r'|"(?:[^"\\\n]|\\.)*+"?+|\'[^\'\n]*+\'?+|[\w-]++|.',
    re.DOTALL,
)


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a text. Raises `ValueError` for what is no TOML, or has a key of more than
    `MOST_PARTS` parts.

    >>> read_toml("a.b = 1")
    {'a': {'b': 1}}
    """
    parts = 0
    for piece in _PIECE.finditer(text):
        parts = parts + 1 if piece.lastgroup else 0
        if parts > MOST_PARTS:
            line = text.count("\n", 0, piece.start()) + 1
            raise ValueError(f"the key in line {line} has more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its brackets are nested too deep") from None
