"""Programs whose names and values are taken out as parameters say what they say without
preparation: values, texts, entities, warnings, evidence, errors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from condgraph.engine.errors import CondgraphError
from condgraph.graph import Graph
from tests.support.cases import case
from tests.support.lanes import by_lane, shared_graph
from tests.support.prepared import kopl_taken_out, llm_taken_out, said


def differences(graph: Graph, programs: list[Any], *, more: bool = True, **options: Any) -> list[Any]:
    found = []
    for program in programs:
        plain, open_, values = kopl_taken_out(program)
        _, names_open, names = kopl_taken_out(program, only=frozenset({"name"}))
        wanted = said(graph, plain, None, more=more, **options)
        for asked, given in ((open_, values), (names_open, names)):
            told = said(graph, asked, given, more=more, **options)
            if told != wanted:
                found.append((asked, given, wanted, told))
    return found


@pytest.mark.parametrize("name", ["small", "dev"])
def test_oracle_programs(name: str, oracle: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    if name == "dev" and by_lane(True, False, False):
        pytest.skip("the small base is tried in the quick lane")
    graph = shared_graph(tmp_path_factory, oracle / {"small": "kb_small.json", "dev": "kb.json"}[name])
    lines = (oracle / f"programs_{name}.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines[:: by_lane(40, 40, 1)]]
    found = differences(graph, [record["program"] for record in records])
    assert not found, found[:3]


@pytest.mark.parametrize("name", ["small"])
def test_one_prepared_program_for_many_names(name: str, oracle: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A program that is prepared once, and run again and again, says the same each time."""
    graph = shared_graph(tmp_path_factory, oracle / f"kb_{name}.json")
    lines = (oracle / f"programs_{name}.jsonl").read_text("utf-8").splitlines()
    kept: dict[str, tuple[Any, list[dict[str, str]]]] = {}
    for line in lines:
        _, open_, values = kopl_taken_out(json.loads(line)["program"], only=frozenset({"name"}))
        if values:
            kept.setdefault(json.dumps(open_), (graph.prepare(open_), []))[1].append(values)
    pool = sorted({value for _, several in kept.values() for values in several for value in values.values()})
    asked = 0
    for text, (prepared, several) in list(kept.items())[:: by_lane(16, 8, 1)]:
        # Names of other programs as well, of which many lead to nothing.
        more = [dict.fromkeys(several[0], pool[(asked * 7 + at) % len(pool)]) for at in range(4)]
        for values in [*several, *more, *several]:
            plain = json.loads(text)
            for step in plain:
                step["inputs"] = [values.get(one[1:], one) if one.startswith("$") else one for one in step["inputs"]]
            wanted = graph.kopl(plain)
            try:
                texts, printed = wanted.texts, list(map(repr, wanted.values))
            except CondgraphError as error:
                with pytest.raises(type(error)):
                    prepared.run(values).texts  # noqa: B018
                continue
            found = prepared.run(values)
            assert (found.texts, list(map(repr, found.values))) == (texts, printed), (text, values)
            if asked % 5 == 0:
                assert sorted(map(str, found.evidence)) == sorted(map(str, wanted.evidence))
                assert (found.warnings, found.entities) == (wanted.warnings, wanted.entities)
            asked += 1
    assert asked > 100


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_llm_queries_of_metaqa(hops: int, data: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    graph = shared_graph(tmp_path_factory, data / "metaqa" / "kb.txt", name="films")
    programs = json.loads((data / "trustuqa_programs" / f"metaqa_{hops}hop.json").read_text("utf-8"))
    plain = [program for program in programs.values() if program.strip() != "None"]
    for program in plain[:: len(plain) // by_lane(40, 150, 3000) or 1]:
        open_, values = llm_taken_out(program)
        # Places in the text differ.
        assert said(graph, open_, values, spans=False) == said(graph, program, None, spans=False), open_


@pytest.mark.parametrize("number", range(by_lane(4, 5, 40)))
def test_random_programs(number: int) -> None:
    """Also wrong ones, over graphs where names are what is syntax elsewhere."""
    given = case(number)
    graph = given.local
    tried = 0
    for program, options in given.asked[:: by_lane(3, 2, 1)]:
        if isinstance(program, str) and "Query1" in program:
            open_, values = llm_taken_out(program)
            if values:
                tried += 1
                wanted = said(graph, program, None, spans=False, **options)
                assert said(graph, open_, values, spans=False, **options) == wanted, (number, open_, values)
            continue
        try:
            plain, open_, values = kopl_taken_out(program)
        except CondgraphError:
            continue
        tried += 1
        for engine in (None, "sparql") if tried % 8 == 0 else (None,):
            asked = {**options, **({"engine": engine} if engine else {})}
            wanted = said(graph, plain, None, more=engine is None, **asked)
            assert said(graph, open_, values, more=engine is None, **asked) == wanted, (number, open_, values, asked)
    assert tried > 3
