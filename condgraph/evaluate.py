"""Evaluate answers to questions in words (`evaluate_ask`), on questions with known answers (`read_cases`), by the
measures of the field, and against a control without a model.
"""

from __future__ import annotations

import json
import os
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any, Final, overload

from condgraph.ask.prompt import Mention, known_of, masked, mentions_in
from condgraph.engine.bounds import check, within
from condgraph.engine.errors import CondgraphError, InterruptedQueryError, LoadError, OptionError, nearest, shortened

if TYPE_CHECKING:
    from condgraph.graph import Graph
    from condgraph.models.chat import ChatModel


# -- questions with known answers --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """A question with the texts of its right answer, and the source it is about, if it names one."""

    question: str
    answers: tuple[str, ...]
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Cases(Sequence[Case]):
    """Questions in the order of their file. `dataset` is the name of the data set, "" for your own questions;
    `left_out` lists the records of the file that cannot be asked, with a reason.
    """

    items: tuple[Case, ...]
    dataset: str = ""
    left_out: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Case]: ...
    def __getitem__(self, index: int | slice) -> Case | Sequence[Case]:
        return self.items[index]

    def sample(self, many: int, seed: int = 0) -> Cases:
        """Return `many` of the questions, drawn at random by `seed`, in their order."""
        if many >= len(self.items):
            return self
        drawn = sorted(Random(seed).sample(range(len(self.items)), many))
        return Cases(tuple(self.items[at] for at in drawn), self.dataset, self.left_out)


# -- readers -----------------------------------------------------------------------------------------
# jsonl          {"question": ..., "answers": [...], "source": ...}, a line each
# metaqa         question<TAB>answer|answer, entities in brackets
# wtq            id, utterance, context, targetValue, separated by tabs; the context is the source
# cronquestions  JSON lines with question, answers, template, relations
# pathquestions  question<TAB>answer(answer/answer/)<TAB>path
# movies         JSON lines with question and the answer that two models' Cypher agrees on


#: The maximum length of a question, in characters.
MAX_QUESTION: Final = 100_000
_WTQ_HEAD: Final = "id\tutterance\tcontext\ttargetValue"
_NODE: Final = "node:"

#: Reads a line and returns a case, or the reason why it is left out. Raises `ValueError` for a damaged line.
Reader = Callable[[str], Case | str]


def read_cases(path: str | os.PathLike[str], format: str | None = None) -> Cases:
    """Read the questions of a file. The format is recognised by the first line unless `format` is given.

    Raises `LoadError`, with the line, for a damaged line, and `OptionError` for an unknown format. Records whose
    answer is not a list of texts are left out and listed (`Cases.left_out`).
    """
    place = Path(path)
    if format is not None and format not in FORMATS:
        raise OptionError(f"unknown question format {format!r}", candidates=nearest(format, FORMATS), hint=", ".join(FORMATS))
    items: list[Case] = []
    left_out: list[str] = []
    reader: Reader | None = None
    for number, line in _lines(place):
        if reader is None:
            format = format or _recognised(line, place)
            reader = FORMATS[format]
            if format == "wtq" and line == _WTQ_HEAD:
                continue
        try:
            if len(line) > MAX_QUESTION * 10:
                raise ValueError(f"the line has {len(line):,} characters")
            record = reader(line)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise LoadError(f"no question of {format}: {type(error).__name__} {error}", file=place.name, row=number) from None
        if isinstance(record, str):
            left_out.append(f"line {number}: {record}")
        else:
            items.append(record)
    if reader is None:
        raise LoadError("it has no questions", file=place.name)
    return Cases(tuple(items), _dataset(format or "", place), tuple(left_out))


def _lines(place: Path) -> Iterator[tuple[int, str]]:
    try:
        with place.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except OSError as error:
        raise LoadError(f"it cannot be read: {error.strerror}", file=str(place)) from None
    except UnicodeDecodeError:
        raise LoadError("it is not UTF-8 text", file=place.name) from None


