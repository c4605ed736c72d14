"""Calls of a model's server: JSON to JSON, within the deadline of the call."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from condgraph.engine.bounds import check, left
from condgraph.engine.errors import ModelError, OptionError, shortened

#: Seconds a call may take that has no deadline.
LONGEST: Final = 600.0
#: The longest answer that is read, in bytes.
MOST: Final = 64_000_000


class Server:
    """A server of a model. `place` is its address: `http://HOST:PORT`, or with a path."""

    def __init__(self, place: str, key: str | None = None) -> None:
        parts = urlsplit(place)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OptionError(f"{shortened(place, 80)!r} is no address of a server", hint="http://HOST:PORT is one")
        self._parts, self._key = parts, key
        self.place = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a call; raises `ModelError` with what the server said, and `DeadlineError`."""
        check()
        within = left()
        wait = LONGEST if within is None else max(within, 0.01)
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        assert self._parts.hostname is not None
        connection = kind(self._parts.hostname, self._parts.port, timeout=wait)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        try:
            connection.request("POST", self._parts.path.rstrip("/") + path, json.dumps(body).encode(), headers)
            reply = connection.getresponse()
            data = reply.read(MOST)
        except (OSError, socket.timeout, http.client.HTTPException) as error:  # noqa: UP041 - older sockets raise their own
            check()
            raise ModelError(f"the model's server at {self.place} did not answer: {error}") from None
        finally:
            connection.close()
        if reply.status != 200:
            raise ModelError(f"the model's server at {self.place} answered {reply.status}: {data[:500].decode('utf-8', 'replace')}")
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            raise ModelError(f"the model's server at {self.place} gave no JSON") from None
        if not isinstance(found, dict):
            raise ModelError(f"the model's server at {self.place} gave no object")
        return found
