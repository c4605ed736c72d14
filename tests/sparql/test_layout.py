"""How names and values stand in RDF: every one of them can be read back, and published relative
IRIs resolve to ours.
"""

import random
from decimal import Decimal

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condgraph.engine import iris
from condgraph.engine.errors import OptionError
from condgraph.engine.values import UNKNOWN, Precision, Quantity, Time, format_number
from condgraph.sparql import layout

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
BASE = layout.base_iri("default")
NUMBERS = st.one_of(
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0),
    st.decimals(allow_nan=False, allow_infinity=False, places=30, min_value=-(10**20), max_value=10**20),
)


@given(TEXTS)
def test_any_name_survives(name: str) -> None:
    encoded = iris.encode(name)
    assert iris.decode(encoded) == name
    assert ox.NamedNode(BASE + encoded).value == BASE + encoded


@given(TEXTS)
def test_a_name_is_a_relative_iri(name: str) -> None:
    """Resolving it against the base, as a published query does, gives the name's IRI."""
    encoded = iris.encode(name)
    store = ox.Store()
    (row,) = store.query(f"SELECT ?x {{ BIND(<{encoded}> AS ?x) }}", base_iri=BASE)
    assert row["x"].value == BASE + encoded


@given(TEXTS, TEXTS)
def test_names_do_not_meet(left: str, right: str) -> None:
    assert (iris.encode(left) == iris.encode(right)) == (left == right)
    # Nor do they meet the IRIs of statements and values.
    assert not iris.encode(left).startswith((".s", ".v", ".r", ".m", ".c"))


@given(TEXTS)
def test_strings_are_read_back_by_a_parser(text: str) -> None:
    line = f"<a:b> <a:c> {layout.string(text)} .".encode()
    (triple,) = ox.parse(line, ox.RdfFormat.N_TRIPLES)
    assert triple.object.value == text


@pytest.mark.parametrize(
    "value",
    [
        "text",
        Quantity(2.5, "metre"),
        Quantity(10**30),
        Quantity(Decimal("0.1000000000000000055511151231257827")),
        Time.year(-43),
        Time.day(1958, 5, 29),
        Time.parse("1990/.."),
        Time(5, 9, Precision.SPAN),
        UNKNOWN,
    ],
)
def test_a_value_is_read_back(value: object) -> None:
    lines = "\n".join(f"{line} ." for line in layout.value_triples("<a:v>", value))
    found: dict[str, str] = {}
    for triple in ox.parse(lines.encode(), ox.RdfFormat.N_TRIPLES):
        name = triple.predicate.value.removeprefix(iris.PRED)
        if triple.predicate.value == iris.RDF + "type":
            found["type"] = triple.object.value.removeprefix(iris.PRED)
        else:
            found[name] = triple.object.value
    assert layout.read_value(found) == value


@given(st.lists(NUMBERS, min_size=2, max_size=6))
def test_order_text_sorts_by_size(numbers: list) -> None:
    exact = {number: Decimal(format_number(number)) for number in numbers}
    shuffled = sorted(numbers, key=lambda _: random.random())
    assert [exact[n] for n in sorted(shuffled, key=layout.order_text)] == sorted(exact[n] for n in numbers)


def test_years_and_days_that_a_time_lies_in() -> None:
    assert iris.year_of(Time.month(1960, 2)) == 1960
    assert iris.date_of(Time.month(1960, 2)) is None
    assert iris.date_of(Time.second(1960, 2, 1, 12, 0)) == "1960-02-01"
    assert iris.year_of(Time.parse("1960/1961")) is None
    assert iris.year_of(Time.parse("1960/..")) is None


@pytest.mark.parametrize("base", ["films", "http://x.example/films", "http://x.example/ /", ""])
def test_a_base_that_is_none(base: str) -> None:
    with pytest.raises(OptionError):
        layout.GraphIris(base)
