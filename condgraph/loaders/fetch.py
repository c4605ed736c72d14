"""Files at http, https and s3 addresses: fetched whole into a folder of their own for as long as they
are loaded, within a size and a time, and told by their address. Zip archives, fetched or not, are
unpacked there (`archive`).

The address of a source may have a login, which is sent to its own server alone. What is shown and
kept of an address has neither the login nor what stands after a `?`, which may be a key. Redirects
are followed to http and https, never from https to http.
"""

from __future__ import annotations

import http.client
import os
import re
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, TypeVar, cast
from urllib.parse import SplitResult, unquote

from condgraph.engine.bounds import check, current
from condgraph.engine.errors import CondgraphError, LoadError, OptionError, shortened
from condgraph.engine.wire import Wire
from condgraph.loaders.addresses import (
    LOCAL,
    is_address,
    login_of,
    origin,
    plain,
    shown_address,
    split_address,
)
from condgraph.loaders.archive import is_archive, unpack
from condgraph.loaders.base import Problem, Progress
from condgraph.loaders.s3 import open_object, told

#: Bytes that are fetched of an address, and seconds that it may take.
MOST_BYTES: Final = 2 << 30
MOST_SECONDS: Final = 600.0
#: Seconds to connect, and seconds that a server may be silent.
PATIENCE: Final = 20.0
SILENCE: Final = 60.0

#: A report of a load.
Told = TypeVar("Told")
_BLOCK: Final = 1 << 18
#: Each block of an object is a request of its own.
_OBJECT_BLOCK: Final = 1 << 23


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that was fetched, or what an archive holds: where it lies, and what is shown of its
    address.
    """

    path: Path
    location: str

    def __fspath__(self) -> str:
        return str(self.path)


def is_elsewhere(source: Any) -> bool:
    """Whether a source, or one of a list of sources, is an address that is fetched, or an archive."""
    if isinstance(source, (list, tuple, set, frozenset)):
        return any(map(is_elsewhere, source))
    return is_address(source) or is_archive(source)


@contextmanager
def fetched(source: Any, progress: Progress | None = None, *, pages: bool = False) -> Iterator[Any]:
    """A source, or a list of them, with a `Fetched` for each address and each archive, whose files are
    there until the end; errors in between that name a file name its address.

    `pages`: whether a page of HTML is taken. Raises `LoadError`, and at the deadline of the call
    `DeadlineError`.
    """
    with tempfile.TemporaryDirectory(prefix="condgraph-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        several = isinstance(source, (list, tuple, set, frozenset))
        listed = sorted(source, key=str) if isinstance(source, (set, frozenset)) else list(source) if several else [source]
        places: dict[str, str] = {}
        found = []
        for one in listed:
            got = _fetch(one, folder, progress, pages) if is_address(one) else one
            path = got.path if isinstance(got, Fetched) else Path(got) if is_archive(got) else None
            if path is not None and is_archive(path):
                shown = got.location if isinstance(got, Fetched) else str(got)
                with _renamed({str(path): shown}):
                    inside, location = unpack(path, folder / f"archive-{len(places)}" / "files")
                got = Fetched(inside, location.replace(str(path), shown))
            if isinstance(got, Fetched):
                places[str(got.path)] = got.location
            found.append(got)
        with _renamed(places):
            yield found if several else found[0]


def told_by_address(report: Told, files: Any) -> Told:
    """A report of a load, whose problems name the address of a file that was fetched."""
    places = {str(one.path): one.location for one in (files if isinstance(files, list) else [files]) if isinstance(one, Fetched)}
    said: Any = report

    def told(problems: Iterable[Problem]) -> Iterator[Problem]:
        return (replace(one, file=shown_place(one.file, places)) for one in problems)

    kinds = tuple(replace(one, examples=list(told(one.examples))) for one in said.kinds)
    return cast("Told", replace(said, problems=tuple(told(said.problems)), kinds=kinds))


def shown_place(path: str, places: Mapping[str, str]) -> str:
    """Where a file is, from where it lies: a file that was fetched, or one below what was."""
    for below, location in places.items():
        if path == below or path.startswith(below + os.sep):
            return location + path[len(below) :]
    return path


@contextmanager
def _renamed(places: Mapping[str, str]) -> Iterator[None]:
    """Have an error name the address, and not the file that came from it."""
    try:
        yield
    except CondgraphError as error:
        for path, location in places.items():
            error.message = error.message.replace(path, location)
            error.hint = error.hint.replace(path, location) if error.hint else error.hint
        if isinstance(error, LoadError) and error.file:
            error.file = shown_place(error.file, places)
        error.args = (error.message,)
        raise


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to http and https, and sends the login to its own server alone."""

    def __init__(self, split: SplitResult, login: str | None) -> None:
        self._origin, self._login = origin(split), login

    def redirect_request(self, request: Any, stream: Any, code: int, message: str, headers: Any, newurl: str) -> Any:
        """The request to follow with; raises `LoadError` for one that is not followed."""
        split = split_address(newurl)
        scheme = split.scheme.lower()
        if scheme not in ("http", "https") or (scheme == "http" and request.type == "https"):
            raise LoadError(f"the server sends on to {scheme}://, which is not followed", file=shown_address(newurl), hint=LOCAL)
        following = super().redirect_request(request, stream, code, message, headers, plain(split))
        if following is not None and self._login is not None and origin(split) == self._origin:
            following.add_unredirected_header("Authorization", self._login)
        return following


