"""Compiles plans over an existing database to SQL over its own tables.

A set of entities is a test on the rows of each table that may have some of them, so a query needs no other tables and
compares keys and columns as they are. Query texts are cached by the shape of a plan, which leaves out names and values.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from typing import Any, Final, TypeAlias

from sqlglot import exp

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node
from condgraph.engine.errors import PlanError
from condgraph.engine.facts import EntityKind, Source
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, Kind, Quantity, Time, as_float, civil, format_number, tie_break
from condgraph.sql.catalogue import Bound, Column, Reference, Table, ends_of, is_filled
from condgraph.sql.compiler import BOUND_KEYS, reach_of
from condgraph.sql.conditions import compared, exactly, span_test
from condgraph.sql.connections import Engine
from condgraph.sql.native import NativeTables, Part
from condgraph.sql.plan import VALUE, Bag, Numbered, Records
from condgraph.sql.tables import CELL, TAKEN, Row
from condgraph.sql.terms import (
    NULL,
    Query,
    both,
    case,
    cast,
    check_text,
    coalesce,
    column,
    either,
    known,
    literal,
    name,
    named,
    none_of,
    select,
    together,
    within,
)

#: Builds a test on a row of a table, given the table's alias.
Test: TypeAlias = Callable[[str], exp.Expr]

#: The first and last second of the dates that a database may hold, written as literals are.
_FIRST, _LAST = (days * DAY_SECONDS for days in (-719_162, 2_932_896))
_MAX_EXACT: Final = 2**53
#: Integers smaller than this surely fit a literal of 64 bits.
_MAX_INTEGER: Final = 2**62


# -- Shapes ------------------------------------------------------------------------------------------


class Shape:
    """A plan without its names and values (`constants`, in order).

    Plans with equal `key` have the same query except for the constants.
    """

    def __init__(self, nodes: Sequence[Any], tables: NativeTables) -> None:
        self.constants: list[Any] = []
        self._tables = tables
        self._first: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self.key: Hashable = tuple(map(self._shape_of, nodes))

    def at(self, node: Any, number: int = 0) -> int:
        """Return the index of the constant of an operator or test."""
        return self._first[id(node)] + number

    def _shape_of(self, value: Any) -> Hashable:
        if isinstance(value, tuple):
            return tuple(map(self._shape_of, value))
        if not is_dataclass(value):
            assert value is None or isinstance(value, str | int)
            return value
        if id(value) in self._seen:
            return self._seen[id(value)]
        self._seen[id(value)] = len(self._seen)
        detail: Hashable
        if isinstance(value, alg.ByName | alg.ById):
            texts = value.names if isinstance(value, alg.ByName) else value.ids
            detail = tuple(map(self._named, texts))
            self._add(value, texts)
        elif isinstance(value, alg.Compare):
            detail = value.operator, self._constant(value)
        elif isinstance(value, alg.During):
            seconds = [value.interval.start, value.interval.end, value.interval.start + 1]
            detail = self._shape_of(value.facts), value.relation, *(_FIRST <= second < _LAST for second in seconds)
            self._add(value, seconds)
        else:
            detail = tuple(self._shape_of(getattr(value, item.name)) for item in fields(value))
        return type(value), detail

    def _named(self, text: str) -> Hashable:
        check_text(text)
        remainders = ((table.name, meets(table, text)) for table in self._tables.of_rows)
        return tuple((table, remainder == "") for table, remainder in remainders if remainder is not None)

    def _constant(self, test: alg.Compare) -> Hashable:
        value = test.value
        if isinstance(value, str):
            check_text(value)
            self._add(test, [value])
            return "text"
        if isinstance(value, Quantity):
            number, exact = as_float(value)
            whole = value.number == int(value.number) if math.isfinite(number) else False
            self._add(test, [int(value.number) if whole else value.number, number, tie_break(value.number)])
            short = whole and abs(number) < _MAX_INTEGER
            return "number", value.unit == NO_UNIT, short, exact, abs(number) < _MAX_EXACT, None if short else _size(value)
        assert isinstance(value, Time)
        self._add(test, [value.start, value.end])
        return "time", *(_FIRST <= second < _LAST for second in (value.start, value.end))

    def _add(self, node: Any, constants: Iterable[Any]) -> None:
        self._first[id(node)] = len(self.constants)
        self.constants += constants


def _size(value: Quantity) -> tuple[int, int]:
    """Return how many digits a number has before and after its point."""
    before, _, after = f"{Decimal(format_number(value.number)):f}".lstrip("-").partition(".")
    return len(before.lstrip("0")), len(after.rstrip("0"))


def meets(table: Table, text: str) -> str | None:
    """Return the rest of a possible row id after its table's name: empty for the concept's id, None if it cannot be an id."""
    if text == table.name:
        return ""
    remainder = text.removeprefix(f"{table.name}/")
    if remainder == text or not remainder:
        return None
    if len(table.key) == 1 and table.column(table.key[0]).whole and not re.fullmatch(r"0|-?[1-9][0-9]{0,17}", remainder):
        return None
    return remainder


class Template:
    """The text of a query with holes for constants."""

    def __init__(self, mark: str, text: str) -> None:
        parts = re.split(f"{mark}([0-9]+):([a-z]+):([0-9]+);", text)
        self._texts = parts[::4]
        self._holes = list(zip(map(int, parts[1::4]), parts[2::4], map(int, parts[3::4]), strict=True))

    def filled(self, constants: Sequence[Any], quoted: Callable[[str], str]) -> str:
        """Return the text with these constants; `quoted` writes a text within quotes."""
        pieces = [self._texts[0]]
        for (at, form, cut), following in zip(self._holes, self._texts[1:], strict=True):
            constant = constants[at]
            pieces += (quoted(constant[cut:]) if form == "text" else _FORMS[form](constant, cut), following)
        return "".join(pieces)


def _moment(second: int, cut: int) -> str:
    days, second_of_day = divmod(second, DAY_SECONDS)
    year, month, day = civil(days)
    return f"{year:04d}-{month:02d}-{day:02d} {second_of_day // 3600:02d}:{second_of_day // 60 % 60:02d}:{second_of_day % 60:02d}"


def _day(second: int, up: int) -> str:
    return _moment((second + (DAY_SECONDS - 1) * up) // DAY_SECONDS * DAY_SECONDS, 0)[:-9]


#: How constants other than texts are written; all except numbers stand within quotes.
_FORMS: Final[dict[str, Callable[[Any, int], str]]] = {
    "whole": lambda number, cut: str(int(number[cut:] if isinstance(number, str) else number)),
    "number": lambda number, cut: repr(float(number)),
    "decimal": lambda number, cut: format_number(number),
    "second": lambda second, cut: str(second),
    "moment": _moment,
    "day": _day,
}


# -- Sets and statements -----------------------------------------------------------------------------


@dataclass(slots=True)
class Rows:
    """Entities: in each table the rows that pass the tests (all rows if there are no tests), and concepts that pass theirs.

    The tests of concepts look at no row.
    """

    tests: dict[str, list[Test]]
    concepts: dict[str, list[Test]] = field(default_factory=dict)


@dataclass(slots=True)
class Facts:
    """Statements of a part that pass the tests, of rows of its table."""

    part: Part
    tests: list[Test]


def _true(alias: str) -> exp.Expr:
    return exp.true()


def _false(alias: str) -> exp.Expr:
    return exp.false()


def _applied(tests: Sequence[Test], alias: str) -> list[exp.Expr]:
    return [test(alias) for test in tests]


def _negated(tests: Sequence[Test]) -> Test:
    return lambda alias: exp.not_(coalesce(exp.Paren(this=both(_applied(tests, alias))), exp.false()))


def _both(first: Test, second: Test) -> Test:
    return lambda alias: both([first(alias), second(alias)])


def _any_of(alternatives: Sequence[Sequence[Test]]) -> list[Test]:
    """Return a test that holds if all tests of any alternative hold."""
    if len(alternatives) == 1:
        return list(alternatives[0])
    if not all(alternatives):
        return []
    return [lambda alias: exp.Paren(this=either(both(_applied(tests, alias)) for tests in alternatives))]


class NativeCompiler:
    """Builds the queries of one shape of plans."""

    def __init__(self, tables: NativeTables, shape: Shape) -> None:
        self.tables, self.shape = tables, shape
        self.mark = f"condgraph{secrets.token_hex(8)}:"
        self._aliases = 0
        self._sets: dict[int, Rows] = {}

    # -- constants ---------------------------------------------------------------------------------

    def _hole(self, at: int, form: str, cut: int = 0) -> str:
        return f"{self.mark}{at}:{form}:{cut};"

    def _text(self, at: int, cut: int = 0) -> exp.Expr:
        return exp.Literal.string(self._hole(at, "text", cut))

    def _number(self, at: int, form: str, cut: int = 0) -> exp.Expr:
        return exp.Literal.number(self._hole(at, form, cut))

    def _alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    # -- entities ----------------------------------------------------------------------------------

    def entities(self, node: Node) -> Rows:
        """Return the entities of an operator."""
        if id(node) not in self._sets:
            self._sets[id(node)] = self._entities(node)
        return self._sets[id(node)]

    def _entities(self, node: Node) -> Rows:
        if isinstance(node, alg.AllEntities):
            return self._all_entities(node)
        if isinstance(node, alg.ById | alg.ByName):
            return self._named(node)
        if isinstance(node, alg.Members):
            return Rows(dict(self.entities(node.concepts).concepts))
        if isinstance(node, alg.Union | alg.Intersect):
            return self._combined([self.entities(part) for part in node.parts], intersect=isinstance(node, alg.Intersect))
        if isinstance(node, alg.Minus):
            left, right = self.entities(node.left), self.entities(node.right)
            return Rows(_without(left.tests, right.tests), _without(left.concepts, right.concepts))
        if isinstance(node, alg.SubjectsOf):
            if isinstance(node.values, alg.Names):
                return self.entities(node.values.entities)
            if isinstance(node.values, alg.Objects):
                return self._ends(self.facts(node.values.facts), "subject")
        if isinstance(node, alg.Reached):
            return self._ends(self.facts(node.facts), reach_of(node.facts))
        if isinstance(node, alg.SameName):
            entities = self.entities(node.of)
            return self._with_names(lambda: self._names_of(entities))
        if isinstance(node, alg.Referents):
            return self._referents(node.values)
        assert isinstance(node, alg.ArgExtreme), type(node)
        return self._best(node)

    def _all_entities(self, node: alg.AllEntities) -> Rows:
        tables = self.tables.of_rows
        if node.source is None:
            concepts = {table.name: list[Test]() for table in tables if EntityKind.CONCEPT in node.kinds}
            return Rows({table.name: [] for table in tables} if EntityKind.ROW in node.kinds else {}, concepts)
        if EntityKind.ROW not in node.kinds:
            return Rows({})
        rows_of_source = Rows({table.name: [] for table in tables if self.tables.source(table) == node.source})
        if node.own:
            return rows_of_source
        facts = self.facts(alg.Scan(None, None, source=node.source))
        return self._combined([rows_of_source, self._ends(facts, "subject"), self._ends(facts, "object")], intersect=False)

    def _with_names(self, names: Callable[[], list[Query]]) -> Rows:
        """Return all entities that have one of some names."""

        def row_tests(table: Table) -> list[Test]:
            return [lambda alias: within(self.tables.label(table, alias), together(names()))]

        def concept_tests(table: Table) -> list[Test]:
            return [lambda alias: within(literal(table.name), together(names()))]

        tables = self.tables.of_rows if names() else []
        return Rows({table.name: row_tests(table) for table in tables}, {table.name: concept_tests(table) for table in tables})

    def _names_of(self, rows: Rows) -> list[Query]:
        """Return queries of the names of entities."""
        queries: list[Query] = []
        for table_name, tests in rows.tests.items():
            alias, table = self._alias(), self.tables.tables[table_name]
            query = select(cast(self.tables.label(table, alias), "text")).from_(self._rows(table, alias), copy=False)
            queries.append(_filtered(query, _applied(tests, alias)))
        for concept, tests in rows.concepts.items():
            queries.append(_filtered(select(cast(literal(concept), "text")), _applied(tests, "")))
        return queries

    def _referents(self, bag: Node) -> Rows:
        """Return the entities that values are, or that have a value as their name."""
        if isinstance(bag, alg.Names):
            return self.entities(bag.entities)
        assert isinstance(bag, alg.Objects | alg.Qualifiers)
        referred: list[Rows] = []
        texts: list[tuple[Facts, Column]] = []
        for facts, item in self._values(bag):
            if isinstance(item, Reference):
                referred.append(Rows({item.target: [self._referred(facts, item)]}))
            elif item.kind is Kind.TEXT or self.tables.is_finite(item, "t") is not None:
                texts.append((facts, item))

        def names() -> list[Query]:
            queries: list[Query] = []
            for facts, item in texts:
                alias = self._alias()
                text = self.tables.cells_at(item, alias)["text"]
                query = select(cast(text, "text")).from_(self._rows(facts.part.table, alias), copy=False)
                queries.append(query.where(*_applied(facts.tests, alias), known(text.copy()), copy=False))
            return queries

        return self._combined([*referred, self._with_names(names)], intersect=False)

    def _values(self, bag: Node) -> list[tuple[Facts, Column | Reference]]:
        """Return where a bag gets its values: the statements that have one, and its column or reference."""
        assert isinstance(bag, alg.Objects | alg.Qualifiers | alg.Validity)
        result: list[tuple[Facts, Column | Reference]] = []
        for facts in self.facts(bag.facts):
            table = facts.part.table
            if isinstance(bag, alg.Objects):
                result.append((facts, self.tables.ends(facts.part)[1]))
            else:
                keys = [bag.key] if isinstance(bag, alg.Qualifiers) else BOUND_KEYS[bag.part]
                for key, item in self.tables.qualifiers(table):
                    if key in keys:
                        result.append((Facts(facts.part, [*facts.tests, self._has_value(table, item)]), item))
        return result

    def _has_value(self, table: Table, item: Column | Reference) -> Test:
        """Return a test that a row has a value."""
        if isinstance(item, Column):
            return lambda alias: self.tables.is_given(item, alias)
        return self._refers(table, item, None)

    def _best(self, node: alg.ArgExtreme) -> Rows:
        """Return the entities with the best value of a key, including ties.

        Only numbers or only times count: the more frequent of the two, times if equally frequent.
        """
        groups: dict[Kind, list[Facts]] = {Kind.QUANTITY: [], Kind.TIME: []}
        for facts in self._scan(alg.Scan(node.of, (node.key,), family="attribute")):
            item = facts.part.item
            if item is not None and item.kind in groups:
                groups[item.kind].append(Facts(facts.part, [*facts.tests, self._finite(item)]))
        is_largest = node.direction == "largest"
        alternatives: dict[str, list[list[Test]]] = {}
        for kind, competing in groups.items():
            other_kind = groups[Kind.TIME if kind is Kind.QUANTITY else Kind.QUANTITY]
            outnumbering = (
                [self._outnumber(competing, other_kind, exp.GT if kind is Kind.QUANTITY else exp.GTE)]
                if other_kind and competing
                else []
            )
            part = "number" if kind is Kind.QUANTITY else "stop" if is_largest else "start"
            if kind is Kind.QUANTITY and self.tables.cells.ordered([facts.part.item for facts in competing if facts.part.item]):
                part = ""
            for facts in competing:
                is_best = self._is_best(facts, part, competing, exp.Max if is_largest else exp.Min)
                alternatives.setdefault(facts.part.table.name, []).append([*facts.tests, is_best, *outnumbering])
        return Rows({table: _any_of(tests) for table, tests in alternatives.items()})

    def _outnumber(self, groups: Sequence[Facts], others: Sequence[Facts], operator: type[exp.Binary]) -> Test:
        return lambda alias: operator(this=self.size(groups), expression=self.size(others))

    def _finite(self, item: Column) -> Test:
        def test(alias: str) -> exp.Expr:
            is_finite = self.tables.is_finite(item, alias)
            return exp.true() if is_finite is None else is_finite

        return test

    def _is_best(self, facts: Facts, part: str, competing: Sequence[Facts], aggregate: type[exp.AggFunc]) -> Test:
        def test(alias: str) -> exp.Expr:
            queries: list[Query] = []
            for competitor in competing:
                inner = self._alias()
                query = select(named(self._part(competitor, part, inner), "v")).from_(
                    self._rows(competitor.part.table, inner), copy=False
                )
                queries.append(_filtered(query, _applied(competitor.tests, inner)))
            best_value = select(aggregate(this=column("v"))).from_(_subquery(together(queries)), copy=False)
            return exp.EQ(this=self._part(facts, part, alias), expression=exp.Subquery(this=best_value))

        return test

    def _part(self, facts: Facts, part: str, alias: str) -> exp.Expr:
        """Return a part of a value, or the value as the database has it."""
        item = facts.part.item
        assert item is not None
        return self.tables.cells_at(item, alias)[part] if part else self.tables.cells.plain(item, column(item.real, alias))

    def size(self, parts: Sequence[Facts]) -> exp.Expr:
        """Return how many statements there are."""
        total: exp.Expr = literal(0)
        for facts in parts:
            alias = self._alias()
            query = select(exp.Count(this=exp.Star())).from_(self._rows(facts.part.table, alias), copy=False)
            total = exp.Add(this=total, expression=exp.Subquery(this=_filtered(query, _applied(facts.tests, alias))))
        return exp.Paren(this=total)

    @staticmethod
    def _combined(parts: list[Rows], *, intersect: bool) -> Rows:
        def joined(sets: list[dict[str, list[Test]]]) -> dict[str, list[Test]]:
            tests: dict[str, list[Test]] = {}
            for table in dict.fromkeys(table for part in sets for table in part):
                alternatives = [part[table] for part in sets if table in part]
                if not intersect:
                    tests[table] = _any_of(alternatives)
                elif len(alternatives) == len(sets):
                    tests[table] = [test for alternative in alternatives for test in alternative]
            return tests

        return Rows(joined([part.tests for part in parts]), joined([part.concepts for part in parts]))

    def _named(self, node: alg.ById | alg.ByName) -> Rows:
        by_name = isinstance(node, alg.ByName)
        texts = node.names if isinstance(node, alg.ByName) else node.ids
        tests: dict[str, list[Test]] = {}
        concepts: dict[str, list[Test]] = {}
        for table in self.tables.of_rows:
            alternatives: list[list[Test]] = []
            for number, text in enumerate(texts):
                at, remainder = self.shape.at(node, number), meets(table, text)
                if by_name and table.label is not None:
                    alternatives.append([self._labelled(table, table.label, at)])
                if remainder == "":
                    concepts[table.name] = []
                elif remainder is not None:
                    id_tests = [self._with_id(table, at, text)]
                    if by_name and table.label is not None:
                        id_tests.append(self._without_label(table, table.label))
                    alternatives.append(id_tests)
            if alternatives:
                tests[table.name] = _any_of(alternatives)
        return Rows(tests, concepts)

    def _labelled(self, table: Table, label: str, at: int) -> Test:
        def test(alias: str) -> exp.Expr:
            label_text = self.tables.compared(table.column(label), alias)
            text = self._text(at)
            # A text of only blanks is no name.
            return both([exp.EQ(this=label_text, expression=text), is_filled(text.copy())])

        return test

    def _without_label(self, table: Table, label: str) -> Test:
        def test(alias: str) -> exp.Expr:
            label_text = self.tables.compared(table.column(label), alias)
            return exp.not_(is_filled(coalesce(label_text, literal(""))))

        return test

    def _with_id(self, table: Table, at: int, text: str) -> Test:
        cut = len(table.name) + 1
        if len(table.key) == 1:
            key = table.column(table.key[0])
            if key.whole:
                return lambda alias: exp.EQ(this=column(key.real, alias), expression=self._number(at, "whole", cut))
            if key.sort == "text":
                return lambda alias: exp.EQ(this=self.tables.compared(key, alias), expression=self._text(at, cut))
        return lambda alias: exp.EQ(this=self.tables.id(table, alias), expression=self._text(at))

    # -- references --------------------------------------------------------------------------------

    def _rows(self, table: Table, alias: str) -> exp.Expr:
        """Return the rows of a table, for queries that do not need row numbers."""
        return self.tables.rows(table, alias)

    def _pairs(self, table: Table, reference: Reference) -> list[tuple[Column, Column]]:
        other = self.tables.tables[reference.target]
        return [
            (table.column(own_name), other.column(other_name))
            for own_name, other_name in zip(reference.columns, reference.keys, strict=True)
        ]

    def _matches_row(self, pairs: Sequence[tuple[Column, Column]], outer: str, table: Table, tests: Sequence[Test]) -> exp.Expr:
        """Return a test that some row of a table has in the pairs' second columns what row `outer` has in the first."""
        inner = self._alias()
        rows = select().from_(self._rows(table, inner), copy=False)
        conditions = _applied(tests, inner)
        if len(pairs) == 1:
            ((outer_column, inner_column),) = pairs
            query = rows.select(self.tables.compared(inner_column, inner), copy=False)
            return within(self.tables.compared(outer_column, outer), query.where(*conditions, copy=False) if conditions else query)
        equalities = [
            exp.EQ(this=self.tables.compared(inner_column, inner), expression=self.tables.compared(outer_column, outer))
            for outer_column, inner_column in pairs
        ]
        return exp.Exists(this=rows.select(literal(1), copy=False).where(*equalities, *conditions, copy=False))

    def _refers(self, table: Table, reference: Reference, targets: Rows | None) -> Test:
        """Return a test that a row refers to a row of a set, or to any row if `targets` is None."""
        other, pairs = self.tables.tables[reference.target], self._pairs(table, reference)
        if targets is not None and other.name not in targets.tests:
            return _false
        tests = [] if targets is None else targets.tests[other.name]
        if tests or not (reference.certain and other.certain):
            return lambda alias: self._matches_row(pairs, alias, other, tests)
        return lambda alias: both(known(self.tables.compared(own_column, alias)) for own_column, _ in pairs)

    def _referred(self, facts: Facts, reference: Reference) -> Test:
        """Return a test that some statement has a row at the end that a reference leads to."""
        pairs = [(target_column, own_column) for own_column, target_column in self._pairs(facts.part.table, reference)]
        return lambda alias: self._matches_row(pairs, alias, facts.part.table, facts.tests)

    def _ends(self, parts: Sequence[Facts], end: str) -> Rows:
        alternatives: dict[str, list[list[Test]]] = {}
        for facts in parts:
            reference = self._reference(facts.part, end)
            if reference is not None:
                alternatives.setdefault(reference.target, []).append([self._referred(facts, reference)])
            elif end == "subject":
                alternatives.setdefault(facts.part.table.name, []).append(facts.tests)
        return Rows({table: _any_of(tests) for table, tests in alternatives.items()})

    @staticmethod
    def _reference(part: Part, end: str) -> Reference | None:
        """Return the reference to an end of statements; None if that is the row itself or a value."""
        if part.table.relation is not None:
            return ends_of(part.table)[0 if end == "subject" else 1]
        return part.reference if end == "object" else None

    # -- statements --------------------------------------------------------------------------------

    def facts(self, node: Node) -> list[Facts]:
        """Return the statements of an operator."""
        if isinstance(node, alg.Scan):
            return self._scan(node)
        if isinstance(node, alg.Where):
            return self._filtered(node.facts, lambda part: self._compare(part, node.condition))
        if isinstance(node, alg.WhereQualifier):
            return self._filtered(node.facts, lambda part: self._qualified(part, node.key, node.condition))
        if isinstance(node, alg.OtherEnd):
            facts = self.facts(node.facts)
            return facts if node.reach == "subject" else [item for item in facts if item.part.item is None]
        if isinstance(node, alg.During):
            return self._filtered(node.facts, lambda part: self._during(part.table, node))
        assert isinstance(node, alg.WhereValidity), type(node)

        def valid(part: Part) -> Test:
            alternatives = [
                self._qualified(part, key, node.condition) for key, _ in part.table.bounds if key in BOUND_KEYS[node.part]
            ]
            return alternatives[0] if alternatives else _false

        return self._filtered(node.facts, valid)

    def _during(self, table: Table, node: alg.During) -> Test:
        if not table.bounds:
            return _true if node.relation in ("may", "must") else _false
        at = self.shape.at(node)
        if node.relation == "may":
            return lambda alias: none_of(test for key, item in table.bounds for test in self._outside(key, item, node, alias))
        interval = [cast(exp.Literal.string(self._hole(at + end, "second")), "bigint") for end in (0, 1)]
        return lambda alias: exp.Paren(this=span_test(node.relation, *self.tables.validity(table, alias), *interval))

    def _outside(self, key: str, item: Bound, node: alg.During, alias: str) -> Iterator[list[exp.Expr]]:
        """Yield the ways in which a bound of a row excludes an interval: the row starts after it, or ends before it."""
        is_stated, at, (low, high) = (
            self.tables.is_given(item, alias),
            self.shape.at(node),
            (node.interval.start, node.interval.end),
        )
        if key in BOUND_KEYS["start"]:
            yield [self._moment(item, exp.GTE, high, at + 1, alias, up=True), is_stated.copy()]
        if key not in BOUND_KEYS["end"]:
            return
        if item.excluded and not item.whole:
            # The first moment in which it no longer holds is before the interval's second one.
            yield [self._moment(replace(item, excluded=False), exp.LT, low + 1, at + 2, alias, up=True), is_stated]
        else:
            yield [self._moment(item, exp.LT, low, at, alias, up=False), is_stated]

    def _filtered(self, facts: Node, test: Callable[[Part], Test]) -> list[Facts]:
        result = []
        for item in self.facts(facts):
            part_test = test(item.part)
            if part_test is not _false:
                result.append(Facts(item.part, [*item.tests, part_test]))
        return result

    def _scan(self, node: alg.Scan) -> list[Facts]:
        relations = node.family != "attribute"
        attributes = node.family != "relation" and node.anchor == "subject" and (node.family == "any" or node.reach == "subject")
        anchors = None if node.of is None else self.entities(node.of)
        result = []
        for table in self.tables.tables.values():
            for part in self.tables.parts(table, node.predicates):
                if node.source is not None and self.tables.source(table) != node.source:
                    continue
                if not (attributes if part.item is not None else relations):
                    continue
                tests = self._exists(part)
                if anchors is not None:
                    reference = self._reference(part, node.anchor)
                    if reference is not None:
                        refers = self._refers(table, reference, anchors)
                        if refers is _false:
                            continue
                        tests.append(refers)
                    elif table.name not in anchors.tests:
                        continue
                    else:
                        tests += anchors.tests[table.name]
                result.append(Facts(part, tests))
        return result

    def _exists(self, part: Part) -> list[Test]:
        item, table = part.item, part.table
        tests: list[Test] = [lambda alias: self.tables.holds(table, alias)] if self.tables.may_not_hold(table) else []
        if item is not None:
            return [lambda alias: self.tables.is_given(item, alias), *tests]
        ends = [part.reference] if part.reference is not None else ends_of(table)[:2]
        return [*(self._refers(table, reference, None) for reference in ends), *tests]

    # -- tests -------------------------------------------------------------------------------------

    def _compare(self, part: Part, test: Condition) -> Test:
        """Return a test of the objects of a part."""
        reference = self._reference(part, "object")
        if reference is not None:
            return self._of_entity(part.table, reference, test)
        assert part.item is not None
        return self._of_value(part.item, test)

    def _qualified(self, part: Part, key: str, test: Condition) -> Test:
        item = dict(reversed(self.tables.qualifiers(part.table))).get(key)
        if item is None:
            return _false
        value_test = self._of_value(item, test) if isinstance(item, Column) else self._of_entity(part.table, item, test)
        return value_test if value_test is _false else _both(self._has_value(part.table, item), value_test)

    def _composed(self, test: Condition, compile_part: Callable[[Condition], Test]) -> Test:
        if isinstance(test, alg.Not):
            inner = compile_part(test.condition)
            return _true if inner is _false else _negated([inner])
        if isinstance(test, alg.AnyOf):
            possible = [inner for inner in map(compile_part, test.conditions) if inner is not _false]
            return (lambda alias: exp.Paren(this=either(inner(alias) for inner in possible))) if possible else _false
        if isinstance(test, alg.AllOf):
            tests = list(map(compile_part, test.conditions))
            return _false if _false in tests else lambda alias: both(inner(alias) for inner in tests)
        raise PlanError(f"no test of values: {type(test).__name__}")

    def _of_entity(self, table: Table, reference: Reference, test: Condition) -> Test:
        if isinstance(test, alg.Among):
            return self._refers(table, reference, self.entities(test.entities))
        if not isinstance(test, alg.Compare):
            return self._composed(test, lambda part: self._of_entity(table, reference, part))
        if not isinstance(test.value, str):
            return _false
        target, at = self.tables.tables[reference.target], self.shape.at(test)

        def has_name(alias: str) -> exp.Expr:
            label = self.tables.label(target, alias)
            return compared(test.operator, self._in_order(test.operator, label), self._text(at))

        return self._refers(table, reference, Rows({target.name: [has_name]}))

    def _in_order(self, operator: str, text: exp.Expr) -> exp.Expr:
        return text if operator in ("=", "!=") else self.tables.cells.by_bytes(text)

    def _of_value(self, item: Column, test: Condition) -> Test:
        if isinstance(test, alg.Among):
            return _false
        if not isinstance(test, alg.Compare):
            return self._composed(test, lambda part: self._of_value(item, part))
        at, operator, value = self.shape.at(test), test.operator, test.value
        finite = self.tables.is_finite(item, "t")

        def where_finite(alias: str, test_value: exp.Expr) -> exp.Expr:
            test = self.tables.is_finite(item, alias)
            return test_value if test is None else both([test, test_value])

        if isinstance(value, str):
            if item.kind is Kind.TEXT:
                return lambda alias: compared(
                    operator, self._in_order(operator, self.tables.cells.text(item, column(item.real, alias))), self._text(at)
                )
            if finite is None:
                return _false

            def infinite_as_text(alias: str) -> exp.Expr:
                test = self.tables.is_finite(item, alias)
                assert test is not None
                text = self._in_order(operator, cast(column(item.real, alias), "text"))
                return both([exp.not_(exp.Paren(this=test)), compared(operator, text, self._text(at))])

            return infinite_as_text
        if isinstance(value, Quantity):
            if item.kind is not Kind.QUANTITY or value.unit != NO_UNIT:
                return _false
            return lambda alias: where_finite(alias, self._of_number(item, operator, value, at, alias))
        assert isinstance(value, Time)
        if item.kind is not Kind.TIME:
            return _false
        return lambda alias: where_finite(alias, exp.Paren(this=self._of_time(item, operator, value, at, alias)))

    def _of_number(self, item: Column, operator: str, value: Quantity, at: int, alias: str) -> exp.Expr:
        (number, exact), cell = as_float(value), column(item.real, alias)
        whole = self._number(at, "whole") if abs(number) < _MAX_INTEGER and value.number == int(value.number) else None
        constant = self.tables.cells.constant(item, whole, exp.Literal.string(self._hole(at, "decimal")), _size(value))
        if constant is not None:
            return compared(operator, self.tables.cells.plain(item, cell), constant)
        double = cast(exp.Literal.string(self._hole(at + 1, "number")), "double")
        if exact and not (item.inexact and (item.sort == "decimal" or abs(number) >= _MAX_EXACT)):
            return compared(operator, self.tables.cells.number(item, cell), double)
        cells = self.tables.cells_at(item, alias)
        tie = coalesce(cells.get("tie", NULL.copy()), literal("1"))
        return exp.Paren(this=exactly(operator, cells["number"], tie, double, self._text(at + 2)))

    def _of_time(self, item: Column, operator: str, value: Time, at: int, alias: str) -> exp.Expr:
        """Compare times of a day or a second with an interval. See `sql.conditions`."""

        def begins(second: int, place: int) -> exp.Expr:
            """Return a test that the time begins at a second or later."""
            return self._moment(item, exp.GTE, second, place, alias, up=True)

        def ends(second: int, place: int) -> exp.Expr:
            """Return a test that the time ends at or before a second; a date ends before the day of that second."""
            return self._moment(item, exp.LT, second, place, alias, up=False)

        low, high = (value.start, at), (value.end, at + 1)
        if operator == "=":
            return both([begins(*low), ends(*high)])
        if operator == "!=":
            return either([ends(*low), begins(*high)])
        return {"<": lambda: ends(*low), ">": lambda: begins(*high), "<=": lambda: ends(*high), ">=": lambda: begins(*low)}[
            operator
        ]()

    def _moment(self, item: Column, sort: type[exp.Binary], second: int, at: int, alias: str, *, up: bool) -> exp.Expr:
        cell = column(item.real, alias)
        in_seconds = isinstance(item, Bound) and (item.whole or item.excluded)
        if in_seconds or item.type == "TIMESTAMP_NS" or not _FIRST <= second < _LAST:
            bound, cells = cast(exp.Literal.string(self._hole(at, "second")), "bigint"), self.tables.cells_at(item, alias)
            if sort is exp.GTE:
                return exp.GTE(this=cells["start"], expression=bound)
            return exp.LTE(this=cells["stop"], expression=bound)
        text = self._hole(at, "day", int(up)) if item.sort == "date" else self._hole(at, "moment")
        return sort(this=cell, expression=item.moment(text))

    # -- queries -----------------------------------------------------------------------------------

    def of_entities(self, node: Node) -> Query:
        """Return a query of the id, name, kind and number of each entity."""
        rows, queries = self.entities(node), list[Query]()
        for table_name, tests in rows.tests.items():
            alias, table = self._alias(), self.tables.tables[table_name]
            query = _entity(self.tables.id(table, alias), self.tables.label(table, alias), EntityKind.ROW)
            queries.append(_filtered(query.from_(self.tables.rows(table, alias), copy=False), _applied(tests, alias)))
        for concept, tests in sorted(rows.concepts.items()):
            query = _entity(literal(concept), literal(concept), EntityKind.CONCEPT)
            queries.append(_filtered(query, _applied(tests, "")))
        return together(queries or [_entity(NULL.copy(), NULL.copy(), EntityKind.ROW).where(exp.false(), copy=False)])

    def count(self, node: Node) -> Query:
        """Return a query of how many entities there are."""
        rows = self.entities(node)
        total = literal(sum(not tests for tests in rows.concepts.values()))
        for tests in rows.concepts.values():
            if tests:
                size: exp.Expr = case([(both(_applied(tests, "")), literal(1))], literal(0))
                total = exp.Add(this=total, expression=size)
        for table_name, tests in rows.tests.items():
            alias = self._alias()
            query = select(exp.Count(this=exp.Star())).from_(self._rows(self.tables.tables[table_name], alias), copy=False)
            total = exp.Add(this=total, expression=exp.Subquery(this=_filtered(query, _applied(tests, alias))))
        return select(named(total, "count"))

    def any_of(self, facts: Sequence[Facts], test: Callable[[Part], Test] | None = None) -> Query:
        """Return a query that has a row if there is any statement."""
        queries = []
        for item in facts:
            alias = self._alias()
            further = [] if test is None else [test(item.part)]
            if _false in further:
                continue
            query = select(literal(1)).from_(self._rows(item.part.table, alias), copy=False)
            queries.append(_filtered(query, _applied([*item.tests, *further], alias)).limit(1, copy=False))
        if not queries:
            return select(literal(1)).where(exp.false(), copy=False)
        if len(queries) == 1:
            return queries[0]
        parts: list[Query] = [
            select(exp.Star()).from_(exp.Subquery(this=query, alias=exp.TableAlias(this=name(f"s{at}"))), copy=False)
            for at, query in enumerate(queries)
        ]
        return together(parts)

    def any_value(self, values: alg.Objects | alg.Qualifiers, test: Condition) -> Query:
        """Return a query that has a row if a test holds for any value."""
        key = values.key if isinstance(values, alg.Qualifiers) else None

        def value_test(part: Part) -> Test:
            return self._compare(part, test) if key is None else self._qualified(part, key, test)

        return self.any_of(self.facts(values.facts), value_test)

    def values(self, bag: Bag) -> tuple[Query, tuple[str, ...]]:
        """Return a query of the distinct values, and the columns that they need."""
        rows: list[tuple[Table, str, list[exp.Expr], dict[str, exp.Expr]]] = []
        for facts, item in self._values(bag):
            alias = self._alias()
            if isinstance(item, Column):
                tests = [*_applied(facts.tests, alias), self.tables.is_given(item, alias)]
                rows.append((facts.part.table, alias, tests, self.tables.cells_at(item, alias)))
                continue
            with_value = Facts(facts.part, [*facts.tests, self._has_value(facts.part.table, item)])
            target, is_referred = self.tables.tables[item.target], self._referred(with_value, item)
            label, kind = self.tables.label(target, alias), literal(int(EntityKind.ROW))
            cells = {"id": self.tables.id(target, alias), "name": label, "at": kind}
            rows.append((target, alias, [is_referred(alias)], cells))
        columns = tuple(key for key in VALUE if key != "tie" and any(key in cells for *_, cells in rows)) or ("kind",)
        queries: list[Query] = []
        for table, alias, tests, cells in rows:
            selected = [named(cast(cells.get(key, NULL).copy(), _VALUE[key]), key) for key in columns]
            query = select(*selected, distinct=True).from_(self._rows(table, alias), copy=False)
            queries.append(_filtered(query, tests))
        return together(queries or [select(cast(NULL.copy(), "text")).where(exp.false(), copy=False)], distinct=True), columns

    def cells(self, facts: Node) -> Query:
        """Return a query of the distinct objects: the predicate, whether it is an entity, its cell, and no raw text."""
        queries: list[Query] = [select(*(cast(NULL.copy(), kind) for kind in ("text", "int", *CELL.values(), "text")))]
        queries[0] = _filtered(queries[0], [exp.false()])  # type: ignore[arg-type]
        for item in self.facts(facts):
            cell = self.tables.cell(item.part.table, self.tables.ends(item.part)[1])
            is_entity = literal(int(item.part.item is None))
            columns = [literal(item.part.predicate), is_entity, *_cell(cell.parts), NULL.copy()]
            query = select(*columns, distinct=True).from_(self._rows(item.part.table, "t"), copy=False)
            queries.append(_filtered(query, _applied(item.tests, "t")))
        return together(queries)

    def tally(self, number: int, bag: Node) -> list[Query]:
        """Return queries of how many values of each type there are."""
        queries: list[Query] = []
        for facts, item in self._values(bag):
            alias = self._alias()
            kind = literal(int(Kind.ENTITY)) if isinstance(item, Reference) else self.tables.cells_at(item, alias)["kind"]
            unit = literal(NO_UNIT)
            kinds = select(named(cast(kind, "smallint"), "kind")).from_(self._rows(facts.part.table, alias), copy=False)
            kinds = _filtered(kinds, _applied(facts.tests, alias))
            query = select(literal(number), column("kind"), unit, exp.Count(this=exp.Star())).from_(_subquery(kinds), copy=False)
            queries.append(query.group_by(column("kind"), copy=False))
        return queries

    def names(self) -> Query:
        """Return a query of the name of every entity."""
        entities = alg.AllEntities((EntityKind.ENTITY, EntityKind.CONCEPT, EntityKind.ROW))
        return together(self._names_of(self.entities(entities)))

    # -- records -----------------------------------------------------------------------------------
    # One row has a whole statement: its name, its ends with their names, its value. The mark at the start of each row tells its
    # table, predicate and source (`Marks`).

    def gathered(self, parts: Numbered, members: Sequence[tuple[Node, Node]], most: int | None) -> Query:
        """Return a query of records: the results of operators, by number, and the memberships of entities."""
        records: list[Query] = []
        for number, node in parts:
            queries: list[Query] = []
            if isinstance(node, alg.Facts):
                for facts in self.facts(node):
                    queries += self._statements(number, facts, most)
            else:
                queries = self._records("e", self.entities(node), number)
            if most is not None and queries:
                queries = [_first(queries, most)]
            records += queries
        for entities, concepts in members:
            concept_tests, row_tests = self.entities(concepts).concepts, self.entities(entities).tests
            records += self._records("e", Rows({}, concept_tests))
            for concept in concept_tests:
                if concept in row_tests:
                    records += self._records("m", Rows({concept: [*row_tests[concept], *concept_tests[concept]]}))
        query = together(records or [_record("", None, {}).where(exp.false(), copy=False)])
        return query if most is None or not records else self._with_namesakes(query)

    def _statements(self, number: int, facts: Facts, most: int | None) -> list[Query]:
        part, tests = facts.part, _applied(facts.tests, "t")
        fact, subject, name_of_subject, cell = self.tables.statement(part)
        mark, table = self.tables.mark(part), self.tables.rows(part.table)
        # A statement of a column gets its name from its subject.
        fact_cell = {"f": fact} if part.table.relation is not None else {}
        query = _record(mark, number, {**fact_cell, "s": subject, "name": name_of_subject, "o": cell.end, **cell.parts})
        result: list[Query] = [_filtered(query.from_(table, copy=False), tests)]
        for at, (_, item) in enumerate(self.tables.qualifiers(part.table)):
            qualifier = self.tables.cell(part.table, item)
            query = _record(f"{mark}.q{at}", None, {"f": fact.copy(), "o": qualifier.end, **qualifier.parts})
            query = _filtered(query.from_(table.copy(), copy=False), [*(test.copy() for test in tests), qualifier.present])
            result.append(query if most is None else _first([query], most))
        return result

    def _records(self, sort: str, rows: Rows, number: int | None = None) -> list[Query]:
        result: list[Query] = []
        for table_name, tests in rows.tests.items():
            table = self.tables.tables[table_name]
            query = _record(
                f"{sort}{self.tables.number(table)}", number, {"s": self.tables.id(table), "name": self.tables.label(table)}
            )
            result.append(_filtered(query.from_(self.tables.rows(table), copy=False), _applied(tests, "t")))
        for table_name, tests in sorted(rows.concepts.items()):
            name_cell = literal(table_name)
            query = _record(f"c{self.tables.number(self.tables.tables[table_name])}", number, {"s": name_cell, "name": name_cell})
            result.append(_filtered(query, _applied(tests, "")))
        return result

    def _with_namesakes(self, records: Query) -> Query:
        """Return records, and the first and the last entity of each name in them."""
        hits, names = exp.Table(this=name("hits")), exp.Table(this=name("names"))
        name_query = together(
            [
                select(named(column(key), "name")).from_(hits.copy(), copy=False).where(known(column(test)), copy=False)
                for key, test in (("name", "s"), ("text", "o"))
            ]
        )
        branches: list[Query] = [select(exp.Star()).from_(hits.copy(), copy=False)]

        def is_in_names(label: exp.Expr) -> exp.Expr:
            return within(label, select(column("name")).from_(names.copy(), copy=False))

        for table in self.tables.of_rows:
            number = self.tables.number(table)
            for aggregate in (exp.Min, exp.Max):
                label = self.tables.label(table)
                query = _record(f"e{number}", None, {"s": aggregate(this=self.tables.id(table)), "name": label})
                query = query.from_(self.tables.rows(table), copy=False).where(is_in_names(label.copy()), copy=False)
                branches.append(query.group_by(label.copy(), copy=False))
            concept = literal(table.name)
            branches.append(
                _record(f"c{number}", None, {"s": concept, "name": concept}).where(is_in_names(concept.copy()), copy=False)
            )
        joined = together(branches)
        common_tables = [
            exp.CTE(this=part, alias=exp.TableAlias(this=name(alias))) for alias, part in (("hits", records), ("names", name_query))
        ]
        joined.set("with_", exp.With(expressions=common_tables))
        return joined


