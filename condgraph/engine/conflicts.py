"""Find statements that cannot hold together: different values, at one time, of a predicate that has one value at a
time.
"""

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
#: The number of pairs of statements that are compared at once.
_TOGETHER: Final = 1 << 18
_EARLIEST: Final = np.int64(OPEN_START)
_LATEST: Final = np.int64(OPEN_END)
#: For proposals: the size of the sample of subjects, the fewest subjects, and the required share with one value at a time.
_SAMPLED: Final = 2_000
_MIN_SUBJECTS: Final = 10
_NEARLY_ALL: Final = 0.95
#: The largest number of conflicts that an answer lists, and of statements of its evidence that are examined.
_SHOWN: Final = 5
_MAX_EXAMINED: Final = 100_000
#: The largest number of conflicts that are counted for a warning.
_MAX_COUNTED: Final = 100_000
#: The largest number of subjects whose statements are fetched from a server to find contradictions.
MAX_SUBJECTS: Final = 1_000
#: The qualifier of a statement's rank, and its values, best first; a statement without one is "normal".
RANK: Final = "rank"
RANKS: Final = ("preferred", "normal", "deprecated")
#: Preferences other than a list of sources.
CRITERIA: Final = ("rank", "latest", "earliest")


# -- declarations ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preference:
    """Which of two conflicting statements counts: the one whose source comes first in `sources`, the one with the
    better rank, or the one that begins later, or earlier.
    """

    sources: tuple[str, ...] = ()
    criterion: str = ""

    @classmethod
    def of(cls, value: Any) -> Preference | None:
        """Return a preference from a user's option: "rank", "latest", "earliest", or the names of sources, best
        first. Raise `OptionError` for anything else.
        """
        if value is None or value is True or isinstance(value, Preference):
            return value if isinstance(value, Preference) else None
        if isinstance(value, str) and value in CRITERIA:
            return cls(criterion=value)
        if isinstance(value, str):
            raise OptionError(
                f"prefer={value!r} is not a preference",
                candidates=nearest(value, CRITERIA),
                hint="a preference is 'rank', 'latest', 'earliest', or a list of sources, best first: ['atlas', 'notes']",
            )
        names = tuple(value) if isinstance(value, Sequence) else ()
        if not names or not all(isinstance(name, str) and name for name in names):
            raise OptionError("prefer is 'rank', 'latest', 'earliest', or a list of sources, best first: ['atlas', 'notes']")
        return cls(names)

    @property
    def stored(self) -> str | list[str]:
        """The preference as JSON."""
        return self.criterion or list(self.sources)

    def __str__(self) -> str:
        return self.criterion or "source"


#: The preference of a query, for all declared predicates, or by predicate.
Prefer: TypeAlias = str | Sequence[str] | Mapping[str, str | Sequence[str]]
#: Predicates with one value at a time, each with the preference that resolves its conflicts.
SingleValued: TypeAlias = Mapping[str, Preference | None]


def single_valued(value: Any, prefer: Any = None) -> dict[str, Preference | None]:
    """Return declared predicates from a user's option: one name, several, or a mapping of names to preferences (True:
    none). Raise `OptionError` for anything else.
    """
    preferences: Mapping[Any, Any] = value if isinstance(value, Mapping) else {}
    if isinstance(value, str):
        preferences = {value: prefer}
    elif not isinstance(value, Mapping) and isinstance(value, Iterable):
        names = list(value)
        if all(isinstance(name, str) for name in names):
            preferences = dict.fromkeys(names, prefer)
    if not preferences or not all(isinstance(name, str) and name for name in preferences):
        raise OptionError(
            "single_valued is the name of a predicate, a list of names, or a mapping of names to preferences",
            hint="as single_valued=['capital'], or {'capital': 'latest'}",
        )
    return {name: Preference.of(preference) for name, preference in preferences.items()}


def declared_in(about: Mapping[str, Any]) -> dict[str, Preference | None]:
    """Return the declarations stored with a graph."""
    stored: Mapping[str, Any] = about.get("settings", {}).get("single_valued", {})
    return {name: Preference.of(preference) for name, preference in stored.items()}


