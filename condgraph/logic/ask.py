"""Logical queries, from text to answers: on the graph alone, or with a link prediction model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import is_number, is_whole, watched, within
from condgraph.engine.errors import OptionError, UnsupportedError
from condgraph.engine.execute.validity import cut
from condgraph.engine.facts import Entity
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import QueriedGraph
from condgraph.languages.logic.convert import checked_safe, tree_of
from condgraph.languages.logic.formula import Query
from condgraph.languages.logic.lower import as_written, query_of
from condgraph.languages.logic.structures import STRUCTURES, named
from condgraph.languages.logic.tree import OfType, Tree, bounded, negates, walk
from condgraph.languages.registry import answer as ask
from condgraph.links.store import EPSILON
from condgraph.logic.answers import LogicAnswer, LogicAnswers
from condgraph.logic.predicted import Predicted, checked_bounds
from condgraph.logic.propagation import Backward, Derivation, Forward, Ids, Matrix, Scores, Vector, adjacency, checked_names
from condgraph.logic.store_edges import StoredScore, edges_of
from condgraph.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from condgraph.engine.period import Period


# -- graph -------------------------------------------------------------------------------------------
# What a logical query needs from a graph.


class LogicGraph(QueriedGraph, Protocol):
    """A graph, in process or on a server."""

    name: str
    _storage: Any

    @property
    def _directory(self) -> Path | None:
        """The folder of the graph, or None."""

    @property
    def current(self) -> Snapshot:
        """The open snapshot."""

    def snapshot(self) -> LogicGraph:
        """Return the present state of the graph, in process."""


# -- stored ------------------------------------------------------------------------------------------
# Answers that a store computed with one Cypher or SPARQL query. Their evidence is fetched on first use.


class EvidenceGraph:
    """The statements that a store's answers rest on, as a small snapshot, fetched once."""

    def __init__(self, derived: Callable[[], tuple[Snapshot, Backward]]) -> None:
        self._derived = derived

    @cached_property
    def parts(self) -> tuple[Snapshot, Backward]:
        """The snapshot, and the derivations in it."""
        return self._derived()


class StoredLogicAnswer(LogicAnswer):
    """One answer of a store: always observed, with score 1."""

    def __init__(self, entity: Entity, witness: EvidenceGraph, tree: Tree, variable: str) -> None:
        self.score, self.observed, self._rules = 1.0, True, None
        self._entity, self._witness, self._tree, self._variable = entity, witness, tree, variable

    @property
    def _snapshot(self) -> Snapshot:  # type: ignore[override]
        return self._witness.parts[0]

    @property
    def node(self) -> int:  # type: ignore[override]
        """The number of the entity in the snapshot of the evidence."""
        return self._snapshot.identified(self._entity.id)

    @cached_property
    def entity(self) -> Entity:
        """The answer as an entity."""
        return self._entity

    @cached_property
    def derivation(self) -> Derivation:
        """The best assignment, from the statements that the answers rest on."""
        return self._witness.parts[1].derive(self._tree, self.node, self._variable)


# -- top ---------------------------------------------------------------------------------------------
# The k best answers, exactly: the threshold is lowered until more than k answers reach it.
#
# A score below the threshold cannot lead to an answer above it (`Forward`), so the first propagations
# visit few nodes. The order is total: answers that the graph alone gives, then by score, then by
# name and id (the order of node numbers).


