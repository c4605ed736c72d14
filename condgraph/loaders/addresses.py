"""Addresses of sources at http, https and s3, which `fetch` fetches: their parts, and how they are shown.

The address of a source may have a login, which is sent to its own server alone. Addresses are shown
and stored without the login and without the part after `?`, which may be a key.
"""

from __future__ import annotations

import base64
import lzma
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from condgraph.engine.bounds import check
from condgraph.engine.errors import LoadError, shortened
from condgraph.loaders.files import MOST_GROWTH, MOST_UNPACKED, file_errors, stem_of

_LONGEST: Final = 8_192
#: The schemes of databases.
POSTGRES: Final = ("postgresql", "postgres")
MYSQL: Final = ("mysql", "mariadb")
_WEB: Final = re.compile(r"(?:https?|s3a?)://", re.IGNORECASE).match
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,20})://").match
#: Characters of an address that need no escape.
_SAFE: Final = "%/:=&?~#+!$,;'@()*[]"
#: A hint where an address is not fetched.
LOCAL: Final = "download the file, and load it"
_CLOUD: Final = "an https:// address that is signed works ({}), and so does a copy of the file"
_WAYS: Final[Mapping[str, str]] = {
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
    """Whether a source is an address that is fetched."""
    return isinstance(text, str) and _WEB(text) is not None


def refuse(text: str) -> None:
    """Raise `LoadError` for an address that cannot be loaded; nothing for the path of a file."""
    match = _SCHEME(text)
    if match is not None:
        scheme = match[1].lower()
        if is_address(text):
            raise LoadError("an address is fetched by Graph.load alone", file=shown_address(text), hint=LOCAL)
        raise LoadError(f"files at {scheme}:// are not read", file=shown_address(text), hint=_WAYS.get(scheme, LOCAL))


def split_address(text: str) -> SplitResult:
    """The parts of an address; raises `LoadError` for a text that is none."""
    # The mistake may be part of a password: it is not shown.
    shown = text[:20].partition("://")[0] + "://..."
    if len(text) > _LONGEST:
        raise LoadError(f"an address has at most {_LONGEST:,} characters", file=shown)
    try:
        split = urlsplit(text)
        if split.port != 0 and split.hostname:
            return split
    except ValueError:
        pass
    raise LoadError("this is no address", file=shown, hint="in a login write / as %2F, @ as %40, : as %3A, ? as %3F, # as %23")


def shown_address(text: str) -> str:
    """An address without its login, and without the parts after `?` and `#`."""
    try:
        split = urlsplit(text)
        where = split.netloc.rpartition("@")[2]
        # A password without escapes may go on after the first `/`, `?` or `#`.
        if split.port == 0 or (":" in split.netloc and "@" in f"{split.path}{split.query}{split.fragment}"):
            return split.scheme + "://..."
        return shortened(f"{split.scheme}://{where}{split.path}{'?...' if split.query else ''}")
    except ValueError:
        return text.partition("://")[0] + "://..."


def request_url(split: SplitResult) -> str:
    """An address without login and fragment, escaped for a request."""
    try:
        host = (split.hostname or "").encode("ascii" if ":" in (split.hostname or "") else "idna").decode()
    except UnicodeError:
        raise LoadError(
            "this is no address: its server has no name that can be looked up",
            file=shown_address(split.geturl()),
        ) from None
    host = f"[{host}]" if ":" in host else host
    where = host if split.port is None else f"{host}:{split.port}"
    return urlunsplit((split.scheme, where, quote(split.path or "/", _SAFE), quote(split.query, _SAFE), ""))


def login_of(split: SplitResult) -> str | None:
    """The value of the header with the login of an address; None without one."""
    if split.username is None:
        return None
    pair = f"{unquote(split.username)}:{unquote(split.password or '')}"
    return "Basic " + base64.b64encode(pair.encode("utf-8")).decode()


def origin(split: SplitResult) -> tuple[str, str, int]:
    """The scheme, server and port of an address."""
    scheme = split.scheme.lower()
    return scheme, (split.hostname or "").lower(), split.port or (443 if scheme == "https" else 80)


# -- fetched files ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that was fetched, or the content of an archive: its path, and its address as it is shown."""

    path: Path
    location: str

    def __fspath__(self) -> str:
        return str(self.path)


def is_elsewhere(source: Any) -> bool:
    """Whether a source, or one of a list of sources, is an address that is fetched, or an archive."""
    if isinstance(source, (list, tuple, set, frozenset)):
        return any(map(is_elsewhere, source))
    return is_address(source) or is_archive(source)


def shown_place(path: str, places: Mapping[str, str]) -> str:
    """The location to show for a path: that of a fetched file, or of one below it."""
    for below, location in places.items():
        if path == below or path.startswith(below + os.sep):
            return location + path[len(below) :]
    return path


# -- archives ----------------------------------------------------------------------------------------
# Zip archives: unpacked whole into a folder of their own for as long as they are loaded, within
# bounds of number, size and names, and located inside the archive.
#
# An archive of one file is that file, one of a folder is that folder, and any other is a folder called
# like the archive. Archives within it are not unpacked. Sizes are counted as bytes come, whatever the
# archive declares.


#: Entries of an archive, folders inside each other, and bytes of a name.
_MOST_ENTRIES: Final = 10_000
_DEEPEST: Final = 20
_LONGEST_NAME: Final = 200
_BLOCK: Final = 1 << 20
_MAGIC: Final = (b"PK\x03\x04", b"PK\x05\x06")
#: What office documents have, which are no archives to whoever saves them.
_DOCUMENTS: Final = ("[Content_Types].xml", "mimetype", "META-INF/MANIFEST.MF")
_BROKEN: Final = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, ValueError, EOFError,
)  # fmt: skip


