"""Export a whole graph to a file or a folder (`Graph.export`)."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import IO, Final

from condgraph.engine.errors import OptionError, nearest, requiring
from condgraph.engine.snapshot.snapshot import Snapshot

#: The formats of exports.
EXPORTS: Final = ("jsonl", "turtle", "nquads", "rdf", "rdf12", "neo4j-import", "parquet")
#: The formats that are a folder of files.
FOLDERS: Final = ("neo4j-import", "parquet")
#: The RDF formats: two with the layout of `sparql.layout`, two with plain triples.
RDF: Final = ("turtle", "nquads", "rdf", "rdf12")


def export(snapshot: Snapshot, graph: str, path: str | os.PathLike[str] | IO[str], to: str, base: str | None = None) -> int:
    """Write a graph, and return the number of lines or triples.

    A file is complete or absent: it is written next to its target and then renamed. `base` is the prefix of the IRIs
    of everything without an IRI of its own. Raises `OptionError` if the format is unknown or the file cannot be
    written.
    """
    if base is not None and to not in RDF:
        raise OptionError(f"an export to {to} has no base", hint=f"base= is for {', '.join(RDF)}")
    if to in FOLDERS:
        if not isinstance(path, (str, os.PathLike)):
            raise OptionError(f"an export to {to} is a folder of files", hint="give the folder")
        if to == "parquet":
            with requiring("sqlglot", "sql"):
                from condgraph.sql.parquet import write_parquet
            return write_parquet(snapshot, graph, Path(path))
        from condgraph.cypher.load.bulk import write_import

        return write_import(snapshot, graph, Path(path))
    if to not in EXPORTS:
        raise OptionError(f"cannot export to {to!r}", candidates=nearest(to, EXPORTS), hint=f"known: {', '.join(EXPORTS)}")
    if not isinstance(path, (str, os.PathLike)):
        return _write(snapshot, graph, path, to, base)
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            count = _write(snapshot, graph, file, to, base)
        os.replace(partial, target)
    except OSError as error:
        raise OptionError(f"{target} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
    return count


def _write(snapshot: Snapshot, graph: str, file: IO[str], to: str, base: str | None) -> int:
    if to == "jsonl":
        from condgraph.engine.snapshot.readback import items
        from condgraph.loaders.export import write

        return write(items(snapshot), file, graph=graph)
    if to in ("rdf", "rdf12"):
        from condgraph.sparql.layout import base_iri, checked_base
        from condgraph.sparql.plain import Plain

        plain, count = Plain(snapshot, checked_base(base) if base else base_iri(graph), reifiers=to == "rdf12"), 0
        for line in plain.lines():
            file.write(f"{line}\n")
            count += 1
        for message in plain.warnings:
            warnings.warn(message, stacklevel=4)
        return count
    from condgraph.sparql.load.write import write_file

    return write_file(snapshot, file, to, graph=graph, base=base)
