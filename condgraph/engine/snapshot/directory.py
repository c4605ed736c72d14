"""A store directory: one sub-directory a generation, and the manifest that names the current one."""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from numpy.typing import NDArray

from condgraph.engine import errors
from condgraph.engine.errors import StoreDamagedError, StoreError
from condgraph.engine.snapshot.container import LOST, ArrayFile, PackedFile, packed, write_arrays

# -- removal ---------------------------------------------------------------------------------------
# Taking a graph's files away from a directory, by their names: whatever else a person keeps there
# stays, and so do its folders.


#: What a generation holds: its arrays, its manifest where it is an earlier version, the index of names,
#: the RDF store and what an unfinished run left of either.
_GENERATION: Final = re.compile(r"columns|manifest\.json|\.?names-lexical-\d+\.npz(\.\d+)?")
_RDF: Final = re.compile(r"rdf\d*(\.\d+)?")
#: The files of an RDF store, which is RocksDB's.
_ROCKS: Final = re.compile(r"\d{6,}\.(sst|log|blob)|\d+\.dbtmp|CURRENT|IDENTITY|LOCK|LOG(\.old\.\d+)?|(MANIFEST|OPTIONS)-\d+")
#: The files of vectors.
VECTORS: Final = re.compile(r"(index\.json|\.index\.json\.\d+|[0-9a-f]{16}\.(arrays|faiss)|(\.\d+-)?part-\d+-\d+\.npz)")

#: The folder of a load in bounded memory (`spilling`), and its files, DuckDB's included.
SPILL: Final = "spill"
_SPILLED: Final = re.compile(r"(tmp_)?[a-z0-9.-]+\.(column|npz|parquet)|duckdb_temp_[\w.-]+")


def remove_spill(directory: Path) -> None:
    """Remove what a load in bounded memory left in the directory of a graph."""
    remove_files(directory / SPILL, _SPILLED)


def remove_generation(folder: Path) -> None:
    """Remove the files of a generation, and its folder where nothing else is in it."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in list(folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and _RDF.fullmatch(path.name):
                remove_files(path, _ROCKS)
    remove_files(folder, _GENERATION)


def remove_files(folder: Path, names: re.Pattern[str]) -> None:
    """Remove the files of a folder that have such names, and the folder where nothing else is in
    it.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in list(folder.iterdir()):
            if names.fullmatch(path.name) and (path.is_symlink() or not path.is_dir()):
                path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


# -- generations -----------------------------------------------------------------------------------
# STORE/GRAPH/manifest.json      the current generation: array table, counts, sources; its own checksum
#     STORE/GRAPH/g000007/columns    the arrays
#     STORE/GRAPH/g000006/manifest.json  the manifest of an earlier version, where the settings say that it stays
#     STORE/GRAPH/edits.log          single changes (below); the manifest says how far it contains them
#     STORE/GRAPH/lock               held by whoever writes
#
# A generation is written beside the current one, fsynced, and made current by renaming its manifest
# over the old one. A reader keeps what it has mapped, also when its directory is gone. What a killed
# writer left is removed by the next one.


FORMAT_VERSION: Final = 3
#: Versions that are read. In stores of version 2 all columns are as they are.
_READ: Final = (2, FORMAT_VERSION)
#: Questions with their programs, which are kept with a graph through all its generations.
DEMONSTRATIONS: Final = "demonstrations.jsonl"
_MANIFEST: Final = "manifest.json"
_COLUMNS: Final = "columns"
_LOCK: Final = "lock"
#: How often a directory is made again that is missing right after.
_MOST_MISSING: Final = 1_000
_VECTORS: Final = "vectors"
_DIRECTORY_GENERATION: Final = re.compile(r"g(\d{6,})")
_HEAD: Final = re.compile(rb"condgraph (\d{1,9}) ([0-9a-f]{8})")
#: Generations in a row that loads may replace while one of them is opened.
_TRIES: Final = 50
#: What file systems take as the name of one directory.
_LONGEST_NAME: Final = 255


def graph_directory(store: Path, graph: str) -> Path:
    """Where a graph of a store lives; any name is a legal directory name once quoted, if it is not
    empty and not too long.
    """
    if not graph:
        raise errors.OptionError("the name of a graph is empty")
    try:
        folder = quote(graph, safe="").replace(".", "%2E")
    except UnicodeEncodeError:
        raise errors.OptionError(f"the name of a graph is text, not {graph!r}") from None
    if len(folder) > _LONGEST_NAME:
        raise errors.OptionError(f"the name of a graph has at most {_LONGEST_NAME} characters once quoted, not {len(folder)}")
    return store / folder


