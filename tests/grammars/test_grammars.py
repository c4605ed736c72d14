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
from condgraph.engine.errors import OptionError, ParseError, UnknownNameError
from condgraph.engine.facts import Member, Ref, Statement
from condgraph.engine.values import Quantity
from condgraph.grammars.grammar import constraint
from condgraph.grammars.llm_query import OF_ROWS, OF_VALUES, TWO, UNARY
from condgraph.graph import Graph
from condgraph.languages.kopl.table import FUNCTIONS
from tests.ask.asking import countries
from tests.support.gbnf import Gbnf
from tests.support.graphs import Dice
from tests.support.lanes import by_lane
from tests.support.llm_programs import facts, table
from tests.support.schemas import Schemas
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


#: A few entities of a graph that has thousands.
LONG = ("Charles B. Rangel", "Ben Kingsley", "Kate Bush", "melodrama")


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


@pytest.fixture(scope="module")
def several(odd: Graph, small: Graph) -> dict[str, Graph]:
    """Graphs with tables, terms, columns of one name in two tables, and none of these."""
    people, shop = condgraph.open(), condgraph.open()
    people.add([*table(Dice(3)), *facts(Dice(4))])
    shop.load([{"id": 1, "name": "Ann", "city": "Oslo"}, {"id": 2, "name": "Bob", "city": "Rome"}], name="customers")
    shop.load([{"id": 1, "customer": 1, "amount": "$1.2M"}, {"id": 2, "customer": 2, "amount": "$5k"}], name="orders")
    return {"odd": odd, "small": small, "countries": countries(), "people": people, "shop": shop}


@pytest.mark.parametrize("name", ["odd", "small", "countries", "people", "shop"])
def test_llm_query_resolves(several: dict[str, Graph], name: str) -> None:
    graph = several[name]
    made = graph.grammar("llm_query", entities=LONG if name == "small" else None)
    grammar = Gbnf(made.text)
    rng = random.Random(7)
    for number in range(by_lane(50, 600, 10000)):
        program = grammar.derive(rng)
        # What stands in a column is looked up when the program is asked, and may be nothing.
        graph.explain(program, language="llm_query", on_unknown="empty")
        assert number % 10 or len(program) > 600 or grammar.accepts(program)


@pytest.mark.parametrize("name", ["odd", "small", "countries", "people", "shop"])
def test_trees_of_llm_queries_resolve(several: dict[str, Graph], name: str) -> None:
    from jsonschema import Draft202012Validator

    graph = several[name]
    made = graph.grammar("llm_query", format="json-schema", entities=LONG if name == "small" else None)
    assert made.schema is not None
    Draft202012Validator.check_schema(made.schema)
    judge = Draft202012Validator(made.schema)
    schemas, rng = Schemas(made.schema), random.Random(8)
    for number in range(by_lane(10, 200, 8000)):
        tree = schemas.derive(rng)
        assert number % 30 or judge.is_valid(tree)
        graph.explain(made.program(json.dumps(tree)), language="llm_query", on_unknown="empty")


def test_llm_query_runs(several: dict[str, Graph]) -> None:
    for name in ("countries", "people"):
        grammar, rng = Gbnf(several[name].grammar("llm_query").text), random.Random(5)
        for _ in range(by_lane(15, 200, 2000)):
            _ = several[name].query(grammar.derive(rng), language="llm_query", on_unknown="empty", timeout=60).texts


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_programs_that_models_wrote_are_accepted(data: Path, hops: int) -> None:
    """MetaQA's programs, all of their texts: what a free model wrote, a held one can write."""
    programs = json.loads((data / "trustuqa_programs" / f"metaqa_{hops}hop.json").read_text("utf-8"))
    relations = (
        *("directed_by", "written_by", "starred_actors", "release_year", "in_language", "has_tags", "has_genre"),
        *("has_imdb_votes", "has_imdb_rating"),
    )
    asked = [(re.findall(r"\[(.*?)\]", question), program) for question, program in programs.items()]
    known = [
        (names, program) for names, program in asked if names and set(re.findall(r"relation='(\w+)'", program)) <= set(relations)
    ]
    rng, accepted, seen = random.Random(2), 0, 0
    for names, program in rng.sample(known, by_lane(25, 200, 1000)):
        if not (lines := program.strip()).startswith("Step1: ") or set("".join(names)) & set("'\""):
            continue
        numbers = [int(number) for number in re.findall(r"^Query(\d+):", lines, re.MULTILINE)]
        if numbers != list(range(1, len(numbers) + 1)):
            # A model that left a number out.
            continue
        graph = condgraph.open()
        graph.add([Statement(names[0], relation, Ref("x")) for relation in relations])
        seen += 1
        accepted += Gbnf(graph.grammar("llm_query", entities=names).text).accepts(lines)
    assert seen > 10
    assert accepted == seen


