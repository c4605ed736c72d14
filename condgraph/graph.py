"""The public API of a graph, as one class: opening and closing stand here, the rest in its bases.

Loading, asking and looking are in `graph_loading`, `graph_asking` and `graph_looking`, what else a
graph can do in the rooms of the package.
"""

from __future__ import annotations

from types import TracebackType

from condgraph.ask.methods import AskMethods
from condgraph.chains.methods import ChainMethods
from condgraph.claims.methods import Claims
from condgraph.engine.snapshot.directory import is_current
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.grammars.methods import Grammars
from condgraph.graph_asking import GraphAsking
from condgraph.graph_loading import GraphLoading
from condgraph.graph_looking import GraphLooking
from condgraph.languages.table.methods import TableMethods
from condgraph.links.methods import LinkMethods
from condgraph.logic.evaluation.methods import EvaluationMethods
from condgraph.logic.methods import LogicMethods
from condgraph.prepared import Preparing
from condgraph.sparql.rdflib_graph import RdfMethods


class Graph(
    GraphLoading,
    GraphAsking,
    GraphLooking,
    AskMethods,
    ChainMethods,
    Claims,
    EvaluationMethods,
    Grammars,
    LinkMethods,
    LogicMethods,
    Preparing,
    RdfMethods,
    TableMethods,
):
    """One graph: in a directory (kept, memory-mapped), or in memory. Use it from any thread; loads
    take turns.

    A `timeout` (seconds) is of the whole call: it is answered, or raises `DeadlineError`, by then.
    What an answer is asked for later (evidence, trace, warnings) has the same timeout again.
    """

    @classmethod
    def of(cls, snapshot: Snapshot, graph: str = "default") -> Graph:
        """A graph in memory over a snapshot that is there already."""
        found = cls("memory:", graph=graph)
        found._snapshot = snapshot
        return found

    # -- opening and closing -----------------------------------------------------------------------

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the snapshot; answers that were given stay good."""
        self._snapshot, self._rdf, self._closed = None, None, True

    def refresh(self) -> None:
        """Turn to the current generation, which another process may have written."""
        if self._directory is None or (self._snapshot is not None and is_current(self._directory, self._snapshot.about)):
            return
        self._snapshot = Snapshot.open(self._directory)

    def snapshot(self) -> Graph:
        """The graph as it is now, in process: later loads do not change it. A graph on a server is
        pulled whole.
        """
        return Graph.of(self.current, self.name)

    def __repr__(self) -> str:
        return f"<Graph {self.name!r} in {self.place}>"
