"""Reading of files: plain or gzip, encodings of text, heads for recognition, blocks of lines for speed.

Low-level errors (no such file, damaged compression, undecodable bytes) become a `LoadError` with the
name of the file. `is_document` recognises files that are about the data rather than data.
"""

from __future__ import annotations

import codecs
import gc
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO, cast

from condgraph.engine.errors import FormatError, LoadError, OptionError
from condgraph.loaders.base import Reading

# UTF-32 before UTF-16, since its little-endian mark begins with that of UTF-16.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def known_encoding(encoding: str) -> str:
    """Return the canonical name of a text encoding; raises `OptionError` if there is none."""
    try:
        info = codecs.lookup(encoding)
    except (LookupError, ValueError, TypeError):
        raise OptionError(f"{encoding!r} is not a text encoding", hint="utf-8, utf-16, latin-1 and cp1252 are common") from None
    # Codecs such as base64 turn bytes into bytes, and are no text encodings.
    if not getattr(info, "_is_text_encoding", True):
        raise OptionError(f"{encoding!r} is not a text encoding", hint="utf-8, utf-16, latin-1 and cp1252 are common")
    return info.name


def marked_encoding(head: bytes) -> str | None:
    """Return the encoding that a byte order mark at the start of a file declares, or None."""
    return next((name for mark, name in _MARKS if head.startswith(mark)), None)


