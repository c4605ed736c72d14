"""Expected texts in files, one section a case, rewritten with `CONDGRAPH_GOLDEN=write`."""

from __future__ import annotations

import os
from pathlib import Path


def check(path: Path, sections: dict[str, str]) -> None:
    """Compare sections with those of a file (`== name` above each). On request, write the file first, for a reader to
    review.
    """
    if os.environ.get("CONDGRAPH_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(f"== {name}\n{text.rstrip()}\n" for name, text in sections.items()), encoding="utf-8")
    expected = read(path)
    for name, text in sections.items():
        assert text.rstrip() == expected.get(name), f"{name} in {path.name}; CONDGRAPH_GOLDEN=write accepts what is new"
    assert list(sections) == list(expected)


def read(path: Path) -> dict[str, str]:
    """Return the sections of a file, by name."""
    parts = ("\n" + path.read_text(encoding="utf-8")).split("\n== ")[1:]
    return {name: text.rstrip() for name, _, text in (part.partition("\n") for part in parts)}
