"""Graph patterns in process: hubs, hops, candidate search, gold patterns of two benchmarks, and how the cost grows
with a graph.

    python benchmarks/patterns.py DATA [--parts hubs hops gold scale] [--sizes 1 10] [--sample N] [--out DIR]

DATA is the folder with `metaqa` and `pathquestions`. Times are those of `Graph.match`, from triples to solutions; CPU
is the time that the process had a core. "After candidate search" means that the distances of the pattern's texts are
cached; candidate search is the cost of computing them. Sizes are millions of nodes. Everything takes about ten
minutes, and 4 GB for ten million nodes.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from machine import markdown, median, percentile, write

PARTS = ("hubs", "hops", "gold", "scale")
SEED = 20260917
Triples = list[tuple[str, str, str]]


def timed(ask: Callable[[], Any], repeat: int = 1) -> tuple[float, float, Any]:
    """Milliseconds on the clock and of the processor (the median of `repeat` runs), and the last
    result.
    """
    clock, used, found = [], [], None
    for _ in range(repeat):
        begin, cpu = time.perf_counter(), time.process_time()
        found = ask()
        used.append((time.process_time() - cpu) * 1e3)
        clock.append((time.perf_counter() - begin) * 1e3)
    return median(clock), median(used), found


# -- MetaQA ----------------------------------------------------------------------------------------

#: Hops of a question type: the relation, and whether it runs from the film.
RELATIONS = {
    "actor": "starred_actors",
    "director": "directed_by",
    "writer": "written_by",
    "genre": "has_genre",
    "language": "in_language",
    "year": "release_year",
    "tag": "has_tags",
    "tags": "has_tags",
    "imdbrating": "has_imdb_rating",
    "imdbvotes": "has_imdb_votes",
}


def movies(data: Path) -> Any:
    """The graph of MetaQA, in memory."""
    import condgraph

    graph = condgraph.open("memory:")
    graph.load(data / "metaqa" / "kb.txt", name="metaqa")
    return graph


def hub_patterns() -> Iterator[tuple[str, int, Triples, str]]:
    """Patterns around a node of very many neighbours: path and star of one to three edges; the node
    to group by.
    """
    for name, relation in (("Drama", "has_genre"), ("Horror", "has_genre"), ("1999", "release_year")):
        path = [
            ("UNKNOWN film 1", relation, name),
            ("UNKNOWN film 1", "starred_actors", "UNKNOWN actor 1"),
            ("UNKNOWN film 2", "starred_actors", "UNKNOWN actor 1"),
        ]
        star = [(f"UNKNOWN film {number}", relation, name) for number in (1, 2, 3)]
        for edges in (1, 2, 3):
            yield f"{name}, path", edges, path[:edges], "film 1"
        for edges in (2, 3):
            yield f"{name}, star", edges, star[:edges], "film 1"


def hubs(graph: Any) -> dict[str, Any]:
    """Hubs, asked for the first three solutions and for all answers."""
    rows = []
    for name, edges, pattern, group in hub_patterns():
        ways: tuple[dict[str, Any], ...] = ({"k": 3}, {"k": None, "group_by": group})
        for options in ways:
            graph.match(pattern, **options)
            clock, used, found = timed(lambda p=pattern, o=options: graph.match(p, **o), 9)
            rows.append([name, edges, "first 3" if options["k"] else "all films", len(found), clock, used])
    return {
        "title": "Graph patterns: hubs of MetaQA",
        "columns": ["hub", "edges", "asked", "given", "ms", "CPU, ms"],
        "rows": rows,
        "notes": [
            "The genre Drama has 4,176 films. A path goes from a hub to its films, to their actors and to the other films of "
            "these; a star asks for two or three different films. All films: `k=None, group_by='film 1'`, each film once.",
            "Exact search with the lexical encoder, after candidate search; the median of nine runs.",
        ],
    }


def hops(graph: Any, sample: int) -> dict[str, Any]:
    """Paths of one to three edges from directors, and what finding the candidates of a name takes."""
    snapshot = graph.current
    dice = random.Random(SEED)
    low, high = snapshot.runs(("directed_by",), True, False)[0]
    directors = sorted({snapshot.name(int(n)) for n in snapshot.relation_object[low:high]})
    chosen = dice.sample(directors, min(sample, len(directors)))
    path = [("directed_by", 1), ("starred_actors", 0), ("starred_actors", 1)]
    rows = []
    for edges in (1, 2, 3):
        for options in ({"k": 3}, {"k": None}):
            clock, used = [], []
            for director in chosen:
                pattern = [("UNKNOWN film 1", path[0][0], director)]
                if edges > 1:
                    pattern.append(("UNKNOWN film 1", "starred_actors", "UNKNOWN actor 1"))
                if edges > 2:
                    pattern.append(("UNKNOWN film 2", "starred_actors", "UNKNOWN actor 1"))
                group = ("film 1", "actor 1", "film 2")[edges - 1]
                asked: dict[str, Any] = {**options, "group_by": None if options["k"] else group}
                graph.match(pattern, **asked)
                one, two, _ = timed(lambda p=pattern, a=asked: graph.match(p, **a), 3)
                clock.append(one)
                used.append(two)
            shown = "first 3" if options["k"] else "all answers"
            rows.append([f"{edges} edges from a director", shown, median(clock), percentile(clock, 0.95), median(used)])
    from condgraph.patterns.distance.terms import TextTerms

    terms = TextTerms.of(snapshot)
    clock, used = [], []
    for director in chosen:
        # A letter more, so that nothing of it is kept from before.
        one, two, _ = timed(lambda name=director: terms.nodes(f"{name}x"))
        clock.append(one)
        used.append(two)
    rows.append([f"candidates of a name among {snapshot.entities:,}", "all", median(clock), percentile(clock, 0.95), median(used)])
    return {
        "title": "Graph patterns: hops on MetaQA",
        "columns": ["pattern", "asked", "median ms", "95 % ms", "median CPU, ms"],
        "rows": rows,
        "notes": [
            f"{len(chosen)} directors, after candidate search; the last row is the candidate search (lexical encoder).",
            "If fewer than three answers are at the best distance, the search goes on to less similar names and predicates.",
        ],
    }


# -- gold patterns ---------------------------------------------------------------------------------


def metaqa_pattern(kind: str, topic: str) -> tuple[Triples, str]:
    """The pattern of a question type (movie_to_director_to_movie, say), and the node of its
    answers.
    """
    steps = kind.split("_to_")
    nodes = [topic, *(f"UNKNOWN {step} {number}" for number, step in enumerate(steps[1:], 1))]
    triples = []
    for number in range(len(steps) - 1):
        one, two = steps[number], steps[number + 1]
        relation = RELATIONS[two if one == "movie" else one]
        film, other = (number, number + 1) if one == "movie" else (number + 1, number)
        triples.append((nodes[film], relation, nodes[other]))
    return triples, nodes[-1]


def metaqa_questions(data: Path, hop: int, part: str = "dev") -> list[tuple[Triples, str, str, set[str], str]]:
    """Pattern, answer node, topic, gold answers and type of every question."""
    folder = data / "metaqa" / f"{hop}-hop"
    kinds = (folder / f"qa_{part}_qtype.txt").read_text(encoding="utf-8").split()
    lines = (folder / "vanilla" / f"qa_{part}.txt").read_text(encoding="utf-8").splitlines()
    found = []
    for kind, line in zip(kinds, lines, strict=True):
        question, _, answers = line.partition("\t")
        matched = re.search(r"\[(.*)\]", question)
        assert matched is not None
        triples, node = metaqa_pattern(kind, matched[1])
        found.append((triples, node, matched[1], set(answers.split("|")), kind))
    return found


def path_questions(data: Path) -> list[tuple[Triples, str, str, set[str], str]]:
    """The same for the two-hop PathQuestions, whose gold paths stand beside the questions."""
    found = []
    for line in (data / "pathquestions" / "PQ-2H.txt").read_text(encoding="utf-8").splitlines():
        _, answers, path = line.split("\t")
        topic, first, _, second, *_ = path.split("#")
        gold = set(answers[answers.index("(") + 1 : answers.rindex(")")].strip("/").split("/"))
        triples = [(topic, first, "UNKNOWN entity 1"), ("UNKNOWN entity 1", second, "UNKNOWN answer 1")]
        found.append((triples, "UNKNOWN answer 1", topic, gold, f"{first}, {second}"))
    return found


def path_walks(data: Path, size: int = 300) -> list[tuple[Triples, str, str, set[str], str]]:
    """Walks of three hops over the graph of PathQuestions, which go round as often as its own questions
    of three hops do: where they end is the answer.
    """
    lines = (data / "pathquestions" / "2H-kb.txt").read_text(encoding="utf-8").splitlines()
    ahead: dict[str, dict[str, list[str]]] = {}
    for head, relation, tail in (line.split("\t") for line in lines):
        ahead.setdefault(head, {}).setdefault(relation, []).append(tail)
    dice, found = random.Random(SEED), []
    while len(found) < size:
        topic = node = dice.choice(sorted(ahead))
        path: list[str] = []
        while len(path) < 3 and node in ahead:
            path.append(dice.choice(sorted(ahead[node])))
            node = dice.choice(ahead[node][path[-1]])
        if len(path) < 3:
            continue
        ends = {topic}
        for relation in path:
            ends = {end for one in ends for end in ahead.get(one, {}).get(relation, [])}
        nodes = [topic, "UNKNOWN entity 1", "UNKNOWN entity 2", "UNKNOWN answer 1"]
        triples = [(nodes[hop], relation, nodes[hop + 1]) for hop, relation in enumerate(path)]
        found.append((triples, nodes[-1], topic, ends, ", ".join(path)))
    return found


def gold(data: Path, sample: int | None) -> list[dict[str, Any]]:
    """Whether gold answers are among the grouped answers of gold patterns."""
    import condgraph

    paths = condgraph.open("memory:")
    paths.load(data / "pathquestions" / "2H-kb.txt", name="pathquestions")
    films = movies(data)
    sets = [("PathQuestions 2-hop", paths, path_questions(data)), ("PathQuestions, walks of 3 hops", paths, path_walks(data))]
    sets += [(f"MetaQA {hop}-hop dev", films, metaqa_questions(data, hop)) for hop in (1, 2, 3)]
    rows, misses = [], []
    for name, graph, questions in sets:
        if sample is not None and sample < len(questions):
            questions = random.Random(SEED).sample(questions, sample)
        among = equal = 0
        clock = []
        for triples, node, topic, answers, kind in questions:
            begin = time.perf_counter()
            # MetaQA's paths never come back to the topic; those of PathQuestions do.
            apart = topic if graph is films else None
            found = graph.match(triples, k=None, group_by=node, distinct_from=apart)
            given = set(found.texts)
            clock.append((time.perf_counter() - begin) * 1e3)
            among += answers <= given
            equal += answers == given
            if not answers <= given:
                misses.append(
                    [name, kind, topic, "; ".join(sorted(answers - given)[:3]), why(graph, triples, found, answers - given)]
                )
        size = len(questions)
        rows.append([name, size, among / size * 100, equal / size * 100, median(clock), percentile(clock, 0.95)])
        print(f"{name}: {among} of {size} among, {equal} equal", file=sys.stderr)
    notes = [
        "Gold patterns with the names of the data: `k=None`, grouped by the answer, the defaults, lexical encoder. Unknown nodes "
        "of MetaQA may not be the topic (`distinct_from`), as in its paths; those of PathQuestions may (a spouse's spouse).",
        "Times include candidate search.",
        "Answers are not equal where the data has one of several answers (PathQuestions), where its answers come from another "
        "source (MetaQA 1-hop: WikiMovies), or where an edge in the other direction counts as an answer here.",
    ]
    table = {
        "title": "Graph patterns: gold answers of gold patterns",
        "columns": ["questions", "how many", "gold among answers, %", "equal, %", "median ms", "95 % ms"],
        "rows": rows,
        "notes": notes,
    }
    explained = {
        "title": "Graph patterns: what is missed, and why",
        "columns": ["questions", "type", "topic", "missed (first three)", "because"],
        "rows": misses[:40],
        "notes": [f"{len(misses)} questions in all; the first forty."],
    }
    return [table, explained] if misses else [table]


def why(graph: Any, triples: Triples, found: Any, missed: set[str]) -> str:
    """Why answers are missed: they are not in the graph, or the pattern's best subgraph is
    elsewhere.
    """
    snapshot = graph.current
    if not all(len(snapshot.named(name)) for name in missed):
        return "not a name of the graph"
    best = found.solutions[0] if len(found.solutions) else None
    if best is None:
        return "no subgraph"
    farther = [match.node.text for match in best.nodes if match.term] + [edge.edge.relation for edge in best.edges if edge.term]
    if farther:
        return f"nothing at distance 0; the nearest replaces {', '.join(dict.fromkeys(farther))}"
    return "the graph has no such path to it"


# -- growth ----------------------------------------------------------------------------------------


def synthetic(nodes: int) -> Any:
    """A graph of three facts a node, subjects even, objects and 50 predicates by Zipf's law."""
    import numpy as np

    from condgraph.patterns.graph import SearchGraph

    draw = np.random.default_rng(SEED)
    facts = 3 * nodes
    subject = draw.integers(0, nodes, facts, dtype=np.int32)
    thing = np.minimum(nodes ** draw.random(facts), nodes - 1).astype(np.int32)
    # Ranks are scattered over the numbers, as in graphs that are numbered by name.
    thing = (thing.astype(np.int64) * 7_368_787 % nodes).astype(np.int32)
    predicate = np.minimum(51 ** draw.random(facts) - 1, 49).astype(np.int16)
    apart = subject != thing
    subject, thing, predicate = subject[apart], thing[apart], predicate[apart]
    owner = np.concatenate([subject, thing])
    other = np.concatenate([thing, subject])
    label = np.concatenate([predicate * 2, predicate * 2 + 1])
    order = np.argsort(owner.astype(np.int64) << 32 | other, kind="stable")
    offsets = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=nodes), out=offsets[1:])
    return SearchGraph(offsets, other[order], label[order], 51, nodes, np.arange(nodes, dtype=np.int32))


