"""A logical query, from its text to its answers: on the graph alone, or with a model of links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.engine.bounds import is_number, is_whole, within
from condgraph.engine.errors import OptionError, UnsupportedError
from condgraph.engine.pieces import watched
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.languages.logic.convert import checked_safe, tree_of
from condgraph.languages.logic.formula import Query
from condgraph.languages.logic.lower import query_of
from condgraph.languages.logic.structures import STRUCTURES, named
from condgraph.languages.logic.tree import Tree, bounded
from condgraph.languages.registry import answer as ask
from condgraph.logic.answers import LogicAnswer, LogicAnswers
from condgraph.logic.derivation import Backward, Derivation
from condgraph.logic.forward import Forward, checked_names
from condgraph.logic.matrix import Matrix, adjacency
from condgraph.logic.predicted import EPSILON, Predicted, checked_bounds
from condgraph.logic.store_edges import StoredScore, edges_of
from condgraph.logic.stored import StoredLogicAnswer, Witness
from condgraph.logic.top import Ranked, ranked
from condgraph.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from condgraph.logic.asked import Asked

_KEPT = "logic.predicted"


def parsed(query: Any, branches: Sequence[Any]) -> Query:
    """A query as text, as BetaE's tuples, or as the name of a structure with its branches."""
    if branches:
        if not isinstance(query, str):
            raise OptionError("branches are given with the name of a structure", hint='graph.logic("2i", ["A", "r"], ["B", "s"])')
        return named(query, branches)
    if isinstance(query, str) and query in STRUCTURES:
        return named(query, branches)
    return query_of(query)


def matrix_of(snapshot: Snapshot, model: Any, epsilon: float | None, cap: int | None) -> Matrix:
    """The matrix of a model over a snapshot; kept with it as long as the model and the options are
    the same.
    """
    observed = adjacency(snapshot)
    if model is None:
        return observed
    if hasattr(model, "every_row"):
        found: Matrix = model
        if found.size != snapshot.entities:
            raise OptionError(f"these rows are of a graph of {found.size:,} nodes, not {snapshot.entities:,}")
        return found
    if isinstance(model, (str, PathLike)):
        from condgraph.links.embeddings import model_of  # type: ignore[import-not-found,unused-ignore]

        model = model_of(model)
    if not hasattr(model, "score_tails"):
        raise OptionError(f"a model of links has `score_tails`; {type(model).__name__} has none")
    wanted = EPSILON if epsilon is None else epsilon
    checked_bounds(wanted, cap)
    kept = snapshot.schema.kept.get(_KEPT)
    if kept is not None and kept.model is model and (kept.epsilon, kept.cap) == (wanted, cap):
        return kept  # type: ignore[no-any-return]
    made = snapshot.schema.kept[_KEPT] = Predicted(observed, model, epsilon=wanted, cap=cap)
    return made


def _checked(k: int | None, alpha: float) -> None:
    """Raise `OptionError` for bounds that make no sense."""
    if k is not None and not (is_whole(k) and k >= 1):
        raise OptionError(f"k is the most answers, at least 1, not {k!r}")
    checked_alpha(alpha)


def checked_alpha(alpha: float) -> None:
    """Raise `OptionError` for a negation scale that is none."""
    if not (is_number(alpha) and 0.0 < alpha < float("inf")):
        raise OptionError(f"alpha scales what is negated, and is a number more than 0, not {alpha!r}")


