"""Answers that do not fit their questions, and drafts in which names of the graph take the place of unknown ones."""

from __future__ import annotations

import pytest

import condgraph
from condgraph.ask.judge import wanted
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph
from condgraph.models.chat import Completion
from tests.ask.asking import Scripted, countries
from tests.ask.test_ask import Sampling

CAPITAL = "Find(India) Relate(capital, forward) QueryName()"
HEADS = "Query1: \"get_information(relation='head of government', head_entity='India')\""
HIGH = "Query1: \"get_information(relation='height', head_entity='Annapurna I')\""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return countries()


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When was she born?", "time"), ("and in which year did it end?", "time"), ("How many are there?", "number"),
        ("How many more wins than losses?", None), ("Who is it?", "person"),
        ("Where is it?", "place"), ("How tall is it?", "measure"),
        ("Name them when they are open.", None), ("Whose is it?", None), ("Is it high?", None),
    ],
)  # fmt: skip
def test_what_a_question_asks_for(question: str, kind: str | None) -> None:
    assert wanted(question) == kind


@pytest.mark.parametrize(
    ("question", "program", "doubt"),
    [
        ("How high is Annapurna I?", HIGH, ""),
        ("When was Annapurna I first climbed?", HIGH, "the question asks when, and the program gives a number with a unit"),
        ("Who climbed Annapurna I?", HIGH, "the question asks who, and the program gives a number"),
        ("How high is Annapurna I?", HIGH + '\nQuery2: "count(set=\'output_of_query1\')"', "gives a count"),
        ("How many capitals has India?", CAPITAL, "the question asks how many, and the program gives names"),
        ("What is the capital of Nepal?", CAPITAL, "the answer does not depend on 'Nepal', which the question names"),
        # A name in a query that the answer does not need is not in the answer.
        (
            "Which mountains are in Italy?",
            "Query1: \"get_information(relation='country', tail_entity='Italy')\"\n"
            "Query2: \"get_information(relation='country', tail_entity='Nepal')\"",
            "the answer does not depend on 'Italy'",
        ),
        ("Which capital is it?", CAPITAL, ""),
        # What the model knows beside the graph, the user has to know.
        ("what is the capital of the country of the ganges?", CAPITAL, "looks for 'India', which the question does not name"),
        ("what is the capital of indian people?", CAPITAL, ""),
        ("Wie heißt die Hauptstadt am Ganges?", CAPITAL, ""),
        (
            "What is the capital of India?", CAPITAL.replace("capital", "continent"),
            "the question speaks of 'capital', and the program has 'continent' in its place",
        ),
        ("What are the capitals of India?", CAPITAL.replace("QueryName", "Count"), "the question does not ask for a number"),
        ("What is the number of capitals of India?", CAPITAL.replace("QueryName", "Count"), ""),
        (
            "Which mountains are higher than 8,091 m?", "Query1: \"get_information(relation='height', tail_entity='8091 m')\"",
            "looks for '8,091' itself, and the question for what is 'than 8,091'",
        ),
        ("Which mountains are higher than 8000 m?", "Query1: \"get_information(relation='height', tail_entity>'8000 m')\"", ""),
        ("India is in what?", "Find(India) QueryAttr(driving side) VerifyStr(left)", "more than yes or no"),
        (
            "How many capitals are in Kathmandu?", "Find(Kathmandu) Relate(capital, forward) Relate(capital, forward) Count()",
            "the program counts an empty set",
        ),
        ("How many capitals has Kathmandu?", "Find(Kathmandu) Relate(capital, forward) Count()", ""),
        ("Is India's capital New Delhi?", "Find(India) Relate(capital, forward) QueryName()", ""),
        ("Who headed India's government in 1984?", HEADS, "asks about 1984, and the program looks at no time: its answer rests on"),
        ("Wer regierte 1984 in India?", "Step1: Find who did in 1984\n" + HEADS, "asks about 1984"),
        ("Who is the current head of government of India?", HEADS, "the question asks what is 'current', and"),
        ("Who was head of government of India, in no year?", HEADS, ""),
        ("Who headed India in 1984?", HEADS.replace("India')", "India', key='time', value='1984')"), ""),
        ("Who is the oldest of all?", 'Query1: "Ann"', "states the answer itself, and reads nothing of the graph"),
        ("Who is the oldest of all?", "RETURN 'Ann' AS name", "states the answer itself, and reads nothing of the graph"),
    ],
)  # fmt: skip
def test_an_answer_that_does_not_fit_is_doubtful(graph: Graph, question: str, program: str, doubt: str) -> None:
    """The model is told why, and where it insists the outcome says so."""
    model = Scripted(program)
    via = "kopl" if program.startswith("Find") else "cypher" if program.startswith("RETURN") else "query"
    found = graph.ask(question, model, via=via)
    assert found.answer is not None
    if not doubt:
        assert (found.status, len(model.seen), found.attempts[0].doubts) == ("answered", 1, ())
        return
    assert (found.status, len(model.seen)) == ("doubtful", 2)
    assert doubt in found.text.splitlines()[0]
    assert any(doubt in warning for warning in found.warnings)
    assert doubt in model.seen[1][-1]["content"]


