"""Questions over a table, a graph and a temporal graph that are loaded together, as in TrustUQA's
appendix D: the source is not said (D.1), or one question crosses all three (D.2).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.graph import Graph
from tests.ask.asking import Scripted

#: Rows of the table of D.2 (Table 12).
AWARDS = """Year,Award,Category,Nominated work,Result
2000,The National Theater Association of Korea,Best New Actor,Yi,Won
2005,11th Korea Musical Awards,Best Actor,Hedwig and the Angry Inch,Won
2005,MBC Drama Awards,Best New Actor,Shin Don,Nominated
2006,12th Korea Musical Awards,Most Popular Star,Finding Kim Jong-wook,Won
2009,KBS Drama Awards,"Excellence Award, Actor in a Daily Drama",Everybody Cha-cha-cha,Won
"""
FILMS = """Hedwig and the Angry Inch|directed_by|John Cameron Mitchell
Hedwig and the Angry Inch|starred_actors|John Cameron Mitchell
Rabbit Hole|directed_by|John Cameron Mitchell
Cube Zero|directed_by|Ernie Barbarash
Red River|starred_actors|John Wayne
"""
WINNERS = """Chlotrudis Award for Best Actor\twinner\tJohn Cameron Mitchell\t2002\t2002
Chlotrudis Award for Best Actor\twinner\tIan Holm\t1998\t1998
EATCS award\twinner\tMoshe Vardi\t2008\t2008
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder: Path = tmp_path_factory.mktemp("mixed")
    made = condgraph.open()
    for name, text, options in (
        ("awards.csv", AWARDS, {}),
        ("films.txt", FILMS, {"format": "triples"}),
        ("winners.tsv", WINNERS, {"format": "quintuples"}),
    ):
        (folder / name).write_text(text, "utf-8")
        made.load(folder / name, **options)  # type: ignore[arg-type]
    return made


def lines(*steps: str) -> str:
    return "\n".join(f'Query{number}: "get_information({step})"' for number, step in enumerate(steps, start=1))


ACROSS = lines(
    "relation='Award', tail_entity='11th Korea Musical Awards'",
    "relation='Nominated work', head_entity='output_of_query1'",
    "relation='directed_by', head_entity='output_of_query2'",
    "head_entity='Chlotrudis Award for Best Actor', relation='winner', tail_entity='output_of_query3', key='start time'",
)


def test_a_question_across_a_table_a_graph_and_a_temporal_graph(graph: Graph) -> None:
    question = "When does a director nominated for the 11th Korea Musical Awards win the Chlotrudis Award for Best Actor?"
    found = graph.ask(question, Scripted(ACROSS), via="query")
    assert (found.status, found.texts) == ("answered", ["2002"]), found.attempts
    sources = {source.name for one in found.evidence for source, _ in one.sources}
    assert sources == {"awards", "films", "winners"}
    assert found.excerpt is not None
    assert {"Chlotrudis Award for Best Actor"} <= {name for one in found.excerpt.mentions for name in one.names}
    assert {"winner", "Award", "directed_by"} <= set(found.excerpt.predicates)


#: A question of each kind, its program, its answer and the source that it is answered from.
MIXED: list[tuple[str, str, list[str], str]] = [
    ("Which work was nominated at the MBC Drama Awards?",
     lines("relation='Award', tail_entity='MBC Drama Awards'", "relation='Nominated work', head_entity='output_of_query1'"),
     ["Shin Don"], "awards"),
    ("the director of [Cube Zero] was who", lines("relation='directed_by', head_entity='Cube Zero'"), ["Ernie Barbarash"], "films"),
    ("who acted in [Red River]", lines("relation='starred_actors', head_entity='Red River'"), ["John Wayne"], "films"),
    ("EATCS award was awarded to Moshe Vardi during the year",
     lines("head_entity='EATCS award', relation='winner', tail_entity='Moshe Vardi', key='start time'"), ["2008"], "winners"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "program", "answers", "source"), MIXED)
def test_the_source_is_found(graph: Graph, question: str, program: str, answers: list[str], source: str) -> None:
    found = graph.ask(question, Scripted(program))
    assert (found.status, found.texts) == ("answered", answers), found.attempts
    assert {one.name for statement in found.evidence for one, _ in statement.sources} == {source}


def test_demonstrations_of_all_sources_are_looked_through_together(graph: Graph) -> None:
    for question, program, answers, _ in MIXED:
        graph.demos.add(question, program, answers)
    seen: list[Any] = []

    def model(messages: list[dict[str, str]]) -> str:
        seen.append(messages[-1]["content"])
        return lines("relation='directed_by', head_entity='Rabbit Hole'")

    found = graph.ask("the director of [Rabbit Hole] was who", model)
    assert found.texts == ["John Cameron Mitchell"]
    # The one of the same form stands nearest to the question.
    assert seen[0].rindex("Cube Zero") > max(seen[0].rindex(name) for name in ("Red River", "MBC Drama") if name in seen[0])
