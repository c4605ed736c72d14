"""Queries by the name of their structure (BetaE's fourteen, `4p` and `5p`), and BetaE's nested tuples.

    query("2in", ["Oscar", "winner"], ["France", "citizen"])
    query(((3, (7,)), (12, (5, -2))))

A branch is a constant and the relations followed from it; a relation with a leading `^` is followed
from object to subject. In the tuples a number is an id, or a relation of that name; -2 negates what
it follows, and `(-1,)` makes a union of the branches before it. `pni` has BetaE's meaning,
`not exists ?v. (r1(c, ?v) and r2(?v, ?x))`; the other reading (Eq. 9) can be written as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from condgraph.engine.errors import OptionError, ParseError, UnknownNameError, nearest
from condgraph.languages.logic.formula import And, Atom, Constant, Exists, Formula, Not, Or, Query, Term, Variable

#: A structure: a number is the index of a branch, a tuple combines parts. `n` negates, `i` intersects,
#: `u` unites, and `p` follows one more relation, which is the last argument.
Shape: TypeAlias = int | tuple[Any, ...]
#: The number of relations of each branch, and the shape.
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
#: The deepest nesting of tuples, and the most atoms of a query.
MAX_DEPTH, MAX_ATOMS = 40, 200


def named(name: str, branches: Sequence[Any]) -> Query:
    """Return the query of a structure.

    Raises `UnknownNameError` for an unknown structure, and `OptionError` if the branches do not fit.
    """
    if name not in STRUCTURES:
        hint = f"they are {', '.join(STRUCTURES)}"
        raise UnknownNameError("query structure", name, candidates=nearest(name, STRUCTURES), hint=hint)
    lengths, shape = STRUCTURES[name]
    extra = 1 if isinstance(shape, tuple) and shape[0] == "p" else 0
    form = ", ".join(f"[entity{', relation' * length}]" for length in lengths) + ", relation" * extra
    if len(branches) != len(lengths) + extra:
        raise OptionError(f"{name} takes {len(lengths) + extra} branches, not {len(branches)}", hint=f"{name!r}, {form}")
    maker = _VariableMaker()
    starts: list[tuple[Term, list[str]]] = []
    for branch, length in zip(branches, lengths, strict=False):
        if isinstance(branch, str) or not isinstance(branch, Sequence) or len(branch) != length + 1:
            raise OptionError(f"a branch of {name} does not fit: {branch!r}", hint=f"{name!r}, {form}")
        starts.append((_constant(branch[0]), [_relation(item) for item in branch[1:]]))

    def build(part: Shape, of: Variable) -> Formula:
        if isinstance(part, int):
            return maker.path(*starts[part], of)
        if part[0] == "n":
            return Not(build(part[1], of))
        if part[0] == "p":
            below = maker.variable()
            return Exists((below,), And((build(part[1], below), maker.edge(_relation(branches[-1]), below, of))))
        return (And if part[0] == "i" else Or)(tuple(build(item, of) for item in part[1:]))

    return Query(_ROOT, build(shape, _ROOT))


def nested(program: Any) -> Query:
    """Return the query of BetaE's nested tuples, or lists in JSON; raises `ParseError`."""
    return Query(_ROOT, _VariableMaker().nested(program, _ROOT, 0))


def is_nested(program: Any) -> bool:
    """Whether something looks like such tuples, which hold only numbers and names."""
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
    """Builds formulas with numbered variables."""

    def __init__(self) -> None:
        self.variables = self.parts = 0

    def variable(self) -> Variable:
        self.variables += 1
        return Variable(f"v{self.variables}")

    def edge(self, relation: str, below: Term, above: Variable) -> Atom:
        self.parts += 1
        if self.parts > MAX_ATOMS:
            raise ParseError(f"a query has at most {MAX_ATOMS} atoms")
        return Atom(relation[1:], above, below) if relation.startswith("^") else Atom(relation, below, above)

    def path(self, start: Term, relations: Sequence[str], of: Variable) -> Formula:
        below: list[Variable] = [self.variable() for _ in relations[1:]]
        nodes: list[Term] = [start, *below]
        edges = [self.edge(relation, node, above) for relation, node, above in zip(relations, nodes, [*below, of], strict=True)]
        return Exists(tuple(below), And(tuple(edges))) if below else edges[0]

    def nested(self, program: Any, of: Variable, depth: int) -> Formula:
        if depth > MAX_DEPTH:
            raise ParseError(f"the query is nested deeper than {MAX_DEPTH}")
        if isinstance(program, str) or not isinstance(program, Sequence) or len(program) < 2:
            raise ParseError(f"{str(program)[:60]!r} is not a nested query", hint="such as ((3, (7,)), (12, (5, -2)))")
        if _path(program[-1]) and list(program[-1]) != [UNION] and len(program) == 2:
            return self._followed(program[0], list(program[1]), of, depth)
        union = isinstance(program[-1], Sequence) and list(program[-1]) == [UNION]
        parts = tuple(self.nested(part, of, depth + 1) for part in (program[:-1] if union else program))
        return Or(parts) if union else And(parts)

    def _followed(self, base: Any, path: list[Any], of: Variable, depth: int) -> Formula:
        """Apply the relations and negations of a path, the last one outermost."""
        if depth > MAX_DEPTH or len(path) > MAX_ATOMS:
            raise ParseError(f"the query is nested deeper than {MAX_DEPTH}")
        last, earlier = path[-1], path[:-1]
        if last == NEGATION:
            return Not(self._followed(base, earlier, of, depth) if earlier else self._based(base, of, depth))
        relation = _relation(last)
        if not earlier and _scalar(base):
            return self.edge(relation, _constant(base), of)
        below = self.variable()
        inner = self._followed(base, earlier, below, depth + 1) if earlier else self._based(base, below, depth)
        return Exists((below,), And((inner, self.edge(relation, below, of))))

    def _based(self, base: Any, of: Variable, depth: int) -> Formula:
        if _scalar(base):
            raise ParseError(f"there is no relation from {base!r}")
        return self.nested(base, of, depth + 1)
