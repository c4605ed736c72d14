"""Addresses of sources at http, https and s3, and zip archives; `fetch` fetches and unpacks them.

An address may contain a login, which is sent only to its own server. Addresses are shown and stored
without the login and without the part after `?`, which may be a key.
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
#: The hint for an address that is not fetched.
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
    """Whether a source is an address to fetch."""
    return isinstance(text, str) and _WEB(text) is not None


def refuse(text: str) -> None:
    """Raise `LoadError` for an address that cannot be loaded; a path is accepted."""
    match = _SCHEME(text)
    if match is not None:
        scheme = match[1].lower()
        if is_address(text):
            raise LoadError("an address is fetched by Graph.load alone", file=shown_address(text), hint=LOCAL)
        raise LoadError(f"files at {scheme}:// are not read", file=shown_address(text), hint=_WAYS.get(scheme, LOCAL))


def split_address(text: str) -> SplitResult:
    """Return the parts of an address; raises `LoadError` if it is invalid."""
    # The invalid part may be a password, so it is not shown.
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
            "this is no address: its server has no name that can be looked up",
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
_MOST_ENTRIES: Final = 10_000
_DEEPEST: Final = 20
_LONGEST_NAME: Final = 200
_BLOCK: Final = 1 << 20
_MAGIC: Final = (b"PK\x03\x04", b"PK\x05\x06")
#: Members of office documents, which are zip files but not archives to their users.
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
    """Unpack an archive into an empty folder; returns its file or folder, and the location in the archive.

    Raises `LoadError`, and at the deadline of the call `DeadlineError`.
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
    """Unpack one file; returns the number of bytes unpacked so far."""
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
