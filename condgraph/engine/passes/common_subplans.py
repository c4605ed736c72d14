"""Equal parts of a plan become one part, so that they are run (and, on a server, bound) once.

>>> from condgraph.engine.algebra import ByName, Intersect, Reached, Scan
>>> def films(): return Reached(Scan(ByName(("Ann",)), ("director",), "object", "subject", "relation"))
>>> before = Intersect((films(), films()))
>>> before.parts[0] is before.parts[1]
False
>>> after = share(before)
>>> after == before, after.parts[0] is after.parts[1]
(True, True)
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from condgraph.engine.algebra import AllEntities, ById, ByName, Constants, Node, Scan
from condgraph.engine.passes.rewrite import mark, rewrite

#: Operators that take none and are worth looking at; every entity is kept by the store anyway.
_LEAVES: Final = frozenset((ByName, ById, Constants))


def applies(order: list[Node]) -> bool:
    """Equal parts have equal leaves, or equal scans of the same leaf; most plans have none."""
    kinds = list(map(type, order))
    if kinds.count(Scan) < 2 and sum(map(kinds.count, _LEAVES)) < 2:
        return False
    seen: set[Hashable] = set()
    for node in order:
        key: Hashable
        if type(node) is Scan:
            of = AllEntities if type(node.of) is AllEntities else id(node.of)
            key = (node.predicates, node.anchor, node.reach, of)
        elif type(node) in _LEAVES:
            key = node
        else:
            continue
        if key in seen:
            return True
        seen.add(key)
    return False


def share(plan: Node) -> Node:
    """The same plan with each distinct part once."""
    known: dict[Hashable, Node] = {}
    return rewrite(plan, lambda node: known.setdefault(mark(node), node))
