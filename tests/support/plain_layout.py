"""A second layout: a foreign database with labels for concepts, relationships without statement nodes, values as plain
properties, and only the server's ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from condgraph.cypher.layout.base import Bound, Cell, Field, Layout, Match, QueryScope, ScanRequest
from condgraph.cypher.layout.schema import quote
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Family, Node
from condgraph.engine.values import Kind, Precision


class ComputedCell(Cell):
    """A value whose fields are expressions; missing ones are null."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[Field, str]) -> None:
        self._fields = fields

    @property
    def whole(self) -> str:
        """A map of the fields."""
        return f"{{{', '.join(f'{name}: {expression}' for name, expression in self._fields.items())}}}"

    def field(self, name: Field) -> str:
        return self._fields.get(name, "null")

    @property
    def ordered(self) -> str:
        """The order field if there is one, else the text."""
        return f"coalesce({self.order}, {self.text})" if "order" in self._fields else self.text


class PlainLayout(Layout):
    """Entities are nodes with a `name`, concepts are `labels` by name, relations are `types` and attributes
    `properties` by predicate.
    """

    def __init__(self, labels: Mapping[str, str], types: Mapping[str, str], properties: Mapping[str, str]) -> None:
        self.labels, self.types, self.properties = labels, types, properties

    def missing(self, node: Node) -> str | None:
        """Return what this layout cannot do: a property must be named, and its predicate cannot be read as a value."""
        if isinstance(node, alg.Scan) and (node.predicates is None or len(node.predicates) != 1 or node.family == "any"):
            return "statements of any predicate"
        return "predicates as values" if isinstance(node, alg.Predicates) else super().missing(node)

    def parameters(self, graph: str) -> dict[str, Any]:
        """Return no parameters: a database has one graph."""
        return {}

    # -- entities ----------------------------------------------------------------------------------

    def _labelled(self, e: str) -> str:
        return f"({e}:{'|'.join(map(quote, self.labels.values()))})"

    def entity(self, e: str) -> tuple[str, str]:
        return self._labelled(e), f"{e}.name IS NOT NULL"

    def named(self, e: str, test: str) -> str:
        return f"{e}.name {test}"

    def identified(self, e: str, test: str) -> str:
        return f"elementId({e}) {test}"

    def has_id(self, e: str, ids: str) -> str:
        return f"elementId({e}) IN {ids}"

    def of_kinds(self, e: str, kinds: str) -> str:
        return f"0 IN {kinds}"

    def is_entity(self, o: str) -> str:
        return self._labelled(o)[1:-1]

    def id(self, e: str) -> str:
        return f"elementId({e})"

    def name(self, e: str) -> str:
        return f"{e}.name"

    def kind(self, e: str) -> str:
        return "0"

    def _entity(self, e: str, kind: str) -> ComputedCell:
        return ComputedCell({"kind": f"'{kind}'", "key": f"{e}.name", "text": f"{e}.name", "id": f"elementId({e})", "held": "true"})

    def entity_cell(self, e: str) -> str:
        return self._entity(e, "entity").whole

    def name_cell(self, e: str) -> str:
        return self._entity(e, "text").whole

    def listed(self, e: str) -> str:
        return f"[elementId({e}), {e}.name]"

    def described(self, e: str) -> str:
        return f"{{id: elementId({e}), name: {e}.name, kind: 0, source: null, row: null}}"

    # -- concepts ----------------------------------------------------------------------------------

    def _within(self, names: tuple[str, ...]) -> str:
        return "|".join(quote(self.labels[name]) for name in names)

    def members(self, scope: QueryScope, e: str, names: tuple[str, ...]) -> list[str]:
        return [f"MATCH ({e}:{self._within(names)})"]

    def within(self, scope: QueryScope, e: str, names: tuple[str, ...]) -> tuple[str, list[str]]:
        return f"{e}:{self._within(names)}", []

    # -- statements --------------------------------------------------------------------------------

    def attributes(self, scope: QueryScope, wanted: ScanRequest) -> Match:
        assert wanted.predicates is not None
        (name,) = wanted.predicates
        e, stored = wanted.anchor, f"{wanted.anchor}.{quote(self.properties[name])}"
        cell = _value(stored, {kind for kind, _ in scope.schema.attribute_kinds(name)})
        pattern = f"({e})" if wanted.bound else self._labelled(e)
        fact = f"[elementId({e}), {scope.parameter(name)}]"
        projection = [f"WITH *, {cell.whole} AS {wanted.other}, {fact} AS {wanted.fact}"]
        return Match(pattern, [f"{stored} IS NOT NULL", *wanted.conditions], cell, after=projection)

    def relations(self, scope: QueryScope, wanted: ScanRequest) -> Match:
        assert wanted.predicates is not None
        (name,) = wanted.predicates
        ends = [f"({wanted.anchor})" if wanted.bound else self._labelled(wanted.anchor), self._labelled(wanted.other)]
        first, second = ends if wanted.outward else reversed(ends)
        thing = wanted.other if wanted.outward else wanted.anchor
        pattern = f"{first}-[{wanted.fact}:{quote(self.types[name])}]->{second}"
        return Match(pattern, wanted.conditions, self.object(thing, "relation"))

    def object(self, o: str, family: Family) -> Cell:
        return self._entity(o, "entity") if family == "relation" else Bound(o)

    def object_cell(self, o: str, family: Family) -> str:
        return self.entity_cell(o)

    def type(self, f: str) -> str:
        return f"type({f})"

    def predicate(self, f: str) -> str:
        return f"type({f})"


def _value(held: str, kinds: set[Kind]) -> ComputedCell:
    """Return the cell of a property, typed by the schema."""
    if kinds == {Kind.QUANTITY}:
        return ComputedCell({"kind": "'quantity'", "text": f"toString({held})", "number": held, "unit": "'1'"})
    if kinds == {Kind.TIME}:
        first, following = (f"datetime({{date: {held}{offset}}}).epochSeconds" for offset in ("", " + duration({days: 1})"))
        day = str(int(Precision.DAY))
        return ComputedCell({"kind": "'time'", "text": f"toString({held})", "start": first, "end": following, "precision": day})
    return ComputedCell({"kind": "'text'", "text": f"toString({held})", "key": f"toString({held})"})
