"""Points: what is read as one, where it is, distances, and points in every form in which they are stored and exported."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import LiteralError, PlanError
from condgraph.engine.execute.functions import FUNCTIONS, order_key
from condgraph.engine.iris import value_name, value_named
from condgraph.engine.values import EARTH_RADIUS, Point, Quantity, form_of, formed, read_point
from condgraph.sparql.layout import read_value

PLACES = [
    {"city": "Berlin", "at": "POINT(13.40 52.52)", "lon": "13.4", "lat": "52.52", "mixed": "POINT(1 2)", "plain": "x"},
    {"city": "Paris", "at": "POINT (2.3522 48.8566)", "lon": "2.3522", "lat": "48.8566", "mixed": "none", "plain": "y"},
    {"city": "London", "at": "SRID=4326;POINT(-0.1276 51.5072)", "lon": "-0.1276", "lat": "51.5072", "mixed": "POINT(200 3)"}
    | {"plain": "POINT"},
    {"city": "Suva", "at": "point(178.44 -18.14)", "lon": "178.44", "lat": "-18.14", "mixed": "POINT(3 4)", "plain": "z"},
]
#: Clauses over the places, with their cells.
CLAUSES: list[tuple[str, list[tuple[str, ...]]]] = [
    (
        "show city, distance(at, 'POINT(13.4 52.52)') as d order by d limit 2",
        [("Berlin", "0 metre"), ("Paris", "877153.739 metre")],
    ),
    ("show city where distance(at, 'POINT(13.4 52.52)') < 900 km order by city", [("Berlin",), ("Paris",)]),
    ("show city where distance(at, 'POINT(13.4 52.52)') < 900000 order by city", [("Berlin",), ("Paris",)]),
    ("show sum(distance(at, point(lon, lat)))", [("0 metre",)]),
    ("show city where longitude(at) >= 0 and longitude(at) < 14 and latitude(at) > 50", [("Berlin",)]),
    ("show city where at = 'POINT(13.4000 52.52)'", [("Berlin",)]),
    ("show city where at != 'POINT(13.4000 52.52)' order by city", [("London",), ("Paris",), ("Suva",)]),
    ("show count(distinct at), max(latitude(at))", [("4", "52.52")]),
    ("show city, at where city = 'Paris'", [("Paris", "POINT (2.3522 48.8566)")]),
    ("show distance(mixed, 'POINT(1 2)') where city = 'Berlin'", [("0 metre",)]),
    ("group by point(lon, lat) as p show count() order by p limit 1", [("POINT(-0.1276 51.5072)", "1")]),
]
#: Programs that compare points as the texts that they are.
PROGRAMS = [
    "FindAll() FilterStr(at, POINT(13.40 52.52)) QueryName()",
    "FindAll() QueryAttr(at)",
    "Query1: get_information(relation='at', tail_entity='POINT(13.4 52.52)')",
    "Query1: get_information(head_entity='Berlin', relation='at')\n"
    "Query2: get_information(head_entity='Paris', relation='at')\n"
    "Query3: distance(output_of_query1, output_of_query2, unit='km')",
]


@pytest.fixture(scope="module")
def places() -> Any:
    found = condgraph.open("memory:")
    found.load(PLACES, name="t", key="city")
    return found


@pytest.mark.parametrize(("clause", "cells"), CLAUSES)
def test_clauses(places: Any, clause: str, cells: list[tuple[str, ...]]) -> None:
    answer = places.query("FindAll()", table=clause)
    assert answer.cells == cells
    assert answer.check()


def test_types_are_named(places: Any) -> None:
    kinds = {part.name: [(value.type, value.count) for value in part.values] for part in places.schema().predicates}
    assert kinds["at"] == [("point", 4)]
    assert kinds["mixed"] == kinds["plain"] == [("text", 4)]
    answer = places.query("Find(Paris) QueryAttr(at)")
    assert answer.data() == [{"text": "POINT (2.3522 48.8566)", "type": "point", "longitude": 2.3522, "latitude": 48.8566}]
    assert [type(value) for value in answer.values] == [Point]


def test_the_load_says_what_it_read() -> None:
    found = condgraph.open("memory:")
    warnings = [(problem.field, problem.message) for problem in found.load(PLACES, name="t", key="city").problems]
    assert warnings == [("at", "cells are read as values of the type point; types= with text keeps them")]
    kept = condgraph.open("memory:")
    assert not kept.load(PLACES, name="t", key="city", types={"at": "text"}).problems
    assert kept.query("Find(Paris) QueryAttr(at)").data()[0]["type"] == "text"
    # Functions read texts as well.
    assert kept.query("FindAll()", table=CLAUSES[0][0]).cells == CLAUSES[0][1]


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("POINT(13.40 52.520)", "POINT(13.4 52.52)"),
        ("Point( -1e-7  5 )", "POINT(-0.0000001 5)"),
        ("POINT(-0 -0.0)", "POINT(0 0)"),
        ("<http://www.opengis.net/def/crs/OGC/1.3/CRS84> POINT(1 2)", "POINT(1 2)"),
        ("point({x: 13.4, y: 52.5, crs: 'wgs-84'})", "POINT(13.4 52.5)"),
        ("point({srid:4326, x:13.4, y:52.5})", "POINT(13.4 52.5)"),
        ('{"type": "Point", "coordinates": [1.5, 2]}', "POINT(1.5 2)"),
        ('{"coordinates":[1.5,2],"type":"Point"}', "POINT(1.5 2)"),
        ("point({x: 13.4, y: 52.5, crs: 'cartesian'})", None),
        ("point({x: 13.4, y: 52.5})", None),
        ("<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(1 2)", None),
        ("<http://www.wikidata.org/entity/Q405> Point(1 2)", None),
        ("SRID=3857;POINT(1 2)", None),
        ("POINT Z (1 2 3)", None),
        ("POINT(1 2 3)", None),
        ("POINT(180.1 0)", None),
        ("POINT(0 91)", None),
        ("POINT(1,2)", None),
        ("POINT EMPTY", None),
        ("POINT(" + " " * 300 + "1 2)", None),
        ("POINT(١ 2)", None),
    ],
)
def test_what_is_a_point(text: str, point: str | None) -> None:
    found = read_point(text)
    assert found == point
    if found is not None:
        assert read_point(found) == found
        assert (form_of(found), type(formed(str(found), "point")), formed("x", "a form of tomorrow")) == ("point", Point, "x")


@pytest.mark.parametrize("seed", range(3))
def test_distances_are_those_of_the_formula(seed: int) -> None:
    draw = random.Random(seed)
    pairs = [[(draw.uniform(-180, 180), math.degrees(math.asin(draw.uniform(-1, 1)))) for _ in range(2)] for _ in range(200)]
    rows = [
        {"k": f"r{at:03}", "p": f"POINT({a!r} {b!r})", "lon": repr(c), "lat": repr(d)} for at, ((a, b), (c, d)) in enumerate(pairs)
    ]
    found = condgraph.open("memory:")
    found.load(rows, name="t", key="k")
    table = found.query("FindAll()", table="show distance(p, point(lon, lat)), longitude(p), latitude(p)")
    for (distance, longitude, latitude), ((a, b), (c, d)) in zip(table.values, pairs, strict=True):
        # Angle between two vectors, worked out in another way than by haversines.
        angles = [(math.radians(x), math.radians(y)) for x, y in ((a, b), (c, d))]
        one, two = ((math.cos(y) * math.cos(x), math.cos(y) * math.sin(x), math.sin(y)) for x, y in angles)
        cross = math.hypot(*(one[i - 2] * two[i - 1] - one[i - 1] * two[i - 2] for i in range(3)))
        angle = math.atan2(cross, sum(x * y for x, y in zip(one, two, strict=True)))
        assert distance.unit == "metre"
        assert abs(float(distance.number) - EARTH_RADIUS * angle) < 0.01
        assert (longitude, latitude) == (Quantity(a), Quantity(b))


@pytest.mark.parametrize(
    ("call", "texts", "warning"),
    [
        ("distance(output_of_query1, 'POINT(13.4 52.52)')", ["0 metre"], ""),
        ("distance(output_of_query1, 'Point(2.3522 48.8566)', unit='km')", ["877.153739 km"], ""),
        ("distance(output_of_query1, 'Paris')", [], "distance: 'Paris' is not a point"),
        ("distance(output_of_query1, 'POINT(1 2)', unit='kg')", [], "distance: metres are not converted into 'kg'"),
    ],
)
def test_distances_of_llm_queries(places: Any, call: str, texts: list[str], warning: str) -> None:
    answer = places.query(f"Query1: get_information(head_entity='Berlin', relation='at')\nQuery2: {call}")
    assert answer.texts == texts
    assert warning in answer.warnings if warning else not answer.warnings
    assert answer.check()


@pytest.mark.parametrize(
    ("clause", "error", "message"),
    [
        ("show distance(at, 'somewhere')", LiteralError, "'somewhere' is no point"),
        ("show point(lat, lon)", PlanError, "point takes the longitude first"),
        ("show distance()", PlanError, "distance takes two points"),
        ("show point('1', lat)", LiteralError, "'1' is no number"),
    ],
)
def test_mistakes(places: Any, clause: str, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        places.query("FindAll()", table=clause)


def test_what_is_no_point_is_left_out_and_reported(places: Any) -> None:
    answer = places.query("FindAll()", table="show city, distance(mixed, at) as d, point(lat, lat) where city = 'London'")
    assert answer.cells == [("London", "", "POINT(51.5072 51.5072)")]
    assert answer.warnings == ["distance(mixed, at): no point: 2 values are left out"]
    answer = places.query("FindAll()", table="show point(lon, lon) where city = 'Suva'")
    assert answer.warnings == ["point(lon, lon): no longitude from -180 to 180 and latitude from -90 to 90: 1 value is left out"]


def test_exports_keep_points(places: Any, tmp_path: Path) -> None:
    places.export(tmp_path / "places.jsonl")
    again = condgraph.open(tmp_path / "store")
    again.load(tmp_path / "places.jsonl")
    for clause, cells in CLAUSES:
        assert again.query("FindAll()", table=clause).cells == cells
    assert again.query("Find(Paris) QueryAttr(at)").data() == places.query("Find(Paris) QueryAttr(at)").data()
    values = places.query("Find(Berlin) QueryAttr(at)").to_arrow().to_pylist()
    assert values == [{"text": "POINT(13.40 52.52)", "type": "point", "longitude": 13.4, "latitude": 52.52}]
    table = places.query("FindAll()", table="show city, at, latitude(at) as lat order by city").to_arrow()
    assert table.to_pylist()[0] == {"city": "Berlin", "at": "POINT(13.40 52.52)", "lat": 52.52}


def test_rdf_has_well_known_text(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(
        "@prefix : <http://x/> . @prefix geo: <http://www.opengis.net/ont/geosparql#> .\n"
        ':berlin :at "Point(13.40 52.52)"^^geo:wktLiteral . :mars :at "<http://m/Q111> Point(1 2)"^^geo:wktLiteral .\n'
    )
    found = condgraph.open("memory:")
    report = found.load(tmp_path / "a.ttl", names="local")
    assert [problem.message for problem in report.problems] == [
        "literals of http://www.opengis.net/ont/geosparql#wktLiteral are read as values of the type point; their texts are kept"
    ]
    assert found.query("FindAll()", table="show name, latitude(at) order by name").cells == [("berlin", "52.52"), ("mars", "")]
    found.export(tmp_path / "b.nt", to="rdf")
    text = (tmp_path / "b.nt").read_text()
    assert '"Point(13.40 52.52)"^^<http://www.opengis.net/ont/geosparql#wktLiteral>' in text
    assert '"<http://m/Q111> Point(1 2)"^^<http://www.opengis.net/ont/geosparql#wktLiteral>' in text


def test_geometries_in_records() -> None:
    found = condgraph.open("memory:")
    rows = [
        {"k": "a", "at": {"type": "Point", "coordinates": [13.4, 52.5]}},
        {"k": "b", "at": {"type": "Point", "coordinates": [1, 2]}},
    ]
    found.load(rows, name="t", key="k")
    assert found.query("FindAll()", table="show at, latitude(at)").cells == [("POINT(13.4 52.5)", "52.5"), ("POINT(1 2)", "2")]


def test_value_nodes_of_rdf_stores() -> None:
    point = Point.of(13.4, 52.5)
    assert type(value_named(value_name(point))) is Point
    assert value_named(value_name(point)) == point
    assert value_name(point) != value_name(str(point))
    assert type(read_value({"type": "Text", "value": str(point), "unit": "point"})) is Point


# -- Cypher ------------------------------------------------------------------------------------------

#: Queries over the places, with the texts of their rows.
QUERIES = [
    ("MATCH (c {city: 'Suva'}) RETURN c.at.longitude, c.at.y, c.at.srid, c.at.crs", ["178.44 | -18.14 | 4326 | wgs-84"]),
    ("MATCH (c) WHERE point.distance(c.at, point({longitude: 13.4, latitude: 52.52})) < 900000 RETURN c.city", ["Berlin", "Paris"]),
    ("MATCH (a {city: 'Berlin'}), (b {city: 'Paris'}) RETURN distance(a.at, b.at)", ["877153.739"]),
    ("MATCH (c) WHERE c.at = point({x: 13.4, y: 52.52, crs: 'WGS-84'}) RETURN c.city", ["Berlin"]),
    ("MATCH (c {at: point({latitude: 52.52, longitude: 13.4})}) RETURN c.city", ["Berlin"]),
    ("MATCH (c) WHERE c.at = 'POINT(13.4 52.52)' RETURN c.city", []),
    ("MATCH (c) RETURN c.city ORDER BY c.at DESC LIMIT 2", ["Suva", "Berlin"]),
    ("MATCH (c) RETURN max(c.at) AS east, count(DISTINCT c.at) AS n", ["POINT(178.44 -18.14) | 4"]),
    ("RETURN point({longitude: 190, latitude: 1})", ["POINT(-170 1)"]),
    ("RETURN point({longitude: null, latitude: 1}) IS NULL, point(null) IS NULL, distance(null, 1) IS NULL", ["yes | yes | yes"]),
    ("WITH point({longitude: 1, latitude: 2}) AS p RETURN toString(p)", ["point({x: 1.0, y: 2.0, crs: 'wgs-84'})"]),
    ("WITH point({longitude: 1, latitude: 2}) AS p RETURN valueType(p), p = p", ["POINT NOT NULL | yes"]),
    ("WITH point({longitude: 1, latitude: 2}) AS p RETURN (p < p) IS NULL, p <> p", ["yes | no"]),
]


@pytest.mark.parametrize(("text", "texts"), QUERIES)
def test_cypher(places: Any, text: str, texts: list[str]) -> None:
    answer = places.cypher(text)
    assert answer.texts == texts
    assert not texts or answer.check()


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ("{x: 1, y: 2}", "coordinate system cartesian (7203)"),
        ("{x: 1, y: 2, z: 3}", "coordinate system cartesian-3d (9157)"),
        ("{longitude: 1, latitude: 2, height: 3}", "coordinate system wgs-84-3d (4979)"),
        ("{longitude: 1, latitude: 2, srid: 7203}", "coordinate system cartesian (7203)"),
        ("{x: 1, y: 2, crs: 'mars'}", "no crs 'mars'; nearest: 'WGS-84'"),
        ("{x: 1, y: 2, srid: '4326'}", "no srid '4326'; nearest: '4326'"),
        ("{x: 1, y: 2, srid: 4326, crs: 'wgs-84'}", "crs or srid, not both"),
        ("{longitude: 1, y: 2}", "not both"),
        ("{longitude: 1}", "lacks 'latitude'"),
        ("{long: 1, latitude: 2}", "no key 'long'; nearest: 'longitude'"),
        ("{longitude: 1, latitude: 90.5}", "no place has the latitude 90.5"),
        ("{longitude: '1', latitude: 2}", "a number of degrees, not a text"),
        ("{longitude: true, latitude: 2}", "a number of degrees, not a truth value"),
        ("{longitude: 1e300 * 1e300, latitude: 2}", "not a number of degrees: inf"),
        ("'POINT(1 2)'", "takes a map, not a text"),
    ],
)
def test_cypher_names_what_is_no_point(places: Any, of: str, message: str) -> None:
    with pytest.raises(PlanError) as raised:
        places.cypher(f"RETURN point({of}) AS p")
    assert message in str(raised.value)


def test_cypher_measures_points_alone_and_names_their_parts(places: Any) -> None:
    with pytest.raises(PlanError, match="of two points, not of a text"):
        places.cypher("RETURN distance('POINT(1 2)', point({longitude: 1, latitude: 2})) AS d")
    with pytest.raises(PlanError, match="a point has no property 'height'"):
        places.cypher("WITH point({longitude: 1, latitude: 2}) AS p RETURN p.height")
    with pytest.raises(PlanError, match="toUpper\\(\\) is not defined for a point"):
        places.cypher("RETURN toUpper(point({longitude: 1, latitude: 2})) AS p")


def test_parameters_of_cypher_are_points_of_python_and_of_the_driver(places: Any) -> None:
    spatial = pytest.importorskip("neo4j.spatial")
    text = "MATCH (c) WHERE point.distance(c.at, $p) < 1000 RETURN c.city"
    assert places.cypher(text, {"p": Point.of(13.4, 52.52)}).texts == ["Berlin"]
    assert places.cypher(text, {"p": spatial.WGS84Point((13.4, 52.52))}).texts == ["Berlin"]
    with pytest.raises(PlanError, match="cartesian"):
        places.cypher(text, {"p": spatial.CartesianPoint((13.4, 52.52))})


def test_the_order_of_points_is_that_of_their_keys() -> None:
    chosen = random.Random(5)
    points = [Point.of(round(chosen.uniform(-180, 180), 3), round(chosen.uniform(-90, 90), 3)) for _ in range(60)]
    points += [Point.of(points[0].longitude, 1.5), Point.of(points[0].longitude, -1.5)]
    by_numbers = sorted(points, key=lambda point: (point.longitude, point.latitude))
    assert sorted(points, key=order_key) == sorted(points, key=FUNCTIONS["orderkey"]) == by_numbers


@pytest.mark.parametrize(
    ("place", "box", "within"),
    [
        ((13.4, 52.5), (12, 52, 14, 53), True),
        ((12, 52), (12, 52, 14, 53), True),
        ((11.9, 52.5), (12, 52, 14, 53), False),
        ((13.4, 54), (12, 52, 14, 53), False),
        ((-179, 0), (170, -1, -170, 1), True),
        ((0, 0), (170, -1, -170, 1), False),
        ((13, 52.5), (12, 53, 14, 52), False),
    ],
)
def test_cypher_asks_whether_a_point_is_in_a_box(places: Any, place: Any, box: Any, within: bool) -> None:
    made = ["point({{longitude: {}, latitude: {}}})".format(*one) for one in (place, box[:2], box[2:])]
    assert places.cypher(f"RETURN point.withinBBox({', '.join(made)}) AS x").values == [(within,)]
    assert places.cypher(f"RETURN point.withinBBox({made[0]}, {made[1]}, null) AS x").values == [(None,)]
    with pytest.raises(PlanError, match="of three points, not of a text"):
        places.cypher(f"RETURN point.withinBBox('POINT(1 2)', {made[1]}, {made[2]}) AS x")
