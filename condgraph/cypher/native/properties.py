"""Properties in queries on an existing database: as cells, as attributes of nodes, as qualifiers of relationships."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from condgraph.cypher.answer import literal
from condgraph.cypher.layout.base import Bound, Cell, Direct, Field, Match, QueryScope, ScanRequest
from condgraph.cypher.layout.schema import quote
from condgraph.cypher.native.identity import foreign, node_of, within_labels
from condgraph.cypher.native.mapping import Mapping, Property, RelationshipType
from condgraph.cypher.native.values import INFINITE, as_list, elements, fields, is_list, number_text, sent, values_in
from condgraph.engine.facts import END_TIME, START_TIME
from condgraph.engine.values import DAY_SECONDS, OPEN_END, OPEN_START, Time, Value

# -- Properties as cells -----------------------------------------------------------------------------
# Tests use the property itself if the sample tells its type, so that an index of the server can answer. Values that are
# returned are checked for their type one by one (`native.values`), since a sample has not seen all of them.


NUMBERS: Final = frozenset(("INTEGER", "FLOAT"))
#: Types of times that the server compares with each other just as values compare.
TIMES: Final = frozenset(("DATE", "LOCAL DATETIME", "ZONED DATETIME"))


def together(properties: Iterable[Property]) -> Property:
    """Return several properties that are read alike as one, with the types of all."""
    all_properties = list(properties)
    types: dict[str, int] = {}
    for prop in all_properties:
        for name, count in prop.types:
            types[name] = types.get(name, 0) + count
    untidy = any(prop.untidy for prop in all_properties)
    return replace(
        all_properties[0], types=tuple(types.items()), sampled=sum(prop.sampled for prop in all_properties), untidy=untidy
    )


#: The server's plain types. See `layout.base.Direct`.
_PLAIN: Final = {"STRING": "text", "BOOLEAN": "boolean", "INTEGER": "integer", "FLOAT": "float", "DATE": "day"}


def direct_of(value: str, prop: Property) -> Direct | None:
    """Return a property as it is, if all of its values have one plain type."""
    if prop.reading != "itself" or prop.untidy or prop.excluded or not prop.types:
        return None
    types = {kind for kind, _ in prop.types}
    kind = "FLOAT" if types <= NUMBERS and "FLOAT" in types else next(iter(types)) if len(types) == 1 else ""
    return Direct(value, _PLAIN[kind], PropertyCell(value, prop)) if kind in _PLAIN else None


def likeness(prop: Property) -> tuple[str, str | None, bool, bool, frozenset[str]]:
    """Return what properties share that one expression can read."""
    types = frozenset(name for kind, _ in prop.types for name in elements(kind))
    for family in (frozenset(("STRING", "BOOLEAN", "POINT")), NUMBERS):
        types = family if types <= family else types
    return prop.reading, prop.format, prop.untidy, prop.excluded, types


class NodeCell(Cell):
    """A node as a value: its name, by which it equals a text, and its id."""

    __slots__ = ("_id", "_kind", "_name")

    def __init__(self, name: str, ident: str, kind: str) -> None:
        self._name, self._id, self._kind = name, ident, kind

    @property
    def whole(self) -> str:
        """A map of its fields. The name, which may be a long expression, is written once."""
        return f"head([n IN [{self._name}] | {{kind: '{self._kind}', key: n, text: n, id: {self._id}, held: true}}])"

    def field(self, name: Field) -> str:
        """Return a field of an entity."""
        return {"kind": f"'{self._kind}'", "key": self._name, "text": self._name, "id": self._id, "held": "true"}.get(name, "null")

    @property
    def ordered(self) -> str:
        """Its name."""
        return self._name


class PropertyCell(Cell):
    """A value that is not null: an element of a property, or the property itself, which tests use.

    Qualifiers keep no `raw` texts.
    """

    __slots__ = ("_fields", "_infinite", "_property", "_source", "_types")

    def __init__(self, value: str, prop: Property, *, raw: bool = True) -> None:
        self._source, self._property = value, prop
        types = frozenset(name for kind, _ in prop.types for name in elements(kind))
        #: Whether it may be an infinite float, which is not a number.
        self._infinite = INFINITE in types
        self._types = types - {INFINITE} | {"FLOAT"} if self._infinite else types
        self._fields = lean(value, prop, self._types) or full(value, prop, self._types)
        if not raw and self._fields.pop("raw", None) is not None and prop.reading == "number":
            # Without its raw text, a number is written as it prints.
            self._fields["text"] = f"coalesce(head([v IN [{self._fields['number']}] | {number_text('v')}]), {self._fields['text']})"

    def field(self, name: Field) -> str:
        """Return an expression that is valid whatever type the value has."""
        return self._fields.get(name, "null")

    @property
    def whole(self) -> str:
        """A map of all fields that are not certainly null."""
        return f"{{{', '.join(f'{name}: {expression}' for name, expression in self._fields.items())}}}"

    @property
    def ordered(self) -> str:
        """Its text."""
        return self.text

    @property
    def _plain_types(self) -> frozenset[str]:
        """The types of a property that is compared unchanged; none if it is read as something else."""
        return self._types if self._property.reading == "itself" else frozenset()

    def tested(self, name: Field) -> str:
        """Return the property itself if it has a single type, since a comparison with another type gives null."""
        own_types = self._plain_types
        if own_types and own_types <= NUMBERS and not self._infinite and name in ("number", "unit"):
            return self._source if name == "number" else "'1'"
        if own_types == {"STRING"} and name == "key" and not self._property.untidy:
            return self._source
        return self.field(name)

    def timed(self, operator: str, value: Time, parameter: Callable[[Any], str]) -> str | None:
        """Return a test of a time on the property itself.

        It is None if values have several types, or if the bounds are too far away for the driver.
        """
        own_types = self._plain_types
        if len(own_types) != 1 or not own_types <= TIMES:
            return None
        sides = {
            "=": ((">=", value.start, True), ("<", value.end, False)),
            "!=": (("<", value.start, False), (">=", value.end, True)),
            "<": (("<", value.start, False),),
            ">": ((">=", value.end, True),),
            "<=": (("<", value.end, False),),
            ">=": ((">=", value.start, True),),
        }[operator]
        try:
            bounds = [(sign, _bound(seconds, up, next(iter(own_types)))) for sign, seconds, up in sides]
        except OverflowError:
            return None
        tests = [f"{self._source} {sign} {parameter(bound)}" for sign, bound in bounds]
        return f"({(' OR ' if operator == '!=' else ' AND ').join(tests)})"


def _bound(seconds: int, up: bool, kind: str) -> date | datetime:
    """Return a bound in seconds as a parameter; for days, the next one (`up`) or the one that contains it."""
    if kind == "DATE":
        return date(1970, 1, 1) + timedelta(days=-(-seconds // DAY_SECONDS) if up else seconds // DAY_SECONDS)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return moment if kind == "ZONED DATETIME" else moment.replace(tzinfo=None)


def lean(value: str, prop: Property, types: frozenset[str]) -> dict[Field, str] | None:
    """Return the fields if the sample has only one type of texts or numbers, else None.

    That makes them short, and fast for the server to plan. A value of another type then becomes what the server prints.
    """
    if prop.reading not in ("itself", "text"):
        return None
    text = f"coalesce(toStringOrNull({value}), 'unknown')"
    if types <= {"STRING", "BOOLEAN", "POINT"} and not prop.untidy:
        return {"kind": "'text'", "text": text, "key": text}
    if types <= NUMBERS and prop.reading == "itself":
        test = f"{value} IS :: INTEGER NOT NULL" if types == {"INTEGER"} else f"{value} IS :: INTEGER NOT NULL | FLOAT NOT NULL"
        number = test
        if "FLOAT" in types:
            test = f"CASE WHEN {number} THEN {value} - {value} = 0 ELSE false END"
            is_whole = f"CASE WHEN {number} THEN abs({value}) < 1e15 AND {value} = toInteger({value}) ELSE false END"
            text = f"CASE WHEN {is_whole} THEN toString(toInteger({value})) ELSE {text} END"
        return {
            "kind": f"CASE WHEN {test} THEN 'quantity' ELSE 'text' END",
            "text": text,
            "key": f"CASE WHEN {test} THEN null ELSE {text} END",
            "number": f"CASE WHEN {test} THEN {value} END",
            "unit": f"CASE WHEN {test} THEN '1' END",
        }
    return None


def full(value: str, prop: Property, types: frozenset[str]) -> dict[Field, str]:
    """Return the fields of a value that has several types or is read as something else."""
    result = {name: text for name, text in fields(value, prop, types).items() if text != "null"}
    # Integers stay integers, which keeps all their digits.
    result.pop("exact", None)
    result.pop("order", None)
    if "number" in result:
        result["number"] = result["number"].replace(
            f"{value} IS :: INTEGER THEN toFloat({value})", f"{value} IS :: INTEGER THEN {value}"
        )
    kind = result["kind"]
    result["key"] = result["text"] if kind == "'text'" else f"CASE WHEN {kind} = 'text' THEN {result['text']} END"
    return result


class ObjectCell(Cell):
    """The object of a statement of any family: a node, or a map with the fields of a cell.

    Properties of an existing node are never mistaken for fields.
    """

    __slots__ = ("_entity", "_map")

    def __init__(self, whole: str, entity: Cell) -> None:
        self._map, self._entity = whole, entity

    def _chosen(self, of_node: str, of_value: str) -> str:
        return f"CASE WHEN {self._map} IS :: NODE NOT NULL THEN {of_node} ELSE {of_value} END"

    @property
    def whole(self) -> str:
        """The map of either."""
        return self._chosen(self._entity.whole, self._map)

    def field(self, name: Field) -> str:
        """Return a field of the map, or of the node as a value."""
        return self._chosen(self._entity.field(name), f"{self._map}.{name}")

    @property
    def ordered(self) -> str:
        """Its name or text."""
        return self._chosen(self._entity.text, f"coalesce({self._map}.order, {self._map}.text)")


#: The most characters of a text that is searched for leading numbers. See `engine.execute.aggregates`.
_RANKED: Final = 300
_LEADING: Final = r"(?s)[^\\w+\\-−]{0,3}[-+−]?(\\d{1,3}(,\\d{3})+|\\d+)(\\.\\d+)?(?![\\d:]).*"


def ranks_of(text: str) -> str:
    """Return the numbers of a text that begins with one, else null."""
    digits = "['0','1','2','3','4','5','6','7','8','9','.',',']"
    spaced = f"reduce(t = '', c IN split({text}, '') | t + CASE WHEN c IN {digits} THEN c ELSE ' ' END)"
    grouped = r"x =~ '\\d{1,3}(,\\d{3})+(\\.\\d+)?[.,]?'"
    words = (
        f"reduce(ws = [], x IN split({spaced}, ' ') | ws + CASE WHEN {grouped} THEN [replace(x, ',', '')] ELSE split(x, ',') END)"
    )
    return (
        f"CASE WHEN size({text}) <= {_RANKED} AND {text} =~ '{_LEADING}' "
        f"THEN [w IN {words} WHERE toFloatOrNull(w) IS NOT NULL | toFloat(w)] END"
    )


# -- Qualifiers --------------------------------------------------------------------------------------
# Properties of relationships, and the times at which these hold, if the mapping states which properties give them.
#
# The keys of each type are in a parameter, so one clause serves relationships of any type.


def named(relationship: RelationshipType, prop: Property) -> str:
    """Return the key of a qualifier; the properties for times have the usual keys of times."""
    return START_TIME if prop.key == relationship.start else END_TIME if prop.key == relationship.end else prop.predicate


class Qualifiers:
    """The properties of the relationships of one mapping."""

    __slots__ = ("_all", "_predicates", "_readings", "_times", "parameters")

    def __init__(self, mapping: Mapping) -> None:
        self.parameters: dict[str, Any] = {}
        readings: dict[Any, list[Property]] = {}
        keys = dict[str, list[list[Any]]]()
        # The places of the readings of starts and of ends.
        self._times: tuple[dict[int, None], dict[int, None]] = ({}, {})
        for relationship in mapping.relationships:
            for qualifier in relationship.qualifiers:
                readings.setdefault(likeness(qualifier), []).append(qualifier)
                position = list(readings).index(likeness(qualifier))
                keys.setdefault(relationship.type, []).append([qualifier.key, named(relationship, qualifier), position])
                for side, key in zip(self._times, (relationship.start, relationship.end), strict=True):
                    if key == qualifier.key:
                        side[position] = None
        self._readings = [together(group) for group in readings.values()]
        self._all = mapping.relationships
        self._predicates = {
            relationship.type: relationship.predicate
            for relationship in mapping.relationships
            if relationship.type != relationship.predicate
        }
        if keys:
            self.parameters["qualifiers"] = keys
        if self._predicates:
            self.parameters["relations"] = self._predicates

    def direct(self, f: str, predicates: Sequence[str], key: str) -> Direct | None:
        """Return a qualifier that is one property of one plain type, for the relationships of some predicates."""
        matches = [
            (relationship, qualifier)
            for relationship in self._all
            if relationship.predicate in predicates
            for qualifier in relationship.qualifiers
            if named(relationship, qualifier) == key
        ]
        keys, readings = {qualifier.key for _, qualifier in matches}, {likeness(qualifier) for _, qualifier in matches}
        if len(keys) != 1 or len(readings) != 1:
            return None
        value = f"{f}.{quote(keys.pop())}"
        other_types = [
            relationship.type
            for relationship in self._all
            if relationship.predicate in predicates and relationship not in [relationship for relationship, _ in matches]
        ]
        if other_types:
            value = f"CASE WHEN type({f}) IN {literal([relationship.type for relationship, _ in matches])} THEN {value} END"
        return direct_of(value, together(qualifier for _, qualifier in matches))

    def predicate(self, f: str) -> str:
        """Return the predicate of a relationship's type."""
        return f"coalesce($relations[type({f})], type({f}))" if self._predicates else f"type({f})"

    def clause(self, f: str, q: str) -> str:
        """Return a clause that yields each qualifier of a statement.

        It is a map with the fields of a cell, its `name`, and null as `ref`.
        """
        if "qualifiers" not in self.parameters:
            return f"UNWIND [] AS {q} WITH *"
        k, x, y = f"{q}k", f"{q}x", f"{q}y"
        keys = f"CASE WHEN {f} IS :: RELATIONSHIP NOT NULL THEN $qualifiers[type({f})] ELSE [] END"
        cells = [PropertyCell(x, reading, raw=False).whole[:-1] + f", name: {k}[1], ref: null}}" for reading in self._readings]
        cell = (
            cells[0]
            if len(cells) == 1
            else f"CASE {k}[2] {' '.join(f'WHEN {at} THEN {item}' for at, item in enumerate(cells))} END"
        )
        elements = as_list(f"{f}[{k}[0]]", together(self._readings))
        result = f"COLLECT {{ WITH {f}, {k} WHERE {f}[{k}[0]] IS NOT NULL UNWIND {elements} AS {y} RETURN DISTINCT {y} }}"
        return f"UNWIND {keys} AS {k} UNWIND {result} AS {x} WITH *, {cell} AS {q}"

    def sent(self, f: str) -> str:
        """Return an expression for all qualifiers of a statement, as `read` takes them.

        Each has its name, the place of its reading and the result of `values.sent`, which the server plans far faster
        than fields.
        """
        if "qualifiers" not in self.parameters:
            return "[]"
        keys = f"CASE WHEN {f} IS :: RELATIONSHIP NOT NULL THEN coalesce($qualifiers[type({f})], []) ELSE [] END"
        return f"[k IN {keys} WHERE {f}[k[0]] IS NOT NULL | head([v IN [{f}[k[0]]] | k[1..] + {sent('v')}])]"

    def read(self, cells: Sequence[list[Any]]) -> list[tuple[str, Value]]:
        """Return the qualifiers that `sent` gave, by name; a list gives one for each of its values."""
        return [(name, value) for name, position, *cell in cells for value, _ in values_in(cell, self._readings[position])]

    def times(self, f: str) -> tuple[str, str]:
        """Return from when and until when a statement states that it holds, in seconds; null if not stated."""
        if not any(self._times):
            return "null", "null"
        result = []
        for key, places in zip((START_TIME, END_TIME), self._times, strict=True):
            cases = ["null"] if not places else []
            for position in places:
                value = f"{f}[[k IN $qualifiers[type({f})] WHERE k[1] = '{key}' AND k[2] = {position}][0][0]]"
                cell = PropertyCell("v", self._readings[position])
                # Null is of every type, also of those that `cell` computes with.
                cases.append(f"head([v IN [{value}] WHERE v IS NOT NULL | {cell.start if key == START_TIME else cell.end}])")
            result.append(f"coalesce({', '.join(cases)})" if len(cases) > 1 else cases[0])
        since, until = (f"CASE WHEN {f} IS :: RELATIONSHIP NOT NULL THEN {expression} END" for expression in result)
        return since, until


