"""Operators whose rows bind several variables: patterns of statements, paths, and the relational operators over them.

The sort is that of SPARQL's algebra and of Cypher's clauses: a bag of rows, each of which binds variables to terms. A
term is an entity, a value, a statement, a truth value, a count, a path, or a list of terms; a predicate is a text
(`engine.records.Term` has them as Python sees them). Three rules hold for every operator:

* Multiplicity. Rows are a bag; only `DistinctRows`, `GroupRows` and paths in mode "ends" drop repeats.
* Unbound variables. A row need not bind every variable. Rows of two inputs are *compatible* if no variable is bound
  to different terms in both; a variable that is unbound in one takes the term of the other (SPARQL 1.1,
  section 18.3). Cypher's null never joins: a compiler puts `BoundRows` before the join.
* Order. Only `OrderRows` and `SliceRows` define an order (see there). An answer shows rows
  without an order in the fixed order of rows: by their cells from left to right, each in the fixed order of values,
  unbound ones last.

Expressions are those of `algebra.expressions`. Terms are equal as values are: texts by code points, numbers by size
and unit (1 and 1.0 are equal), times by interval and precision, entities by id, statements by identity. A predicate
equals its name as a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from condgraph.engine.algebra.facets import EACH, NEVER, Facets, Needs
from condgraph.engine.algebra.operators import Condition, During, End, Entities, Facts, Family, Parameter, Scan, Solutions
from condgraph.engine.errors import PlanError

if TYPE_CHECKING:
    from condgraph.engine.algebra.expressions import Expression
    from condgraph.engine.facts import Ref
    from condgraph.engine.values import Value

# -- Variables ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in a pattern; its name is also the name of its column in an answer."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


# -- Patterns ----------------------------------------------------------------------------------------

#: An end of a pattern: a variable, which is bound; a set, which must contain the entity there; or None: any entity,
#: without binding it.
Place: TypeAlias = Variable | Entities | None


def _variables(*places: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(place.name for place in places if isinstance(place, Variable)))


def _word(place: object) -> str:
    return "" if place is None else str(place) if isinstance(place, Variable) else f"{type(place).__name__}"


@dataclass(frozen=True, slots=True)
class QualifierPattern(Parameter):
    """Qualifiers of a statement: their key (a name, or a variable that is bound to it), and their value, which is
    bound, in a set, satisfies a condition, or both.

    With a variable for the key or the value, each matching qualifier gives a row; without, the pattern is a test that
    one matching qualifier satisfies.
    """

    key: str | Variable
    value: Place = None
    condition: Condition | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that it binds."""
        return _variables(self.key, self.value)


@dataclass(frozen=True, slots=True)
class StatementPattern(Parameter):
    """Statements: one row for each that matches (and for each choice of qualifiers that bind), so that parallel
    statements between two entities give several rows.

    `predicate` is one of several names, a variable that is bound to the name, or None: any. `object` is bound
    (to an entity or a value, as `family` allows) or is in a set; it satisfies `condition`, if given. `statement` is
    bound to the statement itself. With `undirected`, a relation between two entities matches in both directions, a
    loop once; attributes do not match, and a condition is a `PlanError`. `among` restricts the statements to the
    facts of other operators. A variable that occurs several times in a pattern is bound to equal terms.
    """

    subject: Place = None
    predicate: Variable | tuple[str, ...] | None = None
    object: Place = None
    condition: Condition | None = None
    statement: Variable | None = None
    qualifiers: tuple[QualifierPattern, ...] = ()
    family: Family = "any"
    undirected: bool = False
    among: Facts | None = None

    def __post_init__(self) -> None:
        if self.undirected and self.condition is not None:
            raise PlanError("a pattern of both directions has no condition on its object")

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that it binds, in the order of its fields."""
        own = _variables(self.subject, self.predicate, self.object, self.statement)
        return tuple(dict.fromkeys([*own, *(name for part in self.qualifiers for name in part.variables)]))

    @property
    def during(self) -> During | None:
        """The operator in `among`, if it only tests when a statement holds (`engine.period`)."""
        test = self.among
        if not isinstance(test, During) or test.relation not in ("may", "must") or not isinstance(test.facts, Scan):
            return None
        scan = test.facts
        every = scan.of is None and scan.source is None and scan.family == self.family
        return test if every and scan.predicates in (None, self.predicate) else None

    def __str__(self) -> str:
        predicate = str(self.predicate) if isinstance(self.predicate, Variable) else "|".join(self.predicate or ("any",))
        return f"{_word(self.subject) or '_'} {predicate} {_word(self.object) or '_'}"


@dataclass(frozen=True, slots=True)
class MembershipPattern(Parameter):
    """Members and their concepts, each combination of bound terms once: including subclasses, as in `Members`, or
    with `direct` only as stated.
    """

    member: Place
    concept: Place
    direct: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that it binds."""
        return _variables(self.member, self.concept)

    def __str__(self) -> str:
        return f"{_word(self.member) or '_'} instance of {_word(self.concept) or '_'}"


