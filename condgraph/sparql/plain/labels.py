"""Labels that are names and no facts: what each source calls entities and predicates, in its own
form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.declared import declared
from condgraph.engine.terms import Terms, is_iri
from condgraph.sparql.layout import LABEL
from condgraph.sparql.literals import string
from condgraph.sparql.plain.terms import Quad, TermWriter, labelled

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


class Labels:
    """The labels of a snapshot as triples. `terms` says of each source what its names are in RDF
    (None: it was no RDF); `everything` as for `Plain`.
    """

    def __init__(self, snapshot: Snapshot, write: TermWriter, terms: Sequence[Terms | None], *, everything: bool) -> None:
        self.snapshot, self._write, self._terms, self._everything = snapshot, write, terms, everything

    def quads(self) -> Iterator[Quad]:
        """Labels of entities, and of the predicates that were written."""
        snapshot = self.snapshot
        predicates: set[str] = set()
        for terms in self._terms:
            for own in terms.predicates.values() if terms is not None else ():
                if own.wikibase:
                    continue
                predicates.add(own.iri)
                for predicate, language, text in own.labels:
                    yield Quad(f"<{own.iri}>", f"<{predicate}>", labelled(text, language))
        for name in sorted(self._write.called):
            yield Quad(self._write.iris.predicate(name), LABEL, string(name))
        said = declared(snapshot)
        named, foreign = (said.name >= 0) & (said.src >= 0), np.array([one is not None for one in self._terms], bool)
        # Every source that was RDF says what it calls an entity, in its own form.
        own = named & foreign[said.src]
        idents = snapshot.texts.take(snapshot.entity_id[said.e[own]])
        for ident, name, source in zip(idents, snapshot.texts.take(said.name[own]), said.src[own].tolist(), strict=True):
            yield from self._label_of(ident, name, self._terms[source], self._terms[source])
        left = np.ones(snapshot.entities, bool)
        left[said.e[own]] = False
        others = np.zeros(snapshot.entities, bool)
        others[said.e[named]] = True
        sources = np.array(self._first_sources(), np.int32)[left].tolist()
        idents, names = (snapshot.texts.take(column[left]) for column in (snapshot.entity_id, snapshot.entity_name))
        rows = (snapshot.entity_kind[left] == EntityKind.ROW).tolist()
        for ident, name, source, row, other in zip(idents, names, sources, rows, others[left].tolist(), strict=True):
            found = self._terms[source] if source >= 0 else None
            if (found is None or other) and not self._everything:
                continue
            if not ((found is None and row) or ident in predicates):
                yield from self._label_of(ident, name, None if other else found, found)

    def _label_of(self, ident: str, name: str, said: Terms | None, terms: Terms | None) -> Iterator[Quad]:
        """The label of an entity, in the form that the source has that says it (None: it was no RDF);
        `terms` are those that have its IRI.
        """
        if said is None:
            if name != ident:
                yield Quad(self._write.node(ident, terms), LABEL, string(name))
            return
        form = said.apart.get(ident, said.naming) if name != ident or ident in said.apart else None
        if form is not None and (ident in said.apart or not (said.local and name == _local(ident))):
            yield Quad(self._write.node(ident, terms), f"<{form[0]}>", labelled(said.texts.get(ident, name), form[1]))

    def _first_sources(self) -> list[int]:
        """The source that says what an entity is called: of those that mention it the first that was
        RDF, else the first; where none does, and the id is an IRI, the first that was RDF.
        """
        snapshot, get = self.snapshot, self.snapshot.arrays.get
        found = np.full(snapshot.entities, -1, np.int32)
        foreign = [number for number, terms in enumerate(self._terms) if terms is not None]
        if len(self._terms) == 1:
            found[:] = 0
            return found.tolist()
        every = np.arange(snapshot.statements, dtype=np.int32)
        subjects, objects = snapshot.subjects(every), snapshot.relation_object
        order = [number for number in range(len(self._terms)) if number not in foreign]
        for number in reversed([*foreign, *order]):
            here = snapshot.source == number
            found[subjects[here]] = number
            found[objects[here[: len(objects)]]] = number
            for prefix, ends in (("mem", "ec"), ("sub", "cp")):
                rows = get(f"{prefix}.src") == number
                for end in ends:
                    found[get(f"{prefix}.{end}")[rows]] = number
        if foreign:
            for entity in np.flatnonzero(found < 0).tolist():
                ident = snapshot.ident(entity)
                if is_iri(ident) or ident.startswith("_:"):
                    found[entity] = foreign[0]
        return found.tolist()


def _local(iri: str) -> str:
    """The end of an IRI, as the loader of RDF takes it for a name."""
    end = max(iri.rfind(mark) for mark in "/#:")
    return iri[end + 1 :] or iri
