"""Folders that describe their tables themselves: data packages, CSVW metadata, GTFS feeds; and zip
archives of folders and files.
"""

from __future__ import annotations

import io
import json
import random
import stat
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import LoadError
from condgraph.graph import Graph
from condgraph.reports import LoadReport

GTFS = {
    "agency": "agency_id,agency_name,agency_url,agency_timezone\n1,Town Bus,http://example.org,Europe/Zurich\n",
    "calendar": "service_id,monday,tuesday,start_date,end_date\nWK,1,1,20240101,20241231\nWE,0,0,20240101,20241231\n",
    "calendar_dates": "service_id,date,exception_type\nWK,20240102,2\nXMAS,20241225,1\n",
    "routes": "route_id,agency_id,route_short_name,route_type\nR1,1,10,3\nR2,1,007,3\n",
    "stop_times": "trip_id,arrival_time,departure_time,stop_id,stop_sequence,pickup_type\nT1,23:58:00,23:58:00,S1,1,0\n"
    "T1,24:03:30,24:04:00,S2,2\nT1,25:10:00,25:10:00,S3,3\nT2,6:10:00,6:10:00,S1,2,,\nT3,100:15:00,100:30:00,S1,1\n",
    "stops": "\ufeffstop_id,stop_name,stop_lat,stop_lon,zone_id,location_type,parent_station\nS0,Central,47.0,8.0,Z,1,\n"
    "S1,Central A,47.0,8.0,Z,0,S0\nS2,Market,47.1,8.1,Y,0\nS3,Harbour,47.2,8.2,Y,0,\n",
    "trips": "route_id,service_id,trip_id,trip_headsign,shape_id\nR1,WK,T1,Harbour,A\nR1,XMAS,T2,Central,A\nR2,WE,T3,Harbour,\n",
    "shapes": "shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence\nA,47,8,1\nA,47.1,8,2\n",
    "fare_attributes": "fare_id,price,currency_type\nlow,1.50,CHF\n",
    "fare_rules": "fare_id,route_id,origin_id\nlow,R1,Z\n",
    "frequencies": "",
    "feed_info": "feed_publisher_name,feed_lang\n",
}


def texts(graph: Graph, program: str) -> list[str]:
    return graph.kopl(program).texts


def loaded(folder: Path, **options: Any) -> tuple[Graph, LoadReport]:
    graph = condgraph.open("memory:")
    return graph, graph.load(folder, **options)