#: Bytes that do not occur in texts in cp1252.
_NOT_CP1252: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\x81\x8d\x8f\x90\x9d]")
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")
_UTF8_SEQUENCE: Final = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def guessed_encoding(data: bytes) -> str | None:
    """Guess the encoding of text that has no byte order mark: a form of UTF-16, or cp1252.

    `data` are the first bytes. Returns None for UTF-8, even damaged, and for data that is no text.
    """
    if marked_encoding(data) is not None or not data:
        return None
    even, odd = data[0:4096:2].count(0), data[1:4096:2].count(0)
    pair_count = max(1, min(len(data), 4096) // 2)
    for zeros, other_zeros, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros * 2 > pair_count and other_zeros * 20 < pair_count and len(data) > 7:
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
    # UTF-8 with some damaged characters still has many valid ones.
    valid = len(_UTF8_SEQUENCE.findall(data))
    high_bytes = len(_BEYOND_ASCII.findall(data))
    return "cp1252" if valid * 4 <= high_bytes else None


_TEXTS: Final = (".md", ".rst", ".html", ".htm", ".pdf", ".tex", ".bib", ".png", ".jpg", ".jpeg", ".gif", ".svg")
_ARCHIVES: Final = (".zip", ".tar", ".tgz", ".7z", ".bz2", ".xz")
_PROGRAMS: Final = (".py", ".pyc", ".ipynb", ".sh", ".cypher", ".rq", ".sql", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".log")
_SUFFIXES: Final = frozenset(_TEXTS + _ARCHIVES + _PROGRAMS)
_NAMES: Final = ("license", "licence", "readme", "copying", "notice", "provenance", "citation", "changelog")
#: The extensions with which a file named like a document is one.
_MAYBE: Final = ("", ".txt")


def is_document(path: Path) -> bool:
    """Whether a file is about the data: by its extension, its name (LICENSE.txt, README), or a leading dot."""
    name = path.name.casefold()
    if name.startswith(".") or path.suffix.casefold() in _SUFFIXES:
        return True
    stem = name.partition(".")[0]
    named_so = any(stem == item or stem.startswith((item + "-", item + "_")) for item in _NAMES)
    return named_so and (path.suffix.casefold() in _MAYBE or stem.startswith(("license", "licence")))


#: The bytes at the start of a file that recognition reads.
HEAD_BYTES: Final = 65_536
#: Characters that `blocks` reads at once: about 100,000 lines of a graph file.
BLOCK_CHARS: Final = 4_000_000
#: A packed file may unpack to so many bytes in any case, and beyond that to so many times its size.
MOST_UNPACKED: Final = 1 << 30
MOST_GROWTH: Final = 300
#: The most characters of a line of a graph file.
LONGEST_LINE: Final = 64_000_000
#: The help for `encoding=` of every text loader.
ENCODING_HELP: Final = (
    "text encoding of the file (default: UTF-8, or what a byte order mark says; of tables also cp1252 or UTF-16, guessed)"
)

#: The largest share of damaged characters in a text.
_MOST_DAMAGED: Final = 0.02
_GZIP_MAGIC: Final = b"\x1f\x8b"


def path_of(source: Any) -> Path:
    """Return the path of a source; raises `FormatError` if it is not a path."""
    if isinstance(source, (str, os.PathLike)):
        return Path(source)
    raise FormatError(f"this format is read from a file, not from an object of type {type(source).__name__}")


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system, decompression and decoding into a `LoadError` with the file."""
    try:
        yield
    except FileNotFoundError:
        raise LoadError("there is no such file", file=str(path)) from None
    except IsADirectoryError:
        raise LoadError("this is a folder, not a file", file=str(path)) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LoadError(f"the compressed data is damaged or cut short ({error})", file=str(path)) from None
    except UnicodeError as error:
        raise LoadError(f"the text cannot be decoded ({error})", file=str(path), hint="encoding= names another encoding") from None
    except OSError as error:
        raise LoadError(f"the file cannot be read ({error.strerror or error})", file=str(path)) from None
    except MemoryError:
        raise LoadError("there is not enough memory for what the file holds", file=str(path)) from None


def regular(path: Path) -> Path:
    """Return a path; raises `LoadError` if it is a pipe or a device, which may never end.

    A missing file is not an error here.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return path
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return path
    kinds = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    kind = next((name for test, name in kinds if test(mode)), "a device")
    raise LoadError(
        f"this is {kind}, not a file: a source is read more than once", file=str(path), hint="write what it gives to a file"
    )


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the garbage collector while a large file is parsed.

    Nothing there is cyclic, and collection would take most of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def open_bytes(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading bytes, unpacking gzip by its first bytes; raises `LoadError`."""
    file_path = regular(Path(path))
    with file_errors(file_path):
        raw = file_path.open("rb")
        try:
            packed = raw.peek(2)[:2] == _GZIP_MAGIC
        except BaseException:
            raw.close()
            raise
        if not packed:
            return raw
        return cast(BinaryIO, _ClosingGzip(raw))


class _ClosingGzip(gzip.GzipFile):
    """A gzip reader that closes the underlying file and exposes its position."""

    def __init__(self, raw: io.BufferedReader) -> None:
        super().__init__(fileobj=raw, mode="rb")
        self.raw_file = raw

    def read(self, size: int | None = -1) -> bytes:
        """Unpack `size` bytes, or all; raises `LoadError` if the data grows implausibly."""
        if size is not None and size >= 0:
            return self._bounded(super().read(size))
        parts = []
        while part := self._bounded(super().read(1 << 20)):
            parts.append(part)
        return b"".join(parts)

    def read1(self, size: int = -1) -> bytes:
        return self._bounded(super().read1(size))

    def _bounded(self, data: bytes) -> bytes:
        unpacked = self.tell()
        if unpacked > MOST_UNPACKED and unpacked > MOST_GROWTH * self.raw_file.tell():
            raise LoadError(
                f"the file unpacks to more than {MOST_GROWTH} times its size, and more than {MOST_UNPACKED >> 20} MiB",
                file=str(getattr(self.raw_file, "name", "")),
                hint="unpack it first, if it is what it says",
            )
        return data

    def close(self) -> None:
        super().close()
        self.raw_file.close()


def open_text(
    path: str | os.PathLike[str],
    encoding: str | None = None,
    *,
    errors: str = "strict",
    newline: str | None = "",
) -> TextIO:
    """Open a file for reading text, gzip or not.

    `encoding` None means UTF-8, or what a byte order mark declares. Line ends are kept (`newline=""`),
    as `csv` needs them. Raises `LoadError`, and `OptionError` for an unknown encoding. Reading from the
    stream may raise `UnicodeDecodeError`, `EOFError` or `zlib.error`; `file_errors` translates them.
    """
    if encoding is not None:
        encoding = known_encoding(encoding)
    stream = open_bytes(path)
    try:
        with file_errors(Path(path)):
            marked = marked_encoding(cast(io.BufferedReader, stream).peek(4)[:4])
    except BaseException:
        stream.close()
        raise
    if encoding in (None, "utf-8") and marked is not None:
        encoding = marked
    return io.TextIOWrapper(stream, encoding=encoding or "utf-8", errors=errors, newline=newline)


def read_head(path: str | os.PathLike[str], size: int = HEAD_BYTES) -> bytes:
    """Return the first `size` bytes of a file, unpacked, and as UTF-8 if it is text of another encoding.

    The encoding is that of `heads_in`, or guessed. Raises `LoadError`.
    """
    encoding = _heads_in.get()
    with open_bytes(path) as stream, file_errors(Path(path)):
        # A character has at most four bytes in any encoding, and at least one in UTF-8.
        head = stream.read(size if encoding is None else 4 * size)
    if encoding is None:
        encoding = guessed_encoding(head)
        if encoding is None:
            return head
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head).encode("utf-8")[:size]
    except UnicodeError:
        return head[:size]


_heads_in: Final[ContextVar[str | None]] = ContextVar("heads_in", default=None)


@contextmanager
def heads_in(encoding: object) -> Iterator[None]:
    """Make `read_head` use an encoding (None, or not a text: as the bytes are).

    Raises `OptionError` for an unknown encoding.
    """
    token = _heads_in.set(known_encoding(encoding) if isinstance(encoding, str) else None)
    try:
        yield
    finally:
        _heads_in.reset(token)


def head_text(head: bytes, *, damaged: bool = False) -> str | None:
    """Return the head of a file as text, or None if it is binary or not UTF-8, UTF-16 or UTF-32.

    `damaged` accepts text with a few undecodable bytes.
    """
    encoding = marked_encoding(head) or "utf-8"
    decoder = codecs.getincrementaldecoder(encoding)("replace" if damaged else "strict")
    try:
        # An incremental decoder withholds a character that the end of the head cuts.
        text = decoder.decode(head)
    except UnicodeError:
        return None
    if damaged and text.count("\ufffd") > max(1, _MOST_DAMAGED * len(text)):
        return None
    return None if "\0" in text else text


def head_lines(head: bytes, most: int = 1000) -> list[str]:
    """Return the complete lines of a file's head that are not blank, at most `most`; none if it is no text."""
    text = head_text(head)
    if text is None:
        return []
    lines = text.split("\n")
    if len(head) >= HEAD_BYTES and len(lines) > 1:
        lines.pop()  # cut short
    return [line for line in (line.rstrip("\r") for line in lines) if line.strip()][:most]


def stem_of(path: Path) -> str:
    """Return a file's name without folder, `.gz` and extension; a folder's name unchanged.

    The stem of films.csv.gz is "films".
    """
    name = path.name
    if name.lower().endswith(".gz") and len(name) > 3:
        name = name[:-3]
    stem = name if path.is_dir() else Path(name).stem
    return stem or name


def suffix_of(path: Path) -> str:
    """Return a file's extension in lower case, ignoring `.gz`: ".csv" for films.csv.gz."""
    name = path.name.lower()
    return Path(name[:-3] if name.endswith(".gz") else name).suffix


def blocks(path: Path, reading: Reading, encoding: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a text file in blocks: the 1-based number of the first line, and the lines.

    Lines end at a line feed, with or without a carriage return before it, and are returned without. A
    line that cannot be decoded is `bad`; with `on_error="skip"` it becomes an empty line, so that line
    numbers stay right. Progress is reported once for each block.
    """
    size = max(1, path.stat().st_size) if path.exists() else 1
    first = 1
    with open_text(path, encoding, errors="surrogateescape", newline="\n") as stream:
        while True:
            with file_errors(path):
                text = stream.read(BLOCK_CHARS)
                if text and not text.endswith("\n"):
                    end_of_line = stream.readline(LONGEST_LINE)
                    if len(end_of_line) >= LONGEST_LINE:
                        raise LoadError(f"a line has more than {LONGEST_LINE:,} characters", file=str(path))
                    text += end_of_line
            if not text:
                return
            if "\r" in text:
                text = text.replace("\r\n", "\n")
            lines = text.split("\n")
            if text.endswith("\n"):
                lines.pop()
            if not text.isascii():
                _refuse_undecodable(text, lines, first, reading, stream.encoding)
            yield first, lines
            first += len(lines)
            reading.advance(len(lines), min(1.0, raw_position(stream) / size))


def raw_position(stream: TextIO | BinaryIO) -> int:
    """Return how many bytes of the (packed) file a stream of `open_text` or `open_bytes` has read."""
    below: Any = getattr(stream, "buffer", stream)
    return int(below.raw_file.tell() if isinstance(below, _ClosingGzip) else below.tell())


def _refuse_undecodable(text: str, lines: list[str], first: int, reading: Reading, encoding: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        for at, line in enumerate(lines):
            try:
                line.encode()
            except UnicodeEncodeError as error:
                lines[at] = ""
                byte = ord(line[error.start]) & 0xFF
                reading.bad(
                    f"byte 0x{byte:02x} at character {error.start + 1} is not {encoding.removesuffix('-sig').upper()} text"
                    " (encoding= names another encoding)",
                    row=first + at,
                )
