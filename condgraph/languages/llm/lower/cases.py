"""The meaning of get_information for each of the 32 subsets of its parameters, as data.

H is head_entity, R relation, T tail_entity, K key, V value. F(p) are the facts of predicate p;
F(p)[H] those whose subject lies in H, F(p)[T] those whose object satisfies T. K names a predicate,
a qualifier key or a time word. "K is a qualifier" holds for the time words (`time`, `start time`,
`end time`), and for a qualifier key that the schema has seen on R, or on any predicate where R is
not given; where K is such a key and a predicate as well, it is the qualifier. Which choice of a
case applies is decided while lowering, from the schema and the program's text, never from the data.
The paper's Table 1 covers ten of the cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from types import MappingProxyType
from typing import Final

from condgraph.languages.llm.bound import PARAMETERS


class When(Enum):
    """What has to hold for a choice. `QUALIFIER` and `PREDICATE` speak of K, `CONSTANT` and `SET`
    of H.
    """

    ALWAYS = "always"
    QUALIFIER = "K is a qualifier"
    PREDICATE = "K is a predicate"
    CONSTANT = "H is one constant"
    SET = "H is a set or an output"


@dataclass(frozen=True, slots=True)
class Choice:
    """One meaning of a case: when it applies, the rule that lowers it, and what it says. A rule of
    None is a typed error.
    """

    when: When
    rule: str | None
    meaning: str


@dataclass(frozen=True, slots=True)
class Case:
    """A subset of the parameters, as letters in the order H R T K V, and its choices; exactly one
    of them applies.
    """

    given: str
    choices: tuple[Choice, ...]

    @property
    def name(self) -> str:
        """The parameters that are given, for people: "H R T"."""
        return " ".join(self.given) or "nothing"


def _case(given: str, *choices: tuple[When, str | None, str]) -> Case:
    return Case(given, tuple(Choice(*choice) for choice in choices))


_A, _Q, _P, _C, _S = When.ALWAYS, When.QUALIFIER, When.PREDICATE, When.CONSTANT, When.SET

_TABLE: Final = (
    _case("", (_A, None, "get_information needs at least one condition")),
    _case("H", (_A, "names_of_facts", "the distinct predicates of H's facts, and their qualifier keys")),
    _case("R", (_A, "objects", "the objects of F(R)")),
    _case("T", (_A, "subjects_any", "the subjects of any fact with object T")),
    _case("K", (_Q, "qualifiers_any", "all values of qualifier K"), (_P, "objects_k", "the objects of F(K)")),
    _case("V", (_A, "subjects_any", "the subjects of any fact with object V")),
    _case("HR", (_A, "objects_of", "the objects of F(R)[H]")),
    _case("HT", (_A, "predicates_between", "the distinct predicates between H and T")),
    _case("HK", (_Q, "qualifiers_of_any", "qualifier K of H's facts"), (_P, "objects_of_k", "the objects of F(K)[H]")),
    _case("HV", (_A, "predicates_between", "the distinct predicates of H's facts with object V")),
    _case("RT", (_A, "subjects", "the subjects of F(R)[T]")),
    _case(
        "RK", (_Q, "qualifiers", "qualifier K of the facts of R"), (_P, None, "two columns without a condition: ask one at a time")
    ),
    _case("RV", (_A, "subjects", "the subjects of F(R)[V]")),
    _case(
        "TK",
        (_Q, "subjects_qualified", "the subjects of facts whose qualifier K is T"),
        (_P, "subjects_k", "the subjects of F(K)[T]"),
    ),
    _case("TV", (_A, "subjects_any_both", "the subjects of any fact with object T that also have one with object V")),
    _case(
        "KV",
        (_Q, "subjects_qualified", "the subjects of facts whose qualifier K is V"),
        (_P, "subjects_k", "the subjects of F(K)[V]"),
    ),
    _case("HRT", (_C, "holds", "whether F(R)[H][T] is there"), (_S, "holding", "those of H that have F(R)[T]")),
    _case(
        "HRK", (_Q, "qualifiers_of", "qualifier K of F(R)[H]"), (_P, "two_hops", "the objects of F(K) of the objects of F(R)[H]")
    ),
    _case("HRV", (_C, "holds", "whether F(R)[H][V] is there"), (_S, "holding", "those of H that have F(R)[V]")),
    _case(
        "HTK",
        (_Q, "qualifiers_between", "qualifier K of the facts between H and T"),
        (_P, "holds_k", "as H R T, with K for R"),
    ),
    _case("HTV", (_A, "holds_any", "whether any fact of H has object T, and any has object V")),
    _case(
        "HKV",
        (_Q, "objects_of_any_qualified", "the objects of H's facts whose qualifier K is V"),
        (_P, "holds_k", "as H R V, with K for R"),
    ),
    _case(
        "RTK",
        (_Q, "qualifiers_with_object", "qualifier K of F(R)[T]"),
        (_P, "objects_k_of_subjects", "the objects of F(K) of the subjects of F(R)[T]"),
    ),
    _case("RTV", (_A, "subjects_both", "the subjects of F(R) whose object satisfies both T and V")),
    _case(
        "RKV",
        (_Q, "objects_qualified", "the objects of the facts of R whose qualifier K is V"),
        (_P, "objects_of_subjects_k", "the objects of F(R) of the subjects of F(K)[V]"),
    ),
    _case(
        "TKV",
        (_Q, "subjects_any_qualified", "the subjects of facts with object T whose qualifier K is V"),
        (_P, "subjects_k_and_any", "the subjects of F(K)[V] that also have a fact with object T"),
    ),
    _case(
        "HRTK",
        (_Q, "qualifiers_of_with_object", "qualifier K of F(R)[H][T]"),
        (_P, "objects_k_if_holds", "the objects of F(K) of those of H that have F(R)[T]"),
    ),
    _case(
        "HRTV",
        (_C, "holds_both", "whether an object of F(R)[H] satisfies both T and V"),
        (_S, "holding_both", "those of H for which it does"),
    ),
    _case(
        "HRKV",
        (_Q, "objects_of_qualified", "the objects of the facts F(R)[H] whose qualifier K is V"),
        (_P, "objects_of_having", "the objects of F(R)[H] that themselves have F(K)[V]"),
    ),
    _case(
        "HTKV",
        (_Q, "predicates_between_qualified", "the predicates of facts between H and T whose qualifier K is V"),
        (_P, "predicates_between_having", "the predicates between those of H that have F(K)[V], and T"),
    ),
    _case(
        "RTKV",
        (_Q, "subjects_with_qualified", "the subjects of the facts F(R)[T] whose qualifier K is V"),
        (_P, "subjects_and_k", "the subjects of F(R)[T] that are subjects of F(K)[V]"),
    ),
    _case(
        "HRTKV",
        (_Q, "holds_qualified", "whether F(R)[H][T] is there with qualifier K equal to V"),
        (_P, "holds_and_k", "whether one of H has F(R)[T] and F(K)[V]"),
    ),
)

CASES: Final[Mapping[str, Case]] = MappingProxyType({case.given: case for case in _TABLE})


def subsets() -> Iterator[str]:
    """All 32 subsets of the parameters, as letters in the order H R T K V."""
    for size in range(len(PARAMETERS) + 1):
        for chosen in combinations(PARAMETERS, size):
            yield "".join(chosen)


def choose(given: str, *, qualifier: bool, constant: bool) -> Choice:
    """The choice that applies to a subset, when K is a qualifier (or not), and H is one constant
    (or a set).

    >>> choose("RTK", qualifier=False, constant=False).rule
    'objects_k_of_subjects'
    """
    holds = {
        When.ALWAYS: True,
        When.QUALIFIER: qualifier,
        When.PREDICATE: not qualifier,
        When.CONSTANT: constant,
        When.SET: not constant,
    }
    return next(choice for choice in CASES[given].choices if holds[choice.when])


def markdown() -> str:
    """The table as Markdown, a row a choice."""
    lines = ["| given | when | meaning | rule |", "|---|---|---|---|"]
    for given in subsets():
        case = CASES[given]
        for choice in case.choices:
            when = "" if choice.when is When.ALWAYS else choice.when.value
            meaning = choice.meaning if choice.rule is not None else f"error: {choice.meaning}"
            lines.append(f"| {case.name} | {when} | {meaning} | {f'`{choice.rule}`' if choice.rule else ''} |")
    return "\n".join(lines) + "\n"
