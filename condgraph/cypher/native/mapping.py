"""What the parts of an existing database stand for.

A mapping tells which nodes are entities of which concepts, how they are named and identified, which properties are attributes,
and which relationships are relations. It comes from looking at the server or from a mapping file, and is all that the layout
and the schema know about the database. Names of labels, types and keys are those of the database, unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

#: How a property is read: by its own type ("itself"), or, for text, as a type that fits the whole sample.
Reading: TypeAlias = Literal["itself", "number", "date", "datetime", "text"]


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the nodes of a label, or of the relationships of a type."""

    key: str
    #: Its name in programs: an attribute's predicate, or a qualifier's key.
    predicate: str
    #: Types in the sample, as `valueType` gives them without "NOT NULL" ("INTEGER", "STRING", "LIST<STRING NOT NULL>",
    #: "POINT"), with how many of the sample had each.
    types: tuple[tuple[str, int], ...]
    #: The size of the sample.
    sampled: int
    reading: Reading = "itself"
    #: The format of dates in text, as of `strptime`; None for the usual one.
    format: str | None = None
    #: Whether a range index of the server covers it, so that a test of the property itself is an index seek.
    indexed: bool = False
    #: Whether no index of the server, of any kind, covers it; False if that is not known.
    unindexed: bool = False
    #: Whether some text of the sample has white space other than single blanks between words, so that it equals texts that are
    #: written differently.
    untidy: bool = False
    #: Whether it is the first moment at which a relationship no longer holds; it is read as the day, or second, before.
    excluded: bool = False

    @property
    def share(self) -> float:
        """The share of the sample that has it, from 0 to 1."""
        return sum(count for _, count in self.types) / self.sampled if self.sampled else 0.0


@dataclass(frozen=True, slots=True)
class NodeType:
    """The nodes of a label, which are the members of a concept. A node with several labels is a member of each."""

    label: str
    concept: str
    count: int
    #: Properties that together name a node, joined by a blank; empty if the name is the label with the unique key or the
    #: server's id.
    name: tuple[str, ...] = ()
    #: A property with a uniqueness or key constraint, which identifies a node; None if only the server's id does, which is not
    #: stable.
    unique: str | None = None
    properties: tuple[Property, ...] = ()
    #: Keys that a mapping file hides, so that they are no attributes.
    hidden: tuple[str, ...] = ()
    #: How many nodes are not in the sample.
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class RelationshipType:
    """The relationships of a type, which are the relations of a predicate."""

    type: str
    predicate: str
    count: int
    #: Labels of the start and end, with how many there are; if nodes have several labels, a relationship is counted under each.
    ends: tuple[tuple[str, str, int], ...] = ()
    #: Its properties, which are qualifiers.
    qualifiers: tuple[Property, ...] = ()
    #: Keys of the properties that tell from when until when it holds; only a mapping file states them.
    start: str | None = None
    end: str | None = None
    #: How many relationships are not in the sample.
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class Mapping:
    """What the parts of a database stand for, and why."""

    nodes: tuple[NodeType, ...]
    relationships: tuple[RelationshipType, ...]
    #: How many nodes and relationships the server counts; nodes without a label are entities of no concept.
    node_count: int = 0
    relationship_count: int = 0
    unlabelled: int = 0
    #: Identifies this state of the counts: it changes when any count does.
    mark: str = ""
    #: Reasons for the choices, by what they are about ("node.Person.name").
    reasons: dict[str, str] = field(default_factory=dict)
    #: What could not be looked at, and why (for example, a missing right).
    warnings: tuple[str, ...] = ()
    #: Keys of properties that are counted over all nodes and relationships (`native.refresh`), and keys that the server lists
    #: but no sample has.
    exact: frozenset[str] = frozenset()
    unseen: tuple[str, ...] = ()
    #: Keys that took too long to count, about which the sample may not tell everything.
    unsure: frozenset[str] = frozenset()
    #: Whether nodes without a name use the server's whole id (`#12:5`), since several nodes share the number at its end.
    whole_ids: bool = False

    @property
    def keys(self) -> frozenset[str]:
        """The keys of all properties of nodes and relationships."""
        properties = [prop for node in self.nodes for prop in node.properties]
        return frozenset(
            prop.key for prop in (*properties, *(prop for relationship in self.relationships for prop in relationship.qualifiers))
        )

    @property
    def beyond(self) -> int:
        """How many nodes and relationships are not in the samples."""
        return sum(node.beyond for node in self.nodes) + sum(relationship.beyond for relationship in self.relationships)
