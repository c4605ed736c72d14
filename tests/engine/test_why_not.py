"""Why an answer is empty, or lacks a result: the step, the reason, changes that were run, the missing statement."""

from __future__ import annotations

from functools import partialmethod
from pathlib import Path
from random import Random
from typing import Any

import pytest

import condgraph
from condgraph import Entity, EntityKind, Member, Quantity, Ref, Statement, Time
from condgraph.engine.errors import DeadlineError
from condgraph.engine.execute.run import run
from condgraph.engine.why_not import WhyNot, folded, why_empty
from condgraph.graph import Graph


@pytest.fixture(scope="module")
def graph() -> Graph:
    graph = condgraph.open()
    graph.add(
        [
            Entity("country", "country", EntityKind.CONCEPT), Entity("city", "city", EntityKind.CONCEPT),
            Entity("n", "Nepal"), Entity("i", "India"), Entity("k", "Kathmandu"), Entity("d", "New Delhi"),
            Member("n", "country"), Member("i", "country"), Member("k", "city"), Member("d", "city"),
            Statement("n", "capital", Ref("k")), Statement("i", "capital", Ref("d"), (("since", Time.parse("1931")),)),
            Statement("k", "height", Quantity(1400, "m")), Statement("d", "height", Quantity(216, "m")),
            Statement("k", "founded", Time.parse("0723")), Statement("n", "motto", "Mother and motherland"),
            # One station under two ids and names.
            Entity("S09", "Gare du Nord"), Entity("stations/S09", "stations/gare-du-nord"), Entity("S10", "Lyon"),
            Statement("k", "station", Ref("S09")), Statement("stations/S09", "platforms", Quantity(36)),
            Statement("d", "sister city", "Kathmandu"), Entity("s-11", "S-11"),
            Entity("T11", "s11"), Statement("T11", "operator", "NR Nepal Railways"),
            # A key that a column spells otherwise, so that loading found no row by it.
            Statement("k", "terminal", "city/K-11"), Statement("T11", "key", "K11"), Statement("i", "terminal", "city/K12"),
            Statement("d", "key", "k12"),
        ]
    )  # fmt: skip
    return graph


