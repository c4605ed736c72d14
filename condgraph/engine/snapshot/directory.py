"""A store directory: one sub-directory for each generation, and the manifest that names the current one."""

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
# Removing a graph's files from a directory, by name: other files of the user stay, with their folders.


#: The files of a generation: its arrays, its manifest if it is an earlier version, the index of names,
#: the RDF store, and remains of an unfinished run.
_GENERATION: Final = re.compile(r"columns|manifest\.json|\.?names-lexical-\d+\.npz(\.\d+)?")
_RDF: Final = re.compile(r"rdf\d*(\.\d+)?")
#: The files of an RDF store, in RocksDB's format.
_ROCKS: Final = re.compile(r"\d{6,}\.(sst|log|blob)|\d+\.dbtmp|CURRENT|IDENTITY|LOCK|LOG(\.old\.\d+)?|(MANIFEST|OPTIONS)-\d+")
#: The files of vectors.
VECTORS: Final = re.compile(r"(index\.json|\.index\.json\.\d+|[0-9a-f]{16}\.(arrays|faiss)|(\.\d+-)?part-\d+-\d+\.npz)")

#: The folder of a load in bounded memory (`spilling`), and its files, DuckDB's included.
SPILL: Final = "spill"
_SPILLED: Final = re.compile(r"(tmp_)?[a-z0-9.-]+\.(column|npz|parquet)|duckdb_temp_[\w.-]+")


def remove_spill(directory: Path) -> None:
    """Remove the remains of a load in bounded memory from the directory of a graph."""
    remove_files(directory / SPILL, _SPILLED)


def remove_generation(folder: Path) -> None:
    """Remove the files of a generation, and its folder if that is empty then."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in list(folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and _RDF.fullmatch(path.name):
                remove_files(path, _ROCKS)
    remove_files(folder, _GENERATION)


def remove_files(folder: Path, names: re.Pattern[str]) -> None:
    """Remove the files of a folder that match a pattern, and the folder if it is empty then."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in list(folder.iterdir()):
            if names.fullmatch(path.name) and (path.is_symlink() or not path.is_dir()):
                path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


# -- generations -----------------------------------------------------------------------------------
# STORE/GRAPH/manifest.json      the current generation: array table, counts, sources; its own checksum
#     STORE/GRAPH/g000007/columns    the arrays
#     STORE/GRAPH/g000006/manifest.json  the manifest of an earlier version, if the settings keep it
#     STORE/GRAPH/edits.log          single changes (below); the manifest states how many it includes
#     STORE/GRAPH/lock               held by the writer
#
# A generation is written next to the current one, fsynced, and made current by renaming its manifest
# over the old one. A reader keeps its mapped files, even if their directory is gone. Remains of a
# killed writer are removed by the next one.


FORMAT_VERSION: Final = 3
#: Versions that can be read. In version 2 no column is compressed.
_READABLE: Final = (2, FORMAT_VERSION)
#: The file of questions with their programs, which a graph keeps through all generations.
DEMONSTRATIONS: Final = "demonstrations.jsonl"
_MANIFEST: Final = "manifest.json"
_COLUMNS: Final = "columns"
_LOCK: Final = "lock"
#: How often the creation of a directory that vanishes at once is repeated.
_MAX_RETRIES: Final = 1_000
_VECTORS: Final = "vectors"
_DIRECTORY_GENERATION: Final = re.compile(r"g(\d{6,})")
_HEAD: Final = re.compile(rb"condgraph (\d{1,9}) ([0-9a-f]{8})")
#: How often opening is repeated because a load has replaced the generation.
_TRIES: Final = 50
#: The longest name of a directory on common file systems.
_MAX_NAME_BYTES: Final = 255


