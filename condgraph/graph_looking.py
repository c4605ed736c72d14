"""What looks at a graph: `status`, `schema`, `export`, and how notebooks show it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TYPE_CHECKING

from condgraph.engine.bounds import check, within
from condgraph.engine.html import page, table
from condgraph.engine.snapshot.directory import graph_names
from condgraph.graph_base import GraphBase
from condgraph.reports import COUNTED, SEE_SCHEMA, Status

if TYPE_CHECKING:
    from condgraph.overview.schema import GraphSchema
    from condgraph.overview.survey import Survey


class GraphLooking(GraphBase):
    """What `Graph` has of looking."""

    def status(self, *, verify: bool = False, timeout: float | None = None) -> Status:
        """What the graph holds; `verify` reads every byte and raises `StoreDamagedError` where one
        has changed.
        """
        with within(self.timeout if timeout is None else timeout):
            return self._status(verify)

    def _status(self, verify: bool) -> Status:
        snapshot = self.current
        if verify:
            snapshot.arrays.verify()
        others = () if self._directory is None else tuple(graph_names(Path(self.place)))
        generation = str(snapshot.about.get("generation", ""))
        return Status(
            self.place, self.name, generation, dict(snapshot.counts), self._sources(), snapshot.arrays.size, verify, others
        )

    def schema(
        self,
        *,
        source: str | None = None,
        concept: str | None = None,
        predicate: str | None = None,
        timeout: float | None = None,
    ) -> GraphSchema:
        """What can be asked about: sources, concepts, predicates with what stands on both sides,
        units, with counts and examples; the same on every store. `timeout` is in seconds.

        `source`, `concept` and `predicate` keep what has to do with the one of that name; numbers
        stay those of the whole graph. Raises `UnknownNameError`, with the nearest names, for a name
        that the graph does not have, and `StoreMissingError` where nothing was loaded.
        """
        from condgraph.overview.schema import describe

        with within(self.timeout if timeout is None else timeout):
            check()
            return describe(self._survey(), source=source, concept=concept, predicate=predicate)

    def _survey(self) -> Survey:
        from condgraph.overview.survey import survey

        return survey(self.current)

    def _repr_html_(self) -> str:
        """Where the graph is, for notebooks; what it holds, of one that is open in process. No
        server is asked for that.
        """
        snapshot = self._snapshot
        counts = [] if snapshot is None else [(name, f"{snapshot.counts.get(name, 0):,}") for name in COUNTED]
        return page(repr(self), [table("", ("holds", "how many"), counts)] if counts else (), [SEE_SCHEMA])

    def export(self, path: str | os.PathLike[str] | IO[str], *, to: str = "jsonl", base: str | None = None) -> int:
        """Write everything the graph holds, in a form that loads to an equal graph; returns how
        many lines or triples.

        `to` is "jsonl", RDF as "turtle" or "nquads", or "neo4j-import": a folder with the files and
        the command of Neo4j's import tool. "rdf" writes plain triples as N-Quads: those that RDF was
        loaded from, by their own IRIs, and what else there is under `base`; what they cannot say is
        a warning. A file is complete or not there: it is written beside
        its place and renamed.
        """
        from condgraph.exporting import export

        return export(self.current, self.name, path, to, base)
