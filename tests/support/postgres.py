"""A real PostgreSQL for tests: a cluster in a folder of its own, on a free port of the loopback
address, ended with the process that started it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers import missing, watched

#: Where Debian keeps the programs.
_HOMES = ("/usr/lib/postgresql/*/bin",)


def program(name: str) -> str | None:
    """A program of PostgreSQL, on the path or where Debian keeps it."""
    found = shutil.which(name)
    if found:
        return found
    places = sorted(path for home in _HOMES for path in Path("/").glob(f"{home[1:]}/{name}"))
    return str(places[-1]) if places else None


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The address of a server that runs while this does, with a database `test`."""
    initdb, server = program("initdb"), program("postgres")
    if initdb is None or server is None:
        missing("there is no PostgreSQL: apt-get install postgresql")
    as_user: list[str] = []
    if os.getuid() == 0:
        # The server refuses to run as root.
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        for one in (folder, *folder.parents):
            if one.owner() == "root" and one != Path("/") and one.stat().st_mode & 0o5 != 0o5:
                one.chmod(one.stat().st_mode | 0o5)
        shutil.chown(folder, "postgres")
    data, port = folder / "pg", free_port()
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    subprocess.run(
        [*as_user, initdb, "-D", str(data), "-U", "test", "-A", "trust", "-E", "UTF8", "--no-sync"],
        check=True,
        stdout=subprocess.DEVNULL,
        env=environment,
        cwd="/",
    )
    command = [*as_user, server, "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(folder), "-F"]
    process = subprocess.Popen(
        watched(command),
        stdout=subprocess.DEVNULL,
        stderr=(folder / "postgres.log").open("wb"),
        env=environment,
        cwd="/",
    )
    try:
        import psycopg

        url = f"postgresql://test:a%40secret@127.0.0.1:{port}/postgres"
        until = time.monotonic() + 60
        while True:
            try:
                with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
                    connection.execute("CREATE DATABASE test")
                break
            except psycopg.OperationalError:
                late = process.poll() is not None or time.monotonic() > until
                assert not late, (folder / "postgres.log").read_text()
                time.sleep(0.1)
        yield url.removesuffix("postgres") + "test"
    finally:
        # At once, whoever is connected.
        process.send_signal(signal.SIGINT)
        process.wait(20)
