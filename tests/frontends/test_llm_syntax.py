"""The text of LLM queries to their syntax tree."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condgraph.engine.errors import CondgraphError, ParseError, UnknownNameError
from condgraph.languages.llm.syntax.parse import MAX_DEPTH, MAX_OPERATORS, parse, parse_expression
from condgraph.languages.llm.syntax.tree import (
    Argument,
    Call,
    Comparison,
    Expression,
    Infix,
    Item,
    Items,
    Literal,
    Not,
    OutputRef,
    Program,
    Ternary,
)

ITALIANS = """\
## Target type: {number of Italians}
## Query:
Step1: Find the entity named Italy
Query1: "get_information(relation='Nation', tail_entity='Italy')"
Step2: Find the row_number of entities in the top ten
Query2: "get_information(relation='row_number', tail_entity<='10')"
Step3: Find the intersection of output_of_query2 and output_of_query1
Query3: "set_intersection(set1='output_of_query2', set2='output_of_query1')"
Step4: Calculate the count of output_of_query3
Query4: "count(set='output_of_query3')"
"""


def texts(expression: Expression | None) -> list[str]:
    """The arguments of a call, as short texts."""
    assert isinstance(expression, Call)
    return [f"{argument.name}{argument.op}{_short(argument.value)}" for argument in expression.arguments]


def _short(value: Expression) -> str:
    if isinstance(value, Literal):
        return value.text
    return f"#{value.position}" if isinstance(value, OutputRef) else type(value).__name__


def last(text: str) -> Expression:
    """The last query of a program in which queries 1 to 3 are there."""
    before = "".join(f"Query{n}: \"get_information(relation='r{n}')\"\n" for n in (1, 2, 3))
    expression = parse(before + "Query4: " + text).queries[-1].expression
    assert expression is not None
    return expression


def messages(program: Program) -> list[str]:
    return [notice.message for notice in program.notices]


def test_a_whole_program() -> None:
    program = parse(ITALIANS)
    assert program.target_type == "number of Italians"
    assert [query.label for query in program.queries] == ["1", "2", "3", "4"]
    assert program.queries[0].step == "Find the entity named Italy"
    assert texts(program.queries[1].expression) == ["relation=row_number", "tail_entity<=10"]
    assert program.queries[2].expression == Call(
        "set_intersection", (Argument("set1", "=", OutputRef(1)), Argument("set2", "=", OutputRef(0)))
    )
    assert program.used == (0, 1, 2, 3)
    assert program.notices == ()


def test_spans_point_into_the_text_and_do_not_count_in_equality() -> None:
    program = parse(ITALIANS)
    expression = program.queries[0].expression
    assert isinstance(expression, Call)
    tail = expression.arguments[1]
    assert ITALIANS[slice(*tail.span)] == "tail_entity='Italy'"
    assert ITALIANS[slice(*tail.value.span)] == "'Italy'"
    assert expression == parse("Query1: get_information(relation='Nation',tail_entity='Italy')").queries[0].expression
    assert hash(expression) == hash(parse_expression("get_information(relation='Nation', tail_entity='Italy')"))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("head_entity='Child's Play'", "Child's Play"),
        ("head_entity='L'aventure, c'est l'aventure'", "L'aventure, c'est l'aventure"),
        ("head_entity='Pete 'n' Tillie'", "Pete 'n' Tillie"),
        ("head_entity='The 'Human' Factor'", "The 'Human' Factor"),
        ("head_entity='Better Blues' (Mo's)'", "Better Blues' (Mo's)"),
        ("head_entity='Foo (the 'Bar') Baz'", "Foo (the 'Bar') Baz"),
        ("head_entity='Who's the Man?'", "Who's the Man?"),
        ("head_entity='Actors''", "Actors'"),
        ("head_entity=''Round Midnight'", "'Round Midnight"),
        ('head_entity="Thirty Years\' War"', "Thirty Years' War"),
        ("head_entity='\"Weird Al\" Yankovic'", '"Weird Al" Yankovic'),
        (r"head_entity='Robert \'Punch\' Harper'", "Robert 'Punch' Harper"),
        ("head_entity=‘Ulm’", "Ulm"),
        ("head_entity=’Ulm’", "Ulm"),
        ("head_entity='O’Neill'", "O’Neill"),
        ("head_entity='San Jose, California, relation to be'", "San Jose, California, relation to be"),
        ("head_entity='a (b'", "a (b"),
        ("head_entity='a) b'", "a) b"),
        (r"head_entity='AC\DC'", r"AC\DC"),
        # Every quote that opens and closes texts can be escaped.
        (r"head_entity='a \´< \′, b=\„c\‚ d'", "a ´< ′, b=„c‚ d"),
        (r"head_entity='two\nlines'", "two\nlines"),
        ("head_entity=''", ""),
        ("head_entity='  spaces  '", "  spaces  "),
        ("head_entity=2011", "2011"),
        ("head_entity=-5", "-5"),
        ("head_entity=10,000", "10000"),
        ("head_entity=12.5%", "12.5%"),
        ("head_entity=2004-05-06", "2004-05-06"),
        ("head_entity=12.5.2010", "12.5.2010"),
        ("head_entity=Iowa State", "Iowa State"),
        ("head_entity=Xbox 360 release date", "Xbox 360 release date"),
    ],
)
@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("more", ["", ", relation='member of'", " , relation = 'x'"])
def test_values_as_models_write_them(written: str, value: str, wrapped: bool, more: str) -> None:
    line = f"get_information({written}{more})"
    expression = parse(f'Query1: "{line}"' if wrapped else f"Query1: {line}").queries[0].expression
    assert isinstance(expression, Call)
    assert expression.arguments[0].value == Literal(value, expression.arguments[0].value.quoted)  # type: ignore[union-attr]
    assert len(expression.arguments) == (2 if more else 1)


@pytest.mark.parametrize(
    ("op", "meant", "noticed"),
    [
        ("=", "=", False),
        ("!=", "!=", False),
        ("<", "<", False),
        (">", ">", False),
        ("<=", "<=", False),
        (">=", ">=", False),
        ("≥", ">=", False),
        ("=>", ">=", True),
        ("=<", "<=", True),
        ("<>", "!=", True),
        ("==", "=", True),
    ],
)
@pytest.mark.parametrize("space", ["", " "])
def test_operators(op: str, meant: str, noticed: bool, space: str) -> None:
    program = parse(f"Query1: \"get_information(relation='Year', tail_entity{space}{op}{space}'2000')\"")
    assert texts(program.queries[0].expression) == ["relation=Year", f"tail_entity{meant}2000"]
    assert messages(program) == ([f"the operator {op!r} is read as {meant!r}"] if noticed else [])


@pytest.mark.parametrize("space", ["", "\u00a0", "\u3000"])
def test_any_space_before_the_quotes(space: str) -> None:
    assert isinstance(parse(f"Query1:{space}\"get_information(relation='Year')\"").queries[0].expression, Call)


@pytest.mark.parametrize("op", ["~=", "><", "=!=", "<<"])
def test_unknown_operators_are_errors(op: str) -> None:
    with pytest.raises(ParseError, match="unknown operator") as raised:
        parse(f"Query1: \"get_information(relation='Year', tail_entity{op}'2000')\"")
    assert raised.value.span is not None
    assert "= != < > <= >=" in str(raised.value)


def test_an_operator_that_is_a_word_is_an_error() -> None:
    with pytest.raises(ParseError, match="unknown operator 'contains'"):
        parse("Query1: \"get_information(relation='Date', tail_entity contains='July')\"")


@pytest.mark.parametrize(
    "reference",
    [
        "'output_of_query1'",
        "output_of_query1",
        '"output_of_query1"',
        "output_of_query1’",
        "'output_query1'",
        "Output_of_Query1",
        "output_of_query_1",
    ],
)
def test_references(reference: str) -> None:
    assert texts(last(f'"count(set={reference})"')) == ["set=#0"]


@pytest.mark.parametrize("label", ["4", "5", "9"])
def test_a_reference_to_no_earlier_query_is_an_error(label: str) -> None:
    with pytest.raises(UnknownNameError, match=f"output_of_query{label}") as raised:
        last(f"count(set='output_of_query{label}')")
    assert "output_of_query3" in raised.value.candidates


def test_labels_may_have_a_name() -> None:
    program = parse(
        "Query1_a: get_information(relation='x')\nQuery1_b: get_information(relation='y')\nQuery2: count(set='output_of_query1_a')"
    )
    assert texts(program.queries[-1].expression) == ["set=#0"]
    assert program.used == (0, 2)


def test_a_label_written_twice_means_the_last_one_before() -> None:
    program = parse(
        "Query1: get_information(relation='x')\nQuery2: count(set='output_of_query1')\n"
        "Query1: get_information(relation='y')\nQuery3: count(set='output_of_query1')"
    )
    assert program.used == (2, 3)
    assert any("written twice" in message for message in messages(program))


def test_queries_that_nobody_needs() -> None:
    program = parse(
        "Query1: get_information(relation='x')\nQuery2: get_information(relation=\nQuery3: count(set='output_of_query1')"
    )
    assert program.used == (0, 2)
    assert program.queries[1].expression is None
    assert any("query 2 is not needed and cannot be read" in message for message in messages(program))


@pytest.mark.parametrize(
    "text", ["Query1: get_information(relation=\nQuery2: count(set='output_of_query1')", "Query1: count(set='x')\nQuery2:"]
)
def test_a_broken_query_that_is_needed_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_prose_is_left_out_with_a_notice() -> None:
    program = parse(
        "To answer this, follow these steps:\n\n```python\nStep 1: Find it\n**Query1:** \"get_information(relation='x')\".\n"
        "Note: this is 'it', isn't it?\n```\nStep2: nothing to do\n"
    )
    assert texts(program.queries[0].expression) == ["relation=x"]
    assert messages(program).count("a line that is neither a step nor a query is left out") == 2
    assert "step 2 has no query" in messages(program)


def test_a_misspelt_query_line_is_noticed() -> None:
    program = parse("Query1: get_information(relation='x')\nQuerry2: count(set='output_of_query1')")
    assert messages(program) == ["a line that is neither a step nor a query is left out"]


def test_a_query_over_several_lines() -> None:
    program = parse("Query1: get_information(\n  relation='x',\n  tail_entity='y'\n)\nQuery2: count(set='output_of_query1')")
    assert texts(program.queries[0].expression) == ["relation=x", "tail_entity=y"]
    assert program.notices == ()


def test_a_lone_expression_is_a_program() -> None:
    assert parse("get_information(relation='Year', tail_entity>'2000')").queries[0].label == "1"


@pytest.mark.parametrize("text", ["None", "", "   \n", "I cannot answer this.", "Step1: think"])
def test_no_query_is_an_error(text: str) -> None:
    with pytest.raises(ParseError, match="no query"):
        parse(text)


REF2, REF3 = OutputRef(1), OutputRef(2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("output_of_query2 > output_of_query3", Comparison(">", REF2, REF3)),
        ("'output_of_query2'>'output_of_query3'", Comparison(">", REF2, REF3)),
        ("set1='output_of_query2' > set2='output_of_query3'", Comparison(">", REF2, REF3)),
        ("(output_of_query2 == output_of_query3)", Comparison("=", REF2, REF3)),
        ("output_of_query2 >= 7", Comparison(">=", REF2, Literal("7", False))),
        ("output_of_query2 - output_of_query3", Infix("-", REF2, REF3)),
        ("output_of_query2 - -1 * 2", Infix("-", REF2, Infix("*", Literal("-1", False), Literal("2", False)))),
        ("output_of_query2 in ['A', 'B']", Infix("in", REF2, Items((Literal("A"), Literal("B"))))),
        ("output_of_query2 not in ['A']", Not(Infix("in", REF2, Items((Literal("A"),))))),
        ("P. Diddy in (output_of_query2, output_of_query3)", Infix("in", Literal("P. Diddy", False), Items((REF2, REF3)))),
        ("output_of_query2[0]", Item(REF2, 0)),
        ("output_of_query2[-1]", Item(REF2, -1)),
        (
            "output_of_query2 = 5 or not output_of_query3 = 6",
            Infix("or", Comparison("=", REF2, Literal("5", False)), Not(Comparison("=", REF3, Literal("6", False)))),
        ),
        ("max(set='output_of_query2,output_of_query3')", Call("max", (Argument("set", "=", Items((REF2, REF3))),))),
        (
            "f(condition='output_of_query2 > 5')",
            Call("f", (Argument("condition", "=", Comparison(">", REF2, Literal("5", False))),)),
        ),
        ("f('Xbox 360 > PS3')", Call("f", (Argument(None, "=", Literal("Xbox 360 > PS3")),))),
    ],
)
def test_expressions(text: str, expected: Expression) -> None:
    assert last(text) == expected
    assert last(f'"{text}"') == expected


A, B = Literal("A"), Literal("B")


@pytest.mark.parametrize(
    "text",
    [
        "if output_of_query2 > output_of_query3 then 'A' else 'B'",
        "if output_of_query2 > output_of_query3: 'A' else: 'B'",
        "if output_of_query2 > output_of_query3: return 'A'; else: return 'B'",
        "if output_of_query2 > output_of_query3, return 'A', else return 'B'",
        "if output_of_query2 > output_of_query3: then return 'A', else return 'B'",
        "if (output_of_query2 > output_of_query3) then 'A' else 'B'",
        "if 'output_of_query2' > 'output_of_query3' then 'A' else 'B'",
        "output_of_query2 > output_of_query3 ? 'A' : 'B'",
        "'A' if output_of_query2 > output_of_query3 else 'B'",
    ],
)
def test_conditionals(text: str) -> None:
    assert last(text) == Ternary(Comparison(">", REF2, REF3), A, B)


def test_conditional_calls() -> None:
    expected = Call(
        "if", (Argument(None, "=", Comparison(">", REF2, REF3)), Argument(None, "=", A), Argument(None, "=", Literal("Surf's Up")))
    )
    assert last("\"if(output_of_query2 > output_of_query3, 'A', 'Surf's Up')\"") == expected
    assert texts(last("if(output_of_query2 > 1, then='A', else='B')")) == ["None=Comparison", "then=A", "else=B"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("if output_of_query2 > 5 then 'A'", "without 'else'"),
        ("output_of_query2 > 5 ? 'A'", "without its ':'"),
        ("1 < output_of_query2 < 5", "not expected"),
        ("set1 > set2 ? output_of_query1 : output_of_query2", "set1 has no meaning"),
        ("count(set='output_of_query2'", "never closed"),
        ("count(set='output_of_que", "never closed"),
        ("count(set='output_of_query1')\", \"count(set='output_of_query2')", "follows the end"),
        ("average_of_query1 < 5", "neither an output nor a text"),
        ("f(set='elevation of output_of_query2')", "mentions an output"),
        ("f(set={'a': 'b'})", "mapping"),
        ("get_information(tail_entity='a' or tail_entity='b')", "'or' between two arguments"),
        ("output_of_query2.split(',')", "has no meaning here"),
        ("output_of_query2[x]", "not an index"),
    ],
)
def test_errors_say_what_and_where(text: str, message: str) -> None:
    with pytest.raises(ParseError) as raised:
        last(f'"{text}"')
    assert message in raised.value.message
    assert raised.value.span is not None


def test_and_and_missing_commas_between_arguments() -> None:
    program = parse("Query1: get_information(relation='Year' tail_entity>='1960' and tail_entity<'1970')")
    assert texts(program.queries[0].expression) == ["relation=Year", "tail_entity>=1960", "tail_entity<1970"]
    assert messages(program) == ["a comma is missing before this argument", "'and' between two arguments is read as a comma"]


@pytest.mark.parametrize(
    "text", ["(" * 500 + "1" + ")" * 500, "f(" * 500, "not " * 500 + "x", "-" * 500 + "x", "if " * 500, "[" * 500, "{'(" * 400]
)
def test_deep_nesting_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_expression(text)


def test_depth_and_operators_at_the_limit() -> None:
    parse_expression("(" * (MAX_DEPTH - 1) + "1" + ")" * (MAX_DEPTH - 1))
    many = parse_expression("1" + "+1" * MAX_OPERATORS)
    assert many == parse_expression("1" + "+1" * MAX_OPERATORS)
    assert repr(many)
    with pytest.raises(ParseError, match="operators"):
        parse_expression("1" + "+1" * (MAX_OPERATORS + 1))


@pytest.mark.parametrize(
    "unit",
    [
        "'",
        '"',
        "('",
        "'a' ",
        "', ",
        "',   a",
        "'a')x'b",
        "(",
        ")",
        " ",
        "\n",
        "1,000",
        "1,111,",
        "a.b",
        "output_of_query1 ",
        "'output_of_query1 ",
        "if(",
        "Query1: ",
        "\\'",
        "')",
        "' , ",
    ],
)
def test_time_is_linear(unit: str) -> None:
    def took(times: int) -> float:
        text = "Query1: f(x='" + unit * times
        best = 9.0
        for _ in range(3):
            begin = time.process_time()
            with suppress(CondgraphError):
                parse(text)
            best = min(best, time.process_time() - begin)
        return best

    small, large = took(1_000), took(16_000)
    # Sixteen times the text in at most eighty times the time: quadratic would be 256.
    assert large < 80 * small + 0.05


def outcome_of(text: str) -> Program | CondgraphError:
    try:
        return parse(text)
    except CondgraphError as error:
        return error


WORDS = st.sampled_from(
    [
        *(
            "Query1: ",
            "Query2: ",
            "Step1: ",
            "## Target type: {x}",
            "\n",
            "get_information(",
            "count(",
            "if(",
            "if ",
            "then ",
            "else ",
            "set='",
            "'",
        ),
        *(
            '"',
            "relation='",
            "tail_entity>'",
            "key=",
            "'output_of_query1'",
            "output_of_query1",
            ")",
            "(",
            ",",
            "[",
            "]",
            "0",
            "-",
            "+",
            "=",
            ">=",
            "~",
        ),
        *(
            "and ",
            "or ",
            "not ",
            "in ",
            "None",
            "Child's Play",
            "’",
            "“",
            "\\",
            "`",
            "?",
            ":",
            "{",
            "}",
            " ",
            ".",
            "1,000",
            "2004-05",
            "é",
            "\ud800",
            "\0",
        ),
    ]
)


@given(st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=40).map("".join)))
def test_any_text_gives_a_tree_or_an_error(text: str) -> None:
    outcome = outcome_of(text)
    if isinstance(outcome, CondgraphError):
        assert outcome.span is None or 0 <= outcome.span[0] <= outcome.span[1] <= len(text)
        assert str(outcome)
        return
    assert outcome.used
    assert outcome.used[-1] == len(outcome.queries) - 1
    for part in (*outcome.queries, *outcome.notices):
        assert 0 <= part.span[0] <= part.span[1] <= len(text)
    repr(outcome)
    hash(outcome)


@given(st.data())
def test_a_damaged_program_gives_a_tree_or_an_error(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(ITALIANS)))
    stop = data.draw(st.integers(start, min(start + 20, len(ITALIANS))))
    text = ITALIANS[:start] + data.draw(st.one_of(st.text(max_size=5), WORDS)) + ITALIANS[stop:]
    assert str(outcome_of(text))


NAME = st.text(
    st.characters(codec="utf-8", exclude_characters="'‘’‚‛´′\\", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=30
)


@given(NAME, NAME)
def test_texts_without_quotes_and_outputs_come_back_as_they_are(head: str, tail: str) -> None:
    if "query" in (head + tail).casefold():
        return
    expression = parse(f"Query1: \"get_information(head_entity='{head}', tail_entity='{tail}')\"").queries[0].expression
    assert isinstance(expression, Call)
    assert [argument.value for argument in expression.arguments] == [Literal(head), Literal(tail)]


@pytest.mark.parametrize("name", ["c:\\x\\", "ends twice\\\\", "a'b", "both \\'"])
def test_a_name_that_ends_in_backslashes_is_closed(name: str) -> None:
    written = name.replace("\\", "\\\\").replace("'", "\\'")
    program = parse(f"Query1: \"get_information(relation='r', head_entity='{written}')\"")
    assert program.queries[0].error is None
    call = program.queries[0].expression
    assert isinstance(call, Call)
    assert [argument.value.text for argument in call.arguments if isinstance(argument.value, Literal)] == ["r", name]
