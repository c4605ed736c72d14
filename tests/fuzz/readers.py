"""Every reader of foreign text, and the texts that make readers slow: one piece repeated, within
what the reader looks for.

A `Reader` takes bytes, as a file or a request has them, and gives a value or a typed error whose
message is short. `FRAMES` of a reader say where the repeated piece stands: alone, as a name, a
literal, a cell, a comment. `cost` runs one and gives the seconds of CPU that it took; `BUDGET` is
the most that a byte may cost.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import condgraph
from condgraph.agents.toolbox import Toolbox, calls
from condgraph.ask.programs import program_in
from condgraph.chains.backends.base import enum_value
from condgraph.chains.text import triples_in
from condgraph.cypher.guard import check_text
from condgraph.endpoint import protocol
from condgraph.engine.errors import CondgraphError, nearest
from condgraph.engine.toml import read_file
from condgraph.evaluate import FORMATS as QUESTIONS
from condgraph.evaluate import read_cases
from condgraph.grammars import kopl as kopl_grammar
from condgraph.grammars import llm_query as llm_grammar
from condgraph.grammars import logic as logic_grammar
from condgraph.graph import Graph
from condgraph.languages import registry as languages
from condgraph.languages.literals import read_quantity, read_time
from condgraph.languages.llm.lower.literals import inner_number, leading_number, read_clock, read_times
from condgraph.languages.llm.lower.literals import read_quantity as read_llm_quantity
from condgraph.languages.pattern.pattern import Pattern
from condgraph.links.embeddings import Embeddings
from condgraph.loaders.database.server import DatabaseUrl
from condgraph.loaders.declaring import guess
from condgraph.loaders.export import ARGUMENTS, MARK
from condgraph.loaders.recognise import FORMATS, recognise
from condgraph.loaders.table.column_types import type_cells
from condgraph.logic.evaluation.sampler import read_cases as read_logic
from condgraph.models.openai_chat import BrokenReplyError, completions
from condgraph.models.transcript import Replaying
from condgraph.questions.record import read as read_questions
from condgraph.sparql.text import query as sparql_text
from condgraph.sparql.text.scan import survey
from tests.fuzz.pieces import BARE, CELL, JSONL, KB, KOPL, LLM, LOGIC, PATTERN, RDFXML, SPARQL, TAB, TTL
from tests.support import graphs
from tests.support.graphs import Dice

#: Seconds of CPU that a byte may cost, and what any input may cost beside that. A bracket of Turtle
#: is two statements, 17 µs on a quick machine and 30 on one that other work slows.
BUDGET, START = 50e-6, 0.5
#: Seconds that a store may work on a query. `cost` is what reading it takes in this process; a store
#: that takes a megabyte for a regular expression is ended at its deadline.
DEADLINE = 1.0
#: Characters that a message may have.
MAX_MESSAGE = 4_000


@dataclass(frozen=True)
class Reader:
    """A reader: what takes the bytes, and what stands before and behind the repeated piece."""

    read: Callable[[bytes], Any]
    frames: tuple[tuple[str, str], ...]
    #: The most bytes it is ever given: what bounds its input before it.
    most: int = 1 << 30


#: Where a piece stands in chains: as a part, in quotes, in a bracket, in prose.
CHAINS = (
    ("", ""), ("< ", " -> r -> b >"), ("< a -> r -> ", " >"), ('< a -> r -> "', '" >'), ("< a -> r -> b [k: ", "] >"),
    ("so < a -> ", ""), ("< a -> r -> b > ", "\n< a -> r -> b >"),
)  # fmt: skip
#: Where a piece stands in what a model wrote: as the program, around it, in JSON, in a fence.
REPLIES = (
    ("", ""), ("Query", ""), ("Query1", ":"), ("Query1: ", ""), ("Find(a) QueryName()", ""), ("x(\n", ""), ("```", ""),
    ("```", "\nFind(a)\n```"), ("```json\n", "\n```"), ('{"program": "', '"}'), ('{"program": ', "}"),
    ('{"triples": [["', '", "b", "c"]]}'),
)  # fmt: skip
#: What a node or relation of a pattern may be: unknowns and variables with hints and numbers.
NODES = (("", ""), ("UNKNOWN", ""), ("UNKNOWN ", "x"), ("Unknown", "x"), ("unknown film ", "1"), ("?", "!"), ("?a", "!"))
#: Cypher: in a comment, a string, a name, a list, a pattern.
CYPHER = (
    ("", ""), ("MATCH (n) RETURN n /*", "*/"), ("RETURN '", "'"), ("RETURN `", "`"), ("RETURN [", "]"), ("MATCH (n)", " RETURN n"),
    ("CYPHER ", " RETURN 1"), ("RETURN f(", ")"), ("CALL ", "()"),
)  # fmt: skip
# -- what is asked ---------------------------------------------------------------------------------


@cache
def a_graph() -> Graph:
    """A small graph, with a table beside it."""
    graph = condgraph.open("memory:")
    graph.add(graphs.graph(Dice(1)))
    graph.load([{"name": "Ann", "age": 5, "born": "1960-02-01"}, {"name": "Bob", "age": 6, "born": "1970-02-01"}], name="people")
    return graph


def text_of(content: bytes) -> str:
    """Bytes as text; what is not UTF-8 becomes lone surrogates."""
    return content.decode("utf-8", "surrogateescape")


def _asked(ask: Callable[[str], Any]) -> Callable[[bytes], Any]:
    return lambda content: ask(text_of(content))


def _kopl_json(text: str) -> Any:
    try:
        program = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return a_graph().kopl(program, on_unknown="empty").texts


def _values(text: str) -> None:
    """All that reads one value."""
    for read in (read_time, read_quantity, read_llm_quantity, leading_number, inner_number, read_clock, read_times):
        try:
            read(text)
        except CondgraphError as error:
            check(error)


def _protocol(content: bytes) -> None:
    """A request in each of its forms: address, form, body, media type, graph store."""
    for method, address, kind, body in (
        ("GET", content, None, b""),
        ("POST", b"", "application/x-www-form-urlencoded", content),
        ("POST", b"", "application/sparql-query", content),
        ("POST", b"", text_of(content), b""),
    ):
        try:
            protocol.read(method, address, kind, body)
        except protocol.ProtocolError as error:
            check(error)
    try:
        protocol.read_graph(content)
    except protocol.ProtocolError as error:
        check(error)


def _accept(text: str) -> None:
    for formats in (protocol.SOLUTIONS, protocol.GRAPHS):
        protocol.require(text, formats)


def _cells(text: str) -> None:
    """A column in which the text stands beside numbers, dates and clocks."""
    for others in (["1", "2"], ["1960-01-01", "1 May 1960"], ["1:05", "3:10"], ["$1", "(5)"], []):
        type_cells([text, *others], "size")


def _loads(form: str | None, suffix: str, **options: Any) -> Callable[[bytes], Any]:
    def read(content: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"input{suffix}"
            path.write_bytes(content)
            condgraph.open("memory:").load(path, format=form, on_error="skip", **options)

    return read


def _recognises(content: bytes) -> None:
    for suffix in (".csv", ".json", ".jsonl", ".ttl", ".rdf", ".txt"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"input{suffix}"
            path.write_bytes(content)
            try:
                recognise(path)
            except CondgraphError as error:
                check(error)


def _folder(content: bytes) -> None:
    """Two tables with keys between them, one of which is the text."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cities.csv").write_text("id,name\n1,Bonn\n2,Rome\n", encoding="utf-8")
        (folder / "people.csv").write_bytes(content)
        condgraph.open("memory:").load(folder, format="folder", on_error="skip")