# -- Operators that read the graph -------------------------------------------------------------------

_READS_GRAPH: Final = Facets(carries=(), strict=(), gives="any", reads="statements", warns=NEVER)
_READS_NOTHING: Final = Facets(carries=(), strict=(), gives="any", reads="nothing", warns=NEVER)


@dataclass(frozen=True, slots=True)
class Pattern(Solutions):
    """A basic graph pattern: all ways to match all of its parts at once, equal variables with equal terms.

    With `different` no two statement patterns match the same statement (Cypher's MATCH); without, they may (SPARQL).
    A pattern without parts gives one row that binds nothing.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _READS_GRAPH
    statements: tuple[StatementPattern, ...]
    memberships: tuple[MembershipPattern, ...] = ()
    different: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        parts: tuple[StatementPattern | MembershipPattern, ...] = (*self.statements, *self.memberships)
        return tuple(dict.fromkeys(name for part in parts for name in part.variables))


@dataclass(frozen=True, slots=True)
class Hop(Parameter):
    """One step of a path: along a relation of one of the predicates (None: any), from its subject to its object
    ("forward"), the other way ("backward"), or either.
    """

    predicates: tuple[str, ...] | None = None
    direction: Literal["forward", "backward", "either"] = "forward"

    def __str__(self) -> str:
        mark = {"forward": "", "backward": "^", "either": "~"}[self.direction]
        return mark + "|".join(self.predicates or ("any",))


#: The paths returned for each pair of ends. "ends": only that there is one, so that each pair is one row; "trails":
#: each path that uses no statement twice; "all shortest": each of the shortest, only between different
#: entities, apart from the path of no steps; "shortest": the first of these by the predicates, subjects and
#: objects of its statements.
PathMode: TypeAlias = Literal["ends", "trails", "shortest", "all shortest"]


@dataclass(frozen=True, slots=True)
class Path(Solutions):
    """Paths of `least` to `most` steps (None: any number), each step one of the `hops`.

    `of` gives the rows that the paths extend: each row is joined with the paths from its subject to its object; None is
    one row that binds nothing. A path of no steps leads from an entity to itself; if neither end is bound or a set,
    these are all entities and concepts. `path` is bound to a `records.PathTerm`, `length` to the number of steps; "ends"
    has neither. Walks terminate: "ends" and shortest paths visit each entity once, a trail each statement. `among`
    restricts the statements of the steps to the facts of other operators.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("of",), strict=("of",), gives="any", reads="statements", warns=NEVER, alters=True)
    of: Solutions | None
    subject: Place
    hops: tuple[Hop, ...]
    object: Place
    least: int = 1
    most: int | None = None
    mode: PathMode = "ends"
    path: Variable | None = None
    length: Variable | None = None
    among: Facts | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        before = () if self.of is None else self.of.variables
        return tuple(dict.fromkeys([*before, *_variables(self.subject, self.object, self.path, self.length)]))


@dataclass(frozen=True, slots=True)
class EntityRows(Solutions):
    """One row for each entity of a set, bound to the variable: brings operators of one variable into a join."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("entities",), strict=("entities",), gives="any", reads="nothing", warns=NEVER)
    variable: str
    entities: Entities

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.variable,)


@dataclass(frozen=True, slots=True)
class Rows(Solutions):
    """Rows written in the program (SPARQL's VALUES, Cypher's UNWIND of constants), each with a term for each name,
    None for unbound. An entity is given by its id; an id that the graph does not have equals none of its entities.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _READS_NOTHING
    names: tuple[str, ...]
    rows: tuple[tuple[Value | Ref | bool | int | float | None, ...], ...]

    @property
    def variables(self) -> tuple[str, ...]:
        return self.names


