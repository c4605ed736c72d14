"""A worker process of the API: it opens the graph, answers calls from a socket, and is ended at its
deadline. `condgraph.sparql.workers` describes the protocol.

A reply starts with one line of JSON (status and media type), followed by the body.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import sys
import traceback
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from condgraph.sparql.workers import forking

_HEAD: Final = struct.Struct(">cI")
_PART: Final = 1 << 16
#: How many scratch graphs a worker keeps open.
_MAX_OPEN: Final = 4
#: The size limit in bytes of a file that a worker writes.
_MAX_FILE: Final = 2 << 30


class Worker:
    """The served graph, the scratch graphs, and the loop that answers calls."""

    def __init__(self) -> None:
        self.source: dict[str, Any] = {}
        self._served: Any = None
        self._scratch: OrderedDict[str, tuple[float, Any]] = OrderedDict()
        self._begun = False

    def open(self, source: dict[str, Any]) -> None:
        """Open a folder and warm it up. To a server, each worker connects by itself."""
        self.source = source
        # Forked workers share everything that is imported and created here.
        from condgraph.studio import calls, trees  # noqa: F401

        if source.get("place") and not self._remote:
            with suppress(Exception):
                self._warm(("about", {}), ("start", {}), ("names", {"text": "a", "limit": 5}))
                self._graph(None).query("FindAll() Count()", language="kopl")

    @property
    def _remote(self) -> bool:
        return "://" in self.source.get("place", "")

    def _warm(self, *begun: tuple[str, dict[str, Any]]) -> None:
        """Make the first calls of a page in advance."""
        from condgraph.studio import calls

        for name, arguments in begun:
            calls.call(self._graph(None), name, arguments, 60.0)

    def _graph(self, place: str | None) -> Any:
        import condgraph

        if place is None:
            if self._served is None:
                source = self.source
                self._served = condgraph.open(source["place"], graph=source["graph"], read_only=True, **source.get("login", {}))
            return self._served
        loaded = _loaded_at(Path(place))
        known = self._scratch.get(place)
        if known is None or known[0] != loaded:
            known = self._scratch[place] = loaded, condgraph.open(place, read_only=True)
            while len(self._scratch) > _MAX_OPEN:
                self._scratch.popitem(last=False)
        self._scratch.move_to_end(place)
        return known[1]

    def serve(self) -> None:
        """Answer calls until the server closes the socket.

        A graph on a server is opened first, and a frame reports it.
        """
        if self._remote:
            with suppress(Exception):  # the first call reports the error
                self._warm(("about", {}), ("start", {"questions": False}))
            _frame(b"O", b"")
        for request in forking.requests():
            self.answer(request)

    def answer(self, request: dict[str, Any]) -> None:
        """Answer one call. An error is sent as a reply, too."""
        from condgraph.engine import tracing
        from condgraph.engine.errors import CondgraphError

        self._begun = False
        records: list[dict[str, Any]] | None = [] if request.get("record") else None
        tracing.record(records)
        try:
            if request["call"] == "ask":
                self._ask(request)
            else:
                self._send(*_reply(self._call(request)))
        except CondgraphError as error:
            missing = request["call"] == "entity" and error.code == "unknown-name"
            problem = error_document(error)
            if "file" in request:
                from condgraph.studio import calls

                names = {request["file"]: request["arguments"]["name"]}
                problem = {
                    key: calls.without_folders(value, names) if isinstance(value, str) else value for key, value in problem.items()
                }
            self._send(*_reply({"error": problem}, 404 if missing else status_of(error)))
        except MemoryError:
            message = "the call needs more memory than it may have"
            self._send(*_reply({"error": {"code": "interrupted", "message": message}}, 500))
        except Exception as error:  # noqa: BLE001 - if the process ended, the client would learn nothing
            trace = traceback.format_exc(limit=-6)
            self._send(
                *_reply({"error": {"code": "internal", "message": f"the server failed ({type(error).__name__})"}}, 500, trace)
            )
        _frame(b"Z", as_json({"cut": False, **({"records": records} if records else {})}))

    def _call(self, request: dict[str, Any]) -> Any:
        from condgraph.studio import calls

        if request["call"] == "load":
            from condgraph.engine.bounds import within

            self._begin()
            with within(request["timeout"]):
                return calls.load(request["place"], request["file"], **request["arguments"])
        return calls.call(self._graph(request.get("place")), request["call"], request["arguments"], request["timeout"])

    def _begin(self) -> None:
        """Announce the reply. After that, the call is not retried in another process."""
        if not self._begun:
            self._begun = True
            _frame(b"H", b'{"kind":"boolean"}')

    def _send(self, head: dict[str, Any], body: bytes) -> None:
        self._begin()
        data = json.dumps(head).encode() + b"\n" + body
        for start in range(0, len(data), _PART):
            _frame(b"D", data[start : start + _PART])

    def _ask(self, request: dict[str, Any]) -> None:
        """Answer a question, sending each step when it is done."""
        from condgraph.engine.errors import CondgraphError
        from condgraph.studio import calls

        self._begin()
        _frame(b"D", json.dumps({"status": 200, "type": "application/x-ndjson; charset=utf-8"}).encode() + b"\n")

        def tell(line: dict[str, Any]) -> None:
            data = as_json(line) + b"\n"
            for at in range(0, len(data), _PART):
                _frame(b"D", data[at : at + _PART])

        try:
            calls.ask(self._graph(request.get("place")), self.source["llm"], request["arguments"], tell, request["timeout"])
        except CondgraphError as error:
            tell({"error": error_document(error)})


def _loaded_at(place: Path) -> float:
    """Return when a scratch graph was loaded, or 0 if it has not been."""
    from condgraph.engine.snapshot.directory import graph_directory

    with suppress(OSError):
        return (graph_directory(place, "default") / "manifest.json").stat().st_mtime_ns
    return 0.0


def _frame(kind: bytes, data: bytes) -> None:
    view = memoryview(_HEAD.pack(kind, len(data)) + data)
    while view:
        view = view[os.write(0, view) :]


def _reply(result: Any, status: int = 200, trace: str = "") -> tuple[dict[str, Any], bytes]:
    if isinstance(result, tuple):
        return {"status": status, "type": result[0]}, result[1]
    head = {"status": status, "type": "application/json; charset=utf-8"}
    return (head | {"trace": trace} if trace else head), as_json(result)


def as_json(document: Any) -> bytes:
    """Serialise a document as JSON. Unpaired surrogates are replaced."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, default=str).encode("utf-8", "replace")


def error_document(error: Any) -> dict[str, Any]:
    """Return an error in the format of the API."""
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "span": None if error.span is None else list(error.span),
        "candidates": list(error.candidates),
        "name": getattr(error, "name", None) if error.code == "unknown-name" else None,
        "kind": getattr(error, "kind", None) if error.code == "unknown-name" else None,
    }


def status_of(error: Any) -> int:
    """Return the HTTP status of an error: 503 if a later call may succeed."""
    if error.code in ("deadline", "busy", "cancelled", "store-busy", "budget"):
        return 503
    if error.code in ("interrupted", "store", "store-damaged", "store-version"):
        return 500
    if error.code in ("model", "encoder"):
        return 502
    return 404 if error.code == "store-missing" else 400


def main(path: str, memory: str, network: str) -> None:
    """Start the process.

    `path` is `sys.path` as JSON, `memory` is the memory limit of each process in bytes, and
    `network` is "1" if it may open connections.
    """
    sys.path[:] = json.loads(path)
    forking.begin(int(memory), network=network == "1")
    limit = forking.at_most(_MAX_FILE, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    forking.serve_forks(Worker())
