"""Facts that questions are about, drawn by kind and spread over predicates and concepts; and similar values, for wrong choices."""

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
# Values that differ, and values that are like one: what wrong choices are taken from.
#
# A snapshot keeps the values of a predicate by type, unit and size, so that each different one is
# where the one before ends, and those near a number are next to it.


#: How many predicates are remembered, and how many different values of each.
_KEPT: Final = 256
_MOST: Final = 2_000


class Group(NamedTuple):
    """Statements of an attribute with one type and unit, counted from the first attribute, and the
    starts or sizes that they are in order of.
    """

    low: int
    high: int
    keys: NDArray[Any]


class NearbyValues:
    """Finds values near others; `cell` is how a value is asked about. What is remembered does not
    grow with the graph.
    """

    def __init__(self, snapshot: Snapshot, cell: Callable[[Any], Cell | None]) -> None:
        self._snapshot, self._cell = snapshot, cell
        self._kept: dict[tuple[str, int], NDArray[np.int64]] = {}

    def values(self, predicate: int, pick: random.Random, most: int) -> list[int]:
        """Statements of an attribute with values that differ, drawn from all of its values."""
        low, high = self._snapshot.attribute_offsets[predicate : predicate + 2]
        result = self._different("att", predicate, np.arange(low, high))
        return [self._snapshot.relations + int(result[at]) for at in pick.sample(range(len(result)), min(most, len(result)))]

    def qualifiers(self, key: int, pick: random.Random, most: int) -> list[Cell]:
        """Values of a qualifier that differ, drawn from all of them."""
        get = self._snapshot.arrays.get
        low, high = get("qkey.offsets")[key : key + 2].tolist()
        result = self._different("q", key, get("qkey.items")[low:high])
        drawn = pick.sample(range(len(result)), min(most, len(result)))
        values = (self._cell(self._snapshot.value("q", int(result[at]))) for at in drawn)
        return [value for value in values if value is not None]

    def _different(self, family: str, predicate: int, cells: NDArray[Any]) -> NDArray[np.int64]:
        """One of the cells, which are in order, for each value."""
        result = self._kept.get((family, predicate))
        if result is None:
            parts = [self._snapshot.arrays.get(f"{family}.{part}")[cells] for part in ("kind", "a", "ref", "unit")]
            new = np.ones(len(cells), bool)
            new[1:] = np.any([part[1:] != part[:-1] for part in parts], axis=0)
            result = cells[new]
            result = result[:: max(1, len(result) // _MOST)].astype(np.int64)
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[family, predicate] = result
        return result

    def groups(self, value: Quantity | Time) -> list[Group]:
        """The runs of attributes with values of the type and unit of one."""
        get, time = self._snapshot.arrays.get, isinstance(value, Time)
        unit = -1 if isinstance(value, Time) or value.unit == NO_UNIT else self._snapshot.texts.find(value.unit)
        kinds, units, starts = get("grp.kind"), get("grp.unit"), get("grp.start").tolist()
        keys = get("att.a") if time else get("att.a").view(np.float64)
        wanted = np.flatnonzero((kinds == (Kind.TIME if time else Kind.QUANTITY)) & (units == unit)).tolist()
        return [Group(starts[at], starts[at + 1], keys[starts[at] : starts[at + 1]]) for at in wanted]


# -- drawing facts ---------------------------------------------------------------------------------
# Drawing statements as they come would give what there is most of: nearly no qualifiers, and always
# the same hubs. So the kind is drawn first (a relation, a text, a number, a time; with qualifiers or
# without), then, every second time, a predicate with the weight of the square root of how many such
# statements it has, and a statement of it whose subject counts once; every other time a concept with
# the weight of the square root of its members, one of them, and a predicate of that one, each as
# likely as the other.


#: The kinds of facts.
RELATION: Final = "relation"
FACT_KINDS: Final = (RELATION, "text", "number", "time")
_KIND_OF: Final = {Kind.TEXT: "text", Kind.QUANTITY: "number", Kind.TIME: "time"}
#: How many values are remembered.
_MOST_VALUES: Final = 4096
#: How many draws are tried for one fact.
_TRIES: Final = 24
#: What the rows of a table without a key are called.
_ROW_NAME: Final = re.compile(r".* row \d+").fullmatch
#: Names and texts of more characters are in no question.
LONGEST: Final = 70


class _Runs(NamedTuple):
    """Runs of statements, each of one predicate, in `items` (None: the numbers themselves)."""

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
        """The first of them."""
        result: int = self.items[self.low]
        return result

    def draw(self, pick: random.Random) -> int:
        """One of them."""
        result: int = self.items[self.low if self.high - self.low == 1 else pick.randrange(self.low, self.high)]
        return result


class Facts:
    """The facts of a snapshot as questions take them."""

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
        #: By predicate, whether a question can contain its name.
        self._told = [readable(snapshot.predicate_name(number)) for number in range(snapshot.counts["predicates"])]
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
            wanted = {int(item) for item, name in _KIND_OF.items() if name == kind}
            kinds = get("grp.kind").tolist()
            runs = [(base + starts[i], base + starts[i + 1]) for i in range(len(kinds)) if kinds[i] in wanted]
        runs = [run for run in runs if run[0] < run[1] and self.told(run[0])]
        items = None
        if qualified:
            owned = get("q.offsets")
            items = np.flatnonzero(np.diff(owned)) if len(owned) else np.empty(0, np.int64)
            runs = [(int(a), int(b)) for low, high in runs for a, b in [np.searchsorted(items, (low, high))] if a < b]
        return _Runs(runs, list(accumulate((high - low) ** 0.5 for low, high in runs)), items)

    def has(self, kind: str, qualified: bool = False) -> bool:
        """Whether there are such facts."""
        return bool(self.pools[kind, qualified].runs)

    def draw(self, pick: random.Random, kind: str, qualified: bool = False) -> int | None:
        """A statement of a kind; None where none was met."""
        pool = self.pools[kind, qualified]
        if not pool.runs:
            return None
        if self._concept_weights and self._concept_weights[-1] and pick.random() < 0.5:
            result = self._draw_of_member(pick, kind, qualified)
            if result is not None:
                return result
        statement = None
        for _ in range(_TRIES):
            low, high = pool.runs[bisect_right(pool.weights, pick.random() * pool.weights[-1], 0, len(pool.runs) - 1)]
            place = pick.randrange(low, high)
            statement = place if pool.items is None else int(pool.items[place])
            # A subject counts once, however many values it has.
            predicate = self.predicate(statement)
            several = len(self.of(self.subject(statement), predicate, relation=kind == RELATION))
            if several <= 1 or pick.random() * several < 1:
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
        """The kind of a fact; None for values that are not known."""
        base = self.snapshot.relations
        return RELATION if statement < base else _KIND_OF.get(Kind(self._kind[statement - base]))

    def told(self, statement: int) -> bool:
        """Whether a question can contain the name of a statement's predicate."""
        return self._told[self.predicate(statement)]

    def subject(self, statement: int) -> int:
        """The subject of a statement."""
        base = self.snapshot.relations
        return self._subject[statement] if statement < base else self._holder[statement - base]

    def target(self, statement: int) -> int:
        """The object of a relation."""
        return self._object[statement]

    def predicate(self, statement: int) -> int:
        """The predicate of a statement."""
        return self.snapshot.predicate_of(statement)

    def qualified(self, statement: int) -> bool:
        """Whether a statement has qualifiers."""
        return self._owned is not None and self._owned[statement] < self._owned[statement + 1]

    def value(self, statement: int) -> Cell | None:
        """The value of an attribute as conditions take it; None for others."""
        if statement not in self._values:
            if len(self._values) >= _MOST_VALUES:
                self._values.clear()
            self._values[statement] = self.cell(self.snapshot.value("att", statement - self.snapshot.relations))
        return self._values[statement]

    def unit(self, statement: int) -> tuple[int, int]:
        """What values that can be compared have in common: the type, and the unit as a number."""
        at = statement - self.snapshot.relations
        return self._kind[at], self._units[at]

    def shown(self, statement: int) -> str | None:
        """The value of an attribute as answers show it: the text of its source, where that differs."""
        value = self.value(statement)
        if value is None:
            return None
        raw = self._raw[statement - self.snapshot.relations] if self._raw is not None else -1
        return self.snapshot.texts[raw] if raw >= 0 else text_of(value)

    def qualifiers(self, statement: int) -> list[tuple[str, Cell]]:
        """The qualifiers of a statement as conditions take them; entities by name."""
        if self._owned is None:
            return []
        result = []
        for at in range(self._owned[statement], min(self._owned[statement + 1], self._owned[statement] + 16)):
            value = self.cell(self.snapshot.value("q", at)) if self._told[self._qkey[at]] else None
            if value is not None:
                result.append((self.snapshot.predicate_name(self._qkey[at]), value))
        return result

    def cell(self, value: Any) -> Cell | None:
        """A value as conditions take it; None for one that no question can use."""
        if isinstance(value, Ref):
            number = self.snapshot.identified(value.id)
            value = self.snapshot.name(number) if number >= 0 else None
        if isinstance(value, str):
            return value if readable(value) else None
        if isinstance(value, Time) and value.precision in (Precision.YEAR, Precision.MONTH, Precision.DAY):
            return value
        if isinstance(value, Quantity) and len(text_of(value)) <= LONGEST:
            return value
        return None

    # -- around an entity --------------------------------------------------------------------------

    def of(self, subject: int, predicate: int, *, relation: bool) -> Sequence[int] | NDArray[np.int32]:
        """The statements of a subject with a predicate."""
        offsets = self.snapshot.relation_offsets if relation else self.snapshot.attribute_offsets
        base = 0 if relation else self.snapshot.relations
        return self.snapshot.outgoing(subject, base + offsets[predicate], base + offsets[predicate + 1])

    def onto(self, target: int, predicate: int) -> NDArray[np.int32]:
        """The relations to an object with a predicate."""
        offsets = self.snapshot.relation_offsets
        return self.snapshot.incoming(target, offsets[predicate], offsets[predicate + 1])

    def outgoing(self, entity: int) -> list[Run]:
        """The statements of a subject, by predicate."""
        return self._runs(self._out_items, self._out[entity], self._out[entity + 1])

    def incoming(self, entity: int) -> list[Run]:
        """The relations to an object, by predicate."""
        return self._runs(self._in_items, self._in[entity], self._in[entity + 1])

    def _runs(self, items: memoryview, at: int, high: int) -> list[Run]:
        # One step a predicate, however many statements it has there.
        relations, base = self.snapshot.relation_offsets, self.snapshot.relations
        attributes, result = self.snapshot.attribute_offsets, []
        while at < high:
            statement = items[at]
            if statement < base:
                predicate = bisect_right(relations, statement) - 1
                end = relations[predicate + 1]
            else:
                predicate = bisect_right(attributes, statement - base) - 1
                end = base + attributes[predicate + 1]
            after = bisect_left(items, end, at, high)
            if self._told[predicate]:
                result.append(Run(predicate, statement < base, items, at, after))
            at = after
        return result

    # -- names and concepts ------------------------------------------------------------------------

    def name(self, entity: int) -> str | None:
        """The name of an entity where a question can use it: nothing else has it, and it is
        readable.
        """
        name = self.snapshot.name(entity)
        return name if readable(name) and len(self.snapshot.named(name)) == 1 and not self.unnamed_row(entity) else None

    def unnamed_row(self, entity: int) -> bool:
        """Whether something is a row of a table that has no name of its own."""
        if not self.is_row(entity):
            return False
        name = self.snapshot.name(entity)
        return name == self.snapshot.ident(entity) or _ROW_NAME(name) is not None

    def concepts(self, entity: int) -> list[str]:
        """The names of the concepts an entity is stated to be in, where one concept has the name."""
        order, members, concepts = self._direct
        low = bisect_left(members, entity)
        high = bisect_right(members, entity, low)
        names = [self.snapshot.name(int(concepts[order[at]])) for at in range(low, min(high, low + 16))]
        return [name for name in dict.fromkeys(names) if readable(name) and len(self.snapshot.concepts_named(name)) == 1]

    def is_entity(self, entity: int) -> bool:
        """Whether something is no concept."""
        return int(self.snapshot.entity_kind[entity]) != EntityKind.CONCEPT

    def is_row(self, entity: int) -> bool:
        """Whether something is a row of a table."""
        return int(self.snapshot.entity_kind[entity]) == EntityKind.ROW

    def _memberships(self) -> tuple[NDArray[np.int64], memoryview, NDArray[np.int32]]:
        get = self.snapshot.arrays.get
        order = np.argsort(get("mem.e"), kind="stable")
        return order, get("mem.e")[order].data, get("mem.c")


@lru_cache(maxsize=8192)
def readable(text: str) -> bool:
    """Whether a question can contain a text."""
    short = 0 < len(text) <= LONGEST and text.isprintable() and text == text.strip()
    return short and any(map(str.isalnum, text)) and "://" not in text
