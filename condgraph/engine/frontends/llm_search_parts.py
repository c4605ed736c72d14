"""The parts of a get_information call while it is lowered: predicates, heads, conditions, and the facts and values they name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from condgraph.engine.algebra import (
    Among,
    End,
    Entities,
    Equals,
    Extreme,
    Facts,
    Family,
    Holders,
    Keep,
    Minus,
    Mode,
    Named,
    Names,
    Objects,
    Reached,
    RowNumbers,
    Scan,
    Test,
    Values,
    Versus,
    Where,
    intersect,
)
from condgraph.engine.errors import PlanError
from condgraph.engine.frontends import llm_binding
from condgraph.engine.frontends.llm_binding import Condition
from condgraph.engine.frontends.llm_context import MISSING, ROW_NUMBER
from condgraph.engine.frontends.llm_keys import Key
from condgraph.engine.frontends.llm_literals import tests_for
from condgraph.engine.frontends.llm_results import NUMBERS, Result, as_values
from condgraph.engine.frontends.llm_superlatives import superlative
from condgraph.engine.frontends.llm_tree import Expression, Items, Literal
from condgraph.engine.linking.encoder import fold
from condgraph.engine.linking.names import Column
from condgraph.engine.schema import Kinds

if TYPE_CHECKING:
    from condgraph.engine.frontends.llm_query import Lowering


@dataclass(frozen=True, slots=True)
class Relation:
    """The predicates a relation (or a key) names, in their source. `numbers` is the virtual attribute row_number."""

    names: tuple[str, ...]
    source: str | None
    sources: tuple[str, ...]
    table: str | None
    family: Family = "any"
    numbers: bool = False


class SearchParts:
    """What the rules are made of: the bound parts of a call, and the facts, tests and values that they name."""

    def __init__(self, lowering: Lowering, search: llm_binding.Search) -> None:
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
        self.heads: Entities | None = None
        if head is not None:
            self.heads = self._heads(head, self.relation or self.key_relation)

    # -- binding ----------------------------------------------------------------------------------------------------------

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
        """Whether the key is a time word, a qualifier, or a predicate: from the schema and the text alone."""
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
            return Named(names)
        result = self.head_result if head is self.search.head else self.lowering.evaluate(head)
        assert result is not None
        return self.lowering.entities(result, table, relation.sources if relation else ())

    # -- scans and conditions ---------------------------------------------------------------------------------------------

    def _scan(self, relation: Relation, of: Entities | None = None, *, reach: End = "subject") -> Facts:
        # Rows are of one table, so that a set of them needs no scope.
        scoped = relation.source if of is None or relation.table is None else None
        return Scan(of, relation.names, "subject", reach, relation.family, scoped)

    def _any(self, of: Entities | None) -> Facts:
        """Facts of any predicate, of one source where there is a scope."""
        scope = self.source if len(self.ctx.schema.sources) > 1 else None
        return Scan(of, None, "subject", "subject", "any", scope)

    def _facts(self, relation: Relation | None, of: Entities | None, *conditions: Condition, reach: End = "subject") -> Facts:
        facts = self._any(of) if relation is None else self._scan(relation, of, reach=reach)
        for condition in conditions:
            facts = self._where(facts, condition, relation)
        return facts

    def _where(self, facts: Facts, condition: Condition, relation: Relation | None) -> Facts:
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
            if relation is not None and relation.family == "relation" and condition.op == "=":
                names = self._tail_names(value, relation)
                return Where(facts, Among(Named(names)))
            what = "value" if relation is None else f"value of {relation.names[0]!r}" if relation.names else "value"
            test = self.ctx.test(condition.op, value, column, what)
            self.led.append(" ".join(value.text.split()))
            return Where(facts, test)
        if isinstance(value, Items):
            tests = [self._test_of(Condition(condition.op, item), relation) for item in value.items]
            return Where(facts, self.lowering.any_test(tests))
        return Where(facts, self._test_of(condition, relation))

    def _test_of(self, condition: Condition, relation: Relation | None) -> Test:
        """A test against a literal, or against what an earlier query gave."""
        if isinstance(condition.value, Literal):
            what = "value" if relation is None or not relation.names else f"value of {relation.names[0]!r}"
            return self.ctx.test(condition.op, condition.value, self._column(relation), what)
        result = self.lowering.evaluate(condition.value)
        self.led.extend(result.led)
        if result.literal is not None:
            return self._test_of(Condition(condition.op, result.literal), relation)
        if relation is not None and relation.family == "relation" and condition.op == "=":
            return Among(self.lowering.entities(result, None, relation.sources))
        values = self._tail_values(result, relation)
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
        return as_values(self.lowering.shown(result))

    def _tail_names(self, literal: Literal, relation: Relation) -> tuple[str, ...]:
        """The names of a relation's objects that a literal means."""
        ctx = self.ctx
        name = " ".join(literal.text.split())
        if ctx.schema.has_entity(name):
            self.led.append(name)
            return (name,)
        column = self._column(relation)
        found = tuple(column.folded.get(fold(name), ())) or tuple(
            ctx.similar(literal, column, f"value of {relation.names[0]!r}", unlike=False)
        )
        self.led.append(found[0] if len(found) == 1 else literal.text)
        return found or (name,)

    def _column(self, relation: Relation | None) -> Column:
        if relation is None:
            return self.ctx.linker.column(None, self.source if len(self.ctx.schema.sources) > 1 else None)
        return self.ctx.linker.column(relation.names, relation.source)

    def _kinds(self, relation: Relation) -> Kinds:
        return NUMBERS if relation.numbers else self._column(relation).kinds

    # -- results ----------------------------------------------------------------------------------------------------------

    def _entities(self, node: Entities, relation: Relation | None) -> Result:
        table = relation.table if relation is not None else self.source if self.ctx.is_table(self.source) else None
        column = relation.names[0] if relation is not None and relation.names else None
        return Result(node, table, relation.sources if relation else (), column)

    def _reached(self, facts: Facts, relation: Relation | None) -> Result:
        return self._entities(Reached(facts), relation)

    def _values(self, node: Values, relation: Relation | None, kinds: Kinds) -> Result:
        found = self._entities(Holders(node), relation)
        return Result(node, found.table, found.sources, found.column, kinds, carried=True)

    def _objects_of_facts(self, relation: Relation, of: Entities | None, *conditions: Condition) -> Result:
        """The objects of facts: entities where the relation has nothing else, else values."""
        if relation.numbers:
            rows = of if of is not None else self.ctx.rows(relation.table or "")
            return self._values(RowNumbers(self._numbered(rows, *conditions)), relation, NUMBERS)
        if relation.family == "relation" and relation.table is None:
            facts = self._facts(relation, of, *conditions, reach="object")
            return Result(Reached(facts), None, relation.sources, relation.names[0] if relation.names else None)
        return self._values(Objects(self._facts(relation, of, *conditions)), relation, self._column(relation).kinds)

    def _numbered(self, rows: Entities, *conditions: Condition) -> Entities:
        """Rows whose number satisfies the conditions."""
        for condition in conditions:
            numbers = RowNumbers(rows)
            value = condition.value
            if isinstance(value, Literal):
                word = superlative(value.text, NUMBERS) if condition.op != "!=" else None
                if word is not None:
                    rows = Holders(Extreme(numbers, word[1]))
                    continue
                tests = tests_for(condition.op, value.text, NUMBERS).tests
                if not tests:
                    raise PlanError(f"{value.text!r} is no row number", span=value.span, hint="rows are counted from 1")
                rows = Holders(Keep(numbers, self.lowering.any_test(tests)))
                continue
            result = self.lowering.evaluate(value)
            if result.literal is not None:
                rows = self._numbered(rows, Condition(condition.op, result.literal, condition.span))
                continue
            if result.is_rows:
                assert isinstance(result.node, Entities)
                if condition.op == "=":
                    rows = intersect(rows, result.node)
                    continue
                values: Values = RowNumbers(result.node)
            else:
                values = self._tail_values(result, None)
            rows = Holders(Keep(numbers, Versus(condition.op, values)))
        return rows

    def _subjects_of_facts(self, relation: Relation, of: Entities | None, *conditions: Condition) -> Result:
        """The subjects of facts that satisfy conditions."""
        if relation.numbers:
            rows = of if of is not None else self.ctx.rows(relation.table or "")
            return self._entities(self._numbered(rows, *conditions), relation)
        relation = self._repeated(relation, conditions)
        if relation.table is not None and len(conditions) == 1 and self._is_missing(conditions[0], relation):
            return self._entities(self._without(relation, of, conditions[0]), relation)
        if relation.family == "relation" and of is None and len(conditions) == 1 and conditions[0].op == "=":
            backward = self._backward(relation, conditions[0])
            if backward is not None:
                return backward
        return self._reached(self._facts(relation, of, *conditions), relation)

    def _repeated(self, relation: Relation, conditions: tuple[Condition, ...]) -> Relation:
        """The column of a repeated header ("Country (2)") that has a literal, where the first one does not."""
        if relation.table is None or len(relation.names) != 1 or len(conditions) != 1 or conditions[0].op != "=":
            return relation
        value = conditions[0].value
        if not isinstance(value, Literal):
            return relation
        name, wanted = relation.names[0], fold(value.text)
        others = self.ctx.repeats(name, relation.table)
        if not others or wanted in self._column(relation).folded:
            return relation
        for other in others:
            found = replace(relation, names=(other,))
            if wanted in self._column(found).folded:
                self.ctx.warn(f"{value.text!r} stands in {other!r}, another column of the header {name!r}")
                return found
        return relation

    def _is_missing(self, condition: Condition, relation: Relation) -> bool:
        """Whether a condition asks for cells that are not there: `tail_entity='n/a'`."""
        value = condition.value
        if not isinstance(value, Literal) or condition.op not in ("=", "!=") or fold(value.text) not in MISSING:
            return False
        return fold(value.text) not in self._column(relation).folded

    def _without(self, relation: Relation, of: Entities | None, condition: Condition) -> Entities:
        """The rows without a cell (for `!=`: with one)."""
        self.ctx.warn(f"{condition.value.text!r} means rows without a value of {relation.names[0]!r}")  # type: ignore[union-attr]
        filled = Reached(self._scan(relation, of))
        if condition.op == "!=":
            return filled
        return Minus(of if of is not None else self.ctx.rows(relation.table or ""), filled)

    def _backward(self, relation: Relation, condition: Condition) -> Result | None:
        """Subjects by an entity at the object: a scan from there."""
        value = condition.value
        if isinstance(value, Literal):
            if superlative(value.text, {}) is not None and not self.ctx.schema.has_entity(value.text):
                return None
            targets: Entities = Named(self._tail_names(value, relation))
        elif isinstance(value, Items):
            return None
        else:
            result = self.lowering.evaluate(value)
            if result.literal is not None:
                return self._backward(relation, Condition("=", result.literal, condition.span))
            self.led.extend(result.led)
            targets = self.lowering.entities(result, None, relation.sources)
        return self._reached(Scan(targets, relation.names, "object", "subject", "relation", relation.source), relation)
