"""A model of transformers, made here with random weights and a real tokenizer: what `generate` writes
under the processor is well formed, by greedy search, beams and sampling.

torch is large, so these tests have a lane of their own (`.ci/models`); elsewhere they are skipped.
"""

from __future__ import annotations

import importlib.util
import os
import random
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.chains.backends.local import ChainProcessor, Transformers
from condgraph.engine.facts import Ref, Statement
from tests.chains.test_chains import JUDGE, ROWS
from tests.chains.tokenizers_made import made


@pytest.fixture(scope="module")
def torch() -> Any:
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
        if os.environ.get("CONDGRAPH_MODELS") == "1":
            pytest.fail("torch and transformers are not installed")
        pytest.skip("torch and transformers are not installed; .ci/models runs these tests")
    import torch

    # Many small calls: more threads only wait for each other.
    torch.set_num_threads(1)
    return torch


@pytest.fixture(scope="module")
def tokenizer(torch: Any) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=made("byte BPE"), eos_token="<|end|>", pad_token="<|end|>")


@pytest.fixture(scope="module")
def model(torch: Any, tokenizer: Any) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    size = len(tokenizer)
    end = tokenizer.eos_token_id
    config = GPT2Config(vocab_size=size, n_positions=4096, n_embd=32, n_layer=2, n_head=2, bos_token_id=end, eos_token_id=end)
    return GPT2LMHeadModel(config).eval()


@pytest.fixture(scope="module")
def films() -> Graph:
    graph = condgraph.open("memory:")
    graph.add([Statement(head, relation, Ref(tail)) for head, relation, tail in ROWS])
    return graph


WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "beams": {"do_sample": False, "num_beams": 4, "num_return_sequences": 3},
    "sampling": {"do_sample": True, "top_k": 0, "temperature": 1.5, "num_return_sequences": 4},
    "sampled beams": {"do_sample": True, "num_beams": 3, "num_return_sequences": 3},
}


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_generate_writes_well_formed_chains(torch: Any, model: Any, tokenizer: Any, films: Graph, way: str, free: bool) -> None:
    names, rng, complete = sorted(JUDGE.names), random.Random(3), 0
    for seed in range(2):
        torch.manual_seed(seed)
        name = rng.choice(names)
        given = tokenizer(f"Question about {name}\n", return_tensors="pt")
        size = given["input_ids"].shape[1]
        processor = ChainProcessor(
            films.chain([name], tokenizer, max_steps=2), prompt=size, end=tokenizer.eos_token_id, free=free
        )  # fmt: skip
        found = model.generate(
            **given, **WAYS[way], max_new_tokens=60, logits_processor=[processor], pad_token_id=tokenizer.eos_token_id
        )
        for row in found.tolist():
            ids = row[size:]
            while ids and ids[-1] == tokenizer.eos_token_id:
                ids.pop()
            chain = processor.chain(ids)
            if chain is None:
                assert way == "sampled beams"
                continue
            text = tokenizer.decode(ids)
            if chain.triples:
                complete += 1
                assert JUDGE.problem(chain.text, [name], most=2) is None
                verdict = films.verify_chain(text, [name])
                assert all(step or step.why == "malformed" for step in verdict.steps[: len(chain.triples)])
                assert [str(one) for one in verdict.triples] == [str(one) for one in chain.triples]
    assert complete or free


def test_algorithm_1_with_both_scores(torch: Any, model: Any, tokenizer: Any, films: Graph) -> None:
    llm = Transformers(model, tokenizer)
    for score in ("masked", "raw"):
        found = films.reason("When was Film 7 released?", llm, beams=2, score=score, max_steps=2, visibility="none", free=False)
        assert (found.backend, found.score) == ("transformers, masks", score)
        assert JUDGE.problem("\n".join(map(str, found.chain)), ["Film 7"], repeat=False) is None
        assert found.texts
        # By hand: the probabilities of the first triple's tokens among what was allowed.
        if score == "raw":
            assert found.chains[0].score < 0  # type: ignore[operator]
    one = films.reason("When was Film 7 released?", llm, max_steps=1, visibility="none", free=False)
    chain, total = llm.chain(one.walk.__class__.of(one.walk.place, ["Film 7"], 1, False)), 0.0  # type: ignore[union-attr]
    from condgraph.chains.reason import prompt_of

    before = list(tokenizer(prompt_of("When was Film 7 released?", []).text)["input_ids"])
    ids = chain.coder.whole([str(one.chain[0])])[0]
    for at, token in enumerate(ids):
        allowed = chain.next()
        with torch.no_grad():
            logits = model(torch.tensor([[*before, *ids[:at]]])).logits[0, -1].double()
        total += float(logits[token] - torch.logsumexp(logits[allowed], 0))
        chain.advance(token)
    assert one.chains[0].score == pytest.approx(total, abs=1e-4)
