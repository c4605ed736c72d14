"""The files that Neo4j's import tool takes: columns as CSV with their headers, and the command that
reads them.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from condgraph.cypher.load.bulk_columns import SEPARATOR, Columns

_TYPES: Final = {
    "kind": "string",
    "number": "double",
    "start": "long",
    "end": "long",
    "precision": "long",
    "ranks": "string[]",
    "sid": "long",
    "sources": "string[]",
    "rows": "long[]",
    "since": "long",
    "until": "long",
    "span": "long",
    "row": "long",
    "relations": "long",
    "attributes": "long",
    "qualifiers": "long",
    "format": "long",
    "complete": "boolean",
    "bulk": "boolean",
    "declares": "boolean",
}

_ABOUT: Final = """# Fills the empty database neo4j of a stopped server (Neo4j 5.26 or later); run it as the server's user, with
# neo4j-admin in the PATH. The indexes are made by `condgraph` when the graph is opened for the first time.
set -e
"""


class ImportFiles:
    """The files of one import in a folder. `parts` are the arguments that name them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts: list[str] = []

    def add(self, what: str, name: str, columns: Columns, types: dict[str, str] | None = None, *, append: bool = False) -> None:
        """Write columns to a file, its header to another, and note both for the command."""
        import pyarrow as pa
        import pyarrow.csv

        self.folder.mkdir(parents=True, exist_ok=True)
        known = _TYPES | (types or {})
        if not append:
            header = ",".join(one if one.startswith(":") else f"{one}:{known.get(one, 'string')}" for one in columns)
            (self.folder / f"{name}-header.csv").write_text(header + "\n", encoding="utf-8")
            # Neo4j 2026 wants a folder in each path.
            self.parts.append(f"--{what}=./{name}-header.csv,./{name}.csv")
        # Texts stand in quotes, which tell an empty one from none; numbers need none.
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
        with (self.folder / f"{name}.csv").open("ab" if append else "wb") as file:
            pyarrow.csv.write_csv(pa.table(columns), file, options)

    def finish(self, longest: int) -> None:
        """Write the command, and its arguments by themselves; `longest` are the bytes of the longest
        text in the files.
        """
        (self.folder / "import.args").write_text("\n".join(self.arguments(longest)) + "\n", encoding="utf-8")
        (self.folder / "import.sh").write_text(f"#!/bin/sh\n{_ABOUT}{self.command(longest)}\n", encoding="utf-8")

    def arguments(self, longest: int) -> list[str]:
        """The arguments of `neo4j-admin` that import the files; paths are relative to the folder."""
        return [
            "database",
            "import",
            "full",
            "neo4j",
            f"--array-delimiter=U+{ord(SEPARATOR):04X}",
            "--multiline-fields=true",
            f"--read-buffer-size={max(4 << 20, 4 * longest)}",
            *self.parts,
        ]

    def command(self, longest: int) -> str:
        """The command for a shell."""
        return 'cd "$(dirname "$0")" && neo4j-admin ' + " ".join(map(shlex.quote, self.arguments(longest)))
