"""Families of relation words: equal to a slow reading of the table (`everyday`), and what the words
of a phrase mean for graphs of several kinds.
"""

from __future__ import annotations

import random

import pytest

import condgraph
from condgraph import Entity, Ref, Statement
from condgraph.patterns import families
from condgraph.patterns.families import TABLE, Names, fits
from tests.search.everyday import fit, told
from tests.support.lanes import by_lane

FILMS = ["directed_by", "written_by", "starred_actors", "release_year", "has_genre", "in_language", "has_tags"]
PEOPLE = ["parents", "children", "spouse", "nationality", "profession", "place_of_birth", "place_of_death", "cause_of_death"]
OTHERS = ["REPORTS_TO", "ShipVia", "employee", "parent organization", "part of", "has part", "acted in", "instance of", "_"]
PHRASES = by_lane(100, 400, 4000)


def test_fits_are_those_of_the_table_read_slowly() -> None:
    dice = random.Random(17)
    parts = [
        part for line in TABLE.splitlines() for item in line.partition(":")[2].split() for part in item.lstrip("?^=").split("+")
    ]
    vocabulary = (
        sorted({part.rstrip("*") for part in parts}) + ["is", "was", "the", "of", "to", "by", "in", "a", "his", "at", "from"] * 40
    )
    names = [FILMS, PEOPLE, OTHERS]
    read = [Names(one) for one in names]
    for _ in range(PHRASES):
        phrase = " ".join(dice.choice(vocabulary) + dice.choice(("", "", "ed", "s")) for _ in range(dice.randint(1, 4)))
        phrase += dice.choice(("", " of", " by", " to"))
        if dice.random() < 0.2:
            phrase = dice.choice(dice.choice(names))
            at = dice.randrange(len(phrase))
            phrase = phrase[:at] + dice.choice("xyz") + phrase[at + dice.randint(0, 1) :]
        assert fits(phrase) == told(phrase), phrase
        for own, one in zip(read, names, strict=True):
            assert own.fits(phrase) == [fit(phrase, name, one) for name in one], (phrase, one)


@pytest.mark.parametrize(
    ("phrase", "names", "meant"),
    [
        ("helmed", FILMS, "directed_by"),
        ("whose screenplay was by", FILMS, "written_by"),
        ("shares the screen in", FILMS, "starred_actors"),
        ("when did it come out", FILMS, "release_year"),
        ("what language is", FILMS, "in_language"),
        ("is a story about", FILMS, "has_tags"),
        ("Directing", FILMS, "directed_by"),
        ("is the father of", PEOPLE, "children"),
        ("father", PEOPLE, "parents"),
        ("was raised by", PEOPLE, "parents"),
        ("raised", PEOPLE, "children"),
        ("passed away in", PEOPLE, "place_of_death"),
        ("passed away from", PEOPLE, "cause_of_death"),
        ("is the parent of", PEOPLE, "children"),
        ("proffession", PEOPLE, "profession"),
        ("whom one reports to", OTHERS, "REPORTS_TO"),
        ("shipped via", OTHERS, "ShipVia"),
    ],
)
def test_words_in_whatever_order(phrase: str, names: list[str], meant: str) -> None:
    fitting = Names(names).fits(phrase)
    assert names[fitting.index(max(fitting))] == meant, dict(zip(names, fitting, strict=True))
    assert fitting.count(max(fitting)) == 1


def test_words_that_many_predicates_have_say_little() -> None:
    names = ["place_of_birth", "place_of_death", "place_of_work"]
    assert max(Names(names).fits("the place was")) < 320
    assert Names(["the", "", "!"]).fits("of the") == [0, 0, 0]


def test_a_phrase_that_no_table_has_finds_the_film() -> None:
    graph = condgraph.open()
    graph.add([Entity("f", "Up"), Entity("d", "Pete"), Entity("w", "Bob"), Entity("a", "Ed")])
    for predicate, other in (("directed_by", "d"), ("written_by", "w"), ("starred_actors", "a")):
        graph.add([Statement("f", predicate, Ref(other))])
    asked = {
        "had Pete's direction": "directed_by",
        "the hand that penned the script": "written_by",
        "a thespian in": "starred_actors",
    }
    for phrase, predicate in asked.items():
        (best,) = graph.match([("Up", phrase, "UNKNOWN 1")], k=1).solutions
        assert best.triples[0][1] == predicate
        assert 60_000 <= best.total < 400_000


def test_words_of_any_length_are_cheap() -> None:
    """Each beginning of a word was kept: 20 GB for a word of 200,000 letters."""
    word = "ss" * 100_000
    assert len(list(families._begun(word))) < 100
    assert families.fits(f"directed {word}") == families.fits("directed")