def _declaration(content: bytes) -> None:
    """A folder of two tables with the text as its declaration."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cities.csv").write_text("id,name\n1,Bonn\n2,Rome\n", encoding="utf-8")
        (folder / "people.csv").write_text("id,name,city\n1,Ann,2\n", encoding="utf-8")
        (folder / "condgraph.toml").write_bytes(content)
        condgraph.open("memory:").load(folder, on_error="skip")


def _guess(content: bytes) -> None:
    """What is guessed of a table that is the text, beside another."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cities.csv").write_text("id,name\n1,Bonn\n2,Rome\n", encoding="utf-8")
        (folder / "people.csv").write_bytes(content)
        (folder / "condgraph.toml").write_text(guess(folder), encoding="utf-8")
        condgraph.open("memory:").load(folder, on_error="skip")


def _property_graph(content: bytes) -> None:
    """Nodes, and relationships between them that are the text."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nodes.csv").write_text("~id,~label,name\na,A,1\nb,B,2\n", encoding="utf-8")
        (folder / "edges.csv").write_bytes(content)
        condgraph.open("memory:").load(folder, format="property-graph", on_error="skip")


def _parquet_export(content: bytes) -> None:
    """What an export in Parquet says of itself."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / MARK).write_bytes(content)
        condgraph.open("memory:").load(name)