def graph_directory(store: Path, graph: str) -> Path:
    """Return the directory of a graph in a store. Any name is legal once quoted, if it is not empty and not too long."""
    if not graph:
        raise errors.OptionError("the name of a graph is empty")
    try:
        folder = quote(graph, safe="").replace(".", "%2E")
    except UnicodeEncodeError:
        raise errors.OptionError(f"the name of a graph is text, not {graph!r}") from None
    if len(folder) > _MAX_NAME_BYTES:
        raise errors.OptionError(f"the name of a graph has at most {_MAX_NAME_BYTES} characters once quoted, not {len(folder)}")
    return store / folder


def version_of(directory: Path) -> tuple[int, int] | None:
    """Return a value that changes when a new generation becomes current; None if there is no graph."""
    try:
        status = (directory / _MANIFEST).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


def graph_names(store: Path) -> list[str]:
    """Return the names of the graphs in a store, sorted."""
    if not store.is_dir():
        return []
    return sorted(unquote(path.parent.name) for path in store.glob(f"*/{_MANIFEST}"))


def read_generation(directory: Path, version: str | None = None) -> tuple[dict[str, Any], ArrayFile] | None:
    """Return the manifest and the mapped arrays of the current generation, or of an earlier version by its name; None
    if there is none.
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
            # If a writer switched and cleaned up between the two reads, the manifest has changed.
            again = _read_manifest(directory)
            if attempt == _TRIES - 1 or again is None or again["generation"] == manifest["generation"]:
                raise
    raise AssertionError("unreachable")  # pragma: no cover


def _arrays(directory: Path, manifest: Mapping[str, Any]) -> ArrayFile:
    return PackedFile(directory / manifest["generation"] / _COLUMNS, manifest["arrays"], manifest.get("packed", {}))


def is_current(directory: Path, about: Mapping[str, Any]) -> bool:
    """Return whether the manifest of a generation is still the current one. A graph that was removed and loaded again
    reuses the names of generations.
    """
    current_manifest = _read_manifest(directory)
    return current_manifest is not None and all(
        current_manifest.get(key) == about.get(key) for key in ("generation", "written", "settings")
    )


def _read_manifest(directory: Path) -> dict[str, Any] | None:
    path = directory / _MANIFEST
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        # The first writer creates an empty manifest before anything else, so a missing one was removed.
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
    if version not in _READABLE:
        raise errors.StoreVersionError(
            f"{path} has format {version}, this version reads {_READABLE[0]} to {_READABLE[-1]}",
            hint="export it with the version that wrote it (condgraph export -d STORE -o FILE.jsonl), and load the export",
        )
    manifest: dict[str, Any] = json.loads(body)
    return manifest


def write_generation(directory: Path, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
    """Write a new generation and make it current. The caller holds `writing(directory)`."""
    try:
        # Never a name that was used here before, so that a reader cannot mix two generations.
        number = 1 + max((existing for existing, _ in _generations(directory)), default=0)
        name = f"g{number:06d}"
        folder = directory / name
        folder.mkdir()
        parts, forms = packed(arrays)
        table = write_arrays(folder / _COLUMNS, parts)
        _fsync_directory(folder)
        manifest = {"generation": name, "written": time.time(), "arrays": table, "packed": forms, **about}
        if _keeps_versions(manifest):
            # Keep the order even if the clock was set back.
            manifest["written"] = max(manifest["written"], _store_version(directory))
        _write_manifest(directory, manifest)
    except OSError as error:
        # What was written of it would keep a full disk full.
        with suppress(OSError, errors.StoreError):
            _clean(directory, _read_manifest(directory) or {"generation": ""})
        raise errors.StoreError(f"{directory} cannot be written: {error.strerror}") from error
    _clean(directory, manifest)


def first_settings(directory: Path) -> dict[str, Any]:
    """Return the settings that were written before the first load."""
    manifest = _read_manifest(directory)
    return {} if manifest is None or manifest["generation"] else manifest.get("settings", {})


def write_settings(directory: Path, settings: Mapping[str, Any]) -> None:
    """Change the settings of the current generation, or of the first one. The caller holds `writing(directory)`."""
    manifest = _read_manifest(directory)
    if manifest is None:
        raise errors.StoreMissingError(f"there is no graph in {directory}")
    manifest["settings"] = dict(settings)
    with _failures(directory):
        _write_manifest(directory, manifest)
    _clean(directory, manifest)


# -- earlier versions --------------------------------------------------------------------------------


def _keeps_versions(manifest: Mapping[str, Any]) -> bool:
    return bool(manifest.get("settings", {}).get("keep"))


def _store_version(directory: Path) -> float:
    """Store the manifest of the current generation in its folder, before another replaces it; return the first moment
    after it, in seconds of Unix time.
    """
    manifest = _read_manifest(directory)
    if manifest is None or not manifest["generation"]:
        return 0.0
    place = directory / manifest["generation"] / _MANIFEST
    place.unlink(missing_ok=True)
    try:
        # The manifest is replaced by a rename, which does not change the linked file.
        os.link(directory / _MANIFEST, place)
    except OSError:
        place.write_bytes((directory / _MANIFEST).read_bytes())
    _fsync_directory(place.parent)
    written: float = manifest["written"]
    return written + 1e-3


def versions(directory: Path) -> list[dict[str, Any]]:
    """Return the manifests of all stored versions, the current one last."""
    return _versions(directory)[0]


def damaged_versions(directory: Path) -> list[str]:
    """Return the names of the earlier versions whose manifest cannot be read. They are kept as long as earlier
    versions are.
    """
    return _versions(directory)[1]


def _versions(directory: Path) -> tuple[list[dict[str, Any]], list[str]]:
    current = _read_manifest(directory)
    if current is None or not current["generation"]:
        return [], []
    stored, damaged = list[dict[str, Any]](), list[str]()
    for _, folder in sorted(_generations(directory)):
        # The remains of a killed writer have no manifest.
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
    """Return the generations to keep: the current one, and the earlier ones that the settings keep: the last
    `number`, or those that were current within the last `seconds`.
    """
    rule = current.get("settings", {}).get("keep") or {}
    keep = {str(current["generation"])}
    if not rule or not current["generation"]:
        return keep
    stored, damaged = _versions(directory)
    keep.update(damaged)
    if "number" in rule:
        return keep | {manifest["generation"] for manifest in stored[-int(rule["number"]) :]}
    return keep | {earlier["generation"] for earlier, later in pairwise(stored) if later["written"] >= now - rule["seconds"]}


def _write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    body = json.dumps(manifest).encode()
    temporary = directory / f"{_MANIFEST}.new"
    with temporary.open("wb") as file:
        file.write(f"condgraph {FORMAT_VERSION} {zlib.crc32(body):08x}\n".encode() + body)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, directory / _MANIFEST)
    _fsync_directory(directory)


@contextmanager
def _failures(path: Path, verb: str = "written") -> Iterator[None]:
    """Raise `StoreError` for the errors of the system."""
    try:
        yield
    except OSError as error:
        raise errors.StoreError(f"{path} cannot be {verb}: {error.strerror}") from error


@contextmanager
def writing(directory: Path, *, wait: float = 0.0) -> Iterator[None]:
    """Hold the directory's lock; wait up to `wait` seconds, then raise `StoreBusyError`. The lock of a dead process
    is released by the system.
    """
    with _failures(directory):
        handle = _locked(directory, time.monotonic() + wait)
    try:
        manifest = _read_manifest(directory)
        with _failures(directory):
            if manifest is None:
                _write_manifest(directory, {"generation": "", "arrays": {}})
            _clean(directory, manifest or {"generation": ""})
            remove_spill(directory)
        yield
    finally:
        os.close(handle)


def _locked(directory: Path, until: float) -> int:
    """Return the open and locked lock file of a directory."""
    lock, missing = directory / _LOCK, 0
    while True:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            # The graph was deleted with its directory in the meantime; or the directory cannot be created, for example in a
            # working directory that was removed.
            missing += 1
            if missing > _MAX_RETRIES:
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
        # The lock file was deleted with the graph in the meantime, so this lock is void.
        os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file until it is closed; return whether that succeeded."""
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
    """Remove generations that are neither current nor stored as versions, and an unfinished manifest."""
    keep = _stored_versions(directory, manifest, time.time())
    for _, path in _generations(directory):
        if path.name not in keep:
            remove_generation(path)
    (directory / f"{_MANIFEST}.new").unlink(missing_ok=True)