#: The thresholds in the order of trial; the last trial is without one.
THRESHOLDS: Final = (1.0, 0.5, 0.1, 0.02, 0.004)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Nodes in the order of answers, with scores, and whether the graph alone gives them; `more`: k cut some off.
    `forward` is the propagation that they come from.
    """

    ids: Ids
    scores: Scores
    observed: NDArray[np.bool_]
    more: bool
    forward: Forward


def ranked(tree: Tree, snapshot: Snapshot, matrix: Matrix, *, k: int | None, alpha: float = 1.0, pruned: bool = True) -> Ranked:
    """Return the k best answers (None: all with a score above 0). `pruned=False` computes every score, with the same
    result.
    """
    falling = THRESHOLDS if pruned and k is not None and not matrix.observed_only else ()
    forward, scores = None, None
    for least in (*falling, 0.0):
        forward = Forward(snapshot, matrix, alpha=alpha, least=least)
        scores = forward.run(tree)
        if scores.default > 0.0:
            if least > 0.0:
                continue
            break
        # More than k answers are needed to know whether k cuts some off.
        if least > 0.0 and k is not None and np.count_nonzero(scores.values >= least) > k and _is_whole(scores, tree, snapshot):
            break
    assert forward is not None and scores is not None  # noqa: PT018
    if scores.default > 0.0:
        scores = _spelled(scores, snapshot.entities)
    scores = scores.pruned(max(forward.least, 0.0))
    is_observed = observed(tree, snapshot, scores)
    order = np.lexsort((scores.ids, -scores.values, ~is_observed))
    best = order if k is None else order[:k]
    return Ranked(
        scores.ids[best], _capped(scores.values[best], is_observed[best]), is_observed[best], len(best) < len(order), forward
    )


def observed(tree: Tree, snapshot: Snapshot, found: Vector) -> NDArray[np.bool_]:
    """Return which answers the graph alone gives, as booleans. A score of 1 does not decide it: the graph is asked."""
    suspects = np.arange(len(found.ids)) if negates(tree) else np.flatnonzero(found.values >= 1.0)
    is_observed = np.zeros(len(found.ids), bool)
    if len(suspects):
        symbolic = Forward(snapshot, adjacency(snapshot)).run(tree, found.ids[suspects])
        is_observed[suspects] = symbolic.at(found.ids[suspects]) >= 1.0
    return is_observed


def _is_whole(found: Vector, tree: Tree, snapshot: Snapshot) -> bool:
    """Whether the answers include all that the graph alone gives. Without a negation these have score 1; with one, a
    predicted edge may lower their scores.
    """
    if not negates(tree):
        return True
    symbolic = Forward(snapshot, adjacency(snapshot)).run(tree)
    return bool(np.isin(symbolic.ids[symbolic.values > 0.0], found.ids, assume_unique=True).all())


def _spelled(found: Vector, size: int) -> Vector:
    """Return the vector with every node listed, for a query that only says what its answers are not."""
    all_ids = np.arange(size)
    return Vector(0.0, all_ids, found.at(all_ids))


def _capped(scores: Scores, own: NDArray[np.bool_]) -> Scores:
    """Lower scores of 1 that are not observed: a union of near-certain predictions is rounded up to 1."""
    return np.where(own, scores, np.minimum(scores, np.nextafter(1.0, 0.0)))


# -- ask ---------------------------------------------------------------------------------------------


_CACHE_KEY = "logic.predicted"


def parsed(query: Any, branches: Sequence[Any]) -> Query:
    """Return the query of a text, of BetaE's tuples, or of the name of a structure with its branches."""
    if branches:
        if not isinstance(query, str):
            raise OptionError("branches are given with the name of a structure", hint='graph.logic("2i", ["A", "r"], ["B", "s"])')
        return named(query, branches)
    if isinstance(query, str) and query in STRUCTURES:
        return named(query, branches)
    return query_of(query)


def matrix_of(snapshot: Snapshot, model: Any, epsilon: float | None, cap: int | None) -> Matrix:
    """Return the matrix of a model over a snapshot, cached with the snapshot until the model or the options change."""
    observed = adjacency(snapshot)
    if model is None:
        return observed
    if hasattr(model, "every_row"):
        matrix: Matrix = model
        if matrix.size != snapshot.entities:
            raise OptionError(f"these rows are of a graph of {matrix.size:,} nodes, not {snapshot.entities:,}")
        return matrix
    if isinstance(model, (str, PathLike)):
        from condgraph.links.embeddings import model_of  # type: ignore[import-not-found,unused-ignore]

        model = model_of(model)
    if not hasattr(model, "score_tails"):
        raise OptionError(f"a link prediction model has `score_tails`; {type(model).__name__} has none")
    least = EPSILON if epsilon is None else epsilon
    checked_bounds(least, cap)
    cached = snapshot.schema.kept.get(_CACHE_KEY)
    if cached is not None and cached.model is model and (cached.epsilon, cached.cap) == (least, cap):
        return cached  # type: ignore[no-any-return]
    predicted = snapshot.schema.kept[_CACHE_KEY] = Predicted(observed, model, epsilon=least, cap=cap)
    return predicted


