"""Single changes of statements, memberships, subclasses and names: what a call means, checked against
what the graph holds.
"""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from condgraph.edits import EDITS, SOURCE, Edit, Edits, GraphContent, Kind, Part, key_of, normal, shown, stored, type_of
from condgraph.engine.errors import AmbiguousNameError, LiteralError, LoadError, OptionError, SourceError, UnknownNameError, nearest
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Entity, Member, Ref, Statement, Subclass
from condgraph.engine.period import time_of
from condgraph.engine.records import Evidence
from condgraph.engine.values import Kind as ValueKind
from condgraph.engine.values import Quantity, Time, Unknown, Value, collapse, parse_quantity
from condgraph.reports import EditReport
from condgraph.storage import Storage

#: Statements that are named where one is not there.
_NEAREST: Final = 3
#: Entities of a graph in which the nearest name is looked for.
MOST_NAMES: Final = 20_000
_WORDS: Final = {
    ValueKind.TEXT: "texts", ValueKind.QUANTITY: "quantities", ValueKind.TIME: "times", ValueKind.ENTITY: "entities",
    ValueKind.UNKNOWN: "unknown values",
}  # fmt: skip

#: The qualifiers that say when a statement holds.
_VALIDITY: Final = (START_TIME, END_TIME, POINT_IN_TIME)

Pairs = Mapping[str, Any] | Iterable[tuple[str, Any]] | None


def add(storage: Storage, subject: Any, predicate: Any, thing: Any, qualifiers: Pairs, by: str | None, note: str, new_type: bool,
        wait: float) -> EditReport:  # fmt: skip
    """`Graph.add` of one statement, membership, subclass or entity."""

    def parts(reading: _Reading) -> tuple[list[Part], list[Part]]:
        if isinstance(subject, (Member, Subclass, Entity)) and predicate is None:
            part: Part = reading.linked(replace(subject, row=0), new=True)
            renamed = reading.name_of(part.id) if isinstance(part, Entity) else None
            if isinstance(part, Entity) and renamed not in (None, part.name, part.id):
                raise SourceError(
                    f"entity {part.id!r} is called {renamed!r}",
                    hint=f"graph.correct(Entity({part.id!r}, {renamed!r}), name=...) renames it",
                )
        else:
            part = _holding(reading.statement(subject, predicate, thing, qualifiers))
        if reading.states(part):
            raise SourceError(f"the graph states this already: {shown(part)}")
        return [*reading.declared, part], []

    return _changed(storage, "add", parts, by, note, new_type, wait)


def retract(storage: Storage, statement: Any, by: str | None, note: str, wait: float) -> EditReport:
    """`Graph.retract`."""

    def parts(reading: _Reading) -> tuple[list[Part], list[Part]]:
        return [], [reading.there(statement)]

    return _changed(storage, "retract", parts, by, note, True, wait)


