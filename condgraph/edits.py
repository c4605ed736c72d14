"""Single changes of a graph: their records, their combined effect, and their merge into the columns.

A statement is identified by subject, predicate, object and the set of its qualifiers. A change that removes a
statement hides it from every source, even when the source is loaded again.
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

#: The source of everything that single changes add, and the format of that source.
EDITS: Final = "edits"
SOURCE: Final = Source(EDITS, "", EDITS)
#: The default time that a change waits for other writers, in seconds.
WAIT: Final = 10.0
#: The default of parameters for which None is a value.
MISSING: Final = object()

Kind: TypeAlias = Literal["add", "retract", "correct"]
#: An item that a change adds or removes.
Part: TypeAlias = Statement | Entity | Member | Subclass
Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """One change.

    `number` counts from 1 and is the row of the added items in the source `edits`. `at` is the time in UTC (ISO
    8601), `by` the author.
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
        """Return the change as one line of JSON."""
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
        """Return the change of a record. Raises `StoreDamagedError` for an invalid record."""
        try:
            fields = json.loads(record)
            added, removed = (tuple(_part(part) for part in fields.get(name, ())) for name in ("added", "removed"))
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
        raise ValueError(f"{item!r} is not a part of a change")
    return item


def shown(part: Part) -> str:
    """Return a part of a change as text for a message."""
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
    """Return the predicate of a statement and the keys of its qualifiers."""
    return (statement.predicate, *(key for key, _ in statement.qualifiers))


def ids_of(part: Part) -> tuple[str, ...]:
    """Return the ids of the entities in a part."""
    if isinstance(part, Statement):
        refs = [value.id for value in (part.object, *(value for _, value in part.qualifiers)) if isinstance(value, Ref)]
        return (part.subject, *refs)
    if isinstance(part, Entity):
        return (part.id,)
    return (part.entity, part.concept) if isinstance(part, Member) else (part.concept, part.parent)


# -- identity --------------------------------------------------------------------------------------


def stored(value: Ref | Value) -> Ref | Value:
    """Return a value in the form in which a graph stores it: white space collapsed, a whole number as an `int`."""
    texts: dict[str, int] = {}
    cells = encode_values(
        [value], lambda text: texts.setdefault(text, len(texts)), lambda ident: texts.setdefault(ident, len(texts))
    )
    names = list(texts)
    return decode_values(cells, names.__getitem__, names.__getitem__)[0]


def normal(statement: Statement) -> Statement:
    """Return a statement in the form in which a graph stores it, with distinct qualifiers and without its row."""
    pairs = dict.fromkeys((key, stored(value)) for key, value in statement.qualifiers)
    return replace(statement, object=stored(statement.object), qualifiers=tuple(pairs), row=0, raw=None)


def _value_key(value: Ref | Value) -> Key:
    return (form_of(value), str(value)) if isinstance(value, str) else (type(value).__name__, value)


def key_of(part: Part) -> Key:
    """Return the identity of a part. A statement must be in stored form (`normal`)."""
    if isinstance(part, Statement):
        pairs = frozenset((key, _value_key(value)) for key, value in part.qualifiers)
        return "statement", part.subject, part.predicate, _value_key(part.object), pairs
    if isinstance(part, Entity):
        return "entity", part.id
    if isinstance(part, Member):
        return "member", part.entity, part.concept
    return "subclass", part.concept, part.parent


def about(snapshot: Snapshot, subject: str, predicate: str) -> Numbers:
    """Return the numbers of the statements with a subject and a predicate, sorted."""
    entity = snapshot.identified(subject)
    if entity < 0:
        return NONE
    runs = snapshot.runs((predicate,), True, True)
    parts = [snapshot.outgoing(entity, low, high) for low, high in runs]
    return np.concatenate(parts) if parts else NONE


def find(snapshot: Snapshot, statement: Statement) -> int:
    """Return the number of a statement (in the form of `normal`) in a snapshot, or -1."""
    numbers = about(snapshot, statement.subject, statement.predicate)
    key = key_of(statement)
    for number, (candidate, _) in zip(numbers.tolist(), readback.statements(snapshot, numbers), strict=True):
        if key_of(candidate) == key:
            return int(number)
    return -1


# -- several changes together ----------------------------------------------------------------------


