"""Encodings of text: which there are, what a byte order mark says, and what bytes without one seem to be."""

from __future__ import annotations

import codecs
import re
from typing import Final

from condgraph.engine.errors import OptionError

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def known_encoding(encoding: str) -> str:
    """The canonical name of a text encoding; raises `OptionError` when there is none of this name."""
    try:
        info = codecs.lookup(encoding)
    except (LookupError, ValueError, TypeError):
        raise OptionError(f"{encoding!r} is not a text encoding", hint="utf-8, utf-16, latin-1 and cp1252 are common") from None
    # Codecs such as base64 turn bytes into bytes; only text encodings will do.
    if not getattr(info, "_is_text_encoding", True):
        raise OptionError(f"{encoding!r} is not a text encoding", hint="utf-8, utf-16, latin-1 and cp1252 are common")
    return info.name


def marked_encoding(head: bytes) -> str | None:
    """The encoding that a byte order mark at the start of a file says, or None."""
    return next((name for mark, name in _MARKS if head.startswith(mark)), None)


#: Bytes that cp1252 has no character for, and that no text of it has.
_NOT_CP1252: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\x81\x8d\x8f\x90\x9d]")
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")
_UTF8_SEQUENCE: Final = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def guessed_encoding(data: bytes) -> str | None:
    """The encoding of a text that is no UTF-8 and has no byte order mark, from its first bytes: a
    kind of UTF-16, or cp1252. None where it is UTF-8, damaged UTF-8, or no text.
    """
    if marked_encoding(data) is not None or not data:
        return None
    even, odd = data[0:4096:2].count(0), data[1:4096:2].count(0)
    half = max(1, min(len(data), 4096) // 2)
    for zeros, others, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros * 2 > half and others * 20 < half and len(data) > 7:
            try:
                codecs.getincrementaldecoder(name)().decode(data)
            except UnicodeError:
                return None
            return name
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeError:
        pass
    else:
        return None
    if _NOT_CP1252.search(data):
        return None
    # A text with a damaged character here and there has many that are whole.
    whole = len(_UTF8_SEQUENCE.findall(data))
    beyond = len(_BEYOND_ASCII.findall(data))
    return "cp1252" if whole * 4 <= beyond else None
