"""Single changes of a graph: their records, what several of them do together, and their merge with
the columns of a graph.

A statement is identified by subject, predicate, object and its set of qualifiers. A change that
takes one away hides it from every source: also from one that is loaded again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np

from condgraph.engine.changes import Change
from condgraph.engine.errors import StoreDamagedError, numbered, on_one_line
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot import readback
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.cells import decode_values, encode_values
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import NONE, Numbers, Snapshot
from condgraph.engine.values import Kind as ValueKind
from condgraph.engine.values import Quantity, Time, Value, form_of

if TYPE_CHECKING:
    from condgraph.overview.adjusted import GraphSummary

#: The source of what single changes add, and its format.
EDITS: Final = "edits"
SOURCE: Final = Source(EDITS, "", EDITS)
#: Seconds that a change waits for other writers if nothing else is said.
WAIT: Final = 10.0
#: What is not given, where None is a value.
MISSING: Final = object()

Kind: TypeAlias = Literal["add", "retract", "correct"]
#: What a change adds or takes away.
Part: TypeAlias = Statement | Entity | Member | Subclass
Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """One change. `number` counts from 1 and is the row of what it adds in the source `edits`; `at` is
    a time in UTC (ISO 8601), `by` who made it.
    """

    number: int
    kind: Kind
    by: str
    at: str
    added: tuple[Part, ...] = ()
    removed: tuple[Part, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        parts = [f"- {shown(part)}" for part in self.removed] + [f"+ {shown(part)}" for part in self.added]
        note = f" ({self.note})" if self.note else ""
        return f"{self.number} {self.kind} by {self.by} at {self.at}{note}: " + "; ".join(parts)

    def record(self) -> bytes:
        """The change as one line of JSON."""
        from condgraph.loaders.export import encode

        record: dict[str, Any] = {"n": self.number, "kind": self.kind, "by": self.by, "at": self.at}
        for name, parts in (("added", self.added), ("removed", self.removed)):
            if parts:
                record[name] = [json.loads(encode(part)) for part in parts]
        if self.note:
            record["note"] = self.note
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def read(cls, record: bytes) -> Edit:
        """The change of a record; raises `StoreDamagedError` for one that is none."""
        try:
            fields = json.loads(record)
            added, removed = (tuple(_part(one) for one in fields.get(name, ())) for name in ("added", "removed"))
            if fields["kind"] not in get_args(Kind):
                raise ValueError(fields["kind"])
            return cls(
                int(fields["n"]), fields["kind"], str(fields["by"]), str(fields["at"]), added, removed, str(fields.get("note", ""))
            )
        except (ValueError, KeyError, TypeError) as error:
            raise StoreDamagedError(f"a change of the log cannot be read: {on_one_line(repr(error))}") from error


def _part(record: Any) -> Part:
    from condgraph.loaders.export import read_record

    item = read_record(record)
    if not isinstance(item, Part):
        raise ValueError(f"{item!r} is no part of a change")
    return item


def shown(part: Part) -> str:
    """A part of a change as a message names it."""
    if isinstance(part, Statement):
        thing = part.object.id if isinstance(part.object, Ref) else str(part.object)
        text = f"{part.subject} | {part.predicate} | {thing}"
        if part.qualifiers:
            pairs = (f"{key}: {value.id if isinstance(value, Ref) else value}" for key, value in part.qualifiers)
            text += f" ({', '.join(pairs)})"
    elif isinstance(part, Entity):
        text = f"{part.id} is called {part.name}"
    elif isinstance(part, Member):
        text = f"{part.entity} | instance of | {part.concept}"
    else:
        text = f"{part.concept} | subclass of | {part.parent}"
    return on_one_line(text, 300)


def named_in(statement: Statement) -> tuple[str, ...]:
    """The predicate of a statement, and the keys of its qualifiers."""
    return (statement.predicate, *(key for key, _ in statement.qualifiers))


def ids_of(part: Part) -> tuple[str, ...]:
    """The entities that a part names."""
    if isinstance(part, Statement):
        refs = [value.id for value in (part.object, *(value for _, value in part.qualifiers)) if isinstance(value, Ref)]
        return (part.subject, *refs)
    if isinstance(part, Entity):
        return (part.id,)
    return (part.entity, part.concept) if isinstance(part, Member) else (part.concept, part.parent)


# -- identity --------------------------------------------------------------------------------------


def stored(value: Ref | Value) -> Ref | Value:
    """A value as a graph has it: white space collapsed, a whole number as an `int`."""
    texts: dict[str, int] = {}
    cells = encode_values(
        [value], lambda text: texts.setdefault(text, len(texts)), lambda ident: texts.setdefault(ident, len(texts))
    )
    names = list(texts)
    return decode_values(cells, names.__getitem__, names.__getitem__)[0]


def normal(statement: Statement) -> Statement:
    """A statement as a graph has it, with each qualifier once, and without its row."""
    pairs = dict.fromkeys((key, stored(value)) for key, value in statement.qualifiers)
    return replace(statement, object=stored(statement.object), qualifiers=tuple(pairs), row=0, raw=None)


def _value_key(value: Ref | Value) -> Key:
    return (form_of(value), str(value)) if isinstance(value, str) else (type(value).__name__, value)


def key_of(part: Part) -> Key:
    """What identifies a part; a statement as a graph has it (`normal`)."""
    if isinstance(part, Statement):
        pairs = frozenset((key, _value_key(value)) for key, value in part.qualifiers)
        return "statement", part.subject, part.predicate, _value_key(part.object), pairs
    if isinstance(part, Entity):
        return "entity", part.id
    if isinstance(part, Member):
        return "member", part.entity, part.concept
    return "subclass", part.concept, part.parent


def about(snapshot: Snapshot, subject: str, predicate: str) -> Numbers:
    """The statements of a subject and a predicate, sorted."""
    entity = snapshot.identified(subject)
    if entity < 0:
        return NONE
    runs = snapshot.runs((predicate,), True, True)
    parts = [snapshot.outgoing(entity, low, high) for low, high in runs]
    return np.concatenate(parts) if parts else NONE


def find(snapshot: Snapshot, statement: Statement) -> int:
    """The number of a statement (`normal`) in a snapshot, or -1."""
    numbers = about(snapshot, statement.subject, statement.predicate)
    key = key_of(statement)
    for number, (other, _) in zip(numbers.tolist(), readback.statements(snapshot, numbers), strict=True):
        if key_of(other) == key:
            return int(number)
    return -1


# -- several changes together ----------------------------------------------------------------------


@dataclass(slots=True)
class Edits:
    """What changes do together, after each other: what is taken away from the columns, and what is
    added, with the number of its change. A statement that is taken away and added again is in both:
    the source `edits` alone states it then.
    """

    added: dict[Key, tuple[Part, int]] = field(default_factory=dict)
    removed: dict[Key, Part] = field(default_factory=dict)
    count: int = 0

    @classmethod
    def of(cls, edits: Iterable[Edit]) -> Edits:
        """All of some changes."""
        return cls().followed_by(edits)

    def followed_by(self, edits: Iterable[Edit]) -> Edits:
        """These and later ones, as changes of their own."""
        result = Edits(dict(self.added), dict(self.removed), self.count)
        for edit in edits:
            result.apply(edit)
        return result

    def __bool__(self) -> bool:
        return self.count > 0

    def apply(self, edit: Edit) -> None:
        """Take one more change."""
        for part in edit.removed:
            self.added.pop(key_of(part), None)
            self.removed[key_of(part)] = part
        for part in edit.added:
            self.added[key_of(part)] = part, edit.number
        self.count += 1

    @property
    def hidden(self) -> dict[Key, Part]:
        """What no source shows: taken away, and not added again."""
        return {key: part for key, part in self.removed.items() if key not in self.added}

    def states(self, snapshot: Snapshot | None, part: Part) -> bool:
        """Whether a snapshot with these changes has a statement (`normal`), a membership or a subclass."""
        key = key_of(part)
        if key in self.added:
            return True
        if snapshot is None or key in self.removed:
            return False
        if isinstance(part, Statement):
            return find(snapshot, part) >= 0
        if isinstance(part, Member):
            return _linked(snapshot, "mem", part.entity, part.concept)
        if isinstance(part, Subclass):
            return _linked(snapshot, "sub", part.concept, part.parent)
        number = snapshot.identified(part.id)
        return number >= 0 and snapshot.name(number) == part.name

    def about(self, snapshot: Snapshot | None, subject: str, predicate: str) -> list[Statement]:
        """The statements of a subject and a predicate with these changes."""
        result: list[Statement] = []
        if snapshot is not None:
            for statement, _ in readback.statements(snapshot, about(snapshot, subject, predicate)):
                if key_of(statement) not in self.removed:
                    result.append(replace(statement, row=0, raw=None))
        for part, _ in self.added.values():
            if isinstance(part, Statement) and (part.subject, part.predicate) == (subject, predicate):
                result.append(part)
        return result

    # -- merging -----------------------------------------------------------------------------------

    def items(self) -> Iterator[Part]:
        """What is added, each part with the row of its change."""
        for part, number in self.added.values():
            # An entity's row is that of a table.
            yield part if isinstance(part, Entity) else replace(part, row=number)

    def builder(self, snapshot: Snapshot | None, without: Iterable[str] = ()) -> Builder:
        """A builder of what a snapshot holds with these changes, without some sources."""
        stays = None
        if snapshot is not None:
            stays = np.ones(snapshot.statements, bool)
            stays[self.numbers(snapshot)] = False
            if any(isinstance(part, (Member, Subclass)) for part in self.hidden.values()):
                builder = Builder(snapshot, (), stays, unused=False)
                if self.drop_links(builder):
                    # Concepts that nobody mentions any more go with the second builder.
                    snapshot = Snapshot.of(*lay_out(builder))
                    stays = np.ones(snapshot.statements, bool)
        builder = Builder(snapshot, without, stays, unused=False)
        if self.added:
            builder.begin(SOURCE)
            builder.add(self.items())
            builder.begin(Source(""))
        self.rename(builder)
        return builder

    def quickly_merged(self, snapshot: Snapshot | None) -> Snapshot | None:
        """A snapshot with these changes merged into its columns; None where it has to be built again."""
        from condgraph.engine.snapshot.merged import CannotMergeError, merged

        if snapshot is None or not all(isinstance(part, Statement) for part in self.removed.values()):
            return None
        second = None
        if self.added:
            if not all(isinstance(part, (Statement, Entity)) for part, _ in self.added.values()):
                return None
            builder = Builder()
            ids = dict.fromkeys(ident for part, _ in self.added.values() for ident in ids_of(part))
            numbers = [number for ident in ids if (number := snapshot.identified(ident)) >= 0]
            builder.add(Sourced(Entity(snapshot.ident(number), snapshot.name(number)), ()) for number in numbers)
            builder.begin(SOURCE)
            builder.add(self.items())
            second = Snapshot.of(*lay_out(builder))
        try:
            return merged(snapshot, self.numbers(snapshot), second)
        except CannotMergeError:
            return None

    def numbers(self, snapshot: Snapshot) -> Numbers:
        """The statements of a snapshot that are taken away, sorted."""
        found = [find(snapshot, part) for part in self.removed.values() if isinstance(part, Statement)]
        return np.array(sorted(number for number in found if number >= 0), np.int32)

    def drop_links(self, builder: Builder) -> bool:
        """Take memberships and subclasses away that are hidden; whether there were any."""
        ids, before = builder.entities, _links(builder)
        for part in self.hidden.values():
            if isinstance(part, Member) and part.entity in ids and part.concept in ids:
                one, other = ids[part.entity], ids[part.concept]
                builder.many_members = [each[(each[:, 0] != one) | (each[:, 1] != other)] for each in builder.many_members]
                builder.members = [each for each in builder.members if each[:2] != (one, other)]
            elif isinstance(part, Subclass) and part.concept in ids and part.parent in ids:
                pair = ids[part.concept], ids[part.parent]
                builder.subclasses = [each for each in builder.subclasses if each[:2] != pair]
        return _links(builder) < before

    def rename(self, builder: Builder) -> None:
        """Give entities the names that changes gave them, whatever sources call them."""
        for part, _ in self.added.values():
            if not isinstance(part, Entity) or key_of(part) not in self.removed:
                continue
            number = builder.entities.get(part.id)
            if number is None:
                continue
            text = builder.texts[part.name]
            builder.names[number] = part.name
            if builder.seeded is not None:
                name = builder.seeded.name.copy()
                name[(builder.seeded.e == number) & (name >= 0)] = text
                builder.seeded = builder.seeded._replace(name=name)
            for entities in builder.declared.values():
                if number in entities and entities[number][0] is not None:
                    entities[number] = (part.name, *entities[number][1:])
            for _, numbers, names, _ in builder.rows:
                names[(numbers == number) & (names >= 0)] = text

    def settled(self, builder: Builder, before: Snapshot | None) -> tuple[dict[str, Any], dict[str, int], list[str]]:
        """The columns and counts of what a load built next to what the graph held `before`, of which these changes stay
        true; and what to say of that.
        """
        if not self:
            return *lay_out(builder), []
        dropped = self.drop_links(builder)
        self.rename(builder)
        result, notes = self.keep_hidden(Snapshot.of(*lay_out(builder)), unused=dropped)
        columns = {name: result.arrays.get(name) for name in result.arrays.names}
        return columns, result.counts, [*notes, *self.came_back(before, result)]

    def keep_hidden(self, snapshot: Snapshot, *, unused: bool = False) -> tuple[Snapshot, list[str]]:
        """A snapshot that was loaded, without the statements that are hidden, and what to say of that; `unused` says that
        some of its entities are perhaps not mentioned any more.
        """
        numbers = [find(snapshot, part) for part in self.hidden.values() if isinstance(part, Statement)]
        numbers = [number for number in numbers if number >= 0]
        stays = np.ones(snapshot.statements, bool)
        stays[numbers] = False
        if numbers or unused:
            without = Snapshot.of(*lay_out(Builder(snapshot, stays=stays, unused=False)))
        if not numbers:
            return without if unused else snapshot, []
        first = next(readback.statements(snapshot, np.array(numbers[:1], np.int32)))[0]
        what = numbered(len(numbers), "statement that was retracted stays", "statements that were retracted stay")
        said = f"{what} hidden, though a source states {'it' if len(numbers) == 1 else 'them'} again: {shown(first)}"
        return without, [said]

    def came_back(self, before: Snapshot | None, now: Snapshot) -> list[str]:
        """What to say of statements that were retracted, and that a load states with a change."""
        said = []
        seen: set[tuple[str, str]] = set()
        for part in self.removed.values():
            if not isinstance(part, Statement) or (part.subject, part.predicate) in seen:
                continue
            seen.add((part.subject, part.predicate))
            old = {key_of(one) for one in Edits().about(before, part.subject, part.predicate)}
            fresh = [one for one in Edits().about(now, part.subject, part.predicate) if key_of(one) not in old]
            fresh = [one for one in fresh if key_of(one) not in self.removed and key_of(one) not in self.added]
            if fresh:
                said.append(f"{shown(part)} was retracted, and comes back changed: {shown(fresh[0])}")
        return said[:20] + ([f"and {len(said) - 20} more come back changed"] if len(said) > 20 else [])


def _links(builder: Builder) -> int:
    return sum(map(len, builder.many_members)) + len(builder.members) + len(builder.subclasses)


def _linked(snapshot: Snapshot, table: Literal["mem", "sub"], below: str, above: str) -> bool:
    ends = snapshot.identified(below), snapshot.identified(above)
    return min(ends) >= 0 and bool(readback.link_sources(snapshot, table, *ends))


def is_quick(edit: Edit) -> bool:
    """Whether a change is of statements and new entities alone: it is merged with columns in little
    time, and others cost as much as a load.
    """
    return all(isinstance(part, Statement) for part in edit.removed) and all(
        isinstance(part, Statement) or (isinstance(part, Entity) and part.kind is EntityKind.ENTITY) for part in edit.added
    )


# -- what a change is made of ----------------------------------------------------------------------


class GraphContent(Protocol):
    """What a graph holds, as far as a change asks."""

    def sources(self) -> Sequence[Source]:
        """The sources, in order."""
        ...

    def name_of(self, ident: str) -> str | None:
        """What an entity is called; None where there is none of this id."""
        ...

    def named(self, name: str) -> list[str]:
        """The ids of the entities of a name."""
        ...

    def names(self, most: int) -> Iterable[str]:
        """The names of all entities; none where there are more than `most`."""
        ...

    def predicates(self) -> Sequence[str] | None:
        """All predicates; None where the graph holds nothing."""
        ...

    def kinds(self, predicate: str) -> set[ValueKind]:
        """The types of a predicate's objects."""
        ...

    def key_kinds(self, key: str) -> set[ValueKind]:
        """The types of a qualifier's values."""
        ...

    def about(self, subject: str, predicate: str) -> list[Statement]:
        """The statements of a subject and a predicate."""
        ...

    def some_about(self, subject: str) -> list[Statement]:
        """Statements of a subject: up to 100."""
        ...

    def states(self, part: Part) -> bool:
        """Whether the graph has a statement (`normal`), a membership, a subclass, or an entity of this name."""
        ...