def _filtered(query: exp.Select, tests: Sequence[exp.Expr]) -> exp.Select:
    return query.where(*tests, copy=False) if tests else query


def _without(tests: dict[str, list[Test]], others: dict[str, list[Test]]) -> dict[str, list[Test]]:
    """Return the rows in `tests` that are not in `others`."""
    result = {table: own_tests for table, own_tests in tests.items() if table not in others}
    result |= {table: [*own_tests, _negated(others[table])] for table, own_tests in tests.items() if others.get(table)}
    return result


def _entity(ident: exp.Expr, label: exp.Expr, kind: EntityKind) -> exp.Select:
    cells = cast(ident, "text"), cast(label, "text"), cast(literal(int(kind)), "smallint"), cast(literal(0), "int")
    return select(*(named(cell, key) for cell, key in zip(cells, ("id", "name", "kind", "row"), strict=True)))


def _cell(cells: dict[str, exp.Expr]) -> list[exp.Expr]:
    return [named(cast(_read(cells, key), kind), key) for key, kind in CELL.items()]


def _read(cells: dict[str, exp.Expr], key: str) -> exp.Expr:
    """Return the part of a cell that clients read; the tie is only for the database."""
    return NULL.copy() if key == "tie" or key not in cells else cells[key].copy()


def _subquery(query: Query) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=name("r")))


