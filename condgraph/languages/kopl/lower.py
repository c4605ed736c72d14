"""Lowers KoPL (KQA Pro, section 3 and Table 6) to the algebra; `docs/reference/kopl.md` defines each function.

`lower` parses a program in any of its written forms, resolves its names against the schema, and returns one plan. The
result of a step is a set of entities, facts or values. A function that takes entities accepts facts, too, and uses the
entities that they reach.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import permutations
from operator import itemgetter
from typing import Any, Final, TypeVar

from condgraph.engine import algebra as alg
from condgraph.engine.bounds import current
from condgraph.engine.errors import LiteralError, PlanError, UnknownNameError, nearest
from condgraph.engine.facts import EntityKind
from condgraph.engine.lowered import Lowered
from condgraph.engine.schema import Kinds, Schema
from condgraph.engine.values import Kind, collapse
from condgraph.languages.kopl.syntax import parse, parted, places
from condgraph.languages.kopl.table import CLOSED, COMPARED, FUNCTIONS, CallSpan, Program, Span, Step, form
from condgraph.languages.literals import formed_literal, quantity_test, read_quantity, read_time, readings
from condgraph.languages.parameters import GivenText, hole
from condgraph.names.words import Forms, OnUnknown, near_names, read_as

# -- Shared state of the rules -----------------------------------------------------------------------
# A KoPL program is a tree, so operators are created inputs first. `Lowering` records them in that
# order, and notices when it creates something that a pass (`engine.passes`) would rewrite. Most
# programs have none of that, and their plans run without the passes.


#: A function call inside a text that should be a name.
_CALL: Final = re.compile(rf"\b({'|'.join(FUNCTIONS)})\(")
Read = TypeVar("Read")
Made = TypeVar("Made", bound=alg.Node)


class Lowering:
    """State of one lowering: the schema, the current step, and the handling of unknown names."""

    __slots__ = (
        "_by_name",
        "_members",
        "_rows",
        "_scans",
        "_spans",
        "lenient",
        "on_unknown",
        "order",
        "program",
        "results",
        "schema",
        "steps",
        "tidy",
        "warnings",
    )

    def __init__(self, schema: Schema, on_unknown: OnUnknown, program: Program) -> None:
        self.schema, self.on_unknown, self.program = schema, on_unknown, program
        self.lenient = on_unknown == "empty"
        self.warnings: list[str] = []
        #: The steps of the program, and the operators of those lowered so far.
        self.steps: list[Step] = []
        self.results: list[alg.Node] = []
        #: Every operator of the plan, inputs first.
        self.order: list[alg.Node] = []
        #: Whether `order` is correct and no pass would change the plan; the rules clear it where
        #: they create something that a pass would rewrite.
        self.tidy = True
        # Equal names share one operator.
        self._by_name: dict[str, alg.ByName] = {}
        self._members: dict[str, alg.Members] = {}
        self._rows: dict[str, alg.AllEntities] = {}
        self._scans: set[tuple[int, tuple[str] | None, str, str]] = set()
        self._spans: list[CallSpan] | None = None

    @property
    def function(self) -> str:
        """The function of the current step."""
        return self.steps[len(self.results)].function

    def span(self, i: int | None = None) -> Span | None:
        """Return the position of the i-th text of the current step, or of the whole step."""
        if self._spans is None:
            # Computed once: a program may have as many unknown names as steps.
            self._spans = places(self.program, self.knows)
        if not self._spans:
            return None
        step_span = self._spans[len(self.results)]
        return step_span.call if i is None else step_span.texts[i]

    # -- operators ---------------------------------------------------------------------------------

    def put(self, node: Made) -> Made:
        """Append an operator to `order`, and return it."""
        self.order.append(node)
        return node

    def scan(
        self, of: alg.Entities, predicates: tuple[str] | None, anchor: alg.End, reach: alg.End, family: alg.Family
    ) -> alg.Scan:
        """Return a scan of one predicate, or of all; two equal scans leave work to a pass."""
        key = 0 if type(of) is alg.AllEntities and of.source is None else id(of), predicates, anchor, reach
        if key in self._scans:
            self.tidy = False
        self._scans.add(key)
        node = alg.Scan(of, predicates, anchor, reach, family)
        self.order.append(node)
        return node

    def named(self, name: str) -> alg.ByName:
        """Return the entities of a name."""
        result = self._by_name.get(name)
        if result is None:
            result = self._by_name[name] = self.put(alg.ByName((name,)))
        return result

    def members(self, concept: str) -> alg.Members:
        """Return the members of the concepts of a name."""
        result = self._members.get(concept)
        if result is None:
            result = self._members[concept] = self.put(alg.Members(self.named(concept)))
        return result

    def rows(self, table: str) -> alg.AllEntities:
        """Return the rows of a table that is not a concept."""
        result = self._rows.get(table)
        if result is None:
            result = self._rows[table] = self.put(alg.AllEntities((EntityKind.ROW,), table, own=True))
        return result

    def drop(self, node: alg.Entities) -> None:
        """Remove an operator that is not needed after all, and that no other operator uses, from `order`."""
        if self.order[-1] is node:
            self.order.pop()
        else:
            self.tidy = False

    # -- inputs of the right sort ------------------------------------------------------------------

    def entities(self, node: alg.Node) -> alg.Entities:
        """Return a step's result as entities: itself, or the entities that its facts reach."""
        if isinstance(node, alg.Entities):
            return node
        if isinstance(node, alg.Facts):
            return self.put(alg.Reached(node))
        raise PlanError(f"{self.function} takes entities; the step before gives {sort_of(node)}", span=self.span())

    def values(self, node: alg.Node) -> alg.Values:
        """Return a step's result if it is a bag of values; raises `PlanError` otherwise."""
        if isinstance(node, alg.Values):
            return node
        hint = "QueryAttr gives the values of an attribute" if isinstance(node, (alg.Entities, alg.Facts)) else None
        raise PlanError(f"{self.function} takes values; the step before gives {sort_of(node)}", span=self.span(), hint=hint)

    def facts(self, node: alg.Node) -> alg.Facts:
        """Return a step's result if it is facts; raises `PlanError` otherwise."""
        if isinstance(node, alg.Facts):
            return node
        raise PlanError(
            f"{self.function} takes facts; the step before gives {sort_of(node)}",
            span=self.span(),
            hint="it follows FilterStr, FilterNum, FilterYear, FilterDate, Relate or another QFilter",
        )

    # -- names -------------------------------------------------------------------------------------

    def knows(self, role: str, text: str) -> bool:
        """Whether a text is a known name for a role; roles without a vocabulary accept any text."""
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
        """Raise the error for an unknown name, or record a warning if unknown names are allowed."""
        hint = hint or self._unclosed(name)
        if not self.lenient and hint is None:
            candidates, hint = self._misplaced(name, i, candidates)
        error = UnknownNameError(kind, name, candidates=candidates, span=self.span(i), hint=hint)
        if not self.lenient:
            raise error
        self.warnings.append(f"{error}; it matches nothing")

    def _unclosed(self, text: str) -> str | None:
        """Return a hint for a text that contains another call, because its own parenthesis is not closed.

        The value of a parameter is never parsed, so there is no hint for it.
        """
        if isinstance(text, GivenText):
            return None
        if (parameter := hole(text)) is not None:
            return f"a parameter has its value when the program is prepared: graph.prepare(...)({parameter}=...)"
        match = _CALL.search(text)
        if match is None:
            return None
        if hint := parted(text):
            return hint
        return f"the parenthesis of {self.function} is not closed before {match[1]}; a name that holds this is put in double quotes"

    def _misplaced(self, name: str, i: int, candidates: list[str]) -> tuple[list[str], str | None]:
        """Return better candidates and a hint for a text in the wrong role.

        The arguments may be in another order, or the text may hold more than one argument.
        """
        function, texts, _ = self.steps[len(self.results)]
        roles = FUNCTIONS[function].texts
        if any(isinstance(text, GivenText) for text in texts):
            return candidates, None
        for order in permutations(texts):
            if order != texts and all(map(self._fits, roles, order)):
                return [order[i]], f"its arguments are in another order: {function}({', '.join(order)})"
        first = name.partition(",")[0].strip()
        if first != name and roles[i] in _NAME_ROLES and self._fits(roles[i], first):
            many = f"{len(roles)} argument{'' if len(roles) == 1 else 's'}"
            return [first, *candidates], f"{function} takes {many}: {form(function)}"
        return candidates, None

    def _fits(self, role: str, text: str) -> bool:
        """Whether a text can have a role: a known name, or for a value a text that is not a name of another role."""
        if role in ("value", "qvalue"):
            return not any(self.knows(vocabulary, text) for vocabulary in (*CLOSED, "key", "qkey", "relation"))
        return self.knows(role, text)

    def relation(self, name: str, i: int) -> str:
        """Resolve the name of a relation."""
        if self.schema.has_relation(name):
            return name
        hint = "it is an attribute: QueryAttr reads it" if self.schema.has_attribute(name) else None
        return self.written("relation", name, i, self.schema.relations, hint)

    def attribute(self, name: str, i: int) -> str:
        """Resolve the name of an attribute."""
        if self.schema.has_attribute(name):
            return name
        hint = "it is a relation: Relate follows it" if self.schema.has_relation(name) else None
        if hint is None and self.schema.has_qualifier(name):
            hint = _QUALIFIER
        return self.written("attribute", name, i, self.schema.attributes, hint)

    def qualifier(self, name: str, i: int) -> str:
        """Resolve a qualifier key."""
        if self.schema.has_qualifier(name):
            return name
        hint = None
        if self.schema.has_attribute(name):
            hint = "it is an attribute: QueryAttr reads it, FilterStr, FilterNum, FilterYear and FilterDate test it"
        return self.written("qualifier", name, i, self.schema.qualifiers, hint)

    def written(self, kind: str, name: str, i: int, names: Sequence[str], hint: str | None) -> str:
        """Resolve a name that the graph does not have exactly.

        Returns the graph's name that differs in spelling alone, or the one that `on_unknown="nearest"`
        accepts. Otherwise it raises the error, or returns the name unchanged if unknown names are allowed.
        """
        if hint is not None:
            self.unknown(kind, name, i, near_names(name, names), hint)
            return name
        result, warning, candidates = read_as(kind, name, Forms.of(self.schema.kept, kind, names), self.on_unknown)
        if result is None or warning is None:
            self.unknown(kind, name, i, candidates)
            return name
        if warning not in self.warnings:
            self.warnings.append(warning)
        return result

    def closed(self, text: str, i: int, role: str) -> str:
        """Return a word of a closed vocabulary; raises `UnknownNameError` for any other text."""
        words = CLOSED[role]
        if text not in words:
            kind = {"op": "operator", "direction": "direction"}.get(role, "choice")
            candidates, order = self._misplaced(text, i, nearest(text, words))
            hint = f"{_SPELLINGS[text]!r} is written here" if text in _SPELLINGS else "it is one of " + " ".join(words)
            hint = self._unclosed(text) or order or hint
            raise UnknownNameError(kind, text, candidates=candidates, span=self.span(i), hint=hint)
        return text

    def operator(self, text: str, i: int) -> alg.Operator:
        return self.closed(text, i, "op")  # type: ignore[return-value]

    # -- typed tests -------------------------------------------------------------------------------

    def typed(self, kind: str, text: str, operator: alg.Operator, i: int, kinds: Kinds) -> alg.Condition:
        """Return the test of a filter or verify function; `kind` is "Str", "Num", "Year" or "Date"."""
        if kind == "Str":
            return alg.Compare(operator, formed_literal(text, kinds) or collapse(text))
        try:
            if kind == "Num":
                return quantity_test(operator, self.literal(i, read_quantity, text), kinds)
            return alg.Compare(operator, self.literal(i, read_time, text))
        except LiteralError as error:
            value_kinds = {value_kind for value_kind, _ in kinds}
            if value_kinds and value_kinds <= COMPARED.keys() - {Kind.QUANTITY if kind == "Num" else Kind.TIME}:
                # Tell the caller which type the values really have.
                descriptions = [
                    f"{word}, which are compared by Filter{end} and QFilter{end}"
                    for compared, (word, end) in COMPARED.items()
                    if compared in value_kinds
                ]
                error.hint = f"the values are {'; '.join(descriptions)}"
            raise

    def literal(self, i: int, read: Callable[..., Read], *arguments: Any) -> Read:
        """Parse a literal of the i-th text, and add the text's position to an error."""
        try:
            return read(*arguments)
        except LiteralError as error:
            error.span = self.span(i)
            raise


