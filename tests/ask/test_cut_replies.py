"""The first complete program of a reply, whatever the model wrote after it."""

from __future__ import annotations

import pytest

import condgraph
from condgraph.ask.programs import first_program
from condgraph.engine.facts import Ref, Statement
from condgraph.graph import Graph
from condgraph.models.chat import ChatRequest, Completion, Completions

INDIA = "Step1: Find the capital of India\nQuery1: \"get_information(relation='capital', head_entity='India')\""
NEPAL = INDIA.replace("India", "Nepal")
TWO = INDIA + "\nStep2: Find where it lies\nQuery2: \"get_information(relation='in', head_entity='output_of_query1')\""
FIND = "Find(India) Relate(capital, forward) QueryName()"
PATTERN = '{"triples": [["India", "capital", "UNKNOWN city 1"]]}'


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(
    ("reply", "via", "program"),
    [
        (f"{INDIA}\n\nQuestion: What is the capital of Nepal?\nProgram:\n{NEPAL}", "query", INDIA),
        (f"{FIND}\n{FIND.replace('India', 'Nepal')}\nFind(Bhutan) Rel", "kopl", FIND),
        (f"{FIND}\n\nThis finds the capital. Question: What is", "kopl", FIND),
        (f"{PATTERN}\n\nQuestion: and Nepal?\n{PATTERN.replace('India', 'Nepal')}", "pattern", PATTERN),
    ],
)
def test_the_first_program_counts(reply: str, via: str, program: str, cut: bool) -> None:
    found = first_program(reply, via, cut=cut)
    assert found is not None
    assert found.program == program
    assert cut is False or found.ignored == len(reply.rstrip()) - len(program) or via == "kopl"


@pytest.mark.parametrize(
    ("reply", "via", "program", "several"),
    [
        (f"```\n{FIND}\n```\nor\n```\n{FIND.replace('India', 'Nepal')}\n```", "kopl", FIND, True),
        (f"First:\n```\n{INDIA}\n```\nthen\n```\n{NEPAL}\n```\nDone.", "query", INDIA, True),
        (f"Here:\n```\n{FIND}\n```\nIt finds the capital (of India).", "kopl", FIND, False),
        (f"```\n{INDIA}\n```\nThe same again:\n```\n{INDIA}\n```", "query", INDIA, False),
        (f"Here:\n```json\n{PATTERN}\n```\nIt asks for the capital.", "pattern", PATTERN, False),
    ],
)
def test_a_reply_with_several_programs(reply: str, via: str, program: str, several: bool) -> None:
    found = first_program(reply, via)
    assert found is not None
    assert (found.program, found.several) == (program, several)


@pytest.mark.parametrize(
    ("reply", "via", "program"),
    [
        # The model had gone on to words, to the same query, or to the first step again.
        (f"{TWO}\nThis program finds", "query", TWO),
        (f"{TWO}\n" + TWO.splitlines()[-1].replace("Query2", "Query3") + '\nQuery4: "get_inf', "query", TWO),
        (f"{INDIA}\nStep1: Find the cap", "query", INDIA),
        (TWO, "query", TWO),
        # What was cut off within a program is none.
        (TWO[:-12], "query", None),
        (f"{INDIA}\nStep2: Find where", "query", None),
        ("Find(India) Relate(capital, forward)", "kopl", None),
        ("Find(India) QueryAttr(area) Verif", "kopl", None),
        ("Find(India) QueryAttr(area)", "kopl", None),
        ("Find(India) QueryAttr(area) VerifyNum(3 km, >) Find(Ne", "kopl", "Find(India) QueryAttr(area) VerifyNum(3 km, >)"),
        (PATTERN[:-3], "pattern", None),
    ],
)
def test_a_reply_that_was_cut_off(reply: str, via: str, program: str | None) -> None:
    found = first_program(reply, via, cut=True)
    assert (None if found is None else found.program) == program


class Runaway:
    """A model that writes on until its tokens are spent."""

    name, accepts = "runaway", frozenset({"stop"})

    def __init__(self, *texts: str) -> None:
        self.texts, self.asked = list(texts), list[ChatRequest]()

    def chat(self, messages: object, **options: object) -> Completions:
        self.asked.append(ChatRequest(messages, **options))  # type: ignore[arg-type]
        return Completions((Completion(self.texts.pop(0), "length"),))

    def count(self, text: str) -> int | None:
        return None


@pytest.fixture(scope="module")
def graph() -> Graph:
    made = condgraph.open()
    made.add([Statement("India", "capital", Ref("New Delhi")), Statement("Nepal", "capital", Ref("Kathmandu"))])
    return made


def test_a_small_model_that_does_not_end_is_answered(graph: Graph) -> None:
    model = Runaway(f"{INDIA}\n\nQuestion: What is the capital of Nepal?\nProgram:\n{NEPAL}\n\nQuestion: What")
    found = graph.ask("What is the capital of India?", model, via="query")
    assert (found.status, found.texts, found.calls) == ("answered", ["New Delhi"], 1)
    assert any("characters after the program are ignored" in note for note in found.attempts[0].notes)
    assert model.asked[0].stop == ("\nQuestion:",)


@pytest.mark.parametrize("begins", ["<think>\n", ""])
def test_thoughts_are_no_program(graph: Graph, begins: str) -> None:
    model = Runaway(f"<think>Maybe {NEPAL}", f"{begins}Maybe {NEPAL}\n</think>\n\n{INDIA}")
    found = graph.ask("What is the capital of India?", model, via="query")
    assert (found.status, found.texts) == ("answered", ["New Delhi"])
    assert found.attempts[0].error == "the model was cut off while it was thinking"
    first, second = (asked.max_tokens or 0 for asked in model.asked)
    assert second == 4 * first


def test_a_program_that_was_cut_off_gets_more_tokens(graph: Graph) -> None:
    model = Runaway(INDIA[:-10], INDIA)
    found = graph.ask("What is the capital of India?", model, via="query")
    assert (found.status, found.texts) == ("answered", ["New Delhi"])
    first, second = (asked.max_tokens or 0 for asked in model.asked)
    assert second == 2 * first
