"""Marks of code around a program, as people copy it from a chat or a page: they are no part of it."""

from __future__ import annotations

import re
from typing import Final

_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*$", re.MULTILINE)
#: What a program of one piece begins with, so that words around it can be told from it.
_BEGINS: Final = re.compile(r"\s*[^\W\d]\w*[ \t]*\(")
_HEADER: Final = re.compile(r"^[ \t>*_`#-]*(?:Step|Query)[ \t]*\d", re.IGNORECASE | re.MULTILINE)


def unfenced(text: str) -> str:
    """A program without the marks of code around it, and without the words around these where it is
    one call after the other. What is left out becomes spaces, so that everything keeps its place.

    >>> unfenced("~~~" + chr(10) + "Find(Nepal)" + chr(10) + "~~~").split()
    ['Find(Nepal)']
    """
    if "```" not in text and "~~~" not in text:
        return text
    marks = [found.span() for found in _FENCE.finditer(text)]
    if not marks:
        return text
    start, stop = marks[0][1], marks[1][0] if len(marks) > 1 else len(text)
    inside = text[start:stop]
    if len(marks) <= 2 and _BEGINS.match(inside) and not _HEADER.search(text):
        return _blank(text[:start]) + inside + _blank(text[stop:])
    parts, at = [], 0
    for begin, end in marks:
        parts += [text[at:begin], _blank(text[begin:end])]
        at = end
    return "".join([*parts, text[at:]])


def _blank(text: str) -> str:
    return "".join("\n" if c == "\n" else " " for c in text)
