"""A graph for agents and for the frameworks they are built with.

`toolbox` has what an agent can do with a graph, as plain calls with plain records; the MCP server
(`mcp_server`, `condgraph mcp`) and the tools of LangChain and LlamaIndex are made from it. Every
framework is an extra, and is imported by the module that is named after it.
"""
