"""Groups of graph patterns, and conditions as filters in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal, Protocol, TypeAlias

from condgraph.engine import algebra as alg
from condgraph.engine import values
from condgraph.engine.algebra import Condition, Node, Operator
from condgraph.engine.errors import PlanError, UnsupportedError
from condgraph.engine.facts import Entity
from condgraph.engine.iris import XSD, date_of, nearest_double, year_of
from condgraph.engine.schema import Kinds
from condgraph.engine.store import KnownSchema
from condgraph.sparql.dialect import STANDARD, Dialect
from condgraph.sparql.layout import GraphIris, double, inexact, integer, order_text, string

# -- groups ------------------------------------------------------------------------------------------
# Groups of patterns with their unions and differences, the terms of facts, and the target graph.


TARGET: Final = "SPARQL"
#: Longest group, in characters, that is copied into the branches of its unions.
MAX_COPIED: Final = 20_000
#: What a variable is bound to: an entity, a value node, or either.
Objects: TypeAlias = Literal["entity", "value", "any"]
#: A filter that nothing passes.
NEVER: Final = "FILTER(false)"


@dataclass(frozen=True, slots=True)
class Target:
    """The graph that a plan is compiled for: its names, its schema, and its counts (`sparql.load.write.counts`)."""

    names: GraphIris
    schema: KnownSchema
    counts: Mapping[str, int]
    #: Returns entities by id, if the graph is also in this process: names then need no query, and rows are
    #: read only as far as needed.
    entities: Callable[[list[str]], list[Entity]] | None = None
    #: How the store differs from SPARQL 1.1.
    dialect: Dialect = STANDARD

    @property
    def local(self) -> bool:
        """Whether the graph is also in this process."""
        return self.entities is not None


class Group(list[str]):
    """The patterns of one group.

    Stores join patterns well, but not the results of a UNION or a MINUS. So differences come last, and the rest of a group is
    copied into the branches of its union; where that would be too long, the union becomes a sub-select.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        super().__init__(patterns)
        self.minus: list[str] = []
        self.unions: list[tuple[str, list[Group]]] = []
        #: Whether the unions stay separate, since the later patterns do not need their bindings.
        self.is_separate = False

    @property
    def empty(self) -> bool:
        """Whether a filter makes the group empty."""
        return any(pattern.endswith(NEVER) for pattern in self)

    def text(self) -> str:
        """Return all patterns, to be put between braces."""
        if self.is_separate and self.unions:
            unions = [" UNION ".join(f"{{ {branch.text()} }}" for branch in branches) for _, branches in self.unions]
            return " ".join((*(f"{{ {union} }}" for union in unions), *self, *self.minus))
        whole = self._spread(MAX_COPIED)
        return whole if whole is not None and len(whole) <= MAX_COPIED else self._selected()

    def _selected(self) -> str:
        unions = [
            f"{{ SELECT DISTINCT {e} WHERE {{ {' UNION '.join(f'{{ {branch._selected()} }}' for branch in branches)} }} }}"
            for e, branches in self.unions
        ]
        return " ".join((*unions, *self, *self.minus))

    def _spread(self, most: int) -> str | None:
        """Return the text with the rest of the group copied into the unions.

        None if it is too long, or a sub-select would be evaluated twice.
        """
        if not self.unions:
            return " ".join((*self, *self.minus))
        if sum(map(len, self)) > most or any("SELECT" in pattern for pattern in self):
            return None
        (_, branches), *remaining = self.unions
        texts = []
        for branch in branches:
            joined = Group((*branch, *self))
            joined.minus = [*branch.minus, *self.minus]
            joined.unions = [*branch.unions, *remaining]
            text = joined._spread(most)
            if text is None:
                return None
            texts.append(f"{{ {text} }}")
            most -= len(text)
            if most < 0:
                return None
        return " UNION ".join(texts)


@dataclass(frozen=True, slots=True)
class FactNeeds:
    """What an operator needs of facts: whether their statement is bound, and the variables of subject and object."""

    whole: bool = False
    subject: str | None = None
    object: str | None = None
    #: The set that the object is in, whose patterns come before the fact.
    among: alg.Entities | None = None


@dataclass(slots=True)
class FactTerms:
    """Variables (or IRIs) of matched facts. `statement` is None if only the direct triple is matched."""

    subject: str
    predicate: str
    object: str
    statement: str | None
    reached: str
    #: What the objects can be.
    objects: Objects
    loose: bool = False
    #: Patterns that bind the statement, which come after the tests on its object.
    bind: list[str] = field(default_factory=list)


