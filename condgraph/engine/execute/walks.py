"""Paths in process: connected pairs (`Path` with "ends"), trails, and shortest paths, level by level over columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra.operators import Entities
from condgraph.engine.algebra.solutions import Path, StatementPattern, Variable
from condgraph.engine.bounds import changed, check, different, in_order, watched
from condgraph.engine.errors import PlanError
from condgraph.engine.execute import rowset
from condgraph.engine.execute.edges import Edge, Index
from condgraph.engine.execute.sets import EMPTY, among, distinct
from condgraph.engine.execute.terms import PathAt
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.snapshot import ranges

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

Numbers = NDArray[np.int32]
#: More than all pairs of entities, for which no mask is made.
_PAIRS: Final = 1 << 62


class Steps:
    """The hops of a path as one relation, from each entity to the entities and statements one step on."""

    def __init__(self, run: Run, node: Path, *, backward: bool = False) -> None:
        self._indexes: list[tuple[Edge, Index]] = []
        for number, hop in enumerate(node.hops):
            directions = ("forward", "backward") if hop.direction == "either" else (hop.direction,)
            pattern = StatementPattern(Variable("s"), hop.predicates, Variable("o"), family="relation", among=node.among)
            edge = Edge(run, pattern, number)
            for direction in directions:
                self._indexes.append((edge, edge.index((direction == "backward") != backward)))

    def onward(self, entities: Numbers) -> tuple[rowset.Places, Numbers, Numbers]:
        """Return the steps from these entities: the position of the entity, the entity one step on, and the statement
        that leads there.
        """
        positions: list[rowset.Places] = []
        ends: list[Numbers] = []
        statement_parts: list[Numbers] = []
        for edge, index in self._indexes:
            low, high = index.bounds(entities)
            places = ranges(low, high)
            positions.append(np.arange(len(entities)).repeat(high - low))
            ends.append(index.far.take(places))
            statement_parts.append(edge.statements(index.entries.take(places)))
        if len(positions) == 1:
            return positions[0], ends[0], statement_parts[0]
        places, targets, statements = np.concatenate(positions), np.concatenate(ends), np.concatenate(statement_parts)
        # A statement matched by several hops, and a loop matched in both directions, is one step.
        order = in_order([places, statements, targets])
        places, targets, statements = places.take(order), targets.take(order), statements.take(order)
        is_first = changed(places, statements, targets)
        return places[is_first], targets[is_first], statements[is_first]

    def sizes(self, entities: Numbers) -> rowset.Places:
        """Return an upper bound of the number of steps from each of these entities."""
        total = np.zeros(len(entities), np.int64)
        for _, index in self._indexes:
            low, high = index.bounds(entities)
            total += high - low
        return total


def _pairs(start: Numbers, end: Numbers) -> rowset.Places:
    return start.astype(np.int64) << 32 | end


def reached(steps: Steps, starts: Numbers, least: int, most: int | None) -> tuple[Numbers, Numbers]:
    """Return the distinct pairs of a start and an entity at the end of a walk of `least` to `most` steps."""
    frontier = different(_pairs(starts, starts))
    for _ in range(least):
        frontier = _next_pairs(steps, frontier)
        if not len(frontier):
            return EMPTY, EMPTY
    pairs = frontier
    length = least
    while len(frontier) and (most is None or length < most):
        frontier = _next_pairs(steps, frontier)
        frontier = frontier[~among(frontier, pairs, _PAIRS)]
        if len(frontier):
            pairs = np.sort(np.concatenate([pairs, frontier]))
            _bounded(len(pairs))
        length += 1
    return (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)


def _bounded(count: int) -> None:
    if count > rowset.MAX_ROWS:
        raise rowset.too_many(None, "a path", "bound its length, or where it begins")


def _next_pairs(steps: Steps, pairs: rowset.Places) -> rowset.Places:
    """Return the distinct pairs one step on."""
    parts: list[rowset.Places] = []
    ends = (pairs & 0xFFFFFFFF).astype(np.int32)
    starts = (pairs >> 32).astype(np.int32)
    for low, high in rowset.chunks(steps.sizes(ends), 4 * rowset.CHUNK):
        positions, targets, _ = steps.onward(ends[low:high])
        parts.append(different(_pairs(starts[low:high].take(positions), targets)))
        if sum(map(len, parts)) > 2 * rowset.MAX_ROWS:
            _bounded(sum(map(len, parts)))
    return parts[0] if len(parts) == 1 else different(np.concatenate(parts)) if parts else pairs[:0]


class Walks:
    """Paths as columns: their starts, their ends, and their statements step by step, -1 after the last one."""

    def __init__(self, start: Numbers, end: Numbers, statements: list[Numbers]) -> None:
        self.start, self.end, self.statements = start, end, statements

    def take(self, places: rowset.Places) -> Walks:
        """Return some of the paths."""
        return Walks(self.start.take(places), self.end.take(places), [column.take(places) for column in self.statements])

    @classmethod
    def joined(cls, parts: list[Walks]) -> Walks:
        """Return the concatenated paths."""
        longest = max((len(part.statements) for part in parts), default=0)
        columns = [
            np.concatenate(
                [part.statements[step] if step < len(part.statements) else np.full(len(part.start), -1, np.int32) for part in parts]
            )
            for step in range(longest)
        ]
        none = [EMPTY]
        return cls(
            np.concatenate([part.start for part in parts] or none), np.concatenate([part.end for part in parts] or none), columns
        )


#: Returns which steps may extend paths, given the paths, and for each step the position of its path, its end and its statement.
Fresh: TypeAlias = Callable[[Walks, rowset.Places, Numbers, Numbers], NDArray[np.bool_]]


def _longer(steps: Steps, walks: Walks, total: int, fresh: Fresh) -> Walks:
    """Return the paths extended by one step; `total` is the number of paths found so far."""
    parts: list[Walks] = []
    for low, high in rowset.chunks(steps.sizes(walks.end)):
        positions, targets, statements = steps.onward(walks.end[low:high])
        positions = positions + low
        chosen = np.flatnonzero(fresh(walks, positions, targets, statements))
        positions = positions.take(chosen)
        previous = [column.take(positions) for column in walks.statements]
        parts.append(Walks(walks.start.take(positions), targets.take(chosen), [*previous, statements.take(chosen)]))
        _bounded(total + sum(len(part.start) for part in parts))
    return Walks.joined(parts) if parts else walks.take(np.empty(0, np.int64))


def trails(steps: Steps, starts: Numbers, least: int, most: int | None, ends: Numbers | None, size: int) -> Walks:
    """Return every path from a start that uses no statement twice; with `ends` only those that end in one of them."""

    def unused(walks: Walks, at: rowset.Places, targets: Numbers, statements: Numbers) -> NDArray[np.bool_]:
        is_unused = np.ones(len(at), bool)
        for column in walks.statements:
            is_unused &= column.take(at) != statements
        return is_unused

    walks = Walks(starts, starts, [])
    results: list[Walks] = []
    total, length = 0, 0
    mask = None
    if ends is not None:
        mask = np.zeros(size, bool)
        mask[ends.astype(np.intp)] = True
    while True:
        if length >= least:
            complete = walks if mask is None else walks.take(np.flatnonzero(mask.take(walks.end)))
            total += len(complete.start)
            _bounded(total)
            results.append(complete)
        if not len(walks.start) or (most is not None and length >= most):
            return Walks.joined(results)
        walks = _longer(steps, walks, total, unused)
        length += 1


def shortest(steps: Steps, back: Steps, starts: Numbers, ends: Numbers | None, least: int, most: int | None, size: int) -> Walks:
    """Return all shortest paths from each start to each other entity (with `ends` only to these); with `least` 0 also
    to itself. A breadth-first search over the levels stops when all ends are found; the paths are then read from the
    ends, along `back`.
    """
    starts = different(starts)
    frontier = seen = _pairs(starts, starts)
    levels = [frontier]
    mask, missing = None, -1
    if ends is not None:
        mask = np.zeros(size, bool)
        mask[ends.astype(np.intp)] = True
        missing = len(starts) * int(mask.sum()) - int(mask.take(starts).sum())
    while len(frontier) and missing and (most is None or len(levels) <= most):
        check()
        frontier = _next_pairs(steps, frontier)
        frontier = frontier[~among(frontier, seen, _PAIRS)]
        seen = np.sort(np.concatenate([seen, frontier]))
        _bounded(len(seen))
        levels.append(frontier)
        if mask is not None:
            missing -= int(mask.take(frontier & 0xFFFFFFFF).sum())
    results: list[Walks] = []
    total = 0
    for length in range(least, len(levels)):
        level = levels[length] if mask is None else levels[length][mask.take(levels[length] & 0xFFFFFFFF)]
        if not len(level):
            continue
        begin, end = (level >> 32).astype(np.int32), (level & 0xFFFFFFFF).astype(np.int32)
        walks = Walks(_positions(begin), end, [])
        for before in reversed(levels[:length]):

            def nearer(
                walks: Walks, at: rowset.Places, targets: Numbers, statements: Numbers, before: rowset.Places = before,
                begin: Numbers = begin,
            ) -> NDArray[np.bool_]:  # fmt: skip
                return among(_pairs(begin.take(walks.start.take(at)), targets), before, _PAIRS)

            walks = _longer(back, walks, total, nearer)
        total += len(walks.start)
        results.append(Walks(begin.take(walks.start), end.take(walks.start), walks.statements[::-1]))
    return Walks.joined(results)


# -- the operator ------------------------------------------------------------------------------------


def paths(run: Run, node: Path, *, seed: rowset.RowSet | None = None) -> tuple[rowset.RowSet, Walks | None]:
    """Return the rows of a path over `seed` (default: the rows of `of`), and the paths by row if they were
    enumerated.
    """
    if node.least < 0 or (node.most is not None and node.most < node.least) or not node.hops:
        raise PlanError("a path has 0 or more steps, no fewer at most than at least, and one hop or more")
    if node.mode == "ends" and (node.path is not None or node.length is not None):
        raise PlanError("a path that asks for its ends alone has no path and no length to bind")
    if node.mode in ("shortest", "all shortest") and node.least > 1:
        raise PlanError("the shortest path has at least 0 or 1 steps", hint="enumerate trails instead")
    input_rows = seed if seed is not None else rowset.RowSet(run.scope, 1, {}) if node.of is None else run.rows(node.of)
    starts, ends = (_end(run, place, input_rows) for place in (node.subject, node.object))
    # Search from the side with fewer entities.
    backward = ends is not None and (starts is None or len(ends) < len(starts))
    near, far = (ends, starts) if backward else (starts, ends)
    if near is None:
        near = _everything(run)
    steps = Steps(run, node, backward=backward)
    walks: Walks | None = None
    size = run.snapshot.entities
    if node.mode == "ends":
        start_column, end_column = reached(steps, near, node.least, node.most)
    else:
        walks = trails(steps, near, node.least, node.most, far, size) if node.mode == "trails" else None
        if walks is None:
            walks = shortest(steps, Steps(run, node, backward=not backward), near, far, node.least, node.most, size)
        start_column, end_column = walks.start, walks.end
    if backward:
        start_column, end_column = end_column, start_column
    rows = rowset.RowSet(
        run.scope,
        len(start_column),
        {
            "\0s": rowset.Terms(rowset.ENTITY, start_column),
            "\0o": rowset.Terms(rowset.ENTITY, end_column),
            "\0walk": rowset.Terms(rowset.GIVEN, _positions(start_column)),
        },
    )
    rows = _placed(run, node, rows)
    shared = [name for name in rows.columns if name in input_rows.columns]
    left, right = rowset.compatible(input_rows, rows, shared)
    result = rowset.merged(input_rows, rows, left, right, list({**input_rows.columns, **rows.columns}))
    if walks is not None:
        result, walks = _with_path(run, node, result, walks, backward=backward)
    columns = {name: column for name, column in result.columns.items() if not name.startswith("\0")}
    return rowset.RowSet(run.scope, result.size, columns, ordered=False), walks


def _positions(one: Numbers) -> Numbers:
    return np.arange(len(one), dtype=np.int32)


def _end(run: Run, place: object, rows: rowset.RowSet) -> Numbers | None:
    """Return the entities that one end of a path may be; None for any."""
    if isinstance(place, Entities):
        return run.entities(place)
    if isinstance(place, Variable) and place.name in rows.columns:
        column = rows.columns[place.name]
        if column.bound.all():
            entities = column.entities()
            return distinct(entities[entities >= 0].astype(np.int32), run.snapshot.entities)
    return None


def _everything(run: Run) -> Numbers:
    """Return the possible starts of a path without a bound end: all entities and concepts."""
    return run.snapshot.every((EntityKind.ENTITY, EntityKind.CONCEPT, EntityKind.ROW))


def _placed(run: Run, node: Path, rows: rowset.RowSet) -> rowset.RowSet:
    """Bind the ends of paths to the variables at their places."""
    for name, place in (("\0s", node.subject), ("\0o", node.object)):
        column = rows.columns[name]
        if isinstance(place, Entities):
            rows = rows.where(run.among(column.numbers, run.entities(place)))
        elif isinstance(place, Variable):
            if place.name in rows.columns:
                rows = rows.where(rows.columns[place.name].numbers == column.numbers)
            else:
                rows = rows.having(**{place.name: column})
    if node.mode == "ends":
        # In this mode, ends without a variable are only tested, and their number does not matter.
        names = [place.name for place in (node.subject, node.object) if isinstance(place, Variable)]
        rows = rows.only(list(dict.fromkeys(names))).distinct() if names else rows.only([]).take(np.arange(min(rows.size, 1)))
    return rows


def _with_path(run: Run, node: Path, rows: rowset.RowSet, walks: Walks, *, backward: bool) -> tuple[rowset.RowSet, Walks]:
    """Return the rows with the path and its length; for mode "shortest" the first path of each row."""
    walks = walks.take(rows.columns["\0walk"].numbers.astype(np.int64))
    lengths = np.zeros(rows.size, np.int64)
    for column in walks.statements:
        lengths += column >= 0
    if node.mode == "shortest":
        # The first by statement numbers, which are in the order of predicates, subjects and objects.
        columns = list(walks.statements)
        pair = [rows.columns[name].numbers for name in ("\0s", "\0o")]
        row_ranks = [rows.ranks(name) for name in rows.columns if not name.startswith("\0")]
        order = in_order([*row_ranks, *pair, *(_from_start(columns, lengths, at, backward) for at in range(len(columns)))])
        chosen = np.sort(order[changed(*(key.take(order) for key in (*row_ranks, *pair)))])
        rows, walks, lengths = rows.take(chosen), walks.take(chosen), lengths.take(chosen)
    if node.length is not None:
        distinct_lengths, inverse = np.unique(lengths, return_inverse=True)
        numbers = np.array([rowset.given(run.scope, int(length)) for length in distinct_lengths.tolist()], np.int32)
        rows = rows.having(**{node.length.name: rowset.Terms(rowset.GIVEN, numbers.take(inverse) if len(inverse) else EMPTY)})
    if node.path is not None:
        rows = rows.having(**{node.path.name: _path_terms(run, rows, walks, lengths, backward=backward)})
    return rows, walks


def _from_start(columns: list[Numbers], lengths: rowset.Places, at: int, backward: bool) -> Numbers:
    """Return the statement of each path that is `at` steps from its start."""
    if not backward:
        return columns[at]
    statements = np.full(len(lengths), -1, np.int32)
    place = lengths - 1 - at
    for number, column in enumerate(columns):
        chosen = place == number
        statements[chosen] = column[chosen]
    return statements


def _path_terms(run: Run, rows: rowset.RowSet, walks: Walks, lengths: rowset.Places, *, backward: bool) -> rowset.Terms:
    snapshot = run.snapshot
    numbers = np.empty(rows.size, np.int32)
    columns = [_from_start(walks.statements, lengths, step, backward) for step in range(len(walks.statements))]
    starts = rows.columns["\0s"].numbers.tolist()
    for row in watched(range(rows.size), 1 << 10):
        current = starts[row]
        entities, statements = [current], []
        for column in columns[: int(lengths[row])]:
            statement = int(column[row])
            subject, target = int(snapshot.relation_subject[statement]), int(snapshot.relation_object[statement])
            current = target if subject == current else subject
            entities.append(current)
            statements.append(statement)
        numbers[row] = rowset.given(run.scope, PathAt(tuple(entities), tuple(statements)))
    return rowset.Terms(rowset.GIVEN, numbers)
