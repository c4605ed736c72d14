"""Hostile programs and files: an answer, a graph, or a typed error, and all of it soon."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import targets
from tests.support.graphs import Dice
from tests.support.lanes import by_lane, examples
from tests.support.pace import quick_enough

QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def test_every_format_has_seeds() -> None:
    """A format that is added is fuzzed; the seeds load."""
    assert set(targets._FILES) == set(targets.FILES)
    for form in targets.FILES:
        for content in targets.seeds(form):
            targets.load(content, form)


@pytest.mark.parametrize("number", range(len(targets.NASTY)))
def test_nasty_alone(number: int) -> None:
    """What parsers stumble over, as a program, and as a file of every format."""
    content = targets.NASTY[number]
    targets.ask(content)
    targets.ask(b'Find("' + content + b'")')
    targets.ask(b"Find(" + content + b") QueryName()")
    targets.ask(b"FindAll() FilterNum(size, " + content + b", =) Count()")
    targets.ask(b"FindAll() FilterYear(born, " + content + b", <) Count()")
    for form in targets.FILES:
        targets.load(content, form)


@settings(max_examples=examples(300), suppress_health_check=QUIET)
@given(st.text() | st.text(st.sampled_from('()",<>=FindAlQueryNm \\[]{}:\ud800')))
def test_any_text_as_a_program(text: str) -> None:
    """Lone surrogates included."""
    targets.ask(text.encode("utf-8", "surrogatepass"))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(("Find", "FindAll", "Count", "Ann", "size", "=")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(("function", "inputs", "dependencies", "x")), inner, max_size=4)
        | st.builds(
            lambda f, i, d: {"function": f, "inputs": i, "dependencies": d},
            st.sampled_from(("Find", "FindAll", "Relate", "Count", "And", "QueryName", "X")),
            st.lists(st.sampled_from(("Ann", "size", "forward")), max_size=3) | inner,
            st.lists(st.integers(-2, 4), max_size=3) | inner,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=examples(300), suppress_health_check=QUIET)
@given(st.lists(_JSON, max_size=5) | _JSON)
def test_any_json_as_a_program(program: object) -> None:
    """Of the right shape or not."""
    targets.ask_json(json.dumps(program).encode())
    targets.ask(json.dumps(program).encode())


def test_mutated_programs() -> None:
    """Programs that were well formed before a few bytes changed."""
    for seed in range(by_lane(500, 1500, 1500)):
        dice = Dice(seed)
        targets.ask(targets.mutated(dice, dice.one(targets.seeds("kopl"))))
        targets.ask_json(targets.mutated(dice, dice.one(targets.seeds("kopl json"))))


@pytest.mark.parametrize("form", targets.FILES)
def test_mutated_files(form: str) -> None:
    """Files that were well formed before a few bytes changed; now and then the format is to be
    found out.
    """
    for seed in range(by_lane(20, 80, 80)):
        dice = Dice(seed)
        content = targets.mutated(dice, dice.one(targets.seeds(form)))
        targets.load(content, None if seed % 5 == 0 else form, dice.one((".csv", ".json", ".nt")) if seed % 7 == 0 else "")


@settings(max_examples=examples(60), suppress_health_check=QUIET)
@given(st.sampled_from(targets.FILES), st.binary(max_size=300))
def test_any_bytes_as_a_file(form: str, content: bytes) -> None:
    """Of any format."""
    targets.load(content, form)


@pytest.mark.parametrize(
    "unit",
    [
        "(",
        "Find(",
        "Find(a) ",
        "FindAll() ",
        '"',
        ",",
        "Find(a,",
        ") ",
        "\\",
        "<func>",
        "<arg>",
        "[",
        '[{"function":',
        " ",
        "Find(a) Or() ",
        ")Find(",
    ],
)
def test_programs_are_read_in_linear_time(unit: str) -> None:
    """Ten times the text takes about ten times as long, and never seconds."""
    taken = []
    for times in (2_000, 20_000):
        begin = time.perf_counter()
        targets.ask((unit * times).encode())
        taken.append(time.perf_counter() - begin)
    assert quick_enough(taken[1], max(taken[0] * 60, 2.0))


@pytest.mark.parametrize("form", ["kqapro", "jsonl-table", "condgraph", "rdf"])
@pytest.mark.parametrize("depth", [100, 2_000, 100_000])
def test_deep_files(form: str, depth: int) -> None:
    """Nesting that no stack holds is a typed error; a list of lists of RDF is statements, and as
    many as there are.
    """
    depth = min(depth, 5_000) if form == "rdf" else depth
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")")):
        body = opening * depth + b"1" + closing * depth
        targets.load(body, form)
        targets.load(b'{"entities":' + body + b"}", form)
        targets.load(b'{"condgraph": 1}\n{"s": "a", "p": "b", "o": ' + body + b"}\n", form)
