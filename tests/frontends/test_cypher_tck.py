"""The openCypher TCK: every scenario that only reads passes, or is refused for a reason that is listed here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support import tck
from tests.support.lanes import by_lane

#: Scenarios that come out differently, with the reason.
DIFFERENT = {
    "Temporal2 [6] Should parse date time with named time zone from string #0.4": "the system's data of Stockholm in 1818",
}
#: How the reasons of those that are refused begin (`docs/reference/cypher.md`).
REFUSED = (
    "setup: ",
    "PlanError: an aggregate within a list expression",
    "UnsupportedError: Cypher does not support: the variable",
    "UnsupportedError: a query within a list expression",
    # Unwinds a million numbers to take some of them.
    "DeadlineError",
)


@pytest.mark.reads_data
def test_scenarios_pass_or_are_refused_by_name(shared: Path) -> None:
    step = by_lane(9, 1, 1)
    counts: Counter[str] = Counter()
    graphs: dict[tuple[str, ...], Any] = {}
    wrong = []
    for number, scenario in enumerate(tck.scenarios(shared / "data" / "opencypher_tck" / "tck" / "features")):
        if number % step or tck.skipped(scenario):
            continue
        outcome = tck.played(scenario, graphs)
        counts[outcome.kind] += 1
        known = scenario.name in DIFFERENT if outcome.kind == "differs" else outcome.why.startswith(REFUSED)
        if outcome.kind != "pass" and not known:
            wrong.append(f"{outcome.kind}: {scenario.name}: {scenario.query!r}: {outcome.why}")
    assert not wrong, "\n".join(wrong)
    assert counts["pass"] > 0.95 * counts.total() > 300