def test_a_program_is_corrected_after_a_doubt(graph: Graph) -> None:
    found = graph.ask("What is the capital of Nepal?", Scripted(CAPITAL, CAPITAL.replace("India", "Nepal")), via="kopl")
    assert (found.status, found.texts) == ("answered", ["Kathmandu"])
    assert [attempt.doubts != () for attempt in found.attempts] == [True, False]


def test_what_fits_is_voted_for(graph: Graph) -> None:
    """Two samples agree on what the question does not ask for; one fits it."""
    texts = (CAPITAL, CAPITAL, CAPITAL.replace("India", "Nepal"))
    found = graph.ask("What is the capital of Nepal?", Sampling([Completion(text) for text in texts]), samples=3, via="kopl")
    assert (found.status, found.texts) == ("answered", ["Kathmandu"])
    assert [vote.count for vote in found.votes] == [2, 1]


@pytest.mark.parametrize(
    ("via", "wrong", "right"),
    [
        ("kopl", "Find(India) Relate(capitol, forward) QueryName()", "Find(India) Relate(capital, forward) QueryName()"),
        ("kopl", "Find(Indai) Relate(capital, forward) QueryName()", "Find(India) Relate(capital, forward) QueryName()"),
        (
            "query",
            "Query1: \"get_information(relation='capitol', head_entity='India')\"",
            "Query1: \"get_information(relation='capital', head_entity='India')\"",
        ),
        ("cypher", "MATCH ({name: 'India'})-[:capitol]->(c) RETURN c", "MATCH ({name: 'India'})-[:capital]->(c) RETURN c"),
    ],
)  # fmt: skip
def test_the_nearest_that_works(graph: Graph, via: str, wrong: str, right: str) -> None:
    """The model is told what a program gives with the nearest names, and the user where the model does not correct it."""
    model = Scripted(wrong)
    found = graph.ask("What is the capital of India?", model, via=via)  # type: ignore[arg-type]
    assert found.status == "failed"
    draft = found.attempts[0].drafts[0]
    assert (draft.program, draft.texts, draft.doubts) == (right, ("New Delhi",), ())
    assert f'With "{draft.name}" in its place the program gives "New Delhi".' in model.seen[1][-1]["content"]
    assert str(draft) in found.warnings


def test_a_draft_that_fits_comes_first(graph: Graph) -> None:
    """'death' is as near to the place as to the date; the question asks when."""
    model = Scripted("Find(Indira Gandhi) QueryAttr(date of brith)")
    found = graph.ask("When was Indira Gandhi born?", model, via="kopl")
    drafts = found.attempts[0].drafts
    assert drafts[0].name == "date of birth"
    assert [bool(draft.doubts) for draft in drafts] == sorted(bool(draft.doubts) for draft in drafts)


def test_how_sure_an_answer_is(graph: Graph) -> None:
    """Most where the predicates of the program are those that the question asks for, least where it does not fit."""
    right, other = (
        graph.ask(question, Scripted(CAPITAL), via="kopl").confidence
        for question in ("What is the capital of India?", "What about India?")
    )
    assert right is not None
    assert other is not None
    assert right > 0.8 > other > 0.1
    assert (graph.ask("When was India founded?", Scripted(CAPITAL), via="kopl").confidence or 1) < 0.05
    assert graph.ask("What is the capital of India?", Scripted("NONE"), via="kopl").confidence is None


def test_texts_that_name_things_are_shown() -> None:
    """A question names a film that is no entity: the attribute that has its title stands before others."""
    made = condgraph.open()
    codes = [Statement(f"m{number}", f"code of kind {number}", f"x{number}") for number in range(300)]
    made.add([*codes, Statement("m1", "title", "Fame")], source="films")
    for question in ('How long is the movie "Fame"?', "How long is Fame?"):
        assert "title" in made.excerpt(question, 300).predicates
    assert "title" not in made.excerpt("What code of kind has m4?", 300).predicates