def graph_names(store: Path) -> list[str]:
    """The graphs of a store, sorted."""
    if not store.is_dir():
        return []
    return sorted(unquote(path.parent.name) for path in store.glob(f"*/{_MANIFEST}"))


def read_generation(directory: Path, version: str | None = None) -> tuple[dict[str, Any], ArrayFile] | None:
    """The manifest and the mapped arrays of the current generation, or of an earlier version by its name; None where there
    is none.
    """
    if version is not None:
        manifest = _read_manifest(directory / version)
        return None if manifest is None else (manifest, _arrays(directory, manifest))
    for attempt in range(_TRIES):
        manifest = _read_manifest(directory)
        if manifest is None or not manifest["generation"]:
            return None
        try:
            return manifest, _arrays(directory, manifest)
        except errors.StoreDamagedError:
            # A writer may have switched and cleaned up between the two reads: then the manifest has
            # changed.
            again = _read_manifest(directory)
            if attempt == _TRIES - 1 or again is None or again["generation"] == manifest["generation"]:
                raise
    raise AssertionError("unreachable")  # pragma: no cover


def _arrays(directory: Path, manifest: Mapping[str, Any]) -> ArrayFile:
    return PackedFile(directory / manifest["generation"] / _COLUMNS, manifest["arrays"], manifest.get("packed", {}))


def is_current(directory: Path, about: Mapping[str, Any]) -> bool:
    """Whether the manifest of a generation is the one that is there now. A graph that was removed and
    loaded again has generations of the same names.
    """
    now = _read_manifest(directory)
    return now is not None and all(now.get(key) == about.get(key) for key in ("generation", "written", "settings"))


def _read_manifest(directory: Path) -> dict[str, Any] | None:
    path = directory / _MANIFEST
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        # The first writer leaves an empty manifest before anything else, so one that is missing was
        # taken away.
        if any((path / _COLUMNS).exists() for _, path in _generations(directory)):
            raise errors.StoreDamagedError(f"{path} is missing", hint=LOST) from None
        return None
    except NotADirectoryError:
        raise errors.StoreMissingError(f"{directory.parent} is not a directory") from None
    except OSError as error:
        raise errors.StoreError(f"{path} cannot be read: {error.strerror}") from error
    match = _HEAD.fullmatch(head)
    if match is None or int(match[2], 16) != zlib.crc32(body):
        raise errors.StoreDamagedError(f"{path} is not what was written", hint=LOST)
    version = int(match[1])
    if version not in _READ:
        raise errors.StoreVersionError(
            f"{path} has format {version}, this version reads {_READ[0]} to {_READ[-1]}",
            hint="export it with the version that wrote it (condgraph export -d STORE -o FILE.jsonl), and load the export",
        )
    manifest: dict[str, Any] = json.loads(body)
    return manifest


