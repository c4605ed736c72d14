"""The operators of `algebra.solutions` in process, with their table."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from condgraph.engine.algebra import expressions as ex
from condgraph.engine.algebra import solutions as alg
from condgraph.engine.algebra.grouped import Function, Measure
from condgraph.engine.algebra.tables import SolutionTable, by_type
from condgraph.engine.bounds import changed, check, in_order, watched
from condgraph.engine.errors import PlanError
from condgraph.engine.execute import rowset
from condgraph.engine.execute.conditions import holds
from condgraph.engine.execute.expressions import Compiler
from condgraph.engine.execute.grid import Column
from condgraph.engine.execute.run import Outcome, Run
from condgraph.engine.execute.series import first_of_each, once, runs
from condgraph.engine.execute.sets import FactSet, Numbers, distinct
from condgraph.engine.execute.solving import differing, only_taker, solve
from condgraph.engine.execute.sums import Aggregate
from condgraph.engine.execute.terms import EntityAt, GraphTerms, StatementAt
from condgraph.engine.execute.walks import paths
from condgraph.engine.facts import Entity, Ref
from condgraph.engine.snapshot.snapshot import make_room
from condgraph.engine.values import NO_UNIT, Quantity

#: Up to this many rows, expressions are evaluated row by row.
_MAX_SINGLE: Final = 16
#: Types whose values equal no value of another type, except numbers.
_ALONE: Final = frozenset((type(None), bool, int, float, str, EntityAt, StatementAt))
#: Functions whose result changes with each call.
_VOLATILE: Final = frozenset(("rand", "randomuuid"))

# -- leaves ------------------------------------------------------------------------------------------


def path(run: Run, node: alg.Path) -> rowset.RowSet:
    return paths(run, node)[0]


def entity_rows(run: Run, node: alg.EntityRows) -> rowset.RowSet:
    entities = run.entities(node.entities)
    return rowset.RowSet(run.scope, len(entities), {node.variable: rowset.Terms(rowset.ENTITY, entities)})


def rows(run: Run, node: alg.Rows) -> rowset.RowSet:
    """Return the rows written in the program."""
    if any(len(row) != len(node.names) for row in node.rows) or len(set(node.names)) != len(node.names):
        raise PlanError(f"each row has one term for each of {', '.join(node.names) or 'no names'}, which differ")
    columns = {
        name: rowset.column_of(run.scope, [_term(run, row[index]) for row in watched(node.rows)])
        for index, name in enumerate(node.names)
    }
    return rowset.RowSet(run.scope, len(node.rows), columns)


def _term(run: Run, value: Any) -> Any:
    if isinstance(value, Ref):
        number = run.snapshot.identified(value.id)
        return EntityAt(number) if number >= 0 else Entity(value.id, value.id)
    return value.number if isinstance(value, Quantity) and value.unit == NO_UNIT else value


# -- two inputs --------------------------------------------------------------------------------------


def _both(run: Run, node: Any) -> tuple[rowset.RowSet, rowset.RowSet, list[str]]:
    left, right = run.rows(node.left), run.rows(node.right)
    return left, right, [name for name in left.columns if name in right.columns]


def join(run: Run, node: alg.Join) -> rowset.RowSet:
    """Return every compatible pair of rows, merged."""
    left, right, shared = _both(run, node)
    positions = None if shared or left.size * right.size <= rowset.CHUNK else _equal_pairs(run, node, left, right)
    left_positions, right_positions = rowset.compatible(left, right, shared) if positions is None else positions
    return rowset.merged(left, right, left_positions, right_positions, node.variables)


def _equal_pairs(run: Run, node: alg.Join, left: rowset.RowSet, right: rowset.RowSet) -> tuple[rowset.Places, rowset.Places] | None:
    """Return the positions of pairs for which the filters above a product, comparing its sides by `=`, may be true;
    None if there are no such filters, or if equality is not one to one.
    """
    codes: list[tuple[rowset.Places, rowset.Places]] = []
    taker = only_taker(run, node)
    while isinstance(taker, alg.Filter):
        test = taker.test
        if isinstance(test, ex.Comparison) and test.operator == "=":
            for left_side, right_side in ((test.left, test.right), (test.right, test.left)):
                names = ex.variables(left_side), ex.variables(right_side)
                if all(names) and names[0] <= left.columns.keys() and names[1] <= right.columns.keys():
                    keys: dict[Any, int] = {}
                    pair = _equality_codes(run, left_side, left, keys), _equality_codes(run, right_side, right, keys)
                    if pair[0] is not None and pair[1] is not None:
                        codes.append((pair[0], pair[1]))
                    break
        taker = only_taker(run, taker)
    if not codes:
        return None
    bound_rows = [np.flatnonzero(np.all([part[side] >= 0 for part in codes], axis=0)) for side in (0, 1)]
    sides = [np.concatenate([part[side].take(bound_rows[side]) for side in (0, 1)]) for part in codes]
    packed = rowset.packed(sides, len(bound_rows[0]) + len(bound_rows[1]))
    results = list(rowset.pairs(packed[: len(bound_rows[0])], packed[len(bound_rows[0]) :]))
    if not results:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    lefts, rights = (np.concatenate(positions) for positions in zip(*results, strict=True))
    return bound_rows[0].take(lefts), bound_rows[1].take(rights)


def _equality_codes(run: Run, expression: ex.Expression, of: rowset.RowSet, keys: dict[Any, int]) -> rowset.Places | None:
    """Return numbers of the values of an expression by row, equal where `=` is true, -1 where it never is; None if
    values of other types may be equal, such as a time within another.
    """
    values, inverse = _distinct_values(run, expression, of)
    codes = np.full(len(values), -1, np.int64)
    for position, value in enumerate(watched(values)):
        kind = type(value)
        if kind not in _ALONE:
            return None
        if value is not None and value == value:
            codes[position] = keys.setdefault((kind is bool, value), len(keys))
    return codes if inverse is None else codes.take(inverse)


def left_join(run: Run, node: alg.LeftJoin) -> rowset.RowSet:
    """Return every compatible pair for which the condition is true, and the left rows without one."""
    left, right, shared = _both(run, node)
    left_positions, right_positions = rowset.compatible(left, right, shared)
    pairs = rowset.merged(left, right, left_positions, right_positions, node.variables)
    if node.condition is not None:
        chosen = np.flatnonzero(_true(run, node.condition, pairs))
        pairs, left_positions = pairs.take(chosen), left_positions.take(chosen)
    unmatched = np.ones(left.size, bool)
    unmatched[left_positions] = False
    return rowset.concatenated([pairs, left.take(np.flatnonzero(unmatched))], node.variables, run.scope)


def _matched(left: rowset.RowSet, right: rowset.RowSet, shared: list[str]) -> Any:
    """Return which left rows have a compatible right row."""
    mask = np.zeros(left.size, bool)
    if not shared:
        mask[:] = right.size > 0
        return mask
    left_positions, _ = rowset.compatible(left, right.only(shared).distinct(), shared)
    mask[left_positions] = True
    return mask


def semi_join(run: Run, node: alg.SemiJoin) -> rowset.RowSet:
    """Return the left rows that have a compatible right row."""
    left, right, shared = _both(run, node)
    return left.where(_matched(left, right, shared))


def anti_join(run: Run, node: alg.AntiJoin) -> rowset.RowSet:
    """Return the left rows without a compatible right row."""
    left, right, shared = _both(run, node)
    return left.where(~_matched(left, right, shared))


def mark_join(run: Run, node: alg.MarkJoin) -> rowset.RowSet:
    """Return every left row with whether it has a compatible right row."""
    left, right, shared = _both(run, node)
    if node.variable in left.columns:
        raise PlanError(f"{node.variable} is bound already")
    truths = np.array([rowset.given(run.scope, False), rowset.given(run.scope, True)], np.int32)
    return left.having(**{node.variable: rowset.Terms(rowset.GIVEN, truths.take(_matched(left, right, shared).astype(np.int64)))})


def minus_rows(run: Run, node: alg.MinusRows) -> rowset.RowSet:
    """Return the left rows without a compatible right row that binds one of their variables."""
    left, right, shared = _both(run, node)
    if not shared:
        return left
    right = right.only(shared).distinct()
    left_positions, right_positions = rowset.compatible(left, right, shared)
    share_bound = np.zeros(len(left_positions), bool)
    for name in shared:
        share_bound |= left.columns[name].bound.take(left_positions) & right.columns[name].bound.take(right_positions)
    mask = np.ones(left.size, bool)
    mask[left_positions[share_bound]] = False
    return left.where(mask)


def union_all(run: Run, node: alg.UnionAll) -> rowset.RowSet:
    return rowset.concatenated([run.rows(part) for part in node.parts], node.variables, run.scope)


# -- expressions -------------------------------------------------------------------------------------


def _compiled(run: Run, expression: ex.Expression, names: tuple[str, ...]) -> Any:
    """Return the closure of an expression over these columns, cached with the snapshot; one that uses the clock is
    compiled anew.
    """
    cache: dict[Any, Any] = run.snapshot.schema.kept.setdefault("compiled expressions", {})
    key = id(expression), names
    entry = cache.get(key)
    if entry is None:
        evaluate = Compiler({name: index for index, name in enumerate(names)}, GraphTerms(run.snapshot))(expression)
        if any(isinstance(part, ex.Call) and not part.arguments for part in ex.walk(expression)):
            return evaluate
        make_room(cache)
        # The expression is kept as well, so that no other one has its identity.
        entry = cache[key] = expression, evaluate
    return entry[1]


def values_of(run: Run, expression: ex.Expression, of: rowset.RowSet) -> list[Any]:
    """Return the value of an expression for each row."""
    values, inverse = _distinct_values(run, expression, of)
    return values if inverse is None else [values[number] for number in watched(inverse.tolist())]


def _distinct_values(run: Run, expression: ex.Expression, of: rowset.RowSet) -> tuple[list[Any], rowset.Places | None]:
    """Return the values of an expression, computed once for rows that agree in its variables and properties, and the
    index of each row's value (None: one value for each row).
    """
    sample, inverse = of, None
    if of.size <= _MAX_SINGLE:
        names = list(of.columns)
        evaluate = _compiled(run, expression, tuple(names))
        columns = [rowset.python_terms(run.scope, of.columns[name]) for name in names]
        if not columns:
            return [evaluate(()) for _ in range(of.size)], None
        return [evaluate(item) for item in zip(*columns, strict=True)], None
    expression, of = _with_properties(run, expression, of)
    used = ex.variables(expression)
    names = [name for name in of.columns if name in used]
    volatile = any(isinstance(part, ex.Call) and part.name in _VOLATILE for part in ex.walk(expression))
    if not volatile:
        # By number, not by equality: 1 and 1.0 are equal, but not if divided by 2.
        keys = rowset.packed([of.columns[name].marked() for name in names], of.size)
        first, inverse = first_of_each(keys)
        sample = of.take(first)
    evaluate = _compiled(run, expression, tuple(names))
    columns = [rowset.python_terms(run.scope, sample.columns[name]) for name in names]
    items = zip(*columns, strict=True) if columns else iter([()] * sample.size)
    return [evaluate(item) for item in watched(items, 1 << 10)], inverse


def _with_properties(run: Run, expression: ex.Expression, of: rowset.RowSet) -> tuple[ex.Expression, rowset.RowSet]:
    """Return an expression with each property of an entity replaced by a variable, and the rows with its column."""
    cache: dict[Any, Any] = run.snapshot.schema.kept.setdefault("properties of expressions", {})
    entry: tuple[ex.Expression, dict[ex.Property, str], dict[Any, ex.Expression]] | None = cache.get(id(expression))
    if entry is None:
        bound = {name for part in ex.walk(expression) for name in part.bound()}
        properties: dict[ex.Property, str] = {
            part: part.of.name
            for part in ex.walk(expression)
            if isinstance(part, ex.Property)
            and isinstance(part.of, ex.Variable)
            and part.of.name not in bound
            and part.period is None
        }
        make_room(cache)
        # The expression is kept as well, so that no other one has its identity.
        entry = cache[id(expression)] = expression, properties, {}
    _, properties, rewritten = entry
    columns = {name: of.column(name).narrowed() for name in properties.values()}
    read = tuple(part for part, name in properties.items() if columns[name].kind == rowset.ENTITY)
    if not read:
        return expression, of
    names = {part: f"\0{properties[part]}.{part.key}" for part in read}
    if read not in rewritten:
        rewritten[read] = ex.rebuilt(expression, lambda part: ex.Variable(names[part]) if part in names else None)
    values = {names[part]: _property(run, columns[properties[part]], part.key) for part in read}
    return rewritten[read], of.having(**values)


def _property(run: Run, of: rowset.Terms, key: str) -> rowset.Terms:
    """Return the property of each entity of a column."""
    values, inverse = GraphTerms(run.snapshot).values(of.numbers, key)
    distinct_terms = rowset.column_of(run.scope, values)
    # The last item is null, at index -1.
    numbers = np.append(distinct_terms.numbers, distinct_terms.numbers.dtype.type(-1))
    column = rowset.Terms(distinct_terms.kind, numbers).take(inverse)
    if values and all(type(value) is int and abs(value) < 1 << 62 for value in values) and column.bound.all():
        column.counts = np.array(values, np.int64).take(inverse)
    return column


def _true(run: Run, expression: ex.Expression, of: rowset.RowSet) -> Any:
    mask = _compared_columns(run, expression, of)
    if mask is not None:
        return mask
    values, inverse = _distinct_values(run, expression, of)
    truths = np.fromiter((value is True for value in values), bool, len(values))
    return truths if inverse is None else truths.take(inverse)


def _compared_columns(run: Run, expression: ex.Expression, of: rowset.RowSet) -> Any:
    """Return whether two variables are bound to the same entity or statement (or different ones), using columns; None
    if that does not apply.
    """
    if not isinstance(expression, ex.Comparison) or expression.operator not in ("=", "<>"):
        return None
    left, right = expression.left, expression.right
    if not isinstance(left, ex.Variable) or not isinstance(right, ex.Variable):
        return None
    left_terms, right_terms = of.column(left.name).narrowed(), of.column(right.name).narrowed()
    if left_terms.kind != right_terms.kind or left_terms.kind not in (rowset.ENTITY, rowset.STATEMENT):
        return None
    both_bound = left_terms.bound & right_terms.bound
    return both_bound & ((left_terms.numbers == right_terms.numbers) == (expression.operator == "="))


def filter_rows(run: Run, node: alg.Filter) -> rowset.RowSet:
    """Return the rows for which the expression is true."""
    of = run.rows(node.of)
    return differing(run, node, of) if rowset.TIMES in of.columns else of.where(_true(run, node.test, of))


def where_rows(run: Run, node: alg.WhereRows) -> rowset.RowSet:
    """Return the rows whose term satisfies the condition."""
    of = run.rows(node.of)
    places, cells = rowset.value_cells(run.scope, of.column(node.variable))
    run.warn_incomparable(cells, node.condition)
    mask = np.zeros(of.size, bool)
    if len(cells):
        mask[places[holds(run, node.condition, cells)]] = True
    return of.where(mask)


def bound_rows(run: Run, node: alg.BoundRows) -> rowset.RowSet:
    """Return the rows that bind these variables."""
    of = run.rows(node.of)
    mask = np.ones(of.size, bool)
    for name in node.names:
        mask &= of.column(name).bound
    return of.where(mask)


def extend(run: Run, node: alg.Extend) -> rowset.RowSet:
    """Return the rows with the value of the expression as a new column."""
    of = run.rows(node.of)
    if node.variable in of.columns:
        raise PlanError(f"{node.variable} is bound already")
    if isinstance(node.expression, ex.Variable):
        return of.having(**{node.variable: of.column(node.expression.name)})
    column = _expression_column(run, node.expression, of)
    if column is None:
        values, inverse = _distinct_values(run, node.expression, of)
        column = rowset.column_of(run.scope, values)
        column = column if inverse is None else column.take(inverse)
    return of.having(**{node.variable: column})


def _expression_column(run: Run, e: ex.Expression, of: rowset.RowSet) -> rowset.Terms | None:
    """Return names or properties of entities, or the first of several values, without evaluating single rows; None
    for other expressions.
    """
    if isinstance(e, ex.Property) and isinstance(e.of, ex.Variable) and e.period is None and of.size > _MAX_SINGLE:
        column = of.column(e.of.name).narrowed()
        return _property(run, column, e.key) if column.kind == rowset.ENTITY else None
    if not isinstance(e, ex.Call) or e.name not in ("name", "coalesce") or not isinstance(e.arguments[0], ex.Variable):
        return None
    column = of.column(e.arguments[0].name).narrowed()
    if e.name == "name":
        return rowset.Terms(rowset.NAME, column.numbers) if column.kind == rowset.ENTITY else None
    return column if column.bound.all() else None


def unwind(run: Run, node: alg.Unwind) -> rowset.RowSet:
    """Return a row for each item of a list."""
    of = run.rows(node.of)
    new_names = [name for name in (node.variable, node.place) if name is not None]
    if clashes := [name for name in new_names if name in of.columns]:
        raise PlanError(f"{clashes[0]} is bound already")
    row_positions: list[int] = []
    items: list[Any] = []
    places: list[int] = []
    for row, value in enumerate(watched(values_of(run, node.expression, of), 1 << 10)):
        listed = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
        row_positions.extend([row] * len(listed))
        items.extend(listed)
        places.extend(range(len(listed)))
        if len(items) > 1 << 24:
            raise PlanError(f"a list has more than {1 << 24:,} items to unwind")
    result = of.take(np.array(row_positions, np.int64)).having(**{node.variable: rowset.column_of(run.scope, items)})
    return result if node.place is None else result.having(**{node.place: rowset.column_of(run.scope, places)})


# -- one input ---------------------------------------------------------------------------------------


def project(run: Run, node: alg.Project) -> rowset.RowSet:
    """Return the rows with other columns."""
    of = run.rows(node.of)
    if len(set(node.variables)) != len(node.names):
        raise PlanError("two columns have one name")
    return rowset.RowSet(run.scope, of.size, {new: of.column(old) for new, old in node.names}, ordered=of.ordered)


def distinct_rows(run: Run, node: alg.DistinctRows) -> rowset.RowSet:
    return run.rows(node.of).distinct()


def order_rows(run: Run, node: alg.OrderRows) -> rowset.RowSet:
    """Return the rows in an order; only as many as the slice above takes, if it is the only consumer."""
    taker = only_taker(run, node)
    cut = taker.start + taker.number if isinstance(taker, alg.SliceRows) and taker.number is not None else None
    return run.rows(node.of).in_order(node.by, cut)


def slice_rows(run: Run, node: alg.SliceRows) -> rowset.RowSet:
    """Return some of the rows in their order."""
    if node.start < 0 or (node.number is not None and node.number < 0):
        raise PlanError("rows are counted from 0 on")
    of, stop = run.rows(node.of), None if node.number is None else node.start + node.number
    if not of.ordered:
        of = of.in_order((), stop)
    stop = of.size if stop is None else min(of.size, stop)
    return of.take(np.arange(min(node.start, stop), stop), ordered=True)


_MEASURES: Final[dict[str, Function]] = {"sum": "sum", "mean": "mean", "median": "median", "min": "min", "max": "max"}


def group_rows(run: Run, node: alg.GroupRows) -> rowset.RowSet:
    """Return a row for each group."""
    of = run.rows(node.of)
    if len(set(node.variables)) != len(node.variables):
        raise PlanError("two columns have one name")
    order, group, first = _grouped(of, node.keys)
    if rowset.TIMES in of.columns:
        return _counted_groups(run, node, of, order, group, first)
    size = len(first) if node.keys else 1
    columns = {name: of.column(name).take(first) for name in node.keys}
    for aggregate in node.aggregates:
        check()
        columns[aggregate.name] = _aggregate(run, aggregate, of, order, group, size)
    return rowset.RowSet(run.scope, size, columns)


def _counted_groups(
    run: Run, node: alg.GroupRows, of: rowset.RowSet, order: rowset.Places, group: rowset.Places, first: rowset.Places
) -> rowset.RowSet:
    """Return a row for each group of counted rows, whose aggregates are all their number."""
    times = of.columns[rowset.TIMES].numbers
    if node.keys and of.size:
        totals = np.add.reduceat(times.take(order), np.flatnonzero(changed(group)))
        first, totals = first[totals > 0], totals[totals > 0]
    else:
        totals = times if node.keys else times.sum(keepdims=True)
    columns = {name: of.column(name).take(first) for name in node.keys}
    return rowset.RowSet(run.scope, len(totals), columns | {aggregate.name: _counts(run, totals) for aggregate in node.aggregates})


def _grouped(of: rowset.RowSet, keys: tuple[str, ...]) -> tuple[rowset.Places, rowset.Places, rowset.Places]:
    """Return the positions of rows by group, the group of each, and the first position of each group."""
    if not keys or not of.size:
        return np.arange(of.size), np.zeros(of.size, np.int64), np.zeros(0, np.int64)
    numbers = of.keys(keys)
    order = in_order([numbers])
    is_first = changed(numbers.take(order))
    return order, is_first.cumsum() - 1, order[is_first]


def _aggregate(
    run: Run, one: alg.RowAggregate, of: rowset.RowSet, order: rowset.Places, group: rowset.Places, size: int
) -> rowset.Terms:
    if one.of is None:
        if one.function != "count":
            raise PlanError(f"{one.function} needs a variable")
        if one.distinct:
            keys = of.keys().take(order)
            order, group = _first_of_equal(keys, order, group)
        return _counts(run, np.bincount(group, minlength=size))
    column = of.column(one.of)
    bound = column.bound.take(order)
    order, group = order[bound], group[bound]
    if one.distinct:
        order, group = _first_of_equal(rowset.codes(run.scope, [column])[0].take(order), order, group)
    if one.function == "count":
        return _counts(run, np.bincount(group, minlength=size))
    if one.function in _MEASURES:
        measure = Measure(one.name, _MEASURES[one.function])
        return _from_column(
            run, Aggregate(run, measure).of_groups(size, group, order, rowset.term_series(run.scope, column.narrowed()))
        )
    # Lists and joined texts are in the order of the rows, if they have one, else in the fixed order.
    sort_keys = [group, order] if of.ordered else [group, of.ranks(one.of).take(order)]
    order = order.take(in_order(sort_keys))
    low, counts = runs(group, size)
    if one.function == "any":
        first = np.where(counts > 0, order.take(np.minimum(low, max(len(order) - 1, 0))) if len(order) else -1, -1)
        values = column.take(np.maximum(first, 0)) if len(column) else rowset.Terms.unbound(size)
        return rowset.Terms(values.kind, np.where(first >= 0, values.numbers, -1))
    chosen = column.take(order)
    items: list[Any]
    if one.function == "text":
        items = [cell.text for cell in rowset.term_series(run.scope, chosen.narrowed()).cells(np.arange(len(chosen)))]
    else:
        items = rowset.python_terms(run.scope, chosen)
    bounds = zip(low.tolist(), (low + counts).tolist(), strict=True)
    lists = [items[start:stop] for start, stop in watched(bounds)]
    if one.function == "list":
        return rowset.column_of(run.scope, lists)
    if one.function != "text":
        raise PlanError(f"unknown aggregate {one.function!r}")
    return rowset.column_of(run.scope, [one.separator.join(texts) for texts in lists])


def _first_of_equal(keys: rowset.Places, order: rowset.Places, group: rowset.Places) -> tuple[rowset.Places, rowset.Places]:
    """Return only the first of equal keys in each group."""
    sorted_positions = in_order([group, keys])
    first = np.sort(sorted_positions[changed(group.take(sorted_positions), keys.take(sorted_positions))])
    return order.take(first), group.take(first)


def _counts(run: Run, counts: rowset.Places) -> rowset.Terms:
    distinct_counts, inverse = once(counts)
    numbers = np.array([rowset.given(run.scope, int(count)) for count in distinct_counts.tolist()], np.int32)
    return rowset.Terms(rowset.GIVEN, numbers.take(inverse), counts.astype(np.int64, copy=False))


def _from_column(run: Run, column: Column) -> rowset.Terms:
    """Return the result of an aggregate as a column of terms."""
    cells = column.cells()
    return rowset.column_of(run.scope, [None if cell is None else _term_of(run, cell.value) for cell in watched(cells)])


def _term_of(run: Run, value: Any) -> Any:
    if isinstance(value, Entity):
        return EntityAt(run.snapshot.identified(value.id))
    return value.number if isinstance(value, Quantity) and value.unit == NO_UNIT else value


# -- bridges -----------------------------------------------------------------------------------------


def entities_of(run: Run, node: alg.EntitiesOf) -> Numbers:
    """Return the distinct entities of a column."""
    entities = run.rows(node.of).column(node.variable).entities()
    return distinct(entities[entities >= 0].astype(np.int32), run.snapshot.entities)


def facts_of(run: Run, node: alg.FactsOf) -> FactSet:
    """Return the distinct statements of a column."""
    parts = [numbers for kind, _, numbers in run.rows(node.of).column(node.variable).split() if kind == rowset.STATEMENT]
    numbers = distinct(np.concatenate([*parts, np.empty(0, np.int32)]).astype(np.int32), run.snapshot.statements)
    if node.reach == "object":
        numbers = numbers[: run.snapshot.split(numbers)]
    return FactSet(run, node.reach, numbers=numbers)


_TABLE: Final[SolutionTable[Run, [], Outcome]] = {
    "Pattern": solve,
    "Path": path,
    "EntityRows": entity_rows,
    "Rows": rows,
    "Join": join,
    "LeftJoin": left_join,
    "SemiJoin": semi_join,
    "AntiJoin": anti_join,
    "MarkJoin": mark_join,
    "MinusRows": minus_rows,
    "UnionAll": union_all,
    "Filter": filter_rows,
    "WhereRows": where_rows,
    "BoundRows": bound_rows,
    "Extend": extend,
    "Unwind": unwind,
    "Project": project,
    "DistinctRows": distinct_rows,
    "GroupRows": group_rows,
    "OrderRows": order_rows,
    "SliceRows": slice_rows,
    "EntitiesOf": entities_of,
    "FactsOf": facts_of,
}
Run.operators.update(by_type(_TABLE))
