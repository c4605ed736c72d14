"""A real Jena Fuseki for the tests: fetched from Maven Central, started on a free loopback port, stopped with the
process that started it.

    python tools/fuseki_server.py     starts one in the foreground and prints its addresses; Control-C stops it

One jar has the server with all dependencies; `maven.py` fetches and caches it. The data set is a TDB2 database in a
temporary folder, which is removed with the server. Needs Java 17 or later and Maven.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from maven import Artifact, jars, java_of
from service import Service, answers, foreground, free_port

VERSION = "5.6.0"
#: The server with its data set only: no web page, no administration, no modules.
_MAIN = "org.apache.jena.fuseki.main.cmds.FusekiMainCmd"
_LOG = """status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %c{1} %p %m%n
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
"""
#: Java options of a server that runs for minutes, for which full compilation does not pay.
_SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class FusekiServer(Service):
    """A server: `query`, `update`, `store` (Graph Store Protocol) are the addresses of its data set, and `dataset`
    accepts all three. Anybody may write; queries end after `limit` s.

    `memory` is the maximum of Java's heap. `short` is for a server that runs for minutes: Java compiles less.
    """

    name = "fuseki"

    def __init__(self, *, limit: int = 20, memory: str = "1g", short: bool = False) -> None:
        super().__init__()
        self.limit, self.memory, self.short = limit, memory, short
        self.port = free_port()
        self.http = f"http://127.0.0.1:{self.port}"
        self.dataset = f"{self.http}/ds"
        self.query, self.update, self.store = (f"{self.dataset}/{end}" for end in ("query", "update", "data"))

    def start(self) -> None:
        """Start, and return once it answers; raise `ServerError` with the end of its log if it does not."""
        java = java_of((17, 21, 25), f"Fuseki {VERSION}")
        lib = jars(
            f"fuseki-{VERSION}", f"Fuseki {VERSION}", [Artifact("org.apache.jena", "jena-fuseki-server", VERSION)], alone=True
        )
        (self.home / "data").mkdir(exist_ok=True)
        # The server reads this from its working folder; without it, every request is logged.
        (self.home / "log4j2.properties").write_text(_LOG)
        command = [java, f"-Xmx{self.memory}", *(_SHORT if self.short else ()), "-cp", f"{lib}/*", _MAIN]
        command += [f"--port={self.port}", "--localhost", "--tdb2", f"--loc={self.home / 'data'}", "--update"]
        command += [f"--timeout={self.limit * 1000}", "/ds"]
        self.launch(command, ready=lambda: answers(f"{self.query}?query=ASK%7B%7D"), wait=60)


def main() -> None:
    """Run a server in the foreground."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    server = FusekiServer()
    foreground(server, lambda: f"query {server.query}  update {server.update}  store {server.store}")


if __name__ == "__main__":
    main()
