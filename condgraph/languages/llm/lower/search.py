"""Lowers get_information: its 32 cases, over statements, qualifiers and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, combinations
from types import MappingProxyType
from typing import Final
from typing import Literal as Literal_

from condgraph.engine import algebra as alg
from condgraph.engine.errors import LiteralError, PlanError
from condgraph.engine.schema import Kinds
from condgraph.engine.values import Kind, collapse, fold
from condgraph.languages.llm.lower.context import (
    MISSING,
    NUMBERS,
    ROW_NUMBER,
    TEXTS,
    TIME_WORDS,
    TIMES,
    Lowering,
    Result,
    as_values,
)
from condgraph.languages.llm.lower.joins import keyed, shared_values, themselves
from condgraph.languages.llm.lower.literals import inner_conditions, literal_tests, read_times, superlative, unlike
from condgraph.languages.llm.syntax.tree import PARAMETERS, ColumnCondition, Expression, Items, Literal, Search
from condgraph.languages.parameters import GivenText
from condgraph.names.linking import Column
from condgraph.names.words import Forms

# -- keys: qualifiers and time words -----------------------------------------------------------------
# Keys that are not predicates: qualifiers, and time words for the validity of a statement.


_SPANS: Final[dict[str, alg.Span]] = {
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
    part: Literal_["interval", "start", "end"] | None

    @classmethod
    def find(
        cls,
        lowering: Lowering,
        expression: Expression,
        predicates: tuple[str, ...] | None,
        conditions: tuple[ColumnCondition, ...],
    ) -> Key | None:
        """Return the key as a time word or a qualifier; None for a predicate or an unknown name."""
        if not isinstance(expression, Literal):
            return None
        schema = lowering.context.schema
        text = collapse(expression.text)
        part = TIME_WORDS.get(fold(text))
        if part is not None and lowering.context.linker.temporal:
            return cls(lowering, text, part)  # type: ignore[arg-type]
        owners = predicates or (None,)
        candidates = [key for key in schema.qualifiers if fold(key) == fold(text)]
        if not candidates and not lowering.context.find_predicates(text, None):
            candidates = Forms.of(schema.kept, "qualifier", schema.qualifiers).same(text)
            candidates = candidates if len(candidates) == 1 else []
        for key in [text] if text in candidates else candidates:
            if any(schema.has_qualifier(key, owner) for owner in owners):
                if key != text:
                    lowering.context.written("key", text, (key,))
                return cls(lowering, key, None)
        return None

    @property
    def what(self) -> str:
        """A description of the key for remarks."""
        return "a time word: when the facts hold" if self.part is not None else "a qualifier"

    @property
    def kinds(self) -> Kinds:
        """The kinds of its values."""
        return TIMES if self.part is not None else self.lowering.context.schema.qualifier_kinds(self.text)

    def values(self, facts: alg.Facts) -> Result:
        """Return the values of the qualifier, or the times of the facts."""
        if self.part is not None:
            with_interval = facts if self.part == "interval" else None
            return Result(alg.Validity(facts, self.part), kinds=TIMES, validity=with_interval, carried=True)
        kinds = self.lowering.context.schema.qualifier_kinds(self.text)
        return Result(alg.Qualifiers(facts, self.text), kinds=kinds, column=self.text, carried=True)

    def where(self, facts: alg.Facts, *conditions: ColumnCondition) -> alg.Facts:
        """Return the facts whose qualifier or validity satisfies every condition."""
        for condition in conditions:
            facts = self._where(facts, condition)
        return facts

    def _where(self, facts: alg.Facts, condition: ColumnCondition) -> alg.Facts:
        value = condition.value
        if self.part is None:
            return alg.WhereQualifier(facts, self.text, self._test(condition))
        if isinstance(value, Literal):
            word = superlative(value.text, TIMES) if condition.op != "!=" else None
            if word is not None:
                # The earliest interval begins first, the latest ends last.
                part = self.part if self.part != "interval" else "start" if word[1] == "smallest" else "end"
                return alg.WhereValidity(facts, part, alg.Versus("=", alg.Extreme(alg.Validity(facts, part), word[1])))
            times = read_times(value.text)
            if not times:
                return self._as_of_entity(facts, condition, value)
            if self.part == "interval":
                span_relation = _SPANS[condition.op]
                return (
                    alg.During(facts, span_relation, times[0])
                    if len(times) == 1
                    else alg.DuringAny(facts, span_relation, alg.Constants(tuple(times)))
                )
            return alg.WhereValidity(facts, self.part, alg.any_of([alg.Compare(condition.op, time) for time in times]))
        limits = self._times(self.lowering.evaluate(value), facts)
        if self.part == "interval":
            return alg.DuringAny(facts, _SPANS[condition.op], limits)
        return alg.WhereValidity(facts, self.part, alg.Versus(condition.op, limits))

    def _as_of_entity(self, facts: alg.Facts, condition: ColumnCondition, literal: Literal) -> alg.Facts:
        """Use a literal that is not a time as the name of an entity, and take the times of its facts."""
        context = self.lowering.context
        if not context.schema.has_entity(collapse(literal.text)):
            raise LiteralError(f"{literal.text!r} is not a time", span=literal.span, hint="a year is 1960, a day 1960-02-01")
        context.warn(f"{literal.text!r} is not a time; the times of the facts of the entity of this name are taken")
        limits = alg.Validity(alg.Scan(alg.ByName((collapse(literal.text),)), None), "interval")
        if self.part == "interval":
            return alg.DuringAny(facts, _SPANS[condition.op], limits)
        assert self.part is not None
        return alg.WhereValidity(facts, self.part, alg.Versus(condition.op, limits))

    def _times(self, result: Result, facts: alg.Facts) -> alg.Values:
        """Return the result of an earlier query as times; entities give the times of their facts."""
        if result.literal is not None:
            times = read_times(result.literal.text)
            if times:
                return alg.Constants(tuple(times))
        if isinstance(result.node, alg.Entities):
            self.lowering.context.warn("entities as a time stand for the times of their facts")
            return alg.Validity(alg.Scan(result.node, None), "interval")
        return as_values(result)

    def _test(self, condition: ColumnCondition) -> alg.Condition:
        value = condition.value
        context = self.lowering.context
        if not isinstance(value, Literal):
            result = self.lowering.evaluate(value)
            if result.literal is None:
                return alg.Versus(condition.op, self.lowering.as_bag(result))
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
            if not tests or condition.op in ("=", "!="):
                tests.append(alg.Compare(condition.op, collapse(value.text)))
        return alg.any_of(tests)


# -- calls -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Relation:
    """The predicates that a relation or key names, and their source.

    `numbers` marks the virtual attribute row_number.
    """

    names: tuple[str, ...]
    source: str | None
    sources: tuple[str, ...]
    table: str | None
    family: alg.Family = "any"
    numbers: bool = False


class SearchCall:
    """The lowering of one call of get_information."""

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
        self.heads = None if head is None else self._heads(head, self.relation or self.key_relation)

    # -- binding -----------------------------------------------------------------------------------

    def _relation(self, expression: Expression, what: str) -> Relation:
        """Resolve a relation, in the source of the head if it exists there."""
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
        family: alg.Family = "any" if relation == attribute else "relation" if relation else "attribute"
        scan = None if table is None and source is None else sources[0] if sources else source
        if scan is not None and all(len(ctx.linker.sources_of(name)) == 1 for name in names):
            scan = None
        return Relation(names, scan, sources, table, family)

    def _bind_key(self, expression: Expression) -> None:
        """Bind the key as a time word, a qualifier or a predicate, from the schema and the text alone."""
        key = Key.find(self.lowering, expression, self.relation.names if self.relation else None, self.search.value)
        in_table = self.relation is not None and self.relation.table is not None
        if key is not None and not in_table:
            self.key = key
            self.ctx.remark(f"key {key.text!r} is taken as {key.what}")
        else:
            self.key_relation = self._relation(expression, "key")

    def _heads(self, head: Expression, relation: Relation | None) -> alg.Entities:
        table = relation.table if relation is not None else self.source if self.ctx.is_table(self.source) else None
        if isinstance(head, Items):
            parts = [self._heads(item, relation) for item in head.items]
            return alg.union(*parts)
        if isinstance(head, Literal):
            if table is not None and not self.ctx.schema.has_entity(head.text):
                self.led.append(head.text)
                return self.ctx.rows_with(head, table)
            names = self.ctx.named(head, "entity", relation.names if relation and not relation.numbers else None)
            self.led.extend(names[:1])
            return alg.ByName(names)
        result = self.head_result if head is self.search.head else self.lowering.evaluate(head)
        assert result is not None
        return self.lowering.entities(result, table, relation.sources if relation else ())

    def _outside_quotes(self, search: Search) -> Search:
        """Return the call with operators moved out of quotes, as in `tail_entity='> 5'`.

        This applies only if no cell has that text, and the rest can be a value of the column.
        """
        relation, key_relation, key = self.relation, self.key_relation, self.key
        tail = [self._split_out(item, relation or key_relation, key if relation is None else None) for item in search.tail]
        asked = key_relation or (relation if search.key is None else None)
        value = [self._split_out(item, asked, key) for item in search.value]
        return replace(search, tail=tuple(chain.from_iterable(tail)), value=tuple(chain.from_iterable(value)))

    def _split_out(self, condition: ColumnCondition, relation: Relation | None, key: Key | None) -> tuple[ColumnCondition, ...]:
        value = condition.value
        if condition.op != "=" or not isinstance(value, Literal) or isinstance(value.text, GivenText):
            return (condition,)
        inner = inner_conditions(value.text)
        if not inner or (len(inner) > 1 and key is not None and key.part == "interval"):
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
        for operator, operand in inner:
            is_cell = operator in ("=", "!=") and fold(operand) in texts
            if not is_cell and not literal_tests(operator, operand, kinds).conditions:
                return (condition,)
        reading = " and ".join(f"{operator} {operand}" for operator, operand in inner)
        self.ctx.warn(f"{value.text!r} is taken as {reading}; operators belong outside of the quotes")
        return tuple(ColumnCondition(operator, replace(value, text=operand), condition.span) for operator, operand in inner)

    # -- scans and conditions ----------------------------------------------------------------------

    def scan(self, relation: Relation, of: alg.Entities | None = None, *, reach: alg.End = "subject") -> alg.Facts:
        """Return the facts of a relation."""
        # A set of rows is in one table, so it needs no scope.
        scoped = relation.source if of is None or relation.table is None else None
        return alg.Scan(of, relation.names, "subject", reach, relation.family, scoped)

    def any_facts(self, of: alg.Entities | None) -> alg.Facts:
        """Return facts of any predicate, of one source if there is a scope."""
        scope = self.source if len(self.ctx.schema.sources) > 1 else None
        return alg.Scan(of, None, "subject", "subject", "any", scope)

    def facts(
        self, relation: Relation | None, of: alg.Entities | None, *conditions: ColumnCondition, reach: alg.End = "subject"
    ) -> alg.Facts:
        """Return the facts of a relation, or of any, whose objects satisfy the conditions."""
        facts = self.any_facts(of) if relation is None else self.scan(relation, of, reach=reach)
        for condition in conditions:
            facts = self._where(facts, condition, relation)
        return facts

    def _where(self, facts: alg.Facts, condition: ColumnCondition, relation: Relation | None) -> alg.Facts:
        """Return the facts whose object satisfies a condition."""
        value = condition.value
        if isinstance(value, Literal):
            column = self._column(relation)
            word = superlative(value.text, column.kinds) if condition.op != "!=" else None
            if word is not None and fold(value.text) not in column.folded:
                # Models write `tail_entity>='highest'`, which is the superlative.
                remark = "" if condition.op == "=" else f"; {condition.op} adds nothing"
                (self.ctx.warn if remark else self.ctx.remark)(f"{value.text!r} is taken as a superlative{remark}")
                objects = alg.Objects(facts)
                best: alg.Values = alg.Mode(objects, word[1]) if word[0] == "mode" else alg.Extreme(objects, word[1])
                return alg.Where(facts, alg.Equals(best))
            rows = self._keyed(condition, relation)
            if rows is not None:
                return alg.Where(facts, alg.Among(rows) if condition.op == "=" else unlike(alg.Among(rows), column.kinds))
            if relation is not None and relation.family == "relation" and condition.op == "=":
                names = self._tail_names(value, relation)
                return alg.Where(facts, alg.Among(alg.ByName(names)))
            label = "value" if relation is None else f"value of {relation.names[0]!r}" if relation.names else "value"
            test = self.ctx.condition(condition.op, value, column, label)
            self.led.append(" ".join(value.text.split()))
            return alg.Where(facts, test)
        if isinstance(value, Items):
            tests = [self._test_of(ColumnCondition(condition.op, item), relation) for item in value.items]
            return alg.Where(facts, alg.any_of(tests))
        return alg.Where(facts, self._test_of(condition, relation))

    def _test_of(self, condition: ColumnCondition, relation: Relation | None) -> alg.Condition:
        """Return a test against a literal or the result of an earlier query."""
        if isinstance(condition.value, Literal):
            rows = self._keyed(condition, relation)
            if rows is not None:
                return alg.Among(rows) if condition.op == "=" else unlike(alg.Among(rows), self._column(relation).kinds)
            label = "value" if relation is None or not relation.names else f"value of {relation.names[0]!r}"
            return self.ctx.condition(condition.op, condition.value, self._column(relation), label)
        result = self.lowering.evaluate(condition.value)
        self.led.extend(result.led)
        if result.literal is not None:
            return self._test_of(ColumnCondition(condition.op, result.literal), relation)
        if relation is not None and relation.names:
            name = " or ".join(relation.names)
            rows = themselves(self.lowering, result, self._column(relation), name) if condition.op in ("=", "!=") else None
            if rows is not None:
                return alg.Among(rows) if condition.op == "=" else unlike(alg.Among(rows), self._column(relation).kinds)
        if relation is not None and relation.family == "relation" and condition.op == "=":
            return alg.Among(self._targets(result, relation))
        values = self._tail_values(result, relation)
        if condition.op == "!=" and result.is_rows and relation is not None and relation.table != result.table:
            # Different from all these rows, not just from one of them.
            return unlike(alg.Versus("=", values), self._column(relation).kinds)
        same_column = relation is not None and result.column in relation.names and result.carried
        return alg.Equals(values) if condition.op == "=" and same_column else alg.Versus(condition.op, values)

    def _tail_values(self, result: Result, relation: Relation | None) -> alg.Values:
        """Return the result of an earlier query as values of this column."""
        if not result.is_entities:
            return as_values(result)
        assert isinstance(result.node, alg.Entities)
        if result.table is None:
            return alg.Names(result.node)
        if relation is not None and relation.table == result.table:
            self.ctx.warn(f"rows as tail_entity are read as their values of {' or '.join(relation.names) or 'row_number'}")
            return alg.RowNumbers(result.node) if relation.numbers else alg.Objects(self.scan(relation, result.node))
        if relation is not None and relation.names:
            return shared_values(self.lowering, result, self._column(relation), " or ".join(relation.names))
        return as_values(self.lowering.shown(result))

    def _targets(self, result: Result, relation: Relation) -> alg.Entities:
        """Return the result of an earlier query as entities that a relation leads to."""
        if not result.is_rows:
            return self.lowering.entities(result, None, relation.sources)
        column, name = self._column(relation), " or ".join(relation.names)
        rows = themselves(self.lowering, result, column, name)
        return rows if rows is not None else alg.Referents(shared_values(self.lowering, result, column, name))

    def _keyed(self, condition: ColumnCondition, relation: Relation | None) -> alg.Entities | None:
        """Return the rows with this literal as their key, if the column refers to them."""
        value = condition.value
        if not isinstance(value, Literal) or condition.op not in ("=", "!=") or relation is None or relation.family == "attribute":
            return None
        text = " ".join(value.text.split())
        result = keyed(self.lowering, text, self._column(relation), " or ".join(relation.names))
        if result is not None:
            self.led.append(text)
        return result

    def _tail_names(self, literal: Literal, relation: Relation) -> tuple[str, ...]:
        """Return the names of a relation's objects that a literal means."""
        ctx = self.ctx
        name = ctx.exact_name(literal)
        if ctx.schema.has_entity(name):
            self.led.append(name)
            return (name,)
        column, label = self._column(relation), f"value of {relation.names[0]!r}"
        result = tuple(column.folded.get(fold(name), ()))
        if result:
            ctx.folded(label, name, result)
        else:
            result = tuple(ctx.similar(literal, column, label, unlike=False))
        self.led.append(result[0] if len(result) == 1 else literal.text)
        return result or (name,)

    # -- results -----------------------------------------------------------------------------------

    def entities(self, node: alg.Entities, relation: Relation | None) -> Result:
        """Return entities as a result; they are rows if the relation belongs to a table."""
        table = relation.table if relation is not None else self.source if self.ctx.is_table(self.source) else None
        column = relation.names[0] if relation is not None and relation.names else None
        return Result(node, table, relation.sources if relation else (), column)

    def reached(self, facts: alg.Facts, relation: Relation | None) -> Result:
        """Return the entities that facts reach."""
        return self.entities(alg.Reached(facts), relation)

    def values(self, node: alg.Values, relation: Relation | None, kinds: Kinds) -> Result:
        """Return values as a result, with the entities or rows that carry them."""
        result = self.entities(alg.SubjectsOf(node), relation)
        return Result(node, result.table, result.sources, result.column, kinds, carried=True)

    def objects(self, relation: Relation, of: alg.Entities | None, *conditions: ColumnCondition) -> Result:
        """Return the objects of facts: entities if the relation has nothing else, else values."""
        if relation.numbers:
            rows = of if of is not None else self.ctx.rows(relation.table or "")
            return self.values(alg.RowNumbers(self._numbered(rows, *conditions)), relation, NUMBERS)
        if relation.family == "relation" and relation.table is None:
            facts = self.facts(relation, of, *conditions, reach="object")
            return self._objects_reached(facts, relation)
        return self.values(alg.Objects(self.facts(relation, of, *conditions)), relation, self._column(relation).kinds)

    def _objects_reached(self, facts: alg.Facts, relation: Relation) -> Result:
        """Return the entities that facts lead to; the facts are kept, since columns are bags."""
        column = relation.names[0] if relation.names else None
        return Result(alg.Reached(facts), None, relation.sources, column, facts=facts)

    def subjects(self, relation: Relation, of: alg.Entities | None, *conditions: ColumnCondition) -> Result:
        """Return the subjects of facts that satisfy the conditions."""
        if relation.numbers:
            rows = of if of is not None else self.ctx.rows(relation.table or "")
            return self.entities(self._numbered(rows, *conditions), relation)
        relation = self._repeated(relation, conditions)
        if relation.table is not None and len(conditions) == 1 and self._is_missing(conditions[0], relation):
            result = self.entities(self._lacking(relation, of, conditions[0]), relation)
            return result if conditions[0].op == "!=" else result.of(result.node, empty=True)
        if relation.family == "relation" and of is None and len(conditions) == 1 and conditions[0].op == "=":
            backward = self._backward(relation, conditions[0])
            if backward is not None:
                return backward
        return self.reached(self.facts(relation, of, *conditions), relation)

    def _backward(self, relation: Relation, condition: ColumnCondition) -> Result | None:
        """Return the subjects of facts by a scan from their objects."""
        value = condition.value
        targets: alg.Entities
        if isinstance(value, Literal):
            if superlative(value.text, {}) is not None and not self.ctx.schema.has_entity(value.text):
                return None
            targets = self._keyed(condition, relation) or alg.ByName(self._tail_names(value, relation))
        elif isinstance(value, Items):
            return None
        else:
            result = self.lowering.evaluate(value)
            if result.literal is not None:
                return self._backward(relation, ColumnCondition("=", result.literal, condition.span))
            self.led.extend(result.led)
            targets = self._targets(result, relation)
        return self.reached(alg.Scan(targets, relation.names, "object", "subject", "relation", relation.source), relation)

    # -- rows --------------------------------------------------------------------------------------

    def _column(self, relation: Relation | None) -> Column:
        if relation is None:
            return self.ctx.linker.column(None, self.source if len(self.ctx.schema.sources) > 1 else None)
        return self.ctx.linker.column(relation.names, relation.source)

    def _numbered(self, rows: alg.Entities, *conditions: ColumnCondition) -> alg.Entities:
        """Return the rows whose number satisfies the conditions."""
        for condition in conditions:
            numbers = alg.RowNumbers(rows)
            value = condition.value
            if isinstance(value, Literal):
                word = superlative(value.text, NUMBERS) if condition.op != "!=" else None
                if word is not None:
                    rows = alg.SubjectsOf(alg.Extreme(numbers, word[1]))
                    continue
                tests = literal_tests(condition.op, value.text, NUMBERS).conditions
                if not tests:
                    raise PlanError(f"{value.text!r} is not a row number", span=value.span, hint="rows are counted from 1")
                rows = alg.SubjectsOf(alg.FilterValues(numbers, alg.any_of(tests)))
                continue
            result = self.lowering.evaluate(value)
            if result.literal is not None:
                rows = self._numbered(rows, ColumnCondition(condition.op, result.literal, condition.span))
                continue
            if result.is_rows:
                assert isinstance(result.node, alg.Entities)
                if condition.op == "=":
                    rows = alg.intersect(rows, result.node)
                    continue
                values: alg.Values = alg.RowNumbers(result.node)
            else:
                values = self._tail_values(result, None)
            rows = alg.SubjectsOf(alg.FilterValues(numbers, alg.Versus(condition.op, values)))
        return rows

    def _repeated(self, relation: Relation, conditions: tuple[ColumnCondition, ...]) -> Relation:
        """Return the repeated column ("Country (2)") that contains a literal, if the first one does not."""
        if relation.table is None or len(relation.names) != 1 or len(conditions) != 1 or conditions[0].op != "=":
            return relation
        value = conditions[0].value
        if not isinstance(value, Literal):
            return relation
        name, literal = relation.names[0], fold(value.text)
        repeats = self.ctx.repeats(name, relation.table)
        if not repeats or literal in self._column(relation).folded:
            return relation
        for repeat in repeats:
            result = replace(relation, names=(repeat,))
            if literal in self._column(result).folded:
                self.ctx.warn(f"{value.text!r} stands in {repeat!r}, another column of the header {name!r}")
                return result
        return relation

    def _is_missing(self, condition: ColumnCondition, relation: Relation) -> bool:
        """Whether a condition asks for missing cells: `tail_entity='n/a'`."""
        value = condition.value
        if not isinstance(value, Literal) or condition.op not in ("=", "!=") or fold(value.text) not in MISSING:
            return False
        if isinstance(value.text, GivenText):
            return False  # a value, which may well be "none"
        return fold(value.text) not in self._column(relation).folded

    def _lacking(self, relation: Relation, of: alg.Entities | None, condition: ColumnCondition) -> alg.Entities:
        """Return the rows without a cell, or with one for `!=`."""
        self.ctx.warn(f"{condition.value.text!r} means rows without a value of {relation.names[0]!r}")  # type: ignore[union-attr]
        filled = alg.Reached(self.scan(relation, of))
        if condition.op == "!=":
            return filled
        return alg.Minus(of if of is not None else self.ctx.rows(relation.table or ""), filled)

    # -- parts of the cases ------------------------------------------------------------------------

    @property
    def h(self) -> alg.Entities:
        """The heads."""
        assert self.heads is not None
        return self.heads

    @property
    def r(self) -> Relation:
        """The relation."""
        assert self.relation is not None
        return self.relation

    @property
    def t(self) -> tuple[ColumnCondition, ...]:
        """The conditions on the tail."""
        return self.search.tail

    @property
    def k(self) -> Relation:
        """The key as a predicate."""
        assert self.key_relation is not None
        return self.key_relation

    @property
    def q(self) -> Key:
        """The key as a qualifier or a time word."""
        assert self.key is not None
        return self.key

    @property
    def v(self) -> tuple[ColumnCondition, ...]:
        """The conditions on the value."""
        return self.search.value

    @property
    def tv(self) -> tuple[ColumnCondition, ...]:
        """The conditions on the tail and the value."""
        return (*self.t, *self.v)

    def heads_of(self, result: Result, relation: Relation) -> alg.Entities:
        return self.lowering.entities(result, relation.table, relation.sources)

    def members(self, relation: Relation, of: alg.Entities | None, *conditions: ColumnCondition) -> alg.Entities:
        """Return `subjects` as a set."""
        node = self.subjects(relation, of, *conditions).node
        assert isinstance(node, alg.Entities)
        return node

    def names_of(self, facts: alg.Facts) -> Result:
        """Return the distinct predicates of facts and keys of their qualifiers."""
        return Result(alg.Distinct(alg.Concat((alg.Predicates(facts), alg.QualifierKeys(facts)))), kinds=TEXTS)

    def predicates(self, facts: alg.Facts) -> Result:
        """Return the distinct predicates of facts."""
        return Result(alg.Distinct(alg.Predicates(facts)), kinds=TEXTS)

    def exists(self, facts: alg.Facts) -> Result:
        return Result(alg.Exists(facts), kinds=NUMBERS)

    def holds(self, relation: Relation) -> Result:
        """Return whether the heads have facts of a relation that satisfy the conditions."""
        if relation.numbers:
            return self.exists(self.any_facts(alg.Reached(self.any_facts(self._numbered(self.h, *self.tv)))))
        return self.exists(self.facts(relation, self.h, *self.tv))

    def holds_by_key(self) -> Result:
        """Return whether a single head has matching facts of the key; of a set of heads, those that do."""
        if isinstance(self.search.head, Literal):
            return self.exists(self.facts(self.k, self.h, *self.tv))
        return self.subjects(self.k, self.h, *self.tv)

    def qualified_objects(self, of: alg.Entities | None) -> Result:
        """Return the objects of facts whose qualifier satisfies the conditions on the value."""
        relation = self.r
        if relation.family == "relation" and relation.table is None:
            facts = self.q.where(self.scan(relation, of, reach="object"), *self.v)
            return self._objects_reached(facts, relation)
        facts = self.q.where(self.scan(relation, of), *self.v)
        return self.values(alg.Objects(facts), relation, self._column(relation).kinds)

    def objects_that_have(self) -> Result:
        """Return the objects of H's facts that have matching facts of the key themselves."""
        objects = self.objects(self.r, self.h)
        if self.r.table is not None and self.k.table == self.r.table:
            # Cells have no facts of their own, so the condition applies to the row.
            return self.objects(self.r, self.members(self.k, self.h, *self.v))
        return self.subjects(self.k, self.heads_of(objects, self.k), *self.v)

    def subjects_of_any(self) -> Result:
        """Return the subjects of F(K)[V] that also have any fact with T."""
        subjects = self.subjects(self.k, None, *self.v)
        assert isinstance(subjects.node, alg.Entities)
        return subjects.of(alg.Reached(self.facts(None, subjects.node, *self.t)))

    def subjects_of_both(self) -> Result:
        """Return the subjects of F(R)[T] that are subjects of F(K)[V]."""
        first, second = self.subjects(self.r, None, *self.t), self.members(self.k, None, *self.v)
        assert isinstance(first.node, alg.Entities)
        return first.of(alg.intersect(first.node, second), empty=first.empty)


