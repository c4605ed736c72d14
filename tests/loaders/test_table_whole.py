"""Columns of clean tables are read whole: what comes of that is, byte for byte, what comes of reading
cell by cell.
"""

from __future__ import annotations

import csv
import gzip
import io
import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph.engine.errors import LoadError
from condgraph.engine.facts import Batch, Entity, Rows, Texts
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.container import MemoryArrays, Pool, build_pool
from condgraph.engine.snapshot.layout import lay_out
from condgraph.loaders.table import text
from condgraph.loaders.table.column_types import Profile
from condgraph.loaders.table.fields import Block, Fields, Position, RecordFormat, columns_of, lines_of
from tests.support.lanes import by_lane, sample

#: Rows of a chunk: tables here have two of them and a part.
CHUNK = by_lane(300, 1_000, 1_000)
_DAY = date(1890, 1, 1)
#: Kinds of columns; each gives the cell of a row.
KINDS: dict[str, Callable[[random.Random, int], str]] = {
    "id": lambda r, i: f"item {i}",
    "word": lambda r, i: r.choice(("north", "south", "May flower", "item 3", "été 5", "ſtop 1", "Rs", "Marker 5", "usd 5", "a$1")),
    "whole": lambda r, i: str(r.randrange(-500, 5_000)),
    "decimal": lambda r, i: f"{r.randrange(10**6) / 100:.{r.randrange(1, 5)}f}",
    "small": lambda r, i: f"{r.random() / 10 ** r.randrange(7):.8f}",
    "both": lambda r, i: r.choice(("1", "2.0", "-3.50", "0", "0.00", "1.234", "1999")),
    "zero": lambda r, i: r.choice(("-0", "-0.0", "1", "2.5")),
    "long": lambda r, i: str(r.randrange(10**13, 10**17)),
    "year": lambda r, i: str(r.randrange(1900, 2024)),
    "day": lambda r, i: str(_DAY + timedelta(r.randrange(50_000))),
    "odd day": lambda r, i: r.choice(("2000-02-29", "1900-02-28", "0001-01-01", "9999-12-31")),
    "no day": lambda r, i: r.choice(("2001-02-30", "2001-02-03", "0000-01-01")),
    "unit": lambda r, i: f"{r.randrange(100)} km",
    "thousands": lambda r, i: f"{r.randrange(10**4)}.5" if i % 3 else "1'234",
    "code": lambda r, i: r.choice(("007", "12", "5")),
    "date": lambda r, i: str(_DAY + timedelta(r.randrange(50_000))).replace("-", ""),
    "eight": lambda r, i: str(r.choice((20240131, 20241331, 7, 12345678))),
    "version": lambda r, i: r.choice(("1.1", "1.10", "2.0", "3")),
    "release": lambda r, i: r.choice(("1.1", "1.2", "1.10")),
    "exponent": lambda r, i: r.choice(("5E1", "5E2", "50")),
    "list": lambda r, i: r.choice(("101", "101,102", "102,104,103")),
    "behind": lambda r, i: r.choice(("100-", "3", "1200-")),
    "founded": lambda r, i: r.choice(("753 BC", "330", "1191")),
    "european": lambda r, i: r.choice(("1.234", "2.000", "1.234,56 €")),
    "two digits": lambda r, i: r.choice(("31/12/99", "1-NOV-23")),
    "month": lambda r, i: f"20{r.randrange(10, 24)}-{r.randrange(1, 25):02d}",
    "clock": lambda r, i: f"{r.randrange(24)}:{r.randrange(60):02d}",
    "spaces": lambda r, i: r.choice((" a", "b ", "c  d", "e", "f\tg", "h\u00a0i", " 5")),
    "gaps": lambda r, i: r.choice(("", "-", "n/a", "NULL", "—", "NA", "word")),
    "holes": lambda r, i: r.choice(("", "12", "-")),
    "few days": lambda r, i: r.choice(("", "2020-01-01")),
    "gappy year": lambda r, i: r.choice(("", "-", "1999", "2100")),
    "nothing": lambda r, i: "",
    "turns": lambda r, i: str(i) if 2 * i < 3 * CHUNK else f"t{i}",
}


def _loaded(path: Path, options: dict[str, Any], first: Path | None) -> tuple[Any, ...]:
    graph = condgraph.open("memory:")
    try:
        if first is not None:
            graph.load(first)
        try:
            report = graph.load(path, **options)
        except LoadError as error:
            return (str(error),)
        out = io.StringIO()
        graph.export(out)
        arrays = graph.current.arrays
        content = {name: (arrays.get(name).dtype.str, arrays.get(name).tobytes()) for name in arrays.names}
        return content, out.getvalue(), [str(problem) for problem in report.problems], report.statements
    finally:
        graph.close()


