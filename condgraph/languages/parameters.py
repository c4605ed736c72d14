"""Parameters of programs: `$name` stands where a name or a value would, and is given when the
program runs.

A program with parameters is read once, into a template of its language. Values are put into what
was read, never into a text, so that no quote, bracket or operator in a value can mean anything. A
parameter is a text (a name, or a value as the language reads it), a number or a time. Where a form
of a language has every name in quotes (JSON, tuples), `$$name` is the text `$name`.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from condgraph.engine.errors import OptionError, nearest
from condgraph.engine.values import Quantity, Time, format_number, text_of

_PARAMETER: Final = re.compile(r"\$([^\W\d]\w{0,99})")
_ESCAPED: Final = re.compile(r"\$(\$[^\W\d]\w{0,99})")


class Hole(str):
    """Where a value is missing: the name of the parameter, as a text of a program that was read."""

    __slots__ = ()


class GivenText(str):
    """The text of a value that was given for a parameter; `value` is what was given."""

    parameter: str
    value: Any

    @classmethod
    def of(cls, parameter: str, text: str, value: Any = None) -> GivenText:
        """A text for a parameter."""
        found = cls(text)
        found.parameter, found.value = parameter, text if value is None else value
        return found


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A Cypher query with the values of its parameters."""

    text: str
    parameters: Mapping[str, Any]


class Template(Protocol):
    """A program that was read, with its parameters."""

    language: ClassVar[str]
    #: The names of its parameters, in the order of their first mention.
    parameters: tuple[str, ...]
    #: Those of them that stand for names of entities alone: which one it is makes no difference to
    #: the plan.
    entities: frozenset[str]

    def bind(self, values: Mapping[str, GivenText]) -> Any:
        """The program with these values, as the language's `lower` takes it."""
        ...


def hole(text: str) -> Hole | None:
    """The parameter that a text is, as a whole; None for another text."""
    found = _PARAMETER.fullmatch(text)
    return None if found is None else Hole(found[1])


def hole_or_text(text: str) -> str:
    """The same of a text that stands in quotes in any case: `$$name` is the text `$name`."""
    escaped = _ESCAPED.fullmatch(text)
    return escaped[1] if escaped is not None else hole(text) or text


def in_order(names: list[str]) -> tuple[str, ...]:
    """Each name once, in order."""
    return tuple(dict.fromkeys(map(str, names)))


# -- values ----------------------------------------------------------------------------------------


def given(parameters: tuple[str, ...], values: Mapping[str, Any]) -> dict[str, GivenText]:
    """The texts of values, one for each parameter; raises `OptionError` for values that are
    missing, not asked for, or of a type that no program has.
    """
    if values.keys() != set(parameters):
        unknown = [name for name in values if name not in parameters]
        missing = [name for name in parameters if name not in values]
        takes = f"it takes: {', '.join(parameters)}" if parameters else "a parameter is written $name, without quotes"
        if unknown:
            what = f"the program has no parameter {str(unknown[0])!r}"
            raise OptionError(what, candidates=nearest(str(unknown[0]), missing or parameters), hint=takes)
        raise OptionError(f"no value is given for {', '.join(missing)}", hint=takes)
    return {name: GivenText.of(name, text_for(name, values[name]), values[name]) for name in parameters}


def text_for(parameter: str, value: Any) -> str:
    """How a value is written in a program."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float, Decimal, Fraction)) and not isinstance(value, bool):
        if isinstance(value, Fraction):
            if value.denominator == 1:
                return format_number(value.numerator)
        elif isinstance(value, int) or (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
            return format_number(value)
    if isinstance(value, (Quantity, Time)):
        return text_of(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    raise OptionError(
        f"the value of {parameter} is {type(value).__name__}: {value!r}"[:300],
        hint="a parameter is a text, a finite number (a Fraction where it is whole), a Quantity, a Time, a date or a datetime",
    )