def remove_graph(directory: Path, *, wait: float = 0.0) -> bool:
    """Remove a graph's files, and its directory if that is empty then; return whether there was a graph.

    Readers keep their mapped files. If the removal is interrupted, there is no graph, and the next removal finishes
    it.
    """
    if not (directory / _MANIFEST).exists():
        return False
    with _failures(directory, "removed"), writing(directory, wait=wait):
        manifest = _read_manifest(directory)
        # From here on there is no graph, only unused files.
        empty_manifest = {"generation": "", "arrays": {}}
        _write_manifest(directory, empty_manifest)
        _clean(directory, empty_manifest)
        remove_files(directory / _VECTORS, VECTORS)
        for name in (DEMONSTRATIONS, EDITS, _MANIFEST, _LOCK):
            (directory / name).unlink(missing_ok=True)
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
# synced. The manifest of a generation states how much of the log it includes.
#
# A line is a CRC-32, the number of bytes, and JSON. An incomplete last line was never acknowledged,
# because its writer was stopped: readers ignore it, and the next writer removes it.


#: The name of the log, in the folder of the graph.
EDITS: Final = "edits.log"
_LOG_HEAD: Final = b"condgraph edits 1\n"


class Tail(NamedTuple):
    """The records after a position in a log, the end of the last one, and the number of bytes of an incomplete record
    after it.
    """

    records: list[bytes]
    end: int
    torn: int


