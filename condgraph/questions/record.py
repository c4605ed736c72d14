"""Questions as records, as files (JSON of the data set, JSON lines, CSV, text), and in splits."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Final

from condgraph.engine.delimited import csv_line
from condgraph.engine.errors import LoadError, OptionError, nearest
from condgraph.questions.choices import UNKNOWN_CHOICE, equal
from condgraph.questions.description import Call

# -- records ---------------------------------------------------------------------------------------


#: The categories of KQA Pro's Table 5, without "Zero-shot", which depends on a split (`split`).
CATEGORIES: Final = ("Multi-hop", "Qualifier", "Comparison", "Logical", "Count", "Verify")

#: The types of answers.
ANSWERS: Final = ("entity", "relation", "count", "yes or no", "number", "time", "text")


@dataclass(frozen=True, slots=True)
class Question:
    """A question with exactly one right answer.

    `program` is KoPL as the data set's JSON, `kopl` its text, `serial` the serialisation of the baselines; they are
    empty if only an LLM query expresses the question (sums of a table, for example). `sparql` and `cypher` (with
    `parameters`) are what `explain` returns for RDF stores and Neo4j, `pattern` are the triples of a graph pattern;
    None if there is none. `hops` counts relations, attributes, qualifiers and comparisons. `canonical` is the question
    in template words if `question` is a paraphrase. `fewer` is the reason if there are fewer than ten choices;
    "unknown" replaces the missing ones. `answer_type` is one of `ANSWERS`.
    """

    id: str
    question: str
    answer: str
    kind: str
    hops: int
    categories: tuple[str, ...]
    choices: tuple[str, ...]
    program: list[dict[str, Any]] = field(default_factory=list)
    sparql: str | None = None
    cypher: str | None = None
    parameters: dict[str, Any] | None = None
    llm_query: str | None = None
    pattern: tuple[tuple[str, str, str], ...] | None = None
    entities: tuple[str, ...] = ()
    canonical: str | None = None
    fewer: str | None = None
    answer_type: str = ""

    @property
    def language(self) -> str:
        """The language of the program: "kopl" or "llm_query"."""
        return "kopl" if self.program else "llm_query"

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions of the program in order; for an LLM query those of its lines."""
        if self.program:
            return tuple(step["function"] for step in self.program)
        lines = (self.llm_query or "").splitlines()
        return tuple(line.partition('"')[2].partition("(")[0] for line in lines)

    @property
    def kopl(self) -> str:
        """The program in KoPL's text form, with every text quoted."""
        return " ".join(
            f"{step['function']}({', '.join(json.dumps(text, ensure_ascii=False) for text in step['inputs'])})"
            for step in self.program
        )

    @property
    def serial(self) -> str:
        """The program in the form of the data set's baselines; empty if a text in it contains one of their separators."""
        texts = [text for step in self.program for text in step["inputs"]]
        if any("<arg>" in text or "<func>" in text for text in texts):
            return ""
        return " <func> ".join(" <arg> ".join([step["function"], *step["inputs"]]) for step in self.program)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON values, including `kopl` and `serial`."""
        names = (
            *("id", "question", "canonical", "answer", "answer_type", "choices", "fewer", "kind", "hops", "categories", "program"),
            *("kopl", "serial", "sparql", "cypher", "parameters", "llm_query", "pattern", "entities"),
        )
        values = {name: getattr(self, name) for name in names}
        return {name: _listed(values[name]) for name in names if name not in ("canonical", "fewer") or values[name] is not None}

    @classmethod
    def of(cls, record: dict[str, Any]) -> Question:
        """Return the question from the result of `as_dict`."""
        names = ("id", "question", "answer", "kind", "hops", "program", "sparql", "cypher", "parameters", "llm_query")
        pattern = record.get("pattern")
        return cls(
            **{name: record[name] for name in names},
            categories=tuple(record["categories"]),
            choices=tuple(record["choices"]),
            pattern=None if pattern is None else tuple((s, p, o) for s, p, o in pattern),
            entities=tuple(record["entities"]),
            canonical=record.get("canonical"),
            fewer=record.get("fewer"),
            answer_type=record.get("answer_type", ""),
        )


def _listed(value: Any) -> Any:
    """Return tuples as lists."""
    return list(map(_listed, value)) if isinstance(value, tuple) else value


def categories_of(calls: Sequence[Call], hops: int) -> tuple[str, ...]:
    """Return the categories of a program."""
    functions = {function for function, _ in calls}
    compares = functions & {"SelectBetween", "SelectAmong"} or any(
        function.startswith(("Filter", "QFilter", "Verify")) and texts[-1] in ("<", ">", "<=", ">=", "!=")
        for function, texts in calls
    )
    applies = {
        "Multi-hop": hops > 1,
        "Qualifier": any(
            "Qualifier" in function or function.startswith("QFilter") or function.endswith("Condition") for function in functions
        ),
        "Comparison": bool(compares),
        "Logical": bool(functions & {"And", "Or", "Except"}),
        "Count": "Count" in functions,
        "Verify": any(function.startswith("Verify") for function in functions),
    }
    return tuple(name for name in CATEGORIES if applies[name])


# -- files -----------------------------------------------------------------------------------------
FORMATS: Final = ("jsonl", "json", "csv", "text")
_COLUMNS: Final = ("id", "question", "answer", "choices", "kind", "hops", "kopl", "sparql", "cypher", "llm_query")


def kqapro(question: Question) -> dict[str, Any]:
    """Return a record in the format of the data set, which the tools of its baselines read."""
    return {
        "question": question.question,
        "choices": list(question.choices),
        "program": question.program,
        "sparql": question.sparql or "",
        "answer": question.answer,
    }


def write(questions: Iterable[Question], to: IO[str], form: str = "jsonl") -> int:
    """Write questions as they are generated, and return their number.

    "json" is the list of the data set, "jsonl" one complete record per line, "csv" the texts of a record in columns,
    with semicolons between choices, "text" question and answer separated by a tab. Raises `OptionError` for another
    `form`.
    """
    if form not in FORMATS:
        raise OptionError(f"questions are written as {', '.join(FORMATS)}, not {form!r}", candidates=nearest(form, FORMATS))
    count = 0
    if form == "csv":
        to.write(csv_line(_COLUMNS))
    elif form == "json":
        to.write("[")
    for count, question in enumerate(questions, 1):
        if form == "csv":
            values = {**question.as_dict(), "choices": ";".join(question.choices)}
            to.write(csv_line(values[name] for name in _COLUMNS))
        elif form == "json":
            to.write(("" if count == 1 else ",") + "\n" + json.dumps(kqapro(question), ensure_ascii=False))
        elif form == "text":
            to.write(f"{question.question}\t{question.answer}\n")
        else:
            to.write(json.dumps(question.as_dict(), ensure_ascii=False) + "\n")
    if form == "json":
        to.write("\n]\n")
    return count


def read(lines: Iterable[str]) -> Iterator[Question]:
    """Yield the questions of JSON lines; raises `LoadError`, with the line number, for an invalid line."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                question = Question.of(json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise LoadError(f"it is not a question: {type(error).__name__} {error}", row=number) from None
            yield question


