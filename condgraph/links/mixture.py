"""A link prediction model combined with rules: the weighted geometric mean of their scores, with a weight for each
relation and direction that is chosen on held-out edges.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check, is_number
from condgraph.engine.errors import LinkModelError, OptionError
from condgraph.links.edges import Edges, Ints
from condgraph.links.embeddings import Floats, check_scores, load_arrays, rows_of, save_arrays
from condgraph.links.model import LinkModel
from condgraph.links.ranks import rank_among
from condgraph.links.rule_model import Rule, Rules
from condgraph.links.store import calibrated, fingerprint_of

FORMAT: Final = 1
#: The candidate weights of the rules.
WEIGHTS: Final = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0)
#: The lowest scores of the model and of the rules in the mean, and the lowest score in `Mixture.rows`.
_MIN_MODEL: Final = 1e-7
_MIN_RULES: Final = 1e-3
_MIN_SCORE: Final = 1e-7
#: The most held-out questions of a relation and direction, and the weight of the mean of all relations in the choice for each,
#: as a number of questions.
_QUESTIONS: Final = 40
_COMMON: Final = 5
_HINT: Final = "mix them again with `graph.mix_links(...)`"


class Mixture:
    """A model and rules over the edges of a graph (`LinkModel`, calibrated). `weights` are those of the rules, shape (2
    * relations,): each relation forward, then its inverse.
    """

    calibrated = True

    def __init__(self, model: LinkModel, rules: Rules, weights: NDArray[np.float64], warnings: list[str] | None = None) -> None:
        self.model, self.rules, self.weights = model, rules, weights
        self.entities, self.relations = rules.entities, rules.relations
        self.edges = rules.edges
        self.warnings = [*(warnings or ()), *getattr(model, "warnings", ()), *rules.warnings]

    @property
    def fingerprint(self) -> str:
        """A hash of the model, the rules and the weights."""
        weights = "".join(str(WEIGHTS.index(weight)) for weight in self.weights.tolist())
        return f"{fingerprint_of(self.model)}-{self.rules.fingerprint}-{weights}"

    def score_tails(self, heads: NDArray[np.int64], relation: int, *, inverse: bool = False) -> Floats:
        """See `LinkModel.score_tails`."""
        weight = float(self.weights[2 * relation + inverse])
        heads = np.asarray(heads, np.int64)
        model_scores = None if weight == 1.0 else _model_scores(self.model, self.rules.edges, heads, relation, inverse)
        rule_scores = None if weight == 0.0 else self.rules.score_tails(heads, relation, inverse=inverse)
        return _mixed(model_scores, rule_scores, weight)

    def rows(self, heads: Ints, relation: int, *, inverse: bool = False) -> tuple[Ints, Ints, Floats]:
        """Return the rows of heads: offsets (heads + 1), entities ascending in each row, scores."""
        counts, ids, values = [np.zeros(1, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.float32)]
        at_once = rows_of(max(len(heads), 1), len(self.entities))
        for begin in range(0, len(heads), at_once):
            check()
            scores = self.score_tails(heads[begin : begin + at_once], relation, inverse=inverse)
            row, entity = np.nonzero(scores >= _MIN_SCORE)
            counts.append(np.bincount(row, minlength=len(scores)))
            ids.append(entity)
            values.append(scores[row, entity])
        return np.cumsum(np.concatenate(counts)), np.concatenate(ids), np.concatenate(values)

    def explain(self, subject: str, relation: str, object_: str, most: int = 5) -> list[Rule]:
        """Return at most `most` rules that predict a link, best first; none for a link that only the model predicts."""
        return self.rules.explain(subject, relation, object_, most)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the weights to a `.npz` file, completely or not at all. To read them, `load` needs the model and the
        rules.
        """
        about = {"format": FORMAT, "model": fingerprint_of(self.model), "rules": self.rules.fingerprint, "warnings": self.warnings}
        save_arrays(Path(path), {"mixture": np.frombuffer(json.dumps(about).encode(), np.uint8), "weights": self.weights})
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: LinkModel, rules: Rules) -> Mixture:
        """Read a mixture; raises `LinkModelError` for a file of another kind, another model or other rules."""
        place = os.fspath(path)
        arrays = load_arrays(place, _HINT)
        try:
            about = json.loads(arrays["mixture"].tobytes())
            if about["format"] != FORMAT:
                raise LinkModelError(f"{place} is of another format than {FORMAT}", hint=_HINT)
            for part, fingerprint in (("model", fingerprint_of(model)), ("rules", rules.fingerprint)):
                if about[part] != fingerprint:
                    raise LinkModelError(f"the mixture in {place} is of another {part} than this", hint=_HINT)
            weights = arrays["weights"]
            if weights.shape != (2 * len(rules.relations),) or not np.isin(weights, WEIGHTS).all():
                raise ValueError(f"weights is not one of {WEIGHTS} for each relation and direction")
            mixture = cls(model, rules, weights)
            mixture.warnings = [str(text) for text in about["warnings"]]
            return mixture
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            raise LinkModelError(f"{place} cannot be read as a mixture: {error}", hint=_HINT) from None


