"""Zip archives: unpacked whole into a folder of their own for as long as they are loaded, within
bounds of number, size and names, and located inside the archive.

An archive of one file is that file, one of a folder is that folder, and any other is a folder called
like the archive. Archives within it are not unpacked. Sizes are counted as bytes come, whatever the
archive declares.
"""

from __future__ import annotations

import lzma
import shutil
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any, Final

from condgraph.engine.bounds import check
from condgraph.engine.errors import LoadError, shortened
from condgraph.loaders.files import MOST_GROWTH, MOST_UNPACKED, file_errors, stem_of

#: Entries of an archive, folders inside each other, and bytes of a name.
_MOST_ENTRIES: Final = 10_000
_DEEPEST: Final = 20
_LONGEST: Final = 200
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
        or any(len(part.encode("utf-8", "surrogateescape")) > _LONGEST or "\0" in part for part in parts)
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
