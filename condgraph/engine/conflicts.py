"""Statements that cannot hold together: different values, at one time, of a predicate that has one value at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, check, watched
from condgraph.engine.errors import OptionError, nearest, numbered
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Entity
from condgraph.engine.identity import statement_ids
from condgraph.engine.records import Evidence, record_of, statement_text
from condgraph.engine.snapshot.cells import PARTS, decode_values
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.engine.units import conversions, fold_unit
from condgraph.engine.values import (
    NO_UNIT,
    OPEN_END,
    OPEN_START,
    UNKNOWN,
    UNKNOWN_END,
    Kind,
    Quantity,
    Time,
    Value,
    format_number,
    parse_quantity,
    text_of,
)

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

Numbers: TypeAlias = NDArray[np.int32]
Positions: TypeAlias = NDArray[np.int64]
#: Pairs of statements that are compared at once.
_TOGETHER: Final = 1 << 18
_EARLIEST: Final = np.int64(OPEN_START)
_LATEST: Final = np.int64(OPEN_END)
#: Subjects by which a predicate is judged, the fewest of them, and the share that has one value at a time.
_SAMPLED: Final = 2_000
_LEAST: Final = 10
_NEARLY_ALL: Final = 0.95
#: Conflicts that an answer warns of one by one, and statements of its evidence that are looked at.
_SHOWN: Final = 5
_MOST_LOOKED_AT: Final = 100_000
#: Conflicts that are counted for a warning.
_MOST_COUNTED: Final = 100_000
#: Subjects of which a server is asked for what contradicts an answer.
MOST_SUBJECTS: Final = 1_000
#: The qualifier of a statement's rank, and its values, best first; a statement without one is "normal".
RANK: Final = "rank"
RANKS: Final = ("preferred", "normal", "deprecated")
#: What a preference can be, next to a list of sources.
CRITERIA: Final = ("rank", "latest", "earliest")


# -- declarations ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preference:
    """Which of two statements in conflict counts: that of the source that comes first in `sources`, that of the better
    rank, or that which begins later, or earlier.
    """

    sources: tuple[str, ...] = ()
    criterion: str = ""

    @classmethod
    def of(cls, value: Any) -> Preference | None:
        """A preference as users give it: "rank", "latest", "earliest", or the names of sources, best first. Raises
        `OptionError` for anything else.
        """
        if value is None or value is True or isinstance(value, Preference):
            return value if isinstance(value, Preference) else None
        if isinstance(value, str) and value in CRITERIA:
            return cls(criterion=value)
        if isinstance(value, str):
            raise OptionError(
                f"prefer={value!r} is no preference",
                candidates=nearest(value, CRITERIA),
                hint="a preference is 'rank', 'latest', 'earliest', or a list of sources, best first: ['atlas', 'notes']",
            )
        names = tuple(value) if isinstance(value, Sequence) else ()
        if not names or not all(isinstance(name, str) and name for name in names):
            raise OptionError("prefer is 'rank', 'latest', 'earliest', or a list of sources, best first: ['atlas', 'notes']")
        return cls(names)

    @property
    def stored(self) -> str | list[str]:
        """As JSON has it."""
        return self.criterion or list(self.sources)

    def __str__(self) -> str:
        return self.criterion or "source"


#: A preference of a query, for all declared predicates, or for each of those that it names.
Prefer: TypeAlias = str | Sequence[str] | Mapping[str, str | Sequence[str]]
#: Predicates with one value at a time, each with the preference that resolves its conflicts.
SingleValued: TypeAlias = Mapping[str, Preference | None]


def single_valued(value: Any, prefer: Any = None) -> dict[str, Preference | None]:
    """Predicates as users declare them: one name, several, or a mapping of names to preferences (True: none). Raises
    `OptionError` for anything else.
    """
    named: Mapping[Any, Any] = value if isinstance(value, Mapping) else {}
    if isinstance(value, str):
        named = {value: prefer}
    elif not isinstance(value, Mapping) and isinstance(value, Iterable):
        names = list(value)
        if all(isinstance(name, str) for name in names):
            named = dict.fromkeys(names, prefer)
    if not named or not all(isinstance(name, str) and name for name in named):
        raise OptionError(
            "single_valued is the name of a predicate, a list of names, or a mapping of names to preferences",
            hint="as single_valued=['capital'], or {'capital': 'latest'}",
        )
    return {name: Preference.of(one) for name, one in named.items()}


def declared_in(about: Mapping[str, Any]) -> dict[str, Preference | None]:
    """The declarations of a graph by what is stored with it."""
    stored: Mapping[str, Any] = about.get("settings", {}).get("single_valued", {})
    return {name: Preference.of(one) for name, one in stored.items()}


# -- whether values differ ---------------------------------------------------------------------------

Comparison: TypeAlias = Literal["same", "unclear", "different"]


def compared(a: Entity | Value, b: Entity | Value) -> Comparison:
    """Whether two values say the same: quantities in any unit, times of any precision (1984 and 1984-05-01 do), entities
    by their names. "unclear" is what cannot be compared, such as a number with a unit and one without.
    """
    if a is UNKNOWN or b is UNKNOWN:
        return "same"
    if isinstance(a, Entity):
        a = a.name
    if isinstance(b, Entity):
        b = b.name
    if isinstance(a, Quantity) and isinstance(b, Quantity):
        return _quantities(a, b)
    if isinstance(a, Time) and isinstance(b, Time):
        return _times(a, b)
    if text_of(a) == text_of(b):
        return "same"
    if isinstance(a, str) and isinstance(b, str):
        return "different"
    if isinstance(a, str) or isinstance(b, str):
        return _read(a, b) if isinstance(a, str) else _read(str(b), a)
    # A number may be a year.
    quantity, time = (a, b) if isinstance(a, Quantity) else (b, a)
    if isinstance(quantity, Quantity) and isinstance(time, Time) and quantity.unit == NO_UNIT and isinstance(quantity.number, int):
        try:
            year = Time.year(quantity.number)
        except ValueError:
            return "unclear"
        return "same" if _times(year, time) == "same" else "unclear"
    return "unclear"


def _read(text: str, value: Any) -> Comparison:
    """A text next to a value of another type."""
    try:
        read = parse_quantity(text) if isinstance(value, Quantity) else Time.parse(text)
    except ValueError:
        return "unclear"
    return compared(read, value)


def _times(a: Time, b: Time) -> Comparison:
    if a.end <= b.start or b.end <= a.start:
        return "different"
    return "same" if (a.start <= b.start and b.end <= a.end) or (b.start <= a.start and a.end <= b.end) else "unclear"


def _quantities(a: Quantity, b: Quantity) -> Comparison:
    if fold_unit(a.unit) == fold_unit(b.unit):
        return "same" if Fraction(format_number(a.number)) == Fraction(format_number(b.number)) else "different"
    converted = conversions(a, [b.unit])
    if not converted:
        return "unclear"
    number, other = converted[0].number, b.number
    try:
        # Factors between units are floats.
        return "same" if number == other or math.isclose(number, other, rel_tol=1e-9) else "different"
    except OverflowError:
        return "different"


# -- whether statements hold together ----------------------------------------------------------------


class _Times:
    """When each of some statements (sorted) begins and ends, at the earliest and at the latest, in seconds, both
    inclusive. A start of 1984 is some moment of that year, a point in time all of it.
    """

    def __init__(self, snapshot: Snapshot, numbers: Numbers) -> None:
        from condgraph.engine.execute.validity import validity_in

        count = len(numbers)
        self.first, self.last = np.full(count, _EARLIEST), np.full(count, _LATEST)
        latest_start, earliest_end = np.full(count, _LATEST), np.full(count, _EARLIEST)
        self.dated = np.zeros(count, bool)
        at, start, end = validity_in(snapshot, numbers)
        self.dated[at] = True
        self.first[at] = np.maximum(start, _EARLIEST)
        self.last[at] = np.where(end >= UNKNOWN_END, _LATEST, end - 1)
        owners, places = snapshot.qualifiers(numbers)
        kinds = snapshot.arrays.get("q.kind")
        keys = snapshot.arrays.get("q.key").take(places) if len(places) else places
        named = np.zeros(count, bool)
        stated = {}
        for name in (START_TIME, END_TIME, POINT_IN_TIME):
            these = np.flatnonzero(keys == snapshot.predicate(name))
            these = these[np.isin(kinds.take(places[these]), (Kind.TIME, Kind.UNKNOWN))] if len(these) else these
            named[owners[these]] = True
            these = these[kinds.take(places[these]) == Kind.TIME] if len(these) else these
            stated[name] = owners[these], places[these]
        a, b = snapshot.arrays.get("q.a"), snapshot.arrays.get("q.b")
        spans = np.zeros(count, bool)
        for name in (START_TIME, END_TIME):
            spans[stated[name][0]] = True
        owner, place = stated[START_TIME]
        np.minimum.at(latest_start, owner, b.take(place) - 1)
        owner, place = stated[END_TIME]
        np.maximum.at(earliest_end, owner, a.take(place))
        exact = self.dated & ~spans
        # Points in time, and times that are declared under other names, hold throughout.
        latest_start[exact] = np.where(self.first[exact] > _EARLIEST, self.first[exact], _LATEST)
        earliest_end[exact] = np.where(self.last[exact] < _LATEST, self.last[exact], _EARLIEST)
        self.starts, self.ends = latest_start < _LATEST, earliest_end > _EARLIEST
        # With one bound known the statement holds at that bound at least.
        self.latest_start = np.where(self.starts | ~self.ends, latest_start, self.last)
        self.earliest_end = np.where(self.ends | ~self.starts, earliest_end, self.first)

    def compared(self, i: Positions, j: Positions) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Of pairs of positions, which may hold at one time, and which must. Two of which one may have ended before the
        other began, by the bounds that both state, follow each other, and do not.
        """
        neither = ~self.dated[i] & ~self.dated[j]
        may = (self.first[i] <= self.last[j]) & (self.first[j] <= self.last[i])
        must = (self.latest_start[i] <= self.earliest_end[j]) & (self.latest_start[j] <= self.earliest_end[i])
        follows = self.ends[i] & self.starts[j] & (self.latest_start[j] > self.earliest_end[i])
        follows |= self.ends[j] & self.starts[i] & (self.latest_start[i] > self.earliest_end[j])
        # Two that state the same period are about the same time, however roughly.
        same = self.dated[i] & (self.first[i] == self.first[j]) & (self.last[i] == self.last[j])
        same &= (self.first[i] > _EARLIEST) | (self.last[i] < _LATEST)
        must = (must & may) | neither | (same & self.dated[j])
        return must | (may & ~follows), must


