"""Questions in words as a stream: a line of JSON for each step, and the outcome last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from condgraph.studio.answers import answered, compiled, warned

if TYPE_CHECKING:
    from condgraph.ask.records import AskStep
    from condgraph.graph import Graph


def ask(graph: Graph, llm: str, arguments: dict[str, Any], tell: Callable[[dict[str, Any]], None], timeout: float) -> None:
    """Ask, and tell `{"step": ...}` after each step and `{"outcome": ...}` at last."""
    from condgraph.models.budget import Budget

    def step(one: AskStep) -> None:
        tell({"step": {"name": one.name, "seconds": one.seconds, "about": one.about}})

    found = graph.ask(
        arguments["question"], llm, via=arguments.get("via") or "auto", source=arguments.get("source"),
        choose=arguments.get("choose") or {}, samples=arguments.get("samples") or 1, verbalise=bool(arguments.get("verbalise")),
        aware=bool(arguments.get("aware")),
        budget=Budget(seconds=timeout), limit=arguments["limit"], timeout=timeout, on_step=step,
    )  # fmt: skip
    said = found.data()
    answer = None
    if found.answer is not None:
        queries = compiled(graph, found.answer.program, found.answer.language)
        answer = answered(found.answer, most=arguments["limit"], facts=arguments["facts"], compiled=queries)
    kept = ("question", "status", "text", "citations", "language", "program", "source", "choices", "attempts", "votes", "failures")
    outcome = {name: said[name] for name in kept}
    tell(
        {
            "outcome": outcome
            | {
                "answer": answer,
                "warnings": warned(found.warnings),
                "calls": found.calls,
                "tokens": said["tokens"],
                "model": found.model,
            }
        }
    )