def _import_export(content: bytes) -> None:
    """What an export for Neo4j's import tool says of itself."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / ARGUMENTS).write_text("--read-buffer-size=4194304\n--nodes=./graph-header.csv,./graph.csv\n")
        (Path(name) / "graph-header.csv").write_text("format:long,counts:string\n")
        (Path(name) / "graph.csv").write_bytes(content)
        condgraph.open("memory:").load(name)


_BOOK = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml"'
    ' ContentType="application/xml"/></Types>',
    "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    ' xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/>'
    "</sheets></workbook>",
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"'
    ' Target="worksheets/sheet1.xml"/></Relationships>',
}


def _workbook(content: bytes) -> None:
    """The bytes as a workbook, and as the rows of a sheet of one."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "input.xlsx"
        path.write_bytes(b"PK\x03\x04" + content)
        try:
            condgraph.open("memory:").load(path, on_error="skip")
        except CondgraphError as error:
            check(error)
        with zipfile.ZipFile(path, "w") as packed:
            for part, text in _BOOK.items():
                packed.writestr(part, text)
            head = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
            packed.writestr("xl/worksheets/sheet1.xml", head + content + b"</sheetData></worksheet>")
        condgraph.open("memory:").load(path, format="excel", on_error="skip")


def _sqlite(content: bytes) -> None:
    """The bytes after a head of SQLite's, and as the names and cells of a database."""
    text = content.decode("utf-8", "replace").replace("\0", "")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "input.db"
        connection = sqlite3.connect(path)
        called = text[:100].replace('"', '""')
        connection.execute(f'CREATE TABLE t (id INTEGER PRIMARY KEY, "x{called}" TEXT, b BLOB)')
        connection.execute("INSERT INTO t VALUES (1, ?, ?)", (text, content))
        connection.commit()
        connection.close()
        condgraph.open("memory:").load(path, on_error="skip")
        whole = path.read_bytes()
        path.write_bytes(whole[:4096] + content[:8192] + whole[4096 + len(content[:8192]) :])
        condgraph.open("memory:").load(path, on_error="skip")


