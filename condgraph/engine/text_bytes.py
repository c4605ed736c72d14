"""Many texts as bytes side by side: sorted by code point, put together in another order, and their
CRC-32, by NumPy, eight bytes of all of them at once.

Texts are UTF-8 in `data`, a byte array with `SPARE` more bytes behind the last text; each begins
at one of `begins` and has one of `lengths` bytes. UTF-8 keeps the order of code points.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.pieces import changed, in_order

#: Bytes behind the last text, so that eight bytes can be read wherever a text has one.
SPARE: Final = 8
#: How often eight more bytes are compared before Python sorts what is still equal.
_ROUNDS: Final = 8
#: Texts of more bytes are left to zlib.
_LONGEST: Final = 64
#: Of so few texts Python is quicker.
_FEW: Final = 256
#: Texts of more bytes, on average, are cut out one by one.
MEAN: Final = 40
#: Texts that are put together at once: what they take stays in the caches.
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
    if lengths.sum() > MEAN * len(lengths):
        return np.frombuffer(b"".join(_cut(data, begins, lengths)) + bytes(SPARE), np.uint8)
    found = np.zeros(int(lengths.sum()) + SPARE, np.uint8)
    at = 0
    for first in range(0, len(begins), _SOME):
        size = lengths[first : first + _SOME]
        there = size > 0
        size, begin = size[there], begins[first : first + _SOME][there]
        if not len(size):
            continue
        # One byte further each time, but from the end of a text to the beginning of the next.
        ends = np.cumsum(size)
        steps = np.ones(int(ends[-1]), np.int64)
        steps[0] = begin[0]
        steps[ends[:-1]] = begin[1:] - (begin[:-1] + size[:-1] - 1)
        data.take(np.cumsum(steps, out=steps), out=found[at : at + len(steps)], mode="clip")
        at += len(steps)
    return found


@cache
def _tables() -> tuple[NDArray[np.uint32], ...]:
    """What two bytes add to a CRC-32 that follows them by 0, 2, 4 and 6 bytes."""
    one = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        one = np.where(one & 1, (one >> 1) ^ np.uint32(0xEDB88320), one >> 1).astype(np.uint32)
    # By one byte more each: the first is of the byte itself.
    by_byte = [one]
    for _ in range(_WORD - 1):
        by_byte.append(one[by_byte[-1] & 255] ^ (by_byte[-1] >> np.uint32(8)))
    pairs = np.arange(1 << 16)
    return tuple(by_byte[at + 1][pairs & 255] ^ by_byte[at][pairs >> 8] for at in range(0, _WORD, 2))


def checksums(data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
    """The CRC-32 of each text, as `zlib.crc32` has it."""
    if len(begins) <= _FEW:
        return np.array(list(map(zlib.crc32, _cut(data, begins, lengths))), np.uint32)
    long = np.flatnonzero(lengths > _LONGEST)
    most = int(np.minimum(lengths, _LONGEST).max(initial=0))
    # Without its start and end, a CRC is linear, and zeros in front change nothing: so texts are
    # taken as if they began at one place before they end, and what their lengths add is added.
    found = np.array([zlib.crc32(bytes(size)) for size in range(most + 1)], np.uint32).take(lengths, mode="clip")
    tables = _tables()
    ends = begins + lengths
    for first in range(0, len(begins), _SOME):
        some = slice(first, first + _SOME)
        size, end = lengths[some], ends[some]
        state = np.zeros(len(size), np.uint64)
        for left in range((most - 1) // _WORD, -1, -1):
            # Bytes before the text are made zero; there may be none to read before the first texts.
            at = end - _WORD * (left + 1)
            words = _words(data, np.maximum(at, 0)) << (np.maximum(-at, 0) * 8).clip(0, 63).astype(np.uint64)
            words &= _FIRST.take(size - _WORD * left, mode="clip")
            words ^= state
            pairs = words.astype("<u8", copy=False).view("<u2").reshape(-1, 4)
            low = tables[1][pairs[:, 2]] ^ tables[0][pairs[:, 3]]
            state = (tables[3][pairs[:, 0]] ^ tables[2][pairs[:, 1]] ^ low).astype(np.uint64)
        found[some] ^= state.astype(np.uint32)
    if len(long):
        found[long] = list(map(zlib.crc32, _cut(data, begins[long], lengths[long])))
    return found


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
