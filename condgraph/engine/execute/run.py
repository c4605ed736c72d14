"""One execution of a plan: walks the operators inputs first, keeps every result, gathers warnings, keeps the deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import algebra
from condgraph.engine.algebra import Node, Test, postorder
from condgraph.engine.errors import CancelledError, DeadlineError, UnknownNameError, UnsupportedError, nearest
from condgraph.engine.execute.bags import Bag
from condgraph.engine.execute.factset import FactSet
from condgraph.engine.execute.scope import Scope
from condgraph.engine.execute.sets import Numbers
from condgraph.engine.execute.tests import compared_kinds
from condgraph.engine.snapshot.ordered import Cells
from condgraph.engine.values import NO_UNIT, Kind

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: What an operator gives: sorted entity numbers, statements, values, or one value.
Outcome = NDArray[np.int32] | FactSet | Bag | bool | int | float | None


class Run:
    """The state of one execution. `results` has the outcome of each operator by its identity."""

    __slots__ = (
        "_cancelled", "_deadline", "_kept", "_left_out", "notes", "order", "results", "scope", "snapshot", "warnings",
    )  # fmt: skip

    def __init__(self, snapshot: Snapshot, *, timeout: float | None = None, cancelled: Event | None = None) -> None:
        self.snapshot = snapshot
        #: What results refer to; they know nothing of the execution that holds them.
        self.scope = Scope(snapshot)
        # An `Outcome` each; `entities`, `facts` and `values` say which.
        self.results: dict[int, Any] = {}
        self.order: list[Node] = []
        self.warnings: list[str] = []
        #: Remarks on single operators for the trace, by identity.
        self.notes: dict[int, str] = {}
        self._left_out: dict[tuple[str, str], int] = {}
        # Operators are known by identity, so those that are run later must stay alive.
        self._kept: list[Node] = []
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._cancelled = cancelled

    def execute(self, plan: Node, order: list[Node] | None = None) -> Outcome:
        """Run a plan; the outcome of its root. `order` is its `postorder`, where the caller has it already. What `results` holds
        already is taken as it is.
        """
        table, results = _OPERATORS, self.results
        self.order = order = postorder(plan) if order is None else order
        guarded, known = self._deadline is not None or self._cancelled is not None, bool(results)
        for node in order:
            if guarded:
                self._check()
            if known and id(node) in results:
                continue
            operator = table.get(type(node))
            if operator is None:
                raise UnsupportedError("the snapshot", sorted({type(n).__name__ for n in order if type(n) not in table}))
            results[id(node)] = operator(self, node)
        self._tell_left_out()
        outcome: Outcome = results[id(plan)]
        return outcome

    def _tell_left_out(self) -> None:
        for (what, wanted), count in self._left_out.items():
            values = "1 value" if count == 1 else f"{count} values"
            self.warnings.append(f"{values} ({what}) cannot be compared with {wanted} and are left out")

    def outcome(self, node: Node) -> Outcome:
        """The outcome of an operator that a pass removed or replaced, for the trace; runs what is missing."""
        if id(node) not in self.results:
            warnings, left_out = list(self.warnings), self._left_out.copy()
            for part in postorder(node):
                if id(part) not in self.results:
                    self.results[id(part)] = _OPERATORS[type(part)](self, part)
                    self._kept.append(part)
            self.warnings, self._left_out = warnings, left_out
        outcome: Outcome = self.results[id(node)]
        return outcome

    def _check(self) -> None:
        if self._cancelled is not None and self._cancelled.is_set():
            raise CancelledError("the query was cancelled")
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise DeadlineError("the query did not end before its deadline", hint="a longer timeout= may help")

    # -- results of inputs ------------------------------------------------------------------------------------------------

    def entities(self, node: algebra.Entities) -> Numbers:
        """The outcome of an operator of that sort."""
        found: Numbers = self.results[id(node)]
        return found

    def facts(self, node: algebra.Facts) -> FactSet:
        """The outcome of an operator of that sort."""
        found: FactSet = self.results[id(node)]
        return found

    def values(self, node: algebra.Values) -> Bag:
        """The outcome of an operator of that sort."""
        found: Bag = self.results[id(node)]
        return found

    def among(self, entities: Numbers, of: Numbers) -> NDArray[np.bool_]:
        """For each entity (in any order), whether it is in the sorted set `of`."""
        return self.scope.among(entities, of)

    # -- helpers of the operators -----------------------------------------------------------------------------------------

    def source(self, name: str | None) -> int:
        """The number of a source, -1 for none given; an unknown one is an error."""
        if name is None:
            return -1
        sources = self.snapshot.schema.sources
        if name not in sources:
            raise UnknownNameError("source", name, candidates=nearest(name, sources))
        return sources.index(name)

    def warn(self, message: str) -> None:
        """Add a warning, once."""
        if message not in self.warnings:
            self.warnings.append(message)

    def warn_incomparable(self, cells: Cells, test: Test) -> None:
        """Count the cells that the test cannot compare, by type and unit."""
        if len(cells):
            self.warn_types(cells.types(), test)

    def warn_types(self, types: dict[tuple[int, int], int], test: Test) -> None:
        """The same of cells that are counted already."""
        wanted = compared_kinds(test)
        for (kind, unit), count in types.items():
            self._count(Kind(kind), self.snapshot.texts[unit] if unit >= 0 else NO_UNIT, count, wanted)

    def leave_out(self, kind: Kind, unit: str, count: int, test: Test) -> None:
        """Count values of a type and unit that the test cannot compare."""
        if count:
            self._count(kind, unit, count, compared_kinds(test))

    def _count(self, kind: Kind, unit: str, count: int, wanted: set[tuple[Kind, str]]) -> None:
        # Nothing compares with what is not known.
        if wanted and (kind, unit) not in wanted and kind is not Kind.UNKNOWN:
            what = kind.name.lower() + (f" in {unit}" if unit != NO_UNIT else "")
            known = (what, describe_kinds(wanted))
            self._left_out[known] = self._left_out.get(known, 0) + count


def describe_kinds(kinds: set[tuple[Kind, str]]) -> str:
    """Types and units in words."""
    words = []
    for kind, unit in sorted(kinds):
        if kind is not Kind.ENTITY or len(kinds) == 1:
            article = "an" if kind is Kind.ENTITY else "a"
            words.append(f"{article} {kind.name.lower()}" + (f" in {unit}" if unit != NO_UNIT else ""))
    return " or ".join(words)


def run(plan: Node, snapshot: Snapshot, *, timeout: float | None = None, cancelled: Event | None = None) -> Run:
    """Execute a plan on a snapshot; `timeout` is in seconds. The `Run` has every operator's outcome."""
    execution = Run(snapshot, timeout=timeout, cancelled=cancelled)
    execution.execute(plan)
    return execution


