"""Paths in process: which ends are connected (`Path` with "ends"), trails, and shortest paths, level by level over columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra.operators import Entities
from condgraph.engine.algebra.solutions import Path, StatementPattern, Variable
from condgraph.engine.bounds import changed, check, different, in_order, watched
from condgraph.engine.errors import PlanError
from condgraph.engine.execute import rowset
from condgraph.engine.execute.edges import Edge, Index
from condgraph.engine.execute.sets import EMPTY, distinct
from condgraph.engine.execute.terms import PathAt
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.snapshot import ranges

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

Numbers = NDArray[np.int32]


class Steps:
    """The hops of a path as one relation: from each entity to the entities and statements one step on."""

    def __init__(self, run: Run, node: Path, *, backward: bool = False) -> None:
        self._indexes: list[tuple[Edge, Index]] = []
        for number, hop in enumerate(node.hops):
            ways = ("forward", "backward") if hop.direction == "either" else (hop.direction,)
            pattern = StatementPattern(Variable("s"), hop.predicates, Variable("o"), family="relation", among=node.among)
            edge = Edge(run, pattern, number)
            for way in ways:
                self._indexes.append((edge, edge.index((way == "backward") != backward)))

    def onward(self, entities: Numbers) -> tuple[rowset.Places, Numbers, Numbers]:
        """Of each of these entities, by its place, the entities one step on and the statements that lead there."""
        at: list[rowset.Places] = []
        ends: list[Numbers] = []
        through: list[Numbers] = []
        for edge, index in self._indexes:
            low, high = index.bounds(entities)
            places = ranges(low, high)
            at.append(np.arange(len(entities)).repeat(high - low))
            ends.append(index.far.take(places))
            through.append(edge.statements(index.entries.take(places)))
        if len(at) == 1:
            return at[0], ends[0], through[0]
        places, targets, statements = np.concatenate(at), np.concatenate(ends), np.concatenate(through)
        # A statement that several hops name, and a loop in both directions, is one step.
        order = in_order([places, statements, targets])
        places, targets, statements = places.take(order), targets.take(order), statements.take(order)
        fresh = changed(places, statements, targets)
        return places[fresh], targets[fresh], statements[fresh]

    def sizes(self, entities: Numbers) -> rowset.Places:
        """How many steps there are at most from each of these entities."""
        total = np.zeros(len(entities), np.int64)
        for _, index in self._indexes:
            low, high = index.bounds(entities)
            total += high - low
        return total


def _pairs(start: Numbers, end: Numbers) -> rowset.Places:
    return start.astype(np.int64) << 32 | end


def reached(steps: Steps, starts: Numbers, least: int, most: int | None) -> tuple[Numbers, Numbers]:
    """The distinct pairs of a start and an entity that a walk of `least` to `most` steps leads to."""
    frontier = different(_pairs(starts, starts))
    for _ in range(least):
        frontier = _next(steps, frontier)
        if not len(frontier):
            return EMPTY, EMPTY
    found = frontier
    length = least
    while len(frontier) and (most is None or length < most):
        frontier = _next(steps, frontier)
        frontier = frontier[~_within(found, frontier)]
        if len(frontier):
            found = np.sort(np.concatenate([found, frontier]))
            _bounded(len(found))
        length += 1
    return (found >> 32).astype(np.int32), (found & 0xFFFFFFFF).astype(np.int32)


def _bounded(count: int) -> None:
    if count > rowset.MOST_ROWS:
        raise rowset.too_many(None, "a path", "bound its length, or where it begins")


def _next(steps: Steps, pairs: rowset.Places) -> rowset.Places:
    """The pairs one step on, each once."""
    parts: list[rowset.Places] = []
    ends = (pairs & 0xFFFFFFFF).astype(np.int32)
    starts = (pairs >> 32).astype(np.int32)
    for low, high in rowset.chunks(steps.sizes(ends), 4 * rowset.CHUNK):
        at, targets, _ = steps.onward(ends[low:high])
        parts.append(different(_pairs(starts[low:high].take(at), targets)))
        if sum(map(len, parts)) > 2 * rowset.MOST_ROWS:
            _bounded(sum(map(len, parts)))
    return parts[0] if len(parts) == 1 else different(np.concatenate(parts)) if parts else pairs[:0]


class Walks:
    """Paths as columns: where each begins and ends, and its statements, -1 after the last one."""

    def __init__(self, start: Numbers, end: Numbers, statements: list[Numbers]) -> None:
        self.start, self.end, self.statements = start, end, statements

    def take(self, places: rowset.Places) -> Walks:
        """Some of the paths."""
        return Walks(self.start.take(places), self.end.take(places), [one.take(places) for one in self.statements])

    @classmethod
    def joined(cls, parts: list[Walks]) -> Walks:
        """Paths one after the other."""
        longest = max((len(part.statements) for part in parts), default=0)
        columns = [
            np.concatenate(
                [part.statements[at] if at < len(part.statements) else np.full(len(part.start), -1, np.int32) for part in parts]
            )
            for at in range(longest)
        ]
        none = [EMPTY]
        return cls(
            np.concatenate([part.start for part in parts] or none), np.concatenate([part.end for part in parts] or none), columns
        )


#: Which steps may extend paths: from the paths, and for each step the place of its path, its end and its statement.
Fresh: TypeAlias = Callable[[Walks, rowset.Places, Numbers, Numbers], NDArray[np.bool_]]


def _longer(steps: Steps, walks: Walks, total: int, fresh: Fresh) -> Walks:
    """The paths with one step more; `total` counts the paths that are there already."""
    parts: list[Walks] = []
    for low, high in rowset.chunks(steps.sizes(walks.end)):
        at, targets, statements = steps.onward(walks.end[low:high])
        at = at + low
        chosen = np.flatnonzero(fresh(walks, at, targets, statements))
        at = at.take(chosen)
        before = [column.take(at) for column in walks.statements]
        parts.append(Walks(walks.start.take(at), targets.take(chosen), [*before, statements.take(chosen)]))
        _bounded(total + sum(len(part.start) for part in parts))
    return Walks.joined(parts) if parts else walks.take(np.empty(0, np.int64))


def trails(steps: Steps, starts: Numbers, least: int, most: int | None, ends: Numbers | None, size: int) -> Walks:
    """Every path from a start that uses no statement twice; with `ends` only those that end in one of them."""

    def unused(walks: Walks, at: rowset.Places, targets: Numbers, statements: Numbers) -> NDArray[np.bool_]:
        fresh = np.ones(len(at), bool)
        for before in walks.statements:
            fresh &= before.take(at) != statements
        return fresh

    walks = Walks(starts, starts, [])
    found: list[Walks] = []
    total, length = 0, 0
    mask = None
    if ends is not None:
        mask = np.zeros(size, bool)
        mask[ends.astype(np.intp)] = True
    while True:
        if length >= least:
            there = walks if mask is None else walks.take(np.flatnonzero(mask.take(walks.end)))
            total += len(there.start)
            _bounded(total)
            found.append(there)
        if not len(walks.start) or (most is not None and length >= most):
            return Walks.joined(found)
        walks = _longer(steps, walks, total, unused)
        length += 1


def shortest(steps: Steps, back: Steps, starts: Numbers, ends: Numbers | None, least: int, most: int | None, size: int) -> Walks:
    """All shortest paths from each start to each other entity (with `ends` to these alone); with `least` 0 also to itself.
    Entities are looked for level by level, until all ends are found, and paths read from the ends `back`.
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
        frontier = _next(steps, frontier)
        frontier = frontier[~_within(seen, frontier)]
        seen = np.sort(np.concatenate([seen, frontier]))
        _bounded(len(seen))
        levels.append(frontier)
        if mask is not None:
            missing -= int(mask.take(frontier & 0xFFFFFFFF).sum())
    found: list[Walks] = []
    total = 0
    for length in range(least, len(levels)):
        level = levels[length] if mask is None else levels[length][mask.take(levels[length] & 0xFFFFFFFF)]
        if not len(level):
            continue
        begin, end = (level >> 32).astype(np.int32), (level & 0xFFFFFFFF).astype(np.int32)
        walks = Walks(_places(begin), end, [])
        for before in reversed(levels[:length]):

            def nearer(
                walks: Walks, at: rowset.Places, targets: Numbers, statements: Numbers, before: rowset.Places = before,
                begin: Numbers = begin,
            ) -> NDArray[np.bool_]:  # fmt: skip
                return _within(before, _pairs(begin.take(walks.start.take(at)), targets))

            walks = _longer(back, walks, total, nearer)
        total += len(walks.start)
        found.append(Walks(begin.take(walks.start), end.take(walks.start), walks.statements[::-1]))
    return Walks.joined(found)


