"""A graph in LlamaIndex: a retriever and tools (extra `llama-index`).

CondgraphRetriever(graph).retrieve("Find(Nepal) Relate(capital, forward) QueryName()")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from condgraph.agents.toolbox import PIECES, Toolbox, calls, pieces
from condgraph.engine.errors import MissingExtraError

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llama_index.core.tools import FunctionTool
except ImportError as error:
    raise MissingExtraError(error.name or "llama-index-core", "llama-index") from None

if TYPE_CHECKING:
    from condgraph.graph import Graph


class CondgraphRetriever(BaseRetriever):  # type: ignore[misc, unused-ignore]
    """A retriever for programs, patterns and, with `llm`, questions in words.

    The first node is the answer. It is followed by at most `k` of the statements that it is based on,
    each with its sources in `metadata`. All are exact, so every score is 1.
    """

    def __init__(self, graph: Graph, *, llm: Any = None, k: int = PIECES, timeout: float = 30.0, **options: Any) -> None:
        super().__init__(**options)
        self._tools, self._k = Toolbox(graph, llm=llm, timeout=timeout), k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        retrieved = pieces(self._tools, query_bundle.query_str, k=self._k)
        return [NodeWithScore(node=TextNode(text=piece.text, metadata=piece.metadata), score=1.0) for piece in retrieved]


def llamaindex_tools(graph: Graph, *, llm: Any = None, timeout: float = 30.0) -> list[FunctionTool]:
    """Return the tools of a graph for an agent: schema, find, query, match, evidence, and ask with a model.

    Errors are returned as results that contain the nearest names.
    """
    tools = Toolbox(graph, llm=llm, timeout=timeout)
    return [FunctionTool.from_defaults(fn=call, name=f"graph_{call.__name__}") for call in calls(tools)]