# -- cases -------------------------------------------------------------------------------------------
# The meaning of get_information for each of the 32 subsets of its parameters, as data.
#
# H is head_entity, R relation, T tail_entity, K key, V value. F(p) are the facts of predicate p;
# F(p)[H] those whose subject lies in H, F(p)[T] those whose object satisfies T. K names a predicate,
# a qualifier key or a time word. "K is a qualifier" holds for the time words (`time`, `start time`,
# `end time`), and for a qualifier key that the schema has on R, or on any predicate if R is missing; a
# key that is both a qualifier and a predicate is the qualifier. The lowering decides from the schema
# and the program's text which choice of a case applies, never from the data. The paper's Table 1
# covers ten of the cases. `lower` of a choice takes the call `s`.


class ChoiceRule(Enum):
    """The condition of a choice; `QUALIFIER` and `PREDICATE` are about K, `CONSTANT` and `SET` about H."""

    ALWAYS = "always"
    QUALIFIER = "K is a qualifier"
    PREDICATE = "K is a predicate"
    CONSTANT = "H is one constant"
    SET = "H is a set or an output"


@dataclass(frozen=True, slots=True)
class Choice:
    """One meaning of a subset of the parameters: its condition, its meaning, and its lowering.

    `lower` None raises an error.
    """

    when: ChoiceRule
    meaning: str
    lower: Callable[[SearchCall], Result] | None


