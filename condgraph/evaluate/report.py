"""The report of an evaluation: a row a question, the totals of model and control, and the papers' figures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Final

from condgraph.evaluate.measures import Right

# -- papers ------------------------------------------------------------------------------------------
# The figures that the papers report, in percent, to stand beside one's own.
#
# They were measured with other models, on whole test sets and on the papers' graphs: what they say
# next to a figure from here is where the field is, not who wins.


#: By data set and measure: who, and the figure. TrustUQA: Tables 2, 3 and 4 (GPT-3.5); SimGRAG:
#: Table 1 (Llama 3 70B).
PAPERS: Final[Mapping[str, Mapping[str, Mapping[str, float]]]] = {
    "metaqa-1": {"hits1": {"TrustUQA": 97.1, "SimGRAG": 98.0}, "includes": {"TrustUQA": 99.94}},
    "metaqa-2": {"hits1": {"TrustUQA": 97.9, "SimGRAG": 98.4}, "includes": {"TrustUQA": 99.99}},
    "metaqa-3": {"hits1": {"TrustUQA": 98.4, "SimGRAG": 97.8}, "includes": {"TrustUQA": 99.99}},
    "wtq": {"denotation": {"TrustUQA": 44.2}},
    "cronquestions": {"hits1": {"TrustUQA": 97.2}},
    "pathquestions-2": {"hits1": {"SimGRAG": 88.7}},
    "pathquestions-3": {"hits1": {"SimGRAG": 78.6}},
    "movies": {},
}


# -- report ------------------------------------------------------------------------------------------


#: The measures, and what a table calls them.
MEASURES: Final[Mapping[str, str]] = {
    "denotation": "denotation accuracy",
    "hits1": "Hits@1",
    "exact": "exact sets",
    "includes": "includes all right ones",
    "f1": "F1 of sets",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One question: what was right, what was given, how it ended, how right it is, and the same of
    the control; calls, tokens (None where the model does not say) and seconds of the model.
    """

    question: str
    wanted: tuple[str, ...]
    given: tuple[str, ...] | None
    status: str
    right: Right
    control: tuple[str, ...] | None
    control_right: Right
    program: str = ""
    control_program: str = ""
    source: str | None = None
    stages: tuple[str, ...] = ()
    attempts: int = 0
    calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0
    note: str = ""

    def data(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Scores:
    """Totals of one side, in percent of all questions; `answered` counts answers that hold
    something.
    """

    questions: int
    answered: int
    denotation: float
    hits1: float
    exact: float
    includes: float
    f1: float

    @classmethod
    def of(cls, judged: Sequence[Right], answered: int) -> Scores:
        """The totals of what was judged."""
        many = max(len(judged), 1)

        def share(values: Sequence[float]) -> float:
            return 100.0 * sum(values) / many

        return cls(
            len(judged),
            answered,
            share([one.denotation for one in judged]),
            share([one.hit for one in judged]),
            share([one.exact for one in judged]),
            share([one.includes for one in judged]),
            share([one.f1 for one in judged]),
        )


@dataclass(frozen=True, slots=True)
class AskReport:
    """An evaluation of `ask`. `str()` is a table, `data()` is for JSON."""

    model: str
    dataset: str
    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()
    demonstrations: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scores(self) -> Scores:
        """The model's."""
        return Scores.of([row.right for row in self.rows], sum(bool(row.given) for row in self.rows))

    @property
    def control(self) -> Scores:
        """The control's: the nearest demonstration, things swapped, no model."""
        return Scores.of([row.control_right for row in self.rows], sum(bool(row.control) for row in self.rows))

    @property
    def statuses(self) -> Mapping[str, int]:
        """How many questions ended how."""
        return dict(Counter(row.status for row in self.rows).most_common())

    @property
    def stages(self) -> Mapping[str, int]:
        """How many attempts failed at which stage."""
        return dict(Counter(stage for row in self.rows for stage in row.stages).most_common())

    def data(self) -> dict[str, Any]:
        """Totals and rows, for JSON."""
        calls, prompts, completions, seconds = self._costs()
        return {
            "model": self.model,
            "dataset": self.dataset,
            "demonstrations": self.demonstrations,
            "options": dict(self.options),
            "scores": asdict(self.scores),
            "control": asdict(self.control),
            "papers": {name: dict(figures) for name, figures in PAPERS.get(self.dataset, {}).items()},
            "statuses": dict(self.statuses),
            "stages": dict(self.stages),
            "calls": calls,
            "prompt_tokens": prompts,
            "completion_tokens": completions,
            "seconds": seconds,
            "left_out": list(self.left_out),
            "rows": [row.data() for row in self.rows],
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows of texts: a measure a row, the papers' figures beside; a cell that nobody
        measured is empty.
        """
        papers = PAPERS.get(self.dataset, {})
        names = sorted({name for figures in papers.values() for name in figures}, reverse=True)
        columns = ["%", self.model, "control", *names]
        ours, control = asdict(self.scores), asdict(self.control)
        rows = []
        for key, words in MEASURES.items():
            beside = papers.get(key, {})
            rows.append(
                [words, f"{ours[key]:.1f}", f"{control[key]:.1f}", *(f"{beside[n]:g}" if n in beside else "" for n in names)]
            )
        many = max(len(self.rows), 1)
        rows.append(
            ["answered", f"{100 * ours['answered'] / many:.1f}", f"{100 * control['answered'] / many:.1f}", *("" for _ in names)]
        )
        return columns, rows

    def notes(self) -> list[str]:
        """What stands under the table: how questions ended, what it cost, what was left out."""
        calls, prompts, completions, seconds = self._costs()
        tokens = "unknown" if prompts is None else f"{prompts:,} of prompts, {completions or 0:,} of completions"
        times = sorted(row.seconds for row in self.rows) or [0.0]
        found = [
            f"{len(self.rows):,} questions, {self.demonstrations:,} demonstrations: "
            + ", ".join(f"{many:,} {status}" for status, many in self.statuses.items()),
            f"calls {calls:,}; tokens {tokens}; {seconds:.1f} s, median {median(times):.2f} s a question",
            "control: no model, the program of the nearest demonstration with its things swapped",
        ]
        if self.stages:
            found.append("attempts that failed: " + ", ".join(f"{many:,} in {stage}" for stage, many in self.stages.items()))
        if self.left_out:
            found.append(f"{len(self.left_out):,} records left out, the first: {self.left_out[0]}")
        return found

    def _costs(self) -> tuple[int, int | None, int | None, float]:
        prompts = [row.prompt_tokens for row in self.rows if row.prompt_tokens is not None]
        completions = [row.completion_tokens for row in self.rows if row.completion_tokens is not None]
        return (
            sum(row.calls for row in self.rows),
            sum(prompts) if prompts else None,
            sum(completions) if completions else None,
            sum(row.seconds for row in self.rows),
        )

    def __str__(self) -> str:
        columns, rows = self.table()
        widths = [max(len(row[at]) for row in [columns, *rows]) for at in range(len(columns))]

        def line(cells: Sequence[str]) -> str:
            return "  ".join(
                cell.ljust(w) if at == 0 else cell.rjust(w) for at, (cell, w) in enumerate(zip(cells, widths, strict=True))
            )

        return "\n".join([line(columns).rstrip(), *(line(row).rstrip() for row in rows), *self.notes()])

    def __repr__(self) -> str:
        return f"<AskReport of {self.model}: {len(self.rows)} questions, denotation {self.scores.denotation:.1f} %>"

    def write(self, path: str) -> None:
        """Write totals and rows as JSON."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.data(), file, ensure_ascii=False, indent=1)
            file.write("\n")
