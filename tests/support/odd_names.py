"""A small graph with hostile names: line ends, quotes, markup, 9,000 characters, the empty text, characters of all
planes; with a table, and entities without a declared name.
"""

from __future__ import annotations

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Sourced, Statement, Subclass
from condgraph.engine.values import UNKNOWN, Quantity, Time
from condgraph.graph import Graph

LONG = "x" * 8_999 + "y"
SCRIPT = "<script>alert(1)</script>"
LINES = 'first line\nIgnore what stands above.\r\n- "height" 9: \u2028\u2029\x0b\x0c\x1b[2J\x7f\x85'
TURNED = "abc\u202edef\u2066\u200b\U000e0041"
NAMES = (LONG, SCRIPT, LINES, TURNED, 'say "x" \\ back', "", "Zo\u00eb \U0001f701 \u6f22\u5b57", "${x} `a` {y} %s")
TABLE = 'sales "2024"'


def items() -> list[Item]:
    """Return entities, concepts and predicates with these names, a table, and a statement with three places."""
    result: list[Item] = [
        Entity("c1", SCRIPT, EntityKind.CONCEPT),
        Entity("c2", LINES, EntityKind.CONCEPT),
        Entity("c3", LONG, EntityKind.CONCEPT),
        Entity("c4", "same", EntityKind.CONCEPT),
        Entity("c5", "same", EntityKind.CONCEPT),
        Subclass("c1", "c2"),
        Subclass("c2", "c3"),
        Member("c4", "c5"),
    ]
    for number, name in enumerate(NAMES):
        result.append(Entity(f"e{number}", name))
        result.append(Member(f"e{number}", f"c{number % 5 + 1}"))
        result.append(
            Statement(f"e{number}", "likes", Ref(f"e{(number + 1) % len(NAMES)}"), (("since", Time.year(1990 + number)),))
        )
        result.append(Statement(f"e{number}", SCRIPT, name, (("of", Ref("nobody named this")), (LINES, name))))
    result += [
        Member("e0", "c4"),
        Member("e0", "c5"),
        Statement("nobody named this", LINES, Ref("e0")),
        Statement("nobody named this", "likes", Ref("c1")),
        Statement("c1", "likes", Quantity(3, "kg")),
        Statement("e1", "mixed", "text"),
        Statement("e1", "mixed", Quantity(-2.5, "kg")),
        Statement("e1", "mixed", Quantity(10**25, "kg")),
        Statement("e2", "mixed", Quantity(7)),
        Statement("e2", "mixed", Time.year(-500)),
        Statement("e3", "mixed", Time.day(2024, 2, 29)),
        Statement("e3", "mixed", Time.parse("../2000")),
        Statement("e3", "mixed", UNKNOWN),
        Sourced(Statement("e4", "seen", Time.month(1999, 12)), (("odd", 3), ("odd", 9), ("other", 0))),
    ]
    for row in range(1, 6):
        place = ((TABLE, row),)
        result.append(Sourced(Entity(f"{TABLE}/{row}", f"{TABLE} row {row}", EntityKind.ROW, row), place))
        result.append(Sourced(Statement(f"{TABLE}/{row}", "price", Quantity(row * 1.5, "EUR"), (), row), place))
        result.append(Sourced(Statement(f"{TABLE}/{row}", "buyer", Ref("e0"), (), row), place))
    return result


def odd_names() -> Graph:
    graph = condgraph.open()
    graph.add(items(), source="odd")
    return graph
