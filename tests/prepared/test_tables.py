"""Prepared programs that give tables, by a clause or by functions of LLM queries: what is given for
a parameter is a name or a value there as well.
"""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import OptionError, ParseError, UnknownNameError
from condgraph.graph import Graph

ROWS = """order,customer,country,amount,a.b,^up
o1,Ann,France,10 euro,5,1
o2,Ann,France,20 euro,7,2
o3,Bob,Peru,5 euro,9,2
o4,Cid,Peru,1 euro,1,3
"""
OF = "Find($customer) Relate(customer, backward)"
CLAUSE = "group by country show count(), sum(amount)"
ALL = "Query1: \"get_information(relation='customer')\"\n"
GROUPED = ALL + "Query2: \"group_by(set='output_of_query1', key='country')\"\n"


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    path = tmp_path_factory.mktemp("orders") / "orders.csv"
    path.write_text(ROWS)
    found = condgraph.open()
    found.load(path, key="order", refs=["customer", "country"])
    return found


def test_a_clause_stays_with_the_program(orders: Graph) -> None:
    totals = orders.prepare(OF, table=CLAUSE)
    for _ in range(5):  # the plan is kept after some
        for name, row in (("Ann", ("France", "2", "30 euro")), ("Bob", ("Peru", "1", "5 euro"))):
            found = totals(customer=name)
            assert found.columns == ("country", "count()", "sum(amount)")
            assert found.cells == [row]
            assert {one.subject.name for one in found.evidence_of(0)} == ({"o1", "o2"} if name == "Ann" else {"o3"})
            assert found.check()
            assert found.data()[0]["sum(amount) unit"] == "euro"
    assert totals.run({"customer": "Bob"}, limit=0).cut == 1


def test_a_clause_is_read_when_the_program_is(orders: Graph) -> None:
    with pytest.raises(ParseError, match="of the table"):
        orders.prepare(OF, table="grup by country")
    with pytest.raises(OptionError, match="not int"):
        orders.prepare(OF, table=3)
    # Names are those of the graph that is asked then.
    prepared = orders.prepare(OF, table="group by contry")
    with pytest.raises(UnknownNameError) as error:
        prepared(customer="Ann")
    assert "country" in error.value.candidates


def test_from_threads(orders: Graph) -> None:
    totals, found = orders.prepare(OF, table=CLAUSE), list[Any]()

    def ask(name: str) -> None:
        found.extend((name, totals(customer=name).cells) for _ in range(50))

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("Ann", "Bob")]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(found) == 100
    assert all(cells == [("France", "2", "30 euro") if name == "Ann" else ("Peru", "1", "5 euro")] for name, cells in found)


@pytest.mark.parametrize(
    ("program", "given", "cells"),
    [
        (GROUPED + "Query3: \"having(set='output_of_query2', count > $least)\"", 1, [("France", "2"), ("Peru", "2")]),
        (GROUPED + "Query3: \"having(set='output_of_query2', count > $least)\"", 2, []),
        (ALL + "Query2: \"group_by(set='output_of_query1', key=$key)\"", "country", [("France", "2"), ("Peru", "2")]),
        (ALL + "Query2: \"group_by(set='output_of_query1', key='customer', aggregate='sum', of=$of)\"", "a.b",
         [("Ann", "12"), ("Bob", "9"), ("Cid", "1")]),
        (ALL + "Query2: \"group_by(set='output_of_query1', key='customer', aggregate='sum', of=$of)\"", "^up",
         [("Ann", "3"), ("Bob", "2"), ("Cid", "3")]),
        (ALL + "Query2: \"group_by(set='output_of_query1', key='customer', aggregate='sum', of='^up')\"", None,
         [("Ann", "3"), ("Bob", "2"), ("Cid", "3")]),
        (ALL + "Query2: \"top(set='output_of_query1', key='amount', n=$n)\"", 1, [("Ann", "20 euro")]),
    ],
)  # fmt: skip
def test_values_of_llm_queries(orders: Graph, program: str, given: Any, cells: Any) -> None:
    prepared = orders.prepare(program)
    assert prepared.run(dict.fromkeys(prepared.parameters, given)).cells == cells


@pytest.mark.parametrize(
    ("program", "given"),
    [
        (GROUPED + "Query3: \"having(set='output_of_query2', condition=$test)\"", "count() > 1 or count() > 0"),
        (ALL + "Query2: \"group_by(set='output_of_query1', key='country', aggregate=$sum)\"", "sum(amount), count()"),
        (ALL + "Query2: \"group_by(set='output_of_query1', key='country', aggregate=$sum, of='amount')\"", "sum"),
        (ALL + "Query2: \"order_by(set='output_of_query1', key='amount', order=$order)\"", "desc"),
    ],
)
def test_clauses_are_no_values(orders: Graph, program: str, given: str) -> None:
    with pytest.raises(ParseError, match="a parameter is a name or a value"):
        (prepared := orders.prepare(program)).run(dict.fromkeys(prepared.parameters, given))


def test_a_path_is_no_name(orders: Graph) -> None:
    prepared = orders.prepare(ALL + "Query2: \"group_by(set='output_of_query1', key=$key)\"")
    for path in ("customer.country", "^customer", "zzz yyy"):
        with pytest.raises(UnknownNameError, match=re.escape(path)):
            prepared(key=path)


def test_what_is_given_was_not_written(orders: Graph) -> None:
    for name in ("Ann) Relate(customer", "$customer"):
        with pytest.raises(UnknownNameError) as error:
            orders.prepare(OF)(customer=name)
        assert error.value.hint is None
    with pytest.raises(UnknownNameError, match="not closed before Relate"):
        orders.query("Find(Ann Relate(customer, backward)")
    with pytest.raises(UnknownNameError, match="prepare"):
        orders.query(OF)


@pytest.mark.parametrize("source", [3, ["orders"], b"orders"])
def test_a_source_that_is_no_name(orders: Graph, source: Any) -> None:
    with pytest.raises(OptionError, match="a source is called by its name"):
        orders.query(ALL, source=source)
    with pytest.raises(OptionError, match="a source is called by its name"):
        orders.prepare(GROUPED, source=source)()
