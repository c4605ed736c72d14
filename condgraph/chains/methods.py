"""The methods of `Graph` for chains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any, cast

from condgraph.engine.bounds import within
from condgraph.engine.facts import Entity

if TYPE_CHECKING:
    from condgraph.chains.chain import Chain
    from condgraph.chains.place import ChainGraph
    from condgraph.chains.reason import Reasoned
    from condgraph.chains.walk import Verdict
    from condgraph.engine.period import Period, TimeLike
    from condgraph.engine.store import QueriedGraph
    from condgraph.vectors.encoders import Encoder


def chain(
    graph: QueriedGraph,
    entities: Iterable[str | Entity],
    tokenizer: Any,
    *,
    max_steps: int = 4,
    repeat: bool = True,
    values: bool = True,
    qualifiers: bool = True,
    engine: str | None = None,
    timeout: float | None = None,
    at: TimeLike | None = None,
    between: Sequence[TimeLike | None] | None = None,
    certain: bool = False,
) -> Chain:
    """Return a constraint under which a model can only write well-formed chains (DoG, section 2).

    The chain begins at `entities`, given by name, id or record. `tokenizer` is one of `tokenizers` or `transformers`,
    or an object with `encode(text)` and `decode(ids)`. `max_steps` is the most triples; without `repeat`, each is used
    once. `values` includes attributes, `qualifiers` includes qualifiers in brackets. `timeout` is in seconds. `at`,
    `between` and `certain` are as for `kopl`. Raises `UnknownNameError` for an entity, `OptionError` for another kind
    of tokenizer.
    """
    from condgraph.chains.chain import Chain
    from condgraph.engine.period import Period

    with within(graph.timeout if timeout is None else timeout):
        place = place_of(graph, engine, Period.of(at, between, certain), values=values, qualifiers=qualifiers)
        return Chain.of(place, entities, tokenizer, max_steps=max_steps, repeat=repeat)


def verify_chain(
    graph: QueriedGraph,
    text: str,
    entities: Iterable[str | Entity],
    *,
    max_steps: int | None = None,
    repeat: bool = True,
    engine: str | None = None,
    timeout: float | None = None,
    cancelled: Event | None = None,
    at: TimeLike | None = None,
    between: Sequence[TimeLike | None] | None = None,
    certain: bool = False,
) -> Verdict:
    """Verify a text as a chain from some entities.

    The verdict is true if the text has triples, and each is in the graph and touches an entity visited before; `wrong`
    is the first that is not, with the reason. `at`, `between` and `certain` are as for `kopl`. Raises
    `UnknownNameError` for an entity.
    """
    from condgraph.chains.walk import verify
    from condgraph.engine.period import Period

    with within(graph.timeout if timeout is None else timeout, cancelled):
        return verify(place_of(graph, engine, Period.of(at, between, certain)), text, entities, max_steps=max_steps, repeat=repeat)


def reason(
    graph: QueriedGraph,
    question: str,
    llm: Any,
    *,
    entities: Iterable[str | Entity] | None = None,
    max_steps: int = 4,
    beams: int = 1,
    score: str = "masked",
    combined: str = "sum",
    visibility: str = "full",
    shown: int = 120,
    subgraph: int | None = None,
    repeat: bool = False,
    free: bool = True,
    method: str = "chains",
    encoder: Encoder | str | None = None,
    engine: str | None = None,
    timeout: float | None = None,
    cancelled: Event | None = None,
    at: TimeLike | None = None,
    between: Sequence[TimeLike | None] | None = None,
    certain: bool = False,
) -> Reasoned:
    """Answer a question by a chain of triples that a model writes (DoG, Algorithm 1).

    The answer is an entity or value of the graph, with the statements that lead to it. `llm` is a backend
    (`condgraph.chains.backends`: `LlamaCpp`, `Transformers`, `Vllm`), or a model as for `Graph.ask`; `backend` of the
    answer tells how it was constrained. `entities` are those of the question; by default the names in it. The `beams`
    best chains are kept by their `score` ("masked": among the allowed tokens, Eq. 2, or "raw"), `combined` over tokens
    by "sum" or "mean". `visibility` is what the model sees: "full", the `shown` triples most similar to the question;
    "local", those that may follow; or "none". `subgraph` restricts chains to that many triples, those most similar by
    `encoder`. Without `free` there is no text between triples. `method="direct"` and `"cot"` are the unconstrained
    baselines of the paper. `timeout` is in seconds. `at`, `between` and `certain` are as for `kopl`. Raises
    `OptionError` for invalid options, `ModelError` if the model fails.
    """
    from condgraph.chains.reason import Options, mentions, reason
    from condgraph.engine.period import Period
    from condgraph.vectors.encoders import encoder_of

    options = Options(
        max_steps=max_steps, beams=beams, score=cast(Any, score), combined=cast(Any, combined), shown=shown,
        visibility=cast(Any, visibility), subgraph=subgraph, repeat=repeat, free=free, method=cast(Any, method),
    )  # fmt: skip
    options.check()
    backend = backend_of(llm)
    with within(graph.timeout if timeout is None else timeout, cancelled):
        place = place_of(graph, engine, Period.of(at, between, certain))
        named = mentions(place, question) if entities is None else entities
        return reason(place, question, backend, named, options, None if encoder is None else encoder_of(encoder))


def place_of(
    graph: QueriedGraph, engine: str | None = None, period: Period | None = None, *, values: bool = True, qualifiers: bool = True
) -> ChainGraph:
    """Return the statements of a graph (in a period, if given) for chains: in its snapshot, or on a server."""
    from condgraph.chains.place import LocalPlace, StorePlace
    from condgraph.engine.execute.validity import cut

    store = graph._store_of(engine)
    snapshot = getattr(store, "snapshot", None)
    if snapshot is not None and not callable(snapshot) and not hasattr(store, "around"):
        return LocalPlace(snapshot if period is None else cut(snapshot, period), values=values, qualifiers=qualifiers)
    return StorePlace(cast(Any, store), period, values=values, qualifiers=qualifiers)


def backend_of(llm: Any) -> Any:
    """Return a backend unchanged; wrap a chat model, by whether it accepts JSON schemas."""
    if hasattr(llm, "triples") and hasattr(llm, "choose"):
        return llm
    from condgraph.chains.backends.hosted import Hosted, Repaired
    from condgraph.models.adapters import model_of

    model = model_of(llm)
    return Hosted(model) if "json-schema" in model.accepts else Repaired(model)
