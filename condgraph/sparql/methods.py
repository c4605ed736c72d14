"""The methods of a graph that give it to programs of RDF."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


class RdfMethods:
    """What `Graph` has of this room."""

    name: str

    if TYPE_CHECKING:

        def snapshot(self) -> Any:
            """See `Graph.snapshot`."""

    def to_rdflib(self, *, base: str | None = None, dataset: bool = False) -> Any:
        """The graph as an `rdflib.Graph`: the triples that RDF was loaded from, by their own IRIs, and
        what else there is under `base`; with `dataset` an `rdflib.Dataset` that has the named graphs
        too. Statements about statements are reified, since rdflib has no triple terms.

        What cannot be said so is a Python warning. Raises `MissingExtraError` where rdflib is not
        installed (`pip install 'condgraph[rdflib]'`), `OptionError` for what is no base.
        """
        from condgraph.sparql.rdflib_graph import to_rdflib

        current: Snapshot = self.snapshot().current
        return to_rdflib(current, self.name, base, dataset=dataset)
