"""Parameters of programs: `$name` takes the place of a name or value, which is supplied at run time.

A program with parameters is parsed once, into a template of its language. Values are put into the
parsed program, never into a text, so no quote, bracket or operator in a value is ever interpreted. A
value is a text (a name, or a value as the language reads it), a number or a time. In the forms of a
language that quote every name (JSON, tuples), `$$name` is the text `$name`.
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
    """The name of a parameter, in the place of a text in a parsed program."""

    __slots__ = ()


class GivenText(str):
    """The text of a parameter's value; `value` is the value that the caller passed."""

    parameter: str
    value: Any

    @classmethod
    def of(cls, parameter: str, text: str, value: Any = None) -> GivenText:
        result = cls(text)
        result.parameter, result.value = parameter, text if value is None else value
        return result


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A Cypher query with the values of its parameters."""

    text: str
    parameters: Mapping[str, Any]


class Template(Protocol):
    """A parsed program with parameters."""

    language: ClassVar[str]
    #: Its parameters in the order of their first mention.
    parameters: tuple[str, ...]
    #: The parameters that are always names of entities, so that the plan is the same for each value.
    entities: frozenset[str]

    def bind(self, values: Mapping[str, GivenText]) -> Any:
        """Return the program with these values, as the language's `lower` takes it."""
        ...


def hole(text: str) -> Hole | None:
    """Return the parameter that a text consists of, or None."""
    match = _PARAMETER.fullmatch(text)
    return None if match is None else Hole(match[1])


def hole_or_text(text: str) -> str:
    """Return the parameter that a quoted text consists of, else the text; `$$name` is the text `$name`."""
    escaped = _ESCAPED.fullmatch(text)
    return escaped[1] if escaped is not None else hole(text) or text


def in_order(names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(str, names)))


# -- values ----------------------------------------------------------------------------------------


def given(parameters: tuple[str, ...], values: Mapping[str, Any]) -> dict[str, GivenText]:
    """Return a text for each parameter.

    Raises `OptionError` if values are missing, belong to no parameter, or have an unsupported type.
    """
    if values.keys() != set(parameters):
        unknown = [name for name in values if name not in parameters]
        missing = [name for name in parameters if name not in values]
        takes = f"it takes: {', '.join(parameters)}" if parameters else "a parameter is written $name, without quotes"
        if unknown:
            message = f"the program has no parameter {str(unknown[0])!r}"
            raise OptionError(message, candidates=nearest(str(unknown[0]), missing or parameters), hint=takes)
        raise OptionError(f"no value is given for {', '.join(missing)}", hint=takes)
    return {name: GivenText.of(name, text_for(name, values[name]), values[name]) for name in parameters}


def text_for(parameter: str, value: Any) -> str:
    """Return a value as it is written in a program; raises `OptionError` for an unsupported type."""
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