def _within(pairs: rowset.Places, those: rowset.Places) -> NDArray[np.bool_]:
    """Which of some pairs are among sorted ones."""
    if not len(pairs):
        return np.zeros(len(those), bool)
    mask: NDArray[np.bool_] = pairs.take(np.minimum(np.searchsorted(pairs, those), len(pairs) - 1)) == those
    return mask


# -- the operator ------------------------------------------------------------------------------------


def paths(run: Run, node: Path, *, seed: rowset.RowSet | None = None) -> tuple[rowset.RowSet, Walks | None]:
    """The rows of a path over `seed` (the rows of `of`), and the paths by row where they were worked out."""
    if node.least < 0 or (node.most is not None and node.most < node.least) or not node.hops:
        raise PlanError("a path has 0 or more steps, no fewer at most than at least, and one hop or more")
    if node.mode == "ends" and (node.path is not None or node.length is not None):
        raise PlanError("a path that asks for its ends alone has no path and no length to bind")
    if node.mode in ("shortest", "all shortest") and node.least > 1:
        raise PlanError("the shortest path has at least 0 or 1 steps", hint="enumerate trails instead")
    before = seed if seed is not None else rowset.RowSet(run.scope, 1, {}) if node.of is None else run.rows(node.of)
    starts, ends = (_end(run, place, before) for place in (node.subject, node.object))
    # From the side with fewer entities, where nothing says how the path is to be read.
    backward = ends is not None and (starts is None or len(ends) < len(starts))
    near, far = (ends, starts) if backward else (starts, ends)
    if near is None:
        near = _everything(run, node)
    steps = Steps(run, node, backward=backward)
    walks: Walks | None = None
    size = run.snapshot.entities
    if node.mode == "ends":
        one, other = reached(steps, near, node.least, node.most)
    else:
        walk = trails(steps, near, node.least, node.most, far, size) if node.mode == "trails" else None
        if walk is None:
            walk = shortest(steps, Steps(run, node, backward=not backward), near, far, node.least, node.most, size)
        walks = walk
        one, other = walks.start, walks.end
    if backward:
        one, other = other, one
    rows = rowset.RowSet(
        run.scope,
        len(one),
        {
            "\0s": rowset.Terms(rowset.ENTITY, one),
            "\0o": rowset.Terms(rowset.ENTITY, other),
            "\0walk": rowset.Terms(rowset.GIVEN, _places(one)),
        },
    )
    rows = _placed(run, node, rows)
    shared = [name for name in rows.columns if name in before.columns]
    left, right = rowset.compatible(before, rows, shared)
    result = rowset.merged(before, rows, left, right, list({**before.columns, **rows.columns}))
    if walks is not None:
        result, walks = _named(run, node, result, walks, backward=backward)
    columns = {name: column for name, column in result.columns.items() if not name.startswith("\0")}
    return rowset.RowSet(run.scope, result.size, columns, ordered=False), walks