def scale(sizes: list[float], questions: int) -> dict[str, Any]:
    """Patterns with planted answers: the right node stands somewhere among the candidates, and so
    does the right predicate.
    """
    import numpy as np

    from condgraph.languages.pattern.pattern import Pattern
    from condgraph.patterns.distance.domains import Domain
    from condgraph.patterns.join.driver import search
    from condgraph.patterns.priced import bonds_of
    from condgraph.patterns.problem import Problem

    rows = []
    for millions in sizes:
        nodes = int(millions * 1e6)
        begin = time.perf_counter()
        graph = synthetic(nodes)
        made = time.perf_counter() - begin
        print(f"{millions:g} million nodes, {len(graph.labels) // 2:,} facts: made in {made:.0f} s", file=sys.stderr)
        draw = np.random.default_rng(SEED + 1)
        for edges in (1, 2, 3):
            for candidates in (16, 128, 1024, 16_384):
                clock, used, rounds = [], [], []
                for _ in range(questions):
                    walk, labels = a_walk(draw, graph, int(graph.neighbours[draw.integers(len(graph.labels))]), edges)
                    names = ["a", *(f"UNKNOWN {number}" for number in range(1, edges)), "b"]
                    pattern = Pattern.of([(names[n], f"r{n}", names[n + 1]) for n in range(edges)])
                    domains = [Domain() for _ in names]
                    for end in (0, edges):
                        numbers = np.unique(np.append(draw.integers(0, nodes, candidates - 1), walk[end])).astype(np.int32)
                        costs = np.sort(draw.integers(200_000, 1_300_000, len(numbers)))[draw.permutation(len(numbers))]
                        domains[end] = Domain(costs, numbers)
                    prices = []
                    for label in labels:
                        own = draw.integers(400_000, 1_400_000, 51)
                        own[label // 2] = draw.integers(0, 600_000)
                        prices.append(own)
                    bonds, loops = bonds_of(pattern, prices, 51, directed=False)
                    problem = Problem(graph, domains, bonds, loops, True, {})
                    one, two, found = timed(lambda p=problem: search(p, 3, ()))
                    clock.append(one)
                    used.append(two)
                    rounds.append(found.rounds)
                rows.append(
                    [f"{millions:g} M", edges, candidates, median(clock), percentile(clock, 0.95), median(used), median(rounds)]
                )
                print("  ", rows[-1], file=sys.stderr)
        del graph
    return {
        "title": "Graph patterns: how the cost grows",
        "columns": ["nodes", "edges", "candidates", "median ms", "95 % ms", "median CPU, ms", "rounds"],
        "rows": rows,
        "notes": [
            "Three facts a node, degrees and 50 predicates by Zipf's law. The ends of a path have candidate lists with the right "
            "node at a random place, so that the bound has to grow past nearer candidates; the first three answers, exactly.",
            f"{questions} patterns each; distances are given, without vectors. Rounds count how often the bound grew.",
        ],
    }


def a_walk(draw: Any, graph: Any, start: int, edges: int) -> tuple[list[int], list[int]]:
    """A walk over different nodes, and the labels of its edges."""
    while True:
        walk, labels = [start], []
        for _ in range(edges):
            low, high = int(graph.offsets[walk[-1]]), int(graph.offsets[walk[-1] + 1])
            at = int(draw.integers(low, high))
            walk.append(int(graph.neighbours[at]))
            labels.append(int(graph.labels[at]))
        if len(set(walk)) == len(walk):
            return walk, labels


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("data", type=Path, metavar="DATA")
    arguments.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    arguments.add_argument("--sizes", type=float, nargs="+", default=[1, 10], metavar="MILLIONS")
    arguments.add_argument("--sample", type=int, metavar="N", help="questions of each set; all by default")
    arguments.add_argument("--out", type=Path, metavar="DIR")
    given = arguments.parse_args()
    results: list[dict[str, Any]] = []
    if "hubs" in given.parts or "hops" in given.parts:
        graph = movies(given.data)
        if "hubs" in given.parts:
            results.append(hubs(graph))
        if "hops" in given.parts:
            results.append(hops(graph, given.sample or 300))
    if "gold" in given.parts:
        results += gold(given.data, given.sample)
    if "scale" in given.parts:
        results.append(scale(given.sizes, 50))
    for result in results:
        result["command"] = "python benchmarks/patterns.py DATA"
        print(markdown(result))
    print(write("patterns", results, given.out), file=sys.stderr)


if __name__ == "__main__":
    main()