# -- whether values differ ---------------------------------------------------------------------------

Comparison: TypeAlias = Literal["same", "unclear", "different"]


def compared(a: Entity | Value, b: Entity | Value) -> Comparison:
    """Return whether two values agree: quantities in any unit, times of any precision (1984 and 1984-05-01 agree),
    entities by name. "unclear" if they cannot be compared, such as a number with a unit and one without.
    """
    if a is UNKNOWN or b is UNKNOWN:
        return "same"
    a, b = (value.name if isinstance(value, Entity) else value for value in (a, b))
    if isinstance(a, Quantity) and isinstance(b, Quantity):
        return _quantities(a, b)
    if isinstance(a, Time) and isinstance(b, Time):
        return _times(a, b)
    if text_of(a) == text_of(b):
        return "same"
    if isinstance(a, str) and isinstance(b, str):
        return "different"
    if isinstance(a, str) or isinstance(b, str):
        return _compare_text(a, b) if isinstance(a, str) else _compare_text(str(b), a)
    # A number may be a year.
    quantity, time = (a, b) if isinstance(a, Quantity) else (b, a)
    if isinstance(quantity, Quantity) and isinstance(time, Time) and quantity.unit == NO_UNIT and isinstance(quantity.number, int):
        try:
            year = Time.year(quantity.number)
        except ValueError:
            return "unclear"
        return "same" if _times(year, time) == "same" else "unclear"
    return "unclear"


def _compare_text(text: str, value: Any) -> Comparison:
    """Compare a text with a value of another type."""
    try:
        parsed = parse_quantity(text) if isinstance(value, Quantity) else Time.parse(text)
    except ValueError:
        return "unclear"
    return compared(parsed, value)


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
    number, target = converted[0].number, b.number
    try:
        # Factors between units are floats.
        return "same" if number == target or math.isclose(number, target, rel_tol=1e-9) else "different"
    except OverflowError:
        return "different"


# -- whether statements hold together ----------------------------------------------------------------


