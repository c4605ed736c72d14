"""KoPL (KQA Pro, section 3 and Table 6) lowered to the algebra;
`docs/reference/kopl.md` says what each function means.

`lower` parses a program in any written form, resolves its names against the schema, and gives one
plan. Each step leaves a result of one sort; where a function takes entities and the step before
left facts, the entities those facts reached are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from condgraph.engine.algebra import (
    AllEntities,
    Among,
    AnySatisfies,
    ArgExtreme,
    ById,
    Count,
    Distinct,
    Entities,
    Intersect,
    Names,
    Node,
    Objects,
    Predicates,
    Qualifiers,
    Scan,
    Union,
    Where,
    WhereQualifier,
    intersect,
    union,
)
from condgraph.engine.bounds import current
from condgraph.engine.lowered import Lowered
from condgraph.engine.schema import Schema
from condgraph.languages.kopl.context import Lowering
from condgraph.languages.kopl.syntax import parse
from condgraph.languages.kopl.table import FUNCTIONS, Program
from condgraph.languages.literals import readings
from condgraph.names.words import near_names


def lower(program: Program, schema: Schema, *, on_unknown: str = "error") -> Lowered:
    """Read a program and lower it; `on_unknown="empty"` lets unknown names mean nothing, with a
    warning.

    Raises `ParseError` for text that is no program, `UnknownNameError` with the nearest names,
    `LiteralError` for a literal of the wrong type, and `PlanError` for a step whose inputs are of
    the wrong sort.
    """
    lowering = Lowering(schema, on_unknown == "empty", program)
    steps, warnings = parse(program, lowering.knows)
    if warnings:
        # The result of a step may be taken twice.
        lowering.warnings, lowering.tidy = warnings, False
    lowering.steps, results = steps, lowering.results
    budget = current()
    for function, texts, dependencies in steps:
        if budget is not None:
            budget.check()
        if schema.spelled is not None:
            texts = tuple(map(schema.spelled, FUNCTIONS[function].texts, texts))
        taken = [results[dependencies[0]]] if len(dependencies) == 1 else [results[number] for number in dependencies]
        results.append(_RULES[function](lowering, taken, texts))
    done = list(zip(map(_function, steps), results, strict=True))
    return Lowered(results[-1], done, lowering.warnings, order=lowering.order if lowering.tidy else None)


_function = itemgetter(0)
#: What an intersection takes apart, or a pass takes out of one.
_TAKEN_APART = (Intersect, AllEntities)
Rule = Callable[[Lowering, list[Node], tuple[str, ...]], Node]


def _find_all(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    return low.put(AllEntities())


def _find(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    if not low.schema.has_entity(texts[0]):
        also = low.schema.also_called(texts[0])
        if also:
            names = ", ".join(repr(name) for _, name in also[:3]) + (", ..." if len(also) > 3 else "")
            low.warnings.append(f"no entity is called {texts[0]!r}; it is an alternative label of {names}")
            return low.put(ById(tuple(ident for ident, _ in also)))
        rows = low.schema.keyed(texts[0])
        if len(rows) > 1:
            listed = ", ".join(repr(ident) for ident, _ in rows[:5]) + (", ..." if len(rows) > 5 else "")
            low.warnings.append(f"no entity is called {texts[0]!r}; it is the key of several rows, and means all: {listed}")
        if rows:
            return low.put(ById(tuple(ident for ident, _ in rows)))
        hint = "it is the id of an entity; Find takes names" if low.schema.has_id(texts[0]) else None
        low.unknown("entity", texts[0], 0, [] if low.lenient else low.schema.nearest_entities(texts[0]), hint)
    return low.named(texts[0])


def _filter_concept(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    table = low.schema.table_called(texts[0])
    if table is None and not low.schema.has_concept(texts[0]):
        hint = "there is an entity of this name, and it is no concept: Find begins with it"
        known = (*low.schema.concepts, *low.schema.tables)
        low.unknown("concept", texts[0], 0, near_names(texts[0], known), hint if low.schema.has_entity(texts[0]) else None)
    of = low.entities(inputs[0])
    whole = type(of) is AllEntities and of.source is None
    if whole or type(of) is Intersect:
        # Members are entities already, so that all entities among them are the members.
        low.drop(of)
    members = low.members(texts[0]) if table is None else low.rows(table)
    return members if whole or of is members else low.put(intersect(of, members))


def _attribute_facts(low: Lowering, of: Node, key: str, i: int) -> Scan:
    return low.scan(low.entities(of), (low.attribute(key, i),), "subject", "subject", "attribute")


def _filter(kind: str) -> Rule:
    def rule(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
        operator = low.operator(texts[2], 2) if len(texts) > 2 else "="
        facts = _attribute_facts(low, inputs[0], texts[0], 0)
        return low.put(Where(facts, low.typed(kind, texts[1], operator, 1, low.schema.attribute_kinds(texts[0]))))

    return rule


def _qualifier_filter(kind: str) -> Rule:
    def rule(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
        operator = low.operator(texts[2], 2) if len(texts) > 2 else "="
        facts, key = low.facts(inputs[0]), low.qualifier(texts[0], 0)
        return low.put(WhereQualifier(facts, key, low.typed(kind, texts[1], operator, 1, low.schema.qualifier_kinds(key))))

    return rule


def _relate(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    of, relation = low.entities(inputs[0]), low.relation(texts[0], 0)
    if low.closed(texts[1], 1, "direction") == "forward":
        return low.scan(of, (relation,), "subject", "object", "relation")
    return low.scan(of, (relation,), "object", "subject", "relation")


def _and(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    left, right = low.entities(inputs[0]), low.entities(inputs[1])
    if left is right:
        return left
    if type(left) in _TAKEN_APART or type(right) in _TAKEN_APART:
        low.tidy = False
    return low.put(intersect(left, right))


def _or(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    return _either(low, low.entities(inputs[0]), low.entities(inputs[1]))


def _either(low: Lowering, left: Entities, right: Entities) -> Entities:
    if left is right:
        return left
    if type(left) is Union or type(right) is Union:
        low.tidy = False
    return low.put(union(left, right))


def _query_name(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    return low.put(Names(low.entities(inputs[0])))


def _count(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    return low.put(Count(low.entities(inputs[0])))


def _query_attr(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    return low.put(Distinct(low.put(Objects(_attribute_facts(low, inputs[0], texts[0], 0)))))


def _query_attr_under_condition(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    key, qkey, qvalue = texts
    facts = _attribute_facts(low, inputs[0], key, 0)
    test = low.literal(2, readings, "=", qvalue, low.schema.qualifier_kinds(low.qualifier(qkey, 1)))
    return low.put(Distinct(low.put(Objects(low.put(WhereQualifier(facts, qkey, test))))))


def _query_relation(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    between = low.scan(low.entities(inputs[0]), None, "subject", "object", "relation")
    return low.put(Distinct(low.put(Predicates(low.put(Where(between, Among(low.entities(inputs[1]))))))))


def _select(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    sets = [low.entities(node) for node in inputs]
    role = "between" if len(sets) == 2 else "among"
    word = low.closed(texts[1], 1, role)
    of = _either(low, *sets) if len(sets) == 2 else sets[0]
    best = ArgExtreme(of, low.attribute(texts[0], 0), "largest" if word in ("greater", "largest") else "smallest")
    return low.put(Names(low.put(best)))


def _query_attr_qualifier(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    key, value, qkey = texts
    facts = _attribute_facts(low, inputs[0], key, 0)
    test = low.literal(1, readings, "=", value, low.schema.attribute_kinds(key))
    return low.put(Distinct(low.put(Qualifiers(low.put(Where(facts, test)), low.qualifier(qkey, 2)))))


def _query_relation_qualifier(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
    relation, qkey = low.relation(texts[0], 0), low.qualifier(texts[1], 1)
    facts = low.scan(low.entities(inputs[0]), (relation,), "subject", "object", "relation")
    there = low.put(Where(facts, Among(low.entities(inputs[1]))))
    return low.put(Distinct(low.put(Qualifiers(there, qkey))))


def _verify(kind: str) -> Rule:
    def rule(low: Lowering, inputs: list[Node], texts: tuple[str, ...]) -> Node:
        operator = low.operator(texts[1], 1) if len(texts) > 1 else "="
        return low.put(AnySatisfies(low.values(inputs[0]), low.typed(kind, texts[0], operator, 0, {})))

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
    "What": _query_name,
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
