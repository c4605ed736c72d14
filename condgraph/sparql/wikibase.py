"""Values as plain literals, and as Wikibase's model writes them: the direct literal, and the value
node that says precision or unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from condgraph.engine.facts import Ref
from condgraph.engine.terms import number_type
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, Precision, Quantity, Time, civil, format_number
from condgraph.sparql.layout import RDF, value_name
from condgraph.sparql.literals import XSD, string

if TYPE_CHECKING:
    from condgraph.engine.values import Value

ONTOLOGY: Final = "http://wikiba.se/ontology#"
#: Wikibase's numbers of precisions.
_PRECISIONS: Final = {Precision.YEAR: 9, Precision.MONTH: 10, Precision.DAY: 11, Precision.SECOND: 14}
_TIMES: Final = {
    Precision.YEAR: ("gYear", 1),
    Precision.MONTH: ("gYearMonth", 2),
    Precision.DAY: ("date", 3),
    Precision.SECOND: ("dateTime", 6),
}


def literal_of(value: Value, language: str | None = None, *, wikibase: bool = False) -> str:
    """A value as a literal of XML Schema; the unit of a quantity is not in it. In Wikibase's model
    numbers are decimals, and times moments.

    >>> literal_of(Quantity(1.5, "metre")), literal_of(Time.year(-44))
    ('"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', '"-0044"^^<http://www.w3.org/2001/XMLSchema#gYear>')
    """
    if isinstance(value, Quantity):
        text = format_number(value.number)
        if wikibase:
            return f'"{text if text.startswith("-") else "+" + text}"^^<{XSD}decimal>'
        return f'"{text}"^^<{number_type(text)}>'
    if isinstance(value, Time):
        if wikibase and value.precision in _PRECISIONS:
            return f'"{_moment(value)}Z"^^<{XSD}dateTime>'
        name, parts = _TIMES.get(value.precision, ("", 0))
        if not name:
            return string(str(value))
        size = (0, 1, 2, 3)[min(parts, 3)]
        date, _, clock = _moment(value).partition("T")
        sign, plain = ("-", date[1:]) if date.startswith("-") else ("", date)
        short = sign + "-".join(plain.split("-")[:size])
        return f'"{short}{"T" + clock + "Z" if parts > 3 else ""}"^^<{XSD}{name}>'
    text = string(str(value))
    return text if language is None else f"{text}@{language}"


def _moment(value: Time) -> str:
    year, month, day = civil(value.start // DAY_SECONDS)
    seconds = value.start % DAY_SECONDS
    sign = "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def value_node(value: Ref | Value, place: str) -> Iterator[tuple[str, str, str]]:
    """The triples of Wikibase's value node of a time of a precision, or of a quantity; none for
    other values. `place` is what its IRI begins with.
    """
    a = f"<{RDF}type>"
    if isinstance(value, Time) and value.precision in _PRECISIONS:
        node = f"<{place}{value_name(value)}>"
        yield node, a, f"<{ONTOLOGY}TimeValue>"
        yield node, f"<{ONTOLOGY}timeValue>", literal_of(value, wikibase=True)
        yield node, f"<{ONTOLOGY}timePrecision>", f'"{_PRECISIONS[value.precision]}"^^<{XSD}integer>'
    elif isinstance(value, Quantity) and value.unit != NO_UNIT:
        node = f"<{place}{value_name(value)}>"
        yield node, a, f"<{ONTOLOGY}QuantityValue>"
        yield node, f"<{ONTOLOGY}quantityAmount>", literal_of(value, wikibase=True)
        yield node, f"<{ONTOLOGY}quantityUnit>", string(value.unit)
