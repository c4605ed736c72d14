"""Grammars of KoPL that know the graph: behind `Find(e)` stands what e has, all of it and nothing else,
and the same on every store.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import OptionError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import Quantity
from condgraph.graph import Graph
from tests.support.gbnf import Gbnf
from tests.support.lanes import by_lane
from tests.support.world import QUOTES, world

_STRING = r'"(?:[^"\\]|\\.)*"'
_LED = re.compile(rf"Find\(({_STRING})\) (Relate|Filter(?!Concept)\w+|Query\w*|SelectAmong)\(({_STRING})?(?:, ({_STRING}))?")
ENTITIES = ["Ann", "Bo", QUOTES]


@pytest.fixture(scope="module")
def odd() -> Graph:
    return world()


def test_behind_an_entity_stands_what_it_has(odd: Graph) -> None:
    grammar = Gbnf(odd.grammar("kopl", entities=ENTITIES, aware=True).text)
    free = Gbnf(odd.grammar("kopl", entities=ENTITIES).text)
    rng, seen = random.Random(20), 0
    facts = {name: _tried(odd, name) for name in ENTITIES}
    for _ in range(by_lane(300, 2000, 20000)):
        program = grammar.derive(rng)
        odd.explain(program, language="kopl")
        assert free.accepts(program)
        for found in _LED.finditer(program):
            name, function = json.loads(found[1]), found[2]
            if function == "Relate":
                assert (json.loads(found[3]), json.loads(found[4])) in facts[name]
                seen += 1
            elif function.startswith(("Filter", "QueryAttr")) or function == "SelectAmong":
                # Behind two sets an end may ask for anything: the pattern sees one set alone at the beginning.
                assert found.start() > 0 or (json.loads(found[3]), "value") in facts[name]
    assert seen > 10
    # All of it is there.
    for name, those in facts.items():
        for predicate, way in those:
            find = f"Find({json.dumps(name, ensure_ascii=False)})"
            text = json.dumps(predicate, ensure_ascii=False)
            step = f"QueryAttr({text})" if way == "value" else f'Relate({text}, "{way}") QueryName()'
            assert grammar.accepts(f"{find} {step}")


def _tried(graph: Graph, name: str) -> set[tuple[str, str]]:
    """What gives something for an entity, tried predicate by predicate."""
    found = set()
    steps: list[tuple[str, str, list[str]]] = []
    for one in graph.schema().predicates:
        steps += [(one.name, way, [one.name, way]) for way in ("forward", "backward")]
        steps.append((one.name, "value", [one.name]))
    for predicate, way, inputs in steps:
        program = [
            {"function": "Find", "inputs": [name], "dependencies": []},
            {"function": "QueryAttr" if way == "value" else "Relate", "inputs": inputs, "dependencies": [0]},
        ]
        try:
            if graph.kopl(program).values:
                found.add((predicate, way))
        except condgraph.CondgraphError:
            continue
    return found


def _forked() -> Graph:
    """Two entities of one name that have other things; one that has nothing; one that has only values."""
    graph = condgraph.open()
    items: list[Any] = [Entity("s1", "Springfield"), Entity("s2", "Springfield"), Entity("n", "Nothing"), Entity("o", "Ohio")]
    items += [Statement("s1", "state", Ref("o")), Statement("s2", "mayor", "Ann"), Statement("o", "area", Quantity(5, "km2"))]
    graph.add(items, source="cities")
    return graph


ACCEPTED = {
    'Find("Springfield") Relate("state", "forward") QueryName()': True,
    'Find("Springfield") Relate("state", "backward") QueryName()': False,
    'Find("Springfield") QueryAttr("mayor")': True,
    'Find("Springfield") QueryAttr("area")': False,
    'Find("Springfield") Relate("state", "forward") QueryAttr("area")': True,
    'Find("Nothing") QueryName()': True,
    'Find("Nothing") Count()': True,
    'Find("Nothing") Relate("state", "forward") QueryName()': False,
    'Find("Nothing") Find("Ohio") Or() QueryAttr("area")': True,
    'Find("Nothing") Find("Springfield") QueryRelation()': True,
    'Find("Ohio") Relate("state", "backward") QueryAttr("mayor")': True,
    'Find("Ohio") FilterNum("area", "3 km2", ">") Count()': True,
    'Find("Ohio") FilterStr("mayor", "Ann") Count()': False,
    'FindAll() FilterStr("mayor", "Ann") QueryName()': True,
    'Find("Paris") QueryName()': False,
}


@pytest.mark.parametrize("format", ["gbnf", "regex"])
def test_names_of_several_and_things_without_facts(format: Any) -> None:
    text = _forked().grammar("kopl", entities=["Springfield", "Nothing", "Ohio"], aware=True, format=format).text
    accepts = Gbnf(text).accepts if format == "gbnf" else re.compile(text).fullmatch
    assert {program: bool(accepts(program)) for program in ACCEPTED} == ACCEPTED


def test_what_it_cannot_be_asked_for() -> None:
    graph = _forked()
    with pytest.raises(OptionError, match="KoPL as text"):
        graph.grammar("llm_query", entities=["Ohio"], aware=True)
    with pytest.raises(OptionError, match="KoPL as text"):
        graph.grammar("kopl", entities=["Ohio"], aware=True, format="json-schema")
    with pytest.raises(OptionError, match="needs the entities"):
        graph.grammar("kopl", aware=True)
    with pytest.raises(OptionError, match="65 entities"):
        graph.grammar("kopl", entities=map(str, range(65)), aware=True)


STORES = [
    pytest.param(fixture, marks=[pytest.mark.service, pytest.mark.xdist_group(group)], id=group)
    for fixture, group in (("neo4j_uri", "neo4j"), ("virtuoso_server", "virtuoso"), ("oxigraph_server", "oxigraph"))
]


@pytest.mark.parametrize("server", STORES)
def test_it_is_the_same_on_servers(server: str, request: pytest.FixtureRequest) -> None:
    from tests.ask.test_on_servers import opened

    local = _forked()
    with opened(request.getfixturevalue(server), "aware") as remote:
        remote.delete()
        remote.push(local)  # type: ignore[attr-defined]
        names = ["Springfield", "Nothing", "Ohio"]
        assert remote.grammar("kopl", entities=names, aware=True).text == local.grammar("kopl", entities=names, aware=True).text
        remote.delete()