# -- Operators over two inputs -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Binary(Solutions):
    """Base of the operators on two inputs."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _READS_NOTHING
    left: Solutions
    right: Solutions

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.left.variables, *self.right.variables]))


_BOTH: Final = Facets(carries=("left", "right"), strict=("left", "right"), gives="any", reads="nothing", warns=NEVER, alters=True)
_CARRIES_LEFT: Final = Facets(carries=("left",), strict=("left",), gives="any", reads="nothing", warns=NEVER)
_ALTERS_LEFT: Final = Facets(carries=("left",), strict=("left",), gives="any", reads="nothing", warns=NEVER, alters=True)
_WHOLE_RIGHT: Final = Needs(whole=("right",))


@dataclass(frozen=True, slots=True)
class Join(_Binary):
    """Every compatible pair of rows, merged (SPARQL's Join); without a shared variable their product."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _BOTH


@dataclass(frozen=True, slots=True)
class LeftJoin(_Binary):
    """`Join` restricted to pairs for which the condition is true; a left row without such a pair is kept, with the
    other variables unbound (SPARQL's LeftJoin, Cypher's OPTIONAL MATCH).
    """

    needs: ClassVar[Needs] = _WHOLE_RIGHT
    facets: ClassVar[Facets] = _ALTERS_LEFT
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class SemiJoin(_Binary):
    """The left rows, with their multiplicity, that have a compatible right row (EXISTS)."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _BOTH

    @property
    def variables(self) -> tuple[str, ...]:
        return self.left.variables


@dataclass(frozen=True, slots=True)
class AntiJoin(_Binary):
    """The left rows without a compatible right row (NOT EXISTS); a right row without shared variables removes all of
    them.
    """

    needs: ClassVar[Needs] = _WHOLE_RIGHT
    facets: ClassVar[Facets] = _CARRIES_LEFT

    @property
    def variables(self) -> tuple[str, ...]:
        return self.left.variables


@dataclass(frozen=True, slots=True)
class MarkJoin(_Binary):
    """Every left row, with `variable` bound to whether a compatible right row exists: EXISTS within an expression."""

    needs: ClassVar[Needs] = _WHOLE_RIGHT
    facets: ClassVar[Facets] = _ALTERS_LEFT
    variable: str

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.left.variables, self.variable)


@dataclass(frozen=True, slots=True)
class MinusRows(_Binary):
    """The left rows without a compatible right row that shares a bound variable with them (SPARQL's MINUS)."""

    needs: ClassVar[Needs] = _WHOLE_RIGHT
    facets: ClassVar[Facets] = _CARRIES_LEFT

    @property
    def variables(self) -> tuple[str, ...]:
        return self.left.variables


@dataclass(frozen=True, slots=True)
class UnionAll(Solutions):
    """The rows of all parts, repeats included; variables that a part lacks are unbound in its rows."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("parts",), strict=(), gives="any", reads="nothing", warns=NEVER)
    parts: tuple[Solutions, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.variables))


# -- Operators over one input ------------------------------------------------------------------------

_OF: Final = Facets(carries=("of",), strict=("of",), gives="any", reads="nothing", warns=NEVER)
_OF_ALTERED: Final = Facets(carries=("of",), strict=("of",), gives="any", reads="nothing", warns=NEVER, alters=True)


@dataclass(frozen=True, slots=True)
class _Unary(Solutions):
    """Base of the operators on one input."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _OF
    of: Solutions

    @property
    def variables(self) -> tuple[str, ...]:
        return self.of.variables


@dataclass(frozen=True, slots=True)
class Filter(_Unary):
    """The rows for which the expression is true; a false or unbound result and an error drop the row."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _OF
    test: Expression


@dataclass(frozen=True, slots=True)
class WhereRows(_Unary):
    """The rows whose term of `variable` satisfies a condition; unbound, and terms other than entities and values, do
    not. Conditions are the same as for facts and values, and so run on every store.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("of",), strict=("of",), gives="any", reads="nothing", warns=NEVER, tests="values")
    variable: str
    condition: Condition


@dataclass(frozen=True, slots=True)
class BoundRows(_Unary):
    """The rows that bind all of these variables."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _OF
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Extend(_Unary):
    """Each row with `variable` bound to the value of the expression, or unbound if it has none. The rows must not
    have the variable yet.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _OF_ALTERED
    variable: str
    expression: Expression

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.of.variables, self.variable)


