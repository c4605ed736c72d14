"""Fetches files at http, https and s3 addresses, and unpacks zip archives (`files`).

Files are fetched whole into a temporary folder that exists during the load, within limits of size and
time, and are reported by their address. Redirects are followed to http and https, but never from
https to http.
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
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, TypeVar, cast
from urllib.parse import SplitResult, parse_qsl, unquote

from condgraph.engine.bounds import check, current
from condgraph.engine.errors import CondgraphError, LoadError, OptionError, nearest, pyarrow_or_error, shortened
from condgraph.engine.wire import Wire
from condgraph.loaders.base import Problem, Progress
from condgraph.loaders.files import (
    LOCAL,
    Fetched,
    is_address,
    is_archive,
    login_of,
    origin,
    request_url,
    shown_address,
    shown_place,
    split_address,
    unpack,
)

# -- objects of S3 -----------------------------------------------------------------------------------
# Arrow's client reads an object of a bucket as a stream. The credentials are a login in the address, else
# those that AWS programs use (`AWS_ACCESS_KEY_ID`, profiles, roles); without either the request is
# anonymous, which public buckets allow. Keys are never stored or named in a message.


#: Options after the `?` of an address.
OPTIONS: Final = ("anonymous", "endpoint", "region")
#: Where AWS programs find credentials.
_LOGINS: Final = (
    "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_SHARED_CREDENTIALS_FILE",
)  # fmt: skip
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_TRIES: Final = 3
_HINT: Final = (
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, give the credentials; ?anonymous=true uses none, ?region= and "
    "?endpoint= say where"
)
_URL: Final = re.compile(r"(?:(https?)://)?((?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?)/?", re.IGNORECASE).fullmatch


def open_object(split: SplitResult, shown: str, patience: float, silence: float) -> tuple[Any, int]:
    """Return the object at an address as a stream, and its size in bytes; raises `LoadError`.

    `patience` and `silence` are the timeouts in seconds for connecting and for each read.
    """
    pyarrow = pyarrow_or_error()
    from pyarrow import fs

    options = dict(parse_qsl(split.query, keep_blank_values=True))
    for name in options:
        if name not in OPTIONS:
            raise OptionError(
                f"an s3:// address has no option {shortened(name, 40)!r}", candidates=nearest(name, OPTIONS),
                hint=f"it may have {', '.join(OPTIONS)}",
            )  # fmt: skip
    bucket, path = (split.hostname or ""), unquote(split.path.strip("/"))
    if not path or split.path.endswith("/"):
        raise LoadError(
            "the address names no file in the bucket", file=shown, hint="s3://bucket/path/to/file.csv, or a list of them"
        )
    credentials, endpoint = _credentials(split, options), _endpoint(options)
    try:
        system = fs.S3FileSystem(**credentials, **_where(endpoint, options, bucket, fs), **_timeouts(fs, patience, silence))
        stream = system.open_input_file(f"{bucket}/{path}")
        return stream, stream.size()
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise LoadError(f"the file cannot be fetched: {s3_problem(error)}", file=shown, hint=_HINT) from None


def _credentials(split: SplitResult, given: dict[str, str]) -> dict[str, Any]:
    if split.username is not None:
        return {"access_key": unquote(split.username), "secret_key": unquote(split.password or "")}
    anonymous = given.get("anonymous", "").casefold()
    if anonymous not in ("", "true", "false"):
        raise OptionError("anonymous is true or false")
    has_login = any(os.environ.get(name) for name in _LOGINS) or (Path.home() / ".aws" / "credentials").exists()
    return {"anonymous": anonymous == "true" or (anonymous == "" and not has_login)}


def _endpoint(given: dict[str, str]) -> dict[str, Any]:
    url = given.get("endpoint") or next((url for name in _ENDPOINTS if (url := os.environ.get(name))), "")
    if not url:
        return {}
    parts = _URL(url)
    if parts is None:
        raise OptionError("the endpoint of an s3:// address is not an address", hint="endpoint=https://host:port")
    return {"endpoint_override": parts[2], "scheme": (parts[1] or "https").lower()}


def _where(endpoint: dict[str, Any], given: dict[str, str], bucket: str, fs: Any) -> dict[str, Any]:
    region = given.get("region") or next((item for name in _REGIONS if (item := os.environ.get(name))), "")
    return {**endpoint, "region": region or ("us-east-1" if endpoint else fs.resolve_s3_region(bucket))}


def _timeouts(fs: Any, patience: float, silence: float) -> dict[str, Any]:
    tries = fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES)
    return {"connect_timeout": patience, "request_timeout": silence, "retry_strategy": tries}


def s3_problem(error: Exception) -> str:
    """Return the message of the client's error, in short."""
    text = str(error)
    for pattern, message in (
        ("NO_SUCH_KEY", "there is no such file"),
        ("NO_SUCH_BUCKET", "there is no such bucket"),
        ("NoSuchKey", "there is no such file"),
        ("NoSuchBucket", "there is no such bucket"),
        ("Path does not exist", "there is no such file"),
        ("RESOURCE_NOT_FOUND", "there is no such file or bucket"),
        ("ACCESS_DENIED", "access is denied"),
        ("INVALID_ACCESS_KEY_ID", "the server does not know these credentials"),
        ("SIGNATURE_DOES_NOT_MATCH", "the server rejects the signature"),
        ("NETWORK_CONNECTION", "the server cannot be reached, or does not answer in time"),
    ):
        if pattern in text:
            return message
    match = re.search(r"AWS Error ([A-Z_]+)", text)
    return f"the server answers {match[1]}" if match else shortened(type(error).__name__, 60)


