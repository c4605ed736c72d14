"""Recognition of table files: a header and several columns are a table; triples, exports and
documents are not.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condgraph.loaders.table.arrow import DATAFRAME, PARQUET
from condgraph.loaders.table.records import JSON, JSONL
from condgraph.loaders.table.text import CSV, TSV

TABLES = (CSV, TSV, JSONL, JSON, PARQUET, DATAFRAME)

FILMS = "Film,Director,Year,Gross\nBird,Clint Eastwood,1988,2.2\nAlien,Ridley Scott,1979,60\n"


def scores(name: str, text: str | bytes) -> dict[str, int]:
    head = text if isinstance(text, bytes) else text.encode()
    return {form.name: score for form in TABLES if (score := form.sniff(Path(name), head))}


@pytest.mark.parametrize(
    ("name", "text", "form", "least", "most"),
    [
        ("films.csv", FILMS, "csv", 60, 70),
        ("films.csv.gz", FILMS, "csv", 60, 70),
        ("films", FILMS, "csv", 40, 50),
        ("films.md", "| a | r | b |\n|---|---|---|\n| x | r | y |\n", "csv", 85, 85),
        ("films.txt", "# Films\n\nWords.\n\n|a|b|\n|:-|-:|\n|x|y|\n", "csv", 85, 85),
        ("films.psv", "a|b|c\n1|-|2\n3|-|4\n", "csv", 60, 70),
        ("films.csv", FILMS.replace(",", ";"), "csv", 60, 70),
        ("films.csv", FILMS.replace(",", "\t"), "csv", 60, 70),
        ("films.tsv", FILMS.replace(",", "\t"), "tsv", 60, 70),
        ("films.txt", FILMS.replace(",", "\t"), "tsv", 40, 50),
        ("three.csv", "Film,Director,Year\nBird,Clint Eastwood,1988\n", "csv", 60, 60),
        ("kb.csv", "a|r|b\na|r|c\nb|s|c\n", "csv", 0, 30),
        ("kb.tsv", "a\tr\tb\na\tr\tc\nb\ts\tc\n", "tsv", 0, 30),
        ("names.csv", "Name\nAnn\nBob\n", "csv", 40, 40),
        ("ragged.csv", "a,b,c,d\n1,2,3,4\n1,2,3,4,5\n1,2,3,4\n", "csv", 20, 50),
        ("a.jsonl", '{"a": 1}\n{"a": 2}\n', "jsonl-table", 60, 60),
        ("a.json", '{"a": 1}\n{"a": 2}\n', "jsonl-table", 50, 50),
        ("a.parquet", b"PAR1\x15\x04", "parquet", 100, 100),
    ],
)
def test_scores(name: str, text: str | bytes, form: str, least: int, most: int) -> None:
    found = scores(name, text)
    assert least <= found.get(form, 0) <= most
    assert not set(found) - {form}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("export.jsonl", '{"condgraph": 1, "graph": "g"}\n{"entity": "a"}\n'),
        ("a.ttl", "@prefix a: <b> .\n"),
        ("a.nt", "<a> <b> <c> .\n<a> <b> <d> .\n"),
        ("notes.txt", "Some words, and more.\nOther words, here.\n\nAnd none.\n"),
        ("empty.csv", ""),
        ("binary.csv", b"\x00\x01,\x02\n"),
    ],
)
def test_what_is_no_table(name: str, text: str | bytes) -> None:
    assert max(scores(name, text).values(), default=0) < 10


@given(
    st.binary(max_size=300) | st.text(st.sampled_from('ab1,;\t|"\\\n{}'), max_size=60).map(str.encode),
    st.sampled_from(["a.csv", "a.tsv", "a"]),
)
def test_anything_has_a_score(head: bytes, name: str) -> None:
    assert all(0 <= score <= 100 for score in scores(name, head).values())


def test_every_table_of_wikitablequestions_is_one(data: Path) -> None:
    files = sorted((data / "wikitablequestions/csv").glob("*/*.csv"))[::7]
    assert all(scores(path.name, path.read_bytes()[:65_536]).get("csv", 0) >= 25 for path in files)