def correct(storage: Storage, statement: Any, changes: dict[str, Any], by: str | None, note: str, new_type: bool,
            wait: float) -> EditReport:  # fmt: skip
    """`Graph.correct`; `changes` has what is given of subject, predicate, object, qualifiers and name."""

    def parts(reading: _Reading) -> tuple[list[Part], list[Part]]:
        if isinstance(statement, str):
            ident = reading.entity(statement, "entity", new=False)
            return renamed(reading, Entity(ident, reading.name_of(ident) or ident))
        if isinstance(statement, Entity):
            return renamed(reading, statement)
        return replaced(reading)

    def renamed(reading: _Reading, entity: Entity) -> tuple[list[Part], list[Part]]:
        name = changes.get("name")
        if set(changes) != {"name"} or not isinstance(name, str) or not name:
            raise OptionError("of an entity the name is corrected", hint="graph.correct(Entity(id, name), name='New name')")
        known = reading.name_of(entity.id)
        if known != entity.name:
            there = [] if known is None else [known]
            raise UnknownNameError("entity", f"{entity.id} ({entity.name})", candidates=there)
        if known == name:
            raise SourceError(f"entity {entity.id!r} is called {name!r} already")
        return [Entity(entity.id, name)], [Entity(entity.id, entity.name)]

    def replaced(reading: _Reading) -> tuple[list[Part], list[Part]]:
        if "name" in changes:
            raise OptionError("a statement has no name", hint="graph.correct(Entity(id, name), name=...) renames an entity")
        if not changes:
            raise OptionError("nothing is corrected", hint="name subject=, predicate=, object= or qualifiers=")
        old = reading.there(statement)
        if not isinstance(old, Statement):
            raise OptionError("a membership is retracted, and another one added; it has no parts to correct")
        new = reading.statement(
            changes.get("subject", Ref(old.subject)), changes.get("predicate", old.predicate), changes.get("object", old.object),
            changes.get("qualifiers", old.qualifiers),
        )  # fmt: skip
        if "qualifiers" in changes:
            _holding(new)
        if key_of(new) == key_of(old):
            raise SourceError(f"the statement is as it is to be already: {shown(old)}")
        if reading.states(new):
            raise SourceError(f"the graph states this already: {shown(new)}", hint="retract the other statement")
        return [*reading.declared, new], [old]

    return _changed(storage, "correct", parts, by, note, new_type, wait)


def _holding(statement: Statement) -> Statement:
    """The same; raises `LiteralError` for one that ends before it starts, and so holds at no time."""
    starts, ends = (
        [value for key, value in statement.qualifiers if key == name and isinstance(value, Time)] for name in (START_TIME, END_TIME)
    )
    if starts and ends and min(one.start for one in starts) >= max(one.end for one in ends):
        raise LiteralError(f"the statement would hold at no time: it ends in {max(ends)}, before it starts in {min(starts)}")
    return statement


def _changed(storage: Storage, kind: Kind, parts: Any, by: str | None, note: str, new_type: bool, wait: float) -> EditReport:
    storage.check_writable(wait)
    begin = time.perf_counter()
    who = by if by is not None else _user()
    given: tuple[Any, ...] = (who, note)
    for text in given:
        if not isinstance(text, str) or any(0xD800 <= ord(c) < 0xE000 for c in text):
            raise OptionError(f"who made a change, and its note, are texts, not {text!r}")
    warnings: list[str] = []

    def make(known: GraphContent, number: int) -> Edit:
        warnings.clear()
        reading = _Reading(known, new_type, warnings)
        try:
            added, removed = parts(reading)
            when = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            edit = Edit(number, kind, who, when, tuple(added), tuple(removed), note)
            # What cannot be stored is an error before anything is written.
            Edits.of([Edit.read(edit.record())])
        except LoadError as error:
            if type(error) is not LoadError:
                raise
            raise LiteralError(error.message) from error
        return edit

    edit, said = storage.edit(make, wait)
    added, removed = tuple(map(shown, edit.added)), tuple(map(shown, edit.removed))
    seconds = time.perf_counter() - begin
    return EditReport(edit.number, edit.kind, edit.by, edit.at, added, removed, (*said, *warnings), seconds)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