class _Times:
    """The earliest and latest begin and end of statements (sorted), in seconds, inclusive. A start in 1984 is some
    moment of that year; a point in time covers all of it.
    """

    def __init__(self, snapshot: Snapshot, numbers: Numbers) -> None:
        from condgraph.engine.execute.validity import validity_in

        count = len(numbers)
        self.first, self.last = np.full(count, _EARLIEST), np.full(count, _LATEST)
        latest_start, earliest_end = np.full(count, _LATEST), np.full(count, _EARLIEST)
        self.dated = np.zeros(count, bool)
        positions, start, end = validity_in(snapshot, numbers)
        self.dated[positions] = True
        self.first[positions] = np.maximum(start, _EARLIEST)
        self.last[positions] = np.where(end >= UNKNOWN_END, _LATEST, end - 1)
        owners, places = snapshot.qualifiers(numbers)
        kinds = snapshot.arrays.get("q.kind")
        keys = snapshot.arrays.get("q.key").take(places) if len(places) else places
        has_qualifier = np.zeros(count, bool)
        stated = {}
        for name in (START_TIME, END_TIME, POINT_IN_TIME):
            chosen = np.flatnonzero(keys == snapshot.predicate(name))
            chosen = chosen[np.isin(kinds.take(places[chosen]), (Kind.TIME, Kind.UNKNOWN))] if len(chosen) else chosen
            has_qualifier[owners[chosen]] = True
            chosen = chosen[kinds.take(places[chosen]) == Kind.TIME] if len(chosen) else chosen
            stated[name] = owners[chosen], places[chosen]
        a, b = snapshot.arrays.get("q.a"), snapshot.arrays.get("q.b")
        spans = np.zeros(count, bool)
        for name in (START_TIME, END_TIME):
            spans[stated[name][0]] = True
        owner, owned = stated[START_TIME]
        np.minimum.at(latest_start, owner, b.take(owned) - 1)
        owner, owned = stated[END_TIME]
        np.maximum.at(earliest_end, owner, a.take(owned))
        exact = self.dated & ~spans
        # Points in time, and times under other declared names, hold throughout.
        latest_start[exact] = np.where(self.first[exact] > _EARLIEST, self.first[exact], _LATEST)
        earliest_end[exact] = np.where(self.last[exact] < _LATEST, self.last[exact], _EARLIEST)
        self.starts, self.ends = latest_start < _LATEST, earliest_end > _EARLIEST
        # If one bound is known, the statement holds at least at that bound.
        self.latest_start = np.where(self.starts | ~self.ends, latest_start, self.last)
        self.earliest_end = np.where(self.ends | ~self.starts, earliest_end, self.first)

    def compared(self, i: Positions, j: Positions) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which pairs of positions may hold at one time, and which must. Two statements whose stated bounds
        allow that one ended before the other began count as successive.
        """
        neither = ~self.dated[i] & ~self.dated[j]
        may = (self.first[i] <= self.last[j]) & (self.first[j] <= self.last[i])
        must = (self.latest_start[i] <= self.earliest_end[j]) & (self.latest_start[j] <= self.earliest_end[i])
        follows = self.ends[i] & self.starts[j] & (self.latest_start[j] > self.earliest_end[i])
        follows |= self.ends[j] & self.starts[i] & (self.latest_start[i] > self.earliest_end[j])
        # Statements with the same period are about the same time, however imprecise.
        same = self.dated[i] & (self.first[i] == self.first[j]) & (self.last[i] == self.last[j])
        same &= (self.first[i] > _EARLIEST) | (self.last[i] < _LATEST)
        must = (must & may) | neither | (same & self.dated[j])
        # What ends before it starts holds at no time.
        some = (self.first[i] <= self.last[i]) & (self.first[j] <= self.last[j])
        return (must | (may & ~follows)) & some, must & some


class _Objects:
    """The objects of statements (sorted), read on demand. Equal `codes` imply equal stored objects."""

    def __init__(self, snapshot: Snapshot, numbers: Numbers) -> None:
        self._snapshot, self._numbers = snapshot, numbers
        self._split = snapshot.split(numbers)
        # Entities count by their names.
        names = snapshot.entity_name.take(snapshot.relation_object.take(numbers[: self._split])).astype(np.int64)
        attributes = numbers[self._split :] - np.int32(snapshot.relations)
        columns = [snapshot.arrays.get(f"att.{part}").take(attributes) for part, _ in PARTS]
        self.codes = np.concatenate([names, -changed(*columns).cumsum()])
        self._decoded: dict[int, Entity | Value] = {}
        self._compared: dict[tuple[int, int], Comparison] = {}

    def _object(self, at: int) -> Any:
        code = int(self.codes[at])
        if code not in self._decoded:
            snapshot, number = self._snapshot, int(self._numbers[at])
            if at < self._split:
                self._decoded[code] = snapshot.entity(int(snapshot.relation_object[number]))
            else:
                place = number - snapshot.relations
                cells = {part: snapshot.arrays.get(f"att.{part}")[place : place + 1] for part, _ in PARTS}
                self._decoded[code] = decode_values(cells, snapshot.texts.__getitem__, snapshot.ident)[0]  # type: ignore[assignment]
        return self._decoded[code]

    def compared(self, i: int, j: int) -> Comparison:
        """Return whether two of the objects agree."""
        key = int(self.codes[i]), int(self.codes[j])
        result = self._compared.get(key)
        if result is None:
            result = compared(self._object(i), self._object(j))
            if len(self._compared) < _TOGETHER:
                self._compared[key] = result
        return result


def pairs(snapshot: Snapshot, numbers: Numbers, *, by_name: bool = False) -> Iterator[tuple[int, int, bool]]:
    """Yield the pairs of sorted statements of one predicate that are in conflict, with whether that is certain; by
    subject, then by number. With `by_name`, subjects with the same name count as one.
    """
    if len(numbers) < 2:
        return
    objects = _Objects(snapshot, numbers)
    # Most subjects have one value: only the others are examined.
    subjects = snapshot.subjects(numbers)
    if by_name:
        subjects = snapshot.entity_name.take(subjects)
    order = np.argsort(subjects, kind="stable")
    owners = subjects[order]
    starts = np.flatnonzero(changed(owners))
    lengths = np.diff(np.append(starts, len(owners)))
    codes = objects.codes[order]
    has_several = np.minimum.reduceat(codes, starts) != np.maximum.reduceat(codes, starts)
    positions = order[np.repeat(has_several, lengths)]
    lengths = lengths[has_several]
    ends = np.repeat(np.cumsum(lengths), lengths)
    chosen = np.sort(positions)
    times = _Times(snapshot, numbers[chosen])
    rank = np.empty(len(numbers), np.int64)
    rank[chosen] = np.arange(len(chosen))
    partners = ends - np.arange(len(positions)) - 1
    totals = np.cumsum(partners)
    low = 0
    while low < len(positions):
        check()
        done = int(totals[low - 1]) if low else 0
        high = max(int(np.searchsorted(totals, done + _TOGETHER, side="right")), low + 1)
        i = np.repeat(np.arange(low, high), partners[low:high])
        j = ranges(np.arange(low, high) + 1, ends[low:high])
        differ = objects.codes[positions[i]] != objects.codes[positions[j]]
        i, j = positions[i[differ]], positions[j[differ]]
        may, must = times.compared(rank[i], rank[j])
        i, j, must = i[may], j[may], must[may]
        for first, second, certain in watched(zip(i.tolist(), j.tolist(), must.tolist(), strict=True), 512):
            comparison = objects.compared(first, second)
            if comparison != "same":
                yield int(numbers[first]), int(numbers[second]), certain and comparison == "different"
        low = high


def of_predicate(snapshot: Snapshot, predicate: str) -> Numbers:
    """Return all statements of a predicate, sorted."""
    runs = snapshot.runs((predicate,), True, True)
    return np.concatenate([np.arange(low, high, dtype=np.int32) for low, high in runs] or [np.empty(0, np.int32)])


# -- conflicts as records ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two statements that cannot hold together (`certain`), or might not, because their values or times leave it
    open. `preferred` is the one that a declared preference selects.
    """

    statements: tuple[Evidence, Evidence]
    certain: bool
    preferred: Evidence | None = None

    @property
    def subject(self) -> Entity:
        """The subject of both statements."""
        return self.statements[0].subject

    @property
    def predicate(self) -> str:
        """The predicate of both statements."""
        return self.statements[0].predicate

    def __str__(self) -> str:
        first, second = self.statements
        text = f"{first}\n  {'contradicts' if self.certain else 'may contradict'} {second}"
        return text if self.preferred is None else f"{text}\n  preferred is {statement_text(self.preferred)}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A predicate that has one value at a time for nearly all of its subjects: a `share` of the `subjects` examined."""

    predicate: str
    share: float
    subjects: int

    def __str__(self) -> str:
        return f"{self.predicate}: one value at a time for {self.share:.1%} of {numbered(self.subjects, 'subject', 'subjects')}"


