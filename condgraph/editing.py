"""Make single changes of statements, memberships, subclasses and names: interpret the arguments and check them
against the graph.
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

#: The number of similar names and statements in an error or warning.
_MAX_NEAR: Final = 3
#: The largest number of entities among which similar names are searched.
MAX_NAMES: Final = 20_000
_WORDS: Final = {
    ValueKind.TEXT: "texts", ValueKind.QUANTITY: "quantities", ValueKind.TIME: "times", ValueKind.ENTITY: "entities",
    ValueKind.UNKNOWN: "unknown values",
}  # fmt: skip

#: The qualifiers for the time at which a statement holds.
_VALIDITY: Final = (START_TIME, END_TIME, POINT_IN_TIME)

Pairs = Mapping[str, Any] | Iterable[tuple[str, Any]] | None


def add(storage: Storage, subject: Any, predicate: Any, thing: Any, qualifiers: Pairs, by: str | None, note: str, new_type: bool,
        wait: float) -> EditReport:  # fmt: skip
    """Implement `Graph.add` for one statement, membership, subclass or entity."""

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
    def parts(reading: _Reading) -> tuple[list[Part], list[Part]]:
        return [], [reading.there(statement)]

    return _changed(storage, "retract", parts, by, note, True, wait)


def correct(storage: Storage, statement: Any, changes: dict[str, Any], by: str | None, note: str, new_type: bool,
            wait: float) -> EditReport:  # fmt: skip
    """Implement `Graph.correct`. `changes` contains the given ones of subject, predicate, object, qualifiers and
    name.
    """

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
        current_name = reading.name_of(entity.id)
        if current_name != entity.name:
            candidates = [] if current_name is None else [current_name]
            raise UnknownNameError("entity", f"{entity.id} ({entity.name})", candidates=candidates)
        if current_name == name:
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
    """Return the statement. Raises `LiteralError` if it ends before it starts, so that it holds at no time."""
    starts, ends = (
        [value for key, value in statement.qualifiers if key == name and isinstance(value, Time)] for name in (START_TIME, END_TIME)
    )
    if starts and ends and min(moment.start for moment in starts) >= max(moment.end for moment in ends):
        raise LiteralError(f"the statement would hold at no time: it ends in {max(ends)}, before it starts in {min(starts)}")
    return statement


def _changed(storage: Storage, kind: Kind, parts: Any, by: str | None, note: str, new_type: bool, wait: float) -> EditReport:
    storage.check_writable(wait)
    begin = time.perf_counter()
    author = by if by is not None else _user()
    texts: tuple[Any, ...] = (author, note)
    for text in texts:
        if not isinstance(text, str) or any(0xD800 <= ord(c) < 0xE000 for c in text):
            raise OptionError(f"who made a change, and its note, are texts, not {text!r}")
    warnings: list[str] = []

    def make(known: GraphContent, number: int) -> Edit:
        warnings.clear()
        reading = _Reading(known, new_type, warnings)
        try:
            added, removed = parts(reading)
            moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            edit = Edit(number, kind, author, moment, tuple(added), tuple(removed), note)
            # Raises for a part that cannot be stored, before anything is written.
            Edits.of([Edit.read(edit.record())])
        except LoadError as error:
            if type(error) is not LoadError:
                raise
            raise LiteralError(error.message) from error
        return edit

    edit, storage_warnings = storage.edit(make, wait)
    added, removed = tuple(map(shown, edit.added)), tuple(map(shown, edit.removed))
    seconds = time.perf_counter() - begin
    return EditReport(edit.number, edit.kind, edit.by, edit.at, added, removed, (*storage_warnings, *warnings), seconds)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


class _Reading:
    """Interprets the parts of a change in a graph. `declared` lists entities that the change adds first."""

    def __init__(self, known: GraphContent, new_type: bool, warnings: list[str]) -> None:
        self._known, self._new_type, self._warnings = known, new_type, warnings
        self.declared: list[Part] = []
        edits = next((source for source in known.sources() if source.name == EDITS), None)
        if edits is not None and edits.format != SOURCE.format:
            raise SourceError(
                f"a source that was loaded is called {EDITS!r}, which is the name of single changes",
                hint="unload it, and load it with name=",
            )

    def states(self, part: Part) -> bool:
        return self._known.states(part)

    # -- entities ----------------------------------------------------------------------------------

    def name_of(self, ident: str) -> str | None:
        return self._known.name_of(ident)

    def entity(self, thing: Any, role: str, *, new: bool = True) -> str:
        """Return the id of an entity that is given by its id, its name or a record, or that is new."""
        if isinstance(thing, Entity):
            current_name = self.name_of(thing.id)
            if current_name is None or (current_name == thing.id and thing.name != thing.id):
                self.declared.append(Entity(thing.id, thing.name, thing.kind))
            elif current_name != thing.name:
                raise SourceError(f"entity {thing.id!r} is called {current_name!r}, not {thing.name!r}")
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
            raise UnknownNameError("entity", thing, candidates=self._nearest(thing), hint=hint)
        near = self._nearest(thing)
        self._warnings.append(f"{role} {thing!r} is a new entity" + (f" (near: {', '.join(near)})" if near else ""))
        return thing

    def _nearest(self, name: str) -> list[str]:
        """Return the nearest names, or none for a large graph, in which comparing all names would take too long."""
        return nearest(name, self._known.names(MAX_NAMES), most=_MAX_NEAR)

    # -- statements --------------------------------------------------------------------------------

    def statement(self, subject: Any, predicate: Any, thing: Any, qualifiers: Pairs) -> Statement:
        """Return a statement to add, with all parts checked."""
        if not isinstance(predicate, str) or not predicate.strip():
            raise LiteralError(f"a predicate is a text, not {predicate!r}")
        ident = self.entity(subject, "subject")
        kinds = self._known.kinds(predicate)
        names = self._known.predicates()
        if not kinds and names is not None:
            near = nearest(predicate, names, most=_MAX_NEAR)
            self._warnings.append(f"predicate {predicate!r} is new" + (f" (near: {', '.join(near)})" if near else ""))
        value = self.value(thing, kinds, f"the object of {predicate!r}")
        pairs = []
        try:
            items = [] if qualifiers is None else list(qualifiers.items() if isinstance(qualifiers, Mapping) else qualifiers)
            for key, item in items:
                if not isinstance(key, str) or not key.strip():
                    raise LiteralError(f"a qualifier is a text, not {key!r}")
                kinds = self._known.key_kinds(key)
                pairs.append((key, self.value(self._moment(key, item, kinds), kinds, f"the qualifier {key!r}")))
        except (TypeError, ValueError) as error:
            if isinstance(error, LiteralError):
                raise
            raise LiteralError(f"qualifiers are pairs of a key and a value, not {qualifiers!r}") from error
        return normal(Statement(ident, predicate, value, tuple(pairs)))

    def _moment(self, key: str, one: Any, kinds: set[ValueKind]) -> Any:
        """Return a text or a year as a time if the qualifier is one for times. Returns the argument if it is not a
        time, or if the graph has no times there.
        """
        if key not in _VALIDITY or self._new_type or (kinds and ValueKind.TIME not in kinds):
            return one
        moment = _time(one)
        if moment is None and isinstance(one, str):
            self._warnings.append(f"the qualifier {key!r}, {one!r}, is not a time: it does not say when the statement holds")
        return one if moment is None else moment

    def value(self, thing: Any, kinds: set[ValueKind], what: str) -> Ref | Value:
        """Return a value in stored form. A text is read as the type that such values have in the graph, if they have
        one.
        """
        if isinstance(thing, (Ref, Entity)):
            value: Ref | Value = Ref(self.entity(thing, "object"))
        elif isinstance(thing, bool) or thing is None:
            raise LiteralError(
                f"{what} is not a value: {thing!r}", hint="text, a number, Quantity, Time, Ref or UNKNOWN is expected"
            )
        elif isinstance(thing, (int, float, Decimal)):
            value = Quantity(thing)
        elif isinstance(thing, (Quantity, Time, Unknown)):
            value = thing
        elif isinstance(thing, (date, datetime)):
            value = Time.parse(thing.isoformat())
        elif isinstance(thing, str):
            value = self._parse(thing, kinds, what)
        else:
            raise LiteralError(
                f"{what} is not a value: {thing!r}", hint="text, a number, Quantity, Time, Ref or UNKNOWN is expected"
            )
        kind = type_of(value)
        if kinds and kind not in kinds and kind is not ValueKind.UNKNOWN and not self._new_type:
            known_types = " or ".join(_WORDS[known_kind] for known_kind in sorted(kinds))
            raise LiteralError(
                f"{what} is of the type {kind.name.lower()}, and the graph has {known_types} there",
                hint="new_type=True adds it all the same",
            )
        return stored(value)

    def _parse(self, text: str, kinds: set[ValueKind], what: str) -> Ref | Value:
        only = next(iter(kinds - {ValueKind.UNKNOWN}), None) if len(kinds - {ValueKind.UNKNOWN}) == 1 else None
        if not kinds and not self._new_type and (other_types := _plainly(text)):
            self._warnings.append(f"{what}, {text!r}, is added as a text, and not as a {other_types}")
        if self._new_type or only in (None, ValueKind.TEXT):
            return text
        if only is ValueKind.ENTITY:
            return Ref(self.entity(text, "object", new=False))
        parsed: Value | None = None
        if only is ValueKind.TIME:
            parsed = _time(text)
        else:
            with suppress(ValueError):
                parsed = parse_quantity(text)
        if parsed is None:
            assert only is not None
            raise LiteralError(
                f"{what}: {text!r} is not of the type {only.name.lower()}, which the graph has there",
                hint="new_type=True adds it as a text all the same",
            )
        return parsed

    # -- existing parts ----------------------------------------------------------------------------

    def there(self, thing: Any) -> Part:
        """Return an existing statement, membership or subclass. Raises `UnknownNameError`, with the nearest ones, if
        the graph does not have it.
        """
        if type(thing) is tuple:
            return self._statement(thing)
        part: Part = self.linked(_part_of(thing))
        if isinstance(part, Statement):
            part = normal(replace(part, subject=self._subject(part.subject)))
        if self.states(part):
            return part
        raise self._missing(part)

    def linked(self, part: Part, *, new: bool = False) -> Any:
        """Return a membership or subclass with ids for its ends, which may be given by name. `new` ends cause a
        warning.
        """
        if isinstance(part, Member):
            below, above = part.entity, part.concept
            return replace(part, entity=self._end(below, "entity", new=new), concept=self._end(above, "concept", new=new))
        if isinstance(part, Subclass):
            below, above = part.concept, part.parent
            return replace(part, concept=self._end(below, "concept", new=new), parent=self._end(above, "concept", new=new))
        return part

    def _end(self, text: str, role: str, *, new: bool) -> str:
        return self.entity(text, role) if new else self._subject(text)

    def _statement(self, parts: tuple[Any, ...]) -> Part:
        """Return the statement given by a subject, a predicate, an object and perhaps qualifiers. Without qualifiers
        it must be the only one with these three.

        Raises `AmbiguousNameError` if several statements match, `UnknownNameError` if none does.
        """
        if len(parts) not in (3, 4) or not all(isinstance(part, str) for part in parts[:2]):
            raise OptionError(
                f"a statement is subject, predicate, object and perhaps qualifiers, not {parts!r}", hint="the first two are texts"
            )
        subject, predicate = self.entity(parts[0], "subject", new=False), parts[1]
        pairs = parts[3] if len(parts) == 4 else None
        wanted = None if pairs is None else list(pairs.items() if isinstance(pairs, Mapping) else pairs)

        def matches(statement: Statement) -> bool:
            if not self._is_meant(parts[2], statement.object):
                return False
            if wanted is None:
                return True
            unmatched = list(statement.qualifiers)
            for key, value in wanted:
                index = next(
                    (
                        i
                        for i, (name, qualifier_value) in enumerate(unmatched)
                        if name == key and self._is_meant(value, qualifier_value)
                    ),
                    None,
                )
                if index is None:
                    return False
                del unmatched[index]
            return not unmatched

        candidates = self._known.about(subject, predicate)
        matching = [statement for statement in candidates if matches(statement)]
        if len(matching) > 1:
            text = " | ".join(map(str, parts[:3]))
            raise AmbiguousNameError(
                f"{len(matching)} statements are meant by {text}",
                candidates=list(map(shown, matching[:10])),
                hint="name the qualifiers as well",
            )
        if not matching:
            value = parts[2] if isinstance(parts[2], (str, Ref, Quantity, Time, Unknown)) else str(parts[2])
            raise self._missing(Statement(subject, predicate, value))
        return normal(matching[0])

    def _is_meant(self, given: Any, value: Ref | Value) -> bool:
        """Return whether a value is the one that a user wrote."""
        if isinstance(given, (Ref, Entity)):
            return isinstance(value, Ref) and value.id == given.id
        if isinstance(value, Time) and _time(given) == value:
            return True
        if not isinstance(given, str):
            wanted = self.value(given, set(), "the object")
            return key_of(Statement("", "", wanted)) == key_of(Statement("", "", value))
        if isinstance(value, Ref):
            return given in (value.id, self.name_of(value.id))
        try:
            if isinstance(value, Quantity) and parse_quantity(given) == value:
                return True
        except ValueError:
            pass
        return collapse(given) == str(value)

    def _missing(self, part: Part) -> UnknownNameError:
        """Return the error for a part that the graph does not have, with the nearest ones."""
        nearest_parts: list[str] = []
        if isinstance(part, Statement):
            statements = self._known.about(part.subject, part.predicate) or self._known.some_about(part.subject)
            by_text = {shown(statement): None for statement in statements}
            nearest_parts = nearest(shown(part), by_text, most=_MAX_NEAR) or list(by_text)[:_MAX_NEAR]
            if self.name_of(part.subject) is None:
                nearest_parts = nearest_parts or self._nearest(part.subject)
        hint = "answer.evidence, or graph.export, has statements as the graph states them"
        return UnknownNameError("statement", shown(part), candidates=nearest_parts, hint=hint)

    def _subject(self, subject: str) -> str:
        if self.name_of(subject) is not None:
            return subject
        named = self._known.named(subject)
        return named[0] if len(named) == 1 else subject


def _time(written: Any) -> Time | None:
    """Return the time of a text, year or date, in the forms that `at=` of a query accepts; None if it is not a time."""
    try:
        return time_of(written, "time")
    except OptionError:
        return None


def _plainly(text: str) -> str:
    """Return the types that a text could be read as, other than text; empty if there are none."""
    types = []
    for word, parse in (("number", parse_quantity), ("time", Time.parse)):
        with suppress(ValueError):
            parse(text)
            types.append(word)
    return " or ".join(types)


def _part_of(thing: Any) -> Part:
    """Return the statement, membership or subclass that an argument refers to. Raises `OptionError` for other
    arguments.
    """
    if isinstance(thing, Evidence):
        value = Ref(thing.object.id) if isinstance(thing.object, Entity) else thing.object
        if thing.kind != "statement":
            assert isinstance(value, Ref)
            return Member(thing.subject.id, value.id) if thing.kind == "membership" else Subclass(thing.subject.id, value.id)
        pairs = tuple(
            (key, Ref(qualifier_value.id) if isinstance(qualifier_value, Entity) else qualifier_value)
            for key, qualifier_value in thing.qualifiers
        )
        return Statement(thing.subject.id, thing.predicate, value, pairs)
    if isinstance(thing, (Statement, Member, Subclass)):
        return replace(thing, row=0)
    if isinstance(thing, Entity):
        raise OptionError("an entity goes with its last statement", hint="retract its statements")
    raise OptionError(f"a statement, a membership or evidence of an answer is expected, not {thing!r}")
