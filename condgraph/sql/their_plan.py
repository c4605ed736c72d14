"""Plans over tables of others as SQL over these tables themselves: a set of entities is a test of the rows of each table
that it may have rows of, so that a query names no other table, and compares keys and columns as they are.

Texts of queries are cached by the shape of a plan, which leaves out names and values.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, TypeAlias, TypeGuard

from sqlglot import exp

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, Kind, Quantity, Time, as_float, civil
from condgraph.sql.catalogue import Column, Reference, Table, ends_of
from condgraph.sql.compiler import reach_of
from condgraph.sql.conditions import compared, supports
from condgraph.sql.plan import Compiled, gathers, native, wanted
from condgraph.sql.tables import CELL, NAMED
from condgraph.sql.terms import (
    NULL,
    Query,
    both,
    cast,
    check_text,
    coalesce,
    column,
    either,
    known,
    literal,
    name,
    named,
    select,
    together,
    within,
)
from condgraph.sql.theirs import Part, TheirTables

#: A test of a row of a table, which goes by this alias.
Test: TypeAlias = Callable[[str], exp.Expr]

#: The first and the last second that a date of a database may have, as literals are written.
_FIRST, _LAST = (days * DAY_SECONDS for days in (-719_162, 2_932_896))
_LARGEST: Final = 2**53
#: Numbers that a literal of 64 bits surely holds.
_LONGEST: Final = 2**62


class Elsewhere(Exception):
    """A plan that is not compiled here, but over the graph's tables (`sql.compiler`)."""


# -- Shapes ------------------------------------------------------------------------------------------


class Shape:
    """A plan without its names and values: `key` is equal for plans that have the same query but for these, which are
    `constants`, in their order.
    """

    def __init__(self, nodes: Sequence[Any], tables: TheirTables) -> None:
        self.constants: list[Any] = []
        self._tables = tables
        self._first: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self.key: Hashable = tuple(map(self._of, nodes))

    def at(self, node: Any, number: int = 0) -> int:
        """Where the constant of an operator or a test is."""
        return self._first[id(node)] + number

    def _of(self, value: Any) -> Hashable:
        if isinstance(value, tuple):
            return tuple(map(self._of, value))
        if not is_dataclass(value):
            if value is None or isinstance(value, str | int):
                return value
            raise Elsewhere
        if id(value) in self._seen:
            return self._seen[id(value)]
        self._seen[id(value)] = len(self._seen)
        own: Hashable
        if isinstance(value, alg.ByName | alg.ById):
            texts = value.names if isinstance(value, alg.ByName) else value.ids
            own = tuple(map(self._named, texts))
            self._add(value, texts)
        elif isinstance(value, alg.Compare):
            own = value.operator, self._constant(value)
        else:
            own = tuple(self._of(getattr(value, item.name)) for item in fields(value))
        return type(value), own

    def _named(self, text: str) -> Hashable:
        check_text(text)
        rests = ((table.name, meets(table, text)) for table in self._tables.of_rows)
        return tuple((table, rest == "") for table, rest in rests if rest is not None)

    def _constant(self, test: alg.Compare) -> Hashable:
        value = test.value
        if isinstance(value, str):
            check_text(value)
            self._add(test, [value])
            return "text"
        if isinstance(value, Quantity):
            number, exact = as_float(value)
            if not exact or not abs(number) < _LONGEST:
                raise Elsewhere
            self._add(test, [number])
            return "number", value.unit == NO_UNIT, number.is_integer(), abs(number) < _LARGEST, abs(number) < 1e15
        if not isinstance(value, Time):
            raise Elsewhere
        self._add(test, [value.start, value.end])
        return "time", *(_FIRST <= second < _LAST for second in (value.start, value.end))

    def _add(self, node: Any, constants: Iterable[Any]) -> None:
        self._first[id(node)] = len(self.constants)
        self.constants += constants


def meets(table: Table, text: str) -> str | None:
    """What a text that may be the id of a row has after the name of its table; the empty text for that of the concept."""
    if text == table.name:
        return ""
    rest = text.removeprefix(f"{table.name}/")
    if rest == text or not rest:
        return None
    if len(table.key) == 1 and table.column(table.key[0]).whole and not re.fullmatch(r"0|-?[1-9][0-9]{0,17}", rest):
        return None
    return rest


class Template:
    """The text of a query with places for constants."""

    def __init__(self, mark: str, text: str) -> None:
        parts = re.split(f"{mark}([0-9]+):([a-z]+):([0-9]+);", text)
        self._texts = parts[::4]
        self._holes = list(zip(map(int, parts[1::4]), parts[2::4], map(int, parts[3::4]), strict=True))

    def filled(self, constants: Sequence[Any]) -> str:
        """The text with these."""
        pieces = [self._texts[0]]
        for (at, form, cut), after in zip(self._holes, self._texts[1:], strict=True):
            pieces += (_FORMS[form](constants[at], cut), after)
        return "".join(pieces)


