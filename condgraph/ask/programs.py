"""Programs by a model: read from its reply, run, and described to it where they fail."""

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
    from condgraph.ask.records import Attempt, Host
    from condgraph.engine.answer import Answer
    from condgraph.engine.store import KnownSchema
    from condgraph.names.words import OnUnknown


# -- replies -----------------------------------------------------------------------------------------
# A program is one connected piece of the reply, or one JSON string in it, never put together from
# several. Every reader takes linear time, and reads the first `MOST_REPLY_READ` characters.


#: Characters of a reply that are looked at; programs have at most a few thousand.
MOST_REPLY_READ: Final = 100_000
_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*$", re.MULTILINE)
_QUERY: Final = re.compile(r"\bQuery[ \t]*+\d\w*+[ \t*_]*+:|\bget_information[ \t]*+\(", re.IGNORECASE)
_STEPS: Final = re.compile(r"^[ \t>*_`#-]*(?:Step[ \t]*\d|Query[ \t]*\d|Target[ \t]+type)", re.IGNORECASE | re.MULTILINE)
_KOPL: Final = re.compile(rf"\b(?:{'|'.join(FUNCTIONS)})[ \t]*\(")
_KOPL_LINE: Final = re.compile(r"^[ \t>*`\"']*+(?:KoPL|Program)?[ \t]*+:?[ \t`\"']*+(?=[A-Z]\w*+[ \t]*+\()", re.MULTILINE)
_ANY_CALL: Final = re.compile(r"\b\w++[ \t]*+\(")
_NONE: Final = re.compile(r"[\s\"'`*{(\[]*(?:NONE|None|null|N/A)[\s\"'`*.)}\]]*")
#: What models write where they have no answer, in a few words of their own.
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
    """Whether the model says that the data does not answer the question."""
    return len(reply) < 40 and _NONE.fullmatch(reply) is not None


def gives_up(reply: str) -> bool:
    """Whether a reply that has no program says in a sentence or two that there is no answer."""
    return len(reply) < 400 and _GIVES_UP.search(" ".join(reply.replace("’", "'").split())) is not None


def program_in(reply: str, via: str) -> tuple[str, str] | None:
    """The program of a reply and its language ("llm_query", "kopl", "cypher", "pattern"); None where there
    is nothing that looks like one. `via` is what was asked for, a name of `METHODS`.

    >>> program_in('Sure! ```' + chr(10) + 'Find(Nepal) QueryName()' + chr(10) + '```', "kopl")
    ('Find(Nepal) QueryName()', 'kopl')
    """
    text = reply[:MOST_REPLY_READ]
    for piece in _pieces(text):
        result = _program(piece, via)
        if result is not None:
            return result
    return None


@dataclass(frozen=True, slots=True)
class ReplyProgram:
    """The first program of a reply, its language ("llm_query", "kopl", "cypher", "pattern"), and how many
    characters follow it that are no part of it.
    """

    program: str
    language: str
    ignored: int = 0


def first_program(reply: str, via: str, *, cut: bool = False) -> ReplyProgram | None:
    """The first program of a reply: models go on with further questions, or with words, until their tokens
    are spent. None where there is none, or where the reply was `cut` off before its first program was
    complete.

    >>> first_program('Find(Nepal) QueryName()' + chr(10) + 'Find(India) Que', "kopl", cut=True)
    ReplyProgram(program='Find(Nepal) QueryName()', language='kopl', ignored=16)
    """
    found = program_in(reply, via)
    if found is None:
        return None
    text, language = found
    cut = cut and reply[:MOST_REPLY_READ].rstrip().endswith(text.rstrip()[-20:])
    end = METHODS[VIA_OF[language]].end(text, cut)
    if end is None:
        return None
    return ReplyProgram(text[:end].rstrip(), language, len(text.rstrip()) - len(text[:end].rstrip()))


