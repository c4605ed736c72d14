"""Properties of other people's databases as cells: tests ask the property as it is wherever the
sample says its type, so that an index of the server answers; what is shown asks each value for its
type (`native.expressions`), since a sample has not seen all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from condgraph.cypher.layout.base import Cell, Direct, Field
from condgraph.cypher.native.expressions import fields, number_text
from condgraph.cypher.native.kinds import INFINITE, elements
from condgraph.cypher.native.mapping import Property
from condgraph.engine.values import DAY_SECONDS, Time

NUMBERS: Final = frozenset(("INTEGER", "FLOAT"))
#: Types of times that the server compares with each other as values are.
TIMES: Final = frozenset(("DATE", "LOCAL DATETIME", "ZONED DATETIME"))


def together(properties: Iterable[Property]) -> Property:
    """Several properties that are read alike as one, with the types of all."""
    several = list(properties)
    types: dict[str, int] = {}
    for one in several:
        for name, count in one.types:
            types[name] = types.get(name, 0) + count
    untidy = any(one.untidy for one in several)
    return replace(several[0], types=tuple(types.items()), sampled=sum(one.sampled for one in several), untidy=untidy)


#: Types of the server that are plain (`layout.base.Direct`).
_PLAIN: Final = {"STRING": "text", "BOOLEAN": "boolean", "INTEGER": "integer", "FLOAT": "float", "DATE": "day"}


def direct_of(held: str, one: Property) -> Direct | None:
    """A property as it is, where all of its values are of one plain type."""
    if one.reading != "itself" or one.untidy or not one.types:
        return None
    types = {kind for kind, _ in one.types}
    kind = "FLOAT" if types <= NUMBERS and "FLOAT" in types else next(iter(types)) if len(types) == 1 else ""
    return Direct(held, _PLAIN[kind], Held(held, one)) if kind in _PLAIN else None


def likeness(one: Property) -> tuple[str, str | None, bool, frozenset[str]]:
    """What properties have in common that one expression reads."""
    types = frozenset(name for kind, _ in one.types for name in elements(kind))
    for alike in (frozenset(("STRING", "BOOLEAN", "POINT")), NUMBERS):
        types = alike if types <= alike else types
    return one.reading, one.format, one.untidy, types


class Named(Cell):
    """A node as a value: its name, by which it is equal to a text, and its id."""

    __slots__ = ("_id", "_kind", "_name")

    def __init__(self, name: str, ident: str, kind: str) -> None:
        self._name, self._id, self._kind = name, ident, kind

    @property
    def whole(self) -> str:
        """A map; the name, which may be long to say, is said once."""
        return f"head([n IN [{self._name}] | {{kind: '{self._kind}', key: n, text: n, id: {self._id}, held: true}}])"

    def field(self, name: Field) -> str:
        """What an entity has."""
        return {"kind": f"'{self._kind}'", "key": self._name, "text": self._name, "id": self._id, "held": "true"}.get(name, "null")

    @property
    def ordered(self) -> str:
        """By name."""
        return self._name


class Held(Cell):
    """A value that is not null: an element of a property, or the property itself, which tests ask.
    Qualifiers keep no `raw` texts.
    """

    __slots__ = ("_fields", "_held", "_infinite", "_property", "_types")

    def __init__(self, held: str, one: Property, *, raw: bool = True) -> None:
        self._held, self._property = held, one
        types = frozenset(name for kind, _ in one.types for name in elements(kind))
        #: Whether a float of it may be infinite, which is no number.
        self._infinite = INFINITE in types
        self._types = types - {INFINITE} | {"FLOAT"} if self._infinite else types
        self._fields = lean(held, one, self._types) or full(held, one, self._types)
        if not raw and self._fields.pop("raw", None) is not None and one.reading == "number":
            # Without how it stood, a number is what it prints as.
            self._fields["text"] = f"coalesce(head([v IN [{self._fields['number']}] | {number_text('v')}]), {self._fields['text']})"

    def field(self, name: Field) -> str:
        """An expression that holds of whatever type the value is."""
        return self._fields.get(name, "null")

    @property
    def whole(self) -> str:
        """A map of all fields that are not null for sure."""
        return f"{{{', '.join(f'{name}: {expression}' for name, expression in self._fields.items())}}}"

    @property
    def ordered(self) -> str:
        """The text."""
        return self.text

    @property
    def _own(self) -> frozenset[str]:
        """The types of a property that is compared as it is; none where it is read as something."""
        return self._types if self._property.reading == "itself" else frozenset()

    def tested(self, name: Field) -> str:
        """The property itself, where it is of one type: a comparison with another is null."""
        own = self._own
        if own and own <= NUMBERS and not self._infinite and name in ("number", "unit"):
            return self._held if name == "number" else "'1'"
        if own == {"STRING"} and name == "key" and not self._property.untidy:
            return self._held
        return self.field(name)

    def timed(self, operator: str, value: Time, parameter: Callable[[Any], str]) -> str | None:
        """A test of a time by the property itself; None where values are of several types, or the
        bounds too far away for the driver.
        """
        own = self._own
        if len(own) != 1 or not own <= TIMES:
            return None
        sides = {
            "=": ((">=", value.start, True), ("<", value.end, False)),
            "!=": (("<", value.start, False), (">=", value.end, True)),
            "<": (("<", value.start, False),),
            ">": ((">=", value.end, True),),
            "<=": (("<", value.end, False),),
            ">=": ((">=", value.start, True),),
        }[operator]
        try:
            bounds = [(sign, _bound(seconds, up, next(iter(own)))) for sign, seconds, up in sides]
        except OverflowError:
            return None
        tests = [f"{self._held} {sign} {parameter(bound)}" for sign, bound in bounds]
        return f"({(' OR ' if operator == '!=' else ' AND ').join(tests)})"


def _bound(seconds: int, up: bool, kind: str) -> date | datetime:
    """A bound in seconds as a parameter; of days the next one (`up`) or the one it lies in."""
    if kind == "DATE":
        return date(1970, 1, 1) + timedelta(days=-(-seconds // DAY_SECONDS) if up else seconds // DAY_SECONDS)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return moment if kind == "ZONED DATETIME" else moment.replace(tzinfo=None)


def lean(held: str, one: Property, types: frozenset[str]) -> dict[Field, str] | None:
    """The fields where the sample has one type of texts or numbers, which is short to say, and quick
    for the server to plan: a value of another type is then what the server prints. None for others.
    """
    if one.reading not in ("itself", "text"):
        return None
    text = f"coalesce(toStringOrNull({held}), 'unknown')"
    if types <= {"STRING", "BOOLEAN", "POINT"} and not one.untidy:
        return {"kind": "'text'", "text": text, "key": text}
    if types <= NUMBERS and one.reading == "itself":
        test = f"{held} IS :: INTEGER NOT NULL" if types == {"INTEGER"} else f"{held} IS :: INTEGER NOT NULL | FLOAT NOT NULL"
        number = test
        if "FLOAT" in types:
            test = f"CASE WHEN {number} THEN {held} - {held} = 0 ELSE false END"
            whole = f"CASE WHEN {number} THEN abs({held}) < 1e15 AND {held} = toInteger({held}) ELSE false END"
            text = f"CASE WHEN {whole} THEN toString(toInteger({held})) ELSE {text} END"
        return {
            "kind": f"CASE WHEN {test} THEN 'quantity' ELSE 'text' END",
            "text": text,
            "key": f"CASE WHEN {test} THEN null ELSE {text} END",
            "number": f"CASE WHEN {test} THEN {held} END",
            "unit": f"CASE WHEN {test} THEN '1' END",
        }
    return None


def full(held: str, one: Property, types: frozenset[str]) -> dict[Field, str]:
    """The fields of a value of several types, or that is read as something."""
    found = {name: text for name, text in fields(held, one, types).items() if text != "null"}
    # Integers stay what they are, which tells all their digits.
    found.pop("exact", None)
    found.pop("order", None)
    if "number" in found:
        found["number"] = found["number"].replace(f"{held} IS :: INTEGER THEN toFloat({held})", f"{held} IS :: INTEGER THEN {held}")
    kind = found["kind"]
    found["key"] = found["text"] if kind == "'text'" else f"CASE WHEN {kind} = 'text' THEN {found['text']} END"
    return found


class Either(Cell):
    """The object of a statement of any family: a node, or a map with the fields of a cell. Nothing
    of an application's node is taken for a field.
    """

    __slots__ = ("_entity", "_whole")

    def __init__(self, whole: str, entity: Cell) -> None:
        self._whole, self._entity = whole, entity

    def _chosen(self, of_node: str, of_value: str) -> str:
        return f"CASE WHEN {self._whole} IS :: NODE NOT NULL THEN {of_node} ELSE {of_value} END"

    @property
    def whole(self) -> str:
        """The map of either."""
        return self._chosen(self._entity.whole, self._whole)

    def field(self, name: Field) -> str:
        """What the map has, or what the node is as a value."""
        return self._chosen(self._entity.field(name), f"{self._whole}.{name}")

    @property
    def ordered(self) -> str:
        """The name, or the text."""
        return self._chosen(self._entity.text, f"coalesce({self._whole}.order, {self._whole}.text)")


#: The numbers of a text that begins with one, as `engine.execute.aggregates` has them; of texts of
#: at most so many characters.
_RANKED: Final = 300
_LEADING: Final = r"(?s)[^\\w+\\-−]{0,3}[-+−]?(\\d{1,3}(,\\d{3})+|\\d+)(\\.\\d+)?(?![\\d:]).*"


def ranks_of(text: str) -> str:
    """The numbers of a text that begins with one; null of others."""
    digits = "['0','1','2','3','4','5','6','7','8','9','.',',']"
    spaced = f"reduce(t = '', c IN split({text}, '') | t + CASE WHEN c IN {digits} THEN c ELSE ' ' END)"
    whole = r"x =~ '\\d{1,3}(,\\d{3})+(\\.\\d+)?[.,]?'"
    words = f"reduce(ws = [], x IN split({spaced}, ' ') | ws + CASE WHEN {whole} THEN [replace(x, ',', '')] ELSE split(x, ',') END)"
    return (
        f"CASE WHEN size({text}) <= {_RANKED} AND {text} =~ '{_LEADING}' "
        f"THEN [w IN {words} WHERE toFloatOrNull(w) IS NOT NULL | toFloat(w)] END"
    )