CASES = [
    ("Find(Kathmandu) Relate(terminal, forward) QueryAttr(operator)", "Relate", "'Kathmandu' has no 'terminal' forward", "join",
     "with 'terminal' forward joined by keys that are spelled otherwise, 'K11' for 'city/K-11': 1 result (NR Nepal Railways)"),
    ("Find(mother AND motherland) Relate(capital, forward) QueryName()", "Find", "nothing is called 'mother AND motherland'",
     "join", "with what has 'Mother and motherland' as an attribute: 1 result (Kathmandu)"),
    ("Find(New Delhi) Relate(terminal, backward) QueryName()", "Relate", "'New Delhi' has no 'terminal' backward", "join",
     "with 'terminal' backward joined by keys that are spelled otherwise, 'city/K12' for 'k12': 1 result (India)"),
    ("Find(Nepal) Relate(capital, backward) QueryName()", "Relate", "'Nepal' has no 'capital' backward", "direction",
     "with 'capital' forward: 1 result (Kathmandu)"),
    ("Find(Nepla) Relate(capital, forward) QueryName()", "Find", "nothing is called 'Nepla'", "name",
     "with 'Nepal' in place of 'Nepla': 1 result (Kathmandu)"),
    ("FindAll() FilterConcept(citty) QueryName()", "FilterConcept", "nothing is called 'citty'", "name",
     "with 'city' in place of 'citty': 2 results (Kathmandu, New Delhi)"),
    ("Find(Nepal) Relate(captial, forward) QueryName()", "Relate", "the graph has no 'captial'", "name",
     "with 'capital' in place of 'captial': 1 result (Kathmandu)"),
    ("FindAll() FilterNum(height, 9000 m, >) QueryName()", "FilterNum", "none of 2 has 'height' > 9000 m", "bound",
     "with 'height' >= 1400 m: 1 result (Kathmandu)"),
    ("FindAll() FilterNum(height, 9000 m, >) Relate(capital, backward) FilterStr(motto, Mother and motherland) QueryName()",
     "FilterNum", "none of 2 has 'height' > 9000 m", "bound", "with 'height' >= 1400 m: 1 result (Nepal)"),
    ("FindAll() FilterNum(height, 5 m, <) Relate(capital, backward) FilterStr(motto, Mother and motherland) QueryName()",
     "FilterNum", "none of 2 has 'height' < 5 m", "bound", "with 'height' <= 1400 m: 1 result (Nepal)"),
    ("FindAll() FilterNum(height, 200 kelvin, >) QueryName()", "FilterNum",
     "the values of 'height' are quantity in m, and are compared with quantity in kelvin", "unit",
     "with 'height' > 200 m: 2 results (Kathmandu, New Delhi)"),
    ("FindAll() FilterStr(founded, 0723) QueryName()", "FilterStr",
     "the values of 'founded' are time, and are compared with text or entity", "type",
     "with 'founded' = 723: 1 result (Kathmandu)"),
    ("FindAll() FilterStr(motto, Mother and motherlnad) QueryName()", "FilterStr",
     "none of 1 has 'motto' = 'Mother and motherlnad'", "name", "with 'motto' = 'Mother and motherland': 1 result (Nepal)"),
    ("Find(Nepal) Relate(capital, forward) FilterConcept(country) QueryName()", "FilterConcept",
     "nothing is in all of: 'capital' forward (1); the members of 'country' (2)", "condition",
     "without the members of 'country': 1 result (Kathmandu)"),
    ("Find(Kathmandu) Relate(station, forward) QueryAttr(platforms)", "QueryAttr", "'Gare du Nord' has no 'platforms'", "join",
     "with 'stations/gare-du-nord' as well before 'platforms' as an attribute: 1 result (36)"),
    ("Find(S-11) QueryAttr(operator)", "QueryAttr", "'S-11' has no 'operator'", "join",
     "with 's11' as well before 'operator' as an attribute: 1 result (NR Nepal Railways)"),
    ("Find(NR Nepal Railways) QueryName()", "Find", "nothing is called 'NR Nepal Railways'", "join",
     "with what has 'NR Nepal Railways' as an attribute: 1 result (s11)"),
    ("FindAll() FilterStr(operator, railways) QueryName()", "FilterStr", "none of 1 has 'operator' = 'railways'", "name",
     "with 'operator' = 'NR Nepal Railways': 1 result (s11)"),
    ("FindAll() FilterConcept(country) Relate(capital, forward) QFilterYear(since, 1931, <) QueryName()", "QFilterYear",
     "none of 2 has the qualifier 'since' < 1931", "bound", "with the qualifier 'since' <= 1931: 1 result (New Delhi)"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "step", "reason", "kind", "change"), CASES)
def test_the_cause_and_the_change(graph: Graph, program: str, step: str, reason: str, kind: str, change: str) -> None:
    answer = graph.query(program, on_unknown="empty")
    why = answer.why_not()
    assert why.step == step
    assert why.reason.startswith(reason)
    assert (why.changes[0].kind, str(why.changes[0])) == (kind, change)
    assert why.complete
    warning = next(one for one in answer.warnings if one.startswith("the answer is empty"))
    assert reason in warning
    assert change in warning
    assert change in str(answer)
    assert [one["text"] for one in why.data()["changes"]] == [one.text for one in why.changes]


def test_a_pattern_that_leads_the_wrong_way(graph: Graph) -> None:
    why = graph.query("MATCH (c:city)-[:capital]->(n) RETURN n.name").why_not()
    assert why.changes[0].kind == "direction"
    assert why.changes[0].text == "with the pattern (n)-[:capital]->(c)"
    assert why.changes[0].size == 2


@pytest.mark.parametrize(("query", "change"), [
    ('MATCH (n {name: "Nepla"})-[:capital]->(c) RETURN c.name', "with 'Nepal' in place of 'Nepla': 1 result (Kathmandu)"),
    ("MATCH (n)-[:capital]->(c:city) WHERE c.height > 9000 RETURN n.name", "with 'height' >= 1400 m: 1 result (Nepal)"),
    ('MATCH (n) WHERE n.motto = "Mother and motherlnad" RETURN n.name', "with 'motto' = 'Mother and motherland': 1 result (Nepal)"),
])  # fmt: skip
def test_a_condition_of_a_query_that_its_rows_ask_again(graph: Graph, query: str, change: str) -> None:
    assert str(graph.query(query).why_not().changes[0]) == change


def test_a_cell_with_spaces_around_it(tmp_path: Path) -> None:
    path = tmp_path / "stations.csv"
    path.write_text("id,name\n1, Köln Hbf \n2,Basel SBB\n", encoding="utf-8")
    with condgraph.open() as graph:
        graph.load(path, key="id")
        why = graph.kopl("FindAll() FilterStr(name, Koeln Hbf) QueryName()").why_not()
        assert str(why.changes[0]) == "with 'name' = 'Köln Hbf': 1 result (1)"


