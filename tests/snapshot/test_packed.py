"""What is kept in fewer bytes is read back as it was, and a store is small.

The columns of a graph in memory are those that a folder would be written from, so each is compared
bit by bit with what the folder gives.
"""

from __future__ import annotations

import csv
import datetime
import json
import random
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

import condgraph
from condgraph.engine.errors import StoreDamagedError
from condgraph.engine.facts import Entity, Member, Ref, Statement
from condgraph.engine.snapshot import container, directory
from condgraph.engine.snapshot.container import PackedFile
from condgraph.engine.snapshot.readback import items
from condgraph.engine.values import OPEN_END, OPEN_START, Quantity, Time

ENDS = [0, 1, -1, 2**31 - 1, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63), OPEN_START, OPEN_END]
TYPES = ("<i8", "<i4", "|i1")


def same(column: Any, edges: Any = (), beside: Any = None) -> None:
    """Pack and unpack."""
    found = container.unpack(container.pack(column, edges, beside), len(column), column.dtype, beside)
    assert found.dtype == column.dtype
    assert found.tobytes() == column.tobytes()


@given(
    arrays_of.arrays(st.sampled_from(TYPES), st.integers(1, 60)),
    st.lists(st.integers(0, 5_000)),
    st.integers(1, 100),
    st.booleans(),
)
@example(np.array(ENDS, np.int64), [], 40, True)
def test_numbers_are_read_back_whatever_they_are(few: Any, edges: list[int], times: int, ordered: bool) -> None:
    column = np.sort(np.tile(few, times)) if ordered else np.tile(few, times)
    cut = sorted({edge for edge in edges if edge <= len(column)})
    same(column, cut)
    if column.dtype == np.int64:
        same(column, cut, np.roll(column, 1))


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=60), st.integers(0, 6), st.integers(1, 60))
@example([0.0, -0.0], 0, 20)
@example([-0.0, 1.5, 2.5], 1, 20)
@example([0.1, 0.2, 0.30000000000000004], 1, 20)
@example([5e-324, 1e308], 0, 20)
def test_floats_are_read_back_bit_by_bit(few: list[float], digits: int, times: int) -> None:
    some = np.array(few * times)
    with np.errstate(all="ignore"):
        for column in (some, np.round(some, digits), np.sort(np.round(some, digits))):
            same(np.ascontiguousarray(column).view(np.int64))


def test_blocks_are_cut_where_they_are_to_be() -> None:
    assert container.cuts(10) == [0, 10]
    assert container.cuts(5_000, [0, 3, 2_000, 2_001, 5_000]) == [0, 2_000, 5_000]
    assert container.cuts(200_000, [150_000]) == [0, 65_536, 131_072, 150_000, 200_000]


def test_what_is_regular_takes_few_bytes() -> None:
    day = 86_400
    days = np.sort(np.random.default_rng(3).integers(0, 8_000, 50_000)) * day
    assert container.pack(days).size < 60_000
    assert container.pack(days + day, (), days).size < 200
    prices = np.sort(np.random.default_rng(4).integers(0, 1_000_000, 50_000)) / 100
    assert container.pack(prices.view(np.int64)).size < 110_000
    assert container.pack(np.arange(7, 90_000, 5, dtype=np.int32)).size < 200


def clean(path: Path, rows: int) -> Path:
    """A clean table of five columns."""
    draw = random.Random(5)
    with path.open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["name", "population", "area", "founded", "country"])
        for row in range(rows):
            day = datetime.date(1900, 1, 1) + datetime.timedelta(draw.randrange(40_000))
            area = f"{draw.randrange(10_000_000) / 100:.2f}"
            out.writerow([f"Town {row}", draw.randrange(1_000_000), area, day, f"Country {draw.randrange(150)}"])
    return path


def mixed() -> list[Any]:
    """Statements of every kind, some of them with qualifiers, in several units and precisions."""
    draw = random.Random(6)
    items: list[Any] = [Entity(f"e{n}", f"name {n % 700}") for n in range(2_000)]
    items += [Member(f"e{draw.randrange(2_000)}", f"c{draw.randrange(30)}") for _ in range(3_000)]
    for row in range(6_000):
        value: Any = draw.choice(
            (
                Ref(f"e{draw.randrange(2_000)}"),
                Quantity(draw.randrange(1_000), draw.choice(("metre", "1"))),
                Quantity(10**20 + draw.randrange(9)),
                Quantity(draw.random()),
                Time.year(draw.randrange(-3000, 2100)),
                Time.parse(f"{draw.randrange(1900, 2000)}-0{draw.randrange(1, 10)}-1{draw.randrange(9)}"),
                f"text {draw.randrange(400)}",
            )
        )
        qualifiers = ((draw.choice(("start time", "end time")), Time.year(draw.randrange(1900, 2020))),) if row % 3 else ()
        items.append(Statement(f"e{draw.randrange(2_000)}", f"predicate {draw.randrange(9)}", value, qualifiers, row))
    return items


