"""One execution of a plan: runs the operators, inputs first, and stores their results, warnings and the deadline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import algebra
from condgraph.engine.algebra import Condition, Node, fields_of, postorder
from condgraph.engine.bounds import check, current, within
from condgraph.engine.errors import UnknownNameError, UnsupportedError, nearest
from condgraph.engine.execute.conditions import compared_kinds
from condgraph.engine.execute.grid import Grid
from condgraph.engine.execute.left_out import LeftOut, left_out, left_out_warnings
from condgraph.engine.execute.sets import Bag, FactSet, Numbers, Scope
from condgraph.engine.snapshot.ordered import Cells
from condgraph.engine.values import NO_UNIT, Kind

if TYPE_CHECKING:
    from condgraph.engine.execute.rowset import RowSet
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The result of an operator: sorted entity numbers, statements, values, rows, or one value.
Outcome: TypeAlias = "NDArray[np.int32] | FactSet | Bag | Grid | RowSet | bool | int | float | None"


class Run:
    """The state of one execution. `results` has the result of each operator by its identity."""

    __slots__ = (
        "_alive", "_consumers", "_warned", "left_out", "notes", "order", "results", "scope", "snapshot", "warnings",
    )  # fmt: skip
    #: The function that runs each operator; filled by the module `operators`.
    operators: ClassVar[dict[type[Node | Condition], Callable[[Run, Any], Outcome]]] = {}

    def __init__(self, snapshot: Snapshot, scope: Scope | None = None) -> None:
        self.snapshot = snapshot
        #: The context of results, which have no reference to the execution itself.
        self.scope = Scope(snapshot) if scope is None else scope
        # Each is an `Outcome`; `entities`, `facts` and `values` return typed ones.
        self.results: dict[int, Any] = {}
        self.order: list[Node] = []
        self._consumers: dict[int, list[Node]] = {}
        self.warnings: list[str] = []
        self._warned: set[str] = set()
        #: Remarks on single operators for the trace, by identity.
        self.notes: dict[int, str] = {}
        #: Values that a test could not compare.
        self.left_out = LeftOut()
        # Results are stored by identity, so operators that are run later must stay alive.
        self._alive: list[Node] = []

    def execute(self, plan: Node, order: list[Node] | None = None) -> Outcome:
        """Run a plan and return the result of its root. `order` is its `postorder`, if known. Results that are
        already in `results` are reused.
        """
        table, results = self.operators, self.results
        self.order = order = postorder(plan) if order is None else order
        self._consumers = {}
        budget, known = current(), bool(results)
        for node in order:
            if budget is not None:
                budget.check()
            if known and id(node) in results:
                continue
            operator = table.get(type(node)) or _later(node)
            if operator is None:
                raise UnsupportedError("the snapshot", sorted({type(n).__name__ for n in order if type(n) not in table}))
            results[id(node)] = operator(self, node)
        outcome: Outcome = results[id(plan)]
        return outcome

    def consumers(self, node: Node) -> list[Node]:
        """Return the operators of the plan that use an operator's result."""
        if not self._consumers:
            for other in self.order:
                for child in set(map(id, other.inputs())):
                    self._consumers.setdefault(child, []).append(other)
        return self._consumers.get(id(node), [])

    def all_warnings(self, more: LeftOut | None = None) -> list[str]:
        """Return all warnings, those about ignored values last; `more` were ignored elsewhere."""
        return self.warnings + left_out_warnings(self.left_out if more is None else self.left_out + more)

    def outcome(self, node: Node) -> Outcome:
        """Return the result of an operator that a pass removed or replaced, for the trace; runs what is missing,
        without its warnings.
        """
        if id(node) not in self.results:
            warnings, left_out = list(self.warnings), self.left_out.copy()
            for part in self.missing(node):
                check()
                self.results[id(part)] = self.operators[type(part)](self, part)
                self._alive.append(part)
            self.warnings, self.left_out = warnings, left_out
        outcome: Outcome = self.results[id(node)]
        return outcome

    def size(self, node: Node) -> int:
        """Return the number of results of an operator. If an operator that it requires is empty, the rest is not run.
        Operators that are run warn as in `execute`.
        """
        results = self.results
        if id(node) not in results:
            parts, strict = self.missing(node), set[int]()
            for part in parts:
                if self.step(part):
                    strict = strict or _strict(parts)
                    if id(part) in strict:
                        return 0
        return len(results[id(node)])

    def missing(self, node: Node) -> Sequence[Node]:
        """Return an operator and those below it that were not run, inputs first."""
        results = self.results
        if id(node) in results:
            return ()
        for child in node.inputs():
            if id(child) not in results:
                return postorder(node, results)
        return (node,)

    def step(self, node: Node) -> bool:
        """Run an operator whose inputs were run; return whether its result is known to be empty. The statements of
        many entities are not counted, as only their ends may be needed.
        """
        check()
        outcome: Any = self.operators[type(node)](self, node)
        self.results[id(node)] = outcome
        self._alive.append(node)
        kind = type(outcome)
        known: bool = kind is np.ndarray or kind is Bag or (kind is FactSet and outcome.few())
        return known and not len(outcome)

    def listen(self, node: Node) -> None:
        """Run an operator whose result is known again, for its warnings."""
        self.operators[type(node)](self, node)

    # -- results of inputs -------------------------------------------------------------------------

    def entities(self, node: algebra.Entities) -> Numbers:
        """Return the result of an operator that returns entities."""
        result: Numbers = self.results[id(node)]
        return result

    def facts(self, node: algebra.Facts) -> FactSet:
        """Return the result of an operator that returns statements."""
        result: FactSet = self.results[id(node)]
        return result

    def values(self, node: algebra.Values) -> Bag:
        """Return the result of an operator that returns values."""
        result: Bag = self.results[id(node)]
        return result

    def rows(self, node: algebra.Solutions) -> RowSet:
        """Return the result of an operator that returns rows."""
        result: RowSet = self.results[id(node)]
        return result

    def among(self, entities: Numbers, of: Numbers) -> NDArray[np.bool_]:
        """Return for each entity (in any order) whether it is in the sorted set `of`."""
        return self.scope.among(entities, of)

    # -- helpers of the operators ------------------------------------------------------------------

    def source(self, name: str | None) -> int:
        """Return the number of a source, -1 for None; raise `UnknownNameError` for an unknown one."""
        if name is None:
            return -1
        sources = self.snapshot.schema.sources
        if name not in sources:
            raise UnknownNameError("source", name, candidates=nearest(name, sources))
        return sources.index(name)

    def warn(self, message: str) -> None:
        """Add a warning, once."""
        if message not in self._warned:
            self._warned.add(message)
            self.warnings.append(message)

    def warn_incomparable(self, cells: Cells, condition: Condition) -> None:
        """Count the cells that the condition cannot compare, by type and unit."""
        if len(cells):
            self.warn_types(cells.types(), condition)

    def warn_types(self, types: dict[tuple[int, int], int], condition: Condition) -> None:
        """The same, given the number of cells of each type and unit."""
        wanted = compared_kinds(condition)
        for (kind, unit), count in types.items():
            left_out(self.left_out, Kind(kind), self.scope.text(unit) if unit != -1 else NO_UNIT, count, wanted)

    def leave_out(self, kind: Kind, unit: str, count: int, condition: Condition) -> None:
        """Count values of a type and unit that the condition cannot compare."""
        if count:
            left_out(self.left_out, kind, unit, count, compared_kinds(condition))


