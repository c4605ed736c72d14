"""A reference interpreter of KoPL for comparison with the engine: plain Python over sets, without indexes, columns or
plans.

`Model` collects a loader's items; `answer` runs a program of steps (function, texts, dependencies). It is written from
the meaning of the functions, and shares with the package only the records of items and the parsing of literals
(`facts`, `values`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from condgraph.engine.facts import (
    Batch,
    Entity,
    EntityKind,
    Ids,
    Member,
    Numbers,
    Ref,
    Source,
    Sourced,
    Statement,
    Subclass,
    Texts,
    Times,
    Values,
)
from condgraph.engine.values import (
    UNKNOWN,
    Precision,
    Quantity,
    Time,
    collapse,
    format_number,
    parse_number,
    parse_quantity,
    text_of,
)


def exact(number: Any) -> Fraction:
    """Return a number as it prints: the value of a float's shortest text, or a whole float as an integer."""
    return Fraction(Decimal(repr(number)) if isinstance(number, float) and not number.is_integer() else number)


def identity(value: Any) -> Any:
    """Return a key that is equal for equal values."""
    if isinstance(value, Quantity):
        return ("quantity", exact(value.number), value.unit)
    if isinstance(value, Time):
        return ("time", value.start, value.end, value.precision)
    if isinstance(value, Ref):
        return ("entity", value.id)
    return ("unknown",) if value is UNKNOWN else ("text", value)


def as_kept(value: Any) -> Any:
    """Return a number without insignificant zeros, as a graph stores it."""
    return Quantity(parse_number(format_number(value.number)), value.unit) if isinstance(value, Quantity) else value


def kind_of(value: Any) -> tuple[str, str]:
    """Return the type and unit of a value."""
    mark = identity(value)
    return mark[0], mark[2] if mark[0] == "quantity" else "1"


@dataclass(frozen=True)
class Fact:
    """One statement; equal statements are the same fact."""

    subject: str
    predicate: str
    mark: Any
    qualifier_marks: frozenset[Any]
    object: Any = field(compare=False)
    qualifiers: tuple[tuple[str, Any], ...] = field(compare=False)