def test_keys_of_a_folder_that_are_spelled_otherwise(tmp_path: Path) -> None:
    (tmp_path / "stations.csv").write_text("id,label,country\nS09,Old Town,Peru\nS10,Harbour,Chile\n")
    (tmp_path / "measurements.csv").write_text("id,station,value\nm1,stations/S09,3.5\nm2,stations/S10,4.5\n")
    graph = condgraph.open()
    graph.load(tmp_path)
    (change,) = graph.query("Find(m1) Relate(station, forward) QueryName()", on_unknown="empty").why_not().changes
    assert (change.kind, change.sample) == ("join", ("Old Town",))
    assert change.text == "with 'station' forward joined by keys that are spelled otherwise, 'S09' for 'stations/S09'"


def test_a_row_is_expected_by_the_column_that_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "plants.csv"
    path.write_text("name,height\nAlba,120\nAlba,85\nBruma,30\n", encoding="utf-8")
    with condgraph.open() as graph:
        graph.load(path)
        answer = graph.kopl("FindAll() FilterNum(height, 50, >) QueryName()")
        assert answer.why_not("Alba").reason == "'Alba' is in the answer"
        assert [str(one) for one in answer.why_not("Bruma").missing] == ["plants row 3 | height | 'height' > 50 (is 30)"]


def test_an_explanation_is_made_once(graph: Graph) -> None:
    answer = graph.kopl("FindAll() FilterNum(height, 9000 m, >) QueryName()")
    assert answer.why_not() is answer.why_not()


def test_a_change_gives_what_it_says(graph: Graph) -> None:
    answer = graph.kopl("FindAll() FilterNum(height, 9000 m, >) QueryName()")
    for change in answer.why_not().changes:
        plan = change.plan
        assert len(run(plan, graph.current).results[id(plan)]) == change.size > 0


def test_counts_and_tables_of_nothing(graph: Graph) -> None:
    counted = graph.kopl("FindAll() FilterNum(height, 9000 m, >) Count()")
    assert counted.why_not().changes[0].text == "with 'height' >= 1400 m"
    table = graph.table("FindAll() FilterNum(height, 9000 m, >)").show("name", "height").ask()
    assert table.why_not().step == "FilterNum"
    assert "with 'height' >= 1400 m" in table.warnings[-1]
    whole = graph.kopl("FindAll() FilterNum(height, 9 m, >) QueryName()")
    assert str(whole.why_not()) == "the answer is not empty: it has 2 values"


def test_every_language(graph: Graph) -> None:
    query = "Query1: \"get_information(relation='capital', tail_entity='Nepal')\""
    assert graph.query(query).why_not().changes[0].text == "with 'capital' forward"
    logic = graph.query('?x : capital("Kathmandu", ?x)')
    assert logic.why_not().changes[0].kind == "direction"


MISSING = [
    ("Find(India) Relate(capital, forward) QueryName()", "Kathmandu", "India | capital | Kathmandu"),
    ("Find(Nepal) Relate(capital, forward) FilterConcept(country) QueryName()", "Kathmandu", "Kathmandu | instance of | country"),
    ("FindAll() FilterNum(height, 1000 m, >) QueryName()", "New Delhi", "New Delhi | height | 'height' > 1000 m (is 216 m)"),
    ("FindAll() FilterNum(height, 1 m, >) QueryName()", "Nepal", "Nepal | height | ?"),
    ("Find(Nepal) Relate(capital, forward) QueryAttr(height)", Quantity(216, "m"), "Kathmandu | height | 216 m"),
    ("Find(Nepal) Relate(capital, forward) Relate(station, forward) QueryName()", "Lyon", "Kathmandu | station | Lyon"),
    ("FindAll() FilterConcept(country) SelectAmong(height, largest)", "Nepal", "Nepal | height | ?"),
    ("Find(India) Relate(capital, forward) QFilterYear(since, 1800, <) QueryName()", "New Delhi", "India | capital | New Delhi"),
    ("Find(Nepal) Find(New Delhi) QueryRelation()", "capital", "Nepal | capital | New Delhi"),
    ("Find(India) Find(Nepal) Relate(capital, forward) QueryRelation()", "capital", "Nepal | capital | New Delhi"),
    ("Find(Kathmandu) Relate(station, forward) Find(Kathmandu) QueryRelation()", "capital", "Kathmandu | station | Nepal"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "expected", "missing"), MISSING)
