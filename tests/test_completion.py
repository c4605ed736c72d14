"""Completion in a shell: what it offers of a store, and what it never hands to a shell."""

from __future__ import annotations

import os
import pty
import select
import shutil
import sys
import time
from pathlib import Path

import pytest

import condgraph
from condgraph.cli import complete
from condgraph.engine.facts import Ref, Statement
from condgraph.samples import FOLDER
from tests.support import commands

HOSTILE = [
    "$(touch owned)",
    "`touch owned`",
    "a;touch owned",
    "a\nb",
    "*",
    "a'b",
    'a"b',
    "a|b",
    "a\\b",
    "a&b",
    "a>b",
    "~root",
    "!!",
    "{a,b}",
]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in complete.STORE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with condgraph.open("world") as graph:
        graph.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
        graph.load(FOLDER / "governments.tsv")
        graph.add([Statement("x", f"h{name}", Ref("y")) for name in HOSTILE], source="odd")
    return tmp_path


def completed(words: list[str], typed: str, shell: str = "bash", **environment: str) -> list[str]:
    """What the command gives a shell for the word at the end."""
    line = ["condgraph", *words, typed]
    given = {
        "COMP_WORDS": "\n".join(line),
        "COMP_CWORD": str(len(line) - 1),
        "_TYPER_COMPLETE_ARGS": " ".join(line),
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    out = commands.run(env=os.environ | given | {"_CONDGRAPH_COMPLETE": f"complete_{shell}"} | environment)
    assert out.stderr == ""
    return out.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("words", "typed", "expected"),
    [
        (["schema", "-d", "world", "--predicate"], "hea", ["head\\ of\\ government"]),
        (["schema", "-d", "world", "--predicate"], '"hea', ["head of government"]),
        (["schema", "-d", "world", "--source"], "gov", ["governments"]),
        (["query", "-d", "world", "--graph"], "", ["default"]),
        (["query", "-d", "world", "--language"], "ko", ["kopl"]),
        (["query", "-d", "world", "--language"], "pat", ["pattern"]),
        (["load", "world", "x.csv", "--as"], "quin", ["quintuples"]),
        (["load", "world", "x.csv", "--as", "csv", "-O"], "re", ["refs="]),
        (["schema", "-d", "nowhere", "--predicate"], "", []),
        (["schema", "-d", "neo4j://127.0.0.1:1", "--predicate"], "", []),
    ],
)
def test_words_of_the_store(store: Path, words: list[str], typed: str, expected: list[str]) -> None:
    found = completed(words, typed)
    assert [one for one in found if one] == expected


def test_the_store_of_the_environment(store: Path) -> None:
    assert completed(["schema", "--source"], "moun", CONDGRAPH_STORE="world") == ["mountains"]


def test_names_that_a_shell_would_run_are_not_offered(store: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        found = "\n".join(completed(["schema", "-d", "world", "--predicate"], "h", shell))
        assert "height" in found
        assert "touch" not in found
        assert all(f"h{name}" not in found for name in HOSTILE)
    assert complete.offered(HOSTILE, "") == []


def test_no_more_words_than_a_screen_takes() -> None:
    assert len(complete.offered((f"w{at}" for at in range(10**9)), "w")) == complete.MAX_OFFERED


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_shell(store: Path) -> None:
    """Tab in an interactive bash: a name with spaces arrives as one word, in quotes and without."""
    folder = Path(sys.executable).parent
    child, screen = pty.fork()
    if child == 0:
        os.execvpe(
            "bash", ["bash", "--norc", "-i"], os.environ | {"PS1": "$ ", "TERM": "dumb", "PATH": f"{folder}:{os.environ['PATH']}"}
        )
    try:
        type_in(screen, 'eval "$(_CONDGRAPH_COMPLETE=source_bash condgraph)"; echo re""ady\n', "ready")
        type_in(screen, "condgraph schema -d world --predicate hea\t", "head\\ of\\ government ")
        type_in(screen, '\x15condgraph schema -d world --predicate "hea\t', '"head of government" ')
    finally:
        os.close(screen)
        os.waitpid(child, 0)


def type_in(screen: int, text: str, expected: str) -> None:
    os.write(screen, text.encode())
    seen, end = "", time.monotonic() + 60
    while expected not in seen:
        assert time.monotonic() < end, seen
        if select.select([screen], [], [], 0.2)[0]:
            seen += os.read(screen, 65536).decode(errors="replace")
