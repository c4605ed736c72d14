"""Sets of predicted answers that contain a missing answer with a guaranteed share (split conformal prediction, Vovk
2005), by a threshold of scores for each structure of query, from held-out edges.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.bounds import check, is_number
from condgraph.engine.errors import LinkModelError, OptionError, UnsupportedError
from condgraph.languages.logic.convert import tree_of
from condgraph.languages.logic.structures import STRUCTURES, named
from condgraph.languages.logic.tree import Anchor, Complement, Intersection, Projection, Tree, Union
from condgraph.links.edges import Edges
from condgraph.links.embeddings import model_of
from condgraph.links.store import fingerprint_of
from condgraph.logic.answers import LogicAnswer, LogicAnswers
from condgraph.logic.ask import checked_alpha, logic, matrix_of, parsed
from condgraph.logic.evaluation.sampler import sample
from condgraph.logic.propagation import Forward

if TYPE_CHECKING:
    from condgraph.links.model import LinkModel
    from condgraph.logic.ask import LogicGraph

FORMAT: Final = 1
_HINT: Final = "make them again with `graph.answer_sets(...)`"


def shape_of(tree: Tree) -> str:
    """Return the structure of a query without its names, independent of the order of parts."""
    if isinstance(tree, Projection):
        return f"{'-' if tree.anti else ''}p({shape_of(tree.of)})"
    if isinstance(tree, (Intersection, Union)):
        return f"{type(tree).__name__[0]}({','.join(sorted(map(shape_of, tree.parts)))})"
    if isinstance(tree, Complement):
        return f"not({shape_of(tree.part)})"
    return "c" if isinstance(tree, Anchor) else type(tree).__name__


def kind_of(tree: Tree) -> str | None:
    """Return the name of a query's structure; None if it has none."""
    return _kinds().get(shape_of(tree))


def _kinds() -> Mapping[str, str]:
    kinds = {}
    for name, (lengths, shape) in STRUCTURES.items():
        branches: list[Any] = [["e", *["r"] * length] for length in lengths]
        kinds[shape_of(tree_of(named(name, [*branches, "r"] if isinstance(shape, tuple) and shape[0] == "p" else branches)))] = name
    return kinds


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """The answers of one query: `observed` ones, and `predicted` ones with a score of at least `threshold`, which
    contain a missing answer with a probability of at least `share`.

    `whole`: only the set of all entities keeps this guarantee, and `predicted` has those with a score above 0;
    `warnings` explain why.
    """

    query: str
    kind: str
    share: float
    threshold: float
    observed: list[LogicAnswer]
    predicted: list[LogicAnswer]
    whole: bool = False
    warnings: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.predicted)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        names = ", ".join(answer.entity.name for answer in self.predicted[:10]) + (", ..." if len(self.predicted) > 10 else "")
        members = "any entity" if self.whole else f"one of these {len(self.predicted)}: {names}"
        return f"a missing answer is, with {100 * self.share:g} %, {members}"