@dataclass(slots=True)
class Edits:
    """The combined effect of successive changes: what is removed from the columns, and what is added, with the number
    of its change. A statement that was removed and then added again is in both, and then only the source `edits`
    states it.
    """

    added: dict[Key, tuple[Part, int]] = field(default_factory=dict)
    removed: dict[Key, Part] = field(default_factory=dict)
    count: int = 0

    @classmethod
    def of(cls, edits: Iterable[Edit]) -> Edits:
        """Return the effect of some changes."""
        return cls().followed_by(edits)

    def followed_by(self, edits: Iterable[Edit]) -> Edits:
        """Return the effect of these changes and later ones, as a new object."""
        result = Edits(dict(self.added), dict(self.removed), self.count)
        for edit in edits:
            result.apply(edit)
        return result

    def __bool__(self) -> bool:
        return self.count > 0

    def apply(self, edit: Edit) -> None:
        """Include one more change."""
        for part in edit.removed:
            self.added.pop(key_of(part), None)
            self.removed[key_of(part)] = part
        for part in edit.added:
            self.added[key_of(part)] = part, edit.number
        self.count += 1

    @property
    def hidden(self) -> dict[Key, Part]:
        """The parts that are hidden from every source: removed, and not added again."""
        return {key: part for key, part in self.removed.items() if key not in self.added}

    def states(self, snapshot: Snapshot | None, part: Part) -> bool:
        """Return whether a snapshot with these changes has a statement (in the form of `normal`), a membership or a
        subclass.
        """
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
        """Return the statements with a subject and a predicate after these changes."""
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
        """Yield the added parts, each with the number of its change as row."""
        for part, number in self.added.values():
            # Entities keep theirs: the row of an entity is one of a table.
            yield part if isinstance(part, Entity) else replace(part, row=number)

    def builder(self, snapshot: Snapshot | None, without: Iterable[str] = ()) -> Builder:
        """Return a builder with the content of a snapshot after these changes, without some sources."""
        stays = None
        if snapshot is not None:
            stays = np.ones(snapshot.statements, bool)
            stays[self.numbers(snapshot)] = False
            if any(isinstance(part, (Member, Subclass)) for part in self.hidden.values()):
                builder = Builder(snapshot, (), stays, unused=False)
                if self.drop_links(builder):
                    # The second builder drops concepts that are no longer mentioned.
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
        """Merge these changes into the columns of a snapshot. Returns None if it must be built again."""
        from condgraph.engine.snapshot.merged import CannotMergeError, merged

        if snapshot is None or not all(isinstance(part, Statement) for part in self.removed.values()):
            return None
        additions = None
        if self.added:
            if not all(isinstance(part, (Statement, Entity)) for part, _ in self.added.values()):
                return None
            builder = Builder()
            ids = dict.fromkeys(ident for part, _ in self.added.values() for ident in ids_of(part))
            numbers = [number for ident in ids if (number := snapshot.identified(ident)) >= 0]
            builder.add(Sourced(Entity(snapshot.ident(number), snapshot.name(number)), ()) for number in numbers)
            builder.begin(SOURCE)
            builder.add(self.items())
            additions = Snapshot.of(*lay_out(builder))
        try:
            return merged(snapshot, self.numbers(snapshot), additions)
        except CannotMergeError:
            return None

    def numbers(self, snapshot: Snapshot) -> Numbers:
        """Return the numbers of the removed statements in a snapshot, sorted."""
        numbers = [find(snapshot, part) for part in self.removed.values() if isinstance(part, Statement)]
        return np.array(sorted(number for number in numbers if number >= 0), np.int32)

    def drop_links(self, builder: Builder) -> bool:
        """Remove hidden memberships and subclasses from a builder. Returns whether there were any."""
        ids, before = builder.entities, _links(builder)
        for part in self.hidden.values():
            if isinstance(part, Member) and part.entity in ids and part.concept in ids:
                entity, concept = ids[part.entity], ids[part.concept]
                builder.many_members = [rows[(rows[:, 0] != entity) | (rows[:, 1] != concept)] for rows in builder.many_members]
                builder.members = [row for row in builder.members if row[:2] != (entity, concept)]
            elif isinstance(part, Subclass) and part.concept in ids and part.parent in ids:
                pair = ids[part.concept], ids[part.parent]
                builder.subclasses = [row for row in builder.subclasses if row[:2] != pair]
        return _links(builder) < before

    def rename(self, builder: Builder) -> None:
        """Give entities the names from these changes, whatever names sources have for them."""
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
        """Return the columns and counts of a load with these changes still in effect, and warnings. `builder` is the
        result of the load, `before` the previous content.
        """
        if not self:
            return *lay_out(builder), []
        dropped = self.drop_links(builder)
        self.rename(builder)
        result, notes = self.keep_hidden(Snapshot.of(*lay_out(builder)), unused=dropped)
        columns = {name: result.arrays.get(name) for name in result.arrays.names}
        return columns, result.counts, [*notes, *self.came_back(before, result)]

    def keep_hidden(self, snapshot: Snapshot, *, unused: bool = False) -> tuple[Snapshot, list[str]]:
        """Return a loaded snapshot without the hidden statements, and warnings. `unused` is whether some of its
        entities may no longer be mentioned.
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
        statements_text = numbered(len(numbers), "statement that was retracted stays", "statements that were retracted stay")
        warning = f"{statements_text} hidden, though a source states {'it' if len(numbers) == 1 else 'them'} again: {shown(first)}"
        return without, [warning]

    def came_back(self, before: Snapshot | None, now: Snapshot) -> list[str]:
        """Return warnings about retracted statements that a load states in a changed form."""
        warnings = []
        checked: set[tuple[str, str]] = set()
        for part in self.removed.values():
            if not isinstance(part, Statement) or (part.subject, part.predicate) in checked:
                continue
            checked.add((part.subject, part.predicate))
            old_keys = {key_of(statement) for statement in Edits().about(before, part.subject, part.predicate)}
            new_statements = [
                statement for statement in Edits().about(now, part.subject, part.predicate) if key_of(statement) not in old_keys
            ]
            new_statements = [
                statement
                for statement in new_statements
                if key_of(statement) not in self.removed and key_of(statement) not in self.added
            ]
            if new_statements:
                warnings.append(f"{shown(part)} was retracted, and comes back changed: {shown(new_statements[0])}")
        return warnings[:20] + ([f"and {len(warnings) - 20} more come back changed"] if len(warnings) > 20 else [])


def _links(builder: Builder) -> int:
    return sum(map(len, builder.many_members)) + len(builder.members) + len(builder.subclasses)


def _linked(snapshot: Snapshot, table: Literal["mem", "sub"], below: str, above: str) -> bool:
    ends = snapshot.identified(below), snapshot.identified(above)
    return min(ends) >= 0 and bool(readback.link_sources(snapshot, table, *ends))


def is_quick(edit: Edit) -> bool:
    """Return whether a change contains only statements and new entities. Then it is merged into the columns quickly;
    any other change takes as long as a load.
    """
    return all(isinstance(part, Statement) for part in edit.removed) and all(
        isinstance(part, Statement) or (isinstance(part, Entity) and part.kind is EntityKind.ENTITY) for part in edit.added
    )


# -- the content that a change is checked against --------------------------------------------------


class GraphContent(Protocol):
    """The content of a graph, as far as a change needs it."""

    def sources(self) -> Sequence[Source]:
        """Return the sources, in order."""
        ...

    def name_of(self, ident: str) -> str | None:
        """Return the name of an entity, or None for an unknown id."""
        ...

    def named(self, name: str) -> list[str]:
        """Return the ids of the entities with a name."""
        ...

    def names(self, most: int) -> Iterable[str]:
        """Return the names of all entities, or nothing if there are more than `most`."""
        ...

    def predicates(self) -> Sequence[str] | None:
        """Return all predicates, or None if the graph is empty."""
        ...

    def kinds(self, predicate: str) -> set[ValueKind]:
        """Return the types of a predicate's objects."""
        ...

    def key_kinds(self, key: str) -> set[ValueKind]:
        """Return the types of a qualifier's values."""
        ...

    def about(self, subject: str, predicate: str) -> list[Statement]:
        """Return the statements with a subject and a predicate."""
        ...

    def some_about(self, subject: str) -> list[Statement]:
        """Return up to 100 statements with a subject."""
        ...

    def states(self, part: Part) -> bool:
        """Return whether the graph has a statement (in the form of `normal`), a membership, a subclass, or an entity
        with this name.
        """
        ...


