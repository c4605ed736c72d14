"""Reads the edges of patterns on a graph in its own tables as rows of their ends, by the numbers of the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.execute.witness_plan import Unit
from condgraph.patterns.remote.catalogue import Catalogue, Tally
from condgraph.patterns.remote.planned import Edges, PlannedPatterns
from condgraph.patterns.remote.vectors import CachedVectors

if TYPE_CHECKING:
    from condgraph.sql.store import SqlStore


class SqlPatterns(PlannedPatterns):
    """Patterns on one content of a graph."""

    def __init__(self, store: SqlStore, vectors: CachedVectors) -> None:
        super().__init__(store, vectors)
        rows = store.entity_numbers()
        #: The catalogue's numbers of nodes, by those of the database.
        self._numbers = np.full(max((e for e, _ in rows), default=-1) + 1, -1, np.int64)
        self._numbers[[e for e, _ in rows]] = [self.catalogue.identified(entity_id) for _, entity_id in rows]

    def edges_of(self, units: Sequence[Unit], catalogue: Catalogue, *, statements: bool, tally: Tally) -> Edges:
        """See `Statements.edges_of`."""
        period = self._period
        if period is not None:
            units = [
                replace(unit, compiled=alg.During(unit.compiled, period.relation, period.interval))
                if isinstance(unit.compiled, alg.Facts)
                else unit
                for unit in units
            ]
        rows = cast("SqlStore", self._store).ends(units)
        tally.queries, tally.rows = tally.queries + 1, tally.rows + len(rows)
        if not rows:
            return np.empty((0, 4), np.int64)
        last, predicates = len(catalogue.predicates), catalogue.predicate_numbers
        subjects, objects, names, texts, keys = zip(*rows, strict=True)
        edges = np.zeros((len(rows), 4), np.int64)
        edges[:, 0] = self._numbers.take(subjects)
        edges[:, 1] = [last if name is None else predicates.get(name, -1) for name in names]
        edges[:, 2] = self._numbers.take([-1 if number is None else number for number in objects])
        if None in objects:
            at = [position for position, number in enumerate(objects) if number is None]
            edges[at, 2] = [catalogue.text(texts[position]) for position in at]
        if statements:
            edges[:, 3] = [0 if key is None else key for key in keys]
        result: Edges = edges[(edges[:, :3] >= 0).all(axis=1)]
        return result
