"""A model's reply: the program in it, whether it declines, and the feedback on what went wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from condgraph.engine.errors import (
    AmbiguousNameError,
    CondgraphError,
    UnknownNameError,
    nearest,
    shortened,
)
from condgraph.languages.kopl.table import COMPARED, FUNCTIONS
from condgraph.languages.llm.functions import TABLE
from condgraph.languages.llm.syntax.tokens import AN_OUTPUT
from condgraph.names.vocabulary import resolve
from condgraph.names.words import near_names
from condgraph.overview.schema import quoted, unmarked

if TYPE_CHECKING:
    from condgraph.ask.prompt import Known
    from condgraph.ask.records import Attempt


# -- reply -------------------------------------------------------------------------------------------
# Nothing is put together here: what is parsed is one connected piece of the reply, or the text of one
# JSON string of it. Every reader is linear in the length of the reply, which is cut at `MOST`.


#: Characters of a reply that are looked at; programs have at most a few thousand.
MOST: Final = 100_000
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
    r"(?:cannot|can't|can not|could not|couldn't|unable to|not able to|not possible to) (?:be )?(?:answer|determine|find|say)|"
    r"(?:no|not enough|insufficient|lacks?(?: the)?) (?:information|data|answer)|"
    r"(?:does not|doesn't|do not|don't) (?:contain|include|say|provide))",
    re.IGNORECASE,
)
#: Keys of JSON replies that hold the program.
_KEYS: Final = ("program", "query", "kopl", "code")


def declines(reply: str) -> bool:
    """Whether the model says that the data does not answer the question."""
    return len(reply) < 40 and _NONE.fullmatch(reply) is not None


def gives_up(reply: str) -> bool:
    """Whether a reply that has no program says in a sentence or two that there is no answer."""
    return len(reply) < 400 and _GIVES_UP.search(" ".join(reply.replace("’", "'").split())) is not None


def program_in(reply: str, via: str) -> tuple[str, str] | None:
    """The program of a reply and its language ("llm_query", "kopl", "pattern"); None where there is
    nothing that looks like one. `via` is what was asked for: "query", "kopl" or "pattern".

    >>> program_in('Sure! ```' + chr(10) + 'Find(Nepal) QueryName()' + chr(10) + '```', "kopl")
    ('Find(Nepal) QueryName()', 'kopl')
    """
    text = reply[:MOST]
    for piece in _pieces(text):
        found = _program(piece, via)
        if found is not None:
            return found
    return None


def _pieces(text: str) -> list[str]:
    """What may be the program, the likeliest first: the text of a JSON object, what stands in
    fences, the whole.
    """
    found = []
    marks = [(one.start(), one.end()) for one in _FENCE.finditer(text)]
    for number in range(0, len(marks), 2):
        # A reply that was cut off ends within its fence.
        stop = marks[number + 1][0] if number + 1 < len(marks) else len(text)
        inside = text[marks[number][1] : stop].strip("\n")
        if inside.strip():
            found.append(inside)
    if not found:
        stripped = text.strip()
        # One line in marks of code.
        found.append(stripped.strip("`") if stripped[:1] == "`" and "\n" not in stripped else text)
    told = [inner for piece in found for inner in _told(piece)]
    return [*told, *found, *([text] if marks else [])]


def _told(text: str) -> list[str]:
    """The program that a JSON object has under one of the usual keys."""
    if text.lstrip()[:1] != "{":
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    inner = [found[key] for key in _KEYS if isinstance(found, dict) and isinstance(found.get(key), (str, list))]
    return [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in inner]


def _program(text: str, via: str) -> tuple[str, str] | None:
    if not text.strip():
        return None
    if via == "pattern":
        # Models write a word or two before the object; what is no pattern is complained of by its
        # reader.
        at = min((place for mark in ("{", "[", "(") if (place := text.find(mark)) >= 0), default=-1)
        return None if at < 0 else (text[at:].strip(), "pattern")
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
    found = _KOPL.search(text)
    at = begins.end() if begins is not None else found.start() if found is not None else 0
    kept: list[str] = []
    for line in text[at:].split("\n"):
        if kept and line.strip() and "(" not in line:
            break
        kept.append(line.strip())
    joined = " ".join(line for line in kept if line)
    return joined.rstrip("`\"'.; \t") if joined.rstrip("`\"'.; \t").endswith(")") else joined


# -- feedback ----------------------------------------------------------------------------------------
# What a model is told of a program that gave no answer, so that it can put it right: what was
# wrong and where, the nearest names, and what the things in it have instead.
#
# Errors of the library speak to people who write Python; a model is told the names, and nothing of
# functions or options that it cannot call.


#: Characters of a program's part that is wrong, and of the whole feedback.
_PART: Final = 60
MOST_FEEDBACK: Final = 1_500
#: Names that are offered for one.
MOST_NAMES: Final = 8
_FUNCTIONS: Final = ", ".join(one.name for one in TABLE)
#: What a hint for people says that is of no use to a model.
_FOR_PEOPLE: Final = ("status()", "source=", "timeout=", "limit=", "llm_function=", "graph.", "put in double quotes in")


def feedback_of(attempt: Attempt, known: Known) -> str:
    """What went wrong with an attempt, in a few lines with the nearest names."""
    if attempt.answer is not None:
        lines = _of_nothing(attempt)
    elif attempt.failure is not None:
        lines = _of_error(attempt, attempt.failure, known)
    else:
        lines = [attempt.error]
    return unmarked(shortened("\n".join(line for line in lines if line), MOST_FEEDBACK))


def _of_error(attempt: Attempt, error: CondgraphError, known: Known) -> list[str]:
    lines = [f"{attempt.language}: {error.message}"]
    if error.span is not None and error.span[1] > error.span[0]:
        part = attempt.program[error.span[0] : error.span[1]]
        if part.strip():
            lines.append(f"It stands here: {quoted(part.strip(), _PART)}")
    if isinstance(error, AmbiguousNameError):
        lines.append(f"Say which with source=: {_listed(error.candidates[:8])}")
    elif isinstance(error, UnknownNameError):
        near = candidates(error, known)
        if near:
            lines.append(f"Nearest names: {_listed(near)}")
        lines.append(_qualifier(error, known))
        if error.kind == "function" and attempt.language == "llm_query":
            lines.append(f"The functions are {_FUNCTIONS}.")
    elif error.candidates:
        lines.append(f"Nearest names: {_listed(error.candidates)}")
    if error.hint and not any(word in error.hint for word in _FOR_PEOPLE):
        lines.append(error.hint[:1].upper() + error.hint[1:])
    if error.code == "parse":
        lines.append(_brackets(attempt.program))
    return lines


def candidates(error: UnknownNameError, known: Known) -> list[str]:
    """The names that may be meant, best first: those of the error, then by words and letters among
    the names of its kind.
    """
    found = list(error.candidates)
    output = AN_OUTPUT.fullmatch(error.name.strip())
    if output is not None and error.kind != "output":
        found = [f"output_of_query{output[1]}", *found]
    if error.name in known.qualifiers.names and error.kind in ("relation", "attribute"):
        return found[:MOST_NAMES]
    if error.kind == "key":
        return found[:MOST_NAMES]
    if error.kind in ("relation", "attribute", "predicate"):
        found += near_names(error.name, known.predicates.names)
    elif error.kind == "concept":
        found += near_names(error.name, known.concepts.names)
    elif error.kind == "qualifier":
        found += near_names(error.name, known.qualifiers.names)
    elif error.kind == "KoPL function":
        found += _functions(error.name)
    elif error.kind in ("entity", "head_entity", "head", "subject"):
        found = entities(error.name, known, found)
    if not found and error.kind in ("relation", "attribute", "concept", "predicate"):
        names = known.concepts if error.kind == "concept" else known.predicates
        order = sorted(known.of_kind(error.kind), key=lambda at: (-names.sizes[at], names.names[at]))
        found = [names.names[at] for at in order]
    return list(dict.fromkeys(found))[:MOST_NAMES]


def _qualifier(error: UnknownNameError, known: Known) -> str:
    """Which facts have a qualifier that was taken for a predicate."""
    if error.kind not in ("relation", "attribute") or error.name not in known.qualifiers.names:
        return ""
    rows = [one for one in known.survey["predicates"] if any(key == error.name for key, _ in one[4])]
    rows.sort(key=lambda one: -(one[1] + one[2]))
    return f"Facts of these have it: {_listed([one[0] for one in rows[:MOST_NAMES]])}"


def entities(name: str, known: Known, found: Sequence[str] = ()) -> list[str]:
    """Names of entities like one: among those that share pieces of it, the ones whose letters are
    the nearest come first.
    """
    near = resolve(name, known.linker.entities, threshold=2.0, most=40).near
    some = list(dict.fromkeys([*found, *(match.name for match in near)]))
    alike = nearest(name, some, most=6)
    return list(dict.fromkeys([*alike, *some]))


def _functions(name: str) -> list[str]:
    """KoPL functions that a wrong one may mean: models write GetCapital for Relate(capital, ...)."""
    folded = name.casefold()
    asks = [one for word, one in _MEANT if word in folded]
    return list(dict.fromkeys([*nearest(name, FUNCTIONS), *asks, "Relate", "QueryAttr"]))


_MEANT: Final = (
    ("filter", "FilterConcept"), ("select", "SelectAmong"), ("count", "Count"), ("name", "QueryName"),
    ("intersect", "And"), ("union", "Or"), ("verify", "VerifyStr"), ("max", "SelectAmong"), ("min", "SelectAmong"),
)  # fmt: skip


def _of_nothing(attempt: Attempt) -> list[str]:
    """A program that ran and gave nothing: the step that did, what its things have instead, and
    what was left out on the way.
    """
    answer = attempt.answer
    assert answer is not None
    lines = ["The program ran and gave nothing."]
    warnings = [one for one in answer.warnings if not one.startswith("the answer does not need")]
    lines += [one[:1].upper() + one[1:] for one in warnings[:4]]
    if attempt.language == "kopl":
        lines += _of_types(warnings)
    return lines


def _of_types(warnings: Sequence[str]) -> list[str]:
    """Which functions compare values of the types that a program compared with something else."""
    found: dict[str, None] = {}
    for one in warnings:
        compared = _COMPARED.search(one)
        if compared is None:
            continue
        has, unit, given = compared.groups()
        if has == given == "quantity" and unit:
            found[f"Numbers here have a unit: write it behind the number, as in 5 {unit}."] = None
        for kind, (called, ending) in COMPARED.items():
            if has == kind.name.lower() != given:
                found[f"Values that are {called} are compared by Filter{ending}, qualifiers by QFilter{ending}."] = None
    return list(found)


_COMPARED: Final = re.compile(r"values? \((\w+)(?: without a unit| in ([^)]+))?\) cannot be compared with an? (\w+)")


def _brackets(program: str) -> str:
    """Whether parentheses and quotes are closed."""
    opened, closed = program.count("("), program.count(")")
    if opened != closed:
        return f"It has {opened} opening and {closed} closing parentheses."
    return "A double quote is not closed." if program.count('"') % 2 else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)
