"""A graph in LangChain: a retriever, tools, and prepared programs as Runnables (extra `langchain`).

retriever = CondgraphRetriever(graph=graph)
retriever.invoke("Find(Nepal) Relate(capital, forward) QueryName()")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from condgraph.agents.toolbox import PIECES, Toolbox, answered, calls, pieces, plain
from condgraph.engine.errors import MissingExtraError

try:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda
    from langchain_core.runnables.config import patch_config, set_config_context
    from langchain_core.tools import BaseTool, StructuredTool
except ImportError as error:
    raise MissingExtraError(error.name or "langchain-core", "langchain") from None

if TYPE_CHECKING:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun

    from condgraph.graph import Graph
    from condgraph.prepared import PreparedProgram


class CondgraphRetriever(BaseRetriever):
    """A retriever for programs, patterns and, with `llm`, questions in words.

    The first document is the answer. It is followed by at most `k` of the statements that it is based
    on, each with its sources in `metadata`. `llm` is a model in any form that `Graph.ask` accepts,
    including LangChain chat models. `timeout` limits each call, in seconds.
    """

    graph: Any
    llm: Any = None
    k: int = PIECES
    timeout: float = 30.0

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        tools = Toolbox(self.graph, llm=self.llm, timeout=self.timeout)
        # Calls of a LangChain chat model belong to this run, in traces too.
        with set_config_context(patch_config(None, callbacks=run_manager.get_child())) as context:
            retrieved = context.run(pieces, tools, query, k=self.k)
        return [Document(page_content=piece.text, metadata=piece.metadata) for piece in retrieved]


def langchain_tools(graph: Graph, *, llm: Any = None, timeout: float = 30.0) -> list[BaseTool]:
    """Return the tools of a graph for an agent: schema, find, query, match, evidence, and ask with a model.

    Errors are returned as results that contain the nearest names.
    """
    tools = Toolbox(graph, llm=llm, timeout=timeout)
    return [StructuredTool.from_function(call, name=f"graph_{call.__name__}") for call in calls(tools)]


def langchain_runnable(
    prepared: PreparedProgram, *, limit: int = 1000, facts: int = 20
) -> RunnableLambda[dict[str, Any], dict[str, Any]]:
    """Turn a prepared program into a Runnable.

    It maps the values of the program's parameters to the record of the answer (`texts`, `answers`,
    `warnings`, `facts`), and raises the errors of the program.
    """

    def run(values: dict[str, Any]) -> dict[str, Any]:
        return plain(answered(prepared.run(values, limit=limit), limit, facts))

    return RunnableLambda(run, name="condgraph")
