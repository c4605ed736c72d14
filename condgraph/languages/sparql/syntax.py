"""A SPARQL query as a tree: what `parse` makes and `lower` reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from condgraph.engine.errors import UnsupportedError


def beyond(reason: str, hint: str | None = None) -> UnsupportedError:
    """The error for what has no plan."""
    return UnsupportedError(
        "SPARQL as a plan", [reason], hint=hint or "graph.sparql(...) and `condgraph serve` answer all of SPARQL 1.1"
    )


@dataclass(frozen=True, slots=True)
class Var:
    """A variable; those of blank nodes and of paths have names that no query can write."""

    name: str

    @property
    def hidden(self) -> bool:
        """Whether no query can name it."""
        return self.name.startswith(".")


@dataclass(frozen=True, slots=True)
class Iri:
    """An absolute IRI."""

    iri: str


@dataclass(frozen=True, slots=True)
class Lit:
    """A literal: its text, the IRI of its datatype, its language ("" for none)."""

    text: str
    datatype: str
    language: str = ""


Term: TypeAlias = Var | Iri | Lit


@dataclass(frozen=True, slots=True)
class Triple:
    """A triple pattern whose predicate is known."""

    subject: Term
    predicate: Iri
    object: Term


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or function, by its name in capitals, over its arguments."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate; `of` None is `*`."""

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
    """Triple patterns that stand together: a basic graph pattern."""

    triples: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A path of any length: steps of some predicates, each with whether it is gone backwards; `least` is 0
    or 1, `most` 1 or None.
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
    """UNION; of one branch, a group of its own."""

    branches: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """BIND."""

    expression: Expression
    variable: Var


@dataclass(frozen=True, slots=True)
class Values:
    """VALUES: rows of terms, None for UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Term | None, ...], ...]


Part: TypeAlias = "Basic | PathPattern | Nested | OptionalGroup | MinusGroup | UnionGroup | Bind | Values"


@dataclass(frozen=True, slots=True)
class Group:
    """A group: its parts in order, and its filters, which are about all of it."""

    parts: tuple[Part, ...]
    filters: tuple[Expression, ...]

    def variables(self) -> list[Var]:
        """The variables that its patterns bind, in order; those that only MINUS or a filter names
        are none.
        """
        found: dict[Var, None] = {}
        for part in self.parts:
            if isinstance(part, Basic):
                terms = [term for one in part.triples for term in (one.subject, one.object)]
                found.update((term, None) for term in terms if isinstance(term, Var))
            elif isinstance(part, PathPattern):
                found.update((term, None) for term in (part.subject, part.object) if isinstance(term, Var))
            elif isinstance(part, Nested):
                found.update((one, None) for one, _ in part.query.columns)
            elif isinstance(part, OptionalGroup):
                found.update(dict.fromkeys(part.group.variables()))
            elif isinstance(part, UnionGroup):
                found.update((one, None) for branch in part.branches for one in branch.variables())
            elif isinstance(part, Bind):
                found[part.variable] = None
            elif isinstance(part, Values):
                found.update(dict.fromkeys(part.variables))
        return list(found)


@dataclass(slots=True)
class Query:
    """A SELECT or an ASK. `columns` are the projected variables, each with the expression that it
    is made from (None: it is bound by the group); `order` has an expression and whether it goes
    down. `grouped` has the keys of groups, as columns are.
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
    """An expression and all that it is made of, aggregates included, groups not."""
    found: list[Expression] = [expression]
    if isinstance(expression, Call):
        found += [inner for one in expression.arguments for inner in parts_of(one)]
    elif isinstance(expression, Aggregate) and expression.of is not None:
        found += parts_of(expression.of)
    return found
