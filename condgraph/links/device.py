"""Scores of a model of links on a device of PyTorch.

torch is imported when it is first needed; it is no part of the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import LinkModelError, MissingExtraError
from condgraph.links.forms import Floats

_EXTRA: Final = "torch"


def torch_device(name: str) -> Any:
    """torch, and the device of a name: `cpu`, `cuda`, `cuda:1`, `mps`.

    Raises `MissingExtraError` where torch is not installed, `LinkModelError` for a device that it
    does not have.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", _EXTRA) from None
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, ValueError) as error:
        there = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
        if torch.backends.mps.is_available():
            there.append("mps")
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LinkModelError(
            f"torch cannot work on the device {name!r}: {reason}", candidates=there, hint=f"it has {', '.join(there)}"
        ) from None
    return torch, device


class Products(Protocol):
    """A model whose scores are products: of the vectors of questions, and those of all entities."""

    @property
    def entities(self) -> Sequence[str]:
        """The ids of the entities."""

    @property
    def relations(self) -> Sequence[str]:
        """The names of the predicates."""

    @property
    def fingerprint(self) -> str:
        """A hash of all that its scores depend on."""

    def asked(self, heads: NDArray[np.int64], relation: int, inverse: bool) -> Floats:
        """The vectors of questions, shape (heads, dimension)."""

    def targets(self, inverse: bool) -> Floats:
        """The vectors that they are multiplied with, shape (entities, dimension)."""


class DeviceModel:
    """A model whose scores are worked out on a device of torch (`LinkModel`)."""

    calibrated = False

    def __init__(self, model: Products, device: str) -> None:
        self._torch, self._device = torch_device(device)
        self._model = model
        self.entities, self.relations, self.fingerprint = model.entities, model.relations, model.fingerprint
        self._kept: dict[bool, Any] = {}

    def score_tails(self, heads: NDArray[np.int64], relation: int, *, inverse: bool = False) -> Floats:
        """See `LinkModel.score_tails`."""
        if inverse not in self._kept:
            same = inverse and self._model.targets(True) is self._model.targets(False)
            self._kept[inverse] = self._kept[False] if same and False in self._kept else self._there(self._model.targets(inverse))
        found: Floats = (self._there(self._model.asked(heads, relation, inverse)) @ self._kept[inverse].T).cpu().numpy()
        return found

    def _there(self, array: Floats) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device)
