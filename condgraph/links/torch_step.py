"""The steps of `links.step` in PyTorch, on a given device: the same loss, whose
gradients torch works out itself, and the same Adagrad.

torch is imported when it is first needed; it is no part of the package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.links.embeddings import DeviceModel, Embeddings, Floats, torch_device
from condgraph.links.step import Batch


def best_device() -> str | None:
    """The name of a GPU that torch has; None without torch or a GPU."""
    try:
        import torch
    except ImportError:
        return None
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else None


class TorchLearner:
    """The tables of a model on a device; see `links.step.Learner`."""

    def __init__(self, entities: Floats, relations: Floats, rate: float, device: str) -> None:
        self._torch, self._device = torch_device(device)
        self._rate = rate
        self._tables = [self._there(entities), self._there(relations)]
        self._moved = [self._torch.zeros_like(table) for table in self._tables]

    def step(self, batch: Batch, *, n3: float, predict_relation: float) -> float:
        """See `links.step.Learner.step`."""
        torch = self._torch
        e, r = self._tables
        heads, relations, row, tails = (self._there(item) for item in (batch.heads, batch.relations, batch.row, batch.tails))
        if batch.sample is None:
            rows, place, own = None, tails, heads
        else:
            # The entities of this batch: those that compete, and the heads.
            known, where = np.unique(np.concatenate([batch.sample, batch.heads]), return_inverse=True)
            rows, own = self._there(known), self._there(where[len(batch.sample) :])
            sample = self._there(where[: len(batch.sample)])
            place = self._there(np.searchsorted(batch.sample, batch.tails))
        leaf = (e if rows is None else e[rows]).detach().requires_grad_(True)
        table = r.detach().requires_grad_(True)
        candidates = leaf if rows is None else leaf[sample]
        head, relation = leaf[own], table[relations]
        scores = _asked(torch, head, relation) @ candidates.T
        if batch.stands_for is not None:
            scores = scores + self._there(batch.stands_for)
        loss = (torch.logsumexp(scores, dim=1)[row] - scores[row, place]).sum()
        total = loss
        tail, by_edge = candidates[place], head[row]
        if predict_relation:
            pair = _asked(torch, tail, by_edge, inverse=True)
            of_relations = pair @ table.T
            more_loss = (torch.logsumexp(of_relations, dim=1) - of_relations.gather(1, relations[row][:, None])[:, 0]).sum()
            loss = loss + predict_relation * more_loss
            total = loss
        if n3:
            total = total + n3 * sum(_cubes(torch, item).sum() for item in (by_edge, relation[row], tail))
        (total / len(batch.tails)).backward()
        with torch.no_grad():
            self._move(0, leaf.grad, rows)
            self._move(1, table.grad, None)
        return float(loss.detach()) / len(batch.tails)

    def vectors(self) -> tuple[Floats, Floats]:
        """Copies of the tables."""
        return self._back(self._tables[0]), self._back(self._tables[1])

    def moved(self) -> tuple[Floats, Floats]:
        """Copies of how much each number has moved."""
        return self._back(self._moved[0]), self._back(self._moved[1])

    def restore(self, moved: tuple[Floats, Floats]) -> None:
        """Go on from where `moved` was."""
        self._moved = [self._there(item) for item in moved]

    def scorer(self, model: Embeddings) -> DeviceModel:
        """The model, scored on the device."""
        return DeviceModel(model, str(self._device))

    def _move(self, which: int, gradient: Any, rows: Any) -> None:
        table, moved = self._tables[which], self._moved[which]
        if rows is None:
            # In place: the table of a large graph takes longer to move than to multiply.
            moved.addcmul_(gradient, gradient)
            table.addcdiv_(gradient, moved.sqrt().add_(1e-10), value=-self._rate)
            return
        now = moved[rows] + gradient * gradient
        moved[rows] = now
        table[rows] -= self._rate * gradient / (now.sqrt() + 1e-10)

    def _there(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device, copy=True)

    @staticmethod
    def _back(table: Any) -> Floats:
        result: Floats = table.detach().to("cpu", copy=True).numpy()
        return result


def _asked(torch: Any, heads: Any, relations: Any, inverse: bool = False) -> Any:
    """`forms.questions` of ComplEx."""
    a, b = heads.chunk(2, dim=-1)
    c, d = relations.chunk(2, dim=-1)
    if inverse:
        return torch.cat([a * c + b * d, b * c - a * d], dim=-1)
    return torch.cat([a * c - b * d, a * d + b * c], dim=-1)


def _cubes(torch: Any, vectors: Any) -> Any:
    """|x|^3 of complex numbers; its gradient at 0 is 0, and no NaN."""
    a, b = vectors.chunk(2, dim=-1)
    squares = a * a + b * b
    return torch.where(squares > 0, squares, torch.ones_like(squares)) ** 1.5 * (squares > 0)
