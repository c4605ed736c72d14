"""A test that starts a server or listens on a port must be marked `service`; otherwise it fails.

Names of fixtures tell most tests that use a server (`lanes.mark`); the others carry the mark themselves. A missing mark
cannot go unnoticed: every way of starting a server binds a network socket in this process or starts a program that
serves, and Python reports both to its audit hooks.
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
    """A test uses a server and is not marked `service`."""


class _Now:
    """The running test, and the violations found in it."""

    item: pytest.Item | None = None
    found: list[str] = []  # noqa: RUF012 - the class is a singleton


def asks(what: str) -> None:
    """Record that the running test uses a server; raise `NotMarkedError` if it is not marked.

    Without a running test, do nothing.
    """
    item = _Now.item
    if item is None or item.get_closest_marker("service") is not None:
        return
    message = f"{item.nodeid} asks a server ({what}) and is not marked: @pytest.mark.service"
    _Now.found.append(message)
    raise NotMarkedError(message)


def benchmark_data() -> Path:
    """Return the folder in `CONDGRAPH_DATA`; skip the running test if it is not set. Raise `NotMarkedError` if the test
    is not marked `reads_data`, since the gate would then never run it with data.
    """
    item = _Now.item
    if item is not None and item.get_closest_marker("reads_data") is None:
        raise NotMarkedError(f"{item.nodeid} reads CONDGRAPH_DATA and is not marked: @pytest.mark.reads_data")
    if not os.environ.get("CONDGRAPH_DATA"):
        pytest.skip("CONDGRAPH_DATA is not set")
    return Path(os.environ["CONDGRAPH_DATA"])


def serves(command: Any) -> bool:
    """Return whether a command, in the form that `Popen` takes, starts a server."""
    words = command.split() if isinstance(command, str) else [os.fsdecode(word) for word in command]
    return any(_SERVES.fullmatch(word.rpartition("/")[2]) for word in words)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if _Now.item is None:
        return
    if event == "socket.bind":
        address = arguments[1]
        # The address of a Unix socket is a text. urllib3 binds a socket to test for IPv6 when it is first imported.
        if isinstance(address, tuple) and sys._getframe(1).f_code.co_name != "_has_ipv6":
            asks(f"a socket is bound to {address[0]}")
    elif event == "subprocess.Popen" and serves(arguments[1]):
        words = arguments[1]
        asks(f"a program is started: {words if isinstance(words, str) else ' '.join(map(os.fsdecode, words))[:200]}")


def listen() -> None:
    """Install the audit hook, which cannot be removed again."""
    sys.addaudithook(_heard)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record the running test."""
    _Now.item = item
    try:
        return (yield)
    finally:
        _Now.item = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Fail a test for violations in its threads, or violations that were caught."""
    try:
        return (yield)
    finally:
        violations, _Now.found = _Now.found, []
        if violations:
            pytest.fail("\n".join(violations), pytrace=False)
