"""What becomes of each operator on Neo4j: one function an operator, in tables that mypy knows whole.

`None` stands for what the client works out, as `compile.support` explains.
"""

from __future__ import annotations

from typing import ClassVar, Final

from condgraph.cypher.compile import entities, facts, selection, values
from condgraph.cypher.compile.compiler import Compiler, FactRows, Rows, ValueRows
from condgraph.engine.algebra.tables import EntityTable, FactTable, ValueTable, by_type, given

ENTITIES: Final[EntityTable[Compiler, [], Rows]] = {
    "AllEntities": entities.every,
    "ById": entities.known,
    "ByName": entities.named,
    "Members": entities.members,
    "Union": entities.union,
    "Intersect": entities.intersect,
    "Minus": entities.minus,
    "Neighbour": entities.neighbour,
    "Reached": entities.reached,
    "SubjectsOf": entities.holders,
    "Referents": entities.referents,
    "SameName": entities.namesakes,
    "ArgExtreme": entities.best,
}
FACTS: Final[FactTable[Compiler, [], FactRows]] = {
    "Scan": facts.scan,
    "Where": facts.where,
    "WhereQualifier": facts.where_qualifier,
    "During": facts.during,
    "DuringAny": facts.during_any,
    "WhereValidity": facts.where_validity,
    "OtherEnd": facts.turn,
}
VALUES: Final[ValueTable[Compiler, [], ValueRows]] = {
    "Objects": values.objects,
    "Qualifiers": values.qualifiers,
    "Validity": values.validity,
    "Predicates": values.predicates,
    "QualifierKeys": values.qualifier_keys,
    "Names": values.names,
    "RowNumbers": values.row_numbers,
    "FilterValues": values.keep,
    "Distinct": values.distinct,
    "Concat": values.concat,
    "Extreme": selection.extreme,
    "Mode": selection.mode,
    "Nth": selection.nth,
    "Clip": selection.clip,
    "Bound": selection.bound,
    "Choose": selection.choose,
    "Shown": values.shown,
    "Constants": values.given,
    "Apply": None,
    "External": None,
}
#: The operators that leave rows, by name.
OPERATORS: Final = given(ENTITIES) | given(FACTS) | given(VALUES)


class PlanCompiler(Compiler):
    """The compiler with what becomes of each operator."""

    of_entities: ClassVar = by_type(ENTITIES)
    of_facts: ClassVar = by_type(FACTS)
    of_values: ClassVar = by_type(VALUES)
