"""Grammars of KoPL that know the graph: behind `Find(e)` stands what e has, all of it and nothing else,
and the same on every store.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import OptionError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import Quantity
from condgraph.grammars.grammar import Grammar
from condgraph.graph import Graph
from condgraph.languages.kopl.syntax import parse
from condgraph.languages.kopl.table import FUNCTIONS
from tests.support.gbnf import Gbnf
from tests.support.lanes import by_lane
from tests.support.schemas import Schemas
from tests.support.stores import marked, server_of
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


#: What is asked of what an entity has: of one set, by an attribute or a relation.
_ASKS = {name for name, one in FUNCTIONS.items() if one.inputs == 1 and {"key", "relation"} & set(one.texts)}


def test_trees_ask_an_entity_for_what_it_has(odd: Graph) -> None:
    from jsonschema import Draft202012Validator

    made = odd.grammar("kopl", entities=ENTITIES, aware=True, format="json-schema")
    free = Draft202012Validator(odd.grammar("kopl", entities=ENTITIES, format="json-schema").schema)
    judge = Draft202012Validator(made.schema)
    judge.check_schema(made.schema)
    text = Gbnf(odd.grammar("kopl", entities=ENTITIES, aware=True, depth=4, steps=12).text)
    facts = {name: _tried(odd, name) for name in ENTITIES}
    trees, rng, seen, both = Schemas(made.schema or {}, deep=3), random.Random(21), 0, 0
    for number in range(by_lane(400, 3000, 30000)):
        tree = trees.derive(rng)
        program = made.program(json.dumps(tree))
        odd.explain(program, language="kopl")
        assert number % 20 or (judge.is_valid(tree) and free.is_valid(tree))
        for function, given in _calls(tree["program"]):
            name = given.get("of", {}).get("Find", {}).get("name") if function in _ASKS else None
            if name is not None:
                asked = (given["relation"], given["direction"]) if function == "Relate" else (given["key"], "value")
                assert asked in facts[name]
                seen += 1
        if number % 8 == 0 and program.count("(") < 9:
            # What a tree may say, a text may say under the same awareness.
            assert text.accepts(program), program
            both += 1
    assert seen > 40
    assert both > 10
    # All of it is there.
    for name, those in facts.items():
        for predicate, way in those:
            of = {"Find": {"name": name}}
            relate = {"Relate": {"of": of, "relation": predicate, "direction": way}}
            call = {"QueryAttr": {"of": of, "key": predicate}} if way == "value" else {"QueryName": {"of": relate}}
            assert judge.is_valid({"program": call})


def test_texts_are_trees_under_the_same_awareness(odd: Graph) -> None:
    from jsonschema import Draft202012Validator

    text = Gbnf(odd.grammar("kopl", entities=ENTITIES, aware=True, depth=1, steps=3).text)
    judge = Draft202012Validator(odd.grammar("kopl", entities=ENTITIES, aware=True, format="json-schema").schema)
    rng = random.Random(22)
    for _ in range(by_lane(80, 600, 6000)):
        program = text.derive(rng)
        assert judge.is_valid({"program": _tree(program)}), program


def _calls(tree: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """All calls of a tree."""
    function, given = next(iter(tree.items()))
    yield function, given
    for one in ("of", "with"):
        if one in given:
            yield from _calls(given[one])


def _tree(program: str) -> dict[str, Any]:
    """A program as a tree."""
    made: list[dict[str, Any]] = []
    for step in parse(program)[0]:
        sets = zip(("of", "with"), (made[one] for one in step.dependencies), strict=False)
        texts = zip(FUNCTIONS[step.function].texts, step.texts, strict=True)
        made.append({step.function: {**dict(sets), **dict(texts)}})
    return made[-1]


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


@pytest.mark.parametrize("format", ["gbnf", "regex", "lark", "json-schema"])
def test_names_of_several_and_things_without_facts(format: Any) -> None:
    # Lark reads every way at once: a small grammar is enough.
    small = {"depth": 1, "steps": 2} if format == "lark" else {}
    made = _forked().grammar("kopl", entities=["Springfield", "Nothing", "Ohio"], aware=True, format=format, **small)  # type: ignore[arg-type]
    accepts = _accepts(made)
    assert {program: accepts(program) for program in ACCEPTED} == ACCEPTED
    assert made.aware


def _accepts(made: Grammar) -> Callable[[str], bool]:
    """Whether a grammar has a program, by a reader of its format."""
    if made.format == "gbnf":
        return Gbnf(made.text).accepts
    if made.format == "regex":
        return lambda program: re.fullmatch(made.text, program) is not None
    if made.format == "json-schema":
        from jsonschema import Draft202012Validator

        judge = Draft202012Validator(made.schema)
        return lambda program: bool(judge.is_valid({"program": _tree(program)}))
    from lark import Lark
    from lark.exceptions import UnexpectedInput

    parser = Lark(made.text, start="root", parser="earley", lexer="dynamic")

    def reads(program: str) -> bool:
        try:
            parser.parse(program)
        except UnexpectedInput:
            return False
        return True

    return reads


def test_what_it_cannot_be_asked_for() -> None:
    graph = _forked()
    for language in ("llm_query", "pattern", "logic"):
        with pytest.raises(OptionError, match="option of grammars of KoPL") as raised:
            graph.grammar(language, entities=["Ohio"], aware=True)
        assert "kopl" in str(raised.value.hint)
    with pytest.raises(OptionError, match="needs the entities"):
        graph.grammar("kopl", aware=True)
    for format in ("gbnf", "json-schema"):
        with pytest.raises(OptionError, match="65 entities"):
            graph.grammar("kopl", entities=map(str, range(65)), aware=True, format=format)  # type: ignore[arg-type]


STORES = marked("neo4j", "oxigraph", nightly=("virtuoso",))


@pytest.mark.parametrize("server", STORES)
def test_it_is_the_same_on_servers(server: str, request: pytest.FixtureRequest) -> None:
    from tests.ask.test_on_servers import opened

    local = _forked()
    with opened(server_of(request, server), "aware") as remote:
        remote.delete()
        remote.push(local)  # type: ignore[attr-defined]
        names = ["Springfield", "Nothing", "Ohio"]
        for format in ("gbnf", "json-schema"):
            mine, theirs = (
                one.grammar("kopl", entities=names, aware=True, format=format)  # type: ignore[arg-type]
                for one in (local, remote)
            )
            assert theirs.text == mine.text
        remote.delete()