class _Reading:
    """What the parts of a change mean in a graph; `declared` are entities that it names first."""

    def __init__(self, known: GraphContent, new_type: bool, warnings: list[str]) -> None:
        self._known, self._new_type, self._warnings = known, new_type, warnings
        self.declared: list[Part] = []
        mine = next((source for source in known.sources() if source.name == EDITS), None)
        if mine is not None and mine.format != SOURCE.format:
            raise SourceError(
                f"a source that was loaded is called {EDITS!r}, which is the name of single changes",
                hint="unload it, and load it with name=",
            )

    def states(self, part: Part) -> bool:
        """Whether the graph has it now."""
        return self._known.states(part)

    # -- entities ----------------------------------------------------------------------------------

    def name_of(self, ident: str) -> str | None:
        """What an entity is called; None where there is none of this id."""
        return self._known.name_of(ident)

    def entity(self, thing: Any, role: str, *, new: bool = True) -> str:
        """The id of an entity that is named by its id or its name, or that is new."""
        if isinstance(thing, Entity):
            known = self.name_of(thing.id)
            if known is None or (known == thing.id and thing.name != thing.id):
                self.declared.append(Entity(thing.id, thing.name, thing.kind))
            elif known != thing.name:
                raise SourceError(f"entity {thing.id!r} is called {known!r}, not {thing.name!r}")
            return thing.id
        if isinstance(thing, Ref):
            if self.name_of(thing.id) is None:
                self._warnings.append(f"{role} {thing.id!r} is a new entity")
            return thing.id
        if not isinstance(thing, str) or not thing:
            raise LiteralError(f"the {role} of a statement is an entity, not {thing!r}", hint="name it by its id or its name")
        if self.name_of(thing) is not None:
            return thing
        named = self._known.named(thing)
        if len(named) > 1:
            raise AmbiguousNameError(
                f"{len(named)} entities are called {thing!r}", candidates=named[:10], hint="name one by its id"
            )
        if named:
            return named[0]
        if not new:
            hint = f"Ref({thing!r}) is a new entity" if role == "object" else None
            raise UnknownNameError("entity", thing, candidates=self._near(thing), hint=hint)
        near = self._near(thing)
        self._warnings.append(f"{role} {thing!r} is a new entity" + (f" (near: {', '.join(near)})" if near else ""))
        return thing

    def _near(self, name: str) -> list[str]:
        """The nearest names; of a large graph none, as all would have to be compared."""
        return nearest(name, self._known.names(MOST_NAMES), most=_NEAREST)

    # -- statements --------------------------------------------------------------------------------

    def statement(self, subject: Any, predicate: Any, thing: Any, qualifiers: Pairs) -> Statement:
        """A statement that is to be added."""
        if not isinstance(predicate, str) or not predicate.strip():
            raise LiteralError(f"a predicate is a text, not {predicate!r}")
        ident = self.entity(subject, "subject")
        kinds = self._known.kinds(predicate)
        names = self._known.predicates()
        if not kinds and names is not None:
            near = nearest(predicate, names, most=_NEAREST)
            self._warnings.append(f"predicate {predicate!r} is new" + (f" (near: {', '.join(near)})" if near else ""))
        value = self.value(thing, kinds, f"the object of {predicate!r}")
        pairs = []
        try:
            given = [] if qualifiers is None else list(qualifiers.items() if isinstance(qualifiers, Mapping) else qualifiers)
            for key, one in given:
                if not isinstance(key, str) or not key.strip():
                    raise LiteralError(f"a qualifier is a text, not {key!r}")
                kinds = self._known.key_kinds(key)
                pairs.append((key, self.value(self._moment(key, one, kinds), kinds, f"the qualifier {key!r}")))
        except (TypeError, ValueError) as error:
            if isinstance(error, LiteralError):
                raise
            raise LiteralError(f"qualifiers are pairs of a key and a value, not {qualifiers!r}") from error
        return normal(Statement(ident, predicate, value, tuple(pairs)))

    def _moment(self, key: str, one: Any, kinds: set[ValueKind]) -> Any:
        """The time that a text or a year is as a qualifier that says when a statement holds; as it is given where it is none, or
        where the graph has no times there.
        """
        if key not in _VALIDITY or self._new_type or (kinds and ValueKind.TIME not in kinds):
            return one
        when = _time(one)
        if when is None and isinstance(one, str):
            self._warnings.append(f"the qualifier {key!r}, {one!r}, is not a time: it does not say when the statement holds")
        return one if when is None else when

    def value(self, thing: Any, kinds: set[ValueKind], what: str) -> Ref | Value:
        """A value as it is stored. A text is read as the type that such values have, where they have one."""
        if isinstance(thing, (Ref, Entity)):
            value: Ref | Value = Ref(self.entity(thing, "object"))
        elif isinstance(thing, bool) or thing is None:
            raise LiteralError(f"{what} is no value: {thing!r}", hint="text, a number, Quantity, Time, Ref or UNKNOWN is expected")
        elif isinstance(thing, (int, float, Decimal)):
            value = Quantity(thing)
        elif isinstance(thing, (Quantity, Time, Unknown)):
            value = thing
        elif isinstance(thing, (date, datetime)):
            value = Time.parse(thing.isoformat())
        elif isinstance(thing, str):
            value = self._read(thing, kinds, what)
        else:
            raise LiteralError(f"{what} is no value: {thing!r}", hint="text, a number, Quantity, Time, Ref or UNKNOWN is expected")
        kind = type_of(value)
        if kinds and kind not in kinds and kind is not ValueKind.UNKNOWN and not self._new_type:
            known = " or ".join(_WORDS[one] for one in sorted(kinds))
            raise LiteralError(
                f"{what} is of the type {kind.name.lower()}, and the graph has {known} there",
                hint="new_type=True adds it all the same",
            )
        return stored(value)

    def _read(self, text: str, kinds: set[ValueKind], what: str) -> Ref | Value:
        only = next(iter(kinds - {ValueKind.UNKNOWN}), None) if len(kinds - {ValueKind.UNKNOWN}) == 1 else None
        if not kinds and not self._new_type and (meant := _plainly(text)):
            self._warnings.append(f"{what}, {text!r}, is added as a text, and not as a {meant}")
        if self._new_type or only in (None, ValueKind.TEXT):
            return text
        if only is ValueKind.ENTITY:
            return Ref(self.entity(text, "object", new=False))
        read: Value | None = None
        if only is ValueKind.TIME:
            read = _time(text)
        else:
            with suppress(ValueError):
                read = parse_quantity(text)
        if read is None:
            assert only is not None
            raise LiteralError(
                f"{what}: {text!r} is not of the type {only.name.lower()}, which the graph has there",
                hint="new_type=True adds it as a text all the same",
            )
        return read

    # -- what is there -----------------------------------------------------------------------------

    def there(self, thing: Any) -> Part:
        """A statement, membership or subclass that the graph has. Raises `UnknownNameError` with the
        nearest where it does not.
        """
        if type(thing) is tuple:
            return self._written(thing)
        part: Part = self.linked(_part_of(thing))
        if isinstance(part, Statement):
            part = normal(replace(part, subject=self._subject(part.subject)))
        if self.states(part):
            return part
        raise self._missing(part)

    def linked(self, part: Part, *, new: bool = False) -> Any:
        """A membership or subclass whose ends may be named by name; what is `new` is warned of."""
        if isinstance(part, Member):
            one, other = part.entity, part.concept
            return replace(part, entity=self._end(one, "entity", new=new), concept=self._end(other, "concept", new=new))
        if isinstance(part, Subclass):
            one, other = part.concept, part.parent
            return replace(part, concept=self._end(one, "concept", new=new), parent=self._end(other, "concept", new=new))
        return part

    def _end(self, text: str, role: str, *, new: bool) -> str:
        return self.entity(text, role) if new else self._subject(text)

    def _written(self, parts: tuple[Any, ...]) -> Part:
        """The statement that is meant by subject, predicate, object and perhaps qualifiers as people write them; without
        qualifiers the only one of that subject, predicate and object.
        """
        if len(parts) not in (3, 4) or not all(isinstance(part, str) for part in parts[:2]):
            raise OptionError(
                f"a statement is subject, predicate, object and perhaps qualifiers, not {parts!r}", hint="the first two are texts"
            )
        subject, predicate = self.entity(parts[0], "subject", new=False), parts[1]
        pairs = parts[3] if len(parts) == 4 else None
        given = None if pairs is None else list(pairs.items() if isinstance(pairs, Mapping) else pairs)

        def fits(statement: Statement) -> bool:
            if not self._meant(parts[2], statement.object):
                return False
            if given is None:
                return True
            left = list(statement.qualifiers)
            for key, value in given:
                at = next((i for i, (name, one) in enumerate(left) if name == key and self._meant(value, one)), None)
                if at is None:
                    return False
                del left[at]
            return not left

        every = self._known.about(subject, predicate)
        result = [statement for statement in every if fits(statement)]
        if len(result) > 1:
            meant = " | ".join(map(str, parts[:3]))
            raise AmbiguousNameError(
                f"{len(result)} statements are meant by {meant}",
                candidates=list(map(shown, result[:10])),
                hint="name the qualifiers as well",
            )
        if not result:
            value = parts[2] if isinstance(parts[2], (str, Ref, Quantity, Time, Unknown)) else str(parts[2])
            raise self._missing(Statement(subject, predicate, value))
        return normal(result[0])

    def _meant(self, given: Any, value: Ref | Value) -> bool:
        """Whether a value is meant by what somebody writes."""
        if isinstance(given, (Ref, Entity)):
            return isinstance(value, Ref) and value.id == given.id
        if isinstance(value, Time) and _time(given) == value:
            return True
        if not isinstance(given, str):
            meant = self.value(given, set(), "the object")
            return key_of(Statement("", "", meant)) == key_of(Statement("", "", value))
        if isinstance(value, Ref):
            return given in (value.id, self.name_of(value.id))
        try:
            if isinstance(value, Quantity) and parse_quantity(given) == value:
                return True
        except ValueError:
            pass
        return collapse(given) == str(value)

    def _missing(self, part: Part) -> UnknownNameError:
        """The error of a part that the graph does not have, with the nearest that it has."""
        near: list[str] = []
        if isinstance(part, Statement):
            others = self._known.about(part.subject, part.predicate) or self._known.some_about(part.subject)
            by_text = {shown(one): None for one in others}
            near = nearest(shown(part), by_text, most=_NEAREST) or list(by_text)[:_NEAREST]
            if self.name_of(part.subject) is None:
                near = near or self._near(part.subject)
        hint = "answer.evidence, or graph.export, has statements as the graph states them"
        return UnknownNameError("statement", shown(part), candidates=near, hint=hint)

    def _subject(self, subject: str) -> str:
        if self.name_of(subject) is not None:
            return subject
        named = self._known.named(subject)
        return named[0] if len(named) == 1 else subject


