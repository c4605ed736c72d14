"""Servers written in Java, for the tests: their jars from Maven Central, and a Java that runs them.

Maven fetches the jars on first use; they are cached in a folder (`CONDGRAPH_CACHE`, else `~/.cache/condgraph`), all or
none.
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
    """The coordinates of an artifact in Maven Central."""

    group: str
    name: str
    version: str

    @property
    def xml(self) -> str:
        """The artifact as a dependency of a project."""
        return (
            f"<dependency><groupId>{self.group}</groupId><artifactId>{self.name}</artifactId>"
            f"<version>{self.version}</version></dependency>"
        )


def java_of(majors: Sequence[int], what: str) -> str:
    """Return a Java of one of the major versions, which `what` needs; raise `ServerError` if there is none."""
    homes = [os.environ.get("JAVA_HOME", ""), *sorted(map(str, Path("/usr/lib/jvm").glob("*")), reverse=True)]
    candidates = [str(Path(home, "bin", "java")) for home in homes if home] + [shutil.which("java") or ""]
    for java in candidates:
        if java and os.access(java, os.X_OK):
            version_text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
            major = re.search(r'version "(\d+)', version_text)
            if major and int(major[1]) in majors:
                return java
    raise ServerError(f"{what} needs Java {' or '.join(map(str, majors))}, and none was found")


def jars(name: str, what: str, artifacts: Sequence[Artifact], *, alone: bool = False) -> Path:
    """Return the folder with the jars of some artifacts, cached under `name`; with all dependencies, unless `alone`."""
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
    result = subprocess.run(command, cwd=cache, capture_output=True, text=True, check=False)
    if result.returncode:
        raise ServerError(f"the jars of {what} could not be fetched:\n{result.stdout[-2000:]}")
    (cache / "complete").touch()
