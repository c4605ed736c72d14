"""The method of `Graph` that verifies claims."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any

from condgraph.engine.bounds import within
from condgraph.engine.errors import OptionError

if TYPE_CHECKING:
    from condgraph.claims.claim import Asking, Verdict


def verify(
    graph: Asking,
    claim: Any,
    llm: Any = None,
    *,
    closed: Collection[str] | bool = (),
    single: Mapping[str, bool] | Collection[str] = (),
    nearest: int = 0,
    retries: int = 1,
    seed: int | None = 0,
    prompt: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    cancelled: Event | None = None,
) -> Verdict:
    """Whether a claim is supported, refuted, or the graph has not enough facts, with the
    statements that say so (SimGRAG, fact verification; the rules are in
    `docs/reference/claims.md`).

    `claim` is triples, in any form of a pattern, a relation that begins with `NOT` denied; with
    `llm`, a text that the model reads as triples. The model decides nothing. `closed` names the
    predicates whose statements the graph has all of (True: every predicate), so that what it
    does not state is not so. `single` names those with one value, or says it of each; by
    default they are found by counting. `nearest` asks for so many of the most similar subgraphs
    besides. `retries` is how often the model is told what is wrong with its reading, `prompt` a
    file in place of the package's. `timeout` is in seconds.

    Raises `ParseError` or `PlanError` for what is no claim, `ModelError` where the model gives
    none, `OptionError` for a predicate in `closed` or `single` that the graph does not have.
    """
    from condgraph.claims.claim import Claim
    from condgraph.claims.verify import Facts, verify

    if isinstance(closed, str) or isinstance(single, str):
        raise OptionError("closed and single are several names, in a list, and not one text")
    for what, number in (("nearest", nearest), ("retries", retries)):
        if number < 0:
            raise OptionError(f"{what} is a number from 0, not {number!r}")
    named = dict(single) if isinstance(single, Mapping) else dict.fromkeys(single, True)
    begin = time.perf_counter()
    with within(graph.timeout if timeout is None else timeout, cancelled):
        if llm is None:
            return verify(graph, Claim.of(claim), closed, named, nearest)
        from condgraph.claims.reading import read_claim
        from condgraph.models.adapters import model_of

        if not isinstance(claim, str):
            raise OptionError(f"a model reads a claim that is a text, not {type(claim).__name__}", hint="leave llm out")
        read = read_claim(claim, model_of(llm), graph.schema(), Facts(graph, {}), retries=retries, seed=seed, prompt=prompt)
        verdict = verify(graph, read.claim, closed, named, nearest)
    return replace(verdict, attempts=read.attempts, usage=read.usage, model=read.model, seconds=time.perf_counter() - begin)
