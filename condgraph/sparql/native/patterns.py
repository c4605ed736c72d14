"""Patterns on triples that condgraph did not write: edges without names and qualifiers, and the distinct texts of predicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.execute.witness_plan import Unit
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.patterns.graph import text_nodes
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.planned import PlannedPatterns, edged_predicates, texts_of
from condgraph.sparql.native.mapping import OWN

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema
    from condgraph.sparql.native.store import NativeRdfStore


class TriplePatterns(PlannedPatterns):
    """Patterns on the triples of an endpoint. Nodes without an IRI cannot be asked for, so they are no candidates."""

    @property
    def _triples(self) -> NativeRdfStore:
        return cast("NativeRdfStore", self._store)

    def catalogue_now(self) -> Catalogue:
        """Return the catalogue without blank nodes."""
        catalogue = super().catalogue_now()
        blank = sum(ident.startswith("_:") for ident in catalogue.ids)
        if not blank:
            return catalogue
        self.notes.append(f"patterns leave out nodes without an IRI, of which there are {blank:,}: graph.snapshot() has them")
        entities = zip(catalogue.ids, catalogue.names, catalogue.kinds.tolist(), strict=True)
        return Catalogue(
            [entity for entity in entities if not entity[0].startswith("_:")], catalogue.texts,
            dict(zip(catalogue.predicates, catalogue.used.tolist(), strict=False)), memberships=bool(catalogue.used[-1]),
            values=catalogue.values,
        )  # fmt: skip

    def texts_now(self, schema: StoredSchema) -> tuple[list[str], dict[str, bool]]:
        """Return texts and predicates with edges. Labels are names, except those that a node has besides its name."""
        store, labels = self._triples, self._triples.label_names
        # Qualifiers about literals themselves are no predicates of the endpoint.
        literal_keys = {predicate.name for predicate in store.mapping.qualifiers if predicate.iri.startswith(OWN)}
        predicate_names = {predicate.name for predicate in store.mapping.predicates}
        with_edges = {
            name: used for name, used in edged_predicates(schema).items() if name in predicate_names or name not in literal_keys
        }
        label_predicates = [name for name in texts_of(schema) if name in labels]
        literals = store.literals([name for name in texts_of(schema) if name not in labels])
        label_statements = store.gather([Unit(alg.Scan(None, (name,), family="attribute")) for name in label_predicates])
        numbers = np.arange(label_statements.statements, dtype=np.int32)
        texts, present = (
            set[str](),
            {label_statements.predicate_name(number) for number in set(label_statements.predicates(numbers).tolist())},
        )
        for part in (literals, label_statements):
            texts.update(part.texts.take(text_nodes(part)))
        for name in label_predicates:
            if name in present or name in schema.relations:
                with_edges[name] = True
            else:
                del with_edges[name]
        return sorted(texts), with_edges

    def gathered(self, units: Sequence[Unit], *, ends: bool) -> Snapshot:
        """See `Statements.gathered`."""
        return self._triples.gather(units, ends=ends)