def _end_of_queries(text: str, cut: bool) -> int | None:
    """Where the first program of queries ends: before its first label is written again, or, in a text that
    was cut off, behind the last query where the model had gone on to something else.
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
            # The last line of a text that was cut off has no end.
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
    """Where the first program of KoPL functions ends: the whole text where it is one, else behind the first
    function that ends a program.
    """
    if not cut:
        with suppress(errors.CondgraphError):
            parse_kopl(text)
            return len(text)
    for closed in islice(_CLOSED.finditer(text), _MOST_FUNCTIONS):
        before = text[: closed.end()]
        try:
            steps, _ = parse_kopl(before)
        except errors.CondgraphError:
            continue
        rest = text[closed.end() :].lstrip(" \t\r\n;.`")
        last = steps[-1].function
        # Verify... follows QueryAttr; of a text that was cut off it is not known.
        goes_on = rest.startswith("Verify") or (cut and "Verify".startswith(rest))
        if last in _ENDING and not (last.startswith("QueryAttr") and goes_on):
            return closed.end()
    return None if cut else len(text)


def _end_of_pattern(text: str, cut: bool) -> int | None:
    """Where the first JSON object, or list, ends; other forms of patterns are one text."""
    if text[:1] in "{[":
        with suppress(ValueError, RecursionError):
            return json.JSONDecoder().raw_decode(text)[1]
    return None if cut else len(text)


def _end_of_cypher(text: str, cut: bool) -> int | None:
    """Where the first Cypher query ends: behind the most of its lines that are one query. The last line of a
    text that was cut off may lack its end, and what follows may belong to it.
    """
    ends, at = [], 0
    for line in text[:_LONGEST_CYPHER].splitlines(keepends=True)[:_MOST_LINES]:
        at += len(line)
        if line.strip():
            ends.append(at)
    for end in reversed(ends):
        rest = text[end:].split(None, 1)[:1]
        if cut and not (rest and not any(word.startswith(rest[0].upper()) for word in _GOES_ON)):
            continue
        with suppress(errors.CondgraphError):
            parse_cypher(text[:end])
            return end
    return None if cut else len(text)


@dataclass(frozen=True, slots=True)
class Method:
    """A language that a model may write: its name among the languages of programs, where the first
    program of a text ends, and what the model is told of a reply that has no program.
    """

    language: str
    end: Callable[[str, bool], int | None]
    example: str


#: The languages that a model may write, by the name that `via` has for each.
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
#: The names of `via` by language.
VIA_OF: Final = {method.language: via for via, method in METHODS.items()}
_QUERY_LINE: Final = re.compile(r"^[ \t>*_`#-]*Query[ \t]*(\d\w*)[ \t*_]*:", re.IGNORECASE)
#: How a line of a query in Cypher begins, and the words that may follow a complete one.
_CYPHER_LINE: Final = re.compile(
    r"^[ \t>*_`]*(?:Cypher[ \t]*+:[ \t]*+)?"
    r"(?=(?:OPTIONAL[ \t]++)?MATCH\b[ \t]*+\S|UNWIND\b|WITH\b.*\bAS\b|CALL[ \t]*+[({\w]|RETURN[ \t]"
    r"|(?:CREATE|MERGE)[ \t]*+\()",
    re.IGNORECASE | re.MULTILINE,
)
_GOES_ON: Final = ("ORDER", "SKIP", "OFFSET", "LIMIT", "UNION")
#: Lines, and characters, of a Cypher query that are looked through for its end.
_MOST_LINES, _LONGEST_CYPHER = 64, 20_000
_STEP_LINE: Final = re.compile(r"^[ \t>*_`#-]*Step[ \t]*(\d{0,9})", re.IGNORECASE)
#: The end of a call of a function, before the next or the end of a line.
_CLOSED: Final = re.compile(r"\)(?=\s|$|[;.`])")
#: Functions of a KoPL program that is looked at, and those that end one.
_MOST_FUNCTIONS: Final = 64
_ENDING: Final = frozenset(
    name for name in FUNCTIONS if name in ("What", "Count") or name.startswith(("Query", "Select", "Verify"))
)


def _pieces(text: str) -> list[str]:
    """What may be the program, the likeliest first: the text of a JSON object, what stands in
    fences, the whole.
    """
    result = []
    marks = [(match.start(), match.end()) for match in _FENCE.finditer(text)]
    for number in range(0, len(marks), 2):
        # A reply that was cut off ends within its fence.
        stop = marks[number + 1][0] if number + 1 < len(marks) else len(text)
        inside = text[marks[number][1] : stop].strip("\n")
        if inside.strip():
            result.append(inside)
    if not result:
        stripped = text.strip()
        # One line in marks of code.
        result.append(stripped.strip("`") if stripped[:1] == "`" and "\n" not in stripped else text)
    told = [inner for piece in result for inner in _told(piece)]
    return [*told, *result, *([text] if marks else [])]


def _told(text: str) -> list[str]:
    """The program that a JSON object has under one of the usual keys."""
    if text.lstrip()[:1] != "{":
        return []
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return []
    inner = [result[key] for key in _KEYS if isinstance(result, dict) and isinstance(result.get(key), (str, list))]
    return [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in inner]


def _program(text: str, via: str) -> tuple[str, str] | None:
    if not text.strip():
        return None
    if via == "pattern":
        # Models write a word or two before the object; what is no pattern is complained of by its
        # reader.
        at = min((place for mark in ("{", "[", "(") if (place := text.find(mark)) >= 0), default=-1)
        return None if at < 0 else (text[at:].strip(), "pattern")
    if via == "cypher" and (begins := _CYPHER_LINE.search(text)) is not None:
        query = text[begins.end() :].strip()
        # Marks of code around it, and no name in backticks at its end.
        return (query.rstrip("`").rstrip() if query.count("`") % 2 or query.endswith("``") else query), "cypher"
    if _QUERY.search(text):
        begins = _STEPS.search(text)
        # A call alone stands where it stands; prose around whole steps is left to the parser.
        if begins is None and (call := _ANY_CALL.search(text)) is not None:
            return text[call.start() :].strip(), "llm_query"
        return text, "llm_query"
    if _KOPL.search(text):
        return _kopl(text), "kopl"
    if _ANY_CALL.search(text):
        # No function that is known: the parser of the language says which one there may be.
        return (_kopl(text), "kopl") if via == "kopl" else (text.strip(), "llm_query")
    return None


def _kopl(text: str) -> str:
    """The lines from the first that begins with a call, up to a line that has none; without marks
    of code around them.
    """
    begins = _KOPL_LINE.search(text)
    match = _KOPL.search(text)
    at = begins.end() if begins is not None else match.start() if match is not None else 0
    kept: list[str] = []
    for line in text[at:].split("\n"):
        if kept and line.strip() and "(" not in line:
            break
        kept.append(line.strip())
    joined = " ".join(line for line in kept if line)
    return joined.rstrip("`\"'.; \t") if joined.rstrip("`\"'.; \t").endswith(")") else joined


# -- feedback ----------------------------------------------------------------------------------------
# For a program without an answer: what was wrong and where, the nearest names, and what its entities
# have instead. Errors are written for people who use Python; a model gets the names, and no functions
# or options that it cannot call.


#: Characters of a program's part that is wrong, and of the whole feedback.
_PART: Final = 60
MOST_FEEDBACK: Final = 1_500
#: Names that are offered for one, and drafts.
MOST_NAMES: Final = 8
_MOST_OFFERED: Final = 3
#: Kinds of names of Cypher, as other languages call them.
_KINDS: Final = {
    "label": "concept", "relationship type": "relation", "property": "attribute", "property of relationships": "qualifier",
}  # fmt: skip
_FUNCTIONS: Final = ", ".join(one.name for one in TABLE)
#: What a hint for people says that is of no use to a model.
_FOR_PEOPLE: Final = (
    "on_unknown=", "status()", "source=", "timeout=", "limit=", "llm_function=", "graph.", "put in double quotes in",
)  # fmt: skip


def feedback_of(attempt: Attempt, known: KnownNames) -> str:
    """What went wrong in an attempt, in a few lines with the nearest names."""
    if attempt.answer is not None and attempt.doubts:
        gave = ", ".join(quoted(text, _PART) for text in (attempt.gave or ())[:3])
        lines = [f"The program ran and gave {gave}.", *(f"But {doubt}." for doubt in attempt.doubts)]
        lines += _of_nothing(attempt)[1:] if counts_nothing(attempt.answer) else []
    elif attempt.answer is not None:
        lines = _of_nothing(attempt)
    elif attempt.failure is not None:
        lines = _of_error(attempt, attempt.failure, known)
    else:
        lines = [attempt.error]
    return unmarked(errors.shortened("\n".join(line for line in lines if line), MOST_FEEDBACK))


def _of_error(attempt: Attempt, error: errors.CondgraphError, known: KnownNames) -> list[str]:
    lines = [f"{attempt.language}: {error.message}"]
    if error.span is not None and error.span[1] > error.span[0]:
        part = attempt.program[error.span[0] : error.span[1]]
        if part.strip():
            lines.append(f"It stands here: {quoted(part.strip(), _PART)}")
    if isinstance(error, errors.AmbiguousNameError):
        lines.append(f"Say which with source=: {_listed(error.candidates[:8])}")
    elif isinstance(error, errors.UnknownNameError):
        near = candidates(error, known)
        if near:
            lines.append(f"Nearest names: {_listed(near)}")
        lines += [_of_draft(draft) for draft in attempt.drafts[:_MOST_OFFERED]]
        lines.append(_qualifier(error, known) or _of_cypher(error, known))
        if error.kind == "function" and attempt.language == "llm_query":
            lines.append(f"The functions are {_FUNCTIONS}.")
    elif error.candidates:
        lines.append(f"Nearest names: {_listed(error.candidates)}")
    if error.hint and not any(word in error.hint for word in _FOR_PEOPLE):
        lines.append(error.hint[:1].upper() + error.hint[1:])
    if error.code == "parse":
        lines.append(_brackets(attempt.program))
    return lines


def _of_draft(draft: Draft) -> str:
    gave = ", ".join(quoted(text, _PART) for text in draft.texts[:3]) + (" and more" if len(draft.texts) > 3 else "")
    return f"With {quoted(draft.name)} in its place the program gives {gave}."


def candidates(error: errors.UnknownNameError, known: KnownNames) -> list[str]:
    """The names that may be meant, best first: those of the error, then by words and letters among
    the names of its kind.
    """
    result = list(error.candidates)
    kind = _KINDS.get(error.kind, error.kind)
    output = AN_OUTPUT.fullmatch(error.name.strip())
    if output is not None and error.kind != "output":
        result = [f"output_of_query{output[1]}", *result]
    if error.name in known.qualifiers.names and kind in ("relation", "attribute"):
        return result[:MOST_NAMES]
    if kind == "key":
        return result[:MOST_NAMES]
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
        names = known.concepts if kind == "concept" else known.predicates
        order = sorted(known.of_kind(kind), key=lambda at: (-names.sizes[at], names.names[at]))
        result = [names.names[at] for at in order]
    return list(dict.fromkeys(result))[:MOST_NAMES]


def _qualifier(error: errors.UnknownNameError, known: KnownNames) -> str:
    """Which facts have a qualifier that was taken for a predicate."""
    if error.kind not in ("relation", "attribute") or error.name not in known.qualifiers.names:
        return ""
    rows = [item for item in known.survey["predicates"] if any(key == error.name for key, _ in item[4])]
    rows.sort(key=lambda item: -(item[1] + item[2]))
    return f"Facts of these have it: {_listed([row[0] for row in rows[:MOST_NAMES]])}"


def _of_cypher(error: errors.UnknownNameError, known: KnownNames) -> str:
    """What a name is that a query in Cypher took for something else: a property of nodes for one of
    relationships, a relationship for a property.
    """
    if error.kind not in _KINDS:
        return ""
    rows = [item for item in known.survey["predicates"] if any(key == error.name for key, _ in item[4])]
    if error.kind == "property" and rows:
        rows.sort(key=lambda item: -(item[1] + item[2]))
        types = [CYPHER.arrow(item[0], True) for item in rows[:MOST_NAMES]]
        return f"It is a property of relationships: {', '.join(types)}"
    place = known.places.get(error.name)
    if place is None:
        return ""
    value = known.predicate(place)
    return f"It is written so: {CYPHER.short(value).removeprefix('- ')}"


def entities(name: str, known: KnownNames, found: Sequence[str] = ()) -> list[str]:
    """Names of entities like one: among those that share pieces of it, the ones whose letters are
    the nearest come first.
    """
    near = resolve(name, known.linker.entities, threshold=2.0, most=40).near
    some = list(dict.fromkeys([*found, *(match.name for match in near)]))
    alike = errors.nearest(name, some, most=6)
    return list(dict.fromkeys([*alike, *some]))


def _functions(name: str) -> list[str]:
    """KoPL functions that a wrong one may mean: models write GetCapital for Relate(capital, ...)."""
    folded = name.casefold()
    asks = [item for word, item in _MEANT if word in folded]
    return list(dict.fromkeys([*errors.nearest(name, FUNCTIONS), *asks, "Relate", "QueryAttr"]))


_MEANT: Final = (
    ("filter", "FilterConcept"), ("select", "SelectAmong"), ("count", "Count"), ("name", "QueryName"),
    ("minus", "Except"), ("differ", "Except"),
    ("intersect", "And"), ("union", "Or"), ("verify", "VerifyStr"), ("max", "SelectAmong"), ("min", "SelectAmong"),
)  # fmt: skip


def _of_nothing(attempt: Attempt) -> list[str]:
    """A program that ran and gave nothing: the step that did, what its things have instead, and
    what was left out on the way.
    """
    answer = attempt.answer
    assert answer is not None
    lines = ["The program ran and gave nothing."]
    warnings = [warning for warning in answer.warnings if not warning.startswith("the answer does not need")]
    lines += [warning[:1].upper() + warning[1:] for warning in warnings[:4]]
    if attempt.language == "kopl":
        lines += _of_types(warnings)
    return lines


def _of_types(warnings: Sequence[str]) -> list[str]:
    """Which functions compare values of the types that a program compared with something else."""
    result: dict[str, None] = {}
    for warning in warnings:
        compared = _COMPARED.search(warning)
        if compared is None:
            continue
        has, unit, given = compared.groups()
        if has == given == "quantity" and unit:
            result[f"Numbers here have a unit: write it behind the number, as in 5 {unit}."] = None
        for kind, (called, ending) in COMPARED.items():
            if has == kind.name.lower() != given:
                result[f"Values that are {called} are compared by Filter{ending}, qualifiers by QFilter{ending}."] = None
    return list(result)


_COMPARED: Final = re.compile(r"values? \((\w+)(?: without a unit| in ([^)]+))?\) cannot be compared with an? (\w+)")


def _brackets(program: str) -> str:
    """Whether parentheses and quotes are closed."""
    opened, closed = program.count("("), program.count(")")
    if opened != closed:
        return f"It has {opened} opening and {closed} closing parentheses."
    return "A double quote is not closed." if program.count('"') % 2 else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)


# -- running a program -------------------------------------------------------------------------------
# A name of several tables is tried in each that is offered, and a name of several entities as each
# of them. Where the answers differ, and nothing tells them apart, the user has to choose.


#: Sources that a program is tried in, and meanings of a name.
MOST_TRIED: Final = 10
#: Names that are tried in place of an unknown one, seconds for all of them, and texts of what each gives.
MOST_DRAFTS: Final = 4
_DRAFTS: Final = 2.0
_MOST_TEXTS: Final = 20
#: Values that an unknown one is compared with.
_MOST_NEAR: Final = 1_000
#: Kinds of unknown names that are words of a language: whoever used them wrote no program of it.
_OF_LANGUAGE: Final = frozenset(("KoPL function", "function", "direction", "operator", "choice", "parameter of get_information"))


@dataclass(slots=True)
class Runner:
    """Runs programs on the store of a graph. `seconds` adds up how long resolving and running took;
    `choose` says what names mean, by id of an entity or name of a source.
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
    refers: Mapping[str, str] = field(default_factory=dict)
    #: The entities that names stand for which the graph does not have: answers to earlier parts of a question.
    stands: Mapping[str, alg.Entities] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: {"resolve": 0.0, "run": 0.0})

    def attempt(self, reply: str, program: str, language: str) -> Attempt:
        """What becomes of a program: an answer, a choice, or where and why it ended."""
        begun = Attempt(reply, program, language, source=self.source)
        try:
            if language == "pattern":
                return self._pattern(begun)
            return self._settled(begun)
        except errors.InterruptedQueryError:
            raise
        except errors.CondgraphError as error:
            return replace(begun, stage=stage_of(error), error=str(error), code=error.code, failure=error)

    # -- programs with plans -----------------------------------------------------------------------

    def _settled(self, begun: Attempt) -> Attempt:
        """A program in its source, with its names as they are meant."""
        chosen = next((key for key in self.choose.values() if key in self.offered), None)
        try:
            answer, lowered = self._answer(begun, self.source or chosen)
        except errors.AmbiguousNameError as error:
            return self._sources(begun, error)
        if chosen is not None:
            begun = replace(begun, source=chosen)
        return self._senses(begun, answer, lowered)

    def _answer(self, begun: Attempt, source: str | None, meant: Mapping[str, str] | None = None) -> tuple[Answer, Lowered]:
        """The answer, and what the program became; each name of `meant` is the entity of that id."""
        seen: list[Lowered] = []
        resolving = 0.0

        def lower(schema: KnownSchema, program: Any, language: str, options: dict[str, Any]) -> Lowered:
            nonlocal resolving
            begin = time.perf_counter()
            if self.stands:
                schema = cast("KnownSchema", OpenSchema(schema, self.stands.__contains__))
            result = lower_program(schema, program, language, options)
            if meant or self.stands:
                result = _meaning(result, {**self.stands, **{name: alg.ById((key,)) for name, key in (meant or {}).items()}})
                for name in _texts_in(result) & self.stands.keys():
                    raise _misplaced(name, "Cypher can compare with the name of a node alone, by =, <> or IN")
            seen.append(result)
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
                # A database that condgraph did not write speaks Cypher itself.
                if begun.language != "cypher" or (passed_on := getattr(store, "passed_on", None)) is None:
                    raise
                if (name := next((name for name in self.stands if name in begun.program), None)) is not None:
                    raise _misplaced(name, "a query that the database answers itself cannot name") from None
                answer = passed_on(request)
            # Values are worked out here, so that what fails fails within the attempt.
            _ = answer.values
            return answer

        begin = time.perf_counter()
        try:
            answer = traced(self.graph, begun.language, begun.program, run)
        finally:
            self.seconds["resolve"] += resolving
            self.seconds["run"] += time.perf_counter() - begin - resolving
        return answer, seen[-1]

    # -- several sources ---------------------------------------------------------------------------

    def _sources(self, begun: Attempt, error: errors.AmbiguousNameError) -> Attempt:
        """A program whose names stand in several tables: each of the likeliest is tried. Those where
        it gives something, and where fewer names had to be read as others, win.
        """
        ranked = [name for name in self.offered if name in error.candidates]
        ranked += [name for name in error.candidates if name not in ranked]
        tried: list[tuple[int, str, Answer, Lowered]] = []
        for name in ranked[:MOST_TRIED]:
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
        told = f"{shown}: tried {len(ranked[:MOST_TRIED])} of {len(ranked)}, {len(tried)} gave something"
        if not tried:
            failed = replace(begun, stage="resolving", error=str(error), code=error.code, notes=(told,))
            return replace(failed, failure=error)
        least = min(item[0] for item in tried)
        best = [item for item in tried if item[0] == least]
        begun = replace(begun, notes=(f"{told}; with the fewest names read as others: {', '.join(item[1] for item in best)}",))
        if len({tuple(item[2].texts) for item in best}) == 1:
            return self._senses(replace(begun, source=best[0][1]), best[0][2], best[0][3])
        options = tuple(Option(name, name, "", tuple(answer.texts[:5])) for _, name, answer, _ in best)
        return replace(begun, choice=Choice("source", error.message.split("'")[1] if "'" in error.message else "", options))

    # -- several entities of one name --------------------------------------------------------------

    def _senses(self, begun: Attempt, answer: Answer, lowered: Lowered) -> Attempt:
        """An answer, where the names of the program are those of one entity each, or all their
        meanings answer the same; else the meaning that gives something, or a choice.
        """
        names = {name for node in alg.postorder(lowered.plan) if isinstance(node, alg.ByName) for name in node.names}
        result = self._entities(sorted(names))
        given_ids = {**self.refers, **self.choose}
        meant = {name: given_ids[name] for name, ids in result.items() if len(ids) > 1 and given_ids.get(name) in ids}
        several = {name: ids for name, ids in result.items() if len(ids) > 1 and name not in meant}
        if meant:
            answer, lowered = self._answer(begun, begun.source, meant)
        for name, ids in several.items():
            given: dict[str, Answer] = {}
            for ident in ids[:MOST_TRIED]:
                check()
                given[ident] = self._answer(begun, begun.source, {**meant, name: ident})[0]
            speaking = {ident: item for ident, item in given.items() if _says(item)}
            if len({tuple(item.texts) for item in speaking.values()}) > 1:
                options = tuple(Option(ident, name, self._about(ident), tuple(item.texts[:5])) for ident, item in speaking.items())
                return replace(begun, choice=Choice("entity", name, options))
            if len(speaking) == 1 and len(given) > 1:
                ident, answer = next(iter(speaking.items()))
                note = f"{name!r} is the name of {len(ids)} entities; the program gives something for {ident!r} alone"
                begun = replace(begun, notes=(*begun.notes, note))
        stage: Stage | None = None if _says(answer) else "running"
        if begun.language == "cypher" and answer.columns and _of_zero(answer):
            self._check_texts(begun.program)
        return replace(
            begun, answer=answer, stage=stage, error="" if stage is None else "the program gives nothing", lowered=lowered
        )

    def drafts(self, attempt: Attempt, names: Sequence[str], judge: Callable[[Attempt], Sequence[str]]) -> list[Draft]:
        """The program of an attempt that ended at an unknown name, with each of `names` in its place (KB-BINDER):
        those that give something, what `judge` does not speak against first.
        """
        error = attempt.failure
        if not isinstance(error, errors.UnknownNameError) or error.span is None or error.span[0] >= error.span[1]:
            return []
        start, end = error.span
        part = attempt.program[start:end]
        mark = part[0] if part[0] in "'\"`" and part[-1:] == part[0] else ""
        result: list[Draft] = []
        try:
            with within(_DRAFTS):
                for name in names[:MOST_DRAFTS]:
                    check()
                    written = _written(name, mark, attempt.language)
                    program = f"{attempt.program[:start]}{written}{attempt.program[end:]}"
                    draft = self.attempt(attempt.reply, program, attempt.language)
                    if draft.answer is not None and draft.stage is None and draft.gave:
                        result.append(Draft(error.name, name, program, draft.gave[:_MOST_TEXTS], tuple(judge(draft))))
        except errors.DeadlineError:
            check()
        return sorted(result, key=lambda draft: len(draft.doubts))

    def _entities(self, names: list[str]) -> dict[str, list[str]]:
        """The ids of the entities of each name; concepts and rows of tables are none."""
        if not names:
            return {}
        plan = alg.ByName(tuple(names))
        made = Lowered(plan, [("", plan)])
        result: dict[str, list[str]] = {}
        for entity in self.graph._store_of(None).answer(Request("", "kopl", {}, None, lambda *_: made)).entities:
            if entity.kind is EntityKind.ENTITY:
                result.setdefault(entity.name, []).append(entity.id)
        return result

    def _about(self, ident: str) -> str:
        """The first statements of an entity, to tell it from others of its name."""
        plan = alg.Scan(alg.ById((ident,)), None, "subject", "subject")
        made = Lowered(plan, [("", plan)])
        answer = self.graph._store_of(None).answer(Request("", "kopl", {}, 3, lambda *_: made))
        return "; ".join(f"{item.predicate} {_text(item.object)}" for item in list(answer.evidence)[:3])

    def _check_texts(self, program: str) -> None:
        """Raise `UnknownNameError` for a text that a query in Cypher looks for and nothing has: a count of what
        it would have matched is 0, and as good as sure.
        """
        store = self.graph._store_of(None)
        for key, text in islice(_texts_of(parse_cypher(unfenced(program)).query), MOST_TRIED):
            check()
            values = alg.Scan(None, (key,), "subject", "subject", "attribute")
            if plan_texts(store, alg.Names(alg.ByName((text,))), 1) or plan_texts(
                store, alg.Objects(alg.Where(values, alg.Compare("=", text))), 1
            ):
                continue
            if key == "name":
                known = known_of(store, self.graph._survey())
                names = known.linker.entities
                near = entities(text, known, [names.names[place] for place in names.folded(text)])[:MOST_NAMES]
            else:
                near = errors.nearest(text, plan_texts(store, alg.Distinct(alg.Objects(values)), _MOST_NEAR))
            raise errors.UnknownNameError("entity" if key == "name" else f"value of {key!r}", text, candidates=near)

    # -- patterns ----------------------------------------------------------------------------------

    def _pattern(self, begun: Attempt) -> Attempt:
        """The subgraphs nearest to a pattern, by the values of the unknown that is asked for."""
        begin = time.perf_counter()
        pattern = Pattern.of(begun.program)
        if (name := next((node.name for node in pattern.nodes if node.known and node.name in self.stands), None)) is not None:
            raise _misplaced(name, "a pattern cannot name")
        unknown = [node.name for node in pattern.nodes if not node.known]
        wanted = _asked_for(begun.program)
        group = wanted if wanted in unknown else unknown[0] if unknown else None
        self.seconds["resolve"] += time.perf_counter() - begin
        begin = time.perf_counter()
        answer = self.graph.match(pattern, k=None, group_by=group, limit=self.limit or 100, stretch=True, leave_out=True)
        _ = answer.values
        self.seconds["run"] += time.perf_counter() - begin
        stage: Stage | None = None if answer.values else "running"
        return replace(begun, answer=answer, stage=stage, error="" if stage is None else "no subgraph is like the pattern")


