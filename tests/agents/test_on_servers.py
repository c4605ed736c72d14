"""The tools of agents over graphs on servers give what they give in process."""

from __future__ import annotations

from typing import Any

import pytest

import condgraph
from condgraph.agents.toolbox import Toolbox, plain
from condgraph.engine.errors import UnknownNameError
from tests.support.agents import CAPITAL, samples

CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("find", ("Nepal",), {}),
    ("find", ("capital",), {}),
    ("query", (CAPITAL,), {}),
    ("query", ("Find($c) Relate(country, backward) QueryName()",), {"parameters": {"c": "Nepal"}, "limit": 1}),
    ("evidence", ("FindAll() FilterNum(height, 8000 m, >) QueryName()",), {"limit": 2, "offset": 1}),
    ("match", ("(UNKNOWN city 1) <-[capital]- (Nepal)",), {"k": 1}),
    ("schema", (), {"predicate": "capital"}),
]


def compared(there: condgraph.Graph) -> None:
    here = Toolbox(samples(), timeout=60)
    tools = Toolbox(there, timeout=60)
    for name, arguments, options in CALLS:
        wanted, found = (plain(getattr(one, name)(*arguments, **options)) for one in (here, tools))
        if name == "schema":
            assert found["text"] == wanted["text"]
            continue
        assert found == wanted, name
    with pytest.raises(UnknownNameError):
        tools.query("Find(Nepall) Count()")
    assert "Nepal" in tools.find("Nepall").nearest


@pytest.mark.service
def test_oxigraph(oxigraph_server: Any) -> None:
    with condgraph.open(f"sparql+{oxigraph_server.query}", graph="tools", update=oxigraph_server.update) as there:
        there.push(samples())  # type: ignore[attr-defined]
        compared(there)
        there.delete()


def test_neo4j(neo4j_uri: str) -> None:
    with condgraph.open(neo4j_uri, graph="tools") as there:
        there.delete()
        there.push(samples())  # type: ignore[attr-defined]
        compared(there)
        there.delete()
