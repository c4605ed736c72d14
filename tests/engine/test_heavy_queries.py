"""SPARQL that is too much for a parser on the stack: an error of its own, in a process that goes
on.
"""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import condgraph
from condgraph.engine.errors import UnsupportedError
from condgraph.sparql.text.scan import MAX_DEPTH, is_heavy
from tests.support.lanes import sample
from tests.support.pace import quick_enough

#: Each ends a process that parses it: so many groups, brackets, signs, patterns, objects, terms.
TOO_MUCH = {
    "brackets": "f\"SELECT * {{ FILTER({'(' * 50_000}1{')' * 50_000}) }}\"",
    "groups": "f\"SELECT * {'{' * 50_000}{'}' * 50_000}\"",
    "negations": "f\"SELECT * {{ FILTER({'!' * 100_000}1) }}\"",
    "exists": "f\"SELECT * {{ {'FILTER NOT EXISTS {' * 1_000}{'}' * 1_000} }}\"",
    "functions": "f\"SELECT * {{ FILTER({'str(' * 2_000}1{')' * 2_000}) }}\"",
    "patterns": "f\"SELECT * {{ {'?s ?p ?o . ' * 20_000} }}\"",
    "objects": "f\"SELECT * {{ ?s ?p {'?o , ' * 20_000} 1 }}\"",
    "a list": "f\"SELECT * {{ ?s ?p ({'1 ' * 20_000}) }}\"",
    "triple terms": "f\"SELECT * {{ ?s ?p {'<<( ?a ?b ' * 20_000}?c{' )>>' * 20_000} }}\"",
    "unions": "f\"SELECT * {{ {'{} UNION ' * 20_000}{{}} }}\"",
}
_PROGRAM = """
import sys
import condgraph
from condgraph.engine.errors import CondgraphError
graph = condgraph.open("memory:")
graph.load([{"name": "Ann", "age": 5}])
for text in sys.argv[1:]:
    for dialect in ("standard", "kqapro"):
        try:
            graph.sparql(eval(text), dialect=dialect)
        except CondgraphError as error:
            print(type(error).__name__, error)
    print(graph.sparql("ASK {}"), flush=True)
"""


def test_queries_that_no_stack_holds() -> None:
    """A typed error, and the process answers the next query: each line that is missing is one that ended
    it.
    """
    cases = sample(list(TOO_MUCH), 4)
    command = [sys.executable, "-c", _PROGRAM, *map(TOO_MUCH.__getitem__, cases)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    lines = iter(done.stdout.splitlines())
    for case in cases:
        errors, answer = [next(lines, ""), next(lines, "")], next(lines, "")
        assert [line.partition(" ")[0] for line in errors] == ["ParseError"] * 2, (case, done.stderr[-1000:])
        assert "nested too deeply" in errors[0]
        assert answer, case
    assert done.returncode == 0, (done.returncode, done.stderr[-1000:])


def test_what_is_heavy() -> None:
    """Long lists are light; what stands within each other, or in a row, is not; strings, IRIs and
    comments do not count.
    """
    assert not is_heavy(f"SELECT * {{ VALUES ?x {{ {'1 ' * 50_000} }} }}")
    assert not is_heavy(f"SELECT * {{ ?s ?p ?o FILTER(?o IN ({', '.join(f'<http://e/{i}>' for i in range(20_000))})) }}")
    assert not is_heavy(f"SELECT * {{ ?s ?p '{'(' * 1000}', <http://e/{'(' * 1000}> }} # {'{' * 1000}")
    assert not is_heavy(f"SELECT * {{ ?s ?p ?o FILTER({'(' * (MAX_DEPTH - 3)}1{')' * (MAX_DEPTH - 3)}) }}")
    assert is_heavy(f"SELECT * {{ ?s ?p ?o FILTER({'(' * MAX_DEPTH}1{')' * MAX_DEPTH}) }}")


def test_as_many_unknown_names_as_steps_are_read_once() -> None:
    """Where each of them stands is found in one reading of the text, not in one each."""
    graph = condgraph.open("memory:")
    graph.load([{"name": "Ann", "age": 5}])
    program = "FindAll() " + "Relate(age, forward) " * 900 + "Count()"
    begin = time.process_time()
    assert graph.kopl(program, on_unknown="empty").texts == ["0"]
    assert quick_enough(time.process_time() - begin, 5)


def test_a_program_of_many_steps_on_the_rdf_store() -> None:
    """An error that says what the store does not support, with the stack that Python gives
    everybody: Hypothesis may have left a deeper one.
    """
    graph = condgraph.open("memory:")
    graph.load([{"name": "Ann", "age": 5}])
    program = "FindAll() " + "Relate(age, forward) " * 900 + "Count()"
    assert graph.kopl(program, on_unknown="empty").texts == ["0"]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    try:
        with pytest.raises(UnsupportedError, match="so many steps"):
            graph.kopl(program, on_unknown="empty", engine="sparql")
    finally:
        sys.setrecursionlimit(limit)
