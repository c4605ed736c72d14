"""What there is instead, where following a predicate gave nothing: the predicates that the entities
at hand do have, in which direction.

`Find(France) Relate(capital of, forward)` gives nothing, and whoever wrote it wants to know that
France is an object of `capital of`. What has the same predicate the other way round comes first,
then names like the one that was followed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from condgraph.engine.algebra import AllEntities, ByName, Distinct, Names, Node, Predicates, Scan, postorder
from condgraph.engine.errors import nearest

#: Entities whose predicates are looked at; of more it is no help to know them.
MOST_ENTITIES: Final = 1_000
#: Predicates that are named.
_MOST: Final = 6
#: From a plan to how many results it has, and to their texts.
Size = Callable[[Node], int]
Texts = Callable[[Node], Sequence[str]]


def followed(plan: Node, size: Size) -> Scan | None:
    """The first operator of a plan that followed predicates from some entities, and found nothing."""
    for node in postorder(plan):
        if not isinstance(node, Scan) or node.of is None or isinstance(node.of, AllEntities) or not node.predicates:
            continue
        if size(node) == 0 and 0 < size(node.of) <= MOST_ENTITIES:
            return node
    return None


def instead(scan: Scan, texts: Texts) -> str:
    """What the entities of a scan that gave nothing have instead, in one sentence.

    >>> instead(Scan(ByName(("Paris",)), ("capital",), "subject", "object", "relation"), lambda node: [])
    "'Paris' has no 'capital' forward, and no other predicate"
    """
    assert scan.of is not None
    assert scan.predicates is not None
    ways = {
        "forward": Scan(scan.of, None, "subject", "object", "relation"),
        "backward": Scan(scan.of, None, "object", "subject", "relation"),
        "value": Scan(scan.of, None, "subject", "subject", "attribute"),
    }
    found = {way: list(texts(Distinct(Predicates(node)))) for way, node in ways.items()}
    if isinstance(scan.of, ByName):
        names = [repr(name) for name in scan.of.names[:3]]
    else:
        names = [repr(name) for name in texts(Names(scan.of))[:3]]
    way = "value" if scan.family == "attribute" else "backward" if scan.anchor == "object" else "forward"
    asked = " or ".join(repr(name) for name in scan.predicates[:3])
    # The same predicate another way round, then names like it, then others.
    told: list[str] = []
    every = {name for several in found.values() for name in several}
    like = [name for asked_for in scan.predicates[:3] for name in nearest(asked_for, sorted(every), most=_MOST)]
    for name in dict.fromkeys([*(one for one in scan.predicates if one in every), *like, *sorted(every)]):
        told += [f"{name!r} {_WAYS[one]}" for one, several in found.items() if name in several]
    subject = ", ".join(names)
    has = "have" if len(names) > 1 else "has"
    begin = f"{subject} {has} no {asked} {_WAYS[way]}"
    if not told:
        return f"{begin}, and no other predicate"
    more = f" and {len(told) - _MOST} more" if len(told) > _MOST else ""
    return f"{begin}, but {', '.join(told[:_MOST])}{more}"


_WAYS: Final = {"forward": "forward", "backward": "backward", "value": "as an attribute"}