def _moment(second: int, cut: int) -> str:
    days, rest = divmod(second, DAY_SECONDS)
    year, month, day = civil(days)
    return f"{year:04d}-{month:02d}-{day:02d} {rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"


def _day(second: int, up: int) -> str:
    return _moment((second + (DAY_SECONDS - 1) * up) // DAY_SECONDS * DAY_SECONDS, 0)[:-9]


#: How constants are written: all but numbers within quotes.
_FORMS: Final[dict[str, Callable[[Any, int], str]]] = {
    "text": lambda text, cut: text[cut:].replace("'", "''"),
    "whole": lambda number, cut: str(int(number[cut:] if isinstance(number, str) else number)),
    "number": lambda number, cut: repr(float(number)),
    "second": lambda second, cut: str(second),
    "moment": _moment,
    "day": _day,
}


# -- Sets and statements -----------------------------------------------------------------------------


@dataclass(slots=True)
class Rows:
    """Entities: of each table the rows for which tests hold, all where there is none, and concepts."""

    tests: dict[str, list[Test]]
    concepts: frozenset[str] = frozenset()


@dataclass(slots=True)
class Facts:
    """Statements of a part for which tests hold, of rows of its table."""

    part: Part
    tests: list[Test]


def _true(alias: str) -> exp.Expr:
    return exp.true()


def _false(alias: str) -> exp.Expr:
    return exp.false()


def _held(tests: Sequence[Test], alias: str) -> list[exp.Expr]:
    return [test(alias) for test in tests]


def _no(tests: Sequence[Test]) -> Test:
    return lambda alias: exp.not_(coalesce(exp.Paren(this=both(_held(tests, alias))), exp.false()))


def _both(first: Test, second: Test) -> Test:
    return lambda alias: both([first(alias), second(alias)])


def _some(every: Sequence[Sequence[Test]]) -> list[Test]:
    """A test for any of some alternatives."""
    if len(every) == 1:
        return list(every[0])
    if not all(every):
        return []
    return [lambda alias: exp.Paren(this=either(both(_held(tests, alias)) for tests in every))]


class TheirCompiler:
    """The queries of one shape of plans."""

    def __init__(self, tables: TheirTables, shape: Shape) -> None:
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
        """The entities of an operator."""
        if id(node) not in self._sets:
            self._sets[id(node)] = self._entities(node)
        return self._sets[id(node)]

    def _entities(self, node: Node) -> Rows:
        rows = self.tables.of_rows
        if isinstance(node, alg.AllEntities):
            if node.source is not None:
                raise Elsewhere
            concepts = (table.name for table in rows if EntityKind.CONCEPT in node.kinds)
            return Rows({table.name: [] for table in rows} if EntityKind.ROW in node.kinds else {}, frozenset(concepts))
        if isinstance(node, alg.ById | alg.ByName):
            return self._named(node)
        if isinstance(node, alg.Members):
            return Rows({concept: [] for concept in sorted(self.entities(node.concepts).concepts)})
        if isinstance(node, alg.Union | alg.Intersect):
            return self._joined([self.entities(part) for part in node.parts], every=isinstance(node, alg.Intersect))
        if isinstance(node, alg.Minus):
            left, right = self.entities(node.left), self.entities(node.right)
            tests = {}
            for table, own in left.tests.items():
                if table not in right.tests:
                    tests[table] = own
                elif right.tests[table]:
                    tests[table] = [*own, _no(right.tests[table])]
            return Rows(tests, left.concepts - right.concepts)
        if isinstance(node, alg.SubjectsOf):
            if isinstance(node.values, alg.Names):
                return self.entities(node.values.entities)
            if isinstance(node.values, alg.Objects):
                return self._ends(self.facts(node.values.facts), "subject")
        if isinstance(node, alg.Reached):
            return self._ends(self.facts(node.facts), reach_of(node.facts))
        if isinstance(node, alg.ArgExtreme):
            return self._best(node)
        raise Elsewhere

    def _best(self, node: alg.ArgExtreme) -> Rows:
        """The entities with the best value of a key, all ties: of numbers or of times, whichever are more, times of as many."""
        groups: dict[Kind, list[Facts]] = {Kind.QUANTITY: [], Kind.TIME: []}
        for facts in self._scan(alg.Scan(node.of, (node.key,), family="attribute")):
            item = facts.part.item
            if item is not None and item.kind in groups:
                groups[item.kind].append(Facts(facts.part, [*facts.tests, self._finite(item)]))
        down = node.direction == "largest"
        alternatives: dict[str, list[list[Test]]] = {}
        for kind, every in groups.items():
            others = groups[Kind.TIME if kind is Kind.QUANTITY else Kind.QUANTITY]
            more = [self._outnumber(every, others, exp.GT if kind is Kind.QUANTITY else exp.GTE)] if others and every else []
            part = "number" if kind is Kind.QUANTITY else "stop" if down else "start"
            for facts in every:
                own = self._is_best(facts, part, every, exp.Max if down else exp.Min)
                alternatives.setdefault(facts.part.table.name, []).append([*facts.tests, own, *more])
        return Rows({table: _some(tests) for table, tests in alternatives.items()})

    def _outnumber(self, every: Sequence[Facts], others: Sequence[Facts], sort: type[exp.Binary]) -> Test:
        return lambda alias: sort(this=self.size(every), expression=self.size(others))

    def _finite(self, item: Column) -> Test:
        def test(alias: str) -> exp.Expr:
            own = self.tables.cells.is_finite(item, column(item.real, alias))
            return exp.true() if own is None else own

        return test

    def _is_best(self, facts: Facts, part: str, every: Sequence[Facts], best: type[exp.AggFunc]) -> Test:
        def test(alias: str) -> exp.Expr:
            queries: list[Query] = []
            for item in every:
                inner = self._alias()
                query = select(named(self._part(item, part, inner), "v")).from_(self._rows(item.part.table, inner), copy=False)
                queries.append(_filtered(query, _held(item.tests, inner)))
            first = select(best(this=column("v"))).from_(_subquery(together(queries)), copy=False)
            return exp.EQ(this=self._part(facts, part, alias), expression=exp.Subquery(this=first))

        return test

    def _part(self, facts: Facts, part: str, alias: str) -> exp.Expr:
        assert facts.part.item is not None
        return self.tables.cells_at(facts.part.item, alias)[part]

    def size(self, every: Sequence[Facts]) -> exp.Expr:
        """How many statements there are."""
        total: exp.Expr = literal(0)
        for facts in every:
            alias = self._alias()
            query = select(exp.Count(this=exp.Star())).from_(self._rows(facts.part.table, alias), copy=False)
            total = exp.Add(this=total, expression=exp.Subquery(this=_filtered(query, _held(facts.tests, alias))))
        return exp.Paren(this=total)

    def _joined(self, parts: list[Rows], *, every: bool) -> Rows:
        tests: dict[str, list[Test]] = {}
        for table in dict.fromkeys(table for part in parts for table in part.tests):
            own = [part.tests[table] for part in parts if table in part.tests]
            if not every:
                tests[table] = _some(own)
            elif len(own) == len(parts):
                tests[table] = [test for some in own for test in some]
        concepts = [part.concepts for part in parts] or [frozenset[str]()]
        return Rows(tests, frozenset.intersection(*concepts) if every else frozenset.union(*concepts))

    def _named(self, node: alg.ById | alg.ByName) -> Rows:
        by_name = isinstance(node, alg.ByName)
        texts = node.names if isinstance(node, alg.ByName) else node.ids
        tests: dict[str, list[Test]] = {}
        concepts = set()
        for table in self.tables.of_rows:
            alternatives: list[list[Test]] = []
            for number, text in enumerate(texts):
                at, rest = self.shape.at(node, number), meets(table, text)
                if by_name and table.label is not None:
                    alternatives.append([self._labelled(table, table.label, at)])
                if rest == "":
                    concepts.add(table.name)
                elif rest is not None:
                    own = [self._with_id(table, at, text)]
                    if by_name and table.label is not None:
                        own.append(self._without_label(table, table.label))
                    alternatives.append(own)
            if alternatives:
                tests[table.name] = _some(alternatives)
        return Rows(tests, frozenset(concepts))

    def _labelled(self, table: Table, label: str, at: int) -> Test:
        def test(alias: str) -> exp.Expr:
            own = self.tables.own(table.column(label), alias)
            text = self._text(at)
            # A text of blanks alone is no name.
            given = exp.NEQ(this=exp.Trim(this=text.copy()), expression=literal(""))
            return both([exp.EQ(this=own, expression=text), given])

        return test

    def _without_label(self, table: Table, label: str) -> Test:
        def test(alias: str) -> exp.Expr:
            own = self.tables.own(table.column(label), alias)
            return exp.EQ(this=exp.Trim(this=coalesce(own, literal(""))), expression=literal(""))

        return test

    def _with_id(self, table: Table, at: int, text: str) -> Test:
        cut = len(table.name) + 1
        if len(table.key) == 1:
            key = table.column(table.key[0])
            if key.whole:
                return lambda alias: exp.EQ(this=column(key.real, alias), expression=self._number(at, "whole", cut))
            if key.sort == "text":
                return lambda alias: exp.EQ(this=self.tables.own(key, alias), expression=self._text(at, cut))
        return lambda alias: exp.EQ(this=self.tables.id(table, alias), expression=self._text(at))

    # -- references --------------------------------------------------------------------------------

    def _rows(self, table: Table, alias: str) -> exp.Expr:
        """The rows of a table, where nobody needs their numbers."""
        return self.tables.rows(table, alias)

    def _pairs(self, table: Table, reference: Reference) -> list[tuple[Column, Column]]:
        other = self.tables.tables[reference.target]
        return [(table.column(mine), other.column(its)) for mine, its in zip(reference.columns, reference.others, strict=True)]

    def _meeting(self, pairs: Sequence[tuple[Column, Column]], outer: str, of: Table, tests: Sequence[Test]) -> exp.Expr:
        """Whether a row of a table has, in the second columns of pairs, what the row `outer` has in the first."""
        inner = self._alias()
        some = select().from_(self._rows(of, inner), copy=False)
        where = _held(tests, inner)
        if len(pairs) == 1:
            ((mine, its),) = pairs
            query = some.select(self.tables.own(its, inner), copy=False)
            return within(self.tables.own(mine, outer), query.where(*where, copy=False) if where else query)
        same = [exp.EQ(this=self.tables.own(its, inner), expression=self.tables.own(mine, outer)) for mine, its in pairs]
        return exp.Exists(this=some.select(literal(1), copy=False).where(*same, *where, copy=False))

    def _refers(self, table: Table, reference: Reference, to: Rows | None) -> Test:
        """Whether a row refers to a row of a set, or to any."""
        other, pairs = self.tables.tables[reference.target], self._pairs(table, reference)
        if to is not None and other.name not in to.tests:
            return _false
        tests = [] if to is None else to.tests[other.name]
        if tests or not (reference.certain and other.certain):
            return lambda alias: self._meeting(pairs, alias, other, tests)
        return lambda alias: both(known(self.tables.own(mine, alias)) for mine, _ in pairs)

    def _referred(self, facts: Facts, reference: Reference) -> Test:
        """Whether some statement has a row at the end that a reference leads to."""
        pairs = [(its, mine) for mine, its in self._pairs(facts.part.table, reference)]
        return lambda alias: self._meeting(pairs, alias, facts.part.table, facts.tests)

    def _ends(self, every: Sequence[Facts], end: str) -> Rows:
        alternatives: dict[str, list[list[Test]]] = {}
        for facts in every:
            reference = self._reference(facts.part, end)
            if reference is not None:
                alternatives.setdefault(reference.target, []).append([self._referred(facts, reference)])
            elif end == "subject":
                alternatives.setdefault(facts.part.table.name, []).append(facts.tests)
        return Rows({table: _some(tests) for table, tests in alternatives.items()})

    @staticmethod
    def _reference(part: Part, end: str) -> Reference | None:
        """What leads to an end of statements: nothing to the row itself, and to a value."""
        if part.table.relation is not None:
            return ends_of(part.table)[0 if end == "subject" else 1]
        return part.reference if end == "object" else None

    # -- statements --------------------------------------------------------------------------------

    def facts(self, node: Node) -> list[Facts]:
        """The statements of an operator."""
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
            # No statement here has a validity.
            return self.facts(node.facts) if node.relation in ("may", "must") else []
        if isinstance(node, alg.WhereValidity):
            return []
        raise Elsewhere

    def _filtered(self, facts: Node, test: Callable[[Part], Test]) -> list[Facts]:
        result = []
        for item in self.facts(facts):
            own = test(item.part)
            if own is not _false:
                result.append(Facts(item.part, [*item.tests, own]))
        return result

    def _scan(self, node: alg.Scan) -> list[Facts]:
        if node.source is not None:
            raise Elsewhere
        relations = node.family != "attribute"
        attributes = node.family != "relation" and node.anchor == "subject" and (node.family == "any" or node.reach == "subject")
        of = None if node.of is None else self.entities(node.of)
        result = []
        for table in self.tables.tables.values():
            for part in self.tables.parts(table, node.predicates):
                if not (attributes if part.item is not None else relations):
                    continue
                tests = self._there(part)
                if of is not None:
                    reference = self._reference(part, node.anchor)
                    if reference is not None:
                        own = self._refers(table, reference, of)
                        if own is _false:
                            continue
                        tests.append(own)
                    elif table.name not in of.tests:
                        continue
                    else:
                        tests += of.tests[table.name]
                result.append(Facts(part, tests))
        return result

    def _there(self, part: Part) -> list[Test]:
        item = part.item
        if item is not None:
            return [lambda alias: self.tables.is_given(item, alias)]
        if part.reference is not None:
            return [self._refers(part.table, part.reference, None)]
        return [self._refers(part.table, reference, None) for reference in ends_of(part.table)[:2]]

    # -- tests -------------------------------------------------------------------------------------

    def _compare(self, part: Part, test: Condition) -> Test:
        """A test of the objects of a part."""
        reference = self._reference(part, "object")
        if reference is not None:
            return self._of_entity(part.table, reference, test)
        assert part.item is not None
        return self._of_value(part.item, test)

    def _qualified(self, part: Part, key: str, test: Condition) -> Test:
        if part.table.relation is None:
            return _false
        item = next((item for item in part.table.values if item.predicate == key), None)
        if item is not None:
            own = self._of_value(item, test)
            return own if own is _false else _both(lambda alias: self.tables.is_given(item, alias), own)
        reference = next((item for item in ends_of(part.table)[2:] if item.columns[0] == key), None)
        if reference is None:
            return _false
        own = self._of_entity(part.table, reference, test)
        return own if own is _false else _both(self._refers(part.table, reference, None), own)

    def _composed(self, test: Condition, each: Callable[[Condition], Test]) -> Test:
        if isinstance(test, alg.Not):
            own = each(test.condition)
            return _true if own is _false else _no([own])
        if isinstance(test, alg.AnyOf):
            some = [own for own in map(each, test.conditions) if own is not _false]
            return (lambda alias: exp.Paren(this=either(own(alias) for own in some))) if some else _false
        if isinstance(test, alg.AllOf):
            every = list(map(each, test.conditions))
            return _false if _false in every else lambda alias: both(own(alias) for own in every)
        raise Elsewhere

    def _of_entity(self, table: Table, reference: Reference, test: Condition) -> Test:
        if isinstance(test, alg.Among):
            return self._refers(table, reference, self.entities(test.entities))
        if not isinstance(test, alg.Compare):
            return self._composed(test, lambda part: self._of_entity(table, reference, part))
        if not isinstance(test.value, str):
            return _false
        other, at = self.tables.tables[reference.target], self.shape.at(test)

        def called(alias: str) -> exp.Expr:
            label = self.tables.label(other, alias)
            return compared(test.operator, self._in_order(test.operator, label), self._text(at))

        return self._refers(table, reference, Rows({other.name: [called]}))

    def _in_order(self, operator: str, text: exp.Expr) -> exp.Expr:
        return text if operator in ("=", "!=") else self.tables.by_bytes(text)

    def _of_value(self, item: Column, test: Condition) -> Test:
        if isinstance(test, alg.Among):
            return _false
        if not isinstance(test, alg.Compare):
            return self._composed(test, lambda part: self._of_value(item, part))
        at, operator, value = self.shape.at(test), test.operator, test.value
        finite = self.tables.cells.is_finite(item, column(item.real, "t"))

        def where_finite(alias: str, own: exp.Expr) -> exp.Expr:
            test = self.tables.cells.is_finite(item, column(item.real, alias))
            return own if test is None else both([test, own])

        if isinstance(value, str):
            if item.kind is Kind.TEXT:
                return lambda alias: compared(
                    operator, self._in_order(operator, self.tables.cells.text(item, column(item.real, alias))), self._text(at)
                )
            if finite is None:
                return _false

            def infinite(alias: str) -> exp.Expr:
                test = self.tables.cells.is_finite(item, column(item.real, alias))
                assert test is not None
                text = self._in_order(operator, cast(column(item.real, alias), "text"))
                return both([exp.not_(exp.Paren(this=test)), compared(operator, text, self._text(at))])

            return infinite
        if isinstance(value, Quantity):
            if item.kind is not Kind.QUANTITY or value.unit != NO_UNIT:
                return _false
            return lambda alias: where_finite(alias, self._of_number(item, operator, as_float(value)[0], at, alias))
        assert isinstance(value, Time)
        if item.kind is not Kind.TIME:
            return _false
        return lambda alias: where_finite(alias, exp.Paren(this=self._of_time(item, operator, value, at, alias)))

    def _of_number(self, item: Column, operator: str, number: float, at: int, alias: str) -> exp.Expr:
        short = item.sort == "decimal" and item.digits is not None and item.digits[0] <= 15 and abs(number) < _LARGEST
        if number.is_integer() and (item.whole or short):
            return compared(operator, column(item.real, alias), self._number(at, "whole"))
        double = cast(exp.Literal.string(self._hole(at, "number")), "double")
        return compared(operator, self.tables.cells.number(item, column(item.real, alias)), double)

    def _of_time(self, item: Column, operator: str, value: Time, at: int, alias: str) -> exp.Expr:
        """Intervals of a day or a second compare with an interval as in `sql.conditions`."""

        def begins(second: int, place: int) -> exp.Expr:
            """Whether it begins at a second or later."""
            return self._moment(item, exp.GTE, second, place, alias, up=True)

        def ends(second: int, place: int) -> exp.Expr:
            """Whether it ends at a second or before: of a date, whether it is before the day of that second."""
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
        if not _FIRST <= second < _LAST:
            bound = cast(exp.Literal.string(self._hole(at, "second")), "bigint")
            start = cast(exp.Floor(this=self.tables.cells.seconds(cell)), "bigint")
            if sort is exp.GTE:
                return exp.GTE(this=start, expression=bound)
            length = DAY_SECONDS if item.sort == "date" else 1
            return exp.LTE(this=exp.Add(this=start, expression=literal(length)), expression=bound)
        if item.sort == "date":
            kind, text = "date", self._hole(at, "day", int(up))
        else:
            zoned = item.type.upper() in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ")
            kind, text = ("timestamptz" if zoned else "timestamp"), self._hole(at, "moment") + ("+00" if zoned else "")
        return sort(this=cell, expression=exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(kind)))

    # -- queries -----------------------------------------------------------------------------------

    def of_entities(self, node: Node) -> Query:
        """The id, name, kind and number of each entity."""
        return together([*self._described(self.entities(node)), *map(self._concept, sorted(self.entities(node).concepts))] or [
            _entity(*(NULL.copy(),) * 2, EntityKind.ROW).where(exp.false(), copy=False)
        ])  # fmt: skip

    def _concept(self, concept: str) -> exp.Select:
        return _entity(literal(concept), literal(concept), EntityKind.CONCEPT)

    def _described(self, rows: Rows, *before: exp.Expr) -> list[exp.Select]:
        result = []
        for called, tests in rows.tests.items():
            alias, table = self._alias(), self.tables.tables[called]
            query = _entity(self.tables.id(table, alias), self.tables.label(table, alias), EntityKind.ROW)
            if before:
                cells = {"kind": literal(int(Kind.ENTITY)), "text": self.tables.label(table, alias)}
                query.set("expressions", [*_cell(cells), *query.expressions])
            query = query.from_(self.tables.rows(table, alias), copy=False)
            result.append(_filtered(query, _held(tests, alias)))
        return result

    def count(self, node: Node) -> Query:
        """How many entities there are."""
        rows = self.entities(node)
        sizes: list[exp.Expr] = []
        for called, tests in rows.tests.items():
            alias = self._alias()
            query = select(exp.Count(this=exp.Star())).from_(self._rows(self.tables.tables[called], alias), copy=False)
            sizes.append(exp.Subquery(this=_filtered(query, _held(tests, alias))))
        total = literal(len(rows.concepts))
        for size in sizes:
            total = exp.Add(this=total, expression=size)
        return select(named(total, "count"))

    def any_of(self, facts: Sequence[Facts], test: Callable[[Part], Test] | None = None) -> Query:
        """A row where there is some statement."""
        queries = []
        for item in facts:
            alias = self._alias()
            own = [] if test is None else [test(item.part)]
            if _false in own:
                continue
            query = select(literal(1)).from_(self._rows(item.part.table, alias), copy=False)
            queries.append(_filtered(query, _held([*item.tests, *own], alias)).limit(1, copy=False))
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
        """A row where a test holds for some value."""
        key = values.key if isinstance(values, alg.Qualifiers) else None

        def of(part: Part) -> Test:
            return self._compare(part, test) if key is None else self._qualified(part, key, test)

        return self.any_of(self.facts(values.facts), of)

    def values(self, node: alg.Objects | alg.Qualifiers) -> Query:
        """Each value once: its cell, and the entity that it is."""
        facts = self.facts(node.facts)
        queries: list[Query] = []
        for item in facts:
            if isinstance(node, alg.Objects):
                reference = self._reference(item.part, "object")
                columns = [] if item.part.item is None else [item.part.item]
                references = [] if reference is None else [reference]
            else:
                if item.part.table.relation is None:
                    continue
                columns = [of for of in item.part.table.values if of.predicate == node.key]
                references = [of for of in ends_of(item.part.table)[2:] if of.columns[0] == node.key]
            for of in columns:
                alias = self._alias()
                cells = self.tables.cells_at(of, alias)
                nothing = [cast(NULL.copy(), kind) for kind in ("text", "text", "smallint", "int")]
                query = select(*_cell(cells), *nothing, distinct=True).from_(self._rows(item.part.table, alias), copy=False)
                queries.append(_filtered(query, [*_held(item.tests, alias), self.tables.is_given(of, alias)]))
            for to in references:
                given = Facts(item.part, [*item.tests, self._refers(item.part.table, to, None)])
                queries += self._described(Rows({to.target: [self._referred(given, to)]}), NULL)
        if not queries:
            kinds = [*CELL.values(), "text", "text", "smallint", "int"]
            return select(*(cast(NULL.copy(), kind) for kind in kinds)).where(exp.false(), copy=False)
        return together(queries, distinct=True)

    def gathered(self, parts: Sequence[tuple[int, Node]], members: Sequence[tuple[Node, Node]] = ()) -> Query:
        """Records of the results of operators, by number (`sql.plan.gathering`), and of the memberships of entities."""
        records: list[Query] = []
        for number, node in parts:
            if isinstance(node, alg.Facts):
                for facts in self.facts(node):
                    records += self._records_of(number, facts)
                continue
            records += self._entity_records(self.entities(node), number)
        for entities, concepts in members:
            rows, above = self.entities(entities), self.entities(concepts).concepts
            for called in sorted(above):
                table = self.tables.tables[called]
                records.append(_as_records("entity", self.tables.concept(table)))
                if called in rows.tests:
                    some = _filtered(self.tables.membership(table), _held(rows.tests[called], "t"))
                    records.append(_as_records("membership", some))
                    records.append(_as_records("entity", _filtered(self.tables.entities(table), _held(rows.tests[called], "t"))))
        if not records:
            records.append(
                select(literal("hit"), *(cast(NULL.copy(), kind) for kind in NAMED.types)).where(exp.false(), copy=False)
            )
        return together(records)

    def _entity_records(self, rows: Rows, number: int | None = None) -> list[Query]:
        queries = [
            _filtered(self.tables.entities(self.tables.tables[called]), _held(tests, "t")) for called, tests in rows.tests.items()
        ]
        queries += [self.tables.concept(self.tables.tables[called]) for called in sorted(rows.concepts)]
        result: list[Query] = [_as_records("entity", query) for query in queries]
        if number is not None:
            result += [_hits(number, query.copy(), "e") for query in queries]
        return result

    def _records_of(self, number: int, facts: Facts) -> list[Query]:
        part, tests = facts.part, facts.tests
        result: list[Query] = []
        for sort in ("statement", "qualifier", "place"):
            for query in self.tables.rows_of(part, sort):
                own = _filtered(query, _held(tests, "t"))
                result.append(_as_records(sort, own))
                if sort == "statement":
                    result.append(_hits(number, own.copy(), "f"))
        if part.table.relation is None:
            result += self._entity_records(Rows({part.table.name: tests}))
        references = ends_of(part.table) if part.table.relation is not None else [part.reference] if part.reference else []
        for reference in references:
            given = Facts(part, [*tests, self._refers(part.table, reference, None)])
            result += self._entity_records(Rows({reference.target: [self._referred(given, reference)]}))
        return result