def _address(scheme: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        place = DatabaseUrl(f"{scheme}://{text}")
        return place.location, place.called, repr(place)

    return read


def _frame(text: str) -> None:
    condgraph.open("memory:").load(
        [{"name": text, text[:1000] or "x": 1, "size": text}, {"name": "b", "size": "5"}], on_error="skip"
    )


def _parquet(text: str) -> None:
    import pyarrow.parquet

    _arrow_file(text, "input.parquet", pyarrow.parquet.write_table)


def _feather(text: str) -> None:
    import pyarrow.feather

    _arrow_file(text, "input.feather", pyarrow.feather.write_feather)


def _arrow_file(text: str, name: str, write: Callable[[Any, Path], None]) -> None:
    import pyarrow

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        text = text.encode("utf-8", "replace").decode()
        write(pyarrow.table({"name": ["a", text], "size": [text, "5"]}), path)
        condgraph.open("memory:").load(path, on_error="skip")


#: Places in a query of Cypher: text before and behind.
CYPHER = (
    ("", ""),
    ("MATCH (n {name: '", "'}) RETURN n"),
    ("MATCH (n:`", "`) RETURN n"),
    ("RETURN ", " AS x"),
    ("MATCH (n) WHERE n.name =~ '", "' RETURN n"),
    ("RETURN date('", "')"),
    ("RETURN duration('", "')"),
    ("MATCH (a)-[", "]-(b) RETURN a"),
)


def _languages() -> dict[str, Reader]:
    graph = a_graph
    return {
        "kopl": Reader(_asked(lambda text: graph().kopl(text, on_unknown="error").texts), KOPL),
        "llm_query": Reader(_asked(lambda text: graph().query(text, language="llm_query", timeout=60).texts), LLM),
        "pattern": Reader(_asked(Pattern.of), PATTERN),
        "logic": Reader(_asked(lambda text: graph().query(text, language="logic", timeout=60).texts), LOGIC),
        "cypher": Reader(_asked(lambda text: graph().cypher(text, timeout=60).texts), CYPHER),
    }


def _formats() -> dict[str, Reader]:
    return {
        "csv": Reader(_loads("csv", ".csv"), CELL),
        "tsv": Reader(_loads("tsv", ".tsv"), TAB),
        "jsonl-table": Reader(
            _loads("jsonl-table", ".jsonl"), (*BARE, ('{"name": "', '"}\n'), ('{"name": ', "}\n"), ('{"', '": 1}\n'))
        ),
        "json": Reader(
            _loads("json", ".json"),
            (
                *BARE,
                ('[{"name": "', '"}]'),
                ('[{"a": [{"b": ', '}]}, {"a": 1}]'),
                ('{"', '": [{"a": 1}]}'),
                ('[{"a": {"b": ["', '"]}}]'),
            ),
        ),
        "parquet": Reader(_asked(_parquet), BARE),
        "dataframe": Reader(_asked(_frame), BARE),
        "feather": Reader(_asked(_feather), BARE),
        "kqapro": Reader(_loads("kqapro", ".json"), KB),
        "triples": Reader(_loads("triples", ".txt"), (*BARE, ("a\tb\t", "\n"), ("a|b|c\n", "|b|c\n"), ("a b ", "\n"))),
        "quintuples": Reader(
            _loads("quintuples", ".txt"), (*BARE, ("1\t2\t3\t", "\t1970\n"), ("h\tr\tt\ttime\na\tb\t", "\t1960\n"))
        ),
        "wikidata": Reader(
            _loads("wikidata", ".txt"), (*BARE, ("Q1,P31,", "\n"), ("Q1\tAnn\tP1\tknows\tQ2\t", "\n"), ("Q1,P31,Q2,P585,", "\n"))
        ),
        "rdf": Reader(_loads("rdf", ".ttl"), TTL),
        "condgraph": Reader(_loads("condgraph", ".jsonl"), JSONL),
        "condgraph-parquet": Reader(_parquet_export, (*BARE, ('{"format": 1, "rows": ', "}"), ('{"format": ', "}"))),
        "neo4j-import": Reader(_import_export, (*BARE, ("4,", "\n"), ('4,"{""entities"": ', '}"\n'))),
        "property-graph": Reader(
            _property_graph,
            (
                *BARE,
                ("~id,~from,~to,~label,x\n1,a,b,to,", "\n"),
                ("~id,~from,~to,~label,", "\n1,a,b,to,x\n"),
                ("~from,~to,~label\na,b,", "\n"),
            ),
        ),
        "excel": Reader(
            _workbook,
            (
                *BARE,
                ('<row r="1"><c r="A1" t="inlineStr"><is><t>', "</t></is></c></row>"),
                ('<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row><row r="2"><c r="A2"><v>', "</v></c></row>"),
            ),
        ),
        "sqlite": Reader(_sqlite, BARE),
        "postgresql": Reader(_asked(_address("postgresql")), (*BARE, ("me:", "@host/db"), ("host:", "/db"), ("host/", ""))),
        "mysql": Reader(_asked(_address("mysql")), (*BARE, ("me:", "@host/db"), ("[", "]/db"))),
        "folder": Reader(_folder, (*BARE, ("id,name,city\n1,Ann,", "\n"), ("id,name,", "\n1,Ann,2\n"))),
    }


def _replies(text: str) -> None:
    """A model's reply as all read it that take programs, triples or a choice from it."""
    for via in ("query", "kopl", "pattern"):
        program_in(text, via)
    enum_value(text, "next", ["a"])
    for read in (kopl_grammar.program, llm_grammar.program, logic_grammar.program):
        try:
            read(text)
        except CondgraphError as error:
            check(error)


def _served(content: bytes) -> None:
    """What a model's server answers, whole and in pieces."""
    for streamed in (False, True):
        try:
            completions(content, streamed)
        except BrokenReplyError as error:
            check(error)


def _nodes(text: str) -> None:
    """A text as a node and as a relation."""
    for triple in ((text, "r", "b"), ("a", text, "b")):
        try:
            Pattern.of([triple])
        except CondgraphError as error:
            check(error)


def _tool(name: str, *more: str) -> Callable[[str], Any]:
    """A tool of agents with the text as its argument, and as an argument beside another."""

    def read(text: str) -> None:
        tool = next(one for one in calls(Toolbox(a_graph(), timeout=60)) if one.__name__ == name)
        json.dumps(tool(text))
        for option in more:
            json.dumps(tool("FindAll() Count()", **{option: {"x": text} if option == "parameters" else text}))

    return read


def _file(read: Callable[[Path], Any], suffix: str) -> Callable[[bytes], Any]:
    def reads(content: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"input{suffix}"
            path.write_bytes(content)
            found = read(path)
            if isinstance(found, Iterator):
                list(found)

    return reads


def _asked_questions(path: Path) -> None:
    """A file of questions in every format."""
    for form in (None, *QUESTIONS):
        try:
            read_cases(path, form)
        except CondgraphError as error:
            check(error)


def _transcript(path: Path) -> None:
    Replaying(path)


def _packed(content: bytes) -> None:
    """The bytes as a file of arrays, and as an array within one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input.npz"
        for data in (content, b"PK\x03\x04" + content):
            path.write_bytes(data)
            try:
                Embeddings.load(path)
            except CondgraphError as error:
                check(error)
        for name, data in (("entities", content), ("entity_vectors", b"\x93NUMPY\x01\x00\x80\x00" + content)):
            with zipfile.ZipFile(path, "w") as packed:
                packed.writestr(f"{name}.npy", data)
            try:
                Embeddings.load(path)
            except CondgraphError as error:
                check(error)


READERS: dict[str, Reader] = {
    "replies": Reader(_asked(_replies), REPLIES),
    "reply of a server": Reader(_served, (*BARE, ('{"choices": [', "]}"), ("data: ", "\n"))),
    "nodes": Reader(_asked(_nodes), NODES),
    "cypher": Reader(_asked(check_text), CYPHER),
    "mapping": Reader(
        _file(read_file, ".toml"), (*BARE, ("[node.", "]\n"), ("a = ", "\n"), ('a = "', '"\n'), ("a.", " = 1\n")), most=4 * 2**20
    ),
    "transcript": Reader(_file(_transcript, ".jsonl"), (*BARE, ('{"key": "a", "request": ', "}\n"))),
    "questions": Reader(
        _file(_asked_questions, ".txt"),
        (*BARE, ("a question\t", "\n"), ("q\t", "\tx#\n"), ('{"question": "a", "answers": [', "]}\n")),
    ),
    "generated questions": Reader(_asked(lambda text: list(read_questions(text.split("\n")))), (*BARE, ('{"question": "', '"}\n'))),
    "logical queries": Reader(_file(read_logic, ".jsonl"), (*BARE, ('{"type": "1p", "easy": [], "hard": [], "query": ', "}\n"))),
    "model of links": Reader(_packed, BARE),
    "claim": Reader(_asked(lambda text: a_graph().verify(text, timeout=60)), PATTERN[:6]),
    "excerpt": Reader(_asked(lambda text: a_graph().excerpt(text, timeout=60)), BARE),
    "tool query": Reader(_asked(_tool("query", "table", "parameters")), (*KOPL[:4], *LLM[:3])),
    "tool find": Reader(_asked(_tool("find")), BARE),
    "tool match": Reader(_asked(_tool("match")), PATTERN[:4]),
    "chains": Reader(_asked(lambda text: list(triples_in(text))), CHAINS),
    "chain verified": Reader(_asked(lambda text: a_graph().verify_chain(text, [], timeout=60)), CHAINS),
    **_languages(),
    **_formats(),
    "declaration": Reader(
        _declaration, (*BARE, ("[joins]\n", ""), ('[joins]\n"people.', '" = "cities"'), ("[tables.people]\nkey = [", "]"))
    ),
    "guess": Reader(_guess, (*BARE, ("id,name,city\n1,Ann,", "\n"), ("id,name,", "\n1,Ann,2\n"))),
    "kopl json": Reader(_asked(_kopl_json), (*BARE, ('[{"function": "Find", "inputs": ["', '"], "dependencies": []}]'))),
    "pattern match": Reader(_asked(lambda text: a_graph().match(text, timeout=60)), PATTERN[:6]),
    "language": Reader(_asked(languages.detect), (*BARE, ("{", "}"), ("Query", "1:"), ("A", "("))),
    "sparql": Reader(_asked(lambda text: a_graph().sparql(text, timeout=DEADLINE)), SPARQL),
    "sparql kqapro": Reader(_asked(lambda text: a_graph().sparql(text, dialect="kqapro", timeout=DEADLINE)), SPARQL),
    "sparql survey": Reader(_asked(survey), SPARQL),
    "sparql translate": Reader(_asked(lambda text: sparql_text.translate(text, None)), SPARQL),
    "protocol": Reader(
        _protocol,
        (
            *BARE,
            ("query=", ""),
            ("query=ASK{}&timeout=", ""),
            ("default-graph-uri=", ""),
            ("graph=", ""),
            ("text/csv;charset=", ""),
        ),
    ),
    "accept": Reader(
        _asked(_accept),
        (
            *BARE,
            ("text/csv;", ""),
            ("text/csv;q=", ""),
            ('text/csv;a="', '"'),
            ("text/csv,", ", */*"),
            ("text/csv;", '"'),
            ('text/csv;a="', ""),
            ("text/csv;q=1", '"'),
        ),
    ),
    "values": Reader(_asked(_values), (*BARE, ("1", ""), ("1960-01-01T", ""), ("-", "1"))),
    "cells": Reader(_asked(_cells), (*BARE, ("1", ""), ("", "1"))),
    "nearest": Reader(_asked(lambda text: nearest(text, ["age", "name", "aaaa", "1960", "x" * 3000])), (*BARE, ("name", ""))),
    "recognise": Reader(_recognises, (*BARE, *CELL[1:3], *TTL[1:3], *JSONL[1:3], ("{", "}"), ("<?xml ", ""))),
    "rdf xml": Reader(_loads("rdf", ".rdf"), RDFXML),
    "rdf lines": Reader(_loads("rdf", ".nt"), TTL),
    "rdf jsonld": Reader(_loads("rdf", ".jsonld"), (*BARE, ('{"@id": "http://e/a", "http://e/p": ', "}"), ('{"@context": ', "}"))),
    "rdf collapsed": Reader(
        _loads("rdf", ".ttl", collapse="unnamed"), (*TTL, ("<http://e/a> <http://e/p> [ <http://e/q> ", " ] .\n"), ("[<a:b> ", "]"))
    ),
    "rdf n3": Reader(_loads("rdf", ".n3"), TTL[:4]),
}


# -- what it costs ---------------------------------------------------------------------------------


def most(size: int) -> float:
    """The most seconds of CPU that so many bytes may take."""
    return START + BUDGET * size


def seeds(reader: Reader) -> list[bytes]:
    """Inputs to begin from: every frame, with little in it."""
    return [whole(frame, piece) for frame in reader.frames for piece in ("a", "1", "1960-01-01", "")]


def check(error: Exception) -> None:
    """An error is typed, and its message short."""
    message = str(error)
    assert message
    assert len(message) <= MAX_MESSAGE, f"a message of {len(message)} characters: {message[:200]}"


def whole(frame: tuple[str, str], piece: str) -> bytes:
    """A piece within a frame."""
    return (frame[0] + piece + frame[1]).encode("utf-8", "surrogatepass")


def text(frame: tuple[str, str], unit: str, size: int) -> bytes:
    """About `size` bytes of a repeated piece within a frame."""
    piece = unit.encode("utf-8", "surrogatepass")
    return frame[0].encode() + piece * (size // len(piece) + 1) + frame[1].encode()


def cost(reader: Reader, content: bytes) -> float:
    """The seconds of CPU that an input takes; raises what is neither a value nor a typed error."""
    begin = time.process_time()
    try:
        reader.read(content)
    except (CondgraphError, protocol.ProtocolError) as error:
        taken = time.process_time() - begin
        check(error)
        return taken
    return time.process_time() - begin


def cases(reader: Reader, units: tuple[str, ...]) -> Iterator[tuple[tuple[str, str], str]]:
    """Every piece in every frame of a reader."""
    for frame in reader.frames:
        for unit in units:
            yield frame, unit


def missing() -> list[str]:
    """Formats and languages that the table lacks."""
    return [name for name in (*FORMATS, *languages.OPTIONS) if name not in READERS]
