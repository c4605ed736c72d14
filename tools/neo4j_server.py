"""A real Neo4j Community server for the tests: fetched from Maven Central, started on free loopback ports, stopped with
the process that started it.

    python tools/neo4j_server.py [--version 5.26.14]     starts one in the foreground and prints its address; Control-C stops it

Needs a Java for the version (17 or 21 for 5.26, 25 for 2026.x) and Maven. The jars are cached in a folder
(`CONDGRAPH_CACHE`, else `~/.cache/condgraph`); the data is in a temporary folder, which is removed with the server.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import maven
from maven import Artifact, java_of
from service import ServerError, Service, foreground, free_port

LTS = "5.26.14"
CURRENT = "2026.08.1"
_BROWSER = Artifact("org.neo4j.client", "neo4j-browser", "5.24.0")
_OPENS = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")
#: Java options of Neo4j's own configuration file; all memory is touched at the start.
_USUAL = (
    *("-XX:+UseG1GC", "-XX:-OmitStackTraceInFastThrow", "-XX:+AlwaysPreTouch", "-XX:+UnlockExperimentalVMOptions"),
    *("-XX:+TrustFinalNonStaticFields", "-XX:+DisableExplicitGC"),
)
#: Java options of a server that allocates memory as needed, and fully compiles only code called five times as often as usual:
#: the queries of tests differ, and in a quarter of an hour this saves a tenth of the server's CPU.
_LIGHT = (
    *("-XX:+UseSerialGC", "-XX:Tier4InvocationThreshold=25000", "-XX:Tier4MinInvocationThreshold=3000"),
    *("-XX:Tier4CompileThreshold=75000", "-XX:Tier4BackEdgeThreshold=200000"),
)
#: Java options of a server that runs for a minute or two, for which full compilation does not pay.
_SHORT = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_ADMIN = ("--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "-XX:+UseParallelGC")
_ENTRY = "META-INF/services/org.neo4j.server.startup.EntryPoint"


def java_for(version: str) -> str:
    """Return a Java for a version of Neo4j; raise `ServerError` if there is none."""
    return java_of((17, 21) if version.startswith("5.") else (21, 25), f"Neo4j {version}")


def jars(version: str, *, browser: bool = False) -> Path:
    """Return the folder with the server's jars, fetched on first use, and with the jar of Neo4j Browser on request."""
    artifacts = [Artifact("org.neo4j", "neo4j", version), Artifact("org.neo4j.app", "neo4j-server", version)]
    name = f"neo4j-{version}-browser" if browser else f"neo4j-{version}"
    return maven.jars(name, f"Neo4j {version}", [*artifacts, _BROWSER] if browser else artifacts)


def browser_jar() -> Path:
    """Return the jar with the files of Neo4j Browser, fetched on first use."""
    (jar,) = maven.jars("neo4j-browser", "Neo4j Browser", [_BROWSER], alone=True).glob("*.jar")
    return jar


