"""Answers that a store gave by a query of its own: what explains them is fetched when it is looked
at.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from condgraph.engine.facts import Entity
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.languages.logic.tree import Tree
from condgraph.logic.answers import LogicAnswer
from condgraph.logic.derivation import Backward, Derivation


class Witness:
    """The statements that some answers rest on, as a small graph; fetched once."""

    def __init__(self, derived: Callable[[], tuple[Snapshot, Backward]]) -> None:
        self._derived = derived

    @cached_property
    def parts(self) -> tuple[Snapshot, Backward]:
        """The graph, and derivations in it."""
        return self._derived()


class StoredLogicAnswer(LogicAnswer):
    """One answer of a store: observed, of score 1."""

    def __init__(self, entity: Entity, witness: Witness, tree: Tree, variable: str) -> None:
        self.score, self.observed = 1.0, True
        self._entity, self._witness, self._tree, self._variable = entity, witness, tree, variable

    @property
    def _snapshot(self) -> Snapshot:  # type: ignore[override]
        return self._witness.parts[0]

    @property
    def node(self) -> int:  # type: ignore[override]
        """Its number in the small graph."""
        return self._snapshot.identified(self._entity.id)

    @cached_property
    def entity(self) -> Entity:
        """The entity itself."""
        return self._entity

    @cached_property
    def derivation(self) -> Derivation:
        """How it came about, by the statements that the answers rest on."""
        return self._witness.parts[1].derive(self._tree, self.node, self._variable)
