"""A question on its way: look, excerpt, write, read, resolve, run, vote, say (TrustUQA, section 3).

Every step is timed and told; every attempt is kept with where it ended. A model is asked again with
what went wrong; a program that it writes twice is not run twice, and ends the asking. Nothing but
the text of a completion is ever read as a program.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Final

from condgraph.ask.attempt import Runner
from condgraph.ask.cite import checked, facts_of, plain
from condgraph.ask.excerpt import Excerpt
from condgraph.ask.feedback import feedback_of
from condgraph.ask.held import written
from condgraph.ask.known import Known
from condgraph.ask.preparing import Preparing
from condgraph.ask.prompt import block, mark_of
from condgraph.ask.records import Asked, Attempt, Stage, Status, Vote
from condgraph.ask.reply import declines, gives_up, program_in
from condgraph.engine.bounds import check, within
from condgraph.engine.errors import BudgetError, DeadlineError, ModelError, shortened
from condgraph.models.base import Completion, Message

#: Tokens of a reply, and characters of one that is shown to the model again.
MOST_REPLY: Final = 800
_SHOWN: Final = 2_000
#: Seconds that an answer which was found in time may take to be told.
_LATE: Final = 1.0


class Asking(Preparing):
    """One question being asked; `run` gives its outcome."""

    #: Whether the model may still be asked.
    asks = True

    # -- all of it ---------------------------------------------------------------------------------

    def run(self) -> Asked:
        """Ask, and give the outcome: never an error of the model or of a program it wrote."""
        if not self.question.strip():
            self.warnings.append("the question is empty: nothing was looked for, and no model was asked")
            return self._outcome("failed")
        try:
            messages, runner, known = self.prepared()
            self._samples(messages, runner, known)
        except BudgetError as error:
            self.warnings.append(str(error))
            return self._spent()
        return self._decided()

    def late(self) -> Asked:
        """The outcome where the seconds of the budget passed: of what was done by then."""
        self.warnings.append(f"the budget's {self.options.budget.seconds:g} s passed")
        self.asks = False
        try:
            with within(_LATE):
                return self._spent()
        except DeadlineError:
            check()
            return self._outcome("budget")

    def _spent(self) -> Asked:
        """The outcome where the budget ended the asking: what other attempts gave is not lost."""
        if any(one.answer is not None or one.choice is not None for one in self.attempts):
            return self._decided()
        return self._outcome("budget")

    # -- asking the model --------------------------------------------------------------------------

    def _samples(self, messages: list[Message], runner: Runner, known: Known) -> None:
        """Every sample once; where none gives an answer, the first is tried again."""
        completions = self._write(messages, self.options.samples)
        for number, completion in enumerate(completions):
            try:
                self._take(completion, runner, known, sample=number, number=0)
            except DeadlineError:
                for other, later in enumerate(completions[number + 1 :], number + 1):
                    self._unfinished(later.text, "running", "the time was over before the program was run", sample=other)
                raise
        tried = {one.program for one in self.attempts if one.program}
        empties = sum(one.answer is not None for one in self.attempts)
        retry = 0
        while retry < self.options.retries and not self._settled():
            last = next((one for one in self.attempts if one.feedback), None) if retry == 0 else self.attempts[-1]
            if last is None or not last.feedback or empties > 1:
                break
            retry += 1
            check()
            completions = self._write(self._again(messages, last), 1, retry)
            if not completions:
                break
            attempt = self._take(completions[0], runner, known, sample=last.sample, number=retry, tried=tried)
            if attempt is None:
                break
            tried.add(attempt.program)
            empties += attempt.answer is not None and attempt.stage == "running"

    def _settled(self) -> bool:
        return any(one.choice is not None or (one.answer is not None and one.stage is None) for one in self.attempts)

    def _unfinished(
        self, reply: str, stage: Stage, error: str, program: str = "", language: str = "", *, sample: int = 0, number: int = 0
    ) -> None:
        """Keep an attempt that the end of the time cut short."""
        self.attempts.append(
            Attempt(
                reply, program, language, stage=stage, error=error, code=DeadlineError.code, source=self.options.source,
                sample=sample, number=number, unfinished=True,
            )
        )  # fmt: skip

    def _write(self, messages: list[Message], samples: int, number: int = 0) -> list[Completion]:
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
            except DeadlineError:
                about.append("not finished")
                self._unfinished("", "writing", "the time was over while the model was writing", number=number)
                raise
            about.append(f"{len(found)} of {samples}" if samples > 1 else f"{len(found[0].text) if found else 0} characters")
        if len(found) < samples:
            self.warnings.append(f"{samples} samples were asked for, and {len(found)} came")
        return list(found)[:samples]

    def _again(self, messages: list[Message], last: Attempt) -> list[Message]:
        """The prompt with the last try and what went wrong, within the budget of tokens."""
        # Names of the graph stand in it: it is data, as the block that the prompt has.
        told = self.prompts.fill("retry", feedback=block(self.mark, last.feedback.replace(self.mark, "")))
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
            # It is asked again, and says so again where it does not know.
            self.declined += gives_up(reply)
            told = f"There is no program in the reply. {_EXAMPLE[self.via]}"
            attempt = replace(begun, stage="writing", error="there is no program in the reply", feedback=told)
        else:
            program, language = found
            if tried is not None and program in tried:
                self.warnings.append("the model wrote the same program again")
                return None
            try:
                attempt = self._run(runner, reply, program, language)
            except DeadlineError:
                why = "the time was over while the program ran"
                self._unfinished(reply, "running", why, program, language, sample=sample, number=number)
                raise
            attempt = replace(attempt, sample=sample, number=number)
            if attempt.stage is not None:
                attempt = replace(attempt, feedback=feedback_of(attempt, known))
        self.attempts.append(attempt)
        return attempt

    def _run(self, runner: Runner, reply: str, program: str, language: str) -> Attempt:
        before = dict(runner.seconds)
        try:
            attempt = runner.attempt(reply, program, language)
        except DeadlineError:
            self.tell("run", sum(runner.seconds.values()) - sum(before.values()), "not finished")
            raise
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
        if not self.options.verbalise or not statements or not self.asks:
            return text, statements
        facts = facts_of(answer, statements)
        mark = mark_of(self.options.seed + 2, [self.question, facts])
        prompt = self.prompts.fill("verbalise", mark=mark, facts=block(mark, facts), question=self.asked)
        with self.step("say") as about:
            try:
                found = self.model.chat([{"role": "user", "content": prompt}], max_tokens=300, seed=self.options.seed)
                said = found[0].text.strip() if found and found[0].finish == "stop" else ""
            except (ModelError, BudgetError) as error:
                self.warnings.append(f"the answer is said plainly: {error}")
                return text, statements
            except DeadlineError:
                if self.bounds is not None:
                    self.bounds.check()  # the deadline of the call itself is an error
                about.append("not finished")
                self.warnings.append("the answer is said plainly: the time was over while the model was writing")
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
