"""What a property of Neo4j is as a value: one table from the types of the server to the values of
the engine. It is worked out twice: in Python (`values`), and in Cypher (`expressions`).

| type of the server | value |
|---|---|
| STRING | text; a number or a time where the mapping reads it so and this text can be |
| INTEGER, FLOAT | quantity without unit; NaN and the infinite ones are texts, as the server prints them |
| BOOLEAN | text: "true", "false" |
| DATE | time of a day |
| LOCAL DATETIME, ZONED DATETIME | time of a second, in UTC; a local one is taken for UTC. Fraction and zone are in the raw text |
| LOCAL TIME, ZONED TIME | quantity in "second of the day", in UTC where it has a zone |
| DURATION | quantity: in "month" where it has nothing but months, in "second" where it has none; else text |
| POINT | text, as the server prints it |
| LIST of these | several values, each once; an empty one is none |
| byte array, VECTOR | unknown: it is there, and cannot be compared |

The server says of a byte array that it is a list of integers. A property of which the sample has a
byte array (`BYTES` among its types) is taken for one wherever it is a list of integers; another one
for the numbers.

Texts are equal by white space made single. A property with texts that have other white space is
`untidy`; elsewhere the text of the database is compared as it stands.
"""

from __future__ import annotations

import re
from typing import Final

from condgraph.cypher.native.formats import ISO_DATE, ISO_DATETIME, TimeFormat, time_format
from condgraph.cypher.native.mapping import Property
from condgraph.engine.reading.times import SECOND, SECOND_OF_DAY
from condgraph.engine.values import NO_UNIT, Kind

#: A byte array, which `valueType` calls a list of integers.
BYTES: Final = "BYTES"
#: A float that is no number, or infinite.
INFINITE: Final = "INFINITE FLOAT"
#: What a list that a byte array looks like is called.
INTEGERS: Final = "LIST<INTEGER NOT NULL>"
MONTH: Final = "month"
#: Text that is a number where the mapping says so: as a float it keeps all of its digits. Numbers
#: with zeros in front are codes.
NUMBER: Final = "(?=.{1,16}$)-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?"
#: The kinds and units that values of a type can have.
_KINDS: Final[dict[str, tuple[tuple[Kind, str], ...]]] = {
    "STRING": ((Kind.TEXT, NO_UNIT),),
    "INTEGER": ((Kind.QUANTITY, NO_UNIT),),
    "FLOAT": ((Kind.QUANTITY, NO_UNIT),),
    INFINITE: ((Kind.TEXT, NO_UNIT),),
    "BOOLEAN": ((Kind.TEXT, NO_UNIT),),
    "DATE": ((Kind.TIME, NO_UNIT),),
    "LOCAL DATETIME": ((Kind.TIME, NO_UNIT),),
    "ZONED DATETIME": ((Kind.TIME, NO_UNIT),),
    "LOCAL TIME": ((Kind.QUANTITY, SECOND_OF_DAY),),
    "ZONED TIME": ((Kind.QUANTITY, SECOND_OF_DAY),),
    "DURATION": ((Kind.QUANTITY, SECOND), (Kind.QUANTITY, MONTH), (Kind.TEXT, NO_UNIT)),
    "POINT": ((Kind.TEXT, NO_UNIT),),
}


def elements(type_name: str) -> tuple[str, ...]:
    """The types of single values that a type has: of a list those in it.

    >>> elements("LIST<STRING NOT NULL>"), elements("ZONED DATETIME"), elements("LIST<NOTHING>")
    (('STRING',), ('ZONED DATETIME',), ())
    """
    inner = re.fullmatch(r"LIST<(.*)>", type_name)
    found = [part.strip().removesuffix(" NOT NULL") for part in (inner[1] if inner else type_name).split(" | ")]
    return tuple(one for one in found if one != "NOTHING")


def is_list(type_name: str) -> bool:
    """Whether a type is a list, whose elements are several values."""
    return type_name.startswith("LIST<")


def kinds_of(prop: Property) -> dict[tuple[Kind, str], int]:
    """The kinds and units of the values of a property, with how many of the sample may have each."""
    found: dict[tuple[Kind, str], int] = {}
    opaque = any(name == BYTES for name, _ in prop.types)
    for name, count in prop.types:
        for one in elements(name):
            kinds = _KINDS.get(one, ((Kind.UNKNOWN, NO_UNIT),))
            if one == BYTES or (opaque and name == INTEGERS):
                kinds = ((Kind.UNKNOWN, NO_UNIT),)
            elif one == "STRING" and prop.reading == "number":
                kinds = ((Kind.QUANTITY, NO_UNIT),)
            elif one in ("STRING", "INTEGER") and prop.reading in ("date", "datetime"):
                kinds = ((Kind.TIME, NO_UNIT),)
            for kind in kinds:
                found[kind] = found.get(kind, 0) + count
    return found


def format_of(prop: Property) -> TimeFormat | None:
    """How the text of a property is read as a time; None where it is not."""
    if prop.reading == "date":
        return time_format(prop.format or ISO_DATE)
    if prop.reading == "datetime":
        return time_format(prop.format or ISO_DATETIME, moment=True)
    return None
