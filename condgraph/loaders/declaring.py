"""`condgraph guess`: proposes a declaration of the tables in a folder, workbook or database, for editing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from condgraph.engine.errors import FormatError
from condgraph.engine.facts import Source
from condgraph.loaders import spreadsheet
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.database import server, sqlite
from condgraph.loaders.database.tables import tabs_of
from condgraph.loaders.fetch import fetched
from condgraph.loaders.files import is_archive, is_database
from condgraph.loaders.folder import load as folder
from condgraph.loaders.folder.declared import Declared
from condgraph.loaders.folder.guess import guess as guessed
from condgraph.loaders.folder.tab import Tab
from condgraph.loaders.recognise import location_of, recognise


def guess(place: str | os.PathLike[str], **options: Any) -> str:
    """Return a proposed declaration of the tables at a place, in TOML, with a reason for each line.

    `place` is a folder of CSV or Parquet files, a workbook, an SQLite file, or the address of a
    PostgreSQL or MySQL database; `options` are those of its format. Nothing is written. Raises
    `FormatError` if it is none of these, and `LoadError`.
    """
    with fetched(place) if is_archive(place) else nullcontext(place) as local_place:
        path = Path(local_place) if not is_database(os.fspath(local_place)) else None
        if path is not None and path.is_dir():
            form, data = folder.FORMAT, path
        else:
            recognised = recognise(local_place)[0]
            form, data = recognised.format, recognised.data
        form.check_options(options)
        # Bad tables are skipped here; a load reports them.
        reading = Reading(Source(Path(str(place)).name or "source", location_of(data)), "skip")
        with _opened(form.name, data, reading, options) as (tabs, declared):
            return guessed(tabs, declared, options, path.name if path is not None else location_of(data))


@contextmanager
def _opened(form: str, data: Any, reading: Reading, options: Options) -> Iterator[tuple[dict[str, Tab], Declared]]:
    if form == folder.FORMAT.name:
        yield folder.opened(data, reading, options)
    elif form == spreadsheet.FORMAT.name:
        yield spreadsheet.tabs_of(data, reading, options), Declared()
    elif form == sqlite.FORMAT.name:
        with sqlite.opened(data) as database:
            yield tabs_of(database, reading, options)
    elif isinstance(data, server.DatabaseUrl):
        with server.opened(data) as server_database:
            yield tabs_of(server_database, reading, options)
    else:
        raise FormatError(
            "this is not several tables", file=location_of(data), hint="a folder of CSV or Parquet files, a workbook, or a database"
        )
