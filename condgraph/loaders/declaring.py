"""`condgraph guess`: a declaration of the tables of a folder, a workbook or a database, as text for
people to edit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from condgraph.engine.errors import FormatError
from condgraph.engine.facts import Source
from condgraph.loaders import spreadsheet
from condgraph.loaders.addresses import is_archive, is_database
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.database import server, sqlite
from condgraph.loaders.database.tables import tabs_of
from condgraph.loaders.fetch import fetched
from condgraph.loaders.folder import load as folder
from condgraph.loaders.folder.declared import Declared
from condgraph.loaders.folder.guess import guess as guessed
from condgraph.loaders.folder.tab import Tab
from condgraph.loaders.recognise import location_of, recognise


def guess(place: str | os.PathLike[str], **options: Any) -> str:
    """What the tables at a place could be declared as, in TOML, with a reason for each line.

    `place` is a folder of CSV or Parquet files, a workbook, an SQLite file, or the address of a
    PostgreSQL or MySQL database; `options` are those of its format. Nothing is written. Raises
    `FormatError` where it is nothing of the kind, and `LoadError`.
    """
    with fetched(place) if is_archive(place) else nullcontext(place) as here:
        path = Path(here) if not is_database(os.fspath(here)) else None
        if path is not None and path.is_dir():
            form, data = folder.FORMAT, path
        else:
            recognised = recognise(here)[0]
            form, data = recognised.format, recognised.data
        form.check_options(options)
        # A table that is bad is for a load to refuse.
        reading = Reading(Source(Path(str(place)).name or "source", location_of(data)), "skip")
        with _opened(form.name, data, reading, options) as (tabs, said):
            return guessed(tabs, said, options, path.name if path is not None else location_of(data))


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