def bounds(since: str, until: str) -> tuple[str, str]:
    """Return from when and until when a statement holds, from `Qualifiers.times`; null if it states neither."""
    return (
        f"coalesce({since}, CASE WHEN {until} IS NOT NULL THEN {OPEN_START} END)",
        f"coalesce({until}, CASE WHEN {since} IS NOT NULL THEN {OPEN_END} END)",
    )


# -- Attributes --------------------------------------------------------------------------------------
# The properties and labels of each predicate, and the clauses that read them.
#
# A property of one type is tested directly, with one query per label. If it has lists, is read from text, or the predicate has
# several properties, it is read first and then tested.


#: The most queries in one union, one per label or property. The server takes seconds to plan more; beyond this, labels without
#: an index are searched together, and each node by its keys.
MAX_BRANCHES: Final = 8


@dataclass(frozen=True, slots=True)
class PropertyPlace:
    """A property of a predicate, on the nodes of some labels (`everywhere`: of all labels).

    `unindexed` are labels known to have no index of it.
    """

    predicate: str
    prop: Property
    labels: tuple[str, ...]
    everywhere: bool
    unindexed: frozenset[str]

    def value(self, e: str) -> str:
        """Return the property."""
        return f"{e}.{quote(self.prop.key)}"

    def exists(self, e: str) -> str:
        """Return a test that a node has it."""
        return f"{self.value(e)} IS NOT NULL"

    @property
    def lists(self) -> bool:
        """Whether it can have several values."""
        return any(is_list(kind) for kind, _ in self.prop.types)

    @property
    def plain(self) -> bool:
        """Whether it is a single value that is read by its own type."""
        return not self.lists and self.prop.reading == "itself"


