"""Link prediction models that are embeddings: vectors of entities and relations, stored as one `.npz` file.

form                 text: one of `FORMS`
entities, relations  texts, or a JSON list of texts as bytes (uint8)
entity_vectors       (entities, dimension), float32
relation_vectors     (relations, dimension); (relations, dimension, dimension) for rescal
inverse_vectors      the same for inverse relations, if they have vectors of their own
tail_vectors         (entities, dimension), if tails have vectors of their own (cp)
about                JSON: how the model was trained
"""

from __future__ import annotations

import json
import os
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import cached
from condgraph.engine.errors import LinkModelError, OptionError, nearest, requiring
from condgraph.links.model import LinkModel

# -- forms of score ----------------------------------------------------------------------------------
# Every form of score maps a question (head, relation) to one vector: its dot products with the vectors
# of all entities are their scores, so one matrix product answers many questions.
#
#     form      score of (h, r, t)                      vectors of a relation
#     complex   Re(<h, r, conj(t)>), Trouillon 2016     (2k,): real parts, then imaginary ones
#     distmult  <h, r, t>, Yang 2015                    (k,)
#     cp        <h, r, t'>, t' of its own, Lacroix 2018 (k,)
#     rescal    h^T R t, Nickel 2011                    (k, k)
#
# An inverse without vectors of its own is scored by the same form, with head and tail exchanged.


Floats: TypeAlias = NDArray[np.float32]
FORMS: Final = ("complex", "distmult", "cp", "rescal")


