"""Generation of questions from a graph: sample, ask, keep what has one good answer, paraphrase it (KQA Pro, sections 3 and 4)."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from condgraph.engine.errors import CondgraphError, InterruptedQueryError, OptionError, UnsupportedError, nearest
from condgraph.engine.operands import year_of
from condgraph.engine.values import Precision, Quantity, Time, text_of
from condgraph.languages import registry
from condgraph.questions import description
from condgraph.questions.choices import CHOICES, UNKNOWN_CHOICE, choices, shuffled, wrong_of
from condgraph.questions.description import asked
from condgraph.questions.facts import FACT_KINDS, LONGEST, RELATION, Facts, readable
from condgraph.questions.forms import forms, personal, turned
from condgraph.questions.locate import Locator, Runner, around, is_code
from condgraph.questions.record import Question, categories_of
from condgraph.questions.tables import TableAsker
from condgraph.questions.translations import Compilers, answer_of, gives, llm_query
from condgraph.questions.words import Words
from condgraph.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- paraphrases -------------------------------------------------------------------------------------
# Paraphrases by a language model, kept only where two filters pass.
#
# A paraphrase has to differ from the template words (KQA Pro rejects those with a small edit
# distance), and to say the same: asked again, the question has to lead to the answer. That round trip
# needs a reader, from words to a program; without one, every name, number and time of the question
# has to stand in the paraphrase, which is what such a reader would need first.


#: The part of a question's words that a paraphrase changes at least, and at most.
LEAST_CHANGED: Final = 0.15
MOST_CHANGED: Final = 0.9


def paraphrased(question: Question, llm: Callable[[str], str], snapshot: Snapshot) -> Question:
    """The question in the words of `llm`, a function from text to text; as it was where a filter
    does not pass. An `llm` with a method `program(text)` is the reader of the round trip.
    """
    paraphrase = " ".join(str(llm(question.question)).split())
    if not LEAST_CHANGED <= distance(question.question, paraphrase) <= MOST_CHANGED or not keeps_names(question, paraphrase):
        return question
    reader = getattr(llm, "program", None)
    if reader is not None and not _leads(reader(paraphrase), question.answer, snapshot):
        return question
    return replace(question, question=paraphrase, canonical=question.question)


def _leads(program: Any, answer: str, snapshot: Snapshot) -> bool:
    try:
        return program is not None and registry.answer(SnapshotStore(snapshot), program).texts == [answer]
    except InterruptedQueryError:
        raise
    except CondgraphError:
        return False


def keeps_names(question: Question, said: str) -> bool:
    """Whether a paraphrase has the names, numbers and years of a question, and not its answer."""
    low = said.casefold()
    digits = set(re.findall(r"\d+", question.question))
    if not digits <= set(re.findall(r"\d+", said)):
        return False
    given = question.answer.casefold()
    if question.kind not in ("Verify", "SelectBetween") and re.search(rf"(?<!\w){re.escape(given)}(?!\w)", low):
        return False
    return all(name.casefold() in low for name in question.entities)


def distance(text: str, other: str) -> float:
    """The edit distance of two texts in words, as a part of the longer one: 0 to 1.

    >>> distance("Who wrote Emma?", "Who wrote Emma?"), distance("Who wrote Emma?", "Emma is by whom?")
    (0.0, 1.0)
    """
    a, b = re.findall(r"\w+", text.casefold()), re.findall(r"\w+", other.casefold())
    before = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        row = [i]
        for j, against in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (word != against)))
        before = row
    return before[-1] / max(len(a), len(b), 1)


# -- quotas ------------------------------------------------------------------------------------------
# How many of which: quotas of kinds and hops, and what was asked already, in bounded memory.


#: KQA Pro's shares (section 4.4): of nine kinds SelectAmong has least, and 4.7 % of the questions
#: five hops or more, 26.3 % one.
KIND_SHARES: Final = {kind: 0.046 if kind == "SelectAmong" else (1 - 0.046) / 8 for kind in description.KINDS}
HOP_SHARES: Final = {1: 0.263, 2: 0.25, 3: 0.25, 4: 0.19, 5: 0.047}
#: The fewest hops of a kind.
FEWEST: Final = {"SelectAmong": 2, "SelectBetween": 3, "Verify": 2, "QualifierLiteral": 2, "QualifierRelational": 2}
_BITS: Final = 1 << 25
T = TypeVar("T")


def kind_shares(kinds: Collection[str] | Mapping[str, float] | None, tables: bool) -> dict[str, float]:
    """The share of each kind; raises `OptionError` for one that is not known."""
    every = (*description.KINDS, *description.TABLE_KINDS)
    if kinds is None:
        # A table is asked as tables are, for the half of it.
        result = dict(KIND_SHARES)
        return {**result, **dict.fromkeys(description.TABLE_KINDS, 0.25)} if tables else result
    if isinstance(kinds, str):
        kinds = (kinds,)
    shares = dict(kinds) if isinstance(kinds, Mapping) else dict.fromkeys(kinds, 1.0)
    for kind, share in shares.items():
        if kind not in every:
            raise OptionError(
                f"there is no kind of questions {kind!r}", candidates=nearest(kind, every), hint=f"known: {', '.join(every)}"
            )
        if not share >= 0:
            raise OptionError(f"the share of {kind} is {share!r}, and is no number from 0 on")
    return _normal(shares, "kinds")


def hop_shares(hops: int | Collection[int] | Mapping[int, float] | None) -> dict[int, float]:
    """The share of each number of hops; by default the largest includes all above."""
    if hops is None:
        return dict(HOP_SHARES)
    if isinstance(hops, int):
        hops = (hops,)
    shares = dict(hops) if isinstance(hops, Mapping) else dict.fromkeys(hops, 1.0)
    for number, share in shares.items():
        if not isinstance(number, int) or not 1 <= number <= 12:
            raise OptionError(f"hops are whole numbers from 1 to 12, not {number!r}")
        if not share >= 0:
            raise OptionError(f"the share of {number} hops is {share!r}, and is no number from 0 on")
    return _normal({int(number): share for number, share in shares.items()}, "hops")


def _normal(shares: dict[T, float], what: str) -> dict[T, float]:
    total = sum(shares.values())
    if not total:
        raise OptionError(f"the shares of {what} are all 0")
    return {key: share / total for key, share in shares.items() if share}


class Quota(Generic[T]):
    """Shares, and how many there are of each."""

    def __init__(self, shares: Mapping[T, float]) -> None:
        self.shares = dict(shares)
        self.made: dict[T, int] = dict.fromkeys(self.shares, 0)

    def lacking(self, among: Collection[T]) -> T:
        """What is furthest below its share."""
        total = sum(self.made.values()) + 1
        return max(among, key=lambda key: self.shares[key] * total - self.made[key])

    def open(self, key: T) -> bool:
        """Whether one more keeps the share, or nearly so."""
        total = sum(self.made.values()) + 1
        return key in self.shares and self.made[key] + 1 <= self.shares[key] * total * 1.1 + 2


class SeenTexts:
    """What was there before, in 4 MiB however much it is: a text that is new is taken for one that
    was there at a chance of under one in a thousand for a million of them.
    """

    def __init__(self) -> None:
        self._bits = bytearray(_BITS >> 3)

    def add(self, text: str) -> bool:
        """Whether a text is new; it is there then."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        new = False
        for at in range(0, 16, 4):
            bit = int.from_bytes(digest[at : at + 4], "little") % _BITS
            if not self._bits[bit >> 3] >> (bit & 7) & 1:
                new = True
                self._bits[bit >> 3] |= 1 << (bit & 7)
        return new


