"""The form rules, and whole questions as they read."""

from __future__ import annotations

import pytest

from condgraph.engine.values import Quantity, Time
from condgraph.questions import forms
from condgraph.questions.description import Ask, Description, Literal, RelationCondition, Restriction
from condgraph.questions.locate import is_code
from condgraph.questions.words import Words, moment, number

ANN, OSLO = Description("Ann"), Description("Oslo")


def film(*conditions: Literal | RelationCondition, concept: str | None = "film") -> Description:
    return Description(None, concept, conditions)


def words() -> Words:
    return Words(lambda predicate: predicate in ("genre", "cast member", "starred_actors"))


@pytest.mark.parametrize(
    ("predicate", "outward", "inward"),
    [
        ("place of birth", "the person whose place of birth is Oslo", "the place of birth of Ann"),
        ("PLACE_OF_BIRTH", "the person whose place of birth is Oslo", "the place of birth of Ann"),
        ("placeOfBirth", "the person whose place of birth is Oslo", "the place of birth of Ann"),
        ("directed by", "the one that was directed by Oslo", "the person who directed Ann"),
        ("BORN_IN", "the person who was born in Oslo", "the one that Ann was born in"),
        ("languages spoken, written, or signed", "the one whose languages spoken, written, or signed include Oslo",
         "the one that is a language spoken, written, or signed of Ann"),
        ("directed_by", "the one that was directed by Oslo", "the person who directed Ann"),
        ("DIRECTED", "the person who directed Oslo", "the one that Ann directed"),
        ("ACTED_IN", "the person who acted in Oslo", "the one that Ann acted in"),
        ("educated at", "the person who was educated at Oslo", "the one that Ann was educated at"),
        ("shares border with", "the one that shares a border with Oslo", "the one that Ann shares a border with"),
        ("starred_actors", "the one that starred Oslo", "the person who acted in Ann"),
        ("award received", "the one that received the award Oslo", "the one that Ann received"),
        ("position held", "the person who held the position Oslo", "the one that Ann held"),
        ("capital of", "the one that is the capital of Oslo", "the one that Ann is the capital of"),
        ("part of", "the one that is part of Oslo", "the one that Ann is part of"),
        ("member of sports team", "the one that is a member of the sports team Oslo", "the one that Ann is a member of"),
        ("cast member", "the one whose cast members include Oslo", "the person who is a cast member of Ann"),
        ("has_genre", "the one whose genre is Oslo", "the genre of Ann"),
        ("located next to body of water", "the one that is located next to the body of water Oslo",
         "the one that Ann is located next to"),
        ("said to be the same as", "the one that is said to be the same as Oslo", "the one that Ann is said to be the same as"),
        ("studied by", "the one that was studied by Oslo", "the one that studied Ann"),
    ],
)  # fmt: skip
def test_relations(predicate: str, outward: str, inward: str) -> None:
    from condgraph.questions.words import dressed

    assert words().described(dressed(film(RelationCondition(predicate, True, OSLO), concept=None))) == outward
    assert words().described(dressed(film(RelationCondition(predicate, False, ANN), concept=None))) == inward


@pytest.mark.parametrize(
    ("key", "op", "value", "said"),
    [
        ("dob", "=", Time.year(1960), "the person who was born in 1960"),
        ("dateOfBirth", "<", Time.day(1960, 2, 1), "the person who was born before 1 February 1960"),
        ("date founded", ">", Time.year(1949), "the one that was founded after 1949"),
        ("founded", "!=", Time.year(1949), "the one that was not founded in 1949"),
        ("date of death", "=", Time.month(1960, 2), "the person who died in February 1960"),
        ("population", ">", Quantity(1_000_000), "the one whose population is more than 1,000,000"),
        ("area", "=", Quantity(282, "square kilometre"), "the one whose area is 282 square kilometres"),
        ("postal_code", "=", Quantity(12345), "the one whose postal code is 12345"),
        ("also known as", "=", "Big Sue", "the one also known as “Big Sue”"),
        ("genre", "=", "drama", "the one whose genre is “drama”"),
        ("isManager", "=", "yes", "the one whose “is manager” is “yes”"),
        ("works for", "=", "Acme", "the one whose “works for” is “Acme”"),
        ("From", "=", Quantity(1982), "the one whose “From” is 1982"),
    ],
)
def test_attributes(key: str, op: str, value: Time | Quantity | str, said: str) -> None:
    from condgraph.questions.words import dressed

    assert words().described(dressed(film(Literal(key, op, value), concept=None))) == said


