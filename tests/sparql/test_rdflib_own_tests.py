"""rdflib's own tests, with condgraph behind its default store (`tests.support.rdflib_staged`).

They are not part of rdflib's wheel, but of its source distribution, which pip fetches; where it
cannot, there is nothing to run. What rdflib's own store fails in the same run does not count.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support.lanes import WHOLE

rdflib = pytest.importorskip("rdflib")

GRAPHS = [
    *(
        f"test/test_graph/test_{name}.py"
        for name in ("graph", "slice", "graph_items", "graph_generators", "graph_operator", "graph_cbd", "container")
    ),
    "test/test_dataset",
    "test/test_conjunctivegraph",
    *(f"test/test_store/test_{name}.py" for name in ("store_triple_store", "store_memorystore", "namespace_binding")),
]
QUERIES = ["test/test_sparql", "test/test_issues", "test/test_literal", "test/test_path.py", "test/test_having.py"]
#: What fails here and not with rdflib's own store, each for a reason.
OTHERWISE = {
    # A statement of reification that has an IRI of its own is read as the statement it speaks of;
    # the load warns that the IRI is not kept.
    "test/test_graph/test_graph_cbd.py::testCbdReified",
    "test/test_graph/test_graph_cbd.py::test_cbd_example",
}
#: Tests of the network, of services, and those that write into each store that is registered.
_LEFT_OUT = "not condgraph and not http and not remote and not service"


@pytest.fixture(scope="module")
def own_tests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rdflib's tests of the version that is installed, and nothing else of it."""
    place = tmp_path_factory.mktemp("rdflib")
    wanted = f"rdflib=={rdflib.__version__}"
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "rdflib", "-d", str(place), wanted]
    fetched = subprocess.run(pip, capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"pip cannot fetch the sources of {wanted}")
    with tarfile.open(next(place.glob("*.tar.gz"))) as packed:
        own = [one for one in packed.getmembers() if one.name.partition("/")[2].startswith("test/")]
        for one in own:
            one.name = one.name.partition("/")[2]
        packed.extractall(place, members=own, filter="data")
    return place


def run(folder: Path, files: list[str], *options: str, **more: str) -> tuple[set[str], int]:
    """Which of rdflib's tests fail, and how many pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-rfE", "-k", _LEFT_OUT]
    environment = {**os.environ, **more, "PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "400"}
    done = subprocess.run([*command, *options, *files], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    failed = set(re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE))
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout[-2000:] + done.stderr[-2000:]
    return failed, int(passed[1])


@pytest.mark.slow
@pytest.mark.parametrize("files", [GRAPHS, pytest.param(QUERIES, marks=pytest.mark.skipif(not WHOLE, reason="takes minutes"))])
def test_rdflibs_own_tests_pass(files: list[str], own_tests: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    plain, _ = run(own_tests, files)
    failed, passed = run(own_tests, files, "-p", "tests.support.rdflib_staged", CONDGRAPH_STAGED=str(told))
    assert failed - plain == {name for name in OTHERWISE if name.partition("::")[0] in files}
    assert passed >= 180
    # The answers came from graphs of condgraph.
    *warned, loads = told.read_text("utf-8").splitlines()
    assert int(loads) > 100
    if files is GRAPHS:
        assert any("IRI of its own, not kept" in line or "IRIs of their own, not kept" in line for line in warned)
