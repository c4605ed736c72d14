"""The examples of the page about frameworks that need more than the tests have, run where that is
there (`.ci/frameworks`); the others run with every page (`tests/test_docs.py`).
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import condgraph
from condgraph.samples import FOLDER

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "use-frameworks.md"
_BLOCK = re.compile(r"<!-- not run: (?P<why>[^\n]+) -->\n\n```python\n(?P<code>.*?)```", re.DOTALL)


def run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    with condgraph.open(tmp_path / "world") as graph:
        graph.load(FOLDER / "countries.json")
        graph.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(PAGE), "exec"), {})
    return out.getvalue().splitlines()


def block(word: str) -> str:
    found = [one["code"] for one in _BLOCK.finditer(PAGE.read_text("utf-8")) if word in one["code"]]
    assert len(found) == 1
    return found[0]


def test_llamaindex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llama_index.core")
    code = block("agents.llamaindex")
    said = re.findall(r"  # (.*)", code)
    assert run(code, tmp_path, monkeypatch) == said


def test_neo4j_graphrag(neo4j_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("neo4j_graphrag")
    code = block("agents.neo4j_graphrag")
    address = 'neo4j.GraphDatabase.driver("neo4j://localhost:7687", auth=("neo4j", "password"))'
    assert address in code
    found = run(code.replace(address, f"neo4j.GraphDatabase.driver({neo4j_uri!r}, auth=None)"), tmp_path, monkeypatch)
    assert found == ["Kathmandu"]
