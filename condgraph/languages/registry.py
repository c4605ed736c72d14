"""The registry of languages: detects the language of a program, lowers it, and runs it on a store."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.bounds import check_bounds
from condgraph.engine.errors import OptionError, ParseError, PlanError, nearest
from condgraph.engine.lowered import Lowered
from condgraph.engine.passes import optimise
from condgraph.engine.store import Request
from condgraph.patterns.options import NAMES as MATCH_OPTIONS

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.engine.store import KnownSchema, Store
    from condgraph.languages.parameters import Template


#: Maps a program, a schema and the options of the language to a plan.
Lower = Callable[..., Lowered]


#: The language of graph patterns, which are matched by a search and have no plan.
PATTERN: Final = "pattern"


#: The `lower` of each language that has plans; imported on first use.
LANGUAGES: Final = {
    "kopl": "condgraph.languages.kopl.lower:lower",
    "llm_query": "condgraph.languages.llm.lower.query:lower",
    "logic": "condgraph.languages.logic.lower:lower",
    "cypher": "condgraph.languages.cypher.lower:lower",
    "sparql": "condgraph.languages.sparql.lower:lower",
}
#: The parser of programs with parameters, by language.
TEMPLATES: Final = {
    "kopl": "condgraph.languages.kopl.syntax:KoplTemplate",
    "llm_query": "condgraph.languages.llm.syntax.parse:LlmTemplate",
    "logic": "condgraph.languages.logic.text:LogicTemplate",
    "cypher": "condgraph.languages.cypher.parse:CypherTemplate",
    PATTERN: "condgraph.languages.pattern.pattern:PatternTemplate",
}
#: The options of each language.
OPTIONS: Final[dict[str, frozenset[str]]] = {
    "kopl": frozenset({"on_unknown", "table"}),
    "llm_query": frozenset({"on_unknown", "source", "llm_function", "question", "table"}),
    "logic": frozenset({"on_unknown", "bound", "table"}),
    "cypher": frozenset({"on_unknown", "parameters"}),
    "sparql": frozenset({"on_unknown", "base"}),
    PATTERN: frozenset({"on_unknown", "encoder", *MATCH_OPTIONS}),
}
_LLM_QUERY: Final = re.compile(r"\bQuery\s*\d+\s*:|\bget_information\s*\(", re.IGNORECASE)
_LOGIC: Final = re.compile(r"\s*[?$][^\W\d]\w{0,99}\s{0,9}:(?!:)")
_KOPL: Final = re.compile(r"\s*(?:\[|[A-Z]\w*\s*\(|[A-Z]\w*\s*(?:<arg>|<func>))")
_PROLOGUE: Final = r"(?:\s++|#[^\n]*+\n|(?:PREFIX\s++[^<\s]*+|BASE)\s*+<[^>]*+>)*+"
_SPARQL: Final = re.compile(
    rf"{_PROLOGUE}(?:ASK\s*+(?:WHERE\s*+)?+\{{|SELECT\s*+(?:DISTINCT\s*+)?+(?:[?$]|\((?=[^{{]{{0,2000}}?\bAS\s*+[?$])|\*\s*+(?:WHERE\s*+)?+\{{))",
    re.IGNORECASE,
)
_WHOLE_SPARQL: Final = re.compile(rf"{_PROLOGUE}(?:(?:PREFIX|BASE|CONSTRUCT)\b(?=[^{{<]*+[{{<])|DESCRIBE\s*+[<?$])", re.IGNORECASE)
_CYPHER: Final = re.compile(
    r"(?:\s++|//[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/)*+"
    r"(?:(?:OPTIONAL\s++)?MATCH\s*+(?:\(|\w++\s*+=|(?:ANY|ALL|SHORTEST)\b)|(?:OPTIONAL\s++)?CALL\s*+(?:[\w.]++\s*+\(|[({])"
    r"|UNWIND\s.*?\sAS\s|WITH\s.*?\b(?:RETURN|AS)\s|RETURN\s|CREATE\s*+\(|MERGE\s*+\(|LOAD\s++CSV\s)",
    re.IGNORECASE | re.DOTALL,
)
_SQL: Final = re.compile(r"\s*+SELECT\s.*?\sFROM\s", re.IGNORECASE | re.DOTALL)
#: Languages with another entry point: what a text of each looks like, and where to run it.
_ELSEWHERE: Final = {
    "SPARQL": (_WHOLE_SPARQL, 'graph.sparql(...) asks it, in a shell `condgraph sparql`, over HTTP language="sparql"'),
    "SQL": (_SQL, 'graph.table("FindAll() FilterConcept(order)").group("country").show("count()") groups and sums up'),
}


def _is_nested(program: Any) -> bool:
    from condgraph.languages.logic.structures import is_nested

    return is_nested(program)


def _is_pattern(program: Any) -> bool:
    from condgraph.languages.pattern.pattern import is_pattern

    return is_pattern(program)


def detect(text: Any) -> str:
    """Return the language of a program: "kopl", "llm_query", "logic", "cypher", "sparql" or "pattern".

    Raises `ParseError` if the program looks like none of them.
    """
    if _LOGIC.match(text) if isinstance(text, str) else _is_nested(text):
        return "logic"
    if _is_pattern(text):
        return PATTERN
    if not isinstance(text, str) or ("<func>" in text and not _LLM_QUERY.search(text)):
        return "kopl"
    if _LLM_QUERY.search(text):
        return "llm_query"
    if _CYPHER.match(text):
        return "cypher"
    if _SPARQL.match(text):
        return "sparql"
    for name, (pattern, hint) in _ELSEWHERE.items():
        if pattern.match(text):
            raise ParseError(f"this is {name}, which programs are not written in: {text[:40]!r}", hint=hint)
    if _KOPL.match(text) or text.strip() in ("", "FindAll"):
        return "kopl"
    raise ParseError(
        f"the language of {text[:40]!r} is not recognised",
        hint='a KoPL program is like Find(LeBron James) QueryName(), an LLM query like Query1: "get_information(...)", '
        'a pattern like (UNKNOWN film 1) -[directed by]-> (Clint Eastwood), a logical query like ?x : capital("France", ?x)',
    )


def is_sql(text: str) -> bool:
    """Whether a text looks like an SQL SELECT."""
    return _SQL.match(text) is not None and not _SPARQL.match(text)


def answer(
    store: Store, program: Any, language: str | None = None, limit: int | None = None, options: dict[str, Any] | None = None
) -> Answer:
    """Run a program on a store and return its answer; every query of a text comes through here.

    `language` None detects it, `limit` bounds the number of values, `options` are those of the
    language. Timeout and budget are ambient (`engine.bounds`).
    """
    if limit is not None:
        check_bounds(None, limit)
    return store.answer(request(program, language, limit, options or {}))


def explain(store: Store, program: Any, language: str | None, options: dict[str, Any]) -> str:
    """Return the compiled form of a program on a store, without running it."""
    return store.explain(request(program, language, None, options))


def request(program: Any, language: str | None, limit: int | None, options: dict[str, Any]) -> Request:
    """Return the request for a program as stores take it."""
    if isinstance(program, str):
        program = unfenced(program)
    return Request(program, language or detect(program), options, limit, lower)


def template(program: Any, language: str | None = None) -> Template:
    """Parse a program with parameters once; `language` None detects it.

    Raises the parse errors of the language, and `OptionError` if it has no parameters.
    """
    if isinstance(program, str):
        program = unfenced(program)
    language = known_language(language or detect(program))
    if language not in TEMPLATES:
        raise OptionError(f"{language} has no parameters", hint="put the values into the text: VALUES, in SPARQL")
    read: Callable[[Any], Template] = resolve_name(TEMPLATES[language])
    return read(program)


def known_language(language: str) -> str:
    """Return the language if it exists; raises `OptionError` otherwise."""
    if language not in OPTIONS:
        known = f"known: {', '.join(OPTIONS)}"
        raise OptionError(f"there is no language {language!r}", candidates=nearest(language, OPTIONS), hint=known)
    return language


def check_options(language: str, options: dict[str, Any]) -> None:
    """Raise `OptionError` for an option that the language does not have."""
    unknown = [name for name in options if name not in OPTIONS[language] and not _is_period(name, options)]
    if unknown:
        raise OptionError(
            f"{language} takes no option {unknown[0]!r}",
            candidates=nearest(unknown[0], OPTIONS[language]),
            hint=f"it takes: {', '.join(sorted(OPTIONS[language]))}",
        )


def _is_period(name: str, options: dict[str, Any]) -> bool:
    """Whether an option is the period of a query (`QueryOptions.period`), which every language takes."""
    if name != "period":
        return False
    from condgraph.engine.period import Period

    return isinstance(options[name], Period)


#: Plans cached per schema, and the longest text whose plan is cached. A change of the graph's content
#: drops the schema, and the cache with it.
MAX_PLANS: Final = 512
_MAX_CHARACTERS: Final = 4_000


def lower(schema: KnownSchema, program: Any, language: str, options: dict[str, Any]) -> Lowered:
    """Return the optimised plan of a program in a language.

    The plan depends on the program and the schema, not on the store. Plans of texts are cached with
    the schema.
    """
    if type(program) is not str or len(program) > _MAX_CHARACTERS:
        return _lower(schema, program, language, options)
    key = (language, program, *options.items())
    try:
        plans: dict[Any, Lowered] = schema.kept.setdefault("plans", {})
        result = plans.get(key)
    except TypeError:
        # An `llm_function` need not be hashable, and may give other results later.
        return _lower(schema, program, language, options)
    if result is None:
        result = _lower(schema, program, language, options)
        if all(value is None or type(value) in (str, bool) or name == "period" for name, value in options.items()):
            if len(plans) >= MAX_PLANS:
                plans.clear()
            plans[key] = result
    return result


@cache
def _lowering(language: str) -> Lower:
    result: Lower = resolve_name(LANGUAGES[language])
    return result


def _lower(schema: KnownSchema, program: Any, language: str, options: dict[str, Any]) -> Lowered:
    if language == PATTERN:
        raise PlanError("a pattern has no plan: it is searched for, not computed", hint="ask it with match(...)")
    front_end = _lowering(known_language(language))
    check_options(language, options)
    table, period = options.get("table"), options.get("period")
    if table is not None or period is not None:
        options = {name: value for name, value in options.items() if name not in ("table", "period")}
    lowered = front_end(program, schema, **options)
    if table is not None:
        from condgraph.languages.table.builder import clause_of
        from condgraph.languages.table.columns import lower as lower_table
        from condgraph.languages.table.tree import in_clause

        clause = clause_of(table)
        with in_clause(table if isinstance(table, str) else None):
            lowered = lower_table(lowered, clause, schema, on_unknown=options.get("on_unknown", "error"))
    if period is not None:
        from condgraph.engine.true_at import restricted

        lowered = restricted(lowered, period, temporal=schema.temporal)
    if lowered.order is None:
        lowered.plan, lowered.order = optimise(lowered.plan)
    return lowered


# -- fences ------------------------------------------------------------------------------------------
# A program that is copied from a chat or a page may have Markdown's code fences around it.


_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*$", re.MULTILINE)
#: How a program that is one chain of calls begins, unlike the prose around it.
_BEGINS: Final = re.compile(r"\s*[^\W\d]\w*[ \t]*\(")
_HEADER: Final = re.compile(r"^[ \t>*_`#-]*(?:Step|Query)[ \t]*\d", re.IGNORECASE | re.MULTILINE)


def unfenced(text: str) -> str:
    """Return a program without code fences, and without the prose around them if it is one chain of calls.

    What is removed becomes spaces, so that positions in error messages stay right.

    >>> unfenced("~~~" + chr(10) + "Find(Nepal)" + chr(10) + "~~~").split()
    ['Find(Nepal)']
    """
    if "```" not in text and "~~~" not in text:
        return text
    marks = [match.span() for match in _FENCE.finditer(text)]
    if not marks:
        return text
    start, stop = marks[0][1], marks[1][0] if len(marks) > 1 else len(text)
    inside = text[start:stop]
    if len(marks) <= 2 and _BEGINS.match(inside) and not _HEADER.search(text):
        return _blank(text[:start]) + inside + _blank(text[stop:])
    parts, at = [], 0
    for begin, end in marks:
        parts += [text[at:begin], _blank(text[begin:end])]
        at = end
    return "".join([*parts, text[at:]])


def _blank(text: str) -> str:
    return "".join("\n" if c == "\n" else " " for c in text)
