"""A whole graph written to a file, in a form that loads to an equal graph, or as the files of
Neo4j's import tool.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Final

from condgraph.engine.errors import OptionError, nearest
from condgraph.engine.snapshot.snapshot import Snapshot

#: What a graph is exported to.
EXPORTS: Final = ("jsonl", "turtle", "nquads", "neo4j-import")


def export(snapshot: Snapshot, graph: str, path: str | os.PathLike[str] | IO[str], to: str) -> int:
    """Write a graph; returns how many lines or triples. A file is complete or not there: written
    beside its place and renamed.
    """
    if to == "neo4j-import":
        from condgraph.cypher.load.bulk import write_import

        if not isinstance(path, (str, os.PathLike)):
            raise OptionError("an export for Neo4j's import tool is a folder of files", hint="give the folder")
        return write_import(snapshot, graph, Path(path))
    if to not in EXPORTS:
        raise OptionError(f"cannot export to {to!r}", candidates=nearest(to, EXPORTS), hint=f"known: {', '.join(EXPORTS)}")
    if not isinstance(path, (str, os.PathLike)):
        return _write(snapshot, graph, path, to)
    target = Path(path)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with fresh.open("w", encoding="utf-8", newline="\n") as file:
            lines = _write(snapshot, graph, file, to)
        os.replace(fresh, target)
    except OSError as error:
        raise OptionError(f"{target} cannot be written: {error.strerror}") from None
    finally:
        fresh.unlink(missing_ok=True)
    return lines


def _write(snapshot: Snapshot, graph: str, file: IO[str], to: str) -> int:
    if to == "jsonl":
        from condgraph.engine.snapshot.readback import items
        from condgraph.loaders.export import write as jsonl_write

        return jsonl_write.write(items(snapshot), file, graph=graph)
    from condgraph.sparql.load import export

    return export.write(snapshot, file, to, graph=graph)
