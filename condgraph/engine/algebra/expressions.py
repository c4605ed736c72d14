"""Expressions over the variables of a row, which the operators of `solutions` filter, extend, order and group by.

An expression is a tree of immutable records that every store evaluates alike. Names are resolved
during lowering: an expression has no parameters and no labels that may be missing from the graph.

**Values.** Null is None. Other values are truth values, integers, floats, texts, quantities with a
unit (`Quantity`), times as intervals (`Time`), dates and durations (`engine.temporal`), entities,
statements, paths, lists, and maps with texts as keys. A number without a unit is an `int` or `float`
(`Decimal` where a float would lose digits). Truth values are not numbers.

**Null.** Every expression is null if a part of it is null, unless its docstring says otherwise.

**Equality and order.** `=` is false between values of different types, except that all types of numbers
are compared, and times, dates and years (integers) with each other, as intervals: `=` within, `<>`
disjoint, `<` ends before, `>` begins after; two times are `<=` if they are `<` or `=`. Quantities are
compared after conversion to one unit; a number compares only with a quantity that has no unit. Lists
and maps are compared item by item; the result is null if a comparison that decides it is null. `<`, `<=`,
`>` and `>=` are null between values without a common order, and always null for maps, entities and
paths. NaN is equal to nothing and neither less nor greater. `ORDER BY`, `min` and `max` use the total order of
`execute.functions.order_key`; `DISTINCT` and groups treat null as equal to null.

**Errors.** An operator or function raises a `PlanError` that names a type it is not defined for.
Integers have any size. Division of an integer by zero is an error; of a float it is infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from condgraph.engine.algebra.operators import held

if TYPE_CHECKING:
    from condgraph.engine.period import Period

ComparisonOperator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]
ArithmeticOperator: TypeAlias = Literal["+", "-", "*", "/", "%", "^"]
TextOperator: TypeAlias = Literal["starts with", "ends with", "contains", "matches"]
Quantifier: TypeAlias = Literal["all", "any", "none", "single"]


class Expression:
    """Computes a value for each row. `parts` returns its subexpressions."""

    __slots__ = ()

    def parts(self) -> tuple[Expression, ...]:
        """Return the direct subexpressions, in the order of the fields."""
        return tuple(held(self, (Expression,)))

    def bound(self) -> tuple[str, ...]:
        """Return the variables that the expression binds for its own subexpressions."""
        return ()


@dataclass(frozen=True, slots=True)
class Variable(Expression):
    """The term that the row binds to a name: an entity, a statement or a value; null if unbound."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Expression):
    """One value for every row; lists and maps are `list` and `dict` and must not be changed."""

    value: Any

    def __eq__(self, other: object) -> bool:
        # By text: 1, 1.0 and True are three constants.
        return isinstance(other, Constant) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


NULL: Final = Constant(None)


@dataclass(frozen=True, slots=True)
class Property(Expression):
    """The value of a key: an attribute of an entity, a qualifier of a statement, an entry of a map, a component
    (`year`) of a date or duration.

    Null if the key is absent. Several values of one key are a list, in the order of values; an unknown value is null.
    Other types raise `PlanError`. Only attributes that hold in `period` are read.
    """

    of: Expression
    key: str
    period: Period | None = None


