"""What a logical query says before it is a tree: atoms over variables and constants, joined by and,
or, not and exists.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, by its name without the question mark."""

    name: str
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class Constant:
    """An entity, by its name, or by its id."""

    name: str
    is_id: bool = False
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"<{self.name}>" if self.is_id else json.dumps(self.name, ensure_ascii=False)


Term: TypeAlias = Variable | Constant


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation holds from a subject to an object."""

    relation: str
    subject: Term
    object: Term
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Typed:
    """A variable is a member of a concept."""

    concept: str
    of: Term
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Formula


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Some part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """The body holds for some entities."""

    variables: tuple[Variable, ...]
    body: Formula


Formula: TypeAlias = Atom | Typed | Not | And | Or | Exists


@dataclass(frozen=True, slots=True)
class Query:
    """A formula, and the variable whose values are asked for."""

    answer: Variable
    body: Formula

    def __str__(self) -> str:
        return f"{self.answer} : {shown(self.body)}"


def terms(formula: Atom | Typed) -> tuple[Term, ...]:
    """What an atom is about."""
    return (formula.of,) if isinstance(formula, Typed) else (formula.subject, formula.object)


def free(formula: Formula) -> frozenset[str]:
    """The names of the variables that are not bound within."""
    if isinstance(formula, (Atom, Typed)):
        return frozenset(term.name for term in terms(formula) if isinstance(term, Variable))
    if isinstance(formula, Not):
        return free(formula.part)
    if isinstance(formula, Exists):
        return free(formula.body) - {variable.name for variable in formula.variables}
    return frozenset().union(*(free(part) for part in formula.parts))


_STRENGTH: Final = {Or: 1, And: 2}


def shown(formula: Formula, around: int = 0) -> str:
    """A formula as text, which reads back to an equal one."""
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


#: Words of the language, which a name that is one of them has in quotes.
WORDS: Final = frozenset({"and", "or", "not", "exists"})
#: A word as it is read (`languages.logic.text`): marks that stand on letters are no part of one.
_WORD: Final = re.compile(r"[^\W\d]\w*").fullmatch


def name_text(name: str) -> str:
    """A relation or concept as it is written: a word, or in double quotes as in JSON."""
    plain = _WORD(name) and name.casefold() not in WORDS
    return name if plain else json.dumps(name, ensure_ascii=False)
