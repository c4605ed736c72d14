"""Loader of KQA Pro's `kb.json`: concepts, and entities with attributes, relations and qualifiers.

Both spellings are accepted: `instanceOf` or `subclassOf` on concepts, `predicate` or `relation` on
relations. The file has each fact between two entities twice, forward at its head and backward at its
tail; it is loaded once. Rows number concepts and entities separately, from 1, in the file's order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from condgraph.engine.errors import FormatError, LoadError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement, Subclass
from condgraph.engine.values import NO_UNIT, Quantity, Time, Value, collapse, parse_number, text_of
from condgraph.loaders.base import JSON_SIGN, Format, Options, Reading
from condgraph.loaders.files import ENCODING_HELP, file_errors, open_text, path_of, uncollected
from condgraph.loaders.statements.facts import read_time

# -- parse -------------------------------------------------------------------------------------------
# Numbers are kept exact, and errors have the file and line.


def parse(source: Any, reading: Reading, options: Options) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the concepts and entities of a file, or of a parsed mapping."""
    if isinstance(source, Mapping):
        base: Any = source
        file = reading.source.location
    else:
        path = path_of(source)
        file = str(path)
        with open_text(path, options.get("encoding")) as stream, file_errors(path):
            text = stream.read()
        try:
            with uncollected():
                base = json.loads(text, parse_float=_float, parse_constant=_constant)
        except RecursionError:
            raise LoadError("the JSON is nested too deeply", file=file) from None
        except json.JSONDecodeError as error:
            raise LoadError(f"this is not JSON: {error.msg} (column {error.colno})", file=file, row=error.lineno) from None
        except ValueError as error:
            raise LoadError(f"this is not JSON: {error}", file=file) from None
        if isinstance(base, dict) and text.count('"name"') != sum(len(part) for part in base.values() if isinstance(part, dict)):
            _refuse_repeats(text, reading)
    if not isinstance(base, Mapping) or not ("concepts" in base or "entities" in base):
        raise FormatError("a kb.json is an object with 'concepts' and 'entities'", file=file)
    for key in base:
        if key not in ("concepts", "entities"):
            reading.warn("this part of a kb.json is not known, and is left out", field=str(key))
    parts = []
    for key in ("concepts", "entities"):
        part = base.get(key, {})
        if not isinstance(part, Mapping):
            raise FormatError(f"{key!r} is an object of records by id, not {kind_of(part)}", file=file)
        parts.append(dict(part))
    return parts[0], parts[1]


def _refuse_repeats(text: str, reading: Reading) -> None:
    """Report ids that occur twice in one part of the file, where JSON readers silently keep the last.

    Checking the keys of every object takes longer than all the rest, so it is done only if the numbers
    of names and records differ.
    """

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(found)
        if len(record) != len(found):
            keys: set[str] = set()
            for key, _ in found:
                if key in keys:
                    reading.bad("this key appears twice in one object; only the last one counts", field=key)
                keys.add(key)
        return record

    json.loads(text, parse_float=_float, object_pairs_hook=pairs)