def _places(one: Numbers) -> Numbers:
    return np.arange(len(one), dtype=np.int32)


def _end(run: Run, place: object, rows: rowset.RowSet) -> Numbers | None:
    """The entities that one end of a path may be; None for any."""
    if isinstance(place, Entities):
        return run.entities(place)
    if isinstance(place, Variable) and place.name in rows.columns:
        column = rows.columns[place.name]
        if column.bound.all():
            entities = column.entities()
            return distinct(entities[entities >= 0].astype(np.int32), run.snapshot.entities)
    return None


def _everything(run: Run, node: Path) -> Numbers:
    """Where a path may begin that nothing bounds: with no steps anywhere, else where a relation begins."""
    return run.snapshot.every((EntityKind.ENTITY, EntityKind.CONCEPT, EntityKind.ROW))


def _placed(run: Run, node: Path, rows: rowset.RowSet) -> rowset.RowSet:
    """The ends of paths as the variables at their places."""
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
        # Ends that are not bound are looked for, not counted.
        names = [place.name for place in (node.subject, node.object) if isinstance(place, Variable)]
        rows = rows.only(list(dict.fromkeys(names))).distinct() if names else rows.only([]).take(np.arange(min(rows.size, 1)))
    return rows


def _named(run: Run, node: Path, rows: rowset.RowSet, walks: Walks, *, backward: bool) -> tuple[rowset.RowSet, Walks]:
    """The rows with the path and its length; of the shortest ones the first of each row."""
    walks = walks.take(rows.columns["\0walk"].numbers.astype(np.int64))
    lengths = np.zeros(rows.size, np.int64)
    for column in walks.statements:
        lengths += column >= 0
    if node.mode == "shortest":
        # The first in the order of statements, which is that of predicates, subjects and objects.
        read = list(walks.statements)
        pair = [rows.columns[name].numbers for name in ("\0s", "\0o")]
        others = [rows.ranks(name) for name in rows.columns if not name.startswith("\0")]
        order = in_order([*others, *pair, *(_from_start(read, lengths, at, backward) for at in range(len(read)))])
        chosen = np.sort(order[changed(*(mark.take(order) for mark in (*others, *pair)))])
        rows, walks, lengths = rows.take(chosen), walks.take(chosen), lengths.take(chosen)
    if node.length is not None:
        distinct_lengths, which = np.unique(lengths, return_inverse=True)
        numbers = np.array([rowset.given(run.scope, int(one)) for one in distinct_lengths.tolist()], np.int32)
        rows = rows.having(**{node.length.name: rowset.Terms(rowset.GIVEN, numbers.take(which) if len(which) else EMPTY)})
    if node.path is not None:
        rows = rows.having(**{node.path.name: _path_terms(run, rows, walks, lengths, backward=backward)})
    return rows, walks


