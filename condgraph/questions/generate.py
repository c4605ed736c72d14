"""Generates questions from a graph: samples them, keeps those with one good answer, and paraphrases them (KQA Pro,
sections 3 and 4).
"""

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
from condgraph.questions.facts import FACT_KINDS, MAX_LENGTH, RELATION, Facts, readable
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
# Paraphrases by a language model, which are used only if they pass two filters.
#
# A paraphrase has to differ from the template words (KQA Pro rejects those with a small edit distance),
# and to mean the same: its program has to give the same answer. That round trip needs a reader that
# turns words into a program. Without one, the paraphrase has to contain every name, number and time of
# the question, which a reader would need first.


#: The smallest and the largest share of a question's words that a paraphrase may change.
MIN_CHANGED: Final = 0.15
MAX_CHANGED: Final = 0.9


def paraphrased(question: Question, llm: Callable[[str], str], snapshot: Snapshot) -> Question:
    """Return the question in the words of `llm`, a function from text to text; unchanged if a filter rejects them. A
    method `program(text)` of `llm` is the reader of the round trip.
    """
    paraphrase = " ".join(str(llm(question.question)).split())
    if not MIN_CHANGED <= distance(question.question, paraphrase) <= MAX_CHANGED or not keeps_names(question, paraphrase):
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
    answer = question.answer.casefold()
    if question.kind not in ("Verify", "SelectBetween") and re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", low):
        return False
    return all(name.casefold() in low for name in question.entities)


def distance(text: str, other: str) -> float:
    """Return the edit distance of two texts in words, relative to the longer one: 0 to 1.

    >>> distance("Who wrote Emma?", "Who wrote Emma?"), distance("Who wrote Emma?", "Emma is by whom?")
    (0.0, 1.0)
    """
    a, b = re.findall(r"\w+", text.casefold()), re.findall(r"\w+", other.casefold())
    previous = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        row = [i]
        for j, other_word in enumerate(b, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (word != other_word)))
        previous = row
    return previous[-1] / max(len(a), len(b), 1)


# -- quotas ------------------------------------------------------------------------------------------
# Quotas of kinds and hops, and the questions asked so far, in bounded memory.


#: KQA Pro's shares (section 4.4): SelectAmong is the rarest of nine kinds; 4.7 % of the questions have
#: five hops or more, 26.3 % one.
KIND_SHARES: Final = {kind: 0.046 if kind == "SelectAmong" else (1 - 0.046) / 8 for kind in description.KINDS}
HOP_SHARES: Final = {1: 0.263, 2: 0.25, 3: 0.25, 4: 0.19, 5: 0.047}
#: The fewest hops of a kind.
MIN_HOPS: Final = {"SelectAmong": 2, "SelectBetween": 3, "Verify": 2, "QualifierLiteral": 2, "QualifierRelational": 2}
_BITS: Final = 1 << 25
T = TypeVar("T")


def kind_shares(kinds: Collection[str] | Mapping[str, float] | None, tables: bool) -> dict[str, float]:
    """Return the share of each kind; raises `OptionError` for an unknown kind or an invalid share."""
    known_kinds = (*description.KINDS, *description.TABLE_KINDS)
    if kinds is None:
        # With tables, half of the questions are about them; `_possible` scales the shares to a sum of 1.
        defaults = dict(KIND_SHARES)
        return {**defaults, **dict.fromkeys(description.TABLE_KINDS, 0.25)} if tables else defaults
    if isinstance(kinds, str):
        kinds = (kinds,)
    shares = dict(kinds) if isinstance(kinds, Mapping) else dict.fromkeys(kinds, 1.0)
    for kind, share in shares.items():
        if kind not in known_kinds:
            raise OptionError(
                f"unknown kind of questions {kind!r}",
                candidates=nearest(kind, known_kinds),
                hint=f"known: {', '.join(known_kinds)}",
            )
        if not share >= 0:
            raise OptionError(f"the share of {kind} is {share!r}, and must be a number of at least 0")
    return _normal(shares, "kinds")


