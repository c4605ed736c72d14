"""The recipes of CONTRIBUTING.md name the files of a commit that follows them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: The command of a recipe that shows its commit, and the files below it.
EXAMPLE = re.compile(r"`git log --grep '\^([A-Za-z: ]+)\$'`.*?:\n\n((?:    \S+\n)+)", re.DOTALL)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def examples() -> dict[str, list[str]]:
    found = EXAMPLE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    return {line: files.split() for line, files in found}


def test_recipes_have_examples() -> None:
    assert {
        "Recipe: KoPL function",
        "Recipe: command",
        "Recipe: loader",
        "Recipe: operator",
        "Keep graphs in SQL databases",
    } <= set(examples())


@pytest.mark.parametrize("line", examples())
def test_the_files_of_a_recipe_are_those_of_its_commit(line: str) -> None:
    if not (ROOT / ".git").exists() or git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("the history is not here")
    commits = git("log", "--format=%H", f"--grep=^{line}$").split()
    assert len(commits) == 1
    assert git("show", "--name-only", "--format=", commits[0]).split() == examples()[line]