def test_a_predicate_that_is_a_name_as_well_is_asked_for() -> None:
    """'executive producer' is the job of somebody, too."""
    graph = condgraph.open("memory:")
    films = [("Monster House", "executive producer", "Robert Zemeckis"), ("Monster House", "filming location", "Paris")]
    jobs = [("Robert Zemeckis", "occupation", "executive producer")]
    graph.add(
        [*(Entity(name, name) for name in ("Monster House", "Robert Zemeckis", "Paris", "executive producer"))], source="names"
    )
    graph.add([Statement(one, name, Ref(other)) for one, name, other in films + jobs], source="films")
    program = "Find(Robert Zemeckis) Relate(executive producer, backward) QueryName()"
    question = "What is the film location whose executive producer is Robert Zemeckis?"
    assert graph.ask(question, Scripted(program), via="kopl").status == "answered"
    other = program.replace("executive producer, backward", "occupation, forward")
    assert graph.ask("What is the filming location of Robert Zemeckis?", Scripted(other), via="kopl").status == "doubtful"


HAUPTSTADT = "Find(Nepal) Relate(Hauptstadt, forward) QueryName()"
IN_GERMAN = [
    ("Was ist die Hauptstadt von Nepal?", HAUPTSTADT, ["Kathmandu"]),
    ("Wie viele Berge liegen in Nepal?", "Find(Nepal) Relate(liegt in, backward) Count()", ["2"]),
    ("Was ist die Anzahl der Berge in Nepal?", "Find(Nepal) Relate(liegt in, backward) Count()", ["2"]),
    ("Wann wurde der Manaslu zuerst bestiegen?", "Find(Manaslu) QueryAttr(Erstbesteigung)", ["1956-05-09"]),
    ("Welcher Berg in Nepal ist der höchste?", "Find(Nepal) Relate(liegt in, backward) SelectAmong(Höhe, largest)", ["Manaslu"]),
    ("Liegt der Manaslu in Nepal?", "Find(Manaslu) Relate(liegt in, forward) QueryName()", ["Nepal"]),
    ("Was ist die Hauptstadt von Germany?", "Find(Deutschland) Relate(Hauptstadt, forward) QueryName()", ["Berlin"]),
    ("尼泊尔的首都是什么？", "Find(尼泊尔) Relate(首都, forward) QueryName()", ["加德满都"]),
    ("马纳斯卢峰有多高？", "Find(马纳斯卢峰) QueryAttr(高度)", ["8163 米"]),
    ("尼泊尔有几座山？", "Find(尼泊尔) Relate(位于, backward) Count()", ["1"]),
]


@pytest.fixture(scope="module")
def mountains() -> Graph:
    """A graph in German and Chinese, with a predicate that German questions name for what they look for."""
    graph = condgraph.open()
    rows = "Nepal/Hauptstadt/Kathmandu Deutschland/Hauptstadt/Berlin Manaslu/liegt in/Nepal Annapurna/liegt in/Nepal"
    rows += " Zug/Berg/Manaslu 尼泊尔/首都/加德满都 马纳斯卢峰/位于/尼泊尔"
    links = [row.split("/") for row in rows.replace("liegt in", "liegt_in").split(" ")]
    items = [Statement(a, b.replace("_", " "), Ref(c)) for a, b, c in links]
    items += [Statement("Manaslu", "Höhe", Quantity(8163, "m")), Statement("Annapurna", "Höhe", Quantity(8091, "m"))]
    items += [Statement("Manaslu", "Erstbesteigung", Time.day(1956, 5, 9)), Statement("马纳斯卢峰", "高度", Quantity(8163, "米"))]
    graph.add(items, source="Berge")
    return graph


@pytest.mark.parametrize(("question", "program", "wanted"), IN_GERMAN)
def test_right_answers_in_other_languages_are_not_doubted(mountains: Graph, question: str, program: str, wanted: list[str]) -> None:
    found = mountains.ask(question, Scripted(program), via="kopl", retries=0)
    assert (found.status, found.texts) == ("answered", wanted), found.doubts


def test_programs_about_something_else_are_doubted_in_other_languages(mountains: Graph) -> None:
    found = mountains.ask("Was ist die Hauptstadt von Nepal?", Scripted("Find(Manaslu) QueryAttr(Höhe)"), via="kopl", retries=0)
    assert found.doubts == ("the answer does not depend on 'Nepal', which the question names",)


def test_a_name_of_the_question_is_no_answer_to_it(graph: Graph) -> None:
    def ask(question: str, program: str) -> tuple[str, ...]:
        return graph.ask(question, Scripted(program), via="kopl", retries=0).doubts

    assert ask("What is the capital of Nepal?", "Find(Nepal) QueryName()") == (
        "the program gives 'Nepal' itself, and asks nothing about it",
    )
    assert not ask("Which country is in Asia, Nepal or Peru?", "Find(Nepal) QueryName()")


def test_a_question_for_things_of_a_kind_is_none_for_the_predicate_of_its_name(graph: Graph) -> None:
    """Countries are asked for, which mountains have as a predicate too."""
    found = graph.ask("Which countries are in Asia?", Scripted("Find(Asia) Relate(continent, backward) QueryName()"), via="kopl")
    assert (found.status, found.doubts) == ("answered", ())
