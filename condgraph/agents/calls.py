"""The tools of a graph as plain functions with typed parameters and docstrings, which frameworks make
tools of.

An error of a program is a result (`{"error": {...}}`) with the nearest names, so that an agent reads
it and tries again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from condgraph.agents.records import failure, plain
from condgraph.agents.toolbox import Toolbox
from condgraph.engine.errors import CondgraphError

Call = Callable[..., dict[str, Any]]


def calls(tools: Toolbox) -> list[Call]:
    """The tools: `schema`, `find`, `query`, `match`, `evidence`, and `ask` where there is a model."""

    def told(call: Callable[[], Any]) -> dict[str, Any]:
        try:
            found = call()
        except CondgraphError as error:
            return failure(error)
        return found if isinstance(found, dict) else plain(found)

    def schema(concept: str | None = None, predicate: str | None = None, tokens: int = 2000) -> dict[str, Any]:
        """What can be asked about the graph: sources, concepts, relations and attributes with their
        types, units, counts and examples. Look here first; `concept` or `predicate` says more of one.
        """
        return told(lambda: tools.schema(concept=concept, predicate=predicate, tokens=tokens))

    def find(name: str, limit: int = 20) -> dict[str, Any]:
        """What a name is in the graph: its entities with their ids, the relations and attributes they
        have, or the nearest names where nothing has it exactly.
        """
        return told(lambda: tools.find(name, limit=limit))

    def query(
        program: str, table: str | None = None, parameters: dict[str, str] | None = None, limit: int = 50, facts: int = 5
    ) -> dict[str, Any]:
        """Run a KoPL program, an LLM query or a logical query on the graph, exactly, such as
        `Find(Nepal) Relate(capital, forward) QueryName()`. `parameters` are values of `$name` in the
        program, unquoted. `table` groups its rows: `group by country show count() order by count()
        desc limit 3`. Gives typed answers, warnings, and statements that the answer rests on.
        """
        return told(lambda: tools.query(program, table=table, parameters=parameters, limit=limit, facts=facts))

    def match(pattern: str, k: int = 3) -> dict[str, Any]:
        """Find the subgraphs most similar to a pattern, such as
        `(UNKNOWN film 1) -[directed by]-> (Clint Eastwood)`; names may be misspelled.
        """
        return told(lambda: tools.match(pattern, k=k))

    def evidence(
        program: str, table: str | None = None, parameters: dict[str, str] | None = None, limit: int = 50, offset: int = 0
    ) -> dict[str, Any]:
        """The statements that the answer to a program rests on, each with its sources and rows."""
        return told(lambda: tools.evidence(program, table=table, parameters=parameters, limit=limit, offset=offset))

    found: list[Call] = [schema, find, query, match, evidence]
    if tools.llm is not None:

        def ask(question: str) -> dict[str, Any]:
            """Ask the graph in plain words: a model writes a program, which is run."""
            return told(lambda: tools.ask(question))

        found.append(ask)
    return found
