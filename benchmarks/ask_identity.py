"""Replay accepted programs as a model through `ask`: every answer has to equal `query`'s, and the time that `ask`
adds is measured. Since the programs are accepted ones, this measures everything but a model.

    python -m benchmarks.ask_identity DATA [--step N] [--only wtq|metaqa] [--store DIRECTORY]

DATA is a folder with `wikitablequestions`, `metaqa` and `trustuqa_programs`. All tables are in one graph (stored in
the directory, if one is given), and each question is restricted to its own table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import condgraph
from benchmarks.denotation import item, same_denotation
from benchmarks.wtq import Question, plain, questions, shown
from condgraph.graph import Graph


@dataclass(slots=True)
class Replay:
    """How many questions were asked, how many differ from `query`, are right, and ended how; the
    seconds that asking took without the model.
    """

    asked: int = 0
    right: int = 0
    different: list[str] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        cuts = statistics.quantiles(self.seconds, n=20) if len(self.seconds) > 1 else [0.0] * 19
        return (
            f"{self.asked} asked, {len(self.different)} different from query, {self.right} right; "
            f"{', '.join(f'{name} {count}' for name, count in sorted(self.statuses.items()))}; "
            f"without the model {1000 * cuts[9]:.1f} ms median, {1000 * cuts[18]:.1f} ms at the 95th percentile"
        )


def replay(graph: Graph, found: Replay, question: str, program: str, source: str | None = None) -> condgraph.Answer | None:
    """Ask one question with a model that writes this program; the answer of `query`, None for an
    error.
    """
    asked = graph.ask(question, lambda _: program, via="query", source=source, on_unknown="nearest")
    found.asked += 1
    found.statuses[asked.status] = found.statuses.get(asked.status, 0) + 1
    found.seconds.append(asked.overhead)
    try:
        wanted = graph.query(program, language="llm_query", source=source, on_unknown="nearest")
    except condgraph.CondgraphError as error:
        first = asked.attempts[0]
        if asked.answer is not None or first.code != error.code or str(error) != first.error:
            found.different.append(f"{question}: {asked!r}, and query: {error}")
        return None
    if asked.answer is None or asked.answer.values != wanted.values or asked.answer.texts != wanted.texts:
        found.different.append(f"{question}: {asked!r}, and query: {wanted.texts[:5]}")
    return wanted


def tables(data: Path, store: str, asked: list[Question]) -> Iterator[tuple[Question, Graph, str]]:
    """The questions over tables with the graph of all tables, and the source of each."""
    folder = data / "wikitablequestions"
    graph = condgraph.open(store)
    try:
        sources = graph.status().sources
    except condgraph.CondgraphError:
        graph.load(sorted({folder / one.table for one in asked}), format="csv")
        sources = graph.status().sources
    names = {Path(one.location): one.name for one in sources}
    for one in asked:
        yield one, graph, names[folder / one.table]


def wtq(data: Path, store: str, step: int) -> Replay:
    """WikiTableQuestions: 3,030 programs."""
    found = Replay()
    asked = sorted((one for one in questions(data) if one.program is not None), key=lambda one: (one.table, one.id))[::step]
    for one, graph, source in tables(data, store, asked):
        answer = replay(graph, found, one.text, one.program or "", source)
        if answer is not None and same_denotation([item(text, plain(text)) for text in one.gold], shown(answer)):
            found.right += 1
    return found


def metaqa(data: Path, graph: Graph, step: int) -> Replay:
    """MetaQA: the programs of one, two and three hops."""
    found = Replay()
    for hops in (1, 2, 3):
        programs = json.loads((data / "trustuqa_programs" / f"metaqa_{hops}hop.json").read_text("utf-8"))
        kept = [(question, program) for question, program in programs.items() if program.strip() != "None"]
        for question, program in kept[::step]:
            replay(graph, found, question, program)
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--step", type=int, default=1, help="every so manieth question")
    arguments.add_argument("--only", choices=("wtq", "metaqa"))
    arguments.add_argument("--store", default="memory:", help="where the graph of all tables is kept")
    given = arguments.parse_args()
    different = 0
    if given.only != "metaqa":
        found = wtq(given.data, given.store, given.step)
        print("WikiTableQuestions:", found, flush=True)
        different += len(found.different)
        print(*found.different[:20], sep="\n", flush=True)
    if given.only != "wtq":
        graph = condgraph.open()
        graph.load(given.data / "metaqa" / "kb.txt", name="films")
        found = metaqa(given.data, graph, given.step)
        print("MetaQA:", found, flush=True)
        print(*found.different[:20], sep="\n", flush=True)
        different += len(found.different)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