def _float(text: str) -> Any:
    """Return a JSON number with a fraction exactly, or its text if it is out of bounds.

    The record that has it reports the error.
    """
    try:
        return parse_number(text)
    except ValueError:
        return text


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def kind_of(value: Any) -> str:
    """Return what a JSON value is, in words: "an object", "a list", ..."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


# -- load --------------------------------------------------------------------------------------------


#: How many entities are read between two calls of the progress callback.
_STEP: Final = 1000
_NO_QUALIFIERS: Final[tuple[tuple[str, Ref | Value], ...]] = ()
_SURROGATE: Final = re.compile("[\ud800-\udfff]").search

_CONCEPT_PARTS: Final = frozenset({"name", "instanceOf", "subclassOf"})
_ENTITY_PARTS: Final = frozenset({"name", "instanceOf", "attributes", "relations"})
_ATTRIBUTE_PARTS: Final = frozenset({"key", "value", "qualifiers"})
_RELATION_PARTS: Final = frozenset({"relation", "predicate", "object", "direction", "qualifiers"})
_VALUE_PARTS: Final = frozenset({"type", "value", "unit"})

_Qualifiers = tuple[tuple[str, Ref | Value], ...]
#: Qualifiers as in the file, sorted, so that they are equal for both directions of a fact and quick to
#: hash.
_Key = tuple[str, ...] | None


class _Wrong(Exception):
    """An error in a part of a record, with the reason."""


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    loader = _Loader(reading)
    concepts, entities = parse(source, reading, options)
    yield from loader.concepts(concepts)
    yield from loader.declare(entities)
    yield from loader.entities(entities)
    yield from loader.stubs()


class _Loader:
    """Converts the records of one file to items."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._is_concept: dict[str, bool] = {}
        self._missing: dict[str, tuple[EntityKind, str]] = {}
        self._times: dict[tuple[Any, Any], Time | str] = {}
        self._clean: dict[str, str] = {}
        self._forward: set[tuple[str, str, str, _Key]] = set()

    def concepts(self, records: Mapping[str, Any]) -> Iterator[Item]:
        """Yield the concepts, and then their parents."""
        valid: list[tuple[int, str, Mapping[str, Any]]] = []
        for row, (ident, record) in enumerate(records.items(), 1):
            name = self._name(ident, record, row)
            if name is not None:
                self._is_concept[ident] = True
                valid.append((row, ident, record))
                yield Entity(ident, name, EntityKind.CONCEPT)
        for row, ident, record in valid:
            self._only(record, _CONCEPT_PARTS, "a concept", ident, row)
            for parent in self._ids(record, "subclassOf", ident, row) + self._ids(record, "instanceOf", ident, row):
                self._refer(parent, EntityKind.CONCEPT, ident)
                yield Subclass(ident, parent, row)

    def declare(self, records: Mapping[str, Any]) -> Iterator[Item]:
        """Yield the entities, before anything refers to them."""
        for row, (ident, record) in enumerate(records.items(), 1):
            name = self._name(ident, record, row)
            if name is None:
                continue
            if ident in self._is_concept:
                self._reading.warn("this id is also among the concepts; it is a concept", row=row, field=ident)
            else:
                self._is_concept[ident] = False
            yield Entity(ident, name)

    def entities(self, records: Mapping[str, Any]) -> Iterator[Item]:
        """Yield memberships, attributes and relations of each record; then relations stored only backward."""
        backward: list[tuple[int, tuple[str, str, str, _Key], _Qualifiers]] = []
        forward, known, clean = self._forward, self._is_concept, self._clean
        spelling = "relation"
        done = 0
        for row, (ident, record) in enumerate(records.items(), 1):
            if ident not in self._is_concept or not isinstance(record, Mapping):
                continue
            for concept in self._ids(record, "instanceOf", ident, row):
                self._refer(concept, EntityKind.CONCEPT, ident)
                yield Member(ident, concept, row)
            self._only(record, _ENTITY_PARTS, "an entity", ident, row)
            for attribute in self._list(record, "attributes", ident, row):
                try:
                    yield self._attribute(ident, attribute, row)
                except _Wrong as wrong:
                    self._reading.bad(f"{wrong} in an attribute", row=row, field=ident)
            for relation in self._list(record, "relations", ident, row):
                # Fast path for plain relations of known entities, which nearly all are; the full
                # check takes half of the loader's time.
                try:
                    plain = not relation["qualifiers"] and len(relation) == 4
                    predicate, other, direction = clean[relation[spelling]], relation["object"], relation["direction"]
                    plain = plain and (direction == "forward" or direction == "backward") and other in known
                except (KeyError, TypeError):
                    plain = False
                qualifiers, key = _NO_QUALIFIERS, None
                if not plain:
                    try:
                        direction, predicate, other, qualifiers, key = self._relation(ident, relation, row)
                    except _Wrong as wrong:
                        self._reading.bad(f"{wrong} in a relation", row=row, field=ident)
                        continue
                    spelling = "relation" if "relation" in relation else "predicate"
                    if other not in known:
                        self._refer(other, EntityKind.ENTITY, ident)
                if direction == "forward":
                    forward.add((ident, predicate, other, key))
                    yield Statement(ident, predicate, Ref(other), qualifiers, row)
                elif (other, predicate, ident, key) not in forward:
                    backward.append((row, (other, predicate, ident, key), qualifiers))
            if row % _STEP == 0:
                self._reading.advance(_STEP, row / len(records))
                done = row
        self._reading.advance(len(records) - done, 1.0)
        for row, fact, qualifiers in backward:
            if fact not in forward:
                forward.add(fact)
                head, predicate, tail, _ = fact
                yield Statement(head, predicate, Ref(tail), qualifiers, row)

    def stubs(self) -> Iterator[Item]:
        """Yield an entity for each id that is referred to but has no record, with a warning."""
        for ident, (kind, where) in self._missing.items():
            kind_name = "concept" if kind is EntityKind.CONCEPT else "entity"
            self._reading.warn(f"the {kind_name} {ident!r} has no record in the file; its id is taken as its name", field=where)
            yield Entity(ident, ident, kind)

    def _name(self, ident: str, record: Any, row: int) -> str | None:
        """Return the name of a record, or None if the record is skipped."""
        if not isinstance(record, Mapping):
            self._reading.bad(f"a record is an object, not {kind_of(record)}", row=row, field=ident)
            return None
        if not ident.strip() or not _sound(ident):
            self._reading.bad("an id is text, and not empty", row=row, field=ident)
            return None
        name = record.get("name")
        if not isinstance(name, str) or not name.strip():
            self._reading.warn("the record has no name; its id is taken as its name", row=row, field=ident)
            return ident
        if not _sound(name):
            self._reading.bad("the name contains an unpaired surrogate, which is not text", row=row, field=ident)
            return None
        return collapse(name)

    def _refer(self, ident: str, kind: EntityKind, where: str) -> None:
        if ident not in self._is_concept and (ident not in self._missing or kind is EntityKind.CONCEPT):
            self._missing[ident] = (kind, where)

    def _ids(self, record: Mapping[str, Any], key: str, ident: str, row: int) -> list[str]:
        idents = []
        for reference in self._list(record, key, ident, row):
            if isinstance(reference, str) and reference.strip() and _sound(reference):
                idents.append(reference)
            else:
                self._reading.bad(f"{key!r} lists ids, and {_show(reference)} is none", row=row, field=ident)
        return idents

    def _list(self, record: Mapping[str, Any], key: str, ident: str, row: int) -> list[Any]:
        part = record.get(key)
        if part is None:
            return []
        if not isinstance(part, list):
            self._reading.bad(f"{key!r} is a list, not {kind_of(part)}", row=row, field=ident)
            return []
        return part

    def _attribute(self, ident: str, attribute: Any, row: int) -> Statement:
        if not isinstance(attribute, dict):
            raise _Wrong(f"{kind_of(attribute)} instead of an object")
        if not attribute.keys() <= _ATTRIBUTE_PARTS:
            self._only(attribute, _ATTRIBUTE_PARTS, "an attribute", ident, row)
        key = self._predicate(attribute.get("key"), "key")
        value, raw = self._value(attribute.get("value"), ident, row)
        qualifiers = attribute.get("qualifiers")
        return Statement(ident, key, value, self._qualifiers(qualifiers, ident, row)[0] if qualifiers else _NO_QUALIFIERS, row, raw)

    def _relation(self, ident: str, relation: Any, row: int) -> tuple[str, str, str, _Qualifiers, _Key]:
        """Return the direction, the predicate, the other end, the qualifiers and their key."""
        if not isinstance(relation, dict):
            raise _Wrong(f"{kind_of(relation)} instead of an object")
        if not relation.keys() <= _RELATION_PARTS:
            self._only(relation, _RELATION_PARTS, "a relation", ident, row)
        relation_name = relation.get("relation")
        predicate = self._predicate(relation.get("predicate") if relation_name is None else relation_name, "relation")
        direction = relation.get("direction", "forward")
        if direction != "forward" and direction != "backward":
            raise _Wrong(f"the direction {_show(direction)}, which is neither 'forward' nor 'backward',")
        other = relation.get("object")
        if not isinstance(other, str) or (other not in self._is_concept and (not other.strip() or not _sound(other))):
            raise _Wrong(f"{_show(other)} instead of the id of an object")
        qualifiers = relation.get("qualifiers")
        pairs, key = self._qualifiers(qualifiers, ident, row) if qualifiers else (_NO_QUALIFIERS, None)
        return direction, predicate, other, pairs, key

    def _only(self, record: Mapping[str, Any], known: frozenset[str], what: str, ident: str, row: int) -> None:
        for key in record:
            if key not in known:
                self._reading.warn(f"the part {key!r} of {what} is not known, and is left out", row=row, field=ident)

    def _predicate(self, name: Any, what: str) -> str:
        clean = self._clean.get(name) if isinstance(name, str) else None
        if clean is not None:
            return clean
        if not isinstance(name, str) or not name.strip():
            raise _Wrong(f"{_show(name)} instead of a {what}")
        if not _sound(name):
            raise _Wrong(f"a {what} with an unpaired surrogate")
        clean = self._clean[name] = collapse(name)
        return clean

    def _qualifiers(self, qualifiers: Any, ident: str, row: int) -> tuple[_Qualifiers, _Key]:
        if not isinstance(qualifiers, dict):
            raise _Wrong(f"{kind_of(qualifiers)} instead of an object of qualifiers")
        pairs: list[tuple[str, Ref | Value]] = []
        key: list[str] = []
        for name, values in qualifiers.items():
            clean = self._predicate(name, "qualifier key")
            for value in values if isinstance(values, list) else [values]:
                pairs.append((clean, self._value(value, ident, row)[0]))
                key.append(f"{clean}\0{value['type']}\0{value['value']!r}\0{value.get('unit')}")
        if not pairs:
            return _NO_QUALIFIERS, None
        key.sort()
        return tuple(pairs), tuple(key)

    def _value(self, value: Any, one: str, row: int) -> tuple[Value, str | None]:
        """Return a typed value, and its raw text if that differs from the printed form.

        A literal that does not fit its type stays text.
        """
        if not isinstance(value, dict):
            raise _Wrong(f"{_show(value)} instead of an object with type and value")
        kind = value.get("type")
        literal = value.get("value")
        if isinstance(literal, (dict, list, bool)) or literal is None:
            raise _Wrong(f"the value {_show(literal)}")
        if not value.keys() <= _VALUE_PARTS:
            self._only(value, _VALUE_PARTS, "a value", one, row)
        if kind == "string":
            text = literal if isinstance(literal, str) else text_of(literal)
            if not text.isascii() and not _sound(text):
                raise _Wrong("an unpaired surrogate, which is not text,")
            collapsed = " ".join(text.split())
            return collapsed, None if collapsed == text else text
        if kind == "quantity":
            return self._quantity(literal, value.get("unit"), one, row)
        if kind in ("date", "year"):
            try:
                time = self._times.get((kind, literal))
            except TypeError:  # pragma: no cover - JSON literals are hashable
                time = None
            if time is None:
                time = self._times[(kind, literal)] = _time(literal)
            if isinstance(time, str):
                self._reading.warn(f"{_show(literal)} cannot be a {kind}; kept as text", row=row, field=one)
            raw = str(literal)
            return time, None if raw == str(time) else raw
        raise _Wrong(f"the value type {_show(kind)}, which is not string, quantity, date or year,")

    def _quantity(self, literal: Any, unit: Any, one: str, row: int) -> tuple[Value, str | None]:
        if unit is None or unit == "":
            unit = NO_UNIT
        if not isinstance(unit, str) or not _sound(unit):
            raise _Wrong(f"the unit {_show(unit)}")
        if not isinstance(literal, str):
            return Quantity(literal, collapse(unit) or NO_UNIT), None
        try:
            number = parse_number(literal)
        except ValueError:
            self._reading.warn(f"{_show(literal)} is not a number; kept as text", row=row, field=one)
            if not _sound(literal):
                raise _Wrong("an unpaired surrogate, which is not text,") from None
            text = literal if unit == NO_UNIT else f"{literal} {unit}"
            return collapse(text), None if collapse(text) == literal else literal
        quantity = Quantity(number, collapse(unit) or NO_UNIT)
        return quantity, None if text_of(number) == literal else literal


