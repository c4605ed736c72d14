"""What the package gives where pyarrow, which is an extra, is not installed: the same answers and tables, and an error with
the command that installs it where Arrow itself is asked for.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas
import polars

import condgraph
from condgraph.engine.answer import Answer
from condgraph.samples import FOLDER

BLOCK = "import sys; sys.modules['pyarrow'] = None\n"
ANSWERS = """
import json, sqlite3, sys, warnings
import condgraph
from condgraph.samples import FOLDER

graph = condgraph.open("memory:")
graph.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
graph.load(FOLDER / "countries.json")
graph.load(FOLDER / "governments.tsv")
open("a.json", "w").write(json.dumps([{"id": "x", "n": 9007199254740993, "ok": True}, {"id": "y", "ok": None, "since": "1984-05"}]))
open("b.csv", "wb").write("\\ufeffid;size;id\\n\\"x\\";1,5 kg;7\\nz;2,25 kg;\\n".encode())
base = sqlite3.connect("c.sqlite")
base.execute("CREATE TABLE IF NOT EXISTS t (id TEXT PRIMARY KEY, made DATE)")
base.execute("INSERT OR REPLACE INTO t VALUES ('q', '2001-02-03')")
base.commit()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for name in ("a.json", "b.csv", "c.sqlite"):
        graph.load(name)
found = [[str(one.message) for one in said]]
for program in sys.argv[1:]:
    answer = graph.query(program)
    assert answer.check()
    tables = answer.to_pandas(), answer.to_polars()
    found.append([answer.texts, answer.data(), [str(fact) for fact in answer.evidence], *map(str, tables), str(tables[0].dtypes)])
found.append(graph.cypher("MATCH (x) WHERE x.name =~ '(a|.*)*C.*(a|.*)*nada.*' RETURN x.name").texts)
print(json.dumps(found, default=str))
"""
PROGRAMS = (
    "FindAll() FilterNum(height, 7500 m, >) QueryAttr(height)",
    "FindAll() QueryAttr(n)",
    "FindAll() QueryAttr(since)",
    "Find(Nepal) Relate(capital, forward) QueryName()",
    "MATCH (m)-[:country]->(c) RETURN c.name AS country, count(*) AS n, max(m.height) AS most ORDER BY country",
)


def output(code: str, folder: Path, *arguments: str) -> str:
    """What a program prints that runs in a folder, and succeeds."""
    run = subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_answers_and_tables_are_the_same(tmp_path: Path) -> None:
    with_it, without = (json.loads(output(code, tmp_path, *PROGRAMS)) for code in (ANSWERS, BLOCK + ANSWERS))
    assert without == with_it
    assert sorted(without[1][0]) == ["7,816 m", "8,091 m", "8,163 m", "8,167 m"]
    assert without[-1] == ["Canada"]


MISSING = """
import condgraph, pandas, sys
from condgraph.engine.errors import MissingExtraError

graph = condgraph.open("memory:")
graph.load([{"id": "x", "size": 2}], key="id")
open("t.parquet", "wb").write(b"PAR1" + bytes(20) + b"PAR1")
open("t.feather", "wb").write(b"ARROW1" + bytes(20) + b"ARROW1")
for call in (
    lambda: graph.load("t.parquet"),
    lambda: graph.load("t.feather"),
    lambda: graph.load(pandas.DataFrame({"id": ["y"]})),
    lambda: graph.load("s3://bucket/t.csv?anonymous=true"),
    lambda: graph.kopl("FindAll()").to_arrow(),
    lambda: graph.export("files", to="neo4j-import"),
):
    try:
        call()
    except MissingExtraError as error:
        assert "pip install 'condgraph[arrow]'" in str(error), error
        print(error.package)
"""


def test_what_needs_arrow_says_how_to_get_it(tmp_path: Path) -> None:
    assert output(BLOCK + MISSING, tmp_path).split() == ["pyarrow"] * 6


def test_the_command_line_says_how_to_get_it(tmp_path: Path) -> None:
    code = BLOCK + "from condgraph.cli import main\nsys.argv[1:] = {!r}\nmain()"
    store = str(tmp_path / "store")
    condgraph.open(store).load(FOLDER / "mountains.csv", key="mountain")
    command = ["query", "-d", store, "FindAll()", "--format", "arrow"]
    run = subprocess.run([sys.executable, "-c", code.format(command)], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "error[missing-extra]" in run.stderr
    assert "condgraph[arrow]" in run.stderr


def same_tables(answer: Answer) -> None:
    """Check that pandas and polars get what Arrow would give them."""
    arrow = answer.to_arrow()
    pandas.testing.assert_frame_equal(answer.to_pandas(), arrow.to_pandas(integer_object_nulls=True), check_dtype=False)
    assert answer.to_pandas().dtypes.to_dict() == arrow.to_pandas(integer_object_nulls="n" in arrow.column_names).dtypes.to_dict()
    other = polars.from_arrow(arrow)
    assert isinstance(other, polars.DataFrame)
    assert answer.to_polars().equals(other)
    assert answer.to_polars().schema == other.schema


def test_tables_are_those_of_arrow() -> None:
    graph = condgraph.open("memory:")
    rows = [
        {"id": "a", "n": 2**53 + 1, "m": 1.5, "ok": True, "when": "1984"},
        {"id": "b", "n": None, "m": None, "ok": None, "when": "é"},
        {"id": "c", "n": 2**62, "m": -3.0, "ok": False, "when": None},
    ]
    graph.load(rows, key="id")
    graph.load([{"id": "d", "k": 1, "tags": ["x", "y"]}, {"id": "e", "k": 2}], key="id")
    for program in ("FindAll()", "FindAll() Count()", "FindAll() QueryAttr(n)", "Find(a) QueryName()", "FindAll() QueryAttr(when)"):
        same_tables(graph.kopl(program))
    for table in ("show self, n, m, ok, when, k", "show m, k order by self", "group by ok show count(), top(2, n), max(m), sum(k)"):
        same_tables(graph.query("FindAll()", table=table))
    same_tables(graph.cypher("MATCH (x) WHERE x.name = 'nobody' RETURN x.n AS n", on_unknown="empty"))