@dataclass(frozen=True, slots=True, repr=False)
class Conflicts(Sequence[Conflict]):
    """A page of conflicts, in the order of predicates and subjects. `more`: further ones follow; `predicates` are
    those examined, `proposed` those of them that were proposed rather than declared.
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
        """Return the proposals, the conflicts and their number as lines of text."""
        lines = [line for item in (*self.proposed, *self.conflicts) for line in str(item).split("\n")]
        return [*lines, numbered(len(self), "conflict", "conflicts") + (", and more" if self.more else "")]

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *(f"warning: {warning}" for warning in self.warnings)])

    def data(self) -> list[dict[str, Any]]:
        """Return one record for each conflict, for JSON: subject, predicate, whether it is certain, and for both
        statements the object, the qualifiers, the sources with their rows, and whether it is preferred.
        """
        return [
            {
                "subject": item.subject,
                "predicate": item.predicate,
                "certain": item.certain,
                "statements": [
                    {
                        "object": side.object,
                        "qualifiers": [list(qualifier) for qualifier in side.qualifiers],
                        "sources": [{"name": source.name, "row": row} for source, row in side.sources],
                        "preferred": side is item.preferred,
                    }
                    for side in item.statements
                ],
            }
            for item in self
        ]


def conflict(snapshot: Snapshot, first: int, second: int, certain: bool, prefer: Preference | None) -> Conflict:
    """Return two statements, by number, as a conflict."""
    records = record_of(snapshot, first), record_of(snapshot, second)
    keys = [_key(record, prefer) for record in records]
    preferred = records[int(keys[1] < keys[0])] if certain and keys[0] != keys[1] else None
    return Conflict(records, certain, preferred)


def proposals(snapshot: Snapshot) -> list[Proposal]:
    """Return the predicates that have one value at a time for nearly all of their subjects, judged by an evenly
    spread sample; only those of which at least one subject has several values.
    """
    result = []
    for number in watched(range(snapshot.predicate_count), 1):
        name = snapshot.predicate_name(number)
        numbers = of_predicate(snapshot, name)
        owners = snapshot.subjects(numbers)
        subjects = np.unique(owners)
        if len(subjects) < _MIN_SUBJECTS or len(subjects) == len(numbers):
            continue
        if len(subjects) > _SAMPLED:
            subjects = subjects[np.linspace(0, len(subjects) - 1, _SAMPLED).astype(np.int64)]
            numbers = numbers[np.isin(owners, subjects)]
        limit = int(len(subjects) * (1 - _NEARLY_ALL))
        exceptions: set[int] = set()
        for first, _, _ in pairs(snapshot, numbers):
            exceptions.add(int(snapshot.subjects(np.array([first], np.int32))[0]))
            if len(exceptions) > limit:
                break
        else:
            result.append(Proposal(name, 1 - len(exceptions) / len(subjects), len(subjects)))
    return result


# -- preferences -------------------------------------------------------------------------------------


def _key(statement: Evidence, prefer: Preference | None) -> tuple[int, int]:
    """Return a sort key by preference, preferred statements first; equal keys if it does not decide."""
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
        # Statements without a time come last.
        return 0, -start
    return (0, start) if times else (1, 0)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A snapshot without the statements that preferences reject, and the decisions: by subject id and predicate, the
    statements kept and those rejected.
    """

    snapshot: Snapshot
    decided: Mapping[tuple[str, str], Sequence[tuple[str, str, str]]]
    left_out: int