class Neo4jServer(Service):
    """A server of one version; a context manager. `uri` is its Bolt address, `http` its HTTP address.

    There is no authentication unless `password` (of at least eight characters) is given for the user `neo4j`. `light`
    allocates memory as needed; `short` is for a server that runs for a minute or two, and compiles less. `browser` adds
    Neo4j Browser at `/browser/` of `http` (versions 5 only). `settings` are lines of `neo4j.conf` that extend or
    replace the usual ones.
    """

    name = "neo4j"

    def __init__(
        self,
        version: str = LTS,
        *,
        memory: str = "1g",
        light: bool = False,
        short: bool = False,
        password: str | None = None,
        browser: bool = False,
        settings: dict[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.version, self.memory, self.password = version, memory, password
        self.options = _SHORT if short else _LIGHT if light else (f"-Xms{memory}", *_USUAL)
        self.browser, self.settings = browser, settings or {}
        self.bolt_port, self.http_port = free_port(), free_port()
        self.uri = f"bolt://127.0.0.1:{self.bolt_port}"
        self.http = f"http://127.0.0.1:{self.http_port}"

    def start(self) -> None:
        """Start, and return once it answers; raise `ServerError` with the end of its log if it does not."""
        lib, java = jars(self.version, browser=self.browser), java_for(self.version)
        (self.home / "conf").mkdir(exist_ok=True)
        (self.home / "import").mkdir(exist_ok=True)
        settings = {
            "server.bolt.listen_address": f"127.0.0.1:{self.bolt_port}",
            "server.bolt.advertised_address": f"127.0.0.1:{self.bolt_port}",
            "server.http.listen_address": f"127.0.0.1:{self.http_port}",
            "server.https.enabled": "false",
            "dbms.security.auth_enabled": "false" if self.password is None else "true",
            "dbms.usage_report.enabled": "false",
            "dbms.security.allow_csv_import_from_file_urls": "false",
            "server.directories.import": "import",
            "server.memory.pagecache.size": "256m",
            "db.transaction.timeout": "600s",
            "db.transaction.monitor.check.interval": "200ms",
        }
        lines = [f"{key}={value}\n" for key, value in (settings | self.settings).items()]
        (self.home / "conf" / "neo4j.conf").write_text("".join(lines))
        if self.password is not None and not (self.home / "data" / "dbms").exists():
            self.admin("dbms", "set-initial-password", self.password)
        command = [
            java,
            f"-Xmx{self.memory}",
            *self.options,
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENS),
            "-Dio.netty.tryReflectionSetAccessible=true",
            "-Dlog4j2.disable.jmx=true",
            "-cp",
            f"{lib}/*",
            _main(lib, self.version),
            f"--home-dir={self.home}",
            f"--config-dir={self.home / 'conf'}",
            "--console-mode",
        ]
        self.launch(command, ready=self._answers, wait=120)

    def _answers(self) -> bool:
        # HTTP starts last; its root names the Bolt address once the database is ready.
        try:
            with socket.create_connection(("127.0.0.1", self.http_port), timeout=1) as http:
                http.sendall(b"GET / HTTP/1.0\r\nAccept: application/json\r\n\r\n")
                return b"bolt_direct" in http.recv(4096)
        except OSError:
            return False

    def admin(self, *arguments: str, folder: Path | None = None) -> str:
        """Run `neo4j-admin` on the server's folder, and return its output; raise `ServerError` if it fails."""
        lib, java = jars(self.version, browser=self.browser), java_for(self.version)
        command = [java, f"-Xmx{self.memory}", *_ADMIN, "-cp", f"{lib}/*", "org.neo4j.cli.AdminTool", *arguments]
        environment = os.environ | {"NEO4J_HOME": str(self.home), "NEO4J_CONF": str(self.home / "conf")}
        result = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode:
            raise ServerError(f"neo4j-admin {' '.join(arguments[:2])} failed:\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}")
        return result.stdout


def _main(lib: Path, version: str) -> str:
    """Return the class that starts the server, as named in the jar."""
    with zipfile.ZipFile(lib / f"neo4j-{version}.jar") as jar:
        names = [line.strip() for line in jar.read(_ENTRY).decode().splitlines() if line.strip() and not line.startswith("#")]
    return names[0]


def main() -> None:
    """Run a server in the foreground."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default=LTS)
    parser.add_argument("--memory", default="1g", help="the most memory its Java takes for objects")
    parser.add_argument("--light", action="store_true", help="its Java takes memory as it needs it")
    parser.add_argument("--password", help="ask for this password of the user neo4j")
    parser.add_argument("--browser", action="store_true", help="with Neo4j Browser")
    parser.add_argument("--json", action="store_true", help="print the addresses as JSON")
    options = parser.parse_args()
    server = Neo4jServer(
        options.version, memory=options.memory, light=options.light, password=options.password, browser=options.browser
    )

    def addresses() -> str:
        fields = {"uri": server.uri, "http": server.http, "server": server.pid}
        return json.dumps(fields) if options.json else f"{server.uri}  ({server.http})"

    foreground(server, addresses)


if __name__ == "__main__":
    main()