class EditedContent:
    """The `GraphContent` of a snapshot with the changes since then."""

    def __init__(self, snapshot: Snapshot | None, waiting: Edits) -> None:
        self._snapshot, self._waiting = snapshot, waiting

    def sources(self) -> Sequence[Source]:
        return [] if self._snapshot is None else list(map(self._snapshot.source_of, range(len(self._snapshot.schema.sources))))

    def name_of(self, ident: str) -> str | None:
        for part, _ in reversed(self._waiting.added.values()):
            if isinstance(part, Entity) and part.id == ident:
                return part.name
        number = -1 if self._snapshot is None else self._snapshot.identified(ident)
        if number >= 0:
            assert self._snapshot is not None
            return self._snapshot.name(number)
        return ident if any(ident in ids_of(part) for part, _ in self._waiting.added.values()) else None

    def named(self, name: str) -> list[str]:
        snapshot = self._snapshot
        ids = [] if snapshot is None else [snapshot.ident(number) for number in snapshot.named(name).tolist()]
        ids += [part.id for part, _ in self._waiting.added.values() if isinstance(part, Entity) and part.name == name]
        return [ident for ident in dict.fromkeys(ids) if self.name_of(ident) == name]

    def names(self, most: int) -> Iterable[str]:
        snapshot = self._snapshot
        if snapshot is None or snapshot.entities > most:
            return ()
        return map(snapshot.name, range(snapshot.entities))

    def predicates(self) -> Sequence[str] | None:
        snapshot = self._snapshot
        return None if snapshot is None else [snapshot.predicate_name(number) for number in range(snapshot.predicate_count)]

    def kinds(self, predicate: str) -> set[ValueKind]:
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
        pairs = (pair for part, _ in self._waiting.added.values() if isinstance(part, Statement) for pair in part.qualifiers)
        kinds = {type_of(value) for name, value in pairs if name == key}
        snapshot = self._snapshot
        number = -1 if snapshot is None else snapshot.predicate(key)
        if snapshot is not None and number >= 0:
            kinds |= {kind for kind, _, _, _ in snapshot.qualifier_groups(number)}
        return kinds

    def about(self, subject: str, predicate: str) -> list[Statement]:
        return self._waiting.about(self._snapshot, subject, predicate)

    def some_about(self, subject: str) -> list[Statement]:
        if self._snapshot is None or (entity := self._snapshot.identified(subject)) < 0:
            return []
        numbers = self._snapshot.outgoing(entity, 0, self._snapshot.statements)[:100]
        statements = [statement for statement, _ in readback.statements(self._snapshot, numbers)]
        return [statement for statement in statements if key_of(normal(statement)) not in self._waiting.removed]

    def states(self, part: Part) -> bool:
        return self._waiting.states(self._snapshot, part)


