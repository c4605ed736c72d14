"""The columns of a generation on the disk: what can be said in fewer bytes is, and is read back as
the same columns, bit by bit.

    same     every number is this one
    copy     the same numbers as another column
    runs     few runs of equal numbers: the number of each, and where it begins
    sparse   one number almost everywhere: a bit for each of the others, and these
    blocks   differences (`blocks`)
    places   the row a statement stands in is that of its subject, but for those that are listed
    rows     the table and row of an entity, from the column of rows

A column is worked out when it is first asked for, and kept. So that this never takes longer than
some milliseconds, columns of more than `MOST` numbers are kept as they are, and mapped; so are the
columns that nearly every question looks into at single places (`MAPPED`), at any size.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.snapshot import blocks
from condgraph.engine.snapshot.container import ArrayEntry, ArrayFile

Arrays = Mapping[str, NDArray[Any]]
Form = dict[str, Any]

#: Numbers of a column that is kept in fewer bytes: at most, and at least.
MOST: Final = 1 << 21
LEAST: Final = 1 << 9
MAPPED: Final = frozenset(
    {"pool.bytes", "pool.offsets", "pool.buckets", "pool.items", "rel.s", "rel.o", "att.s", "out.items", "in.items"}
)
#: A shorter form has to take at most so much of what the column takes.
_WORTH: Final = 0.75
#: Numbers of a run, on average.
_RUN: Final = 16
#: Parts of columns whose values are sorted within the groups of their family, and what they are close to.
_GROUPED: Final = {f"att.{part}": "grp.start" for part in ("a", "b", "ref", "kind", "unit", "precision", "raw")}
_BESIDE: Final = {"att.b": "att.a", "q.b": "q.a", "val.end": "val.start"}


def packed(columns: Arrays) -> tuple[dict[str, NDArray[Any]], dict[str, Form]]:
    """The arrays to write for these columns, and the forms of those that are not written as they
    are.
    """
    arrays: dict[str, NDArray[Any]] = {}
    forms: dict[str, Form] = {}
    for name, column in columns.items():
        found = None
        if name not in MAPPED and LEAST <= len(column) <= MOST and column.dtype.kind in "iu":
            found = _derived(name, columns) or _short(name, column, columns)
        if found is None:
            arrays[name] = column
            continue
        form, parts = found
        forms[name] = {"dtype": column.dtype.str, "length": len(column), **form}
        arrays |= {f"{name}:{part}": array for part, array in parts.items()}
    return arrays, forms


Found = tuple[Form, dict[str, NDArray[Any]]]


def _derived(name: str, columns: Arrays) -> Found | None:
    """A column that others say already."""
    if name == "ent.name" and np.array_equal(columns[name], columns["ent.id"]):
        return {"form": "copy", "of": "ent.id"}, {}
    if name in ("ent.source", "ent.row"):
        same = np.array_equal(columns[name], _from_rows(name, len(columns[name]), columns))
        return ({"form": "rows"}, {}) if same else None
    if name == "st.row" and len(columns["ent.row"]):
        at = np.flatnonzero(columns[name] != _places(columns))
        if 4 * len(at) <= len(columns[name]):
            return {"form": "places"}, {"at": at.astype(np.int32), "rows": columns[name][at]}
    return None


def _short(name: str, column: NDArray[Any], columns: Arrays) -> Found | None:
    """A column by itself, in the shortest of the forms that are worth it."""
    changes = np.flatnonzero(column[1:] != column[:-1]) + 1
    if not len(changes):
        return {"form": "same", "value": int(column[0])}, {}
    if _RUN * len(changes) <= len(column):
        starts = np.append(0, changes)
        return {"form": "runs"}, {"starts": starts.astype(np.int32), "values": column[starts]}
    edges = columns[_GROUPED[name]].tolist() if name in _GROUPED else ()
    most, usual = _WORTH * column.nbytes, -1 if (column[:1024] == -1).any() else 0
    rare = column != usual
    sparse = int(rare.sum()) * column.itemsize + len(column) // 8
    beside = columns.get(_BESIDE.get(name, ""))
    if beside is not None or sparse > column.nbytes / 4:
        found = blocks.pack(column, edges, beside)
        if found.size < min(most, sparse):
            more = {} if beside is None else {"beside": _BESIDE[name]}
            return {"form": "blocks", **more}, {"how": found.how, "numbers": found.numbers, "body": found.body}
    if sparse < most:
        return {"form": "sparse", "usual": usual}, {"where": np.packbits(rare), "values": column[rare]}
    return None


def _places(columns: Arrays) -> NDArray[Any]:
    """The row of the subject of each statement."""
    rows = columns["ent.row"]
    return np.concatenate([rows[columns["rel.s"]], rows[columns["att.s"]]])


def _from_rows(name: str, entities: int, columns: Arrays) -> NDArray[np.int32]:
    """The table (-1: none) or the row (0: none) of each entity."""
    key, of = columns["row.key"], columns["row.entity"]
    found = np.full(entities, -1 if name == "ent.source" else 0, np.int32)
    found[of] = key >> 32 if name == "ent.source" else key & (2**32 - 1)
    return found


class PackedFile(ArrayFile):
    """The columns of one file, in whatever form they are there. `get` and `view` are as those of
    `ArrayFile`; `names` are the columns, `size` and `verify` are of the file.
    """

    def __init__(self, path: Path, table: Mapping[str, ArrayEntry], forms: Mapping[str, Form]) -> None:
        super().__init__(path, table)
        self._forms = forms

    @property
    def names(self) -> list[str]:
        """The columns, packed ones last."""
        return [name for name in self._table if name.partition(":")[0] not in self._forms] + list(self._forms)

    def get(self, name: str) -> NDArray[Any]:
        """A column; read-only. Worked out at the first call where it is not there as it is."""
        form = self._forms.get(name)
        if form is None:
            return super().get(name)
        found = self._arrays.get(name)
        if found is None:
            found = self._unpacked(name, form).astype(np.dtype(form["dtype"]), copy=False)
            found.flags.writeable = False
            self._arrays[name] = found
        return found

    def length(self, name: str) -> int:
        """How many numbers a column has, without working it out."""
        form = self._forms.get(name)
        return super().length(name) if form is None else int(form["length"])

    def _unpacked(self, name: str, form: Form) -> NDArray[Any]:
        length, kind = form["length"], form["form"]
        if kind == "same":
            return np.full(length, form["value"], np.dtype(form["dtype"]))
        if kind == "copy":
            return self.get(form["of"]).copy()
        if kind == "rows":
            return _from_rows(name, length, _Columns(self))
        if kind == "places":
            rows = _places(_Columns(self))
            rows[self._part(name, "at")] = self._part(name, "rows")
            return rows
        if kind == "runs":
            starts = self._part(name, "starts")
            return self._part(name, "values").repeat(np.diff(np.append(starts, length)))
        if kind == "sparse":
            column = np.full(length, form["usual"], np.dtype(form["dtype"]))
            column[np.unpackbits(self._part(name, "where"), count=length).view(bool)] = self._part(name, "values")
            return column
        parts = blocks.Packed(self._part(name, "how"), self._part(name, "numbers"), self._part(name, "body"))
        beside = self.get(form["beside"]) if "beside" in form else None
        return blocks.unpack(parts, length, np.dtype(form["dtype"]), beside)

    def _part(self, name: str, part: str) -> NDArray[Any]:
        return super().get(f"{name}:{part}")


class _Columns(Mapping[str, NDArray[Any]]):
    """The columns of a file as a mapping."""

    def __init__(self, file: PackedFile) -> None:
        self._file = file

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._file.get(name)

    def __iter__(self) -> Any:
        return iter(self._file.names)

    def __len__(self) -> int:
        return len(self._file.names)