_A, _Q, _P, _C, _S = ChoiceRule.ALWAYS, ChoiceRule.QUALIFIER, ChoiceRule.PREDICATE, ChoiceRule.CONSTANT, ChoiceRule.SET
_Row = tuple[str, ChoiceRule, str, Callable[[SearchCall], Result] | None]
_TABLE: Final[tuple[_Row, ...]] = (
    ("", _A, "get_information needs at least one condition", None),
    ("H", _A, "the distinct predicates of H's facts, and their qualifier keys", lambda s: s.names_of(s.any_facts(s.h))),
    ("R", _A, "the objects of F(R)", lambda s: s.objects(s.r, None)),
    ("T", _A, "the subjects of any fact with object T", lambda s: s.reached(s.facts(None, None, *s.t), None)),
    ("K", _Q, "all values of qualifier K", lambda s: s.q.values(s.any_facts(None))),
    ("K", _P, "the objects of F(K)", lambda s: s.objects(s.k, None)),
    ("V", _A, "the subjects of any fact with object V", lambda s: s.reached(s.facts(None, None, *s.v), None)),
    ("HR", _A, "the objects of F(R)[H]", lambda s: s.objects(s.r, s.h)),
    ("HT", _A, "the distinct predicates between H and T", lambda s: s.predicates(s.facts(None, s.h, *s.t))),
    ("HK", _Q, "qualifier K of H's facts", lambda s: s.q.values(s.any_facts(s.h))),
    ("HK", _P, "the objects of F(K)[H]", lambda s: s.objects(s.k, s.h)),
    ("HV", _A, "the distinct predicates of H's facts with object V", lambda s: s.predicates(s.facts(None, s.h, *s.v))),
    ("RT", _A, "the subjects of F(R)[T]", lambda s: s.subjects(s.r, None, *s.t)),
    ("RK", _Q, "qualifier K of the facts of R", lambda s: s.q.values(s.scan(s.r))),
    ("RK", _P, "two columns without a condition: ask one at a time", None),
    ("RV", _A, "the subjects of F(R)[V]", lambda s: s.subjects(s.r, None, *s.v)),
    ("TK", _Q, "the subjects of facts whose qualifier K is T", lambda s: s.reached(s.q.where(s.any_facts(None), *s.t), None)),
    ("TK", _P, "the subjects of F(K)[T]", lambda s: s.subjects(s.k, None, *s.t)),
    (
        "TV",
        _A,
        "the subjects of any fact with object T that also have one with object V",
        lambda s: s.entities(alg.Intersect(tuple(alg.Reached(s.facts(None, None, *one)) for one in (s.t, s.v))), None),
    ),
    ("KV", _Q, "the subjects of facts whose qualifier K is V", lambda s: s.reached(s.q.where(s.any_facts(None), *s.v), None)),
    ("KV", _P, "the subjects of F(K)[V]", lambda s: s.subjects(s.k, None, *s.v)),
    ("HRT", _C, "whether F(R)[H][T] has a fact", lambda s: s.holds(s.r)),
    ("HRT", _S, "those of H that have F(R)[T]", lambda s: s.subjects(s.r, s.h, *s.t)),
    ("HRK", _Q, "qualifier K of F(R)[H]", lambda s: s.q.values(s.scan(s.r, s.h))),
    ("HRK", _P, "the objects of F(K) of the objects of F(R)[H]", lambda s: s.objects(s.k, s.heads_of(s.objects(s.r, s.h), s.k))),
    ("HRV", _C, "whether F(R)[H][V] has a fact", lambda s: s.holds(s.r)),
    ("HRV", _S, "those of H that have F(R)[V]", lambda s: s.subjects(s.r, s.h, *s.v)),
    ("HTK", _Q, "qualifier K of the facts between H and T", lambda s: s.q.values(s.facts(None, s.h, *s.t))),
    ("HTK", _P, "as H R T, with K for R", lambda s: s.holds_by_key()),
    (
        "HTV",
        _A,
        "whether any fact of H has object T, and any has object V",
        lambda s: s.exists(s.facts(None, alg.Reached(s.facts(None, s.h, *s.t)), *s.v)),
    ),
    (
        "HKV",
        _Q,
        "the objects of H's facts whose qualifier K is V",
        lambda s: s.values(alg.Objects(s.q.where(s.any_facts(s.h), *s.v)), None, {}),
    ),
    ("HKV", _P, "as H R V, with K for R", lambda s: s.holds_by_key()),
    ("RTK", _Q, "qualifier K of F(R)[T]", lambda s: s.q.values(s.facts(s.r, None, *s.t))),
    (
        "RTK",
        _P,
        "the objects of F(K) of the subjects of F(R)[T]",
        lambda s: s.objects(s.k, s.heads_of(s.subjects(s.r, None, *s.t), s.k)),
    ),
    ("RTV", _A, "the subjects of F(R) whose object satisfies both T and V", lambda s: s.subjects(s.r, None, *s.tv)),
    ("RKV", _Q, "the objects of the facts of R whose qualifier K is V", lambda s: s.qualified_objects(None)),
    (
        "RKV",
        _P,
        "the objects of F(R) of the subjects of F(K)[V]",
        lambda s: s.objects(s.r, s.heads_of(s.subjects(s.k, None, *s.v), s.r)),
    ),
    (
        "TKV",
        _Q,
        "the subjects of facts with object T whose qualifier K is V",
        lambda s: s.reached(s.q.where(s.facts(None, None, *s.t), *s.v), None),
    ),
    ("TKV", _P, "the subjects of F(K)[V] that also have a fact with object T", lambda s: s.subjects_of_any()),
    ("HRTK", _Q, "qualifier K of F(R)[H][T]", lambda s: s.q.values(s.facts(s.r, s.h, *s.t))),
    (
        "HRTK",
        _P,
        "the objects of F(K) of those of H that have F(R)[T]",
        lambda s: s.objects(s.k, s.heads_of(s.subjects(s.r, s.h, *s.t), s.k)),
    ),
    ("HRTV", _C, "whether an object of F(R)[H] satisfies both T and V", lambda s: s.holds(s.r)),
    ("HRTV", _S, "those of H for which one does", lambda s: s.subjects(s.r, s.h, *s.tv)),
    ("HRKV", _Q, "the objects of the facts F(R)[H] whose qualifier K is V", lambda s: s.qualified_objects(s.h)),
    ("HRKV", _P, "the objects of F(R)[H] that themselves have F(K)[V]", lambda s: s.objects_that_have()),
    (
        "HTKV",
        _Q,
        "the predicates of facts between H and T whose qualifier K is V",
        lambda s: s.predicates(s.q.where(s.facts(None, s.h, *s.t), *s.v)),
    ),
    (
        "HTKV",
        _P,
        "the predicates between those of H that have F(K)[V], and T",
        lambda s: s.predicates(s.facts(None, s.members(s.k, s.h, *s.v), *s.t)),
    ),
    (
        "RTKV",
        _Q,
        "the subjects of the facts F(R)[T] whose qualifier K is V",
        lambda s: s.reached(s.q.where(s.facts(s.r, None, *s.t), *s.v), s.r),
    ),
    ("RTKV", _P, "the subjects of F(R)[T] that are subjects of F(K)[V]", lambda s: s.subjects_of_both()),
    (
        "HRTKV",
        _Q,
        "whether F(R)[H][T] has a fact whose qualifier K is V",
        lambda s: s.exists(s.q.where(s.facts(s.r, s.h, *s.t), *s.v)),
    ),
    (
        "HRTKV",
        _P,
        "whether one of H has F(R)[T] and F(K)[V]",
        lambda s: s.exists(s.any_facts(s.members(s.k, s.members(s.r, s.h, *s.t), *s.v))),
    ),
)

