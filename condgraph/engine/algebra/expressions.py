"""Expressions over the variables of a row: what operators with several variables filter, extend,
order and group by.

An expression is a tree of immutable records, which every store evaluates alike. Names are resolved
when it is lowered: it has no parameters, and no labels that may not exist.

**Values.** Null is None. Other values are truth values, integers, floats, texts, quantities with a
unit (`Quantity`), times as intervals (`Time`), dates and durations (`engine.temporal`), entities,
statements, paths, lists, and maps with texts as keys. A number without a unit is an `int` or `float`
(`Decimal` where a float would lose digits). A truth value is no number.

**Null.** Every record gives null if a part of it is null, unless its docstring says otherwise.

**Equality and order.** `=` is false between values of different types, but numbers are compared with
numbers, and times, dates and years (integers) with each other, as intervals: `=` within, `<>`
disjoint, `<` ends before, `>` begins after; two times are `<=` if they are `<` or `=`. Quantities are
equal and ordered in one unit, after conversion; a number compares with a quantity only if that has no
unit. Lists and maps are equal item by item, and null if an item that decides it is. `<` and the like
are null between values that have no common order, and always null for maps, entities and paths. NaN
is equal to nothing and neither less nor greater. `ORDER BY`, `min` and `max` use the total order of
`execute.comparing.order_key`; `DISTINCT` and groups the equivalence by which null is null.

**Errors.** A type that an operator or function is not defined for raises a `PlanError` that names it.
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
    """A value for each row. `parts` are the expressions that it is made of."""

    __slots__ = ()

    def parts(self) -> tuple[Expression, ...]:
        """The expressions that it takes, in the order of its fields."""
        return tuple(held(self, (Expression,)))

    def bound(self) -> tuple[str, ...]:
        """The variables that it binds within its parts."""
        return ()


@dataclass(frozen=True, slots=True)
class Variable(Expression):
    """What the row binds to a name: an entity, a statement or a value; null where it is not bound."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Expression):
    """A value, the same for every row; lists and maps as `list` and `dict`, which nobody changes."""

    value: Any

    def __eq__(self, other: object) -> bool:
        # 1, 1.0 and True are three constants.
        return isinstance(other, Constant) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


NULL: Final = Constant(None)


@dataclass(frozen=True, slots=True)
class Property(Expression):
    """The value of a key: of an entity its attribute, of a statement its qualifier, of a map an entry,
    of a date or duration a component (`year`).

    Null where there is none. Several values of one key are a list, in the order of values; a value
    that is not known is null. Other types raise `PlanError`. Attributes are those that hold in `period`.
    """

    of: Expression
    key: str
    period: Period | None = None


@dataclass(frozen=True, slots=True)
class HasConcept(Expression):
    """Whether an entity is an instance of any of these concepts, or of one below, or a row of a table
    of that name; of a statement, whether its predicate is among the names.
    """

    of: Expression
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function of `FUNCTIONS`, whose entry says how many arguments it takes. Null if any argument
    is, except where that table says `nulls`. Attributes that it reads are those that hold in `period`.
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
    """Whether exactly one of two is true."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """The opposite."""

    of: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """Whether a value is null; never null itself."""

    of: Expression


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """Two values compared (see the head of this module)."""

    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """Two values computed with.

    Numbers: `/` of integers is the integral part, `%` has the sign of the dividend, `^` is a float.
    Quantities: `+` and `-` within one dimension, `*` and `/` with plain numbers. `+` joins texts, and
    a text with a number, and lists, and appends to a list. Dates and durations add up.
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
    """A test of two texts, with case; null for other types. `matches` takes a regular expression that
    the whole text has to match.
    """

    operator: TextOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class In(Expression):
    """Whether an item of a list is equal to a value; null if none is and a comparison is null, false of
    an empty list.
    """

    item: Expression
    items: Expression


@dataclass(frozen=True, slots=True)
class ListOf(Expression):
    """A list of values, null among them."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MapOf(Expression):
    """A map, whose values may be null."""

    items: tuple[tuple[str, Expression], ...]

    def parts(self) -> tuple[Expression, ...]:
        return tuple(value for _, value in self.items)


@dataclass(frozen=True, slots=True)
class Index(Expression):
    """An item of a list by its place from 0 (negative: from the end; null outside of it), or the value
    of a key, computed, of what `Property` takes.
    """

    of: Expression
    index: Expression
    period: Period | None = None


@dataclass(frozen=True, slots=True)
class Slice(Expression):
    """Part of a list, from `start` (None: the beginning) to before `stop` (None: the end); negative
    places count from the end, those outside are left out.
    """

    of: Expression
    start: Expression | None
    stop: Expression | None


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """The value of the first branch whose condition is true, else `otherwise`; with `operand`, the first
    whose condition is equal to it. Null only if the chosen value is.
    """

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression = NULL
    operand: Expression | None = None

    def parts(self) -> tuple[Expression, ...]:
        first = () if self.operand is None else (self.operand,)
        return (*first, *(part for branch in self.branches for part in branch), self.otherwise)


@dataclass(frozen=True, slots=True)
class ListComprehension(Expression):
    """For each item of a list, bound to a variable, that `where` is true of (None: each), `result`
    (None: the item).
    """

    variable: str
    items: Expression
    where: Expression | None = None
    result: Expression | None = None

    def bound(self) -> tuple[str, ...]:
        return (self.variable,)


@dataclass(frozen=True, slots=True)
class Quantified(Expression):
    """Whether a condition is true of all, any, none or a single item of a list, with three-valued logic:
    null where the items for which it is null decide.
    """

    quantifier: Quantifier
    variable: str
    items: Expression
    where: Expression

    def bound(self) -> tuple[str, ...]:
        return (self.variable,)


@dataclass(frozen=True, slots=True)
class Reduce(Expression):
    """`result` with the accumulator bound to the value before (first `initial`) and the variable to each
    item in turn; the last value. Only a list that is null makes it null.
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
    """How many arguments a function takes (`most` None: any number), and whether it is called with
    nulls among them (`nulls`) rather than null.
    """

    least: int
    most: int | None = field(default=-1)
    nulls: bool = False

    def takes(self, count: int) -> bool:
        """Whether it takes so many."""
        most = self.least if self.most == -1 else self.most
        return count >= self.least and (most is None or count <= most)