@dataclass(frozen=True, slots=True)
class HasConcept(Expression):
    """Whether an entity is an instance of one of the concepts (or of a subclass), or a row of a table of that name;
    for a statement, whether its predicate is among the names.
    """

    of: Expression
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A call of a function in `FUNCTIONS`, which also gives the number of arguments. Null if an argument is null,
    unless the signature sets `nulls`. The function reads only attributes that hold in `period`.
    """

    name: str
    arguments: tuple[Expression, ...]
    period: Period | None = None


@dataclass(frozen=True, slots=True)
class And(Expression):
    """False if an operand is false, else null if one is null, else true."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """True if an operand is true, else null if one is null, else false."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Xor(Expression):
    """Whether exactly one of two operands is true."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """Logical negation."""

    of: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """Whether a value is null; never null itself."""

    of: Expression


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """A comparison of two values (rules: see the module's docstring)."""

    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """Arithmetic with two values.

    Numbers: `/` of integers is the integral part, `%` has the sign of the dividend, `^` is a float. Quantities: `+`
    and `-` within one dimension, `*` and `/` with plain numbers. `+` also concatenates texts, a text and a number,
    and lists, and appends an item to a list. Dates and durations can be added.
    """

    operator: ArithmeticOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Negative(Expression):
    """A number, quantity or duration with the opposite sign."""

    of: Expression


@dataclass(frozen=True, slots=True)
class TextTest(Expression):
    """A case-sensitive test of two texts; null for other types. `matches` takes a regular expression that must match
    the whole text.
    """

    operator: TextOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class In(Expression):
    """Whether a list contains a value; null if no item is equal and a comparison is null; false for an empty list."""

    item: Expression
    items: Expression


@dataclass(frozen=True, slots=True)
class ListOf(Expression):
    """A list of values; nulls stay in it."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MapOf(Expression):
    """A map; its values may be null."""

    items: tuple[tuple[str, Expression], ...]

    def parts(self) -> tuple[Expression, ...]:
        return tuple(value for _, value in self.items)


@dataclass(frozen=True, slots=True)
class Index(Expression):
    """An item of a list by its 0-based index (negative: from the end; null if out of range), or the value of a
    computed key of anything that `Property` accepts.
    """

    of: Expression
    index: Expression
    period: Period | None = None


@dataclass(frozen=True, slots=True)
class Slice(Expression):
    """Part of a list, from `start` (None: the beginning) up to but excluding `stop` (None: the end); negative indexes
    count from the end, indexes out of range are clipped.
    """

    of: Expression
    start: Expression | None
    stop: Expression | None


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """The value of the first branch whose condition is true, else `otherwise`; with `operand`, of the first branch
    whose condition equals it. Null only if the chosen value is null.
    """

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression = NULL
    operand: Expression | None = None

    def parts(self) -> tuple[Expression, ...]:
        first = () if self.operand is None else (self.operand,)
        return (*first, *(part for branch in self.branches for part in branch), self.otherwise)


@dataclass(frozen=True, slots=True)
class ListComprehension(Expression):
    """A list with `result` (None: the item itself) for each item that satisfies `where` (None: all), with the item
    bound to `variable`.
    """

    variable: str
    items: Expression
    where: Expression | None = None
    result: Expression | None = None

    def bound(self) -> tuple[str, ...]:
        return (self.variable,)


@dataclass(frozen=True, slots=True)
class Quantified(Expression):
    """Whether a condition is true of all, any, none or a single item of a list, in three-valued logic: null if the
    result depends on items for which the condition is null.
    """

    quantifier: Quantifier
    variable: str
    items: Expression
    where: Expression

    def bound(self) -> tuple[str, ...]:
        return (self.variable,)


@dataclass(frozen=True, slots=True)
class Reduce(Expression):
    """The last value of `result`, computed for each item in turn with the accumulator bound to the value before (at
    first `initial`) and `variable` to the item. Null only if the list is null.
    """

    accumulator: str
    initial: Expression
    variable: str
    items: Expression
    result: Expression

    def bound(self) -> tuple[str, ...]:
        return self.accumulator, self.variable


@dataclass(frozen=True, slots=True)
class Signature:
    """The number of arguments of a function (`most` None: any number; -1: exactly `least`). `nulls`: the function is
    called with null arguments too, instead of returning null.
    """

    least: int
    most: int | None = field(default=-1)
    nulls: bool = False

    def takes(self, count: int) -> bool:
        """Return whether the function accepts `count` arguments."""
        most = self.least if self.most == -1 else self.most
        return count >= self.least and (most is None or count <= most)


def _signatures(signature: Signature, names: str) -> dict[str, Signature]:
    return dict.fromkeys(names.split(), signature)


_MAKERS: Final = ("date", "time", "localtime", "datetime", "localdatetime")
#: The functions, by names in lower case. Those that Cypher does not have:
#: `path` (arguments: an entity, then alternately a statement or list of statements and an entity) makes a path,
#: `quantity` ("4000 m") a quantity, `unit` and `number` return its parts, `merged` merges two maps (the second
#: wins), `name` is the name of an entity. Functions that begin with `group_` aggregate the list of non-null
#: values of a group: for an empty list `group_sum` is 0, deviations are 0.0, the others null; sums and means take
#: numbers, quantities of one dimension, or durations. `orderkey` is a text that sorts as the value does in the
#: order of all values. `listed` returns a list unchanged and wraps any other value in one.
#: `allen` is the temporal relation of two statements or times (`engine.allen`), null if several are possible;
#: `allen.possible` lists these; `allen.together` is whether both hold at some moment, null if unknown;
#: `days.least` and `days.most` bound the duration of one. `rdf.iri` is the IRI of an entity or value without the base
#: of its graph; the other `rdf` functions return the object of an RDF predicate of a value (`execute.rdf_terms`).
FUNCTIONS: Final[dict[str, Signature]] = {
    **_signatures(
        Signature(1),
        """
        id elementid type labels keys properties startnode endnode nodes relationships length size head last tail
        abs ceil floor sign sqrt exp log log10 sin cos tan cot asin acos atan degrees radians haversin isnan
        tolower toupper lower upper trim reverse
        char_length character_length isempty
        toboolean tointeger tofloat tostring tobooleanornull tointegerornull tofloatornull tostringornull
        tobooleanlist tointegerlist tofloatlist tostringlist
        quantity unit number name
        """,
    ),
    **_signatures(Signature(1, 2), "ltrim rtrim btrim"),
    **_signatures(Signature(1, 3), "round"),
    **_signatures(Signature(2), "atan2 left right split merged"),
    **_signatures(Signature(2, 3), "range substring"),
    **_signatures(Signature(3), "replace"),
    **_signatures(Signature(0), "pi e rand randomuuid timestamp"),
    **{f"{kind}.{clock}": Signature(0, 1) for kind in _MAKERS for clock in ("transaction", "statement", "realtime")},
    **{f"{kind}.truncate": Signature(2, 3) for kind in _MAKERS},
    **{kind: Signature(0, 1) for kind in _MAKERS},
    **_signatures(Signature(1), "group_sum group_avg group_min group_max group_stdev group_stdevp"),
    **_signatures(Signature(2), "group_percentilecont group_percentiledisc"),
    **_signatures(Signature(1, None, nulls=True), "coalesce path"),
    **_signatures(Signature(2, nulls=True), "nullif"),
    **_signatures(Signature(1, nulls=True), "valuetype"),
    **_signatures(Signature(1), "orderkey point listed"),
    **_signatures(Signature(1), "duration datetime.fromepochmillis"),
    **_signatures(Signature(2), "point.distance distance"),
    **_signatures(Signature(3), "point.withinbbox"),
    **_signatures(Signature(1), "days.least days.most"),
    **_signatures(Signature(1), "rdf.iri rdf.value rdf.unit rdf.year rdf.date rdf.start rdf.end rdf.precision"),
    **_signatures(Signature(2), "allen allen.possible allen.together"),
    **_signatures(Signature(2), "datetime.fromepoch duration.between duration.indays duration.inmonths duration.inseconds"),
}


def walk(root: Expression) -> Iterator[Expression]:
    """Yield an expression and all its subexpressions, without recursion."""
    stack = [root]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(item.parts())


def variables(root: Expression) -> frozenset[str]:
    """Return the variables of the row that an expression uses, without those that it binds itself."""
    result: set[str] = set()
    stack: list[tuple[Expression, frozenset[str]]] = [(root, frozenset())]
    while stack:
        item, inner = stack.pop()
        if isinstance(item, Variable):
            if item.name not in inner:
                result.add(item.name)
            continue
        if bound := item.bound():
            # The list and the initial value are evaluated outside the binding.
            inside = inner.union(bound)
            outside = {id(part) for name in ("items", "initial") if (part := getattr(item, name, None)) is not None}
            stack.extend((part, inner if id(part) in outside else inside) for part in item.parts())
        else:
            stack.extend((part, inner) for part in item.parts())
    return frozenset(result)


def rebuilt(expression: Expression, replace: Callable[[Expression], Expression | None]) -> Expression:
    """Return the expression with every part replaced for which `replace` returns another one (None: the part is kept
    and its own parts are visited).
    """
    replacement = replace(expression)
    if replacement is not None:
        return replacement
    fields: dict[str, Any] = {}
    slots: tuple[str, ...] = getattr(expression, "__slots__", ())
    for name in slots:
        value = getattr(expression, name)
        new = _rebuilt_field(value, replace)
        if new is not value:
            fields[name] = new
    if not fields:
        return expression
    return type(expression)(**{name: fields.get(name, getattr(expression, name)) for name in slots})


def _rebuilt_field(value: Any, replace: Callable[[Expression], Expression | None]) -> Any:
    if isinstance(value, Expression):
        return rebuilt(value, replace)
    if isinstance(value, tuple):
        items = tuple(_rebuilt_field(item, replace) for item in value)
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value