# -- distribution ------------------------------------------------------------------------------------
# The composition of a set of questions: the shares of kinds, hops, types of answers and categories, and
# the lengths of questions and programs, as in KQA Pro's Figure 3 and Appendix G.


#: This number of hops and all above are counted together (Figure 3).
MANY_HOPS: Final = 5


class Distribution:
    """Counts questions. Its memory does not grow, except for one number per distinct answer.

    `kinds`, `hops` (the last includes all above), `answers` (by type) and `categories` are counts; the means are over
    the questions that have such a program.
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
        self.answers[question.answer_type or "unknown"] += 1
        self.categories.update(question.categories)
        if question.program:
            self.steps[len(question.program)] += 1
        if question.sparql:
            self.sparql[len(question.sparql.split())] += 1
        self._different.add(hash(question.answer))

    def counted(self, questions: Iterable[Question]) -> Iterator[Question]:
        """Yield the questions, and count each."""
        for question in questions:
            self.add(question)
            yield question

    def rows(self) -> list[tuple[str, str, float]]:
        """Return rows of (group, name, amount): a share from 0 to 1, or a mean."""
        total = max(self.questions, 1)
        rows = [("kind", kind, count / total) for kind, count in self.kinds.most_common()]
        rows += [("hops", _hops(hops), self.hops[hops] / total) for hops in sorted(self.hops)]
        rows += [("answer", name, count / total) for name, count in self.answers.most_common()]
        rows += [("category", name, self.categories[name] / total) for name in CATEGORIES if self.categories[name]]
        rows += [("choices", "ten of ten", self.ten_choices / total), ("answers", "different", len(self._different) / total)]
        rows.append(("mean", "words of a question", self.words / total))
        for name, counts in (("steps of a program", self.steps), ("words of its SPARQL", self.sparql)):
            if counts:
                rows.append(("mean", name, _mean(counts)))
        return rows

    def __str__(self) -> str:
        lines = [f"{self.questions} questions"]
        for group, name, amount in self.rows():
            shown = f"{amount:8.2f}  " if group == "mean" else f"{100 * amount:8.2f} %"
            lines.append(f"{group:10}{name:24}{shown}".rstrip())
        return "\n".join(lines)


def _hops(hops: int) -> str:
    return f"{hops} or more" if hops == MANY_HOPS else str(hops)


def _mean(counts: Counter[int]) -> float:
    return sum(value * count for value, count in counts.items()) / counts.total()


# -- splits ------------------------------------------------------------------------------------------


#: The shares of train, validation and test in KQA Pro (section 5.1).
PARTS: Final = (("train", 0.8), ("validation", 0.1), ("test", 0.1))
#: The group of questions that name entities of two parts, and would leak those of one part into another.
MIXED: Final = "between"
ZERO_SHOT: Final = "Zero-shot"


def split(questions: Sequence[Question], *, by: str = "random", seed: int = 0) -> dict[str, list[Question]]:
    """Split questions into train, validation and test, about 8 to 1 to 1; every question is in one part.

    `by="functions"` is compositional: no sequence of functions is in two parts, and every function in validation and
    test is in train. With `by="entities"` no two parts name the same entity; questions that name entities of two parts
    are in a fourth group, "between". Raises `OptionError` for another `by`.
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
    parts: dict[str, list[Question]] = {name: [] for name, _ in PARTS}
    sizes = {name: share * len(questions) for name, share in PARTS}
    for item in order:
        # Choose the part that lacks most, so that large groups are in train.
        name = max(sizes, key=lambda name: sizes[name] - len(parts[name]))
        parts[name] += groups[item]
    return parts


