"""What runs in a worker process: read a query from the socket, answer it from the store, write
results back as they come.

This file is started as a script by `forks`, and imports pyoxigraph and the standard library only;
it opens the store, and workers are forked from that process. It is never imported by the package.

Requests are frames of four bytes of length (big-endian) and JSON; answers are frames of one byte of
kind, four of length, and data:

    H  JSON: what the query is ("solutions", "boolean", "triples"), and the variables
    D  a part of the serialised results
    Z  JSON: the end; "cut" says that there was more than the limit
    E  JSON: an error, with its kind and message, instead of the rest

What to open is a frame of its own, the first that the process is sent; where that fails, every
query gets the error.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from typing import Any


def _module(folder: str, name: str) -> Any:
    """A module of `condgraph.sparql`: a script is no part of its package, and imports what it needs
    itself.
    """
    known = f"condgraph.sparql.{folder}.{name}"
    spec = spec_from_file_location(known, Path(__file__).parents[1] / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[known] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cutting: Any = _module("workers", "cut")
_module("text", "groups")  # which the next one imports
lists: Any = _module("text", "lists")

#: Results leave the process in parts of this many bytes.
PART = 1 << 16
#: And requests are read in such parts: freeing larger ones makes the allocator tidy up, for every
#: query.
REQUEST = 1 << 14
_LENGTH = struct.Struct(">I")
_HEAD = struct.Struct(">cI")


class _MissingError(Exception):
    """There is no such graph."""


class _Output:
    """The file that serialisers write to: blocks pass the limit, and leave in frames of about
    `PART` bytes.
    """

    def __init__(self, passing: Any) -> None:
        self.passing, self.parts, self.size = passing, [], 0

    parts: list[bytes]

    def frame(self, kind: bytes, data: bytes) -> None:
        self.parts += (_HEAD.pack(kind, len(data)), data)
        self.size += len(data)

    def write(self, block: bytes) -> int:
        try:
            data = self.passing.feed(block)
        except cutting.CutError as cut:
            self.passing = cutting.Nothing()
            self.frame(b"D", cut.tail)
            raise
        if data:
            self.frame(b"D", data)
            if self.size >= PART:
                self.flush_frames()
        return len(block)

    def flush(self) -> None:
        """Nothing: serialisers flush more often than is good."""

    def flush_frames(self) -> None:
        data, self.parts, self.size = memoryview(b"".join(self.parts)), [], 0
        while data:
            data = data[os.write(0, data) :]


class Worker:
    """The store that is open, and the loop that serves requests."""

    def __init__(self, ox: Any) -> None:
        self.ox = ox
        self.store: Any = None
        self.problem = "no store is open"
        results, graphs = ox.QueryResultsFormat, ox.RdfFormat
        self.results = {"json": results.JSON, "xml": results.XML, "csv": results.CSV, "tsv": results.TSV}
        self.graphs = {"turtle": graphs.TURTLE, "ntriples": graphs.N_TRIPLES, "jsonld": graphs.JSON_LD, "rdfxml": graphs.RDF_XML}
        self.limits = {"json": cutting.Braced, "xml": cutting.Marked, "csv": cutting.Quoted, "tsv": cutting.Lines}

    def serve(self) -> None:
        """Answer requests until the other side goes away."""
        buffer = b""
        while True:
            while len(buffer) < 4 or len(buffer) < 4 + _LENGTH.unpack_from(buffer)[0]:
                more = os.read(0, REQUEST)
                if not more:
                    return
                buffer += more
            end = 4 + _LENGTH.unpack_from(buffer)[0]
            request, buffer = json.loads(buffer[4:end]), buffer[end:]
            self.answer(request)

    def open(self, source: dict[str, Any]) -> None:
        """Open a store on disk for reading, or load files into one in memory."""
        ox = self.ox
        self.store = None
        try:
            if "store" in source:
                self.store = ox.Store.read_only(source["store"])
                return
            store = ox.Store()
            for path, media_type, graph, base in source["files"]:
                form = ox.RdfFormat.from_media_type(media_type)
                to = None if graph is None else ox.NamedNode(graph)
                store.bulk_load(path=path, format=form, base_iri=base, to_graph=to)
            self.store = store
        except (OSError, ValueError, SyntaxError) as error:
            self.problem = f"the store cannot be opened: {error}"

    def answer(self, request: dict[str, Any]) -> None:
        """Answer one query; whatever goes wrong is an E frame."""
        out = _Output(cutting.Plain())
        try:
            if self.store is None:
                raise OSError(self.problem)
            cut = self.run(request, out)
            out.frame(b"Z", b'{"cut":true}' if cut else b'{"cut":false}')
        except SyntaxError as error:
            self.fail(out, "syntax", error)
        except _MissingError as error:
            self.fail(out, "missing", error)
        except cutting.UnwritableError as error:
            self.fail(out, "unwritable", error)
        except MemoryError as error:
            self.fail(out, "memory", error)
        except (OSError, ValueError, RuntimeError) as error:
            self.fail(out, "failed", error)
        out.flush_frames()

    def fail(self, out: _Output, kind: str, error: BaseException) -> None:
        """Write an E frame."""
        out.frame(b"E", json.dumps({"kind": kind, "message": str(error) or type(error).__name__}).encode())

    def run(self, request: dict[str, Any], out: _Output) -> bool:
        """Run a query, and write its results; True where the limit cut them."""
        ox = self.ox
        if "graph" in request:
            return self.dump(request, out)
        named, default = request.get("named_graphs"), request.get("default_graphs")
        options: dict[str, Any] = {
            "base_iri": request.get("base"),
            "prefixes": request.get("prefixes"),
            "use_default_graph_as_union": bool(request.get("union")),
            "default_graph": None if default is None else [ox.NamedNode(iri) for iri in default],
            "named_graphs": None if named is None else [ox.NamedNode(iri) for iri in named],
        }
        text = request["query"]
        quick = lists.rewrite(text)
        try:
            results = self.store.query(quick, **options)
        except SyntaxError:
            # Errors are about the text as it was written.
            if quick == text:
                raise
            results = self.store.query(text, **options)
        form, limit = request.get("solutions", "json"), request.get("limit")
        if isinstance(results, ox.QuerySolutions):
            variables = [variable.value for variable in results.variables]
            out.frame(b"H", json.dumps({"kind": "solutions", "variables": variables}).encode())
            if limit is not None:
                out.passing = self.limits[form](limit)
            return self.serialise(lambda: results.serialize(out, format=self.results[form]), out)
        if isinstance(results, ox.QueryBoolean):
            out.frame(b"H", b'{"kind":"boolean"}')
            return self.serialise(lambda: results.serialize(out, format=self.results[form]), out)
        form = request.get("triples", "turtle")
        out.frame(b"H", b'{"kind":"triples"}')
        if form == "rdfxml":
            out.passing = cutting.NamedElements()
        triples = results if limit is None else islice(results, limit)
        prefixes = request.get("output_prefixes") if form == "turtle" else None
        self.serialise(lambda: ox.serialize(triples, out, format=self.graphs[form], prefixes=prefixes), out)
        return limit is not None and next(iter(results), None) is not None

    def dump(self, request: dict[str, Any], out: _Output) -> bool:
        """Write a named graph."""
        graph, form = self.ox.NamedNode(request["graph"]), request["triples"]
        if not self.store.contains_named_graph(graph):
            raise _MissingError(request["graph"])
        out.frame(b"H", b'{"kind":"triples"}')
        if form == "rdfxml":
            out.passing = cutting.NamedElements()
        prefixes = request.get("output_prefixes") if form == "turtle" else None
        return self.serialise(lambda: self.store.dump(out, self.graphs[form], from_graph=graph, prefixes=prefixes), out)

    def serialise(self, write: Any, out: _Output) -> bool:
        """Let a serialiser write to the end; True where the limit cut it."""
        try:
            write()
        except cutting.CutError:
            return True
        rest = out.passing.rest()
        if rest:
            out.frame(b"D", rest)
        return False


def _leave_with_parent() -> None:
    """End as soon as nobody is at the other end, in the middle of a query too."""
    poll = select.poll()
    poll.register(0, 0)
    poll.poll()
    os._exit(0)


#: Per machine: the architecture as the kernel names it, and its number of the call `socket`.
_SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}


def _without_network() -> None:
    """Take the right to open sockets from this process (seccomp, on Linux): a query asks nobody
    else, whatever SERVICE it hides.
    """
    import ctypes
    import platform

    machine = _SOCKET_CALLS.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        return
    architecture, number = machine
    refuse, allow = 0x00050000 | 13, 0x7FFF0000  # EACCES
    program = b"".join(
        struct.pack("HBBI", *step)
        for step in (
            (0x20, 0, 0, 4),  # the architecture
            (0x15, 0, 3, architecture),  # another one: allow
            (0x20, 0, 0, 0),  # the number of the call
            (0x15, 0, 1, number),  # not `socket`: allow
            (0x06, 0, 0, refuse),
            (0x06, 0, 0, allow),
        )
    )
    held = ctypes.create_string_buffer(program)
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    none = ctypes.c_ulong(0)
    if libc.prctl(38, ctypes.c_ulong(1), none, none, none) == 0:  # no new privileges
        libc.prctl(22, ctypes.c_ulong(2), filters, none, none)


def work(worker: Worker) -> None:
    """Serve requests on descriptor 0; never returns."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where the machine has no memory left, this is the process to end
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    with suppress(OSError):  # the other side goes away in the middle of an answer
        worker.serve()
    os._exit(0)