def _same(monkeypatch: pytest.MonkeyPatch, path: Path, first: Path | None = None, **options: Any) -> tuple[Any, ...]:
    whole = _loaded(path, options, first)
    with monkeypatch.context() as patch:
        patch.setattr(text, "columns_of", lambda *rest: None)
        patch.setattr(Fields, "of", lambda cells: None)
        patch.setattr(Builder, "_declare_rows", lambda self, rows: [self._declare(one) for one in rows.entities()])
        by_cell = _loaded(path, options, first)
    assert whole == by_cell
    return whole


def _table(path: Path, kinds: list[str], rows: int, seed: int, **how: Any) -> Path:
    rng = random.Random(seed)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, **{"lineterminator": "\n"} | how)
        writer.writerow([f"c{at} {kind}" for at, kind in enumerate(kinds)])
        writer.writerows([KINDS[kind](rng, row) for kind in kinds] for row in range(rows))
    return path


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_ROWS_A_CHUNK", CHUNK)


@pytest.mark.parametrize("kind", sample(list(KINDS), 2))
def test_a_column_of_each_kind(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _same(monkeypatch, _table(tmp_path / "table.csv", ["id", kind], CHUNK * 23 // 10, 1), on_error="skip")


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", ["id", "turns", "whole", "year", "gaps", "spaces"])
def test_keys_of_each_kind(kind: str, named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table(tmp_path / "table.csv", [kind, "word", "gaps"], CHUNK * 23 // 10, 2)
    _same(monkeypatch, table, key=f"c0 {kind}", name_column="c2 gaps" if named else None, on_error="skip")


@pytest.mark.parametrize("seed", range(by_lane(2, 6, 6)))
def test_random_tables(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    kinds = ["id", *rng.choices(list(KINDS), k=5)]
    how: dict[str, Any] = rng.choice(({}, {"lineterminator": "\r\n"}, {"delimiter": ";"}, {"quoting": csv.QUOTE_NONNUMERIC}))
    options: dict[str, Any] = rng.choice(
        (
            {},
            {"key": f"c0 {kinds[0]}"},
            {"name_column": f"c1 {kinds[1]}"},
            {"types": "text"},
            {"types": {f"c2 {kinds[2]}": "number"}},
            {"refs": [f"c3 {kinds[3]}"]},
            {"missing": ["item 5", "word", "12"]},
        )
    )
    first = _table(tmp_path / "first.csv", ["id", "word"], 30, seed) if seed % 2 else None
    _same(monkeypatch, _table(tmp_path / "table.csv", kinds, CHUNK * 21 // 10, seed, **how), first, on_error="skip", **options)


INSIDE, LAST = CHUNK * 3 // 2, CHUNK * 11 // 5 - 1


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        (INSIDE, b'"a, b",1\n'),
        (INSIDE, b'"two\nlines",1\n'),
        (INSIDE, b"three,1,2\n"),
        (INSIDE, b"alone\n"),
        (INSIDE, b"\n"),
        (INSIDE, b"nul\0,1\n"),
        (INSIDE, b"\xff\xfe,1\n"),
        (INSIDE, b"return\r,1\n"),
        (INSIDE, b"ends so,1\r\n"),
        (10, b'"open,1\n'),
        (LAST, b'"open,1\n'),
        (LAST, b"no end,1"),
        (INSIDE, b"x" * 140_000 + b",1\n"),
    ],
)
def test_what_is_not_clean_is_read_the_careful_way(
    line: int, cells: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [b"item %d,%d\n" % (at, at * 7) for at in range(LAST + 1)]
    lines[line] = cells
    path = tmp_path / "table.csv"
    path.write_bytes(b"name,number\n" + b"".join(lines))
    _same(monkeypatch, path, on_error="skip")
    _same(monkeypatch, path)


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"sep=,\n", b"# a note\n# more\n", b"\n"])
def test_what_stands_before_the_header(before: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = _table(tmp_path / "body.csv", ["id", "decimal"], CHUNK * 6 // 5, 3).read_bytes()
    (tmp_path / "table.csv").write_bytes(before + body)
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(before + body))
    plain = _same(monkeypatch, tmp_path / "table.csv")
    assert plain[3] == 2 * (CHUNK * 6 // 5)
    assert _same(monkeypatch, tmp_path / "packed.csv.gz", name="table")[1].splitlines()[1:] == plain[1].splitlines()[1:]


def test_a_clean_table_makes_no_cell_but_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[int] = []
    real = Fields._cut

    def counted(self: Fields, begins: Any, ends: Any) -> list[str]:
        cut.append(len(begins))
        return real(self, begins, ends)

    monkeypatch.setattr(Fields, "_cut", counted)
    path = _table(tmp_path / "table.csv", ["whole", "day", "holes", "year"], 1_000, 5)
    with condgraph.open("memory:") as graph:
        graph.load(path, types={"c3 year": "number"})
    assert sum(cut) == 0


def _columns(data: bytes, lines: int, width: int) -> Any:
    return columns_of(data, lines, RecordFormat(",", width, b'"', csv.reader))


def test_cells_of_a_chunk_are_those_of_csv() -> None:
    data = "a,ü b,\r\n,ß,3\r\n".encode()
    found = _columns(data, 2, 3)
    assert [list(column) for column in found] == [["a", ""], ["ü b", "ß"], ["", "3"]]
    assert found[1][1] == "ß"
    assert found[0][0:1] == ["a"]
    assert _columns(data, 2, 2) is None
    assert _columns(b'"a,b",c\n"d ""e""",f\n', 2, 2) == [("a,b", 'd "e"'), ("c", "f")]


def test_long_texts_are_not_held_many_times_over() -> None:
    """Chunks of small tables are kept until their columns are typed: what is known of their bytes is
    not many times as large as they are.
    """
    data = "".join(f"{at},{'words of 2020 and été ' * 50}end\n" for at in range(300)).encode()
    columns = _columns(data, 300, 2)
    for column in columns:
        Profile(frozenset(("", "n/a", "—"))).add(column)
        assert len(column.texts) == 300
    block = columns[1].block
    assert sum(one.nbytes for one in vars(block).values() if isinstance(one, np.ndarray)) < 4 * len(data)


def test_lines_come_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condgraph.loaders.table.fields._PIECE", 7)
    place = Position()
    assert list(lines_of(io.BytesIO(b"a\nbb\nccc\nd\ne"), 2, place)) == [(b"a\nbb\n", 2), (b"ccc\nd\n", 2), (b"e\n", 1)]
    assert place.done


def test_profiles_count_alike() -> None:
    rng = random.Random(4)
    for kind, cell in KINDS.items():
        cells = [cell(rng, at).replace("\t", " ") for at in range(700)]
        data = "".join(f"{one}\n" for one in cells).encode()
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
        begins = np.concatenate([[0], ends[:-1] + 1])
        for missing in (frozenset(("", "-")), frozenset(("", "item 5", "5", "word"))):
            whole, single = Profile(missing), Profile(missing)
            whole.add(Fields(Block(data, ","), begins, ends))
            single.add(cells)
            assert whole.shapes == single.shapes, kind


@pytest.mark.parametrize("before", [(), (Entity("t/1", "uno"),)])
def test_rows_at_once_are_rows_one_by_one(before: tuple[Entity, ...]) -> None:
    def laid(at_once: bool) -> Any:
        builder = Builder()
        builder.begin(condgraph.Source("t"))
        builder.add(before)
        for rows in (Rows(("t/1", "t/2"), ["one", "t/2"], [1, 2]), Rows(("t/2", "t/3"), ["two", "three"], [4, 5])):
            builder.add([rows] if at_once else rows.entities())
            builder.add([Batch(rows.ids, "says", Texts(["x", "y"], collapsed=True), rows.rows)])
        builder.add([Entity("t/3", "tres")])
        return builder.warnings, {name: column.tolist() for name, column in lay_out(builder)[0].items()}

    assert laid(True) == laid(False)
    assert laid(True)[0][-1] == "entity 't/3' is called 'three' and 'tres'; the first name stays"
    assert sorted(laid(True)[1]["ent.row"]) == [1, 2, 5]


def test_pools_hold_texts_of_any_characters() -> None:
    texts = ["", "b", "ä", "a\u00e9", "\U0001f600x", "\u0000", "z" * 100]
    columns, numbers = build_pool(texts)
    pool = Pool(MemoryArrays(columns))
    assert [pool[number] for number in numbers.tolist()] == texts
    assert [pool.find(text) for text in texts] == numbers.tolist()
    assert pool.take(np.arange(len(texts))) == sorted(texts)
    columns, again = build_pool([*texts, *texts[::-1], "ä", "b"])
    assert again.tolist() == [*numbers, *numbers[::-1], numbers[2], numbers[1]]
    assert all((columns[name] == array).all() for name, array in build_pool(texts)[0].items())
    with pytest.raises(LoadError, match=r"an unpaired surrogate, which is not a character: 'a.ud800'"):
        build_pool(["fine", "a\ud800"])