class Holdings:
    """The attributes of one mapping."""

    __slots__ = ("_all", "_by_predicate")

    def __init__(self, mapping: Mapping) -> None:
        result: dict[tuple[str, str, str, str | None], list[tuple[str, Property]]] = {}
        for node in mapping.nodes:
            for prop in filter(lambda prop: prop.key not in node.hidden, node.properties):
                result.setdefault((prop.predicate, prop.key, prop.reading, prop.format), []).append((node.label, prop))
        all_labels = {node.label for node in mapping.nodes}
        self._by_predicate: dict[str, list[PropertyPlace]] = {}
        for (predicate, *_), places in result.items():
            labels = tuple(dict.fromkeys(label for label, _ in places))
            unindexed = frozenset(labels) - {label for label, prop in places if not prop.unindexed}
            everywhere = not mapping.unlabelled and all_labels <= set(labels)
            holding = PropertyPlace(predicate, together(prop for _, prop in places), labels, everywhere, unindexed)
            self._by_predicate.setdefault(predicate, []).append(holding)
        self._all = [place for group in self._by_predicate.values() for place in group]

    def of(self, predicates: Sequence[str] | None) -> list[PropertyPlace]:
        """Return the properties of some predicates, or of all."""
        if predicates is None:
            return self._all
        return [item for name in dict.fromkeys(predicates) for item in self._by_predicate.get(name, ())]

    def direct(self, e: str, predicate: str, labels: Collection[str]) -> Direct | None:
        """Return a predicate that is one property of one plain type, on nodes that have one of some labels."""
        result = self.of((predicate,))
        if len(result) != 1:
            return None
        (place,) = result
        certain = place.everywhere or (labels and set(labels) <= set(place.labels))
        value = place.value(e) if certain else f"CASE WHEN {within_labels(e, place.labels)} THEN {place.value(e)} END"
        return direct_of(value, place.prop)

    def match(self, scope: QueryScope, wanted: ScanRequest, labels_of: Callable[[Collection[str]], list[str]]) -> Match:
        """Return the match of a scan of attributes; `labels_of` returns the labels of concepts."""
        e, v, f = wanted.anchor, wanted.other, wanted.fact
        result = self.of(wanted.predicates)
        if len(result) != 1 or not result[0].plain:
            return self._read_first(scope, wanted)
        (place,) = result
        cell = PropertyCell(place.value(e), place.prop)
        fact = _fact(e, scope.parameter(place.predicate), place.value(e))
        after = [f"WITH *, {cell.whole} AS {v}, {fact} AS {f}"]
        if wanted.bound:
            labels = [] if place.everywhere else [within_labels(e, place.labels)]
            return Match(f"({e})", [place.exists(e), *labels, *wanted.conditions], cell, after=after)

        def branches(concepts: Collection[str] | None) -> list[tuple[str, str]]:
            label_test = "" if place.everywhere else within_labels(e, place.labels)
            labels = place.labels if concepts is None else labels_of(concepts) or place.labels
            return [
                (pattern, " AND ".join(filter(None, (test, "" if set(tested) <= set(place.labels) else label_test))))
                for tested, pattern, test in disjoint_labels(e, labels, place.unindexed)
            ]

        return Match(None, [place.exists(e), *wanted.conditions], cell, after=after, branches=branches, binds=(e,))

    def _read_first(self, scope: QueryScope, wanted: ScanRequest) -> Match:
        e, v, f = wanted.anchor, wanted.other, wanted.fact
        if wanted.bound or wanted.predicates is None:
            start = [] if wanted.bound else [f"MATCH ({e}) WHERE {foreign(e)}"]
            queries = [f"{text} RETURN {v}, {f}" for text in self.queries(scope, e, v, f, wanted.predicates)]
            nothing = f"UNWIND [] AS {v} RETURN {v}, null AS {f}"
            text = "\nUNION ALL\n".join(queries) or nothing
            return Match(None, wanted.conditions, Bound(v), before=[*start, f"CALL ({e}) {{\n{text}\n}}"])
        result = self.of(wanted.predicates)
        return Match(None, wanted.conditions, Bound(v), before=[self._values(scope, e, v, f, result)])

    def _values(self, scope: QueryScope, e: str, v: str, f: str, places: Sequence[PropertyPlace]) -> str:
        """Return all values of some properties: label by label, or, for more than a few labels, node by node."""
        nothing = f"UNWIND [] AS {e} RETURN {e}, null AS {v}, null AS {f}"
        if sum(len(place.labels) for place in places) <= MAX_BRANCHES:
            queries = []
            for place in places:
                for _, pattern, test in disjoint_labels(e, place.labels):
                    where = " AND ".join(filter(None, (test, place.exists(e))))
                    queries.append(f"MATCH {pattern} WHERE {where} {self._read(scope, place, e, v, f)} RETURN {e}, {v}, {f}")
            text = "\nUNION ALL\n".join(queries) or nothing
        else:
            queries = [f"{text} RETURN {v}, {f}" for text in self._by_keys(scope, places, e, v, f)]
            each_node = "\nUNION ALL\n".join(queries)
            text = f"{self._nodes(e, places)} CALL ({e}) {{\n{each_node}\n}} RETURN {e}, {v}, {f}"
        return f"CALL () {{\n{text}\n}}"

    def _nodes(self, e: str, places: Sequence[PropertyPlace]) -> str:
        """Return a MATCH of the nodes that may have some properties."""
        labels = dict.fromkeys(label for place in places for label in place.labels)
        if "" in labels or any(place.everywhere for place in places):
            return f"MATCH ({e}) WHERE {foreign(e)}"
        return f"MATCH ({e}:{'|'.join(map(quote, labels))})"

    def whole(self, scope: QueryScope, e: str, v: str, f: str, predicates: Sequence[str] | None) -> str | None:
        """Return clauses that yield all values of some predicates, or of all; None if there are none."""
        places = self.of(predicates)
        return self._values(scope, e, v, f, places) if places else None

    def with_text(self, scope: QueryScope, e: str, text: str) -> list[str]:
        """Return queries for the nodes that have a text as a value: those that an index answers, and one for all others."""
        text_places = [place for place in self._all if place.plain and {kind for kind, _ in place.prop.types} == {"STRING"}]
        text_places = [place for place in text_places if not place.prop.untidy]
        result = [
            f"MATCH {node_of(e, label)} WHERE {place.value(e)} = {text} RETURN {e}"
            for place in text_places
            for label in place.labels
            if label not in place.unindexed
        ]
        scanned = [place for place in text_places if place.unindexed]
        if scanned:
            has_key = f"any(a IN coalesce({scope.parameter(_keyed(scanned))}[k], []) WHERE {_has_labels(e, 'a', scanned)})"
            condition = f"any(k IN keys({e}) WHERE {e}[k] = {text} AND {has_key})"
            result.append(f"{self._nodes(e, scanned)} WITH {e} WHERE {condition} RETURN {e}")
        read_first = [place for place in self._all if place not in text_places]
        if read_first:
            v, f = scope.name("v"), scope.name("f")
            result.append(f"{self._values(scope, e, v, f, read_first)} WITH {e}, {v} WHERE {Bound(v).key} = {text} RETURN {e}")
        return result

    def queries(self, scope: QueryScope, e: str, v: str, f: str, predicates: Sequence[str] | None) -> list[str]:
        """Return queries that start from a node and bind values `v` and statements `f`; a RETURN must follow."""
        places = self.of(predicates)
        if predicates is None or len(places) > MAX_BRANCHES:
            return self._by_keys(scope, places, e, v, f)
        return [
            f"WITH {e} WHERE {' AND '.join([place.exists(e), *([] if place.everywhere else [within_labels(e, place.labels)])])} "
            f"{self._read(scope, place, e, v, f)}"
            for place in places
        ]

    def _by_keys(self, scope: QueryScope, places: Sequence[PropertyPlace], e: str, v: str, f: str) -> list[str]:
        """Return such queries by the keys of the node, one for all properties that are read alike."""
        groups: dict[Any, list[PropertyPlace]] = {}
        for place in places:
            groups.setdefault(likeness(place.prop), []).append(place)
        result = []
        for group in groups.values():
            k, a = scope.name("k"), scope.name("a")
            result.append(
                f"WITH {e} UNWIND keys({e}) AS {k} UNWIND {scope.parameter(_keyed(group))}[{k}] AS {a} "
                f"WITH {e}, {a} WHERE {_has_labels(e, a, group)} "
                + _bind_values(scope, together(place.prop for place in group), f"{e}[{a}[0]]", e, f"{a}[1]", v, f)
            )
        return result

    def _read(self, scope: QueryScope, holding: PropertyPlace, e: str, v: str, f: str) -> str:
        return _bind_values(scope, holding.prop, holding.value(e), e, scope.parameter(holding.predicate), v, f)