BY_ANN = RelationCondition("directed by", True, ANN)
THEN, SINCE = Restriction("point in time", "=", Time.year(2003)), Restriction("start time", "=", Time.year(1990))
UNTIL = Restriction("end time", "=", Time.year(1999))
IN_OSLO = film(RelationCondition("place of birth", True, OSLO), concept="human")


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (Ask("QueryName", film(BY_ANN)), "Which film was directed by Ann?"),
        (Ask("QueryName", film(RelationCondition("directed by", True, IN_OSLO))),
         "Which film was directed by the person whose place of birth is Oslo?"),
        (Ask("QueryName", IN_OSLO), "Who is the person whose place of birth is Oslo?"),
        (Ask("QueryName", film(RelationCondition("language", False, ANN), concept=None)), "What is the language of Ann?"),
        (Ask("Count", film(BY_ANN)), "How many films are there that were directed by Ann?"),
        (Ask("Count", IN_OSLO), "How many people are there whose place of birth is Oslo?"),
        (Ask("Count", film(RelationCondition("genre", True, OSLO), Literal("year", "=", Quantity(3)))),
         "How many films are there whose genres include Oslo and whose year is 3?"),
        (Ask("QueryAttribute", OSLO, key="population", value=Quantity(3), qualifier=THEN),
         "What was the population of Oslo in 2003?"),
        (Ask("QueryAttribute", OSLO, key="date founded", value=Time.year(1040)), "When was Oslo founded?"),
        (Ask("QueryAttribute", ANN, key="date of death", value=Time.year(1040)), "When did Ann die?"),
        (Ask("Relation", ANN, OSLO), "What is the relation from Ann to Oslo?"),
        (Ask("SelectAmong", film(BY_ANN), key="founded", value=Time.year(3), op="largest"),
         "Which of the films that were directed by Ann was founded last?"),
        (Ask("SelectAmong", film(BY_ANN), key="population", value=Quantity(3), op="smallest"),
         "Which of the films that were directed by Ann has the smallest population?"),
        (Ask("SelectBetween", ANN, OSLO, key="height", value=Quantity(3), op="greater"),
         "Which has the greater height, Ann or Oslo?"),
        (Ask("SelectBetween", ANN, OSLO, key="founded", value=Time.year(3), op="less"), "Which was founded earlier, Ann or Oslo?"),
        (Ask("Verify", ANN, key="height", value=Quantity(2, "metre"), op="<"), "Is the height of Ann less than 2 metres?"),
        (Ask("Verify", ANN, key="date of birth", value=Time.year(1960), op=">"), "Was Ann born after 1960?"),
        (Ask("QualifierLiteral", OSLO, key="population", value=Quantity(199_110), qkey="point in time"),
         "The population of Oslo is 199,110; when was that?"),
        (Ask("QualifierRelational", ANN, OSLO, key="educated at", qkey="start time"), "Ann was educated at Oslo; since when?"),
        (Ask("QualifierRelational", ANN, OSLO, key="award received", qkey="for work"),
         "Ann received the award Oslo; for which work was that?"),
        (Ask("QueryName", film(RelationCondition("educated at", True, OSLO, (SINCE,)), concept="human")),
         "Who was educated at Oslo from 1990 on?"),
        (Ask("QueryName", film(RelationCondition("position held", True, OSLO, (SINCE, UNTIL)), concept="human")),
         "Who held the position Oslo from 1990 until 1999?"),
        (Ask("Count", film(RelationCondition("genre", False, ANN), concept=None)), "How many genres does Ann have?"),
        (Ask("Count", film(RelationCondition("sister city", False, ANN), Literal("area", ">", Quantity(3)), concept="city")),
         "How many cities are there that are sister cities of Ann and whose area is more than 3?"),
        (Ask("QueryName", film(RelationCondition("17", True, OSLO), Literal("description", "=", "a b"), concept="city")),
         "Which city is in relation 17 to Oslo and is described as “a b”?"),
        (Ask("QueryName", film(RelationCondition("17", True, OSLO), concept=None)), "What is in relation 17 to Oslo?"),
        (Ask("QueryName", film(RelationCondition("P54", False, OSLO), concept=None)),
         "What is the one that Oslo is in relation P54 to?"),
        (Ask("QueryAttribute", ANN, key="also known as", value="A"), "What is Ann also known as?"),
        (Ask("QueryAttribute", ANN, key="description", value="A"), "How is Ann described?"),
        (Ask("QueryAttribute", ANN, key="Disappeared", value=Time.year(1990)), "When did Ann disappear?"),
        (Ask("Verify", ANN, key="singles titles", value=Quantity(6), op=">"),
         "Is the number of singles titles of Ann more than 6?"),
        (Ask("Verify", ANN, key="annual sales", value=Quantity(6, "$"), op=">"), "Are the annual sales of Ann more than 6 $?"),
        (Ask("SelectBetween", ANN, OSLO, key="unitsInStock", value=Quantity(3), op="greater"),
         "Which has the larger number of units in stock, Ann or Oslo?"),
        (Ask("QualifierLiteral", OSLO, key="date founded", value=Time.year(1040), qkey="month of the year"),
         "Oslo was founded in 1040; in which month was that?"),
        (Ask("QualifierRelational", ANN, OSLO, key="educated at", qkey="approved by"),
         "Ann was educated at Oslo; approved by whom or what?"),
    ],
)  # fmt: skip
def test_questions(ask: Ask, said: str) -> None:
    assert words().question(ask) == said


