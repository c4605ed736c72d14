"""Gold patterns of PathQuestions and MetaQA find the gold answers, and hubs are answered at once."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import condgraph

pytestmark = pytest.mark.data
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "patterns.py"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """The benchmark, which knows how questions become patterns."""
    spec = importlib.util.spec_from_file_location("patterns", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(BENCHMARK.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARK.parent))
    return module


@pytest.fixture(scope="module")
def films(benchmark: ModuleType, data: Path) -> Any:
    return benchmark.movies(data)


def share(graph: Any, questions: list[Any], apart: bool, **more: Any) -> float:
    """How many of the questions have all gold answers among the grouped answers, in percent."""
    found = 0
    for triples, node, topic, answers, _ in questions:
        options = {"k": None, "group_by": node, "distinct_from": topic if apart else None} | more
        found += answers <= set(graph.match(triples, **options).texts)
    return found / len(questions) * 100


def test_path_questions(benchmark: ModuleType, data: Path) -> None:
    graph = condgraph.open("memory:")
    graph.load(data / "pathquestions" / "2H-kb.txt", name="pathquestions")
    questions = benchmark.path_questions(data)
    assert share(graph, questions, apart=False) >= 99.8
    assert share(graph, benchmark.path_walks(data, 100), apart=False) == 100
    # A path that comes back by the statement that it went takes a free walk.
    assert share(graph, questions, apart=False, free=True) == 100


@pytest.mark.parametrize("hop", [1, 2, 3])
def test_metaqa(benchmark: ModuleType, data: Path, films: Any, hop: int) -> None:
    questions = random.Random(hop).sample(benchmark.metaqa_questions(data, hop), 300)
    assert share(films, questions, apart=True) >= 99


def test_hubs_are_no_trouble(benchmark: ModuleType, films: Any, extended: list[int]) -> None:
    """The rows that a search makes are few beside the products that there are."""
    for _, _, pattern, group in benchmark.hub_patterns():
        for options in ({"k": 3}, {"k": None, "group_by": group}):
            extended.clear()
            assert len(films.match(pattern, **options)) >= 3
            assert sum(extended) < 100_000
