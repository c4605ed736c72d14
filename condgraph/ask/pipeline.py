"""A question on its way: look, excerpt, write, read, resolve, run, vote, say (TrustUQA, section 3).

Every step is timed and told; every attempt is kept with where it ended. A model is asked again with
what went wrong; a program that it writes twice is not run twice, and ends the asking. Nothing but
the text of a completion is ever read as a program.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from condgraph.ask.attempt import Runner
from condgraph.ask.cite import checked, facts_of, plain
from condgraph.ask.demos import Demos, Similar
from condgraph.ask.excerpt import Excerpt, excerpt, rank_sources
from condgraph.ask.feedback import feedback_of
from condgraph.ask.functions import Functions
from condgraph.ask.held import held_to, written
from condgraph.ask.known import Known, known_of
from condgraph.ask.mentions import Mention, asked_about, masked, mentions
from condgraph.ask.options import MOST_DEMOS, AskOptions
from condgraph.ask.prompt import Prompts, block, mark_of
from condgraph.ask.records import Asked, AskStep, Attempt, Status, Vote
from condgraph.ask.reply import declines, program_in
from condgraph.ask.route import route
from condgraph.engine.bounds import check
from condgraph.engine.errors import BudgetError, ModelError, UnknownNameError, nearest, shortened
from condgraph.models.base import ChatModel, Completion, Message
from condgraph.models.budget import Metered
from condgraph.models.tokens import estimate

if TYPE_CHECKING:
    from condgraph.ask.host import Host
    from condgraph.grammars.grammar import Grammar

#: Tokens of a reply, and characters of one that is shown to the model again.
MOST_REPLY: Final = 800
_SHOWN: Final = 2_000
#: Which part of what a prompt has room for is left for a second try, and which demonstrations take.
_FOR_RETRY, _FOR_DEMOS = 0.25, 0.45


class Asking:
    """One question being asked; `run` gives its outcome."""

    def __init__(self, graph: Host, question: str, model: ChatModel, options: AskOptions) -> None:
        self.graph, self.question, self.options = graph, question, options
        self.model = Metered(model, options.budget)
        self.prompts = Prompts(options.prompts)
        self.steps: list[AskStep] = []
        self.attempts: list[Attempt] = []
        self.warnings: list[str] = []
        self.shown: list[str] = []
        self.via = options.via
        self.excerpt: Excerpt | None = None
        self.grammar: Grammar | None = None
        self.declined = 0

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

    # -- all of it ---------------------------------------------------------------------------------

    def run(self) -> Asked:
        """Ask, and give the outcome: never an error of the model or of a program it wrote."""
        if not self.question.strip():
            self.warnings.append("the question is empty: nothing was looked for, and no model was asked")
            return self._outcome("failed")
        try:
            messages, runner, known = self._prepared()
            self._samples(messages, runner, known)
        except BudgetError as error:
            self.warnings.append(str(error))
            if not any(one.answer is not None or one.choice is not None for one in self.attempts):
                return self._outcome("budget")
        return self._decided()

    def late(self) -> Asked:
        """The outcome where the seconds of the budget passed."""
        self.warnings.append(f"the budget's {self.options.budget.seconds:g} s passed")
        return self._outcome("budget")

    # -- before the model is asked -----------------------------------------------------------------

    def _prepared(self) -> tuple[list[Message], Runner, Known]:
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
            if options.via == "auto":
                self.via, why = route(known, ranked[:3], similar)
                about.append(f"{self.via}, since {why}")
            about += self._linked(found, known)
            if source is None and len(sources) > 1:
                about.append(f"sources: {', '.join(ranked[:3])}")
            similar = [one for one in similar if one.demo.language == self.via]
            self.grammar = held_to(self.graph, self.model, self.via, self._asked, found)
            if self.grammar is not None:
                about.append(f"held to a grammar ({self.grammar.format})")
        with self.step("excerpt") as about:
            messages = self._messages(known, found, similar, most, ranked)
            assert self.excerpt is not None
            about.append(f"{len(self.excerpt.predicates)} predicates in {self.excerpt.tokens} tokens")
        runner = Runner(self.graph, self.question, source, ranked, options.choose, limit=options.limit)
        if options.function:
            mark = mark_of(options.seed + 1, [self.question])
            runner.llm_function = Functions(self.model, self.prompts, mark, self.question, options.seed, self.shown)
        return messages, runner, known

    def _similar(self, form: str, most: int) -> list[Similar]:
        """The demonstrations whose questions are of a similar form, of any language that may be
        chosen.
        """
        via = None if self.options.via == "auto" else self.options.via
        demos: Demos = self.graph.demos
        return demos.similar(form, most, via=via, without=None if self.options.same_question else self._asked)

    @property
    def _asked(self) -> str:
        return " ".join(self.question.split())

    def _linked(self, found: list[Mention], known: Known) -> list[str]:
        """What the question names; names of nothing are warned of."""
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
        user = self.prompts.fill("user", excerpt=excerpt_text, demonstrations=demonstrations, question=self._asked)
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
        mark = mark_of(options.seed, [self.question, self.excerpt.text, demonstrations])
        return self._frame(mark, block(mark, self.excerpt.text), demonstrations)

    # -- asking the model --------------------------------------------------------------------------

    def _samples(self, messages: list[Message], runner: Runner, known: Known) -> None:
        """Every sample once; where none gives an answer, the first is tried again."""
        completions = self._write(messages, self.options.samples)
        for number, completion in enumerate(completions):
            self._take(completion, runner, known, sample=number, number=0)
        tried = {one.program for one in self.attempts if one.program}
        empties = sum(one.answer is not None for one in self.attempts)
        retry = 0
        while retry < self.options.retries and not self._settled():
            last = next((one for one in self.attempts if one.feedback), None) if retry == 0 else self.attempts[-1]
            if last is None or not last.feedback or empties > 1:
                break
            retry += 1
            check()
            completions = self._write(self._again(messages, last), 1)
            if not completions:
                break
            attempt = self._take(completions[0], runner, known, sample=last.sample, number=retry, tried=tried)
            if attempt is None:
                break
            tried.add(attempt.program)
            empties += attempt.answer is not None and attempt.stage == "running"

    def _settled(self) -> bool:
        return any(one.choice is not None or (one.answer is not None and one.stage is None) for one in self.attempts)

    def _write(self, messages: list[Message], samples: int) -> list[Completion]:
        """The completions of one call; none where the model gave an error, which is kept."""
        with self.step("write") as about:
            try:
                found = self.model.chat(
                    messages, n=samples, max_tokens=MOST_REPLY, temperature=self.options.heat, seed=self.options.seed,
                    **({} if self.grammar is None else self.grammar.options()),
                )  # fmt: skip
            except ModelError as error:
                about.append(str(error))
                self.attempts.append(Attempt("", stage="writing", error=str(error), code=error.code))
                return []
            about.append(f"{len(found)} of {samples}" if samples > 1 else f"{len(found[0].text) if found else 0} characters")
        if len(found) < samples:
            self.warnings.append(f"{samples} samples were asked for, and {len(found)} came")
        return list(found)[:samples]

    def _again(self, messages: list[Message], last: Attempt) -> list[Message]:
        """The prompt with the last try and what went wrong, within the budget of tokens."""
        told = self.prompts.fill("retry", feedback=last.feedback)
        again: list[Message] = [
            *messages, {"role": "assistant", "content": shortened(last.reply, _SHOWN)}, {"role": "user", "content": told},
        ]  # fmt: skip
        most = self.options.budget.prompt_tokens
        if most is not None and sum(self.count(one["content"]) + 8 for one in again) + 8 > most:
            # The examples have done their work.
            user = str(messages[1]["content"])
            at, end = user.find("Examples:\n\n"), user.rfind("Question: ")
            if 0 <= at < end:
                again[1] = {"role": "user", "content": user[:at] + user[end:]}
        return again

    def _take(
        self, completion: Completion, runner: Runner, known: Known, *, sample: int, number: int, tried: set[str] | None = None
    ) -> Attempt | None:
        """Read a completion, and run the program in it; None where it goes no further."""
        reply = written(self.grammar, completion.text)
        with self.step("read") as about:
            found = None if completion.finish == "refusal" or declines(reply) else program_in(reply, self.via)
            about.append("no program" if found is None else f"{found[1]}, {len(found[0])} characters")
        begun = Attempt(reply, sample=sample, number=number)
        if completion.finish == "refusal" or declines(reply):
            self.declined += 1
            why = "the model refused" if completion.finish == "refusal" else "the model says that the data does not answer this"
            self.attempts.append(replace(begun, stage="writing", error=why))
            return None
        if completion.finish == "length" and not _whole(reply):
            why = f"the reply was cut off after {len(reply):,} characters"
            told = f"{why[0].upper()}{why[1:]}. Write a shorter program, without words around it."
            attempt = replace(begun, program="" if found is None else found[0], stage="writing", error=why, feedback=told)
        elif found is None:
            told = f"There is no program in the reply. {_EXAMPLE[self.via]}"
            attempt = replace(begun, stage="writing", error="there is no program in the reply", feedback=told)
        else:
            program, language = found
            if tried is not None and program in tried:
                self.warnings.append("the model wrote the same program again")
                return None
            attempt = self._run(runner, reply, program, language)
            attempt = replace(attempt, sample=sample, number=number)
            if attempt.stage is not None:
                attempt = replace(attempt, feedback=feedback_of(attempt, known, runner))
        self.attempts.append(attempt)
        return attempt

    def _run(self, runner: Runner, reply: str, program: str, language: str) -> Attempt:
        before = dict(runner.seconds)
        attempt = runner.attempt(reply, program, language)
        resolved, ran = (runner.seconds[name] - before[name] for name in ("resolve", "run"))
        ended = attempt.stage in ("writing", "resolving")
        self.tell("resolve", resolved, attempt.error if ended else "; ".join(attempt.notes))
        if not ended:
            gave = "a choice" if attempt.choice is not None else f"{len(attempt.gave or ())} values"
            self.tell("run", ran, attempt.error or gave)
        return attempt

    # -- after -------------------------------------------------------------------------------------

    def _decided(self) -> Asked:
        """The outcome of the attempts: the answer that most samples give, a choice, or why there is
        none.
        """
        answered = [one for one in self.attempts if one.answer is not None and one.stage is None]
        votes: tuple[Vote, ...] = ()
        if answered:
            with self.step("vote") as about:
                counts = Counter(_normal(one) for one in answered)
                # Of as many votes the answer that came first.
                best = max(counts.values())
                chosen = next(one for one in answered if counts[_normal(one)] == best)
                votes = tuple(Vote(texts, count) for texts, count in counts.most_common())
                about.append(f"{best} of {len(answered)}")
            chosen_choice = [one for one in self.attempts if one.choice is not None]
            if len(chosen_choice) <= best:
                return self._outcome("answered", chosen, votes)
        choices = [one for one in self.attempts if one.choice is not None]
        if choices:
            return self._outcome("ambiguous", choices[0])
        empty = [one for one in self.attempts if one.answer is not None]
        if empty:
            return self._outcome("empty", empty[0])
        return self._outcome("abstained" if self.declined and self.declined == len(self.attempts) else "failed")

    def _outcome(self, status: Status, attempt: Attempt | None = None, votes: tuple[Vote, ...] = ()) -> Asked:
        text = ""
        citations: tuple[str, ...] = ()
        answer = None if attempt is None or attempt.choice is not None else attempt.answer
        if answer is not None:
            self.warnings += [one for one in answer.warnings if one not in self.warnings]
        elif self.attempts and status == "failed":
            self.warnings.append(f"no program ran: {self.attempts[-1].error}")
        if status in ("empty", "failed", "abstained") and self.excerpt is not None:
            self.warnings.append(self._looked_for(self.excerpt))
        if answer is not None and status == "answered":
            text, citations = self._said(answer)
        spent = self.model.spent
        return Asked(
            self.question, status, answer, _LANGUAGES_BACK.get(attempt.language, "") if attempt else "",
            attempt.source if attempt else self.options.source,
            () if attempt is None or attempt.choice is None else (attempt.choice,),
            text, citations, tuple(self.attempts), votes, tuple(self.steps), spent.usage, spent.calls, self.model.name,
            self.prompts.versions, self.excerpt, tuple(dict.fromkeys(self.warnings)), tuple(self.shown),
        )  # fmt: skip

    def _looked_for(self, found: Excerpt) -> str:
        """What was looked for, where nothing was found."""
        named = [name for one in found.mentions for name in one.names[:1]]
        things = f"{', '.join(map(repr, named[:5]))}" if named else "no name of the graph"
        predicates = ", ".join(map(repr, found.predicates[:5])) or "no predicate"
        return f"looked for: {things}; nearest predicates: {predicates}"

    def _said(self, answer: Any) -> tuple[str, tuple[str, ...]]:
        """The answer in words: plain, or as the model says it, where that holds."""
        text, statements = plain(answer)
        if not self.options.verbalise or not statements:
            return text, statements
        facts = facts_of(answer, statements)
        mark = mark_of(self.options.seed + 2, [self.question, facts])
        prompt = self.prompts.fill("verbalise", mark=mark, facts=block(mark, facts), question=self._asked)
        with self.step("say") as about:
            try:
                found = self.model.chat([{"role": "user", "content": prompt}], max_tokens=300, seed=self.options.seed)
                said = found[0].text.strip() if found and found[0].finish == "stop" else ""
            except (ModelError, BudgetError) as error:
                self.warnings.append(f"the answer is said plainly: {error}")
                return text, statements
            self.shown.append(facts)
            wrong = checked(said, self.question, answer, statements)
            about.append(wrong or "it holds")
        if wrong:
            self.warnings.append(f"what the model said of the answer is not taken: {wrong}")
            return text, statements
        return said, statements


_LANGUAGES_BACK: Final = {"llm_query": "query", "kopl": "kopl", "pattern": "pattern"}
_EXAMPLE: Final = {
    "query": "Write lines such as Query1: \"get_information(relation='...', head_entity='...')\"",
    "kopl": "Write one line such as Find(...) Relate(..., forward) QueryName()",
    "pattern": 'Write one JSON object such as {"triples": [["...", "...", "UNKNOWN thing 1"]], "answer": "UNKNOWN thing 1"}',
}


def _whole(reply: str) -> bool:
    """Whether a reply that met the limit of tokens has its whole program: one in fences that end."""
    return reply.count("```") >= 2


def _normal(attempt: Attempt) -> tuple[str, ...]:
    """The texts of an answer, in a form in which the same answers are equal."""
    return tuple(sorted({" ".join(text.split()).casefold() for text in attempt.gave or ()}))
