"""A model that takes a grammar is held to that of the graph while it is asked: what it is given, and
what becomes of what it writes. The scripted models check each reply by readers of their own, as a
server does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import condgraph
from condgraph.graph import Graph
from condgraph.models.chat import Completion, Completions, Message
from tests.ask.asking import countries
from tests.support.gbnf import Gbnf


@pytest.fixture(scope="module")
def graph() -> Graph:
    return countries()


class Held:
    """A `ChatModel` that is held: of its replies it gives the first that the constraint accepts."""

    name = "held"

    def __init__(self, accepts: Sequence[str], *replies: str) -> None:
        self.accepts, self.replies = frozenset(accepts), replies
        self.asked: list[tuple[Sequence[Message], str | None, Mapping[str, Any] | None]] = []

    def count(self, text: str) -> int | None:
        return None

    def chat(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        grammar: str | None = None,
        n: int = 1,
        **options: Any,
    ) -> Completions:
        self.asked.append((messages, grammar, schema))
        reply = next(one for one in self.replies if self._allowed(one, grammar, schema))
        return Completions((Completion(reply, "stop"),) * n)

    @staticmethod
    def _allowed(reply: str, grammar: str | None, schema: Mapping[str, Any] | None) -> bool:
        if grammar is not None:
            return Gbnf(grammar).accepts(reply)
        return schema is None or (reply.startswith("{") and Draft202012Validator(schema).is_valid(json.loads(reply)))


QUESTION = "What is the capital of Nepal?"
WRONG = ('Find("Nepal") Relate("kapital", "forward") QueryName()', 'Find("Nepall") QueryName()', '{"program": {"QueryName": {}}}')
RIGHT = 'Find("Nepal") Relate("capital", "forward") QueryName()'
FOUND = {"Relate": {"of": {"Find": {"name": "Nepal"}}, "relation": "capital", "direction": "forward"}}
TREE = json.dumps({"program": {"QueryName": {"of": FOUND}}})


@pytest.mark.parametrize(("accepts", "reply"), [(("gbnf", "json-schema"), RIGHT), (("json-schema",), TREE)])
def test_kopl(graph: Graph, accepts: Sequence[str], reply: str) -> None:
    model = Held(accepts, *WRONG, reply)
    found = graph.ask(QUESTION, model, via="kopl")
    assert (found.status, found.texts, found.program) == ("answered", ["Kathmandu"], RIGHT)
    assert found.calls == 1
    messages, grammar, schema = model.asked[0]
    assert (grammar is None, schema is None) == ("gbnf" not in accepts, "gbnf" in accepts)
    # Whoever writes trees is told of them.
    assert ('{"program": {' in str(messages[0]["content"])) == ("gbnf" not in accepts)
    form = "gbnf" if "gbnf" in accepts else "json-schema"
    assert f"held to a grammar ({form})" in next(one.about for one in found.steps if one.name == "look")


def test_a_model_that_takes_none_is_free(graph: Graph) -> None:
    model = Held((), RIGHT)
    assert graph.ask(QUESTION, model, via="kopl").texts == ["Kathmandu"]
    assert model.asked[0][1:] == (None, None)


def query(**given: str) -> str:
    return f"get_information({', '.join(f'{name}={value!r}' for name, value in given.items())})"


CAPITAL = f'Query1: "{query(relation="capital", head_entity="Nepal")}"'
STEPS = f"## Target type: {{city}}\nStep1: Find the capital of Nepal\n{CAPITAL}"
SEARCH = {"relation": "capital", "head_entity": "Nepal", "tail_entity": None}
SPOILT = (
    CAPITAL.replace("capital", "kapital"),
    CAPITAL.replace("Nepal", "Nepall"),
    CAPITAL.replace("head_entity", "head"),
    CAPITAL + " is it",
    json.dumps({"program": {"get_information": {**SEARCH, "relation": "kapital"}}}),
)


@pytest.mark.parametrize(
    ("accepts", "reply"),
    [(("gbnf",), CAPITAL), (("gbnf",), STEPS), (("json-schema",), json.dumps({"program": {"get_information": SEARCH}}))],
)
def test_queries(graph: Graph, accepts: Sequence[str], reply: str) -> None:
    model = Held(accepts, *SPOILT, reply)
    found = graph.ask(QUESTION, model, via="query")
    assert (found.status, found.texts, found.calls) == ("answered", ["Kathmandu"], 1)
    assert CAPITAL in found.program
    assert f"held to a grammar ({accepts[0]})" in next(one.about for one in found.steps if one.name == "look")
    assert ("written as JSON" in str(model.asked[0][0][0]["content"])) == ("gbnf" not in accepts)


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        ("How many mountains in Nepal are higher than 8,000 m?", [
            query(relation="country", tail_entity="Nepal"), "get_information(relation='height', tail_entity>'8000 m')",
            "set_intersection(set1='output_of_query1', set2='output_of_query2')", "count(set='output_of_query3')",
        ]),
        ("Who was head of government of India in 1984?", [
            query(relation="head of government", head_entity="India", key="time", value="1984"),
        ]),
        ("Which mountain is the highest?", [
            query(relation="height", tail_entity="highest"), query(relation="mountain", head_entity="output_of_query1"),
        ]),
        ("Which mountains are in the Himalayas?", [query(relation="range", tail_entity="Himalayas")]),
    ],
)  # fmt: skip
def test_conditions_are_in_the_grammar(graph: Graph, question: str, lines: list[str]) -> None:
    """What the instructions teach can be written: a model that is held writes what a free one does."""
    program = "\n".join(f'Query{number}: "{line}"' for number, line in enumerate(lines, 1))
    free, held = (graph.ask(question, Held(accepts, program), via="query") for accepts in ((), ("gbnf",)))
    assert held.texts == free.texts != []
    assert held.program == free.program


OBJECT = '{"head": "Nepal", "relation": "capital", "tail": "UNKNOWN city 1"}'
TUPLE = '["Nepal", "capital", "UNKNOWN city 1"]'


@pytest.mark.parametrize(("accepts", "triple"), [("gbnf", TUPLE), ("json-schema", OBJECT)])
def test_patterns(graph: Graph, accepts: str, triple: str) -> None:
    reply = f'{{"triples": [{triple}], "answer": "UNKNOWN city 1"}}'
    model = Held((accepts,), reply.replace("capital", "kapital"), reply)
    assert "Kathmandu" in graph.ask(QUESTION, model, via="pattern").texts


@pytest.mark.parametrize(
    ("via", "accepts", "reply"),
    [
        ("kopl", "gbnf", "NONE"),
        ("kopl", "json-schema", '{"program": null}'),
        ("query", "gbnf", "NONE"),
        ("query", "json-schema", '{"program": null}'),
        ("pattern", "gbnf", "NONE"),
        ("pattern", "json-schema", '{"triples": [], "answer": null}'),
    ],
)
def test_it_may_say_that_nothing_answers(graph: Graph, via: Any, accepts: str, reply: str) -> None:
    found = graph.ask("Who sings in Nepal?", Held((accepts,), reply), via=via)
    assert (found.status, found.calls) == ("abstained", 1)


def test_a_server_that_does_not_hold_it(graph: Graph) -> None:
    """What comes is read as it is."""
    model = Held((), RIGHT)
    model.accepts = frozenset(("json-schema",))
    model._allowed = lambda *_: True  # type: ignore[method-assign]
    assert graph.ask(QUESTION, model, via="kopl").texts == ["Kathmandu"]


def test_too_many_names_for_a_schema() -> None:
    """Servers refuse schemas that list more than a thousand names: it writes freely."""
    graph = condgraph.open()
    graph.add([condgraph.Statement("Nepal", f"relation {number}", condgraph.Ref("x")) for number in range(1100)])
    for accepts, held in (("json-schema", False), ("gbnf", True)):
        model = Held((accepts,), 'Find("Nepal") Relate("relation 7", "forward") QueryName()')
        assert graph.ask("What is relation 7 of Nepal?", model, via="kopl").texts == ["x"]
        assert (model.asked[0][1] is not None) == held
        assert model.asked[0][2] is None