def write_generation(directory: Path, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
    """Write a new generation and make it current. The caller holds `writing(directory)`."""
    try:
        # Never the name of a generation that was ever seen here, so that a reader cannot mix two.
        number = 1 + max((n for n, _ in _generations(directory)), default=0)
        name = f"g{number:06d}"
        folder = directory / name
        folder.mkdir()
        parts, forms = packed(arrays)
        table = write_arrays(folder / _COLUMNS, parts)
        _fsync_directory(folder)
        manifest = {"generation": name, "written": time.time(), "arrays": table, "packed": forms, **about}
        if _keeps_versions(manifest):
            # A clock that was set back changes no order.
            manifest["written"] = max(manifest["written"], _store_version(directory))
        _write_manifest(directory, manifest)
    except OSError as error:
        raise errors.StoreError(f"{directory} cannot be written: {error.strerror}") from error
    _clean(directory, manifest)


def write_settings(directory: Path, settings: Mapping[str, Any]) -> None:
    """Change the settings of the current generation. The caller holds `writing(directory)`."""
    manifest = _read_manifest(directory)
    if manifest is None:
        raise errors.StoreMissingError(f"there is no graph in {directory}")
    manifest["settings"] = dict(settings)
    try:
        _write_manifest(directory, manifest)
    except OSError as error:
        raise errors.StoreError(f"{directory} cannot be written: {error.strerror}") from error
    _clean(directory, manifest)


# -- earlier versions --------------------------------------------------------------------------------


def _keeps_versions(manifest: Mapping[str, Any]) -> bool:
    return bool(manifest.get("settings", {}).get("keep"))


def _store_version(directory: Path) -> float:
    """Leave the manifest of the current generation in its folder, before another takes its place; the first moment, in
    seconds of Unix time, that is after it.
    """
    manifest = _read_manifest(directory)
    if manifest is None or not manifest["generation"]:
        return 0.0
    place = directory / manifest["generation"] / _MANIFEST
    place.unlink(missing_ok=True)
    try:
        # The manifest is replaced by a rename, which leaves the linked file as it is.
        os.link(directory / _MANIFEST, place)
    except OSError:
        place.write_bytes((directory / _MANIFEST).read_bytes())
    _fsync_directory(place.parent)
    written: float = manifest["written"]
    return written + 1e-3


def versions(directory: Path) -> list[dict[str, Any]]:
    """The manifests of all versions that are stored, the current one last."""
    return _versions(directory)[0]


def damaged_versions(directory: Path) -> list[str]:
    """The names of the earlier versions whose manifest cannot be read. They stay as long as earlier versions do."""
    return _versions(directory)[1]


def _versions(directory: Path) -> tuple[list[dict[str, Any]], list[str]]:
    current = _read_manifest(directory)
    if current is None or not current["generation"]:
        return [], []
    stored, damaged = list[dict[str, Any]](), list[str]()
    for _, folder in sorted(_generations(directory)):
        # What a killed writer left has no manifest.
        if folder.name == current["generation"] or not (folder / _MANIFEST).exists():
            continue
        try:
            manifest = _read_manifest(folder)
        except errors.StoreError:
            damaged.append(folder.name)
            continue
        if manifest is not None:
            stored.append(manifest)
    return [*stored, current], damaged


def _stored_versions(directory: Path, current: Mapping[str, Any], now: float) -> set[str]:
    """The generations that stay: the current one, and the earlier ones that the settings keep: the last `number`, or those
    that were current in the last `seconds`.
    """
    rule = current.get("settings", {}).get("keep") or {}
    stay = {str(current["generation"])}
    if not rule or not current["generation"]:
        return stay
    stored, damaged = _versions(directory)
    stay.update(damaged)
    if "number" in rule:
        return stay | {manifest["generation"] for manifest in stored[-int(rule["number"]) :]}
    return stay | {earlier["generation"] for earlier, later in pairwise(stored) if later["written"] >= now - rule["seconds"]}


def _write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    body = json.dumps(manifest).encode()
    fresh = directory / f"{_MANIFEST}.new"
    with fresh.open("wb") as file:
        file.write(f"condgraph {FORMAT_VERSION} {zlib.crc32(body):08x}\n".encode() + body)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, directory / _MANIFEST)
    _fsync_directory(directory)


@contextmanager
def writing(directory: Path, *, wait: float = 0.0) -> Iterator[None]:
    """Hold the directory's lock; waits up to `wait` seconds, then raises `StoreBusyError`. A dead
    process holds no lock.
    """
    try:
        handle = _locked(directory, time.monotonic() + wait)
    except OSError as error:
        raise errors.StoreError(f"{directory} cannot be written: {error.strerror}") from error
    try:
        manifest = _read_manifest(directory)
        if manifest is None:
            _write_manifest(directory, {"generation": "", "arrays": {}})
        _clean(directory, manifest or {"generation": ""})
        remove_spill(directory)
        yield
    finally:
        os.close(handle)


def _locked(directory: Path, until: float) -> int:
    """The lock file of a directory, open and locked."""
    lock, missing = directory / _LOCK, 0
    while True:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            # Whoever deleted the graph took the directory away in between; or it cannot be made here, as below a working
            # directory that was removed.
            missing += 1
            if missing > _MOST_MISSING:
                raise
            continue
        try:
            while not try_lock(handle):
                if time.monotonic() >= until:
                    raise errors.StoreBusyError(f"{directory} is being written by another process", hint="wait for it, or stop it")
                time.sleep(0.05)
            with suppress(FileNotFoundError):
                if os.path.sameopenfile(handle, descriptor := os.open(lock, os.O_RDWR)):
                    os.close(descriptor)
                    return handle
                os.close(descriptor)
        except BaseException:
            os.close(handle)
            raise
        # It was deleted with the graph while this one waited: the lock of nothing.
        os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file for as long as it is open; whether nobody else has."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _generations(directory: Path) -> Iterator[tuple[int, Path]]:
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in directory.iterdir():
            match = _DIRECTORY_GENERATION.fullmatch(path.name)
            if match:
                yield int(match[1]), path


