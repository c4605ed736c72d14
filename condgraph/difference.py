"""What changed in a graph between two times (`Graph.difference`)."""

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
    """What changed between two times: the statements of `before` that are gone, and those that are new at `after`,
    each with its sources.
    """

    before: Period
    after: Period
    gone: tuple[Evidence, ...]
    new: tuple[Evidence, ...]
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"from {self.before} to {self.after}: {len(self.gone)} gone, {len(self.new)} new"
        lines = [f"- {one}" for one in self.gone] + [f"+ {one}" for one in self.new]
        return "\n".join([head, *lines, *(f"warning: {warning}" for warning in self.warnings)])


def difference(graph: QueriedGraph, first: TimeLike, second: TimeLike, certain: bool, timeout: float | None) -> Difference:
    """`Graph.difference`: statements without a validity hold at both times, and are not fetched."""
    before, after = (Period(time_of(one, "difference"), certain) for one in (first, second))
    store, timeout = graph._store_of(None), graph.timeout if timeout is None else timeout
    scan = alg.Scan(None, None)

    warnings: dict[str, None] = {}

    def stated(facts: alg.Facts) -> Sequence[Evidence]:
        def lowered(schema: KnownSchema, *_: object) -> Lowered:
            if not schema.temporal:
                warnings[untimed(f"{before.interval} and {after.interval}")] = None
            return Lowered(plan, [("", plan)])

        plan = alg.Objects(facts)
        answer = store.answer(Request("", "kopl", {}, None, lowered))
        found = answer.evidence
        # That nothing changed needs no explanation.
        warnings.update(dict.fromkeys(answer.warnings if found else ()))
        return found

    def certainly(period: Period) -> alg.Facts:
        # "must" is of statements without a validity as well, which "contains" leaves out.
        return alg.During(alg.During(scan, "must", period.interval), "contains", period.interval)

    with within(timeout):
        if certain:
            old, new = stated(certainly(before)), stated(certainly(after))
            keys = {_key(one) for one in old}, {_key(one) for one in new}
            old, new = [one for one in old if _key(one) not in keys[1]], [one for one in new if _key(one) not in keys[0]]
        else:
            # "disjoint" is what "may" leaves out of the statements with a validity.
            old = stated(alg.During(alg.During(scan, "may", before.interval), "disjoint", after.interval))
            new = stated(alg.During(alg.During(scan, "may", after.interval), "disjoint", before.interval))
        return Difference(before, after, tuple(old), tuple(new), tuple(warnings))


def _key(one: Evidence) -> Any:
    return repr(one)
