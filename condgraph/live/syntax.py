"""A SPARQL query as far as it is answered live: what `parse` makes and the compiler reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from condgraph.engine.errors import UnsupportedError

#: What refuses.
TARGET = "SPARQL answered live over Neo4j"


def beyond(reason: str, hint: str | None = None) -> UnsupportedError:
    """The error for what is not answered live."""
    return UnsupportedError(TARGET, [reason], hint=hint)


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
class Maybe:
    """OPTIONAL."""

    group: Group


@dataclass(frozen=True, slots=True)
class Without:
    """MINUS."""

    group: Group


@dataclass(frozen=True, slots=True)
class Either:
    """UNION; of one branch, a group of its own."""

    branches: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """BIND."""

    expression: Expression
    variable: Var


@dataclass(frozen=True, slots=True)
class Values:
    """VALUES: rows of terms."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Term, ...], ...]


Part: TypeAlias = Basic | Maybe | Without | Either | Bind | Values


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
            elif isinstance(part, Maybe):
                found.update(dict.fromkeys(part.group.variables()))
            elif isinstance(part, Either):
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
    down.
    """

    form: Literal["select", "ask"]
    group: Group
    distinct: bool = False
    columns: list[tuple[Var, Expression | None]] = field(default_factory=list)
    grouped: list[Var] = field(default_factory=list)
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