def _keyed(places: Sequence[PropertyPlace]) -> dict[str, list[list[Any]]]:
    """Return, by key, a property's key, its predicate, and the labels of the nodes that have it (None: any)."""
    result: dict[str, list[list[Any]]] = {}
    for item in places:
        result.setdefault(item.prop.key, []).append([item.prop.key, item.predicate, None if item.everywhere else list(item.labels)])
    return result


def _has_labels(e: str, a: str, places: Sequence[PropertyPlace]) -> str:
    """Return a test that a node has one of the labels in such a list."""
    if all(item.everywhere for item in places):
        return "true"
    none = f" OR (size(labels({e})) = 0 AND '' IN {a}[2])" if any("" in entry.labels for entry in places) else ""
    return f"({a}[2] IS NULL OR any(l IN labels({e}) WHERE l IN {a}[2]){none})"


def disjoint_labels(e: str, labels: Sequence[str], unindexed: Collection[str] = ()) -> list[tuple[list[str], str, str]]:
    """Return labels one by one, each with a pattern and a test that excludes nodes of the labels before.

    If there are many, those without an index come first, together.
    """
    scanned = [label for label in labels if label and label in unindexed] if len(labels) > MAX_BRANCHES else []
    result = [(scanned, f"({e}:{'|'.join(map(quote, scanned))})", "")] if scanned else []
    seen_labels = list(scanned)
    for label in labels:
        if label not in seen_labels:
            result.append(([label], node_of(e, label), f"NOT {within_labels(e, seen_labels)}" if seen_labels else ""))
            seen_labels.append(label)
    return result


def _fact(e: str, predicate: str, value: str) -> str:
    """Return what identifies a statement, as the field of a map so that the server accepts any use of it."""
    return f"{{f: [{e}, {predicate}, {value}]}}.f"


def _bind_values(scope: QueryScope, prop: Property, source: str, e: str, predicate: str, v: str, f: str) -> str:
    """Return clauses that bind each distinct value of a property, with its statement."""
    x, y = scope.name("x"), scope.name("y")
    has_lists = any(is_list(kind) for kind, _ in prop.types)
    result = f"COLLECT {{ UNWIND {as_list(source, prop)} AS {y} RETURN DISTINCT {y} }}" if has_lists else f"[{source}]"
    # As the field of a map, since the server rejects what it knows is no node where a node may be needed.
    cell = f"{{v: {PropertyCell(x, prop).whole}}}.v"
    return f"UNWIND {result} AS {x} WITH {e}, {cell} AS {v}, {_fact(e, predicate, x)} AS {f}"
