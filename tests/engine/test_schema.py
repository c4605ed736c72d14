"""What a graph holds: counted right, narrowed, as text that keeps to a budget and to its lines, as
HTML that escapes.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph import GraphSchema
from condgraph.engine.errors import DeadlineError, OptionError, StoreMissingError, UnknownNameError
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot.readback import items as items_of
from condgraph.engine.stored_schema import StoredSchema, describe_schema
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph
from condgraph.models.chat import estimate
from condgraph.overview.schema import MAX_PARTS, describe
from condgraph.overview.survey import NOTE, packed, partial_survey, stored_survey, survey, unpacked
from tests.support import ugly
from tests.support.graphs import Dice
from tests.support.odd_names import LINES, LONG, NAMES, SCRIPT, TABLE, odd_names
from tests.support.samples import load_samples
from tests.support.world import world


@pytest.fixture(scope="module")
def samples() -> Iterator[Graph]:
    with condgraph.open() as graph:
        load_samples(graph)
        yield graph


def by_hand(graph: Graph) -> dict[str, Any]:
    """Counts by a walk over everything that the graph holds, an item at a time."""
    entities: dict[str, Entity] = {}
    tables: dict[str, str] = {}
    direct: dict[str, set[str]] = {}
    above: dict[str, set[str]] = {}
    statements: list[tuple[Statement, set[str]]] = []
    for one in items_of(graph.current):
        item, places = (one.item, one.sources) if isinstance(one, Sourced) else (one, ())
        if isinstance(item, Entity):
            entities[item.id] = item
            tables.update({item.id: places[0][0]} if places and item.kind is EntityKind.ROW else {})
        elif isinstance(item, Member):
            direct.setdefault(item.entity, set()).add(item.concept)
        elif isinstance(item, Subclass):
            above.setdefault(item.concept, set()).add(item.parent)
        elif isinstance(item, Statement):
            statements.append((item, {name for name, _ in places}))
        else:
            assert isinstance(item, Source)

    def kinds(ident: str) -> list[tuple[str, str]]:
        kind = entities[ident].kind if ident in entities else EntityKind.ENTITY
        # Nobody need declare what others are members of.
        if kind is EntityKind.CONCEPT or ident in meant:
            return [("concepts", "")]
        if ident in direct:
            return [("concept", concept) for concept in direct[ident]]
        return [("table", tables[ident])] if ident in tables else [("entities", "")]

    meant = {*above, *(one for some in (*above.values(), *direct.values()) for one in some)}

    def closed(concept: str) -> set[str]:
        found, waiting = {concept}, [concept]
        while waiting:
            fresh = above.get(waiting.pop(), set()) - found
            found |= fresh
            waiting += fresh
        return found

    members: Counter[str] = Counter()
    for ident, concepts in direct.items():
        if entities[ident].kind is not EntityKind.CONCEPT:
            members.update(set().union(*map(closed, concepts)))
    found: dict[str, Any] = {"members": members, "sources": Counter(), "predicates": {}}
    for one, places in statements:
        of = found["predicates"].setdefault(
            one.predicate, {name: Counter() for name in ("subjects", "objects", "values", "keys", "in")}
        )
        of["subjects"].update(kinds(one.subject))
        if isinstance(one.object, Ref):
            of["objects"].update(kinds(one.object.id))
        else:
            of["values"].update([type(one.object).__name__])
        of["keys"].update(key for key, _ in one.qualifiers)
        of["in"].update(places)
        found["sources"].update(places)
    return found


@pytest.mark.parametrize("seed", [*range(12), "world", "odd"])
def test_it_counts_as_a_walk_over_everything(seed: Any) -> None:
    if isinstance(seed, int):
        graph = condgraph.open()
        graph.add(ugly.graph(Dice(seed))[0])
    else:
        graph = world() if seed == "world" else odd_names()
    wanted, found, raw = by_hand(graph), graph.schema(), survey(graph.current)
    assert {one.name for one in found.predicates} == set(wanted["predicates"])
    assert {one.name: one.statements for one in found.sources} == {one.name: 0 for one in found.sources} | wanted["sources"]
    assert {one.id: one.members for one in found.concepts if one.members} == dict(wanted["members"])
    for place, (name, relations, attributes, values, keys, sources, examples) in enumerate(raw["predicates"]):
        of = wanted["predicates"][name]
        for side in ("subjects", "objects"):
            low, high = raw[side].starts[place : place + 2]
            kinds = [raw["kinds"][kind] for kind in raw[side].kinds[low:high]]
            # Concepts by their ids, as several may have one name.
            named = dict(zip([(kind[0], kind[2] or kind[1]) for kind in kinds], raw[side].counts[low:high].tolist(), strict=True))
            assert named == dict(of[side])
        assert attributes == sum(of["values"].values()) == sum(value[2] for value in values)
        assert {key: sum(value[2] for value in some) for key, some in keys} == dict(of["keys"])
        assert dict(sources) == dict(of["in"])
        assert 1 <= len(examples) <= 3
        assert relations + attributes == sum(one.statements for one in found.predicates if one.name == name)


def test_a_survey_is_text_for_a_store() -> None:
    found = survey(odd_names().current)
    text = packed(found, "this")
    again = unpacked(text, "this")
    assert again is not None
    assert describe(again) == describe(found)
    assert packed(again, "this") == text
    assert text.isascii()
    assert unpacked(text, "other") is None
    assert unpacked("", "") is None
    for text in ("x", "eJx=", "aGVsbG8=", "eJyrrgUAAXUA+Q==", "eJyLjgUAARUAuQ==", "eJwzAAAAMQAx"):
        with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
            unpacked(f"of 1 {text}", "of")


def test_what_it_says_of_the_samples(samples: Graph) -> None:
    found = samples.schema()
    assert [(one.name, one.format, one.rows) for one in found.sources] == [
        ("countries", "kqapro", 0), ("mountains", "csv", 31), ("governments", "quintuples", 0),
    ]  # fmt: skip
    height = next(one for one in found.predicates if one.name == "height")
    assert (height.statements, height.subjects[0].sort, height.subjects[0].name) == (31, "table", "mountains")
    (metres,) = height.values
    assert (metres.type, metres.unit, metres.count, metres.first, metres.last) == ("quantity", "m", 31, "1345 m", "8167 m")
    head = next(one for one in found.predicates if one.name == "head of government")
    assert [(key.name, key.values[0].type) for key in head.qualifiers] == [("end time", "time"), ("start time", "time")]
    assert head.qualifiers[0].values[0].first < head.qualifiers[0].values[0].last
    assert [one.unit for one in found.units] == ["m"]
    assert found.first < found.last
    for one in found.predicates:
        for example in one.examples:
            subjects = samples.current.named(example.subject)
            assert len(subjects), example
    assert found == samples.schema()
    assert json.loads(json.dumps(found.data()))["predicates"][0]["name"] == "head of government"


def test_names_narrow_it(samples: Graph) -> None:
    whole = samples.schema()
    assert [one.name for one in samples.schema(predicate="capital").predicates] == ["capital"]
    mountains = samples.schema(source="mountains")
    assert {one.name for one in mountains.predicates} == {"country", "height", "mountain", "first ascent", "range"}
    assert "mountains" in {one.name for one in mountains.sources}
    assert [one.unit for one in mountains.units] == ["m"]
    # A concept has what is in the concepts below it.
    human = samples.schema(concept="human")
    assert {"educated at", "head of government", "date of birth"} <= {one.name for one in human.predicates}
    assert "capital" not in {one.name for one in human.predicates}
    assert {one.name for one in samples.schema(concept="human", source="governments").predicates} == {"head of government"}
    assert human.counts == whole.counts
    assert all(one in whole.predicates for one in human.predicates)
    assert not human.units


def test_unknown_names_have_nearest_ones(samples: Graph) -> None:
    for kind, name, near in (
        ("source", "mountain", "mountains"),
        ("concept", "Country", "country"),
        ("predicate", "hight", "height"),
    ):
        with pytest.raises(UnknownNameError) as error:
            samples.schema(**{kind: name})  # type: ignore[arg-type]
        assert error.value.kind == kind
        assert near in error.value.candidates
    with pytest.raises(UnknownNameError) as error:
        samples.schema(predicate="start time")
    assert "key of qualifiers" in (error.value.hint or "")
    with pytest.raises(OptionError):
        samples.schema(source=3)  # type: ignore[arg-type]


def test_nothing_was_loaded() -> None:
    with pytest.raises(StoreMissingError):
        condgraph.open().schema()
    graph = condgraph.open()
    graph.add([])
    found = graph.schema()
    assert (found.statements, found.predicates, found.first) == (0, (), "")
    assert found.text() == "0 statements, 0 entities, 0 concepts."
    assert found._repr_html_()


def test_the_deadline_holds() -> None:
    with pytest.raises(DeadlineError):
        world().schema(timeout=1e-9)
    with pytest.raises(OptionError):
        world().schema(timeout=0)


def test_asyncio_and_a_folder_have_it(tmp_path: Path) -> None:
    with condgraph.open(tmp_path) as graph:
        graph.add([Statement("a", "b", Ref("c"))])

    async def ask() -> GraphSchema:
        async with await condgraph.open_async(tmp_path, read_only=True) as client:
            return await client.schema(predicate="b", timeout=10)

    assert asyncio.run(ask()) == condgraph.open(tmp_path).schema()


# -- as text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "count", [None, len, lambda text: len(text.split()), lambda text: len(text.encode()) // 3 + 7 * text.count("\n")]
)
@pytest.mark.parametrize("graph", [world, odd_names])
def test_the_text_keeps_to_its_budget(graph: Any, count: Any) -> None:
    found = graph().schema()
    counted = count or estimate
    whole = found.text(10**6, count=count)
    assert "more" not in whole.splitlines()[-1]
    for tokens in [*range(0, 200, 7), *range(200, 4000, 211)]:
        text = found.text(tokens, count=count)
        assert counted(text) <= tokens
        if counted(whole) <= tokens:
            assert text == whole
        elif text:
            lines = text.splitlines()
            told = dict.fromkeys(("predicates", "concepts", "sources", "units"), 0)
            for number, name in re.findall(r"([\d,]+) more (predicate|concept|source|unit)s?", lines[-1]) if len(lines) > 1 else ():
                told[name + "s"] = int(number.replace(",", ""))
            if len(lines) > 1:
                assert sum(told.values()) + sum(line.startswith("- ") for line in lines) == sum(
                    len(getattr(found, one)) for one in told
                )


def test_what_is_most_used_comes_first() -> None:
    graph = condgraph.open()
    graph.add([Statement(f"s{i}", f"p{j:03}", Quantity(i)) for j in range(150) for i in range(150 - j)])
    text = graph.schema().text(500)
    names = re.findall(r'^- "(p\d+)"', text, re.M)
    assert names == [f"p{j:03}" for j in range(len(names))]
    assert 5 < len(names) < 150
    assert text.splitlines()[-1] == f"and {150 - len(names)} more predicates"


def test_no_name_ends_its_line() -> None:
    """Whatever stands in a name, lines are those of the format, and every one is printable."""
    text = odd_names().schema().text(10**6)
    starts = ("- ", "Sources, ", "Concepts, ", "Predicates, ", "Units, ")
    first, *lines = text.split("\n")
    assert first.startswith("3")
    assert all(line.startswith(starts) and line.isprintable() for line in lines)
    assert text.splitlines() == text.split("\n")
    assert max(map(len, lines)) < 2_000
    # Names can be read back.
    assert json.dumps(SCRIPT) in text
    assert re.search(r'^- ("first line\\nIgnore (?:[^"\\]|\\.)*") 1', text, re.M)
    assert "x" * 59 + "…" in text
    assert LONG not in text


def test_tokens_are_a_number_and_count_a_function() -> None:
    found = world().schema()
    for tokens in (-1, 1.5, "many", True):
        with pytest.raises(OptionError):
            found.text(tokens)  # type: ignore[arg-type]
    with pytest.raises(OptionError):
        found.text(10, count="tiktoken")
    assert found.text(0) == ""
    assert str(found) == found.text(4000)


def test_tokens_are_rather_too_many() -> None:
    assert estimate("") == 0
    assert estimate("a b") == 2
    assert estimate("\n" * 5) == 5
    assert estimate("漢字") == 6
    assert estimate("1980-05-29") == 10


# -- as HTML ---------------------------------------------------------------------------------------


def htmls(graph: Graph) -> list[str]:
    shown: list[Any] = [
        graph,
        graph.schema(),
        graph.kopl("FindAll() QueryName()"),
        graph.sparql("SELECT ?s ?o WHERE { ?s ?p ?o }"),
        graph.sparql("ASK { ?s ?p ?o }"),
        found := graph.match([("UNKNOWN a", "likes", "UNKNOWN b")], k=30),
        found.solutions[0],
    ]
    return [one._repr_html_() for one in shown]


def test_html_escapes_and_is_bounded() -> None:
    from html.parser import HTMLParser

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            if tag in ("svg", "title", "g", "rect", "text", "path", "polygon"):
                assert not any(name.startswith("on") or "href" in name for name, _ in attributes)
                return
            assert tag in ("div", "table", "thead", "tbody", "tr", "th", "td", "b", "i")
            assert not attributes

    for text in htmls(odd_names()):
        Reader().feed(text)
        assert "<script" not in text
        assert len(text) < 60_000
        assert text.count("<tr>") <= 4 * 21
    assert "&lt;script&gt;" in htmls(odd_names())[1]


def test_html_says_how_many_more() -> None:
    graph = condgraph.open()
    graph.add([Statement(f"s{i}", "likes", Ref(f"o{i}")) for i in range(50)])
    asked, rows = graph.kopl("FindAll() QueryName()"), graph.sparql("SELECT ?s WHERE { ?s <likes> ?o }")
    assert "and 80 more answers" in asked._repr_html_()
    assert "and 30 more rows" in rows._repr_html_()
    assert "<td>100</td>" in graph._repr_html_()
    graph.close()
    assert "Graph" in graph._repr_html_()


def test_rows_of_cypher_are_a_list_with_html() -> None:
    from condgraph.cypher.answer import Records

    found = Records([{"n": SCRIPT, "m": None}] * 25)
    assert found == [{"n": SCRIPT, "m": None}] * 25
    assert "and 5 more rows" in found._repr_html_()
    assert "<script" not in found._repr_html_()
    assert Records()._repr_html_() == "<div><div>0 rows</div></div>"


# -- the rest --------------------------------------------------------------------------------------


def test_long_lists_say_how_much_more() -> None:
    graph = condgraph.open()
    concepts = [f"c{i:02}" for i in range(MAX_PARTS + 5)]
    graph.add([Entity(one, one, EntityKind.CONCEPT) for one in concepts])
    graph.add([Member(f"e{one}", one) for one in concepts])
    graph.add([Statement(f"e{one}", "p", Time.year(2000)) for one in concepts])
    (found,) = graph.schema().predicates
    assert len(found.subjects) == MAX_PARTS
    assert found.more == {"subjects": 5}


def test_a_graph_that_an_earlier_version_wrote() -> None:
    """A server says what it knows, and what is missing."""
    graph = odd_names()
    stored = StoredSchema(json.loads(json.dumps(describe_schema(graph.current))))
    found, whole = describe(partial_survey(stored, graph.current.counts)), graph.schema()
    assert found.note == NOTE
    assert not whole.note
    assert [(one.name, one.statements) for one in found.predicates] == [(one.name, one.statements) for one in whole.predicates]
    assert found.counts == whole.counts
    assert {one.name for one in found.concepts} == {one.name for one in whole.concepts}
    assert found.units == whole.units
    assert NOTE in found.text(2000)
    assert found._repr_html_()
    assert describe(stored_survey(None, "", stored, graph.current.counts)) == found
    kept = packed(survey(graph.current), "load1")
    assert describe(stored_survey(kept, "load1", stored, {})) == whole
    # An earlier version, which keeps no survey, added to it.
    assert describe(stored_survey(kept, "load2", stored, graph.current.counts)) == found


def test_status_points_to_it() -> None:
    status = world().status()
    assert str(status).splitlines()[-1] == "`condgraph schema`, or graph.schema(), shows what is in it"
    assert "graph.schema()" in repr(status)


def test_numbers_fit_json() -> None:
    """Nothing of NumPy is left in what is kept."""
    for graph in (world(), odd_names()):
        assert not any(isinstance(one, np.generic) for one in _leaves(graph.schema().data()))
    assert TABLE in {one.name for one in odd_names().schema().sources}
    assert LINES in {one.name for one in odd_names().schema().predicates}
    assert set(NAMES) >= {SCRIPT, LONG}


def _leaves(found: Any) -> Iterator[Any]:
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple):
        for one in found:
            yield from _leaves(one)
    else:
        yield found
