"""What the rows of a table, and the ends of its paths, are: concepts and tables, as far as the plan
and the schema say. Never the facts, so that a name means the same on every store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import passed, postorder

if TYPE_CHECKING:
    from condgraph.engine.schema import Classes, End
    from condgraph.engine.store import KnownSchema

#: Every entity is of one class, or more, of each of these sets: of those that a concept has, and of
#: those that a predicate has. Nothing is known where there are none; None for certain entities, of
#: whatever class.
Known: TypeAlias = "tuple[Classes, ...] | None"
_ANYTHING: Final[Known] = ()


def classes_of(root: alg.Node, schema: KnownSchema) -> Known:
    """The classes of the entities that an operator gives, or its facts reach."""
    found: dict[int, Known] = {}
    for node in postorder(root):
        found[id(node)] = _of(node, schema, found)
    return found[id(root)]


def _of(node: alg.Node, schema: KnownSchema, found: dict[int, Known]) -> Known:
    if isinstance(node, alg.AllEntities):
        rows = None if node.source is None else schema.table_classes(node.source)
        return (rows,) if rows is not None and node.own else _ANYTHING
    if isinstance(node, alg.Members) and isinstance(node.concepts, alg.ByName):
        below = [schema.concept_classes(name) for name in node.concepts.names]
        return _one_of(below)
    if isinstance(node, alg.Reached):
        return found[id(node.facts)]
    if isinstance(node, alg.Scan):
        of = None if node.of is None else found[id(node.of)]
        return (*((of or ()) if node.reach == node.anchor else ()), *ends(node.predicates, node.reach, schema))
    if isinstance(node, alg.OtherEnd):
        scan: alg.Facts = node
        while (inner := passed(scan)) is not None:
            scan = inner
        return ends(scan.predicates, node.reach, schema) if isinstance(scan, alg.Scan) else _ANYTHING
    if isinstance(node, alg.Union):
        parts = [found[id(part)] for part in node.parts]
        if None in parts:
            return None
        return _one_of([min(part, key=len) if part else None for part in parts if part is not None])
    if isinstance(node, alg.Intersect):
        known = [found[id(part)] for part in node.parts]
        return tuple(one for part in known for one in part or ()) or (None if None in known else _ANYTHING)
    if isinstance(node, alg.ArgExtreme):
        return (*(found[id(node.of)] or ()), *ends((node.key,), "subject", schema))
    if isinstance(node, alg.Minus):
        return found[id(node.left)]
    if isinstance(node, alg.Facts) and (inner := passed(node)) is not None:
        return found[id(inner)]
    return None


def _one_of(some: list[Classes | None]) -> Known:
    """What is of any of some classes."""
    known = [one for one in some if one is not None]
    return (frozenset().union(*known),) if len(known) == len(some) else _ANYTHING


def ends(predicates: tuple[str, ...] | None, end: End, schema: KnownSchema) -> tuple[Classes, ...]:
    """The classes of one end of the statements of some predicates; nothing where they are not known."""
    return () if predicates is None else _one_of([schema.end_classes(name, end) for name in predicates]) or ()


def may_have(known: Known, predicate: str, end: End, schema: KnownSchema) -> bool | None:
    """Whether entities of these classes may be an end of statements of a predicate; None where that is
    not known.
    """
    have = schema.end_classes(predicate, end)
    return None if have is None or known is None else all(have & one for one in known)


def all_may_have(known: Known, predicate: str, schema: KnownSchema) -> bool:
    """Whether entities of all of these classes are subjects of a predicate, or that is not known."""
    have = schema.end_classes(predicate, "subject")
    return have is None or any(one <= have for one in known or ())


def in_words(classes: Classes) -> str:
    """Classes as messages list them."""
    names = sorted({name for _, name in classes if name})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
