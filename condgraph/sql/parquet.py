"""A graph as a folder of Parquet files, for Spark, DuckDB and others: the tables of `sql.tables`.

statement/part-00000.parquet ...   one folder for each table; statements are sorted by predicate, so that readers skip others
views.sql                          creates the graph in a DuckDB file, by views of the files
_condgraph.json                    written last: the version, the graph, its content, and the rows of each table
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlglot import exp

from condgraph.engine.bounds import slices
from condgraph.engine.errors import LoadError, OptionError, pyarrow_or_error
from condgraph.engine.facts import Item, Source
from condgraph.engine.identity import content_digest
from condgraph.engine.snapshot.directory import try_lock
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.loaders.base import Reading
from condgraph.loaders.export import MARK
from condgraph.sql.tables import FORMAT, PREFIX, TABLES, Graph, Row, as_arrow, columns, views
from condgraph.sql.terms import name, select, table_of

#: Rows of a row group, which are in memory together, and of a file.
_GROUP, _FILE = 100_000, 1_000_000
#: Suffix of a folder while an export is unfinished.
_UNFINISHED: Final = ".condgraph-export"


# -- Writing -----------------------------------------------------------------------------------------


def write_parquet(snapshot: Snapshot, graph: str, folder: Path) -> int:
    """Write the files, and return the number of statements. The folder appears once complete, and replaces an earlier export.

    Raises `OptionError` if the folder is no export, and `MissingExtraError` without pyarrow.
    """
    pyarrow_or_error()
    try:
        if folder.exists() and not (folder / MARK).is_file() and not (folder.is_dir() and not any(folder.iterdir())):
            raise OptionError(f"{folder} exists, and is not the export of a graph", hint="give a new folder, or remove it")
        _clear(folder)
        new_folder = folder.with_name(f".{folder.name}.{os.getpid()}{_UNFINISHED}")
        try:
            new_folder.mkdir(parents=True)
            with _locked(new_folder):
                _write(snapshot, graph, new_folder, folder.absolute())
                if folder.exists():
                    former = folder.with_name(f".{folder.name}.{os.getpid()}.former{_UNFINISHED}")
                    os.replace(folder, former)
                    os.replace(new_folder, folder)
                    shutil.rmtree(former, ignore_errors=True)
                else:
                    os.replace(new_folder, folder)
        finally:
            shutil.rmtree(new_folder, ignore_errors=True)
    except OSError as error:
        raise OptionError(f"{folder} cannot be written: {error.strerror or error}") from None
    return snapshot.statements


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Lock a folder and yield whether nobody else had the lock; Windows has no such locks."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        yield try_lock(handle)
    finally:
        os.close(handle)


def _clear(folder: Path) -> None:
    """Remove what killed exports to this folder left.

    A complete earlier export is restored if the kill left none in its place.
    """
    leftover = re.compile(rf"\.{re.escape(folder.name)}\.[0-9]+(\.former)?{re.escape(_UNFINISHED)}")
    for path in list(folder.parent.iterdir()) if folder.parent.is_dir() else []:
        if not (match := leftover.fullmatch(path.name)):
            continue
        with _locked(path) as dead:
            if dead and match[1] and not folder.exists():
                os.replace(path, folder)
            elif dead:
                shutil.rmtree(path, ignore_errors=True)


def _write(snapshot: Snapshot, graph: str, folder: Path, place: Path) -> None:
    import pyarrow.parquet as pq

    content, rows, writer = content_digest(snapshot), dict.fromkeys(TABLES, 0), None
    try:
        for table, values in columns(snapshot, content, _GROUP):
            part = as_arrow(TABLES[table], values)
            if rows[table] % _FILE == 0:
                if writer is not None:
                    writer.close()
                path = folder / table / f"part-{rows[table] // _FILE:05}.parquet"
                path.parent.mkdir(exist_ok=True)
                writer = pq.ParquetWriter(path, part.schema, compression="zstd")
            assert writer is not None
            writer.write_table(part)
            rows[table] += part.num_rows
    finally:
        if writer is not None:
            writer.close()
    (folder / "views.sql").write_text("".join(f"{line};\n" for line in _views(graph, place)), encoding="utf-8")
    record = {"format": FORMAT, "graph": graph, "content": content, "rows": rows}
    (folder / MARK).write_text(json.dumps(record, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _views(graph: str, folder: Path) -> Iterator[str]:
    """Yield the statements that create a graph in a DuckDB file."""
    within = f"{PREFIX}{graph}"
    created = [exp.Create(this=exp.Table(db=name(within)), kind="SCHEMA")]
    for table in TABLES:
        files = exp.Literal.string(f"{str(folder).translate(_ESCAPED)}/{table}/*.parquet")
        query = select(exp.Star()).from_(exp.ReadParquet(expressions=[files]), copy=False)
        created.append(exp.Create(this=table_of(table, within), kind="VIEW", expression=query))
    for view, union in views(lambda table: table_of(table, within)):
        created.append(exp.Create(this=table_of(view, within), kind="VIEW", expression=union))
    return (statement.sql(dialect="duckdb", identify=True) for statement in created)


#: Escapes characters of a path that have a meaning in a pattern.
_ESCAPED: Final = str.maketrans({letter: f"[{letter}]" for letter in "*?["})


# -- Reading -----------------------------------------------------------------------------------------


def read_parquet(folder: Path, reading: Reading) -> Iterator[Item]:
    """Yield the items of an export in pieces; only the ids of entities are in memory completely."""
    pa = pyarrow_or_error()
    try:
        yield from _Files(folder, reading).items()
    except (KeyError, IndexError, TypeError, ValueError, OSError, RecursionError, AttributeError, pa.ArrowException) as error:
        raise LoadError(f"the files of the export do not fit together: {str(error) or error!r:.300}", file=str(folder)) from None


class _Files:
    """The tables of an export."""

    def __init__(self, folder: Path, reading: Reading) -> None:
        import pyarrow.dataset as ds

        record = json.loads((folder / MARK).read_text(encoding="utf-8"))
        if record["format"] != FORMAT:
            raise LoadError(f"the export is of format {record['format']}; this version reads {FORMAT}", file=str(folder))
        self._reading = reading
        self._data = {table: ds.dataset(sorted(map(str, (folder / table).glob("*.parquet")))) for table in TABLES}
        for table, rows in record["rows"].items():
            if (count := self._data[table].count_rows()) != rows:
                raise LoadError(f"the table {table} has {count} rows, and {rows} were written", file=str(folder))
        self._all: int = sum(record["rows"].values())
        self._sources = [Source(*rest) for _, *rest in sorted(self._rows("source"))]
        entities = self._data["entity"].to_table(columns=["e", "id"])
        if not np.array_equal(entities["e"].to_numpy(), np.arange(len(entities))):
            raise ValueError("entities are not numbered in order")
        self._ids = entities["id"]

    def _rows(self, table: str, part: slice | None = None) -> list[Row]:
        """Return the rows of a table: all, or those of some statements."""
        import pyarrow.compute as pc

        # The statistics of the files tell where these are: other row groups are not read.
        within = None if part is None else (pc.field("f") >= part.start) & (pc.field("f") < part.stop)
        return self._listed(self._data[table].to_table(columns=list(TABLES[table]), filter=within))

    def _listed(self, rows: Any) -> list[Row]:
        if rows.num_rows:
            self._reading.advance(rows.num_rows, min(1.0, (self._reading.records + rows.num_rows) / max(self._all, 1)))
        return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))

    def _graph(self, rows: dict[str, list[Row]]) -> Graph:
        """Return rows with the entities that they mention."""
        ends = {row[index] for table, table_rows in rows.items() for row in table_rows for index in _ENDS[table]} - {None}
        numbers = np.array(sorted(ends), np.int64)
        entities = list(zip(numbers.tolist(), self._ids.take(numbers).to_pylist(), strict=True))
        return Graph({"declared": [], **rows, "entity": entities}, self._sources)

    def items(self) -> Iterator[Item]:
        """Yield all items, sources first."""
        yield from self._sources
        for table in ("declared", "membership", "subclass"):
            for batch in self._data[table].to_batches(columns=list(TABLES[table]), batch_size=_GROUP):
                graph = self._graph({table: self._listed(batch)})
                yield from (item for item in graph.items() if not isinstance(item, Source))
        for part in slices(self._data["statement"].count_rows(), _GROUP):
            graph = self._graph({table: self._rows(table, part) for table in ("statement", "qualifier", "place")})
            yield from (item for _, item in graph.statements())


#: The columns with entities, by table.
_ENDS: Final = {
    table: [at for at, column in enumerate(kinds) if column in ("e", "concept", "parent", "s", "o")]
    for table, kinds in TABLES.items()
}
