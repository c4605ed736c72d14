"""Queries by the name of their structure (BetaE's fourteen, `4p` and `5p`), and the nested tuples in
which BetaE publishes queries.

    query("2in", ["Oscar", "winner"], ["France", "citizen"])
    query(((3, (7,)), (12, (5, -2))))

A branch is a constant and the relations that are followed from it; a relation with `^` before it is
followed from object to subject. In the tuples a number is an id, or a relation of that name, -2
negates what it follows, and `(-1,)` makes the branches before it a union. `pni` is what BetaE means
by it, `not exists ?v. (r1(c, ?v) and r2(?v, ?x))`; the other reading (Eq. 9) is written as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from condgraph.engine.errors import OptionError, ParseError, UnknownNameError, nearest
from condgraph.languages.logic.formula import And, Atom, Constant, Exists, Formula, Not, Or, Query, Term, Variable

#: What a structure is made of: a number is the place of a branch among those given, a tuple joins
#: parts; `n` negates, `i` and `u` join, `p` follows one more relation, which is given last.
Shape: TypeAlias = int | tuple[Any, ...]
#: The relations of each branch, and the shape.
STRUCTURES: Final[Mapping[str, tuple[tuple[int, ...], Shape]]] = {
    "1p": ((1,), 0),
    "2p": ((2,), 0),
    "3p": ((3,), 0),
    "4p": ((4,), 0),
    "5p": ((5,), 0),
    "2i": ((1, 1), ("i", 0, 1)),
    "3i": ((1, 1, 1), ("i", 0, 1, 2)),
    "pi": ((2, 1), ("i", 0, 1)),
    "ip": ((1, 1), ("p", ("i", 0, 1))),
    "2u": ((1, 1), ("u", 0, 1)),
    "up": ((1, 1), ("p", ("u", 0, 1))),
    "2in": ((1, 1), ("i", 0, ("n", 1))),
    "3in": ((1, 1, 1), ("i", 0, 1, ("n", 2))),
    "inp": ((1, 1), ("p", ("i", 0, ("n", 1)))),
    "pin": ((2, 1), ("i", 0, ("n", 1))),
    "pni": ((2, 1), ("i", ("n", 0), 1)),
}
NEGATION, UNION = -2, -1
_ROOT: Final = Variable("x")
#: How deep tuples may be nested, and how many constants and relations they may have.
DEEPEST, MOST = 40, 200


def named(name: str, branches: Sequence[Any]) -> Query:
    """The query of a structure; raises `UnknownNameError` for another name, and `OptionError` for
    branches that do not fit.
    """
    if name not in STRUCTURES:
        hint = f"they are {', '.join(STRUCTURES)}"
        raise UnknownNameError("query structure", name, candidates=nearest(name, STRUCTURES), hint=hint)
    lengths, shape = STRUCTURES[name]
    further = 1 if isinstance(shape, tuple) and shape[0] == "p" else 0
    wanted = ", ".join(f"[entity{', relation' * length}]" for length in lengths) + ", relation" * further
    if len(branches) != len(lengths) + further:
        raise OptionError(f"{name} takes {len(lengths) + further} branches, not {len(branches)}", hint=f"{name!r}, {wanted}")
    made = _VariableMaker()
    given: list[tuple[Term, list[str]]] = []
    for branch, length in zip(branches, lengths, strict=False):
        if isinstance(branch, str) or not isinstance(branch, Sequence) or len(branch) != length + 1:
            raise OptionError(f"a branch of {name} does not fit: {branch!r}", hint=f"{name!r}, {wanted}")
        given.append((_constant(branch[0]), [_relation(one) for one in branch[1:]]))

    def build(part: Shape, of: Variable) -> Formula:
        if isinstance(part, int):
            return made.path(*given[part], of)
        if part[0] == "n":
            return Not(build(part[1], of))
        if part[0] == "p":
            below = made.variable()
            return Exists((below,), And((build(part[1], below), made.edge(_relation(branches[-1]), below, of))))
        return (And if part[0] == "i" else Or)(tuple(build(one, of) for one in part[1:]))

    return Query(_ROOT, build(shape, _ROOT))


def nested(program: Any) -> Query:
    """The query of BetaE's nested tuples (or lists, as JSON has them); raises `ParseError`."""
    return Query(_ROOT, _VariableMaker().nested(program, _ROOT, 0))