def _fetch(text: str, folder: Path, progress: Progress | None, pages: bool) -> Fetched:
    split = split_address(text)
    shown, login = shown_address(text), login_of(split)
    path = _path(split, folder)
    if split.scheme.lower().startswith("s3"):
        _fetch_object(split, path, shown, progress)
        return Fetched(path, shown)
    wire = Wire(PATIENCE)
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        *wire.handlers(),
        _Redirects(split, login),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    opener.addheaders = [("User-Agent", "condgraph"), ("Accept", "*/*"), ("Accept-Encoding", "identity")]
    request = urllib.request.Request(plain(split))
    if login is not None:
        request.add_unredirected_header("Authorization", login)
    until = time.monotonic() + MOST_SECONDS
    with _watched(wire, until):
        try:
            with opener.open(request, timeout=SILENCE) as response, path.open("wb") as out:
                _copy(response, out, shown, progress, pages, wire)
        except CondgraphError:
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            _over(wire, shown)
            raise LoadError(f"the file cannot be fetched: {_told(error)}", file=shown, hint=_hint(error)) from None
    return Fetched(path, shown)


def _fetch_object(split: SplitResult, path: Path, shown: str, progress: Progress | None) -> None:
    """Fetch a file from a bucket of S3, block by block."""
    until = time.monotonic() + MOST_SECONDS
    stream, length = open_object(split, shown, PATIENCE, SILENCE)
    try:
        with stream, path.open("wb") as out:
            if length > MOST_BYTES:
                raise LoadError(f"the file has more than {MOST_BYTES >> 20} MiB", file=shown, hint=LOCAL)
            while block := stream.read(_OBJECT_BLOCK):
                check()
                if time.monotonic() > until:
                    raise LoadError(f"the file took more than {MOST_SECONDS:g} seconds to fetch", file=shown, hint=LOCAL)
                out.write(block)
                if progress is not None:
                    progress(shown, 0, None)
            if out.tell() < length:
                raise LoadError(f"the connection ended after {out.tell():,} of {length:,} bytes", file=shown)
    except OSError as error:
        raise LoadError(f"the file cannot be fetched: {told(error)}", file=shown) from None


def _copy(response: Any, out: Any, shown: str, progress: Progress | None, pages: bool, wire: Wire) -> None:
    packed = response.headers.get("Content-Encoding", "identity").lower()
    if packed not in ("", "identity", "gzip", "x-gzip"):
        raise LoadError(f"the server packs the file as {shortened(packed, 30)!r}, which was not asked for", file=shown, hint=LOCAL)
    if response.headers.get_content_type() in ("text/html", "application/xhtml+xml") and not pages:
        raise LoadError("the address gives a page of HTML, no data", file=shown, hint="format= says that it is data all the same")
    said = response.headers.get("Content-Length", "")
    length = int(said) if said.isascii() and said.isdigit() and len(said) < 20 else None
    size = 0
    while (length is None or length <= MOST_BYTES) and (block := response.read1(_BLOCK)):
        check()
        size += len(block)
        if size > MOST_BYTES:
            break
        out.write(block)
        if progress is not None:
            progress(shown, 0, None)
    if max(size, length or 0) > MOST_BYTES:
        raise LoadError(f"the file has more than {MOST_BYTES >> 20} MiB", file=shown, hint=LOCAL)
    _over(wire, shown)
    if length is not None and size < length:
        raise LoadError(f"the connection ended after {size:,} of {length:,} bytes", file=shown)


@contextmanager
def _watched(wire: Wire, until: float) -> Iterator[None]:
    """Cut a connection once the call was cancelled, or its time is over, however slowly bytes come."""
    done, budget = Event(), current()

    def watch() -> None:
        while not done.wait(0.1):
            try:
                if budget is not None:
                    budget.check()
            except CondgraphError:
                break
            if time.monotonic() > until:
                break
        else:
            return
        wire.cut()

    watcher = Thread(target=watch, name="condgraph fetching", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _over(wire: Wire, shown: str) -> None:
    """Raise where the connection was cut on our side."""
    check()
    if wire.over:
        raise LoadError(f"the file took more than {MOST_SECONDS:g} seconds to fetch", file=shown, hint=LOCAL)


def _told(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        if error.code in (301, 302, 303, 307, 308):
            return "the server sends on too often, or to an address that is not followed"
        return f"the server answers {error.code} {shortened(str(error.reason), 60)}"
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, TimeoutError):
        return "the server does not answer in time"
    return shortened(str(getattr(reason, "strerror", None) or reason) or type(error).__name__, 120)


def _hint(error: Exception) -> str | None:
    refused = isinstance(error, urllib.error.HTTPError) and error.code in (401, 403)
    return "https://user:password@server/... sends a login" if refused else None


def _path(split: SplitResult, folder: Path) -> Path:
    """Where a file lies: under its server and its folders, by which sources of one name are told
    apart.
    """
    parts = [_part(one) for one in (split.netloc.rpartition("@")[2], *split.path.split("/")) if one]
    for number in count(1):
        # The name of the folder itself is another one each time, and in no name of a source.
        path = folder.joinpath(str(number), *parts[-6:])
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            continue
        except OSError as error:
            raise OptionError(f"there is no room to fetch files to: {error.strerror}", hint="TMPDIR names another folder") from None
        if not path.exists():
            return path
    raise AssertionError("numbers do not end")


def _part(text: str) -> str:
    plain = re.sub(r"[^\w .()+,=@~-]", "_", unquote(text)).strip(". ")
    stem, suffix = os.path.splitext(plain)
    return (stem[:60] + suffix[:20]) or "_"