#: The types of columns of values.
_VALUE: Final[dict[str, str]] = {**CELL, "id": "text", "name": "text", "at": "smallint", "row": "int"}
#: The columns of a record: its mark, the number of the operator it is a result of, and parts of a statement.
_RECORD: Final[dict[str, str]] = {"mark": "text", "of": "int", **dict.fromkeys(("f", "s", "name", "o"), "text"), **CELL}


def _record(mark: str, number: int | None, cells: dict[str, exp.Expr]) -> exp.Select:
    all_cells = {"mark": literal(mark), "of": literal(number), **cells}
    return select(*(named(cast(_read(all_cells, key), kind), key) for key, kind in _RECORD.items()))


def _first(records: Sequence[Query], most: int) -> exp.Select:
    """Return the first of some records."""
    query = select(exp.Star()).from_(_subquery(together(records)), copy=False)
    query = query.order_by(*(column(key) for key in ("mark", "f", "s")), copy=False).limit(most, copy=False)
    return select(exp.Star()).from_(_subquery(query), copy=False)


class Marks:
    """Tells what the records of some tables are, by the marks that they begin with."""

    def __init__(self, tables: NativeTables) -> None:
        self._by_mark: dict[str, tuple[str, int, Any]] = {}
        numbers = {table.name: table_number for table_number, table in enumerate(tables.tables.values())}
        for table in tables.tables.values():
            table_number = numbers[table.name]
            for sort in "ecm":
                self._by_mark[f"{sort}{table_number}"] = sort, table_number, table
            for part in tables.parts(table, None):
                start, item = tables.ends(part)
                ends = table_number if start is None else numbers[start.target], self._target(item, numbers)
                mark = tables.mark(part)
                self._by_mark[mark] = "s", table_number, (mark, part, ends)
                for at, (key, qualifier_item) in enumerate(tables.qualifiers(table)):
                    self._by_mark[f"{mark}.q{at}"] = "q", at, (key, self._target(qualifier_item, numbers))

    @staticmethod
    def _target(item: Column | Reference, numbers: dict[str, int]) -> int | None:
        return numbers[item.target] if isinstance(item, Reference) else None

    def records(self, rows: Sequence[Row], sources: Sequence[Source]) -> Records:
        """Return records as rows of the tables of a graph."""
        tables: dict[str, dict[Row, None]] = {table: {} for table in TAKEN}
        results: dict[int, set[Any]] = {}

        def entity(number: int, ident: str, label: str) -> None:
            tables["entity"][ident, ident, label, int(EntityKind.ROW), number, 0] = None

        for mark, unit, f, s, label, o, *cell in rows:
            kind, number, details = self._by_mark[mark]
            result = s
            if kind == "s":
                prefix, part, (start, end) = details
                result = f or f"{prefix} {s}"
                entity(start, s, label)
                if o is not None:
                    entity(end, o, cell[1])
                tables["statement"][result, s, part.predicate, o, *cell, None, None, None] = None
                tables["place"][result, 0, number, 0, None] = None
            elif kind == "q":
                key, end = details
                if o is not None:
                    entity(end, o, cell[1])
                tables["qualifier"][f, number, key, o, *cell] = None
            elif kind == "c":
                tables["entity"][s, s, s, int(EntityKind.CONCEPT), None, 0] = None
            else:
                entity(number, s, label)
                if kind == "m":
                    tables["membership"][s, details.name, number, 0] = None
            if unit is not None:
                results.setdefault(unit, set()).add(result)
        return Records(tables, results, sources, numbered=False)


