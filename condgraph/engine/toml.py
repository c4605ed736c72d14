"""Reading of untrusted TOML files with `tomllib`, in time linear in their size.

The parser of the standard library takes quadratic time in the parts of a dotted key (`a.a.a = 1`), and raises plain
errors for numbers of thousands of digits and for brackets nested too deep.
"""

from __future__ import annotations

import os
import re
import tomllib
from typing import Any, Final

from condgraph.engine.errors import OptionError, SourceError

#: The largest mapping file that is read, in bytes.
MAX_BYTES: Final = 4 * 2**20

#: The most parts of a key.
MAX_KEY_PARTS: Final = 64
#: A complete string or comment, whose points separate no parts of keys; a part of a key with the point after it; anything else.
_TOKEN: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:""")?+|\'\'\'(?:[^\']|\'(?!\'\'))*+(?:\'\'\')?+|#[^\n]*+'
    r'|(?P<part>(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\')[ \t]*+\.[ \t]*+)'
    r'|"(?:[^"\\\n]|\\.)*+"?+|\'[^\'\n]*+\'?+|[\w-]++|.',
    re.DOTALL,
)


def read_toml(text: str) -> dict[str, Any]:
    """Return the tables of a text; raise `ValueError` if it is not TOML, or if a key has more than `MAX_KEY_PARTS`
    parts.

    >>> read_toml("a.b = 1")
    {'a': {'b': 1}}
    """
    parts = 0
    for piece in _TOKEN.finditer(text):
        parts = parts + 1 if piece.lastgroup else 0
        if parts > MAX_KEY_PARTS:
            line = text.count("\n", 0, piece.start()) + 1
            raise ValueError(f"the key in line {line} has more than {MAX_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its brackets are nested too deep") from None


def read_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the contents of a mapping file; raise `SourceError` if it cannot be read, `OptionError` if it is not
    TOML.
    """
    place = os.fspath(path)
    try:
        with open(place, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceError(f"the mapping file {place} cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise OptionError(f"the mapping file {place} has more than {MAX_BYTES:,} bytes")
    try:
        return read_toml(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise OptionError(f"the mapping file {place} is not UTF-8") from None
    except ValueError as error:
        raise OptionError(f"the mapping file {place} is not TOML: {error}") from None
