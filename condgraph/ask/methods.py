"""The methods of `Graph` for questions in plain words."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from condgraph.engine.bounds import check, within
from condgraph.engine.errors import DeadlineError

if TYPE_CHECKING:
    from datetime import date

    from condgraph.ask.chat import Chat
    from condgraph.ask.prompt import Excerpt
    from condgraph.ask.records import Asked, AskStep, AskText, Host, Parts, Via
    from condgraph.models.chat import Budget
    from condgraph.names.words import OnUnknown


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
    on_text: Callable[[AskText], Any] | None = None,
    choose: Mapping[str, str] | None = None,
    aware: bool = False,
    cells: bool = True,
    untrusted: Collection[str] = (),
    prompts: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    on_unknown: OnUnknown = "error",
    excerpt_tokens: int | None = None,
    today: date | None = None,
    before: Sequence[Asked] = (),
    parts: Parts = "never",
    timeout: float | None = None,
    cancelled: Event | None = None,
) -> Asked:
    """Answer a question in plain words.

    A model writes a program, which is run. After a failure, the model is told what went wrong and tries again
    (TrustUQA, section 3).

    `llm` is "openai:MODEL", a callable `(messages) -> str`, a `ChatModel`, or a chat model of LangChain
    (`model_of`). `via` is the language of the program; "auto" chooses it by a fixed rule. `demos` is how many
    demonstrations the model is shown (8 by default), `samples` how many programs vote, and `retries` how often
    a failed program is repaired. `source` restricts the question to one source. `choose` maps ambiguous names
    to ids of entities or names of sources. With `verbalise` the model puts the answer into words, and with
    `function` it computes functions that the engine does not have. With `aware` (KoPL only) a grammar for the
    model's server allows after each entity of the question only what that entity has; the step "look" and the
    warnings tell whether this was possible. `cells=False` shows the model only names of the schema, and
    `untrusted` are sources whose cells it is not shown. `prompts` is a folder with your own prompts.
    `transcript` is a file that records the calls. `limit` is the most values of the answer, and `timeout` is in
    seconds. A predicate that the graph does not have is an error, which the model is told with candidates; with
    `on_unknown="nearest"` it is read as the nearest predicate, and the outcome is "doubtful" (the setting of
    TrustUQA). `excerpt_tokens` is the most tokens of the graph's excerpt in the prompt, by default two fifths of
    the budget's `prompt_tokens` (2,000). `today` is the date for questions about the present. `before` are the
    outcomes of earlier questions in a conversation, which `chat` maintains. With `parts="doubt"`, the model
    splits a question whose own answer is missing or doubtful into parts that are asked one after the other, and
    with "always" every question; `Asked.parts` has their outcomes. `on_step` is called after each step, and
    `on_text` with pieces of the model's text, in whichever thread they arrive.

    Errors of the model and of its programs are part of the outcome, whose `status` tells how it ended. Raises
    `OptionError` for invalid options, `UnknownNameError` for an unknown source, `StoreMissingError` for an empty
    graph, and `DeadlineError` after `timeout`.
    """
    from condgraph.ask.parts import AskingInParts
    from condgraph.ask.pipeline import Asking
    from condgraph.ask.records import AskOptions
    from condgraph.models.adapters import model_of
    from condgraph.models.chat import Budget as Bounds

    model = model_of(llm)
    if transcript is not None:
        from condgraph.models.transcript import Recording

        model = Recording(model, Path(transcript))
    options = AskOptions(
        via=via, demos=demos, budget=Bounds() if budget is None else budget, samples=samples, retries=retries, source=source,
        verbalise=verbalise, function=function, seed=seed, temperature=temperature, limit=limit, cells=cells,
        untrusted=untrusted, choose=dict(choose or {}), prompts=prompts, on_step=on_step, on_text=on_text, aware=aware,
        on_unknown=on_unknown, excerpt_tokens=excerpt_tokens, today=today, before=tuple(before), parts=parts,
    )  # fmt: skip
    timeout = graph.timeout if timeout is None else timeout
    with within(timeout, cancelled):
        asking = (Asking if parts == "never" else AskingInParts)(graph, question, model, options)
        try:
            # A program written by a model may run forever, so the budget's seconds apply to it, too.
            with within(options.budget.seconds):
                result = asking.run()
        except DeadlineError:
            # The deadline of the call itself is an error, as in every call.
            check()
            result = asking.late()
    if result.answer is not None:
        result.answer.keep_to(timeout)
    return result


P = ParamSpec("P")


def _stepwise(
    method: Callable[Concatenate[Any, str, P], Asked],
) -> Callable[Concatenate[Any, str, P], Iterator[AskStep | AskText | Asked]]:
    @wraps(method)
    def asking(graph: Any, question: str, /, *arguments: Any, **options: Any) -> Iterator[AskStep | AskText | Asked]:
        from condgraph.ask.chat import stream_steps

        return stream_steps(partial(method, graph, question, *arguments), options)

    asking.__name__ = "asking"
    asking.__doc__ = """Yield the steps of a question as they end, the text of the model as it is written, and at last the outcome
    of `ask`. Closing the iterator earlier ends the question.
    """
    return asking


asking = _stepwise(ask)


def chat(graph: Host, llm: Any, **options: Any) -> Chat:
    """Start a conversation in which a question may refer to earlier answers, such as "and his wife?".

    `chat.ask(question)` answers a question. `Asked.references` has what its words refer to. A word that may
    mean several entities becomes a choice (`choose={"his": id}`).

    `llm` and `options` are those of `ask`, for every question. Raises `OptionError` for other options.
    """
    from condgraph.ask.chat import Chat

    return Chat(graph, llm, options)


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
    """Return the part of the schema that a question needs, as text for the prompt of a language model.

    The text has at most `tokens` tokens. It contains the entities in the question, the predicates nearest to
    its words, those of similar demonstrations (`demos` of them), concepts, and keys of qualifiers.

    Tokens are estimated, rather too many than too few, unless `count` counts them with a tokenizer.
    `cells=False` leaves out all data except names, and `untrusted` does so for single sources. `timeout` is
    in seconds. Raises `UnknownNameError` for an unknown source, and `OptionError` for invalid `tokens`.
    """
    from condgraph.ask.prompt import excerpt, known_of, masked, mentions_in
    from condgraph.engine.errors import UnknownNameError, nearest

    with within(graph.timeout if timeout is None else timeout):
        store = graph._store_of(None)
        known = known_of(store, graph._survey())
        if source is not None and source not in known.sources.names:
            raise UnknownNameError("source", source, candidates=nearest(source, known.sources.names))
        result = mentions_in(question, known)
        similar = graph.demos.similar(masked(question, result), demos, without=" ".join(question.split()))
        weights = graph.demos.weights(similar)
        return excerpt(
            known, store, question, tokens, source=source, demonstrated=weights, count=count, samples=cells,
            untrusted=untrusted, mentions=result,
        )  # fmt: skip