def is_archive(source: Any) -> bool:
    """Whether a source is the path of a zip archive that is no office document."""
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
    """Unpack an archive into an empty folder: what it holds, a file or a folder, and where in the
    archive that is. Raises `LoadError`, and at the deadline of the call `DeadlineError`.
    """
    into.mkdir(parents=True)
    try:
        with file_errors(path), zipfile.ZipFile(path) as archive:
            entries = [(info, _place(info, path)) for info in archive.infolist()]
            if len(entries) > _MOST_ENTRIES:
                raise LoadError(f"the archive has more than {_MOST_ENTRIES:,} files", file=str(path))
            if sum(info.file_size for info, _ in entries) > shutil.disk_usage(into).free:
                raise LoadError("there is no room to unpack the archive", file=str(path), hint="TMPDIR names another folder")
            size = 0
            for info, parts in entries:
                check()
                if parts is not None:
                    size = _write(archive, info, into.joinpath(*parts), size, path)
    except LoadError:
        raise
    except _BROKEN as error:
        said = shortened(str(error), 100)
        raise LoadError(f"the archive cannot be unpacked ({said})", file=str(path), hint="unpack it, and load the folder") from None
    return _content(into, path)


def _place(info: zipfile.ZipInfo, path: Path) -> tuple[str, ...] | None:
    """Where an entry goes, as parts of a path; None for folders and for what macOS adds."""
    # Programs of Windows write their own separator.
    name = info.filename.replace("\\", "/")
    parts = PurePosixPath(name).parts
    if "__MACOSX" in parts or (parts and parts[-1] == ".DS_Store"):
        return None
    wrong = (
        not parts
        or name.startswith("/")
        or ".." in parts
        or ":" in parts[0]
        or len(parts) > _DEEPEST
        or any(len(part.encode("utf-8", "surrogateescape")) > _LONGEST_NAME or "\0" in part for part in parts)
    )
    if wrong:
        raise LoadError(f"the archive has a file at {shortened(info.filename, 100)!r}, which is no place inside it", file=str(path))
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise LoadError(f"{shortened(name, 100)!r} is a link or a device, which is not unpacked", file=str(path))
    if info.flag_bits & 1:
        raise LoadError("the archive is encrypted", file=str(path), hint="unpack it, and load the folder")
    return None if name.endswith("/") else parts


def _write(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, size: int, path: Path) -> int:
    """Unpack one file; how many bytes the archive has become."""
    most = max(MOST_UNPACKED, MOST_GROWTH * path.stat().st_size)
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
                    f"the archive unpacks to more than {MOST_GROWTH} times its size, and more than {MOST_UNPACKED >> 20} MiB",
                    file=str(path),
                    hint="unpack it first, if it is what it says",
                )
            out.write(block)
    return size


def _content(folder: Path, path: Path) -> tuple[Path, str]:
    """What an archive holds, under the name that it gives it."""
    inside: list[str] = []
    here = folder
    while True:
        there = list(here.iterdir())
        if not there:
            raise LoadError("the archive is empty", file=str(path))
        if len(there) > 1:
            break
        here = there[0]
        inside.append(here.name)
        if here.is_file():
            return here, "/".join([str(path), *inside])
    named = folder.with_name(folder.name + "-content") / (stem_of(path) or "archive")
    named.parent.mkdir()
    here.rename(named)
    return named, "/".join([str(path), *inside])
