"""Small random graphs and patterns for the searches, and an encoder whose distances tie on purpose."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final
from zlib import crc32

import numpy as np

from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement, Subclass
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Quantity, Time
from condgraph.languages.pattern.pattern import Pattern

#: Unit vectors of few directions, so that many texts are equally far from each other.
_DIRECTIONS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.8, 0], [0.8, 0.6, 0], [0, 0.6, 0.8], [0.28, 0, 0.96]], np.float32)
NAMES = ("Ann", "Bo", "Ann Lee", 'x("y")', "Zoë {the}", "1960", "c1", "ann")
TEXTS = ("Ann", "1960", "blue", "", "x|y")
PREDICATES = ("knows", "part of", "same", "instance of", "note")
RELATIONS = (
    "knows",
    "knows of",
    "is part",
    "instance of",
    "UNKNOWN relation 1",
    "same",
    "is called",
    "was friend of",
    "belongs to",
)


class TieEncoder:
    """Texts as one of seven directions, by their hash."""

    id, dimension = "ties-1", 3

    def encode(self, texts: Sequence[str]) -> Any:
        return np.array([_DIRECTIONS[crc32(text.encode()) % len(_DIRECTIONS)] for text in texts], np.float32).reshape(-1, 3)


def a_graph(dice: random.Random) -> list[Any]:
    """Items of a graph of up to nine entities: relations, some qualified or parallel, loops, texts,
    numbers, types.
    """
    size = dice.randint(3, 7)
    ids = [f"e{i}" for i in dice.sample(range(20), size)]
    items: list[Any] = [Entity(ident, dice.choice(NAMES)) for ident in ids]
    types = dice.choice((0, 0, 1, 2))
    concepts = [f"t{i}" for i in range(types)]
    items += [Entity(ident, dice.choice(NAMES), EntityKind.CONCEPT) for ident in concepts]
    everything = ids + concepts
    for _ in range(dice.randint(2, 14)):
        subject, predicate = dice.choice(everything), dice.choice(PREDICATES)
        kind = dice.random()
        thing: Any = Ref(dice.choice(everything))
        if kind < 0.1:
            thing = Ref(subject)
        elif kind < 0.3:
            thing = dice.choice(TEXTS)
        elif kind < 0.35:
            thing = Quantity(5)
        qualifiers = tuple(("of", dice.choice(("x", "y"))) for _ in range(dice.choice((0, 0, 0, 1))))
        items.append(Statement(subject, predicate, thing, qualifiers))
        if dice.random() < 0.2:
            # A second statement between the same two.
            items.append(Statement(subject, dice.choice(PREDICATES), thing, ()))
    if concepts:
        items += [Member(dice.choice(everything), dice.choice(concepts)) for _ in range(dice.randint(0, 4))]
        items += [Subclass(dice.choice(concepts), dice.choice(concepts)) for _ in range(dice.randint(0, 2))]
    return items


def a_pattern(dice: random.Random) -> list[tuple[str, str, str]]:
    """Triples of a path, star, cycle, multigraph, loop, or of parts that nothing joins; some nodes
    are known.
    """
    size = dice.randint(1, 4)
    nodes = []
    for i in range(size):
        known = dice.random() < 0.4
        hint = dice.choice(("", "", "Ann ", "type "))
        nodes.append(dice.choice((*NAMES, "blue", "nobody")) if known else f"UNKNOWN {hint}{i}")
    form = dice.choice(("path", "star", "cycle", "any", "parts"))
    pairs: list[tuple[int, int]] = []
    if form == "path":
        pairs = [(i, i + 1) for i in range(size - 1)]
    elif form == "star":
        pairs = [(0, i) for i in range(1, size)]
    elif form == "cycle":
        pairs = [(i, (i + 1) % size) for i in range(size)] if size > 2 else [(0, size - 1)]
    elif form == "any":
        pairs = [(dice.randrange(size), dice.randrange(size)) for _ in range(dice.randint(1, 4))]
    else:
        pairs = [(i, i + 1) for i in range(0, size - 1, 2)]
    pairs = pairs or [(0, 0)]
    if dice.random() < 0.25:
        pairs.append(dice.choice(pairs))
    if dice.random() < 0.1:
        pairs.append((dice.randrange(size),) * 2)
    found = []
    for one, two in pairs:
        if dice.random() < 0.5:
            one, two = two, one
        found.append((nodes[one], dice.choice(RELATIONS), nodes[two]))
    return found


def a_walk(dice: random.Random, snapshot: Snapshot) -> list[tuple[str, str, str]]:
    """Triples along up to three relations of a graph, some of whose ends are unknown, or turned."""
    number = dice.randrange(snapshot.relations)
    ends = [(int(snapshot.relation_subject[number]), number, int(snapshot.relation_object[number]))]
    for _ in range(dice.randint(0, 2)):
        at = dice.choice(ends)[dice.choice((0, 2))]
        around = [*snapshot.outgoing(at, 0, snapshot.relations), *snapshot.incoming(at, 0, snapshot.relations)]
        number = int(dice.choice(around))
        ends.append((int(snapshot.relation_subject[number]), number, int(snapshot.relation_object[number])))
    nodes = sorted({node for first, _, last in ends for node in (first, last)})
    known = {node for node in nodes if dice.random() < 0.4} | {nodes[0]}
    found = []
    for first, number, last in ends:
        one, two = ((snapshot.name(at) or "nobody") if at in known else f"UNKNOWN {at}" for at in (first, last))
        relation = snapshot.predicate_name(int(snapshot.predicate_of(number)))
        found.append((one, relation, two) if dice.random() < 0.8 else (two, "UNKNOWN relation", one))
    return found


def an_ask(dice: random.Random, pattern: Pattern, others: Sequence[Any]) -> dict[str, Any]:
    """Arguments of `match`; `others` are what a node may be asked to be distinct from."""
    asked: dict[str, Any] = {
        "k": dice.choice((1, 2, 3, 5, None)),
        "injective": dice.random() < 0.3,
        "free": False,
        "induced": dice.random() < 0.2,
        "directed": dice.choice((None, None, True, False)),
        "k_nodes": dice.choice((None, None, None, 1, 3)),
        "k_relations": dice.choice((None, None, None, 1, 2)),
        "k_types": dice.choice((None, None, 1)),
    }
    if dice.random() < 0.4:
        asked["group_by"] = [node.text for node in dice.sample(pattern.nodes, dice.randint(1, min(2, len(pattern.nodes))))]
    asked["free"] = not asked["injective"] and dice.random() < 0.25
    if dice.random() < 0.3:
        asked["distinct_from"] = {dice.choice(pattern.nodes).text: dice.choice(others)}
    return asked


# -- values ----------------------------------------------------------------------------------------

#: Values of random graphs: numbers of some units, one that no float is, and times of some precisions.
VALUES: Final = (
    Quantity(5), Quantity(5, "metre"), Quantity(450, "centimetre"), Quantity(5, "kilogram"), Quantity(Decimal("4.5")),
    Quantity(1990), Quantity(2**53 + 1), Time.year(1990), Time.day(1990, 5, 3), Time.year(1960),
)  # fmt: skip
#: Values as patterns ask for them, with what they mean: a comparison, a number in the unit named (none:
#: of any unit), and a time as its first day and the day behind it.
ASKED: Final[dict[str, tuple[str, tuple[str, str] | None, tuple[str, str] | None]]] = {
    "= 5": ("=", ("5", ""), None),
    "= 5 metre": ("=", ("5", "metre"), None),
    "> 4.5": (">", ("4.5", ""), None),
    ">= 4.5 metre": (">=", ("4.5", "metre"), None),
    "< 500 centimetre": ("<", ("500", "centimetre"), None),
    "= 1990": ("=", ("1990", ""), ("1990-01-01", "1991-01-01")),
    "<= 1990": ("<=", ("1990", ""), ("1990-01-01", "1991-01-01")),
    "> 1960": (">", ("1960", ""), ("1960-01-01", "1961-01-01")),
    "< 1990-05-03": ("<", None, ("1990-05-03", "1990-05-04")),
    ">= 1990-05": (">=", None, ("1990-05-01", "1990-06-01")),
    "= 9007199254740992": ("=", ("9007199254740992", ""), None),
    "> 9007199254740992": (">", ("9007199254740992", ""), None),
}
#: What relations to values are called, on both sides.
ATTRIBUTES: Final = ("note", "height", "born in", "knows")


def with_values(dice: random.Random, items: Sequence[Any]) -> list[Any]:
    """The same graph, where some entities have values."""
    ids = [item.id for item in items if isinstance(item, Entity)]
    more = [
        Statement(dice.choice(ids), dice.choice(ATTRIBUTES), dice.choice(VALUES), dice.choice(((), (), (("of", "x"),))))
        for _ in range(dice.randint(1, 8))
    ]
    return [*items, *more]


def asking_values(dice: random.Random, triples: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The same pattern, where some nodes are to have values."""
    nodes = [node for head, _, tail in triples for node in (head, tail)]
    found = list(triples)
    for _ in range(dice.choice((1, 1, 2))):
        ends = [dice.choice(nodes), dice.choice(tuple(ASKED))]
        if dice.random() < 0.2:
            ends.reverse()
        found.insert(dice.randint(0, len(found)), (ends[0], dice.choice((*ATTRIBUTES, "tall", "UNKNOWN relation 1")), ends[1]))
    return found[: 1 if dice.random() < 0.1 else None]


def a_case(dice: random.Random) -> tuple[list[Any], list[tuple[Pattern, dict[str, Any]]]]:
    """A graph with values, and patterns with what is asked of them: values, paths of two, edges that
    are left out, or all of it.
    """
    items = with_values(dice, a_graph(dice))
    others = [item.name for item in items if isinstance(item, Entity)]
    asked = []
    for _ in range(4):
        triples = a_pattern(dice)
        if dice.random() < 0.7:
            triples = asking_values(dice, triples[:3])
        pattern = Pattern.of(triples)
        ask = an_ask(dice, pattern, others)
        things = {node.text for node in pattern.nodes[: pattern.things]}
        ask["group_by"] = [name for name in ask.get("group_by", ()) if name in things]
        ask["distinct_from"] = {name: one for name, one in ask.get("distinct_from", {}).items() if name in things}
        ask["stretch"] = len(triples) < 4 and dice.random() < 0.35
        ask["leave_out"] = dice.random() < 0.35
        asked.append((pattern, ask))
    return items, asked