class _Objects:
    """The objects of some statements (sorted), each read when it is first needed. `codes` are equal only where the stored
    objects are.
    """

    def __init__(self, snapshot: Snapshot, numbers: Numbers) -> None:
        self._snapshot, self._numbers = snapshot, numbers
        self._split = snapshot.split(numbers)
        # Entities count by their names.
        names = snapshot.entity_name.take(snapshot.relation_object.take(numbers[: self._split])).astype(np.int64)
        attributes = numbers[self._split :] - np.int32(snapshot.relations)
        columns = [snapshot.arrays.get(f"att.{part}").take(attributes) for part, _ in PARTS]
        self.codes = np.concatenate([names, -changed(*columns).cumsum()])
        self._read: dict[int, Entity | Value] = {}
        self._compared: dict[tuple[int, int], Comparison] = {}

    def _object(self, at: int) -> Any:
        code = int(self.codes[at])
        if code not in self._read:
            snapshot, number = self._snapshot, int(self._numbers[at])
            if at < self._split:
                self._read[code] = snapshot.entity(int(snapshot.relation_object[number]))
            else:
                place = number - snapshot.relations
                cells = {part: snapshot.arrays.get(f"att.{part}")[place : place + 1] for part, _ in PARTS}
                self._read[code] = decode_values(cells, snapshot.texts.__getitem__, snapshot.ident)[0]  # type: ignore[assignment]
        return self._read[code]

    def compared(self, i: int, j: int) -> Comparison:
        """Whether two of them say the same."""
        key = int(self.codes[i]), int(self.codes[j])
        result = self._compared.get(key)
        if result is None:
            result = compared(self._object(i), self._object(j))
            if len(self._compared) < _TOGETHER:
                self._compared[key] = result
        return result


