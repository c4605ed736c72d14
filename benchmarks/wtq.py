"""LLM queries over WikiTableQuestions: how many published programs give the gold answer, and why
the others do not.

    python benchmarks/wtq.py DATA [--most N] [--wrong FILE] [--causes FILE] [--split training] [--one-graph DIRECTORY]

DATA is a folder with `wikitablequestions` (csv/, data/*.tsv) and `trustuqa_programs/wtq.json`
(question to program, as a model wrote it). A question with several tables is run and scored
with each of them. Programs that are `None` are counted apart. `--one-graph` loads all tables
into one graph (stored in the directory, and reused if it exists) and restricts every program with
`source=`; otherwise each table has its own graph.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.denotation import Item, item, same_denotation
from condgraph.engine.answer import Answer
from condgraph.engine.errors import CondgraphError, UnknownNameError
from condgraph.engine.values import NO_UNIT, format_number

SPLITS = ("training", "pristine-seen-tables", "pristine-unseen-tables")
_NUMBER = re.compile(r"[$€£]?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<=[$€£])\d+(?:\.\d+)?)%?")
#: Answers a program over one table: the table's file and the program to the answer's texts.
Answers = Callable[[Path, str], Sequence[Item]]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its table (a path below the data set's folder), its gold answers and its
    program (None: none was written).
    """

    id: str
    text: str
    table: str
    gold: tuple[str, ...]
    program: str | None


@dataclass(slots=True)
class Score:
    """How many were right, wrong, or ended in an error; errors by code; seconds in all."""

    right: int = 0
    wrong: int = 0
    without: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    misses: list[tuple[Question, str]] = field(default_factory=list)
    classes: Counter[str] = field(default_factory=Counter)
    class_of: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def miss(self, question: Question, why: str, cause: str) -> None:
        """Remember a question that was not answered right."""
        self.misses.append((question, why))
        self.classes[cause] += 1
        self.class_of[question.id] = cause

    @property
    def tried(self) -> int:
        return self.right + self.wrong + self.errors.total()

    def __str__(self) -> str:
        share = 100 * self.right / self.tried if self.tried else 0.0
        errors = ", ".join(f"{code} {times}" for code, times in self.errors.most_common()) or "none"
        return (
            f"{self.right} of {self.tried} programs right ({share:.1f} %), {self.wrong} wrong, errors: {errors}; "
            f"{self.without} questions without a program; "
            f"{1000 * self.seconds / max(self.tried, 1):.1f} ms a program with its table; "
            f"not right by cause: {', '.join(f'{name} {self.classes[name]}' for name in CLASSES)}"
        )


def unescape(text: str) -> str:
    """A field of the data set's TSV files: `\\n`, `\\p` and `\\\\` stand for a line break, a bar
    and a backslash.
    """
    parts = text.split("\\\\")
    return "\\".join(part.replace("\\n", "\n").replace("\\p", "|") for part in parts)


def questions(data: Path, only: str | None = None) -> Iterator[Question]:
    """Every question that the file of programs knows, once a table; of one split where it is named."""
    programs: dict[str, str] = json.loads((data / "trustuqa_programs" / "wtq.json").read_text("utf-8"))
    for split in SPLITS if only is None else (only,):
        path = data / "wikitablequestions" / "data" / f"{split}.tsv"
        if not path.exists():
            continue
        with path.open(encoding="utf-8") as file:
            next(file)
            for line in file:
                ident, text, table, gold = line.rstrip("\n").split("\t")
                program = programs.get(unescape(text))
                if program is not None:
                    answers = tuple(unescape(part) for part in gold.split("|"))
                    yield Question(ident, unescape(text), table, answers, None if program.strip() == "None" else program)


def plain(text: str) -> str:
    """A gold answer in plain form: a number without separators and currency, as the data set's own
    canonical forms have it.
    """
    number = _NUMBER.fullmatch(text.strip())
    return text if number is None else number[1].replace(",", "")


def shown(answer: Answer) -> list[Item]:
    """An answer as the evaluator of the data set takes it: cells with the number they are, computed
    ones without their unit.
    """
    items = []
    for record in answer.data():
        text = record["text"]
        number = format_number(record["number"]) if "number" in record else None
        if number is not None and text == f"{number} {record['unit']}":
            text = number
        items.append(item(text, number if number is not None and record["unit"] == NO_UNIT else None))
    return items


#: What a question that was not answered right is counted as.
CLASSES = ("wrong program", "ambiguous gold", "unsupported function", "ours")
#: Questions looked at by hand whose class the rules of `classify` do not find: the engine should
#: answer them and does not yet.
OURS: frozenset[str] = frozenset()
_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")


