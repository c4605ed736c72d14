"""Adapter for models trained by PyKEEN. The caller imports PyKEEN."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import LinkModelError, requiring
from condgraph.links.embeddings import Floats


class PyKeenModel:
    """A model of PyKEEN (`pipeline(...).model`) with the factory of its training triples (`pipeline(...).training`), as
    a `LinkModel`. Scores are raw, and computed on the device of the model.

    Raises `LinkModelError` for other objects, `MissingExtraError` if torch is not installed.
    """

    calibrated = False

    def __init__(self, model: Any, triples: Any) -> None:
        with requiring("torch", "pykeen"):
            import torch
        for item, names in ((model, ("score_t", "score_h")), (triples, ("entity_to_id", "relation_to_id"))):
            missing = [name for name in names if not hasattr(item, name)]
            if missing:
                raise LinkModelError(
                    f"a {type(item).__name__} is not PyKEEN's: it has no {missing[0]}",
                    hint="PyKeenModel(result.model, result.training)",
                )
        self._torch, self._model = torch, model
        self.entities = tuple(sorted(triples.entity_to_id, key=triples.entity_to_id.__getitem__))
        self.relations = tuple(sorted(triples.relation_to_id, key=triples.relation_to_id.__getitem__))
        if [triples.entity_to_id[entity] for entity in self.entities] != list(range(len(self.entities))):
            raise LinkModelError("the entities of the triples are not numbered from 0 without gaps")
        model.eval()

    def score_tails(self, heads: NDArray[np.int64], relation: int, *, inverse: bool = False) -> Floats:
        """See `LinkModel.score_tails`."""
        torch = self._torch
        nodes = torch.as_tensor(heads, dtype=torch.long, device=self._model.device)
        relations = torch.full_like(nodes, relation)
        with torch.inference_mode():
            if inverse:
                result = self._model.score_h(torch.stack([relations, nodes], dim=1))
            else:
                result = self._model.score_t(torch.stack([nodes, relations], dim=1))
        scores: Floats = result.float().cpu().numpy()
        return scores
