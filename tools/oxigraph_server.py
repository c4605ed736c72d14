"""A real Oxigraph server for the tests: the binary of PyPI's `oxigraph`, on a free loopback port,
stopped by its process.

    python tools/oxigraph_server.py     starts one in the foreground and prints its addresses; Control-C stops it

The data is in a temporary folder that goes with the server.
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
    """A server: `query`, `update`, `store` (Graph Store Protocol) are its addresses. Anybody may
    write; queries have `limit` s.
    """

    name = "oxigraph"

    def __init__(self, *, limit: int = 20) -> None:
        super().__init__()
        self.limit = limit
        self.port = free_port()
        self.http = f"http://127.0.0.1:{self.port}"
        self.query, self.update, self.store = (f"{self.http}/{end}" for end in ("query", "update", "store"))

    def start(self) -> None:
        """Start, and return once it answers; raises `ServerError` with the end of its log."""
        # Nobody tells the server that a client has gone; a query without end would run as long as
        # the server does.
        command = [binary(), "serve", "--location", str(self.home / "data"), "--bind", f"127.0.0.1:{self.port}"]
        command += ["--timeout-s", str(self.limit)]
        self.launch(command, ready=lambda: answers(f"{self.query}?query=ASK%7B%7D"), wait=30)


def binary() -> str:
    """The server's program: beside this Python, or in the search path; raises `ServerError` where
    there is none.
    """
    beside = Path(sys.executable).parent / "oxigraph"
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("oxigraph")
    if found is None:
        raise ServerError("the program `oxigraph` is not installed (PyPI: oxigraph)")
    return found


def main() -> None:
    """Run one in the foreground."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    server = OxigraphServer()
    foreground(server, lambda: f"query {server.query}  update {server.update}  store {server.store}")


if __name__ == "__main__":
    main()
