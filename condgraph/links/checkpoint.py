"""Where a training stands, as one `.npz` file: what it goes on from is the same as if it had never
ended, number by number (in NumPy; a GPU rounds as it likes).
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from condgraph.engine.errors import LinkModelError
from condgraph.links.forms import Floats

_FORMAT: Final = 1
_TABLES: Final = ("entities", "relations", "entities_moved", "relations_moved")
_BEST: Final = ("best_entities", "best_relations")
_HINT: Final = "name another file, or remove this one to begin anew"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a training stands: tables of vectors and of how much they moved, the best vectors so far
    (None before the first look), the epochs done, that of the best, its MRR, the looks since then,
    and the state of the random numbers.
    """

    tables: tuple[Floats, Floats, Floats, Floats]
    best: tuple[Floats, Floats] | None
    epoch: int
    best_at: int
    best_mrr: float
    worse: int
    dice: Mapping[str, Any]


def writable(place: str | os.PathLike[str], what: str) -> None:
    """Raise `LinkModelError` where a file cannot be written."""
    path = Path(place)
    if path.is_dir():
        raise LinkModelError(f"{what} cannot be written to {path}, which is a folder", hint="name a file")
    if not path.absolute().parent.is_dir():
        raise LinkModelError(f"{what} cannot be written to {path}: there is no folder {path.parent}", hint="make it first")
    if not os.access(path.absolute().parent, os.W_OK):
        raise LinkModelError(f"{what} cannot be written to {path}: the folder {path.parent} may not be written to")


def keep(place: str | os.PathLike[str], standing: Standing, of: Mapping[str, Any]) -> None:
    """Write where a training stands, all of it or nothing. `of` says of what: its options and edges."""
    path = Path(place)
    arrays: dict[str, Any] = dict(zip(_TABLES, standing.tables, strict=True))
    if standing.best is not None:
        arrays |= dict(zip(_BEST, standing.best, strict=True))
    about = {
        "format": _FORMAT, "of": dict(of), "epoch": standing.epoch, "best_at": standing.best_at, "best_mrr": standing.best_mrr,
        "worse": standing.worse, "dice": dict(standing.dice),
    }  # fmt: skip
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            np.savez(file, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def kept(place: str | os.PathLike[str], of: Mapping[str, Any], shapes: tuple[tuple[int, int], tuple[int, int]]) -> Standing | None:
    """Where a training stood; None where there is no such file. `shapes` are those of the two tables.

    Raises `LinkModelError` for a file that is none, and for one of other edges or options.
    """
    name = os.fspath(place)
    try:
        with np.load(name, allow_pickle=False) as found:
            about = json.loads(found["about"].tobytes())
            tables = tuple(np.ascontiguousarray(found[one], np.float32) for one in _TABLES)
            best = tuple(np.ascontiguousarray(found[one], np.float32) for one in _BEST) if _BEST[0] in found.files else None
        if about["format"] != _FORMAT:
            raise LinkModelError(f"{name} is of format {about['format']}, not {_FORMAT}", hint=_HINT)
        theirs = about["of"]
        numbers = (int(about["epoch"]), int(about["best_at"]), float(about["best_mrr"]), int(about["worse"]), dict(about["dice"]))
    except FileNotFoundError:
        return None
    except LinkModelError:
        raise
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise LinkModelError(f"{name} cannot be read as a training to go on with: {error}", hint=_HINT) from None
    other = [one for one in of if theirs.get(one) != of[one]]
    if other:
        what = ", ".join(f"{one} {theirs.get(one)!r}, not {of[one]!r}" if "edges" not in one else f"other {one}" for one in other)
        raise LinkModelError(f"{name} is of another training: {what}", hint=_HINT)
    wanted = (*shapes, *shapes, *(shapes if best else ()))
    if any(one.shape != shape for one, shape in zip((*tables, *(best or ())), wanted, strict=True)):
        raise LinkModelError(f"{name} has tables of another size than its edges ask for", hint=_HINT)
    return Standing(tables, best, *numbers)  # type: ignore[arg-type]
