"""Files that are small and ask for much, each in a process of its own with little memory: a typed
error, and never its end.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import condgraph
from condgraph.engine.errors import LoadError
from condgraph.engine.facts import EntityKind, Member, Statement, Subclass
from condgraph.engine.snapshot.layout import closed_members, components
from condgraph.graph import Graph
from condgraph.loaders.table.arrow import repeated_texts
from tests.support.lanes import by_lane
from tests.support.pace import quick_enough

_HEAD = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"><rdf:Description rdf:about="http://e/a">'
)
_TAIL = "</rdf:Description></rdf:RDF>"
_DOCTYPE = "<!DOCTYPE rdf:RDF [{}]>" + _HEAD + "<e:p>{}</e:p>" + _TAIL
_LAUGHS = '<!ENTITY a0 "lol">' + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
_LONG = '<!ENTITY a "' + "x" * 60_000 + '">'
_TERM = "<http://e/a> <http://e/b> " + "<<( <http://e/a> <http://e/b> " * 20_000 + "<http://e/c>" + " )>>" * 20_000 + " .\n"
_CONTEXT = {"t0": "http://e/" + "x" * 1000} | {f"t{i}": {"@id": f"t{i - 1}:" + "y" * 1000, "@prefix": True} for i in range(1, 2000)}

#: File, its text, and what is said of it.
TOO_MUCH: dict[str, tuple[str, Callable[[], str], str]] = {
    "a billion laughs": ("a.rdf", lambda: _DOCTYPE.format(_LAUGHS, "&a9;"), "name each other"),
    "laughs behind other spaces": ("a.rdf", lambda: _DOCTYPE.format(_LAUGHS.replace("Y ", "Y\u00a0"), "&a9;"), "name each other"),
    "laughs behind percent signs": ("a.rdf", lambda: _DOCTYPE.format(_LAUGHS.replace("Y ", "Y % "), "&a9;"), "name each other"),
    "one entity named often": ("a.rdf", lambda: _DOCTYPE.format(_LONG, "&a;" * 300_000), "named so often"),
    "a late document type": (
        "a.rdf",
        lambda: _HEAD + '<!DOCTYPE r [<!ENTITY a "x">]><e:p>&a;</e:p>' + _TAIL,
        "within the document",
    ),
    "deep elements": ("a.rdf", lambda: _HEAD + "<e:p><e:D>" * 100_000, "1,000 deep"),
    "a deep literal": ("a.rdf", lambda: _HEAD + '<e:p rdf:parseType="Literal">' + "<b>" * 100_000, "1,000 deep"),
    "deep triple terms": ("a.ttl", lambda: _TERM, "100 deep"),
    "deep triple terms between comments": ("a.ttl", lambda: _TERM.replace("<<( ", "<<( #)>>\n"), "100 deep"),
    "deep triple terms on a line": ("a.nt", lambda: _TERM, "100 deep"),
    "a prefix of a megabyte": (
        "a.ttl",
        lambda: f"@prefix a: <http://{'x' * 1_000_000}> .\n" + "a:b a:c a:d .\n" * 1000,
        "characters",
    ),
    "contexts on themselves": ("a.jsonld", lambda: json.dumps({"@context": _CONTEXT, "t1999": 1}), "contexts"),
    "contexts written twice": (
        "a.jsonld",
        lambda: f'{{"@context": {json.dumps(_CONTEXT)}, "@context": {{}}, "t1999": 1}}',
        "contexts",
    ),
    "deep JSON-LD": ("a.jsonld", lambda: '{"@id": "http://e/a", "http://e/p": ' + "[" * 100_000 + "]" * 100_000 + "}", "deep"),
}
_PROGRAM = """
import resource, sys
import condgraph
from condgraph.engine.errors import CondgraphError
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
for path in sys.argv[1:]:
    for on_error in ("raise", "skip"):
        try:
            print(condgraph.open("memory:").load(path, on_error=on_error))
        except CondgraphError as error:
            print(type(error).__name__, error)
    print("that was", path, flush=True)
