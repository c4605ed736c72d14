"""Reading of files: plain or gzip, encodings of text, heads for recognition, blocks of lines for speed.

Low-level errors (no such file, damaged compression, undecodable bytes) become a `LoadError` with the
name of the file. `is_document` recognises files that are about the data rather than data. Also the
addresses of sources at http, https and s3, and zip archives, which `fetch` fetches and unpacks.

An address may contain a login, which is sent only to its own server. Addresses are shown and stored
without the login and without the part after `?`, which may be a key.
"""

from __future__ import annotations

import base64
import codecs
import gc
import gzip
import io
import lzma
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, TextIO, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from condgraph.engine.bounds import check
from condgraph.engine.errors import FormatError, LoadError, OptionError, shortened
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

    `data` are the first bytes. Returns None for UTF-8, even damaged, and for data that is not a text.
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
MAX_UNPACKED: Final = 1 << 30
MAX_GROWTH: Final = 300
#: The most characters of a line of a graph file.
MAX_LINE: Final = 64_000_000
#: The help for `encoding=` of every text loader.
ENCODING_HELP: Final = (
    "text encoding of the file (default: UTF-8, or what a byte order mark says; of tables also cp1252 or UTF-16, guessed)"
)

#: The largest share of damaged characters in a text.
_MAX_DAMAGED: Final = 0.02
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
        f"this is {kind}, not a file: a source is read more than once", file=str(path), hint="write its output to a file"
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
        if unpacked > MAX_UNPACKED and unpacked > MAX_GROWTH * self.raw_file.tell():
            raise LoadError(
                f"the file unpacks to more than {MAX_GROWTH} times its size, and more than {MAX_UNPACKED >> 20} MiB",
                file=str(getattr(self.raw_file, "name", "")),
                hint="unpack it first, if you trust it",
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
    if damaged and text.count("\ufffd") > max(1, _MAX_DAMAGED * len(text)):
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
                    end_of_line = stream.readline(MAX_LINE)
                    if len(end_of_line) >= MAX_LINE:
                        raise LoadError(f"a line has more than {MAX_LINE:,} characters", file=str(path))
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


# -- addresses -------------------------------------------------------------------------------------


_MAX_ADDRESS: Final = 8_192
#: The schemes of databases.
POSTGRES: Final = ("postgresql", "postgres")
MYSQL: Final = ("mysql", "mariadb")
_WEB: Final = re.compile(r"(?:https?|s3a?)://", re.IGNORECASE).match
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,20})://").match
#: Characters of an address that need no escape.
_SAFE: Final = "%/:=&?~#+!$,;'@()*[]"
#: The hint for an address that is not fetched.
LOCAL: Final = "download the file, and load it"
_CLOUD: Final = "an https:// address that is signed works ({}), and so does a copy of the file"
_HINTS: Final[Mapping[str, str]] = {
    "gs": _CLOUD.format("gcloud storage sign-url gs://..."),
    "az": _CLOUD.format("az storage blob generate-sas --full-uri"),
    "abfs": _CLOUD.format("az storage blob generate-sas --full-uri"),
    "file": "give the path without file://",
}


def is_database(text: str) -> bool:
    """Whether a text is the address of a database."""
    scheme, mark, _ = text[:32].partition("://")
    return bool(mark) and scheme.casefold() in POSTGRES + MYSQL


def is_address(text: object) -> bool:
    """Whether a source is an address to fetch."""
    return isinstance(text, str) and _WEB(text) is not None


def refuse(text: str) -> None:
    """Raise `LoadError` for an address that cannot be loaded; a path is accepted."""
    match = _SCHEME(text)
    if match is not None:
        scheme = match[1].lower()
        if is_address(text):
            raise LoadError("an address is fetched by Graph.load alone", file=shown_address(text), hint=LOCAL)
        raise LoadError(f"files at {scheme}:// are not read", file=shown_address(text), hint=_HINTS.get(scheme, LOCAL))


