"""LLM queries that nobody would write: an answer or a typed error with a place, never a crash,
never a hang.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import condgraph
from condgraph.engine.errors import CondgraphError
from condgraph.graph import Graph
from tests.support.lanes import examples

CALLS = (
    "get_information(relation='Year', tail_entity>'2000')",
    "get_information(relation='City', head_entity='output_of_query1')",
    "get_information(relation='row_number', head_entity='output_of_query1')",
    "get_information(relation='wins', head_entity='Ann', key='time', value='output_of_query1')",
    "get_information(head_entity='Ann', relation='wins', tail_entity='Cup', key='time')",
    "get_information(relation='Cost', tail_entity='highest')",
    "get_information(relation='wins', tail_entity='output_of_query1', key='start time')",
    "set_union(set1='output_of_query1', set2='output_of_query2')",
    "set_difference(set1='output_of_query2', set2='Ann')",
    "set_intersection(set1='output_of_query1', set2='output_of_query1')",
    "set_negation(set='output_of_query1')",
    "keep(set='output_of_query1', value<'2005')",
    "count(set='output_of_query2')",
    "max(set='output_of_query1')",
    "sum(set='output_of_query2')",
    "mode(set='output_of_query1')",
    "next_row(set='output_of_query1')",
    "compare(set1='output_of_query1', set2='output_of_query2')",
    "difference(a='output_of_query1', b='3')",
    "if(output_of_query1 > output_of_query2, 'yes', output_of_query1)",
    "extract_year(set='output_of_query1')",
    "split(string='output_of_query1', delimiter='n')",
    "sort(set='output_of_query1')",
    "output_of_query1[0]",
    "output_of_query2 - 5",
    "not output_of_query1",
    "argmax(set='output_of_query1')",
    "round(x='output_of_query1', digits=2)",
)
WORDS = (
    "relation",
    "head_entity",
    "tail_entity",
    "key",
    "value",
    "set",
    "output_of_query1",
    "'",
    '"',
    "(",
    ")",
    ">=",
    "=",
    ",",
    "[",
    "None",
    "time",
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    place = tmp_path_factory.mktemp("fuzz")
    (place / "games.csv").write_text("Year,City,Cost\n1999,Rome,5\n2003,Oslo,7.5\n2004,Rome,n/a\n", "utf-8")
    (place / "wins.tsv").write_text("Ann\twins\tCup\t2001\t2003\nBob\twins\tCup\t2003\t####\nAnn\twins\tMug\t-\t1999\n", "utf-8")
    found = condgraph.open()
    found.load(place / "games.csv")
    found.load(place / "wins.tsv", format="quintuples")
    return found


def run(graph: Graph, text: str) -> None:
    try:
        answer = graph.query(text, language="llm_query", timeout=20)
        assert answer.texts == list(dict.fromkeys(answer.texts))
        assert all(isinstance(one, str) for one in answer.warnings)
        assert len(answer.trace) >= 1
        list(answer.evidence)
        answer.explain()
    except CondgraphError as error:
        caught = error
    else:
        return
    assert str(caught)
    assert caught.span is None or 0 <= caught.span[0] <= caught.span[1] <= len(text)


@settings(max_examples=examples(300))
@given(
    st.lists(st.sampled_from(CALLS), min_size=1, max_size=6),
    st.sampled_from(("", "## Target type: {yes or no}\n", "## Target type: {city}\n")),
)
def test_any_order_of_real_calls(graph: Graph, calls: list[str], target: str) -> None:
    run(graph, target + "\n".join(f'Query{at}: "{call}"' for at, call in enumerate(calls, 1)))


@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3), st.data())
def test_damaged_programs(graph: Graph, calls: list[str], data: st.DataObject) -> None:
    text = "\n".join(f'Query{at}: "{call}"' for at, call in enumerate(calls, 1))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 6))
        text = text[:at] + data.draw(st.sampled_from(WORDS) | st.text(max_size=4)) + text[at + cut :]
    run(graph, text)


@settings(max_examples=examples(100))
@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(("=", "!=", "<", ">=")))
def test_any_text_as_a_name_or_a_value(graph: Graph, name: str, value: str, operator: str) -> None:
    name, value = (text.replace("\\", "").replace("\n", " ").replace("'", "’s") for text in (name, value))
    for relation in ("Year", "City", "Cost", "wins", name):
        run(graph, f"Query1: \"get_information(relation='{relation}', tail_entity{operator}'{value}')\"")


def test_long_programs_end(graph: Graph) -> None:
    lines = [f'Query1: "{CALLS[0]}"']
    lines += [f"Query{at}: \"set_union(set1='output_of_query{at - 1}', set2='output_of_query{at - 1}')\"" for at in range(2, 60)]
    run(graph, "\n".join(lines))


def test_programs_that_would_grow_without_end_stop(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    from condgraph.engine import functions
    from condgraph.engine.execute import facts

    monkeypatch.setattr(facts, "MAX_VALUES", 1000)
    lines = ["Query1: \"get_information(relation='Year')\""]
    lines += [f"Query{at}: \"max(set1='output_of_query{at - 1}', set2='output_of_query{at - 1}')\"" for at in range(2, 40)]
    with pytest.raises(CondgraphError, match="too many"):
        graph.query("\n".join(lines))
    monkeypatch.setattr(functions, "MAX_PAIRS", 4)
    program = f'{lines[0]}\nQuery2: "get_information(relation=\'City\')"\nQuery3: "output_of_query1 > output_of_query2"'
    answer = graph.query(program)
    assert answer.texts == []
    assert any("one by one" in warning for warning in answer.warnings)