def hop_shares(hops: int | Collection[int] | Mapping[int, float] | None) -> dict[int, float]:
    """Return the share of each number of hops. By default the largest number includes all above it."""
    if hops is None:
        return dict(HOP_SHARES)
    if isinstance(hops, int):
        hops = (hops,)
    shares = dict(hops) if isinstance(hops, Mapping) else dict.fromkeys(hops, 1.0)
    for number, share in shares.items():
        if not isinstance(number, int) or not 1 <= number <= 12:
            raise OptionError(f"hops are whole numbers from 1 to 12, not {number!r}")
        if not share >= 0:
            raise OptionError(f"the share of {number} hops is {share!r}, and must be a number of at least 0")
    return _normal({int(number): share for number, share in shares.items()}, "hops")


def _normal(shares: dict[T, float], what: str) -> dict[T, float]:
    total = sum(shares.values())
    if not total:
        raise OptionError(f"the shares of {what} are all 0")
    return {key: share / total for key, share in shares.items() if share}


class Quota(Generic[T]):
    """Shares of keys, and the number of questions made for each."""

    def __init__(self, shares: Mapping[T, float]) -> None:
        self.shares = dict(shares)
        self.made: dict[T, int] = dict.fromkeys(self.shares, 0)

    def lacking(self, among: Collection[T]) -> T:
        """Return the key that is furthest below its share."""
        total = sum(self.made.values()) + 1
        return max(among, key=lambda key: self.shares[key] * total - self.made[key])

    def open(self, key: T) -> bool:
        """Whether one more of a key keeps its share, or nearly so."""
        total = sum(self.made.values()) + 1
        return key in self.shares and self.made[key] + 1 <= self.shares[key] * total * 1.1 + 2