def _operators() -> dict[type[Node], Callable[[Run, Any], Outcome]]:
    """The table of operators; a test holds it against the algebra."""
    from condgraph.engine.execute import aggregates, apply, entities, facts, picks, temporal, values

    return {
        algebra.Every: entities.every,
        algebra.Known: entities.known,
        algebra.Named: entities.named,
        algebra.Members: entities.members,
        algebra.Union: entities.union_of,
        algebra.Intersect: entities.intersect_of,
        algebra.Minus: entities.minus_of,
        algebra.Neighbour: entities.neighbour,
        algebra.Reached: entities.reached,
        algebra.Holders: entities.holders,
        algebra.Referents: entities.referents,
        algebra.Namesakes: picks.namesakes,
        algebra.Best: aggregates.best,
        algebra.Scan: facts.scan,
        algebra.Where: facts.where,
        algebra.WhereQualifier: facts.where_qualifier,
        algebra.During: facts.during,
        algebra.DuringAny: temporal.during_any,
        algebra.WhereValidity: temporal.where_validity,
        algebra.Turn: facts.turn,
        algebra.Objects: values.objects,
        algebra.Qualifiers: values.qualifiers,
        algebra.Validity: temporal.validity,
        algebra.Predicates: values.predicates,
        algebra.QualifierKeys: values.qualifier_keys,
        algebra.Names: values.names,
        algebra.RowNumbers: values.row_numbers,
        algebra.Keep: values.keep,
        algebra.Distinct: values.distinct,
        algebra.Concat: values.concat,
        algebra.Given: values.given,
        algebra.Nth: picks.nth,
        algebra.Clip: temporal.clip,
        algebra.Bound: temporal.bound,
        algebra.Shown: picks.shown,
        algebra.Apply: apply.apply,
        algebra.Choose: apply.choose,
        algebra.External: apply.external,
        algebra.Extreme: aggregates.extreme,
        algebra.Mode: aggregates.mode,
        algebra.Count: aggregates.count,
        algebra.Sum: aggregates.total,
        algebra.Mean: aggregates.mean,
        algebra.Some: aggregates.some,
        algebra.Exists: aggregates.exists,
    }


_OPERATORS = _operators()
