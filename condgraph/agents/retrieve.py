"""Pieces of text for retrievers of frameworks: the answer to a program, a pattern or a question, and
the statements that it rests on, each with its sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from condgraph.agents.records import LONGEST, Fact, named
from condgraph.agents.toolbox import MOST, Toolbox, checked, short
from condgraph.engine.bounds import within
from condgraph.engine.errors import OptionError, ParseError, shortened
from condgraph.languages.registry import PATTERN, detect

#: Statements that a retriever gives where nobody says how many.
PIECES: Final = 20


@dataclass(frozen=True)
class Piece:
    """A text, where it comes from (`metadata`: JSON), and the ids of the entities in it."""

    text: str
    metadata: dict[str, Any]
    ids: tuple[str, ...] = ()


def pieces(tools: Toolbox, asked: str, *, k: int = PIECES, parameters: Mapping[str, Any] | None = None) -> list[Piece]:
    """The answer first, then at most k statements behind it.

    `asked` is a program in any language, a pattern, or, where the tools have a model, a question in
    words. Raises `OptionError` for words without a model, and what the program raises.
    """
    checked(k, "k", least=0)
    short(asked, "question")
    try:
        language = detect(asked)
    except ParseError:
        if tools.llm is None:
            raise OptionError(
                "a question in words needs a language model", hint="give llm=..., or ask a program or a pattern"
            ) from None
        return _in_words(tools, asked, k)
    graph = tools.graph
    with within(tools.timeout):
        if parameters or language != PATTERN:
            answer = tools.asked(asked, language, parameters, MOST)
        else:
            answer = graph.match(asked, k=max(1, k), limit=MOST, timeout=tools.timeout)
        return _of(answer, k, {"program": answer.program, "language": language})


def _in_words(tools: Toolbox, question: str, k: int) -> list[Piece]:
    asked = tools.graph.ask(question, tools.llm, timeout=tools.timeout)
    about = {"question": question, "status": asked.status}
    if asked.answer is None:
        return [Piece(str(asked), about | {"kind": "no answer"})]
    with within(tools.timeout):
        return _of(asked.answer, k, about | {"program": asked.program, "language": asked.language})


def _of(answer: Any, k: int, about: dict[str, Any]) -> list[Piece]:
    texts = [shortened(text, LONGEST) for text in answer.texts[:MOST]]
    more = {"warnings": list(answer.warnings)} if answer.warnings else {}
    ids = tuple(one.id for one in answer.entities[:MOST])
    found = [Piece("; ".join(texts), about | {"kind": "answer", "total": len(answer.texts)} | more, ids)]
    for one in answer.evidence[:k]:
        fact = Fact.of(one)
        ends = tuple(end.id for end in (one.subject, one.object) if hasattr(end, "id"))
        parts = {"subject": fact.subject, "predicate": fact.predicate, "object": named(one.object)}
        found.append(Piece(fact.text, about | {"kind": "statement", **parts, "sources": fact.sources}, ends))
    return found