def _with_all_functions(parts: dict[str, list[Question]]) -> dict[str, list[Question]]:
    """Move questions with functions that train lacks into train: tests are about new combinations of known functions."""
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
    begin = 0
    for name, share in PARTS[1:]:
        # Questions with several entities are rarely within one part, so each part gets more entities.
        end = begin + round(len(names) * share * 1.5)
        part_of |= dict.fromkeys(names[begin:end], name)
        begin = end
    questions_by_part: dict[str, list[Question]] = {name: [] for name in (*(name for name, _ in PARTS), MIXED)}
    for question in questions:
        part_names = {part_of.get(name, "train") for name in question.entities} or {"train"}
        questions_by_part[part_names.pop() if len(part_names) == 1 else MIXED].append(question)
    return questions_by_part


def accuracy(
    questions: Iterable[Question], predictions: Mapping[str, str], *, train: Iterable[Question] = ()
) -> dict[str, tuple[int, int]]:
    """Count right answers and all answers by KQA Pro's scorer: for all questions ("Overall"), by category (Table 5;
    "Zero-shot" are answers that no question of `train` has), and by hops ("2-3 hops", Table 9). `predictions` maps ids
    of questions to answers; a missing one is wrong.
    """
    answers = {question.answer for question in train}
    counts: dict[str, list[int]] = {}
    for question in questions:
        is_right = equal(question.answer, predictions.get(question.id, ""))
        keys = ["Overall", *question.categories, _bucket_of(question.hops)]
        if answers and question.answer not in answers:
            keys.append(ZERO_SHOT)
        for key in keys:
            count = counts.setdefault(key, [0, 0])
            count[0] += is_right
            count[1] += 1
    order = ("Overall", *CATEGORIES, ZERO_SHOT, *(key for key in sorted(counts) if key.endswith(("hop", "hops"))))
    return {key: (counts[key][0], counts[key][1]) for key in order if key in counts}


def _bucket_of(hops: int) -> str:
    return "1 hop" if hops < 2 else f"{hops - hops % 2}-{hops - hops % 2 + 1} hops"