def _time(written: Any) -> Time | None:
    """The time that is written, as `at=` of a query takes it; None where it is none."""
    try:
        return time_of(written, "time")
    except OptionError:
        return None


def _plainly(text: str) -> str:
    """The types that a text looks as if it were of; empty where that is a text."""
    words = []
    for word, read in (("number", parse_quantity), ("time", Time.parse)):
        with suppress(ValueError):
            read(text)
            words.append(word)
    return " or ".join(words)


def _part_of(thing: Any) -> Part:
    """What names a statement, a membership or a subclass."""
    if isinstance(thing, Evidence):
        value = Ref(thing.object.id) if isinstance(thing.object, Entity) else thing.object
        if thing.kind != "statement":
            assert isinstance(value, Ref)
            return Member(thing.subject.id, value.id) if thing.kind == "membership" else Subclass(thing.subject.id, value.id)
        pairs = tuple((key, Ref(one.id) if isinstance(one, Entity) else one) for key, one in thing.qualifiers)
        return Statement(thing.subject.id, thing.predicate, value, pairs)
    if isinstance(thing, (Statement, Member, Subclass)):
        return replace(thing, row=0)
    if isinstance(thing, Entity):
        raise OptionError("an entity goes with its last statement", hint="retract its statements")
    raise OptionError(f"a statement, a membership or evidence of an answer is expected, not {thing!r}")
