"""A test that starts a server, or listens on a port, is marked `service`; one that is not fails.

Fixture names tell most tests that ask a server (`lanes.mark`); the others are marked where they
stand. Neither can be forgotten: whatever way a server is started, this process binds a socket to an
address of the network or starts a program that serves, and Python says both to its audit hooks.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

#: Words of a command that starts a server, each a whole argument or the end of a path.
_SERVES: Final = re.compile(r"serve|virtuoso-t|(?:\w+_server|endpoint)\.py|uvicorn|http\.server|chromium|playwright")


class NotMarkedError(RuntimeError):
    """A test asks a server and is not marked so."""


class _Now:
    """The test that runs, and what it was found at."""

    item: pytest.Item | None = None
    found: list[str] = []  # noqa: RUF012 - there is one of it


def asks(what: str) -> None:
    """Say that the running test asks a server; raises `NotMarkedError` where it is not marked.

    Nothing happens where no test runs.
    """
    item = _Now.item
    if item is None or item.get_closest_marker("service") is not None:
        return
    message = f"{item.nodeid} asks a server ({what}) and is not marked: @pytest.mark.service"
    _Now.found.append(message)
    raise NotMarkedError(message)


def benchmark_data() -> Path:
    """The folder of `CONDGRAPH_DATA`; skips the running test where it is not set, and raises `NotMarkedError` where the
    test is not marked `reads_data`, since the gate would never run it with data.
    """
    item = _Now.item
    if item is not None and item.get_closest_marker("reads_data") is None:
        raise NotMarkedError(f"{item.nodeid} reads CONDGRAPH_DATA and is not marked: @pytest.mark.reads_data")
    if not os.environ.get("CONDGRAPH_DATA"):
        pytest.skip("CONDGRAPH_DATA is not set")
    return Path(os.environ["CONDGRAPH_DATA"])


def serves(command: Any) -> bool:
    """Whether a command, as `Popen` takes it, starts a server."""
    words = command.split() if isinstance(command, str) else [os.fsdecode(word) for word in command]
    return any(_SERVES.fullmatch(word.rpartition("/")[2]) for word in words)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if _Now.item is None:
        return
    if event == "socket.bind":
        address = arguments[1]
        # Sockets of the file system are a text. urllib3 tries whether there is IPv6 when it is first imported.
        if isinstance(address, tuple) and sys._getframe(1).f_code.co_name != "_has_ipv6":
            asks(f"a socket is bound to {address[0]}")
    elif event == "subprocess.Popen" and serves(arguments[1]):
        words = arguments[1]
        asks(f"a program is started: {words if isinstance(words, str) else ' '.join(map(os.fsdecode, words))[:200]}")


def listen() -> None:
    """Hear of every server from now on; a hook cannot be taken back."""
    sys.addaudithook(_heard)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Know which test runs."""
    _Now.item = item
    try:
        return (yield)
    finally:
        _Now.item = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Fail a test for what a thread of it did, or what somebody caught."""
    try:
        return (yield)
    finally:
        found, _Now.found = _Now.found, []
        if found:
            pytest.fail("\n".join(found), pytrace=False)
