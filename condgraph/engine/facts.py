"""The items of a graph: entities, memberships, statements with qualifiers, and their sources.

A loader is a generator of `Item`s. `Rows` are many entities, `Members` many memberships, and a `Batch` many
statements, as columns: for sources that are columnar already. Subjects, objects and predicates are referred to by id;
an id without an `Entity` declaration is an entity whose name is its id.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, overload

from condgraph.engine.values import NO_UNIT, Value, text_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The qualifier keys that give a statement its validity.
START_TIME: Final = "start time"
END_TIME: Final = "end time"
POINT_IN_TIME: Final = "point in time"


class EntityKind(IntEnum):
    """The kind of an entity. `CONCEPT` takes precedence if sources differ."""

    ENTITY = 0
    CONCEPT = 1
    ROW = 2


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of statements: the name that queries scope by (unique in a graph), and the file or address that was
    read.

    `content` is a fingerprint of the data and the options it was read with, to recognise a source that is loaded
    again (empty if unknown). `terms` are RDF terms of the source, as JSON (`engine.terms`); empty if it is not RDF.
    `loaded` is the time of the last load in UTC; None if unknown, as on servers.
    """

    name: str
    location: str = ""
    format: str = ""
    content: str = field(default="", repr=False, compare=False)
    terms: str = field(default="", repr=False, compare=False)
    loaded: datetime | None = field(default=None, repr=False, compare=False, kw_only=True)
    #: If several stores are queried as one, the stores that have the source.
    store: str = field(default="", repr=False, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to an entity by id, where a value would be possible as well."""

    id: str


@dataclass(frozen=True, slots=True)
class Entity:
    """Declares an entity: its id, its name (not unique), its kind; `row` is the 1-based position of a table row."""

    id: str
    name: str
    kind: EntityKind = EntityKind.ENTITY
    row: int = 0


@dataclass(frozen=True, slots=True)
class Member:
    """An entity is an instance of a concept."""

    entity: str
    concept: str
    row: int = 0


@dataclass(frozen=True, slots=True)
class Subclass:
    """A concept is a subclass of another one."""

    concept: str
    parent: str
    row: int = 0


def shown(value: Any) -> str:
    """Return the name of an entity, or the text of a value."""
    return value.name if isinstance(value, Entity) else text_of(value)


@dataclass(frozen=True, slots=True)
class Statement:
    """Subject, predicate, object, qualifiers; `row` is the 1-based line or record in the source (0: unknown).

    `raw` is the text in the source, if the object is a value that is printed differently.
    """

    subject: str
    predicate: str
    object: Ref | Value
    qualifiers: tuple[tuple[str, Ref | Value], ...] = ()
    row: int = 0
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Ids:
    """A column of objects that are entities, by id."""

    ids: Sequence[str]


class LazyTexts(Sequence[str]):
    """Texts stored as bytes, decoded on access."""

    def utf8(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Return the bytes of the texts, with eight more after the last one, the begin of each text, and its length
        in bytes.
        """
        raise NotImplementedError

    def sorted(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
        """Return the positions of the texts in order, and a mask of those that differ from the one before; None if
        they are so long that other methods are faster.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of objects that are texts; `collapsed`: their white space is already collapsed."""

    texts: Sequence[str]
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of objects that are numbers of one unit, float64 or int64 (exact)."""

    numbers: NDArray[np.float64] | NDArray[np.int64]
    unit: str = NO_UNIT


@dataclass(frozen=True, slots=True)
class Times:
    """A column of objects that are times: `[start, end)` in seconds, int64, each with its
    `values.Precision`, int8.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    precisions: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Values:
    """A column of objects of mixed types."""

    values: Sequence[Ref | Value]


Column: TypeAlias = Ids | Texts | Numbers | Times | Values


@dataclass(frozen=True, slots=True)
class Raws(Sequence[str | None]):
    """The raw texts for a column of `length` values: `texts` at the positions `at` (ascending), None elsewhere."""

    length: int
    at: NDArray[np.int64]
    texts: Sequence[str]

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, at: int) -> str | None: ...
    @overload
    def __getitem__(self, at: slice) -> list[str | None]: ...
    def __getitem__(self, at: int | slice) -> str | list[str | None] | None:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(self.length))]
        if not -self.length <= at < self.length:
            raise IndexError(at)
        place = at % self.length
        found = bisect_left(self.at, place)
        return self.texts[found] if found < len(self.at) and self.at[found] == place else None


@dataclass(frozen=True, slots=True)
class Batch:
    """Statements as columns of one length; `predicates` may be one name for all.

    `rows` are the 1-based positions in the source. `raws` is None, or has the source's text where it differs from the
    printed value and None elsewhere (as `Raws` if that is rare). `qualifiers` are columns, one for each key; None
    means that the statement lacks it. `source` is the name of the source, if it is not the one being read.
    """

    subjects: Sequence[str]
    predicates: str | Sequence[str]
    objects: Column
    rows: Sequence[int]
    raws: Sequence[str | None] | None = None
    qualifiers: Sequence[tuple[str, Sequence[Ref | Value | None]]] = field(default=())
    source: str = ""

    def __len__(self) -> int:
        return len(self.subjects)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table as columns, entities of kind row: their ids, their names, and their 1-based positions in the
    source; `source` as in a `Batch`.
    """

    ids: Sequence[str]
    names: Sequence[str]
    rows: Sequence[int]
    source: str = ""

    def __len__(self) -> int:
        return len(self.ids)

    def entities(self) -> Iterator[Entity]:
        """Yield the rows one by one."""
        for ident, name, row in zip(self.ids, self.names, self.rows, strict=True):
            yield Entity(ident, name, EntityKind.ROW, row)


@dataclass(frozen=True, slots=True)
class Members:
    """Entities that are instances of one concept, and the 1-based positions in the source that state it; `source` as
    in a `Batch`.
    """

    entities: Sequence[str]
    concept: str
    rows: Sequence[int]
    source: str = ""

    def __len__(self) -> int:
        return len(self.entities)

    def one_by_one(self) -> Iterator[Member]:
        """Yield the memberships one by one."""
        for entity, row in zip(self.entities, self.rows, strict=True):
            yield Member(entity, self.concept, int(row))


#: Items as columns: the type, and the same for `isinstance`.
Many: TypeAlias = Batch | Rows | Members
MANY: Final = (Batch, Rows, Members)


@dataclass(frozen=True, slots=True)
class Sourced:
    """An item with sources of its own, `(source name, row)`, instead of the one being read, as in an export."""

    item: Entity | Member | Subclass | Statement
    sources: tuple[tuple[str, int], ...]


#: A `Source` among the items only gives the origin of that source; it does not change the one being
#: read.
Item: TypeAlias = Entity | Member | Subclass | Statement | Many | Sourced | Source
