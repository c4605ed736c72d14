"""What a question says of the entities it is about, and that as KoPL.

A `Description` names an entity, or describes a set of them: a concept, and conditions on
attributes and relations, whose other ends are described in turn. `Ask` is what is asked of them,
one of the nine kinds of KQA Pro's Table 8. Both are trees of names and values; `steps` writes them
as KoPL, `words` as English.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from condgraph.engine.values import Precision, Quantity, Time, text_of
from condgraph.languages.kopl.table import FUNCTIONS

#: A call of KoPL: the function and its texts.
Call: TypeAlias = tuple[str, tuple[str, ...]]
#: A value in a condition; entities in qualifiers are their names, as texts.
Cell: TypeAlias = str | Quantity | Time

#: The kinds of questions, as KQA Pro's Table 8 has them.
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
#: The kinds over tables, which KoPL has no functions for: LLM queries ask them.
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
        """How many attributes and qualifiers it looks at."""
        return 1 + len(self.qualifiers)


@dataclass(frozen=True, slots=True)
class RelationCondition:
    """A condition on a relation: `outward` says that what is described is its subject."""

    predicate: str
    outward: bool
    target: Description
    qualifiers: tuple[Restriction, ...] = ()

    @property
    def hops(self) -> int:
        """How many relations, attributes and qualifiers it looks at."""
        return 1 + len(self.qualifiers) + self.target.hops


Condition: TypeAlias = Literal | RelationCondition


@dataclass(frozen=True, slots=True)
class Description:
    """A name; or a concept (None: anything) and conditions, all of which hold, or any (`union`)."""

    name: str | None = None
    concept: str | None = None
    conditions: tuple[Condition, ...] = ()
    union: bool = False

    @property
    def hops(self) -> int:
        """How many relations, attributes and qualifiers it looks at."""
        return sum(condition.hops for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Ask:
    """A question of one of `KINDS`: of one description or two, with the attribute, value and
    qualifier that it is about.
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
        """How many relations, attributes, qualifiers and comparisons the question is made of (KQA
        Pro, Appendix I).
        """
        own = {"QueryAttribute": 1, "Relation": 1, "SelectAmong": 2, "SelectBetween": 3, "Verify": 2}
        result = own.get(self.kind, 2 if self.kind.startswith("Qualifier") else 0)
        return result + (self.qualifier is not None) + self.first.hops + (0 if self.second is None else self.second.hops)


def family(value: Cell) -> str:
    """What KoPL calls the type of a value: "Str", "Num", "Year" or "Date"."""
    if isinstance(value, str):
        return "Str"
    if isinstance(value, Quantity):
        return "Num"
    return "Year" if value.precision is Precision.YEAR else "Date"


def _test(function: str, texts: tuple[str, ...], value: Cell, op: str) -> Call:
    kind = family(value)
    return function + kind, (*texts, text_of(value)) if kind == "Str" else (*texts, text_of(value), op)


def located(described: Description) -> list[Call]:
    """The calls that find what is described."""
    if described.name is not None:
        return [("Find", (described.name,))]
    last: list[Call] = [] if described.concept is None else [("FilterConcept", (described.concept,))]
    if described.union:
        result: list[Call] = []
        for at, condition in enumerate(described.conditions):
            result += [*_condition(condition, []), *last, *([("Or", ())] if at else [])]
        return result
    # Relations begin at their other ends; attributes filter what is there.
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
    """The calls of a whole question."""
    calls = located(ask.first) + ([] if ask.second is None else located(ask.second))
    if ask.kind == "QueryAttribute" or ask.kind == "Verify":
        if ask.qualifier is None:
            calls.append(("QueryAttr", (ask.key,)))
        else:
            calls.append(("QueryAttrUnderCondition", (ask.key, ask.qualifier.key, text_of(ask.qualifier.value))))
        if ask.kind == "Verify":
            calls.append(_test("Verify", (), ask.value, ask.op))
        return calls
    texts: dict[str, Call] = {
        "QueryName": ("QueryName", ()),
        "Count": ("Count", ()),
        "Relation": ("QueryRelation", ()),
        "SelectAmong": ("SelectAmong", (ask.key, ask.op)),
        "SelectBetween": ("SelectBetween", (ask.key, ask.op)),
        "QualifierLiteral": ("QueryAttrQualifier", (ask.key, text_of(ask.value), ask.qkey)),
        "QualifierRelational": ("QueryRelationQualifier", (ask.key, ask.qkey)),
    }
    return [*calls, texts[ask.kind]]


def steps(calls: list[Call]) -> list[dict[str, Any]]:
    """Calls as the data set's JSON: each step with the steps that it depends on."""
    result: list[dict[str, Any]] = []
    stack: list[int] = []
    for at, (function, texts) in enumerate(calls):
        needs = FUNCTIONS[function].inputs
        taken = stack[len(stack) - needs :]
        del stack[len(stack) - needs :]
        stack.append(at)
        result.append({"function": function, "dependencies": taken, "inputs": list(texts)})
    return result


def without_each(described: Description) -> Iterator[Description]:
    """The description with one condition taken away, at any depth: every condition once. Concept
    nouns stay.
    """
    for at, condition in enumerate(described.conditions):
        before, after = described.conditions[:at], described.conditions[at + 1 :]
        rest = (*before, *after)
        yield replace(described, conditions=rest, union=described.union and len(rest) > 1)
        for i in range(len(condition.qualifiers)):
            fewer = replace(condition, qualifiers=condition.qualifiers[:i] + condition.qualifiers[i + 1 :])
            yield replace(described, conditions=(*before, fewer, *after))
        if isinstance(condition, RelationCondition):
            for target in without_each(condition.target):
                yield replace(described, conditions=(*before, replace(condition, target=target), *after))


def says_nothing(described: Description) -> bool:
    """Whether some target within has neither a name nor a condition."""
    for condition in described.conditions:
        if isinstance(condition, RelationCondition):
            target = condition.target
            if (target.name is None and not target.conditions) or says_nothing(target):
                return True
    return False


def conditions_of(described: Description | None) -> Iterator[Condition]:
    """Every condition, at any depth."""
    for condition in () if described is None else described.conditions:
        yield condition
        if isinstance(condition, RelationCondition):
            yield from conditions_of(condition.target)


def described_in(ask: Ask) -> tuple[Description, ...]:
    """The descriptions of a question."""
    return (ask.first,) if ask.second is None else (ask.first, ask.second)