def _filtered(query: exp.Select, tests: Sequence[exp.Expr]) -> exp.Select:
    return query.where(*tests, copy=False) if tests else query


def _entity(ident: exp.Expr, label: exp.Expr, kind: EntityKind) -> exp.Select:
    cells = cast(ident, "text"), cast(label, "text"), cast(literal(int(kind)), "smallint"), cast(literal(0), "int")
    return select(*(named(cell, key) for cell, key in zip(cells, ("id", "name", "kind", "row"), strict=True)))


def _cell(cells: dict[str, exp.Expr]) -> list[exp.Expr]:
    return [named(cast(cells.get(key, NULL).copy(), kind), key) for key, kind in CELL.items()]


def _subquery(query: Query) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=name("r")))


def _as_records(table: str, query: Query) -> exp.Select:
    return NAMED.of(table, _subquery(query))


def _hits(number: int, query: Query, key: str) -> exp.Select:
    # The columns of a hit are its number, a statement, an entity.
    cells = [cast(literal(number), "text"), *(column(key) if key == part else cast(NULL.copy(), "text") for part in "fe")]
    rest = [cast(NULL.copy(), kind) for kind in NAMED.types[3:]]
    return select(named(literal("hit"), "sort"), *cells, *rest).from_(_subquery(query), copy=False)


