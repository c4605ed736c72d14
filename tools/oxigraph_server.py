"""A real Oxigraph server for the tests: the binary of the package `oxigraph`, on a free loopback port, stopped with the
process that started it.

    python tools/oxigraph_server.py     starts one in the foreground and prints its addresses; Control-C stops it

The data is in a temporary folder, which is removed with the server.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from service import ServerError, Service, answers, foreground, free_port


class OxigraphServer(Service):
    """A server: `query`, `update`, `store` (Graph Store Protocol) are its addresses. Anybody may write; queries end
    after `limit` s.
    """

    name = "oxigraph"

    def __init__(self, *, limit: int = 20) -> None:
        super().__init__()
        self.limit = limit
        self.port = free_port()
        self.http = f"http://127.0.0.1:{self.port}"
        self.query, self.update, self.store = (f"{self.http}/{end}" for end in ("query", "update", "store"))

    def start(self) -> None:
        """Start, and return once it answers; raise `ServerError` with the end of its log if it does not."""
        # The server does not notice that a client has gone, so an endless query would never stop.
        command = [binary(), "serve", "--location", str(self.home / "data"), "--bind", f"127.0.0.1:{self.port}"]
        command += ["--timeout-s", str(self.limit)]
        self.launch(command, ready=lambda: answers(f"{self.query}?query=ASK%7B%7D"), wait=30)


def binary() -> str:
    """Return the path of the server's program, next to this Python or on PATH; raise `ServerError` if there is none."""
    next_to_python = Path(sys.executable).parent / "oxigraph"
    path = str(next_to_python) if os.access(next_to_python, os.X_OK) else shutil.which("oxigraph")
    if path is None:
        raise ServerError("the program `oxigraph` is not installed (PyPI: oxigraph)")
    return path


def main() -> None:
    """Run a server in the foreground."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    server = OxigraphServer()
    foreground(server, lambda: f"query {server.query}  update {server.update}  store {server.store}")


if __name__ == "__main__":
    main()
