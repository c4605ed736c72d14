"""Names in programs to names of a vocabulary."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import condgraph
from condgraph.engine.errors import StoreDamagedError, StoreVersionError, UnknownNameError
from condgraph.engine.facts import Statement
from condgraph.names.vocabulary import THRESHOLD, Vocabulary, resolve
from condgraph.vectors.encoders import LexicalEncoder
from tests.support.pace import quick_enough

NAMES = [
    "Italy",
    "Spain",
    "ITALY",
    "France",
    "Italy",
    "New  Zealand",
    "Great Britain",
    "Hyytiäinen",
    "United States",
    "United Kingdom",
]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(NAMES)


@pytest.mark.parametrize(
    ("name", "positions", "how"),
    [
        ("Italy", [0, 4], "exact"),
        ("ITALY", [2], "exact"),
        ("italy", [0, 2, 4], "folded"),
        ("New Zealand", [5], "exact"),
        (" New Zealand ", [5], "exact"),
        ("new\tzealand", [5], "folded"),
        ("Hyytiainen", [7], "folded"),
        ("Itally", [0, 2, 4], "similar"),
        ("Great Britian", [6], "similar"),
    ],
)
def test_the_first_way_that_finds_anything_counts_with_all_its_ties(
    vocabulary: Vocabulary, name: str, positions: list[int], how: str
) -> None:
    found = resolve(name, vocabulary)
    assert [match.position for match in found.matches] == positions
    assert {match.how for match in found.matches} == {how}
    assert [match.name for match in found.matches] == [NAMES[position] for position in positions]
    assert all((match.score == 1.0) == (how != "similar") for match in found.matches)


def test_nothing_alike_gives_an_error_with_what_is_nearest(vocabulary: Vocabulary) -> None:
    found = resolve("Unity", vocabulary, threshold=0.6)
    assert found.matches == ()
    with pytest.raises(UnknownNameError, match="unknown value 'Unity'") as raised:
        found.require("value", (3, 8))
    assert raised.value.candidates[:2] == ("United States", "United Kingdom")
    assert raised.value.span == (3, 8)


def test_near_matches_are_best_first_and_limited(vocabulary: Vocabulary) -> None:
    found = resolve("United Nations", vocabulary, most=2)
    assert [match.name for match in found.matches] == ["United States"]
    assert [match.name for match in found.near] == ["United Kingdom"]
    scores = [match.score for match in (*found.matches, *found.near)]
    assert scores == sorted(scores, reverse=True)
    assert resolve("United", vocabulary, threshold=2, most=1).near[0].score < 1


def test_the_threshold_includes_itself(vocabulary: Vocabulary) -> None:
    score = resolve("Spains", vocabulary).matches[0].score
    assert score > THRESHOLD
    assert resolve("Spains", vocabulary, threshold=score).matches
    assert not resolve("Spains", vocabulary, threshold=score + 1e-5).matches


def test_among_limits_every_way(vocabulary: Vocabulary) -> None:
    some = np.array([3, 4, 8])
    assert [match.position for match in resolve("Italy", vocabulary, among=some).matches] == [4]
    assert [match.position for match in resolve("italy", vocabulary, among=some).matches] == [4]
    assert [match.position for match in resolve("Spain", vocabulary, among=some).matches] == []
    assert [match.position for match in resolve("United Kingdom", vocabulary, among=some).matches] == [8]


@pytest.mark.parametrize("name", ["", "  ", "日本", "x"])
def test_names_without_anything_in_common(vocabulary: Vocabulary, name: str) -> None:
    assert resolve(name, vocabulary).matches == ()
    assert resolve(name, Vocabulary([])).matches == ()


def test_the_empty_name_is_found_where_it_is_one() -> None:
    assert [match.position for match in resolve(" ", Vocabulary(["a", ""])).matches] == [1]


@given(st.lists(st.text(max_size=12), min_size=1, max_size=12), st.data())
def test_every_name_finds_itself_and_all_that_equal_it(names: list[str], data: st.DataObject) -> None:
    vocabulary = Vocabulary(names)
    at = data.draw(st.integers(0, len(names) - 1))
    found = resolve(names[at], vocabulary)
    wanted = " ".join(names[at].split())
    assert [match.position for match in found.matches] == [i for i, name in enumerate(names) if " ".join(name.split()) == wanted]


@given(st.lists(st.text(alphabet="abcd ", max_size=12), min_size=1, max_size=12), st.text(alphabet="abcd ", max_size=12))
def test_similarities_are_the_products_of_the_vectors(names: list[str], name: str) -> None:
    encoder = LexicalEncoder(256)
    similarities = Vocabulary(names, encoder=encoder).similarities(name)
    assert similarities == pytest.approx(encoder.encode(names) @ encoder.encode([name])[0], abs=2e-6)


def test_a_vocabulary_survives_as_arrays(vocabulary: Vocabulary) -> None:
    arrays = vocabulary.arrays()
    assert all(array.dtype.kind in "uif" for array in arrays.values())
    again = Vocabulary.from_arrays(NAMES, arrays)
    for name in ("Italy", "italy", "Itally", "Unity", ""):
        assert resolve(name, again) == resolve(name, vocabulary)


def test_arrays_that_do_not_fit_are_errors(vocabulary: Vocabulary) -> None:
    arrays = vocabulary.arrays()
    with pytest.raises(StoreDamagedError, match="lacks starts"):
        Vocabulary.from_arrays(NAMES, {key: array for key, array in arrays.items() if key != "starts"})
    with pytest.raises(StoreDamagedError, match="does not fit 9 names"):
        Vocabulary.from_arrays(NAMES[:-1], arrays)
    with pytest.raises(StoreDamagedError, match="does not fit"):
        Vocabulary.from_arrays(NAMES, arrays | {"members": arrays["members"][:-1]})
    with pytest.raises(StoreDamagedError, match="does not fit"):
        Vocabulary.from_arrays(NAMES, arrays | {"members": np.full_like(arrays["members"], len(NAMES))})
    with pytest.raises(StoreVersionError, match="'lexical-0'"):
        Vocabulary.from_arrays(NAMES, arrays | {"encoder": np.frombuffer(b"lexical-0", np.uint8)})


def test_a_search_among_the_names_of_a_knowledge_graph_is_fast_and_right(data: Path) -> None:
    names: dict[str, None] = {}
    for line in (data / "metaqa" / "kb.txt").read_text("utf-8").splitlines():
        head, _, tail = line.split("|")
        names[head] = names[tail] = None
    vocabulary = Vocabulary(list(names))
    assert len(vocabulary) == 43_234
    vocabulary.prepare()
    took = []
    for wanted, expected in [
        ("Clint Eastwod", "Clint Eastwood"),
        ("Schindlers List", "Schindler's List"),
        ("Lord of the Ring", "The Lord of the Rings"),
    ]:
        begin = time.perf_counter()
        found = resolve(wanted, vocabulary)
        took.append(time.perf_counter() - begin)
        assert expected in [match.name for match in (*found.matches, *found.near)]
    # About 1 ms; the dense product with 1,024 columns takes 5 ms.
    assert quick_enough(min(took), 0.01)


def test_another_name_is_no_spelling() -> None:
    """A country that a graph lacks is not the one whose name looks like it, whoever asks for it."""
    graph = condgraph.open()
    graph.add([Statement(airport, "country", "Ireland") for airport in ("Cork", "Dublin", "Shannon")])
    query = "Query1: \"get_information(relation='country', tail_entity='{}')\""
    assert graph.query(query.format("Irland")).texts == ["Cork", "Dublin", "Shannon"]
    with pytest.raises(UnknownNameError) as missing:
        graph.query(query.format("Iceland"))
    assert missing.value.candidates == ("Ireland",)
