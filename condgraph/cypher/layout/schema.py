"""How a graph is stored in Neo4j: the one place that the writer and the compiler both read.

    (:Entity {graph, handle, id, name, key, kind})      kind 0 entity, 1 concept (:Concept), 2 table row (:Row, with source and row)
    (a:Entity)-[:`predicate` {sid}]->(b:Entity)         a relation, under the predicate's own name
    (a:Entity)-[:`predicate` {sid}]->(v:Value {...})    an attribute; the value node holds the typed value
                                                        either has `since`, `until`, `span` and `valid` where it has a validity
    (s:Statement {graph, sid, name})                    a relation that has qualifiers; (s)-[:SUBJECT]->(a), (s)-[:OBJECT]->(b)
    (:Statement|:Value)-[:QUALIFIER]->(:Qualifier {...})  its qualifiers; (:Qualifier)-[:IS]->(:Entity) where one is an entity
    (a:Entity)-[:MEMBER_OF]->(c:Concept)                membership closed under subclass; it has sources where it was stated
    (c:Concept)-[:SUBCLASS_OF]->(d:Concept)
    (:Graph {name, format, complete, content, counts, schema, survey}),
    (:Source {graph, name, number, location, format, content, terms})
    (:Predicate {graph, key, name, relations, attributes, qualifiers})   how many statements and qualifiers a name has
    (:Load {graph, batch}), (:Former {graph, load, ...})     only while a load is under way: what it wrote, and what it changed

Each label begins with `Condgraph` in the database, each constraint and index with `condgraph_`:
nothing here has a name that an application's own data could have, and no query looks for anything
without a label of these. A database may be full of other nodes.

`sid` is the hash of a statement's content, and tells data from the edges of the layout, which have
none; every statement and membership has `sources` and `rows`, side by side. `graph` leads every
index, so that many graphs share a database. A `Value` and a `Qualifier` have `kind` ("text",
"quantity", "time", "entity", "unknown"), `text` as a user reads it, and as the kind asks `key`,
`number` and `unit`, `start`, `end` and `precision`. `key`, and the `handle` of an id, are texts as
they are indexed: long ones, which an index refuses, stand there as their hash; so does a long
`predicate` of a `Value`. `order` is there where the text (or number) alone does not tell how it is
ordered: the server compares texts by UTF-16, and floats lose digits. `ranks` are the numbers of a
text (or name) that begins with one, as texts that compare like them. The `name` of a value or a
statement is what Browser shows, and no data. `load` says which load added a record to a graph that
had content before, so that this load can be taken back; `gone` which one takes it away, and
`removing` of the graph's node that it does so by now. `declared` of an entity says who declares it,
and as what, where that is not the first source (`engine.snapshot.declared`); `declares` of the
graph's node that this is kept. Entities may carry their direct concepts as further labels, which no
query here reads (`cypher.labels`); `labels` of the graph's node says which. `raws` of a value how
its places write it, where they differ. A validity is `[since, until)` in seconds,
of precision `span`, and `valid` in words; bounds that are open or not known as in `engine.values`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.errors import OptionError, StoreError
from condgraph.engine.execute.number_texts import inner_numbers
from condgraph.engine.values import (
    Number,
    Precision,
    Quantity,
    Time,
    Unknown,
    Value,
    format_number,
    text_of,
)

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection


# -- Quoting -----------------------------------------------------------------------------------------
# The one place where a name becomes part of Cypher text.


def quote(name: str) -> str:
    """A relationship type, label or property as a quoted identifier.

    Doubling backticks is not enough: Cypher reads unicode escapes before it looks for quotes, so
    that a backslash could write a backtick. It is written as its own escape first.

    >>> quote("directed by"), quote("a`b"), quote("zz\\\\u0060) RETURN 42 //")
    ('`directed by`', '`a``b`', '`zz\\\\u005Cu0060) RETURN 42 //`')
    """
    if not name:
        raise OptionError("an empty name is no identifier in Cypher")
    return "`" + name.replace("\\", "\\u005C").replace("`", "``") + "`"


# -- Labels, keys and properties --------------------------------------------------------------------


FORMAT: Final = 4

# The labels. Whatever a person keeps in the same database has other ones.
ENTITY: Final = "CondgraphEntity"
CONCEPT: Final = "CondgraphConcept"
ROW: Final = "CondgraphRow"
VALUE: Final = "CondgraphValue"
STATEMENT: Final = "CondgraphStatement"
QUALIFIER: Final = "CondgraphQualifier"
GRAPH: Final = "CondgraphGraph"
SOURCE: Final = "CondgraphSource"
PREDICATE: Final = "CondgraphPredicate"
LOAD: Final = "CondgraphLoad"
FORMER: Final = "CondgraphFormer"
VECTORS: Final = "CondgraphVectors"
EMBEDDING: Final = "CondgraphEmbedding"
#: What a graph's node says is being loaded while it is deleted.
DELETED: Final = "deleted"

#: Names of relationship types that the layout itself uses.
RESERVED: Final = frozenset({"MEMBER_OF", "SUBCLASS_OF", "QUALIFIER", "IS", "SUBJECT", "OBJECT"})
_SUFFIX: Final = " (predicate)"
#: Longest text (in bytes of UTF-8) that is indexed as it stands. An entry of an index has at most
#: 8,167 bytes in all.
LONGEST_KEY: Final = 4_000
#: Longest name of a graph or a unit, and of a predicate that is indexed as it stands, in bytes.
LONGEST_NAME: Final = 1_000
#: Longest name of a source, in bytes.
LONGEST_SOURCE: Final = 2_000
#: The most relationship types that a database of Community Edition can ever have.
MOST_TYPES: Final = 65_535
#: Longest caption, in characters.
CAPTION: Final = 60


@dataclass(frozen=True, slots=True)
class Index:
    """An index, or the one behind a constraint that the properties are unique; `name` is what the
    server lists.
    """

    name: str
    label: str
    properties: tuple[str, ...]
    unique: bool = False

    @property
    def text(self) -> str:
        """What makes it where it is not there. All of Community."""
        listed = f"({', '.join(f'n.{name}' for name in self.properties)})"
        if self.unique:
            return f"CREATE CONSTRAINT {self.name} IF NOT EXISTS FOR (n:{self.label}) REQUIRE {listed} IS UNIQUE"
        return f"CREATE INDEX {self.name} IF NOT EXISTS FOR (n:{self.label}) ON {listed}"


#: Constraints, which a load needs from the start.
CONSTRAINTS: Final = (
    Index("condgraph_4_entity", ENTITY, ("graph", "handle"), unique=True),
    Index("condgraph_4_graph", GRAPH, ("name",), unique=True),
    Index("condgraph_4_load", LOAD, ("graph", "batch"), unique=True),
    Index("condgraph_4_former", FORMER, ("graph", "load", "at"), unique=True),
    Index("condgraph_4_source", SOURCE, ("graph", "name"), unique=True),
    Index("condgraph_4_predicate", PREDICATE, ("graph", "key"), unique=True),
)
#: Indexes that programs need. Made after the first load of a database, which is quicker than
#: keeping them while it is written.
INDEXES: Final = (
    Index("condgraph_4_entity_key", ENTITY, ("graph", "key")),
    Index("condgraph_4_entity_kind", ENTITY, ("graph", "kind")),
    Index("condgraph_4_row", ROW, ("graph", "source", "row")),
    Index("condgraph_4_concept_key", CONCEPT, ("graph", "key")),
    Index("condgraph_4_value_key", VALUE, ("graph", "predicate", "key")),
    # With all that a comparison looks at, so that it is read from the index and not from the store.
    Index("condgraph_4_value_quantity", VALUE, ("graph", "predicate", "number", "unit")),
    Index("condgraph_4_value_time", VALUE, ("graph", "predicate", "start", "end")),
    Index("condgraph_4_any_key", VALUE, ("graph", "key")),
    Index("condgraph_4_any_number", VALUE, ("graph", "number")),
    Index("condgraph_4_any_start", VALUE, ("graph", "start")),
    Index("condgraph_4_statement", STATEMENT, ("graph", "sid")),
)
#: The index of vectors by name, made by the first who has vectors kept.
VECTOR_KEYS: Final = Index("condgraph_4_embedding", EMBEDDING, ("graph", "kind", "key"))


def type_of(predicate: str) -> str:
    """The relationship type of a predicate; those the layout uses itself get a suffix, so that the
    name can be read back.

    >>> type_of("spouse"), type_of("IS"), predicate_of(type_of("IS (predicate)"))
    ('spouse', 'IS (predicate)', 'IS (predicate)')
    """
    # A type has to have a name: a program may well ask for a predicate without one.
    return predicate + _SUFFIX if not predicate or predicate in RESERVED or predicate.endswith(_SUFFIX) else predicate


def predicate_of(type_name: str) -> str:
    """The predicate of a relationship type."""
    return type_name[: -len(_SUFFIX)] if type_name.endswith(_SUFFIX) else type_name


def index_key(text: str, longest: int = LONGEST_KEY) -> str:
    """A text as it is indexed: itself, or its hash where it is too long for an index (`longest` in
    bytes).
    """
    # A character takes four bytes at most.
    if len(text) * 4 <= longest:
        return text
    encoded = text.encode()
    return text if len(encoded) <= longest else "sha256:" + sha256(encoded).hexdigest()


def predicate_key(name: str) -> str:
    """The name of a predicate as it is indexed, which leaves room for the values beside it."""
    return index_key(name, LONGEST_NAME)


def text_order(text: str) -> str:
    """A text whose order by UTF-16 among others of its kind is the order of `text` by code point;
    mostly the text itself.

    >>> text_order("Zoë"), text_order("\\uff21") == "\\ud7ff\\u2822"
    ('Zoë', True)
    """
    # UTF-16 puts the surrogates of the planes above before U+E000: what stands there moves below
    # them.
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
    """What orders numbers that are one float: "1" for the float itself as it prints, texts below
    and above it for others.
    """
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


# -- Indexes on a server -----------------------------------------------------------------------------


_NAMES: Final = [one.name for one in (*CONSTRAINTS, *INDEXES, VECTOR_KEYS)]
_ABOUT: Final = (
    "SHOW INDEXES YIELD name, state, labelsOrTypes, properties, owningConstraint WHERE name IN $names "
    "RETURN name, state, labelsOrTypes AS labels, properties, owningConstraint IS NOT NULL AS unique"
)


def prepare(connection: Connection) -> bool:
    """Make the constraints; whether the indexes are there as well, as they are after the first load
    of a database.

    Raises `StoreError` where a name of these belongs to something else: a server would take that
    for the index, and make none.
    """
    found = {row["name"]: row for row in connection.ask(_ABOUT, {"names": _NAMES})}
    for one in (*CONSTRAINTS, *INDEXES, VECTOR_KEYS):
        row = found.get(one.name)
        wanted = [one.label], list(one.properties), one.unique
        if row is not None and (row["labels"], row["properties"], row["unique"]) != wanted:
            on = f"{':'.join(row['labels'] or ())}({', '.join(row['properties'] or ())})"
            raise StoreError(
                f"the database has an index or a constraint {one.name!r} on {on}, which is not condgraph's",
                hint=f"condgraph's is on {one.label}({', '.join(one.properties)}): give the other one another name",
            )
    if all(one.name in found and found[one.name]["state"] == "ONLINE" for one in (*CONSTRAINTS, *INDEXES)):
        return True
    connection.schema(*(one.text for one in CONSTRAINTS))
    return False


def make_indexes(connection: Connection) -> None:
    """Make the indexes, and wait until they are filled."""
    # In one transaction, for then the server fills them all in one pass over its nodes.
    connection.schema(*(one.text for one in INDEXES))
    pause = 0.05
    names = [one.name for one in (*CONSTRAINTS, *INDEXES)]
    while waiting := [row for row in connection.ask(_ABOUT, {"names": names}) if row["state"] != "ONLINE"]:
        failed = [row["name"] for row in waiting if row["state"] == "FAILED"]
        if failed:
            raise StoreError(f"the server could not make the indexes {', '.join(failed)}", hint="its log says why")
        time.sleep(pause)
        pause = min(pause * 2, 0.5)