def _recognised(line: str, place: Path) -> str:
    if line.lstrip().startswith("{"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return "jsonl"
        return "movies" if "opus" in record else "cronquestions" if {"template", "answers"} <= set(record) else "jsonl"
    if line == _WTQ_HEAD:
        return "wtq"
    columns = line.split("\t")
    if len(columns) == 3 and "#" in columns[2]:
        return "pathquestions"
    if len(columns) == 2:
        return "metaqa"
    raise LoadError(
        f"its first line is not a question in a known format: {shortened(line, 100)!r}",
        file=place.name,
        hint=", ".join(FORMATS),
    )


def _dataset(format: str, place: Path) -> str:
    """Return the name of the data set, with the number of hops if the data set is divided by hops."""
    if format not in ("metaqa", "pathquestions"):
        return "" if format == "jsonl" else format
    match = re.search(r"([123])[-_ ]?h(?:op)?s?\b", "/".join(place.resolve().parts[-3:]).lower())
    return f"{format}-{match[1]}" if match else format


# -- one line of each format -------------------------------------------------------------------------


def _question(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_QUESTION:
        raise ValueError("the question is not a text, is empty, or is far too long")
    return value.strip()


def _jsonl(line: str) -> Case | str:
    record = json.loads(line)
    answers, source = record["answers"], record.get("source")
    if isinstance(answers, str) or not isinstance(answers, list):
        raise TypeError("answers is a list of texts")
    if not all(isinstance(answer, str | int | float) and not isinstance(answer, bool) for answer in answers):
        return "an answer is neither a text nor a number"
    if source is not None and not isinstance(source, str):
        raise TypeError("source is a text")
    return Case(_question(record["question"]), tuple(str(answer) for answer in answers), source)


def _metaqa(line: str) -> Case | str:
    question, mark, answers = line.partition("\t")
    if not mark:
        raise ValueError("it has no tab")
    return Case(_question(question), tuple(item for item in answers.split("|") if item))


def _wtq(line: str) -> Case | str:
    _, question, source, answers = line.split("\t")
    return Case(_question(_unescaped(question)), tuple(_unescaped(item) for item in answers.split("|")), source)


def _unescaped(text: str) -> str:
    """Unescape a cell of WikiTableQuestions: `\\n` is a line break, `\\p` a bar, `\\\\` a backslash."""
    return re.sub(r"\\([np\\])", lambda match: {"n": "\n", "p": "|", "\\": "\\"}[match[1]], text)


def _pathquestions(line: str) -> Case | str:
    question, answers, _ = line.split("\t")
    _, opened, inside = answers.rstrip().partition("(")
    if not opened or not inside.endswith(")"):
        raise ValueError("its answers are not in parentheses")
    return Case(_question(question), tuple(item for item in inside[:-1].split("/") if item))


def _movies(line: str) -> Case | str:
    record: Mapping[str, Any] = json.loads(line)
    question, answer, rows = _question(record["question"]), record.get("answer"), record.get("rows")
    if answer is None and isinstance(rows, list):
        if any(len(row) != 1 for row in rows):
            return "its answer is a table of several columns"
        answer = [row[0] for row in rows]
    if not isinstance(answer, list) or not all(
        isinstance(item, str | int | float) and not isinstance(item, bool) for item in answer
    ):
        return "its answer is not a list of texts and numbers"
    return Case(question, tuple(dict.fromkeys(str(item).removeprefix(_NODE) for item in answer)))


#: The readers of the formats, by name.
FORMATS: Final[Mapping[str, Reader]] = {
    "jsonl": _jsonl,
    "metaqa": _metaqa,
    "wtq": _wtq,
    "cronquestions": _jsonl,
    "pathquestions": _pathquestions,
    "movies": _movies,
}


# -- measures ----------------------------------------------------------------------------------------
# Denotation accuracy, Hits@1, exact sets, F1.


_NUMBER: Final = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?")
_YEAR: Final = re.compile(r"-?\d{1,4}")
_YEARS: Final = re.compile(r"(-?\d{1,4})/(-?\d{1,4})")
_GROUPS: Final = re.compile(r"[-+−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def normalised(text: str) -> str:
    """Normalise a text for comparing answers: without case, accents, quotes, surrounding punctuation and repeated
    spaces; a number as its value.

    >>> normalised(' “São Paulo”. '), normalised("1,200.50"), normalised("1200.5")
    ('sao paulo', '1200.5', '1200.5')
    """
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter)).casefold()
    plain = re.sub(r"[‐‑‒–—−]", "-", plain)
    plain = re.sub(r"[\"'`‘’“”«»]", "", plain)
    plain = " ".join(plain.split()).strip(" .,;:!?")
    if len(plain) <= 40 and _NUMBER.fullmatch(plain) and ("," not in plain or _GROUPS.fullmatch(plain)):
        try:
            number = Decimal(plain.replace(",", ""))
        except InvalidOperation:
            return plain
        return "0" if not number else format(number.normalize(), "f")
    return plain


def single_years(texts: Sequence[str]) -> list[str]:
    """Replace spans of whole years by each of their years; other texts stay unchanged.

    >>> single_years(["1990/1992", "2001", "2010-05/2011"])
    ['1990', '1991', '1992', '2001', '2010-05/2011']
    """
    result: list[str] = []
    for text in texts:
        span = _YEARS.fullmatch(text)
        result.extend([text] if span is None or int(span[1]) > int(span[2]) else map(str, range(int(span[1]), int(span[2]) + 1)))
    return result


@dataclass(frozen=True, slots=True)
class Right:
    """The correctness of an answer, by several measures.

    - `denotation`: whether the sets of normalised texts are equal (TrustUQA, section 4.1)
    - `hit`: whether the first text of the answer is among the right ones
    - `exact`: whether the sets of texts are equal
    - `includes`: whether the answer contains all right texts (TrustUQA, Table 3)
    - `f1`: the harmonic mean of precision and recall of the sets of normalised texts, from 0 to 1
    """

    denotation: bool = False
    hit: bool = False
    exact: bool = False
    includes: bool = False
    f1: float = 0.0


def judge(given: Sequence[str] | None, wanted: Sequence[str]) -> Right:
    """Judge the texts of an answer; None means no answer, which is never right.

    If all right texts are years (CronQuestions lists each year of a span), a span of years in the answer counts as
    its years.
    """
    if given is None:
        return Right()
    if wanted and all(_YEAR.fullmatch(text) for text in wanted):
        given = single_years(given)
    answered, right = {normalised(text) for text in given}, {normalised(text) for text in wanted}
    both = len(answered & right)
    f1 = 1.0 if not answered and not right else 2 * both / (len(answered) + len(right))
    return Right(
        denotation=answered == right,
        hit=bool(given) and normalised(given[0]) in right,
        exact=set(given) == set(wanted),
        includes=right <= answered,
        f1=f1,
    )


# -- figures of the papers ---------------------------------------------------------------------------
# In percent. They were measured with other models, on whole test sets and on the papers' graphs. Next to a figure from
# here they show the state of the field, not who wins.


#: The papers' figures by data set and measure. TrustUQA: Tables 2, 3 and 4 (GPT-3.5); SimGRAG: Table 1 (Llama 3 70B).
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


# -- the report --------------------------------------------------------------------------------------
# One row for each question, and the totals of the model and the control.


#: The measures, with their titles in tables.
MEASURES: Final[Mapping[str, str]] = {
    "denotation": "denotation accuracy",
    "hits1": "Hits@1",
    "exact": "exact sets",
    "includes": "includes all right ones",
    "f1": "F1 of sets",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One question: the right answer, the answer, its status and correctness, and the same for the control; and the
    calls, tokens (None if the model does not report them) and seconds of the model.
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
        """Return the fields as values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Scores:
    """Totals of the model or the control, in percent of all questions. `answered` is the number of answers that are
    not empty.
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
        """Compute the totals of judged answers."""
        count = max(len(judged), 1)

        def share(values: Sequence[float]) -> float:
            return 100.0 * sum(values) / count

        return cls(
            len(judged),
            answered,
            share([item.denotation for item in judged]),
            share([item.hit for item in judged]),
            share([item.exact for item in judged]),
            share([item.includes for item in judged]),
            share([item.f1 for item in judged]),
        )


@dataclass(frozen=True, slots=True)
class AskReport:
    """The result of an evaluation of `ask`. `str()` is a table, `data()` is for JSON."""

    model: str
    dataset: str
    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()
    demonstrations: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scores(self) -> Scores:
        """The totals of the model."""
        return Scores.of([row.right for row in self.rows], sum(bool(row.given) for row in self.rows))

    @property
    def control(self) -> Scores:
        """The totals of the control: the nearest demonstration with its entities replaced, without a model."""
        return Scores.of([row.control_right for row in self.rows], sum(bool(row.control) for row in self.rows))

    @property
    def statuses(self) -> Mapping[str, int]:
        """The number of questions with each status."""
        return dict(Counter(row.status for row in self.rows).most_common())

    @property
    def stages(self) -> Mapping[str, int]:
        """The number of failed attempts at each stage."""
        return dict(Counter(stage for row in self.rows for stage in row.stages).most_common())

    def data(self) -> dict[str, Any]:
        """Return totals and rows as values for JSON."""
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
        """Return the columns and rows of a table of texts: one row for each measure, with the papers' figures. Cells
        without a figure are empty.
        """
        papers = PAPERS.get(self.dataset, {})
        names = sorted({name for figures in papers.values() for name in figures}, reverse=True)
        columns = ["%", self.model, "control", *names]
        model, control = asdict(self.scores), asdict(self.control)
        rows = []
        for key, words in MEASURES.items():
            figures_of_papers = papers.get(key, {})
            rows.append(
                [
                    words,
                    f"{model[key]:.1f}",
                    f"{control[key]:.1f}",
                    *(f"{figures_of_papers[n]:g}" if n in figures_of_papers else "" for n in names),
                ]
            )
        count = max(len(self.rows), 1)
        rows.append(
            ["answered", f"{100 * model['answered'] / count:.1f}", f"{100 * control['answered'] / count:.1f}", *("" for _ in names)]
        )
        return columns, rows

    def notes(self) -> list[str]:
        """Return the notes below the table: the statuses of the questions, the costs, and what was left out."""
        calls, prompts, completions, seconds = self._costs()
        tokens = "unknown" if prompts is None else f"{prompts:,} of prompts, {completions or 0:,} of completions"
        times = sorted(row.seconds for row in self.rows) or [0.0]
        result = [
            f"{len(self.rows):,} questions, {self.demonstrations:,} demonstrations: "
            + ", ".join(f"{many:,} {status}" for status, many in self.statuses.items()),
            f"calls {calls:,}; tokens {tokens}; {seconds:.1f} s, median {median(times):.2f} s a question",
            "control: no model, the program of the nearest demonstration with its things swapped",
        ]
        if self.stages:
            result.append("attempts that failed: " + ", ".join(f"{many:,} in {stage}" for stage, many in self.stages.items()))
        if self.left_out:
            result.append(f"{len(self.left_out):,} records left out, the first: {self.left_out[0]}")
        return result

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


# -- the control without a model ---------------------------------------------------------------------
# The program of the nearest demonstration, with its entities and values replaced by those of the question. The contribution
# of a model is its lead over this control.


#: The number of demonstrations that are tried until the entities of one can be replaced.
_MAX_TRIED = 8
_BARE_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Control:
    """Answers questions by the demonstrations of a graph, without a model."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def answer(self, question: str, source: str | None = None) -> tuple[list[str] | None, str]:
        """Return the texts of the answer, or None, and the program that was run. A demonstration of the question
        itself is ignored.
        """
        known_names = known_of(self._graph._store_of(None), self._graph._survey())
        mentions = mentions_in(question, known_names)
        for similar in self._graph.demos.similar(masked(question, mentions), _MAX_TRIED, without=" ".join(question.split())):
            demo = similar.demo
            program = swapped(demo.program, demo.question, mentions_in(demo.question, known_names), question, mentions)
            if program is None:
                continue
            where = source if source is not None else demo.source
            options: dict[str, Any] = {} if where is None or demo.language != "query" else {"source": where}
            try:
                return self._graph.query(program, **options).texts, program
            except InterruptedQueryError:
                raise
            except CondgraphError:
                return None, program
        return None, ""


def swapped(program: str, old: str, old_things: Sequence[Mention], new: str, new_things: Sequence[Mention]) -> str | None:
    """Return the program of one question with its entities and numbers replaced by those of another question, in
    order. Returns None if their counts differ, or if none of them is in the program.
    """
    if len(old_things) != len(new_things):
        return None
    swaps: dict[str, str] = {}
    for before, after in zip(old_things, new_things, strict=True):
        name = after.names[0] if after.names else after.text
        for text in (*before.names, before.text):
            swaps.setdefault(text.casefold(), name)
    numbers = _other_numbers(old, old_things), _other_numbers(new, new_things)
    if len(numbers[0]) == len(numbers[1]):
        for before_number, after_number in zip(*numbers, strict=True):
            swaps.setdefault(before_number, after_number)
    if not swaps:
        # Neither question mentions an entity or a number.
        return program

    def swap(match: re.Match[str]) -> str:
        name = swaps[match[0].casefold()]
        quote = program[match.start() - 1 : match.start()]
        return name.replace("\\", "\\\\").replace(quote, "\\" + quote) if quote in ("'", '"') else name

    texts = sorted(swaps, key=len, reverse=True)
    result, count = re.subn(rf"(?<!\w)(?:{'|'.join(map(re.escape, texts))})(?!\w)", swap, program, flags=re.IGNORECASE)
    return result if count else None


def _other_numbers(question: str, mentions: Sequence[Mention]) -> list[str]:
    """Return the numbers of a question outside the entities it mentions."""
    return [
        match[0]
        for match in _BARE_NUMBER.finditer(question)
        if not any(mention.start <= match.start() < mention.end for mention in mentions)
    ]


# -- evaluation --------------------------------------------------------------------------------------


def evaluate_ask(
    graph: Graph,
    cases: Sequence[Case],
    llm: Any,
    *,
    on_row: Callable[[Row], object] | None = None,
    timeout: float | None = None,
    **options: Any,
) -> AskReport:
    """Ask every question of `cases` (from `read_cases`) and judge the answers, together with those of a control
    without a model: the program of the nearest demonstration with its entities replaced.

    `llm` and `options` are those of `Graph.ask`, except `transcript`: to record, pass a `Recording` as the model.
    Demonstrations are those of the graph. The source of a question, if given, restricts the question to it; it may be
    the end of a path. `timeout` is in seconds, for all questions together. `on_row` is called with each row.

    Only `DeadlineError`, `CancelledError` and `OptionError` end an evaluation early; a model's mistakes are counted.
    """
    from condgraph.models.adapters import model_of

    model = model_of(llm)
    if "transcript" in options:
        raise OptionError("transcript is not an option of an evaluation", hint="llm=Recording(model_of(...), path)")
    control = Control(graph)
    rows: list[Row] = []
    with within(timeout):
        sources = [source.name for source in graph.schema().sources]
        for case in cases:
            check()
            source = _source(case.source, sources)
            row = _run_case(graph, case, source, model, control, options)
            rows.append(row)
            if on_row is not None:
                on_row(row)
    plain = {name: value for name, value in options.items() if isinstance(value, str | int | float | bool)}
    dataset, left_out = (cases.dataset, cases.left_out) if isinstance(cases, Cases) else ("", ())
    return AskReport(model.name, dataset, tuple(rows), left_out, len(graph.demos), plain)


def _source(wanted: str | None, sources: Sequence[str]) -> str | None:
    """Return the source of a graph that a question names, by the source's name or by the end of its path."""
    if wanted is None or wanted in sources:
        return wanted
    parts = wanted.removesuffix(".csv").removesuffix(".tsv").split("/")
    for skipped in range(len(parts)):
        end = "/".join(parts[skipped:])
        matches = [name for name in sources if name.removesuffix(".csv").removesuffix(".tsv") in (end, end.replace("/", "-"))]
        if len(matches) == 1:
            return matches[0]
    raise OptionError(
        f"the graph has no source {wanted!r}, which a question is about",
        candidates=nearest(wanted, sources),
        hint="load it by that name",
    )


def _run_case(graph: Graph, case: Case, source: str | None, model: ChatModel, control: Control, options: dict[str, Any]) -> Row:
    begin = time.perf_counter()
    result = graph.ask(case.question, model, **{**options, **({} if source is None else {"source": source})})
    seconds = time.perf_counter() - begin
    texts = None if result.answer is None else tuple(result.answer.texts)
    control_texts, program = control.answer(case.question, source)
    last = (
        next((attempt for attempt in reversed(result.attempts) if attempt.answer is result.answer), None)
        or (result.attempts or (None,))[-1]
    )
    return Row(
        case.question,
        case.answers,
        texts,
        result.status,
        # A doubtful answer may answer another question, and never counts as right.
        Right() if result.status == "doubtful" else judge(texts, case.answers),
        None if control_texts is None else tuple(control_texts),
        judge(control_texts, case.answers),
        "" if last is None else last.program,
        program,
        result.source if source is None else source,
        tuple(attempt.stage for attempt in result.attempts if attempt.stage is not None),
        len(result.attempts),
        result.calls,
        result.usage.prompt_tokens,
        result.usage.completion_tokens,
        seconds,
        "" if result.answer is not None or not result.attempts else result.attempts[-1].error,
    )