def compared(place: Path, memory: condgraph.Graph) -> PackedFile:
    """The file of a folder, whose columns are those of the graph in memory."""
    with condgraph.open(place, read_only=True) as graph:
        file, wanted = graph.current.arrays, memory.current.arrays
        assert isinstance(file, PackedFile)
        assert set(file.names) == set(wanted.names)
        for name in wanted.names:
            assert file.get(name).dtype == wanted.get(name).dtype, name
            assert file.get(name).tobytes() == wanted.get(name).tobytes(), name
            assert not len(wanted.get(name)) or not file.get(name).flags.writeable, name
            assert file.length(name) == len(wanted.get(name)) == len(file.view(name))
        assert list(items(graph.current)) == list(items(memory.current))
        return file


@pytest.mark.slow
def test_a_clean_table_takes_at_most_three_times_its_bytes(tmp_path: Path) -> None:
    table = clean(tmp_path / "towns.csv", 20_000)
    memory = condgraph.open()
    for graph in (memory, condgraph.open(tmp_path / "store")):
        graph.load(table)
    file = compared(tmp_path / "store", memory)
    assert file.size < 3 * table.stat().st_size


def test_a_table_with_keys_and_one_that_is_added_to_it(tmp_path: Path) -> None:
    first, second = clean(tmp_path / "towns.csv", 3_000), tmp_path / "more.csv"
    second.write_text("name;height\n" + "".join(f"Town {row};{row}.5 m\n" for row in range(0, 6_000, 2)))
    memory = condgraph.open()
    for graph in (memory, condgraph.open(tmp_path / "store")):
        graph.load(first, key="name")
        graph.load(second, key="name")
    compared(tmp_path / "store", memory)


def test_statements_of_every_kind(tmp_path: Path) -> None:
    memory = condgraph.open()
    for graph in (memory, condgraph.open(tmp_path / "store")):
        graph.add(mixed(), source="mixed")
    file = compared(tmp_path / "store", memory)
    assert {form["form"] for form in file._forms.values()} >= {"same", "runs", "sparse", "blocks"}


def test_long_columns_are_mapped_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condgraph.engine.snapshot.container.MAX_COLUMN", 1_000)
    memory = condgraph.open()
    for graph in (memory, condgraph.open(tmp_path / "store")):
        graph.add(mixed(), source="mixed")
    file = compared(tmp_path / "store", memory)
    assert not any(name.startswith(("att.", "st.", "q.")) for name in file._forms)


def test_a_store_of_the_version_before_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # All columns as they are, under the number of the version before.
    with monkeypatch.context() as before:
        before.setattr(directory, "packed", lambda columns: (columns, {}))
        before.setattr(directory, "FORMAT_VERSION", 2)
        graph = condgraph.open(tmp_path / "store")
        graph.add(mixed(), source="mixed")
    manifest = tmp_path / "store" / "default" / "manifest.json"
    head, _, body = manifest.read_bytes().partition(b"\n")
    assert head.startswith(b"condgraph 2 ")
    told = {name: one for name, one in json.loads(body).items() if name != "packed"}
    text = json.dumps(told).encode()
    manifest.write_bytes(f"condgraph 2 {zlib.crc32(text):08x}\n".encode() + text)
    memory = condgraph.open()
    memory.add(mixed(), source="mixed")
    compared(tmp_path / "store", memory)
    with condgraph.open(tmp_path / "store") as again:
        again.add([Statement("e1", "predicate 1", "more")], source="more")
    assert manifest.read_bytes().startswith(b"condgraph 3 ")
    memory.add([Statement("e1", "predicate 1", "more")], source="more")
    compared(tmp_path / "store", memory)


def test_damage_to_a_packed_column_is_found(tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "store") as graph:
        graph.add(mixed(), source="mixed")
        file = graph.current.arrays
        assert isinstance(file, PackedFile)
        part = next(name for name, entry in file._table.items() if name.endswith(":values") and entry["length"])
        offset = file._table[part]["offset"]
    columns = next((tmp_path / "store").rglob("columns"))
    data = bytearray(columns.read_bytes())
    data[offset] ^= 1
    columns.write_bytes(data)
    with condgraph.open(tmp_path / "store") as graph, pytest.raises(StoreDamagedError, match=part):
        graph.status(verify=True)
