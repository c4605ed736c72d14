"""The method of `Graph` for verifying claims."""

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
    """Verify a claim: it is supported, refuted, or the graph has not enough facts. Returns the verdict with the
    statements that prove it (SimGRAG, fact verification). `docs/reference/claims.md` has the rules.

    - `claim`: triples in any form of a pattern, in which a relation that begins with `NOT` is denied; with `llm`, a text
    - `llm`: a model that translates the text into triples, and decides nothing
    - `closed`: the predicates with all their statements in the graph, so that what is not stated is false; True: every
      predicate
    - `single`: the predicates that have one value, or a mapping from predicates to whether they do; by default this is
      determined by counting
    - `nearest`: the number of most similar subgraphs to return as well
    - `retries`: how often the model is told of errors in its triples
    - `seed`: the seed for the model
    - `prompt`: the path of a prompt to use instead of the built-in one
    - `timeout`: in seconds

    Raises `ParseError` or `PlanError` if it is not a claim, `ModelError` if the model returns none, and `OptionError`
    for a predicate in `closed` or `single` that the graph does not have.
    """
    from condgraph.claims.claim import Claim
    from condgraph.claims.verify import Facts, verify

    if isinstance(closed, str) or isinstance(single, str):
        raise OptionError("closed and single are several names, in a list, and not one text")
    for option, number in (("nearest", nearest), ("retries", retries)):
        if number < 0:
            raise OptionError(f"{option} is a number from 0, not {number!r}")
    single_valued = dict(single) if isinstance(single, Mapping) else dict.fromkeys(single, True)
    begin = time.perf_counter()
    with within(graph.timeout if timeout is None else timeout, cancelled):
        if llm is None:
            return verify(graph, Claim.of(claim), closed, single_valued, nearest)
        from condgraph.claims.reading import read_claim
        from condgraph.models.adapters import model_of

        if not isinstance(claim, str):
            raise OptionError(f"a model reads a claim that is a text, not {type(claim).__name__}", hint="leave llm out")
        reading = read_claim(claim, model_of(llm), graph.schema(), Facts(graph, {}), retries=retries, seed=seed, prompt=prompt)
        verdict = verify(graph, reading.claim, closed, single_valued, nearest)
    return replace(
        verdict, attempts=reading.attempts, usage=reading.usage, model=reading.model, seconds=time.perf_counter() - begin
    )
