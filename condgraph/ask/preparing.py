"""A question before a model is asked: what it names, which language suits it, what of the schema and
which demonstrations the model is shown, within a budget of tokens (TrustUQA, section 3.2).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from condgraph.ask.attempt import Runner
from condgraph.ask.demos import Demos, Similar
from condgraph.ask.excerpt import Excerpt, excerpt, rank_sources
from condgraph.ask.functions import Functions
from condgraph.ask.held import held_to
from condgraph.ask.known import Known, known_of
from condgraph.ask.mentions import Mention, asked_about, masked, mentions, not_looked_at
from condgraph.ask.options import MOST_DEMOS, AskOptions
from condgraph.ask.prompt import Prompts, block, mark_of
from condgraph.ask.records import AskStep, Attempt
from condgraph.ask.route import route
from condgraph.engine.bounds import current
from condgraph.engine.errors import BudgetError, UnknownNameError, nearest, shortened
from condgraph.models.base import ChatModel, Message
from condgraph.models.budget import Metered
from condgraph.models.tokens import estimate

if TYPE_CHECKING:
    from condgraph.ask.host import Host
    from condgraph.grammars.grammar import Grammar

#: Which part of what a prompt has room for is left for a second try, and which demonstrations take.
_FOR_RETRY, _FOR_DEMOS = 0.25, 0.45


class Preparing:
    """One question, with what is told of it on the way; `prepared` makes the prompt."""

    def __init__(self, graph: Host, question: str, model: ChatModel, options: AskOptions) -> None:
        self.graph, self.question, self.options = graph, question, options
        self.model = Metered(model, options.budget)
        self.prompts = Prompts(options.prompts)
        self.steps: list[AskStep] = []
        self.attempts: list[Attempt] = []
        self.warnings: list[str] = []
        self.shown: list[str] = []
        # What an entity has is in grammars of KoPL alone.
        self.via = "kopl" if options.aware and options.via == "auto" else options.via
        self.excerpt: Excerpt | None = None
        self.grammar: Grammar | None = None
        #: What marks the data of the prompt.
        self.mark = ""
        self.declined = 0
        #: What bounds the call itself; the seconds of the budget may end before it does.
        self.bounds = current()

    def count(self, text: str) -> int:
        """How many tokens a text has: by the model's tokenizer, or estimated."""
        found = self.model.count(text)
        return estimate(text) if found is None else found

    def tell(self, name: str, seconds: float, about: str = "") -> None:
        """A step is done."""
        step = AskStep(name, seconds, about)
        self.steps.append(step)
        if self.options.on_step is not None:
            self.options.on_step(step)

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Time a step; what is put into the list is told of it."""
        about: list[str] = []
        begin = time.perf_counter()
        try:
            yield about
        finally:
            self.tell(name, time.perf_counter() - begin, "; ".join(about))

    def prepared(self) -> tuple[list[Message], Runner, Known]:
        """The prompt, what runs programs, and what is known of the graph; raises `BudgetError` where not
        even the question fits.
        """
        options = self.options
        store = self.graph._store_of(None)
        with self.step("look") as about:
            known = known_of(store, self.graph._survey())
            sources = known.sources.names
            source = options.source
            if source is not None and source not in sources:
                raise UnknownNameError("source", source, candidates=nearest(source, sources))
            if self._frame_tokens() > 0.8 * (options.budget.prompt_tokens or 10**9):
                raise BudgetError(
                    f"the question and the instructions take {self._frame_tokens():,} of the {options.budget.prompt_tokens:,} "
                    "tokens of a prompt",
                    hint="nothing was looked for; a larger prompt_tokens= or a shorter question may help",
                )
            found = mentions(self.question, known)
            form = masked(self.question, found)
            scores = known.predicates.scores(asked_about(self.question, found))
            ranked = (source,) if source is not None else tuple(rank_sources(known, scores, asked_about(self.question, found))[:10])
            most = MOST_DEMOS if options.demos is None else options.demos
            similar = self._similar(form, most)
            if self.via == "auto":
                self.via, why = route(known, ranked[:3], similar)
                about.append(f"{self.via}, since {why}")
            elif options.via == "auto":
                about.append("kopl, since what entities have is asked for")
            about += self._linked(found, known)
            if source is None and len(sources) > 1:
                about.append(f"sources: {', '.join(ranked[:3])}")
            similar = [one for one in similar if one.demo.language == self.via]
            self.grammar = held_to(self.graph, self.model, self.via, self.asked, found, source, aware=options.aware)
            about += self._held()
        with self.step("excerpt") as about:
            messages = self._messages(known, found, similar, most, ranked)
            assert self.excerpt is not None
            about.append(f"{len(self.excerpt.predicates)} predicates in {self.excerpt.tokens} tokens")
        runner = Runner(self.graph, self.question, source, ranked, options.choose, limit=options.limit)
        if options.function:
            mark = mark_of(options.seed + 1, [self.question])
            runner.llm_function = Functions(self.model, self.prompts, mark, self.question, options.seed, self.shown)
        return messages, runner, known

    def _held(self) -> list[str]:
        """What is said of the grammar; where it was to know what entities have, and does not, a warning too."""
        made = self.grammar
        if made is None:
            if self.options.aware:
                self.warnings.append("aware= has no effect: the model is held to no grammar, since its server takes none that fits")
            return []
        if not made.aware:
            self.warnings += made.warnings if self.options.aware else ()
            return [f"held to a grammar ({made.format})"]
        several = "an entity has" if len(made.entities) == 1 else f"{len(made.entities)} entities have"
        return [f"held to a grammar ({made.format}) that knows what {several}"]

    def _similar(self, form: str, most: int) -> list[Similar]:
        """The demonstrations whose questions are of a similar form, of any language that may be
        chosen.
        """
        via = None if self.via == "auto" else self.via
        demos: Demos = self.graph.demos
        return demos.similar(form, most, via=via, without=None if self.options.same_question else self.asked)

    @property
    def asked(self) -> str:
        """The question on one line."""
        return " ".join(self.question.split())

    def _linked(self, found: list[Mention], known: Known) -> list[str]:
        """What the question names; names of nothing are warned of, and what was not looked at."""
        if (left := not_looked_at(self.question)) is not None:
            self.warnings.append(left)
        for one in found:
            if not one.names and not known.schema.has_text(one.text):
                self.warnings.append(f"the graph has no name like {shortened(one.text, 80)!r}, which the question says")
        return [f"{one.text!r} is {', '.join(map(repr, one.names[:3]))}" for one in found[:5] if one.names]

    @property
    def _language(self) -> str:
        """The language of programs, as the prompt says it."""
        text = self.prompts.fill(self.via if self.via != "auto" else "query")
        return text if self.grammar is None else f"{text}\n{self.grammar.told}".strip()

    def _frame(self, mark: str, excerpt_text: str, demonstrations: str) -> list[Message]:
        system = self.prompts.fill("system", mark=mark, language=self._language)
        user = self.prompts.fill("user", excerpt=excerpt_text, demonstrations=demonstrations, question=self.asked)
        return [{"role": "system", "content": system}, {"role": "user", "content": user}]

    def _frame_tokens(self) -> int:
        return sum(self.count(one["content"]) + 8 for one in self._frame("DATA-0123456789abcdef", "", "")) + 40

    def _messages(
        self, known: Known, found: list[Mention], similar: list[Similar], most: int, ranked: tuple[str, ...]
    ) -> list[Message]:
        """The prompt, within the budget of tokens: demonstrations as they fit, and the excerpt."""
        options = self.options
        whole = options.budget.prompt_tokens
        left = 10**6 if whole is None else int((whole - self._frame_tokens()) * (1 - _FOR_RETRY))
        shown, texts, used = [], [], 0
        own = self.graph.demos.static(self.via, max(min(most, 4) - len(similar), 0)) if most else []
        for one in [*similar, *own]:
            text = f"Question: {one.demo.question}\nProgram:\n{one.demo.program}\n\n"
            cost = self.count(text)
            if used + cost > _FOR_DEMOS * left:
                break
            shown.append(one)
            texts.append(text)
            used += cost
        weights = self.graph.demos.weights(similar)
        self.excerpt = excerpt(
            known, self.graph._store_of(None), self.question, max(min(options.excerpt_tokens, left - used), 0),
            source=options.source, demonstrated=weights, count=self.count, samples=options.cells,
            untrusted=options.untrusted, mentions=found, sources=ranked,
        )  # fmt: skip
        # The most similar stands nearest to the question.
        demonstrations = "".join(["Examples:\n\n", *reversed(texts)]) if texts else ""
        mark = self.mark = mark_of(options.seed, [self.question, self.excerpt.text, demonstrations])
        return self._frame(mark, block(mark, self.excerpt.text), demonstrations)
