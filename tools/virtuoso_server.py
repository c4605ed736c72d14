"""A real Virtuoso for the tests: Debian's `virtuoso-opensource` on free loopback ports, stopped with the process that
started it.

    python tools/virtuoso_server.py     starts one in the foreground and prints its addresses; Control-C stops it

The ini file, the database and the log are in a temporary folder, which is removed with the server. `/sparql` accepts
queries and, after the grant in `start`, updates; `/sparql-auth` accepts both from the user `dba` (HTTP digest). Needs
the programs `virtuoso-t` and `isql-vt`: on Debian `apt-get install virtuoso-opensource-7-bin`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from service import ServerError, Service, answers, foreground, free_port

PASSWORD = "dba"
_INI = """[Database]
DatabaseFile = {home}/virtuoso.db
ErrorLogFile = {home}/virtuoso.log
LockFile = {home}/virtuoso.lck
TransactionFile = {home}/virtuoso.trx
xa_persistent_file = {home}/virtuoso.pxa
ErrorLogLevel = 7
FileExtend = 200
MaxCheckpointRemap = 2000
Striping = 0
TempStorage = TempDatabase
[TempDatabase]
DatabaseFile = {home}/temp.db
TransactionFile = {home}/temp.trx
MaxCheckpointRemap = 2000
Striping = 0
[Parameters]
ServerPort = 127.0.0.1:{sql}
LiteMode = 0
DisableUnixSocket = 1
MaxClientConnections = 20
CheckpointInterval = 0
CaseMode = 2
AllowOSCalls = 0
DirsAllowed = {home}
NumberOfBuffers = {buffers}
MaxDirtyBuffers = {dirty}
MaxQueryMem = 1G
ThreadsPerQuery = 2
AsyncQueueMaxThreads = 2
[HTTPServer]
ServerPort = 127.0.0.1:{http}
ServerRoot = {home}
ServerThreads = 20
MaxKeepAlives = 20
KeepAliveTimeout = 10
HTTPThreadSize = 280000
Charset = UTF-8
[Client]
SQL_QUERY_TIMEOUT = 0
SQL_TXN_TIMEOUT = 0
[SPARQL]
ResultSetMaxRows = {rows}
MaxQueryCostEstimationTime = 0
MaxQueryExecutionTime = 60
"""


class VirtuosoServer(Service):
    """A server; `query` accepts queries and updates from anybody, `protected` from `dba` by HTTP digest."""

    name = "virtuoso"

    def __init__(self, *, buffers: int = 30_000, writable: bool = True, rows: int = 100_000_000) -> None:
        super().__init__()
        self.buffers, self.writable, self.rows = buffers, writable, rows
        self.sql_port, self.http_port = free_port(), free_port()
        self.http = f"http://127.0.0.1:{self.http_port}"
        self.query = self.update = f"{self.http}/sparql"
        self.protected = f"http://dba:{PASSWORD}@127.0.0.1:{self.http_port}/sparql-auth"
        self.store = f"{self.http}/sparql-graph-crud"

    def start(self) -> None:
        """Start, and return once it answers; raise `ServerError` with the end of its log if it does not."""
        program = shutil.which("virtuoso-t")
        if program is None:
            raise ServerError("the program `virtuoso-t` is not installed (Debian: virtuoso-opensource-7-bin)")
        ini = self.home / "virtuoso.ini"
        is_new = not ini.exists()
        fields = {"home": self.home, "sql": self.sql_port, "http": self.http_port, "rows": self.rows}
        ini.write_text(_INI.format(**fields, buffers=self.buffers, dirty=self.buffers * 3 // 4))
        command = [program, "+configfile", str(ini), "+foreground", "+wait"]
        self.launch(command, ready=lambda: answers(f"{self.query}?query=ASK%7B%3Fs+%3Fp+%3Fo%7D"), wait=60)
        if is_new and self.writable:
            self.sql('GRANT SPARQL_UPDATE TO "SPARQL";')

    def restart(self) -> None:
        """Stop and start again, so that query plans made before a load are forgotten."""
        self.sql("checkpoint;")
        self.stop()
        self.start()

    def sql(self, text: str) -> str:
        """Run SQL as `dba`, and return the output of `isql`."""
        program = shutil.which("isql-vt") or shutil.which("isql-v")
        if program is None:
            raise ServerError("the program `isql-vt` is not installed (Debian: virtuoso-opensource-7-bin)")
        command = [
            program,
            f"127.0.0.1:{self.sql_port}",
            "dba",
            PASSWORD,
            "VERBOSE=OFF",
            "BANNER=OFF",
            "PROMPT=OFF",
            "ERRORS=STDOUT",
        ]
        result = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=120)
        if result.returncode or "*** Error" in result.stdout:
            raise ServerError(f"isql: {(result.stdout + result.stderr)[-1000:]}")
        return result.stdout


def main() -> None:
    """Run a server in the foreground."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    server = VirtuosoServer()
    foreground(server, lambda: f"query and update {server.query}  as dba {server.protected}  store {server.store}")


if __name__ == "__main__":
    main()
