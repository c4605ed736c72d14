"""Functions of expressions that return the RDF literals of a term (`sparql.layout`), one for each predicate of the
vocabulary; null if the term has none.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from condgraph.engine.errors import PlanError
from condgraph.engine.iris import VALUE, date_of, nearest_double, value_name, year_of
from condgraph.engine.temporal import day_of
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, FormedText, Quantity, Time, Unknown, Value


def _value(term: Any) -> Value | None:
    """Return a term of a row as a value; None if it is not one."""
    if isinstance(term, bool):
        return "true" if term else "false"
    if isinstance(term, int | float | Decimal):
        return Quantity(term, NO_UNIT)
    return term if isinstance(term, str | Quantity | Time | Unknown) else None


def iri(term: Any) -> str:
    """Return the IRI of a value, relative to the base of its graph."""
    value = _value(term)
    if value is None:
        raise PlanError("only entities and values have an IRI that a query can compare or order by")
    return VALUE + value_name(value)


def value(term: Any) -> Any:
    """`pred:value`: the number of a quantity, as a double stores it, or a text."""
    own_value = _value(term)
    if not isinstance(own_value, Quantity):
        return str(own_value) if isinstance(own_value, str) else None
    double = nearest_double(own_value.number)
    return own_value.number if double == own_value.number else double


def unit(term: Any) -> str | None:
    """`pred:unit`: the unit of a quantity, or the form of a text."""
    value = _value(term)
    return value.unit if isinstance(value, Quantity) else value.form if isinstance(value, FormedText) else None


def year(term: Any) -> int | None:
    """`pred:year`: the year of a time within one year."""
    return year_of(term) if isinstance(term, Time) else None


def date(term: Any) -> Time | None:
    """`pred:date`: the day of a time within one day."""
    return day_of(term.start // DAY_SECONDS) if isinstance(term, Time) and date_of(term) is not None else None


def bound(term: Any, which: str) -> int | None:
    """`pred:start`, `pred:end` or `pred:precision` of a time."""
    return int(getattr(term, which)) if isinstance(term, Time) else None
