"""The files of a property graph: which belong together, and where the header of each stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from condgraph.engine.errors import FormatError, LoadError
from condgraph.engine.facts import Source
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.documents import is_document
from condgraph.loaders.files import path_of, read_head, stem_of
from condgraph.loaders.property_graph.headers import column_of, kind_of
from condgraph.loaders.table.dialect import sample_rows
from condgraph.loaders.table.text import TextTable

#: What may stand between two columns.
DELIMITERS: Final = ",;\t|"
_HEADER: Final = re.compile(r"[-_ .]?headers?$", re.IGNORECASE)


@dataclass(frozen=True)
class GraphFiles:
    """Several files that are one property graph."""

    paths: tuple[Path, ...]

    @property
    def called(self) -> str:
        """What the source is called: the folder of its files."""
        return self.paths[0].resolve().parent.name or "graph"


class GraphFile:
    """One file: its columns, and the reading that its problems go to."""

    def __init__(self, path: Path, header: Sequence[str] | None, reading: Reading, options: Options, alone: bool) -> None:
        self.path = path
        stem = stem_of(path)
        self.source = (
            reading.source
            if alone
            else Source(f"{reading.source.name}/{stem}", str(path), "property-graph", reading.source.content)
        )
        self.reading = Reading(replace(self.source, location=str(path)), reading.on_error, None, reading.problems)
        given = {name: options[name] for name in ("delimiter", "encoding") if name in options}
        self.text = TextTable.open(path, self.reading, {**given, "header": header is None}, DELIMITERS)
        self.headers = list(self.text.headers if header is None else header)
        if header is not None and len(self.headers) != len(self.text.headers):
            raise LoadError(f"the file has {len(self.text.headers)} columns, and its header {len(self.headers)}", file=str(path))
        self.columns = [column_of(one) for one in self.headers]
        for at, column in enumerate(self.columns, 1):
            if column.role == "property" and not column.name:
                # As tables name them; a predicate has a name.
                self.columns[at - 1] = replace(column, name=f"column {at}")
                self.reading.warn(f"column {at} has no header and is named 'column {at}'", field=f"column {at}")
        self.kind = kind_of(self.headers)

    def at(self, role: str) -> list[int]:
        """The positions of columns of a role."""
        return [at for at, column in enumerate(self.columns) if column.role == role]


def opened(paths: Sequence[Path], reading: Reading, options: Options) -> list[GraphFile]:
    """The files with their headers, which may stand in files of their own."""
    headers = {path: header_of(path) for path in paths}
    own = {base_of(path): rows[0] for path, rows in headers.items() if len(rows) == 1 and kind_of(rows[0])}
    files = []
    for path, rows in headers.items():
        if rows and kind_of(rows[0]):
            if len(rows) > 1 or _HEADER.search(stem_of(path)) is None:
                files.append(GraphFile(path, None, reading, options, len(paths) == 1))
            continue
        stem = stem_of(path)
        base = max((one for one in own if stem.startswith(one)), key=len, default=None)
        if base is None:
            raise FormatError(
                "the header says neither nodes nor relationships", file=str(path), hint="columns are :ID, ~id or _id and the like"
            )
        files.append(GraphFile(path, own[base], reading, options, False))
    return files


def header_of(path: Path) -> list[list[str]]:
    """The first two records of a file."""
    return sample_rows(read_head(path), DELIMITERS)[1][:2]


def base_of(path: Path) -> str:
    """A file's name without what says that it is a header: "films" for films-header.csv."""
    return _HEADER.sub("", stem_of(path))


def files_of(source: Any) -> list[Path]:
    """The files that a source is; raises `FormatError` for a folder without any."""
    if isinstance(source, GraphFiles):
        return list(source.paths)
    path = path_of(source)
    if not path.is_dir():
        return [path]
    found = [one for one in sorted(path.iterdir()) if one.is_file() and not is_document(one)]
    if not found:
        raise FormatError("the folder has no CSV files", file=str(path))
    return found
