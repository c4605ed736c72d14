"""Formulas of logical queries: atoms over variables and constants, joined by and, or, not and exists."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable; its name has no question mark."""

    name: str
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class Constant:
    """An entity by its name or id."""

    name: str
    is_id: bool = False
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"<{self.name}>" if self.is_id else json.dumps(self.name, ensure_ascii=False)


Term: TypeAlias = Variable | Constant


@dataclass(frozen=True, slots=True)
class Atom:
    """The atom that a relation holds from a subject to an object."""

    relation: str
    subject: Term
    object: Term
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Typed:
    """The atom that a term is a member of a concept."""

    concept: str
    of: Term
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """A negation."""

    part: Formula


@dataclass(frozen=True, slots=True)
class And:
    """A conjunction."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """A disjunction."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """An existential quantifier over entities."""

    variables: tuple[Variable, ...]
    body: Formula


Formula: TypeAlias = Atom | Typed | Not | And | Or | Exists


@dataclass(frozen=True, slots=True)
class Query:
    """A formula, and the variable whose values are the answer."""

    answer: Variable
    body: Formula

    def __str__(self) -> str:
        return f"{self.answer} : {shown(self.body)}"


def terms(formula: Atom | Typed) -> tuple[Term, ...]:
    """Return the terms of an atom."""
    return (formula.of,) if isinstance(formula, Typed) else (formula.subject, formula.object)


def free(formula: Formula) -> frozenset[str]:
    """Return the names of the free variables."""
    if isinstance(formula, (Atom, Typed)):
        return frozenset(term.name for term in terms(formula) if isinstance(term, Variable))
    if isinstance(formula, Not):
        return free(formula.part)
    if isinstance(formula, Exists):
        return free(formula.body) - {variable.name for variable in formula.variables}
    return frozenset().union(*(free(part) for part in formula.parts))


_STRENGTH: Final = {Or: 1, And: 2}


def shown(formula: Formula, around: int = 0) -> str:
    """Return a formula as text, which parses to an equal one."""
    if isinstance(formula, Typed):
        return f"{name_text(formula.concept)}({formula.of})"
    if isinstance(formula, Atom):
        return f"{name_text(formula.relation)}({formula.subject}, {formula.object})"
    if isinstance(formula, Not):
        return f"not {shown(formula.part, 3)}"
    if isinstance(formula, Exists):
        text = f"exists {', '.join(map(str, formula.variables))}. {shown(formula.body)}"
        return f"({text})" if around else text
    strength = _STRENGTH[type(formula)]
    text = (" or " if isinstance(formula, Or) else " and ").join(shown(part, strength) for part in formula.parts)
    return f"({text})" if around >= strength else text


#: Keywords; a name that is one of them must be quoted.
WORDS: Final = frozenset({"and", "or", "not", "exists"})
#: A word as `languages.logic.text` tokenizes it; combining marks are not part of one.
_WORD: Final = re.compile(r"[^\W\d]\w*").fullmatch


def name_text(name: str) -> str:
    """Return a relation or concept as it is written: a word, or a JSON string."""
    plain = _WORD(name) and name.casefold() not in WORDS
    return name if plain else json.dumps(name, ensure_ascii=False)
