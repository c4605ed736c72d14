"""What the nodes beyond a sample have (here of 100, else of 1,000): one small database with late values of every kind, and
questions whose right answers were counted by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import neo4j
import pytest

import condgraph
from condgraph.cypher.connection import Connection
from condgraph.cypher.native import introspect
from condgraph.engine.errors import ReadOnlyError, UnknownNameError
from condgraph.remote_native import NativeGraph
from tests.support.native_databases import database

pytestmark = pytest.mark.xdist_group("neo4j native")

_LOAD = (
    "UNWIND range(1, 121) AS i CREATE (:Customer {name: 'c' + i, joined: date('2020-01-01'), score: 1})"
    "-[:BOUGHT {price: 1}]->(:Thing {name: 't' + i})",
    # The last one as the server reads them: a new node may take the place of one that was deleted, which is an early one.
    "MATCH (n:Customer) WITH last(collect(n)) AS n MATCH (n)-[r:BOUGHT]->(t) "
    "SET n = {name: 'late', vip: 1, joined: datetime('2024-05-05T10:00:00Z'), score: 9.5, codes: ['a', 'b  c']}, "
    "r = {price: 77.5, gift: true}, t = {name: 'late thing', vip: 0}",
    "CREATE (:Staff {name: 's', vip: 1})",
    "UNWIND range(1, 150) AS i CREATE (n:Late {name: 'l' + i, n: CASE WHEN i > 140 THEN toString(i) ELSE i END, "
    "day: CASE WHEN i > 140 THEN datetime('2020-01-01T10:00:00Z') ELSE date('2020-01-01') END, "
    "made: CASE i WHEN 149 THEN '17/05/2017' WHEN 148 THEN '05/17/2017' ELSE '07/0' + (1 + i % 9) + '/2017' END}) "
    "WITH n, i WHERE i > 140 SET n.opt = i, n.due = '2021-03-0' + (1 + i % 9)",
    "CREATE (:Rare {name: 'r', opt: 146, score: 'high'})",
    "UNWIND range(1, 130) AS i CREATE (:Pad {name: 'p' + i, t: 'pad x', ratio: 0.5, word: 'w', pay: i, odd: '1'})",
    "CREATE (:Pad {name: 'p late', t: 'pad  x', ratio: 1.0 / 0.0, pay: '7', odd: 'n/a'})",
    "CREATE (:Pad {name: 5, t: 'other', ratio: 2.5, word: 3, pay: 'n/a', odd: '2'})",
    "MATCH (a:Staff), (b:Rare) UNWIND [20, 20, 40] AS w CREATE (a)-[:KNOWS {w: w}]->(b)",
    # A key that nothing has any more stays in the server's list.
    "CREATE (n:Rare {stale: 1}) REMOVE n.stale DELETE n",
)


@pytest.fixture(scope="module")
def late(emptied_neo4j_uri: str) -> Iterator[NativeGraph]:
    with database(emptied_neo4j_uri) as driver:
        with driver.session() as session:
            for text in _LOAD:
                session.run(text).consume()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(introspect, "SAMPLE", 100)
            with NativeGraph(Connection(emptied_neo4j_uri)) as graph:
                yield graph


def _left_out(what: str, wanted: str) -> str:
    return f"{what} cannot be compared with {wanted} and {'is' if what.startswith('1 ') else 'are'} left out"


#: Programs, their tables, what they give, and one of the warnings.
_ASKED: list[tuple[str, str | None, list[str], str | None]] = [
    ("FindAll() FilterConcept(Customer) FilterNum(vip, 1, =) Count()", None, ["1"], None),
    ("FindAll() FilterNum(vip, 1, =) QueryName()", None, ["late", "s"], None),
    ("FindAll() FilterYear(joined, 2024, =) QueryName()", None, ["late"], None),
    ("FindAll() FilterConcept(Customer) SelectAmong(score, largest)", None, ["late"], None),
    ("Find(late) Relate(BOUGHT, forward) QFilterNum(price, 70, >) QueryName()", None, ["late thing"], None),
    ("Find(late) Relate(BOUGHT, forward) QFilterStr(gift, true) QueryName()", None, ["late thing"], None),
    ("Find(late) QueryAttr(joined)", None, ["2024-05-05T10:00:00Z"], None),
    ("FindAll() FilterStr(codes, b c) QueryName()", None, ["late"], None),
    ("FindAll() FilterConcept(Customer)", "show sum(score), count(score)", ["129.5 | 121"], None),
    # What another label has matters where it is looked at, and not where it is left out anyway.
    ("FindAll() FilterNum(score, 5, >) Count()", None, ["1"], _left_out("1 value (text)", "a quantity")),
    ("FindAll() FilterNum(score, 5, >) FilterConcept(Customer) Count()", None, ["1"], None),
    ("FindAll() FilterConcept(Customer)", "where year(joined) = 2024 show name", ["late"], None),
    ("FindAll() FilterNum(opt, 145, >) Count()", None, ["6"], None),
    ("FindAll() FilterConcept(Late)", "where opt is known show count()", ["10"], None),
    ("FindAll() FilterConcept(Late)", "group by day show count()", ["2020-01-01 | 140", "2020-01-01T10:00:00Z | 10"], None),
    ("FindAll() FilterNum(n, 0, >) Count()", None, ["150"], None),
    ("FindAll() FilterYear(day, 2020, =) Count()", None, ["150"], None),
    # Only known beyond the sample: the key alone, and in another spelling.
    ("FindAll() FilterDate(due, 2021-03-04, =) Count()", None, ["1"], None),
    ("FindAll() FilterYear(Due, 2021, =) Count()", None, ["10"], None),
    # No format of dates reads both 17/05 and 05/17, so that these are texts.
    ("FindAll() FilterStr(made, 17/05/2017) QueryName()", None, ["l149"], None),
    # Texts that are not all numbers are texts, wherever the odd one is.
    ("FindAll() FilterNum(pay, 0, >) Count()", None, ["130"], _left_out("2 values (text)", "a quantity")),
    ("FindAll() FilterStr(odd, 1) Count()", None, ["130"], None),
    ("FindAll() FilterStr(word, w) Count()", None, ["130"], _left_out("1 value (quantity)", "a text")),
    # White space is folded, wherever it is.
    ("FindAll() FilterStr(t, pad x) Count()", None, ["131"], None),
    ("FindAll() FilterConcept(Pad)", "group by t show count()", ["other | 1", "pad x | 131"], None),
    # What is infinite is no number.
    ("FindAll() FilterNum(ratio, 1, >) QueryName()", None, ["5"], _left_out("1 value (text)", "a quantity")),
    ("FindAll() FilterNum(ratio, 0.5, !=) QueryName()", None, ["5"], _left_out("1 value (text)", "a quantity")),
    (
        "FindAll() FilterConcept(Pad) SelectAmong(ratio, largest)",
        None,
        ["5"],
        "ratio: 1 value is not of type quantity and does not compete",
    ),
    # Names that are no texts.
    ("Find(5) QueryAttr(word)", None, ["3"], None),
    # Equal relationships are several.
    ("Find(s)", "show sum(KNOWS@w), count(KNOWS@w), count(KNOWS)", ["80 | 3 | 3"], None),
    ("Find(s) Relate(KNOWS, forward)", "show sum(@w), count()", ["80 | 3"], None),
]


@pytest.mark.parametrize(("program", "table", "expected", "warning"), _ASKED, ids=[f"{one[0]} {one[1] or ''}" for one in _ASKED])
def test_late_values_count(late: NativeGraph, program: str, table: str | None, expected: list[str], warning: str | None) -> None:
    answer = late.query(program) if table is None else late.query(program, table=table)
    assert answer.texts == expected
    assert [one for one in answer.warnings if "compare" in one or "compete" in one] == ([] if warning is None else [warning])


def test_what_nothing_has_is_no_name(late: NativeGraph) -> None:
    with pytest.raises(UnknownNameError):
        late.kopl("FindAll() FilterNum(stale, 1, =) Count()")


def test_a_snapshot_says_the_same(late: NativeGraph) -> None:
    with pytest.warns(UserWarning, match="equal to another"):
        local = late.snapshot()
    for program, table, expected, warning in _ASKED:
        # Equal relationships are one statement there, and names have one spelling.
        if "KNOWS" not in program + (table or "") and "Due" not in program:
            answer = local.query(program) if table is None else local.query(program, table=table)
            assert answer.texts == expected, program
            assert warning is None or warning in answer.warnings


def test_a_mapping_file_may_name_what_is_late(late: NativeGraph, tmp_path: Path, emptied_neo4j_uri: str) -> None:
    place = tmp_path / "map.toml"
    place.write_text('[node.Late.property.opt]\npredicate = "option"\n[relationship.BOUGHT]\nqualifiers = {gift = "present"}\n')
    with condgraph.open(emptied_neo4j_uri, mapping=place) as graph:
        assert graph.kopl("FindAll() FilterNum(option, 145, >) Count()").values == [5]
        assert graph.kopl("Find(late) Relate(BOUGHT, forward) QFilterStr(present, true) QueryName()").values == ["late thing"]


def test_what_cannot_be_counted_in_time_is_said(late: NativeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Connection.read

    def slow(self: Connection, text: str, parameters: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        if "AS spaced" in text:
            # The server is busy for longer than there is time.
            text = f"UNWIND range(1, 1000000) AS x UNWIND range(1, 1000000) AS y WITH count(*) AS busy {text}"
        return plain(self, text, parameters, **more)

    monkeypatch.setattr(Connection, "read", slow)
    monkeypatch.setattr("condgraph.cypher.native.refresh.MAX_COUNTING", 0.2)
    late.refresh()
    answer = late.kopl("FindAll() FilterNum(vip, 1, =) QueryName()")
    late.refresh()
    assert answer.values == ["s"]
    assert "'vip' could not be counted in time: it is what the first nodes and relationships of each kind say" in answer.warnings


def test_nothing_is_unloaded_and_nothing_is_logged(
    late: NativeGraph, emptied_neo4j_uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ReadOnlyError):
        late.unload("neo4j")
    # The server has things to say of labels that are not there, also to a driver of somebody else.
    with neo4j.GraphDatabase.driver(emptied_neo4j_uri) as driver, condgraph.open(driver) as graph:
        assert isinstance(graph, NativeGraph)
        assert graph.kopl("Find(late) QueryAttr(score)").texts == ["9.5"]
    assert [record for record in caplog.records if "notification" in record.getMessage().lower()] == []


def test_an_empty_answer_explains_itself_within_a_part_of_its_time(late: NativeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "Find(late) Relate(KNOWS, forward) Relate(KNOWS, forward) QueryName()"
    (warning,) = late.kopl(program).warnings
    assert warning.startswith("the answer is empty: Relate returned nothing, Scan('KNOWS', forward, relations)")
    monkeypatch.setattr("condgraph.engine.stored_answer.EXPLAINING", (0.01, 0.01))
    plain = Connection.rows

    def slow(self: Connection, text: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        return plain(
            self, f"UNWIND range(1, 100000000) AS busy WITH count(*) AS busy {text}" if " AS step" in text else text, parameters
        )

    monkeypatch.setattr(Connection, "rows", slow)
    assert late.kopl(program).warnings == [
        "the answer is empty: the step that left nothing is unknown; the time for explaining was over after 0 changes"
    ]
