"""The tables of operators: what runs each of them. mypy knows them whole."""

from __future__ import annotations

from typing import Final

from condgraph.engine.algebra.tables import EntityTable, FactTable, GroupTable, ScalarTable, ValueTable, by_type
from condgraph.engine.execute import aggregates, apply, entities, facts, grouped, picks, qualified, temporal, values
from condgraph.engine.execute.run import Outcome, Run

_SETS: Final[EntityTable[Run, [], Outcome]] = {
    "AllEntities": entities.every,
    "ById": entities.known,
    "ByName": entities.named,
    "Members": entities.members,
    "Union": entities.union_of,
    "Intersect": entities.intersect_of,
    "Minus": entities.minus_of,
    "Neighbour": entities.neighbour,
    "Reached": entities.reached,
    "SubjectsOf": entities.holders,
    "Referents": entities.referents,
    "SameName": picks.namesakes,
    "ArgExtreme": aggregates.best,
}
_STATEMENTS: Final[FactTable[Run, [], Outcome]] = {
    "Scan": facts.scan,
    "Where": facts.where,
    "WhereQualifier": qualified.where_qualifier,
    "During": facts.during,
    "DuringAny": temporal.during_any,
    "WhereValidity": temporal.where_validity,
    "OtherEnd": facts.turn,
}
_BAGS: Final[ValueTable[Run, [], Outcome]] = {
    "Objects": values.objects,
    "Qualifiers": values.qualifiers,
    "Validity": temporal.validity,
    "Predicates": values.predicates,
    "QualifierKeys": values.qualifier_keys,
    "Names": values.names,
    "RowNumbers": values.row_numbers,
    "FilterValues": values.keep,
    "Distinct": values.distinct,
    "Concat": values.concat,
    "Constants": values.given,
    "Nth": picks.nth,
    "Clip": temporal.clip,
    "Bound": temporal.bound,
    "Shown": picks.shown,
    "Apply": apply.apply,
    "Choose": apply.choose,
    "External": apply.external,
    "Extreme": aggregates.extreme,
    "Mode": aggregates.mode,
}
_SINGLE: Final[ScalarTable[Run, [], Outcome]] = {
    "Count": aggregates.count,
    "Sum": aggregates.total,
    "Mean": aggregates.mean,
    "Median": aggregates.median,
    "AnySatisfies": aggregates.some,
    "Exists": aggregates.exists,
}
_GROUPED: Final[GroupTable[Run, [], Outcome]] = {
    "Group": grouped.group,
    "Having": grouped.having,
    "Order": grouped.order,
    "Limit": grouped.limit,
}
for _table in (_SETS, _STATEMENTS, _BAGS, _SINGLE, _GROUPED):
    Run.operators.update(by_type(_table))
