"""What runs in a worker process: read a query from the socket, answer it from the store, write results back as they come.

This file is started as a script by `worker_forks`, and imports pyoxigraph and the standard library only; workers are forked from
that process. It is never imported by the package.

Requests are frames of four bytes of length (big-endian) and JSON; answers are frames of one byte of kind, four of length, and data:

    H  JSON: what the query is ("solutions", "boolean", "triples"), and the variables
    D  a part of the serialised results
    Z  JSON: the end; "cut" says that there was more than the limit
    E  JSON: an error, with its kind and message, instead of the rest
    R  nothing: the store is open

A store is opened by a request of its own, `{"open": ...}`; an error is told to the next query.
"""

from __future__ import annotations

import json
import os
import re
import resource
import select
import signal
import socket
import struct
import sys
import threading
from contextlib import suppress
from itertools import islice
from typing import Any

#: Results leave the process in parts of this many bytes.
PART = 1 << 16
_LENGTH = struct.Struct(">I")
_HEAD = struct.Struct(">cI")


class _CutError(Exception):
    """The limit of rows is reached, and there is another row; carries the rest of the document."""

    def __init__(self, tail: bytes) -> None:
        super().__init__()
        self.tail = tail


class _UnwritableError(Exception):
    """The results cannot be said in the format that was asked for."""


class _MissingError(Exception):
    """There is no such graph."""


class _Plain:
    """Passes blocks of serialised results on."""

    def feed(self, block: bytes) -> bytes:
        return block

    def rest(self) -> bytes:
        return b""


class _Nothing(_Plain):
    """Takes what a serialiser still has in its buffer when it is stopped."""

    def feed(self, block: bytes) -> bytes:
        return b""


class _Lines(_Plain):
    """Cuts TSV, whose rows are lines whatever stands in them, after `limit` rows below the header."""

    def __init__(self, limit: int) -> None:
        self.left = limit + 1

    def lines(self, block: bytes) -> int:
        return block.count(b"\n")

    def place(self, block: bytes, number: int) -> int:
        """Where row `number` (1 for the first that ends in the block) ends."""
        at = -1
        for _ in range(number):
            at = block.index(b"\n", at + 1)
        return at + 1

    def feed(self, block: bytes) -> bytes:
        if self.left == 0 and block:
            raise _CutError(b"")
        count = self.lines(block)
        if count < self.left:
            self.left -= count
            return block
        end = self.place(block, self.left)
        self.left = 0
        if end < len(block):
            raise _CutError(block[:end])
        return block