class EditedContent:
    """`GraphContent` of a snapshot with changes since then."""

    def __init__(self, snapshot: Snapshot | None, waiting: Edits) -> None:
        self._snapshot, self._waiting = snapshot, waiting

    def sources(self) -> Sequence[Source]:
        """The sources of the snapshot."""
        return [] if self._snapshot is None else list(map(self._snapshot.source_of, range(len(self._snapshot.schema.sources))))

    def name_of(self, ident: str) -> str | None:
        """What an entity is called."""
        for part, _ in reversed(self._waiting.added.values()):
            if isinstance(part, Entity) and part.id == ident:
                return part.name
        number = -1 if self._snapshot is None else self._snapshot.identified(ident)
        if number >= 0:
            assert self._snapshot is not None
            return self._snapshot.name(number)
        return ident if any(ident in ids_of(part) for part, _ in self._waiting.added.values()) else None

    def named(self, name: str) -> list[str]:
        """The ids of the entities of a name."""
        snapshot = self._snapshot
        ids = [] if snapshot is None else [snapshot.ident(number) for number in snapshot.named(name).tolist()]
        ids += [part.id for part, _ in self._waiting.added.values() if isinstance(part, Entity) and part.name == name]
        return [ident for ident in dict.fromkeys(ids) if self.name_of(ident) == name]

    def names(self, most: int) -> Iterable[str]:
        """The names of all entities of a small snapshot."""
        snapshot = self._snapshot
        if snapshot is None or snapshot.entities > most:
            return ()
        return map(snapshot.name, range(snapshot.entities))

    def predicates(self) -> Sequence[str] | None:
        """All predicates of the snapshot."""
        snapshot = self._snapshot
        return None if snapshot is None else [snapshot.predicate_name(number) for number in range(snapshot.predicate_count)]

    def kinds(self, predicate: str) -> set[ValueKind]:
        """The types of a predicate's objects."""
        parts = (part for part, _ in self._waiting.added.values())
        kinds = {type_of(part.object) for part in parts if isinstance(part, Statement) and part.predicate == predicate}
        snapshot = self._snapshot
        if snapshot is not None and snapshot.predicate(predicate) >= 0:
            for low, high in snapshot.runs((predicate,), True, True):
                if low < snapshot.relations:
                    kinds.add(ValueKind.ENTITY)
                else:
                    groups = snapshot.groups(low - snapshot.relations, high - snapshot.relations)
                    kinds |= {kind for kind, _, _, _ in groups}
        return kinds

    def key_kinds(self, key: str) -> set[ValueKind]:
        """The types of a qualifier's values."""
        pairs = (pair for part, _ in self._waiting.added.values() if isinstance(part, Statement) for pair in part.qualifiers)
        kinds = {type_of(value) for name, value in pairs if name == key}
        snapshot = self._snapshot
        number = -1 if snapshot is None else snapshot.predicate(key)
        if snapshot is not None and number >= 0:
            kinds |= {kind for kind, _, _, _ in snapshot.qualifier_groups(number)}
        return kinds

    def about(self, subject: str, predicate: str) -> list[Statement]:
        """The statements of a subject and a predicate."""
        return self._waiting.about(self._snapshot, subject, predicate)

    def some_about(self, subject: str) -> list[Statement]:
        """Statements of a subject in the snapshot."""
        if self._snapshot is None or (entity := self._snapshot.identified(subject)) < 0:
            return []
        numbers = self._snapshot.outgoing(entity, 0, self._snapshot.statements)[:100]
        read = [statement for statement, _ in readback.statements(self._snapshot, numbers)]
        return [statement for statement in read if key_of(normal(statement)) not in self._waiting.removed]

    def states(self, part: Part) -> bool:
        """Whether the graph has a part now."""
        return self._waiting.states(self._snapshot, part)


