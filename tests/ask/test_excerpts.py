"""What a model is shown: predicates with direction and type, connections, calls and the date, by the tokens there are."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

import condgraph
from condgraph import Quantity, Ref, Statement
from condgraph.ask.prompt import calls_for, depends_on_today
from condgraph.engine.errors import OptionError
from condgraph.graph import Graph
from condgraph.models.chat import Budget

SAID = re.compile(r'"((?:[^"\\]|\\.)*)"')


@pytest.fixture(scope="module")
def graph() -> Graph:
    made = condgraph.open()
    items = [
        Statement("Ann", "educated at", Ref("Harvard")),
        Statement("Ann", "place of birth", Ref("Los Angeles")),
        Statement("Los Angeles", "population", Quantity(3_900_000)),
        Statement("Los Angeles", "latitude", Quantity(34, "degree")),
        Statement("Harvard", "located in", Ref("Cambridge")),
        Statement("Cambridge", "shares border with", Ref("Boston")),
        Statement("Ann", "date of death", "2001-02-03"),
    ]
    items += [Statement(f"Place {at}", f"attribute {at}", Quantity(at)) for at in range(300)]
    items += [Statement(f"Place {at}", "latitude", Quantity(at % 90, "degree")) for at in range(200)]
    made.add(items)
    return made


@pytest.mark.parametrize("tokens", [200, 500, 2_000, 6_000, 12_000])
def test_predicates_have_direction_and_type_within_the_tokens(graph: Graph, tokens: int) -> None:
    found = graph.excerpt("How many people born in Los Angeles studied at Harvard?", tokens)
    assert found.tokens <= tokens
    lines = found.text.splitlines()
    told = {"place of birth": "← (", "educated at": "← ("}
    named = [line for line in lines if line.startswith(('- "Los Angeles":', '- "Harvard":'))]
    for name, way in told.items():
        assert any(f'"{name}" {way}' in line for line in named) or any(
            line.startswith(f'- "{name}"') and " → " in line for line in lines
        )
    if tokens >= 500:
        assert any('←"place of birth"← something →"educated at"→' in line for line in lines)
        # What the question asks for comes before what there is most of.
        ranked = [
            SAID.search(line)[1] for line in lines[lines.index("Predicates: subjects → objects:") + 1 :] if line.startswith("- ")
        ]  # type: ignore[index]
        assert {"educated at", "place of birth"} <= set(ranked[:2])
        assert "population" not in ranked or ranked.index("population") > 1
    if tokens >= 6_000:
        assert all(f'"attribute {at}"' in found.text for at in range(100))


def test_predicates_of_the_same_ends_share_a_line_where_not_all_fit(graph: Graph) -> None:
    found = graph.excerpt("How many people born in Los Angeles studied at Harvard?", 2_000)
    lines = [line for line in found.text.splitlines() if line.startswith("- ") and line.endswith(": entity → quantity")]
    names = [SAID.findall(line) for line in lines]
    assert len(names[-1]) > 100
    listed = [name for line in names for name in line]
    assert len(listed) == len(set(listed))
    assert set(listed) < set(found.predicates)
    cypher = graph.ask("How large is Place 7?", lambda _: "NONE", via="cypher", excerpt_tokens=2_000).excerpt
    assert cypher is not None
    assert re.search(r"\n- \(\{`attribute \d+`, `attribute \d+`, [^:]*: quantity\}\)", cypher.text)


def test_a_question_finds_its_predicate_by_everyday_words(graph: Graph) -> None:
    assert graph.excerpt("When did Ann die?", 300).predicates[0] == "date of death"
    assert graph.excerpt("Which university did Ann graduate from?", 300).predicates[0] == "educated at"


def test_cells_are_left_out_on_request(graph: Graph) -> None:
    text = graph.excerpt("How many people born in Los Angeles studied at Harvard?", 2_000, cells=False).text
    assert "Connections" not in text
    assert "Named in" not in text
    assert "e.g." not in text


def prompt_of(graph: Graph, question: str, **options: object) -> list[str]:
    seen: list[list[str]] = []

    def model(messages: list[dict[str, str]]) -> str:
        seen.append([message["content"] for message in messages])
        return "NONE"

    graph.ask(question, model, via="query", **options)
    return seen[0]


def test_the_caller_sets_the_tokens_of_the_excerpt(graph: Graph) -> None:
    def size(**options: object) -> int:
        found = graph.ask("How large is Place 7?", lambda _: "NONE", via="query", **options).excerpt
        assert found is not None
        return found.tokens

    few, usual, many = size(excerpt_tokens=300), size(), size(budget=Budget(prompt_tokens=12_000))
    assert few <= 300 < 1_500 < usual <= 2_000 < 4_000 < many <= 4_800
    assert size(excerpt_tokens=9_000, budget=Budget(prompt_tokens=20_000)) > 4_900
    with pytest.raises(OptionError, match="excerpt_tokens is a whole number"):
        size(excerpt_tokens="many")


def test_calls_are_shown_where_words_ask_for_them(graph: Graph) -> None:
    system, _ = prompt_of(graph, "What are the 3 largest places in each country?")
    assert "- group_by(" in system
    assert "- top(" in system
    assert "Today is" not in system
    assert "- order_by(" not in system


def test_the_date_is_shown_where_a_question_speaks_of_now(graph: Graph) -> None:
    system, _ = prompt_of(graph, "How old is Ann now?", today=date(2020, 2, 3))
    assert "Today is 2020-02-03." in system
    assert f"Today is {date.today().isoformat()}." in prompt_of(graph, "Who is the current mayor?")[0]
    assert not depends_on_today("Who was mayor in 1984?")


def test_every_call_that_is_shown_is_one_of_the_language(tmp_path: Path) -> None:
    """Each runs over a table, with its relations put in."""
    (tmp_path / "films.csv").write_text("Film,Genre,Year,Length\nA,drama,1990,90\nB,drama,1995,100\nC,comedy,1999,80\n", "utf-8")
    graph = condgraph.open()
    graph.load(tmp_path / "films.csv")
    questions = (
        "How many films has each genre?", "Which genres have more than 5 films?", "Name the 3 longest", "Name the 3 shortest",
        "sorted by length", "the most common genre", "the least common genre", "how many years older", "median", "percentage",
        "in which year",
    )  # fmt: skip
    shown = {call: None for question in questions for call in calls_for(question)}
    assert len(shown) == 11
    rows = "Query1: \"get_information(relation='Genre', tail_entity!='x')\""
    for line in shown:
        call = line.removeprefix("- ").partition("):")[0] + ")"
        call = call.replace("key='RELATION'", "key='Year'" if "by(" not in call else "key='Genre'").replace("RELATION", "Length")
        second = "Query2: \"group_by(set='output_of_query1', key='Genre', aggregate='count')\""
        if "having" not in call:
            second = "Query2: \"get_information(relation='Year', head_entity='output_of_query1')\""
            if "group_by" not in call and "top" not in call and "bottom" not in call and "order_by" not in call:
                call = call.replace("output_of_query1", "output_of_query2")
        answer = graph.query(f'{rows}\n{second}\nQuery3: "{call}"', language="llm_query")
        assert answer.values is not None, line
