"""Keys that differ in case or leading zeros alone stay apart, and one warning a column says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.graph import Graph
from condgraph.reports import LoadReport

STATIONS = "station_id,station_name\nS09,a\nS10,b\ns11,c\n007,d\n8,e\nX,f\n"
RIDES = "ride_id,station_id\n1,s09\n2,S10\n3,S11\n4,7\n5,008\n6,Z\n7,X\n8,X\n9,S09\n10,007\n11,8\n"
SAID = "4 values differ from keys of 'stations' only in case or leading zeros, and are not joined: 's09' ('S09') and 'S11' ('s11')"


def near(report: LoadReport) -> list[tuple[str | None, str]]:
    return [(one.field, one.message) for one in report.problems if "only in" in one.message]


def written(folder: Path, stations: str = STATIONS, rides: str = RIDES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "stations.csv").write_text(stations)
    (folder / "rides.csv").write_text(rides)
    return folder


@pytest.mark.parametrize("options", [{}, {"join": {"rides.station_id": "stations.station_id"}}])
def test_in_a_folder(tmp_path: Path, options: dict[str, Any]) -> None:
    graph = condgraph.open("memory:")
    report = graph.load(written(tmp_path / "f"), **options)
    assert near(report) == [("station_id", SAID)]
    assert graph.kopl("FindAll() FilterConcept(stations) Count()").texts == ["6"]
    assert graph.kopl("FindAll() FilterStr(station_id, s09) Count()").texts == ["1"]


def test_in_a_list_of_files(tmp_path: Path) -> None:
    written(tmp_path)
    report = condgraph.open("memory:").load([tmp_path / "stations.csv", tmp_path / "rides.csv"])
    assert near(report) == [("station_id", SAID)]


@pytest.mark.parametrize("options", [{"refs": ["station_id"]}, {"join": {"station_id": "stations"}}])
def test_in_tables_that_are_loaded_one_by_one(tmp_path: Path, options: dict[str, Any]) -> None:
    written(tmp_path)
    graph: Graph = condgraph.open("memory:")
    graph.load(tmp_path / "stations.csv", key="station_id")
    assert near(graph.load(tmp_path / "rides.csv", **options)) == [("station_id", SAID)]


def test_in_a_table_that_refers_to_itself(tmp_path: Path) -> None:
    (tmp_path / "staff.csv").write_text("id,boss\na1,A2\na2,\na3,a1\n")
    report = condgraph.open("memory:").load(tmp_path / "staff.csv", key="id", join={"boss": "staff"})
    said = "1 value differs from a key of 'staff' only in case, and is not joined: 'A2' ('a2')"
    assert near(report) == [("boss", said)]


def test_where_so_many_differ_that_nothing_is_joined(tmp_path: Path) -> None:
    folder = written(tmp_path / "f", rides="ride_id,station_id\n1,s09\n2,s10\n3,S11\n4,x\n")
    report = condgraph.open("memory:").load(folder)
    said = "4 values differ from keys of 'stations' only in case, and are not joined: 'S11' ('s11') and 's09' ('S09')"
    assert near(report) == [("station_id", said)]


def test_relations_and_keys_of_several_columns(tmp_path: Path) -> None:
    folder = written(tmp_path / "f", rides="from,to\nS09,S10\nS10,s10\ns11,007\n")
    join = {"rides.from": "stations.station_id", "rides.to": "stations.station_id"}
    report = condgraph.open("memory:").load(folder, join=join, relations=["rides"], on_error="skip")
    said = "1 value differs from a key of 'stations' only in case, and is not joined: 's10' ('S10')"
    assert near(report) == [("to", said)]


def test_other_values_are_not_named(tmp_path: Path) -> None:
    folder = written(tmp_path / "f", rides="ride_id,station_id\n1,S09\n2,S10\n3,S9\n4,80\n5,0\n")
    report = condgraph.open("memory:").load(folder, join={"rides.station_id": "stations.station_id"})
    assert near(report) == []
    assert report.warned == 3


def test_every_reference_to_nothing_counts(tmp_path: Path) -> None:
    """More than a thousand are counted, and still one line."""
    graph = condgraph.open("memory:")
    written(tmp_path, rides="ride_id,station_id\n" + "".join(f"{at},Q{at}\n" for at in range(1500)) + "1500,X\n")
    graph.load(tmp_path / "stations.csv", key="station_id")
    report = graph.load(tmp_path / "rides.csv", join={"station_id": "stations"})
    assert [one.count for one in report.kinds] == [1500]
