"""The methods of `Graph` for questions in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from condgraph.engine.bounds import check, within
from condgraph.engine.errors import DeadlineError

if TYPE_CHECKING:
    from condgraph.ask.prompt import Excerpt
    from condgraph.ask.records import Asked, AskStep, Host, Via
    from condgraph.models.budget import Budget


def ask(
    graph: Host,
    question: str,
    llm: Any,
    *,
    via: Via = "auto",
    demos: int | None = None,
    budget: Budget | None = None,
    samples: int = 1,
    retries: int = 3,
    source: str | None = None,
    verbalise: bool = False,
    function: bool = False,
    seed: int = 0,
    temperature: float | None = None,
    transcript: str | os.PathLike[str] | None = None,
    on_step: Callable[[AskStep], Any] | None = None,
    choose: Mapping[str, str] | None = None,
    aware: bool = False,
    cells: bool = True,
    untrusted: Collection[str] = (),
    prompts: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    timeout: float | None = None,
    cancelled: Event | None = None,
) -> Asked:
    """Ask in plain words: a model writes a program, which is run; what went wrong is told to the
    model, which tries again (TrustUQA, section 3).

    `llm` is a model as `model_of` takes it: "openai:MODEL", a callable `(messages) -> str`, a
    `ChatModel`, LangChain's. `via` is the language of the program; "auto" decides by a written
    rule. `demos` is how many demonstrations are shown (8 by default), `samples` how many
    programs vote, `retries` how often one is put right. `source` scopes to one source. `choose`
    says what ambiguous names mean. `verbalise` has the model say the answer, `function` has it
    work out functions that the engine does not have. `aware`, of programs in KoPL ("auto" is KoPL
    then): where the model's server takes grammars, only what an entity of the question has can be
    written behind it; the step "look" and the warnings say what it was held to. `cells=False` shows it names of the schema
    alone, `untrusted` are sources no cells of which are shown. `prompts` is a folder with
    prompts of your own. `transcript` records the calls in a file. `timeout` is in seconds.

    The outcome is never an error of the model or of its programs: `status` says how it ended.
    Raises `OptionError` for options that make no sense, `UnknownNameError` for a source that
    there is none of, `StoreMissingError` where nothing was loaded.
    """
    from condgraph.ask.pipeline import Asking
    from condgraph.ask.records import AskOptions
    from condgraph.models.adapters import model_of
    from condgraph.models.budget import Budget as Bounds

    model = model_of(llm)
    if transcript is not None:
        from condgraph.models.transcript import Recording

        model = Recording(model, Path(transcript))
    options = AskOptions(
        via=via, demos=demos, budget=Bounds() if budget is None else budget, samples=samples, retries=retries, source=source,
        verbalise=verbalise, function=function, seed=seed, temperature=temperature, limit=limit, cells=cells,
        untrusted=untrusted, choose=dict(choose or {}), prompts=prompts, on_step=on_step, aware=aware,
    )  # fmt: skip
    timeout = graph.timeout if timeout is None else timeout
    with within(timeout, cancelled):
        asking = Asking(graph, question, model, options)
        try:
            # What a model wrote may take forever: the seconds of the budget hold for it as well.
            with within(options.budget.seconds):
                found = asking.run()
        except DeadlineError:
            # The deadline of the call is an error, as of every call.
            check()
            found = asking.late()
    if found.answer is not None:
        found.answer.keep_to(timeout)
    return found


def excerpt(
    graph: Host,
    question: str,
    tokens: int = 500,
    *,
    source: str | None = None,
    demos: int = 8,
    count: Callable[[str], int] | None = None,
    cells: bool = True,
    untrusted: Collection[str] = (),
    timeout: float | None = None,
) -> Excerpt:
    """The part of the schema that a question needs, as text of at most so many tokens for the
    prompt of a language model: what the question names, the predicates nearest to its words,
    those of similar demonstrations (`demos` of them), concepts and keys of qualifiers.

    Tokens are estimated, rather too many than too few; `count` counts with a tokenizer instead.
    `cells=False` leaves out what stands in the graph but names, and so does a source among
    `untrusted`. `timeout` is in seconds.
    """
    from condgraph.ask.prompt import excerpt, known_of, masked, mentions_in
    from condgraph.engine.errors import UnknownNameError, nearest

    with within(graph.timeout if timeout is None else timeout):
        store = graph._store_of(None)
        known = known_of(store, graph._survey())
        if source is not None and source not in known.sources.names:
            raise UnknownNameError("source", source, candidates=nearest(source, known.sources.names))
        found = mentions_in(question, known)
        similar = graph.demos.similar(masked(question, found), demos, without=" ".join(question.split()))
        weights = graph.demos.weights(similar)
        return excerpt(
            known, store, question, tokens, source=source, demonstrated=weights, count=count, samples=cells,
            untrusted=untrusted, mentions=found,
        )  # fmt: skip
