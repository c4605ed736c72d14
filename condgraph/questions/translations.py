"""Questions in other query languages: Cypher, SPARQL, SQL and LLM queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from condgraph.engine.errors import CondgraphError, InterruptedQueryError, requiring
from condgraph.engine.values import text_of
from condgraph.languages import registry
from condgraph.questions.description import Ask, Cell, Description, RelationCondition, Restriction
from condgraph.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node
    from condgraph.engine.answer import Answer
    from condgraph.engine.snapshot.snapshot import Snapshot


class Compilers:
    """Compiles the programs of a snapshot for servers, without a server."""

    def __init__(self, snapshot: Snapshot, graph: str) -> None:
        from condgraph.cypher.compile.plan import compile_plan as to_cypher
        from condgraph.engine.stored_schema import StoredSchema
        from condgraph.overview.survey import described
        from condgraph.sparql.compile.conditions import Target
        from condgraph.sparql.compile.plan import compile_plan as to_sparql
        from condgraph.sparql.layout import GraphIris, base_iri
        from condgraph.sparql.load.write import counts

        self._snapshot, self._graph = snapshot, graph
        self._to_cypher, self._to_sparql = to_cypher, to_sparql
        self._stored = StoredSchema(described(snapshot))
        self._target = Target(GraphIris(base_iri(graph)), snapshot.schema, counts(snapshot), self._entities)

    def _entities(self, ids: list[str]) -> list[Any]:
        return [self._snapshot.entity(self._snapshot.identified(ident)) for ident in ids]

    def plan(self, program: Any, language: str, options: dict[str, Any] | None = None) -> Node:
        """Return the plan of a program; `options` are those of its language."""
        return registry.lower(self._snapshot.schema, program, language, options or {}).plan

    def sparql(self, plan: Node) -> str:
        """Return the SPARQL of a plan. Raises `UnsupportedError`."""
        return self._to_sparql(plan, self._target).text

    def cypher(self, plan: Node) -> tuple[str, dict[str, Any]]:
        """Return the Cypher of a plan and its parameters. Raises `UnsupportedError`."""
        result = self._to_cypher(plan, self._graph, self._stored)
        return result.text, result.parameters

    def sql(self, plan: Node) -> str:
        """Return the SQL of a plan for DuckDB. Raises `UnsupportedError`, and `MissingExtraError` without sqlglot."""
        with requiring("sqlglot", "sql"):
            from condgraph.sql.connections import text
            from condgraph.sql.plan import OwnPlans, compile_plan
            from condgraph.sql.tables import PREFIX
        return text(compile_plan(plan, OwnPlans(f"{PREFIX}{self._graph}", self._stored)).query, "duckdb", pretty=True)


# -- LLM queries -----------------------------------------------------------------------------------


class UnsayableError(Exception):
    """LLM queries cannot express the question."""


class _Lines:
    """The numbered lines of an LLM query."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, call: str) -> str:
        self.lines.append(call)
        return f"output_of_query{len(self.lines)}"


def query_of(calls: Sequence[str]) -> str:
    """Return calls as the numbered lines of an LLM query."""
    return "\n".join(f'Query{at}: "{call}"' for at, call in enumerate(calls, 1))


def quoted(text: str) -> str:
    """Return a text as a quoted argument; raises `UnsayableError` if its characters do not allow that."""
    if "'" in text or '"' in text or "\\" in text or "output_of" in text:
        raise UnsayableError
    return f"'{text}'"


def llm_query(ask: Ask) -> str | None:
    """Return the question as an LLM query; None if the language, or its quotes, cannot express it.

    Concepts are left out. The caller runs the query and compares its answer.
    """
    lines = _Lines()
    try:
        _translate(ask, lines)
    except UnsayableError:
        return None
    return query_of(lines.lines)


def _translate(ask: Ask, lines: _Lines) -> None:
    if ask.kind not in ("QueryName", "Count", "QueryAttribute", "Relation", "QualifierRelational"):
        raise UnsayableError
    first = _described(ask.first, lines)
    if ask.kind == "Count":
        lines.add(f"count(set={quoted_output(first)})")
    elif ask.kind == "QueryAttribute":
        qualifier = "" if ask.qualifier is None else _qualified(ask.qualifier)
        lines.add(f"get_information(relation={quoted(ask.key)}, head_entity={first}{qualifier})")
    elif ask.second is not None:
        second = _described(ask.second, lines)
        if ask.kind == "Relation":
            lines.add(f"get_information(head_entity={first}, tail_entity={second})")
        else:
            ends = f"head_entity={first}, tail_entity={second}"
            lines.add(f"get_information(relation={quoted(ask.key)}, {ends}, key={quoted(ask.qkey)})")


def quoted_output(text: str) -> str:
    """Return an output unchanged; raises `UnsayableError` for a name, where only an output is possible."""
    if not text.startswith("'output_of_query"):
        raise UnsayableError
    return text


def _described(described: Description, lines: _Lines) -> str:
    if described.name is not None:
        return quoted(described.name)
    outputs = []
    for condition in described.conditions:
        qualifier_text = "".join(_qualified(qualifier) for qualifier in condition.qualifiers[:1])
        if isinstance(condition, RelationCondition):
            end = "tail_entity" if condition.outward else "head_entity"
            target = _described(condition.target, lines)
            outputs.append(lines.add(f"get_information(relation={quoted(condition.predicate)}, {end}={target}{qualifier_text})"))
        else:
            value = _literal(condition.value)
            outputs.append(
                lines.add(f"get_information(relation={quoted(condition.key)}, tail_entity{condition.op}{value}{qualifier_text})")
            )
    if not outputs:
        raise UnsayableError
    if len(outputs) > 1:
        sets = ", ".join(f"set{at}='{part}'" for at, part in enumerate(outputs, 1))
        outputs = [lines.add(f"set_{'union' if described.union else 'intersection'}({sets})")]
    return f"'{outputs[0]}'"


def _qualified(restriction: Restriction) -> str:
    return f", key={quoted(restriction.key)}, value{restriction.op}{_literal(restriction.value)}"


def _literal(value: Cell) -> str:
    return quoted(text_of(value))


def answer_of(snapshot: Snapshot, query: str) -> Answer:
    return registry.answer(SnapshotStore(snapshot), query, "llm_query")


def gives(snapshot: Snapshot, query: str, answer: str) -> bool:
    """Whether an LLM query gives exactly this answer."""
    try:
        return answer_of(snapshot, query).texts == [answer]
    except InterruptedQueryError:
        raise
    except CondgraphError:
        return False
