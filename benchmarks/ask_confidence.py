"""Check how sure `ask` is: judge programs by models, and compare their confidence with the share of right answers.

    python -m benchmarks.ask_confidence DATA [--number N] [--rows FILE]

The programs are those that models wrote for WikiTableQuestions and MetaQA (TrustUQA) and for the Movies database
(Cypher by two models), `N` questions of each set (and of each hop of MetaQA). Each question is also judged with the
program of another question, which gives another answer.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from zlib import crc32

import condgraph
from benchmarks.denotation import item, same_denotation
from benchmarks.wtq import plain, questions, shown
from condgraph.ask.judge import DOUBTED, RIGHT, confidence, doubts, fit
from condgraph.ask.programs import Runner
from condgraph.ask.prompt import known_of, mentions_in
from condgraph.ask.records import Attempt
from condgraph.graph import Graph
from tests.support.movies import movies as movies_graph


@dataclass(frozen=True, slots=True)
class Row:
    """A judged answer: its data set, whether it is to the program of another question, whether it is right,
    what speaks against it, and its confidence.
    """

    data: str
    swapped: bool
    right: bool
    question: str
    program: str
    gave: tuple[str, ...]
    doubts: tuple[str, ...]
    fit: float

    @property
    def confidence(self) -> float:
        """As `ask` gives it."""
        return confidence(self.fit, self.doubts)

    @property
    def counted(self) -> bool:
        """Whether the question is of the half over which confidence is counted."""
        return crc32(self.question.encode()) % 2 == 0


def attempt_of(graph: Graph, question: str, program: str, language: str, source: str | None = None) -> Attempt:
    """A program as `ask` runs it, with names read as the nearest, as TrustUQA does."""
    return Runner(graph, question, source, on_unknown="nearest").attempt(program, program, language)


def judged(data: str, graph: Graph, question: str, attempt: Attempt, right: bool, swapped: bool = False) -> Row | None:
    """An answer with what speaks against it; None where there is none."""
    if attempt.answer is None or attempt.stage is not None:
        return None
    known = known_of(graph._store_of(None), graph._survey())
    found = mentions_in(question, known)
    against = doubts(question, found, attempt, known)
    sure = fit(question, found, attempt, known)
    return Row(data, swapped, right, question, attempt.program, tuple(attempt.answer.texts[:5]), tuple(against), sure)


def tables(data: Path, number: int) -> Iterator[Row]:
    """Questions of WikiTableQuestions, each over its table; another question's program is one over the table."""
    by_table = defaultdict(list)
    for one in questions(data):
        if one.program is not None:
            by_table[one.table].append(one)
    left = number
    for table in Random(1).sample(sorted(by_table), len(by_table)):
        graph = condgraph.open()
        graph.load(data / "wikitablequestions" / table, format="csv")
        ran = [(one, attempt_of(graph, one.text, one.program or "", "llm_query")) for one in by_table[table]]
        for one, attempt in ran:
            gold = [item(text, plain(text)) for text in one.gold]
            right = attempt.answer is not None and same_denotation(gold, shown(attempt.answer))
            yield from filter(None, [judged("WikiTableQuestions", graph, one.text, attempt, right)])
            left -= 1
            other = next((b for a, b in ran if b.answer is not None and a.id != one.id and b.gave != attempt.gave), None)
            if other is not None and other.answer is not None and not same_denotation(gold, shown(other.answer)):
                yield from filter(None, [judged("WikiTableQuestions", graph, one.text, other, False, True)])
        if left <= 0:
            return


def films(data: Path, number: int) -> Iterator[Row]:
    """Questions of MetaQA, of one to three hops."""
    graph = condgraph.open()
    graph.load(data / "metaqa" / "kb.txt", name="films")
    for hops in (1, 2, 3):
        programs = json.loads((data / "trustuqa_programs" / f"metaqa_{hops}hop.json").read_text("utf-8"))
        gold: dict[str, set[str]] = {}
        for file in sorted((data / "metaqa" / f"{hops}-hop" / "vanilla").glob("*.txt")):
            for line in file.read_text("utf-8").splitlines():
                question, _, answers = line.partition("\t")
                gold[question] = set(answers.split("|"))
        kept = [(question, text) for question, text in programs.items() if question in gold and text.strip() != "None"]
        kept = Random(hops).sample(kept, min(number, len(kept)))
        for (question, program), (_, other) in zip(kept, [*kept[1:], *kept[:1]], strict=True):
            for text, swapped in ((program, False), (other, True)):
                asked = re.sub(r"[\[\]]", "", question)
                attempt = attempt_of(graph, asked, text, "llm_query")
                right = set(attempt.gave or ()) == gold[question]
                if not (swapped and right):
                    yield from filter(None, [judged(f"MetaQA, {hops} hops", graph, asked, attempt, right, swapped)])


def movies(data: Path, number: int) -> Iterator[Row]:
    """Questions over Movies whose answers are one column, which both models' Cypher gives."""
    graph = movies_graph(data)
    lines = [json.loads(line) for line in (data / "text2cypher_movies" / "questions.jsonl").read_text("utf-8").splitlines()]
    lines = [line for line in lines if line["answer"] is not None][:number]
    for line, other in zip(lines, [*lines[1:], *lines[:1]], strict=True):
        for text, swapped in ((line["opus"], False), (line["gpt4"], False), (other["opus"], True)):
            attempt = attempt_of(graph, line["question"], text, "cypher")
            texts = [] if attempt.answer is None else [cells[0] for cells in attempt.answer.cells if cells]
            right = sorted(set(texts)) == sorted(set(map(str, line["answer"])))
            if not (swapped and right):
                yield from filter(None, [judged("Movies", graph, line["question"], attempt, right, swapped)])


def percent(rows: list[Row]) -> str:
    """Which share of answers is right."""
    return f"{100 * sum(row.right for row in rows) / len(rows):.1f}" if rows else ""


def doubted(rows: list[Row]) -> str:
    """Which share of answers something speaks against."""
    return f"{100 * sum(bool(row.doubts) for row in rows) / len(rows):.1f}" if rows else ""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--number", type=int, default=400, help="questions of each set")
    arguments.add_argument("--rows", type=Path, help="a file for the rows, a JSON line each")
    given = arguments.parse_args()
    rows = [row for made in (tables, films, movies) for row in made(given.data, given.number)]
    if given.rows is not None:
        given.rows.write_text("".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows), "utf-8")
    print(
        "| data | program | answers | right, % | doubted, % of the right | doubted, % of the wrong |\n|---|---|---:|---:|---:|---:|"
    )
    for data in dict.fromkeys(row.data for row in rows):
        for swapped in (False, True):
            some = [row for row in rows if row.data == data and row.swapped == swapped]
            right, wrong = [row for row in some if row.right], [row for row in some if not row.right]
            shares = [
                f"{100 * sum(bool(row.doubts) for row in group) / len(group):.1f}" if group else "" for group in (right, wrong)
            ]
            written = "of another question" if swapped else "by a model"
            print(f"| {data} | {written} | {len(some)} | {100 * len(right) / max(len(some), 1):.1f} | {shares[0]} | {shares[1]} |")
    print("\n| confidence | counted | right, % | others | right, % | others, programs by models alone | right, % |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for share in (DOUBTED, *(share for _, share in reversed(RIGHT))):
        some = [row for row in rows if row.confidence == share]
        groups = [row for row in some if row.counted], [row for row in some if not row.counted]
        cells = [f"{len(one)} | {percent(one)}" for one in (*groups, [row for row in groups[1] if not row.swapped])]
        print(f"| {share} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
