"""Questions as records, and their KoPL programs.

A `Description` names an entity, or describes a set of entities by a concept and by conditions on
attributes and relations, whose other ends are described in turn. An `Ask` is a question about
descriptions, of one of the nine kinds of KQA Pro's Table 8. Both are trees of names and values;
`asked` and `steps` write them as KoPL, the module `words` as English.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from condgraph.engine.values import Precision, Quantity, Time, text_of
from condgraph.languages.kopl.table import FUNCTIONS

#: A call of KoPL: the function and its text arguments.
Call: TypeAlias = tuple[str, tuple[str, ...]]
#: A value in a condition; an entity in a qualifier is the text of its name.
Cell: TypeAlias = str | Quantity | Time

#: The kinds of questions (KQA Pro, Table 8).
KINDS: Final = (
    "QueryName",
    "Count",
    "QueryAttribute",
    "Relation",
    "SelectAmong",
    "SelectBetween",
    "Verify",
    "QualifierLiteral",
    "QualifierRelational",
)
#: The kinds of questions about tables. KoPL has no functions for them, so they are LLM queries.
TABLE_KINDS: Final = ("Row", "Superlative", "Sum", "Group")


@dataclass(frozen=True, slots=True)
class Restriction:
    """A condition on a qualifier of a statement."""

    key: str
    op: str
    value: Cell


@dataclass(frozen=True, slots=True)
class Literal:
    """A condition on an attribute."""

    key: str
    op: str
    value: Cell
    qualifiers: tuple[Restriction, ...] = ()

    @property
    def hops(self) -> int:
        """The number of attributes and qualifiers in it."""
        return 1 + len(self.qualifiers)


@dataclass(frozen=True, slots=True)
class RelationCondition:
    """A condition on a relation. `outward`: the described entity is its subject."""

    predicate: str
    outward: bool
    target: Description
    qualifiers: tuple[Restriction, ...] = ()

    @property
    def hops(self) -> int:
        """The number of relations, attributes and qualifiers in it."""
        return 1 + len(self.qualifiers) + self.target.hops


Condition: TypeAlias = Literal | RelationCondition


@dataclass(frozen=True, slots=True)
class Description:
    """A name; or a concept (None: anything) and conditions that all hold, or any of them (`union`)."""

    name: str | None = None
    concept: str | None = None
    conditions: tuple[Condition, ...] = ()
    union: bool = False

    @property
    def hops(self) -> int:
        """The number of relations, attributes and qualifiers in it."""
        return sum(condition.hops for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Ask:
    """A question of one of `KINDS` about one description or two, with the attribute, value and qualifier that it
    concerns.
    """

    kind: str
    first: Description
    second: Description | None = None
    key: str = ""
    value: Cell = ""
    op: str = ""
    qualifier: Restriction | None = None
    qkey: str = ""

    @property
    def hops(self) -> int:
        """The number of relations, attributes, qualifiers and comparisons in the question (KQA Pro, Appendix I)."""
        base_hops = {"QueryAttribute": 1, "Relation": 1, "SelectAmong": 2, "SelectBetween": 3, "Verify": 2}
        result = base_hops.get(self.kind, 2 if self.kind.startswith("Qualifier") else 0)
        return result + (self.qualifier is not None) + self.first.hops + (0 if self.second is None else self.second.hops)


def family(value: Cell) -> str:
    """Return the type of a value in names of KoPL functions: "Str", "Num", "Year" or "Date"."""
    if isinstance(value, str):
        return "Str"
    if isinstance(value, Quantity):
        return "Num"
    return "Year" if value.precision is Precision.YEAR else "Date"


def _test(function: str, texts: tuple[str, ...], value: Cell, op: str) -> Call:
    kind = family(value)
    return function + kind, (*texts, text_of(value)) if kind == "Str" else (*texts, text_of(value), op)


def located(described: Description) -> list[Call]:
    """Return the calls that find the described entities."""
    if described.name is not None:
        return [("Find", (described.name,))]
    last: list[Call] = [] if described.concept is None else [("FilterConcept", (described.concept,))]
    if described.union:
        result: list[Call] = []
        for at, condition in enumerate(described.conditions):
            result += [*_condition(condition, []), *last, *([("Or", ())] if at else [])]
        return result
    # Relations start from their other ends; attributes filter the result.
    calls: list[Call] = []
    for condition in described.conditions:
        if isinstance(condition, RelationCondition):
            joins = bool(calls)
            calls += _condition(condition, [])
            if joins:
                calls.append(("And", ()))
    for condition in described.conditions:
        if isinstance(condition, Literal):
            calls = _condition(condition, calls)
    return [*(calls or [("FindAll", ())]), *last]


def _condition(condition: Condition, before: list[Call]) -> list[Call]:
    if isinstance(condition, RelationCondition):
        calls = [*located(condition.target), ("Relate", (condition.predicate, "backward" if condition.outward else "forward"))]
    else:
        calls = [*(before or [("FindAll", ())]), _test("Filter", (condition.key,), condition.value, condition.op)]
    return [*calls, *(_test("QFilter", (qualifier.key,), qualifier.value, qualifier.op) for qualifier in condition.qualifiers)]


def asked(ask: Ask) -> list[Call]:
    """Return the calls of a question."""
    calls = located(ask.first) + ([] if ask.second is None else located(ask.second))
    if ask.kind == "QueryAttribute" or ask.kind == "Verify":
        if ask.qualifier is None:
            calls.append(("QueryAttr", (ask.key,)))
        else:
            calls.append(("QueryAttrUnderCondition", (ask.key, ask.qualifier.key, text_of(ask.qualifier.value))))
        if ask.kind == "Verify":
            calls.append(_test("Verify", (), ask.value, ask.op))
        return calls
    last_call: dict[str, Call] = {
        "QueryName": ("QueryName", ()),
        "Count": ("Count", ()),
        "Relation": ("QueryRelation", ()),
        "SelectAmong": ("SelectAmong", (ask.key, ask.op)),
        "SelectBetween": ("SelectBetween", (ask.key, ask.op)),
        "QualifierLiteral": ("QueryAttrQualifier", (ask.key, text_of(ask.value), ask.qkey)),
        "QualifierRelational": ("QueryRelationQualifier", (ask.key, ask.qkey)),
    }
    return [*calls, last_call[ask.kind]]


def steps(calls: list[Call]) -> list[dict[str, Any]]:
    """Return calls as the JSON of the data set: each step with the steps that it depends on."""
    result: list[dict[str, Any]] = []
    stack: list[int] = []
    for at, (function, texts) in enumerate(calls):
        arity = FUNCTIONS[function].inputs
        dependencies = stack[len(stack) - arity :]
        del stack[len(stack) - arity :]
        stack.append(at)
        result.append({"function": function, "dependencies": dependencies, "inputs": list(texts)})
    return result


def without_each(described: Description) -> Iterator[Description]:
    """Yield the description without one of its conditions or qualifiers, for each of them at any depth. Concepts stay."""
    for at, condition in enumerate(described.conditions):
        before, after = described.conditions[:at], described.conditions[at + 1 :]
        remaining = (*before, *after)
        yield replace(described, conditions=remaining, union=described.union and len(remaining) > 1)
        for i in range(len(condition.qualifiers)):
            reduced = replace(condition, qualifiers=condition.qualifiers[:i] + condition.qualifiers[i + 1 :])
            yield replace(described, conditions=(*before, reduced, *after))
        if isinstance(condition, RelationCondition):
            for target in without_each(condition.target):
                yield replace(described, conditions=(*before, replace(condition, target=target), *after))


def says_nothing(described: Description) -> bool:
    """Whether a target in it, at any depth, has neither a name nor a condition."""
    for condition in described.conditions:
        if isinstance(condition, RelationCondition):
            target = condition.target
            if (target.name is None and not target.conditions) or says_nothing(target):
                return True
    return False


def conditions_of(described: Description | None) -> Iterator[Condition]:
    """Yield every condition, at any depth."""
    for condition in () if described is None else described.conditions:
        yield condition
        if isinstance(condition, RelationCondition):
            yield from conditions_of(condition.target)


def described_in(ask: Ask) -> tuple[Description, ...]:
    return (ask.first,) if ask.second is None else (ask.first, ask.second)
