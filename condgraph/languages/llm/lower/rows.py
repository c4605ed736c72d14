"""What get_information asks of rows beside their cells: their numbers, the columns that repeat a
header, cells that are missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from condgraph.engine.algebra import (
    Entities,
    Extreme,
    Facts,
    Family,
    FilterValues,
    Minus,
    Reached,
    RowNumbers,
    SubjectsOf,
    Values,
    Versus,
    intersect,
)
from condgraph.engine.errors import PlanError
from condgraph.languages.llm.bound import ColumnCondition
from condgraph.languages.llm.lower.context import MISSING, Context
from condgraph.languages.llm.lower.literals import literal_tests
from condgraph.languages.llm.lower.results import NUMBERS, Result
from condgraph.languages.llm.lower.superlatives import superlative
from condgraph.languages.llm.syntax.tree import Literal
from condgraph.languages.parameters import Given
from condgraph.names.linking import Column
from condgraph.vectors.encoders import fold

if TYPE_CHECKING:
    from condgraph.languages.llm.lower.query import Lowering


@dataclass(frozen=True, slots=True)
class Relation:
    """The predicates a relation (or a key) names, in their source. `numbers` is the virtual
    attribute row_number.
    """

    names: tuple[str, ...]
    source: str | None
    sources: tuple[str, ...]
    table: str | None
    family: Family = "any"
    numbers: bool = False


class RowParts:
    """The parts of a call that are about rows of a table."""

    lowering: Lowering
    ctx: Context
    source: str | None

    def _scan(self, relation: Relation, of: Entities | None = None) -> Facts:
        raise NotImplementedError

    def _tail_values(self, result: Result, relation: Relation | None) -> Values:
        raise NotImplementedError

    def _column(self, relation: Relation | None) -> Column:
        if relation is None:
            return self.ctx.linker.column(None, self.source if len(self.ctx.schema.sources) > 1 else None)
        return self.ctx.linker.column(relation.names, relation.source)

    def _numbered(self, rows: Entities, *conditions: ColumnCondition) -> Entities:
        """Rows whose number satisfies the conditions."""
        for condition in conditions:
            numbers = RowNumbers(rows)
            value = condition.value
            if isinstance(value, Literal):
                word = superlative(value.text, NUMBERS) if condition.op != "!=" else None
                if word is not None:
                    rows = SubjectsOf(Extreme(numbers, word[1]))
                    continue
                tests = literal_tests(condition.op, value.text, NUMBERS).conditions
                if not tests:
                    raise PlanError(f"{value.text!r} is no row number", span=value.span, hint="rows are counted from 1")
                rows = SubjectsOf(FilterValues(numbers, self.lowering.any_test(tests)))
                continue
            result = self.lowering.evaluate(value)
            if result.literal is not None:
                rows = self._numbered(rows, ColumnCondition(condition.op, result.literal, condition.span))
                continue
            if result.is_rows:
                assert isinstance(result.node, Entities)
                if condition.op == "=":
                    rows = intersect(rows, result.node)
                    continue
                values: Values = RowNumbers(result.node)
            else:
                values = self._tail_values(result, None)
            rows = SubjectsOf(FilterValues(numbers, Versus(condition.op, values)))
        return rows

    def _repeated(self, relation: Relation, conditions: tuple[ColumnCondition, ...]) -> Relation:
        """The column of a repeated header ("Country (2)") that has a literal, where the first one
        does not.
        """
        if relation.table is None or len(relation.names) != 1 or len(conditions) != 1 or conditions[0].op != "=":
            return relation
        value = conditions[0].value
        if not isinstance(value, Literal):
            return relation
        name, wanted = relation.names[0], fold(value.text)
        others = self.ctx.repeats(name, relation.table)
        if not others or wanted in self._column(relation).folded:
            return relation
        for other in others:
            found = replace(relation, names=(other,))
            if wanted in self._column(found).folded:
                self.ctx.warn(f"{value.text!r} stands in {other!r}, another column of the header {name!r}")
                return found
        return relation

    def _is_missing(self, condition: ColumnCondition, relation: Relation) -> bool:
        """Whether a condition asks for cells that are not there: `tail_entity='n/a'`."""
        value = condition.value
        if not isinstance(value, Literal) or condition.op not in ("=", "!=") or fold(value.text) not in MISSING:
            return False
        if isinstance(value.text, Given):
            return False  # a value, which may well be "none"
        return fold(value.text) not in self._column(relation).folded

    def _without(self, relation: Relation, of: Entities | None, condition: ColumnCondition) -> Entities:
        """The rows without a cell (for `!=`: with one)."""
        self.ctx.warn(f"{condition.value.text!r} means rows without a value of {relation.names[0]!r}")  # type: ignore[union-attr]
        filled = Reached(self._scan(relation, of))
        if condition.op == "!=":
            return filled
        return Minus(of if of is not None else self.ctx.rows(relation.table or ""), filled)
