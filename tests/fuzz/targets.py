"""What is fuzzed: programs of KoPL, and files of every format. Anything but an answer, a graph or a
typed error is a failure.

A target takes bytes and returns; it raises what should never be raised, `Hang` for what does not
end among it. `seeds` are well-formed inputs to begin from.
"""

from __future__ import annotations

import datetime
import io
import json
import signal
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import condgraph
from condgraph.engine.errors import CondgraphError
from condgraph.graph import Graph
from condgraph.loaders.recognise import FORMATS
from tests.support import graphs, programs
from tests.support.graphs import Dice

#: Seconds after which an input of a few thousand bytes is taken to hang.
DEADLINE = 10.0


class Hang(AssertionError):
    """The input was not done with in time."""


class Slow(AssertionError):
    """A byte of the input cost more than any may."""


@contextmanager
def watched() -> Iterator[None]:
    """Interrupt what takes too long, where the system has timers and this is the main thread."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise Hang(f"more than {DEADLINE} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# -- programs --------------------------------------------------------------------------------------


@cache
def a_graph() -> Graph:
    """A graph with the names of the generated programs."""
    graph = condgraph.open("memory:")
    graph.add(graphs.graph(Dice(1)))
    return graph


def text_of(content: bytes) -> str:
    """Bytes as text in which lone surrogates may stand."""
    try:
        return content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return content.decode("utf-8", "surrogateescape")


def shown(error: CondgraphError, program: str = "") -> bool:
    """Whether an error has a text, and a place within the program."""
    return bool(str(error)) and (error.span is None or 0 <= error.span[0] <= error.span[1] <= len(program) + 1)


def ask(content: bytes) -> None:
    """A program as text: an answer with all that belongs to it, or a typed error that can be shown."""
    program = text_of(content)
    for on_unknown in ("error", "empty"):
        with watched():
            try:
                answer = a_graph().kopl(program, on_unknown=on_unknown)  # type: ignore[arg-type]
                assert all(isinstance(text, str) for text in answer.texts)
                assert len(answer.texts) <= len(answer.values)
                assert isinstance(answer.explain(), str)
                assert len(list(answer.evidence)) == len(answer.evidence)
                assert len(answer.trace) >= 1
            except CondgraphError as found:
                error: CondgraphError | None = found
            else:
                error = None
        assert error is None or shown(error, program), program


def ask_json(content: bytes) -> None:
    """A program as a JSON value of any shape."""
    try:
        program = json.loads(content)
    except (ValueError, RecursionError):
        return
    with watched():
        try:
            error = None
            assert a_graph().kopl(program, on_unknown="empty").texts is not None
        except CondgraphError as found:
            error = found
    assert error is None or shown(error, program if isinstance(program, str) else "")


# -- files -----------------------------------------------------------------------------------------

#: How files of a format are called.
SUFFIXES = {
    "csv": ".csv",
    "tsv": ".tsv",
    "parquet": ".parquet",
    "feather": ".feather",
    "kqapro": ".json",
    "rdf": ".ttl",
    "condgraph": ".jsonl",
    "jsonl-table": ".jsonl",
}
#: Formats that read one file.
FILES = tuple(
    name for name in FORMATS if name not in ("folder", "condgraph-parquet", "neo4j-import", "dataframe", "postgresql", "mysql")
)


def load(content: bytes, form: str | None, suffix: str = "") -> None:
    """A file of a format (None: whatever it is taken for): a graph that exports to an equal one, or
    a typed error.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("input" + (suffix or SUFFIXES.get(form or "", ".txt")))
        path.write_bytes(content)
        for on_error in ("raise", "skip"):
            with watched():
                graph = condgraph.open("memory:")
                try:
                    report = graph.load(path, format=form, on_error=on_error)  # type: ignore[arg-type]
                except CondgraphError as error:
                    if not shown(error):
                        raise
                    continue
                assert str(report)
                assert report.skipped == 0 or on_error == "skip"
                check(graph, Path(folder))


