"""LLM queries over whole data sets, by one command: answers against independent readings, errors by
kind, times.

    python benchmarks/llm_query.py DATA [--only metaqa|temporal|programs|table]

DATA is a folder with `metaqa/kb.txt`, `trustuqa_programs`, `cronquestions` and
`wikitablequestions`. `metaqa` compares the movie programs with sets read off the file; `temporal`
runs programs written from the templates of temporal questions; `programs` runs every program there
is, each kind on its graph, and counts errors; `table` prints the table of 32 cases.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import condgraph
from condgraph.engine.errors import CondgraphError
from condgraph.graph import Graph
from condgraph.languages.llm.lower.search import markdown

MOVIES = ("metaqa_1hop", "metaqa_2hop", "metaqa_3hop")
#: Files of temporal questions, by what they are about.
TEMPORAL = ("position_held", "member_of_sports_team")


def programs(data: Path, name: str) -> dict[str, str]:
    """The programs of a file, by question; those that are `None` are left out."""
    found: dict[str, str] = json.loads((data / "trustuqa_programs" / f"{name}.json").read_text("utf-8"))
    return {question: program for question, program in found.items() if program.strip() != "None"}


@dataclass(slots=True)
class Times:
    """Seconds of single calls."""

    seconds: list[float] = field(default_factory=list)

    def ask(self, graph: Graph, program: str) -> condgraph.Answer:
        begin = time.perf_counter()
        answer = graph.query(program, language="llm_query", on_unknown="nearest")
        answer.texts  # noqa: B018 - an answer works itself out when it is looked at
        self.seconds.append(time.perf_counter() - begin)
        return answer

    def __str__(self) -> str:
        return f"median {1000 * statistics.median(self.seconds):.3f} ms" if self.seconds else "not run"


# -- temporal questions ----------------------------------------------------------------------------


def search(**given: str) -> str:
    """A get_information; `value` and `tail_entity` may begin with an operator."""
    parts = []
    for name, text in given.items():
        bare = text.lstrip("<>=")
        parts.append(f"{name}{text[: len(text) - len(bare)] or '='}'{bare}'")
    return f"get_information({', '.join(parts)})"


def lines(*queries: str) -> str:
    return "\n".join(f'Query{at}: "{query}"' for at, query in enumerate(queries, 1))


_NEXT = {"before": ("<", "max"), "after": (">", "min")}


def temporal_program(template: str, parts: dict[str, str], relation: str) -> str | None:
    """A program for a template of temporal questions; None for templates that speak of events
    outside the facts.
    """
    if "event_head" in parts:
        return None
    head, tail, adjective = parts.get("head", ""), parts.get("tail", ""), parts.get("adj", "")
    pick = {"first": "min", "last": "max"}.get(adjective, "")
    of_team = "team did" in template or "team that" in template
    side = {"head_entity": head} if of_team else {"tail_entity": tail}
    mine = search(head_entity=head, relation=relation, tail_entity=tail, key="time")
    if "type" in parts:
        operator, nearest = _NEXT[parts["type"]]
        key = "start time" if of_team and parts["type"] == "before" else "time"
        return lines(
            search(head_entity=head, relation=relation, tail_entity=tail, key=key),
            *(["min(set='output_of_query1')"] if key == "start time" else ["unique(set='output_of_query1')"]),
            search(relation=relation, key=key, **side),
            f"keep(set='output_of_query3', value{operator}'output_of_query2')",
            f"{nearest}(set='output_of_query4')",
            search(relation=relation, key=key, value="output_of_query5", **side),
        )
    if "tail2" in parts:
        return lines(mine, search(relation=relation, tail_entity=parts["tail2"], key="time", value="output_of_query1"))
    if template.startswith("Who played with"):
        return lines(mine, search(relation=relation, tail_entity=tail, key="time", value="output_of_query1"))
    if "time" in parts:
        return lines(search(relation=relation, key="time", value=parts["time"], **side))
    if "come to power" in template:
        return lines(search(relation=relation, tail_entity=tail, key="start time"), f"{pick}(set='output_of_query1')")
    if template.startswith(("Who was the {adj}", "Which was the {adj}")):
        word = {"first": "earliest", "last": "latest"}[adjective]
        return lines(search(relation=relation, key="time", value=word, **side))
    if not tail:
        return lines(search(head_entity=head, relation=relation, key="time"), f"{pick}(set='output_of_query1')")
    return lines(mine, f"{pick}(set='output_of_query1')") if pick else lines(mine)


@dataclass(frozen=True, slots=True)
class Temporal:
    """A temporal question: its template, its parts by name, gold answers, the relation, a program."""

    template: str
    parts: dict[str, str]
    gold: frozenset[str]
    relation: str
    program: str

    @property
    def kind(self) -> str:
        """The template with the direction it has here."""
        return self.template.replace("{type}", self.parts.get("type", "")).replace("{adj}", self.parts.get("adj", ""))


def temporal_questions(data: Path) -> Iterator[Temporal]:
    """The questions for which `temporal_program` has a program."""
    for name in TEMPORAL:
        for line in (data / "cronquestions" / f"dev_questions_{name}_big.jsonl").read_text("utf-8").splitlines():
            record = json.loads(line)
            pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(record["template"]))
            found = re.fullmatch(pattern, record["question"])
            assert found is not None, record["question"]
            relation = record["relations"][0]
            program = temporal_program(record["template"], found.groupdict(), relation)
            if program is not None:
                yield Temporal(record["template"], found.groupdict(), frozenset(map(str, record["answers"])), relation, program)


def facts_of(data: Path) -> dict[tuple[str, str, str], list[tuple[int, int]]]:
    """The facts that the questions were made from, as far as they are known: first and last year by
    head, relation, tail.
    """
    found: dict[tuple[str, str, str], list[tuple[int, int]]] = defaultdict(list)
    for line in (data / "cronquestions" / "derived_facts.tsv").read_text("utf-8").splitlines()[1:]:
        head, relation, tail, first, last = line.split("\t")
        found[head, relation, tail].append((int(first), int(last)))
    return found


def spread(answer: condgraph.Answer) -> frozenset[str]:
    """Intervals of years as the single years that gold answers list; other texts as they are."""
    found: set[str] = set()
    for text in answer.texts:
        first, slash, last = text.partition("/")
        found.update(map(str, range(int(first), int(last) + 1)) if slash else [text])
    return frozenset(found)


def known_gold(question: Temporal, facts: dict[tuple[str, str, str], list[tuple[int, int]]]) -> frozenset[str]:
    """The gold answers of a question about entities whose own fact is among the known ones."""
    parts, relation = question.parts, question.relation
    if "team did" in question.template or "team that" in question.template:
        return frozenset(gold for gold in question.gold if (parts["head"], relation, gold) in facts)
    tail = parts.get("tail2", parts.get("tail", ""))
    return frozenset(gold for gold in question.gold if (gold, relation, tail) in facts)


def temporal(data: Path) -> None:
    graph = condgraph.open()
    graph.load(data / "cronquestions" / "derived_facts.tsv")
    facts = facts_of(data)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    times: dict[str, Times] = defaultdict(Times)
    for question in temporal_questions(data):
        count = counts[question.template]
        count["asked"] += 1
        try:
            found = spread(times[question.template].ask(graph, question.program))
        except CondgraphError as error:
            count[error.code] += 1
            continue
        if question.template.startswith("When"):
            count["equal to gold"] += found == question.gold
            continue
        known = known_gold(question, facts)
        count["gold known"] += len(known)
        count["gold found"] += len(known & found)
        count["extra"] += len(found - question.gold)
        count["all gold known"] += known == question.gold
        count["of these equal"] += known == question.gold == found
    for template, count in counts.items():
        told = ", ".join(f"{name} {number}" for name, number in count.items())
        print(f"{template}\n    {told}; {times[template]}")


# -- movies, and all programs ----------------------------------------------------------------------


def movie_facts(data: Path) -> tuple[dict[tuple[str, str], set[str]], dict[tuple[str, str], set[str]]]:
    tails: dict[tuple[str, str], set[str]] = defaultdict(set)
    heads: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in (data / "metaqa" / "kb.txt").read_text("utf-8").splitlines():
        head, relation, tail = line.split("|")
        tails[relation, head].add(tail)
        heads[relation, tail].add(head)
    return tails, heads


_LINE = re.compile(r"Query(\d+): \"(\w+)\((.*)\)\"")
_PART = re.compile(r"(\w+)='(.*?)'(?=, \w+=|$)")


def movie_answer(program: str, tails: dict[tuple[str, str], set[str]], heads: dict[tuple[str, str], set[str]]) -> set[str] | None:
    """What a plain movie program means, on sets; None where it holds anything else."""
    results: dict[str, set[str]] = {}
    last: set[str] | None = None
    for number, function, text in _LINE.findall(program):
        parts = dict(_PART.findall(text))
        sets = {name: results.get(value, {value}) for name, value in parts.items()}
        if function == "set_difference" and parts.keys() == {"set1", "set2"}:
            last = sets["set1"] - sets["set2"]
        elif function == "get_information" and parts.keys() == {"relation", "head_entity"}:
            last = set().union(*(tails.get((parts["relation"], one), set()) for one in sets["head_entity"]))
        elif function == "get_information" and parts.keys() == {"relation", "tail_entity"}:
            last = set().union(*(heads.get((parts["relation"], one), set()) for one in sets["tail_entity"]))
        else:
            return None
        results[f"output_of_query{number}"] = last
    return last


def metaqa(data: Path) -> None:
    graph = condgraph.open()
    graph.load(data / "metaqa" / "kb.txt")
    tails, heads = movie_facts(data)
    relations = set(graph.current.schema.relations)
    for name in MOVIES:
        times, count = Times(), Counter[str]()
        for program in programs(data, name).values():
            exact = set(re.findall(r"relation='([^']*)'", program)) <= relations
            try:
                found = set(times.ask(graph, program).texts)
            except CondgraphError as error:
                count[f"error {error.code}"] += 1
                continue
            wanted = movie_answer(program, tails, heads)
            if not exact:
                count["near names"] += 1
            elif wanted is None:
                count["not read independently"] += 1
            else:
                count["equal" if wanted == found else "different"] += 1
        print(f"{name}: {dict(count)}; {times}")


def every_program(data: Path) -> Counter[str]:
    """Run all programs, tables apart (`wtq.py` runs those); what came of them, by kind of graph."""
    movies, temporal_facts = condgraph.open(), condgraph.open()
    movies.load(data / "metaqa" / "kb.txt")
    temporal_facts.load(data / "cronquestions" / "derived_facts.tsv")
    count: Counter[str] = Counter()
    graphs = {**dict.fromkeys(MOVIES, movies), "cronquestions": temporal_facts, "webqsp_name": movies, "webqsp_unname": movies}
    for name, graph in graphs.items():
        for program in programs(data, name).values():
            try:
                answer = graph.query(program, language="llm_query", on_unknown="nearest")
                count[f"{name}: {'an answer' if answer.texts else 'an empty answer'}"] += 1
            except CondgraphError as error:
                place = "with" if error.span is not None else "WITHOUT"
                hint = "with" if error.hint or error.candidates else "WITHOUT"
                count[f"{name}: {error.code} ({place} position, {hint} hint)"] += 1
    return count


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("data", type=Path, nargs="?")
    arguments.add_argument("--only", choices=("metaqa", "temporal", "programs", "table"))
    given = arguments.parse_args()
    if given.only == "table":
        print(markdown())
        return 0
    if given.data is None:
        arguments.error("DATA is needed for everything but --only table")
    if given.only in (None, "metaqa"):
        metaqa(given.data)
    if given.only in (None, "temporal"):
        temporal(given.data)
    if given.only in (None, "programs"):
        for kind, number in sorted(every_program(given.data).items()):
            print(f"{number:>7,}  {kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
