"""The steps of `links.step` in PyTorch, on any device: the same loss, with gradients by torch, and the same Adagrad.

torch is an optional dependency, imported on first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.links.embeddings import DeviceModel, Embeddings, Floats, torch_device
from condgraph.links.step import Batch


def best_device() -> str | None:
    """Return the name of a GPU that torch can use; None without torch or a GPU."""
    try:
        import torch
    except ImportError:
        return None
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else None


class TorchLearner:
    """A learner (`links.step.Learner`) with its tables on a device."""

    def __init__(self, entities: Floats, relations: Floats, rate: float, device: str) -> None:
        self._torch, self._device = torch_device(device)
        self._rate = rate
        self._tables = [self._to_device(entities), self._to_device(relations)]
        self._moved = [self._torch.zeros_like(table) for table in self._tables]

    def step(self, batch: Batch, *, n3: float, predict_relation: float) -> float:
        torch = self._torch
        e, r = self._tables
        heads, relations, row, tails = (self._to_device(item) for item in (batch.heads, batch.relations, batch.row, batch.tails))
        if batch.sample is None:
            rows, place, head_rows = None, tails, heads
        else:
            # The entities of this batch: the competing ones, and the heads.
            batch_entities, row_of = np.unique(np.concatenate([batch.sample, batch.heads]), return_inverse=True)
            rows, head_rows = self._to_device(batch_entities), self._to_device(row_of[len(batch.sample) :])
            sample = self._to_device(row_of[: len(batch.sample)])
            place = self._to_device(np.searchsorted(batch.sample, batch.tails))
        vectors = (e if rows is None else e[rows]).detach().requires_grad_(True)
        table = r.detach().requires_grad_(True)
        candidates = vectors if rows is None else vectors[sample]
        head, relation = vectors[head_rows], table[relations]
        scores = _queries(torch, head, relation) @ candidates.T
        if batch.stands_for is not None:
            scores = scores + self._to_device(batch.stands_for)
        loss = (torch.logsumexp(scores, dim=1)[row] - scores[row, place]).sum()
        total = loss
        tail, by_edge = candidates[place], head[row]
        if predict_relation:
            pair = _queries(torch, tail, by_edge, inverse=True)
            of_relations = pair @ table.T
            relation_loss = (torch.logsumexp(of_relations, dim=1) - of_relations.gather(1, relations[row][:, None])[:, 0]).sum()
            loss = loss + predict_relation * relation_loss
            total = loss
        if n3:
            total = total + n3 * sum(_cubes(torch, item).sum() for item in (by_edge, relation[row], tail))
        (total / len(batch.tails)).backward()
        with torch.no_grad():
            self._move(0, vectors.grad, rows)
            self._move(1, table.grad, None)
        return float(loss.detach()) / len(batch.tails)

    def vectors(self) -> tuple[Floats, Floats]:
        return self._to_numpy(self._tables[0]), self._to_numpy(self._tables[1])

    def moved(self) -> tuple[Floats, Floats]:
        return self._to_numpy(self._moved[0]), self._to_numpy(self._moved[1])

    def restore(self, moved: tuple[Floats, Floats]) -> None:
        self._moved = [self._to_device(item) for item in moved]

    def scorer(self, model: Embeddings) -> DeviceModel:
        return DeviceModel(model, str(self._device))

    def _move(self, which: int, gradient: Any, rows: Any) -> None:
        table, moved = self._tables[which], self._moved[which]
        if rows is None:
            # In place: copying the table of a large graph takes longer than the arithmetic.
            moved.addcmul_(gradient, gradient)
            table.addcdiv_(gradient, moved.sqrt().add_(1e-10), value=-self._rate)
            return
        now = moved[rows] + gradient * gradient
        moved[rows] = now
        table[rows] -= self._rate * gradient / (now.sqrt() + 1e-10)

    def _to_device(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device, copy=True)

    @staticmethod
    def _to_numpy(table: Any) -> Floats:
        result: Floats = table.detach().to("cpu", copy=True).numpy()
        return result


def _queries(torch: Any, heads: Any, relations: Any, inverse: bool = False) -> Any:
    """Return `embeddings.questions` of ComplEx."""
    a, b = heads.chunk(2, dim=-1)
    c, d = relations.chunk(2, dim=-1)
    if inverse:
        return torch.cat([a * c + b * d, b * c - a * d], dim=-1)
    return torch.cat([a * c - b * d, a * d + b * c], dim=-1)


def _cubes(torch: Any, vectors: Any) -> Any:
    """Return |x|^3 of complex numbers. Its gradient at 0 is 0, not NaN."""
    a, b = vectors.chunk(2, dim=-1)
    squares = a * a + b * b
    return torch.where(squares > 0, squares, torch.ones_like(squares)) ** 1.5 * (squares > 0)