"""


#: Each group is a process: some cases in one, where not everything is asked for.
_GROUPS = by_lane([list(TOO_MUCH)[::4]], *[[[case] for case in TOO_MUCH]] * 2)


@pytest.mark.parametrize("cases", _GROUPS, ids=by_lane(["some"], list(TOO_MUCH), list(TOO_MUCH)))
def test_small_files_that_ask_for_much(cases: list[str], tmp_path: Path) -> None:
    """With a gigabyte of memory: `LoadError`, whatever is done with bad records; a line of N-Triples
    is a record, and left out.
    """
    paths = []
    for number, case in enumerate(cases):
        name, content, _ = TOO_MUCH[case]
        paths.append(tmp_path / f"{number}{name}")
        paths[-1].write_text(content(), encoding="utf-8")
    command = [sys.executable, "-c", _PROGRAM, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout
    for case, path in zip(cases, paths, strict=True):
        errors, _, said = said.partition(f"that was {path}\n")
        left_out = "1 record left out; 1 warning" in errors
        assert errors.count("LoadError") == 2 - left_out, (case, errors, done.stderr[-2000:])
        assert left_out == (path.suffix == ".nt"), (case, errors)
        assert errors.startswith("LoadError"), (case, errors)
        assert TOO_MUCH[case][2] in errors
        assert len(errors) < 6_000
    assert done.returncode == 0, done.stderr[-2000:]


def test_entities_of_ontologies_are_read(tmp_path: Path) -> None:
    """Namespaces by name, thousands of times, beside comments and sections that hold what looks
    like tags.
    """
    facts = "".join(f'<e:p rdf:datatype="&xsd;integer">{i}</e:p><!-- </a> <b> -->' for i in range(20_000))
    entities = '<!ENTITY xsd "http://www.w3.org/2001/XMLSchema#" >\n<!ENTITY e "http://e/"> <!ENTITY f "&e;f/">'
    path = tmp_path / "a.owl"
    path.write_text(f'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [{entities}]>\n{_HEAD}{facts}<e:q>&f;x &amp; y</e:q>{_TAIL}')
    graph = condgraph.open("memory:")
    graph.load(path)
    assert graph.kopl("Find(http://e/a) QueryAttr(q)").texts == ["http://e/f/x & y"]
    assert len(graph.kopl("Find(http://e/a) QueryAttr(p)").values) == 20_000


def test_many_triple_terms_are_read(tmp_path: Path) -> None:
    """One after the other, beside texts that look like terms within each other."""
    reifies = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
    lines = [f'<http://e/{i}> {reifies} <<( <http://e/a> <http://e/b> "{"<<( " * 3}{i}" )>> .' for i in range(500)]
    path = tmp_path / "a.ttl"
    path.write_text("\n".join(lines))
    assert condgraph.open("memory:").load(path).statements == 500


def test_a_packed_file_that_is_mostly_air(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacking ends where it is more than any data; data that packs well is read."""
    monkeypatch.setattr("condgraph.loaders.files.MAX_UNPACKED", 10 << 20)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b'{"concepts": {}, "entities": {' + b" " * (40 << 20) + b"}}", 9))
    with pytest.raises(LoadError, match="times its size"):
        condgraph.open("memory:").load(path, format="kqapro")
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"name,size\n" + b"Ann,1\n" * 10_000, 9))
    assert condgraph.open("memory:").load(path).entities == 10_000


@pytest.mark.parametrize("year", ["999999999999", "-999999999999", "290000000002"])
def test_years_that_no_clock_reaches(year: str, tmp_path: Path) -> None:
    """A time whose seconds 64 bits do not hold is none."""
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"condgraph": 1}}\n{{"s": "a", "p": "born", "o": {{"t": "{year}"}}}}\n')
    with pytest.raises(LoadError, match="years away"):
        condgraph.open("memory:").load(path)


@pytest.mark.parametrize("format", [None, "csv", "excel", "sqlite", "parquet", "json", "rdf"])
@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a folder"])
def test_a_pipe_is_no_file(format: str | None, within: bool, tmp_path: Path) -> None:
    """Nobody writes into it: opening it would wait for ever."""
    pipe = tmp_path / "a.csv"
    os.mkfifo(pipe)
    if within and format is None:
        (tmp_path / "b.csv").write_text("name\nAnn\n")
    with pytest.raises(LoadError, match="a pipe, not a file"):
        condgraph.open("memory:").load(tmp_path if within else pipe, format=format)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_no_file(device: str) -> None:
    with pytest.raises(LoadError, match="a device, not a file"):
        condgraph.open("memory:").load(device)


