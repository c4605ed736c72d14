"""Questions from a graph, one after the other: sample, ask, keep what has one good answer.

An iterator that holds what it needs to know of the schema, 4 MiB to know what was asked already,
and no question that it gave. What it does next follows from its seed and the graph alone.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.errors import OptionError
from condgraph.engine.values import Quantity, Time
from condgraph.questions import paraphrase
from condgraph.questions.asking import Asker
from condgraph.questions.beside import Compilers, answer_of, gives, llm_query
from condgraph.questions.choices import CHOICES, UNKNOWN_CHOICE, choices, shuffled, wrong_of
from condgraph.questions.description import KINDS, Ask, Call, Literal, Related, asked, conditions_of, described_in, steps
from condgraph.questions.facts import RELATION, Facts, readable
from condgraph.questions.locate import Runner
from condgraph.questions.quotas import FEWEST, Quota, Seen, hop_shares, kind_shares
from condgraph.questions.record import Question, categories_of
from condgraph.questions.subgraph import pattern
from condgraph.questions.tables import TableAsker
from condgraph.questions.words import Words

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: How many samples are tried for one question; how many times a kind may come to nothing before it
#: is left out.
_TRIES: Final = 40
_FAILURES: Final = 4
#: The share of facts with qualifiers among those asked about, where the graph has them.
QUALIFIED: Final = 0.3


class Questions(Iterator[Question]):
    """Questions as they are asked for; `warnings` say why there are fewer than wanted."""

    def __init__(
        self,
        snapshot: Snapshot,
        n: int,
        *,
        seed: int = 0,
        kinds: Collection[str] | Mapping[str, float] | None = None,
        hops: int | Collection[int] | Mapping[int, float] | None = None,
        qualifiers: float | bool | None = None,
        llm: Callable[[str], str] | None = None,
        queries: bool = True,
        graph: str = "default",
    ) -> None:
        share = QUALIFIED if qualifiers is None else float(qualifiers)
        if n < 0 or not 0 <= share <= 1:
            raise OptionError("n is a whole number from 0 on, and qualifiers a share from 0 to 1")
        self.wanted, self.warnings = n, list[str]()
        self._snapshot, self._pick = snapshot, random.Random(f"condgraph {seed}")
        self._facts, self._runner = Facts(snapshot), Runner(snapshot)
        self._asker = Asker(self._facts, self._runner, self._pick, share)
        self._tables = TableAsker(self._facts, self._pick)
        self._exact = hops is not None
        shares, lengths = kind_shares(kinds, bool(self._tables.tables)), hop_shares(hops)
        self._largest = max(lengths)
        shares = self._possible(shares, named=kinds is not None)
        self._kinds, self._hops = Quota(shares), Quota(lengths)
        self._alive = list(shares)
        self._failed = dict.fromkeys(shares, 0)
        plain = self._tables.tables and not snapshot.counts.get("concepts")
        sources = {table.source for table in self._tables.tables}
        self._words = Words(self._several, "row" if plain else "one", concepts=self._concepts, tables=sources)
        self._means: dict[str, bool] = {}
        self._seen, self._made, self._llm = Seen(), 0, llm
        self._compilers = Compilers(snapshot, graph) if queries and n else None

    def __iter__(self) -> Questions:
        return self

    def __next__(self) -> Question:
        while self._made < self.wanted and self._alive:
            kind = self._kinds.lacking(self._alive)
            found = self._one(kind)
            if found is None:
                self._failed[kind] += 1
                if self._failed[kind] >= _FAILURES:
                    self._alive.remove(kind)
                    self.warnings.append(f"no more questions of kind {kind} were found, after {self._kinds.made[kind]}")
                continue
            self._failed[kind] = 0
            self._kinds.made[kind] += 1
            self._made += 1
            return found
        if self._made < self.wanted:
            self._why()
        raise StopIteration

    # -- quotas ------------------------------------------------------------------------------------

    def _can(self, kind: str) -> bool:
        return self._asker.can(kind) if kind in KINDS else bool(self._tables.tables) and self._tables.can(kind)

    def _possible(self, shares: dict[str, float], *, named: bool) -> dict[str, float]:
        found = {kind: share for kind, share in shares.items() if self._can(kind) and FEWEST.get(kind, 1) <= self._largest}
        lost = [kind for kind in shares if kind not in found]
        if lost and (named or not found):
            self.warnings.append(f"the graph has no facts for questions of kind {', '.join(lost)}, or they need more hops")
        total = sum(found.values())
        return {kind: share / total for kind, share in found.items()}

    def _bucket(self, hops: int) -> int:
        return hops if self._exact else min(hops, self._largest)

    def _why(self) -> None:
        told = f"{self._made} of {self.wanted} questions were found"
        if not any(self._facts.has(kind) for kind in ("text", "number", "time", RELATION)):
            told += ": the graph has no facts"
        elif not self._made:
            told += ": nothing in it can be named and told from the rest, or has one answer"
        if told not in self.warnings:
            self.warnings.append(told)

    # -- one question ------------------------------------------------------------------------------

    def _one(self, kind: str) -> Question | None:
        fitting = [hops for hops in self._hops.shares if hops >= FEWEST.get(kind, 1)]
        spare: tuple[Question, int, str] | None = None
        for _ in range(_TRIES):
            found = self._sample(kind, self._hops.lacking(fitting))
            if found is None:
                continue
            question, hops, key = found
            if self._hops.open(hops) or kind not in KINDS:
                if (kept := self._kept(question, hops, key)) is not None:
                    return kept
            elif hops in self._hops.shares:
                spare = spare or found
        # A quota that the graph cannot keep gives way to one more question.
        return None if spare is None else self._kept(*spare)

    def _kept(self, question: Question, hops: int, key: str) -> Question | None:
        if not (self._seen.add(key) and self._seen.add(question.question)):
            return None
        if hops in self._hops.made:
            self._hops.made[hops] += 1
        question = self._beside(replace(question, id=f"q{self._made + 1}"))
        return question if self._llm is None else paraphrase.paraphrased(question, self._llm, self._snapshot)

    def _sample(self, kind: str, hops: int) -> tuple[Question, int, str] | None:
        if kind not in KINDS:
            return self._of_table(kind)
        ask = self._asker.ask(kind, hops)
        if ask is None or self._bucket(ask.hops) not in self._hops.shares:
            return None
        calls = asked(ask)
        found = self._answer(ask, calls)
        if found is None:
            return None
        answer, value = found
        words = self._words.question(ask)
        if kind not in ("Verify", "SelectBetween") and (stands_in(answer, words) or _gives_away(ask, answer)):
            return None
        program = steps(calls)
        told, fewer = choices(ask, answer, value, self._facts, self._runner, self._pick)
        question = Question(
            "", words, answer, kind, ask.hops, categories_of(calls, ask.hops), told, program, fewer=fewer,
            answer_type=self._type(kind, value),
            pattern=pattern(ask, self._facts, self._runner), llm_query=llm_query(ask), entities=_entities(ask),
        )  # fmt: skip
        return question, self._bucket(ask.hops), json.dumps(calls)

    def _answer(self, ask: Ask, calls: list[Call]) -> tuple[str, object] | None:
        """The answer and its value, where it is one, and could not be had without what the question says."""
        answer = self._runner.answer(calls)
        texts = answer.texts
        if len(texts) != 1 or len(answer.values) != 1 or not good(texts[0]):
            return None
        if ask.kind in ("QueryName", "SelectAmong", "SelectBetween"):
            ends = answer.entities
            if len(ends) != 1 or self._facts.unnamed_row(self._snapshot.identified(ends[0].id)):
                return None
        if ask.kind in ("QueryAttribute", "Verify") and ask.qualifier is not None:
            # The qualifier has to tell one value from others.
            every = self._runner.answer(asked(replace(ask, kind="QueryAttribute", qualifier=None))).texts
            one = self._runner.answer(asked(replace(ask, kind="QueryAttribute"))).texts
            if len(one) != 1 or len(every) < 2:
                return None
        return texts[0], answer.values[0]

    def _of_table(self, kind: str) -> tuple[Question, int, str] | None:
        found = self._tables.ask(kind)
        if found is None or not found.found < found.without or (self._exact and found.hops not in self._hops.shares):
            return None
        answer = answer_of(self._snapshot, found.query)
        texts = answer.texts
        if len(texts) != 1 or not good(texts[0]) or stands_in(texts[0], found.question):
            return None
        wrong = wrong_of(iter(found.wrong), texts[0])
        said = [name for name, holds in (("Multi-hop", found.hops > 1), ("Comparison", kind == "Superlative")) if holds]
        question = Question(
            "", found.question, texts[0], kind, found.hops, tuple(said), shuffled(texts[0], wrong, self._pick),
            llm_query=found.query, entities=found.entities, answer_type=self._type(kind, answer.values[0]),
            fewer=None if len(wrong) == CHOICES - 1 else found.fewer,
        )  # fmt: skip
        return question, self._bucket(found.hops), found.query

    def _type(self, kind: str, value: object) -> str:
        """The type of an answer; a text of a qualifier that names something is that thing."""
        fixed = {"Verify": "yes or no", "Count": "count", "Relation": "relation"}
        if kind in fixed:
            return fixed[kind]
        if isinstance(value, Quantity | int | float):
            return "number"
        names = kind in ("QueryName", "SelectAmong", "SelectBetween")
        if names or (kind.startswith("Qualifier") and len(self._snapshot.named(str(value)))):
            return "entity"
        return "time" if isinstance(value, Time) else "text"

    def _beside(self, question: Question) -> Question:
        """The question with its programs in the other languages."""
        query = question.llm_query
        if question.program and query is not None and not gives(self._snapshot, query, question.answer):
            question = replace(question, llm_query=None)
        if self._compilers is None:
            return question
        program: Any = question.program or question.llm_query
        plan = self._compilers.plan(program, question.language)
        cypher, parameters = self._compilers.cypher(plan)
        return replace(question, sparql=self._compilers.sparql(plan), cypher=cypher, parameters=parameters)

    def _concepts(self, name: str) -> list[str]:
        return [concept for number in self._snapshot.named(name)[:1].tolist() for concept in self._facts.concepts(number)]

    def _several(self, predicate: str) -> bool:
        """Whether a subject of a relation has more than one object of it, as a rule."""
        found = self._means.get(predicate)
        if found is None:
            number, offsets = self._snapshot.predicate(predicate), self._snapshot.relation_offsets
            low, high = offsets[number], offsets[number + 1]
            subjects = self._snapshot.relation_subject[low : min(high, low + 4096)]
            found = self._means[predicate] = len(subjects) > 1.5 * max(1, len(set(subjects.tolist())))
        return found


def good(answer: str) -> bool:
    """Whether a text can be an answer: short, readable, and not what fills up choices."""
    return readable(answer) and answer.casefold() != UNKNOWN_CHOICE


def stands_in(answer: str, question: str) -> bool:
    """Whether an answer stands in its question, as whole words.

    >>> stands_in("Oslo", "What is the capital of Oslo county?"), stands_in("5", "How many have 50?")
    (True, False)
    """
    return re.search(rf"(?<!\w){re.escape(answer.casefold())}(?!\w)", question.casefold()) is not None


def _gives_away(ask: Ask, answer: str) -> bool:
    """Whether a text of a condition is a part of the answer, or the answer of it."""
    low = answer.casefold()
    texts = [one.value.casefold() for one in conditions_of(ask.first) if isinstance(one, Literal) and isinstance(one.value, str)]
    return ask.kind == "QueryName" and any(text in low or low in text or text[:5] == low[:5] for text in texts)


def _entities(ask: Ask) -> tuple[str, ...]:
    """The names that a question mentions."""
    names = []
    for described in described_in(ask):
        names += [described.name] + [
            condition.target.name for condition in conditions_of(described) if isinstance(condition, Related)
        ]
    return tuple(dict.fromkeys(name for name in names if name is not None))
