"""How a graph is stored in Neo4j: the one place that the writer and the compiler both read.

    (:Entity {graph, id, name, key, kind})              kind 0 entity, 1 concept (:Concept), 2 table row (:Row, with source and row)
    (a:Entity)-[:`predicate` {sid}]->(b:Entity)         a relation, under the predicate's own name
    (a:Entity)-[:`predicate` {sid}]->(v:Value {...})    an attribute; the value node holds the typed value
                                                        either has `since`, `until`, `span` and `valid` where it has a validity
    (s:Statement {graph, sid, name})                    a relation that has qualifiers; (s)-[:SUBJECT]->(a), (s)-[:OBJECT]->(b)
    (:Statement|:Value)-[:QUALIFIER]->(:Qualifier {...})  its qualifiers; (:Qualifier)-[:IS]->(:Entity) where one is an entity
    (a:Entity)-[:MEMBER_OF]->(c:Concept)                membership closed under subclass; it has sources where it was stated
    (c:Concept)-[:SUBCLASS_OF]->(d:Concept)
    (:Graph {name, format, complete, content, counts, schema}), (:Source {graph, name, number, location, format})
    (:Predicate {graph, name, relations, attributes, qualifiers})   how many statements and qualifiers a name has

`sid` is the hash of a statement's content, and tells data from the edges of the layout, which have none; every statement and
membership has `sources` and `rows`, side by side. `graph` leads every index, so that many graphs share a database. A `Value` and
a `Qualifier` have `kind` ("text", "quantity", "time", "entity", "unknown"), `text` as a user reads it, and as the kind asks `key`,
`number` and `unit`, `start`, `end` and `precision`. `key` is the text as it is indexed: long texts, which an index refuses, stand
there as their hash. `order` is there where the text (or number) alone does not tell how it is ordered: the server compares texts by
UTF-16, and floats lose digits. `ranks` are the numbers of a text (or name) that begins with one, as texts that compare like them.
The `name` of a value or a statement is what Browser shows, and no data.
A validity is `[since, until)` in seconds, of precision `span`, and `valid` in words; bounds that are open or not known as in
`engine.values`.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from condgraph.engine.execute.aggregates import inner_numbers
from condgraph.engine.values import (
    Kind,
    Number,
    Precision,
    Quantity,
    Time,
    Unknown,
    Value,
    format_number,
    text_of,
)

FORMAT: Final = 3
#: Names of relationship types that the layout itself uses.
RESERVED: Final = frozenset({"MEMBER_OF", "SUBCLASS_OF", "QUALIFIER", "IS", "SUBJECT", "OBJECT"})
_SUFFIX: Final = " (predicate)"
#: Longest text (in bytes of UTF-8) that is indexed as it stands.
_LONGEST_KEY: Final = 4_000
#: Longest caption, in characters.
CAPTION: Final = 60

#: Constraints, which a load needs from the start. All of Community.
CONSTRAINTS: Final[tuple[str, ...]] = (
    "CREATE CONSTRAINT condgraph_entity_id IF NOT EXISTS FOR (e:Entity) REQUIRE (e.graph, e.id) IS UNIQUE",
    "CREATE CONSTRAINT condgraph_graph IF NOT EXISTS FOR (g:Graph) REQUIRE g.name IS UNIQUE",
    "CREATE CONSTRAINT condgraph_load IF NOT EXISTS FOR (l:Load) REQUIRE (l.graph, l.batch) IS UNIQUE",
    "CREATE CONSTRAINT condgraph_source IF NOT EXISTS FOR (s:Source) REQUIRE (s.graph, s.name) IS UNIQUE",
    "CREATE CONSTRAINT condgraph_predicate IF NOT EXISTS FOR (p:Predicate) REQUIRE (p.graph, p.name) IS UNIQUE",
)
#: Indexes that programs need. Made after the first load of a database, which is quicker than keeping them while it is written.
INDEXES: Final[tuple[str, ...]] = (
    "CREATE INDEX condgraph_entity_key IF NOT EXISTS FOR (e:Entity) ON (e.graph, e.key)",
    "CREATE INDEX condgraph_entity_kind IF NOT EXISTS FOR (e:Entity) ON (e.graph, e.kind)",
    "CREATE INDEX condgraph_row IF NOT EXISTS FOR (r:Row) ON (r.graph, r.source, r.row)",
    "CREATE INDEX condgraph_concept_key IF NOT EXISTS FOR (c:Concept) ON (c.graph, c.key)",
    "CREATE INDEX condgraph_value_key IF NOT EXISTS FOR (v:Value) ON (v.graph, v.predicate, v.key)",
    # With all that a comparison looks at, so that it is read from the index and not from the store.
    "CREATE INDEX condgraph_value_quantity IF NOT EXISTS FOR (v:Value) ON (v.graph, v.predicate, v.number, v.unit)",
    "CREATE INDEX condgraph_value_time IF NOT EXISTS FOR (v:Value) ON (v.graph, v.predicate, v.start, v.end)",
    "CREATE INDEX condgraph_any_key IF NOT EXISTS FOR (v:Value) ON (v.graph, v.key)",
    "CREATE INDEX condgraph_any_number IF NOT EXISTS FOR (v:Value) ON (v.graph, v.number)",
    "CREATE INDEX condgraph_any_start IF NOT EXISTS FOR (v:Value) ON (v.graph, v.start)",
    "CREATE INDEX condgraph_statement_sid IF NOT EXISTS FOR (s:Statement) ON (s.graph, s.sid)",
)

#: The names of both, as the server lists them.
INDEX_NAMES: Final = frozenset(text.split()[2] for text in (*CONSTRAINTS, *INDEXES))


def type_of(predicate: str) -> str:
    """The relationship type of a predicate; those the layout uses itself get a suffix, so that the name can be read back.

    >>> type_of("spouse"), type_of("IS"), predicate_of(type_of("IS (predicate)"))
    ('spouse', 'IS (predicate)', 'IS (predicate)')
    """
    return predicate + _SUFFIX if predicate in RESERVED or predicate.endswith(_SUFFIX) else predicate


def predicate_of(type_name: str) -> str:
    """The predicate of a relationship type."""
    return type_name[: -len(_SUFFIX)] if type_name.endswith(_SUFFIX) else type_name


def index_key(text: str) -> str:
    """A text as it is indexed: itself, or its hash where it is too long for an index."""
    encoded = text.encode()
    return text if len(encoded) <= _LONGEST_KEY else "sha256:" + sha256(encoded).hexdigest()


def text_order(text: str) -> str:
    """A text whose order by UTF-16 among others of its kind is the order of `text` by code point; mostly the text itself.

    >>> text_order("Zoë"), text_order("\\uff21") == "\\ud7ff\\u2822"
    ('Zoë', True)
    """
    # UTF-16 puts the surrogates of the planes above before U+E000: what stands there moves below them.
    if text.isascii() or max(text) < "\ud7ff":
        return text
    return "".join("\ud7ff" + chr(ord(c) - 0xD7FF + 0x100) if "\ud7ff" <= c <= "\uffff" else c for c in text)


def number_order(number: Decimal) -> str:
    """A decimal number as a text that compares like it."""
    if not number:
        return "1"
    _, digits, _ = number.as_tuple()
    figures = "".join(map(str, digits)).strip("0")
    exponent = number.adjusted() + 50_000
    if number > 0:
        return f"2{exponent:06d}{figures}"
    return f"0{999_999 - exponent:06d}" + "".join(str(9 - int(c)) for c in figures) + "~"


def tie_break(number: Number) -> str:
    """What orders numbers that are one float: "1" for the float itself as it prints, texts below and above it for others."""
    nearest = as_float(number)
    printed = None if math.isinf(nearest) else Decimal(format_number(nearest))
    exact = number if isinstance(number, Decimal) else Decimal(format_number(number))
    if printed is not None and exact == printed:
        return "1"
    above = nearest < 0 if printed is None else exact > printed
    return ("2" if above else "0") + number_order(exact)


def as_float(number: Number) -> float:
    """The nearest float, infinite where there is none."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


