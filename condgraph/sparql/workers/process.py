"""The program of a worker process: reads queries from the socket, runs them on the store, and writes results as they come.

This file is started as a script by `worker`, and imports pyoxigraph and the standard library only; it opens the store, and
workers are forked from that process. The package itself never imports it.

Requests are frames of four bytes of length (big-endian) and JSON; answers are frames of one byte of kind, four of length, and
data:

  H  JSON: the kind of the query ("solutions", "boolean", "triples"), and its variables
  D  a part of the serialised results
  Z  JSON: the end; "cut" tells whether there were more results than the limit
  E  JSON: an error, with its kind and message, instead of the rest

The first frame names what to open; if that fails, every query gets the error.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from typing import Any

# -- limits ------------------------------------------------------------------------------------------
# Cuts serialised results after a number of rows without parsing them. A serialiser writes blocks of
# bytes; each class takes those of one format, passes them on, and at the limit ends the document after
# the last row.


class CutError(Exception):
    """The limit of rows is reached, and there is another row; carries the rest of the document."""

    def __init__(self, tail: bytes) -> None:
        super().__init__()
        self.tail = tail


class UnwritableError(Exception):
    """The requested format cannot hold the results."""


class Plain:
    """Passes blocks of serialised results on."""

    def feed(self, block: bytes) -> bytes:
        """Return the bytes to send of a block, and of what was held back; raises `CutError` at the limit."""
        return block

    def rest(self) -> bytes:
        """Return the bytes still held back at the end."""
        return b""


class Nothing(Plain):
    """Drops what a serialiser still has in its buffer when it is stopped."""

    def feed(self, block: bytes) -> bytes:
        return b""


class Lines(Plain):
    """Cuts TSV, where every line is a row, `limit` rows after the header."""

    def __init__(self, limit: int) -> None:
        self.left = limit + 1

    def lines(self, block: bytes) -> int:
        """Return how many rows end in a block."""
        return block.count(b"\n")

    def place(self, block: bytes, number: int) -> int:
        """Return where row `number` (1 for the first that ends in the block) ends."""
        index = -1
        for _ in range(number):
            index = block.index(b"\n", index + 1)
        return index + 1

    def feed(self, block: bytes) -> bytes:
        if self.left == 0 and block:
            raise CutError(b"")
        count = self.lines(block)
        if count < self.left:
            self.left -= count
            return block
        end = self.place(block, self.left)
        self.left = 0
        if end < len(block):
            raise CutError(block[:end])
        return block


class Quoted(Lines):
    """Cuts CSV, where a line break within quotes ends no row."""

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
        for match in re.finditer(rb'["\n]', block):
            if match[0] == b'"':
                inside = not inside
            elif not inside:
                number -= 1
                if not number:
                    return match.end()
        raise AssertionError("fewer rows than were counted")


class Marked(Plain):
    """Cuts XML before the first row beyond the limit: `<` only occurs in markup."""

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
        index = -1
        for _ in range(self.left + 1):
            index = data.index(b"<result>", index + 1)
        raise CutError(data[:index] + b"</results></sparql>")

    def rest(self) -> bytes:
        return self.held


#: A string, possibly unfinished at the end of the block; and an escaped character of one.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_STRING_OR_BOUNDARY = re.compile(_STRING + rb"|\},\{", re.S)
_ESCAPED = re.compile(rb"\\.", re.S)
#: A boundary, and a possible one.
_BOUNDARIES = re.compile(rb'\},\{(?:"[^,}]|\})').findall
_DOUBTFUL = b"},{}"
#: Beginnings of a boundary at the end of a block.
_BEGUN = (b'},{"', b"},{", b"},", b"}")


class Braced(Plain):
    """Cuts JSON: outside strings, `},{` only occurs between rows.

    If the next row has a variable, its name follows in quotes. A quote that ends a string is followed by `,` or `}`,
    with which no name begins: so `},{"` followed by another character is always a boundary. `},{` followed by anything
    else is none, except for rows without variables, `},{}`. Only blocks with that are read string by string, which
    takes as long as writing them.
    """

    def __init__(self, limit: int) -> None:
        self.left, self.held = limit, b""
        #: Whether the bytes held back are within a string.
        self.inside = False

    def feed(self, block: bytes) -> bytes:
        data = self.held + block if self.held else block
        end = len(data)
        for prefix in _BEGUN:
            if data.endswith(prefix):
                end -= len(prefix)
                break
        else:
            # A backslash whose character is in the next block.
            end -= (len(data) - len(data.rstrip(b"\\"))) % 2
        boundaries = _BOUNDARIES(data)
        count = len(boundaries)
        if _DOUBTFUL in boundaries:
            count = sum(1 for _ in self._boundaries(data[:end]))
        if count >= self.left:
            last = next(islice(self._boundaries(data), self.left - 1, None))
            raise CutError(data[: last + 1] + b"]}}")
        self.left -= count
        self._follow(data, end)
        self.held = data[end:]
        return data[:end]

    def _follow(self, data: bytes, end: int) -> None:
        """Determine whether `end` is within a string, counting from the last boundary."""
        begin = data.rfind(b'},{"', 0, end)
        if begin >= 0 and data[begin + 4 : begin + 5] not in b",}":
            data, self.inside = data[begin + 3 : end], False
        else:
            data = data[:end]
        quotes = _ESCAPED.sub(b"", data) if b"\\" in data else data
        self.inside ^= quotes.count(b'"') % 2 == 1

    def _boundaries(self, data: bytes) -> Iterator[int]:
        """Yield the ends of rows, found string by string."""
        quote = b'"' if self.inside else b""
        for match in _STRING_OR_BOUNDARY.finditer(quote + data):
            if match[0] == b"},{":
                yield match.start() - len(quote)

    def rest(self) -> bytes:
        return self.held


class NamedElements(Plain):
    """Refuses RDF/XML if the name of a predicate is no XML name: the serialiser would write what no parser reads."""

    def __init__(self) -> None:
        self.last = b""

    def feed(self, block: bytes) -> bytes:
        if b"<oxprefix: " in self.last + block:
            raise UnwritableError("a predicate does not end in a name of XML, so RDF/XML cannot say it")
        self.last = block[-16:]
        return block


#: How results write a triple term; nothing else looks like this, as strings have their quotes, tabs and
#: angle brackets escaped. (In CSV, a triple term is a text like any other.)
_TERMS = {"json": re.compile(rb'"type":"triple"'), "xml": re.compile(rb"<triple>"), "tsv": re.compile(rb"[\t\n]<<\(")}
#: Words of a query that may create triple terms.
_MAKES_TERMS = re.compile(r"<<|\{\||~|triple", re.IGNORECASE).search


class VersionError(Exception):
    """The results have features of RDF 1.2, which the client did not request."""


class Untripled(Plain):
    """Refuses solutions with triple terms; `then` takes the other blocks."""

    def __init__(self, form: str, then: Plain) -> None:
        self.found, self.then, self.last = _TERMS[form].search, then, b""

    def feed(self, block: bytes) -> bytes:
        if self.found(self.last + block):
            raise VersionError("results with triple terms")
        self.last = (self.last + block)[-16:]
        return self.then.feed(block)

    def rest(self) -> bytes:
        return self.then.rest()


#: How results write the base direction of a text, which nothing else looks like, and the possible
#: beginnings of one at the end of a block.
_XML_DIRECTION = rb' its:dir="(?:ltr|rtl)" xmlns:its="http://www.w3.org/2005/11/its" its:version="2.0"'
_DIRECTIONS = {
    "json": (re.compile(rb',"its:dir":"(?:ltr|rtl)"'), re.compile(rb',(?:"[a-z:"]{0,13})?\Z')),
    "xml": (re.compile(_XML_DIRECTION), re.compile(rb' (?:its:dir="[^<>]{0,80})?\Z| i(?:t(?:s(?::(?:d(?:i(?:r=?)?)?)?)?)?)?\Z')),
    "tsv": (re.compile(rb'(?<="@)([A-Za-z0-9-]+)--(?:ltr|rtl)(?=[\t\n])'), re.compile(rb'"(?:@[A-Za-z0-9-]*)?\Z')),
}


class Undirected(Plain):
    """Removes base directions of texts from solutions; `then` takes the blocks."""

    def __init__(self, form: str, then: Plain) -> None:
        (self.direction, self.begun), self.then, self.held = _DIRECTIONS[form], then, b""

    def feed(self, block: bytes) -> bytes:
        """Pass a block on, except for an end that may begin a direction."""
        data = self.direction.sub(_tag, self.held + block)
        prefix = self.begun.search(data, max(0, len(data) - 200))
        cut = len(data) if prefix is None else prefix.start()
        self.held = data[cut:]
        return self.then.feed(data[:cut])

    def rest(self) -> bytes:
        return self.then.feed(self.held) + self.then.rest()


def _tag(found: re.Match[bytes]) -> bytes:
    return found[1] if found.re.groups else b""


# -- process -----------------------------------------------------------------------------------------


def _module(folder: str, name: str) -> Any:
    """Load a module of `condgraph.sparql` from its file: a script belongs to no package."""
    full_name = f"condgraph.sparql.{folder}.{name}"
    if full_name in sys.modules:
        return sys.modules[full_name]
    spec = spec_from_file_location(full_name, Path(__file__).parents[1] / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[full_name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


forking: Any = _module("workers", "forking")
lists: Any = _module("text", "lists")

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
#: Results leave the process in parts of this many bytes.
CHUNK = 1 << 16
#: Most bytes on disk for each quad of a store that is copied into memory (80 are usual), and those of an
#: empty store.
_ON_DISK, _EMPTY = 400, 1 << 20
_HEAD = struct.Struct(">cI")


class _MissingError(Exception):
    """There is no such graph."""


class _UnopenedError(Exception):
    """The folder of the store could not be opened."""


class _Output:
    """The file that serialisers write to: blocks pass through the limit, and leave in frames of about `CHUNK` bytes."""

    def __init__(self, passing: Any) -> None:
        self.passing, self.parts, self.size = passing, [], 0

    parts: list[bytes]

    def frame(self, kind: bytes, data: bytes) -> None:
        self.parts += (_HEAD.pack(kind, len(data)), data)
        self.size += len(data)

    def write(self, block: bytes) -> int:
        try:
            data = self.passing.feed(block)
        except CutError as cut:
            self.passing = Nothing()
            self.frame(b"D", cut.tail)
            raise
        if data:
            self.frame(b"D", data)
            if self.size >= CHUNK:
                self.flush_frames()
        return len(block)

    def flush(self) -> None:
        """Do nothing: serialisers flush more often than is useful."""

    def flush_frames(self) -> None:
        data, self.parts, self.size = memoryview(b"".join(self.parts)), [], 0
        while data:
            data = data[os.write(0, data) :]


class Worker:
    """The open store, and the loop that serves requests."""

    def __init__(self, ox: Any) -> None:
        self.ox = ox
        self.store: Any = None
        #: The graph whose triples are in the store's default graph, and in no named one.
        self.own: str | None = None
        #: The headers of answers from the store.
        self.headers: dict[str, str] = {}
        #: Why no store is open, and whether its folder is the reason.
        self.problem, self.unopened = "no store is open", False
        results, graphs = ox.QueryResultsFormat, ox.RdfFormat
        self.results = {"json": results.JSON, "xml": results.XML, "csv": results.CSV, "tsv": results.TSV}
        self.graphs = {"turtle": graphs.TURTLE, "ntriples": graphs.N_TRIPLES, "jsonld": graphs.JSON_LD, "rdfxml": graphs.RDF_XML}
        self.graphs |= {"trig": graphs.TRIG, "nquads": graphs.N_QUADS}
        self.limits = {"json": Braced, "xml": Marked, "csv": Quoted, "tsv": Lines}

    def serve(self) -> None:
        """Answer requests until the other side closes."""
        for request in forking.requests():
            self.answer(request)

    def open(self, source: dict[str, Any]) -> None:
        """Open a store on disk for reading, or load files, or quads, into one in memory."""
        ox = self.ox
        self.store, self.own, self.headers = None, source.get("own"), source.get("headers", {})
        self.__dict__.pop("has_terms", None)
        try:
            if "store" in source:
                self.store = ox.Store.read_only(source["store"])
                with forking.shared():
                    self.store = in_memory(ox, self.store, source["store"], source.get("held", 0)) or self.store
                return
            store = ox.Store()
            if "quads" in source:
                with forking.shared():
                    store.bulk_load(source["quads"].encode(), format=ox.RdfFormat.N_QUADS, lenient=True)
                self.store = store
                return
            for path, media_type, graph, base in source["files"]:
                form = ox.RdfFormat.from_media_type(media_type)
                to = None if graph is None else ox.NamedNode(graph)
                store.bulk_load(path=path, format=form, base_iri=base, to_graph=to)
            self.store = store
        except (OSError, RuntimeError, ValueError, SyntaxError) as error:
            self.problem, self.unopened = f"the store cannot be opened: {error}", "store" in source

    def answer(self, request: dict[str, Any]) -> None:
        """Answer one query; every error becomes an E frame."""
        out = _Output(Plain())
        try:
            if self.store is None:
                raise _UnopenedError(self.problem) if self.unopened else OSError(self.problem)
            cut = self.run(request, out)
            out.frame(b"Z", b'{"cut":true}' if cut else b'{"cut":false}')
        except _UnopenedError as error:
            self.fail(out, "unopened", error)
        except SyntaxError as error:
            self.fail(out, "syntax", error)
        except _MissingError as error:
            self.fail(out, "missing", error)
        except VersionError as error:
            self.fail(out, "version", error)
        except UnwritableError as error:
            self.fail(out, "unwritable", error)
        except MemoryError as error:
            self.fail(out, "memory", error)
        except (OSError, ValueError, RuntimeError) as error:
            self.fail(out, "failed", error)
        out.flush_frames()

    def head(self, out: _Output, kind: str, variables: Sequence[str] = ()) -> None:
        """Write an H frame."""
        out.frame(b"H", json.dumps({"kind": kind, "variables": variables, "headers": self.headers}).encode())

    def fail(self, out: _Output, kind: str, error: BaseException) -> None:
        """Write an E frame."""
        out.frame(b"E", json.dumps({"kind": kind, "message": str(error) or type(error).__name__}).encode())

    def run(self, request: dict[str, Any], out: _Output) -> bool:
        """Run a query, and write its results; return True if the limit cut them."""
        ox = self.ox
        if "graph" in request or "dataset" in request:
            return self.dump(request, out)
        named, default = request.get("named_graphs"), request.get("default_graphs")
        if default is None and not request.get("union") and (self.own is not None or named is not None):
            # The store's default graph holds a named graph, and all triples are in named graphs. A data
            # set of the request is complete: if it has named graphs alone, its default graph is empty
            # (SPARQL 1.1 Protocol, 2.1.4), whatever the query states.
            default = ()
        options: dict[str, Any] = {
            "base_iri": request.get("base"),
            "prefixes": request.get("prefixes"),
            "use_default_graph_as_union": bool(request.get("union")),
            "default_graph": None if default is None else list(map(self.graph, default)),
            "named_graphs": None if named is None else [ox.NamedNode(iri) for iri in named],
        }
        text = request["query"]
        quick = lists.rewrite(text)
        try:
            results = self.store.query(quick, **options)
        except SyntaxError:
            # Errors refer to the original text.
            if quick == text:
                raise
            results = self.store.query(text, **options)
        form, limit = request.get("solutions", "json"), request.get("limit")
        plain = bool(request.get("plain")) and (self.has_terms or _MAKES_TERMS(text) is not None)
        if isinstance(results, ox.QuerySolutions):
            variables = [variable.value for variable in results.variables]
            self.head(out, "solutions", variables)
            if limit is not None:
                out.passing = self.limits[form](limit)
            if plain and form in _TERMS:
                out.passing = Untripled(form, out.passing)
            if request.get("undirected") and form in _DIRECTIONS:
                out.passing = Undirected(form, out.passing)
            return self.serialise(lambda: results.serialize(out, format=self.results[form]), out)
        if isinstance(results, ox.QueryBoolean):
            self.head(out, "boolean")
            return self.serialise(lambda: results.serialize(out, format=self.results[form]), out)
        form = request.get("triples", "turtle")
        self.head(out, "triples")
        if form == "rdfxml":
            out.passing = NamedElements()
        triples = results if limit is None else islice(results, limit)
        if plain or form == "jsonld":
            triples = self.reified(triples)
        if request.get("undirected") and form != "jsonld":
            triples = self.undirected(triples)
        prefixes = request.get("output_prefixes") if form in ("turtle", "trig") else None
        self.serialise(lambda: ox.serialize(triples, out, format=self.graphs[form], prefixes=prefixes), out)
        return limit is not None and next(iter(results), None) is not None

    def graph(self, iri: str) -> Any:
        """Return the graph of the store that holds the triples of a graph."""
        return self.ox.DefaultGraph() if iri == self.own else self.ox.NamedNode(iri)

    def dump(self, request: dict[str, Any], out: _Output) -> bool:
        """Write a named graph, or all graphs."""
        ox, form = self.ox, request["triples"]
        all_graphs = "dataset" in request
        if not all_graphs and request["graph"] != self.own and not self.store.contains_named_graph(ox.NamedNode(request["graph"])):
            raise _MissingError(request["graph"])
        graph = None if all_graphs else self.graph(request["graph"])
        self.head(out, "triples")
        if form == "rdfxml":
            out.passing = NamedElements()
        format, prefixes = self.graphs[form], request.get("output_prefixes") if form in ("turtle", "trig") else None
        if (request.get("plain") or form == "jsonld") and self.has_terms:
            statements = self.reified(self.all_of(graph))
            if request.get("undirected") and form != "jsonld":
                statements = self.undirected(statements)
            return self.serialise(lambda: ox.serialize(statements, out, format=format, prefixes=prefixes), out)
        if request.get("undirected") and form != "jsonld" and self.has_directions:
            statements = self.undirected(self.all_of(graph))
            return self.serialise(lambda: ox.serialize(statements, out, format=format, prefixes=prefixes), out)
        if not all_graphs:
            return self.serialise(lambda: self.store.dump(out, format, from_graph=graph, prefixes=prefixes), out)
        if self.own is None:
            return self.serialise(lambda: self.store.dump(out, format, prefixes=prefixes), out)
        return self.serialise(lambda: ox.serialize(self.quads(), out, format=format, prefixes=prefixes), out)

    @cached_property
    def has_terms(self) -> bool:
        """Whether the store has triple terms, which only `rdf:reifies` leads to."""
        reifies = self.ox.NamedNode(_RDF + "reifies")
        return next(iter(self.store.quads_for_pattern(None, reifies, None)), None) is not None

    @cached_property
    def has_directions(self) -> bool:
        """Whether some text of the store has a base direction; reads all triples, once for each worker."""
        quads = self.store.quads_for_pattern(None, None, None)
        return any(getattr(quad.object, "direction", None) is not None for quad in quads)

    def all_of(self, graph: Any) -> Iterator[Any]:
        """Return the triples of a graph; all quads if `graph` is None."""
        if graph is None:
            return self.quads()
        return (quad.triple for quad in self.store.quads_for_pattern(None, None, None, graph))

    def undirected(self, found: Iterable[Any]) -> Iterator[Any]:
        """Yield triples or quads without base directions of texts, which RDF 1.1 does not have."""
        ox = self.ox

        def plain(term: Any) -> Any:
            if isinstance(term, ox.Triple):
                return ox.Triple(plain(term.subject), term.predicate, plain(term.object))
            return ox.Literal(term.value, language=term.language) if getattr(term, "direction", None) is not None else term

        for statement in found:
            thing = plain(statement.object)
            if thing is statement.object:
                yield statement
            elif isinstance(statement, ox.Triple):
                yield ox.Triple(statement.subject, statement.predicate, thing)
            else:
                yield ox.Quad(statement.subject, statement.predicate, thing, statement.graph_name)

    def reified(self, found: Iterable[Any]) -> Iterator[Any]:
        """Yield triples or quads in which statements about statements are reified as in RDF 1.1."""
        ox = self.ox
        statement, parts = (
            ox.NamedNode(_RDF + "Statement"),
            [ox.NamedNode(_RDF + name) for name in ("subject", "predicate", "object")],
        )
        kind = ox.NamedNode(_RDF + "type")
        for original in found:
            term = original.object
            if not isinstance(term, ox.Triple):
                yield original
                continue
            if original.predicate.value != _RDF + "reifies" or isinstance(term.object, ox.Triple):
                raise VersionError("triples with triple terms that are not statements about statements")
            make = ox.Triple if isinstance(original, ox.Triple) else partial(ox.Quad, graph_name=original.graph_name)
            yield make(original.subject, kind, statement)
            for part, value in zip(parts, (term.subject, term.predicate, term.object), strict=True):
                yield make(original.subject, part, value)

    def quads(self) -> Iterator[Any]:
        """Yield all quads, with the own graph's name for those of the default graph."""
        ox, store = self.ox, self.store
        if self.own is None:
            yield from store.quads_for_pattern(None, None, None)
            return
        own = ox.NamedNode(self.own)
        for quad in store.quads_for_pattern(None, None, None, ox.DefaultGraph()):
            yield ox.Quad(quad.subject, quad.predicate, quad.object, own)
        for graph in store.named_graphs():
            yield from store.quads_for_pattern(None, None, None, graph)

    def serialise(self, write: Any, out: _Output) -> bool:
        """Run a serialiser to its end; return True if the limit cut it."""
        try:
            write()
        except CutError:
            return True
        rest = out.passing.rest()
        if rest:
            out.frame(b"D", rest)
        return False


def in_memory(ox: Any, disk_store: Any, folder: str, most: int) -> Any:
    """Copy the store in `folder` into memory if it has at most `most` quads of `_ON_DISK` bytes each on average;

    else return None.

    A join that looks up row by row takes two to nine times as long on disk, even if nothing is read from the disk.
    Workers share this memory until they read it: reading changes reference counts, so that each worker gets a copy of
    what it has read.
    """
    # Counting the quads of a store reads them, so its size is checked first. Its texts are not
    # compressed.
    disk = sum(file.stat().st_size for file in Path(folder).glob("*.sst"))
    if not most or disk > most * _ON_DISK + _EMPTY or len(disk_store) > most:
        return None
    store = ox.Store()
    store.bulk_extend(disk_store.quads_for_pattern(None, None, None))
    for graph in disk_store.named_graphs():
        store.add_graph(graph)
    return store


def main(library: str, memory: int) -> None:
    """Open a store and fork workers as requested on the socket at descriptor 0.

    `library` is the folder of pyoxigraph, `memory` how many bytes of data each process may have, 0 for any number.
    """
    sys.path.append(library)
    forking.begin(memory, network=False)
    import pyoxigraph

    forking.serve_forks(Worker(pyoxigraph))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
