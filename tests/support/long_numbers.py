"""Integers that are adjacent where floats are not, and checks that a graph keeps them apart."""

from __future__ import annotations

from random import Random
from typing import Any

import condgraph

_BITS = {"BIGINT": 63, "UBIGINT": 64, "HUGEINT": 100}


def long_numbers(kind: str) -> list[int]:
    """Return numbers of a SQL type: several around each of some floats, and the ends of its range."""
    random, bits = Random(7), _BITS[kind]
    floats = [2**53, 2**60, *(random.randrange(2**53, 2 ** (bits - 1)) for _ in range(3))]
    numbers = {5, 0, 2**bits - 1, *(number + offset for number in floats for offset in (-1, 0, 1, 2))}
    if kind != "UBIGINT":
        numbers |= {-number for number in numbers} | {-(2**63)}
    return random.sample(sorted(numbers), len(numbers))


def check_long_numbers(graph: condgraph.Graph, numbers: list[int], key: str = "n") -> None:
    """Compare a graph in which each number is a property of one node with the numbers."""

    def rows(text: str, **parameters: int) -> list[Any]:
        answer = graph.query(f"MATCH (x) {text}", language="cypher", parameters=parameters)
        return [row if len(row) > 1 else row[0] for row in answer.values]

    assert rows(f"RETURN x.{key} AS n ORDER BY n") == sorted(numbers)
    assert rows(f"RETURN sum(x.{key}) AS s, min(x.{key}) AS a, max(x.{key}) AS b, count(DISTINCT x.{key}) AS d") == [
        (sum(numbers), min(numbers), max(numbers), len(numbers))
    ]
    for number in (*numbers[:12], 2**53 + 1):
        assert rows(f"WHERE x.{key} = $n RETURN count(*) AS n", n=number) == [int(number in numbers)]
        assert rows(f"WHERE x.{key} > $n RETURN count(*) AS n", n=number) == [sum(other > number for other in numbers)]
        for operator, count in (("=", numbers.count(number)), ("<", sum(other < number for other in numbers))):
            answer = graph.kopl(f"FindAll() FilterNum({key}, {number}, {operator}) Count()")
            assert answer.values == [count], (number, operator)
    table = graph.query("FindAll()", table=f"show {key} order by {key}")
    assert [row[0].number for row in table.values] == sorted(numbers)
    assert [record[key] for record in table.data()] == sorted(numbers)
    assert [int(number) for number in table.to_arrow()[key].to_pylist()] == sorted(numbers)
    text = str(graph.schema())
    assert str(min(numbers)) in text
    assert str(max(numbers)) in text