class SeenTexts:
    """A set of texts in a constant 4 MiB (a Bloom filter): after a million texts, fewer than one new text in a thousand
    is taken for a known one.
    """

    def __init__(self) -> None:
        self._bits = bytearray(_BITS >> 3)

    def add(self, text: str) -> bool:
        """Add a text; return whether it is new."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        new = False
        for at in range(0, 16, 4):
            bit = int.from_bytes(digest[at : at + 4], "little") % _BITS
            if not self._bits[bit >> 3] >> (bit & 7) & 1:
                new = True
                self._bits[bit >> 3] |= 1 << (bit & 7)
        return new


# -- graph patterns --------------------------------------------------------------------------------
# The question as a graph pattern, if only relations describe the answer.
#
# A description may mean the same entity in two places, but the nodes of a pattern are different
# entities. So there is a pattern only if the graph has such entities around the answer.


Triple = tuple[str, str, str]
#: The most relations of a pattern, the most neighbours tried for each, and the most steps of the search.
_MAX_TRIPLES = 5
_MAX_TRIED = 2_000
_MAX_STEPS = 20_000


def pattern(ask: description.Ask, facts: Facts, runner: Runner) -> tuple[Triple, ...] | None:
    """Return the triples of a question that asks for one entity by relations alone, else None. The first unknown is the
    answer. The subgraph of the answer has distance 0.
    """
    if ask.kind != "QueryName":
        return None
    triples: list[Triple] = []
    if not _triples(ask.first, triples, [0]) or len(triples) > _MAX_TRIPLES:
        return None
    return tuple(triples) if _fits_distinctly(ask.first, facts, int(runner.numbers(ask.first)[0])) else None


def _triples(described: description.Description, triples: list[Triple], count: list[int]) -> str | None:
    if described.name is not None:
        return described.name if not described.name.startswith("UNKNOWN") else None
    if described.union:
        return None
    count[0] += 1
    variable = f"UNKNOWN {described.concept or 'thing'} {count[0]}"
    for condition in described.conditions:
        if not isinstance(condition, description.RelationCondition) or condition.qualifiers:
            return None
        target = _triples(condition.target, triples, count)
        if target is None:
            return None
        triples.append((variable, condition.predicate, target) if condition.outward else (target, condition.predicate, variable))
    return variable


def _fits_distinctly(described: description.Description, facts: Facts, entity: int) -> bool:
    """Whether an entity fits a description with different entities for all its parts."""
    steps_left = [_MAX_STEPS]
    return next(_assigned([(described, entity)], frozenset({entity}), facts, steps_left), None) is not None


def _assigned(
    open_: list[tuple[description.Description, int]], taken: frozenset[int], facts: Facts, left: list[int]
) -> Iterator[frozenset[int]]:
    """Yield the sets of entities that fit the parts. `open_` are parts whose conditions are still to be met."""
    edges = [(entity, condition) for described, entity in open_ for condition in described.conditions]
    if not edges:
        yield taken
        return
    (entity, condition), later_edges = edges[0], edges[1:]
    open_later = [
        (description.Description(conditions=(later_condition,)), later_entity) for later_entity, later_condition in later_edges
    ]
    assert isinstance(condition, description.RelationCondition)
    for neighbour in _neighbours(entity, condition, facts):
        left[0] -= 1
        if left[0] < 0:
            return
        if neighbour not in taken and _has_name(condition.target, neighbour, facts):
            yield from _assigned([*open_later, (condition.target, neighbour)], taken | {neighbour}, facts, left)


def _neighbours(entity: int, condition: description.RelationCondition, facts: Facts) -> list[int]:
    number = facts.snapshot.predicate(condition.predicate)
    statements = facts.of(entity, number, relation=True) if condition.outward else facts.onto(entity, number)
    end = facts.target if condition.outward else facts.subject
    return list(dict.fromkeys(end(int(statement)) for statement in islice(statements, _MAX_TRIED)))


def _has_name(target: description.Description, entity: int, facts: Facts) -> bool:
    return target.name is None or facts.snapshot.name(entity) == target.name


# -- samplers --------------------------------------------------------------------------------------
# One sampler for each of the nine kinds of questions (KQA Pro, Table 8).
#
# Each returns an `Ask` whose answer is one value and not trivial, or None if its sample did not lead to
# one; then the next sample is tried.


#: The number of subjects of a relation that are sampled for a noun, and the share that has to have it.
_SAMPLE: Final = 200
_MOSTLY: Final = 0.8
#: The most entities in a count or a superlative.
_MAX_ENTITIES: Final = 2_000
_VALUES: Final = ("text", "number", "time")
_SIZES: Final = ("number", "time")


class Asker:
    """Draws facts and asks about them. `qualified` is the share of facts with qualifiers."""

    def __init__(self, facts: Facts, runner: Runner, pick: random.Random, qualified: float) -> None:
        self.facts, self.runner, self.pick, self.qualified = facts, runner, pick, qualified
        self.locator = Locator(facts, runner, pick, qualified)
        self._makers: dict[str, Callable[[int], description.Ask | None]] = {
            "QueryName": self._name,
            "Count": self._count,
            "QueryAttribute": self._attribute,
            "Relation": self._relation,
            "SelectAmong": self._among,
            "SelectBetween": self._comparison,
            "Verify": self._verify,
            "QualifierLiteral": self._qualifier_literal,
            "QualifierRelational": self._qualifier_relational,
        }

    def can(self, kind: str) -> bool:
        """Whether the graph has the facts that a kind of question needs."""
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
        """Return a question of a kind with about `hops` hops; None if the sample did not lead to one."""
        return self._makers[kind](hops)

    # -- sampling ----------------------------------------------------------------------------------

    def _fact(self, kinds: tuple[str, ...], qualified: bool | None = None) -> int | None:
        """Draw a fact of one of the kinds, which are equally likely."""
        with_qualifiers = self.pick.random() < self.qualified if qualified is None else qualified
        available = [kind for kind in kinds if self.facts.has(kind, with_qualifiers)]
        if not available and qualified is None:
            with_qualifiers, available = False, [kind for kind in kinds if self.facts.has(kind)]
        return self.facts.draw(self.pick, self.pick.choice(available), with_qualifiers) if available else None

    def _entity(self) -> int | None:
        """Draw an entity that is the subject or the object of a fact."""
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
        described = self.locator.one(entity, max(hops, 1))
        return None if described is None else description.Ask("QueryName", described)

    def _count(self, hops: int) -> description.Ask | None:
        entity = self._entity()
        described = None if entity is None else self.locator.several(entity, hops)
        if described is None or not described.conditions:
            return None
        return description.Ask("Count", described) if 2 <= len(self.runner.numbers(described)) <= _MAX_ENTITIES else None

    def _described_value(
        self, statement: int, left: int
    ) -> tuple[description.Description, str, description.Cell, description.Restriction | None] | None:
        """Return the described subject of an attribute, the attribute, its value, and the qualifier that distinguishes
        it from other values of the same attribute.
        """
        facts = self.facts
        value, subject = facts.value(statement), facts.subject(statement)
        if value is None or not facts.is_entity(subject):
            return None
        number = facts.predicate(statement)
        key = facts.snapshot.predicate_name(number)
        restriction = None
        if len(facts.of(subject, number, relation=False)) > 1:
            qualifiers = facts.qualifiers(statement)
            if not qualifiers:
                return None
            restriction = description.Restriction(*_by_year(self.pick.choice(qualifiers)))
            left -= 1
        if is_code(key, value) and key.split("_")[-1].split(" ")[-1].casefold().endswith("id"):
            return None
        described = self.locator.one(subject, left, frozenset({statement})) or self.locator.one(subject, 0)
        return None if described is None else (described, key, value, restriction)

    def _attribute(self, hops: int) -> description.Ask | None:
        statement = self._fact(_VALUES)
        parts = None if statement is None else self._described_value(statement, hops - 1)
        if parts is None:
            return None
        described, key, value, restriction = parts
        return description.Ask("QueryAttribute", described, key=key, value=value, qualifier=restriction)

    def _verify(self, hops: int) -> description.Ask | None:
        statement = self._fact(_VALUES)
        parts = None if statement is None else self._described_value(statement, hops - 2)
        if parts is None or statement is None:
            return None
        described, key, value, restriction = parts
        op, compared_value = "=", value
        holds = self.pick.random() < 0.5
        if isinstance(value, str):
            if not holds:
                sibling = self._sibling(statement)
                if sibling is None or sibling == value:
                    return None
                compared_value = sibling
        elif isinstance(value, Quantity) and not is_code(key, value):
            below, above = around(value.number)
            op = self.pick.choice("<>")
            compared_value = Quantity(below if (op == ">") == holds else above, value.unit)
            if len(text_of(compared_value)) > MAX_LENGTH:
                return None
        elif isinstance(value, Time):
            year = year_of(value)
            op = self.pick.choice("=<>")
            years_off = self.pick.randint(1, 9)
            if op == "=":
                compared_value = Time.year(year if holds else year + self.pick.choice((-1, 1)) * years_off)
            else:
                compared_value = Time.year(year - years_off if (op == ">") == holds else year + years_off)
        elif not holds:
            sibling = self._sibling(statement)
            if sibling is None or sibling == value:
                return None
            compared_value = sibling
        return description.Ask("Verify", described, key=key, value=compared_value, op=op, qualifier=restriction)

    def _sibling(self, statement: int) -> description.Cell | None:
        """Return another value of the same attribute, of an entity of the same concept if one is found soon."""
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
        """Describe both ends of a relation, neither by the other."""
        facts = self.facts
        subject, target = facts.subject(statement), facts.target(statement)
        if subject == target:
            return None
        subject_hops = self.pick.randint(0, max(left, 0))
        avoid = frozenset({statement})
        ends = [
            self.locator.one(entity, hops, avoid) or self.locator.one(entity, 0)
            for entity, hops in ((subject, subject_hops), (target, left - subject_hops))
        ]
        return (ends[0], ends[1]) if ends[0] is not None and ends[1] is not None and ends[0] != ends[1] else None

    def _among(self, hops: int) -> description.Ask | None:
        statement = self._fact(_SIZES, False)
        if statement is None:
            return None
        value, number = self.facts.value(statement), self.facts.predicate(statement)
        key = self.facts.snapshot.predicate_name(number)
        if value is None or is_code(key, value):
            return None
        compared = self.locator.several(self.facts.subject(statement), hops - 2, frozenset({statement}))
        if compared is None or not 3 <= len(self.runner.numbers(compared)) <= _MAX_ENTITIES:
            return None
        ask = description.Ask("SelectAmong", compared, key=key, value=value, op=self.pick.choice(("largest", "smallest")))
        # A superlative needs three entities or more, and values with one unit.
        statements_of = [self.facts.of(int(item), number, relation=False) for item in self.runner.numbers(compared)]
        units = {self.facts.unit(int(statement)) for statements in statements_of for statement in statements}
        return ask if sum(map(bool, map(len, statements_of))) >= 3 and len(units) == 1 else None

    def _comparison(self, hops: int) -> description.Ask | None:
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
            # Compare it with another subject of the same attribute.
            other = facts.snapshot.relations + self.pick.randrange(low, high)
            rival = facts.subject(other)
            rival_value = facts.value(other)
            if (
                rival == subject
                or type(rival_value) is not type(value)
                or rival_value == value
                or not _comparable(value, rival_value)
            ):
                continue
            # 1 and 0 may mean yes and no, which have no order.
            if isinstance(value, Quantity) and isinstance(rival_value, Quantity) and {value.number, rival_value.number} == {0, 1}:
                continue
            if concepts and not concepts.intersection(facts.concepts(rival)):
                continue
            spare_hops = max(hops - 3, 0)
            subject_hops = self.pick.randint(0, spare_hops)
            ends = [
                self.locator.one(entity, own_hops, frozenset({statement, other})) or self.locator.one(entity, 0)
                for entity, own_hops in ((subject, subject_hops), (rival, spare_hops - subject_hops))
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
        value, qualifiers = facts.value(statement), facts.qualifiers(statement)
        subject = facts.subject(statement)
        if value is None or not qualifiers or not facts.is_entity(subject):
            return None
        described = self.locator.one(subject, hops - 2, frozenset({statement})) or self.locator.one(subject, 0)
        key = facts.snapshot.predicate_name(facts.predicate(statement))
        qkey = self.pick.choice(qualifiers)[0]
        return None if described is None else description.Ask("QualifierLiteral", described, key=key, value=value, qkey=qkey)

    def _qualifier_relational(self, hops: int) -> description.Ask | None:
        statement = self._fact((RELATION,), True)
        if statement is None:
            return None
        qualifiers = self.facts.qualifiers(statement)
        pair = self._pair(statement, hops - 2) if qualifiers else None
        if pair is None:
            return None
        key = self.facts.snapshot.predicate_name(self.facts.predicate(statement))
        return description.Ask("QualifierRelational", *pair, key=key, qkey=self.pick.choice(qualifiers)[0])


def _by_year(cell: tuple[str, description.Cell]) -> tuple[str, str, description.Cell]:
    """Convert a qualifier for a condition: a date becomes its year, as people ask."""
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
# An iterator that holds facts about the schema and 4 MiB for the questions asked so far, but not the
# questions themselves. Its output depends only on its seed and the graph.


#: The number of samples tried for one question, and the number of failures in a row after which a kind
#: is left out.
_TRIES: Final = 40
_FAILURES: Final = 4
#: The default share of facts with qualifiers, if the graph has any.
QUALIFIED: Final = 0.3


class Questions(Iterator[Question]):
    """An iterator of generated questions. `warnings` report why there are fewer than `wanted`."""

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
        self._longest = max(lengths)
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
            question = self._make(kind)
            if question is None:
                self._failed[kind] += 1
                if self._failed[kind] >= _FAILURES:
                    self._alive.remove(kind)
                    self.warnings.append(f"no more questions of kind {kind} were found, after {self._kinds.made[kind]}")
                continue
            self._failed[kind] = 0
            self._kinds.made[kind] += 1
            self._made += 1
            return question
        if self._made < self.wanted:
            self._why()
        raise StopIteration

    def _subjects(self, predicate: str) -> str:
        """Return the noun that the names of other relations have for the subjects of a relation, or "". The subjects of
        `in_country` are clubs if people play in them (`plays_in_club`), and an entity that plays is a person.
        """
        noun = self._nouns.get(predicate)
        if noun is None:
            noun, facts, snapshot = "", self._facts, self._snapshot
            number = snapshot.predicate(predicate)
            low, high = snapshot.relation_offsets[number : number + 2] if number >= 0 else (0, 0)
            sample = range(low, high, max(1, (high - low) // _SAMPLE))[:_SAMPLE]
            kinds: Counter[str] = Counter()
            for statement in sample:
                runs = facts.incoming(facts.subject(statement))
                names = {snapshot.predicate_name(facts.predicate(run.first)) for run in runs}
                kinds.update({kind for name in names if (kind := forms(name).kind) and turned(name) is None})
                runs = facts.outgoing(facts.subject(statement))
                kinds["person"] += any(personal(snapshot.predicate_name(facts.predicate(run.first))) for run in runs)
            (most_common, count), *_ = kinds.most_common(1) or [("", 0)]
            if count and count >= _MOSTLY * len(sample):
                noun = most_common
            self._nouns[predicate] = noun
        return noun

    # -- quotas ------------------------------------------------------------------------------------

    def _can_ask(self, kind: str) -> bool:
        return self._asker.can(kind) if kind in description.KINDS else bool(self._tables.tables) and self._tables.can(kind)

    def _possible(self, shares: dict[str, float], *, named: bool) -> dict[str, float]:
        possible = {kind: share for kind, share in shares.items() if self._can_ask(kind) and MIN_HOPS.get(kind, 1) <= self._longest}
        impossible = [kind for kind in shares if kind not in possible]
        if impossible and (named or not possible):
            self.warnings.append(f"the graph has no facts for questions of kind {', '.join(impossible)}, or they need more hops")
        total = sum(possible.values())
        return {kind: share / total for kind, share in possible.items()}

    def _bucket(self, hops: int) -> int:
        return hops if self._exact else min(hops, self._longest)

    def _why(self) -> None:
        note = f"{self._made} of {self.wanted} questions were found"
        if not any(self._facts.has(kind) for kind in ("text", "number", "time", RELATION)):
            note += ": the graph has no facts"
        elif not self._made:
            note += ": nothing in it can be named and told from the rest, or has one answer"
        if note not in self.warnings:
            self.warnings.append(note)

    # -- one question ------------------------------------------------------------------------------

    def _make(self, kind: str) -> Question | None:
        fitting = [hops for hops in self._hops.shares if hops >= MIN_HOPS.get(kind, 1)]
        spare: tuple[Question, int, str] | None = None
        for _ in range(_TRIES):
            sampled = self._sample(kind, self._hops.lacking(fitting))
            if sampled is None:
                continue
            question, hops, key = sampled
            if self._hops.open(hops) or kind not in description.KINDS:
                if (numbered := self._accepted(question, hops, key)) is not None:
                    return numbered
            elif hops in self._hops.shares:
                spare = spare or sampled
        # If the graph cannot meet a quota, a question beyond the quota is used.
        return None if spare is None else self._accepted(*spare)

    def _accepted(self, question: Question, hops: int, key: str) -> Question | None:
        if not (self._seen.add(key) and self._seen.add(question.question)):
            return None
        if hops in self._hops.made:
            self._hops.made[hops] += 1
        question = self._with_programs(replace(question, id=f"q{self._made + 1}"))
        return question if self._llm is None else paraphrased(question, self._llm, self._snapshot)

    def _sample(self, kind: str, hops: int) -> tuple[Question, int, str] | None:
        if kind not in description.KINDS:
            return self._of_table(kind)
        ask = self._asker.ask(kind, hops)
        if ask is None or self._bucket(ask.hops) not in self._hops.shares:
            return None
        calls = asked(ask)
        answered = self._answer(ask, calls)
        if answered is None:
            return None
        answer, value = answered
        words = self._words.question(ask)
        if kind not in ("Verify", "SelectBetween") and (stands_in(answer, words) or _reveals(ask, answer)):
            return None
        program = description.steps(calls)
        choice_texts, why_fewer = choices(ask, answer, value, self._facts, self._runner, self._pick)
        question = Question(
            "", words, answer, kind, ask.hops, categories_of(calls, ask.hops), choice_texts, program, fewer=why_fewer,
            answer_type=self._type(kind, value),
            pattern=pattern(ask, self._facts, self._runner), llm_query=llm_query(ask), entities=_entities(ask),
        )  # fmt: skip
        return question, self._bucket(ask.hops), json.dumps(calls)

    def _answer(self, ask: description.Ask, calls: list[description.Call]) -> tuple[str, object] | None:
        """Return the answer and its value if there is exactly one, and it needs all that the question states."""
        answer = self._runner.answer(calls)
        texts = answer.texts
        if len(texts) != 1 or len(answer.values) != 1 or not good(texts[0]):
            return None
        if ask.kind in ("QueryName", "SelectAmong", "SelectBetween"):
            ends = answer.entities
            if len(ends) != 1 or self._facts.unnamed_row(self._snapshot.identified(ends[0].id)):
                return None
        if ask.kind in ("QueryAttribute", "Verify") and ask.qualifier is not None:
            # The qualifier has to distinguish one value from others.
            unqualified = self._runner.answer(asked(replace(ask, kind="QueryAttribute", qualifier=None))).texts
            qualified = self._runner.answer(asked(replace(ask, kind="QueryAttribute"))).texts
            if len(qualified) != 1 or len(unqualified) < 2:
                return None
        return texts[0], answer.values[0]

    def _of_table(self, kind: str) -> tuple[Question, int, str] | None:
        draft = self._tables.ask(kind)
        if draft is None or not draft.found < draft.without or (self._exact and draft.hops not in self._hops.shares):
            return None
        answer = answer_of(self._snapshot, draft.query)
        texts = answer.texts
        if len(texts) != 1 or not good(texts[0]) or stands_in(texts[0], draft.question):
            return None
        wrong = wrong_of(iter(draft.wrong), texts[0])
        categories = [name for name, applies in (("Multi-hop", draft.hops > 1), ("Comparison", kind == "Superlative")) if applies]
        question = Question(
            "", draft.question, texts[0], kind, draft.hops, tuple(categories), shuffled(texts[0], wrong, self._pick),
            llm_query=draft.query, entities=draft.entities, answer_type=self._type(kind, answer.values[0]),
            fewer=None if len(wrong) == CHOICES - 1 else draft.fewer,
        )  # fmt: skip
        return question, self._bucket(draft.hops), draft.query

    def _type(self, kind: str, value: object) -> str:
        """Return the type of an answer. A qualifier's text that is the name of an entity is an entity."""
        fixed = {"Verify": "yes or no", "Count": "count", "Relation": "relation"}
        if kind in fixed:
            return fixed[kind]
        if isinstance(value, Quantity | int | float):
            return "number"
        asks_for_entity = kind in ("QueryName", "SelectAmong", "SelectBetween")
        if asks_for_entity or (kind.startswith("Qualifier") and len(self._snapshot.named(str(value)))):
            return "entity"
        return "time" if isinstance(value, Time) else "text"

    def _with_programs(self, question: Question) -> Question:
        """Add the programs in the other languages to a question."""
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
        """Whether subjects of a relation usually have more than one object."""
        has_several = self._means.get(predicate)
        if has_several is None:
            number, offsets = self._snapshot.predicate(predicate), self._snapshot.relation_offsets
            low, high = offsets[number], offsets[number + 1]
            subjects = self._snapshot.relation_subject[low : min(high, low + 4096)]
            has_several = self._means[predicate] = len(subjects) > 1.5 * max(1, len(set(subjects.tolist())))
        return has_several