def split_address(text: str) -> SplitResult:
    """Return the parts of an address; raises `LoadError` if it is invalid."""
    # The invalid part may be a password, so it is not shown.
    shown = text[:20].partition("://")[0] + "://..."
    if len(text) > _MAX_ADDRESS:
        raise LoadError(f"an address has at most {_MAX_ADDRESS:,} characters", file=shown)
    try:
        split = urlsplit(text)
        if split.port != 0 and split.hostname:
            return split
    except ValueError:
        pass
    raise LoadError("this is not an address", file=shown, hint="in a login write / as %2F, @ as %40, : as %3A, ? as %3F, # as %23")


def shown_address(text: str) -> str:
    """Return an address without its login and the parts after `?` and `#`."""
    try:
        split = urlsplit(text)
        server = split.netloc.rpartition("@")[2]
        # An unescaped password may contain `/`, `?` or `#`.
        if split.port == 0 or (":" in split.netloc and "@" in f"{split.path}{split.query}{split.fragment}"):
            return split.scheme + "://..."
        return shortened(f"{split.scheme}://{server}{split.path}{'?...' if split.query else ''}")
    except ValueError:
        return text.partition("://")[0] + "://..."


def request_url(split: SplitResult) -> str:
    """Return an address without login and fragment, escaped for a request."""
    try:
        host = (split.hostname or "").encode("ascii" if ":" in (split.hostname or "") else "idna").decode()
    except UnicodeError:
        raise LoadError(
            "this is not an address: the name of its server is invalid",
            file=shown_address(split.geturl()),
        ) from None
    host = f"[{host}]" if ":" in host else host
    server = host if split.port is None else f"{host}:{split.port}"
    return urlunsplit((split.scheme, server, quote(split.path or "/", _SAFE), quote(split.query, _SAFE), ""))


def login_of(split: SplitResult) -> str | None:
    """Return the value of the Authorization header for an address, or None."""
    if split.username is None:
        return None
    pair = f"{unquote(split.username)}:{unquote(split.password or '')}"
    return "Basic " + base64.b64encode(pair.encode("utf-8")).decode()


def origin(split: SplitResult) -> tuple[str, str, int]:
    """Return the scheme, server and port of an address."""
    scheme = split.scheme.lower()
    return scheme, (split.hostname or "").lower(), split.port or (443 if scheme == "https" else 80)


# -- fetched files ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fetched:
    """A fetched file, or the content of an archive: its path, and its address for display."""

    path: Path
    location: str

    def __fspath__(self) -> str:
        return str(self.path)


def is_elsewhere(source: Any) -> bool:
    """Whether a source, or one in a list, is an address to fetch or an archive."""
    if isinstance(source, (list, tuple, set, frozenset)):
        return any(map(is_elsewhere, source))
    return is_address(source) or is_archive(source)


def shown_place(path: str, places: Mapping[str, str]) -> str:
    """Return the location to show for a path: that of a fetched file or folder that contains it."""
    for fetched_path, location in places.items():
        if path == fetched_path or path.startswith(fetched_path + os.sep):
            return location + path[len(fetched_path) :]
    return path


# -- archives ----------------------------------------------------------------------------------------
# A zip archive is unpacked into a folder that exists during the load, within limits of the number, size
# and names of files.
#
# An archive of one file is that file, one of a folder is that folder, and any other is a folder named
# like the archive. Nested archives are not unpacked. Sizes are counted while unpacking, whatever the
# archive declares.


#: The most entries of an archive, nested folders, and bytes of a name.
_MAX_ENTRIES: Final = 10_000
_MAX_DEPTH: Final = 20
_MAX_NAME: Final = 200
_BLOCK: Final = 1 << 20
_MAGIC: Final = (b"PK\x03\x04", b"PK\x05\x06")
#: Members of office documents, which are zip files but not archives to their users.
_DOCUMENTS: Final = ("[Content_Types].xml", "mimetype", "META-INF/MANIFEST.MF")
_BROKEN: Final = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, ValueError, EOFError,
)  # fmt: skip