def pairs(snapshot: Snapshot, numbers: Numbers, *, by_name: bool = False) -> Iterator[tuple[int, int, bool]]:
    """The pairs of sorted statements of one predicate that are in conflict, each with whether it is certain; by subject,
    then by number. With `by_name` subjects of one name are one.
    """
    if len(numbers) < 2:
        return
    objects = _Objects(snapshot, numbers)
    # Most subjects have one value: only the others are looked at any closer.
    subjects = snapshot.subjects(numbers)
    if by_name:
        subjects = snapshot.entity_name.take(subjects)
    order = np.argsort(subjects, kind="stable")
    owners = subjects[order]
    starts = np.flatnonzero(changed(owners))
    lengths = np.diff(np.append(starts, len(owners)))
    codes = objects.codes[order]
    several = np.minimum.reduceat(codes, starts) != np.maximum.reduceat(codes, starts)
    at = order[np.repeat(several, lengths)]
    lengths = lengths[several]
    ends = np.repeat(np.cumsum(lengths), lengths)
    chosen = np.sort(at)
    times = _Times(snapshot, numbers[chosen])
    rank = np.empty(len(numbers), np.int64)
    rank[chosen] = np.arange(len(chosen))
    partners = ends - np.arange(len(at)) - 1
    totals = np.cumsum(partners)
    low = 0
    while low < len(at):
        check()
        before = int(totals[low - 1]) if low else 0
        high = max(int(np.searchsorted(totals, before + _TOGETHER, side="right")), low + 1)
        i = np.repeat(np.arange(low, high), partners[low:high])
        j = ranges(np.arange(low, high) + 1, ends[low:high])
        differ = objects.codes[at[i]] != objects.codes[at[j]]
        i, j = at[i[differ]], at[j[differ]]
        may, must = times.compared(rank[i], rank[j])
        i, j, must = i[may], j[may], must[may]
        for first, second, certain in watched(zip(i.tolist(), j.tolist(), must.tolist(), strict=True), 512):
            comparison = objects.compared(first, second)
            if comparison != "same":
                yield int(numbers[first]), int(numbers[second]), certain and comparison == "different"
        low = high


