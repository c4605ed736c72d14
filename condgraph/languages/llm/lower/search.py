"""get_information lowered: the rules that the table of 32 cases names, over predicates, qualifiers
and validity.

`Search` binds the parameters, `cases.choose` says which rule applies, and the method of that name
builds the operators. A key that is a predicate goes through `_subjects_k` and `_objects_k`, one
that is a qualifier or a time word through `Key`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from condgraph.engine.algebra import (
    Concat,
    Distinct,
    Entities,
    Exists,
    Intersect,
    Objects,
    Predicates,
    QualifierKeys,
    Reached,
    Values,
    intersect,
)
from condgraph.engine.errors import PlanError
from condgraph.languages.llm.lower import cases as llm_table
from condgraph.languages.llm.lower.keys import Key
from condgraph.languages.llm.lower.results import NUMBERS, TEXTS, Result
from condgraph.languages.llm.lower.rows import Relation
from condgraph.languages.llm.lower.search_parts import SearchParts
from condgraph.languages.llm.syntax.tree import Literal

if TYPE_CHECKING:
    pass


class SearchRule(SearchParts):
    """One call of get_information while it is lowered."""

    def lower(self) -> Result:
        """The result of the rule that applies."""
        constant = isinstance(self.search.head, Literal)
        case = self.search.case
        choice = llm_table.choose(case, qualifier=self.key is not None, constant=constant)
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


RULES: Final = frozenset(choice.rule for case in llm_table.CASES.values() for choice in case.choices if choice.rule is not None)
assert all(hasattr(SearchRule, f"_{rule}") for rule in RULES), "every rule of the table is lowered"