def is_nested(program: Any) -> bool:
    """Whether something looks like such tuples: they hold numbers, or names, and no other things."""
    while isinstance(program, Sequence) and not isinstance(program, str) and len(program) > 1:
        if _scalar(program[0]):
            return _path(program[1]) and len(program) == 2
        program = program[0]
    return False


def _scalar(part: Any) -> bool:
    return isinstance(part, (str, int)) and not isinstance(part, bool)


def _path(part: Any) -> bool:
    return isinstance(part, Sequence) and not isinstance(part, str) and bool(part) and all(map(_scalar, part))


def _constant(given: Any) -> Constant:
    if not _scalar(given):
        raise OptionError(f"an entity is a name or a number, not {given!r}")
    return Constant(given) if isinstance(given, str) else Constant(str(given), True)


def _relation(given: Any) -> str:
    if not _scalar(given):
        raise OptionError(f"a relation is a name or a number, not {given!r}")
    return str(given)


class _VariableMaker:
    """Variables that are made one after the other."""

    def __init__(self) -> None:
        self.variables = self.parts = 0

    def variable(self) -> Variable:
        self.variables += 1
        return Variable(f"v{self.variables}")

    def edge(self, relation: str, below: Term, above: Variable) -> Atom:
        self.parts += 1
        if self.parts > MOST:
            raise ParseError(f"a query has at most {MOST} atoms")
        return Atom(relation[1:], above, below) if relation.startswith("^") else Atom(relation, below, above)

    def path(self, start: Term, relations: Sequence[str], of: Variable) -> Formula:
        below: list[Variable] = [self.variable() for _ in relations[1:]]
        nodes: list[Term] = [start, *below]
        edges = [self.edge(relation, node, above) for relation, node, above in zip(relations, nodes, [*below, of], strict=True)]
        return Exists(tuple(below), And(tuple(edges))) if below else edges[0]

    def nested(self, program: Any, of: Variable, depth: int) -> Formula:
        if depth > DEEPEST:
            raise ParseError(f"the query is nested deeper than {DEEPEST}")
        if isinstance(program, str) or not isinstance(program, Sequence) or len(program) < 2:
            raise ParseError(f"{str(program)[:60]!r} is no nested query", hint="such as ((3, (7,)), (12, (5, -2)))")
        if _path(program[-1]) and list(program[-1]) != [UNION] and len(program) == 2:
            return self._followed(program[0], list(program[1]), of, depth)
        union = isinstance(program[-1], Sequence) and list(program[-1]) == [UNION]
        parts = tuple(self.nested(part, of, depth + 1) for part in (program[:-1] if union else program))
        return Or(parts) if union else And(parts)

    def _followed(self, base: Any, path: list[Any], of: Variable, depth: int) -> Formula:
        """The relations and negations of a path, the last one outermost."""
        if depth > DEEPEST or len(path) > MOST:
            raise ParseError(f"the query is nested deeper than {DEEPEST}")
        last, rest = path[-1], path[:-1]
        if last == NEGATION:
            return Not(self._followed(base, rest, of, depth) if rest else self._based(base, of, depth))
        relation = _relation(last)
        if not rest and _scalar(base):
            return self.edge(relation, _constant(base), of)
        below = self.variable()
        inner = self._followed(base, rest, below, depth + 1) if rest else self._based(base, below, depth)
        return Exists((below,), And((inner, self.edge(relation, below, of))))

    def _based(self, base: Any, of: Variable, depth: int) -> Formula:
        if _scalar(base):
            raise ParseError(f"there is no relation from {base!r}")
        return self.nested(base, of, depth + 1)
