"""Lowering of get_information: the 32 cases, over statements, qualifiers and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from condgraph.engine.algebra import (
    Among,
    ByName,
    Concat,
    Condition,
    Distinct,
    End,
    Entities,
    Equals,
    Exists,
    Extreme,
    Facts,
    Family,
    Intersect,
    Mode,
    Names,
    Not,
    Objects,
    Predicates,
    QualifierKeys,
    Reached,
    Referents,
    RowNumbers,
    Scan,
    SubjectsOf,
    Values,
    Versus,
    Where,
    intersect,
)
from condgraph.engine.errors import PlanError
from condgraph.engine.schema import Kinds
from condgraph.languages.llm.bound import PARAMETERS, ColumnCondition, Search
from condgraph.languages.llm.lower.context import ROW_NUMBER
from condgraph.languages.llm.lower.joins import keyed, shared_values, themselves
from condgraph.languages.llm.lower.keys import Key
from condgraph.languages.llm.lower.literals import inner_conditions, literal_tests
from condgraph.languages.llm.lower.results import NUMBERS, TEXTS, Result, as_values
from condgraph.languages.llm.lower.rows import Relation, RowParts
from condgraph.languages.llm.lower.superlatives import superlative
from condgraph.languages.llm.syntax.tree import Expression, Items, Literal
from condgraph.languages.parameters import Given
from condgraph.vectors.encoders import fold

if TYPE_CHECKING:
    from condgraph.languages.llm.lower.query import Lowering


# -- cases -------------------------------------------------------------------------------------------
# The meaning of get_information for each of the 32 subsets of its parameters, as data.
#
# H is head_entity, R relation, T tail_entity, K key, V value. F(p) are the facts of predicate p;
# F(p)[H] those whose subject lies in H, F(p)[T] those whose object satisfies T. K names a predicate,
# a qualifier key or a time word. "K is a qualifier" holds for the time words (`time`, `start time`,
# `end time`), and for a qualifier key that the schema has seen on R, or on any predicate where R is
# not given; where K is such a key and a predicate as well, it is the qualifier. Which choice of a
# case applies is decided while lowering, from the schema and the program's text, never from the data.
# The paper's Table 1 covers ten of the cases.


class When(Enum):
    """What has to hold for a choice. `QUALIFIER` and `PREDICATE` speak of K, `CONSTANT` and `SET`
    of H.
    """

    ALWAYS = "always"
    QUALIFIER = "K is a qualifier"
    PREDICATE = "K is a predicate"
    CONSTANT = "H is one constant"
    SET = "H is a set or an output"


@dataclass(frozen=True, slots=True)
class Choice:
    """One meaning of a case: when it applies, the rule that lowers it, and what it says. A rule of
    None is a typed error.
    """

    when: When
    rule: str | None
    meaning: str


@dataclass(frozen=True, slots=True)
class Case:
    """A subset of the parameters, as letters in the order H R T K V, and its choices; exactly one
    of them applies.
    """

    given: str
    choices: tuple[Choice, ...]

    @property
    def name(self) -> str:
        """The parameters that are given, for people: "H R T"."""
        return " ".join(self.given) or "nothing"


def _case(given: str, *choices: tuple[When, str | None, str]) -> Case:
    return Case(given, tuple(Choice(*choice) for choice in choices))


_A, _Q, _P, _C, _S = When.ALWAYS, When.QUALIFIER, When.PREDICATE, When.CONSTANT, When.SET

_TABLE: Final = (
    _case("", (_A, None, "get_information needs at least one condition")),
    _case("H", (_A, "names_of_facts", "the distinct predicates of H's facts, and their qualifier keys")),
    _case("R", (_A, "objects", "the objects of F(R)")),
    _case("T", (_A, "subjects_any", "the subjects of any fact with object T")),
    _case("K", (_Q, "qualifiers_any", "all values of qualifier K"), (_P, "objects_k", "the objects of F(K)")),
    _case("V", (_A, "subjects_any", "the subjects of any fact with object V")),
    _case("HR", (_A, "objects_of", "the objects of F(R)[H]")),
    _case("HT", (_A, "predicates_between", "the distinct predicates between H and T")),
    _case("HK", (_Q, "qualifiers_of_any", "qualifier K of H's facts"), (_P, "objects_of_k", "the objects of F(K)[H]")),
    _case("HV", (_A, "predicates_between", "the distinct predicates of H's facts with object V")),
    _case("RT", (_A, "subjects", "the subjects of F(R)[T]")),
    _case(
        "RK", (_Q, "qualifiers", "qualifier K of the facts of R"), (_P, None, "two columns without a condition: ask one at a time")
    ),
    _case("RV", (_A, "subjects", "the subjects of F(R)[V]")),
    _case(
        "TK",
        (_Q, "subjects_qualified", "the subjects of facts whose qualifier K is T"),
        (_P, "subjects_k", "the subjects of F(K)[T]"),
    ),
    _case("TV", (_A, "subjects_any_both", "the subjects of any fact with object T that also have one with object V")),
    _case(
        "KV",
        (_Q, "subjects_qualified", "the subjects of facts whose qualifier K is V"),
        (_P, "subjects_k", "the subjects of F(K)[V]"),
    ),
    _case("HRT", (_C, "holds", "whether F(R)[H][T] is there"), (_S, "holding", "those of H that have F(R)[T]")),
    _case(
        "HRK", (_Q, "qualifiers_of", "qualifier K of F(R)[H]"), (_P, "two_hops", "the objects of F(K) of the objects of F(R)[H]")
    ),
    _case("HRV", (_C, "holds", "whether F(R)[H][V] is there"), (_S, "holding", "those of H that have F(R)[V]")),
    _case(
        "HTK",
        (_Q, "qualifiers_between", "qualifier K of the facts between H and T"),
        (_P, "holds_k", "as H R T, with K for R"),
    ),
    _case("HTV", (_A, "holds_any", "whether any fact of H has object T, and any has object V")),
    _case(
        "HKV",
        (_Q, "objects_of_any_qualified", "the objects of H's facts whose qualifier K is V"),
        (_P, "holds_k", "as H R V, with K for R"),
    ),
    _case(
        "RTK",
        (_Q, "qualifiers_with_object", "qualifier K of F(R)[T]"),
        (_P, "objects_k_of_subjects", "the objects of F(K) of the subjects of F(R)[T]"),
    ),
    _case("RTV", (_A, "subjects_both", "the subjects of F(R) whose object satisfies both T and V")),
    _case(
        "RKV",
        (_Q, "objects_qualified", "the objects of the facts of R whose qualifier K is V"),
        (_P, "objects_of_subjects_k", "the objects of F(R) of the subjects of F(K)[V]"),
    ),
    _case(
        "TKV",
        (_Q, "subjects_any_qualified", "the subjects of facts with object T whose qualifier K is V"),
        (_P, "subjects_k_and_any", "the subjects of F(K)[V] that also have a fact with object T"),
    ),
    _case(
        "HRTK",
        (_Q, "qualifiers_of_with_object", "qualifier K of F(R)[H][T]"),
        (_P, "objects_k_if_holds", "the objects of F(K) of those of H that have F(R)[T]"),
    ),
    _case(
        "HRTV",
        (_C, "holds_both", "whether an object of F(R)[H] satisfies both T and V"),
        (_S, "holding_both", "those of H for which it does"),
    ),
    _case(
        "HRKV",
        (_Q, "objects_of_qualified", "the objects of the facts F(R)[H] whose qualifier K is V"),
        (_P, "objects_of_having", "the objects of F(R)[H] that themselves have F(K)[V]"),
    ),
    _case(
        "HTKV",
        (_Q, "predicates_between_qualified", "the predicates of facts between H and T whose qualifier K is V"),
        (_P, "predicates_between_having", "the predicates between those of H that have F(K)[V], and T"),
    ),
    _case(
        "RTKV",
        (_Q, "subjects_with_qualified", "the subjects of the facts F(R)[T] whose qualifier K is V"),
        (_P, "subjects_and_k", "the subjects of F(R)[T] that are subjects of F(K)[V]"),
    ),
    _case(
        "HRTKV",
        (_Q, "holds_qualified", "whether F(R)[H][T] is there with qualifier K equal to V"),
        (_P, "holds_and_k", "whether one of H has F(R)[T] and F(K)[V]"),
    ),
)

CASES: Final[Mapping[str, Case]] = MappingProxyType({case.given: case for case in _TABLE})


def subsets() -> Iterator[str]:
    """All 32 subsets of the parameters, as letters in the order H R T K V."""
    for size in range(len(PARAMETERS) + 1):
        for chosen in combinations(PARAMETERS, size):
            yield "".join(chosen)


def choose(given: str, *, qualifier: bool, constant: bool) -> Choice:
    """The choice that applies to a subset, when K is a qualifier (or not), and H is one constant
    (or a set).

    >>> choose("RTK", qualifier=False, constant=False).rule
    'objects_k_of_subjects'
    """
    holds = {
        When.ALWAYS: True,
        When.QUALIFIER: qualifier,
        When.PREDICATE: not qualifier,
        When.CONSTANT: constant,
        When.SET: not constant,
    }
    return next(choice for choice in CASES[given].choices if holds[choice.when])


def markdown() -> str:
    """The table as Markdown, a row a choice."""
    lines = ["| given | when | meaning | rule |", "|---|---|---|---|"]
    for given in subsets():
        case = CASES[given]
        for choice in case.choices:
            when = "" if choice.when is When.ALWAYS else choice.when.value
            meaning = choice.meaning if choice.rule is not None else f"error: {choice.meaning}"
            lines.append(f"| {case.name} | {when} | {meaning} | {f'`{choice.rule}`' if choice.rule else ''} |")
    return "\n".join(lines) + "\n"


# -- search parts ------------------------------------------------------------------------------------
# The parts of a get_information call while it is lowered: predicates, heads, conditions, and the
# facts and values they name.


# -- search ------------------------------------------------------------------------------------------
# `Search` binds the parameters, `cases.choose` says which rule applies, and the method of that name
# builds the operators. A key that is a predicate goes through `_subjects_k` and `_objects_k`, one
# that is a qualifier or a time word through `Key`.


class SearchRule(RowParts):
    """One call of get_information while it is lowered."""

    def __init__(self, lowering: Lowering, search: Search) -> None:
        self.lowering, self.ctx, self.search = lowering, lowering.context, search
        self.source = self.ctx.scoped(search.source)
        self.led: list[str] = []
        head = search.head
        self.head_result = None if head is None or isinstance(head, (Literal, Items)) else lowering.evaluate(head)
        self.relation = None if search.relation is None else self._relation(search.relation, "relation")
        self.key: Key | None = None
        self.key_relation: Relation | None = None
        if search.key is not None:
            self._bind_key(search.key)
        self.search = self._outside_quotes(search)
        self.heads: Entities | None = None
        if head is not None:
            self.heads = self._heads(head, self.relation or self.key_relation)

    # -- binding -----------------------------------------------------------------------------------

    def _relation(self, expression: Expression, what: str) -> Relation:
        """A relation, looked for in the source of the head where that has it."""
        ctx, source = self.ctx, self.source
        head = self.head_result
        name = expression.text if isinstance(expression, Literal) else ""
        numbers = fold(name) in ROW_NUMBER
        if source is None and head is not None and head.table is not None and (numbers or ctx.find_predicates(name, head.table)):
            source = head.table
        if numbers and not ctx.find_predicates(name, source):
            table = source if ctx.is_table(source) else None
            if source is None and ctx.linker.tables:
                table = ctx.rows_of(expression.span)
            if table is not None:
                return Relation((), table, (table,), table, "attribute", True)
        names = ctx.predicates(expression, source, what)
        sources = ctx.sources_of(names, source, expression.span)
        table = sources[0] if len(sources) == 1 and ctx.is_table(sources[0]) else None
        schema = ctx.schema
        relation = any(schema.has_relation(name) for name in names)
        attribute = any(schema.has_attribute(name) for name in names)
        family: Family = "any" if relation == attribute else "relation" if relation else "attribute"
        scan = None if table is None and source is None else sources[0] if sources else source
        if scan is not None and all(len(ctx.linker.sources_of(name)) == 1 for name in names):
            scan = None
        return Relation(names, scan, sources, table, family)

    def _bind_key(self, expression: Expression) -> None:
        """Whether the key is a time word, a qualifier, or a predicate: from the schema and the text
        alone.
        """
        key = Key.find(self.lowering, expression, self.relation.names if self.relation else None, self.search.value)
        in_table = self.relation is not None and self.relation.table is not None
        if key is not None and not in_table:
            self.key = key
            self.ctx.remark(f"key {key.text!r} is taken as {key.what}")
        else:
            self.key_relation = self._relation(expression, "key")

    def _heads(self, head: Expression, relation: Relation | None) -> Entities:
        table = relation.table if relation is not None else self.source if self.ctx.is_table(self.source) else None
        if isinstance(head, Items):
            parts = [self._heads(item, relation) for item in head.items]
            return self.lowering.union(parts)
        if isinstance(head, Literal):
            if table is not None and not self.ctx.schema.has_entity(head.text):
                self.led.append(head.text)
                return self.ctx.rows_with(head, table)
            names = self.ctx.named(head, "entity", relation.names if relation and not relation.numbers else None)
            self.led.extend(names[:1])
            return ByName(names)
        result = self.head_result if head is self.search.head else self.lowering.evaluate(head)
        assert result is not None
        return self.lowering.entities(result, table, relation.sources if relation else ())

    def _outside_quotes(self, search: Search) -> Search:
        """The call with operators taken out of the quotes, as in `tail_entity='> 5'`: where no cell
        has that text, and what follows the operator is a value of the column.
        """
        relation, key_relation, key = self.relation, self.key_relation, self.key
        tail = [self._taken_out(one, relation or key_relation, key if relation is None else None) for one in search.tail]
        asked = key_relation or (relation if search.key is None else None)
        value = [self._taken_out(one, asked, key) for one in search.value]
        return replace(search, tail=tuple(chain.from_iterable(tail)), value=tuple(chain.from_iterable(value)))

    def _taken_out(self, condition: ColumnCondition, relation: Relation | None, key: Key | None) -> tuple[ColumnCondition, ...]:
        value = condition.value
        if condition.op != "=" or not isinstance(value, Literal) or isinstance(value.text, Given):
            return (condition,)
        found = inner_conditions(value.text)
        if not found or (len(found) > 1 and key is not None and key.part == "interval"):
            return (condition,)
        texts: Mapping[str, Sequence[str]] = {}
        if key is not None:
            kinds = key.kinds
        elif relation is not None and relation.numbers:
            kinds = NUMBERS
        elif relation is not None:
            column = self._column(relation)
            kinds, texts = column.kinds, column.folded
        else:
            return (condition,)
        if fold(value.text) in texts:
            return (condition,)
        for operator, rest in found:
            named = operator in ("=", "!=") and fold(rest) in texts
            if not named and not literal_tests(operator, rest, kinds).conditions:
                return (condition,)
        meant = " and ".join(f"{operator} {rest}" for operator, rest in found)
        self.ctx.warn(f"{value.text!r} is taken as {meant}; operators belong outside of the quotes")
        return tuple(ColumnCondition(operator, replace(value, text=rest), condition.span) for operator, rest in found)

    # -- scans and conditions ----------------------------------------------------------------------

    def _scan(self, relation: Relation, of: Entities | None = None, *, reach: End = "subject") -> Facts:
        # Rows are of one table, so that a set of them needs no scope.
        scoped = relation.source if of is None or relation.table is None else None
        return Scan(of, relation.names, "subject", reach, relation.family, scoped)

    def _any(self, of: Entities | None) -> Facts:
        """Facts of any predicate, of one source where there is a scope."""
        scope = self.source if len(self.ctx.schema.sources) > 1 else None
        return Scan(of, None, "subject", "subject", "any", scope)

    def _facts(self, relation: Relation | None, of: Entities | None, *conditions: ColumnCondition, reach: End = "subject") -> Facts:
        facts = self._any(of) if relation is None else self._scan(relation, of, reach=reach)
        for condition in conditions:
            facts = self._where(facts, condition, relation)
        return facts

    def _where(self, facts: Facts, condition: ColumnCondition, relation: Relation | None) -> Facts:
        """Facts whose object satisfies a condition."""
        value = condition.value
        if isinstance(value, Literal):
            column = self._column(relation)
            word = superlative(value.text, column.kinds) if condition.op != "!=" else None
            if word is not None and fold(value.text) not in column.folded:
                # Models write `tail_entity>='highest'`; nothing is beyond a superlative.
                said = "" if condition.op == "=" else f"; {condition.op} says nothing more"
                (self.ctx.warn if said else self.ctx.remark)(f"{value.text!r} is taken as a superlative{said}")
                objects = Objects(facts)
                best: Values = Mode(objects, word[1]) if word[0] == "mode" else Extreme(objects, word[1])
                return Where(facts, Equals(best))
            rows = self._keyed(condition, relation)
            if rows is not None:
                return Where(facts, Among(rows) if condition.op == "=" else Not(Among(rows)))
            if relation is not None and relation.family == "relation" and condition.op == "=":
                names = self._tail_names(value, relation)
                return Where(facts, Among(ByName(names)))
            what = "value" if relation is None else f"value of {relation.names[0]!r}" if relation.names else "value"
            test = self.ctx.condition(condition.op, value, column, what)
            self.led.append(" ".join(value.text.split()))
            return Where(facts, test)
        if isinstance(value, Items):
            tests = [self._test_of(ColumnCondition(condition.op, item), relation) for item in value.items]
            return Where(facts, self.lowering.any_test(tests))
        return Where(facts, self._test_of(condition, relation))

    def _test_of(self, condition: ColumnCondition, relation: Relation | None) -> Condition:
        """A test against a literal, or against what an earlier query gave."""
        if isinstance(condition.value, Literal):
            rows = self._keyed(condition, relation)
            if rows is not None:
                return Among(rows) if condition.op == "=" else Not(Among(rows))
            what = "value" if relation is None or not relation.names else f"value of {relation.names[0]!r}"
            return self.ctx.condition(condition.op, condition.value, self._column(relation), what)
        result = self.lowering.evaluate(condition.value)
        self.led.extend(result.led)
        if result.literal is not None:
            return self._test_of(ColumnCondition(condition.op, result.literal), relation)
        if relation is not None and relation.names:
            name = " or ".join(relation.names)
            rows = themselves(self.lowering, result, self._column(relation), name) if condition.op in ("=", "!=") else None
            if rows is not None:
                return Among(rows) if condition.op == "=" else Not(Among(rows))
        if relation is not None and relation.family == "relation" and condition.op == "=":
            return Among(self._targets(result, relation))
        values = self._tail_values(result, relation)
        if condition.op == "!=" and result.is_rows and relation is not None and relation.table != result.table:
            # Other than these rows, not other than one of them.
            return Not(Versus("=", values))
        same = relation is not None and result.column in relation.names and result.carried
        return Equals(values) if condition.op == "=" and same else Versus(condition.op, values)

    def _tail_values(self, result: Result, relation: Relation | None) -> Values:
        """What an earlier query gave, as values of this column."""
        if not result.is_entities:
            return as_values(result)
        assert isinstance(result.node, Entities)
        if result.table is None:
            return Names(result.node)
        if relation is not None and relation.table == result.table:
            self.ctx.warn(f"rows as tail_entity stand for their values of {' or '.join(relation.names) or 'row_number'}")
            return RowNumbers(result.node) if relation.numbers else Objects(self._scan(relation, result.node))
        if relation is not None and relation.names:
            return shared_values(self.lowering, result, self._column(relation), " or ".join(relation.names))
        return as_values(self.lowering.shown(result))

    def _targets(self, result: Result, relation: Relation) -> Entities:
        """What an earlier query gave, as entities that a relation leads to."""
        if not result.is_rows:
            return self.lowering.entities(result, None, relation.sources)
        column, name = self._column(relation), " or ".join(relation.names)
        rows = themselves(self.lowering, result, column, name)
        return rows if rows is not None else Referents(shared_values(self.lowering, result, column, name))

    def _keyed(self, condition: ColumnCondition, relation: Relation | None) -> Entities | None:
        """The rows whose key a literal is, where the column refers to them."""
        value = condition.value
        if not isinstance(value, Literal) or condition.op not in ("=", "!=") or relation is None or relation.family == "attribute":
            return None
        text = " ".join(value.text.split())
        found = keyed(self.lowering, text, self._column(relation), " or ".join(relation.names))
        if found is not None:
            self.led.append(text)
        return found

    def _tail_names(self, literal: Literal, relation: Relation) -> tuple[str, ...]:
        """The names of a relation's objects that a literal means."""
        ctx = self.ctx
        name = " ".join(literal.text.split())
        if ctx.schema.has_entity(name):
            self.led.append(name)
            return (name,)
        column, what = self._column(relation), f"value of {relation.names[0]!r}"
        found = tuple(column.folded.get(fold(name), ()))
        if found:
            ctx.folded(what, name, found)
        else:
            found = tuple(ctx.similar(literal, column, what, unlike=False))
        self.led.append(found[0] if len(found) == 1 else literal.text)
        return found or (name,)

    def _kinds(self, relation: Relation) -> Kinds:
        return NUMBERS if relation.numbers else self._column(relation).kinds

    # -- results -----------------------------------------------------------------------------------

    def _entities(self, node: Entities, relation: Relation | None) -> Result:
        table = relation.table if relation is not None else self.source if self.ctx.is_table(self.source) else None
        column = relation.names[0] if relation is not None and relation.names else None
        return Result(node, table, relation.sources if relation else (), column)

    def _reached(self, facts: Facts, relation: Relation | None) -> Result:
        return self._entities(Reached(facts), relation)

    def _values(self, node: Values, relation: Relation | None, kinds: Kinds) -> Result:
        found = self._entities(SubjectsOf(node), relation)
        return Result(node, found.table, found.sources, found.column, kinds, carried=True)

    def _objects_of_facts(self, relation: Relation, of: Entities | None, *conditions: ColumnCondition) -> Result:
        """The objects of facts: entities where the relation has nothing else, else values."""
        if relation.numbers:
            rows = of if of is not None else self.ctx.rows(relation.table or "")
            return self._values(RowNumbers(self._numbered(rows, *conditions)), relation, NUMBERS)
        if relation.family == "relation" and relation.table is None:
            facts = self._facts(relation, of, *conditions, reach="object")
            return self._objects_reached(facts, relation)
        return self._values(Objects(self._facts(relation, of, *conditions)), relation, self._column(relation).kinds)

    def _objects_reached(self, facts: Facts, relation: Relation) -> Result:
        """The entities that facts of a relation lead to; `facts` go with them, as columns are bags."""
        column = relation.names[0] if relation.names else None
        return Result(Reached(facts), None, relation.sources, column, facts=facts)

    def _subjects_of_facts(self, relation: Relation, of: Entities | None, *conditions: ColumnCondition) -> Result:
        """The subjects of facts that satisfy conditions."""
        if relation.numbers:
            rows = of if of is not None else self.ctx.rows(relation.table or "")
            return self._entities(self._numbered(rows, *conditions), relation)
        relation = self._repeated(relation, conditions)
        if relation.table is not None and len(conditions) == 1 and self._is_missing(conditions[0], relation):
            found = self._entities(self._without(relation, of, conditions[0]), relation)
            return found if conditions[0].op == "!=" else found.of(found.node, empty=True)
        if relation.family == "relation" and of is None and len(conditions) == 1 and conditions[0].op == "=":
            backward = self._backward(relation, conditions[0])
            if backward is not None:
                return backward
        return self._reached(self._facts(relation, of, *conditions), relation)

    def _backward(self, relation: Relation, condition: ColumnCondition) -> Result | None:
        """Subjects by an entity at the object: a scan from there."""
        value = condition.value
        targets: Entities
        if isinstance(value, Literal):
            if superlative(value.text, {}) is not None and not self.ctx.schema.has_entity(value.text):
                return None
            targets = self._keyed(condition, relation) or ByName(self._tail_names(value, relation))
        elif isinstance(value, Items):
            return None
        else:
            result = self.lowering.evaluate(value)
            if result.literal is not None:
                return self._backward(relation, ColumnCondition("=", result.literal, condition.span))
            self.led.extend(result.led)
            targets = self._targets(result, relation)
        return self._reached(Scan(targets, relation.names, "object", "subject", "relation", relation.source), relation)

    def lower(self) -> Result:
        """The result of the rule that applies."""
        constant = isinstance(self.search.head, Literal)
        case = self.search.case
        choice = choose(case, qualifier=self.key is not None, constant=constant)
        if choice.rule is None:
            raise PlanError(choice.meaning, span=self.search.span, hint="one query for each, then set_intersection")
        result: Result = getattr(self, f"_{choice.rule}")()
        led = dict.fromkeys([*self.led, *(self.head_result.led if self.head_result is not None else ())])
        return result.of(result.node, led=tuple(led), span=self.search.span)

    # -- the rules, in the order of the table ------------------------------------------------------

    @property
    def _r(self) -> Relation:
        assert self.relation is not None
        return self.relation

    @property
    def _k(self) -> Relation:
        assert self.key_relation is not None
        return self.key_relation

    @property
    def _q(self) -> Key:
        assert self.key is not None
        return self.key

    @property
    def _h(self) -> Entities:
        assert self.heads is not None
        return self.heads

    def _names_of_facts(self) -> Result:
        facts = self._any(self._h)
        return self._texts(Distinct(Concat((Predicates(facts), QualifierKeys(facts)))))

    def _texts(self, node: Values) -> Result:
        return Result(node, kinds=TEXTS)

    def _objects(self) -> Result:
        return self._objects_of_facts(self._r, None)

    def _objects_k(self) -> Result:
        return self._objects_of_facts(self._k, None)

    def _subjects_any(self) -> Result:
        return self._reached(self._facts(None, None, *self.search.tail, *self.search.value), None)

    def _qualifiers_any(self) -> Result:
        return self._q.values(self._any(None))

    def _objects_of(self) -> Result:
        return self._objects_of_facts(self._r, self._h)

    def _predicates_between(self) -> Result:
        return self._texts(Distinct(Predicates(self._facts(None, self._h, *self.search.tail, *self.search.value))))

    def _qualifiers_of_any(self) -> Result:
        return self._q.values(self._any(self._h))

    def _objects_of_k(self) -> Result:
        return self._objects_of_facts(self._k, self._h)

    def _subjects(self) -> Result:
        return self._subjects_of_facts(self._r, None, *self.search.tail, *self.search.value)

    def _qualifiers(self) -> Result:
        return self._q.values(self._scan(self._r))

    def _subjects_qualified(self) -> Result:
        return self._reached(self._q.where(self._any(None), *self.search.tail, *self.search.value), None)

    def _subjects_k(self) -> Result:
        return self._subjects_of_facts(self._k, None, *self.search.tail, *self.search.value)

    def _subjects_any_both(self) -> Result:
        parts = [Reached(self._facts(None, None, *conditions)) for conditions in (self.search.tail, self.search.value)]
        return self._entities(Intersect(tuple(parts)), None)

    def _holds(self) -> Result:
        conditions = (*self.search.tail, *self.search.value)
        if self._r.numbers:
            return self._exists(Reached(self._any(self._numbered(self._h, *conditions))), self._r)
        return Result(Exists(self._facts(self._r, self._h, *conditions)), kinds=NUMBERS)

    def _exists(self, found: Entities, relation: Relation | None) -> Result:
        return Result(Exists(self._any(found)), kinds=NUMBERS)

    def _holding(self) -> Result:
        return self._subjects_of_facts(self._r, self._h, *self.search.tail, *self.search.value)

    def _qualifiers_of(self) -> Result:
        return self._q.values(self._scan(self._r, self._h))

    def _two_hops(self) -> Result:
        middle = self._objects_of_facts(self._r, self._h)
        return self._objects_of_facts(self._k, self.lowering.entities(middle, self._k.table, self._k.sources))

    def _qualifiers_between(self) -> Result:
        return self._q.values(self._facts(None, self._h, *self.search.tail))

    def _holds_k(self) -> Result:
        conditions = (*self.search.tail, *self.search.value)
        if isinstance(self.search.head, Literal):
            return Result(Exists(self._facts(self._k, self._h, *conditions)), kinds=NUMBERS)
        return self._subjects_of_facts(self._k, self._h, *conditions)

    def _holds_any(self) -> Result:
        first = Reached(self._facts(None, self._h, *self.search.tail))
        return Result(Exists(self._facts(None, first, *self.search.value)), kinds=NUMBERS)

    def _objects_of_any_qualified(self) -> Result:
        facts = self._q.where(self._any(self._h), *self.search.value)
        return self._values(Objects(facts), None, {})

    def _qualifiers_with_object(self) -> Result:
        return self._q.values(self._facts(self._r, None, *self.search.tail))

    def _objects_k_of_subjects(self) -> Result:
        return self._objects_of_facts(self._k, self._as_heads(self._subjects_of_facts(self._r, None, *self.search.tail)))

    def _as_heads(self, result: Result) -> Entities:
        relation = self.key_relation or self.relation
        return self.lowering.entities(result, relation.table if relation else None, relation.sources if relation else ())

    def _subjects_both(self) -> Result:
        return self._subjects_of_facts(self._r, None, *self.search.tail, *self.search.value)

    def _objects_qualified(self) -> Result:
        return self._qualified_objects(None)

    def _qualified_objects(self, of: Entities | None) -> Result:
        relation = self._r
        if relation.family == "relation" and relation.table is None:
            facts = self._q.where(self._scan(relation, of, reach="object"), *self.search.value)
            return self._objects_reached(facts, relation)
        facts = self._q.where(self._scan(relation, of), *self.search.value)
        return self._values(Objects(facts), relation, self._column(relation).kinds)

    def _objects_of_subjects_k(self) -> Result:
        subjects = self._subjects_of_facts(self._k, None, *self.search.value)
        return self._objects_of_facts(self._r, self.lowering.entities(subjects, self._r.table, self._r.sources))

    def _subjects_any_qualified(self) -> Result:
        return self._reached(self._q.where(self._facts(None, None, *self.search.tail), *self.search.value), None)

    def _subjects_k_and_any(self) -> Result:
        first = self._subjects_of_facts(self._k, None, *self.search.value)
        assert isinstance(first.node, Entities)
        return first.of(Reached(self._facts(None, first.node, *self.search.tail)))

    def _qualifiers_of_with_object(self) -> Result:
        return self._q.values(self._facts(self._r, self._h, *self.search.tail))

    def _objects_k_if_holds(self) -> Result:
        holding = self._subjects_of_facts(self._r, self._h, *self.search.tail)
        return self._objects_of_facts(self._k, self.lowering.entities(holding, self._k.table, self._k.sources))

    def _holds_both(self) -> Result:
        return self._holds()

    def _holding_both(self) -> Result:
        return self._holding()

    def _objects_of_qualified(self) -> Result:
        return self._qualified_objects(self._h)

    def _objects_of_having(self) -> Result:
        objects = self._objects_of_facts(self._r, self._h)
        if self._r.table is not None and self._k.table == self._r.table:
            # Cells have no facts of their own: the condition is one on the row.
            rows = self._subjects_of_facts(self._k, self._h, *self.search.value)
            assert isinstance(rows.node, Entities)
            return self._objects_of_facts(self._r, rows.node)
        having = self.lowering.entities(objects, self._k.table, self._k.sources)
        return self._subjects_of_facts(self._k, having, *self.search.value)

    def _predicates_between_qualified(self) -> Result:
        facts = self._q.where(self._facts(None, self._h, *self.search.tail), *self.search.value)
        return self._texts(Distinct(Predicates(facts)))

    def _predicates_between_having(self) -> Result:
        having = self._subjects_of_facts(self._k, self._h, *self.search.value)
        assert isinstance(having.node, Entities)
        return self._texts(Distinct(Predicates(self._facts(None, having.node, *self.search.tail))))

    def _subjects_with_qualified(self) -> Result:
        facts = self._q.where(self._facts(self._r, None, *self.search.tail), *self.search.value)
        return self._reached(facts, self._r)

    def _subjects_and_k(self) -> Result:
        first = self._subjects_of_facts(self._r, None, *self.search.tail)
        second = self._subjects_of_facts(self._k, None, *self.search.value)
        assert isinstance(first.node, Entities)
        assert isinstance(second.node, Entities)
        return first.of(intersect(first.node, second.node), empty=first.empty)

    def _holds_qualified(self) -> Result:
        facts = self._q.where(self._facts(self._r, self._h, *self.search.tail), *self.search.value)
        return Result(Exists(facts), kinds=NUMBERS)

    def _holds_and_k(self) -> Result:
        first = self._subjects_of_facts(self._r, self._h, *self.search.tail)
        assert isinstance(first.node, Entities)
        second = self._subjects_of_facts(self._k, first.node, *self.search.value)
        assert isinstance(second.node, Entities)
        return self._exists(second.node, self._k)


RULES: Final = frozenset(choice.rule for case in CASES.values() for choice in case.choices if choice.rule is not None)
assert all(hasattr(SearchRule, f"_{rule}") for rule in RULES), "every rule of the table is lowered"
