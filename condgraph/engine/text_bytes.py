"""Many texts as bytes side by side: sorted by code point, eight bytes of all of them at once, put together
in another order, and their CRC-32.

Texts are UTF-8 in `data`, a byte array with `SPARE` more bytes behind the last text; each begins
at one of `begins` and has one of `lengths` bytes. UTF-8 keeps the order of code points.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.pieces import changed, in_order, slices

#: Bytes behind the last text, so that eight bytes can be read wherever a text has one.
SPARE: Final = 8
#: How often eight more bytes are compared before Python sorts what is still equal.
_ROUNDS: Final = 8
#: Of so few texts Python is quicker.
_FEW: Final = 256
#: Texts of more bytes, on average, are sorted one by one.
MEAN: Final = 40
#: Texts that are handled at once, so that few objects of Python are needed.
_SOME: Final = 1 << 15
_WORD: Final = 8
#: The bytes of a word that the first so many bytes of a text fill, as a number, the first the highest.
_FIRST: Final = np.array([2**64 - (1 << 8 * (8 - size)) if size else 0 for size in range(9)], np.uint64)


def _words(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Eight bytes from each of some places, little-endian."""
    every = np.ndarray(len(data) - _WORD + 1, np.dtype("<u8"), data, 0, (1,))
    return every[at]


def _key(data: NDArray[np.uint8], begins: NDArray[np.int64], left: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The next bytes of texts that have so many left (0 or less: none), as numbers that order them."""
    words = _words(data, np.minimum(begins, len(data) - _WORD)).astype(np.uint64).byteswap()
    words &= _FIRST.take(left, mode="clip")
    return words


def sorted_texts(
    data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The places of texts in their order, and which of them, in that order, are not the text before;
    equal texts are in no certain order.
    """
    count = len(begins)
    if count <= _FEW or (data[: len(data) - SPARE] == 0).any():
        # A text and the same with a zero behind have equal words.
        return _by_python(data, begins, lengths, np.arange(count), np.ones(count, bool))
    key = _key(data, begins, lengths)
    order = np.argsort(key)
    fresh = changed(key[order])
    # Where the texts that are still equal stand, and the group of equals of each.
    places, done = np.arange(count), 0
    for done in range(1, _ROUNDS + 1):
        places = _undecided(fresh, places, lengths[order[places]] > _WORD * done)
        if not len(places):
            return order, fresh
        some = order[places]
        group = np.cumsum(fresh[places], dtype=np.int32)
        key = _key(data, begins[some] + _WORD * done, lengths[some] - _WORD * done)
        by_key = np.argsort(key)
        within = by_key[in_order([group[by_key]])]
        order[places], key = some[within], key[within]
        fresh[places[1:]] |= key[1:] != key[:-1]
    places = _undecided(fresh, places, lengths[order[places]] > _WORD * (_ROUNDS + 1))
    return _by_python(data, begins, lengths, order, fresh, places) if len(places) else (order, fresh)


def _undecided(fresh: NDArray[np.bool_], places: NDArray[np.int64], longer: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The places, out of some whole groups of equals, whose groups have several texts, of which one
    is longer than what was compared.
    """
    first = fresh[places]
    starts = np.flatnonzero(first)
    sizes = np.diff(np.append(starts, len(places)))
    wanted = (sizes > 1) & np.logical_or.reduceat(longer, starts) if len(starts) else np.zeros(0, bool)
    return places[np.repeat(wanted, sizes)]


def _by_python(
    data: NDArray[np.uint8],
    begins: NDArray[np.int64],
    lengths: NDArray[np.int64],
    order: NDArray[np.int64],
    fresh: NDArray[np.bool_],
    places: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The same, where texts at some places (None: all are one group) are sorted one by one within
    their groups.
    """
    places = np.arange(len(order)) if places is None else places
    some = order[places]
    group = np.cumsum(fresh[places]).tolist() if len(places) < len(order) else [0] * len(order)
    texts = [(of, text) for of, text in zip(group, _cut(data, begins[some], lengths[some]), strict=True)]
    by_text = sorted(range(len(texts)), key=texts.__getitem__)
    order = order.copy()
    order[places] = some[by_text]
    ordered = [texts[at] for at in by_text]
    fresh[places[1:]] = [one != before for one, before in zip(ordered[1:], ordered, strict=False)]
    return order, fresh


def _cut(data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[bytes]:
    whole = data.tobytes()
    return [whole[low:high] for low, high in zip(begins.tolist(), (begins + lengths).tolist(), strict=True)]


def put_together(data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Texts back to back, in the order in which they are given, with `SPARE` bytes behind them."""
    parts = [b"".join(_views(data, begins[some], lengths[some])) for some in slices(len(begins), _SOME)]
    return np.frombuffer(b"".join([*parts, bytes(SPARE)]), np.uint8)


def checksums(data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
    """The CRC-32 of each text."""
    result = np.empty(len(begins), np.uint32)
    for some in slices(len(begins), _SOME):
        result[some] = list(map(zlib.crc32, _views(data, begins[some], lengths[some])))
    return result


def _views(data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[memoryview]:
    whole = data.data
    return [whole[low:high] for low, high in zip(begins.tolist(), (begins + lengths).tolist(), strict=True)]


def bytes_of(texts: list[str]) -> tuple[bytes, NDArray[Any]]:
    """Texts as bytes back to back, and how many each has. Raises UnicodeEncodeError for half of a
    surrogate pair.
    """
    joined = "".join(texts)
    data = joined.encode()
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    if len(data) > len(joined):
        # From characters to bytes: each begins with a byte that continues none.
        ends = np.cumsum(lengths)
        raw = np.frombuffer(data, np.uint8)
        places = np.append(np.flatnonzero((raw & 0xC0) != 0x80), len(data))
        lengths = np.diff(places[np.append(0, ends)])
    return data, lengths
