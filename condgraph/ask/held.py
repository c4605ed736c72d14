"""What a model is held to while it writes: the grammar of the graph, where its server takes one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from condgraph.engine.errors import OptionError, ParseError
from condgraph.grammars.grammar import Grammar, constraint

if TYPE_CHECKING:
    from condgraph.ask.host import Host
    from condgraph.ask.mentions import Mention
    from condgraph.grammars.vocabulary import Asking
    from condgraph.models.base import ChatModel


def held_to(
    graph: Host,
    model: ChatModel,
    via: str,
    question: str,
    found: Sequence[Mention],
    source: str | None = None,
    *,
    aware: bool = False,
) -> Grammar | None:
    """The grammar of programs over the names that the question may mean, in a source where one is said;
    None where the model takes none, or the graph has no names. With `aware` it knows what these have.
    """
    # The nodes of a pattern are compared with names, and may be what the question says.
    names = [name for one in found for name in (one.names or ((one.text,) if via == "pattern" else ()))]
    try:
        language = "llm_query" if via == "query" else via
        scope = source if language == "llm_query" else None
        return constraint(cast("Asking", graph), model, language, question, names, scope, aware=aware)
    except OptionError:
        return None


def written(grammar: Grammar | None, reply: str) -> str:
    """A reply as a text of its language; as it came, where the server did not hold the model."""
    if grammar is None:
        return reply
    try:
        return grammar.program(reply)
    except ParseError:
        return reply