def test_the_statement_that_is_missing(graph: Graph, program: str, expected: Any, missing: str) -> None:
    why = graph.kopl(program).why_not(expected)
    assert missing in map(str, why.missing)
    assert why.step


def test_expected_results_that_are_there_or_nowhere(graph: Graph) -> None:
    answer = graph.kopl("Find(Nepal) Relate(capital, forward) QueryName()")
    assert answer.why_not("Kathmandu").reason == "'Kathmandu' is in the answer"
    assert answer.why_not(graph.kopl("Find(Kathmandu)").entities[0]).reason == "'Kathmandu' is in the answer"
    assert answer.why_not("Kathmandoo").reason.startswith("nothing in the graph is called 'Kathmandoo'; nearest: 'Kathmandu'")
    assert answer.why_not("d").missing[0].object == "New Delhi"


def test_a_deadline_says_how_far_it_came(graph: Graph) -> None:
    answer = graph.kopl("FindAll() FilterConcept(city) FilterConcept(country) QueryName()")
    lookup: Any = answer._lookup()
    left = 0

    class Late:
        batch, order, schema, behind = 1, lookup.order, lookup.schema, lookup.behind
        values, texts, near, predicates, alike = lookup.values, lookup.texts, lookup.near, lookup.predicates, lookup.alike
        sample = lookup.sample

        def asked(self, *of: Any, call: Any) -> Any:
            nonlocal left
            if not left:
                raise DeadlineError("late")
            left -= 1
            return call(*of)

        size, changed = partialmethod(asked, call=lookup.size), partialmethod(asked, call=lookup.changed)

    seen = []
    for most in range(24):
        late: Any = Late()
        left = most
        why = why_empty(answer.plan, answer._steps, late, 10.0)
        assert why is not None
        seen.append((why.complete, why.tried, bool(why.step)))
    assert seen[0] == (False, 0, False)
    # The operator is known before any change was tried, and each change that was tried counts.
    assert (False, 0, True) in seen
    assert len({tried for complete, tried, _ in seen if not complete}) > 1
    assert seen == sorted(seen)
    assert seen[-1][0]
    assert str(WhyNot("a", "b", "c", complete=False, tried=1)).endswith("the time for explaining was over after 1 change")
    assert answer.why_not(timeout=60.0).complete


def test_names_that_fold_to_one() -> None:
    assert folded("stations/Old_Town ") == folded("old  town") == "old town"
    assert folded("Old Town") != folded("Oldtown")
    assert folded("S 11") == folded("s-11") == folded("S11") != folded("S1 1")


@pytest.mark.parametrize("operator", [">", ">=", "<", "<=", "="])
def test_the_nearest_bound_is_that_of_a_loop(operator: str) -> None:
    random, graph = Random(3), condgraph.open()
    heights = {f"e{number}": random.sample(range(100), random.randint(0, 2)) for number in range(60)}
    items: list[Any] = [Entity("c", "concept", EntityKind.CONCEPT), *(Entity(one, one) for one in heights)]
    items += [Statement(one, "height", Quantity(value, "m")) for one, values in heights.items() for value in values]
    items += [Statement(one, "near", Ref(random.choice(list(heights)))) for one in heights if random.random() < 0.5]
    items += [Member(one, "concept") for one in heights if random.random() < 0.2]
    graph.add(items)
    past = 1_000 if operator in (">", ">=", "=") else -1_000
    values = sorted({value for several in heights.values() for value in several}, reverse=past > 0)
    satisfied = operator if operator == "=" else operator[0] + "="
    for after in (
        "Relate(near, forward)", "Relate(near, forward) FilterConcept(concept)", "FilterConcept(concept) Relate(near, backward)",
        "Relate(near, forward) FilterNum(height, 50 m, >)", "Relate(near, forward) Relate(near, forward) FilterConcept(concept)",
    ):  # fmt: skip
        program = f"FindAll() FilterNum(height, %s m, %s) {after} QueryName()"
        nearest = next(value for value in values if graph.kopl(program % (value, satisfied)).values)
        why = graph.kopl(program % (past, operator)).why_not()
        assert why.changes[0].text == f"with 'height' {satisfied} {nearest} m"
        assert why.changes[0].size == len(graph.kopl(program % (nearest, satisfied)).entities)