def _written(name: str, mark: str, language: str) -> str:
    """A name as a program has it, between the marks of the name that it takes the place of."""
    if mark:
        return mark + name.replace("\\", "\\\\").replace(mark, "\\" + mark) + mark
    if language == "cypher":
        return cypher_name(name, len(name))
    return json.dumps(name, ensure_ascii=False) if any(letter in name for letter in ",()\"'") else name


def stage_of(error: errors.CondgraphError) -> Stage:
    """Where a program ended: its text, its names and literals, or its run."""
    if isinstance(error, errors.ParseError) or (isinstance(error, errors.UnknownNameError) and error.kind in _OF_LANGUAGE):
        return "writing"
    if isinstance(error, (errors.UnknownNameError, errors.AmbiguousNameError, errors.LiteralError)):
        return "resolving"
    return "writing" if isinstance(error, errors.PlanError) else "running"


def _texts_of(query: Any) -> Iterator[tuple[str, str]]:
    """The properties that a query in Cypher compares with a text by `=`, and the texts."""
    stack = [query]
    while stack:
        item = stack.pop()
        if isinstance(item, expressions.Comparison) and item.operator == "=":
            for one, other in ((item.left, item.right), (item.right, item.left)):
                if (
                    isinstance(one, expressions.Property)
                    and isinstance(other, expressions.Constant)
                    and isinstance(other.value, str)
                ):
                    yield one.key, other.value
        # Properties of relationships are not those of nodes.
        if isinstance(item, RelationshipPattern):
            continue
        if isinstance(item, tuple):
            stack.extend(reversed(item))
        elif hasattr(item, "__dataclass_fields__") and not isinstance(item, expressions.Constant):
            stack.extend(getattr(item, name) for name in reversed(list(item.__dataclass_fields__)))


