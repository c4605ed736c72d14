"""What a set of questions is made of: the shares of kinds, hops, types of answers and categories,
and how long questions and programs are, as KQA Pro's Figure 3 and Appendix G have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from condgraph.questions.choices import UNKNOWN_CHOICE
from condgraph.questions.record import CATEGORIES, Question

#: Hops from here on are counted together (Figure 3).
MANY_HOPS: Final = 5


class Distribution:
    """Counts questions as they pass; what it holds does not grow, but for a number for each
    different answer.

    `kinds`, `hops` (the last stands for itself and more), `answers` (their types) and `categories`
    are counts; the means are those of the questions that have such a program.
    """

    def __init__(self, questions: Iterable[Question] = ()) -> None:
        self.questions, self.words, self.ten_choices = 0, 0, 0
        self.kinds, self.answers, self.categories = Counter[str](), Counter[str](), Counter[str]()
        self.hops = Counter[int]()
        self.steps, self.sparql = Counter[int](), Counter[int]()
        self._different: set[int] = set()
        for question in questions:
            self.add(question)

    def add(self, question: Question) -> None:
        """Count a question."""
        self.questions += 1
        self.words += len(question.question.split())
        self.ten_choices += UNKNOWN_CHOICE not in question.choices
        self.kinds[question.kind] += 1
        self.hops[min(question.hops, MANY_HOPS)] += 1
        self.answers[question.answer_type or "not told"] += 1
        self.categories.update(question.categories)
        if question.program:
            self.steps[len(question.program)] += 1
        if question.sparql:
            self.sparql[len(question.sparql.split())] += 1
        self._different.add(hash(question.answer))

    def counted(self, questions: Iterable[Question]) -> Iterator[Question]:
        """The questions, counted as they pass."""
        for question in questions:
            self.add(question)
            yield question

    def rows(self) -> list[tuple[str, str, float]]:
        """What is counted, of what, and how much: a share from 0 to 1, or a mean."""
        total = max(self.questions, 1)
        found = [("kind", kind, count / total) for kind, count in self.kinds.most_common()]
        found += [("hops", _hops(hops), self.hops[hops] / total) for hops in sorted(self.hops)]
        found += [("answer", name, count / total) for name, count in self.answers.most_common()]
        found += [("category", name, self.categories[name] / total) for name in CATEGORIES if self.categories[name]]
        found += [("choices", "ten of ten", self.ten_choices / total), ("answers", "different", len(self._different) / total)]
        found.append(("mean", "words of a question", self.words / total))
        found += [("mean", f"{what} of a program", _mean(counts)) for what, counts in (("steps", self.steps),) if counts]
        found += [("mean", "words of its SPARQL", _mean(self.sparql))] if self.sparql else []
        return found

    def __str__(self) -> str:
        lines = [f"{self.questions} questions"]
        for what, name, amount in self.rows():
            shown = f"{amount:8.2f}  " if what == "mean" else f"{100 * amount:8.2f} %"
            lines.append(f"{what:10}{name:24}{shown}".rstrip())
        return "\n".join(lines)


def _hops(hops: int) -> str:
    return f"{hops} or more" if hops == MANY_HOPS else str(hops)


def _mean(counts: Counter[int]) -> float:
    return sum(value * count for value, count in counts.items()) / counts.total()