def of_predicate(snapshot: Snapshot, predicate: str) -> Numbers:
    """All statements of a predicate, sorted."""
    runs = snapshot.runs((predicate,), True, True)
    return np.concatenate([np.arange(low, high, dtype=np.int32) for low, high in runs] or [np.empty(0, np.int32)])


# -- conflicts as records ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two statements that cannot hold together (`certain`), or may not: their values, or their times, leave it open.
    `preferred` is the one that a declared preference decides for.
    """

    statements: tuple[Evidence, Evidence]
    certain: bool
    preferred: Evidence | None = None

    @property
    def subject(self) -> Entity:
        """What both are about."""
        return self.statements[0].subject

    @property
    def predicate(self) -> str:
        """The predicate of both."""
        return self.statements[0].predicate

    def __str__(self) -> str:
        first, second = self.statements
        text = f"{first}\n  {'contradicts' if self.certain else 'may contradict'} {second}"
        return text if self.preferred is None else f"{text}\n  preferred is {statement_text(self.preferred)}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A predicate that has one value at a time for nearly all of its subjects: `share` of the `subjects` looked at."""

    predicate: str
    share: float
    subjects: int

    def __str__(self) -> str:
        return f"{self.predicate}: one value at a time for {self.share:.1%} of {numbered(self.subjects, 'subject', 'subjects')}"


@dataclass(frozen=True, slots=True, repr=False)
class Conflicts(Sequence[Conflict]):
    """A page of conflicts, in the order of predicates and subjects. `more` says whether others follow; `predicates` are
    those that were looked at, `proposed` those among them that were not declared but found.
    """

    conflicts: tuple[Conflict, ...]
    predicates: tuple[str, ...]
    more: bool = False
    proposed: tuple[Proposal, ...] = ()
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.conflicts)

    def __getitem__(self, at: Any) -> Any:
        return self.conflicts[at]

    def __repr__(self) -> str:
        return f"<{numbered(len(self), 'conflict', 'conflicts')} of {', '.join(self.predicates[:5])}{', and more' * self.more}>"

    def lines(self) -> list[str]:
        """The proposals, the conflicts and their number as lines of text."""
        lines = [line for one in (*self.proposed, *self.conflicts) for line in str(one).split("\n")]
        return [*lines, numbered(len(self), "conflict", "conflicts") + (", and more" if self.more else "")]

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *(f"warning: {warning}" for warning in self.warnings)])

    def data(self) -> list[dict[str, Any]]:
        """One record a conflict, for JSON: subject, predicate, whether it is certain, and for both statements the object, the
        qualifiers, the sources with their rows, and whether it is preferred.
        """
        return [
            {
                "subject": one.subject,
                "predicate": one.predicate,
                "certain": one.certain,
                "statements": [
                    {
                        "object": side.object,
                        "qualifiers": [list(qualifier) for qualifier in side.qualifiers],
                        "sources": [{"name": source.name, "row": row} for source, row in side.sources],
                        "preferred": side is one.preferred,
                    }
                    for side in one.statements
                ],
            }
            for one in self
        ]


