"""An id where a name is asked for: every store offers the name of the entity that has it first, however
little the two are alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import UnknownNameError
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from tests.support.stores import empty_graph, marked

ITEMS: list[Any] = [
    Entity("Q11", "Ōgaki"),
    Entity("Q12", "q11 square"),
    Entity("c1", "ann", EntityKind.CONCEPT),
    Entity("tilde'\"\\", "Cy"),
    Entity("x", "Cy"),
    Member("Q11", "c1"),
    Statement("Q11", "twin", Ref("Q12")),
    Statement("tilde'\"\\", "twin", Ref("x")),
]


@pytest.fixture(params=["duckdb", *marked("neo4j", "oxigraph", nightly=("virtuoso",))])
def there(request: pytest.FixtureRequest) -> Any:
    """An empty graph on a store."""
    with empty_graph(request, "ids for names") as graph:
        yield graph


def refused(ask: Callable[[], Any]) -> tuple[str, tuple[str, ...], str | None]:
    """What is said of a name."""
    with pytest.raises(UnknownNameError) as caught:
        ask()
    return caught.value.message, tuple(caught.value.candidates), caught.value.hint


def test_an_id_for_a_name(there: Any) -> None:
    here = condgraph.open("memory:")
    here.add(ITEMS)
    there.push(here)
    for ident, name in (("Q11", "Ōgaki"), ("c1", "ann"), ("x", "Cy"), ("tilde'\"\\", "Cy")):
        program = [{"function": "Find", "inputs": [ident], "dependencies": []}]
        said = refused(lambda program=program: here.query(program))  # type: ignore[misc]
        assert said[1][0] == name
        assert said[2] == "it is the id of an entity; Find takes names"
        assert refused(lambda program=program: there.query(program)) == said  # type: ignore[misc]
    for name in ("Q13", "an", "\u2028", "a" * 5_000):
        program = [{"function": "Find", "inputs": [name], "dependencies": []}]
        assert refused(lambda program=program: there.query(program)) == refused(lambda program=program: here.query(program))  # type: ignore[misc]