def check(graph: Graph, folder: Path) -> None:
    """What was loaded can be read, asked, and exported to an equal graph."""
    assert graph.kopl("FindAll() Count()").values == [graph.status().counts["entities"]]
    first, second = io.StringIO(), io.StringIO()
    graph.export(first)
    path = folder / "export.jsonl"
    path.write_text(first.getvalue(), encoding="utf-8", newline="\n")
    again = condgraph.open("memory:")
    again.load(path, format="condgraph")
    again.export(second)
    assert sorted(first.getvalue().split("\n")) == sorted(second.getvalue().split("\n"))


# -- well-formed inputs ----------------------------------------------------------------------------


@cache
def seeds(form: str) -> tuple[bytes, ...]:
    """Well-formed inputs of a format, or programs ("kopl", "kopl json")."""
    if form.startswith("kopl"):
        asked = [programs.program(Dice(seed)) for seed in range(60)]
        if form == "kopl json":
            return tuple(
                json.dumps(programs.as_json(program, dependencies=seed % 2 > 0)).encode() for seed, program in enumerate(asked)
            )
        written = (programs.as_text, programs.as_plain_text, programs.as_serialised)
        return tuple(written[seed % 3](program).encode() for seed, program in enumerate(asked))
    return tuple(text if isinstance(text, bytes) else text.encode() for text in _FILES[form]())


def _condgraph() -> list[str]:
    file = io.StringIO()
    a_graph().export(file)
    return [file.getvalue()[:3000].rpartition("\n")[0]]


def _parquet() -> list[bytes]:
    import pyarrow.parquet

    return [_arrow_file(pyarrow.parquet.write_table)]


def _feather() -> list[bytes]:
    from pyarrow import feather

    return [_arrow_file(partial(feather.write_feather, compression=way)) for way in ("zstd", "uncompressed")]


def _arrow_file(write: Callable[[Any, io.BytesIO], None]) -> bytes:
    import pyarrow

    file = io.BytesIO()
    write(pyarrow.table({"name": ["Ann", "Bob", None], "age": [1, None, 3], "tags": [["a"], [], ["b", "c"]]}), file)
    return file.getvalue()


def _sqlite() -> list[bytes]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE city (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE person (name TEXT, city INT REFERENCES city);"
        "INSERT INTO city VALUES (1, 'Bonn'), (2, NULL); INSERT INTO person VALUES ('Ann', 1), (X'FF00', 2.5);"
    )
    return [connection.serialize()]


def _excel() -> list[bytes]:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["id", "name", "born"], [1, "Ann", datetime.date(1960, 2, 1)], [2.5, None, "soon"]):
        book.active.append(row)
    book.create_sheet("more").append(["x"])
    file = io.BytesIO()
    book.save(file)
    return [file.getvalue()]


