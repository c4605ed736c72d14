"""Keys that are no predicates: qualifiers of statements, and the time words that read when a
statement holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from condgraph.engine.algebra import (
    ByName,
    Compare,
    Condition,
    Constants,
    During,
    DuringAny,
    Entities,
    Extreme,
    Facts,
    Qualifiers,
    Scan,
    Span,
    Validity,
    Values,
    Versus,
    WhereQualifier,
    WhereValidity,
    any_of,
)
from condgraph.engine.errors import LiteralError
from condgraph.engine.schema import Kinds
from condgraph.engine.values import Kind, collapse
from condgraph.languages.llm.bound import ColumnCondition
from condgraph.languages.llm.lower.context import TIME_WORDS
from condgraph.languages.llm.lower.literals import literal_tests, read_times
from condgraph.languages.llm.lower.results import TIMES, Result, as_values
from condgraph.languages.llm.lower.superlatives import superlative
from condgraph.languages.llm.syntax import tree
from condgraph.vectors.encoders import fold

if TYPE_CHECKING:
    from condgraph.languages.llm.lower.query import Lowering

_SPANS: Final[dict[str, Span]] = {
    "=": "overlaps",
    "!=": "disjoint",
    "<": "before",
    ">": "after",
    "<=": "until",
    ">=": "from",
}


@dataclass(frozen=True, slots=True)
class Key:
    """A qualifier key, or a part of the validity ("interval", "start", "end")."""

    lowering: Lowering
    text: str
    part: Literal["interval", "start", "end"] | None

    @classmethod
    def find(
        cls,
        lowering: Lowering,
        expression: tree.Expression,
        predicates: tuple[str, ...] | None,
        conditions: tuple[ColumnCondition, ...],
    ) -> Key | None:
        """The key as a time word or a qualifier; None where it is a predicate, or nothing that is
        known.
        """
        if not isinstance(expression, tree.Literal):
            return None
        schema = lowering.context.schema
        text = collapse(expression.text)
        part = TIME_WORDS.get(fold(text))
        if part is not None and lowering.context.linker.temporal:
            return cls(lowering, text, part)  # type: ignore[arg-type]
        owners = predicates or (None,)
        same = [key for key in schema.qualifiers if fold(key) == fold(text)]
        for key in [text] if text in same else same:
            if any(schema.has_qualifier(key, owner) for owner in owners):
                return cls(lowering, key, None)
        return None

    @property
    def what(self) -> str:
        """What it is, in words."""
        return "a time word: when the facts hold" if self.part is not None else "a qualifier"

    @property
    def kinds(self) -> Kinds:
        """The kinds of its values."""
        return TIMES if self.part is not None else self.lowering.context.schema.qualifier_kinds(self.text)

    def values(self, facts: Facts) -> Result:
        """The qualifier's values, or when the facts hold."""
        if self.part is not None:
            whole = facts if self.part == "interval" else None
            return Result(Validity(facts, self.part), kinds=TIMES, validity=whole, carried=True)
        kinds = self.lowering.context.schema.qualifier_kinds(self.text)
        return Result(Qualifiers(facts, self.text), kinds=kinds, column=self.text, carried=True)

    def where(self, facts: Facts, *conditions: ColumnCondition) -> Facts:
        """The facts whose qualifier, or validity, satisfies every condition."""
        for condition in conditions:
            facts = self._where(facts, condition)
        return facts

    def _where(self, facts: Facts, condition: ColumnCondition) -> Facts:
        value = condition.value
        if self.part is None:
            return WhereQualifier(facts, self.text, self._test(condition))
        if isinstance(value, tree.Literal):
            word = superlative(value.text, TIMES) if condition.op != "!=" else None
            if word is not None:
                # Of whole intervals the earliest begins first, and the latest ends last.
                part = self.part if self.part != "interval" else "start" if word[1] == "smallest" else "end"
                return WhereValidity(facts, part, Versus("=", Extreme(Validity(facts, part), word[1])))
            times = read_times(value.text)
            if not times:
                return self._as_of_entity(facts, condition, value)
            if self.part == "interval":
                relation = _SPANS[condition.op]
                return During(facts, relation, times[0]) if len(times) == 1 else DuringAny(facts, relation, Constants(tuple(times)))
            return WhereValidity(facts, self.part, any_of([Compare(condition.op, time) for time in times]))
        limits = self._times(self.lowering.evaluate(value), facts)
        if self.part == "interval":
            return DuringAny(facts, _SPANS[condition.op], limits)
        return WhereValidity(facts, self.part, Versus(condition.op, limits))

    def _as_of_entity(self, facts: Facts, condition: ColumnCondition, literal: tree.Literal) -> Facts:
        """A literal that is no time and names something that has one: the time of it."""
        context = self.lowering.context
        if not context.schema.has_entity(collapse(literal.text)):
            raise LiteralError(f"{literal.text!r} is no time", span=literal.span, hint="a year is 1960, a day 1960-02-01")
        context.warn(f"{literal.text!r} is no time; the times of the facts of the entity of this name are taken")
        limits = Validity(Scan(ByName((collapse(literal.text),)), None), "interval")
        if self.part == "interval":
            return DuringAny(facts, _SPANS[condition.op], limits)
        assert self.part is not None
        return WhereValidity(facts, self.part, Versus(condition.op, limits))

    def _times(self, result: Result, facts: Facts) -> Values:
        """What an earlier query gave, as times; entities stand for when their facts hold."""
        if result.literal is not None:
            times = read_times(result.literal.text)
            if times:
                return Constants(tuple(times))
        if isinstance(result.node, Entities):
            self.lowering.context.warn("entities as a time stand for the times of their facts")
            return Validity(Scan(result.node, None), "interval")
        return as_values(result)

    def _test(self, condition: ColumnCondition) -> Condition:
        value = condition.value
        context = self.lowering.context
        if not isinstance(value, tree.Literal):
            result = self.lowering.evaluate(value)
            if result.literal is None:
                return Versus(condition.op, self.lowering.as_bag(result))
            value = result.literal
        kinds = context.schema.qualifier_kinds(self.text)
        typed = literal_tests(condition.op, value.text, kinds)
        for remark in typed.remarks:
            context.warn(remark)
        tests = list(typed.conditions)
        types = {kind for kind, _ in kinds}
        if types & {Kind.TEXT, Kind.ENTITY} or not tests:
            if typed.refused:
                raise LiteralError(f"{self.text!r}: {typed.refused}, which do not compare", span=value.span)
            if not types & {Kind.TEXT, Kind.ENTITY}:
                wanted = " or ".join(sorted(kind.name.lower() for kind in types))
                raise LiteralError(f"{value.text!r} cannot be read as {wanted}, the type of {self.text!r}", span=value.span)
            tests.append(Compare(condition.op, collapse(value.text)))
        return any_of(tests)
