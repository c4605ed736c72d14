"""Programs that a model writes: read from its reply, run, and explained to it where they fail."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from condgraph.ask.prompt import known_of
from condgraph.ask.records import Attempt, Choice, Draft, Option, Stage
from condgraph.engine import algebra as alg
from condgraph.engine import errors
from condgraph.engine.algebra import expressions
from condgraph.engine.algebra.expressions import rebuilt as rebuilt_expression
from condgraph.engine.bounds import check, within
from condgraph.engine.facts import EntityKind
from condgraph.engine.lowered import Lowered
from condgraph.engine.passes import names as fields_of
from condgraph.engine.passes import rebuild
from condgraph.engine.schema import OpenSchema
from condgraph.engine.store import Request, plan_texts
from condgraph.engine.tracing import traced
from condgraph.languages.cypher.parse import parse as parse_cypher
from condgraph.languages.cypher.tree import RelationshipPattern
from condgraph.languages.kopl.syntax import parse as parse_kopl
from condgraph.languages.kopl.table import COMPARED, FUNCTIONS
from condgraph.languages.llm.functions import TABLE
from condgraph.languages.llm.syntax.tokens import AN_OUTPUT
from condgraph.languages.pattern.pattern import Pattern
from condgraph.languages.registry import lower as lower_program
from condgraph.languages.registry import unfenced
from condgraph.names.vocabulary import resolve
from condgraph.names.words import near_names
from condgraph.overview.schema import CYPHER, cypher_name, quoted, unmarked

if TYPE_CHECKING:
    from condgraph.ask.prompt import KnownNames
    from condgraph.ask.records import Host
    from condgraph.engine.answer import Answer
    from condgraph.engine.store import KnownSchema
    from condgraph.names.words import OnUnknown


# -- replies -----------------------------------------------------------------------------------------
# A program is one contiguous piece of the reply, or one JSON string in it, and is never assembled from
# several pieces. Every reader takes linear time and reads only the first `MAX_REPLY_READ` characters.


#: The most characters of a reply that are read; programs have at most a few thousand.
MAX_REPLY_READ: Final = 100_000
_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*$", re.MULTILINE)
_QUERY: Final = re.compile(r"\bQuery[ \t]*+\d\w*+[ \t*_]*+:|\bget_information[ \t]*+\(", re.IGNORECASE)
_STEPS: Final = re.compile(r"^[ \t>*_`#-]*(?:Step[ \t]*\d|Query[ \t]*\d|Target[ \t]+type)", re.IGNORECASE | re.MULTILINE)
_KOPL: Final = re.compile(rf"\b(?:{'|'.join(FUNCTIONS)})[ \t]*\(")
_KOPL_LINE: Final = re.compile(r"^[ \t>*`\"']*+(?:KoPL|Program)?[ \t]*+:?[ \t`\"']*+(?=[A-Z]\w*+[ \t]*+\()", re.MULTILINE)
_ANY_CALL: Final = re.compile(r"\b\w++[ \t]*+\(")
_NONE: Final = re.compile(r"[\s\"'`*{(\[]*(?:NONE|None|null|N/A)[\s\"'`*.)}\]]*")
#: Phrases with which models say that they have no answer.
_GIVES_UP: Final = re.compile(
    r"\b(?:(?:do not|don't|did not|didn't) (?:know|have)|not sure|"
    r"(?:cannot|can't|can not|could not|couldn't|unable to|not able to|not possible to) "
    r"(?:be )?(?:answer|assist|determine|find|help|say)|"
    r"(?:no|not enough|insufficient|lacks?(?: the)?) (?:information|data|answer)|"
    r"(?:does not|doesn't|do not|don't) (?:contain|include|say|provide))",
    re.IGNORECASE,
)
#: Keys of JSON replies that hold the program.
_KEYS: Final = ("program", "query", "kopl", "cypher", "code")


def declines(reply: str) -> bool:
    """Return whether the reply is NONE: the model says that the data does not answer the question."""
    return len(reply) < 40 and _NONE.fullmatch(reply) is not None


def gives_up(reply: str) -> bool:
    """Return whether a reply without a program is a sentence or two that says there is no answer."""
    return len(reply) < 400 and _GIVES_UP.search(" ".join(reply.replace("’", "'").split())) is not None


def program_in(reply: str, via: str) -> tuple[str, str] | None:
    """Return the program of a reply and its language ("llm_query", "kopl", "cypher", "pattern"); None where nothing
    looks like one. `via` is the requested language, a name of `METHODS`.

    >>> program_in('Sure! ```' + chr(10) + 'Find(Nepal) QueryName()' + chr(10) + '```', "kopl")
    ('Find(Nepal) QueryName()', 'kopl')
    """
    return next(_programs(reply, via), None)


@dataclass(frozen=True, slots=True)
class ReplyProgram:
    """The first program of a reply, its language ("llm_query", "kopl", "cypher", "pattern"), the number of characters
    after it that do not belong to it, and whether the reply has another program.
    """

    program: str
    language: str
    ignored: int = 0
    several: bool = False


def first_program(reply: str, via: str, *, cut: bool = False) -> ReplyProgram | None:
    """Return the first program of a reply: models go on with more questions, or with prose, until their tokens are used
    up. None where there is none, or where the reply was `cut` off before its first program was complete.

    >>> first_program('Find(Nepal) QueryName()' + chr(10) + 'Find(India) Que', "kopl", cut=True)
    ReplyProgram(program='Find(Nepal) QueryName()', language='kopl', ignored=16, several=False)
    """
    programs = list(_programs(reply, via))
    if not programs:
        return None
    text, language = programs[0]
    cut = cut and reply[:MAX_REPLY_READ].rstrip().endswith(text.rstrip()[-20:])
    end = METHODS[VIA_OF[language]].end(text, cut)
    if end is None:
        return None
    # The last piece is the whole reply where another piece is a part of it.
    several = any(other != programs[0] for other in programs[1:] if text not in other[0])
    return ReplyProgram(text[:end].rstrip(), language, len(text.rstrip()) - len(text[:end].rstrip()), several)


def _programs(reply: str, via: str) -> Iterator[tuple[str, str]]:
    return (program for piece in _pieces(reply[:MAX_REPLY_READ]) if (program := _program(piece, via)) is not None)


def _end_of_queries(text: str, cut: bool) -> int | None:
    """Return the end of the first program of queries: before its first label is repeated, or, in a text that was cut
    off, after the last query if the model had gone on to something else.
    """
    labels: list[str] = []
    steps: set[str] = set()
    expressions: set[str] = set()
    end, at = len(text), 0
    complete = True
    for line in text.splitlines(keepends=True):
        query = _QUERY_LINE.match(line)
        if query is not None:
            expression = line[query.end() :].strip(" \t\r\n\"'`*")
            if labels and (query[1] == labels[0] or (cut and expression in expressions)):
                return end
            labels.append(query[1])
            expressions.add(expression)
            end = at + len(line)
            # The last line of a text that was cut off is not complete.
            complete = line.endswith("\n") or expression.endswith(")")
        elif step := _STEP_LINE.match(line):
            if cut and labels and step[1] in steps:
                return end
            steps.add(step[1])
            complete = not labels
        elif line.strip():
            complete = True
        at += len(line)
    if not cut:
        return len(text)
    return end if labels and complete else None


def _end_of_functions(text: str, cut: bool) -> int | None:
    """Return the end of the first program of KoPL functions: the end of the text where all of it is one program, else
    after the first function that ends a program.
    """
    if not cut:
        with suppress(errors.CondgraphError):
            parse_kopl(text)
            return len(text)
    for closed in islice(_CLOSED.finditer(text), _MAX_FUNCTIONS):
        prefix = text[: closed.end()]
        try:
            steps, _ = parse_kopl(prefix)
        except errors.CondgraphError:
            continue
        remainder = text[closed.end() :].lstrip(" \t\r\n;.`")
        last = steps[-1].function
        # Verify... may follow QueryAttr, and may be what was cut off.
        continues = remainder.startswith("Verify") or (cut and "Verify".startswith(remainder))
        if last in _ENDING and not (last.startswith("QueryAttr") and continues):
            return closed.end()
    return None if cut else len(text)


def _end_of_pattern(text: str, cut: bool) -> int | None:
    """Return the end of the first JSON object or list; a pattern in another notation is the whole text."""
    if text[:1] in "{[":
        with suppress(ValueError, RecursionError):
            return json.JSONDecoder().raw_decode(text)[1]
    return None if cut else len(text)


def _end_of_cypher(text: str, cut: bool) -> int | None:
    """Return the end of the first Cypher query: after as many lines as parse as one query. The last line of a text that
    was cut off may be incomplete, and the lines after it may belong to it.
    """
    ends, at = [], 0
    for line in text[:_MAX_CYPHER].splitlines(keepends=True)[:_MAX_LINES]:
        at += len(line)
        if line.strip():
            ends.append(at)
    for end in reversed(ends):
        next_word = text[end:].split(None, 1)[:1]
        if cut and not (next_word and not any(word.startswith(next_word[0].upper()) for word in _GOES_ON)):
            continue
        with suppress(errors.CondgraphError):
            parse_cypher(text[:end])
            return end
    return None if cut else len(text)


@dataclass(frozen=True, slots=True)
class Method:
    """A language that a model may write: its name in `LANGUAGES`, a function that finds the end of the first program in
    a text, and the example shown to the model after a reply without a program.
    """

    language: str
    end: Callable[[str, bool], int | None]
    example: str


#: The languages that a model may write, by their names for `via`.
METHODS: Final[Mapping[str, Method]] = {
    "query": Method(
        "llm_query", _end_of_queries, "Write lines such as Query1: \"get_information(relation='...', head_entity='...')\""
    ),
    "kopl": Method("kopl", _end_of_functions, "Write one line such as Find(...) Relate(..., forward) QueryName()"),
    "cypher": Method("cypher", _end_of_cypher, "Write one query such as MATCH (a:label {name: '...'})-[:type]->(b) RETURN b.name"),
    "pattern": Method(
        "pattern",
        _end_of_pattern,
        'Write one JSON object such as {"triples": [["...", "...", "UNKNOWN thing 1"]], "answer": "UNKNOWN thing 1"}',
    ),
}
#: The name for `via` of each language.
VIA_OF: Final = {method.language: via for via, method in METHODS.items()}
_QUERY_LINE: Final = re.compile(r"^[ \t>*_`#-]*Query[ \t]*(\d\w*)[ \t*_]*:", re.IGNORECASE)
#: The beginning of a Cypher query, and the words that may continue a complete one.
_CYPHER_LINE: Final = re.compile(
    r"^[ \t>*_`]*(?:Cypher[ \t]*+:[ \t]*+)?"
    r"(?=(?:OPTIONAL[ \t]++)?MATCH\b[ \t]*+\S|UNWIND\b|WITH\b.*\bAS\b|CALL[ \t]*+[({\w]|RETURN[ \t]"
    r"|(?:CREATE|MERGE)[ \t]*+\()",
    re.IGNORECASE | re.MULTILINE,
)
_GOES_ON: Final = ("ORDER", "SKIP", "OFFSET", "LIMIT", "UNION")
#: The most lines and characters of a Cypher query that are searched for its end.
_MAX_LINES, _MAX_CYPHER = 64, 20_000
_STEP_LINE: Final = re.compile(r"^[ \t>*_`#-]*Step[ \t]*(\d{0,9})", re.IGNORECASE)
#: The end of a function call, before the next call or the end of the line.
_CLOSED: Final = re.compile(r"\)(?=\s|$|[;.`])")
#: The most functions of a KoPL program that are read, and the functions that end a program.
_MAX_FUNCTIONS: Final = 64
_ENDING: Final = frozenset(
    name for name in FUNCTIONS if name in ("What", "Count") or name.startswith(("Query", "Select", "Verify"))
)


def _pieces(text: str) -> list[str]:
    """Return the pieces of a reply that may be the program, the likeliest first: strings of a JSON object, the contents
    of code fences, the whole text.
    """
    result = []
    marks = [(match.start(), match.end()) for match in _FENCE.finditer(text)]
    for number in range(0, len(marks), 2):
        # A reply that was cut off ends within its fence.
        stop = marks[number + 1][0] if number + 1 < len(marks) else len(text)
        content = text[marks[number][1] : stop].strip("\n")
        if content.strip():
            result.append(content)
    if not result:
        stripped = text.strip()
        # A single line may be in backticks.
        result.append(stripped.strip("`") if stripped[:1] == "`" and "\n" not in stripped else text)
    from_json = [inner for piece in result for inner in _listed_programs(piece)]
    return [*from_json, *result, *([text] if marks else [])]


def _listed_programs(text: str) -> list[str]:
    """Return the programs that a JSON object has under the usual keys."""
    if text.lstrip()[:1] != "{":
        return []
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return []
    values = [result[key] for key in _KEYS if isinstance(result, dict) and isinstance(result.get(key), (str, list))]
    return [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in values]


def _program(text: str, via: str) -> tuple[str, str] | None:
    if not text.strip():
        return None
    if via == "pattern":
        # Models write a word or two before the object; its reader reports what is not a pattern.
        start = min((position for mark in ("{", "[", "(") if (position := text.find(mark)) >= 0), default=-1)
        return None if start < 0 else (text[start:].strip(), "pattern")
    if via == "cypher" and (begin := _CYPHER_LINE.search(text)) is not None:
        query = text[begin.end() :].strip()
        # Backticks around the query are removed, but not those of a name at its end.
        return (query.rstrip("`").rstrip() if query.count("`") % 2 or query.endswith("``") else query), "cypher"
    if _QUERY.search(text):
        begin = _STEPS.search(text)
        # A single call is taken from where it begins; prose around complete steps is left to the parser.
        if begin is None and (call := _ANY_CALL.search(text)) is not None:
            return text[call.start() :].strip(), "llm_query"
        return text, "llm_query"
    if _KOPL.search(text):
        return _kopl(text), "kopl"
    if _ANY_CALL.search(text):
        # No known function: the parser of the language suggests names.
        return (_kopl(text), "kopl") if via == "kopl" else (text.strip(), "llm_query")
    return None


def _kopl(text: str) -> str:
    """Join the lines from the first that begins with a call up to one without a call; backticks around them are
    removed.
    """
    line_start = _KOPL_LINE.search(text)
    call = _KOPL.search(text)
    start = line_start.end() if line_start is not None else call.start() if call is not None else 0
    lines: list[str] = []
    for line in text[start:].split("\n"):
        if lines and line.strip() and "(" not in line:
            break
        lines.append(line.strip())
    joined = " ".join(line for line in lines if line)
    return joined.rstrip("`\"'.; \t") if joined.rstrip("`\"'.; \t").endswith(")") else joined


# -- feedback ----------------------------------------------------------------------------------------
# Feedback on a program without an answer: what was wrong and where, the nearest names, and what its
# entities have instead. Errors address users of Python; a model gets the names, but no functions or
# options that it cannot call.


#: The most characters of the faulty part of a program, and of the whole feedback.
_MAX_PART: Final = 60
MAX_FEEDBACK: Final = 1_500
#: The most names offered in place of one, and the most drafts.
MAX_NAMES: Final = 8
_MAX_OFFERED: Final = 3
#: The kinds of names in Cypher, with the terms of the other languages.
_KINDS: Final = {
    "label": "concept", "relationship type": "relation", "property": "attribute", "property of relationships": "qualifier",
}  # fmt: skip
_FUNCTIONS: Final = ", ".join(function.name for function in TABLE)
#: Parts of hints for people that are of no use to a model.
_PEOPLE_HINTS: Final = (
    "on_unknown=", "status()", "source=", "timeout=", "limit=", "llm_function=", "graph.", "put in double quotes in",
)  # fmt: skip


def feedback_of(attempt: Attempt, known: KnownNames) -> str:
    """Return the feedback on an attempt: what went wrong, in a few lines with the nearest names."""
    if attempt.answer is not None and attempt.doubts:
        texts = ", ".join(quoted(text, _MAX_PART) for text in (attempt.gave or ())[:3])
        lines = [f"The program ran and gave {texts}.", *(f"But {doubt}." for doubt in attempt.doubts)]
        lines += _empty_result(attempt)[1:] if counts_nothing(attempt.answer) else []
    elif attempt.answer is not None:
        lines = _empty_result(attempt)
    elif attempt.failure is not None:
        lines = _error_lines(attempt, attempt.failure, known)
    else:
        lines = [attempt.error]
    return unmarked(errors.shortened("\n".join(line for line in lines if line), MAX_FEEDBACK))


def _error_lines(attempt: Attempt, error: errors.CondgraphError, known: KnownNames) -> list[str]:
    lines = [f"{attempt.language}: {error.message}"]
    if error.span is not None and error.span[1] > error.span[0]:
        part = attempt.program[error.span[0] : error.span[1]]
        if part.strip():
            lines.append(f"It stands here: {quoted(part.strip(), _MAX_PART)}")
    if isinstance(error, errors.AmbiguousNameError):
        lines.append(f"Say which with source=: {_listed(error.candidates[:8])}")
    elif isinstance(error, errors.UnknownNameError):
        near = candidates(error, known)
        if near:
            lines.append(f"Nearest names: {_listed(near)}")
        lines += [_draft_line(draft) for draft in attempt.drafts[:_MAX_OFFERED]]
        lines.append(_qualifier_hint(error, known) or _cypher_hint(error, known))
        if error.kind == "function" and attempt.language == "llm_query":
            lines.append(f"The functions are {_FUNCTIONS}.")
    elif error.candidates:
        lines.append(f"Nearest names: {_listed(error.candidates)}")
    if error.hint and not any(word in error.hint for word in _PEOPLE_HINTS):
        lines.append(error.hint[:1].upper() + error.hint[1:])
    if error.code == "parse":
        lines.append(_brackets(attempt.program))
    return lines


def _draft_line(draft: Draft) -> str:
    texts = ", ".join(quoted(text, _MAX_PART) for text in draft.texts[:3]) + (" and more" if len(draft.texts) > 3 else "")
    return f"With {quoted(draft.name)} in its place the program gives {texts}."


def candidates(error: errors.UnknownNameError, known: KnownNames) -> list[str]:
    """Return the names that may be meant, best first: those of the error, then the names of its kind with similar words
    and letters.
    """
    result = list(error.candidates)
    kind = _KINDS.get(error.kind, error.kind)
    output = AN_OUTPUT.fullmatch(error.name.strip())
    if output is not None and error.kind != "output":
        result = [f"output_of_query{output[1]}", *result]
    if error.name in known.qualifiers.names and kind in ("relation", "attribute"):
        return result[:MAX_NAMES]
    if kind == "key":
        return result[:MAX_NAMES]
    if kind in ("relation", "attribute", "predicate"):
        of_kind = set(known.of_kind(kind)) if error.kind in _KINDS else None
        near = near_names(error.name, known.predicates.names)
        result += near if of_kind is None else [name for name in near if known.places[name] in of_kind]
    elif kind == "concept":
        result += near_names(error.name, known.concepts.names)
    elif kind == "qualifier":
        result += near_names(error.name, known.qualifiers.names)
    elif kind == "KoPL function":
        result += _functions(error.name)
    elif kind in ("entity", "head_entity", "head", "subject"):
        result = entities(error.name, known, result)
    if not result and kind in ("relation", "attribute", "concept", "predicate"):
        vocabulary = known.concepts if kind == "concept" else known.predicates
        order = sorted(known.of_kind(kind), key=lambda at: (-vocabulary.sizes[at], vocabulary.names[at]))
        result = [vocabulary.names[at] for at in order]
    return list(dict.fromkeys(result))[:MAX_NAMES]


def _qualifier_hint(error: errors.UnknownNameError, known: KnownNames) -> str:
    """List the predicates with a qualifier that the program took for a predicate."""
    if error.kind not in ("relation", "attribute") or error.name not in known.qualifiers.names:
        return ""
    rows = [item for item in known.survey["predicates"] if any(key == error.name for key, _ in item[4])]
    rows.sort(key=lambda item: -(item[1] + item[2]))
    return f"Facts of these have it: {_listed([row[0] for row in rows[:MAX_NAMES]])}"


def _cypher_hint(error: errors.UnknownNameError, known: KnownNames) -> str:
    """Say what a name is that a Cypher query used as something else, such as a property of relationships used as one of
    nodes, or a relationship used as a property.
    """
    if error.kind not in _KINDS:
        return ""
    rows = [item for item in known.survey["predicates"] if any(key == error.name for key, _ in item[4])]
    if error.kind == "property" and rows:
        rows.sort(key=lambda item: -(item[1] + item[2]))
        types = [CYPHER.arrow(item[0], True) for item in rows[:MAX_NAMES]]
        return f"It is a property of relationships: {', '.join(types)}"
    place = known.places.get(error.name)
    if place is None:
        return ""
    schema = known.predicate(place)
    return f"It is written so: {CYPHER.short([schema]).removeprefix('- ')}"


def entities(name: str, known: KnownNames, candidates: Sequence[str] = ()) -> list[str]:
    """Return names of entities similar to a name: of those that share pieces of it, the ones with the nearest letters
    first.
    """
    near = resolve(name, known.linker.entities, threshold=2.0, most=40).near
    names = list(dict.fromkeys([*candidates, *(match.name for match in near)]))
    nearest = errors.nearest(name, names, most=6)
    return list(dict.fromkeys([*nearest, *names]))


def _functions(name: str) -> list[str]:
    """Return KoPL functions that a wrong name may mean: models write GetCapital for Relate(capital, ...)."""
    folded = name.casefold()
    meanings = [item for word, item in _FUNCTION_WORDS if word in folded]
    return list(dict.fromkeys([*errors.nearest(name, FUNCTIONS), *meanings, "Relate", "QueryAttr"]))


_FUNCTION_WORDS: Final = (
    ("filter", "FilterConcept"), ("select", "SelectAmong"), ("count", "Count"), ("name", "QueryName"),
    ("minus", "Except"), ("differ", "Except"),
    ("intersect", "And"), ("union", "Or"), ("verify", "VerifyStr"), ("max", "SelectAmong"), ("min", "SelectAmong"),
)  # fmt: skip


def _empty_result(attempt: Attempt) -> list[str]:
    """Describe a program that ran and returned nothing: its first warnings and, for KoPL, the functions that fit the types
    of the values.
    """
    answer = attempt.answer
    assert answer is not None
    lines = ["The program ran and returned nothing."]
    warnings = [warning for warning in answer.warnings if not warning.startswith("the answer does not need")]
    lines += [warning[:1].upper() + warning[1:] for warning in warnings[:4]]
    if attempt.language == "kopl":
        lines += _type_hints(warnings)
    return lines


def _type_hints(warnings: Sequence[str]) -> list[str]:
    """Name the functions for the types of values that a program compared with another type."""
    result: dict[str, None] = {}
    for warning in warnings:
        compared = _COMPARED.search(warning)
        if compared is None:
            continue
        stored_kind, unit, literal_kind = compared.groups()
        if stored_kind == literal_kind == "quantity" and unit:
            result[f"Numbers here have a unit: write it behind the number, as in 5 {unit}."] = None
        for kind, (title, ending) in COMPARED.items():
            if stored_kind == kind.name.lower() != literal_kind:
                result[f"Values that are {title} are compared by Filter{ending}, qualifiers by QFilter{ending}."] = None
    return list(result)


_COMPARED: Final = re.compile(r"values? \((\w+)(?: without a unit| in ([^)]+))?\) cannot be compared with an? (\w+)")


def _brackets(program: str) -> str:
    """Report parentheses and quotes that are not closed."""
    opened, closed = program.count("("), program.count(")")
    if opened != closed:
        return f"It has {opened} opening and {closed} closing parentheses."
    return "A double quote is not closed." if program.count('"') % 2 else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)


# -- running a program -------------------------------------------------------------------------------
# A name that occurs in several tables is tried in each table offered, and a name of several entities as
# each of them. Where the answers differ and nothing decides between them, the user has to choose.


#: The most sources in which a program is tried, and the most meanings of a name.
MAX_TRIED: Final = 10
#: The most names tried in place of an unknown one, the seconds for all of them, and the most texts of each draft.
MAX_DRAFTS: Final = 4
_DRAFTS: Final = 2.0
_MAX_TEXTS: Final = 20
#: The most values that an unknown one is compared with.
_MAX_NEAR: Final = 1_000
#: Kinds of unknown names that belong to the language itself: a text with an unknown one is not a program of it.
_LANGUAGE_KINDS: Final = frozenset(("KoPL function", "function", "direction", "operator", "choice", "parameter of get_information"))


@dataclass(slots=True)
class Runner:
    """Runs programs on the store of a graph. `seconds` adds up the time of resolving names and of running; `choose`
    gives the meaning of names, as the id of an entity or the name of a source.
    """

    graph: Host
    question: str
    source: str | None = None
    offered: Sequence[str] = ()
    choose: Mapping[str, str] = field(default_factory=dict)
    llm_function: Callable[..., Any] | None = None
    limit: int | None = None
    on_unknown: OnUnknown = "error"
    #: The ids of entities that words of the question refer to, by name.
    referent_ids: Mapping[str, str] = field(default_factory=dict)
    #: The entities of names that are not in the graph: answers to earlier parts of a question.
    answer_sets: Mapping[str, alg.Entities] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: {"resolve": 0.0, "run": 0.0})

    def attempt(self, reply: str, program: str, language: str) -> Attempt:
        """Run a program of a reply. Return its answer, a choice, or where and why it failed."""
        begun = Attempt(reply, program, language, source=self.source)
        try:
            if language == "pattern":
                return self._pattern(begun)
            return self._in_source(begun)
        except errors.InterruptedQueryError:
            raise
        except errors.CondgraphError as error:
            return replace(begun, stage=stage_of(error), error=str(error), code=error.code, failure=error)

    # -- programs with plans -----------------------------------------------------------------------

    def _in_source(self, begun: Attempt) -> Attempt:
        """Run a program in its source, with the chosen meanings of its names."""
        chosen = next((key for key in self.choose.values() if key in self.offered), None)
        try:
            answer, lowered = self._answer(begun, self.source or chosen)
        except errors.AmbiguousNameError as error:
            return self._try_sources(begun, error)
        if chosen is not None:
            begun = replace(begun, source=chosen)
        return self._try_meanings(begun, answer, lowered)

    def _answer(self, begun: Attempt, source: str | None, meanings: Mapping[str, str] | None = None) -> tuple[Answer, Lowered]:
        """Return the answer and the lowered program; each name of `meanings` is the entity with that id."""
        lowerings: list[Lowered] = []
        resolving = 0.0

        def lower(schema: KnownSchema, program: Any, language: str, options: dict[str, Any]) -> Lowered:
            nonlocal resolving
            begin = time.perf_counter()
            if self.answer_sets:
                schema = cast("KnownSchema", OpenSchema(schema, self.answer_sets.__contains__))
            result = lower_program(schema, program, language, options)
            if meanings or self.answer_sets:
                result = _replace_names(
                    result, {**self.answer_sets, **{name: alg.ById((key,)) for name, key in (meanings or {}).items()}}
                )
                for name in _texts_in(result) & self.answer_sets.keys():
                    raise _misplaced(name, "Cypher can compare with the name of a node alone, by =, <> or IN")
            lowerings.append(result)
            resolving += time.perf_counter() - begin
            return result

        options: dict[str, Any] = {"on_unknown": self.on_unknown}
        if begun.language == "llm_query":
            options |= {"source": source, "llm_function": self.llm_function, "question": self.question}

        def run() -> Answer:
            store = self.graph._store_of(None)
            request = Request(unfenced(begun.program), begun.language, options, self.limit, lower)
            try:
                answer = store.answer(request)
            except errors.UnsupportedError:
                # An existing database runs the Cypher query itself.
                if begun.language != "cypher" or (passed_on := getattr(store, "passed_on", None)) is None:
                    raise
                if (name := next((name for name in self.answer_sets if name in begun.program), None)) is not None:
                    raise _misplaced(name, "a query that the database answers itself cannot name") from None
                answer = passed_on(request)
            # Values are computed here, so that a failure belongs to the attempt.
            _ = answer.values
            return answer

        begin = time.perf_counter()
        try:
            answer = traced(self.graph, begun.language, begun.program, run)
        finally:
            self.seconds["resolve"] += resolving
            self.seconds["run"] += time.perf_counter() - begin - resolving
        return answer, lowerings[-1]

    # -- several sources ---------------------------------------------------------------------------

    def _try_sources(self, begun: Attempt, error: errors.AmbiguousNameError) -> Attempt:
        """Run a program whose names occur in several tables: try each of the likeliest ones. Tables win in which the
        program gives something and fewer names had to be read as others.
        """
        ranked = [name for name in self.offered if name in error.candidates]
        ranked += [name for name in error.candidates if name not in ranked]
        tried: list[tuple[int, str, Answer, Lowered]] = []
        for name in ranked[:MAX_TRIED]:
            check()
            try:
                answer, lowered = self._answer(begun, name)
            except errors.InterruptedQueryError:
                raise
            except errors.CondgraphError:
                continue
            if answer.values:
                tried.append((sum("is read as" in warning for warning in answer.warnings), name, answer, lowered))
        shown = errors.shortened(error.message, 200)
        note = f"{shown}: tried {len(ranked[:MAX_TRIED])} of {len(ranked)}, {len(tried)} gave something"
        if not tried:
            failed = replace(begun, stage="resolving", error=str(error), code=error.code, notes=(note,))
            return replace(failed, failure=error)
        fewest = min(item[0] for item in tried)
        best = [item for item in tried if item[0] == fewest]
        begun = replace(begun, notes=(f"{note}; with the fewest names read as others: {', '.join(item[1] for item in best)}",))
        if len({tuple(item[2].texts) for item in best}) == 1:
            return self._try_meanings(replace(begun, source=best[0][1]), best[0][2], best[0][3])
        options = tuple(Option(name, name, "", tuple(answer.texts[:5])) for _, name, answer, _ in best)
        return replace(begun, choice=Choice("source", error.message.split("'")[1] if "'" in error.message else "", options))

    # -- several entities of one name --------------------------------------------------------------

    def _try_meanings(self, begun: Attempt, answer: Answer, lowered: Lowered) -> Attempt:
        """Return an attempt with its answer where each name means one entity, or all its meanings give the same answer;
        else take the meaning that gives something, or offer a choice.
        """
        names = {name for node in alg.postorder(lowered.plan) if isinstance(node, alg.ByName) for name in node.names}
        ids_of = self._ids_by_name(sorted(names))
        given_ids = {**self.referent_ids, **self.choose}
        meanings = {name: given_ids[name] for name, ids in ids_of.items() if len(ids) > 1 and given_ids.get(name) in ids}
        ambiguous = {name: ids for name, ids in ids_of.items() if len(ids) > 1 and name not in meanings}
        if meanings:
            answer, lowered = self._answer(begun, begun.source, meanings)
        for name, ids in ambiguous.items():
            answers: dict[str, Answer] = {}
            for entity_id in ids[:MAX_TRIED]:
                check()
                answers[entity_id] = self._answer(begun, begun.source, {**meanings, name: entity_id})[0]
            answering = {entity_id: item for entity_id, item in answers.items() if _has_content(item)}
            if len({tuple(item.texts) for item in answering.values()}) > 1:
                options = tuple(
                    Option(entity_id, name, self._description(entity_id), tuple(item.texts[:5]))
                    for entity_id, item in answering.items()
                )
                return replace(begun, choice=Choice("entity", name, options))
            if len(answering) == 1 and len(answers) > 1:
                entity_id, answer = next(iter(answering.items()))
                note = f"{name!r} is the name of {len(ids)} entities; the program gives something for {entity_id!r} alone"
                begun = replace(begun, notes=(*begun.notes, note))
        stage: Stage | None = None if _has_content(answer) else "running"
        if begun.language == "cypher" and answer.columns and _is_all_zero(answer):
            self._check_texts(begun.program)
        return replace(
            begun, answer=answer, stage=stage, error="" if stage is None else "the program gives nothing", lowered=lowered
        )

    def drafts(self, attempt: Attempt, names: Sequence[str], judge: Callable[[Attempt], Sequence[str]]) -> list[Draft]:
        """Return the program of an attempt that failed at an unknown name, with each of `names` in its place
        (KB-BINDER): only drafts that give something, those without objections from `judge` first.
        """
        error = attempt.failure
        if not isinstance(error, errors.UnknownNameError) or error.span is None or error.span[0] >= error.span[1]:
            return []
        start, end = error.span
        part = attempt.program[start:end]
        quote = part[0] if part[0] in "'\"`" and part[-1:] == part[0] else ""
        result: list[Draft] = []
        try:
            with within(_DRAFTS):
                for name in names[:MAX_DRAFTS]:
                    check()
                    written = _quoted_name(name, quote, attempt.language)
                    program = f"{attempt.program[:start]}{written}{attempt.program[end:]}"
                    draft = self.attempt(attempt.reply, program, attempt.language)
                    if draft.answer is not None and draft.stage is None and draft.gave:
                        result.append(Draft(error.name, name, program, draft.gave[:_MAX_TEXTS], tuple(judge(draft))))
        except errors.DeadlineError:
            check()
        return sorted(result, key=lambda draft: len(draft.doubts))

    def _ids_by_name(self, names: list[str]) -> dict[str, list[str]]:
        """Return the ids of the entities with each name; concepts and rows of tables are left out."""
        if not names:
            return {}
        plan = alg.ByName(tuple(names))
        lowered = Lowered(plan, [("", plan)])
        result: dict[str, list[str]] = {}
        for entity in self.graph._store_of(None).answer(Request("", "kopl", {}, None, lambda *_: lowered)).entities:
            if entity.kind is EntityKind.ENTITY:
                result.setdefault(entity.name, []).append(entity.id)
        return result

    def _description(self, ident: str) -> str:
        """Describe an entity by its first statements, to tell it from others of the same name."""
        plan = alg.Scan(alg.ById((ident,)), None, "subject", "subject")
        lowered = Lowered(plan, [("", plan)])
        answer = self.graph._store_of(None).answer(Request("", "kopl", {}, 3, lambda *_: lowered))
        return "; ".join(f"{item.predicate} {_text(item.object)}" for item in list(answer.evidence)[:3])

    def _check_texts(self, program: str) -> None:
        """Raise `UnknownNameError` for a text in a Cypher query that nothing in the graph has: a query that counts its
        matches would answer 0 and look certain.
        """
        store = self.graph._store_of(None)
        for key, text in islice(_compared_texts(parse_cypher(unfenced(program)).query), MAX_TRIED):
            check()
            values = alg.Scan(None, (key,), "subject", "subject", "attribute")
            if plan_texts(store, alg.Names(alg.ByName((text,))), 1) or plan_texts(
                store, alg.Objects(alg.Where(values, alg.Compare("=", text))), 1
            ):
                continue
            if key == "name":
                known = known_of(store, self.graph._survey())
                names = known.linker.entities
                near = entities(text, known, [names.names[place] for place in names.folded(text)])[:MAX_NAMES]
            else:
                near = errors.nearest(text, plan_texts(store, alg.Distinct(alg.Objects(values)), _MAX_NEAR))
            raise errors.UnknownNameError("entity" if key == "name" else f"value of {key!r}", text, candidates=near)

    # -- patterns ----------------------------------------------------------------------------------

    def _pattern(self, begun: Attempt) -> Attempt:
        """Match a pattern with the nearest subgraphs, grouped by the unknown that the question is about."""
        begin = time.perf_counter()
        pattern = Pattern.of(begun.program)
        if (name := next((node.name for node in pattern.nodes if node.known and node.name in self.answer_sets), None)) is not None:
            raise _misplaced(name, "a pattern cannot name")
        unknown = [node.name for node in pattern.nodes if not node.known]
        asked = _requested_unknown(begun.program)
        group_by = asked if asked in unknown else unknown[0] if unknown else None
        self.seconds["resolve"] += time.perf_counter() - begin
        begin = time.perf_counter()
        answer = self.graph.match(pattern, k=None, group_by=group_by, limit=self.limit or 100, stretch=True, leave_out=True)
        _ = answer.values
        self.seconds["run"] += time.perf_counter() - begin
        stage: Stage | None = None if answer.values else "running"
        return replace(begun, answer=answer, stage=stage, error="" if stage is None else "no subgraph is like the pattern")


def _quoted_name(name: str, mark: str, language: str) -> str:
    """Write a name as a program would, in the same quotes as the name that it replaces."""
    if mark:
        return mark + name.replace("\\", "\\\\").replace(mark, "\\" + mark) + mark
    if language == "cypher":
        return cypher_name(name, len(name))
    return json.dumps(name, ensure_ascii=False) if any(letter in name for letter in ",()\"'") else name


def stage_of(error: errors.CondgraphError) -> Stage:
    """Return the stage at which a program failed: its text, its names and literals, or its run."""
    if isinstance(error, errors.ParseError) or (isinstance(error, errors.UnknownNameError) and error.kind in _LANGUAGE_KINDS):
        return "writing"
    if isinstance(error, (errors.UnknownNameError, errors.AmbiguousNameError, errors.LiteralError)):
        return "resolving"
    return "writing" if isinstance(error, errors.PlanError) else "running"


def _compared_texts(query: Any) -> Iterator[tuple[str, str]]:
    """Yield the properties that a Cypher query compares with a text by `=`, each with the text."""
    stack = [query]
    while stack:
        item = stack.pop()
        if isinstance(item, expressions.Comparison) and item.operator == "=":
            for side, other in ((item.left, item.right), (item.right, item.left)):
                if (
                    isinstance(side, expressions.Property)
                    and isinstance(other, expressions.Constant)
                    and isinstance(other.value, str)
                ):
                    yield side.key, other.value
        # Properties of relationships are not those of nodes.
        if isinstance(item, RelationshipPattern):
            continue
        if isinstance(item, tuple):
            stack.extend(reversed(item))
        elif hasattr(item, "__dataclass_fields__") and not isinstance(item, expressions.Constant):
            stack.extend(getattr(item, name) for name in reversed(list(item.__dataclass_fields__)))


def _is_all_zero(answer: Answer) -> bool:
    """Return whether all rows have only zeros, nulls and empty lists, and rest on no statement."""
    return not any(cell for row in answer.values for cell in row) and not len(answer.evidence)


def _has_content(answer: Answer) -> bool:
    """Return whether an answer contains anything. A count of 0 does, if there was something to count; rows of nulls do
    not.
    """
    if answer.columns and all(cell is None or cell == () for row in answer.values for cell in row):
        return False
    if answer.values in ([0], [False]):
        # Nothing matched because nothing was comparable: that is an error of the program, not a count.
        return not any("cannot be compared" in warning for warning in answer.warnings)
    return bool(answer.values)


def counts_nothing(answer: Answer) -> bool:
    """Return whether an answer is a count of 0 after several steps with empty results; where only the last step is
    empty, 0 is as good as any number.
    """
    values = answer.values
    return len(values) == 1 and type(values[0]) is int and not values[0] and sum(not step.size for step in answer.trace) > 1


def _replace_names(lowered: Lowered, meanings: Mapping[str, alg.Entities]) -> Lowered:
    """Replace names in a plan by the entities that they mean."""
    done: dict[int, alg.Node] = {}
    roots = [lowered.plan, *(node for _, node in lowered.steps)]
    for root in roots:
        for node in alg.postorder(root):
            if id(node) in done:
                continue
            rebuilt = rebuild(node, done)
            if isinstance(node, alg.ByName) and all(name in meanings for name in node.names):
                entities = tuple(meanings[name] for name in node.names)
                rebuilt = entities[0] if len(entities) == 1 else alg.Union(entities)
            elif isinstance(node, (alg.Filter, alg.Extend)):
                rebuilt = _replace_in_rows(rebuilt, meanings)
            done[id(node)] = rebuilt
    steps = [(label, done[id(node)]) for label, node in lowered.steps]
    notes = {id(done[key]): text for key, text in lowered.notes.items() if key in done}
    return Lowered(done[id(lowered.plan)], steps, lowered.warnings, notes, alg.postorder(done[id(lowered.plan)]))


def _replace_in_rows(node: Any, meanings: Mapping[str, alg.Entities]) -> Any:
    """Rebuild a filter of rows, or a computed column, to compare ids where it compared a name of `meanings`."""

    def name_test(item: expressions.Expression, names: Sequence[Any]) -> expressions.Expression | None:
        if not (isinstance(item, expressions.Call) and item.name == "name" and any(name in meanings for name in names)):
            return None
        entities = [meanings.get(name, alg.ByName((name,))) for name in names]
        ids = [entity_id for node in entities if isinstance(node, alg.ById) for entity_id in node.ids]
        unresolved = [name for node in entities if isinstance(node, alg.ByName) for name in node.names]
        id_list = expressions.ListOf(tuple(map(expressions.Constant, ids)))
        tests: list[expressions.Expression] = (
            [expressions.In(expressions.Call("elementid", item.arguments), id_list)] if ids else []
        )
        if unresolved:
            tests.append(expressions.In(item, expressions.ListOf(tuple(map(expressions.Constant, unresolved)))))
        return tests[0] if len(tests) == 1 else expressions.Or(tuple(tests))

    def rewrite(expression: expressions.Expression) -> expressions.Expression | None:
        if isinstance(expression, expressions.Comparison) and expression.operator in ("=", "<>"):
            for side, other in ((expression.left, expression.right), (expression.right, expression.left)):
                if isinstance(other, expressions.Constant) and (test := name_test(side, [other.value])) is not None:
                    return test if expression.operator == "=" else expressions.Not(test)
        if isinstance(expression, expressions.In) and isinstance(expression.items, expressions.ListOf):
            values = [constant.value for constant in expression.items.items if isinstance(constant, expressions.Constant)]
            if len(values) == len(expression.items.items):
                return name_test(expression.item, values)
        return None

    values = [getattr(node, name) for name in fields_of(node)]
    return type(node)(
        *[rebuilt_expression(value, rewrite) if isinstance(value, expressions.Expression) else value for value in values]
    )


def _texts_in(lowered: Lowered) -> set[str]:
    """Return the text constants in the expressions of a plan over rows."""
    fields = [getattr(node, name) for node in alg.postorder(lowered.plan) for name in fields_of(node)]
    parts = [part for value in fields if isinstance(value, expressions.Expression) for part in expressions.walk(value)]
    return {part.value for part in parts if isinstance(part, expressions.Constant) and isinstance(part.value, str)}


def _misplaced(name: str, limit: str) -> errors.PlanError:
    """Return the error for a name that means an answer's entities, used where entities cannot be."""
    return errors.PlanError(f"{name} stands for the entities of an answer, which {limit}")


def _requested_unknown(program: str) -> str:
    """Return the unknown that a JSON pattern asks for."""
    try:
        pattern = json.loads(program)
    except (ValueError, RecursionError):
        return ""
    answer = pattern.get("answer") if isinstance(pattern, dict) else None
    return " ".join(answer.removeprefix("UNKNOWN").split()) if isinstance(answer, str) else ""


def _text(value: Any) -> str:
    return str(getattr(value, "name", value))
