"""The contents of a graph as plain sets, to compare two graphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from condgraph.engine.facts import Batch, Entity, EntityKind, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot.readback import items
from condgraph.graph import Graph
from tests.support.reference import identity, unbatched

_RANK = (EntityKind.CONCEPT, EntityKind.ROW, EntityKind.ENTITY)


@dataclass
class Contents:
    """Sources by name; entities by id (name, kind, place of a table row); memberships, subclasses and statements with
    their places.

    Of equal statements, the raw text of the first one counts.
    """

    sources: dict[str, tuple[str, str]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, EntityKind] = field(default_factory=dict)
    rows: dict[str, tuple[str, int]] = field(default_factory=dict)
    links: dict[Any, set[tuple[str, int]]] = field(default_factory=lambda: defaultdict(set))
    statements: dict[Any, set[tuple[str, int]]] = field(default_factory=lambda: defaultdict(set))
    raws: dict[Any, str | None] = field(default_factory=dict)

    def tidy(self) -> Contents:
        """Remove the places of entities that turned out not to be rows."""
        self.rows = {entity_id: place for entity_id, place in self.rows.items() if self.kinds[entity_id] is EntityKind.ROW}
        return self


def plain(value: Any) -> Any:
    """Collapse the white space of a text, as graphs do; return other values unchanged."""
    return " ".join(value.split()) if isinstance(value, str) else value


def contents(given: Iterable[Any], source: str = "api") -> Contents:
    """Return the contents of items; those without a source of their own come from `source`."""
    result = Contents()

    def touch(ident: str, kind: EntityKind = EntityKind.ENTITY) -> None:
        result.kinds[ident] = min(result.kinds.get(ident, EntityKind.ENTITY), kind, key=_RANK.index)

    def add(item: Any, places: tuple[tuple[str, int], ...], *, together: bool = False) -> None:
        for name, _ in places:
            result.sources.setdefault(name, ("", "api" if name == "api" else ""))
        if isinstance(item, Entity):
            touch(item.id, item.kind)
            if item.name != item.id:
                result.names.setdefault(item.id, item.name)
            if item.kind is EntityKind.ROW:
                result.rows.setdefault(item.id, (places[0][0], item.row))
        elif isinstance(item, Member):
            touch(item.entity)
            touch(item.concept, EntityKind.CONCEPT)
            result.links["member", item.entity, item.concept].update(places)
        elif isinstance(item, Subclass):
            touch(item.concept, EntityKind.CONCEPT)
            touch(item.parent, EntityKind.CONCEPT)
            result.links["subclass", item.concept, item.parent].update(places)
        else:
            assert isinstance(item, Statement)
            touch(item.subject)
            for value in (item.object, *(value for _, value in item.qualifiers)):
                if isinstance(value, Ref):
                    touch(value.id)
            qualifiers = frozenset((key, identity(plain(value))) for key, value in item.qualifiers)
            key = (item.subject, item.predicate, identity(plain(item.object)), qualifiers)
            result.statements[key].update(places)
            changed = isinstance(item.object, str) and plain(item.object) != item.object
            result.raws.setdefault(key, item.object if changed and item.raw is None and not together else item.raw)

    for item in given:
        if isinstance(item, Source):
            if item.location or item.name not in result.sources:
                result.sources[item.name] = (item.location, item.format)
        elif isinstance(item, Sourced):
            add(item.item, item.sources or ((source, item.item.row),))
        elif isinstance(item, Batch):
            for part in unbatched(item):
                add(part, ((source, part.row),), together=True)
        else:
            add(item, ((source, item.row),))
    return result.tidy()


def contents_of(graph: Graph) -> Contents:
    """Return the contents of a graph, read back from it."""
    return contents(items(graph.current))
