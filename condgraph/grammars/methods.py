"""The method of `Graph` that gives grammars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from condgraph.engine.bounds import within

if TYPE_CHECKING:
    from condgraph.grammars.grammar import Format, Grammar
    from condgraph.grammars.vocabulary import Asking


def grammar(
    graph: Asking,
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
    """A grammar of programs that parse, and whose names are the graph's: for a server that holds
    a model to it while it writes.

    `format` is "gbnf" (llama.cpp), "json-schema" (programs as trees), "lark" or "regex".
    Entities are those given, else those that the `question` names, else all; a graph on a
    server is pulled whole for all. `depth` is how deeply KoPL's sets stand within sets, and how
    many `exists` of a logical query within each other; `steps` how many steps of KoPL lead on in
    a row, and how many lines an LLM query has. `source` scopes LLM queries: only what stands in that source
    is named, and the programs are asked with the same `source=`. With `aware`, only what an entity has stands
    behind it in KoPL (`Find(e) Relate(...)`, `Find(e) QueryAttr(...)`), in every format: the graph is
    asked for that, for at most 64 entities. `timeout` is in seconds. Raises `OptionError` for
    an unknown language or format, and where the graph has no names.
    """
    from condgraph.grammars.grammar import grammar_of

    with within(graph.timeout if timeout is None else timeout):
        return grammar_of(graph, language, question, entities, format, depth, steps, source=source, aware=aware)