def conflict(snapshot: Snapshot, first: int, second: int, certain: bool, prefer: Preference | None) -> Conflict:
    """Two statements by their numbers as a conflict."""
    both = record_of(snapshot, first), record_of(snapshot, second)
    keys = [_key(one, prefer) for one in both]
    preferred = both[int(keys[1] < keys[0])] if certain and keys[0] != keys[1] else None
    return Conflict(both, certain, preferred)


def proposals(snapshot: Snapshot) -> list[Proposal]:
    """The predicates that have one value at a time for nearly all of their subjects, judged by some of these, evenly spread;
    only those of which at least one subject has several values.
    """
    found = []
    for number in watched(range(snapshot.predicate_count), 1):
        name = snapshot.predicate_name(number)
        numbers = of_predicate(snapshot, name)
        owners = snapshot.subjects(numbers)
        subjects = np.unique(owners)
        if len(subjects) < _LEAST or len(subjects) == len(numbers):
            continue
        if len(subjects) > _SAMPLED:
            subjects = subjects[np.linspace(0, len(subjects) - 1, _SAMPLED).astype(np.int64)]
            numbers = numbers[np.isin(owners, subjects)]
        most = int(len(subjects) * (1 - _NEARLY_ALL))
        wrong: set[int] = set()
        for first, _, _ in pairs(snapshot, numbers):
            wrong.add(int(snapshot.subjects(np.array([first], np.int32))[0]))
            if len(wrong) > most:
                break
        else:
            found.append(Proposal(name, 1 - len(wrong) / len(subjects), len(subjects)))
    return found


# -- preferences -------------------------------------------------------------------------------------


