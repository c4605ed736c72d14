"""Compare a graph at two times (`Graph.difference`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from condgraph.engine import algebra as alg
from condgraph.engine.bounds import within
from condgraph.engine.lowered import Lowered
from condgraph.engine.period import Period, TimeLike, time_of
from condgraph.engine.records import Evidence
from condgraph.engine.store import KnownSchema, QueriedGraph, Request
from condgraph.engine.true_at import untimed


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of a graph at two times: the statements of `before` that are gone, and those that are new at
    `after`, each with its sources. `str()` lists them, one per line.
    """

    before: Period
    after: Period
    gone: tuple[Evidence, ...]
    new: tuple[Evidence, ...]
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"from {self.before} to {self.after}: {len(self.gone)} gone, {len(self.new)} new"
        lines = [f"- {statement}" for statement in self.gone] + [f"+ {statement}" for statement in self.new]
        return "\n".join([head, *lines, *(f"warning: {warning}" for warning in self.warnings)])


def difference(graph: QueriedGraph, first: TimeLike, second: TimeLike, certain: bool, timeout: float | None) -> Difference:
    """Implement `Graph.difference`. Statements without times hold at both times and are not fetched."""
    before, after = (Period(time_of(item, "difference"), certain) for item in (first, second))
    store, timeout = graph._store_of(None), graph.timeout if timeout is None else timeout
    scan = alg.Scan(None, None)

    warnings: dict[str, None] = {}

    def fetch(facts: alg.Facts) -> Sequence[Evidence]:
        def lowered(schema: KnownSchema, *_: object) -> Lowered:
            if not schema.temporal:
                warnings[untimed(f"{before.interval} and {after.interval}")] = None
            return Lowered(plan, [("", plan)])

        plan = alg.Objects(facts)
        answer = store.answer(Request("", "kopl", {}, None, lowered))
        evidence = answer.evidence
        # An empty answer warns that nothing was found, which is a normal result here.
        warnings.update(dict.fromkeys(answer.warnings if evidence else ()))
        return evidence

    def certain_facts(period: Period) -> alg.Facts:
        # "must" also selects statements without times; "contains" excludes these.
        return alg.During(alg.During(scan, "must", period.interval), "contains", period.interval)

    with within(timeout):
        if certain:
            old, new = fetch(certain_facts(before)), fetch(certain_facts(after))
            keys = {_key(item) for item in old}, {_key(item) for item in new}
            old, new = [item for item in old if _key(item) not in keys[1]], [item for item in new if _key(item) not in keys[0]]
        else:
            # "disjoint" selects statements that have times and may not hold then.
            old = fetch(alg.During(alg.During(scan, "may", before.interval), "disjoint", after.interval))
            new = fetch(alg.During(alg.During(scan, "may", after.interval), "disjoint", before.interval))
        return Difference(before, after, tuple(old), tuple(new), tuple(warnings))


def _key(one: Evidence) -> Any:
    return repr(one)