# -- graph patterns --------------------------------------------------------------------------------
# The same question as a graph pattern, where relations alone describe what is asked for.
#
# A description may mean one entity in two places, and a pattern has another entity for each of its
# nodes. So a pattern is given only where the graph has such entities around the answer.


Triple = tuple[str, str, str]
#: How many relations a pattern has at most, and how many neighbours are tried at each.
_MOST_TRIPLES = 5
_MOST_TRIED = 2_000
_MOST_STEPS = 20_000


def pattern(ask: description.Ask, facts: Facts, runner: Runner) -> tuple[Triple, ...] | None:
    """The triples of a question that asks for one entity by relations alone; the unknown that stands
    first is the answer. The subgraph that answers is at distance 0.
    """
    if ask.kind != "QueryName":
        return None
    triples: list[Triple] = []
    if not _triples(ask.first, triples, [0]) or len(triples) > _MOST_TRIPLES:
        return None
    return tuple(triples) if _apart(ask.first, facts, int(runner.numbers(ask.first)[0])) else None


def _triples(described: description.Description, triples: list[Triple], count: list[int]) -> str | None:
    if described.name is not None:
        return described.name if not described.name.startswith("UNKNOWN") else None
    if described.union:
        return None
    count[0] += 1
    own = f"UNKNOWN {described.concept or 'thing'} {count[0]}"
    for condition in described.conditions:
        if not isinstance(condition, description.RelationCondition) or condition.qualifiers:
            return None
        other = _triples(condition.target, triples, count)
        if other is None:
            return None
        triples.append((own, condition.predicate, other) if condition.outward else (other, condition.predicate, own))
    return own


