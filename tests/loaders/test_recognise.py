"""Recognition: which loader a source goes to and what it is called; and no loader ends in anything
but a typed error.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from condgraph.engine.errors import CondgraphError, FormatError, LoadError
from condgraph.engine.facts import (
    MANY,
    Entity,
    EntityKind,
    Item,
    Member,
    Ref,
    Source,
    Sourced,
    Statement,
    Subclass,
)  # fmt: skip
from condgraph.engine.values import Quantity
from condgraph.loaders.base import Reading
from condgraph.loaders.export import encode, one_by_one
from condgraph.loaders.recognise import FORMATS, asked_about, recognise, sources_of
from tests.support.lanes import examples

#: A small file of each format that is read from text.
SAMPLES = {
    "kqapro": b'{"concepts": {"c": {"name": "C", "subclassOf": []}}, "entities": {"a": {"name": "A", "instanceOf": ["c"], '
    b'"attributes": [{"key": "k", "value": {"type": "year", "value": 1990}, "qualifiers": {}}, {"key": "h", "value": '
    b'{"type": "quantity", "value": 1.5, "unit": "m"}, "qualifiers": {"q": [{"type": "date", "value": "1990-01-02"}]}}], '
    b'"relations": [{"relation": "r", "object": "b", "direction": "forward", "qualifiers": {}}]}}}',
    "triples": "a|r|b\nb|r|\u00e9\nc|s|d\nd|s|e\n".encode(),
    "quintuples": b"a\tr\tb\t1990\t1991-05-##\nb\tr\tc\t####\t\nc\tr\td\t1990\t1989\n",
    "wikidata": b"Q1\tAda\tP31\tinstance of\tQ5\thuman\tP805=subject of\tQ3=x\nQ5\thuman\tP279\tsubclass of\tQ6\tanimal\n",
    "rdf": b'@prefix : <http://x/> .\n:a :p :b {| :since 1990 |} ; a :K .\n:a :q "x"@en, 1.50, '
    b'"2001-01-01"^^<http://www.w3.org/2001/XMLSchema#date> .\n',
    "condgraph": b'{"condgraph":1,"graph":"g","sources":[{"name":"f"}]}\n{"entity":"a","name":"A","kind":"concept"}\n'
    b'{"s":"a","p":"r","o":{"n":"1.10","u":"m"},"q":[["k",{"t":"1990","precision":"year"}]],"src":[["f",1]]}\n',
}
NAMES = {"kqapro": "kb.json", "rdf": "g.ttl", "condgraph": "g.jsonl"}


@pytest.fixture
def files(tmp_path: Path) -> Any:
    def make(**named: bytes) -> Path:
        for name, content in named.items():
            path = tmp_path / name.replace("__", "/").replace("_DOT_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return tmp_path

    return make


@pytest.mark.parametrize("form", SAMPLES)
@pytest.mark.parametrize("packed", [False, True])
def test_content_decides(tmp_path: Path, form: str, packed: bool) -> None:
    path = tmp_path / ("anything.dat.gz" if packed else "anything.dat")
    path.write_bytes(gzip.compress(SAMPLES[form]) if packed else SAMPLES[form])
    (found,) = recognise(path)
    assert found.format.name == form
    assert found.source == Source("anything", str(path), form)
    assert found.data == path
    reading = Reading(found.source)
    assert list(found.format.read(found.data, reading, {}))


#: Files that are near to another format, and what they are.
NEAR = [
    ("people.csv", "name|age|city\nAnn|34|Oslo\nBob|41|Rome\n", "csv"),
    ("people.txt", "name | age | city\nAnn | 34 | Oslo\nBob | 41 | Rome\n", "csv"),
    ("people.psv", "name|town|country\nAnn|Oslo|Norway\nBob|Rome|Italy\n", "csv"),
    ("people.dat", "order|date|amount\nA1|2024-01-01|12.50\nA2|2024-01-02|7.25\n", "csv"),
    ("people.csv", "name|age|city\n", "csv"),
    ("people.tsv", "name\ttown\tcountry\nAnn\tOslo\tNorway\nBob\tRome\tItaly\n", "tsv"),
    ("kb.txt", "Ann|knows|Bob\nBob|likes|Cleo\nCleo|hates|Ann\n", "triples"),
    ("kb.txt", "Ann\tknows\tBob\nBob\tlikes\tCleo\n", "triples"),
    ("kb.csv", "subject|predicate|object\nAnn|age|34\n", "triples"),
    ("kb.txt", "Ann|age|34\nBob|age|41\nAnn|town|Oslo\n", "triples"),
    ("two.csv", 'x,y\nr0,"1,5 kg ca."\nr1,"2,5 kg ca."\n', "csv"),
    ("three words.csv", "title\nA tale two\nB tale three\n", "csv"),
    ("no header.csv", "A tale two\nB tale three\n", "csv"),
    ("notes.csv", "notes\nlikes apples, bananas\nx, y, z\n", "csv"),
    ("facts.txt", "Ann knows Bob\nBob knows Cleo\n", "triples"),
    ("one.txt", "a,b,c,d,e\nx,y,z,u,v\n", "csv"),
    ("one.txt", "name\tcity\nAnn\tOslo\n", "tsv"),
    ("short.txt", "route_id,service_id,trip_id,headsign\nAB,FULLW,AB1\nAB,FULLW\n", "csv"),
    ("bank.csv", "Umsatz;\nName;A;\n\nTag;Text;Betrag;\n28.12.2018;H;-1,00;\n02.01.2019;X;2,50;\n", "csv"),
    ("b.tsv", "head\trelation\ttail\tstart\tend\nAnn\tin\tChoir\t1999\t2003\nFay\tin\tChoir\t-50\t-44\n", "quintuples"),
    ("b.tsv", "head\trelation\ttail\tstart\tend\nFay\tin\tChoir\t-50\t14\nGus\tin\tChoir\t-4\t3\n", "quintuples"),
    ("b.tsv", "head\trelation\ttail\tstart\tend\nTiberius\tin\tRome\t14\t37\nNero\tin\tRome\t54\t68\n", "quintuples"),
    ("b.tsv", "source\trelation\ttarget\ttime\nTiberius\tin\tRome\t14\nNero\tin\tRome\t54\n", "tsv"),
    ("b.txt", "Fay\tin\tChoir\t-50\t-44\nGus\tin\tChoir\t-753\t-716\n", "quintuples"),
    ("b.tsv", "subject\tpredicate\tobject\tyear\nFay\tin\tChoir\t-50\nGus\tin\tChoir\t-4\n", "quintuples"),
    ("b.tsv", "head\trelation\ttail\tstart\tend\nCaesar\tin\tRome\t-59\t-59\nCicero\tin\tRome\t63 BC\t63 BC\n", "quintuples"),
    ("bad times.csv", "head,relation,tail,time\nAnn,in,Choir,2001\nFay,in,Choir,soon\nGus,in,Choir,5 March 2020\n", "quintuples"),
    ("bad times.txt", "Ann,in,Choir,2001\nFay,in,Choir,soon\nGus,in,Choir,1999-05\nGus,likes,Ann,2000\n", "quintuples"),
    ("no times.csv", "source,property,value,date\nA,in,C,soon\nB,in,C,late\nC,in,D,2001\n", "quintuples"),
    ("quotes.tsv", '"Ann"\t"in"\t"Paris"\t"2001"\n"Bob"\t"in"\t"Rome"\t""\n', "quintuples"),
    ("three.tsv", "Ann\tin\tParis\t2001\nAnn\tat\tAcme\tsoon\nBob\tin\tRome\t2002\n", "quintuples"),
    ("five.tsv", "A\tin\tB\t2001\t-\nB\tin\tC\tx\ty\nC\tin\tD\t2003\t-\nD\tat\tE\t2004\t2005\n", "quintuples"),
    ("years.csv", "country,2001,2002\nFR,1,2\nDE,3,4\n", "csv"),
    ("no header.csv", "Ann,2001,5.5\nBob,2002,6.5\nCid,2003,7\n", "csv"),
    ("names.txt", "first|last|town\nAnn|Lee|Oslo\nBob|Ray|Rome\nCy|Poe|Oslo\n", "csv"),
    ("wdi.csv", "Source,WDI,\n\nUpdated,2024,\n\nCountry,Code,1999,2000,\nNorway,NO,1.5,2,\nItaly,IT,3,4,\n", "csv"),
    ("b.csv", "country,indicator,unit,1999,2001\nNorway,GDP,USD,1999,2001\nItaly,GDP,USD,2001,2002\n", "csv"),
]


@pytest.mark.parametrize(("name", "text", "form"), NEAR)
def test_near_formats(tmp_path: Path, name: str, text: str, form: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    (found,) = recognise(path)
    assert found.format.name == form
    assert list(found.format.read(path, Reading(found.source), {})) or text.count("\n") == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_the_sign_of_a_format_misses_no_file(encoding: str) -> None:
    heads = [(f"x{suffix}", text.encode(encoding)) for _, text, _ in NEAR for suffix in ("", ".csv", ".txt", ".json", ".nt")]
    texts = ['VERSION "1.2"\n', "@prefix : <x> .\n", "\u00a0{}", "\ufeff\ufeff [1]", '{"@id": 1}', "<a> <b> <c> .\n"]
    heads += [("x", text.encode(encoding)) for text in texts]
    heads += [(name, head) for head in SAMPLES.values() for name in ("x", "x.json", "x.csv")]
    for name, head in heads:
        scores = {form.name: form.sniff(Path(name), head) for form in FORMATS.values()}
        assert {form.name for form in asked_about(Path(name), head)} >= {form for form, score in scores.items() if score}


def test_a_bad_byte_in_a_table_is_said_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("name,v\nZürich,1\nGen".encode() + b"\xe8ve,2\n")
    (found,) = recognise(path)
    with pytest.raises(LoadError, match=r"a.csv, row 2, field 'name': byte 0xe8 is not text"):
        list(found.format.read(path, Reading(found.source), {}))


def test_the_format_may_be_said(files: Any) -> None:
    path = files(a_DOT_txt=SAMPLES["quintuples"]) / "a.txt"
    assert recognise(str(path), "triples")[0].format.name == "triples"
    with pytest.raises(FormatError, match=r"'tripels'.*nearest: 'triples'"):
        recognise(path, "tripels")


def test_nothing_fits_or_two_do(files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = files(a_DOT_txt=b"just a text\n", b_DOT_txt=b"", c_DOT_txt=SAMPLES["triples"])
    with pytest.raises(FormatError, match=r"format= is one of .*kqapro"):
        recognise(folder / "a.txt")
    with pytest.raises(FormatError, match="empty"):
        recognise(folder / "b.txt")
    score = FORMATS["triples"].sniff(folder / "c.txt", SAMPLES["triples"])
    import dataclasses

    monkeypatch.setitem(FORMATS, "rdf", dataclasses.replace(FORMATS["rdf"], sign=None, sniff=lambda path, head: score))
    with pytest.raises(FormatError, match=r"could be rdf or triples.*format="):
        recognise(folder / "c.txt")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"just a text\nand more of it, really\n", "record 1 has 1 field and record 2 has 2 fields; as facts, "),
        (b"Some words, and more.\nOther.\n", r"record 1 has 2 fields and record 2 has 1 field"),
        (b"Z\xc3\xbcrich, a town\nGen\xe8ve is one\n\xc3\xa9t\xc3\xa9\n", "byte 0xe8 in line 2 is not UTF-8"),
        (b"%PDF-1.7\n", "it looks like a PDF"),
        (b"\n<!DOCTYPE html><p>Sign in, please</p>\n", "it looks like a page of HTML"),
        (b"\0\1\2", "not text: it has the byte 0x00 at 1"),
        (b"[1,\n 2, }", "as JSON, line 2 is wrong"),
        (b"[1, 2, 3]", "as JSON, it is not an object, a list of objects"),
        (b'name,note\na,"open\nb,x\n', "a quote in line 2 or below is not closed"),
        (b"word\nword\n", "no line has two fields; as facts, no line has three fields"),
    ],
)
def test_what_is_not_recognised_is_told_why(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=why):
        recognise(path)
    with pytest.raises(FormatError, match=r"notes\.txt \(notes\.txt: .*" + why):
        recognise(tmp_path)


def test_missing_files_have_neighbours(files: Any) -> None:
    folder = files(train_DOT_txt=SAMPLES["triples"])
    with pytest.raises(LoadError, match=r"no such file.*train\.txt"):
        recognise(folder / "trian.txt")
    with pytest.raises(LoadError, match="no file matches"):
        recognise(str(folder / "*.csv"))
    for wrong in ("a\0b", "x" * 5000):
        with pytest.raises(LoadError):
            recognise(wrong)


def test_patterns_lists_and_names(files: Any) -> None:
    folder = files(x__train_DOT_txt=SAMPLES["triples"], y__train_DOT_txt=SAMPLES["quintuples"], y__kb_DOT_json=SAMPLES["kqapro"])
    found = recognise(str(folder / "*" / "*.txt"))
    assert [(one.format.name, one.source.name) for one in found] == [("triples", "x/train"), ("quintuples", "y/train")]
    found = recognise([folder / "y" / "kb.json", str(folder / "x" / "*")])
    assert [one.source.name for one in found] == ["kb", "train"]
    assert [one.source.name for one in recognise([folder / "y" / "kb.json", folder / "x" / "train.txt"], name="n")] == [
        "n/kb",
        "n/train",
    ]
    assert recognise(folder / "y" / "kb.json", name="n")[0].source.name == "n"
    with pytest.raises(FormatError, match="twice"):
        recognise([folder / "y" / "kb.json"] * 2)
    with pytest.raises(FormatError, match="empty"):
        recognise([])


def test_a_folder_is_its_files(files: Any) -> None:
    folder = files(
        train_DOT_txt=SAMPLES["triples"], sub__kb_DOT_json=SAMPLES["kqapro"], README_DOT_md=b"about", LICENSE_DOT_mit=b"..."
    )
    found = recognise(folder)
    assert [(one.format.name, one.source.name) for one in found] == [("kqapro", "kb"), ("triples", "train")]
    reading = Reading(found[0].source)
    list(found[0].format.read(found[0].data, reading, {}))
    assert "LICENSE.mit, README.md" in reading.problems[0].message
    (folder / "strange.bin").write_bytes(b"\0\1")
    with pytest.raises(FormatError, match=r"strange\.bin.*pattern"):
        recognise(folder)


def test_a_folder_of_tables_with_keys_is_one_source(files: Any) -> None:
    folder = files(products_DOT_csv=b"productID,name\n1,Chai\n", orders_DOT_csv=b"orderID,productID\n1,1\n")
    (found,) = recognise(folder, name="shop")
    assert (found.format.name, found.source.name, found.data) == ("folder", "shop", folder)


def test_objects() -> None:
    assert recognise([("a", "r", "b")])[0].format.name == "triples"
    assert recognise([("a", "r", "b", "1990")])[0].format.name == "quintuples"
    assert recognise({"concepts": {}, "entities": {}}, name="kb")[0].source.name == "kb"
    with pytest.raises(FormatError, match="type object"):
        recognise(object())
    for form in FORMATS.values():
        with pytest.raises(CondgraphError):
            list(form.read(object(), Reading(Source("x")), {}))


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["films.csv"], ["films"]),
        (["a/films.csv.gz"], ["films"]),
        (["csv/204-csv/57.csv", "csv/203-csv/57.csv"], ["204-csv/57", "203-csv/57"]),
        (["a/x/1.csv", "b/x/1.csv", "2.csv"], ["a/x/1", "b/x/1", "2"]),
        (["1.csv", "a/1.csv"], ["1", "a/1"]),
        (["a/1.csv", "a/1.tsv"], ["1.csv", "1.tsv"]),
        ([".hidden"], [".hidden"]),
        ([{}, {}], ["dict 1", "dict 2"]),
    ],
)
def test_names_of_sources(paths: list[Any], names: list[str]) -> None:
    assert sources_of(paths) == names


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "x.csv", "x.tsv"]), min_size=1, max_size=4).map("/".join), max_size=8, unique=True)
)
def test_names_of_sources_are_different(paths: list[str]) -> None:
    names = sources_of(paths)
    assert len(set(names)) == len(paths)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("data/metaqa/kb.txt", "triples"),
        ("data/pathquestions/2H-kb.txt", "triples"),
        ("data/fb15k237/train.txt", "triples"),
        ("data/fb15k237/FB15K_NumericalTriples.txt", "triples"),
        ("data/nell995_betae/train.txt", "triples"),
        ("data/wikidata12k/train.txt", "quintuples"),
        ("data/wikidata12k/triple2id.txt", "quintuples"),
        ("data/cronquestions/derived_facts.tsv", "quintuples"),
        ("data/wd50k/derived_labelled_statements.tsv", "wikidata"),
        ("data/kopl_example/example_kb.json", "kqapro"),
        ("oracle/kb.json", "kqapro"),
        ("data/lpg_northwind/import", "folder"),
    ],
)
def test_benchmarks(shared: Path, name: str, form: str) -> None:
    assert [one.format.name for one in recognise(shared / name)] == [form]


# Hostile input

MINE = ("kqapro", "triples", "quintuples", "wikidata", "rdf", "condgraph")


def checked(items: Iterator[Item]) -> int:
    """Read items to their end, and look whether a store could keep them."""
    count = 0
    for item in items:
        for one in one_by_one(item) if isinstance(item, MANY) else (item,):
            inner = one.item if isinstance(one, Sourced) else one
            assert isinstance(inner, (Entity, Member, Subclass, Statement, Source))
            encode(one).encode("utf-8")
            if isinstance(inner, Statement):
                assert inner.subject
                assert inner.predicate
                assert inner.row >= 0
                for value in (inner.object, *(value for _, value in inner.qualifiers)):
                    assert not isinstance(value, Ref) or value.id
                    assert not isinstance(value, Quantity) or float(value.number) is not None
            elif isinstance(inner, Entity):
                assert inner.id
                assert isinstance(inner.kind, EntityKind)
            count += 1
    return count


def attempt(path: Path, form: str) -> None:
    for on_error in ("raise", "skip"):
        with suppress(CondgraphError):
            checked(FORMATS[form].read(path, Reading(Source("x", str(path)), on_error), {}))  # type: ignore[arg-type]
    with suppress(CondgraphError):
        recognise(path)


@pytest.mark.parametrize("form", MINE)
@settings(max_examples=examples(60))
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_arbitrary_content(tmp_path_factory: pytest.TempPathFactory, form: str, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / NAMES.get(form, "x.txt")
    path.write_bytes(content)
    attempt(path, form)


@st.composite
def damaged(draw: st.DrawFn, form: str) -> bytes:
    """A good file with a few bytes taken out, put in, or repeated."""
    content = SAMPLES[form]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        until = draw(st.integers(at, min(len(content), at + 12)))
        put = draw(
            st.one_of(
                st.just(b""),
                st.binary(max_size=4),
                st.sampled_from([b"\t", b"\n", b'"', b"null", b"{", b"1e999", b"\\ud800", b"\xff"]),
            )
        )
        content = content[:at] + put + content[until:]
    return content


@pytest.mark.parametrize("form", MINE)
@settings(max_examples=examples(150))
@given(data=st.data())
def test_damaged_content(tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / NAMES.get(form, "x.txt")
    path.write_bytes(data.draw(damaged(form)))
    attempt(path, form)


@pytest.mark.parametrize("form", MINE)
def test_damaged_compression(tmp_path: Path, form: str) -> None:
    path = tmp_path / (NAMES.get(form, "x.txt") + ".gz")
    packed = gzip.compress(SAMPLES[form] * 50)
    for content in (packed[:-9], packed[:12], packed[:20] + b"\0" * 8 + packed[28:]):
        path.write_bytes(content)
        with pytest.raises(CondgraphError):
            list(FORMATS[form].read(path, Reading(Source("x", str(path))), {}))


@settings(max_examples=examples(60))
@given(
    tables=st.lists(
        st.lists(st.lists(st.sampled_from(["1", "2", "a", "", "NULL", "id", "xID", "yID", '"', "é"]), max_size=3), max_size=4),
        min_size=1,
        max_size=3,
    )
)
def test_arbitrary_folders(tmp_path_factory: pytest.TempPathFactory, tables: list[list[list[str]]]) -> None:
    folder = tmp_path_factory.mktemp("f")
    for name, rows in zip(("xs.csv", "ys.csv", "x-y.csv"), tables, strict=False):
        (folder / name).write_text("\n".join(",".join(row) for row in rows))
    attempt(folder, "folder")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            b"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE p(id integer);\nINSERT INTO p VALUES(1);\n",
            "statements of SQL",
        ),
        (b"-- PostgreSQL database dump\n\nCREATE TABLE p (id integer, name text);\n", "statements of SQL"),
        (b'{"type":"node","id":"0","labels":["User"],"properties":{"name":"Adam"}}\n', "an export of Neo4j as JSON"),
        (b'[{"id":"0","type":"relationship","label":"KNOWS","start":{"id":"0"}}]', "an export of Neo4j as JSON"),
        (b'<?xml version="1.0"?>\n<rows><row/></rows>', "XML, of which RDF/XML alone is read"),
        (b"Obj\x01\x04\x14avro.codec", "an Avro file"),
        (b'<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns"/>', "GraphML or GEXF"),
        (b"a.csv".ljust(257, b"\0") + b"ustar\0", "a tar archive"),
    ],
)
def test_what_else_files_are(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "some.dat"
    path.write_bytes(gzip.compress(text))
    with pytest.raises(FormatError, match=f"it looks like {said}"):
        recognise(path)
