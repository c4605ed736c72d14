"""Graph patterns in process: all ways to match all parts of a `Pattern` at once.

Each part is an edge between two ends. The rows grow by one variable at a time: of the variables next to bound ones,
the one with the fewest candidates, counted exactly. If several edges lead to it, every row takes the edge with the
fewest statements and looks its candidates up in the others, so that a cycle costs no more than the smaller of its
sides (a worst-case optimal join, after Ngo, Porat, Ré and Rudra, 2012, over columns). Rows are expanded in chunks.
Parts that share no variable are matched separately and joined last.

If the operator above only counts the rows, rows that are equal in all variables still needed are merged into one with
its number (sums are pushed below the joins: Abo Khamis, Ngo and Rudra, "FAQ", 2016). A variable between two bound
variables is then replaced by the pairs that it connects, if these are fewer than its candidates.
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
#: Fewer rows than this are not merged; the size of a sample for estimates.
_MIN_MERGED: Final = 4_096
_SOME: Final = 1 << 16
#: The largest number of pairs made for a connecting variable, and of counted rows.
_MAX_PAIRS: Final = 1 << 24
_MAX_COUNTED: Final = 1 << 62


# -- matching ----------------------------------------------------------------------------------------


def hidden(number: int) -> str:
    """Return the name of the column of the statements that match a part."""
    return f"\0{number}"


class Solver:
    """Matches one pattern. `seed` are rows that it extends; with `trace` the statement of every part is kept, in the
    column named by `hidden`. Only `needed` variables (None: all) have columns in the result. With `counting`, equal
    rows may be one row, with their number in the column `TIMES`.
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
        #: Pairs of parts whose statements must differ.
        self.distinct_pairs = _distinct_pairs(pattern, self.edges)
        self.kept = {number for pair in self.distinct_pairs for number in pair}
        if trace:
            self.kept = set(range(len(pattern.statements)))
        self.counting = counting
        #: The pairs that a variable connects, by the identities of the two indexes.
        self._connected: dict[tuple[int, int, str], tuple[NDArray[Any], rowset.Places]] = {}
        #: The edges left to match after the current one.
        self._lookups: list[Edge] = []
        #: The allowed entities of variables, by name.
        self.within: dict[str, Numbers] = {}
        self.rest: list[Edge] = []
        for edge in self.edges:
            if not self._restricts(edge):
                self.rest.append(edge)

    def _restricts(self, edge: Edge) -> bool:
        """Return whether a membership only restricts a variable to a set, which is then noted in `within`."""
        if not isinstance(edge.part, alg.MembershipPattern) or (edge.subject is not None) == (edge.object is not None):
            return False
        name = edge.subject or edge.object
        assert name is not None
        entries = edge.entries()
        if edge.subject is not None and edge.sets[1] is not None and not edge.part.direct:
            allowed = self.run.snapshot.members(tuple(edge.sets[1].tolist()))
        else:
            allowed = distinct(entries.subject, self.run.snapshot.entities)
        previous = self.within.get(name)
        self.within[name] = allowed if previous is None else intersect(previous, allowed, self.run.snapshot.entities)
        return True

    def rows(self) -> rowset.RowSet:
        """Return all rows, with the variables of the seed and the pattern."""
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
                left, right = rowset.compatible(result, rows, ())
                times = rows.columns.get(rowset.TIMES)
                rows = self._differing(rowset.merged(result, rows, left, right, list({**result.columns, **rows.columns})))
                if times is not None:
                    rows = self._multiplied(rows, times.numbers.take(right))
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
        """Return the connected components: their edges, whether they contain the seed, and variables that are only
        restricted to sets.
        """
        seeded = set() if self.seed is None else set(self.seed.columns)
        groups: list[tuple[set[str], list[Edge], bool, list[str]]] = []
        if seeded:
            groups.append((set(seeded), [], True, []))
        for edge in self.rest:
            names = set(edge.variables)
            joined: tuple[set[str], list[Edge], bool, list[str]] = (names, [edge], False, [])
            separate = []
            for group in groups:
                if group[0] & joined[0]:
                    joined = (group[0] | joined[0], group[1] + joined[1], group[2] or joined[2], [])
                else:
                    separate.append(group)
            groups = [*separate, joined]
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
        remaining = list(edges)
        rows = self._start(remaining) if seed is None else self._restrict(seed, list(seed.columns))
        seen: set[str] = set()
        while remaining and rows.size:
            seen.update(rows.columns)
            rows = self._drop_unneeded(rows, remaining)
            if self.counting and rows.size > _MIN_MERGED and not seen <= rows.columns.keys():
                rows, seen = self._collapsed(rows), set()
            rows = self._step(rows, remaining)
        rows = self._drop_unneeded(rows, remaining)
        if remaining:
            names = dict.fromkeys(name for edge in edges for name in [*edge.variables, *self._hidden(edge)])
            return rowset.concatenated([rows], [*rows.columns, *(name for name in names if name not in rows.columns)], scope)
        return rows

    def _drop_unneeded(self, rows: rowset.RowSet, waiting: list[Edge], matched: Sequence[Edge] = ()) -> rowset.RowSet:
        """Return the rows without columns that are not needed any more. The edges being matched still need the
        columns that their statements bind, and values that both ends have.
        """
        if self.needed is None:
            return rows
        used = {name for edge in waiting for name in edge.variables} | {name for edge in matched for name in edge.inner}
        for edge in matched:
            used.update(name for name in (edge.subject, edge.object) if name and {edge.subject, edge.object} <= rows.columns.keys())
        columns = {
            name: column for name, column in rows.columns.items() if name in self.needed or name in used or name.startswith("\0")
        }
        return rows if len(columns) == len(rows.columns) else rowset.RowSet(rows.scope, rows.size, columns)

    def _hidden(self, edge: Edge) -> list[str]:
        return [hidden(edge.number)] if edge.number in self.kept else []

    # -- start -------------------------------------------------------------------------------------

    def _start(self, waiting: list[Edge]) -> rowset.RowSet:
        """Return the rows of the smallest edge, or of the smallest set that an edge starts from."""
        smallest = min(waiting, key=lambda edge: (edge.size(), edge.number))
        names = {name for edge in waiting for name in (edge.subject, edge.object) if name is not None}
        sets = [(len(self.within[name]), name) for name in sorted(names) if name in self.within]
        if sets and min(sets)[0] < smallest.size():
            name = min(sets)[1]
            return rowset.RowSet(self.run.scope, len(self.within[name]), {name: rowset.Terms(rowset.ENTITY, self.within[name])})
        through = self._rows_by_pairs(smallest, waiting) if self.counting else None
        if through is not None:
            return through
        waiting.remove(smallest)
        return self._edge_rows(smallest)

    def _edge_rows(self, edge: Edge) -> rowset.RowSet:
        """Return the rows of one edge."""
        entries = edge.entries()
        columns: dict[str, rowset.Terms] = {}
        if edge.subject is not None:
            columns[edge.subject] = rowset.Terms(rowset.ENTITY, entries.subject)
        if edge.object is not None and edge.object != edge.subject:
            columns[edge.object] = entries.object
        if self._needs_statements(edge):
            columns[hidden(edge.number)] = rowset.Terms(rowset.STATEMENT, entries.statement)
        rows = rowset.RowSet(self.run.scope, len(entries.subject), columns)
        return self._about(self._restrict(rows, list(columns)), edge)

    # -- steps -------------------------------------------------------------------------------------

    def _step(self, rows: rowset.RowSet, waiting: list[Edge]) -> rowset.RowSet:
        """Return the rows with one more variable, or checked by an edge whose ends are bound."""
        ends = {
            name: rows.columns[name].entities() for edge in waiting for name in (edge.subject, edge.object) if name in rows.columns
        }
        for edge in waiting:
            if edge.subject in ends and edge.object in ends and edge.subject != edge.object:
                if (ends[edge.object] < 0).any() and edge.family != "relation":
                    continue
                waiting.remove(edge)
                return self._checked(rows, edge, ends)
        # The edges that lead to each variable, and whether they are followed backward.
        leading: dict[tuple[str | None, int], list[tuple[Edge, bool]]] = {}
        for edge in waiting:
            for near, far, backward in ((edge.subject, edge.object, False), (edge.object, edge.subject, True)):
                if near not in ends or (backward and far in ends):
                    continue
                # Only entities have an index: edges connected by a value are joined instead.
                if not backward or edge.family == "relation" or (edge.family == "any" and (ends[near] >= 0).all()):
                    is_shared = far is not None and far not in rows.columns and edge.family == "relation"
                    key = far, -1 if is_shared else edge.number
                    if not any(edge is other for other, _ in leading.get(key, ())):
                        leading.setdefault(key, []).append((edge, backward))
        if not leading:
            return self._join(rows, waiting)
        best: tuple[int, int] | None = None
        chosen: list[tuple[Edge, bool]] = []
        limits: list[tuple[rowset.Places, rowset.Places]] = []
        if self.counting and rows.size >= _MIN_MERGED:
            for options in leading.values():
                through = self._through(rows, options, ends, waiting)
                if through is not None:
                    return through
        for options in leading.values():
            # Each takes a moment for millions of rows.
            check()
            bounds = [edge.index(backward).bounds(ends[self._near_end(edge, backward)]) for edge, backward in options]
            counts = np.min([high - low for low, high in bounds], axis=0)
            cost = (int(counts.sum()), options[0][0].number)
            if best is None or cost < best:
                best, chosen, limits = cost, options, bounds
        for edge, _ in chosen:
            waiting.remove(edge)
        self._lookups = waiting
        rows = self._drop_unneeded(rows, waiting, [edge for edge, _ in chosen])
        return self._expanded(rows, chosen, limits, ends)

    @staticmethod
    def _near_end(edge: Edge, backward: bool) -> str:
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
        """Return the rows with each candidate of a variable that all edges to it share."""
        check()
        counts = [high - low for low, high in limits]
        far = options[0][0].subject if options[0][1] else options[0][0].object
        if len(options) == 1 and self._is_only_counted(far, rows, options) and far not in self.within:
            nonempty = np.flatnonzero(counts[0])
            return self._multiplied(rows.take(nonempty), counts[0].take(nonempty))
        smallest = np.argmin(counts, axis=0) if len(options) > 1 else None
        parts: list[rowset.RowSet] = []
        total = 0
        for number, (edge, backward) in enumerate(options):
            places = None if smallest is None else np.flatnonzero(smallest == number)
            low, high = limits[number] if places is None else (limits[number][0].take(places), limits[number][1].take(places))
            others = [option for row_positions, option in enumerate(options) if row_positions != number]
            for start, stop in rowset.chunks(high - low):
                sizes = high[start:stop] - low[start:stop]
                row_positions = np.arange(start, stop).repeat(sizes)
                if places is not None:
                    row_positions = places.take(row_positions)
                part = self._candidates(
                    rows, edge, backward, row_positions, ranges(low[start:stop], high[start:stop]), others, ends
                )
                total += part.size
                if total > rowset.MAX_ROWS:
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
            allowed = np.flatnonzero((targets >= 0) & self.run.among(np.maximum(targets, 0), self.within[far]))
            at, places, targets = at.take(allowed), places.take(allowed), targets.take(allowed)
        matches: list[tuple[Edge, bool, rowset.Places]] = [(edge, backward, places)]
        for other, reverse in others:
            found_pairs, low, high = other.index(reverse).between(ends[self._near_end(other, reverse)].take(at), targets)
            sizes = high - low
            repeat = found_pairs if int(sizes.max(initial=0)) < 2 else found_pairs.repeat(sizes)
            at, targets = at.take(repeat), targets.take(repeat)
            matches = [(matched_edge, reversed_, positions.take(repeat)) for matched_edge, reversed_, positions in matches]
            matches.append((other, reverse, ranges(low, high)))
        if self._is_only_counted(far, rows, [(matched_edge, reversed_) for matched_edge, reversed_, _ in matches]):
            first = np.flatnonzero(changed(at))
            return self._multiplied(rows.take(at.take(first)), np.diff(np.append(first, len(at))))
        # A variable that is not needed has no column; only its multiplicity counts.
        unasked = far is not None and self.needed is not None and not far.startswith("\0") and far not in self.needed
        if unasked and far not in rows.columns and all(far not in edge.variables for edge in self._lookups):
            far = far if any(far in matched_edge.inner for matched_edge in (edge, *(other for other, _ in others))) else None
        part = rows.take(at)
        for matched_edge, reversed_, positions in matches:
            if self._needs_statements(matched_edge):
                statements = matched_edge.statements(matched_edge.index(reversed_).entries.take(positions))
                part.columns[hidden(matched_edge.number)] = rowset.Terms(rowset.STATEMENT, statements)
        if far is not None:
            if edge.family == "relation":
                terms = rowset.Terms(rowset.ENTITY, targets)
            else:
                terms = edge.far_terms(index.entries.take(matches[0][2]), backward)
            part = self._bind(part, far, terms)
        for matched_edge, _, _ in matches:
            part = self._about(part, matched_edge)
        return part

    def _checked(self, rows: rowset.RowSet, edge: Edge, ends: dict[str, Numbers]) -> rowset.RowSet:
        """Return the rows whose ends an edge connects, once for each of its entries between them."""
        assert edge.subject is not None
        assert edge.object is not None
        index = edge.index(False)
        parts: list[rowset.RowSet] = []
        total = 0
        for start in range(0, rows.size, rowset.CHUNK):
            check()
            near, far = (ends[name][start : start + rowset.CHUNK] for name in (edge.subject, edge.object))
            connected, low, high = index.between(near, far)
            sizes = high - low
            if self.counting and not self._needs_statements(edge):
                part = self._multiplied(rows.take(connected + start), sizes)
            else:
                part = rows.take((connected + start).repeat(sizes))
            if self._needs_statements(edge):
                entries = index.entries.take(ranges(low, high))
                part.columns[hidden(edge.number)] = rowset.Terms(rowset.STATEMENT, edge.statements(entries))
            part = self._about(part, edge)
            total += part.size
            if total > rowset.MAX_ROWS:
                raise self._too_many()
            parts.append(part)
        names = dict.fromkeys([*rows.columns, *edge.variables, *self._hidden(edge), *parts[0].columns])
        return rowset.concatenated(parts, list(names), self.run.scope)

    def _join(self, rows: rowset.RowSet, waiting: list[Edge]) -> rowset.RowSet:
        """Return the rows joined with an edge that shares a value, a predicate or a statement with them."""
        sharing = [edge for edge in waiting if not set(edge.variables).isdisjoint(rows.columns)]
        edge = min(sharing, key=lambda left: (left.size(), left.number))
        waiting.remove(edge)
        other = self._edge_rows(edge)
        shared = [name for name in other.columns if name in rows.columns]
        candidate, right = rowset.compatible(rows, other, shared)
        return self._differing(rowset.merged(rows, other, candidate, right, list({**rows.columns, **other.columns})))

    def _too_many(self) -> PlanError:
        return rowset.too_many(None, "a pattern", "restrict its variables, or add statements that connect them")

    # -- counts ------------------------------------------------------------------------------------

    def _is_only_counted(self, name: str | None, rows: rowset.RowSet, options: Sequence[tuple[Edge, bool]]) -> bool:
        """Return whether only the number of a variable's matches is needed."""
        if not self.counting or name in (self.needed or ()) or name in rows.columns:
            return False
        return not any(name is not None and name in edge.variables for edge in self._lookups) and not any(
            self._needs_statements(edge) for edge, _ in options
        )

    @staticmethod
    def _countable(times: NDArray[np.float64]) -> None:
        """Raise `PlanError` if the sum may be too large to be exact."""
        if times.sum() > _MAX_COUNTED:
            raise PlanError(f"a pattern has more than {_MAX_COUNTED:,} rows", hint="restrict its variables")

    def _multiplied(self, rows: rowset.RowSet, times: rowset.Places) -> rowset.RowSet:
        """Return the rows with their multiplicities multiplied."""
        previous = rows.columns.get(rowset.TIMES)
        if previous is not None:
            self._countable(previous.numbers.astype(np.float64) * times)
            times = previous.numbers * times
        return rows.having(**{rowset.TIMES: rowset.Terms(rowset.GIVEN, times)})

    def _collapsed(self, rows: rowset.RowSet) -> rowset.RowSet:
        """Return the rows with equal ones merged."""
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
        if any(column.kind != rowset.ENTITY for column in columns) or size ** len(names) >= _MAX_COUNTED:
            keys = rows.keys(names)
        else:
            keys = np.zeros(rows.size, np.int32 if size ** len(names) < 1 << 31 else np.int64)
            for column in columns:
                keys = keys * keys.dtype.type(size) + column.numbers
            if times is None:
                keys.sort()
                keys, times = _run_lengths(keys)
                return rowset.RowSet(
                    rows.scope, len(keys), {**_parted(keys, names, size), rowset.TIMES: rowset.Terms(rowset.GIVEN, times)}
                )
        order = in_order([keys])
        first = np.flatnonzero(changed(keys.take(order)))
        times = np.ones(rows.size, np.int64) if times is None else times.take(order)
        return rows.take(order.take(first)).having(**{rowset.TIMES: rowset.Terms(rowset.GIVEN, np.add.reduceat(times, first))})

    def _pairs_through(self, one: Index, other: Index, name: str) -> tuple[NDArray[Any], rowset.Places]:
        """Return the pairs of far ends that two indexes by one variable connect, as ascending numbers, and the count
        of each.
        """
        key = (id(one), id(other), name if name in self.within else "")
        entry = self._connected.get(key)
        if entry is None:
            size = self.run.snapshot.entities
            dtype: Any = np.int32 if size * size < 1 << 31 else np.int64
            low, high = other.bounds(one.near)
            if name in self.within:
                high = np.where(self.run.among(one.near, self.within[name]), high, low)
            parts = [np.empty(0, dtype)]
            for start, stop in rowset.chunks(high - low):
                starts = one.far[start:stop].astype(dtype) * dtype(size)
                targets = other.far.take(ranges(low[start:stop], high[start:stop]))
                parts.append(starts.repeat(high[start:stop] - low[start:stop]) + targets)
            keys = np.concatenate(parts)
            keys.sort()
            entry = self._connected[key] = _run_lengths(keys)
        return entry

    def _connecting(self, name: str | None, edges: Sequence[Edge]) -> tuple[tuple[Edge, bool], tuple[Edge, bool]] | None:
        """Return the two edges to a variable, if it has no others and only its number of matches is needed."""
        if name is None or name in (self.needed or ()):
            return None
        incident = [edge for edge in edges if name in edge.variables]
        if len(incident) != 2 or any(edge.family != "relation" or self._needs_statements(edge) for edge in incident):
            return None
        first, second = ((edge, edge.subject == name) for edge in incident)
        if any(None in (edge.subject, edge.object) for edge in incident):
            return None
        ends = {self._near_end(*first), self._near_end(*second)}
        return (first, second) if len(ends) == 2 and name not in ends else None

    def _rows_by_pairs(self, smallest: Edge, waiting: list[Edge]) -> rowset.RowSet | None:
        """Return the rows of the pairs that a variable of the smallest edge connects, if another variable connects
        the same pair of ends and no edge does so directly.
        """
        names = {name: self._connecting(name, waiting) for edge in waiting for name in (edge.subject, edge.object)}
        ends = {name: frozenset(self._near_end(*option) for option in pair) for name, pair in names.items() if pair is not None}
        direct = {frozenset((edge.subject, edge.object)) for edge in waiting}
        choices = []
        for name in (smallest.subject, smallest.object):
            pair = names.get(name)
            if name is None or pair is None or ends[name] in direct or list(ends.values()).count(ends[name]) < 2:
                continue
            if (count := self._pair_count(*pair)) <= _MAX_PAIRS:
                choices.append((count, name, pair))
        if not choices:
            return None
        _, name, ((one, backward), (other, reverse)) = min(choices, key=lambda choice: choice[:2])
        keys, times = self._pairs_through(one.index(not backward), other.index(not reverse), name)
        waiting.remove(one)
        waiting.remove(other)
        named = [self._near_end(one, backward), self._near_end(other, reverse)]
        columns = _parted(keys, named, self.run.snapshot.entities)
        return self._restrict(
            rowset.RowSet(self.run.scope, len(keys), {**columns, rowset.TIMES: rowset.Terms(rowset.GIVEN, times)}), named
        )

    @staticmethod
    def _pair_count(one: tuple[Edge, bool], other: tuple[Edge, bool]) -> int:
        """Return the number of pairs that a variable between two edges makes."""
        low, high = other[0].index(not other[1]).bounds(one[0].index(not one[1]).near)
        return int((high - low).sum())

    def _through(
        self, rows: rowset.RowSet, options: list[tuple[Edge, bool]], ends: dict[str, Numbers], waiting: list[Edge]
    ) -> rowset.RowSet | None:
        """Return the rows whose two ends a variable connects, looked up in all pairs that it makes; None if expanding
        its candidates for each row is cheaper.
        """
        (edge, backward), *_ = options
        name = edge.subject if backward else edge.object
        connecting = self._connecting(name, waiting) if len(options) == 2 and name not in rows.columns else None
        if connecting is None or name is None:
            return None
        columns = [ends[self._near_end(*option)] for option in connecting]
        # Candidates are estimated from a sample; one costs about as much as making or looking up three pairs. Merged
        # rows are sorted, which makes look-ups fast.
        step = -(-rows.size // _SOME)
        bounds = [edge.index(backward).bounds(column[::step]) for (edge, backward), column in zip(connecting, columns, strict=True)]
        candidates = step * int(np.min([high - low for low, high in bounds], axis=0).sum())
        budget = 3 * candidates + (2 * rows.size if rowset.TIMES in rows.columns else 0)
        if rows.size > budget or (pair_count := self._pair_count(*connecting)) > _MAX_PAIRS or pair_count + rows.size > budget:
            return None
        if any((column < 0).any() for column in columns):
            return None
        keys, times = self._pairs_through(
            connecting[0][0].index(not connecting[0][1]), connecting[1][0].index(not connecting[1][1]), name
        )
        for option, _ in connecting:
            waiting.remove(option)
        row_keys = columns[0].astype(keys.dtype) * keys.dtype.type(self.run.snapshot.entities) + columns[1]
        if not len(keys):
            return rows.take(np.empty(0, np.int64))
        places = np.minimum(np.searchsorted(keys, row_keys), len(keys) - 1)
        matching = np.flatnonzero(keys.take(places) == row_keys)
        return self._multiplied(rows.take(matching), times.take(places.take(matching)))

    # -- other variables ---------------------------------------------------------------------------

    def _restrict(self, rows: rowset.RowSet, names: Sequence[str]) -> rowset.RowSet:
        """Return the rows whose new variables are in their sets."""
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
        """Return the rows with a variable bound; if it is bound already, those in which the terms are equal."""
        if name not in rows.columns:
            return rows.having(**{name: terms})
        present, new_codes = rowset.codes(self.run.scope, [rows.columns[name], terms])
        # A seed may leave the variable unbound.
        unbound = present < 0
        if unbound.any():
            column = rows.columns[name]
            numbers = np.where(unbound, terms.marked(), column.marked())
            rows = rows.having(**{name: rowset.Terms(None, numbers).narrowed()})
        return rows.where(unbound | (present == new_codes))

    def _about(self, rows: rowset.RowSet, edge: Edge) -> rowset.RowSet:
        """Return the rows with the variables that the statements of an edge bind: the statements, their predicates
        and qualifiers.
        """
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
        # Its ends are in their sets already.
        inner_names = [other for other in part.variables if other not in (edge.subject, edge.object)]
        rows = self._differing(self._restrict(rows, inner_names))
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
            condition_numbers = numbers
            cells = Cells(len(condition_numbers), lambda name: snapshot.arrays.get(f"q.{name}").take(condition_numbers))
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
        # Both terms are columns for now, so that a binding that drops rows affects both.
        rows = rows.take(places).having(**{"\0key": rowset.Terms(rowset.PREDICATE, keys), "\0value": terms})
        if isinstance(qualifier.key, alg.Variable):
            rows = self._bind(rows, qualifier.key.name, rows.columns["\0key"])
        if isinstance(qualifier.value, alg.Variable):
            rows = self._bind(rows, qualifier.value.name, rows.columns["\0value"])
        return rowset.RowSet(
            rows.scope, rows.size, {name: column for name, column in rows.columns.items() if name not in ("\0key", "\0value")}
        )

    def _differing(self, rows: rowset.RowSet) -> rowset.RowSet:
        """Return the rows in which parts that must match different statements do."""
        for first, second in self.distinct_pairs:
            left, right = rows.columns.get(hidden(first)), rows.columns.get(hidden(second))
            if left is not None and right is not None:
                rows = rows.where(left.numbers != right.numbers)
        return rows


def _run_lengths(keys: NDArray[Any]) -> tuple[NDArray[Any], rowset.Places]:
    """Return the distinct ones of ascending keys, and the count of each."""
    first = np.flatnonzero(changed(keys)) if len(keys) else np.empty(0, np.int64)
    return keys.take(first), np.diff(np.append(first, len(keys)))


def _parted(keys: NDArray[Any], names: Sequence[str], size: int) -> dict[str, rowset.Terms]:
    """Split combined keys into their columns; each but the first is below `size`."""
    columns = {}
    for name in reversed(names):
        quotient = keys // keys.dtype.type(size)
        columns[name] = rowset.Terms(rowset.ENTITY, (keys - quotient * keys.dtype.type(size)).astype(np.int32))
        keys = quotient
    return {name: columns[name] for name in names}


def _distinct_pairs(pattern: alg.Pattern, edges: Sequence[Edge]) -> list[tuple[int, int]]:
    """Return pairs of parts of a pattern that could match the same statement and must not."""
    count = len(pattern.statements) if pattern.different else 0
    return [(first, second) for second in range(count) for first in range(second) if may_meet(edges[second], edges[first])]


def _edges(run: Run, pattern: alg.Pattern) -> list[Edge]:
    parts: tuple[alg.StatementPattern | alg.MembershipPattern, ...] = (*pattern.statements, *pattern.memberships)
    return [Edge(run, part, number) for number, part in enumerate(parts)]


def solve(run: Run, node: alg.Pattern) -> rowset.RowSet:
    """Return the rows of a pattern, as far as the plan needs them."""
    keys, _ = counted_by(run, node)
    if keys is not None:
        return Solver(run, node, needed=keys, counting=True).rows()
    return Solver(run, node, _restricted_by_join(run, node), needed=needed(run, node)).rows()


def counted_by(run: Run, node: alg.Pattern) -> tuple[Set[str] | None, tuple[str, str] | None]:
    """Return the keys of a `GroupRows` that only counts the rows of a pattern (None if they are used otherwise), and
    the two variables of entities that a filter in between requires to differ.
    """
    taker, pair = only_taker(run, node), None
    if isinstance(taker, alg.Filter):
        pair = _differing_entities(run, node, taker)
        taker = None if pair is None else only_taker(run, taker)
    if not isinstance(taker, alg.GroupRows) or not taker.aggregates:
        return None, None
    if any(
        aggregate.function != "count" or aggregate.distinct or aggregate.of not in (None, *node.variables)
        for aggregate in taker.aggregates
    ):
        return None, None
    return (None, None) if _distinct_pairs(node, _edges(run, node) if node.different else []) else (set(taker.keys), pair)


def _differing_entities(run: Run, node: alg.Pattern, test: alg.Filter) -> tuple[str, str] | None:
    """Return the two variables of a pattern that a filter requires to differ, if both are ends of statements, and
    entities.
    """
    comparison = test.test
    if not isinstance(comparison, Comparison) or comparison.operator != "<>":
        return None
    if (
        not isinstance(comparison.left, Named)
        or not isinstance(comparison.right, Named)
        or comparison.left.name == comparison.right.name
    ):
        return None
    pair, edges = (comparison.left.name, comparison.right.name), _edges(run, node)
    inner = {name for edge in edges for name in edge.inner}
    ends = {edge.subject for edge in edges} | {edge.object for edge in edges if edge.family == "relation"}
    return pair if ends.issuperset(pair) and inner.isdisjoint(pair) else None


def differing(run: Run, node: alg.Filter, rows: rowset.RowSet) -> rowset.RowSet:
    """Return counted rows of a pattern without those in which two variables are equal: the rows of the pattern with
    one variable in place of both are subtracted.
    """
    pattern = node.of
    assert isinstance(pattern, alg.Pattern)
    keys, pair = counted_by(run, pattern)
    assert keys is not None
    assert pair is not None
    kept_name, replaced = pair

    def substitute(place: Any) -> Any:
        return alg.Variable(kept_name) if isinstance(place, alg.Variable) and place.name == replaced else place

    statements = tuple(
        replace(part, subject=substitute(part.subject), object=substitute(part.object)) for part in pattern.statements
    )
    memberships = tuple(
        replace(part, member=substitute(part.member), concept=substitute(part.concept)) for part in pattern.memberships
    )
    merged_pattern = alg.Pattern(statements, memberships)
    equal = Solver(run, merged_pattern, needed={kept_name if key == replaced else key for key in keys}, counting=True).rows()
    if not equal.size:
        return rows
    columns = {name: equal.column(kept_name if name == replaced else name) for name in rows.columns if name != rowset.TIMES}
    times = equal.columns[rowset.TIMES].numbers
    negative = rowset.RowSet(run.scope, equal.size, {**columns, rowset.TIMES: rowset.Terms(rowset.GIVEN, -times)})
    return rowset.concatenated([rows, negative], list(rows.columns), run.scope)


def only_taker(run: Run, node: Node) -> Node | None:
    """Return the only consumer of an operator's rows; None if there are several, or none."""
    takers = run.consumers(node)
    return takers[0] if len(takers) == 1 else None


#: Joins that use only the right rows that are compatible with a left one.
_RESTRICTING_JOINS: Final = (alg.Join, alg.LeftJoin, alg.SemiJoin, alg.AntiJoin, alg.MarkJoin, alg.MinusRows)


def _restricted_by_join(run: Run, node: alg.Pattern) -> rowset.RowSet | None:
    """Return the bindings that the left rows of a join have for the pattern on its right, if they are few: other rows
    of the pattern are not needed.
    """
    taker = only_taker(run, node)
    if not isinstance(taker, _RESTRICTING_JOINS) or taker.right is not node or id(taker.left) not in run.results:
        return None
    left = run.rows(taker.left)
    if left.size * 8 > run.snapshot.statements:
        return None
    shared = [name for name in node.variables if name in left.columns and left.columns[name].bound.all()]
    return left.only(shared).distinct() if shared else None


def needed(run: Run, node: Node) -> Set[str] | None:
    """Return the variables that the only consumer of an operator needs; None for all."""
    taker = only_taker(run, node)
    if isinstance(taker, alg.Project):
        return {old for _, old in taker.names}
    if isinstance(taker, alg.GroupRows):
        if any(aggregate.of is None and aggregate.distinct for aggregate in taker.aggregates):
            return None
        return {*taker.keys, *(aggregate.of for aggregate in taker.aggregates if aggregate.of is not None)}
    if isinstance(taker, alg.EntitiesOf | alg.FactsOf):
        return {taker.variable}
    if isinstance(taker, alg.Filter):
        above = needed(run, taker)
        return None if above is None else above | variables(taker.test)
    if isinstance(taker, alg.Extend):
        above = needed(run, taker)
        return None if above is None else (above - {taker.variable}) | variables(taker.expression)
    return None
