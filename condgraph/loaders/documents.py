"""Which files of a folder are about the data and not data: texts to read, licences, programs,
archives, hidden files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_TEXTS: Final = (".md", ".rst", ".html", ".htm", ".pdf", ".tex", ".bib", ".png", ".jpg", ".jpeg", ".gif", ".svg")
_ARCHIVES: Final = (".zip", ".tar", ".tgz", ".7z", ".bz2", ".xz")
_PROGRAMS: Final = (".py", ".pyc", ".ipynb", ".sh", ".cypher", ".rq", ".sql", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".log")
_SUFFIXES: Final = frozenset(_TEXTS + _ARCHIVES + _PROGRAMS)
_NAMES: Final = ("license", "licence", "readme", "copying", "notice", "provenance", "citation", "changelog")
#: A file called like a document may be one only with an extension that data does not have.
_MAYBE: Final = ("", ".txt")


def is_document(path: Path) -> bool:
    """Whether a file is about the data: by its extension, its name (LICENSE.txt, README), or a
    leading point.
    """
    name = path.name.casefold()
    if name.startswith(".") or path.suffix.casefold() in _SUFFIXES:
        return True
    stem = name.partition(".")[0]
    called = any(stem == one or stem.startswith((one + "-", one + "_")) for one in _NAMES)
    return called and (path.suffix.casefold() in _MAYBE or stem.startswith(("license", "licence")))