class Model:
    """Everything in a graph, as dictionaries and sets."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self.names: dict[str, str] = {}
        self.kinds: dict[str, EntityKind] = {}
        self.facts: dict[Fact, None] = {}
        self.member_of: defaultdict[str, set[str]] = defaultdict(set)
        self.parents: defaultdict[str, set[str]] = defaultdict(set)
        self.of_subject: defaultdict[tuple[str, str], list[Fact]] = defaultdict(list)
        self.of_object: defaultdict[tuple[str, str], list[Fact]] = defaultdict(list)
        self.leaving: defaultdict[str, list[Fact]] = defaultdict(list)
        for item in items:
            self.add(item)
        for fact in self.facts:
            self.of_subject[fact.predicate, fact.subject].append(fact)
            self.leaving[fact.subject].append(fact)
            if isinstance(fact.object, Ref):
                self.of_object[fact.predicate, fact.object.id].append(fact)
        self.by_name: defaultdict[str, set[str]] = defaultdict(set)
        for entity_id in self.kinds:
            self.by_name[self.name(entity_id)].add(entity_id)
        self.relations = {f.predicate for f in self.facts if isinstance(f.object, Ref)}
        self.attribute_kinds: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        self.qualifier_kinds: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        for fact in self.facts:
            if not isinstance(fact.object, Ref):
                self.attribute_kinds[fact.predicate].add(kind_of(fact.object))
            for key, value in fact.qualifiers:
                self.qualifier_kinds[key].add(kind_of(value))

    def add(self, item: Any) -> None:
        """Add one item."""
        if isinstance(item, Sourced):
            self.add(item.item)
        elif isinstance(item, Entity):
            self._touch(item.id)
            if item.name != item.id:
                self.names.setdefault(item.id, item.name)
            kinds = (EntityKind.CONCEPT, EntityKind.ROW, EntityKind.ENTITY)
            self.kinds[item.id] = min((self.kinds[item.id], item.kind), key=kinds.index)
        elif isinstance(item, Member):
            self._touch(item.entity)
            self._concept(item.concept)
            self.member_of[item.entity].add(item.concept)
        elif isinstance(item, Subclass):
            self._concept(item.concept)
            self._concept(item.parent)
            self.parents[item.concept].add(item.parent)
        elif isinstance(item, Statement):
            self._statement(item)
        elif isinstance(item, Batch):
            for statement in unbatched(item):
                self._statement(statement)
        elif not isinstance(item, Source):
            raise TypeError(item)

    def _touch(self, ident: str) -> None:
        self.kinds.setdefault(ident, EntityKind.ENTITY)

    def _concept(self, ident: str) -> None:
        self.kinds[ident] = EntityKind.CONCEPT

    def _statement(self, item: Statement) -> None:
        self._touch(item.subject)
        for value in (item.object, *(value for _, value in item.qualifiers)):
            if isinstance(value, Ref):
                self._touch(value.id)
        marks = frozenset((key, identity(value)) for key, value in item.qualifiers)
        qualifiers = tuple((key, as_kept(value)) for key, value in item.qualifiers)
        fact = Fact(item.subject, item.predicate, identity(item.object), marks, as_kept(item.object), qualifiers)
        self.facts.setdefault(fact)

    # -- lookups -----------------------------------------------------------------------------------

    def name(self, ident: str) -> str:
        """Return the name of an entity: the first one given, else its id."""
        return self.names.get(ident, ident)

    def entities(self) -> set[str]:
        """Return everything except concepts."""
        return {entity_id for entity_id, kind in self.kinds.items() if kind is not EntityKind.CONCEPT}

    def concepts_called(self, name: str) -> set[str]:
        """Return the concepts with a name."""
        return {concept_id for concept_id in self.by_name.get(name, ()) if self.kinds[concept_id] is EntityKind.CONCEPT}

    def is_under(self, concept: str, goals: set[str]) -> bool:
        """Return whether a concept is one of the goals or a descendant of one."""
        visited, waiting = set(), [concept]
        while waiting:
            current = waiting.pop()
            if current in goals:
                return True
            if current not in visited:
                visited.add(current)
                waiting.extend(self.parents.get(current, ()))
        return False

    def attributes(self, of: set[str], key: str) -> list[Fact]:
        """Return the attributes of entities with this key."""
        return [f for entity_id in of for f in self.of_subject.get((key, entity_id), ()) if not isinstance(f.object, Ref)]

    def relates(self, of: set[str], key: str) -> list[Fact]:
        """Return the relations of this name that start at the entities."""
        return [f for entity_id in of for f in self.of_subject.get((key, entity_id), ()) if isinstance(f.object, Ref)]

    # -- tests on values ---------------------------------------------------------------------------

    def compare(self, operator: str, value: Any, literal: Any) -> bool:
        """Return whether a value satisfies a comparison with a typed literal."""
        if isinstance(value, Ref) and isinstance(literal, str):
            value = self.name(value.id)
        if isinstance(literal, Time):
            return isinstance(value, Time) and compare_times(operator, value, literal)
        if isinstance(literal, Quantity):
            if not isinstance(value, Quantity) or value.unit != literal.unit:
                return False
            return _ordered(operator, exact(value.number), exact(literal.number))
        return isinstance(value, str) and _ordered(operator, value, literal)


def _ordered(operator: str, left: Any, right: Any) -> bool:
    return bool(
        {
            "=": left == right,
            "!=": left != right,
            "<": left < right,
            ">": left > right,
            "<=": left <= right,
            ">=": left >= right,
        }[operator]
    )


def compare_times(operator: str, value: Time, target: Time) -> bool:
    return {
        "=": target.start <= value.start and value.end <= target.end,
        "!=": value.end <= target.start or target.end <= value.start,
        "<": value.end <= target.start,
        ">": value.start >= target.end,
        "<=": value.end <= target.end,
        ">=": value.start >= target.start,
    }[operator]


def unbatched(batch: Batch) -> Iterable[Statement]:
    """Yield the statements of a batch one by one."""
    n, column = len(batch), batch.objects
    objects: Sequence[Any]
    if isinstance(column, Ids):
        objects = [Ref(entity_id) for entity_id in column.ids]
    elif isinstance(column, Texts):
        objects = list(column.texts)
    elif isinstance(column, Numbers):
        objects = [Quantity(number, column.unit) for number in column.numbers.tolist()]
    elif isinstance(column, Times):
        parts = zip(column.starts.tolist(), column.ends.tolist(), column.precisions.tolist(), strict=True)
        objects = [Time(start, end, Precision(precision)) for start, end, precision in parts]
    else:
        assert isinstance(column, Values)
        objects = list(column.values)
    predicates = [batch.predicates] * n if isinstance(batch.predicates, str) else batch.predicates
    raws = batch.raws or [None] * n
    for i in range(n):
        qualifiers = tuple((key, values[i]) for key, values in batch.qualifiers if values[i] is not None)
        yield Statement(batch.subjects[i], predicates[i], objects[i], qualifiers, batch.rows[i], raws[i])


# -- programs --------------------------------------------------------------------------------------

#: A step of a program: function, texts, and the numbers of the steps that it depends on.
Call = tuple[str, Sequence[str], Sequence[int]]
OPERATORS = ("=", "!=", "<", ">", "<=", ">=")


@dataclass
class Result:
    """The result of a step: `sort` is "entities", "facts", "values" (entity references are `Ref`), "names" or "one"."""

    sort: str
    found: Any


def answer(model: Model, program: Sequence[Call], *, lenient: bool = False) -> list[str] | set[str]:
    """Return the texts of a program's answer, in the fixed order, without repeats.

    For a program that must be refused, return the names of the errors that may be raised; which one is raised first is
    up to the engine.
    """
    return answer_and_left_out(model, program, lenient=lenient)[0]


def answer_and_left_out(model: Model, program: Sequence[Call], *, lenient: bool = False) -> tuple[list[str] | set[str], int]:
    """Return the same, and the number of values that could not be compared with a literal."""
    step = _Step(model, lenient)
    results: list[Result] = []
    for function, texts, dependencies in program:
        results.append(step.run(function, [results[d] for d in dependencies], texts))
    return step.refusals or texts_of(model, results[-1]), step.left_out


def texts_of(model: Model, result: Result) -> list[str]:
    """Return a result as texts in the fixed order: entities by name; numbers, times, texts and names, then unknown
    values.
    """
    if result.sort == "one":
        return [text_of(result.found)]
    if result.sort == "facts":
        names = sorted(model.name(end) for _, end in result.found)
    elif result.sort in ("entities", "names"):
        names = sorted(model.name(entity_id) for entity_id in result.found)
    else:
        names = [text for _, text in sorted(_placed(model, value) for value in result.found)]
    return list(dict.fromkeys(names))


def _placed(model: Model, value: Any) -> tuple[Any, str]:
    if isinstance(value, Quantity):
        return (1, value.unit, exact(value.number)), text_of(value)
    if isinstance(value, Time):
        return (2, "", value), text_of(value)
    if isinstance(value, Ref):
        return (3, model.name(value.id), 0), model.name(value.id)
    return ((4, "", 0), "unknown") if value is UNKNOWN else ((3, value, 0), value)


class _Step:
    """The functions. Errors are collected and read as empty results, so that later steps are checked too."""

    def __init__(self, model: Model, lenient: bool) -> None:
        self.model, self.lenient = model, lenient
        self.refusals: set[str] = set()
        self.left_out = 0

    def run(self, function: str, inputs: list[Result], texts: Sequence[str]) -> Result:
        for family in ("QFilter", "Filter", "Verify"):
            if function.startswith(family) and function != "FilterConcept":
                return getattr(self, family.lower())(function.removeprefix(family), inputs, *texts)
        return getattr(self, function.lower())(inputs, *texts)

    # -- inputs ------------------------------------------------------------------------------------

    def entities(self, result: Result) -> set[str]:
        if result.sort == "entities":
            return result.found
        if result.sort == "facts":
            return {end for _, end in result.found}
        self.refusals.add("PlanError")
        return set()

    def known(self, there: bool, name: str) -> None:
        if not there and not self.lenient:
            self.refusals.add("UnknownNameError")

    def attribute(self, key: str) -> str:
        self.known(key in self.model.attribute_kinds, key)
        return key

    def qualifier(self, key: str) -> str:
        self.known(key in self.model.qualifier_kinds, key)
        return key

    def relation(self, key: str) -> str:
        self.known(key in self.model.relations, key)
        return key

    def word(self, text: str, words: Sequence[str]) -> str:
        if text not in words:
            self.refusals.add("UnknownNameError")
            return words[0]
        return text

    def literal(self, kind: str, text: str) -> Any:
        if kind == "Str":
            return collapse(text)
        try:
            return parse_quantity(text) if kind == "Num" else Time.parse(text)
        except ValueError:
            self.refusals.add("LiteralError")
            return ""

    def readings(self, text: str, kinds: set[tuple[str, str]]) -> list[Any]:
        """Return a literal of unstated type, parsed as every type that the key has and the text allows."""
        types = {kind for kind, _ in kinds}
        result: list[Any] = [collapse(text)] if not types or types & {"text", "entity"} else []
        for kind, parse in (("time", Time.parse), ("quantity", parse_quantity)):
            if kind in types:
                with suppress(ValueError):
                    result.append(parse(text))
        if not result and types - {"unknown"}:
            self.refusals.add("LiteralError")
        return result

    def holds(self, operator: str, values: Iterable[Any], literals: list[Any]) -> list[bool]:
        """Return, for each value, whether a reading of the literal satisfies the test; count values that no reading can
        be compared with.
        """
        listed = list(values)
        comparable = {kind_of(literal) for literal in literals} | {("unknown", "1")}
        if ("text", "1") in comparable:
            comparable.add(("entity", "1"))
        self.left_out += sum(kind_of(value) not in comparable for value in listed)
        return [any(self.model.compare(operator, value, literal) for literal in literals) for value in listed]

    # -- the functions -----------------------------------------------------------------------------

    def findall(self, inputs: list[Result]) -> Result:
        return Result("entities", self.model.entities())

    def find(self, inputs: list[Result], name: str) -> Result:
        entities = set(self.model.by_name.get(name, ()))
        self.known(bool(entities), name)
        return Result("entities", entities)

    def filterconcept(self, inputs: list[Result], name: str) -> Result:
        concepts = self.model.concepts_called(name)
        self.known(bool(concepts), name)
        descendants = {
            entity_id
            for entity_id, kind in self.model.kinds.items()
            if kind is EntityKind.CONCEPT and self.model.is_under(entity_id, concepts)
        }
        members = {
            entity_id
            for entity_id in self.entities(inputs[0]) & self.model.entities()
            if descendants & self.model.member_of.get(entity_id, set())
        }
        return Result("entities", members)

    def filter(self, kind: str, inputs: list[Result], key: str, text: str, operator: str = "=") -> Result:
        operator = self.word(operator, OPERATORS)
        facts = self.model.attributes(self.entities(inputs[0]), self.attribute(key))
        literal = self.literal(kind, text)
        passed = self.holds(operator, (f.object for f in facts), [literal])
        return Result("facts", {(f, f.subject) for f, holds in zip(facts, passed, strict=True) if holds})

    def qfilter(self, kind: str, inputs: list[Result], key: str, text: str, operator: str = "=") -> Result:
        operator = self.word(operator, OPERATORS)
        pairs = inputs[0].found
        if inputs[0].sort != "facts":
            self.refusals.add("PlanError")
            pairs = set()
        self.qualifier(key)
        literal = self.literal(kind, text)
        return Result("facts", {(f, end) for f, end in pairs if self._qualified(f, key, operator, [literal])})

    def _qualified(self, fact: Fact, key: str, operator: str, literals: list[Any]) -> bool:
        values = {identity(value): value for k, value in fact.qualifiers if k == key}
        return any(self.holds(operator, values.values(), literals))

    def relate(self, inputs: list[Result], relation: str, direction: str) -> Result:
        entities = self.entities(inputs[0])
        self.relation(relation)
        if self.word(direction, ("forward", "backward")) == "forward":
            return Result("facts", {(f, f.object.id) for f in self.model.relates(entities, relation)})
        return Result(
            "facts", {(f, f.subject) for entity_id in entities for f in self.model.of_object.get((relation, entity_id), ())}
        )

    def _pair(self, inputs: list[Result]) -> tuple[set[str], set[str]]:
        return self.entities(inputs[0]), self.entities(inputs[1])

    def setand(self, inputs: list[Result]) -> Result:
        left, right = self._pair(inputs)
        return Result("entities", left & right)

    def setor(self, inputs: list[Result]) -> Result:
        left, right = self._pair(inputs)
        return Result("entities", left | right)

    def setexcept(self, inputs: list[Result]) -> Result:
        left, right = self._pair(inputs)
        return Result("entities", left - right)

    def queryname(self, inputs: list[Result]) -> Result:
        return Result("names", self.entities(inputs[0]))

    def count(self, inputs: list[Result]) -> Result:
        return Result("one", len(self.entities(inputs[0])))

    def _distinct(self, values: Iterable[Any]) -> Result:
        return Result("values", list({identity(value): value for value in values}.values()))

    def queryattr(self, inputs: list[Result], key: str) -> Result:
        return self._distinct(f.object for f in self.model.attributes(self.entities(inputs[0]), self.attribute(key)))

    def queryattrundercondition(self, inputs: list[Result], key: str, qkey: str, text: str) -> Result:
        facts = self.model.attributes(self.entities(inputs[0]), self.attribute(key))
        literals = self.readings(text, self.model.qualifier_kinds.get(self.qualifier(qkey), set()))
        return self._distinct(f.object for f in facts if self._qualified(f, qkey, "=", literals))

    def queryattrqualifier(self, inputs: list[Result], key: str, text: str, qkey: str) -> Result:
        facts = self.model.attributes(self.entities(inputs[0]), self.attribute(key))
        self.qualifier(qkey)
        literals = self.readings(text, self.model.attribute_kinds.get(key, set()))
        passed = self.holds("=", (f.object for f in facts), literals)
        return self._distinct(
            value for f, holds in zip(facts, passed, strict=True) if holds for k, value in f.qualifiers if k == qkey
        )

    def _between(self, inputs: list[Result]) -> list[Fact]:
        left, right = self._pair(inputs)
        facts = (f for entity_id in left for f in self.model.leaving.get(entity_id, ()))
        return [f for f in facts if isinstance(f.object, Ref) and f.object.id in right]

    def queryrelation(self, inputs: list[Result]) -> Result:
        return self._distinct(f.predicate for f in self._between(inputs))

    def queryrelationqualifier(self, inputs: list[Result], relation: str, qkey: str) -> Result:
        self.relation(relation)
        self.qualifier(qkey)
        facts = [f for f in self._between(inputs) if f.predicate == relation]
        return self._distinct(value for f in facts for k, value in f.qualifiers if k == qkey)

    def selectbetween(self, inputs: list[Result], key: str, word: str) -> Result:
        left, right = self._pair(inputs)
        return self._best(left | right, key, self.word(word, ("greater", "less")) == "greater")

    def selectamong(self, inputs: list[Result], key: str, word: str) -> Result:
        entities = self.entities(inputs[0])
        return self._best(entities, key, self.word(word, ("largest", "smallest")) == "largest")

    def _best(self, of: set[str], key: str, largest: bool) -> Result:
        """Return all entities with the best value; only values of the most frequent type and unit compete (ties: times
        first, then units by name).
        """
        facts = [f for f in self.model.attributes(of, self.attribute(key)) if isinstance(f.object, Quantity | Time)]
        kinds = Counter(kind_of(f.object) for f in facts)
        if not kinds:
            return Result("names", set())
        names = {"1": ""}
        chosen = min(kinds, key=lambda k: (-kinds[k], k[0] != "time", names.get(k[1], k[1])))
        scores = [(_score(f.object, largest), f.subject) for f in facts if kind_of(f.object) == chosen]
        best = (max if largest else min)(score for score, _ in scores)
        return Result("names", {entity_id for score, entity_id in scores if score == best})

    def verify(self, kind: str, inputs: list[Result], text: str, operator: str = "=") -> Result:
        operator = self.word(operator, OPERATORS)
        values = inputs[0].found
        if inputs[0].sort == "names":
            values = [self.model.name(entity_id) for entity_id in values]
        elif inputs[0].sort != "values":
            self.refusals.add("PlanError")
            values = []
        literal = self.literal(kind, text)
        return Result("one", any(self.holds(operator, values, [literal])))


def _score(value: Any, largest: bool) -> Any:
    if isinstance(value, Time):
        return value.end if largest else value.start
    return exact(value.number)


# `and`, `or` and `except` cannot be names in Python.
setattr(_Step, "and", _Step.setand)
setattr(_Step, "except", _Step.setexcept)
setattr(_Step, "or", _Step.setor)