def written(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


@pytest.mark.parametrize("suffix", [".txt", ".csv"])
def test_a_gtfs_feed_is_one_source_with_its_own_keys(tmp_path: Path, suffix: str) -> None:
    folder = written(tmp_path / "feed", {f"{name}{suffix}": text for name, text in GTFS.items()})
    graph, report = loaded(folder)
    assert (report.formats, report.sources, report.skipped) == (("folder",), ("feed",), 0)
    late = "FindAll() FilterConcept(stop_times) FilterNum(arrival_time, 86400 s, >)"
    assert texts(graph, f"{late} Relate(trip_id, forward) QueryName()") == ["trips/T1", "trips/T3"]
    assert texts(graph, f"{late} Count()") == ["3"]
    assert texts(graph, "Find(Central) Relate(parent_station, backward) QueryName()") == ["Central A"]
    assert texts(graph, "Find(Market) Relate(stop_id, backward) Relate(trip_id, forward) QueryName()") == ["trips/T1"]
    assert texts(graph, "FindAll() FilterConcept(routes) Relate(agency_id, forward) QueryName()") == ["Town Bus"]
    assert texts(graph, "FindAll() FilterStr(route_short_name, 007) QueryAttr(route_type)") == ["3"]
    # A service with exceptions alone is a row as well, and so is what rows have in common.
    assert texts(graph, "FindAll() FilterConcept(trips) Relate(service_id, forward) QueryName()") == [
        "calendar/WE",
        "calendar/WK",
        "service/XMAS",
    ]
    assert texts(graph, "Find(trips/T2) Relate(service_id, forward) Relate(service_id, backward) QueryName()") == [
        "calendar_dates/2",
        "trips/T2",
    ]
    assert texts(graph, "Find(trips/T1) Relate(shape_id, forward) Relate(shape_id, backward) FilterConcept(shapes) Count()") == [
        "2"
    ]
    assert texts(graph, "FindAll() FilterConcept(fare_rules) Relate(origin_id, forward) QueryName()") == ["zone/Z"]
    assert texts(graph, "FindAll() FilterConcept(fare_rules) Relate(fare_id, forward) QueryAttr(price)") == ["1.50"]
    said = [str(one) for one in report.problems]
    assert any(f"frequencies{suffix}: the table is empty and is left out" in one for one in said)
    assert sum("not a key of" in one or "join=" in one for one in said) == 0
    assert texts(graph, "FindAll() FilterDate(start_date, 2024-01-01, =) Count()") == ["2"]
    assert texts(graph, "FindAll() FilterDate(date, 2024-12-25, =) Relate(service_id, forward) QueryName()") == ["service/XMAS"]


def test_other_folders_of_texts_are_no_feed(tmp_path: Path) -> None:
    folder = written(tmp_path / "f", {"stops.txt": "name,place\na,b\nc,d\n", "trips.txt": "from,to,km\nx,y,3\nz,w,4\n"})
    assert loaded(folder)[1].formats == ("csv", "csv")


SHOP = {
    "customers.csv": "customerID,name,city\n1,Ann,Oslo\n2,Bob,Rome\n",
    "orders.csv": "orderID,customerID,amount\n10,1,120\n11,1,80\n12,2,200\n",
}
EVENTS = {
    "name": "minimal",
    "resources": [
        {
            "name": "event",
            "path": "event.tsv",
            "schema": {
                "fields": [
                    {"name": name, "type": kind} for name, kind in (("id", "string"), ("parent", "string"), ("n", "integer"))
                ],
                "missingValues": ["", "-999"],
                "primaryKey": "id",
                "foreignKeys": [{"fields": "parent", "reference": {"resource": "", "fields": "id"}}],
            },
        }
    ],
}


def test_a_data_package_without_schemas_is_the_folder_it_is_without(tmp_path: Path) -> None:
    package = {"name": "shop", "resources": [{"name": name[:-4], "path": name} for name in SHOP]}
    graph, report = loaded(written(tmp_path / "shop", {**SHOP, "datapackage.json": package, "README.md": "About"}))
    assert report.formats == ("folder",)
    assert texts(graph, "FindAll() FilterNum(amount, 100, >) Relate(customerID, forward) QueryName()") == ["Ann", "Bob"]
    assert [one for one in report.problems if "separated by" not in one.message] == []


@pytest.mark.parametrize("alone", [False, True])
def test_missing_values_and_foreign_keys_of_a_data_package(tmp_path: Path, alone: bool) -> None:
    rows = "id\tparent\tn\n007\t\t5\nNA\t007\t-999\ne3\tNA\t7\ne4\tzz\t\n"
    folder = written(tmp_path / "dp", {"datapackage.json": EVENTS, "event.tsv": rows})
    graph, report = loaded(folder / "datapackage.json" if alone else folder)
    assert texts(graph, "FindAll() QueryAttr(n)") == ["5", "7"]
    assert texts(graph, "Find(event/007) Relate(parent, backward) QueryName()") == ["event/NA"]
    assert texts(graph, "Find(event/NA) Relate(parent, backward) QueryName()") == ["event/e3"]
    assert [one.message for one in report.problems] == ["'zz' is not a key of 'event'; the cell is kept as text"]


def test_files_beside_their_description_are_loaded_once(tmp_path: Path) -> None:
    folder = written(tmp_path / "dp", {"datapackage.json": EVENTS, "event.tsv": "id\tparent\tn\na\t\t5\n", "x.json": {"a": 1}})
    (folder / "d.json").mkdir()
    graph = condgraph.open("memory:")
    assert graph.load(str(folder / "*")).formats == ("folder", "json")
    assert texts(graph, "FindAll() QueryAttr(n)") == ["5"]
    assert loaded(folder)[1].formats == ("folder",)


def test_what_a_data_package_may_say_of_its_files(tmp_path: Path) -> None:
    fields = [
        {"name": "id", "type": "string"},
        {"name": "when", "type": "date", "format": "%d/%m/%Y"},
        {"name": "size", "type": "number", "decimalChar": ",", "groupChar": "."},
    ]
    package = {
        "resources": [
            {"name": "people", "path": "data/p.csv", "dialect": {"delimiter": ";", "header": False}, "schema": "p.schema.json"},
            {
                "name": "towns",
                "path": "data/t.txt",
                "encoding": "latin-1",
                "schema": {"fields": fields},
            },
            {"name": "inline", "data": [{"a": 1, "b": "x"}, {"a": 2}]},
            {"name": "pairs", "data": [["a", "b"], [3, "x"]]},
            {"name": "picture", "path": "data/p.png"},
            {"name": "far", "path": "https://example.org/x.csv"},
            {"name": "above", "path": "../x.csv"},
        ]
    }
    schema = {
        "fields": [{"name": "pid", "type": "string"}, {"name": "town"}, {"name": "zip", "type": "string"}],
        "primaryKey": "pid",
        "foreignKeys": [{"fields": ["town"], "reference": {"resource": "towns", "fields": ["id"]}}],
    }
    folder = written(
        tmp_path / "dp",
        {
            "datapackage.json": package,
            "p.schema.json": schema,
            "data/p.csv": "1;A;01234\n2;B;5\n2;A;6\n",
            "data/p.png": "",
            "x.csv": "x,y\n1,2\n",
        },
    )
    (folder / "data/t.txt").write_bytes('id,when,size\nA,01/02/2020,"1,234"\nB,03/02/2020,2.000\nC,é,\n'.encode("latin-1"))
    graph, report = loaded(folder)
    assert texts(graph, "FindAll() FilterStr(zip, 01234) Relate(town, forward) FilterDate(when, 2020-02-01, =) Count()") == ["1"]
    assert texts(graph, "FindAll() FilterNum(size, 1.234, =) Count()") == ["1"]
    assert texts(graph, "FindAll() FilterNum(size, 2000, =) Count()") == ["1"]
    assert texts(graph, "FindAll() QueryAttr(a)") == ["1", "2", "3"]
    assert texts(graph, "FindAll() QueryAttr(y)") == ["2"]
    said = [one.message for one in report.problems]
    assert [one for one in said if "folder" in one or "tables" in one or "key" in one] == [
        "resources that are not tables are left out: 'picture'",
        "resources outside the folder are left out: 'far', 'above'",
        "this is the declared key, but 1 of its cells repeat others; rows are numbered instead",
    ]
    # Options overrule what the folder says.
    graph, _ = loaded(folder, types={"people.zip": "number"})
    assert texts(graph, "FindAll() QueryAttr(zip)") == ["5", "6", "01234"]


@pytest.mark.parametrize(
    ("package", "error"),
    [
        ("[]", "a description of tables is a JSON object"),
        ('{"resources": [', "this is not JSON"),
        ({"resources": [{"name": "a", "path": "none.csv"}]}, "'a' should be none.csv, which does not exist"),
        ({"resources": []}, "the folder has no CSV"),
        ("[" * 100_000, "this is not JSON"),
    ],
)
def test_a_data_package_that_cannot_be_read(tmp_path: Path, package: Any, error: str) -> None:
    folder = written(tmp_path / "dp", {"datapackage.json": package})
    with pytest.raises(condgraph.CondgraphError, match=error):
        loaded(folder)


def test_a_table_that_is_not_there_may_be_left_out(tmp_path: Path) -> None:
    package = {"resources": [{"name": "a", "path": "none.csv"}, {"name": "orders", "path": "orders.csv"}]}
    folder = written(tmp_path / "dp", {"datapackage.json": package, **SHOP})
    with pytest.raises(LoadError, match=r"'a' should be none\.csv"):
        loaded(folder)
    assert loaded(folder, on_error="skip")[1].skipped == 1


CSVW = {
    "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
    "null": "-",
    "tables": [
        {
            "url": "countries.csv",
            "tableSchema": {
                "columns": [
                    {"titles": "Country Code", "name": "code", "datatype": "string"},
                    {"titles": ["latitude"], "name": "lat", "datatype": "number"},
                    {"titles": {"en": "name"}},
                ],
                "primaryKey": "code",
            },
        },
        {
            "url": "slice.csv",
            "dialect": {"delimiter": ";", "commentPrefix": "%"},
            "tableSchema": {
                "columns": [
                    {"titles": "countryRef", "name": "ref"},
                    {"titles": "day", "name": "day", "datatype": {"base": "date", "format": "dd/MM/yyyy"}},
                    {"titles": "population", "name": "pop", "datatype": "integer", "null": ["-999", "x"]},
                ],
                "foreignKeys": [{"columnReference": "ref", "reference": {"resource": "countries.csv", "columnReference": "code"}}],
            },
        },
    ],
}


@pytest.mark.parametrize("name", ["csvw-metadata.json", "about.json", "slice.csv-metadata.jsonld"])
@pytest.mark.parametrize("alone", [False, True])
def test_csvw_metadata_says_what_tables_are(tmp_path: Path, name: str, alone: bool) -> None:
    files = {
        name: CSVW,
        "countries.csv": "Country Code,latitude,name\nAD,42.5,Andorra\nNA,1.5,Namibia\n007,-,X\n",
        "slice.csv": "%of\ncountryRef;day;population\nAD;03/04/1960;8616\nNA;05/06/1961;-999\n007;01/02/1962;x\n",
    }
    folder = written(tmp_path / "c", files)
    graph, report = loaded(folder / name if alone else folder)
    assert report.formats == ("folder",)
    assert texts(graph, "FindAll() FilterDate(day, 1960-04-03, =) Relate(countryRef, forward) QueryName()") == ["Andorra"]
    assert texts(graph, "FindAll() FilterDate(day, 1961-06-05, =) Relate(countryRef, forward) QueryName()") == ["Namibia"]
    assert texts(graph, "FindAll() QueryAttr(population)") == ["8616"]
    assert texts(graph, "FindAll() QueryAttr(latitude)") == ["1.5", "42.5"]
    assert not [one for one in report.problems if "comment" not in one.message]


def test_csvw_metadata_of_files_below_its_base(tmp_path: Path) -> None:
    metadata = {"@context": ["http://www.w3.org/ns/csvw", {"@base": "data/"}], "url": "p.csv", "tableSchema": "schema.json"}
    columns = [{"name": "a", "datatype": "string"}, {"name": "b", "separator": " "}]
    files = {"metadata.json": metadata, "data/p.csv": "a;b\n01;2 3\n", "data/schema.json": {"columns": columns}}
    graph, report = loaded(written(tmp_path / "c", files))
    assert (report.formats, texts(graph, "FindAll() FilterStr(a, 01) QueryAttr(b)")) == (("folder",), ["2", "3"])
    assert [one for one in report.problems if "separated by" not in one.message] == []
    elsewhere = {**metadata, "url": "http://example.org/p.csv"}
    report = loaded(written(tmp_path / "d", {"m.json": elsewhere, "x.csv": "a,b\n1,2\n"}))[1]
    assert "tables outside the folder are left out: 'http://example.org/p.csv'" in str(report.kinds)


LISTS = "id;tags;sizes;seen;boss\na;red|blue| old one ;1,5|2,5||-|;01/02/2020|03/04/2021;b|c\nb;;7;;\nc;x|x;-;05/06/2022;\n"


def test_separators_make_cells_lists_of_values(tmp_path: Path) -> None:
    number = {"base": "decimal", "format": {"decimalChar": ",", "groupChar": "."}}
    columns = [
        {"name": "id", "separator": "|"},
        {"name": "tags", "datatype": "string"},
        {"name": "sizes", "datatype": number},
        {"name": "seen", "datatype": {"base": "date", "format": "dd/MM/yyyy"}},
        {"name": "boss"},
    ]
    schema = {
        "separator": "|",
        "columns": columns,
        "primaryKey": "id",
        "foreignKeys": [{"columnReference": "boss", "reference": {"resource": "p.csv", "columnReference": "id"}}],
    }
    metadata = {"@context": "http://www.w3.org/ns/csvw", "url": "p.csv", "tableSchema": schema, "dialect": {"delimiter": ";"}}
    graph, report = loaded(written(tmp_path / "c", {"csv-metadata.json": metadata, "p.csv": LISTS}))
    assert texts(graph, "Find(p/a) QueryAttr(tags)") == ["blue", "old one", "red"]
    assert texts(graph, "FindAll() FilterStr(tags, blue) QueryName()") == ["p/a"]
    assert texts(graph, "Find(p/a) QueryAttr(sizes)") == ["1,5", "2,5"]
    assert texts(graph, "FindAll() FilterNum(sizes, 2, >) QueryName()") == ["p/a", "p/b"]
    assert texts(graph, "FindAll() FilterDate(seen, 2021-04-03, =) QueryName()") == ["p/a"]
    assert texts(graph, "Find(p/c) QueryAttr(tags)") == ["x"]
    said = " ".join(map(str, report.kinds))
    assert "lists in cells of keys and references are not read, and the cells are not split: 'p.id', 'p.boss'" in said
    assert "'b|c' is not a key of 'p'" in said


def test_lists_of_data_packages_are_lists_of_values(tmp_path: Path) -> None:
    fields = [
        {"name": "id", "type": "string"},
        {"name": "n", "type": "list", "itemType": "integer", "delimiter": ";"},
        {"name": "words", "type": "list"},
    ]
    package = {"resources": [{"name": "t", "path": "t.csv", "schema": {"fields": fields, "primaryKey": "id"}}]}
    files = {"datapackage.json": package, "t.csv": 'id,n,words\na,1;20,"007,x"\nb,3,y\n'}
    graph, report = loaded(written(tmp_path / "c", files))
    assert texts(graph, "Find(t/a) QueryAttr(n)") == ["1", "20"]
    assert texts(graph, "FindAll() FilterNum(n, 2, >) Count()") == ["2"]
    assert texts(graph, "Find(t/a) QueryAttr(words)") == ["007", "x"]
    assert [one for one in report.problems if "separated by" not in one.message] == []


def test_guess_writes_what_the_folder_says(tmp_path: Path) -> None:
    from condgraph.loaders.declaring import guess

    folder = written(tmp_path / "dp", {"datapackage.json": EVENTS, "event.tsv": "id\tparent\tn\ne1\t\t5\ne2\te1\t-999\n"})
    text = guess(folder)
    assert 'key = "id"  # declared by the source' in text
    assert '"event.parent" = "event.id"  # declared by the source' in text


def zipped(path: Path, files: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, (str, bytes)) else json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("files", "formats", "sources"),
    [
        ({f"{name}.txt": text for name, text in GTFS.items()}, ("folder",), ["a"]),
        ({f"feed-main/{name}.txt": text for name, text in GTFS.items()}, ("folder",), ["a"]),
        ({"dp/datapackage.json": EVENTS, "dp/event.tsv": "id\tparent\tn\ne1\t\t5\n", "__MACOSX/._x": "junk"}, ("folder",), ["a"]),
        ({**SHOP, "inner.zip": b"PK"}, ("folder",), ["a"]),
        ({"people.csv": "name,age\nAnn,3\n"}, ("csv",), ["people"]),
        ({"x/people.csv": "name,age\nAnn,3\n", "x/facts.txt": "a|r|b\nb|r|c\n"}, ("triples", "csv"), ["facts", "people"]),
        ({"x\\\\people.csv": "name,age\nAnn,3\n"}, ("csv",), ["people"]),
    ],
)
def test_a_zip_archive_is_what_it_holds(
    tmp_path: Path, files: dict[str, Any], formats: tuple[str, ...], sources: list[str]
) -> None:
    graph, report = loaded(zipped(tmp_path / "a.zip", files))
    assert (report.formats, list(report.sources)) == (formats, sources)
    places = [one.location for one in graph.status().sources] + [one.file for one in report.problems]
    assert all(place.startswith(str(tmp_path / "a.zip")) for place in places)
    assert not any(graph.load(tmp_path / "a.zip").added.values())


