"""The worker processes of the API, from the server's side: the pool for a call, and its streamed reply.

Graphs in folders are queried in processes without network access, whatever a query or a dropped
file contains. Graphs on servers, and questions in words, use processes with network access.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from condgraph.engine.tracing import replay, spans_wanted
from condgraph.sparql.workers.pool import AsyncResults, WorkerPool
from condgraph.sparql.workers.worker import frame

#: How many seconds after its deadline a call may report that, before its process is ended.
GRACE: Final = 0.75
#: The processor seconds after which a call counts as long.
_QUANTUM: Final = 0.25
_START: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from condgraph.studio.worker import main; main(*sys.argv[1:])"
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call to a worker: name, arguments, deadline in seconds, the folder of a scratch graph, and a file.

    The folder is None for the served graph. The file is one to load.
    """

    name: str
    arguments: dict[str, Any]
    timeout: float
    place: Path | None = None
    file: Path | None = None

    def request(self) -> bytes:
        """Return the call as a frame of the protocol."""
        request: dict[str, Any] = {"call": self.name, "arguments": self.arguments, "timeout": self.timeout}
        if self.place is not None:
            request["place"] = str(self.place)
        if self.file is not None:
            request["file"] = str(self.file)
        if spans_wanted():
            request["record"] = True
        return frame(json.dumps(request).encode("utf-8", "surrogatepass"))


class Reply:
    """The reply of a worker: status, media type, and a body that arrives in parts."""

    def __init__(self, results: AsyncResults, head: dict[str, Any], first: bytes) -> None:
        self._results, self._first = results, first
        self.status: int = head["status"]
        self.media_type: str = head["type"]
        #: The traceback of a failure for the log, or empty.
        self.trace: str = head.get("trace", "")

    @classmethod
    async def of(cls, results: AsyncResults) -> Reply:
        """Wait for the head of a reply."""
        received = b""
        async for part in results:
            received += part
            head, end, rest = received.partition(b"\n")
            if end:
                return cls(results, json.loads(head), rest)
        return cls(results, {"status": 500, "type": "text/plain"}, b"")

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body."""
        if self._first:
            yield self._first
        async for part in self._results:
            yield part

    async def body(self) -> bytes:
        """Return the whole body."""
        return b"".join([part async for part in self.parts()])

    def close(self) -> None:
        """End the call if it is still running. Otherwise turn its queries into spans."""
        self._results.close()
        replay(self._results.head.records)


def _command(memory: int, network: bool) -> Sequence[str]:
    path = json.dumps([folder or str(Path.cwd()) for folder in sys.path])
    return [sys.executable, "-I", "-c", _START, path, str(memory), "1" if network else "0"]


class Workers:
    """The pools of worker processes.

    `source` describes what is served (`place`, `graph`, `login`) and the model for questions
    (`llm`). `workers` and `memory` are those of `WorkerPool`. The processes start with `prepare` or
    the first call.
    """

    def __init__(self, source: dict[str, Any], *, workers: int, memory: int) -> None:
        self._source, self._remote = source, "://" in source["place"]
        self._options: dict[str, Any] = {"workers": workers, "quantum": _QUANTUM, "memory": memory}
        self._pools: dict[bool, WorkerPool] = {}

    @property
    def place(self) -> str:
        """The folder or address of the graph."""
        return str(self._source["place"])

    def renew(self) -> None:
        """Reopen the served graph after it was loaded again."""
        for network, pool in list(self._pools.items()):
            pool.use(self._source_for(network))
            pool.prepare()

    def _source_for(self, network: bool) -> dict[str, Any]:
        """Return what a process opens. A process without network gets neither a login nor a model."""
        if network:
            return self._source
        return {"place": "" if self._remote else self._source["place"], "graph": self._source["graph"]}

    def _pool(self, network: bool) -> WorkerPool:
        pool = self._pools.get(network)
        if pool is None:
            command = partial(_command, self._options["memory"], network)
            pool = self._pools[network] = WorkerPool(
                self._source_for(network), **self._options, command=command, opens=network and self._remote
            )
        return pool

    def prepare(self) -> None:
        """Open the served graph before the first call, which would otherwise have to wait.

        A folder is opened in the background. A graph on a server is opened before this returns, since a
        busy server may take as long as a whole call is allowed to.
        """
        self._pool(self._remote).prepare(wait=self._remote)

    async def call(self, call: Call) -> Reply:
        """Make a call. Raises a `CondgraphError` if there is no reply."""
        pool = self._pool(call.name == "ask" or (self._remote and call.place is None))
        return await Reply.of(await pool.query_async(call, timeout=call.timeout + GRACE))

    def pids(self) -> list[int]:
        """Return the ids of the running processes."""
        return [pid for pool in self._pools.values() for pid in pool.pids()]

    def close(self) -> None:
        """End all processes."""
        for pool in self._pools.values():
            pool.close()
