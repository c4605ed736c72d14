"""Servers that speak Cypher: one table of what each of them reads, from which texts are chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from condgraph.engine.errors import OptionError


@dataclass(frozen=True, slots=True)
class Engine:
    """A server by what it can do. Whatever is False is written in another form, or refused by name.

    `page` of the documentation says where each of these is from.
    """

    name: str
    #: `-[f:$(type)]->` where a relationship is made, and where it is matched.
    computed_types: bool = True
    #: `(e:$(labels))` where a node is made.
    computed_labels: bool = True
    #: `\\uXXXX` within backticks is read as a character.
    escapes: bool = True
    #: A session opened for reading refuses to write, and `EXPLAIN` says whether a text writes.
    guards_reading: bool = True
    #: Characters that no relationship type may have; and the longest type, in bytes.
    odd_characters: str = ""
    longest_type: int | None = None
    #: The most relationship types of a database.
    most_types: int | None = 65_535
    #: Whether a relationship type may be called as a label of the database is.
    types_like_labels: bool = True
    #: The map of a node pattern may name what an earlier clause matched, `(s {sid: f.sid})`.
    maps_of_others: bool = True
    #: What a subquery imports is there until its end, whatever its `WITH` names.
    keeps_imports: bool = True
    #: What a subquery imports is in brackets, `CALL (a) {`, and not in a `WITH` that each of its parts begins with.
    imports_in_brackets: bool = True
    #: `USING INDEX SEEK` after a pattern says which index to take.
    hints: bool = True
    #: A type predicate may name several types, `x IS :: INTEGER | FLOAT`.
    union_types: bool = True
    #: `split` takes a list of texts to split by.
    splits_by_lists: bool = True
    #: `valueType` of a list says the types of its elements.
    types_of_lists: bool = True
    #: A time that was looked up by a key, `n[key]`, is one for every function.
    times_by_key: bool = True
    #: The number at the end of a node's id is that of no other node.
    numbered_nodes: bool = True
    #: A map may hold a projection of a node, `{s: e {.id}}`.
    projections_in_maps: bool = True
    #: Transactions that write at the same time wait for each other; else the later one is refused.
    locks: bool = True
    #: A relationship is looked up by its id, and not looked for.
    seeks_relationships: bool = True
    #: `db.stats.retrieve` has the counts of a database, and `db.propertyKeys` all keys of it.
    statistics: bool = True
    lists_keys: bool = True
    #: Databases that condgraph did not write are asked.
    native: bool = True
    #: Why no graph is opened on it; "" where one is.
    refusal: str = ""
    #: Patterns and scored logic are worked out by the server.
    scored: bool = True
    #: A single change is made of the part that it is about, whose queries are for Neo4j alone; else of the whole graph.
    parts: bool = True

    @property
    def reads_all(self) -> bool:
        """Whether it reads each form that `dialect.translated` has another form for."""
        return self.keeps_imports and self.union_types and self.splits_by_lists and self.types_of_lists and self.times_by_key

    def quote(self, name: str) -> str:
        """A relationship type, label or property as a quoted identifier.

        Doubling backticks is not enough where escapes are read before quotes are looked for: a
        backslash could write a backtick. It is written as its own escape then.

        >>> NEO4J.quote("zz\\\\u0060) RETURN 42 //"), ARCADEDB.quote("a\\\\b`c")
        ('`zz\\\\u005Cu0060) RETURN 42 //`', '`a\\\\b``c`')
        """
        if not name:
            raise OptionError("an empty name is no identifier in Cypher")
        plain = name.replace("\\", "\\u005C") if self.escapes else name
        return "`" + plain.replace("`", "``") + "`"

    def projected(self, variable: str, *fields: str) -> str:
        """Some properties of a node as a map: names of them, and `name: expression`; null of null.

        >>> NEO4J.projected("e", "id", "kind: 1"), ARCADEDB.projected("e", "id")
        ('e {.id, kind: 1}', 'CASE WHEN e IS NOT NULL THEN {id: e.id} END')
        """
        if self.projections_in_maps:
            return f"{variable} {{{', '.join(field if ':' in field else f'.{field}' for field in fields)}}}"
        listed = ", ".join(field if ":" in field else f"{field}: {variable}.{field}" for field in fields)
        return f"CASE WHEN {variable} IS NOT NULL THEN {{{listed}}} END"

    def stored_type(self, name: str) -> str:
        """A relationship type as the engine stores it: characters that it does not take are written as
        in addresses.

        >>> ARCADEDB.stored_type("spoken, or 5% signed"), ARCADEDB.read_type("spoken%2C or 5%25 signed")
        ('spoken%2C or 5%25 signed', 'spoken, or 5% signed')
        """
        for character in self._escaped:
            name = name.replace(character, f"%{ord(character):02X}")
        return name

    def read_type(self, stored: str) -> str:
        """The type that `stored_type` stored."""
        for character in reversed(self._escaped):
            stored = stored.replace(f"%{ord(character):02X}", character)
        return stored

    def read_type_text(self, expression: str) -> str:
        """The same as an expression of Cypher."""
        for character in reversed(self._escaped):
            expression = f"replace({expression}, '%{ord(character):02X}', '{character}')"
        return expression

    @property
    def _escaped(self) -> str:
        return f"%{self.odd_characters}" if self.odd_characters else ""

    def odd_type(self, name: str) -> str | None:
        """Why the engine takes no relationship type of this name; None where it takes it."""
        if "\0" in name:
            return "holds the character NUL"
        size = len(self.stored_type(name).encode())
        return f"has {size:,} bytes where {self.longest_type:,} are the most" if size > (self.longest_type or size) else None


NEO4J: Final = Engine("Neo4j")
#: ArcadeDB 26.10.2 stores each type and label in files of its name.
ARCADEDB: Final = Engine(
    "ArcadeDB",
    computed_types=False,
    computed_labels=False,
    escapes=False,
    guards_reading=False,
    odd_characters="*,~",
    longest_type=180,
    most_types=None,
    types_like_labels=False,
    maps_of_others=False,
    projections_in_maps=False,
    keeps_imports=False,
    union_types=False,
    splits_by_lists=False,
    types_of_lists=False,
    times_by_key=False,
    numbered_nodes=False,
    seeks_relationships=False,
    statistics=False,
    lists_keys=False,
    locks=False,
    scored=False,
    parts=False,
)
#: Memgraph by its documentation; its texts were never sent to a real one.
MEMGRAPH: Final = Engine(
    "Memgraph",
    computed_types=False,
    computed_labels=False,
    hints=False,
    imports_in_brackets=False,
    keeps_imports=False,
    native=False,
    scored=False,
    refusal="condgraph was never tested on it",
)
#: What a version of Neo4j that is too old may be instead.
TOO_OLD: Final[dict[tuple[int, ...], str]] = {
    (5, 13): "FalkorDB calls itself that as well, and is no target: over Bolt it puts parameters into the text unquoted",
}


def engine_of(agent: str) -> Engine:
    """The engine that a server says it is.

    >>> engine_of("Neo4j/5.26.0 compatible (ArcadeDB 26.10.2)").name, engine_of("Neo4j/5.26.14").name
    ('ArcadeDB', 'Neo4j')
    """
    return next((engine for engine in _OTHERS if engine.name.lower() in agent.lower()), NEO4J)


_OTHERS: Final = (ARCADEDB, MEMGRAPH)