def test_what_is_wrong_in_an_archive_is_told_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"a\.zip/x\.csv, row 1: 3 fields") as caught:
        loaded(zipped(tmp_path / "a.zip", {"x.csv": "a,b\n1,2,3\n", "y.csv": "a,b\n"}))
    assert caught.value.file == str(tmp_path / "a.zip/x.csv")
    with pytest.raises(condgraph.CondgraphError, match=r"the folder holds files of no known format: z\.bin"):
        loaded(zipped(tmp_path / "b.zip", {"x.csv": "a,b\n1,2\n", "z.bin": b"\0\1"}))
    inner = io.BytesIO()
    zipfile.ZipFile(inner, "w").close()
    with pytest.raises(condgraph.CondgraphError, match="it looks like"):
        loaded(zipped(tmp_path / "c.zip", {"c.zip": b"PK\3\4" + inner.getvalue()}))
    with pytest.raises(LoadError, match="the archive is empty"):
        loaded(zipped(tmp_path / "d.zip", {}))


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("../x.csv", "not a valid path in it"),
        ("/etc/x.csv", "not a valid path in it"),
        ("a/../../x.csv", "not a valid path in it"),
        ("..\\x.csv", "not a valid path in it"),
        ("c:\\x.csv", "not a valid path in it"),
        ("d/" * 30 + "x.csv", "not a valid path in it"),
        ("x" * 300 + ".csv", "not a valid path in it"),
    ],
)
def test_names_in_an_archive_stay_inside_it(tmp_path: Path, name: str, error: str) -> None:
    path = zipped(tmp_path / "a.zip", {"y.csv": "a,b\n1,2\n", name: "a,b\n1,2\n"})
    with pytest.raises(LoadError, match=error):
        loaded(path)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.zip"]