def test_tables_of_groups_end_a_program(several: dict[str, Graph]) -> None:
    grammar = Gbnf(several["countries"].grammar("llm_query", entities=["Nepal"]).text)
    rows = "Query1: \"get_information(relation='height', tail_entity>'7000 m')\""
    top = "\nQuery2: \"top(set='output_of_query1', key='height', n='3')\""
    assert grammar.accepts(rows + top)
    assert several["countries"].query(rows + top).cells
    assert not grammar.accepts(rows + top + "\nQuery3: \"count(set='output_of_query2')\"")
    before = "\nQuery2: \"previous_row(set='output_of_query1')\""
    assert grammar.accepts(rows + before)
    capital = "Query1: \"get_information(relation='capital', head_entity='Nepal')\""
    assert grammar.accepts(capital)
    assert not grammar.accepts(capital + before)
    values = "Query1: \"get_information(relation='height')\""
    for line, names in ((rows, OF_ROWS), (values, OF_VALUES)):
        for name in names:
            program = f"{line}\nQuery2: \"{name}(set='output_of_query1')\""
            assert grammar.accepts(program)
            several["countries"].explain(program)


def test_names_with_quotes_stand_in_queries() -> None:
    graph = condgraph.open()
    names = ["Child's Play", 'the "best"', "a\\b", "‘curly’"]
    graph.add([Statement(name, "genre", Ref("x")) for name in names])
    made = graph.grammar("llm_query")
    assert not made.warnings
    grammar, tree = Gbnf(made.text), graph.grammar("llm_query", format="json-schema")
    for name in names:
        search = {"get_information": {"relation": "genre", "head_entity": name, "tail_entity": None}}
        program = tree.program(json.dumps({"program": search}))
        assert grammar.accepts(program)
        assert graph.query(program).texts == ["x"]
    graph.add([Statement("ends \\", "genre", Ref("x"))])
    assert graph.grammar("llm_query").warnings == ("1 entities have names that cannot be written in quotes, and are left out",)


def test_units_with_quotes_and_columns_beside_facts() -> None:
    """A unit that needs backslashes has them once; what asks for rows says a source that has rows."""
    from jsonschema import Draft202012Validator

    graph = condgraph.open()
    graph.add([Statement("A", "size", Quantity(3, '"')), Statement("B", "size", Quantity(4, "b\\s"))])
    graph.add([Statement("A", "price", Quantity(3))])
    graph.load([{"id": "x", "price": 4}, {"id": "y", "price": 5}], name="goods")
    text, tree = Gbnf(graph.grammar("llm_query").text), graph.grammar("llm_query", format="json-schema")
    allows = Draft202012Validator(tree.schema).is_valid
    search: dict[str, Any]
    for value, name in (('3 "', "A"), ("4 b\\s", "B")):
        search = {"relation": "size", "head_entity": None, "tail_entity": {"is": "=", "value": value}}
        asked = {"program": {"get_information": search}}
        assert allows(asked)
        program = tree.program(json.dumps(asked))
        assert text.accepts(program)
        assert graph.query(program).texts == [name]
    for source, right in (("goods", True), ("api", False)):
        search = {"relation": "price", "head_entity": None, "tail_entity": {"is": ">", "value": "1"}, "source": source}
        rows = {"program": {"row_number": {"set": {"get_information": search}}}}
        program = tree.program(json.dumps(rows))
        assert allows(rows) == text.accepts(program) == right
        if right:
            assert graph.query(program).texts == ["1", "2"]