def _others_sleep() -> bool:
    """Whether all other threads of this process sleep."""
    with suppress(OSError):
        for task in os.listdir("/proc/self/task"):
            if int(task) != os.getpid():
                stat = Path(f"/proc/self/task/{task}/stat").read_bytes()
                if stat[stat.rindex(b")") + 2 : stat.rindex(b")") + 3] != b"S":
                    return False
    return True


def fork() -> int:
    """Fork, while no other thread can hold a lock that the child would wait for.

    The threads are those that RocksDB starts for compaction. A store that is open for reading never
    gives them anything to do, so that they sleep, holding nothing, from when they have started.
    """
    for _ in range(200):
        if _others_sleep():
            break
        time.sleep(0.001)
    return os.fork()


class Undertaker:
    """Waits for the end of workers that were killed, without keeping others waiting."""

    def __init__(self) -> None:
        self.dying: set[int] = set()

    def look(self, options: int = os.WNOHANG) -> None:
        """Take the numbers from those that have ended."""
        for pid in tuple(self.dying):
            try:
                if os.waitpid(pid, options)[0]:
                    self.dying.discard(pid)
            except ChildProcessError:
                self.dying.discard(pid)


def main(library: str, memory: int) -> None:
    """Open a store and fork workers, as the socket at descriptor 0 asks for; `library` is the
    folder that pyoxigraph is in.

    `memory` is how many bytes of data each process may have, 0 for any number.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.append(library)
    _without_network()
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import pyoxigraph

    control = socket.socket(fileno=0)
    size = _LENGTH.unpack(control.recv(_LENGTH.size, socket.MSG_WAITALL))[0]
    worker = Worker(pyoxigraph)
    worker.open(json.loads(control.recv(size, socket.MSG_WAITALL)))
    gc.freeze()  # workers share what is here
    request, answer = struct.Struct(">ci"), struct.Struct(">i")
    undertaker, poll = Undertaker(), select.poll()
    poll.register(control, select.POLLIN)
    while True:
        come = poll.poll(50 if undertaker.dying else None)
        undertaker.look()
        if not come:
            continue
        data, descriptors, _, _ = socket.recv_fds(control, request.size, 1)
        if len(data) < request.size:
            undertaker.look(0)
            os._exit(0)
        kind, pid = request.unpack(data)
        if kind == b"B":
            undertaker.dying.add(pid)
        elif kind == b"W":
            code = 0
            with suppress(ChildProcessError):
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            control.sendall(answer.pack(code))
        else:
            pid = fork()
            if pid == 0:
                os.dup2(descriptors[0], 0)
                os.close(descriptors[0])
                work(worker)
            os.close(descriptors[0])
            control.sendall(answer.pack(pid))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
