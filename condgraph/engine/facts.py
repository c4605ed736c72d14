"""What a loader gives and a store keeps: entities, memberships, statements with qualifiers, and
where they came from.

A loader is a generator of `Item`s. `Rows` are many entities, `Members` many memberships, and a
`Batch` many statements, side by side: for sources that are columns already.
Subjects, objects and predicates are named by their ids; an id that no `Entity` declares is an
entity whose name is its id.
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
    """What an entity is. `CONCEPT` wins over the others where sources differ."""

    ENTITY = 0
    CONCEPT = 1
    ROW = 2


@dataclass(frozen=True, slots=True)
class Source:
    """Where statements come from: the name a user scopes a query by (unique in a graph), and the
    file or address read.

    `content` is a fingerprint of what was read and with which options, by which a source that is
    loaded again is known (empty where nothing is known of it). `terms` is what RDF calls what was
    read, as JSON (`engine.terms`); empty where it was no RDF. `loaded` is when it was last loaded, in
    UTC; None where that is not known, as on servers.
    """

    name: str
    location: str = ""
    format: str = ""
    content: str = field(default="", repr=False, compare=False)
    terms: str = field(default="", repr=False, compare=False)
    loaded: datetime | None = field(default=None, repr=False, compare=False, kw_only=True)
    #: Where several stores are asked as one, those that have it.
    store: str = field(default="", repr=False, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Ref:
    """An entity named by its id, where a value could stand as well."""

    id: str


@dataclass(frozen=True, slots=True)
class Entity:
    """Declares an entity: its id, its name (not unique), its kind; `row` is the 1-based position of
    a table's row.
    """

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
    """A concept lies under another one."""

    concept: str
    parent: str
    row: int = 0


def shown(value: Any) -> str:
    """The name of an entity, or the text of a value."""
    return value.name if isinstance(value, Entity) else text_of(value)


@dataclass(frozen=True, slots=True)
class Statement:
    """Subject, predicate, object, qualifiers; `row` is the 1-based line or record it stands in (0:
    not known).

    `raw` is the text as it stood in the source, where the object is a value whose printed form
    differs from it.
    """

    subject: str
    predicate: str
    object: Ref | Value
    qualifiers: tuple[tuple[str, Ref | Value], ...] = ()
    row: int = 0
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Ids:
    """A column of objects that are entities, by their ids."""

    ids: Sequence[str]


class LazyTexts(Sequence[str]):
    """Texts that are bytes, and made only when somebody asks for them."""

    def utf8(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """The bytes they stand in, with eight more behind the last one; where each begins, and how
        many bytes it has.
        """
        raise NotImplementedError

    def sorted(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
        """Their places in order, and which of them, in that order, are not the text before; None
        where they are so long that other ways are quicker.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of objects that are texts, white space collapsed; `collapsed`: it is known to be."""

    texts: Sequence[str]
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of objects that are numbers of one unit: float64, or int64 (exact)."""

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
    """A column of objects of mixed types, one by one."""

    values: Sequence[Ref | Value]


Column: TypeAlias = Ids | Texts | Numbers | Times | Values


@dataclass(frozen=True, slots=True)
class Raws(Sequence[str | None]):
    """The texts of the source beside a column of `length` values, None but at the places `at`
    (ascending), where `texts` stand.
    """

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
    """Statements side by side: every part has one length, and `predicates` may be one name for all.

    `rows` are the 1-based positions in the source. `raws` may be None, or has the source's text
    where it differs from the printed value and None elsewhere (`Raws`, where that is rare). `qualifiers` are columns of one key
    each; a None in such a column means that the statement lacks it. `source` is the name of the
    source they come from, where it is another than the one being read.
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
    """Rows of a table side by side, as entities of kind row: their ids, their names, and their
    1-based positions in the source; `source` as in a `Batch`.
    """

    ids: Sequence[str]
    names: Sequence[str]
    rows: Sequence[int]
    source: str = ""

    def __len__(self) -> int:
        return len(self.ids)

    def entities(self) -> Iterator[Entity]:
        """The same one by one."""
        for ident, name, row in zip(self.ids, self.names, self.rows, strict=True):
            yield Entity(ident, name, EntityKind.ROW, row)


@dataclass(frozen=True, slots=True)
class Members:
    """Entities side by side that are instances of one concept, and the 1-based positions in the
    source that say so; `source` as in a `Batch`.
    """

    entities: Sequence[str]
    concept: str
    rows: Sequence[int]
    source: str = ""

    def __len__(self) -> int:
        return len(self.entities)

    def one_by_one(self) -> Iterator[Member]:
        """The same as single items."""
        for entity, row in zip(self.entities, self.rows, strict=True):
            yield Member(entity, self.concept, int(row))


#: Many items side by side: the type, and the same for `isinstance`.
Many: TypeAlias = Batch | Rows | Members
MANY: Final = (Batch, Rows, Members)


@dataclass(frozen=True, slots=True)
class Sourced:
    """An item with sources of its own, `(source name, row)`, instead of the one being read: what an
    export holds.
    """

    item: Entity | Member | Subclass | Statement
    sources: tuple[tuple[str, int], ...]


#: A `Source` among the items only tells where statements of that name come from; it does not change
#: the one being read.
Item: TypeAlias = Entity | Member | Subclass | Statement | Many | Sourced | Source