def _from_start(columns: list[Numbers], lengths: rowset.Places, at: int, backward: bool) -> Numbers:
    """The statement of each path that is `at` steps from its start."""
    if not backward:
        return columns[at]
    found = np.full(len(lengths), -1, np.int32)
    place = lengths - 1 - at
    for number, column in enumerate(columns):
        chosen = place == number
        found[chosen] = column[chosen]
    return found


def _path_terms(run: Run, rows: rowset.RowSet, walks: Walks, lengths: rowset.Places, *, backward: bool) -> rowset.Terms:
    snapshot = run.snapshot
    numbers = np.empty(rows.size, np.int32)
    columns = [_from_start(walks.statements, lengths, at, backward) for at in range(len(walks.statements))]
    starts = rows.columns["\0s"].numbers.tolist()
    for row in watched(range(rows.size), 1 << 10):
        at = starts[row]
        entities, statements = [at], []
        for column in columns[: int(lengths[row])]:
            statement = int(column[row])
            subject, target = int(snapshot.relation_subject[statement]), int(snapshot.relation_object[statement])
            at = target if subject == at else subject
            entities.append(at)
            statements.append(statement)
        numbers[row] = rowset.given(run.scope, PathAt(tuple(entities), tuple(statements)))
    return rowset.Terms(rowset.GIVEN, numbers)
