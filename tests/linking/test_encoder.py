"""Texts as vectors of hashed character n-grams."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condgraph.engine.errors import OptionError
from condgraph.engine.values import fold
from condgraph.vectors.encoders import MAX_CHARACTERS, LexicalEncoder

NAMES = ["Italy", "Itlay", "Italian Republic", "The Lord of the Rings", "Lord of the Rings, The", "10th", "Hyytiäinen", "日本", ""]


def grams(text: str) -> set[str]:
    """The n-grams as the module says, in plain Python."""
    padded = f" {fold(text)} "
    return {padded[at : at + size] for size in (2, 3, 4) for at in range(len(padded) - size + 1)} if fold(text) else set()


def test_shape_type_and_length() -> None:
    vectors = LexicalEncoder().encode(NAMES)
    assert vectors.shape == (len(NAMES), 1024)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors[:-1], axis=1) == pytest.approx(np.ones(len(NAMES) - 1), abs=1e-6)
    assert not vectors[-1].any()
    assert LexicalEncoder().encode([]).shape == (0, 1024)


def test_the_vectors_of_this_version() -> None:
    # A change here is a change of the encoder: it needs another name, because stored vectors do not
    # fit any more.
    encoder = LexicalEncoder(64)
    assert encoder.id == "lexical-1"
    rows = encoder.sparse(["ab", "Straße"])
    assert rows.indptr.tolist() == [0, 6, 26]
    assert rows.indices.tolist() == [
        2,
        15,
        23,
        27,
        49,
        63,
        1,
        3,
        7,
        9,
        18,
        21,
        22,
        29,
        37,
        38,
        41,
        48,
        50,
        51,
        52,
        55,
        56,
        57,
        58,
        62,
    ]
    assert np.sign(rows.data[:6]).tolist() == [-1, -1, 1, -1, -1, -1]


def test_dense_and_sparse_are_the_same() -> None:
    encoder = LexicalEncoder(256)
    rows = encoder.sparse(NAMES)
    assert len(rows) == len(NAMES)
    assert (rows.dense() == encoder.encode(NAMES)).all()
    for row in range(len(rows)):
        columns = rows.indices[rows.indptr[row] : rows.indptr[row + 1]]
        assert (np.diff(columns) > 0).all()


@given(st.lists(st.text(max_size=30), max_size=8))
def test_a_vector_depends_on_its_text_alone(texts: list[str]) -> None:
    encoder = LexicalEncoder(128)
    together = encoder.encode(texts)
    for text, vector in zip(texts, together, strict=True):
        assert (encoder.encode([text])[0] == vector).all()


# In shorter texts two n-grams that fall on one position are a larger share than the tolerance.
@given(st.text("abcdefgh éß", min_size=12, max_size=40), st.text("abcdefgh éß", min_size=12, max_size=40))
def test_the_product_is_close_to_the_cosine_of_the_sets(first: str, second: str) -> None:
    one, two = LexicalEncoder(65_536).encode([first, second])
    left, right = grams(first), grams(second)
    cosine = len(left & right) / np.sqrt(len(left) * len(right)) if left and right else 0.0
    assert float(one @ two) == pytest.approx(cosine, abs=0.1)


@given(st.text(max_size=40))
def test_case_accents_and_spaces_do_not_count(text: str) -> None:
    encoder = LexicalEncoder(64)
    assert (encoder.encode([text])[0] == encoder.encode([f"  {fold(text)}\n"])[0]).all()
    assert fold(fold(text)) == fold(text)


def test_like_texts_are_near_and_unlike_ones_are_far() -> None:
    vectors = LexicalEncoder().encode(NAMES)
    near = vectors @ vectors.T
    assert near[3, 4] > 0.7
    assert near[0, 1] > near[0, 3]
    assert abs(near[0, 5]) < 0.1


def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = LexicalEncoder(128).encode(NAMES)
    monkeypatch.setattr("condgraph.vectors.encoders._CHUNK_CHARACTERS", 16)
    assert (LexicalEncoder(128).encode(NAMES) == whole).all()


def test_long_texts_are_cut() -> None:
    encoder = LexicalEncoder(64)
    long = "ab" * MAX_CHARACTERS
    assert (encoder.encode([long])[0] == encoder.encode([long[:MAX_CHARACTERS]])[0]).all()


@pytest.mark.parametrize("dimension", [0, 63, 100, 1 << 17, -1024])
def test_other_dimensions_are_errors(dimension: int) -> None:
    with pytest.raises(OptionError, match="power of two"):
        LexicalEncoder(dimension)