def _strict(parts: Sequence[Node]) -> set[int]:
    """Return the identities of the operators that make the last one empty if they are empty; inputs are first."""
    result = {id(parts[-1])}
    for part in reversed(parts):
        if id(part) in result:
            result.update(map(id, fields_of(part, part.facets.strict)))
    return result


def _later(node: Node) -> Callable[[Run, Any], Outcome] | None:
    """Return the function for an operator over rows, whose module most plans need not import; None for an unknown
    operator.
    """
    if type(node).__module__ != "condgraph.engine.algebra.solutions":
        return None
    import_module("condgraph.engine.execute.solutions")
    return Run.operators.get(type(node))


def run(plan: Node, snapshot: Snapshot, *, timeout: float | None = None, cancelled: Event | None = None) -> Run:
    """Execute a plan on a snapshot; `timeout` is in seconds. The `Run` has the result of every operator."""
    execution = Run(snapshot)
    with within(timeout, cancelled):
        execution.execute(plan)
    return execution


def count(snapshot: Snapshot, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
    """Return the number of statements or entities of each operator; `timeout`, for all of them, is in seconds."""
    with within(timeout):
        shared, sizes = Run(snapshot), []
        for node in nodes:
            # Rows are computed only as far as the operator above needs them, so plans cannot share them.
            alone = any(isinstance(part, algebra.Solutions) for part in postorder(node))
            sizes.append(len((Run(snapshot) if alone else shared).execute(node)))  # type: ignore[arg-type]
        return sizes
