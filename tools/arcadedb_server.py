"""A real ArcadeDB for the tests: the server in the package `arcadedb-embedded`, which includes Java, on free loopback
ports, stopped with the process that started it.

    python tools/arcadedb_server.py     starts one in the foreground and prints its address; Control-C stops it

The data is in a temporary folder, which is removed with the server.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import secrets
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from service import ServerError, Service, answers, foreground, free_port

USER = "root"


class ArcadedbServer(Service):
    """A server that speaks Bolt; `address(database)` is the address of a database, with its login."""

    name = "arcadedb"

    def __init__(self) -> None:
        super().__init__()
        self.bolt, self.port = free_port(), free_port()
        self.http = f"http://127.0.0.1:{self.port}"
        self.password = secrets.token_hex(8)

    def address(self, database: str) -> str:
        """Return the address of a database over Bolt."""
        return f"bolt://{USER}:{self.password}@127.0.0.1:{self.bolt}/{database}"

    def start(self) -> None:
        """Start, and return once it answers; raise `ServerError` with the end of its log if it does not."""
        package = home()
        options = {
            "server.rootPath": str(self.home),
            "server.rootPassword": self.password,
            "server.mode": "development",
            # The number of files for each type, which are created when it is first used.
            "typeDefaultBuckets": "1",
            "server.httpIncomingHost": "127.0.0.1",
            "server.httpIncomingPort": str(self.port),
            "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
            "bolt.host": "127.0.0.1",
            "bolt.port": str(self.bolt),
        }
        command = [
            str(package / "jre" / "bin" / "java"),
            "-Xmx1g",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            str(package / "jars" / "*"),
        ]
        command += [f"-Darcadedb.{name}={value}" for name, value in options.items()]
        self.launch([*command, "com.arcadedb.server.ArcadeDBServer"], ready=lambda: answers(f"{self.http}/api/v1/ready"), wait=90)

    def create(self, database: str) -> None:
        """Create an empty database."""
        self._command(f"create database {database}")

    def drop(self, database: str) -> None:
        self._command(f"drop database {database}")

    def _command(self, command: str) -> None:
        login = base64.b64encode(f"{USER}:{self.password}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        body = json.dumps({"command": command}).encode()
        request = urllib.request.Request(f"{self.http}/api/v1/server", body, headers, method="POST")
        with urllib.request.urlopen(request, timeout=60) as response:
            response.read()


def home() -> Path:
    """Return the folder of the package; raise `ServerError` if it is not installed."""
    spec = importlib.util.find_spec("arcadedb_embedded")
    folder = next(iter(spec.submodule_search_locations or ()), None) if spec else None
    if folder is None or not (Path(folder) / "jre").is_dir():
        raise ServerError("the server is not installed (PyPI: arcadedb-embedded)")
    return Path(folder)


def main() -> None:
    """Run a server in the foreground."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    server = ArcadedbServer()

    def address() -> str:
        server.create("graphs")
        return server.address("graphs")

    foreground(server, address)


if __name__ == "__main__":
    main()