@pytest.mark.parametrize("form", ["gbnf", "json-schema"])
def test_a_source_scopes_llm_queries(several: dict[str, Graph], form: Any) -> None:
    """Of one source there is what stands in it, also what another has by the same name; each program
    resolves where it is asked in that source.
    """
    graph, rng = several["shop"], random.Random(12)
    columns = {"customers": {"id", "name", "city"}, "orders": {"id", "customer", "amount"}}
    for source, its in columns.items():
        made = graph.grammar("llm_query", format=form, source=source, question="Where does Ann live?")
        grammar, schemas = Gbnf(made.text) if form == "gbnf" else None, Schemas(made.schema or {})
        seen: set[str] = set()
        for _ in range(by_lane(60, 400, 4000)):
            program = grammar.derive(rng) if grammar is not None else made.program(json.dumps(schemas.derive(rng)))
            graph.explain(program, language="llm_query", source=source, on_unknown="empty")
            seen |= set(re.findall(r"relation='([^']*)'", program))
            assert "source=" not in program
        assert seen == its
    with pytest.raises(UnknownNameError, match="unknown source 'order'"):
        graph.grammar("llm_query", source="order")
    with pytest.raises(OptionError, match="LLM queries"):
        graph.grammar("kopl", source="orders")


def test_ask_holds_a_model_to_the_source_that_is_asked(several: dict[str, Graph]) -> None:
    from condgraph.ask.pipeline import grammar_for

    class Model:
        accepts = frozenset(("gbnf",))

    graph = several["shop"]
    whole, scoped = (grammar_for(graph, Model(), "query", "Who lives in Oslo?", [], source) for source in (None, "customers"))  # type: ignore[arg-type]
    assert whole is not None
    assert scoped is not None
    assert "amount" in whole.text
    assert "amount" not in scoped.text


# -- logical queries -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["odd", "small", "countries", "people"])
@pytest.mark.parametrize("depth", [0, 2, 4])
def test_logic_resolves(several: dict[str, Graph], name: str, depth: int) -> None:
    graph = several[name]
    grammar = Gbnf(graph.grammar("logic", entities=LONG if name == "small" else None, depth=depth).text)
    rng, longest = random.Random(3), 0
    for _ in range(by_lane(60, 400, 5000)):
        query = grammar.derive(rng)
        assert query.startswith("?x : ")
        graph.explain(query, language="logic")
        longest = max(longest, query.count("("))
    assert longest > 3


@pytest.mark.parametrize("name", ["odd", "small", "countries", "people"])
def test_trees_of_logic_resolve(several: dict[str, Graph], name: str) -> None:
    from jsonschema import Draft202012Validator

    graph = several[name]
    made = graph.grammar("logic", format="json-schema", entities=LONG if name == "small" else None)
    judge, schemas, rng = Draft202012Validator(made.schema), Schemas(made.schema or {}), random.Random(4)
    for number in range(by_lane(100, 800, 8000)):
        tree = schemas.derive(rng)
        assert number % 20 or judge.is_valid(tree)
        graph.explain(made.program(json.dumps(tree)), language="logic")


@pytest.mark.parametrize("name", ["odd", "small", "countries", "people"])
@pytest.mark.parametrize("language", ["kopl", "pattern"])
def test_trees_of_kopl_and_patterns_resolve(several: dict[str, Graph], name: str, language: Any) -> None:
    from jsonschema import Draft202012Validator

    graph = several[name]
    made = graph.grammar(language, format="json-schema", entities=LONG if name == "small" else None)
    judge, schemas, rng = Draft202012Validator(made.schema), Schemas(made.schema or {}), random.Random(6)
    for number in range(by_lane(80, 800, 8000)):
        tree = schemas.derive(rng)
        assert number % 20 or judge.is_valid(tree)
        program = made.program(json.dumps(tree))
        if language == "kopl":
            graph.explain(program, language="kopl")
        else:
            assert condgraph.Pattern.of(program).edges


STRUCTURES = {
    "1p": 'r("A", ?x)',
    "2p": 'exists ?a. r("A", ?a) and s(?a, ?x)',
    "3p": 'exists ?a. (exists ?b. r("A", ?b) and s(?b, ?a)) and t(?a, ?x)',
    "4p": 'exists ?a. (exists ?b. (exists ?c. r("A", ?c) and s(?c, ?b)) and t(?b, ?a)) and u(?a, ?x)',
    "5p": 'exists ?a. (exists ?b. (exists ?c. (exists ?d. r("A", ?d) and s(?d, ?c)) and t(?c, ?b)) and u(?b, ?a)) and r(?a, ?x)',
    "2i": 'r("A", ?x) and s("B", ?x)',
    "3i": 'r("A", ?x) and s("B", ?x) and t("C", ?x)',
    "pi": '(exists ?a. r("A", ?a) and s(?a, ?x)) and t("B", ?x)',
    "ip": 'exists ?a. r("A", ?a) and s("B", ?a) and t(?a, ?x)',
    "2u": 'r("A", ?x) or s("B", ?x)',
    "up": 'exists ?a. (r("A", ?a) or s("B", ?a)) and t(?a, ?x)',
    "2in": 'r("A", ?x) and not s("B", ?x)',
    "3in": 'r("A", ?x) and s("B", ?x) and not t("C", ?x)',
    "inp": 'exists ?a. r("A", ?a) and not s("B", ?a) and t(?a, ?x)',
    "pin": '(exists ?a. r("A", ?a) and s(?a, ?x)) and not t("B", ?x)',
    "pni": 'not (exists ?a. r("A", ?a) and s(?a, ?x)) and t("B", ?x)',
}