def _of_zero(answer: Answer) -> bool:
    """Whether rows have no more than zeros, nulls and empty lists, and rest on no statement."""
    return not any(cell for row in answer.values for cell in row) and not len(answer.evidence)


def _says(answer: Answer) -> bool:
    """Whether an answer says anything: a count of nothing is one too, where something was there to
    be counted. Rows of nulls are none.
    """
    if answer.columns and all(cell is None or cell == () for row in answer.values for cell in row):
        return False
    if answer.values in ([0], [False]):
        # Nothing was found because nothing compares: that is a fault, and no count.
        return not any("cannot be compared" in warning for warning in answer.warnings)
    return bool(answer.values)


def counts_nothing(answer: Answer) -> bool:
    """Whether an answer is a count of 0 of what several steps in a row left nothing of; where the last one alone does, 0 is
    as good as any number.
    """
    values = answer.values
    return len(values) == 1 and type(values[0]) is int and not values[0] and sum(not step.size for step in answer.trace) > 1


def _meaning(lowered: Lowered, meant: Mapping[str, alg.Entities]) -> Lowered:
    """A plan in which names stand for certain entities."""
    done: dict[int, alg.Node] = {}
    roots = [lowered.plan, *(node for _, node in lowered.steps)]
    for root in roots:
        for node in alg.postorder(root):
            if id(node) in done:
                continue
            fresh = rebuild(node, done)
            if isinstance(node, alg.ByName) and all(name in meant for name in node.names):
                parts = tuple(meant[name] for name in node.names)
                fresh = parts[0] if len(parts) == 1 else alg.Union(parts)
            elif isinstance(node, (alg.Filter, alg.Extend)):
                fresh = _of_meant(fresh, meant)
            done[id(node)] = fresh
    steps = [(label, done[id(node)]) for label, node in lowered.steps]
    notes = {id(done[key]): text for key, text in lowered.notes.items() if key in done}
    return Lowered(done[id(lowered.plan)], steps, lowered.warnings, notes, alg.postorder(done[id(lowered.plan)]))