def is_archive(source: Any) -> bool:
    """Whether a source is the path of a zip archive that is not an office document."""
    if not isinstance(source, (str, Path)):
        return False
    path = Path(source)
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            if stream.read(4) not in _MAGIC:
                return False
        with zipfile.ZipFile(path) as archive:
            return not any(name in archive.NameToInfo for name in _DOCUMENTS)
    except (OSError, ValueError, *_BROKEN):
        return False


def unpack(path: Path, into: Path) -> tuple[Path, str]:
    """Unpack an archive into an empty folder; returns its file or folder, and the location in the archive.

    Raises `LoadError`, and at the deadline of the call `DeadlineError`.
    """
    into.mkdir(parents=True)
    try:
        with file_errors(path), zipfile.ZipFile(path) as archive:
            entries = [(info, _place(info, path)) for info in archive.infolist()]
            if len(entries) > _MAX_ENTRIES:
                raise LoadError(f"the archive has more than {_MAX_ENTRIES:,} files", file=str(path))
            if sum(info.file_size for info, _ in entries) > shutil.disk_usage(into).free:
                raise LoadError("no space is left to unpack the archive", file=str(path), hint="TMPDIR names another folder")
            size = 0
            for info, parts in entries:
                check()
                if parts is not None:
                    size = _write(archive, info, into.joinpath(*parts), size, path)
    except LoadError:
        raise
    except _BROKEN as error:
        reason = shortened(str(error), 100)
        raise LoadError(
            f"the archive cannot be unpacked ({reason})", file=str(path), hint="unpack it, and load the folder"
        ) from None
    return _content(into, path)


def _place(info: zipfile.ZipInfo, path: Path) -> tuple[str, ...] | None:
    """Return the target of an entry as parts of a path; None for folders and files of macOS."""
    # Windows programs write backslashes.
    name = info.filename.replace("\\", "/")
    parts = PurePosixPath(name).parts
    if "__MACOSX" in parts or (parts and parts[-1] == ".DS_Store"):
        return None
    wrong = (
        not parts
        or name.startswith("/")
        or ".." in parts
        or ":" in parts[0]
        or len(parts) > _MAX_DEPTH
        or any(len(part.encode("utf-8", "surrogateescape")) > _MAX_NAME or "\0" in part for part in parts)
    )
    if wrong:
        raise LoadError(
            f"the archive has a file at {shortened(info.filename, 100)!r}, which is not a valid path in it", file=str(path)
        )
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise LoadError(f"{shortened(name, 100)!r} is a link or a device, which is not unpacked", file=str(path))
    if info.flag_bits & 1:
        raise LoadError("the archive is encrypted", file=str(path), hint="unpack it, and load the folder")
    return None if name.endswith("/") else parts


def _write(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, size: int, path: Path) -> int:
    """Unpack one file; returns the number of bytes unpacked so far."""
    most = max(MAX_UNPACKED, MAX_GROWTH * path.stat().st_size)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        out = target.open("xb")
    except (FileExistsError, NotADirectoryError):
        raise LoadError(f"the archive has two files {shortened(info.filename, 100)!r}", file=str(path)) from None
    with out, archive.open(info) as stream:
        while block := stream.read(_BLOCK):
            check()
            size += len(block)
            if size > most:
                raise LoadError(
                    f"the archive unpacks to more than {MAX_GROWTH} times its size, and more than {MAX_UNPACKED >> 20} MiB",
                    file=str(path),
                    hint="unpack it first, if you trust it",
                )
            out.write(block)
    return size


def _content(folder: Path, path: Path) -> tuple[Path, str]:
    """Return the content of an archive, renamed after it."""
    folder_names: list[str] = []
    current = folder
    while True:
        entries = list(current.iterdir())
        if not entries:
            raise LoadError("the archive is empty", file=str(path))
        if len(entries) > 1:
            break
        current = entries[0]
        folder_names.append(current.name)
        if current.is_file():
            return current, "/".join([str(path), *folder_names])
    target = folder.with_name(folder.name + "-content") / (stem_of(path) or "archive")
    target.parent.mkdir()
    current.rename(target)
    return target, "/".join([str(path), *folder_names])
