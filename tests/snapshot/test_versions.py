"""Earlier versions of a graph in a folder: which stay, and what was known then."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.engine.errors import OptionError, ReadOnlyError, StoreDamagedError, StoreMissingError, UnsupportedError
from condgraph.engine.facts import Sourced, Statement
from condgraph.engine.snapshot.directory import graph_directory
from condgraph.engine.snapshot.readback import items
from condgraph.engine.values import Quantity
from tests.support.lanes import by_lane

SIZE = "Find(town) QueryAttr(size)"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    """Sets the time that loads are given."""
    moments = [datetime(2020, 1, 1, tzinfo=UTC).timestamp()]
    monkeypatch.setattr("condgraph.storage.time.time", lambda: moments[0])

    def to(moment: datetime) -> None:
        moments[0] = moment.replace(tzinfo=UTC).timestamp()

    return to


@pytest.fixture
def graph(tmp_path: Path, clock: Callable[[datetime], None]) -> condgraph.Graph:
    """Four loads, a year apart, each of another size of the town."""
    result = condgraph.open(tmp_path / "store")
    result.keep_versions(3)
    for year in range(2020, 2024):
        clock(datetime(year, 6, 1))
        result.add([Statement("town", "size", Quantity(year))], source="census", replace=year > 2020)
    return result


def test_versions_are_listed_and_asked(graph: condgraph.Graph) -> None:
    assert [(one.id, one.written.year, one.current) for one in graph.versions()] == [
        ("g000002", 2021, False), ("g000003", 2022, False), ("g000004", 2023, True),
    ]  # fmt: skip
    assert graph.versions()[0].loaded == ("census",)
    expected: list[tuple[Any, str]] = [
        ("g000002", "2021"), ("2021-06-01", "2021"), ("2022-05-31", "2021"), ("2022", "2022"), (2030, "2023"),
        (datetime(2022, 6, 1, tzinfo=UTC), "2022"), (datetime(2022, 6, 1, tzinfo=UTC) - timedelta(seconds=1), "2021"),
    ]  # fmt: skip
    for as_of, size in expected:
        assert graph.query(SIZE, as_of=as_of).texts == graph.as_of(as_of).query(SIZE).texts == [size]
        assert condgraph.open(graph.place, as_of=as_of).prepare("Find($x) QueryAttr(size)")(x="town").texts == [size]
        assert graph.prepare("Find($x) QueryAttr(size)", as_of=as_of)(x="town").texts == [size]
    assert graph.query(SIZE).texts == ["2023"]


def test_a_version_stays_open_and_is_not_changed(graph: condgraph.Graph) -> None:
    old = graph.as_of("g000002")
    with pytest.raises(ReadOnlyError, match="g000002"):
        old.add([Statement("town", "size", Quantity(1))])
    graph.keep_versions(None)
    assert [one.id for one in graph.versions()] == ["g000004"]
    old.refresh()
    assert old.query(SIZE).texts == ["2021"]


@pytest.mark.parametrize(
    ("as_of", "error", "nearest"),
    [
        ("g000001", "was removed", "g000002"),
        ("g000009", "is not there yet", "g000004"),
        ("2020-07", "were removed", "g000002"),
        ("soon", "is not a time", None),
    ],
)
def test_a_version_that_is_not_there(graph: condgraph.Graph, as_of: str, error: str, nearest: str | None) -> None:
    with pytest.raises((StoreMissingError, OptionError), match=error) as raised:
        graph.query(SIZE, as_of=as_of)
    assert raised.value.candidates == (() if nearest is None else (nearest,))


def test_versions_stay_by_their_age(tmp_path: Path, clock: Callable[[datetime], None], monkeypatch: pytest.MonkeyPatch) -> None:
    graph = condgraph.open(tmp_path / "store")
    graph.keep_versions("30 days")
    for day in (1, 3, 20, 40):
        moment = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=day)
        clock(moment)
        monkeypatch.setattr("condgraph.engine.snapshot.directory.time.time", moment.timestamp)
        graph.add([Statement("town", "size", Quantity(day))], source=f"s{day}")
    # The first was replaced on the third day, more than thirty days before the last load.
    assert [one.id for one in graph.versions()] == ["g000002", "g000003", "g000004"]


def test_what_a_killed_writer_left_is_no_version(graph: condgraph.Graph) -> None:
    folder = Path(graph.place) / "default" / "g000005"
    folder.mkdir()
    (folder / "columns").write_bytes(b"half")
    assert len(graph.versions()) == 3
    graph.add([Statement("town", "size", Quantity(1))], source="more")
    assert graph.status(verify=True).generation == "g000005"
    assert [one.id for one in graph.versions()] == ["g000003", "g000004", "g000005"]
    assert graph.delete()
    assert not (Path(graph.place) / "default").exists()


def test_evidence_says_when_its_sources_were_loaded(graph: condgraph.Graph, clock: Callable[[datetime], None]) -> None:
    clock(datetime(2024, 1, 1))
    graph.add([Statement("town", "mayor", "Ann")], source="other")
    assert graph.query(SIZE).evidence.confirmed == {"census": datetime(2023, 6, 1, tzinfo=UTC)}
    assert graph.query("Find(town) QueryAttr(mayor)").evidence.confirmed == {"other": datetime(2024, 1, 1, tzinfo=UTC)}
    assert graph.unload("other")
    assert graph.versions()[-1].removed == ("other",)


def test_single_changes_are_known_from_their_time_on(
    graph: condgraph.Graph, clock: Callable[[datetime], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    months = iter(range(1, 7))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime(2024, next(months), 1, tzinfo=tz)

    monkeypatch.setattr("condgraph.editing.datetime", Clock)
    graph.add("town", "size", 1)
    graph.retract(Statement("town", "size", Quantity(2023)))
    graph.correct(Statement("town", "size", Quantity(1)), object=2)
    expected = [("2023", ["2023"]), ("2024-01", ["1", "2023"]), ("2024-02", ["1"]), ("2024-03", ["2"]), ("g000004", ["2023"])]

    def check() -> None:
        for as_of, sizes in expected:
            assert graph.query(SIZE, as_of=as_of).texts == sizes
            assert condgraph.open(graph.place, as_of=as_of).kopl(SIZE).texts == sizes

    check()
    clock(datetime(2024, 3, 15))
    graph.compact()
    expected += [("2024-03-20", ["2"]), ("g000005", ["2"])]
    check()
    graph.add("town", "size", 4)
    graph.retract(Statement("town", "size", Quantity(2)))
    clock(datetime(2024, 6, 1))
    graph.add([Statement("town", "size", Quantity(size)) for size in (2, 3)], source="late")
    expected += [("2024-04", ["2", "4"]), ("2024-05", ["4"]), ("2024-06", ["3", "4"]), ("g000006", ["3", "4"])]
    check()


def test_rules_and_places_without_versions(tmp_path: Path) -> None:
    graph = condgraph.open(tmp_path / "store")
    for keep in (0, -1, "soon", "0 days", "", 1.5, timedelta(0)):
        with pytest.raises(OptionError):
            graph.keep_versions(keep)  # type: ignore[arg-type]
    with pytest.raises(StoreMissingError):
        graph.as_of("2020")
    for call in (condgraph.Graph().versions, lambda: condgraph.Graph().keep_versions(3), lambda: condgraph.Graph().as_of("2020")):
        with pytest.raises(UnsupportedError, match="folders"):
            call()


def test_commands_show_and_ask_versions(graph: condgraph.Graph) -> None:
    run = CliRunner().invoke(app, ["versions", "-d", graph.place])
    assert run.stdout.splitlines()[0] == "g000002  2021-06-01T00:00:00Z  1 statements; loaded census"
    run = CliRunner().invoke(app, ["query", "-d", graph.place, SIZE, "--as-of", "2022"])
    assert run.stdout == "2022\n"
    run = CliRunner().invoke(app, ["versions", "-d", graph.place, "--keep", "2", "--format", "json"])
    assert [one["id"] for one in json.loads(run.stdout)] == ["g000003", "g000004"]


def test_a_version_whose_manifest_is_damaged_is_not_lost(graph: condgraph.Graph) -> None:
    place = graph_directory(Path(graph.place), "default") / "g000003"
    manifest = place / "manifest.json"
    written = manifest.read_bytes()
    manifest.write_bytes(written.replace(b"census", b"cansus"))
    with pytest.warns(UserWarning, match="g000003"):
        assert [one.id for one in graph.versions()] == ["g000002", "g000004"]
    assert any("g000003" in note for note in graph.status().notes)
    for as_of in ("g000003", "2022", "2023-05-01"):
        with pytest.raises(StoreDamagedError, match="g000003"):
            graph.query(SIZE, as_of=as_of)
    assert graph.query(SIZE, as_of="2030").texts == ["2023"]
    for year in range(2024, 2028):
        report = graph.add([Statement("town", "size", Quantity(year))], source="census", replace=True)
        assert any("g000003" in warning for warning in report.warnings)
    manifest.write_bytes(written)
    assert graph.query(SIZE, as_of="g000003").texts == ["2022"]
    assert not graph.status().notes
    graph.add([Statement("town", "size", Quantity(9))], source="census", replace=True)
    assert not place.exists()


OPERATIONS = ("load", "replace", "more", "unload", "add", "add", "retract", "retract", "correct", "compact")
Fact = tuple[str, str, str]


@pytest.mark.parametrize("seed", range(by_lane(2, 60, 500)))
def test_random_histories_by_two_writers(seed: int, tmp_path: Path) -> None:
    """Every state of a history is known at its time, as in sets of facts: loads, removals and single changes in any order."""
    dice = random.Random(seed)
    writers = [condgraph.open(tmp_path), condgraph.open(tmp_path)]
    writers[0].keep_versions(50)
    sources: dict[str, set[Fact]] = {}
    edits: set[Fact] = set()
    hidden: set[Fact] = set()
    history: list[tuple[datetime, set[Fact]]] = []
    known: set[Fact] = set()

    def some(most: int) -> set[Fact]:
        return {(dice.choice("abc"), dice.choice("pq"), dice.choice(("1x", "2x", "3x"))) for _ in range(dice.randint(1, most))}

    for step in range(14):
        graph = dice.choice(writers) if step else writers[0]
        graph.refresh()
        what, name = (dice.choice(OPERATIONS), dice.choice("st")) if step else ("load", "s")
        facts, fact = some(4), dice.choice(sorted(known)) if known else None
        (new,) = some(1)
        if what in ("load", "replace", "more") and (what == "load") is (name not in sources):
            graph.add([Statement(*one) for one in facts], source=name, replace=what == "replace")
            sources[name] = facts | (sources[name] if what == "more" else set())
        elif what == "unload" and name in sources:
            graph.unload(name)
            del sources[name]
        elif what == "add" and new not in known:
            graph.add(*new)
            edits, hidden = edits | {new}, hidden - {new}
        elif what == "retract" and fact:
            graph.retract(Statement(*fact))
            edits, hidden = edits - {fact}, hidden | {fact}
        elif what == "correct" and fact and (*fact[:2], new[2]) not in known:
            graph.correct(Statement(*fact), object=new[2])
            edits, hidden = edits - {fact} | {(*fact[:2], new[2])}, (hidden | {fact}) - {(*fact[:2], new[2])}
        elif what == "compact":
            graph.compact()
        known = set().union(edits, *sources.values()) - hidden
        time.sleep(0.002)
        history.append((datetime.now(UTC), known))
        time.sleep(0.002)
    for at, facts in history:
        statements = items(writers[1].as_of(at).current)
        found = [one.item for one in statements if isinstance(one, Sourced) and isinstance(one.item, Statement)]
        assert {(one.subject, one.predicate, one.object) for one in found} == facts


def test_a_rule_before_the_first_load_is_stored(tmp_path: Path) -> None:
    """By another object than the one that loads."""
    place = tmp_path / "store"
    condgraph.open(place).keep_versions(3)
    assert condgraph.open(place).versions() == []
    for size in (1, 2):
        condgraph.open(place).add([Statement("town", "size", Quantity(size))], source="census", replace=size > 1)
    assert [one.id for one in condgraph.open(place).versions()] == ["g000001", "g000002"]
