"""Answers as relations of DuckDB, in a connection of one's own or in the module's."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import pytest

import condgraph
from condgraph.engine.facts import Entity, Statement
from condgraph.engine.values import UNKNOWN, Quantity, Time


def test_an_answer_is_a_relation() -> None:
    graph = condgraph.open()
    graph.add([Entity("e", "E"), *(Statement("e", "v", one) for one in (Quantity(5, "kg"), Time.year(1999), UNKNOWN, 'a "b"'))])
    answer = graph.kopl("Find(E) QueryAttr(v)")
    with duckdb.connect() as connection:
        relation = answer.to_duckdb(connection)
        assert relation.columns == answer.to_arrow().column_names
        assert relation.filter("type = 'quantity'").fetchall()[0][relation.columns.index("number")] == 5
        connection.execute("CREATE TABLE units AS SELECT 'kg' AS unit, 1000 AS grams")
        joined = relation.set_alias("a").join(connection.table("units").set_alias("u"), "a.unit = u.unit")
        assert joined.aggregate("sum(number * grams)").fetchall() == [(5000.0,)]
    assert len(answer.to_duckdb().fetchall()) == 4
    assert graph.kopl("Find(E) QueryAttr(v)", limit=0).to_duckdb().fetchall() == []
    matches = graph.match("(E) -[v]-> (UNKNOWN x)")
    assert len(matches.to_duckdb().fetchall()) == len(matches)


@pytest.mark.parametrize("module", ["duckdb", "langchain_core", "llama_index.core", "mcp", "neo4j_graphrag"])
def test_without_the_extra(module: str) -> None:
    """The error names what to install, and nothing of a framework is imported before."""
    calls = {
        "duckdb": "g.kopl('FindAll() Count()').to_duckdb()",
        "langchain_core": "import condgraph.agents.langchain",
        "llama_index.core": "import condgraph.agents.llamaindex",
        "mcp": "from condgraph.agents import mcp_server, toolbox; mcp_server.mcp_server(toolbox.Toolbox(g))",
        "neo4j_graphrag": "import condgraph.agents.neo4j_graphrag",
    }
    code = f"""
import sys
sys.modules[{module!r}] = None
import condgraph
from condgraph.engine.errors import MissingExtraError
g = condgraph.open()
g.add([condgraph.Entity("a", "A")])
heavy = {{"mcp", "langchain_core", "llama_index", "neo4j_graphrag", "duckdb", "pydantic"}}
assert not heavy & {{name for name, module in sys.modules.items() if module}}
try:
    {calls[module]}
except MissingExtraError as error:
    assert "pip install 'condgraph[" in error.hint, error.hint
else:
    raise SystemExit("no error")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