def test_every_structure_is_in_the_grammar() -> None:
    from condgraph.languages.logic.structures import STRUCTURES as NAMED
    from condgraph.languages.logic.structures import named
    from condgraph.languages.logic.text import read

    graph = condgraph.open()
    graph.add([Statement(one, relation, Ref(other)) for one in "ABC" for relation in "rstu" for other in "BCD"])
    grammar = Gbnf(graph.grammar("logic", depth=4).text)
    shallow = Gbnf(graph.grammar("logic").text)
    assert STRUCTURES.keys() == NAMED.keys()
    for name, text in STRUCTURES.items():
        query = f"?x : {text}"
        assert grammar.accepts(query), name
        assert shallow.accepts(query) == (name not in ("4p", "5p")), name
        lengths, shape = NAMED[name]
        relations = iter("rstur")
        branches: list[Any] = [
            [entity, *(next(relations) for _ in range(length))] for entity, length in zip("ABC", lengths, strict=False)
        ]
        branches += [next(relations)] if shape != 0 and shape[0] == "p" else []
        # It is the structure of that name: the same answers.
        assert graph.logic(read(query), k=None).texts == graph.logic(named(name, branches), k=None).texts
    for wrong in ('not r("A", ?x)', "r(?x, ?x)", "exists ?a. r(?a, ?x) and s(?x, ?a)", 'exists ?a. t("A", ?a)', 'q("A", ?x)'):
        assert not grammar.accepts(f"?x : {wrong}"), wrong


@pytest.mark.parametrize("name", [*UNARY, *(f"{name} of two" for name in TWO)])
def test_functions_of_the_grammar_take_results_alone(small: Graph, name: str) -> None:
    function, two, _ = name.partition(" of two")
    lines = [
        f"Query{at}: \"get_information(relation='height', head_entity='{who}')\"" for at, who in ((1, "Manaslu"), (2, "Trisul"))
    ]
    sets = "set1='output_of_query1', set2='output_of_query2'" if two else "set='output_of_query1'"
    small.query("\n".join([*lines, f'Query3: "{function}({sets})"']), on_unknown="empty")


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


@pytest.mark.parametrize("format", ["gbnf", "json-schema"])
def test_patterns_have_no_names_that_are_read_as_something_else(format: Any) -> None:
    """Names of age groups are values in a pattern, and such texts are no nodes of its grammar."""
    graph = condgraph.open()
    graph.add([Statement("Ann", "< 18", Ref("< 18")), Statement("\u2028", "UNKNOWN 3", Ref("UNKNOWN 1")), Member("Ann", "> 5")])
    made = graph.grammar("pattern", format=format)
    assert made.warnings == ("4 entities have names that a pattern reads as values or unknowns, and are left out",)
    rng = random.Random(3)
    for _ in range(40):
        if format == "gbnf":
            text = Gbnf(made.text).derive(rng)
        else:
            text = made.program(json.dumps(Schemas(made.schema or {}).derive(rng)))
        pattern = condgraph.Pattern.of(text)
        assert {node.text for node in pattern.nodes if node.known} <= {"Ann"}
        assert {edge.relation for edge in pattern.edges} <= {"< 18", "instance of", "UNKNOWN relation"}


# -- every program of the oracle -------------------------------------------------------------------


@pytest.mark.parametrize("format", ["gbnf", "regex"])
def test_oracle_is_accepted(small: Graph, oracle: Path, format: Any) -> None:
    grammar = small.grammar("kopl", format=format)
    accepts = Gbnf(grammar.text).accepts if format == "gbnf" else re.compile(grammar.text).fullmatch
    lines = (oracle / "programs_small.jsonl").read_text(encoding="utf-8").splitlines()
    programs = [json.loads(line)["program"] for line in lines][:: by_lane(36, 1, 1)]
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


