"""Statements in the order of their times (`Graph.timeline`): neighbours, gaps, overlaps and durations.

Everything is computed in process, on statements from any store.
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

#: The maximum number of pairs in `Timeline.overlaps`.
MAX_PAIRS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Lasting:
    """A statement with the bounds of its start and end."""

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
        """The minimum duration, in days."""
        return self.bounds.shortest()

    @property
    def most(self) -> float | None:
        """The maximum duration, in days; None if an end is unknown."""
        return self.bounds.longest()

    def possible(self, other: Lasting | TimeLike) -> tuple[str, ...]:
        """Return the relations of Allen that the statement may have to another statement or a time."""
        return self.bounds.relations(_bounds(other))

    def allen(self, other: Lasting | TimeLike) -> str | None:
        """Return the relation of Allen to another statement or a time; None if several are possible."""
        possible = self.possible(other)
        return possible[0] if len(possible) == 1 else None

    def together(self, other: Lasting | TimeLike) -> bool | None:
        """Return whether both hold at some moment; None if that is unknown."""
        return self.bounds.together(_bounds(other))

    def __str__(self) -> str:
        return str(self.statement)


def _bounds(other: Lasting | TimeLike) -> Bounds:
    return other.bounds if isinstance(other, Lasting) else Bounds.of(time_of(other, "time"))


class Timeline(Sequence[Lasting]):
    """A sequence of the statements that have a time (`Lasting`), sorted by their earliest start, then by their
    earliest end. `untimed` has the statements without a time, `warnings` those of the query.
    """

    def __init__(self, statements: Sequence[Evidence], warnings: Sequence[str] = ()) -> None:
        timed, untimed, never = [], [], 0
        for statement in statements:
            bounds = Bounds.stated(statement.qualifiers)
            if bounds is None:
                untimed.append(statement)
                never += {START_TIME, END_TIME} <= {key for key, value in statement.qualifiers if isinstance(value, Time)}
            else:
                timed.append(Lasting(statement, bounds))
        timed.sort(key=lambda item: (item.bounds.start, item.bounds.end, str(item.statement)))
        self._items: tuple[Lasting, ...] = tuple(timed)
        self.untimed: tuple[Evidence, ...] = tuple(sorted(untimed, key=str))
        self.warnings: tuple[str, ...] = tuple(warnings)
        if never:
            text = numbered(never, "statement ends before it starts, and holds", "statements end before they start, and hold")
            self.warnings += (f"{text} at no time: listed as untimed",)

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
        """Return the statements that may directly precede another statement, the statements of an entity (given by
        name, id or record), or a time.

        These may start earlier than it, and no statement that certainly starts earlier starts certainly after them.
        With `certain`, return the one statement that must precede it, or nothing. Raises `OptionError` if `what` is
        neither in the timeline nor a time.
        """
        return self._adjacent(what, certain, forward=False)

    def after(self, what: Lasting | str | Entity | TimeLike, *, certain: bool = False) -> list[Lasting]:
        """Return the statements that may directly follow another one, an entity's or a time; see `before`."""
        return self._adjacent(what, certain, forward=True)

    def part(
        self, *, before: str | Entity | TimeLike | None = None, after: str | Entity | TimeLike | None = None, certain: bool = False
    ) -> Timeline:
        """Return the timeline of the statements that `before` and `after` select: of both if both are given, of
        everything if neither is. Raises `OptionError` for `certain` with neither.
        """
        if before is None and after is None:
            if certain:
                raise OptionError("certain needs before or after")
            return self
        selections = [self.before(before, certain=certain)] if before is not None else []
        selections += [self.after(after, certain=certain)] if after is not None else []
        statements = [item.statement for item in selections[0] if all(item in selection for selection in selections)]
        return Timeline(statements, self.warnings)

    def _adjacent(self, what: Any, certain: bool, *, forward: bool) -> list[Lasting]:
        reference, start = self._find(what, forward)
        remaining = [item for item in self._items if item not in reference]

        def earlier(a: tuple[int, int], b: tuple[int, int]) -> tuple[bool, bool]:
            """Return whether `a` may, and must, come before `b`; or after it, if `forward`."""
            return (b[0] < a[1], b[1] < a[0]) if forward else (a[0] < b[1], a[1] < b[0])

        candidates = [item for item in remaining if earlier(item.bounds.start, start)[0]]
        must = [item for item in candidates if earlier(item.bounds.start, start)[1]]
        # A statement that certainly lies between excludes those that certainly lie beyond it.
        certain_starts = [item.bounds.start for item in must]
        if forward:
            first_latest = min((end for _, end in certain_starts), default=None)
            result = [item for item in candidates if first_latest is None or item.bounds.start[0] <= first_latest]
        else:
            last_earliest = max((begin for begin, _ in certain_starts), default=None)
            result = [item for item in candidates if last_earliest is None or item.bounds.start[1] >= last_earliest]
        if certain:
            return result if len(result) == 1 and result[0] in must else []
        return result

    def _find(self, what: Any, forward: bool) -> tuple[set[Lasting], tuple[int, int]]:
        """Return the statements that `what` refers to, and the start of the first of them (of the last, if
        `forward`).
        """
        if isinstance(what, Lasting):
            return {what}, what.bounds.start
        named = [item for item in self._items if _is(item.subject, what) or _is(item.object, what)]
        if named:
            starts = [item.bounds.start for item in named]
            best = max if forward else min
            return set(named), (best(first for first, _ in starts), best(last for _, last in starts))
        if isinstance(what, Entity):
            raise OptionError(f"no statement of the timeline has {shortened(what.name, 60)!r}")
        try:
            bounds = Bounds.of(time_of(what, "time"))
        except OptionError as error:
            names = sorted({_text(end) for item in self._items for end in (item.subject, item.object)})
            raise OptionError(
                f"{shortened(repr(what), 60)} is neither in the timeline nor a time", candidates=nearest(str(what)[:100], names)
            ) from error
        return set(), (bounds.end[0] - 1, bounds.end[1] - 1) if forward else bounds.start

    def gaps(self, *, certain: bool = False) -> list[Time]:
        """Return the times between the statements at which possibly none of them holds; with `certain`, those at
        which certainly none does.
        """
        spans = []
        for item in self._items:
            (first, latest), (earliest, last) = item.bounds.start, item.bounds.end
            if certain:
                spans.append((first, last))
            elif latest < earliest:
                spans.append((latest, earliest))
        spans.sort()
        begin = min((span[0] for span in spans), default=0)
        result, reached = [], begin
        for low, high in spans:
            if low > reached and reached > NEVER_BEFORE and low < NEVER_AFTER:
                result.append(_gap(reached, low))
            reached = max(reached, high)
        return result

    def overlaps(self, *, certain: bool = False) -> list[tuple[Lasting, Lasting]]:
        """Return the pairs of statements that may hold at the same time; with `certain`, those that must. Raises
        `OptionError` for more than 100,000 pairs.
        """
        result: list[tuple[Lasting, Lasting]] = []
        open_: list[Lasting] = []
        for item in self._items:
            check()
            open_ = [earlier_item for earlier_item in open_ if earlier_item.bounds.end[1] > item.bounds.start[0]]
            for earlier_item in open_:
                together = earlier_item.together(item)
                if together or (together is None and not certain):
                    result.append((earlier_item, item))
            if len(result) > MAX_PAIRS:
                raise OptionError(
                    f"more than {MAX_PAIRS:,} pairs overlap", hint="a timeline of one subject and predicate has fewer"
                )
            open_.append(item)
        return result

    def lines(self) -> list[str]:
        """Return a line of text for each statement."""
        return [*map(str, self._items), *(f"without a time: {statement}" for statement in self.untimed)]

    def data(self) -> dict[str, list[Any]]:
        """Return values for JSON: `statements` with subject, predicate, object, qualifiers, sources, and `least` and
        `most` for the duration in days; `untimed` without durations; and `gaps` as texts.
        """
        return {
            "statements": [_record(item.statement) | {"least": item.least, "most": item.most} for item in self._items],
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


def _gap(start: int, end: int) -> Time:
    """Return a gap as a time. Where an end is only known to the year, the second of the year that the statement must
    cover counts as part of the gap.
    """
    start -= start % DAY_SECONDS == 1
    end += end % DAY_SECONDS == DAY_SECONDS - 1
    return Time(start, end, Precision.SPAN)


def _text(end: Entity | Value) -> str:
    return end.name if isinstance(end, Entity) else text_of(end)


def _is(end: Entity | Value, what: Any) -> bool:
    """Return whether an end of a statement is the one given by a name, an id or a record."""
    if isinstance(what, Entity):
        return isinstance(end, Entity) and end.id == what.id
    return isinstance(what, str) and (what == _text(end) or (isinstance(end, Entity) and what == end.id))


def timeline(
    graph: QueriedGraph, subject: str | Entity | None, predicate: str | None, object: str | Entity | None, timeout: float | None
) -> Timeline:
    """Implement `Graph.timeline`, by one query for the statements on any store."""
    if subject is None and object is None and predicate is None:
        raise OptionError("a timeline needs a subject, a predicate or an object", hint='graph.timeline("Germany", "head")')
    store = graph._store_of(None)
    with within(graph.timeout if timeout is None else timeout):
        schema: Any = store.naming_schema
        all_predicates = [*schema.relations, *schema.attributes]
        if predicate is not None and predicate not in all_predicates:
            raise UnknownNameError("predicate", predicate, candidates=nearest(predicate, all_predicates))
        ends = [_entity(schema, statement) for statement in (subject, object)]
        names = None if predicate is None else (predicate,)
        if ends[0] is not None:
            facts: alg.Facts = alg.Scan(ends[0], names)
        elif ends[1] is not None:
            facts = alg.Scan(ends[1], names, "object", "subject", "relation")
        else:
            facts = alg.Scan(None, names)
        answer = plan_answer(store, alg.Objects(facts))
        statements = [statement for statement in answer.evidence if statement.kind == "statement"]
        if ends[0] is not None and object is not None:
            statements = [statement for statement in statements if _is(statement.object, object)]
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
