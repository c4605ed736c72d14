"""What a model is told of a program that gave no answer, so that it can put it right: what was
wrong and where, the nearest names, and what the things in it have instead.

Errors of the library speak to people who write Python; a model is told the names, and nothing of
functions or options that it cannot call.
"""

from __future__ import annotations

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
from condgraph.names.resolve import resolve
from condgraph.names.words import near_names
from condgraph.overview.words import quoted, unmarked

if TYPE_CHECKING:
    from condgraph.ask.known import Known
    from condgraph.ask.records import Attempt

#: Characters of a program's part that is wrong, and of the whole feedback.
_PART: Final = 60
MOST: Final = 1_500
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
    return unmarked(shortened("\n".join(line for line in lines if line), MOST))


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


_COMPARED: Final = re.compile(r"values? \((\w+)(?: in ([^)]+))?\) cannot be compared with an? (\w+)")


def _brackets(program: str) -> str:
    """Whether parentheses and quotes are closed."""
    opened, closed = program.count("("), program.count(")")
    if opened != closed:
        return f"It has {opened} opening and {closed} closing parentheses."
    return "A double quote is not closed." if program.count('"') % 2 else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)
