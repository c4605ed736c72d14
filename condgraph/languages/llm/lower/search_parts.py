"""The parts of a get_information call while it is lowered: predicates, heads, conditions, and the
facts and values they name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from condgraph.engine.algebra import (
    Among,
    ByName,
    Condition,
    End,
    Entities,
    Equals,
    Extreme,
    Facts,
    Family,
    Mode,
    Names,
    Not,
    Objects,
    Reached,
    Referents,
    RowNumbers,
    Scan,
    SubjectsOf,
    Values,
    Versus,
    Where,
)
from condgraph.engine.schema import Kinds
from condgraph.languages.llm.bound import ColumnCondition, Search
from condgraph.languages.llm.lower.context import ROW_NUMBER
from condgraph.languages.llm.lower.joins import keyed, shared_values, themselves
from condgraph.languages.llm.lower.keys import Key
from condgraph.languages.llm.lower.literals import inner_conditions, literal_tests
from condgraph.languages.llm.lower.results import NUMBERS, Result, as_values
from condgraph.languages.llm.lower.rows import Relation, RowParts
from condgraph.languages.llm.lower.superlatives import superlative
from condgraph.languages.llm.syntax.tree import Expression, Items, Literal
from condgraph.languages.parameters import Given
from condgraph.vectors.encoder import fold

if TYPE_CHECKING:
    from condgraph.languages.llm.lower.query import Lowering


class SearchParts(RowParts):
    """What the rules are made of: the bound parts of a call, and the facts, tests and values that
    they name.
    """

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
