"""What a graph holds, as objects: `Overview` and its parts.

Every list is in one order everywhere: the most frequent first, then by name. Names are whole; the
texts of examples have at most 120 characters. Lists that a part of a predicate has are cut at
`MOST_PARTS`; `more` says how many there are beyond, by the name of the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

#: Kinds, types, keys and sources of one predicate that are listed.
MOST_PARTS: Final = 12
#: What a subject or an object is: in a concept, a row of a table in no concept, a concept itself, or
#: an entity in no concept.
KindSort = Literal["concept", "table", "concepts", "entities"]
#: What each sort is called where it has no name of its own.
UNNAMED: Final[Mapping[str, str]] = {"concepts": "concepts", "entities": "entities without a concept"}


@dataclass(frozen=True, slots=True)
class KindCount:
    """What subjects or objects of a predicate are, and of how many statements. An entity that is in
    two concepts counts in both. `name` is that of the concept, or of the table; empty for others.
    """

    sort: KindSort
    name: str
    statements: int


@dataclass(frozen=True, slots=True)
class ValueCount:
    """How many values are of one type and unit. `type` is "text", "quantity", "time", "entity" or
    "unknown"; `unit` is "1" where there is none. `first` and `last` are the least and the greatest
    number with its unit, or the times that begin first and last, as text; empty for other types.
    """

    type: str
    unit: str
    count: int
    first: str = ""
    last: str = ""


@dataclass(frozen=True, slots=True)
class QualifierKey:
    """A key of the qualifiers of one predicate: how many qualifiers have it, and their values."""

    name: str
    count: int
    values: tuple[ValueCount, ...]


@dataclass(frozen=True, slots=True)
class SourceCount:
    """A source, and how many statements of a predicate stand in it."""

    name: str
    statements: int


@dataclass(frozen=True, slots=True)
class Example:
    """A statement, as the name of its subject and the text of its object."""

    subject: str
    object: str


@dataclass(frozen=True, slots=True)
class PredicateSchema:
    """A predicate: how many statements have it, with entities (`relations`) and with values
    (`attributes`) as objects; what stands on both sides; `values` and `qualifiers` by type.
    """

    name: str
    statements: int
    relations: int
    attributes: int
    subjects: tuple[KindCount, ...]
    objects: tuple[KindCount, ...]
    values: tuple[ValueCount, ...]
    qualifiers: tuple[QualifierKey, ...]
    sources: tuple[SourceCount, ...]
    examples: tuple[Example, ...]
    more: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConceptSchema:
    """A concept: how many entities are in it and in the concepts below it, the names of some of
    them, and the names of the concepts right above it.
    """

    id: str
    name: str
    members: int
    above: tuple[str, ...]
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """A source: its format, its statements, and how many of its table rows are entities of the
    graph. A statement that stands in two sources counts in both.
    """

    name: str
    format: str
    statements: int
    rows: int


@dataclass(frozen=True, slots=True)
class UnitCount:
    """A unit, and how many quantities have it, of attributes and of qualifiers."""

    unit: str
    values: int


@dataclass(frozen=True, slots=True)
class Overview:
    """What a graph holds. `counts` are of the whole graph: entities (with table rows), concepts,
    rows, relations, attributes, qualifiers. `first` and `last` are the first and the last day of
    its times, as text, empty where it has none. `note` says what is missing, where an earlier
    version wrote the graph on a server.
    """

    counts: dict[str, int]
    sources: tuple[SourceSchema, ...]
    concepts: tuple[ConceptSchema, ...]
    predicates: tuple[PredicateSchema, ...]
    units: tuple[UnitCount, ...]
    first: str = ""
    last: str = ""
    note: str = ""

    @property
    def statements(self) -> int:
        """Relations and attributes of the whole graph together."""
        return self.counts.get("relations", 0) + self.counts.get("attributes", 0)

    def data(self) -> dict[str, Any]:
        """All of it as dicts and lists, for JSON."""
        return asdict(self)
