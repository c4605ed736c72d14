"""What an existing database is taken for: which nodes are entities of which concepts, by what they
are called and identified, which properties are attributes, which relationships relations.

It is made by looking at the server, or from a mapping file, and is all that the layout and the
schema know of the database. Names of labels, types and keys are those of the database, as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

#: How a property is read: as its own type says, or, of text, as what all of a sample can be read as.
Reading: TypeAlias = Literal["itself", "number", "date", "datetime", "text"]


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the nodes of a label, or of the relationships of a type."""

    key: str
    #: What programs call it: an attribute's predicate, or a qualifier's key.
    predicate: str
    #: Types met in the sample, as `valueType` says them without "NOT NULL": "INTEGER", "STRING",
    #: "LIST<STRING NOT NULL>", "POINT"; and how many of the sample had each.
    types: tuple[tuple[str, int], ...]
    #: Of so many things looked at.
    sampled: int
    reading: Reading = "itself"
    #: How text is read as a date: a format of `strptime`; None for the usual one.
    format: str | None = None
    #: Whether a range index of the server has it, so that a test of the property itself is a seek.
    indexed: bool = False
    #: Whether no index of the server has it, of whatever kind; False where that is not known.
    unindexed: bool = False
    #: Whether some text of the sample has white space other than single blanks between words, so
    #: that it is equal to what is written otherwise.
    untidy: bool = False
    #: Whether it is the first moment in which a relationship no longer holds: it is taken as the last day, or second, before.
    excluded: bool = False

    @property
    def share(self) -> float:
        """Which part of the sample has it, from 0 to 1."""
        return sum(count for _, count in self.types) / self.sampled if self.sampled else 0.0


@dataclass(frozen=True, slots=True)
class NodeType:
    """The nodes of a label, which are the members of a concept. A node of several labels is a
    member of each.
    """

    label: str
    concept: str
    count: int
    #: Properties that name a node together, joined by a blank; none where a node is called by its
    #: label and its unique key, or its label and the server's id.
    name: tuple[str, ...] = ()
    #: A property with a uniqueness or key constraint, which identifies a node; None where only the
    #: server's id does, which is not stable.
    unique: str | None = None
    properties: tuple[Property, ...] = ()
    #: Keys that are no attributes: hidden by a mapping file.
    hidden: tuple[str, ...] = ()
    #: Nodes that the sample did not have.
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class RelationshipType:
    """The relationships of a type, which are the relations of a predicate."""

    type: str
    predicate: str
    count: int
    #: From which label to which label, and how many; a relationship of nodes with several labels is
    #: counted under each.
    ends: tuple[tuple[str, str, int], ...] = ()
    #: Its properties, which are qualifiers.
    qualifiers: tuple[Property, ...] = ()
    #: Keys of the properties from when and until when it holds; only a mapping file states them.
    start: str | None = None
    end: str | None = None
    #: Relationships that the sample did not have.
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class Mapping:
    """A database as it is taken, and why."""

    nodes: tuple[NodeType, ...]
    relationships: tuple[RelationshipType, ...]
    #: How many nodes and relationships the server counts; nodes of no label are entities of no
    #: concept.
    node_count: int = 0
    relationship_count: int = 0
    unlabelled: int = 0
    #: What identifies this state of the counts: it changes when any count does.
    mark: str = ""
    #: Reasons for what was chosen, by what they are about ("node.Person.name").
    reasons: dict[str, str] = field(default_factory=dict)
    #: What could not be looked at, and why (a right that is missing, say).
    warnings: tuple[str, ...] = ()
    #: Keys of properties that are counted over all nodes and relationships (`native.refresh`), and keys
    #: that the server lists and no sample has.
    exact: frozenset[str] = frozenset()
    unseen: tuple[str, ...] = ()
    #: Keys that took too long to count: what the sample says of them may not be all.
    unsure: frozenset[str] = frozenset()
    #: Whether nodes without a name are called by the whole of the server's id (`#12:5`), since the number at
    #: its end is that of several nodes.
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
        """How many nodes and relationships the samples did not have."""
        return sum(node.beyond for node in self.nodes) + sum(relationship.beyond for relationship in self.relationships)
