"""Serialised results as they leave a worker: cut after a number of rows, without reading them
again.

A serialiser writes blocks of bytes; each class here takes those of one format, passes them on, and
where the limit is reached ends the document behind the last row that is wanted. `process` uses it;
like that, it imports the standard library only.
"""

from __future__ import annotations

import re


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


_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRINGS = re.compile(_STRING, re.S)
_WHOLE = re.compile(rb'(?:[^"]++|' + _STRING + rb")*+", re.S)
_STRING_OR_BOUNDARY = re.compile(_STRING + rb"|\},\{", re.S)


class Braced(Plain):
    """Cuts JSON: outside strings, `},{` stands between rows and nowhere else."""

    def __init__(self, limit: int) -> None:
        self.left, self.held = limit, b""

    def feed(self, block: bytes) -> bytes:
        """Pass a block on."""
        data = self.held + block
        # Up to where a string is open, and within that up to a brace that may be the first of a
        # boundary.
        found = _WHOLE.match(data)
        end = 0 if found is None else found.end()
        brace = data.rfind(b"}", data.rfind(b'"', 0, end) + 1, end)
        if brace >= 0:
            end = brace
        self.held, data = data[end:], data[:end]
        count = _STRINGS.sub(b"", data).count(b"},{")
        if count < self.left:
            self.left -= count
            return data
        number = self.left
        for one in _STRING_OR_BOUNDARY.finditer(data):
            if one[0] == b"},{":
                number -= 1
                if not number:
                    raise CutError(data[: one.start() + 1] + b"]}}")
        raise AssertionError("fewer rows than were counted")

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
