"""The edges of a graph together with those that a link prediction model predicts, calibrated (QTO, Eq. 3 and 4).

Rows are computed in batches for the nodes that a query reaches, and cached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check, is_number, is_whole
from condgraph.engine.errors import ModelError, OptionError, UnknownNameError, nearest
from condgraph.links.edges import Edges
from condgraph.links.model import LinkModel
from condgraph.links.store import DELTA, EPSILON, kept_of
from condgraph.logic.propagation import Adjacency, Ids, Key, Rows

#: The node numbers of a row, ascending, and their scores.
Row: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]
#: The most scores in one call of the model, and the most entries in the cache of rows.
SCORES_AT_ONCE: Final = 8_000_000
MAX_CACHED: Final = 40_000_000
#: The highest valid score: a calibrated one may be rounded to slightly more than 1.
_MAX_SCORE: Final = 1.0 + 1e-5


@runtime_checkable
class SparseModel(LinkModel, Protocol):
    """A calibrated model whose scores are mostly 0, stored as rows."""

    def rows(self, heads: Ids, relation: int, *, inverse: bool = False) -> tuple[Ids, Ids, NDArray[Any]]:
        """Return the rows of heads: offsets (heads + 1), entities ascending in each row, scores."""
        ...


def checked_bounds(epsilon: float, cap: int | None) -> None:
    """Raise `OptionError` for an invalid `epsilon` or `cap`."""
    if not (is_number(epsilon) and 0.0 <= epsilon <= 1.0):
        raise OptionError(f"epsilon is the least score of a predicted edge, at least 0 and at most 1, not {epsilon!r}")
    if cap is not None and not (is_whole(cap) and cap >= 1):
        raise OptionError(f"cap is the most predicted edges of a row, at least 1, not {cap!r}")


class Predicted:
    """A matrix of observed and predicted edges.

    `epsilon` is the lowest score of a predicted edge; 1 means none, so that answers are those of the graph alone. `cap`
    is the maximum number of predicted edges per row, the best ones. Raises `ModelError` for a model of another graph.
    """

    observed_only: Final = False

    def __init__(self, observed: Adjacency, model: LinkModel, *, epsilon: float = EPSILON, cap: int | None = None) -> None:
        checked_bounds(epsilon, cap)
        self.observed, self.model, self.epsilon, self.cap = observed, model, epsilon, cap
        self.size = observed.size
        entities = model.entities
        snapshot = observed.snapshot
        node_of_id = {ident: number for number, ident in enumerate(snapshot.texts.take(snapshot.entity_id))}
        #: The node of each entity of the model, and the entity of each node; -1 if there is none.
        self.nodes = np.fromiter((node_of_id.get(ident, -1) for ident in entities), np.int64, len(entities))
        self.places = np.full(self.size, -1, np.int64)
        in_graph = np.flatnonzero(self.nodes >= 0)
        self.places[self.nodes[in_graph]] = in_graph
        self.warnings: list[str] = []
        self._checked(len(in_graph), entities)
        self._relations = {name: number for number, name in enumerate(model.relations)}
        self._cache: dict[Key, dict[int, Row]] = {}
        self._entries = 0

    def _checked(self, known: int, entities: Sequence[str]) -> None:
        for kind, names in (("entities", entities), ("relations", self.model.relations)):
            if len(set(names)) < len(names):
                duplicate = next(name for name, count in Counter(names).items() if count > 1)
                raise ModelError(f"the {kind} of the model have {duplicate!r} twice, so that its scores are ambiguous")
        if not known:
            raise ModelError(
                f"the model is of another graph: none of its {len(entities):,} entities has an id of this one",
                hint="entities of a model are named by their ids in the graph",
            )
        learned = getattr(self.model, "edges", None)
        if isinstance(learned, Edges) and learned.fingerprint != Edges.of_snapshot(self.observed.snapshot).fingerprint:
            self.warnings.append("the rules predict by the edges of another state of the graph: learn them again")
        if known < len(entities):
            self.warnings.append(f"{len(entities) - known:,} of the {len(entities):,} entities of the model are not in the graph")
        if known < self.size:
            self.warnings.append(f"the model does not know {self.size - known:,} of the {self.size:,} nodes of the graph")

    def relation(self, name: str) -> int:
        """Return the number of a relation in the model; raises `UnknownNameError`."""
        number = self._relations.get(name)
        if number is None:
            raise UnknownNameError(
                "relation of the model", name, candidates=nearest(name, self._relations), hint="train it on a graph that has it"
            )
        return number

    def whole(self, key: Key) -> Rows | None:
        """Return None: only the rows that a query reaches are computed."""
        return None

    def every_row(self, key: Key, least: float = 0.0) -> Rows:
        """Return the rows of all nodes. This asks the model for each of them."""
        return self.rows(key, np.arange(self.size), least)

    def rows(self, key: Key, heads: Ids, least: float = 0.0) -> Rows:
        """Return the rows of some heads: the observed edges alone if `least` is above every predicted score."""
        number = self.relation(key[0])
        if max(least, self.epsilon) > 1.0 - DELTA:
            return self.observed.rows(key, heads)
        cached = self._cache.setdefault(key, {})
        missing = [head for head in heads.tolist() if head not in cached]
        computed: dict[int, Row] = {}
        at_once = max(1, SCORES_AT_ONCE // max(1, len(self.nodes)))
        for begin in range(0, len(missing), at_once):
            check()
            self._predict(key, number, missing[begin : begin + at_once], computed)
        rows = [cached[head] if head in cached else computed[head] for head in heads.tolist()]
        self._store(cached, computed)
        counts = np.fromiter((len(ids) for ids, _ in rows), np.int64, len(rows))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        if not rows:
            return Rows(heads, offsets, np.empty(0, np.int32), np.empty(0, np.float32))
        return Rows(heads, offsets, np.concatenate([ids for ids, _ in rows]), np.concatenate([values for _, values in rows]))

    def _store(
        self,
        kept: dict[int, Row],
        found: dict[int, Row],
    ) -> None:
        self._entries += sum(len(ids) + 16 for ids, _ in found.values())
        if self._entries > MAX_CACHED:
            for rows in self._cache.values():
                rows.clear()
            self._entries = sum(len(ids) + 16 for ids, _ in found.values())
        if self._entries <= MAX_CACHED:
            kept.update(found)

    def _predict(self, key: Key, number: int, heads: list[int], found: dict[int, Row]) -> None:
        """Compute the rows of some heads with the model."""
        numbers = np.array(heads, np.int64)
        places = self.places[numbers]
        edges = self.observed.rows(key, numbers[np.argsort(numbers)])
        observed_tails = {head: edges.ids[edges.offsets[i] : edges.offsets[i + 1]] for i, head in enumerate(edges.heads.tolist())}
        in_model = np.flatnonzero(places >= 0)
        counts = np.array(
            [len(observed_tails[head]) if head in observed_tails else 0 for head in numbers[in_model].tolist()], np.int64
        )
        rows = dict(zip(in_model.tolist(), self._scored(places[in_model], number, key, counts), strict=True))
        no_tails = np.empty(0, np.int32)
        for i, head in enumerate(heads):
            tails = observed_tails.get(head, no_tails)
            row = rows.get(i)
            if row is None:
                found[head] = tails.astype(np.int32), np.ones(len(tails), np.float32)
            else:
                found[head] = self._row(*row, tails)

    def _scored(self, places: Ids, number: int, key: Key, tails: Ids) -> Iterator[tuple[Ids | None, NDArray[Any]]]:
        """Yield the calibrated scores of each head in `places`, as entities of the model (None: all of them) and their
        scores. `tails` is the number of observed tails of each head, which the calibration needs.
        """
        if not len(places):
            return
        if isinstance(self.model, SparseModel):
            offsets, ids, values = self.model.rows(places, number, inverse=key[1])
            values = self._numbers(values, key[0])
            for begin, end in pairwise(offsets.tolist()):
                yield ids[begin:end], values[begin:end]
            return
        scores = self._numbers(self.model.score_tails(places, number, inverse=key[1]), key[0])
        if scores.shape != (len(places), len(self.nodes)):
            raise ModelError(f"the model gave scores of shape {scores.shape}, not {(len(places), len(self.nodes))}")
        if self.model.calibrated:
            for row in scores:
                yield None, row
            return
        rows, entities, kept_scores = kept_of(np.asarray(scores, np.float32), tails, self.epsilon)
        for begin, end in pairwise(np.searchsorted(rows, np.arange(len(places) + 1)).tolist()):
            yield entities[begin:end], kept_scores[begin:end]

    def _numbers(self, scores: Any, relation: str) -> NDArray[Any]:
        """Return scores as an array. Raises `ModelError` for other than finite numbers, or a calibrated score outside
        [0, 1].
        """
        array = np.asarray(scores)
        if array.dtype.kind not in "fiub":
            raise ModelError(f"the model gave scores for {relation!r} that are not numbers, but {array.dtype}")
        if not np.isfinite(array).all():
            raise ModelError(f"the model gave a score for {relation!r} that is not a number", hint="train it again")
        if self.model.calibrated and array.size and not (array.min() >= 0.0 and array.max() <= _MAX_SCORE):
            outside = float(array.min() if array.min() < 0.0 else array.max())
            raise ModelError(
                f"the model is marked as calibrated, and gave {relation!r} a score of {outside:.6g}, which is not in [0, 1]",
                hint="scores of a model with `calibrated = False` are turned into such",
            )
        return array

    def _row(self, entities: Ids | None, scores: NDArray[Any], tails: NDArray[np.int32]) -> Row:
        """Return one row: predicted edges above the threshold, and the edges of the graph (Eq. 4)."""
        calibrated = scores.astype(np.float64)
        candidates = self.nodes if entities is None else self.nodes[entities]
        places = np.flatnonzero((calibrated >= self.epsilon) & (calibrated > 0.0) & (candidates >= 0))
        nodes, values = candidates[places], np.minimum(calibrated[places], 1.0 - DELTA)
        new = ~np.isin(nodes, tails)
        nodes, values = nodes[new], values[new]
        if self.cap is not None and len(nodes) > self.cap:
            best = np.lexsort((nodes, -values))[: self.cap]
            nodes, values = nodes[best], values[best]
        ids = np.concatenate([tails.astype(np.int64), nodes])
        order = np.argsort(ids)
        all_values = np.concatenate([np.ones(len(tails)), values])
        return ids[order].astype(np.int32), all_values[order].astype(np.float32)