#: Roles whose texts are names of the graph.
_NAME_ROLES: Final = frozenset(("relation", "key", "qkey"))
_QUALIFIER: Final = (
    "it is a qualifier of facts: QueryAttrQualifier and QueryRelationQualifier read it, "
    "QFilterStr, QFilterNum, QFilterYear and QFilterDate test it"
)
_SPELLINGS = {"==": "=", "<>": "!=", "=>": ">=", "=<": "<=", "≥": ">=", "≤": "<=", "≠": "!="}


def sort_of(node: alg.Node) -> str:
    """Return the sort of an operator's result in words, for messages."""
    for sort, word in ((alg.Entities, "entities"), (alg.Facts, "facts"), (alg.Values, "values")):
        if isinstance(node, sort):
            return word
    return "a single result"


# -- Rules -------------------------------------------------------------------------------------------


def lower(program: Program, schema: Schema, *, on_unknown: OnUnknown = "error") -> Lowered:
    """Parse a program and lower it to a plan.

    `on_unknown="empty"` lets unknown names match nothing, with a warning; "nearest" replaces an unknown
    predicate by the nearest name, and reports the substitution.

    Raises `ParseError` for text that is not a program, `UnknownNameError` with the nearest names,
    `LiteralError` for a literal of the wrong type, and `PlanError` for a step whose inputs have the
    wrong sort.
    """
    lowering = Lowering(schema, on_unknown, program)
    steps, warnings = parse(program, lowering.knows)
    if warnings:
        # Two steps may use the same result.
        lowering.warnings, lowering.tidy = warnings, False
    lowering.steps, results = steps, lowering.results
    budget = current()
    for function, texts, dependencies in steps:
        if budget is not None:
            budget.check()
        inputs = [results[dependencies[0]]] if len(dependencies) == 1 else [results[number] for number in dependencies]
        results.append(_RULES[function](lowering, inputs, texts))
    named_steps = list(zip(map(_function, steps), results, strict=True))
    return Lowered(results[-1], named_steps, lowering.warnings, order=lowering.order if lowering.tidy else None)


