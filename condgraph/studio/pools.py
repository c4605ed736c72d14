"""The worker processes of the API, from the server's side: the pool for a call, and the reply as it comes.

Graphs in folders are queried in processes without network, whatever a query or a dropped file
contains; graphs on servers, and questions in words, in processes with network.
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

#: Seconds after its deadline in which a call may report it, before its process is ended.
GRACE: Final = 0.75
#: Processor seconds after which a call counts as long.
_QUANTUM: Final = 0.25
_START: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from condgraph.studio.worker import main; main(*sys.argv[1:])"
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call to a worker: its name and arguments, its deadline in seconds, the folder of a scratch graph
    (None for the served graph), a file to load.
    """

    name: str
    arguments: dict[str, Any]
    timeout: float
    place: Path | None = None
    file: Path | None = None

    def request(self) -> bytes:
        """As a frame."""
        request: dict[str, Any] = {"call": self.name, "arguments": self.arguments, "timeout": self.timeout}
        if self.place is not None:
            request["place"] = str(self.place)
        if self.file is not None:
            request["file"] = str(self.file)
        if spans_wanted():
            request["record"] = True
        return frame(json.dumps(request).encode("utf-8", "surrogatepass"))


class Reply:
    """The reply of a worker: its status and media type, and the parts of its body."""

    def __init__(self, results: AsyncResults, head: dict[str, Any], first: bytes) -> None:
        self._results, self._first = results, first
        self.status: int = head["status"]
        self.media_type: str = head["type"]
        #: The traceback of a failure, for the log; else empty.
        self.trace: str = head.get("trace", "")

    @classmethod
    async def of(cls, results: AsyncResults) -> Reply:
        """Wait for the head."""
        seen = b""
        async for part in results:
            seen += part
            head, end, rest = seen.partition(b"\n")
            if end:
                return cls(results, json.loads(head), rest)
        return cls(results, {"status": 500, "type": "text/plain"}, b"")

    async def parts(self) -> AsyncIterator[bytes]:
        """The parts of the body."""
        if self._first:
            yield self._first
        async for part in self._results:
            yield part

    async def body(self) -> bytes:
        """The whole body."""
        return b"".join([part async for part in self.parts()])

    def close(self) -> None:
        """End the call where it still runs; else its queries become spans."""
        self._results.close()
        replay(self._results.head.records)


def _command(memory: int, network: bool) -> Sequence[str]:
    path = json.dumps([folder or str(Path.cwd()) for folder in sys.path])
    return [sys.executable, "-I", "-c", _START, path, str(memory), "1" if network else "0"]


class Workers:
    """The pools. `source` is what is served (`place`, `graph`, `login`) and the model for questions (`llm`);
    `workers` and `memory` are those of `WorkerPool`. Processes start with `prepare`, or the first call.
    """

    def __init__(self, source: dict[str, Any], *, workers: int, memory: int) -> None:
        self._source, self._remote = source, "://" in source["place"]
        self._options: dict[str, Any] = {"workers": workers, "quantum": _QUANTUM, "memory": memory}
        self._pools: dict[bool, WorkerPool] = {}

    @property
    def place(self) -> str:
        """The folder or the address of the graph."""
        return str(self._source["place"])

    def renew(self) -> None:
        """Open the served graph again: it was loaded again."""
        for network, pool in list(self._pools.items()):
            pool.use(self._source_for(network))
            pool.prepare()

    def _source_for(self, network: bool) -> dict[str, Any]:
        """What a process opens: one without network gets no login and no model."""
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
        """Open the served graph ahead of the first call, which would wait for it: a folder meanwhile, a graph on a server
        before this returns, since a busy server may take as long as a call has.
        """
        self._pool(self._remote).prepare(wait=self._remote)

    async def call(self, call: Call) -> Reply:
        """Make a call; raises a `CondgraphError` where there is no reply."""
        pool = self._pool(call.name == "ask" or (self._remote and call.place is None))
        return await Reply.of(await pool.query_async(call, timeout=call.timeout + GRACE))

    def pids(self) -> list[int]:
        """The running processes."""
        return [pid for pool in self._pools.values() for pid in pool.pids()]

    def close(self) -> None:
        """End all processes."""
        for pool in self._pools.values():
            pool.close()