def type_of(value: Ref | Value) -> ValueKind:
    """Return the type of an object or of a qualifier's value."""
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
    """The statements that a change removes, and their identities (`engine.identity`)."""

    statements: tuple[Statement, ...]
    identities: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoteEdit:
    """A change of a graph on a server, with the graph `before` and `after` it. `content` is the name of the earlier
    content on the server.

    If `stated` is given, both snapshots contain only what the change affects, and `stated` summarises the whole graph
    after the change.
    """

    edit: Edit
    content: str
    before: Snapshot
    after: Snapshot
    stated: GraphSummary | None = None

    @property
    def number(self) -> int:
        return self.edit.number

    @property
    def record(self) -> str:
        """The record of the change, as a line of JSON."""
        return self.edit.record().decode()


def joined(change: Change, records: Iterable[str], previous: Snapshot | None, snapshot: Snapshot) -> tuple[Snapshot, list[str]]:
    """Return the content of a graph on a server after a snapshot was loaded, and warnings. `change` is what the load
    does to existing sources, and `records` are the single changes, which stay in effect.
    """
    edits = Edits.of(Edit.read(record.encode()) for record in records)
    if previous is None or not edits:
        return change.joined(previous, snapshot), []
    builder = change.builder(previous)
    builder.add(readback.items(snapshot))
    columns, counts, notes = edits.settled(builder, previous)
    return Snapshot.of(columns, counts), notes
