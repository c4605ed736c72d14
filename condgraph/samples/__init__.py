"""The sample data that the package ships: a table, a knowledge graph and a temporal knowledge graph
about the same countries.

`SOURCES.md`, beside the files, says where their facts can be checked.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

#: The folder that the files lie in.
FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Sample:
    """A file of sample data: its name, the loader's format and options that suit it, and what it
    holds.
    """

    file: str
    format: str
    about: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return FOLDER / self.file


SAMPLES: Final = (
    Sample("mountains.csv", "csv", "a table of mountains", {"key": "mountain", "refs": ["country"]}),
    Sample("countries.json", "kqapro", "a knowledge graph of countries, politicians and universities"),
    Sample("governments.tsv", "quintuples", "a temporal knowledge graph of heads of government"),
)


def copy_to(folder: str | Path) -> list[Path]:
    """Copy the sample files and their sources into a folder, which is made where it is missing; the
    paths written.

    Raises `FileExistsError` before anything is written when one of the files is there with another
    content.
    """
    target = Path(folder)
    names = [sample.file for sample in SAMPLES] + ["SOURCES.md"]
    for name in names:
        path = target / name
        if path.exists() and path.read_bytes() != (FOLDER / name).read_bytes():
            raise FileExistsError(f"{path} is there already, with another content")
    target.mkdir(parents=True, exist_ok=True)
    # The recorded run, as it is.
    shutil.copytree(FOLDER / "asking", target / "asking", dirs_exist_ok=True)
    return [Path(shutil.copyfile(FOLDER / name, target / name)) for name in names]