def classify(question: Question, why: str, error: CondgraphError | None, found: Sequence[Item]) -> str:
    """Why a question was not answered right, by rules.

    A function that is not native is "unsupported function". Any other typed error is a program that
    is not well formed, or that names what its table does not have: "wrong program". An answer with
    the numbers of the gold answer and other words ("19" for "19 years"), or that is part of it or
    has it as a part ("Holon" for "Holon City Arena"), is "ambiguous gold". The rest computes
    something else than the question asks for: "wrong program".
    """
    if question.id in OURS:
        return "ours"
    if isinstance(error, UnknownNameError) and error.kind == "function":
        return "unsupported function"
    if error is not None or not found:
        return "wrong program"
    given, gold = {one.text for one in found}, {item(text).text for text in question.gold}
    if len(given) == len(gold) == 1:
        (one,), (other,) = given, gold
        same = sorted(_NUMBERS.findall(one)) == sorted(_NUMBERS.findall(other)) != []
        if same or f" {one} " in f" {other} " or f" {other} " in f" {one} ":
            return "ambiguous gold"
    return "wrong program"


def score(asked: Sequence[Question], folder: Path, answers: Answers) -> Score:
    """Run every program on its table below `folder`; typed errors are counted by their code, others
    are bugs and end the run.
    """
    result = Score()
    begin = time.perf_counter()
    for question in asked:
        if question.program is None:
            result.without += 1
            continue
        try:
            found = answers(folder / question.table, question.program)
        except CondgraphError as error:
            result.errors[error.code] += 1
            result.miss(question, f"{error.code}: {error}", classify(question, error.code, error, ()))
            continue
        if same_denotation([item(text, plain(text)) for text in question.gold], found):
            result.right += 1
        else:
            result.wrong += 1
            why = f"gave {[one.text for one in found][:10]}, not {list(question.gold)}"
            result.miss(question, why, classify(question, why, None, found))
    result.seconds = time.perf_counter() - begin
    return result


def engine() -> Answers:
    """The engine as a user calls it; the graph of the table used last is kept."""
    import condgraph

    last: list[tuple[Path, condgraph.Graph]] = []

    def answers(table: Path, program: str) -> Sequence[Item]:
        if not last or last[0][0] != table:
            graph = condgraph.open()
            graph.load(table, format="csv")
            last[:] = [(table, graph)]
        return shown(last[0][1].query(program, language="llm_query", on_unknown="nearest"))

    return answers


def one_graph(folder: Path, tables: Sequence[str], directory: str) -> Answers:
    """All tables in one graph, every program scoped to its own."""
    import condgraph

    graph = condgraph.open(directory)
    try:
        sources = graph.status().sources
    except condgraph.CondgraphError:
        graph.load([folder / table for table in tables], format="csv")
        sources = graph.status().sources
    names = {Path(source.location): source.name for source in sources}

    def answers(table: Path, program: str) -> Sequence[Item]:
        return shown(graph.query(program, language="llm_query", source=names[table], on_unknown="nearest"))

    return answers


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--most", type=int, help="stop after so many questions")
    arguments.add_argument("--wrong", type=Path, help="write what was not right to this file, a JSON line each")
    arguments.add_argument(
        "--causes", type=Path, help="write the id, the cause and the outcome of each to this file, tab-separated"
    )
    arguments.add_argument("--split", choices=SPLITS, help="only the questions of one split")
    arguments.add_argument("--one-graph", metavar="DIRECTORY", help="all tables in one graph, scoped by source=")
    given = arguments.parse_args()
    asked = sorted(questions(given.data, given.split), key=lambda question: (question.table, question.id))[: given.most]
    folder = given.data / "wikitablequestions"
    tables = sorted({question.table for question in asked if question.program is not None})
    result = score(asked, folder, one_graph(folder, tables, given.one_graph) if given.one_graph else engine())
    print(result)
    if given.causes is not None:
        told = [
            f"{question.id}\t{result.class_of[question.id]}\t{why.split(':')[0] if ': ' in why[:20] else 'answered'}"
            for question, why in result.misses
        ]
        given.causes.write_text("\n".join(["id\tcause\toutcome", *sorted(told)]) + "\n", "utf-8")
    if given.wrong is not None:
        with given.wrong.open("w", encoding="utf-8") as file:
            for question, why in result.misses:
                record = {
                    "id": question.id,
                    "question": question.text,
                    "table": question.table,
                    "why": why,
                    "cause": result.class_of[question.id],
                    "program": question.program,
                }
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
