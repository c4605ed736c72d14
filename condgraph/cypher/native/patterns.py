"""Patterns on an existing database: its labels are concepts, which have no nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from condgraph.cypher.layout.base import TARGET
from condgraph.cypher.native.identity import concept_id
from condgraph.engine import algebra as alg
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.facts import EntityKind
from condgraph.engine.store import plan_answer
from condgraph.patterns.graph import Numbers
from condgraph.patterns.remote.catalogue import Catalogue, Tally
from condgraph.patterns.remote.planned import PlannedPatterns

if TYPE_CHECKING:
    from condgraph.cypher.native.store import NativeStore

#: The most nodes whose names are read for patterns.
MAX_NODES: Final = 5_000_000


class NativePatterns(PlannedPatterns):
    """Patterns on the nodes and relationships of a database."""

    def catalogue_now(self) -> Catalogue:
        """Return the catalogue, including labels; raise `UnsupportedError` for more than `MAX_NODES` nodes."""
        store: NativeStore = cast("Any", self._store)
        mapping = store.mapping
        if mapping.node_count > MAX_NODES:
            raise UnsupportedError(
                TARGET,
                [f"patterns on {mapping.node_count:,} nodes that condgraph did not write"],
                hint="graph.snapshot() pulls them",
            )
        labels = {concept_id(node.label): node.concept for node in mapping.nodes if node.label}
        nodes = plan_answer(self._store, alg.AllEntities((EntityKind.ENTITY,))).entities
        entities = [(entity.id, entity.name, int(entity.kind)) for entity in nodes]
        entities += [(ident, name, int(EntityKind.CONCEPT)) for ident, name in labels.items()]
        texts, with_edges = self.texts_now(store.schema)
        values = {name: store.schema.attribute_kinds(name) for name in store.schema.attributes}
        return Catalogue(entities, texts, with_edges, memberships=bool(labels), values=values)

    def concepts(self, catalogue: Catalogue, ids: Sequence[str]) -> alg.Entities:
        """Return concepts by their names; other labels with the same name are included."""
        numbers = [catalogue.identified(ident) for ident in ids]
        concepts = [number for number in numbers if number >= 0 and catalogue.kinds[number] == EntityKind.CONCEPT]
        return alg.ByName(tuple(dict.fromkeys(catalogue.names[number] for number in concepts)))

    def of_types(self, catalogue: Catalogue, types: Sequence[str], nodes: Numbers | None = None) -> Numbers:
        """See `Statements.of_types`."""
        members = super().of_types(catalogue, types, nodes)
        type_numbers = np.array([catalogue.identified(ident) for ident in types])
        type_names = self.concepts(catalogue, types).names  # type: ignore[attr-defined]
        if sum(len(catalogue.named(name)) for name in type_names) == len(type_numbers):
            return members
        # Another label may have the same name.
        edges = self.edges(catalogue, members, "subject", (len(catalogue.predicates),), statements=False, tally=Tally())
        return np.unique(edges[np.isin(edges[:, 2], type_numbers), 0]).astype(np.int32)
