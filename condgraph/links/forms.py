"""The forms of score that embeddings have, each as one vector for a question: the scores of all
entities are its dot products with their vectors, so that one matrix product answers many questions.

    form      score of (h, r, t)                      vectors of a relation
    complex   Re(<h, r, conj(t)>), Trouillon 2016     (2k,): real parts, then imaginary ones
    distmult  <h, r, t>, Yang 2015                    (k,)
    cp        <h, r, t'>, t' of its own, Lacroix 2018 (k,)
    rescal    h^T R t, Nickel 2011                    (k, k)

An inverse that has no relation of its own is asked for by the same form from the other side.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
FORMS: Final = ("complex", "distmult", "cp", "rescal")


def questions(form: str, heads: Floats, relation: Floats, *, inverse: bool = False) -> Floats:
    """Vectors whose dot product with a tail's vector is the score of (head, relation, tail); shape
    (n, dimension).

    `heads` has shape (n, dimension); `relation` is one relation's vectors, or one for each head.
    With `inverse` the heads are tails, and what is asked for are heads of them.
    """
    if form == "complex":
        a, b = halves(heads)
        c, d = halves(relation)
        if inverse:
            return np.concatenate([a * c + b * d, b * c - a * d], axis=-1)
        return np.concatenate([a * c - b * d, a * d + b * c], axis=-1)
    if form == "rescal":
        matrix = relation.swapaxes(-1, -2) if inverse else relation
        if matrix.ndim == 2:
            return heads @ matrix
        found: Floats = np.einsum("nk,nkl->nl", heads, matrix)
        return found
    return heads * relation


def halves(vectors: Floats) -> tuple[Floats, Floats]:
    """Real and imaginary parts of complex vectors that lie one after the other."""
    half = vectors.shape[-1] // 2
    return vectors[..., :half], vectors[..., half:]