class _Quoted(_Lines):
    """Cuts CSV, where a line within quotes ends no row."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.inside = False

    def lines(self, block: bytes) -> int:
        self.began_inside = self.inside
        parts = block.split(b'"')
        outside = parts[1::2] if self.inside else parts[::2]
        self.inside ^= len(parts) % 2 == 0
        return sum(part.count(b"\n") for part in outside)

    def place(self, block: bytes, number: int) -> int:
        inside = self.began_inside
        for found in re.finditer(rb'["\n]', block):
            if found[0] == b'"':
                inside = not inside
            elif not inside:
                number -= 1
                if not number:
                    return found.end()
        raise AssertionError("fewer rows than were counted")


class _Marked(_Plain):
    """Cuts XML before the row behind the last wanted: `<` is written for markup only."""

    def __init__(self, limit: int) -> None:
        self.left, self.held = limit, b""

    def feed(self, block: bytes) -> bytes:
        data = self.held + block
        end = data.rfind(b"<", max(0, len(data) - 8))
        self.held, data = (b"", data) if end < 0 else (data[end:], data[:end])
        count = data.count(b"<result>")
        if count <= self.left:
            self.left -= count
            return data
        at = -1
        for _ in range(self.left + 1):
            at = data.index(b"<result>", at + 1)
        raise _CutError(data[:at] + b"</results></sparql>")

    def rest(self) -> bytes:
        return self.held


_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRINGS = re.compile(_STRING, re.S)
_WHOLE = re.compile(rb'(?:[^"]++|' + _STRING + rb")*+", re.S)
_STRING_OR_BOUNDARY = re.compile(_STRING + rb"|\},\{", re.S)


class _Braced(_Plain):
    """Cuts JSON: outside strings, `},{` stands between rows and nowhere else."""

    def __init__(self, limit: int) -> None:
        self.left, self.held = limit, b""

    def feed(self, block: bytes) -> bytes:
        data = self.held + block
        # Up to where a string is open, and within that up to a brace that may be the first of a boundary.
        found = _WHOLE.match(data)
        end = 0 if found is None else found.end()
        brace = data.rfind(b"}", data.rfind(b'"', 0, end) + 1, end)
        if brace >= 0:
            end = brace
        self.held, data = data[end:], data[:end]
        count = _STRINGS.sub(b"", data).count(b"},{")
        if count < self.left:
            self.left -= count
            return data
        number = self.left
        for one in _STRING_OR_BOUNDARY.finditer(data):
            if one[0] == b"},{":
                number -= 1
                if not number:
                    raise _CutError(data[: one.start() + 1] + b"]}}")
        raise AssertionError("fewer rows than were counted")

    def rest(self) -> bytes:
        return self.held


class _NamedElements(_Plain):
    """Refuses RDF/XML in which a predicate has no name that XML allows: the serialiser would write what nobody can read."""

    def __init__(self) -> None:
        self.last = b""

    def feed(self, block: bytes) -> bytes:
        if b"<oxprefix: " in self.last + block:
            raise _UnwritableError("a predicate does not end in a name of XML, so RDF/XML cannot say it")
        self.last = block[-16:]
        return block


class _Output:
    """The file that serialisers write to: blocks pass the limit, and leave in frames of about `PART` bytes."""

    def __init__(self, passing: _Plain) -> None:
        self.passing, self.parts, self.size = passing, [], 0

    parts: list[bytes]

    def frame(self, kind: bytes, data: bytes) -> None:
        self.parts += (_HEAD.pack(kind, len(data)), data)
        self.size += len(data)

    def write(self, block: bytes) -> int:
        try:
            data = self.passing.feed(block)
        except _CutError as cut:
            self.passing = _Nothing()
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
        self.limits = {"json": _Braced, "xml": _Marked, "csv": _Quoted, "tsv": _Lines}

    def serve(self) -> None:
        """Answer requests until the other side goes away."""
        buffer = b""
        while True:
            while len(buffer) < 4 or len(buffer) < 4 + _LENGTH.unpack_from(buffer)[0]:
                more = os.read(0, PART)
                if not more:
                    return
                buffer += more
            end = 4 + _LENGTH.unpack_from(buffer)[0]
            request, buffer = json.loads(buffer[4:end]), buffer[end:]
            if "open" in request:
                self.open(request["open"])
                os.write(0, _HEAD.pack(b"R", 0))
            else:
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
        except (OSError, ValueError) as error:
            self.problem = f"the store cannot be opened: {error}"

    def answer(self, request: dict[str, Any]) -> None:
        """Answer one query; whatever goes wrong is an E frame."""
        out = _Output(_Plain())
        try:
            if self.store is None:
                raise OSError(self.problem)
            cut = self.run(request, out)
            out.frame(b"Z", b'{"cut":true}' if cut else b'{"cut":false}')
        except SyntaxError as error:
            self.fail(out, "syntax", error)
        except _MissingError as error:
            self.fail(out, "missing", error)
        except _UnwritableError as error:
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
        results = self.store.query(
            request["query"],
            base_iri=request.get("base"),
            prefixes=request.get("prefixes"),
            use_default_graph_as_union=bool(request.get("union")),
            default_graph=None if default is None else [ox.NamedNode(iri) for iri in default],
            named_graphs=None if named is None else [ox.NamedNode(iri) for iri in named],
        )
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
            out.passing = _NamedElements()
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
            out.passing = _NamedElements()
        prefixes = request.get("output_prefixes") if form == "turtle" else None
        return self.serialise(lambda: self.store.dump(out, self.graphs[form], from_graph=graph, prefixes=prefixes), out)

    def serialise(self, write: Any, out: _Output) -> bool:
        """Let a serialiser write to the end; True where the limit cut it."""
        try:
            write()
        except _CutError:
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
    """Take the right to open sockets from this process (seccomp, on Linux): a query asks nobody else, whatever SERVICE it hides."""
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


def work(ox: Any, memory: int) -> None:
    """Serve requests on descriptor 0, with at most so many bytes of data (0 for any number); never returns."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where the machine has no memory left, this is the process to end
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    with suppress(OSError):  # the other side goes away in the middle of an answer
        Worker(ox).serve()
    os._exit(0)


def main(library: str, memory: int) -> None:
    """Fork workers, as the socket at descriptor 0 asks for; `library` is the folder that pyoxigraph is in."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.append(library)
    _without_network()
    import pyoxigraph

    control = socket.socket(fileno=0)
    request, answer = struct.Struct(">ci"), struct.Struct(">i")
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, request.size, 1)
        if len(data) < request.size:
            os._exit(0)
        kind, pid = request.unpack(data)
        if kind == b"W":
            code = 0
            with suppress(ChildProcessError):
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            control.sendall(answer.pack(code))
            continue
        pid = os.fork()
        if pid == 0:
            os.dup2(descriptors[0], 0)
            os.close(descriptors[0])
            work(pyoxigraph, memory)
        os.close(descriptors[0])
        control.sendall(answer.pack(pid))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
