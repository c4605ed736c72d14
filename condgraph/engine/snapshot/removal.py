"""Taking a graph's files away from a directory, by their names: whatever else a person keeps there
stays, and so do its folders.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

#: What a generation holds: its arrays, the index of names, the RDF store and what an unfinished run
#: left of either.
_GENERATION: Final = re.compile(r"columns|\.?names-lexical-\d+\.npz(\.\d+)?")
_RDF: Final = re.compile(r"rdf\d*(\.\d+)?")
#: The files of an RDF store, which is RocksDB's.
_ROCKS: Final = re.compile(r"\d{6,}\.(sst|log|blob)|\d+\.dbtmp|CURRENT|IDENTITY|LOCK|LOG(\.old\.\d+)?|(MANIFEST|OPTIONS)-\d+")
#: The files of vectors.
VECTORS: Final = re.compile(r"(index\.json|\.index\.json\.\d+|[0-9a-f]{16}\.(arrays|faiss)|(\.\d+-)?part-\d+-\d+\.npz)")


def remove_generation(folder: Path) -> None:
    """Remove the files of a generation, and its folder where nothing else is in it."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in list(folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and _RDF.fullmatch(path.name):
                remove_files(path, _ROCKS)
    remove_files(folder, _GENERATION)


def remove_files(folder: Path, names: re.Pattern[str]) -> None:
    """Remove the files of a folder that have such names, and the folder where nothing else is in
    it.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in list(folder.iterdir()):
            if names.fullmatch(path.name) and (path.is_symlink() or not path.is_dir()):
                path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