@lru_cache(1 << 16)
def time_text(start: int, end: int, precision: int) -> str:
    """A time as a user reads it; in most data few of them stand again and again."""
    return str(Time(start, end, Precision(precision)))


def inner_ranks(text: str) -> list[str] | None:
    """The numbers of a text that begins with one, as texts that compare like them."""
    numbers = inner_numbers(text)
    return None if numbers is None else [number_order(number) for number in numbers]


def _orders(text: str) -> dict[str, Any]:
    """How a text is ordered, where the text itself does not say it."""
    found: dict[str, Any] = {}
    if (order := text_order(text)) != text:
        found["order"] = order
    if (ranks := inner_ranks(text)) is not None:
        found["ranks"] = ranks
    return found


def value_properties(value: Value) -> dict[str, Any]:
    """The properties of a `Value` or `Qualifier` node."""
    if isinstance(value, str):
        return {"kind": "text", "text": value, "key": index_key(value)} | _orders(value)
    if isinstance(value, Quantity):
        number = as_float(value.number)
        found: dict[str, Any] = {"kind": "quantity", "text": str(value), "number": number, "unit": value.unit}
        if (order := tie_break(value.number)) != "1":
            found |= {"exact": str(value.number), "order": order}
        return found
    if isinstance(value, Time):
        return {
            "kind": "time",
            "text": str(value),
            "start": value.start,
            "end": value.end,
            "precision": int(value.precision),
        }
    assert isinstance(value, Unknown)
    return {"kind": "unknown", "text": text_of(value)}


def value_of(properties: dict[str, Any]) -> Value:
    """The value of a `Value` or `Qualifier` node that is no entity."""
    from condgraph.engine.values import UNKNOWN, parse_number

    kind = properties["kind"]
    if kind == "text":
        return str(properties["text"])
    if kind == "quantity":
        number = properties["number"]
        exact = properties.get("exact")
        if exact is not None:
            return Quantity(parse_number(exact), properties["unit"])
        return Quantity(int(number) if float(number).is_integer() else number, properties["unit"])
    if kind == "time":
        return Time(properties["start"], properties["end"], Precision(properties["precision"]))
    return UNKNOWN


#: Kinds of values by the word that stands in the database.
KINDS: Final = {kind.name.lower(): kind for kind in Kind}
