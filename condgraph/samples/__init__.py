"""The sample data of the package: a table, a knowledge graph and a temporal knowledge graph about the same
countries.

`SOURCES.md`, next to the files, lists where the facts can be checked.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

#: The folder with the files.
FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Sample:
    """A file of sample data: its name, format, suitable loader options, and a description."""

    file: str
    format: str
    about: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The path of the file."""
        return FOLDER / self.file


SAMPLES: Final = (
    Sample("mountains.csv", "csv", "a table of mountains", {"key": "mountain", "refs": ["country"]}),
    Sample("countries.json", "kqapro", "a knowledge graph of countries, politicians and universities"),
    Sample("governments.tsv", "quintuples", "a temporal knowledge graph of heads of government"),
)


def copy_to(folder: str | Path) -> list[Path]:
    """Copy the sample files and their sources into a folder, and return the paths.

    The folder is created if it does not exist. Raises `FileExistsError`, before anything is written, if one
    of the files exists with different content.
    """
    target = Path(folder)
    names = [sample.file for sample in SAMPLES] + ["SOURCES.md"]
    for name in names:
        path = target / name
        if path.exists() and path.read_bytes() != (FOLDER / name).read_bytes():
            raise FileExistsError(f"{path} already exists, with another content")
    target.mkdir(parents=True, exist_ok=True)
    # Copy the recorded run unchanged.
    shutil.copytree(FOLDER / "asking", target / "asking", dirs_exist_ok=True)
    return [Path(shutil.copyfile(FOLDER / name, target / name)) for name in names]