def _checked(k: int | None, alpha: float) -> None:
    """Raise `OptionError` for an invalid `k` or `alpha`."""
    if k is not None and not (is_whole(k) and k >= 1):
        raise OptionError(f"k is the most answers, at least 1, not {k!r}")
    checked_alpha(alpha)


def checked_alpha(alpha: float) -> None:
    """Raise `OptionError` for an invalid negation scale."""
    if not (is_number(alpha) and 0.0 < alpha < float("inf")):
        raise OptionError(f"alpha scales negated scores, and is a number above 0, not {alpha!r}")


def logic(
    graph: LogicGraph,
    query: Any,
    branches: Sequence[Any] = (),
    *,
    model: Any = None,
    predict: bool = False,
    k: int | None = 10,
    alpha: float = 1.0,
    epsilon: float | None = None,
    cap: int | None = None,
    explain: bool = True,
    timeout: float | None = None,
    period: Period | None = None,
) -> LogicAnswers:
    """Answer a query; see `Graph.logic`."""
    _checked(k, alpha)
    parsed_query = parsed(query, branches)
    tree = tree_of(parsed_query)
    checked_safe(tree, bound=k is not None)
    warnings: list[str] = []
    predict = predict and model is None
    if model is None and not predict and (epsilon is not None or cap is not None):
        warnings.append("epsilon= and cap= need a link prediction model, and do nothing without one")
    if not bounded(tree):
        warnings.append("the query only excludes answers: these are the first of almost all nodes")
    if model is None and not predict and not isinstance(graph._store_of(None), SnapshotStore):
        try:
            return _stored(graph, parsed_query, tree, k, period, warnings).keep_to(timeout)
        except UnsupportedError:
            warnings.append("the graph was read whole: its store cannot be asked for an `exists` that is joined by a negated atom")
    snapshot = all_times = graph.snapshot().current
    directory = graph._directory
    # Names are resolved in the graph of all times.
    parsed_query, name_warnings = as_written(parsed_query, snapshot.schema)
    warnings += name_warnings
    tree = tree_of(parsed_query)
    checked_names(tree, snapshot)
    if period is not None:
        if hasattr(model, "every_row"):
            raise OptionError(
                "these rows have the edges of all times", hint="give the link prediction model itself: its edges of score 1 are cut"
            )
        # The rules in the folder of the graph were learned from the statements of all times.
        snapshot, directory = cut(snapshot, period), None
    if predict:
        from condgraph.links.methods import default_rules

        model = default_rules(snapshot, directory, read_only=graph._storage.read_only)
    matrix = matrix_of(snapshot, model, epsilon, cap)
    warnings.extend(getattr(matrix, "warnings", ()))
    warnings.extend(getattr(getattr(matrix, "model", None), "warnings", ()))
    best = ranked(tree, snapshot, matrix, k=k, alpha=alpha)
    if not len(best.ids):
        warnings.extend(_explain_empty(all_times, parsed_query, model, period, bound=k is not None))
    answers = _answers(best, tree, snapshot, parsed_query, timeout)
    result = LogicAnswers(str(parsed_query), answers, best.more, warnings, None, _counting(tree, snapshot, matrix, alpha))
    if explain:
        for answer in answers:
            _ = answer.derivation
    return result.keep_to(timeout)