def logic(
    graph: Asked,
    query: Any,
    branches: Sequence[Any] = (),
    *,
    model: Any = None,
    k: int | None = 10,
    alpha: float = 1.0,
    epsilon: float | None = None,
    cap: int | None = None,
    explain: bool = True,
    timeout: float | None = None,
) -> LogicAnswers:
    """The answers of a query; see `Graph.logic`."""
    _checked(k, alpha)
    read = parsed(query, branches)
    tree = tree_of(read)
    checked_safe(tree, bound=k is not None)
    warnings: list[str] = []
    if model is None and (epsilon is not None or cap is not None):
        warnings.append("epsilon= and cap= are of a model of links, and do nothing without one")
    if not bounded(tree):
        warnings.append("the query says only what its answers are not: they are the first of almost all nodes")
    if model is None and not isinstance(graph._store_of(None), SnapshotStore):
        try:
            return _stored(graph, read, tree, k, warnings).keep_to(timeout)
        except UnsupportedError:
            warnings.append("the graph was read whole: its store cannot be asked for an `exists` that is joined by a negated atom")
    snapshot = graph.snapshot().current
    checked_names(tree, snapshot)
    matrix = matrix_of(snapshot, model, epsilon, cap)
    warnings.extend(getattr(matrix, "warnings", ()))
    found = ranked(tree, snapshot, matrix, k=k, alpha=alpha)
    if not len(found.ids):
        warnings.extend(_nothing(snapshot, read, model, bound=k is not None))
    answers = _answers(found, tree, snapshot, read, timeout)
    given = LogicAnswers(str(read), answers, found.more, warnings, None, _counting(tree, snapshot, matrix, alpha))
    if explain:
        for answer in answers:
            _ = answer.derivation
    return given.keep_to(timeout)


def _nothing(snapshot: Snapshot, read: Query, model: Any, *, bound: bool) -> list[str]:
    """Why there is no answer: of the graph alone, as any program of it says."""
    if model is not None:
        return ["the answer is empty: neither the graph nor the model gives any entity a score"]
    try:
        return ask(SnapshotStore(snapshot), read, "logic", None, {"bound": bound}).warnings
    except UnsupportedError:
        return ["the answer is empty"]


def _answers(found: Ranked, tree: Tree, snapshot: Snapshot, read: Query, timeout: float | None) -> list[LogicAnswer]:
    backward = Backward(found.forward)

    def why(node: int) -> Callable[[], Derivation]:
        def derive() -> Derivation:
            with within(timeout):
                return backward.derive(tree, node, read.answer.name)

        return derive

    return [
        LogicAnswer(snapshot, node, score, own, why(node))
        for node, score, own in watched(zip(found.ids.tolist(), found.scores.tolist(), found.observed.tolist(), strict=True))
    ]


def _counting(tree: Tree, snapshot: Snapshot, matrix: Matrix, alpha: float) -> Callable[[float], int]:
    def count(threshold: float) -> int:
        if not (is_number(threshold) and 0.0 <= threshold < 1.0):
            raise OptionError(f"a threshold of scores is at least 0 and less than 1, not {threshold!r}")
        # Scores below the threshold lead to none above it.
        found = Forward(snapshot, matrix, alpha=alpha, least=threshold).run(tree)
        others = snapshot.entities - len(found.ids) if found.default > threshold else 0
        return int(np.count_nonzero(found.values > threshold)) + others

    return count


def _stored(graph: Asked, read: Query, tree: Tree, k: int | None, warnings: list[str]) -> LogicAnswers:
    """The answers of a store by one query of its own; explained on the statements that they rest on."""
    answer = ask(graph._store_of(None), read, "logic", None, {"bound": k is not None})
    every = answer.entities
    shown = every if k is None else every[:k]

    def derived() -> tuple[Snapshot, Backward]:
        snapshot = answer.evidence.trail.run.snapshot
        forward = Forward(snapshot, adjacency(snapshot))
        forward.run(tree)
        return snapshot, Backward(forward)

    witness = Witness(derived)
    answers: list[LogicAnswer] = [StoredLogicAnswer(entity, witness, tree, read.answer.name) for entity in shown]
    return LogicAnswers(str(read), answers, len(shown) < len(every), [*warnings, *answer.warnings], answer, lambda _: len(every))


@dataclass(frozen=True, slots=True)
class StoredScores:
    """The answers of a store in order, and the text of the query that gave them."""

    text: str
    answers: list[StoredScore]
    more: bool


def stored_scores(store: Any, graph: str, query: Any, branches: Sequence[Any], k: int | None, alpha: float) -> StoredScores:
    """See `Graph.logic_stored`."""
    _checked(k, alpha)
    tree = tree_of(parsed(query, branches))
    checked_safe(tree)
    text, found = edges_of(store, graph).ask(tree, alpha)
    found.sort(key=lambda one: (not one.observed, -one.score, one.entity.name, one.entity.id))
    return StoredScores(text, found if k is None else found[:k], k is not None and len(found) > k)
