"""Sets of questions: what a set consists of, and its parts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from condgraph.engine.errors import OptionError
from condgraph.questions.choices import UNKNOWN_CHOICE
from condgraph.questions.record import CATEGORIES, Question
from condgraph.questions.score import equal

# -- distribution ------------------------------------------------------------------------------------
# What a set of questions is made of: the shares of kinds, hops, types of answers and categories,
# and how long questions and programs are, as KQA Pro's Figure 3 and Appendix G have it.


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


# -- splits ------------------------------------------------------------------------------------------


#: Train, validation and test, as KQA Pro has them (section 5.1).
PARTS: Final = (("train", 0.8), ("validation", 0.1), ("test", 0.1))
#: Questions that name entities of two parts, and would let one see what is kept for another.
BETWEEN: Final = "between"
ZERO_SHOT: Final = "Zero-shot"


def split(questions: Sequence[Question], *, by: str = "random", seed: int = 0) -> dict[str, list[Question]]:
    """Questions as train, validation and test, 8 to 1 to 1 or near it; every question in one part.

    `by="functions"` is compositional: no sequence of functions is in two parts, and every single
    function of the others is in train. `by="entities"` gives parts that name no entity together, and
    apart from them, under "between", the questions that name entities of two.
    """
    if by == "random":
        return _grouped(questions, lambda question: question.id, seed)
    if by == "functions":
        return _with_all_functions(_grouped(questions, lambda question: question.functions, seed))
    if by == "entities":
        return _by_entities(questions, seed)
    raise OptionError(f"a split is by 'random', 'functions' or 'entities', not {by!r}")


def _grouped(questions: Sequence[Question], key: Callable[[Question], Hashable], seed: int) -> dict[str, list[Question]]:
    groups: dict[Hashable, list[Question]] = {}
    for question in questions:
        groups.setdefault(key(question), []).append(question)
    order = list(groups)
    random.Random(f"split {seed}").shuffle(order)
    found: dict[str, list[Question]] = {name: [] for name, _ in PARTS}
    wanted = {name: share * len(questions) for name, share in PARTS}
    for one in order:
        # Where most is lacking: large groups are in train.
        name = max(wanted, key=lambda name: wanted[name] - len(found[name]))
        found[name] += groups[one]
    return found


def _with_all_functions(parts: dict[str, list[Question]]) -> dict[str, list[Question]]:
    """New combinations of functions that are known: who meets a function first in a test cannot
    know it.
    """
    known = {function for question in parts["train"] for function in question.functions}
    for name, _ in PARTS[1:]:
        new = {question.functions for question in parts[name] if not known.issuperset(question.functions)}
        parts["train"] += [question for question in parts[name] if question.functions in new]
        parts[name] = [question for question in parts[name] if question.functions not in new]
    return parts


def _by_entities(questions: Sequence[Question], seed: int) -> dict[str, list[Question]]:
    names = sorted({name for question in questions for name in question.entities})
    draw = random.Random(f"split {seed}")
    draw.shuffle(names)
    part_of: dict[str, str] = {}
    at = 0
    for name, share in PARTS[1:]:
        # Questions of two entities or more are rarely of one part: more entities make up for it.
        upto = at + round(len(names) * share * 1.5)
        part_of |= dict.fromkeys(names[at:upto], name)
        at = upto
    found: dict[str, list[Question]] = {name: [] for name in (*(name for name, _ in PARTS), BETWEEN)}
    for question in questions:
        parts = {part_of.get(name, "train") for name in question.entities} or {"train"}
        found[parts.pop() if len(parts) == 1 else BETWEEN].append(question)
    return found


def accuracy(
    questions: Iterable[Question], predictions: Mapping[str, str], *, train: Iterable[Question] = ()
) -> dict[str, tuple[int, int]]:
    """How many answers are right, of how many, by KQA Pro's scorer: of all ("Overall"), by category
    (Table 5; "Zero-shot" are answers that no question of `train` has), and by hops ("2-3 hops",
    Table 9). `predictions` are answers by the questions' ids; a missing one is wrong.
    """
    answers = {question.answer for question in train}
    found: dict[str, list[int]] = {}
    for question in questions:
        right = equal(question.answer, predictions.get(question.id, ""))
        keys = ["Overall", *question.categories, _bucket_of(question.hops)]
        if answers and question.answer not in answers:
            keys.append(ZERO_SHOT)
        for key in keys:
            count = found.setdefault(key, [0, 0])
            count[0] += right
            count[1] += 1
    order = ("Overall", *CATEGORIES, ZERO_SHOT, *(key for key in sorted(found) if key.endswith(("hop", "hops"))))
    return {key: (found[key][0], found[key][1]) for key in order if key in found}


def _bucket_of(hops: int) -> str:
    return "1 hop" if hops < 2 else f"{hops - hops % 2}-{hops - hops % 2 + 1} hops"
