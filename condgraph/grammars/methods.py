"""The method of `Graph` for grammars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from condgraph.engine.bounds import within

if TYPE_CHECKING:
    from condgraph.grammars.grammar import Format, Grammar
    from condgraph.grammars.vocabulary import NamedGraph


def grammar(
    graph: NamedGraph,
    language: Literal["kopl", "llm_query", "pattern", "logic"] = "kopl",
    *,
    question: str | None = None,
    entities: Iterable[str] | None = None,
    format: Format = "gbnf",
    depth: int = 2,
    steps: int = 6,
    source: str | None = None,
    aware: bool = False,
    timeout: float | None = None,
) -> Grammar:
    """Return a grammar of the programs that parse and whose names are in the graph, for constrained generation.

    `format` is "gbnf" (llama.cpp), "json-schema" (programs as trees), "lark" or "regex". The entities are `entities`,
    else those in the `question`, else all, for which a graph on a server is read completely. `depth` limits nested sets
    of KoPL and nested `exists` of logical queries, `steps` the consecutive steps of KoPL and the lines of an LLM query.
    `source` restricts LLM queries to the names of one source; run them with the same `source=`. With `aware`, KoPL
    allows after an entity only the predicates that it has (`Find(e) Relate(...)`, `Find(e) QueryAttr(...)`), for at
    most 64 entities. `timeout` is in seconds. Raises `OptionError` for an unknown language or format, invalid options,
    and a graph without names; `UnknownNameError` for an unknown source.
    """
    from condgraph.grammars.grammar import grammar_of

    with within(graph.timeout if timeout is None else timeout):
        return grammar_of(graph, language, question, entities, format, depth, steps, source=source, aware=aware)
