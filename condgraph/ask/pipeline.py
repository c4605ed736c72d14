"""The pipeline of a question in plain words: prompt, program, run, vote, outcome (TrustUQA, section 3)."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from condgraph.ask.chat import (
    ANSWER,
    MAX_SHOWN,
    MAX_TURNS,
    answer_references,
    history_line,
    reference_lines,
    reference_mentions,
    resolve_references,
)
from condgraph.ask.demos import Demos, Similar, names_of
from condgraph.ask.judge import confidence, doubts, fit, replacement_doubts
from condgraph.ask.programs import METHODS, VIA_OF, Runner, candidates, declines, feedback_of, first_program, gives_up, program_in
from condgraph.ask.prompt import (
    Excerpt,
    KnownNames,
    Mention,
    Prompts,
    beyond_kopl,
    block,
    calls_for,
    crowded_aliases,
    depends_on_today,
    excerpt,
    known_of,
    mark_of,
    masked,
    mentions_in,
    rank_sources,
    unsearched_warning,
    without_names,
)
from condgraph.ask.records import (
    MAX_DEMOS,
    Asked,
    AskOptions,
    AskStep,
    AskText,
    Attempt,
    Choice,
    Reference,
    Stage,
    Status,
    Vote,
    checked_text,
    facts_of,
    parts_of,
    plain,
    sentence_fault,
)
from condgraph.engine import errors
from condgraph.engine.bounds import check, current, within
from condgraph.engine.external import FunctionCall
from condgraph.grammars.grammar import Grammar, constraint
from condgraph.models.chat import (
    ChatModel,
    ChatOptions,
    Completion,
    Completions,
    Message,
    Metered,
    Tell,
    heard_by,
    spoken,
    tokens_of,
)
from condgraph.overview.schema import CYPHER, WORDS, quoted

if TYPE_CHECKING:
    from condgraph.ask.records import Host
    from condgraph.engine.store import Store
    from condgraph.grammars.vocabulary import NamedGraph


# -- language of a question --------------------------------------------------------------------------
# The language of the program with `via="auto"`, by a fixed rule:
#
# 1. The language of the similar demonstrations, if at least one has the question's form (0.5).
# 2. In a conversation, the language of the previous question.
# 3. `query` if a source that may be meant has rows, or if the graph has facts with times, since KoPL
#    supports neither.
# 4. If statements have qualifiers: `kopl`, which can filter by them, or `cypher` if the question needs
#    something that KoPL lacks: groups, an order, a limit, equal variables, or parts of texts.
# 5. Otherwise `query`.
#
# A pattern is written only on request, or if the demonstrations are patterns.


#: A demonstration with at least this similarity has the form of the question.
ALIKE: Final = 0.5


def route(
    known: KnownNames, question: str, sources: Sequence[str], similar: Sequence[Similar], before: str = ""
) -> tuple[str, str]:
    """Return the language ("query", "kopl", "cypher" or "pattern") and the reason for it.

    `before` is the language of the previous question, if there is one.
    """
    alike = [item for item in similar if item.score >= ALIKE]
    if alike:
        weights: Counter[str] = Counter()
        for member in alike:
            weights[member.demo.language] += round(1000 * member.score)
        via = max(sorted(weights), key=lambda language: weights[language])
        return via, f"{len(alike)} demonstrations of this form are written so"
    if before:
        return before, "the question before was answered so"
    tables = [name for name in sources if name in known.linker.tables]
    if tables:
        return "query", f"{tables[0]!r}, which may be meant, has rows"
    if known.linker.temporal:
        return "query", "facts of the graph have times"
    if known.qualifiers.names and (asks := beyond_kopl(question)) is not None:
        return "cypher", f"statements of the graph have qualifiers, and KoPL cannot express {asks!r}"
    if known.qualifiers.names:
        return "kopl", "statements of the graph have qualifiers"
    return "query", "nothing says otherwise"


# -- the model as a function -------------------------------------------------------------------------
# The LLM function of TrustUQA (Appendix F): the model computes a function that the engine does not have,
# from the values of its arguments. The answer lists the data that the model was shown.


#: The most values of an argument that are shown, the most characters of each, and the most returned values.
MAX_VALUES: Final = 100
_MAX_VALUE: Final = 200
_MAX_RETURNED: Final = 1_000


class Functions:
    """A model that computes functions. The data that it is shown is added to `shown`."""

    def __init__(self, model: ChatModel, prompts: Prompts, mark: str, question: str, seed: int, shown: list[str]) -> None:
        self._model, self._prompts, self._mark = model, prompts, mark
        self._question, self._seed, self._shown = question, seed, shown

    def __call__(self, call: FunctionCall) -> Any:
        """Return the values computed by the model. Raises `ModelError` if they are not a JSON list."""
        lines = []
        for number, argument in enumerate(call.arguments, start=1):
            values = ", ".join(quoted(text, _MAX_VALUE) for text in argument.texts[:MAX_VALUES])
            rest = f" and {len(argument.texts) - MAX_VALUES} more" if len(argument.texts) > MAX_VALUES else ""
            lines.append(f"{quoted(argument.name or f'argument {number}')}: [{values}]{rest}")
        lines += [f"{quoted(name)}: {quoted(text, _MAX_VALUE)}" for name, text in call.options.items()]
        values = "\n".join(lines)
        self._shown.append(f"{call.name}: {values}")
        prompt = self._prompts.fill(
            "function", mark=self._mark, question=" ".join(self._question.split()), step=quoted(call.words, _MAX_VALUE),
            function=quoted(call.name), values=block(self._mark, values.replace(self._mark, "")),
        )  # fmt: skip
        result = self._model.chat([{"role": "user", "content": prompt}], max_tokens=300, seed=self._seed)
        return _listed(result[0].text if result else "", call.name)


def _listed(text: str, name: str) -> list[Any]:
    """Return the texts and numbers in a JSON list. A single text or number counts as a list, too."""
    json_text = text[text.find("[") : text.rfind("]") + 1] if "[" in text else text
    try:
        parsed = json.loads(json_text)
    except (ValueError, RecursionError):
        raise errors.ModelError(
            f"the model returned no JSON list for the function {name!r}: {errors.shortened(text, 80)!r}"
        ) from None
    values = parsed if isinstance(parsed, list) else [parsed]
    valid = [value for value in values if isinstance(value, (str, int, float)) and not isinstance(value, bool)]
    if len(valid) != len(values) or len(valid) > _MAX_RETURNED:
        raise errors.ModelError(f"the model returned more than texts and numbers for the function {name!r}")
    return valid


class SentenceStream:
    """Passes on the sentences of an answer in words that hold, each as soon as the next one begins."""

    def __init__(self, tell: Callable[[AskText], Any] | None, holds: Callable[[str], bool]) -> None:
        self._tell, self._holds = tell, holds
        self._text, self._seen, self._begins = "", 0, True

    def hear(self, sample: int, text: str, begins: bool) -> None:
        """Add a piece of the text."""
        if begins:
            self._text, self._seen, self._begins = "", 0, True
        self._text += text
        self._say(parts_of(spoken(self._text))[:-1])

    def end(self) -> None:
        """Pass on the last sentence, too."""
        self._say(parts_of(spoken(self._text)))

    def _say(self, parts: Sequence[str]) -> None:
        for part in parts[self._seen :]:
            self._seen += 1
            if self._tell is not None and self._holds(part):
                self._tell(AskText("say", part, begins=self._begins))
                self._begins = False


# -- the grammar of a question -----------------------------------------------------------------------


def grammar_for(
    graph: Host,
    model: ChatModel,
    via: str,
    question: str,
    mentions: Sequence[Mention],
    source: str | None = None,
    *,
    aware: bool = False,
) -> Grammar | None:
    """Return the grammar of programs over the names that the question may mean.

    It is restricted to `source` if that is given. With `aware`, it contains what these names have. Returns
    None if the model's server supports no grammar, or if the graph has no names.
    """
    # The nodes of a pattern are compared with names, so they may be any words of the question.
    names = [name for item in mentions for name in (item.names or ((item.text,) if via == "pattern" else ()))]
    try:
        language = METHODS[via].language
        scope = source if language == "llm_query" else None
        return constraint(cast("NamedGraph", graph), model, language, question, names, scope, aware=aware)
    except errors.OptionError:
        return None


def program_text(grammar: Grammar | None, reply: str) -> str:
    """Convert a reply to a text of its language. It stays unchanged if it does not follow the grammar."""
    if grammar is None:
        return reply
    try:
        return grammar.program(reply)
    except errors.ParseError:
        return reply


# -- asking ------------------------------------------------------------------------------------------
# Every step is timed and reported, and every attempt is kept with the stage at which it ended. After a
# failure the model is asked again, with what went wrong. If it repeats a program, this is not run again,
# and no further attempts are made. Only the text of a completion is ever read as a program.


#: Shares of the room in a prompt: for another try, for demonstrations, and for earlier turns.
_FOR_RETRY, _FOR_DEMOS, _FOR_HISTORY = 0.2, 0.35, 0.2
#: The weight of names in the previous question's program, relative to demonstrations of the same form.
_BEFORE: Final = 0.5
#: The token limit of a reply: this multiple of the longest program among the demonstrations, within limits. It
#: is doubled after a reply that was cut off, and quadrupled if the model was cut off while thinking.
_PROGRAMS: Final = 3
MIN_REPLY: Final = 400
MAX_REPLY: Final = 1_600
MAX_THINKING: Final = 8_000
#: A text that no program contains, but that models write when they continue with a question of their own.
STOPS: Final = ("\nQuestion:",)
#: How many characters of a reply the model is shown again.
_SHOWN: Final = 2_000
#: How many seconds it may take to put an answer into words after the budget's time is spent.
_LATE: Final = 1.0


class Asking:
    """The processing of one question. `run` returns the outcome."""

    def __init__(self, graph: Host, question: str, model: ChatModel, options: AskOptions) -> None:
        self.graph, self.question, self.options = graph, question, options
        self.model = Metered(model, options.budget)
        #: A function that counts the tokens of a text, with the model's tokenizer or by estimate.
        self.count = partial(tokens_of, self.model)
        self.prompts = Prompts(options.prompts)
        self.steps: list[AskStep] = []
        self.attempts: list[Attempt] = []
        self.warnings: list[str] = []
        self.shown: list[str] = []
        # Only grammars of KoPL contain what an entity has.
        self.via = "kopl" if options.aware and options.via == "auto" else options.via
        #: Why this language was chosen, if it was not given.
        self.reason = ""
        self.excerpt: Excerpt | None = None
        self.grammar: Grammar | None = None
        #: The mark around the data in the prompt.
        self.mark = ""
        self.declined = 0
        #: What words of the question refer to in earlier turns, and references that the user has to choose.
        self.references: list[Reference] = []
        self.open: list[Choice] = []
        self.known: KnownNames | None = None
        #: The names in the question.
        self.mentions: list[Mention] = []
        #: Notes about the earlier turns that are shown.
        self.history: list[str] = []
        #: The most tokens of the next reply.
        self.reply_tokens = MIN_REPLY
        #: The limits of the call itself. The seconds of the budget may end earlier.
        self.bounds = current()

    def report(self, name: str, seconds: float, about: str = "") -> None:
        """Record a finished step."""
        step = AskStep(name, seconds, about)
        self.steps.append(step)
        if self.options.on_step is not None:
            self.options.on_step(step)

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Time a step. The list collects what is reported about it."""
        about: list[str] = []
        started = time.perf_counter()
        try:
            yield about
        finally:
            self.report(name, time.perf_counter() - started, "; ".join(about))

    def prepared(self) -> tuple[list[Message], Runner, KnownNames]:
        """Return the prompt, the runner of programs, and the names of the graph.

        Raises `BudgetError` if not even the question fits.
        """
        options = self.options
        store = self.graph._store_of(None)
        with self.step("look") as about:
            known = self.known = known_of(store, self.graph._survey())
            sources = known.sources.names
            source = options.source
            if source is not None and source not in sources:
                raise errors.UnknownNameError("source", source, candidates=errors.nearest(source, sources))
            if self._frame_tokens() > 0.8 * (options.budget.prompt_tokens or 10**9):
                raise errors.BudgetError(
                    f"the question and the instructions take {self._frame_tokens():,} of the {options.budget.prompt_tokens:,} "
                    "tokens of a prompt",
                    hint="nothing was looked for; a larger prompt_tokens= or a shorter question may help",
                )
            result = self._with_references(mentions_in(self.question, known), known, store)
            # Replace a word by the name of the entity that it refers to.
            texts = {item.start: item.entities[0].name for item in self.references if item.entities and not ANSWER.match(item.text)}
            self.mentions = [replace(item, text=texts.get(item.start, item.text)) for item in result]
            about += [str(item) for item in self.references]
            form = masked(self.question, result)
            scores = known.predicates.scores(without_names(self.question, result))
            ranked = (
                (source,) if source is not None else tuple(rank_sources(known, scores, without_names(self.question, result))[:10])
            )
            if source is None:
                last = [turn.source for turn in options.before if turn.source in sources]
                ranked = tuple(dict.fromkeys([*filter(None, last[-1:]), *ranked]))
            most = MAX_DEMOS if options.demos is None else options.demos
            similar = self._similar(form, most)
            if self.via == "auto":
                before = next((turn.language for turn in reversed(options.before) if turn.answer is not None), "")
                self.via, why = route(known, self.question, ranked[:3], similar, before)
                self.reason = f"{self.via}, since {why}"
                about.append(self.reason)
            elif options.via == "auto":
                self.reason = "kopl, since what entities have is asked for"
                about.append(self.reason)
            about += self._link_report(result, known)
            if source is None and len(sources) > 1:
                about.append(f"sources: {', '.join(ranked[:3])}")
            similar = [item for item in similar if item.demo.language == self.via]
            if self.model.accepts:
                self.grammar = grammar_for(
                    self.graph, self.model, self.via, self.question_line, result, source, aware=options.aware
                )
            about += self._grammar_notes()
        with self.step("excerpt") as about:
            messages = self._messages(known, result, similar, most, ranked)
            assert self.excerpt is not None
            about += [f"{len(self.excerpt.predicates)} predicates in {self.excerpt.tokens} tokens", *self.history]
        runner = Runner(
            self.graph, self.question, source, ranked, options.choose, limit=options.limit, on_unknown=options.on_unknown,
            referent_ids={one.name: one.id for item in self.references for one in item.entities if one.id},
            answer_sets={name: item.entities for name, item in options.answer_sets.items()},
        )  # fmt: skip
        if options.function:
            mark = mark_of(options.seed + 1, [self.question])
            runner.llm_function = Functions(self.model, self.prompts, mark, self.question, options.seed, self.shown)
        return messages, runner, known

    def _with_references(self, mentions: list[Mention], known: KnownNames, store: Store) -> list[Mention]:
        """Return the mentions of a question, with what its words refer to in earlier turns.

        If the question names nothing and refers to nothing, the mentions of the previous turn are added.
        """
        before, answers = self.options.before, self.options.answers
        if answers:
            self.references = answer_references(self.question, answers, known)
            for item in self.references:
                mentions = [one for one in mentions if one.end <= item.start or item.end <= one.start]
            mentions = sorted([*mentions, *reference_mentions(self.references)], key=lambda item: item.start)
        if not before:
            return mentions
        references, self.open, lost = resolve_references(self.question, before, mentions, known, store, self.options.choose)
        self.references += references
        for item in references:
            if item.others:
                others = " or ".join(repr(one.name) for one in item.others[:3])
                self.warnings.append(f"{item}; it may be {others}")
        self.warnings += [f"{text!r} refers to nothing in earlier turns" for text in lost]
        result = sorted([*mentions, *reference_mentions(references)], key=lambda item: item.start)
        if not any(item.names for item in result):
            last = next((turn.excerpt for turn in reversed(before) if turn.excerpt is not None), None)
            end = len(self.question)
            result += [replace(item, start=end, end=end) for item in (last.mentions if last is not None else ()) if item.names]
        return result

    def _shown_history(self, room: float) -> tuple[list[str], str]:
        """Return earlier turns as lines of data, and their programs in this language.

        These are the last turns that fit into `room` tokens.
        """
        lines, programs = [], []
        before = self.options.before
        for turn in [*reversed(before)][:MAX_TURNS]:
            line = history_line(turn)
            program = f"Question: {' '.join(turn.question.split())}\nProgram:\n{turn.program}\n\n" if turn.program else ""
            program = program if turn.language == self.via else ""
            room -= self.count(line + "\n") + self.count(program)
            if room < 0:
                break
            lines.append(line)
            programs.append(program)
        if len(lines) < len(before):
            self.history.append(f"the last {len(lines)} of {len(before)} turns are shown")
        data = ["Earlier in this conversation:", *reversed(lines)] if lines else []
        data += reference_lines(self.references, {name: entities.size for name, entities in self.options.answer_sets.items()})
        return data, "".join(["Earlier in this conversation:\n\n", *reversed(programs)]) if any(programs) else ""

    def _grammar_notes(self) -> list[str]:
        """Return what is reported about the grammar. Add a warning if `aware` has no effect."""
        grammar = self.grammar
        if grammar is None:
            if self.options.aware:
                self.warnings.append("aware= has no effect: no grammar restricts the model, since its server takes none that fits")
            return []
        if not grammar.aware:
            self.warnings += grammar.warnings if self.options.aware else ()
            return [f"held to a grammar ({grammar.format})"]
        entities = "an entity has" if len(grammar.entities) == 1 else f"{len(grammar.entities)} entities have"
        return [f"held to a grammar ({grammar.format}) that knows what {entities}"]

    def _similar(self, form: str, most: int) -> list[Similar]:
        """Return the demonstrations with similar questions, in any language that may be chosen."""
        via = None if self.via == "auto" else self.via
        demos: Demos = self.graph.demos
        return demos.similar(form, most, via=via, without=None if self.options.same_question else self.question_line)

    @property
    def question_line(self) -> str:
        """The question on one line."""
        return " ".join(self.question.split())

    def _link_report(self, mentions: list[Mention], known: KnownNames) -> list[str]:
        """Return the names in the question. Add warnings for names without a match and for words not looked up."""
        if (warning := unsearched_warning(self.question)) is not None:
            self.warnings.append(warning)
        crowded = crowded_aliases(self.question, mentions, known)
        for text, names in crowded.items():
            few = ", ".join(map(repr, names[:3]))
            self.warnings.append(
                f"{errors.shortened(text, 80)!r} is another name of {len(names):,} entities ({few}, ...), none of which is taken: "
                "ask with the name of the one that is meant"
            )
        for member in mentions:
            if member.scores:
                candidates = " or ".join(repr(name) for name in member.names[:5])
                self.warnings.append(
                    f"no name is {errors.shortened(member.text, 80)!r}, as the question writes it: it may be {candidates}"
                )
            if not member.names and member.text not in crowded and not known.schema.has_text(member.text):
                self.warnings.append(f"the graph has no name like {errors.shortened(member.text, 80)!r}, which the question says")
        return [f"{item.text!r} is {', '.join(map(repr, item.names[:3]))}" for item in mentions[:5] if item.names]

    @property
    def _language(self) -> str:
        """The description of the language for the prompt."""
        via = self.via if self.via != "auto" else "query"
        lines = [self.prompts.fill(via)]
        if via == "query" and (calls := calls_for(self.question)):
            lines += ["Calls that this question may need:", *calls]
        if depends_on_today(self.question):
            lines.append(f"Today is {(self.options.today or date.today()).isoformat()}.")
        if self.grammar is not None:
            lines.append(self.grammar.told)
        return "\n".join(line for line in lines if line).strip()

    def _frame(self, mark: str, excerpt_text: str, demonstrations: str) -> list[Message]:
        system = self.prompts.fill("system", mark=mark, language=self._language)
        user = self.prompts.fill("user", excerpt=excerpt_text, demonstrations=demonstrations, question=self.question_line)
        return [{"role": "system", "content": system}, {"role": "user", "content": user}]

    def _frame_tokens(self) -> int:
        return sum(self.count(item["content"]) + 8 for item in self._frame("DATA-0123456789abcdef", "", "")) + 40

    def _messages(
        self, known: KnownNames, mentions: list[Mention], similar: list[Similar], most: int, ranked: tuple[str, ...]
    ) -> list[Message]:
        """Return the prompt within the token budget: demonstrations as far as they fit, and the excerpt."""
        options = self.options
        whole = options.budget.prompt_tokens
        left = 10**6 if whole is None else int((whole - self._frame_tokens()) * (1 - _FOR_RETRY))
        shown, texts, used = [], [], 0
        static = self.graph.demos.static(self.via, max(min(most, 4) - len(similar), 0)) if most else []
        for item in [*similar, *static]:
            text = f"Question: {item.demo.question}\nProgram:\n{item.demo.program}\n\n"
            cost = self.count(text)
            if used + cost > _FOR_DEMOS * left:
                break
            shown.append(item)
            texts.append(text)
            used += cost
            self.reply_tokens = min(max(self.reply_tokens, _PROGRAMS * self.count(item.demo.program)), MAX_REPLY)
        weights = self.graph.demos.weights(similar)
        history, programs = self._shown_history(_FOR_HISTORY * left) if options.before or self.references else ([], "")
        used += self.count("\n".join([*history, programs])) if history else 0
        for name in names_of(options.before[-1].answer, known) if options.before else ():
            weights[name] = max(weights.get(name, 0.0), _BEFORE)
        self.excerpt = excerpt(
            known, self.graph._store_of(None), self.question, max(min(options.room, left - used), 0),
            source=options.source, demonstrated=weights, count=self.count, samples=options.cells,
            untrusted=options.untrusted, mentions=mentions, sources=ranked, wording=CYPHER if self.via == "cypher" else WORDS,
        )  # fmt: skip
        # The most similar demonstration is closest to the question.
        demonstrations = "".join(["Examples:\n\n", *reversed(texts)]) if texts else ""
        demonstrations += programs
        data = "\n".join([self.excerpt.text, *history])
        mark = self.mark = mark_of(options.seed, [self.question, data, demonstrations])
        return self._frame(mark, block(mark, data), demonstrations)

    #: Whether the model may still be called.
    asks = True

    # -- the outcome -------------------------------------------------------------------------------

    def run(self) -> Asked:
        """Ask the question and return the outcome, which includes errors of the model and of its programs."""
        if not self.question.strip():
            self.warnings.append("the question is empty: nothing was looked for, and no model was asked")
            return self._outcome("failed")
        try:
            messages, runner, known = self.prepared()
            if self.open:
                reason = "a word may refer to several"
                self.attempts += [Attempt("", stage="resolving", error=reason, choice=choice) for choice in self.open]
                return self._decide()
            self._samples(messages, runner, known)
        except errors.BudgetError as error:
            self.warnings.append(str(error))
            return self._out_of_budget()
        return self._decide()

    def late(self) -> Asked:
        """Return the outcome after the budget's time is spent, from what has been done so far."""
        self.warnings.append(f"the budget's {self.options.budget.seconds:g} s passed")
        self.asks = False
        try:
            with within(_LATE):
                return self._out_of_budget()
        except errors.DeadlineError:
            check()
            return self._outcome("budget")

    def _out_of_budget(self) -> Asked:
        """Return the outcome after the budget is spent, from the attempts that were made."""
        if any(attempt.answer is not None or attempt.choice is not None for attempt in self.attempts):
            return self._decide()
        return self._outcome("budget")

    # -- attempts ----------------------------------------------------------------------------------

    def _samples(self, messages: list[Message], runner: Runner, known: KnownNames) -> None:
        """Run every sample once. If none has an answer, repair the first one."""
        completions = self._write(messages, self.options.samples)
        for number, completion in enumerate(completions):
            try:
                self._try_completion(completion, runner, known, sample=number, number=0)
            except errors.DeadlineError:
                for other, later in enumerate(completions[number + 1 :], number + 1):
                    self._unfinished(later.text, "running", "the time was over before the program was run", sample=other)
                raise
        tried = {item.program for item in self.attempts if item.program}
        empties = sum(item.answer is not None for item in self.attempts)
        retry = 0
        while retry < self.options.retries and not self._is_settled():
            last = next((item for item in self.attempts if item.feedback), None) if retry == 0 else self.attempts[-1]
            if last is None or not last.feedback or empties > 1:
                break
            retry += 1
            check()
            completions = self._write(self._retry_messages(messages, last), 1, retry)
            if not completions:
                break
            attempt = self._try_completion(completions[0], runner, known, sample=last.sample, number=retry, tried=tried)
            if attempt is None:
                break
            tried.add(attempt.program)
            empties += attempt.answer is not None and attempt.stage == "running"

    def _is_settled(self) -> bool:
        return any(
            attempt.choice is not None or (attempt.answer is not None and attempt.stage is None and not attempt.doubts)
            for attempt in self.attempts
        )

    def _unfinished(
        self, reply: str, stage: Stage, error: str, program: str = "", language: str = "", *, sample: int = 0, number: int = 0
    ) -> None:
        """Record an attempt that was interrupted by the deadline."""
        self.attempts.append(
            Attempt(
                reply, program, language, stage=stage, error=error, code=errors.DeadlineError.code, source=self.options.source,
                sample=sample, number=number, unfinished=True,
            )
        )  # fmt: skip

    def _write(self, messages: list[Message], samples: int, number: int = 0) -> list[Completion]:
        """Return the completions of one call, or none if the model failed, which is recorded."""
        options: ChatOptions = {
            "n": samples, "max_tokens": self.reply_tokens, "seed": self.options.seed,
            "temperature": self.options.sampling_temperature,
        }  # fmt: skip
        if "stop" in self.model.accepts:
            options["stop"] = STOPS
        with self.step("write") as about:
            try:
                options |= {} if self.grammar is None else cast("ChatOptions", self.grammar.options())
                result = self._chat(messages, self._pass_on, options)
            except errors.ModelError as error:
                about.append(str(error))
                self.attempts.append(Attempt("", stage="writing", error=str(error), code=error.code))
                return []
            except errors.DeadlineError:
                about.append("not finished")
                self._unfinished("", "writing", "the time was over while the model was writing", number=number)
                raise
            about.append(f"{len(result)} of {samples}" if samples > 1 else f"{len(result[0].text) if result else 0} characters")
        if len(result) < samples:
            self.warnings.append(f"{samples} samples were asked for, and {len(result)} came")
        return list(result)[:samples]

    def _chat(self, messages: list[Message], hear: Tell, options: ChatOptions) -> Completions:
        """Return the completions of a call. If there is a listener, `hear` receives pieces while they are written."""
        if self.options.on_text is None:
            return self.model.chat(messages, **options)
        streamed: set[int] = set()
        active = True

        def tell(sample: int, text: str, begins: bool) -> None:
            # The thread of an abandoned call may continue.
            if active:
                streamed.add(sample)
                hear(sample, text, begins)

        try:
            with heard_by(tell):
                result = self.model.chat(messages, **options)
            for sample, completion in enumerate(result):
                if sample not in streamed and completion.text and completion.finish != "refusal":
                    tell(sample, completion.text, True)
        finally:
            active = False
        return result

    def _pass_on(self, sample: int, text: str, begins: bool) -> None:
        if self.options.on_text is not None:
            self.options.on_text(AskText("write", text, sample, begins))

    def _retry_messages(self, messages: list[Message], last: Attempt) -> list[Message]:
        """Return the prompt with the last attempt and what went wrong, within the token budget."""
        # The feedback contains names of the graph, so it is marked as data.
        request = self.prompts.fill("retry", feedback=block(self.mark, last.feedback.replace(self.mark, "")))
        again: list[Message] = [
            *messages, {"role": "assistant", "content": errors.shortened(last.reply, _SHOWN)}, {"role": "user", "content": request},
        ]  # fmt: skip
        limit = self.options.budget.prompt_tokens
        if limit is not None and sum(self.count(item["content"]) + 8 for item in again) + 8 > limit:
            # The examples are no longer needed.
            user = str(messages[1]["content"])
            start, end = user.find("Examples:\n\n"), user.rfind("Question: ")
            if 0 <= start < end:
                again[1] = {"role": "user", "content": user[:start] + user[end:]}
        return again

    def _try_completion(
        self, completion: Completion, runner: Runner, known: KnownNames, *, sample: int, number: int, tried: set[str] | None = None
    ) -> Attempt | None:
        """Read a completion and run its program. Returns None if there is nothing left to try."""
        reply = program_text(self.grammar, completion.text)
        with self.step("read") as about:
            cut = completion.finish == "length"
            result = None if completion.finish == "refusal" or declines(reply) else first_program(reply, self.via, cut=cut)
            about.append("no program" if result is None else f"{result.language}, {len(result.program)} characters")
            if result is not None and result.ignored:
                about.append(f"{result.ignored:,} characters after the program are ignored")
        unread = Attempt(reply, sample=sample, number=number)
        if completion.finish == "refusal" or declines(reply):
            self.declined += 1
            reason = "the model refused" if completion.finish == "refusal" else "the model says that the data does not answer this"
            self.attempts.append(replace(unread, stage="writing", error=reason))
            return None
        if cut and result is None:
            # A thinking model uses tokens before it begins to write.
            thinks = not reply
            reason = f"the reply was cut off after {len(reply):,} characters"
            if thinks:
                reason = "the model was cut off while it was thinking"
            feedback = f"{reason[0].upper()}{reason[1:]}. Write a shorter program, without words around it."
            begun = program_in(reply, self.via)
            attempt = replace(unread, program=begun[0] if begun else "", stage="writing", error=reason, feedback=feedback)
            self.reply_tokens = min((4 if thinks else 2) * self.reply_tokens, MAX_THINKING if thinks else MAX_REPLY)
        elif result is None:
            # The model is asked again, and declines again if it does not know the answer.
            self.declined += gives_up(reply)
            feedback = f"There is no program in the reply. {METHODS[self.via].example}"
            attempt = replace(unread, stage="writing", error="there is no program in the reply", feedback=feedback)
        else:
            program, language = result.program, result.language
            if result.ignored:
                unread = replace(unread, notes=(f"{result.ignored:,} characters after the program are ignored",))
            if result.several:
                unread = replace(unread, notes=(*unread.notes, "the reply has several programs, and the first was run"))
            if tried is not None and program in tried:
                self.warnings.append("the model wrote the same program again")
                return None
            try:
                attempt = self._run(runner, reply, program, language)
            except errors.DeadlineError:
                reason = "the time was over while the program ran"
                self._unfinished(reply, "running", reason, program, language, sample=sample, number=number)
                raise
            attempt = replace(attempt, sample=sample, number=number, notes=(*unread.notes, *attempt.notes))
            before = [item for item in self.attempts if item.sample == sample]
            attempt = replace(attempt, doubts=tuple(self._doubts(attempt, before, known)))
            if isinstance(attempt.failure, errors.UnknownNameError) and attempt.stage == "resolving":
                with self.step("draft") as about:
                    judge = partial(self._doubts, before=[*before, attempt], known=known)
                    drafts = runner.drafts(attempt, candidates(attempt.failure, known), judge)
                    about += map(str, drafts)
                attempt = replace(attempt, drafts=tuple(drafts))
            if attempt.stage is not None or attempt.doubts:
                attempt = replace(attempt, feedback=feedback_of(attempt, known))
        self.attempts.append(attempt)
        return attempt

    def _doubts(self, attempt: Attempt, before: Sequence[Attempt], known: KnownNames) -> list[str]:
        """Return why an attempt's answer may belong to another question. `before` are the attempts that it corrects."""
        if attempt.answer is None or attempt.stage is not None:
            return []
        instead = replacement_doubts(self.question, self.mentions, attempt, before, known)
        earlier = " ".join(text for turn in self.options.before for text in (turn.question, turn.program, *turn.texts[:MAX_SHOWN]))
        return [*doubts(self.question, self.mentions, attempt, known, earlier, self.options.today), *instead]

    def _run(self, runner: Runner, reply: str, program: str, language: str) -> Attempt:
        before = dict(runner.seconds)
        try:
            attempt = runner.attempt(reply, program, language)
        except errors.DeadlineError:
            self.report("run", sum(runner.seconds.values()) - sum(before.values()), "not finished")
            raise
        resolved, ran = (runner.seconds[name] - before[name] for name in ("resolve", "run"))
        ended = attempt.stage in ("writing", "resolving")
        self.report("resolve", resolved, attempt.error if ended else "; ".join(attempt.notes))
        if not ended:
            result = "a choice" if attempt.choice is not None else f"{len(attempt.gave or ())} values"
            self.report("run", ran, attempt.error or result)
        return attempt

    # -- votes and outcome -------------------------------------------------------------------------

    def _decide(self) -> Asked:
        """Return the outcome of the attempts: the answer of most samples, a choice, or the reason for failure."""
        successful = [attempt for attempt in self.attempts if attempt.answer is not None and attempt.stage is None]
        # Doubtful answers have no vote if there are others.
        answered = [attempt for attempt in successful if not _doubtful(attempt)] or successful
        choices = [attempt for attempt in self.attempts if attempt.choice is not None]
        votes: tuple[Vote, ...] = ()
        if answered:
            with self.step("vote") as about:
                counts = Counter(_normalised(item) for item in answered)
                # The first answer wins a tie.
                best = max(counts.values())
                chosen = next(item for item in answered if counts[_normalised(item)] == best)
                votes = tuple(Vote(texts, count) for texts, count in Counter(map(_normalised, successful)).most_common())
                about.append(f"{best} of {len(successful)}")
            if len(choices) <= best:
                return self._outcome("answered", chosen, votes)
        if choices:
            return self._outcome("ambiguous", choices[0])
        empty = [attempt for attempt in self.attempts if attempt.answer is not None]
        if empty:
            return self._outcome("empty", empty[0])
        return self._outcome("abstained" if self.declined and self.declined == len(self.attempts) else "failed")

    def _outcome(self, status: Status, attempt: Attempt | None = None, votes: tuple[Vote, ...] = ()) -> Asked:
        text = ""
        citations: tuple[str, ...] = ()
        answer = None if attempt is None or attempt.choice is not None else attempt.answer
        if attempt is not None and answer is not None and _doubtful(attempt):
            status = "doubtful"
        if answer is not None:
            self.warnings += [warning for warning in answer.warnings if warning not in self.warnings]
        elif self.attempts and status == "failed":
            self.warnings.append(f"no program ran: {self.attempts[-1].error}")
            self.warnings += [str(draft) for draft in self.attempts[-1].drafts[:1]]
        if status in ("empty", "failed", "abstained") and self.excerpt is not None:
            self.warnings.append(self._looked_for(self.excerpt))
        if answer is not None and status in ("answered", "doubtful"):
            text, citations = self.in_words(answer)
        reasons: tuple[str, ...] = ()
        if answer is not None and status == "doubtful":
            assert attempt is not None
            reasons = (*answer.substitutions, *attempt.doubts)
            text = "\n".join([f"Doubtful: {'; '.join(reasons)}", *([text] if text else [])])
            self.warnings += attempt.doubts
        likelihood = None
        if attempt is not None and answer is not None and self.known is not None and status in ("answered", "doubtful"):
            likelihood = confidence(fit(self.question, self.mentions, attempt, self.known), reasons)
        spent = self.model.spent
        return Asked(
            self.question, status, answer, VIA_OF.get(attempt.language, "") if attempt else "",
            attempt.source if attempt else self.options.source,
            () if attempt is None or attempt.choice is None else tuple(self.open) or (attempt.choice,),
            text, citations, tuple(self.attempts), votes, tuple(self.steps), spent.usage, spent.calls, self.model.name,
            self.prompts.versions, self.excerpt, tuple(dict.fromkeys(self.warnings)), tuple(self.shown), reason=self.reason,
            references=tuple(self.references), confidence=likelihood, doubts=reasons,
        )  # fmt: skip

    def _looked_for(self, excerpt: Excerpt) -> str:
        named = [name for mention in excerpt.mentions for name in mention.names[:1]]
        things = f"{', '.join(map(repr, named[:5]))}" if named else "no name of the graph"
        predicates = ", ".join(map(repr, excerpt.predicates[:5])) or "no predicate"
        return f"looked for: {things}; nearest predicates: {predicates}"

    def in_words(self, answer: Any) -> tuple[str, tuple[str, ...]]:
        """Return the answer in words: in the plain form, or by the model if its text fits the answer."""
        text, statements = plain(answer)
        if not self.options.verbalise or not statements or not self.asks:
            return text, statements
        facts = facts_of(answer, statements)
        mark = mark_of(self.options.seed + 2, [self.question, facts])
        prompt = self.prompts.fill("verbalise", mark=mark, facts=block(mark, facts), question=self.question_line)
        with self.step("say") as about:
            try:
                spoken = SentenceStream(
                    self.options.on_text, lambda part: not sentence_fault(part, self.question, answer, statements, self.known)
                )
                options: ChatOptions = {"max_tokens": 300, "seed": self.options.seed}
                result = self._chat([{"role": "user", "content": prompt}], spoken.hear, options)
                reply = result[0].text.strip() if result and result[0].finish == "stop" else ""
            except (errors.ModelError, errors.BudgetError) as error:
                self.warnings.append(f"the answer is given as plain values: {error}")
                return text, statements
            except errors.DeadlineError:
                if self.bounds is not None:
                    self.bounds.check()  # the deadline of the call itself is an error
                about.append("not finished")
                self.warnings.append("the answer is given as plain values: the time was over while the model was writing")
                return text, statements
            if reply:
                spoken.end()
            self.shown.append(facts)
            result_text, wrong = checked_text(reply, self.question, answer, statements, self.known)
            about.append("; ".join(wrong) or "it holds")
        extent = "not used" if not result_text else "used in part"
        self.warnings += [f"the model's sentence about the answer is {extent}: {reason}" for reason in wrong]
        return result_text or text, statements


def _doubtful(attempt: Attempt) -> bool:
    """Return whether an answer depends on a name that was read as another one, or may not fit the question."""
    return attempt.answer is not None and (attempt.answer.doubtful or bool(attempt.doubts))


def _normalised(attempt: Attempt) -> tuple[str, ...]:
    """Return the normalised texts of an answer, so that votes can be counted."""
    return tuple(sorted({" ".join(text.split()).casefold() for text in attempt.gave or ()}))
