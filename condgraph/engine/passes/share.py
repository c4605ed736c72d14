"""Equal parts of a plan become one part, so that they are run (and, on a server, bound) once.

>>> from condgraph.engine.algebra import Named, Union, Reached, Scan, Intersect
>>> def films(): return Reached(Scan(Named(("Ann",)), ("director",), "object", "subject", "relation"))
>>> before = Intersect((films(), films()))
>>> before.parts[0] is before.parts[1]
False
>>> after = share(before)
>>> after == before, after.parts[0] is after.parts[1]
(True, True)
"""

from __future__ import annotations

from condgraph.engine.algebra import Every, Node
from condgraph.engine.passes.rewrite import rewrite


def applies(order: list[Node]) -> bool:
    """Equal parts have equal leaves; most plans have none. Every entity is kept by the store anyway, and does not count."""
    leaves = [node for node in order if not node.inputs() and type(node) is not Every]
    return len(leaves) > 1 and len(set(leaves)) < len(leaves)


def share(plan: Node) -> Node:
    """The same plan with each distinct part once."""
    known: dict[Node, Node] = {}
    return rewrite(plan, lambda node: known.setdefault(node, node))
