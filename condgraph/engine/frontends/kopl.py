"""KoPL (KQA Pro, section 3 and Table 6) lowered to the algebra; `docs/kopl.md` says what each function means.

`lower` parses a program in any written form, resolves its names against the schema, and gives one plan. Each step leaves a result
of one sort; where a function takes entities and the step before left facts, the entities those facts reached are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from condgraph.engine.algebra import (
    Among,
    Best,
    Compare,
    Count,
    Distinct,
    Entities,
    Every,
    Facts,
    Members,
    Named,
    Names,
    Node,
    Objects,
    Operator,
    Predicates,
    Qualifiers,
    Reached,
    Scan,
    Some,
    Test,
    Values,
    Where,
    WhereQualifier,
    intersect,
    union,
)
from condgraph.engine.errors import LiteralError, PlanError, UnknownNameError, nearest
from condgraph.engine.frontends.kopl_syntax import CLOSED, FUNCTIONS, Program, Span, Step, parse, places
from condgraph.engine.frontends.literals import quantity_test, read_quantity, read_time, readings
from condgraph.engine.schema import Kinds, Schema
from condgraph.engine.values import collapse

Read = TypeVar("Read")


@dataclass(slots=True)
class Lowered:
    """A plan, which operator each step of the program became, and warnings."""

    plan: Node
    steps: list[tuple[str, Node]]
    warnings: list[str] = field(default_factory=list)


def lower(program: Program, schema: Schema, *, on_unknown: str = "error") -> Lowered:
    """Read a program and lower it; `on_unknown="empty"` lets unknown names mean nothing, with a warning.

    Raises `ParseError` for text that is no program, `UnknownNameError` with the nearest names, `LiteralError` for a literal of the
    wrong type, and `PlanError` for a step whose inputs are of the wrong sort.
    """
    lowering = _Lowering(schema, on_unknown == "empty", program)
    steps, warnings = parse(program, lowering.knows)
    lowering.warnings.extend(warnings)
    lowering.steps, results = steps, lowering.results
    for function, texts, dependencies in steps:
        results.append(_RULES[function](lowering, [results[d] for d in dependencies] if dependencies else [], texts))
    return Lowered(results[-1], [(step[0], node) for step, node in zip(steps, results, strict=True)], lowering.warnings)


class _Lowering:
    """What the rules share: the schema, the step at hand, and what to do with unknown names."""

    __slots__ = ("_members", "_named", "lenient", "program", "results", "schema", "steps", "warnings")

    def __init__(self, schema: Schema, lenient: bool, program: Program) -> None:
        self.schema, self.lenient, self.program = schema, lenient, program
        self.warnings: list[str] = []
        #: The program, and what its steps became so far.
        self.steps: list[Step] = []
        self.results: list[Node] = []
        # A name that stands twice is one operator.
        self._named: dict[str, Named] = {}
        self._members: dict[str, Members] = {}

    @property
    def function(self) -> str:
        """The function of the step at hand."""
        return self.steps[len(self.results)].function

    def span(self, i: int | None = None) -> Span | None:
        """Where the i-th text of the step stands, or the whole step."""
        found = places(self.program, self.knows)
        if not found:
            return None
        place = found[len(self.results)]
        return place.call if i is None else place.texts[i]

    # -- inputs of the right sort -----------------------------------------------------------------------------------------

    def entities(self, node: Node) -> Entities:
        """A set of entities, also from facts."""
        if isinstance(node, Entities):
            return node
        if isinstance(node, Facts):
            return Reached(node)
        raise PlanError(f"{self.function} takes entities; the step before gives {_sort(node)}", span=self.span())

    def values(self, node: Node) -> Values:
        """A bag of values."""
        if isinstance(node, Values):
            return node
        hint = "QueryAttr gives the values of an attribute" if isinstance(node, (Entities, Facts)) else None
        raise PlanError(f"{self.function} takes values; the step before gives {_sort(node)}", span=self.span(), hint=hint)

    def facts(self, node: Node) -> Facts:
        """Facts of the step before."""
        if isinstance(node, Facts):
            return node
        raise PlanError(
            f"{self.function} takes facts; the step before gives {_sort(node)}",
            span=self.span(),
            hint="it follows FilterStr, FilterNum, FilterYear, FilterDate, Relate or another QFilter",
        )

    def named(self, name: str) -> Named:
        """The entities of a name."""
        found = self._named.get(name)
        if found is None:
            found = self._named[name] = Named((name,))
        return found

    def members(self, concept: str) -> Members:
        """The members of the concepts of a name."""
        found = self._members.get(concept)
        if found is None:
            found = self._members[concept] = Members(self.named(concept))
        return found

    # -- names ------------------------------------------------------------------------------------------------------------

    def knows(self, role: str, text: str) -> bool:
        """Whether a text is a known name for a role; roles without a vocabulary know every text."""
        schema = self.schema
        if role in CLOSED:
            return text in CLOSED[role]
        if role == "relation":
            return schema.has_relation(text)
        if role == "key":
            return schema.has_attribute(text)
        if role == "qkey":
            return schema.has_qualifier(text)
        return True

    def unknown(self, kind: str, name: str, i: int, candidates: list[str], hint: str | None = None) -> None:
        """Complain of a name, or remember that it means nothing."""
        error = UnknownNameError(kind, name, candidates=candidates, span=self.span(i), hint=hint)
        if not self.lenient:
            raise error
        self.warnings.append(f"{error}; it means nothing here")

    def relation(self, name: str, i: int) -> str:
        """A relation by its exact name."""
        if not self.schema.has_relation(name):
            hint = "it is an attribute: QueryAttr reads it" if self.schema.has_attribute(name) else None
            self.unknown("relation", name, i, nearest(name, self.schema.relations), hint)
        return name

    def attribute(self, name: str, i: int) -> str:
        """An attribute by its exact name."""
        if not self.schema.has_attribute(name):
            hint = "it is a relation: Relate follows it" if self.schema.has_relation(name) else None
            self.unknown("attribute", name, i, nearest(name, self.schema.attributes), hint)
        return name

    def qualifier(self, name: str, i: int) -> str:
        """A qualifier key by its exact name."""
        if not self.schema.has_qualifier(name):
            self.unknown("qualifier", name, i, nearest(name, self.schema.qualifiers))
        return name

    def closed(self, text: str, i: int, role: str) -> str:
        """A word of a closed vocabulary."""
        words = CLOSED[role]
        if text not in words:
            what = {"op": "operator", "direction": "direction"}.get(role, "choice")
            hint = f"{_SPELLINGS[text]!r} is written here" if text in _SPELLINGS else "it is one of " + " ".join(words)
            raise UnknownNameError(what, text, candidates=nearest(text, words), span=self.span(i), hint=hint)
        return text

    def operator(self, text: str, i: int) -> Operator:
        """A comparison operator."""
        return self.closed(text, i, "op")  # type: ignore[return-value]

    # -- typed tests ------------------------------------------------------------------------------------------------------

    def typed(self, kind: str, text: str, operator: Operator, i: int, kinds: Kinds) -> Test:
        """The test of FilterStr, FilterNum, FilterYear or FilterDate and their relatives."""
        if kind == "Str":
            return Compare(operator, collapse(text))
        if kind == "Num":
            return quantity_test(operator, self.literal(i, read_quantity, text), kinds)
        return Compare(operator, self.literal(i, read_time, text))

    def literal(self, i: int, read: Callable[..., Read], *arguments: Any) -> Read:
        """What a reader of literals makes of the i-th text; its complaint gets the position."""
        try:
            return read(*arguments)
        except LiteralError as error:
            error.span = self.span(i)
            raise


_SPELLINGS = {"==": "=", "<>": "!=", "=>": ">=", "=<": "<=", "≥": ">=", "≤": "<=", "≠": "!="}


def _sort(node: Node) -> str:
    for sort, word in ((Entities, "entities"), (Facts, "facts"), (Values, "values")):
        if isinstance(node, sort):
            return word
    return "a single result"


Rule = Callable[[_Lowering, list[Node], tuple[str, ...]], Node]


def _find_all(_: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    return Every()


def _find(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    if not low.schema.has_entity(texts[0]):
        hint = "it is the id of an entity; Find takes names" if low.schema.has_id(texts[0]) else None
        low.unknown("entity", texts[0], 0, [] if low.lenient else low.schema.nearest_entities(texts[0]), hint)
    return low.named(texts[0])


def _filter_concept(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    if not low.schema.has_concept(texts[0]):
        hint = "there is an entity of this name, and it is no concept" if low.schema.has_entity(texts[0]) else None
        low.unknown("concept", texts[0], 0, nearest(texts[0], low.schema.concepts), hint)
    members = low.members(texts[0])
    of = low.entities(inputs[0])
    # Members are entities already, so that all entities among them are the members.
    return members if isinstance(of, Every) else intersect(of, members)


def _attribute_facts(low: _Lowering, of: Node, key: str, i: int) -> Scan:
    return Scan(low.entities(of), (low.attribute(key, i),), family="attribute")


def _filter(kind: str) -> Rule:
    def rule(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
        operator = low.operator(texts[2], 2) if len(texts) > 2 else "="
        facts = _attribute_facts(low, inputs[0], texts[0], 0)
        return Where(facts, low.typed(kind, texts[1], operator, 1, low.schema.attribute_kinds(texts[0])))

    return rule


def _qualifier_filter(kind: str) -> Rule:
    def rule(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
        operator = low.operator(texts[2], 2) if len(texts) > 2 else "="
        facts, key = low.facts(inputs[0]), low.qualifier(texts[0], 0)
        return WhereQualifier(facts, key, low.typed(kind, texts[1], operator, 1, low.schema.qualifier_kinds(key)))

    return rule


def _relate(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    of, relation = low.entities(inputs[0]), low.relation(texts[0], 0)
    if low.closed(texts[1], 1, "direction") == "forward":
        return Scan(of, (relation,), "subject", "object", "relation")
    return Scan(of, (relation,), "object", "subject", "relation")


def _and(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    return intersect(low.entities(inputs[0]), low.entities(inputs[1]))


def _or(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    return union(low.entities(inputs[0]), low.entities(inputs[1]))


def _query_name(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    return Names(low.entities(inputs[0]))


def _count(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    return Count(low.entities(inputs[0]))


def _query_attr(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    return Distinct(Objects(_attribute_facts(low, inputs[0], texts[0], 0)))


def _query_attr_under_condition(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    key, qkey, qvalue = texts
    facts = _attribute_facts(low, inputs[0], key, 0)
    test = low.literal(2, readings, "=", qvalue, low.schema.qualifier_kinds(low.qualifier(qkey, 1)))
    return Distinct(Objects(WhereQualifier(facts, qkey, test)))


def _query_relation(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    between = Scan(low.entities(inputs[0]), None, "subject", "object", "relation")
    return Distinct(Predicates(Where(between, Among(low.entities(inputs[1])))))


def _select(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    sets = [low.entities(node) for node in inputs]
    role = "between" if len(sets) == 2 else "among"
    word = low.closed(texts[1], 1, role)
    of = union(*sets)
    return Names(Best(of, low.attribute(texts[0], 0), "largest" if word in ("greater", "largest") else "smallest"))


def _query_attr_qualifier(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    key, value, qkey = texts
    facts = _attribute_facts(low, inputs[0], key, 0)
    test = low.literal(1, readings, "=", value, low.schema.attribute_kinds(key))
    return Distinct(Qualifiers(Where(facts, test), low.qualifier(qkey, 2)))


def _query_relation_qualifier(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    relation, qkey = low.relation(texts[0], 0), low.qualifier(texts[1], 1)
    facts = Scan(low.entities(inputs[0]), (relation,), "subject", "object", "relation")
    return Distinct(Qualifiers(Where(facts, Among(low.entities(inputs[1]))), qkey))


def _verify(kind: str) -> Rule:
    def rule(low: _Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
        operator = low.operator(texts[1], 1) if len(texts) > 1 else "="
        return Some(low.values(inputs[0]), low.typed(kind, texts[0], operator, 0, {}))

    return rule


_RULES: dict[str, Rule] = {
    "FindAll": _find_all,
    "Find": _find,
    "FilterConcept": _filter_concept,
    **{f"Filter{kind}": _filter(kind) for kind in ("Str", "Num", "Year", "Date")},
    **{f"QFilter{kind}": _qualifier_filter(kind) for kind in ("Str", "Num", "Year", "Date")},
    "Relate": _relate,
    "And": _and,
    "Or": _or,
    "QueryName": _query_name,
    "Count": _count,
    "QueryAttr": _query_attr,
    "QueryAttrUnderCondition": _query_attr_under_condition,
    "QueryRelation": _query_relation,
    "SelectBetween": _select,
    "SelectAmong": _select,
    "QueryAttrQualifier": _query_attr_qualifier,
    "QueryRelationQualifier": _query_relation_qualifier,
    **{f"Verify{kind}": _verify(kind) for kind in ("Str", "Num", "Year", "Date")},
}
assert _RULES.keys() == FUNCTIONS.keys(), "every function of the table has a rule"
