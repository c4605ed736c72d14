"""Programs whose names and values are replaced by parameters, and the results of both forms."""

from __future__ import annotations

import re
from typing import Any

from condgraph import CondgraphError, Graph
from condgraph.engine.values import fold
from condgraph.languages.kopl.syntax import parse
from condgraph.languages.kopl.table import CLOSED, FUNCTIONS
from condgraph.languages.llm.lower.context import MISSING
from condgraph.languages.llm.lower.literals import superlative
from tests.support.differential import full_message

#: A text in an LLM query that is a name or a value, not an output.
_TEXT = re.compile(r"(head_entity|tail_entity|relation|key|value)(\s*(?:=|!=|<=|>=|<|>)\s*)'([^'\"\\\n]*)'(?=\s*[,)])")


def kopl_taken_out(
    program: Any, *, only: frozenset[str] = frozenset()
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, str]]:
    """Return a KoPL program in JSON, the same with a parameter for each text (only of the roles in `only`, if any), and
    the parameters' values.
    """
    steps, _ = parse(program, None)
    plain: list[dict[str, Any]] = []
    open_: list[dict[str, Any]] = []
    values: dict[str, str] = {}
    for step in steps:
        texts = []
        for text, role in zip(step.texts, FUNCTIONS[step.function].texts, strict=True):
            if role in CLOSED or (only and role not in only):
                texts.append(f"${text}" if re.fullmatch(r"\$+\w+", text) else text)
                continue
            name = f"p{len(values)}"
            values[name] = text
            texts.append(f"${name}")
        shape = {"function": step.function, "dependencies": list(step.dependencies)}
        plain.append({**shape, "inputs": list(step.texts)})
        open_.append({**shape, "inputs": texts})
    return plain, open_, values


def llm_taken_out(program: str) -> tuple[str, dict[str, str]]:
    """Return an LLM query with a parameter for each name or value, and the parameters' values."""
    values: dict[str, str] = {}

    def replace(found: re.Match[str]) -> str:
        # A word of the language would become a plain value as a parameter.
        if re.search("(?i)query", found[3]) or superlative(found[3], {}) or fold(found[3]) in MISSING:
            return found[0]
        name = f"p{len(values)}"
        values[name] = found[3]
        return f"{found[1]}{found[2]}${name}"

    return _TEXT.sub(replace, program), values


def said(
    graph: Graph, program: Any, values: dict[str, Any] | None, *, more: bool = False, spans: bool = True, **options: Any
) -> Any:
    """Return the result of a program or, with `values`, of the prepared program: the answer or the error; `more` adds
    warnings and evidence.
    """
    try:
        limit = options.pop("limit", None)
        if values is None:
            answer = graph.query(program, limit=limit, **options)
        else:
            answer = graph.prepare(program, **options).run(values, limit=limit)
        result: list[Any] = [type(answer.plan).__name__ if more else "", list(map(repr, answer.values)), answer.texts]
        if more:
            result += [list(map(repr, answer.entities)), sorted(answer.warnings), sorted(map(str, answer.evidence))]
        return result
    except CondgraphError as error:
        if not spans:
            return type(error).__name__, error.code, error.message, error.candidates
        return full_message(error)
