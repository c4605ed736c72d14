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
        found = super().catalogue_now()
        blank = sum(ident.startswith("_:") for ident in found.ids)
        if not blank:
            return found
        self.notes.append(f"patterns leave out nodes without an IRI, of which there are {blank:,}: graph.snapshot() has them")
        entities = zip(found.ids, found.names, found.kinds.tolist(), strict=True)
        return Catalogue(
            [one for one in entities if not one[0].startswith("_:")], found.texts,
            dict(zip(found.predicates, found.used.tolist(), strict=False)), memberships=bool(found.used[-1]), values=found.values,
        )  # fmt: skip

    def texts_now(self, schema: StoredSchema) -> tuple[list[str], dict[str, bool]]:
        """Return texts and predicates with edges. Labels are names, except those that a node has besides its name."""
        store, labels = self._triples, self._triples.label_names
        # Qualifiers about literals themselves are no predicates of the endpoint.
        said = {one.name for one in store.mapping.qualifiers if one.iri.startswith(OWN)}
        stated = {one.name for one in store.mapping.predicates}
        edged = {name: used for name, used in edged_predicates(schema).items() if name in stated or name not in said}
        own = [name for name in texts_of(schema) if name in labels]
        others = store.literals([name for name in texts_of(schema) if name not in labels])
        beside = store.gather([Unit(alg.Scan(None, (name,), family="attribute")) for name in own])
        every = np.arange(beside.statements, dtype=np.int32)
        texts, there = set[str](), {beside.predicate_name(number) for number in set(beside.predicates(every).tolist())}
        for some in (others, beside):
            texts.update(some.texts.take(text_nodes(some)))
        for name in own:
            if name in there or name in schema.relations:
                edged[name] = True
            else:
                del edged[name]
        return sorted(texts), edged

    def gathered(self, units: Sequence[Unit], *, ends: bool) -> Snapshot:
        """See `Statements.gathered`."""
        return self._triples.gather(units, ends=ends)
