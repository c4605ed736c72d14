"""Serialised results as they leave a worker: cut after a number of rows, without reading them
again.

A serialiser writes blocks of bytes; each class here takes those of one format, passes them on, and
where the limit is reached ends the document behind the last row that is wanted. `process` uses it;
like that, it imports the standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice


class CutError(Exception):
    """The limit of rows is reached, and there is another row; carries the rest of the document."""

    def __init__(self, tail: bytes) -> None:
        super().__init__()
        self.tail = tail


class UnwritableError(Exception):
    """The results cannot be said in the format that was asked for."""


class Plain:
    """Passes blocks of serialised results on."""

    def feed(self, block: bytes) -> bytes:
        """What of a block, and of what was held back, is sent on; raises `CutError` at the limit."""
        return block

    def rest(self) -> bytes:
        """What is held back at the end."""
        return b""


class Nothing(Plain):
    """Takes what a serialiser still has in its buffer when it is stopped."""

    def feed(self, block: bytes) -> bytes:
        """Pass a block on."""
        return b""


class Lines(Plain):
    """Cuts TSV, whose rows are lines whatever stands in them, after `limit` rows below the header."""

    def __init__(self, limit: int) -> None:
        self.left = limit + 1

    def lines(self, block: bytes) -> int:
        """How many rows end in a block."""
        return block.count(b"\n")

    def place(self, block: bytes, number: int) -> int:
        """Where row `number` (1 for the first that ends in the block) ends."""
        at = -1
        for _ in range(number):
            at = block.index(b"\n", at + 1)
        return at + 1

    def feed(self, block: bytes) -> bytes:
        """Pass a block on."""
        if self.left == 0 and block:
            raise CutError(b"")
        count = self.lines(block)
        if count < self.left:
            self.left -= count
            return block
        end = self.place(block, self.left)
        self.left = 0
        if end < len(block):
            raise CutError(block[:end])
        return block


class Quoted(Lines):
    """Cuts CSV, where a line within quotes ends no row."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.inside = False

    def lines(self, block: bytes) -> int:
        """How many rows end in a block."""
        self.began_inside = self.inside
        parts = block.split(b'"')
        outside = parts[1::2] if self.inside else parts[::2]
        self.inside ^= len(parts) % 2 == 0
        return sum(part.count(b"\n") for part in outside)

    def place(self, block: bytes, number: int) -> int:
        """Where row `number` (1 for the first that ends in the block) ends."""
        inside = self.began_inside
        for found in re.finditer(rb'["\n]', block):
            if found[0] == b'"':
                inside = not inside
            elif not inside:
                number -= 1
                if not number:
                    return found.end()
        raise AssertionError("fewer rows than were counted")


class Marked(Plain):
    """Cuts XML before the row behind the last wanted: `<` is written for markup only."""

    def __init__(self, limit: int) -> None:
        self.left, self.held = limit, b""

    def feed(self, block: bytes) -> bytes:
        """Pass a block on."""
        data = self.held + block
        end = data.rfind(b"<", max(0, len(data) - 8))
        self.held, data = (b"", data) if end < 0 else (data[end:], data[:end])
        count = data.count(b"<result>")
        if count <= self.left:
            self.left -= count
            return data
        at = -1
        for _ in range(self.left + 1):
            at = data.index(b"<result>", at + 1)
        raise CutError(data[:at] + b"</results></sparql>")

    def rest(self) -> bytes:
        """What is held back."""
        return self.held


#: A string, also one that goes on behind the block; and an escaped character of one.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_STRING_OR_BOUNDARY = re.compile(_STRING + rb"|\},\{", re.S)
_ESCAPED = re.compile(rb"\\.", re.S)
#: A boundary, and what may be one.
_BOUNDARIES = re.compile(rb'\},\{(?:"[^,}]|\})').findall
_DOUBTFUL = b"},{}"
#: What may be the beginning of a boundary, at the end of a block.
_BEGUN = (b'},{"', b"},{", b"},", b"}")


class Braced(Plain):
    """Cuts JSON: outside strings, `},{` stands between rows and nowhere else.

    Where the next row has a variable, its name follows in quotes. Behind a quote that ends a string
    is `,` or `}`, with which no name begins: so `},{"` with another character behind it is a boundary
    wherever it stands, and `},{` with anything else behind it is none, but for rows of no variable,
    `},{}`. Only blocks with that are read string by string, which takes as long as writing them.
    """

    def __init__(self, limit: int) -> None:
        self.left, self.held = limit, b""
        #: Whether what is held back stands within a string.
        self.inside = False

    def feed(self, block: bytes) -> bytes:
        """Pass a block on."""
        data = self.held + block if self.held else block
        end = len(data)
        for begun in _BEGUN:
            if data.endswith(begun):
                end -= len(begun)
                break
        else:
            # A backslash whose character is in the next block.
            end -= (len(data) - len(data.rstrip(b"\\"))) % 2
        found = _BOUNDARIES(data)
        count = len(found)
        if _DOUBTFUL in found:
            count = sum(1 for _ in self._boundaries(data[:end]))
        if count >= self.left:
            last = next(islice(self._boundaries(data), self.left - 1, None))
            raise CutError(data[: last + 1] + b"]}}")
        self.left -= count
        self._follow(data, end)
        self.held = data[end:]
        return data[:end]

    def _follow(self, data: bytes, end: int) -> None:
        """Find out whether `end` stands within a string, from the last boundary on where there is one."""
        begin = data.rfind(b'},{"', 0, end)
        if begin >= 0 and data[begin + 4 : begin + 5] not in b",}":
            data, self.inside = data[begin + 3 : end], False
        else:
            data = data[:end]
        quotes = _ESCAPED.sub(b"", data) if b"\\" in data else data
        self.inside ^= quotes.count(b'"') % 2 == 1

    def _boundaries(self, data: bytes) -> Iterator[int]:
        """Where rows end, which is found out string by string."""
        quote = b'"' if self.inside else b""
        for one in _STRING_OR_BOUNDARY.finditer(quote + data):
            if one[0] == b"},{":
                yield one.start() - len(quote)

    def rest(self) -> bytes:
        """What is held back."""
        return self.held


class NamedElements(Plain):
    """Refuses RDF/XML in which a predicate has no name that XML allows: the serialiser would write
    what nobody can read.
    """

    def __init__(self) -> None:
        self.last = b""

    def feed(self, block: bytes) -> bytes:
        """Pass a block on."""
        if b"<oxprefix: " in self.last + block:
            raise UnwritableError("a predicate does not end in a name of XML, so RDF/XML cannot say it")
        self.last = block[-16:]
        return block
