"""The figures of an evaluation: means over the answers of a query, then over the queries of a
structure, then over structures, as papers report them; and their tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: The averages of QTO, Table 1, and the structures of each.
AVERAGES: Final = {
    "avg_p": ("1p", "2p", "3p", "2i", "3i", "pi", "ip", "2u", "up"),
    "avg_ood": ("pi", "ip", "2u", "up"),
    "avg_n": ("2in", "3in", "inp", "pin", "pni"),
}
HITS: Final = (1, 3, 10)
#: The thresholds of section 4.4, of which one is chosen on validation queries.
THRESHOLDS: Final = tuple(round(0.1 * step, 1) for step in range(1, 10))


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """What came out for one query: the filtered rank of each hard answer, the fewest missing edges
    that it needs, whether its explanation holds (None: not worked out), how many answers there are,
    and how many have a score above each of `THRESHOLDS`.
    """

    kind: str
    ranks: NDArray[np.float64]
    missing: NDArray[np.float32] | None
    explained: tuple[bool | None, ...]
    answers: int
    above: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The figures of many queries."""

    cases: tuple[CaseFigures, ...]
    threshold: float
    options: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()

    @property
    def kinds(self) -> list[str]:
        """The structures that there are, in the order of the tables."""
        order = [*AVERAGES["avg_p"], *AVERAGES["avg_n"]]
        there = {case.kind for case in self.cases}
        return [*(kind for kind in order if kind in there), *sorted(there - set(order))]

    def mrr(self) -> dict[str, float]:
        """The mean reciprocal rank by structure, and the averages of those that are whole."""
        return self._averaged({kind: _mean(_each(self._of(kind), lambda ranks: 1 / ranks)) for kind in self.kinds})

    def hits(self, most: int) -> dict[str, float]:
        """The share of hard answers among the first `most`, by structure."""
        return self._averaged({kind: _mean(_each(self._of(kind), lambda ranks: ranks <= most)) for kind in self.kinds})

    def by_missing(self) -> dict[str, dict[int, tuple[float, int]]]:
        """For each structure and number of missing edges: the mean reciprocal rank of hard answers
        that need so many, and how many there are (each answer counts once).
        """
        found: dict[str, dict[int, tuple[float, int]]] = {}
        for kind in self.kinds:
            parts: dict[int, list[float]] = defaultdict(list)
            for case in self._of(kind):
                if case.missing is not None:
                    for rank, number in zip(case.ranks.tolist(), case.missing.tolist(), strict=True):
                        parts[int(number) if np.isfinite(number) else -1].append(1 / rank)
            if parts:
                found[kind] = {number: (_mean(ranks), len(ranks)) for number, ranks in sorted(parts.items())}
        return found

    def explained(self) -> dict[str, dict[str, float]]:
        """The share of explanations that hold in the complete graph, of hard answers among the
        first 1, 3, 10, and of all (Table 2).
        """
        found: dict[str, dict[str, float]] = {}
        for kind in self.kinds:
            pairs = [
                (rank, right)
                for case in self._of(kind)
                for rank, right in zip(case.ranks.tolist(), case.explained, strict=True)
                if right is not None
            ]
            if pairs:
                most = {f"@{number}": number for number in HITS} | {"all": float("inf")}
                found[kind] = {name: _mean([right for rank, right in pairs if rank <= bound]) for name, bound in most.items()}
        return found

    def cardinality(self) -> dict[str, float]:
        """The mean absolute percentage error of how many answers there are, by structure (4.4)."""
        at = THRESHOLDS.index(self.threshold)
        return {kind: _mean([_error(case, at) for case in self._of(kind) if case.answers]) for kind in self.kinds}

    def _of(self, kind: str) -> list[CaseFigures]:
        return [case for case in self.cases if case.kind == kind]

    def _averaged(self, by_kind: dict[str, float]) -> dict[str, float]:
        averages = {
            name: _mean([by_kind[kind] for kind in kinds])
            for name, kinds in AVERAGES.items()
            if all(kind in by_kind for kind in kinds)
        }
        return {**averages, **by_kind}

    def rows(self) -> list[dict[str, Any]]:
        """One record for each structure and average, for tables and JSON."""
        mrr, hits = self.mrr(), {most: self.hits(most) for most in HITS}
        wrong, right, missing = self.cardinality(), self.explained(), self.by_missing()
        return [
            {
                "structure": kind,
                "queries": len(self._of(kind)) or None,
                "mrr": mrr[kind],
                **{f"hits{most}": hits[most][kind] for most in HITS},
                "mape": wrong.get(kind),
                "explained": right.get(kind),
                "by_missing": {str(number): {"mrr": one[0], "answers": one[1]} for number, one in missing.get(kind, {}).items()},
            }
            for kind in mrr
        ]

    def __str__(self) -> str:
        lines = [f"{'':8} queries    MRR     @1     @3    @10   MAPE  by missing links"]
        for row in self.rows():
            missing = "  ".join(f"{number}: {one['mrr']:.3f} ({one['answers']})" for number, one in row["by_missing"].items())
            cells = "  ".join(f"{row[name]:.3f}" for name in ("mrr", "hits1", "hits3", "hits10"))
            mape = "" if row["mape"] is None else f"{row['mape']:.3f}"
            lines.append(f"{row['structure']:8} {row['queries'] or '':>7}  {cells}  {mape:>5}  {missing}".rstrip())
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings)])


def best_threshold(cases: Iterable[CaseFigures]) -> float:
    """The threshold of the least mean error of cardinality; the first of equals."""
    counted = [case for case in cases if case.answers]
    if not counted:
        return THRESHOLDS[len(THRESHOLDS) // 2]
    errors = [_mean([_error(case, at) for case in counted]) for at in range(len(THRESHOLDS))]
    return THRESHOLDS[int(np.argmin(errors))]


def _error(case: CaseFigures, at: int) -> float:
    return abs(case.above[at] - case.answers) / case.answers


def _each(cases: Sequence[CaseFigures], of: Any) -> list[float]:
    return [float(np.mean(of(case.ranks))) for case in cases if len(case.ranks)]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
