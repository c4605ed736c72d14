"""Servers that speak Cypher, in one table of their capabilities, by which queries are adapted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from condgraph.engine.errors import OptionError


@dataclass(frozen=True, slots=True)
class Engine:
    """A server by its capabilities. A form that is False is translated, or refused with the server's name.

    `page` of the documentation gives the source of each entry.
    """

    name: str
    #: `-[f:$(type)]->` is read, both for creating and matching a relationship.
    computed_types: bool = True
    #: `(e:$(labels))` is read for creating a node.
    computed_labels: bool = True
    #: `\\uXXXX` within backticks is read as a character.
    escapes: bool = True
    #: A reading session refuses to write, and `EXPLAIN` tells whether a query writes.
    guards_reading: bool = True
    #: Characters not allowed in relationship types, and the longest type in bytes.
    odd_characters: str = ""
    longest_type: int | None = None
    #: Most relationship types of a database.
    most_types: int | None = 65_535
    #: A relationship type may have the name of a label of the database.
    types_like_labels: bool = True
    #: The map of a node pattern may use earlier variables, `(s {sid: f.sid})`.
    maps_of_others: bool = True
    #: Imports of a subquery stay visible to its end, whatever its `WITH` projects.
    keeps_imports: bool = True
    #: Imports of a subquery are in brackets, `CALL (a) {`, and not in a `WITH` at the start of each part.
    imports_in_brackets: bool = True
    #: `USING INDEX SEEK` after a pattern selects an index.
    hints: bool = True
    #: A type predicate may name several types, `x IS :: INTEGER | FLOAT`.
    union_types: bool = True
    #: `split` accepts a list of separators.
    splits_by_lists: bool = True
    #: `valueType` of a list includes the types of its elements.
    types_of_lists: bool = True
    #: A time that was looked up by a key, `n[key]`, works in every function.
    times_by_key: bool = True
    #: The number at the end of a node's id is unique.
    numbered_nodes: bool = True
    #: A map may hold a projection of a node, `{s: e {.id}}`.
    projections_in_maps: bool = True
    #: Concurrent writing transactions wait for each other; otherwise the later one is refused.
    locks: bool = True
    #: A relationship is found directly by its id, without a scan.
    seeks_relationships: bool = True
    #: `db.stats.retrieve` returns the counts of a database, and `db.propertyKeys` all of its keys.
    statistics: bool = True
    lists_keys: bool = True
    #: Existing databases can be queried.
    native: bool = True
    #: Why no graph is opened on it; "" if graphs are.
    refusal: str = ""
    #: The server can evaluate patterns and scored logic.
    scored: bool = True
    #: A single change reads only the part it concerns, by queries for Neo4j alone; otherwise the whole
    #: graph.
    parts: bool = True

    @property
    def reads_all(self) -> bool:
        """Whether the server reads each form that `dialect.translated` can replace."""
        return self.keeps_imports and self.union_types and self.splits_by_lists and self.types_of_lists and self.times_by_key

    def quote(self, name: str) -> str:
        """Quote a relationship type, label or property as an identifier.

        Doubling backticks is not enough if escapes are decoded before quotes are read: a backslash could write a
        backtick. It is then written as its own escape.

        >>> NEO4J.quote("zz\\\\u0060) RETURN 42 //"), ARCADEDB.quote("a\\\\b`c")
        ('`zz\\\\u005Cu0060) RETURN 42 //`', '`a\\\\b``c`')
        """
        if not name:
            raise OptionError("an empty name is not an identifier in Cypher")
        plain = name.replace("\\", "\\u005C") if self.escapes else name
        return "`" + plain.replace("`", "``") + "`"

    def projected(self, variable: str, *fields: str) -> str:
        """Return some properties of a node as a map: names, and `name: expression`; null for null.

        >>> NEO4J.projected("e", "id", "kind: 1"), ARCADEDB.projected("e", "id")
        ('e {.id, kind: 1}', 'CASE WHEN e IS NOT NULL THEN {id: e.id} END')
        """
        if self.projections_in_maps:
            return f"{variable} {{{', '.join(field if ':' in field else f'.{field}' for field in fields)}}}"
        listed = ", ".join(field if ":" in field else f"{field}: {variable}.{field}" for field in fields)
        return f"CASE WHEN {variable} IS NOT NULL THEN {{{listed}}} END"

    def stored_type(self, name: str) -> str:
        """Return a relationship type as the server stores it, with characters it does not allow percent-encoded.

        >>> ARCADEDB.stored_type("spoken, or 5% signed"), ARCADEDB.read_type("spoken%2C or 5%25 signed")
        ('spoken%2C or 5%25 signed', 'spoken, or 5% signed')
        """
        for character in self._escaped:
            name = name.replace(character, f"%{ord(character):02X}")
        return name

    def read_type(self, stored: str) -> str:
        """Decode the result of `stored_type`."""
        for character in reversed(self._escaped):
            stored = stored.replace(f"%{ord(character):02X}", character)
        return stored

    def read_type_text(self, expression: str) -> str:
        """Return a Cypher expression that decodes the result of `stored_type`."""
        for character in reversed(self._escaped):
            expression = f"replace({expression}, '%{ord(character):02X}', '{character}')"
        return expression

    @property
    def _escaped(self) -> str:
        return f"%{self.odd_characters}" if self.odd_characters else ""

    def odd_type(self, name: str) -> str | None:
        """Return why the server does not allow a relationship type of this name, or None."""
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
#: Memgraph by its documentation; the queries were never run on it.
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
#: Servers that report a version of Neo4j that is too old.
TOO_OLD: Final[dict[tuple[int, ...], str]] = {
    (5, 13): "FalkorDB calls itself that as well, and is not supported: over Bolt it puts parameters into the text unquoted",
}


def engine_of(agent: str) -> Engine:
    """Return the engine by the name that a server reports.

    >>> engine_of("Neo4j/5.26.0 compatible (ArcadeDB 26.10.2)").name, engine_of("Neo4j/5.26.14").name
    ('ArcadeDB', 'Neo4j')
    """
    return next((engine for engine in _OTHER_ENGINES if engine.name.lower() in agent.lower()), NEO4J)


_OTHER_ENGINES: Final = (ARCADEDB, MEMGRAPH)