def _apart(described: description.Description, facts: Facts, entity: int) -> bool:
    """Whether an entity fits a description with another entity for every part of it."""
    left = [_MOST_STEPS]
    return next(_assigned([(described, entity)], frozenset({entity}), facts, left), None) is not None


def _assigned(
    open_: list[tuple[description.Description, int]], taken: frozenset[int], facts: Facts, left: list[int]
) -> Iterator[frozenset[int]]:
    """The entities that parts can have; `open_` are parts whose own relations are still to be met."""
    edges = [(entity, condition) for described, entity in open_ for condition in described.conditions]
    if not edges:
        yield taken
        return
    (entity, condition), rest = edges[0], edges[1:]
    later = [(description.Description(conditions=(other,)), at) for at, other in rest]
    assert isinstance(condition, description.RelationCondition)
    for neighbour in _neighbours(entity, condition, facts):
        left[0] -= 1
        if left[0] < 0:
            return
        if neighbour not in taken and _named(condition.target, neighbour, facts):
            yield from _assigned([*later, (condition.target, neighbour)], taken | {neighbour}, facts, left)


def _neighbours(entity: int, condition: description.RelationCondition, facts: Facts) -> list[int]:
    number = facts.snapshot.predicate(condition.predicate)
    result = facts.of(entity, number, relation=True) if condition.outward else facts.onto(entity, number)
    end = facts.target if condition.outward else facts.subject
    return list(dict.fromkeys(end(int(statement)) for statement in islice(result, _MOST_TRIED)))


def _named(target: description.Description, entity: int, facts: Facts) -> bool:
    return target.name is None or facts.snapshot.name(entity) == target.name


# -- samplers --------------------------------------------------------------------------------------
# What is asked of what was described: one sampler for each of the nine kinds (KQA Pro, Table 8).
#
# Each gives an `Ask` whose answer is one value, and no matter of course; None where the sample did
# not lead to one, and the next sample is tried.


#: Subjects of a relation that are looked at for a noun, and the share of them that has to have it.
_LOOKED: Final = 200
_MOSTLY: Final = 0.8
#: Counts and superlatives are over at most so many.
_MOST: Final = 2_000
_VALUES: Final = ("text", "number", "time")
_SIZES: Final = ("number", "time")


