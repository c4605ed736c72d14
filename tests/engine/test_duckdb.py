"""Answers as relations of DuckDB, in a connection of one's own or in the module's."""

from __future__ import annotations

import subprocess
import sys

import duckdb

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


#: What each framework is needed for, and the extra that brings it.
CALLS = {
    "duckdb": ("g.kopl('FindAll() Count()').to_duckdb()", "duckdb"),
    "langchain_core": ("import condgraph.agents.langchain", "langchain"),
    "llama_index.core": ("import condgraph.agents.llamaindex", "llama-index"),
    "mcp": ("from condgraph.agents import mcp_server, toolbox; mcp_server.mcp_server(toolbox.Toolbox(g))", "mcp"),
    "neo4j_graphrag": ("import condgraph.agents.neo4j_graphrag", "neo4j-graphrag"),
}


def test_without_the_extras() -> None:
    """The error names what to install, and nothing of a framework is imported before."""
    code = f"""
import sys
calls = {CALLS!r}
sys.modules.update(dict.fromkeys(calls))
import condgraph
from condgraph.engine.errors import MissingExtraError
g = condgraph.open()
g.add([condgraph.Entity("a", "A")])
heavy = {{"mcp", "langchain_core", "llama_index", "neo4j_graphrag", "duckdb", "pydantic"}}
assert not heavy & {{name for name, module in sys.modules.items() if module}}
for module, (call, extra) in calls.items():
    try:
        exec(call)
    except MissingExtraError as error:
        assert f"pip install 'condgraph[{{extra}}]'" in error.hint, (module, error.hint)
    else:
        raise SystemExit(f"no error without {{module}}")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
