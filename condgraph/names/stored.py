"""The index of all entity names, kept on disk beside the generation where making it takes long.

The file is a plain NumPy archive of the arrays of a `Vocabulary`. It is written beside its place
and renamed, so that it is whole or not there, and goes with its generation. A file that cannot be
read, or does not fit, is made again; a folder that cannot be written to costs time and nothing
else.
"""

from __future__ import annotations

import os
import time
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from condgraph.engine.errors import StoreError
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.names.vocabulary import Vocabulary

#: An index that takes longer to make, in seconds, is written to disk.
WORTH_KEEPING: Final = 1.0
_FILE: Final = "names-lexical-1.npz"


def entity_index(snapshot: Snapshot) -> Vocabulary:
    """The names of all entities and concepts but table rows, each once, with their indexes."""
    kept = snapshot.entity_kind != EntityKind.ROW
    names = snapshot.texts.take(np.unique(snapshot.entity_name[kept]))
    place = snapshot.folder
    if place is not None:
        unreadable = suppress(OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, StoreError)
        with unreadable, np.load(place / _FILE, allow_pickle=False) as arrays:
            return Vocabulary.from_arrays(names, dict(arrays))
    begin = time.perf_counter()
    vocabulary = Vocabulary(names)
    vocabulary.prepare()
    if place is not None and time.perf_counter() - begin > WORTH_KEEPING:
        write(place, vocabulary)
    return vocabulary


def write(place: Path, vocabulary: Vocabulary) -> None:
    """Write the index of a generation, if its folder takes it."""
    fresh = place / f".{_FILE}.{os.getpid()}"
    try:
        with fresh.open("wb") as file:
            np.savez(file, **vocabulary.arrays())  # type: ignore[arg-type]
        os.replace(fresh, place / _FILE)
    except OSError:
        # Read-only folders are normal; the index is made again next time.
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
