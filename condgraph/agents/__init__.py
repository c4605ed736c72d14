"""A graph as tools for agents and for agent frameworks.

`toolbox` has what an agent can do with a graph, as plain calls that return plain records. The MCP server
(`mcp_server`, `condgraph mcp`) and the tools of LangChain and LlamaIndex are built on it. Every framework
is an optional extra, imported only by the module named after it.
"""