def resolved(snapshot: Snapshot, declared: SingleValued) -> Resolved:
    """Return a snapshot after applying preferences: of two statements in certain conflict the preferred one is kept,
    unless it was itself rejected. Cached with the snapshot.
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
    is_kept = np.ones(snapshot.statements, bool)
    decided: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    records: dict[int, Evidence] = {}
    for name, prefer in declared.items():
        if prefer is None:
            continue
        decisions: list[tuple[tuple[int, int], int, int]] = []
        for first, second, certain in pairs(snapshot, of_predicate(snapshot, name)):
            if not certain:
                continue
            for number in (first, second):
                if number not in records:
                    records[number] = record_of(snapshot, number)
            keys = _key(records[first], prefer), _key(records[second], prefer)
            if keys[0] != keys[1]:
                decisions.append((min(keys), first, second) if keys[0] < keys[1] else (min(keys), second, first))
        # The best first: a rejected statement rejects no other.
        for _, winner, loser in watched(sorted(decisions), 256):
            if is_kept[winner]:
                is_kept[loser] = False
                subject = records[winner].subject
                decision = str(records[winner]), str(records[loser]), str(prefer)
                decided.setdefault((subject.id, name), []).append(decision)
    if is_kept.all():
        return Resolved(snapshot, {}, 0)
    from condgraph.engine.snapshot.build import Builder
    from condgraph.engine.snapshot.layout import lay_out
    from condgraph.engine.snapshot.snapshot import Snapshot

    result = Snapshot.of(*lay_out(Builder(snapshot, stays=is_kept)), snapshot.further)
    resolved_snapshot = Resolved(result, decided, int((~is_kept).sum()))
    result.schema.kept["decided"] = resolved_snapshot
    return resolved_snapshot


# -- answers -----------------------------------------------------------------------------------------


def statements_of(snapshot: Snapshot, statements: Numbers, predicates: Iterable[str]) -> Numbers:
    """Return the statements with one of the predicates."""
    wanted = [number for name in predicates if (number := snapshot.predicate(name)) >= 0]
    return statements[np.isin(snapshot.predicates(statements), wanted)]


def same_in(snapshot: Snapshot, other: Snapshot, statements: Numbers) -> Numbers:
    """Return the numbers in this snapshot of statements of another snapshot, by content, sorted."""
    ids = statement_ids(other)[statements]
    return np.flatnonzero(np.isin(statement_ids(snapshot), ids)).astype(np.int32)


def notices(snapshot: Snapshot, evidence: Numbers, declared: Iterable[str], *, empty: bool) -> list[str]:
    """Return warnings about contradictions of the statements that an answer rests on (sorted): both sides, and which
    of them it rests on. Only statements of declared predicates are examined.
    """
    decisions: Resolved | None = snapshot.schema.kept.get("decided")
    statements = evidence
    predicates = snapshot.predicates(statements)
    wanted = {number: name for name in declared if (number := snapshot.predicate(name)) >= 0}
    chosen = np.isin(predicates, list(wanted))
    statements, predicates = statements[chosen], predicates[chosen]
    result = []
    if len(statements) > _MAX_EXAMINED:
        result.append(f"only {_MAX_EXAMINED:,} of {len(statements):,} statements were checked for contradictions")
        statements, predicates = statements[:_MAX_EXAMINED], predicates[:_MAX_EXAMINED]
    shown, count, remaining = list[str](), 0, _MAX_COUNTED
    for number, name in wanted.items():
        used = statements[predicates == number]
        if not len(used):
            continue
        owners = np.unique(snapshot.subjects(used))
        neighbours = np.sort(snapshot.touching(owners))
        neighbours = neighbours[snapshot.predicates(neighbours) == number]
        used_set = set(used.tolist())
        for first, second, certain in pairs(snapshot, neighbours):
            used_sides = [statement for statement in (first, second) if statement in used_set]
            remaining -= 1
            if remaining <= 0:
                break
            if used_sides:
                count += 1
                if len(shown) < _SHOWN:
                    opposite = second if used_sides[0] == first else first
                    shown.append(_notice(snapshot, used_sides[0], opposite, certain, both=len(used_sides) == 2))
        if decisions is not None:
            for owner in watched(owners.tolist(), 256):
                for winner, loser, criterion in decisions.decided.get((snapshot.ident(owner), name), ()):
                    count += 1
                    if len(shown) < _SHOWN:
                        shown.append(f"{winner} is preferred, by {criterion}, to {loser}")
    if count > len(shown):
        at_least = "" if remaining > 0 else "at least "
        shown.append(f"{at_least}{count - len(shown):,} more conflicts; graph.conflicts() lists all")
    elif remaining <= 0:
        shown.append(f"only {_MAX_COUNTED:,} conflicts of these subjects were examined; graph.conflicts() lists all")
    if decisions is not None and empty:
        words = numbered(decisions.left_out, "statement is", "statements are")
        shown.append(f"{words} not counted, as preferences decide against them; graph.conflicts() lists them")
    return [*result, *shown]


def _notice(snapshot: Snapshot, mine: int, other: int, certain: bool, *, both: bool) -> str:
    first, second = record_of(snapshot, mine), record_of(snapshot, other)
    verb = "contradicts" if certain else "may contradict"
    return f"the answer rests on {first}, which {second} {verb}" + (", on which it rests as well" if both else "")
