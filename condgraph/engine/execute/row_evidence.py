"""Trace wanted rows of an operator back to the rows, statements, memberships and entities that led to them.

The demand on an operator is a set of rows; from an input it wants the rows that agree with a wanted one in all shared
variables. An input whose lack of rows matters (AntiJoin and the like) is wanted as far as it is compatible with any
row of the other input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra import expressions as ex
from condgraph.engine.algebra import solutions as alg
from condgraph.engine.algebra.operators import Condition, Entities, Node
from condgraph.engine.bounds import watched
from condgraph.engine.execute.edges import Edge
from condgraph.engine.execute.evidence import Demand, Demands, put_under, whole
from condgraph.engine.execute.expressions import Compiler
from condgraph.engine.execute.rowset import ENTITY, STATEMENT, TIMES, RowSet, Terms, codes, compatible, packed, python_terms
from condgraph.engine.execute.sets import EMPTY, Numbers, distinct
from condgraph.engine.execute.solving import Solver, hidden
from condgraph.engine.execute.terms import GraphTerms
from condgraph.engine.execute.walks import Steps, paths, reached

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


@dataclass(slots=True)
class RowEvidence:
    """The evidence of some rows of an operator, and its demand on the inputs (`asked`)."""

    demands: Demands = field(default_factory=list)
    statements: list[NDArray[Any]] = field(default_factory=list)
    entities: list[NDArray[Any]] = field(default_factory=list)
    memberships: set[tuple[int, int]] = field(default_factory=set)
    subclasses: set[tuple[int, int]] = field(default_factory=set)


def agreeing(rows: RowSet, wanted: RowSet, names: dict[str, str] | None = None) -> RowSet:
    """Return the rows that agree with a wanted one in every shared variable; `names` maps variables of `wanted` to
    those of `rows`.
    """
    pairs = {name: name for name in wanted.columns if name in rows.columns} if names is None else names
    if not pairs:
        return rows if wanted.size else rows.take(np.empty(0, np.int64))
    columns = [codes(rows.scope, [rows.column(old), wanted.column(new)]) for new, old in pairs.items()]
    keys = packed([np.concatenate(pair) for pair in columns], rows.size + wanted.size)
    return rows.where(np.isin(keys[: rows.size], keys[rows.size :]))


def meeting(rows: RowSet, others: RowSet) -> RowSet:
    """Return the rows that are compatible with one of the others."""
    shared = [name for name in rows.columns if name in others.columns]
    if not shared:
        return rows if others.size else rows.take(np.empty(0, np.int64))
    matching, _ = compatible(rows, others.only(shared).distinct(), shared)
    return rows.take(np.unique(matching))


def row_evidence(run: Run, node: Node, demand: Demand) -> RowEvidence:
    """Return the evidence of the wanted part of an operator of `algebra.solutions`."""
    evidence = RowEvidence()
    _OF[type(node)](run, node, demand, evidence)
    return evidence


def _demanded_rows(demand: Demand) -> RowSet:
    assert isinstance(demand.rows, RowSet)
    return demand.rows


# -- patterns ----------------------------------------------------------------------------------------


def _pattern(run: Run, node: alg.Pattern, demand: Demand, found: RowEvidence) -> None:
    wanted = _demanded_rows(demand)
    # The result may lack variables that the plan does not need.
    names = [name for name in node.variables if name in wanted.columns]
    rows = Solver(run, node, wanted.only(names).distinct() if names else None, trace=True).rows()
    for number, part in enumerate(node.statements):
        statements = rows.column(hidden(number)).numbers
        statements = distinct(statements[statements >= 0].astype(np.int32), run.snapshot.statements)
        found.statements.append(statements)
        relations = statements[: run.snapshot.split(statements)]
        ends = [run.snapshot.subjects(statements), run.snapshot.relation_object.take(relations)]
        for place, of in ((part.subject, ends[0]), (part.object, ends[1])):
            if isinstance(place, Entities):
                of = np.concatenate(ends) if part.undirected else of
                found.demands.append((place, Demand(np.intersect1d(of, run.entities(place)).astype(np.int32))))
        if part.among is not None:
            found.demands.append((part.among, Demand(statements=statements)))
        _tested(run, part.condition, found)
        for qualifier in part.qualifiers:
            _tested(run, qualifier.condition, found)
            if isinstance(qualifier.value, Entities):
                found.demands.append((qualifier.value, whole(run, qualifier.value)))
    for membership in node.memberships:
        _membership(run, membership, rows, found)


def _tested(run: Run, condition: Condition | None, found: RowEvidence) -> None:
    if condition is not None:
        found.demands.extend((child, whole(run, child)) for child in condition.inputs())


def _membership(run: Run, part: alg.MembershipPattern, rows: RowSet, found: RowEvidence) -> None:
    snapshot = run.snapshot
    # A pattern with variables at both ends, so that members and concepts are known.
    open_part = alg.MembershipPattern(alg.Variable("\0m"), alg.Variable("\0c"), part.direct)
    entries = Edge(run, open_part, 0).entries()
    members, concepts = entries.subject, entries.object.entities()
    pairs = RowSet(run.scope, len(members), {"\0m": Terms(ENTITY, members), "\0c": Terms(ENTITY, concepts)})
    names = {}
    for place, column in ((part.member, "\0m"), (part.concept, "\0c")):
        if isinstance(place, alg.Variable):
            names[place.name] = column
        elif isinstance(place, Entities):
            pairs = pairs.where(run.among(pairs.columns[column].numbers, run.entities(place)))
    pairs = agreeing(pairs, rows, names)
    members, concepts = pairs.columns["\0m"].numbers, pairs.columns["\0c"].numbers
    if part.direct:
        found.memberships.update(zip(members.tolist(), concepts.tolist(), strict=True))
    else:
        for concept in watched(np.unique(concepts).tolist(), 16):
            concept_members = distinct(members[concepts == concept], snapshot.entities)
            _, stated, steps = put_under(snapshot, np.array([concept], np.int32), concept_members)
            found.memberships.update(stated)
            found.subclasses.update(steps)
    for place, numbers in ((part.member, members), (part.concept, concepts)):
        if isinstance(place, Entities):
            found.demands.append((place, Demand(distinct(numbers, snapshot.entities))))


def _path(run: Run, node: alg.Path, demand: Demand, found: RowEvidence) -> None:
    wanted = _demanded_rows(demand)
    snapshot = run.snapshot
    if node.of is not None:
        found.demands.append((node.of, Demand(rows=agreeing(run.rows(node.of), wanted))))
    ends = []
    for place in (node.subject, node.object):
        if isinstance(place, Entities):
            ends.append(run.entities(place))
        elif isinstance(place, alg.Variable):
            ends.append(_entities(run, wanted, place.name))
        else:
            ends.append(np.arange(snapshot.entities, dtype=np.int32))
    if node.mode == "ends":
        statements = _path_statements(run, node, *ends)
    else:
        made = {variable.name for variable in (node.path, node.length) if variable is not None}
        rows_before = wanted.only([name for name in wanted.columns if name not in made])
        _, walks = paths(run, node, seed=rows_before.distinct())
        assert walks is not None
        statements = [statement_numbers[statement_numbers >= 0] for statement_numbers in walks.statements]
    chosen = distinct(np.concatenate([*statements, EMPTY]).astype(np.int32), snapshot.statements)
    found.statements.append(chosen)
    if node.among is not None:
        found.demands.append((node.among, Demand(statements=chosen)))
    for place, part in zip((node.subject, node.object), ends, strict=True):
        if node.least == 0 and place is not None:
            found.entities.append(part)
        if isinstance(place, Entities):
            found.demands.append((place, Demand(part)))


def _path_statements(run: Run, node: alg.Path, starts: Numbers, ends: Numbers) -> list[NDArray[Any]]:
    """Return the statements that some path from a start to an end may use."""
    size = run.snapshot.entities
    forward = Steps(run, node)
    _, reachable = reached(forward, starts, 0, None if node.most is None else node.most - 1)
    _, reaching = reached(Steps(run, node, backward=True), ends, 0, None if node.most is None else node.most - 1)
    reaches_end = np.zeros(size, bool)
    reaches_end[reaching.astype(np.intp)] = True
    _, targets, statements = forward.onward(distinct(reachable, size))
    return [statements[reaches_end.take(targets)]]


# -- the other operators -----------------------------------------------------------------------------


def _entity_rows(run: Run, node: alg.EntityRows, demand: Demand, found: RowEvidence) -> None:
    found.demands.append((node.entities, Demand(_entities(run, _demanded_rows(demand), node.variable))))


def _entities(run: Run, rows: RowSet, name: str) -> Numbers:
    entities = rows.column(name).entities()
    return distinct(entities[entities >= 0].astype(np.int32), run.snapshot.entities)


def _rows(run: Run, node: alg.Rows, demand: Demand, found: RowEvidence) -> None:
    wanted = _demanded_rows(demand)
    found.entities.extend(_entities(run, wanted, name) for name in node.names)


def _inputs(run: Run, node: Any, demand: Demand, found: RowEvidence) -> None:
    """Want the agreeing rows of each input."""
    found.demands.extend((child, Demand(rows=agreeing(run.rows(child), _demanded_rows(demand)))) for child in node.inputs())


def _semi(run: Run, node: alg.SemiJoin, demand: Demand, found: RowEvidence) -> None:
    left = agreeing(run.rows(node.left), _demanded_rows(demand))
    found.demands.extend([(node.left, Demand(rows=left)), (node.right, Demand(rows=meeting(run.rows(node.right), left)))])


def _absent(run: Run, node: Any, demand: Demand, found: RowEvidence) -> None:
    """Want the right rows that are compatible with any left row: in a graph of the evidence no other right rows
    exist.
    """
    left = run.rows(node.left)
    found.demands.append((node.left, Demand(rows=agreeing(left, _demanded_rows(demand)))))
    found.demands.append((node.right, Demand(rows=meeting(run.rows(node.right), left))))
    condition = getattr(node, "condition", None)
    if condition is not None:
        _touched(run, condition, run.results[id(node)], found)


#: Expressions in which a missing value can only make a condition false.
_STEADY: Final = (ex.Variable, ex.Constant, ex.Property, ex.Comparison, ex.And, ex.Or, ex.TextTest, ex.Arithmetic)


def _touched(run: Run, expression: ex.Expression, rows: RowSet, found: RowEvidence) -> None:
    """Add the statements that an expression reads values from."""
    names = [name for name in rows.columns if name in ex.variables(expression)]
    distinct_rows = rows.only(names).distinct() if names else rows.take(np.arange(min(rows.size, 1)))
    touched: set[int] = set()
    terms = GraphTerms(run.snapshot, touched)
    evaluate = Compiler({name: position for position, name in enumerate(names)}, terms)(expression)
    columns = [python_terms(run.scope, distinct_rows.columns[name]) for name in names]
    for item in watched(zip(*columns, strict=True) if columns else [()] * distinct_rows.size, 1 << 10):
        evaluate(item)
    found.statements.append(np.array(sorted(touched), np.int32))
    found.memberships.update(terms.memberships)
    found.subclasses.update(terms.subclasses)


def _filter(run: Run, node: alg.Filter, demand: Demand, found: RowEvidence) -> None:
    rows, wanted_rows = run.rows(node.of), _demanded_rows(demand)
    if TIMES in rows.columns and isinstance(node.of, alg.Pattern):
        # The rows were counted; enumerate them again, without those that the filter drops.
        rows = Solver(run, node.of, needed={*rows.columns, *ex.variables(node.test)}).rows()
        left, right = (rows.columns[name].numbers for name in ex.variables(node.test))
        rows, wanted_rows = rows.where(left != right), wanted_rows.only([name for name in wanted_rows.columns if name != TIMES])
    wanted = agreeing(rows, wanted_rows)
    found.demands.append((node.of, Demand(rows=wanted)))
    monotonic = all(isinstance(part, _STEADY) for part in ex.walk(node.test))
    _touched(run, node.test, wanted if monotonic else rows, found)


def _where_evidence(run: Run, node: alg.WhereRows, demand: Demand, found: RowEvidence) -> None:
    found.demands.append((node.of, Demand(rows=agreeing(run.rows(node.of), _demanded_rows(demand)))))
    _tested(run, node.condition, found)


def _computed(run: Run, node: alg.Extend | alg.Unwind, demand: Demand, found: RowEvidence) -> None:
    rows = agreeing(run.rows(node.of), _demanded_rows(demand))
    found.demands.append((node.of, Demand(rows=rows)))
    _touched(run, node.expression, rows, found)


def _project(run: Run, node: alg.Project, demand: Demand, found: RowEvidence) -> None:
    names = dict(node.names)
    found.demands.append((node.of, Demand(rows=agreeing(run.rows(node.of), _demanded_rows(demand), names))))


def _all_evidence(run: Run, node: alg.GroupRows | alg.SliceRows, demand: Demand, found: RowEvidence) -> None:
    found.demands.append((node.of, Demand(rows=run.rows(node.of))))


def _entities_of(run: Run, node: alg.EntitiesOf, demand: Demand, found: RowEvidence) -> None:
    rows = run.rows(node.of)
    entities = rows.column(node.variable).entities()
    chosen = (entities >= 0) & run.among(np.maximum(entities, 0), demand.entities)
    found.demands.append((node.of, Demand(rows=rows.where(chosen))))


def _facts_of(run: Run, node: alg.FactsOf, demand: Demand, found: RowEvidence) -> None:
    rows = run.rows(node.of)
    mask = np.zeros(rows.size, bool)
    for kind, places, numbers in rows.column(node.variable).split():
        if kind == STATEMENT:
            mask[places[np.isin(numbers, demand.statements)]] = True
    found.demands.append((node.of, Demand(rows=rows.where(mask))))


_Of: TypeAlias = Callable[["Run", Any, Demand, RowEvidence], None]
_OF: Final[dict[type[Node], _Of]] = {
    alg.Pattern: _pattern,
    alg.Path: _path,
    alg.EntityRows: _entity_rows,
    alg.Rows: _rows,
    alg.Join: _inputs,
    alg.LeftJoin: _absent,
    alg.SemiJoin: _semi,
    alg.AntiJoin: _absent,
    alg.MarkJoin: _absent,
    alg.MinusRows: _absent,
    alg.UnionAll: _inputs,
    alg.Filter: _filter,
    alg.WhereRows: _where_evidence,
    alg.BoundRows: _inputs,
    alg.Extend: _computed,
    alg.Unwind: _computed,
    alg.Project: _project,
    alg.DistinctRows: _inputs,
    alg.GroupRows: _all_evidence,
    alg.OrderRows: _inputs,
    alg.SliceRows: _all_evidence,
    alg.EntitiesOf: _entities_of,
    alg.FactsOf: _facts_of,
}
