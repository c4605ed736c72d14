"""Native functions that compare, and what holds: the truth of an operand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from condgraph.engine.bounds import check
from condgraph.engine.facts import Entity
from condgraph.engine.operands import DIGITS, Inapplicable, Operand, Options, alike, exact, measure_of, year_of
from condgraph.engine.pieces import set_of, watched
from condgraph.engine.values import Quantity, Time, collapse, text_of

#: Comparison of two numbers by operator.
OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    ">": lambda a, b: bool(a > b),
    "<=": lambda a, b: bool(a <= b),
    ">=": lambda a, b: bool(a >= b),
}


def compared(left: Any, right: Any, operator: str, what: str) -> bool:
    """Whether two values compare so: numbers of one unit, times by their intervals, texts by their
    letters without case.
    """
    a, b = measure_of(left), measure_of(right)
    if isinstance(a, Time) and isinstance(b, Quantity):
        a = Quantity(year_of(a))
    if isinstance(b, Time) and isinstance(a, Quantity):
        b = Quantity(year_of(b))
    if isinstance(a, Time) and isinstance(b, Time):
        return _times(a, b, operator)
    if isinstance(a, Quantity) and isinstance(b, Quantity):
        a, b, _ = alike(a, b, what)
        return OPERATORS[operator](exact(a.number), exact(b.number))
    one, two = (collapse(_text(value)).casefold() for value in (left, right))
    return OPERATORS[operator](one, two)


def _times(a: Time, b: Time, operator: str) -> bool:
    if operator == "=":
        return a.start >= b.start and a.end <= b.end
    if operator == "!=":
        return a.end <= b.start or a.start >= b.end
    # Which of two is earlier has an answer for times that overlap as well: by start, then by end.
    return OPERATORS[operator]((a.start, a.end), (b.start, b.end))


def _text(value: Any) -> str:
    return value.name if isinstance(value, Entity) else text_of(value)


def _best(operand: Operand, operator: str, what: str) -> Operand:
    """The value that competes where a side has several: the largest for `>`, the smallest for `<`."""
    if len(set_of(operand.texts)) < 2 or operator in ("=", "!="):
        return operand
    pairs = dict(watched(zip(operand.texts, operand.values, strict=True)))
    best: Operand | None = None
    for text, value in watched(pairs.items(), _FEW):
        one = Operand([value], [text], operand.remarks)
        if best is None or compared(*_sides([one, best], what), ">" if operator in (">", ">=") else "<", what):
            best = one
    assert best is not None
    operand.remarks.append(f"{what}: of {len(pairs)} values {best.texts[0]!r} competes")
    return best


def _sides(arguments: Sequence[Operand], what: str) -> tuple[Any, Any]:
    """Two values to compare: as they are, or as the numbers in their texts where only that makes
    them comparable.
    """
    left, right = arguments[0].one(what), arguments[1].one(what)
    numeric = [measure_of(value) is not None for value in (left, right)]
    texts = arguments[0].texts[0], arguments[1].texts[0]
    if all(numeric) or (not any(numeric) and not all(map(DIGITS, texts))):
        return left, right
    return arguments[0].measure(what), arguments[1].measure(what)


def compare(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The winner of two (`mode` "winner": the third or fourth argument, which name them), a truth
    value, or one of two words.
    """
    operator = options.get("operator", ">")
    left, right = _sides([_best(one, operator, "compare") for one in arguments[:2]], "compare")
    mode = options.get("mode", "winner")
    if mode == "truth":
        return [compared(left, right, operator, "compare")]
    if mode == "words":
        more, less = options["words"].split("/")
        if compared(left, right, "=", "compare") and compared(right, left, "=", "compare"):
            return ["equal"]
        return [more if compared(left, right, operator, "compare") else less]
    if operator in ("=", "!="):
        return [compared(left, right, operator, "compare")]
    wins = compared(left, right, operator, "compare")
    if not wins and not compared(right, left, operator, "compare"):
        return [*arguments[2].values, *arguments[3].values]
    return list(arguments[2 if wins else 3].values)


#: Pairs of values that are compared one by one, at most.
MOST_PAIRS: Final = 250_000
#: Comparisons between two looks at the clock.
_FEW: Final = 1 << 10


def _check_size(arguments: Sequence[Operand], what: str) -> None:
    """Refuse to compare every value of one large set with every value of another."""
    if len(arguments[0]) * len(arguments[1]) > MOST_PAIRS:
        sizes = f"{len(arguments[0])} values with {len(arguments[1])}"
        raise Inapplicable(f"{what} would compare {sizes} one by one; max, min, count or set_intersection of them do not")


def relation(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """Whether any value of the first compares so with any of the second."""
    operator = options["operator"]
    for operand, side in zip(arguments, ("left", "right"), strict=True):
        if not len(operand):
            operand.remarks.append(f"{operator}: there is nothing on the {side}, which compares with nothing")
    if operator == "!=":
        return [not _any(arguments, "=")]
    return [_any(arguments, operator)]


def _any(arguments: Sequence[Operand], operator: str) -> bool:
    if operator == "=" and not set_of(arguments[0].texts).isdisjoint(arguments[1].texts):
        return True
    _check_size(arguments, operator)
    for left, text in zip(arguments[0].values, arguments[0].texts, strict=True):
        for right, other in watched(zip(arguments[1].values, arguments[1].texts, strict=True), _FEW):
            pair = [Operand([left], [text], arguments[0].remarks), Operand([right], [other], arguments[1].remarks)]
            one, two = _sides(pair, operator) if operator != "=" else (left, right)
            if compared(one, two, operator, operator):
                if operator == "=":
                    _note_case(left, right, arguments[0], "=")
                return True
    return False


def _note_case(left: Any, right: Any, operand: Operand, what: str) -> bool:
    """Say where two texts are the same but for case; always true."""
    one, two = _text(left), _text(right)
    if measure_of(left) is None and measure_of(right) is None and collapse(one) != collapse(two):
        operand.remarks.append(f"{what}: {one!r} and {two!r} are the same but for case or white space")
    return True


def equal(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """Whether two sets have the same members."""
    left, right = arguments
    if set_of(left.texts) == set_of(right.texts):
        return [True]
    _check_size(arguments, "equal")
    return [_subset(left, right) and _subset(right, left)]


def is_in(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """Whether all members of one set are in the other, or the text of one in a text of the other."""
    left, right = arguments
    if not len(left) or not len(right):
        return [False]
    ours, theirs = set_of(left.texts), set_of(right.texts)
    check()
    if ours <= theirs or theirs <= ours:
        return [True]
    _check_size(arguments, "is_in")
    return [_subset(left, right) or _subset(right, left) or _within(left, right) or _within(right, left)]


def _subset(left: Operand, right: Operand) -> bool:
    exactly = set(right.texts)
    return all(
        text in exactly or any(compared(a, b, "=", "=") and _note_case(a, b, left, "=") for b in watched(right.values, _FEW))
        for a, text in zip(left.values, left.texts, strict=True)
    )


def _within(left: Operand, right: Operand) -> bool:
    return all(any(one.casefold() in other.casefold() for other in watched(right.texts, _FEW)) for one in left.texts)


def truth(operand: Operand) -> bool:
    """A truth value as it is; anything else holds where there is something that is neither 0 nor a
    word for no.
    """
    if len(operand) == 1:
        value = operand.values[0]
        if isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            return value != 0
        if isinstance(value, str):
            return value.casefold() not in ("no", "false", "")
    return len(operand) > 0
