"""The cost of the constraint over MetaQA (134,000 triples): of a token, of the first tokens of a triple, and of a
complete triple.

    python benchmarks/chains.py

The tokenizer is a byte BPE that is trained here on the names of the graph.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import condgraph
from condgraph.chains.backends.base import gbnf_of_parts
from condgraph.chains.chain import parts

DATA = Path(os.environ.get("CONDGRAPH_DATA", "../shared")) / "data"


def byte_bpe(names: list[str]) -> Tokenizer:
    """A byte BPE of 20,000 tokens, trained on names."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    signs = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(names, trainers.BpeTrainer(vocab_size=20_000, initial_alphabet=signs, show_progress=False))
    return tokenizer


def main() -> None:
    graph = condgraph.open("memory:")
    graph.load(DATA / "metaqa" / "kb.txt")
    snapshot = graph.current
    names = [snapshot.name(number) for number in range(snapshot.entities)]
    tokenizer = byte_bpe(names)
    begin = time.perf_counter()
    graph.chain([names[0]], tokenizer)
    print(f"names encoded and sorted: {time.perf_counter() - begin:.2f} s")
    rng = random.Random(1)
    tokens: list[float] = []
    commits: list[float] = []
    for _ in range(300):
        chain = graph.chain([rng.choice(names)], tokenizer)
        while not chain.done:
            while not chain.complete:
                begin = time.perf_counter()
                allowed = chain.next()
                spent = time.perf_counter() - begin
                token = rng.choice(allowed)
                begin = time.perf_counter()
                chain.advance(token)
                tokens.append(spent + time.perf_counter() - begin)
            begin = time.perf_counter()
            chain.commit()
            chain.next()
            commits.append(time.perf_counter() - begin)
    for what, found, unit in (("token, us", tokens, 1e6), ("commit with the next root, ms", commits, 1e3)):
        print(f"{what}: median {np.median(found) * unit:.2f}, p99 {np.percentile(found, 99) * unit:.2f}")
    degrees = [snapshot.degree(np.array([one], np.int32), backward=True) for one in range(snapshot.entities)]
    hubs = [names[one] for one in sorted(range(snapshot.entities), key=lambda one: -degrees[one])[:5]]
    chain = graph.chain(hubs[:1], tokenizer)
    chain.advance(chain.next()[0])
    begin = time.perf_counter()
    many = len(chain.allowed())
    print(f"root mask of {hubs[0]!r} ({many} tokens): {(time.perf_counter() - begin) * 1e3:.2f} ms")
    for several in (1, 5):
        times = []
        for _ in range(9):
            begin = time.process_time()
            triples = parts(graph.chain(hubs[:several], tokenizer), 20_000)
            assert triples is not None
            grammar = gbnf_of_parts(triples)
            times.append((time.process_time() - begin) * 1e3)
        size = f"{len(grammar) / 1000:.0f} kB"
        print(f"a grammar of {len(triples):,} triples: median {np.median(times):.0f} ms of the processor, {size}")


if __name__ == "__main__":
    main()
