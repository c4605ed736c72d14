"""Which language a text is written in, and the one way from a text to an answer in process."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Protocol

from condgraph.engine.answer import Answer
from condgraph.engine.bounds import check_bounds
from condgraph.engine.describe import tree
from condgraph.engine.errors import OptionError, ParseError, PlanError, nearest
from condgraph.engine.execute import Run
from condgraph.engine.frontends.pattern import Pattern, is_pattern, shown
from condgraph.engine.passes import optimise
from condgraph.engine.search.options import NAMES as MATCH_OPTIONS

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node
    from condgraph.engine.schema import Schema
    from condgraph.engine.snapshot.snapshot import Snapshot


class Lowered(Protocol):
    """What every front end gives: the plan, which operator each step became, warnings."""

    plan: Node
    steps: list[tuple[str, Node]]
    warnings: list[str]


@cache
def _front_end(module: str) -> Callable[..., Lowered]:
    """The `lower` of a front end, imported when it is first asked for."""
    found: Callable[..., Lowered] = import_module(f"condgraph.engine.frontends.{module}").lower
    return found


def _kopl(program: Any, schema: Schema, options: dict[str, Any]) -> Lowered:
    return _front_end("kopl")(program, schema, **options)


def _llm_query(program: Any, schema: Schema, options: dict[str, Any]) -> Lowered:
    return _front_end("llm_query")(program, schema, **options)


#: The language of graph patterns, which have a search of their own and no plan.
PATTERN: Final = "pattern"
#: The front ends by name: (program, schema, options of that language) to a plan.
LANGUAGES: Final[dict[str, Callable[[Any, Schema, dict[str, Any]], Lowered]]] = {"kopl": _kopl, "llm_query": _llm_query}
#: The options that each language takes.
OPTIONS: Final[dict[str, frozenset[str]]] = {
    "kopl": frozenset({"on_unknown"}),
    "llm_query": frozenset({"on_unknown", "source", "llm_function"}),
    PATTERN: frozenset({"on_unknown", "encoder", *MATCH_OPTIONS}),
}
_LLM_QUERY: Final = re.compile(r"\bQuery\s*\d+\s*:|\bget_information\s*\(", re.IGNORECASE)
_KOPL: Final = re.compile(r"\s*(?:\[|[A-Z]\w*\s*\(|[A-Z]\w*\s*(?:<arg>|<func>))")


def detect(text: Any) -> str:
    """The language of a program: "kopl", "llm_query" or "pattern"; raises `ParseError` where it looks like none."""
    if is_pattern(text):
        return PATTERN
    if not isinstance(text, str) or ("<func>" in text and not _LLM_QUERY.search(text)):
        return "kopl"
    if _LLM_QUERY.search(text):
        return "llm_query"
    if _KOPL.match(text) or text.strip() in ("", "FindAll"):
        return "kopl"
    raise ParseError(
        f"the language of {text[:40]!r} is not recognised",
        hint='a KoPL program is like Find(LeBron James) QueryName(), an LLM query like Query1: "get_information(...)", '
        "a pattern like (UNKNOWN film 1) -[directed by]-> (Clint Eastwood)",
    )


def answer(
    snapshot: Snapshot,
    program: Any,
    language: str | None = None,
    *,
    timeout: float | None = None,
    limit: int | None = None,
    cancelled: Event | None = None,
    **options: Any,
) -> Answer:
    """Lower a program, run it on a snapshot, and give its answer."""
    check_bounds(timeout, limit)
    language = language or detect(program)
    if language == PATTERN:
        from condgraph.engine.search.match import match

        # Names in a pattern need not exist.
        options.pop("on_unknown", None)
        return match(snapshot, program, timeout=timeout, limit=limit, cancelled=cancelled, **options)
    lowered = lower(snapshot.schema, program, language, options)
    plan, order = lowered.plan, getattr(lowered, "order", None)
    if order is None:
        plan, order = optimise(plan)
    run = Run(snapshot, timeout=timeout, cancelled=cancelled)
    run.execute(plan, order)
    run.notes.update(getattr(lowered, "notes", {}))
    return Answer(run, plan, program=program, language=language, steps=lowered.steps, warnings=lowered.warnings, limit=limit)


def lower(schema: Schema, program: Any, language: str, options: dict[str, Any]) -> Lowered:
    """The plan of a program in a named language."""
    front_end = LANGUAGES.get(language)
    if language == PATTERN:
        raise PlanError("a pattern has no plan: it is searched for, not computed", hint="ask it with match(...)")
    if front_end is None:
        known = f"known: {', '.join(OPTIONS)}"
        raise OptionError(f"there is no language {language!r}", candidates=nearest(language, OPTIONS), hint=known)
    if not OPTIONS[language].issuperset(options):
        unknown = [name for name in options if name not in OPTIONS[language]]
        raise OptionError(
            f"{language} takes no option {unknown[0]!r}",
            candidates=nearest(unknown[0], OPTIONS[language]),
            hint=f"it takes: {', '.join(sorted(OPTIONS[language]))}",
        )
    return front_end(program, schema, options)


def show(schema: Schema, program: Any, language: str | None = None, **options: Any) -> str:
    """The plan of a program as text, without running it."""
    language = language or detect(program)
    if language == PATTERN:
        return shown(Pattern.of(program))
    lowered = lower(schema, program, language, options)
    return "\n".join([tree(optimise(lowered.plan)[0]), *(f"warning: {warning}" for warning in lowered.warnings)])
