"""Which language a text is written in, what it is lowered to, and the one way to ask a store."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.bounds import check_bounds
from condgraph.engine.errors import OptionError, ParseError, PlanError, nearest
from condgraph.engine.lowered import Lowered
from condgraph.engine.passes import optimise
from condgraph.engine.store import Request
from condgraph.languages.fences import unfenced
from condgraph.languages.logic.structures import is_nested
from condgraph.languages.pattern.pattern import is_pattern
from condgraph.patterns.options import NAMES as MATCH_OPTIONS

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.engine.store import KnownSchema, Store


#: (program, schema, options of the language) to a plan.
Lower = Callable[..., Lowered]


def _kopl() -> Lower:
    from condgraph.languages.kopl.lower import lower

    return lower


def _llm_query() -> Lower:
    from condgraph.languages.llm.lower.query import lower

    return lower


def _logic() -> Lower:
    from condgraph.languages.logic.lower import lower

    return lower


#: The language of graph patterns, which have a search of their own and no plan.
PATTERN: Final = "pattern"
#: The languages that have plans, by name: each gives its `lower`, imported when it is first asked
#: for.
LANGUAGES: Final[dict[str, Callable[[], Lower]]] = {
    "kopl": cache(_kopl),
    "llm_query": cache(_llm_query),
    "logic": cache(_logic),
}
#: The options that each language takes.
OPTIONS: Final[dict[str, frozenset[str]]] = {
    "kopl": frozenset({"on_unknown"}),
    "llm_query": frozenset({"on_unknown", "source", "llm_function", "question"}),
    "logic": frozenset({"on_unknown", "bound"}),
    PATTERN: frozenset({"on_unknown", "encoder", *MATCH_OPTIONS}),
}
_LLM_QUERY: Final = re.compile(r"\bQuery\s*\d+\s*:|\bget_information\s*\(", re.IGNORECASE)
_LOGIC: Final = re.compile(r"\s*[?$][^\W\d]\w{0,99}\s{0,9}:(?!:)")
_KOPL: Final = re.compile(r"\s*(?:\[|[A-Z]\w*\s*\(|[A-Z]\w*\s*(?:<arg>|<func>))")


def detect(text: Any) -> str:
    """The language of a program: "kopl", "llm_query", "logic" or "pattern"; raises `ParseError`
    where it looks like none.
    """
    if _LOGIC.match(text) if isinstance(text, str) else is_nested(text):
        return "logic"
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
        'a pattern like (UNKNOWN film 1) -[directed by]-> (Clint Eastwood), a logical query like ?x : capital("France", ?x)',
    )


def answer(
    store: Store, program: Any, language: str | None = None, limit: int | None = None, options: dict[str, Any] | None = None
) -> Answer:
    """The answer of a store to a program, in a language (None: the one it looks like): the one way
    from a text to its answer.

    `limit` is the most values to give, `options` are those of the language. What bounds the call is
    ambient (`engine.bounds`).
    """
    if limit is not None:
        check_bounds(None, limit)
    return store.answer(request(program, language, limit, options or {}))


def explain(store: Store, program: Any, language: str | None, options: dict[str, Any]) -> str:
    """What a program becomes on a store, without running it."""
    return store.explain(request(program, language, None, options))


def request(program: Any, language: str | None, limit: int | None, options: dict[str, Any]) -> Request:
    """A program as a store takes it."""
    if isinstance(program, str):
        program = unfenced(program)
    return Request(program, language or detect(program), options, limit, lower)


def lower(schema: KnownSchema, program: Any, language: str, options: dict[str, Any]) -> Lowered:
    """The plan of a program in a named language, after the passes: text and schema decide it, and
    where it is run does not.
    """
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
    lowered = front_end()(program, schema, **options)
    if lowered.order is None:
        lowered.plan, lowered.order = optimise(lowered.plan)
    return lowered
