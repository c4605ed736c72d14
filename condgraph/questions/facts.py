"""Draws the facts that questions are about, spread over kinds, predicates and concepts, and similar values for wrong
choices.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import EntityKind, Ref
from condgraph.engine.values import NO_UNIT, Kind, Precision, Quantity, Time, text_of
from condgraph.questions.description import Cell

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- similar values --------------------------------------------------------------------------------
# Distinct values, and values near one, which wrong choices are taken from.
#
# A snapshot has the values of a predicate sorted by type, unit and size, so that equal values are
# adjacent, and so are near ones.


#: The most predicates in the cache, and the most distinct values of each.
_MAX_CACHED: Final = 256
_MAX_DISTINCT: Final = 2_000


class Group(NamedTuple):
    """Statements of an attribute with one type and unit, as a range counted from the first attribute, and their sort
    keys (times or sizes).
    """

    low: int
    high: int
    keys: NDArray[Any]


class NearbyValues:
    """Finds distinct and near values. `cell` converts a stored value to its form in conditions, or to None if no
    question can contain it. The cache does not grow with the graph.
    """

    def __init__(self, snapshot: Snapshot, cell: Callable[[Any], Cell | None]) -> None:
        self._snapshot, self._cell = snapshot, cell
        self._cache: dict[tuple[str, int], NDArray[np.int64]] = {}

    def values(self, predicate: int, pick: random.Random, most: int) -> list[int]:
        """Draw statements of an attribute with distinct values, from all its values."""
        low, high = self._snapshot.attribute_offsets[predicate : predicate + 2]
        candidates = self._different("att", predicate, np.arange(low, high))
        return [
            self._snapshot.relations + int(candidates[at]) for at in pick.sample(range(len(candidates)), min(most, len(candidates)))
        ]

    def qualifiers(self, key: int, pick: random.Random, most: int) -> list[Cell]:
        """Draw distinct values of a qualifier, from all its values."""
        get = self._snapshot.arrays.get
        low, high = get("qkey.offsets")[key : key + 2].tolist()
        candidates = self._different("q", key, get("qkey.items")[low:high])
        drawn = pick.sample(range(len(candidates)), min(most, len(candidates)))
        values = (self._cell(self._snapshot.value("q", int(candidates[at]))) for at in drawn)
        return [value for value in values if value is not None]

    def _different(self, family: str, predicate: int, cells: NDArray[Any]) -> NDArray[np.int64]:
        """Return one cell for each distinct value of sorted cells."""
        result = self._cache.get((family, predicate))
        if result is None:
            columns = [self._snapshot.arrays.get(f"{family}.{name}")[cells] for name in ("kind", "a", "ref", "unit")]
            new = np.ones(len(cells), bool)
            new[1:] = np.any([name[1:] != name[:-1] for name in columns], axis=0)
            result = cells[new]
            result = result[:: max(1, len(result) // _MAX_DISTINCT)].astype(np.int64)
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[family, predicate] = result
        return result

    def groups(self, value: Quantity | Time) -> list[Group]:
        """Return the groups of attribute values with the type and unit of a value."""
        get, is_time = self._snapshot.arrays.get, isinstance(value, Time)
        unit = -1 if isinstance(value, Time) or value.unit == NO_UNIT else self._snapshot.texts.find(value.unit)
        kinds, units, starts = get("grp.kind"), get("grp.unit"), get("grp.start").tolist()
        keys = get("att.a") if is_time else get("att.a").view(np.float64)
        matching = np.flatnonzero((kinds == (Kind.TIME if is_time else Kind.QUANTITY)) & (units == unit)).tolist()
        return [Group(starts[at], starts[at + 1], keys[starts[at] : starts[at + 1]]) for at in matching]


# -- drawing facts ---------------------------------------------------------------------------------
# Statements drawn uniformly would be the most common ones: hardly any qualifiers, and always the same
# hubs. So the kind is drawn first (a relation, a text, a number, a time; with qualifiers or without).
# Half of the time a predicate follows, weighted by the square root of the number of its statements of
# this kind, and one of these, with every subject equally likely. Otherwise a concept follows, weighted
# by the square root of its size, then one of its members, and one of the member's predicates, both
# uniformly.


#: The kinds of facts.
RELATION: Final = "relation"
FACT_KINDS: Final = (RELATION, "text", "number", "time")
_KIND_NAMES: Final = {Kind.TEXT: "text", Kind.QUANTITY: "number", Kind.TIME: "time"}
#: The most values in the cache.
_MAX_VALUES: Final = 4096
#: The most attempts to draw one fact.
_TRIES: Final = 24
#: The names of the rows of a table without a key.
_ROW_NAME: Final = re.compile(r".* row \d+").fullmatch
#: The most characters of a name or text in a question.
MAX_LENGTH: Final = 70


class _Runs(NamedTuple):
    """Ranges of statements, each of one predicate, in `items` (None: the statement numbers themselves)."""

    runs: list[tuple[int, int]]
    weights: list[float]
    items: NDArray[np.int64] | None


class Run(NamedTuple):
    """The statements of one entity with one predicate: `items[low:high]`."""

    predicate: int
    relation: bool
    items: memoryview
    low: int
    high: int

    @property
    def first(self) -> int:
        result: int = self.items[self.low]
        return result

    def draw(self, pick: random.Random) -> int:
        result: int = self.items[self.low if self.high - self.low == 1 else pick.randrange(self.low, self.high)]
        return result


class Facts:
    """The facts of a snapshot that questions can be about."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        arrays = snapshot.arrays
        self._out, self._in = arrays.view("out.offsets"), arrays.view("in.offsets")
        self._out_items, self._in_items = arrays.view("out.items"), arrays.view("in.items")
        self._subject, self._object = arrays.view("rel.s"), arrays.view("rel.o")
        self._holder, self._kind = arrays.view("att.s"), arrays.view("att.kind")
        self._owned = arrays.view("q.offsets") if len(arrays.get("q.offsets")) else None
        self._qkey = arrays.view("q.key")
        self._units = arrays.view("att.unit")
        self._raw = arrays.view("att.raw") if len(arrays.get("att.raw")) else None
        #: For each predicate, whether a question can contain its name.
        self._is_readable = [readable(snapshot.predicate_name(number)) for number in range(snapshot.counts["predicates"])]
        self._direct = self._memberships()
        self.alike = NearbyValues(self.snapshot, self.cell)
        self._values: dict[int, Cell | None] = {}
        self.pools = {(kind, qualified): self._pool(kind, qualified) for kind in FACT_KINDS for qualified in (False, True)}
        offsets = np.diff(arrays.get("con.offsets")) if len(arrays.get("con.offsets")) else np.empty(0)
        self._concept_weights = list(accumulate(np.sqrt(offsets).tolist()))

    # -- drawing -----------------------------------------------------------------------------------

    def _pool(self, kind: str, qualified: bool) -> _Runs:
        snapshot, get = self.snapshot, self.snapshot.arrays.get
        base = snapshot.relations
        if kind == RELATION:
            offsets = get("rel.offsets").astype(np.int64)
            runs = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
        else:
            starts = get("grp.start").tolist()
            value_kinds = {int(item) for item, name in _KIND_NAMES.items() if name == kind}
            kinds = get("grp.kind").tolist()
            runs = [(base + starts[i], base + starts[i + 1]) for i in range(len(kinds)) if kinds[i] in value_kinds]
        runs = [run for run in runs if run[0] < run[1] and self.told(run[0])]
        items = None
        if qualified:
            qualifier_offsets = get("q.offsets")
            items = np.flatnonzero(np.diff(qualifier_offsets)) if len(qualifier_offsets) else np.empty(0, np.int64)
            runs = [(int(a), int(b)) for low, high in runs for a, b in [np.searchsorted(items, (low, high))] if a < b]
        return _Runs(runs, list(accumulate((high - low) ** 0.5 for low, high in runs)), items)

    def has(self, kind: str, qualified: bool = False) -> bool:
        """Whether there are facts of a kind."""
        return bool(self.pools[kind, qualified].runs)

    def draw(self, pick: random.Random, kind: str, qualified: bool = False) -> int | None:
        """Draw a statement of a kind; None if no attempt found one."""
        pool = self.pools[kind, qualified]
        if not pool.runs:
            return None
        if self._concept_weights and self._concept_weights[-1] and pick.random() < 0.5:
            drawn = self._draw_of_member(pick, kind, qualified)
            if drawn is not None:
                return drawn
        statement = None
        for _ in range(_TRIES):
            low, high = pool.runs[bisect_right(pool.weights, pick.random() * pool.weights[-1], 0, len(pool.runs) - 1)]
            position = pick.randrange(low, high)
            statement = position if pool.items is None else int(pool.items[position])
            # Every subject is equally likely, however many values it has.
            predicate = self.predicate(statement)
            siblings = len(self.of(self.subject(statement), predicate, relation=kind == RELATION))
            if siblings <= 1 or pick.random() * siblings < 1:
                return statement
        return statement

    def _draw_of_member(self, pick: random.Random, kind: str, qualified: bool) -> int | None:
        get = self.snapshot.arrays.get
        for _ in range(4):
            at = bisect_right(self._concept_weights, pick.random() * self._concept_weights[-1], 0, len(self._concept_weights) - 1)
            low, high = get("con.offsets")[at : at + 2].tolist()
            if low == high:
                continue
            entity = int(get("con.items")[pick.randrange(low, high)])
            runs = [run for run in self.outgoing(entity) if self.kind(run.first) == kind]
            for run in pick.sample(runs, len(runs)):
                statement = run.draw(pick)
                if not qualified or self.qualified(statement):
                    return statement
        return None

    # -- one statement -----------------------------------------------------------------------------

    def kind(self, statement: int) -> str | None:
        """Return the kind of a fact; None for an unknown value."""
        base = self.snapshot.relations
        return RELATION if statement < base else _KIND_NAMES.get(Kind(self._kind[statement - base]))

    def told(self, statement: int) -> bool:
        """Whether a question can contain the name of a statement's predicate."""
        return self._is_readable[self.predicate(statement)]

    def subject(self, statement: int) -> int:
        base = self.snapshot.relations
        return self._subject[statement] if statement < base else self._holder[statement - base]

    def target(self, statement: int) -> int:
        return self._object[statement]

    def predicate(self, statement: int) -> int:
        return self.snapshot.predicate_of(statement)

    def qualified(self, statement: int) -> bool:
        return self._owned is not None and self._owned[statement] < self._owned[statement + 1]

    def value(self, statement: int) -> Cell | None:
        """Return the value of an attribute in its form for conditions; None if no question can contain it."""
        if statement not in self._values:
            if len(self._values) >= _MAX_VALUES:
                self._values.clear()
            self._values[statement] = self.cell(self.snapshot.value("att", statement - self.snapshot.relations))
        return self._values[statement]

    def unit(self, statement: int) -> tuple[int, int]:
        """Return the type and the unit, as numbers, of an attribute's value; only values that share both can be
        compared.
        """
        at = statement - self.snapshot.relations
        return self._kind[at], self._units[at]

    def shown(self, statement: int) -> str | None:
        """Return the value of an attribute as answers show it: the text of its source, if that differs."""
        value = self.value(statement)
        if value is None:
            return None
        raw = self._raw[statement - self.snapshot.relations] if self._raw is not None else -1
        return self.snapshot.texts[raw] if raw >= 0 else text_of(value)

    def qualifiers(self, statement: int) -> list[tuple[str, Cell]]:
        """Return at most 16 qualifiers of a statement that conditions can have, with entities as names."""
        if self._owned is None:
            return []
        qualifiers = []
        for at in range(self._owned[statement], min(self._owned[statement + 1], self._owned[statement] + 16)):
            value = self.cell(self.snapshot.value("q", at)) if self._is_readable[self._qkey[at]] else None
            if value is not None:
                qualifiers.append((self.snapshot.predicate_name(self._qkey[at]), value))
        return qualifiers

    def cell(self, value: Any) -> Cell | None:
        """Return a value in its form for conditions, an entity as its name; None if no question can contain it."""
        if isinstance(value, Ref):
            number = self.snapshot.identified(value.id)
            value = self.snapshot.name(number) if number >= 0 else None
        if isinstance(value, str):
            return value if readable(value) else None
        if isinstance(value, Time) and value.precision in (Precision.YEAR, Precision.MONTH, Precision.DAY):
            return value
        if isinstance(value, Quantity) and len(text_of(value)) <= MAX_LENGTH:
            return value
        return None

    # -- around an entity --------------------------------------------------------------------------

    def of(self, subject: int, predicate: int, *, relation: bool) -> Sequence[int] | NDArray[np.int32]:
        """Return the statements of a subject with a predicate."""
        offsets = self.snapshot.relation_offsets if relation else self.snapshot.attribute_offsets
        base = 0 if relation else self.snapshot.relations
        return self.snapshot.outgoing(subject, base + offsets[predicate], base + offsets[predicate + 1])

    def onto(self, target: int, predicate: int) -> NDArray[np.int32]:
        """Return the relations to an object with a predicate."""
        offsets = self.snapshot.relation_offsets
        return self.snapshot.incoming(target, offsets[predicate], offsets[predicate + 1])

    def outgoing(self, entity: int) -> list[Run]:
        """Return the statements of a subject, by predicate."""
        return self._runs(self._out_items, self._out[entity], self._out[entity + 1])

    def incoming(self, entity: int) -> list[Run]:
        """Return the relations to an object, by predicate."""
        return self._runs(self._in_items, self._in[entity], self._in[entity + 1])

    def _runs(self, items: memoryview, at: int, high: int) -> list[Run]:
        # One step per predicate, however many statements it has.
        relations, base = self.snapshot.relation_offsets, self.snapshot.relations
        attributes, runs = self.snapshot.attribute_offsets, []
        while at < high:
            statement = items[at]
            if statement < base:
                predicate = bisect_right(relations, statement) - 1
                end = relations[predicate + 1]
            else:
                predicate = bisect_right(attributes, statement - base) - 1
                end = base + attributes[predicate + 1]
            end_of_run = bisect_left(items, end, at, high)
            if self._is_readable[predicate]:
                runs.append(Run(predicate, statement < base, items, at, end_of_run))
            at = end_of_run
        return runs

    # -- names and concepts ------------------------------------------------------------------------

    def name(self, entity: int) -> str | None:
        """Return the name of an entity if a question can use it: it is readable, and no other entity has it."""
        name = self.snapshot.name(entity)
        return name if readable(name) and len(self.snapshot.named(name)) == 1 and not self.unnamed_row(entity) else None

    def unnamed_row(self, entity: int) -> bool:
        """Whether an entity is a row of a table without a name of its own."""
        if not self.is_row(entity):
            return False
        name = self.snapshot.name(entity)
        return name == self.snapshot.ident(entity) or _ROW_NAME(name) is not None

    def concepts(self, entity: int) -> list[str]:
        """Return the names of the stated concepts of an entity, those names that only one concept has."""
        order, members, concepts = self._direct
        low = bisect_left(members, entity)
        high = bisect_right(members, entity, low)
        names = [self.snapshot.name(int(concepts[order[at]])) for at in range(low, min(high, low + 16))]
        return [name for name in dict.fromkeys(names) if readable(name) and len(self.snapshot.concepts_named(name)) == 1]

    def is_entity(self, entity: int) -> bool:
        """Whether the number is of an entity that is not a concept."""
        return int(self.snapshot.entity_kind[entity]) != EntityKind.CONCEPT

    def is_row(self, entity: int) -> bool:
        """Whether an entity is a row of a table."""
        return int(self.snapshot.entity_kind[entity]) == EntityKind.ROW

    def _memberships(self) -> tuple[NDArray[np.int64], memoryview, NDArray[np.int32]]:
        get = self.snapshot.arrays.get
        order = np.argsort(get("mem.e"), kind="stable")
        return order, get("mem.e")[order].data, get("mem.c")


@lru_cache(maxsize=8192)
def readable(text: str) -> bool:
    """Whether a question can contain a text."""
    is_plain = 0 < len(text) <= MAX_LENGTH and text.isprintable() and text == text.strip()
    return is_plain and any(map(str.isalnum, text)) and "://" not in text