# -- conditions --------------------------------------------------------------------------------------
# An equality test is a pattern, answered by the store's index (the node of a number, a year, a day);
# other comparisons are a FILTER. Numbers that are the same double compare by `pred:order`.


_NO_ROWS: Final = [NEVER]
#: Characters that UTF-16 sorts differently or writes as two units; the last character of one unit.
_HIGH: Final = re.compile("[\ue000-\U0010ffff]")
_PAIRS: Final = re.compile("[\U00010000-\U0010ffff]")
_LAST, _SMALL = "\uffff", "!"


class Compiling(Protocol):
    """The part of the compiler (`operators.Compiler`) that tests need."""

    target: Target
    counts: Mapping[str, int]

    def variable(self, prefix: str) -> str:
        """Return a fresh variable."""

    def group(self) -> Group:
        """Return an empty group."""

    def entities(self, node: Node, e: str, out: Group) -> bool:
        """Add patterns that bind `e` to each entity of a set; tell whether `e` is still loose."""


def supports_test(test: Condition) -> bool:
    """Tell whether a test becomes SPARQL; comparisons with values of another step are left to the client."""
    if isinstance(test, (alg.AnyOf, alg.AllOf)):
        return all(map(supports_test, test.conditions))
    if isinstance(test, alg.Not):
        return supports_test(test.condition)
    return isinstance(test, (alg.Compare, alg.Among))


def test_patterns(compiler: Compiling, test: Condition, v: str, objects: Objects, kinds: Kinds | None) -> list[str]:
    """Return patterns under which the entity or value node `v` passes the test.

    `kinds` are the types that it may have, where known.
    """
    if isinstance(test, alg.Compare):
        return _compare(compiler, test, v, objects, kinds)
    if isinstance(test, alg.Among):
        if isinstance(test.entities, alg.ById):
            return [f"FILTER({_among(compiler, test.entities, v)})"]
        out = compiler.group()
        compiler.entities(test.entities, v, out)
        return [out.text()]
    if isinstance(test, alg.AllOf):
        return [line for part in test.conditions for line in test_patterns(compiler, part, v, objects, kinds)]
    if isinstance(test, alg.AnyOf):
        equal = [part.value for part in test.conditions if isinstance(part, alg.Compare) and part.operator == "="]
        texts = [value for value in equal if isinstance(value, str)]
        if len(texts) == len(test.conditions):
            t = compiler.variable("t")
            return [f"VALUES {t} {{ {' '.join(map(string, dict.fromkeys(texts)))} }} {v} {_TEXT_OF[objects]} {t} ."]
        alternatives = [(part, test_patterns(compiler, part, v, objects, kinds)) for part in _alternatives(test)]
        parts = [(part, lines) for part, lines in alternatives if lines != _NO_ROWS]
        if len(parts) < 2:
            return parts[0][1] if parts else _NO_ROWS
        return ["FILTER(" + " || ".join(_expression(compiler, part, lines, v) for part, lines in parts) + ")"]
    if isinstance(test, alg.Not):
        # Each alternative is negated on its own: Virtuoso finds nothing if EXISTS is the only pattern
        # within NOT EXISTS.
        denied = [(part, test_patterns(compiler, part, v, objects, kinds)) for part in _alternatives(test.condition)]
        return [f"FILTER({_expression(compiler, part, lines, v, 'NOT ')})" for part, lines in denied if lines != _NO_ROWS]
    raise UnsupportedError("SPARQL", [type(test).__name__])


def _alternatives(test: Condition) -> tuple[Condition, ...]:
    """Return the tests of which one has to be true."""
    if isinstance(test, alg.AnyOf):
        return tuple(alternative for part in test.conditions for alternative in _alternatives(part))
    if isinstance(test, alg.Among) and isinstance(test.entities, alg.Union):
        return tuple(alternative for part in test.entities.parts for alternative in _alternatives(alg.Among(part)))
    return (test,)


def _expression(compiler: Compiling, test: Condition, lines: list[str], v: str, sign: str = "") -> str:
    """Return a test with these patterns as an expression; `sign` is "NOT " if it must be false."""
    if isinstance(test, alg.Among) and isinstance(test.entities, alg.ById):
        return _among(compiler, test.entities, v, sign)
    return f"{sign}EXISTS {{ {' '.join(lines)} }}"


