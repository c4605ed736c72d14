"""Servers written in Java, for the tests: their jars from Maven Central, and a Java that runs them.

Maven fetches the jars on first use; they are kept in a cache folder (`CONDGRAPH_CACHE`, else
`~/.cache/condgraph`), whole or not at all.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from service import ServerError

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>condgraph</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging><dependencies>
{artifacts}
</dependencies></project>
"""


class Artifact(NamedTuple):
    """What Maven Central has under a name."""

    group: str
    name: str
    version: str

    @property
    def xml(self) -> str:
        """As a project names it."""
        return (
            f"<dependency><groupId>{self.group}</groupId><artifactId>{self.name}</artifactId>"
            f"<version>{self.version}</version></dependency>"
        )


def java_of(majors: Sequence[int], what: str) -> str:
    """A Java of one of these versions, which `what` needs; raises `ServerError` where there is none."""
    homes = [os.environ.get("JAVA_HOME", ""), *sorted(map(str, Path("/usr/lib/jvm").glob("*")), reverse=True)]
    found = [str(Path(home, "bin", "java")) for home in homes if home] + [shutil.which("java") or ""]
    for java in found:
        if java and os.access(java, os.X_OK):
            said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
            major = re.search(r'version "(\d+)', said)
            if major and int(major[1]) in majors:
                return java
    raise ServerError(f"{what} needs Java {' or '.join(map(str, majors))}, and none was found")


def jars(name: str, what: str, artifacts: Sequence[Artifact], *, alone: bool = False) -> Path:
    """The folder of the jars of some artifacts, kept under a name of its own; with all that they
    need, or `alone`.
    """
    cache = Path(os.environ.get("CONDGRAPH_CACHE", Path.home() / ".cache" / "condgraph")) / name
    lib = cache / "lib"
    if (cache / "complete").exists():
        return lib
    maven = shutil.which("mvn")
    if maven is None:
        raise ServerError("Maven (mvn) fetches the server and is not installed")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        # Another run may be fetching the same jars.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / "complete").exists():
            _fetch(cache, lib, maven, what, artifacts, alone)
    return lib


def _fetch(cache: Path, lib: Path, maven: str, what: str, artifacts: Sequence[Artifact], alone: bool) -> None:
    shutil.rmtree(lib, ignore_errors=True)
    (cache / "pom.xml").write_text(_POM.format(artifacts="\n".join(artifact.xml for artifact in artifacts)))
    command = [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={lib}"]
    command += ["-DexcludeTransitive=true"] if alone else []
    said = subprocess.run(command, cwd=cache, capture_output=True, text=True, check=False)
    if said.returncode:
        raise ServerError(f"the jars of {what} could not be fetched:\n{said.stdout[-2000:]}")
    (cache / "complete").touch()