def test_values() -> None:
    assert [number(Quantity(n, "foot")) for n in (1, 2)] == ["1 foot", "2 feet"]
    assert number(Quantity(1234.5, "metre per second")) == "1234.5 metres per second"
    assert moment(Time.year(-43)) == "44 BC"
    many = ["boxes", "bodies of water", "series", "policemen"]
    assert [forms.plural(one) for one in ("box", "body of water", "series", "policeman")] == many


@pytest.mark.parametrize("key", ["No", "NO", "No.", "Sr. No.", "Employee #", "Car-No", "EmployeeID", "zip_code", "Pos No"])
def test_numbers_that_name_something(key: str) -> None:
    """Nobody adds them up, or asks for the largest."""
    assert is_code(key, Quantity(3))


@pytest.mark.parametrize("key", ["Notes", "Height", "units in stock", "Total", "Casino", "PIANO"])
def test_numbers_that_do_not(key: str) -> None:
    assert not is_code(key, Quantity(3))


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((RelationCondition("plays_for_country", False, ANN),), "Which country does Ann play for?"),
        ((RelationCondition("plays_for_country_inverse", True, ANN),), "Which country does Ann play for?"),
        ((RelationCondition("wears_number", False, ANN),), "Which number does Ann wear?"),
        ((RelationCondition("is_in_country", False, Description("Ajax")),), "Which country is Ajax in?"),
        ((RelationCondition("plays_for_country", True, Description("Peru")),), "Who plays for Peru?"),
        ((RelationCondition("wears_number", True, film(RelationCondition("is_aged", False, ANN), concept=None)),),
         "Who wears the number that is the age of Ann?"),
    ],
)  # fmt: skip
def test_predicates_that_are_verb_phrases_are_said_as_verbs(conditions: tuple[RelationCondition, ...], expected: str) -> None:
    assert words().question(Ask("QueryName", Description(conditions=conditions))) == expected


def test_counts_say_verb_phrases_as_verbs() -> None:
    said = Words(lambda predicate: False, subjects=lambda predicate: "club" if predicate == "is_in_country" else "")
    assert (
        said.question(Ask("Count", film(RelationCondition("is_in_country", True, OSLO), concept=None)))
        == "How many clubs are in Oslo?"
    )
    ask = Ask("Count", film(RelationCondition("plays_position", True, Description("Forward")), concept=None))
    assert said.question(ask) == "How many people play the position Forward?"
