"""Qualifiers of other people's relationships: their properties, and the times at which they hold
where the mapping says which properties these are.

Which keys a type has stands in a parameter, since one clause serves relationships of any type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from condgraph.cypher.answer import literal
from condgraph.cypher.layout.base import Direct
from condgraph.cypher.layout.schema import quote
from condgraph.cypher.native.cells import Held, direct_of, likeness, together
from condgraph.cypher.native.expressions import each
from condgraph.cypher.native.mapping import Mapping, Property, RelationshipType
from condgraph.engine.facts import END_TIME, START_TIME
from condgraph.engine.values import OPEN_END, OPEN_START


def named(of: RelationshipType, one: Property) -> str:
    """The key of a qualifier: of the times at which a relationship holds the usual one."""
    return START_TIME if one.key == of.start else END_TIME if one.key == of.end else one.predicate


class Qualifiers:
    """The properties of the relationships of one mapping."""

    __slots__ = ("_all", "_predicates", "_readings", "_times", "parameters")

    def __init__(self, mapping: Mapping) -> None:
        self.parameters: dict[str, Any] = {}
        readings: dict[Any, list[Property]] = {}
        keys, times = dict[str, list[list[Any]]](), dict[str, list[Any]]()
        for of in mapping.relationships:
            for one in of.qualifiers:
                readings.setdefault(likeness(one), []).append(one)
                place = list(readings).index(likeness(one))
                keys.setdefault(of.type, []).append([one.key, named(of, one), place])
            if of.start is not None or of.end is not None:
                times[of.type] = [of.start, of.end]
        self._readings, self._times = [together(several) for several in readings.values()], times
        self._all = mapping.relationships
        self._predicates = {of.type: of.predicate for of in mapping.relationships if of.type != of.predicate}
        if keys:
            self.parameters["qualifiers"] = keys
        if self._predicates:
            self.parameters["relations"] = self._predicates

    def direct(self, f: str, predicates: Sequence[str], key: str) -> Direct | None:
        """A qualifier of the relationships of some predicates that is one property, of one plain type."""
        found = [(of, one) for of in self._all if of.predicate in predicates for one in of.qualifiers if named(of, one) == key]
        keys, alike = {one.key for _, one in found}, {likeness(one) for _, one in found}
        if len(keys) != 1 or len(alike) != 1:
            return None
        held = f"{f}.{quote(keys.pop())}"
        others = [of.type for of in self._all if of.predicate in predicates and of not in [of for of, _ in found]]
        if others:
            held = f"CASE WHEN type({f}) IN {literal([of.type for of, _ in found])} THEN {held} END"
        return direct_of(held, together(one for _, one in found))

    def predicate(self, f: str) -> str:
        """What the type of a relationship is called."""
        return f"coalesce($relations[type({f})], type({f}))" if self._predicates else f"type({f})"

    def clause(self, f: str, q: str) -> str:
        """A clause that leaves each qualifier of a statement, as a map with the fields of a cell and its
        `name`.
        """
        if "qualifiers" not in self.parameters:
            return f"UNWIND [] AS {q} WITH *"
        k, x, y = f"{q}k", f"{q}x", f"{q}y"
        keys = f"CASE WHEN {f} IS :: RELATIONSHIP NOT NULL THEN $qualifiers[type({f})] ELSE [] END"
        cells = [Held(x, one, raw=False).whole[:-1] + f", name: {k}[1]}}" for one in self._readings]
        cell = (
            cells[0] if len(cells) == 1 else f"CASE {k}[2] {' '.join(f'WHEN {at} THEN {one}' for at, one in enumerate(cells))} END"
        )
        held = each(f"{f}[{k}[0]]", together(self._readings))
        found = f"COLLECT {{ WITH {f}, {k} WHERE {f}[{k}[0]] IS NOT NULL UNWIND {held} AS {y} RETURN DISTINCT {y} }}"
        return f"UNWIND {keys} AS {k} UNWIND {found} AS {x} WITH *, {cell} AS {q}"

    def validity(self, f: str) -> tuple[str, str]:
        """From when until when a statement holds, in seconds: null where nothing says it."""
        if not self._times:
            return "null", "null"
        found = []
        for side, name in ((0, "start"), (1, "end")):
            cases = []
            for at, reading in enumerate(self._readings):
                held = f"{f}[[k IN $qualifiers[type({f})] WHERE k[1] = '{(START_TIME, END_TIME)[side]}' AND k[2] = {at}][0][0]]"
                cell = Held(held, reading)
                cases.append(cell.start if name == "start" else cell.end)
            found.append(f"coalesce({', '.join(cases)})" if len(cases) > 1 else cases[0])
        since, until = (f"CASE WHEN {f} IS :: RELATIONSHIP NOT NULL THEN {one} END" for one in found)
        return (
            f"coalesce({since}, CASE WHEN {until} IS NOT NULL THEN {OPEN_START} END)",
            f"coalesce({until}, CASE WHEN {since} IS NOT NULL THEN {OPEN_END} END)",
        )