#: Texts of queries that are cached.
_MOST_CACHED: Final = 1_000


class TheirPlans:
    """The queries of plans over tables of others; `text` prints one."""

    def __init__(self, tables: TheirTables, text: Callable[[exp.Expr], str]) -> None:
        self._tables, self._text = tables, text
        self._templates: dict[Hashable, Template | None] = {}
        # Where ids of rows do not tell their tables, rows of several tables may be the same entity.
        self._apart = not any(other.startswith(f"{table}/") for table in tables.tables for other in tables.tables)

    def compiled(self, plan: Node) -> Compiled | None:
        """The query of a plan; None of one that is not compiled here."""
        try:
            return self._compiled(plan)
        except Elsewhere:
            return None

    def _compiled(self, plan: Node) -> Compiled:
        inner: Node = plan.entities if isinstance(plan, alg.Names) else alg.Reached(plan) if isinstance(plan, alg.Facts) else plan
        if isinstance(inner, alg.Entities) and native(inner):
            return Compiled(self._filled("entities", [inner], lambda to: to.of_entities(inner)), "entities")
        if isinstance(plan, alg.Count) and isinstance(plan.of, alg.Entities) and native(plan.of):
            of = plan.of
            return Compiled(self._filled("count", [of], lambda to: to.count(of)), "count")
        if isinstance(plan, alg.Exists) and native(plan.facts):
            facts = plan.facts
            return Compiled(self._filled("truth", [facts], lambda to: to.any_of(to.facts(facts))), "truth")
        if isinstance(plan, alg.AnySatisfies) and supports(plan.condition) and all(map(native, plan.condition.inputs())):
            bag = plan.values.values if isinstance(plan.values, alg.Distinct) else plan.values
            if _has_cells(bag):
                test = plan.condition
                return Compiled(self._filled("test", [bag, test], lambda to: to.any_value(bag, test)), "truth")
        if isinstance(plan, alg.Distinct) and _has_cells(plan.values):
            values = plan.values
            return Compiled(self._filled("values", [values], lambda to: to.values(values)), "values")
        leaves: list[Node] = []
        if gathers(plan, leaves, set()):
            text = self._filled("gathered", leaves, lambda to: to.gathered(list(enumerate(leaves))))
            return Compiled(text, "gathered", leaves=tuple(leaves))
        return self._witness(plan)

    def witness(self, plan: Node) -> Compiled | None:
        """The query of all that a plan rests on; None of one that is not compiled here."""
        try:
            return self._witness(plan)
        except Elsewhere:
            return None

    def _witness(self, plan: Node) -> Compiled:
        fetched = wanted(plan)
        parts = [unit.compiled for unit in fetched]
        members = [(unit.compiled, unit.concepts) for unit in fetched if unit.concepts is not None]
        nodes = [*parts, *(concepts for _, concepts in members)]
        marks = tuple(unit.concepts is not None for unit in fetched)
        text = self._filled(("witness", marks), nodes, lambda to: to.gathered(list(enumerate(parts)), members))
        return Compiled(text, "witness", fetched=fetched)

    def entities(self, node: alg.ById | alg.ByName) -> str | None:
        """The query for entities by their ids or names, with id, name, kind and number."""
        return self._tried("entities", [node], lambda to: to.of_entities(node))

    def sizes(self, nodes: Sequence[Node]) -> str | None:
        """The query for how many entities each operator gives, and the names of the first three (`sql.plan.compile_sizes`)."""
        owns: list[tuple[int, Node]] = []
        for step, node in enumerate(nodes):
            own = alg.Reached(node) if isinstance(node, alg.Facts) else node.entities if isinstance(node, alg.Names) else node
            if isinstance(own, alg.Entities) and native(own):
                owns.append((step, own))

        def build(to: TheirCompiler) -> Query:
            branches: list[Query] = []
            for step, own in owns:
                size = exp.Subquery(this=to.count(own))
                branches.append(select(literal(step), cast(size, "bigint"), cast(NULL.copy(), "text")))
                order = [self._tables.by_bytes(column(part)) for part in ("name", "id")]
                first = select(column("name")).from_(_subquery(to.of_entities(own)), copy=False)
                few = _subquery(first.order_by(*order, copy=False).limit(3, copy=False))
                branches.append(select(literal(step), cast(NULL.copy(), "bigint"), column("name")).from_(few, copy=False))
            return together(branches)

        return self._tried(("sizes", tuple(step for step, _ in owns)), [own for _, own in owns], build) if owns else None

    def counts(self, nodes: Sequence[Node]) -> str | None:
        """The query for how many statements, or entities, each operator gives (`sql.plan.compile_counts`)."""

        def build(to: TheirCompiler) -> Query:
            branches: list[Query] = []
            for step, node in enumerate(nodes):
                size = exp.Subquery(this=to.count(node)) if isinstance(node, alg.Entities) else to.size(to.facts(node))
                branches.append(select(literal(step), cast(size, "bigint")))
            return together(branches)

        return self._tried("counts", nodes, build)

    def _tried(self, sort: Hashable, nodes: Sequence[Any], build: Callable[[TheirCompiler], Query]) -> str | None:
        try:
            return self._filled(sort, nodes, build)
        except Elsewhere:
            return None

    def _filled(self, sort: Hashable, nodes: Sequence[Any], build: Callable[[TheirCompiler], Query]) -> str:
        if not self._apart:
            raise Elsewhere
        shape = Shape(nodes, self._tables)
        key = sort, shape.key
        if key not in self._templates:
            if len(self._templates) >= _MOST_CACHED:
                self._templates.clear()
            compiler = TheirCompiler(self._tables, shape)
            try:
                self._templates[key] = Template(compiler.mark, self._text(build(compiler)))
            except Elsewhere:
                self._templates[key] = None
        template = self._templates[key]
        if template is None:
            raise Elsewhere
        return template.filled(shape.constants)


def _has_cells(values: Node) -> TypeGuard[alg.Objects | alg.Qualifiers]:
    if isinstance(values, alg.Qualifiers) and values.key is None:
        return False
    return isinstance(values, alg.Objects | alg.Qualifiers) and native(values.facts)
