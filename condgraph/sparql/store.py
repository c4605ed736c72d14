"""From a program to an answer on an RDF store: one query, whose rows are the answer, or are what the
engine works it out on.

An `RdfStore` is whatever holds a graph as `layout` says and answers SELECT and ASK: the embedded
store, or an endpoint. What it does with a program is the same for both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from condgraph.engine.algebra import Node, postorder
from condgraph.engine.execute import Run
from condgraph.engine.pieces import watched
from condgraph.sparql.answer import FinishedAnswer, SparqlAnswer
from condgraph.sparql.compile.gather import gather_parts
from condgraph.sparql.compile.group import Target
from condgraph.sparql.compile.plan import compile_plan, compile_sizes
from condgraph.sparql.gathered import Gathered, LostRowsError, Row, finish
from condgraph.sparql.witness import compile_witness, count, run_witness, wanted

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution

    from condgraph.engine.answer import Answer
    from condgraph.engine.check import KnownIds
    from condgraph.engine.lowered import Lowered
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.store import Request, Size


class RdfStore(ABC):
    """A graph in an RDF store that is asked programs (`engine.store`): what its kinds have in
    common.
    """

    @property
    @abstractmethod
    def target(self) -> Target:
        """What compiling knows of the graph."""

    @abstractmethod
    def select(self, text: str) -> Iterable[QuerySolution]:
        """The solutions of a SELECT over the graph."""

    @abstractmethod
    def ask(self, text: str) -> bool:
        """The answer of an ASK over the graph."""

    def _lowered(self, request: Request) -> Lowered:
        return request.lowered(self.target.schema)

    def answer(self, request: Request) -> Answer:
        """Answer a program with one query."""
        lowered = self._lowered(request)
        plan, compiled = lowered.plan, compile_plan(lowered.plan, self.target)
        if compiled.shape == "truth":
            return SparqlAnswer(self, request, lowered, compiled, self.ask(compiled.text))
        rows = watched(self.select(compiled.text))
        if compiled.shape == "gathered":
            names = self.target.names
            try:
                gathered = Gathered(_gathered_rows(rows), names, _sources(plan))
            except LostRowsError:
                parts = gather_parts(plan, self.target) if self.target.dialect.gathers_in_parts else [_again(compiled.text)]
                gathered = Gathered(self._gathered(parts), names, _sources(plan))
            run = Run(gathered.snapshot)
            finish(run, plan, gathered, compiled.leaves)
            run.notes.update(lowered.notes)
            return FinishedAnswer(self, request, lowered, compiled, run)
        if compiled.shape == "best":
            return SparqlAnswer(self, request, lowered, compiled, list(_ties(rows)))
        return SparqlAnswer(self, request, lowered, compiled, list(rows))

    def explain(self, request: Request) -> str:
        """The SPARQL of a program, without running it."""
        return compile_plan(self._lowered(request).plan, self.target).text

    def witness(self, plan: Node) -> Run:
        """A plan run in process on the statements it rests on."""
        target, fetched = self.target, wanted(plan)
        texts = compile_witness(fetched, target)
        try:
            return run_witness(plan, fetched, self._gathered(texts), target.names)
        except LostRowsError:
            return run_witness(plan, fetched, self._gathered(map(_again, texts)), target.names)

    def _gathered(self, texts: Iterable[str]) -> Iterable[Row]:
        return (row for text in texts for row in _gathered_rows(self.select(text)))

    def around(self, ids: Sequence[str], names: Sequence[str], most: int, *, values: bool, concepts: bool = False) -> Snapshot:
        """The statements around entities, for chains: one query."""
        from condgraph.sparql.around import around

        return around(self, ids, names, most, values=values, concepts=concepts)

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """How many statements, or entities, each operator gives; `known` has the ids of what only
        the client works out.
        """
        return count(self, nodes, known)

    def sizes(self, nodes: Sequence[Node]) -> list[Size | None]:
        """How many results each operator gives, and the names of the first: one query for all that
        are patterns.
        """
        text = compile_sizes(list(nodes), self.target)
        sizes: dict[int, int] = {}
        names: dict[int, list[str]] = {}
        for row in self.select(text) if text else ():
            step = int(row["step"].value)
            if row["size"] is not None:
                sizes[step] = int(row["size"].value)
            elif row["name"] is not None:
                names.setdefault(step, []).append(row["name"].value)
        return [(sizes[step], tuple(sorted(names.get(step, ())))) if step in sizes else None for step in range(len(nodes))]


def _ties(rows: Iterable[QuerySolution]) -> Iterable[QuerySolution]:
    """The first solution and those that tie with it; what comes then is not read."""
    best, seen = None, set()
    for row in rows:
        if best is None:
            best = row["x"].value
        elif row["x"].value != best:
            return
        if row["e"].value not in seen:
            seen.add(row["e"].value)
            yield row


def _again(text: str) -> str:
    """Another text for the same query, which is planned anew."""
    return f"{text}\n# again"


def _gathered_rows(rows: Iterable[QuerySolution]) -> Iterable[Row]:
    for row in rows:
        leaf, n, s, p, o = (row[name].value for name in ("leaf", "n", "s", "p", "o"))
        yield leaf, n, s, p, o


def _sources(plan: Node) -> list[str]:
    return sorted({source for node in postorder(plan) if (source := getattr(node, "source", None))})