_KB = {
    "concepts": {"c1": {"name": "human", "instanceOf": ["c2"]}, "c2": {"name": "being", "subclassOf": []}},
    "entities": {
        "e1": {
            "name": "Ann",
            "instanceOf": ["c1"],
            "attributes": [
                {"key": "height", "value": {"type": "quantity", "value": 1.75, "unit": "metre"}, "qualifiers": {}},
                {
                    "key": "born",
                    "value": {"type": "date", "value": "1960-02-01"},
                    "qualifiers": {"of": [{"type": "year", "value": -43}]},
                },
            ],
            "relations": [{"predicate": "knows", "object": "e2", "direction": "forward", "qualifiers": {}}],
        },
        "e2": {
            "name": "Bob",
            "instanceOf": ["c1"],
            "attributes": [],
            "relations": [{"relation": "knows", "object": "e1", "direction": "backward", "qualifiers": {}}],
        },
    },
}
_TURTLE = (
    '@prefix : <http://e/> .\n@prefix x: <http://www.w3.org/2001/XMLSchema#> .\n:a a :C ; :p "5"^^x:integer, "b"@en, :d .\n'
    ':a :born "1960-02-01"^^x:date .\n[] :q [ :r 1.5e3 ] .\n'
)
_FILES: dict[str, Callable[[], list[Any]]] = {
    "csv": lambda: ['name,size,born\nAnn,"1,234",1960-02-01\nBob,(5),"March 5, 2010"\n', '"a","b"\n"x\\"y","1:05"\n"z","3rd"\n'],
    "tsv": lambda: ["name\tsize\nAnn\t206 cm\nBob\t$5.50\n"],
    "jsonl-table": lambda: ['{"name": "Ann", "size": 5, "tags": ["a", null]}\n{"name": "Bob", "size": 1.5, "in": {"x": true}}\n'],
    "json": lambda: [
        '[{"name": "Ann", "home": {"city": "Bonn"}, "pets": [{"name": "Rex", "age": 5}, null]}, {"name": "Bob", "home": []}]',
        '{"people": [{"id": 1, "name": "Ann"}], "towns": [{"id": "x", "since": "1960-02-01"}]}',
    ],
    "parquet": _parquet,
    "feather": _feather,
    "kqapro": lambda: [json.dumps(_KB), json.dumps(_KB, indent=1)],
    "triples": lambda: ["Ann|knows|Bob\nBob|knows|Cy\n", "/m/1\tsize\t5.5\n/m/2\tsize\t-1e3\n", "1 2 3\n2 2 1\n"],
    "quintuples": lambda: ["1\t2\t3\t1960-##-##\t1970-01-##\n2\t2\t3\t####\t-\n", "head\trelation\ttail\ttime\na\tb\tc\t1960\n"],
    "wikidata": lambda: ["Q1\tAnn\tP1\tknows\tQ2\tBob\tP2=of\tQ3=town\n", "Q1,P31,Q2,P585,Q3\nQ2,P279,Q4\n"],
    "rdf": lambda: [_TURTLE, "<http://e/a> <http://e/p> <http://e/b> <http://e/g> .\n"],
    "condgraph": _condgraph,
    "sqlite": _sqlite,
    "excel": _excel,
    "property-graph": lambda: [
        ":ID,name,born:int,tags:string[],:LABEL\n1,Ann,1960,a;b,Person\n2,Bob,,,Person;Dog\n",
        "_id,_labels,name,_start,_end,_type,since\n1,:A:B,Ann,,,,\n2,:A,Bob,,,,\n,,,1,2,knows,2001\n",
    ],
}

#: Things that parsers stumble over.
NASTY: tuple[bytes, ...] = (
    *(b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\x85", b"\xe2\x80\xa8", b"\x1a"),
    *(b"1e400", b"-1e-400", b"9" * 400, b"9" * 5000, b"1e99999", b"NaN", b"Infinity", b"-0", b"0x10", b"1_000", b"\xd9\xa3"),
    *(b"9999-12-31", b"-9999999999-01-01", b"0000-00-00", b"1960-02-30", b"999999999999", b"1960-13", b"/", b"../.."),
    *(b"(" * 500, b"[" * 3000, b'{"a":' * 500, b'"' * 7, b"\\" * 5, b"," * 200, b"|" * 50, b"\t" * 50, b"<" * 50, b"a" * 5000),
    *(b"<func>", b"<arg>", b"Find(", b"FilterNum(", b"))", b'"', b"'", b"null", b"true", b"[]", b"{}", b"''", b"^^<x>", b"@en"),
)


def mutated(dice: Dice, content: bytes) -> bytes:
    """A well-formed input with a few bytes changed, cut, doubled, or something nasty put in."""
    body = bytearray(content)
    for _ in range(1 + dice.below(4)):
        at = dice.below(len(body) + 1)
        way = dice.below(6)
        if way == 0:
            body[at : at + 1] = bytes([dice.below(256)])
        elif way == 1:
            body[at : at + 1 + dice.below(20)] = b""
        elif way == 2:
            body[at:at] = body[at : at + dice.below(40)] * (1 + dice.below(3))
        elif way == 3:
            del body[at + dice.below(200) :]
        else:
            body[at : at + dice.below(4)] = dice.one(NASTY)
    return bytes(body)
