"""Functions of expressions that say of a term what its node says as RDF (`sparql.layout`): each gives
the literal of one predicate of the vocabulary, null where the node has none.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from condgraph.engine.errors import PlanError
from condgraph.engine.forms import FormedText
from condgraph.engine.iris import VALUE, date_of, nearest_double, value_name, year_of
from condgraph.engine.temporal import day_of
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, Quantity, Time, Unknown, Value


def _value(term: Any) -> Value | None:
    """The value that a term of a row is; None for what is no value."""
    if isinstance(term, bool):
        return "true" if term else "false"
    if isinstance(term, int | float | Decimal):
        return Quantity(term, NO_UNIT)
    return term if isinstance(term, str | Quantity | Time | Unknown) else None


def iri(term: Any) -> str:
    """The IRI of a value, from the base of its graph on."""
    value = _value(term)
    if value is None:
        raise PlanError("only entities and values have an IRI that a query can compare or order by")
    return VALUE + value_name(value)


def value(term: Any) -> Any:
    """`pred:value`: of a quantity its number as a double has it, of a text itself."""
    known = _value(term)
    if not isinstance(known, Quantity):
        return str(known) if isinstance(known, str) else None
    double = nearest_double(known.number)
    return known.number if double == known.number else double


def unit(term: Any) -> str | None:
    """`pred:unit`: of a quantity, and of a text with a form."""
    value = _value(term)
    return value.unit if isinstance(value, Quantity) else value.form if isinstance(value, FormedText) else None


def year(term: Any) -> int | None:
    """`pred:year`: of a time within one year."""
    return year_of(term) if isinstance(term, Time) else None


def date(term: Any) -> Time | None:
    """`pred:date`: of a time within one day."""
    return day_of(term.start // DAY_SECONDS) if isinstance(term, Time) and date_of(term) is not None else None


def bound(term: Any, which: str) -> int | None:
    """`pred:start`, `pred:end` or `pred:precision` of a time."""
    return int(getattr(term, which)) if isinstance(term, Time) else None
