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
    """Documents for a program, a pattern, or, with `llm`, a question in words: the answer first, then
    at most `k` of the statements it rests on, each with its sources in `metadata`.

    `llm` is a model in any form that `Graph.ask` takes, a chat model of LangChain among them;
    `timeout` (seconds) bounds each call.
    """

    graph: Any
    llm: Any = None
    k: int = PIECES
    timeout: float = 30.0

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        tools = Toolbox(self.graph, llm=self.llm, timeout=self.timeout)
        # What a chat model of LangChain is asked is part of this run, in traces too.
        with set_config_context(patch_config(None, callbacks=run_manager.get_child())) as context:
            found = context.run(pieces, tools, query, k=self.k)
        return [Document(page_content=piece.text, metadata=piece.metadata) for piece in found]


def langchain_tools(graph: Graph, *, llm: Any = None, timeout: float = 30.0) -> list[BaseTool]:
    """The tools of a graph for an agent: schema, find, query, match, evidence, and ask with a model.
    Errors are results that name the nearest names.
    """
    tools = Toolbox(graph, llm=llm, timeout=timeout)
    return [StructuredTool.from_function(call, name=f"graph_{call.__name__}") for call in calls(tools)]


def langchain_runnable(
    prepared: PreparedProgram, *, limit: int = 1000, facts: int = 20
) -> RunnableLambda[dict[str, Any], dict[str, Any]]:
    """A prepared program as a Runnable: from the values of its parameters to the record of its answer
    (`texts`, `answers`, `warnings`, `facts`). It raises what the program raises.
    """

    def run(values: dict[str, Any]) -> dict[str, Any]:
        return plain(answered(prepared.run(values, limit=limit), limit, facts))

    return RunnableLambda(run, name="condgraph")