_function = itemgetter(0)
#: Operands that an intersection flattens, or that a pass removes from one.
_FLATTENED = (alg.Intersect, alg.AllEntities)
Rule = Callable[[Lowering, list[alg.Node], tuple[str, ...]], alg.Node]


def _find_all(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    return low.put(alg.AllEntities())


def _find(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    if not low.schema.has_entity(texts[0]):
        aliases = low.schema.also_called(texts[0])
        if aliases:
            names = ", ".join(repr(name) for _, name in aliases[:3]) + (", ..." if len(aliases) > 3 else "")
            low.warnings.append(f"no entity is called {texts[0]!r}; it is an alternative label of {names}")
            return low.put(alg.ById(tuple(entity_id for entity_id, _ in aliases)))
        rows = low.schema.keyed(texts[0])
        if len(rows) > 1:
            listed = ", ".join(repr(entity_id) for entity_id, _ in rows[:5]) + (", ..." if len(rows) > 5 else "")
            low.warnings.append(f"no entity is called {texts[0]!r}; it is the key of several rows, and means all: {listed}")
        if rows:
            return low.put(alg.ById(tuple(entity_id for entity_id, _ in rows)))
        hint = None
        if low.schema.has_id(texts[0]):
            hint = "it is the id of an entity; Find takes names"
        elif not low.lenient and (attributes := low.schema.attributes_with(texts[0])):
            more = f" and {len(attributes) - 1} more" if len(attributes) > 1 else ""
            hint = f"it is a value of {attributes[0]!r}{more}: FilterStr({attributes[0]}, ...) finds what has it"
        low.unknown("entity", texts[0], 0, [] if low.lenient else low.schema.nearest_entities(texts[0]), hint)
    return low.named(texts[0])


def _filter_concept(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    table = low.schema.table_called(texts[0])
    if table is None and not low.schema.has_concept(texts[0]):
        table, texts = _concept(low, texts[0])
    of = low.entities(inputs[0])
    everything = type(of) is alg.AllEntities and of.source is None
    if everything or type(of) is alg.Intersect:
        # Members are entities, so an intersection with all entities is not needed.
        low.drop(of)
    members = low.members(texts[0]) if table is None else low.rows(table)
    return members if everything or of is members else low.put(alg.intersect(of, members))


def _concept(low: Lowering, name: str) -> tuple[str | None, tuple[str, ...]]:
    """Resolve a concept or table whose name is spelled differently: the table or None, and the texts."""
    schema = low.schema
    forms = Forms.of(schema.kept, "concept", (*schema.concepts, *schema.tables))
    # A server's schema may claim that any entity exists, so a single match in spelling comes first.
    if len(forms.same(name)) != 1 and schema.has_entity(name):
        hint = "there is an entity of this name, and it is not a concept: Find begins with it"
        low.unknown("concept", name, 0, near_names(name, forms.names), hint)
    else:
        name = low.written("concept", name, 0, forms.names, None)
    return schema.table_called(name), (name,)


def _attribute_facts(low: Lowering, of: alg.Node, key: str, i: int) -> tuple[alg.Scan, str]:
    """Return the scan of an attribute, and the attribute's name in the graph."""
    entities, name = low.entities(of), low.attribute(key, i)
    return low.scan(entities, (name,), "subject", "subject", "attribute"), name


def _filter(kind: str) -> Rule:
    def rule(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
        operator = low.operator(texts[2], 2) if len(texts) > 2 else "="
        facts, key = _attribute_facts(low, inputs[0], texts[0], 0)
        return low.put(alg.Where(facts, low.typed(kind, texts[1], operator, 1, low.schema.attribute_kinds(key))))

    return rule


def _qualifier_filter(kind: str) -> Rule:
    def rule(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
        operator = low.operator(texts[2], 2) if len(texts) > 2 else "="
        facts, key = low.facts(inputs[0]), low.qualifier(texts[0], 0)
        return low.put(alg.WhereQualifier(facts, key, low.typed(kind, texts[1], operator, 1, low.schema.qualifier_kinds(key))))

    return rule


def _relate(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    of, relation = low.entities(inputs[0]), low.relation(texts[0], 0)
    if low.closed(texts[1], 1, "direction") == "forward":
        return low.scan(of, (relation,), "subject", "object", "relation")
    return low.scan(of, (relation,), "object", "subject", "relation")


def _and(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    left, right = low.entities(inputs[0]), low.entities(inputs[1])
    if left is right:
        return left
    if type(left) in _FLATTENED or type(right) in _FLATTENED:
        low.tidy = False
    return low.put(alg.intersect(left, right))


def _or(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    return _either(low, low.entities(inputs[0]), low.entities(inputs[1]))


def _either(low: Lowering, left: alg.Entities, right: alg.Entities) -> alg.Entities:
    if left is right:
        return left
    if type(left) is alg.Union or type(right) is alg.Union:
        low.tidy = False
    return low.put(alg.union(left, right))


def _except(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    return low.put(alg.Minus(low.entities(inputs[0]), low.entities(inputs[1])))


def _query_name(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    return low.put(alg.Names(low.entities(inputs[0])))


def _count(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    return low.put(alg.Count(low.entities(inputs[0])))


def _query_attr(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    return low.put(alg.Distinct(low.put(alg.Objects(_attribute_facts(low, inputs[0], texts[0], 0)[0]))))


def _query_attr_under_condition(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    key, qkey, qvalue = texts
    facts, _ = _attribute_facts(low, inputs[0], key, 0)
    qkey = low.qualifier(qkey, 1)
    test = low.literal(2, readings, "=", qvalue, low.schema.qualifier_kinds(qkey))
    return low.put(alg.Distinct(low.put(alg.Objects(low.put(alg.WhereQualifier(facts, qkey, test))))))


def _query_relation(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    between = low.scan(low.entities(inputs[0]), None, "subject", "object", "relation")
    return low.put(alg.Distinct(low.put(alg.Predicates(low.put(alg.Where(between, alg.Among(low.entities(inputs[1]))))))))


def _select(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    sets = [low.entities(node) for node in inputs]
    role = "between" if len(sets) == 2 else "among"
    word = low.closed(texts[1], 1, role)
    of = _either(low, *sets) if len(sets) == 2 else sets[0]
    best = alg.ArgExtreme(of, low.attribute(texts[0], 0), "largest" if word in ("greater", "largest") else "smallest")
    return low.put(alg.Names(low.put(best)))


def _query_attr_qualifier(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    key, value, qkey = texts
    facts, key = _attribute_facts(low, inputs[0], key, 0)
    test = low.literal(1, readings, "=", value, low.schema.attribute_kinds(key))
    return low.put(alg.Distinct(low.put(alg.Qualifiers(low.put(alg.Where(facts, test)), low.qualifier(qkey, 2)))))


def _query_relation_qualifier(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
    relation, qkey = low.relation(texts[0], 0), low.qualifier(texts[1], 1)
    facts = low.scan(low.entities(inputs[0]), (relation,), "subject", "object", "relation")
    between = low.put(alg.Where(facts, alg.Among(low.entities(inputs[1]))))
    return low.put(alg.Distinct(low.put(alg.Qualifiers(between, qkey))))


def _verify(kind: str) -> Rule:
    def rule(low: Lowering, inputs: list[alg.Node], texts: tuple[str, ...]) -> alg.Node:
        operator = low.operator(texts[1], 1) if len(texts) > 1 else "="
        return low.put(alg.AnySatisfies(low.values(inputs[0]), low.typed(kind, texts[0], operator, 0, {})))

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
    "Except": _except,
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