#: The most query texts that are cached.
_MAX_CACHED: Final = 1_000


def _number_of(compiler: NativeCompiler, number: int, node: Node) -> exp.Select:
    """Return a number, and how many statements or entities an operator gives."""
    size = exp.Subquery(this=compiler.count(node)) if isinstance(node, alg.Entities) else compiler.size(compiler.facts(node))
    return select(literal(number), cast(size, "bigint"))


class NativePlans:
    """The queries of plans over an existing database. See `sql.plan.Plans`."""

    def __init__(self, tables: NativeTables, schema: StoredSchema, engine: Engine) -> None:
        self._tables, self.schema, self._text, self._quoted = tables, schema, engine.text, engine.quoted
        self._marks = Marks(tables)
        self._templates: dict[Hashable, tuple[Template, tuple[str, ...]]] = {}

    def clear(self) -> None:
        """Forget the query texts, since columns may now be read differently."""
        self._templates.clear()

    def entities(self, node: alg.Entities) -> str:
        """Return a query of the id, name, kind and number of each entity."""
        return self._filled("entities", [node], lambda to: to.of_entities(node))

    def count(self, node: alg.Entities) -> str:
        """Return a query of how many entities there are."""
        return self._filled("count", [node], lambda to: to.count(node))

    def some(self, facts: alg.Facts) -> str:
        """Return a query that has a row if there is a statement."""
        return self._filled("some", [facts], lambda to: to.any_of(to.facts(facts)))

    def some_value(self, bag: Bag, test: Condition) -> str:
        """Return a query that has a row if a test holds for some value."""
        return self._filled("some value", [bag, test], lambda to: to.any_value(bag, test))

    def values(self, bag: Bag) -> tuple[str, tuple[str, ...]]:
        """Return a query of the distinct values, and its columns."""
        return self._filled_with("values", [bag], lambda to: to.values(bag))

    def cells(self, facts: alg.Facts) -> str:
        """Return a query of the distinct objects."""
        return self._filled("cells", [facts], lambda to: to.cells(facts))

    def gathered(self, parts: Numbered, members: Sequence[tuple[Node, Node]] = (), most: int | None = None) -> str:
        """Return a query of the results of some operators, as records."""
        numbers, nodes = tuple(number for number, _ in parts), [node for _, node in parts]
        operators = [*nodes, *(node for pair in members for node in pair)]
        return self._filled(("gathered", numbers, most), operators, lambda to: to.gathered(parts, members, most))

    def records(self, rows: Sequence[Row], sources: Sequence[Source]) -> Records:
        """Return the records that a query gave."""
        return self._marks.records(rows, sources)

    def counts(self, parts: Numbered) -> str:
        """Return a query of how many statements or entities each operator gives."""
        return self._filled(
            ("counts", tuple(number for number, _ in parts)),
            [node for _, node in parts],
            lambda to: together([_number_of(to, number, node) for number, node in parts]),
        )

    def sizes(self, parts: Numbered, most: int) -> str:
        """Return a query of how many statements or entities each operator gives, with the first entities' names."""

        def build(compiler: NativeCompiler) -> Query:
            branches: list[Query] = []
            for number, node in parts:
                branches.append(_number_of(compiler, number, node).select(cast(NULL.copy(), "text"), copy=False))
                if not isinstance(node, alg.Entities):
                    continue
                order = [self._tables.cells.by_bytes(column(part)) for part in ("name", "id")]
                names = select(column("name")).from_(_subquery(compiler.of_entities(node)), copy=False)
                first_names = _subquery(names.order_by(*order, copy=False).limit(most, copy=False))
                branches.append(select(literal(number), cast(NULL.copy(), "bigint"), column("name")).from_(first_names, copy=False))
            return together(branches)

        return self._filled(("sizes", most, tuple(number for number, _ in parts)), [node for _, node in parts], build)

    def tallies(self, parts: Numbered) -> str:
        """Return a query of how many values of each type each bag has."""

        def build(compiler: NativeCompiler) -> Query:
            none = select(literal(0), literal(0), literal(""), literal(0)).where(exp.false(), copy=False)
            return together([query for number, bag in parts for query in compiler.tally(number, bag)] or [none])

        return self._filled(("tallies", tuple(number for number, _ in parts)), [node for _, node in parts], build)

    def names_near(self, text: str, most: int, *, below: bool) -> str:
        """Return a query of the first names from a text upward, or the last ones below it."""
        ordered_name = self._tables.cells.by_bytes(column("name"))
        names = NativeCompiler(self._tables, Shape([], self._tables)).names()
        all_names = exp.Subquery(this=names, alias=exp.TableAlias(this=name("r"), columns=[name("name")]))
        test = (exp.LT if below else exp.GTE)(this=ordered_name, expression=literal(text))
        query = select(column("name"), distinct=True).from_(all_names, copy=False).where(test, copy=False)
        distinct = select(exp.Star()).from_(_subquery(query), copy=False)
        return self._text(distinct.order_by(exp.Ordered(this=ordered_name.copy(), desc=below), copy=False).limit(most, copy=False))

    def _filled(self, sort: Hashable, nodes: Sequence[Any], build: Callable[[NativeCompiler], Query]) -> str:
        return self._filled_with(sort, nodes, lambda to: (build(to), ()))[0]

    def _filled_with(
        self, sort: Hashable, nodes: Sequence[Any], build: Callable[[NativeCompiler], tuple[Query, tuple[str, ...]]]
    ) -> tuple[str, tuple[str, ...]]:
        shape = Shape(nodes, self._tables)
        key = sort, shape.key
        if key not in self._templates:
            if len(self._templates) >= _MAX_CACHED:
                self._templates.clear()
            compiler = NativeCompiler(self._tables, shape)
            query, columns = build(compiler)
            self._templates[key] = Template(compiler.mark, self._text(query)), columns
        template, columns = self._templates[key]
        return template.filled(shape.constants, self._quoted), columns
