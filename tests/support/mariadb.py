"""A real MariaDB for tests: a data folder of its own, a free port of the loopback address, stopped with the process
that started it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.postgres import free_port
from tests.support.servers import missing, watched


@contextmanager
def mariadb(folder: Path) -> Iterator[str]:
    """Run a server with a database `test`; yield its address."""
    install, server = shutil.which("mariadb-install-db"), shutil.which("mariadbd") or shutil.which("mysqld")
    if install is None or server is None:
        missing("there is no MariaDB: apt-get install mariadb-server")
    user = ["--user=root"] if os.getuid() == 0 else []
    subprocess.run(
        [install, "--no-defaults", *user, f"--datadir={folder}/data", "--auth-root-authentication-method=normal", "--skip-test-db"],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    port = free_port()
    with (folder / "mariadb.log").open("wb") as log:
        process = subprocess.Popen(
            watched(
                [server, "--no-defaults", *user, f"--datadir={folder}/data", f"--port={port}", "--bind-address=127.0.0.1",
                 f"--socket={folder}/s.sock", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0"]
            ),
            stdout=log,
            stderr=log,
        )  # fmt: skip
    try:
        import pymysql

        until = time.monotonic() + 60
        while True:
            try:
                connection = pymysql.connect(host="127.0.0.1", port=port, user="root", password="", connect_timeout=5)
                break
            except pymysql.Error:
                failed = process.poll() is not None or time.monotonic() > until
                assert not failed, (folder / "mariadb.log").read_text()
                time.sleep(0.1)
        with connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE test CHARACTER SET utf8mb4")
            cursor.execute("CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'a:secret/1'")
            cursor.execute("GRANT ALL ON test.* TO reader@'127.0.0.1'")
        yield f"mysql://reader:a%3Asecret%2F1@127.0.0.1:{port}/test"
    finally:
        process.terminate()
        process.wait(30)