def _same(signature: Signature, names: str) -> dict[str, Signature]:
    return dict.fromkeys(names.split(), signature)


_MAKERS: Final = ("date", "time", "localtime", "datetime", "localdatetime")
#: The functions, by names in small letters. Those that are no functions of Cypher:
#: `path` (an entity, then alternately a statement or list of statements and an entity) is a path,
#: `quantity` ("4000 m") a quantity, `unit` and `number` its parts, `merged` two maps as one in which the
#: second wins, `name` what an entity is called. Those that begin with `group_` are aggregates of the list
#: of values of a group without null: `group_sum` of an empty list is 0, deviations are 0.0, the others null;
#: sums and means take numbers, quantities of one dimension, or durations. `orderkey` is a text that sorts as the
#: value does in the order of all values. `listed` is a list itself, and a list of any other value.
#: `allen` is the relation in time of two statements or times (`engine.allen`), null where several are possible, which
#: `allen.possible` lists; `allen.together` says whether both hold at some moment, null where that is not known;
#: `days.least` and `days.most` are how long one lasts. `rdf.iri` is the IRI of an entity or a value behind the base of
#: its graph, and the others of `rdf` are what a value says under a predicate of the RDF view (`execute.rdf_terms`).
FUNCTIONS: Final[dict[str, Signature]] = {
    **_same(
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
    **_same(Signature(1, 2), "ltrim rtrim btrim"),
    **_same(Signature(1, 3), "round"),
    **_same(Signature(2), "atan2 left right split merged"),
    **_same(Signature(2, 3), "range substring"),
    **_same(Signature(3), "replace"),
    **_same(Signature(0), "pi e rand randomuuid timestamp"),
    **{f"{kind}.{clock}": Signature(0, 1) for kind in _MAKERS for clock in ("transaction", "statement", "realtime")},
    **{f"{kind}.truncate": Signature(2, 3) for kind in _MAKERS},
    **{kind: Signature(0, 1) for kind in _MAKERS},
    **_same(Signature(1), "group_sum group_avg group_min group_max group_stdev group_stdevp"),
    **_same(Signature(2), "group_percentilecont group_percentiledisc"),
    **_same(Signature(1, None, nulls=True), "coalesce path"),
    **_same(Signature(2, nulls=True), "nullif"),
    **_same(Signature(1, nulls=True), "valuetype"),
    **_same(Signature(1), "orderkey point listed"),
    **_same(Signature(1), "duration datetime.fromepochmillis"),
    **_same(Signature(2), "point.distance distance"),
    **_same(Signature(3), "point.withinbbox"),
    **_same(Signature(1), "days.least days.most"),
    **_same(Signature(1), "rdf.iri rdf.value rdf.unit rdf.year rdf.date rdf.start rdf.end rdf.precision"),
    **_same(Signature(2), "allen allen.possible allen.together"),
    **_same(Signature(2), "datetime.fromepoch duration.between duration.indays duration.inmonths duration.inseconds"),
}


def walk(root: Expression) -> Iterator[Expression]:
    """An expression and all that it is made of, without recursion."""
    stack = [root]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(item.parts())


def variables(root: Expression) -> frozenset[str]:
    """The variables of a row that an expression takes, without those that it binds itself."""
    result: set[str] = set()
    stack: list[tuple[Expression, frozenset[str]]] = [(root, frozenset())]
    while stack:
        item, inner = stack.pop()
        if isinstance(item, Variable):
            if item.name not in inner:
                result.add(item.name)
            continue
        if bound := item.bound():
            # The list, and the initial value, are outside of what they are bound for.
            inside = inner.union(bound)
            outside = {id(part) for name in ("items", "initial") if (part := getattr(item, name, None)) is not None}
            stack.extend((part, inner if id(part) in outside else inside) for part in item.parts())
        else:
            stack.extend((part, inner) for part in item.parts())
    return frozenset(result)


def rebuilt(expression: Expression, replace: Callable[[Expression], Expression | None]) -> Expression:
    """An expression in which `replace` gives another one for some parts (None: the part stays, and is
    looked into).
    """
    other = replace(expression)
    if other is not None:
        return other
    fields: dict[str, Any] = {}
    slots: tuple[str, ...] = getattr(expression, "__slots__", ())
    for name in slots:
        value = getattr(expression, name)
        made = _rebuilt_field(value, replace)
        if made is not value:
            fields[name] = made
    if not fields:
        return expression
    return type(expression)(**{name: fields.get(name, getattr(expression, name)) for name in slots})


def _rebuilt_field(value: Any, replace: Callable[[Expression], Expression | None]) -> Any:
    if isinstance(value, Expression):
        return rebuilt(value, replace)
    if isinstance(value, tuple):
        made = tuple(_rebuilt_field(item, replace) for item in value)
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    return value