@dataclass(frozen=True, slots=True)
class Unwind(_Unary):
    """One row for each item of the list that the expression gives for a row, in order, with `variable` bound to the
    item and `place`, if given, to its 0-based index. Null and an empty list give no row; another term counts as a
    list of one.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _OF_ALTERED
    variable: str
    expression: Expression
    place: str | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.of.variables, self.variable, *(() if self.place is None else (self.place,)))


@dataclass(frozen=True, slots=True)
class Project(_Unary):
    """The same rows, repeats included, with only these variables, in this order; `names` pairs the new name of each
    with its name in `of`. A name that `of` does not have is unbound.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _OF_ALTERED
    names: tuple[tuple[str, str], ...]

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(new for new, _ in self.names)


@dataclass(frozen=True, slots=True)
class DistinctRows(_Unary):
    """Each row once; unbound equals unbound. Keeps the order of the input."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _OF


#: Aggregate functions. "count" counts rows, or the bound terms of a variable; "list" has the terms in the fixed
#: order (above an `OrderRows` in its order); "any" is the first of these; "text" joins their texts with
#: `separator`. Sums, means, medians and extremes are those of the table clause: exact, over the values of the most
#: frequent type and unit, with a warning about the others.
AggregateFunction: TypeAlias = Literal["count", "sum", "mean", "median", "min", "max", "list", "any", "text"]


@dataclass(frozen=True, slots=True)
class RowAggregate(Parameter):
    """One aggregate of a group, bound to `name`: `function` of the bound terms of the variable `of`, each once with
    `distinct`. Only "count" may have no `of`: it then counts rows, with `distinct` different ones. Without any term,
    "count" and "sum" are 0, "list" is empty, "text" is "", and the others are unbound.
    """

    name: str
    function: AggregateFunction
    of: str | None = None
    distinct: bool = False
    separator: str = " "

    def __str__(self) -> str:
        return f"{self.name} = {self.function}({'distinct ' * self.distinct}{self.of or ''})"


@dataclass(frozen=True, slots=True)
class GroupRows(_Unary):
    """One row for each combination of terms of `keys` (unbound is a term of its own), with its aggregates. Without
    keys all rows are one group, which exists even if there are no rows.
    """

    needs: ClassVar[Needs] = Needs(whole=("of",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="any", reads="nothing", warns=NEVER)
    keys: tuple[str, ...]
    aggregates: tuple[RowAggregate, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.keys, *(aggregate.name for aggregate in self.aggregates))


@dataclass(frozen=True, slots=True)
class RowOrder(Parameter):
    """A variable that rows are ordered by, in the fixed order of values (numbers by unit and size, times, texts and
    entities by name, then the rest); unbound terms come last (Cypher ascending) or `first` (SPARQL ascending).
    """

    variable: str
    descending: bool = False
    first: bool = False

    def __str__(self) -> str:
        return self.variable + " descending" * self.descending


@dataclass(frozen=True, slots=True)
class OrderRows(_Unary):
    """The rows ordered by these variables, the first one first; ties are in the fixed order of rows, so that every
    store orders alike.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = _OF
    by: tuple[RowOrder, ...]


@dataclass(frozen=True, slots=True)
class SliceRows(_Unary):
    """At most `number` rows (None: all) from the 0-based `start` on, in the order of the `OrderRows` below (through
    `Project`, `DistinctRows`, `Extend`, `Filter`, `WhereRows`, `BoundRows` and other slices), else in the fixed order
    of rows, so that every store cuts alike; for large existing databases the server chooses the rows.
    """

    needs: ClassVar[Needs] = Needs(whole=("of",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="any", reads="nothing", warns=NEVER)
    start: int = 0
    number: int | None = None


# -- Bridges to the other sorts ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EntitiesOf(Entities):
    """The distinct entities that a variable is bound to; other terms are dropped."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="entities", reads="nothing", warns=NEVER)
    of: Solutions
    variable: str


@dataclass(frozen=True, slots=True)
class FactsOf(Facts):
    """The distinct statements that a variable is bound to, with `reach` as the end that is reached; other terms are
    dropped.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="any", reads="nothing", warns=NEVER)
    of: Solutions
    variable: str
    reach: End = "subject"