@dataclass(frozen=True, slots=True)
class AnswerSets:
    """Answers queries with sets that keep a guarantee.

    For a query drawn like the calibration queries (BetaE's way, `sample_queries`), of the same structure, and a random
    one of its missing answers, the set contains this answer with a probability of at least the requested share, and
    less than 1 / (calibration queries + 1) more if scores differ. This is a mean over queries, not a guarantee for each
    of them. `scores` has, by structure, the score of one missing answer of each calibration query, ascending.
    """

    graph: LogicGraph
    model: LinkModel
    scores: Mapping[str, Sequence[float]]
    options: Mapping[str, Any]
    warnings: tuple[str, ...] = ()

    def threshold(self, kind: str, share: float = 0.9) -> float:
        """Return the lowest score in sets with a share; 0 if only the set of all entities keeps the guarantee."""
        if not (is_number(share) and 0.0 < share < 1.0):
            raise OptionError(f"share is how often a set holds a missing answer, more than 0 and less than 1, not {share!r}")
        if kind not in self.scores:
            calibrated = ", ".join(self.scores)
            raise UnsupportedError(
                "a set of answers",
                [f"queries of the structure {kind}"],
                hint=f"calibrated are {calibrated}; name others with kinds=",
            )
        # Round first: float error must not turn the 30th of 300 scores into the 29th.
        at = math.floor(round((len(self.scores[kind]) + 1) * (1.0 - share), 9))
        return float(self.scores[kind][at - 1]) if at >= 1 else 0.0

    def ask(self, query: Any, *branches: Any, share: float = 0.9, timeout: float | None = None) -> AnswerSet:
        """Return the answer set of a query, which is written as for `Graph.logic`.

        Raises `UnsupportedError` for a structure that was not calibrated, `OptionError` for an invalid share.
        """
        tree = tree_of(parsed(query, branches))
        kind = kind_of(tree)
        if kind is None:
            raise UnsupportedError(
                "a set of answers",
                ["a query of another structure than those that have a name"],
                hint=f"they are {', '.join(STRUCTURES)}",
            )
        least = self.threshold(kind, share)
        answers: LogicAnswers = logic(
            self.graph, query, branches, model=self.model, k=None, explain=False, timeout=timeout, **self.options
        )
        predicted = [answer for answer in answers if not answer.observed and answer.score >= least]
        warnings = list(answers.warnings)
        if least <= 0.0:
            required = math.ceil(round(1.0 / (1.0 - share), 9)) - 1
            available = len(self.scores[kind])
            reason = (
                f"{available} calibration queries are fewer than {required}"
                if available < required
                else "too many missing answers have the score 0"
            )
            warnings.append(f"only the set of all entities keeps {100 * share:g} %: {reason}")
        return AnswerSet(
            answers.query, kind, share, least, [answer for answer in answers if answer.observed], predicted, least <= 0.0, warnings
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the scores to a JSON file. To read them, `load` needs the graph and the model."""
        about = {
            "format": FORMAT, "model": fingerprint_of(self.model), "edges": _edges(self.graph).fingerprint,
            "options": dict(self.options), "warnings": list(self.warnings), "scores": dict(self.scores),
        }  # fmt: skip
        Path(path).write_text(json.dumps(about), "utf-8")
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], graph: LogicGraph, model: LinkModel | str | os.PathLike[str]) -> AnswerSets:
        """Read answer sets; raises `LinkModelError` for a file of another kind, and for another model or graph, or a
        changed one.
        """
        model = model_of(model)
        try:
            about = json.loads(Path(path).read_text("utf-8"))
            if about["format"] != FORMAT:
                raise LinkModelError(f"{path} is of another format than {FORMAT}", hint=_HINT)
            for part, fingerprint in (("model", fingerprint_of(model)), ("edges", _edges(graph).fingerprint)):
                if about[part] != fingerprint:
                    origin = "model" if part == "model" else "graph, or the graph has changed"
                    raise LinkModelError(f"the answer sets in {path} are of another {origin}", hint=_HINT)
            scores = {str(kind): [float(score) for score in kind_scores] for kind, kind_scores in about["scores"].items()}
            if any(
                kind_scores != sorted(kind_scores) or not all(0.0 <= score <= 1.0 for score in kind_scores)
                for kind_scores in scores.values()
            ):
                raise ValueError("its scores are not ascending numbers from 0 to 1")
            options = {name: about["options"][name] for name in ("alpha", "epsilon", "cap")}
            return cls(graph, model, scores, options, tuple(map(str, about["warnings"])))
        except FileNotFoundError:
            raise LinkModelError(f"{path}: there is no such file", hint=_HINT) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise LinkModelError(f"{path} cannot be read as answer sets: {error}", hint=_HINT) from None


def _edges(graph: LogicGraph) -> Edges:
    return Edges.of_snapshot(graph.snapshot().current)


def answer_sets(
    graph: LogicGraph,
    held: Iterable[tuple[str, str, str]],
    model: LinkModel,
    n: int,
    *,
    kinds: Sequence[str] | None,
    seed: int,
    alpha: float,
    epsilon: float | None,
    cap: int | None,
    on_query: Callable[[int, str], None] | None = None,
) -> AnswerSets:
    """See `Graph.answer_sets`."""
    checked_alpha(alpha)
    snapshot = graph.snapshot().current
    matrix = matrix_of(snapshot, model, epsilon, cap)
    sampled = sample(snapshot, held, n, kinds=kinds, seed=seed)
    rng = np.random.default_rng(seed)
    scores: dict[str, list[float]] = {}
    for number, case in enumerate(sampled.cases, 1):
        check()
        # Only one answer of each query: several answers of one query would not be independent.
        answer = snapshot.identified(case.hard[int(rng.integers(len(case.hard)))])
        vector = Forward(snapshot, matrix, alpha=alpha).run(case.tree())
        scores.setdefault(case.kind, []).append(vector.one(answer))
        if on_query is not None:
            on_query(number, case.kind)
    ordered = {kind: sorted(map(float, kind_scores)) for kind, kind_scores in scores.items()}
    return AnswerSets(graph, model, ordered, {"alpha": alpha, "epsilon": epsilon, "cap": cap}, sampled.warnings)