def questions(form: str, heads: Floats, relation: Floats, *, inverse: bool = False) -> Floats:
    """Return vectors whose dot product with a tail's vector is the score of (head, relation, tail); shape (n,
    dimension).

    `heads` has shape (n, dimension); `relation` is the vector (or matrix) of one relation, or one for each head. With
    `inverse` the given vectors are of tails, and the result is for heads.
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
        result: Floats = np.einsum("nk,nkl->nl", heads, matrix)
        return result
    return heads * relation


def halves(vectors: Floats) -> tuple[Floats, Floats]:
    """Return the real and the imaginary parts of complex vectors."""
    half = vectors.shape[-1] // 2
    return vectors[..., :half], vectors[..., half:]


# -- models ------------------------------------------------------------------------------------------


#: The most scores that are computed at once: 64 MB of float32.
CHUNK: Final = 1 << 24
_ARRAYS: Final = ("form", "entities", "relations", "entity_vectors", "relation_vectors", "inverse_vectors", "tail_vectors", "about")
_HINT: Final = "train it with `graph.train_links(...)`, or see the how-to page for the arrays that a file has"

#: The largest accepted ratio of unpacked to packed size of a file.
_MAX_RATIO: Final = 100
#: The errors of reading an arbitrary file as arrays; zip files may also be encrypted, or packed by an unknown method.
_UNREADABLE: Final = (
    *(OSError, ValueError, KeyError, EOFError, AttributeError, TypeError, OverflowError, RuntimeError, NotImplementedError),
    *(SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


@dataclass(frozen=True, eq=False)
class Embeddings:
    """A link prediction model with vectors (`LinkModel`); its scores are raw. The module describes the arrays."""

    form: str
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    entity_vectors: Floats
    relation_vectors: Floats
    inverse_vectors: Floats | None = None
    tail_vectors: Floats | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._checked()

    @property
    def calibrated(self) -> bool:
        """False: scores are logits."""
        return False

    @property
    def warnings(self) -> list[str]:
        """The warnings of its training."""
        warnings = self.about.get("warnings", ())
        return [str(text) for text in warnings] if isinstance(warnings, list) else []

    @property
    def dimension(self) -> int:
        """The length of the vector of an entity."""
        return int(self.entity_vectors.shape[1])

    @cached
    def fingerprint(self) -> str:
        """A hash of everything that the scores depend on."""
        digest = blake2b(json.dumps([self.form, self.entities, self.relations]).encode(), digest_size=16)
        for array in (self.entity_vectors, self.relation_vectors, self.inverse_vectors, self.tail_vectors):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).data.cast("B"))
        return digest.hexdigest()

    def score_tails(self, heads: NDArray[np.int64], relation: int, *, inverse: bool = False) -> Floats:
        """See `LinkModel.score_tails`."""
        return self.question_vectors(heads, relation, inverse) @ self.targets(inverse).T

    def on(self, device: str) -> DeviceModel:
        """Return the model with scores computed on a device of PyTorch (`cuda`, `cpu`, ...)."""

        return DeviceModel(self, device)

    def question_vectors(self, heads: NDArray[np.int64], relation: int, inverse: bool) -> Floats:
        """Return the vectors of questions (`questions`), shape (heads, dimension)."""
        has_own = inverse and self.inverse_vectors is not None
        table = self.inverse_vectors if has_own else self.relation_vectors
        assert table is not None
        # For an inverse without vectors of its own, the given entities are tails.
        side = self.tail_vectors if inverse and not has_own and self.tail_vectors is not None else self.entity_vectors
        return questions(self.form, side[heads], table[relation], inverse=inverse and not has_own)

    def targets(self, inverse: bool) -> Floats:
        """Return the vectors of the entities that are scored, shape (entities, dimension)."""
        if self.tail_vectors is None or (inverse and self.inverse_vectors is None):
            return self.entity_vectors
        return self.tail_vectors

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model to a `.npz` file, completely or not at all, and return the path."""
        target = Path(path)
        arrays: dict[str, Any] = {
            "form": np.array(self.form),
            "entities": _texts(self.entities),
            "relations": _texts(self.relations),
            "entity_vectors": self.entity_vectors,
            "relation_vectors": self.relation_vectors,
            "about": np.frombuffer(json.dumps(dict(self.about)).encode(), np.uint8),
        }
        if self.inverse_vectors is not None:
            arrays["inverse_vectors"] = self.inverse_vectors
        if self.tail_vectors is not None:
            arrays["tail_vectors"] = self.tail_vectors
        save_arrays(target, arrays)
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Embeddings:
        """Read a `.npz` file; raises `LinkModelError` for a file that is not a model, and for NaN or infinity in it."""
        place = os.fspath(path)
        arrays = load_arrays(place, _HINT)
        unknown = sorted(set(arrays) - set(_ARRAYS))
        if unknown:
            raise LinkModelError(f"{place} has unknown arrays: {', '.join(unknown)}", hint=_HINT)
        missing = [name for name in ("entities", "relations", "entity_vectors", "relation_vectors") if name not in arrays]
        if missing:
            raise LinkModelError(f"{place} lacks {', '.join(missing)}", hint=_HINT)
        about = _read_about(arrays["about"], place) if "about" in arrays else {}
        form = str(arrays["form"]) if "form" in arrays else "complex"
        numbers = {name: _numbers(arrays[name], place, name) for name in _ARRAYS[3:7] if name in arrays}
        return cls(form, _read_texts(arrays, "entities", place), _read_texts(arrays, "relations", place), **numbers, about=about)

    def _checked(self) -> None:
        if self.form not in FORMS:
            raise LinkModelError(f"unknown scoring function {self.form!r}", candidates=nearest(self.form, FORMS), hint=_HINT)
        n, m, d = len(self.entities), len(self.relations), self.entity_vectors.shape[-1]
        value = (m, d, d) if self.form == "rescal" else (m, d)
        shapes = {"entity_vectors": (n, d), "relation_vectors": value, "inverse_vectors": value, "tail_vectors": (n, d)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array is None:
                continue
            if array.shape != shape:
                raise LinkModelError(f"{name} has shape {array.shape}; {n} entities and {m} relations ask for {shape}", hint=_HINT)
            invalid_rows = ~np.isfinite(array).reshape(len(array), -1).all(axis=1)
            if invalid_rows.any():
                name_of_row = (self.entities if name in ("entity_vectors", "tail_vectors") else self.relations)[
                    int(invalid_rows.argmax())
                ]
                raise LinkModelError(
                    f"{name} has NaN or infinity in {int(invalid_rows.sum())} rows; the first is that of {name_of_row!r}"
                )
        if self.form == "complex" and d % 2:
            raise LinkModelError(f"complex vectors have real and imaginary parts, and {d} numbers do not form pairs", hint=_HINT)
        if self.form == "cp" and self.tail_vectors is None:
            raise LinkModelError("cp has vectors of its own for tails, and tail_vectors is missing", hint=_HINT)
        for name, texts in (("entities", self.entities), ("relations", self.relations)):
            if len(set(texts)) < len(texts):
                names_before: set[str] = set()
                duplicate = next(text for text in texts if text in names_before or names_before.add(text))  # type: ignore[func-returns-value]
                raise LinkModelError(f"{name} has {duplicate!r} twice")


def model_of(model: LinkModel | str | os.PathLike[str]) -> LinkModel:
    """Return a model unchanged, or read it from the path of a `.npz` file; raises `LinkModelError`."""
    if isinstance(model, (str, os.PathLike)):
        return Embeddings.load(model)
    if not isinstance(model, LinkModel):
        raise LinkModelError(
            f"a {type(model).__name__} is not a link prediction model", hint="it needs the methods of `links.model.LinkModel`"
        )
    return model


def check_scores(scores: Floats, model: Any, relation: int) -> None:
    """Raise `LinkModelError` if a score is NaN."""
    if not np.isfinite(scores.sum()) and np.isnan(scores).any():
        raise LinkModelError(f"the model gave NaN for {int(np.isnan(scores).sum())} scores of {model.relations[relation]!r}")


def rows_of(heads: int, entities: int) -> int:
    """Return how many heads to score at once."""
    if entities < 1:
        raise OptionError("the model has no entities")
    return max(1, min(heads, CHUNK // entities))


def _texts(texts: Sequence[str]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(list(texts), ensure_ascii=False).encode("utf-8", "surrogatepass"), np.uint8)


def save_arrays(place: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays to a `.npz` file, completely or not at all."""
    temporary = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, place)
    finally:
        temporary.unlink(missing_ok=True)


def load_arrays(place: str, hint: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of an arbitrary `.npz` file. Raises `LinkModelError` for a file of another kind, and for one
    that unpacks to far more than vectors or rules do.
    """
    try:
        if zipfile.is_zipfile(place):
            with zipfile.ZipFile(place) as packed:
                unpacked = sum(item.file_size for item in packed.infolist())
            if unpacked > _MAX_RATIO * (os.path.getsize(place) + 4096):
                raise LinkModelError(f"{place} is packed more than {_MAX_RATIO} times: {unpacked:,} bytes", hint=hint)
        with np.load(place, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise LinkModelError(f"{place}: there is no such file", hint=hint) from None
    except MemoryError:
        raise LinkModelError(f"{place} says that its arrays are larger than the memory", hint=hint) from None
    except _UNREADABLE as error:
        raise LinkModelError(f"{place} cannot be read as arrays: {error}", hint=hint) from None


def _json(array: NDArray[Any], place: str, name: str) -> str:
    if array.dtype != np.uint8:
        raise LinkModelError(f"{name} in {place} is neither texts nor JSON as bytes, but {array.dtype}", hint=_HINT)
    return array.tobytes().decode("utf-8", "surrogatepass")


def _read_texts(arrays: Mapping[str, NDArray[Any]], name: str, place: str) -> tuple[str, ...]:
    array = arrays[name]
    if array.dtype.kind == "U":
        return tuple(array.ravel().tolist())
    try:
        texts = json.loads(_json(array, place, name))
    except (ValueError, RecursionError) as error:
        raise LinkModelError(f"{name} in {place} is not JSON: {error}", hint=_HINT) from None
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise LinkModelError(f"{name} in {place} is not a list of texts", hint=_HINT)
    return tuple(texts)


def _read_about(array: NDArray[Any], place: str) -> dict[str, Any]:
    try:
        about = json.loads(_json(array, place, "about"))
    except (ValueError, RecursionError) as error:
        raise LinkModelError(f"about in {place} is not JSON: {error}", hint=_HINT) from None
    if not isinstance(about, dict):
        raise LinkModelError(f"about in {place} is not a JSON object", hint=_HINT)
    return about


def _numbers(array: NDArray[Any], place: str, name: str) -> Floats:
    if array.dtype.kind not in "fiu" or array.ndim not in (2, 3):
        raise LinkModelError(
            f"{name} in {place} has type {array.dtype} and {array.ndim} dimensions, not numbers of 2 or 3", hint=_HINT
        )
    return np.ascontiguousarray(array, np.float32)


# -- scores on a device of PyTorch -------------------------------------------------------------------
# torch is an optional dependency, imported on first use.


def torch_device(name: str) -> Any:
    """Return torch and the device of a name: `cpu`, `cuda`, `cuda:1`, `mps`.

    Raises `MissingExtraError` if torch is not installed, `LinkModelError` for a device that torch does not have.
    """
    with requiring("torch", "torch"):
        import torch
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, ValueError) as error:
        devices = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
        if torch.backends.mps.is_available():
            devices.append("mps")
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LinkModelError(
            f"torch cannot work on the device {name!r}: {reason}", candidates=devices, hint=f"it has {', '.join(devices)}"
        ) from None
    return torch, device


class DeviceModel:
    """A model whose scores are computed on a device of PyTorch (`LinkModel`)."""

    calibrated = False

    def __init__(self, model: Embeddings, device: str) -> None:
        self._torch, self._device = torch_device(device)
        self._model = model
        self.entities, self.relations, self.fingerprint = model.entities, model.relations, model.fingerprint
        self.warnings = model.warnings
        self._cache: dict[bool, Any] = {}

    def score_tails(self, heads: NDArray[np.int64], relation: int, *, inverse: bool = False) -> Floats:
        """See `LinkModel.score_tails`."""
        if inverse not in self._cache:
            targets = self._model.targets(inverse)
            is_same = False in self._cache and targets is self._model.targets(False)
            self._cache[inverse] = self._cache[False] if is_same else self._to_device(targets)
        vectors = self._to_device(self._model.question_vectors(heads, relation, inverse))
        scores: Floats = (vectors @ self._cache[inverse].T).cpu().numpy()
        return scores

    def _to_device(self, array: Floats) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device)
