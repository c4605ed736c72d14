"""The tools of a graph as an MCP server (`condgraph mcp`), over standard input and output or HTTP.

Every tool only reads, says so in its annotations, and gives structured output (`mcp_tools`). What a
program does wrong comes back as an error result with the nearest names, so that an agent can put it
right. Cancelling a request ends its query; so does the deadline of the server (`mcp_calls`).
"""

from __future__ import annotations

from typing import Any, Final

import condgraph
from condgraph.agents.toolbox import GUIDE, Toolbox
from condgraph.engine.errors import MissingExtraError

#: Calls of tools that run at once.
AT_ONCE: Final = 16
#: Bytes of the longest request over HTTP.
MOST_BYTES: Final = 4 << 20


def mcp_server(tools: Toolbox, *, name: str = "condgraph", at_once: int = AT_ONCE) -> Any:
    """An `MCPServer` over a graph's tools; `at_once` calls run at the same time, others wait. Raises
    `MissingExtraError`.
    """
    try:
        import anyio  # noqa: F401
        import mcp.server.mcpserver  # noqa: F401
        import pydantic  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "mcp", "mcp") from None
    from condgraph.agents import mcp_tools
    from condgraph.agents.mcp_calls import Calls, Server

    server = Server(name, title="condgraph", instructions=GUIDE, version=condgraph.__version__, log_level="WARNING")
    calls = Calls(at_once)
    mcp_tools.add_looking(server, tools, calls)
    mcp_tools.add_programs(server, tools, calls)
    if tools.llm is not None:
        mcp_tools.add_words(server, tools, calls)
    mcp_tools.add_resources(server, tools, calls)
    return server


# -- over HTTP -------------------------------------------------------------------------------------


def application(server: Any) -> Any:
    """The ASGI application of an MCP server, at `/mcp`. Who may ask is the business of the guard that
    it is put behind (`condgraph.endpoint.guard`), and not of the SDK.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return server.streamable_http_app(max_request_body_size=MOST_BYTES, transport_security=security)
