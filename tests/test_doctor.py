"""What `condgraph doctor` says of an environment, against the project's own list of packages."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from condgraph.doctor import PARTS, Package, Part, Report, examine
from condgraph.engine.errors import OptionError

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def test_every_extra_of_the_project_has_a_purpose() -> None:
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    assert set(PARTS) - {""} == set(extras)


def test_the_report_is_of_the_packages_that_are_installed() -> None:
    report = examine()
    assert report.healthy
    always = report.parts[0]
    assert always.ready
    assert {package.name for package in always.packages} >= {"numpy", "pyoxigraph"}
    assert all(package.version == metadata.version(package.name) for package in always.packages)


@pytest.mark.parametrize(
    ("version", "wanted", "state"),
    [
        ("6.4.1.0", "<7,>=5.26", "installed"),
        ("5.25", "<7,>=5.26", "wrong version"),
        ("7", "<7,>=5.26", "wrong version"),
        ("7.0.0", "<7,>=5.26", "wrong version"),
        ("2.5.0+cpu", ">=2.5", "installed"),
        ("3.0rc1", ">=3.0", "installed"),
        ("0.6.0", "<0.6,>=0.5", "wrong version"),
        ("1.10", ">=1.9", "installed"),
        ("2.17.3", "~=2.16", "installed"),
        ("3.0", "~=2.16", "wrong version"),
        ("1.0", "", "installed"),
        (None, ">=1", "missing"),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str | None, wanted: str, state: str) -> None:
    assert Package("some", wanted, version).state == state


def test_a_missing_part_says_how_to_get_it_and_harms_nothing() -> None:
    missing, old = Package("some", ">=2", None), Package("some", ">=2", "1.9")
    assert Part("serve", "", (missing,)).hint == "pip install 'condgraph[serve]'"
    assert Report("1", "3.11", (Part("serve", "", (missing,)),)).healthy
    assert not Report("1", "3.11", (Part("serve", "", (old,)),)).healthy
    assert not Report("1", "3.11", (Part("", "", (missing,)),)).healthy
    assert str(old) == "some 1.9, and >=2 is needed"


def test_files_that_were_not_installed_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", nowhere)
    with pytest.raises(OptionError, match="is not installed here"):
        examine()


def test_the_command_prints_the_parts() -> None:
    command = [sys.executable, "-m", "condgraph", "doctor"]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "(always)" in table
    assert "pip install" in table or "missing" not in table
    document = json.loads(subprocess.run([*command, "--format", "json"], capture_output=True, text=True, check=True).stdout)
    assert document["healthy"]
    assert document["parts"][0]["packages"][0]["version"]
