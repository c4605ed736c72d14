"""A delimited file (CSV, TSV): how it is written, its header, and its text as often as it is asked
for.

How it is written is said by options or found out (`dialect`); another delimiter than expected is
warned about. Lines before the header are left out where they say how the file is written
(`sep=;`), or begin with `#` and have another number of fields than the header, with a warning;
`comment=` names what begins such lines anywhere. Text that is no UTF-8 is read as what it seems to
be, with a warning.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self

from condgraph.engine.errors import LoadError, OptionError, nearest, numbered
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.encodings import guessed_encoding
from condgraph.loaders.files import file_errors, open_bytes, open_text
from condgraph.loaders.table.cells import undecodable
from condgraph.loaders.table.clean import Place
from condgraph.loaders.table.dialect import (
    DIALECTS,
    NO_DELIMITER,
    SEPARATOR,
    Layout,
    above_header,
    explained,
    find_delimiter,
    find_dialect,
    like_data,
    one_column,
    preamble,
    without_lines,
)
from condgraph.loaders.table.options import truth_option

#: Characters that are looked at to find out how a file is written.
SAMPLE: Final = 1 << 20


@dataclass(slots=True)
class TextFile:
    """A delimited file: how it is written, and its headers."""

    path: Path
    layout: Layout
    encoding: str | None
    header: bool
    headers: list[str] = field(default_factory=list)
    #: Lines before the header that are no records, and what begins a comment.
    skipped: int = 0
    comment: str = ""

    @classmethod
    def open(cls, path: Path, reading: Reading, options: Options, delimiters: str) -> Self:
        """Find out how a file is written, and read its header. Raises `LoadError` and
        `OptionError`.
        """
        delimiter, dialect, encoding = options.get("delimiter"), options.get("dialect"), options.get("encoding")
        if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
            raise OptionError(f"delimiter= is one character, not {delimiter!r}")
        if dialect is not None and dialect not in DIALECTS:
            raise OptionError(
                f"there is no dialect {dialect!r}",
                candidates=nearest(str(dialect), DIALECTS),
                hint="there are: " + ", ".join(DIALECTS),
            )
        if encoding is not None and not isinstance(encoding, str):
            raise OptionError(f"encoding= is the name of an encoding, not {encoding!r}")
        longest = options.get("longest_cell")
        if longest is not None:
            if not isinstance(longest, int) or isinstance(longest, bool) or longest < 1:
                raise OptionError(f"longest_cell= is a number of characters, not {longest!r}")
            # The limit is one for the whole process, so it is only ever raised.
            csv.field_size_limit(max(longest, csv.field_size_limit()))
        comment = options.get("comment")
        if comment is not None and (not isinstance(comment, str) or not comment.strip()):
            raise OptionError(f"comment= is what comments begin with, not {comment!r}")
        if encoding is None:
            encoding = _guessed(path, reading)
        with open_text(path, encoding, errors="surrogateescape") as stream, file_errors(path):
            text = stream.read(SAMPLE)
            complete = len(text) < SAMPLE
        header, given = truth_option(options, "header"), _skip_option(options)
        skipped, said = preamble(text, comment or "") if given is None else (given, None)
        if skipped:
            if given is None:
                _tell_left_out(text, skipped, "line of comment", "lines of comment", reading)
            text = without_lines(text, skipped)
        if given is None and header is not False and not comment:
            above = above_header(text, complete, delimiter or said or delimiters)
            if above:
                _tell_left_out(text, above, "line above the header", "lines above the header", reading)
                text, skipped = without_lines(text, above), skipped + above
        if comment:
            text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(comment))
        delimiter = delimiter or said
        if "\0" in text:
            raise LoadError("this is not text: it holds NUL characters", file=str(path), hint="encoding= names another encoding")
        if delimiter is None:
            delimiter = find_delimiter(text, complete, delimiters)
            if one_column(text, complete, delimiters):
                delimiter = NO_DELIMITER
                reading.warn("the file is read as one column of texts (delimiter= overrules)")
            elif delimiter != delimiters[0]:
                reading.warn(f"fields are separated by {delimiter!r} (delimiter= overrules)")
        layout = Layout(delimiter, dialect) if dialect else find_dialect(text, complete, delimiter)
        table = cls(path, layout, encoding, True if header is None else header, skipped=skipped, comment=comment or "")
        table._read_header()
        if header is None and like_data(text, complete, layout):
            reading.warn("the first record looks like data, and is taken for the header (header=false says that there is none)")
        return table

    @contextmanager
    def _lines(self, after: Place | None = None) -> Iterator[Any]:
        """The text of the file from its header on, without comments; what follows the rows that
        were clean, if there were any.
        """
        if after is not None and after.rows:
            with open_bytes(self.path) as raw, file_errors(self.path):
                raw.seek(after.offset)
                yield io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape", newline="")
            return
        with open_text(self.path, self.encoding, errors="surrogateescape") as stream, file_errors(self.path):
            for _ in range(self.skipped):
                stream.readline(SAMPLE)
            yield stream

    def _records_of(self, stream: Any) -> Any:
        """A reader of the records of `_lines`; comments are blank lines to it."""
        if not self.comment:
            return self.layout.reader(stream)
        return self.layout.reader("\n" if line.startswith(self.comment) else line for line in stream)

    def _read_header(self) -> None:
        with self._lines() as stream:
            reader = self._records_of(stream)
            try:
                first = next((row for row in reader if row), None)
            except csv.Error as error:
                raise LoadError(
                    f"the first record cannot be read: {explained(error, self.layout)}", file=str(self.path), row=1
                ) from None
        if first is None:
            raise LoadError("the file is empty; a table has at least a header", file=str(self.path))
        for _, where, byte in undecodable([first]):
            raise LoadError(
                f"byte 0x{byte:02x} in the {where + 1}. field of the first record is not text in the encoding",
                file=str(self.path),
                hint="encoding= names another encoding, cp1252 or utf-16, say",
            )
        self.headers = first if self.header else [f"column {at}" for at in range(1, len(first) + 1)]


def _skip_option(options: Options) -> int | None:
    skip = options.get("skip")
    if skip is not None and (not isinstance(skip, int) or isinstance(skip, bool) or skip < 0):
        raise OptionError(f"skip= is a number of lines, not {skip!r}")
    return skip


def _tell_left_out(text: str, lines: int, one: str, several: str, reading: Reading) -> None:
    """Warn about the first lines of a text, which are no part of the table."""
    left = [line.strip() for line in islice(io.StringIO(text, newline=""), lines) if line.strip() and not SEPARATOR(line)]
    if left:
        what = numbered(len(left), f"{one} is", f"{several} are")
        reading.warn(f"{what} left out: {'; '.join(left)[:200]} (skip= says how many lines are)")


def _guessed(path: Path, reading: Reading) -> str | None:
    """The encoding that a file without one seems to have, said in a warning."""
    with open_bytes(path) as stream, file_errors(path):
        data = stream.read(SAMPLE)
    found = guessed_encoding(data)
    if found is not None:
        reading.warn(f"the text is no UTF-8 and is read as {found} (encoding= names another encoding)")
    return found