def _time(literal: Any) -> Time | str:
    """Return a year given as a number or the time of a text; else the collapsed text."""
    try:
        if isinstance(literal, int):
            return Time.year(literal) if abs(literal) < 10**12 else str(literal)
        if isinstance(literal, str):
            return read_time(literal)
        return Time.year(int(literal)) if literal == int(literal) and abs(literal) < 10**12 else text_of(literal)
    except (ValueError, OverflowError):
        text = literal if isinstance(literal, str) else text_of(literal)
        return collapse(text if _sound(text) else text.encode("utf-8", "replace").decode())


def _sound(text: str) -> bool:
    return text.isascii() or _SURROGATE(text) is None


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _claims(source: Any) -> bool:
    return (
        isinstance(source, Mapping) and isinstance(source.get("entities"), Mapping) and isinstance(source.get("concepts"), Mapping)
    )


def _sniff(path: Path, head: bytes) -> int:
    if re.match(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:concepts|entities)"\s*:\s*\{', head):
        return 95 if re.search(rb'"(?:subclassOf|instanceOf|attributes|relations)"', head) else 80
    return 0


FORMAT: Final = Format(
    name="kqapro",
    about="KQA Pro's kb.json: concepts, and entities with attributes, relations and qualifiers",
    read=_read,
    options={"encoding": ENCODING_HELP},
    sniff=_sniff,
    sign=JSON_SIGN,
    claims=_claims,
)
