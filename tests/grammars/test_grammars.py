"""Grammars of programs: all that they accept parses and resolves, and every program of the oracle is
accepted. Texts are derived, and accepted, by readers of their own (`tests/support/gbnf.py`, Lark, `re`,
jsonschema).
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import OptionError, ParseError
from condgraph.engine.facts import Ref, Statement
from condgraph.grammars.grammar import constraint
from condgraph.graph import Graph
from condgraph.languages.kopl.table import FUNCTIONS
from tests.support.gbnf import Gbnf
from tests.support.lanes import by_lane
from tests.support.world import QUOTES, items, world


@pytest.fixture(scope="module")
def odd() -> Graph:
    """A graph whose names need quoting, with every type of value."""
    return world()


@pytest.fixture(scope="module")
def small(oracle: Path) -> Graph:
    graph = condgraph.open()
    graph.load(oracle / "kb_small.json")
    return graph


def written(program: list[dict[str, Any]]) -> str:
    return " ".join(
        f"{one['function']}({', '.join(json.dumps(text, ensure_ascii=False) for text in one['inputs'])})" for one in program
    )


# -- what is accepted resolves ---------------------------------------------------------------------


def test_kopl_resolves(odd: Graph) -> None:
    grammar = Gbnf(odd.grammar("kopl").text)
    rng = random.Random(20)
    seen = set()
    for _ in range(by_lane(400, 3000, 20000)):
        program = grammar.derive(rng)
        odd.explain(program, language="kopl")
        assert grammar.accepts(program)
        seen |= set(re.findall(r"(\w+)\(", re.sub(r'"(?:[^"\\]|\\.)*"', "", program)))
    # The graph has no qualifiers that are numbers.
    assert seen == set(FUNCTIONS) - {"QFilterNum"}


def test_kopl_runs(small: Graph) -> None:
    grammar = Gbnf(small.grammar("kopl").text)
    rng = random.Random(5)
    for _ in range(by_lane(60, 400, 4000)):
        program = grammar.derive(rng)
        _ = small.kopl(program, timeout=60).texts


def test_llm_query_resolves(odd: Graph, small: Graph) -> None:
    for graph in (odd, small):
        grammar = Gbnf(graph.grammar("llm_query").text)
        rng = random.Random(7)
        for _ in range(by_lane(150, 1000, 10000)):
            # What stands in a column is looked up when the program is asked, and may be nothing.
            graph.explain(grammar.derive(rng), language="llm_query", on_unknown="empty")


def test_pattern_resolves(odd: Graph) -> None:
    grammar = Gbnf(odd.grammar("pattern").text)
    names = {one.name for one in odd.schema().predicates} | {"instance of", "UNKNOWN relation"}
    rng = random.Random(3)
    for _ in range(by_lane(100, 500, 5000)):
        pattern = condgraph.Pattern.of(grammar.derive(rng))
        assert {edge.relation for edge in pattern.edges} <= names
        for node in pattern.nodes:
            if node.known:
                assert odd.kopl([{"function": "Find", "inputs": [node.text], "dependencies": []}]).entities


# -- every program of the oracle -------------------------------------------------------------------


@pytest.mark.parametrize("format", ["gbnf", "regex"])
def test_oracle_is_accepted(small: Graph, oracle: Path, format: Any) -> None:
    grammar = small.grammar("kopl", format=format)
    accepts = Gbnf(grammar.text).accepts if format == "gbnf" else re.compile(grammar.text).fullmatch
    lines = (oracle / "programs_small.jsonl").read_text(encoding="utf-8").splitlines()
    programs = [json.loads(line)["program"] for line in lines][:: by_lane(12, 1, 1)]
    missed = [written(one) for one in programs if not accepts(written(one))]
    assert not missed, missed[:5]


def test_what_is_wrong_is_refused(small: Graph) -> None:
    """A mutant of an accepted program that no longer resolves is no longer accepted."""
    grammar = Gbnf(small.grammar("kopl").text)
    rng, refused = random.Random(9), 0
    for _ in range(by_lane(150, 1000, 5000)):
        program = grammar.derive(rng)
        at = rng.randrange(len(program))
        mutant = program[:at] + rng.choice(["", "x", '"', "(", program[at] * 2]) + program[at + 1 :]
        try:
            small.explain(mutant, language="kopl")
        except condgraph.CondgraphError:
            assert not grammar.accepts(mutant), mutant
            refused += 1
    assert refused > 20


# -- forms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["kopl", "llm_query", "pattern"])
def test_forms_agree(odd: Graph, language: Any) -> None:
    from lark import Lark
    from lark.exceptions import UnexpectedInput

    small: dict[str, Any] = {"depth": 1, "steps": 1, "entities": ["Ann", "Bo", QUOTES]}
    gbnf = Gbnf(odd.grammar(language, **small).text)
    regex = re.compile(odd.grammar(language, format="regex", **small).text)
    parser = Lark(odd.grammar(language, format="lark", **small).text, start="root", parser="earley", lexer="dynamic")
    rng = random.Random(11)
    for _ in range(by_lane(4, 20, 100)):
        program = gbnf.derive(rng)
        if len(program) > 250:
            continue
        mutant = program[:-3] + program[-2:]
        for text in (program, mutant):
            try:
                parser.parse(text)
                parsed = True
            except UnexpectedInput:
                parsed = False
            assert parsed == gbnf.accepts(text) == (regex.fullmatch(text) is not None), text


def test_json_schema(small: Graph, oracle: Path) -> None:
    """The oracle's programs as trees are valid, and come back; broken ones are not."""
    from jsonschema import Draft202012Validator

    grammar = small.grammar("kopl", format="json-schema")
    assert grammar.schema is not None
    Draft202012Validator.check_schema(grammar.schema)
    judge = Draft202012Validator(grammar.schema)
    lines = (oracle / "programs_small.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines[:: by_lane(40, 8, 1)]:
        program = json.loads(line)["program"]
        tree = {"program": tree_of(program, len(program) - 1)}
        assert judge.is_valid(tree), program
        assert grammar.program(json.dumps(tree)) == written(program)
        call = next(iter(tree["program"].values()))
        assert not judge.is_valid({"program": call.get("of", {})} if not program[-1]["function"].startswith("Verify") else {})
        assert not judge.is_valid({"program": {**tree["program"], "more": 1}})
        assert not judge.is_valid(
            json.loads(json.dumps(tree).replace("Find", "Fnd").replace("Query", "Qery").replace("Count", "C"))
        )
    pattern = small.grammar("pattern", format="json-schema", entities=["melodrama"])
    judge = Draft202012Validator(pattern.schema or {})
    triple = {"head": "UNKNOWN film 1", "relation": "genre", "tail": "melodrama"}
    assert judge.is_valid({"triples": [triple], "answer": "UNKNOWN film 1"})
    assert judge.is_valid({"triples": [triple], "answer": None})
    assert not judge.is_valid({"triples": [triple], "answer": "film 1"})
    assert not judge.is_valid({"triples": [triple | {"relation": "genera"}], "answer": None})
    assert not judge.is_valid({"triples": [], "answer": None})


def tree_of(program: list[dict[str, Any]], at: int) -> dict[str, Any]:
    """A program as the data set has it, as a tree."""
    step = program[at]
    sets = zip(("of", "with"), step["dependencies"], strict=False)
    texts = zip(FUNCTIONS[step["function"]].texts, step["inputs"], strict=True)
    return {step["function"]: {**{name: tree_of(program, other) for name, other in sets}, **dict(texts)}}


@pytest.mark.parametrize("wrong", ["", "{}", '{"program": 1}', '{"program": {"Relate": {}}}', "[" * 100_000, '{"a":' * 1_000_000])
def test_wrong_trees(small: Graph, wrong: str) -> None:
    with pytest.raises(ParseError):
        small.grammar("kopl", format="json-schema", entities=[]).program(wrong)


# -- names -----------------------------------------------------------------------------------------


def test_question(small: Graph) -> None:
    found = small.grammar("kopl", question="Was Charles B. Rangel born before the melodrama?")
    assert "Charles B. Rangel" in found.entities
    assert "melodrama" in found.entities
    assert len(found.entities) < 6
    assert Gbnf(found.text).accepts('Find("Charles B. Rangel") QueryAttr("date of birth")')
    assert not Gbnf(found.text).accepts('Find("Kate Winslet") QueryAttr("date of birth")')
    # A misspelled name is taken for those most like it.
    assert "Charles B. Rangel" in small.grammar("kopl", question="Who is Charles B. Rangl?").entities
    nobody = small.grammar("kopl", question="zzz?")
    assert nobody.entities == ()
    assert nobody.warnings
    assert "Find(" not in nobody.text


def test_options(odd: Graph) -> None:
    with pytest.raises(OptionError, match="no grammar in the language"):
        odd.grammar("sparql")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no grammar in the format"):
        odd.grammar("kopl", format="ebnf")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no JSON schema"):
        odd.grammar("llm_query", format="json-schema")
    with pytest.raises(OptionError, match="depth"):
        odd.grammar("kopl", depth=9)
    with pytest.raises(OptionError, match="no entities"):
        odd.grammar("llm_query", entities=[])


def test_smallest_graphs() -> None:
    for one in items():
        if isinstance(one, Statement):
            graph = condgraph.open()
            graph.add([one])
            rng = random.Random(1)
            grammar = Gbnf(graph.grammar("kopl").text)
            for _ in range(5):
                graph.explain(grammar.derive(rng), language="kopl")
    graph = condgraph.open()
    graph.add([Statement("a", "r", Ref("b"))])
    assert graph.grammar("pattern").text


class Model:
    """What a model takes."""

    name = "any"

    def __init__(self, *accepts: str) -> None:
        self.accepts = frozenset(accepts)


def test_constraint(small: Graph) -> None:
    question = "Who is Charles B. Rangel?"
    kinds: dict[tuple[str, ...], str | None] = {("gbnf", "json-schema"): "gbnf", ("json-schema",): "json-schema", (): None}
    for accepts, format in kinds.items():
        model: Any = Model(*accepts)
        found = constraint(small, model, "kopl", question)
        assert (found and found.format) == format
        if found is not None:
            assert list(found.options()) == ["grammar" if format == "gbnf" else "schema"]
    text_only: Any = Model("json-schema")
    assert constraint(small, text_only, "llm_query", question) is None