#: The choices for each subset of the parameters, by letters in the order H R T K V; one of them applies.
CASES: Final[Mapping[str, tuple[Choice, ...]]] = MappingProxyType(
    {given: tuple(Choice(*row[1:]) for row in _TABLE if row[0] == given) for given in dict.fromkeys(row[0] for row in _TABLE)}
)


def subsets() -> Iterator[str]:
    """Yield all 32 subsets of the parameters, as letters in the order H R T K V."""
    for size in range(len(PARAMETERS) + 1):
        for chosen in combinations(PARAMETERS, size):
            yield "".join(chosen)


def choose(given: str, *, qualifier: bool, constant: bool) -> Choice:
    """Return the choice that applies to a subset of the parameters.

    `qualifier`: K is a qualifier; `constant`: H is one constant.

    >>> choose("RTK", qualifier=False, constant=False).meaning
    'the objects of F(K) of the subjects of F(R)[T]'
    """
    holds = {
        ChoiceRule.ALWAYS: True,
        ChoiceRule.QUALIFIER: qualifier,
        ChoiceRule.PREDICATE: not qualifier,
        ChoiceRule.CONSTANT: constant,
        ChoiceRule.SET: not constant,
    }
    return next(choice for choice in CASES[given] if holds[choice.when])


def lower_search(lowering: Lowering, search: Search) -> Result:
    """Lower a call of get_information."""
    call = SearchCall(lowering, search)
    choice = choose(call.search.case, qualifier=call.key is not None, constant=isinstance(search.head, Literal))
    if choice.lower is None:
        raise PlanError(choice.meaning, span=search.span, hint="one query for each, then set_intersection")
    result = choice.lower(call)
    led = dict.fromkeys([*call.led, *(call.head_result.led if call.head_result is not None else ())])
    return result.of(result.node, led=tuple(led), span=search.span)


def markdown() -> str:
    """Return the table of cases as Markdown, a row for each choice."""
    lines = ["| given | when | meaning |", "|---|---|---|"]
    for given in subsets():
        for choice in CASES[given]:
            when = "" if choice.when is ChoiceRule.ALWAYS else choice.when.value
            meaning = choice.meaning if choice.lower is not None else f"error: {choice.meaning}"
            lines.append(f"| {' '.join(given) or 'nothing'} | {when} | {meaning} |")
    return "\n".join(lines) + "\n"