def type_of(value: Ref | Value) -> ValueKind:
    """The type of an object or of a qualifier's value."""
    if isinstance(value, Ref):
        return ValueKind.ENTITY
    if isinstance(value, str):
        return ValueKind.TEXT
    if isinstance(value, Quantity):
        return ValueKind.QUANTITY
    return ValueKind.TIME if isinstance(value, Time) else ValueKind.UNKNOWN


# -- changes on servers --------------------------------------------------------------------------------


class SourceUse(NamedTuple):
    """A source that uses an entity, as a concept or in statements."""

    source: str
    concept: bool


@dataclass(frozen=True, slots=True)
class Removed:
    """Statements that a change takes away, and their identities (`engine.identity`)."""

    statements: tuple[Statement, ...]
    identities: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoteEdit:
    """A change of a graph on a server: its number and record, what it adds and takes away, what the graph holds `before`,
    which has the name `content` there, and `after` it.

    With `stated`, both are but what the change is about, and this is what the graph states afterwards.
    """

    edit: Edit
    content: str
    before: Snapshot
    after: Snapshot
    stated: GraphSummary | None = None

    @property
    def number(self) -> int:
        """The number of the change."""
        return self.edit.number

    @property
    def record(self) -> str:
        """The record of the change."""
        return self.edit.record().decode()


def joined(change: Change, records: Iterable[str], previous: Snapshot | None, snapshot: Snapshot) -> tuple[Snapshot, list[str]]:
    """What a graph on a server holds once a snapshot is loaded next to what it held, with `change`; single changes stay
    true, which are given as their records. And what to say of that.
    """
    edits = Edits.of(Edit.read(record.encode()) for record in records)
    if previous is None or not edits:
        return change.joined(previous, snapshot), []
    builder = change.builder(previous)
    builder.add(readback.items(snapshot))
    columns, counts, notes = edits.settled(builder, previous)
    return Snapshot.of(columns, counts), notes