@pytest.mark.parametrize("suffix", ["ttl", "nt", "trig", "nq"])
def test_a_literal_that_is_longer_than_the_parser_reads(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    good = '<http://e/a> <http://e/p> "short" .\n'
    path.write_text(good + f'<http://e/a> <http://e/p> "{"x" * 17_000_000}" .\n' + good.replace("/a", "/b"))
    with pytest.raises(LoadError, match="16 MiB"):
        condgraph.open("memory:").load(path)
    if suffix in ("nt", "nq"):
        report = condgraph.open("memory:").load(path, on_error="skip")
        assert report.statements == 2
        assert any("16 MiB" in str(problem) for problem in report.problems)


def test_memory_that_is_not_there_is_an_error_of_the_load() -> None:
    def items() -> Iterator[Statement]:
        yield Statement("a", "p", "b")
        raise MemoryError

    graph = condgraph.open("memory:")
    with pytest.raises(LoadError, match="not enough memory"):
        graph.add(items())
    graph.add([Statement("a", "p", "c")])
    assert graph.kopl("Find(a) QueryAttr(p)").texts == ["c"]


def database(path: Path, *statements: str) -> Path:
    """An SQLite file."""
    with closing(sqlite3.connect(path)) as made:
        made.executescript(";".join(statements))
        made.commit()
    return path


def test_columns_and_views_of_sqlite_that_are_worked_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell, a table, and the work of a view have a size, whatever the size of the file; those that are of a
    usual size are loaded.
    """
    many = "with recursive c(i) as (select 1 union all select i + 1 from c where i < 200) select i from c"
    endless = "with recursive c(i) as (select 1 union all select i + 1 from c)"
    path = database(
        tmp_path / "a.sqlite",
        "create table cell (id integer primary key, b text generated always as (hex(zeroblob(400000000))) virtual)",
        "insert into cell (id) values (1)",
        "create table good (id integer primary key, b text generated always as ('number ' || id) virtual)",
        "insert into good (id) values (7), (8)",
        f"create view wide as select i, hex(zeroblob(40000 + i)) b from ({many})",
        f"create view endless as {endless} select count(*) n from c",
        f"create view rows as {endless} select i, 'abc' t from c",
    )

    def load(*tables: str) -> Graph:
        graph = condgraph.open("memory:")
        graph.load(path, tables=list(tables))
        return graph

    assert load("good").kopl("FindAll() FilterStr(b, number 8) Count()").texts == ["1"]
    with pytest.raises(LoadError, match=r"'cell'.*too big.*64,000,000 bytes"):
        load("cell")
    monkeypatch.setattr("condgraph.loaders.database.sqlite._MAX_CHARACTERS", 10_000_000)
    with pytest.raises(LoadError, match=r"300 times the size.*'wide'"):
        load("wide")
    monkeypatch.setattr("condgraph.loaders.database.sqlite._MAX_STEPS", 3_000_000)
    monkeypatch.setattr("condgraph.loaders.database.sqlite._STEPS_A_BYTE", 0)
    for view in ("endless", "rows"):
        with pytest.raises(LoadError, match="more than 3,000,000 steps"):
            load(view)


@pytest.mark.parametrize("folder", [False, True], ids=["a file", "a folder"])
def test_rows_of_parquet_that_a_few_bytes_say(folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text once, and that it stands in all rows."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("condgraph.loaders.table.arrow._MAX_BYTES", 4 << 20)
    path = tmp_path / "piece.parquet"
    for count in (1_000, 200_000):
        texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array(["x" * 1000]))
        parquet.write_table(pa.table({"note": texts}), path, compression="zstd", store_schema=False)
        assert 1000 * path.stat().st_size < 200_000_000
        if count == 1_000:
            assert condgraph.open("memory:").load(tmp_path if folder else path, format="parquet").statements == 1_000
            continue
        with pytest.raises(LoadError, match="300 times the size"):
            condgraph.open("memory:").load(tmp_path if folder else path, format="parquet")


def test_long_texts_of_parquet_that_stand_in_all_rows(tmp_path: Path) -> None:
    """The limit sees them before they take memory: as texts, as dictionaries, in lists, in several
    batches, in pieces, and in a folder of tables.
    """
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = 1_000
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * (2 << 20)]))
    lists = pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32)), texts)
    for name, note, stored, group in (
        ("texts", texts, False, rows),
        ("words", texts, True, rows),
        ("lists", lists, False, rows),
        ("batches", texts, False, 100),
        ("pieces/part-0", texts, False, rows),
        ("tables/orders", texts, False, rows),
    ):
        table = pa.table({"id": np.arange(rows), "note": note})
        (tmp_path / name).parent.mkdir(exist_ok=True)
        parquet.write_table(table, tmp_path / f"{name}.parquet", compression="zstd", store_schema=stored, row_group_size=group)
    (tmp_path / "tables" / "lines.csv").write_text("id,order_id\n1,1\n2,2\n")
    places = [
        str(tmp_path / name) for name in ("texts.parquet", "words.parquet", "lists.parquet", "batches.parquet", "pieces", "tables")
    ]
    # Threads take addresses and little memory.
    # The peak of this process alone: ru_maxrss has that of the one which started it, too.
    status = "(open('/proc/self/status') if sys.platform == 'linux' else ())"
    peak = f"print(next((line.split()[1] for line in {status} if line.startswith('VmHWM')), 0))"
    program = _PROGRAM.replace("1 << 30", "1 << 32") + peak
    done = subprocess.run([sys.executable, "-c", program, *places], capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout
    for place in places:
        errors, _, said = said.partition(f"that was {place}\n")
        assert errors.count("LoadError") == errors.count("300 times the size of the file") == 2, (
            place,
            errors,
            done.stderr[-2000:],
        )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(said) < 600_000, said


@pytest.mark.parametrize("dictionary", [False, True])
def test_texts_that_are_read_as_dictionaries_are_the_same(
    dictionary: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    if dictionary:
        monkeypatch.setattr("condgraph.loaders.table.arrow._MAX_BYTES", 1 << 14)
    table = pa.table(
        {
            "name": [f"n{at}" for at in range(500)],
            "kind": ["even", None, "odd", ""] * 125,
            "words": [["a", "b"], [], None, ["b"]] * 125,
            "part": [{"of": f"p{at % 7}"} for at in range(500)],
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    assert bool(repeated_texts(tmp_path / "t.parquet")) is dictionary
    graph = condgraph.open("memory:")
    assert graph.load(tmp_path / "t.parquet", key="name").statements == 500 + 250 + 375 + 500
    assert graph.kopl("FindAll() FilterStr(kind, odd) Count()").texts == ["125"]
    assert graph.kopl("FindAll() FilterStr(words, b) Count()").texts == ["250"]
    assert graph.kopl("Find(n8) QueryAttr(part.of)").texts == ["p1"]


def chain(size: int) -> str:
    """Concepts that each lie under the next, and one entity in the lowest."""
    concepts = {f"c{at}": {"name": f"concept {at}", "instanceOf": [f"c{at + 1}"] if at < size - 1 else []} for at in range(size)}
    return json.dumps(
        {"concepts": concepts, "entities": {"e": {"name": "Ann", "instanceOf": ["c0"], "attributes": [], "relations": []}}}
    )


def test_a_chain_of_subclasses_takes_linear_time(tmp_path: Path) -> None:
    """Concepts one under the other are looked at once each."""
    looks: list[int] = []

    class Below(dict[int, list[int]]):
        def get(self, concept: int, default: Any = None) -> Any:
            looks.append(concept)
            return super().get(concept, default)

    found = list(components(Below({at + 1: [at] for at in range(10_000)}), list(range(10_001))))
    assert found == [[at] for at in range(10_001)]
    assert len(looks) == 10_001
    path = tmp_path / "kb.json"
    path.write_text(chain(3_000))
    graph = condgraph.open("memory:")
    begin = time.process_time()
    graph.load(path)
    # Looking below every concept by itself takes eight seconds.
    assert quick_enough(time.process_time() - begin, 2.0)
    for concept in (0, 1500, 2999):
        assert graph.kopl(f"FindAll() FilterConcept(concept {concept}) QueryName()").texts == ["Ann"]


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=16),
    st.lists(st.tuples(st.integers(0, 7), st.integers(8, 12)), max_size=10, unique=True),
)
def test_members_of_any_hierarchy(under: list[tuple[int, int]], members: list[tuple[int, int]]) -> None:
    """Each concept holds the members of all that lies under it, in cycles and without."""
    stated = sorted(members)
    columns = {
        "ent.kind": np.array([EntityKind.CONCEPT] * 8 + [EntityKind.ENTITY] * 5, np.int8),
        "mem.c": np.array([concept for concept, _ in stated], np.int32),
        "mem.e": np.array([entity for _, entity in stated], np.int32),
        "sub.c": np.array([child for child, _ in under], np.int32),
        "sub.p": np.array([parent for _, parent in under], np.int32),
    }
    found = closed_members(columns)
    for concept in range(8):
        below = {concept}
        while more := {child for child, parent in under if parent in below} - below:
            below |= more
        begin, end = found["con.offsets"][concept : concept + 2]
        assert found["con.items"][begin:end].tolist() == sorted({entity for one, entity in stated if one in below})


def test_a_hierarchy_that_no_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member of each of many concepts that lie under each other."""
    monkeypatch.setattr("condgraph.engine.snapshot.layout.MAX_MEMBERSHIPS", 10_000)
    monkeypatch.setattr("condgraph.engine.snapshot.layout._TIMES", 1)
    items: list[Any] = [Subclass(f"c{at}", f"c{at + 1}") for at in range(300)] + [Member(f"e{at}", f"c{at}") for at in range(300)]
    with pytest.raises(LoadError, match="of 300 that are stated"):
        condgraph.open("memory:").add(items)