class Asker:
    """Draws facts and asks about them. `qualified` is the share of facts with qualifiers."""

    def __init__(self, facts: Facts, runner: Runner, pick: random.Random, qualified: float) -> None:
        self.facts, self.runner, self.pick, self.qualified = facts, runner, pick, qualified
        self.locator = Locator(facts, runner, pick, qualified)
        self._ways: dict[str, Callable[[int], description.Ask | None]] = {
            "QueryName": self._name,
            "Count": self._count,
            "QueryAttribute": self._attribute,
            "Relation": self._relation,
            "SelectAmong": self._among,
            "SelectBetween": self._between,
            "Verify": self._verify,
            "QualifierLiteral": self._qualifier_literal,
            "QualifierRelational": self._qualifier_relational,
        }

    def can(self, kind: str) -> bool:
        """Whether the graph has the facts that a kind asks about."""
        facts = self.facts
        if kind == "QualifierLiteral":
            return any(facts.has(item, True) for item in _VALUES)
        if kind == "QualifierRelational":
            return facts.has(RELATION, True)
        if kind == "Relation":
            return facts.has(RELATION)
        if kind in ("SelectAmong", "SelectBetween"):
            return any(map(facts.has, _SIZES))
        if kind in ("QueryAttribute", "Verify"):
            return any(map(facts.has, _VALUES))
        return any(map(facts.has, FACT_KINDS))

    def ask(self, kind: str, hops: int) -> description.Ask | None:
        """A question of a kind and of about so many hops."""
        return self._ways[kind](hops)

    # -- sampling ----------------------------------------------------------------------------------

    def _fact(self, kinds: tuple[str, ...], qualified: bool | None = None) -> int | None:
        """A fact of one of the kinds, each as likely as the others."""
        asked = self.pick.random() < self.qualified if qualified is None else qualified
        there = [kind for kind in kinds if self.facts.has(kind, asked)]
        if not there and qualified is None:
            asked, there = False, [kind for kind in kinds if self.facts.has(kind)]
        return self.facts.draw(self.pick, self.pick.choice(there), asked) if there else None

    def _entity(self) -> int | None:
        """An entity that a fact is about, or that one leads to."""
        statement = self._fact(FACT_KINDS)
        if statement is None:
            return None
        if self.facts.kind(statement) == RELATION and self.pick.random() < 0.5:
            entity = self.facts.target(statement)
        else:
            entity = self.facts.subject(statement)
        return entity if self.facts.is_entity(entity) else None

    # -- the kinds ---------------------------------------------------------------------------------

    def _name(self, hops: int) -> description.Ask | None:
        entity = self._entity()
        if entity is None or self.facts.name(entity) is None:
            return None
        result = self.locator.one(entity, max(hops, 1))
        return None if result is None else description.Ask("QueryName", result)

    def _count(self, hops: int) -> description.Ask | None:
        entity = self._entity()
        result = None if entity is None else self.locator.several(entity, hops)
        if result is None or not result.conditions:
            return None
        return description.Ask("Count", result) if 2 <= len(self.runner.numbers(result)) <= _MOST else None

    def _told(
        self, statement: int, left: int
    ) -> tuple[description.Description, str, description.Cell, description.Restriction | None] | None:
        """The subject of an attribute described, the attribute, its value, and the qualifier that
        tells it from others of the same.
        """
        facts = self.facts
        value, subject = facts.value(statement), facts.subject(statement)
        if value is None or not facts.is_entity(subject):
            return None
        number = facts.predicate(statement)
        key = facts.snapshot.predicate_name(number)
        restriction = None
        if len(facts.of(subject, number, relation=False)) > 1:
            result = facts.qualifiers(statement)
            if not result:
                return None
            restriction = description.Restriction(*_plain(self.pick.choice(result)))
            left -= 1
        if is_code(key, value) and key.split("_")[-1].split(" ")[-1].casefold().endswith("id"):
            return None
        described = self.locator.one(subject, left, frozenset({statement})) or self.locator.one(subject, 0)
        return None if described is None else (described, key, value, restriction)

    def _attribute(self, hops: int) -> description.Ask | None:
        statement = self._fact(_VALUES)
        clause = None if statement is None else self._told(statement, hops - 1)
        if clause is None:
            return None
        described, key, value, restriction = clause
        return description.Ask("QueryAttribute", described, key=key, value=value, qualifier=restriction)

    def _verify(self, hops: int) -> description.Ask | None:
        statement = self._fact(_VALUES)
        clause = None if statement is None else self._told(statement, hops - 2)
        if clause is None or statement is None:
            return None
        described, key, value, restriction = clause
        op, against = "=", value
        true = self.pick.random() < 0.5
        if isinstance(value, str):
            if not true:
                other = self._sibling(statement)
                if other is None or other == value:
                    return None
                against = other
        elif isinstance(value, Quantity) and not is_code(key, value):
            below, above = around(value.number)
            op = self.pick.choice("<>")
            against = Quantity(below if (op == ">") == true else above, value.unit)
            if len(text_of(against)) > LONGEST:
                return None
        elif isinstance(value, Time):
            year = year_of(value)
            op = self.pick.choice("=<>")
            away = self.pick.randint(1, 9)
            if op == "=":
                against = Time.year(year if true else year + self.pick.choice((-1, 1)) * away)
            else:
                against = Time.year(year - away if (op == ">") == true else year + away)
        elif not true:
            other = self._sibling(statement)
            if other is None or other == value:
                return None
            against = other
        return description.Ask("Verify", described, key=key, value=against, op=op, qualifier=restriction)

    def _sibling(self, statement: int) -> description.Cell | None:
        """Another value of the same attribute, of something of the same concept where that is soon
        met.
        """
        facts, base = self.facts, self.facts.snapshot.relations
        offsets, number = facts.snapshot.attribute_offsets, facts.predicate(statement)
        concepts, other = set(facts.concepts(facts.subject(statement))), statement
        for _ in range(10):
            other = base + self.pick.randrange(offsets[number], offsets[number + 1])
            if other != statement and not concepts.isdisjoint(facts.concepts(facts.subject(other))):
                break
        return facts.value(other)

    def _relation(self, hops: int) -> description.Ask | None:
        statement = self._fact((RELATION,))
        if statement is None:
            return None
        pair = self._pair(statement, hops - 1)
        return None if pair is None else description.Ask("Relation", *pair)

    def _pair(self, statement: int, left: int) -> tuple[description.Description, description.Description] | None:
        """Both ends of a relation described, without each other."""
        facts = self.facts
        subject, target = facts.subject(statement), facts.target(statement)
        if subject == target:
            return None
        first = self.pick.randint(0, max(left, 0))
        avoid = frozenset({statement})
        result = [
            self.locator.one(entity, hops, avoid) or self.locator.one(entity, 0)
            for entity, hops in ((subject, first), (target, left - first))
        ]
        return (result[0], result[1]) if result[0] is not None and result[1] is not None and result[0] != result[1] else None

    def _among(self, hops: int) -> description.Ask | None:
        statement = self._fact(_SIZES, False)
        if statement is None:
            return None
        value, number = self.facts.value(statement), self.facts.predicate(statement)
        key = self.facts.snapshot.predicate_name(number)
        if value is None or is_code(key, value):
            return None
        result = self.locator.several(self.facts.subject(statement), hops - 2, frozenset({statement}))
        if result is None or not 3 <= len(self.runner.numbers(result)) <= _MOST:
            return None
        ask = description.Ask("SelectAmong", result, key=key, value=value, op=self.pick.choice(("largest", "smallest")))
        # A superlative of one or two is none, and metres and kilograms have none together.
        own = [self.facts.of(int(item), number, relation=False) for item in self.runner.numbers(result)]
        units = {self.facts.unit(int(statement)) for statements in own for statement in statements}
        return ask if sum(map(bool, map(len, own))) >= 3 and len(units) == 1 else None

    def _between(self, hops: int) -> description.Ask | None:
        facts = self.facts
        statement = self._fact(_SIZES, False)
        if statement is None:
            return None
        number = facts.predicate(statement)
        key = facts.snapshot.predicate_name(number)
        subject, value = facts.subject(statement), facts.value(statement)
        if value is None or is_code(key, value) or facts.unnamed_row(subject):
            return None
        low, high = facts.snapshot.attribute_offsets[number], facts.snapshot.attribute_offsets[number + 1]
        concepts = set(facts.concepts(subject))
        for _ in range(12):
            # Near ones are of a size, and a question.
            other = facts.snapshot.relations + self.pick.randrange(low, high)
            rival = facts.subject(other)
            size = facts.value(other)
            if rival == subject or type(size) is not type(value) or size == value or not _comparable(value, size):
                continue
            # Yes and no, written as 1 and 0, have no order to ask for.
            if isinstance(value, Quantity) and isinstance(size, Quantity) and {value.number, size.number} == {0, 1}:
                continue
            if concepts and not concepts.intersection(facts.concepts(rival)):
                continue
            left = max(hops - 3, 0)
            first = self.pick.randint(0, left)
            ends = [
                self.locator.one(entity, own, frozenset({statement, other})) or self.locator.one(entity, 0)
                for entity, own in ((subject, first), (rival, left - first))
            ]
            if ends[0] is None or ends[1] is None:
                return None
            return description.Ask(
                "SelectBetween", ends[0], ends[1], key=key, value=value, op=self.pick.choice(("greater", "less"))
            )
        return None

    def _qualifier_literal(self, hops: int) -> description.Ask | None:
        statement = self._fact(_VALUES, True)
        if statement is None:
            return None
        facts = self.facts
        value, result = facts.value(statement), facts.qualifiers(statement)
        subject = facts.subject(statement)
        if value is None or not result or not facts.is_entity(subject):
            return None
        described = self.locator.one(subject, hops - 2, frozenset({statement})) or self.locator.one(subject, 0)
        key = facts.snapshot.predicate_name(facts.predicate(statement))
        qkey = self.pick.choice(result)[0]
        return None if described is None else description.Ask("QualifierLiteral", described, key=key, value=value, qkey=qkey)

    def _qualifier_relational(self, hops: int) -> description.Ask | None:
        statement = self._fact((RELATION,), True)
        if statement is None:
            return None
        result = self.facts.qualifiers(statement)
        pair = self._pair(statement, hops - 2) if result else None
        if pair is None:
            return None
        key = self.facts.snapshot.predicate_name(self.facts.predicate(statement))
        return description.Ask("QualifierRelational", *pair, key=key, qkey=self.pick.choice(result)[0])


