"""Embeddings: their scores by the definitions, and files that are none."""

from __future__ import annotations

import json
import random
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condgraph.engine.errors import CondgraphError, LinkModelError
from condgraph.links.embeddings import FORMS, Embeddings, model_of
from condgraph.links.model import LinkModel

RNG = np.random.default_rng(5)
NAMES = tuple(f"e{number}" for number in range(7))


def made(form: str, *, own_inverse: bool = False) -> Embeddings:
    shape = (3, 6, 6) if form == "rescal" else (3, 6)
    draw = lambda *size: RNG.standard_normal(size).astype(np.float32)  # noqa: E731
    return Embeddings(
        form,
        NAMES,
        ("r0", "r1", "r2"),
        draw(7, 6),
        draw(*shape),
        draw(*shape) if own_inverse else None,
        draw(7, 6) if form == "cp" else None,
    )


def score(model: Embeddings, head: int, relation: Any, tail: int) -> float:
    """The definition, in complex numbers and loops."""
    h, t = model.entity_vectors[head], (model.entity_vectors if model.tail_vectors is None else model.tail_vectors)[tail]
    if model.form == "complex":
        h, r, t = (one[:3] + 1j * one[3:] for one in (h.astype(complex), relation, t))
        return float((h * r * t.conj()).sum().real)
    if model.form == "rescal":
        return float(h @ relation @ t)
    return float((h * relation * t).sum())


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_scores_are_those_of_the_definition(form: str, own: bool) -> None:
    model = made(form, own_inverse=own)
    assert isinstance(model, LinkModel)
    heads = np.array([0, 4, 4, 6])
    for relation in range(3):
        forward = model.score_tails(heads, relation)
        backward = model.score_tails(heads, relation, inverse=True)
        assert forward.shape == backward.shape == (4, 7)
        for row, head in enumerate(heads.tolist()):
            for other in range(7):
                assert forward[row, other] == pytest.approx(score(model, head, model.relation_vectors[relation], other), abs=1e-4)
                if own:
                    assert model.inverse_vectors is not None
                    wanted = score(model, head, model.inverse_vectors[relation], other)
                else:
                    wanted = score(model, other, model.relation_vectors[relation], head)
                assert backward[row, other] == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_a_model_is_written_and_read(form: str, tmp_path: Path) -> None:
    model = made(form, own_inverse=True)
    odd = Embeddings(form, ("ä\ud800", "", "a\nb", "x", "y", "z", "q" * 9000), model.relations, model.entity_vectors,
                     model.relation_vectors, model.inverse_vectors, model.tail_vectors, {"by": "hand"})  # fmt: skip
    back = Embeddings.load(odd.save(tmp_path / "m.npz"))
    assert (back.form, back.entities, back.relations, back.about) == (form, odd.entities, odd.relations, {"by": "hand"})
    assert np.array_equal(back.score_tails(np.arange(7), 1, inverse=True), odd.score_tails(np.arange(7), 1, inverse=True))
    assert back.fingerprint == odd.fingerprint != model.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["m.npz"]