def _key(statement: Evidence, prefer: Preference | None) -> tuple[int, int]:
    """What orders statements by a preference, the preferred ones first; equal where it does not decide."""
    if prefer is None:
        return 0, 0
    if prefer.sources:
        names = [source.name for source, _ in statement.sources]
        return min((prefer.sources.index(name) for name in names if name in prefer.sources), default=len(prefer.sources)), 0
    values = dict(statement.qualifiers)
    if prefer.criterion == "rank":
        rank = text_of(values[RANK]) if RANK in values and not isinstance(values[RANK], Entity) else RANKS[1]
        rank = rank.casefold().removesuffix("rank")
        return RANKS.index(rank) if rank in RANKS else 1, 0
    times = [value for key, value in statement.qualifiers if key in (START_TIME, POINT_IN_TIME) and isinstance(value, Time)]
    start = min((time.start for time in times), default=OPEN_START)
    if prefer.criterion == "latest":
        # One without a time comes last.
        return 0, -start
    return (0, start) if times else (1, 0)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A snapshot without the statements that preferences decide against, and what was decided: by the id of the subject
    and the predicate, the statements that stay and those that do not.
    """

    snapshot: Snapshot
    decided: Mapping[tuple[str, str], Sequence[tuple[str, str, str]]]
    left_out: int


def resolved(snapshot: Snapshot, declared: SingleValued) -> Resolved:
    """A snapshot as preferences leave it: of two statements that certainly contradict each other the preferred one, if it
    was not itself left out. Kept with the snapshot.
    """
    by_declaration: dict[Any, Resolved] = snapshot.schema.kept.setdefault("resolved", {})
    key = tuple(declared.items())
    result = by_declaration.get(key)
    if result is None:
        result = _resolved(snapshot, declared)
        if len(by_declaration) >= 2:
            by_declaration.pop(next(iter(by_declaration)), None)
        by_declaration[key] = result
    return result


def _resolved(snapshot: Snapshot, declared: SingleValued) -> Resolved:
    stays = np.ones(snapshot.statements, bool)
    decided: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    records: dict[int, Evidence] = {}
    for name, prefer in declared.items():
        if prefer is None:
            continue
        lost: list[tuple[tuple[int, int], int, int]] = []
        for one, other, certain in pairs(snapshot, of_predicate(snapshot, name)):
            if not certain:
                continue
            for number in (one, other):
                if number not in records:
                    records[number] = record_of(snapshot, number)
            keys = _key(records[one], prefer), _key(records[other], prefer)
            if keys[0] != keys[1]:
                lost.append((min(keys), one, other) if keys[0] < keys[1] else (min(keys), other, one))
        # The best first: one that loses itself decides nothing.
        for _, winner, loser in watched(sorted(lost), 256):
            if stays[winner]:
                stays[loser] = False
                subject = records[winner].subject
                said = str(records[winner]), str(records[loser]), str(prefer)
                decided.setdefault((subject.id, name), []).append(said)
    if stays.all():
        return Resolved(snapshot, {}, 0)
    from condgraph.engine.snapshot.build import Builder
    from condgraph.engine.snapshot.layout import lay_out
    from condgraph.engine.snapshot.snapshot import Snapshot

    result = Snapshot.of(*lay_out(Builder(snapshot, stays=stays)), snapshot.further)
    left = Resolved(result, decided, int((~stays).sum()))
    result.schema.kept["decided"] = left
    return left


# -- answers -----------------------------------------------------------------------------------------


def statements_of(snapshot: Snapshot, statements: Numbers, predicates: Iterable[str]) -> Numbers:
    """Those of some statements that have one of the predicates."""
    wanted = [number for name in predicates if (number := snapshot.predicate(name)) >= 0]
    return statements[np.isin(snapshot.predicates(statements), wanted)]


def same_in(snapshot: Snapshot, other: Snapshot, statements: Numbers) -> Numbers:
    """The numbers that statements of another snapshot have in this one, sorted, by their content."""
    there = statement_ids(other)[statements]
    return np.flatnonzero(np.isin(statement_ids(snapshot), there)).astype(np.int32)


def notices(snapshot: Snapshot, evidence: Numbers, declared: Iterable[str], *, empty: bool) -> list[str]:
    """What contradicts the statements that an answer rests on, sorted: both sides, and which of them it rests on. Only
    statements of declared predicates are looked at.
    """
    left: Resolved | None = snapshot.schema.kept.get("decided")
    statements = evidence
    predicates = snapshot.predicates(statements)
    wanted = {number: name for name in declared if (number := snapshot.predicate(name)) >= 0}
    chosen = np.isin(predicates, list(wanted))
    statements, predicates = statements[chosen], predicates[chosen]
    result = []
    if len(statements) > _MOST_LOOKED_AT:
        result.append(f"only {_MOST_LOOKED_AT:,} of {len(statements):,} statements were looked at for what contradicts them")
        statements, predicates = statements[:_MOST_LOOKED_AT], predicates[:_MOST_LOOKED_AT]
    shown, count, most = list[str](), 0, _MOST_COUNTED
    for number, name in wanted.items():
        used = statements[predicates == number]
        if not len(used):
            continue
        owners = np.unique(snapshot.subjects(used))
        near = np.sort(snapshot.touching(owners))
        near = near[snapshot.predicates(near) == number]
        rests = set(used.tolist())
        for first, second, certain in pairs(snapshot, near):
            sides = [one for one in (first, second) if one in rests]
            most -= 1
            if most <= 0:
                break
            if sides:
                count += 1
                if len(shown) < _SHOWN:
                    other = second if sides[0] == first else first
                    shown.append(_notice(snapshot, sides[0], other, certain, both=len(sides) == 2))
        if left is not None:
            for owner in watched(owners.tolist(), 256):
                for winner, loser, why in left.decided.get((snapshot.ident(owner), name), ()):
                    count += 1
                    if len(shown) < _SHOWN:
                        shown.append(f"{winner} is preferred, by {why}, to {loser}")
    if count > len(shown):
        at_least = "" if most > 0 else "at least "
        shown.append(f"{at_least}{count - len(shown):,} more conflicts; graph.conflicts() lists all")
    elif most <= 0:
        shown.append(f"only {_MOST_COUNTED:,} conflicts of these subjects were looked at; graph.conflicts() lists all")
    if left is not None and empty:
        words = numbered(left.left_out, "statement is", "statements are")
        shown.append(f"{words} not counted, as preferences decide against them; graph.conflicts() lists them")
    return [*result, *shown]


def _notice(snapshot: Snapshot, mine: int, other: int, certain: bool, *, both: bool) -> str:
    first, second = record_of(snapshot, mine), record_of(snapshot, other)
    verb = "contradicts" if certain else "may contradict"
    return f"the answer rests on {first}, which {second} {verb}" + (", on which it rests as well" if both else "")
