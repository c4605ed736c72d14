"""A whole graph written to a file or a folder, in a form that loads to an equal graph, or as the files of
Neo4j's import tool.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import IO, Final

from condgraph.engine.errors import MissingExtraError, OptionError, nearest
from condgraph.engine.snapshot.snapshot import Snapshot

#: What a graph is exported to.
EXPORTS: Final = ("jsonl", "turtle", "nquads", "rdf", "rdf12", "neo4j-import", "parquet")
#: Those that are a folder of files.
FOLDERS: Final = ("neo4j-import", "parquet")
#: Those that are RDF: in the layout of `sparql.layout`, and plain.
RDF: Final = ("turtle", "nquads", "rdf", "rdf12")


def export(snapshot: Snapshot, graph: str, path: str | os.PathLike[str] | IO[str], to: str, base: str | None = None) -> int:
    """Write a graph; returns how many lines or triples. A file is complete or not there: written
    next to its place and renamed. `base` is what IRIs of RDF begin with, of what has none of its own.
    """
    if base is not None and to not in RDF:
        raise OptionError(f"an export to {to} has no base", hint=f"base= is for {', '.join(RDF)}")
    if to in FOLDERS:
        if not isinstance(path, (str, os.PathLike)):
            raise OptionError(f"an export to {to} is a folder of files", hint="give the folder")
        if to == "parquet":
            try:
                from condgraph.sql.parquet import write_parquet
            except ImportError:
                raise MissingExtraError("sqlglot", "sql") from None
            return write_parquet(snapshot, graph, Path(path))
        from condgraph.cypher.load.bulk import write_import

        return write_import(snapshot, graph, Path(path))
    if to not in EXPORTS:
        raise OptionError(f"cannot export to {to!r}", candidates=nearest(to, EXPORTS), hint=f"known: {', '.join(EXPORTS)}")
    if not isinstance(path, (str, os.PathLike)):
        return _write(snapshot, graph, path, to, base)
    target = Path(path)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with fresh.open("w", encoding="utf-8", newline="\n") as file:
            lines = _write(snapshot, graph, file, to, base)
        os.replace(fresh, target)
    except OSError as error:
        raise OptionError(f"{target} cannot be written: {error.strerror}") from None
    finally:
        fresh.unlink(missing_ok=True)
    return lines


def _write(snapshot: Snapshot, graph: str, file: IO[str], to: str, base: str | None) -> int:
    if to == "jsonl":
        from condgraph.engine.snapshot.readback import items
        from condgraph.loaders.export import write

        return write(items(snapshot), file, graph=graph)
    if to in ("rdf", "rdf12"):
        from condgraph.sparql.layout import base_iri, checked_base
        from condgraph.sparql.plain import Plain

        plain, lines = Plain(snapshot, checked_base(base) if base else base_iri(graph), reifiers=to == "rdf12"), 0
        for line in plain.lines():
            file.write(f"{line}\n")
            lines += 1
        for message in plain.warnings:
            warnings.warn(message, stacklevel=4)
        return lines
    from condgraph.sparql.load.write import write_file

    return write_file(snapshot, file, to, graph=graph, base=base)
