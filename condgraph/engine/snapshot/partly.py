"""Columns of which a part is worked out when it is asked for, for who reads little of a graph between two changes of it.

To arithmetic, to functions of NumPy and to everything else that asks for much of one, a column is the array that it
stands for, which is then worked out as a whole.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

Array = NDArray[Any]
#: Who asks for more than this part of a column gets the whole of it.
_PART: Final = 32


class PartialArray(NDArrayOperatorsMixin):
    """An array of `length` numbers: `some` gives those at some places, `whole` all of them. With `plain` a single one is a
    number of Python, as in a memoryview.
    """

    def __init__(self, some: Callable[[Array], Array], whole: Callable[[], Array], length: int, *, plain: bool = False) -> None:
        self._some, self._whole, self._length, self._plain = some, whole, length, plain
        self.shape, self.size, self.ndim = (length,), length, 1

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        return iter(self._whole().tolist() if self._plain else self._whole())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._whole(), dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*(one._whole() if isinstance(one, PartialArray) else one for one in inputs), **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(memoryview(self._whole().data) if self._plain else self._whole(), name)

    def take(self, places: Any, **options: Any) -> Array:
        """The numbers at some places."""
        places = np.asarray(places)
        if options or places.ndim != 1 or _PART * len(places) > self._length:
            return np.asarray(self._whole().take(places, **options))
        return self._some(np.where(places < 0, places + self._length, places))

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            first, last, step = at.indices(self._length)
            count = max(last - first, 0)
            if step != 1 or _PART * count <= self._length:
                return self._some(np.arange(first, last, step))
            return PartialArray(lambda places: self._some(places + first), lambda: self._whole()[at], count, plain=self._plain)
        if isinstance(at, (list, np.ndarray)) and np.ndim(at) == 1 and np.asarray(at).dtype != bool and len(at):
            return self.take(at)
        try:
            place = operator.index(at)
        except TypeError:
            return self._whole()[at]
        place += self._length if place < 0 else 0
        if not 0 <= place < self._length:
            raise IndexError(at)
        number = self._some(np.array([place]))[0]
        return number.item() if self._plain else number

    def view(self, dtype: Any) -> PartialArray:
        """The same bits as numbers of another type of this size."""
        return PartialArray(lambda places: self._some(places).view(dtype), lambda: self._whole().view(dtype), self._length)

    @property
    def data(self) -> PartialArray:
        """The same, whose single numbers are numbers of Python."""
        return PartialArray(self._some, self._whole, self._length, plain=True)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers."""
        return self._some(np.empty(0, np.int64)).dtype

    @property
    def nbytes(self) -> int:
        """The size of the array in bytes."""
        return self._length * self.dtype.itemsize