def good(answer: str) -> bool:
    """Whether a text can be an answer: it is short and readable, and not the filler of choices."""
    return readable(answer) and answer.casefold() != UNKNOWN_CHOICE


def stands_in(answer: str, question: str) -> bool:
    """Whether a question contains its answer as whole words.

    >>> stands_in("Oslo", "What is the capital of Oslo county?"), stands_in("5", "How many have 50?")
    (True, False)
    """
    return re.search(rf"(?<!\w){re.escape(answer.casefold())}(?!\w)", question.casefold()) is not None


def _reveals(ask: description.Ask, answer: str) -> bool:
    """Whether a text in a condition is much like the answer: one contains the other, or their first five letters are
    equal.
    """
    low = answer.casefold()
    texts = [
        item.value.casefold()
        for item in description.conditions_of(ask.first)
        if isinstance(item, description.Literal) and isinstance(item.value, str)
    ]
    return ask.kind == "QueryName" and any(text in low or low in text or text[:5] == low[:5] for text in texts)


def _entities(ask: description.Ask) -> tuple[str, ...]:
    """Return the names that a question mentions."""
    names = []
    for described in description.described_in(ask):
        names += [described.name] + [
            condition.target.name
            for condition in description.conditions_of(described)
            if isinstance(condition, description.RelationCondition)
        ]
    return tuple(dict.fromkeys(name for name in names if name is not None))
