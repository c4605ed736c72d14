"""A real Neo4j Community server for the tests: fetched from Maven Central, started on free loopback ports, stopped by its process.

    python tools/neo4j_server.py [--version 5.26.14]     starts one in the foreground and prints its address; Control-C stops it

Needs a Java that the version runs on (17 or 21 for 5.26, 25 for 2026.x) and Maven. The jars are kept in a cache folder
(`CONDGRAPH_CACHE`, else `~/.cache/condgraph`), the data in a temporary folder that goes with the server.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from types import TracebackType

LTS = "5.26.14"
CURRENT = "2026.08.1"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>condgraph</groupId><artifactId>neo4j-jars</artifactId><version>1</version><packaging>pom</packaging><dependencies>
<dependency><groupId>org.neo4j</groupId><artifactId>neo4j</artifactId><version>{version}</version></dependency>
<dependency><groupId>org.neo4j.app</groupId><artifactId>neo4j-server</artifactId><version>{version}</version></dependency>
{more}</dependencies></project>
"""
_BROWSER = (
    "<dependency><groupId>org.neo4j.client</groupId><artifactId>neo4j-browser</artifactId><version>5.24.0</version></dependency>\n"
)
_OPENS = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")
#: Java options of a server that lives for minutes: it would compile for longer than that pays.
_SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_ADMIN = ("--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "-XX:+UseParallelGC")
_ENTRY = "META-INF/services/org.neo4j.server.startup.EntryPoint"


class ServerError(RuntimeError):
    """The server cannot be had here, or did not start; the message says why."""


def java_for(version: str) -> str:
    """A Java that runs this version of Neo4j; raises `ServerError` where there is none."""
    wanted = (17, 21) if version.startswith("5.") else (21, 25)
    homes = [os.environ.get("JAVA_HOME", ""), *sorted(map(str, Path("/usr/lib/jvm").glob("*")), reverse=True)]
    found = [str(Path(home, "bin", "java")) for home in homes if home] + [shutil.which("java") or ""]
    for java in found:
        if java and os.access(java, os.X_OK):
            said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
            major = re.search(r'version "(\d+)', said)
            if major and int(major[1]) in wanted:
                return java
    raise ServerError(f"Neo4j {version} needs Java {' or '.join(map(str, wanted))}, and none was found")


def jars(version: str, *, browser: bool = False) -> Path:
    """The folder of the server's jars, fetched on first use; with Neo4j Browser, which is a jar of its own."""
    folder = f"neo4j-{version}-browser" if browser else f"neo4j-{version}"
    cache = Path(os.environ.get("CONDGRAPH_CACHE", Path.home() / ".cache" / "condgraph")) / folder
    lib = cache / "lib"
    if (cache / "complete").exists():
        return lib
    maven = shutil.which("mvn")
    if maven is None:
        raise ServerError("Maven (mvn) fetches the server and is not installed")
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True)
    (cache / "pom.xml").write_text(_POM.format(version=version, more=_BROWSER if browser else ""))
    command = [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={lib}"]
    said = subprocess.run(command, cwd=cache, capture_output=True, text=True, check=False)
    if said.returncode:
        raise ServerError(f"the jars of Neo4j {version} could not be fetched:\n{said.stdout[-2000:]}")
    (cache / "complete").touch()
    return lib


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Neo4jServer:
    """A server of one version; a context manager. `uri` is its bolt address, `http` that of its HTTP side.

    There is no authentication unless `password` (of at least eight characters) says that of the user `neo4j`. `short` is for a
    server that lives for minutes: its Java compiles less. `browser` adds Neo4j Browser, under `/browser/` of `http`
    (versions 5 only).
    """

    def __init__(
        self, version: str = LTS, *, memory: str = "1g", short: bool = False, password: str | None = None, browser: bool = False
    ) -> None:
        self.version, self.memory, self.short, self.password = version, memory, short, password
        self.browser = browser
        self.home = Path(tempfile.mkdtemp(prefix="condgraph-neo4j-"))
        self.bolt_port, self.http_port = free_port(), free_port()
        self.uri = f"bolt://127.0.0.1:{self.bolt_port}"
        self.http = f"http://127.0.0.1:{self.http_port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Neo4jServer:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        self.remove()

    def start(self, *, wait: float = 120.0) -> None:
        """Start, and return once it answers; raises `ServerError` with the end of its log."""
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
        (self.home / "conf" / "neo4j.conf").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if self.password is not None and not (self.home / "data" / "dbms").exists():
            self.admin("dbms", "set-initial-password", self.password)
        log = (self.home / "console.log").open("ab")
        command = [
            java,
            f"-Xmx{self.memory}",
            *(_SHORT if self.short else ()),
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
        with log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + wait
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                tail = (self.home / "console.log").read_text(errors="replace")[-3000:]
                self.stop()
                raise ServerError(f"Neo4j {self.version} did not start:\n{tail}")
            time.sleep(0.2)

    def _answers(self) -> bool:
        # The HTTP side is the last to come up; its root names the bolt address once the database is there.
        try:
            with socket.create_connection(("127.0.0.1", self.http_port), timeout=1) as http:
                http.sendall(b"GET / HTTP/1.0\r\nAccept: application/json\r\n\r\n")
                return b"bolt_direct" in http.recv(4096)
        except OSError:
            return False

    def admin(self, *arguments: str, folder: Path | None = None) -> str:
        """Run `neo4j-admin` on the server's folder, and give what it says; raises `ServerError` where it fails."""
        lib, java = jars(self.version, browser=self.browser), java_for(self.version)
        command = [java, f"-Xmx{self.memory}", *_ADMIN, "-cp", f"{lib}/*", "org.neo4j.cli.AdminTool", *arguments]
        environment = os.environ | {"NEO4J_HOME": str(self.home), "NEO4J_CONF": str(self.home / "conf")}
        said = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        if said.returncode:
            raise ServerError(f"neo4j-admin {' '.join(arguments[:2])} failed:\n{said.stdout[-3000:]}\n{said.stderr[-3000:]}")
        return said.stdout

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        return None if self._process is None else self._process.pid

    def kill(self) -> None:
        """End it as a crash would."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """End it; killed where it does not go within half a minute."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def remove(self) -> None:
        """Remove its data."""
        shutil.rmtree(self.home, ignore_errors=True)


def _main(lib: Path, version: str) -> str:
    """The class that starts the server, as the jar names it."""
    with zipfile.ZipFile(lib / f"neo4j-{version}.jar") as jar:
        names = [line.strip() for line in jar.read(_ENTRY).decode().splitlines() if line.strip() and not line.startswith("#")]
    return names[0]


def main() -> None:
    """Run one in the foreground."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default=LTS)
    parser.add_argument("--memory", default="1g", help="the most memory its Java takes for objects")
    parser.add_argument("--short", action="store_true", help="for minutes: its Java compiles less")
    parser.add_argument("--password", help="ask for this password of the user neo4j")
    parser.add_argument("--browser", action="store_true", help="with Neo4j Browser")
    parser.add_argument("--json", action="store_true", help="print the addresses as JSON")
    parser.add_argument("--while", type=int, dest="process", metavar="PID", help="stop when this process is gone")
    options = parser.parse_args()
    ends = {signal.SIGINT, signal.SIGTERM}
    try:
        with Neo4jServer(
            options.version, memory=options.memory, short=options.short, password=options.password, browser=options.browser
        ) as server:
            # Blocked, so that they are waited for and do not end this process before its server.
            signal.pthread_sigmask(signal.SIG_BLOCK, ends)
            about = {"uri": server.uri, "http": server.http, "server": server.pid}
            print(json.dumps(about) if options.json else f"{server.uri}  ({server.http})", flush=True)
            while signal.sigtimedwait(ends, 1.0) is None:
                if options.process is not None and not _runs(options.process):
                    break
    except ServerError as error:
        sys.exit(str(error))


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


if __name__ == "__main__":
    main()