# -- fetching ----------------------------------------------------------------------------------------


#: The most bytes of a fetched file, and the most seconds that it may take.
MAX_BYTES: Final = 2 << 30
MAX_SECONDS: Final = 600.0
#: The timeouts in seconds for connecting, and for each read.
PATIENCE: Final = 20.0
SILENCE: Final = 60.0

#: A report of a load.
Report = TypeVar("Report")
_BLOCK: Final = 1 << 18
#: Each block of an object is a separate request, so it is larger.
_OBJECT_BLOCK: Final = 1 << 23


@contextmanager
def fetched(source: Any, progress: Progress | None = None, *, pages: bool = False) -> Iterator[Any]:
    """Yield a source, or a list of them, with each address and archive replaced by a `Fetched`.

    The files exist until the context ends; errors meanwhile name the address instead of the file.
    `pages` accepts HTML pages. Raises `LoadError`, and at the deadline of the call `DeadlineError`.
    """
    with tempfile.TemporaryDirectory(prefix="condgraph-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        is_list = isinstance(source, (list, tuple, set, frozenset))
        sources = sorted(source, key=str) if isinstance(source, (set, frozenset)) else list(source) if is_list else [source]
        places: dict[str, str] = {}
        files = []
        for item in sources:
            result = _fetch(item, folder, progress, pages) if is_address(item) else item
            path = result.path if isinstance(result, Fetched) else Path(result) if is_archive(result) else None
            if path is not None and is_archive(path):
                shown = result.location if isinstance(result, Fetched) else str(result)
                with _renamed({str(path): shown}):
                    inside, location = unpack(path, folder / f"archive-{len(places)}" / "files")
                result = Fetched(inside, location.replace(str(path), shown))
            if isinstance(result, Fetched):
                places[str(result.path)] = result.location
            files.append(result)
        with _renamed(places):
            yield files if is_list else files[0]


def told_by_address(report: Report, files: Any) -> Report:
    """Return a report of a load whose problems name the addresses of fetched files."""
    places = {
        str(item.path): item.location for item in (files if isinstance(files, list) else [files]) if isinstance(item, Fetched)
    }
    load_report: Any = report

    def by_address(problems: Iterable[Problem]) -> Iterator[Problem]:
        return (replace(problem, file=shown_place(problem.file, places)) for problem in problems)

    kinds = tuple(replace(kind, examples=list(by_address(kind.examples))) for kind in load_report.kinds)
    return cast("Report", replace(load_report, problems=tuple(by_address(load_report.problems)), kinds=kinds))


@contextmanager
def _renamed(places: Mapping[str, str]) -> Iterator[None]:
    """Make errors name an address instead of the file fetched from it."""
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
    """Follows redirects to http and https, and sends the login only to its own server."""

    def __init__(self, split: SplitResult, login: str | None) -> None:
        self._origin, self._login = origin(split), login

    def redirect_request(self, request: Any, stream: Any, code: int, message: str, headers: Any, newurl: str) -> Any:
        """Return the request to follow, or raise `LoadError` if the redirect is not allowed."""
        split = split_address(newurl)
        scheme = split.scheme.lower()
        if scheme not in ("http", "https") or (scheme == "http" and request.type == "https"):
            raise LoadError(f"the server redirects to {scheme}://, which is not followed", file=shown_address(newurl), hint=LOCAL)
        following = super().redirect_request(request, stream, code, message, headers, request_url(split))
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
    request = urllib.request.Request(request_url(split))
    if login is not None:
        request.add_unredirected_header("Authorization", login)
    until = time.monotonic() + MAX_SECONDS
    with _watched(wire, until):
        try:
            with opener.open(request, timeout=SILENCE) as response, path.open("wb") as out:
                _copy(response, out, shown, progress, pages, wire)
        except CondgraphError:
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            _over(wire, shown)
            raise LoadError(f"the file cannot be fetched: {_http_problem(error)}", file=shown, hint=_hint(error)) from None
    return Fetched(path, shown)


def _fetch_object(split: SplitResult, path: Path, shown: str, progress: Progress | None) -> None:
    """Fetch a file from an S3 bucket, block by block."""
    until = time.monotonic() + MAX_SECONDS
    stream, length = open_object(split, shown, PATIENCE, SILENCE)
    try:
        with stream, path.open("wb") as out:
            if length > MAX_BYTES:
                raise LoadError(f"the file has more than {MAX_BYTES >> 20} MiB", file=shown, hint=LOCAL)
            while block := stream.read(_OBJECT_BLOCK):
                check()
                if time.monotonic() > until:
                    raise LoadError(f"the file took more than {MAX_SECONDS:g} seconds to fetch", file=shown, hint=LOCAL)
                out.write(block)
                if progress is not None:
                    progress(shown, 0, None)
            if out.tell() < length:
                raise LoadError(f"the connection ended after {out.tell():,} of {length:,} bytes", file=shown)
    except OSError as error:
        raise LoadError(f"the file cannot be fetched: {s3_problem(error)}", file=shown) from None


def _copy(response: Any, out: Any, shown: str, progress: Progress | None, pages: bool, wire: Wire) -> None:
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise LoadError(
            f"the server compresses the file as {shortened(encoding, 30)!r}, which was not requested", file=shown, hint=LOCAL
        )
    if response.headers.get_content_type() in ("text/html", "application/xhtml+xml") and not pages:
        raise LoadError("the address returns an HTML page, not data", file=shown, hint="format= loads it as data anyway")
    length_header = response.headers.get("Content-Length", "")
    length = int(length_header) if length_header.isascii() and length_header.isdigit() and len(length_header) < 20 else None
    size = 0
    while (length is None or length <= MAX_BYTES) and (block := response.read1(_BLOCK)):
        check()
        size += len(block)
        if size > MAX_BYTES:
            break
        out.write(block)
        if progress is not None:
            progress(shown, 0, None)
    if max(size, length or 0) > MAX_BYTES:
        raise LoadError(f"the file has more than {MAX_BYTES >> 20} MiB", file=shown, hint=LOCAL)
    _over(wire, shown)
    if length is not None and size < length:
        raise LoadError(f"the connection ended after {size:,} of {length:,} bytes", file=shown)


@contextmanager
def _watched(wire: Wire, until: float) -> Iterator[None]:
    """Cut a connection when the call is cancelled or out of time, however slowly bytes arrive."""
    done, budget = Event(), current()

    def wait_and_cut() -> None:
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

    watcher = Thread(target=wait_and_cut, name="condgraph fetching", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _over(wire: Wire, shown: str) -> None:
    """Raise if the connection was cut by the watcher."""
    check()
    if wire.over:
        raise LoadError(f"the file took more than {MAX_SECONDS:g} seconds to fetch", file=shown, hint=LOCAL)


def _http_problem(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        if error.code in (301, 302, 303, 307, 308):
            return "the server redirects too often, or to an address that is not followed"
        return f"the server answers {error.code} {shortened(str(error.reason), 60)}"
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, TimeoutError):
        return "the server does not answer in time"
    return shortened(str(getattr(reason, "strerror", None) or reason) or type(error).__name__, 120)


def _hint(error: Exception) -> str | None:
    refused = isinstance(error, urllib.error.HTTPError) and error.code in (401, 403)
    return "https://user:password@server/... sends a login" if refused else None


def _path(split: SplitResult, folder: Path) -> Path:
    """Return the path for a fetched file, under its server and folders, which distinguish sources."""
    parts = [_part(item) for item in (split.netloc.rpartition("@")[2], *split.path.split("/")) if item]
    for number in count(1):
        # The numbered folder never becomes part of a source's name.
        path = folder.joinpath(str(number), *parts[-6:])
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            continue
        except OSError as error:
            raise OptionError(f"no space is left to download files: {error.strerror}", hint="TMPDIR names another folder") from None
        if not path.exists():
            return path
    raise AssertionError("numbers do not end")


def _part(text: str) -> str:
    cleaned = re.sub(r"[^\w .()+,=@~-]", "_", unquote(text)).strip(". ")
    stem, suffix = os.path.splitext(cleaned)
    return (stem[:60] + suffix[:20]) or "_"
