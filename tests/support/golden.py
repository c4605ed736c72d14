"""Expected texts that are files: one a case, written anew with `CONDGRAPH_GOLDEN=write`."""

from __future__ import annotations

import os
from pathlib import Path


def check(path: Path, sections: dict[str, str]) -> None:
    """Compare sections with those of a file (`== name` above each); write the file where that is
    asked for, which a reader then looks through.
    """
    if os.environ.get("CONDGRAPH_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(f"== {name}\n{text.rstrip()}\n" for name, text in sections.items()), encoding="utf-8")
    wanted = read(path)
    for name, text in sections.items():
        assert text.rstrip() == wanted.get(name), f"{name} in {path.name}; CONDGRAPH_GOLDEN=write accepts what is new"
    assert list(sections) == list(wanted)


def read(path: Path) -> dict[str, str]:
    """The sections of a file, by name."""
    parts = ("\n" + path.read_text(encoding="utf-8")).split("\n== ")[1:]
    return {name: text.rstrip() for name, _, text in (part.partition("\n") for part in parts)}
