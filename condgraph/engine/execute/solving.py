"""Patterns of statements in process: every way to match all parts of a `Pattern` at once.

Each part is an edge between two ends. The rows grow one variable at a time: of the variables that lead on from what is
bound, the one with the fewest candidates, counted exactly. Where several edges lead to it, every row takes the edge
with the fewest statements, and looks its candidates up in the others, so that a cycle costs no more than the smaller
of its sides (a worst-case optimal join, after Ngo, Porat, Ré and Rudra, 2012, over columns). Rows are expanded in
chunks. Parts that share no variable are matched by themselves, and joined last.

Where an operator above only counts the rows, those that are equal in what is still asked for become one row with its
number (the sums are pushed below the joins: Abo Khamis, Ngo and Rudra, "FAQ", 2016). A variable that leads from one
bound variable to another is then replaced by the pairs that it connects, where these are fewer than its candidates.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra import solutions as alg
from condgraph.engine.algebra.expressions import Comparison, variables
from condgraph.engine.algebra.expressions import Variable as Named
from condgraph.engine.algebra.operators import Entities, Node
from condgraph.engine.bounds import changed, check, in_order
from condgraph.engine.errors import PlanError
from condgraph.engine.execute import rowset
from condgraph.engine.execute.conditions import holds
from condgraph.engine.execute.edges import Edge, Index, may_meet
from condgraph.engine.execute.sets import distinct, intersect
from condgraph.engine.snapshot.ordered import Cells
from condgraph.engine.snapshot.snapshot import ranges

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

Numbers = NDArray[np.int32]
#: Rows that are not worth being compared with one another, and as many as tell how others are.
_FEW: Final = 4_096
_SOME: Final = 1 << 16
#: Pairs that are made of what a variable connects, and rows that are counted, at most.
_MOST_PAIRS: Final = 1 << 24
_MOST_COUNTED: Final = 1 << 62


# -- matching ----------------------------------------------------------------------------------------


def hidden(number: int) -> str:
    """The name of the column of the statements that match a part."""
    return f"\0{number}"


class Solver:
    """One matching of a pattern. `seed` are rows that it extends; with `trace` the statement of every part is kept, in a
    column of the name `hidden` gives. Only variables that are `needed` (None: all) have columns in the end. With `counting`
    equal rows may be one row, with their number in the column `TIMES`.
    """

    def __init__(
        self,
        run: Run,
        pattern: alg.Pattern,
        seed: rowset.RowSet | None = None,
        *,
        trace: bool = False,
        needed: Set[str] | None = None,
        counting: bool = False,
    ) -> None:
        self.run, self.pattern, self.seed, self.trace, self.needed = run, pattern, seed, trace, needed
        self.edges = _edges(run, pattern)
        #: Parts whose statements have to differ.
        self.apart = _apart(pattern, self.edges)
        self.kept = {number for pair in self.apart for number in pair}
        if trace:
            self.kept = set(range(len(pattern.statements)))
        self.counting = counting
        #: The pairs that a variable connects, by the indexes that lead to it.
        self._connected: dict[tuple[int, int, str], tuple[NDArray[Any], rowset.Places]] = {}
        #: The edges that are still to be matched while one is.
        self._left: list[Edge] = []
        #: Entities that a variable may be, by its name.
        self.within: dict[str, Numbers] = {}
        self.rest: list[Edge] = []
        for edge in self.edges:
            if not self._restricts(edge):
                self.rest.append(edge)

    def _restricts(self, edge: Edge) -> bool:
        """Whether a membership says no more than that a variable lies in a set."""
        if not isinstance(edge.part, alg.MembershipPattern) or (edge.subject is not None) == (edge.object is not None):
            return False
        name = edge.subject or edge.object
        assert name is not None
        entries = edge.entries()
        if edge.subject is not None and edge.sets[1] is not None and not edge.part.direct:
            found = self.run.snapshot.members(tuple(edge.sets[1].tolist()))
        else:
            found = distinct(entries.subject, self.run.snapshot.entities)
        known = self.within.get(name)
        self.within[name] = found if known is None else intersect(known, found, self.run.snapshot.entities)
        return True

    def rows(self) -> rowset.RowSet:
        """All rows, with the variables of the seed and the pattern."""
        seed = self.seed
        names = list(dict.fromkeys([*(() if seed is None else seed.columns), *self.pattern.variables]))
        names += [hidden(number) for number in sorted(self.kept) if self.trace]
        parts = self._components()
        result: rowset.RowSet | None = None
        if seed is not None and not any(group_seed for _, group_seed, _ in parts):
            result = seed
        for edges, seeded, sets in sorted(parts, key=lambda part: not part[1]):
            rows = self._component(edges, seed if seeded else None, sets)
            if self.counting and len(parts) > 1:
                rows = self._collapsed(
                    rows.only([name for name in rows.columns if name == rowset.TIMES or name in (self.needed or ())])
                )
            if result is not None:
                one, other = rowset.compatible(result, rows, ())
                times = rows.columns.get(rowset.TIMES)
                rows = self._differing(rowset.merged(result, rows, one, other, list({**result.columns, **rows.columns})))
                if times is not None:
                    rows = self._multiplied(rows, times.numbers.take(other))
            result = rows
            if not result.size:
                break
        if result is None:
            result = rowset.RowSet(self.run.scope, 1, {})
        if self.trace:
            return result.only(names)
        shown = [name for name in names if not name.startswith("\0") and (self.needed is None or name in self.needed)]
        if not self.counting:
            return result.only(shown)
        result = result.only([*shown, *(name for name in result.columns if name == rowset.TIMES)])
        return self._collapsed(result) if not shown else self._multiplied(result, np.ones(result.size, np.int64))

    def _components(self) -> list[tuple[list[Edge], bool, list[str]]]:
        """The parts by the variables that connect them: edges, whether the seed is among them, and variables that only
        lie in sets.
        """
        seeded = set() if self.seed is None else set(self.seed.columns)
        groups: list[tuple[set[str], list[Edge], bool, list[str]]] = []
        if seeded:
            groups.append((set(seeded), [], True, []))
        for edge in self.rest:
            names = set(edge.variables)
            joined: tuple[set[str], list[Edge], bool, list[str]] = (names, [edge], False, [])
            apart = []
            for group in groups:
                if group[0] & joined[0]:
                    joined = (group[0] | joined[0], group[1] + joined[1], group[2] or joined[2], [])
                else:
                    apart.append(group)
            groups = [*apart, joined]
        known = {name for group in groups for name in group[0]}
        for name in self.within:
            if name not in known:
                groups.append(({name}, [], False, [name]))
        return [(edges, is_seeded, sets) for _, edges, is_seeded, sets in groups]

    def _component(self, edges: list[Edge], seed: rowset.RowSet | None, sets: list[str]) -> rowset.RowSet:
        scope = self.run.scope
        if sets:
            (name,) = sets
            return rowset.RowSet(scope, len(self.within[name]), {name: rowset.Terms(rowset.ENTITY, self.within[name])})
        waiting = list(edges)
        if seed is not None:
            rows = self._inside(seed, list(seed.columns))
        else:
            rows = self._start(waiting)
        known: set[str] = set()
        while waiting and rows.size:
            known.update(rows.columns)
            rows = self._without(rows, waiting)
            if self.counting and rows.size > _FEW and not known <= rows.columns.keys():
                rows, known = self._collapsed(rows), set()
            rows = self._step(rows, waiting)
        rows = self._without(rows, waiting)
        if waiting:
            names = dict.fromkeys(name for edge in edges for name in [*edge.variables, *self._hidden(edge)])
            return rowset.concatenated([rows], [*rows.columns, *(name for name in names if name not in rows.columns)], scope)
        return rows

    def _without(self, rows: rowset.RowSet, waiting: list[Edge], matched: Sequence[Edge] = ()) -> rowset.RowSet:
        """The rows without the columns that nobody asks for any more; of edges that are being matched, whose near ends are
        known, their statements still do, and the values that both ends have.
        """
        if self.needed is None:
            return rows
        asked = {name for edge in waiting for name in edge.variables} | {name for edge in matched for name in edge.inner}
        for edge in matched:
            asked.update(
                name for name in (edge.subject, edge.object) if name and {edge.subject, edge.object} <= rows.columns.keys()
            )
        kept = {name: one for name, one in rows.columns.items() if name in self.needed or name in asked or name.startswith("\0")}
        return rows if len(kept) == len(rows.columns) else rowset.RowSet(rows.scope, rows.size, kept)

    def _hidden(self, edge: Edge) -> list[str]:
        return [hidden(edge.number)] if edge.number in self.kept else []

    # -- start -------------------------------------------------------------------------------------

    def _start(self, waiting: list[Edge]) -> rowset.RowSet:
        """The rows of the smallest edge, or of the smallest set that an edge leads on from."""
        smallest = min(waiting, key=lambda edge: (edge.size(), edge.number))
        names = {name for edge in waiting for name in (edge.subject, edge.object) if name is not None}
        sets = [(len(self.within[name]), name) for name in sorted(names) if name in self.within]
        if sets and min(sets)[0] < smallest.size():
            name = min(sets)[1]
            return rowset.RowSet(self.run.scope, len(self.within[name]), {name: rowset.Terms(rowset.ENTITY, self.within[name])})
        through = self._through_first(smallest, waiting) if self.counting else None
        if through is not None:
            return through
        waiting.remove(smallest)
        return self._first(smallest)

    def _first(self, edge: Edge) -> rowset.RowSet:
        """The rows of one edge."""
        entries = edge.entries()
        columns: dict[str, rowset.Terms] = {}
        if edge.subject is not None:
            columns[edge.subject] = rowset.Terms(rowset.ENTITY, entries.subject)
        if edge.object is not None and edge.object != edge.subject:
            columns[edge.object] = entries.object
        if self._needs_statements(edge):
            columns[hidden(edge.number)] = rowset.Terms(rowset.STATEMENT, entries.statement)
        rows = rowset.RowSet(self.run.scope, len(entries.subject), columns)
        return self._about(self._inside(rows, list(columns)), edge)

    # -- steps -------------------------------------------------------------------------------------

    def _step(self, rows: rowset.RowSet, waiting: list[Edge]) -> rowset.RowSet:
        """The rows with one more variable, or checked by an edge whose ends are bound."""
        ends = {
            name: rows.columns[name].entities() for edge in waiting for name in (edge.subject, edge.object) if name in rows.columns
        }
        for edge in waiting:
            if edge.subject in ends and edge.object in ends and edge.subject != edge.object:
                if (ends[edge.object] < 0).any() and edge.family != "relation":
                    continue
                waiting.remove(edge)
                return self._checked(rows, edge, ends)
        # The edges that lead to each variable, with whether they are followed backward.
        leading: dict[tuple[str | None, int], list[tuple[Edge, bool]]] = {}
        for edge in waiting:
            for near, far, backward in ((edge.subject, edge.object, False), (edge.object, edge.subject, True)):
                if near not in ends or (backward and far in ends):
                    continue
                # Only entities have an index: edges that share a value are joined.
                if not backward or edge.family == "relation" or (edge.family == "any" and (ends[near] >= 0).all()):
                    key = (
                        (far, -1)
                        if far is not None and far not in rows.columns and edge.family == "relation"
                        else (far, edge.number)
                    )
                    if not any(edge is other for other, _ in leading.get(key, ())):
                        leading.setdefault(key, []).append((edge, backward))
        if not leading:
            return self._joined(rows, waiting)
        best: tuple[int, int] | None = None
        chosen: list[tuple[Edge, bool]] = []
        limits: list[tuple[rowset.Places, rowset.Places]] = []
        if self.counting and rows.size >= _FEW:
            for options in leading.values():
                through = self._through(rows, options, ends, waiting)
                if through is not None:
                    return through
        for options in leading.values():
            bounds = [edge.index(backward).bounds(ends[self._near(edge, backward)]) for edge, backward in options]
            counts = np.min([high - low for low, high in bounds], axis=0)
            cost = (int(counts.sum()), options[0][0].number)
            if best is None or cost < best:
                best, chosen, limits = cost, options, bounds
        for edge, _ in chosen:
            waiting.remove(edge)
        self._left = waiting
        rows = self._without(rows, waiting, [edge for edge, _ in chosen])
        return self._expanded(rows, chosen, limits, ends)

    @staticmethod
    def _near(edge: Edge, backward: bool) -> str:
        name = edge.object if backward else edge.subject
        assert name is not None
        return name

    def _expanded(
        self,
        rows: rowset.RowSet,
        options: list[tuple[Edge, bool]],
        limits: list[tuple[rowset.Places, rowset.Places]],
        ends: dict[str, Numbers],
    ) -> rowset.RowSet:
        """The rows with each candidate of a variable that edges lead to, which the other edges have as well."""
        counts = [high - low for low, high in limits]
        far = options[0][0].subject if options[0][1] else options[0][0].object
        if len(options) == 1 and self._only_counted(far, rows, options) and far not in self.within:
            there = np.flatnonzero(counts[0])
            return self._multiplied(rows.take(there), counts[0].take(there))
        which = np.argmin(counts, axis=0) if len(options) > 1 else None
        parts: list[rowset.RowSet] = []
        total = 0
        for number, (edge, backward) in enumerate(options):
            places = None if which is None else np.flatnonzero(which == number)
            low, high = limits[number] if places is None else (limits[number][0].take(places), limits[number][1].take(places))
            others = [option for at, option in enumerate(options) if at != number]
            for start, stop in rowset.chunks(high - low):
                sizes = high[start:stop] - low[start:stop]
                at = np.arange(start, stop).repeat(sizes)
                if places is not None:
                    at = places.take(at)
                part = self._candidates(rows, edge, backward, at, ranges(low[start:stop], high[start:stop]), others, ends)
                total += part.size
                if total > rowset.MOST_ROWS:
                    raise self._too_many()
                if part.size:
                    parts.append(part)
        names = dict.fromkeys([*rows.columns, *(name for edge, _ in options for name in [*edge.variables, *self._hidden(edge)])])
        names.update(dict.fromkeys(name for part in parts[:1] for name in part.columns if name == rowset.TIMES))
        return rowset.concatenated(parts, [name for name in names if not parts or name in parts[0].columns], self.run.scope)

    def _candidates(
        self,
        rows: rowset.RowSet,
        edge: Edge,
        backward: bool,
        at: rowset.Places,
        places: rowset.Places,
        others: list[tuple[Edge, bool]],
        ends: dict[str, Numbers],
    ) -> rowset.RowSet:
        index = edge.index(backward)
        far = edge.subject if backward else edge.object
        targets = index.far.take(places)
        if far is not None and far in self.within:
            inside = np.flatnonzero((targets >= 0) & self.run.among(np.maximum(targets, 0), self.within[far]))
            at, places, targets = at.take(inside), places.take(inside), targets.take(inside)
        matches: list[tuple[Edge, bool, rowset.Places]] = [(edge, backward, places)]
        for other, reverse in others:
            there, low, high = other.index(reverse).between(ends[self._near(other, reverse)].take(at), targets)
            sizes = high - low
            repeat = there if int(sizes.max(initial=0)) < 2 else there.repeat(sizes)
            at, targets = at.take(repeat), targets.take(repeat)
            matches = [(one, turned, found.take(repeat)) for one, turned, found in matches]
            matches.append((other, reverse, ranges(low, high)))
        if self._only_counted(far, rows, [(one, turned) for one, turned, _ in matches]):
            first = np.flatnonzero(changed(at))
            return self._multiplied(rows.take(at.take(first)), np.diff(np.append(first, len(at))))
        # A variable that nobody asks for has no column, but for how often it is there.
        unasked = far is not None and self.needed is not None and not far.startswith("\0") and far not in self.needed
        if unasked and far not in rows.columns and all(far not in edge.variables for edge in self._left):
            far = far if any(far in one.inner for one in (edge, *(other for other, _ in others))) else None
        part = rows.take(at)
        for one, turned, found in matches:
            if self._needs_statements(one):
                statements = one.statements(one.index(turned).entries.take(found))
                part.columns[hidden(one.number)] = rowset.Terms(rowset.STATEMENT, statements)
        if far is not None:
            relations = edge.family == "relation"
            terms = (
                rowset.Terms(rowset.ENTITY, targets) if relations else edge.far_terms(index.entries.take(matches[0][2]), backward)
            )
            part = self._bind(part, far, terms)
        for one, _, _ in matches:
            part = self._about(part, one)
        return part

    def _checked(self, rows: rowset.RowSet, edge: Edge, ends: dict[str, Numbers]) -> rowset.RowSet:
        """The rows whose ends an edge connects, once for each of its entries between them."""
        assert edge.subject is not None
        assert edge.object is not None
        index = edge.index(False)
        parts: list[rowset.RowSet] = []
        total = 0
        for start in range(0, rows.size, rowset.CHUNK):
            check()
            near, far = (ends[name][start : start + rowset.CHUNK] for name in (edge.subject, edge.object))
            there, low, high = index.between(near, far)
            sizes = high - low
            if self.counting and not self._needs_statements(edge):
                part = self._multiplied(rows.take(there + start), sizes)
            else:
                part = rows.take((there + start).repeat(sizes))
            if self._needs_statements(edge):
                entries = index.entries.take(ranges(low, high))
                part.columns[hidden(edge.number)] = rowset.Terms(rowset.STATEMENT, edge.statements(entries))
            part = self._about(part, edge)
            total += part.size
            if total > rowset.MOST_ROWS:
                raise self._too_many()
            parts.append(part)
        names = dict.fromkeys([*rows.columns, *edge.variables, *self._hidden(edge), *parts[0].columns])
        return rowset.concatenated(parts, list(names), self.run.scope)

    def _joined(self, rows: rowset.RowSet, waiting: list[Edge]) -> rowset.RowSet:
        """The rows joined with an edge that shares a value, a predicate or a statement with them."""
        sharing = [edge for edge in waiting if not set(edge.variables).isdisjoint(rows.columns)]
        edge = min(sharing, key=lambda one: (one.size(), one.number))
        waiting.remove(edge)
        other = self._first(edge)
        shared = [name for name in other.columns if name in rows.columns]
        one, two = rowset.compatible(rows, other, shared)
        return self._differing(rowset.merged(rows, other, one, two, list({**rows.columns, **other.columns})))

    def _too_many(self) -> PlanError:
        return rowset.too_many(None, "a pattern", "restrict its variables, or add statements that connect them")

    # -- counts ------------------------------------------------------------------------------------

    def _only_counted(self, name: str | None, rows: rowset.RowSet, options: Sequence[tuple[Edge, bool]]) -> bool:
        """Whether of a variable that edges lead to nothing is asked but how often it is there."""
        if not self.counting or name in (self.needed or ()) or name in rows.columns:
            return False
        return not any(name is not None and name in edge.variables for edge in self._left) and not any(
            self._needs_statements(edge) for edge, _ in options
        )

    @staticmethod
    def _countable(times: NDArray[np.float64]) -> None:
        """Raise an error where the sum is not sure to be exact."""
        if times.sum() > _MOST_COUNTED:
            raise PlanError(f"a pattern has more than {_MOST_COUNTED:,} rows", hint="restrict its variables")

    def _multiplied(self, rows: rowset.RowSet, times: rowset.Places) -> rowset.RowSet:
        """The rows, each so many times as often as before."""
        before = rows.columns.get(rowset.TIMES)
        if before is not None:
            self._countable(before.numbers.astype(np.float64) * times)
            times = before.numbers * times
        return rows.having(**{rowset.TIMES: rowset.Terms(rowset.GIVEN, times)})

    def _collapsed(self, rows: rowset.RowSet) -> rowset.RowSet:
        """The rows, with equal ones as one."""
        names = [name for name in rows.columns if name != rowset.TIMES]
        times = rows.columns[rowset.TIMES].numbers if rowset.TIMES in rows.columns else None
        if times is not None:
            self._countable(times.astype(np.float64))
        if not rows.size:
            return rows
        if not names:
            total = rows.size if times is None else int(times.sum())
            return rowset.RowSet(rows.scope, 1, {rowset.TIMES: rowset.Terms(rowset.GIVEN, np.array([total], np.int64))})
        check()
        size = max(self.run.snapshot.entities, 1)
        columns = [rows.columns[name] for name in names]
        if any(column.kind != rowset.ENTITY for column in columns) or size ** len(names) >= _MOST_COUNTED:
            keys = rows.keys(names)
        else:
            keys = np.zeros(rows.size, np.int32 if size ** len(names) < 1 << 31 else np.int64)
            for column in columns:
                keys = keys * keys.dtype.type(size) + column.numbers
            if times is None:
                keys.sort()
                keys, times = _counted(keys)
                return rowset.RowSet(
                    rows.scope, len(keys), {**_parted(keys, names, size), rowset.TIMES: rowset.Terms(rowset.GIVEN, times)}
                )
        order = in_order([keys])
        first = np.flatnonzero(changed(keys.take(order)))
        times = np.ones(rows.size, np.int64) if times is None else times.take(order)
        return rows.take(order.take(first)).having(**{rowset.TIMES: rowset.Terms(rowset.GIVEN, np.add.reduceat(times, first))})

    def _pairs_through(self, one: Index, other: Index, name: str) -> tuple[NDArray[Any], rowset.Places]:
        """The pairs of far ends that two indexes by one variable connect, as ascending numbers, and how often."""
        key = (id(one), id(other), name if name in self.within else "")
        known = self._connected.get(key)
        if known is None:
            size = self.run.snapshot.entities
            whole: Any = np.int32 if size * size < 1 << 31 else np.int64
            low, high = other.bounds(one.near)
            if name in self.within:
                high = np.where(self.run.among(one.near, self.within[name]), high, low)
            parts = [np.empty(0, whole)]
            for start, stop in rowset.chunks(high - low):
                starts = one.far[start:stop].astype(whole) * whole(size)
                targets = other.far.take(ranges(low[start:stop], high[start:stop]))
                parts.append(starts.repeat(high[start:stop] - low[start:stop]) + targets)
            keys = np.concatenate(parts)
            keys.sort()
            known = self._connected[key] = _counted(keys)
        return known

    def _connecting(self, name: str | None, edges: Sequence[Edge]) -> tuple[tuple[Edge, bool], tuple[Edge, bool]] | None:
        """The two edges that lead to a variable of which only the number is asked, from two others."""
        if name is None or name in (self.needed or ()):
            return None
        of = [edge for edge in edges if name in edge.variables]
        if len(of) != 2 or any(edge.family != "relation" or self._needs_statements(edge) for edge in of):
            return None
        one, other = ((edge, edge.subject == name) for edge in of)
        ends = {self._near(*one), self._near(*other)} if all(None not in (edge.subject, edge.object) for edge in of) else set()
        return (one, other) if len(ends) == 2 and name not in ends else None

    def _through_first(self, smallest: Edge, waiting: list[Edge]) -> rowset.RowSet | None:
        """Rows of the pairs that a variable connects, where the smallest edge leads to it, and another variable connects
        the same two as well, which nothing else does.
        """
        names = {name: self._connecting(name, waiting) for edge in waiting for name in (edge.subject, edge.object)}
        ends = {name: frozenset(self._near(*option) for option in of) for name, of in names.items() if of is not None}
        direct = {frozenset((edge.subject, edge.object)) for edge in waiting}
        choices = []
        for name in (smallest.subject, smallest.object):
            of = names.get(name)
            if name is None or of is None or ends[name] in direct or list(ends.values()).count(ends[name]) < 2:
                continue
            if (made := self._made(*of)) <= _MOST_PAIRS:
                choices.append((made, name, of))
        if not choices:
            return None
        _, name, ((one, backward), (other, reverse)) = min(choices, key=lambda choice: choice[:2])
        keys, times = self._pairs_through(one.index(not backward), other.index(not reverse), name)
        waiting.remove(one)
        waiting.remove(other)
        named = [self._near(one, backward), self._near(other, reverse)]
        columns = _parted(keys, named, self.run.snapshot.entities)
        return self._inside(
            rowset.RowSet(self.run.scope, len(keys), {**columns, rowset.TIMES: rowset.Terms(rowset.GIVEN, times)}), named
        )

    @staticmethod
    def _made(one: tuple[Edge, bool], other: tuple[Edge, bool]) -> int:
        """How many pairs a variable makes that two edges lead to."""
        low, high = other[0].index(not other[1]).bounds(one[0].index(not one[1]).near)
        return int((high - low).sum())

    def _through(
        self, rows: rowset.RowSet, options: list[tuple[Edge, bool]], ends: dict[str, Numbers], waiting: list[Edge]
    ) -> rowset.RowSet | None:
        """The rows whose two ends some variable connects, looked up in all pairs that it does; None where it is quicker to
        look at its candidates for each row.
        """
        (edge, backward), *_ = options
        name = edge.subject if backward else edge.object
        of = self._connecting(name, waiting) if len(options) == 2 and name not in rows.columns else None
        if of is None or name is None:
            return None
        columns = [ends[self._near(*option)] for option in of]
        # Candidates as some of the rows have them; one costs about as much as three pairs, made or looked up. Rows that
        # were made one of equal ones are in order, in which look-ups are quick.
        step = -(-rows.size // _SOME)
        bounds = [edge.index(backward).bounds(column[::step]) for (edge, backward), column in zip(of, columns, strict=True)]
        candidates = step * int(np.min([high - low for low, high in bounds], axis=0).sum())
        worth = 3 * candidates + (2 * rows.size if rowset.TIMES in rows.columns else 0)
        if rows.size > worth or (made := self._made(*of)) > _MOST_PAIRS or made + rows.size > worth:
            return None
        if any((column < 0).any() for column in columns):
            return None
        keys, times = self._pairs_through(of[0][0].index(not of[0][1]), of[1][0].index(not of[1][1]), name)
        for option, _ in of:
            waiting.remove(option)
        wanted = columns[0].astype(keys.dtype) * keys.dtype.type(self.run.snapshot.entities) + columns[1]
        if not len(keys):
            return rows.take(np.empty(0, np.int64))
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        there = np.flatnonzero(keys.take(places) == wanted)
        return self._multiplied(rows.take(there), times.take(places.take(there)))

    # -- what else is bound ------------------------------------------------------------------------

    def _inside(self, rows: rowset.RowSet, names: Sequence[str]) -> rowset.RowSet:
        """The rows whose new variables lie in their sets."""
        for name in names:
            if name in self.within and name in rows.columns:
                entities = rows.columns[name].entities()
                rows = rows.where((entities >= 0) & self.run.among(np.maximum(entities, 0), self.within[name]))
        return rows

    def _needs_statements(self, edge: Edge) -> bool:
        part = edge.part
        if isinstance(part, alg.MembershipPattern):
            return False
        return (
            edge.number in self.kept
            or part.statement is not None
            or isinstance(part.predicate, alg.Variable)
            or bool(part.qualifiers)
        )

    def _bind(self, rows: rowset.RowSet, name: str, terms: rowset.Terms) -> rowset.RowSet:
        """The rows with a variable bound; if it is bound already, those in which the terms are equal."""
        if name not in rows.columns:
            return rows.having(**{name: terms})
        one, other = rowset.codes(self.run.scope, [rows.columns[name], terms])
        # A seed may leave it unbound.
        unbound = one < 0
        if unbound.any():
            column = rows.columns[name]
            numbers = np.where(unbound, terms.marked(), column.marked())
            rows = rows.having(**{name: rowset.Terms(None, numbers).narrowed()})
        return rows.where(unbound | (one == other))

    def _about(self, rows: rowset.RowSet, edge: Edge) -> rowset.RowSet:
        """The rows with what the statements of an edge bind: themselves, their predicates, their qualifiers."""
        part, name = edge.part, hidden(edge.number)
        if not isinstance(part, alg.StatementPattern) or name not in rows.columns:
            return rows
        snapshot = self.run.snapshot
        if isinstance(part.predicate, alg.Variable):
            predicates = rowset.Terms(rowset.PREDICATE, snapshot.predicates(rows.columns[name].numbers))
            rows = self._bind(rows, part.predicate.name, predicates)
        if part.statement is not None:
            rows = self._bind(rows, part.statement.name, rows.columns[name])
        for qualifier in part.qualifiers:
            rows = self._qualified(rows, rows.columns[name].numbers, qualifier)
        # Its ends lie in their sets already.
        also = [other for other in part.variables if other not in (edge.subject, edge.object)]
        rows = self._differing(self._inside(rows, also))
        if edge.number not in self.kept:
            rows = rowset.RowSet(rows.scope, rows.size, {key: column for key, column in rows.columns.items() if key != name})
        return rows

    def _qualified(self, rows: rowset.RowSet, statements: NDArray[Any], qualifier: alg.QualifierPattern) -> rowset.RowSet:
        run, snapshot = self.run, self.run.snapshot
        places, numbers = snapshot.qualifiers(statements)
        keys = snapshot.arrays.get("q.key").take(numbers)
        if not isinstance(qualifier.key, alg.Variable):
            chosen = np.flatnonzero(keys == snapshot.predicate(qualifier.key))
            places, numbers, keys = places.take(chosen), numbers.take(chosen), keys.take(chosen)
        if qualifier.condition is not None:
            of = numbers
            cells = Cells(len(of), lambda name: snapshot.arrays.get(f"q.{name}").take(of))
            run.warn_incomparable(cells, qualifier.condition)
            chosen = np.flatnonzero(holds(run, qualifier.condition, cells))
            places, numbers, keys = places.take(chosen), numbers.take(chosen), keys.take(chosen)
        terms = rowset.qualifier_terms(run.scope, numbers)
        if isinstance(qualifier.value, Entities):
            entities = terms.entities()
            chosen = np.flatnonzero((entities >= 0) & run.among(np.maximum(entities, 0), run.entities(qualifier.value)))
            places, numbers, keys, terms = places.take(chosen), numbers.take(chosen), keys.take(chosen), terms.take(chosen)
        if not qualifier.variables:
            mask = np.zeros(rows.size, bool)
            mask[places] = True
            return rows.where(mask)
        # The terms ride along as columns, so that each binding drops rows of both.
        rows = rows.take(places).having(**{"\0key": rowset.Terms(rowset.PREDICATE, keys), "\0value": terms})
        if isinstance(qualifier.key, alg.Variable):
            rows = self._bind(rows, qualifier.key.name, rows.columns["\0key"])
        if isinstance(qualifier.value, alg.Variable):
            rows = self._bind(rows, qualifier.value.name, rows.columns["\0value"])
        return rowset.RowSet(
            rows.scope, rows.size, {name: one for name, one in rows.columns.items() if name not in ("\0key", "\0value")}
        )

    def _differing(self, rows: rowset.RowSet) -> rowset.RowSet:
        """The rows in which parts that must not match the same statement do not."""
        for one, other in self.apart:
            left, right = rows.columns.get(hidden(one)), rows.columns.get(hidden(other))
            if left is not None and right is not None:
                rows = rows.where(left.numbers != right.numbers)
        return rows


def _counted(keys: NDArray[Any]) -> tuple[NDArray[Any], rowset.Places]:
    """The different ones of ascending keys, and how often each is there."""
    first = np.flatnonzero(changed(keys)) if len(keys) else np.empty(0, np.int64)
    return keys.take(first), np.diff(np.append(first, len(keys)))


def _parted(keys: NDArray[Any], names: Sequence[str], size: int) -> dict[str, rowset.Terms]:
    """The columns that keys were made of, with the last one below `size` steps of the one before."""
    columns = {}
    for name in reversed(names):
        rest = keys // keys.dtype.type(size)
        columns[name] = rowset.Terms(rowset.ENTITY, (keys - rest * keys.dtype.type(size)).astype(np.int32))
        keys = rest
    return {name: columns[name] for name in names}


def _apart(pattern: alg.Pattern, edges: Sequence[Edge]) -> list[tuple[int, int]]:
    """The parts of a pattern that may match the same statement, and must not."""
    count = len(pattern.statements) if pattern.different else 0
    return [(one, two) for two in range(count) for one in range(two) if may_meet(edges[two], edges[one])]


def _edges(run: Run, pattern: alg.Pattern) -> list[Edge]:
    parts: tuple[alg.StatementPattern | alg.MembershipPattern, ...] = (*pattern.statements, *pattern.memberships)
    return [Edge(run, part, number) for number, part in enumerate(parts)]


def solve(run: Run, node: alg.Pattern) -> rowset.RowSet:
    """The rows of a pattern, as far as the plan goes on with them."""
    keys, _ = counted_by(run, node)
    if keys is not None:
        return Solver(run, node, needed=keys, counting=True).rows()
    return Solver(run, node, _meeting(run, node), needed=needed(run, node)).rows()


def counted_by(run: Run, node: alg.Pattern) -> tuple[Set[str] | None, tuple[str, str] | None]:
    """The keys by which the operators that take the rows of a pattern do no more than count them, None where they do
    more; and two variables of entities that have to differ, if they look at that first.
    """
    taker, pair = only_taker(run, node), None
    if isinstance(taker, alg.Filter):
        pair = _differing_entities(run, node, taker)
        taker = None if pair is None else only_taker(run, taker)
    if not isinstance(taker, alg.GroupRows) or not taker.aggregates:
        return None, None
    if any(one.function != "count" or one.distinct or one.of not in (None, *node.variables) for one in taker.aggregates):
        return None, None
    return (None, None) if _apart(node, _edges(run, node) if node.different else []) else (set(taker.keys), pair)


def _differing_entities(run: Run, node: alg.Pattern, test: alg.Filter) -> tuple[str, str] | None:
    """The two variables of a pattern that a filter wants to differ, if both are ends of statements, and entities."""
    of = test.test
    if not isinstance(of, Comparison) or of.operator != "<>":
        return None
    if not isinstance(of.left, Named) or not isinstance(of.right, Named) or of.left.name == of.right.name:
        return None
    pair, edges = (of.left.name, of.right.name), _edges(run, node)
    inner = {name for edge in edges for name in edge.inner}
    ends = {edge.subject for edge in edges} | {edge.object for edge in edges if edge.family == "relation"}
    return pair if ends.issuperset(pair) and inner.isdisjoint(pair) else None


def differing(run: Run, node: alg.Filter, rows: rowset.RowSet) -> rowset.RowSet:
    """Rows of a pattern that are counted, without those in which two variables are the same: these are the rows of the
    pattern with one variable in the place of both.
    """
    pattern = node.of
    assert isinstance(pattern, alg.Pattern)
    keys, pair = counted_by(run, pattern)
    assert keys is not None
    assert pair is not None
    one, other = pair

    def put(place: Any) -> Any:
        return alg.Variable(one) if isinstance(place, alg.Variable) and place.name == other else place

    statements = tuple(replace(part, subject=put(part.subject), object=put(part.object)) for part in pattern.statements)
    memberships = tuple(replace(part, member=put(part.member), concept=put(part.concept)) for part in pattern.memberships)
    same = alg.Pattern(statements, memberships)
    equal = Solver(run, same, needed={one if key == other else key for key in keys}, counting=True).rows()
    if not equal.size:
        return rows
    columns = {name: equal.column(one if name == other else name) for name in rows.columns if name != rowset.TIMES}
    times = equal.columns[rowset.TIMES].numbers
    less = rowset.RowSet(run.scope, equal.size, {**columns, rowset.TIMES: rowset.Terms(rowset.GIVEN, -times)})
    return rowset.concatenated([rows, less], list(rows.columns), run.scope)


def only_taker(run: Run, node: Node) -> Node | None:
    """The one operator that takes the rows of another; None if there are several, or none."""
    takers = [other for other in run.order if any(child is node for child in other.inputs())]
    return takers[0] if len(takers) == 1 else None


#: Joins that look at right rows only where they meet a left one.
_MEETING: Final = (alg.Join, alg.LeftJoin, alg.SemiJoin, alg.AntiJoin, alg.MarkJoin, alg.MinusRows)


def _meeting(run: Run, node: alg.Pattern) -> rowset.RowSet | None:
    """What the left rows of a join bind of the pattern on its right, if they are few: other rows of the pattern meet none."""
    taker = only_taker(run, node)
    if not isinstance(taker, _MEETING) or taker.right is not node or id(taker.left) not in run.results:
        return None
    left = run.rows(taker.left)
    if left.size * 8 > run.snapshot.statements:
        return None
    shared = [name for name in node.variables if name in left.columns and left.columns[name].bound.all()]
    return left.only(shared).distinct() if shared else None


def needed(run: Run, node: Node) -> Set[str] | None:
    """The variables that the one operator which takes the rows of another needs of them; None for all."""
    taker = only_taker(run, node)
    if isinstance(taker, alg.Project):
        return {old for _, old in taker.names}
    if isinstance(taker, alg.GroupRows):
        if any(one.of is None and one.distinct for one in taker.aggregates):
            return None
        return {*taker.keys, *(one.of for one in taker.aggregates if one.of is not None)}
    if isinstance(taker, alg.EntitiesOf | alg.FactsOf):
        return {taker.variable}
    if isinstance(taker, alg.Filter):
        onward = needed(run, taker)
        return None if onward is None else onward | variables(taker.test)
    if isinstance(taker, alg.Extend):
        onward = needed(run, taker)
        return None if onward is None else (onward - {taker.variable}) | variables(taker.expression)
    return None
