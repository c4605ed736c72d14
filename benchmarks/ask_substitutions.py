"""Check whether `ask` replaces a relation without notice: questions whose relation was removed from the graph, and
questions whose program writes it in another form.

    python -m benchmarks.ask_substitutions DATA --oracle ORACLE [--number 500] [--rows FILE]

Half of the questions are generated over the oracle's small graph, in KoPL; half are MetaQA's of one hop, with
published LLM queries. There are four models:

insists    the relation is not in the graph; the model repeats its program
yields     the same; the model takes the first name that it is offered, each time
form       the relation exists, and the program writes it in other case, with other separators, or as a plural
misspelt   the relation exists, and the program lacks a letter of it; the model takes the first name that it is offered
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import condgraph
from condgraph.ask.records import Asked, Via
from condgraph.graph import Graph

#: What a reply of the model may be, by what it is shown.
Model = Callable[[Sequence[dict[str, str]]], str]
_NEAREST: Final = re.compile(r'Nearest names: "((?:[^"\\]|\\.)*)"')
WAYS: Final = ("insists", "yields", "form", "misspelt")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its program with the relation as `{}`, the language of it, and the relation."""

    text: str
    program: str
    language: str
    relation: str

    def written(self, relation: str) -> str:
        """The program with a relation."""
        if self.language == "kopl":
            return self.program.replace(f'"{_MARK}"', json.dumps(relation, ensure_ascii=False))
        return self.program.replace(_MARK, relation.replace("\\", "\\\\").replace("'", "\\'"))


@dataclass(frozen=True, slots=True)
class Row:
    """What came of a question: how it was asked, the outcome, and the answer to the program as it was."""

    way: str
    question: Question
    outcome: Asked
    gold: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The status; "answered, another" for an answer that is not that of the program as it was."""
        same = sorted(self.outcome.texts) == sorted(self.gold)
        return self.outcome.status if same or self.outcome.status != "answered" else "answered, another"


def yielding(question: Question, relation: str) -> Model:
    """A model that takes the first name that it is offered in place of the one that it wrote."""

    def reply(messages: Sequence[dict[str, str]]) -> str:
        offered = [found[1] for item in messages if item["role"] == "user" for found in _NEAREST.finditer(item["content"])]
        return question.written(json.loads(f'"{offered[-1]}"') if offered else relation)

    return reply


def forms(relation: str, random: Random) -> str:
    """A relation in another form, by rules that were fixed before anything was measured."""
    words = relation.replace("_", " ").split(" ")
    last = words[-1]
    spaced = "_".join(words) if " " in relation else " ".join(words) if "_" in relation else relation.title()
    joined = words[0] + "".join(word.title() for word in words[1:]) if len(words) > 1 and relation.isascii() else f" {spaced} "
    ways = [relation.upper(), spaced, joined]
    if last.isascii() and last.isalpha() and not last.endswith(("s", "x", "y", "ch", "sh", "ed", "ing")):
        ways.append(" ".join([*words[:-1], f"{last}s"]))
    return random.choice([way for way in ways if way != relation])


def misspelt(relation: str, random: Random) -> str:
    """A relation without one of its letters, the first aside."""
    at = random.randrange(1, len(relation))
    return relation[:at] + relation[at + 1 :]


def ask(graph: Graph, question: Question, way: str, gold: Sequence[str], seed: int) -> Row:
    """Ask a question in one of the ways."""
    random = Random(f"{seed} {question.text}")
    relation = question.relation
    if way == "form":
        relation = forms(relation, random)
    elif way == "misspelt":
        relation = misspelt(relation, random)
    model: Model = yielding(question, relation) if way in ("yields", "misspelt") else lambda _: question.written(relation)
    via: Via = "kopl" if question.language == "kopl" else "query"
    return Row(way, question, graph.ask(question.text, model, via=via, demos=0), tuple(gold))


# -- questions -----------------------------------------------------------------------------------------

#: KoPL functions whose first argument is a relation or an attribute.
_TAKES: Final = frozenset(
    ("Relate", "QueryAttr", "FilterStr", "FilterNum", "FilterYear", "FilterDate", "SelectAmong", "SelectBetween")
)
_MARK: Final = "{}"
_RELATION: Final = re.compile(r"relation='([^']*)'")


def of_graph(graph: Graph, number: int, seed: int) -> list[Question]:
    """Generated questions with the predicate of the last step that has one, which no other step has."""
    result: list[Question] = []
    for item in graph.generate(3 * number, seed=seed, queries=False):
        steps = [step for step in item.program if step["function"] in _TAKES]
        if not steps or len(result) >= number or _MARK in item.kopl:
            continue
        relation = steps[-1]["inputs"][0]
        if sum(relation in step["inputs"] for step in item.program) > 1:
            continue
        marked = [step | {"inputs": [_MARK, *step["inputs"][1:]]} if step is steps[-1] else step for step in item.program]
        result.append(Question(item.question, replace(item, program=marked).kopl, "kopl", relation))
    return result


def of_metaqa(data: Path, number: int, seed: int) -> list[Question]:
    """Questions of one hop with the programs that a model wrote for them."""
    programs = json.loads((data / "trustuqa_programs" / "metaqa_1hop.json").read_text("utf-8"))
    pairs = sorted(programs.items())
    Random(seed).shuffle(pairs)
    result: list[Question] = []
    for question, program in pairs:
        found = _RELATION.findall(program)
        if len(found) == 1 and len(result) < number and _MARK not in program:
            result.append(Question(question, _RELATION.sub(f"relation='{_MARK}'", program), "llm_query", found[0]))
    return result


def without(kb: dict[str, Any], relation: str) -> dict[str, Any]:
    """The oracle's graph without the statements of a predicate."""
    entities = {
        key: {
            **entity,
            "attributes": [item for item in entity["attributes"] if item["key"] != relation],
            "relations": [item for item in entity["relations"] if item["relation"] != relation],
        }
        for key, entity in kb["entities"].items()
    }
    return {**kb, "entities": entities}