def _model_scores(model: LinkModel, edges: Edges, heads: Ints, relation: int, inverse: bool) -> NDArray[np.float64]:
    scores = np.asarray(model.score_tails(heads, relation, inverse=inverse))
    check_scores(scores, model, relation)
    if model.calibrated:
        return scores.astype(np.float64)
    return calibrated(scores, np.diff(edges.ends(inverse).of(heads, relation)[0]))


def _mixed(known: NDArray[np.float64] | None, ruled: Floats | None, weight: float) -> Floats:
    if ruled is None:
        assert known is not None
        return known.astype(np.float32)
    if known is None:
        return ruled
    model_scores, rule_scores = np.maximum(known, _MIN_MODEL), np.maximum(ruled.astype(np.float64), _MIN_RULES)
    logs = (1 - weight) * np.log(model_scores) + weight * np.log(rule_scores)
    mean: Floats = np.exp(logs).astype(np.float32)
    return mean


def mix(edges: Edges, model: LinkModel, rules: Rules, valid: Edges, *, seconds: float = 60.0, seed: int = 0) -> Mixture:
    """Choose the weight of the rules for each relation and direction: the one with the best filtered reciprocal ranks
    of held-out edges, which neither was learned from. With few held-out edges of its own, a relation follows the mean
    of all.

    `warnings` of the result report what the budget, `seconds` of processor time, left out. Raises `LinkModelError` for
    a model of another graph or of another state of it, and without held-out edges.
    """
    if not (is_number(seconds) and 0 < seconds < float("inf")):
        raise OptionError(f"seconds is a number more than 0, not {seconds!r}")
    if rules.edges.fingerprint != edges.fingerprint:
        raise LinkModelError("the rules are of another graph, or the graph has changed", hint="learn them again")
    if list(model.entities) != list(edges.entities) or list(model.relations) != list(edges.relations):
        raise LinkModelError("the model is of another graph, or the graph has changed", hint="train it on the graph as it is now")
    if not len(valid.triples):
        raise LinkModelError("there are no held-out edges to choose weights by")
    until = time.process_time() + seconds
    rng = np.random.default_rng(seed)
    n = max(len(edges.entities), 1)
    sides = [(valid.ends(inverse), *np.divmod(valid.ends(inverse).keys, n)) for inverse in (False, True)]
    counts = np.stack([np.bincount(relation, minlength=len(edges.relations)) for _, relation, _ in sides], axis=1).ravel()
    totals = np.zeros((len(counts), len(WEIGHTS)))
    ranked = np.zeros(len(counts), np.int64)
    nonempty = [key for key in np.argsort(-counts, kind="stable").tolist() if counts[key]]
    for key in nonempty:
        if ranked.any() and time.process_time() >= until:
            break
        relation, inverse = divmod(key, 2)
        ends, relation_of_group, node = sides[inverse]
        groups = np.flatnonzero(relation_of_group == relation)
        if len(groups) > _QUESTIONS:
            groups = np.sort(rng.choice(groups, _QUESTIONS, replace=False))
        for begin in range(0, len(groups), at_once := rows_of(len(groups), n)):
            check()
            batch = groups[begin : begin + at_once]
            model_scores = _model_scores(model, edges, node[batch], relation, bool(inverse))
            rule_scores = rules.score_tails(node[batch], relation, inverse=bool(inverse))
            offsets, items = edges.ends(bool(inverse)).of(node[batch], relation)
            for row, group in enumerate(batch.tolist()):
                tails = ends.items[ends.offsets[group] : ends.offsets[group + 1]]
                known_tails = np.concatenate([tails, items[offsets[row] : offsets[row + 1]]])
                for at, weight in enumerate(WEIGHTS):
                    scores = _mixed(
                        None if weight == 1.0 else model_scores[row], None if weight == 0.0 else rule_scores[row], weight
                    )
                    totals[key, at] += float((1 / rank_among(scores, tails, known_tails)).sum())
            ranked[key] += int((ends.offsets[batch + 1] - ends.offsets[batch]).sum())
    warnings = []
    if (chosen := int((ranked > 0).sum())) < len(nonempty):
        text = (
            f"the budget of {seconds:g} s allowed the weights of {chosen} of {len(nonempty)} relations and directions to be chosen"
        )
        warnings.append(f"{text}; the others have that which is best for these together")
    common = totals.sum(axis=0) / ranked.sum()
    weights = np.array(WEIGHTS)[np.argmax(totals + _COMMON * common, axis=1)]
    return Mixture(model, rules, weights, warnings)
