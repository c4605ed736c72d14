"""The syntax tree of SPARQL queries, which `parse` makes and `lower` reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from condgraph.engine.errors import UnsupportedError


def beyond(reason: str, hint: str | None = None) -> UnsupportedError:
    """Return the error for a feature without a plan."""
    return UnsupportedError(
        "SPARQL as a plan", [reason], hint=hint or "graph.sparql(...) and `condgraph serve` answer all of SPARQL 1.1"
    )


@dataclass(frozen=True, slots=True)
class Var:
    """A variable; those of blank nodes and paths have names that no query can use."""

    name: str

    @property
    def hidden(self) -> bool:
        """Whether it is the variable of a blank node or path."""
        return self.name.startswith(".")


@dataclass(frozen=True, slots=True)
class Iri:
    """An absolute IRI."""

    iri: str


@dataclass(frozen=True, slots=True)
class Lit:
    """A literal: its text, the IRI of its datatype, and its language ("" for none)."""

    text: str
    datatype: str
    language: str = ""


Term: TypeAlias = Var | Iri | Lit


@dataclass(frozen=True, slots=True)
class Triple:
    """A triple pattern with a fixed predicate."""

    subject: Term
    predicate: Iri
    object: Term


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator by its name in capitals, and its arguments."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate; `of` None means `*`."""

    name: str
    of: Expression | None
    distinct: bool
    separator: str = " "


@dataclass(frozen=True, slots=True)
class Exists:
    """Whether a group has a solution."""

    group: Group
    negated: bool


Expression: TypeAlias = Term | Call | Aggregate | Exists


@dataclass(frozen=True, slots=True)
class Basic:
    """Adjacent triple patterns: a basic graph pattern."""

    triples: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A path of variable length.

    `hops` are alternative predicates, each with whether it is followed backwards; `least` is 0 or 1,
    `most` 1 or None.
    """

    subject: Term
    hops: tuple[tuple[Iri, bool], ...]
    object: Term
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Nested:
    """A SELECT within a group."""

    query: Query


@dataclass(frozen=True, slots=True)
class OptionalGroup:
    """OPTIONAL."""

    group: Group


@dataclass(frozen=True, slots=True)
class MinusGroup:
    """MINUS."""

    group: Group


@dataclass(frozen=True, slots=True)
class UnionGroup:
    """UNION; with one branch, a nested group."""

    branches: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """BIND."""

    expression: Expression
    variable: Var


@dataclass(frozen=True, slots=True)
class Values:
    """VALUES: rows of terms, with None for UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Term | None, ...], ...]


Part: TypeAlias = "Basic | PathPattern | Nested | OptionalGroup | MinusGroup | UnionGroup | Bind | Values"


@dataclass(frozen=True, slots=True)
class Group:
    """A group: its parts in order, and its filters, which apply to all of it."""

    parts: tuple[Part, ...]
    filters: tuple[Expression, ...]

    def variables(self) -> list[Var]:
        """Return the variables that the group binds, in order.

        Variables that only MINUS or a filter mentions are not bound.
        """
        bound: dict[Var, None] = {}
        for part in self.parts:
            if isinstance(part, Basic):
                terms = [term for triple in part.triples for term in (triple.subject, triple.object)]
                bound.update((term, None) for term in terms if isinstance(term, Var))
            elif isinstance(part, PathPattern):
                bound.update((term, None) for term in (part.subject, part.object) if isinstance(term, Var))
            elif isinstance(part, Nested):
                bound.update((variable, None) for variable, _ in part.query.columns)
            elif isinstance(part, OptionalGroup):
                bound.update(dict.fromkeys(part.group.variables()))
            elif isinstance(part, UnionGroup):
                bound.update((variable, None) for branch in part.branches for variable in branch.variables())
            elif isinstance(part, Bind):
                bound[part.variable] = None
            elif isinstance(part, Values):
                bound.update(dict.fromkeys(part.variables))
        return list(bound)


@dataclass(slots=True, eq=False)
class Query:
    """A SELECT or ASK query, compared by identity: an EXISTS with one is a key of a mapping.

    `columns` are the projected variables, each with its expression (None if the group binds it).
    `grouped` has the grouping keys in the same form. `order` has pairs of an expression and whether it
    is descending.
    """

    form: Literal["select", "ask"]
    group: Group
    distinct: bool = False
    columns: list[tuple[Var, Expression | None]] = field(default_factory=list)
    grouped: list[tuple[Var, Expression | None]] = field(default_factory=list)
    having: list[Expression] = field(default_factory=list)
    order: list[tuple[Expression, bool]] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0


def parts_of(expression: Expression) -> list[Expression]:
    """Return an expression and all its subexpressions, including those of aggregates but not of groups."""
    parts: list[Expression] = [expression]
    if isinstance(expression, Call):
        parts += [part for argument in expression.arguments for part in parts_of(argument)]
    elif isinstance(expression, Aggregate) and expression.of is not None:
        parts += parts_of(expression.of)
    return parts