@pytest.mark.parametrize("language", ["kopl", "llm_query", "pattern", "logic"])
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
        if len(program) > (250 if language != "llm_query" else 160):
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


@pytest.mark.parametrize("language", ["kopl", "llm_query", "logic"])
@pytest.mark.parametrize("wrong", ["", "{}", '{"program": 1}', '{"program": {"Relate": {}}}', "[" * 100_000, '{"a":' * 1_000_000])
def test_wrong_trees(small: Graph, wrong: str, language: Any) -> None:
    grammar = small.grammar(language, format="json-schema", entities=[])
    with pytest.raises(ParseError):
        grammar.program(wrong)
    with pytest.raises(ParseError):
        grammar.program(wrong.replace("program", "query"))


# -- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["kopl", "llm_query", "logic"])
def test_schemas_share_what_names_no_entity(language: Any) -> None:
    from jsonschema import Draft202012Validator

    graph = world()
    every = graph.grammar(language, format="json-schema")
    none, ann, bo = (graph.grammar(language, format="json-schema", entities=one) for one in ([], ["Ann"], ["Bo"]))
    assert '"Ann"' not in none.text + bo.text
    assert '"Bo"' not in none.text + ann.text
    # Validators try every search for a tree within trees: small ones are enough.
    trees, judges = Schemas(ann.schema or {}, deep=2), [Draft202012Validator(one.schema) for one in (every, ann, bo)]
    rng, apart = random.Random(6), 0
    for _ in range(by_lane(15, 60, 60)):
        tree = trees.derive(rng)
        assert [judge.is_valid(tree) for judge in judges[:2]] == [True, True]
        apart += not judges[2].is_valid(tree)
    assert apart


@pytest.mark.parametrize("language", ["kopl", "llm_query", "logic", "pattern"])
def test_rules_are_written_once_for_a_graph(language: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions share the rules over the names of a graph, until it changes."""
    from condgraph.grammars import grammar as module

    made: list[str] = []
    rules = module._rules
    monkeypatch.setattr(module, "_rules", lambda *given: made.append(given[0]) or rules(*given))
    graph = world()
    first = graph.grammar(language, entities=["Ann"])
    second, every = graph.grammar(language, entities=["Bo"]), graph.grammar(language)
    assert graph.grammar(language) is every
    assert made == [language]
    assert first.text.splitlines()[:-1] == second.text.splitlines()[:-1]
    assert "Ann" in first.text.splitlines()[-1]
    assert "Ann" not in second.text
    for one in (first, second, every):
        grammar, rng = Gbnf(one.text), random.Random(1)
        for _ in range(20):
            if language != "pattern":
                graph.explain(grammar.derive(rng), language=language, on_unknown="empty")
    graph.add([Statement("a", "a new relation", Ref("b"))])
    assert "a new relation" in graph.grammar(language, entities=["Ann"]).text
    assert "a new relation" in graph.grammar(language).text
    assert made == [language] * 2
    # Also where a question names nothing.
    for _ in range(2):
        nothing = graph.grammar(language, entities=[])
    # Patterns have their concepts in any case.
    assert made == [language] * (2 if language == "pattern" else 3)
    assert "Ann" not in nothing.text


def test_a_graph_without_relations_has_its_entities() -> None:
    graph = condgraph.open()
    graph.add([Statement("a", "height", Quantity(3, "metre"))])
    assert Gbnf(graph.grammar("kopl").text).accepts('Find("a") QueryAttr("height")')


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
    with pytest.raises(OptionError, match="no grammar for the language"):
        odd.grammar("sparql")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no grammar for the format"):
        odd.grammar("kopl", format="ebnf")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="depth"):
        odd.grammar("kopl", depth=9)
    empty = condgraph.open()
    empty.add([Member("a", "b")])
    for language in ("llm_query", "kopl"):
        with pytest.raises(OptionError, match=r"no predicates|no names"):
            empty.grammar(language, entities=[])  # type: ignore[arg-type]
    # Without entities there are searches by relations and values.
    assert "get_information" in odd.grammar("llm_query", entities=[]).text


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
    for language in ("llm_query", "logic", "pattern"):
        found = constraint(small, Model("json-schema"), language, question)  # type: ignore[arg-type]
        assert found is not None
        assert found.schema is not None