def test_arrays_of_other_tools_are_read(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "m.npz",
        entities=np.array(["a", "b"]),
        relations=np.array(["r"]),
        entity_vectors=np.eye(2),
        relation_vectors=np.ones((1, 2)),
    )
    assert Embeddings.load(tmp_path / "m.npz").entities == ("a", "b")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"entity_vectors": None}, "lacks entity_vectors"),
    ({"entity_vectors": np.full((2, 2), np.nan)}, "NaN or infinity in 2 rows; the first is that of 'a'"),
    ({"relation_vectors": np.array([[1.0, np.inf]])}, "the first is that of 'r'"),
    ({"entity_vectors": np.ones((3, 2))}, "shape (3, 2)"),
    ({"relation_vectors": np.ones((1, 4))}, "shape (1, 4)"),
    ({"entity_vectors": np.ones(4)}, "1 dimensions"),
    ({"entity_vectors": np.array([["x", "y"], ["z", "w"]])}, "has type <U1"),
    ({"entity_vectors": np.ones((2, 3)), "relation_vectors": np.ones((1, 3))}, "do not form pairs"),
    ({"entities": np.array(["a", "a"])}, "entities has 'a' twice"),
    ({"entities": np.frombuffer(b"{}", np.uint8)}, "not a list of texts"),
    ({"entities": np.frombuffer(b"[" * 5000, np.uint8)}, "not JSON"),
    ({"about": np.frombuffer(b"[]", np.uint8)}, "not a JSON object"),
    ({"form": np.array("transe")}, "unknown scoring function 'transe'"),
    ({"form": np.array("cp")}, "tail_vectors is missing"),
    ({"entity_vectorz": np.ones(1)}, "unknown arrays: entity_vectorz"),
]


@pytest.mark.parametrize(("change", "says"), BAD)
def test_a_file_that_is_no_model_is_an_error(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "entities": np.array(["a", "b"]),
        "relations": np.array(["r"]),
        "entity_vectors": np.eye(2),
        "relation_vectors": np.ones((1, 2)),
        **change,
    }
    np.savez(tmp_path / "m.npz", **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(LinkModelError) as caught:
        Embeddings.load(tmp_path / "m.npz")
    assert says in str(caught.value)


def test_nonsense_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    objects = tmp_path / "objects.npz"
    np.savez(objects, entities=np.array([{"a": 1}], dtype=object))
    whole = objects.read_bytes()
    noise = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8).tobytes()
    for content in (b"", b"PK\x03\x04", noise, b"PK\x03\x04" + noise, whole, whole[: len(whole) // 2], json.dumps({}).encode()):
        path.write_bytes(content)
        with pytest.raises(CondgraphError):
            Embeddings.load(path)


@pytest.mark.parametrize("packed", [False, True])
def test_damaged_files_are_errors(packed: bool, tmp_path: Path) -> None:
    """Bytes changed here and there: encrypted, of other versions, damaged where it is packed."""
    path = made("complex").save(tmp_path / "model.npz")
    if packed:
        with np.load(path) as found:
            arrays = dict(found)
        np.savez_compressed(path, **arrays)
    whole, pick = path.read_bytes(), random.Random(7)
    for _ in range(600):
        data = bytearray(whole)
        for _ in range(pick.randint(1, 4)):
            at = pick.randrange(len(data))
            data[at] = pick.choice([0, 1, 8, 12, 255, data[at] ^ 1])
        path.write_bytes(data)
        with suppress(LinkModelError):
            Embeddings.load(path)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 1000000), }", "larger than the memory"),
        (b"((((", "cannot be read as arrays"),
        (b"{'descr': '|O', 'fortran_order': False, 'shape': (2, 4), }", "cannot be read as arrays"),
    ],
)
def test_heads_of_arrays_that_are_no_vectors(head: bytes, says: str, tmp_path: Path) -> None:
    path = made("complex").save(tmp_path / "model.npz")
    with zipfile.ZipFile(path) as found:
        parts = {name: found.read(name) for name in found.namelist()}
    head = head.ljust(117) + b"\n"
    parts["entity_vectors.npy"] = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(32)
    with zipfile.ZipFile(path, "w") as changed:
        for name, data in parts.items():
            changed.writestr(name, data)
    with pytest.raises(LinkModelError, match=says):
        Embeddings.load(path)


def test_a_file_that_becomes_far_more_than_it_is(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez_compressed(path, entity_vectors=np.zeros((5_000, 1_000), np.float32))
    with pytest.raises(LinkModelError, match="packed more than 100 times"):
        Embeddings.load(path)


def test_what_is_no_model_is_said() -> None:
    with pytest.raises(LinkModelError, match="a dict is not a link prediction model"):
        model_of({})  # type: ignore[arg-type]
