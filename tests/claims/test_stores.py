"""The verdict on a claim is the same on every store."""

from __future__ import annotations

from typing import Any

import pytest

import condgraph
from tests.claims.test_rules import items

CLAIMS: list[tuple[list[tuple[str, str, str]], dict[str, Any]]] = [
    ([("Avalon", "capital", "Perth")], {}),
    ([("Avalon", "capital", "Bo")], {"single": ["capital"]}),
    ([("Avalon", "capital", "Quay")], {"single": ["capital"]}),
    ([("Brigand", "NOT capital", "Quay")], {}),
    ([("Ann", "born", "1961")], {"single": ["born"]}),
    ([("Ann", "height", "1.7 metre")], {}),
    ([("Ann", "lives in", "Cape")], {"closed": ["lives in"]}),
    ([("Ann", "lives in", "UNKNOWN 1"), ("UNKNOWN 1", "near", "Quay")], {}),
    ([("Perth", "instance of", "city")], {}),
    ([("Perth", "instance of", "UNKNOWN 1")], {}),
    ([("UNKNOWN 1", "motto", "Do it")], {}),
    ([("Perth", "UNKNOWN relation", "Quay")], {}),
    ([("Avalon", "capitl", "Prth")], {}),
    ([("Quay", "near", "Perth")], {"nearest": 1}),
]


@pytest.mark.service
@pytest.mark.parametrize("store", ["neo4j", "oxigraph", pytest.param("virtuoso", marks=pytest.mark.slow)])
def test_same_verdicts(store: str, request: pytest.FixtureRequest) -> None:
    local = condgraph.open()
    local.add(items())
    if store == "neo4j":
        there: Any = condgraph.open(request.getfixturevalue("neo4j_uri"), graph="claims")
    else:
        server: Any = request.getfixturevalue(f"{store}_server")
        options = {} if store == "virtuoso" else {"update": server.update}
        there = condgraph.open(f"sparql+{server.query}", graph="claims", **options)
    there.delete()
    there.add(items())
    try:
        for claim, given in CLAIMS:
            here, found = local.verify(claim, **given), there.verify(claim, **given)
            assert found.data() == here.data(), claim
    finally:
        there.delete()
        there.close()
