"""The 27 functions of KoPL (KQA Pro, Table 6), the extension `Except`, and the linking of steps.

`FUNCTIONS` has the number of inputs and the texts of each function; the parser (`syntax`) and the
lowering rules rely on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from condgraph.engine.errors import ParseError, UnknownNameError, nearest
from condgraph.engine.values import Kind

Span = tuple[int, int]
#: The most steps of a program; real ones have a few dozen at most.
MAX_STEPS: Final = 2_000

OPERATORS: Final = ("=", "!=", "<", ">", "<=", ">=")
DIRECTIONS: Final = ("forward", "backward")
#: The words of arguments with a closed vocabulary.
CLOSED: Final[Mapping[str, tuple[str, ...]]] = {
    "op": OPERATORS,
    "direction": DIRECTIONS,
    "between": ("greater", "less"),
    "among": ("largest", "smallest"),
}


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments of a function: the number of earlier results, and the roles of its texts."""

    inputs: int
    texts: tuple[str, ...]


_FILTER: Final = ("key", "value", "op")
_QFILTER: Final = ("qkey", "qvalue", "op")
FUNCTIONS: Final[Mapping[str, Signature]] = {
    "FindAll": Signature(0, ()),
    "Find": Signature(0, ("name",)),
    "FilterConcept": Signature(1, ("concept",)),
    "FilterStr": Signature(1, ("key", "value")),
    "FilterNum": Signature(1, _FILTER),
    "FilterYear": Signature(1, _FILTER),
    "FilterDate": Signature(1, _FILTER),
    "QFilterStr": Signature(1, ("qkey", "qvalue")),
    "QFilterNum": Signature(1, _QFILTER),
    "QFilterYear": Signature(1, _QFILTER),
    "QFilterDate": Signature(1, _QFILTER),
    "Relate": Signature(1, ("relation", "direction")),
    "And": Signature(2, ()),
    "Or": Signature(2, ()),
    "Except": Signature(2, ()),  # an extension
    "QueryName": Signature(1, ()),
    "What": Signature(1, ()),  # QueryName, as the data set's first publication and the programs of its baselines call it
    "Count": Signature(1, ()),
    "QueryAttr": Signature(1, ("key",)),
    "QueryAttrUnderCondition": Signature(1, ("key", "qkey", "qvalue")),
    "QueryRelation": Signature(2, ()),
    "SelectBetween": Signature(2, ("key", "between")),
    "SelectAmong": Signature(1, ("key", "among")),
    "QueryAttrQualifier": Signature(1, ("key", "value", "qkey")),
    "QueryRelationQualifier": Signature(2, ("relation", "qkey")),
    "VerifyStr": Signature(1, ("value",)),
    "VerifyNum": Signature(1, ("value", "op")),
    "VerifyYear": Signature(1, ("value", "op")),
    "VerifyDate": Signature(1, ("value", "op")),
}


#: Names of roles in messages, where the short one is unclear.
_ROLE_NAMES: Final = {"key": "attribute", "qkey": "qualifier", "qvalue": "value", "op": "operator"}


def form(function: str) -> str:
    """Return how a function is written, with the words of a closed vocabulary.

    >>> form("Relate"), form("Find")
    ('Relate(relation, direction), where direction is forward or backward', 'Find(name)')
    """
    roles = FUNCTIONS[function].texts
    closed = [
        f"{_ROLE_NAMES.get(role, 'the last' if role in ('between', 'among') else role)} is {' or '.join(CLOSED[role])}"
        for role in roles
        if role in CLOSED
    ]
    words = ", ".join("word" if role in ("between", "among") else _ROLE_NAMES.get(role, role) for role in roles)
    return f"{function}({words})" + (f", where {closed[0]}" if closed else "")


#: What values of a type are called, and the ending of the functions that compare them.
COMPARED: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.TEXT: ("texts", "Str"),
    Kind.QUANTITY: ("numbers", "Num"),
    Kind.TIME: ("times", "Year"),
}
#: The number of inputs and of texts of each function.
SHAPES: Final = {name: (function.inputs, len(function.texts)) for name, function in FUNCTIONS.items()}


class Step(NamedTuple):
    """A function call: its texts, and the indices of the steps whose results it takes."""

    function: str
    texts: tuple[str, ...]
    dependencies: tuple[int, ...] = ()


class CallSpan(NamedTuple):
    """The position of a call in the text of a program, and of each of its texts."""

    call: Span
    texts: tuple[Span, ...]


#: Whether a text is a known name for a role; decides how to split where names contain commas.
Knows = Callable[[str, str], bool]


class Linked(NamedTuple):
    """A parsed program: its linked steps and warnings."""

    steps: list[Step]
    warnings: list[str]


Program = str | Sequence[Mapping[str, Any]] | Linked


def signature(function: str, span: Span | None = None, hint: str | None = None) -> Signature:
    """Return the table entry of a function; raises `UnknownNameError` with the nearest names and the hint."""
    result = FUNCTIONS.get(function)
    if result is None:
        if function.strip().casefold() in _FOLDED:
            hint = "names are case-sensitive and have no spaces"
        raise UnknownNameError("KoPL function", function, candidates=nearest(function, FUNCTIONS), span=span, hint=hint)
    return result


_FOLDED: Final = {name.casefold() for name in FUNCTIONS}


_BEGINS: Final = "a program begins with Find(name) or FindAll(), and every function takes the result before it"
_TWO: Final = "it takes the two sets before it: Find(...) ... Find(...) ... And()"


def link(steps: list[Step], places: Sequence[CallSpan] = ()) -> list[Step]:
    """Link steps in post-fix order: each function takes the latest results that are not yet used.

    Raises `ParseError` if results are missing or left over.
    """
    if not steps:
        raise ParseError("the program is empty", hint="such as: Find(LeBron James) Relate(drafted by, forward) QueryName()")
    linked: list[Step] = []
    stack: list[int] = []
    for i, step in enumerate(steps):
        needs = FUNCTIONS[step.function].inputs
        if len(stack) < needs:
            raise ParseError(
                f"{step.function} takes the results of {needs} earlier steps, and {len(stack)} are left",
                span=places[i].call if places else None,
                hint=_BEGINS if not i else _TWO if needs > 1 else None,
            )
        taken = tuple(stack[len(stack) - needs :])
        del stack[len(stack) - needs :]
        stack.append(i)
        linked.append(Step(step.function, step.texts, taken))
    if len(stack) > 1:
        raise ParseError(
            f"the result of {steps[stack[0]].function} is not used: {len(stack)} results are left at the end",
            span=places[stack[0]].call if places else None,
            hint="And(), Or() or Except() combines two sets",
        )
    return linked