def loaded(write: Callable[[Path], object], name: str) -> Graph:
    """A graph in memory of a file that `write` writes."""
    graph = condgraph.open("memory:")
    with TemporaryDirectory() as folder:
        write(Path(folder) / name)
        graph.load(Path(folder) / name)
    return graph


def rows(
    whole: Graph, less: Callable[[str], Graph], questions: Sequence[Question], ways: Sequence[str], seed: int
) -> Iterator[Row]:
    """Every question in every way; `less` gives the graph without a relation. A question whose program gives nothing
    over the whole graph is left out.
    """
    by_relation: dict[str, list[tuple[Question, list[str]]]] = defaultdict(list)
    for question in questions:
        try:
            gold = whole.query(question.written(question.relation), language=question.language).texts
        except condgraph.CondgraphError:
            continue
        if gold:
            by_relation[question.relation].append((question, gold))
    for relation, asked in sorted(by_relation.items()):
        graph = less(relation) if {"insists", "yields"} & set(ways) else whole
        for question, gold in asked:
            for way in ways:
                yield ask(graph if way in ("insists", "yields") else whole, question, way, gold, seed)


def of_oracle_rows(kb: dict[str, Any], number: int, ways: Sequence[str] = WAYS, seed: int = 0) -> Iterator[Row]:
    """Generated questions over a graph of KQA Pro's form."""

    def made(content: dict[str, Any]) -> Graph:
        return loaded(lambda path: path.write_text(json.dumps(content), "utf-8"), "kb.json")

    whole = made(kb)
    return rows(whole, lambda relation: made(without(kb, relation)), of_graph(whole, number, seed), ways, seed)


def of_metaqa_rows(data: Path, number: int, ways: Sequence[str] = WAYS, seed: int = 0) -> Iterator[Row]:
    """MetaQA's questions."""
    text = (data / "metaqa" / "kb.txt").read_text("utf-8")

    def less(relation: str) -> Graph:
        kept = "".join(line for line in text.splitlines(keepends=True) if line.split("|")[1] != relation)
        return loaded(lambda path: path.write_text(kept, "utf-8"), "kb.txt")

    return rows(less(""), less, of_metaqa(data, number, seed), ways, seed)


def main() -> None:
    """Both sets, a line for each way."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--oracle", type=Path, required=True)
    arguments.add_argument("--number", type=int, default=500)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--rows", type=Path, help="write what came of each question here")
    given = arguments.parse_args()
    half = given.number // 2
    kb = json.loads((given.oracle / "kb_small.json").read_text("utf-8"))
    sets = {
        "generated": of_oracle_rows(kb, half, seed=given.seed), "MetaQA": of_metaqa_rows(given.data, half, seed=given.seed)
    }  # fmt: skip
    out = given.rows.open("w", encoding="utf-8") if given.rows else None
    for name, some in sets.items():
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for row in some:
            counts[row.way][row.verdict] += 1
            if out is not None:
                what = [name, row.way, row.verdict, row.question.text, row.question.relation, row.outcome.program, row.outcome.text]
                out.write(json.dumps(what, ensure_ascii=False) + "\n")
        for way in WAYS:
            listed = ", ".join(f"{verdict} {count}" for verdict, count in counts[way].most_common())
            sys.stdout.write(f"{name}, {way}: {counts[way].total()} asked: {listed}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
