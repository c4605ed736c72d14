"""Predicates that a graph does not have: an error with candidates in every language, unless a name differs in how it is
written alone; and the nearest on request, as a substitution.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import UnknownNameError
from condgraph.engine.facts import Ref, Statement
from condgraph.evaluate import Case, evaluate_ask
from condgraph.graph import Graph
from condgraph.names.words import Forms, inflected
from tests.support.lanes import by_lane

PEOPLE = [
    Statement("Ann", "date of birth", "1917"),
    Statement("Ann", "place of birth", Ref("Bonn")),
    Statement("Acme", "founded", "1901"),
    Statement("Acme", "founded by", Ref("Ann")),
    Statement("Ann", "award received", Ref("Prize")),
    Statement("Bob", "award received", Ref("Prize")),
]


@pytest.fixture(scope="module")
def people() -> Graph:
    graph = condgraph.open()
    graph.add(PEOPLE)
    return graph


def llm(relation: str, head: str) -> str:
    return f"Query1: \"get_information(relation='{relation}', head_entity='{head}')\""


def asked(name: str, head: str) -> list[tuple[str, dict[str, Any]]]:
    """A name of a predicate in every language."""
    return [
        (llm(name, head), {}),
        (f"Find({head}) QueryAttr({name})", {}),
        (f"Find({head}) Relate({name}, forward) QueryName()", {}),
        (f'?x : {json.dumps(name)}("{head}", ?x)', {}),
        (f"Find({head})", {"table": f'show "{name}"'}),
    ]


@pytest.mark.parametrize(
    ("name", "head", "near"),
    [
        ("date of death", "Ann", "date of birth"),
        ("founder", "Acme", "founded by"),
        ("birth date", "Ann", "date of birth"),
        ("award", "Ann", "award received"),
    ],
)
def test_another_relation_is_an_error_with_candidates(people: Graph, name: str, head: str, near: str) -> None:
    listed = []
    for program, options in asked(name, head):
        with pytest.raises(UnknownNameError) as raised:
            people.query(program, **options).values  # noqa: B018
        assert raised.value.name == name
        listed += raised.value.candidates
    assert near in listed


@pytest.mark.parametrize("name", ["award_received", "awardReceived", "Awards received", "AWARD  RECEIVED", "award receives"])
def test_a_name_that_is_written_otherwise_is_read_with_a_warning(people: Graph, name: str) -> None:
    answers = [people.query(llm(name, "Ann")), people.query(f"Find(Ann) Relate({name}, forward) QueryName()")]
    answers.append(people.query(f'?x : {json.dumps(name)}("Ann", ?x)'))
    for answer in answers:
        assert answer.texts == ["Prize"]
        assert not answer.doubtful
        assert any("is read as 'award received'" in warning for warning in answer.warnings)
    table = people.query("Find(Ann)", table=f'show "{name}"')
    assert table.cells == [("Prize",)]
    assert people.logic(f'?x : {json.dumps(name)}("Ann", ?x)').texts == ["Prize"]
    assert people.verify([("Ann", name, "Prize")]).status == "supported"


def test_the_nearest_on_request_is_a_doubtful_answer(people: Graph) -> None:
    programs = [llm("date of death", "Ann"), "Find(Ann) QueryAttr(date of death)"]
    answers = [people.query(program, on_unknown="nearest") for program in programs]
    assert "place of birth" in answers[0].substitutions[0].others
    for answer in answers:
        assert answer.texts == ["1917"]
        assert answer.doubtful
        assert answer.substitutions[0].used == ("date of birth",)
        assert "doubtful: " in str(answer)
        assert any("'date of death' is not in the graph and is read as 'date of birth'" in item for item in answer.warnings)


def test_a_model_is_told_the_candidates_and_asked_again(people: Graph) -> None:
    seen: list[str] = []

    def model(messages: list[dict[str, str]]) -> str:
        seen.append(messages[-1]["content"])
        return llm("date of death" if len(seen) == 1 else "date of birth", "Ann")

    found = people.ask("When was Ann born?", model, via="query")
    assert (found.status, found.texts) == ("answered", ["1917"])
    assert "date of birth" in seen[1]
    once = people.ask("When did Ann die?", lambda _: llm("date of death", "Ann"), via="query")
    assert (once.status, once.answer) == ("failed", None)
    near = people.ask("When did Ann die?", lambda _: llm("date of death", "Ann"), via="query", on_unknown="nearest")
    assert (near.status, near.texts) == ("doubtful", ["1917"])
    assert near.text.startswith("Doubtful: relation 'date of death' is not in the graph")


def test_an_answer_by_substitution_is_wrong_in_an_evaluation(people: Graph) -> None:
    case = Case("When did Ann die?", ("1917",))
    for option, right in (("error", False), ("nearest", False)):
        report = evaluate_ask(people, [case], lambda _: llm("date of death", "Ann"), via="query", on_unknown=option)
        assert report.rows[0].right.denotation is right
    report = evaluate_ask(people, [case], lambda _: llm("dates of birth", "Ann"), via="query")
    assert report.rows[0].right.denotation


def test_words_that_are_no_inflections() -> None:
    for one, other in (("founder", "founded"), ("cast", "caste"), ("plan", "plane"), ("new", "news" * 2), ("building", "build")):
        assert not inflected(one, other)
    forms = Forms(["C++", "C", "% of votes", "score (home)", "score (away)"])
    assert forms.same("c#") == []
    assert forms.same("of votes") == []
    assert forms.same("score home") == ["score (home)"]
    assert forms.same("x" * 10**6) == []


# -- over the oracle's graph -------------------------------------------------------------------------


def named(program: list[dict[str, Any]]) -> Iterator[tuple[int, int, str]]:
    """Where a program names predicates: step, input, name."""
    places = {
        "Relate": (0,), "FilterStr": (0,), "FilterNum": (0,), "FilterYear": (0,), "FilterDate": (0,), "QueryAttr": (0,),
        "SelectBetween": (0,), "SelectAmong": (0,), "QueryAttrUnderCondition": (0, 1), "QueryAttrQualifier": (0, 2),
        "QueryRelationQualifier": (0, 1), "QFilterStr": (0,), "QFilterNum": (0,), "QFilterYear": (0,), "QFilterDate": (0,),
    }  # fmt: skip
    for at, step in enumerate(program):
        for place in places.get(step["function"], ()):
            yield at, place, step["inputs"][place]


def without(kb: dict[str, Any], gone: set[str]) -> dict[str, Any]:
    """A knowledge base without some predicates, as statements and as qualifiers."""
    entities = {}
    for ident, entity in kb["entities"].items():
        kept = dict(entity)
        for part, key in (("relations", "relation"), ("attributes", "key")):
            kept[part] = [
                {**one, "qualifiers": {name: value for name, value in one.get("qualifiers", {}).items() if name not in gone}}
                for one in entity.get(part, [])
                if one[key] not in gone
            ]
        entities[ident] = kept
    return {"concepts": kb["concepts"], "entities": entities}


def test_no_program_with_a_relation_that_is_gone_is_answered(oracle: Path, tmp_path: Path) -> None:
    kb = json.loads((oracle / "kb_small.json").read_text("utf-8"))
    programs = [json.loads(line)["program"] for line in (oracle / "programs_small.jsonl").read_text("utf-8").splitlines()]
    every = sorted({name for program in programs for _, _, name in named(program)})
    groups = by_lane(3, 6, 12)
    tried = 0
    for group in range(groups):
        gone = set(every[group::groups])
        # A name of which another is an inflection is that one: "use" and "uses".
        left = Forms(set(every) - gone)
        gone = {name for name in gone if not left.same(name)}
        place = tmp_path / f"{group}.json"
        place.write_text(json.dumps(without(kb, gone)), "utf-8")
        graph = condgraph.open()
        graph.load(place)
        for program in programs[:: by_lane(4, 2, 1)]:
            names = [name for _, _, name in named(program) if name in gone]
            if not names:
                continue
            heads = [step["inputs"][0] for step in program if step["function"] == "Find"][:1] or ["x"]
            for text in (program, llm(names[0].replace("'", "\\'"), heads[0]), f"?x : exists ?v. {json.dumps(names[0])}(?v, ?x)"):
                tried += 1
                with pytest.raises(UnknownNameError) as raised:
                    graph.query(text).values  # noqa: B018
                assert raised.value.name in {*gone, heads[0]}
    assert tried >= 500


def otherwise(name: str, rng: random.Random) -> str:
    """A name as somebody else would write it: other case, separators, plural or tense."""
    words = name.split(" ")
    at = rng.choice([number for number, word in enumerate(words) if re.fullmatch(r"[a-z]{4,}", word)] or [-1])
    ways = ["_".join(words), "-".join(words), name.upper(), name.title(), "  ".join(words)]
    ways.append(words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:]))
    if at >= 0:
        word = words[at]
        other = word[:-1] if word.endswith("s") and not word.endswith("ss") else word + "s"
        if word.endswith("ed"):
            other = word[:-1] + "s" if rng.random() < 0.5 else word[:-2] + "ing"
        elif word.endswith("y") and word[-2] not in "aeiou":
            other = word[:-1] + "ies"
        elif word.endswith(("s", "x", "ch", "sh")):
            other = word + "es"
        ways += [" ".join([*words[:at], other, *words[at + 1 :]])] * 3
    return rng.choice(ways)


def test_every_program_with_names_written_otherwise_is_answered(oracle: Path) -> None:
    graph = condgraph.open()
    graph.load(oracle / "kb_small.json")
    schema = graph.current.schema
    known = {*schema.relations, *schema.attributes, *schema.qualifiers}
    programs = [json.loads(line)["program"] for line in (oracle / "programs_small.jsonl").read_text("utf-8").splitlines()]
    rng = random.Random(5)
    tried = 0
    for program in rng.sample(programs, by_lane(500, 800, 1000)):
        changed: list[dict[str, Any]] = [dict(step, inputs=list(step["inputs"])) for step in program]
        for at, place, name in named(program):
            written = otherwise(name, rng)
            # What is the name of another predicate is that one.
            if written not in known:
                changed[at]["inputs"][place] = written
                tried += 1
        found = graph.query(changed)
        assert found.texts == graph.query(program).texts, changed
        assert not found.doubtful
    assert tried >= 500
