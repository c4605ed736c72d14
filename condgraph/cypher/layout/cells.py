"""Values in the text of a query: an expression for each field of a value, whatever it is stored as.

What compares, orders and prints values asks a `Cell` for the expressions it needs. A layout whose
values are nodes gives cells that read the properties of the node (`Bound`); one whose values are
plain properties gives cells that work each field out of the property (`Made`). Wherever a query
hands a value on as a whole, in a list or under a name, it hands on a node or map that has the
fields under their own names, and the next clause reads it as `Bound`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from condgraph.engine.values import UNKNOWN, Kind, Precision, Quantity, Time, Value, parse_number

#: The fields of a value. `kind` is "text", "quantity", "time", "entity" or "unknown", `text` what a
#: user reads, `raw` what stood in the source where that is something else. A text has `key`, by
#: which it is equal to another; a quantity `number` and `unit` ("1": none) and, where a float does
#: not tell all digits, `exact`; a time `start`, `end` (seconds) and `precision`. `order` and
#: `ranks` say how a value is ordered where the text or number does not. `id` is that of the entity
#: that the value is or names, `held` whether an answer lists this entity.
Field: TypeAlias = Literal[
    "kind", "text", "raw", "key", "number", "unit", "exact", "start", "end", "precision", "order", "ranks", "id", "held"
]

#: What an answer reads of a value: its fields, and what kind of entity it is and in which row it
#: stands, which is read from the entity.
Listed: TypeAlias = Field | Literal["of", "row"]
#: All that it reads where nothing is known of the value, in its order.
FIELDS: Final[tuple[Listed, ...]] = (
    *("kind", "text", "number", "exact", "unit", "start", "end", "precision", "raw", "id", "held", "of", "row"),
)

#: Types of values by the word in `kind`.
KINDS: Final = {kind.name.lower(): kind for kind in Kind}


class Cell(ABC):
    """A value in a query; `whole` is an expression for a node or map with all of its fields."""

    __slots__ = ()

    @property
    @abstractmethod
    def whole(self) -> str:
        """The value as a whole."""

    @abstractmethod
    def field(self, name: Field) -> str:
        """A field as an expression; null where the value has none."""

    @property
    @abstractmethod
    def ordered(self) -> str:
        """What texts (and entities, by name) are ordered by."""

    def tested(self, name: Field) -> str:
        """A field where a value of another type makes a comparison false or null anyway: that which an
        index has.
        """
        return self.field(name)

    def timed(self, operator: str, value: Time, parameter: Callable[[Any], str]) -> str | None:
        """A comparison with a time where that is none of seconds; `parameter` writes what it needs."""
        return None

    @property
    def kind(self) -> str:
        """The type."""
        return self.field("kind")

    @property
    def text(self) -> str:
        """The text."""
        return self.field("text")

    @property
    def raw(self) -> str:
        """How it stood in its source."""
        return self.field("raw")

    @property
    def key(self) -> str:
        """What tells texts apart."""
        return self.field("key")

    @property
    def number(self) -> str:
        """The number of a quantity, a float."""
        return self.field("number")

    @property
    def unit(self) -> str:
        """The unit of a quantity."""
        return self.field("unit")

    @property
    def start(self) -> str:
        """The first second of a time."""
        return self.field("start")

    @property
    def end(self) -> str:
        """The second behind a time."""
        return self.field("end")

    @property
    def precision(self) -> str:
        """The precision of a time, as a number (`engine.values.Precision`)."""
        return self.field("precision")

    @property
    def order(self) -> str:
        """What breaks ties among values that the server takes for equal."""
        return self.field("order")

    @property
    def ranks(self) -> str:
        """The numbers of a text that begins with one."""
        return self.field("ranks")

    @property
    def id(self) -> str:
        """The id of an entity."""
        return self.field("id")


class Bound(Cell):
    """A node or map that has the fields under their own names.

    >>> Bound("v3").number, Bound("x1.c").whole
    ('v3.number', 'x1.c')
    """

    __slots__ = ("_whole",)

    def __init__(self, whole: str) -> None:
        self._whole = whole

    @property
    def whole(self) -> str:
        """The node or map."""
        return self._whole

    def field(self, name: Field) -> str:
        """A property."""
        return f"{self._whole}.{name}"

    @property
    def ordered(self) -> str:
        """By what is there for it, else the text, else the name that an entity has."""
        whole = self._whole
        return f"coalesce({whole}.order, {whole}.text, {whole}.name)"


class Made(Cell):
    """A value whose fields are expressions; those that are not given are null.

    >>> height = Made({"kind": "'quantity'", "number": "toFloat(e.height)", "unit": "'1'"})
    >>> height.number, height.start
    ('toFloat(e.height)', 'null')
    >>> height.whole
    "{kind: 'quantity', number: toFloat(e.height), unit: '1'}"
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[Field, str]) -> None:
        self._fields = fields

    @property
    def whole(self) -> str:
        """A map of the fields."""
        return f"{{{', '.join(f'{name}: {expression}' for name, expression in self._fields.items())}}}"

    def field(self, name: Field) -> str:
        """What was given."""
        return self._fields.get(name, "null")

    @property
    def ordered(self) -> str:
        """By what is there for it, else the text."""
        return f"coalesce({self.order}, {self.text})" if "order" in self._fields else self.text


def value_of(fields: Mapping[str, Any]) -> Value:
    """The value, which is no entity, from what was read of its cell."""
    kind = fields["kind"]
    if kind == "text":
        return str(fields["text"])
    if kind == "quantity":
        number = fields["number"]
        exact = fields.get("exact")
        if exact is not None:
            return Quantity(parse_number(exact), fields["unit"])
        return Quantity(int(number) if float(number).is_integer() else number, fields["unit"])
    if kind == "time":
        return Time(fields["start"], fields["end"], Precision(fields["precision"]))
    return UNKNOWN