def _clean(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Remove generations that are neither current nor stored as versions, and a manifest that never became one."""
    stay = _stored_versions(directory, manifest, time.time())
    for _, path in _generations(directory):
        if path.name not in stay:
            remove_generation(path)
    (directory / f"{_MANIFEST}.new").unlink(missing_ok=True)


def remove_graph(directory: Path, *, wait: float = 0.0) -> bool:
    """Remove a graph's files, and its directory where nothing else is in it; whether there was a
    graph.

    Readers keep what they have mapped. One that was ended half way leaves no graph, and is gone on
    with by the next.
    """
    if not (directory / _MANIFEST).exists():
        return False
    try:
        with writing(directory, wait=wait):
            manifest = _read_manifest(directory)
            # From here on there is no graph, and what is left are files that nobody needs.
            nothing = {"generation": "", "arrays": {}}
            _write_manifest(directory, nothing)
            _clean(directory, nothing)
            remove_files(directory / _VECTORS, VECTORS)
            (directory / DEMONSTRATIONS).unlink(missing_ok=True)
            (directory / EDITS).unlink(missing_ok=True)
            (directory / _MANIFEST).unlink(missing_ok=True)
            (directory / _LOCK).unlink(missing_ok=True)
    except OSError as error:
        raise errors.StoreError(f"{directory} cannot be removed: {error.strerror}") from error
    with suppress(OSError):
        directory.rmdir()
    return manifest is not None and bool(manifest["generation"])


def _fsync_directory(directory: Path) -> None:
    with suppress(OSError):  # not every file system lets a directory be opened
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# -- the log of edits --------------------------------------------------------------------------------
# The log of single changes, next to the generations of a graph: one line for each, appended and
# synced. The manifest of a generation states how much of the log it contains.
#
# A line is a CRC-32, the number of bytes, and JSON. A last line without its end was never
# acknowledged, since its writer was stopped: readers ignore it, and the next writer removes it.


#: The file, in the folder of the graph.
EDITS: Final = "edits.log"
_LOG_HEAD: Final = b"condgraph edits 1\n"


class Tail(NamedTuple):
    """The records after a place in a log, where the last of them ends, and the bytes after that of a
    record that was not finished.
    """

    records: list[bytes]
    end: int
    torn: int


def log_size(directory: Path) -> int:
    """Bytes of the log; 0 where there is none."""
    try:
        return os.stat(directory / EDITS).st_size
    except OSError:
        return 0


def read_log(directory: Path, begin: int = 0) -> Tail:
    """The records from a place on. Raises `StoreDamagedError` where one is not what was written, or
    the log is shorter than a generation says.
    """
    path = directory / EDITS
    try:
        with path.open("rb") as file:
            file.seek(begin)
            data = file.read()
            size = file.tell()
    except FileNotFoundError:
        data, size = b"", 0
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    if size < begin:
        raise StoreDamagedError(f"{path} has {size} bytes, and the graph contains {begin} of it", hint=LOST)
    at = 0
    if not begin and data:
        if not data.startswith(_LOG_HEAD):
            if _LOG_HEAD.startswith(data):
                return Tail([], 0, len(data))
            raise StoreDamagedError(f"{path} is not what was written", hint=LOST)
        at = len(_LOG_HEAD)
    records = []
    while (end := data.find(b"\n", at)) >= 0:
        line = data[at:end]
        crc, _, rest = line.partition(b" ")
        length, _, body = rest.partition(b" ")
        if crc != b"%08x" % zlib.crc32(body) or length != b"%d" % len(body):
            raise StoreDamagedError(f"{path}: the change at byte {begin + at} is not what was written", hint=LOST)
        records.append(body)
        at = end + 1
    return Tail(records, begin + at, len(data) - at)


def append_record(directory: Path, body: bytes, end: int) -> int:
    """Append a record at the end of the finished ones, and sync it; where it ends. The caller holds
    the lock of the folder. A record that cannot be written whole leaves the log as it was.
    """
    path = directory / EDITS
    line = b"%08x %d %s\n" % (zlib.crc32(body), len(body), body)
    if not end:
        line = _LOG_HEAD + line
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
    try:
        try:
            os.ftruncate(handle, end)
            os.lseek(handle, end, os.SEEK_SET)
            left = memoryview(line)
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)
        except OSError as error:
            os.ftruncate(handle, end)
            raise StoreError(
                f"{path} cannot be written: {error.strerror}", hint="nothing was changed; make room, and try again"
            ) from error
    finally:
        os.close(handle)
    if not end:
        _sync_folder(directory)
    return end + len(line)


def _sync_folder(directory: Path) -> None:
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:  # not every file system lets a directory be opened
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
