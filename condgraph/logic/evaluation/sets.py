"""Sets of predicted answers that hold a missing answer with a promised share (split conformal prediction, Vovk 2005):
thresholds of scores, one for each structure of query, from held-out edges.
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
_AGAIN: Final = "make them again with `graph.answer_sets(...)`"


def shape_of(tree: Tree) -> str:
    """The structure of a query without its names, the same for parts in another order."""
    if isinstance(tree, Projection):
        return f"{'-' if tree.anti else ''}p({shape_of(tree.of)})"
    if isinstance(tree, (Intersection, Union)):
        return f"{type(tree).__name__[0]}({','.join(sorted(map(shape_of, tree.parts)))})"
    if isinstance(tree, Complement):
        return f"not({shape_of(tree.part)})"
    return "c" if isinstance(tree, Anchor) else type(tree).__name__


def kind_of(tree: Tree) -> str | None:
    """The name of the structure of a query; None where it has none."""
    return _kinds().get(shape_of(tree))


def _kinds() -> Mapping[str, str]:
    found = {}
    for name, (lengths, shape) in STRUCTURES.items():
        branches: list[Any] = [["e", *["r"] * length] for length in lengths]
        found[shape_of(tree_of(named(name, [*branches, "r"] if isinstance(shape, tuple) and shape[0] == "p" else branches)))] = name
    return found


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """The answers of one query: `observed` ones, and the `predicted` ones of a score of at least `threshold`, which hold a
    missing answer with a probability of at least `share`.

    `whole`: the promise is kept by every entity alone, and `predicted` has those with a score; `warnings` say why.
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
        names = ", ".join(one.entity.name for one in self.predicted[:10]) + (", ..." if len(self.predicted) > 10 else "")
        what = "any entity" if self.whole else f"one of these {len(self.predicted)}: {names}"
        return f"a missing answer is, with {100 * self.share:g} %, {what}"


@dataclass(frozen=True, slots=True)
class AnswerSets:
    """Asks queries of a graph for sets of answers that keep a promise.

    Of queries drawn as those that it was made by (BetaE's way, `sample_queries`), of one structure, and of one of the
    answers that the graph misses, each as likely: the answer is in the set with a probability of at least the share that
    was asked for, and less than 1 / (calibration queries + 1) more where scores differ. It is the mean over queries, no
    promise for each of them. `scores` are those of one missing answer of each calibration query, ascending, by structure.
    """

    graph: LogicGraph
    model: LinkModel
    scores: Mapping[str, Sequence[float]]
    options: Mapping[str, Any]
    warnings: tuple[str, ...] = ()

    def threshold(self, kind: str, share: float = 0.9) -> float:
        """The least score of a set of that share; 0 where only all entities keep the promise."""
        if not (is_number(share) and 0.0 < share < 1.0):
            raise OptionError(f"share is how often a set holds a missing answer, more than 0 and less than 1, not {share!r}")
        if kind not in self.scores:
            known = ", ".join(self.scores)
            raise UnsupportedError(
                "a set of answers", [f"queries of the structure {kind}"], hint=f"calibrated are {known}; name others with kinds="
            )
        # Rounding may not lower the place: 30 of 300, and not 29.
        at = math.floor(round((len(self.scores[kind]) + 1) * (1.0 - share), 9))
        return float(self.scores[kind][at - 1]) if at >= 1 else 0.0

    def ask(self, query: Any, *branches: Any, share: float = 0.9, timeout: float | None = None) -> AnswerSet:
        """The set of answers of a query, written as for `Graph.logic`.

        Raises `UnsupportedError` for a structure that was not calibrated, `OptionError` for a share that is none.
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
        found: LogicAnswers = logic(
            self.graph, query, branches, model=self.model, k=None, explain=False, timeout=timeout, **self.options
        )
        predicted = [one for one in found if not one.observed and one.score >= least]
        warnings = list(found.warnings)
        if least <= 0.0:
            few = math.ceil(round(1.0 / (1.0 - share), 9)) - 1
            have = len(self.scores[kind])
            why = f"{have} calibration queries are fewer than {few}" if have < few else "too many missing answers have the score 0"
            warnings.append(f"only the set of all entities keeps {100 * share:g} %: {why}")
        return AnswerSet(found.query, kind, share, least, [one for one in found if one.observed], predicted, least <= 0.0, warnings)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the scores to a JSON file, to be read with the graph and the model."""
        about = {
            "format": FORMAT, "model": fingerprint_of(self.model), "edges": _edges(self.graph).fingerprint,
            "options": dict(self.options), "warnings": list(self.warnings), "scores": dict(self.scores),
        }  # fmt: skip
        Path(path).write_text(json.dumps(about), "utf-8")
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], graph: LogicGraph, model: LinkModel | str | os.PathLike[str]) -> AnswerSets:
        """The sets of a file; raises `LinkModelError` for another file, model or graph, and where the graph has changed."""
        model = model_of(model)
        try:
            about = json.loads(Path(path).read_text("utf-8"))
            if about["format"] != FORMAT:
                raise LinkModelError(f"{path} is of another format than {FORMAT}", hint=_AGAIN)
            for what, mine in (("model", fingerprint_of(model)), ("edges", _edges(graph).fingerprint)):
                if about[what] != mine:
                    whose = "model" if what == "model" else "graph, or the graph has changed"
                    raise LinkModelError(f"the answer sets in {path} are of another {whose}", hint=_AGAIN)
            scores = {str(kind): [float(one) for one in part] for kind, part in about["scores"].items()}
            if any(part != sorted(part) or not all(0.0 <= one <= 1.0 for one in part) for part in scores.values()):
                raise ValueError("its scores are not ascending numbers from 0 to 1")
            options = {name: about["options"][name] for name in ("alpha", "epsilon", "cap")}
            return cls(graph, model, scores, options, tuple(map(str, about["warnings"])))
        except FileNotFoundError:
            raise LinkModelError(f"{path}: there is no such file", hint=_AGAIN) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise LinkModelError(f"{path} cannot be read as answer sets: {error}", hint=_AGAIN) from None


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
    drawn = sample(snapshot, held, n, kinds=kinds, seed=seed)
    rng = np.random.default_rng(seed)
    scores: dict[str, list[float]] = {}
    for number, case in enumerate(drawn.cases, 1):
        check()
        # One answer of each query, so that those of one query do not count as independent.
        answer = snapshot.identified(case.hard[int(rng.integers(len(case.hard)))])
        vector = Forward(snapshot, matrix, alpha=alpha).run(case.tree())
        scores.setdefault(case.kind, []).append(vector.one(answer))
        if on_query is not None:
            on_query(number, case.kind)
    ordered = {kind: sorted(map(float, part)) for kind, part in scores.items()}
    return AnswerSets(graph, model, ordered, {"alpha": alpha, "epsilon": epsilon, "cap": cap}, drawn.warnings)
