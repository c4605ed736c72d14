"""Addresses of sources at http, https and s3, which `fetch` fetches: their parts, and how they are shown.

The address of a source may have a login, which is sent to its own server alone. Addresses are shown
and stored without the login and without the part after `?`, which may be a key.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from condgraph.engine.errors import LoadError, shortened
from condgraph.loaders.archive import is_archive

_LONGEST: Final = 8_192
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
