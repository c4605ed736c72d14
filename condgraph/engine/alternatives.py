"""Alternatives where a predicate led to nothing: the predicates that the entities do have, by direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from condgraph.engine.algebra import AllEntities, ByName, Distinct, Entities, Group, Names, Node, Predicates, Scan, postorder
from condgraph.engine.errors import nearest

#: Entities whose predicates are looked at; of more it is no help to know them.
MOST_ENTITIES: Final = 1_000
#: Predicates that are named.
_MOST: Final = 6
#: From a plan to how many results it has, and to their texts.
Size = Callable[[Node], int]
Texts = Callable[[Node], Sequence[str]]


def following(plan: Node) -> list[Scan]:
    """The operators of a plan that follow predicates from some entities, inputs first. What the
    columns of a table lead to empties nothing, and is left out.
    """
    nodes = postorder(plan)
    for group in [node for node in nodes if isinstance(node, Group)]:
        rows = {id(node) for node in postorder(group.of)}
        columns = {id(node) for way in (*group.facts, *group.values) for node in postorder(way)} - rows
        nodes = [node for node in nodes if id(node) not in columns]
    scans = [node for node in nodes if isinstance(node, Scan) and node.predicates]
    return [scan for scan in scans if scan.of is not None and not isinstance(scan.of, AllEntities)]


def followed(plan: Node, size: Size) -> Scan | None:
    """The first operator of a plan that followed predicates from some entities, and found nothing.
    Sizes are asked of `following` and of what these follow from.
    """
    for scan in following(plan):
        assert scan.of is not None
        if size(scan) == 0 and 0 < size(scan.of) <= MOST_ENTITIES:
            return scan
    return None


def around(of: Entities) -> dict[str, Node]:
    """What gives the predicates of entities: "forward" and "backward" for relations, "value" for
    attributes.
    """
    ways = {
        "forward": Scan(of, None, "subject", "object", "relation"),
        "backward": Scan(of, None, "object", "subject", "relation"),
        "value": Scan(of, None, "subject", "subject", "attribute"),
    }
    return {way: Distinct(Predicates(scan)) for way, scan in ways.items()}


def instead(scan: Scan, texts: Texts) -> str:
    """What the entities of a scan that gave nothing have instead, in one sentence.

    >>> instead(Scan(ByName(("Paris",)), ("capital",), "subject", "object", "relation"), lambda node: [])
    "'Paris' has no 'capital' forward, and no other predicate"
    """
    assert scan.of is not None
    assert scan.predicates is not None
    found = {way: list(texts(node)) for way, node in around(scan.of).items()}
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
