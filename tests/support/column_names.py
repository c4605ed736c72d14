"""Tables with column names that other tables use too, and what paths over their rows mean: a program, a table clause,
and the expected cells or a part of the error.
"""

from __future__ import annotations

from typing import Final

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.graph import Graph

CLUBS: Final = "FindAll() FilterConcept(clubs)"
TOWNS: Final = "FindAll() FilterConcept(towns)"
PEAKS: Final = "FindAll() FilterConcept(peaks)"
PEOPLE: Final = "FindAll() FilterConcept(person)"

QUESTIONS: Final[list[tuple[str, str, list[tuple[str, ...]] | str]]] = [
    # `name` is the column of that name if the rows have it, else the name of the row.
    (PEAKS, "show name, height", [("Eiger", "3967"), ("Ortler", "3905")]),
    (PEAKS, "where name = 'Eiger' show height", [("3967",)]),
    (PEAKS, "group by name show count()", [("Eiger", "1"), ("Ortler", "1")]),
    (PEAKS, "where name is missing show count()", [("0",)]),
    (PEAKS, "show town.name order by height", [("Sulden",), ("Grindelwald",)]),
    (CLUBS, "show name, members", [("Alpine Club", "40"), ("", "7")]),
    (CLUBS, "where name is missing show members", [("7",)]),
    (TOWNS, "show name, ^town.name", [("Grindelwald", "Alpine Club; Eiger"), ("Sulden", "Ortler")]),
    (PEOPLE, "show name order by name", [("Ann",), ("Ben",)]),
    ("FindAll() FilterNum(height, 1, >)", "show name order by height desc limit 1", [("Eiger",)]),
    ("FindAll()", "where members = 40 or height = 3905 show name", [("Alpine Club",), ("Ortler",)]),
    ("Find(Eiger)", "show name, height", [("Eiger", "3967")]),
    ("Find(A)", "show name, members", [("Alpine Club", "40")]),
    # A column of another table is not a column of these rows, wherever it is used.
    (PEAKS, "show count(members)", "unknown column 'members'"),
    (PEAKS, "show sum(members), count(members)", "it is a column of clubs, and none of these rows (peaks) has it"),
    (PEAKS, "where members > 3 show count()", "unknown column 'members'"),
    (PEAKS, "show name having members = 3", "unknown column 'members'"),
    (PEAKS, "show name order by members", "unknown column 'members'"),
    (PEAKS, "group by members", "unknown column 'members'"),
    (PEAKS, "show height + members", "unknown column 'members'"),
    (CLUBS, "show max(heigth)", "unknown column 'heigth'"),
    (PEAKS, "show town.height", "it is a column of peaks, and none of these rows (towns) has it"),
    (PEAKS, "show ^town", "it leads to towns, and to none of these rows (peaks)"),
    (TOWNS, "show count(^town), max(^town.height)", [("3", "3967")]),
    (TOWNS, "show ^town.age", "unknown column 'age'"),
    (PEOPLE, "show born@since", "statements of 'born' have no such qualifier, others have"),
    (PEOPLE, "show friend@since", [("2001",), ("",)]),
    # A column that some rows of a table have is a column, even if the rows at hand have no such value.
    ("FindAll() FilterConcept(clubs) FilterNum(members, 40, <)", "show name, founded", [("", "")]),
    ("FindAll() FilterConcept(person) FilterStr(trade, smith)", "show count(height)", "unknown column 'height'"),
    ("FindAll() FilterStr(trade, smith) FindAll() FilterConcept(peaks) Or()", "show count(height)", [("2",)]),
]
#: A program, a clause, and the warnings about columns that the rows may or may not have.
UNSURE: Final = [
    ("Find(Eiger)", "show height, members", ["members: none of the rows has such a value"]),
    ("Find(Eiger) Find(Ann) Or()", "show count(members), height", ["members: none of the rows has such a value"]),
    ("Find(Eiger)", "show name, height", []),
]


def crowd() -> Graph:
    """Return a graph of tables loaded one by one, and of people in no table."""
    graph = condgraph.open("memory:")
    graph.load([{"town": "Grindelwald", "canton": "BE"}, {"town": "Sulden"}], name="towns", key="town")
    peaks = [{"peak": "Eiger", "height": 3967, "town": "Grindelwald"}, {"peak": "Ortler", "height": 3905, "town": "Sulden"}]
    graph.load(peaks, name="peaks", key="peak", join={"town": "towns"})
    clubs = [
        {"club": "A", "name": "Alpine Club", "members": 40, "town": "Grindelwald", "founded": 1863},
        {"club": "B", "members": 7},
    ]
    graph.load(clubs, name="clubs", key="club", join={"town": "towns"})
    graph.add(
        [
            *(Entity("person", "person", EntityKind.CONCEPT), Entity("ann", "Ann"), Entity("ben", "Ben")),
            *(Member("ann", "person"), Member("ben", "person")),
            *(Statement("ann", "age", "44"), Statement("ben", "trade", "smith"), Statement("ann", "born", "1960")),
            Statement("ann", "friend", Ref("ben"), (("since", "2001"), ("start time", "2001"))),
        ]
    )
    return graph