def _plain(cell: tuple[str, description.Cell]) -> tuple[str, str, description.Cell]:
    """A qualifier as a condition: of a day its year, as people ask."""
    key, value = cell
    if isinstance(value, Time) and value.precision is not Precision.YEAR:
        value = Time.year(year_of(value))
    return key, "=", value


def _comparable(first: description.Cell, second: description.Cell) -> bool:
    if isinstance(first, Quantity) and isinstance(second, Quantity):
        return first.unit == second.unit and first.number != second.number
    if isinstance(first, Time) and isinstance(second, Time):
        return first.end <= second.start or second.end <= first.start
    return False


# -- generation ------------------------------------------------------------------------------------
# An iterator that holds what it needs to know of the schema, 4 MiB to know what was asked already,
# and no question that it gave. What it does next follows from its seed and the graph alone.


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
        self._words = Words(
            self._several, "row" if plain else "one", concepts=self._concepts, tables=sources, subjects=self._subjects
        )
        self._nouns: dict[str, str] = {}
        self._means: dict[str, bool] = {}
        self._seen, self._made, self._llm = SeenTexts(), 0, llm
        self._compilers = Compilers(snapshot, graph) if queries and n else None

    def __iter__(self) -> Questions:
        return self

    def __next__(self) -> Question:
        while self._made < self.wanted and self._alive:
            kind = self._kinds.lacking(self._alive)
            result = self._one(kind)
            if result is None:
                self._failed[kind] += 1
                if self._failed[kind] >= _FAILURES:
                    self._alive.remove(kind)
                    self.warnings.append(f"no more questions of kind {kind} were found, after {self._kinds.made[kind]}")
                continue
            self._failed[kind] = 0
            self._kinds.made[kind] += 1
            self._made += 1
            return result
        if self._made < self.wanted:
            self._why()
        raise StopIteration

    def _subjects(self, predicate: str) -> str:
        """The noun that other relations have for the subjects of a relation by their names: what is in a
        country is a club, since people play in clubs (`plays_in_club`), and who plays is a person; ""
        where they have none.
        """
        noun = self._nouns.get(predicate)
        if noun is None:
            noun, facts, snapshot = "", self._facts, self._snapshot
            number = snapshot.predicate(predicate)
            low, high = snapshot.relation_offsets[number : number + 2] if number >= 0 else (0, 0)
            drawn = range(low, high, max(1, (high - low) // _LOOKED))[:_LOOKED]
            kinds: Counter[str] = Counter()
            for statement in drawn:
                runs = facts.incoming(facts.subject(statement))
                names = {snapshot.predicate_name(facts.predicate(run.first)) for run in runs}
                kinds.update({kind for name in names if (kind := forms(name).kind) and turned(name) is None})
                runs = facts.outgoing(facts.subject(statement))
                kinds["person"] += any(personal(snapshot.predicate_name(facts.predicate(run.first))) for run in runs)
            (best, count), *_ = kinds.most_common(1) or [("", 0)]
            if count and count >= _MOSTLY * len(drawn):
                noun = best
            self._nouns[predicate] = noun
        return noun

    # -- quotas ------------------------------------------------------------------------------------

    def _can(self, kind: str) -> bool:
        return self._asker.can(kind) if kind in description.KINDS else bool(self._tables.tables) and self._tables.can(kind)

    def _possible(self, shares: dict[str, float], *, named: bool) -> dict[str, float]:
        result = {kind: share for kind, share in shares.items() if self._can(kind) and FEWEST.get(kind, 1) <= self._largest}
        lost = [kind for kind in shares if kind not in result]
        if lost and (named or not result):
            self.warnings.append(f"the graph has no facts for questions of kind {', '.join(lost)}, or they need more hops")
        total = sum(result.values())
        return {kind: share / total for kind, share in result.items()}

    def _bucket(self, hops: int) -> int:
        return hops if self._exact else min(hops, self._largest)

    def _why(self) -> None:
        note = f"{self._made} of {self.wanted} questions were found"
        if not any(self._facts.has(kind) for kind in ("text", "number", "time", RELATION)):
            note += ": the graph has no facts"
        elif not self._made:
            note += ": nothing in it can be named and told from the rest, or has one answer"
        if note not in self.warnings:
            self.warnings.append(note)

    # -- one question ------------------------------------------------------------------------------

    def _one(self, kind: str) -> Question | None:
        fitting = [hops for hops in self._hops.shares if hops >= FEWEST.get(kind, 1)]
        spare: tuple[Question, int, str] | None = None
        for _ in range(_TRIES):
            result = self._sample(kind, self._hops.lacking(fitting))
            if result is None:
                continue
            question, hops, key = result
            if self._hops.open(hops) or kind not in description.KINDS:
                if (made := self._kept(question, hops, key)) is not None:
                    return made
            elif hops in self._hops.shares:
                spare = spare or result
        # A quota that the graph cannot keep gives way to one more question.
        return None if spare is None else self._kept(*spare)

    def _kept(self, question: Question, hops: int, key: str) -> Question | None:
        if not (self._seen.add(key) and self._seen.add(question.question)):
            return None
        if hops in self._hops.made:
            self._hops.made[hops] += 1
        question = self._beside(replace(question, id=f"q{self._made + 1}"))
        return question if self._llm is None else paraphrased(question, self._llm, self._snapshot)

    def _sample(self, kind: str, hops: int) -> tuple[Question, int, str] | None:
        if kind not in description.KINDS:
            return self._of_table(kind)
        ask = self._asker.ask(kind, hops)
        if ask is None or self._bucket(ask.hops) not in self._hops.shares:
            return None
        calls = asked(ask)
        result = self._answer(ask, calls)
        if result is None:
            return None
        answer, value = result
        words = self._words.question(ask)
        if kind not in ("Verify", "SelectBetween") and (stands_in(answer, words) or _gives_away(ask, answer)):
            return None
        program = description.steps(calls)
        options, fewer = choices(ask, answer, value, self._facts, self._runner, self._pick)
        question = Question(
            "", words, answer, kind, ask.hops, categories_of(calls, ask.hops), options, program, fewer=fewer,
            answer_type=self._type(kind, value),
            pattern=pattern(ask, self._facts, self._runner), llm_query=llm_query(ask), entities=_entities(ask),
        )  # fmt: skip
        return question, self._bucket(ask.hops), json.dumps(calls)

    def _answer(self, ask: description.Ask, calls: list[description.Call]) -> tuple[str, object] | None:
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
            value = self._runner.answer(asked(replace(ask, kind="QueryAttribute"))).texts
            if len(value) != 1 or len(every) < 2:
                return None
        return texts[0], answer.values[0]

    def _of_table(self, kind: str) -> tuple[Question, int, str] | None:
        result = self._tables.ask(kind)
        if result is None or not result.found < result.without or (self._exact and result.hops not in self._hops.shares):
            return None
        answer = answer_of(self._snapshot, result.query)
        texts = answer.texts
        if len(texts) != 1 or not good(texts[0]) or stands_in(texts[0], result.question):
            return None
        wrong = wrong_of(iter(result.wrong), texts[0])
        categories = [name for name, holds in (("Multi-hop", result.hops > 1), ("Comparison", kind == "Superlative")) if holds]
        question = Question(
            "", result.question, texts[0], kind, result.hops, tuple(categories), shuffled(texts[0], wrong, self._pick),
            llm_query=result.query, entities=result.entities, answer_type=self._type(kind, answer.values[0]),
            fewer=None if len(wrong) == CHOICES - 1 else result.fewer,
        )  # fmt: skip
        return question, self._bucket(result.hops), result.query

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
        with suppress(UnsupportedError):
            question = replace(question, sparql=self._compilers.sparql(plan))
        with suppress(UnsupportedError):
            cypher, parameters = self._compilers.cypher(plan)
            question = replace(question, cypher=cypher, parameters=parameters)
        return question

    def _concepts(self, name: str) -> list[str]:
        return [concept for number in self._snapshot.named(name)[:1].tolist() for concept in self._facts.concepts(number)]

    def _several(self, predicate: str) -> bool:
        """Whether a subject of a relation has more than one object of it, as a rule."""
        result = self._means.get(predicate)
        if result is None:
            number, offsets = self._snapshot.predicate(predicate), self._snapshot.relation_offsets
            low, high = offsets[number], offsets[number + 1]
            subjects = self._snapshot.relation_subject[low : min(high, low + 4096)]
            result = self._means[predicate] = len(subjects) > 1.5 * max(1, len(set(subjects.tolist())))
        return result


def good(answer: str) -> bool:
    """Whether a text can be an answer: short, readable, and not what fills up choices."""
    return readable(answer) and answer.casefold() != UNKNOWN_CHOICE


def stands_in(answer: str, question: str) -> bool:
    """Whether a question contains its answer, as whole words.

    >>> stands_in("Oslo", "What is the capital of Oslo county?"), stands_in("5", "How many have 50?")
    (True, False)
    """
    return re.search(rf"(?<!\w){re.escape(answer.casefold())}(?!\w)", question.casefold()) is not None


def _gives_away(ask: description.Ask, answer: str) -> bool:
    """Whether a text of a condition is a part of the answer, or the answer of it."""
    low = answer.casefold()
    texts = [
        item.value.casefold()
        for item in description.conditions_of(ask.first)
        if isinstance(item, description.Literal) and isinstance(item.value, str)
    ]
    return ask.kind == "QueryName" and any(text in low or low in text or text[:5] == low[:5] for text in texts)


def _entities(ask: description.Ask) -> tuple[str, ...]:
    """The names that a question mentions."""
    names = []
    for described in description.described_in(ask):
        names += [described.name] + [
            condition.target.name
            for condition in description.conditions_of(described)
            if isinstance(condition, description.RelationCondition)
        ]
    return tuple(dict.fromkeys(name for name in names if name is not None))
