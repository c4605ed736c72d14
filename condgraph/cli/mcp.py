"""`condgraph mcp`: the tools of a graph for agents, over standard input and output or HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from condgraph.cli.arguments import LoginOptions, StoreOption, grouped, opened
from condgraph.cli.exits import guard
from condgraph.engine.errors import OptionError


@grouped
def mcp(
    *,
    store: StoreOption,
    login: LoginOptions,
    http: Annotated[
        bool, typer.Option("--http", help="Serve streamable HTTP at /mcp instead of standard input and output.")
    ] = False,
    host: Annotated[
        str,
        typer.Option("--host", metavar="HOST", help="Address to listen on; a token is required if it is not only this machine."),
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port; 0 for any free port.")] = 7879,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", metavar="TOKEN", envvar="CONDGRAPH_MCP_TOKEN", help="The token that clients send as Authorization: Bearer."
        ),
    ] = None,
    cors: Annotated[
        list[str] | None, typer.Option("--cors", metavar="ORIGIN", help="An origin whose web pages may send requests; * for all.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Another name of this server, such as that of a proxy."),
    ] = None,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            metavar="MODEL",
            envvar="CONDGRAPH_LLM",
            help="The model of the tool `ask`; without a model there is no such tool.",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=0.001, help="The deadline of every call.")] = 30.0,
    at_once: Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Number of calls that run at once.")] = 16,
) -> None:
    """Give agents the graph as MCP tools: schema, find, query, match, evidence, and ask with a model.
    All of them only read.
    """
    with guard(), opened(store, login) as graph:
        from condgraph.agents.mcp_server import application, mcp_server
        from condgraph.agents.toolbox import Toolbox

        tools = Toolbox(graph, llm=llm, timeout=seconds, follow=True)
        server = mcp_server(tools, at_once=at_once)
        # Report a missing graph now, and not to the first agent.
        tools.schema(tokens=1)
        if not http:
            server.run("stdio")
            return
        from condgraph.endpoint.guard import BearerExchange, Guard, Guarded, Rates, Tokens, hosts_of, is_loopback, origins_of
        from condgraph.endpoint.server import listen, log_to_stderr
        from condgraph.endpoint.server import server as http_server

        tokens = Tokens({"mcp": token} if token else None)
        watch = Guard(tokens, Rates(0.0, 0.0), is_loopback(host), origins_of(cors or ()), hosts_of(allow_host or ()))
        if watch.closed:
            raise OptionError(
                f"{host} is reached from elsewhere, and no token is given", hint="--token, or the environment's CONDGRAPH_MCP_TOKEN"
            )
        log_to_stderr(requests=False)
        sock = listen(host, port)

        def started(address: str) -> None:
            typer.echo(f"{address}/mcp serves {login.graph!r} of {store} to agents")

        site = Guarded(application(server), watch, kinds={"/": BearerExchange})
        http_server(site, [sock], grace=5.0, started=started).run(sockets=[sock])
