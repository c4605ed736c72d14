"""Columns of Arrow taken apart: structs, lists, dictionaries and extensions, down to the values in
them.

A struct is one leaf a field, a list gives its elements with the row of each. `leaf` makes statements
of what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Part:
    """A column after structs and lists are taken apart: its values, and the rows they stand in
    (None: one each, in order).
    """

    values: Any
    rows: NDArray[np.int64] | None = None

    def valid(self, length: int) -> tuple[Any, NDArray[np.int64] | None]:
        """The values that are not null, and their rows; None for the rows where that is all of
        them, one each.
        """
        if self.values.null_count == 0:
            return self.values, self.rows
        mask = self.values.is_valid()
        rows = np.arange(length) if self.rows is None else self.rows
        return self.values.filter(mask), rows[mask.to_numpy(zero_copy_only=False)]


def leaves_of(name: str, kind: Any) -> list[tuple[str, Any]]:
    """The names and types of a column's leaves: itself, or the fields of a struct."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return [leaf for field in kind for leaf in leaves_of(f"{name}.{field.name}", field.type)]
    return [(name, kind)]


def flattened(array: Any) -> list[Any]:
    """The arrays of `leaves_of`, in the same order; nulls of a struct are nulls of its fields."""
    import pyarrow as pa

    if pa.types.is_struct(array.type):
        return [leaf for field in array.flatten() for leaf in flattened(field)]
    return [array]


def scalar_type(kind: Any) -> Any:
    """The type of the values of a leaf: of a list's elements, of a dictionary's values, of an
    extension's storage.
    """
    import pyarrow as pa

    types = pa.types
    while True:
        if types.is_dictionary(kind) or types.is_run_end_encoded(kind) or _is_list(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType) and not kind.extension_name.startswith("pandas."):
            kind = kind.storage_type
        else:
            return kind


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    plain = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(plain or types.is_list_view(kind) or types.is_large_list_view(kind))


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_binary(kind: Any) -> bool:
    """Whether an Arrow type is one of bytes."""
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def readable(kind: Any) -> bool:
    """Whether the values of a leaf of this Arrow type are values of a graph, or lists of such."""
    import pyarrow as pa

    types = pa.types
    if _is_list(kind) and _is_list(kind.value_type):
        return False
    kind = scalar_type(kind)
    return bool(
        is_text(kind)
        or is_binary(kind)
        or types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or types.is_time(kind)
        or types.is_duration(kind)
        or types.is_null(kind)
    )


def part_of(array: Any) -> Part:
    """Take lists, dictionaries and extensions off an array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows: NDArray[np.int64] | None = None
    while True:
        kind = array.type
        if isinstance(kind, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_dictionary(kind):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(kind):
            array = pc.run_end_decode(array)
        elif pa.types.is_string_view(kind):
            # Few kernels take views.
            array = array.cast(pa.large_string())
        elif pa.types.is_binary_view(kind):
            array = array.cast(pa.large_binary())
        elif pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
            array = array.cast(pa.large_list(kind.value_type))
        elif _is_list(kind):
            parents = pc.list_parent_indices(array).to_numpy(zero_copy_only=False).astype(np.int64)
            rows = parents if rows is None else rows[parents]
            array = pc.list_flatten(array)
        else:
            return Part(array, rows)


def only_rows(part: Part, kept: Sequence[int], length: int) -> Part:
    """The values of the rows that are kept, whose positions are those among the kept rows."""
    import pyarrow as pa

    place = np.full(length, -1, dtype=np.int64)
    place[np.asarray(kept, dtype=np.int64)] = np.arange(len(kept))
    rows = place if part.rows is None else place[part.rows]
    taken = np.flatnonzero(rows >= 0)
    return Part(part.values.take(pa.array(taken)), rows[taken])