def _among(compiler: Compiling, node: alg.ById, v: str, sign: str = "") -> str:
    """Return a test that a node is one of some entities.

    Without VALUES: within EXISTS, Virtuoso treats its variable as different from the outer one of the same name.
    """
    return f"{v} {sign}IN ({', '.join(map(compiler.target.names.entity, node.ids))})"


test_patterns.__test__ = False  # type: ignore[attr-defined]


def _compare(compiler: Compiling, test: alg.Compare, v: str, objects: Objects, kinds: Kinds | None) -> list[str]:
    value = test.value
    if isinstance(value, str):
        return _text(compiler, test.operator, value, v, objects, kinds)
    if objects == "entity":
        return _NO_ROWS
    if isinstance(value, values.Quantity):
        return _quantity(compiler, test.operator, value, v, kinds)
    if isinstance(value, values.Time):
        return _time(compiler, test.operator, value, v)
    raise PlanError("an unknown value cannot be compared")


#: The path to the text of a node.
_TEXT_OF: Final = {"entity": "<pred:name>", "value": "<pred:value>", "any": "<pred:name>|<pred:value>"}


def _text(compiler: Compiling, operator: Operator, text: str, v: str, objects: Objects, kinds: Kinds | None) -> list[str]:
    """Return patterns for texts, and for entities by their names."""
    path = _TEXT_OF[objects]
    if operator == "=":
        return [f"{v} {path} {string(text)} ."]
    t = compiler.variable("t")
    plain = kinds is not None and {kind for kind, _ in kinds} <= {values.Kind.TEXT, values.Kind.TIME}
    all_texts = objects == "entity" or (objects == "value" and plain)
    guard = "" if all_texts else f"DATATYPE({t}) = <{XSD}string> && "
    # Virtuoso sorts literals by where it stores them, but their texts correctly.
    stored, literal = ordered(f"STR({t})", text, compiler.target.dialect)
    return [f"{v} {path} {t} . FILTER({guard}{stored} {operator} {string(literal)})"]


def ordered(term: str, text: str, dialect: Dialect) -> tuple[str, str]:
    """Return a text of the store, as an expression, and one of the query, so that they compare by code point.

    UTF-16 differs from code points only from U+E000 on. If the query has such a character, each character of two units in both
    texts is prefixed with the last one of a single unit; where that character itself occurs, a small one is appended.
    """
    if not dialect.by_units or not _HIGH.search(text):
        return term, text
    marked = _PAIRS.sub(lambda match: _LAST + match[0], text.replace(_LAST, _LAST + _SMALL))
    inner = f"REPLACE({term}, {string(_LAST)}, {string(_LAST + _SMALL)})"
    return f"REPLACE({inner}, {string(f'({_PAIRS.pattern})')}, {string(_LAST + '$1')})", marked


def _quantity(compiler: Compiling, operator: Operator, literal: values.Quantity, v: str, kinds: Kinds | None) -> list[str]:
    units = None if kinds is None else {unit for kind, unit in kinds if kind is values.Kind.QUANTITY}
    if units is not None and literal.unit not in units:
        return _NO_ROWS
    # A unit that all values share is still tested where servers then plan better: Virtuoso begins with a
    # number that many nodes have.
    test_unit = units != {literal.unit} or (operator == "=" and not compiler.target.local)
    unit = f" {v} <pred:unit> {string(literal.unit)} ." if test_unit else ""
    number = literal.number
    x = compiler.variable("x")
    guard = ""
    if units == {literal.unit} and kinds is not None and operator != "=" and any(kind is values.Kind.TEXT for kind, _ in kinds):
        # A text is no number, and comparing their order is an error, but `!=` of the two need not be.
        guard = f"ISNUMERIC({x}) && "
    if compiler.counts.get("inexact"):
        if operator == "=":
            return [f"{v} <pred:order> {string(order_text(number))} .{unit}"]
        return [f"{v} <pred:order> {x} .{unit} FILTER(STR({x}) {operator} {string(order_text(number))})"]
    if inexact(number):
        # All numbers of the graph print like their doubles; the literal lies next to one of them.
        nearest = nearest_double(number)
        if operator == "=":
            return _NO_ROWS
        if operator == "!=":
            return [f"{v} <pred:value> {x} .{unit}" + (f" FILTER({guard[:-4]})" if guard else "")]
        if abs(nearest) != float("inf"):
            below = Decimal(values.format_number(nearest)) < Decimal(values.format_number(number))
            operator = {True: "<=", False: "<"}[below] if operator in ("<", "<=") else {True: ">", False: ">="}[below]  # type: ignore[assignment]
        return [f"{v} <pred:value> {x} .{unit} FILTER({guard}{x} {operator} {double(nearest)})"]
    if operator == "=":
        return [f"{v} <pred:value> {double(number)} .{unit}"]
    return [f"{v} <pred:value> {x} .{unit} FILTER({guard}{x} {operator} {double(number)})"]


