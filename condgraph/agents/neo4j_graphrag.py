"""A graph in neo4j-graphrag: an `ExternalRetriever` (extra `neo4j-graphrag`).

    retriever = CondgraphRetriever(driver, graph)
    retriever.search(query_text="Find(Nepal) Relate(capital, forward) QueryName()")

The graph is searched wherever it is stored. The driver connects to the database whose nodes belong to
the results: with `node_label_neo4j` and `id_property_neo4j`, each result includes the properties of the
nodes whose id property is the id of an entity in the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from condgraph.agents.toolbox import PIECES, Piece, Toolbox, pieces
from condgraph.engine.errors import MissingExtraError, OptionError

try:
    import neo4j
    from neo4j_graphrag.retrievers.base import ExternalRetriever
    from neo4j_graphrag.types import RawSearchResult, RetrieverResultItem
except ImportError as error:
    raise MissingExtraError(error.name or "neo4j-graphrag", "neo4j-graphrag") from None

if TYPE_CHECKING:
    from condgraph.graph import Graph


class CondgraphRetriever(ExternalRetriever):  # type: ignore[misc, unused-ignore]
    """A retriever for programs, patterns and, with `llm`, questions in words.

    The first result is the answer. It is followed by the statements that it is based on, each with its
    sources. `timeout` limits each search, in seconds.
    """

    def __init__(
        self,
        driver: neo4j.Driver,
        graph: Graph,
        *,
        llm: Any = None,
        timeout: float = 30.0,
        node_label_neo4j: str | None = None,
        id_property_neo4j: str = "id",
        neo4j_database: str | None = None,
    ) -> None:
        super().__init__(driver, "id", id_property_neo4j, neo4j_database, node_label_neo4j)
        self._tools = Toolbox(graph, llm=llm, timeout=timeout)

    def get_search_results(
        self,
        query_vector: list[float] | None = None,
        query_text: str | None = None,
        top_k: int = PIECES,
        parameters: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> RawSearchResult:
        """Search the graph.

        Args:
            query_vector: not supported; names are found by their texts.
            query_text: a program, a pattern, or a question in words.
            top_k: the most statements that the answer is based on.
            parameters: values of `$name` in the program.
        """
        if query_text is None or query_vector is not None:
            raise OptionError("the graph is queried with query_text, not with a vector")
        if kwargs:
            raise OptionError(f"the search takes no {next(iter(kwargs))!r}")
        retrieved = pieces(self._tools, query_text, k=top_k, parameters=parameters)
        nodes = self._nodes(retrieved)
        records = [
            neo4j.Record(  # type: ignore[no-untyped-call, unused-ignore]
                {"text": item.text, "metadata": item.metadata, "nodes": [nodes[ident] for ident in item.ids if ident in nodes]}
            )
            for item in retrieved
        ]
        return RawSearchResult(records=records, metadata={"program": retrieved[0].metadata.get("program", "")})

    def _nodes(self, retrieved: list[Piece]) -> dict[str, Any]:
        """Return the properties, by id, of database nodes that are entities in the results."""
        if self.node_label_neo4j is None:
            return {}
        label, name = (text.replace("`", "``") for text in (self.node_label_neo4j, self.id_property_neo4j))
        text = f"MATCH (n:`{label}`) WHERE n.`{name}` IN $ids RETURN n.`{name}` AS id, properties(n) AS node"
        ids = sorted({ident for item in retrieved for ident in item.ids})
        records, _, _ = self.driver.execute_query(
            neo4j.Query(text, timeout=self._tools.timeout), {"ids": ids},
            database_=self.neo4j_database, routing_=neo4j.RoutingControl.READ,
        )  # fmt: skip
        return {record["id"]: record["node"] for record in records}

    def default_record_formatter(self, record: neo4j.Record) -> RetrieverResultItem:
        """Format a result as text, with its metadata and nodes."""
        nodes = record["nodes"]
        return RetrieverResultItem(content=record["text"], metadata=record["metadata"] | ({"nodes": nodes} if nodes else {}))