def _of_meant(node: Any, meant: Mapping[str, alg.Entities]) -> Any:
    """A filter of rows, or one more column, that compares ids where it compared a name of `meant`."""

    def of_names(item: expressions.Expression, names: Sequence[Any]) -> expressions.Expression | None:
        if not (isinstance(item, expressions.Call) and item.name == "name" and any(name in meant for name in names)):
            return None
        entities = [meant.get(name, alg.ByName((name,))) for name in names]
        ids = [ident for one in entities if isinstance(one, alg.ById) for ident in one.ids]
        others = [name for one in entities if isinstance(one, alg.ByName) for name in one.names]
        listed = expressions.ListOf(tuple(map(expressions.Constant, ids)))
        tests: list[expressions.Expression] = [expressions.In(expressions.Call("elementid", item.arguments), listed)] if ids else []
        if others:
            tests.append(expressions.In(item, expressions.ListOf(tuple(map(expressions.Constant, others)))))
        return tests[0] if len(tests) == 1 else expressions.Or(tuple(tests))

    def of(expression: expressions.Expression) -> expressions.Expression | None:
        if isinstance(expression, expressions.Comparison) and expression.operator in ("=", "<>"):
            for one, other in ((expression.left, expression.right), (expression.right, expression.left)):
                if isinstance(other, expressions.Constant) and (made := of_names(one, [other.value])) is not None:
                    return made if expression.operator == "=" else expressions.Not(made)
        if isinstance(expression, expressions.In) and isinstance(expression.items, expressions.ListOf):
            values = [one.value for one in expression.items.items if isinstance(one, expressions.Constant)]
            if len(values) == len(expression.items.items):
                return of_names(expression.item, values)
        return None

    values = [getattr(node, name) for name in fields_of(node)]
    return type(node)(*[rebuilt_expression(value, of) if isinstance(value, expressions.Expression) else value for value in values])


def _texts_in(lowered: Lowered) -> set[str]:
    """The texts in the expressions of a plan over rows."""
    fields = [getattr(node, name) for node in alg.postorder(lowered.plan) for name in fields_of(node)]
    parts = [part for value in fields if isinstance(value, expressions.Expression) for part in expressions.walk(value)]
    return {part.value for part in parts if isinstance(part, expressions.Constant) and isinstance(part.value, str)}


def _misplaced(name: str, limit: str) -> errors.PlanError:
    """What is said of a word for an answer that stands where no entities can."""
    return errors.PlanError(f"{name} stands for the entities of an answer, which {limit}")


def _asked_for(program: str) -> str:
    """The unknown that a JSON pattern says is asked for."""
    try:
        result = json.loads(program)
    except (ValueError, RecursionError):
        return ""
    wanted = result.get("answer") if isinstance(result, dict) else None
    return " ".join(wanted.removeprefix("UNKNOWN").split()) if isinstance(wanted, str) else ""


def _text(value: Any) -> str:
    return str(getattr(value, "name", value))