def log_size(directory: Path) -> int:
    """Return the size of the log in bytes; 0 if there is none."""
    try:
        return os.stat(directory / EDITS).st_size
    except OSError:
        return 0


def read_log(directory: Path, begin: int = 0) -> Tail:
    """Return the records from a position on. Raise `StoreDamagedError` if a record is damaged, or if the log is
    shorter than a generation states.
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
    position = 0
    if not begin and data:
        if not data.startswith(_LOG_HEAD):
            if _LOG_HEAD.startswith(data):
                return Tail([], 0, len(data))
            raise StoreDamagedError(f"{path} is not what was written", hint=LOST)
        position = len(_LOG_HEAD)
    records = []
    while (end := data.find(b"\n", position)) >= 0:
        line = data[position:end]
        crc, _, remainder = line.partition(b" ")
        length, _, body = remainder.partition(b" ")
        if crc != b"%08x" % zlib.crc32(body) or length != b"%d" % len(body):
            raise StoreDamagedError(f"{path}: the change at byte {begin + position} is not what was written", hint=LOST)
        records.append(body)
        position = end + 1
    return Tail(records, begin + position, len(data) - position)


def append_record(directory: Path, body: bytes, end: int) -> int:
    """Append a record after the last complete one and sync it; return its end. The caller holds the lock of the
    folder. If the record cannot be written completely, the log is unchanged.
    """
    path = directory / EDITS
    line = b"%08x %d %s\n" % (zlib.crc32(body), len(body), body)
    if not end:
        line = _LOG_HEAD + line
    with _failures(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            os.ftruncate(handle, end)
            os.lseek(handle, end, os.SEEK_SET)
            unwritten = memoryview(line)
            while unwritten:
                unwritten = unwritten[os.write(handle, unwritten) :]
            os.fsync(handle)
        except OSError as error:
            os.ftruncate(handle, end)
            raise StoreError(
                f"{path} cannot be written: {error.strerror}", hint="nothing was changed; make room, and try again"
            ) from error
    finally:
        os.close(handle)
    if not end:
        _fsync_directory(directory)
    return end + len(line)
