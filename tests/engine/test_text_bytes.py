"""Texts as bytes: sorted, put together and summed as one by one, whatever they are."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest

from condgraph.engine.snapshot.container import SPARE, bytes_of, checksums, put_together, sorted_texts

ALPHABETS = ("a", "ab", "abcdé漢😀", "x\0y", "0123456789")


@pytest.mark.parametrize("few", [0, 256])
@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("prefix", ["", "http://example.org/a/long/prefix/", "http://example.org/" * 5])
def test_texts_are_sorted_and_summed_as_one_by_one(alphabet: str, prefix: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condgraph.engine.snapshot.container._MAX_SINGLE", few)
    draw = random.Random(3)
    for count, longest in ((0, 1), (1, 0), (2, 3), (40, 1), (300, 9), (300, 24), (200, 90)):
        texts = [prefix + "".join(draw.choices(alphabet, k=draw.randrange(longest + 1))) for _ in range(count)]
        raw, lengths = bytes_of(texts)
        data, begins = np.frombuffer(raw + bytes(SPARE), np.uint8), np.cumsum(lengths) - lengths
        order, fresh = sorted_texts(data, begins, lengths)
        ordered = [texts[at] for at in order.tolist()]
        assert ordered == sorted(texts)
        assert sorted(order.tolist()) == list(range(count))
        assert fresh.tolist() == [not at or ordered[at - 1] != one for at, one in enumerate(ordered)]
        together = put_together(data, begins[order], lengths[order]).tobytes()
        assert together == "".join(ordered).encode() + bytes(SPARE)
        assert checksums(data, begins, lengths).tolist() == [zlib.crc32(text.encode()) for text in texts]


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(UnicodeEncodeError):
        bytes_of(["a", "\ud800"])
