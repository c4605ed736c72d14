"""Drawings for notebooks: what is drawn of statements and schemas, and that the picture is well formed and readable."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import condgraph
from condgraph import Entity, Graph, Ref, Statement
from condgraph.engine.drawing import MAX_ARROWS, MAX_NODES, MAX_PARALLEL, MAX_UNGROUPED, Drawing, of_kinds, of_statements

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "</text><script>alert('x')</script>\x07 & \"quoted\""


def made(*triples: tuple[str, str, str]) -> Graph:
    graph = condgraph.open()
    graph.add([Statement(start, name, Ref(end)) for start, name, end in triples])
    return graph


def drawn(graph: Graph) -> Drawing:
    return graph.cypher("MATCH (a)-[r]->(b) RETURN a, r, b").draw()


def boxes(drawing: Drawing) -> list[tuple[float, float, float, float]]:
    """The rectangles of the nodes: left, top, right, bottom."""
    found = []
    for rect in ET.fromstring(drawing.svg).iter(f"{SVG}rect"):
        x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    return found


def test_each_statement_is_an_edge_and_each_entity_a_node() -> None:
    drawing = drawn(made(("Ann", "knows", "Bob"), ("Bob", "knows", "Ann"), ("Bob", "likes", "Bob")))
    assert [box.text for box in drawing.boxes] == ["Ann", "Bob"]
    assert str(drawing).splitlines() == ["Ann --knows--> Bob", "Bob --knows--> Ann", "Bob --likes--> Bob"]
    assert drawing.left_out == ""


def test_values_are_nodes_of_their_own_and_qualifiers_below_the_edge() -> None:
    graph = condgraph.open()
    graph.add([Statement("Ann", "height", "tall", (("since", "1999"),)), Statement("Bob", "height", "tall")])
    drawing = graph.kopl("FindAll() QueryAttr(height)").draw()
    assert sorted(box.text for box in drawing.boxes) == ["Ann", "Bob", "tall", "tall"]
    assert [arrow.below for arrow in drawing.arrows] == ["since: 1999", ""]
    assert {box.kind for box in drawing.boxes if box.text == "tall"} == {"answer"}


def test_many_alike_are_a_group_with_their_number() -> None:
    many = [("Ann", "knows", f"p{i}") for i in range(30)]
    drawing = drawn(made(*many, ("Ann", "likes", "Bob"), ("p0", "likes", "Bob")))
    group = next(box for box in drawing.boxes if box.kind == "group")
    assert group.text == "29: p1, p10, p11, ..."
    assert len(drawing.arrows) == 4
    few = drawn(made(*many[:MAX_UNGROUPED]))
    assert len(few.arrows) == MAX_UNGROUPED


def test_what_does_not_fit_is_counted() -> None:
    drawing = drawn(made(*((f"a{i}", "knows", f"b{i}") for i in range(700))))
    assert len(drawing.boxes) == MAX_NODES
    assert drawing.left_out == f"and {700 - MAX_NODES // 2} more statements"
    assert drawing.left_out in drawing.svg


@pytest.mark.parametrize("shape", ["star", "chain", "cycle", "pairs", "clique", "one"])
def test_nodes_do_not_lie_on_each_other(shape: str) -> None:
    names = [f"a rather long name {i}" if i % 3 else f"n{i}" for i in range(24)]
    edges = {
        "star": [(names[0], name) for name in names[1:]],
        "chain": [*pairwise(names)],
        "cycle": [*zip(names, [*names[1:], names[0]], strict=True)],
        "pairs": [*zip(names[::2], names[1::2], strict=True)],
        "clique": [*combinations(names[:9], 2)],
        "one": [(names[0], names[0])],
    }[shape]
    # Predicates of one edge each, so that nothing is a group.
    drawing = drawn(made(*((start, f"p{at}", end) for at, (start, end) in enumerate(edges))))
    for one, other in combinations(boxes(drawing), 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    assert drawing.svg == drawn(made(*((start, f"p{at}", end) for at, (start, end) in enumerate(edges)))).svg


def test_names_are_data_and_no_markup() -> None:
    graph = condgraph.open()
    graph.add([Entity("a", EVIL), Entity("b", "山" * 400), Statement("a", EVIL, Ref("b"), ((EVIL, EVIL),))])
    drawing = drawn(graph)
    root = ET.fromstring(drawing.svg)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {"svg", "title", "g", "rect", "text", "path", "polygon"}
    assert "href" not in drawing.svg
    assert len(drawing.svg) < 6_000


def test_a_schema_of_many_predicates_is_a_few_arrows() -> None:
    drawing = of_kinds([("a", f"p{at}", "b", "") for at in range(10_000)], "schema")
    assert [arrow.text for arrow in drawing.arrows] == [f"p{at}" for at in range(MAX_PARALLEL)]
    assert f"and {10_000 - MAX_PARALLEL:,} more predicates" in drawing.svg
    kinds = [(f"k{at % 20}", f"p{at}", f"k{at % 39}", "") for at in range(780)]
    drawing = of_kinds(kinds, "schema")
    assert len(drawing.arrows) == MAX_ARROWS
    assert f"and {len(kinds) - MAX_ARROWS:,} more predicates" in drawing.svg


def test_the_longest_of_several_texts_between_two_boxes_has_room() -> None:
    texts = [("a", "to", "b", "9"), ("a", "stationID", "b", "112,000, other kinds too")]
    (_, _, left, _), (right, _, _, _) = sorted(boxes(of_kinds(texts, "schema")))
    assert right - left > 5 * len(texts[1][3])


def test_nothing_is_an_empty_picture() -> None:
    drawing = of_statements([])
    assert (drawing.boxes, str(drawing)) == ((), "")
    ET.fromstring(drawing.svg)


def test_evidence_subgraphs_and_schemas_are_drawn_in_notebooks(tmp_path: Path) -> None:
    graph = condgraph.open()
    (tmp_path / "peaks.csv").write_text("mountain,country,height\nEiger,Switzerland,3967 m\nFuji,Japan,3776 m\n")
    graph.load(tmp_path / "peaks.csv", key="mountain", refs=["country"])
    answer = graph.kopl("Find(Eiger) Relate(country, forward) QueryName()")
    assert answer.evidence._repr_html_().count("<svg") == 1
    assert "Eiger" in answer.evidence._repr_html_()
    place = answer.draw().save(tmp_path / "answer.svg")
    assert ET.parse(place).getroot().tag == f"{SVG}svg"
    matches = graph.match([("UNKNOWN 1", "country", "Japan")])
    drawing = matches.solutions[0].draw()
    assert {box.text: box.kind for box in drawing.boxes} == {"Fuji": "answer", "Japan": "entity"}
    assert "<svg" in matches.solutions[0]._repr_html_()
    schema = graph.schema()
    assert str(schema.draw()).startswith("peaks --country--> ")
    assert schema._repr_html_().count("<svg") == 1


@pytest.mark.parametrize("engine", [None, "sparql"])
def test_plans_are_drawn_with_what_their_steps_gave(engine: Any) -> None:
    graph = made(("Ann", "knows", "Bob"), ("Eve", "knows", "Bob"), ("Bob", "knows", "Eve"))
    program = "Find(Ann) Relate(knows, forward) FindAll() Relate(knows, forward) And() Count()"
    drawing = graph.kopl(program, engine=engine).draw_plan()
    texts = [box.text for box in drawing.boxes]
    assert texts[0] == "1 · Count()"
    assert drawing.boxes[0].kind == "answer"
    assert texts.count("1 · ByName('Ann')") == 1
    ends = {(drawing.boxes[arrow.start].text, drawing.boxes[arrow.end].text) for arrow in drawing.arrows}
    assert ("1 · Intersect()", "1 · Count()") in ends
    assert ET.fromstring(drawing.svg).tag == f"{SVG}svg"


def test_the_picture_of_the_readme_is_of_its_answer() -> None:
    """Its texts: where they are may differ by a pixel between processors."""
    root = Path(__file__).parents[2]
    code = (root / "README.md").read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    given: dict[str, Any] = {}
    exec(code, given)
    shown = ET.parse(root / "docs" / "assets" / "evidence.svg").getroot()
    assert [*shown.itertext()] == [*ET.fromstring(given["picture"].svg).itertext()]
