"""Statements in the order of their times (`Graph.timeline`): what was before and after, gaps, overlaps, how long each
lasted. Everything is worked out in process on statements that any store gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, overload

from condgraph.engine import algebra as alg
from condgraph.engine.allen import NEVER_AFTER, NEVER_BEFORE, Bounds
from condgraph.engine.bounds import check, within
from condgraph.engine.errors import OptionError, UnknownNameError, nearest, numbered, shortened
from condgraph.engine.facts import END_TIME, START_TIME, Entity
from condgraph.engine.period import TimeLike, time_of
from condgraph.engine.records import Evidence
from condgraph.engine.store import QueriedGraph, plan_answer
from condgraph.engine.values import DAY_SECONDS, Precision, Time, Value, text_of

#: The most pairs that `Timeline.overlaps` lists.
MOST_PAIRS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Lasting:
    """A statement with its times, as far as they are known."""

    statement: Evidence
    bounds: Bounds

    @property
    def subject(self) -> Entity:
        """The subject of the statement."""
        return self.statement.subject

    @property
    def object(self) -> Entity | Value:
        """The object of the statement."""
        return self.statement.object

    @property
    def least(self) -> float:
        """The least days that it lasts."""
        return self.bounds.shortest()

    @property
    def most(self) -> float | None:
        """The most days that it lasts; None where an end is not known."""
        return self.bounds.longest()

    def possible(self, other: Lasting | TimeLike) -> tuple[str, ...]:
        """The relations of Allen that it may have to another statement, or a time."""
        return self.bounds.relations(_bounds(other))

    def allen(self, other: Lasting | TimeLike) -> str | None:
        """The relation of Allen that it has to another statement, or a time; None where several are possible."""
        possible = self.possible(other)
        return possible[0] if len(possible) == 1 else None

    def together(self, other: Lasting | TimeLike) -> bool | None:
        """Whether both hold at some moment; None where that is not known."""
        return self.bounds.together(_bounds(other))

    def __str__(self) -> str:
        return str(self.statement)


def _bounds(other: Lasting | TimeLike) -> Bounds:
    return other.bounds if isinstance(other, Lasting) else Bounds.of(time_of(other, "time"))


class Timeline(Sequence[Lasting]):
    """Statements that have a time, by their earliest start, then by their earliest end; those without one are `untimed`."""

    def __init__(self, statements: Sequence[Evidence], warnings: Sequence[str] = ()) -> None:
        timed, untimed, never = [], [], 0
        for statement in statements:
            bounds = Bounds.stated(statement.qualifiers)
            if bounds is None:
                untimed.append(statement)
                never += {START_TIME, END_TIME} <= {key for key, value in statement.qualifiers if isinstance(value, Time)}
            else:
                timed.append(Lasting(statement, bounds))
        timed.sort(key=lambda one: (one.bounds.start, one.bounds.end, str(one.statement)))
        self._items: tuple[Lasting, ...] = tuple(timed)
        self.untimed: tuple[Evidence, ...] = tuple(sorted(untimed, key=str))
        self.warnings: tuple[str, ...] = tuple(warnings)
        if never:
            what = numbered(never, "statement ends before it starts, and holds", "statements end before they start, and hold")
            self.warnings += (f"{what} at no time: listed as untimed",)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> Lasting: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Lasting, ...]: ...

    def __getitem__(self, at: int | slice) -> Lasting | tuple[Lasting, ...]:
        return self._items[at]

    def __iter__(self) -> Iterator[Lasting]:
        return iter(self._items)

    def before(self, what: Lasting | str | Entity | TimeLike, *, certain: bool = False) -> list[Lasting]:
        """The statements that may be the one before another statement, the statements of an entity (by name, id or record)
        or a time: those that may start earlier, and after which none starts for certain that also starts earlier for
        certain. With `certain` the one that must be, if there is one. Raises `OptionError` for what is neither in the
        timeline nor a time.
        """
        return self._next_to(what, certain, forward=False)

    def after(self, what: Lasting | str | Entity | TimeLike, *, certain: bool = False) -> list[Lasting]:
        """The statements that may be the one after another, as `before`."""
        return self._next_to(what, certain, forward=True)

    def part(
        self, *, before: str | Entity | TimeLike | None = None, after: str | Entity | TimeLike | None = None, certain: bool = False
    ) -> Timeline:
        """The timeline of those that `before` and `after` give, of both where both are given; all of it where neither is."""
        if before is None and after is None:
            if certain:
                raise OptionError("certain needs before or after")
            return self
        parts = [self.before(before, certain=certain)] if before is not None else []
        parts += [self.after(after, certain=certain)] if after is not None else []
        kept = [one.statement for one in parts[0] if all(one in other for other in parts)]
        return Timeline(kept, self.warnings)

    def _next_to(self, what: Any, certain: bool, *, forward: bool) -> list[Lasting]:
        own, start = self._found(what, forward)
        others = [one for one in self._items if one not in own]

        def earlier(a: tuple[int, int], b: tuple[int, int]) -> tuple[bool, bool]:
            """Whether a may, and must, come first; after `start`, where `forward`."""
            return (b[0] < a[1], b[1] < a[0]) if forward else (a[0] < b[1], a[1] < b[0])

        candidates = [one for one in others if earlier(one.bounds.start, start)[0]]
        must = [one for one in candidates if earlier(one.bounds.start, start)[1]]
        # What surely comes between leaves only those that may come after it.
        edges = [one.bounds.start for one in must]
        if forward:
            least = min((end for _, end in edges), default=None)
            result = [one for one in candidates if least is None or one.bounds.start[0] <= least]
        else:
            most = max((begin for begin, _ in edges), default=None)
            result = [one for one in candidates if most is None or one.bounds.start[1] >= most]
        if certain:
            return result if len(result) == 1 and result[0] in must else []
        return result

    def _found(self, what: Any, forward: bool) -> tuple[set[Lasting], tuple[int, int]]:
        """The statements that are meant, and when the first (the last, where `forward`) of them starts."""
        if isinstance(what, Lasting):
            return {what}, what.bounds.start
        named = [one for one in self._items if _is(one.subject, what) or _is(one.object, what)]
        if named:
            starts = [one.bounds.start for one in named]
            best = max if forward else min
            return set(named), (best(first for first, _ in starts), best(last for _, last in starts))
        if isinstance(what, Entity):
            raise OptionError(f"no statement of the timeline has {shortened(what.name, 60)!r}")
        try:
            bounds = Bounds.of(time_of(what, "time"))
        except OptionError as error:
            names = sorted({_text(end) for one in self._items for end in (one.subject, one.object)})
            raise OptionError(
                f"{shortened(repr(what), 60)} is neither in the timeline nor a time", candidates=nearest(str(what)[:100], names)
            ) from error
        return set(), (bounds.end[0] - 1, bounds.end[1] - 1) if forward else bounds.start

    def gaps(self, *, certain: bool = False) -> list[Time]:
        """The times between the statements at which maybe none of them holds; with `certain` those at which none of them
        may hold.
        """
        spans = []
        for one in self._items:
            (first, latest), (earliest, last) = one.bounds.start, one.bounds.end
            if certain:
                spans.append((first, last))
            elif latest < earliest:
                spans.append((latest, earliest))
        spans.sort()
        begin = min((span[0] for span in spans), default=0)
        result, reached = [], begin
        for low, high in spans:
            if low > reached and reached > NEVER_BEFORE and low < NEVER_AFTER:
                result.append(_whole(reached, low))
            reached = max(reached, high)
        return result

    def overlaps(self, *, certain: bool = False) -> list[tuple[Lasting, Lasting]]:
        """The pairs that may hold at one time; with `certain` those that must. Raises `OptionError` for more than
        100,000.
        """
        result: list[tuple[Lasting, Lasting]] = []
        open_: list[Lasting] = []
        for one in self._items:
            check()
            open_ = [other for other in open_ if other.bounds.end[1] > one.bounds.start[0]]
            for other in open_:
                together = other.together(one)
                if together or (together is None and not certain):
                    result.append((other, one))
            if len(result) > MOST_PAIRS:
                raise OptionError(
                    f"more than {MOST_PAIRS:,} pairs overlap", hint="a timeline of one subject and predicate has fewer"
                )
            open_.append(one)
        return result

    def lines(self) -> list[str]:
        """The statements as lines of text."""
        return [*map(str, self._items), *(f"without a time: {one}" for one in self.untimed)]

    def data(self) -> dict[str, list[Any]]:
        """For JSON: `statements` with subject, predicate, object, qualifiers, sources and the days that each lasts at least
        and at most; `untimed` without the days; and the `gaps`, all as texts.
        """
        return {
            "statements": [_record(one.statement) | {"least": one.least, "most": one.most} for one in self._items],
            "untimed": list(map(_record, self.untimed)),
            "gaps": list(map(str, self.gaps())),
        }

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *(f"warning: {warning}" for warning in self.warnings)])

    def __repr__(self) -> str:
        return f"<Timeline of {len(self)} statements, {len(self.untimed)} without a time>"


def _record(statement: Evidence) -> dict[str, Any]:
    return {
        "subject": statement.subject.name,
        "predicate": statement.predicate,
        "object": _text(statement.object),
        "qualifiers": [[key, _text(value)] for key, value in statement.qualifiers],
        "sources": [{"name": source.name, "row": row or None} for source, row in statement.sources],
    }


def _whole(start: int, end: int) -> Time:
    """A gap; the second that an end within a year surely leaves to the year is part of it."""
    start -= start % DAY_SECONDS == 1
    end += end % DAY_SECONDS == DAY_SECONDS - 1
    return Time(start, end, Precision.SPAN)


def _text(end: Entity | Value) -> str:
    return end.name if isinstance(end, Entity) else text_of(end)


def _is(end: Entity | Value, what: Any) -> bool:
    """Whether an end of a statement is meant by a name, an id or a record."""
    if isinstance(what, Entity):
        return isinstance(end, Entity) and end.id == what.id
    return isinstance(what, str) and (what == _text(end) or (isinstance(end, Entity) and what == end.id))


def timeline(
    graph: QueriedGraph, subject: str | Entity | None, predicate: str | None, object: str | Entity | None, timeout: float | None
) -> Timeline:
    """`Graph.timeline`: one query for the statements, whatever the store."""
    if subject is None and object is None and predicate is None:
        raise OptionError("a timeline needs a subject, a predicate or an object", hint='graph.timeline("Germany", "head")')
    store = graph._store_of(None)
    with within(graph.timeout if timeout is None else timeout):
        schema: Any = getattr(store, "naming_schema", None) or store.snapshot.schema  # type: ignore[attr-defined]
        known = [*schema.relations, *schema.attributes]
        if predicate is not None and predicate not in known:
            raise UnknownNameError("predicate", predicate, candidates=nearest(predicate, known))
        ends = [_entity(schema, one) for one in (subject, object)]
        names = None if predicate is None else (predicate,)
        if ends[0] is not None:
            facts: alg.Facts = alg.Scan(ends[0], names)
        elif ends[1] is not None:
            facts = alg.Scan(ends[1], names, "object", "subject", "relation")
        else:
            facts = alg.Scan(None, names)
        answer = plan_answer(store, alg.Objects(facts))
        statements = [one for one in answer.evidence if one.kind == "statement"]
        if ends[0] is not None and object is not None:
            statements = [one for one in statements if _is(one.object, object)]
        return Timeline(statements, answer.warnings)


def _entity(schema: Any, one: str | Entity | None) -> alg.Entities | None:
    if one is None:
        return None
    if isinstance(one, Entity):
        return alg.ById((one.id,))
    if schema.has_entity(one):
        return alg.ByName((one,))
    if schema.has_id(one):
        return alg.ById((one,))
    raise UnknownNameError("entity", one, candidates=schema.nearest_entities(one))