def test_archives_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("x.csv")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(LoadError, match="a link or a device"):
        loaded(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.csv", "a,b\n1,2\n")
        archive.writestr("y.csv", "a,b\n3,4\n")
    path.write_bytes(path.read_bytes().replace(b"y.csv", b"x.csv"))
    with pytest.raises(LoadError, match=r"two files 'x\.csv'"):
        loaded(path)
    monkeypatch.setattr("condgraph.loaders.files.MAX_UNPACKED", 1 << 20)
    bomb = zipped(path, {"x.csv": b"a,b\n" + b"0" * (4 << 20)})
    with pytest.raises(LoadError, match="unpacks to more than 300 times its size"):
        loaded(bomb)
    # What it declares is not believed.
    content = bytearray(bomb.read_bytes())
    at = content.index(b"PK\1\2")
    content[at + 24 : at + 28] = (10).to_bytes(4, "little")
    bomb.write_bytes(content)
    with pytest.raises(LoadError):
        loaded(bomb)
    monkeypatch.setattr("condgraph.loaders.files._MAX_ENTRIES", 3)
    with pytest.raises(LoadError, match="more than 3 files"):
        loaded(zipped(path, {f"{at}.csv": "a\n" for at in range(4)}))


def test_archives_with_bytes_changed(tmp_path: Path) -> None:
    good = zipped(tmp_path / "a.zip", {f"{name}.txt": text for name, text in GTFS.items()}).read_bytes()
    dice, path = random.Random(5), tmp_path / "b.zip"
    for _ in range(40):
        broken = bytearray(good)
        for _ in range(dice.randrange(1, 8)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        path.write_bytes(broken)
        with suppress(condgraph.CondgraphError):
            loaded(path)
