"""Converts a formula to its query computation tree (QTO, Appendix A), or explains why it has none.

First comes the negation normal form: `not` is pushed inwards to atoms and to `exists` by De Morgan's
laws, which the product t-norm preserves. Then every `exists` is decomposed: parts without its
variables are moved out, and the others are attached to the node above by one atom. Two such atoms are
a cycle. For `or` under `exists`, branches attached by the same atom are merged (Eq. 15), and the
others get variables of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from condgraph.engine.errors import MAX_CANDIDATE, CyclicQueryError, PlanError, UnsafeQueryError, shortened
from condgraph.languages.logic import tree as query_tree
from condgraph.languages.logic.formula import (
    And,
    Atom,
    Exists,
    Formula,
    Not,
    Or,
    Query,
    Span,
    Term,
    Typed,
    Variable,
    free,
    shown,
    terms,
)


def tree_of(query: Query) -> query_tree.Tree:
    """Return the query computation tree of a query.

    Raises `CyclicQueryError`, and `PlanError` if the formula is no tree for another reason.
    """
    names = {query.answer.name}
    body = _normal(query.body, False, {query.answer.name: query.answer}, names)
    unbound = sorted(free(body) - {query.answer.name})
    if unbound:
        name = shortened(unbound[0], MAX_CANDIDATE)
        raise PlanError(
            f"the variable ?{name} is bound by nothing",
            span=_span_of(body, unbound[0]),
            hint=f"write exists ?{name}. before it",
        )
    return _tree(query.answer.name, body)


def checked_safe(tree: query_tree.Tree, *, bound: bool = False) -> None:
    """Raise `UnsafeQueryError` if a query only says what its answers are not.

    `bound` means that something else limits the answers.
    """
    if not bound and not query_tree.bounded(tree):
        raise UnsafeQueryError(
            "the query only excludes answers, so that almost every node of the graph is one",
            hint="add what they are, such as a type: country(?x); or ask for the first k with graph.logic(..., k=10)",
        )


# -- negation normal form --------------------------------------------------------------------------


def _normal(formula: Formula, negated: bool, scope: dict[str, Variable], used: set[str]) -> Formula:
    """Return the formula, or its negation, in negation normal form, with unique names of bound variables."""
    if isinstance(formula, Not):
        return _normal(formula.part, not negated, scope, used)
    if isinstance(formula, (And, Or)):
        conjunction = isinstance(formula, And) != negated
        kind = And if conjunction else Or
        parts: list[Formula] = []
        for part in formula.parts:
            result = _normal(part, negated, scope, used)
            parts.extend(result.parts if isinstance(result, kind) else (result,))
        return kind(tuple(parts))
    if isinstance(formula, Exists):
        inner, renamed = dict(scope), []
        for variable in formula.variables:
            name = variable.name
            while name in used:
                name += "'"
            used.add(name)
            inner[variable.name] = Variable(name, variable.span)
            renamed.append(inner[variable.name])
        body = _normal(formula.body, False, inner, used)
        result = Exists(tuple(renamed), body)
    elif isinstance(formula, Typed):
        result = Typed(formula.concept, _renamed(formula.of, scope), formula.span)
    else:
        result = Atom(formula.relation, _renamed(formula.subject, scope), _renamed(formula.object, scope), formula.span)
    return Not(result) if negated else result


def _renamed(term: Term, scope: dict[str, Variable]) -> Term:
    if isinstance(term, Variable) and term.name in scope:
        return Variable(scope[term.name].name, term.span)
    return term


# -- the tree --------------------------------------------------------------------------------------


def _tree(root: str, formula: Formula) -> query_tree.Tree:
    """Return the node of a variable, given a formula with no other free variable."""
    if isinstance(formula, (And, Or)):
        parts = tuple(_tree(root, part) for part in formula.parts)
        return query_tree.Intersection(parts) if isinstance(formula, And) else query_tree.Union(parts)
    if isinstance(formula, Not):
        return query_tree.Complement(_tree(root, formula.part))
    if isinstance(formula, Exists):
        return _exists(root, {variable.name for variable in formula.variables}, formula.body)
    if isinstance(formula, Typed):
        _speaks(root, formula)
        return query_tree.OfType(formula.concept, formula.span)
    return _atom(root, formula)


def _speaks(root: str, formula: Atom | Typed) -> None:
    if root not in free(formula):
        raise PlanError(f"{shown(formula)} is not joined to ?{root}", span=formula.span, hint="every atom is joined to the answer")


def _atom(
    root: str, atom: Atom, below: query_tree.Tree | None = None, variable: str | None = None, anti: bool = False
) -> query_tree.Projection:
    """Return the edge of an atom to the node of `root`, from a constant or from the node `below`."""
    _speaks(root, atom)
    at_object = isinstance(atom.object, Variable) and atom.object.name == root
    other = atom.subject if at_object else atom.object
    if isinstance(other, Variable) and other.name == root:
        raise CyclicQueryError(
            f"{shown(atom)} joins ?{root} with itself, which is a cycle", span=atom.span, hint="a query is a tree of variables"
        )
    if below is None:
        assert not isinstance(other, Variable)
        below = query_tree.Anchor(other.name, other.is_id, other.span)
    return query_tree.Projection(atom.relation, below, not at_object, anti, variable, atom.span)


def _exists(root: str, bound: set[str], body: Formula) -> query_tree.Tree:
    parts = _conjuncts(body, bound)
    if len(parts) == 1 and isinstance(parts[0], Or):
        branches = _merged(root, bound, parts[0])
        if len(branches) > 1:
            return query_tree.Union(tuple(_exists(root, set(bound), branch) for branch in branches))
        parts = _conjuncts(branches[0], bound)
    independent = [part for part in parts if not free(part) & bound]
    nodes = [_tree(root, part) for part in independent]
    for component in _components([part for part in parts if free(part) & bound], bound):
        nodes.append(_branch(root, bound, component))
    return nodes[0] if len(nodes) == 1 else query_tree.Intersection(tuple(nodes))


def _conjuncts(body: Formula, bound: set[str]) -> list[Formula]:
    """Return the parts of a conjunction; the variables of nested `exists` are added to `bound`."""
    if isinstance(body, And):
        return [part for conjunct in body.parts for part in _conjuncts(conjunct, bound)]
    if isinstance(body, Exists):
        bound.update(variable.name for variable in body.variables)
        return _conjuncts(body.body, bound)
    return [body]


def _components(parts: Sequence[Formula], bound: set[str]) -> list[list[Formula]]:
    """Group the parts that share bound variables, in their order."""
    groups: list[tuple[set[str], list[Formula]]] = []
    for part in parts:
        names, members = set(free(part) & bound), [part]
        apart = []
        for group in groups:
            if group[0] & names:
                names |= group[0]
                members = group[1] + members
            else:
                apart.append(group)
        groups = [*apart, (names, members)]
    return [members for _, members in groups]


def _branch(root: str, bound: set[str], parts: list[Formula]) -> query_tree.Tree:
    """Return the branch that is attached to `root` by one atom."""
    links = [part for part in parts if root in free(part)]
    if not links:
        first = parts[0]
        raise PlanError(f"{shown(first)} is not joined to ?{root}", span=_span(first), hint="every atom is joined to the answer")
    if len(links) > 1:
        both = " and ".join(shown(link) for link in links[:2])
        raise CyclicQueryError(
            f"the query is cyclic: {both} join ?{root} twice to what hangs from it",
            span=_span(links[1]),
            hint="only trees are answered; match(...) finds subgraphs with cycles",
        )
    link, anti = links[0], False
    if isinstance(link, Not) and isinstance(link.part, Atom):
        link, anti = link.part, True
    if not isinstance(link, Atom):
        _no_tree(root, links[0])
    (other_name,) = (term.name for term in terms(link) if isinstance(term, Variable) and term.name != root)
    lower_parts = [part for part in parts if part is not links[0]]
    below: query_tree.Tree = query_tree.Anything()
    if lower_parts:
        below = _exists(other_name, bound - {other_name}, And(tuple(lower_parts)) if len(lower_parts) > 1 else lower_parts[0])
    return _atom(root, link, below, other_name, anti)


def _no_tree(root: str, formula: Formula) -> NoReturn:
    raise PlanError(
        f"{shown(formula)} joins ?{root} to another variable by more than one atom, which is not a tree",
        span=_span(formula),
        hint="write the query as a disjunction of conjunctions, each a tree; a negated part may join by one atom",
    )


def _merged(root: str, bound: set[str], formula: Or) -> list[Formula]:
    """Return the branches of a union under `exists`, merging those attached by the same atoms (Eq. 15)."""
    groups: dict[frozenset[Formula], list[list[Formula]]] = {}
    for branch in formula.parts:
        parts = _conjuncts(branch, bound)
        links = frozenset(part for part in parts if root in free(part) and free(part) & bound)
        groups.setdefault(links, []).append(parts)
    result: list[Formula] = []
    for links, branches in groups.items():
        remainders = [[part for part in parts if part not in links] for parts in branches]
        if (
            len(branches) > 1
            and links
            and all(remainders)
            and not any(root in free(part) for remainder in remainders for part in remainder)
        ):
            result.append(And((*sorted(links, key=shown), Or(tuple(_and(remainder) for remainder in remainders)))))
        else:
            result.extend(_and(parts) for parts in branches)
    return result


def _and(parts: Sequence[Formula]) -> Formula:
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _atoms(formula: Formula) -> Iterable[Atom | Typed]:
    if isinstance(formula, (Atom, Typed)):
        yield formula
    else:
        parts = (
            formula.parts if isinstance(formula, (And, Or)) else (formula.body if isinstance(formula, Exists) else formula.part,)
        )
        for part in parts:
            yield from _atoms(part)


def _span(formula: Formula) -> Span | None:
    return next((atom.span for atom in _atoms(formula) if atom.span is not None), None)


def _span_of(formula: Formula, name: str) -> Span | None:
    for atom in _atoms(formula):
        for term in terms(atom):
            if isinstance(term, Variable) and term.name == name:
                return term.span
    return None