def _explain_empty(snapshot: Snapshot, read: Query, model: Any, period: Period | None, *, bound: bool) -> list[str]:
    """Explain an empty answer. Without a model, give the warnings that any program over the graph gives."""
    if model is not None:
        return ["the answer is empty: neither the graph nor the model gives any entity a score"]
    try:
        return ask(SnapshotStore(snapshot), read, "logic", None, _options(period, bound=bound)).warnings
    except UnsupportedError:
        return ["the answer is empty"]


def _options(period: Period | None, *, bound: bool) -> dict[str, Any]:
    return {"bound": bound} if period is None else {"bound": bound, "period": period}


def _answers(found: Ranked, tree: Tree, snapshot: Snapshot, read: Query, timeout: float | None) -> list[LogicAnswer]:
    backward = Backward(found.forward)

    def why(node: int) -> Callable[[], Derivation]:
        def derive() -> Derivation:
            with within(timeout):
                return backward.derive(tree, node, read.answer.name)

        return derive

    rules = getattr(getattr(found.forward.matrix, "model", None), "explain", None)
    return [
        LogicAnswer(snapshot, node, score, is_observed, why(node), rules)
        for node, score, is_observed in watched(
            zip(found.ids.tolist(), found.scores.tolist(), found.observed.tolist(), strict=True)
        )
    ]


def _counting(tree: Tree, snapshot: Snapshot, matrix: Matrix, alpha: float) -> Callable[[float], int]:
    def count(threshold: float) -> int:
        if not (is_number(threshold) and 0.0 <= threshold < 1.0):
            raise OptionError(f"a threshold of scores is at least 0 and less than 1, not {threshold!r}")
        # Scores below the threshold never lead to scores above it.
        scores = Forward(snapshot, matrix, alpha=alpha, least=threshold).run(tree)
        unlisted = snapshot.entities - len(scores.ids) if scores.default > threshold else 0
        return int(np.count_nonzero(scores.values > threshold)) + unlisted

    return count


def _stored(graph: LogicGraph, read: Query, tree: Tree, k: int | None, period: Period | None, warnings: list[str]) -> LogicAnswers:
    """Return the answers that a store computes with one query; they are explained by the statements of its evidence."""
    answer = ask(graph._store_of(None), read, "logic", None, _options(period, bound=k is not None))
    entities = answer.entities
    shown = entities if k is None else entities[:k]

    def derived() -> tuple[Snapshot, Backward]:
        snapshot = answer.evidence.trail.run.snapshot
        if period is not None:
            snapshot = cut(snapshot, period)
        forward = Forward(snapshot, adjacency(snapshot))
        forward.run(tree)
        return snapshot, Backward(forward)

    witness = EvidenceGraph(derived)
    answers: list[LogicAnswer] = [StoredLogicAnswer(entity, witness, tree, read.answer.name) for entity in shown]
    return LogicAnswers(
        str(read), answers, len(shown) < len(entities), [*warnings, *answer.warnings], answer, lambda _: len(entities)
    )


@dataclass(frozen=True, slots=True)
class StoredScores:
    """The answers of a store in order, and the text of its query; `more`: k cut some off."""

    text: str
    answers: list[StoredScore]
    more: bool


def stored_scores(store: Any, graph: str, query: Any, branches: Sequence[Any], k: int | None, alpha: float) -> StoredScores:
    """Answer on the server; see `Graph.logic_stored`."""
    _checked(k, alpha)
    tree = tree_of(parsed(query, branches))
    checked_safe(tree)
    edges = edges_of(store, graph)
    for node in walk(tree):
        if isinstance(node, OfType) and edges.schema.table_called(node.concept) is not None:
            raise UnsupportedError(
                "a query over predicted edges on a server",
                [f"the table {node.concept!r} as a type"],
                hint="graph.snapshot() in process has it",
            )
    text, answers = edges.ask(tree, alpha)
    answers.sort(key=lambda answer: (not answer.observed, -answer.score, answer.entity.name, answer.entity.id))
    return StoredScores(text, answers if k is None else answers[:k], k is not None and len(answers) > k)
