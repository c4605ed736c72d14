"""Which entities a test of a table means: those of that name, and rows of that key.

`where customerID = 'ALFKI'` is asked of the customers that orders refer to. As in SQL, who asks
knows their keys; as elsewhere in a graph, their names. Both find them, and so does an id. A number
is the key of a row as well. What no entity at hand is called is said with the nearest, and what is
the name of one and the key of another as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.algebra.expressions import CellTest
from condgraph.engine.errors import nearest, shortened
from condgraph.engine.facts import Entity, EntityKind
from condgraph.engine.operands import exact
from condgraph.engine.values import NO_UNIT, Quantity, collapse

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

#: Names and keys that are looked through for the nearest.
_MOST_SEEN: Final = 5_000
#: Keys that are numbers: 007 is none, as it is not 7.
_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]*").fullmatch


def key_of(ident: str, source: str) -> str:
    """The key of a row of a source, from its id. Rows of a folder have no name of it in front, and
    rows that something referred to before they came may have their key alone.

    >>> key_of("customers/ALFKI", "shop/customers"), key_of("AC/DC", "bands")
    ('ALFKI', 'AC/DC')
    """
    for prefix in (f"{source}/", f"{source.rpartition('/')[2]}/"):
        if ident.startswith(prefix):
            return ident[len(prefix) :]
    return ident


class Called:
    """The entities that some tests compare with names and keys, while they are looked at."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._keys: dict[str, str] = {}
        #: Tests by identity: what they ask for, and names and keys that were none; None once one was.
        self._missed: dict[int, tuple[CellTest, dict[str, None] | None]] = {}
        #: The least ids of what a test found by name and not by key, and by key and not by name.
        self._ways: dict[tuple[int, str], dict[str, str]] = {}

    def means(self, test: CellTest, entity: Entity) -> bool | None:
        """Whether an entity is what a test with = or != names; None where it names by what no
        entity is called: a time, a number with a unit, or a number where keys are texts.
        """
        key = self._key(entity)
        texts = [reading for reading in test.readings if isinstance(reading, str)]
        if texts:
            name = collapse(entity.name)
            matched = [one for one in map(collapse, texts) if one in (name, key, entity.id)]
            found = bool(matched)
            for one in matched:
                if (one == name) != (one == key):
                    ways = self._ways.setdefault((id(test), one), {})
                    way = "name" if one == name else "key"
                    ways[way] = min(ways.get(way, entity.id), entity.id)
        else:
            numbers = [number for number in map(_whole, test.readings) if number is not None]
            if not numbers or not _NUMBER(key):
                return None
            found = key in numbers
        _, missed = self._missed.setdefault(id(test), (test, {}))
        if found:
            self._missed[id(test)] = test, None
        elif missed is not None and len(missed) < _MOST_SEEN:
            missed[key] = missed[entity.name] = None
        return found

    def _key(self, entity: Entity) -> str:
        known = self._keys.get(entity.id)
        if known is None:
            known = self._keys[entity.id] = self._found(entity)
        return known

    def _found(self, entity: Entity) -> str:
        snapshot = self._run.snapshot
        owners, number = snapshot.arrays.get("ent.source"), snapshot.identified(entity.id)
        if entity.kind is not EntityKind.ROW or number < 0 or not len(owners) or owners[number] < 0:
            return entity.id
        return key_of(entity.id, snapshot.source_of(int(owners[number])).name)

    def warn(self, column: Callable[[Any], str]) -> None:
        """Say what tests with = named that nothing was, and what is the name of one and the key of
        another; `column` has words for what they compare.
        """
        for (at, text), ways in self._ways.items():
            if len(ways) > 1:
                ids = f"the name of {shortened(ways['name'], 60)!r} and the key of {shortened(ways['key'], 60)!r}"
                self._run.warn(f"{column(self._missed[at][0].of)}: {shortened(text, 60)!r} is {ids}, and means both")
        for test, missed in self._missed.values():
            if missed is None or test.operator != "=":
                continue
            asked = list(dict.fromkeys([str(one) for one in test.readings if isinstance(one, str)]))
            asked = asked or [number for number in map(_whole, test.readings) if number is not None]
            like = [name for one in asked[:3] for name in nearest(one, sorted(missed), most=3)]
            found = ", ".join([repr(shortened(name, 60)) for name in dict.fromkeys(like)])
            found = f"; nearest: {found}" if found else ""
            wanted = " or ".join([repr(shortened(one, 60)) for one in asked[:3]]) + (" or others" if len(asked) > 3 else "")
            self._run.warn(f"{column(test.of)}: nothing has {wanted} for its name or key{found}")


def _whole(value: Any) -> str | None:
    """A whole number without a unit as keys are written; None for everything else."""
    if not isinstance(value, Quantity) or value.unit != NO_UNIT:
        return None
    number = exact(value.number)
    return str(int(number)) if number == int(number) else None