def _time(compiler: Compiling, operator: Operator, literal: values.Time, v: str) -> list[str]:
    """Return patterns for times as intervals; a year or day that contains the time is found by its index."""
    start, end = integer(literal.start), integer(literal.end)
    year, date = year_of(literal), date_of(literal)
    if operator == "=":
        if year is not None and (literal.start, literal.end) == _bounds(values.Time.year(year)):
            return [f"{v} <pred:year> {integer(year)} ."]
        if date is not None and literal.precision is values.Precision.DAY and 1 <= (year or 0) <= 9999:
            return [f'{v} <pred:date> "{date}"^^<{XSD}date> .']
    a, b = compiler.variable("a"), compiler.variable("b")
    first, last = f"{v} <pred:start> {a} .", f"{v} <pred:end> {b} ."
    return [
        {
            "=": f"{first} {last} FILTER({a} >= {start} && {b} <= {end})",
            "!=": f"{first} {last} FILTER({b} <= {start} || {a} >= {end})",
            "<": f"{last} FILTER({b} <= {start})",
            ">": f"{first} FILTER({a} >= {end})",
            "<=": f"{last} FILTER({b} <= {end})",
            ">=": f"{first} FILTER({a} >= {start})",
        }[operator]
    ]


def _bounds(time: values.Time) -> tuple[int, int]:
    return time.start, time.end


def during_test(compiler: Compiling, test: alg.During, statement: str) -> str:
    """Return patterns under which the validity of a statement relates to an interval; they repeat no row."""
    a, b = compiler.variable("a"), compiler.variable("b")
    validity = f"{statement} <pred:valid_start> {a} . {statement} <pred:valid_end> {b} ."
    holds = during_filter(test.relation, a, b, integer(test.interval.start), integer(test.interval.end))
    if test.relation in ("may", "must"):
        # Statements without a validity always hold.
        return f"FILTER NOT EXISTS {{ {validity} FILTER(!({holds})) }}"
    return f"{validity} FILTER({holds})"


def during_filter(relation: str, a: str, b: str, low: str, high: str) -> str:
    """Relate a validity `[a, b)` to the interval `[low, high)`; an unknown bound is taken at its least favourable."""
    if relation == "may":
        return f"{a} < {high} && {b} > {low}"
    if relation == "must":
        return f"{a} > {integer(values.OPEN_START)} && {a} <= {low} && {b} < {integer(values.UNKNOWN_END)} && {b} >= {high}"
    no_start, no_end = f"{a} = {integer(values.UNKNOWN_START)}", f"{b} = {integer(values.UNKNOWN_END)}"
    open_start, open_end = integer(values.OPEN_START), integer(values.OPEN_END)
    latest_start = f"IF({no_start}, IF({no_end}, {open_end}, {b}), {a})"
    earliest_start = f"IF({no_start}, {open_start}, {a})"
    earliest_end = f"IF({no_end}, IF({no_start}, {open_start}, {a}), {b})"
    latest_end = f"IF({no_end}, {open_end}, {b})"
    if relation == "overlaps":
        inside_start = f"(!({no_start}) && {a} >= {low} && {a} < {high})"
        inside_end = f"(!({no_end}) && {b} > {low} && {b} <= {high})"
        return f"{inside_start} || {inside_end} || (!({no_start}) && !({no_end}) && {a} < {high} && {b} > {low})"
    return {
        "disjoint": f"{latest_end} <= {low} || {earliest_start} >= {high}",
        "within": f"{earliest_start} >= {low} && {latest_end} <= {high}",
        "contains": f"{latest_start} <= {low} && {earliest_end} >= {high}",
        "before": f"{latest_end} <= {low}",
        "after": f"{earliest_start} >= {high}",
        "until": f"{latest_end} <= {high}",
        "from": f"{earliest_start} >= {low}",
    }[relation]
