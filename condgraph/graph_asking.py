"""What asks a graph exactly: `kopl`, `query`, `sparql`, `match`, `explain`, which store answers, and
`generate`, which makes questions to ask.

The other ways of asking stand in the rooms they are of (`ask`, `chains`, `claims`, `logic` and
others), and come here for their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from condgraph.engine.answer import Answer
from condgraph.engine.bounds import check_bounds, within
from condgraph.engine.errors import OptionError, nearest
from condgraph.engine.workers import Once
from condgraph.graph_base import GraphBase
from condgraph.languages.registry import answer, explain
from condgraph.languages.registry import checked_on_unknown as _checked
from condgraph.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node
    from condgraph.engine.check import KnownIds
    from condgraph.engine.store import Store
    from condgraph.patterns.matches import Matches
    from condgraph.questions.generate import Questions
    from condgraph.sparql.embedded import EmbeddedStore
    from condgraph.sparql.text.table import Table
    from condgraph.vectors.encoders import Encoder

OnUnknown = Literal["error", "empty"]
#: What answers: the snapshot in process, or SPARQL on an RDF store; by default the first, and for a
#: graph on a server that server.
Engine = Literal["snapshot", "sparql"]
ENGINES: Final = ("snapshot", "sparql")


class GraphAsking(GraphBase):
    """What `Graph` has of asking."""

    if TYPE_CHECKING:

        def snapshot(self) -> GraphBase:
            """See `Graph.snapshot`."""

    def kopl(
        self,
        program: Any,
        *,
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
        engine: Engine | None = None,
    ) -> Answer:
        """Answer a KoPL program: text, the data set's JSON list, or the serialisation of its
        baselines.

        `timeout` is in seconds; `limit` the most values to give (the answer warns of the rest);
        `on_unknown="empty"` lets unknown names mean nothing. `engine="sparql"` answers with one
        SPARQL query on the graph's embedded RDF store instead.
        """
        return self._ask(program, "kopl", engine, timeout, cancelled, limit, {"on_unknown": _checked(on_unknown)})

    def query(
        self,
        /,
        program: Any,
        *,
        language: str | None = None,
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
        engine: Engine | None = None,
        **options: Any,
    ) -> Answer:
        """Answer a program in any language; it is recognised from the text, `language` overrules.
        `engine` as for `kopl`.
        """
        options["on_unknown"] = _checked(on_unknown)
        return self._ask(program, language, engine, timeout, cancelled, limit, options)

    def _ask(
        self,
        program: Any,
        language: str | None,
        engine: str | None,
        timeout: float | None,
        cancelled: Event | None,
        limit: int | None,
        options: dict[str, Any],
    ) -> Answer:
        if timeout is None:
            timeout = self.timeout
        if timeout is None and cancelled is None:
            return answer(self._store_of(engine), program, language, limit, options)
        with within(timeout, cancelled):
            return answer(self._store_of(engine), program, language, limit, options).keep_to(timeout)

    def _store_of(self, engine: str | None) -> Store:
        """What answers, and raises `OptionError` for what is no engine of this graph."""
        if engine is None or _checked_engine(engine) == "snapshot":
            return SnapshotStore(self.current)
        return self.rdf()

    def sparql(
        self,
        text: str,
        *,
        dialect: str = "standard",
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
    ) -> Table:
        """Run a SPARQL 1.1 query, read-only, over the graph's RDF face; its solutions as a table of
        typed values.

        Relative IRIs are names of the graph: `<height>` is its predicate. `dialect="kqapro"` takes
        queries as KQA Pro published them. `timeout` is in seconds; `limit` the most rows.
        """
        with within(self.timeout if timeout is None else timeout, cancelled):
            return self._sparql(text, dialect=dialect, limit=limit, on_unknown=_checked(on_unknown))

    def _sparql(self, text: str, **options: Any) -> Table:
        return self.rdf().text(text, **options)

    def rdf(self, base: str | None = None) -> EmbeddedStore:
        """The embedded RDF store of the graph as it is now: built on first use, kept beside the
        generation it was built from. One whose names begin with a `base` of one's own is built
        anew each time, in memory.
        """
        # Oxigraph and all that needs it are imported for those who ask it.
        from condgraph.sparql.embedded import BUILDERS, EmbeddedStore
        from condgraph.sparql.layout import checked_base

        snapshot = self.current
        if base is not None:
            return EmbeddedStore(snapshot, self.name, base=checked_base(base))
        with self._rdf_lock:
            if self._rdf is None or self._rdf[0] is not snapshot:
                self._rdf = snapshot, Once(BUILDERS, lambda: EmbeddedStore(snapshot, self.name, self._directory))
            store = self._rdf[1]
        return store.get()

    def match(
        self,
        pattern: Any,
        *,
        k: int | None = 3,
        group_by: str | Sequence[str] | None = None,
        distinct_from: Any = None,
        injective: bool = False,
        free: bool = False,
        induced: bool = False,
        directed: bool | None = None,
        k_nodes: int | None = None,
        k_relations: int | None = None,
        k_types: int | None = None,
        fast: bool = False,
        stretch: bool = False,
        leave_out: bool = False,
        encoder: Encoder | str | None = None,
        timeout: float | None = None,
        limit: int | None = None,
        cancelled: Event | None = None,
        exact: bool = True,
        engine: Engine | None = None,
    ) -> Matches:
        """The k subgraphs that are most similar to a pattern (SimGRAG), exactly, by graph semantic
        distance.

        `pattern` is triples of texts, `[("UNKNOWN film 1", "directed by", "Clint Eastwood")]`, or
        one of its text forms. `k=None` is all at the best distance; `group_by` names unknown nodes,
        each value of which is given once. `distinct_from` keeps unknown nodes from being given
        entities. No statement is used twice, and nodes may be the same; `injective` keeps nodes
        apart (Definition 1), `free` lets statements be used again. An edge that runs against the
        pattern costs 0.05; `directed=True` forbids it, `directed=False` makes it free. An `induced`
        subgraph has no edge
        between nodes that the pattern does not join; with `directed` also none against the
        pattern's own. `k_nodes`, `k_relations` and `k_types` limit the candidates, `fast=True` to
        the paper's numbers; the answer is approximate then. With `stretch` an edge
        may stand for a path of two (0.25 more); with `leave_out`, where nothing is near, a named
        edge may be left out. With a `timeout` (seconds), the best so
        far is given and marked as such. With `exact=False` candidates come from the approximate
        index (`index(..., faiss=True)`), which may miss some. `engine="sparql"` asks the embedded
        RDF store for the edges.
        """
        check_bounds(timeout, limit, what="solutions to show")
        timeout = self.timeout if timeout is None else timeout
        with within(timeout, cancelled):
            found = self._store_of(engine).match(
                pattern, exact=exact, encoder=encoder, limit=limit, k=k, group_by=group_by, distinct_from=distinct_from,
                injective=injective, free=free, induced=induced, directed=directed, k_nodes=k_nodes,
                k_relations=k_relations, k_types=k_types, fast=fast, stretch=stretch, leave_out=leave_out,
            )  # fmt: skip
        return cast("Matches", found).keep_to(timeout)

    def explain(
        self,
        /,
        program: Any,
        *,
        language: str | None = None,
        on_unknown: OnUnknown = "error",
        engine: Engine | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> str:
        """The plan of a program as text, without running it; on a server, and with
        `engine="sparql"`, the query that it becomes.
        """
        with within(self.timeout if timeout is None else timeout):
            return explain(self._store_of(engine), program, language, {"on_unknown": _checked(on_unknown), **options})

    def counted(self, nodes: Sequence[Node], known: KnownIds, timeout: float | None = None) -> list[int]:
        """How many statements, or entities, each operator gives in this graph, for `Answer.check`;
        `timeout` is in seconds.
        """
        with within(timeout):
            return self._store_of(None).counted(nodes, known)

    def generate(
        self,
        n: int,
        *,
        seed: int = 0,
        kinds: Collection[str] | Mapping[str, float] | None = None,
        hops: int | Collection[int] | Mapping[int, float] | None = None,
        qualifiers: float | None = None,
        llm: Callable[[str], str] | None = None,
        queries: bool = True,
    ) -> Questions:
        """Up to n questions about the graph, with programs, answers, choices and words, one after
        the other (KQA Pro, section 4); `warnings` of what is given says why there are fewer.

        The same seed gives the same questions. `kinds` and `hops` are those that are wanted, or the
        share of each; by default the data set's. `qualifiers` is the share of facts with qualifiers
        among those asked about, 0 to 1. `llm`, from text to text, paraphrases; `queries=False`
        leaves SPARQL and Cypher out. A graph on a server is pulled first.
        """
        from condgraph.questions.generate import Questions

        snapshot = self.snapshot().current
        return Questions(
            snapshot, n, seed=seed, kinds=kinds, hops=hops, qualifiers=qualifiers, llm=llm, queries=queries, graph=self.name
        )


def _checked_engine(engine: str) -> str:
    if engine not in ENGINES:
        raise OptionError(f"engine is 'snapshot' or 'sparql', not {engine!r}", candidates=nearest(engine, ENGINES))
    return engine
